"""Files with the weights of a reader and its bases, without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["base_weights", "read_weights", "write_weights"]

Arrays = dict[str, npt.NDArray[Any]]
PART_FILE = 15_000_000  # bytes per file of weights
PAIR, JOINT = (0, 2, 4, 6), (7, 8, 9, 10, 11)  # layers of the base that the student starts from
DEEP = (0, 1, 2, 3, 4, 5, 6)  # in place of PAIR, for a reader that may take longer


def read_weights(paths: Sequence[Path]) -> Arrays:
    """Floats from int8 or half precision, as written by `write_weights`."""
    found = {}
    for path in paths:
        with np.load(path) as file:
            for name in file.files:
                if name.endswith("/scale"):
                    continue
                one = file[name].astype(np.float32)
                if f"{name}/scale" in file.files:
                    one = one * file[f"{name}/scale"].astype(np.float32)[:, None]
                found[name] = one
    return found


def smaller(name: str, array: npt.NDArray[Any]) -> Arrays:
    """A large matrix as int8 with a scale per row, anything else in half precision."""
    if array.ndim != 2 or len(array) <= 64:
        return {name: array.astype(np.float16)}
    scale = np.maximum(np.abs(array).max(1) / 127, 6e-8).astype(np.float16)
    levels = np.rint(array / scale.astype(np.float32)[:, None])
    return {name: np.clip(levels, -127, 127).astype(np.int8), f"{name}/scale": scale}


def write_weights(
    weights: Mapping[str, npt.NDArray[Any]], out: Path, *, small: bool = True,
    limit: int = PART_FILE,
) -> list[Path]:  # fmt: skip
    """Write `out`-0.npz and so on, none with more than `limit` bytes: int8 if `small`, else half
    precision.
    """
    parts: list[Arrays] = [{}]
    size = 0
    for name, one in weights.items():
        items = smaller(name, one) if small else {name: one.astype(np.float16)}
        count = sum(item.nbytes for item in items.values())
        if parts[-1] and size + count > limit:
            parts.append({})
            size = 0
        parts[-1] |= items
        size += count
    paths = [out.with_name(f"{out.name}-{number}.npz") for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        np.savez(path, **part)  # type: ignore[arg-type]
    return paths


def base_weights(path: Path) -> Arrays:
    """Floats under the names of transformers' BERT, from a dynamically quantised ONNX file. Encoders
    of sentences leave "bert." out.
    """
    import onnx  # late: training does not need it
    from onnx import numpy_helper

    model = onnx.load(str(path))
    given = {_full_name(one.name): numpy_helper.to_array(one) for one in model.graph.initializer}

    def whole(name: str) -> npt.NDArray[Any]:
        zero = given[f"{name}_zero_point"].astype(np.float32)
        floats = given[f"{name}_quantized"].astype(np.float32) - zero
        return np.asarray(floats * given[f"{name}_scale"])

    found = {
        name: one
        for name, one in given.items()
        if name.startswith(("bert.", "classifier.")) and name.endswith("bias")
    }
    found |= {name: one for name, one in given.items() if name.endswith("LayerNorm.weight")}
    for name in given:
        if name.startswith("bert.embeddings") and name.endswith("_quantized"):
            found[name.removesuffix("_quantized")] = whole(name.removesuffix("_quantized"))
    for node in model.graph.node:
        if node.op_type == "MatMulInteger" and node.input[1] in given:
            place = _full_name(
                node.name.removesuffix("/MatMul_quant")
                .removesuffix("/Gemm_MatMul_quant")
                .lstrip("/")
                .replace("/", ".")
            )
            found[f"{place}.weight"] = whole(node.input[1].removesuffix("_quantized")).T
    return {name: np.ascontiguousarray(one) for name, one in found.items()}


def _full_name(name: str) -> str:
    return f"bert.{name}" if name.startswith(("embeddings.", "encoder.", "pooler.")) else name
