"""All generated pages and pictures, and the README's table of results.

A test compares them with the files.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import overview

from docs.generators import answers, guarantees, judge, models, papers, reference, results
from docs.generators.markdown import NOTE, replace_between, table
from docs.generators.paths import REFERENCE, RESULTS, ROOT
from suffice.evaluation.tables import Cell, WithPublished, format_cell
from suffice_research.hipporag import PAPERS

README = ROOT / "README.md"
BEGIN, END = "<!-- results: made by `make docs` -->\n", "<!-- end of results -->"
DATA_SET_NAMES = {
    **models.BRIDGE_SETS,
    "multihop_rag": "MultiHop-RAG",
    "frames": "FRAMES",
    "controlled": "controlled",
}
UNSEEN_NAMES = {
    "covidqa": "COVID-QA",
    "everyday, drawn": "everyday text, drawn lists",
}  # of the standard gate


def readme() -> str:
    """The README with its table as the runs have it."""
    return replace_between(README.read_text(encoding="utf-8"), BEGIN, END, readme_table())


def readme_table() -> str:
    study = models.gate_studies()["fast"]
    fitted, beside = study.table("Fitted"), study.table("Beside the baselines")
    unseen = study.table("Left out")
    rows = []
    for name, title in DATA_SET_NAMES.items():
        ours = _figure(fitted.cell(name, "AUROC"))
        papers = (
            f"MAGAF {_figure(beside.cell('MAGAF', name))}, FRAMES "
            f"{_figure(beside.cell('FRAMES', name))}"
        )
        left_out = _figure(unseen.cell(name, "AUROC"))
        rows.append(
            (
                "complete? AUROC, `fast`",
                title,
                ours,
                left_out,
                papers,
                f"WIG {_figure(beside.cell('WIG', name))}",
            )
        )
    shipped = models.gate_studies()["standard"].table("Shipped")
    for name, title in UNSEEN_NAMES.items():
        figure = _figure(shipped.cell(name, "AUROC"))
        rows.insert(0, ("complete? AUROC, `standard`", title, "", figure, "", ""))
    others = models.comparison_table(models.bridge_studies())
    for name, short in models.BRIDGE_SETS.items():
        column = f"{short} recall@5"
        ours, left_out = (
            _figure(others.cell(f"bridge, fast, {kind}", column))
            for kind in ("five folds", "left out")
        )
        papers = f"HippoRAG 2 {PAPERS['HippoRAG 2'][name]:.3f}"
        rows.append(
            (
                "found, recall@5",
                short,
                ours,
                left_out,
                papers,
                f"BM25 {_figure(others.cell('bm25', column))}",
            )
        )
    head = ("what", "data set", "ours, fitted to it", "ours, never seen it", "papers", "peer")
    return table(head, rows)


def _figure(cell: Cell) -> str:
    """A figure with its interval, without the figure that it is to reach."""
    return format_cell(cell.measured if isinstance(cell, WithPublished) else cell)


def pages() -> dict[Path, str]:
    """Path -> text of every generated page, the README with its table included."""
    made = {REFERENCE / name: page() for name, page in reference.PAGES.items()}
    made |= {RESULTS / "performance.md": overview.page(RESULTS)}
    made |= results.pages() | models.pages() | guarantees.pages() | answers.pages()
    made |= judge.pages() | papers.pages()
    written = {README: readme(), papers.HOWTO: papers.howto()}
    return {path: NOTE + text for path, text in made.items()} | written


def pictures() -> dict[Path, bytes]:
    return models.gate_pictures() | results.pictures() | papers.pictures()
