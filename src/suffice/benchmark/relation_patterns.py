"""The relations that rules can read and ask about, one line each: who has it, what it leads to, and its words in a question.

`of` are the ways to say "the object of X" inside a longer question, `ask` the ways to ask for it, `X` standing for whoever is
asked about. Which one a question takes follows from its seed. A relation that does not stand here is *open*: the words of the
sentence between two names ("played for"), which a question repeats as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from suffice.benchmark.claims import Page
from suffice.benchmark.vocabulary import COUNTRIES, NATIONALITIES, base_title, names_at, place_at

__all__ = [
    "PARENT",
    "RELATIONS",
    "Relation",
    "RelationMatch",
    "alternative_names",
    "match_relations",
    "object_kind",
]


WORKS = ("film", "series", "song", "album", "book", "play", "game", "paper")


@dataclass(frozen=True, slots=True)
class Relation:
    name: str
    subjects: tuple[str, ...]  # kinds of page that have it; () for any
    object: str  # kind of the object: a page's kind, or date, country, name
    of: tuple[str, ...]  # inside a question; empty: it only ends one
    ask: tuple[str, ...]


_PERSON = ("person",)
_ALL = (
    Relation(
        "director",
        ("film", "series"),
        "person",
        ("the director of X", "the director of X", "the person who directed X"),
        ("Who directed X?", "Who is the director of X?"),
    ),
    Relation(
        "composer",
        (*WORKS,),
        "person",
        ("the composer of X", "the person who composed the music for X"),
        ("Who composed the music for X?", "Who is the composer of X?"),
    ),
    Relation(
        "performer",
        ("song", "album"),
        "",
        ("the performer of X", "the artist who recorded X", "the performer of X"),
        ("Who is the performer of X?", "Who recorded X?"),
    ),
    Relation(
        "author",
        ("book", "play", "song"),
        "person",
        ("the author of X", "the writer of X"),
        ("Who wrote X?", "Who is the author of X?"),
    ),
    Relation(
        "screenwriter",
        ("film", "series"),
        "person",
        ("the writer of X", "the person who wrote X"),
        ("Who wrote X?",),
    ),
    Relation(
        "producer",
        ("film", "series", "album", "song"),
        "person",
        ("the producer of X",),
        ("Who produced X?",),
    ),
    Relation(
        "creator",
        ("series", "game", "paper", "company"),
        "person",
        ("the creator of X",),
        ("Who created X?",),
    ),
    Relation(
        "developer",
        ("game",),
        "company",
        ("the developer of X", "the company that developed X"),
        ("Which company developed X?",),
    ),
    Relation(
        "publisher",
        ("book", "game", "paper"),
        "company",
        ("the publisher of X",),
        ("Who published X?",),
    ),
    Relation(
        "label",
        ("song", "album", "band"),
        "company",
        ("the record label of X", "the record label that released X"),
        ("What is the record label of X?", "Which label released X?"),
    ),
    Relation(
        "network",
        ("series",),
        "",
        ("the network that aired X", "the original network of X"),
        ("Which network aired X?",),
    ),
    Relation(
        "father",
        _PERSON,
        "person",
        ("the father of X", "X's father"),
        ("Who is X's father?", "Who is the father of X?"),
    ),
    Relation(
        "mother",
        _PERSON,
        "person",
        ("the mother of X", "X's mother"),
        ("Who is X's mother?", "Who is the mother of X?"),
    ),
    Relation(
        "husband",
        _PERSON,
        "person",
        ("the husband of X", "X's husband"),
        ("Who is the husband of X?", "Who is the spouse of X?"),
    ),
    Relation(
        "wife",
        _PERSON,
        "person",
        ("the wife of X", "X's wife"),
        ("Who is the wife of X?", "Who is the spouse of X?"),
    ),
    Relation(
        "spouse", _PERSON, "person", ("the spouse of X", "X's spouse"), ("Who is the spouse of X?",)
    ),
    Relation(
        "sibling",
        _PERSON,
        "person",
        ("the sibling of X", "X's sibling"),
        ("Who is X's sibling?", "Who is the sibling of X?"),
    ),
    Relation(
        "birth place",
        _PERSON,
        "place",
        ("the birthplace of X", "the place where X was born"),
        ("Where was X born?", "What is the place of birth of X?"),
    ),
    Relation(
        "death place",
        _PERSON,
        "place",
        ("the place where X died",),
        ("Where did X die?", "Where was the place of death of X?"),
    ),
    Relation(
        "burial place",
        _PERSON,
        "building",
        ("the burial place of X",),
        ("Where was X buried?", "What is the place of burial of X?"),
    ),
    Relation(
        "birth date",
        _PERSON,
        "date",
        (),
        ("When was X born?", "When is X's birthday?", "What is the date of birth of X?"),
    ),
    Relation(
        "death date", _PERSON, "date", (), ("When did X die?", "What is the date of death of X?")
    ),
    Relation(
        "nationality",
        _PERSON,
        "country",
        ("the country of citizenship of X", "the country that X is from"),
        ("What nationality is X?", "Which country X is from?", "What is the nationality of X?"),
    ),
    Relation(
        "school",
        _PERSON,
        "school",
        ("the school that X attended", "X's alma mater"),
        ("Where did X study?", "Which school did X attend?", "Where was X educated?"),
    ),
    Relation(
        "employer",
        _PERSON,
        "",
        ("the employer of X",),
        ("Where does X work?", "Who is the employer of X?"),
    ),
    Relation(
        "team",
        _PERSON,
        "team",
        ("the team that X plays for", "the club of X"),
        ("Which team does X play for?", "What team is X a member of?"),
    ),
    Relation(
        "member of",
        _PERSON,
        "band",
        ("the band that X is a member of", "X's band"),
        ("Which band is X a member of?",),
    ),
    Relation(
        "death cause", _PERSON, "name", (), ("Why did X die?", "What is the cause of death of X?")
    ),
    Relation(
        "release date",
        (*WORKS,),
        "date",
        (),
        ("When was X released?", "What is the release date of X?"),
    ),
    Relation(
        "based on",
        ("film", "series", "play", "game"),
        "book",
        ("the book that X is based on",),
        ("Which book is X based on?",),
    ),
    Relation(
        "work country",
        ("film", "series", "band", "company"),
        "country",
        ("the country of origin of X",),
        ("Which country is X from?",),
    ),
    Relation(
        "located in",
        ("place", "building", "school"),
        "place",
        ("the place where X is located", "the area where X is located"),
        ("Where is X located?", "In which administrative area is X located?"),
    ),
    Relation(
        "country",
        ("place", "building", "school"),
        "place",
        ("the country where X is located",),
        ("In which country is X located?",),
    ),
    Relation("capital", ("place",), "place", ("the capital of X",), ("What is the capital of X?",)),
    Relation(
        "headquarters",
        ("company", "school", "team", "band"),
        "place",
        ("the city where X is based", "the headquarters location of X"),
        ("Where is X based?", "Where are the headquarters of X?"),
    ),
    Relation(
        "founder",
        ("company", "school", "band", "team", "paper", "place"),
        "person",
        ("the founder of X",),
        ("Who founded X?",),
    ),
    Relation(
        "founded",
        ("company", "school", "band", "team", "paper", "building"),
        "date",
        (),
        ("When was X founded?", "When was X established?"),
    ),
    Relation(
        "owner",
        ("company", "building", "team", "paper", "series"),
        "",
        ("the owner of X",),
        ("Who owns X?", "Who is the owner of X?"),
    ),
    Relation(
        "cast", ("film", "series", "play"), "person", ("the star of X",), ("Who starred in X?",)
    ),
    Relation(
        "child",
        _PERSON,
        "person",
        ("the child of X", "X's child"),
        ("Who is the child of X?", "Who is X's child?"),
    ),
    Relation(
        "named after",
        (),
        "",
        ("the namesake of X", "what X is named after"),
        ("What is X named after?", "Who is X named after?"),
    ),
)
RELATIONS: dict[str, Relation] = {one.name: one for one in _ALL}


def object_kind(relation: str) -> str:
    """The kind of a relation's object; "" where it may be anything."""
    return RELATIONS[relation].object if relation in RELATIONS else ""


