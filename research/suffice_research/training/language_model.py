"""A language model from a GGUF file: the decoder of Qwen2 in torch, and its tokenizer.

`open_gguf` reads the file's metadata and locates its tensors; `load_decoder` and `load_tokenizer`
build the model. Needs numpy, torch and tokenizers, and nothing from the project but its errors:
it runs on the training machine.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from torch import Tensor, nn
from torch.nn import functional

from suffice.errors import InputError

__all__ = [
    "Decoder",
    "GgufFile",
    "Sizes",
    "load_decoder",
    "load_tokenizer",
    "open_gguf",
    "to_floats",
]

MAGIC, VERSIONS = b"GGUF", (2, 3)
F32, Q4_K, Q6_K = 0, 12, 14
# For each supported kind of tensor: values per block, and bytes per block.
BLOCKS = {F32: (1, 4), Q4_K: (256, 144), Q6_K: (256, 210)}
KINDS = {F32: "F32", 1: "F16", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K", Q4_K: "Q4_K", 13: "Q5_K",
         Q6_K: "Q6_K", 30: "BF16"}  # fmt: skip
# Kinds of metadata; 8 is a text, 9 an array.
NUMBERS = {0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8",
           11: "<i8", 12: "<f8"}  # fmt: skip
TEXT, ROW = 8, 9
# How Qwen2 splits a text before tokenization.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


# ---- the file


@dataclass(frozen=True)
class TensorPlace:
    kind: int
    shape: tuple[int, ...]
    start: int  # byte offset in the file
    size: int  # bytes


@dataclass(frozen=True)
class GgufFile:
    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, TensorPlace]
    content: np.ndarray  # all bytes, memory-mapped

    def tensor(self, name: str, device: str = "cpu") -> Tensor:
        """A tensor as floats."""
        place = self.tensors[name]
        raw = torch.from_numpy(np.array(self.content[place.start : place.start + place.size]))
        return to_floats(raw.to(device), place.kind).view(place.shape)


class _Cursor:
    """A position in the file that advances with every read."""

    def __init__(self, path: Path, content: np.ndarray) -> None:
        self.path, self.content, self.at = path, content, 0

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.content):
            raise _cut_off(self.path)
        self.at += count
        return self.content[self.at - count : self.at].tobytes()

    def number(self, kind: str) -> int:
        return int(struct.unpack(f"<{kind}", self.take(struct.calcsize(kind)))[0])

    def text(self) -> str:
        return self.take(self.number("Q")).decode("utf-8", "surrogateescape")

    def value(self, kind: int) -> Any:
        if kind == TEXT:
            return self.text()
        if kind == ROW:
            kind, count = self.number("I"), self.number("Q")
            return [self.text() for _ in range(count)] if kind == TEXT else self.row(kind, count)
        return self.row(kind, 1)[0].item()

    def row(self, kind: int, count: int) -> np.ndarray:
        if kind not in NUMBERS:
            raise InputError(
                f"{self.path} has metadata of kind {kind}, which GGUF does not define",
                hint="the file is damaged, or of a later version: fetch it again",
            )
        type_ = np.dtype(NUMBERS[kind])
        return np.frombuffer(self.take(count * type_.itemsize), type_)


def _cut_off(path: Path) -> InputError:
    return InputError(f"{path} is cut off", hint="fetch the file again, and compare its size")


def open_gguf(path: Path) -> GgufFile:
    """The metadata of a file and the positions of its tensors, checked to lie within the file."""
    if not path.is_file():
        raise InputError(f"{path} does not exist", hint="give the path of a GGUF file")
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    if start != MAGIC:
        raise InputError(f"{path} is not a GGUF file", hint=f"it has to start with {MAGIC!r}")
    cursor = _Cursor(path, np.memmap(path, np.uint8, "r"))
    cursor.take(len(MAGIC))
    version = cursor.number("I")
    if version not in VERSIONS:
        raise InputError(
            f"{path} is GGUF version {version}, expected {' or '.join(map(str, VERSIONS))}",
            hint="convert it with a current llama.cpp",
        )
    tensors, entries = cursor.number("Q"), cursor.number("Q")
    metadata: dict[str, Any] = {}
    for _ in range(entries):
        key = cursor.text()
        metadata[key] = cursor.value(cursor.number("I"))
    found = [_tensor_place(cursor) for _ in range(tensors)]
    step = int(metadata.get("general.alignment", 32))
    base = -(-cursor.at // step) * step
    places = {
        name: TensorPlace(kind, shape, base + start, size)
        for name, kind, shape, start, size in found
    }
    if any(one.start + one.size > len(cursor.content) for one in places.values()):
        raise _cut_off(path)
    return GgufFile(path, metadata, places, cursor.content)


def _tensor_place(cursor: _Cursor) -> tuple[str, int, tuple[int, ...], int, int]:
    """Name, kind, shape, start after the metadata, and bytes."""
    name = cursor.text()
    shape = tuple(cursor.number("Q") for _ in range(cursor.number("I")))[::-1]
    kind, start = cursor.number("I"), cursor.number("Q")
    if kind not in BLOCKS:
        readable = ", ".join(KINDS[one] for one in BLOCKS)
        raise InputError(
            f"{cursor.path}: tensor {name!r} is {KINDS.get(kind, f'of kind {kind}')}, expected one "
            f"of {readable}",
            hint="use the Q4_K_M version of the model",
        )
    values, size = BLOCKS[kind]
    count = int(np.prod(shape, dtype=np.int64))
    if count % values:
        raise InputError(
            f"{cursor.path}: tensor {name!r} has {count} values, expected a multiple of {values}",
            hint="the file is damaged: fetch it again",
        )
    return name, kind, shape, start, count // values * size


def to_floats(raw: Tensor, kind: int) -> Tensor:
    """Bytes of F32, Q4_K or Q6_K as floats."""
    if kind == F32:
        return raw.view(torch.float32)
    blocks = raw.view(-1, BLOCKS[kind][1])
    return (_from_q4 if kind == Q4_K else _from_q6)(blocks).reshape(-1)


def _half(raw: Tensor) -> Tensor:
    return raw.contiguous().view(torch.float16).float()


def _from_q4(blocks: Tensor) -> Tensor:
    """Eight parts of 32 values, each with a scale and a minimum of 6 bits."""
    scale, lowest = _half(blocks[:, :2]), _half(blocks[:, 2:4])
    first, second, third = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = torch.cat([first & 63, (third & 15) | ((first >> 6) << 4)], 1)
    minima = torch.cat([second & 63, (third >> 4) | ((second >> 6) << 4)], 1)
    values = blocks[:, 16:].view(-1, 4, 32)
    values = torch.stack([values & 15, values >> 4], 2).view(-1, 8, 32)
    return (scale * scales)[:, :, None] * values - (lowest * minima)[:, :, None]


def _from_q6(blocks: Tensor) -> Tensor:
    """Sixteen parts of 16 values, each with a scale of 8 bits."""
    low, high = blocks[:, :128].view(-1, 2, 64), blocks[:, 128:192].view(-1, 2, 32)
    scales = blocks[:, 192:208].contiguous().view(torch.int8)
    one, other = low[:, :, :32], low[:, :, 32:]
    values = torch.stack(
        [
            (one & 15) | ((high & 3) << 4),
            (other & 15) | (((high >> 2) & 3) << 4),
            (one >> 4) | (((high >> 4) & 3) << 4),
            (other >> 4) | ((high >> 6) << 4),
        ],
        2,
    )
    return (_half(blocks[:, 208:]) * scales)[:, :, None] * (values.view(-1, 16, 16).float() - 32)


def load_tokenizer(file: GgufFile) -> Tokenizer:
    """Qwen2's byte-level BPE. Names of special tokens in a text are plain text."""
    kind = tuple(file.metadata.get(f"tokenizer.ggml.{name}") for name in ("model", "pre"))
    if kind != ("gpt2", "qwen2"):
        raise InputError(
            f"{file.path} has the tokenizer {kind}, expected ('gpt2', 'qwen2')",
            hint="use a model of the Qwen2 family",
        )
    tokens, merges = (file.metadata[f"tokenizer.ggml.{name}"] for name in ("tokens", "merges"))
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


