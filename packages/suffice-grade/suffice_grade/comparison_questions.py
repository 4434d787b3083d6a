"""Comparison questions: two or three facts of the same relation, each at the end of its own path.

    comparison          Which film came out earlier, A or B?                           two documents
    temporal            Which of the films A, B and C was released last?               three
    bridge_comparison   Who was born first, the director of film A or B?               three
                        Which film has the director who was born later, A or B?        four
                        Who died first, the father of the director of A or ...?        five

The compared values differ clearly: by at least a year, or by days if both days are known. The seed
draws pairs among the facts of one relation, so memory never grows quadratically.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import pairwise
from typing import NamedTuple

from suffice.text import date_mentions
from suffice_grade.chain_questions import Wording, make_question
from suffice_grade.claims import PageIndex
from suffice_grade.knowledge_graph import KnowledgeGraph, seeded_order
from suffice_grade.relations import Relation, get_relation
from suffice_grade.stage_protocols import GeneratedQuestion, ReasoningPath, Triple
from suffice_grade.vocabulary import OVERLAPPING_COUNTRIES, base_title


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
    def words(self) -> Relation:
        return get_relation(self.last.relation)

    @property
    def way(self) -> tuple[str, ...]:
        """The relations before the last one."""
        return tuple(triple.relation for triple in self.path.triples[:-1])


_DATED_KINDS = ("person", "film", "company", "school", "band", "paper", "team")


def write_comparison_questions(
    graph: KnowledgeGraph,
    paths: Sequence[ReasoningPath],
    wording: Wording,
    *,
    per_form: int,
    seed: int = 42,
) -> list[GeneratedQuestion]:
    """Up to `per_form` questions of each form and number of documents."""
    single, longer = _single_ends(graph, wording.pages), _longer_ends(paths, wording)
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
            words = get_relation(relation)
            dated = words.first and pages.kind(subject) in _DATED_KINDS
            days = date_span(triple.object) if dated else None
            if days or words.same:
                found.append(_End(ReasoningPath((triple,)), days))
    return found


def _longer_ends(paths: Sequence[ReasoningPath], wording: Wording) -> dict[int, list[_End]]:
    found: dict[int, list[_End]] = defaultdict(list)
    for path in paths:
        *inner, last = path.triples
        words = get_relation(last.relation)
        if wording.can_phrase(inner):
            days = date_span(last.object) if words.bridge_first else None
            if days or words.bridge_same:
                found[len(path.triples)].append(_End(path, days))
    return found


def date_span(written: str) -> tuple[int, int] | None:
    """The first and last day that a written date can mean, as ordinals; None if not a date."""
    mentions = date_mentions(written)
    if len(mentions) == 1:
        return mentions[0].first.toordinal(), mentions[0].last.toordinal()
    # A year before 1500.
    if match := re.fullmatch(r"(?:\d{1,2} \w+ |\w+ \d{1,2}, )?(\d{3,4})", written):
        year = int(match[1])
        return date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal()
    return None


def _pairs(some: Sequence[_End], others: Sequence[_End]) -> Iterator[tuple[_End, _End]]:
    """Pairs with the same last relation and no document in common."""
    groups: dict[str, list[_End]] = defaultdict(list)
    for one in others:
        groups[one.last.relation].append(one)
    for at, one in enumerate(some):
        if fitting := groups.get(one.last.relation):
            for step in (1, 7, 31):  # a few partners for each, spread over the list
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
        ask = wording.pick(one.words.bridge_first if first else one.words.bridge_last, about)
        ask = ask.replace("N", kind, 1).replace("R", one.way[0], 1)
        return _question(ask.replace("X", " or ".join(names)), answer, form, ends)
    if relation == "release date" and kind != "film":
        return None
    if one.way or other.way:
        names = [wording.phrase(end.path.triples[:-1], end.start) for end in ends]
        answer = base_title(chosen.last.subject)
    ask = wording.pick(one.words.first if first else one.words.last, about)
    return _question(ask.replace("X", " or ".join(names)), answer, form, ends)


def _same_role(one: _End, other: _End) -> bool:
    """Whether both are reached as the director, composer or performer of a work."""
    return one.way == other.way and one.way in (("director",), ("composer",), ("performer",))


def _same_country(one: _End, other: _End, wording: Wording, about: str) -> GeneratedQuestion | None:
    ends, relation = (one, other), one.last.relation
    kind, other_kind = (wording.pages.kind(end.start) for end in ends)
    countries = {end.last.object for end in ends}
    doubtful = len(countries) == 2 and any(
        countries <= set(group) for group in OVERLAPPING_COUNTRIES
    )
    if relation != other.last.relation or kind != other_kind or doubtful:
        return None
    answer = "yes" if len(countries) == 1 else "no"
    names = " and ".join(wording.name(end.start, kind_word=False) for end in ends)
    if not one.way and not other.way:
        if relation == "work country" and kind != "film":
            return None
        ask = wording.pick(one.words.same, about)
        return _question(ask.replace("X", names), answer, "comparison", ends)
    if not _same_role(one, other):
        return None
    ask = (
        wording.pick(one.words.bridge_same, about).replace("N", kind, 1).replace("R", one.way[0], 1)
    )
    return _question(ask.replace("X", names), answer, "bridge_comparison", ends)


def _order_three(ends: Sequence[_End], wording: Wording) -> GeneratedQuestion | None:
    """Which of three comes first or last; None if two of them could be the same day."""
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
    """Whether the first is earlier; None if the two spans overlap."""
    return True if one[1] < other[0] else False if other[1] < one[0] else None


def _question(text: str, answer: str, kind: str, ends: Sequence[_End]) -> GeneratedQuestion:
    return make_question(text, answer, kind, tuple(end.path for end in ends))
