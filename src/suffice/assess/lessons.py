"""Labelled examples, and the lessons the models draw from them.

`Labelled` says which documents a question needed. It is the caller's knowledge after the fact: nothing here can look labels up,
and nothing that checks ever sees one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess.agreement import runs_beside
from suffice.assess.folding import title_key
from suffice.assess.incoming import Taken, take
from suffice.assess.looking import Lenses, Looked, look
from suffice.assess.model import GateModel
from suffice.assess.parts import Lesson
from suffice.assess.reading import Reading
from suffice.assess.words import Words
from suffice.errors import InputError
from suffice.text import tokens
from suffice.types import DocId, Document

__all__ = ["Labelled", "Taught", "fingerprint", "folds_by_group", "lessons", "listed", "teach"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.integer[Any]]
KINDS = 12  # question kinds and labels that are learned, the most frequent first
COMMON = 5  # questions a kind must have


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question, the hits for it and the ids of the documents it needs; empty where nothing answers it.

    The rest is optional and makes a better gate: `titles` of needed documents by id (also those that were not found), the
    question's `kind` or `labels`, the number of `hops` where it is not the number of needed documents, the hits after one more
    round (`hits_after`), from which the gate learns when expanding is worth it, and what other retrievers found (`others`).
    """

    question: str
    hits: Sequence[Any]
    needed: Collection[DocId]
    hits_after: Sequence[Any] | None = None
    titles: Mapping[DocId, str] = field(default_factory=dict, hash=False)
    kind: str | None = None
    labels: Collection[str] = ()
    hops: float | None = None
    documents: Mapping[DocId, Document] = field(default_factory=dict, hash=False)
    others: Sequence[Sequence[Any]] = ()


def listed(examples: Iterable[Labelled], *, fewest: int) -> list[Labelled]:
    """The examples, each looked at: InputError names the first that is not one, or says that there are too few."""
    held = list(examples)
    for place, one in enumerate(held, start=1):
        if not isinstance(one, Labelled):
            raise InputError(f"example {place} is of type {type(one).__name__}, expected Labelled(question, hits, needed)")
        if isinstance(one.needed, str) or not all(isinstance(name, str) for name in one.needed):
            raise InputError(f"example {place}: needed is {one.needed!r:.80}, expected a set of document ids")
    if len(held) < fewest:
        raise InputError(f"{len(held)} labelled examples, expected at least {fewest}", hint="label more questions")
    return held


@dataclass(frozen=True, slots=True)
class Taught:
    """Examples as they were looked at: one entry a question everywhere. Questions with the same words form a group."""

    examples: Sequence[Labelled]
    seen: Looked
    complete: Bools
    groups: Sequence[str]
    sets: Sequence[str] | None = None  # the data set of each, where they come from several

    def where(self, mask: Bools) -> Taught:
        sets = None if self.sets is None else _where(mask, self.sets)
        return Taught(_where(mask, self.examples), self.seen.where(mask), self.complete[mask], _where(mask, self.groups), sets)

    def one_part_of(self, parts: int, seed: int) -> Bools:
        """Which questions make up one of so many parts; those with the same words are in it together or not at all."""
        return np.asarray(folds_by_group(self.groups, parts, seed) == 0)

    def expect_both(self, where: str) -> None:
        """InputError where every question is complete, or none."""
        if self.complete.all() or not self.complete.any():
            what = "complete" if len(self.complete) and self.complete.all() else "incomplete"
            said = f"every one of {len(self.complete)} questions in {where} is {what}"
            raise InputError(said, hint="give examples of both kinds")

    @property
    def lessons(self) -> list[Lesson]:
        return lessons(self.examples, self.seen.taken, self.seen.readings)

    def model(self, words: Words, seed: int) -> GateModel:
        """A model fitted on all of them."""
        seen = self.seen
        return GateModel(words, seed=seed).fit(
            seen.asked,
            seen.readings,
            self.lessons,
            more=seen.more,
            hit_more=seen.hit_more,
            groups=self.groups,
            sets=self.sets,
            named=seen.named,
        )

    @property
    def expanded(self) -> Bools:
        """Of which questions the hits after one more round are known."""
        return np.array([one.hits_after is not None for one in self.examples], dtype=bool)

    @property
    def complete_after(self) -> Bools:
        """Is every needed document among the hits after one more round? All of them count, however many the round brought."""
        later = [take(one.question, one.hits_after or (), documents=one.documents) for one in self.examples]
        return np.array([is_complete(*one) for one in zip(self.examples, later, strict=True)], dtype=bool)


