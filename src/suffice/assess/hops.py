"""What a question asks for, from its words alone: how many documents it needs, of which kind it is, how such questions fare.

The papers take hops, types and reasoning labels as given; a deployed gate has to guess them. One linear model with several
outputs does: counts of structure words, masked word pairs ("the director of NAME"), and the mean of the words' static vectors.
Being linear it is a table of what each word and pair adds, so it costs microseconds and needs no runtime.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess.asking import Asked
from suffice.assess.folding import KINSHIP, QUIET, is_agent
from suffice.assess.words import Words
from suffice.errors import DataError, InputError, NotReadyError
from suffice.files import read_json_object, write_atomically
from suffice.files.weights import read_array

__all__ = ["QUESTION_COLUMNS", "QuestionModel", "question_rows"]

Floats = npt.NDArray[np.floating[Any]]
STRUCTURE = 0.2  # a structure column's weight beside the words: about that of one word
RECORD, WEIGHTS = "question.json", "question.npy"
_HEAVIEST = 1e6  # a ridge's weights are small
REFIT = "fit and save the gate again"
_DIGITS = re.compile(rb"\d+")

_COMPARING = frozenset(
    b"older younger first later earlier more longer higher larger greater taller shorter bigger smaller less fewer same both "
    b"different recently oldest youngest".split()
)
_RELATIVE = frozenset(b"that which who whose whom where when".split())
_PREPOSITIONS = frozenset(b"of in by from at on with for to".split())
_AUXILIARIES = frozenset(b"is was were are did does do has have had".split())
_PLACES = frozenset(
    b"country city state place county located capital province region district municipality birthplace town continent".split()
)
_NO_ROLES = frozenset(b"members numbers users".split())
_ON = rb"(?:of|that|which|who|whose|whom|where|when) "
_PHRASE = re.compile(rb" (?:the|an?)(?= (?:(?!the |an? |" + _ON + rb")[^A-Z ]++ ){1,4}" + _ON + rb")")  # "the city where"
# "which American filmmaker": what is asked for, not a step on the way there.
_HEAD = re.compile(rb" (?:which|what)(?: (?!" + _ON + rb"|(?:" + b"|".join(sorted(_AUXILIARIES)) + rb") )\S++){0,3}")

QUESTION_COLUMNS = (
    "tokens", "plain", "relative", "chain", "branches", "agents", "of", "the", "loose", "places", "possessive", "names",
    "auxiliaries", "prepositions", "comparing", "kin", "or", "and", "numbers", "phrases", "roles", "least", "likely",
)  # fmt: skip


def question_rows(questions: Sequence[Asked]) -> Floats:
    """Counts of what makes a question long-winded, as log(1 + count): (questions, QUESTION_COLUMNS)."""
    return np.log1p(np.array([_counts(asked) for asked in questions], dtype=np.float32).reshape(-1, len(QUESTION_COLUMNS)))


def _counts(asked: Asked) -> list[float]:
    tokens = asked.tokens
    told = set(b"".join(asked.names).split())
    plain = [token for token in tokens if token not in told]
    agents = sum(map(is_agent, plain))
    possessive, of = tokens.count(b"s"), tokens.count(b"of")
    relative = _how_many(_RELATIVE, tokens[1:])
    comparing = _how_many(_COMPARING, plain)
    # "Which film has the director who died first, A or B": every branch has to be walked, as deep as the relations go.
    branches = 2 if comparing and len(asked.names) > 1 and (b"or" in tokens or b"and" in tokens) else 1
    return [
        len(tokens), len(plain), relative, agents + possessive + relative + of,
        branches * (1 + min(agents + (possessive > 0), 3)), agents, of, tokens.count(b"the"),
        len(set(plain) - QUIET), _how_many(_PLACES, plain), possessive, len(asked.names), _how_many(_AUXILIARIES, plain),
        _how_many(_PREPOSITIONS, plain), comparing, _how_many(KINSHIP, plain), tokens.count(b"or"), tokens.count(b"and"),
        len(asked.numbers), *_form(asked, relative + possessive),
    ]  # fmt: skip


def _form(asked: Asked, signs: int) -> tuple[int, int, int, float]:
    """Phrases that point on, roles that relate, and how many documents such a form needs: at least, and likely.

    Two at least. Where two named things are compared through someone related to each, as in "Which film has the director who
    died first, A or B?", there are two chains of two: four. Else every three signs of a further step make one more likely.
    """
    phrases, rest = len(_PHRASE.findall(asked.form)), _HEAD.sub(b" ", asked.form).split()
    roles = sum([is_agent(word) for word in rest if word not in _NO_ROLES])
    if len(asked.names) > 1 and (b"or" in rest or b"and" in rest) and not _COMPARING.isdisjoint(rest):
        least = 4 if roles else 2
        return phrases, roles, least, least
    signs += phrases + roles + _how_many(_PLACES, rest)
    return phrases, roles, 2, min(max(2.0, 1 + signs / 3), 4.0)


def _how_many(kind: frozenset[bytes], words: Sequence[bytes]) -> int:
    return sum(map(kind.__contains__, words))


class QuestionModel:
    """Guesses named targets (numbers, or 0/1 flags) from questions alone."""

    def __init__(self, words: Words, *, strength: float = 2.0, min_count: int = 3) -> None:
        self.words, self.strength, self.min_count = words, strength, min_count
        self.targets: tuple[str, ...] = ()

    def fit(self, questions: Sequence[Asked], targets: Mapping[str, npt.ArrayLike]) -> QuestionModel:
        from scipy.sparse import csr_matrix, hstack  # late: checking needs neither these nor scikit-learn
        from sklearn.linear_model import Ridge

        wanted = _columns(targets, len(questions))
        seen = Counter(gram for asked in questions for gram in _grams(asked))
        kept = sorted(gram for gram, count in seen.items() if count >= self.min_count)
        self._know(kept, [math.log((1 + len(questions)) / (1 + seen[gram])) + 1 for gram in kept])
        at, scales, starts = self._said(questions)
        values = np.repeat(scales, np.diff([*starts, len(at)])) * np.array(self._idf)[at]
        said = csr_matrix((values, at, [*starts, len(at)]), shape=(len(questions), len(self._idf)))
        rows = question_rows(questions)
        scale = STRUCTURE / (rows.std(0) + 1e-6)
        matrix = hstack([said, (rows - rows.mean(0)) * scale, self._meant(questions)], format="csr")
        model = Ridge(self.strength, solver="sparse_cg", tol=1e-8).fit(matrix, wanted)
        weights = np.asarray(model.coef_, dtype=float).reshape(len(targets), -1).T
        structure = slice(len(self._idf), len(self._idf) + len(QUESTION_COLUMNS))
        weights[structure] *= scale[:, None]  # from here on they meet counts as they are
        self._offset = np.asarray(model.intercept_, dtype=float).reshape(len(targets)) - rows.mean(0) @ weights[structure]
        self._weigh(weights.astype(np.float32))
        self.targets = tuple(targets)
        return self

    def predict(self, questions: Sequence[Asked], rows: Floats | None = None) -> Floats:
        """(questions, targets). `rows` are their question_rows, where they are at hand."""
        if not self.targets:
            raise NotReadyError("the question model is not fitted", hint="call fit, or load one")
        if not questions:
            return np.zeros((0, len(self.targets)))
        rows = question_rows(questions) if rows is None else rows
        at, scales, starts = self._said(questions)
        said = np.add.reduceat(self._table.take(at, axis=0), starts, axis=0) * np.array(scales, dtype=np.float32)[:, None]
        return np.asarray(said + rows @ self._structure + self._meant(questions) @ self._words + self._offset)

    def _know(self, grams: Sequence[bytes], idf: Sequence[float]) -> None:
        self._at = {gram: at for at, gram in enumerate(grams, start=1)}  # row 0 is every other one: nothing
        self._idf = [0.0, *idf]
        self._squares = [one * one for one in self._idf]

    def _weigh(self, weights: Floats) -> None:
        """Split the weights, with what each gram adds said beforehand."""
        grams = len(self._idf)
        self._weights, self._structure = weights, weights[grams : grams + len(QUESTION_COLUMNS)]
        self._table = np.ascontiguousarray(weights[:grams] * np.array(self._idf, dtype=np.float32)[:, None])
        self._words = weights[grams + len(QUESTION_COLUMNS) :]

    def _said(self, questions: Sequence[Asked]) -> tuple[list[int], list[float], list[int]]:
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

    def _meant(self, questions: Sequence[Asked]) -> Floats:
        """The mean of the words' vectors, and beside it the encoder's vector of a question that has one."""
        vectors = self.words.vectors([asked.tokens for asked in questions])
        meant = [asked.meant for asked in questions if asked.meant is not None]
        return np.column_stack([vectors, np.stack(meant)]) if meant else vectors

    def save(self, folder: Path) -> None:
        """Write the model into an existing folder."""
        if not self.targets:
            raise NotReadyError("the question model is not fitted", hint="call fit first")
        words = [gram.decode("utf-8", "surrogateescape") for gram in self._at]
        plain = {"targets": self.targets, "grams": words, "idf": self._idf, "offset": self._offset.tolist()}
        settings = {"columns": QUESTION_COLUMNS, "strength": self.strength, "min_count": self.min_count}
        settings["meant"] = len(self._words) - self.words.dimensions
        write_atomically(folder / RECORD, json.dumps({**plain, **settings}, sort_keys=True) + "\n")
        np.save(folder / WEIGHTS, self._weights)

    @classmethod
    def load(cls, folder: Path, words: Words) -> QuestionModel:
        """A model that `save` wrote; DataError where a file is missing or does not fit the others."""
        try:
            told = {entry.key: entry.value for entry in read_json_object(folder / RECORD)}
            model = cls(words, strength=told["strength"], min_count=told["min_count"])
            idf, model.targets = [float(one) for one in told["idf"]], tuple(told["targets"])
            model._know([gram.encode("utf-8", "surrogateescape") for gram in told["grams"]], idf[1:])
            model._offset = np.array(told["offset"], dtype=float)
            weights = read_array(folder / WEIGHTS, largest=_HEAVIEST, hint=REFIT)
            height = len(model._at) + 1 + len(QUESTION_COLUMNS) + words.dimensions + told.get("meant", 0)
            shapes = (len(idf), model._offset.shape, weights.shape, tuple(told["columns"]))
        except (InputError, OSError, ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
            raise DataError(f"the question model in {folder} cannot be read: {error!r}", hint=REFIT) from error
        targets = len(model.targets)
        if shapes != (len(model._at) + 1, (targets,), (height, targets), QUESTION_COLUMNS):
            raise DataError(f"the question model in {folder} has other columns than this suffice", hint=REFIT)
        model._weigh(weights)
        return model


def _columns(targets: Mapping[str, npt.ArrayLike], questions: int) -> Floats:
    if not targets or not questions:
        raise InputError(f"{questions} questions with {len(targets)} targets: a question model needs some of both")
    columns = [np.asarray(column, dtype=float) for column in targets.values()]
    for name, column in zip(targets, columns, strict=True):
        if column.shape != (questions,) or not np.isfinite(column).all():
            raise InputError(f"target {name!r} has shape {column.shape}, expected one finite number for each of {questions}")
    return np.column_stack(columns)


def _grams(asked: Asked) -> dict[bytes, None]:
    """Words and word pairs with the names and numbers masked, each once: the form of the question, not its subject."""
    words = _DIGITS.sub(b"NUMBER", asked.form).split()
    return dict.fromkeys([*words, *map(b" ".join, pairwise(words))])
