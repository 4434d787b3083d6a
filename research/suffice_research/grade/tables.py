"""The tables and figures of the GRADE study, and the results in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from suffice.evaluation.heatmap import Heatmap
from suffice.evaluation.report import Cell, Table, format_cell
from suffice.evaluation.significance import Interval
from suffice_grade.difficulty_matrix import QuestionDifficulty, heatmap, matrix_table
from suffice_research.grade.correlations import (
    AVERAGE,
    DIAGONAL,
    CorrelatedDifficulty,
    Correlation,
)
from suffice_research.grade.published import CORNERS, TABLE_1, TABLE_2, TABLE_3
from suffice_research.published import PublishedTable

__all__ = [
    "GradeResults",
    "axes",
    "correlated",
    "findings",
    "links_in_the_paper",
    "matrices",
    "published",
]

AGGREGATIONS = {"min": "min", "power": "power mean", "mean": "mean"}


@dataclass
class GradeResults:
    """One data set: the errors of each system, as incomplete evidence and as share of missed
    evidence, and their relation to D_r.
    """

    dataset: str
    of: QuestionDifficulty
    incomplete: dict[str, CorrelatedDifficulty] = field(default_factory=dict)  # by retriever
    missed: dict[str, CorrelatedDifficulty] = field(default_factory=dict)


def matrices(rows: Sequence[GradeResults]) -> Iterator[Table | Heatmap]:
    """Figure 3 for the first retriever, and the matrix of each as a table."""
    for one in rows:
        for at, found in enumerate(one.incomplete.values()):
            if at == 0:
                yield heatmap(
                    found, title=f"Figure 3's matrix: {found.system} on {one.dataset}, incomplete"
                )
            yield matrix_table(found, of=f" on {one.dataset}")


def axes(rows: Sequence[GradeResults]) -> Iterator[Table]:
    """What one step along each axis adds, for both kinds of error."""
    cells: list[tuple[Cell, ...]] = []
    for one in rows:
        for name, found in (
            *one.incomplete.items(),
            *((f"{name}, share missed", each) for name, each in one.missed.items()),
        ):
            cells.append(
                (
                    f"{one.dataset}, {name}",
                    found.matrix.whole.error,
                    found.slopes.hop,
                    found.slopes.quartile,
                )
            )
    note = "Least squares over questions, each axis with the other held. In brackets: 95 % bootstrap interval."
    columns = ("data set, retriever", "error", "one hop more", "one quarter of D_r further")
    yield Table("What a step along each axis adds to the error", columns, tuple(cells), note)


def correlated(rows: Sequence[GradeResults]) -> Iterator[Table]:
    """Tables 1 and 3, by question and by cell."""
    for one in rows:
        yield _correlation_table(one.dataset, one.incomplete, cells=False)
        yield _correlation_table(one.dataset, one.incomplete, cells=True)
        yield _correlation_table(f"{one.dataset}, share missed", one.missed, cells=False)


def _correlation_table(
    dataset: str, systems: Mapping[str, CorrelatedDifficulty], *, cells: bool
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, found in systems.items():
        for one in found.by_cell if cells else found.by_question:
            above = (one.min_above[each] for each in ("power", "mean"))
            rows.append(
                (f"{name}, {one.where}", one.n, *(one.by[each] for each in AGGREGATIONS), *above)
            )
    columns = ("questions", "n", *AGGREGATIONS.values(), "min above power mean", "min above mean")
    if cells:
        title, note = (
            "Table 1's way, over the four quarters",
            "Diagonal: as many columns as rows; with two rows there is none.",
        )
    else:
        title, note = (
            "Question by question",
            "Diagonal: hops and quarter of D_r together, each from 0 to 1.",
        )
    note += " --: nearly all questions there fare alike, or too few cells."
    return Table(f"{title}: correlation of D_r with error on {dataset}", columns, tuple(rows), note)


def links_in_the_paper() -> str:
    """Table 2 in one line."""
    either = [
        f"{hops} {row['either, Health']:.3f} and {row['either, Sports']:.3f}"
        for hops, row in TABLE_2.figures.items()
    ]
    return f"The paper's (Health and Sports), either kind: {', '.join(either)}."


def published() -> Iterator[Table]:
    """The paper's own tables."""
    for paper in (TABLE_1, TABLE_2, TABLE_3, CORNERS):
        yield _published(paper)


def _published(paper: PublishedTable) -> Table:
    systems = list(dict.fromkeys(system for row in paper.figures.values() for system in row))
    rows = tuple((name, *(paper.get(name, system) for system in systems)) for name in paper.figures)
    return Table(f"{paper.paper}, {paper.table}: {paper.caption}", ("", *systems), rows)


