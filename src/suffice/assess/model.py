"""From readings to a probability: the models of the parts, then the gate over the whole.

Fitting is nested: the parts describe each training question with models fitted on other questions, so the gate learns from
descriptions as good as those it will see. Calibration uses the gate's odds for questions it was not fitted on, too. Questions
of one group (the same words) are never on both sides: with copies on both, the odds look surer than they will be.

A saved model is ONNX for trees and JSON or npy for everything linear: nothing in it runs but arithmetic, and checking needs
onnxruntime only, not scikit-learn.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess.asking import Asked
from suffice.assess.calibration import Platt
from suffice.assess.features import Feature
from suffice.assess.parts import ABSENT_TREES, HIT_TREES, Lesson, Parts, check_lessons
from suffice.assess.reading import ABSENT_COLUMNS, HIT_COLUMNS, Reading
from suffice.assess.whole import BOOSTED_TREES, EXTRA_TREES, Whole
from suffice.assess.words import Words
from suffice.errors import DataError, InputError, NotReadyError, SufficeError
from suffice.files import read_json_object, write_atomically

__all__ = ["GateModel"]

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.integer[Any]]
FORMAT = 1
FOLDS = 5
RECORD = "model.json"
REFIT = "fit and save the gate again"


class GateModel:
    """The probability that the hits hold all the evidence.

    `more` is (questions, m) extra columns of the whole, `hit_more` a (hits, h) block for each question: a model fitted with
    them wants them ever after. After `fit`, `odds_at_fit` and `table_at_fit` hold the odds and the features of each training
    question by models that have not seen it: what a calibration or a policy may be fitted on.
    """

    odds_at_fit: Floats
    table_at_fit: Floats
    _parts: Parts
    _whole: Whole
    _scale: Platt

    def __init__(self, words: Words, *, seed: int = 0) -> None:
        self.words, self.seed = words, seed
        self._more: tuple[Feature, ...] = ()

    def fit(
        self,
        asked: Sequence[Asked],
        readings: Sequence[Reading],
        lessons: Sequence[Lesson],
        *,
        more: Floats | None = None,
        hit_more: Sequence[Floats] | None = None,
        groups: Sequence[str] | None = None,
        sets: Sequence[str] | None = None,
        named: Sequence[Feature] = (),
    ) -> GateModel:
        """`groups` are the questions' texts, or whatever else must stay together; without them each question is one.

        `sets` are the data sets that the questions come from, where there are several: the model is then made for yet others.
        `named` says what the columns of `more` are; those it leaves out are numbered.
        """
        check_lessons(asked, readings, lessons)
        complete = np.array([one.complete for one in lessons], dtype=bool)
        folds = list(_folds(complete, range(len(lessons)) if groups is None else groups, self.seed))
        table = self._described(asked, readings, lessons, hit_more, folds)
        self._more = _extra(0 if more is None else np.shape(more)[1], named)
        table = _beside(table, more, len(self._more))
        self._parts = Parts(self.words, seed=self.seed).fit(asked, readings, lessons, hit_more).ready()
        names, of_set = [one.name for one in self.features], _sets(sets, len(lessons))
        odds = np.empty(len(lessons))
        for rest, held in folds:
            whole = Whole.fit(table[rest], complete[rest], names, sets=of_set[rest], seed=self.seed)
            odds[held] = whole.odds(table[held])
        self.odds_at_fit, self.table_at_fit = odds, table
        self._scale = Platt.fit(odds, complete)
        self._whole = Whole.fit(table, complete, names, sets=of_set, seed=self.seed).ready()
        return self

    def _described(
        self,
        asked: Sequence[Asked],
        readings: Sequence[Reading],
        lessons: Sequence[Lesson],
        hit_more: Sequence[Floats] | None,
        folds: list[tuple[Ints, Ints]],
    ) -> Floats:
        """Each question as described by parts that have not seen it."""
        blocks, order = [], []
        for rest, held in folds:
            taught = (_take(asked, rest), _take(readings, rest), _take(lessons, rest), _take(hit_more, rest))
            parts = Parts(self.words, seed=self.seed).fit(*taught)
            blocks.append(parts.describe(_take(asked, held), _take(readings, held), _take(hit_more, held)))
            order.append(held)
        return np.asarray(np.concatenate(blocks)[np.argsort(np.concatenate(order))])

    # -------------------------------------------------------------------------------------------- looking

    @property
    def features(self) -> tuple[Feature, ...]:
        """What the columns of `describe` are."""
        return (*self._fitted.features, *self._more)

    @property
    def _fitted(self) -> Parts:
        if not hasattr(self, "_parts"):
            raise NotReadyError("the gate's model is not fitted", hint="call fit, or load a saved one")
        return self._parts

    def hops(self, asked: Sequence[Asked]) -> Floats:
        """How many documents the question model expects each question to need: (questions,)."""
        question = self._fitted.question
        return question.predict(asked)[:, question.targets.index("hops")]

    def describe(
        self,
        asked: Sequence[Asked],
        readings: Sequence[Reading],
        *,
        more: Floats | None = None,
        hit_more: Sequence[Floats] | None = None,
    ) -> Floats:
        """What the gate looks at: (questions, features), float32."""
        return self.judge(asked, readings, more=more, hit_more=hit_more)[0]

    def judge(
        self,
        asked: Sequence[Asked],
        readings: Sequence[Reading],
        *,
        more: Floats | None = None,
        hit_more: Sequence[Floats] | None = None,
    ) -> tuple[Floats, list[Floats]]:
        """The same, and for each question the chance of each absent name to be missing evidence."""
        parts = self._fitted
        wanted = parts.hit_more
        given = {np.shape(block)[-1] for block in hit_more} if hit_more else {wanted if hit_more is not None else 0}
        if len(asked) and given != {wanted}:
            raise InputError(f"hit_more has {sorted(given)} columns, the model was fitted with {wanted}")
        table, p_absent = parts.judge(asked, readings, hit_more)
        return _beside(table, more, len(self._more)), p_absent

    def odds(self, table: Floats) -> Floats:
        """The log-odds of the whole, before calibration: (questions, features) to (questions,)."""
        return self._whole.odds(table) if len(table) else np.zeros(0)

    def predict(self, asked: Sequence[Asked], readings: Sequence[Reading], **more: Any) -> Floats:
        """p_complete: (questions,). `more` and `hit_more` as in `describe`."""
        odds = self.odds(self.describe(asked, readings, **more))
        return self._scale.apply(odds)

    # -------------------------------------------------------------------------------------------- keeping

    @property
    def settings(self) -> dict[str, Any]:
        """What made the model, beside the data."""
        trees = {"hit": HIT_TREES, "absent": ABSENT_TREES, "boosted": BOOSTED_TREES, "extra": EXTRA_TREES}
        return {"seed": self.seed, "folds": FOLDS, "trees": trees, "more": [list(one[:3]) for one in self._more]}

    def _schema(self) -> str:
        """A hash of every column the model looks at."""
        named = [HIT_COLUMNS, ABSENT_COLUMNS, [one.name for one in self.features], self._parts.hit.columns]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()

    def save(self, folder: Path) -> None:
        """Write the model's files into an existing folder. The same data and seed give the same bytes."""
        folder = Path(folder)
        record = {
            "format": FORMAT,
            "parts": self._fitted.save(folder),
            "whole": self._whole.save(folder),
            "scale": self._scale.as_json(),
            "settings": self.settings,
            "schema": self._schema(),
        }
        write_atomically(folder / RECORD, json.dumps(record, sort_keys=True) + "\n")

    @classmethod
    def load(cls, folder: Path, words: Words | None = None) -> GateModel:
        """A model that `save` wrote. DataError where a file is damaged, NotReadyError where format or columns are others."""
        folder = Path(folder)
        try:
            told = {entry.key: entry.value for entry in read_json_object(folder / RECORD)}
            if told["format"] != FORMAT:
                raise NotReadyError(f"{folder} has model format {told['format']}, this suffice reads {FORMAT}", hint=REFIT)
            settings = told["settings"]
            model = cls(words or Words.load(), seed=int(settings["seed"]))
            model._more = tuple(Feature(*map(str, one)) for one in settings["more"] or ())
            model._parts = Parts.load(folder, told["parts"], model.words, seed=model.seed)
            if told["schema"] != model._schema():
                raise NotReadyError(f"the model in {folder} looks at other columns than this suffice has", hint=REFIT)
            model._whole = Whole.load(folder, told["whole"])
            model._scale = Platt.from_json(told["scale"])
            if model._whole.columns != {len(model.features)}:
                raise ValueError("its parts have unlike columns")
        except (DataError, NotReadyError):
            raise
        except (SufficeError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"the model in {folder} cannot be read: {error!r}", hint=REFIT) from error
        return model


