"""Forms that describe instead of naming: a sentence in which a page is left out, and a fact of that page.

    intersection   Which American actor born in 1951 starred in film A?
    bridge         Glassland is a 2014 drama film directed by a person who was born in what year?
                   The birthplace of Jerry Weiss elected its first mayor in what year?

A bridge needs no known relation: any claim that names another page will do, and any claim of that page that ends in a date,
since the question repeats their words. That is how a corpus that few patterns know gives questions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suffice.benchmark.chain_questions import Wording, make_question_id
from suffice.benchmark.knowledge_graph import KnowledgeGraph, seeded_order
from suffice.benchmark.relation_patterns import RELATIONS
from suffice.benchmark.stage_protocols import Claim, GeneratedQuestion, ReasoningPath, Triple
from suffice.benchmark.triples import PageIndex
from suffice.benchmark.vocabulary import NATIONALITIES, base_title
from suffice.text import title_key

__all__ = ["MENTIONS", "write_bridge_questions", "write_intersection_questions"]

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
class _PageFact:
    """What is asked of a page that the question does not name: a fact, and words with a slot for whatever names the page."""

    fact: Triple
    words: str  # "{} elected its first mayor in what year"; without a slot it follows a noun: "born when"

    @property
    def clause(self) -> str:
        """The words behind "that", where the page is their subject; "" where it is not."""
        return (
            self.words.removeprefix("{} ")
            if self.words.startswith("{} ") and self.words.count("{}") == 1
            else ""
        )


def write_bridge_questions(
    claims: Sequence[Claim],
    graph: KnowledgeGraph,
    paths: Sequence[ReasoningPath],
    titles: PageIndex,
    wording: Wording,
    *,
    most: int,
    seed: int = 42,
) -> list[GeneratedQuestion]:
    """At most so many claims with a page left out, and so many phrases of each length for a page; a fact of it is asked."""
    tails = _tails(claims, titles)
    made: list[GeneratedQuestion] = []
    for claim in seeded_order(claims, lambda claim: claim.claim_id, seed):
        if len(made) >= most:
            break
        made += _left_out(claim, graph, tails, titles, wording)
    ways: dict[int, list[ReasoningPath]] = defaultdict(list)
    for subject in graph.subjects:
        ways[1] += [ReasoningPath((triple,)) for triple in graph.only(subject).values()]
    for path in paths:
        ways[len(path.triples)].append(path)
    for length in sorted(ways):
        made += _described(ways[length], tails, wording, most=most, seed=seed)
    return made


MAX_PER_PAGE = 6  # a page may be asked about, so that no country takes the whole benchmark


def _described(
    ways: Sequence[ReasoningPath],
    tails: dict[str, list[_PageFact]],
    wording: Wording,
    *,
    most: int,
    seed: int,
) -> list[GeneratedQuestion]:
    """ "The birthplace of X elected its first mayor in what year?": relations lead to the page, a claim of its own asks."""
    made: list[GeneratedQuestion] = []
    often: Counter[str] = Counter()
    fitting = [
        way
        for way in ways
        if way.triples[-1].object in tails and all(_sayable(one) for one in way.triples)
    ]
    for way in seeded_order(fitting, lambda way: f"described {way.ends}", seed):
        start, end = way.ends
        asked = tails[end][often[end] % len(tails[end])]
        if often[end] >= MAX_PER_PAGE * len(tails[end]) or asked.fact.doc_id in way.doc_ids:
            continue
        often[end] += 1
        text = asked.words.replace("{}", wording.phrase(way.triples, start))
        path = ReasoningPath((*way.triples, asked.fact))
        text = f"{text[0].upper()}{text[1:]}?"
        made.append(
            GeneratedQuestion(
                make_question_id(text),
                text,
                asked.fact.object,
                "bridge",
                len(path.triples),
                (path,),
                path.doc_ids,
            )
        )
        if len(made) == most:
            break
    return made


def _sayable(triple: Triple) -> bool:
    return triple.relation in RELATIONS and bool(RELATIONS[triple.relation].of)


def _left_out(
    claim: Claim,
    graph: KnowledgeGraph,
    tails: dict[str, list[_PageFact]],
    titles: PageIndex,
    wording: Wording,
) -> Iterator[GeneratedQuestion]:
    title = claim.subject or titles.title_of.get(claim.doc_id, "")
    name = base_title(title)
    text = re.sub(r"\s*\([^()]*\)", "", claim.text)
    own = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) if name else None
    if own is None or _POINTS.search(text):
        return
    for at, other in _named_pages(text, own.end(), titles, title):
        before, noun = text[:at], _noun(other, titles)
        fits = (
            noun
            and len(before.split()) <= MOST_WORDS
            and '"' not in before
            and _LEADS.search(before)
        )
        asked = [
            one
            for one in _asked_of(other, graph, tails, wording)
            if one.fact.doc_id != claim.doc_id
        ]
        asked = [one for one in asked if "{}" not in one.words or one.clause]
        if (
            not asked
            or not fits
            or (titles.kind(other) == "place" and re.search(r"\b(?:at|for|by) (?:the )?$", before))
        ):
            continue
        one = asked[
            int(
                wording.pick(
                    [str(place) for place in range(len(asked))], f"{claim.claim_id} {other}"
                )
            )
        ]
        before = re.sub(r"\b(?:the|an?) $", "", before)
        link = ("who " if titles.kind(other) == "person" else "that ") if one.clause else ""
        said = before.replace(name, wording.name(title, kind_word=False), 1)
        question = (
            f"{said}{'an' if noun[0] in 'aeiou' else 'a'} {noun} {link}{one.clause or one.words}?"
        )
        if base_title(other) in question:  # named twice
            continue
        path = ReasoningPath(
            (Triple(title, MENTIONS, other, claim.doc_id, claim.claim_id), one.fact)
        )
        yield GeneratedQuestion(
            make_question_id(question),
            question,
            base_title(one.fact.object),
            "bridge",
            2,
            (path,),
            path.doc_ids,
        )
        return


_LEADS = re.compile(
    r"\b(?:by|in|at|for|with|to|on|from|of|into|against|under|and|near|during|the|around|across) $"
)
# Last words of titles that say what the title's bearer is: "the American Civil War" is a war.
_TITLE_NOUNS = frozenset(
    "war battle league cup party empire river sea ocean award prize treaty act festival tournament championship agreement "
    "church dynasty revolution congress parliament army navy government constitution language museum university college "
    "school company club band album film series county city island islands mountains lake bridge airport station street "
    "house palace hotel stadium association federation union organization committee council court bank corporation".split()
)


def _noun(title: str, titles: PageIndex) -> str:
    """What a page's bearer is, in a word: by its first sentence, else by the last word of its title."""
    page = titles.page[title]
    if page.noun:
        return (
            "person"
            if page.kind == "person" and page.noun in ("son", "daughter", "wife", "member")
            else page.noun
        )
    last = title.split()[-1].casefold()
    return last if last in _TITLE_NOUNS else "person" if page.kind == "person" else ""


