"""The model: from a FeatureBatch to the log-odds that the evidence is complete.

    BinaryClassifier  yes or no for each row, by trees
    Submodels         which hits are evidence, which names are missing, what the question needs
    Ensemble          four models over the gate's columns
    GateModel         both, fitted and saved together
    CalibratedModel   a GateModel with its calibration, and the correction of an adapted gate

Fitting is nested: each training question is described by submodels fitted on other questions, so
the ensemble learns from descriptions as good as those it will see. Questions of one group (the same
words) are never on both sides. A saved model is ONNX for trees and JSON or npy for the rest:
checking needs onnxruntime, not scikit-learn.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, MissingExtraError, NotReadyError
from suffice.gate.calibration import Correction, FeatureProfile, Platt
from suffice.gate.extraction import Extraction, FeatureBatch
from suffice.gate.features import (
    ABSENT_COLUMNS,
    BEFORE_GUESSES,
    BEHIND_GUESSES,
    GUESS,
    HIT_COLUMNS,
    LOCAL_FEATURE,
    PATH_COLUMNS,
    READING,
    RELATIVE_HIT_COLUMNS,
    SET_COLUMNS,
    STEADY_DIRECTIONS,
    Feature,
)
from suffice.gate.question import ParsedQuestion, QuestionModel, WordTable, question_features
from suffice.gate.trees import boosted_trees, trees_to_onnx
from suffice.numeric import log_odds, log_odds_array, multiply_rows, sigmoid
from suffice.storage import write_atomically
from suffice.storage.artefacts import OnnxTrees, data_errors, read_json

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.integer[Any]]
Folds = Sequence[tuple[Ints, Ints]]  # positions to fit on, and those held out
Record = Mapping[str, Any]  # JSON
REFIT = "fit and save the gate again"
MODEL_FORMAT, MODEL_RECORD, MODEL_FOLDS = 2, "model.json", 5
HIT_TREES, HIT_LEAVES, ABSENT_TREES = 200, 15, 60
BOOSTED_TREES, BOOSTED_LEAF, EXTRA_TREES, EXTRA_LEAVES = 120, 25, 100, 64
STEADY_SHARE = 0.6  # weight of the steady model with many training data sets
READ_STEADY_SHARE = 0.27  # the same with a reader, whose columns transfer
STEADY_PENALTY = 0.01  # on its weights
MIN_PROBABILITY = 2e-3  # probabilities are clipped here, so that no submodel dominates


@dataclass(frozen=True)
class BinaryClassifier:
    """The probability of "yes" for each row: from trees or, with few rows, the share of "yes"."""

    columns: int
    share: float
    trees: Any = None  # from scikit-learn when fitted, OnnxTrees when ready or loaded

    @classmethod
    def fit(cls, rows: Floats, yes: Bools, model: Any, *, min_rows: int = 20) -> BinaryClassifier:
        """Trees need at least `min_rows` of each label."""
        share = float(yes.mean()) if len(yes) else 0.0
        enough = min(yes.sum(), len(yes) - yes.sum()) >= min_rows
        return cls(rows.shape[1], share, model.fit(rows, yes) if enough else None)

    def p(self, rows: Floats) -> Floats:
        """(rows,)."""
        if self.trees is None or not len(rows):
            return np.full(len(rows), self.share)
        if isinstance(self.trees, OnnxTrees):
            return self.trees.p(rows)
        return np.asarray(self.trees.predict_proba(rows)[:, 1])

    def ready(self) -> BinaryClassifier:
        """A copy with OnnxTrees, many times as fast on a few rows; unchanged without onnx."""
        if self.trees is None or isinstance(self.trees, OnnxTrees):
            return self
        try:
            content = trees_to_onnx(self.trees, self.columns)
        except MissingExtraError:
            return self
        return replace(self, trees=OnnxTrees(content, columns=self.columns))

    def save(self, path: Path) -> dict[str, Any]:
        """Write the trees, if there are any, and return the rest as a record."""
        if isinstance(self.trees, OnnxTrees):
            write_atomically(path, self.trees.content)
        elif self.trees is not None:
            write_atomically(path, trees_to_onnx(self.trees, self.columns))
        return {"columns": self.columns, "share": self.share, "trees": self.trees is not None}

    @classmethod
    def load(cls, path: Path, record: Record) -> BinaryClassifier:
        columns, trees = int(record["columns"]), None
        if record["trees"]:
            trees = OnnxTrees(np.fromfile(path, np.uint8).tobytes(), columns=columns)
        return cls(columns, float(record["share"]), trees)


TOP_HITS = 5  # most likely hits whose log-odds are features
TOP_ABSENT = 8  # most likely absent names that count
MAX_HOPS = 6.0  # questions that need more are treated alike
COMPARED_AT_ONCE = 10_000  # hits: limits memory
MAX_RIVALS = 50  # first hits that every hit is compared with: the time is quadratic
_RELATIVE_AT = np.array([HIT_COLUMNS.index(name) for name in RELATIVE_HIT_COLUMNS])


@dataclass(frozen=True, slots=True)
class SubmodelLabels:
    """Labels of a question for the submodels."""

    complete: bool
    evidence: Sequence[bool]  # per hit
    absent: Sequence[bool]  # per absent name: whether it is missing evidence
    targets: Mapping[str, float]  # "hops", and kinds or labels as 0/1


class Description(NamedTuple):
    """The gate's columns, and for each question the probability of each absent name."""

    table: Floats  # (questions, features), float32
    p_absent: list[Floats]


