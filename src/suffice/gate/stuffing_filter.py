"""What stands in several hits supports the question once: a sentence that one hit has said is cut from those behind it.

Whoever can write a document can write the same into many. Hits that share a text seem to speak of the same things, which the
gate takes for evidence that hangs together; so a hardened gate reads such a text where it stands first, and nowhere else.
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

from suffice.errors import DataError, NotReadyError, SufficeError
from suffice.gate import question
from suffice.gate.extraction import (
    HIT_COLUMNS,
    MAX_PASSAGE_CHARS,
    MAX_TITLE_CHARS,
    Passage,
    parse_passage,
)
from suffice.gate.features import RELATIVE_HIT_COLUMNS
from suffice.gate.featurize import FeatureBatch, featurize, text_with_byline
from suffice.gate.hits import NormalizedHits
from suffice.gate.model import BinaryClassifier, hit_features
from suffice.gate.question import STOP_WORDS, ParsedQuestion, WordTable
from suffice.storage import new_artefact, open_artefact, read_json_object, write_atomically

__all__ = [
    "FILTER_COLUMNS",
    "SUPPORT_COLUMNS",
    "StuffingFilter",
    "drop_repeated_sentences",
    "stuffing_features",
    "support_features",
]


MIN_SENTENCE_CHARS = 20  # characters of a sentence that nobody says twice by chance
_SENTENCE_END = re.compile(r"[.!?\n](?:\s+|$)")


def drop_repeated_sentences(taken: NormalizedHits) -> NormalizedHits:
    """The list, each hit without what a hit before it has said."""
    documents = dict(taken.evidence.documents)
    known: set[str] = set()
    for hit in taken.evidence.hits:
        document = documents[hit.doc_id]
        said = _SENTENCE_END.split(
            document.text[:MAX_PASSAGE_CHARS]
        )  # what is cut brings nothing into view that would not have been read
        if not known.isdisjoint(said):
            documents[hit.doc_id] = replace(
                document, text=". ".join([one for one in said if one not in known]).strip()
            )
        known.update([one for one in said if len(one) >= MIN_SENTENCE_CHARS])
    return replace(taken, evidence=replace(taken.evidence, documents=documents))


# --- support: Independent support: is what a hit holds of the question borne out by the rest of its document, or was it put there?

Floats = npt.NDArray[np.floating[Any]]
Match = tuple[int, int, int]  # which word of the question, from where to where
CLUSTER_BYTES = 160  # bytes of text in which words are a crowd
CONTEXT_BYTES = 40  # bytes before and behind a crowd that belong to it
FAR = 400  # bytes from either end of a text beyond which it does not matter how far
# Bounds on the time that a hostile input can take.
MAX_MATCHES = 400  # of the question, found in one hit
MAX_COMPARED_HITS = 50  # that a hit is compared with

SUPPORT_COLUMNS = {
    "title_borne_out": "Share of its title's words, by rarity, that stand in its text; -1 without a title or text.",
    "filled": "Share of its text that is words of the question.",
    "length": "How long its text is, in units of 400 bytes, up to 2.5.",
    "crowd": "Share of the question's words, by rarity, that its crowd holds and its title does not.",
    "apart": "The same of its text outside the crowd.",
    "crowd_names": "How many of the question's names stand in its crowd.",
    "crowd_filled": "Share of the crowd, from its first to its last word of the question, that is such words.",
    "crowd_order": "Longest run of words in the crowd that stand so in the question, up to 8.",
    "crowd_tied": "Share of the other words around the crowd, by rarity, that its document has elsewhere; -1 without any.",
    "crowd_new": "How many other words stand around the crowd.",
    "crowd_again": "How often the crowd stands in its text once more, up to 5.",
    "crowd_elsewhere": "How many other hits hold the same crowd, up to 5.",
    "crowd_from_end": "How far the crowd is from the end of the text, in units of 400 bytes, up to 1.",
    "crowd_from_start": "The same from the start.",
    "alike": "Share of its names that the hit most like it has, too.",
}


class _Cluster(NamedTuple):
    weight: float
    start: int
    end: int
    held: frozenset[int]


class _SupportedHit(NamedTuple):
    """One hit, as far as the question's words go: each by its place in the question."""

    flat: bytes
    text_at: int
    filled: float
    apart: frozenset[int]
    crowd: _Cluster
    borne_out: float


