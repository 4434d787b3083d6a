"""Which span of a sentence is the answer: the one of the right form that stands nearest to the word that says it.

Lives are read by their own rules, since encyclopaedias write them so: "(born in A, 1 May 1900 – 2 June 1980 in B)".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from suffice.answering.answer_type import COUNTRIES, NATIONALITIES, AnswerType, Span, find_spans
from suffice.answering.question_cues import BORN, DIED, QuestionCues, has_life_dates, stem
from suffice.answering.rule_planner import two_choices
from suffice.lexicon import FUNCTION_WORDS
from suffice.text import bare_title, sentences, title_key, tokens
from suffice.types import Citation, DocId, Document

__all__ = [
    "CONFIDENT",
    "MAX_SENTENCES",
    "ExtractiveReader",
    "Passage",
    "Reading",
    "best_span",
    "passage_from_document",
]


KNOWN_BONUS, KIND_BONUS = (
    25,
    80,
)  # letters by which a title may stand further off, and one of the kind that is asked for
MAX_COUNT_GAP = 40  # letters between a number and what it counts
_NOT_NAMES = frozenset(
    "january february march april may june july august september october november december monday tuesday wednesday thursday "
    "friday saturday sunday he she it they his her in the this".split()
)
_NAME_TYPES = (AnswerType.PERSON, AnswerType.PLACE, AnswerType.THING)
_KIN_STEMS = frozenset(
    map(stem, "father mother son daughter child spouse wife husband sibling brother sister".split())
)
_DASH = re.compile(r"\s*(?:–|—|-|to|;)\s*")
_AT = re.compile(r"\b(?:in|at|near)\s+(?:the\s+)?$")
_NATIONALITY_WORDS = frozenset("from nationality nationalities citizenship citizen".split())
_IS_A = re.compile(r"\b(?:is|was|were|are) (?:an?|the)\b")


def best_span(
    asked: QuestionCues, expects: AnswerType, text: str, title: str, known: Mapping[str, bool]
) -> Span | None:
    """The span that answers best; None where nothing in the sentence looks like the answer.

    `known` are the titles at hand, and whether what bears it is of the kind that is asked for.
    """
    found = [
        one for one in find_spans(text, expects) if not _in_question(one, asked, title, expects)
    ]
    days = find_spans(text, AnswerType.DATE)
    if expects in (*_NAME_TYPES, AnswerType.NUMBER):
        found = [one for one in found if not any(day.start <= one.start < day.end for day in days)]
    if asked.life and expects is AnswerType.DATE:
        return _life_date(found, text, asked.life)
    if asked.life and expects is AnswerType.PLACE:
        return _life_place(days, text, asked, title)
    if expects is AnswerType.PERSON:
        found = [one for one in found if not _is_not_person(one, text, known)]
    if not found:
        return None
    if expects is AnswerType.COUNTRY:
        return (
            _country_span(found)
            if _NATIONALITY_WORDS.isdisjoint(asked.words)
            else _nationality_span(found, text)
        )
    if (
        expects is AnswerType.PERSON
        and "mothe" in asked.stems
        and not re.search(r"\bmother\b", text)
    ):
        return _mother_span(found, text)
    cues = [
        one.span()
        for one in re.finditer(r"\w+", text)
        if stem(one.group().casefold()) in asked.cues
    ]
    if expects is AnswerType.NUMBER and "many" in asked.words:
        return _counted_number(found, cues)
    return min(
        found, key=lambda one: _distance(one, cues) - _bonus(title_key(one.text), asked, known)
    )


def _bonus(key: str, asked: QuestionCues, known: Mapping[str, bool]) -> int:
    """A name with a document of its own is more often asked for than one that is only mentioned; more so if of the kind.

    Which county, which award, which church: many a name says of which kind it is. Kin are all persons: there the place decides.
    """
    if asked.kind and asked.kind[-1] in map(stem, key.split()):
        return KIND_BONUS
    titles = [
        title for title in known if title == key or (" " in key and title.startswith(f"{key} "))
    ]
    if any(known[title] for title in titles) and _KIN_STEMS.isdisjoint(asked.stems):
        return KIND_BONUS
    return KNOWN_BONUS if titles else 0


def _in_question(span: Span, asked: QuestionCues, title: str, expects: AnswerType) -> bool:
    """What the question itself names is not its answer."""
    if expects in (AnswerType.DATE, AnswerType.NUMBER):
        return title_key(span.text) in asked.words
    key = title_key(span.text)
    if not key or key in _NOT_NAMES:
        return True
    if expects in (AnswerType.COUNTRY, AnswerType.KIND):
        return False
    if key in NATIONALITIES or (expects is AnswerType.PERSON and key in COUNTRIES):
        return True
    about = title if any(title and (title in name or name in title) for name in asked.names) else ""
    return any(_same_name(key, name) for name in (*asked.names, about) if name)


def _same_name(one: str, other: str) -> bool:
    """One inside the other, or with the same ends: "Taylor Alison Swift" is Taylor Swift."""
    some, others = one.split(), other.split()
    same_ends = len(some) > 1 and len(others) > 1 and (some[0], some[-1]) == (others[0], others[-1])
    return same_ends or f" {one} " in f" {other} " or f" {other} " in f" {one} "


def _is_not_person(span: Span, text: str, known: Mapping[str, bool]) -> bool:
    """A people ("Puerto Rican singer"), or a word that has its capital only from opening the sentence ("Founded in")."""
    words, behind = span.text.split(), re.match(r"\s+([a-z]+)", text[span.end :])
    if title_key(span.text) in known:
        return False
    if all(part.casefold() in NATIONALITIES for part in re.split(r"[\s-]+", span.text)):
        return True
    if behind and re.search(r"(?:an|ese|ish)$", words[-1]) and not _continues_name(behind[1]):
        return True
    return span.start == 0 and len(words) == 1 and re.search(r"(?:ed|ing)$", span.text) is not None


def _continues_name(word: str) -> bool:
    """Does such a word tell more of a name, rather than being what an adjective stands before?"""
    return word in FUNCTION_WORDS or re.search(r"(?:ing|ed)$", word) is not None


# ------------------------------------------------------------------------------------------------------- lives


def _life_date(found: Sequence[Span], text: str, which: str) -> Span | None:
    """Born: the date behind the word, or the first of a life's. Died: the one behind the word, or the second of a life's."""
    life = _life_dates(found, text)
    word = (BORN if which == "birth" else DIED).search(text)
    behind = [one for one in found if word and one.start > word.start()]
    if which == "birth":
        if life and not (behind and behind[0].start < life[0].start):
            return life[0]
        if behind:
            return behind[0]
        alone = [
            one for one in found if text.rfind("(", 0, one.start) > text.rfind(")", 0, one.start)
        ]
        return alone[0] if alone and not DIED.search(text) else None
    if behind:
        return behind[0]
    return life[1] if life else None


def _life_dates(days: Sequence[Span], text: str) -> tuple[Span, Span] | None:
    """Two dates with a dash between them: side by side, or in one parenthesis with the places. The dash may be lost."""
    for first, second in pairwise(days):
        between = text[first.end : second.start]
        inside = text.rfind("(", 0, first.start) > text.rfind(")", 0, first.start)
        if _DASH.fullmatch(between) or (
            inside and ")" not in between and (not between.strip() or re.search("[–—-]", between))
        ):
            return first, second
    return None


def _life_place(days: Sequence[Span], text: str, asked: QuestionCues, title: str) -> Span | None:
    """The place behind "born in" or "died in", or beside the date in a life's parenthesis."""
    named = [
        one
        for one in find_spans(text, AnswerType.THING)
        if not _in_question(one, asked, title, AnswerType.PLACE)
    ]
    named = [one for one in named if not any(day.start <= one.start < day.end for day in days)]
    born, died = BORN.search(text), DIED.search(text)
    word, other = (born, died) if asked.life == "birth" else (died, born)
    if word is not None:
        end = other.start() if other is not None and other.start() > word.start() else len(text)
        behind = [
            one for one in named if word.end() <= one.start < end and _AT.search(text[: one.start])
        ]
        if behind:
            return behind[0]
    life = _life_dates(days, text)
    if (
        life is None
        or (close := text.find(")", life[1].end)) < 0
        or (opened := text.rfind("(", 0, life[0].start)) < 0
    ):
        return None
    dash = re.search("[–—-]", text[life[0].end : life[1].start])
    middle = life[0].end + dash.start() if dash else life[0].end
    start, end = (opened, middle) if asked.life == "birth" else (middle, close)
    inside = [one for one in named if start < one.start < end]
    near = [one for one in inside if _AT.search(text[: one.start])] or [
        one for one in inside if text[one.start - 2] in ",;–("
    ]
    return near[0] if near else None


