"""Named retrievers over a data set's corpus, and labelled questions with their hits.

Every experiment starts here. `retrieve_dataset` is the only place where gold labels meet evidence;
`to_labelled_question` turns the result into training data for a gate.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import islice, product
from typing import Any

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Gold, GoldQuestion, draw_key
from suffice.errors import InputError
from suffice.gate.training import LabelledQuestion
from suffice.jobs import Job, JobRunner, identity, run_in_process, split_into_blocks
from suffice.protocols import Encoder, Progress, Retriever, Store, documents_by_id
from suffice.registry import ENCODERS, RETRIEVERS
from suffice.retrieval import builtin  # noqa: F401 - importing it registers our retrievers
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.encoders import BlockEncoder, PortableEncoder
from suffice.retrieval.memory import MemoryStore
from suffice.types import DocId, Document, Evidence, Hit, Question, RetrieverScore

__all__ = [
    "GIVEN",
    "RetrievedDataset",
    "RetrievedQuestion",
    "RetrieverSet",
    "encoder_for",
    "index_documents",
    "open_retrievers",
    "questions_digest",
    "retrieve_dataset",
    "retriever_factories",
    "search_in_blocks",
    "search_questions",
    "takes_encoder",
    "to_labelled_question",
]

RetrieverFactories = Mapping[str, Callable[..., Retriever]]
GIVEN = "given"  # the system for hits that came with the questions
_BLOCK = 256  # questions
_DEEP = 100  # hits to search for, whatever k is


def retriever_factories(names: Iterable[str]) -> RetrieverFactories:
    """The factories by name; for an unknown name, InputError suggests the nearest."""
    return {name: RETRIEVERS.get(name) for name in names}


def encoder_for(factories: RetrieverFactories, name: str) -> Encoder | None:
    """The named encoder if one of the retrievers uses it, so that others do not load vectors."""
    return ENCODERS.get(name)() if any(map(takes_encoder, factories.values())) else None


def index_documents(
    documents: Iterable[Document],
    encoder: Encoder | None,
    progress: Progress | None,
    *,
    encoder_name: str = "",
    job_runner: JobRunner | None = None,
) -> MemoryStore:
    """A store of the documents, with vectors if there is an encoder.

    `encoder_name` is its registered name; `job_runner` runs the encoding, by default in this
    process.
    """
    listed = list(documents)
    if encoder is None:
        return MemoryStore(listed)
    name = encoder_name or encoder.name
    blocks = BlockEncoder(name, encoder, job_runner or run_in_process, progress)
    return MemoryStore(listed, blocks.encode([searchable_text(document) for document in listed]))


def open_retrievers(
    factories: RetrieverFactories, store: Store, encoder: Encoder | None
) -> dict[str, Retriever]:
    """The retrievers, ready to search the store."""
    return {
        name: factory(store, encoder=encoder) if takes_encoder(factory) else factory(store)
        for name, factory in factories.items()
    }


def takes_encoder(factory: Callable[..., Any]) -> bool:
    """Whether a retriever uses vectors."""
    return "encoder" in inspect.signature(factory).parameters


class RetrieverSet(Mapping[str, Retriever]):
    """Named retrievers over a store, created on first use. Only names and store are pickled.

    A store that cannot be pickled has a method `elsewhere`, which returns something that opens it.
    """

    def __init__(
        self, names: Iterable[str], store: Callable[[], Store], encoder: PortableEncoder | None
    ) -> None:
        self._names, self._store, self._encoder = tuple(names), store, encoder

    @classmethod
    def over(
        cls, names: Iterable[str], store: Store, encoder: Encoder | None, encoder_name: str
    ) -> RetrieverSet:
        """`encoder_name` is the name under which the encoder is registered."""
        portable = None if encoder is None else PortableEncoder.of(encoder_name, encoder)
        return cls(names, partial(identity, store), portable)

    @cached_property
    def _opened(self) -> dict[str, Retriever]:
        encoder = self._encoder.open() if self._encoder else None
        return open_retrievers(retriever_factories(self._names), self._store(), encoder)

    @cached_property
    def key(self) -> str:
        """A hash of the documents, the names and the encoder's description."""
        fingerprint = self._encoder and self._encoder.fingerprint
        digest = hashlib.sha256(repr((self._names, fingerprint)).encode())
        for document in self._store().documents():
            digest.update(json.dumps(asdict(document), default=str).encode())
        return digest.hexdigest()

    def __getitem__(self, name: str) -> Retriever:
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __reduce__(self) -> tuple[Any, ...]:
        elsewhere = getattr(self._store(), "elsewhere", None)
        opener = self._store if elsewhere is None else elsewhere()
        return RetrieverSet, (self._names, opener, self._encoder)


