"""HotpotQA: questions with supporting facts and a context of titled paragraphs; 2WikiMultiHopQA has the same layout.

Questions: `_id`, `question`, `answer`, `type`, `supporting_facts` ([title, sentence number] pairs: the titles are the gold),
`context` ([title, sentences] pairs). Corpus: one object title -> sentences, or a list (or JSON Lines) of `title` with `text` or
`sentences`. Without a corpus file the corpus is pooled from the contexts. A document's id is its title.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from suffice.datasets.dataset import Dataset
from suffice.datasets.fields import (
    UniqueIds,
    field_error,
    is_text,
    optional_text,
    parse_records,
    required_list,
    required_text,
)
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.locate import locate_files
from suffice.errors import InputError
from suffice.storage import (
    SKIP_HINT,
    BadRecords,
    Record,
    read_json_object,
    read_json_records,
    readable_file,
)
from suffice.types import Document, Question

__all__ = ["load", "load_2wiki", "load_supporting_facts"]


def load(
    path: Path | None = None,
    *,
    questions: Path | None = None,
    corpus: Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    names = ("hotpotqa.json", "hotpot_dev_distractor_v1.json", "hotpot_*.json")
    return load_supporting_facts(
        "hotpotqa",
        path,
        questions,
        corpus,
        question_names=names,
        corpus_names=("hotpotqa_corpus.json",),
        skip_bad=skip_bad,
        drawn_with_replacement=True,
    )


def load_supporting_facts(
    name: str,
    path: Path | None,
    questions: Path | None,
    corpus: Path | None,
    *,
    question_names: tuple[str, ...],
    corpus_names: tuple[str, ...],
    skip_bad: bool,
    drawn_with_replacement: bool = False,
) -> Dataset:
    """A data set in HotpotQA's layout. Drawn with replacement: a record may come again, word for word."""
    places = locate_files(
        path, questions, corpus, question_names=question_names, corpus_names=corpus_names
    )
    asked, held = places.questions, places.corpus
    return Dataset(
        name,
        documents=(lambda bad: _passages(held, bad))
        if held
        else (lambda bad: _pooled(asked, bad))
        if asked
        else None,
        examples=(lambda bad: _examples(asked, bad, drawn_with_replacement)) if asked else None,
        skip_bad=skip_bad,
        one_file=held is None,
    )


# -------------------------------------------------------------------------------------------------- questions


def _examples(path: Path, bad: BadRecords, drawn_with_replacement: bool) -> Iterator[GoldQuestion]:
    repeats = _RepeatedIds(allowed=drawn_with_replacement)
    return parse_records(
        read_json_records(path, bad),
        bad,
        lambda record: repeats.told_apart(_example(record), record.where),
    )


def _example(record: Record) -> GoldQuestion:
    facts = required_list(record, "supporting_facts")
    if not facts or not all(isinstance(fact, list) and fact and is_text(fact[0]) for fact in facts):
        raise field_error(
            record, "supporting_facts", "a list of [title, sentence number] pairs, at least one"
        )
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


class _RepeatedIds:
    """Questions drawn more than once.

    The HotpotQA sample that papers share holds some records two or three times, and published averages count them each time.
    So such a record stays, as `id#2`; the same id with another content is a mistake.
    """

    def __init__(self, *, allowed: bool) -> None:
        self._allowed = allowed
        self._once = UniqueIds("question")
        self._seen: dict[str, tuple[bytes, int]] = {}

    def told_apart(self, example: GoldQuestion, where: str) -> GoldQuestion:
        question_id = example.question.question_id
        said = repr((example.question.text, example.gold.answer, sorted(example.gold.doc_ids)))
        content = hashlib.sha256(said.encode()).digest()
        before, times = self._seen.get(question_id, (content, 0))
        if times == 0 or before != content or not self._allowed:
            self._once.check(question_id, where)
        self._seen[question_id] = (content, times + 1)
        return example if times == 0 else _renamed(example, f"{question_id}#{times + 1}")


def _renamed(example: GoldQuestion, question_id: str) -> GoldQuestion:
    gold = example.gold
    return GoldQuestion(
        Question(question_id, example.question.text),
        Gold(question_id, gold.doc_ids, gold.answer, gold.kind, gold.hops, gold.labels),
    )


# --------------------------------------------------------------------------------------------------- passages


def _pooled(path: Path, bad: BadRecords) -> Iterator[Document]:
    """Each titled paragraph of the questions' contexts once, as it first appears."""
    seen: set[str] = set()
    for context in parse_records(read_json_records(path, bad), bad, _context):
        for document in context:
            if document.doc_id not in seen:
                seen.add(document.doc_id)
                yield document


def _context(record: Record) -> list[Document]:
    _example(record)  # a record that is a bad question gives no documents either
    pairs = required_list(record, "context")
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise field_error(record, "context", "a list of [title, sentences] pairs")
    return [_passage(title, sentences, record.where) for title, sentences in pairs]


def _passages(path: Path, bad: BadRecords) -> Iterator[Document]:
    once = UniqueIds("document")

    def passage(record: Record) -> Document:
        body = (
            record.value["sentences"] if "sentences" in record.value else record.value.get("text")
        )
        document = _passage(record.value.get("title"), body, record.where)
        once.check(document.doc_id, record.where)
        return document

    return parse_records(_passage_records(path, bad), bad, passage)


def _passage_records(path: Path, bad: BadRecords) -> Iterator[Record]:
    if not _maps_titles(path):
        return read_json_records(path, bad)
    return (
        Record({"title": entry.key, "text": entry.value}, entry.where)
        for entry in read_json_object(path)
    )


def _maps_titles(path: Path) -> bool:
    """Whether the file is one object title -> sentences, rather than a list or JSON Lines of passages."""
    with readable_file(path).open("rb") as stream:
        if not stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            return False
    first = next(islice(read_json_object(path), 1), None)
    return first is None or first.key not in ("title", "text", "sentences", "_id", "id", "idx")


def _passage(title: Any, body: Any, where: str) -> Document:
    if not is_text(title) or not title.strip():
        raise InputError(
            f"{where}: the title of a passage is {title!r:.80}, expected a text that is not empty",
            hint=SKIP_HINT,
        )
    if isinstance(body, list) and all(isinstance(sentence, str) for sentence in body):
        body = _joined(body)
    if not is_text(body):
        raise InputError(
            f"{where}: the passage {title!r} holds {body!r:.80}, expected a text or a list of sentences",
            hint=SKIP_HINT,
        )
    return Document(title.strip(), body, title=title.strip())


def _joined(sentences: list[str]) -> str:
    # HotpotQA's sentences bring their leading space, 2Wiki's do not.
    spaced = (one if one[:1].isspace() else f" {one}" for one in sentences[1:])
    return "".join([*sentences[:1], *spaced])


# --- twowiki: 2WikiMultiHopQA: HotpotQA's layout, four kinds of questions, two or four gold passages each.


def load_2wiki(
    path: Path | None = None,
    *,
    questions: Path | None = None,
    corpus: Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    return load_supporting_facts(
        "2wikimultihopqa",
        path,
        questions,
        corpus,
        question_names=("2wikimultihopqa.json", "dev.json"),
        corpus_names=("2wikimultihopqa_corpus.json",),
        skip_bad=skip_bad,
    )
