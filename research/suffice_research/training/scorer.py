"""Train the set scorer: torch, on a GPU. `suffice_research.training.scorer_study` runs it,
`suffice_research.training.scorer_export` makes the shipped file.

The base is a cross-encoder of twelve layers, trained on web search (ms-marco-MiniLM-L-12-v2, int8
ONNX). Its weights are extracted from the file as floats. The teacher has all twelve layers, the
student every second one. First the student is distilled from the base, on sentences of passages as
questions, without labels; then the teacher learns from states (see
`suffice_research.training.scorer_data`), and the student from states and what the teacher says of
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import MissingExtraError
from suffice_research.bridge_quality import TokenPair
from suffice_research.training.reader_weights import smaller
from suffice_research.training.scorer_data import PackedStates

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError as error:
    raise MissingExtraError("training the set scorer", extra="train") from error

__all__ = [
    "Learner",
    "Schedule",
    "TokenRows",
    "cross_encoder",
    "distil",
    "fit",
    "log_odds",
    "rounded",
]

Floats = npt.NDArray[np.float32]
LAYERS, EVERY = (1, 3, 5, 7, 9, 11), tuple(range(12))
HIDDEN, HEADS, INNER, WORDS, POSITIONS = 384, 12, 1536, 30522, 512
DROPOUT = 0.1
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PRECISION = torch.bfloat16 if DEVICE == "cuda" else torch.float32
NEVER = -1e4  # the logit of a candidate that a state does not have
TOKENS_AT_ONCE = 200_000 if DEVICE == "cuda" else 8_000  # without gradients


if DEVICE == "cuda":
    # It would prepare anew for every shape, and shapes differ from step to step.
    torch.backends.cuda.enable_cudnn_sdp(False)


@dataclass(frozen=True)
class Schedule:
    rate: float
    states: int = 32 if DEVICE == "cuda" else 2  # per step
    pairs: int = 512 if DEVICE == "cuda" else 16  # per step, where there are no states
    warmup: float = 0.1
    decay: float = 0.01
    listwise: float = 1.0  # weight of the listwise loss relative to the pointwise one
    label: float = 0.4  # weight of the labels beside what a teacher says
    parts: int = 3  # per step, by length, to pad less


# ---- the network


class Embeddings(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(WORDS, HIDDEN)
        self.position_embeddings = nn.Embedding(POSITIONS, HIDDEN)
        self.token_type_embeddings = nn.Embedding(2, HIDDEN)
        self.LayerNorm = nn.LayerNorm(HIDDEN, eps=1e-12)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        at = torch.arange(input_ids.shape[1], device=input_ids.device)
        found = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.LayerNorm(found + self.position_embeddings(at))


class Layer(nn.Module):  # type: ignore[misc]
    """A layer of BERT, with some tokens as queries over all tokens."""

    def __init__(self) -> None:
        super().__init__()
        own = nn.ModuleDict({one: nn.Linear(HIDDEN, HIDDEN) for one in ("query", "key", "value")})
        self.attention = nn.ModuleDict({"self": own, "output": _output(HIDDEN)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(HIDDEN, INNER)})
        self.output = _output(INNER)

    def forward(self, asking: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        own, output = self.attention["self"], self.attention["output"]
        seen = functional.scaled_dot_product_attention(
            _heads(own["query"](asking)), _heads(own["key"](tokens)),
            _heads(own["value"](tokens)), attn_mask=mask,
        )  # fmt: skip
        seen = output["dense"](seen.transpose(1, 2).reshape(asking.shape))
        met = output["LayerNorm"](functional.dropout(seen, DROPOUT, self.training) + asking)
        made = self.output["dense"](functional.gelu(self.intermediate["dense"](met)))
        found: Tensor = self.output["LayerNorm"](
            functional.dropout(made, DROPOUT, self.training) + met
        )
        return found


def _output(size: int) -> nn.ModuleDict:
    return nn.ModuleDict(
        {"dense": nn.Linear(size, HIDDEN), "LayerNorm": nn.LayerNorm(HIDDEN, eps=1e-12)}
    )


def _heads(values: Tensor) -> Tensor:
    return values.view(*values.shape[:2], HEADS, HIDDEN // HEADS).transpose(1, 2)


class CrossEncoder(nn.Module):  # type: ignore[misc]
    """BERT with one logit; parameters have the names of transformers' BERT.

    The last layer computes only the first token's output.
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.bert = nn.ModuleDict(
            {
                "embeddings": Embeddings(),
                "encoder": nn.ModuleDict({"layer": nn.ModuleList(Layer() for _ in range(layers))}),
                "pooler": nn.ModuleDict({"dense": nn.Linear(HIDDEN, HIDDEN)}),
            }
        )
        self.classifier = nn.Linear(HIDDEN, 1)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, mask: Tensor) -> Tensor:
        """The logit of each pair; `mask` is true where there is a token: (pairs, 1, 1, tokens)."""
        tokens = self.bert["embeddings"](input_ids, token_type_ids)
        *layers, last = self.bert["encoder"]["layer"]
        for layer in layers:
            tokens = layer(tokens, tokens, mask)
        first = last(tokens[:, :1], tokens, mask)[:, 0]
        pooled = torch.tanh(self.bert["pooler"]["dense"](first))
        found: Tensor = self.classifier(pooled)[:, 0]
        return found


