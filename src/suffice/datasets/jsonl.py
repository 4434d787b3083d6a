"""Our own JSON Lines: one document a line, and one labelled example a line. A JSON array of the same objects is read too.

A document: `doc_id` (or `id`, `_id`), `text`, and where known `title`, `source`, `category`, `published_at` (an ISO date),
`entities` (a list of names), `parent` (the id of the whole that this is a chunk of). Text or title must say something.
Every other field is kept in `Document.extra`.

    {"doc_id": "a1", "title": "Ada", "text": "Ada wrote to Babbage.", "source": "The Times", "published_at": "1843-07-10"}

An example: `question` and `gold` (a list of document ids; empty where nothing in the corpus answers it), and where known
`question_id`, `answer`, `kind`, `hops`, `labels`, and `hits`: what a retriever returned, best first, as document ids or as
objects with `doc_id` and `score`. Without `question_id` the line number is taken.

    {"question_id": "q1", "question": "Who taught Ada's tutor?", "gold": ["a1", "b2"], "hits": [{"doc_id": "a1", "score": 7.5}]}

A folder holds documents.jsonl (or corpus.jsonl) and examples.jsonl (or questions.jsonl). A file given as `path` is taken as
examples if its first record has a `question`, as documents otherwise.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from suffice.datasets.dataset import Dataset
from suffice.datasets.fields import (
    UniqueIds,
    field_error,
    is_text,
    optional_count,
    optional_date,
    optional_text,
    optional_texts,
    parse_records,
    required_list,
    required_text,
)
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.locate import locate_files
from suffice.errors import InputError
from suffice.storage import BadRecords, Record, read_json_records, write_atomically
from suffice.types import Document, Hit, Question

__all__ = [
    "document_record",
    "load",
    "load_documents",
    "load_questions",
    "question_record",
    "write",
]

_IDS = ("doc_id", "id", "_id")
_READ = frozenset(
    (*_IDS, "text", "title", "source", "category", "published_at", "entities", "parent")
)


def load(
    path: Path | None = None,
    *,
    questions: Path | None = None,
    corpus: Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    if path is not None and path.is_file() and not _holds_examples(path, BadRecords(skip=skip_bad)):
        path, corpus = None, corpus or path
    places = locate_files(
        path,
        questions,
        corpus,
        question_names=("examples.jsonl", "questions.jsonl"),
        corpus_names=("documents.jsonl", "corpus.jsonl"),
    )
    asked, held = places.questions, places.corpus
    return Dataset(
        "jsonl",
        documents=(lambda bad: load_documents(held, bad)) if held else None,
        examples=(lambda bad: load_questions(asked, bad)) if asked else None,
        skip_bad=skip_bad,
    )


def _holds_examples(path: Path, bad: BadRecords) -> bool:
    try:
        first = next(read_json_records(path, bad), None)
    except InputError:
        return False  # reading it as documents says what is wrong
    return first is not None and "question" in first.value


def load_documents(path: Path, bad: BadRecords, *, empty_ok: bool = False) -> Iterator[Document]:
    """The documents of a file, each id once. `empty_ok`: a document may have neither text nor title."""
    once = UniqueIds("document")

    def document(record: Record) -> Document:
        found = _document(record, empty_ok)
        once.check(found.doc_id, record.where)
        return found

    return parse_records(read_json_records(path, bad), bad, document)


def _document(record: Record, empty_ok: bool) -> Document:
    id_field = next((field for field in _IDS if record.value.get(field) is not None), "doc_id")
    doc_id = optional_text(record, id_field)
    if doc_id is None:
        raise field_error(record, id_field, "a document id")
    body, title = record.value.get("text"), optional_text(record, "title") or ""
    if not is_text(body) and not (body is None and title):
        raise field_error(record, "text", "a text")
    if not (empty_ok or title or (body or "").strip()):
        raise field_error(record, "text", "a text that is not empty, or a title")
    return Document(
        doc_id,
        body or "",
        title=title,
        source=optional_text(record, "source"),
        category=optional_text(record, "category"),
        published_at=optional_date(record, "published_at"),
        entities=optional_texts(record, "entities"),
        parent=optional_text(record, "parent"),
        extra={key: value for key, value in record.value.items() if key not in _READ},
    )


def load_questions(path: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
    """The labelled examples of a file, each question id once."""
    once = UniqueIds("question")

    def example(record: Record) -> GoldQuestion:
        question_id = (
            optional_text(record, "question_id")
            or optional_text(record, "id")
            or record.where.rpartition(":")[2]
        )
        if "gold" not in record.value or record.value["gold"] is None:
            raise field_error(
                record, "gold", "a list of document ids (empty for a question that nothing answers)"
            )
        doc_ids = frozenset(optional_texts(record, "gold"))
        hops = optional_count(record, "hops")
        found = GoldQuestion(
            Question(question_id, required_text(record, "question")),
            Gold(
                question_id,
                doc_ids,
                answer=optional_text(record, "answer"),
                kind=optional_text(record, "kind"),
                hops=len(doc_ids) if hops is None else hops,
                labels=optional_texts(record, "labels"),
            ),
            hits=_hits(record),
        )
        once.check(question_id, record.where)
        return found

    return parse_records(read_json_records(path, bad), bad, example)


def _hits(record: Record) -> tuple[Hit, ...] | None:
    if record.value.get("hits") is None:
        return None
    found: dict[str, Hit] = {}
    for one in required_list(record, "hits"):
        hit = _hit(one)
        if hit is None or hit.doc_id in found:
            raise field_error(
                record,
                "hits",
                "document ids, or objects with doc_id and a score, each document once",
            )
        found[hit.doc_id] = hit
    return tuple(found.values())


def _hit(value: Any) -> Hit | None:
    if isinstance(value, dict):
        doc_id, score = value.get("doc_id"), value.get("score")
    else:
        doc_id, score = value, None
    if isinstance(doc_id, int) and not isinstance(doc_id, bool):
        doc_id = str(doc_id)
    if not is_text(doc_id) or not doc_id:
        return None
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        return None
    if (
        score is not None and not abs(score) <= sys.float_info.max
    ):  # a whole number may be larger than any float; NaN is not
        return None
    return Hit(doc_id, None if score is None else float(score))


def document_record(document: Document) -> dict[str, Any]:
    """A document as an object of this format; reading it gives the document back."""
    known = {
        "doc_id": document.doc_id,
        "title": document.title or None,
        "text": document.text,
        "source": document.source,
        "category": document.category,
        "published_at": document.published_at.isoformat() if document.published_at else None,
        "entities": list(document.entities) or None,
        "parent": document.parent,
    }
    return {**document.extra, **{key: value for key, value in known.items() if value is not None}}


def question_record(example: GoldQuestion) -> dict[str, Any]:
    """An example as an object of this format; reading it gives the example back, its hits with id and score only."""
    gold = example.gold
    known = {
        "question_id": example.question.question_id,
        "question": example.question.text,
        "gold": sorted(gold.doc_ids),
        "answer": gold.answer,
        "kind": gold.kind,
        "hops": gold.hops,
        "labels": list(gold.labels) or None,
        "hits": None
        if example.hits is None
        else [{"doc_id": hit.doc_id, "score": hit.score} for hit in example.hits],
    }
    return {key: value for key, value in known.items() if value is not None}


def write(dataset: Dataset, folder: Path) -> list[Path]:
    """Write a data set in this format, record by record: documents.jsonl and examples.jsonl. `read(folder)` gives it back."""
    written = []
    if dataset.has_documents:
        written.append(folder / "documents.jsonl")
        write_atomically(written[-1], (_line(document_record(one)) for one in dataset.documents()))
    if dataset.has_examples:
        written.append(folder / "examples.jsonl")
        write_atomically(written[-1], (_line(question_record(one)) for one in dataset.examples()))
    return written


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
