"""Train a reader on a GPU: `python -m suffice_research.training.reader_training --help`.

It learns from labels, and from what a teacher says of drawn lists. It needs only
torch and numpy: copy this file, `reader_lists.py`, `reader_model.py` and `reader_weights.py` to the
training machine, in a folder with the name of their package. It writes `student-N.npz`, without the
word embeddings, which stay the base's. `reader_export` turns them into the shipped reader.

With `--deep` the student has all twelve layers of the base: too slow for the gate, but `ask` may take
longer. It starts from a trained reader, whose layers take their old places in the base.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset

from suffice_research.training.reader_lists import (
    UNLABELLED,
    WEIGHTS,
    Batch,
    HitList,
    Pack,
    collate,
    draw_lists,
    draw_pair,
    natural_list,
)
from suffice_research.training.reader_model import (
    CrossEncoder,
    Outputs,
    Reader,
    load_minilm,
)
from suffice_research.training.reader_weights import (
    DEEP,
    JOINT,
    PAIR,
    read_weights,
    write_weights,
)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LEARN, STACK, TEST, UNSEEN = range(4)
JUDGED = ((LEARN, "learn"), (TEST, "test"), (UNSEEN, "unseen"))
FROM_BASE = {"words", "positions", "types", "norm", "pair", "joint"}
WARM_STEPS = 120
SMOOTHING = 0.03  # of the labels
HARD_STEPS = 2  # one step in so many has labels only, the others have what the teacher has read
LABELLED_STEPS = 3  # of those, one in so many has labels, too
TAUGHT = 0.6  # weight of the teacher's word beside the label
ANSWERS = 0.4  # weight of the answers in the loss
RELEVANCE_STEPS = 3  # the cross-encoder runs at one step in so many: it takes a third of a step


# ---- batches


def pools_of(pack: Pack) -> dict[str, np.ndarray]:
    """The cases to learn from, by source."""
    sources = sorted({name.split("/")[0] for name in pack.names})
    return {name: pack.cases_of(LEARN, name) for name in sources}


def taught_weights(pools: Mapping[str, np.ndarray], step: int) -> Mapping[str, float]:
    """The sources of the lists that a teacher reads at a step: with labels, or without."""
    labelled = step % LABELLED_STEPS == 0 or not any(len(pools.get(one, ())) for one in UNLABELLED)
    return WEIGHTS if labelled else UNLABELLED


class TeacherLabels:
    """Lists that a teacher has read, with its probabilities: what a larger model said.

    Lists are drawn again from the same pack and seed. Where there are no labels, the teacher's word
    is the label.
    """

    def __init__(self, path: Path, pack: Pack) -> None:
        self.pack, self.pools = pack, pools_of(pack)
        with np.load(path) as file:
            self.seed, self.windows = int(file["seed"]), int(file["windows"])
            self.lists, self.sizes = file["lists"], file["sizes"]  # per step; values per list
            self.p = file["p"].astype(np.float64)
        self.ends = np.cumsum(self.sizes)
        self.firsts = np.r_[0, np.cumsum(self.lists)]

    def __len__(self) -> int:
        return len(self.lists)

    def draw(self, step: int) -> list[HitList]:
        weights = taught_weights(self.pools, step)
        lists = draw_lists(
            self.pack, self.pools, self.windows, np.random.default_rng([self.seed, step]), weights
        )
        first, end = self.firsts[step : step + 2].tolist()
        if [len(one.hits) + 1 for one in lists] != self.sizes[first:end].tolist():
            raise SystemExit("the teacher has read other lists: was the pack made again?")
        taught = [
            replace(one, taught=tuple(self.p[at - size : at].tolist()))
            for one, at, size in zip(
                lists, self.ends[first:end].tolist(), self.sizes[first:end].tolist(), strict=True
            )
        ]
        return list(map(labelled, taught)) if weights is UNLABELLED else taught


def labelled(listed: HitList) -> HitList:
    """The list with the teacher's word for its labels, and nothing else that may be wrong."""
    *hits, complete = (p > 0.5 for p in listed.taught)
    nothing = np.zeros((0, 3), np.int64)
    return replace(
        listed,
        hits=tuple(replace(one, needed=p) for one, p in zip(listed.hits, hits, strict=True)),
        complete=complete, count=sum(hits) if complete else -1, evidence=nothing, answers=nothing,
        answer=-1, titled=frozenset(),
    )  # fmt: skip


