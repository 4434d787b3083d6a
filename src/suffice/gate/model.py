"""Tree models as ONNX: written from what scikit-learn fitted, run by onnxruntime, equal to scikit-learn to the last split.

The graph gives one number per row, the probability of "yes". It is written here and not by skl2onnx because the converter
rejects boosted models under current protobuf, and because a threshold between two float32 values has to be rounded down: only
then does a float32 row fall to the same side as in scikit-learn, which compares in float64.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError, MissingExtraError, NotReadyError, SufficeError
from suffice.gate.calibration import Platt
from suffice.gate.extraction import ABSENT_COLUMNS, HIT_COLUMNS, SET_COLUMNS, Extraction
from suffice.gate.features import (
    RELATIVE_HIT_COLUMNS,
    STEADY_DIRECTIONS,
    Feature,
    clipped_logit,
    feature_table,
    gate_features,
)
from suffice.gate.question import ParsedQuestion, QuestionModel, WordTable, question_features
from suffice.storage import read_json_object, write_atomically
from suffice.storage.artefacts import open_onnx

__all__ = [
    "ABSENT_TREES",
    "BOOSTED_TREES",
    "EXTRA_TREES",
    "HIT_TREES",
    "BinaryClassifier",
    "Ensemble",
    "GateModel",
    "OnnxTrees",
    "SubmodelLabels",
    "Submodels",
    "boosted_trees",
    "check_submodel_labels",
    "trees_to_onnx",
]


Floats = npt.NDArray[np.floating[Any]]
# The oldest formats that can say all this, so that old runtimes read it too.
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
_OUTPUTS = ["p"]
ROUNDING = 1e-3  # sums of many small shares may miss one by a little
BATCH_ROWS = (
    256  # rows of one run: from some 1,000 on, onnxruntime takes four times as long for each
)


class OnnxTrees:
    """A saved tree model. One thread: a check is too short to share."""

    def __init__(self, content: bytes, *, columns: int) -> None:
        """`content` are the bytes of an ONNX file, kept so that a loaded gate can be saved again; DataError where they are
        damaged or want other columns.
        """
        self.content = content
        self._session = open_onnx(content, threads=1, hint="fit and save the gate again")
        shapes = [(one.name, one.shape[1:]) for one in self._session.get_inputs()]
        if (
            shapes != [("rows", [columns])]
            or [one.name for one in self._session.get_outputs()] != _OUTPUTS
        ):
            raise DataError(
                f"a tree model takes {shapes}, expected 'rows' of {columns} columns",
                hint="fit the gate again",
            )

    def p(self, rows: Floats) -> Floats:
        """The probability of "yes": (rows,), float32."""
        if not len(rows):
            return np.zeros(0)
        given = np.ascontiguousarray(rows, dtype=np.float32)
        try:
            found = [
                self._session.run(_OUTPUTS, {"rows": given[at : at + BATCH_ROWS]})[0]
                for at in range(0, len(rows), BATCH_ROWS)
            ]
            p = np.asarray(found[0] if len(found) == 1 else np.concatenate(found)).ravel()
        except Exception as error:  # onnxruntime raises classes of its own that it does not export
            raise DataError(
                f"a tree model fails: {error}", hint="fit and save the gate again"
            ) from error
        if p.shape != (len(rows),):
            raise DataError(
                f"a tree model gives {len(p)} numbers for {len(rows)} rows",
                hint="fit and save the gate again",
            )
        if not (p.min() > -ROUNDING and p.max() < 1 + ROUNDING):
            raise DataError(
                "a tree model gives what is no probability", hint="fit and save the gate again"
            )
        return p


@dataclass(frozen=True)
class _Tree:
    """One tree as arrays over its nodes; `value` counts only at leaves. A row goes left where it is at most the threshold."""

    feature: npt.NDArray[Any]
    threshold: npt.NDArray[Any]
    left: npt.NDArray[Any]
    right: npt.NDArray[Any]
    leaf: npt.NDArray[np.bool_]
    value: npt.NDArray[Any]


def trees_to_onnx(model: Any, columns: int) -> bytes:
    """A fitted two-class tree model of scikit-learn as an ONNX file. The same model gives the same bytes."""
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        raise MissingExtraError("saving a fitted gate", extra="fit") from error
    if len(getattr(model, "classes_", ())) != 2:
        raise InputError("only a fitted model of two classes can be saved")
    boosted = hasattr(model, "_baseline_prediction")
    base = [float(model._baseline_prediction.ravel()[0])] if boosted else [0.0]
    attributes: dict[str, Any] = {
        "n_targets": 1,
        "aggregate_function": "SUM",
        "base_values": base,
        **_tree_attributes(model),
    }
    trees = helper.make_node(
        "TreeEnsembleRegressor", ["rows"], ["sum"], domain="ai.onnx.ml", **attributes
    )
    link = helper.make_node("Sigmoid" if boosted else "Identity", ["sum"], ["p"])
    graph = helper.make_graph(
        [trees, link],
        "trees",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", columns])],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 1])],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    file = helper.make_model(
        graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="suffice"
    )
    return bytes(file.SerializeToString(deterministic=True))


def _trees(model: Any) -> Iterator[_Tree]:
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )

    if isinstance(model, HistGradientBoostingClassifier):
        for (predictor,) in model._predictors:
            nodes = predictor.nodes
            if nodes["is_categorical"].any():
                raise InputError("a boosted model with categorical columns cannot be saved")
            yield _Tree(
                nodes["feature_idx"],
                nodes["num_threshold"],
                nodes["left"],
                nodes["right"],
                nodes["is_leaf"] > 0,
                nodes["value"],
            )
    elif isinstance(model, ExtraTreesClassifier | RandomForestClassifier):
        for estimator in model.estimators_:
            tree = estimator.tree_
            counts = tree.value[:, 0, :]
            share = counts[:, 1] / counts.sum(axis=1) / len(model.estimators_)
            yield _Tree(
                tree.feature,
                tree.threshold,
                tree.children_left,
                tree.children_right,
                tree.children_left < 0,
                share,
            )
    else:
        raise InputError(f"a {type(model).__name__} is not a tree model that can be saved")


def _tree_attributes(model: Any) -> dict[str, list[Any]]:
    trees = list(_trees(model))
    sizes = [len(tree.leaf) for tree in trees]
    tree_ids = np.repeat(np.arange(len(trees)), sizes)
    node_ids = np.concatenate([np.arange(size) for size in sizes])
    feature, threshold, left, right, leaf, value = (
        np.concatenate([getattr(tree, name) for tree in trees])
        for name in _Tree.__dataclass_fields__
    )
    return {
        "nodes_treeids": tree_ids.tolist(),
        "nodes_nodeids": node_ids.tolist(),
        "nodes_featureids": np.where(leaf, 0, feature).astype(np.int64).tolist(),
        "nodes_values": np.where(leaf, 0, _round_down(threshold)).astype(np.float32).tolist(),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_truenodeids": np.where(leaf, 0, left).astype(np.int64).tolist(),
        "nodes_falsenodeids": np.where(leaf, 0, right).astype(np.int64).tolist(),
        "target_treeids": tree_ids[leaf].tolist(),
        "target_nodeids": node_ids[leaf].tolist(),
        "target_ids": [0] * int(leaf.sum()),
        "target_weights": value[leaf].astype(np.float32).tolist(),
    }


def _round_down(threshold: Floats) -> Floats:
    """The largest float32 that is at most each threshold."""
    near = threshold.astype(np.float32)
    return np.asarray(np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near))


# --- parts: Three small models of the parts: which hits are evidence, which absent names are missing, what the question asks for.

MAX_HOPS = 6.0  # a question that needs more is not told from one that needs this many
MIN_ROWS_FOR_TREES = 20  # rows of either label from which trees are grown; below, a part only knows how often its label holds
HIT_TREES, HIT_LEAVES, ABSENT_TREES = 200, 15, 60
COMPARED_AT_ONCE = 10_000  # hits whose places are worked out at once: a bound on memory
MAX_RIVALS = 50  # hits that every hit is compared with, the first ones: beyond, time would grow with their square
_RELATIVE_AT = np.array([HIT_COLUMNS.index(name) for name in RELATIVE_HIT_COLUMNS])
_NO_HITS, _NO_NAMES = (
    np.zeros((0, len(columns)), np.float32) for columns in (HIT_COLUMNS, ABSENT_COLUMNS)
)


@dataclass(frozen=True, slots=True)
class SubmodelLabels:
    """What is known of a question after the fact: which hits were evidence, which absent names, and the question's targets."""

    complete: bool
    held: Sequence[bool]
    absent: Sequence[bool]
    targets: Mapping[str, float]  # "hops", and kinds or labels as 0/1


