"""Train the deep judge on a GPU: a LoRA adapter on Qwen2.5-Coder that reads a list at once.

    python -m suffice_research.training.deep_training qwen.gguf deep.json.gz --out DIR
        --start DIR --seconds 1300 --rate 2e-4

`--start` is the folder of an earlier adapter; without it a new one begins. The learning rate rises
for 40 steps and falls in a line to the end of `--seconds`. Writes the adapter (`adapter-N.npy` of 8
bits, `scales.npy` of each row, `names.json` with the order; a layer gains `b @ a`, times 2), what
the model says of the judged lists, and `log.json`. Needs numpy, torch and tokenizers.

Linear layers with the same input are one product: `[x | x a] @ [w | 2 b]`, so that an adapter costs
no second pass over the outputs, and no gradient of the frozen weights is ever made.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from suffice_research.training.deep_lists import ECHOES, ORDERS, Drawer, Example, flat_text
from suffice_research.training.language_model import (
    Decoder,
    GgufFile,
    Layer,
    load_decoder,
    load_tokenizer,
    open_gguf,
)

__all__ = ["JudgeDecoder", "judge_lists", "load_adapter", "train"]

SCALE, WARM, LOWEST, SAVED = 2.0, 40, 0.02, 500
GROUPS = {
    "qkv": ("query", "key", "value"),
    "out": ("out",),
    "inner": ("gate", "up"),
    "down": ("down",),
}
WORKERS, PIECES = 13, 2
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HALF = torch.bfloat16
NEUTRAL = (
    "Page 2 of 3.",
    "Printed on recycled paper.",
    "See also the index.",
    "Contact: the office.",
)


class _Product(torch.autograd.Function):  # type: ignore[misc]
    """x w' + 2 (x a') b', with gradients for x, a and b only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, a: Tensor, b: Tensor) -> Tensor:  # fmt: skip
        low = x @ a.T
        ctx.save_for_backward(x, weight, a, b, low)
        return functional.linear(torch.cat([x, low], 1), torch.cat([weight, b], 1), bias)

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, a, b, low = ctx.saved_tensors
        both = given @ torch.cat([weight, b], 1)
        size = x.shape[1]
        back = both[:, size:]
        return both[:, :size] + back @ a, None, None, back.T @ x, given.T @ low


class Adapted(nn.Module):  # type: ignore[misc]
    """Frozen layers with one input, each with its own adapter."""

    def __init__(self, layers: Sequence[nn.Linear], rank: int) -> None:
        super().__init__()
        device = layers[0].weight.device
        weight = torch.cat([one.weight.detach() for one in layers]).to(HALF)
        self.register_buffer("weight", weight, persistent=False)
        biases = [one.bias for one in layers]
        bias = None if biases[0] is None else torch.cat([b.detach() for b in biases]).to(HALF)
        self.register_buffer("bias", bias, persistent=False)
        self.a = nn.ParameterList(
            nn.Parameter(torch.randn(rank, one.in_features, device=device) / one.in_features**0.5)
            for one in layers
        )
        self.b = nn.ParameterList(
            nn.Parameter(torch.zeros(one.out_features, rank, device=device)) for one in layers
        )

    def forward(self, x: Tensor) -> Tensor:
        a = torch.cat(list(self.a)).to(HALF)
        b = torch.block_diag(*self.b).to(HALF) * SCALE
        return _Product.apply(x, self.weight, self.bias, a, b)


def _norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + epsilon) * weight).to(x.dtype)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    one, other = x.chunk(2, -1)
    return x * cos + torch.cat([-other, one], -1) * sin


def _gated(both: Tensor) -> Tensor:
    gate, up = both.chunk(2, -1)
    return functional.silu(gate) * up


def _compiled(parts: tuple[Callable[..., Tensor], ...]) -> tuple[Callable[..., Tensor], ...]:
    """Each part as one kernel, where the machine can make them."""
    torch.backends.cuda.enable_cudnn_sdp(False)  # it would prepare every shape anew
    made = tuple(torch.compile(one, dynamic=True) for one in parts)
    try:
        x = torch.randn(6, 4, 8, device=DEVICE, dtype=HALF, requires_grad=True)
        angle, weight = x.detach()[:, :1], torch.ones(8, device=DEVICE)
        y = made[2](torch.cat([made[1](x, angle, angle), made[0](x, weight, 1e-6)], -1))
        y.sum().backward()
    except Exception as error:  # noqa: BLE001 (no compiler there: slower, not wrong)
        print(f"not compiled: {error}"[:300], flush=True)
        return parts
    return made


