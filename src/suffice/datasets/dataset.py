"""A data set: documents and questions with gold, streamed from their files, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError
from suffice.storage import BadRecords, Record
from suffice.storage.fields import UniqueIds
from suffice.storage.records import parse_records
from suffice.types import DocId, Document, QuestionId

T = TypeVar("T")
Stream = Callable[[BadRecords], Iterable[T]]


class Dataset:
    """Documents and questions under one name. Each pass streams again; nothing is cached.

    `documents` and `questions` take a BadRecords and return the records; None if the data set lacks
    that part. With `one_file` both passes read the same records, so a bad one counts once.
    `whole_corpus` is False if the documents are only retrieved ones; missing gold is then no error.
    """

    def __init__(
        self,
        name: str,
        *,
        documents: Stream[Document] | None = None,
        questions: Stream[GoldQuestion] | None = None,
        skip_bad: bool = False,
        one_file: bool = False,
        whole_corpus: bool = True,
    ) -> None:
        self.name = name
        self.whole_corpus = whole_corpus and documents is not None
        self.has_documents, self.has_questions = documents is not None, questions is not None
        self._documents, self._questions = documents, questions
        self._skip_bad, self._one_file = skip_bad, one_file
        self._bad_documents = BadRecords(skip=skip_bad)
        self._bad_questions = BadRecords(skip=skip_bad)

    def documents(self) -> Iterator[Document]:
        """Every document once."""
        if self._documents is None:
            raise InputError(
                f"the data set '{self.name}' has no documents", hint="name their file with --corpus"
            )
        self._bad_documents = BadRecords(skip=self._skip_bad)
        yield from self._documents(self._bad_documents)

    def questions(self) -> Iterator[GoldQuestion]:
        """Every question with its gold, in file order."""
        if self._questions is None:
            raise InputError(
                f"the data set '{self.name}' has no questions",
                hint="name their file with --questions",
            )
        self._bad_questions = BadRecords(skip=self._skip_bad)
        yield from self._questions(self._bad_questions)

    @property
    def bad(self) -> BadRecords:
        """What the latest passes over documents and questions skipped."""
        documents, questions = self._bad_documents, self._bad_questions
        if self._one_file:
            return max(questions, documents, key=lambda bad: bad.count)
        both = BadRecords(skip=self._skip_bad)
        both.count = documents.count + questions.count
        both.examples = [*documents.examples, *questions.examples][: BadRecords.KEPT]
        return both


# ---------------------------------------------------------------------------- shared by the loaders


def from_file(
    loader: Callable[[Path, BadRecords], Iterable[T]], path: Path | None
) -> Stream[T] | None:
    """The loader bound to its file; None if there is no file."""
    return None if path is None else partial(loader, path)


def parse_documents(
    records: Iterable[Record], bad: BadRecords, parse: Callable[[Record], Document]
) -> Iterator[Document]:
    """The document of each record; a repeated id is a bad record."""
    return _parse_unique(records, bad, parse, "document", lambda document: document.doc_id)


def parse_questions(
    records: Iterable[Record], bad: BadRecords, parse: Callable[[Record], GoldQuestion]
) -> Iterator[GoldQuestion]:
    """The question of each record; a repeated id is a bad record."""
    return _parse_unique(records, bad, parse, "question", lambda one: one.question.question_id)


def _parse_unique(
    records: Iterable[Record],
    bad: BadRecords,
    parse: Callable[[Record], T],
    what: str,
    id_of: Callable[[T], str],
) -> Iterator[T]:
    ids = UniqueIds(what)

    def parse_one(record: Record) -> T:
        value = parse(record)
        ids.check(id_of(value), record.where)
        return value

    return parse_records(records, bad, parse_one)


def unique_documents(groups: Iterable[Iterable[Document]]) -> Iterator[Document]:
    """Each document once, as it first appears."""
    seen: set[DocId] = set()
    for document in (one for group in groups for one in group):
        if document.doc_id not in seen:
            seen.add(document.doc_id)
            yield document


# ---------------------------------------------------------------------------------------- summary


@dataclass(frozen=True, slots=True)
class MissingGold:
    """A gold document that the corpus does not contain."""

    question_id: QuestionId
    doc_id: DocId


@dataclass(frozen=True, slots=True)
class Summary:
    """The contents of a data set. Hops are counted over the questions with gold."""

    name: str
    documents: int
    questions: int
    null_questions: int
    repeated_questions: int  # questions with the same text as an earlier one
    mentions: int  # gold documents, summed over the questions
    titles: int  # distinct gold documents
    hops_min: int | None
    hops_mean: float | None
    hops_max: int | None
    by_hops: dict[int, int]
    by_kind: dict[str, int]
    labels: dict[str, int]
    unresolved: tuple[MissingGold, ...]  # the first few
    unresolved_count: int
    skipped: int
    skipped_examples: tuple[str, ...]


def describe(dataset: Dataset) -> Summary:
    """Count a data set in one pass over its questions and one over its documents.

    Memory grows with the gold, not with the corpus.
    """
    hops: Counter[int] = Counter()
    kinds: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    gold: set[DocId] = set()
    texts: set[int] = set()
    questions = mentions = repeated = 0
    for one in dataset.questions() if dataset.has_questions else ():
        questions += 1
        mentions += len(one.gold.doc_ids)
        gold |= one.gold.doc_ids
        labels.update(one.gold.labels)
        kinds.update([one.gold.kind] if one.gold.kind else [])
        hops.update([one.gold.hops] if one.gold.doc_ids else [])
        text = hash(one.question.text or one.question.question_id)
        repeated += text in texts
        texts.add(text)
    titles, with_gold = len(gold), hops.total()
    documents = 0
    for document in dataset.documents() if dataset.has_documents else ():
        documents += 1
        gold.discard(document.doc_id)
    bad = dataset.bad
    unresolved: list[MissingGold] = []
    unresolved_count = 0
    # A second pass finds the questions that need missing documents, if there are any.
    for one in dataset.questions() if gold and dataset.whole_corpus else ():
        for doc_id in sorted(one.gold.doc_ids & gold):
            unresolved_count += 1
            if len(unresolved) < BadRecords.KEPT:
                unresolved.append(MissingGold(one.gold.question_id, doc_id))
    hops_sum = sum(size * count for size, count in hops.items())
    return Summary(
        name=dataset.name,
        documents=documents,
        questions=questions,
        null_questions=questions - with_gold,
        repeated_questions=repeated,
        mentions=mentions,
        titles=titles,
        hops_min=min(hops, default=None),
        hops_mean=hops_sum / with_gold if with_gold else None,
        hops_max=max(hops, default=None),
        by_hops=dict(sorted(hops.items())),
        by_kind=dict(sorted(kinds.items())),
        labels=dict(sorted(labels.items())),
        unresolved=tuple(unresolved),
        unresolved_count=unresolved_count,
        skipped=bad.count,
        skipped_examples=tuple(bad.examples),
    )


def check_gold(summary: Summary) -> None:
    """Raise an InputError if a question needs a document that the corpus does not contain."""
    if summary.unresolved:
        first, more = summary.unresolved[0], summary.unresolved_count - 1
        raise InputError(
            f"question {first.question_id!r} needs document {first.doc_id!r}, which is not in the "
            "corpus" + (f" (and {more:,} more like it)" if more else ""),
            hint="check that the question file and the corpus file belong together",
        )
