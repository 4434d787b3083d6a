"""The pool of one question: candidate documents, what is known of each, and what each would add to those already held.

Everything is an array over the candidates. What does not depend on the held set is computed when candidates join; what does is
computed for every pick from boolean tables: which words and names of the question a candidate has, and which names of the
corpus it bears or mentions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.lexicon import FUNCTION_WORDS
from suffice.retrieval.metadata import Mentions, matching_metadata
from suffice.retrieval.name_links import NameLinks, stem
from suffice.text import bare_title, tokens
from suffice.types import DocId, Document, Hit, RetrieverScore

__all__ = ["COLUMN", "FEATURES", "CandidatePool", "Feature", "QuestionTerms", "question_terms"]

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

K1, B = 1.2, 0.75
AROUND = 80  # letters before and behind a mention that say why it is mentioned
LETTERS = (
    4000  # of a text that are read: a candidate is a passage, and a book must not hold up a search
)
_COMPARING = frozenset(
    "or both same than older younger earlier later first more less longer between".split()
)


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the ranker: its name, what it says, and whether more of it can only help (1)."""

    name: str
    says: str
    direction: int = 0


FEATURES = (
    Feature("bm25", "BM25 with the question, over the best of the pool.", 1),
    Feature("bm25_rank", "One over the rank in the text search; 0 where it was not found.", 1),
    Feature("dense", "Similarity with the question, over the best of the pool.", 1),
    Feature("dense_rank", "One over the rank in the vector search; 0 where it was not found.", 1),
    Feature("named", "The question names it: one over the number of documents of that name.", 1),
    Feature("named_best", "It is the best by BM25 of the documents of a name in the question.", 1),
    Feature("title_asked", "Share of its title's words that stand in the question.", 1),
    Feature("asked_title", "Share of the question that its title covers.", 1),
    Feature("covered", "Share of the question that it covers.", 1),
    Feature("names_had", "Share of the question's names that it has.", 1),
    Feature("support_out", "How good the best candidate is that names it.", 1),
    Feature("support_in", "How good the best candidate is that it names.", 1),
    Feature("support_shared", "How good the best candidate is that shares a rare name with it.", 1),
    Feature("namesakes", "How many candidates have its title."),
    Feature("namesake_bm25", "Its BM25 over the best of the candidates with its title.", 1),
    Feature("agrees", "Share of the metadata that the question names which it carries.", 1),
    Feature("question_words", "How many words the question has."),
    Feature("question_names", "How many names the question has."),
    Feature("question_compares", "The question compares."),
    Feature("adds", "Share of the question that it covers and nothing held does.", 1),
    Feature("adds_best", "The same, over the best of the candidates.", 1),
    Feature("adds_namesake", "The same, over the best of the candidates with its title.", 1),
    Feature("names_added", "Share of the question's names that it has and nothing held has.", 1),
    Feature(
        "agrees_new",
        "Share of the metadata that the question names which it carries and nothing held does.",
        1,
    ),
    Feature(
        "from_held", "Something held names it: one over the number of documents of that name.", 1
    ),
    Feature("bridge", "The same, by a name that the question does not have.", 1),
    Feature("bridge_context", "Share of the question that stands around that name.", 1),
    Feature("into_held", "It names something held: how rare that name is.", 1),
    Feature(
        "shared",
        "The rarest name that it shares with something held and the question does not have.",
        1,
    ),
    Feature("same_title", "Something held has its title."),
    Feature("held", "How many are held."),
    Feature("held_covers", "Share of the question that is covered already."),
    Feature("names_left", "Share of the question's names that nothing held has."),
    Feature("bridges", "How many candidates something held leads to."),
)
COLUMN = {feature.name: at for at, feature in enumerate(FEATURES)}


@dataclass(frozen=True)
class QuestionTerms:
    """What a question looks for: patterns of its words with their weights (summing to 1), its names and metadata."""

    text: str
    patterns: tuple[str, ...]
    weights: Floats
    names: Ints
    metadata: Mentions | None = None
    words: int = 0
    compares: bool = False


