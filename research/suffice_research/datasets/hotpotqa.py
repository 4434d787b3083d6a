"""HotpotQA and 2WikiMultiHopQA: questions with supporting facts and a context of titled paragraphs.

Questions: `_id`, `question`, `answer`, `type`, `supporting_facts` ([title, sentence number] pairs:
the titles are the gold), `context` ([title, sentences] pairs). Corpus: one object title ->
sentences, or a list (or JSON Lines) of `title` with `text` or `sentences`. Without a corpus file
the corpus is pooled from the contexts. A document's id is its title.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from suffice.datasets.dataset import Dataset, from_file, parse_documents, unique_documents
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.locate import DatasetFiles
from suffice.errors import InputError
from suffice.storage import (
    SKIP_HINT,
    BadRecords,
    Record,
    read_json_object,
    read_json_records,
    readable_file,
)
from suffice.storage.fields import (
    UniqueIds,
    field_error,
    is_text,
    optional_text,
    required_list,
    required_text,
)
from suffice.storage.records import parse_records
from suffice.types import Document, Question


def load(files: DatasetFiles, *, skip_bad: bool = False) -> Dataset:
    names = ("hotpotqa.json", "hotpot_dev_distractor_v1.json", "hotpot_*.json")
    files = files.locate(names, ("hotpotqa_corpus.json",))
    return _dataset("hotpotqa", files, skip_bad, repeats_ok=True)


def load_2wiki(files: DatasetFiles, *, skip_bad: bool = False) -> Dataset:
    names = ("2wikimultihopqa.json", "dev.json")
    files = files.locate(names, ("2wikimultihopqa_corpus.json",))
    return _dataset("2wikimultihopqa", files, skip_bad, repeats_ok=False)


def _dataset(name: str, files: DatasetFiles, skip_bad: bool, repeats_ok: bool) -> Dataset:
    return Dataset(
        name,
        documents=from_file(_passages, files.corpus) or from_file(_pooled, files.questions),
        questions=from_file(partial(_questions, repeats_ok=repeats_ok), files.questions),
        skip_bad=skip_bad,
        one_file=files.corpus is None,
    )


# --------------------------------------------------------------------------------------- questions


def _questions(path: Path, bad: BadRecords, repeats_ok: bool) -> Iterator[GoldQuestion]:
    """The questions in a file. With `repeats_ok` a repeated record is kept, as `id#2`.

    The HotpotQA sample that papers share contains some records two or three times, and published
    averages count each of them. The same id with other content is an error.
    """
    ids = UniqueIds("question")
    seen: dict[str, tuple[bytes, int]] = {}

    def parse(record: Record) -> GoldQuestion:
        found = _question(record)
        question, gold = found.question, found.gold
        content = repr((question.text, gold.answer, sorted(gold.doc_ids))).encode()
        digest = hashlib.sha256(content).digest()
        first, times = seen.get(question.question_id, (digest, 0))
        if times == 0 or first != digest or not repeats_ok:
            ids.check(question.question_id, record.where)
        seen[question.question_id] = (digest, times + 1)
        if times == 0:
            return found
        new_id = f"{question.question_id}#{times + 1}"
        return GoldQuestion(
            replace(question, question_id=new_id), replace(gold, question_id=new_id)
        )

    return parse_records(read_json_records(path, bad), bad, parse)


def _question(record: Record) -> GoldQuestion:
    facts = required_list(record, "supporting_facts")
    if not facts or not all(isinstance(one, list) and one and is_text(one[0]) for one in facts):
        expected = "a list of [title, sentence number] pairs, at least one"
        raise field_error(record, "supporting_facts", expected)
    question_id = required_text(record, "_id")
    gold = frozenset(fact[0].strip() for fact in facts)
    return GoldQuestion(
        Question(question_id, required_text(record, "question")),
        Gold(
            question_id,
            gold,
            answer=optional_text(record, "answer"),
            kind=optional_text(record, "type"),
            hops=len(gold),
        ),
    )


# ---------------------------------------------------------------------------------------- passages


def _pooled(path: Path, bad: BadRecords) -> Iterator[Document]:
    return unique_documents(parse_records(read_json_records(path, bad), bad, _context))


def _context(record: Record) -> list[Document]:
    _question(record)  # a record with an invalid question gives no documents either
    pairs = required_list(record, "context")
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise field_error(record, "context", "a list of [title, sentences] pairs")
    return [_passage(title, sentences, record.where) for title, sentences in pairs]


def _passages(path: Path, bad: BadRecords) -> Iterator[Document]:
    def parse(record: Record) -> Document:
        body = record.value.get("sentences" if "sentences" in record.value else "text")
        return _passage(record.value.get("title"), body, record.where)

    if not _maps_titles(path):
        return parse_documents(read_json_records(path, bad), bad, parse)
    entries = read_json_object(path)
    records = (Record({"title": one.key, "text": one.value}, one.where) for one in entries)
    return parse_documents(records, bad, parse)


def _maps_titles(path: Path) -> bool:
    """Whether the file is one object title -> sentences, not a list or JSON Lines of passages."""
    with readable_file(path).open("rb") as stream:
        if not stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            return False
    first = next(read_json_object(path), None)
    return first is None or first.key not in ("title", "text", "sentences", "_id", "id", "idx")


def _passage(title: Any, body: Any, where: str) -> Document:
    if not is_text(title) or not title.strip():
        raise InputError(
            f"{where}: the title of a passage is {title!r:.80}, expected a text that is not empty",
            hint=SKIP_HINT,
        )
    if isinstance(body, list) and all(isinstance(sentence, str) for sentence in body):
        # HotpotQA's sentences start with a space, 2Wiki's do not.
        spaced = (one if one[:1].isspace() else f" {one}" for one in body[1:])
        body = "".join([*body[:1], *spaced])
    if not is_text(body):
        raise InputError(
            f"{where}: the passage {title!r} is {body!r:.80}, "
            "expected a text or a list of sentences",
            hint=SKIP_HINT,
        )
    return Document(title.strip(), body, title=title.strip())