# --- patterns: Sentence patterns: what a claim says of its page, as relations and the names that follow.

PARENT = "parent"  # father or mother: the sentence does not say which


@dataclass(frozen=True, slots=True)
class RelationMatch:
    """A relation and its objects, as the sentence names them."""

    relation: str
    objects: tuple[str, ...]


# ------------------------------------------------------------------------------------------------------ works

Matcher = Callable[[str, Page, bool, Collection[str]], Iterator[RelationMatch]]
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = rf"(?:\d{{1,2}} (?:{_MONTHS}) \d{{3,4}}|(?:{_MONTHS}) \d{{1,2}}, \d{{3,4}}|(?:{_MONTHS}) \d{{4}}|[12]\d{{3}})"

# After these words the sentence speaks of another work.
_OTHER_WORK = re.compile(
    r"\b(?:remake|sequel|prequel|adaptation|adapted|based|inspired|spin-?off|version|parody|novel|"
    r"same name|film series|third|second)\b"
)
_NATION = (
    r"(?:"
    + "|".join(NATIONALITIES)
    + r"|Bollywood|Hollywood|Northern Irish|West German|East German|South Korean|North Korean|New Zealand)"
)
_BY = rf"(?:(?:the|an?|fellow) )?(?:{_NATION}(?:[- ]\w+)?(?: [a-z][\w-]*(?:,| and|/)?)* )?(?:[a-z][\w-]*(?:,| and|/)? )*"

