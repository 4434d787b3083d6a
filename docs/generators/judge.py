"""The page of the judge: what a language model behind the gate gains, by the share that is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.generators.paths import RESULTS, RUNS
from docs.generators.results import section_lines
from suffice.evaluation.significance import Interval
from suffice.evaluation.study import Study

STORED = RUNS / "judge.json"
READ = "python -m suffice_research.judge_study read --data $DATA"
COMMAND = "python -m suffice_research.judge_study measure --study judge.json"
PROMPTS = "python -m suffice_research.judge_study prompts --data $DATA --out prompts.jsonl"


def pages() -> dict[Path, str]:
    if not STORED.is_file():
        return {}
    return {RESULTS / "judge.md": "\n".join(_lines(Study.load(STORED)))}


def _verdict(study: Study) -> Iterator[str]:
    """Whether this judge gains anything, and what it costs to trust it where it was not measured."""
    gains, worse = [], []
    for table in study.tables:
        if not table.title.startswith("By share"):
            continue
        at, right = table.columns.index("gained"), table.columns.index("right")
        alone = {row[0]: row[right] for row in table.rows if row[3] == 0}
        gains += [row[at] for row in table.rows]
        for row in table.rows:
            before, after = alone[row[0]], row[right]
            if isinstance(before, float) and isinstance(after, float) and after < before:
                worse.append((before - after, str(row[0]), table.title.partition(", ")[2]))
    if not gains:
        return
    lows = [one.low for one in gains if isinstance(one, Interval) and one.low is not None]
    if max(lows, default=0.0) <= 0:
        yield (
            "This judge gains nothing: no interval of a gain lies above 0. It says yes to nearly every list, and so has little "
            "weight or none; where it has none, no question is sent and the gate stays as it is. A stronger judge was not measured."
        )
    if worse:
        most, name, by = max(worse)
        yield (
            f"A weight from elsewhere can harm: at worst {100 * most:.1f} points fewer of the decisions are right ({name}, {by}). Learn it "
            "from labels of your own questions."
        )


def _lines(study: Study) -> Iterator[str]:
    yield f"# {study.title}\n"
    yield f"    {READ}\n    {COMMAND}\n"
    yield (
        f"The judge is {study.settings['model']}; the gate is the standard one that ships. What the judge said, and what the gate "
        f"said, is in `research/judge/README.md`; the judge's prompts again: `{PROMPTS}`. Everyday text: our own files that are "
        "kept for judging, drawn lists; COVID-QA: what BM25 finds. Neither gate nor reader has seen these. Wikipedia: what BM25 finds "
        "for test questions of HotpotQA, 2WikiMultiHopQA and MuSiQue, sets that the gate knows by other questions. The judge may have "
        "seen any of the public sets when it was trained. In brackets: 95 % bootstrap interval over questions. "
        "How to use a judge: [let a model decide the hard ones](../howto/judge.md).\n"
    )
    yield from (f"- {line}" for line in (*_verdict(study), *study.summary))
    yield ""
    yield from section_lines(study, {})
