"""Triples: relations between names, extracted from claims by rules.

The relations come from sentence patterns, from open relations and from layout. A name becomes a
title if a page of the expected kind has that title.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from suffice.text import title_key
from suffice_grade.claims import HEADLINE, Page, PageIndex, parse_fact
from suffice_grade.layout import is_subject
from suffice_grade.open_relations import (
    SAID,
    is_event,
    kind_of,
    open_relations,
    relation_name,
)
from suffice_grade.relations import MAX_RELATION_WORDS, PLACED, RELATIONS, get_relation
from suffice_grade.sentence_patterns import (
    PARENT,
    PARENT_IN_LAW,
    RelationMatch,
    area_facts,
    match_relations,
)
from suffice_grade.stage_protocols import Claim, Triple
from suffice_grade.stated_facts import OPENER, STATED, stated_facts
from suffice_grade.vocabulary import (
    AREAS,
    COUNTRIES,
    FIRST_NAMES,
    KINDS,
    NATIONALITIES,
    RANKS,
    ROLES,
    base_title,
    names_at,
)

_OBJECT_KINDS = {"person": "person", "place": "place", "country": "place", "date": "date"}
_OBJECT_KINDS |= dict.fromkeys(("company", "school", "team", "band"), "organisation")


def _place_forms(name: str) -> list[str]:
    """ "Cahir, County Tipperary, Ireland", then with fewer and fewer of the surrounding places."""
    parts = name.split(", ")
    return [", ".join(parts[:size]) for size in range(len(parts), 0, -1)]


def _is_role(word: str, *, first: bool) -> bool:
    """Whether a person's name may follow the word; a name with a rank first is merged later."""
    return not first if word in RANKS else KINDS.get(word.casefold()) == "person"


_STATE_OFFICES = frozenset(
    {"president", "vice president", "prime minister", "foreign minister", "finance minister"}
    | {"chancellor", "attorney general", "secretary general", "head of state"}
)
# "Written by Mira Holt." is about the page.
_PARTICIPLE_BY = re.compile(r"(?:Written|Maintained) (?:\w+ )?by ")


