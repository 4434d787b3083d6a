"""Expand: look for what is missing, hold what raises the gate's probability, drop what only repeats, and know when to stop.

    (found,) = expand(["Who taught the teacher of Ada?"], retriever, gate, library.get, follow=links.out)
    found.hits, found.verdict, found.stopped, found.trace

It starts with the first hit and goes in rounds, all questions at once:

    look    the next places of the retriever's list, what the verdict's next queries find, what held documents name
    judge   every candidate beside what is held, all of them in one `check_batch`
    hold    the candidate beside which the set looks most complete
    stop    when the gate says ANSWER, when nothing has raised the probability for some rounds, or when a limit is reached

Where the gate says ANSWER, what can go without lowering the probability is dropped; where nothing helped, what was tried last.
Texts are strangers' and get to two things only: the gate's features, and the search box through its next queries. The budget
bounds every round, so that circles of links, a page that names everything and a corpus of doubles end like everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import Any

from suffice.errors import InputError
from suffice.protocols import GateLike, Retriever, documents_by_id
from suffice.types import Action, DocId, Document, Hit, Question, Step, Trace, Verdict

__all__ = ["Completion", "ExpansionBudget", "StopReason", "expand", "strip_scores"]

NEXT_RANKED, PER_QUERY, PER_ROUND_LINKS = (
    6,
    2,
    4,
)  # candidates of a round: of the list, of each query, and of links
MAX_LINKS = 32  # links of one held document that are looked at: a page may name a hundred thousand
RANK_PENALTY = 1.0  # log-odds by which the gate must prefer a candidate to the one a place before it in the same list
OFF_LIST_PENALTY = 2.0  # and one that the retriever did not list to the next that it did: the best of many flatters the gate's judgement
MIN_GAIN = 0.02  # a rise of the log-odds below this is none
PATIENCE = 4  # rounds without a rise that end it: where two documents are missing, the first one alone may not show

Lookup = Callable[[Sequence[DocId]], Sequence[Document | None]]
Follow = Callable[[Sequence[DocId]], Sequence[Iterable[DocId]]]


class StopReason(StrEnum):
    """Why a question's journey ended."""

    ANSWER = "the gate says answer"
    NOTHING = "nothing raises the probability"
    ROUNDS = "the limit of rounds is reached"
    DOCUMENTS = "as many documents are held as may be"
    CHECKS = "the limit of checks is reached"
    SECONDS = "the limit of seconds is reached"


