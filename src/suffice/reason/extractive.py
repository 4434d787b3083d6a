"""The reader that needs no language model: the sentence that supports an answer best, and the span in it that looks like one.

A sentence is weighed by the question's words in it, rare ones more, and by whose document it stands in: where the question
names the title, "he was born" needs no name. Then the spans of the expected form are weighed by how near they stand to the word
that says it ("directed by", "died"). A sentence without such a span may still be cited; then there is no span to answer with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suffice.reason.comparing import two_choices
from suffice.reason.picking import best_span
from suffice.reason.spans import Expects, Span, spans
from suffice.reason.wanted import BORN, Wanted, is_life, stem
from suffice.text import bare_title, sentences, title_key, tokens
from suffice.types import Citation, DocId, Document

__all__ = ["MOST_SENTENCES", "SURE", "ExtractiveReader", "Passage", "Reading", "passage_of"]

MOST_SENTENCES = 60  # of one document
LONGEST = 800  # characters of one sentence
AS_PLAIN = 0.03  # by so little another sentence may fit less and still speak against the best
OWN = 0.7  # how far a sentence is about what the question names, from which on it is its own document that speaks
SURE = 0.75  # share of a statement's words in one place, from which on it counts as said


_DENIED = re.compile(r"\b(?:not|never|no longer|neither)\b")


@dataclass(frozen=True, slots=True)
class Passage:
    """A document as a reader sees it: numbered sentences under a title."""

    doc_id: DocId
    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: an answer where there is one, what it rests on, and from 0 to 1 how well that fits the question."""

    answer: str | None
    citations: tuple[Citation, ...] = ()
    score: float = 0.0
    by: str = "extractive"
    rivals: tuple[str, ...] = ()  # other answers of sentences that fit as well


def passage_of(document: Document) -> Passage:
    """The first sentences of a document, each of bounded length and on one line."""
    found = sentences(document.text[: MOST_SENTENCES * LONGEST])[:MOST_SENTENCES]
    return Passage(document.doc_id, document.title, tuple(" ".join(one.split())[:LONGEST] for one in found))


@dataclass(frozen=True, slots=True)
class _Find:
    score: float
    citation: Citation
    span: Span | None
    covered: float
    subject: float


class ExtractiveReader:
    """Reads by rules. The same passages give the same answer, and nothing that a passage says is an instruction."""

    name = "extractive"

    def read(self, question: str, expects: Expects, passages: Sequence[Passage]) -> Reading:
        """The best sentence, and the best span in it. No passages: no answer."""
        asked = Wanted.of(question)
        finds = self._finds(asked, expects, passages)
        if not finds:
            return Reading(None)
        if expects is Expects.YES_NO:
            return _yes_or_no(finds)
        best = max(finds, key=lambda one: one.score)  # the first of equals
        score = min(max(best.score, 0.0), 1.0)
        if expects is Expects.CHOICE:
            return Reading(_choice(question, best.citation, passages), (best.citation,), score)
        if best.span is None:
            return Reading(None, (best.citation,), score)
        return Reading(best.span.text, (best.citation,), score, rivals=_rivals(finds, best, expects))

    def _finds(self, asked: Wanted, expects: Expects, passages: Sequence[Passage]) -> list[_Find]:
        held = [(rank, one, at, text) for rank, one in enumerate(passages) for at, text in enumerate(one.sentences)]
        stems = [frozenset(map(stem, tokens(text))) for _, _, _, text in held]
        weights = _weights(asked, stems)
        titles = {one.doc_id: (title_key(one.title), tokens(one.title)) for one in passages}
        known = {titles[one.doc_id][0]: _of_the_kind(asked, expects, one) for one in passages}
        finds = []
        for (rank, passage, at, text), own in zip(held, stems):
            key, title = titles[passage.doc_id]
            told = asked.told_in(own | frozenset(map(stem, title)))
            covered = sum(weight for one, weight in weights.items() if one in told)
            subject = _subject(asked, key, title, text, names=asked.names[:1] if expects is Expects.YES_NO else asked.names)
            score = 0.4 * covered + 0.3 * subject + 0.25 * (not own.isdisjoint(asked.cues)) - 0.01 * rank
            span = _answer_in(text, passage.title, subject, asked, expects, known)
            score += 0.15 * bool(span and known.get(title_key(span.text)))
            if span is None and expects not in (Expects.YES_NO, Expects.CHOICE):
                score *= 0.6
            finds.append(_Find(score + 0.05 * (at == 0), Citation(passage.doc_id, at, text), span, covered, subject))
        return finds