# ------------------------------------------------------------------------------------------------------- the rest


def _nationality_span(found: Sequence[Span], text: str) -> Span:
    """ "is a Finnish director": the people that somebody is said to be of, before any land that is mentioned."""
    said = _IS_A.search(text)
    of = [
        one
        for one in found
        if title_key(one.text) in NATIONALITIES and said and one.start >= said.end()
    ]
    return of[0] if of else found[0]


def _country_span(found: Sequence[Span]) -> Span:
    """Where something is: a land before any people, for "English" may be its language."""
    return next((one for one in found if title_key(one.text) not in NATIONALITIES), found[0])


def _mother_span(found: Sequence[Span], text: str) -> Span | None:
    """ "The son of A and B", "of A by his wife B": B. "The daughter of A, an ambassador": A."""
    child = re.search(r"\b(?:son|daughter|child|born)\b[^.]*?\b(?:of|to)\b", text)
    behind = [one for one in found if child and one.start >= child.end()]
    if len(behind) > 1 and re.search(
        r"\b(?:and|by|with|wife)\b", text[behind[0].end : behind[1].start]
    ):
        return behind[1]
    return behind[0] if behind else found[0]


def _counted_number(found: Sequence[Span], cues: Sequence[tuple[int, int]]) -> Span | None:
    """The number in front of what is counted: "three acts". A number of something else is none."""
    gaps = [
        (start - one.end, one.start, one)
        for one in found
        for start, _ in cues
        if 0 <= start - one.end <= MAX_COUNT_GAP
    ]
    return min(gaps)[2] if gaps else None


