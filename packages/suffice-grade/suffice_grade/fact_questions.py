"""Questions about facts in the words of the text: about one document, or two on one subject.

    single         What is the default port of Kestrel?                              one document
    yes_no         Is Team Tern led by Mira Holt?                                    one
                   Is the team that owns the billing service led by Mira Holt?       two
    comparison     Which was released first, Kestrel 2 or Plover 3?                  two
                   Are Kestrel and Plover owned by the same team?                    two
    temporal       Was Kestrel 2 released before Plover 3?                           two
    condition      Who leads the team that is based in Oslo?                         two
    intersection   Which service is owned by Team Tern and depends on Kestrel?       two

Each form draws its facts in turn from all relations, so that frequent relations do not dominate.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, zip_longest
from typing import TypeVar

from suffice.text import title_key, tokens
from suffice_grade.chain_questions import Wording, make_question
from suffice_grade.clarity import (
    fits_what,
    has_one_answer,
    in_context,
    is_clear,
    is_full_name,
    is_listed,
)
from suffice_grade.comparison_questions import date_span
from suffice_grade.knowledge_graph import KnowledgeGraph, seeded_order
from suffice_grade.open_relations import PARSED, is_functional, kind_of
from suffice_grade.relation_words import (
    METADATA,
    OUTLET,
    ask_option,
    clause_of,
    confirm,
)
from suffice_grade.relations import RELATIONS
from suffice_grade.stage_protocols import GeneratedQuestion, ReasoningPath, Triple
from suffice_grade.vocabulary import base_title

T = TypeVar("T")
# Questions per form and document, so that long documents do not dominate; more in a small corpus.
MAX_PER_DOCUMENT, MANY_DOCUMENTS = 3, 600
MAX_PER_SUBJECT = 30  # facts paired with each other, to avoid quadratic growth
MAX_SAME_WORDS = 4  # in a value that two things may share
MIN_COLUMN = 3  # rows with the same value
MAX_VALUE_WORDS = 12  # a longer object is a sentence, not an answer
_NUMBER = re.compile(r"(?P<sign>[$€£¥]?) ?(?P<number>\d+(?:[.,]\d+)*) ?(?P<unit>[A-Za-z%°/ ]*)")


@dataclass(frozen=True)
class Facts:
    """The facts of a graph that questions can ask about: the only one of its relation each."""

    graph: KnowledgeGraph
    wording: Wording
    seed: int = 42

    @cached_property
    def every(self) -> list[Triple]:
        found = (
            triple
            for subject in self.graph.subjects
            for triple in self.graph.only(subject).values()
        )
        pages = self.wording.pages
        clear = [one for one in found if not one.link and _is_short(one) and is_clear(one, pages)]
        columns: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for one in clear:
            columns[one.doc_id, one.relation][one.object] += is_listed(one)
        # "state: done" in every row says nothing about any of them.
        return [
            one
            for one in clear
            if not is_listed(one)
            or len(column := columns[one.doc_id, one.relation]) > 1
            or column.total() < MIN_COLUMN
        ]

    @cached_property
    def documents(self) -> int:
        return len({one.doc_id for one in self.every})

    @cached_property
    def lasting(self) -> list[Triple]:
        """The facts without what somebody did at one moment in an article: "Mira met Jon"."""
        articles = {
            one.doc_id
            for subject in self.graph.subjects
            for one in self.graph.edges(subject, OUTLET)
        }
        return [one for one in self.every if not (one.doc_id in articles and self._is_deed(one))]

    def _is_deed(self, triple: Triple) -> bool:
        if triple.relation.startswith(PARSED):
            return triple.object_kind != "date"
        subject = kind_of(triple.subject, self.wording.pages.kind(triple.subject))
        # A name of unknown kind may be a person's: "Logan Cooke".
        among_people = {subject, triple.object_kind} <= {"person", ""}
        # "Rehan is replaced by Mills" is functional, but for a moment only.
        lasting = is_functional(triple.relation, triple.object_kind) and "by" not in triple.relation
        return among_people and bool(triple.phrase) and not lasting

    @cached_property
    def by_subject(self) -> Mapping[str, list[Triple]]:
        found: dict[str, list[Triple]] = defaultdict(list)
        for one in self.every:
            found[one.subject].append(one)
        return found

    @cached_property
    def subjects_with(self) -> Mapping[tuple[str, str], set[str]]:
        """(relation, object) -> all its subjects, also where the object is not the only one."""
        found: dict[tuple[str, str], set[str]] = defaultdict(set)
        for subject in self.graph.subjects:
            for one in self.graph.of_subject(subject):
                found[one.relation, title_key(one.object)].add(subject)
        return found

    @cached_property
    def objects_of(self) -> Mapping[tuple[str, str, str], list[str]]:
        """(document or "", relation or "", kind) -> known objects, to choose wrong values from."""
        found: dict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
        for one in self.every:
            for place, relation in (("", one.relation), ("", ""), (one.doc_id, one.relation)):
                found[place, relation, one.object_kind].setdefault(one.object)
        return {key: list(values) for key, values in found.items()}

    @cached_property
    def shared(self) -> frozenset[str]:
        """Relations in which several subjects have the same object."""
        return frozenset(
            relation for (relation, _), subjects in self.subjects_with.items() if len(subjects) > 1
        )

    def spread(
        self, items: Iterable[T], group: Callable[[T], str], key: Callable[[T], str]
    ) -> Iterator[T]:
        """The items in a seeded order, taking turns between groups."""
        groups: dict[str, list[T]] = defaultdict(list)
        for item in items:
            groups[group(item)].append(item)
        orders = [seeded_order(groups[name], key, self.seed) for name in sorted(groups)]
        return (one for one in chain.from_iterable(zip_longest(*orders)) if one is not None)


def _is_short(triple: Triple) -> bool:
    return len(triple.object.split()) <= MAX_VALUE_WORDS and len(triple.subject.split()) <= 10


def fact_key(triple: Triple) -> str:
    return f"{triple.subject}\0{triple.relation}\0{triple.object}"


def pick_questions(
    most: int, questions: Iterable[GeneratedQuestion | None], documents: int = MANY_DOCUMENTS
) -> list[GeneratedQuestion]:
    """The first `most` questions, with only a few per document."""
    each = max(MAX_PER_DOCUMENT, -(-MAX_PER_DOCUMENT * MANY_DOCUMENTS // max(documents, 1)))
    found: list[GeneratedQuestion] = []
    used: Counter[str] = Counter()
    for one in questions:
        if len(found) >= most:
            break
        if one is not None and all(used[doc_id] < each for doc_id in one.doc_ids):
            used.update(one.doc_ids)
            found.append(one)
    return found


# ------------------------------------------------------------------------------------ one document


def write_single_questions(facts: Facts, *, most: int) -> list[GeneratedQuestion]:
    """Questions about one fact in one document."""
    order = _rationed(facts.spread(facts.lasting, _group, fact_key), _group, most)
    return pick_questions(most, (_single(one, facts.wording) for one in order), facts.documents)


def _rationed(items: Iterable[T], group: Callable[[T], str], most: int) -> Iterator[T]:
    """At most a quarter from one relation; fewer for metadata, which people rarely ask about."""
    used: Counter[str] = Counter()
    for item in items:
        name = group(item)
        used[name] += 1
        if used[name] <= (most // 5 if name in METADATA else most // 4):
            yield item


def _group(triple: Triple) -> str:
    """The group of a fact; all options of manual pages are one group, as each has its own name.

    A parsed fact has its own relation, so these are grouped by the kind of their answer.
    """
    if triple.relation.startswith(PARSED):
        return f"{PARSED}{triple.object_kind}"
    return triple.relation.split(" -")[0]


def _single(triple: Triple, wording: Wording) -> GeneratedQuestion | None:
    name = _with_the(wording.name(triple.subject))
    text, answer = wording.ask(triple, name), base_title(triple.object)
    option = ask_option(triple, name)
    if option is not None and wording.pick(("what", "which"), fact_key(triple)) == "which":
        text, answer = option
    if not text or not has_one_answer(triple) or not fits_what(text, triple):
        return None
    text = in_context(text, triple, wording.pages)
    return make_question(text, answer, "single", (ReasoningPath((triple,)),))


def _with_the(name: str) -> str:
    """ "the film Salt Orchard" """
    return re.sub(r"^(?=(?:film|song|album|series|game|play|novel|book) [A-Z\d])", "the ", name)


# ------------------------------------------------------------------------------------------ yes/no


def write_yes_no_questions(
    facts: Facts, paths: Sequence[ReasoningPath], *, most: int
) -> list[GeneratedQuestion]:
    """Yes/no questions; for about half the answer is no, and they name another subject's value."""
    one_fact = [ReasoningPath((one,)) for one in facts.lasting if can_confirm(one, facts)]
    two_facts = [
        path for path in paths if len(path.triples) == 2 and has_one_answer(path.triples[-1])
    ]
    found: list[GeneratedQuestion] = []
    for some in (one_fact, two_facts):
        order = facts.spread(some, _last_relation, lambda path: f"yes {path.ends}")
        order = _rationed(order, _last_relation, most)
        found += pick_questions(most, (_yes_no(path, facts) for path in order), facts.documents)
    return found


