"""`suffice check`: are these hits enough for this question?

One question with its hits, a file of many, or a TREC run with its topics and corpus. Batches are read, judged and printed a
part at a time: a file of millions needs the memory of a few hundred.
"""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli.manners import friendly_errors, print_json, say
from suffice.cli.options import GateName, Grade, Json, SkipBad
from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.assess.gate import Gate
    from suffice.files import BadRecords, Record
    from suffice.types import Verdict

EXAMPLE = '{"question": "Who taught Ada?", "hits": [{"doc_id": "a1", "title": "Ada", "text": "...", "score": 7.5}]}'
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question of many: where it stands, and what the gate is to see."""

    where: str
    question_id: str | None
    question: str
    hits: list[Any]
    others: list[Any]  # what other retrievers found, a list each


def check(
    question: Annotated[str | None, typer.Argument(help="The question.")] = None,
    hits: Annotated[Path | None, typer.Option("--hits", help="Its hits: a JSON list of texts or objects; - for stdin.")] = None,
    batch: Annotated[Path | None, typer.Option("--batch", help="Many: JSON Lines of question and hits; - for stdin.")] = None,
    run: Annotated[Path | None, typer.Option("--run", help="A TREC run; with --queries and --corpus.")] = None,
    beside: Annotated[
        list[Path] | None, typer.Option("--beside", help="Another retriever's run for the same questions; may be repeated.")
    ] = None,
    queries: Annotated[Path | None, typer.Option("--queries", help="The run's questions: id, tab, question.")] = None,
    corpus: Annotated[Path | None, typer.Option("--corpus", help="The run's documents: JSON Lines.")] = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Judge the first so many hits.")] = None,
    gate: GateName = "default",
    grade: Grade = "fast",
    rounds_left: Annotated[int, typer.Option("--rounds-left", min=0, help="Expansions that may still follow.")] = 1,
    skip_bad: SkipBad = False,
    json: Json = False,
) -> None:
    """Say whether the hits are enough for the question: answer, expand or abstain."""
    with friendly_errors(json=json):
        from suffice.files import BadRecords

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
                "a run has only ids: it needs --queries and --corpus", hint="add --queries topics.tsv --corpus corpus.jsonl"
            )
        bad = BadRecords(skip=skip_bad)
        from suffice.evaluate.gate import open_gate  # late: a misspelt option should not wait for the models

        judge = open_gate(gate, grade)
        if question and hits is not None:
            asked = _Asked(str(hits), None, question, _listed(hits)[:k], [])
            _show_one(question, _judged(judge, asked, rounds_left), json=json)
            return
        if run is not None and queries is not None and corpus is not None:
            found = _trec([run, *(beside or [])], queries, corpus, bad)
        else:
            found = _batch(batch or Path("-"), bad)
        _show_many(_verdicts(judge, found, k, rounds_left, bad), json=json)
        if bad.count:
            say(f"left out {bad.count:,} bad records, the first: {bad.examples[0]}")


# ------------------------------------------------------------------------------------------------------ reading


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


def _batch(path: Path, bad: BadRecords) -> Iterator[_Asked]:
    from suffice.files import read_json_records

    for record in _piped(bad) if str(path) == "-" else read_json_records(path, bad):
        asked, found = record.value.get("question"), record.value.get("hits")
        if not isinstance(asked, str) or not isinstance(found, list):
            bad.report(InputError(f"{record.where}: expected a 'question' text and a list of 'hits'", hint=f"like {EXAMPLE}"))
            continue
        named, others = record.value.get("question_id"), record.value.get("others", [])
        if not isinstance(others, list) or not all(isinstance(one, list) for one in others):
            bad.report(InputError(f"{record.where}: 'others' is to be a list of lists of hits", hint="one list a retriever"))
            continue
        yield _Asked(record.where, None if named is None else str(named), asked, found, others)


def _piped(bad: BadRecords) -> Iterator[Record]:
    """JSON Lines from stdin, each as it comes."""
    from suffice.files import Record

    for number, line in enumerate(sys.stdin, start=1):
        if line.strip():
            where = f"stdin:{number}"
            try:
                value = json_module.loads(line)
            except (ValueError, RecursionError) as error:
                bad.report(InputError(f"{where}: not valid JSON: {error}", hint=f"one object a line, like {EXAMPLE}"))
                continue
            if isinstance(value, dict):
                yield Record(value, where)
            else:
                bad.report(InputError(f"{where}: expected a JSON object", hint=f"like {EXAMPLE}"))


def _trec(runs: list[Path], queries: Path, corpus: Path, bad: BadRecords) -> Iterator[_Asked]:
    """The first run's questions in its order; the others are looked up."""
    from suffice.datasets.jsonl import read_documents
    from suffice.datasets.trec import ranked_hits, topics_of
    from suffice.files import BadRecords, readable_file

    run, *others = [readable_file(one) for one in runs]
    texts = topics_of(readable_file(queries), bad)
    # The runs are read twice, so that only documents that were found are held: a corpus may be larger than memory.
    found = {hit.doc_id for one in (run, *others) for _, hits in ranked_hits(one, BadRecords(skip=True)) for hit in hits}
    documents = {one.doc_id: one for one in read_documents(readable_file(corpus), bad) if one.doc_id in found}
    known = [dict(ranked_hits(other, bad)) for other in others]
    for question_id, hits in ranked_hits(run, bad):
        if question_id not in texts:
            bad.report(
                InputError(f"{run}: question {question_id!r} is not in {queries}", hint="pass --skip-bad to leave it out")
            )
            continue
        if lost := next((hit.doc_id for hit in hits if hit.doc_id not in documents), None):
            bad.report(
                InputError(f"{run}: document {lost!r} is not in {corpus}", hint="pass --skip-bad to judge it without text")
            )
        ranked = [[_as_hit(hit, documents) for hit in one] for one in (hits, *(other.get(question_id, ()) for other in known))]
        yield _Asked(f"{run}: question {question_id!r}", question_id, texts[question_id], ranked[0], ranked[1:])


