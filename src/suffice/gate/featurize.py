"""Questions and hits as the model sees them: read once, and where told compared in meaning and with other runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, NotReadyError
from suffice.gate.extraction import Extraction, extract
from suffice.gate.features import AGREEMENT, Feature
from suffice.gate.hits import NormalizedHits
from suffice.gate.model import GateModel
from suffice.gate.question import ParsedQuestion, WordTable, parse_question
from suffice.gate.similarity import (
    RELEVANCE,
    SIMILARITY,
    agreement_features,
    relevance_features,
    similarity_features,
)
from suffice.protocols import Encoder, Reranker, component_name
from suffice.registry import ENCODERS, RERANKERS, Registry
from suffice.types import Document, Evidence

__all__ = ["NO_ENCODERS", "Encoders", "FeatureBatch", "featurize", "text_with_byline"]

Floats = npt.NDArray[np.floating[Any]]
T = TypeVar("T")
MONTHS = (
    "January February March April May June July August September October November December".split()
)  # in any locale


@dataclass(frozen=True, slots=True)
class Encoders:
    """What is looked through besides words: an encoder's vectors, a cross-encoder's scores, both, or nothing."""

    encoder: Encoder | None = None
    reranker: Reranker | None = None

    @property
    def names(self) -> dict[str, str | None]:
        return {"encoder": _encoder_name(self.encoder), "reranker": _encoder_name(self.reranker)}

    def named(self, encoder: str | None, reranker: str | None, *, where: str) -> Encoders:
        """Those of these names: the ones at hand, if they are called so, or else the ones that are known by the names.

        NotReadyError where there is none, or the one at hand is another.
        """
        return Encoders(
            _resolve_encoder(ENCODERS, encoder, self.encoder, where),
            _resolve_encoder(RERANKERS, reranker, self.reranker, where),
        )


NO_ENCODERS = Encoders()


def _encoder_name(model: object) -> str | None:
    return None if model is None else component_name(model)


def _resolve_encoder(
    known: Registry[T], wanted: str | None, given: T | None, where: str
) -> T | None:
    if wanted is None or _encoder_name(given) == wanted:
        return None if wanted is None else given
    hint = f"pass it as {known.kind}=…"
    if given is not None:
        raise NotReadyError(
            f"{where} looks through the {known.kind} {wanted!r}, given {_encoder_name(given)!r}",
            hint=hint,
        )
    try:
        return known.get(wanted)()
    except InputError as error:
        raise NotReadyError(
            f"{where} looks through the {known.kind} {wanted!r}, which is not known", hint=hint
        ) from error


@dataclass(frozen=True, slots=True)
class FeatureBatch:
    """One entry a question everywhere; `more` and `hit_more` only where more than reading was done."""

    taken: Sequence[NormalizedHits]
    asked: Sequence[ParsedQuestion]
    readings: Sequence[Extraction]
    more: Floats | None = None
    hit_more: Sequence[Floats] | None = None
    named: tuple[Feature, ...] = ()  # what the first columns of `more` are

    def where(self, mask: npt.NDArray[np.bool_]) -> FeatureBatch:
        at = np.flatnonzero(mask).tolist()
        return FeatureBatch(
            [self.taken[i] for i in at],
            [self.asked[i] for i in at],
            [self.readings[i] for i in at],
            None if self.more is None else self.more[mask],
            None if self.hit_more is None else [self.hit_more[i] for i in at],
            self.named,
        )

    def beside(
        self, named: tuple[Feature, ...], whole: Floats, hits: Sequence[Floats]
    ) -> FeatureBatch:
        """With more columns, named, in front of the extra ones."""
        more = whole if self.more is None else np.column_stack([whole, self.more])
        if self.hit_more is not None:
            hits = [np.column_stack(pair) for pair in zip(hits, self.hit_more, strict=True)]
        return replace(self, more=more, hit_more=hits, named=(*named, *self.named))

    def described_by(self, model: GateModel) -> Floats:
        """(questions, features)."""
        return self.judged_by(model)[0]

    def judged_by(self, model: GateModel) -> tuple[Floats, list[Floats]]:
        """The same, and for each question the chance of each absent name."""
        return model.judge(self.asked, self.readings, more=self.more, hit_more=self.hit_more)


def featurize(
    taken: Sequence[NormalizedHits],
    words: WordTable,
    encoders: Encoders = NO_ENCODERS,
    others: Sequence[Sequence[NormalizedHits]] | None = None,
) -> FeatureBatch:
    """`others` are the other runs for each question, where they are looked at too."""
    asked = [parse_question(one.evidence.question.text, words) for one in taken]
    evidence = [one.evidence for one in taken]
    seen = FeatureBatch(
        taken, asked, [_extract_one(*one, words) for one in zip(asked, evidence, strict=True)]
    )
    if encoders.reranker is not None:
        seen = seen.beside(RELEVANCE, *relevance_features(evidence, encoders.reranker))
    if encoders.encoder is not None:
        whole, hits, vectors = similarity_features(evidence, encoders.encoder)
        meant = [replace(one, meant=vector) for one, vector in zip(asked, vectors, strict=True)]
        seen = replace(seen.beside(SIMILARITY, whole, hits), asked=meant)
    return seen if others is None else seen.beside(AGREEMENT, *agreement_features(taken, others))


def _extract_one(asked: ParsedQuestion, evidence: Evidence, words: WordTable) -> Extraction:
    found = [evidence.documents[hit.doc_id] for hit in evidence.hits]
    scores = [hit.score for hit in evidence.hits]
    return extract(
        asked, [one.title for one in found], [text_with_byline(one) for one in found], scores, words
    )


def text_with_byline(document: Document) -> str:
    """The text behind its outlet and day: questions name them, and often only the metadata holds them."""
    day = document.published_at
    if not document.source and not day:
        return document.text
    when = f"{MONTHS[day.month - 1]} {day.day}, {day.year}" if day else ""
    return ". ".join(filter(None, (document.source, when, document.text)))
