"""Train the set scorer: torch, on a GPU. `suffice_research.training.scorer_study` runs it,
`suffice_research.training.scorer_export` makes the shipped file.

The base is a cross-encoder of twelve layers, trained on web search (ms-marco-MiniLM-L-12-v2, int8
ONNX). Its weights are extracted from the file as floats and every second layer is kept. First the
six layers are distilled from the twelve, on sentences of the corpora as questions, without labels;
then they are trained on states (see `suffice_research.training.scorer_data`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.errors import MissingExtraError
from suffice_research.bridge_quality import PairTokenizer, TokenPair, pad_pairs
from suffice_research.training.scorer_data import ScorerState

try:
    import torch
    from torch.nn import functional
    from transformers import BertConfig, BertForSequenceClassification
except ImportError as error:
    raise MissingExtraError("training the set scorer", extra="train") from error

__all__ = ["Schedule", "cross_encoder", "distil", "fit", "log_odds"]

LAYERS = (1, 3, 5, 7, 9, 11)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Schedule:
    rate: float = 6e-5
    states: int = 24  # per training step
    warmup: float = 0.1
    decay: float = 0.01
    listwise: float = 1.0  # weight of the listwise loss relative to the pointwise one


# ---- the base


def cross_encoder(
    weights: Mapping[str, np.ndarray], layers: Sequence[int] = LAYERS
) -> BertForSequenceClassification:
    """A BERT of these layers with one logit."""
    kept = {}
    for name, one in weights.items():
        head, layer, rest = name.partition(".layer.")
        if layer:
            number, _, rest = rest.partition(".")
            if int(number) not in layers:
                continue
            name = f"{head}.layer.{layers.index(int(number))}.{rest}"
        kept[name] = torch.tensor(one)
    shape = {
        "hidden_size": 384,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
        "vocab_size": 30522,
    }
    model = BertForSequenceClassification(
        BertConfig(**shape, num_hidden_layers=len(layers), num_labels=1)
    )
    model.load_state_dict(kept, strict=True)
    # Keep the word embeddings: two thousand questions do not contain most words.
    model.bert.embeddings.requires_grad_(False)
    return model.to(DEVICE)


# ---- running


def _batch(pairs: Sequence[TokenPair]) -> dict[str, torch.Tensor]:
    return {
        name: torch.from_numpy(one).to(DEVICE, non_blocking=True)
        for name, one in pad_pairs(pairs).items()
    }


def _logits(model: Any, pairs: Sequence[TokenPair]) -> torch.Tensor:
    with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=DEVICE == "cuda"):
        return model(**_batch(pairs)).logits[:, 0].float()


def log_odds(model: Any, pairs: Sequence[TokenPair], *, at_once: int = 1024) -> np.ndarray:
    """The model's output for each pair: (pairs,)."""
    model.eval()
    order = sorted(range(len(pairs)), key=lambda at: len(pairs[at].ids))
    found = np.zeros(len(pairs), np.float32)
    with torch.inference_mode():
        for start in range(0, len(order), at_once):
            chosen = order[start : start + at_once]
            found[chosen] = _logits(model, [pairs[at] for at in chosen]).cpu().numpy()
    return found


def _steps(model: Any, count: int, schedule: Schedule) -> tuple[torch.optim.Optimizer, Any]:
    trained = [one for one in model.parameters() if one.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=schedule.rate, weight_decay=schedule.decay)
    warm = max(1, int(schedule.warmup * count))
    rise = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda at: min((at + 1) / warm, max(0.0, (count - at) / (count - warm + 1)))
    )
    return optimiser, rise


def _train(model: Any, batches: list[Any], loss_of: Any, schedule: Schedule) -> float:
    optimiser, rise = _steps(model, len(batches), schedule)
    model.train()
    recent = []
    for one in batches:
        loss = loss_of(one)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rise.step()
        recent.append(loss.detach())
    return float(torch.stack(recent[-50:]).mean())


# ---- learning


def distil(
    student: Any,
    pairs: Sequence[TokenPair],
    said: np.ndarray,
    schedule: Schedule,
    *,
    size: int = 256,
    seed: int = 0,
) -> float:
    """Train the student on the teacher's output for each pair."""
    order = np.random.default_rng(seed).permutation(len(pairs))
    batches = [order[start : start + size] for start in range(0, len(order), size)]

    def loss(chosen: np.ndarray) -> torch.Tensor:
        wanted = torch.from_numpy(said[chosen]).to(DEVICE)
        return functional.smooth_l1_loss(_logits(student, [pairs[at] for at in chosen]), wanted)

    return _train(student, batches, loss, schedule)


def fit(
    model: Any,
    layout: PairTokenizer,
    questions: Sequence[str],
    states: Sequence[ScorerState],
    schedule: Schedule,
) -> float:
    """Train on the states in the given order."""
    rows = [
        (layout.pairs(questions[one.question], one.held, one.candidates), one.needed)
        for one in states
    ]
    batches = [
        rows[start : start + schedule.states] for start in range(0, len(rows), schedule.states)
    ]

    def loss(batch: list[tuple[list[TokenPair], tuple[float, ...]]]) -> torch.Tensor:
        logits = _logits(model, [pair for pairs, _ in batch for pair in pairs])
        needed = torch.tensor([one for _, wanted in batch for one in wanted], device=DEVICE)
        state = torch.tensor(
            [at for at, (_, wanted) in enumerate(batch) for _ in wanted], device=DEVICE
        )
        single = functional.binary_cross_entropy_with_logits(logits, (needed > 0).float())
        return single + schedule.listwise * _which(logits, needed, state, len(batch))

    return _train(model, batches, loss, schedule)


def _which(
    logits: torch.Tensor, needed: torch.Tensor, state: torch.Tensor, states: int
) -> torch.Tensor:
    """Each needed candidate against those of its state that are not needed, weighted by how much it
    is needed.
    """
    floor = torch.full((states,), -1e4, device=logits.device)
    wrong = torch.where(needed > 0, torch.full_like(logits, -1e4), logits)
    top = torch.maximum(floor.scatter_reduce(0, state, wrong, "amax"), floor).detach()
    others = torch.zeros(states, device=logits.device).scatter_add(
        0, state, torch.exp(wrong - top[state])
    )
    against = top + torch.log(others + 1e-9)
    lost = functional.softplus(against[state] - logits) * needed
    return lost.sum() / needed.sum().clamp(min=1)


def blocks(rows: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
