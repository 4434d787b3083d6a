"""Open relations: subject, relation phrase and object of a sentence, without a list of relations.

    Team Tern is led by Mira Holt.          Team Tern   led by       Mira Holt
    Mira Holt leads Team Tern.              Mira Holt   leads        Team Tern
    The default port of Atlas is 5432.      Atlas       default port 5432
    "It works," said Mira Holt.             Mira Holt   said         It works

A clause is parsed from its start: a subject, a verb group from `verbs.toml`, and an object that
ends where a clause may end. Anything else is skipped; a sentence with a negation, a modal or a
condition states nothing. Relations are normalized to the third person of a verb ("leads"), or its
participle with the preposition ("led by"), so that `inverse` derives one from the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from suffice.lexicon import FUNCTION_WORDS, MONTHS, NUMBER_WORDS, WEEKDAYS
from suffice.storage.records import read_toml
from suffice.text import date_mentions, title_key
from suffice_grade.terms import NO_TERMS, CorpusTerms
from suffice_grade.vocabulary import (
    COUNTRIES,
    FIRST_NAMES,
    FOLDER,
    KINDS,
    NATIONALITIES,
    ORGANISATIONS,
    RANKS,
    ROLES,
    any_of,
    names_at,
    place_at,
)

SAID = "said"
PARSED = "parsed: "  # prefix of a relation that is a question, found by `parsed_relations`
MAX_OBJECT_WORDS, MAX_PHRASE_WORDS, MAX_CLAIM_WORDS = 7, 12, 40
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
    """A verb in the forms that relations use."""

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
_ONE_AGENT = frozenset(_DATA["one_agent"].split())
_INTRANSITIVE = frozenset(_DATA["needs_preposition"].split())
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
    _ACTIVE[_verb.third] = _verb
    if _simple != _base:  # "set" may be a command: "ip link set dev eth0"
        _ACTIVE[_simple] = _verb
for _verb in {*_ACTIVE.values(), *_PARTICIPLES.values()}:
    _BY_THIRD[_verb.third] = _verb
# Nouns that look like verbs: "hiring plans", "trial results", "complaints record".
_ACTIVE_NOUNS = frozenset(
    "plans results records reports returns offers orders charges shares tests reviews releases"
    " works features bases changes claims covers credits demands designs files forms grants"
    " hosts houses issues judges labels lists loads loans marks matches moves names notes"
    " numbers places plays points prices prints processes ranks rates requests rewards routes"
    " scales scores signs stages starts states stations stores studies supports targets tours"
    " tracks trades trains transfers trials uses votes reaches record set left found read run"
    " cost".split()
)
_BY_PARTICIPLE = {verb.participle: verb for verb in _PARTICIPLES.values()}
# "found" is the past of "find" and the base of "found"; "founded" is clear.
_NAMES: dict[str, str] = _DATA["names"]
_DATES: dict[str, str] = _DATA["dates"]
_RENAMED: dict[str, str] = _DATA["renamed"]
_ADJECTIVES = frozenset(" ".join(one.split()) for one in _DATA["adjectives"].split(","))
_SPEECH = frozenset(
    form for one in _DATA["speech"].split(";") for form in one.strip().split(":")[1:2]
) | {"says", "adds", "notes", "explains", "argues", "warns"}


def relation_name(relation: str, kind: str = "", *, listed: bool = False) -> str:
    """The name in relations.toml of an open relation to an object of this kind, or the relation.

    Words that relations.toml uses in a narrower sense are renamed. `listed`: the relation is a key
    in a table or a list ("Team: Tern").
    """
    if not listed and kind == "date":
        return _DATES.get(relation, relation)
    known = "" if listed or kind in LITERALS else _NAMES.get(relation, "")
    return known or _RENAMED.get(relation, relation)


def inverse(relation: str) -> str:
    """The relation from the object to the subject: "leads" and "led by"; "" if it has none.

    Only for verbs with a single agent: a country visited by someone has other visitors too.
    """
    if relation.endswith(" by"):
        verb = _BY_PARTICIPLE.get(relation.removesuffix(" by"))
        return verb.third if verb and verb.third in _ONE_AGENT else ""
    verb = _BY_THIRD.get(relation) if relation in _ONE_AGENT else None
    return relation_name(f"{verb.participle} by") if verb else ""


# People may have several of these, and a text that names one does not exclude others.
KIN = frozenset(
    "son daughter child brother sister sibling cousin nephew niece uncle aunt grandson "
    "granddaughter grandchild relative descendant ancestor friend colleague student pupil".split()
)
_ORDINAL = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")

_TEMPORARY = frozenset("last latest previous former champion winner entry".split())


def is_functional(relation: str, kind: str) -> bool:
    """Whether a subject has only one such object, even if a text names just one.

    "Led by", "default port" and a date have one; "visits" and "a member of" may have many.
    """
    if relation.startswith(PARSED):
        return kind in ("date", "amount") and not relation.startswith(f"{PARSED}According")
    if relation.endswith(" by"):
        return inverse(relation) != ""
    if kind == "date":
        return True
    words = relation.split()
    if words and words[-1].startswith(("co-", "cofounder")):  # a co-founder is not the only one
        return False
    # "the last mayor before 1898", "a national champion of Iran"
    if words and (relation in KIN or words[-1].endswith(_ORDINAL) or _TEMPORARY & set(words)):
        return False
    named = words and words[0] not in _BY_THIRD and words[-1] not in _PREPOSITIONS
    return bool(named) and relation != SAID


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
    r"(?:(?:version |v)\d+(?:\.\d+)*|\d+(?:\.\d+){2,})"
    r"(?:[-.~]?(?:rc|beta|alpha|post|dev)\.?\d*)?(?![\w%])"
)
_MONTH = "|".join(MONTHS)
_DATE = re.compile(
    rf"(?:(?:{'|'.join(WEEKDAYS)}),? )?"
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{_MONTH})(?:,? \d{{4}})?|"
    rf"(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?(?:, \d{{4}})?|(?:{_MONTH}) \d{{4}}|\d{{4}}-\d\d-\d\d|"
    rf"[12]\d{{3}}(?![\w%]|[.,-]\d)|\d{{1,2}}:\d\d(?: ?[ap]m)?)(?!\w)"
)
_CODE = re.compile(
    r"(?:--?[a-z][\w-]+|/(?:[\w.-]+/)*[\w.-]+|[A-Z]{1,6}-?\d[\w-]*|[a-z]\w*(?:[_.]\w+)+|"
    r"(?:port|room|gate|platform|line|floor|channel|chapter|section|bay|dock) [A-Z]?\d+|"
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|https?://\S+\w|[a-z]+\d[\w-]*|[a-z]+(?:-[a-z\d]+)*-\d+|[\w.+-]+\(\d\w*\))(?![\w])"
)


def kind_of(name: str, page_kind: str = "") -> str:
    """An object's kind: date, amount, version, id, person, place, organisation, thing or ""."""
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
    if not capitals or name[:1].islower():
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

