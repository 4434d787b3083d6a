"""MuSiQue: questions of two to four hops with their paragraphs, some of them supporting.

Questions: `id` ("3hop1__…"), `question`, `answer`, `paragraphs` of `title`, `paragraph_text`,
`is_supporting`; `answerable` false (in MuSiQue-Full) makes a null question. Corpus: a list (or JSON
Lines) of `title`, `text`. Titles repeat, so a document's id is derived from title and text, equal
for both files. Without a corpus file, the corpus is pooled from the paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from suffice.datasets.dataset import (
    Dataset,
    from_file,
    parse_documents,
    parse_questions,
    unique_documents,
)
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.locate import DatasetFiles
from suffice.storage import BadRecords, Record, read_json_records
from suffice.storage.fields import (
    content_id,
    field_error,
    optional_text,
    required_list,
    required_text,
)
from suffice.storage.records import parse_records
from suffice.types import Document, Question

_KIND = re.compile(r"\dhop\d?(?=_)")


def load(files: DatasetFiles, *, skip_bad: bool = False) -> Dataset:
    names = ("musique.json", "musique_ans_v1.0_dev.jsonl", "musique_*_dev.jsonl")
    files = files.locate(names, ("musique_corpus.json",))
    return Dataset(
        "musique",
        documents=from_file(_passages, files.corpus) or from_file(_pooled, files.questions),
        questions=from_file(_questions, files.questions),
        skip_bad=skip_bad,
        one_file=files.corpus is None,
    )


def _questions(path: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
    return parse_questions(read_json_records(path, bad), bad, _question)


def _question(record: Record) -> GoldQuestion:
    question_id = required_text(record, "id")
    paragraphs = _paragraphs(record)
    if not all("is_supporting" in paragraph.value for paragraph in paragraphs):
        expected = "paragraphs that say is_supporting (the test file has no gold)"
        raise field_error(record, "paragraphs", expected)
    supporting = [one for one in paragraphs if one.value["is_supporting"] is True]
    gold = frozenset(_document(one, "paragraph_text").doc_id for one in supporting)
    found = _KIND.match(question_id)
    kind = found[0] if found else f"{len(gold)}hop"
    if record.value.get("answerable") is False:
        # MuSiQue-Full pairs each question with an unanswerable twin of the same id.
        question_id, kind, gold = f"{question_id}#unanswerable", "unanswerable", frozenset()
    elif not gold:
        raise field_error(record, "paragraphs", "at least one paragraph with is_supporting true")
    return GoldQuestion(
        Question(question_id, required_text(record, "question")),
        Gold(question_id, gold, optional_text(record, "answer"), kind, hops=len(gold)),
    )


def _pooled(path: Path, bad: BadRecords) -> Iterator[Document]:
    return unique_documents(parse_records(read_json_records(path, bad), bad, _context))


def _context(record: Record) -> list[Document]:
    _question(record)  # a record with an invalid question gives no documents either
    return [_document(paragraph, "paragraph_text") for paragraph in _paragraphs(record)]


def _paragraphs(record: Record) -> list[Record]:
    found = required_list(record, "paragraphs")
    if not found or not all(isinstance(one, dict) for one in found):
        raise field_error(record, "paragraphs", "a list of objects, at least one")
    return [Record(one, record.where) for one in found]


def _passages(path: Path, bad: BadRecords) -> Iterator[Document]:
    return parse_documents(
        read_json_records(path, bad), bad, lambda record: _document(record, "text")
    )


def _document(record: Record, field: str) -> Document:
    title, text = optional_text(record, "title") or "", required_text(record, field)
    return Document(content_id(title, text), text, title=title)