_WORK_TRIGGERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("director", rf"\b(?:directed|co-directed)(?:,? and [a-z-]+)? by {_BY}", ("film", "series")),
    (
        "composer",
        rf"\b(?:music|score|soundtrack|songs?)(?: (?:is|was|were|are))?(?: composed| scored)? by {_BY}",
        ("film", "series", "play"),
    ),
    ("composer", rf"\bcomposed by {_BY}", ("film", "play", "song")),
    (
        "screenwriter",
        rf"\b(?:written|screenplay)(?:,? (?:and|produced and|produced,) [a-z-]+)? by {_BY}",
        ("film", "series"),
    ),
    ("author", rf"(?<!music )(?<!lyrics )\bwritten by {_BY}", ("book", "play", "song")),
    ("author", rf"\b(?:novel|book|novella|play|poem|memoir|trilogy) by {_BY}", ("book", "play")),
    (
        "performer",
        rf"\b(?:song|single|album|EP|ballad|soundtrack|mixtape)(?: recorded| performed| released)? by {_BY}",
        ("song", "album"),
    ),
    ("performer", rf"\b(?:recorded|performed|sung) by {_BY}", ("song", "album")),
    ("producer", rf"\bproduced by {_BY}", ("film", "series", "album", "song")),
    ("creator", rf"\bcreated by {_BY}", ("series", "game")),
    ("developer", rf"\bdeveloped(?: and published)? by {_BY}", ("game",)),
    ("publisher", rf"\b(?:published|developed and published) by {_BY}", ("book", "game", "paper")),
    (
        "label",
        r"\breleased (?:[^.;]{0,40} )?(?:through|by|on) (?=[A-Z][\w. ]*(?:Records|Music|Recordings|Entertainment))",
        ("song", "album"),
    ),
    ("cast", rf"\b(?:starring|stars|featuring|starred) {_BY}", ("film", "series", "play")),
    ("network", r"\b(?:aired|broadcast|premiered|airs) on (?:the )?", ("series",)),
)
_COMPILED_WORKS = [
    (relation, re.compile(pattern), kinds) for relation, pattern, kinds in _WORK_TRIGGERS
]


def _works(text: str, page: Page, first: bool, joined: Collection[str]) -> Iterator[RelationMatch]:
    for relation, trigger, kinds in _COMPILED_WORKS:
        if page.kind not in kinds or (match := trigger.search(text)) is None:
            continue
        if relation == "performer" and not first:  # later sentences tell of others who sang it
            continue
        before = text[: match.start()]
        if (
            _OTHER_WORK.search(before[len(base_title(page.title)) :] if first else before)
            or '"' in before[1 + len(page.title) :]
        ):
            continue
        yield from _named(relation, text, match.end(), joined)