def _answer_in(
    text: str, title: str, subject: float, asked: Wanted, expects: Expects, known: Mapping[str, bool]
) -> Span | None:
    """The best span of a sentence, or its title: what is said of somebody else is no answer, however well the words fit."""
    # Whose nationality or life it is must be plain: a film's country is not its director's.
    least = OWN if asked.life or expects is Expects.COUNTRY else 0.0
    key = title_key(title)
    span = best_span(asked, expects, text, key, known) if subject > 0 and subject >= least else None
    if known[key] and 0 < subject < OWN and not (span and known.get(title_key(span.text))):
        # The sentence tells what the question tells, of somebody of the kind that is asked for: it is about the answer.
        return Span(bare_title(title), 0, 0)
    return span


def _of_the_kind(asked: Wanted, expects: Expects, passage: Passage) -> bool:
    """Is the document about something of the kind that is asked for? "Which comedian": it says who is a comedian."""
    if expects not in (Expects.PERSON, Expects.THING) or not passage.sentences or title_key(passage.title) in asked.names:
        return False
    if not asked.kind:
        return expects is Expects.PERSON and (is_life(passage.sentences[0]) or BORN.search(passage.sentences[0]) is not None)
    told = next(iter(spans(passage.sentences[0], Expects.KIND)), None)
    said = frozenset(map(stem, tokens(told.text))) if told else frozenset()
    return asked.kind[-1] in said


def _yes_or_no(finds: Sequence[_Find]) -> Reading:
    """Yes where a sentence about the subject says nearly all of it; no where it is denied, or what is told leaves it out."""
    about = [one for one in finds if one.subject > 0]
    if not about:
        return Reading(None)
    best = max(about, key=lambda one: one.score)
    said = best.covered >= SURE and not _DENIED.search(best.citation.text)
    return Reading("yes" if said else "no", (best.citation,), best.covered)


def _choice(question: str, citation: Citation, passages: Sequence[Passage]) -> str | None:
    """The one of the two choices that the best sentence is about: a guess, since one sentence does not compare."""
    found = two_choices(" ".join(question.split()))
    title = next((one.title for one in passages if one.doc_id == citation.doc_id), "")
    said = set(tokens(f"{title} {citation.text}"))
    if found is None:
        return None
    return max(found[1:], key=lambda name: len(said & set(tokens(name))) / (len(set(tokens(name))) or 1))


def _rivals(finds: Sequence[_Find], best: _Find, expects: Expects) -> tuple[str, ...]:
    """Other dates or numbers that another document gives as plainly. Of names, several may be right."""
    if expects not in (Expects.DATE, Expects.NUMBER) or best.span is None:
        return ()
    about = [one for one in finds if one.subject >= best.subject and one.citation.doc_id != best.citation.doc_id]
    others = [one for one in about if one.score >= best.score - AS_PLAIN]
    return tuple(dict.fromkeys(one.span.text for one in others if one.span and one.span.text != best.span.text))


def _weights(asked: Wanted, held: Sequence[frozenset[str]]) -> dict[str, float]:
    """What each stem of the question counts, rare ones more; together 1."""
    raw = {stem: math.log1p(len(held) / (1 + sum(stem in one for one in held))) for stem in asked.stems}
    total = sum(raw.values()) or 1.0
    return {stem: weight / total for stem, weight in raw.items()}


def _subject(asked: Wanted, key: str, title: Sequence[str], text: str, *, names: Sequence[str]) -> float:
    """Is this about what the question names? By its title in full, in part, or by a mention; no names: about anything."""
    if not names:
        return 0.5
    words = set(key.split())
    if title and f" {' '.join(title)} " in f" {' '.join(asked.words)} " and any(words & set(name.split()) for name in names):
        return 1.0
    if words and any(key == name or f" {key} " in f" {name} " for name in names):
        return 0.9
    if words and any(words <= set(name.split()) or set(name.split()) <= words for name in names):
        return OWN
    said = f" {title_key(text)} "
    if any(re.search(rf"\b(?:known as|born|called|nee|aka)(?: \w+){{0,2}} {re.escape(name)} ", said) for name in names):
        return OWN
    return 0.5 if any(f" {name} " in said for name in names) else 0.0