_WORD = re.compile(r"[^\s,;:()\"“”]+")
_ADVERB = re.compile(
    r"(?:[a-z]+ly|also|now|still|already|then|once|first|again|later|soon|just|both|jointly|ever)$"
)
_BE = frozenset("is was are were been being".split())
_HAVE = frozenset("has have had".split())
_PREPOSITIONS = frozenset(
    "by in on at to from for with as of after into under against over through between until".split()
)
_PLACE_PREPOSITIONS = frozenset("in at from to near".split())
_DATE_PREPOSITIONS = frozenset("on in at from until after since by".split())
_PARTICLES = frozenset("up out over off down".split())
_DAYS = frozenset(
    (*WEEKDAYS, *(f"{day}s" for day in WEEKDAYS), *MONTHS, *(month[:3] for month in MONTHS), "Sept")
)
# Where a clause may end, so that the object before it is complete.
_STRICT_END = re.compile(r"\s*(?:$|[.;:!?)–—](?:\s|$|[\"”])|,(?=\s)|[\"”]|\((?!s\)))")
_END = re.compile(rf"{_STRICT_END.pattern}| {any_of('after_name')}\b")
# Words that open another clause or refer elsewhere: an object ends before them.
_CLAUSE = frozenset(
    "which that who whose whom when where while because if is was are were has have had will would"
    " can could may should must not so than but unless though although once as it them him her he"
    " she they his its their our your my this these those such there what how being been and/or"
    " i you we me us before after until since during".split()
)
_EMPTY_NOUNS = frozenset(
    "several many some more other such new first own same few various different lot number all any"
    " each every another most much this that these those it them him her he she they his its their"
    " our your my one ones something anything everything things thing way ways time part following"
    " addition order case both none here there what how back away well above below".split()
)
STATES_NOTHING = re.compile(
    r"\b(?:not|never|no|nor|neither|if|unless|whether|would|could|should|might|may|must|can|cannot|"
    r"will|shall|\w+n't|\w+n’t|plans? to|hopes? to|wants? to|expected|expects|proposed|planned|"
    r"considering|instead of|rather than|failed|fake)\b"
)
_LEAD = re.compile(
    r"(?:(?:In|On|At|Since|By|During|After|From|Until|As of) [^,;.]{1,40}, |"
    r"(?:Today|Currently|Now|Also|Then|Later|Meanwhile|However|Finally|Previously|Originally),? )"
)
_PARENTHESES = re.compile(r"\s*\([^()]{0,300}\)")
_QUOTATION = re.compile(r"[\"“][^\"“”]*[\"”]")
_DETERMINER = re.compile(r"(?:[Tt]he|[Aa]n?|[Ii]ts|[Oo]ur) ")
_NOBODY = frozenset(
    "whoever whatever everyone everybody nobody someone somebody anyone anybody people others"
    " nothing something everything observers critics readers only even".split()
)
_SMALL_JOINTS = frozenset("of the and de van von der la le du for".split())

