"""Tree models when a gate is fitted: grown by scikit-learn, and written as ONNX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, MissingExtraError

Bools = npt.NDArray[np.bool_]
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