class _Batches(IterableDataset):  # type: ignore[misc]
    def __init__(
        self, pack: Pack, windows: int, steps: range, seed: int, taught: TeacherLabels | None
    ) -> None:
        self.pack, self.windows, self.steps, self.seed = pack, windows, steps, seed
        self.pools, self.taught = pools_of(pack), taught

    def __iter__(self) -> Iterator[dict[str, Any]]:
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        for step in self.steps[worker::workers]:
            draw = np.random.default_rng([self.seed, step])
            if self.taught is None or step % HARD_STEPS == 0:
                lists = draw_lists(self.pack, self.pools, self.windows, draw)
                yield tensors(collate(self.pack, lists, draw))
            else:
                lists = self._taught(self.taught, draw)
                yield tensors(collate(self.taught.pack, lists, draw))

    def _taught(self, taught: TeacherLabels, draw: np.random.Generator) -> list[HitList]:
        lists: list[HitList] = []
        while sum(max(len(one.hits), 2) for one in lists) < self.windows:
            lists += taught.draw(int(draw.integers(len(taught))))
        return lists


def tensors(batch: Batch) -> dict[str, Any]:
    """Arrays as tensors; the two scalar values stay."""
    return {
        name: torch.from_numpy(np.ascontiguousarray(one)) if isinstance(one, np.ndarray) else one
        for name, one in vars(batch).items()
    }


def run(model: Reader, batch: Mapping[str, Any]) -> Outputs:
    with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=DEVICE == "cuda"):
        found = model(
            *(batch[name] for name in ("ids", "types", "owner", "slot", "head", "take", "put")),
            batch["longest"], batch["widths"], len(batch["complete"]),
        )  # fmt: skip
    return Outputs(*(one.float() for one in found))


def to_device(batch: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: one.to(DEVICE, non_blocking=True) if isinstance(one, Tensor) else one
        for name, one in batch.items()
    }


def hit_logits(outputs: Outputs, batch: Mapping[str, Any]) -> Tensor:
    """(lists, slots): the best window of each hit."""
    lists, slots = batch["needed"].shape
    flat = outputs.needed.new_full((lists * slots,), -1e4)
    at = batch["owner"] * slots + batch["slot"]
    return flat.scatter_reduce(0, at, outputs.needed, "amax").view(lists, slots)


# ---- losses


def _bce(logits: Tensor, wanted: Tensor, held: Tensor, positive: float = 1.0) -> Tensor:
    weight = torch.where(wanted > 0.5, positive, 1.0) * held
    lost = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    return (lost * weight).sum() / weight.sum().clamp(min=1)


def _targets(labels: Tensor, taught: Tensor) -> Tensor:
    """The labels, smoothed, and mixed with what the teacher says if it has read the list."""
    smooth = labels.float() * (1 - 2 * SMOOTHING) + SMOOTHING
    return torch.where(taught >= 0, torch.lerp(smooth, taught, TAUGHT), smooth)


def relevance_loss(outputs: Outputs, relevance: Tensor) -> Tensor:
    """The distance from the cross-encoder's score, which is between -12 and 12."""
    return functional.smooth_l1_loss(outputs.relevance, relevance / 4)


