"""The README's one table of results: ours, the papers' and the peers', from the stored runs, between two markers."""

from __future__ import annotations

import re

from docs.generators import bridge, gate
from docs.generators.markdown import table
from docs.generators.paths import ROOT
from suffice.evaluation.tables import Cell, WithPublished, format_cell
from suffice_research.hipporag import PAPERS

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
    return re.sub(
        f"{re.escape(BEGIN)}.*?{re.escape(END)}",
        lambda _: f"{BEGIN}\n{results()}\n{END}",
        text,
        flags=re.DOTALL,
    )


def results() -> str:
    study = gate.studies()["fast"]
    fitted, beside = study.table("Fitted"), study.table("Beside the baselines")
    unseen = study.table("Left out")
    rows = []
    for name, title in NAMES.items():
        ours = _said(fitted.cell(name, "AUROC"))
        papers = f"MAGAF {_said(beside.cell('MAGAF', name))}, FRAMES {_said(beside.cell('FRAMES', name))}"
        left_out = _said(unseen.cell(name, "AUROC"))
        rows.append(
            (
                "complete? AUROC",
                title,
                ours,
                left_out,
                papers,
                f"WIG {_said(beside.cell('WIG', name))}",
            )
        )
    others = bridge.comparison_table(bridge.studies())
    for name, short in bridge.SETS.items():
        column = f"{short} recall@5"
        ours, left_out = (
            _said(others.cell(f"bridge, fast, {kind}", column))
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
                f"BM25 {_said(others.cell('bm25', column))}",
            )
        )
    head = ("what", "data set", "ours, fitted to it", "ours, never seen it", "papers", "peer")
    return table(head, rows)


def _said(cell: Cell) -> str:
    """A figure with its interval, without the figure that it is to reach."""
    return format_cell(cell.measured if isinstance(cell, WithPublished) else cell)
