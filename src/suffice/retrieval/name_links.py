"""Other names of a document's subject: what its title and its first words call it.

    aliases("IBM (company)", "International Business Machines (IBM) is ...")  ->  "International Business Machines"

Four rules, each checked against the document's own words, so that an alias is never invented: the part of a title before a
comma ("Springfield, Illinois"), the names in front of the first verb that share a word with the title ("Robert Zimmerman (born
...), known as Bob Dylan"), what stands behind "known as", and initials that the text itself uses ("USA").
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import tee
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError
from suffice.lexicon import FUNCTION_WORDS
from suffice.retrieval.corpus import RaggedRows
from suffice.retrieval.phrase_matcher import PhraseMatcher
from suffice.storage import new_artefact, open_artefact
from suffice.storage.artefacts import check_row_offsets, read_array, read_texts, write_texts
from suffice.text import date_mentions, names, title_key, title_words, tokens
from suffice.types import DocId, Document

__all__ = [
    "ALIASES",
    "MENTIONS",
    "NameLinks",
    "aliases",
    "initials",
    "name_links",
    "stem",
]


ALIASES = 8  # of a document at most: a text that opens with a list of names must not claim them all
LEAD = 300  # letters at the beginning of a text that can introduce its subject

_VERB = re.compile(r"\s(?:is|was|are|were|has|had|refers)\s")
_KNOWN_AS = re.compile(
    r"\b(?:known(?:\s\w+){0,2}\s+as|called|nicknamed|abbreviated(?:\s\w+){0,2}\s+as|born|née|formerly|officially|or)\s+(?:the\s+)?[\"“']?",
    re.IGNORECASE,
)
_ACRONYM = re.compile(r"\b[A-Z](?:\.?[A-Z]){1,7}\b\.?")


def aliases(title: str, text: str) -> list[str]:
    """Title keys that the document's subject also goes by, without the title's own; at most ALIASES, likeliest first."""
    own = title_key(title)
    found: dict[str, None] = {}
    if "," in title and (head := title_key(title.partition(",")[0])):
        found.setdefault(head)
    lead = _lead(text)
    content = {word for word in own.split() if word not in FUNCTION_WORDS and len(word) > 2}
    for name in names(lead):
        key = title_key(name)
        # "Richard Nixon" is a part of "Second inauguration of Richard Nixon", not another name of it.
        if (
            content & set(key.split())
            and " " in key
            and (f" {key} " not in f" {own} " or own == f"the {key}")
        ):
            found.setdefault(key)
    for match in _KNOWN_AS.finditer(lead):
        after = names(lead[match.end() : match.end() + 60])
        # One word behind "called" or "born" is too often "American": two are a name.
        named = bool(after) and " " in after[0] and lead.startswith(after[0], match.end())
        if named and not date_mentions(lead[match.end() : match.end() + 20]):
            found.setdefault(title_key(after[0]))
    short = initials(title)
    for match in _ACRONYM.finditer(text[: 4 * LEAD] if short else lead):
        letters = match.group().replace(".", "")
        if len(letters) > 2 and letters.casefold() in (
            short,
            initials(lead[: match.start()][-80:], last=len(letters)),
        ):
            found.setdefault(letters.casefold())
    # "Michael J" is a name that a full stop cut off.
    return [key for key in found if key not in ("", own) and len(key.split()[-1]) > 1][:ALIASES]


def initials(name: str, *, last: int | None = None) -> str:
    """The first letters of a name's capitalised words: "United States of America" gives "usa". Below two letters: "".

    With `last`, of so many capitalised words at its end.
    """
    capitals = [word[0] for word in title_words(name) if word[0].isupper()]
    chosen = capitals[-last:] if last else capitals
    return "".join(chosen).casefold() if len(chosen) > 1 else ""


def _lead(text: str) -> str:
    """What stands in front of the first verb: the subject with all its names; a text that opens without one names none."""
    verb = _VERB.search(text[:LEAD])
    return text[: verb.start()] if verb else ""


# --- name_links: Name links: two documents are linked by a name that one bears and the other mentions, or that both mention.

MENTIONS = 256  # names of a document that are kept: a page that lists 100,000 others is no bridge to any of them
WORDS = 2_000_000  # stems that are counted; beyond, those seen once are forgotten

_KIND, _VERSION = "name-links", 1
_REBUILD = "build the library again: suffice build"
_WHOLE = ("counts", "hashes", "letters")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NameLinks:
    """Which names each document bears (its title first) and mentions (in the order of the text), as numbers of names."""

    ids: tuple[DocId, ...]
    borne: RaggedRows
    mentioned: RaggedRows
    hashes: npt.NDArray[np.uint64]  # of each name, rising: a name's number is its place here
    keys: tuple[str, ...]  # what documents are called: title keys and aliases
    stems: dict[str, int]  # in how many documents each word stem stands
    letters: float  # mean length of a text

    @cached_property
    def position(self) -> dict[DocId, int]:
        return {doc_id: at for at, doc_id in enumerate(self.ids)}

    @cached_property
    def bearers(self) -> RaggedRows:
        return self.borne.inverted(len(self.hashes))

    @cached_property
    def mentioners(self) -> RaggedRows:
        return self.mentioned.inverted(len(self.hashes))

    @cached_property
    def bearing(self) -> Ints:
        """How many documents bear each name."""
        return np.diff(self.bearers.starts)

    @cached_property
    def rarity(self) -> npt.NDArray[np.float64]:
        """From 1 for a name that two documents mention down to 0 for one that all do."""
        counts = np.maximum(np.diff(self.mentioners.starts) + np.minimum(self.bearing, 1), 1)
        size = max(len(self.ids), 2)
        return np.asarray(
            np.clip(np.log(size / counts) / np.log(size / 2 if size > 4 else size), 0, 1)
        )

    @cached_property
    def _phrases(self) -> PhraseMatcher:
        return PhraseMatcher(self.keys)

    @cached_property
    def _of_key(self) -> Ints:
        return self.numbers(self.keys)

    def numbers(self, keys: Iterable[str]) -> Ints:
        """The number of each name, -1 where no document bears it and fewer than two mention it."""
        wanted = np.array([_hash(key) for key in keys], dtype=np.uint64)
        if not len(self.hashes):
            return np.full(len(wanted), -1, np.int64)
        at = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        return np.where(self.hashes[at] == wanted, at, -1)

    def asked(self, questions: Sequence[str]) -> list[Ints]:
        """The names that stand in each question, each once, in order: borne ones as they match longest, then the others."""
        found = []
        for question, reading in zip(questions, self._phrases.read(map(_with_capitals, questions))):
            borne = (
                self._of_key[[match.phrase for match in reading.matches]]
                if reading.matches
                else np.zeros(0, np.int64)
            )
            others = self.numbers(map(title_key, names(question)))
            both = np.concatenate([borne, others])
            _, first = np.unique(both, return_index=True)
            kept = both[np.sort(first)]
            found.append(kept[kept >= 0])
        return found

    def save(self, path: Path) -> None:
        """Write them as arrays into an artefact folder."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "borne_starts": self.borne.starts,
            "borne": self.borne.values.astype(np.int32),
            "mentioned_starts": self.mentioned.starts,
            "mentioned": self.mentioned.values.astype(np.int32),
            "hashes": self.hashes,
            "counts": np.fromiter(self.stems.values(), np.int64, len(self.stems)),
            "letters": np.array([self.letters]),
        }
        with new_artefact(Path(path), kind=_KIND, version=_VERSION) as folder:
            for name, values in arrays.items():
                np.save(folder / f"{name}.npy", values)
            for name, texts in (("ids", self.ids), ("keys", self.keys), ("stems", self.stems)):
                write_texts(folder, name, texts)

    @classmethod
    def load(cls, path: Path) -> NameLinks:
        """Links that `save` wrote; DataError where a file is damaged."""
        path = Path(path)
        open_artefact(path, kind=_KIND, version=_VERSION, rebuild=_REBUILD)

        def read(name: str) -> Any:
            return read_array(path / f"{name}.npy", hint=_REBUILD)

        def texts(name: str) -> list[str]:
            return read_texts(path, name, hint=_REBUILD)

        ids, keys, stems, counts, hashes, letters = (
            texts("ids"),
            texts("keys"),
            texts("stems"),
            *map(read, _WHOLE),
        )
        rows = [RaggedRows(read(f"{name}_starts"), read(name)) for name in ("borne", "mentioned")]
        try:
            for one in rows:
                check_row_offsets(one.starts, one.values, below=len(hashes))
            check_row_offsets(np.zeros(1, np.int64), counts[:0])
            if {len(one) for one in rows} != {len(ids)} or (counts.shape, letters.shape) != (
                (len(stems),),
                (1,),
            ):
                raise ValueError("they do not fit together")
            if hashes.dtype != np.uint64 or hashes.ndim != 1 or not np.isfinite(float(letters[0])):
                raise ValueError("hashes and letters are numbers of another kind")
        except (ValueError, TypeError) as error:
            raise DataError(
                f"the arrays in {path} cannot be name links: {error}", hint=_REBUILD
            ) from error
        borne, mentioned = (RaggedRows(one.starts, one.values.astype(np.int64)) for one in rows)
        return cls(
            tuple(ids),
            borne,
            mentioned,
            hashes,
            tuple(keys),
            dict(zip(stems, counts.tolist())),
            float(letters[0]),
        )

    def rows(self, doc_ids: Sequence[DocId]) -> list[int]:
        """Where each document stands; -1 for one that came after the links were made."""
        return [self.position.get(doc_id, -1) for doc_id in doc_ids]


