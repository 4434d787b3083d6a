"""Forms of English verbs, from spelling rules and a table of irregular verbs; articles.

Questions need the base form ("When did it open?"), and the present or past tense of a verb that the
text has in the passive ("Who led it?").
"""

from __future__ import annotations

import re

from suffice.storage.records import read_toml
from suffice_grade.vocabulary import FOLDER

QUESTION_WORDS = read_toml(FOLDER / "question_words.toml")
_VERBS = read_toml(FOLDER / "verbs.toml")
_BASES = {
    *_VERBS["regular"].split(),
    *(x.split(":")[0].strip() for x in _VERBS["irregular"].split(";")),
}
_FORMS: dict[str, tuple[str, ...]] = {
    base: tuple(forms.split()) for base, forms in QUESTION_WORDS["irregular"].items()
}
_PAST = {past: base for base, (past, _) in _FORMS.items()}
_PARTICIPLES = {participle: base for base, (_, participle) in _FORMS.items()}
_WITH_E = frozenset(QUESTION_WORDS["bases"]["with_e"].split())
_WITHOUT_E = frozenset(QUESTION_WORDS["bases"]["without_e"].split())
# Stems of "-ed" forms whose base ends in e: "releas", "defin", "requir", "manag", "handl".
_ENDS_IN_E = re.compile(
    r"(?:[^aeiou]at|iat|uat|eat|ut|[iya]z|as|is|os|us|rs|ns|ps|v|c|[^n]g|u|[^ao]ir|[^oc]ur|[^eo]ar"
    r"|[^o]id|[^eo]ad|[^o]ud|[^o]od|[bcdfgkptz]l|[^aeo]in|un|[^eo]am|[^a]im|um|[^ao]il|[^aeiou]ul"
    r"|[^e]ap|[^eo][ai]k|[^o]ok|ib|yp)$"
)
_DOUBLED = re.compile(
    r"([bdgmnprtvk])\1$|(?:contro|cance|trave|labe|mode|signa|compe|expe|leve)ll$"
)


def is_base(word: str) -> bool:
    return word in _BASES or word in _FORMS


def is_third_person(word: str) -> bool:
    """Whether this is the third person of a relation verb: "leads", not "limits"."""
    return _without_s(word) in _BASES and word.endswith("s")


def is_participle(word: str) -> bool:
    """Whether the word can be a past participle."""
    return word in _PARTICIPLES or (word.endswith("ed") and len(word) > 3 and word != "need")


def is_past(word: str) -> bool:
    return word in _PAST or (is_participle(word) and word not in _PARTICIPLES)


def base_form(word: str) -> str:
    """The base form of a past tense, participle or third person: "released" -> "release"."""
    if word in _FORMS or word in _BASES:
        return word
    if known := _PAST.get(word) or _PARTICIPLES.get(word):
        return known
    if word.endswith("ied") and len(word) > 4:
        return f"{word[:-3]}y"
    if is_participle(word):
        stem = word[:-2]
        if _DOUBLED.search(stem):
            return stem[:-1]
        if stem in _WITHOUT_E:
            return stem
        return f"{stem}e" if stem in _WITH_E or _ENDS_IN_E.search(stem) else stem
    return _without_s(word)


def _without_s(word: str) -> str:
    if not word.endswith("s") or word.endswith("ss"):
        return {"has": "have"}.get(word, word)
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if re.search(r"(?:ss|sh|ch|x|zz|o)es$", word):
        return word[:-2]
    return {"has": "have"}.get(word, word[:-1])


def third_person(base: str) -> str:
    """The third person: "leads", "passes", "carries"."""
    if base == "have":
        return "has"
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return f"{base[:-1]}ies"
    return f"{base}es" if re.search(r"(?:s|sh|ch|x|z|o)$", base) else f"{base}s"


def past_of(participle: str) -> str:
    """The past tense for a participle: "written" -> "wrote", "released" -> "released"."""
    base = _PARTICIPLES.get(participle)
    return _FORMS[base][0] if base else participle


def past_tense(base: str) -> str:
    if base in _FORMS:
        return _FORMS[base][0]
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return f"{base[:-1]}ied"
    return f"{base}ed"


def with_indefinite_article(noun: str) -> str:
    """ "an orchestra", but "a university"."""
    return f"{'an' if re.match('[aeio]|u(?!ni)', noun) else 'a'} {noun}"