_CAPITALS = r"[A-Z][\w'’.-]+(?: [A-Z][\w'’.-]+)"
_KEY = r"[a-z][\w/-]*(?: [a-z][\w/-]*){0,2}"
_ROLE = "|".join(sorted((re.escape(role) for role in ROLES), key=len, reverse=True))
_APPOSED = re.compile(
    rf"(?P<name>{_CAPITALS}{{1,3}}), (?:the |an? |its )?(?P<former>former |then |ex-)?"
    rf"(?:current |acting |interim |newly appointed )?(?P<role>(?i:{_ROLE})) "
    r"(?:of|at|for) (?:the )?(?=[A-Z])"
)
_TITLED = re.compile(
    r"(?<![Ff]ormer )(?P<place>\b[A-Z][\w&.-]+(?: [A-Z][\w&.-]+){0,2})(?:['’]s?)? "
    r"(?P<former>former |then-|ex-)?"
    rf"(?P<role>(?:{_ROLE}|CEO|CTO|CFO|COO)) (?P<name>[A-Z][a-z][\w'’-]+ [A-Z][\w'’-]+)\b(?! [A-Z])"
)
_OF_IS = re.compile(
    rf"[Tt]he (?P<key>{_KEY}) (?:of|for) (?:the )?(?P<subject>[^,;:()]{{2,50}}?) "
    r"(?:is|was|are|were) (?P<rest>\S.*)"
)
_IS_THE = re.compile(
    rf"(?:is|was) (?P<article>the |an? )?(?:current |new )?(?P<key>{_KEY}) "
    r"(?P<prep>of|for|at) (?:the )?(?=\S)"
)
_KEY_IS = re.compile(rf"(?:The|Its) (?P<key>{_KEY}) (?:is|was) (?P<rest>\S.*)")
_OWNED = re.compile(rf"(?:['’]s|(?<=s)['’]) (?P<key>{_KEY}) (?:is|was) (?P<rest>\S.*)")
_IS_ADJECTIVE = re.compile(
    r"(?:is|was|are|were) (?:also |currently |now )?(?P<words>\w+(?: \w+){1,2}) "
)
_QUOTED = re.compile(
    r"[\"“](?P<quote>[^\"“”]{8,300}?)[,.!]?[\"”],? "
    rf"(?:(?P<verb>[a-z]+) (?P<after>{_CAPITALS}{{0,3}})"
    rf"|(?P<before>{_CAPITALS}{{0,3}})(?:, [^,\"“]{{2,60}},)? (?P<verb2>[a-z]+))"
)
_SAYS = re.compile(
    r"(?:, [^,]{2,60},)? (?:(?P<verb>said|says)(?: on \w+)?(?: that)?|"
    r"(?P<other>argued|warned|explained|noted|confirmed|claimed|argues|warns|claims|admitted|"
    r"insisted|reported|recalled|stated|wrote) that) (?P<claim>[^\"“”]{12,300})$"
)
_NO_CLAIM = frozenset(
    "to in at about of so by for as goodbye hello yes no his her its their he she it they this that"
    " these those against with on".split()
)
_INDIRECT = re.compile(r" (?:an?|the|his|her|its|their) \w")  # "lent Mirek his saw"
# "the moon of Saturn with a thick atmosphere" is not the only moon.
_RESTRICTED = re.compile(r" (?:with|without|that|who|whose|which|where)\b")
# "covers broken screens, theft and loss", "was called at 9:15 and at 11": not the only object.
_LISTED = {
    "phrase": re.compile(r", (?!which|who|where|when|while|but|so|then)[a-z]+(?<!ed)(?<!ing)\b"),
    "date": re.compile(r" and (?:at|in|on) \d"),
}
_LISTED["id"] = _LISTED["phrase"]
# "its complaints record worsened", "Hasaris Labs' hiring plan was widened"
_ITS = re.compile(rf"(?:that|:) its (?P<key>{_KEY}) (?P<rest>\S.*)")
_WHOSE = re.compile(r"(?:['’]s|(?<=s)['’]) (?P<rest>[a-z]\S* .*)")


