"""FRAMES: the results in plain words. The paper's findings, with the figures that decide them
here, and how our gate compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from suffice.evaluation.metrics import score
from suffice.evaluation.report import Cell, Table, format_cell
from suffice.evaluation.significance import Difference, compare
from suffice_research.frames import published as paper
from suffice_research.frames.prediction import MODELS, FoldPredictions
from suffice_research.frames.retrieval import BINS, HYBRID, KS, Bools, SearchResults
from suffice_research.frames.tables import FramesResults

__all__ = ["findings", "summary"]


def findings(searched: SearchResults, found: FramesResults) -> Table:
    """The paper's conclusions: do they hold here?"""
    depths = [_retrieved(searched, f"coverage@{k}") for k in KS]
    sizes = [_retrieved(searched, "coverage@10", rows=searched.bins[name]) for name in BINS]
    kinds = {
        name: _retrieved(searched, "strict@10", rows=members)
        for name, members in searched.reasoning.items()
    }
    easiest, hardest = max(kinds, key=kinds.__getitem__), min(kinds, key=kinds.__getitem__)
    hops, pooled, kept = (
        _lift(found, setting) for setting in ("hops", "all retrievers", "all, by question")
    )
    parts = {row.setting: _auroc(row) for row in found.ablation}
    whole, family = (
        parts["All operational"],
        max(value for name, value in parts.items() if not name.startswith("All")),
    )
    top = found.importances[0].feature
    rows: list[tuple[Cell, ...]] = [
        ("Deeper lists cover more", _yes(_rises(depths)), _arrow(depths)),
        ("Coverage falls with the number of articles", _yes(_rises(sizes[::-1])), _arrow(sizes)),
        (
            "Numerical questions are the easiest",
            _yes(easiest == "Numerical reasoning"),
            f"{easiest}: {kinds[easiest]:.3f}",
        ),
        (
            "Multiple constraints are the hardest",
            _yes(hardest == "Multiple constraints"),
            f"{hardest}: {kinds[hardest]:.3f}",
        ),
        ("The hop count helps every model", _yes(min(hops) > 0), _signs(hops)),
        (
            "All features beat each family",
            _yes(whole > family),
            f"{whole:.3f} against {family:.3f} at most",
        ),
        ("'Multiple constraints' counts most", _yes(top == "is_multiple_constraints"), top),
        ("Pooling four retrievers helps every model", _yes(min(pooled) > 0), _signs(pooled)),
        ("... with each question kept in one fold, too", _yes(min(kept) > 0), _signs(kept)),
    ]
    note = "Signed: AUROC gained by logistic regression, random forest and gradient boosting. The last row is not the paper's."
    return Table("The paper's findings", ("finding", "holds here", "measured"), tuple(rows), note)


def _retrieved(
    searched: SearchResults, metric: str, *, name: str = HYBRID, rows: Bools | None = None
) -> float:
    judged = searched.judged[name]
    return score(judged if rows is None else judged.rows(rows), metric) or 0.0


def _auroc(row: FoldPredictions) -> float:
    return score(row.predictions, "auroc") or 0.0


def _lift(found: FramesResults, setting: str) -> list[float]:
    """By how much AUROC each model is better in a setting than in the operational one."""
    return [
        _auroc(found.row(setting, model)) - _auroc(found.row("operational", model))
        for model in MODELS
    ]


def _rises(values: Sequence[float]) -> bool:
    return all(low < high for low, high in pairwise(values))


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _arrow(values: Sequence[float]) -> str:
    return " → ".join(f"{value:.3f}" for value in values)


def _signs(values: Sequence[float]) -> str:
    return ", ".join(f"{value:+.3f}" for value in values)


# ---- in plain words


def summary(searched: SearchResults, found: FramesResults) -> tuple[str, ...]:
    """The results, for someone who reads nothing else."""
    first, *ways = found.expanded
    best = max(ways, key=lambda one: float(one.complete.mean()))
    given, guessed = (
        _best(found, setting, "auroc") for setting in ("hops", "labels and hops guessed")
    )
    forest, kept = (
        _auroc(found.row(setting, "frames-rf"))
        for setting in ("all retrievers", "all, by question")
    )
    return (
        _how_near(searched, found),
        f"Told how many articles a question needs, the best predictor reaches an AUROC of {_auroc(given):.3f}; with a count and "
        f"labels guessed from the question's words, {_auroc(guessed):.3f}.",
        f"Most of what pooling four retrievers gains in the paper comes from questions on both sides of a fold: kept "
        f"together, the random forest falls from {forest:.3f} to {kept:.3f}.",
        *(_gate_line(one.row, found, searched.seed) for one in found.gates),
        f"One expansion helps few: {first.complete.mean():.1%} of the questions are complete with ten titles, "
        f"{best.complete.mean():.1%} after the best one ({best.name}).",
    )


def _how_near(searched: SearchResults, found: FramesResults) -> str:
    retrieved = [
        abs(_retrieved(searched, metric, name=name) - value)
        for table in (paper.TABLE_4, paper.TABLE_5)
        for name, row in table.figures.items()
        for metric, value in row.items()
    ]
    predicted = []
    for name, row in paper.TABLE_8.figures.items():
        setting, _, model = name.partition(" / ")
        predicted.append(abs(_auroc(found.row(setting, model)) - row["auroc"]))
    return (
        f"The paper comes out again: coverage and strict correctness within {max(retrieved):.3f} of its Tables 4 and 5 in "
        f"every cell, ROC-AUC within {max(predicted):.3f} of its Table 8 in all {len(predicted)} rows."
    )


def _best(found: FramesResults, setting: str, metric: str) -> FoldPredictions:
    """The best of the paper's models in a setting, by this metric."""
    sign = 1 if metric == "auroc" else -1
    rows = [found.row(setting, model) for model in MODELS]
    return max(rows, key=lambda row: sign * (score(row.predictions, metric) or 0.0))


def _gate_line(ours: FoldPredictions, found: FramesResults, seed: int) -> str:
    lines = []
    for setting, what in (
        ("operational", "told the labels"),
        ("hops", "told labels and hop count"),
    ):
        parts = []
        for metric in ("auroc", "brier", "ece"):
            rival = _best(found, setting, metric)
            parts.append(
                _verdict(metric, compare(ours.predictions, rival.predictions, metric, seed=seed))
            )
        lines.append(f"against the paper's best {what}: {', '.join(parts)}")
    return f"Our gate ({ours.model}), told nothing, has an AUROC of {_auroc(ours):.3f}; {'; '.join(lines)}."


def _verdict(metric: str, apart: Difference) -> str:
    low, high = apart.low or 0.0, apart.high or 0.0
    better, worse = (low > 0, high < 0) if metric == "auroc" else (high < 0, low > 0)
    word = "better" if better else "worse" if worse else "no sure difference"
    return f"{metric} {format_cell(apart)} ({word})"
