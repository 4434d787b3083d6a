"""Figures from papers, as data, and tables that compare ours with them.

Each paper's figures are entered under the names of our own retrievers and metrics. Nothing is
computed from them or tuned on them, except where a docstring says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from suffice.evaluation.metrics import ranking_metric
from suffice.evaluation.report import Cell, Table
from suffice.evaluation.retrieval_runs import RetrievalRun, retrieval_table
from suffice.evaluation.significance import Interval
from suffice_research.published_cells import WithPublished

__all__ = ["PublishedTable", "beside_paper"]


@dataclass(frozen=True)
class PublishedTable:
    """One table of a paper.

    `figures`: system -> metric -> value. `printed`: our name of a system -> the paper's.
    `cautions`: metric without its k -> why the paper's figure and ours differ in meaning.
    """

    paper: str
    table: str
    caption: str
    figures: Mapping[str, Mapping[str, float]]
    printed: Mapping[str, str] = field(default_factory=dict)
    cautions: Mapping[str, str] = field(default_factory=dict)

    def get(self, system: str, metric: str) -> float | None:
        """The published figure, or None if the paper has none."""
        return self.figures.get(system, {}).get(metric)

    @property
    def metrics(self) -> list[str]:
        """Every metric that the paper reports, with its k, in order."""
        return list(dict.fromkeys(metric for row in self.figures.values() for metric in row))


def beside_paper(
    run: RetrievalRun,
    metrics: Sequence[str],
    paper: PublishedTable,
    *,
    ks: Sequence[int] | None = None,
    intervals: bool = False,
    title: str = "",
) -> Table:
    """The table of a run with the paper's figures in parentheses.

    A single metric gets three columns: measured, paper, difference.
    """
    table = retrieval_table(run, metrics, ks=ks, intervals=intervals, title=title)
    alone = len(metrics) == 1
    rows: list[tuple[Cell, ...]] = []
    for system, k, *figures in table.rows:
        cells: list[Cell] = [system, k]
        for name, figure in zip(metrics, figures):
            assert isinstance(figure, Interval)
            takes_k = ranking_metric(name).metric.at == "k"
            published = paper.get(str(system), f"{name}@{k}" if takes_k else name)
            both = WithPublished(figure if intervals else figure.value, published)
            cells += [figure, published, both.difference] if alone else [both]
        rows.append(tuple(cells))
    named = ("measured", "paper", "difference") if alone else tuple(metrics)
    cautions = [paper.cautions[name] for name in metrics if name in paper.cautions]
    source_note = "" if title else f" (in parentheses: {paper.paper}, {paper.table})"
    return replace(
        table,
        title=table.title + source_note,
        columns=("retriever", "k", *named),
        rows=tuple(rows),
        note=" ".join([table.note, *cautions]),
    )
