"""The page of the judge: what a language model behind the gate gains, by the share that is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.generators.paths import RESULTS, RUNS
from docs.generators.results import section_lines
from suffice.evaluation.significance import Interval
from suffice.evaluation.study import Study
from suffice.evaluation.tables import format_cell

STORED = RUNS / "judge.json"
READ = "python -m suffice_research.judge_study read --data $DATA"
COMMAND = "python -m suffice_research.judge_study measure --study judge.json"
PROMPTS = "python -m suffice_research.judge_study prompts --data $DATA --out prompts.jsonl"
BEFORE_CONTROLS = (
    " Its answers, and the tokens and seconds, are of a prompt with the question alone, before control questions; nothing says how "
    "often this judge gets those wrong."
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
            "This judge gains nothing: no interval of a gain lies above 0. It says yes to nearly every list, and so has little "
            "weight or none; where it has none, no question is sent and the gate stays as it is. A stronger judge was not measured."
        )
    if worse:
        yield f"Gate and judge are worse than the gate alone, beyond noise: {'; '.join(worse)}."
    else:
        yield (
            "Gate and judge are nowhere worse than the gate alone beyond noise: by no share, in AUROC, Brier score or right decisions, "
            "with labels of the domain, of the other domains, or none."
        )


def _lines(study: Study) -> Iterator[str]:
    yield f"# {study.title}\n"
    yield f"    {READ}\n    {COMMAND}\n"
    yield (
        f"The judge is {study.settings['model']}; the gate is the standard one that ships. What the judge said, and what the gate "
        f"said, is in `research/judge/README.md`; the judge's prompts again: `{PROMPTS}`. Everyday text: our own files that are "
        "kept for judging, drawn lists; COVID-QA: what BM25 finds. Neither gate nor reader has seen these. Wikipedia: what BM25 finds "
        "for test questions of HotpotQA, 2WikiMultiHopQA and MuSiQue, sets that the gate knows by other questions. The judge may have "
        f"seen any of the public sets when it was trained.{'' if study.settings['controls'] else BEFORE_CONTROLS} In brackets: 95 % bootstrap interval over questions. "
        "How to use a judge: [let a model decide the hard ones](../howto/judge.md).\n"
    )
    yield from (f"- {line}" for line in (*_verdict(study), *study.summary))
    yield ""
    yield from section_lines(study, {})
