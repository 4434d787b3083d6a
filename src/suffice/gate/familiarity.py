"""Familiarity: how similar a question and its hits are to the training data, from 0 to 1.

    form_table        a dozen columns on how question and hits are written, not on their subject
    FormProfile       these columns at fit time: centres, their common spread, usual distances
    widen_interval    a wider interval for less familiar questions

Familiarity is the share of training questions that were at least as far from all others as this
one. 0.5 is usual; below LOW_FAMILIARITY the probability says little. `research/notes/gate.md` has
the figures behind the columns and the constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log1p
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.gate.extraction import Extraction, FeatureBatch, parse_passage, text_with_byline
from suffice.gate.features import SET_COLUMNS
from suffice.gate.hits import NormalizedHits
from suffice.gate.question import ParsedQuestion
from suffice.lexicon import FUNCTION_WORDS, OTHER_FUNCTION_WORDS, OTHER_PARTICLES
from suffice.numeric import log_odds_array, multiply_rows, sigmoid
from suffice.types import LOW_FAMILIARITY

Floats = npt.NDArray[np.floating[Any]]
COLUMNS = {  # each column, and its description in the reasons for low familiarity
    "titled": "the share of hits with a title",
    "length": "the length of the hits",
    "length_spread": "how much the length of the hits varies",
    "digits": "the share of digits in the hits",
    "names": "the share of names in the hits",
    "hits": "the number of hits",
    "distinct_titles": "how many hits have the same title",
    "question_length": "the length of the question",
    "question_names": "the share of names in the question",
    "question_rarity": "how rare the words of the question are",
    "covered": "how many words of the question are in the hits",
    "question_foreign": "the language of the question",
    "hits_foreign": "the language of the hits",
}
AT = {name: at for at, name in enumerate(COLUMNS)}
_LANGUAGE = [AT["question_foreign"], AT["hits_foreign"]]
HEAD_BYTES = 240  # of each hit, used to detect its language and digits
CLUSTERS, CLUSTER_SIZE = 16, 100  # centres at most; training questions per centre at least
CLUSTER_STEPS = 30
MIN_SPREAD = 0.05  # of a column, so that one that never varied does not dominate
SHRINKAGE, RIDGE = 0.1, 0.05  # of the common covariance, in units of the columns' spreads
DISTANCES = 200  # stored quantiles of the usual distances
DISTANCE_FOLDS = 5
MAX_NUMBER = 1e9  # in a saved profile
# Log-odds on either side at familiarity 0. Unfamiliar text misleads a gate that only counts; what
# the reader says transfers.
MAX_WIDENING, MAX_WIDENING_READ = 4.5, 1.5
WIDENING_POWER = 4  # how fast the widening falls as familiarity rises
BYTES_PER_WORD = 6
NO_TEXT = "No hit has a text or a title."
USUALLY = 0.9  # the share of training questions within a column's range


# ---- English or not

MIN_WORDS = 3  # shorter texts are not judged
MIN_SCRIPT_BYTES, SCRIPT_SHARE = 12, 0.6  # of non-ASCII bytes, for another script
_ENGLISH = frozenset(word.encode() for word in FUNCTION_WORDS)
_OTHER = frozenset(word.encode() for word in OTHER_FUNCTION_WORDS)
_PARTICLES = frozenset(word.encode() for word in OTHER_PARTICLES)
_NON_ASCII = bytes(range(0x80, 0x100))
_DIGITS = b"0123456789"


def is_foreign(flat: bytes) -> bool:
    """Whether a normalized text is clearly not English, by its script or its function words.

    Names, code, tables and very short texts have neither, and are not judged foreign.
    """
    accents = 0
    if flat.isascii():
        if b" the " in flat:  # a shortcut: true for most English texts
            return False
        words = flat.split()
    else:
        others = len(flat) - len(flat.translate(None, _NON_ASCII))
        if others >= MIN_SCRIPT_BYTES and others > SCRIPT_SHARE * len(flat.replace(b" ", b"")):
            return True
        words = flat.replace("¿".encode(), b"").split()
        accents = len(words) - sum(map(bytes.isascii, words))
    if len(words) < MIN_WORDS or _OTHER.isdisjoint(words):
        return False
    # English texts also have particles like "de la" and accents, in names. They count only in
    # addition to other function words.
    supports = accents + sum(map(_PARTICLES.__contains__, words))
    other = sum(map(_OTHER.__contains__, words)) + supports / 2
    return other > sum(map(_ENGLISH.__contains__, words))


# ---- columns


def form_table(batch: FeatureBatch) -> Floats:
    """(questions, COLUMNS); zeros if there are no hits."""
    parts = zip(batch.hits, batch.questions, batch.extractions, strict=True)
    return np.array([_form(*one) for one in parts], dtype=float).reshape(-1, len(COLUMNS))


_COVERED = SET_COLUMNS.index("cov_any")
_NO_HITS = [0.0] * len(COLUMNS)


def _form(hits: NormalizedHits, question: ParsedQuestion, extraction: Extraction) -> list[float]:
    documents = hits.documents
    k = len(documents)
    if not k:
        return _NO_HITS
    # The extraction has parsed and cached these.
    passages = [parse_passage(one.title, text_with_byline(one)) for one in documents]
    sizes = [len(one.flat) for one in passages]
    lengths = list(map(log1p, sizes))
    mean = sum(lengths) / k
    heads = [one.flat[:HEAD_BYTES] for one in passages]
    foreign = sum(map(is_foreign, heads))
    head = b"".join(heads)
    tokens = question.tokens
    return [
        sum([bool(one.title) for one in documents]) / k,
        mean,
        (sum([(one - mean) ** 2 for one in lengths]) / k) ** 0.5,
        4 * (len(head) - len(head.translate(None, _DIGITS))) / (len(head) or 1),
        100 * sum([len(one.runs) for one in passages]) / (sum(sizes) or 1),
        log1p(k),
        len({one.key for one in passages}) / k,
        log1p(len(tokens)),
        len(question.names) / (len(tokens) or 1),
        sum(question.rarity) / (len(question.rarity) or 1),
        float(extraction.figures[_COVERED]),
        float(is_foreign(question.flat)),
        foreign / k,
    ]


def in_other_language(batch: FeatureBatch) -> npt.NDArray[np.bool_]:
    """Whether the question, or at least half of its hits, is clearly not English."""
    return np.asarray((form_table(batch)[:, _LANGUAGE] >= 0.5).any(1))


# ---- the profile of the training questions


class Familiarity(NamedTuple):
    """For each question a value from 0 to 1 and, if it is low, sentences that say why."""

    values: Floats
    reasons: list[tuple[str, ...]]


@dataclass(frozen=True)
class FormProfile:
    """How the training questions and hits were written, as centres of many questions each.

    A question's distance is that to the nearest centre, with one covariance for all. `distances`
    are quantiles of the distances of training questions from centres of other questions.
    """

    means: tuple[float, ...]
    spreads: tuple[float, ...]
    centres: tuple[tuple[float, ...], ...]  # (centres, COLUMNS), standardized
    precision: tuple[tuple[float, ...], ...]  # (COLUMNS, COLUMNS)
    distances: tuple[float, ...]  # rising
    low: tuple[float, ...]  # the usual range of each column
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        rows = [self.means, self.spreads, self.low, self.high, *self.centres, *self.precision]
        numbers = [number for row in (*rows, self.distances) for number in row]
        if {len(row) for row in rows} != {len(COLUMNS)} or len(self.precision) != len(COLUMNS):
            raise InputError(f"the profile of forms must have {len(COLUMNS)} columns everywhere")
        if not self.centres or not self.distances or min(self.spreads) <= 0:
            raise InputError("the profile of forms needs centres, distances and spreads above 0")
        if not all(abs(one) <= MAX_NUMBER for one in numbers):
            raise InputError(f"a number of the profile of forms is beyond {MAX_NUMBER:,g}")
        if bool((np.diff(self.distances) < 0).any()):
            raise InputError("the distances of the profile of forms must rise")

    @classmethod
    def fit(cls, table: Floats, folds: npt.NDArray[np.integer[Any]], *, seed: int) -> FormProfile:
        """Fit on (questions, COLUMNS); each fold is measured by a fit on the others."""
        table = np.asarray(table, dtype=float)
        distances = np.concatenate(
            [
                _Space.fit(table[folds != fold], seed).distances(table[folds == fold])
                for fold in np.unique(folds)
                if (folds != fold).any()
            ]
            or [_Space.fit(table, seed).distances(table)]
        )
        space = _Space.fit(table, seed)
        outside = (1 - USUALLY) / 2
        low, high = np.quantile(table, [outside, 1 - outside], axis=0)
        kept = np.quantile(distances, np.linspace(0, 1, DISTANCES + 1))
        return cls(
            *(tuple(one.tolist()) for one in (space.means, space.spreads)),
            *(tuple(map(tuple, one.tolist())) for one in (space.centres, space.precision)),
            *(tuple(one.tolist()) for one in (kept, low, high)),
        )

    def measure(
        self, batch: FeatureBatch, any_language: npt.NDArray[np.bool_] | None = None
    ) -> Familiarity:
        """The familiarity of each question. Without hits it is 1: nothing needs to be judged.

        The language of questions that were read in `any_language` does not count.
        """
        table = form_table(batch)
        if any_language is not None:
            for column in _LANGUAGE:
                table[any_language, column] = 0.0
        known, shares = self._shares
        values = np.interp(self._space.distances(table), known, shares, right=0.0)
        blank = [one.blank == len(one.evidence.hits) for one in batch.hits]
        values[blank] = 0.0  # ids alone say nothing
        values[[not one.evidence.hits for one in batch.hits]] = 1.0
        low = (values < LOW_FAMILIARITY).tolist()
        reasons = [
            () if not is_low else (NO_TEXT,) if is_blank else self._reasons(row)
            for row, is_low, is_blank in zip(table, low, blank)
        ]
        return Familiarity(values, reasons)

    @cached_property
    def _shares(self) -> tuple[Floats, Floats]:
        """Distances, and the share of training questions at least as far away."""
        return np.array(self.distances), np.linspace(1, 0, len(self.distances))

    def _reasons(self, row: Floats) -> tuple[str, ...]:
        value = {name: float(row[at]) for name, at in AT.items()}
        low = {name: self.low[at] for name, at in AT.items()}
        high = {name: self.high[at] for name, at in AT.items()}
        sentences = []
        if value["question_foreign"] > high["question_foreign"]:
            sentences.append("The question is not in English.")
        if value["hits_foreign"] > high["hits_foreign"]:
            part = "The hits are" if value["hits_foreign"] == 1 else "Some hits are"
            sentences.append(f"{part} not in English.")
        if value["titled"] == 0 and self.means[AT["titled"]] >= 0.5:
            sentences.append("No hit has a title; most training hits have one.")
        for name, what in (("length", "The hits are"), ("question_length", "The question is")):
            sentences += _length_sentence(what, value[name], low[name], high[name])
        if value["covered"] == 0 < low["covered"]:
            sentences.append("The question shares no word with any hit.")
        if not sentences:
            most = list(COLUMNS.values())[self._space.farthest_column(row)]
            sentences.append(f"Unlike the training questions, most of all by {most}.")
        return tuple(sentences)

    @cached_property
    def _space(self) -> _Space:
        arrays = (self.means, self.spreads, self.centres, self.precision)
        return _Space(*(np.array(one, dtype=float) for one in arrays))


def _length_sentence(what: str, value: float, low: float, high: float) -> tuple[str, ...]:
    """Say that a length is unusual, but only if the rounded figures show it, too."""
    scale = BYTES_PER_WORD if what.startswith("The hits") else 1
    words, least, most = (round(np.expm1(one) / scale) for one in (value, low, high))
    if least <= words <= most:
        return ()
    form = "short" if words < least else "long"
    about = f"about {words:,} word{'' if words == 1 else 's'}"
    return (f"{what} unusually {form}: {about}, in training {least:,} to {most:,}.",)


@dataclass(frozen=True)
class _Space:
    """Standardized columns, centres in them, and the inverse of their common covariance."""

    means: Floats
    spreads: Floats
    centres: Floats
    precision: Floats

    @classmethod
    def fit(cls, table: Floats, seed: int) -> _Space:
        means, spreads = table.mean(0), np.maximum(table.std(0), MIN_SPREAD)
        rows = (table - means) / spreads
        count = max(1, min(CLUSTERS, len(rows) // CLUSTER_SIZE))
        centres, nearest = _cluster(rows, count, seed)
        apart = rows - centres[nearest]
        covariance = apart.T @ apart / len(rows)
        covariance = (1 - SHRINKAGE) * covariance + SHRINKAGE * np.diag(np.diag(covariance))
        precision = np.linalg.inv(covariance + RIDGE * np.eye(len(covariance)))
        return cls(means, spreads, centres, precision)

    def distances(self, table: Floats) -> Floats:
        """The distance to the nearest centre: (questions,)."""
        whiten, centres = self._whitened
        apart = multiply_rows(table - self.means, whiten)[:, None] - centres
        return np.asarray((apart * apart).sum(2).min(1))

    def farthest_column(self, row: Floats) -> int:
        """The column that adds most to the distance from the nearest centre."""
        whiten, centres = self._whitened
        nearest = (((row - self.means) @ whiten - centres) ** 2).sum(1).argmin()
        apart = (row - self.means) / self.spreads - self.centres[nearest]
        return int((apart**2 / np.diag(np.linalg.inv(self.precision))).argmax())

    @cached_property
    def _whitened(self) -> tuple[Floats, Floats]:
        """The map to a space where distances are Euclidean, and the centres in it."""
        root = np.linalg.cholesky(self.precision)
        return root / self.spreads[:, None], self.centres @ root


def _cluster(rows: Floats, count: int, seed: int) -> tuple[Floats, npt.NDArray[np.intp]]:
    """k-means: the centres, and the nearest one of each row. Deterministic to the byte."""
    draw = np.random.default_rng(seed)
    centres = rows[draw.integers(len(rows))][None]
    for _ in range(count - 1):  # k-means++
        away = _squares(rows, centres).min(1)
        chance = away / away.sum() if away.any() else None
        centres = np.concatenate([centres, rows[draw.choice(len(rows), p=chance)][None]])
    nearest = _squares(rows, centres).argmin(1)
    for _ in range(CLUSTER_STEPS):
        centres = np.array(
            [rows[nearest == at].mean(0) if (nearest == at).any() else centres[at]
             for at in range(count)]
        )  # fmt: skip
        nearest = _squares(rows, centres).argmin(1)
    return centres, nearest


def _squares(rows: Floats, centres: Floats) -> Floats:
    return np.asarray(((rows[:, None] - centres) ** 2).sum(2))


# ---- the interval


def widen_interval(
    low: Floats, high: Floats, familiarity: Floats, *, shift: float = 0.0, read: bool = False
) -> tuple[Floats, Floats]:
    """The interval at this familiarity, wider by at least `shift` log-odds; `read`: a reader has
    read the hits.
    """
    most = MAX_WIDENING_READ if read else MAX_WIDENING
    more = shift + most * (1 - familiarity) ** WIDENING_POWER
    return sigmoid(log_odds_array(low) - more), sigmoid(log_odds_array(high) + more)
