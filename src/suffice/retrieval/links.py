"""Mention links: document a links to b when a's text names b's title.

Built once, linear in the text. Titles are compared as title keys (case, accents, punctuation and closing parentheses fall
away), on whole words, longest match first; a title that could be a common word ("Saw", "The Lake") must be written as a name,
see `suffice.retrieval.phrase_matcher`.

A title that several documents share links to all of them, up to NAMESAKES in document order; the ranker decides. A document's
own title names itself, not its namesakes: no document links to itself or to another of the same title.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, tee
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError
from suffice.jobs import Job, JobRunner, split_into_blocks
from suffice.retrieval.corpus import RaggedRows
from suffice.retrieval.phrase_matcher import PhraseMatch, PhraseMatcher
from suffice.storage import new_artefact, open_artefact
from suffice.storage.artefacts import check_row_offsets, read_array, read_texts, write_texts
from suffice.text import title_key
from suffice.types import DocId, Document

__all__ = [
    "NAMESAKES",
    "MentionLinks",
    "TitleIndex",
    "mention_links",
    "mention_links_in_blocks",
    "named_titles",
]

NAMESAKES = 16
AT_ONCE = 256
_KIND, _VERSION = "links", 1
_REBUILD = "build the library again: suffice build"

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class TitleIndex:
    """The titles of a corpus, ready to be found in texts. Documents without a title are known, but never named."""

    def __init__(self, titles: Iterable[tuple[DocId, str]]) -> None:
        keys: dict[str, int] = {}
        key_of = array("i")
        self.position: dict[DocId, int] = {}
        for doc_id, title in titles:
            if doc_id in self.position:
                raise InputError(
                    f"document id {doc_id!r} occurs twice", hint="give each document its own id"
                )
            self.position[doc_id] = len(self.position)
            key = title_key(title)
            key_of.append(keys.setdefault(key, len(keys)) if key else -1)
        self.ids: tuple[DocId, ...] = tuple(self.position)
        self._key_of: Ints = (
            np.frombuffer(key_of, dtype=np.int32) if key_of else np.zeros(0, np.int32)
        )
        self._phrases = PhraseMatcher(keys)
        self._starts, self._bearers = _group(self._key_of, len(keys))

    @classmethod
    def of(cls, documents: Iterable[Document]) -> TitleIndex:
        return cls((document.doc_id, document.title) for document in documents)

    def __len__(self) -> int:
        return len(self.ids)

    def key_of(self, position: int) -> int:
        """The number of a document's title, the same for namesakes; -1 without a title."""
        return int(self._key_of[position])

    def bearers(self, key: int) -> list[int]:
        """Positions of the documents with this title, at most NAMESAKES."""
        start = self._starts[key]
        found: list[int] = self._bearers[
            start : min(self._starts[key + 1], start + NAMESAKES)
        ].tolist()
        return found

    def mentions(self, texts: Iterable[str]) -> Iterator[tuple[PhraseMatch, ...]]:
        """For each text the titles it names, from left to right; a match's phrase is the number of the title."""
        return (reading.matches for reading in self._phrases.read(texts))


def named_titles(questions: Sequence[str], titles: TitleIndex) -> list[tuple[DocId, ...]]:
    """Documents whose title each question names, longest match first."""
    named = []
    for matches in titles.mentions(questions):
        longest_first = sorted(matches, key=lambda match: match.start - match.end)
        found = dict.fromkeys(at for match in longest_first for at in titles.bearers(match.phrase))
        named.append(tuple(titles.ids[at] for at in found))
    return named


def mention_links(documents: Iterable[Document], titles: TitleIndex) -> MentionLinks:
    """The links of these documents, read one at a time; a document that is not among them has no out-links."""
    return _join_links(titles.ids, _document_links(documents, titles))


def mention_links_in_blocks(
    documents: Iterable[Document], titles: Sequence[tuple[DocId, str]], mapped: JobRunner
) -> MentionLinks:
    """The same, found block by block wherever `mapped` does its work; `titles` are those of the index."""
    digest = hashlib.sha256(json.dumps(titles).encode())
    job = Job("finding links", _block_targets, titles, TitleIndex, key=digest.hexdigest())
    blocks = mapped(
        job, split_into_blocks(documents, AT_ONCE, chars=lambda document: len(document.text))
    )
    return _join_links(tuple(doc_id for doc_id, _ in titles), chain.from_iterable(blocks))


