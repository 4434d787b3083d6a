"""A language model of two small layers in GGUF, an adapter for it, and both in plain numpy."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

from suffice_deep.adapter import Adapter
from suffice_deep.base import Base
from suffice_deep.graph import FILE_NAMES, BaseModel

LAYERS, HIDDEN, HEADS, KEY_HEADS, INNER, RANK = 2, 64, 4, 2, 96, 4
WIDTH = HIDDEN // HEADS
BYTES = [chr(one) for one in (*range(33, 127), *range(161, 173), *range(174, 324))]
MERGES = ["Ġ y", "Ġy e", "Ġye s", "Ġ n", "Ġn o"]
TOKENS = [*BYTES, *("".join(one.split()) for one in MERGES)]
SHAPES = {
    "query": (HIDDEN, HIDDEN), "key": (KEY_HEADS * WIDTH, HIDDEN), "value": (KEY_HEADS * WIDTH, HIDDEN),
    "out": (HIDDEN, HIDDEN), "gate": (INNER, HIDDEN), "up": (INNER, HIDDEN), "down": (HIDDEN, INNER),
}  # fmt: skip
Floats = npt.NDArray[np.floating]


def write_base(path: Path) -> Base:
    draw = np.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_feed_forward_length(INNER)
    writer.add_rope_freq_base(1e4)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(TOKENS)
    writer.add_token_merges(MERGES)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(TOKENS), HIDDEN), "output_norm.weight": (HIDDEN,),
    }  # fmt: skip
    for layer in range(LAYERS):
        start = f"blk.{layer}"
        shapes |= {f"{start}.{FILE_NAMES[name]}.weight": shape for name, shape in SHAPES.items()}
        shapes |= {
            f"{start}.{FILE_NAMES[name]}.bias": SHAPES[name][:1]
            for name in ("query", "key", "value")
        }
        shapes |= {f"{start}.{name}.weight": (HIDDEN,) for name in ("attn_norm", "ffn_norm")}
    for name, shape in shapes.items():
        spread, mean = (0.1, 1.0) if "norm" in name else (0.25, 0.0)
        writer.add_tensor(name, draw.normal(mean, spread, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    content = path.read_bytes()
    return Base(
        "a tiny model", len(content), hashlib.sha256(content).hexdigest(), "http://127.0.0.1:9/none"
    )


def write_adapter(folder: Path) -> Adapter:
    draw, names, values, scales = np.random.default_rng(2), [], [], []
    folder.mkdir()
    for layer in range(LAYERS):
        for part, (rows, width) in SHAPES.items():
            for side, shape in (("a", (RANK, width)), ("b", (rows, RANK))):
                names.append([f"layers.{layer}.{part}.{side}", list(shape)])
                values.append(draw.integers(-127, 128, shape).astype(np.int8).ravel())
                scales.append(np.full(shape[0], 0.002, np.float16))
    (folder / "names.json").write_text(json.dumps(names), encoding="utf-8")
    for at, piece in enumerate(np.array_split(np.concatenate(values), 2)):
        np.save(folder / f"adapter-{at}.npy", piece)
    np.save(folder / "scales.npy", np.concatenate(scales))
    return Adapter(folder)


def reference(base: BaseModel, adapter: Adapter, ids: npt.NDArray, places: list[int]) -> Floats:
    """The log-odds of yes against no, with nothing rounded."""

    def norm(x: Floats, name: str) -> Floats:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * base.tensor(name)

    def heads(x: Floats, layer: int, part: str) -> Floats:
        bias = base.tensor(f"blk.{layer}.{FILE_NAMES[part]}.bias")
        y = (linear(x, layer, part) + bias).reshape(len(x), -1, WIDTH).transpose(1, 0, 2)
        if part == "value":
            return y.repeat(HEADS // KEY_HEADS, 0)
        angles = np.arange(len(x))[:, None] * 1e4 ** -(np.arange(0, WIDTH, 2) / WIDTH)
        cos, sin = (np.concatenate([one, one], -1) for one in (np.cos(angles), np.sin(angles)))
        one, other = np.split(y, 2, -1)
        y = y * cos + np.concatenate([-other, one], -1) * sin
        return y if part == "query" else y.repeat(HEADS // KEY_HEADS, 0)

    def linear(x: Floats, layer: int, part: str) -> Floats:
        return np.asarray(x @ (base.linear(layer, part) + adapter.change(layer, part)).T)

    x = base.embeddings[ids].astype(float)
    for layer in range(LAYERS):
        y = norm(x, f"blk.{layer}.attn_norm.weight")
        query, key, value = (heads(y, layer, part) for part in ("query", "key", "value"))
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(WIDTH)
        scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        read = (weights / weights.sum(-1, keepdims=True)) @ value
        x = x + linear(read.transpose(1, 0, 2).reshape(len(x), HIDDEN), layer, "out")
        y = norm(x, f"blk.{layer}.ffn_norm.weight")
        gate = linear(y, layer, "gate")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(y, layer, "up"), layer, "down")
    yes, no = (base.embeddings[TOKENS.index(word)] for word in ("Ġyes", "Ġno"))
    return np.asarray(norm(x[places], "output_norm.weight") @ (yes - no))