def open_relations(
    text: str, subject: str = "", terms: CorpusTerms = NO_TERMS
) -> Iterator[OpenMatch]:
    """All open relations that a sentence states.

    `subject` is what the sentence is known to be about: its text starts with that name. `terms` is
    the vocabulary of the corpus.
    """
    terms = replace(terms, page=subject) if subject else terms
    yield from _speech(text, terms)
    clean = _QUOTATION.sub('" "', _PARENTHESES.sub("", text)).strip()
    yield from _roles(clean, terms)
    head = re.split(r";\s", clean, maxsplit=1)[0]
    if not STATES_NOTHING.search(head) and '"' not in head:
        yield from _clause(head, subject, terms)


def _roles(text: str, terms: CorpusTerms) -> Iterator[OpenMatch]:
    """ "Mira Holt, the head of Team Tern," and "Atlas founder Mira Holt"."""
    for match in _APPOSED.finditer(text):
        places = names_at(text, match.end())
        name = _without_openers(match["name"])
        whole = places.names and _END.match(text, places.end)
        cut = text.startswith(" & ", places.end)  # "of Holt & Vale Research"
        if name and whole and not cut and not match["former"]:
            yield OpenMatch(places.names[0], _lowered(match["role"]), name, match["role"])
    for match in _TITLED.finditer(text):
        place = _without_openers(match["place"].removesuffix("'s").removesuffix("’s"))
        person = kind_of(match["name"]) in ("person", "") and not match["former"]
        if person and place and not _is_common(place, terms):
            name = re.sub(r"['’]s?$", "", match["name"])
            yield OpenMatch(place, _lowered(match["role"]), name, match["role"])


def _is_common(place: str, terms: CorpusTerms) -> bool:
    """Whether this is not an organisation: "French AI researcher", "Head coach", "Monday"."""
    words = place.split()
    small = len(words) == 1 and words[0].casefold() in terms.small | ROLES
    small = small or words[0].casefold().startswith(("then-", "ex-", "former"))
    return small or words[0] in NATIONALITIES or words[0] in _DAYS


def _lowered(role: str) -> str:
    return role if role.isupper() else role.casefold()


def _without_openers(name: str) -> str:
    """The name without sentence openers; "" if only one word is left after removing some."""
    words = name.split()
    while words and words[0].casefold() in FUNCTION_WORDS:
        words.pop(0)
    return " ".join(words) if len(words) == len(name.split()) or len(words) > 1 else ""


def _speech(text: str, terms: CorpusTerms) -> Iterator[OpenMatch]:
    for match in _QUOTED.finditer(text):
        verb, name = match["verb"] or match["verb2"], match["after"] or match["before"]
        quote = match["quote"].strip(" ,.")
        # "said Kestrel chief Mira Holt": not Kestrel
        led = re.search(rf"{re.escape(name)} (?:chief|{_ROLE})\b", text) is not None
        if verb in _SPEECH and _is_speaker(name, terms) and _is_whole(quote) and not led:
            yield OpenMatch(_stripped(name), SAID, quote, verb)
            return
    names = names_at(text, 0)
    if len(names.names) != 1 or not _is_speaker(names.names[0], terms):
        return
    if said := _SAYS.match(text, names.end):
        claim = said["claim"].strip(" .")
        words = claim.split()
        if 3 < len(words) <= MAX_CLAIM_WORDS and words[0].casefold() not in _NO_CLAIM:
            verb = said["verb"] or said["other"]
            yield OpenMatch(_stripped(names.names[0]), SAID, claim, f"{verb} that")


