"""Text as the gate reads it: folded to bytes, with the names, stems and roles in it. English words, any script's letters.

Folded text is lower-case UTF-8 with punctuation as spaces and a space at both ends, so that b" word " finds whole words by one
search, and a place in the folded text is a place in the text as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = [
    "KINSHIP", "OPENERS", "QUIET", "SAID", "Name", "both", "folded", "is_agent", "name_runs", "name_spans", "names", "stem",
    "title_key", "written",
]  # fmt: skip

Span = tuple[int, int]


def _words(text: str) -> frozenset[bytes]:
    return frozenset(text.encode().split())


# Words that a question is not about.
QUIET = _words(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was "
    "will with who whom whose which what when where why how did do does has have had were been from its his her he she him "
    "them than also about between both during after before while other another one same s t many much more most name named "
    "called can could would should may i my you your we our us so up out over under until only any all some each per being "
    "first year years"
)
# Words that open a sentence with a capital and name nothing.
OPENERS = _words(
    "a after also although an and are as at because before both but by can could did do does during each for from given had "
    "has have he her his how however i if in into is it its like many more most my name no not of on one or other our she "
    "should since some such that the their them then there these they this those through to under until was we were what "
    "when where which while who whom whose why will with would you your"
)
KINSHIP = _words(
    "mother father son daughter brother sister wife husband spouse sibling siblings child children parent parents grandfather "
    "grandmother uncle aunt stepmother stepfather widow consort"
)
# Words with an agent's ending that are none.
_NO_AGENTS = _words(
    "another number member former earlier younger longer larger higher greater smaller taller shorter bigger better closer "
    "faster october november december september summer winter character chapter whether either neither together however "
    "center computer matter letter consider remember wonder murder border corner quarter soccer career theater harbor senior "
    "junior interior exterior factor sector mirror terror horror flavor"
)
_AGENT_ENDINGS = (b"er", b"or", b"ist", b"ian", b"ers", b"ors", b"ists")
_BORN = (b" son of", b" daughter", b" born to ", b" child")
_WED = (b" married ", b" wife ", b" husband ", b" spouse", b" consort")
# How texts say what questions call by a noun.
SAID: dict[bytes, tuple[bytes, ...]] = {
    **dict.fromkeys((b"mother", b"father", b"parent", b"parents", b"grandfather", b"grandmother"), _BORN),
    **dict.fromkeys((b"spouse", b"wife", b"husband"), _WED),
    b"performer": (b" by ", b" sung", b" band ", b" sing"),
    b"author": (b" by ", b" wr"),
    b"composer": (b" music",),
    b"founder": (b" establish",),
    b"sibling": (b" brother", b" sister"),
    b"child": (b" father ", b" mother ", b" son ", b" daughter "),
}


def is_agent(word: bytes) -> bool:
    """Does the word name someone by what they do or are to something: "director", "novelist", "mother"."""
    if word in KINSHIP or word in SAID:
        return True
    return len(word) > 5 and word.endswith(_AGENT_ENDINGS) and word not in _NO_AGENTS


def stem(word: bytes) -> bytes:
    """How a word that is looked for begins: seven tenths, at least four letters, so that "director" finds "directed"."""
    return b" " + word[: max(4, (len(word) * 7 + 9) // 10)]


# --------------------------------------------------------------------------------------------------- folding

_FOLD = bytes(
    ord(chr(byte).lower()) if byte < 0x80 and chr(byte).isalnum() else byte if byte >= 0x80 else 0x20 for byte in range(256)
)
_PUNCTUATION = re.compile(rb"\xe2\x80.", re.DOTALL)  # dashes and curly quotes: three bytes each, so spaces keep the places
_WIDE = re.compile(rb"[\x80-\xff]++")


def folded(text: str) -> bytes:
    """Lower-case UTF-8 with punctuation as spaces and a space at both ends, so that b" word " finds whole words."""
    return both(text)[1]


def both(text: str) -> tuple[bytes, bytes]:
    """The text as it stands and folded, byte for byte in step. What is no character (a lone surrogate) falls away."""
    if text.isascii():  # most texts: one table does it all
        raw = f" {text} ".encode()
        return raw, raw.translate(_FOLD)
    raw = f" {text} ".encode("utf-8", "ignore")
    if b"\xe2\x80" in raw:
        raw = _PUNCTUATION.sub(b"   ", raw)
    return raw, _WIDE.sub(_lower_in_step, raw.translate(_FOLD))


def _lower_in_step(letters: re.Match[bytes]) -> bytes:
    """A few capitals, like the Turkish dotted one, take more or fewer bytes when lowered; a run with one of them stays."""
    run = letters[0]
    low = run.decode().lower().encode()
    return low if len(low) == len(run) else run


def title_key(title: str) -> bytes:
    """A title as it stands in running text: folded, without its closing parenthesis; "" gives b""."""
    bare = title[: title.rfind(" (")] if title.endswith(")") and " (" in title else title
    words = folded(bare or title).split()
    return b" %b " % b" ".join(words) if words else b""


# ----------------------------------------------------------------------------------------------------- names

# Capitalised runs, joined by the small words that names contain; an initial keeps its point, a sentence's end does not.
# One plain class opens it, because the scan for a first letter is only fast then; possessive, so that it never goes back; and
# at most ten words, since a text all in capitals is not a name.
_WORD = rb"[A-Z\xc3-\xc5][A-Za-z0-9\x80-\xff'&-]*+(?:\.(?:(?<=[ (][A-Z]\.)|(?<= [A-Z][a-z]\.)))?+"
_SMALL = rb"(?:(?:of|the|and|d(?:e|a|i|er|u)|v[oa]n|l[ae]|al|bin|&) ){0,2}+"
_NAME = re.compile(_WORD + rb"(?: (?=[A-Z\xc3-\xc50-9oatdvlb&])" + _SMALL + rb"(?:" + _WORD + rb"|\d[\w-]*+)){0,9}+")


class Name(NamedTuple):
    """A name in a text: folded, between two spaces, and where it stands."""

    key: bytes
    start: int
    end: int


def name_runs(raw: bytes) -> list[bytes]:
    """Capitalised runs of a text as it stands, sentence openers and repetitions among them."""
    return _NAME.findall(raw)


def name_spans(raw: bytes, runs: Iterable[bytes]) -> Iterator[Span]:
    """Where the runs stand: to find them again costs less than to ask every text for places that few need."""
    end = 0
    for run in runs:
        start = raw.find(run, end)
        end = start + len(run)
        yield start, end


def names(flat: bytes, spans: Iterable[Span]) -> Iterator[Name]:
    """Each name once, where it first stands, without the words that merely open a sentence and the possessive's s."""
    found: set[bytes] = set()
    for start, end in spans:
        words = flat[start:end]
        if words in found or words in OPENERS:
            continue
        if b" " in words:
            start, words = _trimmed(flat, start, words.split())
        if len(words) > 1 and words not in found:
            found.add(words)
            yield Name(b" " + words + b" ", start, end)


def _trimmed(flat: bytes, start: int, words: list[bytes]) -> tuple[int, bytes]:
    while words and words[0] in OPENERS:
        opener = words.pop(0)
        start = flat.index(opener, start) + len(opener) + 1
    if words and words[-1] == b"s":
        words.pop()
    return start, b" ".join(words)


def written(raw: bytes, name: Name) -> str:
    """The name for people, as it stands in the text: without the possessive's ending and what punctuation is at its ends."""
    text = raw[name.start : name.end].decode("utf-8", "ignore").strip(" .'-&")
    return text.removesuffix("'s")