# ---- in plain words


def findings(shown: Mapping[str, Sequence[GradeResults]]) -> Iterator[str]:
    """The paper's claims, and whether they hold: for the first retriever in words, and for how many
    of the others.
    """
    for encoder, rows in shown.items():
        for one in rows:
            first, *others = one.incomplete.values()
            where = f"{one.dataset}, {first.system}, D_r by {encoder}"
            for claim, words in CLAIMS:
                too = [found.system for found in others if claim(found)]
                not_so = [found.system for found in others if not claim(found)]
                also = f"; it holds for {' and '.join(too)}" if too else ""
                also += f"; it does not hold for {' and '.join(not_so)}" if not_so else ""
                yield f"{'Holds' if claim(first) else 'Does not hold'}: {where}: {words(first)}{also}."
            yield f"{where}: {_share_words(one.missed[first.system])}."


def _rises(found: CorrelatedDifficulty) -> bool:
    """Whether each margin of the matrix rises step by step, with a significant difference."""
    margins = (found.matrix.by_hops, found.matrix.by_quartile)
    rates = [[cell.error.value or 0.0 for cell in cells if cell.n] for cells in margins]
    apart = all((cells[0].error.high or 0.0) < (cells[-1].error.low or 0.0) for cells in margins)
    return apart and all(rate == sorted(rate) for rate in rates)


def _rises_words(found: CorrelatedDifficulty) -> str:
    by_hops = ", ".join(format_cell(cell.error.value) for cell in found.matrix.by_hops)
    by_quarter = ", ".join(format_cell(cell.error.value) for cell in found.matrix.by_quartile)
    return f"incompleteness at 10 rises along both axes, by hops {by_hops}, by quarter of D_r {by_quarter}"


def _held(found: CorrelatedDifficulty) -> bool:
    return _above_zero(found.slopes.hop) and _above_zero(found.slopes.quartile)


def _held_words(found: CorrelatedDifficulty) -> str:
    return (
        "each axis adds to the error while the other is held, in a plane laid through the errors: a hop "
        f"{format_cell(found.slopes.hop)}, a quarter {format_cell(found.slopes.quartile)}"
    )


def _at_fixed_hops(found: CorrelatedDifficulty) -> dict[str, Interval]:
    return {
        one.where: one.by["min"]
        for one in found.by_question
        if one.where not in (AVERAGE, DIAGONAL)
    }


def _correlates(found: CorrelatedDifficulty) -> bool:
    known = [value for value in _at_fixed_hops(found).values() if value.value is not None]
    return (
        bool(known)
        and all(map(_above_zero, known))
        and _above_zero(_row(found.by_question, DIAGONAL).by["min"])
    )


def _correlates_words(found: CorrelatedDifficulty) -> str:
    by = _at_fixed_hops(found)
    listed = ", ".join(
        f"{name} {format_cell(value)}" for name, value in by.items() if value.value is not None
    )
    silent = ", ".join(name for name, value in by.items() if value.value is None)
    unknown = f" ({silent}: nearly all fail, so that nothing can be told)" if silent else ""
    diagonal, cells = (
        _row(found.by_question, DIAGONAL).by["min"],
        _row(found.by_cell, DIAGONAL).by["min"],
    )
    over = f", over its cells {format_cell(cells)}" if cells.value is not None else ""
    return (
        f"the error correlates with D_r at fixed hops, question by question: {listed or 'no row can tell'}{unknown}; along the "
        f"diagonal {format_cell(diagonal)}{over}"
    )


def _minimum(found: CorrelatedDifficulty) -> bool:
    above = _row(found.by_question, AVERAGE).min_above["mean"]
    return above.low is not None and above.low > 0


def _minimum_words(found: CorrelatedDifficulty) -> str:
    above = _row(found.by_question, AVERAGE).min_above
    return f"the minimum tells more than the mean, {format_cell(above['mean'])}; than the power mean by {format_cell(above['power'])}"


def _share_words(found: CorrelatedDifficulty) -> str:
    average = _row(found.by_question, AVERAGE)
    by = ", ".join(
        f"{words} {format_cell(average.by[name])}" for name, words in AGGREGATIONS.items()
    )
    return f"with the share of needed documents that is missed D_r correlates, on average over hops, {by}"


# The paper's claims, as they apply to real questions: whether they hold, and in words.
CLAIMS = (
    (_rises, _rises_words),
    (_held, _held_words),
    (_correlates, _correlates_words),
    (_minimum, _minimum_words),
)


def _row(found: Sequence[Correlation], where: str) -> Correlation:
    return next(one for one in found if one.where == where)


def _above_zero(one: Interval) -> bool:
    return one.low is not None and one.low > 0
