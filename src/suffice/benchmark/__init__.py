"""Build a benchmark from a corpus (GRADE): questions with gold and difficulty.

`build_benchmark` runs all stages, from claims through a knowledge graph to questions, and caches
each.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suffice.benchmark.pipeline import Benchmark, BenchmarkSettings, build_benchmark

__all__ = [
    "Benchmark",
    "BenchmarkSettings",
    "build_benchmark",
]

# Module -> names imported from it on first use, to keep `import suffice.benchmark` fast.
_LAZY = {
    "suffice.benchmark.pipeline": "Benchmark BenchmarkSettings build_benchmark",
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names.split():
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'suffice.benchmark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
