"""Words for relations in questions: known ones from a table, open ones from their grammar.

An open relation uses the words of its text. Three shapes cover nearly all of them:

    noun      owner, default port    What is the default port of X?      the owner of X
    passive   led by, released on    Who leads X? When was X released?   the person who leads X
    active    supports, reports to   Which team does X report to?        the team that X reports to

A relation that cannot be parsed gets no words, and so no question. `words_of` returns a `Relation`
either way, so the question writers need not know where its words come from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from suffice_grade.claims import PageIndex
from suffice_grade.inflection import (
    QUESTION_WORDS,
    base_form,
    is_base,
    is_participle,
    is_past,
    is_third_person,
    past_of,
    past_tense,
    third_person,
    with_indefinite_article,
)
from suffice_grade.open_relations import LITERALS, PARSED, is_event
from suffice_grade.relations import MAX_RELATION_WORDS, RELATIONS, Relation
from suffice_grade.stage_protocols import Triple
from suffice_grade.stated_facts import STATED
from suffice_grade.terms import NO_TERMS, CorpusTerms
from suffice_grade.vocabulary import ATTRIBUTES, COUNTRIES, ROLES

_NOUNS = frozenset(QUESTION_WORDS["nouns"].split())
_REJECTED = frozenset(QUESTION_WORDS["rejected"].split())
_WEAK = frozenset(QUESTION_WORDS["weak_verbs"].split())
_PREPOSITIONS = frozenset(QUESTION_WORDS["prepositions"].split())
_PARTICLES = frozenset(QUESTION_WORDS["particles"].split())
_NONE = Relation()


def _with_words(fields: Mapping[str, Any]) -> Relation:
    words: dict[str, Any] = {key: tuple(ways) for key, ways in fields.items()}
    return Relation(**words)


_KEYS = {name: _with_words(fields) for name, fields in QUESTION_WORDS["keys"].items()}
_PERSONAL = frozenset("meet marry replace succeed beat defeat hire appoint fire tell".split())
_OF_ANYTHING = frozenset(("replace", "succeed"))  # subjects can be people, tools or laws
_PLACED = frozenset("lie stand live sit stay last stop work".split())  # take a place or duration
_MOTION = frozenset("fly move travel relocate go return sail come drive".split())
MAX_CONFIRMED = 7
OUTLET = "outlet"
METADATA = (OUTLET, "publication date", "page date", "package", "version")  # rarely asked for
_COMPANY = re.compile(r"\b(?:Inc|Corp|Ltd|LLC|GmbH|Company|Corporation|Group|plc)\b\.?")
_COUNTED = re.compile(
    r"(?:about |over |up to |at least |at most )?[\d.,]+ (?P<noun>[a-z][a-z -]*s)$"
)
_KIN = frozenset(
    "son daughter child brother sister father mother wife husband grandfather grandmother grandson "
    "granddaughter uncle aunt nephew niece stepfather stepmother".split()
)
_HELD_BY_MANY = frozenset("analyst researcher scientist engineer lawyer reporter partner".split())
_ONE_OF_SEVERAL = re.compile(r"co-|cofounder")
_MONEY = re.compile(r"^[$€£¥]|\b(?:dollars|euros?|EUR|USD|GBP|pounds)\b")
_DURATION = re.compile(r"\b(?:second|minute|hour|day|week|month|year|ms)s?$")


@dataclass(frozen=True, slots=True)
class Predicate:
    """A parsed open relation: a `noun`, or a verb, with `participle` if passive."""

    noun: str = ""
    be: str = ""  # passive: is, are, was, were
    participle: str = ""
    verb: str = ""  # active, in the tense of the text
    base: str = ""  # its base form
    do: str = ""  # does, do, did
    rest: str = ""  # particle and preposition: "up with", "by"

    @property
    def agent(self) -> bool:
        return self.rest == "by" and bool(self.participle)

    @property
    def active(self) -> str:
        """The active form of "is led by": "leads"."""
        if self.be in ("was", "were"):
            return past_of(self.participle)
        return third_person(base_form(self.participle))

    def clause(self, other: str) -> str:
        """The predicate about the subject: "is led by Y"."""
        if self.noun:
            return f"has {other} as {self.noun}"
        verb = f"{self.be} {self.participle}" if self.participle else self.verb
        return " ".join(filter(None, (verb, self.rest, other)))


@lru_cache(maxsize=65_536)
def parse_relation(relation: str, phrase: str, object_kind: str) -> Predicate | None:
    """The grammar of an open relation from its normalized words; the text gives the tense."""
    relation = relation.removeprefix("listed ")
    words = relation.split()
    letters = re.fullmatch(r"[A-Za-z][A-Za-z'/-]*(?: [A-Za-z][A-Za-z'/-]*)*", relation)
    if not words or len(words) > MAX_RELATION_WORDS or letters is None:
        return None
    first, *tail = words
    if first.casefold() in _REJECTED or first in _PREPOSITIONS or first == "best":
        return None
    be, past = _tense(phrase)
    is_tail = all(word in _PREPOSITIONS | _PARTICLES for word in tail)
    rest = " ".join(tail)
    if is_tail and is_third_person(first):
        weak = base_form(first) in _WEAK and object_kind != "amount"
        if weak or (base_form(first) in _PLACED and not tail):
            return None
        plural = be in ("are", "were") or _is_plural(first, phrase)
        plural = plural and "by" not in phrase.split()  # "is run by Jean": Jean runs it
        do = "did" if past else "do" if plural else "does"
        verb = _past_form(first, phrase) if past else base_form(first) if plural else first
        return Predicate(verb=verb, base=base_form(first), do=do, rest=rest)
    dated = object_kind == "date" and not tail
    if is_tail and is_participle(first) and (tail or dated):
        be = be or ("was" if past or dated else "is")
        if "been" in phrase.split() and rest == "to":  # "has been moved to": what was it moved to?
            be = "was"
        if first == "maintained":  # "Maintained by" of a manual page is true still
            be = "is"
        return Predicate(be=be, participle=first, rest=rest)
    if words[-1] in _PREPOSITIONS:
        article = re.search(rf"\b(an?) {re.escape(relation)}$", phrase)
        name = relation.rpartition(" ")[0]
        # "the person that X was a son of": patterns word kinship better.
        if not be or is_participle(first) or name.split()[-1] in _KIN:
            return None
        return Predicate(
            be=be, participle=f"{article[1]} {name}" if article else name, rest=words[-1]
        )
    if words[-1].casefold() in _REJECTED or is_participle(words[-1]) or first.endswith("ly"):
        return None
    return Predicate(noun=relation, be=be or "is")


def _tense(phrase: str) -> tuple[str, bool]:
    """The form of "be" in the text's words, if any, and whether they are in the past tense."""
    words = phrase.split()
    be = next((word for word in words if word in ("is", "are", "was", "were")), "")
    if "been" in words:
        be = "was" if "had" in words else be or "is"
    if be:
        return be, be in ("was", "were")
    return "", any(is_past(word) for word in words)


