"""A language model that asks about single passages, answers its own questions, and words chains.

It is tuned for some seconds on a mix of three tasks:

    Title: text / Like: squad2 / Answer: ... / Question: ...    both follow
    Title: text / Asked: ... / Found: ...                       the answer follows, or "nothing"
    1. ... / 2. ... #1 ... / Together: ...                      one question follows

Needs numpy, torch and tokenizers; it runs on the training machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from suffice.errors import InputError
from suffice_research.training.asked_data import STEPS
from suffice_research.training.asked_model import (
    HEAT,
    AskingModel,
    Example,
    Tuning,
    prepare_model,
    similar_length,
    to_half_precision,
    tune,
    write_on,
)
from suffice_research.training.language_model import Reading, open_gguf
from suffice_research.training.passage_questions import (
    EACH,
    STYLES,
    AskedChain,
    KnownChain,
    KnownQuestion,
    PassageQuestion,
    SinglePassage,
)

__all__ = ["PassageModel", "tuned_model"]

TASKS = (0.5, 0.4, 0.1)  # shares of the examples: asking, answering, wording
SHARES = {"squad2": 0.34, "mirrored": 0.35, "everyday": 0.18, "musique": 0.05, "policyqa": 0.08}
FOUND_NOTHING = 0.35  # share of the examples of answering
NOTHING = "nothing"
CALM = 0.3  # temperature for wording chains
LONGEST = 56  # tokens of an answer and its question, or of a chain
TOGETHER = 1600  # questions per batch
BLOCK = 16  # batches of passages of similar length


def head_text(title: str, text: str) -> str:
    shown = f"{' '.join(title.split())}: " if title.strip() else ""
    return f"{shown}{' '.join(text.split())}\n"


def asking_text(style: str) -> str:
    return f"Like: {style}\nAnswer:"


def answering_text(question: str) -> str:
    return f"Asked: {question}\nFound:"


def chain_text(parts: Sequence[str]) -> str:
    rows = [f"{number}. {part}\n" for number, part in enumerate(parts, 1)]
    return f"{''.join(rows)}Together:"


class PassageModel:
    def __init__(self, model: AskingModel, draw: np.random.Generator) -> None:
        self.model, self.draw = model, draw

    # ---- tuning

    def examples(
        self, known: Sequence[KnownQuestion], chains: Sequence[KnownChain]
    ) -> Iterator[Example]:
        answered: dict[str, list[KnownQuestion]] = {}
        for one in known:
            if one.answer:
                answered.setdefault(one.style, []).append(one)
        nothing = [one for one in known if not one.answer]
        styles = [name for name in SHARES if name in answered]
        if not styles:
            raise InputError("there is no question with an answer to tune on", hint=STEPS)
        shares = np.array([SHARES[name] for name in styles])
        tasks = np.array(TASKS) * [1, 1, bool(chains)]
        while True:
            task = int(self.draw.choice(3, p=tasks / tasks.sum()))
            if task == 2:
                chain = chains[int(self.draw.integers(len(chains)))]
                yield self._example([chain_text(chain.parts)], f" {chain.question}")
                continue
            style = styles[int(self.draw.choice(len(styles), p=shares / shares.sum()))]
            some = answered[style]
            if task == 1 and nothing and self.draw.random() < FOUND_NOTHING:
                some = nothing
            one = some[int(self.draw.integers(len(some)))]
            head = head_text(one.title, one.text)
            if task == 0:
                written = f" {one.answer}\nQuestion: {one.question}"
                yield self._example([head, asking_text(style)], written)
            else:
                written = f" {one.answer or NOTHING}"
                yield self._example([head, answering_text(one.question)], written)

    def _example(self, heads: Sequence[str], written: str) -> Example:
        head = [token for one in heads for token in self.model.ids(one)]
        return Example([*head, *self.model.ids(written), self.model.end], len(head))

    # ---- asking

    def _reading(self, texts: Sequence[str], counts: Sequence[int], room: int) -> Reading:
        reading = Reading(
            self.model.decoder, [self.model.ids(one) for one in texts], room, self.model.end
        )
        reading.repeat(counts)
        return reading

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def ask(self, passages: Sequence[SinglePassage]) -> list[PassageQuestion]:
        """Some questions about each passage, with the model's own answers."""
        counts = [EACH[one.source] for one in passages]
        tails = []
        for one, count in zip(passages, counts, strict=True):
            styles = STYLES[one.source]
            drawn = self.draw.integers(len(styles), size=count)
            tails += [self.model.ids(asking_text(styles[at])) for at in drawn.tolist()]
        texts = [head_text(one.title, one.text) for one in passages]
        reading = self._reading(texts, counts, max(map(len, tails)) + LONGEST)
        keys = [one.key for one, count in zip(passages, counts, strict=True) for _ in range(count)]
        found = []
        for key, text in zip(
            keys, write_on(self.model, reading, tails, heat=HEAT, longest=LONGEST), strict=True
        ):
            answer, mark, question = text.partition("\nQuestion:")
            if mark and answer.strip() and question.strip():
                found.append(PassageQuestion(key, question.strip(), answer.strip()))
        return found

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def check(
        self, asked: Sequence[PassageQuestion], texts: Sequence[str], answers: Sequence[str]
    ) -> list[float]:
        """The probability of each answer to its question, given a text."""
        heads = list(dict.fromkeys(texts))
        at = {one: number for number, one in enumerate(heads)}
        order = sorted(range(len(asked)), key=lambda n: at[texts[n]])
        counts = np.bincount([at[one] for one in texts], minlength=len(heads)).tolist()
        rows, places, wanted = [], [], []
        for number in order:
            head = self.model.ids(answering_text(asked[number].question))
            tail = [*self.model.ids(f" {answers[number]}"), self.model.end]
            rows.append([*head, *tail])
            places.append(range(len(head) - 1, len(head) - 1 + len(tail)))
            wanted.append(tail)
        width = max(map(len, rows))
        hidden = self._reading(heads, counts, width).read(rows)
        owner = [n for n, some in enumerate(places) for _ in some]
        columns = [
            width - len(row) + at for row, some in zip(rows, places, strict=True) for at in some
        ]
        log_p = self._log_probabilities(
            hidden[owner, columns], torch.tensor([one for some in wanted for one in some])
        )
        total = torch.zeros(len(rows), dtype=log_p.dtype).index_add_(0, torch.tensor(owner), log_p)
        found = np.empty(len(rows))
        found[order] = total.exp().numpy()
        return found.tolist()

    def _log_probabilities(self, hidden: Tensor, wanted: Tensor) -> Tensor:
        """In pieces: the vocabulary is large."""
        found = []
        for some, tokens in zip(hidden.split(4096), wanted.to(hidden.device).split(4096)):
            logits = functional.log_softmax(self.model.decoder.logits(some).float(), -1)
            found.append(logits.gather(1, tokens[:, None])[:, 0].cpu())
        return torch.cat(found)

    def ask_all(
        self, passages: Sequence[SinglePassage], seconds: float
    ) -> Iterator[PassageQuestion]:
        """Questions about random passages until the time is over, with their probabilities."""
        started, count = time.monotonic(), 0
        for some in self._batches(passages):
            if time.monotonic() - started >= seconds:
                break
            by_key = {one.key: one for one in some}
            asked = self.ask(some)
            if not asked:
                continue
            texts = [head_text(by_key[one.key].title, by_key[one.key].text) for one in asked]
            sure = self.check(asked, texts, [one.answer for one in asked])
            asked = [replace(one, p=round(p, 3)) for one, p in zip(asked, sure, strict=True)]
            for one, nothing in zip(asked, self._nothing(asked, by_key, passages), strict=True):
                count += 1
                yield replace(one, nothing=round(nothing, 3))
        print(f"{count:,} questions in {time.monotonic() - started:.0f} s", flush=True)

    def _batches(self, passages: Sequence[SinglePassage]) -> Iterator[list[SinglePassage]]:
        """Batches of passages of similar length, in random order."""
        order = self.draw.permutation(len(passages)).tolist()
        size = BLOCK * TOGETHER // 2
        for start in range(0, len(order), size):
            block = sorted(
                (passages[at] for at in order[start : start + size]), key=lambda one: len(one.text)
            )
            batch: list[SinglePassage] = []
            count = 0
            for one in block:
                batch.append(one)
                count += EACH[one.source]
                if count >= TOGETHER:
                    yield batch
                    batch, count = [], 0
            if batch:
                yield batch

    def _nothing(
        self, asked: Sequence[PassageQuestion], by_key: dict[str, SinglePassage],
        passages: Sequence[SinglePassage],
    ) -> list[float]:  # fmt: skip
        """For each question, the least probability that a look-alike answers nothing."""
        pairs = [
            (number, passages[other])
            for number, one in enumerate(asked)
            for other in by_key[one.key].others
        ]
        found = [1.0] * len(asked)
        for start in range(0, len(pairs), TOGETHER):
            some = pairs[start : start + TOGETHER]
            texts = [head_text(one.title, one.text) for _, one in some]
            p = self.check([asked[n] for n, _ in some], texts, [NOTHING] * len(some))
            for (number, _), one in zip(some, p, strict=True):
                found[number] = min(found[number], one)
        return found

    # ---- chains

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def word_chains(self, chains: Sequence[AskedChain], seconds: float) -> Iterator[AskedChain]:
        """Each chain as one question, until the time is over."""
        started = time.monotonic()
        for start in range(0, len(chains), TOGETHER):
            if time.monotonic() - started >= seconds:
                break
            some = chains[start : start + TOGETHER]
            heads = [self.model.ids(chain_text(one.parts)) for one in some]
            reading = Reading(
                self.model.decoder, [one[:-1] for one in heads], LONGEST + 1, self.model.end
            )
            last = [one[-1:] for one in heads]
            written = write_on(self.model, reading, last, heat=CALM, longest=LONGEST)
            yield from (replace(one, question=text) for one, text in zip(some, written) if text)


def tuned_model(
    path: Path, known: Sequence[KnownQuestion], chains: Sequence[KnownChain], tuning: Tuning
) -> PassageModel:
    model = prepare_model(open_gguf(path), tuning.seed)
    made = PassageModel(model, np.random.default_rng(tuning.seed))
    tune(model, similar_length(made.examples(known, chains), tuning), tuning)
    to_half_precision(model)
    return made