_YEAR_OF = re.compile(
    r"\b(?:is|was) an? (?:upcoming |lost |(?:[A-Z][\w-]+ ){0,2})?(?P<year>[12]\d{3})\b(?! (?:novel|book|play|song|comic|story))"
)
_RELEASED = re.compile(
    rf"\b(?:was|were) (?:commercially |theatrically |officially |first |initially )?"
    rf"released (?:worldwide )?(?:in [A-Z][\w ]+ )?(?:on|in) (?P<date>{_DATE})"
)


def _released(
    text: str, page: Page, first: bool, joined: Collection[str]
) -> Iterator[RelationMatch]:
    if page.kind not in ("film", "series", "song", "album", "book", "game", "play"):
        return
    if first and page.kind == "film" and (match := _YEAR_OF.search(text)):
        yield RelationMatch("release date", (match["year"],))
    elif (match := _RELEASED.search(text)) and len(text[: match.start()].rstrip()) <= len(
        base_title(page.title)
    ) + 1:
        yield RelationMatch("release date", (match["date"],))


def _work_country(
    text: str, page: Page, first: bool, joined: Collection[str]
) -> Iterator[RelationMatch]:
    if (
        first
        and page.kind in ("film", "series", "band", "company")
        and (country := _one_country(page.defined))
    ):
        yield RelationMatch("work country", (country,))


def _one_country(defined: str) -> str | None:
    """The country of the only nationality that is named; None where there are two, or "Canadian-born"."""
    found = {
        NATIONALITIES[word] for word in re.findall(r"[A-Z]\w+", defined) if word in NATIONALITIES
    }
    mixed = re.search(
        r"\w-(?:born|[A-Z])|(?:South|North|New|West|East|Native|African|Anglo)[ -]", defined
    )
    return found.pop() if len(found) == 1 and not mixed else None


# ------------------------------------------------------------------------------------------------------ lives

_LIFE = re.compile(r"\((?P<life>[^()]*\d{3,4}[^()]*)\)")
_EVENT = re.compile(
    rf"(?P<date>{_DATE})(?:(?:,| in| at) (?P<place>[^;0-9]+))?$|(?P<place2>[^;0-9]+), (?P<date2>{_DATE})$"
)
_ROUGH = re.compile(
    r"\b(?:c\.|ca\.|circa|before|after|about|around|baptised|baptized|between|or|O\.S\.|N\.S\.|reigned?|r\.|fl\.|active)(?=\W|$)|/|\?"
)


def _life(text: str, page: Page, first: bool, joined: Collection[str]) -> Iterator[RelationMatch]:
    """Birth and death, as the parenthesis behind the name gives them."""
    if (
        not first
        or page.kind != "person"
        or (match := _LIFE.search(text)) is None
        or match.start() > 150
    ):
        return
    before = text[: match.start()]
    if re.search(r"\b(?:is|was)\b", before) or before.count("(") > before.count(")"):
        return
    life = match["life"].split(";")[-1].strip()
    if re.search(
        r"\b(?:reign|rule|r\.|fl\.|active|in office)", match["life"]
    ):  # years of something else
        return
    sides = re.split(r"\s*[–—]\s*|\s+-\s+|(?<=\d)-(?=\d)|(?<=\w)-(?=\d{1,2} [A-Z])", life)
    if len(sides) == 2:
        yield from _event(sides[0], "birth")
        yield from _event(sides[1], "death")
    elif len(sides) == 1 and re.match(r"born\b", life):
        yield from _event(life, "birth")
    elif len(sides) == 1 and re.match(r"died\b", life):
        yield from _event(life, "death")