def name_links(documents: Callable[[], Iterable[Document]]) -> NameLinks:
    """Read a corpus twice: first what its documents are called, then what they mention. `documents` gives them anew."""
    ids: dict[DocId, int] = {}
    keys: dict[str, int] = {}
    borne, borne_sizes = array("q"), array("i")
    for document in documents():
        ids.setdefault(document.doc_id, len(ids))
        if len(ids) == len(borne_sizes):
            raise InputError(
                f"document id {document.doc_id!r} occurs twice",
                hint="give each document its own id",
            )
        own = [
            key
            for key in (title_key(document.title), *aliases(document.title, document.text))
            if key
        ]
        borne_sizes.append(len(own))
        borne.extend([keys.setdefault(key, len(keys)) for key in own])
    phrases, of_key = PhraseMatcher(keys), np.array([_hash(key) for key in keys], dtype=np.uint64)
    counted = _Stems()
    letters, said, said_sizes = 0, array("Q"), array("i")
    seen, texts = tee(documents())
    for document, reading in zip(seen, phrases.read(document.text for document in texts)):
        letters += len(document.text)
        counted.add(f"{document.title} {document.text}")
        named = (
            of_key[[match.phrase for match in reading.matches]].tolist() if reading.matches else []
        )
        inside = (
            *map(title_key, document.entities),
            *_own_names(f"{document.title}. {document.text}"),
        )
        distinct = list(dict.fromkeys([*named, *map(_hash, filter(None, inside))]))[:MENTIONS]
        said_sizes.append(len(distinct))
        said.extend(distinct)
    if len(said_sizes) != len(ids):
        raise InputError(
            f"{len(ids)} documents at first, {len(said_sizes)} the second time",
            hint="give the same ones twice",
        )
    borne_hashes = of_key[np.asarray(borne, dtype=np.int64)]
    return _assemble(
        ids,
        keys,
        (borne_hashes, borne_sizes),
        (np.asarray(said, dtype=np.uint64), said_sizes),
        counted,
        letters,
    )