def search_in_blocks(
    retrievers: RetrieverSet,
    name: str,
    questions: Sequence[str],
    k: int,
    job_runner: JobRunner = run_in_process,
) -> Iterator[list[tuple[Hit, ...]]]:
    """The hits of each question, one block of questions at a time."""
    if job_runner is run_in_process:  # nothing is sent or cached, so hits need not become JSON
        for block in split_into_blocks(questions, _BLOCK):
            found = retrievers[name].search(block, k=k)
            yield [tuple([_with_plain_score(hit) for hit in hits]) for hits in found]
        return
    key = f"{retrievers.key} {name} {k}"
    job = Job(f"searching with {name}", partial(_search_block, name=name, k=k), retrievers, key=key)
    for rows in job_runner(job, split_into_blocks(questions, _BLOCK)):
        yield [tuple(_hit_from_row(one) for one in row) for row in rows]


def _search_block(
    questions: Sequence[str], retrievers: Mapping[str, Retriever], *, name: str, k: int
) -> list[list[list[Any]]]:
    found = retrievers[name].search(questions, k=k)
    return [[_hit_to_row(hit) for hit in hits] for hits in found]


def _with_plain_score(hit: Hit) -> Hit:
    """The hit with a Python float, in case a plug-in returned a NumPy one."""
    if hit.score is None or type(hit.score) is float:
        return hit
    return replace(hit, score=float(hit.score))


def _hit_to_row(hit: Hit) -> list[Any]:
    score = None if hit.score is None else float(hit.score)
    parts = [[part.name, part.score] for part in hit.parts]
    return [hit.doc_id, score, parts, list(hit.matched), hit.relaxed]


def _hit_from_row(row: Sequence[Any]) -> Hit:
    doc_id, score, parts, matched, relaxed = row
    return Hit(
        doc_id, score, tuple(RetrieverScore(*part) for part in parts), tuple(matched), relaxed
    )


# ------------------------------------------------------------------------------------ questions


@dataclass(frozen=True, slots=True)
class RetrievedQuestion:
    """A question, its hits, and the documents it needs."""

    question: Question
    gold: Gold
    evidence: Evidence
    gold_titles: Mapping[DocId, str] = field(default_factory=dict)
    deeper: tuple[Hit, ...] = ()  # the first 2k hits
    background: float = 0.0  # mean score of a deep ranking, for the baselines NQC and WIG

    @property
    def complete(self) -> bool:
        """Whether all needed documents are held. A question without an answer is never complete."""
        found = {hit.doc_id for hit in self.evidence.hits}
        return bool(self.gold.doc_ids) and self.gold.doc_ids <= found

    @property
    def hits(self) -> list[dict[str, Any]]:
        """The hits as input for a gate."""
        records = []
        for hit in self.evidence.hits:
            document = self.evidence.documents.get(hit.doc_id)
            title, text = (document.title, document.text) if document else ("", "")
            records.append({"doc_id": hit.doc_id, "title": title, "text": text, "score": hit.score})
        return records


@dataclass(frozen=True)
class RetrievedDataset:
    """The retrieved questions of a data set, in the same order for every retriever and k."""

    dataset: str
    by: Mapping[tuple[str, int], tuple[RetrievedQuestion, ...]]
    store: Store | None = field(default=None, repr=False)

    def questions(self, retriever: str, k: int) -> tuple[RetrievedQuestion, ...]:
        return self.by[retriever, k]


