"""Validation by search: a question is valid if the corpus leaves no doubt about it.

Each check is a line in CHECKS. A question must be well-formed, must name its start unambiguously,
must not contain its answer, must have every fact in its document, and must need every one of its
documents: no document names two things that the chain joins only indirectly, and none in the
corpus names both the start and the answer. A single-document question must have only that source:
no other document names its subject and its answer.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from suffice.lexicon import FUNCTION_WORDS, MONTHS
from suffice.retrieval.phrase_matcher import PhraseMatcher
from suffice.text import title_key, title_words
from suffice.types import DocId, Document
from suffice_grade.claims import PageIndex
from suffice_grade.inflection import QUESTION_WORDS
from suffice_grade.open_relations import PARSED, SAID, is_event
from suffice_grade.stage_protocols import GeneratedQuestion, Judgement, Triple
from suffice_grade.vocabulary import NATIONALITIES, ROLES, any_of, base_title

CHOICE_KINDS = frozenset(
    {"comparison", "temporal", "bridge_comparison", "yes_no"}
)  # the question offers its answer as a choice
ONE_DOCUMENT_KINDS = frozenset({"single", "yes_no"})  # one document may suffice
UNNAMED_KINDS = frozenset({"condition", "intersection", "across"})  # they describe their subject
MIN_WORDS, MAX_WORDS = 3, 60
MIN_TELLING = 3  # letters of an answer; shorter ones occur in documents for many reasons
SAYS_ALIKE, STEM = 0.6, 5  # share of a question's words in a document that may answer it, too
MAX_NAMING = 3  # documents with a lower-case name; in more of them it means several things
REPORTED = "reported"  # the relation from a name to what a sentence says about it
_VAGUE = re.compile(rf"\b{any_of('vague')}\b", re.IGNORECASE)
_POINTING = frozenset(QUESTION_WORDS["vague"].split())
# Errors of templates, and of names cut out of a text.
_SLIPS = re.compile(
    r"\b([a-z]+) \1\b|\b(?:the|an?) (?:the|an?)\b|'s's|"
    r"[|`*#<>{}\[\]_]{2}|\s[,;:]|[,;:]\?|\( |[\n\t]|"
    r"(?<!\b[A-Z])(?<!\b[JS]r)(?<!\bInc)(?<!\bLtd)(?<!\bCo)(?<!\bCorp)\.\?"
)
_ASKING = re.compile(r"\bX\b|^(?:\w+ )?[Hh]ow \w+|^In what year|^Within what time")
_INVERTED = re.compile(r"[A-Z]{2}[A-Z'-]*, [A-Z]")
_DEMONYMS: dict[str, list[str]] = defaultdict(list)
for _word, _country in NATIONALITIES.items():
    _DEMONYMS[_country].append(_word)
# Frequent answers: a document with one of these and the start proves nothing.
_COMMON = frozenset({"yes", "no"}) | {title_key(country) for country in _DEMONYMS}


class RuleJudge:
    """Checks against the whole corpus, which is searched once for the names in the questions."""

    def __init__(self, documents: Sequence[Document], pages: PageIndex) -> None:
        self.pages = pages
        self._documents = documents
        self._key = {one.doc_id: _spaced(_searched(one)) for one in documents}
        self._text = {one.doc_id: one.text for one in documents}
        self._title_counts = Counter(one.title for one in documents)
        self._naming: dict[str, set[DocId]] = {}  # name -> the documents with it

    def judge(self, questions: Sequence[GeneratedQuestion]) -> list[Judgement]:
        starts = {path.ends[0] for question in questions for path in question.paths}
        self._look_for({title_key(name) for start in starts for name in (start, base_title(start))})
        seen: set[str] = set()
        found = []
        for question in questions:
            why = next((name for name, failed in CHECKS if failed(self, question)), "")
            why = why or ("asked twice" if question.text in seen else "")
            seen.add(question.text)
            found.append(Judgement(not why, why))
        return found

    def _look_for(self, names: Iterable[str]) -> None:
        """Find the documents that contain each of these names."""
        fresh = sorted(name for name in names if name and name not in self._naming)
        if not fresh:
            return
        self._naming |= {name: set() for name in fresh}
        matcher = PhraseMatcher(fresh)
        texts = matcher.find(f"{one.title} {one.text}" for one in self._documents)
        for document, found in zip(self._documents, texts):
            for match in found.matches:
                self._naming[fresh[match.phrase]].add(document.doc_id)

    # ------------------------------------------------------------------------------------- checks

    def shares_documents(self, question: GeneratedQuestion) -> bool:
        """Its facts do not come from different documents."""
        facts = sum(len(path.triples) for path in question.paths)
        least = 1 if question.kind in ONE_DOCUMENT_KINDS else 2
        return len(question.doc_ids) < least or len(question.doc_ids) != facts

    def is_ungrammatical(self, question: GeneratedQuestion) -> bool:
        """It is malformed: an error of a template, or of a name cut out of a text."""
        text = question.text
        paired = all(text.count(a) == text.count(b) for a, b in ("()", "[]", "“”"))
        return (
            not text.endswith("?")
            or (not text[:1].isupper() and not text[:1].isdigit() and question.kind != "bridge")
            or not MIN_WORDS <= len(text.split()) <= MAX_WORDS
            or not paired
            or text.count('"') % 2 == 1
            or _SLIPS.search(text) is not None
        )

    def has_vague_subject(self, question: GeneratedQuestion) -> bool:
        """It is about "it", or about a lower-case name that many documents contain."""
        for path in question.paths:
            name = path.ends[0]
            if not title_key(name) or _INVERTED.match(name):  # "()", "HOLT, Mira"
                return True
            if name in self.pages.by_title:  # film "His Girl Friday"
                continue
            first = path.triples[0]
            if first.link == "context" and not first.phrase:  # "Rangers", short for one team here
                return True
            if self._runs_together(first):
                return True
            words = name.casefold().split()
            if (
                not words
                or words[0] in _POINTING
                or words[0].startswith(("then-", "ex-", "former"))
            ):
                return True
            if re.fullmatch(r"[a-z]+(?: [a-z]+)*", name):
                others = self._naming.get(title_key(name), set()) - set(question.doc_ids)
                if len(others) >= MAX_NAMING:
                    return True
        return False

    def _runs_together(self, fact: Triple) -> bool:
        """Whether a role's subject may be two names: "shared with Purdue Ohio State coach ..."."""
        first, _, rest = title_key(fact.subject).partition(" ")
        if fact.relation not in ROLES or " " not in rest:
            return False
        key = self._key.get(fact.doc_id, "")
        return min(key.count(f" {part} ") for part in (first, rest)) > key.count(
            f" {first} {rest} "
        )

    def is_vague(self, question: GeneratedQuestion) -> bool:
        """It refers to something outside itself."""
        words = re.sub(r'"[^"]*"', "", question.text)
        for path in question.paths:
            for title in (path.triples[0].subject, path.triples[-1].subject):
                words = words.replace(base_title(title), "")
        # "Who has revealed that she ...": the pronoun refers to the answer.
        bound = any(one.relation == REPORTED for path in question.paths for one in path.triples)
        free = question.kind == "bridge" or bound
        points = not free and _VAGUE.search(words) is not None
        return points or "  " in question.text

    def has_ambiguous_name(self, question: GeneratedQuestion) -> bool:
        """A start name belongs to several pages and is not disambiguated."""
        for path in question.paths:
            start = path.ends[0]
            if question.kind in UNNAMED_KINDS and _has_one_subject(question):
                if f" {title_key(start)} " in _spaced(question.text):
                    return True
                continue
            if self._title_counts[start] != 1 and question.kind != "bridge":
                return self._title_counts[start] > 1
            if start not in question.text and self.pages.find(base_title(start)) is None:
                return True
        return False

    def tells_answer(self, question: GeneratedQuestion) -> bool:
        """It contains its answer, without offering it as a choice."""
        if question.kind in CHOICE_KINDS:
            return False
        return f" {title_key(question.answer)} " in _spaced(question.text)

    def is_unsupported(self, question: GeneratedQuestion) -> bool:
        """A document lacks the object of its fact, or the subject of its open fact."""
        triples = [one for path in question.paths for one in path.triples if not one.link]
        return any(
            not self._holds(one.doc_id, one.object)
            or (bool(one.phrase) and not self._holds(one.doc_id, one.subject))
            for one in triples
        )

    def has_detour(self, question: GeneratedQuestion) -> bool:
        """A document in the chain names something after its fact's object or before its subject."""
        for path in question.paths:
            nodes = [path.ends[0], *(one.object for one in path.triples)]
            for at, one in enumerate(path.triples):
                far = nodes[:at] + nodes[at + 2 :]
                if any(self._names(one.doc_id, node) for node in far):
                    return True
        return False

    def has_other_source(self, question: GeneratedQuestion) -> bool:
        """Another document than the needed one names its subject and the object."""
        if question.hops > 1:
            return False
        start, end = map(title_key, question.paths[0].ends)
        if end in _COMMON or len(end) < MIN_TELLING:
            return False
        others = self._naming[start] - set(question.doc_ids)
        return any(f" {end} " in self._key[doc_id] for doc_id in others)

    def has_other_outcome(self, question: GeneratedQuestion) -> bool:
        """Another document names the thing that something happened to, and may say otherwise."""
        fact = question.paths[0].triples[0]
        if question.hops > 1:
            return False
        if fact.relation.startswith(PARSED) and fact.subject not in self._title_counts:
            return self._says_alike(question)
        if not is_event(fact.relation, fact.phrase, fact.object):
            return False
        others = self._naming[title_key(fact.subject)] - set(question.doc_ids)
        return any(f" {title_key(fact.relation)} " in self._key[doc_id] for doc_id in others)

    def has_namesake(self, question: GeneratedQuestion) -> bool:
        """Another document introduces its subject: "Mira Holt was born", "Mira Holt, a painter"."""
        if question.kind == "chain":
            return False
        for path in question.paths:
            name = path.ends[0]
            told = path.triples[0].relation in (REPORTED, SAID)
            if told or (name != base_title(name) and name in question.text):
                continue
            bare = re.escape(base_title(name))
            introduced = re.compile(
                rf"^{bare} (?:\(|(?:is|was) (?:an?|born)\b)|\b{bare}, an? [a-z]"
            )
            others = self._naming[title_key(base_title(name))] - set(question.doc_ids)
            if any(introduced.search(self._text[doc_id]) for doc_id in others):
                return True
        return False

    def _says_alike(self, question: GeneratedQuestion) -> bool:
        """Whether another document has all words of the subject and most of the question's."""
        fact = question.paths[0].triples[0]
        subject, words = _stems(fact.subject), _stems(_ASKING.sub("", fact.phrase))
        if not subject:
            return False
        others = set.intersection(*(self._with_stem.get(one, set()) for one in subject))
        return any(
            sum(doc_id in self._with_stem.get(one, set()) for one in words)
            >= SAYS_ALIKE * len(words)
            for doc_id in others - set(question.doc_ids)
        )

    @cached_property
    def _with_stem(self) -> dict[str, set[DocId]]:
        """Stem -> the documents with it."""
        found: dict[str, set[DocId]] = defaultdict(set)
        for doc_id, key in self._key.items():
            for stem in _stems(key):
                found[stem].add(doc_id)
        return found

    def needs_one_document(self, question: GeneratedQuestion) -> bool:
        """A document names a start and the end, or two of the compared things."""
        starts = [title_key(path.ends[0]) for path in question.paths]
        if question.hops == 1:
            return False
        if _has_one_subject(question):
            ends = [f" {title_key(path.ends[1])} " for path in question.paths]
            return any(
                all(end in self._key[doc_id] for end in ends) for doc_id in self._naming[starts[0]]
            )
        if question.kind in CHOICE_KINDS and len(starts) > 1:
            naming = [self._naming.get(start, set()) for start in starts]
            if all(path.triples[0].relation in (REPORTED, SAID) for path in question.paths):
                said = [f" {title_key(path.ends[1])} " for path in question.paths]
                both = set.intersection(*naming)  # many articles name Google and Apple
                return any(all(one in self._key[doc_id] for one in said) for doc_id in both)
            return any(one & other for at, one in enumerate(naming) for other in naming[at + 1 :])
        if question.kind == "intersection":
            film, person = starts
            return bool((self._naming[film] & self._naming[person]) - {question.doc_ids[0]})
        yes_no = question.kind == "yes_no"
        answer = title_key(question.paths[0].ends[1] if yes_no else question.answer)
        if answer in _COMMON:
            return self._holds(question.doc_ids[0], question.answer)
        return any(f" {answer} " in self._key[doc_id] for doc_id in self._naming[starts[0]])

    def _holds(self, doc_id: DocId, name: str) -> bool:
        short = ("U.S.",) if name == "United States" else ()
        forms = (name, base_title(name), name.split(",")[0], *_DEMONYMS.get(name, ()), *short)
        keys = filter(None, map(title_key, forms))
        return any(f" {key} " in self._key.get(doc_id, "") for key in keys)

    def _names(self, doc_id: DocId, node: str) -> bool:
        """Whether the text contains this name; years and countries do not count."""
        key = title_key(base_title(node))
        telling = key not in _COMMON and not key.isdigit()
        return telling and f" {key} " in self._key.get(doc_id, "")


