"""Look-alike twins: a needed document is replaced by a copy about something else.

"Team Tern is led by Mira Holt" becomes "Team Plover is led by Mira Holt", "Kestrel 2.4" becomes
"Kestrel 2.5". The copy is about as similar to the question as the document, but does not answer it.
A gate must tell the two apart, and words alone hardly do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from suffice.text import title_key, title_words
from suffice.types import DocId, Document
from suffice_grade.knowledge_graph import seeded_order
from suffice_grade.open_relations import PARSED
from suffice_grade.stage_protocols import GeneratedQuestion, Triple
from suffice_grade.vocabulary import base_title

SUFFIX = "~lookalike"  # of the copy's id
_DIGITS = re.compile(r"\d+")


def other_subjects(questions: Iterable[GeneratedQuestion]) -> dict[str, list[str]]:
    """Relation -> the subjects it has in the questions: candidates to replace one another.

    A parsed relation is a question of its own, so its group is how that question begins.
    """
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for question in questions:
        for path in question.paths:
            for one in path.triples:
                found[_group(one)].setdefault(one.subject)
    return {relation: list(subjects) for relation, subjects in found.items()}


def _group(triple: Triple) -> str:
    parsed = triple.relation.startswith(PARSED)
    return triple.relation.partition(" X")[0] if parsed else triple.relation


def look_alike(
    question: GeneratedQuestion,
    documents: Mapping[DocId, Document],
    others: Mapping[str, Sequence[str]],
    *,
    seed: int = 42,
) -> tuple[DocId, Document] | None:
    """A needed document and its changed copy; None if no name in it can be changed."""
    triples = [one for path in question.paths for one in path.triples]
    for triple in seeded_order(
        triples, lambda one: f"like {question.question_id} {one.doc_id}", seed
    ):
        document = documents[triple.doc_id]
        for name in _substitutes(triple, others.get(_group(triple), ()), question, seed):
            changed = _rename(document, triple.subject, name)
            if changed is not None:
                return triple.doc_id, replace(changed, doc_id=f"{triple.doc_id}{SUFFIX}")
    return None


def _substitutes(
    triple: Triple, others: Sequence[str], question: GeneratedQuestion, seed: int
) -> Iterable[str]:
    """Another number in the name, else other names with the same relation."""
    name = triple.subject
    if match := _DIGITS.search(base_title(name)):
        larger = str(int(match.group()) + 1).zfill(len(match.group()))
        yield f"{name[: match.start()]}{larger}{name[match.end() :]}"
    asked = title_key(question.text)
    fitting = (one for one in others if one != name and title_key(base_title(one)) not in asked)
    yield from seeded_order(list(fitting), lambda one: f"{question.question_id} {one}", seed)[:5]


def _rename(document: Document, name: str, other: str) -> Document | None:
    """The document about something else; None if it lacks the name, or the name would remain."""
    old, new = base_title(name), base_title(other)
    pattern = re.compile(rf"(?<![\w-]){re.escape(old)}(?![\w-])", re.IGNORECASE)
    title, in_title = pattern.subn(lambda _: new, document.title)
    text, in_text = pattern.subn(lambda _: new, document.text)
    last = old.split()[-1]
    if " " in old and last[:1].isupper() and last.isalpha():  # a surname used alone later
        text = re.sub(rf"\b{re.escape(last)}\b", lambda _: new.split()[-1], text)
    whole = f" {' '.join(title_words(f'{title} {text}')).casefold()} "
    stays = f" {title_key(old)} " in whole
    if stays or not (in_title or in_text) or title_key(old) == title_key(new):
        return None
    return replace(document, title=title, text=text)
