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

from suffice.assess import folding
from suffice.assess.asking import ask
from suffice.assess.looking import bylined
from suffice.assess.pages import SHORT, Page, page
from suffice.assess.words import Words
from suffice.types import DocId, Evidence

__all__ = ["Drawing", "Loose", "Named", "drawing"]


@dataclass(frozen=True, slots=True)
class Named:
    """Something that the question names: as written there, from one letter to before another, and the hits that hold it."""

    text: str
    start: int
    end: int
    held_by: tuple[DocId, ...]


@dataclass(frozen=True, slots=True)
class Loose:
    """Something that is missing, the hits that mention it, and whether the question itself names it."""

    text: str
    mentioned_by: tuple[DocId, ...]
    asked: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    hits: tuple[DocId, ...]  # that the gate read, in rank order
    names: tuple[Named, ...]
    links: tuple[tuple[DocId, DocId], ...]
    loose: tuple[Loose, ...]


def drawing(evidence: Evidence, words: Words, missing: Sequence[str] = ()) -> Drawing:
    """The drawing of one question; `missing` is what the gate's verdict misses."""
    question, documents = evidence.question.text, evidence.documents
    ids = tuple(hit.doc_id for hit in evidence.hits)
    pages = {doc_id: page(documents[doc_id].title, bylined(documents[doc_id])) for doc_id in ids}
    return Drawing(ids, _names(question, pages, words), _links(pages), tuple(_loose(question, pages, one) for one in missing))


def _names(question: str, pages: dict[DocId, Page], words: Words) -> tuple[Named, ...]:
    asked = ask(question, words)
    # Titles first, the longest before those inside it: "Shadows in Paradise" is one name, where the gate reads two.
    titles = sorted(
        {one.key for one in pages.values() if len(one.key) > SHORT and one.key in asked.flat}, key=len, reverse=True
    )
    names = [key for key in asked.names if not _ordinary(question, asked.written[key])]
    found: list[Named] = []
    for key in dict.fromkeys((*titles, *names, *asked.numbers)):
        place = _place(question, key, asked.written.get(key, ""))
        if place and not any(one.start < place[1] and place[0] < one.end for one in found):
            found.append(Named(question[slice(*place)], *place, _holders(key, pages)))
    return tuple(sorted(found, key=lambda one: one.start))


def _ordinary(question: str, written: str) -> bool:
    """Does it also stand there in small letters, as in "the film Metropolis (Film)"? Then it names nothing."""
    small = written.lower()
    return small != written and re.search(rf"(?<!\w){re.escape(small)}(?!\w)", question) is not None


def _place(question: str, key: bytes, written: str) -> tuple[int, int] | None:
    """Where a folded name stands in the question: its words, whatever stands between them; or else as it is written."""
    words = r"\W+".join(map(re.escape, key.decode("utf-8", "ignore").split()))
    if match := re.search(rf"(?<!\w){words}(?!\w)", question, re.IGNORECASE):
        return match.span()
    start = question.find(written) if written else -1
    return (start, start + len(written)) if start >= 0 else None


def _holders(key: bytes, pages: dict[DocId, Page]) -> tuple[DocId, ...]:
    """The hits in whose title or text it stands, and those whose title is a part of it: "Dog Law" for "The Dog Law film"."""
    return tuple(doc_id for doc_id, one in pages.items() if key in one.flat or (len(one.key) > SHORT and one.key in key))


def _links(pages: dict[DocId, Page]) -> tuple[tuple[DocId, DocId], ...]:
    return tuple(
        (by, to)
        for to, title in pages.items()
        for by, one in pages.items()
        if by != to and len(title.key) > SHORT and title.key in one.flat and title.key not in one.key
    )


def _loose(question: str, pages: dict[DocId, Page], text: str) -> Loose:
    key = folding.key(text)
    asked = bool(key) and key in folding.key(question)
    return Loose(text, _holders(key, pages) if key else (), asked)