def _event(words: str, what: str) -> Iterator[RelationMatch]:
    said = re.match(r"(?:born|died|Died|Born|b\.|d\.)(?: on)?\s+", words.strip())
    words = words.strip()[said.end() if said else 0 :]
    if (
        said and not words[0].isdigit() and not re.match(_MONTHS, words)
    ):  # "born Holly Mann, 23 December 1991"
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
    rf"\b(?:died|was killed|was executed|was assassinated)(?: on (?P<date>{_DATE}),?)? (?:in|at) (?=[A-Z]|the [A-Z])"
)
_DIED_ON = re.compile(rf"\bdied (?:on |in )(?P<date>{_DATE})")
_BURIED = re.compile(r"\b(?:is|was) (?:buried|interred) (?:in|at) (?:the )?(?=[A-Z])")


_NO_PLACE = re.compile(r"\b(?:House of|Family|Dynasty|Court|Army|Navy|War|Battle)\b")


def _born_and_died(
    text: str, page: Page, first: bool, joined: Collection[str]
) -> Iterator[RelationMatch]:
    if page.kind != "person":
        return
    for what, with_place, with_date in (("birth", _BORN, _BORN_ON), ("death", _DIED, _DIED_ON)):
        match = with_place.search(text)
        if match and _of_subject(text, match.start(), page):
            place = place_at(text, match.end())
            if place and not re.match(rf"(?:{_MONTHS})\b", place) and not _NO_PLACE.search(place):
                yield RelationMatch(f"{what} place", (re.sub(r",? (?:on|in)$", "", place),))
        match = with_date.search(text)
        if match and _of_subject(text, match.start(), page):
            yield RelationMatch(f"{what} date", (match["date"],))
    if (
        (match := _BURIED.search(text))
        and _of_subject(text, match.start(), page)
        and (place := place_at(text, match.end()))
    ):
        yield RelationMatch("burial place", (place,))


_TURNED = re.compile(
    r"^['’]s\b|\b(?:who|whose|which|that|his|her|their|when|where|after|before|son|daughter|wife|husband|father|mother|brother|sister|married|wed|succeeded)\b"
)


def _of_subject(text: str, at: int, page: Page) -> bool:
    """Whether what stands here is said of the page: between its name and here the sentence has not turned to another."""
    between = re.sub(r"\([^()]*\)", "", text[:at])
    name = base_title(page.title)
    found = between.find(name)
    rest = between[found + len(name) :] if found >= 0 else between
    return not _TURNED.search(rest) and not re.search(r"[,;] [A-Z]\w+ *$", rest)


# ------------------------------------------------------------------------------------------------------ families

# What a person is called before the name: "the late actor ".
_LOWER = r"(?:(?!(?:of|to|in|at|by|for|from|with|known|appointed|son|daughter|child|member|into|an?)\b)[a-z][\w-]*,? )*"
_CHILD = re.compile(
    rf"(?P<which>(?:[\w-]+ ){{0,3}})\b(?:son|daughter|child)(?: and (?:\w+ )?(?:heir|successor|child))?"
    rf"(?:,? born)? (?:of|to) {_LOWER}(?=[A-Z])"
)
_BORN_TO = re.compile(rf"\bborn (?:in [A-Z][\w, -]+? )?to {_LOWER}(?=[A-Z])")
_NOT_CHILD = re.compile(
    r"\b(?:grand|great|god|step|adopted|foster|adoptive|illegitimate|natural|in-law|or)\b|grand(?:son|daughter)"
)
_PARENT_IS = re.compile(rf"(?:'s|s') (?P<who>father|mother) (?:is|was) {_LOWER}(?=[A-Z])")
_SPOUSE = (
    re.compile(
        rf"\b(?:(?:has been|was|is|were|got) married (?:to|with)|married|wed) {_LOWER}(?=[A-Z])"
    ),
    re.compile(
        rf"\b(?:the|as|and) (?:wife|consort|queen consort|husband|spouse)(?: and \w+)? of {_LOWER}(?=[A-Z])"
    ),
)
_FATHER_OF = re.compile(rf"\b(?:is|was|and|,) the (?:father|mother) of {_LOWER}(?=[A-Z])")
_SPOUSE_IS = re.compile(rf"'s (?:wife|husband)(?: (?:is|was|,))? {_LOWER}(?=[A-Z])")
_SIBLING = re.compile(rf"\b(?:the|an?) (?:\w+ )?(?:brother|sister) of {_LOWER}(?=[A-Z])")
_OFTEN = re.compile(
    r"\b(?:first|second|third|fourth|firstly|secondly|twice|thrice|former|ex-\w+|divorced|remarried|again|later|times|engaged|"
    r"wives|husbands|marriages|widow|widower|half|law)\b"
)


