"""Text as the gate reads it: folded to bytes, with the names, stems and roles in it. English words, any script's letters.

Folded text is lower-case UTF-8 with a space at both ends. What joins words (hyphens, apostrophes, dashes) is a space there, and
what merely follows or surrounds them (full stops, commas, quotes, brackets) is gone, so that b" george w bush " finds whole
words by one search, whatever stands between them.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError, NotReadyError
from suffice.storage import open_artefact, read_json_object, write_atomically
from suffice.storage.artefacts import read_array

__all__ = [
    "KINSHIP_WORDS",
    "PARAPHRASES",
    "QUESTION_COLUMNS",
    "SENTENCE_OPENERS",
    "SHIPPED_WORD_TABLE",
    "STOP_WORDS",
    "STOP_WORD_RARITY",
    "WORD_TABLE_KIND",
    "WORD_TABLE_VERSION",
    "ParsedQuestion",
    "QuestionModel",
    "WordTable",
    "capitalized_runs",
    "display_name",
    "encode_text",
    "is_role_word",
    "normalize",
    "parse_question",
    "question_features",
    "search_key",
    "stem",
    "title_search_key",
    "unique_names",
]


def _word_set(text: str) -> frozenset[bytes]:
    return frozenset(text.encode().split())


# Words that a question is not about.
STOP_WORDS = _word_set(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was "
    "will with who whom whose which what when where why how did do does has have had were been from its his her he she him "
    "them than also about between both during after before while other another one same s t many much more most name named "
    "called can could would should may i my you your we our us so up out over under until only any all some each per being "
    "first year years"
)
# Words that open a sentence with a capital and name nothing.
SENTENCE_OPENERS = _word_set(
    "a after also although an and are as at because before both but by can could did do does during each for from given had "
    "has have he her his how however i if in into is it its like many more most my name no not of on one or other our she "
    "should since some such that the their them then there these they this those through to under until was we were what "
    "when where which while who whom whose why will with would you your"
)
KINSHIP_WORDS = _word_set(
    "mother father son daughter brother sister wife husband spouse sibling siblings child children parent parents grandfather "
    "grandmother uncle aunt stepmother stepfather widow consort"
)
# Words with an agent's ending that are none.
_NOT_ROLES = _word_set(
    "another number member former earlier younger longer larger higher greater smaller taller shorter bigger better closer "
    "faster october november december september summer winter character chapter whether either neither together however "
    "center computer matter letter consider remember wonder murder border corner quarter soccer career theater harbor senior "
    "junior interior exterior factor sector mirror terror horror flavor"
)
_ROLE_ENDINGS = (b"er", b"or", b"ist", b"ian", b"ers", b"ors", b"ists")
_BIRTH_PHRASES = (b" son of", b" daughter", b" born to ", b" child")
_MARRIAGE_PHRASES = (b" married ", b" wife ", b" husband ", b" spouse", b" consort")
# How texts say what questions call by a noun.
PARAPHRASES: dict[bytes, tuple[bytes, ...]] = {
    **dict.fromkeys(
        (b"mother", b"father", b"parent", b"parents", b"grandfather", b"grandmother"),
        _BIRTH_PHRASES,
    ),
    **dict.fromkeys((b"spouse", b"wife", b"husband"), _MARRIAGE_PHRASES),
    b"performer": (b" by ", b" sung", b" band ", b" sing"),
    b"author": (b" by ", b" wr"),
    b"composer": (b" music",),
    b"founder": (b" establish",),
    b"sibling": (b" brother", b" sister"),
    b"child": (b" father ", b" mother ", b" son ", b" daughter "),
}


@lru_cache(maxsize=4096)  # the same words are asked about again and again
def is_role_word(word: bytes) -> bool:
    """Does the word name someone by what they do or are to something: "director", "novelist", "mother"."""
    if word in KINSHIP_WORDS or word in PARAPHRASES:
        return True
    return len(word) > 5 and word.endswith(_ROLE_ENDINGS) and word not in _NOT_ROLES


def stem(word: bytes) -> bytes:
    """How a word that is looked for begins: seven tenths, at least four letters, so that "director" finds "directed".

    A word of two letters has to stand there as it is: too much begins with "us".
    """
    return b" " + word[: max(4, (len(word) * 7 + 9) // 10)] if len(word) > 2 else b" " + word + b" "


# --------------------------------------------------------------------------------------------------- folding

_NORMALIZE_TABLE = bytes(
    ord(chr(byte).lower())
    if byte < 0x80 and chr(byte).isalnum()
    else byte
    if byte >= 0x80 or byte == ord("&")
    else 0x20
    for byte in range(256)
)
_DROPPED = b'.,;:!?"()[]{}'
_CURLY_QUOTES = re.compile(rb"\xe2\x80.", re.DOTALL)  # dashes and curly quotes


def encode_text(text: str) -> bytes:
    """UTF-8 with a space at both ends, and quotes as on a typewriter. What is no character (a lone surrogate) falls away."""
    if text.isascii():
        return f" {text} ".encode()
    raw = f" {text} ".encode("utf-8", "ignore")
    return _CURLY_QUOTES.sub(b'" ', raw.replace("’".encode(), b"'")) if b"\xe2\x80" in raw else raw


def normalize(raw: bytes) -> bytes:
    """Plain text in lower case, joining punctuation as spaces, other punctuation gone.

    Several spaces stay several: to join them would take longer than all the rest, and names have one.
    """
    low = raw if raw.isascii() else raw.decode().lower().encode()
    return low.translate(_NORMALIZE_TABLE, _DROPPED)


def search_key(text: str) -> bytes:
    """A few words as they are looked for in folded text: one space between and around them; none give b""."""
    words = normalize(encode_text(text)).split()
    return b" %b " % b" ".join(words) if words else b""


def title_search_key(title: str) -> bytes:
    """A title as it stands in running text: without its closing parenthesis; "" gives b""."""
    bare = title[: title.rfind(" (")] if title.endswith(")") and " (" in title else title
    return search_key(bare or title)


# ----------------------------------------------------------------------------------------------------- names

# Capitalised runs, joined by the small words that names contain; an initial keeps its point, a sentence's end does not. "And"
# stands between two names more often than in one. One plain class opens it, because the scan for a first letter is only fast
# then; what is no ASCII letter opens it only where no letter stands before; possessive, so that it never goes back; and at most
# ten words, since a text all in capitals is not a name.
_SMALL_WORDS = rb"(?:(?:of|the|d(?:e|a|i|er|u)|v[oa]n|l[ae]|al|bin|&) ){0,2}+"


def _name_pattern(first: bytes, letters: bytes) -> re.Pattern[bytes]:
    word = (
        first + rb"[A-Za-z0-9" + letters + rb"'&-]*+(?:\.(?:(?<=[ (][A-Z]\.)|(?<= [A-Z][a-z]\.)))?+"
    )
    return re.compile(
        word
        + rb"(?: (?=[A-Z\xc3-\xc50-9otdvlab&])"
        + _SMALL_WORDS
        + rb"(?:"
        + word
        + rb"|\d[\w-]*+)){0,9}+"
    )


_NAME = _name_pattern(rb"[A-Z\xc3-\xc5](?<![A-Za-z\x80-\xff][\x80-\xff])", rb"\x80-\xff")
_ASCII_NAME = _name_pattern(
    rb"[A-Z]", b""
)  # the same where there is nothing else, in five sixths of the time


def capitalized_runs(raw: bytes) -> list[bytes]:
    """Capitalised runs of a plain text, sentence openers and repetitions among them."""
    return (_ASCII_NAME if raw.isascii() else _NAME).findall(raw)


def unique_names(runs: Iterable[bytes]) -> dict[bytes, bytes]:
    """Each name once, in order: as it is looked for, and as it stands, without the words that merely open a sentence."""
    found: dict[bytes, bytes] = {}
    for run in dict.fromkeys(runs):
        low = run.lower()
        first, _, rest = low.partition(b" ")
        while rest and first in SENTENCE_OPENERS:
            run, low = run[-len(rest) :], rest
            first, _, rest = low.partition(b" ")
        if not low.replace(b" ", b"").isalnum():  # most have nothing to fold away
            low = b" ".join(normalize(_strip_name(run)).split())
        if len(low) > 1 and (rest or first not in SENTENCE_OPENERS):
            found.setdefault(b" %b " % low, run)
    return found


def display_name(run: bytes) -> str:
    """The name for people."""
    return _strip_name(run).decode("utf-8", "ignore")


def _strip_name(run: bytes) -> bytes:
    """Without the possessive's ending and what punctuation is at its ends."""
    return run.strip(b" .'-&").removesuffix(b"'s")


