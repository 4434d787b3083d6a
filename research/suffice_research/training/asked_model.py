"""A language model that asks questions about documents, and judges which of them a question needs.

It is tuned on groups (`asked_data`) for some seconds, on a mix of two tasks:

    [1] Title: text ... Needed: 2, 4 Question:     the question follows
    [1] Title: text ... Question: ... 1? 2? all?   at each question mark, whether that document is
                                                   needed, and whether they suffice together

Then it asks questions, or judges them. Needs numpy, torch and tokenizers; it runs on the training
machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from suffice_research.training.asked_data import AskedQuestion, Document, Group
from suffice_research.training.language_model import (
    Decoder,
    GgufFile,
    Reading,
    load_decoder,
    load_tokenizer,
    open_gguf,
)
from suffice_research.training.reader_training import auroc

__all__ = [
    "AskingModel",
    "Tuning",
    "ask_all",
    "choose_needed",
    "draw_tokens",
    "judge_all",
    "other_half",
    "prepare_model",
    "to_half_precision",
    "write_on",
]

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EACH = 12  # questions per group
QUESTION = 48  # maximum tokens per question
HEAT, BEST = 0.8, 60  # temperature and number of tokens to sample from
ASKED_TOGETHER, JUDGED_TOGETHER = 64, 48  # groups per batch
FIGURES_ASKED, FIGURES_JUDGED = 150, 100  # groups per source, for figures
HEAD_RATE = 20  # the judging layer starts untrained, so its learning rate is this much higher
WARM_STEPS, POOL, SHORT_POOL = 20, 512, 64


@dataclass(frozen=True)
class Tuning:
    seconds: float
    rate: float
    asking: float  # share of examples that ask; the others judge
    seed: int = 0
    tokens: int = 10240  # per batch
    longest: int = 700  # tokens per example


class AskingModel(nn.Module):  # type: ignore[misc]
    def __init__(self, decoder: Decoder, tokenizer: Tokenizer, end: int) -> None:
        super().__init__()
        self.decoder, self.tokenizer, self.end = decoder, tokenizer, end
        self.judge = nn.Linear(decoder.sizes.hidden, 1, device=decoder.tokens.weight.device)

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text).ids)

    def probabilities(self, hidden: Tensor) -> np.ndarray:
        return np.asarray(torch.sigmoid(self.judge(hidden.float())[:, 0]).cpu())


def load_model(file: GgufFile) -> AskingModel:
    end = int(file.metadata["tokenizer.ggml.padding_token_id"])  # also ends a question
    return AskingModel(load_decoder(file, DEVICE), load_tokenizer(file), end)


def prepare_model(file: GgufFile, seed: int) -> AskingModel:
    """The model, to be tuned; what is drawn from now on depends on the seed."""
    if DEVICE == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cuda.enable_cudnn_sdp(False)  # it re-initializes for every shape
    torch.manual_seed(seed)
    return load_model(file)


def to_half_precision(model: AskingModel) -> None:
    """Once it is tuned: twice as fast on a GPU."""
    if DEVICE == "cuda":
        model.decoder.to(torch.bfloat16)


# ---- texts


def document_text(docs: Sequence[Document]) -> str:
    rows = []
    for number, one in enumerate(docs, 1):
        title = f"{one.title.strip()}: " if one.title.strip() else ""
        rows.append(f"[{number}] {title}{' '.join(one.text.split())}\n")
    return "".join(rows)


def asking_text(needed: Sequence[int]) -> str:
    numbers = ", ".join(str(at + 1) for at in sorted(needed))
    return f"Needed: {numbers or 'none'}\nQuestion:"


def judging_ids(
    to_ids: Callable[[str], list[int]], question: str, docs: int
) -> tuple[list[int], list[int]]:
    """The tokens after the documents, and the positions where the model judges."""
    ids = to_ids(f"Question: {question}\n")
    places = []
    for name in (*range(1, docs + 1), "all"):
        ids += to_ids(f" {name}?")
        places.append(len(ids) - 1)
    return ids, places


# ---- tuning


@dataclass(frozen=True)
class Example:
    ids: list[int]
    question: int = 0  # position of the question to learn; 0: none
    places: tuple[int, ...] = ()  # where the model judges
    labels: tuple[float, ...] = ()


def draw_example(
    model: AskingModel, group: Group, asking: float, draw: np.random.Generator
) -> Example:
    docs, needed = group.docs, set(group.needed)
    order = draw.permutation(len(docs)).tolist()
    if draw.random() < asking:
        wanted = [at for at, one in enumerate(order) if one in needed]
        head = model.ids(document_text([docs[one] for one in order]) + asking_text(wanted))
        return Example([*head, *model.ids(f" {group.question}"), model.end], len(head))
    if needed and draw.random() < 0.5:  # something is missing
        count = 1 if draw.random() < 0.7 else len(needed)
        gone = set(draw.permutation(sorted(needed))[:count].tolist())
        order = [one for one in order if one not in gone] or order
    head = model.ids(document_text([docs[one] for one in order]))
    ids, places = judging_ids(model.ids, group.question, len(order))
    complete = bool(needed) and needed <= set(order)
    labels = (*(float(one in needed) for one in order), float(complete))
    return Example([*head, *ids], 0, tuple(len(head) + at for at in places), labels)


def draw_batches(
    model: AskingModel, groups: Sequence[Group], tuning: Tuning
) -> Iterator[list[Example]]:
    """An endless stream of batches for tuning."""
    draw = np.random.default_rng(tuning.seed)

    def examples() -> Iterator[Example]:
        while True:
            for at in draw.permutation(len(groups)).tolist():
                yield draw_example(model, groups[at], tuning.asking, draw)

    return similar_length(examples(), tuning)


def similar_length(examples: Iterator[Example], tuning: Tuning) -> Iterator[list[Example]]:
    """Batches of examples of similar length."""
    draw = np.random.default_rng(tuning.seed)
    pool: list[Example] = []
    while True:
        if len(pool) < SHORT_POOL:
            while len(pool) < POOL:
                one = next(examples)
                if len(one.ids) <= tuning.longest:
                    pool.append(one)
            pool.sort(key=lambda example: len(example.ids))
        start = end = int(draw.integers(len(pool)))
        end += 1
        while end < len(pool) and (end + 1 - start) * len(pool[end].ids) <= tuning.tokens:
            end += 1
        yield pool[start:end]
        del pool[start:end]


def padded(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    ids = np.full((len(rows), max(map(len, rows))), fill, np.int64)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = row
    return torch.from_numpy(ids).to(DEVICE)


def half_precision() -> torch.autocast:
    return torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=DEVICE == "cuda")


def losses(model: AskingModel, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """The losses of the questions' tokens and of the judgements; 0 if there are none."""
    with half_precision():
        hidden = model.decoder(padded([one.ids for one in examples], model.end))
    asked = [
        (row, at - 1, one.ids[at])
        for row, one in enumerate(examples)
        if one.question
        for at in range(one.question, len(one.ids))
    ]
    judged = [
        (row, at, label)
        for row, one in enumerate(examples)
        for at, label in zip(one.places, one.labels, strict=True)
    ]
    asking = judging = hidden.new_zeros(())
    if asked:
        rows, places, wanted = (torch.tensor(one, device=DEVICE) for one in zip(*asked))
        with half_precision():
            logits = model.decoder.logits(hidden[rows, places])
        asking = functional.cross_entropy(logits.float(), wanted)
    if judged:
        rows, places, labels = (torch.tensor(one, device=DEVICE) for one in zip(*judged))
        found = model.judge(hidden[rows, places].float())[:, 0]
        judging = functional.binary_cross_entropy_with_logits(found, labels)
    return asking, judging


