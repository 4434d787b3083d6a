"""Open relations: subject, relation phrase and object of any sentence, without a list of relations.

    Team Tern is led by Mira Holt.          Team Tern   led by       Mira Holt
    Mira Holt leads Team Tern.              Mira Holt   leads        Team Tern
    The default port of Atlas is 5432.      Atlas       default port 5432
    "It works," said Mira Holt.             Mira Holt   said         It works

A clause is read from its start: a subject, a verb group of `verbs.toml`, an object that ends where
a clause may end. What does not fit is not read; a sentence with a negation, a modal or a condition
states nothing. The relation is written in one form: the third person of a verb ("leads"), or its
participle with the preposition ("led by"), so `inverse` finds one from the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from suffice.benchmark.terms import NO_TERMS, CorpusTerms
from suffice.benchmark.vocabulary import (
    COUNTRIES,
    FIRST_NAMES,
    FOLDER,
    NATIONALITIES,
    ORGANISATIONS,
    RANKS,
    ROLES,
    any_of,
    names_at,
)
from suffice.lexicon import FUNCTION_WORDS, MONTHS, NUMBER_WORDS, WEEKDAYS
from suffice.storage.records import read_toml
from suffice.text import date_mentions, title_key

SAID = "said"
MAX_OBJECT_WORDS, MAX_CLAIM_WORDS = 7, 40
LITERALS = frozenset(("date", "amount", "version", "id"))


class OpenMatch(NamedTuple):
    """A relation between two phrases of a sentence, and the words between them."""

    subject: str
    relation: str
    object: str
    phrase: str
    several: bool = False


# ------------------------------------------------------------------------------------------- verbs

_DATA = read_toml(FOLDER / "verbs.toml")


class Verb(NamedTuple):
    """A verb in the forms that a relation is written in."""

    third: str  # "leads"
    participle: str  # "led"


def _third(base: str) -> str:
    if re.search(r"(?:s|x|z|ch|sh|o)$", base):
        return base + "es"
    return base[:-1] + "ies" if re.search(r"[^aeiou]y$", base) else base + "s"


_DOUBLED = frozenset(
    "plan ship stop submit permit refer transfer equip wrap scan log cut occur".split()
)


def _past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base in _DOUBLED:
        return base + base[-1] + "ed"
    return base[:-1] + "ied" if re.search(r"[^aeiou]y$", base) else base + "ed"


_LOOSE = frozenset(_DATA["too_loose"].split())
_ACTIVE: dict[str, Verb] = {}  # "leads", "led" -> the verb
_PARTICIPLES: dict[str, Verb] = {}
_BY_THIRD: dict[str, Verb] = {}
for _base in _DATA["regular"].split():
    _verb = Verb(_third(_base), _past(_base))
    _ACTIVE[_verb.third] = _ACTIVE[_verb.participle] = _PARTICIPLES[_verb.participle] = _verb
for _one in _DATA["irregular"].split(";"):
    _base, _simple, _participle = _one.strip().split(":")
    _verb = Verb(_third(_base), _participle)
    _PARTICIPLES[_participle] = _verb
    _ACTIVE[_verb.third] = _ACTIVE[_simple] = _verb
for _verb in {*_ACTIVE.values(), *_PARTICIPLES.values()}:
    _BY_THIRD[_verb.third] = _verb
_BY_PARTICIPLE = {verb.participle: verb for verb in _PARTICIPLES.values()}
# "found" is the past of "find" and the base of "found"; "founded" is clear.
KNOWN_NAMES: dict[str, str] = _DATA["names"]  # open relation -> its name in relations.toml
_ADJECTIVES = frozenset(" ".join(one.split()) for one in _DATA["adjectives"].split(","))
_SPEECH = frozenset(
    form for one in _DATA["speech"].split(";") for form in one.strip().split(":")[1:2]
) | {"says", "adds", "notes", "explains", "argues", "warns"}


def inverse(relation: str) -> str:
    """The relation from the object to the subject: "leads" and "led by"; "" if it has none."""
    if relation.endswith(" by"):
        verb = _BY_PARTICIPLE.get(relation.removesuffix(" by"))
        return verb.third if verb else ""
    verb = _BY_THIRD.get(relation)
    return f"{verb.participle} by" if verb and relation not in _LOOSE else ""


# ------------------------------------------------------------------------------- kinds of objects

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_MONEY = (
    rf"(?:(?:US|C|A)?[$€£¥]\s?{_NUMBER}(?:\s?(?:thousand|million|billion|trillion|[kmb]n?)\b)?)"
)
_UNITS = (
    r"%|percent|per cent|euros?|dollars?|pounds?|[kmgt]?b(?:ytes?)?|[KMGT]i?B|[kmc]?m|mm|km|miles?|"
    r"feet|foot|inch(?:es)?|kg|g|mg|l|ml|litres?|liters?|grams?|tons?|tonnes?|hours?|h|minutes?|"
    r"min|seconds?|s|ms|days?|weeks?|months?|years?|people|employees|users|customers|members|"
    r"degrees|°C|°F|V|W|kW|MW|Nm|bar|Hz|[kMG]Hz|x|times|points?|seats?|rooms?|pages?|copies|units?|"
    r"million|billion|thousand|bits?|bytes?|characters?|lines?|files?|entries|items?|goals?|votes?"
)
_AMOUNT = re.compile(
    rf"(?:(?:about|around|up to|at least|at most|over|under|nearly|almost) )?"
    rf"(?:{_MONEY}|{_NUMBER}(?:\s?(?:million|billion|thousand))?(?:[ -]?(?:{_UNITS}))(?![\w-])"
    rf"|{_NUMBER}(?![\w.%-]))"
)
_VERSION = re.compile(
    r"(?:version )?v?\d+(?:\.\d+)+(?:[-.~]?(?:rc|beta|alpha|post|dev)\.?\d*)?(?![\w%])"
)
_MONTH = "|".join(MONTHS)
_DATE = re.compile(
    rf"(?:(?:{'|'.join(WEEKDAYS)}),? )?(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{_MONTH})(?:,? \d{{4}})?|"
    rf"(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?(?:, \d{{4}})?|(?:{_MONTH}) \d{{4}}|\d{{4}}-\d\d-\d\d|"
    rf"[12]\d{{3}}(?![\w%]|[.,-]\d)|\d{{1,2}}:\d\d(?: ?[ap]m)?)(?!\w)"
)
_CODE = re.compile(
    r"(?:--?[a-z][\w-]+|/(?:[\w.-]+/)*[\w.-]+|[A-Z]{1,6}-?\d[\w-]*|[a-z]\w*(?:[_.]\w+)+|"
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|https?://\S+\w|[a-z]+\d[\w-]*|[\w.+-]+\(\d\w*\))(?![\w])"
)


def kind_of(name: str, page_kind: str = "") -> str:
    """What an object is: date, amount, version, id, person, place, organisation, thing or ""."""
    for kind, pattern in (("date", _DATE), ("version", _VERSION), ("amount", _AMOUNT)):
        if pattern.fullmatch(name):
            return kind
    mentions = date_mentions(name)
    if len(mentions) == 1 and mentions[0].end - mentions[0].start == len(name):
        return "date"
    if _CODE.fullmatch(name):
        return "id"
    by_page = {"person": "person", "place": "place", "company": "organisation"}
    by_page |= dict.fromkeys(("school", "band", "team", "paper"), "organisation")
    if page_kind:
        return by_page.get(page_kind, "thing")
    words = name.split()
    capitals = [word for word in words if word[:1].isupper()]
    if name in COUNTRIES or (words and words[0] in ("Mount", "Lake", "River")):
        return "place"
    if not capitals:
        return "thing"
    if len(capitals) > 1 or len(words) == 1:
        if words[-1].casefold().strip(".") in ORGANISATIONS:
            return "organisation"
        first = words[0].casefold().strip(".")
        ranked = words[0] in RANKS or words[0] in ("Mr", "Mrs", "Ms", "Dr")
        if len(words) in (2, 3, 4) and (first in FIRST_NAMES or ranked):
            return "person"
    return ""


# ----------------------------------------------------------------------------------------- phrases

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\s,;:()\"“”]+")
_ADVERB = re.compile(
    r"(?:[a-z]+ly|also|now|still|already|then|once|first|again|later|soon|just|both|jointly|ever)$"
)
_BE = frozenset("is was are were been".split())
_HAVE = frozenset("has have had".split())
_PREPOSITIONS = frozenset(
    "by in on at to from for with as of after into under against over through between until".split()
)
_PARTICLES = frozenset("up out over off down".split())
# Where a clause may end, so an object before it is whole.
_END = re.compile(
    rf"\s*(?:$|[.;:!?)–—](?:\s|$|[\"”])|,(?=\s)|[\"”]|\((?!s\))| (?:{any_of('after_name')})\b)"
)
_STOP = frozenset(
    "and or but which that who whose whom when where while after before because if as to with in on"
    " at for from by during since until than is was are were has have had will would can could may"
    " should must not so then via per within without about into under over through between against"
    " including such like using including amid despite unless though although once".split()
)
_EMPTY_NOUNS = frozenset(
    "several many some more other such new first own same few various different lot number all any"
    " each every another most much this that these those it them him her he she they his its their"
    " our your my one ones two three something anything everything things thing way ways time part"
    " addition order case both none here there what how back away well".split()
)
_STATES_NOTHING = re.compile(
    r"\b(?:not|never|no longer|nor|neither|if|unless|whether|would|could|should|might|may|must|can|"
    r"cannot|will|shall|won't|\w+n't|\w+n’t|plans? to|hopes? to|wants? to|expected|expects|proposed|planned|"
    r"considering|instead of|rather than|failed|fake|no)\b"
)
_LEAD = re.compile(
    r"(?:(?:In|On|At|Since|By|During|After|From|Until|As of) [^,;.]{1,40}, |"
    r"(?:Today|Currently|Now|Also|Then|Later|Meanwhile|However|Finally|Previously|Originally),? )"
)
_PARENS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_DETERMINER = re.compile(r"(?:[Tt]he|[Aa]n?|[Ii]ts|[Oo]ur) ")
_POSSESSIVE = re.compile(r"(?P<owner>.+?)(?:['’]s|(?<=s)['’]) (?P<rest>\S.*)")
_NAME = re.compile(r"(?:[Tt]he )?(?=[A-Z0-9`])")
_ROLE = "|".join(sorted((re.escape(role) for role in ROLES), key=len, reverse=True))
_APPOSED = re.compile(
    rf"(?P<name>[A-Z][\w'’.-]+(?: [A-Z][\w'’.-]+){{1,3}}), (?:the |an? |its )?"
    rf"(?P<former>former |then |current |acting |interim |newly appointed )?(?P<role>(?i:{_ROLE})) "
    rf"(?:of|at|for) (?:the )?(?=[A-Z])"
)
_TITLED = re.compile(
    rf"(?P<place>[A-Z][\w&.-]+(?: [A-Z][\w&.-]+){{0,2}})(?:['’]s?)? "
    rf"(?P<former>former |then-|ex-)?(?P<role>(?:{_ROLE}|CEO|CTO|CFO|COO)) "
    rf"(?P<name>[A-Z][a-z][\w'’-]+ [A-Z][\w'’-]+)\b(?! [A-Z])"
)
_OF_IS = re.compile(
    r"(?:The|the) (?P<key>[a-z][\w/-]*(?: [a-z][\w/-]*){0,2}) (?:of|for) (?:the )?"
    r"(?P<subject>[^,;:()]{2,50}?) (?:is|was|are|were) (?P<rest>\S.*)"
)
_IS_THE = re.compile(
    r"(?:is|was) (?:the |an? )?(?:current |new )?(?P<key>[a-z][\w/-]*(?: [a-z][\w/-]*){0,2}) "
    r"(?P<prep>of|for|at) (?:the )?(?P<rest>\S.*)"
)
_KEY_IS = re.compile(
    r"(?:The|Its) (?P<key>[a-z][\w/-]*(?: [a-z][\w/-]*){0,2}) (?:is|was) (?P<rest>\S.*)"
)
_QUOTED = re.compile(
    r"[\"“](?P<quote>[^\"“”]{8,300}?)[,.!]?[\"”],? (?:(?P<verb>\w+) (?P<after>[A-Z][\w'’.-]+(?: [A-Z][\w'’.-]+){0,3})"
    r"|(?P<before>[A-Z][\w'’.-]+(?: [A-Z][\w'’.-]+){0,3})(?:, [^,\"“]{2,60},)? (?P<verb2>\w+))"
)
_SAYS = re.compile(
    r"(?:, [^,]{2,60},)? (?P<verb>\w+) (?:on \w+ )?(?:that )?(?P<claim>[^\"“”]{12,300})$"
)


def open_relations(
    text: str, subject: str = "", terms: CorpusTerms = NO_TERMS
) -> Iterator[OpenMatch]:
    """Everything that a sentence states openly.

    `subject` is what the sentence is known to be about: its text opens with that name. `terms` is
    the vocabulary of the corpus.
    """
    yield from _speech(text)
    clean = _PARENS.sub("", text).strip()
    for match in _APPOSED.finditer(clean):
        yield from _role(clean, match)
    for match in _TITLED.finditer(clean):
        if (
            not match["former"]
            and match["place"] not in NATIONALITIES
            and _is_person(match["name"])
        ):
            role = match["role"].lower() if not match["role"].isupper() else match["role"]
            place = match["place"].removesuffix("'s").removesuffix("’s")
            if place.casefold() not in FUNCTION_WORDS and place not in WEEKDAYS:
                yield OpenMatch(place, role, match["name"], match["role"])
    head = re.split(r"[;:]\s", clean, maxsplit=1)[0]
    if _STATES_NOTHING.search(head) or '"' in head or "“" in head:
        return
    yield from _clause(head, subject, terms)


def _is_person(name: str) -> bool:
    return name.split()[0].casefold() in FIRST_NAMES or kind_of(name) in ("person", "")


def _role(text: str, match: re.Match[str]) -> Iterator[OpenMatch]:
    """ "Mira Holt, the head of Team Tern," """
    places = names_at(text, match.end())
    if match["former"] and match["former"].strip() in ("former", "then"):
        return
    if len(places.names) >= 1 and _END.match(text, places.end) and " " in match["name"]:
        role = match["role"]
        role = role if role.isupper() else role.casefold()
        yield OpenMatch(places.names[0], role, match["name"], match["role"])


def _speech(text: str) -> Iterator[OpenMatch]:
    for match in _QUOTED.finditer(text):
        verb = match["verb"] or match["verb2"]
        name = match["after"] or match["before"]
        if verb in _SPEECH and verb not in ("reported", "announced") and _is_speaker(name):
            yield OpenMatch(_stripped(name), SAID, match["quote"].strip(" ,."), verb)
            return
    names = names_at(text, 0)
    if len(names.names) != 1 or not _is_speaker(names.names[0]):
        return
    match = _SAYS.match(text, names.end)
    if match is None or match["verb"] not in _SPEECH or match["verb"] in ("told", "announced"):
        return
    claim = match["claim"].strip(" .")
    first = claim.split()[0].casefold()
    if 3 < len(claim.split()) <= MAX_CLAIM_WORDS and first not in (
        "to", "in", "at", "about", "of", "so", "by", "for", "as", "goodbye", "hello", "yes", "no",
        "his", "her", "its", "their", "he", "she", "it", "they", "this", "that", "these", "those",
    ):  # fmt: skip
        yield OpenMatch(_stripped(names.names[0]), SAID, claim, match["verb"])


def _is_speaker(name: str) -> bool:
    first = name.split()[0].casefold().strip(".")
    return first not in FUNCTION_WORDS and name not in WEEKDAYS and name not in MONTHS


def _stripped(name: str) -> str:
    return re.sub(r"['’]s?$", "", name).strip(" ,.")


def _clause(text: str, subject: str, terms: CorpusTerms) -> Iterator[OpenMatch]:
    if match := _OF_IS.fullmatch(text.rstrip(".")):
        yield from _attribute(match["subject"], match["key"], match["rest"], terms)
        return
    lead = _LEAD.match(text)
    at = lead.end() if lead else 0
    name, end = _subject_at(text, at, subject, terms)
    if not name:
        if subject and (match := _KEY_IS.fullmatch(text.rstrip("."))):
            yield from _attribute(subject, match["key"], match["rest"], terms, literal=True)
        return
    owned = _POSSESSIVE.fullmatch(text[at:].rstrip("."))
    if owned and owned["owner"] in (name, f"The {name}", f"the {name}"):
        if match := re.fullmatch(
            r"(?P<key>[a-z][\w/-]*(?: [a-z][\w/-]*){0,2}) (?:is|was) (?P<rest>\S.*)", owned["rest"]
        ):
            yield from _attribute(name, match["key"], match["rest"], terms)
        return
    # "Mira Holt, who joined in 2019, leads": the part between commas says nothing about the verb.
    if text.startswith(", ", end):
        close = text.find(", ", end + 2)
        if close < 0 or close - end > 80:
            return
        end = close + 1
    yield from _predicate(name, text, end, terms)


def _attribute(
    subject: str, key: str, rest: str, terms: CorpusTerms, *, literal: bool = False
) -> Iterator[OpenMatch]:
    """The key of a subject is an object: "The owner of Atlas is Mira Holt"."""
    words = key.split()
    if words[-1] in _EMPTY_NOUNS | _STOP or words[0] in _EMPTY_NOUNS or words[-1].endswith("ly"):
        return
    names, end, kind = object_at(rest, 0, terms)
    if not names or not _END.match(rest, end) or re.match(r" (?:of|and|or)\b", rest[end:]):
        return
    if (literal and kind not in LITERALS) or kind == "phrase":
        return
    owner = _DETERMINER.sub("", subject, count=1)
    if not _is_named(owner, terms):
        return
    for name in names:
        yield OpenMatch(owner, key, name, f"{key} is", len(names) > 1)


def _is_named(name: str, terms: CorpusTerms) -> bool:
    key = title_key(name)
    capital = all(word[:1].isupper() or word in _SMALL_JOINTS for word in name.split())
    coded = _CODE.fullmatch(name) is not None
    return bool(key) and (capital or coded or key in terms.things) and key not in FUNCTION_WORDS


_SMALL_JOINTS = frozenset("of the and de van von der la le du for".split())


def _subject_at(text: str, at: int, subject: str, terms: CorpusTerms) -> tuple[str, int]:
    """The subject that begins here and where it ends; "" if it is not sure."""
    if subject and text.startswith(subject, at):
        return subject, at + len(subject)
    after = _DETERMINER.match(text, at)
    start = after.end() if after else at
    if match := _CODE.match(text, start):
        return match.group(), match.end()
    words = text[start:].split(" ", 7)
    if after or words[0][:1].islower():
        for size in range(min(4, len(words) - 1), 0, -1):
            phrase = " ".join(words[:size])
            if title_key(phrase) in terms.things and not phrase[:1].isupper():
                return phrase, start + len(phrase)
    if not text[start : start + 1].isupper():
        return "", at
    if text[start:].split(" ")[0].casefold().strip(",.'’") in FUNCTION_WORDS:
        return "", at
    found = names_at(text, start, commas=False)
    if len(found.names) != 1:
        return "", at
    name = found.names[0]
    if "'s " in name or "’s " in name:
        return "", at
    if name in NATIONALITIES or name.casefold() in FUNCTION_WORDS or name in WEEKDAYS:
        return "", at
    # A capital at the start of a sentence is no name: the next words must show it.
    if " " not in name and not after and not name.isupper() and name.casefold() in terms.small:
        return "", at
    return name, found.end


class _VerbGroup(NamedTuple):
    relation: str  # without the preposition
    passive: bool
    end: int


def _words_from(text: str, at: int) -> Iterator[tuple[str, int]]:
    while (match := _WORD.match(text, _skip(text, at))) is not None:
        at = match.end()
        yield match.group(), at


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _verb_at(text: str, at: int) -> _VerbGroup | None:
    """The verb group that begins here, with its particle."""
    passive = perfect = False
    for count, (word, end) in enumerate(_words_from(text, at)):
        if count > 5:
            return None
        if word in _BE:
            passive = True
        elif word in _HAVE:
            perfect = True
        elif word in ("being",) or _ADVERB.match(word):
            continue
        elif passive or perfect:
            verb = _PARTICIPLES.get(word.rstrip("."))
            if verb is None:
                return None
            return _VerbGroup(verb.participle if passive else verb.third, passive, end)
        else:
            verb = _ACTIVE.get(word)
            if verb is None:
                return None
            following = text[_skip(text, end) :].split(" ", 1)[0]
            if following == "by" and word in _PARTICIPLES:  # "a team led by Mira Holt"
                return _VerbGroup(_PARTICIPLES[word].participle, True, end)
            if following in _PARTICLES:
                end = _skip(text, end) + len(following)
                return _VerbGroup(f"{verb.third} {following}", False, end)
            return _VerbGroup(verb.third, False, end)
    return None


def _predicate(subject: str, text: str, at: int, terms: CorpusTerms) -> Iterator[OpenMatch]:
    start = _skip(text, at)
    if match := _IS_THE.match(text, start):
        found = list(_is_the(subject, text, match, terms))
        yield from found
        if found:
            return
    adjective = re.match(r"(?:is|was|are|were) (?:also |currently |now )?", text[start:])
    if adjective:
        rest = start + adjective.end()
        for size in (3, 2):
            words = text[rest:].split(" ")[:size]
            if " ".join(words) in _ADJECTIVES:
                end = rest + len(" ".join(words))
                phrase = " ".join(words)
                relation = phrase.removeprefix("also ")
                yield from _objects(subject, relation, text, start, end, terms)
                return
    group = _verb_at(text, start)
    if group is None or group.relation in _LOOSE:
        return
    following = text[_skip(text, group.end) :].split(" ", 1)[0]
    if following in _PREPOSITIONS:
        end = _skip(text, group.end) + len(following)
        found = list(_objects(subject, f"{group.relation} {following}", text, start, end, terms))
        yield from found
        # "was founded in 2003 by Mira Holt"
        yield from _second(subject, group, text, start, end, terms) if found else ()
    elif not group.passive:
        yield from _objects(subject, group.relation, text, start, group.end, terms)


def _is_the(
    subject: str, text: str, match: re.Match[str], terms: CorpusTerms
) -> Iterator[OpenMatch]:
    """ "Mira Holt is the head of Team Tern": Team Tern has her as head."""
    key, start = match["key"], match.start("rest")
    words = key.split()
    if words[-1] in _EMPTY_NOUNS | _STOP or words[0] in _EMPTY_NOUNS | _PREPOSITIONS:
        return
    if any(word in _PARTICIPLES or word in _STOP or word.endswith("ing") for word in words):
        return
    names, end, kind = object_at(text, start, terms)
    if len(names) != 1 or kind in ("phrase", *LITERALS) or not _END.match(text, end):
        return
    the = re.match(r"(?:is|was) the ", match.group())
    if the or key in ROLES:
        yield OpenMatch(names[0], key, subject, text[match.start() : start].strip())
    elif match["prep"] == "of":
        yield OpenMatch(subject, f"{key} of", names[0], f"is a {key} of")


def _second(
    subject: str, group: _VerbGroup, text: str, start: int, end: int, terms: CorpusTerms
) -> Iterator[OpenMatch]:
    names, at, kind = object_at(text, _skip(text, end), terms)
    following = text[_skip(text, at) :].split(" ", 1)[0]
    if names and kind in ("date", "name") and following in ("by", "in", "on", "at"):
        further = _skip(text, at) + len(following)
        relation = f"{group.relation} {following}"
        for one in _objects(subject, relation, text, start, further, terms):
            verb = text[start:end].rpartition(" ")[0]
            yield one._replace(phrase=f"{verb} {following}")


def _objects(
    subject: str, relation: str, text: str, start: int, end: int, terms: CorpusTerms
) -> Iterator[OpenMatch]:
    names, stop, kind = object_at(text, _skip(text, end), terms)
    if not names or not _END.match(text, stop):
        return
    preposition = relation.split()[-1]
    if kind == "date" and preposition not in ("on", "in", "at", "from", "until", "after", "since"):
        if not relation.endswith(("due by", "valid until")):
            return
    if kind == "name" and preposition in ("on", "in") and names[0] in (*WEEKDAYS, *MONTHS):
        return
    if kind == "phrase" and not (
        title_key(subject) in terms.things or title_key(names[0]) in terms.things
    ):
        return
    for name in names:
        if title_key(name) != title_key(subject):
            yield OpenMatch(subject, relation, name, text[start:end].strip(), len(names) > 1)


def object_at(text: str, at: int, terms: CorpusTerms) -> tuple[tuple[str, ...], int, str]:
    """The objects that begin here, where they end, and what they are: a value, names, a phrase."""
    for kind, pattern in (
        ("date", _DATE),
        ("version", _VERSION),
        ("amount", _AMOUNT),
        ("id", _CODE),
    ):
        if match := pattern.match(text, at):
            found = match.group().rstrip(".")
            if _END.match(text, at + len(found)):
                return (found,), at + len(found), kind
    after = re.compile(r"(?:the|an?|its) ").match(text, at)
    start = after.end() if after else at
    if text[start : start + 1].isupper():
        found_names = names_at(text, start)
        names = tuple(name.strip(" ,") for name in found_names.names)
        good = all(
            name
            and name not in NATIONALITIES
            and "’s " not in name
            and "'s " not in name
            and name.casefold() not in FUNCTION_WORDS
            for name in names
        )
        possessive = re.match(r"['’]s?\b", text[found_names.end :])
        before = text[found_names.end - 2 : found_names.end]
        if names and good and not possessive and before not in ("'s", "’s", "s'", "s’"):
            if _END.match(text, found_names.end):
                return names, found_names.end, "name"
        return (), at, ""
    words, end = list[str](), start
    for word, stop in _words_from(text, start):
        bare = word.rstrip(".")
        joined = bare == "of" and words
        if bare.casefold() in _STOP and not joined:
            break
        if bare.casefold() in _EMPTY_NOUNS or len(words) >= MAX_OBJECT_WORDS or bare[:1].isupper():
            return (), at, ""
        words.append(bare)
        end = start + len(text[start:stop]) - (len(word) - len(bare))
        if word != bare or text[end : end + 1] in ',;:()"”“':
            break
    if words and words[-1] == "of":
        return (), at, ""
    verbs = any(word in _ACTIVE and word.endswith("ed") for word in words[1:])
    phrase = " ".join(words)
    number = words and words[0] in NUMBER_WORDS
    if (len(words) >= 2 or title_key(phrase) in terms.things) and not verbs and not number:
        return (phrase,), end, "phrase"
    return (), at, ""
