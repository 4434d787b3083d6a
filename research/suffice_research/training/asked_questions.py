"""Further questions for the reader, asked and judged by a language model:
`python -m suffice_research.training.asked_questions STEP --help`.

    groups   documents that belong together, from the cases of `reader_data`
    ask      tune the model on groups, and let it ask about their documents (GPU)
    judge    which documents each question needs, by a model tuned on the other half of the
             groups: a model that has memorized a group names its needed documents whatever
             the question (GPU)
    keep     write the questions with a confident judgement to `research/asked`
    write    tune the model on groups, and let it write whole cases: questions with documents (GPU)

The model is Qwen2.5-Coder-1.5B-Instruct as a GGUF file (Q4_K_M, Apache-2.0). The GPU steps need
numpy, torch and tokenizers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

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

    cases = data.load_cases(args.data, [data.EVERYDAY])
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
    from suffice_research.training import reader_data as data

    cases = data.load_cases(args.data, [data.EVERYDAY])
    known = {normalize_words(case.question) for case in cases}
    groups = {one.case: one for one in load_groups(args.groups)}
    kept, counts = keep_questions(load_questions(args.judged), groups, known)
    for reason, count in sorted(counts.items()):
        print(f"{reason:34} {count:6,}")
    print(f"{save_kept(kept, args.out or data.ASKED)}: {len(kept):,} questions")


def _write(args: argparse.Namespace) -> None:
    from suffice_research.training import asked_model as model
    from suffice_research.training import written_cases

    tuning = model.Tuning(args.seconds, rate=2e-5, asking=1.0, longest=900)
    groups = load_groups(args.groups)
    save_rows(written_cases.write_all(args.model, groups, tuning, args.writing), args.out)


STEPS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "groups": _groups, "ask": _ask, "judge": _judge, "keep": _keep,
    "write": _write,
}  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step", required=True)
    groups, ask, judge, keep, write = (steps.add_parser(name) for name in STEPS)
    for one in (groups, keep):
        one.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    for one in (ask, judge, keep, write):
        one.add_argument("groups", type=Path, help="what the step groups wrote")
    judge.add_argument("asked", type=Path, help="what the step ask wrote")
    keep.add_argument("judged", type=Path, help="what the step judge wrote")
    for one, seconds in ((ask, 200.0), (judge, 110.0), (write, 170.0)):
        one.add_argument("--model", type=Path, required=True, help="a GGUF file")
        one.add_argument("--seconds", type=float, default=seconds, help="of each tuning")
    ask.add_argument("--most", type=int, default=GROUPS_ASKED, help="groups to ask about")
    write.add_argument("--writing", type=float, default=150.0, help="seconds of writing")
    for one in (groups, ask, judge, write):
        one.add_argument("--out", type=Path, required=True, help="a .jsonl file")
    keep.add_argument("--out", type=Path, help="a folder; otherwise research/asked")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    return exit_code(lambda: STEPS[args.step](args))


if __name__ == "__main__":
    sys.exit(main())
