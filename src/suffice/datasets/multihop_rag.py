"""MultiHop-RAG: news questions whose evidence lies in two to four articles, and the articles, in the official layout.

Questions (MultiHopRAG.json): `query`, `answer`, `question_type` (inference_query, comparison_query, temporal_query or
null_query), `evidence_list` of objects with `title`, `url` and the quoted `fact`. Articles (corpus.json): `title`, `body`, and
`source`, `category`, `published_at`, `author`, `url`, each of which may be null. A document's id is its title, or its
url where it has none. The file gives its questions no ids: they are numbered q0, q1, … in its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from suffice.datasets.dataset import Dataset
from suffice.datasets.fields import (
    UniqueIds,
    field_error,
    is_text,
    optional_date,
    optional_text,
    parse_records,
    required_list,
    required_text,
)
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.locate import locate_files
from suffice.storage import BadRecords, Record, read_json_records
from suffice.types import DocId, Document, Question

__all__ = ["load"]

KINDS = ("inference_query", "comparison_query", "temporal_query", "null_query")
_READ = frozenset(("title", "body", "source", "category", "published_at"))


def load(
    path: Path | None = None,
    *,
    questions: Path | None = None,
    corpus: Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    places = locate_files(
        path, questions, corpus, question_names=("MultiHopRAG.json",), corpus_names=("corpus.json",)
    )
    asked, held = places.questions, places.corpus
    return Dataset(
        "multihop_rag",
        documents=(lambda bad: _documents(held, bad)) if held else None,
        examples=(lambda bad: _examples(asked, bad)) if asked else None,
        skip_bad=skip_bad,
    )


def _examples(path: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
    number = count()

    def example(record: Record) -> GoldQuestion:
        question_id = f"q{next(number)}"
        kind = required_text(record, "question_type")
        if kind not in KINDS:
            raise field_error(record, "question_type", " or ".join(KINDS))
        evidence = list(_evidence(record))
        gold = frozenset(_doc_id(article) for article in evidence)
        if bool(gold) == (kind == "null_query"):
            raise field_error(
                record,
                "evidence_list",
                f"{'none' if gold else 'at least one article'} for a {kind}",
            )
        return GoldQuestion(
            Question(question_id, required_text(record, "query")),
            Gold(
                question_id,
                gold,
                answer=optional_text(record, "answer"),
                kind=kind.removesuffix("_query"),
                hops=len(gold),
                facts=tuple(
                    fact for article in evidence if (fact := optional_text(article, "fact"))
                ),
            ),
        )

    return parse_records(read_json_records(path, bad), bad, example)


def _evidence(record: Record) -> Iterator[Record]:
    for article in required_list(record, "evidence_list"):
        if not isinstance(article, dict):
            raise field_error(record, "evidence_list", "a list of objects with a title")
        yield Record(article, record.where)


def _documents(path: Path, bad: BadRecords) -> Iterator[Document]:
    once = UniqueIds("document")

    def document(record: Record) -> Document:
        doc_id = _doc_id(record)
        body = record.value.get("body")
        if not is_text(body):
            raise field_error(record, "body", "a text")
        article = Document(
            doc_id,
            body,
            title=optional_text(record, "title") or "",
            source=optional_text(record, "source"),
            category=optional_text(record, "category"),
            published_at=optional_date(record, "published_at"),
            extra={
                key: value
                for key, value in record.value.items()
                if key not in _READ and value is not None
            },
        )
        once.check(doc_id, record.where)
        return article

    return parse_records(read_json_records(path, bad), bad, document)


def _doc_id(record: Record) -> DocId:
    return optional_text(record, "title") or required_text(
        record, "url" if record.value.get("url") else "title"
    )
