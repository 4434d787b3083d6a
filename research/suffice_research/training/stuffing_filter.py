"""Make the stuffing filter of hardened gates: `python -m
suffice_research.training.stuffing_filter`.

The filter is trained on retrieved lists, unchanged and tampered with
(`suffice_research.training.tampering`). `python -m robustness.filter_eval` evaluates it; decision
29 has the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from suffice.evaluation.searching import retrieve_dataset, to_labelled_question
from suffice.gate.extraction import NO_ENCODERS
from suffice.gate.hits import normalize_hits
from suffice.gate.model import HIT_LEAVES, HIT_TREES, BinaryClassifier, boosted_trees
from suffice.gate.question import WordTable
from suffice.gate.stuffing_filter import SHIPPED_FILTER, StuffingFilter, stuffing_features
from suffice.gate.training import LabelledQuestion, build_training_set
from suffice_research.training.gate_data import KS, draw_lists
from suffice_research.training.sources import (
    SEED,
    SOURCES,
    ProgressLog,
    exit_code,
    open_source,
)
from suffice_research.training.tampering import tamper

QUESTIONS = 700  # per data set, at most, for fitting and for evaluation
LIKELY, SUSPECT, SURE = 0.25, 0.1, 0.25  # see decision 29
LEAF = 40  # minimum hits per leaf
SETS = ("hotpotqa", "2wikimultihopqa", "musique", "multihop_rag", "controlled")


def fit_filter(
    examples: Sequence[LabelledQuestion], words: WordTable, *, seed: int = SEED
) -> StuffingFilter:
    """Fit a filter on these examples and on tampered versions of them."""
    taken = [
        normalize_hits(one.question, one.hits, documents=one.documents, k=max(KS))
        for one in examples
    ]
    made = tamper(examples, taken, seed=seed)
    training_set = build_training_set(
        [*examples, *(one.example for one in made)],
        words,
        NO_ENCODERS,
        k=max(KS),
        min_examples=1,
        others=False,
    )
    rows = stuffing_features(training_set.batch, words)
    evidence_flags = [flag for labels in training_set.submodel_labels() for flag in labels.evidence]
    ids = [[hit.doc_id for hit in one.evidence.hits] for one in training_set.batch.hits]
    put = [frozenset[str]()] * len(examples) + [one.put for one in made]
    stuffed = [name in mine for names, mine in zip(ids, put, strict=True) for name in names]
    evidence, stuffing = (
        BinaryClassifier.fit(
            rows,
            np.array(labels, dtype=bool),
            boosted_trees(HIT_TREES, LEAF, seed, leaves=HIT_LEAVES),
        )
        for labels in (evidence_flags, stuffed)
    )
    return StuffingFilter(evidence, stuffing, LIKELY, SUSPECT, SURE)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.stuffing_filter", description=__doc__
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument(
        "--out", type=Path, default=SHIPPED_FILTER, help="the filter's folder; by default ours"
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of a data set, at most")
    args = parser.parse_args()
    return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    sources = [one for one in SOURCES if one.name in SETS]
    options = {"sample": args.questions, "seed": SEED}
    lists = []
    for one in sources:
        found = retrieve_dataset(open_source(one, args.data), one.retrievers, KS, **options)
        lists += draw_lists(found, questions=args.questions)
    say(f"drew {len(lists):,} lists")
    names = [one.name for one in sources]
    card = {"lists": len(lists), "sets": names, "questions": args.questions}
    fitted = fit_filter([to_labelled_question(one) for one in lists], WordTable.load())
    fitted.save(args.out, card=card, seed=SEED)
    say(f"filter at {args.out}")


if __name__ == "__main__":
    sys.exit(main())
