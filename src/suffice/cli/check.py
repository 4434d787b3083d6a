"""`suffice check`: are these hits enough for this question?

One question with its hits, a file of many, or a TREC run with its topics and corpus. Batches are read, judged and printed a
block at a time: a file of millions needs the memory of a few hundred.
"""

from __future__ import annotations

import json as json_module
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli.loaders import open_executor
from suffice.cli.options import (
    CheckpointDir,
    GateName,
    Json,
    Preset,
    Scheduler,
    SkipBad,
    StoreAddress,
)
from suffice.cli.output import handle_errors, print_json, progress_bar, say, say_skipped
from suffice.errors import InputError
from suffice.types import printable

if TYPE_CHECKING:
    from suffice.evaluation.batch_check import BlockResult
    from suffice.gate.gate import Gate
    from suffice.library import Library
    from suffice.protocols import Progress
    from suffice.storage import BadRecords, Line
    from suffice.types import Verdict


def check(
    question: Annotated[str | None, typer.Argument(help="The question.")] = None,
    hits: Annotated[
        Path | None,
        typer.Option("--hits", help="Its hits: a JSON list of texts or objects; - for stdin."),
    ] = None,
    batch: Annotated[
        Path | None,
        typer.Option("--batch", help="Many: JSON Lines of question and hits; - for stdin."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="A TREC run; with --queries and --corpus or --store."),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            "--beside", help="Another retriever's run for the same questions; may be repeated."
        ),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", help="The run's questions: id, tab, question.")
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option("--corpus", help="The run's documents: JSON Lines.")
    ] = None,
    store: StoreAddress = None,
    k: Annotated[
        int | None, typer.Option("--k", min=1, help="Judge the first so many hits.")
    ] = None,
    gate: GateName = "default",
    preset: Preset = "fast",
    rounds_left: Annotated[
        int, typer.Option("--rounds-left", min=0, help="Expansions that may still follow.")
    ] = 1,
    scheduler: Scheduler = None,
    blocks: CheckpointDir = None,
    skip_bad: SkipBad = False,
    json: Json = False,
) -> None:
    """Say whether the hits are enough for the question: answer, expand or abstain."""
    with handle_errors(json=json):
        from suffice.storage import BadRecords

        _check_options(question, hits, batch, run, beside, queries, corpus or store)
        if question and hits is not None:
            from suffice.gate.gate_ref import (
                open_gate,  # late: a misspelt option should not wait for the models
            )

            judge = open_gate(gate, preset)
            _show_one(
                question,
                _check_one(judge, question, _read_hits(hits)[:k], str(hits), rounds_left),
                json=json,
            )
            return
        from suffice.evaluation import batch_check
        from suffice.gate.gate_ref import GateRef
        from suffice.jobs import split_into_blocks

        bad = BadRecords(skip=skip_bad)
        job = batch_check.check_job(
            GateRef.named(gate, preset), k=k, rounds_left=rounds_left, skip_bad=skip_bad
        )
        held = _library(store) if store else None
        documents = corpus or (held and held.store)
        if run is not None and queries is not None and documents is not None:
            lines = batch_check.trec_log_lines([run, *(beside or [])], queries, documents, bad)
        else:
            lines = (
                _stdin_lines()
                if batch is None or str(batch) == "-"
                else batch_check.read_log_lines(batch, bad)
            )
        watched = (
            sys.stderr.isatty() and not sys.stdout.isatty()
        )  # a bar among the verdicts would only disturb
        with (
            held or nullcontext(),
            open_executor(scheduler, blocks) as place,
            progress_bar(quiet=not watched) as progress,
        ):
            found = place(
                job,
                split_into_blocks(lines, batch_check.AT_ONCE, chars=lambda line: len(line.text)),
            )
            _show_many(map(batch_check.BlockResult.of, found), bad, progress, json=json)
        say_skipped(bad)


