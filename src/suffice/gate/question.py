"""The question: its words and names, and how many documents it needs.

    normalize, unique_names, …   text as the gate sees it; English words, letters of any script
    WordTable                    static word vectors and word rarity by look-up
    ParsedQuestion               a question parsed once for any number of hits
    QuestionModel                guesses hops, kinds and more from the question alone

Normalized text is lower-case UTF-8 with a space at both ends. Joining punctuation (hyphens,
apostrophes, dashes) becomes a space, other punctuation is dropped. A single search for b" george w
bush " then finds whole words.
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
from suffice.gate.features import QUESTION_COLUMNS
from suffice.lexicon import AUXILIARIES, PREPOSITIONS
from suffice.numeric import multiply_rows
from suffice.storage import open_artefact, write_atomically
from suffice.storage.artefacts import data_errors, read_array, read_json

Floats = npt.NDArray[np.floating[Any]]


def _word_set(text: str) -> frozenset[bytes]:
    return frozenset(text.encode().split())


STOP_WORDS = _word_set(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with who whom whose which what when where why how did do "
    "does has have had were been from its his her he she him them than also about between both "
    "during after before while other another one same s t many much more most name named called "
    "can could would should may i my you your we our us so up out over under until only any all "
    "some each per being first year years"
)
# Capitalized words that open a sentence but are not names.
SENTENCE_OPENERS = _word_set(
    "a after also although an and are as at because before both but by can could did do does "
    "during each for from given had has have he her his how however i if in into is it its like "
    "many more most my name no not of on one or other our she should since some such that the "
    "their them then there these they this those through to under until was we were what when "
    "where which while who whom whose why will with would you your"
)
_KINSHIP_WORDS = _word_set(
    "mother father son daughter brother sister wife husband spouse sibling siblings child children "
    "parent parents grandfather grandmother uncle aunt stepmother stepfather widow consort"
)
# Words with a role-like ending that are not roles.
_NOT_ROLES = _word_set(
    "another number member former earlier younger longer larger higher greater smaller taller "
    "shorter bigger better closer faster october november december september summer winter "
    "character chapter whether either neither together however center computer matter letter "
    "consider remember wonder murder border corner quarter soccer career theater harbor senior "
    "junior interior exterior factor sector mirror terror horror flavor"
)
_ROLE_ENDINGS = (b"er", b"or", b"ist", b"ian", b"ers", b"ors", b"ists")
_BIRTH_PHRASES = (b" son of", b" daughter", b" born to ", b" child")
_MARRIAGE_PHRASES = (b" married ", b" wife ", b" husband ", b" spouse", b" consort")
_ANCESTORS = (b"mother", b"father", b"parent", b"parents", b"grandfather", b"grandmother")
# How texts express what questions call by a noun.
PARAPHRASES: dict[bytes, tuple[bytes, ...]] = {
    **dict.fromkeys(_ANCESTORS, _BIRTH_PHRASES),
    **dict.fromkeys((b"spouse", b"wife", b"husband"), _MARRIAGE_PHRASES),
    b"performer": (b" by ", b" sung", b" band ", b" sing"),
    b"author": (b" by ", b" wr"),
    b"composer": (b" music",),
    b"founder": (b" establish",),
    b"sibling": (b" brother", b" sister"),
    b"child": (b" father ", b" mother ", b" son ", b" daughter "),
}
COMPARISON_WORDS = _word_set(
    "older younger first later earlier more longer higher larger greater taller shorter bigger "
    "smaller less fewer same both different recently oldest youngest"
)
_RELATIVE_WORDS = _word_set("that which who whose whom where when")
_PREPOSITIONS, _AUXILIARIES = (_word_set(" ".join(kind)) for kind in (PREPOSITIONS, AUXILIARIES))
_PLACE_WORDS = _word_set(
    "country city state place county located capital province region district municipality "
    "birthplace town continent"
)


@lru_cache(maxsize=4096)  # the same words come up repeatedly
def is_role_word(word: bytes) -> bool:
    """Whether the word names someone by a role: "director", "novelist", "mother"."""
    if word in _KINSHIP_WORDS or word in PARAPHRASES:
        return True
    return len(word) > 5 and word.endswith(_ROLE_ENDINGS) and word not in _NOT_ROLES


def _stem(word: bytes) -> bytes:
    """The first seven tenths of a word, at least four letters: "director" finds "directed".

    A word of two letters is searched as a whole: too many words begin with "us".
    """
    if len(word) <= 2:
        return b" " + word + b" "
    return b" " + word[: max(4, (len(word) * 7 + 9) // 10)]


_NORMALIZE_TABLE = bytes(
    ord(chr(byte).lower())
    if byte < 0x80 and chr(byte).isalnum()
    else byte
    if byte >= 0x80 or byte == ord("&")
    else 0x20
    for byte in range(256)
)
_DROPPED = b'.,;:!?"()[]{}'
_CURLY_QUOTES = re.compile(rb"\xe2\x80.", re.DOTALL)  # and dashes


def encode_text(text: str) -> bytes:
    """UTF-8 with a space at both ends and straight quotes, without lone surrogates."""
    if text.isascii():
        return f" {text} ".encode()
    raw = f" {text} ".encode("utf-8", "ignore")
    if b"\xe2\x80" not in raw:
        return raw
    return _CURLY_QUOTES.sub(b'" ', raw.replace("’".encode(), b"'"))


def normalize(raw: bytes) -> bytes:
    """Encoded text in lower case, joining punctuation as spaces, other punctuation dropped.

    Repeated spaces stay: merging them would take longer than everything else.
    """
    low = raw if raw.isascii() else raw.decode().lower().encode()
    return low.translate(_NORMALIZE_TABLE, _DROPPED)


def search_key(text: str) -> bytes:
    """The pattern for searching a few words in normalized text; b"" without words."""
    words = normalize(encode_text(text)).split()
    return b" %b " % b" ".join(words) if words else b""


def title_search_key(title: str) -> bytes:
    """A title as it appears in running text: without its closing parenthesis."""
    bare = title[: title.rfind(" (")] if title.endswith(")") and " (" in title else title
    return search_key(bare or title)


# Names are capitalized runs, joined by the small words that names contain. An initial keeps its
# point, the end of a sentence does not. "And" is more often between two names than inside one. For
# speed, one plain class opens a run; a non-ASCII letter opens it only if no letter precedes it.
# Possessive quantifiers never backtrack. At most ten words: a text all in capitals is not a name.
_SMALL_WORDS = rb"(?:(?:of|the|d(?:e|a|i|er|u)|v[oa]n|l[ae]|al|bin|&) ){0,2}+"


def _name_pattern(first: bytes, letters: bytes) -> re.Pattern[bytes]:
    initial = rb"(?:\.(?:(?<=[ (][A-Z]\.)|(?<= [A-Z][a-z]\.)))?+"
    word = first + rb"[A-Za-z0-9" + letters + rb"'&-]*+" + initial
    more = _SMALL_WORDS + rb"(?:" + word + rb"|\d[\w-]*+)"
    return re.compile(word + rb"(?: (?=[A-Z\xc3-\xc50-9otdvlab&])" + more + rb"){0,9}+")


_NAME = _name_pattern(rb"[A-Z\xc3-\xc5](?<![A-Za-z\x80-\xff][\x80-\xff])", rb"\x80-\xff")
_ASCII_NAME = _name_pattern(rb"[A-Z]", b"")  # the same for ASCII text, a sixth faster


def capitalized_runs(raw: bytes) -> list[bytes]:
    """Capitalized runs of an encoded text, including sentence openers and repeats."""
    return (_ASCII_NAME if raw.isascii() else _NAME).findall(raw)


def unique_names(runs: Iterable[bytes]) -> dict[bytes, bytes]:
    """Each name once, in order: its search key, and the run without sentence openers."""
    found: dict[bytes, bytes] = {}
    for run in dict.fromkeys(runs):
        low = run.lower()
        first, _, rest = low.partition(b" ")
        while rest and first in SENTENCE_OPENERS:
            run, low = run[-len(rest) :], rest
            first, _, rest = low.partition(b" ")
        if not low.replace(b" ", b"").isalnum():  # most need no normalizing
            low = b" ".join(normalize(_strip_name(run)).split())
        if len(low) > 1 and (rest or first not in SENTENCE_OPENERS):
            found.setdefault(b" %b " % low, run)
    return found


def display_name(run: bytes) -> str:
    """The name, formatted for display."""
    return _strip_name(run).decode("utf-8", "ignore")


def _strip_name(run: bytes) -> bytes:
    """Without the possessive ending, and without punctuation at either end."""
    return run.strip(b" .'-&").removesuffix(b"'s")


WORD_TABLE_KIND, WORD_TABLE_VERSION = "word table", 2
REBUILD_WORD_TABLE = "python -m suffice_research.training.word_table"
SHIPPED_WORD_TABLE = Path(__file__).parent.parent / "models" / "words"
STOP_WORD_RARITY = 0.05
_UNKNOWN = repeat(1.0)
_EPSILON = np.float32(1e-12)
_MAX_ABS = 1e4  # vectors have about unit length, rarities are shares


class WordTable:
    """A vocabulary of normalized words with a vector and a rarity each; needs no tokenizer.

    Rarity ranges from 0 (everywhere) to 1 (unknown). A plural is as rare as its singular.
    """

    def __init__(
        self, words: Sequence[bytes], rarity: npt.ArrayLike, vectors: npt.ArrayLike
    ) -> None:
        known = dict(zip(words, np.asarray(rarity, dtype=float).tolist(), strict=True))
        plurals = {word + b"s": rare for word, rare in known.items()}
        self._rarity = {**plurals, **known, **dict.fromkeys(STOP_WORDS, STOP_WORD_RARITY)}
        self._row = dict(zip(words, range(1, len(words) + 1), strict=True))
        given = np.asarray(vectors)
        nothing = np.zeros((1, given.shape[1]), dtype=given.dtype)  # row 0: an unknown word
        self._vectors = np.concatenate([nothing, given])

    @classmethod
    def load(cls, path: Path = SHIPPED_WORD_TABLE) -> WordTable:
        """Load the table in a folder; without a path, the shipped one."""
        kind, version, rebuild = WORD_TABLE_KIND, WORD_TABLE_VERSION, REBUILD_WORD_TABLE
        open_artefact(path, kind=kind, version=version, rebuild=rebuild)
        words, rarity, vectors = arrays = [
            read_array(path / f"{name}.npy", largest=_MAX_ABS, hint=rebuild)
            for name in ("words", "rarity", "vectors")
        ]
        shapes = {words.shape, rarity.shape, vectors.shape[:1]}
        if [one.dtype.kind for one in arrays] != ["S", "f", "f"] or (
            shapes != {words.shape[:1]} or vectors.ndim != 2
        ):
            raise DataError(f"the arrays in {path} do not fit together", hint=rebuild)
        return cls(words.tolist(), rarity, vectors)

    def __len__(self) -> int:
        return len(self._row)

    @property
    def dimensions(self) -> int:
        return int(self._vectors.shape[1])

    def rarities(self, words: Iterable[bytes]) -> list[float]:
        return list(map(self._rarity.get, words, _UNKNOWN))

    def vectors(self, bags: Sequence[Sequence[bytes]]) -> Floats:
        """A unit vector per bag of words: (bags, dimensions), float32; zero if no word is known."""
        if not bags:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows: list[int] = []
        starts = []
        for bag in bags:
            starts.append(len(rows))
            rows.append(0)  # reduceat needs at least one row per bag
            rows += filter(None, map(self._row.get, bag))
        sums = np.add.reduceat(self._vectors.take(rows, axis=0), starts, axis=0, dtype=np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        return np.asarray(sums / np.maximum(norms, _EPSILON)[:, None])


# Limits on the time that a hostile question can take.
MAX_QUESTION_CHARS = 4_000
MAX_QUESTION_WORDS = 24  # content words
MAX_QUESTION_NAMES = 24


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question's normalized text, its content words, and the names and numbers in it."""

    flat: bytes  # normalized, with one space between words
    tokens: list[bytes]
    content: list[bytes]
    stems: list[bytes]  # of the content words
    rarity: list[float]  # of the content words
    names: list[bytes]  # search keys
    numbers: list[bytes]  # with a space on either side
    display_names: dict[bytes, str]  # the names as written in the question
    form: bytes  # `flat` with NAME for each name: the form of the question without its subject


