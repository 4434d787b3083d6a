"""The results that a user reads, docs/results.md and the README's tables: of the default preset
first, and of text that it never saw beside text that it saw.

Made from the runs and pages in research/results, which hold all figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks import overview

from docs.generators import answers, models
from docs.generators.markdown import at_commit, table
from docs.generators.paths import DOCS, RESULTS, RUNS
from suffice.evaluation.report import Cell, Table, format_cell
from suffice_research.hipporag import PAPERS
from suffice_research.published_cells import WithPublished
from suffice_research.study import Study, table_cell

PAGE = DOCS / "results.md"
NAMES = {
    "covidqa": "COVID-QA",
    "covidqa, drawn": "COVID-QA, drawn lists",
    "everyday/home_texts": "everyday: home texts",
    "everyday/legal_finance": "everyday: law and finance",
    "everyday/short_notes": "everyday: short notes",
    "everyday, drawn": "everyday, drawn lists",
    **models.BRIDGE_SETS,
    "multihop_rag": "MultiHop-RAG",
    "frames": "FRAMES",
    "squad2": "SQuAD 2.0",
    "policyqa": "PolicyQA",
    "entailmentbank": "EntailmentBank",
    "strategyqa": "StrategyQA",
    "hover": "HoVer",
    "tatqa": "TAT-QA",
    "everyday": "everyday",
    "controlled": "controlled",
}
README_SETS = (
    "covidqa", "covidqa, drawn", "everyday, drawn",
    *models.BRIDGE_SETS, "multihop_rag", "frames",
)  # fmt: skip


def readme_tables() -> str:
    """How well both presets tell complete hits, and how many needed documents `bridge` finds."""
    standard, fast = models.gate_studies()["standard"], models.gate_studies()["fast"]
    shipped, fast_unseen = standard.table("Shipped"), fast.table("Shipped")
    rows = []
    for name in README_SETS:
        seen = str(table_cell(shipped, name, "seen"))
        other = fast_unseen if seen == "unseen" else fast.table("Left out")
        cells = (table_cell(shipped, name, "AUROC"), table_cell(other, name, "AUROC"))
        rows.append((NAMES[name], seen, *map(_figure, cells)))
    head = ("complete? AUROC", "text of this kind", "`standard`", "`fast`, never saw it")
    return table(head, rows) + "\n" + _found()


def _found() -> str:
    others = models.comparison_table(models.bridge_studies())
    rows = []
    for name, short in models.BRIDGE_SETS.items():
        column = f"{short} recall@5"
        kinds = ("left out", "five folds")
        ours = (_figure(table_cell(others, f"bridge, fast, {kind}", column)) for kind in kinds)
        bm25, published = _figure(table_cell(others, "bm25", column)), PAPERS["HippoRAG 2"][name]
        rows.append((short, *ours, bm25, f"{published:.3f}"))
    head = (
        "found, recall@5",
        "`bridge`, never saw it",
        "`bridge`, fitted to it",
        "BM25",
        "HippoRAG 2",
    )
    return table(head, rows)


def _figure(cell: Cell) -> str:
    """A figure with its interval, without the figure that it is to reach."""
    return format_cell(cell.measured if isinstance(cell, WithPublished) else cell)


def _chosen(study: Study, title: str, columns: Iterable[str]) -> str:
    """Columns of a table, with the rows that have a name here, unseen ones first."""
    found = study.table(title)
    rows = [row for row in found.rows if str(row[0]) in NAMES]
    if "seen" in found.columns:
        seen = found.columns.index("seen")
        rows.sort(key=lambda row: row[seen] != "unseen")
    at = [found.columns.index(name) for name in columns]
    shown = [(NAMES[str(row[0])], *(_figure(row[one]) for one in at)) for row in rows]
    return table(("lists", *columns), shown)


def pages() -> dict[Path, str]:
    return {PAGE: "\n".join(_lines())}


def _lines() -> Iterator[str]:
    gates = models.gate_studies()
    standard, fast = gates["standard"], gates["fast"]
    yield INTRODUCTION
    yield f"## Is the evidence complete?\n\n{GATE}\n"
    yield _chosen(
        standard, "Shipped",
        ("seen", "n", "complete", "AUROC", "ECE", "answered of complete", "answered of incomplete", "right"),
    )  # fmt: skip
    yield f"Measured {at_commit(standard.commit)}.\n"
    if beside := models.stored_study("gate-baselines"):
        yield f"**Beside other predictors.** {BESIDE}\n"
        columns = (
            "seen",
            "n",
            "the gate",
            "cross-encoder max",
            "cross-encoder whole",
            "top score",
            "number of hits",
        )
        yield _chosen(beside, "AUROC beside others", columns)
    yield f"**Preset `fast`.** {FAST}\n"
    yield _chosen(fast, "Left out", ("n", "complete", "AUROC", "ECE"))
    if labels := models.stored_study("adaptation"):
        yield f"**With a few labels.** {LABELS}\n"
        yield _labels(labels.table("Labels"))
    yield f"## Answers\n\n{ANSWERS}\n"
    yield _answers()
    yield f"## Finding the evidence\n\n{FINDING}\n"
    yield _found()
    if (stop := RUNS / "stop.json").is_file():
        yield f"**Stopping in time.** {STOPPING}\n"
        yield _stopping(Study.load(stop).tables[0])
    yield f"## Speed\n\n{SPEED}\n"
    ratios = overview.table({part: overview.read(text) for part, text in _speed_pages()})
    yield table(ratios.columns, ratios.rows)
    yield MORE


def _labels(labels: Table) -> str:
    at = labels.columns.index
    kept = ("labels", "AUROC before", "AUROC", "ECE before", "ECE", "right before", "right")
    rows = (row for row in labels.rows if row[at("domains")] == "unseen")
    return table(kept, [tuple(_figure(row[at(name)]) for name in kept) for row in rows])


def _answers() -> str:
    study = json.loads((RUNS / "answers.json").read_text(encoding="utf-8"))
    rows = []
    for name, row in study["sources"].items():
        unseen = name.startswith(answers.UNSEEN)
        figures = (f"{row[key]:.2f}" for key in ("em", "right", "answered"))
        given = f"{row['right of given']:.2f} of {row['given']}" if row["given"] else "none given"
        cells = (*figures, given, f"{row['abstained']:.2f}", f"{row['handled']:.2f}")
        rows.append(
            (NAMES.get(name, name), "unseen" if unseen else "seen", str(row["questions"]), *cells)
        )
    rows.sort(key=lambda row: row[1] != "unseen")
    head = (
        "source",
        "seen",
        "n",
        "EM",
        "right",
        "answered",
        "right of those given",
        "abstained, incomplete",
        "handled right",
    )
    return table(head, rows)


def _stopping(stop: Table) -> str:
    """The calibrated search; a space after a name tells its columns from those of the other."""
    columns = ("n", "documents ", "complete ", "fewer")
    at = [stop.columns.index(name) for name in columns]
    rows = [(str(row[0]), *(_figure(row[one]) for one in at)) for row in stop.rows]
    return table(("questions", "n", "documents", "complete", "fewer than a fixed k"), rows)


def _speed_pages() -> Iterator[tuple[str, str]]:
    for part in overview.TITLES:
        path = RESULTS / f"performance-{part}.md"
        yield part, path.read_text(encoding="utf-8") if path.is_file() else ""


INTRODUCTION = """# Results

