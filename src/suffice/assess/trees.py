"""Tree models as ONNX: written from what scikit-learn fitted, run by onnxruntime, equal to scikit-learn to the last split.

The graph gives one number per row, the probability of "yes". It is written here and not by skl2onnx because the converter
rejects boosted models under current protobuf, and because a threshold between two float32 values has to be rounded down: only
then does a float32 row fall to the same side as in scikit-learn, which compares in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError, MissingExtraError
from suffice.files.weights import open_network

__all__ = ["Trees", "to_onnx"]

Floats = npt.NDArray[np.floating[Any]]
# The oldest formats that can say all this, so that old runtimes read it too.
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
_OUTPUTS = ["p"]
ROUNDED = 1e-3  # sums of many small shares may miss one by a little
AT_ONCE = 256  # rows of one run: from some 1,000 on, onnxruntime takes four times as long for each


class Trees:
    """A saved tree model. One thread: a check is too short to share."""

    def __init__(self, content: bytes, *, columns: int) -> None:
        """`content` are the bytes of an ONNX file, kept so that a loaded gate can be saved again; DataError where they are
        damaged or want other columns.
        """
        self.content = content
        self._session = open_network(content, threads=1, hint="fit and save the gate again")
        shapes = [(one.name, one.shape[1:]) for one in self._session.get_inputs()]
        if shapes != [("rows", [columns])] or [one.name for one in self._session.get_outputs()] != _OUTPUTS:
            raise DataError(f"a tree model takes {shapes}, expected 'rows' of {columns} columns", hint="fit the gate again")

    def p(self, rows: Floats) -> Floats:
        """The probability of "yes": (rows,), float32."""
        if not len(rows):
            return np.zeros(0)
        given = np.ascontiguousarray(rows, dtype=np.float32)
        try:
            found = [self._session.run(_OUTPUTS, {"rows": given[at : at + AT_ONCE]})[0] for at in range(0, len(rows), AT_ONCE)]
            p = np.asarray(found[0] if len(found) == 1 else np.concatenate(found)).ravel()
        except Exception as error:  # onnxruntime raises classes of its own that it does not export
            raise DataError(f"a tree model fails: {error}", hint="fit and save the gate again") from error
        if p.shape != (len(rows),):
            raise DataError(f"a tree model gives {len(p)} numbers for {len(rows)} rows", hint="fit and save the gate again")
        if not (p.min() > -ROUNDED and p.max() < 1 + ROUNDED):
            raise DataError("a tree model gives what is no probability", hint="fit and save the gate again")
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


def to_onnx(model: Any, columns: int) -> bytes:
    """A fitted two-class tree model of scikit-learn as an ONNX file. The same model gives the same bytes."""
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        raise MissingExtraError("saving a fitted gate", extra="fit") from error
    if len(getattr(model, "classes_", ())) != 2:
        raise InputError("only a fitted model of two classes can be saved")
    boosted = hasattr(model, "_baseline_prediction")
    base = [float(model._baseline_prediction.ravel()[0])] if boosted else [0.0]
    attributes: dict[str, Any] = {"n_targets": 1, "aggregate_function": "SUM", "base_values": base, **_attributes(model)}
    trees = helper.make_node("TreeEnsembleRegressor", ["rows"], ["sum"], domain="ai.onnx.ml", **attributes)
    link = helper.make_node("Sigmoid" if boosted else "Identity", ["sum"], ["p"])
    graph = helper.make_graph(
        [trees, link],
        "trees",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", columns])],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 1])],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    file = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="suffice")
    return bytes(file.SerializeToString(deterministic=True))


def _trees(model: Any) -> Iterator[_Tree]:
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier

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
            yield _Tree(tree.feature, tree.threshold, tree.children_left, tree.children_right, tree.children_left < 0, share)
    else:
        raise InputError(f"a {type(model).__name__} is not a tree model that can be saved")


def _attributes(model: Any) -> dict[str, list[Any]]:
    trees = list(_trees(model))
    sizes = [len(tree.leaf) for tree in trees]
    tree_ids = np.repeat(np.arange(len(trees)), sizes)
    node_ids = np.concatenate([np.arange(size) for size in sizes])
    feature, threshold, left, right, leaf, value = (
        np.concatenate([getattr(tree, name) for tree in trees]) for name in _Tree.__dataclass_fields__
    )
    return {
        "nodes_treeids": tree_ids.tolist(),
        "nodes_nodeids": node_ids.tolist(),
        "nodes_featureids": np.where(leaf, 0, feature).astype(np.int64).tolist(),
        "nodes_values": np.where(leaf, 0, _rounded_down(threshold)).astype(np.float32).tolist(),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_truenodeids": np.where(leaf, 0, left).astype(np.int64).tolist(),
        "nodes_falsenodeids": np.where(leaf, 0, right).astype(np.int64).tolist(),
        "target_treeids": tree_ids[leaf].tolist(),
        "target_nodeids": node_ids[leaf].tolist(),
        "target_ids": [0] * int(leaf.sum()),
        "target_weights": value[leaf].astype(np.float32).tolist(),
    }


def _rounded_down(threshold: Floats) -> Floats:
    """The largest float32 that is at most each threshold."""
    near = threshold.astype(np.float32)
    return np.asarray(np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near))
