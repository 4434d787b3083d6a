"""Make what the shipped gates know of the form of their training questions, and measure it:
`python -m suffice_research.training.familiarity --data DIR [--judge LISTS]`.

Training a gate makes this record, too; here it is made anew from the same lists, and every other
file of the gate stays as it is. LISTS are JSON Lines of {"set", "seen", "question", "hits",
"complete"}: lists of data sets that the gate was trained on (`seen`) and of others. For each set it
prints how well familiarity tells it from the training questions, how many of its verdicts are of
low familiarity, and in how many groups of verdicts of similar p the share of complete lists lies in
the mean interval: as calibrated, and widened.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.evaluation.searching import retrieve_dataset, to_labelled_question
from suffice.gate.extraction import NO_ENCODERS
from suffice.gate.familiarity import FormProfile, form_table, widen_interval
from suffice.gate.gate import FAST, GATE_KIND, GATE_VERSION, QUALITY, SHIPPED_MODELS, Gate
from suffice.gate.question import WordTable
from suffice.gate.training import LabelledQuestion, build_training_set, fit_forms
from suffice.numeric import sigmoid
from suffice.storage import new_artefact, write_atomically
from suffice.storage.artefacts import MANIFEST, read_json
from suffice.types import LOW_FAMILIARITY
from suffice_research.training.gate import KS, QUESTIONS, draw_lists
from suffice_research.training.sources import (
    SEED,
    ProgressLog,
    chosen_sources,
    exit_code,
    open_source,
)

__all__ = ["GroupCoverage", "add_forms", "coverage", "main", "training_examples"]

GROUP = 100  # verdicts of similar p
Floats = npt.NDArray[np.floating[Any]]


def training_examples(data: Path, only: str | None = None) -> Iterator[LabelledQuestion]:
    """The lists that the shipped gates learn from."""
    for source in chosen_sources(only):
        dataset, questions = open_source(source, data), max(1, round(QUESTIONS * source.share))
        collected = retrieve_dataset(dataset, source.retrievers, KS, sample=QUESTIONS, seed=SEED)
        yield from map(to_labelled_question, draw_lists(collected, questions=questions))


def add_forms(folder: Path, forms: FormProfile) -> None:
    """Write the record into the folder of a gate, of this format or the one before it."""
    manifest = read_json(folder / MANIFEST)
    about = {name: manifest[name] for name in ("settings", "inputs", "seed")}
    with new_artefact(folder, kind=GATE_KIND, version=GATE_VERSION, **about) as draft:
        for name in manifest["files"]:
            (draft / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(folder / name, draft / name)
        record = json.dumps(asdict(forms), sort_keys=True) + "\n"
        write_atomically(draft / "familiarity.json", record)


# ---- measuring


@dataclass(frozen=True, slots=True)
class GroupCoverage:
    """In how many groups of verdicts the share of complete lists lies in the mean interval."""

    groups: int
    covered: int
    width: float  # mean

    def __str__(self) -> str:
        return f"{self.covered:3} of {self.groups:3} (width {self.width:.2f})"


def coverage(
    p: Floats, interval: tuple[Floats, Floats], complete: npt.NDArray[np.bool_], size: int = GROUP
) -> GroupCoverage:
    """Groups of at least so many verdicts with neighbouring p."""
    order = np.argsort(p, kind="stable")
    groups = np.array_split(order, max(1, len(order) // size))
    low, high = interval
    inside = [low[at].mean() <= complete[at].mean() <= high[at].mean() for at in groups]
    return GroupCoverage(len(groups), sum(map(bool, inside)), float((high - low).mean()))


def _auroc(near: Floats, far: Floats) -> float:
    """The chance that one of the far is beyond one of the near."""
    from sklearn.metrics import roc_auc_score

    unseen = np.repeat([0, 1], [len(near), len(far)])
    return float(roc_auc_score(unseen, np.concatenate([near, far])))


def judge(gate: Gate, lists: Sequence[Mapping[str, Any]], say: ProgressLog) -> None:
    """Print the figures of each set, unseen ones first."""
    names = sorted({(bool(one["seen"]), str(one["set"])) for one in lists})
    usual = np.random.default_rng(SEED).uniform(size=len(lists))  # what training questions have
    for seen, name in names:
        mine = [one for one in lists if one["set"] == name]
        batch = gate._batch([(one["question"], one["hits"]) for one in mine], None)
        odds = gate.model.log_odds(gate.model.describe(batch).table)
        p, before = sigmoid(odds), gate.interval.apply(odds)
        familiarity = gate.forms.measure(batch).values
        complete = np.array([one["complete"] for one in mine], dtype=bool)
        after = widen_interval(*before, familiarity)
        say(
            f"{'seen' if seen else 'unseen':6} {name:22} {len(mine):5} lists"
            f"  AUROC of familiarity {_auroc(1 - usual, 1 - familiarity):.3f}"
            f"  low {(familiarity < LOW_FAMILIARITY).mean():.2f}"
            f"  before {coverage(p, before, complete)}  after {coverage(p, after, complete)}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.familiarity",
        description="Add what the shipped gates know of the form of their training questions.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--models", type=Path, default=SHIPPED_MODELS, help="the gates' folder")
    parser.add_argument("--judge", type=Path, help="JSON Lines of lists to measure on")
    parser.add_argument("--only", help="some of the data sets, with commas: for trying out")
    args = parser.parse_args(arguments)
    return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    words = WordTable.load()
    examples = training_examples(args.data, args.only)
    built = build_training_set(examples, words, NO_ENCODERS, k=max(KS), min_examples=1)
    forms = fit_forms(built, SEED)
    say(f"the forms of {len(form_table(built.batch)):,} lists")
    for preset in (FAST, QUALITY):
        folder = args.models / f"gate-{preset}"
        if folder.is_dir():
            add_forms(folder, forms)
            say(f"added to {folder}")
    if args.judge:
        lines = args.judge.read_text(encoding="utf-8").splitlines()
        gate = Gate.load(args.models / f"gate-{FAST}")
        judge(gate, list(map(json.loads, lines)), say)


if __name__ == "__main__":
    sys.exit(main())
