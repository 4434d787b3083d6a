"""Sentence patterns: the relations that a sentence about a page states.

A pattern is a trigger ("directed by", "the son of") and a matcher for the names after it. Simple
patterns are in `sentence_patterns.toml`. Matchers prefer precision to recall, since one wrong fact
spoils a chain of five: they skip sentences that turn to another work or person, or that give an
approximate date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from suffice.lexicon import MONTHS
from suffice.storage.records import read_toml
from suffice_grade.claims import Page
from suffice_grade.vocabulary import (
    AREAS,
    COUNTRIES,
    FOLDER,
    KINDS,
    NAME,
    NATIONALITIES,
    RANKS,
    any_of,
    base_title,
    names_at,
    place_at,
)

PARENT = "parent"  # father or mother: the sentence does not tell which
PARENT_IN_LAW = "parent-in-law"


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
        r"\b(?:the|[Aa]s|and|was a) (?:wife|consort|queen consort|husband|spouse)(?: and \w+)? of "
        rf"{_LOWER}{_UPPER}"
    ),
    re.compile(rf"'s (?:wife|husband)(?: (?:is|was|,))? {_LOWER}{_UPPER}"),
)
# "married Mary Brereton, second daughter of William Brereton, 1st Baron Brereton"
_IN_LAW = re.compile(
    r"\b(?:(?:re)?married (?:(?:firstly|secondly|thirdly),? )?|(?:is|was) the (?:wife|husband) of )"
    rf"{_LOWER}{NAME.pattern}"
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
    text = re.sub(r"\b(is|was) (?=(?:daughter|son) of [A-Z])", r"\1 the ", text)
    text = re.sub(r",? who (?=(?:is|was) the (?:wife|husband|son|daughter) of)", " and ", text)
    text = re.sub(r"\b(?:first|second) cousin,? ", "cousin ", text)  # not "first husband"
    text = re.sub(r"(\bthe (?:father|mother) of [^,.;]+? and) of (?=[A-Z])", r"\1 ", text)
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
