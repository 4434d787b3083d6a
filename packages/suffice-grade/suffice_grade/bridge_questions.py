"""Questions that describe a page instead of naming it, and ask for a fact about that page.

    intersection   Which American actor born in 1951 starred in film A?
    bridge         Glassland is a 2014 drama film directed by a person who was born in what year?
                   The birthplace of Jerry Weiss elected its first mayor in what year?

A bridge needs no known relation. It joins a claim that names another page with a claim of that page
that has a date or a number; the question repeats their words. So a corpus that matches few patterns
still yields questions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from suffice.text import title_key
from suffice_grade.chain_questions import Wording, make_question
from suffice_grade.claims import PageIndex
from suffice_grade.inflection import with_indefinite_article
from suffice_grade.knowledge_graph import KnowledgeGraph, seeded_order
from suffice_grade.relations import get_relation
from suffice_grade.stage_protocols import Claim, GeneratedQuestion, ReasoningPath, Triple
from suffice_grade.vocabulary import NATIONALITIES, TITLE_NOUNS, any_of, base_title

MENTIONS = "mentions"  # the relation from a claim to a page that it names
STATES = "states"  # the relation from a page to a date or number in one of its own claims
MAX_WORDS = 28
MAX_PER_PAGE = 6  # questions per fact of a page, so that no country dominates the benchmark


class _PageFact(NamedTuple):
    """A fact about a page that the question does not name, and the words to ask for it."""

    fact: Triple
    words: str  # "{} elected its first mayor in what year"; without a slot: "born when"

    @property
    def clause(self) -> str:
        """The words after "that" if the page is their subject, else ""."""
        is_subject = self.words.startswith("{} ") and self.words.count("{}") == 1
        return self.words.removeprefix("{} ") if is_subject else ""


PageFacts = Mapping[str, list[_PageFact]]  # by title


def write_bridge_questions(
    claims: Sequence[Claim],
    graph: KnowledgeGraph,
    paths: Sequence[ReasoningPath],
    wording: Wording,
    *,
    most: int,
    seed: int = 42,
) -> list[GeneratedQuestion]:
    """Up to `most` questions from claims that name a page, and `most` from paths of each length."""
    stated = _stated_facts(claims, wording.pages)
    found: list[GeneratedQuestion] = []
    for claim in seeded_order(claims, lambda claim: claim.claim_id, seed):
        if len(found) >= most:
            break
        if (question := _left_out(claim, graph, stated, wording)) is not None:
            found.append(question)
    by_length: dict[int, list[ReasoningPath]] = defaultdict(list)
    for subject in graph.subjects:
        by_length[1] += [ReasoningPath((triple,)) for triple in graph.only(subject).values()]
    for path in paths:
        by_length[len(path.triples)].append(path)
    for length in sorted(by_length):
        fitting = [
            path
            for path in by_length[length]
            if path.ends[1] in stated and wording.can_phrase(path.triples)
        ]
        order = seeded_order(fitting, lambda path: f"described {path.ends}", seed)
        found += _described(order, stated, wording, most)
    return found


def _described(
    paths: Sequence[ReasoningPath], stated: PageFacts, wording: Wording, most: int
) -> list[GeneratedQuestion]:
    """A path describes the page: "The birthplace of X elected its first mayor in what year?"."""
    found: list[GeneratedQuestion] = []
    times: Counter[str] = Counter()
    for path in paths:
        if len(found) == most:
            break
        start, end = path.ends
        one = stated[end][times[end] % len(stated[end])]
        if times[end] >= MAX_PER_PAGE * len(stated[end]) or one.fact.doc_id in path.doc_ids:
            continue
        times[end] += 1
        text = one.words.replace("{}", wording.phrase(path.triples, start))
        text = f"{text[0].upper()}{text[1:]}?"
        whole = ReasoningPath((*path.triples, one.fact))
        found.append(make_question(text, one.fact.object, "bridge", (whole,)))
    return found


def _left_out(
    claim: Claim, graph: KnowledgeGraph, stated: PageFacts, wording: Wording
) -> GeneratedQuestion | None:
    """The claim up to another page that it names; the page's noun and a fact replace the name."""
    pages = wording.pages
    title = claim.subject or pages.title_of.get(claim.doc_id, "")
    name = base_title(title)
    text = re.sub(r"\s*\([^()]*\)", "", claim.text)
    own = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) if name else None
    if own is None or _POINTS_BACK.search(text):
        return None
    for at, other in _named_pages(text, own.end(), pages, title):
        before, noun = text[:at], _noun(other, pages)
        facts = [one for one in _facts(other, graph, stated, wording) if _can_follow(one, claim)]
        if not facts or not noun or not _can_lead(before, pages.kind(other)):
            continue
        place = wording.pick([str(at) for at in range(len(facts))], f"{claim.claim_id} {other}")
        one = facts[int(place)]
        before = re.sub(r"\b(?:the|an?) $", "", before)
        shown = wording.name(title, kind_word=False).removeprefix("the ")  # the claim has its own
        before = before.replace(name, shown, 1)
        link = ("who " if pages.kind(other) == "person" else "that ") if one.clause else ""
        question = f"{before}{with_indefinite_article(noun)} {link}{one.clause or one.words}?"
        if base_title(other) not in question:  # otherwise the question names the page elsewhere
            mention = Triple(title, MENTIONS, other, claim.doc_id, claim.claim_id)
            path = ReasoningPath((mention, one.fact))
            return make_question(question, base_title(one.fact.object), "bridge", (path,))
    return None


