"""The seam behind which GRADE plugs in: benchmarks of questions made from a corpus.

`suffice improve` and `suffice fit --benchmark` use it. A maker is a plug-in, the entry point
`benchmark.grade` of the group `suffice.plugins`; the package `suffice-grade` has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError
from suffice.evaluation.heatmap import Heatmap
from suffice.evaluation.report import Table
from suffice.evaluation.searching import RetrievedQuestion
from suffice.evaluation.significance import Interval
from suffice.gate.training import LabelledQuestion
from suffice.protocols import Encoder, Progress
from suffice.registry import Registry, missing_package
from suffice.types import DocId, Document, QuestionId

__all__ = ["BenchmarkMaker", "MadeBenchmark", "MadeDifficulty", "NoQuestionsError", "open_maker"]


class NoQuestionsError(InputError):
    """The corpus yields no questions."""


@dataclass(frozen=True, slots=True)
class MadeBenchmark:
    """How many questions were made, and why others were dropped."""

    questions: int
    twins: int  # unanswerable: a needed document is missing
    lookalikes: int  # twins in which a changed copy replaces that document
    by_hops: Mapping[int, int]
    by_kind: Mapping[str, int]
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MadeDifficulty:
    """Where a retriever misses evidence."""

    error: Interval
    by_hops: Mapping[int, tuple[int, Interval]]  # hops -> questions, and their error
    shown: tuple[Table | Heatmap, ...]
    findings: tuple[str, ...]  # in plain words


class BenchmarkMaker(Protocol):
    """Makes a benchmark in a folder, and reads it."""

    @property
    def digest(self) -> str:
        """A hash of its rules: other rules make other questions."""

    def check_parser(self) -> object:
        """MissingExtraError if no dependency parser is installed."""

    def build(
        self,
        documents: Iterable[Document],
        out: Path,
        *,
        seed: int,
        encoder: str,
        parse: bool,
        progress: Progress | None,
    ) -> MadeBenchmark:
        """Make the benchmark, resuming what is there; NoQuestionsError if there is none."""

    def open(self, folder: Path) -> Dataset:
        """Its questions, then its twins."""

    def missing_documents(self, folder: Path) -> Mapping[QuestionId, DocId]:
        """For each unanswerable twin, the document that its corpus lacks."""

    def label(
        self, folder: Path, found: Sequence[RetrievedQuestion], k: int
    ) -> list[LabelledQuestion]:
        """Its retrieved questions as training data; the hits of a twin lack a document."""

    def labelled_questions(
        self,
        folder: Path,
        retriever: str,
        k: int,
        *,
        twins: bool,
        encoder: str,
        limit: int | None,
        progress: Progress | None,
    ) -> list[LabelledQuestion]:
        """Its questions with the retriever's hits, to train a gate."""

    def difficulty(
        self,
        retriever: str,
        questions: Sequence[GoldQuestion],
        documents: Iterable[Document],
        errors: Mapping[QuestionId, float],
        *,
        encoder: Encoder,
        seed: int,
    ) -> MadeDifficulty:
        """Errors (1: evidence missed, 0: not) by hops and by distance of the evidence."""


MAKERS: Registry[BenchmarkMaker] = Registry("benchmark")


def open_maker(what: str) -> BenchmarkMaker:
    """The maker of `suffice-grade`, which `what` needs; NotReadyError says how to install it."""
    if "grade" not in MAKERS.names():
        raise missing_package(what, "suffice-grade")
    return MAKERS.get("grade")()
