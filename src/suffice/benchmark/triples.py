"""Triples: who is related to whom, read from claims by sentence patterns.

Only claims with a known subject are read; precision counts more than recall, since one wrong fact
spoils a chain of five. Names become titles where a page of the expected kind has that title. A
sentence that names several objects gives several triples, marked as such.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from suffice.benchmark.claims import Page
from suffice.benchmark.relation_patterns import PARENT, RELATIONS, RelationMatch, match_relations
from suffice.benchmark.stage_protocols import Claim, Triple
from suffice.benchmark.vocabulary import (
    COUNTRIES,
    NATIONALITIES,
    RANKS,
    base_title,
    without_rank,
)
from suffice.text import title_key
from suffice.types import Document

_SCREEN = ("director", "film", "actor", "producer", "writer", "actress")
_PARENTHESES = {  # relation -> words in a person's title that fit it
    **dict.fromkeys(("director", "screenwriter", "producer", "cast", "creator"), _SCREEN),
    "composer": ("composer", "music", "singer"),
    "performer": ("singer", "music", "rapper", "band"),
    "author": ("writer", "author"),
}


class PageIndex:
    """The pages of a corpus by name: which title a name means."""

    def __init__(self, pages: Iterable[Page], documents: Iterable[Document] = ()) -> None:
        self.title_of = {document.doc_id: document.title.strip() for document in documents}
        self.by_title: dict[str, Page] = {}
        self.joined: set[str] = set()  # pairs of words whose "and" belongs to one name
        self._by_key: dict[str, list[str]] = defaultdict(list)
        first_names: dict[str, Counter[str]] = defaultdict(Counter)
        for page in pages:
            if page.title and page.title not in self.by_title:
                self._by_key[title_key(page.title)].append(page.title)
            if page.title and (page.title not in self.by_title or page.kind):
                self.by_title[page.title] = page
            self.joined.update(re.findall(r"[A-Z][\w-]+ and [A-Z][\w-]+", page.title))
            if page.sex:
                first_names[_first_name(page.title)][page.sex] += 1
        # First names that the corpus itself gives to one sex: three times, and nine times in ten.
        self._sex_of_name = {
            name: sex
            for name, counts in first_names.items()
            for sex, count in counts.most_common(1)
            if count >= 3 and count >= 0.9 * counts.total()
        }

    def kind(self, title: str) -> str:
        page = self.by_title.get(title)
        return page.kind if page else ""

    def sex(self, name: str) -> str:
        """By its page, its rank, or its first name; "" if none of them tells."""
        page = self.by_title.get(name)
        by_rank = (RANKS[word] for word in re.split(r"[ ,]+", name) if RANKS.get(word))
        by_name = self._sex_of_name.get(_first_name(name), "")
        return (page.sex if page else "") or next(by_rank, "") or by_name

    def find(self, name: str, kind: str = "", *, relation: str = "") -> str | None:
        """The only title that this name can mean, of pages of that kind; `kind` "" is any.

        A person whose title has a parenthesis shares the name with another: it must fit the relation.
        """
        fitting = [
            title
            for title in self._by_key.get(title_key(name), ())
            if (not kind or self.kind(title) in (kind, "")) and self.kind(title) != "list"
        ]
        if len(fitting) != 1:
            return None
        (title,) = fitting
        parenthesis = title[len(base_title(title)) :].casefold()
        if kind == "person" and parenthesis and relation:
            words = _PARENTHESES.get(relation, ())
            return title if any(word in parenthesis for word in words) else None
        return title


def _first_name(name: str) -> str:
    return without_rank(name).split(" ")[0].strip(",")


class RuleTriples:
    """Triples by patterns, for the corpus with these pages."""

    def __init__(self, pages: PageIndex) -> None:
        self.pages = pages

    def triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        return [tuple(dict.fromkeys(self._match(claim))) for claim in claims]

    def _match(self, claim: Claim) -> Iterator[Triple]:
        page = self.pages.by_title.get(claim.subject)
        if page is None or not page.kind:
            return
        first = claim.claim_id.endswith("#0")
        for match in match_relations(claim.text, page, first=first, joined=self.pages.joined):
            parents = match.relation == PARENT
            several = len(match.objects) > (2 if parents else 1)
            found = self._parents(match.objects) if parents else self._objects(match, page)
            for relation, name in found:
                if title_key(name) != title_key(claim.subject) and self._fits(relation, name):
                    yield Triple(
                        claim.subject, relation, name, claim.doc_id, claim.claim_id, several
                    )

    def _fits(self, relation: str, name: str) -> bool:
        """Whether the name can be the relation's object; a person without a page has two names."""
        if name in NATIONALITIES or name in RANKS:
            return False
        if RELATIONS[relation].object != "person" or name in self.pages.by_title:
            return True
        return " " in name and name not in COUNTRIES and not name.isupper()

    def _objects(self, match: RelationMatch, page: Page) -> Iterator[tuple[str, str]]:
        kind = RELATIONS[match.relation].object
        spouses = {("man", "woman"): "wife", ("woman", "man"): "husband"}
        for name in match.objects:
            literal = kind in ("date", "country", "name")
            title = name if literal else self._title(name, kind, match.relation)
            spouse = spouses.get((page.sex, self.pages.sex(title)))
            yield (spouse if spouse and match.relation == "spouse" else match.relation), title

    def _parents(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Father and mother, where page, rank or first name tells them apart."""
        if len(names) > 2:
            return
        titles = [self._title(name, "person", PARENT) for name in names]
        sexes = [
            self.pages.sex(title) or self.pages.sex(name) for name, title in zip(names, titles)
        ]
        if len(titles) == 2 and sexes.count("") == 1:  # one is known, so the other is too
            other = "woman" if "man" in sexes else "man"
            sexes = [sex or other for sex in sexes]
        if len(set(sexes)) == len(sexes):
            parents = {"man": "father", "woman": "mother"}
            yield from ((parents[sex], title) for sex, title in zip(sexes, titles) if sex)

    def _title(self, name: str, kind: str, relation: str) -> str:
        """The title that the name means, whole or as the first of a list of places; else the name."""
        first = name.split(",")[0] if kind in ("place", "") else name
        found = (self.pages.find(form, kind, relation=relation) for form in (name, first))
        return next((title for title in found if title is not None), name)