def parse_question(question: str, words: WordTable) -> ParsedQuestion:
    """Parse a question once, for any number of hits."""
    raw = encode_text(question[:MAX_QUESTION_CHARS])
    tokens = normalize(raw).split()
    content = [one for one in dict.fromkeys(tokens) if one not in STOP_WORDS and len(one) > 1]
    content = content[:MAX_QUESTION_WORDS]
    names = dict(islice(unique_names(capitalized_runs(raw)).items(), MAX_QUESTION_NAMES))
    flat = form = b" %b " % b" ".join(tokens)
    for name in sorted(names, key=len, reverse=True):
        form = form.replace(name, b" NAME ")
    return ParsedQuestion(
        flat,
        tokens,
        content,
        list(map(_stem, content)),
        words.rarities(content),
        list(names),
        [b" " + word + b" " for word in content if word.isdigit()],
        {name: display_name(run) for name, run in names.items()},
        form,
    )


_NO_ROLES = _word_set("members numbers users")
_LINK = rb"(?:of|that|which|who|whose|whom|where|when) "
_PHRASE = re.compile(  # "the city where"
    rb" (?:the|an?)(?= (?:(?!the |an? |" + _LINK + rb")[^A-Z ]++ ){1,4}" + _LINK + rb")"
)
_HEAD = re.compile(  # "which American filmmaker": what is asked for, not an intermediate step
    rb" (?:which|what)(?: (?!%b|(?:%b) )\S++){0,3}" % (_LINK, b"|".join(sorted(_AUXILIARIES)))
)
_DIGITS = re.compile(rb"\d+")


