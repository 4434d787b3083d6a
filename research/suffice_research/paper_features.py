"""The features of the two papers, as vectorised functions of evidence: MAGAF's 20 and FRAMES' 18,
or 19 with the hop count.

The papers take the question's type, its reasoning labels and (FRAMES' secondary setting) its gold
hop count as given. A gate in use does not know them, so they are arguments here:
`question_labels=None` predicts them from cue words in the question (*deployable*), while
`QuestionAnnotations` from the data set's annotations is the papers' own protocol (*oracle*).
Everything else is computed from the hits.

A missing score counts as 0, and so does every feature of a question without hits. MAGAF uses the
best four hits (and the fifth score, for one gap), FRAMES the best ten.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from suffice.errors import InputError
from suffice.gate.features import Feature
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.metadata import Vocabulary
from suffice.text import date_mentions, names, tokens
from suffice.types import Evidence, Field
from suffice_research.retrievers.document_graph import DocumentGraph
from suffice_research.retrievers.signals import Agreement, incidence

__all__ = [
    "FRAMES",
    "FRAMES_WITH_HOPS",
    "MAGAF",
    "MAGAF_KINDS",
    "REASONING",
    "QuestionAnnotations",
    "frames_features",
    "guess_annotations",
    "magaf_features",
]

Floats = npt.NDArray[np.float32]
Wide = npt.NDArray[np.float64]

MAGAF_KINDS = ("inference", "comparison", "temporal", "null")
REASONING = (
    "multiple constraints",
    "numerical reasoning",
    "temporal reasoning",
    "tabular reasoning",
    "post processing",
)
MAGAF_DEPTH, FRAMES_DEPTH = 4, 10


def _named(level: str, *rows: tuple[str, str, str]) -> tuple[Feature, ...]:
    return tuple(Feature(*row, level=level) for row in rows)


MAGAF = _named(
    "magaf",
    ("query", "query_length", "Words of the question."),
    ("query", "is_inference_query", "It is an inference question."),
    ("query", "is_comparison_query", "It is a comparison question."),
    ("query", "is_temporal_query", "It is a temporal question."),
    ("query", "is_null_query", "It is a question that nothing answers."),
    ("scores", "top1", "Score of the first hit."),
    ("scores", "top4_mean", "Mean of the four best scores."),
    ("scores", "top4_min", "The fourth best score."),
    ("scores", "gap_1_2", "First score less the second."),
    (
        "metadata",
        "source_diversity",
        "Different sources among the four best hits, as a share of those they carry.",
    ),
    ("metadata", "category_diversity", "The same for categories."),
    ("metadata", "entity_diversity", "The same for entities."),
    ("metadata", "date_diversity", "The same for days."),
    (
        "metadata",
        "metadata_overlap_max",
        "Best agreement of a hit's metadata with what the question names.",
    ),
    ("metadata", "metadata_overlap_avg", "Mean agreement over the four best hits."),
    ("hops", "estimated_hops", "How many documents the question seems to need."),
    (
        "graph",
        "graph_density_top4",
        "Weighted density of the document graph over the four best hits.",
    ),
    ("attention", "attention_entropy", "Entropy of the softmax over the four best scores."),
    ("attention", "attention_max", "Largest share of that softmax."),
    ("attention", "gap_4_5", "Fourth score less the fifth."),
)
FRAMES = _named(
    "frames",
    ("query", "question_tokens", "Words of the question."),
    ("query", "question_characters", "Characters of the question."),
    ("query", "question_digits", "Digits in the question."),
    ("query", "temporal_phrase", "It names a year, or says 'as of'."),
    ("query", "reasoning_labels", "How many kinds of reasoning it takes."),
    *(("reasoning", f"is_{one.replace(' ', '_')}", f"It takes {one}.") for one in REASONING),
    ("scores", "top1", "Score of the first hit."),
    ("scores", "gap_1_2", "First score less the second."),
    ("scores", "top10_mean", "Mean of the ten best scores."),
    ("scores", "top10_min", "The tenth best score."),
    ("scores", "top10_entropy", "Entropy of the ten best scores as shares of their sum."),
    ("scores", "top10_nonzero", "How many of the ten scores are not zero."),
    (
        "overlap",
        "title_jaccard_mean",
        "Mean Jaccard overlap of the question's words with a hit's title.",
    ),
    ("overlap", "title_jaccard_max", "The best such overlap."),
)
FRAMES_WITH_HOPS = (
    *FRAMES,
    *_named(
        "frames", ("hops", "gold_hops", "Gold documents of the question: only its data set knows.")
    ),
)


@dataclass(frozen=True)
class QuestionAnnotations:
    """What is known about each question in advance: MAGAF's kinds, FRAMES' reasoning labels, and
    hops.
    """

    kinds: Sequence[str | None]
    labels: Sequence[Collection[str]]
    hops: Sequence[float]


# ---- cue words

_TIME = re.compile(
    r"\b(?:19|20)\d\d\b|\b(?:when|year|years|before|after|since|until|during|date|day|month|decade|century|first|last|earlier|"
    r"later|old|older|younger|age|born|died|ago|as of|time)\b",
    re.I,
)
# FRAMES' flag. The paper gives no list of phrases. Of those we tried, words like "when" and "first"
# (in five of six questions) said nothing about completeness, and this pattern comes nearest to the
# paper's prompt-only row.
_DATED = re.compile(r"\b(?:1\d|20)\d\d\b|\bas of\b", re.I)
_COMPARES = re.compile(
    r"\b(?:both|same|differ\w*|agree\w*|disagree\w*|compar\w*|consisten\w*|than|similar\w*|unlike|either|align\w*|at odds)\b",
    re.I,
)
_ORDERS = re.compile(
    r"\b(?:before|after|between|change\w*|since|earlier|later|first|recent\w*|prior|following)\b",
    re.I,
)
_COUNTS = re.compile(
    r"\b(?:how (?:many|much|far|tall|long|old)|number|sum|total|difference|percent\w*|times|average|more|fewer|ratio)\b",
    re.I,
)
_TABLES = re.compile(
    r"\b(?:rank\w*|list\w*|table|highest|largest|most|least|lowest|top|record|standings|medal\w*|score\w*)\b",
    re.I,
)
_WORKS = re.compile(
    r"\b(?:letters?|round\w*|convert\w*|spell\w*|initials?|multipl\w*|divid\w*|nearest|backwards?|anagram)\b",
    re.I,
)
_CLAUSE = re.compile(r"\b(?:who|whose|which|that|where|whom)\b|,", re.I)


def guess_annotations(questions: Sequence[str]) -> QuestionAnnotations:
    """Predictions from cue words alone.

    Nothing in a question says that no document answers it, so `null` is never predicted.
    """
    return QuestionAnnotations(
        [_kind(one) for one in questions],
        [_labels(one) for one in questions],
        [_hops(one) for one in questions],
    )


def _kind(question: str) -> str:
    if _COMPARES.search(question):
        return "comparison"
    return "temporal" if _ORDERS.search(question) and date_mentions(question) else "inference"


def _labels(question: str) -> frozenset[str]:
    found = (
        len(_CLAUSE.findall(question)) >= 2,
        bool(_COUNTS.search(question)),
        bool(_TIME.search(question)),
        bool(_TABLES.search(question)),
        bool(_WORKS.search(question)),
    )
    return frozenset(label for label, holds in zip(REASONING, found) if holds)


def _hops(question: str) -> float:
    return float(min(4, max(2, len(names(question)))))


# ---- MAGAF


def magaf_features(
    evidence: Sequence[Evidence],
    *,
    question_labels: QuestionAnnotations | None = None,
    vocabulary: Vocabulary | None = None,
) -> Floats:
    """(questions, 20), in the order of MAGAF.

    `vocabulary`: the known names in the corpus; by default those in the hits.
    """
    question_labels = _check_annotations(evidence, question_labels)
    hit_documents = _HitDocuments(evidence, MAGAF_DEPTH)
    scores = _scores(evidence, MAGAF_DEPTH + 1)
    known = np.arange(MAGAF_DEPTH) < hit_documents.counts[:, None]
    four = scores[:, :MAGAF_DEPTH]
    attention = _softmax(four, known)
    agreement = hit_documents.agreement([one.question.text for one in evidence], vocabulary)
    kinds = [[kind == one for one in MAGAF_KINDS] for kind in question_labels.kinds]
    columns = [
        [len(tokens(one.question.text)) for one in evidence],
        *np.array(kinds, dtype=float).reshape(-1, len(MAGAF_KINDS)).T,
        four[:, 0],
        _mean(four, known),
        _minimum(four, known),
        four[:, 0] - four[:, 1],
        *(
            hit_documents.diversity(field)
            for field in ("source", "category", "entities", "published_at")
        ),
        np.where(known, agreement, 0.0).max(axis=1),
        _mean(agreement, known),
        list(question_labels.hops),
        hit_documents.density(),
        _entropy(attention),
        attention.max(axis=1),
        scores[:, 3] - scores[:, 4],
    ]
    return np.column_stack(columns).astype(np.float32).reshape(len(evidence), len(MAGAF))


class _HitDocuments:
    """The documents of the best hits of all questions, as positions in one corpus: (questions,
    depth), -1 for none.
    """

    def __init__(self, evidence: Sequence[Evidence], depth: int) -> None:
        documents = {
            hit.doc_id: one.documents[hit.doc_id]
            for one in evidence
            for hit in one.hits[:depth]
            if hit.doc_id in one.documents
        }
        self.corpus = Corpus(documents.values())
        self.positions = np.full((len(evidence), depth), -1, dtype=np.intp)
        self.counts = np.array([min(len(one.hits), depth) for one in evidence], dtype=np.intp)
        for row, one in enumerate(evidence):
            found = list(
                dict.fromkeys(self.corpus.position.get(hit.doc_id, -1) for hit in one.hits[:depth])
            )
            places = [at for at in found if at >= 0]
            self.positions[row, : len(places)] = places
        rows, at = np.nonzero(self.positions >= 0)
        shape = (len(evidence), len(self.corpus))
        self.member = sparse.csr_matrix(
            (np.ones(len(rows)), (rows, self.positions[rows, at])), shape=shape
        )

    def diversity(self, field: Field) -> Wide:
        """Distinct values as a share of all values; 0 if no hit has one."""
        carried = self.member @ incidence(self.corpus.column(field))
        total = np.asarray(carried.sum(axis=1)).ravel()
        different = np.diff(sparse.csr_matrix(carried).indptr)
        return np.asarray(np.divide(different, total, out=np.zeros(len(total)), where=total > 0))

    def density(self) -> Wide:
        return (
            DocumentGraph(self.corpus).density(self.positions)
            if len(self.corpus)
            else np.zeros(len(self.positions))
        )

    def agreement(self, questions: Sequence[str], vocabulary: Vocabulary | None) -> Wide:
        """Agreement of each hit's metadata with what the question names: (questions, depth), 0
        without a hit.
        """
        if not len(self.corpus):
            return np.zeros(self.positions.shape)
        judge = Agreement(self.corpus, vocabulary)
        out = np.zeros(self.positions.shape)
        for start in range(
            0, len(questions), 256
        ):  # (questions, documents) scores, one block at a time
            block = slice(start, start + 256)
            places = self.positions[block]
            scores = judge.scores(questions[block])
            out[block] = np.where(
                places >= 0, np.take_along_axis(scores, np.maximum(places, 0), axis=1), 0.0
            )
        return out


# ---- FRAMES


def frames_features(
    evidence: Sequence[Evidence],
    *,
    question_labels: QuestionAnnotations | None = None,
    hops: bool = False,
) -> Floats:
    """(questions, 18), in the order of FRAMES; with `hops` also the 19th, which only a data set
    knows: pass `question_labels`.
    """
    if hops and question_labels is None:
        raise InputError(
            "the gold hop count is known to a data set only",
            hint="pass question_labels=QuestionAnnotations(...), or hops=False",
        )
    question_labels = _check_annotations(evidence, question_labels)
    scores = _scores(evidence, FRAMES_DEPTH)
    known = (
        np.arange(FRAMES_DEPTH) < np.array([len(one.hits) for one in evidence], dtype=int)[:, None]
    )
    folded = [{label.casefold() for label in carried} for carried in question_labels.labels]
    labels = np.array([[one in carried for one in REASONING] for carried in folded], dtype=float)
    labels = labels.reshape(-1, len(REASONING))
    texts = [one.question.text for one in evidence]
    overlap = _title_overlap(evidence)
    columns = [
        [len(tokens(text)) for text in texts],
        [len(text) for text in texts],
        [sum(map(str.isdigit, text)) for text in texts],
        [bool(_DATED.search(text)) for text in texts],
        labels.sum(axis=1),
        *labels.T,
        scores[:, 0],
        scores[:, 0] - scores[:, 1],
        _mean(scores, known),
        _minimum(scores, known),
        _entropy(_shares(scores)),
        (scores != 0).sum(axis=1),
        _mean(overlap, known),
        overlap.max(axis=1),
        *([list(question_labels.hops)] if hops else []),
    ]
    return np.column_stack(columns).astype(np.float32).reshape(len(evidence), len(FRAMES) + hops)


def _title_overlap(evidence: Sequence[Evidence]) -> Wide:
    """Jaccard overlap of the question's words with each title's: (questions, FRAMES_DEPTH)."""
    out = np.zeros((len(evidence), FRAMES_DEPTH))
    for row, one in enumerate(evidence):
        question_labels = set(tokens(one.question.text))
        for at, hit in enumerate(one.hits[:FRAMES_DEPTH]):
            document = one.documents.get(hit.doc_id)
            words = set(tokens(document.title)) if document else set()
            out[row, at] = len(question_labels & words) / max(len(question_labels | words), 1)
    return out


# ---- rows of scores


def _check_annotations(
    evidence: Sequence[Evidence], question_labels: QuestionAnnotations | None
) -> QuestionAnnotations:
    question_labels = question_labels or guess_annotations([one.question.text for one in evidence])
    if {len(question_labels.kinds), len(question_labels.labels), len(question_labels.hops)} != {
        len(evidence)
    }:
        raise InputError(
            f"question_labels must have a value for each of the {len(evidence)} questions"
        )
    return question_labels


def _scores(evidence: Sequence[Evidence], depth: int) -> Wide:
    """The best scores unchanged: (questions, depth), 0 if there is no hit or its score is not
    finite.
    """
    out = np.zeros((len(evidence), depth))
    for row, one in enumerate(evidence):
        scores = [hit.score for hit in one.hits[:depth]]
        out[row, : len(scores)] = [np.nan if score is None else score for score in scores]
    out[~np.isfinite(out)] = 0.0
    return out


def _mean(values: Wide, known: npt.NDArray[np.bool_]) -> Wide:
    return np.asarray(np.where(known, values, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1))


def _minimum(values: Wide, known: npt.NDArray[np.bool_]) -> Wide:
    lowest = np.where(known, values, np.inf).min(axis=1)
    return np.where(np.isfinite(lowest), lowest, 0.0)


def _softmax(scores: Wide, known: npt.NDArray[np.bool_]) -> Wide:
    """Softmax over the existing hits; a row without hits is all zeros."""
    shifted = np.where(known, scores - scores.max(axis=1, keepdims=True), -np.inf)
    weights = np.exp(shifted)
    return _shares(weights)


def _shares(values: Wide) -> Wide:
    positive = np.maximum(values, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(positive, total, out=np.zeros_like(positive), where=total > 0))


def _entropy(shares: Wide) -> Wide:
    logs: Any = np.log(np.where(shares > 0, shares, 1.0))
    return np.asarray(-(shares * logs).sum(axis=1))