def support_features(
    asked: ParsedQuestion, titles: Sequence[str], texts: Sequence[str], words: WordTable
) -> Floats:
    """The columns of each hit: (hits, SUPPORT_HIT), float32."""
    pages = list(map(parse_passage, titles, texts))
    if not pages or not asked.stems:
        return np.zeros((len(pages), len(SUPPORT_COLUMNS)), np.float32)
    return _SupportPass(asked, titles, pages, words).rows()


class _SupportPass:
    """One question and its hits, while they are looked at."""

    def __init__(
        self,
        asked: ParsedQuestion,
        titles: Sequence[str],
        pages: Sequence[Passage],
        words: WordTable,
    ) -> None:
        self.asked, self.words = asked, words
        self.total = sum(asked.rarity) or 1.0
        self.follows = set(pairwise(asked.tokens))
        self.begins = tuple(stem.strip() for stem in asked.stems)
        self.alike = _name_overlap(pages)
        finder = BytesAhoCorasick(
            asked.stems, implementation=Implementation.NoncontiguousNFA
        )  # the quickest to make
        self.hits = [
            self._hit(
                one, title, finder.find_matches_as_indexes(one.flat, overlapping=True)[:MAX_MATCHES]
            )
            for one, title in zip(pages, titles, strict=True)
        ]

    def rows(self) -> Floats:
        rows = [self._row(at, hit) for at, hit in enumerate(self.hits)]
        return np.array(rows, dtype=np.float32).reshape(-1, len(SUPPORT_COLUMNS))

    def _hit(self, page: Passage, title: str, matches: Sequence[Match]) -> _SupportedHit:
        text_at = (
            len(question.normalize(question.encode_text(title[:MAX_TITLE_CHARS]))) - 1
            if title
            else 0
        )
        in_title = {which for which, start, _ in matches if start < text_at}
        own = [one for one in matches if one[1] >= text_at]
        foreign = [one for one in own if one[0] not in in_title]
        filled = sum([end - start for _, start, end in own]) / max(len(page.flat) - text_at, 1)
        crowd = _densest_cluster(foreign, self.asked.rarity)
        apart = frozenset(
            which for which, start, end in foreign if end <= crowd.start or start >= crowd.end
        )
        borne_out = self._share_in(page.words, page.flat[text_at:]) if page.has_text else -1.0
        return _SupportedHit(page.flat, text_at, min(filled, 1.0), apart, crowd, borne_out)

    def _share_in(self, words: Sequence[bytes], text: bytes) -> float:
        """The share of the words, by rarity, that stand in a text; -1 without any."""
        rare = self.words.rarities(words)
        whole = sum(rare)
        return (
            sum([one for word, one in zip(words, rare, strict=True) if b" %b " % word in text])
            / whole
            if whole
            else -1.0
        )

    def _row(self, at: int, hit: _SupportedHit) -> list[float]:
        crowd, flat = hit.crowd, hit.flat
        whole = hit.borne_out, hit.filled, min((len(flat) - hit.text_at) / FAR, 2.5)
        if not crowd.held:
            return [*whole, *[0.0] * 5, -1.0, 0, 0, 0, 1, 1, self.alike[at]]
        core, several = flat[crowd.start : crowd.end], len(crowd.held) > 1
        filled = sum(len(self.asked.stems[which]) for which in crowd.held) / max(len(core), 1)
        others = [
            other.flat for place, other in enumerate(self.hits[:MAX_COMPARED_HITS]) if place != at
        ]
        near_names = flat[max(crowd.start - 1, 0) : crowd.end + CONTEXT_BYTES]
        return [
            *whole, crowd.weight / self.total, sum(map(self.asked.rarity.__getitem__, hit.apart)) / self.total,
            sum(name in near_names for name in self.asked.names), min(filled, 1.0), self._run(core.split()),
            *self._tied(hit),
            min(flat.count(core) - 1, 5) if several else 0, min(sum(core in other for other in others), 5) if several else 0,
            min((len(flat) - crowd.end) / FAR, 1.0), min((crowd.start - hit.text_at) / FAR, 1.0), self.alike[at],
        ]  # fmt: skip

    def _run(self, tokens: Sequence[bytes]) -> int:
        """How long the words follow one another as they do in the question."""
        longest = run = 0
        for pair in pairwise(tokens):
            run = run + 1 if pair in self.follows else 0
            longest = max(longest, run)
        return min(longest, 8)

    def _tied(self, hit: _SupportedHit) -> tuple[float, int]:
        """The share of the other words around the crowd that the document has elsewhere, and how many they are."""
        start, end = (
            max(hit.crowd.start - CONTEXT_BYTES, hit.text_at),
            hit.crowd.end + CONTEXT_BYTES,
        )
        around = dict.fromkeys(
            hit.flat[start:end].split()[1:-1]
        )  # the words at its ends may be cut
        new = [
            word for word in around if word not in STOP_WORDS and not word.startswith(self.begins)
        ]
        return self._share_in(new, hit.flat[:start] + b" " + hit.flat[end:]), len(new)