def retrieve_dataset(
    dataset: Dataset,
    retrievers: Sequence[str],
    ks: Sequence[int],
    *,
    encoder: str = "wordllama",
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 42,
    progress: Progress | None = None,
    job_runner: JobRunner | None = None,
) -> RetrievedDataset:
    """Search every question of the data set with every retriever, once and deep.

    `limit` keeps the first questions, `sample` a draw by text and seed. `job_runner`
    runs the work, by default in this process.
    """
    if not retrievers or not ks or min(ks) < 1:
        raise InputError(
            f"retrievers are {list(retrievers)} and k is {list(ks)}: "
            "expected at least one of each, k from 1 on"
        )
    questions = _draw(dataset, limit, sample, seed)
    factories = retriever_factories(name for name in dict.fromkeys(retrievers) if name != GIVEN)
    bare = (one for one in questions if one.hits is None)
    if GIVEN in retrievers and (lacking := next(bare, None)):
        raise InputError(
            f"question {lacking.question.question_id!r} came without hits", hint="name a retriever"
        )
    opened = encoder_for(factories, encoder)
    documents = dataset.documents() if dataset.has_documents else ()
    store = index_documents(
        documents, opened, progress, encoder_name=encoder, job_runner=job_runner
    )
    texts = [one.question.text for one in questions]
    ranked: dict[str, list[tuple[Hit, ...]]] = {}
    if GIVEN in retrievers:
        ranked[GIVEN] = [one.hits or () for one in questions]
    searchers = RetrieverSet.over(factories, store, opened, encoder)
    depth, runner = max(_DEEP, *ks), job_runner or run_in_process
    for name in searchers:
        ranked[name] = []
        for found in search_in_blocks(searchers, name, texts, depth, runner):
            ranked[name] += found
            if progress is not None:
                progress(f"searching with {name}", len(ranked[name]), len(texts))
    titles = {document.doc_id: document.title for document in store.documents() if document.title}
    by: dict[tuple[str, int], tuple[RetrievedQuestion, ...]] = {}
    for name, k in product(retrievers, ks):
        by[name, k] = tuple(
            _retrieved_question(one, hits, k, store, titles)
            for one, hits in zip(questions, ranked[name])
        )
    return RetrievedDataset(dataset.name, by, store)


def search_questions(
    questions: Sequence[GoldQuestion],
    retriever: Retriever,
    store: Store,
    k: int,
    *,
    progress: Progress | None = None,
) -> tuple[RetrievedQuestion, ...]:
    """The questions with this retriever's hits in this store."""
    gold = (doc_id for one in questions for doc_id in sorted(one.gold.doc_ids))
    titles = {name: one.title for name, one in documents_by_id(store.get, gold).items()}
    found: list[RetrievedQuestion] = []
    for block in split_into_blocks(questions, _BLOCK):
        ranked = retriever.search([one.question.text for one in block], k=2 * k)
        for one, hits in zip(block, ranked, strict=True):
            plain = [_with_plain_score(hit) for hit in hits]
            found.append(_retrieved_question(one, plain, k, store, titles))
        if progress is not None:
            progress("searching", len(found), len(questions))
    return tuple(found)


def _draw(dataset: Dataset, limit: int | None, sample: int | None, seed: int) -> list[GoldQuestion]:
    questions = list(islice(dataset.questions(), limit))
    if sample is not None and sample < len(questions):
        order = sorted(
            range(len(questions)), key=lambda at: draw_key(seed, questions[at].question.text)
        )
        questions = [questions[at] for at in sorted(order[:sample])]
    if not questions:
        raise InputError(
            f"the data set '{dataset.name}' has no questions", hint="check the questions file"
        )
    return questions


def _retrieved_question(
    question: GoldQuestion,
    deep: Sequence[Hit],
    k: int,
    store: Store,
    titles: Mapping[DocId, str],
) -> RetrievedQuestion:
    def evidence(hits: Sequence[Hit]) -> Evidence:
        found = documents_by_id(store.get, (hit.doc_id for hit in hits))
        return Evidence(question.question, tuple(hits), found)

    deeper = evidence(deep[: 2 * k])
    retrieved = Evidence(question.question, tuple(deep[:k]), deeper.documents)
    known = {doc_id: titles[doc_id] for doc_id in sorted(question.gold.doc_ids) if doc_id in titles}
    scores = [hit.score for hit in deep if hit.score is not None and math.isfinite(hit.score)]
    background = sum(scores) / len(scores) if scores else 0.0
    return RetrievedQuestion(
        question.question, question.gold, retrieved, known, deeper.hits, background
    )


def questions_digest(questions: Sequence[RetrievedQuestion]) -> str:
    """A hash of the questions and all their contents."""
    digest = hashlib.sha256()
    for one in questions:
        documents = [asdict(document) for document in one.evidence.documents.values()]
        found = [[[asdict(hit) for hit in one.evidence.hits], documents]]
        gold = {**asdict(one.gold), "doc_ids": sorted(one.gold.doc_ids)}
        deeper = [asdict(hit) for hit in one.deeper]
        record = [[asdict(one.question), gold, found], deeper, dict(one.gold_titles)]
        digest.update(json.dumps([*record, one.background], default=str).encode())
    return digest.hexdigest()


def to_labelled_question(one: RetrievedQuestion) -> LabelledQuestion:
    """Training data for a gate. A list twice as long stands in for another round of retrieval."""
    return LabelledQuestion(
        one.question.text,
        one.evidence.hits,
        one.gold.doc_ids,
        hits_after=one.deeper,
        titles=one.gold_titles,
        kind=one.gold.kind,
        labels=one.gold.labels,
        hops=float(one.gold.hops),
        documents=one.evidence.documents,
    )
