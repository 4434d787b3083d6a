"""Forms that describe instead of naming: a sentence in which a page is left out, and a fact of that page.

    intersection   Which American actor born in 1951 starred in film A?
    bridge         Glassland is a 2014 drama film directed by a person who was born in what year?

The bridge needs no relation between the two pages: any claim that names another page will do, since the question repeats the
claim. That is how a corpus that no pattern knows gives questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from suffice.grade.knowledge import Graph
from suffice.grade.paths import drawn
from suffice.grade.ports import Claim, Made, Path, Triple
from suffice.grade.questions import Wording, question_id_of
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


def bridges(
    claims: Sequence[Claim], graph: Graph, titles: Titles, wording: Wording, *, most: int, seed: int = 42
) -> list[Made]:
    """Claims with one of the pages they name left out, and a fact of that page asked for."""
    made: list[Made] = []
    for claim in drawn(claims, lambda claim: claim.claim_id, seed):
        if len(made) >= most:
            break
        made += _bridged(claim, graph, titles, wording)
    return made[:most]


def _bridged(claim: Claim, graph: Graph, titles: Titles, wording: Wording) -> Iterator[Made]:
    name = bare(claim.subject)
    if not claim.subject or not claim.text.startswith(name) or "(" in claim.text[: len(name) + 2]:
        return
    text = re.sub(r"\s*\([^()]*\)", "", claim.text)
    for shown, title in _named_pages(text, titles, claim.subject):
        page, facts = titles.page[title], graph.only(title)
        asked = sorted(relation for relation in facts if relation in _ASKED)
        before = text[: text.index(shown)]
        if not asked or not page.noun or len(before.split()) > MOST_WORDS or '"' in before:
            continue
        relation = wording.pick(asked, f"{claim.claim_id} {title}")
        fact = facts[relation]
        if fact.doc_id == claim.doc_id:
            continue
        noun = "person" if page.kind == "person" and page.noun in ("son", "daughter", "wife", "member") else page.noun
        article = "an" if noun[0] in "aeiou" else "a"
        before = re.sub(r"\b(?:the|an?) $", "", before) if not before.endswith("of the ") else before
        ask = wording.pick(_ASKED[relation], f"{claim.claim_id} {relation}")
        question = f"{wording.name(claim.subject, kind_word=False)}{before[len(name) :]}{article} {noun} {ask}"
        mention = Triple(claim.subject, MENTIONS, title, claim.doc_id, claim.claim_id)
        path = Path((mention, fact))
        yield Made(question_id_of(question), question, bare(fact.object), "bridge", 2, (path,), path.doc_ids)
        return


_RUN = re.compile(
    r"[^\W\d_a-z][\w'’.&-]*(?: (?:of|the|and|de|van|von|la|for|in) [^\W\d_a-z][\w'’.&-]*| [^\W\d_a-z\s][\w'’.&-]*)*"
)


def _named_pages(text: str, titles: Titles, subject: str) -> Iterator[tuple[str, str]]:
    """The pages that a claim names behind its subject, as written, the longest name at each place."""
    for match in _RUN.finditer(text, len(bare(subject))):
        words = match.group().rstrip(".,'").split()
        for length in range(len(words), 0, -1):
            shown = " ".join(words[:length])
            title = titles.named(shown, "")
            if (
                title
                and title != subject
                and bare(title) == title
                and len(key_words(shown)) > 1
                and title_key(shown) not in _PLAIN
            ):
                yield shown, title
                break


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