# ---- the decoder


@dataclass(frozen=True)
class Sizes:
    vocabulary: int
    layers: int = 28
    hidden: int = 1536
    heads: int = 12
    key_heads: int = 2  # each is shared by heads / key_heads heads
    inner: int = 8960
    rotation: float = 1e6  # the base of the rotary positions
    epsilon: float = 1e-6

    @property
    def width(self) -> int:
        """The width of one head."""
        return self.hidden // self.heads


class Norm(nn.Module):  # type: ignore[misc]
    """Root mean square, in single precision."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.epsilon = sizes.epsilon
        self.weight = nn.Parameter(torch.ones(sizes.hidden))

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return (y * self.weight).to(x.dtype)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    one, other = x.chunk(2, -1)
    return x * cos + torch.cat([-other, one], -1) * sin


class Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        hidden, inner, keys = sizes.hidden, sizes.inner, sizes.key_heads * sizes.width
        self.attention_norm, self.inner_norm = Norm(sizes), Norm(sizes)
        self.query = nn.Linear(hidden, hidden)
        self.key, self.value = nn.Linear(hidden, keys), nn.Linear(hidden, keys)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.gate, self.up = (nn.Linear(hidden, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        rows, tokens, hidden = x.shape
        y = self.attention_norm(x)
        query, key, value = (
            made(y).view(rows, tokens, -1, self.sizes.width).transpose(1, 2)
            for made in (self.query, self.key, self.value)
        )
        query, key = (_rotate(one, cos, sin).to(value.dtype) for one in (query, key))
        shared = self.sizes.heads // self.sizes.key_heads
        read = functional.scaled_dot_product_attention(
            query, key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1),
            is_causal=True,
        )  # fmt: skip
        x = x + self.out(read.transpose(1, 2).reshape(rows, tokens, hidden))
        y = self.inner_norm(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):  # type: ignore[misc]
    """Qwen2, with tied input and output embeddings."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.norm = Norm(sizes)

    def forward(self, ids: Tensor) -> Tensor:
        """The hidden states of whole sequences."""
        x = self.tokens(ids)
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        # Not a buffer: half precision would round it, and the angles would be off by a radian.
        steps = torch.arange(0, self.sizes.width, 2, device=ids.device) / self.sizes.width
        angles = positions[..., None].float() * self.sizes.rotation**-steps
        angles = torch.cat([angles, angles], -1)[:, None]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


