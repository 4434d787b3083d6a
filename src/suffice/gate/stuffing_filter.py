"""The stuffing filter of a hardened gate: drop hits stuffed with the question's words.

The gate counts what the hits contain together, and any document adds to that, whoever wrote it.
Stuffed words are close together, in the question's order, and unrelated to the rest of their
document. Or they are in a title that the text does not support, or in every hit alike. So the
filter looks at each hit's *cluster*: the stretch of text that contains most of the question's words
beyond those of its title.

Two classifiers over these columns and the gate's predict whether the words were stuffed, and
whether the hit is evidence. True evidence also restates its question: a likely evidence hit is
dropped only if stuffing is sure, any other hit if it is suspect. In the remaining hits, a repeated
sentence is read once. `suffice_research.training.stuffing_filter` trains the shipped filter.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from ahocorasick_rs import BytesAhoCorasick, Implementation

from suffice.errors import NotReadyError
from suffice.gate.extraction import (
    MAX_TITLE_CHARS,
    FeatureBatch,
    Passage,
    featurize,
    parse_passage,
    text_with_byline,
)
from suffice.gate.features import HIT_COLUMNS, RELATIVE_HIT_COLUMNS
from suffice.gate.hits import MAX_PASSAGE_CHARS, NormalizedHits
from suffice.gate.model import BinaryClassifier, hit_features
from suffice.gate.question import STOP_WORDS, ParsedQuestion, WordTable, encode_text, normalize
from suffice.storage import new_artefact, open_artefact, write_atomically
from suffice.storage.artefacts import data_errors, read_json

Floats = npt.NDArray[np.floating[Any]]
Match = tuple[int, int, int]  # word of the question, start, end
FILTER_KIND, FILTER_VERSION, FILTER_RECORD = "stuffing filter", 2, "filter.json"
SHIPPED_FILTER = Path(__file__).parent.parent / "models" / "stuffing-filter"
REBUILD_FILTER = "python -m suffice_research.training.stuffing_filter --data DIR"
_CLASSIFIERS, _THRESHOLDS = ("evidence", "stuffed"), ("likely", "suspect", "sure")
CLUSTER_BYTES = 160
CONTEXT_BYTES = 40  # before and after a cluster
FAR = 400  # bytes from either end of a text; longer distances count the same
# Limits on the time that hostile input can take.
MAX_MATCHES = 400  # occurrences of the question's words in one hit
MAX_COMPARED_HITS = 50
MIN_SENTENCE_CHARS = 20  # shorter sentences may repeat by chance
_SENTENCE_END = re.compile(r"[.!?\n](?:\s+|$)")

SUPPORT_COLUMNS = {
    "title_borne_out": "Share of its title's words, by rarity, that stand in its text; -1 without.",
    "filled": "Share of its text that is words of the question.",
    "length": "How long its text is, in units of 400 bytes, up to 2.5.",
    "crowd": "Share of the question's words, by rarity, that its cluster holds and its title not.",
    "apart": "The same of its text outside the cluster.",
    "crowd_names": "How many of the question's names stand in its cluster.",
    "crowd_filled": "Share of the cluster that is words of the question.",
    "crowd_order": "Longest run of words in the cluster that stand so in the question, up to 8.",
    "crowd_tied": "Share of the other words around it that stand elsewhere, too; -1 without any.",
    "crowd_new": "How many other words stand around the cluster.",
    "crowd_again": "How often the cluster stands in its text once more, up to 5.",
    "crowd_elsewhere": "How many other hits hold the same cluster, up to 5.",
    "crowd_from_end": "How far the cluster is from the end of the text, in 400 bytes, up to 1.",
    "crowd_from_start": "The same from the start.",
    "alike": "Share of its names that the hit most like it has, too.",
}
FILTER_COLUMNS = len(HIT_COLUMNS) + 2 * len(RELATIVE_HIT_COLUMNS) + len(SUPPORT_COLUMNS)


@dataclass(frozen=True)
class StuffingFilter:
    """Two classifiers, and the thresholds for their probabilities."""

    evidence: BinaryClassifier
    stuffed: BinaryClassifier
    likely: float  # evidence
    suspect: float  # stuffing
    sure: float  # stuffing

    def filter_hits(
        self, hits: Sequence[NormalizedHits], questions: Sequence[ParsedQuestion], words: WordTable
    ) -> list[NormalizedHits]:
        """The hits of each question without stuffed ones and repeated sentences; maybe none."""
        batch = featurize(hits, questions, words)
        kept = self.keeps(stuffing_features(batch, words))
        ends = list(accumulate(len(one.hits) for one in batch.extractions))
        parts = (kept[start:end].tolist() for start, end in zip([0, *ends], ends))
        pairs = zip(batch.hits, parts, strict=True)
        return [drop_repeated_sentences(_keep_hits(*one)) for one in pairs]

    def keeps(self, rows: Floats) -> npt.NDArray[np.bool_]:
        """Whether each hit stays, by its stuffing_features."""
        stuffed, evidence = self.stuffed.p(rows), self.evidence.p(rows)
        return (stuffed <= self.suspect) | ((stuffed <= self.sure) & (evidence >= self.likely))

    def save(self, path: Path, *, card: Mapping[str, Any], seed: int) -> None:
        """Write the filter as one artefact folder; `card` describes how it was made."""
        settings = {**card, "schema": _schema()}
        about: dict[str, Any] = {"settings": settings, "seed": seed}
        with new_artefact(Path(path), kind=FILTER_KIND, version=FILTER_VERSION, **about) as folder:
            record = {name: getattr(self, name) for name in _THRESHOLDS}
            for name in _CLASSIFIERS:
                record[name] = getattr(self, name).save(folder / f"{name}.onnx")
            write_atomically(folder / FILTER_RECORD, json.dumps(record, sort_keys=True) + "\n")

    @classmethod
    def load(cls, path: Path | None = None) -> StuffingFilter:
        """Load the filter in a folder; without a path, the shipped one."""
        folder = SHIPPED_FILTER if path is None else Path(path)
        manifest = open_artefact(
            folder, kind=FILTER_KIND, version=FILTER_VERSION, rebuild=REBUILD_FILTER
        )
        if manifest.settings.get("schema") != _schema():
            raise NotReadyError(
                f"{folder} has other columns than this suffice", hint=REBUILD_FILTER
            )
        with data_errors(f"the stuffing filter in {folder}", hint=REBUILD_FILTER):
            record = read_json(folder / FILTER_RECORD)
            evidence, stuffed = (
                BinaryClassifier.load(folder / f"{name}.onnx", record[name])
                for name in _CLASSIFIERS
            )
            thresholds = [float(record[name]) for name in _THRESHOLDS]
            fits = {evidence.columns, stuffed.columns} == {FILTER_COLUMNS}
            if not fits or not all(0 <= one <= 1 for one in thresholds):
                raise ValueError("its parts do not fit together")
            return cls(evidence, stuffed, *thresholds)


def stuffing_features(batch: FeatureBatch, words: WordTable) -> Floats:
    """(hits of all questions, FILTER_COLUMNS): the gate's columns, and support_features."""
    support = [
        support_features(
            question, [(one.title, text_with_byline(one)) for one in hits.documents], words
        )
        for question, hits in zip(batch.questions, batch.hits, strict=True)
    ]
    return hit_features(batch.extractions, support)


