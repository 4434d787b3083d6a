"""The reader without a language model: find the best sentence, then the span that answers.

A sentence is scored by the question's words in it, rare words more, and by its document: if the
question names the title, "he was born" needs no name. A span of the expected type is scored by its
distance to the cue word ("directed by", "died"). Births and deaths have their own rules, because
encyclopaedias write "(born in A, 1 May 1900 – 2 June 1980 in B)". A sentence without a matching
span can still be cited, but then there is no answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, takewhile

from suffice.answering.answer_type import (
    COUNTRIES,
    NATIONALITIES,
    VOCABULARY,
    AnswerType,
    Span,
    find_spans,
)
from suffice.answering.roles import Agreement, agreement, polarity
from suffice.answering.rule_planner import two_choices
from suffice.lexicon import FUNCTION_WORDS, MONTHS, WEEKDAYS
from suffice.text import bare_title, names, sentences, title_key, tokens
from suffice.types import Citation, DocId, Document

MAX_SENTENCES = 60  # per document
MAX_SENTENCE_CHARS = 800
RIVAL_MARGIN = 0.03  # a sentence with a score this much lower still counts against the best
OWN_SUBJECT = 0.7  # subject score from which a sentence is about the question's entity
CONFIDENT = 0.75  # share of a statement's words in one sentence from which it counts as stated
KNOWN_BONUS, KIND_BONUS = 25, 80  # extra distance in characters for a title, and for the asked kind
MAX_COUNT_GAP = 40  # characters between a number and what it counts


# --- cues: the answer is often stated with another word than the question uses

_NOISE = FUNCTION_WORDS | frozenset(VOCABULARY["noise"].split())
# Lower case only: "The Toast of Death" is a title, not a death.
BORN = re.compile(r"\bborn\b|\bb\.")
DIED = re.compile(r"\b(?:died|death|dead|killed|murdered|executed)\b|\bd\.|†")
_LIFE_DATES = re.compile(
    r"\([^()]*\d{3,4}[^()]{0,60}?[–—-][^()]{0,60}?\d{3,4}"
    r"|\([^()]*\d{4},? +[A-Z][a-z]+ \d{1,2}, \d{4}"
)
_RELEASE_YEAR = re.compile(r"\b(?:is|was) an? (?:[A-Z]\w+ )?\d{4}\b")  # "is a 1944 cartoon"


def stem(word: str) -> str:
    """One stem for a word, its plural and most derived words; for countries, their key."""
    if country := COUNTRIES.get(word):
        return f"@{country}"
    if len(word) > 3 and word[-1] == "s" and word[-2] not in "su":
        word = word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
    return word[:5]


_CUES: dict[str, frozenset[str]] = {}  # by stem: "founded" and "founder" share theirs
for _word, _others in VOCABULARY["cues"].items():
    _stems = {stem(one) for one in (_word, *_others.split())}
    _CUES[stem(_word)] = _CUES.get(stem(_word), frozenset()) | _stems


@dataclass(frozen=True, slots=True)
class QuestionCues:
    """What the reader looks for; `life` is "birth" or "death" if the question asks for one."""

    stems: tuple[str, ...]
    names: tuple[str, ...]  # as title keys, in the order of the question
    words: tuple[str, ...]
    cues: frozenset[str]
    life: str
    kind: tuple[str, ...] = ()  # stems of "which American comedian", the noun last

    @classmethod
    def from_question(cls, question: str) -> QuestionCues:
        words = tokens(question)
        stems = dict.fromkeys(stem(word) for word in words if word not in _NOISE)
        named = tuple(key for name in names(question) if (key := title_key(name)))
        cues = frozenset(cue for one in stems for cue in _CUES.get(one, ()))
        life = ""
        if not cues:
            inside = {stem(word) for name in named for word in name.split()}
            cues = frozenset(one for one in stems if one not in inside)
        elif not {"die", "died", "death"}.isdisjoint(words):
            life = "death"
        elif not {"born", "birth", "birthplace"}.isdisjoint(words):
            life = "birth"
        return cls(tuple(stems), named, tuple(words), cues, life, _asked_kind(words))

    def covered_by(self, stems: frozenset[str]) -> frozenset[str]:
        """The question's stems that these stems express, with the same word or another."""
        return frozenset(
            one for one in self.stems if one in stems or not stems.isdisjoint(_CUES.get(one, ()))
        )