def can_confirm(fact: Triple, facts: Facts) -> bool:
    """Whether yes or no is certain: "Does X belong to Y?", not "Did the war end in Europe?"."""
    named = " " not in fact.relation and is_full_name(fact.object, facts.wording.pages)
    return named or has_one_answer(fact)


def _last_relation(path: ReasoningPath) -> str:
    return path.triples[-1].relation


def _yes_no(path: ReasoningPath, facts: Facts) -> GeneratedQuestion | None:
    *inner, last = path.triples
    wording = facts.wording
    subject = _with_the(wording.phrase(inner, path.triples[0].subject))
    about = f"{path.ends} {last.relation}"
    value, answer = last.object, wording.pick(("yes", "no"), about)
    if answer == "no":
        place = last.doc_id if is_listed(last) else ""  # values of one table are alike
        alike = facts.objects_of.get((place, last.relation, last.object_kind), ())
        if len(alike) < 2 and last.object_kind == "person" and last.relation not in RELATIONS:
            alike = facts.objects_of.get(("", "", last.object_kind), ())
        noun = wording.noun(value, last.object_kind)
        others = [
            one
            for one in alike
            if not _overlap(one, f"{value} {last.subject}")
            and _shape(one, last.object_kind) == _shape(value, last.object_kind)
            and wording.noun(one, last.object_kind) == noun
        ]
        if not has_one_answer(last):
            return None
        if not noun and last.object_kind in ("", "thing"):  # they may be of different kinds
            return None
        if not others:
            return None
        value = wording.pick(others, f"no {about}")
    text = confirm(last, subject, wording.name(value, kind_word=False)) if subject else ""
    text = text if inner else in_context(text, last, wording.pages)
    return make_question(text, answer, "yes_no", (path,)) if text else None


