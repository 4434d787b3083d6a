"""Make the stuffing filter of hardened gates: `python -m suffice_research.training.stuffing_filter --data DIR`; with `--judge` see what it is worth instead.

The filter learns from retrieved lists as they came and as somebody tampered with them (`suffice_research.training.tampering`). `--judge` fits
filter and gate on some of the questions and judges on others: what the filter costs on lists that nobody touched, and how far
the attacks of `robustness.attacks`, none of which it has learned from, still come. `--leave-out SET` judges on a data set that
neither has seen anything of. Decision 29 says what came of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from robustness import attack_eval
from robustness.attacks import ATTACKS
from sklearn.metrics import roc_auc_score

from suffice.datasets.gold import split
from suffice.evaluation.searching import RetrievedQuestion, retrieve_dataset, to_labelled_question
from suffice.gate.extraction import NO_ENCODERS
from suffice.gate.gate import Gate
from suffice.gate.hits import normalize_hits
from suffice.gate.model import HIT_LEAVES, HIT_TREES, BinaryClassifier, boosted_trees
from suffice.gate.question import WordTable
from suffice.gate.stuffing_filter import SHIPPED_FILTER, StuffingFilter, stuffing_features
from suffice.gate.training import LabelledQuestion, build_training_set
from suffice_research.training.gate import KS, draw_lists
from suffice_research.training.sources import (
    SEED,
    SOURCES,
    ProgressLog,
    Source,
    exit_code,
    open_source,
)
from suffice_research.training.tampering import tamper

QUESTIONS = 700  # of a data set, at most; those it is fitted on and those it is judged by
LIKELY, SUSPECT, SURE = 0.25, 0.1, 0.25  # see decision 29
LEAF = 40  # hits in a leaf, at least
SHARES = (0.6, 0.0001, 0.3999)  # to learn from, nothing, to judge by


def fit_filter(
    examples: Sequence[LabelledQuestion], words: WordTable, *, seed: int = SEED
) -> StuffingFilter:
    """A filter of these examples and of others made from them."""
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
    held = [flag for labels in training_set.submodel_labels() for flag in labels.evidence]
    ids = [[hit.doc_id for hit in one.evidence.hits] for one in training_set.batch.hits]
    put = [frozenset[str]()] * len(examples) + [one.put for one in made]
    stuffed = [name in mine for names, mine in zip(ids, put, strict=True) for name in names]
    evidence, stuffing = (
        BinaryClassifier.fit(
            rows,
            np.array(labels, dtype=bool),
            boosted_trees(HIT_TREES, LEAF, seed, leaves=HIT_LEAVES),
        )
        for labels in (held, stuffed)
    )
    return StuffingFilter(evidence, stuffing, LIKELY, SUSPECT, SURE)


# ------------------------------------------------------------------------------------------------------ lists


@dataclass(frozen=True)
class TestLists:
    """Of one data set: lists to learn from, whole lists to judge by, and those to attack."""

    name: str
    training: Sequence[RetrievedQuestion]
    judged: Sequence[RetrievedQuestion]
    attacked: attack_eval.AttackSetting


def test_lists(source: Source, data: Path, questions: int, attacked: int) -> TestLists:
    """By halves: no question that is learned from is judged by."""
    opened = open_source(source, data)
    parts = split(opened.questions(), shares=SHARES)
    known = {one.question.question_id for one in parts.fit}
    found = retrieve_dataset(
        opened, source.retrievers, KS, sample=questions, seed=attack_eval.SEED
    )  # another draw than that of the halves
    every = {
        key: tuple(one for one in cases if one.question.question_id in known)
        for key, cases in found.by.items()
    }
    rest = {
        key: [one for one in cases if one.question.question_id not in known and one.evidence.hits]
        for key, cases in found.by.items()
    }
    deepest = [rest[source.judged_by, k] for k in sorted(KS, reverse=True)]
    field = attack_eval.AttackSetting.of(source.name, list(zip(*deepest, strict=True)), attacked)
    return TestLists(
        source.name, draw_lists(replace(found, by=every), questions=questions), deepest[0], field
    )


# ------------------------------------------------------------------------------------------------------ judging


def evaluate_filter(found: Mapping[str, TestLists], left_out: str | None, say: ProgressLog) -> None:
    """Print what the filter costs, and what it stops."""
    training_set = [one for name, one in found.items() if name != left_out]
    judged = [found[left_out]] if left_out else training_set
    training = [to_labelled_question(case) for one in training_set for case in one.training]
    words = WordTable.load()
    plain = Gate.fit(
        training,
        k=max(KS),
        words=words,
        sets=[one.name for one in training_set for _ in one.training],
    )
    say("fitted a gate")
    hardened = replace(plain, stuffing_filter=fit_filter(training, words))
    say("fitted a filter")
    for one in judged:
        print(f"{one.name}: {_costs(plain, hardened, one)}", flush=True)
    held = {
        one.name: {
            each.name: attack_eval.run_attack(hardened, one.attacked, each) for each in ATTACKS
        }
        for one in judged
    }
    say("attacked")
    for promised in (True, False):
        some = [one for one in ATTACKS if one.promised is promised]
        table = attack_eval.attack_table(
            "A hardened gate", "Points over neutral text.", some, held, bound=promised
        )
        print(f"\n{table.says}\n\n{table.table()}\n{table.verdict()}")


def _costs(plain: Gate, hardened: Gate, one: TestLists) -> str:
    pairs = [(case.question.text, attack_eval.retrieved_hits(case)) for case in one.judged]
    complete = np.array([case.complete for case in one.judged])
    told = [f"{len(pairs)} lists as they came, {complete.mean():.2f} complete"]
    for name, gate in (("plain", plain), ("hardened", hardened)):
        p = gate.probabilities(pairs)
        answered = p >= (gate.policy.answer_at or 0.0)
        shares = f"answers {answered[complete].mean():.3f} of the complete, {answered[~complete].mean():.3f} of the others"
        told.append(f"{name} AUROC {roc_auc_score(complete, p):.3f}, {shares}")
    return "; ".join(told)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.stuffing_filter", description=__doc__
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument(
        "--out",
        type=Path,
        default=SHIPPED_FILTER,
        help="the filter's folder; the package's own unless told",
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of a data set, at most")
    parser.add_argument(
        "--judge",
        action="store_true",
        help="judge the recipe; the filter that ships is left as it is",
    )
    parser.add_argument(
        "--leave-out",
        choices=attack_eval.SETS,
        help="judge: learn nothing from this one, and judge on it alone",
    )
    parser.add_argument(
        "--lists",
        type=int,
        default=attack_eval.LISTS,
        help="judge: lists that are attacked in each data set",
    )
    args = parser.parse_args()
    return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    sources = [one for one in SOURCES if one.name in attack_eval.SETS]
    if args.judge or args.leave_out:
        found = {
            one.name: test_lists(one, args.data, args.questions, args.lists) for one in sources
        }
        say("searched")
        evaluate_filter(found, args.leave_out, say)
        return
    cases = [
        case
        for one in sources
        for case in draw_lists(retrieve_dataset(open_source(one, args.data), one.retrievers, KS, sample=args.questions, seed=SEED),
                         questions=args.questions)
    ]  # fmt: skip
    say(f"drew {len(cases):,} lists")
    card = {
        "lists": len(cases),
        "sets": [one.name for one in sources],
        "questions": args.questions,
    }
    fit_filter([to_labelled_question(case) for case in cases], WordTable.load()).save(
        args.out, card=card, seed=SEED
    )
    say(f"filter at {args.out}")


if __name__ == "__main__":
    sys.exit(main())
