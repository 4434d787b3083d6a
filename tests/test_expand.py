"""Expanding in a small village, with a judge that counts: what is looked for, what is held, what
goes, and when it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from tests.corpora import documents

from suffice.answering.expand import (
    MAX_LINKS,
    PATIENCE,
    Completion,
    ExpansionBudget,
    StopReason,
    expand,
)
from suffice.errors import InputError
from suffice.types import Action, DocId, Document, Estimate, Filter, Hit, Verdict

QUESTION = "Where was the teacher of Ada's tutor born?"
DOCUMENTS = {one.doc_id: one for one in documents("expand")}
LINKS: dict[DocId, tuple[DocId, ...]] = {
    "ada": ("mary",),
    "mary": ("ada", "william"),
    "william": ("mary",),
}


class Lists:
    """A retriever that finds what it was told to find, and remembers what it was asked."""

    def __init__(self, found: Mapping[str, Sequence[DocId]]) -> None:
        self.found, self.searches = found, []  # type: ignore[var-annotated]

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        self.searches.append(list(questions))
        return [
            tuple(Hit(one, 1 / at) for at, one in enumerate(self.found.get(q, ())[:k], start=1))
            for q in questions
        ]


class Counts:
    """A judge to whom a set is as complete as the share of the needed documents that it holds; each
    other costs a little.
    """

    def __init__(self, *needed: DocId, queries: Sequence[str] = (), noise: float = 0.01) -> None:
        self.needed, self.queries, self.noise = set(needed), tuple(queries), noise
        self.batches: list[int] = []

    def check_batch(
        self,
        pairs: Iterable[Any],
        *,
        documents: Mapping[DocId, Document] | None = None,
        explain: bool = True,
        rounds_left: int = 1,
    ) -> list[Verdict]:
        verdicts = []
        for _, hits in pairs:
            hit_ids = {hit.doc_id for hit in hits}
            p = max(
                0.0,
                len(hit_ids & self.needed) / max(len(self.needed), 1)
                - self.noise * len(hit_ids - self.needed),
            )
            action = (
                Action.ANSWER
                if hit_ids >= self.needed
                else Action.EXPAND
                if rounds_left
                else Action.ABSTAIN
            )
            verdicts.append(
                Verdict(Estimate(p, p, p), action, next_queries=self.queries if explain else ())
            )
        self.batches.append(len(verdicts))
        return verdicts


def lookup(doc_ids: Sequence[DocId]) -> list[Document | None]:
    return [DOCUMENTS.get(one) for one in doc_ids]


def follow(doc_ids: Sequence[DocId]) -> list[tuple[DocId, ...]]:
    return [LINKS.get(one, ()) for one in doc_ids]


def completed(found: Sequence[DocId], judge: Counts, **options: Any) -> Completion:
    options.setdefault("follow", follow)
    return expand([QUESTION], Lists({QUESTION: found}), judge, lookup, **options)[0]


def ids(one: Completion) -> list[DocId]:
    return [hit.doc_id for hit in one.hits]


# --- what is found and held


def test_links_lead_to_what_the_search_did_not_find() -> None:
    found = completed(["ada"], Counts("ada", "mary", "william"))
    assert ids(found) == ["ada", "mary", "william"]
    assert found.stopped is StopReason.ANSWER
    assert found.complete
    assert [step.verdict.p_complete for step in found.trace.steps if step.verdict] == pytest.approx(
        [1 / 3, 2 / 3, 1]
    )
    assert found.trace.steps[1].note == "holds mary, which ada names"


def test_each_next_query_is_searched_once() -> None:
    lists = Lists({QUESTION: ["ada"], "William born": ["william"]})
    judge = Counts("ada", "william", "nobody", queries=["William born"])
    (found,) = expand([QUESTION], lists, judge, lookup, budget=ExpansionBudget(rounds=4))
    assert ids(found) == ["ada", "william"]
    assert lists.searches == [[QUESTION], ["William born"]]
    assert found.trace.steps[1].question == "William born"


def test_superfluous_documents_are_dropped() -> None:
    found = completed(["soup", "ada", "mary"], Counts("ada", "mary"), follow=None)
    assert ids(found) == ["ada", "mary"]
    assert [step.note for step in found.trace.steps][-1] == "drops soup, which adds nothing"
    assert found.stopped is StopReason.ANSWER
    # The judge says 1 of both alone, but they are no more complete than they were with the soup.
    assert [step.verdict.p_complete for step in found.trace.steps if step.verdict][-2:] == [
        0.99
    ] * 2


def test_incomplete_evidence_stays_whole() -> None:
    found = completed(
        ["soup", "ada"], Counts("ada", "nobody"), budget=ExpansionBudget(documents=2), follow=None
    )
    assert ids(found) == ["soup", "ada"]
    assert found.verdict.action is Action.ABSTAIN


def test_if_nothing_helps_it_returns_to_the_best_evidence_and_abstains() -> None:
    found = completed(
        ["ada", "soup", "fair", "soup-again", "mary"], Counts("ada", "x", "y"), follow=None
    )
    assert found.stopped is StopReason.NOTHING
    assert ids(found) == ["ada"]
    assert found.verdict.action is Action.ABSTAIN
    assert len(found.trace.steps) <= PATIENCE + 2


def test_two_missing_documents_are_found() -> None:
    """The first of two missing documents does not show in the probability; the second does."""

    class Both(Counts):
        def check_batch(self, pairs: Iterable[Any], **options: Any) -> list[Verdict]:
            low = Estimate(0.1, 0.1, 0.1)
            every = super().check_batch(pairs, **options)
            return [
                one if one.action is Action.ANSWER else Verdict(low, one.action) for one in every
            ]

    found = completed(["soup", "ada", "mary"], Both("ada", "mary"), follow=None)
    assert set(ids(found)) == {"ada", "mary"}


def test_the_ranking_decides_if_the_gate_cannot_tell() -> None:
    found = completed(
        ["ada", "soup", "fair"],
        Counts("ada", "nobody", noise=0.0),
        budget=ExpansionBudget(documents=2),
        follow=None,
    )
    assert ids(found) == ["ada", "soup"]


def test_without_a_choice_the_ranking_is_held_until_the_gate_is_satisfied() -> None:
    judge = Counts("ada", "mary", queries=["William born"])
    found = completed(["ada", "soup", "mary", "fair"], judge, choose=False)
    assert [step.note for step in found.trace.steps] == [
        "the first hit",
        "holds soup, next in the list",
        "holds mary, next in the list",
        "drops soup, which adds nothing",
    ]
    assert judge.batches[:3] == [1, 1, 1]  # a check a round, then those that drop
    short = completed(["ada"], Counts("ada", "mary"), choose=False)
    assert (ids(short), short.stopped) == (["ada"], StopReason.NOTHING)


def test_a_gate_says_how_it_judges_what_a_search_stops_at() -> None:
    class Wary(Counts):
        def for_expansion(self) -> Counts:
            return Counts("ada", "mary", "william")

    found = completed(["ada", "mary", "william"], Wary("ada"), choose=False)
    assert ids(found) == ["ada", "mary", "william"]


def test_a_search_that_ends_without_an_answer_has_the_gates_own_verdict() -> None:
    """Only a set that was stopped at was selected for looking complete."""

    class Wary(Counts):
        def for_expansion(self) -> Counts:
            return Counts("ada", "mary", "william", "nobody")

    gate = Wary("ada", "mary")
    found = completed(["ada", "mary", "william"], gate, choose=False)
    assert (ids(found), found.stopped) == (["ada", "mary", "william"], StopReason.NOTHING)
    assert (found.verdict.p_complete, found.verdict.action) == (0.99, Action.ANSWER)
    assert found.trace.steps[-1].verdict == found.verdict
    assert len(found.trace.steps) == 3
    cautious = [step.note.endswith("without the caution of a search") for step in found.trace.steps]
    assert cautious == [False, False, True]
    back = completed(["ada", *["fair", "soup"] * 4], gate, choose=False)
    assert (ids(back), back.verdict.p_complete) == (["ada"], 0.5)
    chosen = completed(["ada", "mary", "william"], gate, follow=None)  # by the gate, so selected
    assert (chosen.verdict.p_complete, chosen.verdict.action) == (0.75, Action.ABSTAIN)
    assert "caution" not in chosen.trace.steps[-1].note


# --- nothing endless


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        (ExpansionBudget(rounds=0), StopReason.ROUNDS),
        (ExpansionBudget(rounds=1), StopReason.ROUNDS),
        (ExpansionBudget(documents=1), StopReason.DOCUMENTS),
        (ExpansionBudget(checks=0), StopReason.CHECKS),
        (ExpansionBudget(seconds=0), StopReason.SECONDS),
    ],
)
def test_each_limit_ends_the_expansion_without_an_error(
    budget: ExpansionBudget, why: StopReason
) -> None:
    found = completed(
        ["ada", "mary"], Counts("ada", "mary", "william"), budget=budget, clock=lambda: 7.0
    )
    assert found.stopped is why
    assert ids(found) == (["ada", "mary"] if budget.rounds == 1 else ["ada"])
    assert found.verdict.action is Action.ABSTAIN


def test_the_given_clock_counts() -> None:
    times = iter([0.0, 1.0, 2.0, 9.0])
    found = completed(
        ["ada"],
        Counts("ada", "mary", "x"),
        budget=ExpansionBudget(seconds=5),
        clock=lambda: next(times),
    )
    assert found.stopped is StopReason.SECONDS
    assert ids(found)[:2] == ["ada", "mary"]


def test_checks_stay_within_the_budget_except_the_last() -> None:
    found = completed(
        ["ada", "soup", "fair", "mary"],
        Counts("ada", "mary", "x"),
        budget=ExpansionBudget(checks=6),
    )
    assert found.checks <= 6 + 2


def test_all_candidates_are_checked_in_one_batch_per_round() -> None:
    judge = Counts("ada", "mary", "william")
    lists = Lists({QUESTION: ["ada", "soup"], "other": ["mary", "fair"]})
    done = expand([QUESTION, "other"], lists, judge, lookup, follow=follow)
    assert [one.stopped for one in done] == [StopReason.ANSWER, StopReason.ANSWER]
    assert judge.batches[:2] == [
        2,
        5,
    ]  # the first hits; then soup and mary beside ada; fair, ada and william beside mary


def test_a_question_in_a_batch_ends_as_it_does_alone() -> None:
    lists = Lists({QUESTION: ["ada", "soup"], "other": ["soup", "fair"]})
    judge = Counts("ada", "mary", "william")
    both = expand([QUESTION, "other"], lists, judge, lookup, follow=follow)
    assert both == [
        expand([one], lists, judge, lookup, follow=follow)[0] for one in (QUESTION, "other")
    ]


def test_a_page_with_a_hundred_thousand_links_costs_a_few_checks() -> None:
    read = []

    def hub(doc_ids: Sequence[DocId]) -> list[Iterable[DocId]]:
        def out() -> Iterable[DocId]:
            for at in range(100_000):
                read.append(at)
                yield f"page {at}"

        return [out() if one == "ada" else () for one in doc_ids]

    found = completed(["ada", "mary"], Counts("ada", "mary"), follow=hub)
    assert ids(found) == ["ada", "mary"]
    assert len(read) <= 2 * MAX_LINKS
    assert found.checks < 20


def test_no_hits_give_a_completion() -> None:
    found = completed([], Counts("ada"))
    assert (found.hits, found.stopped, found.verdict.action) == (
        (),
        StopReason.NOTHING,
        Action.ABSTAIN,
    )
    assert found.trace.steps[0].note == "no document matches"
    assert expand([], Lists({}), Counts("ada"), lookup) == []


def test_a_link_must_gain_more_than_the_next_of_the_ranking() -> None:
    found = completed(["ada", "soup"], Counts("ada", "mary", "william"))
    assert [step.note for step in found.trace.steps][1:] == [
        "holds soup, next in the list",
        "holds mary, which ada names",
        "holds william, which mary names",
        "drops soup, which adds nothing",
    ]


def test_texts_reach_the_search_only_through_the_gate() -> None:
    lists = Lists({QUESTION: ["ada", "mary"]})
    expand([QUESTION], lists, Counts("ada", "mary", "william"), lookup, follow=follow)
    assert lists.searches == [[QUESTION]]


@pytest.mark.parametrize(
    "wrong", [{"rounds": -1}, {"rounds": 1.5}, {"documents": 0}, {"checks": True}, {"seconds": -1}]
)
def test_an_invalid_budget_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"budget: {next(iter(wrong))}"):
        ExpansionBudget(**wrong)