def question_terms(
    text: str, names: Ints, links: NameLinks, metadata: Mentions | None = None
) -> QuestionTerms:
    """Weights are those of BM25: a word in few documents says more."""
    words = tokens(text)
    stems = list(dict.fromkeys(stem(word) for word in words if word not in FUNCTION_WORDS))
    size = len(links.ids)
    counts = np.array([links.stems.get(one, 0) for one in stems], dtype=np.float32)
    weights = np.log1p((size - np.minimum(counts, size) + 0.5) / (counts + 0.5)).astype(np.float32)
    # A stem stands for every word that begins so; a short word or a number only for itself.
    patterns = tuple(f" {one}" if len(one) > 4 and one.isalpha() else f" {one} " for one in stems)
    total = float(weights.sum()) or 1.0
    return QuestionTerms(
        text,
        patterns,
        weights / total,
        names,
        metadata or None,
        len(words),
        not _COMPARING.isdisjoint(words),
    )


class CandidatePool:
    """Candidates in the order they joined; `held` are the positions of those chosen, in order."""

    def __init__(
        self, asked: QuestionTerms, links: NameLinks, bm25: Sequence[Hit], dense: Sequence[Hit]
    ) -> None:
        self.asked, self.links = asked, links
        self.ids: list[DocId] = []
        self.at: dict[DocId, int] = {}
        self.documents: list[Document] = []
        self.found_by: list[Mapping[str, float]] = []
        self.held: list[int] = []
        self.expanded: set[int] = set()  # candidates whose links have joined
        self._begun, self._begun_expanded = 0, frozenset[int]()
        self._read = 0  # how many of the held have been read for the words around names: the last one never needs to be
        self.good = np.zeros(0, np.float32)  # how good each looks by itself
        self._bm25 = {hit.doc_id: rank for rank, hit in enumerate(bm25, 1)}
        self._dense = {hit.doc_id: (rank, hit.score or 0.0) for rank, hit in enumerate(dense, 1)}
        scores = [score for _, score in self._dense.values()]
        self._dense_top, self._dense_low = (
            max(max(scores, default=0.0), 1e-6),
            min(scores, default=0.0),
        )
        self._texts: list[str] = []
        self._keys: list[str] = []
        self._rows: list[int] = []  # in the links
        self._has: Bools = np.zeros((0, len(asked.patterns)), np.bool_)
        self._base: Floats = np.zeros((0, len(FEATURES)), np.float32)
        self._raw: Floats = np.zeros(0, np.float32)  # BM25 before it is put beside the pool's best
        self._metadata: list[frozenset[str]] = []
        self._context: Floats = np.zeros(0, np.float32)

    def __len__(self) -> int:
        return len(self.ids)

    def hold(self, at: int) -> None:
        """Choose a candidate."""
        self.held.append(at)

    def mark(self) -> None:
        """Remember the candidates of now as those to begin with."""
        self._begun, self._begun_expanded = len(self), frozenset(self.expanded)

    def release(self) -> None:
        """Let go of all that is held, and of the candidates that joined since the mark."""
        self.held.clear()
        self._read = 0
        self.expanded = set(self._begun_expanded)
        if self._begun < len(self):
            for doc_id in self.ids[self._begun :]:
                del self.at[doc_id]
            for column in (
                self.ids,
                self.documents,
                self.found_by,
                self._texts,
                self._keys,
                self._rows,
                self._metadata,
            ):
                del column[self._begun :]
            self._has, self._base, self._raw = (
                self._has[: self._begun],
                self._base[: self._begun],
                self._raw[: self._begun],
            )
            self._link()
        self._context = np.zeros(len(self), np.float32)

    def hit(self, at: int, score: float) -> Hit:
        return Hit(
            self.ids[at],
            score,
            tuple(RetrieverScore(name, value) for name, value in self.found_by[at].items()),
        )

    # ------------------------------------------------------------------------------------------------ joining

    def join(self, documents: Sequence[Document], why: Mapping[DocId, Mapping[str, float]]) -> None:
        """Add those that are not in the pool yet; `why` says who found each."""
        new = [document for document in documents if document.doc_id not in self.at]
        if not new:
            return
        before = len(self)
        for document in new:
            self.at[document.doc_id] = len(self.ids)
            self.ids.append(document.doc_id)
        self.documents += new
        self.found_by += [why.get(document.doc_id, {}) for document in new]
        self._rows += self.links.rows([document.doc_id for document in new])
        self._describe(new)
        self._link()
        self._context = np.concatenate([self._context, np.zeros(len(new), np.float32)])
        self._read_context(self.held[: self._read], range(before, len(self)))

    def _describe(self, new: Sequence[Document]) -> None:
        """Words, ranks and metadata: what a candidate is worth without the others."""
        asked = self.asked
        texts, titles = (
            [_padded(one.text[:LETTERS]) for one in new],
            [_padded(one.title) for one in new],
        )
        self._keys += [
            (_padded(bare_title(one.title)) if ")" in one.title else title).strip()
            for one, title in zip(new, titles)
        ]
        in_text, in_title = _counts(texts, asked.patterns), _counts(titles, asked.patterns)
        tf = in_text + in_title
        lengths = np.array([len(text) for text in texts], np.float32)
        norm = K1 * (1 - B + B * lengths / max(self.links.letters, 1.0))
        raw = (tf * (K1 + 1) / (tf + norm[:, None])) @ asked.weights
        near = [self._dense.get(one.doc_id) for one in new]
        words = np.array([max(title.count(" ") - 1, 1) for title in titles], np.float32)
        base = np.zeros((len(new), len(FEATURES)), np.float32)
        base[:, COLUMN["bm25_rank"]] = [1 / self._bm25.get(one.doc_id, np.inf) for one in new]
        base[:, COLUMN["dense"]] = [
            (one[1] if one else self._dense_low) / self._dense_top for one in near
        ]
        base[:, COLUMN["dense_rank"]] = [1 / one[0] if one else 0 for one in near]
        base[:, COLUMN["title_asked"]] = np.minimum((in_title > 0).sum(axis=1) / words, 1)
        base[:, COLUMN["asked_title"]] = (in_title > 0) @ asked.weights
        base[:, COLUMN["covered"]] = (tf > 0) @ asked.weights
        base[:, COLUMN["question_words"]] = min(asked.words, 50)
        base[:, COLUMN["question_names"]] = min(len(asked.names), 8)
        base[:, COLUMN["question_compares"]] = asked.compares
        if asked.metadata is not None:
            carried = [frozenset(matching_metadata(asked.metadata, one)) for one in new]
            self._metadata += carried
        self._texts += texts
        self._has = np.concatenate([self._has, tf > 0])
        self._base = np.concatenate([self._base, base])
        self._raw = np.concatenate([self._raw, raw.astype(np.float32)])

    def _link(self) -> None:
        """What follows from names and titles, for all candidates anew: a new one may name an old one."""
        links, n = self.links, len(self)
        rows = np.array(self._rows, dtype=np.int64)
        borne, said = links.borne.gather(rows), links.mentioned.gather(rows)
        # Names as small numbers, so that what is asked of a name is one look into a table.
        names, codes = np.unique(np.concatenate([borne[0], said[0]]), return_inverse=True)
        self._b, self._b_of = codes[: len(borne[0])], borne[1]
        self._m, self._m_of = codes[len(borne[0]) :], said[1]
        self._asked = np.isin(names, self.asked.names)
        self._share = (1 / np.maximum(links.bearing[names], 1)).astype(np.float32)
        self._rare = links.rarity[names].astype(np.float32)
        self._title = _coded(self._keys)
        base = self._base
        base[:, COLUMN["bm25"]] = bm25 = self._raw / (self._raw.max() or 1.0)
        base[:, COLUMN["namesakes"]] = np.minimum(np.bincount(self._title)[self._title], 10)
        base[:, COLUMN["namesake_bm25"]] = self._beside_namesakes(bm25)
        mine = self._asked[self._b]
        base[:, COLUMN["named"]] = _highest(self._b_of[mine], self._share[self._b[mine]], n)
        base[:, COLUMN["named_best"]] = best = self._best_named(bm25, mine)
        self._names = names
        self.good = ((bm25 + np.maximum(base[:, COLUMN["dense"]], 0) + best) / 3).astype(np.float32)
        self._settled = False

    def _settle(self) -> None:
        """What candidates say of one another: computed when a choice needs it, since most joining is followed by more."""
        base = self._base
        self._had = self._names_had(self._names)
        base[:, COLUMN["names_had"]] = self._had.mean(axis=1) if self._had.shape[1] else 0
        saying, bearing = self._best_two(self._m, self._m_of), self._best_two(self._b, self._b_of)
        base[:, COLUMN["support_out"]] = self._supported(saying, self._b, self._b_of, self._share)
        base[:, COLUMN["support_in"]] = self._supported(bearing, self._m, self._m_of, self._rare)
        unasked = np.where(self._asked, np.float32(0), self._rare)
        base[:, COLUMN["support_shared"]] = self._supported(saying, self._m, self._m_of, unasked)
        if self._metadata:
            named = sorted(set().union(*self._metadata))
            self._carries = np.array(
                [[one in carried for one in named] for carried in self._metadata], np.bool_
            ).reshape(len(self), -1)
            base[:, COLUMN["agrees"]] = self._carries.mean(axis=1) if named else 0
        self._settled = True

    def _beside_namesakes(self, values: Floats) -> Floats:
        top = np.zeros(int(self._title.max()) + 1, np.float32)
        np.maximum.at(top, self._title, values)
        return np.divide(
            values, top[self._title], out=np.zeros_like(values), where=top[self._title] > 0
        )

    def _best_named(self, bm25: Floats, mine: Bools) -> Floats:
        """1 for the best by BM25 of those who bear each name of the question."""
        best = np.zeros(len(self), np.float32)
        name, of = self._b[mine], self._b_of[mine]
        order = np.lexsort((of, -bm25[of], name))
        first = np.flatnonzero(np.diff(name[order], prepend=-1))
        best[of[order][first]] = 1
        return best

    def _names_had(self, names: Ints) -> Bools:
        """Which of the question's names each candidate bears or mentions: (candidates, names)."""
        column = np.full(len(names), -1, np.int64)
        column[self._asked] = np.arange(int(self._asked.sum()))
        had = np.zeros((len(self), len(self.asked.names)), np.bool_)
        for code, of in ((self._b, self._b_of), (self._m, self._m_of)):
            known = column[code] >= 0
            had[of[known], column[code[known]]] = True
        return had

    def _best_two(self, names: Ints, of: Ints) -> tuple[Ints, Ints]:
        """For each name the best and the second best of the candidates that have it, -1 where there is none."""
        order = np.lexsort((-self.good[of], names))
        name, who = names[order], of[order]
        start = np.flatnonzero(np.diff(name, prepend=-1))
        best, second = np.full(len(self._share), -1), np.full(len(self._share), -1)
        best[name[start]] = who[start]
        after = start + 1
        some = after < np.append(start[1:], len(name))
        second[name[start[some]]] = who[after[some]]
        return best, second

    def _supported(self, two: tuple[Ints, Ints], names: Ints, of: Ints, worth: Floats) -> Floats:
        """For each candidate the best other one that it shares a name with: goodness times worth of the name."""
        best, second = two[0][names], two[1][names]
        other = np.where(best != of, best, second)
        value = np.where(other >= 0, self.good[other] * worth[names], 0).astype(np.float32)
        return _highest(of, value, len(self))

    def _read_context(self, held: Sequence[int], candidates: range) -> None:
        """How much of the question stands around the places where something held names a candidate."""
        for at in held:
            text = self._texts[at]
            for other in candidates:
                key = self._keys[other]
                if key and other != at and (found := text.find(f" {key} ")) >= 0:
                    around = text[max(0, found - AROUND) : found + len(key) + AROUND]
                    has = np.array([pattern in around for pattern in self.asked.patterns], np.bool_)
                    self._context[other] = max(
                        self._context[other], float(self.asked.weights[has].sum())
                    )

    # ------------------------------------------------------------------------------------------------ choosing

    def features(self) -> Floats:
        """(candidates, features), given what is held now."""
        if not len(self):
            return self._base.copy()
        if not self._settled:
            self._settle()
        rows, asked, held = self._base.copy(), self.asked, self.held
        free = np.ones(len(self), np.bool_)
        free[held] = False
        covered = self._has[held].any(axis=0)
        adds = ((self._has & ~covered) @ asked.weights).astype(np.float32)
        rows[:, COLUMN["adds"]] = adds
        rows[:, COLUMN["adds_best"]] = adds / (adds[free].max(initial=0) or 1)
        rows[:, COLUMN["adds_namesake"]] = self._beside_namesakes(np.where(free, adds, 0))
        rows[:, COLUMN["held"]] = len(held)
        rows[:, COLUMN["held_covers"]] = asked.weights[covered].sum()
        if self._had.shape[1]:
            new = ~self._had[held].any(axis=0)
            rows[:, COLUMN["names_added"]] = (self._had & new).mean(axis=1)
            rows[:, COLUMN["names_left"]] = new.mean()
        if self._metadata and self._carries.shape[1]:
            rows[:, COLUMN["agrees_new"]] = (self._carries & ~self._carries[held].any(axis=0)).mean(
                axis=1
            )
        if held:
            self._read_context(held[self._read :], range(len(self)))
            self._read = len(held)
            self._linked(rows, ~free)
        return rows

    def _linked(self, rows: Floats, held: Bools) -> None:
        n, codes = len(self), len(self._share)
        said, own = np.zeros(codes, np.bool_), np.zeros(codes, np.bool_)
        said[self._m[held[self._m_of]]] = True
        own[self._b[held[self._b_of]]] = True
        free = ~held[self._b_of]
        leads = said[self._b] & free
        rows[:, COLUMN["from_held"]] = _highest(self._b_of[leads], self._share[self._b[leads]], n)
        leads &= ~self._asked[self._b]
        rows[:, COLUMN["bridge"]] = bridge = _highest(
            self._b_of[leads], self._share[self._b[leads]], n
        )
        rows[:, COLUMN["bridge_context"]] = np.where(
            rows[:, COLUMN["from_held"]] > 0, self._context, 0
        )
        rows[:, COLUMN["bridges"]] = np.minimum((bridge > 0).sum(), 20)
        into = own[self._m] & ~held[self._m_of]
        rows[:, COLUMN["into_held"]] = _highest(self._m_of[into], self._rare[self._m[into]], n)
        both = said[self._m] & ~held[self._m_of] & ~self._asked[self._m]
        rows[:, COLUMN["shared"]] = _highest(self._m_of[both], self._rare[self._m[both]], n)
        rows[:, COLUMN["same_title"]] = np.isin(self._title, self._title[held])


_SIGNS = re.escape("".join(char for char in map(chr, range(128)) if not char.isalnum())) + "–—‘’“”…"
_GAPS = re.compile(rf"[\s{_SIGNS}]+")


def _padded(text: str) -> str:
    """The words in small letters between blanks. Elsewhere than in ASCII quicker than tokens, and alike but for rare signs."""
    if text.isascii():
        return " " + " ".join(tokens(text)) + " "
    return " " + _GAPS.sub(" ", text.casefold()).strip() + " "


def _counts(texts: Sequence[str], patterns: Sequence[str]) -> Floats:
    counted = [[text.count(one) for one in patterns] for text in texts]
    return np.array(counted, np.float32).reshape(len(texts), len(patterns))


def _coded(texts: Sequence[str]) -> Ints:
    """Equal texts as equal small numbers; an empty one equals no other."""
    codes: dict[str, int] = {}
    return np.array(
        [codes.setdefault(text or f"\0{at}", len(codes)) for at, text in enumerate(texts)],
        dtype=np.int64,
    )


def _highest(of: Ints, values: Floats, n: int) -> Floats:
    """The highest value of each candidate, 0 where it has none."""
    top = np.zeros(n, np.float32)
    np.maximum.at(top, of, values)
    return top