def hard_loss(outputs: Outputs, batch: Mapping[str, Any], answers: float = ANSWERS) -> Tensor:
    """The distance from the labels; `answers` is the weight of the answers."""
    needed, complete = batch["needed"], batch["complete"].float()
    hits = hit_logits(outputs, batch)
    # Every list has the same weight, whatever its number of hits.
    there = (needed >= 0).float()
    share = there / there.sum(1, keepdim=True).clamp(min=1)
    lost = functional.binary_cross_entropy_with_logits(
        hits, _targets(needed.clamp(min=0), batch["taught_needed"]), reduction="none"
    )
    total = (lost * share).sum(1).mean() * 2
    total = total + 1.5 * functional.binary_cross_entropy_with_logits(
        outputs.complete, _targets(complete, batch["taught_complete"])
    )
    whole, part = outputs.complete[0::2], outputs.complete[1::2]
    differ = complete[0::2] - complete[1::2]
    margin = functional.softplus(part - whole) * differ.clamp(min=0)
    total = total + 0.7 * margin.sum() / differ.clamp(min=0).sum().clamp(min=1)
    count = batch["count"].clamp(min=0, max=5)
    total = total + 0.2 * functional.cross_entropy(outputs.count, count)
    marks = batch["evidence"]
    total = total + 0.5 * _bce(
        outputs.evidence, marks.clamp(min=0).float(), (marks >= 0).float(), 4.0
    )
    answer = batch["answer"]
    if (answer >= 0).any():
        kind = functional.cross_entropy(outputs.answer, answer, ignore_index=-1)
        total = total + answers * kind
    return total + answers * span_loss(outputs.span, batch)


def span_loss(logits: Tensor, batch: Mapping[str, Any]) -> Tensor:
    """The negative log-likelihood of the answer's first and last token among all tokens of the
    list; if the answer is in several windows, any of them counts.
    """
    lists, owner, spans = len(batch["complete"]), batch["owner"], batch["spans"]
    logits = logits.masked_fill(batch["ids"][:, :, None] == 0, -1e4)
    total = _log_sum(torch.logsumexp(logits, 1), owner, lists)
    held = spans[:, 0] >= 0
    found = logits.gather(1, spans.clamp(min=0)[:, None, :])[:, 0]
    right = _log_sum(found.masked_fill(~held[:, None], -1e4), owner, lists)
    known = torch.zeros(lists, dtype=torch.bool, device=owner.device).index_fill(
        0, owner[held], True
    )
    lost = (total - right).sum(1) * known
    return lost.sum() / known.sum().clamp(min=1)


def _log_sum(values: Tensor, owner: Tensor, lists: int) -> Tensor:
    """logsumexp over the rows of each list."""
    at = owner[:, None].expand_as(values)
    top = values.new_full((lists, values.shape[1]), -1e4).scatter_reduce(0, at, values, "amax")
    top = top.detach()
    summed = values.new_zeros(top.shape).scatter_add(0, at, torch.exp(values - top[owner]))
    return top + torch.log(summed.clamp(min=1e-9))


# ---- training


def train(
    model: Reader, pack: Pack, *, steps: int, windows: int, rate: float, seed: int, limit_s: float,
    whole_s: float | None = None, state: Path | None = None, answers: float = ANSWERS,
    base: CrossEncoder | None = None, taught: TeacherLabels | None = None, workers: int = 14,
) -> None:  # fmt: skip
    """Train for `steps` or `whole_s`, whichever ends first; the rate falls to zero by then.

    A call ends after `limit_s`. It goes on from the file `state` if there is one, and leaves it.
    """
    model.to(DEVICE).train()
    model.words.requires_grad_(False)
    optimiser = _optimiser(model, rate)
    first, before = _continue(model, optimiser, state)
    loader = DataLoader(
        _Batches(pack, windows, range(first, steps), seed, taught), batch_size=None,
        num_workers=workers, prefetch_factor=8 if workers else None, pin_memory=DEVICE == "cuda",
    )  # fmt: skip
    started, recent, tokens, step = time.perf_counter(), [], 0, first
    for step, one in enumerate(loader, first + 1):
        spent = time.perf_counter() - started
        done = max((step - 1) / steps, (before + spent) / (whole_s or limit_s))
        for group in optimiser.param_groups:
            group["lr"] = group["highest"] * min(step / WARM_STEPS, max(0.01, 1 - done))
        batch = to_device(one)
        outputs = run(model, batch)
        loss = hard_loss(outputs, batch, answers)
        if base is not None and step % RELEVANCE_STEPS == 1:
            with torch.no_grad(), torch.autocast(DEVICE, dtype=torch.bfloat16):
                relevance = base(batch["ids"], batch["types"], batch["widths"]).float()
            loss = loss + 0.8 * relevance_loss(outputs, relevance)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        recent.append(loss.detach())
        tokens += int((one["ids"] > 0).sum())
        ended = done >= 1 or spent >= limit_s
        if step % 100 == 0 or step == steps or ended:
            print(f"step {step:6} loss {torch.stack(recent[-400:]).mean():.4f} {before + spent:5.0f} s "
                  f"{tokens / spent / 1e6:.2f} M tokens/s", flush=True)  # fmt: skip
        if ended:
            break
    if state:
        _leave(model, optimiser, state, step, before + time.perf_counter() - started)
    model.eval()


