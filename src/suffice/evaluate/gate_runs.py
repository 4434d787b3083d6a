"""A gate's run: for each question the probability, what came true and the action taken, kept as one document.

Every figure is computed from it afterwards: the gate's, the baselines' on the same questions, by kind and by hops, and what the
policy's decisions came to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, nearest
from suffice.evaluate.compare import Interval, interval, interval_of_mean
from suffice.evaluate.documents import document_text, load_document
from suffice.evaluate.metrics import Predictions, ece_by_chance, score
from suffice.evaluate.tables import Cell, Table
from suffice.files import write_atomically
from suffice.reason.records import record_of
from suffice.types import Action

__all__ = ["FIGURES", "FIGURE_NAMES", "GateRun", "figures", "summary", "tables"]

VERSION = 1
FIGURES = {"auroc": "auroc", "ap": "auprc", "brier": "brier", "ece": "ece", "aurc": "aurc"}  # our name -> the metric's
DECISIONS = ("accuracy", "precision", "recall", "f1")
FIGURE_NAMES = ("positive_rate", *FIGURES, *DECISIONS, "risk", "coverage")  # every figure of a run, as `figures` gives them
_FEWEST = 10  # questions of a kind that earn it a row


@dataclass(frozen=True)
class GateRun:
    """One evaluation of a gate, as a document. Columns have one entry a question."""

    dataset: str
    retriever: str
    k: int
    gate: str  # "default", a path, or "fitted": on the other folds of the same questions
    question_ids: tuple[str, ...]
    kinds: tuple[str | None, ...]
    hops: tuple[int, ...]
    complete: tuple[bool, ...]
    p: tuple[float, ...]
    actions: tuple[str, ...]
    policy: str = ""  # in words
    labels: tuple[tuple[str, ...], ...] = ()  # kinds of reasoning, where the data set knows them: a question may have several
    baselines: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    seed: int = 42
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.p)

    def predictions(self, baseline: str | None = None) -> Predictions:
        """The gate's probabilities beside what came true, or a baseline's."""
        if baseline is not None and baseline not in self.baselines:
            raise InputError(f"the run has no baseline named {baseline!r}", hint=nearest(baseline, self.baselines))
        return Predictions(np.array(self.complete, dtype=float), self.p if baseline is None else self.baselines[baseline])

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        return np.array([action == Action.ANSWER for action in self.actions], dtype=bool)

    def to_json(self, *, timings: bool = True) -> str:
        """The document; without timings, two runs with the same seed give the same text."""
        document = {"kind": "run", "task": "gate", "version": VERSION, **asdict(self)}
        if not timings:
            document["timings"] = {}
        return document_text(document)

    def save(self, path: Path) -> Path:
        write_atomically(Path(path), self.to_json())
        return Path(path)

    @staticmethod
    def load(path: Path) -> GateRun:
        """Read a run that this version can read; the error says what else the file is."""
        return load_document(
            path, _read, kind="run", task="gate", named="gate's run", version=VERSION, again="suffice evaluate gate"
        )


def _read(document: dict[str, Any]) -> GateRun:
    fields = {name: value for name, value in document.items() if name not in ("kind", "task", "version")}
    columns = ("question_ids", "kinds", "hops", "complete", "p", "actions")
    fields["baselines"] = {name: tuple(map(float, values)) for name, values in fields["baselines"].items()}
    run = record_of(GateRun, fields)
    held = [getattr(run, name) for name in columns] + list(run.baselines.values()) + [run.labels or run.p]
    if len(set(map(len, held))) > 1:
        raise ValueError("its columns have different lengths")
    for baseline in (None, *run.baselines):
        run.predictions(baseline)  # an InputError, which is a ValueError, where a probability is none
    return run


# ------------------------------------------------------------------------------------------------------ figures


def summary(run: GateRun) -> dict[str, Any]:
    """The run for a script: every figure as a plain number, intervals beside them, the baselines, and the parts."""
    whole = figures(run)
    return {
        "dataset": run.dataset,
        "retriever": run.retriever,
        "k": run.k,
        "gate": run.gate,
        "seed": run.seed,
        "n": len(run),
        "seen": int(run.settings.get("seen", 0)),
        **{name: one.value for name, one in whole.items()},
        "ece_by_chance": ece_by_chance(run.p),
        "answered": int(run.answered.sum()),
        "actions": {str(action): run.actions.count(action) for action in Action},
        "policy": run.policy,
        "intervals": {name: asdict(one) for name, one in whole.items()},
        "baselines": {name: _of(run.predictions(name), run.seed) for name in run.baselines},
        **{f"by_{name}": _parts(run, column) for name, column in _columns(run).items()},
        "settings": dict(run.settings),
        "data": dict(run.data),
        "seconds": dict(run.timings),
    }


def figures(run: GateRun) -> dict[str, Interval]:
    """Every figure of the whole run, with its interval."""
    return _figures(run, np.ones(len(run), dtype=bool))


def _figures(run: GateRun, rows: npt.NDArray[np.bool_]) -> dict[str, Interval]:
    """Every figure of some of the questions, with its interval."""
    labels = np.array(run.complete, dtype=float)[rows]
    answered = run.answered[rows]
    predictions = Predictions(labels, np.array(run.p)[rows])
    decisions = Predictions(labels, answered.astype(float))
    wrong = np.where(answered, 1.0 - labels, np.nan)  # NaN: not answered, takes no part
    options = {"seed": run.seed}
    return {
        "positive_rate": interval(predictions, "positive_rate", **options),
        **{name: interval(predictions, metric, **options) for name, metric in FIGURES.items()},
        **{name: interval(decisions, name, **options) for name in DECISIONS},
        "risk": interval_of_mean(wrong, **options),
        "coverage": interval_of_mean(answered.astype(float), **options),
    }


def _of(predictions: Predictions, seed: int) -> dict[str, Any]:
    plain = {name: score(predictions, metric) for name, metric in FIGURES.items()}
    plain["ece_by_chance"] = ece_by_chance(predictions.probabilities)
    return {**plain, "auroc_interval": asdict(interval(predictions, "auroc", seed=seed))}


def _columns(run: GateRun) -> dict[str, list[tuple[Any, ...]]]:
    """What the questions can be told apart by: for each question the values it has, mostly one."""
    kinds = [() if kind is None else (kind,) for kind in run.kinds]
    labels = [tuple(dict.fromkeys(one)) for one in run.labels]
    return {"kind": kinds, **({"label": labels} if any(labels) else {}), "hops": [(count,) for count in run.hops]}


def _split(column: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Each value of the column, with the questions that have it."""
    for value in sorted({value for one in column for value in one}):
        yield str(value), np.array([value in one for one in column])