def cross_encoder(
    weights: Mapping[str, npt.NDArray[Any]], layers: Sequence[int] = LAYERS
) -> CrossEncoder:
    """A network from these layers of the weights, in the precision that it runs in."""
    kept = {}
    for name, one in weights.items():
        head, layer, rest = name.partition(".layer.")
        if layer:
            number, _, rest = rest.partition(".")
            if int(number) not in layers:
                continue
            name = f"{head}.layer.{layers.index(int(number))}.{rest}"
        kept[name] = torch.tensor(np.asarray(one, np.float32))
    model = CrossEncoder(len(layers))
    model.load_state_dict(kept, strict=True)
    # Keep the word embeddings: a few thousand questions do not contain most words.
    model.bert["embeddings"].requires_grad_(False)
    model.to(DEVICE, PRECISION)
    return model


def parameters(model: CrossEncoder) -> dict[str, npt.NDArray[Any]]:
    """The weights, without the embeddings, which stay the base's."""
    return {
        name: one.float().cpu().numpy()
        for name, one in model.state_dict().items()
        if "embeddings" not in name
    }


def rounded(weights: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The weights as they ship: matrices as int8 with a scale per output, the rest in half
    precision. See `reader_weights.read_weights`.
    """
    return {key: part for name, one in weights.items() for key, part in smaller(name, one).items()}


# ---- pairs on the device


class TokenRows:
    """Many pairs on the device, one after the other; `batch` pads some of them."""

    def __init__(
        self, ids: npt.NDArray[Any], lengths: npt.NDArray[Any], seconds: npt.NDArray[Any]
    ) -> None:
        self.ids = torch.from_numpy(ids.astype(np.int32)).to(DEVICE)
        self.lengths, self.seconds = lengths.astype(np.int64), seconds.astype(np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths

    @classmethod
    def of(cls, pairs: Sequence[TokenPair]) -> TokenRows:
        ids = [np.array(one.ids, np.int32) for one in pairs]
        lengths, seconds = (len(one) for one in ids), (one.second for one in pairs)
        counts = [np.fromiter(some, np.int64, len(ids)) for some in (lengths, seconds)]
        return cls(np.concatenate([*ids, np.zeros(0, np.int32)]), *counts)

    def batch(self, chosen: npt.NDArray[Any]) -> tuple[Tensor, Tensor, Tensor]:
        """Ids, types and mask of some pairs, padded to a multiple of 16 tokens."""
        longest = -(-int(self.lengths[chosen].max(initial=1)) // 16) * 16
        columns = np.stack([self.starts[chosen], self.lengths[chosen], self.seconds[chosen]])
        start, length, second = torch.from_numpy(columns).to(DEVICE)[:, :, None]
        at = torch.arange(longest, device=DEVICE)[None]
        there = at < length
        ids = torch.where(there, self.ids[(start + at).clamp(max=len(self.ids) - 1)], 0)
        return ids, ((at >= second) & there).int(), there[:, None, None, :]

    def parts(self, chosen: npt.NDArray[Any], count: int) -> Iterator[npt.NDArray[Any]]:
        """Positions in `chosen`, in groups of similar length."""
        order = np.argsort(-self.lengths[chosen], kind="stable")
        yield from (one for one in np.array_split(order, count) if len(one))


def _logits(model: CrossEncoder, rows: TokenRows, chosen: npt.NDArray[Any], parts: int) -> Tensor:
    groups = list(rows.parts(chosen, parts))
    found = torch.cat([model(*rows.batch(chosen[one])) for one in groups]).float()
    back = np.argsort(np.concatenate(groups), kind="stable")
    return found[torch.from_numpy(back).to(DEVICE)]


def log_odds(
    model: CrossEncoder, rows: TokenRows, chosen: npt.NDArray[Any] | None = None
) -> Floats:
    """The model's output for each pair, NaN for those that are not chosen: (pairs,)."""
    model.eval()
    found = np.full(len(rows.lengths), np.nan, np.float32)
    chosen = np.arange(len(found)) if chosen is None else chosen
    if len(chosen):
        size = int(rows.lengths[chosen].sum())
        parts = min(max(math.ceil(size / TOKENS_AT_ONCE), 4), len(chosen))
        with torch.inference_mode():
            found[chosen] = _logits(model, rows, chosen, parts).cpu().numpy()
    return found


# ---- learning


class Learner:
    """AdamW over float32 copies of the weights, which may have half precision themselves."""

    def __init__(self, model: CrossEncoder, steps: int, schedule: Schedule) -> None:
        self.model, self.steps, self.schedule = model, steps, schedule
        self.trained = [one for one in model.parameters() if one.requires_grad]
        self.masters = [one.detach().clone().float() for one in self.trained]
        options: dict[str, Any] = {"fused": True} if DEVICE == "cuda" else {}
        self.optimiser = torch.optim.AdamW(
            self.masters, lr=schedule.rate, weight_decay=schedule.decay, **options
        )
        self.recent: list[Tensor] = []
        self.at = 0
        model.train()

    def learn(self, loss: Tensor) -> None:
        loss.backward()
        for master, one in zip(self.masters, self.trained, strict=True):
            master.grad = one.grad.float()
            one.grad = None
        torch.nn.utils.clip_grad_norm_(self.masters, 1.0)
        warm = max(1, int(self.schedule.warmup * self.steps))
        left = (self.steps - self.at) / (self.steps - warm + 1)
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.rate * min((self.at + 1) / warm, max(0.0, left))
        self.optimiser.step()
        with torch.no_grad():
            torch._foreach_copy_(self.trained, self.masters)
        self.at += 1
        self.recent = [*self.recent[-49:], loss.detach()]

    def loss(self) -> float:
        return float(torch.stack(self.recent).mean()) if self.recent else math.nan


def distil(
    student: CrossEncoder, rows: TokenRows, said: Floats, schedule: Schedule, *, seed: int = 0
) -> float:
    """Train the student on the teacher's output for each pair."""
    torch.manual_seed(seed)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(np.isfinite(said)))
    starts = range(0, len(order), schedule.pairs)
    learner = Learner(student, len(starts), schedule)
    wanted = torch.from_numpy(said).to(DEVICE)
    for start in starts:
        chosen = order[start : start + schedule.pairs]
        logits = _logits(student, rows, chosen, schedule.parts)
        learner.learn(
            functional.smooth_l1_loss(logits, wanted[torch.from_numpy(chosen).to(DEVICE)])
        )
    return learner.loss()


