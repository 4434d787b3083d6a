"""The page of expanding: completeness against documents held, from the studies that `suffice evaluate expansion` stored.

Measured again in an hour on two slow cores; the gates that leave a data set out are made first, by
`suffice_research.training.gate --only`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.generators.measuring import run_command, store_study
from docs.generators.paths import RESULTS, RUNS
from docs.generators.retrieval import WIKI
from suffice.evaluation.figures import draw_figure
from suffice.evaluation.study import Study
from suffice_research.training.sources import SOURCES

SETS = {"2wikimultihopqa": "2WikiMultiHopQA", "hotpotqa": "HotpotQA", "musique": "MuSiQue"}
GATES = {
    "fitted": "Each question judged by a gate that was fitted on the other half of the questions.",
    "without": "Each question judged by the shipped recipe, fitted on the five other data sets: it saw nothing of this one.",
}
OPTIONS = {
    "fitted": "--folds 2",
    "without": "--gate gate-without-{0} --limit 300 --k 3,5,10 --answer-at 0.3,0.6,0.9",
}
INTRODUCTION = (
    "A fixed k reads as many documents for an easy question as for a hard one. `lib.complete` starts with one document and "
    "reads on until the gate says that the evidence is complete, at most k of them. The question is how many documents a fixed "
    "k has to hold to be as complete: the column *fewer*. The bridge retriever runs with the weights that were set by hand, "
    "which saw no question. The few settings of the search itself (in `suffice.answering.expand`) were chosen while looking at "
    "less than a third of these questions. All of it again: `make results PART=expansion`."
)


def command(gate: str, name: str) -> str:
    return f"suffice evaluate expansion {WIKI.format(name)} {OPTIONS[gate].format(name)}"


def stored(gate: str, name: str) -> Path:
    return RUNS / (
        f"expansion-{name}.json" if gate == "fitted" else f"expansion-without-{name}.json"
    )


def studies() -> dict[tuple[str, str], Study]:
    """The stored studies, by gate and data set."""
    every = {(gate, name): stored(gate, name) for gate in GATES for name in SETS}
    return {key: Study.load(path) for key, path in every.items() if path.is_file()}


def pages() -> dict[Path, str]:
    found = studies()
    return {RESULTS / "expansion.md": "\n".join(_lines(found))} if found else {}


def pictures() -> dict[Path, bytes]:
    return {
        RESULTS / _picture(*key): draw_figure(study.figures[0]) for key, study in studies().items()
    }


def _picture(gate: str, name: str) -> str:
    return f"expansion-{gate}-{name}.svg"


def _lines(found: dict[tuple[str, str], Study]) -> Iterator[str]:
    yield "# Expanding: the gate as stop signal\n"
    yield f"{INTRODUCTION}\n"
    for gate, says in GATES.items():
        some = {name: study for (one, name), study in found.items() if one == gate}
        if some:
            yield f"## {'A gate of the same corpus' if gate == 'fitted' else 'A gate of other corpora'}\n"
            yield f"{says}\n"
        for name, study in some.items():
            yield f"### {SETS[name]}\n"
            yield f"    {command(gate, name)}\n"
            yield f"n = {study.settings['questions']:,} questions, {study.settings['documents']:,} documents.\n"
            yield from (f"- {line}" for line in study.summary)
            yield f"\n![{study.figures[0].title}]({_picture(gate, name)})\n"
            yield study.tables[0].to_markdown()


def measure(data: Path, work: Path) -> None:
    """Run every study, and store it."""
    for name in SETS:
        without = work / f"gate-without-{name}"
        if not without.is_dir():
            others = ",".join(one.name for one in SOURCES if one.name != name)
            run_command(
                f"python -m suffice_research.training.gate --data $DATA --only {others}",
                data,
                "--out",
                str(without),
            )
        for gate in GATES:
            run_command(command(gate, name), data, "--json", "--out", "study.json", cwd=work)
            store_study(work / "study.json", stored(gate, name))