def _distance(span: Span, cues: Sequence[tuple[int, int]]) -> float:
    """How far a span stands from the word that says it; better behind it than before."""
    gaps = [
        span.start - end if span.start >= end else 15 + 2 * (start - span.end)
        for start, end in cues
    ]
    return min((gap for gap in gaps if gap >= 0), default=1000 + span.start)


# --- extractive: The reader that needs no language model: the sentence that supports an answer best, and the span in it that looks like one.

MAX_SENTENCES = 60  # of one document
MAX_SENTENCE_CHARS = 800  # characters of one sentence
RIVAL_MARGIN = 0.03  # by so little another sentence may fit less and still speak against the best
OWN_SUBJECT = 0.7  # how far a sentence is about what the question names, from which on it is its own document that speaks
CONFIDENT = 0.75  # share of a statement's words in one place, from which on it counts as said


_NEGATION = re.compile(r"\b(?:not|never|no longer|neither)\b")


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


def passage_from_document(document: Document) -> Passage:
    """The first sentences of a document, each of bounded length and on one line."""
    found = sentences(document.text[: MAX_SENTENCES * MAX_SENTENCE_CHARS])[:MAX_SENTENCES]
    return Passage(
        document.doc_id,
        document.title,
        tuple(" ".join(one.split())[:MAX_SENTENCE_CHARS] for one in found),
    )


@dataclass(frozen=True, slots=True)
class _Candidate:
    score: float
    citation: Citation
    span: Span | None
    covered: float
    subject: float


class ExtractiveReader:
    """Reads by rules. The same passages give the same answer, and nothing that a passage says is an instruction."""

    name = "extractive"

    def read(self, question: str, expects: AnswerType, passages: Sequence[Passage]) -> Reading:
        """The best sentence, and the best span in it. No passages: no answer."""
        asked = QuestionCues.of(question)
        finds = self._finds(asked, expects, passages)
        if not finds:
            return Reading(None)
        if expects is AnswerType.YES_NO:
            return _yes_or_no(finds)
        best = max(finds, key=lambda one: one.score)  # the first of equals
        score = min(max(best.score, 0.0), 1.0)
        if expects is AnswerType.CHOICE:
            return Reading(_choice(question, best.citation, passages), (best.citation,), score)
        if best.span is None:
            return Reading(None, (best.citation,), score)
        return Reading(
            best.span.text, (best.citation,), score, rivals=_rivals(finds, best, expects)
        )

    def _finds(
        self, asked: QuestionCues, expects: AnswerType, passages: Sequence[Passage]
    ) -> list[_Candidate]:
        held = [
            (rank, one, at, text)
            for rank, one in enumerate(passages)
            for at, text in enumerate(one.sentences)
        ]
        stems = [frozenset(map(stem, tokens(text))) for _, _, _, text in held]
        weights = _stem_weights(asked, stems)
        titles = {one.doc_id: (title_key(one.title), tokens(one.title)) for one in passages}
        known = {titles[one.doc_id][0]: _is_asked_kind(asked, expects, one) for one in passages}
        finds = []
        for (rank, passage, at, text), own in zip(held, stems):
            key, title = titles[passage.doc_id]
            told = asked.told_in(own | frozenset(map(stem, title)))
            covered = sum(weight for one, weight in weights.items() if one in told)
            subject = _subject_score(
                asked,
                key,
                title,
                text,
                names=asked.names[:1] if expects is AnswerType.YES_NO else asked.names,
            )
            score = (
                0.4 * covered
                + 0.3 * subject
                + 0.25 * (not own.isdisjoint(asked.cues))
                - 0.01 * rank
            )
            span = _candidate_span(text, passage.title, subject, asked, expects, known)
            score += 0.15 * bool(span and known.get(title_key(span.text)))
            if span is None and expects not in (AnswerType.YES_NO, AnswerType.CHOICE):
                score *= 0.6
            finds.append(
                _Candidate(
                    score + 0.05 * (at == 0),
                    Citation(passage.doc_id, at, text),
                    span,
                    covered,
                    subject,
                )
            )
        return finds