def tune(model: AskingModel, batches: Iterator[list[Example]], tuning: Tuning) -> None:
    """Train everything except the token embeddings, until the time is over."""
    started = time.monotonic()
    model.train()
    model.decoder.tokens.requires_grad_(False)
    body = [one for one in model.decoder.parameters() if one.requires_grad]
    rates = (tuning.rate, HEAD_RATE * tuning.rate)
    optimizer = torch.optim.AdamW(
        [
            {"params": one, "lr": rate}
            for one, rate in zip((body, list(model.judge.parameters())), rates, strict=True)
        ],
        betas=(0.9, 0.98),
        weight_decay=0.01,
        fused=DEVICE == "cuda",
    )
    log = []
    for step, examples in enumerate(batches):
        spent = time.monotonic() - started
        if spent >= tuning.seconds:
            break
        share = min((step + 1) / WARM_STEPS, max(0.02, 1 - spent / tuning.seconds))
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * share
        asking, judging = losses(model, examples)
        optimizer.zero_grad(set_to_none=True)
        (0.5 * asking + judging).backward()
        nn.utils.clip_grad_norm_(body, 1.0)
        optimizer.step()
        log.append(torch.stack([asking.detach(), judging.detach()]))
        if step % 25 == 24:
            means = torch.stack(log[-25:]).mean(0).tolist()
            print(
                f"step {step + 1} ask {means[0]:.3f} judge {means[1]:.3f} {spent:.0f} s", flush=True
            )
    model.eval()


# ---- figures


