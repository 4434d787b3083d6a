"""Triples: relations between names, extracted from claims by sentence patterns.

A pattern is a trigger ("directed by", "the son of") and a matcher for the names after it. Simple
patterns are in `sentence_patterns.toml`, the relations in `relations.toml`. Matchers prefer
precision to recall, since one wrong fact spoils a chain of five: they skip sentences that turn to
another work or person, or that give an approximate date. A name becomes a title if a page of the
expected kind has that title.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from suffice.benchmark.claims import HEADLINE, Page, PageIndex, parse_fact
from suffice.benchmark.layout import is_subject
from suffice.benchmark.open_relations import (
    SAID,
    is_event,
    kind_of,
    open_relations,
    relation_name,
)
from suffice.benchmark.stage_protocols import Claim, Triple
from suffice.benchmark.stated_facts import OPENER, STATED, stated_facts
from suffice.benchmark.vocabulary import (
    AREAS,
    COUNTRIES,
    FIRST_NAMES,
    FOLDER,
    KINDS,
    NAME,
    NATIONALITIES,
    RANKS,
    ROLES,
    any_of,
    base_title,
    names_at,
    place_at,
)
from suffice.lexicon import MONTHS
from suffice.storage.records import read_toml
from suffice.text import title_key

MAX_RELATION_WORDS = 4  # longer open relations are not worded in questions
PARENT = "parent"  # father or mother: the sentence does not tell which
PARENT_IN_LAW = "parent-in-law"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from `relations.toml`, which documents the fields."""

    object: str = ""
    of: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    describe: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    bridge_first: tuple[str, ...] = ()
    bridge_last: tuple[str, ...] = ()
    bridge_same: tuple[str, ...] = ()
    back: str = ""
    trades: str = ""
    titles: tuple[str, ...] = ()
    years: tuple[str, int, int] | None = None


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


RELATIONS = {
    name: Relation(**{key: _frozen(value) for key, value in fields.items()})
    for name, fields in read_toml(FOLDER / "relations.toml").items()
}
# Relations to a place, as worded about X. "in Dayton, Ohio" also states the state, so each has a
# variant for every kind of area: "birth place state".
PLACED = {
    "located in": ("X is located", "is X located", "that contains X"),
    "birth place": ("X was born", "was X born", "of birth of X"),
    "death place": ("X died", "did X die", "of death of X"),
    "headquarters": ("X is based", "is X based", "that is home to X"),
}
RELATIONS |= {
    f"{relation} {noun}": Relation(
        object="place",
        of=(f"the {noun} where {stated}",),
        nested=(f"the {noun} {nested}",),
        ask=(f"In which {noun} {asked}?", f"In what {noun} {asked}?"),
    )
    for relation, (stated, asked, nested) in PLACED.items()
    for noun in AREAS
}
_OPEN = Relation()


def get_relation(name: str) -> Relation:
    """The relation of this name; an open relation (a model's own words) has no words here."""
    return RELATIONS.get(name, _OPEN)


class RelationMatch(NamedTuple):
    """A relation and its objects, as named in the sentence."""

    relation: str
    objects: tuple[str, ...]
    several: bool = False  # the page says that there are others


Matches = Iterator[RelationMatch]
# A matcher gets the claim's text, its page, whether it is the page's first sentence, and the pairs
# of words whose "and" belongs to one name (see `names_at`).
Matcher = Callable[[str, Page, bool, Collection[str]], Matches]

# A name before another noun is only a modifier: "Polish Noble Prize laureate".
_GOES_ON = re.compile(rf" (?!{any_of('after_name')}\b)[a-z]")
_AREA = re.compile(rf" (?:{'|'.join(AREAS)})(?=[,.;]|$| and\b| in\b)")  # "the Veneto region"
_TURNED = re.compile(rf"^['’]s\b|\b{any_of('turns_away')}\b")


def _named(
    relation: str, text: str, at: int, joined: Collection[str], *, commas: bool = True
) -> Matches:
    found = names_at(text, at, joined=joined, commas=commas)
    if found.names and (_AREA.match(text, found.end) or not _GOES_ON.match(text, found.end)):
        yield RelationMatch(relation, found.names)


def _search(pattern: re.Pattern[str], text: str, page: Page) -> re.Match[str] | None:
    """The first match, if it is about the page."""
    match = pattern.search(text)
    return match if match and _of_page(text, match.start(), page) else None


# "is the wife of Count Otto and" goes on with the page.
_KIN_OF = re.compile(
    r"\b(?:wife|husband|consort|brother|sister|father|mother) of "
    r"(?:(?!\b(?:who|whose|which|that|when|where)\b)[^;]){3,80}? and (?:the |an? )?(?:[a-z]+ )?$"
)


