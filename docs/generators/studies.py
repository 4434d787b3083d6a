"""The pages of the papers that were done again: from the studies that `suffice reproduce` wrote.

`make results` runs them and stores the documents without their timings; `make docs` renders page and pictures from these.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.generators.measuring import run_command, store_study
from docs.generators.paths import RESULTS, RUNS
from suffice.evaluation.figures import Figure, draw_figure
from suffice.evaluation.study import Study
from suffice.evaluation.tables import Table
from suffice_research import CACHING_STUDIES, SLOW_STUDIES, STUDY_NAMES

DRAWN = (
    "Figure",
    "Risk",
)  # the paper's own figures, and what it means to act on them; the report has all


def command(name: str) -> str:
    return f"suffice reproduce {name} --data $DATA{' --quality' if name in SLOW_STUDIES else ''} --out {name}"


def stored(name: str) -> Path:
    return RUNS / f"study-{name}.json"


def measure(name: str, data: Path, work: Path) -> None:
    """Do a paper again, and store the study."""
    kept = ["--cache", str(work)] if name in CACHING_STUDIES else []
    run_command(command(name), data, "--out", str(work), *kept)
    store_study(work / "study.json", stored(name))


def studies() -> dict[str, Study]:
    """The stored studies, by paper."""
    return {name: Study.load(stored(name)) for name in STUDY_NAMES if stored(name).is_file()}


def pages() -> dict[Path, str]:
    return {RESULTS / f"{name}.md": page(study) for name, study in studies().items()}


def pictures() -> dict[Path, bytes]:
    """The figures that stand in the pages, drawn."""
    return {
        RESULTS / picture: draw_figure(figure)
        for study in studies().values()
        for picture, figure in _pictures(study).items()
    }


def _pictures(study: Study) -> dict[str, Figure]:
    chosen = [figure for figure in study.figures if figure.title.startswith(DRAWN)]
    return {f"{study.name}-{at}.svg": figure for at, figure in enumerate(chosen, start=1)}


def page(study: Study) -> str:
    """docs/results/NAME.md"""
    return "\n".join(_lines(study))


def _lines(study: Study) -> Iterator[str]:
    named = {id(figure): picture for picture, figure in _pictures(study).items()}
    yield f"# {study.title}\n"
    yield f"    {command(study.name)}\n"
    yield (
        f"Seed {study.seed}. In brackets: 95 % bootstrap interval over questions. In parentheses: the paper's figure, and how "
        "far ours is from it. `$DATA` is the folder of real data (see CONTRIBUTING).\n"
    )
    yield from (f"- {line}" for line in study.summary)
    yield ""
    for section in study.sections:
        yield f"## {section.title}\n"
        if section.says:
            yield f"{section.says}\n"
        for one in section.shown:
            if isinstance(one, Table):
                yield f"**{one.title}**\n"
                yield one.to_markdown()
            elif id(one) in named:
                yield f"![{one.title}]({named[id(one)]})\n"
    if study.notes:
        yield "## Where it differs from the paper in kind, and why\n"
        yield from (f"- {line}" for line in study.notes)
        yield ""
    files = [f"- `{name}` sha256 {digest}" for name, digest in sorted(study.data.items())]
    if files:
        yield "## Files\n"
        yield from files
        yield ""
