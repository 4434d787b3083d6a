"""Forms beyond chains that compare: two or three facts of the same relation, each at the end of a chain of its own.

    comparison          Which film came out earlier, A or B?                            two documents
    temporal            Which of the films A, B and C was released last?                three
    bridge_comparison   Who was born first, the director of film A or B?                three
                        Which film has the director who was born later, A or B?         four
                        Who died first, the father of the director of A or ...?         five

Whoever is compared differs clearly: by a year at least, or by days where both days are known. Pairs are drawn by the seed among
the facts of one relation, so that nothing quadratic is ever held.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from suffice.benchmark.chain_questions import Wording, make_question_id
from suffice.benchmark.knowledge_graph import KnowledgeGraph, seeded_order
from suffice.benchmark.relation_patterns import RELATIONS
from suffice.benchmark.stage_protocols import GeneratedQuestion, ReasoningPath, Triple
from suffice.benchmark.triples import PageIndex
from suffice.benchmark.vocabulary import base_title
from suffice.text import date_mentions

__all__ = ["write_comparison_questions"]


@dataclass(frozen=True, slots=True)
class _End:
    """A chain that ends in a date or a country."""

    path: ReasoningPath
    when: tuple[int, int] | None  # the first and last day it can mean; None for a country

    @property
    def start(self) -> str:
        return self.path.triples[0].subject

    @property
    def last(self) -> Triple:
        return self.path.triples[-1]


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


def write_comparison_questions(
    graph: KnowledgeGraph,
    paths: Sequence[ReasoningPath],
    titles: PageIndex,
    wording: Wording,
    *,
    per_form: int,
    seed: int = 42,
) -> list[GeneratedQuestion]:
    """At most `per_form` questions of each form and number of documents."""
    single, longer = _single_ends(graph, titles), _longer_ends(paths)
    made: list[GeneratedQuestion] = []
    for ways in (
        _alike(single, single),
        _alike(longer[2], longer[2]),
        _alike(longer[3], longer[2]),
        _alike(longer[2], single),
    ):
        pairs = seeded_order(
            list(ways),
            lambda pair: f"{pair[0].start}\0{pair[1].start}\0{pair[0].last.relation}",
            seed,
        )
        made += _first(per_form, (_compared(*pair, wording) for pair in pairs))
    triples = seeded_order(
        list(_threes(single)), lambda some: "\0".join(one.start for one in some), seed
    )
    return made + _first(per_form, (_ordered(some, wording) for some in triples))


def _first(most: int, found: Iterator[GeneratedQuestion | None]) -> list[GeneratedQuestion]:
    kept: list[GeneratedQuestion] = []
    for one in found:
        if len(kept) == most:
            break
        kept += [one] if one is not None else []
    return kept


# ------------------------------------------------------------------------------------------------------ who is compared


def _single_ends(graph: KnowledgeGraph, titles: PageIndex) -> list[_End]:
    found = []
    for subject in graph.subjects:
        for relation, triple in graph.only(subject).items():
            if relation in _FIRST and titles.kind(subject) in (
                "person",
                "film",
                "company",
                "school",
                "band",
                "paper",
                "team",
            ):
                if (when := _days(triple.object)) is not None:
                    found.append(_End(ReasoningPath((triple,)), when))
            elif relation in _SAME:
                found.append(_End(ReasoningPath((triple,)), None))
    return found


def _longer_ends(paths: Sequence[ReasoningPath]) -> dict[int, list[_End]]:
    found: dict[int, list[_End]] = defaultdict(list)
    for path in paths:
        last = path.triples[-1]
        if not all(
            one.relation in RELATIONS and RELATIONS[one.relation].of for one in path.triples[:-1]
        ):
            continue
        if last.relation in _BRIDGE_FIRST and (when := _days(last.object)) is not None:
            found[len(path.triples)].append(_End(path, when))
        elif last.relation == "nationality":
            found[len(path.triples)].append(_End(path, None))
    return found


def _days(written: str) -> tuple[int, int] | None:
    mentions = date_mentions(written)
    if len(mentions) == 1:
        return mentions[0].first.toordinal(), mentions[0].last.toordinal()
    if match := re.fullmatch(
        r"(?:\d{1,2} \w+ |\w+ \d{1,2}, )?(\d{3,4})", written
    ):  # a year before 1500
        year = int(match[1])
        return date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal()
    return None


def _alike(some: Sequence[_End], others: Sequence[_End]) -> Iterator[tuple[_End, _End]]:
    """Pairs that can be compared: the same relation at the end, the same relations on the way where both have a way."""
    groups: dict[str, list[_End]] = defaultdict(list)
    for one in others:
        groups[_group(one)].append(one)
    for at, one in enumerate(some):
        fitting = groups.get(_group(one), [])
        for step in (1, 7, 31):  # a few partners each, far apart in the list
            if fitting:
                other = fitting[(at * 13 + step * 101) % len(fitting)]
                if not set(one.path.doc_ids) & set(other.path.doc_ids) and one.start != other.start:
                    yield one, other


def _group(end: _End) -> str:
    return end.last.relation


def _threes(ends: Sequence[_End]) -> Iterator[tuple[_End, ...]]:
    groups: dict[str, list[_End]] = defaultdict(list)
    for end in ends:
        if end.last.relation in ("release date", "birth date"):
            groups[end.last.relation].append(end)
    for held in groups.values():
        for at, end in enumerate(held):
            some = (end, held[(at * 17 + 211) % len(held)], held[(at * 29 + 977) % len(held)])
            if len({one.start for one in some}) == 3:
                yield some


# ------------------------------------------------------------------------------------------------------ words


def _compared(one: _End, other: _End, wording: Wording) -> GeneratedQuestion | None:
    about = f"{one.start} {other.start} {one.last.relation}"
    ways = [tuple(step.relation for step in end.path.triples[:-1]) for end in (one, other)]
    same_way = (
        ways[0] == ways[1]
        and len(ways[0]) == 1
        and ways[0][0] in ("director", "composer", "performer")
    )
    kind = wording.titles.kind(one.start)
    if one.when is None or other.when is None:
        return _same_country(one, other, wording, about, same_way)
    early = _earlier(one.when, other.when)
    if early is None or (kind != wording.titles.kind(other.start) and not any(ways)):
        return None
    first = wording.pick(("first", "last"), about) == "first"
    chosen = one if early == first else other
    if same_way and kind == wording.titles.kind(other.start):
        ask = wording.pick((_BRIDGE_FIRST if first else _BRIDGE_LAST)[one.last.relation], about)
        names = [wording.name(end.start, kind_word=False) for end in (one, other)]
        ask = ask.replace("N", kind, 1).replace("R", ways[0][0], 1)
        return _made(
            ask.replace("X", " or ".join(names)),
            base_title(chosen.start),
            "bridge_comparison",
            (one, other),
        )
    if ways[0] == ways[1] == ():
        names = [wording.name(end.start, kind_word=False) for end in (one, other)]
        answer = base_title(chosen.start)
    else:
        names = [wording.phrase(end.path.triples[:-1], end.start) for end in (one, other)]
        answer = base_title(chosen.last.subject)
    if one.last.relation == "release date" and kind != "film":
        return None
    ask = wording.pick((_FIRST if first else _LAST)[one.last.relation], about)
    return _made(
        ask.replace("X", " or ".join(names)),
        answer,
        "bridge_comparison" if any(ways) else "comparison",
        (one, other),
    )


# Whether these are one country or two depends on whom and when one asks.
_OVERLAPPING = (
    frozenset({"United Kingdom", "England", "Scotland", "Wales", "Ireland"}),
    frozenset(
        {
            "Soviet Union",
            "Russia",
            "Ukraine",
            "Georgia",
            "Armenia",
            "Estonia",
            "Latvia",
            "Lithuania",
            "Belarus",
        }
    ),
    frozenset(
        {"Yugoslavia", "Serbia", "Croatia", "Slovenia", "Bosnia and Herzegovina", "North Macedonia"}
    ),
    frozenset({"China", "Taiwan"}),
)


def _same_country(
    one: _End, other: _End, wording: Wording, about: str, same_way: bool
) -> GeneratedQuestion | None:
    if one.last.relation != other.last.relation or wording.titles.kind(
        one.start
    ) != wording.titles.kind(other.start):
        return None
    countries = {one.last.object, other.last.object}
    if len(countries) == 2 and any(countries <= part for part in _OVERLAPPING):
        return None
    answer = "yes" if len(countries) == 1 else "no"
    names = " and ".join(wording.name(end.start, kind_word=False) for end in (one, other))
    if len(one.path.triples) == len(other.path.triples) == 1:
        if one.last.relation == "work country" and wording.titles.kind(one.start) != "film":
            return None
        return _made(
            wording.pick(_SAME[one.last.relation], about).replace("X", names),
            answer,
            "comparison",
            (one, other),
        )
    if not same_way:
        return None
    noun, role = wording.titles.kind(one.start), one.path.triples[0].relation
    ask = wording.pick(_BRIDGE_SAME, about).replace("N", noun, 1).replace("R", role, 1)
    return _made(ask.replace("X", names), answer, "bridge_comparison", (one, other))


def _ordered(some: Sequence[_End], wording: Wording) -> GeneratedQuestion | None:
    """Which of three comes first or last; None where two of them could be the same day."""
    whens = [end.when for end in some if end.when is not None]
    kinds = {wording.titles.kind(end.start) for end in some}
    if len(whens) < 3 or len(kinds) > 1 or not kinds <= {"film", "person"}:
        return None
    order = sorted(range(3), key=lambda at: whens[at])
    if any(whens[a][1] >= whens[b][0] for a, b in pairwise(order)):
        return None
    about = " ".join(end.start for end in some)
    first = wording.pick(("first", "last"), about) == "first"
    names = [wording.name(end.start, kind_word=False) for end in some]
    listed = f"{names[0]}, {names[1]} and {names[2]}"
    film = kinds == {"film"}
    ask = f"Which of the films {listed} was released " if film else f"Who among {listed} was born "
    word = wording.pick(
        ("first", "earliest") if first else ("last", "most recently" if film else "latest"), about
    )
    return _made(
        f"{ask}{word}?", base_title(some[order[0 if first else 2]].start), "temporal", some
    )


def _earlier(one: tuple[int, int], other: tuple[int, int]) -> bool | None:
    """Whether the first is earlier; None where the two spans of days meet."""
    return True if one[1] < other[0] else False if other[1] < one[0] else None


def _made(text: str, answer: str, kind: str, ends: Sequence[_End]) -> GeneratedQuestion:
    docs = tuple(dict.fromkeys(doc_id for end in ends for doc_id in end.path.doc_ids))
    paths = tuple(end.path for end in ends)
    return GeneratedQuestion(
        make_question_id(text),
        text,
        answer,
        kind,
        sum(len(path.triples) for path in paths),
        paths,
        docs,
    )
