"""Malicious files, generated so that none has to be in the repository: networks, arrays, archives."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib import format as npy
from onnx import TensorProto, helper

__all__ = [
    "expanding_network",
    "external_weights",
    "network_with_weights",
    "oversized_array_header",
    "oversized_weights",
    "pickled_array",
    "tree_model",
    "zip_bomb",
]


def tree_model(columns: int, **changes: Any) -> bytes:
    """A tree with one split in the layout of suffice.gate.model; `changes` override its attributes."""
    attributes = {
        "n_targets": 1, "aggregate_function": "SUM", "base_values": [0.0], "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [0.25, 0.75], **changes,
    }  # fmt: skip
    trees = helper.make_node(
        "TreeEnsembleRegressor", ["rows"], ["sum"], domain="ai.onnx.ml", **attributes
    )
    return _network([trees, helper.make_node("Identity", ["sum"], ["p"])], columns)


def network_with_weights(weights: TensorProto, columns: int, operator: str = "Add") -> bytes:
    """A network that adds weights to its rows, or uses an operator that no runtime knows."""
    return _network([helper.make_node(operator, ["rows", "w"], ["p"])], columns, [weights])


def external_weights(location: str, columns: int) -> TensorProto:
    """Weights that claim to be in another file."""
    weights = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=[1, columns], data_location=TensorProto.EXTERNAL
    )
    for key, value in (("location", location), ("offset", "0"), ("length", str(4 * columns))):
        weights.external_data.add(key=key, value=value)
    return weights


def oversized_weights(dims: Sequence[int]) -> TensorProto:
    """Weights that claim to be larger than they are."""
    return TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=b"\0" * 16)


def expanding_network(columns: int) -> bytes:
    """A network of a few bytes that asks for four terabytes when it runs."""
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [2**40, 1])
    return _network([helper.make_node("ConstantOfShape", ["s"], ["p"])], columns, [shape])


def _network(nodes: Sequence[Any], columns: int, weights: Sequence[TensorProto] = ()) -> bytes:
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", columns])
    p = helper.make_tensor_value_info("p", TensorProto.FLOAT, ["k", 1])
    graph = helper.make_graph(list(nodes), "network", [rows], [p], list(weights))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString(
            deterministic=True
        )
    )


class _Trap:
    """Creates a folder when unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def pickled_array(path: str) -> bytes:
    """An .npy file with one object that creates a folder at this path when unpickled."""
    stream = io.BytesIO()
    np.save(stream, np.array([_Trap(path)], dtype=object), allow_pickle=True)
    return stream.getvalue()


def zip_bomb(size: int) -> bytes:
    """An .npz archive that expands to this many zeros."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("weights.npy", b"\0" * size)
    return stream.getvalue()


def oversized_array_header(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    """An .npy header that claims this shape, followed by eight bytes."""
    stream = io.BytesIO()
    npy.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue() + b"\0" * 8