def _is_plural(third: str, phrase: str) -> bool:
    words = phrase.split()  # "has run" is singular
    return base_form(third) in words and not {third, "has", "had"} & set(words)


def _past_form(third: str, phrase: str) -> str:
    """The past tense of a verb, as in the text, or derived from its participle."""
    base = base_form(third)
    said = next((word for word in phrase.split() if is_past(word) and base_form(word) == base), "")
    return past_of(said) if said else past_tense(base)


# ------------------------------------------------------------------------------ what a thing is


def type_noun(name: str, kind: str, pages: PageIndex) -> str:
    """A noun for a name: from its page, its own words, or its kind; else ""."""
    page = pages.by_title.get(name)
    if page is not None and page.noun:
        return "person" if page.kind == "person" else page.noun
    if kind in ("person", "version"):
        return kind
    if not kind and re.fullmatch(r"(?:[A-Z]\.){1,3} [A-Z][\w'’-]+", name):  # A.J. Hinch
        return "person"
    words = re.findall(r"[A-Za-z]+", name)
    if words and kind not in ("date", "amount", "id"):
        first = words[0].lower() if words[0][0].isupper() else ""  # Team Tern
        for word in (words[-1].lower(), first):
            if word in _NOUNS and len(words) > 1:
                return word
        for suffix in ("service", "server", "team", "library"):
            if re.search(rf"[a-z][-_]{suffix}$", name):
                return suffix
    if kind == "organisation":
        return "company" if _COMPANY.search(name) else "organisation"
    return "country" if name in COUNTRIES else "place" if kind == "place" else ""


