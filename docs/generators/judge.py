"""The page of the judge: what a language model behind the gate gains, by the share that is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.generators.markdown import at_commit
from docs.generators.paths import RESULTS, RUNS
from docs.generators.results import section_lines
from suffice.evaluation.significance import Interval
from suffice.evaluation.study import Study
from suffice.evaluation.tables import Cell, format_cell
from suffice.gate.judge import MAX_EFFECT

STORED = RUNS / "judge.json"
READ = "python -m suffice_research.judge_study read --data $DATA"
COMMAND = "python -m suffice_research.judge_study measure --study judge.json"
PROMPTS = "python -m suffice_research.judge_study prompts --data $DATA --out prompts.jsonl"
BEFORE_CONTROLS = (
    " Its answers, tokens and seconds come from an earlier prompt without control questions; how often this judge fails "
    "those was not measured."
)


def pages() -> dict[Path, str]:
    if not STORED.is_file():
        return {}
    return {RESULTS / "judge.md": "\n".join(_lines(Study.load(STORED)))}


def _verdict(study: Study) -> Iterator[str]:
    """Whether this judge gains anything, and whether it harms."""
    gains, worse = [], list[str]()
    for table in study.tables:
        if not table.title.startswith("By share"):
            continue
        at = table.columns.index("gained")
        gains += [row[at] for row in table.rows]
        by = table.title.partition(", ")[2]
        for column in ("gained", "Brier falls by", "more right"):
            for row in table.rows:
                one = row[table.columns.index(column)]
                if isinstance(one, Interval) and one.high is not None and one.high < 0:
                    worse.append(
                        f"{row[0]}, {by}, at most {row[3]} sent: {column} {format_cell(one)}"
                    )
    if not gains:
        return
    lows = [one.low for one in gains if isinstance(one, Interval) and one.low is not None]
    if max(lows, default=0.0) <= 0:
        yield (
            "This judge does not help: no interval of a gain lies above 0. It says yes to nearly every list, so it gets little "
            "weight or none. Without weight, no question is sent and the gate stays as it is. A stronger judge was not measured."
        )
    if worse:
        yield f"Gate and judge together are significantly worse than the gate alone: {'; '.join(worse)}."
    else:
        yield (
            "Gate and judge together are never significantly worse than the gate alone: for no share, in AUROC, Brier score or right "
            "decisions, with labels of the domain, of the other domains, or none."
        )


def _orders(study: Study) -> Iterator[str]:
    """How far orders in hits still move a judge that obeys them."""
    rows = [row for one in study.tables if one.title == "Orders in hits" for row in one.rows]
    if not rows:
        return
    said = {(row[0], row[1]): row for row in rows}
    parts = []
    for obeys, whom in (("all", "everything"), ("all but ours", "strangers but never us")):
        row = said[obeys, "written after rules and controls"]
        turned, silenced, neutral, moved = (_value(row[at]) for at in (5, 7, 8, 9))
        parts.append(
            f"of a model that obeys {whom}, they turn {turned:.0%} of the words, silence {silenced:.0%}, and move p by {moved:.3f} "
            f"on average, where neutral text moves it by {neutral:.3f}"
        )
    yield (
        f"Orders in hits can do more than neutral text. Orders written after the defences: {'; '.join(parts)}. What is left is bounded: "
        f"no word moves the log-odds by more than {MAX_EFFECT:g}, and a silenced judge leaves the gate's own verdict. "
        "Orders that were known when the rules were written do no more than neutral text."
    )


def _value(cell: Cell) -> float:
    return (cell.value if isinstance(cell, Interval) else None) or 0.0


def _lines(study: Study) -> Iterator[str]:
    yield f"# {study.title}\n"
    yield f"    {READ}\n    {COMMAND}\n\nMeasured {at_commit(study.commit)}.\n"
    yield (
        f"The judge is {study.settings['model']}; the gate is the shipped standard gate. `research/judge/README.md` describes the "
        f"stored answers of both; `{PROMPTS}` writes the judge's prompts. Everyday text is drawn lists from our own held-out "
        "files, and COVID-QA is hits of BM25; neither gate nor reader was trained on these. Wikipedia is hits of BM25 for test "
        "questions of HotpotQA, 2WikiMultiHopQA and MuSiQue; the gate was trained on other questions of these sets. The judge may have "
        f"been trained on any of the public sets.{'' if study.settings['controls'] else BEFORE_CONTROLS} Brackets show 95 % bootstrap intervals over questions. "
        "To use a judge, see [let a model decide the hard ones](../../docs/howto/judge.md).\n"
    )
    yield from (f"- {line}" for line in (*_verdict(study), *study.summary, *_orders(study)))
    yield ""
    yield from section_lines(study, {})
