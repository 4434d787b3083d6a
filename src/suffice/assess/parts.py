"""Three small models of the parts: which hits are evidence, which absent names are missing, what the question asks for.

Together they describe a question and its hits to the gate, which sees the whole through their eyes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess.asking import Asked
from suffice.assess.features import AMONG, Feature, describe, table
from suffice.assess.hops import QuestionModel, question_rows
from suffice.assess.reading import ABSENT_COLUMNS, HIT_COLUMNS, WHOLE_COLUMNS, Reading
from suffice.assess.trees import Trees, to_onnx
from suffice.assess.words import Words
from suffice.errors import InputError, MissingExtraError
from suffice.files import write_atomically

__all__ = ["ABSENT_TREES", "HIT_TREES", "Judge", "Lesson", "Parts", "boosted", "check_lessons"]

Floats = npt.NDArray[np.floating[Any]]
MOST_HOPS = 6.0  # a question that needs more is not told from one that needs this many
FEWEST = 20  # rows of either label from which trees are grown; below, a part only knows how often its label holds
HIT_TREES, HIT_LEAVES, ABSENT_TREES = 200, 15, 60
COMPARED = 10_000  # hits whose places are worked out at once: a bound on memory
RIVALS = 50  # hits that every hit is compared with, the first ones: beyond, time would grow with their square
_AMONG_AT = np.array([HIT_COLUMNS.index(name) for name in AMONG])
_NO_HITS, _NO_NAMES = (np.zeros((0, len(columns)), np.float32) for columns in (HIT_COLUMNS, ABSENT_COLUMNS))


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is known of a question after the fact: which hits were evidence, which absent names, and the question's targets."""

    complete: bool
    held: Sequence[bool]
    absent: Sequence[bool]
    targets: Mapping[str, float]  # "hops", and kinds or labels as 0/1


