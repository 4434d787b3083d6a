"""The evidence as a graph: which hits contain the question's names, their links, what is missing.

For display only: the gate's probability comes from `suffice.gate.extraction`. A word counts as
covered by the same rule as in the verdict, so that both agree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from suffice.gate.extraction import (
    SHORT_TITLE_KEY,
    Passage,
    parse_passage,
    text_with_byline,
    word_holders,
)
from suffice.gate.question import ParsedQuestion, WordTable, parse_question, search_key
from suffice.types import DocId, Evidence


@dataclass(frozen=True, slots=True)
class NameMention:
    """A name, number or word of the question, at [start, end), and the hits that contain it."""

    text: str
    start: int
    end: int
    found_in: tuple[DocId, ...]


@dataclass(frozen=True, slots=True)
class MissingItem:
    """A missing item, the hits that mention it, and whether the question names it."""

    text: str
    mentioned_by: tuple[DocId, ...]
    in_question: bool


@dataclass(frozen=True, slots=True)
class EvidenceGraph:
    hits: tuple[DocId, ...]  # read by the gate, in rank order
    names: tuple[NameMention, ...]
    words: tuple[NameMention, ...]  # content words, also those inside names
    links: tuple[tuple[DocId, DocId], ...]  # (hit, hit whose title it mentions)
    missing: tuple[MissingItem, ...]


def build_evidence_graph(
    evidence: Evidence, words: WordTable, missing: Sequence[str] = ()
) -> EvidenceGraph:
    """The graph of one question; `missing` comes from its verdict."""
    question, ids = evidence.question.text, tuple(hit.doc_id for hit in evidence.hits)
    documents = {doc_id: evidence.documents[doc_id] for doc_id in ids}
    passages = {
        doc_id: parse_passage(one.title, text_with_byline(one)) for doc_id, one in documents.items()
    }
    links = tuple(
        (by, to)
        for to, title in passages.items()
        for by, one in passages.items()
        if by != to and len(title.key) > SHORT_TITLE_KEY and title.key in one.flat
        and title.key not in one.key
    )  # fmt: skip
    items = []
    for text in missing:
        key = search_key(text)
        mentioned_by = _holders(key, passages) if key else ()
        items.append(MissingItem(text, mentioned_by, bool(key) and key in search_key(question)))
    parsed = parse_question(question, words)
    names = _find_mentions(question, passages, parsed)
    return EvidenceGraph(ids, names, _find_words(question, passages, parsed), links, tuple(items))


def _find_words(
    question: str, passages: dict[DocId, Passage], parsed: ParsedQuestion
) -> tuple[NameMention, ...]:
    ids, found = list(passages), []
    for word, held in zip(parsed.content, word_holders(parsed, list(passages.values()))):
        if span := _locate(question, word, ""):
            found.append(NameMention(question[slice(*span)], *span, tuple(ids[at] for at in held)))
    return tuple(sorted(found, key=lambda one: one.start))


def _find_mentions(
    question: str, passages: dict[DocId, Passage], parsed: ParsedQuestion
) -> tuple[NameMention, ...]:
    # Titles first, longest first: "Shadows in Paradise" is one title, but the gate sees two names.
    keys = {one.key for one in passages.values() if len(one.key) > SHORT_TITLE_KEY}
    titles = sorted((key for key in keys if key in parsed.flat), key=len, reverse=True)
    written = parsed.display_names
    names = [key for key in parsed.names if not _is_common_word(question, written[key])]
    found: list[NameMention] = []
    for key in dict.fromkeys((*titles, *names, *parsed.numbers)):
        span = _locate(question, key, written.get(key, ""))
        if span and not any(one.start < span[1] and span[0] < one.end for one in found):
            found.append(NameMention(question[slice(*span)], *span, _holders(key, passages)))
    return tuple(sorted(found, key=lambda one: one.start))


def _is_common_word(question: str, written: str) -> bool:
    """Whether it also occurs in lower case: "the film Metropolis (Film)"."""
    small = written.lower()
    return small != written and re.search(rf"(?<!\w){re.escape(small)}(?!\w)", question) is not None


def _locate(question: str, key: bytes, written: str) -> tuple[int, int] | None:
    """Where a name occurs in the question: its words with anything between them, or as written."""
    words = r"\W+".join(map(re.escape, key.decode("utf-8", "ignore").split()))
    if match := re.search(rf"(?<!\w){words}(?!\w)", question, re.IGNORECASE):
        return match.span()
    start = question.find(written) if written else -1
    return (start, start + len(written)) if start >= 0 else None


def _holders(key: bytes, passages: dict[DocId, Passage]) -> tuple[DocId, ...]:
    """The hits that contain it, or whose title is part of it: "Dog Law" in "The Dog Law film"."""
    return tuple(
        doc_id
        for doc_id, one in passages.items()
        if key in one.flat or (len(one.key) > SHORT_TITLE_KEY and one.key in key)
    )