def _densest_cluster(matches: Iterable[Match], rarity: Sequence[float]) -> _Cluster:
    """The stretch that holds most of the question, by rarity; the first of equals, from its first word to its last."""
    best, first, weight, told = _Cluster(0.0, 0, 0, frozenset()), 0, 0.0, list(matches)
    inside: Counter[int] = Counter()
    for which, _, end in told:
        weight += 0.0 if inside[which] else rarity[which]
        inside[which] += 1
        while end - told[first][1] > CLUSTER_BYTES and told[first][2] < end:
            gone = told[first][0]
            inside[gone] -= 1
            weight -= 0.0 if inside[gone] else rarity[gone]
            first += 1
        if weight > best.weight + 1e-9:
            best = _Cluster(
                weight,
                told[first][1],
                end,
                frozenset(one for one, count in inside.items() if count),
            )
    return best


def _name_overlap(pages: Sequence[Passage]) -> list[float]:
    """For each hit, the share of names that the hit most like it has in common with it."""
    every = [one.names for one in pages]
    return [
        max(
            (
                _shared_share(own, other)
                for place, other in enumerate(every[:MAX_COMPARED_HITS])
                if place != at
            ),
            default=0.0,
        )
        for at, own in enumerate(every)
    ]


def _shared_share(one: frozenset[bytes], other: frozenset[bytes]) -> float:
    return len(one & other) / max(len(one), len(other), 1)


# --- screen: The screen of a hardened gate: hits that seem stuffed with the question's words are not read, nor what others said before them.

FILTER_KIND, FILTER_VERSION, FILTER_RECORD = "screen", 1, "screen.json"
SHIPPED_FILTER = Path(__file__).parent.parent / "models" / "screen"
REBUILD_FILTER = "python -m suffice_research.training.stuffing_filter --data DIR"
_CLASSIFIERS, _THRESHOLDS = ("evidence", "stuffed"), ("likely", "suspect", "sure")


