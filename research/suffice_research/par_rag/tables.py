"""PAR-RAG's tables beside ours, and the results in plain words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from suffice.evaluation.report import Cell, Lines, Table, format_cell
from suffice.evaluation.significance import Difference, Interval, compare, statistic_interval
from suffice_research.answers import AnswerRun
from suffice_research.curves import risk_lines
from suffice_research.par_rag.published import FIGURE_2, GAINS, TABLE_2, TABLE_4
from suffice_research.par_rag.stopping import (
    COVERAGES,
    GATE_COMPARISONS,
    equal_documents_table,
    ordered_answers,
    ranked_answers,
)
from suffice_research.published import PublishedTable
from suffice_research.published_cells import WithPublished

__all__ = [
    "ablations",
    "exemplars",
    "figure_2",
    "findings",
    "gains",
    "kinds",
    "table_2",
    "table_4",
]

Runs = Mapping[str, AnswerRun]
Floats = npt.NDArray[np.float64]
SINGLE, ALWAYS, ASK = "single passage", "always", "ask"
OTHERS = (SINGLE, "naive", "fixed k", "along links", "interleaved")  # systems that do not plan
CLAIMED = {
    "2wikimultihopqa": ("bridge_comparison", "comparison", "compositional"),
    "hotpotqa": ("bridge", "comparison"),
}


def _value(runs: Runs, name: str, system: str, measure: str) -> float | None:
    run = runs[name]
    return run.figure(system, measure).value if system in run.systems else None


def _beside(
    runs: Runs,
    paper: PublishedTable,
    ours: Mapping[str, str],
    measures: Mapping[str, str],
    note: str,
) -> Table:
    """Rows: the paper's systems and our most similar ones.

    Columns: each measure on each data set, ours and the paper's.
    """
    rows: list[tuple[Cell, ...]] = []
    for key, system in ours.items():
        cells = [
            WithPublished(_value(runs, name, system, measure), paper.get(key, f"{measure}@{name}"))
            for name in runs
            for measure in measures
        ]
        theirs = paper.printed.get(key, key)
        rows.append((theirs, system or "--", *cells))
    columns = [f"{title}, {name}" for name in runs for title in measures.values()]
    return Table(
        f"{paper.table}: {paper.caption}", ("the paper's", "ours", *columns), tuple(rows), note
    )


def _nearest(systems: Collection[str] | None) -> dict[str, str]:
    """For each of the paper's systems, our most similar one among those that were run."""
    ours = {"fixed k": "fixed k", "RAPTOR": "", "interleaved": "interleaved", "always": ALWAYS}
    if systems is None:
        return ours
    ours["fixed k"] = "naive"
    return {key: system if system in systems else "" for key, system in ours.items()}


def table_2(runs: Runs, systems: Collection[str] | None = None) -> Table:
    ours = _nearest(systems)
    note = "Ours (the paper's). Intervals of ours stand in the tables of each data set."
    return _beside(runs, TABLE_2, ours, {"em": "EM", "token_f1": "F1"}, note)


def figure_2(runs: Runs) -> Table:
    ours = {"no plan": "along links", "no review": "always, no review", "always": ALWAYS}
    note = "Ours (the paper's). Without a plan: the same look at the question as a whole, and the same reader."
    return _beside(runs, FIGURE_2, ours, {"em": "EM", "token_f1": "F1"}, note)


def table_4(runs: Runs, systems: Collection[str] | None = None) -> Table:
    note = "Ours (the paper's). Seconds are those of a machine, and not compared."
    if systems is None:
        note += " No language model took part, so that ours spend no tokens."
    return _beside(runs, TABLE_4, _nearest(systems), {"tokens": "tokens"}, note)


def exemplars(runs: Runs) -> Table:
    """Plans with exemplars of the question's complexity, and with the same ones for all."""
    matched, same = ASK, f"{ASK}, any exemplars"
    measures = {"em": "EM", "token_f1": "F1", "answered": "answered", "tokens": "tokens"}
    rows: list[tuple[Cell, ...]] = []
    for name, run in runs.items():
        cells: list[Cell] = []
        for measure in measures:
            cells += [run.figure(matched, measure), run.above(matched, same, measure)]
        rows.append((name, len(run), *cells))
    columns = [column for title in measures.values() for column in (title, f"{title}, gained")]
    note = (
        f"{ASK} as it is, and how far it is above itself with the same exemplars for every question. In brackets: 95 % bootstrap "
        "interval, paired."
    )
    title = "Exemplars matched by complexity"
    return Table(title, ("data set", "n", *columns), tuple(rows), note)


def gains(runs: Runs) -> Table:
    """How far the loop's exact match is above the best system without a plan, relative to it."""
    rows: list[tuple[Cell, ...]] = []
    for name, run in runs.items():
        best = max(OTHERS, key=lambda one: run.figure(one, "em").value or 0.0)
        above = run.above(ALWAYS, best, "em")
        rows.append((name, best, _gain(run, best), GAINS.get("always", name), above, above.p))
    columns = (
        "data set",
        "best of the others",
        "relative gain of always",
        "the paper's",
        "difference in EM",
        "p",
    )
    note = f"The others: {', '.join(OTHERS)}. The paper's: {GAINS.table}. In brackets: 95 % bootstrap interval over questions."
    return Table("Relative gain in exact match", columns, tuple(rows), note)


