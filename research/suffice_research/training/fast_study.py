"""The fast gate's figures: `python -m suffice_research.training.fast_study --data DIR --study FILE`.

The shipped fast gate was trained on questions of all parts of its six data sets, so it is judged
only on domains that it has not seen. On the six, gates are fitted by folds, and with the set left
out. Their lists come from all documents of a set, like those of the training.

With `--gates DIR` it saves gates that were fitted without one data set, to measure how they stop a
search over its corpus.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from suffice.evaluation.gate_evaluation import PolicyChoice, require_fit_extra
from suffice.evaluation.searching import RetrievedQuestion, retrieve_dataset
from suffice.gate.gate import FAST, Gate
from suffice.gate.training import LabelledQuestion
from suffice.storage import sha256_of
from suffice_research.study import Study
from suffice_research.training.gate import QUESTIONS, collect_training, train_gate
from suffice_research.training.gate_data import (
    CHAINS_WITHOUT_TITLES,
    KS,
    WITHOUT_SCORES,
    GateData,
)
from suffice_research.training.gate_study import THREE, Material, gate_study
from suffice_research.training.sources import SEED, SOURCES, ProgressLog, exit_code, open_source

__all__ = ["JUDGED", "fast_study", "fit_without", "judged_lists", "main"]

JUDGED = 850  # questions per data set, at most
SAYS = {
    "As it ships": (
        "Domains that the gate has not learned from. It has learned from questions of all parts of its own data sets: their figures, "
        "below, are of gates fitted for them. Ten hits of BM25 among all passages of the domain; drawn: lists of one to ten hits, "
        "complete half of the time, filled up with passages that look right. Single sentences: the same from one sentence of each "
        "passage. File names: they stand where titles stood, and the titles in the texts. Larger chunks: up to three passages "
        "joined into one without a title. In brackets: 95 % bootstrap interval over questions. Right: answered where the list is "
        "complete, not answered where it is not."
    ),
    "On a data set it has not seen": (
        "The shipped recipe fitted on all data sets but one, judged on that one."
    ),
}
ALONE = "Shipped, beside others"  # a table without others: there is no reader

Lists = Mapping[str, Sequence[RetrievedQuestion]]  # by data set


def judged_lists(data: Path, *, questions: int = JUDGED, seed: int = SEED) -> Lists:
    """Ten hits per question of each data set; FRAMES by its titles, the others by BM25."""
    found = {}
    for source in SOURCES:
        by = source.judged_by
        dataset = open_source(source, data)
        searched = retrieve_dataset(dataset, (by,), KS[-1:], sample=questions, seed=seed)
        found[source.name] = searched.questions(by, KS[-1])
    return found


def fit_without(training: Lists, name: str, *, seed: int = SEED) -> Gate:
    """The shipped recipe on all data sets but this one."""
    rest = {other: lists for other, lists in training.items() if other != name}
    return train_gate(rest, preset=FAST, seed=seed)


def fast_study(material: Material, say: ProgressLog) -> Study:
    """The gate's study, in the words of a gate without a reader."""
    study = gate_study(material, say)
    return replace(
        study,
        sections=tuple(
            replace(
                one,
                shown=tuple(table for table in one.shown if table.title != ALONE),
                says=SAYS.get(one.title, one.says),
            )
            for one in study.sections
        ),
    )


def _settings(training: Lists, judged: int) -> dict[str, Any]:
    return {
        "questions": QUESTIONS[FAST],
        "judged": judged,
        "ks": list(KS),
        "without scores": WITHOUT_SCORES,
        "without titles": CHAINS_WITHOUT_TITLES,
        "sources": [
            {
                "name": source.name,
                "licence": source.licence,
                "questions": len({case.question.text for case in training[source.name]}),
                "lists": len(training[source.name]),
                "complete": sum(case.complete for case in training[source.name])
                / len(training[source.name]),
            }
            for source in SOURCES
        ],
    }


# ---- the command


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.fast_study",
        description="Measure the fast gate; the one that ships is left as it is.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--study", type=Path, help="measure everything, and write the study here")
    parser.add_argument(
        "--gates", type=Path, help="save gates without one data set here, as gate-without-NAME"
    )
    parser.add_argument(
        "--judged", type=int, default=JUDGED, help="to measure on, of a data set at most"
    )
    args = parser.parse_args(arguments)
    return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    require_fit_extra()
    data = GateData(args.data, say=say)
    training = collect_training(data, FAST)
    if args.gates:
        for name in THREE:
            folder = args.gates / f"gate-without-{name}"
            fit_without(training, name).save(folder)
            say(f"gate at {folder}")
    if not args.study:
        return

    def recipe(some: Lists) -> Gate:
        return train_gate(some, preset=FAST)

    def fit(some: Sequence[LabelledQuestion]) -> Gate:
        return Gate.fit(some, seed=SEED, preset=FAST, **PolicyChoice().options)

    material = Material(
        preset=FAST,
        gate=Gate.load(preset=FAST),
        training=training,
        judged={},
        unseen=list(data.unseen(questions=args.judged)),
        folds=judged_lists(args.data, questions=args.judged),
        recipe=recipe,
        fit=fit,
        seed=SEED,
        data={file: sha256_of(args.data / file) for one in SOURCES for file in one.files.values()},
        settings=_settings(training, args.judged),
    )
    say(f"study at {fast_study(material, say).save(args.study)}")


if __name__ == "__main__":
    sys.exit(main())
