"""How close a given answer is to the gold answer, after SQuAD's normalisation: lower case, no punctuation, no articles.

Word overlap is the rule of MultiHop-RAG and Multi-Meta-RAG: right when one word is shared, split at blanks and otherwise as it
stands. It is lenient: "the" is a word, and an answer of many words is seldom wrong. It stands here because the papers use it.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError

__all__ = ["ANSWERS", "exact_match", "gold_contained", "normalised_answer", "token_f1", "word_overlap"]

Floats = npt.NDArray[np.float64]
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_QUOTED = re.compile(r'The answer to the question is "(.*?)"')
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised_answer(text: str) -> str:
    """As SQuAD's evaluation script does it: "The Beatles!" and "beatles" become the same."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _exact(given: str, gold: str) -> float:
    return float(normalised_answer(given) == normalised_answer(gold))


def _f1(given: str, gold: str) -> float:
    ours, theirs = normalised_answer(given).split(), normalised_answer(gold).split()
    if not ours or not theirs:  # both empty agree, one empty shares nothing
        return float(ours == theirs)
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs))


def _contained(given: str, gold: str) -> float:
    wanted = normalised_answer(gold)
    return float(bool(wanted) and f" {wanted} " in f" {normalised_answer(given)} ")


def _overlap(given: str, gold: str) -> float:
    quoted = _QUOTED.search(given)  # the sentence that MultiHop-RAG's prompt asks for
    return float(not set((quoted[1] if quoted else given).lower().split()).isdisjoint(gold.lower().split()))


def exact_match(given: Sequence[str], gold: Sequence[Sequence[str]]) -> Floats:
    """1 where an answer equals one of its gold answers: (questions,). NaN where there is no gold answer."""
    return _best(_exact, given, gold)


def token_f1(given: Sequence[str], gold: Sequence[Sequence[str]]) -> Floats:
    """Overlap of words with the closest gold answer: (questions,). NaN where there is no gold answer."""
    return _best(_f1, given, gold)


def gold_contained(given: Sequence[str], gold: Sequence[Sequence[str]]) -> Floats:
    """Accuracy: 1 where an answer holds a gold answer, word for word: (questions,). NaN where there is no gold answer."""
    return _best(_contained, given, gold)


def word_overlap(given: Sequence[str], gold: Sequence[Sequence[str]]) -> Floats:
    """MultiHop-RAG's rule: 1 where an answer shares a word with a gold answer: (questions,). NaN where there is none."""
    return _best(_overlap, given, gold)


def _best(score: Callable[[str, str], float], given: Sequence[str], gold: Sequence[Sequence[str]]) -> Floats:
    if isinstance(given, str) or any(isinstance(options, str) for options in gold):
        raise InputError("expected a list of answers and, for each, a list of gold answers; found a bare text")
    if len(given) != len(gold):
        raise InputError(f"{len(given)} answers for {len(gold)} questions: expected one each")
    best = (max((score(answer, option) for option in options), default=np.nan) for answer, options in zip(given, gold))
    return np.fromiter(best, np.float64, len(given))


ANSWERS: dict[str, Callable[[Sequence[str], Sequence[Sequence[str]]], Floats]] = {
    "em": exact_match,
    "token_f1": token_f1,
    "accuracy": gold_contained,
    "word_overlap": word_overlap,
}
