"""The reader that needs no language model: the sentence that supports an answer best, and the span in it that looks like one.

A sentence is weighed by the question's words in it, rare ones more, and by whose document it stands in: where the question
names the title, "he was born" needs no name. Then the spans of the expected form are weighed by how near they stand to the word
that says it ("directed by", "died"). A sentence without such a span may still be cited; then there is no span to answer with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from suffice.reason.comparing import two_choices
from suffice.reason.spans import COUNTRIES, PEOPLES, Expects, Span, spans
from suffice.text import OPENERS, STOP_WORDS, names, sentences, title_key, tokens
from suffice.types import Citation, DocId, Document

__all__ = ["MOST_SENTENCES", "ExtractiveReader", "Passage", "Reading", "passage_of", "says"]

MOST_SENTENCES = 60  # of one document
LONGEST = 800  # characters of one sentence
AS_PLAIN = 0.03  # by so little another sentence may fit less and still speak against the best
KNOWN = 25  # letters by which a title may stand further off
SURE = 0.75  # share of a statement's words in one place, from which on it counts as said


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


# What is asked by one word is often said by another. Keys and values are stems, see _stem.
_SAID = {
    "die": "died death dead killed buried", "death": "died dead killed", "born": "birth", "birth": "born", "birthplace": "born",
    "director": "directed directs", "composer": "composed music score soundtrack",
    "performer": "recorded song single album sung",
    "singer": "sung sang recorded", "author": "wrote written novel book", "writer": "wrote written", "wrote": "written author",
    "mother": "son daughter child wife", "father": "son daughter child", "spouse": "married wife husband",
    "wife": "married husband", "husband": "married wife", "child": "son daughter father mother", "son": "father mother",
    "sibling": "brother sister", "released": "release premiered film song album single", "formed": "founded established",
    "founded": "formed established founder", "founder": "founded", "producer": "produced", "employer": "worked professor",
    "burial": "buried", "located": "city town village county",
    "studied": "educated university college", "study": "studied educated university", "graduate": "graduated studied educated",
}  # fmt: skip


def _stem(word: str) -> str:
    return word[:5]


_LIFE = re.compile(r"\d{3,4}[^()]{0,40}?[–—-][^()]{0,40}?\d{3,4}")  # "(6 January 1874 – 11 November 1948)"
_CUES = {_stem(word): frozenset(map(_stem, [word, *said.split()])) for word, said in _SAID.items()}
_NOISE = STOP_WORDS | OPENERS | frozenset("film song movie band called named did same person".split())


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as the reader looks for it."""

    stems: tuple[str, ...]
    names: tuple[str, ...]  # as title keys
    words: frozenset[str]
    cues: frozenset[str]
    dates: str  # "birth" or "death" where a life is asked for

    @classmethod
    def of(cls, question: str) -> _Asked:
        words = tokens(question)
        stems = dict.fromkeys(_stem(word) for word in words if word not in _NOISE)
        named = tuple(key for name in names(question) if (key := title_key(name)))
        cues = frozenset(cue for stem in stems for cue in _CUES.get(stem, ()))
        if cues:
            kind = "death" if not {"die", "died", "death"}.isdisjoint(words) else "birth" if "born" in words else ""
            kind = "birth" if not kind and "birth" in words else kind
        else:
            kind = ""
            inside = {_stem(word) for name in named for word in name.split()}
            cues = frozenset(stem for stem in stems if stem not in inside)
        return cls(tuple(stems), named, frozenset(words), cues, kind)


@dataclass(frozen=True, slots=True)
class _Find:
    score: float
    citation: Citation
    span: Span | None
    covered: float


def says(question: str, text: str) -> bool:
    """Has a text a word for what is asked, where such words are known? "Directed by" for a director."""
    asked = _Asked.of(question)
    if not any(stem in _CUES for stem in asked.stems) or (asked.dates and _LIFE.search(text)):
        return True
    return any(_stem(word) in asked.cues for word in tokens(text))


class ExtractiveReader:
    """Reads by rules. The same passages give the same answer, and nothing that a passage says is an instruction."""

    name = "extractive"

    def read(self, question: str, expects: Expects, passages: Sequence[Passage]) -> Reading:
        """The best sentence, and the best span in it. No passages: no answer."""
        asked = _Asked.of(question)
        finds = self._finds(asked, expects, passages)
        if not finds:
            return Reading(None)
        best = max(finds, key=lambda one: one.score)  # the first of equals
        score = min(max(best.score, 0.0), 1.0)
        if expects is Expects.CHOICE:
            return Reading(_choice(question, best.citation, passages), (best.citation,), score)
        if expects is Expects.YES_NO:
            return Reading("yes" if best.covered >= SURE else "no", (best.citation,), best.covered)
        if best.span is None:
            return Reading(None, (best.citation,), score)
        return Reading(best.span.text, (best.citation,), score, rivals=_rivals(finds, best, expects))

    def _finds(self, asked: _Asked, expects: Expects, passages: Sequence[Passage]) -> list[_Find]:
        held = [(rank, one, at, text) for rank, one in enumerate(passages) for at, text in enumerate(one.sentences)]
        stems = [frozenset(map(_stem, tokens(text))) for _, _, _, text in held]
        weights = _weights(asked, stems)
        titles = {one.doc_id: (title_key(one.title), frozenset(map(_stem, tokens(one.title)))) for one in passages}
        known = frozenset(key for key, _ in titles.values())
        finds = []
        for (rank, passage, at, text), own in zip(held, stems):
            key, title = titles[passage.doc_id]
            said = own | title | frozenset(stem for stem in asked.stems if stem in _CUES and not own.isdisjoint(_CUES[stem]))
            covered = sum(weight for stem, weight in weights.items() if stem in said)
            subject = _subject(asked, key, text)
            score = 0.4 * covered + 0.3 * subject + 0.25 * (not own.isdisjoint(asked.cues)) - 0.01 * rank
            # What is said of somebody else is no answer, however well the words fit.
            span = _best_span(asked, expects, text, key, known) if subject else None
            if span is None and expects not in (Expects.YES_NO, Expects.CHOICE):
                score *= 0.6
            finds.append(_Find(score + 0.05 * (at == 0), Citation(passage.doc_id, at, text), span, covered))
        return finds


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
    others = (one for one in finds if one.score >= best.score - AS_PLAIN and one.citation.doc_id != best.citation.doc_id)
    return tuple(dict.fromkeys(one.span.text for one in others if one.span and one.span.text != best.span.text))