def _optimiser(model: Reader, rate: float) -> torch.optim.AdamW:
    fresh = [p for n, p in model.named_parameters() if n.split(".")[0] not in FROM_BASE]
    known = {id(p) for p in fresh}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in known]
    groups = [{"params": rest, "highest": rate}, {"params": fresh, "highest": 4 * rate}]
    return torch.optim.AdamW(
        groups, lr=rate, weight_decay=0.05, betas=(0.9, 0.98), fused=DEVICE == "cuda"
    )


def _continue(model: Reader, optimiser: torch.optim.AdamW, state: Path | None) -> tuple[int, float]:
    """The steps and seconds that an earlier call took, whose weights are loaded."""
    if state is None:
        return 0, 0.0
    state.parent.mkdir(parents=True, exist_ok=True)  # now: at the end it would cost the training
    if not state.exists():
        return 0, 0.0
    try:
        held = torch.load(state, map_location=DEVICE, weights_only=True)
        model.load_state_dict(held["model"])
        optimiser.load_state_dict(held["optimiser"])
        return held["steps"], held["seconds"]
    except Exception as error:  # torch raises many kinds
        raise SystemExit(f"{state} is not the state of this training: {error}") from error


def _leave(
    model: Reader, optimiser: torch.optim.AdamW, state: Path, steps: int, seconds: float
) -> None:
    held = {
        "model": model.state_dict(), "optimiser": optimiser.state_dict(),
        "steps": steps, "seconds": seconds,
    }  # fmt: skip
    draft = state.with_name(f"{state.name}.draft")
    torch.save(held, draft)
    draft.replace(state)


# ---- figures


def auroc(scores: np.ndarray, labels: np.ndarray) -> float:
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    good = int(labels.sum())
    if not 0 < good < len(labels):
        return float("nan")
    return float((ranks[labels > 0].sum() - good * (good + 1) / 2) / (good * (len(labels) - good)))


def read_lists(
    model: Reader, pack: Pack, lists: Sequence[HitList], draw: np.random.Generator
) -> tuple[list[float], list[tuple[float, int]]]:
    """The log-odds that each list is complete; for each hit whether it is needed, and the label."""
    complete: list[float] = []
    hits: list[tuple[float, int]] = []
    for start in range(0, len(lists), 32):
        batch = to_device(tensors(collate(pack, lists[start : start + 32], draw)))
        with torch.inference_mode():
            outputs = run(model, batch)
        complete += outputs.complete.cpu().tolist()
        needed = batch["needed"].cpu().numpy()
        logits = hit_logits(outputs, batch).cpu().numpy()
        hits += zip(logits[needed >= 0].tolist(), needed[needed >= 0].tolist(), strict=True)
    return complete, hits