def _facts(
    title: str, graph: KnowledgeGraph, stated: PageFacts, wording: Wording
) -> list[_PageFact]:
    """What can be asked about a page: relations with one edge, and what its claims state."""
    known = [
        _PageFact(fact, wording.pick(ways, f"{title} {relation}"))
        for relation, fact in sorted(graph.only(title).items())
        if (ways := get_relation(relation).describe)
    ]
    return known + stated.get(title, [])


def _can_follow(one: _PageFact, claim: Claim) -> bool:
    return one.fact.doc_id != claim.doc_id and ("{}" not in one.words or bool(one.clause))


_LEADS = re.compile(rf"\b{any_of('before_noun')} $")


def _can_lead(before: str, kind: str) -> bool:
    """Whether "a war", "a person who …" can follow these words."""
    if kind == "place" and re.search(r"\b(?:at|for|by) (?:the )?$", before):
        return False
    few = len(before.split()) <= MAX_WORDS and '"' not in before
    return few and _LEADS.search(before) is not None


def _noun(title: str, pages: PageIndex) -> str:
    """A noun for a page, from its first sentence or else from the end of its title."""
    page = pages.by_title[title]
    if page.noun:
        family = page.kind == "person" and page.noun in ("son", "daughter", "wife", "member")
        return "person" if family else page.noun
    last = title.split()[-1].casefold()
    return last if last in TITLE_NOUNS else "person" if page.kind == "person" else ""


# -------------------------------------------------------------------- dates and numbers in claims

_DATE = r"(?:\d{1,2} )?(?:[A-Z][a-z]{2,8} )?(?:\d{1,2}, )?[12]\d{3}"
_WHEN = re.compile(
    rf" (?:in|on|since|until|by) (?P<value>{_DATE})"
    r"(?=[.,;]|$| and | when | by | with | to | after )"
)
_DATE_FIRST = re.compile(rf"(?:In|On|Since|By) (?P<value>{_DATE}), ")
_COUNTED = re.compile(
    r" (?P<value>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)? (?:million|billion|percent)|\d+%)"
    r"(?= [a-z]|[.,]|$)"
)
# The page's name stands alone, not before a noun ("a Chicago theater") or inside another name.
_STANDS = re.compile(
    r"(?:^|\b(?:in|of|at|from|to|by|with|for|against|near|into|across|between|within|that|and|when|"
    r"where) )\{\}(?=$|[.,;]| (?:is|was|were|are|has|had|in|on|by|and|with|to|at|from|since|"
    r"between|during|became|did|became|[a-z]+ed)\b)"
)
# A sentence that depends on the one before it cannot be asked about.
_POINTS_BACK = re.compile(rf"^{any_of('opens_back')}\b|\b{any_of('points_back')}\b")


def _stated_facts(claims: Sequence[Claim], pages: PageIndex) -> dict[str, list[_PageFact]]:
    """The dates and numbers that a page's own claims state about it, by title."""
    found: dict[str, list[_PageFact]] = defaultdict(list)
    for claim in claims:
        title = claim.subject or pages.title_of.get(claim.doc_id, "")
        text = re.sub(r"\s*\([^()]*\)", "", claim.text).rstrip(".")
        readable = title in pages.by_title and '"' not in text and not _POINTS_BACK.search(text)
        if not readable or len(text.split()) > MAX_WORDS + 6:
            continue
        if (bridge := _ask_stated(text, base_title(title))) is not None:
            value, words = bridge
            fact = Triple(title, STATES, value, claim.doc_id, claim.claim_id)
            found[title].append(_PageFact(fact, words))
    return dict(found)


