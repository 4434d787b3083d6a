"""Tree models: fitted with scikit-learn, saved as ONNX, run by onnxruntime alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, MissingExtraError
from suffice.storage import write_atomically
from suffice.storage.artefacts import OnnxTrees

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
Record = Mapping[str, Any]  # JSON
# The oldest formats that support tree models, so that old runtimes can read them.
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8


def trees_to_onnx(model: Any, columns: int) -> bytes:
    """A fitted two-class tree model of scikit-learn as an ONNX file; the same bytes every time.

    Why not skl2onnx: it rejects boosted models under current protobuf. Also, a threshold between
    two float32 values must be rounded down, so that float32 rows take the same branch as in
    scikit-learn, which compares in float64.
    """
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        raise MissingExtraError("saving a fitted gate", extra="fit") from error
    if len(getattr(model, "classes_", ())) != 2:
        raise InputError("only a fitted model of two classes can be saved")
    boosted = hasattr(model, "_baseline_prediction")
    base = [float(model._baseline_prediction.ravel()[0])] if boosted else [0.0]
    attributes: dict[str, Any] = {"n_targets": 1, "aggregate_function": "SUM", "base_values": base}
    attributes |= _tree_attributes(list(_trees(model)))
    attributes["domain"] = "ai.onnx.ml"
    trees = helper.make_node("TreeEnsembleRegressor", ["rows"], ["sum"], **attributes)
    link = helper.make_node("Sigmoid" if boosted else "Identity", ["sum"], ["p"])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", columns])
    p = helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 1])
    graph = helper.make_graph([trees, link], "trees", [rows], [p])
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    about = {"ir_version": IR_VERSION, "producer_name": "suffice"}
    file = helper.make_model(graph, opset_imports=opsets, **about)
    return bytes(file.SerializeToString(deterministic=True))


class _Tree(NamedTuple):
    """One tree as arrays over its nodes. A row goes left if its value is at most the threshold."""

    feature: npt.NDArray[Any]
    threshold: npt.NDArray[Any]
    left: npt.NDArray[Any]
    right: npt.NDArray[Any]
    leaf: Bools
    value: npt.NDArray[Any]  # counts only at leaves


def _trees(model: Any) -> Iterator[_Tree]:
    from sklearn import ensemble

    if isinstance(model, ensemble.HistGradientBoostingClassifier):
        for (predictor,) in model._predictors:
            nodes = predictor.nodes
            if nodes["is_categorical"].any():
                raise InputError("a boosted model with categorical columns cannot be saved")
            feature, threshold = nodes["feature_idx"], nodes["num_threshold"]
            left, right, leaf = nodes["left"], nodes["right"], nodes["is_leaf"] > 0
            yield _Tree(feature, threshold, left, right, leaf, nodes["value"])
    elif isinstance(model, ensemble.ExtraTreesClassifier | ensemble.RandomForestClassifier):
        for estimator in model.estimators_:
            tree = estimator.tree_
            left, right = tree.children_left, tree.children_right
            counts = tree.value[:, 0, :]
            share = counts[:, 1] / counts.sum(axis=1) / len(model.estimators_)
            yield _Tree(tree.feature, tree.threshold, left, right, left < 0, share)
    else:
        raise InputError(f"a {type(model).__name__} is not a tree model that can be saved")


def _tree_attributes(trees: list[_Tree]) -> dict[str, list[Any]]:
    sizes = [len(tree.leaf) for tree in trees]
    tree_ids = np.repeat(np.arange(len(trees)), sizes)
    node_ids = np.concatenate([np.arange(size) for size in sizes])
    nodes = _Tree(*(np.concatenate(parts) for parts in zip(*trees, strict=True)))
    leaf, near = nodes.leaf, nodes.threshold.astype(np.float32)
    below = np.nextafter(near, np.float32(-np.inf))
    rounded_down = np.where(near > nodes.threshold, below, near)
    feature, left, right = (
        np.where(leaf, 0, one).astype(np.int64) for one in (nodes.feature, nodes.left, nodes.right)
    )
    return {
        "nodes_treeids": tree_ids.tolist(),
        "nodes_nodeids": node_ids.tolist(),
        "nodes_featureids": feature.tolist(),
        "nodes_values": np.where(leaf, 0, rounded_down).astype(np.float32).tolist(),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_truenodeids": left.tolist(),
        "nodes_falsenodeids": right.tolist(),
        "target_treeids": tree_ids[leaf].tolist(),
        "target_nodeids": node_ids[leaf].tolist(),
        "target_ids": [0] * int(leaf.sum()),
        "target_weights": nodes.value[leaf].astype(np.float32).tolist(),
    }


def boosted_trees(trees: int, leaf: int, seed: int, *, leaves: int = 7) -> Any:
    """Boosted trees with few leaves and a fixed number of rounds: deterministic."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # lazy: needs the `fit` extra

    return HistGradientBoostingClassifier(
        max_iter=trees, learning_rate=0.06, max_leaf_nodes=leaves, min_samples_leaf=leaf,
        l2_regularization=5.0, max_features=0.6, early_stopping=False, random_state=seed,
    )  # fmt: skip


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
