"""Export the trained scorer and the next-hop encoder to the shipped folders: `python -m
suffice_research.training.scorer_export --help`.

The weights come from `suffice_research.training.scorer_study`: int8 with one scale per output,
without the word embeddings, which stay the base's. The file has the same int8 values; activations
are quantised dynamically.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import Any

from onnxruntime.quantization import QuantType, quantize_dynamic

from suffice.errors import MissingExtraError
from suffice.integrations.onnx import BGE_SMALL, packaged_model
from suffice.storage import new_artefact, sha256_of
from suffice_research import next_hop
from suffice_research.bridge_quality import (
    KIND,
    QUALITY_FEATURES,
    READER_FILE,
    SHIPPED_MODEL,
    VERSION,
)
from suffice_research.training.reader_weights import base_weights, read_weights
from suffice_research.training.scorer import LAYERS, cross_encoder

try:
    import torch
    from torch.nn import functional
except ImportError as error:
    raise MissingExtraError("exporting the set scorer", extra="train") from error

__all__ = ["export", "export_next_hop", "to_onnx"]

HIDDEN, HEADS = 384, 12
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class _Logits(torch.nn.Module):  # type: ignore[misc]
    """The same output in operations that ONNX has."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        bert = self.model.bert
        tokens = bert.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
        hidden = (1.0 - attention_mask[:, None, None, :].to(tokens.dtype)) * -1e4
        *layers, last = bert.encoder.layer
        for layer in layers:
            tokens = _layer(layer, tokens, tokens, hidden)
        first = _layer(last, tokens[:, :1], tokens, hidden)[:, 0]
        return self.model.classifier(torch.tanh(bert.pooler.dense(first)))


def _layer(
    layer: Any, asking: torch.Tensor, tokens: torch.Tensor, hidden: torch.Tensor
) -> torch.Tensor:
    """One layer of BERT, with some tokens as queries over all tokens."""
    own, size = layer.attention.self, HIDDEN // HEADS

    def heads(values: torch.Tensor) -> torch.Tensor:
        return values.view(values.shape[0], -1, HEADS, size).permute(0, 2, 1, 3)

    attention = heads(own.query(asking)) @ heads(own.key(tokens)).transpose(-1, -2)
    seen = torch.softmax(attention / math.sqrt(size) + hidden, dim=-1) @ heads(own.value(tokens))
    seen = seen.permute(0, 2, 1, 3).reshape(asking.shape[0], -1, HIDDEN)
    met = layer.attention.output.LayerNorm(layer.attention.output.dense(seen) + asking)
    return layer.output.LayerNorm(
        layer.output.dense(functional.gelu(layer.intermediate.dense(met))) + met
    )


def to_onnx(model: torch.nn.Module, path: Path) -> None:
    """Write the model in float32, whatever precision it runs in here."""
    some = torch.ones(2, 16, dtype=torch.long)
    axes = {name: {0: "pairs", 1: "tokens"} for name in INPUTS} | {"logits": {0: "pairs"}}
    names = {"input_names": list(INPUTS), "output_names": ["logits"], "dynamic_axes": axes}
    torch.onnx.export(
        _Logits(model.cpu().float().eval()),
        (some, some, some),
        str(path),
        opset_version=17,
        dynamo=False,
        **names,
    )


def export(
    weights: list[Path],
    base: Path,
    tokenizer: Path,
    reader: Path,
    out: Path,
    *,
    keep: Path | None = None,
) -> None:
    """Write the artefact; `keep` is the path for the float32 model, for comparison."""
    trained = {name: torch.tensor(one) for name, one in read_weights(weights).items()}
    model = cross_encoder(base_weights(base))
    left = model.load_state_dict(trained, strict=False)
    if left.unexpected_keys or any("embeddings" not in name for name in left.missing_keys):
        raise SystemExit(f"the weights do not fit the model: {left}")
    inputs = {path.name: sha256_of(path) for path in (base, *weights)}
    settings = {
        "layers": list(LAYERS),
        "columns": [one.name for one in QUALITY_FEATURES],
        "base": "ms-marco-MiniLM-L-12-v2",
    }
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(keep or Path(folder) / "model.onnx")
        to_onnx(model, whole)
        with new_artefact(
            out, kind=KIND, version=VERSION, settings=settings, inputs=inputs, seed=1
        ) as draft:
            quantize_dynamic(
                str(whole), str(draft / "model.onnx"), weight_type=QuantType.QInt8, per_channel=True
            )
            (draft / "tokenizer.json").write_bytes(tokenizer.read_bytes())
            (draft / READER_FILE).write_bytes(reader.read_bytes())


def export_next_hop(adapters: Path, out: Path) -> None:
    """Write the adapters as an artefact; bge-small itself stays in its own package."""
    inputs = {BGE_SMALL: sha256_of(packaged_model(BGE_SMALL) / "model.onnx")}
    settings = {"base": BGE_SMALL}
    with new_artefact(
        out, kind=next_hop.KIND, version=next_hop.VERSION, settings=settings, inputs=inputs, seed=0
    ) as draft:
        (draft / next_hop.ADAPTERS_FILE).write_bytes(adapters.read_bytes())


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("weights", nargs="+", type=Path)
    for name in ("base", "tokenizer", "reader", "adapters"):
        arguments.add_argument(f"--{name}", type=Path, required=True)
    arguments.add_argument("--out", type=Path, default=SHIPPED_MODEL)
    arguments.add_argument("--next-hop", type=Path, default=next_hop.SHIPPED_MODEL)
    arguments.add_argument("--keep", type=Path)
    given = arguments.parse_args()
    export(given.weights, given.base, given.tokenizer, given.reader, given.out, keep=given.keep)
    export_next_hop(given.adapters, given.next_hop)