def boosted_trees(trees: int, leaf: int, seed: int, *, leaves: int = 7) -> Any:
    """Few-leaved boosted trees that stop at a number, not at a score: the same data gives the same model."""
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,  # late: checking needs no scikit-learn
    )

    return HistGradientBoostingClassifier(
        max_iter=trees, learning_rate=0.06, max_leaf_nodes=leaves, min_samples_leaf=leaf, l2_regularization=5.0,
        max_features=0.6, early_stopping=False, random_state=seed,
    )  # fmt: skip


@dataclass(frozen=True)
class BinaryClassifier:
    """The chance of "yes" for each row: by trees, or where too few rows taught them, how often it was "yes"."""

    columns: int
    share: float
    trees: Any = (
        None  # scikit-learn's when fitted, suffice.gate.model.OnnxTrees when ready or loaded
    )

    @classmethod
    def fit(
        cls,
        rows: Floats,
        yes: npt.NDArray[np.bool_],
        model: Any,
        *,
        fewest: int = MIN_ROWS_FOR_TREES,
    ) -> BinaryClassifier:
        share = float(yes.mean()) if len(yes) else 0.0
        taught = min(yes.sum(), len(yes) - yes.sum()) >= fewest
        return cls(rows.shape[1], share, model.fit(rows, yes) if taught else None)

    def p(self, rows: Floats) -> Floats:
        """(rows,)."""
        if self.trees is None or not len(rows):
            return np.full(len(rows), self.share)
        return (
            self.trees.p(rows)
            if isinstance(self.trees, OnnxTrees)
            else np.asarray(self.trees.predict_proba(rows)[:, 1])
        )

    def ready(self) -> BinaryClassifier:
        """As when loaded: for the few rows of a check scikit-learn takes many times as long. As it is where onnx is missing."""
        if self.trees is None or isinstance(self.trees, OnnxTrees):
            return self
        try:
            return replace(
                self, trees=OnnxTrees(trees_to_onnx(self.trees, self.columns), columns=self.columns)
            )
        except MissingExtraError:
            return self

    def save(self, path: Path) -> dict[str, Any]:
        """Write the trees, if there are any; what else there is to know is returned."""
        if self.trees is not None:
            loaded = isinstance(self.trees, OnnxTrees)
            write_atomically(
                path, self.trees.content if loaded else trees_to_onnx(self.trees, self.columns)
            )
        return {"columns": self.columns, "share": self.share, "trees": self.trees is not None}

    @classmethod
    def load(cls, path: Path, told: Mapping[str, Any]) -> BinaryClassifier:
        columns, share = int(told["columns"]), float(told["share"])
        return cls(
            columns,
            share,
            OnnxTrees(np.fromfile(path, np.uint8).tobytes(), columns=columns)
            if told["trees"]
            else None,
        )


