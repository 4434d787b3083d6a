"""What two have in common, or whether they have it: what is said of each is looked up, then it is joined.

Are A and B both films?                  is A a film; is B; both
Do A and B have the same nationality?    the one's, the other's; the same
Which actor starred in both A and B?     who in A, who in B; who is in both lists
Was A released before B?                 when A, when B; yes where A's day comes first
"""

from __future__ import annotations

import re

from suffice.reason.comparing import CAPITALS, ROLES, bare_name, branch
from suffice.reason.plan import SubQuestion
from suffice.reason.spans import PEOPLES, Expects, expected

__all__ = ["YES_OR_NO", "intersection"]

_ALIKE = re.compile(r"\b(?:the )?same (?P<what>[a-z]+(?: of [a-z]+)?)|\bshare (?:the |a )?(?:same )?(?P<shared>[a-z]+)", re.I)
YES_OR_NO = re.compile(r"^(?:are|were|is|was|do|does|did|have|has|had)\b", re.IGNORECASE)
_SINGULAR = {"are": "Is", "were": "Was", "do": "Does", "have": "Has"}
_ABOUT_BOTH = re.compile(r"\b(?:both|in common|share[sd]?)\b|\b(?:are|were) (?:what|which)\b", re.IGNORECASE)
_BEFORE = re.compile(
    r"^(?i:was|were|did|is|are)\s+(?P<first>.+?)\s+(?P<what>[a-z][a-z ]*?)\s+"
    r"(?:(?P<early>before|prior to|earlier than|sooner than)|after|later than)\s+(?P<second>.+)$"
)
_AS = re.compile(
    r"^(?:do|does|did|is|was|has|have)\s+(?P<first>.+?)\s+(?P<same>[a-z ]*?\bthe same .+?) as (?P<second>.+)$", re.I
)
_COUNTRY = ("country", "nationality", "countries", "citizenship")


def intersection(question: str) -> list[SubQuestion]:
    """The steps where the question asks what two have in common, or whether; none where it does not."""
    plain = question.rstrip("? ")
    if found := _AS.match(plain):
        return _alike(found["same"], bare_name(found["first"]), bare_name(found["second"]))
    if steps := _in_order(plain):
        return steps
    two = _two_names(question)
    if two is None:
        return []
    first, second, rest = two
    if YES_OR_NO.match(question):
        return _alike(question, first, second) or _both(question, first, second, rest)
    if _ABOUT_BOTH.search(question):
        text = re.sub(r"\bboth (?:the )?|\bin common\b\s*", "", question, flags=re.IGNORECASE)
        joined = re.compile(re.escape(first) + r"\W+and\W+" + re.escape(second))
        each = [" ".join(name.join(joined.split(text)).split()) for name in (first, second)]
        if each[0] != each[1]:
            form = expected(question)
            steps = [SubQuestion(one, form) for one in each]
            pick = "kind" if form is Expects.KIND else "shared"
            return [*steps, SubQuestion("What do #1 and #2 have in common?", form, pick)]
    return []


def _in_order(question: str) -> list[SubQuestion]:
    """ "Was A released before B?" """
    found = _BEFORE.match(question)
    if found is None or not re.match(CAPITALS, found["second"].removeprefix("the ")):
        return []
    steps: list[SubQuestion] = []
    told = f"When was X {found['what']}?"
    ends = [branch(steps, "", bare_name(found[one]), told, Expects.DATE) for one in ("first", "second")]
    pick = "before" if found["early"] else "after"
    return [*steps, SubQuestion(f"Does #{ends[0]} come {pick} #{ends[1]}?", Expects.YES_NO, pick)]


# A name goes on until a lower-case word that leads to no further capital: "of the University", not "of the same city".
_TAIL = r"(?P<rest>(?:,?\s+(?!(?:of|the|de|la|du|von|van|and|in|on|for|to|a|at)\s+(?:the\s+)?[^\sa-z])[a-z].*)?)"


def _two_names(question: str) -> tuple[str, str, str] | None:
    """The two names that an "and" joins, and what follows them."""
    if not YES_OR_NO.match(question):
        question = re.sub(r"\bboth (?:the )?", "", question, flags=re.IGNORECASE)
        pair = re.search(rf"(?P<first>{CAPITALS}),? and (?P<second>{CAPITALS})(?P<rest>.*)$", question)
        return (pair["first"], pair["second"], pair["rest"].strip(" ,?")) if pair else None
    question = re.sub(r"\b(?:the )?directors? of (?:the )?(?:films?|movies?),? ", "", question, flags=re.IGNORECASE)
    pair = re.search(
        rf"(?P<first>(?:film |song )?[^\sa-z].*?),?\s+and\s+(?P<second>.+?){_TAIL}\s*\??$", _after_opening(question)
    )
    if pair is None:
        return None
    second, people = _and_people(bare_name(pair["second"]))
    return bare_name(pair["first"]), second, f"{people} {pair['rest'].strip(' ,?')}".strip()


def _and_people(name: str) -> tuple[str, str]:
    """ "Luc Besson American" in front of "cinematographers" is Luc Besson: the people belongs to what he is said to be."""
    words = name.split()
    if len(words) > 1 and words[-1].casefold() in PEOPLES:
        return " ".join(words[:-1]), words[-1]
    return name, ""


def _after_opening(question: str) -> str:
    text = YES_OR_NO.sub("", question).strip()
    return re.sub(
        r"^(?:both |the )*(?:(?:films?|movies?|bands?|songs?|directors? of films?|director of film)\b[:,]? |[a-z]+s, )?",
        "",
        text,
    )


def _alike(question: str, first: str, second: str) -> list[SubQuestion]:
    found = _ALIKE.search(question)
    if found is None:
        return []
    what = (found["what"] or found["shared"]).casefold()
    country = what in _COUNTRY
    names = [re.sub(r"^(?:director of )?(?:the )?(?:film|movie) ", "", one, flags=re.IGNORECASE) for one in (first, second)]
    steps: list[SubQuestion] = []
    if what in ROLES:  # by the same director
        steps = [SubQuestion(f"Who is the {what} of {name}?", Expects.PERSON) for name in names]
        ends = [1, 2]
    else:
        told = "Which country is X from?" if country else f"What {what} is X in?"
        form = Expects.COUNTRY if country else expected(told)
        if form is Expects.THING:
            form, told = Expects.KIND, f"What {what} is X?"
        ends = [branch(steps, question, name, told, form) for name in names]
        if form is Expects.KIND:
            return [*steps, SubQuestion(f"Are #{ends[0]} and #{ends[1]} alike?", Expects.YES_NO, "alike", (what,))]
    return [*steps, SubQuestion(f"Are #{ends[0]} and #{ends[1]} the same?", Expects.YES_NO, "same")]


def _both(question: str, first: str, second: str, rest: str) -> list[SubQuestion]:
    said = re.sub(r"^(?:both\b|are\b|were\b)\s*", "", rest)
    if not said:
        return []
    opening = question.split()[0].casefold()
    verb = _SINGULAR.get(opening, opening.capitalize())
    steps = [SubQuestion(f"{verb} {name} {said}?", Expects.YES_NO) for name in (first, second)]
    return [*steps, SubQuestion("Is it so, by #1 and #2?", Expects.YES_NO, "all")]
