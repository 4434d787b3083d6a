"""Error rates by hops and by the distance of a question from its evidence (GRADE's matrix).

Rows are hops, columns are quartiles of D_r over all questions. An error is 1 if the system failed
and 0 if not; shares in between are allowed. `read_results` reads results files of any system.
Plug-ins named `difficulty.NAME` add tables: functions (system, questions, errors, seed) -> tables.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError, did_you_mean
from suffice.evaluation.heatmap import Heatmap
from suffice.evaluation.metrics import ANSWER_METRICS
from suffice.evaluation.report import Cell, Page, Section, Table, format_cell, write_page
from suffice.evaluation.result_files import load_result
from suffice.evaluation.retrieval_runs import RetrievalRun
from suffice.evaluation.significance import (
    Interval,
    Statistic,
    mean_interval,
    statistic_interval,
)
from suffice.protocols import Encoder
from suffice.registry import Registry
from suffice.storage import BadRecords, Record, read_json_records
from suffice.types import DocId, Document, QuestionId
from suffice_grade.difficulty import AGGREGATIONS, similarities, split_by_quantiles

__all__ = [
    "DifficultyMatrix",
    "QuestionDifficulty",
    "SystemDifficulty",
    "build_difficulty_matrix",
    "difficulty_tables",
    "error_rate",
    "measure_difficulty",
    "question_difficulty",
    "read_results",
]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Errors = Mapping[QuestionId, float]  # 1: failed, 0: not
QUARTERS = ("nearest quarter", "second", "third", "farthest quarter")
AGGREGATION_NAMES = {"min": "min", "power": "power mean", "mean": "mean"}
SCORED_BY = ("correct", "answer", "retrieved")
ANSWERS_VERSION = 2  # of a run that `suffice evaluate answers` writes
THIN = 10  # with fewer questions, an error rate is mostly chance
Z_95 = 1.959963984540054  # the normal quantile of a two-sided 95 % interval
MAX_HOPS = 5  # more hops count as this many, as in the paper
MORE_TABLES: Registry[list[Table]] = Registry("difficulty")


def error_rate(wrong: Floats, *, seed: int = 42) -> Interval:
    """The mean error, with Wilson's interval if all errors are 0 or 1.

    With five right answers, a bootstrap would claim certainty.
    """
    if not len(wrong):
        return Interval(None)
    if not np.isin(wrong, (0.0, 1.0)).all():
        return mean_interval(wrong, seed=seed)
    n, failed = len(wrong), int(wrong.sum())
    p = failed / n
    scale = 2 * (n + Z_95**2)
    centre = (2 * n * p + Z_95**2) / scale
    half = Z_95 / scale * math.sqrt(4 * n * p * (1 - p) + Z_95**2)
    low, high = centre - half if failed else 0.0, centre + half if failed < n else 1.0
    return Interval(float(wrong.mean()), low, high)


# ------------------------------------------------------------------------------------ the questions


@dataclass(frozen=True)
class QuestionDifficulty:
    """Columns with one entry per question: its hops and, for each aggregation, its difficulty."""

    question_ids: tuple[QuestionId, ...]
    hops: npt.NDArray[np.intp]
    difficulty: Mapping[str, Floats]
    left_out: int = 0  # questions that need no document, or one that is not in the corpus

    @property
    def levels(self) -> tuple[int, ...]:
        """The hops that occur, fewest first."""
        return tuple(np.unique(self.hops).tolist())

    def rows(self, which: Bools) -> QuestionDifficulty:
        """Only these questions."""
        ids = tuple(one for one, chosen in zip(self.question_ids, which) if chosen)
        parts = {name: column[which] for name, column in self.difficulty.items()}
        return QuestionDifficulty(ids, self.hops[which], parts, self.left_out)

    def quartiles(self, aggregation: str) -> Any:
        return split_by_quantiles(self.difficulty[aggregation], parts=len(QUARTERS))

    def check_errors(self, errors: npt.ArrayLike) -> Floats:
        """The errors as an array; InputError unless each question has one from 0 to 1."""
        wrong = np.asarray(errors, dtype=np.float64)
        if wrong.shape != self.hops.shape or not ((wrong >= 0) & (wrong <= 1)).all():
            raise InputError(
                f"errors of shape {wrong.shape} for {len(self.hops)} questions: "
                "expected one from 0 to 1 for each"
            )
        return wrong


def question_difficulty(
    questions: Iterable[GoldQuestion], documents: Iterable[Document], encoder: Encoder
) -> QuestionDifficulty:
    """Hops and difficulty of every question whose gold documents are in the corpus."""
    every = list(questions)
    wanted = {doc_id for one in every for doc_id in one.gold.doc_ids}
    by_id: dict[DocId, Document] = {one.doc_id: one for one in documents if one.doc_id in wanted}
    kept = [one for one in every if one.gold.doc_ids and one.gold.doc_ids <= by_id.keys()]
    if not kept:
        raise InputError(
            "no question has all the documents that it needs in the corpus",
            hint="check that questions and documents fit",
        )
    needed = [[by_id[doc_id] for doc_id in sorted(one.gold.doc_ids)] for one in kept]
    found = similarities([one.question.text for one in kept], needed, encoder)
    hops = np.array([min(one.gold.hops or len(one.gold.doc_ids), MAX_HOPS) for one in kept])
    ids = tuple(one.question.question_id for one in kept)
    difficulty = {name: found.difficulty(name) for name in AGGREGATIONS}
    return QuestionDifficulty(ids, hops, difficulty, len(every) - len(kept))


# ------------------------------------------------------------------------------------ results files


def read_results(
    path: Path,
    questions: Iterable[GoldQuestion],
    *,
    by: str | None = None,
    k: int = 10,
    match: str = "em",
    bad: BadRecords | None = None,
) -> dict[str, Errors]:
    """System -> question -> error, for the known questions in the file.

    The file is JSON with `question_id` and one of `correct` (true or false), `answer` (a text) or
    `retrieved` (document ids, best first; or `hits`), and `system` if it has several; or a run of
    `suffice evaluate retrieval` or `suffice evaluate answers`. `by` chooses the field; the default
    is the first that the first record has. An answer is right from 0.5 of the metric `match`; a
    missing answer is wrong. A ranking is right if its first k contain all gold, and so are the
    final documents of an answering system.
    """
    if by is not None and by not in SCORED_BY:
        raise InputError(f"results cannot be judged by {by!r}", hint=did_you_mean(by, SCORED_BY))
    if match not in ANSWER_METRICS:
        known = did_you_mean(match, ANSWER_METRICS)
        raise InputError(f"no answer metric is named {match!r}", hint=known)
    gold = {one.question.question_id: one for one in questions}
    found: dict[str, dict[QuestionId, float]] = {}
    bad = bad or BadRecords()
    for record in read_json_records(Path(path), bad):
        if record.value.get("kind") == "run":
            task = record.value.get("task", "retrieval")
            if task == "answers":
                rows = load_result(
                    Path(path),
                    _answer_rows,
                    what="run of answers",
                    version=ANSWERS_VERSION,
                    command="suffice evaluate answers",
                )
                return _errors_of_answers(rows, gold, by, match)
            if task != "retrieval":
                hint = "give a run of suffice evaluate retrieval or suffice evaluate answers"
                raise InputError(f"{path} is a run of {task!r}, which has no errors", hint=hint)
            return _errors_of_run(RetrievalRun.load(Path(path)), gold, k)
        by = by or next((name for name in SCORED_BY if _field(record, name) is not None), None)
        question_id = str(record.value.get("question_id", ""))
        if question_id in gold:
            system = str(record.value.get("system") or Path(path).stem)
            error = _error(record, by, gold[question_id], k, match)
            if found.setdefault(system, {}).setdefault(question_id, error) != error:
                problem = f"question {question_id!r} already has another result of {system!r}"
                hint = "delete one of the two, or pass --skip-bad to keep the first"
                bad.reject(record.where, problem, hint=hint)
    if not found:
        raise InputError(
            f"no question of {path} is in the benchmark", hint="name questions by its question_id"
        )
    return dict(found)


def _errors_of_run(
    run: RetrievalRun, gold: Mapping[QuestionId, GoldQuestion], k: int
) -> dict[str, Errors]:
    if k > run.depth:
        raise InputError(
            f"the run was searched {run.depth} deep, not {k}",
            hint=f"pass --k {run.depth}, or search deeper",
        )
    found: dict[str, Errors] = {}
    for system in run.systems:
        rows = zip(run.question_ids, system.ranks, run.gold)
        missed = {one: sum(at <= k for at in ranks) < needed for one, ranks, needed in rows}
        found[system.name] = {one: float(wrong) for one, wrong in missed.items() if one in gold}
    if not any(found.values()):
        raise InputError(
            "no question of the run is in the benchmark",
            hint="evaluate retrieval on the same questions",
        )
    return found


@dataclass(frozen=True, slots=True)
class _Answered:
    """One answer of a system, with what was right."""

    question_id: QuestionId
    answer: str | None
    held: frozenset[DocId] | None
    gold: str
    needed: frozenset[DocId]


def _answer_rows(run: Mapping[str, Any]) -> dict[str, list[_Answered]]:
    """The systems of the run that `suffice evaluate answers` writes."""
    return {
        name: [
            _Answered(
                question_id,
                one["answer"],
                None if one["held"] is None else frozenset(one["held"]),
                answer,
                frozenset(needed),
            )
            for question_id, one, answer, needed in zip(
                run["question_ids"], outcomes, run["gold"], run["needed"], strict=True
            )
        ]
        for name, outcomes in run["systems"].items()
    }


def _errors_of_answers(
    systems: Mapping[str, Sequence[_Answered]],
    gold: Mapping[QuestionId, GoldQuestion],
    by: str | None,
    match: str,
) -> dict[str, Errors]:
    if by == "correct":
        raise InputError(
            "a run of answers is judged by what it answered or held",
            hint="leave out --by, or pass --by retrieved",
        )
    found: dict[str, Errors] = {}
    for name, rows in systems.items():
        errors: dict[QuestionId, float] = {}
        for one in rows:
            if one.question_id not in gold:
                continue
            if by != "retrieved":
                scored = ANSWER_METRICS[match]([one.answer or ""], [[one.gold]])[0]
                errors[one.question_id] = float(one.answer is None or scored < 0.5)
            elif one.held is not None and one.needed:
                errors[one.question_id] = float(not one.needed <= one.held)
        if errors:
            found[name] = errors
    if not found:
        what = "held documents" if by == "retrieved" else "questions"
        raise InputError(
            f"the run has no {what} for the questions of the benchmark",
            hint="evaluate answers on the same questions",
        )
    return found


def _field(record: Record, name: str) -> Any:
    names = ("retrieved", "hits") if name == "retrieved" else (name,)
    return next((record.value[one] for one in names if record.value.get(one) is not None), None)


def _error(record: Record, by: str | None, question: GoldQuestion, k: int, match: str) -> float:
    value = _field(record, by) if by else None
    if by == "correct" and (isinstance(value, bool) or value in (0, 1)):
        return 1.0 - float(value)
    if by == "answer" and isinstance(value, str):
        if not question.gold.answer:
            raise InputError(
                f"{record.where}: question {question.question.question_id!r} has no gold answer",
                hint="judge by what was retrieved: --by retrieved",
            )
        return float(ANSWER_METRICS[match]([value], [[question.gold.answer]])[0] < 0.5)
    if by == "retrieved" and isinstance(value, list):
        hits = (one.get("doc_id", "") if isinstance(one, Mapping) else one for one in value[:k])
        return float(not question.gold.doc_ids <= set(map(str, hits)))
    raise InputError(
        f"{record.where}: expected a question_id with {by or 'correct, answer or retrieved'}",
        hint='a line looks like {"question_id": "q0", "correct": true} '
        'or {"question_id": "q0", "retrieved": ["a1", "b2"]}',
    )


# ------------------------------------------------------------------------------------ the matrix


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """The error rate of some questions. Thin cells are unreliable; empty cells have no rate."""

    n: int
    error: Interval

    @property
    def thin(self) -> bool:
        return self.n < THIN

    def __str__(self) -> str:
        if not self.n:
            return "empty"
        text = f"{format_cell(self.error)} n={self.n:,}"
        return f"thin: {text}" if self.thin else text


@dataclass(frozen=True)
class DifficultyMatrix:
    """Error rates by hops (down) and quartile of D_r (across), with the margins."""

    levels: tuple[int, ...]
    edges: tuple[float, ...]  # between the quartiles
    cells: tuple[tuple[MatrixCell, ...], ...]
    by_hops: tuple[MatrixCell, ...]
    by_quartile: tuple[MatrixCell, ...]
    whole: MatrixCell


def build_difficulty_matrix(
    questions: QuestionDifficulty,
    errors: npt.ArrayLike,
    *,
    aggregation: str = "min",
    seed: int = 42,
) -> DifficultyMatrix:
    """The matrix of one system; `errors` has one entry per question."""
    wrong, cut = questions.check_errors(errors), questions.quartiles(aggregation)

    def cell(which: Bools) -> MatrixCell:
        return MatrixCell(int(which.sum()), error_rate(wrong[which], seed=seed))

    rows = [questions.hops == level for level in questions.levels]
    columns = [cut.bins == part for part in range(len(QUARTERS))]
    return DifficultyMatrix(
        questions.levels,
        cut.edges,
        tuple(tuple(cell(row & column) for column in columns) for row in rows),
        tuple(map(cell, rows)),
        tuple(map(cell, columns)),
        cell(np.ones(len(wrong), bool)),
    )


@dataclass(frozen=True)
class AxisSlopes:
    """How much one more hop, or the next quartile, adds to the error rate: slopes of a plane."""

    hop: Interval
    quartile: Interval


def axis_slopes(
    questions: QuestionDifficulty,
    errors: npt.ArrayLike,
    *,
    aggregation: str = "min",
    seed: int = 42,
) -> AxisSlopes:
    """Slopes of a least-squares plane; None if the questions do not vary along an axis."""
    wrong, bins = questions.check_errors(errors), questions.quartiles(aggregation).bins
    axes = [np.ones(len(wrong)), questions.hops.astype(float), bins.astype(float)]
    plane = np.stack(axes, axis=1)
    products = (plane[:, :, None] * plane[:, None, :]).reshape(len(wrong), 9)
    sums = plane * wrong[:, None]

    def slope(at: int) -> Statistic:
        def slopes(weights: Floats) -> Floats:
            left, right = (weights @ products).reshape(-1, 3, 3), weights @ sums
            flat = np.abs(np.linalg.det(left)) < 1e-6
            left[flat] = np.eye(3)
            found: Floats = np.linalg.solve(left, right[:, :, None])[:, at, 0]
            found[flat] = np.nan
            return found

        return slopes

    hop, quartile = (statistic_interval(slope(at), len(wrong), seed=seed) for at in (1, 2))
    return AxisSlopes(hop, quartile)


# ------------------------------------------------------------------------------------ missing links


@dataclass(frozen=True)
class MissingLinks:
    """Which questions need a missing link: columns with one entry per question."""

    hops: npt.NDArray[np.intp]
    exact: Floats
    context: Floats


def find_missing_links(records: Iterable[Mapping[str, Any]]) -> MissingLinks:
    """Generated questions whose path joins names that are only equivalent, not equal."""
    rows = []
    for record in records:
        kinds = {triple.get("link") for path in record.get("path") or () for triple in path}
        hops = int(record.get("hops") or len(record.get("gold") or ()))
        rows.append((hops, "exact" in kinds, "context" in kinds))
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
    columns = ("questions", "n", "exact", "contextual", "either")
    return Table("Questions that need missing links", columns, tuple(rows), note)


# ------------------------------------------------------------------------------------ one system


@dataclass(frozen=True)
class SystemDifficulty:
    """The errors of one system in the matrix."""

    system: str
    matrix: DifficultyMatrix
    slopes: AxisSlopes
    without_result: int = 0  # benchmark questions without a result of this system
    aggregation: str = "min"
    more: tuple[Table, ...] = ()  # from plug-ins


def measure_difficulty(
    system: str,
    questions: QuestionDifficulty,
    errors: Errors,
    *,
    aggregation: str = "min",
    seed: int = 42,
    more: bool = True,
) -> SystemDifficulty:
    """Matrix, slopes and plug-in tables; questions without a result are skipped and counted."""
    if aggregation not in AGGREGATIONS:
        known = did_you_mean(aggregation, AGGREGATIONS)
        raise InputError(f"no aggregation is named {aggregation!r}", hint=known)
    answered = np.array([one in errors for one in questions.question_ids])
    if not answered.any():
        raise InputError(
            f"{system} has no result for a question that could be graded",
            hint="check the question ids",
        )
    part = questions.rows(answered)
    wrong = np.array([errors[one] for one in part.question_ids])
    plugins = MORE_TABLES.names() if more else []
    tables = (MORE_TABLES.get(name)(system, part, wrong, seed=seed) for name in plugins)
    return SystemDifficulty(
        system,
        build_difficulty_matrix(part, wrong, aggregation=aggregation, seed=seed),
        axis_slopes(part, wrong, aggregation=aggregation, seed=seed),
        int((~answered).sum()),
        aggregation,
        tuple(table for some in tables for table in some),
    )


def matrix_table(one: SystemDifficulty, *, of: str = "") -> Table:
    """Error rates by hops and quartile, with counts and intervals."""
    m = one.matrix
    rows: list[tuple[Cell, ...]] = []
    for level, cells, whole in zip(m.levels, m.cells, m.by_hops):
        rows.append((f"{level} hops", *map(str, cells), str(whole)))
    rows.append(("all hops", *map(str, m.by_quartile), str(m.whole)))
    edges = ", ".join(f"{edge:.3f}" for edge in m.edges)
    note = (
        "Error rate, 95 % interval, questions. Quarters of D_r "
        f"({AGGREGATION_NAMES[one.aggregation]}) over all questions, edges {edges}; "
        f"thin: fewer than {THIN} questions."
    )
    if one.without_result:
        note += f" {one.without_result:,} questions have no result and are left out."
    title = f"Error of {one.system}{of}, by hops and D_r"
    return Table(title, ("questions", *QUARTERS, "all"), tuple(rows), note)


def slopes_table(found: Sequence[SystemDifficulty]) -> Table:
    """Both axes together: the slopes of a plane through the errors."""
    rows: list[tuple[Cell, ...]] = [
        (one.system, one.matrix.whole.n, *_slopes(one).values()) for one in found
    ]
    note = (
        "Least squares over questions, each axis with the other held. "
        "In brackets: 95 % bootstrap interval."
    )
    columns = ("system", "n", "one hop more", "one quarter further")
    return Table("What a step adds to the error rate", columns, tuple(rows), note)


def _slopes(one: SystemDifficulty) -> dict[str, Interval]:
    return {
        "with hops": one.slopes.hop,
        "with the distance of the evidence": one.slopes.quartile,
    }


def heatmap(one: SystemDifficulty, *, of: str = "", title: str = "") -> Heatmap:
    """The matrix as a figure; thin and empty cells have no shade and say why."""

    def note(cell: MatrixCell) -> str:
        low, high = cell.error.low, cell.error.high
        if not cell.n:
            return "empty"
        if cell.thin or low is None or high is None:
            return f"thin, n={cell.n}"
        return f"[{low:.2f}, {high:.2f}] n={cell.n}"

    m = one.matrix
    shaded = [tuple(None if cell.thin else cell.error.value for cell in row) for row in m.cells]
    return Heatmap(
        title or f"Difficulty matrix of {one.system}{of}",
        f"quarters of D_r ({AGGREGATION_NAMES[one.aggregation]}), nearest to farthest",
        tuple(f"{level} hops" for level in m.levels),
        QUARTERS,
        tuple(shaded),
        "Error rate as shade and figure, 95 % interval, number of questions.",
        tuple(tuple(map(note, row)) for row in m.cells),
    )


# ------------------------------------------------------------------------------------ all of it


def difficulty_tables(
    found: Sequence[SystemDifficulty], links: MissingLinks | None = None
) -> list[Table]:
    """The matrix of each system, plug-in tables, the slopes, and missing links."""
    tables = [table for one in found for table in (matrix_table(one), *one.more)]
    return [*tables, slopes_table(found), *([links_table(links)] if links is not None else [])]


def difficulty_findings(found: Sequence[SystemDifficulty]) -> list[str]:
    """The findings in plain words."""
    lines = []
    for one in found:
        slopes, m = _slopes(one).items(), one.matrix
        rises = [words for words, slope in slopes if slope.low is not None and slope.low > 0]
        lines.append(
            f"{one.system}: error {format_cell(m.whole.error)} over {m.whole.n:,} questions; it "
            f"rises {' and '.join(rises) or 'along neither axis for certain'}. Easiest corner of "
            f"the matrix: {m.cells[0][0]}; hardest: {m.cells[-1][-1]}."
        )
    return lines


def difficulty_summary(
    found: Sequence[SystemDifficulty], links: MissingLinks | None = None
) -> dict[str, Any]:
    """All figures for scripts."""
    systems = {}
    for one in found:
        more = [{"title": table.title, "rows": table.records()} for table in one.more]
        figures = {"matrix": asdict(one.matrix), "slopes": asdict(one.slopes), "more": more}
        counts = {"without_result": one.without_result, "aggregation": one.aggregation}
        systems[one.system] = {"system": one.system, **figures, **counts}
    summary: dict[str, Any] = {"systems": systems}
    if links is not None:
        rows = zip(links.hops.tolist(), links.exact.tolist(), links.context.tolist())
        summary["missing_links"] = [
            {"hops": hops, "exact": bool(exact), "context": bool(context), "questions": n}
            for (hops, exact, context), n in sorted(Counter(rows).items())
        ]
    return summary


def difficulty_report(
    found: Sequence[SystemDifficulty],
    path: Path,
    *,
    links: MissingLinks | None = None,
    settings: Mapping[str, str],
    command: str = "",
) -> Path:
    """One HTML file with every table and the heatmaps."""
    sections = [Section(one.system, (heatmap(one), matrix_table(one), *one.more)) for one in found]
    last = (slopes_table(found), *([links_table(links)] if links is not None else []))
    sections.append(Section("Both axes, and missing links", last))
    page = Page(
        title="Where it errs: the difficulty matrix",
        about=", ".join(one.system for one in found),
        summary=difficulty_findings(found),
        sections=sections,
        settings=list(settings.items()),
        command=command,
    )
    return write_page(page, path)
