"""What the papers report, typed in as data: one file a paper, under the names of our own retrievers and metrics.

A table of ours can then stand beside the paper's, cell by cell. Nothing is computed from these figures and nothing is tuned on
them, except where a docstring says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Published"]


@dataclass(frozen=True)
class Published:
    """One table of a paper.

    `figures`: system -> metric -> value. `printed`: our name of a system -> the paper's. `cautions`: metric without its k ->
    why the paper's figure and ours are not quite the same thing.
    """

    paper: str
    table: str
    caption: str
    figures: Mapping[str, Mapping[str, float]]
    printed: Mapping[str, str] = field(default_factory=dict)
    cautions: Mapping[str, str] = field(default_factory=dict)

    def get(self, system: str, metric: str) -> float | None:
        """The published figure, or None where the paper has none."""
        return self.figures.get(system, {}).get(metric)
