"""Questions by templates: a chain of facts as one sentence that asks for its end.

"Who is the father of the director of film La Yuma?" The words for each relation stand in `relations`; which of several is
taken follows from the seed. A name that several pages share is written as its title is, parenthesis included.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from suffice.benchmark.relation_patterns import RELATIONS
from suffice.benchmark.stage_protocols import Claim, GeneratedQuestion, ReasoningPath, Triple
from suffice.benchmark.triples import PageIndex
from suffice.benchmark.vocabulary import base_title
from suffice.datasets.gold import draw_key

__all__ = ["RuleQuestions", "Wording", "make_question_id"]

_WORK_WORDS = {
    "film": "film",
    "song": "song",
    "album": "album",
    "series": "series",
    "game": "game",
    "play": "play",
}


class Wording:
    """How names and relations are put into a question, the same for the same seed."""

    def __init__(self, titles: PageIndex, *, seed: int = 42) -> None:
        self.titles, self.seed = titles, seed

    def pick(self, ways: Sequence[str], about: str) -> str:
        """One of the ways, by the seed and what the question is about."""
        return ways[int.from_bytes(draw_key(self.seed, about)[:4], "big") % len(ways)]

    def name(self, node: str, *, kind_word: bool = True) -> str:
        """A page as a question names it: a work with its noun."""
        page = self.titles.page.get(node)
        work = page is not None and page.kind in _WORK_WORDS
        shown = (
            node
            if page and (work or self.titles.named(base_title(node), "") is None)
            else base_title(node)
        )
        noun = (
            (page.noun if page and page.kind == "book" else _WORK_WORDS.get(page.kind, ""))
            if page and kind_word
            else ""
        )
        return f"{noun} {shown}" if noun and noun not in shown.casefold().split() else shown

    def phrase(self, triples: Sequence[Triple], start: str) -> str:
        """ "the father of the director of film X": the facts from a start on, as the one they lead to."""
        said = self.name(start)
        for triple in triples:
            ways = RELATIONS[triple.relation].of
            # "the husband of X's mother" could be the mother of a husband.
            bare_name = len(triples) == 1 and said in (start, base_title(start))
            fitting = [way for way in ways if bare_name or not way.startswith("X's")]
            said = self.pick(fitting or ways, f"of {triple.relation} {start}").replace("X", said, 1)
        return said

    def ask(self, triple: Triple, said: str) -> str:
        ways = RELATIONS[triple.relation].ask
        if said.startswith("the "):
            ways = tuple(way for way in ways if "X's" not in way) or ways
        return self.pick(ways, f"ask {triple.relation} {said}").replace("X", said, 1)


class RuleQuestions:
    """Logical-chaining questions by templates."""

    def __init__(self, wording: Wording) -> None:
        self.wording = wording

    def write(
        self, paths: Sequence[ReasoningPath], claims: Sequence[Sequence[Claim]] = ()
    ) -> list[GeneratedQuestion | None]:
        return [self._write(path) for path in paths]

    def _write(self, path: ReasoningPath) -> GeneratedQuestion | None:
        *inner, last = path.triples
        if not all(one.relation in RELATIONS for one in path.triples):
            return None  # a relation in a model's words
        if not all(RELATIONS[one.relation].of for one in inner) or not RELATIONS[last.relation].ask:
            return None
        text = self.wording.ask(last, self.wording.phrase(inner, path.triples[0].subject))
        answer = base_title(last.object)
        return GeneratedQuestion(
            make_question_id(text),
            text,
            answer,
            "chain",
            len(path.triples),
            (path,),
            tuple(dict.fromkeys(path.doc_ids)),
        )


def make_question_id(text: str) -> str:
    """An id that follows from the words, so that the same question has the same id in every run."""
    return "made-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