def _block_targets(documents: Sequence[Document], titles: TitleIndex) -> list[list[Any]]:
    return [[here, targets] for here, targets in _document_links(documents, titles)]


def _document_links(
    documents: Iterable[Document], titles: TitleIndex
) -> Iterator[tuple[int, list[int]]]:
    """The position of each document, and those of the documents that it names, in the order of its text."""
    seen, texts = tee(documents)
    for document, matches in zip(seen, titles.mentions(document.text for document in texts)):
        here = titles.position.get(document.doc_id)
        if here is None:
            raise InputError(
                f"document {document.doc_id!r} is not in the title index",
                hint="build it from the same documents",
            )
        own = titles.key_of(here)
        named = dict.fromkeys(match.phrase for match in matches if match.phrase != own)
        yield here, list(chain.from_iterable(map(titles.bearers, named)))


def _join_links(ids: tuple[DocId, ...], found: Iterable[Sequence[Any]]) -> MentionLinks:
    row, column, done = array("i"), array("i"), bytearray(len(ids))
    for here, targets in found:
        if done[here]:
            raise InputError(
                f"document {ids[here]!r} occurs twice", hint="give each document its own id"
            )
        done[here] = True
        column.extend(targets)
        row.extend([here] * len(targets))
    starts, order = _group(np.asarray(row, dtype=np.int32), len(ids))
    return MentionLinks(ids, starts, np.asarray(column, dtype=np.int32)[order])


@dataclass(frozen=True)
class MentionLinks:
    """Who names whom. The targets of document i are targets[starts[i]:starts[i + 1]], in the order the text names them."""

    ids: tuple[DocId, ...]
    starts: Longs
    targets: Ints

    def __len__(self) -> int:
        return len(self.targets)

    def out(self, doc_ids: Sequence[DocId]) -> list[tuple[DocId, ...]]:
        """For each document those that it names; an unknown one names nothing."""
        return self._follow(doc_ids, self.starts, self.targets)

    def into(self, doc_ids: Sequence[DocId]) -> list[tuple[DocId, ...]]:
        """For each document those that name it, in document order."""
        return self._follow(doc_ids, *self._reversed)

    @cached_property
    def position(self) -> dict[DocId, int]:
        return {doc_id: at for at, doc_id in enumerate(self.ids)}

    @cached_property
    def _reversed(self) -> tuple[Longs, Ints]:
        rows = RaggedRows(self.starts, self.targets).inverted(len(self.ids))
        return rows.starts, rows.values

    def _follow(
        self, doc_ids: Sequence[DocId], starts: Longs, ends: Ints
    ) -> list[tuple[DocId, ...]]:
        spots = [self.position.get(doc_id) for doc_id in doc_ids]
        return [
            ()
            if at is None
            else tuple(self.ids[other] for other in ends[starts[at] : starts[at + 1]].tolist())
            for at in spots
        ]

    def save(self, path: Path) -> None:
        """Write the links as arrays into an artefact folder."""
        with new_artefact(Path(path), kind=_KIND, version=_VERSION) as folder:
            np.save(folder / "starts.npy", self.starts)
            np.save(folder / "targets.npy", self.targets)
            write_texts(folder, "id", self.ids)

    @classmethod
    def load(cls, path: Path) -> MentionLinks:
        open_artefact(Path(path), kind=_KIND, version=_VERSION, rebuild=_REBUILD)
        starts, targets = (
            read_array(Path(path) / f"{name}.npy", hint=_REBUILD) for name in ("starts", "targets")
        )
        ids = tuple(read_texts(Path(path), "id", hint=_REBUILD))
        try:
            check_row_offsets(starts, targets, below=len(ids))
        except ValueError as error:
            raise DataError(
                f"the arrays in {path} cannot be links: {error}", hint=_REBUILD
            ) from error
        if len(starts) != len(ids) + 1:
            raise DataError(f"the arrays in {path} do not fit together", hint=_REBUILD)
        return cls(ids, starts, targets)


def _group(groups: Ints, count: int) -> tuple[Longs, npt.NDArray[np.int64]]:
    """Where each group starts, and its members in order: group g's are members[starts[g]:starts[g + 1]]. -1 is no group."""
    members = np.argsort(groups, kind="stable")
    members = members[np.searchsorted(groups[members], 0) :]
    starts = np.concatenate([[0], np.cumsum(np.bincount(groups[members], minlength=count))]).astype(
        np.int64
    )
    return starts, members
