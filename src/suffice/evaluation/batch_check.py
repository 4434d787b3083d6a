"""Check logs: many questions with their hits, as JSON Lines or TREC runs, block by block.

A block is checked as a whole, or line by line if one of its lines fails. Lines are passed as text,
so the process that checks them also parses them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.datasets.jsonl import load_documents
from suffice.datasets.trec import load_run_hits, load_topics
from suffice.errors import InputError
from suffice.gate.gate_ref import GateRef
from suffice.jobs import Job
from suffice.protocols import Store
from suffice.storage import (
    BadRecords,
    Line,
    is_json_array,
    read_json_array,
    read_lines,
    readable_file,
)
from suffice.types import Document, Hit, Verdict

if TYPE_CHECKING:
    from suffice.gate.gate import Gate

__all__ = ["BlockResult", "check_job", "read_log_lines", "trec_log_lines", "verdict_record"]

EXAMPLE = (
    '{"question": "Who taught Ada?", '
    '"hits": [{"doc_id": "a1", "title": "Ada", "text": "...", "score": 7.5}]}'
)
AT_ONCE = 256


def read_log_lines(path: Path, bad: BadRecords) -> Iterator[Line]:
    """The questions in a JSON Lines file or JSON array, one object per line."""
    if is_json_array(path):
        records = read_json_array(path, bad)
        return (Line(json.dumps(record.value), record.where) for record in records)
    return (line for line in read_lines(path, bad) if line.text.strip())


def trec_log_lines(
    run: Path, queries: Path, corpus: Path | Store, bad: BadRecords
) -> Iterator[Line]:
    """The run's questions in order, with its hits.

    The documents come from a file, or from the store that was searched.
    """
    run = readable_file(run)
    texts = load_topics(readable_file(queries), bad)
    # Read the run twice and keep only retrieved documents: a corpus may be very large.
    found = {hit.doc_id for _, hits in load_run_hits(run, BadRecords(skip=True)) for hit in hits}
    every: Iterable[Document | None]
    if isinstance(corpus, Path):
        place, every = str(corpus), load_documents(readable_file(corpus), bad)
    else:
        place, every = "the store", corpus.get(sorted(found))
    documents = {one.doc_id: one for one in every if one is not None and one.doc_id in found}
    for question_id, hits in load_run_hits(run, bad):
        where = f"{run}: question {question_id!r}"
        if question_id not in texts:
            hint = "pass --skip-bad to leave it out"
            bad.report(InputError(f"{where} is not in {queries}", hint=hint))
            continue
        lost = next((hit.doc_id for hit in hits if hit.doc_id not in documents), None)
        if lost is not None:
            hint = "pass --skip-bad to judge it without text"
            bad.report(InputError(f"{run}: document {lost!r} is not in {place}", hint=hint))
        ranked = [_hit_record(hit, documents.get(hit.doc_id)) for hit in hits]
        record = {"question_id": question_id, "question": texts[question_id], "hits": ranked}
        yield Line(json.dumps(record), where)


def _hit_record(hit: Hit, document: Document | None) -> dict[str, Any]:
    if document is None:
        return {"doc_id": hit.doc_id, "score": hit.score}
    published = document.published_at
    return {
        "doc_id": document.doc_id,
        "title": document.title,
        "text": document.text,
        "score": hit.score,
        "source": document.source,
        "category": document.category,
        "published_at": published.isoformat() if published else None,
        "entities": document.entities,
    }


def check_job(
    gate: GateRef,
    *,
    k: int | None = None,
    rounds_left: int = 1,
    skip_bad: bool = False,
    open_gate: Callable[[GateRef], Gate] = GateRef.open,
) -> Job:
    """The job that checks blocks of lines; `BlockResult.of` reads its results.

    `open_gate` opens the gate in the worker, with its judge if it has one.
    """
    do = partial(_check_block, k=k, rounds_left=rounds_left, skip_bad=skip_bad)
    key = repr((gate.digest, k, rounds_left, skip_bad))
    if open_gate is not GateRef.open:
        key = ""  # a judge may answer otherwise the next time, so nothing is cached
    return Job("checking", do, gate, open_gate, key=key)


@dataclass(frozen=True, slots=True)
class BlockResult:
    """The result of a block: verdicts, skipped lines, and the error that ended it."""

    verdicts: list[dict[str, Any]]
    bad: int
    examples: list[str]
    stopped: list[str] | None

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> BlockResult:
        return cls(**result)

    def report(self, bad: BadRecords) -> None:
        """Count the skipped lines; raise the error that ended the block."""
        bad.count += self.bad
        bad.examples += self.examples[: bad.KEPT - len(bad.examples)]
        if self.stopped is not None:
            raise InputError(self.stopped[0], hint=self.stopped[1])


@dataclass(frozen=True, slots=True)
class _LogQuestion:
    """One question of a log, with its position in the file."""

    where: str
    question_id: str | None
    question: str
    hits: list[Any]


def _check_block(
    block: Sequence[Line], gate: Gate, *, k: int | None, rounds_left: int, skip_bad: bool
) -> dict[str, Any]:
    """Check everything before the line that stops parsing, as if checked line by line."""
    bad, questions, verdicts = BadRecords(skip=skip_bad), list[_LogQuestion](), []
    stopped: list[str] | None = None
    try:
        for line in block:
            questions += _parse_line(line, k, bad)
    except InputError as error:
        stopped = [str(error), error.hint]
    try:
        for one, verdict in _verdicts(gate, questions, rounds_left, bad):
            verdicts.append(verdict_record(one.question, verdict, one.question_id))
    except InputError as error:
        stopped = [str(error), error.hint]
    return {"verdicts": verdicts, "bad": bad.count, "examples": bad.examples, "stopped": stopped}


def _parse_line(line: Line, k: int | None, bad: BadRecords) -> list[_LogQuestion]:
    """The question in a line; nothing for a bad line that may be skipped."""

    def reject(problem: str, hint: str) -> list[_LogQuestion]:
        bad.report(InputError(f"{line.where}: {problem}", hint=hint))
        return []

    try:
        record = json.loads(line.text)
    except (ValueError, RecursionError) as error:
        return reject(f"not valid JSON: {error}", f"one object a line, like {EXAMPLE}")
    record = record if isinstance(record, dict) else {}
    question, hits = record.get("question"), record.get("hits")
    question_id = record.get("question_id")
    if not isinstance(question, str) or not question.strip() or not isinstance(hits, list):
        return reject("expected a 'question' text and a list of 'hits'", f"like {EXAMPLE}")
    name = None if question_id is None else str(question_id)
    return [_LogQuestion(line.where, name, question, hits[:k])]


def _verdicts(
    gate: Gate, questions: Sequence[_LogQuestion], rounds_left: int, bad: BadRecords
) -> Iterator[tuple[_LogQuestion, Verdict]]:
    try:
        pairs = [(one.question, one.hits) for one in questions]
        yield from zip(questions, gate.check_batch(pairs, rounds_left=rounds_left), strict=True)
    except InputError:
        for one in questions:
            try:
                yield one, gate.check(one.question, one.hits, rounds_left=rounds_left)
            except InputError as error:
                hint = error.hint or f"like {EXAMPLE}"
                bad.report(InputError(f"{one.where}: {error}", hint=hint))


def verdict_record(
    question: str, verdict: Verdict, question_id: str | None = None
) -> dict[str, Any]:
    """A verdict with its question as JSON values."""
    named = {} if question_id is None else {"question_id": question_id}
    return {**named, "question": question, **verdict.as_json()}