@torch.inference_mode()  # type: ignore[untyped-decorator]
def judge_lists(
    model: AskingModel, lists: Sequence[tuple[Sequence[Document], str]], together: int = 128
) -> list[np.ndarray]:
    """For each list and question: the probability that each document is needed, and of all."""
    found: list[np.ndarray] = [np.zeros(0)] * len(lists)
    order = sorted(range(len(lists)), key=lambda at: len(document_text(lists[at][0])))
    for start in range(0, len(order), together):
        some = order[start : start + together]
        rows, places = [], []
        for at in some:
            head = model.ids(document_text(lists[at][0]))
            ids, inside = judging_ids(model.ids, lists[at][1], len(lists[at][0]))
            rows.append([*head, *ids])
            places.append([len(head) + one for one in inside])
        with half_precision():
            hidden = model.decoder(padded(rows, model.end))
        for row, at in enumerate(some):
            found[at] = model.probabilities(hidden[row, places[row]])
    return found


def print_figures(model: AskingModel, groups: Sequence[Group], most: int) -> None:
    """AUROC of completeness and of needed hits by source: each question with everything it needs,
    and with one needed document missing. The model was not tuned on these parts.
    """
    for part in ("test", "unseen"):
        by_source: dict[str, list[Group]] = {}
        for one in (one for one in groups if one.part == part):
            name = one.source if part == "unseen" else one.source.split("/")[0]
            by_source.setdefault(name, []).append(one)
        for name, some in sorted(by_source.items()):
            draw = np.random.default_rng(1)
            lists: list[tuple[list[Document], str]] = []
            complete: list[bool] = []
            needed: list[bool] = []
            for group in [some[at] for at in draw.permutation(len(some))[:most]]:
                for order in _two_lists(group, draw) if group.needed else ():
                    lists.append(([group.docs[at] for at in order], group.question))
                    complete.append(set(group.needed) <= set(order))
                    needed += [at in group.needed for at in order]
            found = judge_lists(model, lists)
            whole = auroc(np.array([one[-1] for one in found]), np.array(complete))
            hits = auroc(np.concatenate([one[:-1] for one in found]), np.array(needed))
            print(
                f"{part} {name:24} lists {len(lists)} complete {whole:.3f} hits {hits:.3f}",
                flush=True,
            )


def _two_lists(group: Group, draw: np.random.Generator) -> Iterator[list[int]]:
    others = [at for at in range(len(group.docs)) if at not in group.needed]
    size = max(1, len(group.docs) - 1, len(group.needed))
    gone = int(draw.choice(group.needed))
    for held in (group.needed, [at for at in group.needed if at != gone]):
        chosen = [*held, *others][:size]
        yield [chosen[at] for at in draw.permutation(len(chosen)).tolist()]


# ---- asking


def choose_needed(docs: int, draw: np.random.Generator, each: int = EACH) -> list[tuple[int, ...]]:
    """The documents that each question should need: for half one, then two, three or none."""
    found: list[tuple[int, ...]] = []
    singles = draw.permutation(docs).tolist()
    for at in range(each):
        share = at / each
        if share < 0.5 or docs < 2:
            found.append((singles[at % docs],))
        elif share < 0.78:
            found.append(tuple(sorted(draw.permutation(docs)[:2].tolist())))
        elif share < 0.88 and docs > 3:
            found.append(tuple(sorted(draw.permutation(docs)[:3].tolist())))
        else:
            found.append(())
    return found


@torch.inference_mode()  # type: ignore[untyped-decorator]
def ask(
    model: AskingModel, groups: Sequence[Group], needed: Sequence[Sequence[tuple[int, ...]]],
    seed: int,
) -> list[AskedQuestion]:  # fmt: skip
    """A question for each choice of needed documents; empty if it was not finished."""
    torch.manual_seed(seed)
    heads = [model.ids(document_text(group.docs)) for group in groups]
    wanted = [model.ids(asking_text(one)) for row in needed for one in row]
    reading = Reading(model.decoder, heads, max(map(len, wanted)) + QUESTION, model.end)
    reading.repeat([len(row) for row in needed])
    texts = write_on(model, reading, wanted, heat=HEAT, longest=QUESTION)
    cases = [(group.case, one) for group, row in zip(groups, needed, strict=True) for one in row]
    return [AskedQuestion(*case, text) for case, text in zip(cases, texts, strict=True)]


@torch.inference_mode()  # type: ignore[untyped-decorator]
def write_on(
    model: AskingModel, reading: Reading, rows: Sequence[Sequence[int]], *, heat: float,
    longest: int,
) -> list[str]:  # fmt: skip
    """What the model writes after each row; empty if it does not end within `longest` tokens."""
    hidden = reading.read(rows)[:, -1]
    done = torch.zeros(len(rows), dtype=torch.bool, device=reading.device)
    written = []
    for number in range(longest):
        drawn = draw_tokens(model.decoder.logits(hidden), heat, BEST)
        token = torch.where(done, model.end, drawn)
        done = done | (token == model.end)
        written.append(token)
        if number % 8 == 7 and bool(done.all()):
            break
        hidden = reading.read_ids(token[:, None], ~done[:, None])[:, -1]
    return [_text(model, row) for row in torch.stack(written, 1).tolist()]