def _family(text: str, page: Page, first: bool, joined: Collection[str]) -> Iterator[RelationMatch]:
    if page.kind != "person":
        return
    text = re.sub(
        r" \((?!(?:[^()]*\b)?(?:born|died))[^()]*\d[^()]*\)", "", text
    )  # "the son of John (1628–1666) and Anna"
    if (match := _BORN_TO.search(text)) and _of_subject(text, match.start(), page):
        yield from _named(PARENT, text, match.end(), joined, commas=False)
    for match in _CHILD.finditer(text):
        if not _NOT_CHILD.search(match.group()) and _of_subject(text, match.start("which"), page):
            yield from _named(PARENT, text, match.end(), joined, commas=False)
            break
    if (match := _PARENT_IS.search(text)) and _of_subject(text, match.start(), page):
        yield from _named(match["who"], text, match.end(), joined)
    if (match := _FATHER_OF.search(text)) and _of_subject(text, match.start(), page):
        yield from _named("child", text, match.end(), joined)
    if not _OFTEN.search(text):
        spouse = next(
            (
                found
                for one in _SPOUSE
                if (found := one.search(text)) and _of_subject(text, found.start(), page)
            ),
            None,
        )
        spouse = spouse or (
            (
                (found := _SPOUSE_IS.search(text))
                and _of_subject(text, found.start(), page)
                and found
            )
            or None
        )
        if spouse:
            yield from _named("spouse", text, spouse.end(), joined)
        if (match := _SIBLING.search(text)) and _of_subject(text, match.start(), page):
            yield from _named("sibling", text, match.end(), joined)


# A name before another noun is not the name that was looked for: "Polish Noble Prize laureate", "the Tang dynasty".
_GOES_ON = re.compile(
    r" (?!(?:and|or|in|on|at|of|by|from|with|who|whom|which|that|when|where|after|before|for|to|as|until|during|but|is|was|"
    r"are|were|"
    r"has|had|daughter|son|starring|featuring|based|about|the|an?|his|her|its|also|both|under|through|over|then|while|between|"
    r"because|along|near|since|produced|directed|written|edited|released|married)\b)[a-z]"
)


def _named(
    relation: str, text: str, at: int, joined: Collection[str], *, commas: bool = True
) -> Iterator[RelationMatch]:
    found = names_at(text, at, joined=joined, commas=commas)
    if found.names and not _GOES_ON.match(text, found.end):
        yield RelationMatch(relation, found.names)


# ------------------------------------------------------------------------------------------------------ belongings

_BELONGINGS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "school",
        r"\b(?:graduated from|studied (?:[a-z]+ ){0,3}at|attended|was educated at|alumnus of|alumna of|"
        r"graduate of|degree (?:[a-z]+ ){0,3}(?:from|at)) (?:the )?(?=[A-Z])",
        ("person",),
    ),
    (
        "team",
        r"\b(?:plays|currently plays|playing) (?:[a-z-]+ ){0,6}for (?:the )?(?:[a-z]+ )*(?=[A-Z])",
        ("person",),
    ),
    (
        "member of",
        r"\b(?:is|was) (?:the|an?) (?:[a-z-]+ ){0,5}(?:member|vocalist|singer|guitarist|drummer|"
        r"bassist|frontman|leader) (?:of|for) (?:the )?(?:[A-Z]?[a-z-]+ )*?band (?=[A-Z])",
        ("person",),
    ),
    (
        "founder",
        rf"\b(?:founded|established|co-founded|formed)(?: (?:on|in) [\w ,]+?)? by {_BY}",
        ("company", "school", "band", "team", "paper", "place"),
    ),
    (
        "headquarters",
        r"\b(?:headquartered|based|headquarters (?:is |are )?(?:located )?) ?in (?=[A-Z])",
        ("company", "school", "team", "band", "paper"),
    ),
    (
        "owner",
        r"\b(?:owned(?: and operated)? by|subsidiary of|division of) (?:the )?(?:[a-z][\w-]* )*(?=[A-Z])",
        ("company", "building", "team", "paper", "series"),
    ),
    (
        "named after",
        r"\b(?:was |is )?named (?:after|for|in honou?r of) (?:the )?(?:[a-z][\w-]*,? )*(?=[A-Z])",
        ("place", "building", "school", "company", "team"),
    ),
    (
        "employer",
        r"\b(?:is|was) (?:the|an?) (?:[a-z-]+ )*(?:professor|lecturer)(?: of [a-z ]+)? at (?:the )?(?=[A-Z])",
        ("person",),
    ),
)
_COMPILED_BELONGINGS = [
    (relation, re.compile(pattern), kinds) for relation, pattern, kinds in _BELONGINGS
]
_FOUNDED = re.compile(rf"\b(?:was |is )?(?:founded|established|formed) (?:in|on) (?P<date>{_DATE})")
_IN = re.compile(
    r"\b(?:is|was) (?:an?|the) (?:[\w-]+ ){0,6}?(?:located |situated )?(?:in|on|of) (?=[A-Z]|the [A-Z])"
)