class JudgeDecoder(nn.Module):  # type: ignore[misc]
    """Qwen2 with an adapter; says the log-odds of " yes" against " no" at the given places."""

    def __init__(self, decoder: Decoder, difference: Tensor, rank: int) -> None:
        super().__init__()
        self.sizes = decoder.sizes
        frozen = (decoder.tokens.weight, decoder.norm.weight, difference)
        for name, value in zip(("tokens", "norm", "difference"), frozen, strict=True):
            kind = HALF if name == "tokens" else torch.float32
            self.register_buffer(name, value.detach().to(kind), persistent=False)
        self.layers = nn.ModuleList(self._adapted(layer, rank) for layer in decoder.layers)
        self.fused: tuple[Callable[..., Tensor], ...] = (_norm, _rotated, _gated)

    def _adapted(self, layer: Layer, rank: int) -> nn.Module:
        parts = nn.ModuleDict(
            {
                name: Adapted([getattr(layer, one) for one in some], rank)
                for name, some in GROUPS.items()
            }
        )
        for name in ("attention_norm", "inner_norm"):
            parts.register_buffer(
                name, getattr(layer, name).weight.detach().float(), persistent=False
            )
        return parts

    def parameters_by_name(self) -> dict[str, nn.Parameter]:
        return {
            f"layers.{at}.{layer}.{side}": getattr(parts[group], side)[number]
            for at, parts in enumerate(self.layers)
            for group, some in GROUPS.items()
            for number, layer in enumerate(some)
            for side in "ab"
        }

    def forward(self, ids: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        norm, rotated, gated = self.fused
        sizes, (count, width) = self.sizes, ids.shape
        steps = torch.arange(0, sizes.width, 2, device=ids.device) / sizes.width
        angles = torch.arange(width, device=ids.device)[:, None].float() * sizes.rotation**-steps
        angles = torch.cat([angles, angles], -1)[:, None]  # token, head, width
        cos, sin = angles.cos().to(HALF), angles.sin().to(HALF)
        x = functional.embedding(ids, self.tokens).view(count * width, -1)
        ends = [sizes.hidden, sizes.hidden + sizes.key_heads * sizes.width]
        for parts in self.layers:
            y = parts["qkv"](norm(x, parts.attention_norm, sizes.epsilon))
            query, key, value = (
                one.reshape(count, width, -1, sizes.width)
                for one in torch.tensor_split(y, ends, dim=1)
            )
            read = functional.scaled_dot_product_attention(
                rotated(query, cos, sin).transpose(1, 2), rotated(key, cos, sin).transpose(1, 2),
                value.transpose(1, 2), is_causal=True, enable_gqa=True,
            )  # fmt: skip
            x = x + parts["out"](read.transpose(1, 2).reshape(count * width, -1))
            x = x + parts["down"](gated(parts["inner"](norm(x, parts.inner_norm, sizes.epsilon))))
        said = x.view(count, width, -1)[rows, places]
        return _norm(said.float(), self.norm, sizes.epsilon) @ self.difference


def load_judge(file: GgufFile, words: Sequence[int], rank: int) -> JudgeDecoder:
    """The decoder of a file; `words` are the tokens of " yes" and " no"."""
    decoder = load_decoder(file, DEVICE)
    yes, no = (decoder.tokens.weight[one].detach().float() for one in words)
    return JudgeDecoder(decoder, yes - no, rank)


def load_adapter(model: JudgeDecoder, folder: Path) -> None:
    """Take over an earlier adapter; ranks that it lacks keep their start, which adds nothing."""
    shapes = json.loads((folder / "names.json").read_text(encoding="utf-8"))
    pieces = [np.load(one, allow_pickle=False) for one in sorted(folder.glob("adapter-*.npy"))]
    values, scales = np.concatenate(pieces), np.load(folder / "scales.npy", allow_pickle=False)
    own, at, row = model.parameters_by_name(), 0, 0
    with torch.no_grad():
        for name, (rows, width) in shapes:
            whole = values[at : at + rows * width].reshape(rows, width).astype(np.float32)
            value = torch.from_numpy(whole * scales[row : row + rows, None].astype(np.float32))
            own[name][:rows, :width] = value.to(DEVICE)
            at, row = at + rows * width, row + rows


def save_adapter(model: JudgeDecoder, folder: Path) -> None:
    """Eight bits a weight and a scale for each row: half of what bf16 takes."""
    own = dict(sorted(model.parameters_by_name().items()))
    values, scales = [], []
    for one in own.values():
        rows = one.detach().float().cpu().numpy()
        scale = np.maximum(np.abs(rows).max(1) / 127, 1e-7).astype(np.float16)
        values.append(np.rint(rows / scale[:, None].astype(np.float32)).clip(-127, 127).ravel())
        scales.append(scale)
    shapes = [[name, list(one.shape)] for name, one in own.items()]
    (folder / "names.json").write_text(json.dumps(shapes), encoding="utf-8")
    for at, piece in enumerate(np.array_split(np.concatenate(values).astype(np.int8), PIECES)):
        np.save(folder / f"adapter-{at}.npy", piece)
    np.save(folder / "scales.npy", np.concatenate(scales))


def _say(model: JudgeDecoder, some: Sequence[Example]) -> Tensor:
    """The log-odds of all hits and lists, in a row."""
    width = max(len(one.ids) for one in some)
    width += -width % 8
    ids = np.zeros((len(some), width), np.int64)
    for row, one in zip(ids, some, strict=True):
        row[: len(one.ids)] = one.ids
    rows = [at for at, one in enumerate(some) for _ in one.places]
    places = [place for one in some for place in one.places]
    given = (torch.from_numpy(ids), torch.tensor(rows), torch.tensor(places))
    if DEVICE == "cuda":
        given = tuple(one.pin_memory().to(DEVICE, non_blocking=True) for one in given)
    return model(*given)


# ---- judged lists


def _forms(row: dict[str, Any], draw: random.Random) -> Iterator[tuple[str, list[list[str]]]]:
    """A judged list as it is; of our own unseen files also without titles, and with a sentence in
    one hit: the question, an order, or neither.
    """
    hits = row["hits"]
    yield "", hits
    if not row["set"].startswith("unseen/everyday"):
        return
    yield " untitled", [["", text] for _, text in hits]
    at, question = draw.randrange(len(hits)), row["question"]
    for name, some in (("question", ECHOES), ("order", ORDERS[:8]), ("neutral", NEUTRAL)):
        added = draw.choice(some).replace("{q}", question)
        yield (
            f" {name} in a hit",
            [
                [title, f"{text}\n{added}" if n == at else text]
                for n, (title, text) in enumerate(hits)
            ],
        )
    yield " question in all", [[title, f"{question}\n{text}"] for title, text in hits]


def judge_lists(
    model: JudgeDecoder, drawer: Drawer, judged: Sequence[dict[str, Any]], tokens: int
) -> list[dict[str, Any]]:
    """What the model says of each judged list, in every form."""
    prompt, draw = drawer.prompt, random.Random(5)
    found, examples = [], []
    for row in judged:
        question = prompt.encode([flat_text(row["question"])])[0]
        for form, hits in _forms(row, draw):
            texts = [np.concatenate([prompt.title(t), prompt.body(x)]) for t, x in hits]
            ids, places = prompt.build(question, texts)
            examples.append(Example(ids, places, []))
            found.append(
                {"set": row["set"] + form, "complete": row["complete"], "gold": row["gold"],
                 "needed": row["needed"], "tokens": len(ids), "question": row["question"]}
            )  # fmt: skip
    order = sorted(range(len(examples)), key=lambda at: len(examples[at].ids))
    with torch.no_grad():
        while order:
            count = max(1, tokens // len(examples[order[-1]].ids))
            some, order = order[-count:], order[:-count]
            said = _say(model, [examples[at] for at in some]).float().cpu().tolist()
            for at in some:
                here, said = said[: len(examples[at].places)], said[len(examples[at].places) :]
                found[at] |= {
                    "hits": [round(one, 3) for one in here[:-1]],
                    "list": round(here[-1], 4),
                }
    return found


def summary(found: Sequence[dict[str, Any]]) -> dict[str, list[float]]:
    """For each set: lists, AUROC, ECE, and the shares of complete and incomplete lists above 0.5."""
    sets: dict[str, list[float]] = {}
    for name in dict.fromkeys(one["set"] for one in found):
        rows = [one for one in found if one["set"] == name]
        true = np.array([one["complete"] for one in rows])
        odds = np.array([one["list"] for one in rows])
        p = 1 / (1 + np.exp(-odds))
        above = (odds[true][:, None] > odds[~true]) + 0.5 * (odds[true][:, None] == odds[~true])
        bins = np.minimum((p * 10).astype(int), 9)
        gaps = [abs(true[bins == b].mean() - p[bins == b].mean()) * (bins == b).mean()
                for b in range(10) if (bins == b).any()]  # fmt: skip
        shares = [float((p[side] > 0.5).mean()) if side.any() else 0.5 for side in (true, ~true)]
        figures = (len(rows), above.mean() if above.size else 0.5, sum(gaps), *shares)
        sets[name] = [round(float(one), 4) for one in figures]
    return sets


# ---- training


def train(
    model: JudgeDecoder, next_batch: Callable[[], list[Example]], seconds: float, rate: float,
    log: Callable[[str], None], save: Callable[[], None],
) -> int:  # fmt: skip
    """Steps until the time is over; returns how many tokens were read."""
    own = list(model.parameters_by_name().values())
    optimizer = torch.optim.AdamW(
        own, lr=rate, betas=(0.9, 0.98), weight_decay=0.01, fused=DEVICE == "cuda"
    )
    start, tokens, step, losses = time.monotonic(), 0, 0, list[Tensor]()
    while (spent := time.monotonic() - start) < seconds:
        batch = next_batch()
        share = min((step + 1) / WARM, max(LOWEST, 1 - spent / seconds))
        for group in optimizer.param_groups:
            group["lr"] = rate * share
        said = _say(model, batch)
        labels = torch.tensor([label for one in batch for label in one.labels], device=DEVICE)
        lasts = torch.tensor(np.cumsum([len(one.places) for one in batch]) - 1, device=DEVICE)
        loss = functional.binary_cross_entropy_with_logits(said, labels, reduction="none")
        whole = loss[lasts].mean()
        hits = (loss.sum() - loss[lasts].sum()) / (len(loss) - len(lasts))
        optimizer.zero_grad(set_to_none=True)
        (whole + hits).backward()
        nn.utils.clip_grad_norm_(own, 1.0)
        optimizer.step()
        losses.append(torch.stack([whole.detach(), hits.detach()]))
        tokens, step = tokens + sum(len(one.ids) for one in batch), step + 1
        if step % 50 == 0:
            mean = torch.stack(losses[-50:]).mean(0).tolist()
            log(f"step {step} complete {mean[0]:.3f} needed {mean[1]:.3f} tokens {tokens / 1e6:.1f}M "
                f"{tokens / (time.monotonic() - start):.0f}/s")  # fmt: skip
        if step % SAVED == 0:
            save()
    return tokens


def _fill(drawer: Drawer, seed: int, tokens: int, queue: Any) -> None:
    torch.set_num_threads(1)
    for batch in drawer.batches(seed, tokens):
        queue.put(batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("lists", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=Path)
    parser.add_argument("--seconds", type=float, default=1300)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=24000, help="of a batch")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()

    def log(text: str) -> None:
        print(f"{time.monotonic() - begun:6.0f} {text}", flush=True)

    file = open_gguf(given.model)
    tokenizer = load_tokenizer(file)
    content = json.loads(gzip.decompress(given.lists.read_bytes()))
    drawer = Drawer(content, tokenizer)
    log(f"{len(drawer.passages)} passages, {len(content['rows'])} cases")
    context = multiprocessing.get_context("fork")
    queue = context.Queue(96)
    workers = [
        context.Process(
            target=_fill, args=(drawer, given.seed * 100 + at, given.tokens, queue), daemon=True
        )
        for at in range(WORKERS)
    ]
    for one in workers:
        one.start()
    torch.manual_seed(given.seed)
    words = [int(one[0]) for one in drawer.prompt.encode([" yes", " no"])]
    model = load_judge(file, words, given.rank).to(DEVICE)
    if given.start:
        load_adapter(model, given.start)
    model.fused = _compiled(model.fused) if DEVICE == "cuda" else model.fused
    log("loaded")
    figures: dict[str, Any] = {}
    if given.start:
        kept = [row for row in content["judged"] if row["set"].startswith("unseen")]
        figures["before"] = summary(judge_lists(model, drawer, kept, 3 * given.tokens))
        log(json.dumps(figures["before"]))
    tokens = train(
        model, queue.get, given.seconds, given.rate, log, lambda: save_adapter(model, given.out)
    )
    for one in workers:
        one.terminate()
    save_adapter(model, given.out)
    log(f"saved after {tokens} tokens")
    found = judge_lists(model, drawer, content["judged"], 3 * given.tokens)
    figures |= {"after": summary(found), "tokens": tokens, "seconds": given.seconds}
    log(json.dumps(figures["after"]))
    (given.out / "log.json").write_text(json.dumps(figures), encoding="utf-8")
    (given.out / "said.json.gz").write_bytes(gzip.compress(json.dumps(found).encode()))
    log("done")


if __name__ == "__main__":
    main()
