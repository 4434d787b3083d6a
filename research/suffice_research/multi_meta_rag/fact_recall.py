"""Judge chunks by the facts they contain, as MultiHop-RAG does: it searches the quoted sentence in
the retrieved text.

The official script compares texts without blanks. Copies of the articles also differ in quotation
marks and dashes, so here only letters and digits are compared; then every fact is found in its
article. A fact split by a chunk's border counts as missed, as it does officially.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from suffice.errors import InputError
from suffice.evaluation.metrics import Rankings
from suffice.types import DocId, Document, Hit

__all__ = ["FactIndex"]

_NO_LETTER = re.compile(r"[\W_]+")


def _letters_only(text: str) -> str:
    return _NO_LETTER.sub("", text.casefold())


class FactIndex:
    """Which facts are in which chunks.

    `facts` has the quoted sentences of each question; duplicates count once.
    """

    def __init__(self, chunks: Iterable[Document], facts: Sequence[Sequence[str]]) -> None:
        self.wanted = [frozenset(filter(None, map(_letters_only, one))) for one in facts]
        texts = {chunk.doc_id: _letters_only(chunk.text) for chunk in chunks}
        every = sorted({fact for one in self.wanted for fact in one})
        self.held: dict[DocId, frozenset[str]] = {
            doc_id: frozenset(fact for fact in every if fact in text)
            for doc_id, text in texts.items()
        }

    @property
    def unfound(self) -> int:
        """How many different facts are in no chunk."""
        return len(
            {fact for one in self.wanted for fact in one}
            - {fact for one in self.held.values() for fact in one}
        )

    def judge(self, found: Sequence[Sequence[Hit]], *, depth: int = 10) -> Rankings:
        """Each hit adds the facts of its question that no earlier hit has."""
        if len(found) != len(self.wanted):
            raise InputError(
                f"{len(found)} rankings for {len(self.wanted)} questions: expected one each"
            )
        relevance = np.zeros((len(found), depth))
        for row, (hits, wanted) in enumerate(zip(found, self.wanted)):
            missing = set(wanted)
            for rank, hit in enumerate(hits[:depth]):
                new = missing & self.held.get(hit.doc_id, frozenset())
                relevance[row, rank] = len(new)
                missing -= new
        return Rankings(relevance, [len(one) for one in self.wanted])
