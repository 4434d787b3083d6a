"""A hit's title and text, read once for any number of questions, as a question is read once for any number of hits.

The same documents are found again and again, so the last ones read are kept: what is known of a page follows from its title and
text alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from suffice.assess import folding
from suffice.types import Document

__all__ = ["MAX_CHARS", "MAX_TITLE", "Page", "bylined", "forget", "page", "sentences"]

# What a reader would be shown, and a bound on the time that a hostile input can take.
MAX_CHARS = 4_000  # of one hit
MAX_TITLE = 200
KEPT = 2_048  # pages, a few kilobytes each
MONTHS = "January February March April May June July August September October November December".split()  # in any locale

_BREAK = "\ue000"  # between sentences while they are folded: a letter of private use stands in no text
_END = re.compile(r"[.!?;](?<![A-Z].)\s+|\n+")  # not behind an initial


class Page(NamedTuple):
    key: bytes  # the title as it is looked for
    words: list[bytes]  # of the title
    flat: bytes  # title and text, folded
    runs: list[bytes]  # capitalised runs, in order
    names: frozenset[bytes]  # the same, each once
    has_text: bool


def page(title: str, text: str) -> Page:
    return _page(title[:MAX_TITLE], text[:MAX_CHARS])


def forget() -> None:
    """Read every page anew, as a process does that has just begun."""
    _page.cache_clear()
    _sentences.cache_clear()


@lru_cache(maxsize=KEPT)
def _page(title: str, text: str) -> Page:
    raw = folding.plain(f"{title}. {text}" if title else text)
    key, runs = folding.title_key(title), folding.name_runs(raw)
    return Page(key, key.split(), folding.fold(raw), runs, frozenset(runs), bool(text))


def sentences(text: str) -> tuple[list[str], list[bytes]]:
    """The sentences of what is read of a text, as they stand and folded."""
    return _sentences(text[:MAX_CHARS])


@lru_cache(maxsize=KEPT)
def _sentences(text: str) -> tuple[list[str], list[bytes]]:
    """All are folded in one go, which takes a fraction of the time."""
    pieces = _END.split(text.replace(_BREAK, " "))
    return pieces, folding.fold(folding.plain(f" {_BREAK} ".join(pieces))).split(_BREAK.encode())


def bylined(document: Document) -> str:
    """The text behind its outlet and day: questions name them, and often only the metadata holds them."""
    day = document.published_at
    if not document.source and not day:
        return document.text
    when = f"{MONTHS[day.month - 1]} {day.day}, {day.year}" if day else ""
    return ". ".join(filter(None, (document.source, when, document.text)))
