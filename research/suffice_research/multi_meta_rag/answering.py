"""Answers from hits without and with filters: the paper's Tables 3 and 4.

In the paper GPT-4 and PaLM read the first six chunks. Here the gate's own reader does, which finds
a part of a chunk or says yes or no, and any language model that is given. An answer is scored as in
MultiHop-RAG, if it shares a word with the right one, and more strictly, if it is the right one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import suffice
from suffice.answering.ask import AskPolicy
from suffice.answering.plan import whole_question_step
from suffice.answering.span_reader import FindAnswer, SpanReader, passage_from_document
from suffice.errors import DataError
from suffice.protocols import LanguageModel, Progress
from suffice.storage import sha256_of
from suffice.text import tokens
from suffice.types import Document

__all__ = [
    "CHUNKS_READ",
    "INSUFFICIENT",
    "AnswerScores",
    "CachedSpanReader",
    "answer_prompt",
    "complete_all",
    "score_answers",
]

CHUNKS_READ = 6  # the authors' script
INSUFFICIENT = "Insufficient information"  # what MultiHop-RAG expects for a null question
PROMPT = """\
A question, then passages of news articles. Answer the question from the passages alone, with one word or name, or with Yes or No.
If the passages do not say enough, answer: {insufficient}. Do not explain.

Question: {question}

Passages:
{passages}

Question: {question}
Answer:"""
_AT_ONCE = 32


@dataclass(frozen=True)
class AnswerScores:
    """One entry per question: whether the answer shares a word with the right one, or equals it."""

    shares_word: npt.NDArray[np.float64]
    exact: npt.NDArray[np.float64]

    def rows(self, which: npt.NDArray[Any]) -> AnswerScores:
        return AnswerScores(self.shares_word[which], self.exact[which])


def score_answers(answers: Sequence[str], gold: Sequence[str]) -> AnswerScores:
    """An empty answer is wrong: to abstain, a system says INSUFFICIENT."""
    pairs = [(tokens(said), tokens(right)) for said, right in zip(answers, gold, strict=True)]
    return AnswerScores(
        np.array([not set(said).isdisjoint(right) for said, right in pairs], dtype=np.float64),
        np.array([bool(said) and said == right for said, right in pairs], dtype=np.float64),
    )


# ------------------------------------------------------------------------------- a language model


def answer_prompt(question: str, passages: Sequence[Document], *, max_chars: int) -> str:
    """The passages with title, source and date, each truncated so that all fit in `max_chars`."""
    room = max_chars // max(1, len(passages))
    return PROMPT.format(
        insufficient=INSUFFICIENT,
        question=" ".join(question.split()),
        passages="\n\n".join(_shown(one)[:room] for one in passages) or "(none)",
    )


def _shown(document: Document) -> str:
    day = document.published_at.isoformat() if document.published_at else ""
    heading = ", ".join(filter(None, (document.title, document.source, day)))
    return f"[{heading}] {' '.join(document.text.split())}"


def complete_all(
    model: LanguageModel,
    prompts: Sequence[str],
    *,
    schema: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    what: str = "asking the model",
) -> list[str]:
    """One answer per prompt, in blocks: a cache stores each block, so that a run can resume."""
    answers: list[str] = []
    for start in range(0, len(prompts), _AT_ONCE):
        answers += model.complete(prompts[start : start + _AT_ONCE], schema=schema)
        if progress is not None:
            progress(what, len(answers), len(prompts))
    return answers


# ---------------------------------------------------------------------------------- our own reader


class CachedSpanReader:
    """The gate's reader over passages: its answer and the probability that it is right, cached.

    With a folder, the cache is kept across runs: an answer is stored before the next question.
    """

    def __init__(
        self, find: FindAnswer, folder: Path | None = None, *, progress: Progress | None = None
    ) -> None:
        self.reader, self.progress = SpanReader(find), progress
        self._made_by = sha256_of(Path(suffice.__file__).parent / "models/reader/manifest.json")
        self._path = Path(folder) / "reader-answers.jsonl" if folder is not None else None
        self._known = {} if self._path is None else dict(_load_answers(self._path))

    def read(
        self, questions: Sequence[str], passages: Sequence[Sequence[Document]]
    ) -> list[tuple[str, float]]:
        """(answer, probability); "" if it finds none of the expected form."""
        found = []
        for done, (question, shown) in enumerate(zip(questions, passages, strict=True), start=1):
            found.append(self._read(question, shown))
            if self.progress is not None:
                self.progress("reading", done, len(questions))
        return found

    def _read(self, question: str, shown: Sequence[Document]) -> tuple[str, float]:
        step = whole_question_step(question)
        texts = [self._made_by, question, *(f"{one.title}\0{one.text}" for one in shown)]
        key = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
        if key not in self._known:
            reading = self.reader.read(
                step.text, step.answer_type, [passage_from_document(one) for one in shown]
            )
            self._known[key] = (reading.answer or "", float(reading.score))
            self._keep(key)
        return self._known[key]

    def _keep(self, key: str) -> None:
        if self._path is None:
            return
        answer, p = self._known[key]
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "answer": answer, "p": p}) + "\n")

    @staticmethod
    def or_abstain(readings: Sequence[tuple[str, float]]) -> list[str]:
        """What `ask` would accept: an answer that is likely enough, or INSUFFICIENT."""
        level = AskPolicy().min_probability
        return [answer if answer and p >= level else INSUFFICIENT for answer, p in readings]


def _load_answers(path: Path) -> Iterator[tuple[str, tuple[str, float]]]:
    """The stored answers; an incomplete last line is dropped."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
        if lines and not lines[-1].endswith("\n"):
            lines.pop()
            path.write_text("".join(lines), encoding="utf-8")
        for line in lines:
            record = json.loads(line)
            yield str(record["key"]), (str(record["answer"]), float(record["p"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} cannot hold answers: {error}", hint="remove the file, or choose another folder"
        ) from error