def boosted(trees: int, leaf: int, seed: int, *, leaves: int = 7) -> Any:
    """Few-leaved boosted trees that stop at a number, not at a score: the same data gives the same model."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # late: checking needs no scikit-learn

    return HistGradientBoostingClassifier(
        max_iter=trees, learning_rate=0.06, max_leaf_nodes=leaves, min_samples_leaf=leaf, l2_regularization=5.0,
        max_features=0.6, early_stopping=False, random_state=seed,
    )  # fmt: skip


@dataclass(frozen=True)
class Judge:
    """The chance of "yes" for each row: by trees, or where too few rows taught them, how often it was "yes"."""

    columns: int
    share: float
    trees: Any = None  # scikit-learn's when fitted, suffice.assess.trees.Trees when ready or loaded

    @classmethod
    def fit(cls, rows: Floats, yes: npt.NDArray[np.bool_], model: Any, *, fewest: int = FEWEST) -> Judge:
        share = float(yes.mean()) if len(yes) else 0.0
        taught = min(yes.sum(), len(yes) - yes.sum()) >= fewest
        return cls(rows.shape[1], share, model.fit(rows, yes) if taught else None)

    def p(self, rows: Floats) -> Floats:
        """(rows,)."""
        if self.trees is None or not len(rows):
            return np.full(len(rows), self.share)
        return self.trees.p(rows) if isinstance(self.trees, Trees) else np.asarray(self.trees.predict_proba(rows)[:, 1])

    def ready(self) -> Judge:
        """As when loaded: for the few rows of a check scikit-learn takes many times as long. As it is where onnx is missing."""
        if self.trees is None or isinstance(self.trees, Trees):
            return self
        try:
            return replace(self, trees=Trees(to_onnx(self.trees, self.columns), columns=self.columns))
        except MissingExtraError:
            return self

    def save(self, path: Path) -> dict[str, Any]:
        """Write the trees, if there are any; what else there is to know is returned."""
        if self.trees is not None:
            loaded = isinstance(self.trees, Trees)
            write_atomically(path, self.trees.content if loaded else to_onnx(self.trees, self.columns))
        return {"columns": self.columns, "share": self.share, "trees": self.trees is not None}

    @classmethod
    def load(cls, path: Path, told: Mapping[str, Any]) -> Judge:
        columns, share = int(told["columns"]), float(told["share"])
        return cls(columns, share, Trees(np.fromfile(path, np.uint8).tobytes(), columns=columns) if told["trees"] else None)


class Parts:
    """The models of the parts, fitted together and saved together."""

    hit: Judge
    absent: Judge
    question: QuestionModel

    def __init__(self, words: Words, *, seed: int = 0) -> None:
        self.words, self.seed = words, seed

    def fit(
        self,
        asked: Sequence[Asked],
        readings: Sequence[Reading],
        lessons: Sequence[Lesson],
        hit_more: Sequence[Floats] | None = None,
    ) -> Parts:
        hits = hit_rows(readings, hit_more)
        trees = boosted(HIT_TREES, 40, self.seed, leaves=HIT_LEAVES)
        self.hit = Judge.fit(hits, _flags([one.held for one in lessons]), trees)
        names = np.concatenate([reading.absent for reading in readings])
        self.absent = Judge.fit(names, _flags([one.absent for one in lessons]), boosted(ABSENT_TREES, 30, self.seed))
        kinds = {name: [one.targets[name] for one in lessons] for name in lessons[0].targets if name != "hops"}
        hops = [min(one.targets["hops"], MOST_HOPS) for one in lessons]
        held = [float(sum(one.held)) for one in lessons]
        complete = [float(one.complete) for one in lessons]
        self.question = QuestionModel(self.words).fit(asked, {"hops": hops, "held": held, **kinds, "complete": complete})
        return self

    def ready(self) -> Parts:
        self.hit, self.absent = self.hit.ready(), self.absent.ready()
        return self

    @property
    def features(self) -> tuple[Feature, ...]:
        return table(self.question.targets)

    @property
    def hit_more(self) -> int:
        """How many columns beside its own a hit must have."""
        return self.hit.columns - len(HIT_COLUMNS) - 2 * len(AMONG)

    def describe(self, asked: Sequence[Asked], readings: Sequence[Reading], hit_more: Sequence[Floats] | None = None) -> Floats:
        """(questions, features), float32."""
        return self.judge(asked, readings, hit_more)[0]

    def judge(
        self, asked: Sequence[Asked], readings: Sequence[Reading], hit_more: Sequence[Floats] | None = None
    ) -> tuple[Floats, list[Floats]]:
        """The description, and what it came from: for each question the chance of each absent name."""
        by_hit, by_name = self.hit_probabilities(readings, hit_more), self.absent_probabilities(readings)
        p_held, p_absent = ([block.tolist() for block in blocks] for blocks in (by_hit, by_name))
        whole = np.array([reading.whole for reading in readings], dtype=np.float32).reshape(-1, len(WHOLE_COLUMNS))
        rows = question_rows(asked)
        return describe(whole, p_held, p_absent, self.question.predict(asked, rows), rows), by_name

    def hit_probabilities(self, readings: Sequence[Reading], hit_more: Sequence[Floats] | None = None) -> list[Floats]:
        """For each question the chance of each hit to be evidence, in the order of the hits."""
        return _by_block(self.hit, hit_rows(readings, hit_more), [len(reading.hits) for reading in readings])

    def absent_probabilities(self, readings: Sequence[Reading]) -> list[Floats]:
        """For each question the chance of each absent name to be missing evidence, in their order."""
        rows = np.concatenate([reading.absent for reading in readings] or [_NO_NAMES])
        return _by_block(self.absent, rows, [len(reading.absent) for reading in readings])

    def save(self, folder: Path) -> dict[str, Any]:
        self.question.save(folder)
        return {name: getattr(self, name).save(folder / f"{name}.onnx") for name in ("hit", "absent")}

    @classmethod
    def load(cls, folder: Path, told: Mapping[str, Any], words: Words, *, seed: int) -> Parts:
        parts = cls(words, seed=seed)
        parts.question = QuestionModel.load(folder, words)
        parts.hit, parts.absent = (Judge.load(folder / f"{name}.onnx", told[name]) for name in ("hit", "absent"))
        return parts


def hit_rows(readings: Sequence[Reading], hit_more: Sequence[Floats] | None) -> Floats:
    """The hits of all questions: as read, as they stand among the others, and extra columns where there are any."""
    blocks = [reading.hits for reading in readings]
    if hit_more is not None and (
        len(hit_more) != len(blocks) or any(np.ndim(more) != 2 or len(more) != len(own) for more, own in zip(hit_more, blocks))
    ):
        raise InputError("hit_more must have a block for each question, and in it a row for each hit")
    hits = np.concatenate(blocks or [_NO_HITS])
    parts = [hits, among(hits, list(map(len, blocks)))]
    if hit_more:
        parts.append(np.nan_to_num(np.concatenate(hit_more)))
    return np.concatenate(parts, axis=1, dtype=np.float32)


def among(hits: Floats, counts: Sequence[int]) -> Floats:
    """By how much each hit leads the best other one of its question, and the share of the others above it.

    (hits, HIT_COLUMNS) of all questions, and how many hits each has, to (hits, 2 * AMONG). A hit alone leads nobody: zeros.
    Questions with as many hits are worked out together.
    """
    found = np.zeros((len(hits), 2 * len(AMONG)), dtype=np.float32)
    together = np.repeat(counts, counts)  # of each hit: how many hits its question has
    for k in set(counts) - {0, 1}:
        rows, step = np.flatnonzero(together == k), k * (1 + COMPARED // k)
        for some in (rows[start : start + step] for start in range(0, len(rows), step)):
            found[some] = _among(hits[some].reshape(-1, k, hits.shape[1])).reshape(len(some), -1)
    return found


def _among(hits: Floats) -> Floats:
    """(questions, hits, HIT_COLUMNS) to (questions, hits, 2 * AMONG)."""
    k, seen = hits.shape[1], hits.take(_AMONG_AT, axis=2)
    ordered = np.sort(seen, axis=1)
    best, second = ordered[:, -1:], ordered[:, -2:-1]
    lead = seen - np.where(seen == best, second, best)
    above = (seen[:, None, :RIVALS] > seen[:, :, None]).sum(2) / min(k - 1, RIVALS)
    return np.concatenate([lead, above], axis=2, dtype=np.float32)


def _by_block(judge: Judge, rows: Floats, counts: list[int]) -> list[Floats]:
    p, ends = judge.p(rows), list(accumulate(counts))
    return [p[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _flags(blocks: Sequence[Sequence[bool]]) -> npt.NDArray[np.bool_]:
    return np.array([flag for block in blocks for flag in block], dtype=bool)


def check_lessons(asked: Sequence[Asked], readings: Sequence[Reading], lessons: Sequence[Lesson]) -> None:
    """InputError names the first lesson that does not fit its reading."""
    if not len(asked) == len(readings) == len(lessons):
        raise InputError(
            f"{len(asked)} questions, {len(readings)} readings and {len(lessons)} lessons, expected as many of each"
        )
    for place, (reading, lesson) in enumerate(zip(readings, lessons, strict=True), start=1):
        if reading.hits.shape[1:] != (len(HIT_COLUMNS),) or reading.absent.shape[1:] != (len(ABSENT_COLUMNS),):
            raise InputError(f"reading {place} has other columns than this suffice reads")
        if len(lesson.held) != len(reading.hits) or len(lesson.absent) != len(reading.absent):
            raise InputError(
                f"lesson {place} has {len(lesson.held)} hits and {len(lesson.absent)} absent names, its reading "
                f"{len(reading.hits)} and {len(reading.absent)}"
            )
        if lesson.targets.keys() != lessons[0].targets.keys() or "hops" not in lesson.targets:
            raise InputError(f"lesson {place} has the targets {sorted(lesson.targets)}, expected 'hops' and the same in each")