class Submodels:
    """Three small models, fitted and saved together: for hits, absent names and the question."""

    hit: BinaryClassifier
    absent: BinaryClassifier
    question: QuestionModel

    def __init__(self, words: WordTable, *, seed: int = 0) -> None:
        self.words, self.seed = words, seed

    def fit(self, batch: FeatureBatch, labels: Sequence[SubmodelLabels]) -> Submodels:
        hits = hit_features(batch.extractions, batch.hit_extra)
        of_hits, of_names = (
            np.array([flag for block in blocks for flag in block], dtype=bool)
            for blocks in ([one.evidence for one in labels], [one.absent for one in labels])
        )
        trees = boosted_trees(HIT_TREES, 40, self.seed, leaves=HIT_LEAVES)
        self.hit = BinaryClassifier.fit(hits, of_hits, trees)
        names = np.concatenate([one.absent for one in batch.extractions])
        trees = boosted_trees(ABSENT_TREES, 30, self.seed)
        self.absent = BinaryClassifier.fit(names, of_names, trees)
        targets = {
            "hops": [min(one.targets["hops"], MAX_HOPS) for one in labels],
            "held": [float(sum(one.evidence)) for one in labels],
        }
        kinds = [name for name in labels[0].targets if name != "hops"]
        targets |= {name: [one.targets[name] for one in labels] for name in kinds}
        targets["complete"] = [float(one.complete) for one in labels]
        self.question = QuestionModel(self.words).fit(batch.questions, targets)
        return self

    def ready(self) -> Submodels:
        self.hit, self.absent = self.hit.ready(), self.absent.ready()
        return self

    def describe(self, batch: FeatureBatch) -> Description:
        extractions = batch.extractions
        hit_rows = hit_features(extractions, batch.hit_extra)
        p_evidence = _by_question(self.hit.p(hit_rows), [one.hits for one in extractions])
        absent = [one.absent for one in extractions]
        no_names = np.zeros((0, len(ABSENT_COLUMNS)), np.float32)
        p_absent = _by_question(self.absent.p(np.concatenate(absent or [no_names])), absent)
        figures = np.array([one.figures for one in extractions], dtype=np.float32)
        rows = question_features(batch.questions)
        table = _gate_features(
            figures.reshape(-1, len(SET_COLUMNS)),
            [block.tolist() for block in p_evidence],
            [block.tolist() for block in p_absent],
            self.question.predict(batch.questions, rows),
            rows,
        )
        return Description(table, p_absent)

    def save(self, folder: Path) -> dict[str, Any]:
        self.question.save(folder)
        parts = {"hit": self.hit, "absent": self.absent}
        return {name: part.save(folder / f"{name}.onnx") for name, part in parts.items()}

    @classmethod
    def load(cls, folder: Path, record: Record, words: WordTable, *, seed: int) -> Submodels:
        submodels = cls(words, seed=seed)
        submodels.question = QuestionModel.load(folder, words)
        submodels.hit = BinaryClassifier.load(folder / "hit.onnx", record["hit"])
        submodels.absent = BinaryClassifier.load(folder / "absent.onnx", record["absent"])
        return submodels


