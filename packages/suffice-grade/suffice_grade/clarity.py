"""Whether a question about a fact is clear to someone who has not seen its document.

    is_clear         both ends are whole names or values: "Mira Holt", not "Mira" or "the rest of"
    has_one_answer   the fact is the only one of its kind: "led by", not "plays"
    context_of       the title that a question about a row or a line of a list has to mention

`Facts` applies them before it draws, so what is unclear takes no place in a benchmark. They judge
the form of names, values and relations, and what the corpus writes elsewhere.
"""

from __future__ import annotations

import re

from suffice.lexicon import FUNCTION_WORDS, NUMBER_WORDS
from suffice.text import title_key, tokens
from suffice_grade.claims import PageIndex
from suffice_grade.inflection import QUESTION_WORDS, is_participle, is_past, is_third_person
from suffice_grade.open_relations import LITERALS, PARSED, is_event, is_functional
from suffice_grade.relation_words import METADATA
from suffice_grade.relations import RELATIONS
from suffice_grade.stage_protocols import Triple
from suffice_grade.stated_facts import STATED
from suffice_grade.vocabulary import (
    COUNTRIES,
    FIRST_NAMES,
    NATIONALITIES,
    RANKS,
    ROLES,
    base_title,
)

_OF_A_PAGE = (*METADATA, "purpose", "see also")
_NOUNS = frozenset(QUESTION_WORDS["nouns"].split())
_SMALL = frozenset(
    "of the and de von van der den di da del la le du for al bin ibn y to on".split()
)
_HONORIFICS = frozenset("mr mrs ms miss dr prof sir".split())
_CODE = re.compile(r".*(?:\d|[_/=]|\w[.-]\w|[a-z][A-Z]|^-)|[A-Z]{2,}$")
_FILE = re.compile(r"\.[a-z]{1,6}\b")
# "Holt, Mira (poet)" and "Notes, copied by E."; "Otto II, Count of Guelders" is a name.
_CUT = re.compile(r": |, (?:[a-z]|[A-Z][\w’'-]+ \()")
_YEAR = re.compile(r"\b[12]\d{3}\b")
_FRAGMENT = re.compile(
    r"(?:for|in|on|at|with|by|per|if|as|from|via|and|or|but|set|also|more|less|only)\b|.*(?:;|: )"
)
_SEVERAL = re.compile(r", | and | & |\d [–-] ?\d|\w-\w+\d+-")


def is_full_name(name: str, pages: PageIndex) -> bool:
    """Whether a name says by itself what it means: "Mira Holt", "Kestrel 2" or a page of its own.

    A first name, a last name, a capitalized common word and an inverted name do not.
    """
    page = pages.by_title.get(name)
    words = base_title(name).split()
    common = len(words) == 1 and title_key(name) in pages.terms.small  # "Journal"
    defined = page is not None and page.noun and name[:1].isalnum() and not common
    if name in COUNTRIES or defined:
        return True
    if not words or _CUT.search(name) or words[0].casefold() in FUNCTION_WORDS - {"the"}:
        return False
    if not re.match(r"[\w./-]", name):
        return False
    if words[0].casefold() in NUMBER_WORDS or re.search(r"['’]$|^\w+ing the ", name):
        return False
    if len(words) == 1:
        return is_code(name) or (page is not None and not common)
    if words[0].casefold().strip(".") in _HONORIFICS | ROLES or words[0] in RANKS:
        return len(words) > 2
    capital = all(one[:1].isupper() or one[:1].isdigit() for one in words if one not in _SMALL)
    thing = title_key(name) in pages.terms.things and words[-1].casefold() in _NOUNS
    return capital or thing


def is_code(name: str) -> bool:
    """ "MALLOC_ARENA_MAX", "suffice.toml", "OpenAI", "IAG": written like no common word."""
    return " " not in name and _CODE.match(name) is not None


def is_listed(fact: Triple) -> bool:
    """Whether a row or a line of a list states the fact, not a sentence ("runs")."""
    relation = fact.relation.removeprefix("listed ")
    verb = is_third_person(relation.partition(" ")[0]) and not fact.object.isdigit()
    return fact.phrase == relation != "" and not verb and not relation.endswith(" by")


def is_clear(fact: Triple, pages: PageIndex) -> bool:
    """Whether the ends of a fact can be understood without its document."""
    if fact.relation.startswith((STATED, PARSED)):  # they have their own checks
        return True
    if _is_of_page(fact, pages):
        new = not _repeats(fact.object, f"{fact.subject} {fact.relation}")
        if fact.relation == "package":  # "X", or "gcc-nm GNU binutils" of gcc-nm
            own = tokens(base_title(fact.subject))
            new = len(fact.object) > 1 and not set(own) & set(tokens(fact.object))
        return new and not _is_fragment(fact.object) and "&#" not in fact.subject
    if is_listed(fact):
        return _is_clear_entry(fact, pages)
    return _is_clear_subject(fact, pages) and _is_clear_object(fact, pages)


def _is_of_page(fact: Triple, pages: PageIndex) -> bool:
    """Whether the fact is about the document itself: its outlet, or an option of its command."""
    of_page = fact.relation in _OF_A_PAGE or fact.relation.startswith("option ")
    return of_page and pages.title_of.get(fact.doc_id, "") == fact.subject