def _gain(run: AnswerRun, other: str) -> Interval:
    ours, theirs = run.values(ALWAYS, "em"), run.values(other, "em")

    def relative(weights: Floats) -> Floats:
        base = weights @ theirs
        gained: Floats = np.divide(
            weights @ (ours - theirs), base, out=np.full(len(base), np.nan), where=base > 0
        )
        return gained

    return statistic_interval(relative, len(run), seed=run.seed)


def kinds(runs: Runs) -> Table:
    """The paper's claim: F1 above the single passage, on comparison and bridge questions."""
    rows: list[tuple[Cell, ...]] = []
    for name, kind in (
        (name, kind) for name, wanted in CLAIMED.items() for kind in wanted if name in runs
    ):
        run = runs[name]
        if kind in run.kinds:
            single = run.figure(SINGLE, "token_f1", kind)
            figures: list[Cell] = []
            for system in (ALWAYS, ASK):
                figures += [
                    run.figure(system, "token_f1", kind),
                    run.above(system, SINGLE, "token_f1", kind),
                ]
            answered = run.figure(ASK, "answered", kind).value
            rows.append((name, kind, run.kinds.count(kind), single, *figures, answered))
    columns = (
        "data set",
        "kind",
        "n",
        SINGLE,
        ALWAYS,
        "above single",
        ASK,
        "above single passage",
        "answered by ask",
    )
    note = "F1; no answer counts as wrong, so that ask pays for each abstention. In brackets: 95 % bootstrap interval, paired."
    return Table("F1 on questions that compare and on bridges", columns, tuple(rows), note)


def ablations(runs: Runs) -> Table:
    """The gated loop with one part switched off, against itself."""
    rows: list[tuple[Cell, ...]] = []
    for name, run in runs.items():
        for system in (one for one in run.systems if one.startswith(f"{ASK}, ")):
            cells: list[Cell] = [
                run.above(system, ASK, measure)
                for measure in ("token_f1", "answered", "complete", "rounds")
            ]
            risk = [run.figure(one, "incomplete_of_answered").value for one in (system, ASK)]
            rows.append((name, system, *cells, *risk))
    columns = (
        "data set",
        "system",
        "F1",
        "answered",
        "complete",
        "rounds",
        "incomplete of answered",
        "... of ask",
    )
    note = (
        "Differences from ask, paired, with 95 % interval. F1 and complete: below 0, the part that is switched off was worth "
        "something. Without the gate more is answered; what that costs stands in the last two columns."
    )
    return Table("What each part is worth", columns, tuple(rows), note)


# ------------------------------------------------------------------------------------------------------ in words


def findings(runs: Runs) -> Iterator[str]:
    """The results, with the figures that support them."""
    for name, run in runs.items():
        above = run.above(ALWAYS, SINGLE, "token_f1")
        always, loop = (format_cell(run.figure(system, "token_f1")) for system in (ALWAYS, ASK))
        text = f"F1 of the loop that always answers is {always}, {_verdict(above)} the single passage ({format_cell(above)})"
        yield f"{name}, n = {len(run)}: {text}; that of ask, which may abstain, is {loop}."
    yield from _claims(runs)
    for name, run in runs.items():
        ask_share, look, more, links, beyond = next(
            map(format_cell, row[2:]) for row in equal_documents_table(run).rows if row[0] == ASK
        )
        text = f"ask holds all evidence for {ask_share}, one look with as many documents for {look} ({more})"
        yield f"{name}: {text}, one along links for {links} ({beyond})."
    for name, run in runs.items():
        yield f"{name}: {_at_equal_coverage(run)}"


def _claims(runs: Runs) -> Iterator[str]:
    table = kinds(runs)
    for column, system in (("above single", ALWAYS), ("above single passage", ASK)):
        at = table.columns.index(column)
        text = [(f"{row[0]} {row[1]}", row[at]) for row in table.rows]
        surely = [
            f"{kind} ({format_cell(one)})"
            for kind, one in text
            if isinstance(one, Difference) and (one.low or 0) > 0
        ]
        rest = [
            f"{kind} ({format_cell(one)})"
            for kind, one in text
            if isinstance(one, Difference) and (one.low or 0) <= 0
        ]
        words = f"F1 of {system} is above the single passage beyond chance on {', '.join(surely) or 'nothing'}"
        yield words + (f"; not beyond chance on {', '.join(rest)}." if rest else ".")


def _verdict(one: Difference) -> str:
    if one.low is not None and one.low > 0:
        return "above"
    return "below" if one.high is not None and one.high < 0 else "not beyond chance from"


def _at_equal_coverage(run: AnswerRun) -> str:
    """Fewer answers without evidence: the loop with the gate against the loop's own confidence."""
    parts = []
    for coverage in COVERAGES:
        one, other = (
            ordered_answers(run, ASK, "gate", "complete"),
            ordered_answers(run, ALWAYS, "review", "complete"),
        )
        if one is not None and other is not None:
            difference = compare(one, other, f"risk_at_coverage@{coverage:g}", seed=run.seed)
            parts.append(f"{format_cell(difference)} at {coverage:g}")
    text = ", ".join(parts)
    return f"at equal coverage, answers without all evidence by the gate less by the loop's own confidence: {text}."


def risk_figure(run: AnswerRun, good: str) -> Lines:
    """The share of incomplete (or wrong) among the answered, by coverage."""
    pairs = dict.fromkeys(pair for one, others in GATE_COMPARISONS for pair in (one, *others))
    found = {", by ".join(pair): ranked_answers(run, pair, good) for pair in pairs}
    lines = {name: one for name, one in found.items() if one is not None}
    word = "incomplete" if good == "complete" else "wrong"
    return risk_lines(f"Risk of {word} answers on {run.dataset}", lines, word=word)
