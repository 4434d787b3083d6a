"""Agreement between retrievers: what other runs for the same question say of these hits.

A hit that several retrievers found is likelier evidence, and what only the others found may be what is missing. Runs are
compared by document id, or by text where a hit came without one, each to the depth of the list that is judged. Without another
run every column is -1: not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess.incoming import UNNAMED, Documents, Taken, take
from suffice.errors import InputError

__all__ = ["agreement", "runs_beside", "unpacked"]

Floats = npt.NDArray[np.floating[Any]]
MOST_RUNS = 16  # read of one question: an endless generator must end
HIT, WHOLE = 2, 5  # columns, as assess.features describes them


def unpacked(pair: Any) -> tuple[Any, Any, Any]:
    """Question, hits and other runs of a (question, hits) or (question, hits, others)."""
    match pair:
        case (question, hits):
            return question, hits, ()
        case (question, hits, others):
            return question, hits, others
    raise InputError(f"a pair is of type {type(pair).__name__}, expected (question, hits) or (question, hits, others)")


def runs_beside(own: Taken, others: Iterable[Iterable[Any]], documents: Documents | None = None) -> list[Taken]:
    """The other runs for the same question, each to the depth of its own hits."""
    if isinstance(others, str | bytes) or not isinstance(others, Iterable):
        raise InputError(f"others is of type {type(others).__name__}, expected a list of runs", hint="others=[hits, more hits]")
    depth = max(len(own.evidence.hits), 1)
    runs = zip(range(MOST_RUNS), others)
    return [take(own.evidence.question.text, run, documents=documents, k=depth) for _, run in runs]


def agreement(taken: Sequence[Taken], others: Sequence[Sequence[Taken]]) -> tuple[Floats, list[Floats]]:
    """Columns of each question, (questions, WHOLE), and of each hit, (hits, HIT) a question."""
    found = [_compared(own, runs) for own, runs in zip(taken, others, strict=True)]
    whole = np.array([one for one, _ in found], dtype=np.float32).reshape(-1, WHOLE)
    return whole, [hits for _, hits in found]


def _compared(own: Taken, runs: Sequence[Taken]) -> tuple[list[float], Floats]:
    k = len(own.evidence.hits)
    if not runs or not k:
        return [-1.0] * WHOLE, np.full((k, HIT), -1.0, np.float32)
    places = np.array([_places(own, run) for run in runs])  # (runs, hits), -1 where a run lacks the hit
    held = places >= 0
    best = np.where(held, 1 / (1 + np.maximum(places, 0)), 0.0).max(0)
    lengths = np.array([len(run.evidence.hits) for run in runs])
    only_there = float((lengths - held.sum(1)).mean()) / k
    order = float(np.mean([_same_order(row[row >= 0]) for row in places]))
    whole = [float(held.mean()), float(held.all(0).mean()), float((places[:, 0] == 0).mean()), order, only_there]
    return whole, np.column_stack([held.mean(0), best]).astype(np.float32)


def _places(own: Taken, run: Taken) -> list[int]:
    """Where the run has each of the hits."""
    at: dict[tuple[str, str], int] = {}
    for place, keys in enumerate(_keys(run)):
        for key in keys:
            at.setdefault(key, place)
    return [min((at[key] for key in keys if key in at), default=-1) for keys in _keys(own)]


def _keys(taken: Taken) -> list[list[tuple[str, str]]]:
    """What each hit may be known by in another run: its id, those of the hits folded into it, its text."""
    found = []
    for hit in taken.evidence.hits:
        names = [name for name in (hit.doc_id, *taken.folded.get(hit.doc_id, ())) if not name.startswith(UNNAMED)]
        text = taken.evidence.documents[hit.doc_id].text
        found.append([("id", name) for name in names] + ([("text", text)] if text else []))
    return found


def _same_order(places: npt.NDArray[np.integer[Any]]) -> float:
    """Share of pairs of shared hits that both runs rank alike; one half where there is no pair."""
    if len(places) < 2:
        return 0.5
    first, second = np.triu_indices(len(places), 1)
    return float((places[first] < places[second]).mean())
