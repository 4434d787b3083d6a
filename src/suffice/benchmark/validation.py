"""Validation by search: a made question may stay when the corpus leaves no doubt about it.

Each check is a line of CHECKS. A question must name what it asks about so that one page is meant, must not hold its answer,
must find every fact in the document that is said to hold it, and must need every one of its documents: no document names
two things that the chain joins by a detour, and none in the whole corpus names both the start and the answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from suffice.benchmark.stage_protocols import GeneratedQuestion, Judgement
from suffice.benchmark.triples import PageIndex
from suffice.benchmark.vocabulary import NATIONALITIES, base_title
from suffice.retrieval.phrase_matcher import PhraseMatcher
from suffice.text import title_key, title_words
from suffice.types import DocId, Document

__all__ = ["CHECKS", "RuleJudge"]

_VAGUE = re.compile(
    r"\b(?:he|she|they|him|them|his|hers|their|it|its|this|these|those|above|following|former|latter)\b",
    re.IGNORECASE,
)
_DEMONYMS: dict[str, tuple[str, ...]] = {}
for _word, _country in NATIONALITIES.items():
    _DEMONYMS[_country] = (*_DEMONYMS.get(_country, ()), _word)
# Answers that stand in documents for many reasons: that one also names the start proves nothing.
_COMMON = frozenset({"yes", "no"}) | frozenset(title_key(country) for country in _DEMONYMS)


class RuleJudge:
    """Checks over the whole corpus; the texts are read once for the names that questions start from."""

    def __init__(self, documents: Sequence[Document], titles: PageIndex) -> None:
        self.titles = titles
        self._key = {
            one.doc_id: f" {' '.join(title_words(f'{one.title} {one.text}')).casefold()} "
            for one in documents
        }
        self._documents = documents
        self._titles_of = Counter(one.title for one in documents)
        self._naming: dict[str, set[DocId]] = {}

    def judge(self, questions: Sequence[GeneratedQuestion]) -> list[Judgement]:
        self._look_for(
            {title_key(path.triples[0].subject) for made in questions for path in made.paths}
        )
        seen: set[str] = set()
        found = []
        for made in questions:
            why = next((name for name, failed in CHECKS if failed(self, made)), "")
            why = why or ("asked twice" if made.text in seen else "")
            seen.add(made.text)
            found.append(Judgement(not why, why))
        return found

    def _look_for(self, names: Iterable[str]) -> None:
        """Which documents name each of these."""
        fresh = sorted(name for name in names if name and name not in self._naming)
        if not fresh:
            return
        for name in fresh:
            self._naming[name] = set()
        phrases = PhraseMatcher(fresh)
        readings = phrases.find(f"{one.title} {one.text}" for one in self._documents)
        for document, reading in zip(self._documents, readings):
            for match in reading.matches:
                self._naming[fresh[match.phrase]].add(document.doc_id)

    # -------------------------------------------------------------------------------------------- checks

    def vague(self, made: GeneratedQuestion) -> bool:
        """It points outside itself."""
        words = made.text
        for path in made.paths:
            for title in (path.triples[0].subject, path.triples[-1].subject):
                words = words.replace(base_title(title), "")
        return (made.kind != "bridge" and _VAGUE.search(words) is not None) or "  " in made.text

    def ambiguous_name(self, made: GeneratedQuestion) -> bool:
        """A name it starts from belongs to several pages, and is not written out."""
        for path in made.paths:
            start = path.triples[0].subject
            if self._titles_of[start] != 1 and made.kind != "bridge":
                return self._titles_of[start] > 1
            if start not in made.text and self.titles.named(base_title(start), "") is None:
                return True
        return False

    def answer_told(self, made: GeneratedQuestion) -> bool:
        """The answer stands in the question, where the question does not offer it."""
        if made.kind in ("comparison", "temporal", "bridge_comparison"):
            return False
        return f" {title_key(made.answer)} " in f" {' '.join(title_words(made.text)).casefold()} "

    def unsupported(self, made: GeneratedQuestion) -> bool:
        """A document does not name the object of the fact that it is said to hold."""
        return any(
            not self._holds(one.doc_id, one.object)
            for path in made.paths
            for one in path.triples
            if not one.link
        )

    def detour(self, made: GeneratedQuestion) -> bool:
        """A document of the chain names what comes after its own fact, or what came before its own subject."""
        for path in made.paths:
            nodes = [path.triples[0].subject, *(one.object for one in path.triples)]
            for at, one in enumerate(path.triples):
                far = [node for place, node in enumerate(nodes) if place > at + 1 or place < at]
                if any(self._names(one.doc_id, node) for node in far):
                    return True
        return False

    def one_document(self, made: GeneratedQuestion) -> bool:
        """Some document names a start and the answer, or two of those that are compared."""
        starts = [title_key(path.triples[0].subject) for path in made.paths]
        if made.kind in ("comparison", "temporal", "bridge_comparison"):
            held = [self._naming.get(start, set()) for start in starts]
            return any(one & other for at, one in enumerate(held) for other in held[at + 1 :])
        if made.kind == "intersection":
            film, person = starts
            return any(
                doc_id != made.doc_ids[0] for doc_id in self._naming[film] & self._naming[person]
            )
        answer = title_key(made.answer)
        if answer in _COMMON:
            return self._holds(made.doc_ids[0], made.answer)
        return any(f" {answer} " in self._key[doc_id] for doc_id in self._naming[starts[0]])

    def few_documents(self, made: GeneratedQuestion) -> bool:
        """Its facts do not come from documents of their own."""
        facts = sum(len(path.triples) for path in made.paths)
        return len(made.doc_ids) < 2 or len(made.doc_ids) != facts

    def _holds(self, doc_id: DocId, name: str) -> bool:
        key = self._key.get(doc_id, "")
        forms = (name, base_title(name), name.split(",")[0], *_DEMONYMS.get(name, ()))
        return any(f" {title_key(form)} " in key for form in forms if title_key(form))

    def _names(self, doc_id: DocId, node: str) -> bool:
        """Whether the text names this; a year or a country proves nothing."""
        key = title_key(base_title(node))
        if key in _COMMON or key.isdigit():
            return False
        return f" {key} " in self._key.get(doc_id, "")


Check = Callable[[RuleJudge, GeneratedQuestion], bool]
CHECKS: tuple[tuple[str, Check], ...] = (
    ("documents shared by facts", RuleJudge.few_documents),
    ("not self-contained", RuleJudge.vague),
    ("ambiguous name", RuleJudge.ambiguous_name),
    ("answer in the question", RuleJudge.answer_told),
    ("fact not in its document", RuleJudge.unsupported),
    ("a detour past a document", RuleJudge.detour),
    ("answerable from one document", RuleJudge.one_document),
)