def question_features(questions: Sequence[ParsedQuestion]) -> Floats:
    """Counts of what makes a question complex, log(1 + count): (questions, QUESTION_COLUMNS)."""
    counts = np.array([_structure_counts(question) for question in questions], dtype=np.float32)
    return np.log1p(counts.reshape(-1, len(QUESTION_COLUMNS)))


def _structure_counts(question: ParsedQuestion) -> list[float]:
    tokens = question.tokens
    in_names = set(b"".join(question.names).split())
    plain = [token for token in tokens if token not in in_names]
    agents = sum(map(is_role_word, plain))
    possessive, of = tokens.count(b"s"), tokens.count(b"of")
    relative = _count_in(_RELATIVE_WORDS, tokens[1:])
    comparing = _count_in(COMPARISON_WORDS, plain)
    # "Which film has the director who died first, A or B": both branches are equally deep.
    compares = comparing and len(question.names) > 1 and (b"or" in tokens or b"and" in tokens)
    return [
        len(tokens), len(plain), relative, agents + possessive + relative + of,
        (2 if compares else 1) * (1 + min(agents + (possessive > 0), 3)), agents, of,
        tokens.count(b"the"), len(set(plain) - STOP_WORDS), _count_in(_PLACE_WORDS, plain),
        possessive, len(question.names), _count_in(_AUXILIARIES, plain),
        _count_in(_PREPOSITIONS, plain), comparing, _count_in(_KINSHIP_WORDS, plain),
        tokens.count(b"or"), tokens.count(b"and"), len(question.numbers),
        *_form_features(question, relative + possessive),
    ]  # fmt: skip


