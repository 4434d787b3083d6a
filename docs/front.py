"""The README's one table of results: ours, the papers' and the peers', from the stored runs, between two markers."""

from __future__ import annotations

import re

from docs import bridge, gates
from docs.places import ROOT
from docs.tables import table
from suffice.evaluate.papers.hipporag import PAPERS
from suffice.evaluate.tables import Beside, Cell, printed

README = ROOT / "README.md"
BEGIN, END = "<!-- results: made by `make docs` -->\n", "<!-- end of results -->"
NAMES = {
    **bridge.SETS,
    "multihop_rag": "MultiHop-RAG",
    "frames": "FRAMES",
    "controlled": "controlled",
}


def page() -> str:
    """The README with its table as the runs have it."""
    text = README.read_text(encoding="utf-8")
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n{results()}\n{END}", text, flags=re.DOTALL)


def results() -> str:
    study = gates.studies()["fast"]
    fitted, beside = study.table("Fitted"), study.table("Beside the baselines")
    unseen = study.table("Left out")
    rows = []
    for name, title in NAMES.items():
        ours = _said(fitted.cell(name, "AUROC"))
        papers = f"MAGAF {_said(beside.cell('MAGAF', name))}, FRAMES {_said(beside.cell('FRAMES', name))}"
        left_out = _said(unseen.cell(name, "AUROC"))
        rows.append(("complete? AUROC", title, ours, left_out, papers, f"WIG {_said(beside.cell('WIG', name))}"))
    others = bridge.beside_others(bridge.studies())
    for name, short in bridge.SETS.items():
        column = f"{short} recall@5"
        ours, left_out = (_said(others.cell(f"bridge, fast, {kind}", column)) for kind in ("five folds", "left out"))
        papers = f"HippoRAG 2 {PAPERS['HippoRAG 2'][name]:.3f}"
        rows.append(("found, recall@5", short, ours, left_out, papers, f"BM25 {_said(others.cell('bm25', column))}"))
    head = ("what", "data set", "ours, fitted to it", "ours, never seen it", "papers", "peer")
    return table(head, rows)


def _said(cell: Cell) -> str:
    """A figure with its interval, without the figure that it is to reach."""
    return printed(cell.measured if isinstance(cell, Beside) else cell)
