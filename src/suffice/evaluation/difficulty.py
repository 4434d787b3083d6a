"""Any system on a graded benchmark, shown in the difficulty matrix: tables, heatmap, page; and the share of missing links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.benchmark.difficulty import AGGREGATIONS
from suffice.errors import InputError, did_you_mean
from suffice.evaluation.difficulty_matrix import (
    THIN,
    AxisSlopes,
    Correlation,
    DifficultyMatrix,
    QuestionDifficulty,
    axis_slopes,
    build_difficulty_matrix,
    correlations,
    error_rate,
)
from suffice.evaluation.difficulty_matrix import MatrixCell as Place
from suffice.evaluation.external_results import Errors
from suffice.evaluation.figures import Heatmap
from suffice.evaluation.report import Page, page_html
from suffice.evaluation.study import Section
from suffice.evaluation.tables import UNDEFINED, Cell, Table, format_cell
from suffice.storage import write_atomically

__all__ = [
    "MissingLinks",
    "SystemDifficulty",
    "difficulty_findings",
    "difficulty_report",
    "difficulty_summary",
    "difficulty_tables",
    "find_missing_links",
    "heatmap",
    "links_table",
    "matrix_table",
    "measure_difficulty",
]

QUARTERS = ("nearest quarter", "second", "third", "farthest quarter")
NAMES = {"min": "min", "power": "power mean", "mean": "mean"}


# ------------------------------------------------------------------------------------------------------ missing links


@dataclass(frozen=True)
class MissingLinks:
    """Which questions need a missing link: columns with one entry a question."""

    hops: npt.NDArray[np.intp]
    exact: npt.NDArray[np.float64]
    context: npt.NDArray[np.float64]


def find_missing_links(records: Iterable[Mapping[str, Any]]) -> MissingLinks:
    """Of a made benchmark's records: whose path goes over names that are the same only by equivalence."""
    rows = []
    for record in records:
        kinds = {triple.get("link") for path in record.get("path") or () for triple in path}
        rows.append(
            (
                int(record.get("hops") or len(record.get("gold") or ())),
                "exact" in kinds,
                "context" in kinds,
            )
        )
    columns = np.array(rows, dtype=float).reshape(-1, 3).T
    return MissingLinks(columns[0].astype(np.intp), columns[1], columns[2])


def links_table(links: MissingLinks, *, paper: str = "") -> Table:
    """The paper's Table 2: the share of questions that need such a link, by hops."""
    rows: list[tuple[Cell, ...]] = []
    for level in np.unique(links.hops).tolist():
        which = links.hops == level
        exact, context = links.exact[which], links.context[which]
        shares = (error_rate(one) for one in (exact, context, np.maximum(exact, context)))
        rows.append((f"{level} hops", int(which.sum()), *shares))
    note = "Share of questions with its 95 % interval." + (f" {paper}" if paper else "")
    return Table(
        "Questions that need missing links",
        ("questions", "n", "exact", "contextual", "either"),
        tuple(rows),
        note,
    )


# ------------------------------------------------------------------------------------------------------ one system


@dataclass(frozen=True)
class SystemDifficulty:
    """What one system's errors look like in the matrix."""

    system: str
    matrix: DifficultyMatrix
    by_question: tuple[Correlation, ...]
    by_cell: tuple[Correlation, ...]
    steps: AxisSlopes
    without_result: int = 0  # questions of the benchmark that the system was not asked
    aggregation: str = "min"


def measure_difficulty(
    system: str, of: QuestionDifficulty, errors: Errors, *, aggregation: str = "min", seed: int = 42
) -> SystemDifficulty:
    """Matrix, correlations and slopes; questions without a result are left out and counted."""
    if aggregation not in AGGREGATIONS:
        raise InputError(
            f"no aggregation is named {aggregation!r}", hint=did_you_mean(aggregation, AGGREGATIONS)
        )
    asked = np.array([one in errors for one in of.question_ids])
    if not asked.any():
        raise InputError(
            f"{system} has no result for a question that could be graded",
            hint="check the question ids",
        )
    part = of.rows(asked)
    wrong = np.array([errors[one] for one in part.question_ids])
    return SystemDifficulty(
        system,
        build_difficulty_matrix(part, wrong, aggregation=aggregation, seed=seed),
        tuple(correlations(part, wrong, seed=seed)),
        tuple(correlations(part, wrong, cells=True, seed=seed)),
        axis_slopes(part, wrong, aggregation=aggregation, seed=seed),
        int((~asked).sum()),
        aggregation,
    )


def matrix_table(one: SystemDifficulty, *, of: str = "") -> Table:
    """Error rates by hops and quartile, with counts and intervals; thin and empty cells say so."""
    m = one.matrix
    rows: list[tuple[Cell, ...]] = [
        (f"{level} hops", *map(_cell_text, cells), _cell_text(whole))
        for level, cells, whole in zip(m.levels, m.cells, m.by_hops)
    ]
    rows.append(("all hops", *map(_cell_text, m.by_quartile), _cell_text(m.whole)))
    edges = ", ".join(f"{edge:.3f}" for edge in m.edges)
    note = (
        f"Error rate, 95 % interval, questions. Quarters of D_r ({NAMES[one.aggregation]}) over all questions, edges {edges}; "
        f"thin: fewer than {THIN} questions."
    )
    note += (
        f" {one.without_result:,} questions have no result and are left out."
        if one.without_result
        else ""
    )
    return Table(
        f"Error of {one.system}{of}, by hops and D_r",
        ("questions", *QUARTERS, "all"),
        tuple(rows),
        note,
    )


