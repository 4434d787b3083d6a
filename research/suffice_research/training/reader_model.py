"""The reader as a torch model: windows of (question, hit) go through the lower layers, then all
hits of a list together through the upper ones.

In between, every four tokens of a window become one block, and each hit gets a slot, so that the
upper layers can tell hits apart at a quarter of the cost. The outputs are

    needed     for each window, whether its hit is needed
    complete   for the list, whether everything needed is there
    count      how many documents the question needs: 0 (unknown) to 5
    evidence   for each block of four tokens, whether it is evidence
    span       for each token, whether the answer starts or ends there, given the whole list
    answer     for the list, what the answer is: nothing, a span, yes or no
    relevance  for each window, the score of the cross-encoder that the student starts from, so
               that the reader does not forget its pretraining

It starts from ms-marco-MiniLM-L-12-v2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["CrossEncoder", "Outputs", "Reader", "Shape", "load_minilm"]

BLOCK, SLOTS, COUNTS, ANSWERS = 4, 32, 6, 4


@dataclass(frozen=True)
class Shape:
    hidden: int = 384
    heads: int = 12
    inner: int = 1536
    pair: int = 6
    joint: int = 4
    vocabulary: int = 30522
    positions: int = 512
    relu: bool = True  # a ninth faster than gelu on a CPU
    epsilon: float = 1e-12
    dropout: float = 0.1


class Outputs(NamedTuple):
    needed: Tensor  # (windows,)
    complete: Tensor  # (lists,)
    count: Tensor  # (lists, COUNTS)
    evidence: Tensor  # (windows, blocks)
    span: Tensor  # (windows, tokens, 2)
    answer: Tensor  # (lists, ANSWERS)
    relevance: Tensor  # (windows,)


class Layer(nn.Module):  # type: ignore[misc]
    """A layer of BERT."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        size = shape.hidden
        self.heads, self.dropout = shape.heads, shape.dropout
        self.bend = functional.relu if shape.relu else functional.gelu
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.out = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size, eps=shape.epsilon)
        self.up, self.down = nn.Linear(size, shape.inner), nn.Linear(shape.inner, size)
        self.final = nn.LayerNorm(size, eps=shape.epsilon)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        rows, tokens, size = x.shape

        def split(values: Tensor) -> Tensor:
            return values.view(rows, tokens, self.heads, size // self.heads).transpose(1, 2)

        read = functional.scaled_dot_product_attention(
            split(self.query(x)), split(self.key(x)), split(self.value(x)), attn_mask=mask
        )
        read = self.out(read.transpose(1, 2).reshape(rows, tokens, size))
        x = self.norm(x + functional.dropout(read, self.dropout, self.training))
        made = self.down(self.bend(self.up(x)))
        return self.final(x + functional.dropout(made, self.dropout, self.training))


class Reader(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        size = shape.hidden
        self.words = nn.Embedding(shape.vocabulary, size)
        self.positions = nn.Embedding(shape.positions, size)
        self.types = nn.Embedding(2, size)
        self.norm = nn.LayerNorm(size, eps=shape.epsilon)
        self.pair = nn.ModuleList(Layer(shape) for _ in range(shape.pair))
        self.joint = nn.ModuleList(Layer(shape) for _ in range(shape.joint))
        self.slots = nn.Embedding(SLOTS, size)
        self.whole = nn.Parameter(torch.zeros(size))
        self.to_needed, self.to_evidence = nn.Linear(size, 1), nn.Linear(size, 1)
        self.to_place, self.to_relevance = nn.Linear(2 * size, 2), nn.Linear(size, 1)
        self.to_set = nn.Linear(2 * size, size)
        self.to_complete, self.to_count = nn.Linear(size, 1), nn.Linear(size, COUNTS)
        self.to_answer = nn.Linear(size, ANSWERS)
        nn.init.normal_(self.slots.weight, std=0.3)
        nn.init.normal_(self.whole, std=0.3)

    def forward(
        self, ids: Tensor, types: Tensor, owner: Tensor, slot: Tensor, head: Tensor, take: Tensor,
        put: Tensor, longest: int, widths: Sequence[int], lists: int,
    ) -> Outputs:  # fmt: skip
        """See `Batch` in `suffice_research.training.reader_lists`."""
        rows, tokens = ids.shape
        size, width = self.shape.hidden, (tokens - 1) // BLOCK + 1
        read, parts, relevance = [], [], []
        for x, present in self.read_pairs(ids, types, widths):
            read.append(functional.pad(x, (0, 0, 0, tokens - x.shape[1])))
            relevance.append(self.to_relevance(x[:, 0])[:, 0])
            blocks, _ = pool(x, present)
            parts.append(functional.pad(blocks, (0, 0, 0, width - blocks.shape[1])))
        blocks = torch.cat(parts) + self.slots(slot)[:, None]
        y = blocks.new_zeros(lists * longest, size)
        y[put] = blocks.view(-1, size)[take]
        seen = torch.zeros(lists * longest, dtype=torch.bool, device=ids.device)
        seen[put] = True
        first = torch.arange(lists, device=ids.device) * longest
        y[first] = self.whole.to(y.dtype).expand(lists, size)
        seen[first] = True
        y, sight = y.view(lists, longest, size), seen.view(lists, 1, 1, longest)
        for layer in self.joint:
            y = layer(y, sight)
        y = y.reshape(lists * longest, size)
        heads = y[head]
        top = heads.new_full((lists, size), -1e4)
        top = top.scatter_reduce(0, owner[:, None].expand(-1, size), heads, "amax")
        about = torch.tanh(self.to_set(torch.cat([y[first], top], -1)))
        marks = self.to_evidence(y)[:, 0]
        evidence = marks.new_zeros(rows * width)
        evidence[take] = marks[put]
        above = y.new_zeros(rows * width, size)
        above[take] = y[put]
        return Outputs(
            self.to_needed(heads)[:, 0], self.to_complete(about)[:, 0], self.to_count(about),
            evidence.view(rows, width)[:, 1:],
            self.places(torch.cat(read), above.view(rows, width, size)),
            self.to_answer(about), torch.cat(relevance),
        )  # fmt: skip

    def places(self, x: Tensor, above: Tensor) -> Tensor:
        """Where the answer starts and ends, from each token and its block."""
        blocks = above[:, 1:].repeat_interleave(BLOCK, 1)
        return self.to_place(torch.cat([x, torch.cat([above[:, :1], blocks], 1)], -1))

    def read_pairs(
        self, ids: Tensor, types: Tensor, widths: Sequence[int]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The windows through the lower layers, by group, and which tokens are not padding."""
        groups = zip(
            ids.tensor_split(len(widths)), types.tensor_split(len(widths)), widths, strict=True
        )
        for some, kinds, most in groups:
            some, kinds = some[:, :most], kinds[:, :most]
            present = some > 0
            x = self._embed(some, kinds)
            mask = present[:, None, None, :]
            for layer in self.pair:
                x = layer(x, mask)
            yield x, present

    def _embed(self, ids: Tensor, types: Tensor) -> Tensor:
        tokens = ids.shape[1]
        at = torch.arange(tokens, device=ids.device)
        x = self.words(ids) + self.positions(at) + self.types(types)
        return functional.dropout(self.norm(x), self.shape.dropout, self.training)


def pool(x: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """The first token, then the mean of every four; and which blocks are not empty."""
    rows, _, size = x.shape
    weights = present[:, 1:].view(rows, -1, BLOCK).to(x.dtype)
    values = x[:, 1:].view(rows, -1, BLOCK, size)
    total = weights.sum(-1)
    means = (values * weights[..., None]).sum(2) / total.clamp(min=1)[..., None]
    return torch.cat([x[:, :1], means.to(x.dtype)], 1), torch.cat([present[:, :1], total > 0], 1)


# ---- weights of the base

_BERT = {
    "attention.self.query": "query", "attention.self.key": "key", "attention.self.value": "value",
    "attention.output.dense": "out", "attention.output.LayerNorm": "norm",
    "intermediate.dense": "up", "output.dense": "down", "output.LayerNorm": "final",
}  # fmt: skip


def _load(
    model: Reader, weights: Mapping[str, Tensor], pair: Sequence[int], joint: Sequence[int]
) -> None:
    found = {}
    for stage, layers in (("pair", pair), ("joint", joint)):
        for number, layer in enumerate(layers):
            for old, new in _BERT.items():
                for kind in ("weight", "bias"):
                    key = f"bert.encoder.layer.{layer}.{old}.{kind}"
                    if key in weights:
                        found[f"{stage}.{number}.{new}.{kind}"] = weights[key]
    pairs = {
        "words.weight": "word_embeddings.weight", "positions.weight": "position_embeddings.weight",
        "types.weight": "token_type_embeddings.weight", "norm.weight": "LayerNorm.weight",
        "norm.bias": "LayerNorm.bias",
    }  # fmt: skip
    for new, old in pairs.items():
        key = f"bert.embeddings.{old}"
        if key in weights and new in model.state_dict():
            found[new] = weights[key]
    left = model.load_state_dict({k: v.float() for k, v in found.items()}, strict=False)
    lost = [
        name
        for name in left.missing_keys
        if name.split(".")[0] in ("pair", "joint", "words", "positions", "norm", "types")
    ]
    if left.unexpected_keys or lost:
        raise SystemExit(f"the base does not fit: {left}")


class CrossEncoder(nn.Module):  # type: ignore[misc]
    """The original ms-marco-MiniLM-L-12-v2: the relevance of each window."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.base = load_minilm(weights, range(12), (), relu=False, dropout=0.0)
        self.pooler = nn.Linear(384, 384)
        self.classifier = nn.Linear(384, 1)
        for name in ("pooler", "classifier"):
            key = "bert.pooler.dense" if name == "pooler" else name
            for kind in ("weight", "bias"):
                getattr(getattr(self, name), kind).data.copy_(weights[f"{key}.{kind}"])
        self.requires_grad_(False)

    def forward(self, ids: Tensor, types: Tensor, widths: Sequence[int]) -> Tensor:
        read = self.base.read_pairs(ids, types, widths)
        return torch.cat([self.classifier(torch.tanh(self.pooler(x[:, 0])))[:, 0] for x, _ in read])


def load_minilm(
    weights: Mapping[str, Tensor], pair: Sequence[int], joint: Sequence[int], **shape: float
) -> Reader:
    model = Reader(Shape(pair=len(pair), joint=len(joint), **shape))  # type: ignore[arg-type]
    _load(model, weights, pair, joint)
    return model