def _is_whole(quote: str) -> bool:
    """Whether a quote is a whole sentence."""
    return len(quote.split()) > 3 and not quote[0].islower()


def _is_speaker(name: str, terms: CorpusTerms) -> bool:
    first = name.split()[0].casefold().strip(".")
    common = " " not in name and (first in terms.small or first in _NOBODY)
    return first not in FUNCTION_WORDS and name not in _DAYS and not common


def _stripped(name: str) -> str:
    """A person's name without "'s" and without a title such as "Prime Minister"."""
    words = re.sub(r"['’]s?$", "", name).strip(" ,.").split()
    if kind_of(" ".join(words)) == "organisation":  # the Australian Retailers Association
        return " ".join(words)
    while len(words) > 2 and (words[0] in NATIONALITIES or words[0].casefold() in _ROLE_WORDS):
        words.pop(0)
    return " ".join(words)


_ROLE_WORDS = (
    frozenset(word for role in ROLES for word in role.split())
    | {noun for noun, kind in KINDS.items() if kind == "person"}
    | {"pastor", "dr", "mr"}
)


# ----------------------------------------------------------------------------------------- clauses


def _clause(text: str, subject: str, terms: CorpusTerms) -> Iterator[OpenMatch]:
    if match := _OF_IS.fullmatch(text.rstrip(".")):
        article = _DETERMINER.match(match["subject"])
        owner = match["subject"][article.end() if article else 0 :]
        if _is_named(owner, terms):
            yield from _attribute(owner, match["key"], match["rest"], terms)
        return
    lead = _LEAD.match(text)
    at = lead.end() if lead else 0
    name, end = _subject_at(text, at, subject, terms)
    if not name:
        if subject and (match := _KEY_IS.fullmatch(text.rstrip("."))):
            yield from _attribute(subject, match["key"], match["rest"], terms, literal=True)
        return
    if match := _WHOSE.match(text, end):
        owned = _OWNED.fullmatch(text.rstrip("."), end)
        stated = list(_attribute(name, owned["key"], owned["rest"], terms)) if owned else []
        yield from stated or _happening(name, match["rest"])
        return
    if match := _ITS.search(text, end):
        yield from _happening(name, f"{match['key']} {match['rest']}")
    elif (start := _after_apposition(text, end)) is not None:
        yield from _predicate(name, text, start, terms)


def _after_apposition(text: str, at: int) -> int | None:
    """Where the sentence continues after an aside: "Mira Holt, who joined in 2019, leads"."""
    if not text.startswith(", ", at):
        return at
    close = text.find(", ", at + 2)
    between = text[at + 2 : close]
    relative = re.match(r"(?:who|which|whose|that)\b", between)
    verb = re.search(r"\b(?:is|was|are|were|has|had)\b", between)
    return None if close < 0 or close - at > 80 or (verb and not relative) else close + 1


def _happening(subject: str, rest: str) -> Iterator[OpenMatch]:
    """What happened to something that the subject has: "hiring plan was widened"."""
    words = re.split(r"[,.;:](?=\s|$)|\b(?:in|on|at) (?=[A-Z])", rest, maxsplit=1)[0].split()
    for at in range(1, min(4, len(words))):
        if words[at - 1] in _CLAUSE or words[at - 1] in FUNCTION_WORDS or _ADVERB.match(words[0]):
            return
        verb = words[at] in _ACTIVE or words[at] in _BE or words[at] in _HAVE
        if not verb or words[at] in _ACTIVE_NOUNS:
            continue
        said = words[at:]
        after = said[1] if len(said) > 1 else ""
        # "was widened" and "rose by 3%" are events; "welcomed the decision" is an act of the mayor.
        named = after in ("called", "named")
        passive = said[0] in _BE and (after in _PARTICIPLES or after.endswith("ed")) and not named
        alone = said[0] in _ACTIVE and (
            after in _PREPOSITIONS or not after or _ADVERB.match(after) is not None
        )
        bad = any(word.casefold() in _CLAUSE - _BE for word in said) or words[at - 1] in ROLES
        if (passive or alone) and not bad and len(said) <= MAX_OBJECT_WORDS:
            noun = " ".join(words[:at])
            yield OpenMatch(subject, noun, " ".join(said), f"{noun} {said[0]}")
        return


