"""Expand: search for missing evidence, keep what raises the gate's probability, know when to stop.

    (done,) = expand(["Who taught Ada?"], retriever, gate, library.get, follow=links.out)
    done.hits, done.verdict, done.stopped, done.trace

Each question starts with its first hit. All questions then advance in rounds:

    search  the next hits of the ranking, of the verdict's next queries, and of links
    check   each candidate together with the held documents, all in one `check_batch`
    hold    the candidate that makes the evidence look most complete
    stop    when the gate says ANSWER, when the probability has not risen for some rounds, or when
            the budget is spent

With `choose=False` the next document of the ranking is held without a check. Use it with a
retriever that picks each document for what the earlier ones lack, such as `bridge`. The gate then
only decides when to stop, which takes one check per round instead of a dozen.

After ANSWER, documents are dropped if the probability does not fall without them. Untrusted texts
only reach the gate's features and, through its next queries, the search. The budget bounds every
round, whatever the links or the corpus look like. Search stops at a set because it looks complete,
which biases the probability; a gate with `for_expansion` corrects for that. A search along the
ranking that ends for another reason selected nothing, so the gate itself gives its last verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import Any

from suffice.answering.budget import check_amounts, check_whole
from suffice.errors import InputError, known_arguments
from suffice.numeric import log_odds
from suffice.protocols import GateLike, Retriever, documents_by_id
from suffice.types import Action, DocId, Document, Estimate, Hit, Question, Step, Trace, Verdict

# Candidates of a round: from the ranking, from each query, and from links.
NEXT_RANKED, PER_QUERY, PER_ROUND_LINKS = 6, 2, 4
MAX_LINKS = 32  # per held document: a page may link to a hundred thousand others
# Log-odds by which the gate must prefer a candidate to the one before it in the same list, and one
# outside the ranking to the next one in it. The best of many candidates is overestimated.
RANK_PENALTY, OFF_LIST_PENALTY = 1.0, 2.0
MIN_GAIN = 0.02  # a smaller rise in log-odds does not count
PATIENCE = 4  # rounds without a rise: with two documents missing, finding one may not show

Lookup = Callable[[Sequence[DocId]], Sequence[Document | None]]
Follow = Callable[[Sequence[DocId]], Sequence[Iterable[DocId]]]


class StopReason(StrEnum):
    """Why the expansion of a question ended."""

    ANSWER = "the gate says answer"
    NOTHING = "nothing raises the probability"
    ROUNDS = "the limit of rounds is reached"
    DOCUMENTS = "the limit of documents is reached"
    CHECKS = "the limit of checks is reached"
    SECONDS = "the limit of seconds is reached"


@dataclass(frozen=True, slots=True)
class ExpansionBudget:
    """Limits per question: rounds, documents held, gate checks. Seconds are for all questions."""

    rounds: int = 12
    documents: int = 10
    checks: int = 400
    seconds: float | None = None

    def __post_init__(self) -> None:
        check_whole(rounds=self.rounds, checks=self.checks)
        check_whole(1, documents=self.documents)
        check_amounts(seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class Completion:
    """The held hits, in the order they were added, and the gate's last verdict on them."""

    hits: tuple[Hit, ...]
    verdict: Verdict
    trace: Trace
    stopped: StopReason
    checks: int = 0  # number of gate checks

    @property
    def complete(self) -> bool:
        return self.verdict.action is Action.ANSWER

    def rounds(self) -> list[dict[str, Any]]:
        """A record of each round: probability, documents held, query and note."""
        return [
            {
                "p_complete": step.verdict.p_complete if step.verdict else None,
                "held": [hit.doc_id for hit in step.hits],
                "looked_for": step.question,
                "note": step.note,
            }
            for step in self.trace.steps
        ]


