"""Echoes: text that gives a question its own words back and says nothing else. They cover nothing.

Who can write into a corpus can write the names of a question into a document, or the whole question, and every count of what is
covered rises. So before hits are read, what only restates the question is taken out of them. A sentence is an *echo* where it
holds a name of the question that its document's title does not carry, or most of the question's words, and

    names of its own         it has fewer other names and numbers than names of the question, and
    a place in its document  none of its other words, save ordinary ones, stands in the title or in a sentence that is no echo.

A document that mentions every one of three or more names, none of them in its title, is a list: no sentence counts for them. A
title counts if the text bears it out, an outlet if it names one thing. Real documents are so: of the hits of four collections
a few in a hundred lose a sentence, and the others are read as they are.

A false statement that is about something and names it is no echo, and nothing in a text tells it from the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from suffice.assess import folding
from suffice.assess.asking import Asked
from suffice.assess.folding import QUIET
from suffice.assess.legible import legible
from suffice.assess.pages import MAX_CHARS, Page, bylined, page, sentences
from suffice.assess.words import Words
from suffice.types import Document, Evidence

__all__ = ["unechoed"]

MOST = 0.6  # share of the question's words, by rarity, from which a sentence restates it
FEWEST = 3  # words that this takes
LIST = 3  # names from which on a document that mentions all is a list
TELLING = 0.7  # rarity of a word that ties a sentence to its document
MOSTLY = 2 / 3  # share of a title's words from which it is made of the question
SHORT_TITLE, LONG_TITLE = 4, 6  # words of the question in a title made of them, and in any: from so many on
BORNE_OUT = 0.8  # … is the share that has to stand in the text
OPENING = 100  # bytes of a document that show, in most, that it has words of its own
LONG_SOURCE = 60  # characters: no outlet is called so
SHORTEST = 4  # a title of a letter or two, between its spaces, is in too many names


def unechoed(asked: Asked, evidence: Evidence, words: Words) -> Evidence:
    """The evidence without echoes, and legible; the same evidence where there are none."""
    ear, documents, changed = _Ear(asked, words), evidence.documents, {}
    for hit in evidence.hits:
        was = documents.get(hit.doc_id)
        if was is not None and (now := ear.heard(was)) is not was:
            changed[hit.doc_id] = now
    return replace(evidence, documents={**documents, **changed}) if changed else evidence


class _Ear:
    """One question's words, which every hit is listened to for."""

    __slots__ = ("enough", "flat", "names", "tokens", "weighed", "words")

    def __init__(self, asked: Asked, words: Words) -> None:
        self.words, self.flat, self.names, self.tokens = words, asked.flat, asked.names, frozenset(asked.tokens)
        self.weighed = list(zip(asked.stems, asked.rarity))
        self.enough = MOST * sum(asked.rarity)

    def heard(self, document: Document) -> Document:
        seen = _seen(document)
        title, text, source = seen.title, seen.text, seen.source
        # What is read is the text behind its outlet and day. That page is needed anyway, and most have nothing to look for.
        read = page(title, bylined(seen))
        # A title of several names does not vouch for a text that has the same ones, nor the text for the title.
        key = b"" if len(self._apart(read.key)) > 1 else read.key
        strange = [name for name in self.names if name in read.flat and not _carries(key, name)]
        if self._has_no_word(read.flat[:OPENING].rpartition(b" ")[0]) and self._has_no_word(read.flat):
            text = ""
        elif strange or self._restated(read.flat):
            text = self._without_echoes(key, text, strange)
        if title and not self.tokens.isdisjoint(read.words) and self._is_hollow(read, text):
            title = ""
        if source and not self._is_one_name(source):
            source = None
        if title is seen.title and text is seen.text and source is seen.source:
            return seen
        return replace(seen, title=title, text=text, source=source)

    def _has_no_word(self, flat: bytes) -> bool:
        """Of its own."""
        return self.tokens.issuperset(set(flat.split()) - QUIET)

    def _restated(self, flat: bytes) -> bool:
        """Does folded text hold most of the question's words?"""
        held = [rare for stem, rare in self.weighed if stem in flat]
        return len(held) >= FEWEST and sum(held) >= self.enough

    def _is_asked(self, word: bytes) -> bool:
        return word in QUIET or word in self.tokens or any((b" %b " % word).startswith(stem) for stem, _ in self.weighed)

    # -------------------------------------------------------------------------------------------- sentences

    def _without_echoes(self, key: bytes, text: str, strange: Sequence[bytes]) -> str:
        """The text itself where no sentence of it is an echo. Without strange names it is most of the words that count."""
        pieces, flats = sentences(text)
        named: list[list[bytes]] = [[] for _ in flats]
        for name in strange:
            for at, flat in enumerate(flats):
                if name in flat:
                    named[at].append(name)
        about = list(map(bool, named)) if strange else list(map(self._restated, flats))
        if self._is_list(key, set(chain.from_iterable(named))):
            echoes = about
        else:
            rows = zip(about, pieces, flats, named, strict=True)
            echoes = [one and self._restates(piece, flat, len(names)) for one, piece, flat, names in rows]
            if any(echoes):
                clear = [flat for flat, one in zip(flats, about, strict=True) if not one]
                told = set(b" ".join([key, *clear]).split())
                echoes = [one and not self._is_tied(flat, told) for one, flat in zip(echoes, flats, strict=True)]
        if not any(echoes):
            return text
        return ". ".join(piece for piece, echo in zip(pieces, echoes, strict=True) if not echo)

    def _is_list(self, key: bytes, named: set[bytes]) -> bool:
        return len(named) >= LIST and all(name in named or _carries(key, name) for name in self.names)

    def _restates(self, piece: str, flat: bytes, named: int) -> bool:
        """Has a sentence fewer names and numbers of its own than it has names of the question?"""
        least = max(named, 1)
        own = sum([word.isdigit() and word not in self.tokens for word in flat.split()])
        if own >= least:
            return False
        for name, run in folding.names(folding.name_runs(folding.plain(piece))).items():
            opens = (
                b" " not in run
                and piece.startswith(run.decode("utf-8", "ignore"))
                and self.words.rarities([run.lower()])[0] < 1
            )
            own += not opens and not all(map(self._is_asked, name.split()))
        return own < least

    def _is_tied(self, flat: bytes, told: set[bytes]) -> bool:
        """Does a telling word of the sentence, none of the question's, stand elsewhere in its document?"""
        own = [word for word in told.intersection(flat.split()) if len(word) > 3 and not self._is_asked(word)]
        return max(self.words.rarities(own), default=0.0) >= TELLING

    # -------------------------------------------------------------------------------------------- titles, outlets

    def _is_hollow(self, read: Page, text: str) -> bool:
        """Is it made of the question's words, or carries it several of its names, and the text does not bear it out?"""
        parts = {word for word in read.words if word not in QUIET and len(word) > 1}
        taken = parts & self.tokens
        carried = self._apart(read.key)
        mostly = len(taken) >= MOSTLY * len(parts)
        if not taken or not (mostly or len(carried) > 1 or len(taken) >= LONG_TITLE):
            return False
        flat = folding.fold(folding.plain(text[:MAX_CHARS]))
        held = {word for word in taken if folding.stem(word) in flat}
        if mostly and len(held) < len(taken) * (BORNE_OUT if len(taken) >= SHORT_TITLE else 0.5):
            return True
        if len(taken) >= LONG_TITLE and len(held) < len(taken) * BORNE_OUT:
            return True
        return len(carried) > 1 and any(not held.issuperset(set(name.split()) - QUIET) for name in carried)

    def _apart(self, key: bytes) -> list[bytes]:
        """The question's names in a title, save those inside another."""
        carried = [name for name in self.names if name in key]
        return [name for name in carried if not any(name != other and name in other for other in carried)]

    def _is_one_name(self, source: str) -> bool:
        """An outlet is one name: as the question calls it, or one that holds at most one of its names."""
        key = folding.key(source[: LONG_SOURCE + 1])
        return len(source) <= LONG_SOURCE and (key in self.flat or sum([name in key for name in self.names]) < 2)


def _carries(key: bytes, name: bytes) -> bool:
    """Is the name the title, or part of it, or holds it?"""
    return name in key or (len(key) > SHORTEST and key in name)


def _seen(document: Document) -> Document:
    """As it looks to people; the same document where nothing hides."""
    title, text, source = legible(document.title), legible(document.text), document.source and legible(document.source)
    if title is document.title and text is document.text and source is document.source:
        return document
    return replace(document, title=title, text=text, source=source)