def _asked_of(
    title: str, graph: KnowledgeGraph, tails: dict[str, list[_PageFact]], wording: Wording
) -> list[_PageFact]:
    known = [
        _PageFact(fact, wording.pick(_ASKED[relation], f"{title} {relation}").rstrip("?"))
        for relation, fact in sorted(graph.only(title).items())
        if relation in _ASKED
    ]
    return known + tails.get(title, [])


STATES = "states"  # the relation of a page to the date or number that one of its own claims tells
_DATE = r"(?:\d{1,2} )?(?:[A-Z][a-z]{2,8} )?(?:\d{1,2}, )?[12]\d{3}"
_WHEN = re.compile(
    rf" (?:in|on|since|until|by) (?P<told>{_DATE})(?=[.,;]|$| and | when | by | with | to | after )"
)
_SAID_FIRST = re.compile(rf"(?:In|On|Since|By) (?P<told>{_DATE}), ")
_COUNTED = re.compile(
    r" (?P<told>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)? (?:million|billion|percent)|\d+%)(?= [a-z]|[.,]|$)"
)


def _tails(claims: Sequence[Claim], titles: PageIndex) -> dict[str, list[_PageFact]]:
    """What the claims of a page's own documents tell of it: title -> what can be asked, with a slot for the page."""
    found: dict[str, list[_PageFact]] = defaultdict(list)
    for claim in claims:
        title = claim.subject or titles.title_of.get(claim.doc_id, "")
        name = base_title(title)
        text = re.sub(r"\s*\([^()]*\)", "", claim.text).rstrip(".")
        if (
            title not in titles.page
            or '"' in text
            or len(text.split()) > MOST_WORDS + 6
            or _POINTS.search(text)
        ):
            continue
        said = _SAID_FIRST.match(text)
        body = text[said.end() :] if said else text
        slotted, slots = re.subn(
            rf"(?<![\w-])(?:[Tt]he )?{re.escape(name)}(?![\w-])(?! [A-Z])", "{}", body
        )
        if not _STANDS.search(slotted):
            continue
        asked = said or _WHEN.search(slotted) or _COUNTED.search(slotted)
        if (
            slots != 1
            or asked is None
            or "{" in name
            or (slotted[asked.end() :].count("{}") and not said)
        ):
            continue
        told = asked["told"]
        if said:
            words = f"{re.split(r'[,;] ', slotted)[0]} {'when' if ' ' in told else 'in what year'}"
        else:
            how = "how many" if asked.re is _COUNTED else "when" if " " in told else "in what year"
            tail = re.split(r"[,;]", slotted[asked.end() :])[0] if asked.re is _COUNTED else ""
            words = f"{slotted[: asked.start()]} {how}{tail}"
        if "{}" in words and told not in words and 4 <= len(words.split()) <= MOST_WORDS:
            found[title].append(
                _PageFact(Triple(title, STATES, told, claim.doc_id, claim.claim_id), words)
            )
    return dict(found)