def _form_features(question: ParsedQuestion, signs: int) -> tuple[int, int, int, float]:
    """Phrases that point to a further step, roles that relate, and how many documents this form
    needs: at least, and likely.

    At least two. "Which film has the director who died first, A or B?" compares two named things
    through someone related to each: two chains of two, so four. Otherwise every three signs of a
    further step make one more document likely.
    """
    phrases, rest = len(_PHRASE.findall(question.form)), _HEAD.sub(b" ", question.form).split()
    roles = sum([is_role_word(word) for word in rest if word not in _NO_ROLES])
    joined = len(question.names) > 1 and (b"or" in rest or b"and" in rest)
    if joined and not COMPARISON_WORDS.isdisjoint(rest):
        least = 4 if roles else 2
        return phrases, roles, least, least
    signs += phrases + roles + _count_in(_PLACE_WORDS, rest)
    return phrases, roles, 2, min(max(2.0, 1 + signs / 3), 4.0)


def _count_in(kind: frozenset[bytes], words: Sequence[bytes]) -> int:
    return sum(map(kind.__contains__, words))


def _grams(question: ParsedQuestion) -> dict[bytes, None]:
    """Its words and word pairs, each once, with names and numbers masked."""
    words = _DIGITS.sub(b"NUMBER", question.form).split()
    return dict.fromkeys([*words, *map(b" ".join, pairwise(words))])