def _parts(run: GateRun, column: Sequence[tuple[Any, ...]]) -> dict[str, dict[str, Any]]:
    parts = {}
    for value, rows in _split(column):
        found = _figures(run, rows)
        parts[value] = {"n": int(rows.sum()), **{name: one.value for name, one in found.items()}}
    return parts


# ------------------------------------------------------------------------------------------------------ tables


def tables(run: GateRun) -> list[Table]:
    """What a person wants to see: the gate among the baselines, its decisions, and where it is weak."""
    shown = [_against_baselines(run), _decisions(run)]
    by = [_by(run, title, column) for title, column in _columns(run).items()]
    return shown + [table for table in by if len(table.rows) > 1]


def _against_baselines(run: GateRun) -> Table:
    def row(name: str, predictions: Predictions) -> tuple[Cell, ...]:
        rest = [score(predictions, metric) for metric in list(FIGURES.values())[1:]]
        return (name, interval(predictions, "auroc", seed=run.seed), *rest, ece_by_chance(predictions.probabilities))

    rows = [row(f"gate ({run.gate})", run.predictions()), *(row(name, run.predictions(name)) for name in run.baselines)]
    share = sum(run.complete) / max(len(run), 1)
    note = f"n = {len(run):,} questions, {share:.3f} of them complete. In brackets: 95 % bootstrap interval over questions."
    note += " ece by chance: what such probabilities show on average if every one of them is true."
    if seen := run.settings.get("seen"):
        note += f" The gate was fitted on {seen:,} of these questions: its figures here are better than on new ones."
    if run.baselines:
        note += (
            " Baselines are fitted on the other folds of the same questions; (oracle): told what a gate in use does not know."
        )
    title = f"Is the evidence complete? {run.dataset}, {run.retriever}, k = {run.k}"
    return Table(title, ("predictor", *FIGURES, "ece by chance"), tuple(rows), note)


def _decisions(run: GateRun) -> Table:
    found = figures(run)
    columns = ("risk", "coverage", *DECISIONS)
    return Table("What the policy's decisions came to", columns, (tuple(found[name] for name in columns),), run.policy)


def _by(run: GateRun, title: str, column: Sequence[tuple[Any, ...]]) -> Table:
    names = ("positive_rate", "auroc", "brier", "ece", "risk", "coverage")
    rows: list[tuple[Cell, ...]] = []
    for value, chosen in _split(column):
        if chosen.sum() >= _FEWEST:
            found = _figures(run, chosen)
            rows.append((value, int(chosen.sum()), *(found[name].value for name in names)))
    return Table(f"By {title}", (title, "n", *names), tuple(rows), f"Rows of fewer than {_FEWEST} questions are left out.")
