"""Rows of ragas and deepeval, without importing either.

    rows = list(ragas_rows(dataset.questions(), documents))        for EvaluationDataset.from_list
    rows = list(deepeval_rows(dataset.questions(), documents))     for LLMTestCase(**row)
    row = to_ragas_row(case)                                       from a sample, test case or dict
    gate.check_batch(map(question_and_hits, cases))                check their cases

Rows as JSON Lines are a data set: `suffice fit --dataset ragas --path rows.jsonl`. Both there and
here, texts without ids get a hash as id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError
from suffice.storage.fields import content_id
from suffice.types import DocId, Document

__all__ = ["deepeval_rows", "question_and_hits", "ragas_rows", "to_ragas_row"]

# A column of ragas and its other names: deepeval in Python and in JSON, ragas before 0.2.
_COLUMN_NAMES = {
    "user_input": "user_input input question",
    "response": "response actual_output actualOutput answer",
    "reference": "reference expected_output expectedOutput ground_truth",
    "retrieved_contexts": "retrieved_contexts retrieval_context retrievalContext contexts",
    "retrieved_context_ids": "retrieved_context_ids",
    "reference_contexts": "reference_contexts context",
    "reference_context_ids": "reference_context_ids",
}
_TEXT_COLUMNS = ("user_input", "response", "reference")
# Where a deepeval case stores values without a column.
_METADATA_NAMES = ("metadata", "additional_metadata", "additionalMetadata")


def ragas_rows(
    questions: Iterable[GoldQuestion], documents: Mapping[DocId, Document]
) -> Iterator[dict[str, Any]]:
    """A row for each question. A document not in `documents` keeps its id, with an empty text."""
    for one in questions:
        question = one.question
        row: dict[str, Any] = {"question_id": question.question_id, "user_input": question.text}
        if one.gold.answer is not None:
            row["reference"] = one.gold.answer
        found = [hit.doc_id for hit in one.hits or ()]
        for side, ids in (("retrieved", found), ("reference", sorted(one.gold.doc_ids))):
            texts = [documents[doc_id].text if doc_id in documents else "" for doc_id in ids]
            row |= {f"{side}_context_ids": ids, f"{side}_contexts": texts}
        yield row


def deepeval_rows(
    questions: Iterable[GoldQuestion], documents: Mapping[DocId, Document]
) -> Iterator[dict[str, Any]]:
    """The arguments of an LLMTestCase for each question; ids are in `metadata`."""
    ids = ("question_id", "retrieved_context_ids", "reference_context_ids")
    for row in ragas_rows(questions, documents):
        yield {
            "input": row["user_input"],
            "actual_output": "",
            "expected_output": row.get("reference"),
            "retrieval_context": row["retrieved_contexts"],
            "context": row["reference_contexts"],
            "metadata": {name: row[name] for name in ids},
        }


def to_ragas_row(case: Any) -> dict[str, Any]:
    """A ragas row with the columns of the case; InputError if one has another type."""
    # Accessing the older names on a deepeval case raises a warning.
    names = _METADATA_NAMES if isinstance(case, Mapping) else _METADATA_NAMES[:1]
    metadata = _first(case, names, Mapping) or {}
    row: dict[str, Any] = {}
    for column, called in _COLUMN_NAMES.items():
        value = _first(case, called.split(), object)
        value = metadata.get(column) if value is None else value
        if value is not None:
            row[column] = (_text if column in _TEXT_COLUMNS else _texts)(value, column)
    if "user_input" not in row:
        hint = "give 'user_input' (ragas) or 'input' (deepeval)"
        raise InputError("the row has no question", hint=hint)
    question_id = _field(case, "question_id") or metadata.get("question_id")
    return {"question_id": question_id, **row} if isinstance(question_id, str) else row


def question_and_hits(case: Any) -> tuple[str, list[dict[str, Any]]]:
    """The question and its retrieved texts, in a form that a gate accepts."""
    row = to_ragas_row(case)
    texts, ids = row.get("retrieved_contexts"), row.get("retrieved_context_ids")
    if texts is None:
        hint = "give 'retrieved_contexts' or 'retrieval_context'; [] for none"
        raise InputError("the row has no retrieved texts", hint=hint)
    ids = ids or [content_id("", text) for text in texts]
    if len(ids) != len(texts):
        counts = f"{len(ids)} retrieved_context_ids for {len(texts)} retrieved_contexts"
        raise InputError(f"the row has {counts}")
    hits = [{"doc_id": doc_id, "text": text} for doc_id, text in zip(ids, texts)]
    return row["user_input"], hits


def _field(case: Any, name: str) -> Any:
    return case.get(name) if isinstance(case, Mapping) else getattr(case, name, None)


def _first(case: Any, names: Iterable[str], kind: type) -> Any:
    """The first field of these names that is set and of this type."""
    values = (_field(case, name) for name in names)
    return next((one for one in values if one is not None and isinstance(one, kind)), None)


def _text(value: Any, column: str) -> str:
    if not isinstance(value, str):
        kind = type(value).__name__
        raise InputError(f"the row's {column} is of type {kind}, expected a text")
    return value


def _texts(value: Any, column: str) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        kind = type(value).__name__
        raise InputError(f"the row's {column} is of type {kind}, expected a list of texts")
    # An id may be a number; a context of deepeval may be a record with its source.
    plain = [str(one) if isinstance(one, int) else getattr(one, "context", one) for one in value]
    return [_text(one, column) for one in plain]