_ARTICLE = re.compile(r"(?:the|an?|our|my|his|her|their|its|each|every|all|no)\b", re.IGNORECASE)


# "University of Tarbek", "Karsa dam"
_TAKES_ARTICLE = re.compile(
    r"(?:[A-Z]\w+ )?(?:University|Court|Theatre|Museum|Institute|Ministry|Department|Bank|Republic|"
    r"Kingdom|Duchy|Gulf|Bay|Strait|Isle) of [A-Z]\w+|"
    r"[A-Z]\w+ (?:dam|bridge|river|canal|tower|hotel|museum|theatre|ferry|tunnel|mill)"
)


def with_article(name: str, terms: CorpusTerms = NO_TERMS, *, titled: bool = False) -> str:
    """ "the billing service", and "the Danube" where the text says so; codes get no article."""
    plain = re.fullmatch(r"[a-z]+(?:[ -][a-z]+)*", name) is not None
    plural = name.endswith("s") and not name.endswith(("ss", "us", "is"))
    part = re.match(r"[a-z]+ of \S", name) is not None  # the middle of Budapest
    common = (plain or part) and not plural and " " in name and not titled
    kind = re.fullmatch(r"(?P<proper>[A-Z][\w-]+) [a-z]{3,}", name)  # the Dunstan valve
    noun = kind is not None and not plural and kind["proper"].casefold() not in terms.small
    takes = common or noun or name in terms.definite or _TAKES_ARTICLE.fullmatch(name)
    return f"the {name}" if takes and not _ARTICLE.match(name) else name


_ADVERBIAL = re.compile(
    r"\b(?:to|at|from|outside|inside|ago|during|after|before|with|by|until|under|over|last|next)\b"
)
_OPENS_NO_NAME = _PREPOSITIONS | frozenset("is was are has go or and but among".split())
# Manual pages describe their subject with sentences, not names.
_SENTENCES = re.compile(r"option -|purpose$")


def is_clean(triple: Triple) -> bool:
    """Whether both ends can be names: no verb at the start, and no trailing words."""
    if not triple.phrase or _SENTENCES.match(triple.relation):
        return True
    if triple.object.split()[:1] in (["Its"], ["its"]) or triple.object.startswith("The same"):
        return False
    listed = triple.phrase == triple.relation and triple.relation not in RELATIONS
    if listed and triple.relation not in METADATA and not is_property(triple):
        return False
    for name in (triple.subject,) if _is_event(triple) else (triple.subject, triple.object):
        words = name.split()
        small = words and words[0][0].islower()
        verb = small and (is_third_person(words[0]) or words[0] in _OPENS_NO_NAME)
        trails = len(words) > 2 and not name[0].isupper() and _ADVERBIAL.search(name)
        doing = small and any(word.endswith("ing") for word in words)
        if verb or doing or (trails and triple.object_kind not in LITERALS) or not words:
            return False
    return True


# ---------------------------------------------------------------------------------- the questions


# "The same of its text", "The third.", "The best such": only the row above tells what is meant.
# "The Verge" is a name.
_POINTS_BACK = re.compile(r"The same\b|Its\b|The (?![A-Z])\w+\.?$|.*\bsuch\b")
_NO_PURPOSE = frozenset(
    "Default Defaults Alias Same This By Some If When Takes See Note Like".split()
)  # opens a remark


