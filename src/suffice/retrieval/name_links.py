"""Name links: two documents share a name that one bears and the other mentions, or both mention.

A document *bears* the names of its subject: its title and aliases or, without a title, what its
text opens with. It *mentions* every name in its text: titles and aliases of others, its entities,
capitalised names that no document bears, ids and codes. Links are built in two passes, in time
linear in the text. After a write, `name_rows` reads only the texts whose contribution changed.

A name is identified by an 8-byte hash of its title key. Names that only one document mentions and
none bears link nothing and are dropped. So are doubtful mentions of names that are common words in
this corpus: see `suffice.retrieval.phrase_matcher`.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, count, islice, tee, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError
from suffice.lexicon import FUNCTION_WORDS
from suffice.retrieval.corpus import RaggedRows, duplicate_id
from suffice.retrieval.name_rows import (
    COLUMNS,
    DIGEST_BYTES,
    SMALL,
    NameRows,
    RowWriter,
    content_digest,
    count_values,
)
from suffice.retrieval.phrase_matcher import PhraseMatcher, TextMatches, is_small, rare_limit
from suffice.storage import new_artefact, open_artefact
from suffice.storage.artefacts import check_row_offsets, read_array, read_texts, write_texts
from suffice.text import (
    date_mentions,
    names,
    stem,
    title_key,
    title_words,
    tokens,
    without_accents,
)
from suffice.types import DocId, Document

MAX_ALIASES = 8  # per document: a text that opens with a list of names must not claim all of them
MAX_MENTIONS = 256  # per document: a page that lists 100,000 others is not a bridge to any of them
MAX_STEMS = 2_000_000  # with more, those of one document alone are not counted
FEW = 0.02  # of the documents are fetched by their ids; more are read in order
LEAD_CHARS = 300  # at the start of a text, where its subject is introduced
LIFE_CHARS = 160  # after a name, where a person's dates may follow
WORK_CHARS = 80  # after "is a", where the kind of a work is named
MAX_SUBJECT_WORDS = 10
MAX_SMALL = 3  # lower-case words in a subject: "Waterloo Bay massacre", "refund window"

_KIND, _VERSION = "name-links", 4
_REBUILD = "build the library again: suffice build"
_VERB = re.compile(r"\s(?:is|was|are|were|has|had|refers)\s")
_ARTICLE = re.compile(r"^(?:The|A|An)\s+")
_QUOTED = re.compile(r"[\"“«]\s*([^\"“”«»\n]{2,80}?)\s*[\"”»]")
# What ends the subject of a first sentence.
_LEAD_END = re.compile(
    r"\s(?:is|was|are|were|has|had|refers|means|includes?|consists?|took|became|began|born|or)\s"
    r"|\s*[(;:\n\[]|\s(?:--|–|—)\s|(?<=[a-z]{3})[.!?](?:\s|$)"
)
_DEFINES = re.compile(r"\s(?:is|was|are|were)\s(?:an?|the|one)\s")
_OPENERS = frozenset(
    "after as at before by during for from he her his if in it its on our she since some that their"
    " there these they this those until we when where while with you your".split()
)  # of a sentence, and seldom of a title
_INSIDE = frozenset(
    "a al an and at bin da de del della den der di du for from ibn in la le of on the to v van von"
    " with".split()
)
# The lookahead is bounded, because one may begin after each colon of "a:a:a:…".
_CODE = re.compile(
    r"(?<![\w.,/-])(?=[a-z0-9])"
    r"(?:(?=[\w./:-]{0,100}[a-z])(?=[\w./:-]{0,100}\d)[a-z0-9]\w*(?:[./:-]\w+)*"
    r"|\d+(?:[.-]\d+){2,3}|\d{4,12})(?![\w/-]|[.,]\d)"
)
_NO_CODE = re.compile(r"(?:1\d|20)\d\d(?:-\d\d)?|\d+-?[a-z]+")
_SUFFIXES = frozenset("jr jr. sr sr. ii iii iv".split())
_HONORIFICS = frozenset(
    "admiral archduke archduchess captain colonel count countess dame doctor dr dr. duchess duke"
    " field general lady lord major marshal mr mr. mrs mrs. ms ms. pope prince princess prof prof."
    " professor saint sir sister st st.".split()
)
# Short forms of given names: one text gives the full name, another the short one.
_SHORT_NAMES = dict(
    one.split(": ")
    for one in (
        "Albert: Al|Alexander: Alex|Alfred: Alf Fred|Andrew: Andy|Anthony: Tony|Arthur: Art"
        "|Benjamin: Ben|Bernard: Bernie|Catherine: Cathy Kate|Charles: Charlie Chuck"
        "|Christine: Chris|Christopher: Chris|Daniel: Dan Danny|David: Dave|Deborah: Debbie"
        "|Donald: Don|Douglas: Doug|Edward: Ed Eddie|Elizabeth: Liz Betty|Eugene: Gene"
        "|Francis: Frank|Frederick: Fred|Gerald: Gerry Jerry|Gregory: Greg|Harold: Harry Hal"
        "|Henry: Harry Hank|Jacob: Jake|James: Jim Jimmy|Jeffrey: Jeff|Jennifer: Jen"
        "|John: Jack Johnny|Jonathan: Jon|Joseph: Joe|Joshua: Josh|Katherine: Kate Kathy"
        "|Kenneth: Ken|Lawrence: Larry|Leonard: Len Leo|Louis: Lou|Margaret: Maggie Peggy"
        "|Matthew: Matt|Michael: Mike Mick|Nathaniel: Nat|Nicholas: Nick|Patricia: Pat"
        "|Patrick: Pat|Peter: Pete|Philip: Phil|Raymond: Ray|Rebecca: Becky|Richard: Dick Rick"
        "|Robert: Bob Rob|Ronald: Ron|Samuel: Sam|Stanley: Stan|Stephen: Steve|Steven: Steve"
        "|Susan: Sue|Theodore: Ted|Thomas: Tom Tommy|Timothy: Tim|Victoria: Vicky"
        "|Vincent: Vince|Walter: Walt|William: Bill Billy"
    ).split("|")
)
_AFTER_NAME = re.compile(r"(?:,\s*[A-Z]{2,6})+$")  # "KT, PRS"
_FIRM = re.compile(
    r",?\s(?:Association )?(?:Football Club|[FA]\.?F?C\.?|plc|Inc\.?|Ltd\.?|Limited|LLC|GmbH)$"
)
# "William II (1196 – 1231) was the lord of Dampierre": other texts say William II of Dampierre.
_RULES = re.compile(
    r"\b(?:was|is|as)\s(?:the\s|an?\s)?((?:(?i:lord|count|countess|duke|duchess|king|queen|emperor"
    r"|prince|earl|margrave|landgrave|bishop|archbishop))\sof\s(?:the\s)?[A-Z][\w-]+)"
)
_WORK = re.compile(
    r"\b(?:film|movie|song|single|album|novel|book|opera|play|musical|series|sitcom|episode|comic"
    r"|magazine|newspaper|painting|poem|game|soundtrack|documentary|drama|comedy)\b"
)
# A title, perhaps other titles in parentheses, and what it is: "On Body and Soul is a 2017 film".
_TITLE = re.compile(
    r"([^.;,()\n\"“”]{2,80}?)\s*(?:\([^()]{0,200}\)\s*)?,?\s(?:is|was)\s(?:an?|the)\s"
)
_ALSO = re.compile(
    r"(?:\b(?:known|released|credited|distributed|translated|titled|billed)\b"
    r"(?:\s(?!for\b)[a-z]+){0,5}?\s(?:as|name)"
    r"|\b(?:literally|aka|a\.k\.a\.|lit\.|English(?:\s\w+){0,2}:|International title:))"
    r"\s*(?:just\s|simply\s|the\s)?[\"“']?\s*"
)
_SENTENCE_END = re.compile(r"(?<=[a-z)]{2})[.!?](?:\s|$)")
_ALSO_NAME = re.compile(r"[^\W\d_a-z][^\s,;:()\"“”]*(?:\s[^\s,;:()\"“”]+){0,8}")
_NICKNAME = re.compile(r"\s*[\"“]\s*([^\"“”()\s][^\"“”()]{1,30})[\"”]\s*")
_LIFE = re.compile(r"[^(]{0,40}\([^)]*(?:\bborn\b|\d{4})|[\s,]*born\b")
_KNOWN_AS = re.compile(
    r"\b(?:known(?:\s\w+){0,2}\s+as|called|nicknamed|abbreviated(?:\s\w+){0,2}\s+as|born|née|"
    r"formerly|officially|or)\s+(?:the\s+)?[\"“']?",
    re.IGNORECASE,
)
_ACRONYM = re.compile(r"\b[A-Z](?:\.?[A-Z]){1,7}\b\.?")

Ints = npt.NDArray[np.int64]


def aliases(title: str, text: str) -> list[str]:
    """Title keys of other names of a document's subject, likeliest first, at most MAX_ALIASES.

        aliases("IBM (company)", "International Business Machines (IBM) is ...")

    Four rules, each checked against the document's own words: the part of a title before a comma
    ("Springfield, Illinois"), names before the first verb that share a word with the title, names
    after "known as", and initials that the text itself uses ("USA").
    """
    own = title_key(title)
    found: dict[str, None] = {}
    if "," in title and (head := title_key(title.partition(",")[0])):
        found.setdefault(head)
    verb = _VERB.search(text[:LEAD_CHARS])
    lead = text[: verb.start()] if verb else ""  # the subject with all its names
    content = {word for word in own.split() if word not in FUNCTION_WORDS and len(word) > 2}
    for name in names(lead):
        key = title_key(name)
        # "Richard Nixon" is a part of "Second inauguration of Richard Nixon", not another name for
        # it.
        part = f" {key} " in f" {own} " and own != f"the {key}"
        if content & set(key.split()) and " " in key and not part:
            found.setdefault(key)
    for match in _KNOWN_AS.finditer(lead):
        after = names(lead[match.end() : match.end() + 60])
        # One word after "called" or "born" is too often "American"; require two.
        named = bool(after) and " " in after[0] and lead.startswith(after[0], match.end())
        if named and not date_mentions(lead[match.end() : match.end() + 20]):
            found.setdefault(title_key(after[0]))
    short = initials(title)
    for match in _ACRONYM.finditer(text[: 4 * LEAD_CHARS] if short else lead):
        letters = match.group().replace(".", "")
        before = initials(lead[: match.start()][-80:], last=len(letters))
        if len(letters) > 2 and letters.casefold() in (short, before):
            found.setdefault(letters.casefold())
    # "Michael J" is a name cut off at a full stop.
    return [one for one in found if one not in ("", own) and len(one.split()[-1]) > 1][:MAX_ALIASES]


def subject(text: str) -> str:
    """The subject of a text without a title: what it opens with and then describes.

        subject("Ada Lovelace (born 1815) was an English countess.")     # Ada Lovelace
        subject("The refund window is 30 days.")                         # refund window

    A name, a quoted title, or a defined term. Empty if the opening has none of these.
    """
    lead = text[:LEAD_CHARS].lstrip(" \t\n,;*#>-").replace("- ", "-")
    if quoted := _QUOTED.match(lead):
        return quoted[1].rstrip(" ,")
    lead = _ARTICLE.sub("", lead)
    if title := _defined_title(lead) or _work_title(lead):
        return title
    end = _LEAD_END.search(lead)
    first, *rest = lead[: end.start() if end else len(lead)].split(",")
    words, whole = _subject_words(first)
    # "Wriothesley Russell, 2nd Duke of Bedford", but not "Ada Lovelace, a countess".
    for part in rest if whole and words else ():
        more, whole_part = _subject_words(part)
        if not whole_part or not all(map(_is_large, more)) or not more:
            break
        words[-1] += ","
        words += more
    closed = whole and end is not None and end[0][0] not in ".!?" and not rest  # a verb follows
    large = [_is_large(one) for one in words]
    smalls = large.count(False)
    if not smalls:
        return " ".join(words) if whole or len(words) > 1 else ""
    if closed and smalls <= MAX_SMALL and (not any(large) or _joins(words, large)):
        return " ".join(words)  # "refund window", "Waterloo Bay massacre", "statue of Admiral Yi"
    if closed and large[-1]:  # "English novelist Charles Dickens"
        return " ".join(words[len(large) - large[::-1].index(False) :])
    name = words[: large.index(False)]  # "Used only in league play" is not one
    return " ".join(name) if len(name) > 1 else ""


def _defined_title(lead: str) -> str:
    """The title of a work that reads like a sentence: "How to Get Away with Murder is a series"."""
    defines = _DEFINES.search(lead)
    words = re.split("[,(]", lead[: defines.start()])[0].split() if defines else []
    if not 1 < len(words) <= MAX_SUBJECT_WORDS:
        return ""
    first = words[0].casefold()
    opens = first in FUNCTION_WORDS and first not in _OPENERS and words[-1][0].isupper()
    return " ".join(words) if opens and all(map(_is_large, words)) else ""


def _work_title(lead: str) -> str:
    """The title of a work as it stands: "On Body and Soul is a 2017 Hungarian drama film"."""
    title = _TITLE.match(lead)
    if title is None or not _WORK.search(lead, title.end(), title.end() + WORK_CHARS):
        return ""
    words = title[1].split()
    bare = words[0].casefold()
    sentence = bare in FUNCTION_WORDS and not (len(words) > 1 and all(map(_is_large, words)))
    return "" if sentence or words[0][0].islower() or len(words) > MAX_SUBJECT_WORDS else title[1]


def _joins(words: Sequence[str], large: Sequence[bool]) -> bool:
    """Whether no small word directly precedes a large one, except a joining word."""
    pairs = zip(large, large[1:], words[1:])
    return all(before or not after or word.casefold() in _INSIDE for before, after, word in pairs)


def _subject_words(text: str) -> tuple[list[str], bool]:
    """The words up to one that cannot be inside a name, and whether none was found."""
    words: list[str] = []
    for word in text.split():
        bare = word.strip(".'’").casefold()
        # "Grace of My Heart": inside a name a capital is enough.
        inside = bool(words) and (bare in _INSIDE or word[0].isupper())
        if (bare in FUNCTION_WORDS and not inside) or len(words) == MAX_SUBJECT_WORDS:
            break
        words.append(word)
    else:
        return words, bool(words) and words[-1].casefold() not in _INSIDE
    while words and words[-1].casefold() in _INSIDE:
        words.pop()
    return words, False


def subject_names(text: str) -> list[str]:
    """The subject of a text, and the ways in which other texts may write its name.

        subject_names('John Kingsley "Joe" Orton (1933 – 1967) was an English playwright.')
        # …, John Kingsley Orton, Joe Orton, John Orton, Kingsley Orton, John K. Orton, J. K. Orton

    Empty if a text has no subject.
    """
    called = subject(text)
    if not called:
        return []
    start = text.find(called) + len(called)
    after = text[start : start + LEAD_CHARS]
    nick = _NICKNAME.search(called)
    bare = _NICKNAME.sub(" ", called).partition(",")[0].split()
    words = [one for one in bare if one.casefold() not in _HONORIFICS | _SUFFIXES]
    person = len(words) > 1 and all(one[0].isupper() or one in _INSIDE for one in words)
    numbered = bool(words) and words[-1].isupper()  # "Philip V"
    found = [called, _AFTER_NAME.sub("", called), _FIRM.sub("", called)]
    found += _other_names(called, after)
    if person and not numbered and (nick or len(words) < len(bare) or _LIFE.match(after)):
        found.append(" ".join(words))
        found += [f"{nick[1].split()[-1]} {words[-1]}"] if nick else []
        found += _ways_to_write(words)
    return list(dict.fromkeys(found))


def _other_names(called: str, after: str) -> Iterator[str]:
    """Other names in what follows a subject: "known as Vangelis", "was the count of Boulogne"."""
    lead = after[: match.start() if (match := _SENTENCE_END.search(after)) else None]
    for also in _ALSO.finditer(lead):
        if name := _ALSO_NAME.match(lead, also.end()):
            words, _ = _subject_words(_ARTICLE.sub("", _VERB.split(name[0] + " ")[0]))
            if words:
                yield " ".join(words)
    if "," not in called and (rules := _RULES.search(lead)):
        yield f"{called}, {rules[1]}"
        yield f"{called} of {rules[1].partition(' of ')[2]}"


def _ways_to_write(words: Sequence[str]) -> Iterator[str]:
    """The ways to write a person's name, likeliest first, from at least two words."""
    *given, last = words
    first, *middle = given
    yield f"{first} {last}"
    for short in _SHORT_NAMES.get(first, "").split():
        yield f"{short} {last}"
    if not middle:
        return
    if len(middle[-1]) > 2 and middle[-1] not in _INSIDE:
        yield f"{middle[-1]} {last}"
    # "Gordon Chan Kar-Seung", "Pablo Emilio Escobar Gaviria"
    if "-" in last or len(middle) > 1:
        yield f"{first} {middle[-1]}"
    initials = [f"{one[0]}." for one in given]
    yield " ".join((first, *initials[1:], last))
    yield " ".join((*initials, last))
    yield " ".join((initials[0], *middle, last))


