"""Make the stuffing filter of hardened gates: `python -m
suffice_research.training.stuffing_filter`.

The filter is trained on retrieved lists, unchanged and tampered with
(`suffice_research.training.tampering`). `--judge` prints what the filter drops from lists of other
kinds of text; `python -m robustness attack_eval` attacks it. Decision 19 has the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.evaluation.searching import RetrievedQuestion, retrieve_dataset, to_labelled_question
from suffice.gate.extraction import NO_READERS
from suffice.gate.hits import normalize_hits
from suffice.gate.model import HIT_LEAVES, HIT_TREES, BinaryClassifier
from suffice.gate.question import WordTable
from suffice.gate.stuffing_filter import SHIPPED_FILTER, StuffingFilter, stuffing_features
from suffice.gate.training import LabelledQuestion, build_training_set
from suffice.gate.trees import boosted_trees
from suffice_research.training.cases import TEST
from suffice_research.training.gate_data import KS, OTHERS, GateData, draw_lists
from suffice_research.training.sources import (
    SEED,
    SOURCES,
    ProgressLog,
    exit_code,
    open_source,
)
from suffice_research.training.tampering import tamper

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.floating[Any]]
QUESTIONS = 700  # per data set, at most, for fitting and for evaluation
LIKELY, SUSPECT, SURE = 0.25, 0.1, 0.25  # see decision 19
JUDGED, JUDGED_EVERYDAY, JUDGED_UNSEEN = 80, 200, 120  # questions per data set, for --judge
LEAF = 40  # minimum hits per leaf
SETS = ("hotpotqa", "2wikimultihopqa", "musique", "multihop_rag", "controlled")


@dataclass(frozen=True)
class HitRows:
    """The hits of some lists and of tampered versions of them."""

    rows: Floats  # the filter's columns
    evidence: Bools
    stuffed: Bools
    plain: Bools  # in a list that nobody touched
    lists: npt.NDArray[np.int_]  # the number of its list


def hit_rows(
    examples: Sequence[LabelledQuestion], words: WordTable, *, seed: int = SEED
) -> HitRows:
    taken = [
        normalize_hits(one.question, one.hits, documents=one.documents, k=max(KS))
        for one in examples
    ]
    made = tamper(examples, taken, seed=seed)
    training_set = build_training_set(
        [*examples, *(one.example for one in made)],
        words,
        NO_READERS,
        k=max(KS),
        min_examples=1,
    )
    ids = [[hit.doc_id for hit in one.evidence.hits] for one in training_set.batch.hits]
    put = [frozenset[str]()] * len(examples) + [one.put for one in made]
    evidence = [flag for labels in training_set.submodel_labels() for flag in labels.evidence]
    stuffed = [name in mine for names, mine in zip(ids, put, strict=True) for name in names]
    lists = np.repeat(np.arange(len(ids)), [len(one) for one in ids])
    return HitRows(
        stuffing_features(training_set.batch, words),
        np.array(evidence, dtype=bool),
        np.array(stuffed, dtype=bool),
        lists < len(examples),
        lists,
    )


def fit_filter(
    examples: Sequence[LabelledQuestion], words: WordTable, *, seed: int = SEED
) -> StuffingFilter:
    """Fit a filter on these examples and on tampered versions of them."""
    hits = hit_rows(examples, words, seed=seed)
    evidence, stuffing = (
        BinaryClassifier.fit(
            hits.rows, labels, boosted_trees(HIT_TREES, LEAF, seed, leaves=HIT_LEAVES)
        )
        for labels in (hits.evidence, hits.stuffed)
    )
    return StuffingFilter(evidence, stuffing, LIKELY, SUSPECT, SURE)


def judge(stuffing_filter: StuffingFilter, hits: HitRows) -> str:
    """What a filter drops from plain lists, and of the stuffed hits."""
    dropped = ~stuffing_filter.keeps(hits.rows)
    needed = hits.plain & hits.evidence

    def lists(of: Bools) -> int:
        return len(np.unique(hits.lists[of]))

    every = lists(hits.plain)
    return (
        f"{every:,} plain lists: {lists(hits.plain & dropped) / every:.2f} lose a hit, "
        f"{lists(needed & dropped) / every:.2f} a needed one; dropped: "
        f"{dropped[needed].mean():.2f} of needed hits, {dropped[hits.stuffed].mean():.2f} of "
        f"stuffed ones"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.stuffing_filter", description=__doc__
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument(
        "--out", type=Path, default=SHIPPED_FILTER, help="the filter's folder; by default ours"
    )
    parser.add_argument("--judge", action="store_true", help="train nothing, judge that filter")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of a data set, at most")
    args = parser.parse_args()
    return exit_code(lambda: (_judge if args.judge else _run)(args, ProgressLog()))


def _judge(args: argparse.Namespace, say: ProgressLog) -> None:
    """BM25's lists, drawn ones and single sentences, of `test` and of unseen domains."""
    data, words = GateData(args.data, say=say), WordTable.load()
    shipped = StuffingFilter.load(args.out)

    def tell(name: str, lists: Iterable[RetrievedQuestion]) -> None:
        hits = hit_rows([to_labelled_question(one) for one in lists], words)
        print(f"{name}: {judge(shipped, hits)}", flush=True)

    for name in data.names:
        if name in ("covidqa", "frames"):  # unseen only; only titles
            continue
        kinds = [""] if name in OTHERS else ["", "drawn", "single sentences"]
        most = JUDGED_EVERYDAY if name == "everyday" else JUDGED
        found = [data.judged(name, (TEST,), questions=most, kind=kind) for kind in kinds]
        tell(name, chain.from_iterable(found))
    for name, by_kind in data.unseen(questions=JUDGED_UNSEEN):
        tell(f"{name}, unseen", chain.from_iterable(by_kind.values()))


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