# The page's name stands by itself, not before a noun ("a Chicago theater") or inside a name.
_STANDS = re.compile(
    r"(?:^|\b(?:in|of|at|from|to|by|with|for|against|near|into|across|between|within|that|and|when|where) )\{\}"
    r"(?=$|[.,;]| (?:is|was|were|are|has|had|in|on|by|and|with|to|at|from|since|between|during|became|did|became|[a-z]+ed)\b)"
)
# A sentence that leans on the one before it cannot be asked about.
_POINTS = re.compile(
    r"^(?:This|These|That|Those|However|Although|But|And|Also|Then|They|He|She|It|Its|His|Her|Their|Such|Another)\b"
    r"|\b(?:this|these|former|latter|same year)\b"
)


_RUN = re.compile(
    r"[^\W\d_a-z][\w'’.&-]*(?: (?:of|the|and|de|van|von|la|for|in) [^\W\d_a-z][\w'’.&-]*| [^\W\d_a-z\s][\w'’.&-]*)*"
)


def _named_pages(
    text: str, start: int, titles: PageIndex, subject: str
) -> Iterator[tuple[int, str]]:
    """The pages that a text names from here on: where, and their titles."""
    for match in _RUN.finditer(text, start):
        shown = match.group().rstrip(".,'")
        title = titles.named(
            shown, ""
        )  # the whole run of capitals: a part of a name is another name
        if (
            title is None
            or title == subject
            or base_title(title) != title
            or re.search(r"(?:&|\band) (?:the )?$", text[: match.start()])
        ):
            continue
        if len(shown) > 3 and title_key(shown) not in _PLAIN:
            yield match.start(), title


_PLAIN = frozenset(title_key(country) for country in NATIONALITIES.values())


def write_intersection_questions(
    graph: KnowledgeGraph, titles: PageIndex, wording: Wording, *, most: int, seed: int = 42
) -> list[GeneratedQuestion]:
    """Who of those a document names has a fact that only their own document tells."""
    made: list[GeneratedQuestion] = []
    for subject in seeded_order(graph.subjects, str, seed):
        cast = graph.edges(subject, "cast")
        known = [
            (edge, graph.only(edge.object)) for edge in cast if titles.kind(edge.object) == "person"
        ]
        years = [(edge, facts["birth date"]) for edge, facts in known if "birth date" in facts]
        if len(cast) < 2 or not years:
            continue
        edge, fact = years[0]
        year = re.search(r"\d{4}$|^\d{4}", fact.object) or re.search(r"\b\d{4}\b", fact.object)
        noun = titles.page[edge.object].noun
        if (
            year is None
            or noun not in ("actor", "actress", "singer", "comedian", "musician")
            or fact.doc_id == edge.doc_id
        ):
            continue
        if sum(year.group() in other.object for _, other in years) > 1:
            continue
        article = wording.pick(
            (
                f"Which {noun} born in {year.group()} starred in X?",
                f"What {noun}, born in {year.group()}, starred in X?",
            ),
            subject,
        )
        text = article.replace("X", wording.name(subject))
        paths = (ReasoningPath((edge,)), ReasoningPath((fact,)))
        made.append(
            GeneratedQuestion(
                make_question_id(text),
                text,
                base_title(edge.object),
                "intersection",
                2,
                paths,
                (edge.doc_id, fact.doc_id),
            )
        )
        if len(made) == most:
            break
    return made
