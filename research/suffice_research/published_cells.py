"""Cells of tables that compare a measured figure with a paper's."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from suffice.evaluation.report import UNDEFINED, format_cell
from suffice.evaluation.significance import Interval

__all__ = ["SignedNumber", "WithPublished"]


@dataclass(frozen=True, slots=True)
class SignedNumber:
    """A difference, printed with its sign."""

    value: float | None

    def __str__(self) -> str:
        return UNDEFINED if self.value is None else f"{self.value:+.3f}".replace("-0.000", "+0.000")

    def to_html(self) -> str:
        return escape(str(self))

    def record(self) -> Any:
        return self.value


@dataclass(frozen=True, slots=True)
class WithPublished:
    """A measured figure with a paper's in parentheses; with an interval, also the difference."""

    measured: float | Interval | None
    paper: float | None

    @property
    def difference(self) -> SignedNumber:
        measured = self.measured.value if isinstance(self.measured, Interval) else self.measured
        known = measured is not None and self.paper is not None
        return SignedNumber(measured - self.paper if known else None)  # type: ignore[operator]

    def __str__(self) -> str:
        if self.paper is None:
            return format_cell(self.measured)
        more = f", {self.difference}" if isinstance(self.measured, Interval) else ""
        return f"{format_cell(self.measured)} ({format_cell(self.paper)}{more})"

    def to_html(self) -> str:
        if self.paper is None:
            return escape(str(self))
        apart = f"paper {format_cell(self.paper)}, {self.difference}"  # below: pages are narrow
        return f"{escape(format_cell(self.measured))}<small>{escape(apart)}</small>"

    def record(self) -> Any:
        if isinstance(self.measured, Interval):
            return {**asdict(self.measured), "paper": self.paper}
        return {"value": self.measured, "paper": self.paper}
