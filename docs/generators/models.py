"""Pages of the shipped models, from stored studies: results and cards of the gate and of the bridge
retriever.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.generators.markdown import at_commit, table_markdown
from docs.generators.paths import DOCS, RESULTS, RUNS
from suffice.evaluation.report import Cell, Section, Table, draw_plot
from suffice.evaluation.significance import Interval
from suffice.gate.gate import STANDARD
from suffice.retrieval.bridge import SHIPPED, SHIPPED_UNTITLED
from suffice.storage import MANIFEST
from suffice_research import hipporag
from suffice_research.bridge_quality import SHIPPED_MODEL
from suffice_research.next_hop import SHIPPED_MODEL as NEXT_HOP
from suffice_research.published_cells import WithPublished
from suffice_research.study import Study
from suffice_research.training import fast_study, gate_baselines
from suffice_research.training.bridge_untitled import ABOVE_HYBRID
from suffice_research.training.gate import JUDGED, QUESTIONS
from suffice_research.training.scorer_study import FURTHER_QUESTIONS
from suffice_research.training.sources import SOURCES

GATE_PRESETS = {
    "standard": "It computes the features of the fast gate, and a small transformer, the reader, reads the question with each hit "
    "and then all hits together, which takes most of the time of a check. It uses no network.",
    "fast": "It uses words, names, dates, links between hits, and scores relative to the best one. It uses no network connection "
    "and no neural network.",
}


SHOWN = {
    "standard": "The shipped gate, on new questions of its training data sets and on domains it was not trained on.",
    "fast": "The shipped gate on domains it was not trained on; gates cross-validated on one data set; and gates with the data set "
    "left out.",
}
LEARNED = {
    "standard": "English. Short plain questions over plain sentences can fail (decision 9). Other languages were not tested.",
    "fast": "English; Wikipedia passages, news, article titles. Other languages, code and tables were not tested.",
}


# Studies beside those of the presets: the module, and what its options are unless told.
STUDY_MODULES: Mapping[str, tuple[str, Mapping[str, int | str | None]]] = {
    "gate-baselines": (
        "gate_baselines",
        {
            "judged": gate_baselines.JUDGED,
            "learned": gate_baselines.LEARNED,
            "folded": gate_baselines.FOLDED,
            "titles": gate_baselines.JUDGED,
        },
    ),
    "familiarity": ("familiarity", {"judged": JUDGED, "questions": None, "leave-out": None}),
    "adaptation": ("adaptation_study", {}),
}


def gate_studies() -> dict[str, Study]:
    """The stored studies, by preset. What labels bring stands in a study of its own."""
    return {
        preset: Study.load(gate_path(preset))
        for preset in GATE_PRESETS
        if gate_path(preset).is_file()
    }


def stored_study(name: str) -> Study | None:
    """A study beside those of the presets, like those of `STUDY_MODULES`."""
    path = RUNS / f"{name}.json"
    return Study.load(path) if path.is_file() else None


def gate_path(preset: str) -> Path:
    return RUNS / f"gate-{preset}.json"


def _options(usual: Mapping[str, int | str | None], study: Study | None) -> str:
    """Of a study that was made with other numbers than usual, those."""
    settings = {} if study is None else study.settings
    odd = {name: settings.get(name, value) for name, value in usual.items()}
    return "".join(f" --{name} {value}" for name, value in odd.items() if value != usual[name])


def study_command(name: str, study: Study) -> str:
    module, usual = STUDY_MODULES[name]
    return (
        f"python -m suffice_research.training.{module} --data $DATA --readings FILE{_options(usual, study)} "
        f"--out research/results/runs/{name}.json"
    )


def gate_command(preset: str, study: Study | None = None) -> str:
    """What measures the gate; that of `standard` makes it, too."""
    module, judged = ("gate", JUDGED) if preset == STANDARD else ("fast_study", fast_study.JUDGED)
    chosen = _options({"questions": QUESTIONS[preset], "judged": judged}, study)
    if preset == STANDARD:
        chosen += " --shipped"  # gates of one data set take an hour more
    return f"python -m suffice_research.training.{module} --data $DATA{chosen} --study research/results/runs/gate-{preset}.json"


FAST_COMMAND = "python -m suffice_research.training.gate --data $DATA --preset fast"


def gate_pages() -> dict[Path, str]:
    found = gate_studies()
    cards = {
        DOCS / "models" / f"gate-{preset}.md": gate_card(preset, study)
        for preset, study in found.items()
    }
    return {RESULTS / "gate.md": gate_results(found), **cards} if found else {}


def gate_pictures() -> dict[Path, bytes]:
    """The figures of every study, drawn."""
    labels = stored_study("adaptation")
    return {
        RESULTS / _gate_picture(study, at): draw_plot(figure)
        for study in (*gate_studies().values(), *([labels] if labels else []))
        for at, figure in enumerate(study.figures)
    }


def _gate_picture(study: Study, at: int) -> str:
    return f"{study.name}-{at + 1}.svg"


# -------------------------------------------------------------------------------- the gate: results


def gate_results(found: dict[str, Study]) -> str:
    """research/results/gate.md"""
    lines = [
        "# The gate: results\n",
        "All features are deployable: no gold hops, types or labels. `$DATA` is the folder of public data (see CONTRIBUTING). "
        "Every figure is on held-out questions. For `standard`, a fast gate trained on fewer questions replaces the shipped "
        "one ([decision 9](../../docs/decisions/0009-reader.md)).\n",
    ]
    for name in STUDY_MODULES:
        if study := stored_study(name):
            first, *others = study.sections  # the first is what the heading says
            lines += [f"## {first.title}\n", f"    {study_command(name, study)}\n"]
            lines += [
                f"Measured {at_commit(study.commit)}. Summary:\n",
                *(f"- {line}" for line in study.summary),
                "",
            ]
            lines += list(_gate_section(first, study))[1:]
            for section in others:
                lines += _gate_section(section, study)
    for preset, study in found.items():
        lines += [f"## Preset `{preset}`\n", f"    {gate_command(preset, study)}\n"]
        lines += [f"Measured {at_commit(study.commit)}.\n"]
        for section in study.sections:
            lines += _gate_section(section, study)
    return "\n".join(lines)


def _gate_section(section: Section, study: Study) -> Iterator[str]:
    yield f"### {section.title}\n"
    yield f"{section.says}\n"
    for one in section.shown:
        if isinstance(one, Table):
            yield f"**{one.title}**\n"
            yield table_markdown(one)
        else:
            yield f"![{one.title}]({_gate_picture(study, study.figures.index(one))})\n"


# ---------------------------------------------------------------------------------- the gate: cards


def gate_card(preset: str, study: Study) -> str:
    """docs/models/gate-GRADE.md"""
    sources = study.settings["sources"]
    columns = ("data set", "licence", "questions", "lists", "complete")
    rows = tuple((source["name"], *(source[name] for name in columns[1:])) for source in sources)
    files = "\n".join(f"- `{name}` {digest}" for name, digest in sorted(study.data.items()))
    standard = preset == STANDARD
    tables = {
        one.title: one
        for section in study.sections
        for one in section.shown
        if isinstance(one, Table)
    }
    names = ("Shipped", "Fitted", "Left out")
    figures = "\n".join(table_markdown(tables[name]) for name in names if name in tables)
    drawn = ", or one to ten hits drawn such that half of the lists are complete" * standard
    return f"""# Model card: the shipped gate, preset `{preset}`