NAMES = {
    "attention_norm": "attn_norm", "inner_norm": "ffn_norm", "query": "attn_q", "key": "attn_k",
    "value": "attn_v", "out": "attn_output", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down",
}  # fmt: skip


def _file_name(parameter: str, file: GgufFile) -> str:
    if parameter == "tokens.weight":
        # The file may have separate, more precise output embeddings.
        return "output.weight" if "output.weight" in file.tensors else "token_embd.weight"
    if parameter == "norm.weight":
        return "output_norm.weight"
    _, number, name, kind = parameter.split(".")
    return f"blk.{number}.{NAMES[name]}.{kind}"


def sizes_of(file: GgufFile) -> Sizes:
    found = file.metadata
    if found.get("general.architecture") != "qwen2":
        raise InputError(
            f"{file.path} has the architecture {found.get('general.architecture')!r}, "
            "expected 'qwen2'",
            hint="use a model of the Qwen2 family",
        )
    return Sizes(
        len(found["tokenizer.ggml.tokens"]), found["qwen2.block_count"],
        found["qwen2.embedding_length"], found["qwen2.attention.head_count"],
        found["qwen2.attention.head_count_kv"], found["qwen2.feed_forward_length"],
        found["qwen2.rope.freq_base"], found["qwen2.attention.layer_norm_rms_epsilon"],
    )  # fmt: skip


def load_decoder(file: GgufFile, device: str = "cpu") -> Decoder:
    """The decoder with the file's weights, in single precision."""
    with torch.device(device):
        decoder = Decoder(sizes_of(file))
    with torch.no_grad():
        for name, weight in decoder.named_parameters():
            wanted = _file_name(name, file)
            place = file.tensors.get(wanted)
            if place is None or place.shape != tuple(weight.shape):
                held = "is missing" if place is None else f"has the shape {place.shape}"
                raise InputError(
                    f"{file.path}: tensor {wanted!r} {held}, expected {tuple(weight.shape)}",
                    hint="the file is no Qwen2 model, or it is damaged",
                )
            weight.copy_(file.tensor(wanted, device))
    return decoder
