"""Train the next-hop encoder: torch, on a GPU. `suffice_research.training.scorer_study` runs it.

The base is bge-small from its int8 ONNX file, as floats. It stays as it is; low-rank adapters
beside its matrices learn, for a question and some held documents, to be closer to the passages that
are still needed than to all other passages of the training questions. The vectors of the passages
are the base's own and do not move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import MissingExtraError, NotReadyError
from suffice.integrations.onnx import BGE_PREFIX, BGE_SMALL, packaged_model, readable
from suffice_research.bridge_quality import TokenPair
from suffice_research.next_hop import StateTokenizer
from suffice_research.training.reader_weights import base_weights
from suffice_research.training.scorer import (
    DEVICE,
    HIDDEN,
    PRECISION,
    Embeddings,
    Layer,
    Learner,
    Schedule,
    TokenRows,
)
from suffice_research.training.scorer_data import ScorerQuestion, training_states

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError as error:
    raise MissingExtraError("training the next-hop encoder", extra="train") from error

__all__ = ["QueryTower", "TowerEncoder", "adapters_of", "next_hop_tower", "train_next_hop"]

Arrays = dict[str, npt.NDArray[Any]]
LAYERS, RANK = 12, 32
TEMPERATURE = 0.03
TOKENS_AT_ONCE = 100_000 if DEVICE == "cuda" else 8_000
RATE, BATCH = 4e-4, 128
PASSAGE_TOKENS = 512


class Adapted(nn.Module):  # type: ignore[misc]
    """A linear map that stays, and a low-rank one that learns."""

    def __init__(self, own: nn.Linear) -> None:
        super().__init__()
        self.own = own.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(own.in_features, RANK) / own.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(RANK, own.out_features))

    def forward(self, values: Tensor) -> Tensor:
        found: Tensor = self.own(values) + (values @ self.down) @ self.up
        return found


class QueryTower(nn.Module):  # type: ignore[misc]
    """bge-small: the unit vector of the first token."""

    def __init__(self) -> None:
        super().__init__()
        layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.bert = nn.ModuleDict(
            {"embeddings": Embeddings(), "encoder": nn.ModuleDict({"layer": layers})}
        )

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, mask: Tensor) -> Tensor:
        tokens = self.bert["embeddings"](input_ids, token_type_ids)
        *layers, last = self.bert["encoder"]["layer"]
        for layer in layers:
            tokens = layer(tokens, tokens, mask)
        first = last(tokens[:, :1], tokens, mask)[:, 0]
        return functional.normalize(first.float(), dim=-1)


def next_hop_tower(adapters: Mapping[str, npt.NDArray[Any]] | None = None) -> QueryTower:
    """bge-small with adapters: new ones that change nothing yet, or those given."""
    model = QueryTower()
    own = {name: torch.tensor(one) for name, one in _bge().items() if "pooler" not in name}
    model.load_state_dict(own, strict=True)
    model.requires_grad_(False)
    torch.manual_seed(0)
    for layer in model.bert["encoder"]["layer"]:
        for parent, name in _linears(layer):
            parent[name] = Adapted(parent[name])
    if adapters is not None:
        given = {f"bert.{name}": torch.tensor(one) for name, one in adapters.items()}
        if model.load_state_dict(given, strict=False).unexpected_keys:
            raise NotReadyError("the adapters belong to another model")
    model.to(DEVICE, PRECISION)
    return model


@cache
def _bge() -> Arrays:
    return base_weights(packaged_model(BGE_SMALL) / "model.onnx")


def _linears(layer: Layer) -> list[tuple[nn.ModuleDict, str]]:
    own = layer.attention["self"]
    dense = (layer.attention["output"], layer.intermediate, layer.output)
    return [
        *((own, name) for name in ("query", "key", "value")),
        *((one, "dense") for one in dense),
    ]


def adapters_of(model: QueryTower) -> Arrays:
    """NAME.down and NAME.up in half precision, under the names of the ONNX file."""
    return {
        name.removeprefix("bert."): one.detach().float().cpu().numpy().astype(np.float16)
        for name, one in model.named_parameters()
        if name.endswith((".down", ".up"))
    }


def vectors_of(model: QueryTower, rows: TokenRows) -> Tensor:
    """(rows, 384) on the device, without gradients."""
    model.eval()
    found = torch.zeros(len(rows.lengths), HIDDEN, device=DEVICE)
    order = np.argsort(-rows.lengths, kind="stable")
    with torch.inference_mode():
        while len(order):
            count = max(1, TOKENS_AT_ONCE // max(int(rows.lengths[order[0]]), 16))
            chosen, order = order[:count], order[count:]
            found[torch.from_numpy(chosen).to(DEVICE)] = model(*rows.batch(chosen))
    return found


def rows_of(ids: Sequence[Sequence[int]]) -> TokenRows:
    return TokenRows.of([TokenPair(tuple(one), len(one)) for one in ids])


class TowerEncoder:
    """bge-small in floats on the GPU, for `CachedEncoder`."""

    name, dimension = BGE_SMALL, HIDDEN

    def __init__(self) -> None:
        from tokenizers import Tokenizer

        self._model = next_hop_tower().float()
        self._tokenizer = Tokenizer.from_file(str(packaged_model(BGE_SMALL) / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(PASSAGE_TOKENS)

    def encode(self, texts: Sequence[str], *, query: bool = False) -> npt.NDArray[Any]:
        return np.asarray(self.on_device(texts, query=query).cpu().numpy())

    def on_device(self, texts: Sequence[str], *, query: bool = False) -> Tensor:
        prefix = BGE_PREFIX if query else ""
        told = self._tokenizer.encode_batch([prefix + readable(text) for text in texts])
        return vectors_of(self._model, rows_of([one.ids for one in told]))


@dataclass(frozen=True)
class _Lessons:
    """States as tokens, with the passages that are needed and those that do not count."""

    rows: TokenRows
    needed: npt.NDArray[np.int64]  # (states, most needed), -1 for none
    hidden: npt.NDArray[np.int64]  # held ones


def _lessons(
    questions: Sequence[ScorerQuestion], places: Mapping[str, int], rounds: int
) -> _Lessons:
    layout = StateTokenizer.of_bge()
    states = training_states(questions, rounds=rounds, seed=3)
    ids = [layout.ids(questions[one.question].text, one.held) for one in states]
    needed = [
        [places[text] for text, much in zip(one.candidates, one.needed) if much] for one in states
    ]
    return _Lessons(
        rows_of(ids),
        _table(needed),
        _table([[places[text] for text in one.held] for one in states]),
    )


def _table(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    table = np.full((len(rows), max(map(len, rows), default=1) or 1), -1, np.int64)
    for row, values in zip(table, rows):
        row[: len(values)] = values
    return table


def train_next_hop(
    questions: Sequence[ScorerQuestion], others: Iterable[str], *, rounds: int, seed: int = 0
) -> tuple[Arrays, float]:
    """Adapters fitted on these questions' states, and the last loss. `others` are passages of their
    corpus beside those of the questions.
    """
    own = (text for one in questions for text in (*one.gold, *one.pool))
    texts = list(dict.fromkeys((*own, *others)))
    passages = TowerEncoder().on_device(texts).clone()
    lessons = _lessons(questions, {text: at for at, text in enumerate(texts)}, rounds)
    torch.manual_seed(seed)
    model = next_hop_tower()
    order = np.random.default_rng(seed).permutation(len(lessons.needed))
    starts = range(0, len(order), BATCH)
    learner = Learner(model, len(starts), Schedule(rate=RATE))
    for start in starts:
        batch = order[start : start + BATCH]
        groups = list(lessons.rows.parts(batch, 3))
        vectors = torch.cat([model(*lessons.rows.batch(batch[one])) for one in groups])
        batch = batch[np.concatenate(groups)]
        learner.learn(_loss(vectors, passages, lessons.needed[batch], lessons.hidden[batch]))
    return adapters_of(model), learner.loss()


def _loss(
    vectors: Tensor, passages: Tensor, needed: npt.NDArray[Any], hidden: npt.NDArray[Any]
) -> Tensor:
    """Each needed passage against all that are neither needed nor held."""
    scores = vectors @ passages.T / TEMPERATURE
    right, held = (torch.from_numpy(one).to(DEVICE) for one in (needed, hidden))
    there = right >= 0
    of_needed = scores.gather(1, right.clamp(min=0))
    out = torch.zeros_like(scores, dtype=torch.bool)
    for table in (right, held):
        at = torch.arange(len(table), device=DEVICE)[:, None].expand_as(table)
        out[at[table >= 0], table[table >= 0]] = True
    against = torch.logsumexp(scores.masked_fill(out, -1e4), -1, keepdim=True)
    lost = functional.softplus(against - of_needed) * there
    found: Tensor = (lost.sum(1) / there.sum(1).clamp(min=1)).mean()
    return found