def words_of(triple: Triple, pages: PageIndex) -> Relation:
    """The words for this fact's relation; empty if the relation cannot be asked about."""
    known = RELATIONS.get(triple.relation) or _KEYS.get(triple.relation)
    if known is not None:
        if triple.relation in _KEYS and _POINTS_BACK.match(triple.object):
            return _NONE
        verb = triple.object.partition(" ")[0].casefold()
        if triple.relation != "purpose" or is_base(verb):
            return known
        named = triple.object[:1].isupper() or verb in ("a", "an", "the")
        # "manipulate the utilization", "traffic control filter": a verb or a noun.
        return Relation(ask=("What is X?" if named else "What is X for?",))
    if triple.relation.startswith(STATED):
        return Relation(object="date", ask=(triple.phrase,))
    if triple.relation.startswith(PARSED):
        return Relation(object=triple.object_kind, ask=(triple.phrase,))
    if triple.phrase == f"{triple.relation} in":  # "highest mountain in"
        most = f"the {triple.relation} in X"
        return Relation(of=(most,), ask=(f"What is {most}?",))
    if _is_count(triple):
        return Relation(object="amount", ask=(f"How many {triple.relation} does X have?",))
    if match := re.fullmatch(r"option (-\S+)", triple.relation):
        return Relation(ask=_option_asks(match[1], triple.object))
    one = _predicate(triple) if is_clean(triple) else None
    if one is None:
        return _NONE
    if _is_event(triple):
        what = one.noun
        asks = (f"What happened to the {what} of X?", f"What happened to X's {what}?")
        return Relation(ask=asks if what else ())
    noun = type_noun(triple.object, triple.object_kind, pages)
    return _words(one, noun, triple.object_kind, triple.object)


def _option_asks(flag: str, text: str) -> tuple[str, ...]:
    """Questions for what the option of a command does, from its line in the manual."""
    first = text.partition(" ")[0]
    if not first[:1].isalpha() or not first.isascii() or text[-1] in "-‐," or first in _NO_PURPOSE:
        return ()  # a fragment of its line, or a remark
    what_for = f"What is the option {flag} of X for?"
    if not is_base(first.casefold()) and not is_third_person(first.casefold()):
        return (what_for,)
    return (f"What does the option {flag} of X do?", f"What does {flag} do in X?", what_for)


def _is_count(triple: Triple) -> bool:
    """Whether a list or table counts something: "cases" and 106, but not "seconds" and 3."""
    listed = triple.phrase == triple.relation
    plural = re.fullmatch(r"[a-z]{3,}[^\Wsui]s", triple.relation) is not None
    whole = re.fullmatch(r"\d+|\d{1,3}(?:,\d{3})+", triple.object) is not None
    return listed and plural and whole and not _DURATION.search(triple.relation)


def _is_event(triple: Triple) -> bool:
    return is_event(triple.relation, triple.phrase, triple.object)


def is_property(triple: Triple) -> bool:
    """Whether the key of a list or table is a property, so that a question can ask for it.

    "Default port" is one; the header of a results table may be anything.
    """
    one = parse_relation(triple.relation, triple.phrase, triple.object_kind)
    if one is None or not one.noun:
        # A column "features" that contains numbers is a noun, not a verb.
        return one is not None and re.fullmatch(r"[\d.,]+", triple.object) is None
    last = one.noun.split()[-1].casefold()
    return last in ATTRIBUTES or last in ROLES or one.noun in ROLES or triple.relation in _KEYS


def _words(one: Predicate, noun: str, kind: str, value: str) -> Relation:
    kind_of = kind or ("person" if noun == "person" else "")
    ask = _noun_asks(one, kind_of) if one.noun else _verb_asks(one, noun, kind_of, value)
    of: tuple[str, ...] = ()
    if one.noun and kind_of not in LITERALS:
        of = () if _ONE_OF_SEVERAL.match(one.noun) else (f"the {one.noun} of X",)
    elif noun and kind_of not in LITERALS:
        of = _relative(one, noun)
    first, last = _orders(one, kind_of)
    same = _same(one, noun, kind_of)
    return Relation(object=kind_of, of=of, ask=ask, first=first, last=last, same=same)


