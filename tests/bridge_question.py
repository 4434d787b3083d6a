"""A question of two hops, its two documents and a third that only sounds right: what the integrations of
frameworks are tried on.

The stand-in search finds the first document and the wrong one; the second document is found only by
its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suffice.gate.gate import Gate

QUESTION = "Where was the director of the film Metropolis born?"
FILM = ("Metropolis (1927 film)", "Metropolis is a 1927 German film directed by Fritz Lang.")
WRONG = ("Superman", "Superman lives in the city of Metropolis and works for a newspaper.")
DIRECTOR = ("Fritz Lang", "Fritz Lang was a film director, born in Vienna in 1890.")


def found(query: str) -> list[tuple[str, str]]:
    """Title and text of what is found."""
    return [DIRECTOR] if "Lang" in query else [FILM, WRONG]


Shown = dict[str, str]


def shown(*pairs: tuple[str, str]) -> list[Shown]:
    """The same as hits."""
    return [{"title": title, "text": text} for title, text in pairs]


def search(queries: Sequence[str]) -> list[list[Shown]]:
    return [shown(*found(query)) for query in queries]


def familiar_gate() -> Gate:
    """The fast gate, as if it had been trained on texts as short as these."""
    gate = Gate.load(preset="fast")
    return replace(gate, forms=replace(gate.forms, distances=(0.0, 1e9)))
