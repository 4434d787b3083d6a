"""Any system on a graded benchmark, shown in the difficulty matrix: tables, heatmap, page; and the share of missing links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, nearest
from suffice.evaluate.figures import Heatmap
from suffice.evaluate.matrix import THIN, Correlation, Graded, Matrix, Steps, correlations, matrix, rate, steps
from suffice.evaluate.matrix import Cell as Place
from suffice.evaluate.outcomes import Errors
from suffice.evaluate.report import Page, page_html
from suffice.evaluate.reproduce import Section
from suffice.evaluate.tables import UNDEFINED, Cell, Table, printed
from suffice.files import write_atomically
from suffice.grade.difficulty import AGGREGATIONS

__all__ = [
    "Difficulty",
    "Links",
    "difficulty_of",
    "findings",
    "heatmap",
    "links_table",
    "matrix_table",
    "missing_links",
    "report",
    "summary",
    "tables",
]

QUARTERS = ("nearest quarter", "second", "third", "farthest quarter")
NAMES = {"min": "min", "power": "power mean", "mean": "mean"}


# ------------------------------------------------------------------------------------------------------ missing links


@dataclass(frozen=True)
class Links:
    """Which questions need a missing link: columns with one entry a question."""

    hops: npt.NDArray[np.intp]
    exact: npt.NDArray[np.float64]
    context: npt.NDArray[np.float64]


def missing_links(records: Iterable[Mapping[str, Any]]) -> Links:
    """Of a made benchmark's records: whose path goes over names that are the same only by equivalence."""
    rows = []
    for record in records:
        kinds = {triple.get("link") for path in record.get("path") or () for triple in path}
        rows.append((int(record.get("hops") or len(record.get("gold") or ())), "exact" in kinds, "context" in kinds))
    columns = np.array(rows, dtype=float).reshape(-1, 3).T
    return Links(columns[0].astype(np.intp), columns[1], columns[2])


def links_table(links: Links, *, paper: str = "") -> Table:
    """The paper's Table 2: the share of questions that need such a link, by hops."""
    rows: list[tuple[Cell, ...]] = []
    for level in np.unique(links.hops).tolist():
        which = links.hops == level
        exact, context = links.exact[which], links.context[which]
        shares = (rate(one) for one in (exact, context, np.maximum(exact, context)))
        rows.append((f"{level} hops", int(which.sum()), *shares))
    note = "Share of questions with its 95 % interval." + (f" {paper}" if paper else "")
    return Table("Questions that need missing links", ("questions", "n", "exact", "contextual", "either"), tuple(rows), note)


# ------------------------------------------------------------------------------------------------------ one system


@dataclass(frozen=True)
class Difficulty:
    """What one system's errors look like in the matrix."""

    system: str
    matrix: Matrix
    by_question: tuple[Correlation, ...]
    by_cell: tuple[Correlation, ...]
    steps: Steps
    without_result: int = 0  # questions of the benchmark that the system was not asked
    aggregation: str = "min"


def difficulty_of(system: str, of: Graded, errors: Errors, *, aggregation: str = "min", seed: int = 42) -> Difficulty:
    """Matrix, correlations and slopes; questions without a result are left out and counted."""
    if aggregation not in AGGREGATIONS:
        raise InputError(f"no aggregation is named {aggregation!r}", hint=nearest(aggregation, AGGREGATIONS))
    asked = np.array([one in errors for one in of.question_ids])
    if not asked.any():
        raise InputError(f"{system} has no result for a question that could be graded", hint="check the question ids")
    part = of.rows(asked)
    wrong = np.array([errors[one] for one in part.question_ids])
    return Difficulty(
        system,
        matrix(part, wrong, aggregation=aggregation, seed=seed),
        tuple(correlations(part, wrong, seed=seed)),
        tuple(correlations(part, wrong, cells=True, seed=seed)),
        steps(part, wrong, aggregation=aggregation, seed=seed),
        int((~asked).sum()),
        aggregation,
    )


def matrix_table(one: Difficulty, *, of: str = "") -> Table:
    """Error rates by hops and quartile, with counts and intervals; thin and empty cells say so."""
    m = one.matrix
    rows: list[tuple[Cell, ...]] = [
        (f"{level} hops", *map(_place, cells), _place(whole)) for level, cells, whole in zip(m.levels, m.cells, m.by_hops)
    ]
    rows.append(("all hops", *map(_place, m.by_quartile), _place(m.whole)))
    edges = ", ".join(f"{edge:.3f}" for edge in m.edges)
    note = (
        f"Error rate, 95 % interval, questions. Quarters of D_r ({NAMES[one.aggregation]}) over all questions, edges {edges}; "
        f"thin: fewer than {THIN} questions."
    )
    note += f" {one.without_result:,} questions have no result and are left out." if one.without_result else ""
    return Table(f"Error of {one.system}{of}, by hops and D_r", ("questions", *QUARTERS, "all"), tuple(rows), note)