@known_arguments
def expand(
    questions: Sequence[str],
    retriever: Retriever,
    gate: GateLike,
    lookup: Lookup,
    *,
    follow: Follow | None = None,
    choose: bool = True,
    budget: ExpansionBudget = ExpansionBudget(),  # noqa: B008 - frozen
    clock: Callable[[], float] | None = None,
) -> list[Completion]:
    """Complete the evidence of each question. `follow` returns the links of each document.

    With `choose` the gate chooses which document to hold next; without, it is the next one in the
    ranking. A limit in seconds needs a `clock`; a round that has started is finished.
    """
    check_gate(gate)
    for name, found, usable, expected in (
        ("retriever", retriever, hasattr(retriever, "search"), "a Retriever, with .search()"),
        ("lookup", lookup, callable(lookup), "a function, such as library.get"),
        ("follow", follow, follow is None or callable(follow), "a function, such as links.out"),
        ("budget", budget, isinstance(budget, ExpansionBudget), "an ExpansionBudget"),
    ):
        if not usable:
            raise InputError(f"{name} is {found!r:.80}, expected {expected}")
    if budget.seconds is not None and clock is None:
        raise InputError("a limit of seconds needs a clock", hint="pass clock=time.monotonic")
    started = clock() if clock is not None else 0.0
    judge = gate_for_expansion(gate)
    expander = _Expander(retriever, judge, lookup, follow, budget, choose)
    runs = expander.start(questions)
    for done in range(budget.rounds + 1):
        left = budget.rounds - done
        expander.check([run for run in runs if run.stopped is None], rounds_left=left)
        limit = budget.seconds
        late = clock is not None and limit is not None and clock() - started >= limit
        for run in runs:
            run.stop_if(budget, late=late, rounds_left=left)
        going = [run for run in runs if run.stopped is None]
        if not going:
            break
        expander.advance(going)
    expander.restore_best(runs)
    expander.drop_superfluous(runs)
    ended = [run for run in runs if run.stopped is not StopReason.ANSWER]
    if choose or gate is judge:
        ended = [run for run in ended if not run.decided]
    else:  # nothing has selected the documents
        expander.gate = gate
        for run in ended:
            run.note += "; p without the caution of a search"
    # No rounds are left, so the last verdict is ANSWER or ABSTAIN.
    expander.check(ended, rounds_left=0)
    return [run.completion() for run in runs]


def check_gate(gate: object) -> None:
    if not callable(getattr(gate, "check_batch", None)):
        hint = "suffice.Gate.load(), or suffice.Gate.load(PATH) for your own"
        kind = type(gate).__name__
        raise InputError(f"the gate is of type {kind}, expected a suffice.Gate", hint=hint)


def gate_for_expansion(gate: GateLike) -> GateLike:
    """The gate's `for_expansion` variant, or the gate itself if it has none."""
    calibrated = getattr(gate, "for_expansion", None)
    found: GateLike = calibrated() if callable(calibrated) else gate
    return found