def draw_tokens(logits: Tensor, heat: float, best: int) -> Tensor:
    """A token for each row, among its `best`."""
    some, tokens = (logits.float() / heat).topk(best, -1)
    return tokens.gather(1, torch.multinomial(functional.softmax(some, -1), 1))[:, 0]


def _text(model: AskingModel, ids: list[int]) -> str:
    if model.end not in ids:
        return ""
    return str(model.tokenizer.decode(ids[: ids.index(model.end)])).strip()


def ask_all(
    path: Path, groups: Sequence[Group], tuning: Tuning, most: int
) -> Iterator[AskedQuestion]:
    """Tune on the groups in part `learn`, then ask about a random `most` of them."""
    learn = [one for one in groups if one.part == "learn"]
    model = _tuned(open_gguf(path), learn, groups, tuning, FIGURES_ASKED)
    draw = np.random.default_rng(3)
    order = draw.permutation(len(learn)).tolist()
    batches: list[list[int]] = []
    for start in range(0, len(order), 8 * ASKED_TOGETHER):
        block = order[start : start + 8 * ASKED_TOGETHER]
        block.sort(key=lambda at: len(document_text(learn[at].docs)))
        batches += [block[at : at + ASKED_TOGETHER] for at in range(0, len(block), ASKED_TOGETHER)]
    for seed, batch in enumerate(batches[: -(-most // ASKED_TOGETHER)], 1):
        some = [learn[at] for at in batch]
        yield from ask(model, some, [choose_needed(len(one.docs), draw) for one in some], seed)


def _tuned(
    file: GgufFile, learn: Sequence[Group], groups: Sequence[Group], tuning: Tuning, figures: int
) -> AskingModel:
    model = prepare_model(file, seed=0)
    tune(model, draw_batches(model, learn, tuning), tuning)
    print_figures(model, groups, figures)
    to_half_precision(model)
    return model


# ---- judging


def other_half(question: str) -> int:
    """Which of two models judges a group: 0 or 1. It was tuned on the groups that the other one
    judges. Groups with the same question are judged by the same model.
    """
    first = " ".join(sorted(question.lower().split())[:3])
    return sum(map(ord, first)) % 2


@torch.inference_mode()  # type: ignore[untyped-decorator]
def judge(
    model: AskingModel, groups: Sequence[Group], asked: Sequence[Sequence[AskedQuestion]]
) -> list[AskedQuestion]:
    """The questions of each group with their probabilities."""
    flat = [(group, one) for group, row in zip(groups, asked, strict=True) for one in row]
    tails, places = zip(
        *(judging_ids(model.ids, one.question, len(group.docs)) for group, one in flat), strict=True
    )
    heads = [model.ids(document_text(group.docs)) for group in groups]
    width = max(map(len, tails))
    reading = Reading(model.decoder, heads, width, model.end)
    reading.repeat([len(row) for row in asked])
    hidden = reading.read(tails)
    rows = [row for row, inside in enumerate(places) for _ in inside]
    columns = [
        width - len(tail) + at for tail, inside in zip(tails, places, strict=True) for at in inside
    ]
    found = model.probabilities(hidden[rows, columns]).astype(float).round(3)
    ends = np.cumsum([len(inside) for inside in places])[:-1]
    return [
        replace(one, p=tuple(p.tolist()))
        for (_, one), p in zip(flat, np.split(found, ends), strict=True)
    ]


def judge_all(
    path: Path, groups: Sequence[Group], asked: Sequence[AskedQuestion], tuning: Tuning
) -> Iterator[AskedQuestion]:
    """Judge each half of the questions with a model that was tuned on the other half's groups."""
    file = open_gguf(path)
    learn = {one.case: one for one in groups if one.part == "learn"}
    questions: dict[int, list[AskedQuestion]] = {}
    for one in asked:
        questions.setdefault(one.case, []).append(one)
    for half in (0, 1):
        rest = [one for one in learn.values() if other_half(one.question) != half]
        model = _tuned(file, rest, groups, replace(tuning, seed=half), FIGURES_JUDGED)
        mine = [learn[case] for case in questions if other_half(learn[case].question) == half]
        mine.sort(key=lambda one: len(document_text(one.docs)))
        for start in range(0, len(mine), JUDGED_TOGETHER):
            some = mine[start : start + JUDGED_TOGETHER]
            yield from judge(model, some, [questions[one.case] for one in some])
        del model