def is_event(relation: str, phrase: str, value: str) -> bool:
    """Whether a fact is an event that happened to a noun: "the dividend of X was lifted".

    The phrase of such a fact ends with the verb that starts its object; a list has no verb there.
    """
    verb = value.partition(" ")[0]
    return bool(verb) and phrase == f"{relation} {verb}"


def _attribute(
    subject: str, key: str, rest: str, terms: CorpusTerms, *, literal: bool = False
) -> Iterator[OpenMatch]:
    """A property and its value: "The owner of Atlas is Mira Holt"."""
    words = key.split()
    if words[-1] in _EMPTY_NOUNS | _CLAUSE or words[0] in _EMPTY_NOUNS or words[-1].endswith("ly"):
        return
    names, end, kind = object_at(rest, 0, terms)
    joined = re.match(r" (?:of|and|or)\b", rest[end:])
    if not names or kind == "phrase" or joined or (literal and kind not in LITERALS):
        return
    for name in names:
        yield OpenMatch(subject, key, name, f"{key} is", len(names) > 1)


def _is_named(name: str, terms: CorpusTerms) -> bool:
    key = title_key(name)
    capital = all(word[:1].isupper() or word in _SMALL_JOINTS for word in name.split())
    named = capital or _CODE.fullmatch(name) is not None or key in terms.things
    return bool(key) and named and key not in FUNCTION_WORDS


def _subject_at(text: str, at: int, subject: str, terms: CorpusTerms) -> tuple[str, int]:
    """The subject that starts here and where it ends; "" if uncertain."""
    if subject and text.startswith(subject, at):
        return subject, at + len(subject)
    after = _DETERMINER.match(text, at)
    start = after.end() if after else at
    if match := _CODE.match(text, start):
        return match.group(), match.end()
    if thing := _thing_at(text, start, terms):
        return thing, start + len(thing)
    titled = _TITLED.match(text, start)
    if titled and not after and not _is_common(titled["place"], terms):
        return titled["name"], titled.end()
    found = names_at(text, start, commas=False)
    if len(found.names) != 1 or not _is_subject_name(found.names[0], terms):
        return "", at
    possessive = re.search(r"['’]s?$", text[start : found.end])
    return found.names[0], start + possessive.start() if possessive else found.end


def _thing_at(text: str, start: int, terms: CorpusTerms) -> str:
    """The term of the corpus without capitals that starts here; "" if none."""
    words = text[start : start + 80].split(" ", 4)
    for size in range(min(4, len(words) - 1), 0, -1):
        phrase = " ".join(words[:size])
        if phrase[:1].islower() and title_key(phrase) in terms.things:
            return phrase
    return ""


def _is_subject_name(name: str, terms: CorpusTerms) -> bool:
    """Whether a name at the start of a sentence is one; its capital alone does not show it."""
    first = name.split()[0].casefold().strip(",.'’")
    if first in FUNCTION_WORDS or name in NATIONALITIES or name in _DAYS or name in RANKS:
        return False
    if re.search(r"['’](?:s |ve|re|ll|m|d)\b", name):
        return False
    if len(name) < 2 or first in _NOBODY or first.endswith(("-based", "-born", "-owned")):
        return False
    if name in terms.plurals:
        return False
    return " " in name or name.isupper() or first not in terms.small


class _VerbGroup(NamedTuple):
    relation: str  # without the preposition
    passive: bool
    end: int


def _words_from(text: str, at: int) -> Iterator[tuple[str, int]]:
    while (match := _WORD.match(text, _skip(text, at))) is not None:
        at = match.end()
        yield match.group(), at


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _next_word(text: str, at: int) -> str:
    return next(iter(text[_skip(text, at) :][:40].split(" ", 1)), "")


def _verb_at(text: str, at: int) -> _VerbGroup | None:
    """The verb group that starts here, with its particle."""
    passive = perfect = False
    for count, (word, end) in enumerate(_words_from(text, at)):
        if count > 5:
            break
        passive, perfect = passive or word in _BE, perfect or word in _HAVE
        if word in _BE or word in _HAVE or _ADVERB.match(word):
            continue
        if passive or perfect:
            verb = _PARTICIPLES.get(word.rstrip("."))
            return verb and _VerbGroup(verb.participle if passive else verb.third, passive, end)
        verb, following = _ACTIVE.get(word), _next_word(text, end)
        if verb is None:
            break
        if following == "by" and word in _PARTICIPLES:  # "a team led by Mira Holt"
            return _VerbGroup(_PARTICIPLES[word].participle, passive=True, end=end)
        if following in _PARTICLES:
            end = _skip(text, end) + len(following)
            return _VerbGroup(f"{verb.third} {following}", passive=False, end=end)
        return _VerbGroup(verb.third, passive=False, end=end)
    return None