def drop_repeated_sentences(hits: NormalizedHits) -> NormalizedHits:
    """Each hit without the sentences of the hits before it.

    An author of one document can put the same text into many, and hits that share a text seem to
    support each other.
    """
    documents = dict(hits.evidence.documents)
    known: set[str] = set()
    for document in hits.documents:
        sentences = _SENTENCE_END.split(document.text[:MAX_PASSAGE_CHARS])
        if not known.isdisjoint(sentences):
            text = ". ".join([one for one in sentences if one not in known]).strip()
            documents[document.doc_id] = replace(document, text=text)
        known.update([one for one in sentences if len(one) >= MIN_SENTENCE_CHARS])
    return replace(hits, evidence=replace(hits.evidence, documents=documents))


def _schema() -> str:
    """A hash of all columns."""
    columns = [HIT_COLUMNS, RELATIVE_HIT_COLUMNS, list(SUPPORT_COLUMNS)]
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()


def _keep_hits(hits: NormalizedHits, kept: Sequence[bool]) -> NormalizedHits:
    if all(kept):
        return hits
    left = tuple(hit for hit, keep in zip(hits.evidence.hits, kept, strict=True) if keep)
    ids = {hit.doc_id for hit in left}
    duplicates = {one: others for one, others in hits.duplicates.items() if one in ids}
    return NormalizedHits(replace(hits.evidence, hits=left), duplicates)