def _is_clear_subject(fact: Triple, pages: PageIndex) -> bool:
    if is_full_name(fact.subject, pages):
        # A title like "hut.txt" is not what its sentences are about.
        about = pages.title_of.get(fact.doc_id, "") == fact.subject
        return not (about and _FILE.search(fact.subject))
    word = fact.subject.casefold()
    # "the chief executive of Salesforce": the role says that the word is an organisation.
    plain = " " in word or word in pages.terms.small | FIRST_NAMES or word.endswith("s")
    plain = plain or fact.subject in pages.terms.parts
    return fact.relation.casefold() in ROLES and not plain


def _is_clear_object(fact: Triple, pages: PageIndex) -> bool:
    value, kind = fact.object, fact.object_kind
    if is_event(fact.relation, fact.phrase, value):
        return _is_clear_event(fact)
    if kind == "date":  # "built from 1953" is half of a span
        span = fact.relation.endswith((" from", " to", " until", " by", " after", " before"))
        return _has_year(fact) and not span
    if value[:1].isdigit() and kind not in LITERALS:  # "12 Oct"
        return False
    if kind in LITERALS or fact.relation == "profession":
        return True
    if value[:1].islower():  # an article is missing, or half of a clause
        return fact.relation in RELATIONS and not fact.phrase
    known = RELATIONS.get(fact.relation)
    if value in NATIONALITIES:  # "performed in Flemish" is no place
        return False
    place = kind == "place" or (known is not None and known.object not in ("person", ""))
    preposition = fact.relation.split()[-1] in ("in", "at", "near", "from", "to")
    return place or preposition or is_full_name(value, pages)


def _is_clear_event(fact: Triple) -> bool:
    """ "rose by 3 %", "was widened"; not "was founded by Otto", which asks who did it."""
    first, _, rest = fact.object.partition(" ")
    counted = {word.casefold() for word in fact.relation.split()} & set(NUMBER_WORDS)
    return (first == "was" or is_past(first)) and " by " not in f" {rest}" and not counted


def _is_clear_entry(fact: Triple, pages: PageIndex) -> bool:
    """A row or a line needs a title to refer to, unless it is about its own document."""
    if fact.relation.casefold() in ROLES:
        return _is_clear_subject(fact, pages) and is_full_name(fact.object, pages)
    named = is_full_name(fact.subject, pages) and not is_code(fact.subject)
    about = pages.title_of.get(fact.doc_id, "") == fact.subject
    if not (named and about) and not context_of(fact, pages):
        return False
    dated = fact.object_kind == "date" or fact.relation.endswith("date")
    several = _SEVERAL.search(fact.subject) is not None
    return not several and not _is_fragment(fact.object) and (not dated or _has_year(fact))


def _has_year(fact: Triple) -> bool:
    return _YEAR.search(fact.object) is not None


def _is_fragment(text: str) -> bool:
    words = text.casefold().rstrip(".").split()
    last = words[-1] if words else ""
    return _FRAGMENT.match(text) is not None or not last or last in FUNCTION_WORDS


def _repeats(value: str, asked: str) -> bool:
    """Whether an answer says no more than the question: --location is "the location name"."""
    telling = [word for word in tokens(value) if word not in FUNCTION_WORDS]
    known = asked.casefold()
    return all(word in known or word in ("name", "id", "identifier", "number") for word in telling)


def has_one_answer(fact: Triple) -> bool:
    """Whether no other object can be meant: "is led by", not "plays" or "was seen in"."""
    if not fact.phrase or is_listed(fact) or is_event(fact.relation, fact.phrase, fact.object):
        return True
    if fact.relation.startswith((STATED, PARSED)):
        return True
    if fact.relation in RELATIONS or fact.relation in _OF_A_PAGE:
        return True
    words = fact.relation.split()
    if is_third_person(words[0]):  # "joined in 2014" does not say what
        return fact.object_kind == "amount" and len(words) == 1
    if fact.relation.casefold() in ROLES and {"was", "were"} & set(fact.phrase.split()):
        return False  # others held the office before and after
    placed = len(words) == 2 and is_participle(words[0]) and words[1] in ("in", "after", "on")
    return placed or is_functional(fact.relation, fact.object_kind)


def context_of(fact: Triple, pages: PageIndex) -> str:
    """The title of the document that a question about an entry mentions; "" if none fits."""
    title = pages.title_of.get(fact.doc_id, "")
    telling = [word for word in title.split() if word.casefold() not in FUNCTION_WORDS]
    plain = title[:1].isalpha() and not re.search(r"[\"“”?!|#]", title) and not _FILE.search(title)
    short = 2 <= len(telling) <= 10 or (len(telling) == 1 and len(title) > 3 and title[0].isupper())
    unique = pages.title_counts[title] == 1
    return title if plain and short and unique and title != fact.subject else ""


def in_context(text: str, fact: Triple, pages: PageIndex) -> str:
    """The question, with the title of the document if only that says what it is about."""
    entry = is_listed(fact) and not _is_of_page(fact, pages)
    title = context_of(fact, pages) if entry else ""
    return f'According to "{title}", {text[0].lower()}{text[1:]}' if title and text else text


def fits_what(text: str, fact: Triple) -> bool:
    """Whether "what" asks for a thing: not "What is the hero of X?" where it is Colm Derry."""
    name = re.fullmatch(r"[A-Z][\w’'-]+(?: [A-Z][\w’'-]+){0,2}", fact.object)
    known = fact.object_kind not in ("", "person") or fact.relation in RELATIONS
    return known or name is None or not text.startswith("What ")
