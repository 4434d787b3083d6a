"""The results of `improve`: a short summary, a page, and the next steps."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from suffice.evaluation.adaptation import MIN_LABELS
from suffice.evaluation.gate_runs import GateRun, gate_figures, gate_tables, reliability_lines
from suffice.evaluation.heatmap import Heatmap
from suffice.evaluation.metrics import METRICS
from suffice.evaluation.report import Cell, Page, Section, Table, format_cell
from suffice.evaluation.significance import Interval, compare
from suffice_grade.difficulty_matrix import THIN, error_rate

__all__ = ["LoopRecord", "loop_page", "loop_summary", "next_steps"]

MADE, LABELS = "made", "labels"  # sources of questions
SOURCES = {MADE: "made questions", LABELS: "labels"}
QUESTIONS_DIR, GATE_DIR = "questions", "gate"
LIST_FILE, LABEL_FILE, REPORT_FILE = "to-label.jsonl", "labels.jsonl", "report.html"
BEFORE_AFTER = ("before", "after")
FIGURES = {
    "auroc": "AUROC: ranks complete lists above incomplete ones",
    "brier": "Brier score: squared error of the probability",
    "ece": "calibration error (ECE)",
    "coverage": "share answered",
    "risk": "incomplete among the answered",
}
ADAPTED = {"auroc": "auroc", "ece": "ece", "coverage": "answered", "risk": "incomplete"}
FEW_FOUND = 0.5  # share of questions below which the retriever should be improved first
MIN_BIN = 5  # questions per dot of the reliability plot
WEAK_RISK, WEAK_AUROC = 0.1, 0.75


@dataclass(frozen=True)
class LoopRecord:
    """The results of the stages so far, and their settings."""

    library: str
    retriever: str
    out: Path
    settings: Mapping[str, str]
    command: str
    results: Mapping[str, Mapping[str, Any]]
    runs: Mapping[str, Mapping[str, GateRun]]  # source -> before, after

    @property
    def gate(self) -> Mapping[str, Any]:
        return self.results.get("gate", {})

    @property
    def latest(self) -> tuple[str, GateRun] | None:
        """The run of the current gate, on labels if there are any, else on generated questions."""
        for source in (LABELS, MADE):
            if runs := self.runs.get(source):
                return source, runs.get(BEFORE_AFTER[1], runs[BEFORE_AFTER[0]])
        return None


# ------------------------------------------------------------------------------------ the summary


def loop_summary(record: LoopRecord) -> list[str]:
    """The result of each stage, one sentence each."""
    lines, results = [], record.results
    if made := results.get("questions"):
        why = f" ({made['why']})" if made["why"] else ""
        count = f"{made['made']:,} question{'' if made['made'] == 1 else 's'}"
        lines.append(f"{count} made from {made['documents']:,} documents{why}.")
    if results.get("labels", {}).get("asked"):
        chosen, asked = results["labels"]["to_label"], results["labels"]["asked"]
        where = record.out / LIST_FILE
        lines.append(f"{chosen:,} of {asked:,} questions are worth a label: {where}.")
    if gate := record.gate:
        lines += _gate_lines(gate)
    for source, runs in record.runs.items():
        lines.append(_test_line(source, runs))
    if error := results.get("difficulty", {}).get("error"):
        found, n = 1 - error["value"], results["difficulty"]["questions"]
        k = record.settings["k"]
        lines.append(
            f"{record.retriever} finds all the evidence of {found:.0%} of {n:,} made questions in "
            f"its first {k} hits."
        )
    return lines


def _gate_lines(gate: Mapping[str, Any]) -> Iterator[str]:
    if gate["labels"]:
        rest = gate["labels"] - gate["complete"]
        yield f"{gate['labels']:,} labels: {gate['complete']:,} complete, {rest:,} incomplete."
    if gate["left_out"]:
        yield f"{len(gate['left_out']):,} labels left out, the first: {gate['left_out'][0]}."
    if gate["unreadable"]:
        yield f"{gate['unreadable']:,} labels not read, the first: {gate['first_unreadable']}."
    notes = "; ".join(gate["notes"])
    if gate["adapted"]:
        yield f"The gate was adapted to {gate['learned']:,} labels. It is {notes}."
    elif gate["source"]:
        yield f"The shipped gate stays: adapted to {gate['learned']:,} labels, it is {notes}."
    else:
        why = notes or f"fewer than {MIN_LABELS} labels, and made questions are not your users'"
        yield f"The shipped gate stays: {why}."
    if gate["source"]:
        for line in (gate["account"]["outlook"], gate["account"]["promise"]):
            yield f"{line[0].upper()}{line[1:]}."


def _test_line(source: str, runs: Mapping[str, GateRun]) -> str:
    parts = []
    for when, run in runs.items():
        found = _figures(run)
        parts.append(
            f"{when}: AUROC {format_cell(found['auroc'])}, incomplete among the answered "
            f"{format_cell(found['risk'])}"
        )
    n = len(next(iter(runs.values())))
    return f"On {n:,} {SOURCES[source]} that no gate learned from, {'; '.join(parts)}."


def _figures(run: GateRun) -> dict[str, Interval]:
    """Figures with Wilson intervals: a bootstrap of few complete answers claims certainty."""
    answered, complete = run.answered, np.array(run.complete, dtype=bool)
    wrong = (~complete[answered]).astype(float)
    shares = {"coverage": error_rate(answered.astype(float)), "risk": error_rate(wrong)}
    return gate_figures(run) | shares


# ------------------------------------------------------------------------------------ what is next


def next_steps(record: LoopRecord) -> list[tuple[str, str]]:
    """The next steps, in words and as a command; the most useful first."""
    if "gate" not in record.results:
        return []
    gate, out = record.gate, shlex.quote(str(record.out))
    labels = gate["labels"]
    has_list = (record.out / LIST_FILE).is_file()
    steps: list[tuple[str, str]] = []
    if labels < MIN_LABELS and has_list:
        serve = f"suffice serve --label {out}/{LIST_FILE} --labels {out}/{LABEL_FILE}"
        steps += [
            (
                f"Label {MIN_LABELS - labels} questions or more on the page, with one key each.",
                serve,
            ),
            (f'Or by hand: set "complete" to true or false in {record.out / LIST_FILE}.', ""),
            ("Then run the loop again; it adapts the gate to your labels.", record.command),
        ]
    elif labels < MIN_LABELS:
        what = (
            "The gate learns only from your labels: write down questions of your users, one a "
            "line, or take a shadow log. The loop chooses those that are worth a label."
        )
        more = "" if "ask" in record.settings else " --ask questions.txt"
        steps.append((what, f"{record.command}{more}"))
    library, retriever = shlex.quote(record.library), shlex.quote(record.retriever)
    check = f'suffice check "your question" --library {library} --retriever {retriever}'
    if not gate["adapted"]:
        what = "The shipped gate is as good on these labels: use it as it is."
        steps.append((what if gate["source"] else "For now, use the gate as it ships.", check))
    else:
        check = f"{check} --gate {out}/{GATE_DIR}"
        serve = f"suffice serve --library {library} --gate {out}/{GATE_DIR}"
        steps += [("Use the new gate.", check), ("Or serve it, with a page.", serve)]
    error = record.results.get("difficulty", {}).get("error")
    if error and 1 - error["value"] < FEW_FOUND:
        other = "bridge" if record.retriever != "bridge" else "hybrid"
        words = ["suffice", "improve", record.library, "--retriever", other]
        command = shlex.join([*words, "--out", f"{record.out}-{other}"])
        steps.append((f"{record.retriever} misses much: try another retriever.", command))
    return steps


# ------------------------------------------------------------------------------------ the page


def loop_page(record: LoopRecord) -> Page:
    """The report: corpus and questions, the gate before and after, weaknesses, next steps."""
    sections = [
        Section("The corpus and its questions", (_question_table(record),)),
        *_gate_sections(record),
        *_difficulty_sections(record),
        *_weak_sections(record),
    ]
    used = {"auroc", "brier", "ece"} if record.runs else set()
    made_with = [("library", record.library), ("retriever", record.retriever)]
    return Page(
        title="Improve: what the gate does on your corpus",
        about=f"{record.library}, {record.retriever}, k = {record.settings['k']}",
        summary=loop_summary(record),
        sections=sections,
        settings=[*made_with, *record.settings.items()],
        meanings=[(one.name, one.meaning) for one in METRICS if one.name in used],
        next_steps=next_steps(record),
        command=record.command,
    )


def _question_table(record: LoopRecord) -> Table:
    made, gate = record.results["questions"], record.gate
    rows: list[tuple[Cell, ...]] = [
        ("documents", made["documents"]),
        ("made questions", made["made"]),
    ]
    if made.get("twins"):
        rows.append(("their unanswerable twins: one needed document is hidden", made["twins"]))
    if made.get("lookalikes"):
        what = "their look-alike twins: a changed copy stands for one needed document"
        rows.append((what, made["lookalikes"]))
    rows += [(f"of {hops} hops", n) for hops, n in made.get("by_hops", {}).items()]
    rows += [(f"kind {kind}", n) for kind, n in made.get("by_kind", {}).items()]
    rows += [(f"dropped: {why}", n) for why, n in made.get("dropped", {}).items()]
    rows += [("labels", gate["labels"]), ("labels that say complete", gate["complete"])]
    if gate["source"]:
        rows += [
            ("labels that the gate learned from", gate["learned"]),
            ("labels kept for the test", gate["held_out"]),
        ]
    note = "Made questions come from the documents by rules; their needed documents are known."
    if made["why"]:
        note += f" Too few here: {made['why']}."
    return Table("Where questions came from", ("what", "number"), tuple(rows), note)


def _gate_sections(record: LoopRecord) -> Iterator[Section]:
    for source, runs in record.runs.items():
        says = f"{len(next(iter(runs.values()))):,} {SOURCES[source]} that no gate learned from."
        shown = {when: run.predictions() for when, run in runs.items()}
        dots = f"On the diagonal it can. Dots stand for {MIN_BIN} questions or more."
        title = f"Can the probability be believed? {SOURCES[source]}"
        plot = reliability_lines(title, shown, fewest=MIN_BIN, says=dots)
        yield Section(f"The gate on {SOURCES[source]}", (_run_table(source, runs), plot), says)
    account = record.gate["account"]
    if account and record.gate["source"] not in record.runs:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (FIGURES[name], *(Interval(**account[when][key]) for when in BEFORE_AFTER))
            for name, key in ADAPTED.items()
        )
        note = f"{account['labels']:,} labels, each judged by a gate that had not seen it."
        table = Table("Before and after", ("figure", *BEFORE_AFTER), rows, note)
        yield Section("The gate on your labels", (table,), f"It is {account['verdict']}.")


def _run_table(source: str, runs: Mapping[str, GateRun]) -> Table:
    found = {when: _figures(run) for when, run in runs.items()}
    both = len(runs) == len(BEFORE_AFTER)
    rows: list[tuple[Cell, ...]] = []
    for name, words in FIGURES.items():
        cells: list[Cell] = [figures[name] for figures in found.values()]
        if both and name in ("auroc", "brier", "ece"):
            before, after = (run.predictions() for run in runs.values())
            cells.append(compare(after, before, name, seed=runs[BEFORE_AFTER[0]].seed))
        elif both:
            cells.append(None)
        rows.append((words, *cells))
    columns = ("figure", *(BEFORE_AFTER if both else ("shipped gate",)))
    note = "Brackets: 95 % interval." + (
        " A difference whose interval holds 0 may be chance." if both else ""
    )
    title = f"Before and after, {SOURCES[source]}" if both else f"Shipped gate, {SOURCES[source]}"
    return Table(title, (*columns, *(("difference",) if both else ())), tuple(rows), note)


def _difficulty_sections(record: LoopRecord) -> Iterator[Section]:
    found = record.results["difficulty"]
    if found.get("shown"):
        yield Section(found["title"], tuple(map(_shown, found["shown"])))


def _shown(record: Mapping[str, Mapping[str, Any]]) -> Table | Heatmap:
    """A table or a heatmap from its JSON values."""
    ((kind, values),) = record.items()
    if kind == "Heatmap":
        return Heatmap(**values)
    return Table(**{**values, "rows": tuple(map(tuple, values["rows"]))})


def _weak_sections(record: LoopRecord) -> Iterator[Section]:
    if record.latest is None:
        return
    source, run = record.latest
    groups, weak = gate_tables(run)[2:], _weak_places(record, run)  # by kind, by hops
    says = f"The gate now, on {SOURCES[source]}."
    note = "Few questions make a large figure by chance."
    table = Table("Weak places", ("place", "figure", "questions"), tuple(weak), note)
    if not weak:
        says += " Nothing stands out."
    yield Section("What is weak", (*([table] if weak else ()), *groups), says)


def _weak_places(record: LoopRecord, run: GateRun) -> list[tuple[Cell, ...]]:
    """The worst group of each kind, if it is bad enough to act on."""
    weak: list[tuple[Cell, ...]] = []
    for table in gate_tables(run)[2:]:
        rows = table.records()
        risky = max(rows, key=lambda row: row["risk"] or 0.0)
        unranked = min(rows, key=lambda row: 1.0 if row["auroc"] is None else row["auroc"])
        group = table.columns[0]
        if (risky["risk"] or 0.0) > WEAK_RISK:
            place = f"{group} {risky[group]}: incomplete among the answered"
            weak.append((place, risky["risk"], risky["n"]))
        if unranked["auroc"] is not None and unranked["auroc"] < WEAK_AUROC:
            weak.append((f"{group} {unranked[group]}: AUROC", unranked["auroc"], unranked["n"]))
    by_hops = record.results.get("difficulty", {}).get("by_hops", {})
    for hops, one in by_hops.items():
        missed = one["error"]["value"] or 0.0
        if missed > 1 - FEW_FOUND and one["n"] >= THIN:
            place = f"{hops} hops: {record.retriever} misses a needed document"
            weak.append((place, missed, one["n"]))
    if unknown := int(run.settings.get("unfamiliar", 0)):
        share = unknown / len(run)
        weak.append(("low familiarity: texts that the gate does not know", share, len(run)))
    return weak
