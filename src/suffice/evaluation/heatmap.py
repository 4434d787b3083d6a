"""A heatmap: a shade for each pair of a row and a column, like GRADE's difficulty matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.evaluation.report import COLOURS, INK, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["Heatmap"]

CENTRE: Any = {"ha": "center", "va": "center"}


@dataclass(frozen=True, slots=True)
class Heatmap:
    """A value for each row and column; None: undefined."""

    title: str
    axis: str  # what the values are
    down: tuple[str, ...]
    across: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    says: str = ""
    notes: tuple[tuple[str, ...], ...] = ()  # under each value: interval, n, or why it is missing

    @property
    def height(self) -> float:
        return 1.6 + (0.72 if self.notes else 0.42) * len(self.down)

    def draw(self, canvas: Canvas, axes: Axes) -> None:
        known = [value for row in self.values for value in row if value is not None]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        span = (high - low) or 1.0
        for y, row in enumerate(self.values):
            for x, value in enumerate(row):
                shade = 0.0 if value is None else 0.08 + 0.84 * (value - low) / span
                fill: Any = {"color": COLOURS[0], "alpha": shade, "linewidth": 0}
                axes.fill_between([x - 0.48, x + 0.48], y - 0.46, y + 0.46, **fill)
                colour = "white" if shade > 0.72 else INK  # readable in print and in dark mode
                note = self.notes[y][x] if self.notes else ""
                text, lift = "--" if value is None else f"{value:.3f}", 0.14 if note else 0
                axes.text(x, y - lift, text, **CENTRE, fontsize=10, color=colour)
                if note:
                    axes.text(x, y + 0.22, shorten(note), **CENTRE, fontsize=7.5, color=colour)
        axes.set_xticks(range(len(self.across)), [shorten(name, 16) for name in self.across])
        axes.set_yticks(range(len(self.down)), [shorten(name) for name in self.down])
        axes.set_xlim(-0.5, max(len(self.across), 1) - 0.5)
        axes.set_ylim(max(len(self.down), 1) - 0.5, -0.5)
        axes.tick_params(length=0)
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.set_xlabel(shorten(self.axis, 60))
