"""The knowledge graph: triples as edges, and the links that the texts leave out.

Names of one thing are found inside a cluster of claims, where names that look alike also speak of the same matter. *Exactly*
equivalent names are merged everywhere. *Contextually* equivalent ones (a short name that means one page only here) get each
other's edges of that cluster mirrored. Only edges that are unambiguous carry a question: `Graph.only` says whether a subject
has exactly one object in a relation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from suffice.grade.patterns import other_names
from suffice.grade.ports import Claim, Equivalence, Triple
from suffice.grade.relations import leads_to
from suffice.grade.triples import Titles
from suffice.grade.vocabulary import RANKS, bare, without_rank
from suffice.text import title_key, tokens

__all__ = ["Graph", "RuleEquivalences", "graph_of", "linked"]

_SMALL = frozenset("of the de von van der and in la le".split()) | {word.casefold().strip(".") for word in RANKS}


class RuleEquivalences:
    """Equivalence by rules: the same words but for ranks, a name that the page itself gives, an acronym, a short form."""

    def __init__(self, titles: Titles) -> None:
        self.titles = titles
        self._same_words: dict[frozenset[str], set[str]] = defaultdict(set)
        self._opens: dict[str, set[str]] = defaultdict(set)
        for title in titles.page:
            key = title_key(title).split()
            if bare(title) == title or titles.kind(title) != "person":  # a parenthesis says that others have that name
                self._same_words[_content(title)].add(title)
            for length in range(2, len(key)):
                self._opens[" ".join(key[:length])].add(title)

    def equivalences(self, cluster: int, triples: Sequence[Triple], claims: Sequence[Claim]) -> list[Equivalence]:
        here = {one.subject for one in triples} | {claim.subject for claim in claims if claim.subject}
        stated = self._stated(claims)
        found = []
        for triple in triples:
            name = triple.object
            if name in self.titles.page or leads_to(triple.relation) not in ("person", ""):
                continue
            alike = {title for title in self._same_words.get(_content(name), ()) if not _ranks_differ(name, title)}
            exact = (alike | stated.get(title_key(name), set())) & here
            if len(exact) == 1 and len(_content(name)) > 1:
                found.append(Equivalence((exact.pop(), name), always=True, cluster=cluster))
            elif not exact:
                short = self._opens.get(title_key(without_rank(name)), set())
                if len(short) == 1 and short <= here and self.titles.kind(next(iter(short))) == "person":
                    found.append(Equivalence((next(iter(short)), name), always=False, cluster=cluster))
        return list(dict.fromkeys(found))

    def _stated(self, claims: Sequence[Claim]) -> dict[str, set[str]]:
        """Other names that pages give their own subject: before the first verb, behind "known as", as an acronym."""
        stated: dict[str, set[str]] = defaultdict(set)
        for claim in claims:
            if claim.subject and claim.claim_id.endswith("#0"):
                for name in other_names(claim.text):
                    stated[title_key(name)].add(claim.subject)
        return stated


def _ranks_differ(name: str, other: str) -> bool:
    """A princess is not the duchess of the same name and place."""
    mine, theirs = ({word for word in re.split(r"[ ,]+", one) if word in RANKS} for one in (name, other))
    return bool(mine and theirs and not mine & theirs)


def _content(name: str) -> frozenset[str]:
    return frozenset(tokens(bare(name))) - _SMALL


# ------------------------------------------------------------------------------------------------------ links


def linked(
    triples: Iterable[Triple], equivalences: Iterable[Equivalence], clusters: Mapping[str, Sequence[int]]
) -> list[Triple]:
    """The triples with equal names merged, and with the mirrored edges of names that are equal in their cluster."""
    always: dict[str, set[str]] = defaultdict(set)
    within: dict[tuple[int, str], set[str]] = defaultdict(set)
    for one in equivalences:
        for name in one.names[1:]:
            (always[name] if one.always else within[one.cluster, name]).add(one.names[0])
    merged = {name: next(iter(chosen)) for name, chosen in always.items() if len(chosen) == 1}
    found: dict[Triple, None] = {}
    for triple in triples:
        subject, object_ = merged.get(triple.subject, triple.subject), merged.get(triple.object, triple.object)
        moved = (subject, object_) != (triple.subject, triple.object)
        found.setdefault(replace(triple, subject=subject, object=object_, link="exact" if moved else triple.link))
        for cluster in clusters.get(triple.claim_id, ()):
            mirrors = within.get((cluster, triple.object), set())
            if not moved and len(mirrors) == 1:
                found.setdefault(replace(triple, object=next(iter(mirrors)), link="context"))
    return list(found)


# ------------------------------------------------------------------------------------------------------ graph

_MIRRORED = {"husband": "wife", "wife": "husband", "spouse": "spouse", "sibling": "sibling"}


class Graph:
    """Edges by subject and relation, and which of them are the only ones."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._edges: dict[str, dict[str, list[Triple]]] = defaultdict(lambda: defaultdict(list))
        for triple in dict.fromkeys(triples):
            self._edges[triple.subject][triple.relation].append(triple)

    def __len__(self) -> int:
        return sum(len(held) for by_relation in self._edges.values() for held in by_relation.values())

    @property
    def subjects(self) -> list[str]:
        return list(self._edges)

    def edges(self, subject: str, relation: str) -> list[Triple]:
        return list(self._edges.get(subject, {}).get(relation, ()))

    def only(self, subject: str) -> dict[str, Triple]:
        """Relation -> the one edge of this subject, for the relations in which it has exactly one object."""
        found = {}
        for relation, held in self._edges.get(subject, {}).items():
            chosen = _fullest(held)
            if chosen is not None:
                found[relation] = chosen
        return found

    def objects(self, subject: str) -> set[str]:
        """Everything that the subject has an edge to."""
        return {one.object for held in self._edges.get(subject, {}).values() for one in held}