def _shape(value: str, kind: str) -> object:
    """What two values of a kind have in common: the unit of amounts, the words of a date."""
    return _measure(value) if kind == "amount" else len(value.split()) if kind == "date" else ""


def _overlap(one: str, other: str) -> bool:
    """Whether one of the two may be a rewording of the other."""
    mine, theirs = set(tokens(one)), set(tokens(other))
    return not mine or not theirs or bool(mine & theirs)


# --------------------------------------------------------------------------------------- comparing


def write_fact_comparisons(facts: Facts, *, most: int) -> list[GeneratedQuestion]:
    """Two subjects with the same relation: earlier or later, more or less, the same or not."""
    groups: dict[str, list[Triple]] = defaultdict(list)
    for one in facts.every:
        if one.relation not in RELATIONS:  # known relations have their own forms
            groups[f"{one.relation}\0{one.object_kind}\0{_unit(one)}"].append(one)
    pairs: list[tuple[Triple, Triple]] = []
    for key in sorted(groups):
        some = seeded_order(groups[key], fact_key, facts.seed)
        pairs += zip(some[::2], some[1::2])
    fitting = [(a, b) for a, b in pairs if a.doc_id != b.doc_id and a.subject != b.subject]
    order = facts.spread(fitting, lambda pair: pair[0].relation, lambda pair: fact_key(pair[0]))
    order = _rationed(order, lambda pair: pair[0].relation, most)
    return pick_questions(most, (_compare(*pair, facts) for pair in order))


def _unit(triple: Triple) -> str:
    return _measure(triple.object) if triple.object_kind == "amount" else ""


def _measure(amount: str) -> str:
    match = _NUMBER.fullmatch(amount)
    return f"{match['sign']}{match['unit']}" if match else ""


def _compare(one: Triple, other: Triple, facts: Facts) -> GeneratedQuestion | None:
    wording = facts.wording
    paths = (ReasoningPath((one,)), ReasoningPath((other,)))
    with_kind = one.relation not in METADATA  # "whoami(1)", not "the command whoami"
    names = [wording.name(triple.subject, kind_word=with_kind) for triple in (one, other)]
    about = f"{one.subject} {other.subject} {one.relation}"
    words = wording.words(one)
    kinds = [_kind(it.subject, wording) for it in (one, other)]
    if one.relation not in METADATA and (
        kinds[0] != kinds[1] or not kinds[0]
    ):  # nobody compares a fort and a factory of pianos
        return None
    if words.first:
        spans = [_span(triple) for triple in (one, other)]
        if (
            spans[0] is None
            or spans[1] is None
            or (spans[0][0] <= spans[1][1] and spans[1][0] <= spans[0][1])
        ):
            return None
        is_less = spans[0][1] < spans[1][0]
        if (
            one.object_kind == "date"
            and wording.pick(("which", "which", "whether"), about) == "whether"
        ):
            return _before(one, other, is_less, wording)
        first = wording.pick(("first", "last"), about) == "first"
        text = wording.pick(words.first if first else words.last, about).replace(
            "X", " or ".join(names), 1
        )
        chosen = one if is_less == first else other
        return make_question(text, base_title(chosen.subject), "comparison", paths)
    if one.relation not in facts.shared:  # nobody asks whether two banks share a founder
        return None
    is_same = title_key(one.object) == title_key(other.object)
    if not is_same and _overlap(one.object, other.object):
        return None
    if not words.same or max(len(it.object.split()) for it in (one, other)) > MAX_SAME_WORDS:
        return None
    text = wording.pick(words.same, about).replace("X", " and ".join(names), 1)
    return make_question(text, "yes" if is_same else "no", "comparison", paths)


