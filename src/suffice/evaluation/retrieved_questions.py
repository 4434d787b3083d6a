"""Cases: labelled questions with what a retriever returned for them. What a gate is fitted on and judged by.

The only place where gold meets evidence; `labelled` turns a case into what a gate learns from.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, product
from typing import Any

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Gold, draw_key
from suffice.errors import InputError
from suffice.evaluation.runs import GIVEN
from suffice.evaluation.searching import (
    RetrieverSet,
    encoder_for,
    index_documents,
    retriever_factories,
    search_in_blocks,
)
from suffice.gate.training import LabelledQuestion
from suffice.jobs import JobRunner, run_in_process
from suffice.protocols import Progress, Store, documents_by_id
from suffice.types import DocId, Document, Evidence, Hit, Question

__all__ = [
    "GIVEN",
    "RetrievedDataset",
    "RetrievedQuestion",
    "questions_digest",
    "retrieve_dataset",
    "to_labelled_question",
]

_DEEP = 100


@dataclass(frozen=True, slots=True)
class RetrievedQuestion:
    """A question, what was retrieved for it, and what it truly needs."""

    question: Question
    gold: Gold
    evidence: Evidence
    gold_titles: Mapping[DocId, str] = field(default_factory=dict)
    deeper: tuple[Hit, ...] = ()  # the first 2k hits
    background: float = 0.0  # mean score of a deep ranking: what NQC and WIG take for the score of the whole collection
    others: tuple[Any, ...] = ()  # what other retrievers found, as Evidence

    @property
    def complete(self) -> bool:
        """Every needed document is held. A question that nothing answers is never complete."""
        return bool(self.gold.doc_ids) and self.gold.doc_ids <= {
            hit.doc_id for hit in self.evidence.hits
        }

    @property
    def titles(self) -> list[str]:
        return [document.title if document else "" for document in self._documents]

    @property
    def texts(self) -> list[str]:
        return [document.text if document else "" for document in self._documents]

    @property
    def scores(self) -> list[float | None]:
        return [hit.score for hit in self.evidence.hits]

    @property
    def hits(self) -> list[dict[str, Any]]:
        """The hits as a gate takes them."""
        rows = zip(self.evidence.hits, self.titles, self.texts)
        return [
            {"doc_id": hit.doc_id, "title": title, "text": text, "score": hit.score}
            for hit, title, text in rows
        ]

    @property
    def _documents(self) -> list[Document | None]:
        return [self.evidence.documents.get(hit.doc_id) for hit in self.evidence.hits]


@dataclass(frozen=True)
class RetrievedDataset:
    """The cases of one data set: retriever and k -> cases, the same questions in the same order everywhere."""

    dataset: str
    by: Mapping[tuple[str, int], tuple[RetrievedQuestion, ...]]
    store: Store | None = field(default=None, repr=False)

    def cases(self, retriever: str, k: int) -> tuple[RetrievedQuestion, ...]:
        return self.by[retriever, k]


def retrieve_dataset(
    dataset: Dataset,
    retrievers: Sequence[str],
    ks: Sequence[int],
    *,
    beside: Sequence[str] = (),
    encoder: str = "wordllama",
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 42,
    progress: Progress | None = None,
    mapped: JobRunner | None = None,
) -> RetrievedDataset:
    """Search every question of the data set with every retriever, once and deep.

    `limit` keeps to the first so many questions, `sample` to so many drawn by their words and the seed. What the retrievers
    named in `beside` find is held beside each case. `mapped` is where the work is done, here unless told.
    """
    if not retrievers or not ks or min(ks) < 1:
        raise InputError(
            f"retrievers are {list(retrievers)} and k is {list(ks)}: expected at least one of each, k from 1 on"
        )
    examples = list(islice(dataset.questions(), limit))
    if sample is not None and sample < len(examples):
        drawn = sorted(
            range(len(examples)), key=lambda at: draw_key(seed, examples[at].question.text)
        )[:sample]
        examples = [examples[at] for at in sorted(drawn)]
    if not examples:
        raise InputError(
            f"the data set '{dataset.name}' has no questions", hint="check the questions file"
        )
    every = list(dict.fromkeys([*retrievers, *beside]))
    wanted = retriever_factories(name for name in every if name != GIVEN)
    if GIVEN in every and (lacking := next((one for one in examples if one.hits is None), None)):
        raise InputError(
            f"question {lacking.question.question_id!r} came without hits", hint="name a retriever"
        )
    chosen = encoder_for(wanted, encoder)
    store = index_documents(
        dataset.documents() if dataset.has_documents else (),
        chosen,
        progress,
        encoder_name=encoder,
        mapped=mapped,
    )
    titles = {document.doc_id: document.title for document in store.documents() if document.title}
    questions = [example.question.text for example in examples]
    ranked: dict[str, list[tuple[Hit, ...]]] = {}
    if GIVEN in every:
        ranked[GIVEN] = [example.hits or () for example in examples]
    searchers = RetrieverSet.over(wanted, store, chosen, encoder)
    for name in searchers:
        ranked[name] = []
        for found in search_in_blocks(
            searchers, name, questions, max(_DEEP, *ks), mapped or run_in_process
        ):
            ranked[name] += found
            if progress is not None:
                progress(f"searching with {name}", len(ranked[name]), len(questions))
    by: dict[tuple[str, int], tuple[RetrievedQuestion, ...]] = {}
    for name, k in product(retrievers, ks):
        cases = [
            _retrieved_question(one.question, one.gold, hits, k, store, titles)
            for one, hits in zip(examples, ranked[name])
        ]
        others = [ranked[other] for other in beside if other != name]
        by[name, k] = tuple(
            replace(
                case, others=tuple(_evidence(case.question, run[at][:k], store) for run in others)
            )
            for at, case in enumerate(cases)
        )
    return RetrievedDataset(dataset.name, by, store)


def questions_digest(cases: Sequence[RetrievedQuestion]) -> str:
    """A hash of all that cases hold."""
    digest = hashlib.sha256()
    for case in cases:
        sets = [case.evidence, *case.others]
        found = [
            [[asdict(hit) for hit in one.hits], [asdict(held) for held in one.documents.values()]]
            for one in sets
        ]
        told = [
            asdict(case.question),
            {**asdict(case.gold), "doc_ids": sorted(case.gold.doc_ids)},
            found,
        ]
        deeper = [asdict(hit) for hit in case.deeper]
        digest.update(
            json.dumps(
                [told, deeper, dict(case.gold_titles), case.background], default=str
            ).encode()
        )
    return digest.hexdigest()


def _retrieved_question(
    question: Question,
    gold: Gold,
    deep: Sequence[Hit],
    k: int,
    store: Store,
    titles: Mapping[DocId, str],
) -> RetrievedQuestion:
    hits, deeper = tuple(deep[:k]), tuple(deep[: 2 * k])
    documents = _evidence(question, deeper, store).documents
    known = {doc_id: titles[doc_id] for doc_id in sorted(gold.doc_ids) if doc_id in titles}
    scores = [hit.score for hit in deep if hit.score is not None and math.isfinite(hit.score)]
    background = sum(scores) / len(scores) if scores else 0.0
    return RetrievedQuestion(
        question, gold, Evidence(question, hits, documents), known, deeper, background
    )


def _evidence(question: Question, hits: Sequence[Hit], store: Store) -> Evidence:
    return Evidence(question, tuple(hits), documents_by_id(store.get, (hit.doc_id for hit in hits)))


# ------------------------------------------------------------------------------------------------------ labels


def to_labelled_question(case: RetrievedQuestion) -> LabelledQuestion:
    """The case as a gate learns from it. One more round, for lack of a better one, is a list twice as long."""
    gold = case.gold
    return LabelledQuestion(
        case.question.text,
        case.evidence.hits,
        gold.doc_ids,
        hits_after=case.deeper,
        titles=case.gold_titles,
        kind=gold.kind,
        labels=gold.labels,
        hops=float(gold.hops),
        documents=case.evidence.documents,
        others=case.others,
    )
