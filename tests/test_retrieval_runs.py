"""Runs: questions through retrievers, what fails on the way, and the document that is left."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from suffice.datasets.gold import Gold, GoldQuestion
from suffice.errors import DataError, InputError, NotReadyError
from suffice.evaluation.metrics import per_question, score
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.retrieval import evaluate_retrieval
from suffice.evaluation.retrieval_runs import RetrievalRun
from suffice.types import Hit, Question


class FixedRetriever:
    """A retriever that knows the answer to each question by heart."""

    def __init__(self, answers: Mapping[str, Sequence[str]], score: float | None = 1.0) -> None:
        self.answers, self.score = answers, score
        self.searches: list[tuple[int, int]] = []  # how many questions, how deep

    def search(self, questions, *, k, filters=None):
        self.searches.append((len(questions), k))
        return [
            tuple(Hit(doc_id, self.score) for doc_id in self.answers[question][:k])
            for question in questions
        ]


def example(
    question_id: str, *gold: str, kind: str | None = None, hits: Sequence[str] | None = None
) -> GoldQuestion:
    given = None if hits is None else tuple(Hit(doc_id) for doc_id in hits)
    return GoldQuestion(
        Question(question_id, f"ask {question_id}"),
        Gold(question_id, frozenset(gold), kind=kind),
        given,
    )


VILLAGE = [
    example("ada", "byron", "tutor", kind="bridge"),
    example("mill", "river", kind="plain"),
    example("moon", kind="null"),
]
SHELF = {"ask ada": ["byron", "x", "tutor"], "ask mill": ["x", "y", "z"], "ask moon": ["cheese"]}


def test_a_run_keeps_where_the_gold_came_out():
    run = evaluate_retrieval("village", VILLAGE, {"shelf": FixedRetriever(SHELF)}, (1, 3))
    assert run.system("shelf").ranks == ((1, 3), (), ())
    assert run.gold == (2, 1, 0)
    assert score(run.rankings("shelf"), "complete@3") == 0.5
    assert score(run.rankings("shelf"), "null_rejection") == 0
    assert score(run.rankings("shelf", kind="bridge"), "recall@1") == 0.5


def test_questions_go_in_batches_and_progress_counts_them():
    examples = [example(str(at), "d") for at in range(10)]
    shelf = FixedRetriever({f"ask {at}": ["d"] for at in range(10)})
    seen: list[tuple[str, int, int]] = []
    evaluate_retrieval(
        "ten", examples, {"shelf": shelf}, (4,), batch=4, progress=lambda *step: seen.append(step)
    )
    assert shelf.searches == [(4, 4), (4, 4), (2, 4)]
    assert seen == [("shelf", 4, 10), ("shelf", 8, 10), ("shelf", 10, 10)]


def test_a_question_that_fails_is_recorded_and_the_others_of_its_batch_are_kept():
    missing = {text: ids for text, ids in SHELF.items() if text != "ask mill"}
    run = evaluate_retrieval("village", VILLAGE, {"shelf": FixedRetriever(missing)}, (3,))
    system = run.system("shelf")
    assert system.errors == {"mill": "KeyError: 'ask mill'"}
    assert system.ranks == ((1, 3), (), ())
    assert per_question(run.rankings("shelf"), "recall@3")[:2].tolist() == [1, 0]
    assert system.top_scores == (1.0, None, 1.0)


def test_a_retriever_that_answers_the_wrong_number_of_questions_fails_on_each_of_them():
    class Lazy:
        def search(self, questions, *, k, filters=None):
            return []

    run = evaluate_retrieval("village", VILLAGE, {"lazy": Lazy()}, (3,))
    assert set(run.system("lazy").errors) == {"ada", "mill", "moon"}


def test_an_interrupt_is_not_swallowed():
    class Interrupted:
        def search(self, questions, *, k, filters=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_retrieval("village", VILLAGE, {"one": Interrupted()}, (3,))


def test_chunks_fold_into_their_parent_at_the_place_of_the_first_and_the_search_goes_deeper():
    chunks = [*(f"byron#{at}" for at in range(12)), "x#0", "tutor#1", "tutor#0"]
    parents = {chunk: chunk.split("#")[0] for chunk in chunks}
    for known in (parents, lambda doc_id: doc_id.split("#")[0]):
        shelf = FixedRetriever({"ask ada": chunks})
        run = evaluate_retrieval("village", VILLAGE[:1], {"shelf": shelf}, (3,), parents=known)
        assert run.system("shelf").ranks == ((1, 3),)
        assert shelf.searches == [(1, 12), (1, 24)]


def test_folding_stops_when_the_retriever_has_no_more_and_when_it_is_only_one_document():
    endless = FixedRetriever({"ask ada": [f"byron#{at}" for at in range(1000)]})
    run = evaluate_retrieval(
        "village", VILLAGE[:1], {"e": endless}, (3,), parents=lambda doc_id: doc_id.split("#")[0]
    )
    assert endless.searches[-1][1] == 48
    assert run.system("e").ranks == ((1,),)


def test_hits_that_came_with_the_examples_are_judged_as_given():
    examples = [
        example("ada", "byron", "tutor", hits=["x", "byron"]),
        example("mill", "river", hits=[]),
    ]
    run = evaluate_retrieval("village", examples, {}, (2,))
    assert run.names == ("given",)
    assert run.system("given").ranks == ((2,), ())
    assert run.system("given").top_scores == (None, -math.inf)


def test_the_same_seed_gives_the_same_document_but_for_timings(tmp_path: Path):
    runs = [
        evaluate_retrieval("village", VILLAGE, {"shelf": FixedRetriever(SHELF)}, (1, 3), seed=7)
        for _ in range(2)
    ]
    assert runs[0].to_json(timings=False) == runs[1].to_json(timings=False)
    assert set(runs[0].timings) == {"shelf"}
    one, other = (
        RetrievalRun.load(run.save(tmp_path / f"{at}.json")) for at, run in enumerate(runs)
    )
    assert one.to_json(timings=False) == other.to_json(timings=False)


def test_a_run_says_on_what_it_was_made(tmp_path: Path):
    run = evaluate_retrieval(
        "village",
        VILLAGE,
        {"shelf": FixedRetriever(SHELF)},
        (3, 1, 3),
        settings={"k1": 1.2},
        data={"village.jsonl": "ff"},
        commit="abc",
    )
    document = json.loads(run.save(tmp_path / "deep" / "run.json").read_text(encoding="utf-8"))
    assert document["version"] == 1
    assert document["ks"] == [1, 3]
    assert document["settings"]["k1"] == 1.2
    assert (document["data"], document["commit"]) == ({"village.jsonl": "ff"}, "abc")
    assert "numpy" in document["packages"]


def test_scores_that_are_no_numbers_are_unknown_and_the_document_stays_json(tmp_path: Path):
    run = evaluate_retrieval(
        "village", VILLAGE, {"odd": FixedRetriever(SHELF, score=math.nan)}, (3,)
    )
    assert run.system("odd").top_scores == (None, None, None)
    assert RetrievalRun.load(run.save(tmp_path / "run.json")) == run
    assert score(run.rankings("odd"), "null_rejection") is None


@pytest.mark.parametrize(
    ("examples", "ks", "options"),
    [
        ([], (2,), {}),
        ([VILLAGE[0], VILLAGE[0]], (2,), {}),
        (VILLAGE, (), {}),
        (VILLAGE, (0,), {}),
        (VILLAGE, (2.5,), {}),
        (VILLAGE, (True,), {}),
        (VILLAGE, (2,), {"batch": 0}),
    ],
)
def test_what_cannot_be_evaluated_is_an_input_error(examples, ks, options):
    with pytest.raises(InputError):
        evaluate_retrieval("village", examples, {"shelf": FixedRetriever(SHELF)}, ks, **options)


def test_no_retriever_and_no_hits_is_an_input_error():
    with pytest.raises(InputError, match="nothing to evaluate"):
        evaluate_retrieval("village", VILLAGE, {}, (2,))
    with pytest.raises(InputError, match="taken"):
        evaluate_retrieval(
            "village", [example("ada", "b", hits=["b"])], {"given": FixedRetriever(SHELF)}, (2,)
        )


def test_an_unknown_system_or_kind_names_the_nearest():
    run = evaluate_retrieval("village", VILLAGE, {"shelf": FixedRetriever(SHELF)}, (3,))
    with pytest.raises(InputError) as caught:
        run.rankings("shelv")
    assert "shelf" in caught.value.hint
    with pytest.raises(InputError) as caught:
        run.rankings("shelf", kind="brige")
    assert "bridge" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", InputError),
        ("{", InputError),
        ("[]", InputError),
        ('{"kind": "gate"}', InputError),
        ('{"kind": "run", "version": 99}', NotReadyError),
        ('{"kind": "run", "version": 1}', DataError),
    ],
)
def test_a_file_that_is_no_run_is_a_clear_error(tmp_path: Path, content, error):
    path = tmp_path / "run.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(error):
        RetrievalRun.load(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda document: document["questions"]["gold"].pop(),
        lambda document: document["systems"][0]["ranks"].__setitem__(0, [99]),
        lambda document: document["systems"][0].__setitem__("ranks", "none"),
        lambda document: document.__setitem__("ks", [0]),
        lambda document: document.pop("seed"),
    ],
)
def test_a_damaged_run_is_told_apart(tmp_path: Path, damage):
    path = evaluate_retrieval("village", VILLAGE, {"shelf": FixedRetriever(SHELF)}, (3,)).save(
        tmp_path / "run.json"
    )
    document = json.loads(path.read_text(encoding="utf-8"))
    damage(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError, match="damaged"):
        RetrievalRun.load(path)


def test_the_commit_is_read_from_the_checkout_and_is_missing_outside_of_one(tmp_path: Path):
    package = tmp_path / "src" / "pkg" / "module.py"
    package.parent.mkdir(parents=True)
    assert source_commit(package) is None
    (tmp_path / "pyproject.toml").touch()
    assert source_commit(package) is None
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (git / "packed-refs").write_text("# packed\n1234 refs/heads/main\n", encoding="utf-8")
    assert source_commit(package) == "1234"
    (git / "refs" / "heads" / "main").write_text("abcd\n", encoding="utf-8")
    assert source_commit(package) == "abcd"
    (git / "HEAD").write_text("beef\n", encoding="utf-8")
    assert source_commit(package) == "beef"
