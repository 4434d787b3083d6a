"""The README's example as users have it: without titles, in one chunk, in lower case, with a gap."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from suffice.gate.gate import SHIPPED_MODELS, Gate
from suffice.gate.reader import SHIPPED_READER
from suffice.types import Action

pytestmark = pytest.mark.skipif(
    not (SHIPPED_READER.is_dir() and (SHIPPED_MODELS / "gate-standard").is_dir()),
    reason="the standard gate and its reader are not in this checkout: CONTRIBUTING makes them",
)

QUESTION = "Where was the director of the film Metropolis born?"
FILM = {"title": "Metropolis (1927 film)", "text": "A 1927 German film directed by Fritz Lang."}
LANG = {"title": "Fritz Lang", "text": "A film director, born in Vienna in 1890."}
SUPERMAN = {"title": "Superman", "text": "Superman lives in the city of Metropolis."}
# The names that the titles hold stand in the texts.
TEXTS = (
    "Metropolis is a 1927 German film directed by Fritz Lang.",
    "Fritz Lang was a film director, born in Vienna in 1890.",
)
FILES = [{"title": f"doc_{at:04}.txt", "text": text} for at, text in enumerate(TEXTS, start=412)]
COMPLETE: dict[str, tuple[str, list[Any]]] = {
    "as it is": (QUESTION, [FILM, LANG]),
    "no titles": (QUESTION, list(TEXTS)),
    "file names as titles": (QUESTION, FILES),
    "one chunk": (QUESTION, [" ".join(TEXTS)]),
    "lower case": (QUESTION.lower(), [FILM, LANG]),
    "a distractor": (QUESTION, [FILM, LANG, SUPERMAN]),
    "a capital": (
        "What is the capital of France?",
        ["Paris is the capital and largest city of France."],
    ),
}
INCOMPLETE: dict[str, tuple[str, list[Any]]] = {
    "as it is": (QUESTION, [FILM, SUPERMAN]),
    "alone": (QUESTION, [FILM]),
    "no titles": (QUESTION, [TEXTS[0], SUPERMAN["text"]]),
    "file names as titles": (QUESTION, FILES[:1]),
    "one chunk": (QUESTION, [f"{TEXTS[0]} {SUPERMAN['text']}"]),
    "lower case": (QUESTION.lower(), [FILM, SUPERMAN]),
}


@cache
def standard() -> Gate:
    return Gate.load()


@pytest.mark.parametrize("given", COMPLETE.values(), ids=COMPLETE)
def test_a_complete_example_is_answered(given: tuple[str, list[Any]]) -> None:
    verdict = standard().check(*given)
    assert verdict.action is Action.ANSWER, str(verdict)
    assert not verdict.missing


@pytest.mark.parametrize("given", INCOMPLETE.values(), ids=INCOMPLETE)
def test_with_the_second_document_missing_none_is_answered(given: tuple[str, list[Any]]) -> None:
    verdict = standard().check(*given)
    assert verdict.action is not Action.ANSWER, str(verdict)
