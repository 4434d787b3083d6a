"""The pool of one question: candidate documents, what is known of each, and what each would add to those already held.

Everything is an array over the candidates. What does not depend on the held set is computed when a candidate joins; what does is
kept up to date with every pick: which words and names of the question are still uncovered, who is linked with something held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.retrieve.name_links import NameLinks, stem
from suffice.text import OPENERS, STOP_WORDS, title_key, tokens
from suffice.types import DocId, Document, Hit

__all__ = ["FEATURES", "Asked", "Feature", "Pool", "read_question"]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_SILENT = STOP_WORDS | OPENERS
K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the ranker: its name, what it says, and in which direction it can only help (1), hurt (-1), or either (0)."""

    name: str
    says: str
    direction: int = 0


FEATURES = (
    Feature("bm25", "The question's BM25 over the pool's best.", 1),
    Feature("bm25_rank", "One over its rank in the text search; 0 where it was not found.", 1),
    Feature("dense", "Similarity with the question over the pool's best.", 1),
    Feature("dense_rank", "One over its rank in the vector search; 0 where it was not found.", 1),
    Feature("named", "The question names it: one over the number of documents of that name.", 1),
    Feature("named_best", "It is the best by BM25 of the documents of the name.", 1),
    Feature("title_asked", "Share of its title's words that the question has.", 1),
    Feature("asked_title", "Share of the question that its title covers.", 1),
    Feature("covered", "Share of the question that its text covers.", 1),
    Feature("support_out", "How good the best candidate is that names it.", 1),
    Feature("support_in", "How good the best candidate is that it names.", 1),
    Feature("support_shared", "How good the best candidate is that shares a rare name with it.", 1),
    Feature("adds", "Share of the question that it covers and nothing held does.", 1),
    Feature("names_added", "Share of the question's names that it has and nothing held has.", 1),
    Feature("held_covers", "Share of the question that is covered already."),
    Feature("held", "How many are held."),
    Feature("from_held", "Something held names it: one over the number of documents of that name.", 1),
    Feature("bridge", "The same, by a name that the question does not have.", 1),
    Feature("into_held", "It names something held.", 1),
    Feature("shared", "The rarest name that it shares with something held and the question does not have.", 1),
    Feature("same_title", "Something held has its title."),
    Feature("question_words", "How many words the question has."),
    Feature("question_names", "How many names the question has."),
    Feature("agrees", "Share of the metadata that the question names which it carries.", 1),
    Feature("agrees_new", "The same, of what nothing held carries.", 1),
)
COLUMN = {feature.name: at for at, feature in enumerate(FEATURES)}


@dataclass(frozen=True)
class Asked:
    """What a question looks for: its word stems with their weights (summing to 1), its names, and the metadata it names."""

    text: str
    patterns: tuple[str, ...]
    weights: Floats
    names: Ints
    metadata: Any = None
    words: int = 0


def read_question(text: str, names: Ints, links: NameLinks, metadata: Any = None) -> Asked:
    words = tokens(text)
    stems = list(dict.fromkeys(stem(word) for word in words if word not in _SILENT))
    size = len(links.ids)
    counts = np.array([links.stems.get(one, 0) for one in stems], dtype=np.float32)
    weights = np.log1p((size - np.minimum(counts, size) + 0.5) / (counts + 0.5)).astype(np.float32)
    total = float(weights.sum())
    # A stem stands for every word that begins so; a short word only for itself.
    patterns = tuple(f" {one}" if len(one) > 4 and one.isalpha() else f" {one} " for one in stems)
    return Asked(text, patterns, weights / total if total else weights, names, metadata, len(words))


def _padded(text: str) -> str:
    return " " + " ".join(tokens(text)) + " "