def _check_options(
    question: str | None,
    hits: Path | None,
    batch: Path | None,
    run: Path | None,
    beside: list[Path] | None,
    queries: Path | None,
    corpus: Path | str | None,
) -> None:
    """The options that go together."""
    if sum([hits is not None, batch is not None, run is not None]) != 1:
        raise InputError(
            "give either --hits (with a question), --batch or --run",
            hint='for example: suffice check "Who ...?" --hits hits.json',
        )
    if hits is not None and not question:
        raise InputError(
            "--hits needs the question",
            hint='for example: suffice check "Who ...?" --hits hits.json',
        )
    if hits is None and question:
        raise InputError(
            "a question goes with --hits; a batch brings its own", hint="leave the question out"
        )
    if beside and run is None:
        raise InputError(
            "--beside goes with --run", hint="in a batch, other runs stand in the field 'others'"
        )
    if run is not None and (queries is None or corpus is None):
        raise InputError(
            "a run has only ids: it needs --queries and --corpus or --store",
            hint="add --queries topics.tsv --corpus corpus.jsonl",
        )


# ------------------------------------------------------------------------------------------------------ reading


def _library(where: str) -> Library:
    from suffice.library import Library

    return Library.open(where)


def _read_hits(path: Path) -> list[Any]:
    """The hits of one question: a JSON list, or an object that holds one as "hits"."""
    text = sys.stdin.read() if str(path) == "-" else _read_text(path)
    try:
        value = json_module.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: not valid JSON: {error}",
            hint='a list like ["text", {"title": "...", "text": "..."}]',
        ) from error
    value = value.get("hits") if isinstance(value, dict) else value
    if not isinstance(value, list):
        raise InputError(
            f"{path}: expected a JSON list of hits",
            hint='a list like ["text", {"title": "...", "text": "..."}]',
        )
    return value


def _read_text(path: Path) -> str:
    from suffice.storage import readable_file

    try:
        return readable_file(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text", hint="convert the file to UTF-8") from error


def _stdin_lines() -> Iterator[Line]:
    """Lines from stdin, each as it comes."""
    from suffice.storage import Line

    return (
        Line(line, f"stdin:{number}")
        for number, line in enumerate(sys.stdin, start=1)
        if line.strip()
    )


# ------------------------------------------------------------------------------------------------------ showing


def _check_one(gate: Gate, question: str, hits: list[Any], where: str, rounds_left: int) -> Verdict:
    """The verdict on one; the error says where it stands."""
    try:
        return gate.check(question, hits, rounds_left=rounds_left)
    except InputError as error:
        raise InputError(
            f"{where}: {error}", hint=error.hint or 'like ["text", {"title": "...", "text": "..."}]'
        ) from error


def _show_one(question: str, verdict: Verdict, *, json: bool) -> None:
    if json:
        from suffice.evaluation.batch_check import verdict_record

        print_json(verdict_record(question, verdict))
        return
    print(verdict)
    say("\nnext: " + NEXT_STEP[str(verdict.action)])


NEXT_STEP = {
    "answer": "generate the answer from these hits",
    "expand": "search for the lines under 'look for', add what is found, and check again",
    "abstain": "do not answer from these hits; say what is missing, or search elsewhere",
}


def _show_many(
    blocks: Iterable[BlockResult], bad: BadRecords, progress: Progress, *, json: bool
) -> None:
    from suffice.evaluation.batch_check import EXAMPLE

    counts = Counter[str]()
    for block in blocks:
        counts.update(one["action"] for one in block.verdicts)
        sys.stdout.writelines(
            f"{_json_line(one) if json else _short_line(one)}\n" for one in block.verdicts
        )
        sys.stdout.flush()
        progress("checking", counts.total(), None)
        block.report(bad)
    if not counts:
        raise InputError("there is no question in the input", hint=f"one a line, like {EXAMPLE}")
    told = ", ".join(f"{count:,} {action}" for action, count in sorted(counts.items()))
    say(f"{counts.total():,} questions: {told}")


def _json_line(record: dict[str, Any]) -> str:
    return json_module.dumps(record, ensure_ascii=False, allow_nan=False)


def _short_line(record: dict[str, Any]) -> str:
    missing = f"  missing: {'; '.join(record['missing'][:3])}" if record["missing"] else ""
    return f"{record['action']:<8} {record['p_complete']:.3f}  {printable(record['question'])[:90]}{printable(missing)}"