def _kind(name: str, wording: Wording) -> str:
    """What something is, from its page or name: "person", "library"; "version" of Kestrel 2."""
    known = wording.noun(name, kind_of(name)) or wording.pages.kind(name)
    return known or ("version" if re.search(r" \d[\d.]*$", name) else "")


def _before(
    one: Triple, other: Triple, is_less: bool, wording: Wording
) -> GeneratedQuestion | None:
    """ "Was A released before B?" """
    names = [wording.name(triple.subject) for triple in (one, other)]
    about = f"before {one.subject} {other.subject} {one.relation}"
    when = wording.pick(("before", "after"), about)
    asked = confirm(one, names[0], "").removesuffix("?").strip()
    asked = re.sub(r" (?:on|in|at|since)$", "", asked)
    if not asked or asked.startswith("Is  the"):
        return None
    answer = "yes" if is_less == (when == "before") else "no"
    paths = (ReasoningPath((one,)), ReasoningPath((other,)))
    return make_question(f"{asked} {when} {names[1]}?", answer, "temporal", paths)


def _span(triple: Triple) -> tuple[float, float] | None:
    """The first and last day that a date can mean, or an amount twice."""
    if triple.object_kind == "date":
        return date_span(triple.object)
    match = _NUMBER.fullmatch(triple.object)
    if match is None or match["number"].count(".") > 1:
        return None
    value = float(match["number"].replace(",", ""))
    return value, value


# ------------------------------------------------------------------- a subject that is not named


def write_condition_questions(facts: Facts, *, most: int) -> list[GeneratedQuestion]:
    """One fact describes the subject; the question asks for another fact about it."""
    pairs = (
        (one, other)
        for some in facts.by_subject.values()
        for one in some[:MAX_PER_SUBJECT]
        for other in some[:MAX_PER_SUBJECT]
        if one.doc_id != other.doc_id and one.relation != other.relation
    )
    order = facts.spread(
        pairs,
        lambda pair: pair[0].relation,
        lambda pair: f"{fact_key(pair[0])}\0{pair[1].relation}",
    )
    return pick_questions(most, (_condition(*pair, facts) for pair in order))


def _condition(known: Triple, asked: Triple, facts: Facts) -> GeneratedQuestion | None:
    wording = facts.wording
    if not has_one_answer(asked):
        return None
    noun, clause = wording.noun(known.subject), _clause(known, wording)
    alone = facts.subjects_with.get((known.relation, title_key(known.object)), set())
    if not noun or not clause or len(alone) != 1:
        return None
    text = wording.ask(asked, f"the {noun} {'who' if noun == 'person' else 'that'} {clause}")
    if not text:
        return None
    paths = (ReasoningPath((known,)), ReasoningPath((asked,)))
    return make_question(text, base_title(asked.object), "condition", paths)


def write_fact_intersections(facts: Facts, *, most: int) -> list[GeneratedQuestion]:
    """Two facts from two documents that only one subject shares; others have one of them."""
    pairs = (
        pair
        for some in facts.by_subject.values()
        for pair in combinations(some[:MAX_PER_SUBJECT], 2)
        if pair[0].doc_id != pair[1].doc_id
    )
    order = facts.spread(pairs, lambda pair: pair[0].relation, lambda pair: fact_key(pair[0]))
    return pick_questions(most, (_intersect(*pair, facts) for pair in order))


def _intersect(one: Triple, other: Triple, facts: Facts) -> GeneratedQuestion | None:
    wording = facts.wording
    noun = wording.noun(one.subject)
    clauses = [_clause(triple, wording) for triple in (one, other)]
    sets = [
        facts.subjects_with.get((triple.relation, title_key(triple.object)), set())
        for triple in (one, other)
    ]
    if not noun or not all(clauses) or min(map(len, sets)) < 2 or len(sets[0] & sets[1]) != 1:
        return None
    text = f"{'Who' if noun == 'person' else f'Which {noun}'} {clauses[0]} and {clauses[1]}?"
    paths = (ReasoningPath((one,)), ReasoningPath((other,)))
    return make_question(text, base_title(one.subject), "intersection", paths)


def _clause(triple: Triple, wording: Wording) -> str:
    return clause_of(triple, wording.name(triple.object, kind_word=False))