def _predicate(subject: str, text: str, at: int, terms: CorpusTerms) -> Iterator[OpenMatch]:
    start = _skip(text, at)
    match = _IS_THE.match(text, start)
    if match and (found := list(_is_the(subject, text, match, terms))):
        yield from found
        return
    if match := _IS_ADJECTIVE.match(text, start):
        words = match["words"].split()
        for size in (3, 2):
            if (relation := " ".join(words[:size])) in _ADJECTIVES:
                end = match.start("words") + len(relation)
                yield from _objects(subject, relation, text, start, end, terms)
                return
    group = _verb_at(text, start)
    if group is None or group.relation in _LOOSE:
        return
    following = _next_word(text, group.end)
    if following in _PREPOSITIONS:
        end = _skip(text, group.end) + len(following)
        speaks = (
            _BY_THIRD.get(group.relation, Verb("", ""))[1] in _SPEECH
        )  # "confirmed in Oslo that"
        if not speaks:
            relation = f"{group.relation} {following}"
            yield from _objects(subject, relation, text, start, end, terms)
            yield from _second(subject, group, text, start, end, terms)
    elif not group.passive and group.relation not in _INTRANSITIVE:
        yield from _objects(subject, group.relation, text, start, group.end, terms)
        yield from _second(subject, group, text, start, group.end, terms)


def _is_the(
    subject: str, text: str, match: re.Match[str], terms: CorpusTerms
) -> Iterator[OpenMatch]:
    """ "Mira Holt is the head of Team Tern": Team Tern has the head Mira Holt."""
    key = match["key"]
    words = key.split()
    odd = any(word in _PARTICIPLES or word in _CLAUSE or word.endswith("ing") for word in words)
    if odd or {words[0], words[-1]} & (_EMPTY_NOUNS | _PREPOSITIONS):
        return
    names, end, kind = object_at(text, match.end(), terms)
    if len(names) != 1 or kind in ("phrase", *LITERALS) or _RESTRICTED.match(text, end):
        return
    phrase = text[match.start() : match.end()].strip()
    if match["article"] == "the " or key in ROLES:
        yield OpenMatch(names[0], key, subject, phrase)
    elif match["article"] and match["prep"] == "of":
        yield OpenMatch(subject, f"{key} of", names[0], phrase)


def _second(
    subject: str, group: _VerbGroup, text: str, start: int, end: int, terms: CorpusTerms
) -> Iterator[OpenMatch]:
    """A second object: "founded in 2003 by Mira Holt", "invested $1 million in"."""
    names, at, kind = object_at(text, _skip(text, end), terms, whole=False)
    following = _next_word(text, at)
    if len(names) != 1 or following not in _PREPOSITIONS:
        return
    further = _skip(text, at) + len(following)
    if group.passive:
        if kind == "phrase" and following == "by":
            return  # "was based on the novel by": not who based it
        if following == "by" or (kind == "date" and following in ("in", "at", "on")):
            verb = text[start:end].rpartition(" ")[0]
            for one in _objects(
                subject, f"{group.relation} {following}", text, start, further, terms
            ):
                yield one._replace(phrase=f"{verb} {following}")
    elif group.end == end and kind != "date":
        relation = f"{group.relation} {text[_skip(text, end) : further]}"
        short = len(relation.split()) <= MAX_OBJECT_WORDS
        if short and object_at(text, _skip(text, further), terms)[2] not in ("phrase", "id"):
            yield from _objects(subject, relation, text, start, further, terms)


