"""Paths: the shortest chains of two to five facts from one name to another, each fact from a document of its own.

Only edges without a rival are walked, so that every step has one answer. There is one path for a pair of ends, the first among
the shortest. `sampled` takes as many of each length, and among them as many of each chain of relations, as there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from suffice.datasets.gold import draw_key
from suffice.grade.knowledge import Graph
from suffice.grade.ports import Path, Triple
from suffice.ports import Progress

__all__ = ["LONGEST", "SHORTEST", "drawn", "sampled", "shortest_paths"]

SHORTEST, LONGEST = 2, 5
T = TypeVar("T")


def shortest_paths(graph: Graph, *, longest: int = LONGEST, progress: Progress | None = None) -> list[Path]:
    """One shortest path for each pair of ends that are two to `longest` facts apart, in the order of the graph."""
    only = {subject: tuple(graph.only(subject).values()) for subject in graph.subjects}
    found: list[Path] = []
    for done, start in enumerate(only):
        found += _from(start, only, longest)
        if progress is not None and (done % 1000 == 999 or done + 1 == len(only)):
            progress("walking paths", done + 1, len(only))
    return found


def _from(start: str, only: dict[str, tuple[Triple, ...]], longest: int) -> Iterator[Path]:
    """Breadth first; a name that was reached by a shorter way is not reached again."""
    reached = {start}
    edge: list[tuple[Triple, ...]] = [()]
    for length in range(1, longest + 1):
        further: list[tuple[Triple, ...]] = []
        for held in edge:
            docs = {one.doc_id for one in held}
            for triple in only.get(held[-1].object if held else start, ()):
                # Dates and countries are no places to walk on from; the relation keeps a birth from being a death.
                end = triple.object if triple.object in only else f"{triple.relation}\0{triple.object}"
                if triple.doc_id not in docs and end not in reached:
                    reached.add(end)
                    further.append((*held, triple))
        edge = further
        if length >= SHORTEST:
            yield from map(Path, edge)


def sampled(paths: Iterable[Path], per_hop: int, *, seed: int = 42) -> list[Path]:
    """At most `per_hop` paths of each length, drawn evenly over the chains of relations that occur."""
    by_length: dict[int, dict[tuple[str, ...], list[Path]]] = defaultdict(lambda: defaultdict(list))
    for path in paths:
        by_length[len(path.triples)][tuple(one.relation for one in path.triples)].append(path)
    chosen: list[Path] = []
    for length in sorted(by_length):
        groups = [drawn(held, lambda path: repr(path.ends), seed) for _, held in sorted(by_length[length].items())]
        chosen += _in_turn(groups, per_hop)
    return chosen


def drawn(items: Sequence[T], key: Callable[[T], str], seed: int) -> list[T]:
    """The items in an order that follows from the seed and each one's key: the same wherever else it stands."""
    return sorted(items, key=lambda item: draw_key(seed, key(item)))


def _in_turn(groups: Sequence[Sequence[T]], most: int) -> list[T]:
    taken: list[T] = []
    for at in range(max(map(len, groups), default=0)):
        for group in groups:
            if at < len(group):
                taken.append(group[at])
                if len(taken) == most:
                    return taken
    return taken