def _stems(text: str) -> set[str]:
    """The first letters of each content word: "approved" and "approval" have the same."""
    words = (one.casefold() for one in title_words(text))
    return {one[:STEM] for one in words if one not in FUNCTION_WORDS}


def _has_one_subject(question: GeneratedQuestion) -> bool:
    """Whether several facts are about the same thing."""
    return len(question.paths) > 1 and len({path.ends[0] for path in question.paths}) == 1


def _searched(document: Document) -> str:
    """All text that a document states, with an article's outlet and date."""
    day = document.published_at
    written = f" {day.day} {MONTHS[day.month - 1]} {day.year}" if day else ""
    return f"{document.title} {document.text} {document.source or ''}{written}"


def _spaced(text: str) -> str:
    return f" {' '.join(title_words(text)).casefold()} "


Check = Callable[[RuleJudge, GeneratedQuestion], bool]
CHECKS: tuple[tuple[str, Check], ...] = (
    ("documents shared by facts", RuleJudge.shares_documents),
    ("not self-contained", RuleJudge.is_vague),
    ("vague subject", RuleJudge.has_vague_subject),
    ("not grammatical", RuleJudge.is_ungrammatical),
    ("ambiguous name", RuleJudge.has_ambiguous_name),
    ("answer in the question", RuleJudge.tells_answer),
    ("fact not in its document", RuleJudge.is_unsupported),
    ("in another document, too", RuleJudge.has_other_source),
    ("perhaps otherwise in another document", RuleJudge.has_other_outcome),
    ("perhaps something else of that name", RuleJudge.has_namesake),
    ("a detour past a document", RuleJudge.has_detour),
    ("answerable from one document", RuleJudge.needs_one_document),
)
