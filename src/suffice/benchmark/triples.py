"""Triples: who stands in which relation to whom, read out of claims by sentence patterns.

A pattern is a trigger ("directed by", "the son of") and a reader of what follows it. Only claims whose subject is known are
read; precision counts more than recall, since a chain of five facts is wrong when one of them is. Names become titles where a
page of the expected kind bears that title; a sentence that names several objects gives several triples, marked as such.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from suffice.benchmark.claims import Page
from suffice.benchmark.relation_patterns import PARENT, RELATIONS, RelationMatch, match_relations
from suffice.benchmark.stage_protocols import Claim, Triple
from suffice.benchmark.vocabulary import COUNTRIES, NATIONALITIES, RANKS, base_title, without_rank
from suffice.text import title_key
from suffice.types import Document

__all__ = ["PageIndex", "RuleTriples"]


class PageIndex:
    """The pages of a corpus by name: which title a name stands for."""

    def __init__(self, pages: Iterable[Page], documents: Iterable[Document] = ()) -> None:
        self.title_of = {document.doc_id: document.title.strip() for document in documents}
        self.page: dict[str, Page] = {}
        self._by_key: dict[str, list[str]] = {}
        self.joined: set[str] = set()
        first_names: dict[str, Counter[str]] = {}
        for page in pages:
            if page.title and page.title not in self.page:
                self._by_key.setdefault(title_key(page.title), []).append(page.title)
            if page.title and (page.title not in self.page or page.kind):
                self.page[page.title] = page
            self.joined.update(re.findall(r"[A-Z][\w-]+ and [A-Z][\w-]+", page.title))
            if page.sex:
                first_names.setdefault(_first_name(page.title), Counter())[page.sex] += 1
        # What the corpus itself calls men and women: three of a name, and nine in ten of one kind.
        most = (
            (name, counts.most_common(1)[0], counts.total()) for name, counts in first_names.items()
        )
        self._sex_of_name = {
            name: sex for name, (sex, count), all_ in most if count >= 3 and count >= 0.9 * all_
        }

    def kind(self, title: str) -> str:
        page = self.page.get(title)
        return page.kind if page else ""

    def sex(self, name: str) -> str:
        """By its page, its rank, or its first name; "" where none of them tells."""
        page = self.page.get(name)
        by_rank = (RANKS[word] for word in re.split(r"[ ,]+", name) if RANKS.get(word))
        return (
            (page.sex if page else "")
            or next(by_rank, "")
            or self._sex_of_name.get(_first_name(name), "")
        )

    def named(self, name: str, kind: str, *, relation: str = "") -> str | None:
        """The one title that this name stands for, if a page of that kind bears it; `kind` "" is any.

        A person whose title needs a parenthesis shares the name with another: the parenthesis must fit the relation.
        """
        fitting = [
            title
            for title in self._by_key.get(title_key(name), ())
            if (not kind or self.page[title].kind in (kind, "")) and self.page[title].kind != "list"
        ]
        if len(fitting) != 1:
            return None
        told = fitting[0][len(base_title(fitting[0])) :].casefold()
        if (
            kind == "person"
            and told
            and relation
            and not any(word in told for word in _TOLD.get(relation, ()))
        ):
            return None
        return fitting[0]


_SCREEN = ("director", "film", "actor", "producer", "writer", "actress")
_TOLD = {
    "director": _SCREEN, "screenwriter": _SCREEN, "producer": _SCREEN, "cast": _SCREEN, "creator": _SCREEN,
    "composer": ("composer", "music", "singer"), "performer": ("singer", "music", "rapper", "band"),
    "author": ("writer", "author"),
}  # fmt: skip


def _first_name(name: str) -> str:
    return without_rank(name).split(" ")[0].strip(",")


class RuleTriples:
    """Triples by patterns, for the corpus whose pages are given."""

    def __init__(self, titles: PageIndex) -> None:
        self.titles = titles

    def triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        return [tuple(dict.fromkeys(self._read(claim))) for claim in claims]

    def _read(self, claim: Claim) -> Iterator[Triple]:
        page = self.titles.page.get(claim.subject)
        if page is None or not page.kind:
            return
        first = claim.claim_id.endswith("#0")
        for found in match_relations(claim.text, page, first=first, joined=self.titles.joined):
            several = len(found.objects) > (2 if found.relation == PARENT else 1)
            for relation, name in (
                self._parents(found.objects)
                if found.relation == PARENT
                else self._objects(found, page)
            ):
                if title_key(name) != title_key(claim.subject) and self._fits(relation, name):
                    yield Triple(
                        claim.subject, relation, name, claim.doc_id, claim.claim_id, several
                    )

    def _fits(self, relation: str, name: str) -> bool:
        """Whether the name can be what the relation leads to; a person without a page has at least two names."""
        if name in NATIONALITIES or name in RANKS:
            return False
        person = RELATIONS[relation].object == "person"
        return (
            not person
            or name in self.titles.page
            or (" " in name and name not in COUNTRIES and not name.isupper())
        )

    def _objects(self, found: RelationMatch, page: Page) -> Iterator[tuple[str, str]]:
        kind = RELATIONS[found.relation].object
        for name in found.objects:
            title = (
                name
                if kind in ("date", "country", "name")
                else self._title(name, kind, found.relation)
            )
            pair = {("man", "woman"): "wife", ("woman", "man"): "husband"}.get(
                (page.sex, self.titles.sex(title))
            )
            yield pair if pair and found.relation == "spouse" else found.relation, title

    def _parents(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Father and mother, where page, rank or first name tells one of them from the other."""
        if len(names) > 2:
            return
        titles = [self._title(name, "person", PARENT) for name in names]
        sexes = [
            self.titles.sex(title) or self.titles.sex(name) for name, title in zip(names, titles)
        ]
        if len(titles) == 2 and sexes.count("") == 1:  # the other one is the other one
            known = next(sex for sex in sexes if sex)
            sexes = [sex or ("woman" if known == "man" else "man") for sex in sexes]
        if len(set(sexes)) == len(sexes):
            yield from (
                ({"man": "father", "woman": "mother"}[sex], title)
                for sex, title in zip(sexes, titles)
                if sex
            )

    def _title(self, name: str, kind: str, relation: str) -> str:
        """The title that the name stands for, whole or as the first of a row of places; else the name."""
        for form in dict.fromkeys((name, name.split(",")[0] if kind in ("place", "") else name)):
            if (title := self.titles.named(form, kind, relation=relation)) is not None:
                return title
        return name
