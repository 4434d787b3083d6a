"""What a question asks for, from its words alone: how many documents it needs, of which kind it is, how such questions fare.

The papers take hops, types and reasoning labels as given; a deployed gate has to guess them. One linear model with several
outputs does: counts of structure words, masked word pairs ("the director of NAME"), and the mean of the words' static vectors.
Being linear it is a table of weights, so it costs microseconds and needs no runtime.
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

from suffice.assess.reading import KINSHIP, QUIET, Asked, is_agent
from suffice.assess.words import Words
from suffice.errors import DataError, InputError, NotReadyError
from suffice.files import read_json_object, write_atomically

__all__ = ["QUESTION_COLUMNS", "QuestionModel", "question_rows"]

Floats = npt.NDArray[np.floating[Any]]
STRUCTURE = 0.2  # a structure column's weight beside the words: about that of one word
RECORD, WEIGHTS = "question.json", "question.npy"
REFIT = "fit and save the gate again"

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

QUESTION_COLUMNS = (
    "tokens", "plain", "relative", "chain", "branches", "agents", "of", "the", "loose", "places", "possessive", "names",
    "auxiliaries", "prepositions", "comparing", "kin", "or", "and", "numbers",
)  # fmt: skip


def question_rows(questions: Sequence[Asked]) -> Floats:
    """Counts of what makes a question long-winded, as log(1 + count): (questions, QUESTION_COLUMNS)."""
    return np.log1p(np.array([_counts(asked) for asked in questions], dtype=np.float32).reshape(-1, len(QUESTION_COLUMNS)))


def _counts(asked: Asked) -> list[float]:
    tokens = asked.tokens
    told = b"".join(asked.names)
    plain = [token for token in tokens if b" " + token + b" " not in told]
    agents = sum([is_agent(token) for token in plain])
    possessive = tokens.count(b"s")
    relative = sum([token in _RELATIVE for token in tokens[1:]])
    comparing = sum([token in _COMPARING for token in plain])
    of = tokens.count(b"of")
    # "Which film has the director who died first, A or B": every branch has to be walked, as deep as the relations go.
    branches = 2 if comparing and len(asked.names) > 1 and (b"or" in tokens or b"and" in tokens) else 1
    return [
        len(tokens), len(plain), relative, agents + possessive + relative + of,
        branches * (1 + min(agents + (possessive > 0), 3)), agents, of, tokens.count(b"the"),
        len({token for token in plain if token not in QUIET}), sum([token in _PLACES for token in plain]), possessive,
        len(asked.names), sum([token in _AUXILIARIES for token in plain]),
        sum([token in _PREPOSITIONS for token in plain]), comparing, sum([token in KINSHIP for token in plain]),
        tokens.count(b"or"), tokens.count(b"and"), len(asked.numbers),
    ]  # fmt: skip


class QuestionModel:
    """Guesses named targets (numbers, or 0/1 flags) from questions alone."""

    def __init__(self, words: Words, *, strength: float = 2.0, min_count: int = 3) -> None:
        self.words, self.strength, self.min_count = words, strength, min_count
        self.targets: tuple[str, ...] = ()

    def fit(self, questions: Sequence[Asked], targets: Mapping[str, npt.ArrayLike]) -> QuestionModel:
        from scipy.sparse import csr_matrix, hstack  # late: checking needs neither these nor scikit-learn
        from sklearn.linear_model import Ridge

        wanted = _columns(targets, len(questions))
        seen = Counter(gram for asked in questions for gram in set(_grams(asked)))
        kept = sorted(gram for gram, count in seen.items() if count >= self.min_count)
        self._at = {gram: at for at, gram in enumerate(kept, start=1)}  # row 0 is every other one: nothing
        self._idf = [0.0, *(math.log((1 + len(questions)) / (1 + seen[gram])) + 1 for gram in kept)]
        at, values, starts = self._said(questions)
        grams = csr_matrix((values, at, [*starts, len(at)]), shape=(len(questions), len(self._idf)))
        rows = question_rows(questions)
        scale = STRUCTURE / (rows.std(0) + 1e-6)
        matrix = hstack([grams, (rows - rows.mean(0)) * scale, self._meant(questions)], format="csr")
        model = Ridge(self.strength, solver="sparse_cg", tol=1e-8).fit(matrix, wanted)
        weights = np.asarray(model.coef_, dtype=float).reshape(len(targets), -1).T
        structure = slice(len(self._idf), len(self._idf) + len(QUESTION_COLUMNS))
        weights[structure] *= scale[:, None]  # from here on they meet counts as they are
        self._offset = np.asarray(model.intercept_, dtype=float).reshape(len(targets)) - rows.mean(0) @ weights[structure]
        self._weights = weights.astype(np.float32)
        self.targets = tuple(targets)
        return self

    def predict(self, questions: Sequence[Asked], rows: Floats | None = None) -> Floats:
        """(questions, targets). `rows` are their question_rows, where they are at hand."""
        if not self.targets:
            raise NotReadyError("the question model is not fitted", hint="call fit, or load one")
        if not questions:
            return np.zeros((0, len(self.targets)))
        rows = question_rows(questions) if rows is None else rows
        at, values, starts = self._said(questions)
        said = np.add.reduceat(self._weights[at] * np.array(values, dtype=np.float32)[:, None], starts, axis=0)
        structure, words = len(self._idf), len(self._idf) + len(QUESTION_COLUMNS)
        meant = self._meant(questions) @ self._weights[words:]
        return np.asarray(said + rows @ self._weights[structure:words] + meant + self._offset)

    def save(self, folder: Path) -> None:
        """Write the model into an existing folder."""
        if not self.targets:
            raise NotReadyError("the question model is not fitted", hint="call fit first")
        words = [gram.decode("utf-8", "surrogateescape") for gram in self._at]
        plain = {"targets": self.targets, "grams": words, "idf": self._idf, "offset": self._offset.tolist()}
        settings = {"columns": QUESTION_COLUMNS, "strength": self.strength, "min_count": self.min_count}
        write_atomically(folder / RECORD, json.dumps({**plain, **settings}, sort_keys=True) + "\n")
        np.save(folder / WEIGHTS, self._weights)

    @classmethod
    def load(cls, folder: Path, words: Words) -> QuestionModel:
        """A model that `save` wrote; DataError where a file is missing or does not fit the others."""
        try:
            told = {entry.key: entry.value for entry in read_json_object(folder / RECORD)}
            model = cls(words, strength=told["strength"], min_count=told["min_count"])
            model._at = {gram.encode("utf-8", "surrogateescape"): at for at, gram in enumerate(told["grams"], start=1)}
            model._idf, model.targets = [float(one) for one in told["idf"]], tuple(told["targets"])
            model._offset = np.array(told["offset"], dtype=float)
            model._weights = np.load(folder / WEIGHTS, allow_pickle=False)
            height = len(model._at) + 1 + len(QUESTION_COLUMNS) + words.dimensions
            shapes = (len(model._idf), model._offset.shape, model._weights.shape, tuple(told["columns"]))
        except (InputError, OSError, ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
            raise DataError(f"the question model in {folder} cannot be read: {error!r}", hint=REFIT) from error
        targets = len(model.targets)
        if shapes != (len(model._at) + 1, (targets,), (height, targets), QUESTION_COLUMNS):
            raise DataError(f"the question model in {folder} has other columns than this suffice", hint=REFIT)
        return model

    def _said(self, questions: Sequence[Asked]) -> tuple[list[int], list[float], list[int]]:
        """The grams of all questions: their places, their weights, and where each question begins."""
        at: list[int] = []
        values: list[float] = []
        starts = []
        for asked in questions:
            starts.append(len(at))
            terms = self._terms(asked)
            at += terms[0]
            values += terms[1]
        return at, values, starts

    def _meant(self, questions: Sequence[Asked]) -> Floats:
        return self.words.vectors([asked.tokens for asked in questions])

    def _terms(self, asked: Asked) -> tuple[list[int], list[float]]:
        """The places and weights of the question's grams, as a vector of length one; at least one place."""
        found = [(at, count) for gram, count in Counter(_grams(asked)).items() if (at := self._at.get(gram))]
        values = [(1 + math.log(count)) * self._idf[at] for at, count in found]
        norm = math.sqrt(sum([value * value for value in values])) or 1.0
        return [at for at, _ in found] or [0], [value / norm for value in values] or [0.0]


def _columns(targets: Mapping[str, npt.ArrayLike], questions: int) -> Floats:
    if not targets or not questions:
        raise InputError(f"{questions} questions with {len(targets)} targets: a question model needs some of both")
    columns = [np.asarray(column, dtype=float) for column in targets.values()]
    for name, column in zip(targets, columns, strict=True):
        if column.shape != (questions,) or not np.isfinite(column).all():
            raise InputError(f"target {name!r} has shape {column.shape}, expected one finite number for each of {questions}")
    return np.column_stack(columns)


def _grams(asked: Asked) -> list[bytes]:
    """Words and word pairs with the names and numbers masked: the form of the question, not its subject."""
    flat = asked.flat
    for name in sorted(asked.names, key=len, reverse=True):
        flat = flat.replace(name, b" NAME ")
    words = re.sub(rb"\d+", b"NUMBER", flat).split()
    return words + [first + b" " + second for first, second in pairwise(words)]
