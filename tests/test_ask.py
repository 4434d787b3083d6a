"""`ask`: an answer or an abstention within the budget, and traces that replay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.small_world import BRIDGE, COMPARISON, FILMS, Says, TinyLibrary, Wants, clock_of

from suffice.answering.ask import AskPolicy, ask
from suffice.answering.budget import Budget, MeteredModel, Prices
from suffice.answering.traces import (
    format_trace,
    read_traces,
    replay,
    save_traces,
    trace_from_json,
    trace_to_json,
)
from suffice.errors import DataError, InputError, ModelError, NotReadyError
from suffice.protocols import LanguageModel
from suffice.types import Action, Cost, Document, Support, Trace

CONTENT = Wants("lothair", "ermengarde")


def model(died: str = "20 March 851") -> Says:
    """Plans, reads and judges as a good model would."""
    return Says(
        {
            "Split the question": {
                "steps": ["Who was the mother of Lothair II?", "When did #1 die?"]
            },
            "Question: Who was the mother of Lothair II?\nAnswer:\n": {
                "answer": "Ermengarde of Tours",
                "sentences": [1, 2],
            },
            "Question: When did Ermengarde of Tours die?\nAnswer:\n": {
                "answer": died,
                "sentences": [1],
            },
            "Judge an answer": {"accuracy": 0.9, "support": "attributable"},
        }
    )


# --- answering


def test_a_bridge_question_is_answered_without_a_model() -> None:
    trace = ask(BRIDGE, TinyLibrary(), CONTENT)
    assert (trace.action, trace.answer) == (Action.ANSWER, "20 March 851")
    assert [(one.doc_id, one.sentence) for one in trace.citations] == [
        ("lothair", 1),
        ("ermengarde", 0),
    ]
    assert [step.number for step in trace.steps] == [1, 2, 0, 0]  # the whole question, the gate
    assert trace.cost.calls == 0


def test_a_comparison_is_answered_without_a_model() -> None:
    trace = ask(COMPARISON, TinyLibrary(), Wants("dog", "storm", "paradise", "aki"))
    assert trace.answer == "Dog Law"
    assert [step.by for step in trace.steps if step.number] == ["reader"] * 4 + ["joined"]


def test_a_model_plans_reads_and_reviews() -> None:
    trace = ask(BRIDGE, TinyLibrary(), CONTENT, model(died="March 851"))
    assert trace.answer == "March 851"
    assert [call.purpose for call in trace.calls] == [
        "plan",
        "read",
        "review",
        "read",
        "review",
    ]
    assert trace.settings["planned_by"] == "model"
    assert trace.cost.tokens == sum(call.tokens_in + call.tokens_out for call in trace.calls) > 0
    assert [step.by for step in trace.steps if step.number] == ["model", "model"]


class EstimatesHops(Wants):
    def hops(self, questions: Sequence[str]) -> list[float]:
        return [3.0 for _ in questions]


def test_the_hops_the_gate_estimates_weigh_the_review_and_choose_exemplars() -> None:
    by_plan, foreseen = (
        ask(BRIDGE, TinyLibrary(), gate, model(died="March 851"))
        for gate in (CONTENT, EstimatesHops("lothair", "ermengarde"))
    )
    assert (by_plan.settings["hops"], foreseen.settings["hops"]) == (2, 3.0)
    reviews = [trace.steps[1].review for trace in (by_plan, foreseen)]
    assert all(one is not None and one.accuracy == 0.9 for one in reviews)
    assert [round(one.confidence, 3) for one in reviews if one] == [
        0.938,
        0.962,
    ]  # what is cited counts more for three hops
    assert by_plan.calls[0].key != foreseen.calls[0].key  # another prompt: plans of three hops


def test_the_callback_receives_every_step_and_the_end() -> None:
    seen: list[Trace] = []
    trace = ask(BRIDGE, TinyLibrary(), CONTENT, on_update=seen.append)
    assert [len(one.steps) for one in seen] == [0, 1, 2, 3, 4, 4]
    assert seen[0].plan == trace.plan
    assert seen[-1] == trace


@pytest.mark.parametrize("question", ["", "  ", None, 7])
def test_a_blank_question_is_an_error(question: Any) -> None:
    with pytest.raises(InputError, match="expected a text"):
        ask(question, TinyLibrary(), CONTENT)


# --- the gate


@pytest.mark.parametrize(
    ("library", "gate", "says", "hint"),
    [
        ("library", CONTENT, "the library is of type str", "Library.open('library')"),
        (Path("library"), CONTENT, "the library is of type PosixPath", "Library.open('library')"),
        (FILMS, CONTENT, "the library is of type", "Library.build(PATH, documents)"),
        (TinyLibrary(), "default", "the gate is of type str", "Gate.load()"),
    ],
)
def test_a_path_in_place_of_a_library_or_a_gate_is_said(
    library: Any, gate: Any, says: str, hint: str
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        ask(BRIDGE, library, gate)
    assert hint in caught.value.hint


def test_if_the_gate_disagrees_ask_abstains_and_names_what_is_missing() -> None:
    trace = ask(BRIDGE, TinyLibrary(), Wants("lothair", "a charter"), budget=Budget(rounds=2))
    assert (trace.action, trace.answer) == (Action.ABSTAIN, None)
    assert "a charter" in trace.missing
    assert trace.cost.rounds <= 2
    assert any("the gate says that the evidence is incomplete" in note for note in trace.notes)


def test_the_gate_can_be_switched_off() -> None:
    trace = ask(
        BRIDGE, TinyLibrary(), Wants("nothing that exists"), policy=AskPolicy(use_gate=False)
    )
    assert trace.answer == "20 March 851"


def test_expanded_evidence_is_read() -> None:
    # No look of the plan's leads to the bakery; only the gate's next query, which is its name,
    # does.
    bakery = replace(
        FILMS[-1],
        doc_id="bakery of the village",
        text="It opens at six and sells bread until noon.",
        title="Bread",
    )
    bakery = replace(bakery, text=f"The bakery of the village: {bakery.text}")
    trace = ask(
        BRIDGE,
        TinyLibrary((*FILMS[:-1], bakery)),
        Wants("lothair", "ermengarde", "bakery of the village"),
    )
    assert (trace.action, trace.answer) == (Action.ANSWER, "20 March 851")
    assert [step.number for step in trace.steps].count(1) == 2  # read once more with what was found
    assert "expansion ended: the gate says answer" in trace.notes
    assert 0 < trace.cost.rounds <= 12


def test_without_an_answer_ask_abstains_and_names_the_open_question() -> None:
    trace = ask("Who is the mother of Maclean Rogers?", TinyLibrary(), Wants())
    assert trace.action is Action.ABSTAIN
    assert trace.missing == ("Who is the mother of Maclean Rogers?",)


def test_a_plan_without_an_answer_falls_back_to_the_question() -> None:
    trace = ask("When did Maclean Rogers's mother die?", TinyLibrary(), Wants())
    notes = [step.note for step in trace.steps]
    assert "not asked: it needs the answer to step 1" in notes
    assert "the plan gave no answer: the question is read as a whole" in notes


def test_an_empty_library_abstains() -> None:
    trace = ask(BRIDGE, TinyLibrary(()), Wants("lothair"), model())
    assert trace.action is Action.ABSTAIN
    assert trace.citations == ()


# --- looking


class Names(TinyLibrary):
    """A shelf that remembers by whom it was searched, and that may lack vectors."""

    def __init__(self, *, vectors: bool = True) -> None:
        super().__init__()
        self.vectors, self.by = vectors, list[str | None]()

    def retriever(self, name: str | None = None) -> TinyLibrary:
        if name in ("bridge", "dense") and not self.vectors:
            raise NotReadyError(f"{name} needs vectors")
        self.by.append(name)
        return self


def test_the_question_is_searched_along_links_and_steps_by_the_default_retriever() -> None:
    shelf = Names()
    ask(BRIDGE, shelf, CONTENT)
    assert shelf.by == [
        "bridge",
        "bridge",
        None,
        None,
        "bm25",
    ]  # asked whether it can, then the whole, the two steps, and the whole once more by words


def test_a_library_without_vectors_is_searched_as_usual() -> None:
    shelf = Names(vectors=False)
    assert ask(BRIDGE, shelf, CONTENT).answer == "20 March 851"
    assert shelf.by == [None, None, None, "bm25"]


def test_the_policy_can_search_dense_first_and_repair_by_words() -> None:
    shelf = Names()
    policy = AskPolicy(retriever="dense", survey_retriever=None)
    ask("When did Maclean Rogers die?", shelf, Wants(), policy=policy)
    assert shelf.by == ["dense", "dense", "bm25"]


# --- repair


def test_a_weak_step_is_repaired_and_the_next_question_refined() -> None:
    readings = iter(
        [
            {"answer": "Teutberga", "sentences": []},
            {"answer": "Ermengarde of Tours", "sentences": [1, 2]},
        ]
    )

    def answer(prompt: str) -> str:
        if "Split the question" in prompt:
            return json.dumps(
                {"steps": ["Who brought up Lothair II?", "When did #1 die?"]}
            )  # no rule knows "brought up"
        if "Rewrite the next question" in prompt:
            return json.dumps({"question": "On what day did Ermengarde of Tours die?"})
        if "Judge an answer" in prompt:
            return json.dumps(
                {
                    "accuracy": 0.2 if "Answer: Teutberga" in prompt else 0.9,
                    "support": "attributable",
                }
            )
        if "Question: Who brought up" in prompt:
            return json.dumps(next(readings))
        return json.dumps({"answer": "20 March 851", "sentences": [1]})

    trace = ask(BRIDGE, TinyLibrary(), Wants("lothair"), Says(answer))
    first, second = trace.steps[:2]
    assert (first.answer, first.revision, first.cost.rounds) == ("Ermengarde of Tours", 1, 1)
    assert second.question == "On what day did Ermengarde of Tours die?"
    assert trace.answer == "20 March 851"


def test_repairs_can_be_switched_off() -> None:
    trace = ask(BRIDGE, TinyLibrary(), CONTENT, model(), policy=AskPolicy(repair_steps=False))
    assert {call.purpose for call in trace.calls} == {"plan", "read"}
    assert trace.cost.rounds == 0


def test_a_contradiction_is_not_answered() -> None:
    twin = Document(
        "twin",
        "Dog Law is a 1930 American silent western film directed by Jerome Storm.",
        "Dog Law",
    )
    trace = ask("When was Dog Law released?", TinyLibrary((FILMS[0], twin)), Wants())
    assert trace.steps[0].review is not None
    assert trace.steps[0].review.support is Support.CONTRADICTORY
    assert (trace.action, trace.answer) == (Action.ABSTAIN, None)
    assert trace.missing == ("which document is right: one says 1928, another 1930",)


# --- budgets


def test_calls_are_counted_and_stop_at_the_budget() -> None:
    trace = ask(BRIDGE, TinyLibrary(), CONTENT, model(), budget=Budget(calls=2))
    assert trace.cost.calls == 2
    assert "the budget of calls is spent: the model was not asked again" in trace.notes
    assert trace.answer == "20 March 851"  # the reader reads on


def test_tokens_and_money_stop_the_model() -> None:
    few = ask(BRIDGE, TinyLibrary(), CONTENT, model(), budget=Budget(tokens=10))
    assert few.cost.calls == 0
    poor = ask(
        BRIDGE,
        TinyLibrary(),
        CONTENT,
        model(),
        budget=Budget(money=0.005, prices=Prices(10.0, 10.0)),
    )
    assert 0 < poor.cost.money <= 0.006  # the last answer counts, too
    assert "the budget of money is spent: the model was not asked again" in poor.notes


@pytest.mark.parametrize("counts", [(-1000, -1000), (float("nan"), 3), (7,), "many"])
def test_token_counts_that_make_no_sense_do_not_switch_the_budget_off(counts: Any) -> None:
    """They are estimated, as if the server had not reported them."""
    odd: Any = model()
    odd.last_tokens = counts
    limits = Budget(tokens=600, money=0.005, prices=Prices(10.0, 10.0))
    expected = ask(BRIDGE, TinyLibrary(), CONTENT, model(), budget=limits)
    found = ask(BRIDGE, TinyLibrary(), CONTENT, odd, budget=limits)
    assert expected.cost.tokens > 0
    assert found.cost == expected.cost


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0, "1"])
def test_a_price_is_a_finite_number(wrong: Any) -> None:
    with pytest.raises(InputError, match="price"):
        Prices(0.15, wrong)


def test_a_budget_of_seconds_stops_the_run() -> None:
    trace = ask(
        BRIDGE,
        TinyLibrary(),
        CONTENT,
        model(),
        budget=Budget(seconds=5),
        clock=clock_of(0, 1, 2, 9),
    )
    assert trace.action is Action.ABSTAIN
    assert trace.cost.seconds == 9
    assert any("seconds" in note for note in trace.notes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": -1},
        {"calls": 1.5},
        {"tokens": True},
        {"seconds": float("nan")},
        {"money": 1.0},
        {"documents": 0},
    ],
)
def test_an_invalid_budget_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="budget"):
        Budget(**wrong)


def test_seconds_need_a_clock() -> None:
    with pytest.raises(InputError, match="needs a clock"):
        ask(BRIDGE, TinyLibrary(), CONTENT, budget=Budget(seconds=1))


class Fails:
    name = "fails"

    def complete(self, prompts: Sequence[str], *, schema: Any = None) -> list[str]:
        raise ModelError("the server is gone", retryable=True)


class Babbles:
    name = "babbles"

    def complete(self, prompts: Sequence[str], *, schema: Any = None) -> list[str]:
        return ["x" * 10_000_000]


class Empty:
    name = "empty"

    def complete(self, prompts: Sequence[str], *, schema: Any = None) -> list[str]:
        return []


@pytest.mark.parametrize(
    "bad",
    [Fails(), Babbles(), Empty(), Says({"": {"steps": ["Who wed #1?"]}}), Says({"": "{" * 5000})],
)
def test_with_a_bad_model_the_reader_answers_and_the_trace_says_so(bad: LanguageModel) -> None:
    trace = ask(BRIDGE, TinyLibrary(), CONTENT, bad, budget=Budget(calls=12))
    assert trace.answer == "20 March 851"
    assert trace.notes
    assert trace.cost.calls <= 12
    assert {step.by for step in trace.steps if step.number} == {"reader"}


def test_a_model_that_fails_twice_is_not_asked_again() -> None:
    trace = ask(BRIDGE, TinyLibrary(), CONTENT, Fails())
    assert trace.cost.calls == 2
    assert "the model failed twice in a row: the rest was done without it" in trace.notes


def test_a_huge_answer_is_cut_but_counted() -> None:
    meter = MeteredModel(Babbles(), Budget(tokens=5_000_000))
    assert len(meter.complete("say", purpose="test", schema={}) or "") == 20_000
    assert meter.cost.tokens > 2_000_000
    assert len(meter.calls[0].answer or "") == 20_000


# --- traces


CHARTER = Wants("lothair", "a charter")
FILMS_GATE = Wants("dog", "storm", "paradise", "aki")
RECORDED: list[tuple[str, Wants, dict[str, Any]]] = [
    (BRIDGE, CONTENT, {}),
    (BRIDGE, CONTENT, {"model": model(), "clock": clock_of(3, 4), "budget": Budget(seconds=60)}),
    (BRIDGE, CONTENT, {"model": Fails()}),
    (BRIDGE, CONTENT, {"model": Babbles()}),
    (BRIDGE, CHARTER, {"model": model(), "budget": Budget(rounds=3, prices=Prices(1, 2))}),
    (COMPARISON, FILMS_GATE, {"policy": AskPolicy(accuracy_weight=0.5, k=3)}),
]


@pytest.mark.parametrize(("question", "gate", "options"), RECORDED)
def test_a_stored_trace_replays_to_the_same_bytes(
    question: str, gate: Wants, options: dict[str, Any], tmp_path: Path
) -> None:
    trace = ask(question, TinyLibrary(), gate, **options)
    file = save_traces(tmp_path / "trace.jsonl", [trace])
    (kept,) = read_traces(file)
    assert kept == trace
    again = trace_to_json(replay(kept, TinyLibrary(), gate))
    assert again + "\n" == file.read_text(encoding="utf-8")


def test_a_replay_in_another_library_names_the_first_difference() -> None:
    trace = ask(BRIDGE, TinyLibrary(), CONTENT, model())
    changed = TinyLibrary([replace(one, text=one.text.replace("851", "852")) for one in FILMS])
    with pytest.raises(DataError, match="does not replay"):
        replay(trace, changed, CONTENT)
    by_rules = ask(BRIDGE, TinyLibrary(), CONTENT)
    with pytest.raises(DataError) as caught:
        replay(by_rules, changed, CONTENT)
    assert "step 2" in caught.value.hint


def test_the_tree_of_an_abstention_names_what_is_missing_without_control_characters() -> None:
    odd = [replace(one, text=one.text.replace("empress", "emp\x1b[31mress\u202e")) for one in FILMS]
    printed = format_trace(
        ask(BRIDGE, TinyLibrary(odd), Wants("lothair", "a charter"), budget=Budget(rounds=1))
    )
    assert "missing: a charter" in printed
    assert "\x1b" not in printed
    assert "\u202e" not in printed


def test_the_tree_cuts_a_question_that_no_screen_shows() -> None:
    printed = format_trace(ask("Who was she? " * 8000, TinyLibrary(), CONTENT))
    assert printed.splitlines()[0].endswith("... (104,000 characters)")
    assert max(map(len, printed.splitlines())) < 600


def test_a_trace_with_the_required_fields_only_is_a_trace() -> None:
    trace = ask(BRIDGE, TinyLibrary(), CONTENT)
    plain = Trace(trace.question, trace.steps, trace.answer)
    assert trace_from_json(json.loads(trace_to_json(plain))) == plain
    assert plain.cost == Cost()
    with pytest.raises(InputError, match="how it was made"):
        replay(plain, TinyLibrary(), CONTENT)


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"model": 3}, "language model"), ({"policy": "x"}, "AskPolicy"), ({"budget": 3}, "Budget")],
)
def test_what_is_no_model_policy_or_budget_is_refused(options: Any, expected: str) -> None:
    with pytest.raises(InputError, match=expected) as caught:
        ask(BRIDGE, TinyLibrary(), Wants("lothair"), **options)
    assert caught.value.hint
