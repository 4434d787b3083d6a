"""Questions and hits as the model sees them: read once, and for the `quality` grade compared by an encoder's vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess.agreement import agreement
from suffice.assess.features import AGREEMENT, Feature
from suffice.assess.incoming import Taken
from suffice.assess.model import GateModel
from suffice.assess.reading import Asked, Reading, ask, read
from suffice.assess.words import Words
from suffice.ports import Encoder
from suffice.types import Document, Evidence

__all__ = ["Looked", "look", "similarities"]

Floats = npt.NDArray[np.floating[Any]]
NEAREST = 4  # cosines that the gate sees one by one
MAX_CHARS = 4_000  # of a text, as for reading
MONTHS = "January February March April May June July August September October November December".split()  # in any locale


@dataclass(frozen=True, slots=True)
class Looked:
    """One entry a question everywhere; `more` and `hit_more` only where an encoder looked too."""

    taken: Sequence[Taken]
    asked: Sequence[Asked]
    readings: Sequence[Reading]
    more: Floats | None = None
    hit_more: Sequence[Floats] | None = None
    named: tuple[Feature, ...] = ()  # what the first columns of `more` are

    def where(self, mask: npt.NDArray[np.bool_]) -> Looked:
        at = np.flatnonzero(mask).tolist()
        return Looked(
            [self.taken[i] for i in at],
            [self.asked[i] for i in at],
            [self.readings[i] for i in at],
            None if self.more is None else self.more[mask],
            None if self.hit_more is None else [self.hit_more[i] for i in at],
            self.named,
        )

    def beside(self, named: tuple[Feature, ...], whole: Floats, hits: Sequence[Floats]) -> Looked:
        """With more columns, named, in front of the extra ones."""
        more = whole if self.more is None else np.column_stack([whole, self.more])
        if self.hit_more is not None:
            hits = [np.column_stack(pair) for pair in zip(hits, self.hit_more, strict=True)]
        return replace(self, more=more, hit_more=hits, named=(*named, *self.named))

    def described_by(self, model: GateModel) -> Floats:
        """(questions, features)."""
        return model.describe(self.asked, self.readings, more=self.more, hit_more=self.hit_more)


def look(
    taken: Sequence[Taken], words: Words, encoder: Encoder | None = None, others: Sequence[Sequence[Taken]] | None = None
) -> Looked:
    """`others` are the other runs for each question, where they are looked at too."""
    seen = _looked(taken, words, encoder)
    return seen if others is None else seen.beside(AGREEMENT, *agreement(taken, others))


def _looked(taken: Sequence[Taken], words: Words, encoder: Encoder | None) -> Looked:
    asked = [ask(one.evidence.question.text, words) for one in taken]
    readings = [_reading(question, one.evidence, words) for question, one in zip(asked, taken, strict=True)]
    if encoder is None:
        return Looked(taken, asked, readings)
    return Looked(taken, asked, readings, *similarities([one.evidence for one in taken], encoder))


def _reading(asked: Asked, evidence: Evidence, words: Words) -> Reading:
    found = [evidence.documents[hit.doc_id] for hit in evidence.hits]
    scores = [hit.score for hit in evidence.hits]
    return read(asked, [one.title for one in found], [_bylined(one) for one in found], scores, words)


def _bylined(document: Document) -> str:
    """The text behind its outlet and day: questions name them, and often only the metadata holds them."""
    day = document.published_at
    when = f"{MONTHS[day.month - 1]} {day.day}, {day.year}" if day else ""
    return ". ".join(filter(None, (document.source, when, document.text)))


def similarities(evidence: Sequence[Evidence], encoder: Encoder) -> tuple[Floats, list[Floats]]:
    """Cosines of question and hits. For each question mean, largest, smallest and the nearest four: (questions, 7).

    For each hit its own, how far it is behind the nearest hit's, and its place by them from 0 to 1: (hits, 3) a question.
    """
    texts = [_texts(one) for one in evidence]
    every = list(dict.fromkeys(text for one in texts for text in one))
    at = {text: place for place, text in enumerate(every)}
    vectors = encoder.encode(every) if every else np.zeros((0, encoder.dimension), np.float32)
    asked = encoder.encode([one.question.text[:MAX_CHARS] for one in evidence], query=True) if evidence else vectors
    whole, parts = np.zeros((len(evidence), 3 + NEAREST), np.float32), []
    for row, one in enumerate(texts):
        cosines = vectors[[at[text] for text in one]] @ asked[row] if one else np.zeros(0, np.float32)
        if one:
            ordered = -np.sort(-cosines)
            whole[row, :3] = cosines.mean(), ordered[0], ordered[-1]
            whole[row, 3 : 3 + min(NEAREST, len(one))] = ordered[:NEAREST]
        places = np.argsort(np.argsort(-cosines, kind="stable"), kind="stable") / max(len(one) - 1, 1)
        parts.append(np.column_stack([cosines, cosines - cosines.max(initial=-1.0), places]).astype(np.float32))
    return whole, parts


def _texts(evidence: Evidence) -> list[str]:
    found = [evidence.documents[hit.doc_id] for hit in evidence.hits]
    return [f"{one.title}\n{one.text[:MAX_CHARS]}".strip() for one in found]
