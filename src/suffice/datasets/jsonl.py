"""Our own JSON Lines (or a JSON array): documents, and questions with their gold, one per line.

A document: `doc_id` (or `id`, `_id`), `text`, and optionally `title`, `source`, `category`,
`published_at` (an ISO date), `entities` (a list of names), `parent` (the id of the document this is
a chunk of). Text or title must not be empty. Every other field is kept in `Document.extra`.

    {"doc_id": "a1", "title": "Ada", "text": "Ada wrote to Babbage.", "published_at": "1843-07-10"}

A question: `question` and `gold` (a list of document ids; empty if nothing in the corpus answers
it), and optionally `question_id`, `answer`, `kind`, `hops`, `labels`, and `hits`: what a retriever
returned, best first, as document ids or as objects with `doc_id` and `score`. `question_id`
defaults to the line number.

    {"question_id": "q1", "question": "Who taught Ada's tutor?", "gold": ["a1", "b2"],
     "hits": [{"doc_id": "a1", "score": 7.5}]}

A folder contains documents.jsonl (or corpus.jsonl) and questions.jsonl (or examples.jsonl). A file
given as `path` is loaded as questions if its first record has a `question`, else as documents.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from suffice.datasets.dataset import Dataset, from_file, parse_documents, parse_questions
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.locate import DatasetFiles
from suffice.errors import InputError
from suffice.storage import BadRecords, Record, read_json_records, write_atomically
from suffice.storage.fields import (
    field_error,
    is_text,
    optional_count,
    optional_date,
    optional_text,
    optional_texts,
    required_list,
    required_text,
)
from suffice.types import Document, Hit, Question

QUESTION_FILES = ("examples.jsonl", "questions.jsonl")
CORPUS_FILES = ("documents.jsonl", "corpus.jsonl")
_ID_FIELDS = ("doc_id", "id", "_id")
_KNOWN_FIELDS = frozenset(
    (*_ID_FIELDS, "text", "title", "source", "category", "published_at", "entities", "parent")
)


def load(files: DatasetFiles, *, skip_bad: bool = False) -> Dataset:
    path = files.path
    if path is not None and path.is_file() and not _has_questions(path, BadRecords(skip=skip_bad)):
        files = DatasetFiles(None, files.questions, files.corpus or path)
    files = files.locate(QUESTION_FILES, CORPUS_FILES)
    return Dataset(
        "jsonl",
        documents=from_file(load_documents, files.corpus),
        questions=from_file(load_questions, files.questions),
        skip_bad=skip_bad,
    )


def _has_questions(path: Path, bad: BadRecords) -> bool:
    try:
        first = next(read_json_records(path, bad), None)
    except InputError:
        return False  # loading it as documents will report the error
    return first is not None and "question" in first.value


def load_documents(path: Path, bad: BadRecords, *, empty_ok: bool = False) -> Iterator[Document]:
    """The documents of a file, each id once. `empty_ok`: text and title may both be empty."""
    return parse_documents(
        read_json_records(path, bad), bad, lambda record: parse_document(record, empty_ok=empty_ok)
    )


def parse_document(record: Record, *, empty_ok: bool = False) -> Document:
    """One document; InputError if the record is not one."""
    id_field = next((name for name in _ID_FIELDS if record.value.get(name) is not None), "doc_id")
    doc_id = optional_text(record, id_field)
    if doc_id is None:
        raise field_error(record, id_field, "a document id")
    text, title = record.value.get("text"), optional_text(record, "title") or ""
    if not is_text(text) and not (text is None and title):
        raise field_error(record, "text", "a text")
    if not (empty_ok or title or (text or "").strip()):
        raise field_error(record, "text", "a text that is not empty, or a title")
    return Document(
        doc_id,
        text or "",
        title=title,
        source=optional_text(record, "source"),
        category=optional_text(record, "category"),
        published_at=optional_date(record, "published_at"),
        entities=optional_texts(record, "entities"),
        parent=optional_text(record, "parent"),
        extra={key: value for key, value in record.value.items() if key not in _KNOWN_FIELDS},
    )


def load_questions(path: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
    """The questions of a file with their gold, each id once."""
    return parse_questions(read_json_records(path, bad), bad, _question)


def _question(record: Record) -> GoldQuestion:
    question_id = optional_text(record, "question_id") or optional_text(record, "id")
    question_id = question_id or record.where.rpartition(":")[2]
    if record.value.get("gold") is None:
        expected = "a list of document ids (empty for a question that nothing answers)"
        raise field_error(record, "gold", expected)
    doc_ids = frozenset(optional_texts(record, "gold"))
    hops = optional_count(record, "hops")
    return GoldQuestion(
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


def _hits(record: Record) -> tuple[Hit, ...] | None:
    if record.value.get("hits") is None:
        return None
    found: dict[str, Hit] = {}
    for value in required_list(record, "hits"):
        hit = _hit(value)
        if hit is None or hit.doc_id in found:
            expected = "document ids, or objects with doc_id and a score, each document once"
            raise field_error(record, "hits", expected)
        found[hit.doc_id] = hit
    return tuple(found.values())


def _hit(value: Any) -> Hit | None:
    is_object = isinstance(value, dict)
    doc_id, score = (value.get("doc_id"), value.get("score")) if is_object else (value, None)
    if isinstance(doc_id, int) and not isinstance(doc_id, bool):
        doc_id = str(doc_id)
    if not is_text(doc_id) or not doc_id:
        return None
    if score is None:
        return Hit(doc_id)
    if isinstance(score, bool) or not isinstance(score, int | float):
        return None
    # An integer may exceed any float; NaN fails every comparison.
    return Hit(doc_id, float(score)) if abs(score) <= sys.float_info.max else None


def document_record(document: Document) -> dict[str, Any]:
    """A document as an object in this format; loading it returns the same document."""
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


def question_record(question: GoldQuestion) -> dict[str, Any]:
    """A question as an object in this format; hits keep only id and score."""
    gold, hits = question.gold, question.hits
    known = {
        "question_id": question.question.question_id,
        "question": question.question.text,
        "gold": sorted(gold.doc_ids),
        "answer": gold.answer,
        "kind": gold.kind,
        "hops": gold.hops,
        "labels": list(gold.labels) or None,
        "hits": None
        if hits is None
        else [{"doc_id": hit.doc_id, "score": hit.score} for hit in hits],
    }
    return {key: value for key, value in known.items() if value is not None}


def write(dataset: Dataset, folder: Path) -> list[Path]:
    """Stream a data set to documents.jsonl and questions.jsonl; `load` reads the folder back."""
    written = []
    if dataset.has_documents:
        written.append(folder / "documents.jsonl")
        write_atomically(written[-1], map(_line, map(document_record, dataset.documents())))
    if dataset.has_questions:
        written.append(folder / "questions.jsonl")
        write_atomically(written[-1], map(_line, map(question_record, dataset.questions())))
    return written


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