def fit(
    model: CrossEncoder, packed: PackedStates, rows: TokenRows, states: npt.NDArray[Any],
    schedule: Schedule, *, said: Floats | None = None, seed: int = 0,
) -> float:  # fmt: skip
    """Train once on each of these states; `rows` are their pairs, `said` is what a teacher says of
    them.
    """
    torch.manual_seed(seed)
    order = np.random.default_rng(seed).permutation(states)
    starts = range(0, len(order), schedule.states)
    learner = Learner(model, len(starts), schedule)
    for start in starts:
        batch = order[start : start + schedule.states]
        table = packed.table(batch)
        logits = _logits(model, rows, table[table >= 0], schedule.parts)
        learner.learn(_loss(logits, table, packed, said, schedule))
    return learner.loss()


def _loss(
    logits: Tensor, table: npt.NDArray[Any], packed: PackedStates, said: Floats | None,
    schedule: Schedule,
) -> Tensor:  # fmt: skip
    """Pointwise and listwise, over (states, candidates)."""

    def device(values: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(values).to(DEVICE)

    has = table >= 0
    there, needed = device(has), device(np.where(has, packed.needed[table], np.float32(0)))
    scores = torch.full(table.shape, NEVER, device=DEVICE).masked_scatter(there, logits)
    labels = device((packed.needed[table[has]] > 0).astype(np.float32))
    single = functional.binary_cross_entropy_with_logits(logits, labels)
    loss = single + schedule.listwise * _listwise(scores, needed, there)
    if said is None:
        return loss
    told = said[table[has]]
    soft = functional.binary_cross_entropy_with_logits(logits, torch.sigmoid(device(told)))
    apart = functional.kl_div(
        torch.log_softmax(scores, -1),
        torch.log_softmax(device(np.where(has, said[table], np.float32(NEVER))), -1),
        log_target=True,
        reduction="batchmean",
    )
    return schedule.label * loss + (1 - schedule.label) * (soft + schedule.listwise * apart)


def _listwise(scores: Tensor, needed: Tensor, there: Tensor) -> Tensor:
    """Each needed candidate against those of its state that are not needed, weighted by how much it
    is needed.
    """
    wrong = torch.where((needed > 0) | ~there, NEVER, scores)
    against = torch.logsumexp(wrong, -1, keepdim=True)
    lost = functional.softplus(against - scores) * needed
    found: Tensor = lost.sum() / needed.sum().clamp(min=1)
    return found


def first_choice(said: Floats, packed: PackedStates, states: npt.NDArray[Any]) -> float:
    """The share of the states in which a needed candidate comes first."""
    table = packed.table(states)
    best = np.where(table >= 0, said[table], -np.inf).argmax(1)
    right = packed.needed[table[np.arange(len(table)), best]] > 0
    return float(right.mean()) if len(right) else math.nan