def _place(cell: Place) -> str:
    if not cell.n:
        return "empty"
    said = f"{printed(cell.error)} n={cell.n:,}"
    return f"thin: {said}" if cell.thin else said


def correlation_tables(one: Difficulty, *, of: str = "") -> list[Table]:
    """Pearson's r of D_r with error, question by question and over cells, for each aggregation."""
    ways = (
        ("question by question", one.by_question, "Diagonal: hops and quarter of D_r together, each from 0 to 1."),
        ("over four cells, the paper's way", one.by_cell, "Diagonal: as many columns as rows. Few points: mind the interval."),
    )
    tables = []
    for way, found, note in ways:
        rows: list[tuple[Cell, ...]] = [
            (each.where, each.n, *(each.by[name] for name in NAMES), *(each.min_above[name] for name in ("power", "mean")))
            for each in found
        ]
        columns = ("questions", "n", *NAMES.values(), "min above power mean", "min above mean")
        title = f"Correlation of D_r with the error of {one.system}{of}, {way}"
        tables.append(
            Table(title, columns, tuple(rows), f"{note} {UNDEFINED}: nearly all questions there fare alike, or too few cells.")
        )
    return tables


def steps_table(found: Sequence[Difficulty], *, title: str = "What a step adds to the error rate") -> Table:
    """Both axes at once: the slopes of a plane through the errors."""
    rows = tuple((one.system, one.matrix.whole.n, one.steps.hop, one.steps.quartile) for one in found)
    note = "Least squares over questions, each axis with the other held. In brackets: 95 % bootstrap interval."
    return Table(title, ("system", "n", "one hop more", "one quarter further"), rows, note)


def heatmap(one: Difficulty, *, of: str = "", title: str = "") -> Heatmap:
    """The matrix as a picture: thin and empty cells have no shade, and say why."""
    m = one.matrix
    shaded = tuple(tuple(None if cell.thin else cell.error.value for cell in row) for row in m.cells)
    notes = tuple(tuple(map(_note, row)) for row in m.cells)
    down = tuple(f"{level} hops" for level in m.levels)
    axis = f"quarters of D_r ({NAMES[one.aggregation]}), nearest to farthest"
    name = title or f"Difficulty matrix of {one.system}{of}"
    return Heatmap(
        name, axis, down, QUARTERS, shaded, "Error rate as shade and figure, 95 % interval, number of questions.", notes
    )


def _note(cell: Place) -> str:
    if not cell.n:
        return "empty"
    low, high = cell.error.low, cell.error.high
    if cell.thin or low is None or high is None:
        return f"thin, n={cell.n}"
    return f"[{low:.2f}, {high:.2f}] n={cell.n}"


# ------------------------------------------------------------------------------------------------------ all of it


def tables(found: Sequence[Difficulty], links: Links | None = None) -> list[Table]:
    """What a person wants to see."""
    shown = [table for one in found for table in (matrix_table(one), *correlation_tables(one))]
    shown.append(steps_table(found))
    return shown + ([links_table(links)] if links is not None else [])


def findings(found: Sequence[Difficulty]) -> list[str]:
    """What came out, in plain words."""
    lines = []
    for one in found:
        slopes = {"with hops": one.steps.hop, "with the distance of the evidence": one.steps.quartile}
        rises = [words for words, slope in slopes.items() if slope.low is not None and slope.low > 0]
        easiest, hardest = one.matrix.cells[0][0], one.matrix.cells[-1][-1]
        lines.append(
            f"{one.system}: error {printed(one.matrix.whole.error)} over {one.matrix.whole.n:,} questions; it rises "
            f"{' and '.join(rises) or 'along neither axis for certain'}. Easiest corner of the matrix: {_place(easiest)}; "
            f"hardest: {_place(hardest)}."
        )
    return lines


def summary(found: Sequence[Difficulty], links: Links | None = None) -> dict[str, Any]:
    """All figures for a script."""
    told: dict[str, Any] = {"systems": {one.system: asdict(one) for one in found}}
    if links is not None:
        kinds = Counter(zip(links.hops.tolist(), links.exact.tolist(), links.context.tolist()))
        told["missing_links"] = [
            {"hops": hops, "exact": bool(exact), "context": bool(context), "questions": n}
            for (hops, exact, context), n in sorted(kinds.items())
        ]
    return told


def report(
    found: Sequence[Difficulty], path: Path, *, links: Links | None = None, settings: Mapping[str, str], command: str = ""
) -> Path:
    """One HTML file with every table and the heatmaps."""
    sections = [Section(one.system, (heatmap(one), matrix_table(one), *correlation_tables(one))) for one in found]
    last: list[Table] = [steps_table(found)] + ([links_table(links)] if links is not None else [])
    sections.append(Section("Both axes, and missing links", tuple(last)))
    page = Page(
        title="Where it errs: the difficulty matrix",
        about=", ".join(one.system for one in found),
        summary=findings(found),
        sections=sections,
        settings=list(settings.items()),
        command=command,
    )
    write_atomically(Path(path), page_html(page))
    return Path(path)
