"""The set scorer's training data: questions, held documents, and candidates that are needed next or
not.

A state is a question, some held documents (gold ones, and sometimes wrong ones, as in real use),
the gold documents that are still missing, and unneeded candidates from the question's pool, the
likeliest first. If a data set gives the order of its hops, the document of the next hop has full
weight and later ones half.

HotpotQA and 2WikiMultihopQA have further questions, which are never judged. Each comes with ten
paragraphs, which are its pool.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets import load
from suffice.retrieval.corpus import searchable_text
from suffice.text import tokens
from suffice_research.bridge_quality import PairTokenizer, TokenPair

__all__ = [
    "PackedStates",
    "ScorerQuestion",
    "ScorerState",
    "further_questions",
    "joined_states",
    "load_questions",
    "pack_pairs",
    "pack_states",
    "training_states",
    "unlabelled_pairs",
]

WRONG = 12  # unneeded candidates per state
LATER = 0.5  # weight of a document of a later hop
FURTHER = {  # the file, and what stands between two sentences of a paragraph
    "hotpotqa": ("hotpotqa/hotpotqa_dev.json.gz", ""),
    "2wikimultihopqa": ("2wikimultihopqa/2wikimultihopqa_dev.json.gz", " "),
}


@dataclass(frozen=True)
class ScorerQuestion:
    """One question: its gold in the order of the hops, if known, and its pool, best first. Texts
    include their titles.
    """

    set: str
    text: str
    gold: tuple[str, ...]
    ordered: bool
    pool: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScorerState:
    question: int
    held: tuple[str, ...]
    candidates: tuple[str, ...]
    needed: tuple[float, ...]  # 1 for the next hop, LATER for later ones, 0 if not needed


def load_questions(data: Path, name: str) -> list[ScorerQuestion]:
    """The questions of a data set, without pools."""
    found = load(name, data / name)
    texts = {document.doc_id: searchable_text(document) for document in found.documents()}
    order = musique_order(data / name) if name == "musique" else {}
    rows = []
    for example in found.questions():
        gold = [texts[doc_id] for doc_id in sorted(example.gold.doc_ids)]
        hops = order.get(example.question.question_id, [])
        known = len(hops) == len(gold) and set(hops) == set(gold)
        rows.append(
            ScorerQuestion(name, example.question.text, tuple(hops if known else gold), known)
        )
    return rows


def further_questions(
    data: Path, name: str, judged: Iterable[str], *, most: int, seed: int
) -> list[ScorerQuestion]:
    """At most so many questions that are not judged, equally many of each type that is left."""
    file, between = FURTHER[name]
    rows = json.loads(gzip.decompress((data / file).read_bytes()))
    seen = {_words(one) for one in judged}
    types: dict[str, list[ScorerQuestion]] = {}
    for row in rows:
        gold_titles = {title for title, _ in row["supporting_facts"]}
        texts = {title: f"{title}\n{between.join(lines)}" for title, lines in row["context"]}
        key = _words(row["question"])
        if key in seen or not gold_titles <= set(texts):
            continue
        seen.add(key)
        gold = tuple(text for title, text in texts.items() if title in gold_titles)
        one = ScorerQuestion(name, row["question"], gold, False, tuple(texts.values()))
        types.setdefault(str(row.get("type")), []).append(one)
    draw = np.random.default_rng(seed)
    chosen: list[ScorerQuestion] = []
    for left, questions in zip(
        range(len(types), 0, -1), sorted(types.values(), key=len), strict=True
    ):
        share = (most - len(chosen)) // left
        chosen += [questions[at] for at in draw.permutation(len(questions))[:share].tolist()]
    return chosen


def _words(question: str) -> str:
    return " ".join(tokens(question))


def musique_order(folder: Path) -> dict[str, list[str]]:
    """The supporting paragraphs of each question in the order of its decomposition."""
    order = {}
    for path in sorted(folder.glob("*.json*")):
        rows = json.loads(path.read_text(encoding="utf-8"))
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and "question_decomposition" in row:
                paragraphs = {
                    one["idx"]: f"{one['title']}\n{one['paragraph_text']}"
                    for one in row["paragraphs"]
                }
                steps = [
                    paragraphs[one["paragraph_support_idx"]]
                    for one in row["question_decomposition"]
                ]
                order[row["id"]] = list(dict.fromkeys(steps))
    return order


def training_states(
    questions: Sequence[ScorerQuestion], *, rounds: int, seed: int
) -> list[ScorerState]:
    """Two states of each question per round: one with nothing held, one with some of its gold or
    with wrong documents.
    """
    draw = np.random.default_rng(seed)
    return [
        _lesson(at, one, held, draw)
        for _ in range(rounds)
        for at, one in enumerate(questions)
        for held in _states(one, draw)
    ]


def _states(one: ScorerQuestion, draw: np.random.Generator) -> list[list[str]]:
    wrong = [text for text in one.pool[:12] if text not in one.gold]
    count = int(draw.integers(0, len(one.gold)))
    gold = (
        list(one.gold[:count])
        if one.ordered and draw.random() < 0.7
        else _some(one.gold, count, draw)
    )
    others = (
        _some(wrong, int(draw.integers(1, 3)), draw) if draw.random() < 0.35 or not gold else []
    )
    held = [*gold, *others]
    draw.shuffle(held)
    return [[], held]


def _lesson(
    at: int, one: ScorerQuestion, held: Sequence[str], draw: np.random.Generator
) -> ScorerState:
    missing = [text for text in one.gold if text not in held]
    needed = [1.0 if place == 0 or not one.ordered else LATER for place in range(len(missing))]
    rest = [text for text in one.pool if text not in one.gold and text not in held]
    wrong = _some(rest[:16], WRONG * 2 // 3, draw)
    wrong += _some(rest[16:80], WRONG - len(wrong), draw)
    return ScorerState(at, tuple(held), (*missing, *wrong), (*needed, *([0.0] * len(wrong))))


def _some(texts: Sequence[str], count: int, draw: np.random.Generator) -> list[str]:
    return [texts[at] for at in draw.permutation(len(texts))[:count].tolist()]


# ---- tokens


@dataclass(frozen=True)
class PackedStates:
    """States as tokens: arrays over all tokens, over pairs, and over states."""

    ids: npt.NDArray[np.int16]
    lengths: npt.NDArray[np.int16]  # tokens of each pair
    seconds: npt.NDArray[np.int16]  # where its candidate starts
    needed: npt.NDArray[np.float32]  # of each pair
    counts: npt.NDArray[np.int16]  # pairs of each state
    question: npt.NDArray[np.int32]  # of each state

    def table(self, states: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The pairs of these states, -1 where a state has no more: (states, most pairs)."""
        counts = self.counts.astype(np.int64)
        starts = (np.cumsum(counts) - counts)[states, None]
        at = np.arange(counts[states].max(initial=1))[None]
        return np.asarray(np.where(at < counts[states, None], starts + at, -1))

    def of(self, states: npt.NDArray[Any]) -> PackedStates:
        """Only these states."""
        pairs = self.table(states)
        pairs = pairs[pairs >= 0]
        lengths = self.lengths.astype(np.int64)
        ends = np.cumsum(lengths)
        ids = [self.ids[ends[at] - lengths[at] : ends[at]] for at in pairs.tolist()]
        return PackedStates(
            np.concatenate([*ids, np.zeros(0, np.int16)]),
            self.lengths[pairs], self.seconds[pairs], self.needed[pairs],
            self.counts[states], self.question[states],
        )  # fmt: skip


