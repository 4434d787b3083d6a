"""A library, a gate and models that fit on a page: what the tests of `answering` share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.corpora import documents

from suffice.retrieval.links import MentionLinks, TitleIndex, mention_links
from suffice.text import title_key, tokens
from suffice.types import Action, DocId, Document, Estimate, Filter, FoundAnswer, Hit, Verdict

FILMS = documents("small_world")

BRIDGE = "When did Lothair II's mother die?"
COMPARISON = "Which film has the director born first, Shadows In Paradise or Dog Law?"


def write_2wiki(folder: Path, *questions: str) -> Path:
    """The films in 2WikiMultiHopQA's own layout, and these of BRIDGE and COMPARISON in other words:
    what asks when somebody died is the bridge.
    """
    bridge = ("compositional", "20 March 851", ("Lothair II", "Ermengarde of Tours"))
    both = ("Dog Law", "Jerome Storm", "Shadows in Paradise", "Aki Kaurismäki")
    records = []
    for at, text in enumerate(questions):
        kind, answer, titles = bridge if "die" in text else ("comparison", "Dog Law", both)
        record: dict[str, Any] = {"_id": f"q{at}", "question": text, "type": kind}
        record |= {"answer": answer, "supporting_facts": [[title, 0] for title in titles]}
        record |= {"evidences": [], "context": [[one.title, [one.text]] for one in FILMS]}
        records.append(record)
    (folder / "2wikimultihopqa.json").write_text(json.dumps(records), encoding="utf-8")
    corpus = [{"title": one.title, "text": one.text} for one in FILMS]
    (folder / "2wikimultihopqa_corpus.json").write_text(json.dumps(corpus), encoding="utf-8")
    return folder


class TinyLibrary:
    """A library in memory: hits by words in common."""

    def __init__(self, documents: Sequence[Document] = FILMS) -> None:
        self.documents = {one.doc_id: one for one in documents}
        self.asked: list[str] = []
        self._links = mention_links(documents, TitleIndex.of(documents))

    def retriever(self, name: str | None = None) -> TinyLibrary:
        return self

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        self.asked += questions
        return [self._ranked(question)[:k] for question in questions]

    def _ranked(self, question: str) -> tuple[Hit, ...]:
        words = set(tokens(question))
        found = [
            (len(words & set(tokens(f"{one.title} {one.text}"))), one.doc_id)
            for one in self.documents.values()
        ]
        return tuple(
            Hit(doc_id, float(score))
            for score, doc_id in sorted(found, key=lambda one: -one[0])
            if score > 1
        )

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        return [self.documents.get(doc_id) for doc_id in doc_ids]

    def links(self) -> MentionLinks:
        return self._links


# What is asked about the title of a text, and how the text says it.
FACTS = (
    (r"mother of (.+)\?", r"son of .+? and ([A-Z][\w ]+)"),
    (r"did (.+) die", r"died ([^)]+)"),
    (r"director of the film (.+)\?", r"directed by (\w+ \w+)"),
    (r"was (.+) born", r"\((?:born )?([^)–]+\d)"),
    (r"was (.+) released", r"is a (\d{4})"),
)


class Wants:
    """A gate that is content when it sees these documents, and says which it misses. Its reader knows
    some facts.
    """

    p, p_if_complete = 0.9, 0.95

    def __init__(self, *wanted: DocId) -> None:
        self.wanted = wanted

    def find_answer(
        self,
        question: str,
        titles: Sequence[str],
        texts: Sequence[str],
        fits: Callable[[str], bool] = bool,
    ) -> FoundAnswer:
        for asks, says in FACTS:
            asked = re.search(asks, question)
            for place, (title, text) in enumerate(zip(titles, texts)):
                said = re.search(says, text)
                if asked and said and title_key(title) == title_key(asked[1]) and fits(said[1]):
                    return FoundAnswer(said[1], place, *said.span(1), self.p, self.p_if_complete)
        return FoundAnswer("", -1, 0, 0, 0.0)

    def check_batch(
        self,
        pairs: Iterable[Any],
        *,
        documents: Mapping[DocId, Document] | None = None,
        explain: bool = True,
        rounds_left: int = 1,
    ) -> list[Verdict]:
        return [self._verdict({hit.doc_id for hit in hits}, rounds_left) for _, hits in pairs]

    def _verdict(self, hit_ids: set[DocId], rounds_left: int) -> Verdict:
        missing = tuple(one for one in self.wanted if one not in hit_ids)
        p = 0.95 - 0.9 * len(missing) / max(len(self.wanted), 1)
        action = Action.ANSWER if not missing else Action.EXPAND if rounds_left else Action.ABSTAIN
        return Verdict(Estimate(p, p, p), action, missing, missing)


class Says:
    """A model that answers by what it is asked for, and remembers what it was shown."""

    name = "says"

    def __init__(self, answers: Mapping[str, Any] | Callable[[str], str]) -> None:
        self.answers, self.shown = answers, list[str]()

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        self.shown += prompts
        return [self._one(prompt) for prompt in prompts]

    def _one(self, prompt: str) -> str:
        if callable(self.answers):
            return self.answers(prompt)
        found: Any = next((answer for part, answer in self.answers.items() if part in prompt), {})
        return found if isinstance(found, str) else json.dumps(found)


def clock_of(*times: float) -> Callable[[], float]:
    """A clock that says these times, and then the last one for ever."""
    left = iter(times)
    return lambda: next(left, times[-1])
