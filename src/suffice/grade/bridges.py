"""Forms that describe instead of naming: a sentence in which a page is left out, and a fact of that page.

    intersection   Which American actor born in 1951 starred in film A?
    bridge         Glassland is a 2014 drama film directed by a person who was born in what year?
                   The birthplace of Jerry Weiss elected its first mayor in what year?

A bridge needs no known relation: any claim that names another page will do, and any claim of that page that ends in a date,
since the question repeats their words. That is how a corpus that few patterns know gives questions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suffice.grade.knowledge import Graph
from suffice.grade.paths import drawn
from suffice.grade.ports import Claim, Made, Path, Triple
from suffice.grade.questions import Wording, question_id_of
from suffice.grade.relations import RELATIONS
from suffice.grade.triples import Titles
from suffice.grade.vocabulary import NATIONALITIES, bare
from suffice.text import key_words, title_key

__all__ = ["MENTIONS", "bridges", "intersections"]

MENTIONS = "mentions"  # the relation of a claim to a page that it names
MOST_WORDS = 28

# relation of the page that was left out -> what is asked of it
_ASKED: dict[str, tuple[str, ...]] = {
    "birth date": ("who was born on what date?", "born when?"),
    "death date": ("who died on what date?", "who died when?"),
    "birth place": ("who was born in what place?", "born where?"),
    "death place": ("who died in what place?",),
    "nationality": ("of what nationality?", "who is from which country?"),
    "director": ("directed by whom?", "directed by which filmmaker?"),
    "performer": ("by what artist?", "performed by whom?"),
    "author": ("written by whom?", "written by which author?"),
    "release date": ("released when?", "released in what year?"),
    "located in": ("located in what place?", "located where?"),
    "country": ("located in what country?",),
    "founded": ("founded when?", "established in what year?"),
    "headquarters": ("based in what city?", "based where?"),
    "founder": ("founded by whom?",),
    "school": ("who attended what school?",),
    "owner": ("owned by whom?",),
    "label": ("released by what record label?",),
    "father": ("who is the child of whom?",),
    "network": ("that aired on what network?",),
    "developer": ("developed by what company?",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of a page that the question does not name: a fact of it, and the words that ask for it."""

    fact: Triple
    words: str  # "born when", "elected its first mayor in what year"
    clause: bool  # whether the words begin with a verb and need "that" before them


def bridges(
    claims: Sequence[Claim], graph: Graph, titles: Titles, wording: Wording, *, most: int, seed: int = 42
) -> list[Made]:
    """Half of them claims with a page left out, half of them phrases for a page; each with a fact of the page asked for."""
    tails = _tails(claims, titles)
    made: list[Made] = []
    for claim in drawn(claims, lambda claim: claim.claim_id, seed):
        if len(made) >= most:
            break
        made += _left_out(claim, graph, tails, titles, wording)
    return made[:most] + _described(graph, tails, wording, most=most, seed=seed)


def _described(graph: Graph, tails: dict[str, list[_Asked]], wording: Wording, *, most: int, seed: int) -> list[Made]:
    """ "The birthplace of X elected its first mayor in what year?": a relation leads to the page, its own claim asks."""
    made: list[Made] = []
    for subject in drawn(graph.subjects, lambda name: f"described {name}", seed):
        for relation, triple in graph.only(subject).items():
            fitting = [one for one in tails.get(triple.object, ()) if one.clause and one.fact.doc_id != triple.doc_id]
            if not fitting or relation not in RELATIONS or not RELATIONS[relation].of:
                continue
            asked = fitting[int.from_bytes(f"{subject}{seed}".encode()[-3:], "big") % len(fitting)]
            phrase = wording.phrase((triple,), subject)
            text = f"{phrase[0].upper()}{phrase[1:]} {asked.words}?"
            path = Path((triple, asked.fact))
            made.append(Made(question_id_of(text), text, bare(asked.fact.object), "bridge", 2, (path,), path.doc_ids))
        if len(made) >= most:
            break
    return made[:most]


def _left_out(claim: Claim, graph: Graph, tails: dict[str, list[_Asked]], titles: Titles, wording: Wording) -> Iterator[Made]:
    name = bare(claim.subject)
    if not claim.subject or not claim.text.startswith(name):
        return
    text = re.sub(r"\s*\([^()]*\)", "", claim.text)
    for shown, title in _named_pages(text, titles, claim.subject):
        page, before = titles.page[title], text[: text.index(shown, len(name))]
        asked = [one for one in _asked_of(title, graph, tails, wording) if one.fact.doc_id != claim.doc_id]
        fits = (
            page.noun and len(before.split()) <= MOST_WORDS and '"' not in before and before[len(name) : len(name) + 1] == " "
        )
        if (
            not asked
            or not fits
            or not re.search(r"\b(?:by|in|at|for|with|to|on|from|of|into|against|under|and|the|near) $", before)
        ):
            continue
        one = asked[int(wording.pick([str(at) for at in range(len(asked))], f"{claim.claim_id} {title}"))]
        noun = "person" if page.kind == "person" and page.noun in ("son", "daughter", "wife", "member") else page.noun
        before = re.sub(r"\b(?:the|an?) $", "", before)
        link = ("who " if page.kind == "person" else "that ") if one.clause else ""
        shown_name = wording.name(claim.subject, kind_word=False)
        text = f"{shown_name}{before[len(name) :]}{'an' if noun[0] in 'aeiou' else 'a'} {noun} {link}{one.words}?"
        path = Path((Triple(claim.subject, MENTIONS, title, claim.doc_id, claim.claim_id), one.fact))
        yield Made(question_id_of(text), text, bare(one.fact.object), "bridge", 2, (path,), path.doc_ids)
        return