def _of_page(text: str, at: int, page: Page) -> bool:
    """Whether the sentence is still about the page at this position."""
    before = re.sub(r"\([^()]*\)", "", text[:at])
    name = base_title(page.title)
    found = before.find(name)
    rest = before[found + len(name) :] if found >= 0 else before
    rest = _KIN_OF.sub("", rest)
    return not _TURNED.search(rest) and not re.search(r"[,;] [A-Z]\w+ *$", rest)


# -------------------------------------------------------------------------------------------- works

_MONTHS = "|".join(MONTHS)
_DATE = (
    rf"(?:\d{{1,2}} (?:{_MONTHS}) \d{{3,4}}|(?:{_MONTHS}) \d{{1,2}}, \d{{3,4}}|"
    rf"(?:{_MONTHS}) \d{{4}}|[12]\d{{3}})"
)
# After these words the sentence is about another work.
_OTHER_WORK = re.compile(rf"\b{any_of('other_work')}\b")
_NATION = (
    "(?:" + "|".join(NATIONALITIES) + "|Bollywood|Hollywood|Northern Irish|West German|East German|"
    "South Korean|North Korean|South African|New Zealand)"
)
# "New Orleans drummer ", "the Ohio rock band ": a role tells that the name begins after it.
_ROLE = "|".join(noun for noun, kind in KINDS.items() if kind in ("person", "band"))
_ROLED = (
    r"(?:(?:the )?(?:[A-Z][\w&’'/-]* ){1,3}"
    rf"(?:(?!{any_of('after_name')}\b)[a-z][\w/&-]* ){{0,4}}?(?:{_ROLE}) (?=[A-Z]))?"
)
_BY = (
    rf"{_ROLED}(?:(?:the|an?|fellow) )?(?:{_NATION}(?:[- ]\w+)?(?: [a-z][\w-]*(?:,| and|/)?)* )?"
    r"(?:[a-z][\w-]*(?:,| and|/)? )*"
)


def _triggers(rows: Sequence[Mapping[str, str]]) -> list[tuple[str, re.Pattern[str], list[str]]]:
    """(relation, trigger before the names, kinds of page it applies to)"""
    return [
        (row["relation"], re.compile(row["trigger"].replace("BY", _BY)), row["kinds"].split())
        for row in rows
    ]


_PATTERNS = read_toml(FOLDER / "sentence_patterns.toml")
_WORKS, _BELONGINGS = _triggers(_PATTERNS["works"]), _triggers(_PATTERNS["belongings"])


# "is a 1934 "Our Gang" short film directed by": the quotation is part of the definition.
_DEFINES_FILM = re.compile(r"\b(?:is|was) an? [^,.;]*\bfilm,? (?:(?:co-)?written and )?$")


_OWN_WORK = re.compile(r"\b(?:is|was) the (?:second|third)(?: and final)? (?=[a-z]|$)")