@dataclass(frozen=True)
class StuffingFilter:
    """What is sure to be stuffed is not believed, nor what is suspect and no likely evidence; all chances from 0 to 1."""

    evidence: BinaryClassifier
    stuffed: BinaryClassifier
    likely: float
    suspect: float
    sure: float

    def filter_hits(
        self, taken: Sequence[NormalizedHits], words: WordTable
    ) -> list[NormalizedHits]:
        """Each list without the hits that are not, and without what is said again; perhaps nothing is left."""
        seen = featurize(taken, words)
        rows = stuffing_features(seen, words)
        stuffed = self.stuffed.p(rows)
        kept = (stuffed <= self.suspect) | (
            (stuffed <= self.sure) & (self.evidence.p(rows) >= self.likely)
        )
        ends = list(accumulate(len(one.hits) for one in seen.readings))
        return [
            drop_repeated_sentences(_keep_hits(one, kept[start:end]))
            for one, start, end in zip(taken, [0, *ends], ends, strict=False)
        ]

    def save(self, path: Path, *, card: Mapping[str, Any], seed: int) -> None:
        """Write the screen as one artefact folder; `card` says what it was made of."""
        settings = {**card, "schema": _filter_schema()}
        with new_artefact(
            Path(path), kind=FILTER_KIND, version=FILTER_VERSION, settings=settings, seed=seed
        ) as folder:
            record: dict[str, Any] = {
                name: getattr(self, name).save(folder / f"{name}.onnx") for name in _CLASSIFIERS
            }
            record |= {name: getattr(self, name) for name in _THRESHOLDS}
            write_atomically(folder / FILTER_RECORD, json.dumps(record, sort_keys=True) + "\n")

    @classmethod
    def load(cls, path: Path | None = None) -> StuffingFilter:
        """The screen in a folder; without a path the one that ships.

        NotReadyError where it is none, or looks at other columns; DataError where it is damaged.
        """
        folder = SHIPPED_FILTER if path is None else Path(path)
        if (
            open_artefact(
                folder, kind=FILTER_KIND, version=FILTER_VERSION, rebuild=REBUILD_FILTER
            ).settings.get("schema")
            != _filter_schema()
        ):
            raise NotReadyError(
                f"{folder} looks at other columns than this suffice has", hint=REBUILD_FILTER
            )
        try:
            told = {entry.key: entry.value for entry in read_json_object(folder / FILTER_RECORD)}
            evidence, stuffed = (
                BinaryClassifier.load(folder / f"{name}.onnx", told[name]) for name in _CLASSIFIERS
            )
            chances = [float(told[name]) for name in _THRESHOLDS]
            if not all(0 <= one <= 1 for one in chances) or {evidence.columns, stuffed.columns} != {
                FILTER_COLUMNS
            }:
                raise ValueError("its parts do not fit together")
            return cls(evidence, stuffed, *chances)
        except DataError:
            raise
        except (
            SufficeError,
            ArithmeticError,
            AttributeError,
            LookupError,
            OSError,
            TypeError,
            ValueError,
        ) as error:
            raise DataError(
                f"the screen in {folder} cannot be read: {error!r:.300}", hint=REBUILD_FILTER
            ) from error


def stuffing_features(seen: FeatureBatch, words: WordTable) -> Floats:
    """What a screen looks at in the hits of all lists: as the gate reads them, and what supports that."""
    documents = [
        [one.evidence.documents[hit.doc_id] for hit in one.evidence.hits] for one in seen.taken
    ]
    supported = [
        support_features(
            asked, [one.title for one in held], [text_with_byline(one) for one in held], words
        )
        for asked, held in zip(seen.asked, documents, strict=True)
    ]
    return hit_features(seen.readings, supported)


FILTER_COLUMNS = len(HIT_COLUMNS) + 2 * len(RELATIVE_HIT_COLUMNS) + len(SUPPORT_COLUMNS)


def _filter_schema() -> str:
    """A hash of every column: a screen fitted on others cannot be used."""
    return hashlib.sha256(
        json.dumps([HIT_COLUMNS, RELATIVE_HIT_COLUMNS, list(SUPPORT_COLUMNS)]).encode()
    ).hexdigest()


def _keep_hits(taken: NormalizedHits, kept: npt.NDArray[np.bool_]) -> NormalizedHits:
    if kept.all():
        return taken
    hits = tuple(hit for hit, keep in zip(taken.evidence.hits, kept.tolist(), strict=True) if keep)
    names = {hit.doc_id for hit in hits}
    folded = {name: others for name, others in taken.folded.items() if name in names}
    return NormalizedHits(replace(taken.evidence, hits=hits), folded)
