"""Mention links: document a links to b if a's text contains b's title.

Built once, in time linear in the text. Titles match on whole words, longest first. A title that
could be a common word ("Saw", "less") must be used as a name: see
`suffice.retrieval.phrase_matcher`. Which titles are common words is counted during the pass, so
doubtful mentions are decided at the end.

A title that several documents share links to all of them, up to NAMESAKES; the ranker decides. No
document links to itself or to another of the same title.
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
from suffice.retrieval.corpus import RaggedRows, duplicate_id
from suffice.retrieval.phrase_matcher import (
    NameKeys,
    PhraseMatch,
    PhraseMatcher,
    TextMatches,
    WordUse,
    is_small,
)
from suffice.storage import new_artefact, open_artefact
from suffice.storage.artefacts import check_row_offsets, read_array, read_texts, write_texts
from suffice.text import title_key
from suffice.types import DocId, Document

NAMESAKES = 16
BLOCK_DOCUMENTS = 256
_KIND, _VERSION = "links", 2
_REBUILD = "build the library again: suffice build"


class TitleIndex:
    """The titles of a corpus, ready to be found in texts."""

    def __init__(self, titles: Iterable[tuple[DocId, str]]) -> None:
        keys, numbers = NameKeys(), array("i")
        self.position: dict[DocId, int] = {}
        for doc_id, title in titles:
            if doc_id in self.position:
                raise duplicate_id(doc_id)
            self.position[doc_id] = len(self.position)
            key = title_key(title)
            numbers.append(keys.add(key, small=is_small(title)) if key else -1)
        self.ids: tuple[DocId, ...] = tuple(self.position)
        self._numbers = np.asarray(numbers, dtype=np.int32)
        self._small = frozenset(keys.small)
        self._matcher = PhraseMatcher(keys.numbers, small=self._small)
        self._documents = _group(self._numbers, len(keys.numbers))

    @classmethod
    def of(cls, documents: Iterable[Document]) -> TitleIndex:
        return cls((document.doc_id, document.title) for document in documents)

    def __len__(self) -> int:
        return len(self.ids)

    def title_number(self, position: int) -> int:
        """The number of a document's title, the same for namesakes; -1 without a title."""
        return int(self._numbers[position])

    def documents(self, title: int) -> list[int]:
        """Positions of the documents with this title, at most NAMESAKES."""
        return list(self._documents.row(title)[:NAMESAKES].tolist())

    def mentions(self, texts: Iterable[str]) -> Iterator[TextMatches]:
        """The titles in each text, left to right; a match's phrase is the number of the title."""
        return self._matcher.find(texts)

    def can_name(self, match: PhraseMatch) -> bool:
        """Whether a match is a name, judged without the corpus: a doubtful "less" is not."""
        return match.sure or match.phrase not in self._small


def named_titles(questions: Sequence[str], titles: TitleIndex) -> list[tuple[DocId, ...]]:
    """Documents whose title each question names, longest match first."""
    named = []
    for text in titles.mentions(questions):
        matches = filter(titles.can_name, text.matches)
        longest_first = sorted(matches, key=lambda match: match.start - match.end)
        found = dict.fromkeys(at for one in longest_first for at in titles.documents(one.phrase))
        named.append(tuple(titles.ids[at] for at in found))
    return named


def mention_links(documents: Iterable[Document], titles: TitleIndex) -> MentionLinks:
    """The links of these documents; documents that are only in `titles` have no out-links."""
    return _join_links(titles, _document_mentions(documents, titles))


def mention_links_in_blocks(
    documents: Iterable[Document], titles: Sequence[tuple[DocId, str]], run: JobRunner
) -> MentionLinks:
    """The same in blocks, wherever `run` runs them; `titles` are those of the index."""
    key = hashlib.sha256(json.dumps(titles).encode()).hexdigest()
    job = Job("finding links", _block_mentions, titles, TitleIndex, key=key)
    blocks = split_into_blocks(documents, BLOCK_DOCUMENTS, chars=lambda one: len(one.text))
    return _join_links(TitleIndex(titles), chain.from_iterable(run(job, blocks)))


# The position of a document, the titles it names (in text order; a doubtful one as ~n), those it
# uses as common words, and those with a capital. A list, because blocks are sent as JSON.
_Mentions = list[Any]


def _block_mentions(documents: Sequence[Document], titles: TitleIndex) -> list[_Mentions]:
    return list(_document_mentions(documents, titles))


