"""The reader as files: `python -m suffice_research.training.reader_export --help`.

It makes the folder that ships of the student that was trained: int8 ONNX with one scale per column.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn
from torch.nn import functional

from suffice.gate.reader import READER_KIND, READER_VERSION, SHIPPED_READER
from suffice.storage import new_artefact, sha256_of
from suffice_research.training.reader_model import Layer, Reader, load_minilm, pool
from suffice_research.training.reader_training import JOINT, PAIR, weights_of
from suffice_research.training.scorer import base_weights

__all__ = ["export"]

INPUTS = ("ids", "types", "slots")
OUTPUTS = ("needed", "complete", "counts", "evidence", "spans", "answer", "relevance")
WORD_BITS = 8  # of the vectors of words
NOT_TRAINED = "words."  # the base's


class _Exported(nn.Module):  # type: ignore[misc]
    """The same numbers for one list, in operations that onnxruntime is quick at."""

    def __init__(self, model: Reader) -> None:
        super().__init__()
        self.model = model
        words = model.words.weight.data
        self.scale = words.abs().amax(1, keepdim=True) / (2 ** (WORD_BITS - 1) - 1)
        self.levels = torch.round(words / self.scale.clamp(min=1e-9)).to(torch.int8)

    def forward(self, ids: Tensor, types: Tensor, slots: Tensor) -> tuple[Tensor, ...]:
        model, present = self.model, ids > 0
        at = torch.arange(ids.shape[1])
        words = self.levels[ids].float() * self.scale[ids]
        x = model.norm(words + model.positions(at) + model.types(types))  # type: ignore[misc]
        hidden = (1.0 - present.float())[:, None, None, :] * -1e4
        for layer in model.pair:
            x = _layer(layer, x, hidden)
        relevance = model.to_relevance(x[:, 0])[:, 0]
        blocks, held = pool(x, present)
        blocks = blocks + model.slots(slots)[:, None]
        y = torch.cat([model.whole[None, None], blocks.reshape(1, -1, blocks.shape[-1])], 1)
        seen = functional.pad(held.reshape(1, -1).float(), (1, 0), value=1.0)
        hidden = (1.0 - seen)[:, None, None, :] * -1e4
        for layer in model.joint:
            y = _layer(layer, y, hidden)
        read = y[0, 1:].view(blocks.shape)
        top = read[:, 0].amax(0, keepdim=True)
        about = torch.tanh(model.to_set(torch.cat([y[:, 0], top], -1)))
        return (
            model.to_needed(read[:, 0])[:, 0],
            model.to_complete(about)[:, 0],
            model.to_count(about),
            model.to_evidence(read[:, 1:])[..., 0],
            model.places(x, read),
            model.to_answer(about),
            relevance,
        )


def _layer(layer: Layer, x: Tensor, hidden: Tensor) -> Tensor:
    rows, _, size = x.shape

    def heads(values: Tensor) -> Tensor:
        return values.view(rows, -1, layer.heads, size // layer.heads).permute(0, 2, 1, 3)

    scores = heads(layer.query(x)) @ heads(layer.key(x)).transpose(-1, -2)
    weights = torch.softmax(scores / math.sqrt(size // layer.heads) + hidden, -1)
    read = (weights @ heads(layer.value(x))).permute(0, 2, 1, 3).reshape(rows, -1, size)
    x = layer.norm(x + layer.out(read))
    return layer.final(x + layer.down(layer.bend(layer.up(x))))


def export(
    weights: Sequence[Path], base: Path, tokenizer: Path, out: Path, *, keep: Path | None = None
) -> None:
    """Write the artefact; `keep` is where the float32 model goes, for comparison."""
    model = load_minilm(base_weights(base), PAIR, JOINT).eval()
    left = model.load_state_dict(weights_of(weights), strict=False)
    lost = [name for name in left.missing_keys if not name.startswith(NOT_TRAINED)]
    if left.unexpected_keys or lost:
        raise SystemExit(f"the weights do not fit the model: {left}")
    some = torch.ones(2, 17, dtype=torch.long)
    axes = {
        "ids": {0: "windows", 1: "tokens"}, "types": {0: "windows", 1: "tokens"},
        "slots": {0: "windows"}, "needed": {0: "windows"},
        "evidence": {0: "windows", 1: "blocks"}, "spans": {0: "windows", 1: "tokens"},
        "relevance": {0: "windows"},
    }  # fmt: skip
    settings = {
        "base": "ms-marco-MiniLM-L-12-v2",
        "pair layers": list(PAIR), "joint layers": list(JOINT),
    }  # fmt: skip
    inputs = {path.name: sha256_of(path) for path in (base, *weights)}
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(keep or Path(folder) / "model.onnx")
        torch.onnx.export(
            _Exported(model), (some, some, torch.arange(2)), str(whole), opset_version=17,
            dynamo=False, input_names=list(INPUTS), output_names=list(OUTPUTS), dynamic_axes=axes,
        )  # fmt: skip
        with new_artefact(
            out, kind=READER_KIND, version=READER_VERSION, settings=settings, inputs=inputs, seed=42
        ) as draft:
            quantize_dynamic(
                str(whole), str(draft / "model.onnx"), weight_type=QuantType.QInt8,
                per_channel=True,
            )  # fmt: skip
            (draft / "tokenizer.json").write_bytes(tokenizer.read_bytes())


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("weights", nargs="+", type=Path)
    for name in ("base", "tokenizer"):
        arguments.add_argument(f"--{name}", type=Path, required=True)
    arguments.add_argument("--out", type=Path, default=SHIPPED_READER)
    arguments.add_argument("--keep", type=Path)
    args = arguments.parse_args()
    export(args.weights, args.base, args.tokenizer, args.out, keep=args.keep)
