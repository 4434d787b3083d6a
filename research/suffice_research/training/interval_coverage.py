"""Whether a verdict's interval contains the share of complete lists among similar verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["GROUP", "GroupCoverage", "coverage", "together"]

Floats = npt.NDArray[np.floating[Any]]
GROUP = 100  # verdicts with similar p


@dataclass(frozen=True, slots=True)
class GroupCoverage:
    """In how many groups of verdicts the share of complete lists is in the mean interval."""

    groups: int
    covered: int
    width: float  # mean

    def __str__(self) -> str:
        return f"{self.covered:3} of {self.groups:3} (width {self.width:.2f})"


def coverage(
    p: Floats, interval: tuple[Floats, Floats], complete: npt.NDArray[np.bool_], size: int = GROUP
) -> GroupCoverage:
    """Groups of at least this many verdicts with neighbouring p."""
    order = np.argsort(p, kind="stable")
    groups = np.array_split(order, max(1, len(order) // size))
    low, high = interval
    inside = [low[at].mean() <= complete[at].mean() <= high[at].mean() for at in groups]
    return GroupCoverage(len(groups), sum(map(bool, inside)), float((high - low).mean()))


def together(some: Sequence[GroupCoverage]) -> GroupCoverage:
    """The coverage over several sets, weighted by their number of groups."""
    groups = sum(one.groups for one in some)
    width = sum(one.width * one.groups for one in some) / groups
    return GroupCoverage(groups, sum(one.covered for one in some), width)
