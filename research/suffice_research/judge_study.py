"""What a language model behind the gate gains, and what it costs: `suffice_research.judge_study`.

    python -m suffice_research.judge_study prompts --data DIR --readings FILE --out prompts.jsonl
    (any server or machine answers them: see `Answer`)
    python -m suffice_research.judge_study measure --data DIR --readings FILE --answers answers.jsonl

Lists that the shipped gate has not learned from: our everyday files that are kept for judging, the
test parts of three Wikipedia sets, and COVID-QA. Whatever is learned about the judge is learned on
other questions than those that are counted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from suffice.datasets.gold import draw_key
from suffice.evaluation.gate_evaluation import gate_inputs
from suffice.evaluation.reading_cache import CachedReader
from suffice.evaluation.searching import RetrievedQuestion, to_labelled_question
from suffice.gate.extraction import reader_input
from suffice.gate.gate import Gate
from suffice.gate.hits import normalize_hits
from suffice.gate.reader import Reader
from suffice.integrations.judge import MAX_TOKENS, VOTE_TOKENS, VOTES, judge_prompt, rotated
from suffice_research.training.gate_data import GateData
from suffice_research.training.reader_data import TEST
from suffice_research.training.sources import SEED, ProgressLog, exit_code

EVERYDAY, WIKIPEDIA, COVID = "everyday", "Wikipedia", "COVID-QA"
WIKIPEDIA_SETS = ("hotpotqa", "2wikimultihopqa", "musique")
SIZES = {EVERYDAY: 200, WIKIPEDIA: 201, COVID: 100}
VOTED = 100  # lists of each domain that are voted on as well
SEEN = {EVERYDAY: "unseen", WIKIPEDIA: "seen: other questions of these sets", COVID: "unseen"}


@dataclass(frozen=True)
class JudgedList:
    """A list to be judged, under a key that finds its answer."""

    key: str
    domain: str
    case: RetrievedQuestion


def judged_lists(data: Path, say: ProgressLog, seed: int = SEED) -> Iterator[JudgedList]:
    found = GateData(data, only=("everyday", "covidqa", *WIKIPEDIA_SETS), say=say)
    by_domain: dict[str, list[RetrievedQuestion]] = {one: [] for one in SIZES}
    for name, kinds in found.unseen(questions=max(SIZES.values())):
        if name.startswith("everyday/"):
            by_domain[EVERYDAY] += kinds["drawn"]
        elif name == "covidqa":
            by_domain[COVID] += kinds[""]
    for name in WIKIPEDIA_SETS:
        most = SIZES[WIKIPEDIA] // len(WIKIPEDIA_SETS)
        by_domain[WIKIPEDIA] += found.judged(name, (TEST,), questions=most)
    for domain, cases in by_domain.items():
        drawn = sorted(cases, key=lambda one: draw_key(seed, f"judge\0{one.question.text}"))
        for at, case in enumerate(drawn[: SIZES[domain]]):
            yield JudgedList(f"{domain}/{at}", domain, case)


def _prompts(args: argparse.Namespace, say: ProgressLog) -> None:
    lists = list(judged_lists(args.data, say))
    with args.out.open("w", encoding="utf-8") as file:
        for one in lists:
            (pair,) = gate_inputs([one.case])
            given = reader_input(normalize_hits(*pair[:2], k=10))
            for vote in range(VOTES if int(one.key.rpartition("/")[2]) < VOTED else 1):
                row = {
                    "key": f"{one.key}#{vote}" if vote else one.key,
                    "messages": [{"role": "user", "content": judge_prompt(*rotated(given, vote))}],
                    "max_tokens": VOTE_TOKENS if vote else MAX_TOKENS,
                    "first_token_logprobs": ["yes", "no"],
                }
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    say(f"{len(lists)} prompts at {args.out}")
    if args.readings is not None:  # the gate may read while the judge does
        _gate_with(args.readings, lists, say)


def _gate_with(readings: Path, lists: Sequence[JudgedList], say: ProgressLog) -> Gate:
    """The shipped gate, which has read every list."""
    from dataclasses import replace

    gate = Gate.load()
    reader = CachedReader(Reader(threads=1), readings, progress=say.progress, total=len(lists))
    for one in lists:
        example = to_labelled_question(one.case)
        hits = normalize_hits(example.question, example.hits, documents=example.documents, k=10)
        reader.read(*reader_input(hits))
    return replace(gate, encoders=replace(gate.encoders, reader=reader))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m suffice_research.judge_study")
    commands = parser.add_subparsers(required=True)
    prompts = commands.add_parser("prompts", help="write a request for each list")
    prompts.set_defaults(run=_prompts)
    for one in (prompts,):
        one.add_argument("--data", type=Path, required=True, help="the folder of data sets")
        one.add_argument("--readings", type=Path, help="keeps what the reader says")
    prompts.add_argument("--out", type=Path, required=True)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _options().parse_args(arguments)
    return exit_code(lambda: args.run(args, ProgressLog()))


if __name__ == "__main__":
    sys.exit(main())
