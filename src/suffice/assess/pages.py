"""A hit's title and text, read once for any number of questions, as a question is read once for any number of hits.

The same documents are found again and again, so the last ones read are kept: what is known of a page follows from its title and
text alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from suffice.assess import folding

__all__ = ["MAX_CHARS", "SHORT", "Page", "forget", "page"]

# What a reader would be shown, and a bound on the time that a hostile input can take.
MAX_CHARS = 4_000  # of one hit
MAX_TITLE = 200
KEPT = 2_048  # pages, a few kilobytes each
SHORT = 4  # a title key of a letter or two, between its spaces: found everywhere by chance


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


@lru_cache(maxsize=KEPT)
def _page(title: str, text: str) -> Page:
    raw = folding.plain(f"{title}. {text}" if title else text)
    key, runs = folding.title_key(title), folding.name_runs(raw)
    return Page(key, key.split(), folding.fold(raw), runs, frozenset(runs), bool(text))
