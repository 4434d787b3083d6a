"""What connects, and what dangles: a question and its hits as a drawing needs them, read as the gate reads them.

    names    what the question names and counts, where it stands there, and which hits hold it
    links    which hit mentions whose title
    loose    what is missing, and which hits lead on to it

It explains and decides nothing: the gate's probability comes from `assess.reading`, which reads a thousand times as often.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from suffice.gate import question as question_module
from suffice.gate.extraction import SHORT_TITLE_KEY, Passage, parse_passage
from suffice.gate.featurize import text_with_byline
from suffice.gate.question import WordTable, parse_question
from suffice.types import DocId, Evidence

__all__ = ["EvidenceGraph", "MissingItem", "NameMention", "build_evidence_graph"]


@dataclass(frozen=True, slots=True)
class NameMention:
    """Something that the question names: as written there, from one letter to before another, and the hits that hold it."""

    text: str
    start: int
    end: int
    held_by: tuple[DocId, ...]


@dataclass(frozen=True, slots=True)
class MissingItem:
    """Something that is missing, the hits that mention it, and whether the question itself names it."""

    text: str
    mentioned_by: tuple[DocId, ...]
    asked: bool


@dataclass(frozen=True, slots=True)
class EvidenceGraph:
    hits: tuple[DocId, ...]  # that the gate read, in rank order
    names: tuple[NameMention, ...]
    links: tuple[tuple[DocId, DocId], ...]
    loose: tuple[MissingItem, ...]


def build_evidence_graph(
    evidence: Evidence, words: WordTable, missing: Sequence[str] = ()
) -> EvidenceGraph:
    """The drawing of one question; `missing` is what the gate's verdict misses."""
    question, documents = evidence.question.text, evidence.documents
    ids = tuple(hit.doc_id for hit in evidence.hits)
    pages = {
        doc_id: parse_passage(documents[doc_id].title, text_with_byline(documents[doc_id]))
        for doc_id in ids
    }
    return EvidenceGraph(
        ids,
        _find_mentions(question, pages, words),
        _links(pages),
        tuple(_missing_item(question, pages, one) for one in missing),
    )


def _find_mentions(
    question: str, pages: dict[DocId, Passage], words: WordTable
) -> tuple[NameMention, ...]:
    asked = parse_question(question, words)
    # Titles first, the longest before those inside it: "Shadows in Paradise" is one name, where the gate reads two.
    titles = sorted(
        {
            one.key
            for one in pages.values()
            if len(one.key) > SHORT_TITLE_KEY and one.key in asked.flat
        },
        key=len,
        reverse=True,
    )
    names = [key for key in asked.names if not _is_common_word(question, asked.written[key])]
    found: list[NameMention] = []
    for key in dict.fromkeys((*titles, *names, *asked.numbers)):
        place = _locate(question, key, asked.written.get(key, ""))
        if place and not any(one.start < place[1] and place[0] < one.end for one in found):
            found.append(NameMention(question[slice(*place)], *place, _holders(key, pages)))
    return tuple(sorted(found, key=lambda one: one.start))


def _is_common_word(question: str, written: str) -> bool:
    """Does it also stand there in small letters, as in "the film Metropolis (Film)"? Then it names nothing."""
    small = written.lower()
    return small != written and re.search(rf"(?<!\w){re.escape(small)}(?!\w)", question) is not None


def _locate(question: str, key: bytes, written: str) -> tuple[int, int] | None:
    """Where a folded name stands in the question: its words, whatever stands between them; or else as it is written."""
    words = r"\W+".join(map(re.escape, key.decode("utf-8", "ignore").split()))
    if match := re.search(rf"(?<!\w){words}(?!\w)", question, re.IGNORECASE):
        return match.span()
    start = question.find(written) if written else -1
    return (start, start + len(written)) if start >= 0 else None


def _holders(key: bytes, pages: dict[DocId, Passage]) -> tuple[DocId, ...]:
    """The hits in whose title or text it stands, and those whose title is a part of it: "Dog Law" for "The Dog Law film"."""
    return tuple(
        doc_id
        for doc_id, one in pages.items()
        if key in one.flat or (len(one.key) > SHORT_TITLE_KEY and one.key in key)
    )


def _links(pages: dict[DocId, Passage]) -> tuple[tuple[DocId, DocId], ...]:
    return tuple(
        (by, to)
        for to, title in pages.items()
        for by, one in pages.items()
        if by != to
        and len(title.key) > SHORT_TITLE_KEY
        and title.key in one.flat
        and title.key not in one.key
    )


def _missing_item(question: str, pages: dict[DocId, Passage], text: str) -> MissingItem:
    key = question_module.search_key(text)
    asked = bool(key) and key in question_module.search_key(question)
    return MissingItem(text, _holders(key, pages) if key else (), asked)