Estimates the probability that the hits contain every document a question needs. {GATE_PRESETS[preset]}

    {gate_command(preset, study) if standard else FAST_COMMAND}

builds it from the data and seed {study.seed}, byte for byte.

## Data

{table_markdown(Table("Data", columns, rows))}
A list contains the first {", ".join(map(str, study.settings["ks"]))} hits of a retriever{drawn}. One list in {study.settings["without scores"]} has no scores and one in {study.settings["without titles"]} has no titles (the title then \
starts the text), as with some retrievers. Files, with their sha256:

{files}

## Figures

{SHOWN[preset]} [All figures and baselines](../results.md).

{figures}
## Limits

- {LEARNED[preset]}
- The number of documents that a new kind of question needs is hard to estimate: label 100 questions and [adapt](../howto/adapt.md#adapt-the-gate-to-your-corpus).
- A promise holds for questions like those it was calibrated on, not on another corpus.
- The gate estimates whether evidence is there, not whether it is true or whether a generator will use it well.
- Our copy of `multihop_rag` contains only parts of many articles, so retrieval is easier than on the full corpus.
"""


# ----------------------------------------------------------------------------- the bridge retriever

FAST, QUALITY, HELD = (
    RUNS / "bridge-fast.json",
    RUNS / "bridge-quality.json",
    RUNS / "bridge-quality-held.json",
)
UNTITLED = RUNS / "bridge-untitled.json"
UNTITLED_LOSS = 0.08  # of complete@5, at most, when all titles are removed
SPEED = RESULTS / "performance-bridge.md"
SEED, METRICS = 42, ("recall", "complete")
BRIDGE_SETS = {"2wikimultihopqa": "2Wiki", "hotpotqa": "HotpotQA", "musique": "MuSiQue"}
# recall@5 and complete@5 that `quality` is to reach, each by folds and left out; those of `fast` stand in its study.
BRIDGE_FLOORS: Mapping[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "2wikimultihopqa": ((0.996, 0.98), (0.988, 0.95)),
    "hotpotqa": ((0.975, 0.965), (0.95, 0.93)),
    "musique": ((0.80, 0.74), (0.57, 0.47)),
}
PROTOCOLS = {"": "five folds", ", left out": "left out"}
BRIDGE_COMMANDS = {
    "fast": "python -m suffice_research.training.bridge --data $DATA --study research/results/runs/bridge-fast.json",
    "untitled": "python -m suffice_research.training.bridge_untitled --data $DATA --study research/results/runs/bridge-untitled.json",
    "quality": "python -m docs.generators.measure bridge --data $DATA    # counts; choosing again needs a GPU: python -m suffice_research.training.scorer_study",
}

BRIDGE_INTRODUCTION = """`bridge` chooses a set of documents one by one, along the names that link them. It calls no language model, neither for the
index nor for a question. `fast` uses boosted trees over static embeddings, words, links and new queries from chosen documents
([decision 13](../../docs/decisions/0013-bridge.md)). `quality` adds vectors of bge-small, an encoder that looks for the next passage from
what is chosen ([decision 13](../../docs/decisions/0013-bridge.md)), and a small cross-encoder that reads the best candidates.

*Five folds*: fitted on the other four folds of all data sets together, including other questions of the same data set. *Left
out*: fitted on the other data sets; compare only these figures with systems that were not fitted to the data set. Brackets show
95 % bootstrap intervals over questions. Parentheses show the target and the difference from it; for `fast`, left out, the target is
0.05 below the result by folds. `$DATA` is the folder of public data (see CONTRIBUTING).
"""
CHANGES_AFTER_RESULTS = """## Changes made after seeing results

After the first fit of `fast` we weighted states equally, doubled the negatives of each, and fixed a rule for aliases after
reading failures. We also changed the training questions from 300 to 350 of MultiHop-RAG and from 300 to 200 of the controlled
collection. The folds cover the same questions, so the comparison with hybrid-metagraph changed with them;
[decision 13](../../docs/decisions/0013-bridge.md) has the earlier figures. The queries from chosen documents, and three of seven
candidate features, were selected on MuSiQue questions that the folds also cover: [decision 13](../../docs/decisions/0013-bridge.md).
Training along the paths of fitted rankers was selected from eight ideas on questions of MuSiQue and MultiHop-RAG that this page also
covers, left out included (same decision).
The network of `quality` was chosen in an earlier study, by looking at one fold. This one changed no setting after a result. Its
weights were int8 and its activations half precision, on a GPU; in what ships, both are int8
([decision 13](../../docs/decisions/0013-bridge.md)). The next-hop encoder ran in half precision there, and bge-small's int8 weights with
adapters ship.
"""
PUBLISHED = """Published figures are averages over all 1,000 questions of a sample; ours cover the part of it that we have. We took them from
notes that came with the data and did not check them in the papers. The rows in between are from [retrieval](retrieval.md), on the
same questions and passages as ours; none of these systems was fitted.
"""


WITHOUT_TITLES = """If most candidates of a question have no title, a second ranker decides ([decision 13](../../docs/decisions/0013-bridge.md)). It was
trained on none of these questions. The first table has the three data sets with all titles removed. *With titles* is the figure
by folds at the top of this page, on more questions. The target, in parentheses, is at most {loss:.2f} below it.
"""
EVERYDAY = """Our everyday texts, pooled into one corpus without titles. The target is {above:.2f} above hybrid. *Kept files* were not used for
training.
"""


def bridge_studies() -> dict[str, Study]:
    """The stored studies, by preset."""
    return {
        name: Study.load(path)
        for name, path in (("fast", FAST), ("quality", QUALITY))
        if path.is_file()
    }


def bridge_pages() -> dict[Path, str]:
    found = bridge_studies()
    return {RESULTS / "bridge.md": "\n".join(_bridge_lines(found))} if found else {}


def _bridge_lines(found: Mapping[str, Study]) -> Iterator[str]:
    yield "# The bridge retriever: results\n"
    yield from (f"    {BRIDGE_COMMANDS[preset]}" for preset in found)
    commits = ", ".join(f"`{name}` {at_commit(study.commit)}" for name, study in found.items())
    yield f"\nMeasured {commits}.\n\n{BRIDGE_INTRODUCTION}"
    yield "## Sets of five\n"
    yield table_markdown(comparison_table(found))
    yield PUBLISHED
    yield from _shortfalls(found)
    if "fast" in found:
        yield "## Where links say little\n"
        yield "News with metadata, four documents. The target is hybrid-metagraph on the same questions.\n"
        yield "`quality` was not measured there.\n"
        yield table_markdown(found["fast"].table("News"))
        if UNTITLED.is_file():
            yield from _without_titles(found["fast"], Study.load(UNTITLED))
        yield "## What limits `fast`\n"
        yield "Incomplete questions by folds, counted by the first cause that applies.\n"
        yield table_markdown(found["fast"].table("Causes"))
        yield "`research/notes/bridge.md` shows examples of failures, and what limits `quality`.\n"
    yield from _index_cost()
    yield CHANGES_AFTER_RESULTS


def _without_titles(titled: Study, untitled: Study) -> Iterator[str]:
    yield "## Without titles\n"
    yield f"    {BRIDGE_COMMANDS['untitled']}\n"
    yield f"Measured {at_commit(untitled.commit)}.\n"
    yield WITHOUT_TITLES.format(loss=UNTITLED_LOSS)
    table = untitled.table("No titles")
    column = table.columns.index
    rows: list[tuple[Cell, ...]] = []
    for row in table.rows:
        before = goal = None
        if row[0] in BRIDGE_SETS:
            before = _bridge_figure(titled, "fast", str(row[0]), "complete@5").measured
            goal = (
                before.value - UNTITLED_LOSS
                if isinstance(before, Interval) and before.value
                else None
            )
        reached = row[column("complete@5")]
        ours = WithPublished(reached, goal) if isinstance(reached, Interval) else None
        rows.append((row[0], row[1], before, ours, row[column("complete@5, hybrid")]))
    columns = ("data set", "n", "with titles", "without", "hybrid, without")
    plain, everyday = Table("complete@5", columns, tuple(rows)), untitled.table("Everyday")
    yield table_markdown(plain)
    yield EVERYDAY.format(above=ABOVE_HYBRID)
    yield table_markdown(everyday)
    yield "Not reached, complete@5:\n"
    yield from _short_cells("titles removed", plain)
    yield from _short_cells("everyday", everyday)
    yield ""


def comparison_table(found: Mapping[str, Study]) -> Table:
    """Recall@5 and complete@5 of everybody on the three sets."""
    rows: list[tuple[Cell, ...]] = []
    for system in hipporag.PAPERS:
        figures = [hipporag.PAPERS[system].get(name) for name in BRIDGE_SETS]
        rows.append((system, *(cell for figure in figures for cell in (figure, None))))
    runs = {
        name: json.loads((RUNS / f"{name}.json").read_text(encoding="utf-8"))["retrievers"]
        for name in BRIDGE_SETS
    }
    for retriever in runs["musique"]:
        rows.append(
            (
                retriever,
                *(
                    _measured_interval(runs[name][retriever], metric)
                    for name in BRIDGE_SETS
                    for metric in METRICS
                ),
            )
        )
    for preset, study in found.items():
        for kind, says in PROTOCOLS.items():
            cells = [
                _bridge_figure(study, preset, name, f"{metric}@5{kind}")
                for name in BRIDGE_SETS
                for metric in METRICS
            ]
            rows.append((f"bridge, {preset}, {says}", *cells))
    columns = tuple(f"{short} {metric}@5" for short in BRIDGE_SETS.values() for metric in METRICS)
    return Table("Sets of five", ("system", *columns), tuple(rows))


def _bridge_figure(study: Study, preset: str, name: str, column: str) -> WithPublished:
    table = study.table(f"Bridge, {preset}")
    (row,) = (one for one in table.rows if one[0] == name)
    cell = row[table.columns.index(column)]
    if not isinstance(cell, WithPublished):
        raise TypeError(f"{column} of {name} has no figure to reach beside it")
    return cell


def _measured_interval(figures: Mapping[str, Mapping[str, Any]], metric: str) -> Interval:
    one = figures[f"{metric}@5"]
    return Interval(one["value"], one["low"], one["high"])


def _shortfalls(found: Mapping[str, Study]) -> Iterator[str]:
    """What is not reached, said in words: a minus sign is easily passed over."""
    yield "Not reached:\n"
    for preset, study in found.items():
        for title in ("Bridge", "News") if preset == "fast" else ("Bridge",):
            yield from _short_cells(f"`{preset}`", study.table(title))
    yield ""


def _short_cells(label: str, table: Table) -> Iterator[str]:
    for row in table.rows:
        for column, cell in zip(table.columns, row):
            behind = cell.difference.value if isinstance(cell, WithPublished) else None
            if behind is not None and behind < 0:
                short = f"{-100 * behind:.1f}" if behind < -0.0005 else "less than 0.1"
                yield f"- {label}, {row[0]}: {column} is {short} points short"


def _index_cost() -> Iterator[str]:
    yield "## What the index costs\n"
    told = SPEED.read_text(encoding="utf-8").splitlines() if SPEED.is_file() else []
    measured = next((line for line in told if line.startswith("Name links of 1,000 passages")), "")
    if measured:
        yield f"{measured} ([speed](performance-bridge.md))\n"
    else:
        yield "No call of a language model. Seconds: `python -m benchmarks bridge --write`, which has not been run yet.\n"
    yield "We found no published figures for the cost of graphs built by a language model, in seconds or tokens.\n"


# ---------------------------------------------------------------------------------- its model cards

LICENCES = {one.name: one.licence for one in SOURCES}
SCORER = SHIPPED_MODEL


def bridge_card_pages() -> dict[Path, str]:
    found = bridge_studies()
    made = {"fast": ("bridge-fast", ranker_card), "quality": ("bridge-scorer", scorer_card)}
    return {
        DOCS / "models" / f"{name}.md": card(found[preset])
        for preset, (name, card) in made.items()
        if preset in found
    }


def ranker_card(study: Study) -> str:
    """docs/models/bridge-fast.md"""
    manifest = _manifest(SHIPPED)
    learned = manifest["settings"]["questions"]
    return f"""# Model card: the ranker of the bridge retriever, preset `fast`

Estimates the probability that a candidate is needed next, from words, static embeddings, names and links of the question, the
documents chosen so far and the candidate. Boosted trees as ONNX in `models/bridge-fast` ({_size(SHIPPED)}), one thread, no network.

    {BRIDGE_COMMANDS["fast"]}

builds it from the data and seed {manifest["seed"]}, byte for byte. To fit your own, see [expand](../howto/ask.md#search-until-the-evidence-is-complete).

## Data

{_data(learned)}
{_files(study)}
## Figures

By folds over all questions, with the data set left out, and with hand-set weights. [All figures, compared with other
systems](../results.md).

{table_markdown(study.table("Bridge"))}
{table_markdown(study.table("News"))}
## Candidates without titles

`models/bridge-untitled` ({_size(SHIPPED_UNTITLED)}) decides if most candidates of a question have no title. It was trained on
{_counted(_manifest(SHIPPED_UNTITLED)["settings"]["questions"])}. The command is

    {BRIDGE_COMMANDS["untitled"]}

[Its figures](../results.md).

## Limits

- English; Wikipedia passages and news. Names are found by capital letters: for scripts without them, only words and vectors help.
- Titles that are common nouns are followed only where they are written as names.
- If a document has no title, the name, quoted title or defined term that its text opens with takes its place. File names and running
  numbers count as titles.
- On a corpus where metadata is more informative than names, it is hardly better than hybrid-metagraph unless fitted there: fit your
  own.
- It predicts what is worth reading next, not whether a text is true. Authors of documents can plant names.
"""


def _counted(questions: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} questions of {name}" for name, count in questions.items())


def scorer_card(study: Study) -> str:
    """docs/models/bridge-scorer.md"""
    manifest = _manifest(SCORER)
    learned = {str(row[0]): row[1] for row in study.table("Bridge").rows}
    return f"""# Model card: the set scorer of the bridge retriever, preset `quality`

Reads a question, one sentence of each chosen document, and a candidate, and estimates the probability that the candidate is
needed next. In `research/suffice_research/models/bridge-scorer` ({_size(SCORER)}): `model.onnx` (BERT of 6 layers, 384 wide, int8), `tokenizer.json`,
`reader.onnx` (boosted trees that weigh what was read with the bridge's features). Beside it, in `models/next-hop`
({_size(NEXT_HOP)}), low-rank adapters for bge-small, which find passages that are needed next from the question and what is chosen. No
network. Used by the retriever `bridge-quality`.

    python -m suffice_research.training.scorer_prepare --data $DATA --vectors VECTORS --gpu
    python -m suffice_research.training.scorer_study states --data $DATA --vectors VECTORS --work WORK    # WORK/base: the base and its tokenizer
    python -m suffice_research.training.scorer_study look --data $DATA --work WORK
    python -m suffice_research.training.scorer_study train --work WORK    # beside it: scorer_study read --data $DATA --vectors VECTORS --work WORK
    python -m suffice_research.training.scorer_study record --data $DATA --work WORK --out DIR
    python -m suffice_research.training.scorer_export DIR/weights.npz --base WORK/base/model.onnx --tokenizer WORK/base/tokenizer.json --reader DIR/reader.onnx --adapters DIR/adapters.npz

trains similar ones on a GPU, though not the same bytes ([decision 13](../decisions/0013-bridge.md) explains why). Base:
{manifest["settings"]["base"]} (Apache-2.0), every second layer, first distilled from the twelve layers on
sentences and passages of the same corpora, without labels, then taught by all twelve layers, trained on the same questions.

## Data

{_data(learned)}
Before these, it learned from {FURTHER_QUESTIONS:,} further questions each of HotpotQA and 2WikiMultihopQA, with their ten paragraphs. The
adapters learned from these further questions alone. Their base is bge-small-en-v1.5 (MIT).

{_files(study)}
## Figures

Five documents, with teacher, scorer and reader fitted on the other folds, and with the whole data set left out. In these runs
activations had half precision, on a GPU, while int8 ships. [Compared with other systems](../results.md);
[decision 13](../decisions/0013-bridge.md) discusses the caveats.

{table_markdown(study.table("Bridge"))}
## Limits

- English; Wikipedia passages. It was not trained on news or chats.
- The adapters need a library with vectors of bge-small-en-v1.5.
- It sees 100 tokens of a passage. If the needed sentence is not among them, it decides without it.
- It is worse on unfamiliar questions: see the columns *left out*.
- It predicts what is worth reading next, not whether a text is true. Authors of documents control what it reads.
"""


def _manifest(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return read


def _data(learned: Mapping[str, object]) -> str:
    rows = tuple((name, LICENCES[name], questions) for name, questions in learned.items())
    return table_markdown(Table("Data", ("data set", "licence", "questions"), rows))  # type: ignore[arg-type]


def _files(study: Study) -> str:
    return "Files, with their sha256:\n\n" + "".join(
        f"- `{name}` {digest}\n" for name, digest in sorted(study.data.items())
    )


def _size(folder: Path) -> str:
    return f"{sum(file.stat().st_size for file in folder.iterdir()) / 1e6:.1f} MB"


def pages() -> dict[Path, str]:
    return gate_pages() | bridge_pages() | bridge_card_pages()
