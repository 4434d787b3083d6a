"""Comparison questions: two or three facts of the same relation, each at the end of its own path.

    comparison          Which film came out earlier, A or B?                            two documents
    temporal            Which of the films A, B and C was released last?                three
    bridge_comparison   Who was born first, the director of film A or B?                three
                        Which film has the director who was born later, A or B?         four
                        Who died first, the father of the director of A or ...?         five

What is compared differs clearly: by a year at least, or by days where both days are known. Pairs are
drawn by the seed among the facts of one relation, so nothing quadratic is ever held.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import pairwise
from typing import NamedTuple

from suffice.benchmark.chain_questions import Wording, has_phrases, make_question
from suffice.benchmark.knowledge_graph import KnowledgeGraph, seeded_order
from suffice.benchmark.stage_protocols import GeneratedQuestion, ReasoningPath, Triple
from suffice.benchmark.triples import PageIndex
from suffice.benchmark.vocabulary import base_title
from suffice.text import date_mentions

__all__ = ["write_comparison_questions"]


class _End(NamedTuple):
    """A path that ends in a date or a country."""

    path: ReasoningPath
    days: tuple[int, int] | None  # the first and last day it can mean; None for a country

    @property
    def start(self) -> str:
        return self.path.triples[0].subject

    @property
    def last(self) -> Triple:
        return self.path.triples[-1]

    @property
    def way(self) -> tuple[str, ...]:
        """The relations before the last."""
        return tuple(triple.relation for triple in self.path.triples[:-1])


_DATED_KINDS = ("person", "film", "company", "school", "band", "paper", "team")
# relation -> how to ask who comes first and who last; X is "A or B".
_FIRST: dict[str, tuple[str, ...]] = {
    "birth date": ("Who was born first, X?", "Who was born earlier, X?", "Who is older, X?"),
    "death date": ("Who died first, X?", "Who died earlier, X?"),
    "release date": (
        "Which film came out first, X?",
        "Which film was released earlier, X?",
        "Which film came out earlier, X?",
    ),
    "founded": ("Which was founded first, X?", "Which was established earlier, X?"),
}
_LAST: dict[str, tuple[str, ...]] = {
    "birth date": ("Who was born later, X?", "Who is younger, X?"),
    "death date": ("Who died later, X?",),
    "release date": ("Which film was released more recently, X?", "Which film came out later, X?"),
    "founded": ("Which was founded later, X?",),
}
_SAME: dict[str, tuple[str, ...]] = {
    "nationality": (
        "Are X from the same country?",
        "Do X have the same nationality?",
        "Do X share the same nationality?",
    ),
    "work country": (
        "Are films X from the same country?",
        "Were films X both made in the same country?",
    ),
    "country": ("Are X located in the same country?", "Are X both located in the same country?"),
}
# N is the kind of page, R the relation that leads to the one who is compared.
_BRIDGE_FIRST = {
    "birth date": (
        "Which N has the R who was born first, X?",
        "Which N has the R who was born earlier, X?",
        "Which N has the R who is older, X?",
    ),
    "death date": (
        "Which N has the R who died first, X?",
        "Which N has the R who died earlier, X?",
    ),
}
_BRIDGE_LAST = {
    "birth date": ("Which N has the R who was born later, X?", "Which N whose R is younger, X?"),
    "death date": ("Which N has the R who died later, X?",),
}
_BRIDGE_SAME = (
    "Do both Ns X have the Rs from the same country?",
    "Are both Rs of Ns X from the same country?",
    "Do the Rs of Ns X share the same nationality?",
)
# Whether these are one country or two depends on whom and when you ask.
_OVERLAPPING = (
    frozenset({"United Kingdom", "England", "Scotland", "Wales", "Ireland"}),
    frozenset(
        "Soviet Union;Russia;Ukraine;Georgia;Armenia;Estonia;Latvia;Lithuania;Belarus".split(";")
    ),
    frozenset(
        "Yugoslavia;Serbia;Croatia;Slovenia;Bosnia and Herzegovina;North Macedonia".split(";")
    ),
    frozenset({"China", "Taiwan"}),
)


def write_comparison_questions(
    graph: KnowledgeGraph,
    paths: Sequence[ReasoningPath],
    wording: Wording,
    *,
    per_form: int,
    seed: int = 42,
) -> list[GeneratedQuestion]:
    """At most `per_form` questions of each form and number of documents."""
    single, longer = _single_ends(graph, wording.pages), _longer_ends(paths)
    two, three = longer[2], longer[3]
    found: list[GeneratedQuestion] = []
    for some, others in ((single, single), (two, two), (three, two), (two, single)):
        pairs = seeded_order(
            list(_pairs(some, others)),
            lambda pair: f"{pair[0].start}\0{pair[1].start}\0{pair[0].last.relation}",
            seed,
        )
        found += _take(per_form, (_compare(*pair, wording) for pair in pairs))
    threes = seeded_order(
        list(_threes(single)), lambda ends: "\0".join(end.start for end in ends), seed
    )
    return found + _take(per_form, (_order_three(ends, wording) for ends in threes))


def _take(most: int, questions: Iterable[GeneratedQuestion | None]) -> list[GeneratedQuestion]:
    found: list[GeneratedQuestion] = []
    for question in questions:
        if len(found) == most:
            break
        found += [question] if question is not None else []
    return found


# -------------------------------------------------------------------------------- what is compared


def _single_ends(graph: KnowledgeGraph, pages: PageIndex) -> list[_End]:
    found = []
    for subject in graph.subjects:
        for relation, triple in graph.only(subject).items():
            dated = relation in _FIRST and pages.kind(subject) in _DATED_KINDS
            days = _days(triple.object) if dated else None
            if days or relation in _SAME:
                found.append(_End(ReasoningPath((triple,)), days))
    return found


def _longer_ends(paths: Sequence[ReasoningPath]) -> dict[int, list[_End]]:
    found: dict[int, list[_End]] = defaultdict(list)
    for path in paths:
        *inner, last = path.triples
        if has_phrases(inner):
            days = _days(last.object) if last.relation in _BRIDGE_FIRST else None
            if days or last.relation == "nationality":
                found[len(path.triples)].append(_End(path, days))
    return found


def _days(written: str) -> tuple[int, int] | None:
    mentions = date_mentions(written)
    if len(mentions) == 1:
        return mentions[0].first.toordinal(), mentions[0].last.toordinal()
    # A year before 1500.
    if match := re.fullmatch(r"(?:\d{1,2} \w+ |\w+ \d{1,2}, )?(\d{3,4})", written):
        year = int(match[1])
        return date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal()
    return None


def _pairs(some: Sequence[_End], others: Sequence[_End]) -> Iterator[tuple[_End, _End]]:
    """Pairs with the same relation at the end and no document in common."""
    groups: dict[str, list[_End]] = defaultdict(list)
    for one in others:
        groups[one.last.relation].append(one)
    for at, one in enumerate(some):
        if fitting := groups.get(one.last.relation):
            for step in (1, 7, 31):  # a few partners each, far apart in the list
                other = fitting[(at * 13 + step * 101) % len(fitting)]
                shared = set(one.path.doc_ids) & set(other.path.doc_ids)
                if not shared and one.start != other.start:
                    yield one, other


def _threes(ends: Sequence[_End]) -> Iterator[tuple[_End, ...]]:
    groups: dict[str, list[_End]] = defaultdict(list)
    for end in ends:
        if end.last.relation in ("release date", "birth date"):
            groups[end.last.relation].append(end)
    for group in groups.values():
        for at, end in enumerate(group):
            second, third = (at * 17 + 211) % len(group), (at * 29 + 977) % len(group)
            three = (end, group[second], group[third])
            if len({one.start for one in three}) == 3:
                yield three


# ------------------------------------------------------------------------------------------- words


def _compare(one: _End, other: _End, wording: Wording) -> GeneratedQuestion | None:
    ends, relation = (one, other), one.last.relation
    about = f"{one.start} {other.start} {relation}"
    kind, other_kind = (wording.pages.kind(end.start) for end in ends)
    if one.days is None or other.days is None:
        return _same_country(one, other, wording, about)
    earlier = _is_earlier(one.days, other.days)
    if earlier is None or (kind != other_kind and not (one.way or other.way)):
        return None
    first = wording.pick(("first", "last"), about) == "first"
    chosen = one if earlier == first else other
    names = [wording.name(end.start, kind_word=False) for end in ends]
    answer = base_title(chosen.start)
    form = "bridge_comparison" if one.way or other.way else "comparison"
    if _same_role(one, other) and kind == other_kind:
        ask = wording.pick((_BRIDGE_FIRST if first else _BRIDGE_LAST)[relation], about)
        ask = ask.replace("N", kind, 1).replace("R", one.way[0], 1)
        return _question(ask.replace("X", " or ".join(names)), answer, form, ends)
    if relation == "release date" and kind != "film":
        return None
    if one.way or other.way:
        names = [wording.phrase(end.path.triples[:-1], end.start) for end in ends]
        answer = base_title(chosen.last.subject)
    ask = wording.pick((_FIRST if first else _LAST)[relation], about)
    return _question(ask.replace("X", " or ".join(names)), answer, form, ends)


def _same_role(one: _End, other: _End) -> bool:
    """Whether both are reached as the director, composer or performer of a work."""
    return one.way == other.way and one.way in (("director",), ("composer",), ("performer",))


def _same_country(one: _End, other: _End, wording: Wording, about: str) -> GeneratedQuestion | None:
    ends, relation = (one, other), one.last.relation
    kind, other_kind = (wording.pages.kind(end.start) for end in ends)
    countries = {end.last.object for end in ends}
    doubtful = len(countries) == 2 and any(countries <= part for part in _OVERLAPPING)
    if relation != other.last.relation or kind != other_kind or doubtful:
        return None
    answer = "yes" if len(countries) == 1 else "no"
    names = " and ".join(wording.name(end.start, kind_word=False) for end in ends)
    if not one.way and not other.way:
        if relation == "work country" and kind != "film":
            return None
        ask = wording.pick(_SAME[relation], about)
        return _question(ask.replace("X", names), answer, "comparison", ends)
    if not _same_role(one, other):
        return None
    ask = wording.pick(_BRIDGE_SAME, about).replace("N", kind, 1).replace("R", one.way[0], 1)
    return _question(ask.replace("X", names), answer, "bridge_comparison", ends)


def _order_three(ends: Sequence[_End], wording: Wording) -> GeneratedQuestion | None:
    """Which of three comes first or last; None where two of them could be the same day."""
    days = [end.days for end in ends if end.days is not None]
    kinds = {wording.pages.kind(end.start) for end in ends}
    if len(days) < 3 or kinds not in ({"film"}, {"person"}):
        return None
    order = sorted(range(3), key=lambda at: days[at])
    if not all(_is_earlier(days[a], days[b]) for a, b in pairwise(order)):
        return None
    about = " ".join(end.start for end in ends)
    first = wording.pick(("first", "last"), about) == "first"
    names = [wording.name(end.start, kind_word=False) for end in ends]
    listed = f"{names[0]}, {names[1]} and {names[2]}"
    film = kinds == {"film"}
    ask = f"Which of the films {listed} was released" if film else f"Who among {listed} was born"
    ways = ("first", "earliest") if first else ("last", "most recently" if film else "latest")
    answer = base_title(ends[order[0 if first else 2]].start)
    return _question(f"{ask} {wording.pick(ways, about)}?", answer, "temporal", ends)


def _is_earlier(one: tuple[int, int], other: tuple[int, int]) -> bool | None:
    """Whether the first is earlier; None where the two spans of days meet."""
    return True if one[1] < other[0] else False if other[1] < one[0] else None


def _question(text: str, answer: str, kind: str, ends: Sequence[_End]) -> GeneratedQuestion:
    return make_question(text, answer, kind, tuple(end.path for end in ends))
