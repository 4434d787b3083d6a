"""MuSiQue: questions of two to four hops with their paragraphs, some of them supporting.

Questions: `id` ("3hop1__…"), `question`, `answer`, `paragraphs` of `title`, `paragraph_text`, `is_supporting`; `answerable`
false (in MuSiQue-Full) makes a null question. Corpus: a list (or JSON Lines) of `title`, `text`. Titles repeat, so a document's
id is made of title and text, the same from either file. Without a corpus file the corpus is pooled from the paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from suffice.datasets.dataset import Dataset
from suffice.datasets.fields import (
    UniqueIds,
    content_id,
    field_error,
    optional_text,
    parse_records,
    required_list,
    required_text,
)
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.locate import locate_files
from suffice.storage import BadRecords, Record, read_json_records
from suffice.types import Document, Question

__all__ = ["load"]

_KIND = re.compile(r"\dhop\d?(?=_)")


def load(
    path: Path | None = None,
    *,
    questions: Path | None = None,
    corpus: Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    places = locate_files(
        path,
        questions,
        corpus,
        question_names=("musique.json", "musique_ans_v1.0_dev.jsonl", "musique_*_dev.jsonl"),
        corpus_names=("musique_corpus.json",),
    )
    asked, held = places.questions, places.corpus
    return Dataset(
        "musique",
        documents=(lambda bad: _passages(held, bad))
        if held
        else (lambda bad: _pooled(asked, bad))
        if asked
        else None,
        examples=(lambda bad: _examples(asked, bad)) if asked else None,
        skip_bad=skip_bad,
        one_file=held is None,
    )


def _examples(path: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
    once = UniqueIds("question")

    def example(record: Record) -> GoldQuestion:
        found = _example(record)
        once.check(found.question.question_id, record.where)
        return found

    return parse_records(read_json_records(path, bad), bad, example)


def _example(record: Record) -> GoldQuestion:
    question_id = required_text(record, "id")
    paragraphs = _paragraphs(record)
    if not all("is_supporting" in paragraph.value for paragraph in paragraphs):
        raise field_error(
            record, "paragraphs", "paragraphs that say is_supporting (the test file has no gold)"
        )
    gold = frozenset(
        _document(one, "paragraph_text").doc_id
        for one in paragraphs
        if one.value["is_supporting"] is True
    )
    found = _KIND.match(question_id)
    kind = found[0] if found else f"{len(gold)}hop"
    if record.value.get("answerable") is False:
        # MuSiQue-Full pairs each question with an unanswerable twin of the same id.
        question_id, kind, gold = f"{question_id}#unanswerable", "unanswerable", frozenset()
    elif not gold:
        raise field_error(record, "paragraphs", "at least one paragraph with is_supporting true")
    return GoldQuestion(
        Question(question_id, required_text(record, "question")),
        Gold(question_id, gold, answer=optional_text(record, "answer"), kind=kind, hops=len(gold)),
    )


def _pooled(path: Path, bad: BadRecords) -> Iterator[Document]:
    """Each paragraph of the questions once, as it first appears."""
    seen: set[str] = set()
    for documents in parse_records(read_json_records(path, bad), bad, _context):
        for document in documents:
            if document.doc_id not in seen:
                seen.add(document.doc_id)
                yield document


def _context(record: Record) -> list[Document]:
    _example(record)  # a record that is a bad question gives no documents either
    return [_document(paragraph, "paragraph_text") for paragraph in _paragraphs(record)]


def _paragraphs(record: Record) -> list[Record]:
    found = required_list(record, "paragraphs")
    if not found or not all(isinstance(one, dict) for one in found):
        raise field_error(record, "paragraphs", "a list of objects, at least one")
    return [Record(one, record.where) for one in found]


def _passages(path: Path, bad: BadRecords) -> Iterator[Document]:
    once = UniqueIds("document")

    def passage(record: Record) -> Document:
        document = _document(record, "text")
        once.check(document.doc_id, record.where)
        return document

    return parse_records(read_json_records(path, bad), bad, passage)


def _document(record: Record, field: str) -> Document:
    title, body = optional_text(record, "title") or "", required_text(record, field)
    return Document(content_id(title, body), body, title=title)
