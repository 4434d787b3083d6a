"""`suffice check`: are these hits enough for this question?

One question with its hits or a library to search, a file of many, or a TREC run with its topics and
corpus. Batches are read, checked and printed block by block: millions need little memory.
"""

from __future__ import annotations

import json as json_module
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.loaders import open_executor, open_gate, open_judge, open_library
from suffice.cli.output import command, print_json, progress_bar, say, say_skipped
from suffice.errors import InputError
from suffice.types import printable

if TYPE_CHECKING:
    from suffice.evaluation.batch_check import BlockResult
    from suffice.gate.gate import Gate
    from suffice.protocols import Progress
    from suffice.storage import BadRecords, Line

BOM = "\ufeff"  # Windows puts this byte order mark before a text
HITS_EXAMPLE = 'a list like ["text", {"title": "...", "text": "..."}]'
COMMAND_EXAMPLE = 'for example: suffice check "Who ...?" --hits hits.json, or with --library DIR'
HITS_FOUND = 10  # by a search, unless --k says how many
NEXT_STEP = {
    "answer": "generate the answer from these hits",
    "expand": "run the 'look for' queries, add their hits, and check again",
    "abstain": "do not answer from these hits; say what is missing, or search elsewhere",
}
ADAPT_STEP = (
    "label at least 20 of your own questions and adapt the gate: "
    "suffice adapt labels.jsonl --out my-gate"
)


@command
def check(
    question: Annotated[str | None, Argument(help="The question.")] = None,
    hits: Annotated[
        Path | None, Option(help="Hits as a JSON list or JSON Lines; - reads stdin.")
    ] = None,
    batch: Annotated[
        Path | None, Option(help="JSON Lines with question and hits; - reads stdin.")
    ] = None,
    run: Annotated[Path | None, Option(help="A TREC run; needs --queries and --corpus.")] = None,
    queries: Annotated[Path | None, Option(help="The run's questions: id, tab, question.")] = None,
    corpus: Annotated[Path | None, Option(help="The run's documents: JSON Lines.")] = None,
    library: Annotated[
        str | None, Option(help="Search this library; with --hits or --run, look up texts in it.")
    ] = None,
    retriever: opt.DefaultRetriever = None,
    k: Annotated[int | None, Option(min=1, help="Use only the first N hits.")] = None,
    gate: opt.GateName = "default",
    preset: opt.Preset = "standard",
    judge: opt.JudgeAddress = None,
    rounds_left: Annotated[int, Option(min=0, help="How many more expansions are allowed.")] = 1,
    scheduler: opt.Scheduler = None,
    checkpoint: opt.CheckpointDir = None,
    skip_bad: opt.SkipBad = False,
    json: opt.Json = False,
) -> None:
    """Check whether hits are enough: answer, expand or abstain."""
    # With both hits and a library, the hits are ids, and the library has their texts.
    single = hits or (library if run is None else None)
    if sum(given is not None for given in (single, batch, run)) != 1:
        message = "give a question with --hits or --library, or give --batch or --run"
        raise InputError(message, hint=COMMAND_EXAMPLE)
    of_run = {"--queries": queries, "--corpus": corpus}
    if run is None and (name := next((name for name in of_run if of_run[name]), None)):
        hint = "leave it out: a batch has its texts"
        raise InputError(f"{name} goes with --run", hint=hint)
    if single is not None:
        if question is None or not question.strip():
            given = "--library" if hits is None else "--hits"
            raise InputError(f"{given} needs the question", hint=COMMAND_EXAMPLE)
        found = _find_hits(question, hits, library, retriever, k)
        loaded = open_gate(gate, preset, judge)
        _check_one(question, found, str(single), loaded, rounds_left, json=json)
        return
    if question:
        hint = "leave the question out"
        raise InputError("--batch and --run bring their own questions", hint=hint)
    from suffice.evaluation import batch_check
    from suffice.gate.gate_ref import GateRef
    from suffice.jobs import split_into_blocks
    from suffice.storage import BadRecords

    bad = BadRecords(skip=skip_bad)
    opener: Callable[[GateRef], Gate] = GateRef.open
    if judge is not None:
        from suffice.integrations.judge import open_judged_gate

        open_judge(judge)  # a wrong address is reported once, here
        opener = partial(open_judged_gate, judge=judge)
    job = batch_check.check_job(
        GateRef.named(gate, preset),
        k=k,
        rounds_left=rounds_left,
        skip_bad=skip_bad,
        open_gate=opener,
    )
    quiet = not sys.stderr.isatty() or sys.stdout.isatty()  # no bar between the verdicts
    with (
        _open_run(run, queries, corpus, library, bad)
        if run is not None
        else nullcontext(_read_batch(batch, bad)) as lines,
        open_executor(scheduler, checkpoint) as executor,
        progress_bar(quiet=quiet) as progress,
    ):
        blocks = split_into_blocks(lines, batch_check.AT_ONCE, chars=lambda line: len(line.text))
        results = map(batch_check.BlockResult.of, executor(job, blocks))
        _show_many(results, bad, progress, json=json)
    say_skipped(bad)


@contextmanager
def _open_run(
    run: Path, queries: Path | None, corpus: Path | None, library: str | None, bad: BadRecords
) -> Iterator[Iterator[Line]]:
    """The questions of a TREC run with their hits, whose texts are in a corpus or a library."""
    from suffice.evaluation.batch_check import trec_log_lines

    if queries is None or (corpus is None and library is None):
        message = "a run has only ids: it needs --queries and --corpus or --library"
        raise InputError(message, hint="add --queries topics.tsv --corpus corpus.jsonl")
    with open_library(library) if library else nullcontext() as opened:
        documents: Any = corpus or (opened and opened.store)
        yield trec_log_lines(run, queries, documents, bad)