def _assemble(
    ids: dict[DocId, int],
    keys: dict[str, int],
    borne: tuple[Any, Any],
    said: tuple[Any, Any],
    counted: _Stems,
    letters: int,
) -> NameLinks:
    borne_hashes, said_hashes = borne[0], said[0]
    distinct, counts = np.unique(said_hashes, return_counts=True)
    hashes = np.union1d(borne_hashes, distinct[counts > 1])
    rows = np.repeat(np.arange(len(ids)), np.asarray(said[1], dtype=np.int64))
    kept = np.isin(said_hashes, hashes)
    mentioned = RaggedRows(
        _starts(np.bincount(rows[kept], minlength=len(ids))),
        np.searchsorted(hashes, said_hashes[kept]),
    )
    bearing = RaggedRows(
        _starts(np.asarray(borne[1], dtype=np.int64)), np.searchsorted(hashes, borne_hashes)
    )
    return NameLinks(
        tuple(ids),
        bearing,
        mentioned,
        hashes,
        tuple(keys),
        counted.counts,
        letters / max(len(ids), 1),
    )


def _own_names(text: str) -> list[str]:
    """Title keys of the capitalised names of a text. A surname behind the full name means the full name, so it is left out."""
    seen: set[str] = set()
    kept = []
    for name in names(text):
        key = title_key(name)
        words = key.split()
        if not words or (len(words) == 1 and (words[0] in seen or len(key) < 3)):
            continue
        seen.update(words[-1:])
        kept.append(key)
    return kept


class _Stems:
    """In how many documents each stem stands, in bounded memory."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, text: str) -> None:
        counts = self.counts
        for one in dict.fromkeys(
            map(stem, tokens(text))
        ):  # not a set: its order differs from process to process
            counts[one] = counts.get(one, 0) + 1
        if len(counts) > WORDS:
            self.counts = {one: count for one, count in counts.items() if count > 1}


def stem(token: str) -> str:
    """What words of one family begin with: "performer", "performed" -> "perform"; short words and numbers stay whole."""
    return token[: max(5, len(token) - 2)] if len(token) > 5 and token.isalpha() else token


def _with_capitals(question: str) -> str:
    """A question typed all in lower or all in upper case is read as if every word had a capital."""
    return question.title() if question.islower() or question.isupper() else question


def _hash(key: str) -> int:
    return int.from_bytes(
        hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
    )


def _starts(sizes: npt.NDArray[Any]) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