@dataclass(frozen=True, slots=True)
class ExpansionBudget:
    """How far one question may go: rounds, documents held at once, checks by the gate; seconds are for all questions."""

    rounds: int = 12
    documents: int = 10
    checks: int = 400
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("rounds", 0), ("documents", 1), ("checks", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(
                    f"budget: {name} is {value!r}, expected a whole number of at least {least}"
                )
        seconds = self.seconds
        if seconds is not None and (
            isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0
        ):
            raise InputError(
                f"budget: seconds is {seconds!r}, expected a number of at least 0, or None"
            )


@dataclass(frozen=True, slots=True)
class Completion:
    """What is held in the end, in the order it joined, the gate's last word on it, why it ended, and every round."""

    hits: tuple[Hit, ...]
    verdict: Verdict
    trace: Trace
    stopped: StopReason
    checks: int = 0  # how often the gate was asked

    @property
    def complete(self) -> bool:
        """Does the gate take the evidence for complete?"""
        return self.verdict.action is Action.ANSWER

    def rounds(self) -> list[dict[str, Any]]:
        """A record of each round: the gate's probability, what was held, what was looked for, and what happened."""
        return [
            {
                "p_complete": step.verdict.p_complete if step.verdict else None,
                "held": [hit.doc_id for hit in step.hits],
                "looked_for": step.question,
                "note": step.note,
            }
            for step in self.trace.steps
        ]


def expand(
    questions: Sequence[str],
    retriever: Retriever,
    gate: GateLike,
    lookup: Lookup,
    *,
    follow: Follow | None = None,
    budget: ExpansionBudget = ExpansionBudget(),  # noqa: B008 - frozen
    clock: Callable[[], float] | None = None,
) -> list[Completion]:
    """Complete the evidence of each question. `follow` gives the documents that each document names; None: no links are known.

    A limit of seconds needs a `clock`; a round that has begun is finished.
    """
    if budget.seconds is not None and clock is None:
        raise InputError("a limit of seconds needs a clock", hint="pass clock=time.monotonic")
    begun = clock() if clock is not None else 0.0
    house = _Expander(retriever, gate, lookup, follow)
    journeys = _start(questions, house, budget)
    for done in range(budget.rounds + 1):
        house.judge(
            [one for one in journeys if one.stopped is None], rounds_left=budget.rounds - done
        )
        late = (
            clock is not None and budget.seconds is not None and clock() - begun >= budget.seconds
        )
        for one in journeys:
            one.stop_if(budget, late=late, rounds_left=budget.rounds - done)
        going = [one for one in journeys if one.stopped is None]
        if not going:
            break
        house.advance(going, budget)
    house.give_up(journeys)
    house.drop(journeys, budget)
    # What is not enough by now will not become so: the last word is ANSWER or ABSTAIN.
    house.judge(
        [one for one in journeys if one.verdict is None or one.verdict.action is Action.EXPAND],
        rounds_left=0,
    )
    return [one.told() for one in journeys]


# ---------------------------------------------------------------------------------------------------------- one question


@dataclass(slots=True)
class _Candidate:
    hit: Hit
    price: float  # log-odds that it must bring to be preferred to the retriever's next
    query: str  # what found it
    why: str


@dataclass(slots=True)
class _Expansion:
    """A question on its way. What changes is the set that is held, and with it the verdict."""

    question: str
    ranking: tuple[Hit, ...]
    held: list[Hit] = field(default_factory=list)
    verdict: Verdict | None = None
    judged: bool = False  # the verdict is of what is held now
    best: tuple[float, tuple[Hit, ...]] = (0.0, ())  # the highest probability so far, and of what
    idle: int = 0  # rounds since it rose
    stopped: StopReason | None = None
    steps: list[Step] = field(default_factory=list)
    searched: dict[str, tuple[Hit, ...]] = field(
        default_factory=dict
    )  # queries and what they found: none is asked twice
    checks: int = 0
    query: str = ""
    note: str = ""

    @property
    def ids(self) -> set[DocId]:
        return {hit.doc_id for hit in self.held}

    @property
    def p(self) -> float:
        return self.verdict.p_complete if self.verdict is not None else 0.0

    def stop_if(self, budget: ExpansionBudget, *, late: bool, rounds_left: int) -> None:
        if self.stopped is not None or self.verdict is None:
            return
        if _log_odds(self.p) >= _log_odds(self.best[0]) + MIN_GAIN:
            self.best, self.idle = (self.p, tuple(self.held)), 0
        else:
            self.idle += 1
        if self.verdict.action is Action.ANSWER:
            self.best, self.stopped = (self.p, tuple(self.held)), StopReason.ANSWER
        elif self.idle >= PATIENCE:
            self.stopped = StopReason.NOTHING
        elif late:
            self.stopped = StopReason.SECONDS
        elif len(self.held) >= budget.documents:
            self.stopped = StopReason.DOCUMENTS
        elif rounds_left <= 0:
            self.stopped = StopReason.ROUNDS
        elif self.checks >= budget.checks:
            self.stopped = StopReason.CHECKS

    def hold(self, hits: Sequence[Hit], query: str, note: str) -> None:
        self.held, self.judged = list(hits), False
        self.query, self.note = query, note

    def told(self) -> Completion:
        if self.verdict is None or self.stopped is None:  # expand judges and stops every journey
            raise RuntimeError("a journey ended without a verdict")
        trace = Trace(Question("", self.question), tuple(self.steps))
        return Completion(tuple(self.held), self.verdict, trace, self.stopped, self.checks)


def _start(questions: Sequence[str], house: _Expander, budget: ExpansionBudget) -> list[_Expansion]:
    """Each question with its list and the first hit of it."""
    rankings = (
        house.retriever.search(questions, k=budget.documents + NEXT_RANKED) if questions else []
    )
    journeys = [
        _Expansion(question, tuple(ranking))
        for question, ranking in zip(questions, rankings, strict=True)
    ]
    for one in journeys:
        one.hold(
            one.ranking[:1], one.question, "the first hit" if one.ranking else "no document matches"
        )
    return journeys


# ---------------------------------------------------------------------------------------------------------- all of them


@dataclass(slots=True)
class _Expander:
    """Who searches, who judges, where the texts are; and the texts that were looked up, each once."""

    retriever: Retriever
    gate: GateLike
    lookup: Lookup
    follow: Follow | None
    documents: dict[DocId, Document] = field(default_factory=dict)

    def judge(self, journeys: Sequence[_Expansion], *, rounds_left: int) -> None:
        """What the gate says of what each holds now, with what is missing; a step of the journey where something changed."""
        self._read(hit.doc_id for one in journeys for hit in one.held)
        pairs = [(one.question, strip_scores(one.held)) for one in journeys]
        for one, verdict in zip(
            journeys, self._said(pairs, explain=True, rounds_left=rounds_left), strict=True
        ):
            one.verdict, one.checks = verdict, one.checks + 1
            step = Step(one.query, tuple(one.held), verdict, one.note)
            if one.judged and one.steps:  # the same set once more, only with other rounds left
                one.steps[-1] = step
            else:
                one.steps.append(step)
            one.judged = True

    def advance(self, journeys: Sequence[_Expansion], budget: ExpansionBudget) -> None:
        """One round: each journey holds the candidate beside which its set looks most complete, or ends."""
        self._search(journeys)
        linked = self._linked(journeys)
        found = [
            _candidates(one, links, budget.checks - one.checks - 1)
            for one, links in zip(journeys, linked, strict=True)
        ]
        self._read(candidate.hit.doc_id for some in found for candidate in some)
        pairs = [
            (one.question, strip_scores([*one.held, candidate.hit]))
            for one, some in zip(journeys, found)
            for candidate in some
        ]
        verdicts = iter(self._said(pairs))
        for one, some in zip(journeys, found, strict=True):
            said = [verdict.p_complete for verdict in islice(verdicts, len(some))]
            one.checks += len(some)
            best = max(
                range(len(some)), key=lambda at: _log_odds(said[at]) - some[at].price, default=None
            )
            if best is None:
                one.stopped = StopReason.NOTHING
            else:
                chosen = some[best]
                one.hold(
                    [*one.held, chosen.hit],
                    chosen.query,
                    f"holds {chosen.hit.doc_id}, {chosen.why}",
                )

    def give_up(self, journeys: Sequence[_Expansion]) -> None:
        """Where nothing helped any more, back to the set that looked most complete."""
        back = [
            one
            for one in journeys
            if one.stopped is StopReason.NOTHING and len(one.best[1]) < len(one.held)
        ]
        for one in back:
            one.hold(one.best[1], "", "goes back to the set that looked most complete")
        self.judge(back, rounds_left=0)

    def drop(self, journeys: Sequence[_Expansion], budget: ExpansionBudget) -> None:
        """From what is enough, let go what can go without lowering the probability: a document a turn, the least missed first.

        A set that is not enough stays whole: the gate cannot say which half of it the missing document would need.
        """
        going = [one for one in journeys if one.stopped is StopReason.ANSWER]
        while going := [one for one in going if 1 < len(one.held) <= budget.checks - one.checks]:
            sets = [
                [one.held[:at] + one.held[at + 1 :] for at in range(len(one.held))] for one in going
            ]
            pairs = [
                (one.question, strip_scores(rest))
                for one, some in zip(going, sets)
                for rest in some
            ]
            verdicts = iter(self._said(pairs))
            lighter = []
            for one, some in zip(going, sets, strict=True):
                said = list(islice(verdicts, len(some)))
                one.checks += len(some)
                best = max(range(len(some)), key=lambda at: said[at].p_complete)
                if said[best].p_complete >= one.p and said[best].action is Action.ANSWER:
                    one.hold(some[best], "", f"drops {one.held[best].doc_id}, which adds nothing")
                    lighter.append(one)
            self.judge(lighter, rounds_left=0)
            going = lighter

    def _said(
        self, pairs: Sequence[Any], *, explain: bool = False, rounds_left: int = 1
    ) -> list[Verdict]:
        if not pairs:
            return []
        return self.gate.check_batch(
            pairs, documents=self.documents, explain=explain, rounds_left=max(rounds_left, 0)
        )

    def _read(self, doc_ids: Iterable[DocId]) -> None:
        """Look up what is not known yet. A document that is gone by now stays a hit without a text."""
        self.documents |= documents_by_id(
            self.lookup, (doc_id for doc_id in doc_ids if doc_id not in self.documents)
        )

    def _search(self, journeys: Sequence[_Expansion]) -> None:
        """Ask the new ones among the gate's next queries, all in one search."""
        asked = [
            (one, query)
            for one in journeys
            for query in (one.verdict.next_queries if one.verdict else ())
            if query and query not in one.searched
        ]
        found = (
            self.retriever.search([query for _, query in asked], k=2 * PER_QUERY) if asked else []
        )
        for (one, query), hits in zip(asked, found, strict=True):
            one.searched[query] = tuple(hits)

    def _linked(self, journeys: Sequence[_Expansion]) -> list[list[tuple[DocId, DocId]]]:
        """For each journey the documents that its held ones name, with who names them; those that more of them name first."""
        if self.follow is None:
            return [[] for _ in journeys]
        every = list(dict.fromkeys(hit.doc_id for one in journeys for hit in one.held))
        named = {
            doc_id: list(islice(out, MAX_LINKS))
            for doc_id, out in zip(every, self.follow(every), strict=True)
        }
        linked = []
        for one in journeys:
            by: dict[DocId, list[DocId]] = {}
            for hit in one.held:
                for target in dict.fromkeys(named[hit.doc_id]):
                    by.setdefault(target, []).append(hit.doc_id)
            ahead = {hit.doc_id: at for at, hit in enumerate(one.ranking)}
            order = sorted(
                by, key=lambda target: (-len(by[target]), ahead.get(target, len(ahead)))
            )  # stable: then as named
            linked.append([(target, by[target][0]) for target in order])
        return linked


def _candidates(
    one: _Expansion, linked: Sequence[tuple[DocId, DocId]], most: int
) -> list[_Candidate]:
    """What may join: a few of each list that are not held, each document once, at most as many as may still be checked."""
    held = one.ids
    listed = (_Candidate(hit, 0, one.question, "next in the list") for hit in one.ranking)
    queries = one.verdict.next_queries if one.verdict else ()
    searched = [
        (
            _Candidate(hit, 0, query, f"found by looking for {query!r}")
            for hit in one.searched.get(query, ())
        )
        for query in queries
    ]
    named = (
        _Candidate(Hit(target), 0, one.question, f"which {source} names")
        for target, source in linked
    )
    found: dict[DocId, _Candidate] = {}
    for some, count, aside in (
        (listed, NEXT_RANKED, 0.0),
        *((hits, PER_QUERY, OFF_LIST_PENALTY) for hits in searched),
        (named, PER_ROUND_LINKS, OFF_LIST_PENALTY),
    ):
        fresh = (candidate for candidate in some if candidate.hit.doc_id not in held)
        for place, candidate in enumerate(islice(fresh, count)):
            price = aside + RANK_PENALTY * place
            known = found.setdefault(candidate.hit.doc_id, replace(candidate, price=price))
            known.price = min(known.price, price)
    return list(islice(found.values(), max(most, 0)))


def strip_scores(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """The hits without their scores: they come from several searches, whose scales do not compare."""
    return tuple(Hit(hit.doc_id) for hit in hits)


def _log_odds(p: float) -> float:
    held = min(max(p, 1e-6), 1 - 1e-6)
    return math.log(held / (1 - held))
