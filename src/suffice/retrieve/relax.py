"""Soft filtering with a judge: relax the filter step by step while the evidence looks incomplete.

The whole filter is tried first; while the judge's probability stays below the target, the dates are given up, then categories
and entities, then the sources. If no step reaches the target, the whole filter is kept: it gives way only to evidence that
looks complete, not to the least bad. The judge is a function, so that this room need not know the gate: `suffice.library` puts
the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from suffice.errors import InputError, ModelError
from suffice.ports import Extractor, Retriever, Store, by_id
from suffice.retrieve.corpus import Corpus
from suffice.retrieve.ranking import checked
from suffice.types import Field, Filter, Hit

__all__ = ["PComplete", "StepwiseFilter", "steps"]

# Questions and their hits -> the probability that each is complete.
PComplete = Callable[[Sequence[str], Sequence[tuple[Hit, ...]]], Sequence[float]]
GIVEN_UP: tuple[Field, ...] = ("published_at", "category", "entities", "source")  # a date is wrong most often, a source least


def steps(filter: Filter) -> list[Filter]:
    """The filter, then the same without one field after another, and at last nothing."""
    found = [filter]
    for field in GIVEN_UP:
        rest = tuple(one for one in found[-1].conditions if one.field != field)
        if rest != found[-1].conditions:
            found.append(replace(filter, conditions=rest))
    return found


class StepwiseFilter:
    """A retriever whose filter gives way. `retriever` must not be emptied by a filter itself: a SoftFilter around a plain one.

    A hit that does not pass the whole filter of its question is marked `relaxed`.
    """

    def __init__(
        self, retriever: Retriever, store: Store, extractor: Extractor, judge: PComplete, *, target: float = 0.7
    ) -> None:
        if not 0 <= target <= 1:
            raise InputError(f"target is {target}, expected a probability from 0 to 1")
        self._retriever, self._store, self._extractor = retriever, store, extractor
        self._judge, self._target = judge, target

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = checked(questions, k, filters)
        whole = [one.filter for one in self._extractor.extract(questions)] if filters is None else list(filters)
        ladders = [steps(one or Filter()) for one in whole]
        kept: dict[int, tuple[Hit, ...]] = {}
        open_ = list(range(len(questions)))
        for step in range(max(map(len, ladders), default=0)):
            open_ = [at for at in open_ if step < len(ladders[at])]
            asked = [questions[at] for at in open_]
            found = self._retriever.search(asked, k=k, filters=[ladders[at][step] for at in open_])
            enough = self._enough(asked, found)
            for at, hits, one in zip(open_, found, enough):
                if step == 0 or one:
                    kept[at] = hits
            open_ = [at for at, one in zip(open_, enough) if not one]
        return [self._marked(kept[at], ladders[at][0]) for at in range(len(questions))]

    def _enough(self, questions: Sequence[str], found: Sequence[tuple[Hit, ...]]) -> list[bool]:
        p = list(self._judge(questions, found)) if questions else []
        if len(p) != len(questions) or not all(0 <= one <= 1 for one in p):
            raise ModelError(f"the judge gave {len(p)} values for {len(questions)} questions, or some outside 0 to 1")
        return [one >= self._target for one in p]

    def _marked(self, hits: tuple[Hit, ...], filter: Filter) -> tuple[Hit, ...]:
        corpus = Corpus(by_id(self._store.get, (hit.doc_id for hit in hits)).values())
        passing = dict(zip(corpus.ids, corpus.mask(filter).tolist()))
        return tuple(replace(hit, relaxed=not passing.get(hit.doc_id, True)) for hit in hits)