def _objects(
    subject: str, relation: str, text: str, start: int, end: int, terms: CorpusTerms
) -> Iterator[OpenMatch]:
    names, stop, kind = object_at(text, _skip(text, end), terms)
    preposition = relation.split()[-1]
    if not names or (kind == "date" and preposition not in _DATE_PREPOSITIONS):
        return
    if preposition == "between" and len(names) < 2:
        return
    if kind == "phrase":
        known = title_key(subject) in terms.things or title_key(names[0]) in terms.things
        if not (known or _CODE.fullmatch(subject) or subject == terms.page):
            return
        if preposition in ("to", "as"):  # "was appointed to head an expedition"
            return
    if kind == "name" and preposition not in _PREPOSITIONS and re.match(r" to [a-z]", text[stop:]):
        return  # "orders ChatGPT to be blocked"
    if kind == "name" and preposition not in _PREPOSITIONS and _INDIRECT.match(text, stop):
        return
    if kind == "name" and preposition in _PLACE_PREPOSITIONS and " and " not in text[end:stop]:
        place = place_at(text, _skip(text, end))
        names = (place.removeprefix("the "),) if place else names[:1]  # "in Paris, France"
    several = len(names) > 1 or (kind in _LISTED and _LISTED[kind].match(text, stop) is not None)
    for name in names:
        if title_key(name) != title_key(subject) and name not in _DAYS:
            yield OpenMatch(subject, relation, name, text[start:end].strip(), several)


_VALUES = (("date", _DATE), ("version", _VERSION), ("amount", _AMOUNT), ("id", _CODE))


def object_at(
    text: str, at: int, terms: CorpusTerms, *, whole: bool = True
) -> tuple[tuple[str, ...], int, str]:
    """The objects that start here, where they end, and their form: a value, names or a phrase.

    A `whole` amount or phrase ends with the clause: "7,000 for the first" is not 7,000.
    """
    nothing = ((), at, "")
    for kind, pattern in _VALUES:
        if match := pattern.match(text, at):
            found = match.group().rstrip(".")
            ends = _STRICT_END if whole and kind == "amount" else _END
            if ends.match(text, at + len(found)) or (
                not whole and _next_word(text, at + len(found)) in _PREPOSITIONS
            ):
                return (found,), at + len(found), kind
    after = _DETERMINER.match(text, at)
    start = after.end() if after else at
    if text[start : start + 1].isupper():
        return _names_at(text, start) or nothing
    return _phrase_at(text, start, terms, whole=whole) or nothing


def _names_at(text: str, start: int) -> tuple[tuple[str, ...], int, str] | None:
    found = names_at(text, start)
    names = tuple(name.strip(" ,") for name in found.names)
    good = all(
        name
        and name not in NATIONALITIES
        and not re.search(r"['’]s ", name)
        and name.casefold() not in FUNCTION_WORDS
        for name in names
    )
    possessive = re.match(r"['’]", text[found.end :]) or re.search(r"['’]s?$", text[: found.end])
    if not names or not good or possessive or not _END.match(text, found.end):
        return None
    # Without an "and", the part after a comma explains the name before it.
    listed = len(names) > 1 and re.search(r" (?:and|&) ", text[start : found.end])
    return (names if listed else names[:1]), found.end, "name"


def _phrase_at(
    text: str, start: int, terms: CorpusTerms, *, whole: bool
) -> tuple[tuple[str, ...], int, str] | None:
    words, end, ended = list[str](), start, False
    most = MAX_PHRASE_WORDS if whole else 4
    for word, stop in _words_from(text, start):
        bare = word.rstrip(".")
        if bare in ("and", "or") and words and _next_word(text, stop) in _ACTIVE:
            ended = True  # "measures 98 kilometres and saves a detour"
            break
        if not whole and bare in _PREPOSITIONS and words:
            break
        if bare.casefold() in _CLAUSE or len(words) >= most or not bare[:1].isalnum():
            return None
        words.append(bare)
        end = stop - (len(word) - len(bare))
        if word != bare or _STRICT_END.match(text, end):
            break
    if not words or words[0].casefold() in _EMPTY_NOUNS or words[-1] in _EMPTY_NOUNS:
        return None
    if whole and not ended and not _STRICT_END.match(text, end):  # "in 41:58"
        return None
    broken = words[-1] in _PREPOSITIONS | FUNCTION_WORDS or words[0] in (*NUMBER_WORDS, "or", "and")
    broken = (
        broken or words[-1] in ("called", "named") or words[0].endswith("ing")
    )  # "Hamas funds originating in Iran"
    phrase = " ".join(words)
    enough = len(words) >= 2 or title_key(phrase) in terms.things or not whole
    return ((phrase,), end, "phrase") if enough and not broken else None