class Pool:
    """Candidates in the order they joined."""

    def __init__(self, asked: Asked, links: NameLinks, bm25: Sequence[Hit], dense: Sequence[Hit]) -> None:
        self.asked, self.links = asked, links
        self._bm25 = {hit.doc_id: (rank, hit.score or 0.0) for rank, hit in enumerate(bm25, 1)}
        self._dense = {hit.doc_id: (rank, hit.score or 0.0) for rank, hit in enumerate(dense, 1)}
        self._dense_top = max((score for _, score in self._dense.values()), default=1.0) or 1.0
        self._dense_low = min((score for _, score in self._dense.values()), default=0.0)
        self.ids: list[DocId] = []
        self.at: dict[DocId, int] = {}
        self.documents: list[Document] = []
        self.found_by: list[dict[str, float]] = []
        self.held: list[int] = []
        self.expanded: set[int] = set()
        stems = len(asked.patterns)
        self._has = np.zeros((0, stems), np.bool_)
        self._base = np.zeros((0, len(FEATURES)), np.float32)
        self._raw_bm25 = np.zeros(0, np.float32)
        self._rows: list[int] = []  # in the links
        self._carries = np.zeros((0, 0), np.bool_)
        self._fresh()

    def __len__(self) -> int:
        return len(self.ids)

    def _fresh(self) -> None:
        self._covered = np.zeros(len(self.asked.patterns), np.bool_)

    # ------------------------------------------------------------------------------------------------ joining

    def join(self, documents: Sequence[Document], why: Mapping[DocId, Mapping[str, float]]) -> None:
        """Add candidates; one that is in the pool already only hears who else found it."""
        new = []
        for document in documents:
            if document.doc_id in self.at:
                continue
            self.at[document.doc_id] = len(self.ids)
            self.ids.append(document.doc_id)
            self.documents.append(document)
            self.found_by.append(dict(why.get(document.doc_id, {})))
            new.append(document)
        if not new:
            return
        self._rows += self.links.rows([document.doc_id for document in new])
        texts = [_padded(document.text) for document in new]
        titles = [_padded(document.title) for document in new]
        patterns = self.asked.patterns
        shape = (len(new), len(patterns))
        in_text = np.array([[text.count(one) for one in patterns] for text in texts], np.float32).reshape(shape)
        in_title = np.array([[title.count(one) for one in patterns] for title in titles], np.float32).reshape(shape)
        length = np.array([len(one.text) for one in new], np.float32)
        self._describe(new, titles, in_text, in_title, length)
        self._link()

    def _describe(self, new: list[Document], titles: list[str], in_text: Floats, in_title: Floats, length: Floats) -> None:
        weights = self.asked.weights
        tf = in_text + in_title
        norm = K1 * (1 - B + B * length / max(self.links.letters, 1.0))
        raw = (tf * (K1 + 1) / (tf + norm[:, None])) @ weights
        base = np.zeros((len(new), len(FEATURES)), np.float32)
        found = [(self._bm25.get(one.doc_id), self._dense.get(one.doc_id)) for one in new]
        base[:, COLUMN["bm25_rank"]] = [1 / text[0] if text else 0 for text, _ in found]
        base[:, COLUMN["dense"]] = [(near[1] if near else self._dense_low) / self._dense_top for _, near in found]
        base[:, COLUMN["dense_rank"]] = [1 / near[0] if near else 0 for _, near in found]
        has_title, has = in_title > 0, tf > 0
        sizes = np.array([max(len(title.split()), 1) for title in titles], np.float32)
        base[:, COLUMN["title_asked"]] = np.minimum(in_title.sum(axis=1) / sizes, 1)
        base[:, COLUMN["asked_title"]] = has_title @ weights
        base[:, COLUMN["covered"]] = has @ weights
        base[:, COLUMN["question_words"]] = self.asked.words
        base[:, COLUMN["question_names"]] = len(self.asked.names)
        self._base = np.concatenate([self._base, base])
        self._has = np.concatenate([self._has, has])
        self._raw_bm25 = np.concatenate([self._raw_bm25, raw.astype(np.float32)])
        self._base[:, COLUMN["bm25"]] = self._raw_bm25 / (self._raw_bm25.max() or 1.0)

    def _link(self) -> None:
        """Names of all candidates side by side, and what follows from them for each."""
        borne, mentioned, links = self.links.borne, self.links.mentioned, self.links
        none = np.zeros(0, np.int64)
        of_borne = [borne.row(row) if row >= 0 else none for row in self._rows]
        of_said = [mentioned.row(row) if row >= 0 else none for row in self._rows]
        self._b, self._b_of = _flat(of_borne)
        self._m, self._m_of = _flat(of_said)
        n = len(self)
        asked_b = np.isin(self._b, self.asked.names)
        share = (1 / np.maximum(links.bearing[self._b], 1)).astype(np.float32)
        named = np.zeros(n, np.float32)
        np.maximum.at(named, self._b_of[asked_b], share[asked_b])
        self._base[:, COLUMN["named"]] = named
        best = np.zeros(n, np.float32)
        bm25 = self._base[:, COLUMN["bm25"]]
        for name in self.asked.names.tolist():
            at = self._b_of[self._b == name]
            if len(at):
                best[at[np.argmax(bm25[at])]] = 1
        self._base[:, COLUMN["named_best"]] = best
        # How good a candidate looks by itself, to weigh what it points at.
        good = (bm25 + np.maximum(self._base[:, COLUMN["dense"]], 0)) / 2 + 0.5 * best
        self.good = good.astype(np.float32)
        self._base[:, COLUMN["support_out"]] = _reach(self._m, self._m_of, self._b, self._b_of, self.good, share, n)
        self._base[:, COLUMN["support_in"]] = _reach(
            self._b, self._b_of, self._m, self._m_of, self.good * 1, np.ones(len(self._m), np.float32), n
        )
        bridging = ~np.isin(self._m, self.asked.names)
        rare = (links.rarity[self._m] * bridging).astype(np.float32)
        self._base[:, COLUMN["support_shared"]] = _reach(self._m, self._m_of, self._m, self._m_of, self.good, rare, n)
        self._rare, self._share_b = rare, share
        self._asked_b = asked_b
        self._asked_has = self._names_had(n)

    def _names_had(self, n: int) -> npt.NDArray[np.bool_]:
        """Which of the question's names each candidate bears or mentions: (candidates, names)."""
        had = np.zeros((n, len(self.asked.names)), np.bool_)
        for column, name in enumerate(self.asked.names.tolist()):
            had[self._b_of[self._b == name], column] = True
            had[self._m_of[self._m == name], column] = True
        return had

    # ------------------------------------------------------------------------------------------------ choosing

    def features(self) -> Floats:
        """(candidates, features) given what is held now."""
        rows = self._base.copy()
        n, weights = len(self), self.asked.weights
        held = self.held
        covered = self._has[held].any(axis=0) if held else np.zeros(len(weights), np.bool_)
        rows[:, COLUMN["adds"]] = (self._has & ~covered) @ weights
        rows[:, COLUMN["held_covers"]] = float(weights[covered].sum())
        rows[:, COLUMN["held"]] = len(held)
        if len(self.asked.names):
            had = self._asked_has[held].any(axis=0) if held else np.zeros(len(self.asked.names), np.bool_)
            rows[:, COLUMN["names_added"]] = (self._asked_has & ~had).mean(axis=1)
        if held:
            inside = np.isin(self._m_of, held)
            said = np.unique(self._m[inside])
            hit = np.isin(self._b, said) & ~np.isin(self._b_of, held)
            np.maximum.at(rows[:, COLUMN["from_held"]], self._b_of[hit], self._share_b[hit])
            hit &= ~self._asked_b
            np.maximum.at(rows[:, COLUMN["bridge"]], self._b_of[hit], self._share_b[hit])
            own = np.unique(self._b[np.isin(self._b_of, held)])
            rows[self._m_of[np.isin(self._m, own)], COLUMN["into_held"]] = 1
            both = np.isin(self._m, said)
            np.maximum.at(rows[:, COLUMN["shared"]], self._m_of[both], self._rare[both])
            titles = {title_key(self.documents[at].title) for at in held} - {""}
            rows[:, COLUMN["same_title"]] = [title_key(one.title) in titles for one in self.documents]
        return rows

    def hold(self, at: int) -> None:
        self.held.append(at)

    def hit(self, at: int, score: float) -> Hit:
        from suffice.types import Part

        parts = tuple(Part(name, value) for name, value in self.found_by[at].items())
        return Hit(self.ids[at], score, parts)