class Submodels:
    """The models of the parts, fitted together and saved together."""

    hit: BinaryClassifier
    absent: BinaryClassifier
    question: QuestionModel

    def __init__(self, words: WordTable, *, seed: int = 0) -> None:
        self.words, self.seed = words, seed

    def fit(
        self,
        asked: Sequence[ParsedQuestion],
        readings: Sequence[Extraction],
        lessons: Sequence[SubmodelLabels],
        hit_more: Sequence[Floats] | None = None,
    ) -> Submodels:
        hits = hit_features(readings, hit_more)
        trees = boosted_trees(HIT_TREES, 40, self.seed, leaves=HIT_LEAVES)
        self.hit = BinaryClassifier.fit(hits, _flatten([one.held for one in lessons]), trees)
        names = np.concatenate([reading.absent for reading in readings])
        self.absent = BinaryClassifier.fit(
            names,
            _flatten([one.absent for one in lessons]),
            boosted_trees(ABSENT_TREES, 30, self.seed),
        )
        kinds = {
            name: [one.targets[name] for one in lessons]
            for name in lessons[0].targets
            if name != "hops"
        }
        hops = [min(one.targets["hops"], MAX_HOPS) for one in lessons]
        held = [float(sum(one.held)) for one in lessons]
        complete = [float(one.complete) for one in lessons]
        self.question = QuestionModel(self.words).fit(
            asked, {"hops": hops, "held": held, **kinds, "complete": complete}
        )
        return self

    def ready(self) -> Submodels:
        self.hit, self.absent = self.hit.ready(), self.absent.ready()
        return self

    @property
    def features(self) -> tuple[Feature, ...]:
        return feature_table(self.question.targets)

    @property
    def hit_more(self) -> int:
        """How many columns beside its own a hit must have."""
        return self.hit.columns - len(HIT_COLUMNS) - 2 * len(RELATIVE_HIT_COLUMNS)

    def describe(
        self,
        asked: Sequence[ParsedQuestion],
        readings: Sequence[Extraction],
        hit_more: Sequence[Floats] | None = None,
    ) -> Floats:
        """(questions, features), float32."""
        return self.judge(asked, readings, hit_more)[0]

    def judge(
        self,
        asked: Sequence[ParsedQuestion],
        readings: Sequence[Extraction],
        hit_more: Sequence[Floats] | None = None,
    ) -> tuple[Floats, list[Floats]]:
        """The description, and what it came from: for each question the chance of each absent name."""
        by_hit, by_name = (
            self.hit_probabilities(readings, hit_more),
            self.absent_probabilities(readings),
        )
        p_held, p_absent = ([block.tolist() for block in blocks] for blocks in (by_hit, by_name))
        whole = np.array([reading.whole for reading in readings], dtype=np.float32).reshape(
            -1, len(SET_COLUMNS)
        )
        rows = question_features(asked)
        return gate_features(
            whole, p_held, p_absent, self.question.predict(asked, rows), rows
        ), by_name

    def hit_probabilities(
        self, readings: Sequence[Extraction], hit_more: Sequence[Floats] | None = None
    ) -> list[Floats]:
        """For each question the chance of each hit to be evidence, in the order of the hits."""
        return _probabilities_by_question(
            self.hit, hit_features(readings, hit_more), [len(reading.hits) for reading in readings]
        )

    def absent_probabilities(self, readings: Sequence[Extraction]) -> list[Floats]:
        """For each question the chance of each absent name to be missing evidence, in their order."""
        rows = np.concatenate([reading.absent for reading in readings] or [_NO_NAMES])
        return _probabilities_by_question(
            self.absent, rows, [len(reading.absent) for reading in readings]
        )

    def save(self, folder: Path) -> dict[str, Any]:
        self.question.save(folder)
        return {
            name: getattr(self, name).save(folder / f"{name}.onnx") for name in ("hit", "absent")
        }

    @classmethod
    def load(
        cls, folder: Path, told: Mapping[str, Any], words: WordTable, *, seed: int
    ) -> Submodels:
        parts = cls(words, seed=seed)
        parts.question = QuestionModel.load(folder, words)
        parts.hit, parts.absent = (
            BinaryClassifier.load(folder / f"{name}.onnx", told[name]) for name in ("hit", "absent")
        )
        return parts


