"""A data set: documents and labelled examples, streamed from wherever they live, and a summary of what is in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError
from suffice.storage import BadRecords
from suffice.types import DocId, Document, QuestionId

__all__ = ["Dataset", "MissingGold", "Summary", "check_gold", "describe"]


class Dataset:
    """Documents and examples under one name. Each pass streams anew; nothing is held between two passes.

    `documents` and `examples` are functions from a BadRecords to what they read; None where the data set has no such part.
    `one_file` says that both passes read the same records, so that a bad one is counted once. `whole_corpus` is False where
    the documents are only those that someone retrieved: gold that is not among them is then no mistake.
    """

    def __init__(
        self,
        name: str,
        *,
        documents: Callable[[BadRecords], Iterable[Document]] | None = None,
        examples: Callable[[BadRecords], Iterable[GoldQuestion]] | None = None,
        skip_bad: bool = False,
        one_file: bool = False,
        whole_corpus: bool = True,
    ) -> None:
        self.name = name
        self.whole_corpus = whole_corpus and documents is not None
        self._documents, self._examples = documents, examples
        self._skip_bad, self._one_file = skip_bad, one_file
        self._bad_documents, self._bad_examples = (
            BadRecords(skip=skip_bad),
            BadRecords(skip=skip_bad),
        )

    @property
    def has_documents(self) -> bool:
        return self._documents is not None

    @property
    def has_examples(self) -> bool:
        return self._examples is not None

    def documents(self) -> Iterator[Document]:
        """Every document once."""
        if self._documents is None:
            raise InputError(
                f"the data set '{self.name}' came without documents",
                hint="name their file with --corpus",
            )
        self._bad_documents = BadRecords(skip=self._skip_bad)
        yield from self._documents(self._bad_documents)

    def examples(self) -> Iterator[GoldQuestion]:
        """Every question with its gold, in the order of the file."""
        if self._examples is None:
            raise InputError(
                f"the data set '{self.name}' came without questions",
                hint="name their file with --questions",
            )
        self._bad_examples = BadRecords(skip=self._skip_bad)
        yield from self._examples(self._bad_examples)

    @property
    def bad(self) -> BadRecords:
        """What the latest passes over documents and examples left out."""
        documents, examples = self._bad_documents, self._bad_examples
        if self._one_file:
            return max(examples, documents, key=lambda bad: bad.count)
        both = BadRecords(skip=self._skip_bad)
        both.count = documents.count + examples.count
        both.examples = [*documents.examples, *examples.examples][: BadRecords.KEPT]
        return both


@dataclass(frozen=True, slots=True)
class MissingGold:
    """A gold document that the corpus does not hold."""

    question_id: QuestionId
    doc_id: DocId


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands in a data set. Hops are counted over the questions that have gold."""

    name: str
    documents: int
    questions: int
    null_questions: int
    repeated_questions: int  # how many have the words of an earlier one
    mentions: int  # gold documents, summed over the questions
    titles: int  # different gold documents
    hops_min: int | None
    hops_mean: float | None
    hops_max: int | None
    by_hops: dict[int, int]
    by_kind: dict[str, int]
    labels: dict[str, int]
    unresolved: tuple[MissingGold, ...]  # the first of them
    unresolved_count: int
    skipped: int
    skipped_examples: tuple[str, ...]


def describe(dataset: Dataset) -> Summary:
    """Count a data set in one pass over its questions and one over its documents. Memory follows the gold, not the corpus."""
    hops: Counter[int] = Counter()
    kinds: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    gold: set[DocId] = set()
    texts: set[int] = set()
    questions = mentions = repeated = 0
    for example in dataset.examples() if dataset.has_examples else ():
        questions += 1
        mentions += len(example.gold.doc_ids)
        gold |= example.gold.doc_ids
        labels.update(example.gold.labels)
        kinds.update([example.gold.kind] if example.gold.kind else [])
        hops.update([example.gold.hops] if example.gold.doc_ids else [])
        known = hash(example.question.text or example.question.question_id)
        repeated += known in texts
        texts.add(known)
    titles, with_gold = len(gold), sum(hops.values())
    documents = 0
    for document in dataset.documents() if dataset.has_documents else ():
        documents += 1
        gold.discard(document.doc_id)
    bad = dataset.bad
    unresolved, unresolved_count = (
        _unresolved(dataset, gold) if gold and dataset.whole_corpus else ((), 0)
    )
    return Summary(
        name=dataset.name,
        documents=documents,
        questions=questions,
        null_questions=questions - with_gold,
        repeated_questions=repeated,
        mentions=mentions,
        titles=titles,
        hops_min=min(hops, default=None),
        hops_mean=sum(size * count for size, count in hops.items()) / with_gold
        if with_gold
        else None,
        hops_max=max(hops, default=None),
        by_hops=dict(sorted(hops.items())),
        by_kind=dict(sorted(kinds.items())),
        labels=dict(sorted(labels.items())),
        unresolved=unresolved,
        unresolved_count=unresolved_count,
        skipped=bad.count,
        skipped_examples=tuple(bad.examples),
    )


def _unresolved(dataset: Dataset, gold: set[DocId]) -> tuple[tuple[MissingGold, ...], int]:
    """Which questions need the documents that were not found: a second pass, only when there are such."""
    first: list[MissingGold] = []
    count = 0
    for example in dataset.examples():
        for doc_id in sorted(example.gold.doc_ids & gold):
            count += 1
            if len(first) < BadRecords.KEPT:
                first.append(MissingGold(example.gold.question_id, doc_id))
    return tuple(first), count


def check_gold(summary: Summary) -> None:
    """Raise an InputError if a question needs a document that the corpus does not hold."""
    if summary.unresolved:
        first = summary.unresolved[0]
        more = (
            f" (and {summary.unresolved_count - 1:,} more like it)"
            if summary.unresolved_count > 1
            else ""
        )
        raise InputError(
            f"question {first.question_id!r} needs document {first.doc_id!r}, which is not in the corpus{more}",
            hint="check that the question file and the corpus file belong together",
        )