def teach(
    examples: Iterable[Labelled],
    words: Words,
    lenses: Lenses,
    *,
    k: int | None,
    fewest: int,
    others: bool | None = None,
    sets: Sequence[str] | None = None,
) -> Taught:
    """Look at the first `k` hits of each example, and at the `others` where told, or where an example has some.

    InputError where there are too few examples, or one is none.
    """
    held = listed(examples, fewest=fewest)
    if sets is not None and len(sets) != len(held):
        raise InputError(f"{len(sets)} data sets for {len(held)} examples", hint="name the data set of each example")
    taken = [take(one.question, one.hits, documents=one.documents, k=k) for one in held]
    complete = np.array([is_complete(*one) for one in zip(held, taken, strict=True)], dtype=bool)
    runs = None
    if others or (others is None and any(one.others for one in held)):
        runs = [runs_beside(own, one.others, one.documents) for one, own in zip(held, taken, strict=True)]
    groups = [" ".join(tokens(one.question)) for one in held]
    return Taught(held, look(taken, words, lenses, runs), complete, groups, sets)


def folds_by_group(groups: Sequence[str], folds: int, seed: int) -> Ints:
    """A fold for each item; items of one group share it. The same for the same groups and seed."""
    _, group = np.unique(np.asarray(groups, dtype=object).astype(str), return_inverse=True)
    order = np.random.default_rng(seed).permutation(int(group.max()) + 1 if len(group) else 0)
    return np.asarray(order[group] % folds)


def _where(mask: Bools, items: Sequence[Any]) -> list[Any]:
    return [items[at] for at in np.flatnonzero(mask).tolist()]


def is_complete(example: Labelled, taken: Taken) -> bool:
    """Is every needed document among the hits? A question that nothing answers is never complete."""
    return bool(example.needed) and taken.ids.issuperset(example.needed)


def lessons(examples: Sequence[Labelled], taken: Sequence[Taken], readings: Sequence[Reading]) -> list[Lesson]:
    """What each example teaches about its hits, its absent names and its question."""
    counts = Counter(label for one in examples for label in _labels(one))
    kinds = sorted(label for label, count in counts.most_common(KINDS) if COMMON <= count < len(examples))
    return [_lesson(*one, kinds) for one in zip(examples, taken, readings, strict=True)]


def _lesson(example: Labelled, taken: Taken, reading: Reading, kinds: Sequence[str]) -> Lesson:
    needed = frozenset(example.needed)
    held = [taken.holds(hit.doc_id, needed) for hit in taken.evidence.hits]
    titles = [title_key(example.titles[name]) for name in sorted(needed - taken.ids) if name in example.titles]
    absent = [any(_same(title_key(name), title) for title in titles) for name in reading.absent_names]
    hops = float(len(needed) if example.hops is None else example.hops)
    mine = _labels(example)
    return Lesson(is_complete(example, taken), held, absent, {"hops": hops, **{kind: float(kind in mine) for kind in kinds}})


def _labels(example: Labelled) -> set[str]:
    return {*example.labels, *([example.kind] if example.kind else [])} - {"hops", "held", "complete"}


def _same(name: bytes, title: bytes) -> bool:
    """One is the other, or a part of it that is long enough to be no accident."""
    return name == title or (len(name) > 5 and name in title) or (len(title) > 5 and title in name)


def fingerprint(examples: Sequence[Labelled], taken: Sequence[Taken]) -> str:
    """A hash of questions, hits and labels: which data made this gate."""
    digest = hashlib.sha256()
    for example, one in zip(examples, taken, strict=True):
        hits = [(hit.doc_id, hit.score) for hit in one.evidence.hits]
        digest.update(repr((example.question, hits, sorted(example.needed))).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
