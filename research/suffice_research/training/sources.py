"""The training data of the shipped models: six data sets, their files and their licences.

The commands that make the models and evaluate their recipes (`train_default`, `train_bridge`,
`loop`) open their data here and share the logging: seconds and lines on stderr, errors with a hint.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from suffice.datasets import load
from suffice.datasets.dataset import Dataset
from suffice.errors import InputError, SufficeError
from suffice_research.controlled import controlled_collection

__all__ = [
    "SEED",
    "SOURCES",
    "ProgressLog",
    "Source",
    "chosen_sources",
    "exit_code",
    "normalize_words",
    "open_source",
]

SEED = 42  # of the controlled collection, the draws, the splits and the models


@dataclass(frozen=True, slots=True)
class Source:
    """A data set that the shipped models are trained on, its files, its licence, and its
    retrievers.
    """

    name: str
    files: Mapping[
        str, str
    ]  # argument of `datasets.read` -> path in the data folder; empty: generated here
    licence: str
    retrievers: tuple[str, ...] = ("bm25", "dense", "hybrid")
    judged_by: str = "bm25"  # the retriever for the figures, at k = 10
    # Share of the usual number of questions: a set unlike the others misleads about the hits of the
    # others.
    share: float = 1.0


SOURCES = (
    Source(
        "hotpotqa",
        {"questions": "hotpotqa/hotpotqa.json", "corpus": "hotpotqa/hotpotqa_corpus.json"},
        "CC BY-SA 4.0",
    ),
    Source(
        "2wikimultihopqa",
        {
            "questions": "2wikimultihopqa/2wikimultihopqa.json",
            "corpus": "2wikimultihopqa/2wikimultihopqa_corpus.json",
        },
        "Apache-2.0",
    ),
    Source(
        "musique",
        {"questions": "musique/musique.json", "corpus": "musique/musique_corpus.json"},
        "CC BY 4.0",
    ),
    Source(
        "multihop_rag",
        {"questions": "multihop_rag/MultiHopRAG.json", "corpus": "multihop_rag/corpus.json"},
        "ODC-BY",
        share=1 / 3,
    ),
    Source(
        "frames",
        {"path": "frames/test.tsv"},
        "Apache-2.0",
        ("bm25", "hybrid-title", "tfidf-char"),
        "hybrid-title",
    ),
    Source("controlled", {}, "made here from a seed", share=1 / 3),
)


def open_source(source: Source, data: Path) -> Dataset:
    """The data set of a source in the folder of all data sets."""
    if not source.files:
        return controlled_collection(seed=SEED)
    paths = {argument: data / file for argument, file in source.files.items()}
    if lost := next((path for path in paths.values() if not path.is_file()), None):
        raise InputError(
            f"{lost} does not exist",
            hint="--data is the folder that holds hotpotqa/, musique/, frames/, ...",
        )
    return load(
        source.name, paths.get("path"), questions=paths.get("questions"), corpus=paths.get("corpus")
    )


def chosen_sources(only: str | None, among: Collection[str] | None = None) -> list[Source]:
    """The sources in the option --only, separated by commas; by default all, or those in
    `among`.
    """
    known = [one for one in SOURCES if among is None or one.name in among]
    names = only.split(",") if only else [one.name for one in known]
    if unknown := [name for name in names if name not in {one.name for one in known}]:
        raise InputError(
            f"no data set is named {', '.join(map(repr, unknown))}",
            hint=f"known: {', '.join(one.name for one in known)}",
        )
    return [one for one in known if one.name in names]


class ProgressLog:
    """Lines on stderr with the seconds since the start, as a run takes minutes."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    def __call__(self, line: str) -> None:
        print(f"{time.perf_counter() - self._started:5.0f} s  {line}", file=sys.stderr, flush=True)

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Print a line occasionally."""
        if done % 500 == 0 or done == total:
            self(f"{what}: {done:,} of {total or done:,}")


def exit_code(work: Callable[[], None]) -> int:
    """The exit code of a command that does this work; an error is printed with its hint."""
    try:
        work()
    except SufficeError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return 0


def normalize_words(question: str) -> str:
    """The normalized text of a question, to find questions with the same text."""
    return " ".join(re.findall(r"\w+", question.lower()))