Every figure here comes from a stored run. Brackets show 95 % bootstrap intervals over questions. *Unseen*: nothing that ships was
trained on text of this kind; *seen*: trained on other questions of the same data set. Expect the unseen figures on your own
documents. All pages, with the command behind each figure and the goals that we missed, are in `research/results`.
"""
GATE = """The shipped gate, preset `standard`, on ten hits of BM25; *drawn*: on lists of one to ten hits of which half are complete. AUROC
is the probability that a complete list gets a higher score than an incomplete one: 0.5 is chance, 1 is perfect. ECE is how far the
probabilities are off. *Answered* are the lists for which the gate says ANSWER; *right* is the share of lists that are answered if
complete, and not answered if incomplete."""
BESIDE = """AUROC on the same lists, fewer than above. The cross-encoder is the ms-marco MiniLM: its best hit, and all hits as one
text. *Top score* is BM25's."""
FAST = "AUROC of gates that were fitted without the data set."
LABELS = """The standard gate on unseen domains, before and after `suffice adapt` with this many yes and no labels. Labels make the
probabilities true; the order hardly changes."""
ANSWERS = """The reader of the gate answers from lists of eight passages; each question is asked again with a needed passage removed, and
any answer is then wrong. EM and *right* (F1 of at least 0.5) judge the best answer to complete lists, whatever its probability.
*Answered*: the share of complete lists with an answer that `ask` would give. *Handled right*: a right answer, or none if something is
missing. *direction* has pairs about who did what to whom. **These figures are of 0.4.0**, which checked answers by rules on English.
Without the rules, EM and F1 of unseen sets are equal or higher, but swapped questions of *direction* are answered: *handled right*
falls from 0.83 to 0.63 on *kept* (`research/notes/answer-rules.md`)."""
FINDING = """Five documents of several thousand. The HippoRAG 2 figure is the published one, over 1,000 questions of which we have about
700. `bridge` needs no language model."""
STOPPING = """`lib.complete` adds documents of `bridge`, at most ten, until the gate says that the evidence is complete. *Fewer*: how many
more documents a fixed k needs to be as complete."""
SPEED = """Ours beside the usual tool for the same work, on the same machine. Above 1 ours is faster, or smaller."""
MORE = """## All results

Beside the research, in `research/results`: the gate (`gate.md`), the retrievers (`retrieval.md`, `bridge.md`), answers
(`answers.md`), stopping (`expansion.md`), speed (`performance.md`), the robustness
runs (`robustness.md`), and one page for each paper. `research/papers.md` lists every table and figure of the five papers and what
became of it.
"""
