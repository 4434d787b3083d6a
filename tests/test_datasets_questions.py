"""HotpotQA, 2WikiMultiHopQA, MuSiQue and MultiHop-RAG: what is gold, what is a document, and what is a bad record."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from suffice import datasets
from suffice.errors import InputError


def written(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


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


# --------------------------------------------------------------------- HotpotQA and 2WikiMultiHopQA


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


def test_a_title_twice_in_the_corpus_file_is_an_error(tmp_path):
    path = written(
        tmp_path, "c.json", [{"title": "Ada", "text": "a"}, {"title": "Ada", "text": "b"}]
    )
    with pytest.raises(InputError, match="document id 'Ada' is already used on line 2"):
        list(datasets.load("2wikimultihopqa", corpus=path).documents())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"supporting_facts": []},
            r"field 'supporting_facts' is \[\], expected a list of \[title, sentence number\] pairs",
        ),
        ({"supporting_facts": None}, "field 'supporting_facts' is None, expected a list"),
        ({"supporting_facts": [[3, 1]]}, "field 'supporting_facts'"),
        ({"question": "  "}, "field 'question' is '  ', expected a text that is not empty"),
        ({"question": ["Who?"]}, "field 'question'"),
        ({"_id": None}, "field '_id' is None"),
    ],
)
def test_a_bad_question_is_an_error_and_gives_no_documents_when_skipped(tmp_path, change, said):
    path = written(tmp_path, "q.json", [ada(**change), ada(_id="h2")])
    with pytest.raises(InputError, match=said):
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


def test_gold_outside_the_corpus_file_is_found(tmp_path):
    corpus = written(tmp_path, "c.json", {"Ada": ["Ada wrote."]})
    found = datasets.describe(
        datasets.load("hotpotqa", questions=written(tmp_path, "q.json", [ada()]), corpus=corpus)
    )
    with pytest.raises(
        InputError, match="question 'h1' needs document 'De Morgan', which is not in the corpus"
    ):
        datasets.check_gold(found)


# ------------------------------------------------------------------------------------------ MuSiQue


def paragraph(title: str, text: str, supporting: bool) -> dict[str, Any]:
    return {"idx": 0, "title": title, "paragraph_text": text, "is_supporting": supporting}


def messi(**changes: Any) -> dict[str, Any]:
    record = {
        "id": "3hop1__1_2",
        "question": "When?",
        "answer": "1982",
        "answerable": True,
        "paragraphs": [
            paragraph("Messi", "Goal.", True),
            paragraph("Messi", "Youth.", False),
            paragraph("Barca", "Deal.", True),
        ],
    }
    return {**record, **changes}


def test_paragraphs_of_one_title_are_told_apart_by_their_text_and_both_files_agree(tmp_path):
    corpus = [
        {"title": "Messi", "text": "Youth."},
        {"title": "Messi", "text": "Goal."},
        {"title": "Barca", "text": "Deal."},
    ]
    dataset = datasets.load(
        "musique",
        questions=written(tmp_path, "q.json", [messi()]),
        corpus=written(tmp_path, "c.json", corpus),
    )
    (question,) = dataset.questions()
    texts = {one.doc_id: one.text for one in dataset.documents()}
    assert len(texts) == 3
    assert {texts[doc_id] for doc_id in question.gold.doc_ids} == {"Goal.", "Deal."}
    assert (question.gold.kind, question.gold.hops) == ("3hop1", 2)
    pooled = datasets.load("musique", questions=tmp_path / "q.json").documents()
    assert {one.doc_id: one.text for one in pooled} == texts


def test_the_original_lines_are_read_like_the_array(tmp_path):
    path = tmp_path / "musique_ans_v1.0_dev.jsonl"
    path.write_text(json.dumps(messi()) + "\n\n" + json.dumps(messi(id="2hop__3_4")) + "\n")
    assert [one.gold.kind for one in datasets.load("musique", tmp_path).questions()] == [
        "3hop1",
        "2hop",
    ]


def test_an_unanswerable_twin_is_a_null_question_of_its_own(tmp_path):
    path = written(tmp_path, "q.json", [messi(), messi(answerable=False)])
    first, twin = datasets.load("musique", path).questions()
    assert first.gold.doc_ids
    assert (twin.gold.doc_ids, twin.gold.kind, twin.gold.hops) == (frozenset(), "unanswerable", 0)
    assert twin.gold.question_id == "3hop1__1_2#unanswerable"


@pytest.mark.parametrize(
    "paragraphs",
    [
        None,
        [],
        ["text"],
        [paragraph("A", "a", False)],
        [{"title": "A", "paragraph_text": "a"}],
        [paragraph("A", "", True)],
    ],
)
def test_a_question_without_supporting_paragraphs_is_an_error(tmp_path, paragraphs):
    with pytest.raises(InputError, match=r"q\.json:2: field 'paragraph"):
        list(
            datasets.load(
                "musique", written(tmp_path, "q.json", [messi(paragraphs=paragraphs)])
            ).questions()
        )


def test_the_same_question_twice_is_an_error_in_musique(tmp_path):
    with pytest.raises(InputError, match="question id '3hop1__1_2' is already used"):
        list(datasets.load("musique", written(tmp_path, "q.json", [messi(), messi()])).questions())


# ------------------------------------------------------------------------------------------------ MultiHop-RAG


def query(**changes: Any) -> dict[str, Any]:
    evidence = [
        {"title": "A", "url": "u", "fact": "f"},
        {"title": "B", "url": None, "fact": "g"},
        {"title": "A", "fact": "h"},
    ]
    return {
        "query": "Who?",
        "answer": "She",
        "question_type": "inference_query",
        "evidence_list": evidence,
        **changes,
    }


def article(**changes: Any) -> dict[str, Any]:
    known = {
        "title": "A",
        "author": "X",
        "source": "The Verge",
        "category": "technology",
        "url": "u",
        "body": "Text.",
    }
    return {**known, "published_at": "2023-09-28T23:30:00+00:00", **changes}


def test_an_article_keeps_its_day_and_what_we_do_not_read(tmp_path):
    path = written(
        tmp_path,
        "corpus.json",
        [article(), article(title="B", source=None, published_at=None, author=None)],
    )
    first, second = datasets.load("multihop_rag", tmp_path).documents()
    assert (first.doc_id, first.source, first.category, first.published_at) == (
        "A",
        "The Verge",
        "technology",
        date(2023, 9, 28),
    )
    assert first.extra == {"author": "X", "url": "u"}
    assert (second.source, second.published_at, second.extra) == (None, None, {"url": "u"})
    assert path.exists()


def test_evidence_is_gold_once_an_article_and_a_null_query_has_none(tmp_path):
    path = written(
        tmp_path, "MultiHopRAG.json", [query(), query(question_type="null_query", evidence_list=[])]
    )
    first, null = datasets.load("multihop_rag", path).questions()
    assert (first.gold.doc_ids, first.gold.hops, first.gold.kind) == ({"A", "B"}, 2, "inference")
    assert (null.gold.doc_ids, null.gold.hops, null.gold.kind) == (frozenset(), 0, "null")
    assert [first.gold.question_id, null.gold.question_id] == ["q0", "q1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"question_type": "hard"}, "field 'question_type' is 'hard', expected inference_query or"),
        (
            {"evidence_list": []},
            "field 'evidence_list' is .*expected at least one article for a inference_query",
        ),
        ({"question_type": "null_query"}, "expected none for a null_query"),
        ({"evidence_list": ["A"]}, "expected a list of objects with a title"),
        ({"evidence_list": [{"fact": "f"}]}, "field 'title' is missing"),
        ({"query": ""}, "field 'query' is ''"),
    ],
)
def test_a_bad_query_is_an_error(tmp_path, change, said):
    with pytest.raises(InputError, match=said):
        list(
            datasets.load(
                "multihop_rag", written(tmp_path, "q.json", [query(**change)])
            ).questions()
        )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"published_at": "last Tuesday"},
            "field 'published_at' is 'last Tuesday', expected an ISO date like 2023-10-07",
        ),
        ({"published_at": 20230928}, "field 'published_at'"),
        ({"body": None}, "field 'body' is None, expected a text"),
        ({"title": None, "url": None}, "field 'title' is None"),
        ({"source": ["The Verge"]}, "field 'source'"),
    ],
)
def test_a_bad_article_is_an_error(tmp_path, change, said):
    with pytest.raises(InputError, match=said):
        list(
            datasets.load(
                "multihop_rag", corpus=written(tmp_path, "c.json", [article(**change)])
            ).documents()
        )


def test_an_article_without_a_title_goes_by_its_url(tmp_path):
    (document,) = datasets.load(
        "multihop_rag", corpus=written(tmp_path, "c.json", [article(title=None)])
    ).documents()
    assert document.doc_id == "u"


def test_articles_of_the_real_corpus_have_their_dates(data_folder):
    found = list(datasets.load("multihop_rag", data_folder / "multihop_rag").documents())
    assert sum(one.published_at is not None for one in found) == 339
    assert min(one.published_at for one in found if one.published_at) > date(2023, 1, 1)
