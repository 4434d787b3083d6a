"""The base with its adapter as one network for onnxruntime, built once from the GGUF file.

Weights have 8 bits with a scale for each output, activations 8 bits with a scale for each token;
attention and norms stay in floats. Embeddings are a file of their own, of which only the rows of
the tokens that occur are read. The last layer's output and inner products are made only at the
places where the model is asked. The result is the log-odds of " yes" against " no" there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from gguf.quants import dequantize
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from suffice.errors import DataError, InputError
from suffice_deep.adapter import Adapter
from suffice_deep.cache import (
    EMBEDDINGS,
    GRAPH,
    PROBE,
    PROBE_SIZE,
    TOKENIZER,
    WEIGHTS,
    is_exact,
)

Floats = npt.NDArray[np.floating[Any]]
LONGEST = 4096  # tokens: rotary angles are stored for so many
PAGE = 4096  # bytes: tensors that begin on a page can be mapped
MICROSOFT = "com.microsoft"
FILE_NAMES = {
    "query": "attn_q", "key": "attn_k", "value": "attn_v", "out": "attn_output",
    "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down",
}  # fmt: skip
# How Qwen2 splits a text before tokenization.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class BaseModel:
    """The GGUF file of a model of the Qwen2 family."""

    def __init__(self, path: Path) -> None:
        try:
            self._reader = gguf.GGUFReader(path)
        except Exception as error:  # whatever a damaged file makes the reader raise
            raise DataError(
                f"{path} is not a whole GGUF file: {error!r:.200}", hint="fetch it again"
            ) from error
        self.path, self._tensors = path, {one.name: one for one in self._reader.tensors}
        if (found := self.value("general.architecture")) != "qwen2":
            raise InputError(f"{path} is a {found!r}, expected 'qwen2'", hint="use Qwen2.5-Coder")

    def value(self, key: str) -> Any:
        field = self._reader.get_field(key)
        if field is None:
            raise InputError(f"{self.path} has no {key!r}", hint="use Qwen2.5-Coder")
        return field.contents()

    def tensor(self, name: str) -> Floats:
        if name not in self._tensors:
            raise InputError(f"{self.path} has no tensor {name!r}", hint="use Qwen2.5-Coder")
        one = self._tensors[name]
        return np.asarray(dequantize(one.data, one.tensor_type), np.float32)

    def linear(self, layer: int, part: str) -> Floats:
        return self.tensor(f"blk.{layer}.{FILE_NAMES[part]}.weight")

    @cached_property
    def embeddings(self) -> Floats:
        """Those of the output, which are more precise, if the file has them."""
        name = "output.weight" if "output.weight" in self._tensors else "token_embd.weight"
        return self.tensor(name)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Qwen2's byte-level BPE. Names of special tokens in a text are plain text."""
        kind = tuple(self.value(f"tokenizer.ggml.{name}") for name in ("model", "pre"))
        if kind != ("gpt2", "qwen2"):
            raise InputError(f"{self.path} has the tokenizer {kind}", hint="use Qwen2.5-Coder")
        tokens, merges = (self.value(f"tokenizer.ggml.{name}") for name in ("tokens", "merges"))
        pairs = [tuple(one.split(" ")) for one in merges]
        tokenizer = Tokenizer(models.BPE({one: at for at, one in enumerate(tokens)}, pairs))
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(WORDS), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        tokenizer.decoder = decoders.ByteLevel()
        return tokenizer


@dataclass(frozen=True)
class Sizes:
    layers: int
    hidden: int
    heads: int
    key_heads: int
    inner: int
    rotation: float
    epsilon: float

    @classmethod
    def of(cls, base: BaseModel) -> Sizes:
        names = (
            "block_count", "embedding_length", "attention.head_count", "attention.head_count_kv",
            "feed_forward_length", "rope.freq_base", "attention.layer_norm_rms_epsilon",
        )  # fmt: skip
        return cls(*(base.value(f"qwen2.{name}") for name in names))

    @property
    def width(self) -> int:
        """The width of one head."""
        return self.hidden // self.heads