def strip_scores(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Hits without scores, because scores of different searches do not compare."""
    return tuple(Hit(hit.doc_id) for hit in hits)


@dataclass(slots=True)
class _Candidate:
    hit: Hit
    price: float  # log-odds it must gain to be preferred to the next in the ranking
    query: str  # the query that found it
    why: str


@dataclass(slots=True)
class _Expansion:
    """The expansion of one question."""

    question: str
    ranking: tuple[Hit, ...]
    held: list[Hit] = field(default_factory=list)
    verdict: Verdict | None = None
    checked: bool = False  # whether the verdict is on the documents held now
    best: tuple[float, tuple[Hit, ...]] = (0.0, ())  # the highest probability so far, and its hits
    idle: int = 0  # rounds since the probability rose
    stopped: StopReason | None = None
    steps: list[Step] = field(default_factory=list)
    searched: dict[str, tuple[Hit, ...]] = field(default_factory=dict)  # query to its hits
    checks: int = 0
    query: str = ""
    note: str = ""

    @property
    def p_complete(self) -> float:
        return self.verdict.p_complete if self.verdict is not None else 0.0

    @property
    def next_queries(self) -> tuple[str, ...]:
        return self.verdict.next_queries if self.verdict is not None else ()

    @property
    def estimate(self) -> Estimate:
        return self.verdict.estimate if self.verdict is not None else Estimate(0.0, 0.0, 0.0)

    @property
    def decided(self) -> bool:
        """Whether the verdict is on the documents held now, and asks for no further round."""
        verdict = self.verdict
        return self.checked and verdict is not None and verdict.action is not Action.EXPAND

    def keep_estimate(self, estimate: Estimate) -> None:
        """Replace the estimate in the last verdict."""
        if self.verdict is not None:
            self.verdict = replace(self.verdict, estimate=estimate)
            self.steps[-1] = replace(self.steps[-1], verdict=self.verdict)

    def stop_if(self, budget: ExpansionBudget, *, late: bool, rounds_left: int) -> None:
        if self.stopped is not None or self.verdict is None:
            return
        now = (self.p_complete, tuple(self.held))
        if log_odds(now[0]) >= log_odds(self.best[0]) + MIN_GAIN:
            self.best, self.idle = now, 0
        else:
            self.idle += 1
        if self.verdict.action is Action.ANSWER:
            self.best, self.stopped = now, StopReason.ANSWER
            return
        reasons = {
            StopReason.NOTHING: self.idle >= PATIENCE,
            StopReason.SECONDS: late,
            StopReason.DOCUMENTS: len(self.held) >= budget.documents,
            StopReason.ROUNDS: rounds_left <= 0,
            StopReason.CHECKS: self.checks >= budget.checks,
        }
        self.stopped = next((reason for reason, holds in reasons.items() if holds), None)

    def hold(self, hits: Sequence[Hit], query: str, note: str) -> None:
        self.held, self.checked = list(hits), False
        self.query, self.note = query, note

    def completion(self) -> Completion:
        if self.verdict is None or self.stopped is None:  # expand checks and stops every run
            raise RuntimeError("an expansion ended without a verdict")
        trace = Trace(Question("", self.question), tuple(self.steps))
        return Completion(tuple(self.held), self.verdict, trace, self.stopped, self.checks)


@dataclass(slots=True)
class _Expander:
    """Retriever, gate and documents, shared by all questions; each document is fetched once."""

    retriever: Retriever
    gate: GateLike
    lookup: Lookup
    follow: Follow | None
    budget: ExpansionBudget
    choose: bool
    documents: dict[DocId, Document] = field(default_factory=dict)

    def start(self, questions: Sequence[str]) -> list[_Expansion]:
        """Rank documents for each question and hold the first hit."""
        k = self.budget.documents + NEXT_RANKED
        rankings = self.retriever.search(questions, k=k) if questions else []
        runs = [_Expansion(one, tuple(hits)) for one, hits in zip(questions, rankings, strict=True)]
        for run in runs:
            note = "the first hit" if run.ranking else "no document matches"
            run.hold(run.ranking[:1], run.question, note)
        return runs

    def check(self, runs: Sequence[_Expansion], *, rounds_left: int) -> None:
        """Check the documents that each run holds; changed evidence adds a step to the trace."""
        self._fetch(hit.doc_id for run in runs for hit in run.held)
        pairs = [(run.question, strip_scores(run.held)) for run in runs]
        verdicts = self._verdicts(pairs, explain=True, rounds_left=rounds_left)
        for run, verdict in zip(runs, verdicts, strict=True):
            run.verdict, run.checks = verdict, run.checks + 1
            step = Step(run.query, tuple(run.held), verdict, run.note)
            if run.checked and run.steps:  # same evidence, fewer rounds left
                run.steps[-1] = step
            else:
                run.steps.append(step)
            run.checked = True

    def advance(self, runs: Sequence[_Expansion]) -> None:
        """One round: each run holds its best candidate, or stops if there is none."""
        if not self.choose:
            for run in runs:
                if len(run.held) < len(run.ranking):
                    new = run.ranking[len(run.held)]
                    note = f"holds {new.doc_id}, next in the list"
                    run.hold([*run.held, new], run.question, note)
                else:
                    run.stopped = StopReason.NOTHING
            return
        self._search(runs)
        found = [
            _candidates(run, links, self.budget.checks - run.checks - 1)
            for run, links in zip(runs, self._links(runs), strict=True)
        ]
        self._fetch(candidate.hit.doc_id for candidates in found for candidate in candidates)
        pairs = [
            (run.question, strip_scores([*run.held, candidate.hit]))
            for run, candidates in zip(runs, found)
            for candidate in candidates
        ]
        verdicts = iter(self._verdicts(pairs))
        for run, candidates in zip(runs, found, strict=True):
            run.checks += len(candidates)
            gains = [
                log_odds(verdict.p_complete) - candidate.price
                for candidate, verdict in zip(candidates, islice(verdicts, len(candidates)))
            ]
            if not gains:
                run.stopped = StopReason.NOTHING
                continue
            best = candidates[max(range(len(gains)), key=gains.__getitem__)]
            run.hold([*run.held, best.hit], best.query, f"holds {best.hit.doc_id}, {best.why}")

    def restore_best(self, runs: Sequence[_Expansion]) -> None:
        """Where nothing helped any more, return to the evidence that looked most complete."""
        back = [
            run
            for run in runs
            if run.stopped is StopReason.NOTHING and len(run.best[1]) < len(run.held)
        ]
        for run in back:
            run.hold(run.best[1], "", "returns to the evidence that looked most complete")

    def drop_superfluous(self, runs: Sequence[_Expansion]) -> None:
        """After ANSWER, drop documents one by one while the probability does not fall.

        The probability is not raised either: part of the evidence is never more complete than the
        whole. Incomplete evidence is not reduced, because the gate cannot tell which documents the
        missing one depends on.
        """
        going = [run for run in runs if run.stopped is StopReason.ANSWER]
        while going := [
            run for run in going if 1 < len(run.held) <= self.budget.checks - run.checks
        ]:
            subsets = [
                [run.held[:at] + run.held[at + 1 :] for at in range(len(run.held))] for run in going
            ]
            pairs = [
                (run.question, strip_scores(rest))
                for run, some in zip(going, subsets)
                for rest in some
            ]
            verdicts = iter(self._verdicts(pairs))
            smaller, before = [], []
            for run, some in zip(going, subsets, strict=True):
                checked = list(islice(verdicts, len(some)))
                run.checks += len(some)
                best = max(range(len(some)), key=lambda at: checked[at].p_complete)
                answers = checked[best].action is Action.ANSWER
                if checked[best].p_complete >= run.p_complete and answers:
                    note = f"drops {run.held[best].doc_id}, which adds nothing"
                    before.append(run.estimate)
                    run.hold(some[best], "", note)
                    smaller.append(run)
            self.check(smaller, rounds_left=0)
            for run, estimate in zip(smaller, before, strict=True):
                run.keep_estimate(estimate)
            going = smaller

    def _verdicts(
        self, pairs: Sequence[Any], *, explain: bool = False, rounds_left: int = 1
    ) -> list[Verdict]:
        if not pairs:
            return []
        left = max(rounds_left, 0)
        return self.gate.check_batch(
            pairs, documents=self.documents, explain=explain, rounds_left=left
        )

    def _fetch(self, doc_ids: Iterable[DocId]) -> None:
        """Fetch unknown documents. A document that no longer exists stays a hit without text."""
        unknown = (doc_id for doc_id in doc_ids if doc_id not in self.documents)
        self.documents |= documents_by_id(self.lookup, unknown)

    def _search(self, runs: Sequence[_Expansion]) -> None:
        """Run those of the gate's next queries that are new, all in one search."""
        searches = [
            (run, query)
            for run in runs
            for query in run.next_queries
            if query and query not in run.searched
        ]
        queries = [query for _, query in searches]
        found = self.retriever.search(queries, k=2 * PER_QUERY) if searches else []
        for (run, query), hits in zip(searches, found, strict=True):
            run.searched[query] = tuple(hits)

    def _links(self, runs: Sequence[_Expansion]) -> list[list[tuple[DocId, DocId]]]:
        """For each run the (target, source) links of its documents, most linked targets first."""
        if self.follow is None:
            return [[] for _ in runs]
        doc_ids = list(dict.fromkeys(hit.doc_id for run in runs for hit in run.held))
        targets = {
            doc_id: list(islice(out, MAX_LINKS))
            for doc_id, out in zip(doc_ids, self.follow(doc_ids), strict=True)
        }
        links = []
        for run in runs:
            sources: dict[DocId, list[DocId]] = {}
            for hit in run.held:
                for target in dict.fromkeys(targets[hit.doc_id]):
                    sources.setdefault(target, []).append(hit.doc_id)
            rank = {hit.doc_id: at for at, hit in enumerate(run.ranking)}
            order = sorted(  # stable: ties stay in text order
                sources, key=lambda target: (-len(sources[target]), rank.get(target, len(rank)))
            )
            links.append([(target, sources[target][0]) for target in order])
        return links


def _candidates(
    run: _Expansion, links: Sequence[tuple[DocId, DocId]], limit: int
) -> list[_Candidate]:
    """A few documents from each list that are not held, without duplicates, at most `limit`."""
    known_ids = {hit.doc_id for hit in run.held}
    ranked = (_Candidate(hit, 0, run.question, "next in the list") for hit in run.ranking)
    linked = (
        _Candidate(Hit(target), 0, run.question, f"which {source} names")
        for target, source in links
    )
    lists: list[tuple[Iterable[_Candidate], int, float]] = [(ranked, NEXT_RANKED, 0.0)]
    for query in run.next_queries:
        why = f"found by the query {query!r}"
        hits = [_Candidate(hit, 0, query, why) for hit in run.searched.get(query, ())]
        lists.append((hits, PER_QUERY, OFF_LIST_PENALTY))
    lists.append((linked, PER_ROUND_LINKS, OFF_LIST_PENALTY))
    found: dict[DocId, _Candidate] = {}
    for candidates, count, penalty in lists:
        fresh = (candidate for candidate in candidates if candidate.hit.doc_id not in known_ids)
        for place, candidate in enumerate(islice(fresh, count)):
            price = penalty + RANK_PENALTY * place
            known = found.setdefault(candidate.hit.doc_id, replace(candidate, price=price))
            known.price = min(known.price, price)
    return list(islice(found.values(), max(limit, 0)))
