"""What the stuffing filter is worth: `python -m robustness.filter_eval --data DIR`.

Filter and gate are fitted on some of the questions and judged on others: what the filter costs on
lists that nobody touched, and how far the attacks of `robustness.attacks`, none of which it has
learned from, still come. `--leave-out SET` judges on a data set that neither has seen. Decision 19
has the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from robustness import attack_eval
from robustness.attack_eval import AttackSetting, attack_table, retrieved_hits, run_attack
from robustness.attacks import ATTACKS
from suffice.datasets.gold import split
from suffice.evaluation.searching import RetrievedQuestion, retrieve_dataset, to_labelled_question
from suffice.gate.gate import Gate
from suffice.gate.question import WordTable
from suffice_research.training.gate_data import KS, draw_lists
from suffice_research.training.sources import SOURCES, ProgressLog, Source, exit_code, open_source
from suffice_research.training.stuffing_filter import QUESTIONS, fit_filter

SHARES = (0.6, 0.0001, 0.3999)  # to learn from, nothing, to judge by


@dataclass(frozen=True)
class TestLists:
    """Of one data set: lists to learn from, whole lists to judge by, and those to attack."""

    name: str
    training: Sequence[RetrievedQuestion]
    judged: Sequence[RetrievedQuestion]
    attacked: AttackSetting


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
    field = AttackSetting.of(source.name, list(zip(*deepest, strict=True)), attacked)
    return TestLists(
        source.name, draw_lists(replace(found, by=every), questions=questions), deepest[0], field
    )


def evaluate_filter(found: Mapping[str, TestLists], left_out: str | None, say: ProgressLog) -> None:
    """Print what the filter costs, and what it stops."""
    training_set = [one for name, one in found.items() if name != left_out]
    judged = [found[left_out]] if left_out else training_set
    training = [to_labelled_question(case) for one in training_set for case in one.training]
    words = WordTable.load()
    plain = Gate.fit(
        training,
        k=max(KS),
        preset="fast",
        words=words,
        sets=[one.name for one in training_set for _ in one.training],
    )
    say("fitted a gate")
    hardened = replace(plain, stuffing_filter=fit_filter(training, words))
    say("fitted a filter")
    for one in judged:
        print(f"{one.name}: {_costs(plain, hardened, one)}", flush=True)
    outcomes = {
        one.name: {each.name: run_attack(hardened, one.attacked, each) for each in ATTACKS}
        for one in judged
    }
    say("attacked")
    for promised in (True, False):
        some = [one for one in ATTACKS if one.promised is promised]
        table = attack_table(
            "A hardened gate", "Points over neutral text.", some, outcomes, bound=promised
        )
        print(f"\n{table.says}\n\n{table.table()}\n{table.verdict()}")


def _costs(plain: Gate, hardened: Gate, one: TestLists) -> str:
    pairs = [(case.question.text, retrieved_hits(case)) for case in one.judged]
    complete = np.array([case.complete for case in one.judged])
    lines = [f"{len(pairs)} lists as they came, {complete.mean():.2f} complete"]
    for name, gate in (("plain", plain), ("hardened", hardened)):
        p = gate.probabilities(pairs)
        answered = p >= (gate.policy.answer_at or 0.0)
        shares = (
            f"answers {answered[complete].mean():.3f} of the complete, "
            f"{answered[~complete].mean():.3f} of the others"
        )
        lines.append(f"{name} AUROC {roc_auc_score(complete, p):.3f}, {shares}")
    return "; ".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m robustness.filter_eval", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of a data set, at most")
    parser.add_argument(
        "--leave-out",
        choices=attack_eval.SETS,
        help="learn nothing from this one, and judge on it alone",
    )
    parser.add_argument(
        "--lists",
        type=int,
        default=attack_eval.LISTS,
        help="lists that are attacked in each data set",
    )
    args = parser.parse_args()
    return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    sources = [one for one in SOURCES if one.name in attack_eval.SETS]
    found = {one.name: test_lists(one, args.data, args.questions, args.lists) for one in sources}
    say("searched")
    evaluate_filter(found, args.leave_out, say)


if __name__ == "__main__":
    sys.exit(main())
