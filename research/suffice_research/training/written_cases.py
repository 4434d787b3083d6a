"""A language model writes whole cases: a question, the documents that it needs, and look-alikes.

It is tuned on groups (`asked_data`) as texts, see `case_text`, and then writes new ones. Often the
documents that it calls needed are not, or are not enough. So its word does not count: the reader
learns from these cases what a teacher says of them (`reader_teacher`). Needs numpy, torch and
tokenizers; it runs on the training machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from suffice.errors import InputError
from suffice_research.training.asked_data import STEPS, Document, Group, WrittenCase
from suffice_research.training.asked_model import (
    DEVICE,
    AskingModel,
    Example,
    Tuning,
    draw_tokens,
    prepare_model,
    similar_length,
    to_half_precision,
    tune,
)
from suffice_research.training.language_model import Slots, open_gguf

__all__ = ["case_of", "case_text", "write_all"]

EVERYDAY = 0.75  # share of the everyday groups among those that the model writes like
HEAT, BEST = 0.95, 200  # temperature and number of tokens to sample from
SLOTS = 2048  # cases written at the same time
LONGEST, ROOM = 900, 960  # tokens of a case at most, and room for them
CHECKED = 8  # steps between looks at which cases are finished
DOCUMENTS, WORDS, LETTERS = (3, 12), (3, 45), 20  # per case; per question; least per document


# ---- texts


def _start(source: str) -> str:
    return f"Like: {source.split('/')[-1].replace('_', ' ')}\nQuestion:"


def case_text(group: Group) -> str:
    """The question, then a line for each document: + if it is needed, title, text."""
    needed = [group.docs[at] for at in group.needed]
    others = [one for at, one in enumerate(group.docs) if at not in group.needed]
    lines = [f" {_line(group.question)}"]
    for mark, some in (("+", needed), ("-", others)):
        lines += [
            f"{mark} {_line(one.title).replace('|', '/')} | {_line(one.text)}" for one in some
        ]
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def case_of(source: str, text: str) -> WrittenCase | None:
    """The case that a text stands for; None if it is not one."""
    question, *lines = text.strip().split("\n")
    found: dict[str, list[Document]] = {"+": [], "-": []}
    for line in lines:
        mark, (title, bar, words) = line[:1], line[1:].partition("|")
        if mark not in found or not bar or len(words.strip()) < LETTERS:
            return None
        found[mark].append(Document(title.strip(), words.strip()))
    least, most = DOCUMENTS
    if not least <= len(lines) <= most or not WORDS[0] <= len(question.split()) <= WORDS[1]:
        return None
    return WrittenCase(source, question.strip(), tuple(found["+"]), tuple(found["-"]))


# ---- writing


def write_all(
    path: Path, groups: Sequence[Group], tuning: Tuning, seconds: float
) -> Iterator[WrittenCase]:
    """Tune on the groups in part `learn`, then write cases for some seconds."""
    sources = _Sources(groups, np.random.default_rng(tuning.seed))
    model = prepare_model(open_gguf(path), tuning.seed)
    tune(model, similar_length(sources.examples(model), tuning), tuning)
    to_half_precision(model)
    yield from _write(model, sources, seconds)


class _Sources:
    """Groups to write like, drawn at random."""

    def __init__(self, groups: Sequence[Group], draw: np.random.Generator) -> None:
        learn = [one for one in groups if one.part == "learn"]
        own = [one for one in learn if one.source.startswith("everyday")]
        public = [one for one in learn if not one.source.startswith("everyday")]
        self.draw, self.kinds = draw, [some for some in (own, public) if some]
        if not self.kinds:
            raise InputError("there is no group of part learn to write like", hint=STEPS)

    def group(self) -> Group:
        kind = self.kinds[int(self.draw.random() >= EVERYDAY) % len(self.kinds)]
        return kind[int(self.draw.integers(len(kind)))]

    def examples(self, model: AskingModel) -> Iterator[Example]:
        while True:
            group = self.group()
            head = model.ids(_start(group.source))
            yield Example([*head, *model.ids(case_text(group)), model.end], len(head))


@torch.inference_mode()  # type: ignore[untyped-decorator]
def _write(model: AskingModel, sources: _Sources, seconds: float) -> Iterator[WrittenCase]:
    started = time.monotonic()
    slots = Slots(model.decoder, SLOTS, ROOM)
    hidden = torch.zeros(
        (SLOTS, model.decoder.sizes.hidden), dtype=slots.keys[0].dtype, device=DEVICE
    )
    like = [""] * SLOTS
    written: list[Tensor] = []  # the tokens of all slots since the last look
    texts: list[list[int]] = [[] for _ in range(SLOTS)]
    free, count = list(range(SLOTS)), 0
    while time.monotonic() - started < seconds:
        if free:
            for at in free:
                like[at] = sources.group().source
            hidden[free] = slots.start(
                free, [model.ids(_start(like[at])) for at in free], model.end
            )
        for _ in range(CHECKED):
            token = draw_tokens(model.decoder.logits(hidden), HEAT, BEST)
            written.append(token)
            hidden = slots.step(token)
        rows = torch.stack(written, 1).tolist()
        written, free = [], []
        for at, row in enumerate(rows):
            texts[at] += row
            ended = model.end in row
            if ended or len(texts[at]) >= LONGEST:
                if ended:
                    text = model.tokenizer.decode(texts[at][: texts[at].index(model.end)])
                    case = case_of(like[at], text)
                    if case is not None:
                        count += 1
                        yield case
                texts[at] = []
                slots.free(at)
                free.append(at)
    print(f"{count:,} cases in {time.monotonic() - started:.0f} s", flush=True)