def judge(
    read: Callable[..., tuple[list[float], list[tuple[float, int]]]], pack: Pack, part: int, *,
    most: int = 400,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """AUROC of completeness by source, on drawn lists and on BM25's hits. `read` takes lists and a
    generator, see `read_lists`.
    """
    figures: dict[str, dict[str, float]] = {}
    groups = dict.fromkeys(
        name if part == UNSEEN else name.split("/")[0] for name in pack.names
    )  # everyday is one source, except for the files that nothing is trained on
    for name in groups:
        numbers = [
            at for at, one in enumerate(pack.names) if one == name or one.startswith(f"{name}/")
        ]
        cases = np.flatnonzero((pack.part == part) & np.isin(pack.source, numbers))
        cases = np.random.default_rng(0).permutation(cases)[:most].tolist()
        if len(cases) < 4:
            continue
        row = {"cases": float(len(cases))}
        for style, title in (("drawn", 0.2), ("natural", 0.2), ("titled", 1.0)):
            draw = np.random.default_rng(7)
            lists: list[HitList] = []
            for case in cases:
                if style == "drawn":
                    lists += draw_pair(pack, case, int(draw.integers(1, 11)), draw)
                else:
                    lists.append(natural_list(pack, case, 10, draw, style=title))
            complete, hits = read(lists, draw)
            got, gold = np.array(complete), np.array([one.complete for one in lists])
            row[style] = auroc(got, gold)
            row[f"{style} hits"] = auroc(*np.array(hits).T)
            row[f"{style} bias"] = float((1 / (1 + np.exp(-got))).mean() - gold.mean())
        figures[name] = row
    return figures


def show(figures: Mapping[str, Mapping[str, float]]) -> None:
    for name, row in figures.items():
        print(f"{name:24}", *(f"{key} {value:.3f}" for key, value in row.items()), flush=True)


# ---- the command


def weights_of(paths: Sequence[Path]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(one) for name, one in read_weights(paths).items()}


def at_base_layers(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a reader under the names of a deep one, where layer n is that of the base."""
    if f"pair.{len(PAIR)}.up.bias" in weights:  # it is a deep one
        return dict(weights)
    found = {}
    for name, one in weights.items():
        stage, _, rest = name.partition(".")
        number, _, part = rest.partition(".")
        found[f"pair.{PAIR[int(number)]}.{part}" if stage == "pair" else name] = one
    return found


def learned(model: Reader) -> dict[str, np.ndarray]:
    """The weights without the word embeddings, which stay the base's."""
    state = model.state_dict()
    return {
        name: one.float().cpu().numpy() for name, one in state.items() if name != "words.weight"
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument("--minilm", type=Path, nargs="+", required=True)
    parser.add_argument(
        "--student", type=Path, nargs="+",
        help="the student starts from this base instead, see `reader_bases`",
    )  # fmt: skip
    parser.add_argument("--taught", type=Path, help="what a teacher said of lists")
    parser.add_argument(
        "--taught-pack", type=Path, help="the pack that the teacher has read, if it is another"
    )
    parser.add_argument("--start", type=Path, nargs="*", help="student-N.npz of an earlier run")
    parser.add_argument(
        "--average", type=Path, nargs="*", default=[],
        help="student-N.npz of an earlier run: write the mean of these weights and the new ones",
    )  # fmt: skip
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--windows", type=int, default=1024, help="in a batch")
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--limit", type=float, default=1e9, help="seconds of training")
    parser.add_argument("--deep", action="store_true", help="all layers of the base, for answers")
    parser.add_argument("--answers", type=float, default=ANSWERS, help="their weight in the loss")
    parser.add_argument("--state", type=Path, help="a file to go on from, in several calls")
    parser.add_argument("--whole", type=float, help="seconds of all calls together")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(False)  # it re-initializes for every shape
    try:
        pack = Pack(args.pack)
        read = Pack(args.taught_pack) if args.taught_pack else pack
    except ValueError as error:
        parser.error(str(error))
    minilm = weights_of(args.minilm)
    base = CrossEncoder(minilm).to(DEVICE).eval()
    own = weights_of(args.student) if args.student else minilm
    student = load_minilm(own, DEEP if args.deep else PAIR, JOINT)
    if args.start:
        start = weights_of(args.start)
        student.load_state_dict(at_base_layers(start) if args.deep else start, strict=False)
    train(
        student, pack, steps=args.steps, windows=args.windows, rate=args.rate, seed=args.seed,
        limit_s=args.limit, whole_s=args.whole, state=args.state, answers=args.answers, base=base,
        taught=TeacherLabels(args.taught, read) if args.taught else None, workers=args.workers,
    )  # fmt: skip
    if args.average:
        state = student.state_dict()
        for name, one in weights_of(args.average).items():
            state[name].lerp_(one.to(DEVICE), 0.5)
    write_weights(learned(student), args.out / "student", small=False)
    figures: dict[str, object] = {}
    for part, name in JUDGED:
        found = judge(partial(read_lists, student, pack), pack, part, most=args.most)
        print(name)
        show(found)
        figures[name] = found
    (args.out / "figures.json").write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