def joined_states(parts: Sequence[PackedStates]) -> PackedStates:
    names = list(PackedStates.__dataclass_fields__)
    return PackedStates(*(np.concatenate([getattr(one, name) for one in parts]) for name in names))


def pack_states(
    texts: Sequence[str], states: Sequence[ScorerState], layout: PairTokenizer
) -> PackedStates:
    """The states as tokens; `texts` are the questions."""
    pairs = [layout.pairs(texts[one.question], one.held, one.candidates) for one in states]
    packed = pack_pairs([pair for some in pairs for pair in some])
    return replace(
        packed,
        needed=np.array([one for state in states for one in state.needed], np.float32),
        counts=np.array([len(some) for some in pairs], np.int16),
        question=np.array([one.question for one in states], np.int32),
    )


def pack_pairs(pairs: Sequence[TokenPair]) -> PackedStates:
    """Pairs without labels, each a state of its own."""
    return PackedStates(
        ids=np.fromiter((token for pair in pairs for token in pair.ids), np.int16),
        lengths=np.array([len(one.ids) for one in pairs], np.int16),
        seconds=np.array([one.second for one in pairs], np.int16),
        needed=np.zeros(len(pairs), np.float32),
        counts=np.ones(len(pairs), np.int16),
        question=np.zeros(len(pairs), np.int32),
    )


def unlabelled_pairs(
    questions: Sequence[ScorerQuestion], layout: PairTokenizer, *, count: int, seed: int
) -> list[TokenPair]:
    """Sentences of passages as questions, each with passages of one pool: input that a teacher can
    score without labels.
    """
    draw, pairs = np.random.default_rng(seed), list[TokenPair]()
    for _ in range(count):
        pool = questions[int(draw.integers(len(questions)))].pool
        source = pool[int(draw.integers(min(40, len(pool))))]
        sentences = [one for one in source.partition("\n")[2].split(". ") if len(one.split()) > 5]
        if sentences:
            others = [pool[int(at)] for at in draw.integers(0, len(pool), 4)]
            own = [source] if draw.random() < 0.3 else []
            sentence = sentences[int(draw.integers(len(sentences)))]
            pairs += layout.pairs(sentence, (), [*own, *others])
    return pairs
