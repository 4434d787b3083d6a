"""The reader as files: `python -m suffice_research.training.reader_export --help`.

It turns the trained student into the shipped folder: two int8 ONNX models, one for the windows and
one for all hits together. They are built operation by operation, with operations that onnxruntime
runs fast, so that torch is not needed:

- A window is read by itself, without padding or mask.
- Attention is one operation. Query, key and value share one quantised input.
- LayerNormalization is written out: onnxruntime's own takes twice as long on ARM.
- The caller adds what the answer's position takes from the token and from its block, so that a
  check does not pay for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from suffice.gate.reader import (
    BLOCK_TOKENS,
    JOINT_FILE,
    MAX_HITS,
    PAIR_FILE,
    READER_KIND,
    READER_VERSION,
    SHIPPED_READER,
    WINDOW_TOKENS,
)
from suffice.storage import new_artefact, sha256_of
from suffice_research.training.reader_weights import DEEP, JOINT, PAIR, base_weights, read_weights

__all__ = ["export", "exported_weights", "joint_model", "pair_model"]

Floats = npt.NDArray[np.float32]
Inputs = dict[str, tuple[int, list[Any]]]  # type and shape by name
Outputs = dict[str, tuple[str, list[Any]]]  # external name -> internal name and shape
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
HEADS, HIDDEN, EPSILON = 12, 384, 1e-12
OPSET, CONTRIB, IR_VERSION = 17, "com.microsoft", 8
LEVELS = 127  # of a weight, on either side of zero
WORDS, BASE_WORDS = "words.weight", "bert.embeddings.word_embeddings.weight"  # not trained
BASE_POSITIONS = 512  # a reader has only those of a window


class _Graph:
    """Nodes and weights, in the order in which they are requested."""

    def __init__(self, weights: Mapping[str, Floats], *, exact: bool) -> None:
        self.weights, self.exact = weights, exact
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: dict[str, onnx.TensorProto] = {}

    def add(
        self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **options: Any
    ) -> Any:
        """The name of a new node's output, or a list of names if it has several."""
        names = [f"{kind}_{len(self._nodes)}_{number}" for number in range(outputs)]
        self._nodes.append(helper.make_node(kind, inputs, names, domain=domain, **options))
        return names[0] if outputs == 1 else names

    def constant(self, name: str, value: npt.NDArray[Any]) -> str:
        if name not in self._initializers:
            self._initializers[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def number(self, value: float) -> str:
        return self.constant(f"number {value}", np.array(value, np.float32))

    def axes(self, *values: int) -> str:
        return self.constant(f"integers {values}", np.array(values, np.int64))

    def weight(self, name: str) -> str:
        """A weight; matrices are stored in half precision, as in training, and cast once."""
        one = self.weights[name]
        if one.ndim == 1 or self.exact:
            return self.constant(name, one)
        return str(self.add("Cast", self.constant(name, one.astype(np.float16)), to=FLOAT))

    def linear(self, x: str, name: str) -> str:
        """A linear map in floats, for small ones."""
        matrix, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return str(self.add("Gemm", x, matrix, bias, transB=1))

    def quantized(self, x: str, *names: str) -> list[str]:
        """Several linear maps of the same input, which is quantised once."""
        if self.exact:
            maps = [(self._float(name), self.weight(f"{name}.bias")) for name in names]
            return [self.add("Add", self.add("MatMul", x, one), bias) for one, bias in maps]
        if len(names) == 1:
            levels, scale, bias = self._levels(names[0])
            return [self.add("DynamicQuantizeMatMul", x, levels, scale, "", bias, domain=CONTRIB)]
        given, step, zero = self.add("DynamicQuantizeLinear", x, outputs=3)
        found = []
        for name in names:
            levels, scale, bias = self._levels(name)
            inputs = given, levels, step, scale, zero, "", bias
            found.append(self.add("MatMulIntegerToFloat", *inputs, domain=CONTRIB))
        return found

    def _float(self, name: str) -> str:
        return self.constant(f"{name}.weight", self.weights[f"{name}.weight"].T)

    def _levels(self, name: str) -> tuple[str, str, str]:
        levels, scale = to_levels(self.weights[f"{name}.weight"])
        return (
            self.constant(f"{name}.weight", levels.T),
            self.constant(f"{name}.scale", scale),
            self.weight(f"{name}.bias"),
        )

    def norm(self, x: str, name: str) -> str:
        centred = self.add("Sub", x, self.add("ReduceMean", x, axes=[-1]))
        variance = self.add("ReduceMean", self.add("Mul", centred, centred), axes=[-1])
        deviation = self.add("Sqrt", self.add("Add", variance, self.number(EPSILON)))
        even = self.add("Mul", centred, self.add("Reciprocal", deviation))
        scaled = self.add("Mul", even, self.weight(f"{name}.weight"))
        return str(self.add("Add", scaled, self.weight(f"{name}.bias")))

    def layer(self, x: str, name: str) -> str:
        """A layer of BERT."""
        asked = self.quantized(x, *(f"{name}.{part}" for part in ("query", "key", "value")))
        read = self.add("MultiHeadAttention", *asked, domain=CONTRIB, num_heads=HEADS)
        (read,) = self.quantized(read, f"{name}.out")
        x = self.norm(self.add("Add", x, read), f"{name}.norm")
        (made,) = self.quantized(x, f"{name}.up")
        (made,) = self.quantized(self.add("Relu", made), f"{name}.down")
        return self.norm(self.add("Add", x, made), f"{name}.final")

    def model(self, inputs: Inputs, outputs: Outputs) -> onnx.ModelProto:
        for name, (inside, _) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [inside], [name]))
        kinds = {name: (FLOAT, shape) for name, (_, shape) in outputs.items()}
        given, found = (
            [
                helper.make_tensor_value_info(name, kind, shape)
                for name, (kind, shape) in some.items()
            ]
            for some in (inputs, kinds)
        )
        graph = helper.make_graph(
            self._nodes, "reader", given, found, list(self._initializers.values())
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def to_levels(matrix: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """int8 with one scale for each row."""
    scale = np.maximum(np.abs(matrix).max(1) / LEVELS, 1e-9).astype(np.float32)
    return np.rint(matrix / scale[:, None]).astype(np.int8), scale


def pair_model(weights: Mapping[str, Floats], *, exact: bool = False) -> onnx.ModelProto:
    """One window: its tokens become blocks."""
    seen = weights["positions.weight"][:WINDOW_TOKENS]
    graph = _Graph({**weights, "positions.weight": seen}, exact=exact)
    levels, scale = to_levels(weights[WORDS])
    words = graph.add("Gather", graph.constant(WORDS, levels), "ids")
    steps = graph.add("Gather", graph.constant("words.scale", scale[:, None]), "ids")
    x = graph.add("Mul", graph.add("Cast", words, to=FLOAT), steps)
    places, count = graph.weight("positions.weight"), graph.add("Shape", "ids")
    x = graph.add("Add", x, graph.add("Slice", places, graph.axes(0), count, graph.axes(0)))
    x = graph.add("Add", x, graph.add("Gather", graph.weight("types.weight"), "types"))
    x = graph.add("Unsqueeze", graph.norm(x, "norm"), graph.axes(0))  # attention needs a batch axis
    for number in range(layers_of(weights, "pair")):
        x = graph.layer(x, f"pair.{number}")
    x = graph.add("Squeeze", x, graph.axes(0))
    first = graph.add("Slice", x, graph.axes(0), graph.axes(1), graph.axes(0))
    inputs: Inputs = {name: (INT64, ["tokens"]) for name in ("ids", "types")}
    outputs: Outputs = {
        "blocks": (_blocks(graph, x, first), ["blocks", HIDDEN]),
        "relevance": (graph.linear(first, "to_relevance"), [1, 1]),
        "places": (_places(graph, x, 0), ["tokens", 2]),
    }
    return graph.model(inputs, outputs)


def _blocks(graph: _Graph, x: str, first: str) -> str:
    """The first token, then the mean of every four; the last block may have fewer."""
    end = graph.axes(np.iinfo(np.int64).max)
    rest = graph.add("Slice", x, graph.axes(1), end, graph.axes(0))
    count = graph.add("Sub", graph.add("Shape", "ids"), graph.axes(1))
    more = graph.add("Mod", graph.add("Neg", count), graph.axes(BLOCK_TOKENS))
    ones = graph.add(
        "ConstantOfShape", graph.add("Concat", count, graph.axes(1), axis=0),
        value=numpy_helper.from_array(np.ones(1, np.float32)),
    )  # fmt: skip
    wide = graph.add("Concat", graph.axes(0, 0), more, graph.axes(0), axis=0)
    shape = graph.axes(-1, BLOCK_TOKENS, HIDDEN), graph.axes(-1, BLOCK_TOKENS, 1)
    sums, sizes = (
        graph.add(
            "ReduceSum", graph.add("Reshape", graph.add("Pad", one, wide), size), graph.axes(1),
            keepdims=0,
        )
        for one, size in zip((rest, ones), shape, strict=True)
    )  # fmt: skip
    return str(graph.add("Concat", first, graph.add("Div", sums, sizes), axis=0))


def _places(graph: _Graph, x: str, part: int) -> str:
    """The contribution of the token (part 0) or its block (part 1) to an answer's start and end."""
    matrix = graph.weight("to_place.weight")
    start, end = graph.axes(part * HIDDEN), graph.axes((part + 1) * HIDDEN)
    half = graph.add("Slice", matrix, start, end, graph.axes(1))
    bias = (graph.weight("to_place.bias"),) if part else ()
    return str(graph.add("Gemm", x, half, *bias, transB=1))


def joint_model(weights: Mapping[str, Floats], *, exact: bool = False) -> onnx.ModelProto:
    """The blocks of all windows, concatenated, with their hits' slots; `firsts` are the positions
    of the windows' first blocks.
    """
    graph = _Graph(weights, exact=exact)
    slots = graph.add("Gather", graph.weight("slots.weight"), "slots")
    whole = graph.constant("whole", weights["whole"][None])
    y = graph.add("Concat", whole, graph.add("Add", "blocks", slots), axis=0)
    y = graph.add("Unsqueeze", y, graph.axes(0))
    for number in range(layers_of(weights, "joint")):
        y = graph.layer(y, f"joint.{number}")
    y = graph.add("Squeeze", y, graph.axes(0))
    end = graph.axes(np.iinfo(np.int64).max)
    first = graph.add("Slice", y, graph.axes(0), graph.axes(1), graph.axes(0))
    read = graph.add("Slice", y, graph.axes(1), end, graph.axes(0))
    heads = graph.add("Gather", read, "firsts")
    top = graph.add("ReduceMax", heads, axes=[0])
    about = graph.add("Tanh", graph.linear(graph.add("Concat", first, top, axis=1), "to_set"))
    inputs: Inputs = {
        "blocks": (FLOAT, ["blocks", HIDDEN]),
        "slots": (INT64, ["blocks"]), "firsts": (INT64, ["windows"]),
    }  # fmt: skip
    outputs: Outputs = {
        "needed": (graph.linear(heads, "to_needed"), ["windows", 1]),
        "complete": (graph.linear(about, "to_complete"), [1, 1]),
        "counts": (graph.linear(about, "to_count"), [1, 6]),
        "evidence": (graph.linear(read, "to_evidence"), ["blocks", 1]),
        "places": (_places(graph, read, 1), ["blocks", 2]),
        "answer": (graph.linear(about, "to_answer"), [1, 4]),
    }
    return graph.model(inputs, outputs)


def layers_of(weights: Mapping[str, Floats], stage: str) -> int:
    return len({name.split(".")[1] for name in weights if name.startswith(f"{stage}.")})


def check_weights(weights: Mapping[str, Floats]) -> None:
    """Check that these are exactly the weights of a reader."""
    layers = [
        f"{stage}.{n}" for stage in ("pair", "joint") for n in range(layers_of(weights, stage))
    ]
    square, inner = (HIDDEN, HIDDEN), 4 * HIDDEN
    maps: dict[str, tuple[int, int]] = {
        "to_needed": (1, HIDDEN), "to_evidence": (1, HIDDEN), "to_relevance": (1, HIDDEN),
        "to_place": (2, 2 * HIDDEN), "to_set": (HIDDEN, 2 * HIDDEN), "to_complete": (1, HIDDEN),
        "to_count": (6, HIDDEN), "to_answer": (4, HIDDEN),
    }  # fmt: skip
    shapes: dict[str, tuple[int, ...]] = {
        "whole": (HIDDEN,), "slots.weight": (MAX_HITS, HIDDEN), "types.weight": (2, HIDDEN),
        "positions.weight": (BASE_POSITIONS, HIDDEN), WORDS: (len(weights[WORDS]), HIDDEN),
    }  # fmt: skip
    for layer in layers:
        maps |= {f"{layer}.{part}": square for part in ("query", "key", "value", "out")}
        maps |= {f"{layer}.up": (inner, HIDDEN), f"{layer}.down": (HIDDEN, inner)}
    for name, (rows, columns) in maps.items():
        shapes |= {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}
    for name in ("norm", *(f"{layer}.{part}" for layer in layers for part in ("norm", "final"))):
        shapes |= {f"{name}.weight": (HIDDEN,), f"{name}.bias": (HIDDEN,)}
    found = {name: one.shape for name, one in weights.items()}
    wrong = [
        f"{name} is {found.get(name, 'absent')}, expected {shapes.get(name, 'none')}"
        for name in sorted({*shapes, *found})
        if shapes.get(name) != found.get(name)
    ]
    wrong += [f"{name} has NaN" for name, one in weights.items() if not np.isfinite(one).all()]
    if wrong:
        raise SystemExit("the weights are not those of a reader: " + "; ".join(wrong[:5]))


# ---- files


def export(
    weights: Sequence[Path], base: Path, tokenizer: Path, out: Path, *, exact: bool = False
) -> None:
    """Write the artefact; with `exact`, in floats, for comparison."""
    learned = read_weights(weights)
    words = base_weights(base)[BASE_WORDS]
    whole = {**learned, WORDS: words}
    check_weights(whole)
    deep = layers_of(whole, "pair") == len(DEEP)
    settings = {
        "base": "ms-marco-MiniLM-L-12-v2",
        "pair layers": list(DEEP if deep else PAIR), "joint layers": list(JOINT),
    }  # fmt: skip
    inputs = {path.name: sha256_of(path) for path in (base, *weights)}
    with new_artefact(
        out, kind=READER_KIND, version=READER_VERSION, settings=settings, inputs=inputs, seed=42
    ) as draft:
        write_models(whole, draft, exact=exact)
        (draft / "tokenizer.json").write_bytes(tokenizer.read_bytes())


def write_models(weights: Mapping[str, Floats], folder: Path, *, exact: bool = False) -> None:
    for file, make in ((PAIR_FILE, pair_model), (JOINT_FILE, joint_model)):
        model = make(weights, exact=exact)
        onnx.checker.check_model(model)
        (folder / file).write_bytes(model.SerializeToString(deterministic=True))


def exported_weights(folder: Path) -> dict[str, Floats]:
    """The weights of a reader as floats, under the names of `reader_model.Reader`; rounded, as its
    matrices are int8. Positions beyond a window are zero: no reader sees them.
    """
    given = {
        one.name: numpy_helper.to_array(one)
        for file in (PAIR_FILE, JOINT_FILE)
        for one in onnx.load(str(folder / file)).graph.initializer
    }
    found = {WORDS: given[WORDS] * given["words.scale"], "whole": given["whole"].reshape(-1)}
    for name, one in given.items():
        if name.endswith((".weight", ".bias")) and name != WORDS:
            scale = given.get(f"{name.removesuffix('weight')}scale")
            found[name] = one.astype(np.float32) if scale is None else one.T * scale[:, None]
    seen = found["positions.weight"]
    found["positions.weight"] = np.pad(seen, ((0, BASE_POSITIONS - len(seen)), (0, 0)))
    return found


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", nargs="+", type=Path, help="student-N.npz")
    parser.add_argument("--base", type=Path, required=True, help="model.onnx of the base")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json of the base")
    parser.add_argument("--out", type=Path, default=SHIPPED_READER)
    parser.add_argument("--exact", action="store_true", help="in floats, for comparison")
    args = parser.parse_args()
    export(args.weights, args.base, args.tokenizer, args.out, exact=args.exact)


if __name__ == "__main__":
    _main()
