"""HotpotQA and 2WikiMultiHopQA: what is gold, what is a document, what is a bad record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.dataset_files import written

from suffice import datasets
from suffice.errors import InputError


def ada(**changes: Any) -> dict[str, Any]:
    record = {
        "_id": "h1",
        "question": " Who taught Ada's tutor? ",
        "answer": "Frend",
        "type": "bridge",
        "supporting_facts": [["Ada", 0], ["Ada", 2], ["De Morgan", 1]],
        "context": [
            ["Ada", ["Ada wrote.", " She counted."]],
            ["De Morgan", ["He taught.", "He wrote."]],
            ["Byron", []],
        ],
    }
    return {**record, **changes}


@pytest.mark.parametrize("name", ["hotpotqa", "2wikimultihopqa"])
def test_the_titles_of_the_supporting_facts_are_the_gold(tmp_path, name):
    dataset = datasets.load(name, written(tmp_path, "q.json", [ada()]))
    (question,) = dataset.questions()
    assert question.question.text == "Who taught Ada's tutor?"
    assert question.gold.doc_ids == {"Ada", "De Morgan"}
    assert (question.gold.answer, question.gold.kind, question.gold.hops) == ("Frend", "bridge", 2)


def test_a_pooled_corpus_joins_sentences_with_one_space_and_keeps_each_title_once(tmp_path):
    dataset = datasets.load("hotpotqa", written(tmp_path, "q.json", [ada(), ada(_id="h2")]))
    assert {one.doc_id: one.text for one in dataset.documents()} == {
        "Ada": "Ada wrote. She counted.",
        "De Morgan": "He taught. He wrote.",
        "Byron": "",
    }


PASSAGES = {"Ada": ["Ada wrote.", " She counted."], "Byron": ["He rhymed."]}


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(PASSAGES),
        json.dumps(PASSAGES, indent=4),
        json.dumps([{"title": title, "text": "".join(body)} for title, body in PASSAGES.items()]),
        "\n".join(
            json.dumps({"title": title, "sentences": body}) for title, body in PASSAGES.items()
        ),
        "\ufeff" + json.dumps(PASSAGES),
    ],
)
def test_a_corpus_file_may_be_an_object_a_list_or_lines(tmp_path, content):
    path = tmp_path / "c.json"
    path.write_text(content, encoding="utf-8")
    found = [(one.doc_id, one.text) for one in datasets.load("hotpotqa", corpus=path).documents()]
    assert found == [("Ada", "Ada wrote. She counted."), ("Byron", "He rhymed.")]


def test_a_question_drawn_twice_stays_under_its_own_id_in_hotpotqa(tmp_path):
    path = written(tmp_path, "q.json", [ada(), ada(_id="h2"), ada(), ada()])
    assert [one.gold.question_id for one in datasets.load("hotpotqa", path).questions()] == [
        "h1",
        "h2",
        "h1#2",
        "h1#3",
    ]


@pytest.mark.parametrize(
    ("name", "change"), [("hotpotqa", {"question": "Another?"}), ("2wikimultihopqa", {})]
)
def test_one_id_for_two_questions_is_an_error_that_names_both_lines(tmp_path, name, change):
    path = tmp_path / "q.json"
    path.write_text("[\n" + json.dumps(ada()) + ",\n" + json.dumps(ada(**change)) + "\n]")
    with pytest.raises(InputError, match=r"q\.json:3: question id 'h1' is already used on line 2"):
        list(datasets.load(name, path).questions())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"supporting_facts": []},
            (
                r"field 'supporting_facts' is \[\], expected a list of \[title, sentence "
                r"number\] pairs"
            ),
        ),
        ({"supporting_facts": None}, "field 'supporting_facts' is None, expected a list"),
        ({"supporting_facts": [[3, 1]]}, "field 'supporting_facts'"),
        ({"question": "  "}, "field 'question' is '  ', expected a text that is not empty"),
        ({"question": ["Who?"]}, "field 'question'"),
        ({"_id": None}, "field '_id' is None"),
    ],
)
def test_a_bad_question_is_an_error_and_gives_no_documents_when_skipped(tmp_path, change, message):
    path = written(tmp_path, "q.json", [ada(**change), ada(_id="h2")])
    with pytest.raises(InputError, match=message):
        list(datasets.load("hotpotqa", path).questions())
    dataset = datasets.load("hotpotqa", path, skip_bad=True)
    assert [one.gold.question_id for one in dataset.questions()] == ["h2"]
    assert len(list(dataset.documents())) == 3
    assert dataset.bad.count == 1


@pytest.mark.parametrize(
    "context", [None, "Ada", [["Ada"]], [["Ada", 3]], [[None, ["a"]]], [["Ada", ["a", 1]]]]
)
def test_a_bad_context_is_an_error(tmp_path, context):
    with pytest.raises(InputError, match=r"q\.json:2: "):
        list(
            datasets.load(
                "hotpotqa", written(tmp_path, "q.json", [ada(context=context)])
            ).documents()
        )
