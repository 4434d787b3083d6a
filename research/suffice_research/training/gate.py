"""Make the shipped gates: `python -m suffice_research.training.gate --data DIR`, with `--preset
fast` the one without a reader.

The same data and seed give the same bytes. The training data come from thirteen data sets, several
retrievers and several cut-offs, see `gate_data`: single-document questions and chains, short and
long lists, with and without titles, and scores on different scales. Each data set contributes a
limited number of questions, and in the ensemble's steady part all have the same weight.

With `--study FILE` it also measures all figures of the standard gate; `make docs` generates the
results page and the model card from that file. Reading takes most of the time: with `--readings
FILE` the reader's output is stored, so that a second run is fast. `fast_study` measures the fast
gate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from suffice.evaluation.gate_evaluation import PolicyChoice, require_fit_extra, with_seen_questions
from suffice.evaluation.searching import RetrievedQuestion, to_labelled_question
from suffice.gate.gate import FAST, SHIPPED_MODELS, STANDARD, FastGate, Gate
from suffice.gate.policy import Policy
from suffice.gate.reader import Reader
from suffice.gate.training import LabelledQuestion
from suffice.registry import RERANKERS
from suffice.retrieval.builtin import DEFAULT_RERANKER
from suffice.storage import sha256_of
from suffice_research.stored_readings import StoredReader
from suffice_research.training.cases import LEARN, STACK, TEST
from suffice_research.training.gate_data import (
    KS,
    LICENCES,
    WITHOUT_SCORES,
    WITHOUT_TITLES,
    GateData,
)
from suffice_research.training.gate_study import Material, gate_study, shipped_lists
from suffice_research.training.sources import SEED, ProgressLog, exit_code

__all__ = ["EVERYDAY_SHARE", "JUDGED", "QUESTIONS", "collect_training", "main", "train_gate"]

QUESTIONS = {STANDARD: 160, FAST: 700}  # per data set, at most; reading takes time
EVERYDAY_SHARE = 5  # our own cases resemble real questions: five times as many
LISTS = 1  # retrieved lists per question; as many are drawn
DRAWN = {"squad2", "policyqa", "tatqa"}  # also evaluated on drawn lists
MIN_ANSWER_AT = 1 / 3
JUDGED = 400  # questions per data set for the figures, at most
# Gates of one data set are fitted and evaluated on questions that neither the reader nor its fast
# gate was trained on.
FOLD_PARTS = (STACK, TEST)


def collect_training(
    data: GateData, preset: str, *, questions: int | None = None, seed: int = SEED
) -> dict[str, list[RetrievedQuestion]]:
    """The lists of every data set for training a gate of this preset.

    A gate with a reader is not trained on questions that the reader was trained on: it would trust
    the reader too much.
    """
    most = questions or QUESTIONS[preset]
    if preset == FAST:
        return data.chains(questions=most, seed=seed)
    found = {}
    for name in data.names:
        many = most * EVERYDAY_SHARE if name == "everyday" else most
        found[name] = data.training(name, (STACK,), questions=many, lists=LISTS, seed=seed)
    return {name: lists for name, lists in found.items() if lists}


def train_gate(
    training: Mapping[str, Sequence[RetrievedQuestion]],
    *,
    preset: str = STANDARD,
    reader: Reader | None = None,
    fast: FastGate | None = None,
    seed: int = SEED,
) -> Gate:
    """The shipped recipe: a gate from the lists of every data set."""
    cases = [case for members in training.values() for case in members]
    sets = [name for name, members in training.items() for _ in members]
    gate = Gate.fit(
        [to_labelled_question(case) for case in cases],
        seed=seed, k=max(KS), preset=preset, reader=reader, fast=fast, sets=sets,
    )  # fmt: skip
    gate = replace(gate, policy=raise_threshold(gate.policy))
    return with_seen_questions(gate, [case.question.text for case in cases])


def raise_threshold(policy: Policy) -> Policy:
    """The policy, but no answer where the hits are twice as likely to be incomplete as complete.

    F1 hardly changes over a wide range of thresholds: the highest was at 0.38 with one reader and
    at 0.28 with the next, which let a third more of the incomplete lists pass.
    """
    if policy.answer_at is None:
        return policy
    return replace(policy, answer_at=max(policy.answer_at, MIN_ANSWER_AT))


def fast_of_learned(data: GateData, *, questions: int, seed: int = SEED) -> FastGate:
    """A fast gate without the questions that the standard gate is trained or evaluated on."""
    chains = data.chains(parts=(LEARN,), questions=questions, seed=seed)
    return FastGate("of the part learn", train_gate(chains, preset=FAST, seed=seed).model)


def shipped(gate: Gate, reader: Reader) -> Gate:
    """The standard gate with the shipped reader and fast gate, which is trained on more data."""
    readers = replace(gate.readers, reader=reader, fast=FastGate.open())
    return replace(gate, readers=readers, card={**gate.card, **readers.names})


def read_ahead(reader: StoredReader | None, *lists: Sequence[RetrievedQuestion]) -> None:
    """Read all lists, with one process per core."""
    if reader is not None:
        examples = [to_labelled_question(one) for members in lists for one in members]
        reader.read_all(examples, k=max(KS))


# ---- the command


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.gate", description="Make the gate that ships."
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--preset", choices=(STANDARD, FAST), default=STANDARD)
    parser.add_argument("--out", type=Path, help="the gate's folder; the package's own unless told")
    parser.add_argument(
        "--study", type=Path, help="measure the standard gate, and write the study here"
    )
    parser.add_argument(
        "--study-only", action="store_true", help="measure, and leave the gate as it is"
    )
    parser.add_argument(
        "--shipped",
        action="store_true",
        help="measure the gate as it ships, and fit no others (an hour less)",
    )
    parser.add_argument(
        "--cross-encoder",
        action="store_true",
        help="measure the cross-encoder baselines, too (slow)",
    )
    parser.add_argument("--readings", type=Path, help="where readings are kept for the next run")
    parser.add_argument("--only", help="some of the data sets, with commas: for trying out")
    parser.add_argument("--questions", type=int, help="to learn from, of a data set at most")
    parser.add_argument(
        "--judged", type=int, default=JUDGED, help="to measure on, of a data set at most"
    )
    parser.add_argument("--seed", type=int, default=SEED)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _options()
    args = parser.parse_args(arguments)
    if args.preset == FAST and (args.study or args.study_only):
        parser.error("measure the fast gate with: python -m suffice_research.training.fast_study")
    return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    require_fit_extra()
    reader = None
    if args.preset == STANDARD:
        reader = StoredReader(Reader(), args.readings, progress=say.progress)
    data = GateData(args.data, only=args.only.split(",") if args.only else (), say=say)
    training = collect_training(data, args.preset, questions=args.questions, seed=args.seed)

    fast = None
    if reader is not None:
        fast = fast_of_learned(data, questions=QUESTIONS[FAST], seed=args.seed)
        say("fast gate for the stack")
    options = {"preset": args.preset, "reader": reader, "fast": fast, "seed": args.seed}

    def recipe(some: Mapping[str, Sequence[RetrievedQuestion]]) -> Gate:
        return train_gate(some, **options)

    def fit(some: Sequence[LabelledQuestion]) -> Gate:
        return Gate.fit(some, **options, **PolicyChoice().options)

    read_ahead(reader, *training.values())
    gate: Gate | None = None
    if not args.study_only:
        out = args.out or SHIPPED_MODELS / f"gate-{args.preset}"
        gate = recipe(training)
        (gate if reader is None else shipped(gate, Reader())).save(out)
        say(f"gate of {sum(map(len, training.values())):,} lists at {out}")
    if args.study:
        judged = {name: data.judged(name, (TEST,), questions=args.judged) for name in training}
        for name in sorted(DRAWN.intersection(training)):
            lists = data.judged(name, (TEST,), questions=args.judged, kind="drawn")
            judged[f"{name}, drawn"] = lists
        unseen = list(data.unseen(questions=args.judged))
        folds: dict[str, Sequence[RetrievedQuestion]] = {
            name: data.judged(name, FOLD_PARTS, questions=2 * args.judged)
            for name in ("hotpotqa", "2wikimultihopqa", "musique", "frames")
            if name in training and not args.shipped
        }
        material = Material(
            preset=STANDARD,
            gate=gate or recipe(training),
            training=training,
            judged=judged,
            unseen=unseen,
            folds=folds,
            recipe=recipe,
            fit=fit,
            reranker=RERANKERS.get(DEFAULT_RERANKER)() if args.cross_encoder else None,
            seed=args.seed,
            data={
                str(file.relative_to(args.data)): sha256_of(file)
                for name in training
                for file in sorted((args.data / name).glob("*.*"))
            },
            settings={
                "questions": args.questions or QUESTIONS[STANDARD],
                "judged": args.judged,
                "ks": list(KS),
                "without scores": WITHOUT_SCORES,
                "without titles": WITHOUT_TITLES,
                "sources": [_source_record(name, lists) for name, lists in training.items()],
            },
        )
        read_ahead(reader, *(one.cases for one in shipped_lists(material)), *folds.values())
        say(f"study at {gate_study(material, say).save(args.study)}")


def _source_record(name: str, drawn: Sequence[RetrievedQuestion]) -> dict[str, object]:
    """A data set for the card: its description and what was drawn from it."""
    return {
        "name": name,
        "licence": LICENCES[name],
        "questions": len({case.question.text for case in drawn}),
        "lists": len(drawn),
        "complete": sum(case.complete for case in drawn) / max(len(drawn), 1),
    }


if __name__ == "__main__":
    sys.exit(main())
