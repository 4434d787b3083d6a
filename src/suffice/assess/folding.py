"""Text as the gate reads it: folded to bytes, with the names, stems and roles in it. English words, any script's letters.

Folded text is lower-case UTF-8 with a space at both ends. What joins words (hyphens, apostrophes, dashes) is a space there, and
what merely follows or surrounds them (full stops, commas, quotes, brackets) is gone, so that b" george w bush " finds whole
words by one search, whatever stands between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

__all__ = [
    "KINSHIP", "OPENERS", "QUIET", "SAID", "fold", "is_agent", "key", "name_runs", "names", "plain", "stem", "title_key",
    "written",
]  # fmt: skip


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


@lru_cache(maxsize=4096)  # the same words are asked about again and again
def is_agent(word: bytes) -> bool:
    """Does the word name someone by what they do or are to something: "director", "novelist", "mother"."""
    if word in KINSHIP or word in SAID:
        return True
    return len(word) > 5 and word.endswith(_AGENT_ENDINGS) and word not in _NO_AGENTS


def stem(word: bytes) -> bytes:
    """How a word that is looked for begins: seven tenths, at least four letters, so that "director" finds "directed".

    A word of two letters has to stand there as it is: too much begins with "us".
    """
    return b" " + word[: max(4, (len(word) * 7 + 9) // 10)] if len(word) > 2 else b" " + word + b" "


# --------------------------------------------------------------------------------------------------- folding

_FOLD = bytes(
    ord(chr(byte).lower()) if byte < 0x80 and chr(byte).isalnum() else byte if byte >= 0x80 or byte == ord("&") else 0x20
    for byte in range(256)
)
_GONE = b'.,;:!?"()[]{}'
_CURLY = re.compile(rb"\xe2\x80.", re.DOTALL)  # dashes and curly quotes


def plain(text: str) -> bytes:
    """UTF-8 with a space at both ends, and quotes as on a typewriter. What is no character (a lone surrogate) falls away."""
    if text.isascii():
        return f" {text} ".encode()
    raw = f" {text} ".encode("utf-8", "ignore")
    return _CURLY.sub(b'" ', raw.replace("’".encode(), b"'")) if b"\xe2\x80" in raw else raw


def fold(raw: bytes) -> bytes:
    """Plain text in lower case, joining punctuation as spaces, other punctuation gone.

    Several spaces stay several: to join them would take longer than all the rest, and names have one.
    """
    low = raw if raw.isascii() else raw.decode().lower().encode()
    return low.translate(_FOLD, _GONE)


def key(text: str) -> bytes:
    """A few words as they are looked for in folded text: one space between and around them; none give b""."""
    words = fold(plain(text)).split()
    return b" %b " % b" ".join(words) if words else b""


def title_key(title: str) -> bytes:
    """A title as it stands in running text: without its closing parenthesis; "" gives b""."""
    bare = title[: title.rfind(" (")] if title.endswith(")") and " (" in title else title
    return key(bare or title)


# ----------------------------------------------------------------------------------------------------- names

# Capitalised runs, joined by the small words that names contain; an initial keeps its point, a sentence's end does not. "And"
# stands between two names more often than in one. One plain class opens it, because the scan for a first letter is only fast
# then; what is no ASCII letter opens it only where no letter stands before; possessive, so that it never goes back; and at most
# ten words, since a text all in capitals is not a name.
_SMALL = rb"(?:(?:of|the|d(?:e|a|i|er|u)|v[oa]n|l[ae]|al|bin|&) ){0,2}+"


def _name(first: bytes, letters: bytes) -> re.Pattern[bytes]:
    word = first + rb"[A-Za-z0-9" + letters + rb"'&-]*+(?:\.(?:(?<=[ (][A-Z]\.)|(?<= [A-Z][a-z]\.)))?+"
    return re.compile(word + rb"(?: (?=[A-Z\xc3-\xc50-9otdvlab&])" + _SMALL + rb"(?:" + word + rb"|\d[\w-]*+)){0,9}+")


_NAME = _name(rb"[A-Z\xc3-\xc5](?<![A-Za-z\x80-\xff][\x80-\xff])", rb"\x80-\xff")
_ASCII_NAME = _name(rb"[A-Z]", b"")  # the same where there is nothing else, in five sixths of the time


def name_runs(raw: bytes) -> list[bytes]:
    """Capitalised runs of a plain text, sentence openers and repetitions among them."""
    return (_ASCII_NAME if raw.isascii() else _NAME).findall(raw)


def names(runs: Iterable[bytes]) -> dict[bytes, bytes]:
    """Each name once, in order: as it is looked for, and as it stands, without the words that merely open a sentence."""
    found: dict[bytes, bytes] = {}
    for run in dict.fromkeys(runs):
        low = run.lower()
        first, _, rest = low.partition(b" ")
        while rest and first in OPENERS:
            run, low = run[-len(rest) :], rest
            first, _, rest = low.partition(b" ")
        if not low.replace(b" ", b"").isalnum():  # most have nothing to fold away
            low = b" ".join(fold(_bare(run)).split())
        if len(low) > 1 and (rest or first not in OPENERS):
            found.setdefault(b" %b " % low, run)
    return found


def written(run: bytes) -> str:
    """The name for people."""
    return _bare(run).decode("utf-8", "ignore")


def _bare(run: bytes) -> bytes:
    """Without the possessive's ending and what punctuation is at its ends."""
    return run.strip(b" .'-&").removesuffix(b"'s")