def _asked_kind(words: Sequence[str]) -> tuple[str, ...]:
    """The words after "which" or "what", up to the description that follows."""
    start = next((at for at, word in enumerate(words) if word in ("which", "what")), len(words))
    kind_words = takewhile(
        lambda word: word not in FUNCTION_WORDS and not word.endswith("ed"),
        words[start + 1 : start + 7],
    )
    return tuple(map(stem, kind_words))


def has_life_dates(text: str) -> bool:
    """Whether a text has the dates of a life: "(6 January 1874 – 11 November 1948)"."""
    return _LIFE_DATES.search(text) is not None


def mentions_cue(question: str, text: str) -> bool:
    """Whether a text has a cue word for what is asked; True if no cue words are known."""
    question_cues = QuestionCues.from_question(question)
    if not any(one in _CUES for one in question_cues.stems):
        return True
    life_word = BORN if question_cues.life == "birth" else DIED
    if question_cues.life and (has_life_dates(text) or life_word.search(text)):
        return True
    if "relea" in question_cues.stems and _RELEASE_YEAR.search(text):
        return True
    return any(stem(word) in question_cues.cues for word in tokens(text))


# --- reading

_NEGATION = re.compile(r"\b(?:not|never|no longer|neither)\b")
_NOT_NAMES = frozenset(map(str.casefold, (*MONTHS, *WEEKDAYS))) | frozenset(
    "he she it they his her in the this".split()
)
_NAME_TYPES = (AnswerType.PERSON, AnswerType.PLACE, AnswerType.THING)
_KIN_STEMS = frozenset(map(stem, VOCABULARY["kin"].split()))
_NATIONALITY_WORDS = frozenset("from nationality nationalities citizenship citizen".split())
_DASH = re.compile(r"\s*(?:–|—|-|to|;)\s*")
_AT = re.compile(r"\b(?:in|at|near)\s+(?:the\s+)?$")
_IS_A = re.compile(r"\b(?:is|was|were|are) (?:an?|the)\b")