def graph_of(triples: Iterable[Triple], titles: Titles) -> Graph:
    """The graph of the triples that can be true; marriages and siblings also lead back, on the word of the same document."""
    held = list(triples)
    years = _years(held)
    held = [one for one in held if _possible(one, years, titles)]
    back = []
    for one in held:
        if one.relation in _MIRRORED and one.object in titles.page and not one.several:
            relation = _MIRRORED[one.relation]
            back.append(replace(one, subject=one.object, relation=relation, object=one.subject))
    return Graph([*held, *back])


_Years = dict[tuple[str, str], int]
_AGES = {  # relation -> what of subject and object is compared, and how many years the object may be older
    "father": ("birth date", "birth date", 13, 80),
    "mother": ("birth date", "birth date", 12, 60),
    "child": ("birth date", "birth date", -80, -12),
    **dict.fromkeys(("husband", "wife", "spouse"), ("birth date", "birth date", -60, 60)),
    "sibling": ("birth date", "birth date", -40, 40),
    **dict.fromkeys(("director", "screenwriter", "producer", "cast"), ("release date", "birth date", 8, 95)),
}


def _years(triples: Iterable[Triple]) -> _Years:
    found: _Years = {}
    for one in triples:
        if leads_to(one.relation) == "date" and (match := re.search(r"\b\d{3,4}$|\b[12]\d{3}\b", one.object)):
            found[one.subject, one.relation] = int(match.group())
    return found


def _possible(triple: Triple, years: _Years, titles: Titles) -> bool:
    """Whether dates and professions of both ends allow it: a namesake of another time or trade is somebody else."""
    page = titles.page.get(triple.object)
    if page is None or page.kind != "person":
        return True
    trade = _TRADES.get(triple.relation)
    if trade is not None and trade.search(page.defined) is None:
        return False
    if triple.relation not in _AGES:
        return True
    mine, other, least, most = _AGES[triple.relation]
    first, second = years.get((triple.subject, mine)), years.get((triple.object, other))
    if first is None or second is None:
        # Two plain words may be anybody's name; ranks, places and numbers make a name one person's.
        return trade is not None or re.search(r",| of |[IVX]{2,}|\d", triple.object) is not None
    return least <= first - second <= most


_SCREEN = re.compile(
    r"director|film|act(?:or|ress)|writer|producer|cinema|animat|television|theat|comedian|editor|dramatist|playwright"
)
_MUSIC = re.compile(r"compos|music|sing|song|pianist|conductor|rapper|guitarist|band|lyricist|artist|producer")
_TRADES = {
    **dict.fromkeys(("director", "producer", "cast"), _SCREEN),
    "screenwriter": re.compile(f"{_SCREEN.pattern}|author|novelist|journalist|poet"),
    "author": re.compile(
        r"writer|author|novelist|poet|journalist|playwright|dramatist|songwriter|compos|sing|essayist|histor|philosoph"
    ),
    "composer": _MUSIC,
    "performer": _MUSIC,
}


def _fullest(held: Sequence[Triple]) -> Triple | None:
    """The edge whose object says most, if all others say the same with less: "1904" and "2 June 1904"; None otherwise."""
    if any(one.several for one in held):
        return None
    best = max(held, key=lambda one: (len(tokens(one.object)), one.link == "", one.doc_id, one.claim_id))
    words = set(tokens(best.object))
    return best if all(_within(one.object, words) for one in held) else None


def _within(name: str, words: set[str]) -> bool:
    mine = set(tokens(name))
    return bool(mine) and mine <= words