def _document_mentions(documents: Iterable[Document], titles: TitleIndex) -> Iterator[_Mentions]:
    documents, copies = tee(documents)
    found = titles.mentions(document.text for document in copies)
    for document, text in zip(documents, found):
        source = titles.position.get(document.doc_id)
        if source is None:
            raise InputError(
                f"document {document.doc_id!r} is not in the title index",
                hint="build it from the same documents",
            )
        own = titles.title_number(source)
        sure = {match.phrase for match in text.matches if match.sure}
        named = dict.fromkeys(match.phrase for match in text.matches if match.phrase != own)
        marked = [one if one in sure else ~one for one in named]
        yield [source, marked, sorted(text.common), sorted(text.capital)]


def _join_links(titles: TitleIndex, found: Iterable[_Mentions]) -> MentionLinks:
    ids, use = titles.ids, WordUse()
    sources, named, done = array("i"), array("i"), bytearray(len(ids))
    for source, mentioned, common, capital in found:
        if done[source]:
            raise duplicate_id(ids[source])
        done[source] = True
        use.add(common, capital)
        named.extend(mentioned)
        sources.extend([source] * len(mentioned))
    common_titles = use.common_phrases()
    starts, targets = array("i"), array("i")
    for source, title in zip(sources, named):
        if title >= 0 or ~title not in common_titles:
            to = titles.documents(title if title >= 0 else ~title)
            targets.extend(to)
            starts.extend([source] * len(to))
    groups = _group(np.asarray(starts, dtype=np.int32), len(ids))
    return MentionLinks(ids, groups.starts, np.asarray(targets, dtype=np.int32)[groups.values])


def _group(groups: npt.NDArray[np.int32], count: int) -> RaggedRows:
    """The positions of each group's members, in order. -1 means no group."""
    members = np.argsort(groups, kind="stable")
    members = members[np.searchsorted(groups[members], 0) :]
    return RaggedRows.from_sizes(np.bincount(groups[members], minlength=count), members)


@dataclass(frozen=True)
class MentionLinks:
    """Document i names targets[starts[i]:starts[i + 1]], in text order."""

    ids: tuple[DocId, ...]
    starts: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.targets)

    def out(self, doc_ids: Sequence[DocId]) -> list[tuple[DocId, ...]]:
        """For each document, those that it names; an unknown one names nothing."""
        return self._follow(doc_ids, RaggedRows(self.starts, self.targets))

    def into(self, doc_ids: Sequence[DocId]) -> list[tuple[DocId, ...]]:
        """For each document, those that name it, in document order."""
        return self._follow(doc_ids, self._sources)

    @cached_property
    def position(self) -> dict[DocId, int]:
        return {doc_id: at for at, doc_id in enumerate(self.ids)}

    @cached_property
    def _sources(self) -> RaggedRows:
        return RaggedRows(self.starts, self.targets).inverted(len(self.ids))

    def _follow(self, doc_ids: Sequence[DocId], links: RaggedRows) -> list[tuple[DocId, ...]]:
        positions = [self.position.get(doc_id) for doc_id in doc_ids]
        return [
            () if at is None else tuple(self.ids[other] for other in links.row(at).tolist())
            for at in positions
        ]

    def save(self, path: Path) -> None:
        """Write the links as arrays into an artefact folder."""
        with new_artefact(Path(path), kind=_KIND, version=_VERSION) as folder:
            np.save(folder / "starts.npy", self.starts)
            np.save(folder / "targets.npy", self.targets)
            write_texts(folder, "id", self.ids)

    @classmethod
    def load(cls, path: Path) -> MentionLinks:
        """Load links written by `save`; DataError if a file is damaged."""
        path = Path(path)
        open_artefact(path, kind=_KIND, version=_VERSION, rebuild=_REBUILD)
        starts = read_array(path / "starts.npy", hint=_REBUILD)
        targets = read_array(path / "targets.npy", hint=_REBUILD)
        ids = tuple(read_texts(path, "id", hint=_REBUILD))
        try:
            check_row_offsets(starts, targets, below=len(ids))
            if len(starts) != len(ids) + 1:
                raise ValueError("they do not fit together")
        except ValueError as error:
            raise DataError(f"invalid links in {path}: {error}", hint=_REBUILD) from error
        return cls(ids, starts, targets)