def _asked_of(title: str, graph: Graph, tails: dict[str, list[_Asked]], wording: Wording) -> list[_Asked]:
    known = [
        _Asked(fact, wording.pick(_ASKED[relation], f"{title} {relation}").rstrip("?"), clause=False)
        for relation, fact in sorted(graph.only(title).items())
        if relation in _ASKED
    ]
    return known + tails.get(title, [])


STATES = "states"  # the relation of a page to what one of its own claims ends with
_WHEN = re.compile(
    r" (?:in|on|since|until|by|from) (?P<date>(?:\d{1,2} )?(?:[A-Z][a-z]{2,8} )?(?:\d{1,2}, )?[12]\d{3})(?=[.,;]|$| and | when )"
)
_SAID_FIRST = re.compile(r"(?:In|On|Since|By) (?P<date>(?:\d{1,2} )?(?:[A-Z][a-z]{2,8} )?(?:\d{1,2}, )?[12]\d{3}), ")


def _tails(claims: Sequence[Claim], titles: Titles) -> dict[str, list[_Asked]]:
    """What each page's own claims say of it that ends in a date or in another page: subject -> what can be asked."""
    found: dict[str, list[_Asked]] = defaultdict(list)
    for claim in claims:
        name = bare(claim.subject)
        text = re.sub(r"\s*\([^()]*\)", "", claim.text)
        said = _SAID_FIRST.match(text)
        body = text[said.end() :] if said else text
        if not claim.subject or not body.startswith(name + " ") or '"' in body or claim.subject not in titles.page:
            continue
        words = re.split(r"[,;](?= )|\.$", body[len(name) + 1 :])[0].strip()
        if said and words and not re.search(r"\d", words) and re.match(r"[a-z]", words) and len(words.split()) <= 20:
            fact = Triple(claim.subject, STATES, said["date"], claim.doc_id, claim.claim_id)
            found[claim.subject].append(_Asked(fact, f"{words} in what year", clause=True))
        elif (when := _WHEN.search(body)) and re.match(r"[a-z]", body[len(name) + 1 :]) and "," not in body[: when.start()]:
            words = body[len(name) + 1 : when.start()]
            if 1 < len(words.split()) <= 20 and not re.search(r"\d{4}", words):
                fact = Triple(claim.subject, STATES, when["date"], claim.doc_id, claim.claim_id)
                found[claim.subject].append(
                    _Asked(fact, f"{words} {'when' if ' ' in when['date'] else 'in what year'}", clause=True)
                )
    return dict(found)


_RUN = re.compile(
    r"[^\W\d_a-z][\w'’.&-]*(?: (?:of|the|and|de|van|von|la|for|in) [^\W\d_a-z][\w'’.&-]*| [^\W\d_a-z\s][\w'’.&-]*)*"
)


def _named_pages(text: str, titles: Titles, subject: str) -> Iterator[tuple[str, str]]:
    """The pages that a claim names behind its subject, as written, the longest name at each place."""
    for match in _RUN.finditer(text, len(bare(subject))):
        shown = match.group().rstrip(".,'")
        title = titles.named(shown, "")  # the whole run of capitals: a part of a name is another name
        if title is None or title == subject or bare(title) != title or text[match.start() - 2 : match.start() - 1] == "&":
            continue
        if len(key_words(shown)) > 1 and title_key(shown) not in _PLAIN:
            yield shown, title


_PLAIN = frozenset(title_key(country) for country in NATIONALITIES.values())


def intersections(graph: Graph, titles: Titles, wording: Wording, *, most: int, seed: int = 42) -> list[Made]:
    """Who of those a document names has a fact that only their own document tells."""
    made: list[Made] = []
    for subject in drawn(graph.subjects, str, seed):
        cast = graph.edges(subject, "cast")
        known = [(edge, graph.only(edge.object)) for edge in cast if titles.kind(edge.object) == "person"]
        years = [(edge, facts["birth date"]) for edge, facts in known if "birth date" in facts]
        if len(cast) < 2 or not years:
            continue
        edge, fact = years[0]
        year = re.search(r"\d{4}$|^\d{4}", fact.object) or re.search(r"\b\d{4}\b", fact.object)
        noun = titles.page[edge.object].noun
        if year is None or noun not in ("actor", "actress", "singer", "comedian", "musician") or fact.doc_id == edge.doc_id:
            continue
        if sum(year.group() in other.object for _, other in years) > 1:
            continue
        article = wording.pick(
            (f"Which {noun} born in {year.group()} starred in X?", f"What {noun}, born in {year.group()}, starred in X?"),
            subject,
        )
        text = article.replace("X", wording.name(subject))
        paths = (Path((edge,)), Path((fact,)))
        made.append(Made(question_id_of(text), text, bare(edge.object), "intersection", 2, paths, (edge.doc_id, fact.doc_id)))
        if len(made) == most:
            break
    return made