def _belongings(
    text: str, page: Page, first: bool, joined: Collection[str]
) -> Iterator[RelationMatch]:
    for relation, trigger, kinds in _COMPILED_BELONGINGS:
        if (
            page.kind in kinds
            and (match := trigger.search(text))
            and _of_subject(text, match.start(), page)
        ):
            if relation == "headquarters":
                place = place_at(text, match.end())
                yield from [RelationMatch(relation, (place,))] if place else []
            else:
                yield from _named(relation, text, match.end(), joined)
    founded = (
        _FOUNDED.search(text)
        if page.kind in ("company", "school", "band", "team", "paper", "building")
        else None
    )
    if founded and _of_subject(text, founded.start(), page):
        yield RelationMatch("founded", (founded["date"],))


def _places(text: str, page: Page, first: bool, joined: Collection[str]) -> Iterator[RelationMatch]:
    if (
        not first
        or page.kind not in ("place", "building", "school")
        or (match := _IN.search(text)) is None
    ):
        return
    if (place := place_at(text, match.end())) is None:
        return
    whole = [part.removeprefix("the ") for part in place.split(", ")]
    yield RelationMatch("located in", (whole[0],))
    named = [part for part in whole if part in COUNTRIES]
    if len(named) == 1 and named[0] != base_title(page.title):
        yield RelationMatch("country", (named[0],))


def _nationality(
    text: str, page: Page, first: bool, joined: Collection[str]
) -> Iterator[RelationMatch]:
    if first and page.kind == "person" and (country := _one_country(page.defined)):
        yield RelationMatch("nationality", (country,))


_MATCHERS: tuple[Matcher, ...] = (
    _works,
    _released,
    _work_country,
    _life,
    _born_and_died,
    _family,
    _belongings,
    _places,
    _nationality,
)


def match_relations(
    text: str, page: Page, *, first: bool, joined: Collection[str] = ()
) -> Iterator[RelationMatch]:
    """Everything that the patterns find in a claim about this page. `joined`: see `vocabulary.names_at`."""
    for reader in _MATCHERS:
        yield from reader(text, page, first, joined)


_ALSO = re.compile(
    r"\b(?:also|commonly|better|generally|formerly|originally|sometimes|widely) "
    r"(?:known|called|referred to) (?:simply )?as (?=[\"“]?[A-Z])"
)


def alternative_names(text: str) -> list[str]:
    """What a page's first sentence calls its subject: the words before the verb, names behind "known as", an acronym."""
    lead = re.split(r" \(|,? (?:is|was|are|were) |, (?=[a-z])", text, maxsplit=1)[0].strip(' "“”,')
    found = [lead] if lead and len(lead) < 80 and lead[0].isupper() else []
    if match := _ALSO.search(text):
        found += names_at(text, match.end()).names[:1]
    if match := re.search(r"\((?P<short>[A-Z]{2,8})\)", text[:200]):
        found.append(match["short"])
    return found
