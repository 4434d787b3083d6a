"""GRADE: build a benchmark from a corpus, questions with gold, and the difficulty matrix.

`build_benchmark` runs all stages, from claims through a knowledge graph to questions, and caches
each.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suffice_grade.difficulty_matrix import (
        DifficultyMatrix,
        build_difficulty_matrix,
        question_difficulty,
    )
    from suffice_grade.pipeline import Benchmark, BenchmarkSettings, build_benchmark

__all__ = [
    "Benchmark",
    "BenchmarkSettings",
    "DifficultyMatrix",
    "build_benchmark",
    "build_difficulty_matrix",
    "question_difficulty",
]

# Module -> names imported from it on first use, to keep `import suffice_grade` fast.
_LAZY = {
    "suffice_grade.difficulty_matrix": (
        "DifficultyMatrix build_difficulty_matrix question_difficulty"
    ),
    "suffice_grade.pipeline": "Benchmark BenchmarkSettings build_benchmark",
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names.split():
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'suffice_grade' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
