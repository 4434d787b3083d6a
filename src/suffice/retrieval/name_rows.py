"""What each document contributes to name links, stored so that a write costs what it changes.

A row is found by the digest of what it was made from: a document's text, title and entities. See
`suffice.retrieval.name_links.name_rows` for how rows are made and reused.
"""

from __future__ import annotations

import hashlib
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, NotReadyError
from suffice.retrieval.corpus import Ints, RaggedRows
from suffice.storage import new_artefact, open_artefact, package_versions
from suffice.storage.artefacts import check_row_offsets, read_array, read_texts, write_texts
from suffice.types import DocId, Document

# What a row contains, and the type code of its numbers. Keys and stems are numbered in the order of
# their first appearance.
COLUMNS = {
    "borne": "i",  # keys of the document's own names, its title or subject first
    "mentioned": "Q",  # hashes of the names that it mentions, in text order
    "sure": "B",  # of each mention, whether it is a name regardless of the corpus
    "common": "i",  # keys that the text uses as common words
    "capital": "i",  # keys that it capitalizes inside a sentence
    "stems": "i",  # stems of its words
    "plain_stems": "i",  # further stems, of its words without accents
}
NUMBERS_OF = {
    "borne": "keys", "common": "keys", "capital": "keys", "stems": "stems", "plain_stems": "stems"
}  # fmt: skip
BLOCK = 1_000_000  # numbers that are handled at once
BORNE_BY_NONE, SMALL, LARGE = range(3)  # standing of a key: small if never written with a capital
DIGEST_BYTES = 16

_KIND, _VERSION = "name-rows", 1
_REBUILD = "build the library again: suffice build"

Bytes = npt.NDArray[np.uint8]


def content_digest(document: Document) -> bytes:
    """The digest of all that a document's row depends on."""
    whole = f"{(document.title, document.entities)!r}{document.text}"
    encoded = whole.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=DIGEST_BYTES).digest()


class RowWriter:
    """Collects rows of some columns."""

    def __init__(self, *columns: str) -> None:
        self._sizes = {name: array("q") for name in columns}
        self._values = {name: array(COLUMNS[name]) for name in columns}

    def add(self, **row: Iterable[int]) -> None:
        """Add a row: the numbers of each column."""
        for name, numbers in row.items():
            values = self._values[name]
            before = len(values)
            values.extend(numbers)
            self._sizes[name].append(len(values) - before)

    def columns(self) -> dict[str, RaggedRows]:
        return {
            name: RaggedRows.from_sizes(np.asarray(self._sizes[name]), np.asarray(values))
            for name, values in self._values.items()
        }


