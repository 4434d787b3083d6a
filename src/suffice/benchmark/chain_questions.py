"""Chain questions by templates: a path of facts as one sentence that asks for its end.

"Who is the father of the director of film La Yuma?" The words for each relation are in
`relations.toml`; the seed chooses among them. A name that several pages share is written like its
title, with the parenthesis.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from suffice.benchmark.claims import PageIndex
from suffice.benchmark.stage_protocols import Claim, GeneratedQuestion, ReasoningPath, Triple
from suffice.benchmark.triples import get_relation
from suffice.benchmark.vocabulary import base_title
from suffice.datasets.gold import draw_key

_WORKS = frozenset(("film", "song", "album", "series", "game", "play"))


class Wording:
    """How names and relations are put into a question, the same for the same seed."""

    def __init__(self, pages: PageIndex, *, seed: int = 42) -> None:
        self.pages, self.seed = pages, seed

    def pick(self, ways: Sequence[str], about: str) -> str:
        """One of the ways, by the seed and what the question is about."""
        return ways[int.from_bytes(draw_key(self.seed, about)[:4], "big") % len(ways)]

    def name(self, title: str, *, kind_word: bool = True) -> str:
        """A page as a question names it: a work with its noun."""
        page = self.pages.by_title.get(title)
        if page is None:
            return base_title(title)
        unique = page.kind not in _WORKS and self.pages.find(base_title(title)) is not None
        shown = base_title(title) if unique else title
        noun = page.noun if page.kind == "book" else page.kind if page.kind in _WORKS else ""
        add = kind_word and noun and noun not in shown.casefold().split()
        return f"{noun} {shown}" if add else shown

    def phrase(self, triples: Sequence[Triple], start: str) -> str:
        """The facts from a start on: "the father of the director of film X"."""
        phrase = self.name(start)
        for triple in triples:
            ways = get_relation(triple.relation).of
            # "the husband of X's mother" could be the mother of a husband.
            plain = len(triples) == 1 and phrase in (start, base_title(start))
            fitting = [way for way in ways if plain or not way.startswith("X's")]
            way = self.pick(fitting or ways, f"of {triple.relation} {start}")
            phrase = way.replace("X", phrase, 1)
        return phrase

    def ask(self, triple: Triple, phrase: str) -> str:
        ways = get_relation(triple.relation).ask
        if phrase.startswith("the "):
            ways = tuple(way for way in ways if "X's" not in way) or ways
        return self.pick(ways, f"ask {triple.relation} {phrase}").replace("X", phrase, 1)


class RuleQuestions:
    """Chain questions by templates."""

    def __init__(self, wording: Wording) -> None:
        self.wording = wording

    def write(
        self, paths: Sequence[ReasoningPath], claims: Sequence[Sequence[Claim]] = ()
    ) -> list[GeneratedQuestion | None]:
        return [self._write(path) for path in paths]

    def _write(self, path: ReasoningPath) -> GeneratedQuestion | None:
        *inner, last = path.triples
        if not has_phrases(inner) or not get_relation(last.relation).ask:
            return None  # a relation in a model's words, or one that can only end a question
        return chain_question(
            self.wording.ask(last, self.wording.phrase(inner, path.triples[0].subject)), path
        )


def has_phrases(triples: Sequence[Triple]) -> bool:
    """Whether the rules have words for these relations inside a question."""
    return all(get_relation(one.relation).of for one in triples)


def chain_question(text: str, path: ReasoningPath) -> GeneratedQuestion:
    """A question that asks for the end of a path."""
    return make_question(text, base_title(path.ends[1]), "chain", (path,))


def make_question(
    text: str, answer: str, kind: str, paths: tuple[ReasoningPath, ...]
) -> GeneratedQuestion:
    """A question over these paths. Its id follows from its text: the same in every run."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    facts = [triple for path in paths for triple in path.triples]
    doc_ids = tuple(dict.fromkeys(triple.doc_id for triple in facts))
    return GeneratedQuestion(f"made-{digest}", text, answer, kind, len(facts), paths, doc_ids)
