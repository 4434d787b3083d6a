"""Further questions for the reader, asked and judged by a language model:
`python -m suffice_research.training.asked_questions STEP --help`.

    groups   documents that belong together, from the cases of the data sets
    ask      tune the model on groups, and let it ask about their documents (GPU)
    judge    which documents each question needs, by a model tuned on the other half of the
             groups: a model that has memorized a group names its needed documents whatever
             the question (GPU)
    keep     write the questions with a confident judgement to `research/asked`
    write    tune the model on groups, and let it write whole cases: questions with documents (GPU)

    passages       single passages to ask about, and questions to tune on
    ask-passages   tune the model, let it ask about single passages and answer its own questions,
                   and word chains of questions as one (GPU)
    keep-passages  write the questions that it answered as it meant to `research/asked`

The model is Qwen2.5-Coder-1.5B-Instruct as a GGUF file (Q4_K_M, Apache-2.0). The GPU steps need
numpy, torch and tokenizers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from suffice.errors import InputError
from suffice_research.training.asked_data import (
    draw_groups,
    keep_questions,
    load_groups,
    load_questions,
    save_kept,
    save_rows,
)
from suffice_research.training.sources import exit_code, normalize_words

GROUPS_ASKED = 5632  # groups to ask about: 200 seconds on an H200


def _groups(args: argparse.Namespace) -> None:
    from suffice_research.training import reader_data as data
    from suffice_research.training.cases import EVERYDAY, load_cases

    cases = load_cases(args.data, [EVERYDAY])
    cases, retrieved, shown = data.hide_judged(cases, data.search_sources(cases))
    groups = draw_groups(cases, retrieved, shown, data.number_passages(cases, retrieved))
    save_rows(groups, args.out)
    print(f"{len(groups):,} groups")


def _ask(args: argparse.Namespace) -> None:
    from suffice_research.training import asked_model as model

    tuning = model.Tuning(args.seconds, rate=1.5e-5, asking=0.45)
    asked = model.ask_all(args.model, load_groups(args.groups), tuning, args.most)
    save_rows(asked, args.out)


def _judge(args: argparse.Namespace) -> None:
    from suffice_research.training import asked_model as model

    tuning = model.Tuning(args.seconds, rate=2e-5, asking=0.0)
    asked = load_questions(args.asked)
    save_rows(model.judge_all(args.model, load_groups(args.groups), asked, tuning), args.out)


def _keep(args: argparse.Namespace) -> None:
    from suffice_research.training.cases import EVERYDAY, load_cases
    from suffice_research.training.reader_data import ASKED

    cases = load_cases(args.data, [EVERYDAY])
    known = {normalize_words(case.question) for case in cases}
    groups = {one.case: one for one in load_groups(args.groups)}
    kept, counts = keep_questions(load_questions(args.judged), groups, known)
    for reason, count in sorted(counts.items()):
        print(f"{reason:34} {count:6,}")
    print(f"{save_kept(kept, args.out or ASKED)}: {len(kept):,} questions")


def _passages(args: argparse.Namespace) -> None:
    from suffice_research.training import passage_questions as singles
    from suffice_research.training.cases import EVERYDAY, learned_chains, load_cases, shown_passages
    from suffice_research.training.reader_data import ASKED, asked_cases

    cases = load_cases(args.data, [EVERYDAY])
    asked, _ = asked_cases(ASKED, cases)
    chains = list(singles.known_chains(learned_chains(args.data)))
    known = [*singles.known_questions([*cases, *asked]), *chains]
    args.out.mkdir(parents=True, exist_ok=True)
    passages = singles.passages_to_ask(cases, shown_passages(cases))
    for name, rows in (
        ("passages", passages),
        ("known", [one for one in known if isinstance(one, singles.KnownQuestion)]),
        ("chains", [one for one in chains if isinstance(one, singles.KnownChain)]),
    ):
        save_rows(rows, args.out / f"{name}.jsonl")
        print(f"{len(rows):,} {name}")


def _ask_passages(args: argparse.Namespace) -> None:
    from suffice_research.training import passage_questions as singles
    from suffice_research.training.asked_model import Tuning
    from suffice_research.training.passage_model import tuned_model

    passages = singles.load_records(args.folder / "passages.jsonl", singles.SinglePassage)
    known = singles.load_records(args.folder / "known.jsonl", singles.KnownQuestion)
    chains = singles.load_records(args.folder / "chains.jsonl", singles.KnownChain)
    args.out.mkdir(parents=True, exist_ok=True)
    tuning = Tuning(args.seconds, rate=2e-5, asking=1.0, tokens=12288, longest=600)
    model = tuned_model(args.model, known, chains, tuning)
    asked = args.out / "asked.jsonl"
    save_rows(model.ask_all(passages, args.asking), asked)
    linked = singles.chain_questions(passages, singles.load_records(asked, singles.PassageQuestion))
    print(f"{len(linked):,} chains", flush=True)
    save_rows(model.word_chains(linked, args.wording), args.out / "worded.jsonl")


def _keep_passages(args: argparse.Namespace) -> None:
    from suffice_research.training import passage_questions as singles
    from suffice_research.training.cases import EVERYDAY, load_cases
    from suffice_research.training.reader_data import ASKED

    known = {normalize_words(case.question) for case in load_cases(args.data, [EVERYDAY])}
    passages = singles.load_records(args.folder / "passages.jsonl", singles.SinglePassage)
    asked = singles.load_records(args.asked / "asked.jsonl", singles.PassageQuestion)
    chains = singles.load_records(args.asked / "worded.jsonl", singles.AskedChain)
    for name, (rows, counts) in {
        "passages": singles.keep_questions(asked, passages, known),
        "worded": singles.keep_chains(chains, passages, known),
    }.items():
        for reason, count in sorted(counts.items()):
            print(f"{reason:34} {count:7,}")
        path = (args.out or ASKED) / f"{name}.jsonl.gz"
        singles.save_compressed(rows, path)
        print(f"{path}: {len(rows):,} questions")


def _write(args: argparse.Namespace) -> None:
    from suffice_research.training import asked_model as model
    from suffice_research.training import written_cases

    tuning = model.Tuning(args.seconds, rate=2e-5, asking=1.0, longest=900)
    groups = load_groups(args.groups)
    save_rows(written_cases.write_all(args.model, groups, tuning, args.writing), args.out)


STEPS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "groups": _groups, "ask": _ask, "judge": _judge, "keep": _keep,
    "write": _write, "passages": _passages, "ask-passages": _ask_passages,
    "keep-passages": _keep_passages,
}  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step", required=True)
    groups, ask, judge, keep, write, passages, ask_passages, keep_passages = (
        steps.add_parser(name) for name in STEPS
    )
    for one in (groups, keep, passages, keep_passages):
        one.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    for one in (ask, judge, keep, write):
        one.add_argument("groups", type=Path, help="what the step groups wrote")
    judge.add_argument("asked", type=Path, help="what the step ask wrote")
    keep.add_argument("judged", type=Path, help="what the step judge wrote")
    for one in (ask_passages, keep_passages):
        one.add_argument("folder", type=Path, help="what the step passages wrote")
    keep_passages.add_argument("asked", type=Path, help="what the step ask-passages wrote")
    for one, seconds in ((ask, 200.0), (judge, 110.0), (write, 170.0), (ask_passages, 120.0)):
        one.add_argument("--model", type=Path, required=True, help="a GGUF file")
        one.add_argument("--seconds", type=float, default=seconds, help="of each tuning")
    ask.add_argument("--most", type=int, default=GROUPS_ASKED, help="groups to ask about")
    write.add_argument("--writing", type=float, default=150.0, help="seconds of writing")
    ask_passages.add_argument("--asking", type=float, default=260.0, help="seconds of asking")
    ask_passages.add_argument("--wording", type=float, default=60.0, help="seconds for chains")
    for one in (groups, ask, judge, write):
        one.add_argument("--out", type=Path, required=True, help="a .jsonl file")
    for one in (passages, ask_passages):
        one.add_argument("--out", type=Path, required=True, help="a folder")
    for one in (keep, keep_passages):
        one.add_argument("--out", type=Path, help="a folder; otherwise research/asked")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    return exit_code(lambda: _run(args))


def _run(args: argparse.Namespace) -> None:
    if hasattr(args, "model") and find_spec("torch") is None:
        raise InputError(
            f"{args.step} needs torch, which is not installed",
            hint='run it on a machine with a GPU: "Train the shipped models" in CONTRIBUTING',
        )
    STEPS[args.step](args)


if __name__ == "__main__":
    sys.exit(main())