def _is_large(word: str) -> bool:
    """Whether a word can be part of a name: with a capital, a number, or a joining word."""
    return not word[0].islower() or word.casefold() in _INSIDE


def codes(text: str) -> list[str]:
    """Ids, codes and long numbers in order of first appearance: "x-200", "10.0.0.4", "8443".

    Years and quantities ("7-day", "3pm") are not included, nor are numbers below 1000.
    """
    return list(dict.fromkeys(one for one in _CODE.findall(text) if not _NO_CODE.fullmatch(one)))


def initials(name: str, *, last: int | None = None) -> str:
    """The initials of a name's (last) capitalised words, like "usa"; "" below two letters."""
    capitals = [word[0] for word in title_words(name) if word[0].isupper()]
    chosen = capitals[-last:] if last else capitals
    return "".join(chosen).casefold() if len(chosen) > 1 else ""


@dataclass(frozen=True)
class NameLinks:
    """The names that each document bears (its title first) and mentions (in text order)."""

    ids: tuple[DocId, ...]
    borne: RaggedRows
    mentioned: RaggedRows
    hashes: npt.NDArray[np.uint64]  # of each name, sorted: a name's number is its position here
    keys: tuple[str, ...]  # title keys and aliases of all documents
    small: Ints  # keys of names that are never capitalized
    common: Ints  # the keys that are common words in this corpus
    stems: dict[str, int]  # how many documents contain each word stem
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
        """From 1 for a name that two documents mention to 0 for one that all mention."""
        counts = np.maximum(np.diff(self.mentioners.starts) + np.minimum(self.bearing, 1), 1)
        size = max(len(self.ids), 2)
        rarity = np.log(size / counts) / np.log(size / 2 if size > 4 else size)
        return np.asarray(np.clip(rarity, 0, 1))

    @cached_property
    def _matcher(self) -> PhraseMatcher:
        return PhraseMatcher(self.keys, small=self.small.tolist(), common=self.common.tolist())

    @cached_property
    def _key_numbers(self) -> Ints:
        return self.numbers(self.keys)

    def numbers(self, keys: Iterable[str]) -> Ints:
        """The number of each name, -1 for names that link nothing."""
        wanted = np.array([_hash(key) for key in keys], dtype=np.uint64)
        if not len(self.hashes):
            return np.full(len(wanted), -1, np.int64)
        at = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        return np.where(self.hashes[at] == wanted, at, -1)

    def question_names(self, questions: Sequence[str]) -> list[Ints]:
        """The numbers of the names in each question, each once: borne names first."""
        named = []
        common = self._key_numbers[self.common]
        for question, found in zip(questions, self._matcher.find_in_questions(questions)):
            phrases = np.array([match.phrase for match in found.matches], np.int64)
            others = self.numbers(map(title_key, (*names(question), *codes(question))))
            others = others[~np.isin(others, common)]
            both = np.concatenate([self._key_numbers[phrases], others])
            _, first = np.unique(both, return_index=True)
            distinct = both[np.sort(first)]
            named.append(distinct[distinct >= 0])
        return named

    def save(self, path: Path) -> None:
        """Write the links as arrays into an artefact folder."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "borne_starts": self.borne.starts,
            "borne": self.borne.values.astype(np.int32),
            "mentioned_starts": self.mentioned.starts,
            "mentioned": self.mentioned.values.astype(np.int32),
            "hashes": self.hashes,
            "small": self.small,
            "common": self.common,
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
        """Load links written by `save`; DataError if a file is damaged."""
        path = Path(path)
        open_artefact(path, kind=_KIND, version=_VERSION, rebuild=_REBUILD)

        def read(name: str) -> npt.NDArray[Any]:
            return read_array(path / f"{name}.npy", hint=_REBUILD)

        ids, keys, stems = (
            read_texts(path, one, hint=_REBUILD) for one in ("ids", "keys", "stems")
        )
        counts, hashes, letters = map(read, ("counts", "hashes", "letters"))
        rows = [RaggedRows(read(f"{one}_starts"), read(one)) for one in ("borne", "mentioned")]
        small, common = read("small"), read("common")
        try:
            for some in (small, common):
                check_row_offsets(np.array([0, len(some)]), some, below=len(keys))
            for one in rows:
                check_row_offsets(one.starts, one.values, below=len(hashes))
            check_row_offsets(np.zeros(1, np.int64), counts[:0])
            sizes = (counts.shape, letters.shape, {len(one) for one in rows})
            if sizes != ((len(stems),), (1,), {len(ids)}):
                raise ValueError("they do not fit together")
            if hashes.dtype != np.uint64 or hashes.ndim != 1 or not np.isfinite(float(letters[0])):
                raise ValueError("hashes and letters are numbers of another kind")
        except (ValueError, TypeError) as error:
            raise DataError(f"invalid name links in {path}: {error}", hint=_REBUILD) from error
        borne, mentioned = (RaggedRows(one.starts, one.values.astype(np.int64)) for one in rows)
        stem_counts = dict(zip(stems, counts.tolist()))
        mean = float(letters[0])
        whole = (tuple(ids), borne, mentioned, hashes, tuple(keys), small, common)
        return cls(*whole, stem_counts, mean)


def name_links(documents: Callable[[], Iterable[Document]]) -> NameLinks:
    """The name links of the documents, which are read twice: first titles, then mentions."""
    return link_names(name_rows(documents))


def name_rows(
    documents: Callable[[], Iterable[Document]],
    *,
    known: NameRows | None = None,
    get: Callable[[Sequence[DocId]], Sequence[Document | None]] | None = None,
) -> NameRows:
    """The rows of the documents, for `link_names`: the same with and without `known` ones.

    A known row is used again, unless its text may contain a key that nobody bore before or nobody
    bears now, or that changed between small and capitalized. `get` fetches a few documents by id.
    """
    known = known or NameRows.empty()
    rows, source = _own_name_rows(documents, known)
    changed = np.flatnonzero(rows.standing(len(rows.keys)) != known.standing(len(rows.keys)))
    outdated = known.containing([rows.keys[at] for at in changed.tolist()], stem)
    is_read = (source < 0) | np.isin(source, outdated)
    few = bool(is_read.mean() <= FEW) if len(is_read) else True
    read = _read_again(documents, get if few else None, rows, is_read)
    new, stems = _mention_rows(read, rows, few=few)
    place = _places(source, is_read, len(known.ids))
    columns = {name: known.columns[name].followed_by(new[name]).take(place) for name in new}
    return replace(rows, columns={**rows.columns, **columns}, stems=stems).renumbered()


def _own_name_rows(
    documents: Callable[[], Iterable[Document]], known: NameRows
) -> tuple[NameRows, Ints]:
    """Rows without mentions, and the known row of each document, -1 if it has none."""
    position, keys = known.position(), {key: at for at, key in enumerate(known.keys)}
    ids: dict[DocId, int] = {}
    digests, source = bytearray(), array("q")
    borne, small, letters = RowWriter("borne"), bytearray(), array("q")
    for document in documents():
        ids.setdefault(document.doc_id, len(ids))
        if len(ids) == len(source):
            raise duplicate_id(document.doc_id)
        digest = content_digest(document)
        digests += digest
        source.append(position.get(digest, -1))
        if source[-1] < 0:
            own, is_first_small = _own_names(document)
            borne.add(borne=[keys.setdefault(key, len(keys)) for key in own])
            small.append(is_first_small)
            letters.append(len(document.text))
    sources = np.asarray(source, dtype=np.int64)
    place = _places(sources, sources < 0, len(known.ids))
    new_keys = islice(keys, len(known.keys), None)
    rows = NameRows(
        tuple(ids),
        np.frombuffer(digests, np.uint8).reshape(len(ids), DIGEST_BYTES),
        np.concatenate([known.letters, np.asarray(letters, dtype=np.int64)])[place],
        np.concatenate([known.small, np.frombuffer(small, np.uint8)])[place],
        {"borne": known.columns["borne"].followed_by(borne.columns()["borne"]).take(place)},
        tuple(keys),
        np.concatenate([known.hashes, np.array(list(map(_hash, new_keys)), np.uint64)]),
        known.stems,
    )
    return rows, sources


def _places(source: Ints, is_new: npt.NDArray[np.bool_], known: int) -> Ints:
    """Where the row of each document is among the known rows followed by the new ones."""
    return np.where(is_new, known + np.cumsum(is_new) - 1, source)


def _read_again(
    documents: Callable[[], Iterable[Document]],
    get: Callable[[Sequence[DocId]], Sequence[Document | None]] | None,
    rows: NameRows,
    is_read: npt.NDArray[np.bool_],
) -> Iterator[Document]:
    """The documents to read, in order."""
    wanted = np.flatnonzero(is_read).tolist()
    found: Iterable[Document | None] = compress(documents(), is_read.tolist())
    if get is not None:
        found = get([rows.ids[at] for at in wanted])
    for at, document in zip_longest(wanted, found):
        if document is None or document.doc_id != rows.ids[at]:
            raise InputError(
                f"document {rows.ids[at]!r} is missing the second time the documents are read",
                hint="give the same ones twice",
            )
        if content_digest(document) != rows.digests[at].tobytes():
            rows.digests[at] = 0  # written meanwhile: this row must not be used again
        yield document


def _mention_rows(
    documents: Iterable[Document], rows: NameRows, *, few: bool
) -> tuple[dict[str, RaggedRows], tuple[str, ...]]:
    """The other columns of these documents, and all stems."""
    standing = rows.standing(len(rows.keys))
    chosen = np.flatnonzero(standing)
    if few:  # then only keys that may be in these texts are worth looking for
        documents = list(documents)
        texts = (" ".join(title_words(without_accents(one.text))) for one in documents)
        openers = {word for text in texts for word in text.casefold().split()}
        is_there = [rows.keys[at].partition(" ")[0] in openers for at in chosen.tolist()]
        chosen = chosen[np.array(is_there, bool)]
    small = np.flatnonzero(standing[chosen] == SMALL)
    hashes, keys = rows.hashes[chosen], [rows.keys[at] for at in chosen.tolist()]
    matcher = PhraseMatcher(keys, small=small.tolist())
    stems = defaultdict[str, int](None, zip(rows.stems, count()))
    stems.default_factory = stems.__len__  # a new stem gets the next number
    writer = RowWriter(*(name for name in COLUMNS if name != "borne"))
    seen, again = tee(documents)
    for document, found in zip(seen, matcher.find(document.text for document in again)):
        named = _mentions(document, found, hashes)
        words = tokens(f"{document.title} {document.text}")
        stemmed = dict.fromkeys(map(stem, words))
        plain = () if document.text.isascii() else " ".join(found.words).casefold().split()
        more = sorted(set(map(stem, set(plain).difference(words))))
        writer.add(
            mentioned=islice(named, MAX_MENTIONS),
            sure=islice(named.values(), MAX_MENTIONS),
            common=chosen[sorted(found.common, key=keys.__getitem__)].tolist(),
            capital=chosen[sorted(found.capital, key=keys.__getitem__)].tolist(),
            stems=map(stems.__getitem__, stemmed),
            plain_stems=map(stems.__getitem__, more),
        )
    return writer.columns(), tuple(stems)


def link_names(rows: NameRows) -> NameLinks:
    """The name links of documents with these rows."""
    borne, mentioned, sure = (rows.columns[one] for one in ("borne", "mentioned", "sure"))
    common, capital = (
        count_values(rows.columns[one].values, len(rows.keys)) for one in ("common", "capital")
    )
    common_keys = np.flatnonzero(common > np.maximum(rare_limit(len(rows.ids)), capital))
    # By sorting: hashes are too spread out for a table, and numpy 2.0.0 overflows when it tries
    # one.
    is_common = np.isin(mentioned.values, rows.hashes[common_keys], kind="sort")
    is_name = (sure.values > 0) | ~is_common
    row_numbers, named = mentioned.row_numbers()[is_name], mentioned.values[is_name]
    borne_hashes = rows.hashes[borne.values]
    distinct, counts = np.unique(named, return_counts=True)
    hashes = np.union1d(borne_hashes, distinct[counts > 1])
    known = np.isin(named, hashes, kind="sort")
    sizes = np.bincount(row_numbers[known], minlength=len(rows.ids))
    stem_counts = count_values(rows.columns["stems"].values, len(rows.stems)).tolist()
    least = 1 if len(rows.stems) <= MAX_STEMS else 2
    return NameLinks(
        rows.ids,
        RaggedRows(borne.starts, np.searchsorted(hashes, borne_hashes)),
        RaggedRows.from_sizes(sizes, np.searchsorted(hashes, named[known])),
        hashes,
        rows.keys,
        np.flatnonzero(rows.standing(len(rows.keys)) == SMALL),
        common_keys,
        {one: count for one, count in zip(rows.stems, stem_counts) if count >= least},
        float(rows.letters.sum()) / max(len(rows.ids), 1),
    )


def _own_names(document: Document) -> tuple[list[str], bool]:
    """The keys of the names that a document bears, its title or subject first; and whether that
    one is written without capitals.
    """
    called, *others = [document.title] if document.title else subject_names(document.text) or [""]
    title = title_key(called)
    more = (*map(title_key, others), *aliases(called, document.text))
    distinct = [one for one in dict.fromkeys(more) if one not in ("", title)][:MAX_ALIASES]
    return ([title] if title else []) + distinct, bool(title) and is_small(called)


def _mentions(
    document: Document, found: TextMatches, key_hashes: npt.NDArray[np.uint64]
) -> dict[int, bool]:
    """The hashes of the names in a document in text order, and whether each is certainly a name."""
    named: dict[int, bool] = {}
    for match in found.matches:
        key = int(key_hashes[match.phrase])
        named[key] = match.sure or named.get(key, False)
    named |= {_hash(key): True for key in map(title_key, document.entities) if key}
    for name in _capitalised_names(f"{document.title}. {document.text}"):
        named.setdefault(_hash(name), False)
    if not document.title:
        # As with titles, what a document is about is a name that it mentions.
        for name in subject_names(document.text):
            named.setdefault(_hash(title_key(name)), False)
        for code in codes(document.text):
            named.setdefault(_hash(title_key(code)), False)
    return named


def _capitalised_names(text: str) -> list[str]:
    """Title keys of the names in a text, without surnames that follow the full name."""
    surnames: set[str] = set()
    found = []
    for name in names(text):
        key = title_key(name)
        words = key.split()
        if not words or (len(words) == 1 and (words[0] in surnames or len(key) < 3)):
            continue
        surnames.update(words[-1:])
        found.append(key)
    return found


def _hash(key: str) -> int:
    encoded = key.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "big")