def _weights(asked: _Asked, held: Sequence[frozenset[str]]) -> dict[str, float]:
    """What each stem of the question counts, rare ones more; together 1."""
    raw = {stem: math.log1p(len(held) / (1 + sum(stem in one for one in held))) for stem in asked.stems}
    total = sum(raw.values()) or 1.0
    return {stem: weight / total for stem, weight in raw.items()}


def _subject(asked: _Asked, title: str, text: str) -> float:
    """Is this about what the question names? By its title, or by a mention; a question without names asks of anything."""
    if not asked.names:
        return 0.5
    words = set(title.split())
    if words and any(title == name or f" {title} " in f" {name} " for name in asked.names):
        return 1.0
    if words and any(words <= set(name.split()) or set(name.split()) <= words for name in asked.names):
        return 0.8
    said = f" {title_key(text)} "
    return 0.6 if any(f" {name} " in said for name in asked.names) else 0.0


# ------------------------------------------------------------------------------------------------------- the span

_MONTHS = frozenset(
    "january february march april may june july august september october november december monday tuesday wednesday thursday "
    "friday saturday sunday he she it they his her in the this".split()
)
# In lower case only: "The Toast of Death" has not died.
_BORN, _DIED = re.compile(r"\bborn\b|\bb\."), re.compile(r"\b(?:died|death|dead|killed|murdered|executed)\b|\bd\.|†")
_DASH = re.compile(r"\s*(?:–|—|-|to|;)\s*")


def _best_span(asked: _Asked, expects: Expects, text: str, title: str, known: frozenset[str]) -> Span | None:
    found = [one for one in spans(text, expects) if not _of_the_question(one, asked, title, expects)]
    if expects in (Expects.PERSON, Expects.PLACE, Expects.THING):
        dates = spans(text, Expects.DATE)
        found = [one for one in found if not any(day.start <= one.start < day.end for day in dates)]
    if expects is Expects.DATE and asked.dates:
        return _life_date(found, text, asked.dates)
    if not found:
        return None
    if expects is Expects.PERSON and "mothe" in asked.stems and not re.search(r"\bmother\b", text):
        return _mother(found, text)
    cues = [one.span() for one in re.finditer(r"\w+", text) if _stem(one.group().casefold()) in asked.cues]
    # A name that has a document of its own is more often what is asked for than one that is only mentioned.
    return min(found, key=lambda one: _distance(one, cues) - (KNOWN if title_key(one.text) in known else 0))


def _of_the_question(span: Span, asked: _Asked, title: str, expects: Expects) -> bool:
    """What the question itself names is not its answer."""
    if expects in (Expects.DATE, Expects.NUMBER):
        return title_key(span.text) in asked.words
    key = title_key(span.text)
    if not key or key in _MONTHS:
        return True
    if expects is Expects.COUNTRY:
        return False
    if key in PEOPLES or (expects is Expects.PERSON and key in COUNTRIES):
        return True
    about = title if any(title and (title in name or name in title) for name in asked.names) else ""
    return any(_same_name(key, name) for name in (*asked.names, about) if name)


def _same_name(one: str, other: str) -> bool:
    """One inside the other, or with the same ends: "Taylor Alison Swift" is Taylor Swift."""
    some, others = one.split(), other.split()
    same_ends = len(some) > 1 and len(others) > 1 and (some[0], some[-1]) == (others[0], others[-1])
    return same_ends or f" {one} " in f" {other} " or f" {other} " in f" {one} "


def _life_date(found: Sequence[Span], text: str, which: str) -> Span | None:
    """Born: the first date, unless a death is told before it. Died: the one behind the word, or the end of a life's dates."""
    if not found:
        return None
    if which == "birth":
        born, died = _BORN.search(text), _DIED.search(text)
        behind = [one for one in found if born and one.start > born.start()]
        if behind:
            return behind[0]
        return found[0] if not died or died.start() > found[0].start else None
    died = _DIED.search(text)
    behind = [one for one in found if died and one.start > died.start()]
    if behind:
        return behind[0]
    for first, second in pairwise(found):
        if _DASH.fullmatch(text[first.end : second.start]) or _DASH.search(text[first.end : second.start][:4]):
            return second
    return None


def _mother(found: Sequence[Span], text: str) -> Span | None:
    """ "The son of A and B": B."""
    child = re.search(r"\b(?:son|daughter|child|born)\b[^.]*?\b(?:of|to)\b", text)
    behind = [one for one in found if child and one.start >= child.end()]
    return behind[1] if len(behind) > 1 else found[0]


def _distance(span: Span, cues: Sequence[tuple[int, int]]) -> float:
    """How far a span stands from the word that says it; better behind it than before."""
    gaps = [span.start - end if span.start >= end else 15 + 2 * (start - span.end) for start, end in cues]
    return min((gap for gap in gaps if gap >= 0), default=1000 + span.start)
