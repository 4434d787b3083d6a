"""Files that mean harm, made here so that none has to lie in the repository: models, arrays, archives, manifests."""

from __future__ import annotations

from typing import Any

__all__ = ["tree_model"]


def tree_model(columns: int, **changes: Any) -> bytes:
    """A tree of one split in the layout of suffice.assess.trees; `changes` to the attributes of its node."""
    from onnx import TensorProto, helper

    attributes = {
        "n_targets": 1, "aggregate_function": "SUM", "base_values": [0.0], "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [0.25, 0.75], **changes,
    }  # fmt: skip
    trees = helper.make_node("TreeEnsembleRegressor", ["rows"], ["sum"], domain="ai.onnx.ml", **attributes)
    link = helper.make_node("Identity", ["sum"], ["p"])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", columns])
    p = helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 1])
    graph = helper.make_graph([trees, link], "trees", [rows], [p])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString(deterministic=True))