def _noun_asks(one: Predicate, kind: str) -> tuple[str, ...]:
    noun, be = one.noun, one.be
    if noun.endswith("s") and not noun.endswith(("ss", "us", "is")) and be == "is":
        be = "are"
    role = {noun, noun.split()[-1]} & (ROLES | _KIN | {"deputy"}) or (
        noun.isupper() and noun.endswith("O")
    )
    who = "Who" if kind == "person" or (role and kind in ("", "organisation")) else "What"
    if noun.split()[-1] in _HELD_BY_MANY:
        return ()
    if _ONE_OF_SEVERAL.match(noun):
        return (f"{who} {be} a {noun} of X?",)
    return (
        f"{who} {be} the {noun} of X?",
        f"{who} {be} X's {noun}?",
        f"{who} {be} the {noun} of X?",
    )


def _verb_asks(one: Predicate, noun: str, kind: str, value: str) -> tuple[str, ...]:
    """Questions for the object of a verb."""
    acts = one.base or base_form(one.participle)
    if acts in _OF_ANYTHING and not kind and not noun and " " not in value:
        return ()  # unclear whether to ask who or what
    if one.agent:
        who_or_what = not kind and not noun and " " not in value  # "Bosporus"
        return () if kind in LITERALS or who_or_what else _agent_asks(one, noun, kind)
    # "was X released", "does X support"
    head = f"{one.be} X {one.participle}" if one.participle else f"{one.do} X {one.base}"
    particle = " ".join(word for word in one.rest.split() if word in _PARTICLES)
    preposition = one.rest.removeprefix(particle).strip()
    short, full = f"{head} {particle}".rstrip(), f"{head} {one.rest}".rstrip()
    if kind == "date":
        return _date_asks(short, preposition, value)
    if kind == "amount":
        return _amount_asks(short, full, preposition, value)
    if not kind and one.base in _MOTION and preposition in ("to", "from"):
        return (f"Where {full}?",)
    if not kind and preposition in ("in", "at", "near") and value[:1].isupper():
        return (f"Where {short}?",)
    if kind == "place" and preposition in ("in", "at", "near", "to", "from", "into"):
        moved = f" {preposition}" if preposition in ("to", "from") else ""
        where = f"Where {short}{moved}?"
        return (where, where, f"Which {noun or 'place'} {full}?")
    if noun == "person" or (not kind and one.base in _PERSONAL and value[:1].isupper()):
        return (f"Who {full}?",)
    what = f"What {full}?"
    return (f"Which {noun} {full}?", f"Which {noun} {full}?", what) if noun else (what,)


def _agent_asks(one: Predicate, noun: str, kind: str) -> tuple[str, ...]:
    which = "Who" if noun in ("person", "") else f"Which {noun}"
    which = "What" if kind == "thing" and not noun else which
    return (f"{which} {one.active} X?",) * 2 + (f"{which} {one.be} X {one.participle} by?",)


def _date_asks(short: str, preposition: str, value: str) -> tuple[str, ...]:
    if preposition in ("since", "until", "by"):
        return (f"{preposition.capitalize()} when {short}?",)
    if preposition not in ("on", "in", "at", ""):
        return ()
    year = re.fullmatch(r"[12]\d{3}", value) is not None
    return (f"When {short}?", f"In which year {short}?") if year else (f"When {short}?",)


def _amount_asks(short: str, full: str, preposition: str, value: str) -> tuple[str, ...]:
    if preposition not in ("", "for", "at", "to"):
        return ()
    if _MONEY.search(value):
        return (f"How much {full}?",)
    if _DURATION.search(value):
        return (f"How long {short}?",) if preposition in ("", "for") else ()
    counted = _COUNTED.match(value)
    return (f"How many {counted['noun']} {full}?",) if counted else ()


def _relative(one: Predicate, noun: str) -> tuple[str, ...]:
    """The object as part of a longer question: "the team that owns X"."""
    link = "who" if noun == "person" else "that"
    if one.agent:
        return (f"the {noun} {link} {one.active} X",)
    verb = f"{one.be} {one.participle}" if one.participle else one.verb
    said = f"X {verb} {one.rest}".rstrip()
    return (f"the {noun} that {said}",) if noun != "person" else (f"the person {said}",)