# --- words: Static word vectors and word rarity by look-up: no tokeniser runs at check time.

Floats = npt.NDArray[np.floating[Any]]
WORD_TABLE_KIND, WORD_TABLE_VERSION = "table of words", 1
REBUILD_WORD_TABLE = "python -m suffice_research.training.word_table"
STOP_WORD_RARITY = 0.05  # rarity of every quiet word
_UNKNOWN = repeat(1.0)
_EPSILON = np.float32(1e-12)  # nothing has no direction: zero, not a division by it
_MAX_ABS = 1e4  # vectors are about as long as one, rarities are shares
SHIPPED_WORD_TABLE = Path(__file__).parent.parent / "models" / "words"


class WordTable:
    """A vocabulary with a vector and a rarity per word. Words are folded: lower-case UTF-8 bytes.

    A rarity is from 0 (everywhere) to 1 (unknown). A plural is as rare as its singular, and words that no question is about
    ("the", "which") are all ORDINARY.
    """

    def __init__(
        self, words: Sequence[bytes], rarity: npt.ArrayLike, vectors: npt.ArrayLike
    ) -> None:
        known = dict(zip(words, np.asarray(rarity, dtype=float).tolist(), strict=True))
        plurals = {word + b"s": rare for word, rare in known.items()}
        self._rarity = {**plurals, **known, **dict.fromkeys(STOP_WORDS, STOP_WORD_RARITY)}
        self._row = dict(zip(words, range(1, len(words) + 1), strict=True))
        given = np.asarray(vectors)
        self._vectors = np.concatenate(
            [np.zeros((1, given.shape[1]), dtype=given.dtype), given]
        )  # row 0 is nothing

    @classmethod
    def load(cls, path: Path = SHIPPED_WORD_TABLE) -> WordTable:
        open_artefact(
            path, kind=WORD_TABLE_KIND, version=WORD_TABLE_VERSION, rebuild=REBUILD_WORD_TABLE
        )
        words, rarity, vectors = (
            read_array(path / f"{name}.npy", largest=_MAX_ABS, hint=REBUILD_WORD_TABLE)
            for name in ("words", "rarity", "vectors")
        )
        kinds, shapes = (
            [one.dtype.kind for one in (words, rarity, vectors)],
            (words.shape, rarity.shape, vectors.shape[:1]),
        )
        if kinds != ["S", "f", "f"] or set(shapes) != {words.shape[:1]} or vectors.ndim != 2:
            raise DataError(f"the arrays in {path} do not fit together", hint=REBUILD_WORD_TABLE)
        return cls(words.tolist(), rarity, vectors)

    def __len__(self) -> int:
        return len(self._row)

    @property
    def dimensions(self) -> int:
        return int(self._vectors.shape[1])

    def rarities(self, words: Iterable[bytes]) -> list[float]:
        return list(map(self._rarity.get, words, _UNKNOWN))

    def vectors(self, bags: Sequence[Sequence[bytes]]) -> Floats:
        """A unit vector per bag of words: (bags, dimensions), float32; without a known word, zero."""
        if not bags:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows: list[int] = []
        starts = []
        for bag in bags:
            starts.append(len(rows))
            rows.append(0)  # reduceat needs something in every bag
            rows += filter(None, map(self._row.get, bag))
        sums = np.add.reduceat(self._vectors.take(rows, axis=0), starts, axis=0, dtype=np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        return np.asarray(sums / np.maximum(norms, _EPSILON)[:, None])


# --- asking: A question, read once for any number of hits: what it names, and what it asks about.

# Bounds on the time that a hostile question can take; a longer one repeats itself.
MAX_QUESTION_CHARS = 4_000
MAX_QUESTION_WORDS = 24  # content words that are looked for
MAX_QUESTION_NAMES = 24


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question, read: its folded text, content words with their stems and rarity, and the names and numbers in it."""

    flat: bytes  # folded, with one space between words
    tokens: list[bytes]
    content: list[bytes]
    stems: list[bytes]
    rarity: list[float]  # of the content words
    names: list[bytes]  # folded, between two spaces
    numbers: list[bytes]  # between two spaces
    written: dict[bytes, str]  # the names as they stand in the question
    form: bytes  # `flat` with NAME for each name: how it asks, not what about
    meant: npt.NDArray[np.float32] | None = None  # its vector, where an encoder looks too


def parse_question(question: str, words: WordTable) -> ParsedQuestion:
    """Read a question once, for any number of hits."""
    raw = encode_text(question[:MAX_QUESTION_CHARS])
    tokens = normalize(raw).split()
    content = [word for word in dict.fromkeys(tokens) if word not in STOP_WORDS and len(word) > 1][
        :MAX_QUESTION_WORDS
    ]
    names = dict(islice(unique_names(capitalized_runs(raw)).items(), MAX_QUESTION_NAMES))
    flat = b" %b " % b" ".join(tokens)
    return ParsedQuestion(
        flat,
        tokens,
        content,
        list(map(stem, content)),
        words.rarities(content),
        list(names),
        [b" " + word + b" " for word in content if word.isdigit()],
        {name: display_name(run) for name, run in names.items()},
        _mask_names(flat, names),
    )


def _mask_names(flat: bytes, names: Iterable[bytes]) -> bytes:
    for name in sorted(names, key=len, reverse=True):
        flat = flat.replace(name, b" NAME ")
    return flat


# --- hops: What a question asks for, from its words alone: how many documents it needs, of which kind it is, how such questions fare.

STRUCTURE_WEIGHT = 0.2  # a structure column's weight beside the words: about that of one word
QUESTION_RECORD, QUESTION_WEIGHTS = "question.json", "question.npy"
_MAX_WEIGHT = 1e6  # a ridge's weights are small
REFIT = "fit and save the gate again"
_DIGITS = re.compile(rb"\d+")

_COMPARISON_WORDS = frozenset(
    b"older younger first later earlier more longer higher larger greater taller shorter bigger smaller less fewer same both "
    b"different recently oldest youngest".split()
)
_RELATIVE_WORDS = frozenset(b"that which who whose whom where when".split())
_PREPOSITIONS = frozenset(b"of in by from at on with for to".split())
_AUXILIARIES = frozenset(b"is was were are did does do has have had".split())
_PLACE_WORDS = frozenset(
    b"country city state place county located capital province region district municipality birthplace town continent".split()
)
_NOT_ROLES_HERE = frozenset(b"members numbers users".split())
_RELATIVE_OR_OF = rb"(?:of|that|which|who|whose|whom|where|when) "
_PHRASE = re.compile(
    rb" (?:the|an?)(?= (?:(?!the |an? |"
    + _RELATIVE_OR_OF
    + rb")[^A-Z ]++ ){1,4}"
    + _RELATIVE_OR_OF
    + rb")"
)  # "the city where"
# "which American filmmaker": what is asked for, not a step on the way there.
_HEAD = re.compile(
    rb" (?:which|what)(?: (?!"
    + _RELATIVE_OR_OF
    + rb"|(?:"
    + b"|".join(sorted(_AUXILIARIES))
    + rb") )\S++){0,3}"
)

QUESTION_COLUMNS = (
    "tokens", "plain", "relative", "chain", "branches", "agents", "of", "the", "loose", "places", "possessive", "names",
    "auxiliaries", "prepositions", "comparing", "kin", "or", "and", "numbers", "phrases", "roles", "least", "likely",
)  # fmt: skip


def question_features(questions: Sequence[ParsedQuestion]) -> Floats:
    """Counts of what makes a question long-winded, as log(1 + count): (questions, QUESTION_COLUMNS)."""
    return np.log1p(
        np.array([_structure_counts(asked) for asked in questions], dtype=np.float32).reshape(
            -1, len(QUESTION_COLUMNS)
        )
    )


def _structure_counts(asked: ParsedQuestion) -> list[float]:
    tokens = asked.tokens
    told = set(b"".join(asked.names).split())
    plain = [token for token in tokens if token not in told]
    agents = sum(map(is_role_word, plain))
    possessive, of = tokens.count(b"s"), tokens.count(b"of")
    relative = _count_in(_RELATIVE_WORDS, tokens[1:])
    comparing = _count_in(_COMPARISON_WORDS, plain)
    # "Which film has the director who died first, A or B": every branch has to be walked, as deep as the relations go.
    branches = (
        2 if comparing and len(asked.names) > 1 and (b"or" in tokens or b"and" in tokens) else 1
    )
    return [
        len(tokens), len(plain), relative, agents + possessive + relative + of,
        branches * (1 + min(agents + (possessive > 0), 3)), agents, of, tokens.count(b"the"),
        len(set(plain) - STOP_WORDS), _count_in(_PLACE_WORDS, plain), possessive, len(asked.names), _count_in(_AUXILIARIES, plain),
        _count_in(_PREPOSITIONS, plain), comparing, _count_in(KINSHIP_WORDS, plain), tokens.count(b"or"), tokens.count(b"and"),
        len(asked.numbers), *_form_features(asked, relative + possessive),
    ]  # fmt: skip


def _form_features(asked: ParsedQuestion, signs: int) -> tuple[int, int, int, float]:
    """Phrases that point on, roles that relate, and how many documents such a form needs: at least, and likely.

    Two at least. Where two named things are compared through someone related to each, as in "Which film has the director who
    died first, A or B?", there are two chains of two: four. Else every three signs of a further step make one more likely.
    """
    phrases, rest = len(_PHRASE.findall(asked.form)), _HEAD.sub(b" ", asked.form).split()
    roles = sum([is_role_word(word) for word in rest if word not in _NOT_ROLES_HERE])
    if (
        len(asked.names) > 1
        and (b"or" in rest or b"and" in rest)
        and not _COMPARISON_WORDS.isdisjoint(rest)
    ):
        least = 4 if roles else 2
        return phrases, roles, least, least
    signs += phrases + roles + _count_in(_PLACE_WORDS, rest)
    return phrases, roles, 2, min(max(2.0, 1 + signs / 3), 4.0)


def _count_in(kind: frozenset[bytes], words: Sequence[bytes]) -> int:
    return sum(map(kind.__contains__, words))


class QuestionModel:
    """Guesses named targets (numbers, or 0/1 flags) from questions alone."""

    def __init__(self, words: WordTable, *, strength: float = 2.0, min_count: int = 3) -> None:
        self.words, self.strength, self.min_count = words, strength, min_count
        self.targets: tuple[str, ...] = ()

    def fit(
        self, questions: Sequence[ParsedQuestion], targets: Mapping[str, npt.ArrayLike]
    ) -> QuestionModel:
        from scipy.sparse import (  # late: checking needs neither these nor scikit-learn
            csr_matrix,
            hstack,
        )
        from sklearn.linear_model import Ridge

        wanted = _target_columns(targets, len(questions))
        seen = Counter(gram for asked in questions for gram in _grams(asked))
        kept = sorted(gram for gram, count in seen.items() if count >= self.min_count)
        self._know(kept, [math.log((1 + len(questions)) / (1 + seen[gram])) + 1 for gram in kept])
        at, scales, starts = self._said(questions)
        values = np.repeat(scales, np.diff([*starts, len(at)])) * np.array(self._idf)[at]
        said = csr_matrix((values, at, [*starts, len(at)]), shape=(len(questions), len(self._idf)))
        rows = question_features(questions)
        scale = STRUCTURE_WEIGHT / (rows.std(0) + 1e-6)
        matrix = hstack([said, (rows - rows.mean(0)) * scale, self._meant(questions)], format="csr")
        model = Ridge(self.strength, solver="sparse_cg", tol=1e-8).fit(matrix, wanted)
        weights = np.asarray(model.coef_, dtype=float).reshape(len(targets), -1).T
        structure = slice(len(self._idf), len(self._idf) + len(QUESTION_COLUMNS))
        weights[structure] *= scale[:, None]  # from here on they meet counts as they are
        self._offset = (
            np.asarray(model.intercept_, dtype=float).reshape(len(targets))
            - rows.mean(0) @ weights[structure]
        )
        self._weigh(weights.astype(np.float32))
        self.targets = tuple(targets)
        return self

    def predict(self, questions: Sequence[ParsedQuestion], rows: Floats | None = None) -> Floats:
        """(questions, targets). `rows` are their question_rows, where they are at hand."""
        if not self.targets:
            raise NotReadyError("the question model is not fitted", hint="call fit, or load one")
        if not questions:
            return np.zeros((0, len(self.targets)))
        rows = question_features(questions) if rows is None else rows
        at, scales, starts = self._said(questions)
        said = (
            np.add.reduceat(self._table.take(at, axis=0), starts, axis=0)
            * np.array(scales, dtype=np.float32)[:, None]
        )
        return np.asarray(
            said + rows @ self._structure + self._meant(questions) @ self._words + self._offset
        )

    def _know(self, grams: Sequence[bytes], idf: Sequence[float]) -> None:
        self._at = {
            gram: at for at, gram in enumerate(grams, start=1)
        }  # row 0 is every other one: nothing
        self._idf = [0.0, *idf]
        self._squares = [one * one for one in self._idf]

    def _weigh(self, weights: Floats) -> None:
        """Split the weights, with what each gram adds said beforehand."""
        grams = len(self._idf)
        self._weights, self._structure = weights, weights[grams : grams + len(QUESTION_COLUMNS)]
        self._table = np.ascontiguousarray(
            weights[:grams] * np.array(self._idf, dtype=np.float32)[:, None]
        )
        self._words = weights[grams + len(QUESTION_COLUMNS) :]

    def _said(
        self, questions: Sequence[ParsedQuestion]
    ) -> tuple[list[int], list[float], list[int]]:
        """The grams of all questions, what makes those of each a vector of length one, and where they begin."""
        at: list[int] = []
        scales, starts = [], []
        square, place = self._squares.__getitem__, self._at.get
        for asked in questions:
            known = list(filter(None, map(place, _grams(asked))))
            starts.append(len(at))
            scales.append(1 / math.sqrt(sum(map(square, known)) or 1.0))
            at += known or [0]
        return at, scales, starts

    def _meant(self, questions: Sequence[ParsedQuestion]) -> Floats:
        """The mean of the words' vectors, and beside it the encoder's vector of a question that has one."""
        vectors = self.words.vectors([asked.tokens for asked in questions])
        meant = [asked.meant for asked in questions if asked.meant is not None]
        return np.column_stack([vectors, np.stack(meant)]) if meant else vectors

    def save(self, folder: Path) -> None:
        """Write the model into an existing folder."""
        if not self.targets:
            raise NotReadyError("the question model is not fitted", hint="call fit first")
        words = [gram.decode("utf-8", "surrogateescape") for gram in self._at]
        plain = {
            "targets": self.targets,
            "grams": words,
            "idf": self._idf,
            "offset": self._offset.tolist(),
        }
        settings = {
            "columns": QUESTION_COLUMNS,
            "strength": self.strength,
            "min_count": self.min_count,
        }
        settings["meant"] = len(self._words) - self.words.dimensions
        write_atomically(
            folder / QUESTION_RECORD, json.dumps({**plain, **settings}, sort_keys=True) + "\n"
        )
        np.save(folder / QUESTION_WEIGHTS, self._weights)

    @classmethod
    def load(cls, folder: Path, words: WordTable) -> QuestionModel:
        """A model that `save` wrote; DataError where a file is missing or does not fit the others."""
        try:
            told = {entry.key: entry.value for entry in read_json_object(folder / QUESTION_RECORD)}
            model = cls(words, strength=told["strength"], min_count=told["min_count"])
            idf, model.targets = [float(one) for one in told["idf"]], tuple(told["targets"])
            model._know(
                [gram.encode("utf-8", "surrogateescape") for gram in told["grams"]], idf[1:]
            )
            model._offset = np.array(told["offset"], dtype=float)
            weights = read_array(folder / QUESTION_WEIGHTS, largest=_MAX_WEIGHT, hint=REFIT)
            height = (
                len(model._at) + 1 + len(QUESTION_COLUMNS) + words.dimensions + told.get("meant", 0)
            )
            shapes = (len(idf), model._offset.shape, weights.shape, tuple(told["columns"]))
        except (
            InputError,
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            EOFError,
        ) as error:
            raise DataError(
                f"the question model in {folder} cannot be read: {error!r}", hint=REFIT
            ) from error
        targets = len(model.targets)
        if shapes != (len(model._at) + 1, (targets,), (height, targets), QUESTION_COLUMNS):
            raise DataError(
                f"the question model in {folder} has other columns than this suffice", hint=REFIT
            )
        model._weigh(weights)
        return model


def _target_columns(targets: Mapping[str, npt.ArrayLike], questions: int) -> Floats:
    if not targets or not questions:
        raise InputError(
            f"{questions} questions with {len(targets)} targets: a question model needs some of both"
        )
    columns = [np.asarray(column, dtype=float) for column in targets.values()]
    for name, column in zip(targets, columns, strict=True):
        if column.shape != (questions,) or not np.isfinite(column).all():
            raise InputError(
                f"target {name!r} has shape {column.shape}, expected one finite number for each of {questions}"
            )
    return np.column_stack(columns)


def _grams(asked: ParsedQuestion) -> dict[bytes, None]:
    """Words and word pairs with the names and numbers masked, each once: the form of the question, not its subject."""
    words = _DIGITS.sub(b"NUMBER", asked.form).split()
    return dict.fromkeys([*words, *map(b" ".join, pairwise(words))])
