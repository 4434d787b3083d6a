"""Make what the shipped gates know of the form of their training questions, and measure it:
`python -m suffice_research.training.familiarity --data DIR [--judge research/everyday]`.

Training a gate makes this record, too; here it is made anew from the same lists, and every other
file of the gate stays as it is. With `--judge` it also measures familiarity on lists of data sets
that the gate has not seen, and of other questions of sets that it has. For each set it prints how
well familiarity tells it from the training questions, how many of its verdicts are of low
familiarity, and in how many groups of verdicts of similar p the share of complete lists lies in the
mean interval: as calibrated, and widened.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
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
from suffice_research.training.reader_data import (
    SOURCES,
    Case,
    Passage,
    everyday_cases,
    search_sources,
)
from suffice_research.training.sources import (
    SEED,
    ProgressLog,
    chosen_sources,
    exit_code,
    open_source,
)

__all__ = [
    "GroupCoverage",
    "JudgedList",
    "add_forms",
    "coverage",
    "judged_lists",
    "main",
    "training_examples",
]

UNSEEN = ("squad2", "policyqa", "covidqa", "tatqa", "entailmentbank", "strategyqa")
SEEN = ("hotpotqa", "2wiki")  # other questions than those of the training
JUDGED = 900  # questions of a set, at most
DISTRACTORS = 12  # that a drawn list is filled up from
MAX_HITS = 10
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
class JudgedList:
    """A question with a list of hits, as BM25 finds it or as it was drawn."""

    question: str
    hits: tuple[Passage, ...]
    complete: bool


def judged_lists(
    cases: Sequence[Case], draw: np.random.Generator
) -> tuple[list[JudgedList], list[JudgedList]]:
    """Of each case what BM25 finds in its set, and a list that is complete half of the time."""
    chosen = draw.permutation(len(cases))[:JUDGED].tolist()
    found = search_sources(cases)
    natural, drawn = [], []
    for case, hits in ((cases[at], found[at]) for at in chosen):
        held = tuple(hits[: int(draw.choice(KS))])
        complete = bool(case.needed) and set(case.needed) <= set(held)
        natural.append(JudgedList(case.question, held, complete))
        drawn.append(_draw_list(case, hits, draw))
    return natural, drawn


def _draw_list(case: Case, found: Sequence[Passage], draw: np.random.Generator) -> JudgedList:
    needed = list(case.needed)
    others = [one for one in dict.fromkeys([*case.distractors, *found]) if one not in needed]
    size = int(draw.integers(max(2, len(needed)), MAX_HITS + 1))  # before the label
    complete = bool(needed) and bool(draw.random() < 0.5)
    kept = len(needed) if complete else int(draw.integers(0, max(1, len(needed))))
    hits = [needed[at] for at in draw.permutation(len(needed))[:kept]]
    some = draw.permutation(min(len(others), DISTRACTORS))
    hits += [others[at] for at in some[: max(0, size - kept)]]
    order = draw.permutation(len(hits))
    return JudgedList(case.question, tuple(hits[at] for at in order), complete)


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


def judge(gate: Gate, name: str, lists: Sequence[JudgedList], say: ProgressLog) -> None:
    """Print the figures of a set."""
    pairs = [(one.question, [asdict(hit) for hit in one.hits]) for one in lists]
    batch = gate._batch(pairs, None)
    odds = gate.model.log_odds(gate.model.describe(batch).table)
    p, before = sigmoid(odds), gate.interval.apply(odds)
    familiarity = gate.forms.measure(batch).values
    usual = np.linspace(0, 1, len(lists))  # what training questions have
    complete = np.array([one.complete for one in lists], dtype=bool)
    after = widen_interval(*before, familiarity)
    say(
        f"{name:22} {len(lists):4} lists  AUROC {_auroc(1 - usual, 1 - familiarity):.3f}"
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
    parser.add_argument("--judge", type=Path, help="measure, also on this folder of everyday cases")
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
        gate, draw = Gate.load(args.models / f"gate-{FAST}"), np.random.default_rng(SEED)
        judged = {"everyday": list(everyday_cases(args.judge))}
        judged |= {name: list(SOURCES[name](args.data)) for name in (*UNSEEN, *SEEN)}
        for name, cases in judged.items():
            for kind, lists in zip(("BM25", "drawn"), judged_lists(cases, draw), strict=True):
                judge(gate, f"{name} {kind}", lists, say)


if __name__ == "__main__":
    sys.exit(main())