def _candidate_span(
    text: str,
    title: str,
    subject: float,
    asked: QuestionCues,
    expects: AnswerType,
    known: Mapping[str, bool],
) -> Span | None:
    """The best span of a sentence, or its title: what is said of somebody else is no answer, however well the words fit."""
    # Whose nationality or life it is must be plain: a film's country is not its director's.
    least = OWN_SUBJECT if asked.life or expects is AnswerType.COUNTRY else 0.0
    key = title_key(title)
    span = best_span(asked, expects, text, key, known) if subject > 0 and subject >= least else None
    if known[key] and 0 < subject < OWN_SUBJECT and not (span and known.get(title_key(span.text))):
        # The sentence tells what the question tells, of somebody of the kind that is asked for: it is about the answer.
        return Span(bare_title(title), 0, 0)
    return span


def _is_asked_kind(asked: QuestionCues, expects: AnswerType, passage: Passage) -> bool:
    """Is the document about something of the kind that is asked for? "Which comedian": it says who is a comedian."""
    if (
        expects not in (AnswerType.PERSON, AnswerType.THING)
        or not passage.sentences
        or title_key(passage.title) in asked.names
    ):
        return False
    if not asked.kind:
        return expects is AnswerType.PERSON and (
            has_life_dates(passage.sentences[0]) or BORN.search(passage.sentences[0]) is not None
        )
    told = next(iter(find_spans(passage.sentences[0], AnswerType.KIND)), None)
    said = frozenset(map(stem, tokens(told.text))) if told else frozenset()
    return asked.kind[-1] in said


def _yes_or_no(finds: Sequence[_Candidate]) -> Reading:
    """Yes where a sentence about the subject says nearly all of it; no where it is denied, or what is told leaves it out."""
    about = [one for one in finds if one.subject > 0]
    if not about:
        return Reading(None)
    best = max(about, key=lambda one: one.score)
    said = best.covered >= CONFIDENT and not _NEGATION.search(best.citation.text)
    return Reading("yes" if said else "no", (best.citation,), best.covered)


def _choice(question: str, citation: Citation, passages: Sequence[Passage]) -> str | None:
    """The one of the two choices that the best sentence is about: a guess, since one sentence does not compare."""
    found = two_choices(" ".join(question.split()))
    title = next((one.title for one in passages if one.doc_id == citation.doc_id), "")
    said = set(tokens(f"{title} {citation.text}"))
    if found is None:
        return None
    return max(
        found[1:], key=lambda name: len(said & set(tokens(name))) / (len(set(tokens(name))) or 1)
    )


def _rivals(finds: Sequence[_Candidate], best: _Candidate, expects: AnswerType) -> tuple[str, ...]:
    """Other dates or numbers that another document gives as plainly. Of names, several may be right."""
    if expects not in (AnswerType.DATE, AnswerType.NUMBER) or best.span is None:
        return ()
    about = [
        one
        for one in finds
        if one.subject >= best.subject and one.citation.doc_id != best.citation.doc_id
    ]
    others = [one for one in about if one.score >= best.score - RIVAL_MARGIN]
    return tuple(
        dict.fromkeys(
            one.span.text for one in others if one.span and one.span.text != best.span.text
        )
    )


def _stem_weights(asked: QuestionCues, held: Sequence[frozenset[str]]) -> dict[str, float]:
    """What each stem of the question counts, rare ones more; together 1."""
    raw = {
        stem: math.log1p(len(held) / (1 + sum(stem in one for one in held))) for stem in asked.stems
    }
    total = sum(raw.values()) or 1.0
    return {stem: weight / total for stem, weight in raw.items()}


def _subject_score(
    asked: QuestionCues, key: str, title: Sequence[str], text: str, *, names: Sequence[str]
) -> float:
    """Is this about what the question names? By its title in full, in part, or by a mention; no names: about anything."""
    if not names:
        return 0.5
    words = set(key.split())
    if (
        title
        and f" {' '.join(title)} " in f" {' '.join(asked.words)} "
        and any(words & set(name.split()) for name in names)
    ):
        return 1.0
    if words and any(key == name or f" {key} " in f" {name} " for name in names):
        return 0.9
    if words and any(words <= set(name.split()) or set(name.split()) <= words for name in names):
        return OWN_SUBJECT
    said = f" {title_key(text)} "
    if any(
        re.search(rf"\b(?:known as|born|called|nee|aka)(?: \w+){{0,2}} {re.escape(name)} ", said)
        for name in names
    ):
        return OWN_SUBJECT
    return 0.5 if any(f" {name} " in said for name in names) else 0.0
