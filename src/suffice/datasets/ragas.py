"""ragas rows: questions with retrieved and reference contexts, as JSON Lines or a JSON array.

`user_input`, `retrieved_context_ids` with `retrieved_contexts`, `reference_context_ids` (the gold)
with `reference_contexts` if known, `reference` (the answer). If a row has texts but no ids, the ids
are derived from the texts. The documents are the contexts that have a text. They are part of a
corpus, so gold without a document is no error here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from suffice.datasets.dataset import Dataset, from_file, parse_questions, unique_documents
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.jsonl import load_documents
from suffice.datasets.locate import DatasetFiles
from suffice.errors import InputError
from suffice.storage import BadRecords, Record, read_json_records
from suffice.storage.fields import (
    content_id,
    field_error,
    optional_text,
    optional_texts,
    required_text,
)
from suffice.storage.records import parse_records
from suffice.types import DocId, Document, Hit, Question


def load(files: DatasetFiles, *, skip_bad: bool = False) -> Dataset:
    files = files.locate(("*.jsonl", "*.json"))
    if files.questions is None:
        raise InputError("ragas rows are missing", hint="pass --path with the file of rows")
    return Dataset(
        "ragas",
        documents=from_file(load_documents, files.corpus) or from_file(_documents, files.questions),
        questions=from_file(_questions, files.questions),
        skip_bad=skip_bad,
        one_file=files.corpus is None,
        whole_corpus=files.corpus is not None,
    )


def _questions(path: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
    number = count()

    def parse(record: Record) -> GoldQuestion:
        question_id = optional_text(record, "question_id") or optional_text(record, "id")
        return _question(record, question_id or f"row{next(number)}")

    return parse_questions(read_json_records(path, bad), bad, parse)


def _question(record: Record, question_id: str) -> GoldQuestion:
    retrieved = dict.fromkeys(_ids(record, "retrieved"))
    gold = frozenset(_ids(record, "reference"))
    return GoldQuestion(
        Question(question_id, required_text(record, "user_input")),
        Gold(question_id, gold, answer=optional_text(record, "reference"), hops=len(gold)),
        hits=tuple(Hit(doc_id) for doc_id in retrieved),
    )


def _ids(record: Record, side: str) -> tuple[DocId, ...]:
    id_field, text_field = f"{side}_context_ids", f"{side}_contexts"
    ids, texts = optional_texts(record, id_field), optional_texts(record, text_field)
    if ids and texts and len(ids) != len(texts):
        raise field_error(record, id_field, f"one id for each of the {len(texts)} {text_field}")
    if record.value.get(id_field) is None and record.value.get(text_field) is None:
        raise field_error(record, id_field, "a list of ids")
    return ids or tuple(content_id("", text) for text in texts)


def _documents(path: Path, bad: BadRecords) -> Iterator[Document]:
    return unique_documents(parse_records(read_json_records(path, bad), bad, _contexts))


def _contexts(record: Record) -> list[Document]:
    _question(record, "")  # a row with an invalid question gives no documents either
    return [
        Document(doc_id, text)
        for side in ("retrieved", "reference")
        for doc_id, text in zip(_ids(record, side), optional_texts(record, f"{side}_contexts"))
    ]
