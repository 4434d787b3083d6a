"""Make the shipped ranker of `bridge`: `python -m suffice_research.training.bridge --data DIR`;
with `--study FILE` evaluate it.

The same data and seed give the same bytes. Questions come from five data sets;
`suffice_research.training.bridge_training` describes the training.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from suffice.registry import ENCODERS
from suffice.retrieval.bridge import SHIPPED
from suffice.retrieval.builtin import DEFAULT_ENCODER
from suffice.storage import sha256_of
from suffice_research.training.bridge_study import bridge_study
from suffice_research.training.bridge_training import (
    SEED,
    TREES,
    bridge_questions,
    candidate_states,
    fit_ranker,
    fitted_path_states,
)
from suffice_research.training.sources import ProgressLog, chosen_sources, exit_code, open_source

__all__ = ["main"]

# Maximum training questions per data set. Fewer for news, whose links tell less and must not
# dominate.
LEARNED: Mapping[str, int] = {
    "hotpotqa": 800,
    "2wikimultihopqa": 800,
    "musique": 800,
    "multihop_rag": 350,
    "controlled": 200,
}


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.bridge", description="Make the ranker of bridge."
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument(
        "--out",
        type=Path,
        default=SHIPPED,
        help="the ranker's folder; the package's own unless told",
    )
    parser.add_argument(
        "--study",
        type=Path,
        help="measure by folds and by left-out data set, and write the study here",
    )
    parser.add_argument(
        "--study-only", action="store_true", help="measure, and leave the ranker as it is"
    )
    parser.add_argument(
        "--failures", type=int, default=0, help="print so many failures of each data set to read"
    )
    parser.add_argument("--only", help="some of the data sets, with commas: for trying out")
    parser.add_argument("--questions", type=int, help="of a data set at most: for trying out")
    parser.add_argument("--seed", type=int, default=SEED)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _options().parse_args(arguments)
    return exit_code(lambda: _run(args))


def _run(args: argparse.Namespace) -> None:
    say = ProgressLog()
    wanted = chosen_sources(args.only, LEARNED)
    encoder = ENCODERS.get(DEFAULT_ENCODER)()
    training, states = [], []
    for source in wanted:
        most = min(args.questions or LEARNED[source.name], LEARNED[source.name])
        training.append(
            bridge_questions(open_source(source, args.data), encoder, limit=most, seed=args.seed)
        )
        some = candidate_states(training[-1], seed=args.seed)
        states.append((some, fitted_path_states(training[-1], some, seed=args.seed)))
        count = sum(len(one.rows) for one in states[-1])
        say(
            f"{source.name}: {len(training[-1].questions)} questions, {count:,} candidates in states"
        )
    data = {
        file: sha256_of(args.data / file) for source in wanted for file in source.files.values()
    }
    if not args.study_only:
        card = {
            "data": data,
            "trees": dict(TREES),
            "questions": {one.name: len(one.questions) for one in training},
        }
        ranker = fit_ranker([one for both in states for one in both], seed=args.seed)
        ranker.save(args.out, card=card, seed=args.seed)
        say(f"ranker at {args.out}")
    if args.study:
        made = bridge_study(
            training, states, data=data, seed=args.seed, say=say, failures=args.failures
        )
        say(f"study at {made.save(args.study)}")


if __name__ == "__main__":
    sys.exit(main())
