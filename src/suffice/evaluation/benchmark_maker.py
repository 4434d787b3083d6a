"""The seam behind which GRADE plugs in: a benchmark of made questions as training data.

`suffice fit --benchmark` uses it. A maker is a plug-in, the entry point `benchmark.grade` of the
group `suffice.plugins`; the package `suffice-grade` has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from suffice.gate.training import LabelledQuestion
from suffice.protocols import Progress
from suffice.registry import Registry, missing_package

__all__ = ["BenchmarkMaker", "open_maker"]


class BenchmarkMaker(Protocol):
    """Reads a benchmark from its folder."""

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


MAKERS: Registry[BenchmarkMaker] = Registry("benchmark")


def open_maker(what: str) -> BenchmarkMaker:
    """The maker of `suffice-grade`, which `what` needs; NotReadyError says how to install it."""
    if "grade" not in MAKERS.names():
        raise missing_package(what, "suffice-grade")
    return MAKERS.get("grade")()
