"""MultiHop-RAG: news questions with evidence in two to four articles, in the official layout.

Questions (MultiHopRAG.json): `query`, `answer`, `question_type` (inference_query, comparison_query,
temporal_query or null_query), `evidence_list` of objects with `title`, `url` and the quoted `fact`.
Articles (corpus.json): `title`, `body`, and `source`, `category`, `published_at`, `author`, `url`,
each of which may be null. A document's id is its title, or its url if it has none. Questions in the
file have no ids: they are numbered q0, q1, … in file order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from suffice.datasets.dataset import Dataset, from_file, parse_documents
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.locate import DatasetFiles
from suffice.storage import BadRecords, Record, read_json_records
from suffice.storage.fields import (
    field_error,
    is_text,
    optional_date,
    optional_text,
    required_list,
    required_text,
)
from suffice.storage.records import parse_records
from suffice.types import DocId, Document, Question

KINDS = ("inference_query", "comparison_query", "temporal_query", "null_query")
_KNOWN_FIELDS = frozenset(("title", "body", "source", "category", "published_at"))


def load(files: DatasetFiles, *, skip_bad: bool = False) -> Dataset:
    files = files.locate(("MultiHopRAG.json",), ("corpus.json",))
    return Dataset(
        "multihop_rag",
        documents=from_file(_documents, files.corpus),
        questions=from_file(_questions, files.questions),
        skip_bad=skip_bad,
    )


def _questions(path: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
    number = count()
    records = read_json_records(path, bad)
    return parse_records(records, bad, lambda record: _question(record, f"q{next(number)}"))


def _question(record: Record, question_id: str) -> GoldQuestion:
    kind = required_text(record, "question_type")
    if kind not in KINDS:
        raise field_error(record, "question_type", " or ".join(KINDS))
    articles = required_list(record, "evidence_list")
    if not all(isinstance(article, dict) for article in articles):
        raise field_error(record, "evidence_list", "a list of objects with a title")
    evidence = [Record(article, record.where) for article in articles]
    gold = frozenset(_doc_id(article) for article in evidence)
    if bool(gold) == (kind == "null_query"):
        expected = f"{'none' if gold else 'at least one article'} for a {kind}"
        raise field_error(record, "evidence_list", expected)
    return GoldQuestion(
        Question(question_id, required_text(record, "query")),
        Gold(
            question_id,
            gold,
            answer=optional_text(record, "answer"),
            kind=kind.removesuffix("_query"),
            hops=len(gold),
            facts=tuple(fact for one in evidence if (fact := optional_text(one, "fact"))),
        ),
    )


def _documents(path: Path, bad: BadRecords) -> Iterator[Document]:
    return parse_documents(read_json_records(path, bad), bad, _document)


def _document(record: Record) -> Document:
    doc_id, body = _doc_id(record), record.value.get("body")
    if not is_text(body):
        raise field_error(record, "body", "a text")
    other = {key: value for key, value in record.value.items() if key not in _KNOWN_FIELDS}
    return Document(
        doc_id,
        body,
        title=optional_text(record, "title") or "",
        source=optional_text(record, "source"),
        category=optional_text(record, "category"),
        published_at=optional_date(record, "published_at"),
        extra={key: value for key, value in other.items() if value is not None},
    )


def _doc_id(record: Record) -> DocId:
    field = "url" if record.value.get("url") else "title"
    return optional_text(record, "title") or required_text(record, field)