STRUCTURE_WEIGHT = 0.2  # of a structure column, about that of one word
QUESTION_RECORD, QUESTION_WEIGHTS = "question.json", "question.npy"
REFIT = "fit and save the gate again"
_MAX_WEIGHT = 1e6


class QuestionModel:
    """Predicts named targets (numbers, or 0/1 flags) from questions alone.

    The papers assume that hops, types and reasoning labels are given; in use, a gate has to guess
    them. This is a ridge regression over structure counts, masked words and word pairs ("the
    director of NAME") and the mean word vector. It is linear, so a prediction is a table look-up
    and takes microseconds.
    """

    def __init__(self, words: WordTable, *, strength: float = 2.0, min_count: int = 3) -> None:
        self.words, self.strength, self.min_count = words, strength, min_count
        self.targets: tuple[str, ...] = ()

    def fit(
        self, questions: Sequence[ParsedQuestion], targets: Mapping[str, npt.ArrayLike]
    ) -> QuestionModel:
        from scipy.sparse import csr_matrix, hstack  # lazy: needs the `fit` extra
        from sklearn.linear_model import Ridge

        wanted = _target_columns(targets, len(questions))
        seen = Counter(gram for question in questions for gram in _grams(question))
        kept = sorted(gram for gram, count in seen.items() if count >= self.min_count)
        idf = [math.log((1 + len(questions)) / (1 + seen[gram])) + 1 for gram in kept]
        self._set_vocabulary(kept, idf)
        at, scales, starts = self._look_up(questions)
        ends = [*starts, len(at)]
        values = np.repeat(scales, np.diff(ends)) * np.array(self._idf)[at]
        grams = csr_matrix((values, at, ends), shape=(len(questions), len(self._idf)))
        rows = question_features(questions)
        scale = STRUCTURE_WEIGHT / (rows.std(0) + 1e-6)
        structure = (rows - rows.mean(0)) * scale
        matrix = hstack([grams, structure, self._mean_vectors(questions)], format="csr")
        model = Ridge(self.strength, solver="sparse_cg", tol=1e-8).fit(matrix, wanted)
        weights = np.asarray(model.coef_, dtype=float).reshape(len(targets), -1).T
        at_structure = slice(len(self._idf), len(self._idf) + len(QUESTION_COLUMNS))
        weights[at_structure] *= scale[:, None]  # from here on they apply to raw counts
        intercept = np.asarray(model.intercept_, dtype=float).reshape(len(targets))
        self._offset = intercept - rows.mean(0) @ weights[at_structure]
        self._set_weights(weights.astype(np.float32))
        self.targets = tuple(targets)
        return self

    def predict(self, questions: Sequence[ParsedQuestion], rows: Floats | None = None) -> Floats:
        """(questions, targets). Pass their question_features as `rows` if you have them."""
        self._check_fitted()
        if not questions:
            return np.zeros((0, len(self.targets)))
        rows = question_features(questions) if rows is None else rows
        at, scales, starts = self._look_up(questions)
        grams = np.add.reduceat(self._table.take(at, axis=0), starts, axis=0)
        grams = grams * np.array(scales, dtype=np.float32)[:, None]
        meaning = multiply_rows(self._mean_vectors(questions), self._vector_weights)
        structure = multiply_rows(rows, self._structure_weights)
        return np.asarray(grams + structure + meaning + self._offset)

    def _check_fitted(self) -> None:
        if not self.targets:
            raise NotReadyError("the question model is not fitted", hint="call fit, or load one")

    def _set_vocabulary(self, grams: Sequence[bytes], idf: Sequence[float]) -> None:
        self._at = {gram: at for at, gram in enumerate(grams, start=1)}  # row 0: any other gram
        self._idf = [0.0, *idf]
        self._squares = [one * one for one in self._idf]

    def _set_weights(self, weights: Floats) -> None:
        """Split the weights; multiply those of grams by their idf in advance."""
        grams, structure = len(self._idf), len(self._idf) + len(QUESTION_COLUMNS)
        self._weights, self._structure_weights = weights, weights[grams:structure]
        idf = np.array(self._idf, dtype=np.float32)[:, None]
        self._table = np.ascontiguousarray(weights[:grams] * idf)
        self._vector_weights = weights[structure:]

    def _look_up(
        self, questions: Sequence[ParsedQuestion]
    ) -> tuple[list[int], list[float], list[int]]:
        """The known grams of all questions, the scale of each question, and where each begins."""
        at: list[int] = []
        scales, starts = [], []
        square, place = self._squares.__getitem__, self._at.get
        for question in questions:
            known = list(filter(None, map(place, _grams(question))))
            starts.append(len(at))
            scales.append(1 / math.sqrt(sum(map(square, known)) or 1.0))
            at += known or [0]
        return at, scales, starts

    def _mean_vectors(self, questions: Sequence[ParsedQuestion]) -> Floats:
        return self.words.vectors([question.tokens for question in questions])

    def save(self, folder: Path) -> None:
        """Write the model into an existing folder."""
        self._check_fitted()
        record = {
            "targets": self.targets,
            "grams": [gram.decode("utf-8", "surrogateescape") for gram in self._at],
            "idf": self._idf,
            "offset": self._offset.tolist(),
            "columns": QUESTION_COLUMNS,
            "strength": self.strength,
            "min_count": self.min_count,
        }
        write_atomically(folder / QUESTION_RECORD, json.dumps(record, sort_keys=True) + "\n")
        np.save(folder / QUESTION_WEIGHTS, self._weights)

    @classmethod
    def load(cls, folder: Path, words: WordTable) -> QuestionModel:
        """Load a model written by `save`; DataError if a file is missing or does not fit."""
        with data_errors(f"the question model in {folder}", hint=REFIT):
            record = read_json(folder / QUESTION_RECORD)
            model = cls(words, strength=record["strength"], min_count=record["min_count"])
            idf = [float(one) for one in record["idf"]]
            grams = [gram.encode("utf-8", "surrogateescape") for gram in record["grams"]]
            model.targets = tuple(record["targets"])
            model._set_vocabulary(grams, idf[1:])
            model._offset = np.array(record["offset"], dtype=float)
            weights = read_array(folder / QUESTION_WEIGHTS, largest=_MAX_WEIGHT, hint=REFIT)
            height = len(model._idf) + len(QUESTION_COLUMNS) + words.dimensions
            targets = len(model.targets)
            shapes = len(idf), model._offset.shape, weights.shape, tuple(record["columns"])
            expected = len(model._at) + 1, (targets,), (height, targets), QUESTION_COLUMNS
            if shapes != expected:
                raise ValueError(f"its columns are {shapes[:3]}, expected {expected[:3]}")
            model._set_weights(weights)
        return model


def _target_columns(targets: Mapping[str, npt.ArrayLike], questions: int) -> Floats:
    if not targets or not questions:
        raise InputError(
            f"{questions} questions with {len(targets)} targets: a question model needs both"
        )
    columns = [np.asarray(column, dtype=float) for column in targets.values()]
    for name, column in zip(targets, columns, strict=True):
        if column.shape != (questions,) or not np.isfinite(column).all():
            expected = f"expected one finite number for each of {questions} questions"
            raise InputError(f"target {name!r} has shape {column.shape}, {expected}")
    return np.column_stack(columns)