class RuleTriples:
    """Triples by patterns, by open relations and by layout, for the corpus with these pages."""

    def __init__(self, pages: PageIndex) -> None:
        self.pages = pages

    def triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        return [tuple(dict.fromkeys(self._match(claim))) for claim in claims]

    def _match(self, claim: Claim) -> Iterator[Triple]:
        fact = parse_fact(claim)
        if fact is not None and claim.text != claim.sentence:
            yield from self._listed(claim, *fact)
            return
        page = self.pages.by_title.get(claim.subject)
        known = list(self._known(claim, page)) if page is not None and page.kind else []
        yield from known
        yield from self._area_facts(claim)
        told = list(self._open(claim, {one.object for one in known}))
        yield from told
        # "joins World War I in" has too many words for a relation.
        short = [one for one in told if len(one.relation.split()) <= MAX_RELATION_WORDS]
        yield from self._stated(claim, {one.object for one in (*known, *short)})

    def _known(self, claim: Claim, page: Page) -> Iterator[Triple]:
        """The relations of relations.toml."""
        first = claim.claim_id.endswith("#0")
        for match in match_relations(claim.text, page, first=first, joined=self.pages.joined):
            parents = match.relation in (PARENT, PARENT_IN_LAW)
            several = match.several or len(match.objects) > (2 if parents else 1)
            if parents or RELATIONS[match.relation].object == "person":
                full = tuple(self.pages.in_full(name, claim.text) for name in match.objects)
                match = match._replace(objects=full)
            found = self._parents(match.objects) if parents else self._objects(match, page)
            if match.relation == PARENT_IN_LAW:
                found = ((f"{relation}-in-law", name) for relation, name in found)
            for relation, name in found:
                if title_key(name) != title_key(claim.subject) and self._fits(relation, name):
                    kind = _OBJECT_KINDS.get(RELATIONS[relation].object, "")
                    yield Triple(
                        claim.subject,
                        relation,
                        name,
                        claim.doc_id,
                        claim.claim_id,
                        several,
                        object_kind=kind or kind_of(name, self.pages.kind(name)),
                    )

    def _area_facts(self, claim: Claim) -> Iterator[Triple]:
        """The capital, the largest city or the highest mountain of an area, in any document."""
        title = self.pages.title_of.get(claim.doc_id, "")
        for area, what, name in area_facts(claim.text, title):
            subject = title if area == title else self.pages.find(area, "place") or area
            page = self.pages.by_title.get(subject)
            known = subject in COUNTRIES or (page is not None and page.noun in AREAS)
            city, most = what in RELATIONS, what.endswith("est", 0, what.find(" "))
            target = self._title(name, "place", what) if city else self._page(name)
            target = claim.subject if base_title(claim.subject) == name else target
            if known and title_key(target) != title_key(subject):
                yield Triple(
                    subject,
                    what,
                    target,
                    claim.doc_id,
                    claim.claim_id,
                    phrase="" if city else f"{what} in" if most else what,
                    object_kind="place" if city else kind_of(target, self.pages.kind(target)),
                )

    def _open(self, claim: Claim, known: Collection[str]) -> Iterator[Triple]:
        """Open relations in the sentence that no known relation covers already."""
        title = self.pages.title_of.get(claim.doc_id, "")
        title = "" if self.pages.kind(title) == HEADLINE else title
        name = base_title(claim.subject) if claim.subject else ""
        text = claim.text
        if not name and _PARTICIPLE_BY.match(text) and is_subject(title):
            name, text = base_title(title), f"{base_title(title)} was {text[0].lower()}{text[1:]}"
        for match in open_relations(text, name, self.pages.terms):
            subject = claim.subject or title if match.subject == name else self._page(match.subject)
            # "Gaunt" on the page of Guy Gaunt means Guy Gaunt.
            if " " not in subject and title.endswith(f" {subject}") and is_subject(title):
                subject = title
            target = match.object if match.relation == SAID else self._place(match.object)
            kind = kind_of(target, self.pages.kind(target))
            relation = relation_name(match.relation, kind)
            if relation in RELATIONS and is_event(match.relation, match.phrase, match.object):
                continue  # "its headquarters was moved" does not say where they are
            if subject in COUNTRIES and relation in ROLES - _STATE_OFFICES:
                continue  # a country's "captain" is that of one of its teams
            if relation == "capital" and match.phrase.split()[:1] == ["was"]:
                continue  # a former capital
            if {subject.casefold(), target.casefold()} & FIRST_NAMES:
                continue  # a first name alone means another person in each text
            if target not in known and title_key(subject) != title_key(target):
                yield Triple(
                    subject,
                    relation,
                    target,
                    claim.doc_id,
                    claim.claim_id,
                    match.several,
                    phrase=match.phrase,
                    object_kind="thing" if relation == SAID else kind,
                )

    def _stated(self, claim: Claim, known: Collection[str]) -> Iterator[Triple]:
        """The dated event in a sentence, about its page or the page it starts with."""
        title = claim.subject or self.pages.title_of.get(claim.doc_id, "")
        opener = OPENER.match(claim.text)
        if opener and not claim.text[opener.start("name") :].startswith(base_title(title)):
            title = self.pages.find(opener["name"]) or ""
            # Otherwise "John" may be "John (song)"; a page of unknown kind may be anything.
            if title != opener["name"] or not self.pages.kind(title):
                return
        if title not in self.pages.by_title or self.pages.kind(title) == "list":
            return
        for fact in stated_facts(claim.text, base_title(title)):
            if fact.value not in known:
                yield Triple(
                    title,
                    f"{STATED}{fact.words}",
                    fact.value,
                    claim.doc_id,
                    claim.claim_id,
                    phrase=fact.ask,
                    object_kind="date",
                )

    def _listed(self, claim: Claim, relation: str, value: str) -> Iterator[Triple]:
        """A fact from a table, a key-value list, a manual page or an article's metadata."""
        phrase, relation = relation, relation_name(relation, listed=True)
        names = names_at(value, 0)
        split = len(names.names) > 1 and names.end == len(value) and relation != "outlet"
        for name in names.names if split else (value,):
            target = self._page(name)
            kind = kind_of(target, self.pages.kind(target))
            kind = "version" if kind == "amount" and "version" in relation else kind
            if title_key(target) != title_key(claim.subject):
                yield Triple(
                    claim.subject,
                    relation,
                    target,
                    claim.doc_id,
                    claim.claim_id,
                    split,
                    phrase=phrase,
                    object_kind="organisation" if relation == "outlet" else kind,
                )

    def _page(self, name: str) -> str:
        """The title for a name, or the name; in lower case it must be a term of the corpus."""
        if name.islower() and title_key(name) not in self.pages.terms.things:
            return name
        return self._meant(name) or name

    def _meant(self, name: str) -> str | None:
        """The title for a name. "Smile" is not "Smile (song)", because others share that name."""
        title = self.pages.find(name)
        return title if title is not None and title in (name, base_title(title)) else None

    def _place(self, name: str) -> str:
        """The title for a name, or for a place with surrounding places; else the first place."""
        if name[:1].islower():
            return self._page(name)
        found = map(self._meant, _place_forms(name))
        # "William I, Count of Burgundy" is not every William I.
        short = name if re.match(r"\w+ [IVX]+,", name) else name.split(", ")[0]
        return next((title for title in found if title is not None), short)

    def _fits(self, relation: str, name: str) -> bool:
        """Whether the name can be the object; a person without a page must have two names."""
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
            if match.relation == "located in" and title not in self.pages.by_title:
                title = title.split(", ")[0]
            if match.relation == "spouse" and match.several:
                yield from ((one, title) for one in ("spouse", "husband", "wife"))
                continue
            spouse = spouses.get((page.sex, self.pages.sex(title)))
            yield (spouse if spouse and match.relation == "spouse" else match.relation), title
            if match.relation in PLACED:
                yield from self._areas(match.relation, name, title)

    def _areas(self, relation: str, name: str, title: str) -> Iterator[tuple[str, str]]:
        """Surrounding areas named in the text that have a page: the state in "Dayton, Ohio"."""
        for part in name.split(", ")[1:]:
            area = self.pages.find(part.removeprefix("the "), "place")
            noun = self.pages.by_title[area].noun if area else ""
            # `_places` already extracts the country of a place.
            known = noun == "country" and relation == "located in"
            if area and area != title and noun in AREAS and not known:
                yield f"{relation} {noun}", area

    def _parents(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Father and mother, if page, rank or first name distinguishes them."""
        if len(names) > 2:
            return
        titles = [self._title(name, "person", PARENT) for name in names]
        sexes = [
            self.pages.sex(title) or self.pages.sex(name) for name, title in zip(names, titles)
        ]
        if len(titles) == 2 and sexes.count("") == 1:  # one is known, so the other is too
            other = "woman" if "man" in sexes else "man"
            sexes = [sex or other for sex in sexes]
        if len(titles) == 2 and sexes[0] == sexes[1]:
            # "Otto II, Count of Guelders and Philippe of Dammartin": the first name misleads.
            sexes = [self.pages.sex(title, by_name=False) for title in titles]
        if len(set(sexes)) == len(sexes):
            parents = {"man": "father", "woman": "mother"}
            yield from ((parents[sex], title) for sex, title in zip(sexes, titles) if sex)

    def _title(self, name: str, kind: str, relation: str) -> str:
        """The title for a name, or for the first of its places; else the name."""
        forms = _place_forms(name) if kind in ("place", "") else [name]
        hints = get_relation(relation).titles
        if kind == "film":  # "Iron Man" is not "The Iron Man (serial)"
            return name
        found = (
            self.pages.find(form, kind, hints) if kind else self._meant(form) for form in forms
        )
        known = (title for title in found if title is not None)
        sure = (title for title in known if kind != "place" or self._is_place(title, name))
        return next(sure, (kind == "person" and self._without_role(name)) or name)

    def _without_role(self, name: str) -> str | None:
        """The title of the person after a role: "New Hampshire Governor Benjamin Pierce"."""
        words = name.split(" ")
        # "Eastern Roman Emperor Theodosius II"; names with a rank first are merged later.
        roles = [at for at, word in enumerate(words[:-2], 1) if _is_role(word, first=at == 1)]
        return self.pages.find(" ".join(words[roles[-1] :]), "person") if roles else None

    def _is_place(self, title: str, name: str) -> bool:
        """Whether a page is the place meant: "Washington, D.C." is not "Washington (state)"."""
        inside = title[len(base_title(title)) :].strip(" ()")
        # A page of unknown kind may be a person called Berg.
        known = " " in title or self.pages.kind(title) != ""
        return known and (not inside or inside in name)