def _folds(complete: Bools, groups: Sequence[Any], seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Positions to fit on and positions to describe, both labels in the first, no group in both."""
    from sklearn.model_selection import StratifiedGroupKFold  # late: checking needs no scikit-learn

    if len(groups) != len(complete):
        raise InputError(f"{len(groups)} groups for {len(complete)} questions")
    fewest = min(complete.sum(), (~complete).sum()) if len(complete) else 0
    if fewest < FOLDS:
        raise InputError(
            f"{int(complete.sum())} of {len(complete)} questions are complete, expected at least {FOLDS}, and {FOLDS} others",
            hint="label more questions",
        )
    _, of_group = np.unique(np.array([str(one) for one in groups], dtype=object), return_inverse=True)
    if of_group.max() + 1 < FOLDS:
        raise InputError(f"{of_group.max() + 1} different questions, expected at least {FOLDS}")
    split = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    for rest, held in split.split(complete, complete, of_group):
        if len(np.unique(complete[rest])) < 2:
            raise InputError("all complete questions, or all others, have the same words", hint="label more questions")
        if len(held):
            yield rest, held


def _sets(sets: Sequence[str] | None, questions: int) -> npt.NDArray[Any]:
    if sets is not None and len(sets) != questions:
        raise InputError(f"{len(sets)} data sets for {questions} questions")
    return np.zeros(questions, dtype=object) if sets is None else np.array([str(one) for one in sets], dtype=object)


def _extra(columns: int, named: Sequence[Feature]) -> tuple[Feature, ...]:
    """What the caller's columns are: as named, and behind those numbered."""
    numbered = (Feature("more", f"more_{at}", f"Extra column {at} of the caller's.") for at in range(len(named), columns))
    return (*named[:columns], *numbered)


def _beside(table: Floats, more: Floats | None, columns: int) -> Floats:
    if more is None and not columns:
        return table
    shape = np.shape(more) if more is not None else (len(table), 0)
    if shape != (len(table), columns):
        raise InputError(f"more has shape {shape}, expected {(len(table), columns)}")
    return np.column_stack([table, np.nan_to_num(np.asarray(more))]).astype(np.float32)


def _take(items: Sequence[Any] | None, at: Ints) -> Any:
    return None if items is None else [items[i] for i in at]
