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

from suffice.errors import InputError
from suffice.gate.extraction import Extraction
from suffice.gate.featurize import Encoders, FeatureBatch, featurize
from suffice.gate.hits import NormalizedHits, normalize_hits
from suffice.gate.model import GateModel, SubmodelLabels
from suffice.gate.question import WordTable, title_search_key
from suffice.gate.similarity import normalize_other_runs
from suffice.text import tokens
from suffice.types import DocId, Document

__all__ = [
    "LabelledQuestion",
    "TrainingSet",
    "build_training_set",
    "check_examples",
    "data_fingerprint",
    "group_folds",
    "submodel_labels",
]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.integer[Any]]
MAX_KINDS = 12  # question kinds and labels that are learned, the most frequent first
MIN_KIND_COUNT = 5  # questions a kind must have


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
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


def check_examples(examples: Iterable[LabelledQuestion], *, fewest: int) -> list[LabelledQuestion]:
    """The examples, each looked at: InputError names the first that is not one, or says that there are too few."""
    held = list(examples)
    for place, one in enumerate(held, start=1):
        if not isinstance(one, LabelledQuestion):
            raise InputError(
                f"example {place} is of type {type(one).__name__}, expected Labelled(question, hits, needed)"
            )
        if isinstance(one.needed, str) or not all(isinstance(name, str) for name in one.needed):
            raise InputError(
                f"example {place}: needed is {one.needed!r:.80}, expected a set of document ids"
            )
    if len(held) < fewest:
        raise InputError(
            f"{len(held)} labelled examples, expected at least {fewest}",
            hint="label more questions",
        )
    return held


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Examples as they were looked at: one entry a question everywhere. Questions with the same words form a group."""

    examples: Sequence[LabelledQuestion]
    seen: FeatureBatch
    complete: Bools
    groups: Sequence[str]
    sets: Sequence[str] | None = None  # the data set of each, where they come from several

    def where(self, mask: Bools) -> TrainingSet:
        sets = None if self.sets is None else _filter(mask, self.sets)
        return TrainingSet(
            _filter(mask, self.examples),
            self.seen.where(mask),
            self.complete[mask],
            _filter(mask, self.groups),
            sets,
        )

    def one_part_of(self, parts: int, seed: int) -> Bools:
        """Which questions make up one of so many parts; those with the same words are in it together or not at all."""
        return np.asarray(group_folds(self.groups, parts, seed) == 0)

    def expect_both(self, where: str) -> None:
        """InputError where every question is complete, or none."""
        if self.complete.all() or not self.complete.any():
            what = "complete" if len(self.complete) and self.complete.all() else "incomplete"
            said = f"every one of {len(self.complete)} questions in {where} is {what}"
            raise InputError(said, hint="give examples of both kinds")

    @property
    def lessons(self) -> list[SubmodelLabels]:
        return submodel_labels(self.examples, self.seen.taken, self.seen.readings)

    def model(self, words: WordTable, seed: int) -> GateModel:
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
        later = [
            normalize_hits(one.question, one.hits_after or (), documents=one.documents)
            for one in self.examples
        ]
        return np.array(
            [is_complete(*one) for one in zip(self.examples, later, strict=True)], dtype=bool
        )


def build_training_set(
    examples: Iterable[LabelledQuestion],
    words: WordTable,
    encoders: Encoders,
    *,
    k: int | None,
    fewest: int,
    others: bool | None = None,
    sets: Sequence[str] | None = None,
) -> TrainingSet:
    """Look at the first `k` hits of each example, and at the `others` where told, or where an example has some.

    InputError where there are too few examples, or one is none.
    """
    held = check_examples(examples, fewest=fewest)
    if sets is not None and len(sets) != len(held):
        raise InputError(
            f"{len(sets)} data sets for {len(held)} examples",
            hint="name the data set of each example",
        )
    taken = [normalize_hits(one.question, one.hits, documents=one.documents, k=k) for one in held]
    complete = np.array([is_complete(*one) for one in zip(held, taken, strict=True)], dtype=bool)
    runs = None
    if others or (others is None and any(one.others for one in held)):
        runs = [
            normalize_other_runs(own, one.others, one.documents)
            for one, own in zip(held, taken, strict=True)
        ]
    groups = [" ".join(tokens(one.question)) for one in held]
    return TrainingSet(held, featurize(taken, words, encoders, runs), complete, groups, sets)


def group_folds(groups: Sequence[str], folds: int, seed: int) -> Ints:
    """A fold for each item; items of one group share it. The same for the same groups and seed."""
    _, group = np.unique(np.asarray(groups, dtype=object).astype(str), return_inverse=True)
    order = np.random.default_rng(seed).permutation(int(group.max()) + 1 if len(group) else 0)
    return np.asarray(order[group] % folds)


def _filter(mask: Bools, items: Sequence[Any]) -> list[Any]:
    return [items[at] for at in np.flatnonzero(mask).tolist()]


def is_complete(example: LabelledQuestion, taken: NormalizedHits) -> bool:
    """Is every needed document among the hits? A question that nothing answers is never complete."""
    return bool(example.needed) and taken.ids.issuperset(example.needed)


def submodel_labels(
    examples: Sequence[LabelledQuestion],
    taken: Sequence[NormalizedHits],
    readings: Sequence[Extraction],
) -> list[SubmodelLabels]:
    """What each example teaches about its hits, its absent names and its question."""
    counts = Counter(label for one in examples for label in _question_labels(one))
    kinds = sorted(
        label
        for label, count in counts.most_common(MAX_KINDS)
        if MIN_KIND_COUNT <= count < len(examples)
    )
    return [_labels_of_one(*one, kinds) for one in zip(examples, taken, readings, strict=True)]


def _labels_of_one(
    example: LabelledQuestion, taken: NormalizedHits, reading: Extraction, kinds: Sequence[str]
) -> SubmodelLabels:
    needed = frozenset(example.needed)
    held = [taken.holds(hit.doc_id, needed) for hit in taken.evidence.hits]
    titles = [
        title_search_key(example.titles[name])
        for name in sorted(needed - taken.ids)
        if name in example.titles
    ]
    absent = [
        any(_same_title(title_search_key(name), title) for title in titles)
        for name in reading.absent_names
    ]
    hops = float(len(needed) if example.hops is None else example.hops)
    mine = _question_labels(example)
    return SubmodelLabels(
        is_complete(example, taken),
        held,
        absent,
        {"hops": hops, **{kind: float(kind in mine) for kind in kinds}},
    )


def _question_labels(example: LabelledQuestion) -> set[str]:
    return {*example.labels, *([example.kind] if example.kind else [])} - {
        "hops",
        "held",
        "complete",
    }


def _same_title(name: bytes, title: bytes) -> bool:
    """One is the other, or a part of it that is long enough to be no accident."""
    return name == title or (len(name) > 5 and name in title) or (len(title) > 5 and title in name)


def data_fingerprint(examples: Sequence[LabelledQuestion], taken: Sequence[NormalizedHits]) -> str:
    """A hash of questions, hits and labels: which data made this gate."""
    digest = hashlib.sha256()
    for example, one in zip(examples, taken, strict=True):
        hits = [(hit.doc_id, hit.score) for hit in one.evidence.hits]
        digest.update(
            repr((example.question, hits, sorted(example.needed))).encode("utf-8", "surrogatepass")
        )
    return digest.hexdigest()