@dataclass(frozen=True, slots=True)
class Passage:
    """A document as a reader sees it: numbered sentences under a title."""

    doc_id: DocId
    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer, if there is one, its citations, and how well they fit the question (0 to 1)."""

    answer: str | None
    citations: tuple[Citation, ...] = ()
    score: float = 0.0
    by: str = "extractive"
    rivals: tuple[str, ...] = ()  # other answers, from sentences that fit as well
    if_complete: float = 0.0  # the score if the evidence were complete; of the gate's reader only


def passage_from_document(document: Document) -> Passage:
    """The first sentences of a document, each truncated and on one line."""
    text = document.text[: MAX_SENTENCES * MAX_SENTENCE_CHARS]
    found = (one for part in _NEW_LINE.split(text) for one in sentences(part))
    lines = (" ".join(one.split())[:MAX_SENTENCE_CHARS] for one in islice(found, MAX_SENTENCES))
    return Passage(document.doc_id, document.title, tuple(lines))


# Lines that start something new: a chat turn, a field, a list item, a heading, a row of a table, a
# line after a blank one.
_NEW_LINE = re.compile(
    r"\n(?=\s*(?:\[[^\]\n]{1,20}\]|[^\W\d_][\w .'’%/()-]{0,30}:\s|[-*•#]|\d+[.)]\s|\n"
    r"|[^\n;]*;[^\s;][^\n;]*;[^\s;]|[^\n|]+\|[^\n|]+\||[^\n\t]+\t))"
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    score: float
    citation: Citation
    span: Span | None
    covered: float
    subject: float


class ExtractiveReader:
    """Reads by rules. Text in a passage is never an instruction."""

    name = "extractive"

    def read(self, question: str, answer_type: AnswerType, passages: Sequence[Passage]) -> Reading:
        """The best sentence and the best span in it.

        There is no answer without passages, or if the sentence contradicts the span (`roles`).
        """
        candidates = _candidates(QuestionCues.from_question(question), answer_type, passages)
        if not candidates:
            return Reading(None)
        if answer_type is AnswerType.YES_NO:
            if said := said_plainly(question, passages):
                return Reading(*said, CONFIDENT)
            return _yes_or_no(candidates)
        best = max(candidates, key=lambda one: one.score)  # the first if several are equal
        score, cited = min(max(best.score, 0.0), 1.0), (best.citation,)
        if answer_type is AnswerType.CHOICE:
            return Reading(_choice(question, best.citation, passages), cited, score)
        if best.span is None:
            return Reading(None, cited, score)
        if agreement(question, best.citation.text, best.span.text) is Agreement.CONTRADICTED:
            return Reading(None, cited, 0.0)
        rivals = _rivals(candidates, best, answer_type)
        return Reading(best.span.text, cited, score, rivals=rivals)


def _candidates(
    question_cues: QuestionCues, answer_type: AnswerType, passages: Sequence[Passage]
) -> list[_Candidate]:
    """Every sentence with its score and its best span."""
    sentences = [
        (rank, passage, at, text)
        for rank, passage in enumerate(passages)
        for at, text in enumerate(passage.sentences)
    ]
    stems = [frozenset(map(stem, tokens(text))) for *_, text in sentences]
    weights = _stem_weights(question_cues, stems)
    titles = {one.doc_id: (title_key(one.title), tokens(one.title)) for one in passages}
    known = {
        titles[one.doc_id][0]: _is_asked_kind(question_cues, answer_type, one) for one in passages
    }
    subjects = question_cues.names[:1] if answer_type is AnswerType.YES_NO else question_cues.names
    candidates = []
    for (rank, passage, at, text), own in zip(sentences, stems):
        key, title = titles[passage.doc_id]
        covered_stems = question_cues.covered_by(own | frozenset(map(stem, title)))
        covered = sum(weight for one, weight in weights.items() if one in covered_stems)
        subject = _subject_score(question_cues, key, title, text, subjects=subjects)
        has_cue = not own.isdisjoint(question_cues.cues)
        score = 0.4 * covered + 0.3 * subject + 0.25 * has_cue - 0.01 * rank
        span = _candidate_span(text, passage.title, subject, question_cues, answer_type, known)
        score += 0.15 * bool(span and known.get(title_key(span.text)))
        if span is None and answer_type not in (AnswerType.YES_NO, AnswerType.CHOICE):
            score *= 0.6
        score += 0.05 * (at == 0)
        citation = Citation(passage.doc_id, at, text)
        candidates.append(_Candidate(score, citation, span, covered, subject))
    return candidates


def _stem_weights(
    question_cues: QuestionCues, sentence_stems: Sequence[frozenset[str]]
) -> dict[str, float]:
    """The weight of each stem in the question, higher for rare ones; the weights sum to 1."""
    raw = {
        one: math.log1p(len(sentence_stems) / (1 + sum(one in stems for stems in sentence_stems)))
        for one in question_cues.stems
    }
    total = sum(raw.values()) or 1.0
    return {one: weight / total for one, weight in raw.items()}


def _subject_score(
    question_cues: QuestionCues,
    key: str,
    title: Sequence[str],
    text: str,
    *,
    subjects: Sequence[str],
) -> float:
    """Whether a sentence is about what the question names, by its title or by a mention."""
    if not subjects:
        return 0.5
    words = set(key.split())
    title_asked = title and f" {' '.join(title)} " in f" {' '.join(question_cues.words)} "
    if title_asked and any(words & set(name.split()) for name in subjects):
        return 1.0
    if words and any(key == name or f" {key} " in f" {name} " for name in subjects):
        return 0.9
    if words and any(words <= set(one.split()) or set(one.split()) <= words for one in subjects):
        return OWN_SUBJECT
    folded = f" {title_key(text)} "
    alias = r"\b(?:known as|born|called|nee|aka)(?: \w+){{0,2}} {} "
    if any(re.search(alias.format(re.escape(name)), folded) for name in subjects):
        return OWN_SUBJECT
    return 0.5 if any(f" {name} " in folded for name in subjects) else 0.0


def _candidate_span(
    text: str,
    title: str,
    subject: float,
    question_cues: QuestionCues,
    answer_type: AnswerType,
    known: Mapping[str, bool],
) -> Span | None:
    """The best span of a sentence, or its title; none if the sentence is about something else."""
    # It must be clear whose nationality or life it is: a film's country is not its director's.
    exact = question_cues.life or answer_type is AnswerType.COUNTRY
    key = title_key(title)
    span = None
    if subject > 0 and subject >= (OWN_SUBJECT if exact else 0.0):
        span = best_span(question_cues, answer_type, text, key, known)
    fits = span is not None and known.get(title_key(span.text))
    if known[key] and 0 < subject < OWN_SUBJECT and not fits:
        # The sentence says it about a subject of the asked kind, so the title is the answer.
        return Span(bare_title(title), 0, 0)
    return span


def _is_asked_kind(question_cues: QuestionCues, answer_type: AnswerType, passage: Passage) -> bool:
    """Whether the document is about the asked kind: "which comedian", and its text says so."""
    if answer_type not in (AnswerType.PERSON, AnswerType.THING) or not passage.sentences:
        return False
    if title_key(passage.title) in question_cues.names:
        return False
    first = passage.sentences[0]
    if not question_cues.kind:
        person = has_life_dates(first) or BORN.search(first) is not None
        return answer_type is AnswerType.PERSON and person
    kinds = find_spans(first, AnswerType.KIND)
    return bool(kinds) and question_cues.kind[-1] in map(stem, tokens(kinds[0].text))


def said_plainly(
    question: str, passages: Sequence[Passage]
) -> tuple[str, tuple[Citation, ...]] | None:
    """Yes or no, if sentences with all words of the question say so and none says the opposite."""
    found = [
        (said, Citation(one.doc_id, at, sentence))
        for one in passages
        for at, sentence in enumerate(one.sentences)
        if (said := polarity(question, sentence)) is not None
    ]
    if len({said for said, _ in found}) != 1:
        return None
    (said, cited), *_ = found
    return "yes" if said else "no", (cited,)


def _yes_or_no(candidates: Sequence[_Candidate]) -> Reading:
    """Yes if a sentence about the subject states nearly all of it; no if denied or missing."""
    about = [one for one in candidates if one.subject > 0]
    if not about:
        return Reading(None)
    best = max(about, key=lambda one: one.score)
    is_stated = best.covered >= CONFIDENT and not _NEGATION.search(best.citation.text)
    return Reading("yes" if is_stated else "no", (best.citation,), best.covered)


def _choice(question: str, citation: Citation, passages: Sequence[Passage]) -> str | None:
    """The choice that the best sentence is about. A guess: one sentence cannot compare two."""
    found = two_choices(" ".join(question.split()))
    if found is None:
        return None
    title = next((one.title for one in passages if one.doc_id == citation.doc_id), "")
    words_there = set(tokens(f"{title} {citation.text}"))

    def share(name: str) -> float:
        words = set(tokens(name))
        return len(words_there & words) / (len(words) or 1)

    return max(found[1:], key=share)


def _rivals(
    candidates: Sequence[_Candidate], best: _Candidate, answer_type: AnswerType
) -> tuple[str, ...]:
    """Other dates or numbers that another document states as clearly. Several names can fit."""
    if answer_type not in (AnswerType.DATE, AnswerType.NUMBER) or best.span is None:
        return ()
    others = [
        one.span.text
        for one in candidates
        if one.span
        and one.subject >= best.subject
        and one.citation.doc_id != best.citation.doc_id
        and one.score >= best.score - RIVAL_MARGIN
    ]
    return tuple(dict.fromkeys(text for text in others if text != best.span.text))


# --- which span of a sentence is the answer


def best_span(
    question_cues: QuestionCues,
    answer_type: AnswerType,
    text: str,
    title: str,
    known: Mapping[str, bool],
) -> Span | None:
    """The span that answers best; None if nothing in the sentence looks like an answer.

    `known` maps the titles of the passages to whether each is of the asked kind.
    """
    found = [
        one
        for one in find_spans(text, answer_type)
        if not _in_question(one, question_cues, title, answer_type)
    ]
    days = find_spans(text, AnswerType.DATE)
    if answer_type in (*_NAME_TYPES, AnswerType.NUMBER):
        found = _outside(found, days)
    if question_cues.life and answer_type is AnswerType.DATE:
        return _life_date(found, text, question_cues.life)
    if question_cues.life and answer_type is AnswerType.PLACE:
        return _life_place(days, text, question_cues, title)
    if answer_type is AnswerType.PERSON:
        found = [one for one in found if not _is_not_person(one, text, known)]
    if not found:
        return None
    if answer_type is AnswerType.COUNTRY:
        return _country_span(found, text, question_cues)
    mother = answer_type is AnswerType.PERSON and "mothe" in question_cues.stems
    if mother and not re.search(r"\bmother\b", text):
        return _mother_span(found, text)
    cues = [
        one.span()
        for one in re.finditer(r"\w+", text)
        if stem(one.group().casefold()) in question_cues.cues
    ]
    if answer_type is AnswerType.NUMBER and "many" in question_cues.words:
        return _counted_number(found, cues)
    return min(
        found,
        key=lambda one: _distance(one, cues) - _bonus(title_key(one.text), question_cues, known),
    )


def _outside(found: Sequence[Span], days: Sequence[Span]) -> list[Span]:
    """The spans that do not start inside a date."""
    return [one for one in found if not any(day.start <= one.start < day.end for day in days)]


def _bonus(key: str, question_cues: QuestionCues, known: Mapping[str, bool]) -> int:
    """Prefer names that have their own document, more so if it is of the asked kind.

    Many names contain their kind: county, award, church. Relatives are all persons, so for them
    the position decides.
    """
    if question_cues.kind and question_cues.kind[-1] in map(stem, key.split()):
        return KIND_BONUS
    titles = [one for one in known if one == key or (" " in key and one.startswith(f"{key} "))]
    if any(known[title] for title in titles) and _KIN_STEMS.isdisjoint(question_cues.stems):
        return KIND_BONUS
    return KNOWN_BONUS if titles else 0


def _in_question(
    span: Span, question_cues: QuestionCues, title: str, answer_type: AnswerType
) -> bool:
    """Whether the question itself contains the span, so that it cannot be the answer."""
    key = title_key(span.text)
    if answer_type in (AnswerType.DATE, AnswerType.NUMBER):
        return key in question_cues.words
    if not key or key in _NOT_NAMES:
        return True
    if answer_type in (AnswerType.COUNTRY, AnswerType.KIND):
        return False
    if key in NATIONALITIES or (answer_type is AnswerType.PERSON and key in COUNTRIES):
        return True
    named = [*question_cues.names]
    if title and any(title in name or name in title for name in question_cues.names):
        named.append(title)
    return any(_same_name(key, name) for name in named if name)


def _same_name(one: str, other: str) -> bool:
    """One inside the other, or with the same ends: "Taylor Alison Swift" is Taylor Swift."""
    some, others = one.split(), other.split()
    if len(some) > 1 and len(others) > 1 and (some[0], some[-1]) == (others[0], others[-1]):
        return True
    return f" {one} " in f" {other} " or f" {other} " in f" {one} "


def _is_not_person(span: Span, text: str, known: Mapping[str, bool]) -> bool:
    """A nationality ("Puerto Rican singer"), or a verb that opens the sentence ("Founded in")."""
    if title_key(span.text) in known:
        return False
    if all(part.casefold() in NATIONALITIES for part in re.split(r"[\s-]+", span.text)):
        return True
    next_word = re.match(r"\s+([a-z]+)", text[span.end :])
    words = span.text.split()
    if next_word and re.search(r"(?:an|ese|ish)$", words[-1]):
        word = next_word[1]
        if word not in FUNCTION_WORDS and not re.search(r"(?:ing|ed)$", word):
            return True
    return span.start == 0 and len(words) == 1 and re.search(r"(?:ed|ing)$", span.text) is not None


def _life_date(found: Sequence[Span], text: str, which: str) -> Span | None:
    """The date after "born" or "died", or the first or second date of a life."""
    life = _life_dates(found, text)
    word = (BORN if which == "birth" else DIED).search(text)
    after = [one for one in found if word and one.start > word.start()]
    if which == "death":
        return after[0] if after else life[1] if life else None
    if life and not (after and after[0].start < life[0].start):
        return life[0]
    if after:
        return after[0]
    alone = [one for one in found if _in_parenthesis(one, text)]
    return alone[0] if alone and not DIED.search(text) else None


def _in_parenthesis(span: Span, text: str) -> bool:
    return text.rfind("(", 0, span.start) > text.rfind(")", 0, span.start)


def _life_dates(days: Sequence[Span], text: str) -> tuple[Span, Span] | None:
    """Two dates with a dash between them, or in one parenthesis, where the dash may be missing."""
    for first, second in pairwise(days):
        between = text[first.end : second.start]
        if _DASH.fullmatch(between):
            return first, second
        together = _in_parenthesis(first, text) and ")" not in between
        if together and (not between.strip() or re.search("[–—-]", between)):
            return first, second
    return None


def _life_place(
    days: Sequence[Span], text: str, question_cues: QuestionCues, title: str
) -> Span | None:
    """The place after "born in" or "died in", or beside the date in a life's parenthesis."""
    named = [
        one
        for one in find_spans(text, AnswerType.THING)
        if not _in_question(one, question_cues, title, AnswerType.PLACE)
    ]
    named = _outside(named, days)
    born, died = BORN.search(text), DIED.search(text)
    word, other = (born, died) if question_cues.life == "birth" else (died, born)
    if word is not None:
        end = other.start() if other is not None and other.start() > word.start() else len(text)
        after = (one for one in named if word.end() <= one.start < end)
        if found := next((one for one in after if _AT.search(text[: one.start])), None):
            return found
    life = _life_dates(days, text)
    if life is None:
        return None
    close, opened = text.find(")", life[1].end), text.rfind("(", 0, life[0].start)
    if close < 0 or opened < 0:
        return None
    dash = re.search("[–—-]", text[life[0].end : life[1].start])
    middle = life[0].end + dash.start() if dash else life[0].end
    start, end = (opened, middle) if question_cues.life == "birth" else (middle, close)
    inside = [one for one in named if start < one.start < end]
    near = [one for one in inside if _AT.search(text[: one.start])]
    near = near or [one for one in inside if text[one.start - 2] in ",;–("]
    return near[0] if near else None