class _Nodes:
    """The nodes and weights of a graph; large weights go to a file."""

    def __init__(self, folder: Path, *, signed: bool) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self._file = (folder / WEIGHTS).open("wb")
        # Products of signed weights are two to three times as fast.
        self._kind = TensorProto.INT8 if signed else TensorProto.UINT8
        self._type: Any = np.int8 if signed else np.uint8
        self._zero = 0 if signed else 128
        for name, value in (
            ("step", np.float32(1 / 127)), ("middle", np.uint8(128)), ("least", np.float32(1e-9)),
            ("last", np.array([-1], np.int64)),
        ):  # fmt: skip
            self.constant(name, value)

    def close(self) -> None:
        self._file.close()

    def constant(self, name: str, value: npt.ArrayLike) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind: str, given: Sequence[str], *results: str, **attributes: Any) -> str:
        own = {"GroupQueryAttention", "MatMulIntegerToFloat"}
        domain = MICROSOFT if kind in own else ""
        made = helper.make_node(kind, list(given), list(results), domain=domain, **attributes)
        self.nodes.append(made)
        return results[0]

    def norm(self, x: str, weight: Floats, epsilon: float, name: str) -> str:
        self.constant(f"{name}.w", weight)
        return self.add(
            "SimplifiedLayerNormalization", [x, f"{name}.w"], name, axis=-1, epsilon=epsilon
        )

    def quantize(self, x: str) -> str:
        """A token's values divided by their largest, in 8 bits; that is `x.top`."""
        self.add("Abs", [x], f"{x}.abs")
        self.add("ReduceMax", [f"{x}.abs", "last"], f"{x}.max", keepdims=1)
        self.add("Add", [f"{x}.max", "least"], f"{x}.top")
        self.add("Div", [x, f"{x}.top"], f"{x}.part")
        return self.add("QuantizeLinear", [f"{x}.part", "step", "middle"], f"{x}.bits")

    def linear(self, x: str, weight: Floats, name: str, bias: Floats | None = None) -> str:
        """The product of what `quantize` made of x."""
        scale = np.maximum(np.abs(weight).max(1), 1e-12) / 127
        bits = np.rint(weight / scale[:, None]).clip(-127, 127) + self._zero
        self._store(f"{name}.w", bits.astype(self._type).T)
        self.constant(f"{name}.s", scale.astype(np.float32))
        self.constant(f"{name}.z", np.full(len(scale), self._zero, self._type))
        given = [f"{x}.bits", f"{name}.w", "step", f"{name}.s", "middle", f"{name}.z"]
        self.add("MatMulIntegerToFloat", given, f"{name}.product")
        if bias is None:
            return self.add("Mul", [f"{name}.product", f"{x}.top"], name)
        self.add("Mul", [f"{name}.product", f"{x}.top"], f"{name}.scaled")
        return self.add("Add", [f"{name}.scaled", self.constant(f"{name}.b", bias)], name)

    def _store(self, name: str, value: npt.NDArray[Any]) -> None:
        self._file.write(b"\0" * (-self._file.tell() % PAGE))
        start = self._file.tell()
        self._file.write(np.ascontiguousarray(value).tobytes())
        tensor = TensorProto(name=name, data_type=self._kind, dims=value.shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, said in (("location", WEIGHTS), ("offset", start), ("length", value.size)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(said)
        self.weights.append(tensor)


def build_graph(
    base: BaseModel, adapter: Adapter, folder: Path, *, signed: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:  # fmt: skip
    """Write the files of the graph into a folder."""
    sizes, nodes = Sizes.of(base), _Nodes(folder, signed=signed)
    try:
        _add_angles(nodes, sizes)
        x = "embedded"
        for layer in range(sizes.layers):
            x = _add_layer(nodes, base, adapter, sizes, layer, x)
            progress(layer + 1, sizes.layers)
        nodes.norm(x, base.tensor("output_norm.weight"), sizes.epsilon, "read")
        yes, no = _word_tokens(base.tokenizer)
        difference = (base.embeddings[yes] - base.embeddings[no])[:, None]
        nodes.add("MatMul", ["read", nodes.constant("difference", difference)], "log_odds")
    finally:
        nodes.close()
    value = helper.make_tensor_value_info
    given = [
        value("embedded", TensorProto.FLOAT, [1, "tokens", sizes.hidden]),
        value("places", TensorProto.INT64, ["places"]),
        value("before", TensorProto.INT32, [1]),
        value("total", TensorProto.INT32, []),
    ]
    result = [value("log_odds", TensorProto.FLOAT, [1, "places", 1])]
    made = helper.make_graph(nodes.nodes, "deep", given, result, nodes.weights)
    (folder / GRAPH).write_bytes(_model_bytes(made))
    (folder / PROBE).write_bytes(_probe(signed))
    np.save(folder / EMBEDDINGS, base.embeddings.astype(np.float16))
    base.tokenizer.save(str(folder / TOKENIZER), pretty=False)


def _add_angles(nodes: _Nodes, sizes: Sizes) -> None:
    steps = sizes.rotation ** -(np.arange(0, sizes.width, 2) / sizes.width)
    angles = np.arange(LONGEST)[:, None] * steps
    nodes.constant("cos", np.cos(angles).astype(np.float32))
    nodes.constant("sin", np.sin(angles).astype(np.float32))
    nodes.constant("nothing", np.zeros((1, sizes.key_heads, 0, sizes.width), np.float32))


def _add_layer(
    nodes: _Nodes, base: BaseModel, adapter: Adapter, sizes: Sizes, layer: int, x: str
) -> str:
    def weight(*parts: str) -> Floats:
        return np.concatenate(
            [base.linear(layer, one) + adapter.change(layer, one) for one in parts]
        )

    def normed(x: str, name: str) -> str:
        weight = base.tensor(f"blk.{layer}.{name}.weight")
        y = nodes.norm(x, weight, sizes.epsilon, f"{layer}.{name}")
        nodes.quantize(y)
        return y

    parts = ("query", "key", "value")
    bias = np.concatenate([base.tensor(f"blk.{layer}.{FILE_NAMES[one]}.bias") for one in parts])
    y = nodes.linear(normed(x, "attn_norm"), weight(*parts), f"{layer}.qkv", bias)
    past = ["nothing", "nothing", "before", "total", "cos", "sin"]
    y = nodes.add(
        "GroupQueryAttention", [y, "", "", *past], f"{layer}.attention", f"{layer}.k", f"{layer}.v",
        num_heads=sizes.heads, kv_num_heads=sizes.key_heads, do_rotary=1, rotary_interleaved=0,
    )  # fmt: skip
    if layer == sizes.layers - 1:  # from here on, only the places that are asked matter
        x, y = (nodes.add("Gather", [one, "places"], f"{one}.asked", axis=1) for one in (x, y))
    nodes.quantize(y)
    x = nodes.add("Add", [x, nodes.linear(y, weight("out"), f"{layer}.out")], f"{layer}.attended")
    y = nodes.linear(normed(x, "ffn_norm"), weight("gate", "up"), f"{layer}.inner")
    nodes.add("Split", [y], gate := f"{layer}.gate", up := f"{layer}.up", axis=-1, num_outputs=2)
    nodes.add("Sigmoid", [gate], f"{gate}.open")
    nodes.add("Mul", [gate, f"{gate}.open"], f"{gate}.silu")
    y = nodes.add("Mul", [f"{gate}.silu", up], f"{layer}.gated")
    nodes.quantize(y)
    return nodes.add(
        "Add", [x, nodes.linear(y, weight("down"), f"{layer}.down")], f"{layer}.result"
    )


def _word_tokens(tokenizer: Tokenizer) -> tuple[int, int]:
    yes, no = (tokenizer.encode(one, add_special_tokens=False).ids for one in (" yes", " no"))
    if len(yes) != 1 or len(no) != 1:
        raise InputError("the model has no token for yes or no", hint="use Qwen2.5-Coder")
    return yes[0], no[0]


def _model_bytes(graph: Any) -> bytes:
    sets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
    made = helper.make_model(graph, opset_imports=sets, ir_version=9)
    return bytes(made.SerializeToString())


def _probe(signed: bool) -> bytes:
    """A product of the largest numbers, which overflows on processors without VNNI."""
    kind, zero = (np.int8, 0) if signed else (np.uint8, 128)
    largest = np.full((PROBE_SIZE, 1), 127 + zero, kind)
    weights = {"w": largest, "middle": np.uint8(128), "zero": kind(zero)}
    node = helper.make_node("MatMulInteger", ["x", "w", "middle", "zero"], ["y"])
    value = helper.make_tensor_value_info
    given, result = (
        value("x", TensorProto.UINT8, [1, PROBE_SIZE]),
        value("y", TensorProto.INT32, [1, 1]),
    )
    constants = [numpy_helper.from_array(np.asarray(one), name) for name, one in weights.items()]
    return _model_bytes(helper.make_graph([node], "probe", [given], [result], constants))


def can_sign() -> bool:
    """Whether signed weights give exact products here."""
    return is_exact(_probe(signed=True))