def _works(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    for relation, trigger, kinds in _WORKS:
        if page.kind not in kinds or (match := trigger.search(text)) is None:
            continue
        if relation == "performer" and not first:  # later sentences name other performers
            continue
        before = text[: match.start()]
        own = before[len(base_title(page.title)) :] if first else before
        if first:  # "is the second album", "is a fantasy novel"
            own = _OWN_WORK.sub("", own, count=1)
            own = own.replace(page.noun, "", 1) if page.kind == "book" else own
        turned = _OTHER_WORK.search(own)
        # The page's own title may be in quotes, and a translation of it inside a parenthesis.
        rest = before.replace(f'"{page.title}"', "", 1)
        rest = rest.replace(f'"{base_title(page.title)}"', "", 1)
        quoted = '"' in re.sub(r"\([^()]*\)", "", rest[1 + len(base_title(page.title)) :])
        if not turned and (not quoted or (first and _DEFINES_FILM.search(before))):
            yield from _named(relation, text, match.end(), joined)


_RELATED = re.compile(
    r"\b(?P<how>remake of|sequel to|prequel to|followed by)(?: (?:the|an?|its)\b)?"
    r"(?: (?!and |or |both )[\w’'.-]+){0,6},? ?[\"“](?P<title>[^\"“”]{2,60})[\"”]"
    r"(?! (?:series|franchise|saga|trilogy)| and )"
)
_RELATED_AS = {"remake of": "remake of", "sequel to": "sequel to", "followed by": "sequel"}
_SOURCE = re.compile(
    r"\bbased on (?:the|an?|his|her) (?:(?!and |or )[\w’'-]+ ){0,4}?(?:novel|book|play|novella|"
    r"short story|story|memoir)(?: of (?:the )?same (?:name|title)| [\"“][^\"”]{2,60}[\"”])?"
    r"(?: written)? by BY".replace("BY", _BY)
)


def _related_works(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    """The work that this one remakes or continues, the next one, and the author of its source."""
    if page.kind != "film":
        return
    found = list(_RELATED.finditer(text))
    relation = _RELATED_AS.get(found[0]["how"]) if len(found) == 1 else None
    if relation:
        title = found[0]["title"].strip(" ,.")
        # A text without its markup repeats a title: "AirportAirport 1975".
        if not _OTHER_WORK.search(text[: found[0].start()]) and not re.search(r"[a-z][A-Z]", title):
            yield RelationMatch(relation, (title,))
    match = _SOURCE.search(text)
    if match and not re.search(r"\bremake\b", text):
        yield from _named("source author", text, match.end(), joined)


_YEAR_OF = re.compile(
    r"\b(?:is|was) an? (?:upcoming |lost |(?:[A-Z][\w-]+ ){0,2})?(?P<year>[12]\d{3})\b"
    r"(?! (?:novel|book|play|song|comic|story))"
)
_RELEASED = re.compile(
    rf"\b(?:was|were) (?:commercially |theatrically |officially |first |initially )?"
    rf"released (?:worldwide )?(?:in [A-Z][\w ]+ )?(?:on|in) (?P<date>{_DATE})"
)


def _released(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    if page.kind not in ("film", "series", "song", "album", "book", "game", "play"):
        return
    if first and page.kind == "film" and (match := _YEAR_OF.search(text)):
        yield RelationMatch("release date", (match["year"],))
        return
    match, longest = _RELEASED.search(text), len(base_title(page.title)) + 1
    if match and len(text[: match.start()].rstrip()) <= longest:
        yield RelationMatch("release date", (match["date"],))


def _work_country(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    if first and page.kind in ("film", "series", "band", "company"):
        yield from _country("work country", page)


def _nationality(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    if first and page.kind == "person":
        yield from _country("nationality", page)


def _country(relation: str, page: Page) -> Matches:
    """The country of the only nationality in the definition; none for "Canadian-born"."""
    words = re.findall(r"[A-Z]\w+", page.defined)
    found = {NATIONALITIES[word] for word in words if word in NATIONALITIES}
    mixed = r"\w-(?:born|[A-Z])|(?:South|North|New|West|East|Native|African|Anglo)[ -]"
    if len(found) == 1 and not re.search(mixed, page.defined):
        yield RelationMatch(relation, (found.pop(),))


# -------------------------------------------------------------------------------------------- lives

_LIFE = re.compile(r"\((?P<life>[^()]*\d{3,4}[^()]*)\)")
_EVENT = re.compile(
    rf"(?P<date>{_DATE})(?:(?:,| in| at) (?P<place>[^;0-9]+))?$"
    rf"|(?P<place2>[^;0-9]+), (?P<date2>{_DATE})$"
)
_ROUGH = re.compile(
    r"\b(?:c\.|ca\.|circa|before|after|about|around|baptised|baptized|between|or|O\.S\.|N\.S\.|"
    r"reigned?|r\.|fl\.|active)(?=\W|$)|/|\?"
)


def _life(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    """Birth and death, from the parenthesis after the name."""
    match = _LIFE.search(text)
    if not first or page.kind != "person" or match is None or match.start() > 150:
        return
    before = text[: match.start()]
    if re.search(r"\b(?:is|was)\b", before) or before.count("(") > before.count(")"):
        return
    life = match["life"].split(";")[-1].strip()
    # These years are not of birth and death.
    if re.search(r"\b(?:reign|rule|r\.|fl\.|active|in office)", match["life"]):
        return
    sides = re.split(r"\s*[–—]\s*|\s+-\s+|(?<=\d)-(?=\d)|(?<=\w)-(?=\d{1,2} [A-Z])", life)
    if len(sides) == 2:
        yield from _event(sides[0], "birth")
        yield from _event(sides[1], "death")
    elif len(sides) == 1 and re.match(r"born\b", life):
        yield from _event(life, "birth")
    elif len(sides) == 1 and re.match(r"died\b", life):
        yield from _event(life, "death")


def _event(words: str, what: str) -> Matches:
    words = words.strip()
    verb = re.match(r"(?:born|died|Died|Born|b\.|d\.)(?: on)?\s+", words)
    words = words[verb.end() if verb else 0 :]
    # "born Holly Mann, 23 December 1991"
    if verb and not words[0].isdigit() and not re.match(_MONTHS, words):
        return
    if _ROUGH.search(words) or (match := _EVENT.match(words)) is None:
        return
    yield RelationMatch(f"{what} date", (match["date"] or match["date2"],))
    place = (match["place"] or match["place2"] or "").strip(" ,")
    if place and place_at(place, 0) == place:
        yield RelationMatch(f"{what} place", (place,))


_BORN = re.compile(
    rf"\bwas born(?: [A-Z][\w. ]+)?(?: on (?P<date>{_DATE}),?)? (?:in|at|near) (?=[A-Z]|the [A-Z])"
)
_BORN_ON = re.compile(rf"\bwas born(?: [A-Z][\w. ]+)? (?:on )?(?P<date>{_DATE})")
_DIED = re.compile(
    r"\b(?:died|was killed|was executed|was assassinated)"
    rf"(?: on (?P<date>{_DATE}),?)? (?:in|at) (?=[A-Z]|the [A-Z])"
)
_DIED_ON = re.compile(rf"\bdied (?:on |in )(?P<date>{_DATE})")
_BURIED = re.compile(r"\b(?:is|was) (?:buried|interred) (?:in|at) (?:the )?(?=[A-Z])")
_NO_PLACE = re.compile(r"\b(?:House of|Family|Dynasty|Court|Army|Navy|War|Battle)\b")


def _born_and_died(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    if page.kind != "person":
        return
    for what, with_place, with_date in (("birth", _BORN, _BORN_ON), ("death", _DIED, _DIED_ON)):
        if match := _search(with_place, text, page):
            place = place_at(text, match.end())
            if place and not re.match(rf"(?:{_MONTHS})\b", place) and not _NO_PLACE.search(place):
                yield RelationMatch(f"{what} place", (re.sub(r",? (?:on|in)$", "", place),))
        if match := _search(with_date, text, page):
            yield RelationMatch(f"{what} date", (match["date"],))
    if (match := _search(_BURIED, text, page)) and (place := place_at(text, match.end())):
        yield RelationMatch("burial place", (place,))


# ----------------------------------------------------------------------------------------- families

# A description before the name: "the late actor ".
_UPPER = r"(?=[^\W\d_a-zß-öø-ÿ])"
_LOWER = (
    rf"(?:(?:the )?{_NATION}(?:-[A-Z]\w+)? )?"
    r"(?:(?!(?:of|to|in|at|as|by|for|from|with|known|appointed|son|daughter|child|member|into|an?)\b)"
    r"[a-z][\w-]*,? )*"
)
_CHILD = re.compile(
    rf"(?P<which>(?:[\w-]+ ){{0,3}})\b(?:son|daughter|child|"
    rf"of (?:the )?(?:\w+ ){{1,2}}(?:sons|daughters|children))"
    rf"(?: and (?:\w+ )?(?:heir|successor|child))?(?:,? born)? (?:of|to|from the marriage of) "
    rf"{_LOWER}{_UPPER}"
)
_BORN_TO = re.compile(rf"\bborn (?:in [A-Z\d][\w, -]+? )?to {_LOWER}{_UPPER}")
_NOT_CHILD = re.compile(
    r"\b(?:grand|great|god|step|adopted|foster|adoptive|illegitimate|natural|in-law|or)\b"
    r"|grand(?:son|daughter)"
)
_PARENTS_ARE = re.compile(rf"(?:'s|s') parents (?:were|are) {_LOWER}{_UPPER}")
_PARENT_IS = re.compile(rf"(?:'s|s') (?P<who>father|mother)(?:,| is| was) {_LOWER}{_UPPER}")
_SUCCEEDED_FATHER = re.compile(
    rf"\b(?:succeeded|inherited (?:[\w’'-]+ ){{1,6}}from) (?:his|her) father,? {_UPPER}"
)
_DEATH_OF = re.compile(rf"\bdeath of (?:his|her) (?P<who>father|mother) {_LOWER}{_UPPER}")
_SPOUSE = (
    re.compile(
        r"\b(?:(?:has been|was|is|were|got) married(?: in [12]\d{3})? (?:to|with)|married|wed|"
        rf"by (?:(?:her|his) )?marriage to) (?:(?:her|his) )?{_LOWER}{_UPPER}"
    ),
    re.compile(
        r"\b(?:the|[Aa]s|and) (?:wife|consort|queen consort|husband|spouse)(?: and \w+)? of "
        rf"{_LOWER}{_UPPER}"
    ),
    re.compile(rf"'s (?:wife|husband)(?: (?:is|was|,))? {_LOWER}{_UPPER}"),
)
# "married Mary Brereton, second daughter of William Brereton, 1st Baron Brereton"
_IN_LAW = re.compile(
    rf"\b(?:re)?married (?:(?:firstly|secondly|thirdly),? )?{_LOWER}{NAME.pattern}"
    rf"(?:,? (?:on|in) {_DATE})?,? (?:(?:the|an?|[a-z]+) ){{0,3}}"
    rf"(?:daughter|son|child)(?: and (?:[\w-]+ ){{0,2}}heir(?:ess)?)? of {_LOWER}{_UPPER}"
)
_AGAIN = re.compile(rf"\b(?:remarried|married (?:secondly|thirdly)),? (?:to )?{_LOWER}{_UPPER}")
_BIRTH_ORDER = re.compile(r"\b(?:first|second|third|fourth) (?=(?:surviving )?(?:son|daughter)\b)")
_PARENT_OF = re.compile(rf"\b(?:is|was|and|,) the (?:father|mother) of {_LOWER}{_UPPER}")
_SIBLING = re.compile(rf"\b(?:the|an?) (?:\w+ )?(?:brother|sister) of {_LOWER}{_UPPER}")
_OFTEN = re.compile(rf"\b{any_of('several_times')}\b")


def _family(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    if page.kind != "person":
        return
    # "the son of John (1628–1666) and Anna", "Julia (Julia, daughter of Drusus Caesar)"
    text = re.sub(r" \((?!(?:[^()]*\b)?(?:born|died))[^()]*\)", "", text)
    text = re.sub(r",? who (?=(?:is|was) the (?:wife|husband|son|daughter) of)", " and ", text)
    text = re.sub(r"\b(?:first|second) cousin,? ", "cousin ", text)  # not "first husband"
    yield from _parents_of(text, page, joined)
    if match := _search(_PARENT_IS, text, page):
        yield from _named(match["who"], text, match.end(), joined, commas=False)
    if match := _search(_SUCCEEDED_FATHER, text, page):
        yield from _named("father", text, match.end(), joined, commas=False)
    if match := _search(_DEATH_OF, text, page):
        yield from _named(match["who"], text, match.end(), joined, commas=False)
    if match := _search(_PARENT_OF, text, page):
        yield from _named("child", text, match.end(), joined)
    yield from _marriages(text, page, joined)


def _marriages(text: str, page: Page, joined: Collection[str]) -> Matches:
    """The spouse, the parents of the spouse, and a sibling."""
    once = not _OFTEN.search(_BIRTH_ORDER.sub("", text))
    if match := _search(_IN_LAW, text, page):
        for in_law in _named(PARENT_IN_LAW, text, match.end(), joined, commas=False):
            yield in_law._replace(several=not once)
    if match := _search(_AGAIN, text, page):
        for spouse in _named("spouse", text, match.end(), joined):
            yield spouse._replace(several=True)
    if once:
        spouses = (found for one in _SPOUSE if (found := _search(one, text, page)))
        if match := next(spouses, None):
            yield from _named("spouse", text, match.end(), joined)
        if match := _search(_SIBLING, text, page):
            yield from _named("sibling", text, match.end(), joined)


def _parents_of(text: str, page: Page, joined: Collection[str]) -> Matches:
    for trigger in (_PARENTS_ARE, _BORN_TO):
        if match := _search(trigger, text, page):
            yield from _named(PARENT, text, match.end(), joined, commas=False)
    for match in _CHILD.finditer(text):
        own = _of_page(text, match.start("which"), page)
        if "and" in match["which"].split():  # "sister of Nora Vik, and daughter of"
            own = own or _of_page(text, match.end("which"), page)
        if own and not _NOT_CHILD.search(match.group()):
            parents = tuple(_named(PARENT, text, match.end(), joined, commas=False))
            yield from parents
            if parents and len(parents[0].objects) == 1:
                yield from _mother(text, match.end(), joined)
            break


_REIGNED = re.compile(
    rf"\b(?P<verb>was|reigned|ruled) (?P<as>[^.;()]{{0,80}}?)\bfrom (?P<first>{_DATE})(?: on)?"
    rf"(?:,? (?:until|to|till) (?:his (?:death|abdication) in |her (?:death|abdication) in )?"
    rf"(?P<last>{_DATE}))?"
)
# A president or a general does not reign.
_REIGNING = sorted(word for word, sex in RANKS.items() if sex and word.isalpha())
_RULER = re.compile(rf"\b(?:{'|'.join(_REIGNING)})\b", re.I)
_SUCCEEDED_BY = re.compile(
    rf"\bwas succeeded (?:(?:as|in|on) [^,.;]{{1,40}} )?by (?:(?:his|her) (?:(?:[a-z-]+ ){{0,3}}"
    rf"(?:son|brother|daughter|sister|nephew|cousin|grandson|uncle),? )?)?{_LOWER}{_UPPER}"
)
_SUCCEEDED = re.compile(rf"\bsucceeded (?:his|her) {_LOWER}{_UPPER}")


def _reign(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    """The years of a ruler of one place, and the predecessor and successor."""
    if page.kind != "person":
        return
    plain = re.sub(r" \([^()]*\)", "", text)
    match = _search(_REIGNED, plain, page)
    once = plain.count(" from ") == 1 and plain.count(" as ") == 0
    ruled = (
        match
        and (match["verb"] != "was" or _RULER.search(match["as"]))
        and not re.search(r"\b(?:styled|known|called)\b", match["as"])
    )
    if match and once and ruled:
        yield RelationMatch("reign start", (match["first"],))
        if match["last"]:
            yield RelationMatch("reign end", (match["last"],))
    for relation, trigger in (("successor", _SUCCEEDED_BY), ("predecessor", _SUCCEEDED)):
        if match := trigger.search(plain):
            yield from _named(relation, plain, match.end(), joined)


# "the daughter of Prince Arthur, third son of Queen Victoria, and his wife Princess Louise"
_AND_WIFE = re.compile(
    rf",? (?:and|by) his (?:(?:first|second|third|fourth) )?(?:wife|consort),? {_LOWER}(?=[A-Z])"
)


def _mother(text: str, at: int, joined: Collection[str]) -> Matches:
    """The mother, if the text describes the father before it names her."""
    if match := _AND_WIFE.search(text, at):
        between = text[at : match.start()]
        if ";" not in between and not re.search(r"\b(?:who|married|he|she)\b", between):
            yield from _named("mother", text, match.end(), joined, commas=False)


# --------------------------------------------------------------------------- belongings and places

_FOUNDED = re.compile(rf"\b(?:was |is )?(?:founded|established|formed) (?:in|on) (?P<date>{_DATE})")
_IN = re.compile(
    r"\b(?:is|was) (?:an?|the|one of the) (?:(?!(?:for|by|to|at|with|from)\b)[\w-]+ ){0,6}?"
    r"(?:located |situated )?(?:in|on|of) "
    r"(?:(?:the )?(?:north|south|east|west|central)[a-z-]* (?:(?:part |region )?of )?)?"
    r"(?=[A-Z]|the [A-Z])"
)


# "the second home of visitors to Sund is": not about Sund
_IN_PASSING = re.compile(
    rf"\b(?:to|in|for|from|at|with|by|near|(?!(?:{'|'.join(AREAS)}) )[a-z]+ of) (?:the )?$"
)
_STATE_OF = re.compile(r"(?:the )?[A-Z][\w.]*(?: [A-Z]\w+)? (?:state|territory|province) of ")
# "in Saginaw County in the U.S. state of Michigan", "in Białystok County, in north-eastern Poland"
_WIDER = re.compile(
    r",? in (?:the )?(?:(?:north|south|east|west|central)[a-z-]* (?:(?:part|region) of )?)?"
    rf"(?:(?:(?:{_NATION}|U\.S\.|US) )?(?:{'|'.join(AREAS)}) of )?(?P<area>{NAME.pattern})"
    r"(?=[,.;]|$| (?:and|with|on|near|at|in|known)\b)"
)
_NO_LOCATION = frozenset(("European Union", "U.S", "U.S."))  # "the largest city in the U.S."


def _belongings(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    for relation, trigger, kinds in _BELONGINGS:
        if page.kind in kinds and (match := _search(trigger, text, page)):
            if relation != "headquarters":
                yield from _named(relation, text, match.end(), joined)
            elif place := place_at(text, match.end()):
                yield RelationMatch(relation, (place,))
    founded = page.kind in ("company", "school", "band", "team", "paper", "building")
    if founded and (match := _search(_FOUNDED, text, page)):
        yield RelationMatch("founded", (match["date"],))


def _places(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    if not first or page.kind not in ("place", "building", "school"):
        return
    text = re.sub(r" \([^()]*\)", "", text)  # "is a district (bakhsh) in"
    name = base_title(page.title).split(",")[0]
    if re.match(
        rf"(?:The )?{re.escape(name)} [A-Z]", text
    ):  # "Boston Common is the oldest park in"
        return
    match = _IN.search(text)
    if match is None or "tributary" in match.group():  # a river is not in the river it flows into
        return
    if _IN_PASSING.search(text[: max(text.rfind(name, 0, match.start()), 0)]):
        return
    state = _STATE_OF.match(text, match.end())
    place = place_at(text, state.end() if state else match.end())
    if place is None or place.removeprefix("the ") in _NO_LOCATION:
        return
    parts = [part.removeprefix("the ") for part in place.split(", ")]
    at = (state or match).end() + len(place)
    while wider := _WIDER.match(text, at):
        parts.append(wider["area"].rstrip("."))
        at = wider.end()
    yield RelationMatch("located in", (", ".join(parts),))
    # "the U.S. state of Georgia" is no country
    countries = [part for part in parts[1 if state else 0 :] if part in COUNTRIES]
    if len(countries) == 1 and countries[0] != base_title(page.title):
        yield RelationMatch("country", (countries[0],))


# "Kampala, the capital and largest city of Uganda": a fact about Uganda, in any document.
_WHAT = r"(?P<what>capital|largest city|most populous city)(?: city)?"
_WHAT += r"(?: and (?:the |its )?(?P<also>capital|largest city|most populous city))?"
_OF_AREA = (
    rf"(?:of|in|on) (?:the )?(?:(?:(?:{_NATION}|U\.S\.|US) )?(?:{'|'.join(AREAS)}) of )?"
    rf"(?P<area>U\.S\.|{NAME.pattern})(?!, D\.C\.)"
)
_CITY_OF = re.compile(
    rf"(?:, (?:which is )?the| is the) (?:(?:national|state|provincial) )?{_WHAT} {_OF_AREA}"
)
# "Arizona's capital and largest city is Phoenix", "the Danish capital, Copenhagen"
_CITY_IS = re.compile(
    rf"(?:(?P<area>{NAME.pattern})['’]s|\b[Tt]he (?P<nation>{_NATION})) {_WHAT}"
    rf"(?:,| of| is) (?P<name>{NAME.pattern}(?:, D\.C\.)?)"
)
# On a country's page: "The capital is Nashville", "Its capital and largest city is Bangkok"
_ITS_CITY = re.compile(
    rf"(?:^(?:The|Its)|, and (?:the|its)) {_WHAT}(?: by population)?(?:,| is) "
    rf"(?:the city of )?(?P<name>{NAME.pattern}(?:, D\.C\.)?)(?=[,.]|$)"
)
# On a place's page: "The present mayor is Bill de Blasio", "The chancellor, Angela Merkel, is"
_OFFICE = re.compile(
    r"^(?:The|Its) (?:present |current )?(?P<what>mayor|governor|president|prime minister|premier|"
    r"chancellor|monarch|(?:official |national )?currency|official language|national language|"
    r"patron saint|highest (?:point|peak|mountain|elevation)|largest (?:lake|island|river)|"
    rf"longest river)(?: is (?:the )?|, )(?P<name>{NAME.pattern})"
    r"(?=(?P<after>, is | is |[,.]|$| at ))"
)
# "Scafell Pike, the highest mountain in England", "Flag Hill is the highest hill on East Wallabi"
_MOST = (
    r"(?:largest|smallest|highest|tallest|longest|deepest|oldest|busiest)"
    r"(?: (?!(?:in|of|on|by|and|or|to|at|for|with|from|known|ever|[a-z]+ed)\b)[a-z-]+){0,2}"
    r" (?:city|town|mountain|peak|hill|point|lake|river|island|park|airport|port|stadium|building|"
    r"bridge|dam|university|school|library|museum|church|hospital|bank|newspaper|company|party)"
)
_MOST_OF = re.compile(
    rf"(?P<verb>,| is) the (?P<what>{_MOST}) {_OF_AREA}(?=[,.;]|$| and | with | located)"
)
# "The oldest church in Boston is First Church in Boston"
_MOST_IS = re.compile(rf"^The (?P<what>{_MOST}) {_OF_AREA} is (?P<name>{NAME.pattern})(?=[,.]|$)")
_NAME_ENDS = re.compile(rf"{NAME.pattern}(?:, D\.C\.)?$")
_OPENS_PLACE = re.compile(r"(?:In|At|Near|From|To|On|Outside|After|By|The) ")
_UNITED_STATES = frozenset(("U.S.", "U.S", "US", "USA", "United States of America"))


# "the U.S. state of Missouri", "the Chinese province of Zhejiang"
_NATIONAL = re.compile(
    rf"\b[Tt]he (?P<nation>{_NATION}|U\.S\.|US) (?:state|province|territory|prefecture) of "
    rf"(?P<area>{NAME.pattern})(?=[,.;)]|$| [a-z])"
)


def area_facts(text: str, title: str = "") -> Iterator[tuple[str, str, str]]:
    """(area, what, name) as any sentence may state them; what is "capital" or "highest mountain".

    `title` is the page with the sentence, for "Its capital is Haifa".
    """
    plain = re.sub(r" ?\([^()]*\)", "", text)
    found: list[tuple[str, str, re.Match[str]]] = []
    for match in (*_CITY_OF.finditer(plain), *_MOST_OF.finditer(plain)):
        ends = _NAME_ENDS.search(plain, 0, match.start())
        before = plain[: ends.start()] if ends else ""
        # "in Bangalore, Karnataka, the capital", "Entebbe and Kampala, the capital"
        clear = ends and not before.endswith((", ", "and ", "or ", '"', "“"))
        # "A park in Kampala is the largest park"
        verb = match.groupdict().get("verb")
        inside = verb == " is" and before not in ("", "The ")
        # "the core of the Devon Reserve, the largest dunes": of the core, or of the reserve?
        inside = inside or (verb == "," and before.endswith((" of ", " of the ")))
        if ends and clear and not inside:
            found.append((match["area"], _OPENS_PLACE.sub("", ends.group()), match))
    for match in (*_CITY_IS.finditer(plain), *_MOST_IS.finditer(plain)):
        area = match["area"] or NATIONALITIES.get(match["nation"], "")
        found.append((area, match["name"], match))
    if title:
        found += [(title, match["name"], match) for match in _ITS_CITY.finditer(plain)]
        office = _OFFICE.match(plain)
        # "The president, John Kennedy, visited the city"
        if office and (" is " in office.group() or office["after"] == ", is "):
            found.append((title, office["name"], office))
    for area, name, match in found:
        area = "United States" if area in _UNITED_STATES else area.rstrip(".")
        if area in COUNTRIES and " state of " in match.group():  # Georgia
            continue
        name = name if name.endswith("D.C.") else name.rstrip(".")
        for what in filter(None, (match["what"], match.groupdict().get("also"))):
            yield area, what.replace("most populous", "largest"), name
    for match in _NATIONAL.finditer(plain):
        nation = match["nation"]
        country = NATIONALITIES.get(nation) or ("United States" if nation[:1] == "U" else "")
        if country and match["area"].rstrip(".") not in COUNTRIES:  # Georgia
            yield match["area"].rstrip("."), "country", country


_PROFESSION = re.compile(
    rf"\b(?:is|was) an? (?:former |retired |noted |prominent )?(?:{_NATION}(?:[- ][A-Z]\w+)? )?"
    r"(?P<what>(?:[a-z][a-z-]+ ){0,2}[a-z][a-z-]+)"
    r"(?=\.?$|,? (?:who|whose|from|born|best known|known|active|during|based)\b)"
)
_NO_PROFESSION = frozenset(
    "son daughter child wife mother father husband consort brother sister recipient member king"
    " queen prince princess duke duchess count countess earl baron baroness emperor empress ruler"
    " monarch nobleman noblewoman aristocrat peer saint model winner".split()
)
_HELD = re.compile(
    r"\b(?:is|was) (?:the )?(?:(?:\w+ )?(?:first|last|second|third) )?"
    r"(?P<what>(?:Grand |Crown |Holy Roman )?(?:King|Queen|Duke|Duchess|Count|Countess|Emperor|"
    r"Empress|Margrave|Landgrave|Elector|Earl|Bishop|Archbishop|Sultan|Tsar|Shah|Khan|Doge)"
    rf"(?: consort)? of (?:the )?{_UPPER}[\w'’-]+(?: [A-Z][\w'’-]+)?)"
    r"(?=\.?$|,? (?:from|between|until|who|for|during|since|by)\b)"
)


def _role(text: str, page: Page, first: bool, joined: Collection[str]) -> Matches:
    """The only profession or title in a person's definition; with two there is no single answer."""
    if not first or page.kind != "person":
        return
    plain = re.sub(r" ?\([^()]*\)", "", text)
    match = _PROFESSION.search(plain)
    last = match["what"].split()[-1] if match else ""
    if match and KINDS.get(last) == "person" and last not in _NO_PROFESSION:
        yield RelationMatch("profession", (match["what"],))
    match = _HELD.search(plain)
    if match and _of_page(plain, match.start(), page):
        yield RelationMatch("title held", (match["what"],))


_MATCHERS: tuple[Matcher, ...] = (
    _works, _related_works, _released, _work_country, _life, _born_and_died, _family, _reign,
    _belongings, _places, _nationality, _role,
)  # fmt: skip


def match_relations(
    text: str, page: Page, *, first: bool, joined: Collection[str] = ()
) -> Iterator[RelationMatch]:
    """Everything that the patterns find in a claim about this page."""
    for matcher in _MATCHERS:
        yield from matcher(text, page, first, joined)


_ALSO = re.compile(
    r"\b(?:also|commonly|better|generally|formerly|originally|sometimes|widely) "
    r"(?:known|called|referred to) (?:simply )?as (?=[\"“]?[A-Z])"
)


def alternative_names(text: str) -> list[str]:
    """A subject's names in its first sentence: before the verb, "known as", an acronym."""
    lead = re.split(r" \(|,? (?:is|was|are|were) |, (?=[a-z])", text, maxsplit=1)[0].strip(' "“”,')
    found = [lead] if lead and len(lead) < 80 and lead[0].isupper() else []
    if match := _ALSO.search(text):
        found += names_at(text, match.end()).names[:1]
    if match := re.search(r"\((?P<short>[A-Z]{2,8})\)", text[:200]):
        found.append(match["short"])
    return found


# ----------------------------------------------------------------------------------------- triples


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
