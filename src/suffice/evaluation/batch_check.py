"""Verdicts over logs: many questions with their hits, as JSON Lines or TREC runs, a block of lines at a time.

A block is judged as a whole, and line by line where one of its lines cannot be. The lines travel as they stand in the file:
whoever judges them also parses them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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

__all__ = [
    "AT_ONCE",
    "EXAMPLE",
    "BlockResult",
    "check_job",
    "read_log_lines",
    "trec_log_lines",
    "verdict_record",
]

EXAMPLE = '{"question": "Who taught Ada?", "hits": [{"doc_id": "a1", "title": "Ada", "text": "...", "score": 7.5}]}'
AT_ONCE = 256


# ------------------------------------------------------------------------------------------------------ reading


def read_log_lines(path: Path, bad: BadRecords) -> Iterator[Line]:
    """The questions of a file that is JSON Lines or a JSON array, an object a line."""
    if is_json_array(path):
        return (
            Line(json.dumps(record.value), record.where) for record in read_json_array(path, bad)
        )
    return (line for line in read_lines(path, bad) if line.text.strip())


def trec_log_lines(
    runs: Sequence[Path], queries: Path, corpus: Path | Store, bad: BadRecords
) -> Iterator[Line]:
    """The first run's questions in its order, with its hits; what the other runs found stands beside them.

    The documents come from a file, or from the store that was searched.
    """
    run, *others = [readable_file(one) for one in runs]
    texts = load_topics(readable_file(queries), bad)
    # The runs are read twice, so that only documents that were found are held: a corpus may be larger than memory.
    found = {
        hit.doc_id
        for one in (run, *others)
        for _, hits in load_run_hits(one, BadRecords(skip=True))
        for hit in hits
    }
    every = (
        load_documents(readable_file(corpus), bad)
        if isinstance(corpus, Path)
        else corpus.get(sorted(found))
    )
    documents = {one.doc_id: one for one in every if one is not None and one.doc_id in found}
    place = corpus if isinstance(corpus, Path) else "the store"
    known = [dict(load_run_hits(other, bad)) for other in others]
    for question_id, hits in load_run_hits(run, bad):
        if question_id not in texts:
            bad.report(
                InputError(
                    f"{run}: question {question_id!r} is not in {queries}",
                    hint="pass --skip-bad to leave it out",
                )
            )
            continue
        if lost := next((hit.doc_id for hit in hits if hit.doc_id not in documents), None):
            bad.report(
                InputError(
                    f"{run}: document {lost!r} is not in {place}",
                    hint="pass --skip-bad to judge it without text",
                )
            )
        ranked = [
            [_hit_record(hit, documents) for hit in one]
            for one in (hits, *(other.get(question_id, ()) for other in known))
        ]
        record = {
            "question_id": question_id,
            "question": texts[question_id],
            "hits": ranked[0],
            "others": ranked[1:],
        }
        yield Line(json.dumps(record), f"{run}: question {question_id!r}")


def _hit_record(hit: Hit, documents: Mapping[str, Document]) -> dict[str, Any]:
    document = documents.get(hit.doc_id)
    if document is None:
        return {"doc_id": hit.doc_id, "score": hit.score}
    return {
        "doc_id": document.doc_id,
        "title": document.title,
        "text": document.text,
        "score": hit.score,
        "source": document.source,
        "category": document.category,
        "published_at": document.published_at.isoformat() if document.published_at else None,
        "entities": document.entities,
    }


# ------------------------------------------------------------------------------------------------------ judging


def check_job(
    gate: GateRef, *, k: int | None = None, rounds_left: int = 1, skip_bad: bool = False
) -> Job:
    """The job that judges blocks of lines; `Checked.of` reads its results. Bad lines are left out with `skip_bad`."""
    do = partial(_check_block, k=k, rounds_left=rounds_left, skip_bad=skip_bad)
    return Job(
        "checking", do, gate, GateRef.open, key=repr((gate.digest, k, rounds_left, skip_bad))
    )


@dataclass(frozen=True, slots=True)
class BlockResult:
    """What came of one block: the records of its verdicts, the lines left out, and the error at which it ended."""

    verdicts: list[dict[str, Any]]
    bad: int
    examples: list[str]
    stopped: list[str] | None

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> BlockResult:
        return cls(**result)

    def report(self, bad: BadRecords) -> None:
        """Count what was left out; raise the error at which the block ended."""
        bad.count += self.bad
        bad.examples += self.examples[: bad.KEPT - len(bad.examples)]
        if self.stopped is not None:
            raise InputError(self.stopped[0], hint=self.stopped[1])


def _check_block(
    block: Sequence[Line], gate: Gate, *, k: int | None, rounds_left: int, skip_bad: bool
) -> dict[str, Any]:
    """Everything up to a line that stops the reading is judged, as if there had been one line after the other."""
    bad, asked, stopped = BadRecords(skip=skip_bad), list[_LogQuestion](), None
    try:
        for line in block:
            asked += _parse_line(line, k, bad)
    except InputError as error:
        stopped = [str(error), error.hint]
    verdicts = []
    try:
        for one, verdict in _verdicts(gate, asked, rounds_left, bad):
            verdicts.append(verdict_record(one.question, verdict, one.question_id))
    except InputError as error:
        stopped = [str(error), error.hint]
    return {"verdicts": verdicts, "bad": bad.count, "examples": bad.examples, "stopped": stopped}


@dataclass(frozen=True, slots=True)
class _LogQuestion:
    """One question of many: where it stands, and what the gate is to see."""

    where: str
    question_id: str | None
    question: str
    hits: list[Any]
    others: list[Any]  # what other retrievers found, a list each


def _parse_line(line: Line, k: int | None, bad: BadRecords) -> Iterator[_LogQuestion]:
    """The question of a line; nothing where it is a bad one that may be left out."""
    try:
        told = json.loads(line.text)
    except (ValueError, RecursionError) as error:
        bad.report(
            InputError(
                f"{line.where}: not valid JSON: {error}", hint=f"one object a line, like {EXAMPLE}"
            )
        )
        return
    told = told if isinstance(told, dict) else {}
    asked, found = told.get("question"), told.get("hits")
    named, others = told.get("question_id"), told.get("others", [])
    if not isinstance(asked, str) or not isinstance(found, list):
        bad.report(
            InputError(
                f"{line.where}: expected a 'question' text and a list of 'hits'",
                hint=f"like {EXAMPLE}",
            )
        )
    elif not isinstance(others, list) or not all(isinstance(one, list) for one in others):
        bad.report(
            InputError(
                f"{line.where}: 'others' is to be a list of lists of hits",
                hint="one list a retriever",
            )
        )
    else:
        yield _LogQuestion(
            line.where, None if named is None else str(named), asked, found[:k], others
        )


def _verdicts(
    gate: Gate, asked: Sequence[_LogQuestion], rounds_left: int, bad: BadRecords
) -> Iterator[tuple[_LogQuestion, Verdict]]:
    try:
        pairs = [(one.question, one.hits, one.others) for one in asked]
        yield from zip(asked, gate.check_batch(pairs, rounds_left=rounds_left), strict=True)
    except InputError:
        for one in asked:
            try:
                yield (
                    one,
                    gate.check(one.question, one.hits, others=one.others, rounds_left=rounds_left),
                )
            except InputError as error:
                bad.report(
                    InputError(f"{one.where}: {error}", hint=error.hint or f"like {EXAMPLE}")
                )


def verdict_record(
    question: str, verdict: Verdict, question_id: str | None = None
) -> dict[str, Any]:
    """A verdict as JSON values."""
    return {
        **({"question_id": question_id} if question_id is not None else {}),
        "question": question,
        "action": str(verdict.action),
        "p_complete": verdict.p_complete,
        "low": verdict.estimate.low,
        "high": verdict.estimate.high,
        "missing": list(verdict.missing),
        "next_queries": list(verdict.next_queries),
        "reasons": [
            {"feature": one.feature, "effect": one.effect, "words": one.words}
            for one in verdict.reasons
        ],
    }
