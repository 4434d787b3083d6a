"""The gate's pages: results and model cards, from the studies that `suffice_research.training.gate` stored.

A study is one JSON document with every table and figure. Pages hold its tables; figures are drawn beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.generators.measuring import run_command, store_study
from docs.generators.paths import DOCS, RESULTS, RUNS
from suffice.evaluation.figures import draw_figure
from suffice.evaluation.study import Section, Study
from suffice.evaluation.tables import Table
from suffice_research.training.gate import JUDGED, QUESTIONS
from suffice_research.training.transfer import DRAWS

PRESETS = {
    "fast": "No network and nothing neural runs at check time; it reads words, names, dates, links between hits, and scores as "
    "shares of the best one.",
    "quality": "It reads what the fast one reads, and looks at question and hits through the encoder bge-small-en-v1.5, too, "
    "which takes most of the time of a check.",
}


def studies() -> dict[str, Study]:
    """The stored studies, by preset."""
    return {preset: Study.load(stored(preset)) for preset in PRESETS if stored(preset).is_file()}


def stored(preset: str) -> Path:
    return RUNS / f"gate-{preset}.json"


def measure(data: Path, work: Path) -> None:
    """Measure both presets, and store the studies. The gates that ship are left as they are."""
    for preset in PRESETS:
        made = work / f"{preset}.json"
        run_command(
            command(preset), data, "--study-only", "--vectors", str(work), "--study", str(made)
        )
        store_study(made, stored(preset))


def command(preset: str, study: Study | None = None) -> str:
    """What makes the gate and its study; for a study that was made with other numbers of questions, those."""
    usual = {"questions": QUESTIONS, "judged": JUDGED, "draws": DRAWS}
    odd = {
        name: study.settings[name]
        for name, value in usual.items()
        if study and study.settings.get(name, value) != value
    }
    chosen = ("" if preset == "fast" else f" --preset {preset}") + "".join(
        f" --{name} {value}" for name, value in odd.items()
    )
    return f"python -m suffice_research.training.gate --data $DATA{chosen} --study docs/results/runs/gate-{preset}.json"


def pages() -> dict[Path, str]:
    found = studies()
    cards = {
        DOCS / "models" / f"gate-{preset}.md": card(preset, study)
        for preset, study in found.items()
    }
    return {RESULTS / "gate.md": results(found), **cards} if found else {}


def pictures() -> dict[Path, bytes]:
    """The figures of every study, drawn."""
    return {
        RESULTS / _picture(study, at): draw_figure(figure)
        for study in studies().values()
        for at, figure in enumerate(study.figures)
    }


def _picture(study: Study, at: int) -> str:
    return f"{study.name}-{at + 1}.svg"


# ------------------------------------------------------------------------------------------------------ the results


def results(found: dict[str, Study]) -> str:
    """docs/results/gate.md"""
    lines = [
        "# The gate: what was measured\n",
        "Deployable features only: no gold hops, types or labels. `$DATA` is the folder of real data (see CONTRIBUTING). The "
        "gate that ships has seen questions of all of these data sets; the figures are those of its recipe on questions that "
        "were left out.\n",
    ]
    for preset, study in found.items():
        lines += [f"## Preset `{preset}`\n", f"    {command(preset, study)}\n"]
        for section in study.sections:
            lines += _section(section, study)
    return "\n".join(lines)


def _section(section: Section, study: Study) -> Iterator[str]:
    yield f"### {section.title}\n"
    yield f"{section.says}\n"
    for one in section.shown:
        if isinstance(one, Table):
            yield f"**{one.title}**\n"
            yield one.to_markdown()
        else:
            yield f"![{one.title}]({_picture(study, study.figures.index(one))})\n"


# ------------------------------------------------------------------------------------------------------ the cards


def card(preset: str, study: Study) -> str:
    """docs/models/gate-GRADE.md"""
    sources = study.settings["sources"]
    columns = ("data set", "licence", "questions", "lists", "complete", "retrievers")
    rows = tuple(
        (*(one[name] for name in columns[:5]), ", ".join(one["retrievers"]))
        for one in ({**source, "data set": source["name"]} for source in sources)
    )
    files = "\n".join(f"- `{name}` {digest}" for name, digest in sorted(study.data.items()))
    figures = "\n".join(
        f"{study.table(name).to_markdown()}" for name in ("Fitted", "Left out", "AUROC by labels")
    )
    return f"""# Model card: the gate that ships, preset `{preset}`

Says how probable it is that the hits hold every document a question needs. {PRESETS[preset]}

    {command(preset, study)}

makes it from data and seed {study.seed}, byte for byte.

## Data

{Table("Data", columns, rows).to_markdown()}
Each list holds the first {", ".join(map(str, study.settings["ks"]))} hits of a retriever; one in \
{study.settings["without scores"]} comes without its scores and one in {study.settings["without titles"]} without titles (they \
then begin the text), as some retrievers hand them over. Files, with their sha256:

{files}

## Figures

Fitted on one data set by folds, on a data set that was left out, and there with a few labels. [All of them, with the
promise and the baselines](../results/gate.md).

{figures}
## Limits

- English; Wikipedia passages, news, article titles. Other languages, code and tables were not tried.
- How many documents a question needs is hard to guess for an unseen kind of question: label 100 and [adapt](../howto/adapt.md).
- A promise holds for questions like those it was calibrated on; it does not survive a move to another corpus.
- It judges whether evidence is there, not whether it is true, and not whether a generator will use it well.
- In our copy of `multihop_rag` many articles are known in part only, so that retrieval there is easier than on the full corpus.
"""