def _flat(rows: Sequence[Ints]) -> tuple[Ints, Ints]:
    sizes = [len(row) for row in rows]
    return (np.concatenate(rows) if rows else np.zeros(0, np.int64)), np.repeat(np.arange(len(rows)), sizes)


def _reach(source: Ints, source_of: Ints, target: Ints, target_of: Ints, good: Floats, worth: Floats, n: int) -> Floats:
    """For each candidate the best other one that has a name in `source` which it has in `target`: goodness times worth."""
    out = np.zeros(n, np.float32)
    if not len(source) or not len(target):
        return out
    names, code = np.unique(source, return_inverse=True)
    # The two best candidates of each name, since the best may be the candidate itself.
    order = np.lexsort((-good[source_of], code))
    code, who = code[order], source_of[order]
    first = np.searchsorted(code, np.arange(len(names)))
    best = who[first]
    after = np.minimum(first + 1, len(code) - 1)
    second = np.where((first + 1 < len(code)) & (code[after] == np.arange(len(names))), who[after], -1)
    at = np.minimum(np.searchsorted(names, target), len(names) - 1)
    known = names[at] == target
    other = np.where(best[at] != target_of, best[at], second[at])
    value = np.where(known & (other >= 0), good[np.maximum(other, 0)] * worth, 0)
    np.maximum.at(out, target_of, value.astype(np.float32))
    return out
