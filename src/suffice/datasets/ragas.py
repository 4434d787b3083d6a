"""ragas rows: questions with what was retrieved and what should have been, as JSON Lines or a JSON array.

`user_input`, `retrieved_context_ids` with `retrieved_contexts`, `reference_context_ids` (the gold) with `reference_contexts`
where known, `reference` (the answer). Where a row has texts but no ids, the ids are made of the texts. The documents are those
that were retrieved or referred to with their text: part of a corpus, so gold without a document is no mistake here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from suffice.datasets.dataset import Dataset
from suffice.datasets.fields import (
    UniqueIds,
    content_id,
    field_error,
    optional_text,
    optional_texts,
    parse_records,
    required_text,
)
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.jsonl import load_documents
from suffice.datasets.locate import locate_files
from suffice.errors import InputError
from suffice.storage import BadRecords, Record, read_json_records
from suffice.types import DocId, Document, Hit, Question

__all__ = ["load"]


def load(
    path: Path | None = None,
    *,
    questions: Path | None = None,
    corpus: Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    places = locate_files(path, questions, corpus, question_names=("*.jsonl", "*.json"))
    rows, held = places.questions, places.corpus
    if rows is None:
        raise InputError("ragas rows are missing", hint="pass --path with the file of rows")
    return Dataset(
        "ragas",
        documents=(lambda bad: load_documents(held, bad))
        if held
        else (lambda bad: _documents(rows, bad)),
        examples=lambda bad: _examples(rows, bad),
        skip_bad=skip_bad,
        one_file=held is None,
        whole_corpus=held is not None,
    )


def _examples(path: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
    number = count()
    once = UniqueIds("question")

    def example(record: Record) -> GoldQuestion:
        question_id = (
            optional_text(record, "question_id")
            or optional_text(record, "id")
            or f"row{next(number)}"
        )
        found = _example(record, question_id)
        once.check(question_id, record.where)
        return found

    return parse_records(read_json_records(path, bad), bad, example)


def _example(record: Record, question_id: str) -> GoldQuestion:
    retrieved = dict.fromkeys(_ids(record, "retrieved"))
    gold = frozenset(_ids(record, "reference"))
    return GoldQuestion(
        Question(question_id, required_text(record, "user_input")),
        Gold(question_id, gold, answer=optional_text(record, "reference"), hops=len(gold)),
        hits=tuple(Hit(doc_id) for doc_id in retrieved),
    )


def _ids(record: Record, side: str) -> tuple[DocId, ...]:
    ids, bodies = (
        optional_texts(record, f"{side}_context_ids"),
        optional_texts(record, f"{side}_contexts"),
    )
    if ids and bodies and len(ids) != len(bodies):
        raise field_error(
            record, f"{side}_context_ids", f"one id for each of the {len(bodies)} {side}_contexts"
        )
    if (
        record.value.get(f"{side}_context_ids") is None
        and record.value.get(f"{side}_contexts") is None
    ):
        raise field_error(record, f"{side}_context_ids", "a list of ids")
    return ids or tuple(content_id("", body) for body in bodies)


def _documents(path: Path, bad: BadRecords) -> Iterator[Document]:
    """Each context once, as it first appears."""
    seen: set[DocId] = set()
    for contexts in parse_records(read_json_records(path, bad), bad, _contexts):
        for document in contexts:
            if document.doc_id not in seen:
                seen.add(document.doc_id)
                yield document


def _contexts(record: Record) -> list[Document]:
    _example(record, "")  # a row that is a bad example gives no documents either
    return [
        Document(doc_id, body)
        for side in ("retrieved", "reference")
        for doc_id, body in zip(_ids(record, side), optional_texts(record, f"{side}_contexts"))
    ]