def hit_features(readings: Sequence[Extraction], hit_more: Sequence[Floats] | None) -> Floats:
    """The hits of all questions: as read, as they stand among the others, and extra columns where there are any."""
    blocks = [reading.hits for reading in readings]
    if hit_more is not None and (
        len(hit_more) != len(blocks)
        or any(np.ndim(more) != 2 or len(more) != len(own) for more, own in zip(hit_more, blocks))
    ):
        raise InputError(
            "hit_more must have a block for each question, and in it a row for each hit"
        )
    hits = np.concatenate(blocks or [_NO_HITS])
    parts = [hits, relative_hit_features(hits, list(map(len, blocks)))]
    if hit_more:
        parts.append(np.nan_to_num(np.concatenate(hit_more)))
    return np.concatenate(parts, axis=1, dtype=np.float32)


def relative_hit_features(hits: Floats, counts: Sequence[int]) -> Floats:
    """By how much each hit leads the best other one of its question, and the share of the others above it.

    (hits, HIT_COLUMNS) of all questions, and how many hits each has, to (hits, 2 * AMONG). A hit alone leads nobody: zeros.
    Questions with as many hits are worked out together.
    """
    found = np.zeros((len(hits), 2 * len(RELATIVE_HIT_COLUMNS)), dtype=np.float32)
    together = np.repeat(counts, counts)  # of each hit: how many hits its question has
    for k in set(counts) - {0, 1}:
        rows, step = np.flatnonzero(together == k), k * (1 + COMPARED_AT_ONCE // k)
        for some in (rows[start : start + step] for start in range(0, len(rows), step)):
            found[some] = _relative_hit_features(hits[some].reshape(-1, k, hits.shape[1])).reshape(
                len(some), -1
            )
    return found


def _relative_hit_features(hits: Floats) -> Floats:
    """(questions, hits, HIT_COLUMNS) to (questions, hits, 2 * AMONG)."""
    k, seen = hits.shape[1], hits.take(_RELATIVE_AT, axis=2)
    ordered = np.sort(seen, axis=1)
    best, second = ordered[:, -1:], ordered[:, -2:-1]
    lead = seen - np.where(seen == best, second, best)
    above = (seen[:, None, :MAX_RIVALS] > seen[:, :, None]).sum(2) / min(k - 1, MAX_RIVALS)
    return np.concatenate([lead, above], axis=2, dtype=np.float32)


def _probabilities_by_question(
    judge: BinaryClassifier, rows: Floats, counts: list[int]
) -> list[Floats]:
    p, ends = judge.p(rows), list(accumulate(counts))
    return [p[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _flatten(blocks: Sequence[Sequence[bool]]) -> npt.NDArray[np.bool_]:
    return np.array([flag for block in blocks for flag in block], dtype=bool)


def check_submodel_labels(
    asked: Sequence[ParsedQuestion],
    readings: Sequence[Extraction],
    lessons: Sequence[SubmodelLabels],
) -> None:
    """InputError names the first lesson that does not fit its reading."""
    if not len(asked) == len(readings) == len(lessons):
        raise InputError(
            f"{len(asked)} questions, {len(readings)} readings and {len(lessons)} lessons, expected as many of each"
        )
    for place, (reading, lesson) in enumerate(zip(readings, lessons, strict=True), start=1):
        if reading.hits.shape[1:] != (len(HIT_COLUMNS),) or reading.absent.shape[1:] != (
            len(ABSENT_COLUMNS),
        ):
            raise InputError(f"reading {place} has other columns than this suffice reads")
        if len(lesson.held) != len(reading.hits) or len(lesson.absent) != len(reading.absent):
            raise InputError(
                f"lesson {place} has {len(lesson.held)} hits and {len(lesson.absent)} absent names, its reading "
                f"{len(reading.hits)} and {len(reading.absent)}"
            )
        if lesson.targets.keys() != lessons[0].targets.keys() or "hops" not in lesson.targets:
            raise InputError(
                f"lesson {place} has the targets {sorted(lesson.targets)}, expected 'hops' and the same in each"
            )


# --- whole: The gate over the whole: four unlike models of one table, whose weighted mean log-odds is the gate's.

Bools = npt.NDArray[np.bool_]
BOOSTED_TREES, EXTRA_TREES, EXTRA_LEAVES = 120, 100, 64
STEADY_SHARE = 0.6  # of the steady model, where many data sets teach
STEADY_PENALTY = 0.01  # that holds its weights back
_LINEAR_PARTS, _TREE_PARTS = ("linear", "steady"), ("boosted", "extra")


@dataclass(frozen=True)
class LinearModel:
    """Logistic regression; it was fitted on standardised columns, which its weights make up for."""

    weights: Floats
    offset: float

    @classmethod
    def fit(cls, rows: Floats, yes: Bools) -> LinearModel:
        from sklearn.linear_model import LogisticRegression  # late: checking needs no scikit-learn

        mean, scale = _mean_and_scale(rows)
        model = LogisticRegression(C=0.01, max_iter=2000).fit((rows - mean) / scale, yes)
        weights = model.coef_[0] / scale
        return cls(weights, float(model.intercept_[0] - mean @ weights))

    @classmethod
    def steady(
        cls, rows: Floats, yes: Bools, weights: Floats, directions: npt.NDArray[np.int_]
    ) -> LinearModel:
        """Columns of direction 1 get no negative weight, those of -1 no positive one, all others none."""
        from scipy.optimize import minimize  # late: checking needs no scipy

        used = np.flatnonzero(directions)
        mean, scale = _mean_and_scale(rows[:, used])
        forward = (rows[:, used] - mean) / scale * directions[used]

        def loss(told: Floats) -> tuple[float, Floats]:
            odds = forward @ told[1:] + told[0]
            missed = weights * (1 / (1 + np.exp(-odds)) - yes)
            slope = np.concatenate([[missed.sum()], missed @ forward + STEADY_PENALTY * told[1:]])
            return float(
                weights @ (np.logaddexp(0, odds) - yes * odds)
                + STEADY_PENALTY / 2 * told[1:] @ told[1:]
            ), slope

        bounds = [(None, None)] + [(0, None)] * len(used)
        found = minimize(
            loss, np.zeros(1 + len(used)), jac=True, bounds=bounds, method="L-BFGS-B"
        ).x
        whole = np.zeros(rows.shape[1])
        whole[used] = found[1:] * directions[used] / scale
        return cls(whole, float(found[0] - mean @ whole[used]))

    def as_json(self) -> dict[str, Any]:
        return {"weights": self.weights.tolist(), "offset": self.offset}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> LinearModel:
        return cls(np.array(told["weights"], dtype=float), float(told["offset"]))


@dataclass(frozen=True)
class Ensemble:
    """The four models, and the share of the steady one."""

    linear: LinearModel
    steady: LinearModel
    boosted: BinaryClassifier
    extra: BinaryClassifier
    share: float

    @classmethod
    def fit(
        cls,
        rows: Floats,
        yes: Bools,
        names: Sequence[str],
        *,
        sets: npt.NDArray[Any] | None = None,
        seed: int = 0,
    ) -> Ensemble:
        """`names` are those of the columns, `sets` the data set of each row where there are several."""
        from sklearn.ensemble import ExtraTreesClassifier  # late: checking needs no scikit-learn

        extra = ExtraTreesClassifier(
            EXTRA_TREES,
            min_samples_leaf=4,
            max_leaf_nodes=EXTRA_LEAVES,
            max_features=0.3,
            random_state=seed,
        )
        first, second = (
            BinaryClassifier.fit(rows, yes, model, fewest=1)
            for model in (boosted_trees(BOOSTED_TREES, 25, seed), extra)
        )
        directions = np.array([STEADY_DIRECTIONS.get(name, 0) for name in names])
        weights, teaching = _balanced_weights(yes, np.zeros(len(yes)) if sets is None else sets)
        steady = LinearModel.steady(rows, yes, weights, directions)
        return cls(
            LinearModel.fit(rows, yes), steady, first, second, STEADY_SHARE * (1 - 1 / teaching)
        )

    def ready(self) -> Ensemble:
        return replace(self, boosted=self.boosted.ready(), extra=self.extra.ready())

    @property
    def columns(self) -> set[int]:
        """How many columns the models take; one number, where they fit together."""
        return {
            len(self.linear.weights),
            len(self.steady.weights),
            self.boosted.columns,
            self.extra.columns,
        }

    def odds(self, rows: Floats) -> Floats:
        """(rows, columns) to (rows,)."""
        weights, offsets = self._lines
        lines = np.minimum(np.maximum(rows @ weights + offsets, -_MAX_LOG_ODDS), _MAX_LOG_ODDS)
        trees = clipped_logit(
            np.array([self.boosted.p(rows), self.extra.p(rows)], dtype=float)
        ).sum(0)
        return np.asarray((1 - self.share) * (lines[:, 0] + trees) / 3 + self.share * lines[:, 1])

    @cached_property
    def _lines(self) -> tuple[Floats, Floats]:
        """The weights of both linear models, a column each, and their offsets."""
        both = self.linear, self.steady
        return np.array([one.weights for one in both]).T.copy(), np.array(
            [one.offset for one in both]
        )

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the trees; what else there is to know is returned."""
        told = {name: getattr(self, name).as_json() for name in _LINEAR_PARTS}
        told |= {name: getattr(self, name).save(folder / f"{name}.onnx") for name in _TREE_PARTS}
        return {**told, "share": self.share}

    @classmethod
    def load(cls, folder: Path, told: Mapping[str, Any]) -> Ensemble:
        linear, steady = (LinearModel.from_json(told[name]) for name in _LINEAR_PARTS)
        first, second = (
            BinaryClassifier.load(folder / f"{name}.onnx", told[name]) for name in _TREE_PARTS
        )
        return cls(linear, steady, first, second, float(told["share"]))


_MAX_LOG_ODDS = float(
    clipped_logit(np.array(1.0))
)  # no model may shout louder than trees that are sure


def _mean_and_scale(rows: Floats) -> tuple[Floats, Floats]:
    mean, scale = rows.mean(0, dtype=float), rows.std(0, dtype=float)
    scale[scale < 1e-9] = 1.0
    return mean, scale


def _balanced_weights(yes: Bools, sets: npt.NDArray[Any]) -> tuple[Floats, int]:
    """Weights by which every set counts alike, and in it both labels; and how many sets have both and so teach something."""
    weights = np.zeros(len(yes))
    teaching = 0
    for one in np.unique(sets):
        mine = sets == one
        if len(np.unique(yes[mine])) == 2:
            teaching += 1
            for label in (mine & yes, mine & ~yes):
                weights[label] = 0.5 / label.sum()
    if (
        not teaching
    ):  # every set is all complete or not at all: they teach together what none teaches alone
        return _balanced_weights(yes, np.zeros(len(yes)))
    return weights / teaching, teaching


# --- model: From readings to a probability: the models of the parts, then the gate over the whole.

Ints = npt.NDArray[np.integer[Any]]
MODEL_FORMAT = 1
MODEL_FOLDS = 5
MODEL_RECORD = "model.json"
REFIT = "fit and save the gate again"


class GateModel:
    """The probability that the hits hold all the evidence.

    `more` is (questions, m) extra columns of the whole, `hit_more` a (hits, h) block for each question: a model fitted with
    them wants them ever after. After `fit`, `odds_at_fit` and `table_at_fit` hold the odds and the features of each training
    question by models that have not seen it: what a calibration or a policy may be fitted on.
    """

    odds_at_fit: Floats
    table_at_fit: Floats
    _parts: Submodels
    _whole: Ensemble
    _scale: Platt

    def __init__(self, words: WordTable, *, seed: int = 0) -> None:
        self.words, self.seed = words, seed
        self._more: tuple[Feature, ...] = ()

    def fit(
        self,
        asked: Sequence[ParsedQuestion],
        readings: Sequence[Extraction],
        lessons: Sequence[SubmodelLabels],
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
        check_submodel_labels(asked, readings, lessons)
        complete = np.array([one.complete for one in lessons], dtype=bool)
        folds = list(
            _cross_folds(complete, range(len(lessons)) if groups is None else groups, self.seed)
        )
        table = self._described(asked, readings, lessons, hit_more, folds)
        self._more = _extra_features(0 if more is None else np.shape(more)[1], named)
        table = _append_extra(table, more, len(self._more))
        self._parts = (
            Submodels(self.words, seed=self.seed).fit(asked, readings, lessons, hit_more).ready()
        )
        names, of_set = [one.name for one in self.features], _data_sets(sets, len(lessons))
        odds = np.empty(len(lessons))
        for rest, held in folds:
            whole = Ensemble.fit(
                table[rest], complete[rest], names, sets=of_set[rest], seed=self.seed
            )
            odds[held] = whole.odds(table[held])
        self.odds_at_fit, self.table_at_fit = odds, table
        self._scale = Platt.fit(odds, complete)
        self._whole = Ensemble.fit(table, complete, names, sets=of_set, seed=self.seed).ready()
        return self

    def _described(
        self,
        asked: Sequence[ParsedQuestion],
        readings: Sequence[Extraction],
        lessons: Sequence[SubmodelLabels],
        hit_more: Sequence[Floats] | None,
        folds: list[tuple[Ints, Ints]],
    ) -> Floats:
        """Each question as described by parts that have not seen it."""
        blocks, order = [], []
        for rest, held in folds:
            taught = (
                _select(asked, rest),
                _select(readings, rest),
                _select(lessons, rest),
                _select(hit_more, rest),
            )
            parts = Submodels(self.words, seed=self.seed).fit(*taught)
            blocks.append(
                parts.describe(
                    _select(asked, held), _select(readings, held), _select(hit_more, held)
                )
            )
            order.append(held)
        return np.asarray(np.concatenate(blocks)[np.argsort(np.concatenate(order))])

    # -------------------------------------------------------------------------------------------- looking

    @property
    def features(self) -> tuple[Feature, ...]:
        """What the columns of `describe` are."""
        return (*self._fitted.features, *self._more)

    @property
    def _fitted(self) -> Submodels:
        if not hasattr(self, "_parts"):
            raise NotReadyError(
                "the gate's model is not fitted", hint="call fit, or load a saved one"
            )
        return self._parts

    def hops(self, asked: Sequence[ParsedQuestion]) -> Floats:
        """How many documents the question model expects each question to need: (questions,)."""
        question = self._fitted.question
        return question.predict(asked)[:, question.targets.index("hops")]

    def describe(
        self,
        asked: Sequence[ParsedQuestion],
        readings: Sequence[Extraction],
        *,
        more: Floats | None = None,
        hit_more: Sequence[Floats] | None = None,
    ) -> Floats:
        """What the gate looks at: (questions, features), float32."""
        return self.judge(asked, readings, more=more, hit_more=hit_more)[0]

    def judge(
        self,
        asked: Sequence[ParsedQuestion],
        readings: Sequence[Extraction],
        *,
        more: Floats | None = None,
        hit_more: Sequence[Floats] | None = None,
    ) -> tuple[Floats, list[Floats]]:
        """The same, and for each question the chance of each absent name to be missing evidence."""
        parts = self._fitted
        wanted = parts.hit_more
        given = (
            {np.shape(block)[-1] for block in hit_more}
            if hit_more
            else {wanted if hit_more is not None else 0}
        )
        if len(asked) and given != {wanted}:
            raise InputError(
                f"hit_more has {sorted(given)} columns, the model was fitted with {wanted}"
            )
        table, p_absent = parts.judge(asked, readings, hit_more)
        return _append_extra(table, more, len(self._more)), p_absent

    def odds(self, table: Floats) -> Floats:
        """The log-odds of the whole, before calibration: (questions, features) to (questions,)."""
        return self._whole.odds(table) if len(table) else np.zeros(0)

    def predict(
        self, asked: Sequence[ParsedQuestion], readings: Sequence[Extraction], **more: Any
    ) -> Floats:
        """p_complete: (questions,). `more` and `hit_more` as in `describe`."""
        odds = self.odds(self.describe(asked, readings, **more))
        return self._scale.apply(odds)

    # -------------------------------------------------------------------------------------------- keeping

    @property
    def settings(self) -> dict[str, Any]:
        """What made the model, beside the data."""
        trees = {
            "hit": HIT_TREES,
            "absent": ABSENT_TREES,
            "boosted": BOOSTED_TREES,
            "extra": EXTRA_TREES,
        }
        return {
            "seed": self.seed,
            "folds": MODEL_FOLDS,
            "trees": trees,
            "more": [list(one[:3]) for one in self._more],
        }

    def _schema(self) -> str:
        """A hash of every column the model looks at."""
        named = [
            HIT_COLUMNS,
            ABSENT_COLUMNS,
            [one.name for one in self.features],
            self._parts.hit.columns,
        ]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()

    def save(self, folder: Path) -> None:
        """Write the model's files into an existing folder. The same data and seed give the same bytes."""
        folder = Path(folder)
        record = {
            "format": MODEL_FORMAT,
            "parts": self._fitted.save(folder),
            "whole": self._whole.save(folder),
            "scale": self._scale.as_json(),
            "settings": self.settings,
            "schema": self._schema(),
        }
        write_atomically(folder / MODEL_RECORD, json.dumps(record, sort_keys=True) + "\n")

    @classmethod
    def load(cls, folder: Path, words: WordTable | None = None) -> GateModel:
        """A model that `save` wrote. DataError where a file is damaged, NotReadyError where format or columns are others."""
        folder = Path(folder)
        try:
            told = {entry.key: entry.value for entry in read_json_object(folder / MODEL_RECORD)}
            if told["format"] != MODEL_FORMAT:
                raise NotReadyError(
                    f"{folder} has model format {told['format']}, this suffice reads {MODEL_FORMAT}",
                    hint=REFIT,
                )
            settings = told["settings"]
            model = cls(words or WordTable.load(), seed=int(settings["seed"]))
            model._more = tuple(Feature(*map(str, one)) for one in settings["more"] or ())
            model._parts = Submodels.load(folder, told["parts"], model.words, seed=model.seed)
            if told["schema"] != model._schema():
                raise NotReadyError(
                    f"the model in {folder} looks at other columns than this suffice has",
                    hint=REFIT,
                )
            model._whole = Ensemble.load(folder, told["whole"])
            model._scale = Platt.from_json(told["scale"])
            if model._whole.columns != {len(model.features)}:
                raise ValueError("its parts have unlike columns")
        except (DataError, NotReadyError):
            raise
        except (SufficeError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"the model in {folder} cannot be read: {error!r}", hint=REFIT
            ) from error
        return model


def _cross_folds(complete: Bools, groups: Sequence[Any], seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Positions to fit on and positions to describe, both labels in the first, no group in both."""
    from sklearn.model_selection import StratifiedGroupKFold  # late: checking needs no scikit-learn

    if len(groups) != len(complete):
        raise InputError(f"{len(groups)} groups for {len(complete)} questions")
    fewest = min(complete.sum(), (~complete).sum()) if len(complete) else 0
    if fewest < MODEL_FOLDS:
        raise InputError(
            f"{int(complete.sum())} of {len(complete)} questions are complete, expected at least {MODEL_FOLDS}, and {MODEL_FOLDS} others",
            hint="label more questions",
        )
    _, of_group = np.unique(
        np.array([str(one) for one in groups], dtype=object), return_inverse=True
    )
    if of_group.max() + 1 < MODEL_FOLDS:
        raise InputError(
            f"{of_group.max() + 1} different questions, expected at least {MODEL_FOLDS}"
        )
    split = StratifiedGroupKFold(MODEL_FOLDS, shuffle=True, random_state=seed)
    for rest, held in split.split(complete, complete, of_group):
        if len(np.unique(complete[rest])) < 2:
            raise InputError(
                "all complete questions, or all others, have the same words",
                hint="label more questions",
            )
        if len(held):
            yield rest, held


def _data_sets(sets: Sequence[str] | None, questions: int) -> npt.NDArray[Any]:
    if sets is not None and len(sets) != questions:
        raise InputError(f"{len(sets)} data sets for {questions} questions")
    return (
        np.zeros(questions, dtype=object)
        if sets is None
        else np.array([str(one) for one in sets], dtype=object)
    )


def _extra_features(columns: int, named: Sequence[Feature]) -> tuple[Feature, ...]:
    """What the caller's columns are: as named, and behind those numbered."""
    numbered = (
        Feature("more", f"more_{at}", f"Extra column {at} of the caller's.")
        for at in range(len(named), columns)
    )
    return (*named[:columns], *numbered)


def _append_extra(table: Floats, more: Floats | None, columns: int) -> Floats:
    if more is None and not columns:
        return table
    shape = np.shape(more) if more is not None else (len(table), 0)
    if shape != (len(table), columns):
        raise InputError(f"more has shape {shape}, expected {(len(table), columns)}")
    return np.column_stack([table, np.nan_to_num(np.asarray(more))]).astype(np.float32)


def _select(items: Sequence[Any] | None, at: Ints) -> Any:
    return None if items is None else [items[i] for i in at]
