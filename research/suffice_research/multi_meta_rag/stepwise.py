"""A filter that is relaxed step by step while a gate finds the evidence incomplete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from suffice.errors import InputError, ModelError
from suffice.protocols import Extractor, Retriever, Store, documents_by_id
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.ranking import Filters, HitLists, check_search
from suffice.types import Field, Filter, Hit

# Questions and their hits -> the probability that each is complete.
PComplete = Callable[[Sequence[str], Sequence[tuple[Hit, ...]]], Sequence[float]]
# The order in which fields are relaxed: a date is wrong most often, a source least.
RELAXED_FIELDS: tuple[Field, ...] = ("published_at", "category", "entities", "source")


def relaxation_steps(filter: Filter) -> list[Filter]:
    """The filter, then without one field after another, and finally without any."""
    steps = [filter]
    for field in RELAXED_FIELDS:
        rest = tuple(one for one in steps[-1].conditions if one.field != field)
        if rest != steps[-1].conditions:
            steps.append(replace(filter, conditions=rest))
    return steps


@dataclass(eq=False)
class StepwiseFilter:
    """A retriever whose filter is relaxed step by step while the evidence looks incomplete.

    While `judge` gives a probability below `target`, the dates are dropped, then categories and
    entities, then the sources. If no step reaches the target, the whole filter is kept. A filter
    must not empty the results of `retriever`: use a SoftFilter. Hits that fail the whole filter are
    marked `relaxed`.
    """

    retriever: Retriever
    store: Store
    extractor: Extractor
    judge: PComplete
    _: KW_ONLY
    target: float = 0.7

    def __post_init__(self) -> None:
        if not 0 <= self.target <= 1:
            raise InputError(f"target is {self.target}, expected a probability from 0 to 1")

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        if filters is None:
            filters = [one.filter for one in self.extractor.extract(questions)]
        steps = [relaxation_steps(one or Filter()) for one in filters]
        best: dict[int, tuple[Hit, ...]] = {}
        open_ = list(range(len(questions)))
        for step in range(max(map(len, steps), default=0)):
            open_ = [at for at in open_ if step < len(steps[at])]
            open_questions = [questions[at] for at in open_]
            found = self.retriever.search(
                open_questions, k=k, filters=[steps[at][step] for at in open_]
            )
            enough = dict(zip(open_, self._reach_target(open_questions, found)))
            best |= {at: hits for at, hits in zip(open_, found) if step == 0 or enough[at]}
            open_ = [at for at in open_ if not enough[at]]
        return [self._mark(best[at], steps[at][0]) for at in range(len(questions))]

    def _reach_target(self, questions: Sequence[str], hits: HitLists) -> list[bool]:
        p = list(self.judge(questions, hits)) if questions else []
        if len(p) != len(questions) or not all(0 <= one <= 1 for one in p):
            raise ModelError(
                f"the judge gave {len(p)} values for {len(questions)} questions, "
                "or some outside 0 to 1"
            )
        return [one >= self.target for one in p]

    def _mark(self, hits: tuple[Hit, ...], filter: Filter) -> tuple[Hit, ...]:
        found = documents_by_id(self.store.get, (hit.doc_id for hit in hits))
        corpus = Corpus(found.values())
        passing = dict(zip(corpus.ids, corpus.mask(filter).tolist()))
        return tuple(replace(hit, relaxed=not passing.get(hit.doc_id, True)) for hit in hits)
