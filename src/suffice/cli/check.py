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

from suffice.cli.manners import friendly_errors, print_json, progress_bar, say, say_left_out
from suffice.cli.opening import open_batch
from suffice.cli.options import Blocks, GateName, Grade, Json, Scheduler, SkipBad, StoreAddress
from suffice.errors import InputError
from suffice.types import printable

if TYPE_CHECKING:
    from suffice.assess.gate import Gate
    from suffice.evaluate.logs import Checked
    from suffice.files import BadRecords, Line
    from suffice.library import Library
    from suffice.ports import Progress
    from suffice.types import Verdict


def check(
    question: Annotated[str | None, typer.Argument(help="The question.")] = None,
    hits: Annotated[Path | None, typer.Option("--hits", help="Its hits: a JSON list of texts or objects; - for stdin.")] = None,
    batch: Annotated[Path | None, typer.Option("--batch", help="Many: JSON Lines of question and hits; - for stdin.")] = None,
    run: Annotated[Path | None, typer.Option("--run", help="A TREC run; with --queries and --corpus or --store.")] = None,
    beside: Annotated[
        list[Path] | None, typer.Option("--beside", help="Another retriever's run for the same questions; may be repeated.")
    ] = None,
    queries: Annotated[Path | None, typer.Option("--queries", help="The run's questions: id, tab, question.")] = None,
    corpus: Annotated[Path | None, typer.Option("--corpus", help="The run's documents: JSON Lines.")] = None,
    store: StoreAddress = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Judge the first so many hits.")] = None,
    gate: GateName = "default",
    grade: Grade = "fast",
    rounds_left: Annotated[int, typer.Option("--rounds-left", min=0, help="Expansions that may still follow.")] = 1,
    scheduler: Scheduler = None,
    blocks: Blocks = None,
    skip_bad: SkipBad = False,
    json: Json = False,
) -> None:
    """Say whether the hits are enough for the question: answer, expand or abstain."""
    with friendly_errors(json=json):
        from suffice.files import BadRecords

        _expect(question, hits, batch, run, beside, queries, corpus or store)
        if question and hits is not None:
            from suffice.evaluate.gate_at import open_gate  # late: a misspelt option should not wait for the models

            judge = open_gate(gate, grade)
            _show_one(question, _judged(judge, question, _listed(hits)[:k], str(hits), rounds_left), json=json)
            return
        from suffice.evaluate import logs
        from suffice.evaluate.gate_at import GateAt
        from suffice.ports import in_blocks

        bad = BadRecords(skip=skip_bad)
        job = logs.checking(GateAt.named(gate, grade), k=k, rounds_left=rounds_left, skip_bad=skip_bad)
        held = _library(store) if store else None
        documents = corpus or (held and held.store)
        if run is not None and queries is not None and documents is not None:
            lines = logs.run_lines([run, *(beside or [])], queries, documents, bad)
        else:
            lines = _piped() if batch is None or str(batch) == "-" else logs.log_lines(batch, bad)
        watched = sys.stderr.isatty() and not sys.stdout.isatty()  # a bar among the verdicts would only disturb
        with held or nullcontext(), open_batch(scheduler, blocks) as place, progress_bar(quiet=not watched) as progress:
            found = place(job, in_blocks(lines, logs.AT_ONCE, letters=lambda line: len(line.text)))
            _show_many(map(logs.Checked.of, found), bad, progress, json=json)
        say_left_out(bad)


def _expect(
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
        raise InputError("--hits needs the question", hint='for example: suffice check "Who ...?" --hits hits.json')
    if hits is None and question:
        raise InputError("a question goes with --hits; a batch brings its own", hint="leave the question out")
    if beside and run is None:
        raise InputError("--beside goes with --run", hint="in a batch, other runs stand in the field 'others'")
    if run is not None and (queries is None or corpus is None):
        raise InputError(
            "a run has only ids: it needs --queries and --corpus or --store",
            hint="add --queries topics.tsv --corpus corpus.jsonl",
        )


# ------------------------------------------------------------------------------------------------------ reading


def _library(where: str) -> Library:
    from suffice.library import Library

    return Library.open(where)


def _listed(path: Path) -> list[Any]:
    """The hits of one question: a JSON list, or an object that holds one as "hits"."""
    text = sys.stdin.read() if str(path) == "-" else _text_of(path)
    try:
        value = json_module.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: not valid JSON: {error}", hint='a list like ["text", {"title": "...", "text": "..."}]'
        ) from error
    value = value.get("hits") if isinstance(value, dict) else value
    if not isinstance(value, list):
        raise InputError(f"{path}: expected a JSON list of hits", hint='a list like ["text", {"title": "...", "text": "..."}]')
    return value


def _text_of(path: Path) -> str:
    from suffice.files import readable_file

    try:
        return readable_file(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text", hint="convert the file to UTF-8") from error


def _piped() -> Iterator[Line]:
    """Lines from stdin, each as it comes."""
    from suffice.files import Line

    return (Line(line, f"stdin:{number}") for number, line in enumerate(sys.stdin, start=1) if line.strip())


# ------------------------------------------------------------------------------------------------------ showing


def _judged(gate: Gate, question: str, hits: list[Any], where: str, rounds_left: int) -> Verdict:
    """The verdict on one; the error says where it stands."""
    try:
        return gate.check(question, hits, rounds_left=rounds_left)
    except InputError as error:
        raise InputError(f"{where}: {error}", hint=error.hint or 'like ["text", {"title": "...", "text": "..."}]') from error


def _show_one(question: str, verdict: Verdict, *, json: bool) -> None:
    if json:
        from suffice.evaluate.logs import verdict_record

        print_json(verdict_record(question, verdict))
        return
    print(verdict)
    say("\nnext: " + _NEXT[str(verdict.action)])


_NEXT = {
    "answer": "generate the answer from these hits",
    "expand": "search for the lines under 'look for', add what is found, and check again",
    "abstain": "do not answer from these hits; say what is missing, or search elsewhere",
}


def _show_many(blocks: Iterable[Checked], bad: BadRecords, progress: Progress, *, json: bool) -> None:
    from suffice.evaluate.logs import EXAMPLE

    counts = Counter[str]()
    for block in blocks:
        counts.update(one["action"] for one in block.verdicts)
        sys.stdout.writelines(f"{_json_line(one) if json else _short_line(one)}\n" for one in block.verdicts)
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