def _orders(one: Predicate, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Wordings for which of two is earlier or smaller, and for which is later or larger."""
    if one.noun and kind == "date":
        return (
            (f"Which has the earlier {one.noun}, X?",),
            (f"Which has the later {one.noun}, X?",),
        )
    if one.noun and kind == "amount":
        return ((f"Which has the lower {one.noun}, X?",), (f"Which has the higher {one.noun}, X?",))
    if kind != "date" or one.rest not in ("on", "in", ""):
        return (), ()
    verb = f"was {one.participle}" if one.participle else past_of(one.verb)
    if not one.participle and one.do != "did":
        return (), ()
    return (
        (f"Which {verb} first, X?", f"Which {verb} earlier, X?"),
        (f"Which {verb} later, X?", f"Which {verb} last, X?"),
    )


def _same(one: Predicate, noun: str, kind: str) -> tuple[str, ...]:
    if kind in LITERALS:
        return ()
    if one.noun:
        return (f"Do X have the same {one.noun}?", f"Is the {one.noun} of X the same?")
    if not noun:
        return ()
    be = {"is": "Are", "was": "Were"}.get(one.be, one.be.capitalize())
    if one.participle:
        return (f"{be} X {one.participle} {one.rest} the same {noun}?",)
    do = "Did" if one.do == "did" else "Do"
    return (f"{do} X {one.base} {one.rest} the same {noun}?".replace("  ", " "),)


def _predicate(triple: Triple) -> Predicate | None:
    """The grammar of an open fact, or of a known relation that the text words openly."""
    relation = triple.relation
    if relation in RELATIONS:
        words = triple.phrase.split()
        if len(words) < 2 or words[-1] not in _PREPOSITIONS or not is_participle(words[-2]):
            return None
        relation = " ".join(words[-2:])
    return parse_relation(relation, triple.phrase, triple.object_kind)


def confirm(triple: Triple, subject: str, value: str) -> str:
    """The fact as a yes/no question with this object; "" if it has no such form."""
    known = RELATIONS.get(triple.relation)
    if known is not None and known.object == "person" and f"the {triple.relation} of X" in known.of:
        return f"Is {value} the {triple.relation} of {subject}?"
    if _is_count(triple):
        return f"Does {subject} have {value} {triple.relation}?"
    one = _predicate(triple) if triple.relation not in _KEYS and is_clean(triple) else None
    if one is None or (triple.object_kind == "date" and one.verb):
        return ""
    if len(value.split()) > MAX_CONFIRMED or value.endswith(".") or ", " in value:
        return ""
    event = _is_event(triple)
    if triple.object_kind == "thing" and not event and value[:1].islower():
        return ""  # its article is missing
    if event:
        return f"Is it true that the {one.noun} of {subject} {value.removeprefix('the ')}?"
    if one.noun and (triple.object_kind in LITERALS or triple.object_kind == "thing"):
        return f"{one.be.capitalize()} the {one.noun} of {subject} {value}?"
    if one.noun:
        many = _ONE_OF_SEVERAL.match(one.noun) or one.noun in _HELD_BY_MANY
        held = with_indefinite_article(one.noun) if many else f"the {one.noun}"
        return f"{one.be.capitalize()} {value} {held} of {subject}?"
    opening = f"{one.be.capitalize()} {subject} {one.participle}"
    if not one.participle:
        opening = f"{one.do.capitalize()} {subject} {one.base}"
    return re.sub(r"  +", " ", f"{opening} {one.rest} {value}?")


def clause_of(triple: Triple, value: str) -> str:
    """What the fact says about its subject: "is led by Mira Holt"; "" if it cannot be worded."""
    one = _predicate(triple) if triple.relation not in _KEYS and is_clean(triple) else None
    return "" if one is None or _is_event(triple) else one.clause(value)


def ask_option(triple: Triple, subject: str) -> tuple[str, str] | None:
    """A question for the command option that does something, and the option."""
    match = re.fullmatch(r"option (-\S+)", triple.relation)
    first, _, rest = triple.object.partition(" ")
    if match is None or not rest or not is_base(first.casefold()) or first.casefold() == "do":
        return None
    return f"Which option of {subject} do you need to {first.casefold()} {rest}?", match[1]
