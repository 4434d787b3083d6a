"""Rows of ragas and deepeval: in and out, without importing either.

    rows = list(ragas_rows(dataset.questions(), documents))            ours out, for ragas.EvaluationDataset.from_list(rows)
    rows = list(deepeval_rows(dataset.questions(), documents))         ours out, for LLMTestCase(**row)
    row = as_ragas(case)                                              theirs in: a sample, a test case, or a dict of either
    gate.check_batch(map(question_and_hits, cases))                   theirs under the gate

Rows as JSON Lines are a data set of ours: `suffice fit --dataset ragas --path rows.jsonl`. Texts without ids get ids made of
the texts, there and here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError
from suffice.storage.fields import content_id
from suffice.types import DocId, Document

__all__ = ["deepeval_rows", "question_and_hits", "ragas_rows", "to_ragas_row"]

# What others call a column of ragas, the likeliest name first: ragas now, deepeval in Python and in JSON, ragas before 0.2.
_COLUMN_NAMES = {
    "user_input": ("user_input", "input", "question"),
    "response": ("response", "actual_output", "actualOutput", "answer"),
    "reference": ("reference", "expected_output", "expectedOutput", "ground_truth"),
    "retrieved_contexts": (
        "retrieved_contexts",
        "retrieval_context",
        "retrievalContext",
        "contexts",
    ),
    "retrieved_context_ids": ("retrieved_context_ids",),
    "reference_contexts": ("reference_contexts", "context"),
    "reference_context_ids": ("reference_context_ids",),
}
_TEXT_COLUMNS = ("user_input", "response", "reference")
_SIDES = ("retrieved", "reference")
_METADATA_NAMES = (
    "metadata",
    "additional_metadata",
    "additionalMetadata",
)  # where a deepeval case keeps what it has no column for


def ragas_rows(
    examples: Iterable[GoldQuestion], documents: Mapping[DocId, Document]
) -> Iterator[dict[str, Any]]:
    """A row an example. A document that is not among `documents` keeps its id, with an empty text."""
    for one in examples:
        row: dict[str, Any] = {
            "question_id": one.question.question_id,
            "user_input": one.question.text,
        }
        if one.gold.answer is not None:
            row["reference"] = one.gold.answer
        found = [hit.doc_id for hit in one.hits or ()]
        for side, ids in zip(_SIDES, (found, sorted(one.gold.doc_ids))):
            row[f"{side}_context_ids"] = ids
            row[f"{side}_contexts"] = [
                documents[doc_id].text if doc_id in documents else "" for doc_id in ids
            ]
        yield row


def deepeval_rows(
    examples: Iterable[GoldQuestion], documents: Mapping[DocId, Document]
) -> Iterator[dict[str, Any]]:
    """The arguments of an LLMTestCase an example; ids, for which it has no place, stand in `metadata`."""
    for row in ragas_rows(examples, documents):
        yield {
            "input": row["user_input"],
            "actual_output": "",
            "expected_output": row.get("reference"),
            "retrieval_context": row["retrieved_contexts"],
            "context": row["reference_contexts"],
            "metadata": {
                name: row[name]
                for name in ("question_id", "retrieved_context_ids", "reference_context_ids")
            },
        }


def to_ragas_row(case: Any) -> dict[str, Any]:
    """A row of ragas with the columns that the case has; InputError that names the column where one is of another type."""
    places = (
        _METADATA_NAMES if isinstance(case, Mapping) else _METADATA_NAMES[:1]
    )  # asking a case for the older ones warns
    apart = next((found for name in places if isinstance(found := _field(case, name), Mapping)), {})
    row: dict[str, Any] = {}
    for column, names in _COLUMN_NAMES.items():
        found = next(
            (value for name in names for value in (_field(case, name),) if value is not None),
            apart.get(column),
        )
        if found is not None:
            row[column] = _text(found, column) if column in _TEXT_COLUMNS else _texts(found, column)
    if "user_input" not in row:
        raise InputError(
            "the row has no question", hint="give 'user_input' (ragas) or 'input' (deepeval)"
        )
    question_id = _field(case, "question_id") or apart.get("question_id")
    return {"question_id": question_id, **row} if isinstance(question_id, str) else row


def question_and_hits(case: Any) -> tuple[str, list[dict[str, Any]]]:
    """The question and what was retrieved for it, as a gate takes them."""
    row = to_ragas_row(case)
    texts, ids = row.get("retrieved_contexts"), row.get("retrieved_context_ids")
    if texts is None:
        raise InputError(
            "the row has no retrieved texts",
            hint="give 'retrieved_contexts' or 'retrieval_context'; [] for none",
        )
    if not ids:
        ids = [content_id("", text) for text in texts]
    if len(ids) != len(texts):
        raise InputError(
            f"the row has {len(ids)} retrieved_context_ids for {len(texts)} retrieved_contexts"
        )
    return row["user_input"], [
        {"doc_id": doc_id, "text": text} for doc_id, text in zip(ids, texts, strict=True)
    ]


def _field(case: Any, name: str) -> Any:
    return case.get(name) if isinstance(case, Mapping) else getattr(case, name, None)


def _text(value: Any, column: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"the row's {column} is of type {type(value).__name__}, expected a text")
    return value


def _texts(value: Any, column: str) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(
            f"the row's {column} is of type {type(value).__name__}, expected a list of texts"
        )
    # An id may be a number; a context of deepeval may be a record with its source.
    return [
        _text(str(one) if isinstance(one, int) else getattr(one, "context", one), column)
        for one in value
    ]
