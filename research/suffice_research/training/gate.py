"""Make the gate that ships: `python -m suffice_research.training.gate --data DIR`, with `--preset
quality` the other one.

The same data and seed give the same bytes. Lessons come from six data sets, several retrievers and
several cut-offs, so that the gate has seen short and long lists and scores of unlike scale. No data
set may drown the others: each gives at most as many questions as the middle-sized ones have, and
each question comes with a few of the lists that were retrieved for it.

With `--study FILE` it also measures everything that is said of the gate; `make docs` makes the
results page and the model card of that file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from suffice.datasets.gold import draw_key
from suffice.evaluation.gate_evaluation import (
    PolicyChoice,
    gate_fitter,
    open_encoders,
    require_fit_extra,
    with_seen_questions,
)
from suffice.evaluation.searching import (
    RetrievedDataset,
    RetrievedQuestion,
    retrieve_dataset,
    to_labelled_question,
)
from suffice.gate.extraction import NO_ENCODERS, Encoders
from suffice.gate.gate import FAST, QUALITY, SHIPPED_MODELS, Gate
from suffice.registry import RERANKERS
from suffice.retrieval.builtin import DEFAULT_RERANKER
from suffice.retrieval.corpus import searchable_text
from suffice.storage import sha256_of
from suffice_research.embedding_cache import CachedEncoder
from suffice_research.training.gate_study import Material, gate_study
from suffice_research.training.sources import (
    SEED,
    ProgressLog,
    Source,
    chosen_sources,
    exit_code,
    open_source,
)
from suffice_research.training.transfer import DRAWS

__all__ = ["JUDGED", "KS", "QUESTIONS", "draw_lists", "main", "train_gate"]

QUESTIONS, LISTS = 700, 2  # at most so many questions of a data set, and lists of a question
JUDGED = 850  # questions of a data set that the figures are measured on, at most
KS = (3, 5, 10)
WITHOUT_SCORES, WITHOUT_TITLES = 4, 10  # one in so many lists, as some retrievers hand them over


def draw_lists(
    collected: RetrievedDataset, *, seed: int = SEED, questions: int = QUESTIONS, lists: int = LISTS
) -> list[RetrievedQuestion]:
    """Some questions, each with some of its lists.

    Which ones follows from the seed and the words of the question.
    """
    keys = sorted(collected.by)
    texts = [case.question.text for case in collected.by[keys[0]]]
    chosen = sorted(range(len(texts)), key=lambda at: draw_key(seed, texts[at]))[:questions]
    drawn = []
    for at in sorted(chosen):
        text = texts[at]
        order = sorted(keys, key=lambda key: draw_key(seed, f"{key}\0{text}"))
        drawn += [
            _vary_hits(collected.by[key][at], draw_key(seed, f"handed\0{key}\0{text}"))
            for key in order[:lists]
        ]
    return drawn


def _vary_hits(case: RetrievedQuestion, key: bytes) -> RetrievedQuestion:
    """The case as it is, or as it would come from a retriever that gives no scores, or from a store
    that keeps no titles.
    """
    evidence, deeper = case.evidence, case.deeper
    if key[0] % WITHOUT_SCORES == 0:
        evidence = replace(evidence, hits=tuple(replace(hit, score=None) for hit in evidence.hits))
        deeper = tuple(replace(hit, score=None) for hit in deeper)
    if key[1] % WITHOUT_TITLES == 0:
        texts = {name: searchable_text(one) for name, one in evidence.documents.items()}
        evidence = replace(
            evidence,
            documents={
                name: replace(one, title="", text=texts[name])
                for name, one in evidence.documents.items()
            },
        )
    return replace(case, evidence=evidence, deeper=deeper)


def train_gate(
    training: Mapping[str, Sequence[RetrievedQuestion]],
    *,
    encoders: Encoders = NO_ENCODERS,
    seed: int = SEED,
) -> Gate:
    """The shipped recipe: a gate from the drawn cases of every data set. With an encoder it is of
    the quality preset.
    """
    cases = [case for members in training.values() for case in members]
    sets = [name for name, members in training.items() for _ in members]
    gate = Gate.fit(
        [to_labelled_question(case) for case in cases],
        seed=seed,
        k=max(KS),
        encoder=encoders.encoder,
        sets=sets,
    )
    return with_seen_questions(gate, [case.question.text for case in cases])


# ---- the command


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.gate", description="Make the gate that ships."
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--preset", choices=(FAST, QUALITY), default=FAST)
    parser.add_argument("--out", type=Path, help="the gate's folder; the package's own unless told")
    parser.add_argument(
        "--study", type=Path, help="measure everything, and write the study here (minutes more)"
    )
    parser.add_argument(
        "--study-only", action="store_true", help="measure, and leave the gate as it is"
    )
    parser.add_argument(
        "--cross-encoder",
        action="store_true",
        help="measure the cross-encoder baselines, too (slow)",
    )
    parser.add_argument(
        "--vectors",
        type=Path,
        help="quality: where vectors are kept, so that a second run is quick",
    )
    parser.add_argument("--only", help="some of the data sets, with commas: for trying out")
    parser.add_argument(
        "--questions", type=int, default=QUESTIONS, help="to learn from, of a data set at most"
    )
    parser.add_argument(
        "--judged", type=int, default=JUDGED, help="to measure on, of a data set at most"
    )
    parser.add_argument(
        "--draws",
        type=int,
        default=DRAWS,
        help="of the questions to label, for the curve of labels",
    )
    parser.add_argument("--seed", type=int, default=SEED)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _options().parse_args(arguments)
    with TemporaryDirectory() as kept:
        args.vectors = args.vectors or Path(kept)
        return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    require_fit_extra()
    encoders = open_encoders(args.preset)
    if encoders.encoder is not None:
        encoders = Encoders(CachedEncoder(encoders.encoder, args.vectors))
    wanted = chosen_sources(args.only)
    collected = {}
    for one in wanted:
        most = max(args.questions, args.judged if args.study else 0)
        collected[one.name] = retrieve_dataset(
            open_source(one, args.data), one.retrievers, KS, sample=most, seed=args.seed
        )
        say(f"searched {one.name}")
    training = {
        one.name: draw_lists(
            collected[one.name],
            seed=args.seed,
            questions=max(1, round(args.questions * one.share)),
        )
        for one in wanted
    }

    def recipe(some: Mapping[str, Sequence[RetrievedQuestion]]) -> Gate:
        return train_gate(some, encoders=encoders, seed=args.seed)

    if not args.study_only:
        out = args.out or SHIPPED_MODELS / f"gate-{args.preset}"
        recipe(training).save(out)
        say(f"gate of {sum(map(len, training.values())):,} lists at {out}")
    if args.study:
        material = Material(
            preset=args.preset,
            training=training,
            judged={
                one.name: collected[one.name].questions(one.judged_by, max(KS)) for one in wanted
            },
            recipe=recipe,
            fit=gate_fitter(PolicyChoice(), encoders, args.seed),
            reranker=RERANKERS.get(DEFAULT_RERANKER)() if args.cross_encoder else None,
            seed=args.seed,
            draws=args.draws,
            data={
                file: sha256_of(args.data / file) for one in wanted for file in one.files.values()
            },
            settings={
                "questions": args.questions,
                "judged": args.judged,
                "draws": args.draws,
                "ks": list(KS),
                "without scores": WITHOUT_SCORES,
                "without titles": WITHOUT_TITLES,
                "sources": [_source_record(one, training[one.name]) for one in wanted],
            },
        )
        say(f"study at {gate_study(material, say).save(args.study)}")


def _source_record(source: Source, drawn: Sequence[RetrievedQuestion]) -> dict[str, object]:
    """A data set for the card: what it is and what was drawn of it."""
    return {
        "name": source.name,
        "licence": source.licence,
        "questions": len({case.question.text for case in drawn}),
        "lists": len(drawn),
        "complete": sum(case.complete for case in drawn) / max(len(drawn), 1),
        "retrievers": list(source.retrievers),
        "judged by": source.judged_by,
    }


if __name__ == "__main__":
    sys.exit(main())