def _as_hit(hit: Any, documents: dict[str, Any]) -> dict[str, Any]:
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
        "published_at": document.published_at,
        "entities": document.entities,
    }


# ------------------------------------------------------------------------------------------------------ judging


def _verdicts(
    gate: Gate, found: Iterable[_Asked], k: int | None, rounds_left: int, bad: BadRecords
) -> Iterator[tuple[_Asked, Verdict]]:
    """Judged a part at a time; where one question cannot be, the others of its part are judged one by one."""
    found = iter(found)
    while part := list(islice(found, _AT_ONCE)):
        part = [replace(one, hits=one.hits[:k]) for one in part]
        try:
            pairs = [(one.question, one.hits, one.others) for one in part]
            yield from zip(part, gate.check_batch(pairs, rounds_left=rounds_left), strict=True)
        except InputError:
            for one in part:
                try:
                    yield one, _judged(gate, one, rounds_left)
                except InputError as error:
                    bad.report(error)


def _judged(gate: Gate, asked: _Asked, rounds_left: int) -> Verdict:
    """The verdict on one; the error says where it stands."""
    try:
        return gate.check(asked.question, asked.hits, others=asked.others, rounds_left=rounds_left)
    except InputError as error:
        raise InputError(f"{asked.where}: {error}", hint=error.hint or f"like {EXAMPLE}") from error


# ------------------------------------------------------------------------------------------------------ showing


def verdict_record(question: str, verdict: Verdict, question_id: str | None = None) -> dict[str, Any]:
    """A verdict as JSON values, under the question that it is about."""
    named = {"question_id": question_id} if question_id is not None else {}
    return {**named, "question": question, **verdict.as_json()}


def _show_one(question: str, verdict: Verdict, *, json: bool) -> None:
    if json:
        print_json(verdict_record(question, verdict))
        return
    print(verdict)
    say("\nnext: " + _NEXT[str(verdict.action)])


_NEXT = {
    "answer": "generate the answer from these hits",
    "expand": "search for the lines under 'look for', add what is found, and check again",
    "abstain": "do not answer from these hits; say what is missing, or search elsewhere",
}


def _show_many(judged: Iterable[tuple[_Asked, Verdict]], *, json: bool) -> None:
    counts: dict[str, int] = {}
    for asked, verdict in judged:
        counts[str(verdict.action)] = counts.get(str(verdict.action), 0) + 1
        if json:
            record = verdict_record(asked.question, verdict, asked.question_id)
            print(json_module.dumps(record, ensure_ascii=False, allow_nan=False), flush=True)
        else:
            missing = f"  missing: {'; '.join(verdict.missing[:3])}" if verdict.missing else ""
            print(f"{verdict.action!s:<8} {verdict.p_complete:.3f}  {_plain(asked.question)[:90]}{_plain(missing)}")
    total = sum(counts.values())
    if not total:
        raise InputError("there is no question in the input", hint=f"one a line, like {EXAMPLE}")
    say(f"{total:,} questions: " + ", ".join(f"{count:,} {action}" for action, count in sorted(counts.items())))


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