def _ask_stated(text: str, name: str) -> tuple[str, str] | None:
    """The date or number that a sentence states about the name, and words to ask for it."""
    opening = _DATE_FIRST.match(text)
    body = text[opening.end() :] if opening else text
    own_name = rf"(?<![\w-])(?:[Tt]he )?{re.escape(name)}(?![\w-])(?! [A-Z])"
    slotted, slots = re.subn(own_name, "{}", body)
    if not _STANDS.search(slotted) or slots != 1 or "{" in name:
        return None
    match = opening or _WHEN.search(slotted) or _COUNTED.search(slotted)
    if match is None or (not opening and "{}" in slotted[match.end() :]):
        return None
    value = match["value"]
    when = "when" if " " in value else "in what year"
    if opening:
        words = f"{re.split(r'[,;] ', slotted)[0]} {when}"
    elif match.re is _COUNTED:
        rest = re.split(r"[,;]", slotted[match.end() :])[0]
        words = f"{slotted[: match.start()]} how many{rest}"
    else:
        words = f"{slotted[: match.start()]} {when}"
    fits = "{}" in words and value not in words and 4 <= len(words.split()) <= MAX_WORDS
    return (value, words) if fits else None


_CAPITALIZED = re.compile(
    r"[^\W\d_a-z][\w'’.&-]*"
    r"(?: (?:of|the|and|de|van|von|la|for|in) [^\W\d_a-z][\w'’.&-]*| [^\W\d_a-z\s][\w'’.&-]*)*"
)
_COUNTRY_KEYS = frozenset(title_key(country) for country in NATIONALITIES.values())


def _named_pages(
    text: str, start: int, pages: PageIndex, subject: str
) -> Iterator[tuple[int, str]]:
    """The pages that a text names after this position: position and title of each."""
    for match in _CAPITALIZED.finditer(text, start):
        name = match.group().rstrip(".,'")
        title = pages.find(name)  # all capitalized words in a row: part of a name is another name
        if title is None or title == subject or base_title(title) != title:
            continue
        if re.search(r"(?:&|\band) (?:the )?$", text[: match.start()]):
            continue
        if len(name) > 3 and title_key(name) not in _COUNTRY_KEYS:
            yield match.start(), title


# ------------------------------------------------------------------------------------ intersections


def write_intersection_questions(
    graph: KnowledgeGraph, wording: Wording, *, most: int, seed: int = 42
) -> list[GeneratedQuestion]:
    """Which person named in a document has a fact that only the person's own document states."""
    found: list[GeneratedQuestion] = []
    for subject in seeded_order(graph.subjects, str, seed):
        if len(found) < most and (question := _intersection(subject, graph, wording)) is not None:
            found.append(question)
    return found


def _intersection(
    subject: str, graph: KnowledgeGraph, wording: Wording
) -> GeneratedQuestion | None:
    pages = wording.pages
    cast = graph.edges(subject, "cast")
    known = [(one, graph.only(one.object)) for one in cast if pages.kind(one.object) == "person"]
    births = [(one, facts["birth date"]) for one, facts in known if "birth date" in facts]
    if len(cast) < 2 or not births:
        return None
    edge, fact = births[0]
    match = re.search(r"\d{4}$|^\d{4}", fact.object) or re.search(r"\b\d{4}\b", fact.object)
    noun = pages.by_title[edge.object].noun
    artist = noun in ("actor", "actress", "singer", "comedian", "musician")
    if match is None or not artist or fact.doc_id == edge.doc_id:
        return None
    year = match.group()
    if sum(year in other.object for _, other in births) > 1:
        return None
    ways = (
        f"Which {noun} born in {year} starred in X?",
        f"What {noun}, born in {year}, starred in X?",
    )
    text = wording.pick(ways, subject).replace("X", wording.name(subject))
    paths = (ReasoningPath((edge,)), ReasoningPath((fact,)))
    return make_question(text, base_title(edge.object), "intersection", paths)