def _country_span(found: Sequence[Span], text: str, question_cues: QuestionCues) -> Span:
    """The stated nationality ("is a Finnish director"), or else a country."""
    if _NATIONALITY_WORDS.isdisjoint(question_cues.words):  # "English" may be a language
        countries = (one for one in found if title_key(one.text) not in NATIONALITIES)
        return next(countries, found[0])
    stated = _IS_A.search(text)
    after = (one for one in found if stated and one.start >= stated.end())
    return next((one for one in after if title_key(one.text) in NATIONALITIES), found[0])


def _mother_span(found: Sequence[Span], text: str) -> Span:
    """B in "the son of A and B" and "of A by his wife B"; A in "the daughter of A, ..."."""
    child = re.search(r"\b(?:son|daughter|child|born)\b[^.]*?\b(?:of|to)\b", text)
    after = [one for one in found if child and one.start >= child.end()]
    if len(after) > 1:
        between = text[after[0].end : after[1].start]
        if re.search(r"\b(?:and|by|with|wife)\b", between):
            return after[1]
    return after[0] if after else found[0]


def _counted_number(found: Sequence[Span], cues: Sequence[tuple[int, int]]) -> Span | None:
    """The number before what is counted: "three acts"."""
    gaps = [
        (start - one.end, one.start, one)
        for one in found
        for start, _ in cues
        if 0 <= start - one.end <= MAX_COUNT_GAP
    ]
    return min(gaps)[2] if gaps else None


def _distance(span: Span, cues: Sequence[tuple[int, int]]) -> float:
    """How far a span is from its cue word; a span after the cue is better than one before."""
    gaps = [
        span.start - end if span.start >= end else 15 + 2 * (start - span.end)
        for start, end in cues
    ]
    return min((gap for gap in gaps if gap >= 0), default=1000 + span.start)