def hit_features(extractions: Sequence[Extraction], hit_extra: Sequence[Floats] | None) -> Floats:
    """The hits of all questions: as extracted, relative to each other, and extra columns."""
    blocks = [one.hits for one in extractions]
    counts = list(map(len, blocks))
    hits = np.concatenate(blocks or [np.zeros((0, len(HIT_COLUMNS)), np.float32)])
    parts = [hits, relative_hit_features(hits, counts)]
    if hit_extra is not None:
        if [np.shape(one)[:-1] for one in hit_extra] != [(count,) for count in counts]:
            raise InputError("hit_extra must have a block a question, and in it a row for each hit")
        if hit_extra:
            parts.append(np.nan_to_num(np.concatenate(hit_extra)))
    return np.concatenate(parts, axis=1, dtype=np.float32)


def relative_hit_features(hits: Floats, counts: Sequence[int]) -> Floats:
    """By how much each hit leads the best other one of its question, and the share above it.

    Input: (hits, HIT_COLUMNS) of all questions, and the number of hits of each. Output: (hits, 2 *
    RELATIVE_HIT_COLUMNS). A single hit gets zeros. Questions with the same number of hits are
    computed together.
    """
    found = np.zeros((len(hits), 2 * len(RELATIVE_HIT_COLUMNS)), dtype=np.float32)
    together = np.repeat(counts, counts)  # for each hit, how many hits its question has
    for k in set(counts) - {0, 1}:
        rows, step = np.flatnonzero(together == k), k * (1 + COMPARED_AT_ONCE // k)
        for some in (rows[start : start + step] for start in range(0, len(rows), step)):
            seen = hits[some].reshape(-1, k, hits.shape[1]).take(_RELATIVE_AT, axis=2)
            ordered = np.sort(seen, axis=1)
            best, second = ordered[:, -1:], ordered[:, -2:-1]
            lead = seen - np.where(seen == best, second, best)
            rivals = seen[:, None, :MAX_RIVALS] > seen[:, :, None]
            above = rivals.sum(2) / min(k - 1, MAX_RIVALS)
            both = np.concatenate([lead, above], axis=2, dtype=np.float32)
            found[some] = both.reshape(len(some), -1)
    return found


def _gate_features(
    sets: Floats,
    p_evidence: Iterable[Iterable[float]],
    p_absent: Iterable[Iterable[float]],
    guesses: Floats,
    question: Floats,
) -> Floats:
    """(questions, features), float32: columns from the submodels' outputs.

    `p_evidence` has a probability for each hit of each question, `p_absent` one for each absent
    name. The first column of `guesses` is the expected number of documents needed; the last two of
    `question` are the numbers that its form implies, as log(1 + number).
    """
    needs = zip(guesses[:, 0].tolist(), *np.expm1(question[:, -2:]).T.tolist(), strict=True)
    path = [
        _path_features(sorted(p, reverse=True), need)
        for p, need in zip(p_evidence, needs, strict=True)
    ]
    absent = [_absent_features(sorted(p, reverse=True)) for p in p_absent]
    parts = np.array([one + other for one, other in zip(path, absent, strict=True)])
    parts = parts.reshape(-1, len(PATH_COLUMNS))
    columns = np.concatenate([sets, parts, guesses, question], axis=1, dtype=np.float32)
    return columns if np.isfinite(columns).all() else np.nan_to_num(columns)


def _path_features(p: list[float], need: tuple[float, float, float]) -> list[float]:
    """The family "path", from the hits' probabilities, most likely first, and the number of
    documents needed: as guessed, at least, likely. In plain Python, five times as fast as arrays
    for one question.
    """
    first = (*p[:TOP_HITS], *[0.0] * (TOP_HITS - len(p)))
    odds = [log_odds(one, least=MIN_PROBABILITY) for one in first]
    expected, pair = sum(p), first[0] * first[1]
    needs = [min(max(one, 1.6), TOP_HITS - 0.01) for one in need]
    weakest = []
    for one in needs:
        below = int(one)  # interpolate between two whole numbers of documents
        weakest.append(odds[below - 1] + (one - below) * (odds[below] - odds[below - 1]))
    short = [expected - one for one in needs]
    least, likely = min(short[1], 1.0), min(short[2], 1.0)
    sure = sum([one > 0.5 for one in p])
    forms = weakest[0], short[0], *weakest[1:], least, likely
    return [*odds, expected, *forms, pair, pair * first[2], sure]


def _absent_features(p: list[float]) -> list[float]:
    """The family "absent", from the probabilities of the absent names, most likely first."""
    return [*p[:3], *[0.0] * (3 - len(p)), sum(p[:TOP_ABSENT])]


def _by_question(p: Floats, blocks: Sequence[Floats]) -> list[Floats]:
    ends = list(accumulate(map(len, blocks)))
    return [p[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _check_labels(batch: FeatureBatch, labels: Sequence[SubmodelLabels]) -> None:
    if len(batch) != len(labels):
        raise InputError(f"{len(batch)} questions and {len(labels)} labels, expected as many")
    for place, (one, label) in enumerate(zip(batch.extractions, labels, strict=True), start=1):
        hits, names = len(one.hits), len(one.absent)
        if (len(label.evidence), len(label.absent)) != (hits, names):
            found = f"{len(label.evidence)} hits and {len(label.absent)} absent names"
            raise InputError(f"labels {place} have {found}, expected {hits} and {names}")
        if label.targets.keys() != labels[0].targets.keys() or "hops" not in label.targets:
            found = f"the targets {sorted(label.targets)}"
            raise InputError(f"labels {place} have {found}, expected 'hops' and the same in each")


_MAX_LOG_ODDS = float(
    log_odds_array(np.array(1.0), least=MIN_PROBABILITY)
)  # no linear model may outweigh sure trees


@dataclass(frozen=True)
class LinearModel:
    """Logistic regression, fitted on standardized columns; the weights are for raw columns."""

    weights: Floats
    offset: float

    @classmethod
    def fit(cls, rows: Floats, yes: Bools) -> LinearModel:
        from sklearn.linear_model import LogisticRegression  # lazy: needs the `fit` extra

        mean, scale = _mean_and_scale(rows)
        model = LogisticRegression(C=0.01, max_iter=2000).fit((rows - mean) / scale, yes)
        weights = model.coef_[0] / scale
        return cls(weights, float(model.intercept_[0] - mean @ weights))

    @classmethod
    def fit_steady(
        cls, rows: Floats, yes: Bools, sample_weights: Floats, directions: npt.NDArray[np.int_]
    ) -> LinearModel:
        """Weights of direction 1 are not negative, those of -1 not positive, all others 0."""
        from scipy.optimize import minimize  # lazy: needs the `fit` extra

        used = np.flatnonzero(directions)
        mean, scale = _mean_and_scale(rows[:, used])
        forward = (rows[:, used] - mean) / scale * directions[used]

        def loss(x: Floats) -> tuple[float, Floats]:
            odds = forward @ x[1:] + x[0]
            missed = sample_weights * (1 / (1 + np.exp(-odds)) - yes)
            slope = np.concatenate([[missed.sum()], missed @ forward + STEADY_PENALTY * x[1:]])
            penalty = STEADY_PENALTY / 2 * x[1:] @ x[1:]
            return float(sample_weights @ (np.logaddexp(0, odds) - yes * odds) + penalty), slope

        bounds = [(None, None)] + [(0, None)] * len(used)
        start = np.zeros(1 + len(used))
        found = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
        weights = np.zeros(rows.shape[1])
        weights[used] = found[1:] * directions[used] / scale
        return cls(weights, float(found[0] - mean @ weights[used]))

    def as_json(self) -> dict[str, Any]:
        return {"weights": self.weights.tolist(), "offset": self.offset}

    @classmethod
    def from_json(cls, record: Record) -> LinearModel:
        return cls(np.array(record["weights"], dtype=float), float(record["offset"]))


@dataclass(frozen=True)
class Ensemble:
    """Four models over the gate's columns; the log-odds are their weighted mean.

    Logistic regression, boosted trees and extra trees learn as much as they can, but what they
    learn from one data set misleads on another. The steady model uses only columns that have the
    same direction on every data set, and keeps these directions. Every data set has the same weight
    in it, and so have both labels within a set, so it learns nothing about how the sets differ. Its
    weight grows with the number of data sets; it is smaller with a reader among the columns
    (decision 9).
    """

    linear: LinearModel
    steady: LinearModel
    boosted: BinaryClassifier
    extra: BinaryClassifier
    share: float  # of the steady model

    @classmethod
    def fit(
        cls,
        rows: Floats,
        yes: Bools,
        names: Sequence[str],
        *,
        data_sets: npt.NDArray[Any] | None = None,
        seed: int = 0,
    ) -> Ensemble:
        """`names` are the column names, `data_sets` the data set of each row."""
        from sklearn.ensemble import ExtraTreesClassifier  # lazy: needs the `fit` extra

        extra_trees = ExtraTreesClassifier(
            min(EXTRA_TREES, len(yes)), min_samples_leaf=4, max_leaf_nodes=EXTRA_LEAVES,
            max_features=0.3, random_state=seed,
        )  # fmt: skip
        extra = BinaryClassifier.fit(rows, yes, extra_trees, min_rows=1)
        boosted = BinaryClassifier(rows.shape[1], float(yes.mean()))
        if len(yes) >= 2 * BOOSTED_LEAF:  # fewer rows cannot be split
            model = boosted_trees(BOOSTED_TREES, BOOSTED_LEAF, seed)
            boosted = BinaryClassifier.fit(rows, yes, model, min_rows=1)
        directions = np.array([STEADY_DIRECTIONS.get(name, 0) for name in names])
        weights, teaching = _balanced_weights(
            yes, np.zeros(len(yes)) if data_sets is None else data_sets
        )
        steady = LinearModel.fit_steady(rows, yes, weights, directions)
        most = READ_STEADY_SHARE if READING[0].name in names else STEADY_SHARE
        share = most * (1 - 1 / teaching)
        return cls(LinearModel.fit(rows, yes), steady, boosted, extra, share)

    def ready(self) -> Ensemble:
        return replace(self, boosted=self.boosted.ready(), extra=self.extra.ready())

    @property
    def columns(self) -> set[int]:
        """The number of columns each model expects; a single number if they are consistent."""
        linear = {len(self.linear.weights), len(self.steady.weights)}
        return linear | {self.boosted.columns, self.extra.columns}

    def log_odds(self, rows: Floats) -> Floats:
        """(rows, columns) to (rows,)."""
        weights, offsets = self._lines
        lines = multiply_rows(rows, weights) + offsets
        lines = np.minimum(np.maximum(lines, -_MAX_LOG_ODDS), _MAX_LOG_ODDS)
        p = np.array([self.boosted.p(rows), self.extra.p(rows)], dtype=float)
        free = lines[:, 0] + log_odds_array(p, least=MIN_PROBABILITY).sum(0)
        return np.asarray((1 - self.share) * free / 3 + self.share * lines[:, 1])

    @cached_property
    def _lines(self) -> tuple[Floats, Floats]:
        """The weights of both linear models, one column each, and their offsets."""
        both = self.linear, self.steady
        weights = np.array([one.weights for one in both]).T.copy()
        return weights, np.array([one.offset for one in both])

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the trees and return the rest as a record."""
        lines = {"linear": self.linear.as_json(), "steady": self.steady.as_json()}
        trees = {"boosted": self.boosted, "extra": self.extra}
        saved = {name: part.save(folder / f"{name}.onnx") for name, part in trees.items()}
        return {**lines, **saved, "share": self.share}

    @classmethod
    def load(cls, folder: Path, record: Record) -> Ensemble:
        linear, steady = (LinearModel.from_json(record[name]) for name in ("linear", "steady"))
        boosted = BinaryClassifier.load(folder / "boosted.onnx", record["boosted"])
        extra = BinaryClassifier.load(folder / "extra.onnx", record["extra"])
        return cls(linear, steady, boosted, extra, float(record["share"]))


def _mean_and_scale(rows: Floats) -> tuple[Floats, Floats]:
    mean, scale = rows.mean(0, dtype=float), rows.std(0, dtype=float)
    scale[scale < 1e-9] = 1.0
    return mean, scale


def _balanced_weights(yes: Bools, data_sets: npt.NDArray[Any]) -> tuple[Floats, int]:
    """Weights that balance the sets, and the labels in each; how many sets have both labels."""
    weights = np.zeros(len(yes))
    teaching = 0
    for one in np.unique(data_sets):
        mine = data_sets == one
        if len(np.unique(yes[mine])) == 2:
            teaching += 1
            for label in (mine & yes, mine & ~yes):
                weights[label] = 0.5 / label.sum()
    if not teaching:  # each set has one label only: learn from all of them together
        return _balanced_weights(yes, np.zeros(len(yes)))
    return weights / teaching, teaching


class GateModel:
    """The log-odds that the hits contain all the evidence, before calibration.

    A model fitted with extra features always needs them. `log_odds_at_fit` and `table_at_fit` are
    the out-of-fold log-odds and columns of the training questions: use them to fit a calibration or
    a policy. With several data sets, `log_odds_left_out` has the log-odds from an ensemble that was
    not trained on the question's data set at all.
    """

    log_odds_at_fit: Floats
    log_odds_left_out: Floats
    table_at_fit: Floats
    _submodels: Submodels
    _ensemble: Ensemble

    def __init__(self, words: WordTable, *, seed: int = 0) -> None:
        self.words, self.seed = words, seed
        self._extra: tuple[Feature, ...] = ()

    def fit(
        self,
        batch: FeatureBatch,
        labels: Sequence[SubmodelLabels],
        *,
        groups: Sequence[str] | None = None,
        data_sets: Sequence[str] | None = None,
    ) -> GateModel:
        """`groups` keep questions together; by default each question is its own group. `data_sets`
        names the data set of each question: the model is then fitted to transfer to other data
        sets.
        """
        _check_labels(batch, labels)
        if data_sets is not None and len(data_sets) != len(labels):
            raise InputError(f"{len(data_sets)} data sets for {len(labels)} questions")
        complete = np.array([one.complete for one in labels], dtype=bool)
        sets = np.array([str(one) for one in data_sets or ["all"] * len(labels)], dtype=object)
        alone = range(len(labels)) if groups is None else groups
        folds = list(_cross_folds(complete, alone, self.seed))
        blocks, order = [], []
        for rest, held_out in folds:
            submodels = Submodels(self.words, seed=self.seed)
            submodels.fit(batch.select(rest), [labels[at] for at in rest])
            blocks.append(submodels.describe(batch.select(held_out)).table)
            order.append(held_out)
        table = np.asarray(np.concatenate(blocks)[np.argsort(np.concatenate(order))])
        table = _append_extra(table, batch.extra)
        self._extra = batch.extra_features
        self._submodels = Submodels(self.words, seed=self.seed).fit(batch, labels).ready()
        return self._fit_ensemble(table, complete, sets, folds)

    def refit_ensemble(
        self, table: Floats, complete: Bools, groups: Sequence[str], *, seed: int
    ) -> GateModel:
        """Another model with the same submodels, and an ensemble fitted on these labels alone;
        `table` is the result of `describe`.
        """
        model = GateModel(self.words, seed=seed)
        model._submodels, model._extra = self._fitted, self._extra
        folds = list(_cross_folds(complete, groups, seed))
        sets = np.zeros(len(complete), dtype=object)
        return model._fit_ensemble(table, complete, sets, folds)

    def _fit_ensemble(
        self, table: Floats, complete: Bools, sets: npt.NDArray[Any], folds: Folds
    ) -> GateModel:
        names, odds = [one.name for one in self.features], np.empty(len(complete))
        for rest, held_out in folds:
            options: Any = {"data_sets": sets[rest], "seed": self.seed}
            part = Ensemble.fit(table[rest], complete[rest], names, **options)
            odds[held_out] = part.log_odds(table[held_out])
        self.log_odds_at_fit, self.table_at_fit = odds, table
        self.log_odds_left_out = self._leave_sets_out(table, complete, sets)
        ensemble = Ensemble.fit(table, complete, names, data_sets=sets, seed=self.seed)
        self._ensemble = ensemble.ready()
        return self

    def _leave_sets_out(self, table: Floats, complete: Bools, sets: npt.NDArray[Any]) -> Floats:
        names, odds = [one.name for one in self.features], self.log_odds_at_fit.copy()
        for one in np.unique(sets):
            rest = sets != one
            if len(np.unique(complete[rest])) == 2:
                options: Any = {"data_sets": sets[rest], "seed": self.seed}
                part = Ensemble.fit(table[rest], complete[rest], names, **options)
                odds[~rest] = part.log_odds(table[~rest])
        return odds

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns of `describe`."""
        targets = self._fitted.question.targets
        guesses = (Feature("hops", f"guess_{one}", GUESS.format(one)) for one in targets)
        return (*BEFORE_GUESSES, *guesses, *BEHIND_GUESSES, *self._extra)

    @property
    def _fitted(self) -> Submodels:
        if not hasattr(self, "_submodels"):
            raise NotReadyError("the gate's model is not fitted", hint="call fit, or load one")
        return self._submodels

    def hops(self, questions: Sequence[ParsedQuestion]) -> Floats:
        """How many documents the question model expects each question to need: (questions,)."""
        model = self._fitted.question
        return model.predict(questions)[:, model.targets.index("hops")]

    def describe(self, batch: FeatureBatch) -> Description:
        """The gate's columns of each question."""
        submodels = self._fitted
        given, wanted = ([one.name for one in part] for part in (batch.extra_features, self._extra))
        if given != wanted:
            raise InputError(f"extra features are {given}, the model was fitted with {wanted}")
        description = submodels.describe(batch)
        return description._replace(table=_append_extra(description.table, batch.extra))

    def describes_like(self, other: GateModel) -> bool:
        """Whether `describe` returns the same for both, so that it needs to run only once."""
        return self._fitted is other._fitted and self._extra == other._extra

    def log_odds(self, table: Floats) -> Floats:
        """(questions, features) to (questions,)."""
        return self._ensemble.log_odds(table) if len(table) else np.zeros(0)

    @property
    def settings(self) -> dict[str, Any]:
        """How the model was made, apart from the data."""
        trees = {"hit": HIT_TREES, "absent": ABSENT_TREES}
        trees |= {"boosted": BOOSTED_TREES, "extra": EXTRA_TREES}
        extra = [list(one[:3]) for one in self._extra]
        return {"seed": self.seed, "folds": MODEL_FOLDS, "trees": trees, "extra": extra}

    def _schema(self) -> str:
        """A hash of all columns of the model."""
        names = [one.name for one in self.features]
        columns = [HIT_COLUMNS, ABSENT_COLUMNS, names, self._submodels.hit.columns]
        return hashlib.sha256(json.dumps(columns).encode()).hexdigest()

    def save(self, folder: Path) -> None:
        """Write the model into an existing folder. The same data and seed give the same bytes."""
        record = {
            "format": MODEL_FORMAT,
            "submodels": self._fitted.save(folder),
            "ensemble": self._ensemble.save(folder),
            "settings": self.settings,
            "schema": self._schema(),
        }
        write_atomically(folder / MODEL_RECORD, json.dumps(record, sort_keys=True) + "\n")

    @classmethod
    def load(cls, folder: Path, words: WordTable | None = None) -> GateModel:
        """Load a model written by `save`; DataError if a file is damaged."""
        with data_errors(f"the model in {folder}", hint=REFIT):
            record = read_json(folder / MODEL_RECORD)
            if record["format"] != MODEL_FORMAT:
                found = f"{folder} has model format {record['format']}"
                raise NotReadyError(f"{found}, this suffice reads {MODEL_FORMAT}", hint=REFIT)
            settings, parts = record["settings"], record["submodels"]
            model = cls(words or WordTable.load(), seed=int(settings["seed"]))
            model._extra = tuple(Feature(*map(str, one)) for one in settings["extra"])
            model._submodels = Submodels.load(folder, parts, model.words, seed=model.seed)
            if record["schema"] != model._schema():
                message = f"the model in {folder} has other columns than this suffice"
                raise NotReadyError(message, hint=REFIT)
            model._ensemble = Ensemble.load(folder, record["ensemble"])
            if model._ensemble.columns != {len(model.features)}:
                raise ValueError("its parts have different columns")
        return model


def _cross_folds(complete: Bools, groups: Sequence[Any], seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Positions to fit on and to describe: both labels in the first, no group in both."""
    from sklearn.model_selection import StratifiedGroupKFold  # lazy: needs the `fit` extra

    if len(groups) != len(complete):
        raise InputError(f"{len(groups)} groups for {len(complete)} questions")
    if not len(complete) or min(complete.sum(), (~complete).sum()) < MODEL_FOLDS:
        raise InputError(
            f"{int(complete.sum())} of {len(complete)} questions are complete, expected at least "
            f"{MODEL_FOLDS}, and {MODEL_FOLDS} others",
            hint="label more questions",
        )
    texts = np.array([str(one) for one in groups], dtype=object)
    _, of_group = np.unique(texts, return_inverse=True)
    if of_group.max() + 1 < MODEL_FOLDS:
        raise InputError(
            f"{of_group.max() + 1} different questions, expected {MODEL_FOLDS} or more"
        )
    split = StratifiedGroupKFold(MODEL_FOLDS, shuffle=True, random_state=seed)
    for rest, held_out in split.split(complete, complete, of_group):
        if len(np.unique(complete[rest])) < 2:
            message = "all complete questions, or all others, have the same words"
            raise InputError(message, hint="label more questions")
        if len(held_out):
            yield rest, held_out


def _append_extra(table: Floats, extra: Floats | None) -> Floats:
    if extra is None:
        return table
    return np.column_stack([table, np.nan_to_num(np.asarray(extra))]).astype(np.float32)


NO_HITS_LOG_ODDS = -12.0


@dataclass(frozen=True)
class LocalModel:
    """A small model of the labels that a gate was adapted to, and its calibration.

    A hundred labels can teach things about a corpus that no correction of the old log-odds can
    express. Its log-odds become LOCAL_FEATURE, and the correction weighs them against the old ones.
    """

    model: GateModel
    calibration: Platt

    def log_odds(self, table: Floats) -> Floats:
        """(questions, features) of its own model to (questions,)."""
        return self.calibration.log_odds(self.model.log_odds(table))


@dataclass(frozen=True)
class CalibratedModel:
    """From features to calibrated log-odds; an adapted gate also has `correction` or `local`."""

    base: GateModel
    calibration: Platt
    profile: FeatureProfile
    correction: Correction | None = None
    local: LocalModel | None = None
    after: Correction | None = None  # from the log-odds now to those after another round
    stop: Platt | None = None  # calibration for sets at which a search stops

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns of `describe`."""
        return self.base.features if self.local is None else (*self.base.features, LOCAL_FEATURE)

    def describe(self, batch: FeatureBatch) -> Description:
        """The base model's columns, followed by the local model's log-odds."""
        description = self.base.describe(batch)
        return description._replace(table=self.with_local(batch, description.table))

    def with_local(self, batch: FeatureBatch, table: Floats) -> Floats:
        """The base model's columns and the local model's log-odds."""
        if self.local is None:
            return table
        own = table  # same submodels until it is saved
        if not self.local.model.describes_like(self.base):
            own = self.local.model.describe(batch).table
        return np.column_stack([table, self.local.log_odds(own)])

    def log_odds(self, table: Floats) -> Floats:
        """(questions, features) to (questions,)."""
        odds = self.calibration.log_odds(
            self.base.log_odds(table if self.local is None else table[:, :-1])
        )
        if self.correction is not None:
            features = self.profile.standardize(table, self.correction.names)
            odds = self.correction.apply(odds, features)
        if self.stop is not None:
            # Never raise them: continuing a search is not evidence.
            odds = np.minimum(odds, self.stop.log_odds(odds))
        # Without hits there is no evidence, whatever the model says about an input it was not
        # trained on.
        return np.where(table[:, self.profile.column["k"]] > 0, odds, NO_HITS_LOG_ODDS)

    def p_after(self, odds: Floats, table: Floats) -> Floats | None:
        """p_complete after another round, if the gate was fitted on such examples."""
        if self.after is None:
            return None
        return sigmoid(self.after.apply(odds, self.profile.standardize(table, self.after.names)))