def _cell_text(cell: Place) -> str:
    if not cell.n:
        return "empty"
    said = f"{format_cell(cell.error)} n={cell.n:,}"
    return f"thin: {said}" if cell.thin else said


def correlation_tables(one: SystemDifficulty, *, of: str = "") -> list[Table]:
    """Pearson's r of D_r with error, question by question and over cells, for each aggregation."""
    ways = (
        (
            "question by question",
            one.by_question,
            "Diagonal: hops and quarter of D_r together, each from 0 to 1.",
        ),
        (
            "over four cells, the paper's way",
            one.by_cell,
            "Diagonal: as many columns as rows. Few points: mind the interval.",
        ),
    )
    tables = []
    for way, found, note in ways:
        rows: list[tuple[Cell, ...]] = [
            (
                each.where,
                each.n,
                *(each.by[name] for name in NAMES),
                *(each.min_above[name] for name in ("power", "mean")),
            )
            for each in found
        ]
        columns = ("questions", "n", *NAMES.values(), "min above power mean", "min above mean")
        title = f"Correlation of D_r with the error of {one.system}{of}, {way}"
        tables.append(
            Table(
                title,
                columns,
                tuple(rows),
                f"{note} {UNDEFINED}: nearly all questions there fare alike, or too few cells.",
            )
        )
    return tables


def slopes_table(
    found: Sequence[SystemDifficulty], *, title: str = "What a step adds to the error rate"
) -> Table:
    """Both axes at once: the slopes of a plane through the errors."""
    rows = tuple(
        (one.system, one.matrix.whole.n, one.steps.hop, one.steps.quartile) for one in found
    )
    note = "Least squares over questions, each axis with the other held. In brackets: 95 % bootstrap interval."
    return Table(title, ("system", "n", "one hop more", "one quarter further"), rows, note)


def heatmap(one: SystemDifficulty, *, of: str = "", title: str = "") -> Heatmap:
    """The matrix as a picture: thin and empty cells have no shade, and say why."""
    m = one.matrix
    shaded = tuple(
        tuple(None if cell.thin else cell.error.value for cell in row) for row in m.cells
    )
    notes = tuple(tuple(map(_cell_note, row)) for row in m.cells)
    down = tuple(f"{level} hops" for level in m.levels)
    axis = f"quarters of D_r ({NAMES[one.aggregation]}), nearest to farthest"
    name = title or f"Difficulty matrix of {one.system}{of}"
    return Heatmap(
        name,
        axis,
        down,
        QUARTERS,
        shaded,
        "Error rate as shade and figure, 95 % interval, number of questions.",
        notes,
    )


def _cell_note(cell: Place) -> str:
    if not cell.n:
        return "empty"
    low, high = cell.error.low, cell.error.high
    if cell.thin or low is None or high is None:
        return f"thin, n={cell.n}"
    return f"[{low:.2f}, {high:.2f}] n={cell.n}"


# ------------------------------------------------------------------------------------------------------ all of it


def difficulty_tables(
    found: Sequence[SystemDifficulty], links: MissingLinks | None = None
) -> list[Table]:
    """What a person wants to see."""
    shown = [table for one in found for table in (matrix_table(one), *correlation_tables(one))]
    shown.append(slopes_table(found))
    return shown + ([links_table(links)] if links is not None else [])


def difficulty_findings(found: Sequence[SystemDifficulty]) -> list[str]:
    """What came out, in plain words."""
    lines = []
    for one in found:
        slopes = {
            "with hops": one.steps.hop,
            "with the distance of the evidence": one.steps.quartile,
        }
        rises = [
            words for words, slope in slopes.items() if slope.low is not None and slope.low > 0
        ]
        easiest, hardest = one.matrix.cells[0][0], one.matrix.cells[-1][-1]
        lines.append(
            f"{one.system}: error {format_cell(one.matrix.whole.error)} over {one.matrix.whole.n:,} questions; it rises "
            f"{' and '.join(rises) or 'along neither axis for certain'}. Easiest corner of the matrix: {_cell_text(easiest)}; "
            f"hardest: {_cell_text(hardest)}."
        )
    return lines


def difficulty_summary(
    found: Sequence[SystemDifficulty], links: MissingLinks | None = None
) -> dict[str, Any]:
    """All figures for a script."""
    told: dict[str, Any] = {"systems": {one.system: asdict(one) for one in found}}
    if links is not None:
        kinds = Counter(zip(links.hops.tolist(), links.exact.tolist(), links.context.tolist()))
        told["missing_links"] = [
            {"hops": hops, "exact": bool(exact), "context": bool(context), "questions": n}
            for (hops, exact, context), n in sorted(kinds.items())
        ]
    return told


def difficulty_report(
    found: Sequence[SystemDifficulty],
    path: Path,
    *,
    links: MissingLinks | None = None,
    settings: Mapping[str, str],
    command: str = "",
) -> Path:
    """One HTML file with every table and the heatmaps."""
    sections = [
        Section(one.system, (heatmap(one), matrix_table(one), *correlation_tables(one)))
        for one in found
    ]
    last: list[Table] = [slopes_table(found)] + ([links_table(links)] if links is not None else [])
    sections.append(Section("Both axes, and missing links", tuple(last)))
    page = Page(
        title="Where it errs: the difficulty matrix",
        about=", ".join(one.system for one in found),
        summary=difficulty_findings(found),
        sections=sections,
        settings=list(settings.items()),
        command=command,
    )
    write_atomically(Path(path), page_html(page))
    return Path(path)
