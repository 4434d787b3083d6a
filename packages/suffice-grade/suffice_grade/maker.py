"""What `suffice improve` and `suffice fit --benchmark` need of GRADE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suffice.datasets.gold import GoldQuestion
from suffice.evaluation.heatmap import Heatmap
from suffice.evaluation.report import Table
from suffice.evaluation.significance import Interval
from suffice.protocols import Encoder, Progress
from suffice.types import Document, QuestionId
from suffice_grade.benchmark_files import (
    benchmark_questions,
    label_benchmark,
    missing_documents,
    open_benchmark,
)
from suffice_grade.difficulty_matrix import (
    difficulty_findings,
    heatmap,
    matrix_table,
    measure_difficulty,
    question_difficulty,
)
from suffice_grade.parsed_relations import find_model
from suffice_grade.pipeline import BenchmarkSettings, build_benchmark
from suffice_grade.stage_cache import hash_code


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


class GradeMaker:
    """Makes a benchmark in a folder, and reads it."""

    @property
    def digest(self) -> str:
        return hash_code(Path(__file__).parent)

    check_parser = staticmethod(find_model)
    open = staticmethod(open_benchmark)
    missing_documents = staticmethod(missing_documents)
    label = staticmethod(label_benchmark)
    labelled_questions = staticmethod(benchmark_questions)

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
        settings = BenchmarkSettings(seed=seed, encoder=encoder, parse=parse)
        built = build_benchmark(documents, out, settings=settings, progress=progress)
        return MadeBenchmark(
            built.counts["valid"],
            built.counts["twins"],
            built.counts["lookalikes"],
            built.by_hops,
            built.by_kind,
            built.dropped,
        )

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
        graded = question_difficulty(questions, documents, encoder)
        system = measure_difficulty(retriever, graded, errors, seed=seed, more=False)
        rows = zip(system.matrix.levels, system.matrix.by_hops)
        return MadeDifficulty(
            system.matrix.whole.error,
            {hops: (cell.n, cell.error) for hops, cell in rows},
            (heatmap(system), matrix_table(system)),
            tuple(difficulty_findings([system])),
        )
