"""The standard gate compared with other predictors of completeness, on the same lists:
`python -m suffice_research.training.gate_baselines --data DIR --readings FILE --scores DIR`.

The baselines are the ms-marco cross-encoder (its best hit, the mean of its hits, all hits as one
text), the first score of BM25, and the number of hits, an uninformed baseline. Each is calibrated
on other lists, like the gate. Two more questions are answered here: what a gate achieves that was
fitted on one data set with `suffice fit`, and the loss if a store has no titles.

A language model like the one that taught the reader has read the same lists on a GPU, see
`research/teacher/README.md`: `--write-lists FILE` writes them, `--teacher FILE` takes what it said.

Reading takes most of the time. `--readings` and `--scores` store the output of the reader and the
cross-encoder, so that an interrupted run can resume. research/results/gate.md is generated from what
`--out` writes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.evaluation.gate_evaluation import PolicyChoice, gate_inputs, require_fit_extra
from suffice.evaluation.metrics import Predictions, ece_by_chance
from suffice.evaluation.report import Cell, Section, Table, format_cell
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.searching import RetrievedQuestion
from suffice.evaluation.significance import Interval, compare, interval
from suffice.gate.gate import FAST, STANDARD, Gate
from suffice.gate.reader import Reader
from suffice.gate.training import LabelledQuestion
from suffice.protocols import Reranker
from suffice.registry import RERANKERS
from suffice.retrieval.builtin import DEFAULT_RERANKER
from suffice.storage import package_versions
from suffice_research.baselines import (
    CROSS_ENCODED,
    cross_encoder_figures,
    platt_model,
    score_figures,
)
from suffice_research.embedding_cache import CachedReranker
from suffice_research.published_cells import WithPublished
from suffice_research.stored_readings import StoredReader
from suffice_research.study import Study
from suffice_research.training.cases import STACK, TEST, read_lines
from suffice_research.training.gate import FOLD_PARTS, QUESTIONS, fast_of_learned, read_ahead
from suffice_research.training.gate_data import GateData, without_titles
from suffice_research.training.gate_study import (
    FITTED_SAYS,
    THREE,
    WITHOUT_TITLES_LOSS,
    JudgedLists,
    fitted_table,
    run_folds,
)
from suffice_research.training.sources import SEED, ProgressLog, exit_code

__all__ = ["Compared", "baselines_study", "calibrate", "figures", "main"]

Floats = npt.NDArray[np.floating[Any]]
# Data sets whose other questions the gate was trained on, and which lists: "" is BM25's hits. If
# questions do not say whom they are about, only drawn lists have a correct label.
SEEN_LISTS = (
    ("hotpotqa", ""),
    ("2wikimultihopqa", ""),
    ("musique", ""),
    ("squad2", "drawn"),
    ("policyqa", "drawn"),
    ("tatqa", "drawn"),
    ("hover", "drawn"),
)
LEARNED_LISTS = (*SEEN_LISTS, ("everyday", ""), ("everyday", "drawn"))
TOP_SCORE, HITS = "top score", "number of hits"
TEACHER = "the teacher"
READ = Path(__file__).resolve().parents[2] / "teacher" / "read.jsonl"
BASELINES = (*(name for name, _ in CROSS_ENCODED), TEACHER, TOP_SCORE, HITS)
JUDGED, LEARNED, FOLDED = 60, 20, 300  # lists per data set: evaluated, calibrated on, in the folds


def learned_lists(data: GateData, lists: int) -> list[RetrievedQuestion]:
    """Lists of questions that the gate was trained on, equally many per data set and kind."""
    found: list[RetrievedQuestion] = []
    for name, kind in LEARNED_LISTS:
        if name in data.names:
            found += data.judged(name, (STACK,), questions=lists, kind=kind)
    return found


def judged_lists(data: GateData, lists: int) -> Iterator[JudgedLists]:
    """Lists that nothing was trained on: other questions of known sets, and unseen domains.

    Our unseen everyday files are one data set.
    """
    for name, kind in SEEN_LISTS:
        if name in data.names:
            cases = data.judged(name, (TEST,), questions=lists, kind=kind)
            yield JudgedLists(", ".join(filter(None, (name, kind))), "seen", cases)
    unseen: dict[str, list[list[RetrievedQuestion]]] = {}
    for source, kinds in data.unseen(questions=lists):
        for kind in ("", "drawn"):
            name = ", ".join(filter(None, (source.partition("/")[0], kind)))
            unseen.setdefault(name, []).append(kinds[kind])
    for name, files in unseen.items():
        each = -(-lists // len(files))
        yield JudgedLists(name, "unseen", [one for cases in files for one in cases[:each]])


# ---- figures


def figures(
    cases: Sequence[RetrievedQuestion], reranker: Reranker, teacher: Mapping[str, float]
) -> Floats:
    """(lists, baselines): the input of each baseline; NaN if a list has no scores, or was not read."""
    scored = np.array([any(hit.score is not None for hit in one.evidence.hits) for one in cases])
    top = np.where(scored, score_figures(cases)[:, 0], np.nan)
    hits = [len(one.evidence.hits) for one in cases]
    taught = [teacher.get(list_key(one), np.nan) for one in cases]
    return np.column_stack([cross_encoder_figures(cases, reranker), taught, top, hits])


def list_texts(case: RetrievedQuestion) -> list[tuple[str, str]]:
    documents = case.evidence.documents
    hits = [documents[hit.doc_id] for hit in case.evidence.hits]
    return [(one.title, one.text) for one in hits]


def list_key(case: RetrievedQuestion) -> str:
    """A digest of what the teacher reads."""
    content = json.dumps([case.question.text, list_texts(case)])
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def write_lists(cases: Iterable[RetrievedQuestion], path: Path) -> int:
    """Write each list once, as JSON Lines, without labels; how many."""
    rows = {
        list_key(one): {"question": one.question.text, "hits": list_texts(one)} for one in cases
    }
    lines = (json.dumps({"key": key, **row}) for key, row in rows.items())
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(rows)


def read_teacher(path: Path) -> dict[str, float]:
    """The log-odds that each list is complete, by the teacher."""
    found = {}
    for row in read_lines(path):
        p = min(max(row["p"][-1], 1e-4), 1 - 1e-4)
        found[row["key"]] = float(np.log(p / (1 - p)))
    return found


def calibrate(table: Floats, complete: npt.NDArray[np.bool_]) -> list[Callable[[Floats], Floats]]:
    """For each baseline a function from its figures to probabilities: Platt scaling, fitted here.
    NaN stays NaN.
    """
    found: list[Callable[[Floats], Floats]] = []
    for column in table.T:
        known = np.isfinite(column)
        if not known.any():
            found.append(lambda values: np.full(len(values), np.nan))
            continue
        model = platt_model(column[known, None], complete[known], SEED)
        found.append(partial(_where_known, model))
    return found


def _where_known(model: Callable[[Floats], Floats], values: Floats) -> Floats:
    p = np.full(len(values), np.nan)
    known = np.isfinite(values)
    if known.any():
        p[known] = model(values[known, None])
    return p


@dataclass(frozen=True)
class Compared:
    """The probabilities of the gate and of every baseline for the same lists."""

    lists: JudgedLists
    gate: Predictions
    baselines: Mapping[str, Predictions | None]  # None if it has no input


def compare_lists(
    gate: Gate, lists: JudgedLists, table: Floats, models: Sequence[Callable[[Floats], Floats]]
) -> Compared:
    complete = np.array([one.complete for one in lists.cases], dtype=float)
    beside: dict[str, Predictions | None] = {}
    for name, column, model in zip(BASELINES, table.T, models, strict=True):
        p = model(column)
        beside[name] = Predictions(complete, p) if np.isfinite(p).all() else None
    return Compared(
        lists, Predictions(complete, gate.probabilities(gate_inputs(lists.cases))), beside
    )


# ---- the study

BESIDE_SAYS = (
    "The same lists for all. The cross-encoder is the ms-marco MiniLM of 12 layers: its best hit, the mean of its hits, and all "
    "hits as one text, of which each gets an equal share. Top score: BM25's, as it is; drawn lists have none. The number of hits "
    "knows nothing of the text. The teacher: a language model of 1.5 billion parameters, seventy times as large as the reader, "
    "tuned on the reader's lists for 110 seconds of a GPU (the reader's own for 300 to 400, decision 9). Seen: the gate, its reader and the teacher have learned from other questions of the data set; the "
    "cross-encoder has learned from none of them. Unseen: none has learned from the domain. In brackets: 95 % bootstrap interval "
    "over lists."
)
TITLES_SAYS = (
    "The same lists from a store that keeps no titles. Lost: AUROC with titles less AUROC without, on the same lists; at most "
    f"{WITHOUT_TITLES_LOSS} is to be lost."
)


def baselines_study(
    compared: Sequence[Compared],
    *,
    fitted: Sequence[Table] = (),
    titles: Sequence[tuple[str, Predictions, Predictions]] = (),
    settings: Mapping[str, Any],
    seconds: float,
) -> Study:
    gains = _gain_table(compared)
    beside = (_auroc_table(compared), gains, _ece_table(compared, settings))
    sections = [Section("Beside other predictors", beside, BESIDE_SAYS)]
    if fitted:
        sections.append(Section("Fitted on one data set", tuple(fitted), FITTED_SAYS))
    if titles:
        sections.append(Section("Without titles", (_titles_table(titles),), TITLES_SAYS))
    return Study(
        name="gate-baselines",
        title="The standard gate beside other predictors",
        seed=SEED,
        settings=settings,
        data={},
        sections=tuple(sections),
        summary=(*_gain_summary(gains), *_fitted_summary(fitted), *_titles_summary(titles)),
        timings={"measuring": seconds},
        commit=source_commit(),
        packages=package_versions(),
    )


def _about(one: Compared) -> tuple[Cell, ...]:
    return (one.lists.name, one.lists.seen, len(one.gate), float(one.gate.labels.mean()))


ABOUT = ("data set", "seen", "n", "complete")


def _cells(one: Compared, metric: str) -> list[Cell]:
    """The cells of the gate and of every baseline."""
    each = (one.gate, *(one.baselines[name] for name in BASELINES))
    return [None if p is None else interval(p, metric) for p in each]


def _auroc_table(compared: Sequence[Compared]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in compared:
        rows.append((*_about(one), *_cells(one, "auroc")))
    return Table("AUROC beside others", (*ABOUT, "the gate", *BASELINES), tuple(rows))


def _gain_table(compared: Sequence[Compared]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in compared:
        others = (one.baselines[name] for name in BASELINES)
        gains = [None if other is None else _gain(one.gate, other) for other in others]
        rows.append((*_about(one), *gains))
    note = "AUROC of the gate less that of the other, on the same draws of lists."
    return Table("Gain over others", (*ABOUT, *BASELINES), tuple(rows), note)


def _gain(gate: Predictions, other: Predictions) -> Interval:
    found = compare(gate, other, "auroc")
    return Interval(found.value, found.low, found.high)


def _ece_table(compared: Sequence[Compared], settings: Mapping[str, Any]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in compared:
        rows.append((*_about(one), *_cells(one, "ece"), ece_by_chance(one.gate.probabilities)))
    note = (
        f"The others are calibrated by Platt scaling on {settings['learned']} lists each of {len(LEARNED_LISTS)} kinds, of the "
        "questions that the gate has learned from; the gate is as it is. By chance: what the gate's probabilities show on "
        "average if every one is true."
    )
    columns = (*ABOUT, "the gate", *BASELINES, "the gate, by chance")
    return Table("ECE beside others", columns, tuple(rows), note)


def _titles_table(titles: Sequence[tuple[str, Predictions, Predictions]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, with_titles, without in titles:
        aurocs = [interval(one, "auroc") for one in (with_titles, without)]
        rows.append((name, "seen", len(without), *aurocs, _gain(with_titles, without)))
    columns = ("data set", "seen", "n", "AUROC", "AUROC without titles", "lost")
    return Table("Lost without titles", columns, tuple(rows))


def _gain_summary(gains: Table) -> Iterator[str]:
    for name in BASELINES:
        found = {str(row[0]): row[gains.columns.index(name)] for row in gains.rows}
        known = {where: gain for where, gain in found.items() if isinstance(gain, Interval)}
        above = [where for where, gain in known.items() if gain.low is not None and gain.low > 0]
        below = [where for where, gain in known.items() if gain.high is not None and gain.high < 0]
        yield (
            f"The gate ranks better than {name}, beyond noise, on {len(above)} of {len(known)} sets of lists; "
            f"worse on {', '.join(below) or 'none'}."
        )


def _fitted_summary(tables: Sequence[Table]) -> Iterator[str]:
    for table in tables:
        for row in table.rows:
            found = row[table.columns.index("AUROC")]
            if isinstance(found, WithPublished) and found.difference.value is not None:
                kept = "reached" if found.difference.value >= 0 else "not reached"
                yield f"Fitted on {row[0]}: AUROC {format_cell(found.measured)}; to reach {found.paper}: {kept}."


def _titles_summary(titles: Sequence[tuple[str, Predictions, Predictions]]) -> Iterator[str]:
    for name, with_titles, without in titles:
        lost = _gain(with_titles, without)
        kept = lost.value is not None and lost.value <= WITHOUT_TITLES_LOSS
        yield (
            f"Without titles, {name}: {_signed(lost.value)} AUROC lost [{_signed(lost.low)}, {_signed(lost.high)}]; to reach at most "
            f"{WITHOUT_TITLES_LOSS}: {'reached' if kept else 'not reached'}."
        )


def _signed(value: float | None) -> str:
    return "--" if value is None else f"{value:+.3f}"


# ---- the command


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.gate_baselines",
        description="Measure the standard gate beside other predictors.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--readings", type=Path, help="where readings are kept for the next run")
    parser.add_argument("--scores", type=Path, help="a folder where the cross-encoder's are kept")
    parser.add_argument("--judged", type=int, default=JUDGED, help="lists of a data set, at most")
    parser.add_argument("--learned", type=int, default=LEARNED, help="to calibrate the others on")
    parser.add_argument("--folded", type=int, default=FOLDED, help="to fit on by folds; 0: none")
    parser.add_argument("--titles", type=int, default=JUDGED, help="to judge without titles")
    parser.add_argument("--only", help="some of the data sets, with commas: for trying out")
    parser.add_argument("--write-lists", type=Path, help="write the lists for the teacher, and end")
    parser.add_argument("--teacher", type=Path, default=READ, help="what it said of the lists")
    parser.add_argument("--out", type=Path, help="write the study here, as JSON")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _options().parse_args(arguments)
    return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    require_fit_extra()
    started = time.perf_counter()
    data = GateData(args.data, only=args.only.split(",") if args.only else (), say=say)
    reranker = CachedReranker(RERANKERS.get(DEFAULT_RERANKER)(), args.scores)
    lists = list(judged_lists(data, args.judged))
    learned = learned_lists(data, args.learned)
    if args.write_lists:
        count = write_lists(
            [*learned, *(case for one in lists for case in one.cases)], args.write_lists
        )
        say(f"{count:,} lists at {args.write_lists}")
        return
    teacher = read_teacher(args.teacher)
    tables = {}
    for one in (JudgedLists("learned lists", "seen", learned), *lists):
        tables[one.name] = figures(one.cases, reranker, teacher)
        say(f"cross-encoder: {one.name}, {len(one.cases)} lists")
    models = calibrate(
        tables["learned lists"], np.array([one.complete for one in learned], dtype=bool)
    )

    reader = StoredReader(Reader(), args.readings, progress=say.progress)
    titled = {
        name: data.judged(name, (TEST,), questions=args.titles)
        for name in THREE
        if name in data.names
    }
    untitled = {name: without_titles(cases) for name, cases in titled.items()}
    folds = {
        name: data.judged(name, FOLD_PARTS, questions=args.folded)
        for name in THREE
        if name in data.names and args.folded
    }
    read_ahead(reader, *(one.cases for one in lists))
    read_ahead(reader, *titled.values(), *untitled.values(), *folds.values())
    fast = fast_of_learned(data, questions=QUESTIONS[FAST])
    gate = Gate.load()
    gate = replace(gate, readers=replace(gate.readers, reader=reader, fast=fast))
    compared = [compare_lists(gate, one, tables[one.name], models) for one in lists]

    def judge(cases: Sequence[RetrievedQuestion]) -> Predictions:
        complete = [float(one.complete) for one in cases]
        return Predictions(complete, gate.probabilities(gate_inputs(cases)))

    titles = [(name, judge(cases), judge(untitled[name])) for name, cases in titled.items()]

    def fit(some: Sequence[LabelledQuestion]) -> Gate:
        options: Any = {"preset": STANDARD, "reader": reader, "fast": fast, "seed": SEED}
        return Gate.fit(some, **options, **PolicyChoice().options)

    fitted = []
    for name, cases in folds.items():
        fitted.append(run_folds(name, cases, fit))
        say(f"fitted on folds of {name}")
    study = baselines_study(
        compared,
        fitted=[fitted_table(fitted, STANDARD)] if fitted else (),
        titles=titles,
        settings={
            "preset": STANDARD,
            "judged": args.judged,
            "learned": args.learned,
            "folded": args.folded,
            "titles": args.titles,
        },
        seconds=time.perf_counter() - started,
    )
    for line in study.summary:
        say(line)
    if args.out:
        say(f"study at {study.save(args.out)}")


if __name__ == "__main__":
    sys.exit(main())
