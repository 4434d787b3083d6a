"""Make the ranker of `bridge` for texts without titles:
`python -m suffice_research.training.bridge_untitled --data DIR`; with `--study FILE` evaluate it.

It is trained on three data sets with all titles removed and on our everyday texts, which have none
(`suffice_research.training.bridge_data`). The same data and seed give the same bytes.
`suffice_research.training.bridge` makes the ranker for documents with titles.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from suffice.datasets.dataset import Dataset
from suffice.evaluation.metrics import judge_rankings
from suffice.evaluation.report import Cell, Section, Table, format_cell
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.significance import compare, interval
from suffice.registry import ENCODERS, RETRIEVERS
from suffice.retrieval.bridge import SHIPPED_UNTITLED, Ranker
from suffice.retrieval.builtin import DEFAULT_ENCODER
from suffice.storage import package_versions, sha256_of
from suffice.types import DocId
from suffice_research.published_cells import WithPublished
from suffice_research.study import Study
from suffice_research.training.bridge_data import (
    EVERYDAY,
    everyday_judged,
    everyday_learned,
    family,
    untitled,
)
from suffice_research.training.bridge_training import (
    SEED,
    TREES,
    BridgeQuestions,
    CandidateStates,
    bridge_questions,
    candidate_states,
    fit_ranker,
    fitted_path_states,
)
from suffice_research.training.cases import EVERYDAY as EVERYDAY_FOLDER
from suffice_research.training.cases import UNSEEN_SOURCES
from suffice_research.training.sources import ProgressLog, chosen_sources, exit_code, open_source

__all__ = ["main", "untitled_study"]

LEARNED: Mapping[str, int] = {"hotpotqa": 550, "2wikimultihopqa": 550, "musique": 550}
LEARNED_EVERYDAY = 2500
# Other questions, per data set: the same ones, however many it learns from.
JUDGED_FROM, JUDGED = 250, 150
BEST, OTHERS = 24, 6  # candidates per state: fewer than with titles, so that a study takes minutes
DEPTH = 5
ABOVE_HYBRID = 0.10  # minimum gain in complete@5 on everyday questions
Ids = list[list[DocId]]
Say = Callable[[str], None]


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.bridge_untitled",
        description="Make the ranker of bridge for texts without titles.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument(
        "--out",
        type=Path,
        default=SHIPPED_UNTITLED,
        help="the ranker's folder; the package's own unless told",
    )
    parser.add_argument(
        "--study",
        type=Path,
        help="measure on other questions, and write the study here",
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
    sources = chosen_sources(args.only, LEARNED)
    encoder = ENCODERS.get(DEFAULT_ENCODER)()

    def drawn(dataset: Dataset, most: int | None = None) -> BridgeQuestions:
        return bridge_questions(dataset, encoder, limit=most, seed=args.seed)

    judged: list[BridgeQuestions] = []
    states: list[CandidateStates] = []
    counts: dict[str, int] = {}
    datasets = [(untitled(open_source(one, args.data)), LEARNED[one.name]) for one in sources]
    datasets.append((everyday_learned(EVERYDAY_FOLDER), LEARNED_EVERYDAY))
    for dataset, most in datasets:
        most = min(args.questions or most, most)
        learned = drawn(dataset, most + (JUDGED if dataset.name != EVERYDAY else 0))
        if dataset.name != EVERYDAY:
            learned, rest = split(learned, min(most, JUDGED_FROM), JUDGED)
            judged.append(rest)
        draw: dict[str, int] = {"seed": args.seed, "best": BEST, "others": OTHERS}
        some = candidate_states(learned, **draw)
        states += [some, fitted_path_states(learned, some, **draw)]
        counts[dataset.name] = len(learned.questions)
        count = sum(len(one.rows) for one in states[-2:])
        say(f"{dataset.name}: {counts[dataset.name]} questions, {count:,} candidates in states")
    data = {file: sha256_of(args.data / file) for one in sources for file in one.files.values()}
    card = {"data": data, "trees": dict(TREES), "questions": counts}
    ranker = fit_ranker(states, seed=args.seed)
    ranker.save(args.out, card=card, seed=args.seed)
    say(f"ranker at {args.out}")
    if args.study:
        everyday = drawn(everyday_judged(EVERYDAY_FOLDER))
        made = untitled_study(ranker, judged, everyday, card=card, seed=args.seed, say=say)
        say(f"study at {made.save(args.study)}")


# --------------------------------------------------------------------------------- the study


def split(
    questions: BridgeQuestions, start: int, count: int
) -> tuple[BridgeQuestions, BridgeQuestions]:
    """All but `count` questions from `start` on, and these."""
    numbers = np.arange(len(questions.questions))
    kept = (numbers >= start) & (numbers < start + count)
    first, rest = (
        replace(
            questions,
            questions=tuple(questions.questions[at] for at in np.flatnonzero(which)),
            pools=tuple(questions.pools[at] for at in np.flatnonzero(which)),
        )
        for which in (~kept, kept)
    )
    return first, rest


def untitled_study(
    ranker: Ranker,
    judged: Sequence[BridgeQuestions],
    everyday: BridgeQuestions,
    *,
    card: Mapping[str, Any],
    seed: int,
    say: Say,
) -> Study:
    """Evaluate a ranker on questions that it was not trained on, against hybrid."""
    started = time.perf_counter()
    tables = (_everyday_table(ranker, everyday, seed, say), _wiki_table(ranker, judged, seed, say))
    return Study(
        name="bridge-untitled",
        title="The bridge retriever without titles",
        seed=seed,
        settings={"trees": card["trees"], "questions": card["questions"]},
        data=card["data"],
        sections=(
            Section("Without titles", (tables[1],), UNTITLED_SAYS),
            Section("Everyday texts", (tables[0],), EVERYDAY_SAYS),
        ),
        timings={"all": time.perf_counter() - started},
        commit=source_commit(),
        packages=package_versions(),
    )


UNTITLED_SAYS = (
    "Other questions of the data sets that the ranker learned from, all titles removed. In brackets: 95 % bootstrap interval over "
    "questions."
)
EVERYDAY_SAYS = (
    "Our everyday texts pooled into one corpus without titles, beside hybrid. No ranker learned from these questions. *Kept files*: "
    f"questions of files that nothing was learned from. In parentheses: the figure to reach, {ABOVE_HYBRID:.2f} above hybrid."
)


def _wiki_table(ranker: Ranker, judged: Sequence[BridgeQuestions], seed: int, say: Say) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in judged:
        gold = [example.gold.doc_ids for example in one.questions]
        rankings = [judge_rankings(found, gold, depth=DEPTH) for found in _both(ranker, one)]
        figures = [
            interval(some, f"{metric}@{DEPTH}", seed=seed)
            for metric in ("recall", "complete")
            for some in rankings
        ]
        rows.append((family(one.name), len(gold), *figures))
        say(f"{one.name}: {', '.join(map(format_cell, figures))}")
    columns = [
        f"{metric}@{DEPTH}{kind}" for metric in ("recall", "complete") for kind in ("", ", hybrid")
    ]
    return Table("No titles", ("data set", "n", *columns), tuple(rows))


def _everyday_table(ranker: Ranker, one: BridgeQuestions, seed: int, say: Say) -> Table:
    metric = f"complete@{DEPTH}"
    lists = _both(ranker, one)
    gold = [example.gold.doc_ids for example in one.questions]
    files = [f"everyday/{example.gold.kind}" for example in one.questions]
    kinds = {
        "all": range(len(gold)),
        "one document": [at for at, needed in enumerate(gold) if len(needed) == 1],
        "several documents": [at for at, needed in enumerate(gold) if len(needed) > 1],
        "kept files": [at for at, file in enumerate(files) if file in UNSEEN_SOURCES],
    }
    rows: list[tuple[Cell, ...]] = []
    for label, which in kinds.items():
        if not which:
            continue
        ours, hybrid = (
            judge_rankings([some[at] for at in which], [gold[at] for at in which], depth=DEPTH)
            for some in lists
        )
        mine, others = (interval(some, metric, seed=seed) for some in (ours, hybrid))
        goal = ABOVE_HYBRID + (others.value or 0.0)
        above = compare(ours, hybrid, metric, seed=seed)
        rows.append((label, len(which), WithPublished(mine, goal), others, above))
        say(f"everyday, {label}: {', '.join(map(format_cell, rows[-1][1:]))}")
    columns = ("questions", "n", "bridge", "hybrid", "above hybrid")
    return Table("Everyday", columns, tuple(rows))


def _both(ranker: Ranker, one: BridgeQuestions) -> tuple[Ids, Ids]:
    """The ranker's choice and hybrid's hits for each question."""
    hybrid = RETRIEVERS.get("hybrid")(one.bridge.store, encoder=one.bridge.encoder)
    hits = hybrid.search([example.question.text for example in one.questions], k=DEPTH)
    ours = one.choose(ranker, np.arange(len(one.questions)), DEPTH)
    return ours, [[hit.doc_id for hit in found] for found in hits]


if __name__ == "__main__":
    sys.exit(main())