@dataclass(frozen=True)
class NameRows:
    """The rows of documents in order."""

    ids: tuple[DocId, ...]
    digests: Bytes  # (documents, 16)
    letters: Ints  # in each text
    small: Bytes  # whether the first of a document's own names has no capital
    columns: dict[str, RaggedRows]
    keys: tuple[str, ...]
    hashes: npt.NDArray[np.uint64]  # of each key
    stems: tuple[str, ...]

    @classmethod
    def empty(cls) -> NameRows:
        none, digests = np.zeros(0, np.int64), np.zeros((0, DIGEST_BYTES), np.uint8)
        columns = RowWriter(*COLUMNS).columns()
        return cls((), digests, none, digests[:, 0], columns, (), none.astype(np.uint64), ())

    def position(self) -> dict[bytes, int]:
        """The row of each digest."""
        whole = self.digests.tobytes()
        size = DIGEST_BYTES
        return {whole[at * size : (at + 1) * size]: at for at in range(len(self.ids))}

    def standing(self, count: int) -> Bytes:
        """Of each of the first `count` keys: BORNE_BY_NONE, SMALL or LARGE."""
        borne, standing = self.columns["borne"], np.full(count, BORNE_BY_NONE, np.uint8)
        is_small = np.zeros(len(borne.values), bool)
        is_small[borne.starts[:-1][self.small > 0]] = True
        standing[borne.values[is_small]] = SMALL
        standing[borne.values[~is_small]] = LARGE
        return standing

    def containing(self, keys: Iterable[str], stem: Callable[[str], str]) -> Ints:
        """The rows of all texts that contain one of the keys, and of some that do not."""
        columns = [self.columns[name] for name in ("stems", "plain_stems")]
        number = {one: at for at, one in enumerate(self.stems)}
        texts = np.sum([count_values(one.values, len(number)) for one in columns], axis=0)
        wanted: dict[int, list[set[int]]] = {}  # the stems of keys, by the rarest of them
        for key in keys if number else ():
            stems = {number.get(stem(word), -1) for word in key.split()}
            if stems and -1 not in stems:
                wanted.setdefault(min(stems, key=texts.__getitem__), []).append(stems)
        is_rarest = np.zeros(len(number), bool)
        is_rarest[list(wanted)] = True
        places = [(one, np.flatnonzero(is_rarest[one.values])) for one in columns]
        rows = [np.searchsorted(one.starts, here, side="right") - 1 for one, here in places]
        found = []
        for row in np.unique(np.concatenate(rows)).tolist():
            here = set(np.concatenate([one.row(row) for one in columns]).tolist())
            if any(stems <= here for rarest in here & wanted.keys() for stems in wanted[rarest]):
                found.append(row)
        return np.array(found, np.int64)

    def renumbered(self) -> NameRows:
        """The same with keys and stems in the order of their first appearance, unused ones left
        out.
        """
        columns = self.columns
        stemmed = [columns[name].values for name in ("stems", "plain_stems")]
        keys, key_numbers = _by_first_appearance([columns["borne"].values], len(self.keys))
        stems, stem_numbers = _by_first_appearance(stemmed, len(self.stems))
        numbers = {"keys": key_numbers, "stems": stem_numbers}
        return replace(
            self,
            columns=columns
            | {
                name: RaggedRows(columns[name].starts, numbers[what][columns[name].values])
                for name, what in NUMBERS_OF.items()
            },
            keys=tuple(self.keys[at] for at in keys.tolist()),
            hashes=self.hashes[keys],
            stems=tuple(self.stems[at] for at in stems.tolist()),
        )

    def save(self, path: Path) -> None:
        """Write the rows as arrays into an artefact folder."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "digests": self.digests,
            "letters": self.letters,
            "small": self.small,
            "hashes": self.hashes,
            "sizes": np.array([np.diff(self.columns[name].starts) for name in COLUMNS]),
            **{name: self.columns[name].values for name in COLUMNS},
        }
        settings = {"unicode": unicodedata.unidata_version}
        with new_artefact(Path(path), kind=_KIND, version=_VERSION, settings=settings) as folder:
            for name, values in arrays.items():
                np.save(folder / f"{name}.npy", values)
            for name in ("ids", "keys", "stems"):
                write_texts(folder, f"text_{name}", getattr(self, name))

    @classmethod
    def load(cls, path: Path) -> NameRows:
        """Load rows written by `save`; an error if they are damaged or made by other rules."""
        path = Path(path)
        made = open_artefact(path, kind=_KIND, version=_VERSION, rebuild=_REBUILD)
        rules = unicodedata.unidata_version, package_versions().get("suffice")
        if (made.settings.get("unicode"), made.packages.get("suffice")) != rules:
            raise NotReadyError(f"{path} was made by another version of suffice", hint=_REBUILD)

        def read(name: str, kind: str) -> npt.NDArray[Any]:
            array_read = read_array(path / f"{name}.npy", hint=_REBUILD)
            if array_read.dtype != np.dtype(kind):
                raise DataError(f"{path / name}.npy has another type of numbers", hint=_REBUILD)
            return array_read

        texts = {
            one: tuple(read_texts(path, f"text_{one}", hint=_REBUILD))
            for one in ("ids", "keys", "stems")
        }
        digests, small = read("digests", "B"), read("small", "B")
        letters, hashes, sizes = read("letters", "q"), read("hashes", "Q"), read("sizes", "q")
        values = {name: read(name, kind) for name, kind in COLUMNS.items()}
        count = len(texts["ids"])
        try:
            shapes = (digests.shape, small.shape, letters.shape, hashes.shape, sizes.shape)
            expected = ((count, DIGEST_BYTES), (count,), (count,), (len(texts["keys"]),))
            if shapes != (*expected, (len(COLUMNS), count)):
                raise ValueError("they do not fit together")
            columns = {
                name: RaggedRows.from_sizes(size, values[name])
                for name, size in zip(COLUMNS, sizes)
            }
            for name, column in columns.items():
                below = len(texts[NUMBERS_OF[name]]) if name in NUMBERS_OF else None
                check_row_offsets(column.starts, column.values, below=below)
            mentioned, sure, borne = (columns[one] for one in ("mentioned", "sure", "borne"))
            if (mentioned.starts != sure.starts).any() or (small > np.diff(borne.starts)).any():
                raise ValueError("they do not fit together")
            if any(len(set(texts[one])) < len(texts[one]) for one in ("keys", "stems")):
                raise ValueError("a key or a stem is there twice")
            if len(np.unique(borne.values)) < len(texts["keys"]):
                raise ValueError("nobody bears one of the keys")
        except ValueError as error:
            raise DataError(f"invalid name rows in {path}: {error}", hint=_REBUILD) from error
        return cls(
            digests=digests, letters=letters, small=small, columns=columns, hashes=hashes, **texts
        )


def count_values(values: npt.NDArray[Any], count: int) -> Ints:
    """How often each number below `count` occurs, in bounded memory."""
    counts = np.zeros(count, np.int64)
    for start in range(0, len(values), BLOCK):
        counts += np.bincount(values[start : start + BLOCK], minlength=count)
    return counts


def _by_first_appearance(
    parts: Sequence[npt.NDArray[Any]], count: int
) -> tuple[Ints, npt.NDArray[np.int32]]:
    """The different numbers below `count` in the order of their first appearance, and the position
    of each in that order, -1 if it does not appear.
    """
    total = sum(map(len, parts))
    first, end = np.full(count, total), total
    blocks = [part[at : at + BLOCK] for part in parts for at in range(0, len(part), BLOCK)]
    for block in reversed(blocks):  # of equal indexes, the last is assigned
        first[block[::-1]] = np.arange(end - 1, end - len(block) - 1, -1)
        end -= len(block)
    seen = np.flatnonzero(first < total)
    order = seen[np.argsort(first[seen])]
    numbers = np.full(count, -1, np.int32)
    numbers[order] = np.arange(len(order))
    return order, numbers
