"""`suffice check`: are these hits enough for this question?

One question with its hits, a file of many, or a TREC run with its topics and corpus. Batches are read, judged and printed a
part at a time: a file of millions needs the memory of a few hundred.
"""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli.manners import friendly_errors, print_json, say
from suffice.cli.options import Json, SkipBad
from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.assess.gate import Gate
    from suffice.files import BadRecords, Record
    from suffice.types import Verdict

GateOption = Annotated[str, typer.Option("--gate", help="'default' for the one that ships, or a folder made by `suffice fit`.")]
EXAMPLE = '{"question": "Who taught Ada?", "hits": [{"doc_id": "a1", "title": "Ada", "text": "...", "score": 7.5}]}'
_AT_ONCE = 256
_TRIPLE = tuple[str | None, str, list[Any]]  # question id, question, hits


def check(
    question: Annotated[str | None, typer.Argument(help="The question.")] = None,
    hits: Annotated[Path | None, typer.Option("--hits", help="Its hits: a JSON list of texts or objects; - for stdin.")] = None,
    batch: Annotated[Path | None, typer.Option("--batch", help="Many: JSON Lines of question and hits; - for stdin.")] = None,
    run: Annotated[Path | None, typer.Option("--run", help="A TREC run; with --queries and --corpus.")] = None,
    queries: Annotated[Path | None, typer.Option("--queries", help="The run's questions: id, tab, question.")] = None,
    corpus: Annotated[Path | None, typer.Option("--corpus", help="The run's documents: JSON Lines.")] = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Judge the first so many hits.")] = None,
    gate: GateOption = "default",
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
        bad = BadRecords(skip=skip_bad)
        from suffice.assess.gate import Gate  # late: a misspelt option should not wait for the models

        judge = Gate.load(None if gate == "default" else gate)
        if question and hits is not None:
            verdict = judge.check(question, _listed(hits)[:k], rounds_left=rounds_left)
            _show_one(question, verdict, json=json)
            return
        found = _batch(batch, bad) if batch is not None else _trec(run, queries, corpus, bad)
        _show_many(judge, found, k, rounds_left, json=json)
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


def _batch(path: Path, bad: BadRecords) -> Iterator[_TRIPLE]:
    from suffice.files import read_json_records

    for record in _piped(bad) if str(path) == "-" else read_json_records(path, bad):
        asked, found = record.value.get("question"), record.value.get("hits")
        if not isinstance(asked, str) or not isinstance(found, list):
            bad.report(InputError(f"{record.where}: expected a 'question' text and a list of 'hits'", hint=f"like {EXAMPLE}"))
            continue
        named = record.value.get("question_id")
        yield (None if named is None else str(named)), asked, found


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


def _trec(run: Path | None, queries: Path | None, corpus: Path | None, bad: BadRecords) -> Iterator[_TRIPLE]:
    from suffice.datasets.jsonl import read_documents
    from suffice.datasets.trec import ranked_hits, topics_of
    from suffice.files import readable_file

    if run is None or queries is None or corpus is None:
        raise InputError(
            "a run has only ids: it needs --queries and --corpus", hint="add --queries topics.tsv --corpus corpus.jsonl"
        )
    texts = topics_of(readable_file(queries), bad)
    documents = {document.doc_id: document for document in read_documents(readable_file(corpus), bad)}
    for question_id, hits in ranked_hits(readable_file(run), bad):
        if question_id not in texts:
            bad.report(
                InputError(f"{run}: question {question_id!r} is not in {queries}", hint="pass --skip-bad to leave it out")
            )
            continue
        if lost := next((hit.doc_id for hit in hits if hit.doc_id not in documents), None):
            bad.report(
                InputError(f"{run}: document {lost!r} is not in {corpus}", hint="pass --skip-bad to judge it without text")
            )
        found = [
            _as_hit(documents[hit.doc_id], hit.score) if hit.doc_id in documents else {"doc_id": hit.doc_id} for hit in hits
        ]
        yield question_id, texts[question_id], found


def _as_hit(document: Any, score: float | None) -> dict[str, Any]:
    return {
        "doc_id": document.doc_id,
        "title": document.title,
        "text": document.text,
        "score": score,
        "source": document.source,
        "category": document.category,
        "published_at": document.published_at,
        "entities": document.entities,
    }


# ------------------------------------------------------------------------------------------------------ showing


def verdict_record(question: str, verdict: Verdict, question_id: str | None = None) -> dict[str, Any]:
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
        "reasons": [{"feature": one.feature, "effect": one.effect, "words": one.words} for one in verdict.reasons],
    }


def _show_one(question: str, verdict: Verdict, *, json: bool) -> None:
    if json:
        print_json(verdict_record(question, verdict))
        return
    print(_headline(verdict))
    for title, lines in (
        ("why", [one.words for one in verdict.reasons]),
        ("missing", verdict.missing),
        ("look for", verdict.next_queries),
    ):
        for at, line in enumerate(lines):
            print(f"  {title if not at else '':<9} {_plain(line)}")
    say("\nnext: " + _NEXT[str(verdict.action)])


_NEXT = {
    "answer": "generate the answer from these hits",
    "expand": "search for the lines under 'look for', add what is found, and check again",
    "abstain": "do not answer from these hits; say what is missing, or search elsewhere",
}


def _headline(verdict: Verdict) -> str:
    one = verdict.estimate
    return f"{str(verdict.action).upper():<8} complete with probability {one.p_complete:.2f} [{one.low:.2f}, {one.high:.2f}]"


def _show_many(gate: Gate, found: Iterable[_TRIPLE], k: int | None, rounds_left: int, *, json: bool) -> None:
    counts: dict[str, int] = {}
    found = iter(found)
    while part := list(islice(found, _AT_ONCE)):
        verdicts = gate.check_batch([(asked, hits[:k]) for _, asked, hits in part], rounds_left=rounds_left)
        for (question_id, asked, _), verdict in zip(part, verdicts):
            counts[str(verdict.action)] = counts.get(str(verdict.action), 0) + 1
            if json:
                record = verdict_record(asked, verdict, question_id)
                print(json_module.dumps(record, ensure_ascii=False, allow_nan=False), flush=True)
            else:
                missing = f"  missing: {'; '.join(verdict.missing[:3])}" if verdict.missing else ""
                print(f"{verdict.action!s:<8} {verdict.p_complete:.3f}  {_plain(asked)[:90]}{_plain(missing)}")
    total = sum(counts.values())
    if not total:
        raise InputError("there is no question in the input", hint=f"one a line, like {EXAMPLE}")
    say(f"{total:,} questions: " + ", ".join(f"{count:,} {action}" for action, count in sorted(counts.items())))


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