def _read_batch(path: Path | None, bad: BadRecords) -> Iterator[Line]:
    """The lines of --batch: of a file, a pipe, or stdin (-)."""
    from suffice.evaluation.batch_check import read_log_lines

    if path is None or str(path) == "-":
        return _stream_lines(sys.stdin, "stdin")
    return _pipe_lines(path) if path.is_fifo() else read_log_lines(path, bad)


def _pipe_lines(path: Path) -> Iterator[Line]:
    with path.open(encoding="utf-8") as stream:
        yield from _stream_lines(stream, str(path))


def _stream_lines(stream: Iterable[str], name: str) -> Iterator[Line]:
    from suffice.storage import Line

    lines = enumerate((line.removeprefix(BOM) for line in stream), start=1)
    return (Line(line, f"{name}:{number}") for number, line in lines if line.strip())


def _find_hits(
    question: str, path: Path | None, library: str | None, retriever: str | None, k: int | None
) -> list[Any]:
    """The hits of a file, with texts of the library where they have none; or the library's own."""
    hits = _read_hits(path)[:k] if path else []
    if library is None:
        return hits
    with open_library(library) as opened:
        if path is None:
            return list(opened.search(question, k=k or HITS_FOUND, retriever=retriever))
        ids = [_bare_id(hit) for hit in hits]
        wanted = [one for one in ids if one is not None]
        documents = dict(zip(wanted, opened.get(wanted)))
    unknown = [one for one, document in documents.items() if document is None]
    if unknown:
        say(printable(f"note: {library} has no document {unknown[0]!r}: checked without its text"))
    return [hit if one is None else documents[one] or hit for hit, one in zip(hits, ids)]


def _bare_id(hit: Any) -> str | None:
    """The id of a hit that has no text; None of any other."""
    if not isinstance(hit, dict) or hit.get("text"):
        return None
    found = hit.get("doc_id", hit.get("id"))
    return found if isinstance(found, str) else None


def _check_one(
    question: str, hits: list[Any], origin: str, gate: Gate, rounds_left: int, *, json: bool
) -> None:
    from suffice.evaluation.batch_check import verdict_record

    try:
        verdict = gate.check(question, hits, rounds_left=rounds_left)
    except InputError as error:
        raise InputError(f"{origin}: {error}", hint=error.hint or HITS_EXAMPLE) from error
    if json:
        print_json(verdict_record(question, verdict))
    else:
        print(verdict)
        say("\nnext: " + (ADAPT_STEP if verdict.unfamiliar else NEXT_STEP[str(verdict.action)]))


def _read_hits(path: Path) -> list[Any]:
    """The hits of one question: a JSON list, an object with one as "hits", or a hit per line."""
    from suffice.storage import readable_file

    try:
        if str(path) == "-":
            text = sys.stdin.read()
        else:
            text = (path if path.is_fifo() else readable_file(path)).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text", hint="convert the file to UTF-8") from error
    text = text.removeprefix(BOM)
    if not text.strip():
        hint = "check that the command that writes it succeeds"
        raise InputError(f"{path} is empty, expected hits", hint=hint)
    try:
        value = json_module.loads(text)
    except (ValueError, RecursionError) as error:
        value = _parse_lines(text)
        if value is None:
            raise InputError(f"{path}: not valid JSON: {error}", hint=HITS_EXAMPLE) from error
    value = value.get("hits") if isinstance(value, dict) else value
    if not isinstance(value, list):
        raise InputError(f"{path}: expected a JSON list of hits", hint=HITS_EXAMPLE)
    return value


def _parse_lines(text: str) -> list[Any] | None:
    """JSON Lines; None if the text is not, or has only one value."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return [json_module.loads(line) for line in lines] if len(lines) > 1 else None
    except (ValueError, RecursionError):
        return None


def _show_many(
    blocks: Iterable[BlockResult], bad: BadRecords, progress: Progress, *, json: bool
) -> None:
    from suffice.evaluation.batch_check import EXAMPLE
    from suffice.evaluation.verdict_log import JudgedTotal

    counts, judged = Counter[str](), JudgedTotal()
    for block in blocks:
        counts.update(record["action"] for record in block.verdicts)
        for record in block.verdicts:
            judged.add(record["judged"], record["action"])
        for record in block.verdicts:
            print(_json_line(record) if json else _short_line(record))
        sys.stdout.flush()
        progress("checking", counts.total(), None)
        block.report(bad)
    if not counts:
        raise InputError("the input has no question", hint=f"one per line, like {EXAMPLE}")
    actions = ", ".join(f"{count:,} {action}" for action, count in sorted(counts.items()))
    say(f"{counts.total():,} question{'s' * (counts.total() != 1)}: {actions}")
    if judged.asked:
        say(f"the judge {judged.sentence(counts.total())}")


def _json_line(record: dict[str, Any]) -> str:
    return json_module.dumps(record, ensure_ascii=False, allow_nan=False)


def _short_line(record: dict[str, Any]) -> str:
    missing = f"  missing: {'; '.join(record['missing'][:3])}" if record["missing"] else ""
    question = printable(record["question"])[:90]
    unfamiliar = "  (unfamiliar)" if record["unfamiliar"] else ""
    start = f"{record['action']:<8} {record['p_complete']:.3f}  {question}"
    return start + printable(missing) + unfamiliar
