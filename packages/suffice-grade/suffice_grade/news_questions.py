"""Questions across outlets: who did or said what according to whom, and which report came first.

    across       Which company, according to The Herald, bought Plover and, as The Post says, ...?
    comparison   Did The Herald report that Kestrel bought Plover, while The Post quoted Ann Holt as
                 saying "..."?
    temporal     Did The Herald report that Kestrel bought Plover before The Post reported that ...?
                 Did The Herald publish "Port to close" before The Post published "Port sold"?
    single       According to The Herald, who said that the port will close?

They need documents with a `source`, and for the order a `published_at`. A question across outlets
asks about everything it repeats: its evidence is complete only with every report.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

from suffice.lexicon import FUNCTION_WORDS, MONTHS, WEEKDAYS
from suffice.text import names, title_key
from suffice.types import DocId, Document
from suffice_grade.chain_questions import Wording, make_question
from suffice_grade.claims import PageIndex, full_names
from suffice_grade.clarity import is_full_name
from suffice_grade.fact_questions import Facts, fact_key, pick_questions
from suffice_grade.inflection import is_past, is_third_person, past_tense
from suffice_grade.knowledge_graph import seeded_order
from suffice_grade.open_relations import SAID, kind_of
from suffice_grade.relation_words import clause_of
from suffice_grade.stage_protocols import Claim, GeneratedQuestion, ReasoningPath, Triple
from suffice_grade.terms import CorpusTerms
from suffice_grade.validation import REPORTED
from suffice_grade.vocabulary import COUNTRIES, FIRST_NAMES, NATIONALITIES, base_title, names_at

MAX_CLAIM_WORDS = 30
MAX_PARTNERS = 4  # facts of the same subject paired with each fact
MAX_REPORTS, MIN_REPORT_WORDS, MAX_REPORT_WORDS = 4, 6, 26
MAX_TOPIC_SHARE = 0.1  # of the reports: a word in more of them is no topic
MAX_SAME_TOPIC = 30  # headlines with a word; two such words make two headlines comparable
MIN_SAME_TOPIC = 2
MAX_NUMBERS = 2  # more numbers are a live score
NO_NAMES = frozenset((*MONTHS, *WEEKDAYS, *NATIONALITIES))
_LONG = re.compile(r"\b[a-z]{5,}\b")
_AUXILIARIES = frozenset("is was are were has have had will".split())
_SPEECH = frozenset("said says told tells added adds noted notes explained explains".split())
_OF_COMPANIES = frozenset(
    ("CEO", "CTO", "CFO", "COO", "founder", "co-founder", "cofounder", "chief executive", "chair")
)
# Words whose reference is lost when the sentence stands alone.
_UNCLEAR = re.compile(
    r"\b(?:I|we|you|this|these|those|they|them|here|there|however|former|latter|another|others|"
    r"instead|as well|then|said|says|told|above|below|same|it|aforementioned|yesterday|today|"
    r"tomorrow)\b"
    r"|n['’]t\b|[\"“”;:()\[\]�…*|]|\. |--|—|–",
    re.IGNORECASE,
)


# "last week", "the game": it depends on the article's day and on what it said before.
_ELSEWHERE = re.compile(
    r"\b(?:last|next) (?:night|week|weekend|month|year|season|summer|winter|spring|autumn|fall)\b|"
    r"\bthe (?:game|match|fight|system|device|deal|site|event|show|trial|lawsuit|report|study)"
    r"(?! (?:of|between|against|that|by)\b)|"
    r", (?:and|but) (?:[A-Z]|he |she |the )|"  # "walked off, and Mark Cohen talked to her"
    r"\bin the \d+\w\w minute\b|"
    r" and (?:[A-Z][\w’'-]+ )+(?:\w+ed|came|cut|went|took|made|got|gave|ran|won|lost|hit|is|was|"
    r"has|had|will)\b"
)
_LIVE = re.compile(r"\blive\b", re.IGNORECASE)  # a report of moments: "sinks his first attempt"
_PRONOUN = re.compile(r"\b(?:he|she|his|her|him|himself|herself)\b", re.IGNORECASE)
_YEAR = re.compile(r"\b[12]\d{3}\b")
_DANGLING = re.compile(r"(?:it|this|that|these|those|he|she|they|so|and|but|or)\b['’]?", re.I)
MIN_QUOTE_WORDS = 7
MIN_FREE_QUOTE_WORDS = 10  # of a quotation without a name
_WEEKDAY = re.compile(rf",? on (?:{'|'.join(WEEKDAYS)})$")  # unclear which week
# "will cut 400 jobs, its chief executive announced": not the outlet's own words.
_ATTRIBUTED = re.compile(r", [^,]+ (?:announced|reported|confirmed|claimed|argued|wrote)$")


def write_news_questions(
    facts: Facts, claims: Sequence[Claim], documents: Sequence[Document], *, most: int
) -> list[GeneratedQuestion]:
    """Up to `most` questions of each form."""
    by_id = {one.doc_id: one for one in documents if one.source}
    wording = facts.wording
    told = [
        one
        for subject in facts.graph.subjects
        for one in facts.graph.of_subject(subject)
        if one.doc_id in by_id
    ]
    said = facts.spread(
        [one for one in told if one.relation == SAID and _said_once(one, facts)],
        lambda one: by_id[one.doc_id].source or "",
        fact_key,
    )
    found = pick_questions(most // 2, (_speaker(one, by_id[one.doc_id], wording) for one in said))
    pairs = list(_pairs([one for one in told if _clause(one, wording)], by_id))
    for write in (_across, _which_first):
        order = facts.spread(pairs, lambda pair: pair[0].subject, lambda pair: fact_key(pair[0]))
        found += pick_questions(most, (write(*pair, by_id, facts) for pair in order))
    reports = _Reports(claims, by_id, facts)
    found += _who_questions(reports, by_id, facts, most)
    statements = _statements(reports, by_id, facts)
    found += _both_questions(statements, reports, by_id, facts, most)
    articles = facts.spread(
        _article_pairs(by_id.values(), wording.pages), lambda pair: pair[0].source or "", _ids
    )
    clauses = {one.doc_id: (one, it) for one, it in statements.items()}
    return found + pick_questions(
        most // 2, (_article_order(*pair, clauses, wording) for pair in articles)
    )


def _said_once(triple: Triple, facts: Facts) -> bool:
    return len(facts.subjects_with[SAID, title_key(triple.object)]) == 1


def _pairs(
    told: Sequence[Triple], by_id: Mapping[DocId, Document]
) -> Iterator[tuple[Triple, Triple]]:
    """Two facts about one subject in two articles, from two outlets if possible."""
    by_subject: dict[str, list[Triple]] = defaultdict(list)
    for one in told:
        by_subject[one.subject].append(one)
    for subject in sorted(by_subject):
        some = by_subject[subject]
        pairs = [
            (a, b)
            for a, b in combinations(some[: 4 * MAX_PARTNERS], 2)
            if a.doc_id != b.doc_id and a.relation != b.relation
        ]
        apart = [
            pair for pair in pairs if by_id[pair[0].doc_id].source != by_id[pair[1].doc_id].source
        ]
        yield from (apart or pairs)[: MAX_PARTNERS * 2]


def _clause(triple: Triple, wording: Wording) -> str:
    if triple.relation == SAID or len(triple.object.split()) > MAX_CLAIM_WORDS:
        return ""
    return clause_of(triple, wording.name(triple.object, kind_word=False))


def _across(
    one: Triple, other: Triple, by_id: Mapping[DocId, Document], facts: Facts
) -> GeneratedQuestion | None:
    wording = facts.wording
    noun = wording.noun(one.subject)
    first, second = by_id[one.doc_id].source, by_id[other.doc_id].source
    another = f"another {second} article" if first == second else second
    a, b = (_clause(triple, wording) for triple in (one, other))
    if not noun:
        return None
    who = "Who" if noun == "person" else f"Which {noun}"
    ways = (
        f"{who}, according to {first}, {a} and, according to {another}, {b}?",
        f"{who} {a}, as {first} reported, and {b}, as {another} reported?",
        f"According to {first}, {who[0].lower()}{who[1:]} {a} and, as {another} reports, also {b}?",
    )
    text = wording.pick(ways, f"{fact_key(one)} {fact_key(other)}")
    paths = (ReasoningPath((one,)), ReasoningPath((other,)))
    return make_question(text, base_title(one.subject), "across", paths)


def _which_first(
    one: Triple, other: Triple, by_id: Mapping[DocId, Document], facts: Facts
) -> GeneratedQuestion | None:
    """The order of two reports by publication date."""
    days = [by_id[triple.doc_id].published_at for triple in (one, other)]
    sources = [by_id[triple.doc_id].source for triple in (one, other)]
    if days[0] is None or days[1] is None or days[0] == days[1] or sources[0] == sources[1]:
        return None
    wording = facts.wording
    name = wording.name(one.subject)
    a, b = (_clause(triple, wording) for triple in (one, other))
    when = wording.pick(("before", "after"), f"when {fact_key(one)} {fact_key(other)}")
    answer = "yes" if (days[0] < days[1]) == (when == "before") else "no"
    text = f"Did {sources[0]} report that {name} {a} {when} {sources[1]} reported that {name} {b}?"
    paths = (ReasoningPath((one,)), ReasoningPath((other,)))
    return make_question(text, answer, "temporal", paths)


_OWN_WORDS = re.compile(r"\b(?:I|we|you|my|our)\b")


def _names_something(said: str) -> bool:
    """Whether a phrase contains a name: "the work would begin in April" does not."""
    return any(not NO_NAMES.intersection(name.split()) for name in names(said))


def _speaker(triple: Triple, document: Document, wording: Wording) -> GeneratedQuestion | None:
    claim = _quotation(triple, wording.pages)
    if claim is None:
        return None
    if claim.direct:
        ways = (
            f'According to {document.source}, who said: "{claim.text}"?',
            f'Who is quoted by {document.source} as saying "{claim.text}"?',
        )
    else:
        ways = (
            f"According to {document.source}, who said that {claim.text}?",
            f"Who said that {claim.text}, according to {document.source}?",
        )
    text = wording.pick(ways, fact_key(triple))
    return make_question(text, base_title(triple.subject), "single", (ReasoningPath((triple,)),))


class _Quotation(NamedTuple):
    text: str
    direct: bool  # in the speaker's words


def _quotation(triple: Triple, pages: PageIndex) -> _Quotation | None:
    """What somebody said, if it is clear who and what."""
    claim = re.sub(r"^that ", "", triple.object.strip(' .,"“”'))
    if not 5 <= len(claim.split()) <= MAX_CLAIM_WORDS or re.search(r"[\"“”?!\[\]�…]|\. ", claim):
        return None
    if is_past(claim.split()[0]) or claim.split()[0] in _AUXILIARIES:
        return None
    if not (" " in triple.subject and is_full_name(triple.subject, pages)):  # "Kelce said"
        return None
    # A quotation is kept as it is; a report can be repeated if it says what it is about.
    reported = triple.phrase.endswith(" that")
    if reported and (_OWN_WORDS.search(claim) or not _names_something(claim)):
        return None
    short = len(claim.split()) < MIN_QUOTE_WORDS
    if not reported and (short or _DANGLING.match(claim)):
        return None
    direct = not reported and (claim[0].isupper() or _OWN_WORDS.search(claim) is not None)
    return _Quotation(claim, direct)


# ------------------------------------------------------------------------- reports about a subject


class _Reports:
    """What sentences say about the names at their start, by name and document."""

    def __init__(
        self, claims: Sequence[Claim], by_id: Mapping[DocId, Document], facts: Facts
    ) -> None:
        terms = facts.wording.pages.terms
        outlets = {one.source or "" for one in by_id.values()}
        self.of: dict[str, dict[DocId, Triple]] = defaultdict(dict)
        self.names_with: dict[str, set[str]] = defaultdict(set)  # what is said -> of whom
        for claim in claims:
            document = by_id.get(claim.doc_id)
            report = _report(claim, document, terms) if document is not None else None
            if report is not None and not any(one in report.subject for one in outlets):
                self.of[report.subject].setdefault(report.doc_id, report)
                self.names_with[report.object].add(report.subject)
        people = {
            last for one in by_id.values() for last in full_names(f"{one.title}. {one.text}", terms)
        }
        self.kinds = {name: _kind(name, it.values(), people, facts) for name, it in self.of.items()}


def _who_questions(
    reports: _Reports, by_id: Mapping[DocId, Document], facts: Facts, most: int
) -> list[GeneratedQuestion]:
    """Questions from sentences about a subject in one to four articles; they ask who it is."""
    kinds = reports.kinds
    every = {
        name: [one for one in reports.of[name].values() if _stands_alone(one, kinds[name])]
        for name in sorted(reports.of)
    }
    found: list[GeneratedQuestion] = []
    for size in range(1, MAX_REPORTS + 1):
        groups = (
            group
            for some in every.values()
            for group in _groups(some, size, by_id, facts.seed)
            if any(len(reports.names_with[one.object]) == 1 for one in group)
        )
        order = facts.spread(
            groups, lambda group: group[0].subject, lambda group: "\0".join(map(fact_key, group))
        )
        found += pick_questions(
            most, (_who_is_it(group, kinds[group[0].subject], by_id, facts) for group in order)
        )
    return found


def _stands_alone(report: Triple, kind: str) -> bool:
    """Whether a report on a name of this kind is clear outside its article."""
    if kind == "person":
        # "Fields had one touchdown"; "Kyle Mayers holds the pose": a moment.
        verb = report.object.partition(" ")[0]
        return " " in report.subject and (verb in _AUXILIARIES or not is_third_person(verb))
    return bool(kind) and _PRONOUN.search(report.object) is None


# ---------------------------------------------------------------------------- two reports at once


class _Statement(NamedTuple):
    """What an outlet says about a name: "quote X as saying", and what."""

    kind: str  # of the name; names of one kind can be confused
    verb: str
    rest: str

    def clause(self, name: str, *, past: bool = False) -> str:
        first, _, rest = self.verb.replace("X", base_title(name)).partition(" ")
        return f"{past_tense(first) if past else first} {rest} {self.rest}"


def _statements(
    reports: _Reports, by_id: Mapping[DocId, Document], facts: Facts
) -> dict[Triple, _Statement]:
    """Reports and quotations that are clear with the name of their subject."""
    found: dict[Triple, _Statement] = {}
    for name, some in reports.of.items():
        kind = "country" if name in COUNTRIES else reports.kinds[name] or "thing"
        for one in some.values():
            if _is_known(name, kind, facts) and _stands_alone(one, kind):
                found[one] = _Statement(kind, "report that X", one.object)
    for subject in facts.graph.subjects:
        for one in facts.graph.of_subject(subject):
            told = one.relation == SAID and one.doc_id in by_id and _said_once(one, facts)
            said = _quotation(one, facts.wording.pages) if told else None
            if said is None or not _is_known(subject, "person", facts):
                continue
            if not said.direct:
                found[one] = _Statement("person", "report that X said that", said.text)
            elif _names_something(said.text) or len(said.text.split()) >= MIN_FREE_QUOTE_WORDS:
                found[one] = _Statement("person", "quote X as saying", f'"{said.text}"')
    return found


def _is_known(name: str, kind: str, facts: Facts) -> bool:
    """Whether readers of another article know what the name means."""
    words = [one.casefold() for one in name.split()]
    if len(words) == 1:
        return kind not in ("thing", "person")
    plain = words[0] in facts.wording.pages.terms.small or words[0].endswith("ing")
    cut = any(one[0].isupper() and one.casefold() in FUNCTION_WORDS for one in name.split())
    return not cut and (words[0] in FIRST_NAMES or not plain)


def _both_questions(
    told: Mapping[Triple, _Statement],
    reports: _Reports,
    by_id: Mapping[DocId, Document],
    facts: Facts,
    most: int,
) -> list[GeneratedQuestion]:
    """Whether two outlets reported two things; if not, the second is said of a wrong name."""
    alike: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for one, statement in told.items():
        alike[by_id[one.doc_id].category or "", statement.kind].setdefault(one.subject)

    def write(one: Triple, other: Triple) -> GeneratedQuestion | None:
        right = {one.subject, *reports.names_with[other.object]}
        wrong = [
            name
            for name in alike[by_id[other.doc_id].category or "", told[other].kind]
            if name not in {*right, other.subject} and name not in told[other].rest
        ]
        return _both_reported(one, other, wrong, told, by_id, facts) if wrong else None

    pairs = _related(told, by_id, facts.seed)
    return pick_questions(most // 2, (write(*pair) for pair in pairs))


def _related(
    told: Mapping[Triple, _Statement], by_id: Mapping[DocId, Document], seed: int
) -> Iterator[tuple[Triple, Triple]]:
    """Statements of two outlets on one topic; those with most words in common first."""
    by_word: dict[tuple[str, str], list[Triple]] = defaultdict(list)
    for one, statement in told.items():
        # A quotation may use any words, so only names tell what it is about.
        said = "" if statement.verb.startswith("quote") else statement.rest
        text = f"{by_id[one.doc_id].title} {statement.rest}"
        named = (name for name in names(text) if f" in {name}" not in text)
        for word in {*_LONG.findall(said), *named} - FUNCTION_WORDS - NO_NAMES:
            by_word[by_id[one.doc_id].category or "", word].append(one)
    # "confirmed" may be in every report.
    most = min(MAX_SAME_TOPIC, max(MIN_SAME_TOPIC, len(told) * MAX_TOPIC_SHARE))
    shared: Counter[tuple[Triple, Triple]] = Counter()
    for key in sorted(by_word):
        if len(by_word[key]) <= most:
            order = seeded_order(by_word[key], lambda one: f"both {fact_key(one)}", seed)
            shared.update(combinations(order, 2))
    for (one, other), _ in shared.most_common():
        apart = by_id[one.doc_id].source != by_id[other.doc_id].source
        if apart and one.subject != other.subject:
            yield one, other


def _both_reported(
    one: Triple,
    other: Triple,
    wrong: Sequence[str],
    told: Mapping[Triple, _Statement],
    by_id: Mapping[DocId, Document],
    facts: Facts,
) -> GeneratedQuestion:
    """ "Did A report that X ..., while B quoted Y as saying ...?" """
    wording = facts.wording
    about = f"both {fact_key(one)} {fact_key(other)}"
    answer = wording.pick(("yes", "no"), about)
    name = other.subject if answer == "yes" else wording.pick(wrong, f"no {about}")
    joint = wording.pick(("while", "and did"), f"joint {about}")
    outlets = [by_id[it.doc_id].source for it in (one, other)]
    second = told[other].clause(name, past=joint == "while")
    text = f"Did {outlets[0]} {told[one].clause(one.subject)}, {joint} {outlets[1]} {second}?"
    paths = (ReasoningPath((one,)), ReasoningPath((other,)))
    return make_question(text, answer, "comparison", paths)


def _groups(
    reports: Sequence[Triple], size: int, by_id: Mapping[DocId, Document], seed: int
) -> Iterator[tuple[Triple, ...]]:
    """Groups of reports from more than one outlet; a few groups per name."""
    order = seeded_order(reports, fact_key, seed)
    for start in range(0, min(len(order), size * MAX_PARTNERS) - size + 1, size):
        group = tuple(order[start : start + size])
        outlets = {by_id[one.doc_id].source for one in group}
        said = {one.object for one in group}
        if len(said) == size and (size == 1 or len(outlets) > 1):
            yield group


def _report(claim: Claim, document: Document, terms: CorpusTerms) -> Triple | None:
    """What a sentence says about the name at its start."""
    opening = names_at(claim.text, 0, commas=False)
    if _LIVE.search(document.title):
        return None
    if len(opening.names) != 1 or _only_opens(opening.names[0], document.text, terms):
        return None
    name, rest = opening.names[0], claim.text[opening.end :].strip()
    words = rest.rstrip(".").split()
    if not MIN_REPORT_WORDS <= len(words) <= MAX_REPORT_WORDS or not _is_finite(words[0]):
        return None
    if len(re.findall(r"\d+", rest)) > MAX_NUMBERS or is_past(name.casefold()):
        return None
    if _UNCLEAR.search(rest) or _ELSEWHERE.search(rest):
        return None
    if name.casefold() in FUNCTION_WORDS or name in NO_NAMES:
        return None
    rest = _WEEKDAY.sub("", rest.rstrip("."))
    if not (_names_something(rest) or re.search(r"\d", rest)) or _ATTRIBUTED.search(rest):
        return None
    rest = re.sub(r"^((?:has|have|had|is|was|are|were|will)) also\b|^also ", r"\1", rest)
    if name.split()[0].casefold() in FUNCTION_WORDS or len(name) < 3 or name in rest:
        return None
    if "sport" in (document.category or "").casefold() and not _YEAR.search(rest):
        return None  # which game is not said
    return Triple(name, REPORTED, rest, claim.doc_id, claim.claim_id, object_kind="thing")


def _only_opens(name: str, text: str, terms: CorpusTerms) -> bool:
    """Whether a word is capitalized only because it starts a sentence: "Hope has been rising"."""
    common = name.casefold() in terms.small and not re.search(rf"[\w,] {re.escape(name)}\b", text)
    return common or name in terms.plurals


def _is_finite(word: str) -> bool:
    return word in _AUXILIARIES or (
        (is_third_person(word) or is_past(word)) and word not in _SPEECH
    )


def _kind(name: str, reports: Iterable[Triple], people: Collection[str], facts: Facts) -> str:
    """Whether a name is a person or an organisation, from all that is known; "" if unclear."""
    noun = facts.wording.noun(name, kind_of(name))
    if noun in ("person", "company", "organisation"):
        return noun
    held = {one.relation for one in facts.graph.of_subject(name)} & _OF_COMPANIES
    if held:
        return "organisation" if held == {"chair"} else "company"
    words = {word for one in reports for word in one.object.split()}
    personal = bool(words & {"his", "her", "he", "she", "himself", "herself"})
    if (personal or name in people) and "its" not in words:
        return "person"
    if re.fullmatch(r"\w*[a-z][A-Z]\w*", name):  # OpenAI, ChatGPT
        return "company or product"
    return "company" if "its" in words and not personal and " " not in name else ""


def _who_is_it(
    group: Sequence[Triple], kind: str, by_id: Mapping[DocId, Document], facts: Facts
) -> GeneratedQuestion | None:
    wording = facts.wording
    sports = any("sport" in (by_id[one.doc_id].category or "").casefold() for one in group)
    kind = "team" if sports and kind == "company" else kind
    who = "Who" if kind == "person" else f"Which {kind}"
    outlets = [str(by_id[one.doc_id].source) for one in group]
    parts = [one.object for one in group]
    about = " ".join(map(fact_key, group))
    if len(group) == 1:
        ways = (
            f"According to {outlets[0]}, {who[0].lower()}{who[1:]} {parts[0]}?",
            f"{who} {parts[0]}, according to {outlets[0]}?",
        )
        text, kind_of_question = wording.pick(ways, about), "single"
    else:
        *first, last = (f"according to {outlet}, {said}" for outlet, said in zip(outlets, parts))
        reported = (f"{said}, as {outlet} reported" for outlet, said in zip(outlets, parts))
        *before, end = reported
        ways = (
            f"{who}, {', '.join(first)} and, {last}?",
            f"{who} {', '.join(before)}, and {end}?",
        )
        text, kind_of_question = wording.pick(ways, about), "across"
    paths = tuple(ReasoningPath((one,)) for one in group)
    return make_question(text, group[0].subject, kind_of_question, paths)


# ---------------------------------------------------------------------- which article came first


def _ids(pair: tuple[Document, Document, str]) -> str:
    return f"{pair[0].doc_id}\0{pair[1].doc_id}"


def _article_pairs(
    documents: Iterable[Document], pages: PageIndex
) -> Iterator[tuple[Document, Document, str]]:
    """Articles of two outlets and days whose titles share a name or two rare words; the name."""
    by_name: dict[str, list[Document]] = defaultdict(list)
    by_word: dict[str, list[Document]] = defaultdict(list)
    dated = [one for one in documents if one.published_at and _is_headline(one.title)]
    for one in dated:
        for name in dict.fromkeys(names(one.title)):
            if _is_topic(name, one.title, pages.terms):
                by_name[name].append(one)
        if "sport" not in (one.category or "").casefold():  # "kings", "points": any match
            for word in set(_LONG.findall(one.title.casefold())) - FUNCTION_WORDS:
                by_word[word].append(one)
    pairs = [(*pair, name) for name in sorted(by_name) for pair in _near(by_name[name])]
    rare = (by_word[word] for word in sorted(by_word) if len(by_word[word]) <= MAX_SAME_TOPIC)
    alike = Counter(pair for some in rare for pair in combinations(some, 2))
    pairs += [
        (one, other, "")
        for (one, other), words in alike.items()
        if words > 1 and one.category == other.category
    ]
    seen: set[frozenset[str]] = set()
    for one, other, name in pairs:
        apart = one.source != other.source and one.published_at != other.published_at
        key = frozenset((one.doc_id, other.doc_id))
        if apart and one.title != other.title and key not in seen:
            seen.add(key)
            yield one, other, name


def _near(articles: Sequence[Document]) -> Iterator[tuple[Document, Document]]:
    """Pairs of articles, a few for each."""
    return chain.from_iterable(zip(articles, articles[at:]) for at in range(1, 2 * MAX_PARTNERS))


def _is_topic(name: str, title: str, terms: CorpusTerms) -> bool:
    """Whether articles can be about this name: not the UK, and not "European" before a noun."""
    common = name.casefold() in terms.small | FIRST_NAMES or name in NO_NAMES | COUNTRIES
    adjective = " " not in name and re.search(rf"\b{re.escape(name)} [a-z]", title) is not None
    return len(name.split()) <= 3 and len(name) > 2 and not common and not adjective


def _is_headline(title: str) -> bool:
    return not re.search(r"[\"|]|&#", title) and 3 <= len(title.split()) <= 20


def _article_order(
    one: Document,
    other: Document,
    name: str,
    told: Mapping[DocId, tuple[Triple, _Statement]],
    wording: Wording,
) -> GeneratedQuestion | None:
    if one.published_at is None or other.published_at is None:
        return None
    about = f"{one.doc_id} {other.doc_id}"
    is_first = one.published_at < other.published_at
    when = wording.pick(("before", "after"), about)
    if not name or wording.pick(("which", "whether"), f"which {about}") == "whether":
        some = [told.get(it.doc_id) for it in (one, other)]
        facts = [it[0] if it else _published(doc) for it, doc in zip(some, (one, other))]
        text = f"Did {_wrote(one, some[0])} {when} {_wrote(other, some[1], past=True)}?"
        answer = "yes" if is_first == (when == "before") else "no"
        paths = tuple(ReasoningPath((it,)) for it in facts)
        return make_question(text, answer, "temporal", paths)
    order = "first" if when == "before" else "last"
    listed = " or ".join(f'{it.source} in "{it.title}"' for it in (one, other))
    chosen = one if is_first == (order == "first") else other
    text = f"Which outlet wrote about {name} {order}, {listed}?"
    paths = tuple(ReasoningPath((_published(it),)) for it in (one, other))
    return make_question(text, chosen.source or "", "temporal", paths)


def _wrote(
    document: Document, told: tuple[Triple, _Statement] | None, *, past: bool = False
) -> str:
    """ "The Ledger quoted Ann Holt as saying ...", or that it published the title."""
    if told is None:
        return f'{document.source} {"published" if past else "publish"} "{document.title}"'
    fact, said = told
    return f"{document.source} {said.clause(fact.subject, past=past)}"


def _published(document: Document) -> Triple:
    day = document.published_at
    written = f"{day.day} {MONTHS[day.month - 1]} {day.year}" if day else ""
    claim_id = f"{document.doc_id}#published"
    return Triple(
        document.title, "publication date", written, document.doc_id, claim_id, object_kind="date"
    )