def filter_notes(given: NormalizedHits, kept: NormalizedHits) -> tuple[str, ...]:
    """A sentence on how many hits were dropped, so that the verdict does not seem to cover them."""
    count = len(given.evidence.hits)
    if not (dropped := count - len(kept.evidence.hits)):
        return ()
    return (
        f"Not read: {dropped:,} of {count:,} hits, which seem stuffed with the question's words.",
    )


class _Cluster(NamedTuple):
    weight: float
    start: int
    end: int
    words: frozenset[int]  # by their position in the question


class _Hit(NamedTuple):
    """One hit, reduced to the question's words, given by their position in the question."""

    flat: bytes
    text_at: int
    filled: float
    apart: frozenset[int]
    cluster: _Cluster
    title_support: float


def support_features(
    question: ParsedQuestion, hits: Sequence[tuple[str, str]], words: WordTable
) -> Floats:
    """(hits, SUPPORT_COLUMNS), float32, from the title and text of each hit."""
    passages = [parse_passage(*one) for one in hits]
    if not passages or not question.stems:
        return np.zeros((len(passages), len(SUPPORT_COLUMNS)), np.float32)
    return _Support(question, [title for title, _ in hits], passages, words).rows()


class _Support:
    """One question and its hits."""

    def __init__(
        self,
        question: ParsedQuestion,
        titles: Sequence[str],
        passages: Sequence[Passage],
        words: WordTable,
    ) -> None:
        self.question, self.words = question, words
        self.total = sum(question.rarity) or 1.0
        self.follows = set(pairwise(question.tokens))
        self.begins = tuple(stem.strip() for stem in question.stems)
        self.alike = _name_overlap([one.names for one in passages])
        # This automaton is the fastest to build.
        finder = BytesAhoCorasick(question.stems, implementation=Implementation.NoncontiguousNFA)
        self.hits = [
            self._hit(one, title, finder.find_matches_as_indexes(one.flat, overlapping=True))
            for one, title in zip(passages, titles, strict=True)
        ]

    def rows(self) -> Floats:
        rows = [self._row(at, hit) for at, hit in enumerate(self.hits)]
        return np.array(rows, dtype=np.float32).reshape(-1, len(SUPPORT_COLUMNS))

    def _hit(self, passage: Passage, title: str, matches: Sequence[Match]) -> _Hit:
        matches = matches[:MAX_MATCHES]
        text_at = len(normalize(encode_text(title[:MAX_TITLE_CHARS]))) - 1 if title else 0
        in_title = {which for which, start, _ in matches if start < text_at}
        own = [one for one in matches if one[1] >= text_at]
        foreign = [one for one in own if one[0] not in in_title]
        length = max(len(passage.flat) - text_at, 1)
        filled = min(sum([end - start for _, start, end in own]) / length, 1.0)
        cluster = _densest_cluster(foreign, self.question.rarity)
        apart = frozenset(
            which for which, start, end in foreign if end <= cluster.start or start >= cluster.end
        )
        support = -1.0
        if passage.has_text:
            support = self._share_in(passage.words, passage.flat[text_at:])
        return _Hit(passage.flat, text_at, filled, apart, cluster, support)

    def _share_in(self, words: Sequence[bytes], text: bytes) -> float:
        """The share of the words, weighted by rarity, that are in a text; -1 without any words."""
        rare = self.words.rarities(words)
        whole = sum(rare)
        inside = [one for word, one in zip(words, rare, strict=True) if b" %b " % word in text]
        return sum(inside) / whole if whole else -1.0

    def _row(self, at: int, hit: _Hit) -> list[float]:
        question, cluster, flat = self.question, hit.cluster, hit.flat
        whole = hit.title_support, hit.filled, min((len(flat) - hit.text_at) / FAR, 2.5)
        if not cluster.words:
            return [*whole, *[0.0] * 5, -1.0, 0, 0, 0, 1, 1, self.alike[at]]
        core = flat[cluster.start : cluster.end]
        filled = sum(len(question.stems[which]) for which in cluster.words) / max(len(core), 1)
        near_names = flat[max(cluster.start - 1, 0) : cluster.end + CONTEXT_BYTES]
        again = elsewhere = 0
        if len(cluster.words) > 1:
            others = [one.flat for i, one in enumerate(self.hits[:MAX_COMPARED_HITS]) if i != at]
            again, elsewhere = flat.count(core) - 1, sum(core in other for other in others)
        return [
            *whole, cluster.weight / self.total,
            sum(map(question.rarity.__getitem__, hit.apart)) / self.total,
            sum(name in near_names for name in question.names), min(filled, 1.0),
            self._longest_run(core.split()), *self._context(hit), min(again, 5), min(elsewhere, 5),
            min((len(flat) - cluster.end) / FAR, 1.0),
            min((cluster.start - hit.text_at) / FAR, 1.0), self.alike[at],
        ]  # fmt: skip

    def _longest_run(self, tokens: Sequence[bytes]) -> int:
        """The length of the longest run of words in the same order as in the question."""
        longest = run = 0
        for pair in pairwise(tokens):
            run = run + 1 if pair in self.follows else 0
            longest = max(longest, run)
        return min(longest, 8)

    def _context(self, hit: _Hit) -> tuple[float, int]:
        """The other words around the cluster: the share found elsewhere, and their number."""
        start = max(hit.cluster.start - CONTEXT_BYTES, hit.text_at)
        end = hit.cluster.end + CONTEXT_BYTES
        around = dict.fromkeys(hit.flat[start:end].split()[1:-1])  # the outer words may be cut
        new = [one for one in around if one not in STOP_WORDS and not one.startswith(self.begins)]
        return self._share_in(new, hit.flat[:start] + b" " + hit.flat[end:]), len(new)


def _densest_cluster(matches: Iterable[Match], rarity: Sequence[float]) -> _Cluster:
    """The stretch that contains most of the question, weighted by rarity; the first of equals."""
    best, first, weight, found = _Cluster(0.0, 0, 0, frozenset()), 0, 0.0, list(matches)
    inside: Counter[int] = Counter()
    for which, _, end in found:
        weight += 0.0 if inside[which] else rarity[which]
        inside[which] += 1
        while end - found[first][1] > CLUSTER_BYTES and found[first][2] < end:
            gone = found[first][0]
            inside[gone] -= 1
            weight -= 0.0 if inside[gone] else rarity[gone]
            first += 1
        if weight > best.weight + 1e-9:
            words = frozenset(one for one, count in inside.items() if count)
            best = _Cluster(weight, found[first][1], end, words)
    return best


def _name_overlap(names: Sequence[frozenset[bytes]]) -> list[float]:
    """For each hit, the share of names in common with the hit most similar to it."""
    others = list(enumerate(names[:MAX_COMPARED_HITS]))
    return [
        max(
            (len(own & one) / max(len(own), len(one), 1) for i, one in others if i != at),
            default=0.0,
        )
        for at, own in enumerate(names)
    ]
