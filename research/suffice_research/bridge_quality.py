"""`bridge-quality`: the bridge retriever with a set scorer that reads its best candidates.

The set scorer is a small cross-encoder over the question, the held documents and a candidate. It
estimates how likely the candidate is needed next. From each held document it reads the title and
one sentence: the one that names the candidate, else the one with most of the question's words. So a
pair stays short, and one core reads about twenty per second.

The shipped model (`models/bridge-scorer`) is an int8 ONNX from `suffice_research.training.scorer`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError, ModelError, NotReadyError
from suffice.integrations.onnx import (
    BGE_SMALL,
    MODEL_INPUTS,
    load_tokenizer,
    open_encoder,
    pad_tokens,
    readable,
)
from suffice.lexicon import STOP_WORDS
from suffice.numeric import log_odds_array
from suffice.protocols import Encoder, Retriever, Store, StoreQuery
from suffice.retrieval.bridge import BridgeRetriever, Ranker
from suffice.retrieval.builtin import DEFAULT_ENCODER
from suffice.retrieval.candidate_pool import TITLED_FEATURES, CandidatePool, Feature
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.name_links import NameLinks, name_links
from suffice.retrieval.ranking import Filters, HitLists
from suffice.storage import open_artefact
from suffice.storage.artefacts import OnnxTrees, open_onnx
from suffice.text import title_key, tokens
from suffice.types import Hit
from suffice_research.next_hop import Ahead, NextHopEncoder, OnnxNextHopEncoder

__all__ = ["OnnxSetScorer", "PairTokenizer", "TokenPair", "bridge_quality", "pad_pairs"]

Floats = npt.NDArray[np.floating[Any]]

KIND, VERSION, READER_FILE = "set-scorer", 1, "reader.onnx"
SHIPPED_MODEL = Path(__file__).resolve().parent / "models" / "bridge-scorer"
REBUILD = "make it again: python -m suffice_research.training.scorer"

# Longer questions and candidates add little and double the cost.
QUESTION_TOKENS, HELD_TOKENS, CANDIDATE_TOKENS, MAX_HELD = 64, 36, 100, 4
CACHE_SIZE = 4096  # cached tokenized texts: a round repeats much of the last one
MAX_CHARACTERS = 2_000  # read per text: certainly more than its tokens
MAX_LOG_ODDS = 15
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'(]?[A-Z0-9])")

READ_FIRST, READ_AGAIN = 16, (6, 4, 3, 2)  # candidates to read with none, one, two ... held
LOOKED, JOINED = 50, 12  # hits of a next-hop vector, and how many of them become candidates
LEAST_P = 3e-7  # log-odds of 15
UNREAD = -20.0  # below every log-odds, so that trees can tell it from scores

QUALITY_FEATURES = (
    *TITLED_FEATURES,
    Feature("alone", "The scorer's log-odds with nothing held.", 1),
    Feature("now", "The scorer's log-odds given what is held.", 1),
    Feature("alone_behind", "How far `alone` is behind the best candidate not held.", -1),
    Feature("now_behind", "How far `now` is behind the best candidate not held.", -1),
    Feature("ahead", "How close it is to the next-hop vector, from last (0) to best (1).", 1),
    Feature("ahead_rank", "One over its rank by that; 0 where it was not found.", 1),
    Feature("ahead_best", "The best such value since the start.", 1),
)


@runtime_checkable
class SetScorer(Protocol):
    def score(self, question: str, held: Sequence[str], candidates: Sequence[str]) -> Floats:
        """The probability that each candidate is needed next, given the held texts."""
        ...


class QualityBridgeRetriever(BridgeRetriever):
    """A bridge that lets a set scorer read its best candidates before each choice.

    Reading takes about forty milliseconds per candidate, so only the best are read: `first` before
    anything is held, fewer in later rounds, where pairs are longer and less is missing. The ranker,
    over QUALITY_FEATURES, chooses which to read and then which to hold. With a next-hop encoder, the
    nearest passages of what is held so far become candidates.
    """

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        links: NameLinks,
        ranker: Ranker,
        *,
        scorer: SetScorer,
        next_hop: NextHopEncoder | None = None,
        first: int = READ_FIRST,
        again: int | Sequence[int] = READ_AGAIN,
        **options: Any,
    ) -> None:
        pool: dict[str, Any] = {"hops": 3, "expanded": 10}  # as the reader was fitted
        super().__init__(store, encoder, links, ranker, **pool | options)
        rounds = [again] if isinstance(again, int) else list(again)
        if first < 1 or min(rounds, default=-1) < 0:
            raise InputError(f"first is {first}, again is {again}: too few to read")
        self.scorer, self.next_hop, self.first, self.again = scorer, next_hop, first, again
        self._alone: WeakKeyDictionary[CandidatePool, Floats] = WeakKeyDictionary()
        self._ahead: WeakKeyDictionary[CandidatePool, Ahead] = WeakKeyDictionary()

    def choose(
        self, pools: Sequence[CandidatePool], *, k: int, filters: Filters = None
    ) -> HitLists:
        self.look_ahead(pools, filters)
        return super().choose(pools, k=k, filters=filters)

    def follow(self, pools: Sequence[CandidatePool], filters: Filters = None) -> None:
        super().follow(pools, filters)
        self.look_ahead(pools, filters)

    def look_ahead(self, pools: Sequence[CandidatePool], filters: Filters = None) -> None:
        """Search with the vectors of what is held; the best hits become candidates."""
        if self.next_hop is None or not pools:
            return
        held = [[searchable_text(pool.documents[at]) for at in pool.held] for pool in pools]
        vectors = self.next_hop.encode([pool.question.text for pool in pools], held)
        given = filters or [None] * len(pools)
        queries = [StoreQuery(LOOKED, vector=one, filter=two) for one, two in zip(vectors, given)]
        result = self.store.query(queries)
        reasons = []
        for pool, hits in zip(pools, result.hits):
            if not pool.held:
                self._ahead[pool] = Ahead()
            self._ahead[pool].add(hits, frozenset(pool.ids[at] for at in pool.held))
            reasons.append({hit.doc_id: {"ahead": hit.score or 0.0} for hit in hits[:JOINED]})
        self._join(pools, reasons, filters, result.documents)

    def ahead_rows(self, pool: CandidatePool) -> Floats:
        """What `look_ahead` found of each candidate: (candidates, AHEAD)."""
        return self._ahead.get(pool, Ahead()).rows(pool.ids)

    def rank(self, pools: Sequence[CandidatePool]) -> list[Floats]:
        features = [pool.features()[:, : len(TITLED_FEATURES)] for pool in pools]
        unread = [np.full(len(pool), UNREAD) for pool in pools]
        guess = self._rank_read(pools, features, unread)
        counts = [read_count(len(pool.held), self.first, self.again) for pool in pools]
        now = self.read(pools, [shortlist(p, count) for p, count in zip(guess, counts)])
        for pool, scores in zip(pools, now):
            if not pool.held:
                self._alone[pool] = scores
        return self._rank_read(pools, features, now)

    def _rank_read(
        self, pools: Sequence[CandidatePool], features: Sequence[Floats], now: Sequence[Floats]
    ) -> list[Floats]:
        rows = []
        for pool, own, scores in zip(pools, features, now):
            known = self._alone.get(pool, np.zeros(0))  # candidates added later are unread
            alone = np.concatenate([known, np.full(len(pool) - len(known), UNREAD)])
            rows.append(quality_rows(own, alone, scores, self.ahead_rows(pool), pool.held))
        return self._rank_rows(pools, rows)

    def read(self, pools: Sequence[CandidatePool], chosen: Sequence[Sequence[int]]) -> list[Floats]:
        """The scorer's log-odds of the chosen candidates, UNREAD for the others."""
        found = []
        for pool, positions in zip(pools, chosen):
            texts = [searchable_text(document) for document in pool.documents]
            held, candidates = ([texts[at] for at in ats] for ats in (pool.held, positions))
            p = self.scorer.score(pool.question.text, held, candidates)
            row = np.full(len(pool), UNREAD)
            row[list(positions)] = log_odds_array(np.asarray(p, dtype=float), least=LEAST_P)
            found.append(row)
        return found

    def _rescale(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """Rescale scores from 1 (best) to 0 (last): a good encoder's scores are close together."""
        scores = np.array([hit.score or 0.0 for hit in hits])
        if not len(scores) or scores[0] <= scores[-1]:
            return hits
        spread = (scores - scores[-1]) / (scores[0] - scores[-1])
        return tuple(replace(hit, score=float(score)) for hit, score in zip(hits, spread))


def quality_rows(
    features: Floats, alone: Floats, now: Floats, ahead: Floats, held: Sequence[int]
) -> Floats:
    """The features with the scorer's log-odds and what lies ahead: (candidates, QUALITY_FEATURES)."""
    free = np.ones(len(features), bool)
    free[list(held)] = False
    behind = [
        np.where(one > UNREAD, one[free].max(initial=UNREAD) - one, -UNREAD) for one in (alone, now)
    ]
    return np.column_stack([features, alone, now, *behind, ahead]).astype(np.float32)


def read_count(held: int, first: int = READ_FIRST, again: int | Sequence[int] = READ_AGAIN) -> int:
    """How many to read with `held` documents; `again` is one number, or one per number held."""
    if not held:
        return first
    return again if isinstance(again, int) else again[min(held, len(again)) - 1]


def shortlist(p: Floats, count: int) -> list[int]:
    """Positions of the best `count` candidates that are not held."""
    return [at for at in np.argsort(-p, kind="stable")[:count].tolist() if p[at] >= 0]


@dataclass(frozen=True, slots=True)
class TokenPair:
    """One pair as model input: token ids, and where the candidate starts."""

    ids: tuple[int, ...]
    second: int


class PairTokenizer:
    """Turns question, held texts and candidate into one row of tokens, in training and in use."""

    def __init__(self, tokenizer: Any) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        special = [tokenizer.token_to_id(one) for one in ("[CLS]", "[SEP]", "|", ":")]
        if None in special:
            hint = "take the tokenizer of a BERT-like model"
            raise InputError("the tokenizer has no [CLS], [SEP], '|' or ':'", hint=hint)
        self._start, self._end, self._bar, self._colon = special
        self._tokens = lru_cache(maxsize=CACHE_SIZE)(self._tokenize)
        self._candidate = lru_cache(maxsize=CACHE_SIZE)(self._candidate_tokens)

    def pairs(
        self, question: str, held: Sequence[str], candidates: Sequence[str]
    ) -> list[TokenPair]:
        """A row for each candidate. Texts start with their title, if any, and a line break."""
        start = [self._start, *self._tokens(question)[:QUESTION_TOKENS]]
        words = frozenset(tokens(question[:MAX_CHARACTERS])) - STOP_WORDS
        parts = [_split_title(text) for text in held[-MAX_HELD:]]
        pairs = []
        for candidate in candidates:
            ids = list(start)
            name = _normalized_title(candidate)
            for title, text in parts:
                sentence = self._tokens(most_relevant_sentence(text, name, words))
                head = [*self._tokens(title)[:12], self._colon] if title else []
                ids += [self._bar, *head, *sentence[: HELD_TOKENS - len(head)]]
            ids.append(self._end)
            whole = (*ids, *self._candidate(candidate, words), self._end)
            pairs.append(TokenPair(whole, len(ids)))
        return pairs

    def _candidate_tokens(self, text: str, words: frozenset[str]) -> tuple[int, ...]:
        """All tokens; for a long text, the title and the sentences with most of the words."""
        whole = self._tokens(text)
        if len(whole) <= CANDIDATE_TOKENS:
            return whole
        title, body = _split_title(text)
        head = self._tokens(title)[:16]
        room = CANDIDATE_TOKENS - len(head)
        sentences = _sentences(body)
        kept: dict[int, tuple[int, ...]] = {}
        for at in sorted(range(len(sentences)), key=lambda at: -len(sentences[at][2] & words)):
            if room > 0:
                kept[at] = self._tokens(sentences[at][0])[:room]
                room -= len(kept[at])
        return (*head, *(one for at in sorted(kept) for one in kept[at]))

    def _tokenize(self, text: str) -> tuple[int, ...]:
        clean = readable(text, MAX_CHARACTERS)
        return tuple(self._tokenizer.encode(clean, add_special_tokens=False).ids)


def _split_title(text: str) -> tuple[str, str]:
    title, line, rest = text.partition("\n")
    return (title, rest) if line else ("", text)


@lru_cache(maxsize=CACHE_SIZE)
def _sentences(text: str) -> tuple[tuple[str, str, frozenset[str]], ...]:
    """Each sentence as written, as a key between spaces, and its words."""
    sentences = _SENTENCE.split(text[:MAX_CHARACTERS])
    keys = [title_key(one) for one in sentences]
    return tuple((one, f" {key} ", frozenset(key.split())) for one, key in zip(sentences, keys))


@lru_cache(maxsize=CACHE_SIZE)
def _normalized_title(text: str) -> str:
    return title_key(_split_title(text)[0])


@lru_cache(maxsize=CACHE_SIZE)
def most_relevant_sentence(text: str, name: str, words: frozenset[str]) -> str:
    """The sentence with the name, else the one with most of the words, else the first."""
    sentences = _sentences(text)
    if name:
        for sentence, key, _ in sentences:
            if f" {name} " in key:
                return sentence
    return max(sentences, key=lambda one: len(one[2] & words))[0] if sentences else ""


def pad_pairs(pairs: Sequence[TokenPair]) -> dict[str, npt.NDArray[np.int64]]:
    """Rows padded to one length, as input for a BERT-like model."""
    rows = [(one.ids, [0] * one.second + [1] * (len(one.ids) - one.second)) for one in pairs]
    return pad_tokens(rows)


class OnnxSetScorer:
    """A SetScorer from a folder with manifest, tokenizer.json, model.onnx and reader.onnx."""

    def __init__(
        self, folder: str | Path = SHIPPED_MODEL, *, threads: int = 1, batch: int = 1
    ) -> None:
        folder = Path(folder)
        if threads < 0 or batch < 1:
            message = f"threads is {threads}, batch is {batch}: too small"
            raise InputError(message, hint="threads from 0 (all cores), batch from 1 on")
        manifest = open_artefact(folder, kind=KIND, version=VERSION, rebuild=REBUILD)
        self.name = folder.name
        if manifest.settings.get("columns") != [one.name for one in QUALITY_FEATURES]:
            message = f"{folder} was fitted with other features than this suffice has"
            raise NotReadyError(message, hint=REBUILD)
        self.batch = batch
        tokenizer = load_tokenizer(folder / "tokenizer.json", DataError, REBUILD)
        self.tokenizer = PairTokenizer(tokenizer)
        self._session = _open_session(folder / "model.onnx", threads)
        # The reader weighs the scores.
        reader = (folder / READER_FILE).read_bytes()
        self.reader = OnnxTrees(reader, columns=len(QUALITY_FEATURES))

    def score(self, question: str, held: Sequence[str], candidates: Sequence[str]) -> Floats:
        """The probability that each candidate is needed next, given the held texts."""
        log_odds = self.log_odds(question, held, candidates)
        return np.asarray(1 / (1 + np.exp(-log_odds)), dtype=np.float32)

    def log_odds(self, question: str, held: Sequence[str], candidates: Sequence[str]) -> Floats:
        """The same as log-odds, between -15 and 15."""
        pairs = self.tokenizer.pairs(question, held, candidates)
        found = np.zeros(len(pairs), np.float32)
        # Batch pairs of similar length, because padding costs time too.
        order = sorted(range(len(pairs)), key=lambda at: len(pairs[at].ids))
        for start in range(0, len(order), self.batch):
            chosen = order[start : start + self.batch]
            found[chosen] = self._run([pairs[at] for at in chosen])
        return np.clip(found, -MAX_LOG_ODDS, MAX_LOG_ODDS)

    def _run(self, pairs: Sequence[TokenPair]) -> Floats:
        try:
            output = self._session.run(["logits"], pad_pairs(pairs))[0]
        except Exception as error:  # onnxruntime does not export its exception types
            raise ModelError(f"the set scorer failed: {error}", hint=REBUILD) from error
        logits = np.asarray(output, dtype=np.float32)
        if logits.shape != (len(pairs), 1) or not np.isfinite(logits).all():
            message = f"the set scorer returned {logits.shape} or NaN for {len(pairs)} pairs"
            raise ModelError(message, hint=REBUILD)
        return logits[:, 0]


def _open_session(path: Path, threads: int) -> Any:
    # As bytes, so that the model cannot refer to other files.
    session = open_onnx(path.read_bytes(), threads=threads, hint=REBUILD)
    inputs = {one.name for one in session.get_inputs()}
    if inputs != set(MODEL_INPUTS) or [one.name for one in session.get_outputs()] != ["logits"]:
        message = f"{path} has other inputs or outputs than {sorted(MODEL_INPUTS)} and logits"
        raise DataError(message, hint=REBUILD)
    return session


def bridge_quality(
    store: Store,
    *,
    encoder: str | Path | Encoder = BGE_SMALL,
    links: NameLinks | None = None,
    scorer: OnnxSetScorer | None = None,
    next_hop: NextHopEncoder | None = None,
    depth: int = 40,
    near: int = 100,
    first: int = READ_FIRST,
    again: int | Sequence[int] = READ_AGAIN,
    threads: int = 0,
) -> Retriever:
    """The bridge retriever that reads its best candidates before each choice.

    It reads `first` candidates at the start and `again` in every later round; a sequence gives the
    number with one, two, three ... held. The encoder's `near` nearest documents join the pool. The
    store's vectors must be the encoder's, and not static ones: the reader was fitted with
    bge-small's.
    """
    scorer, is_default = scorer or OnnxSetScorer(threads=threads), scorer is None
    opened = encoder if isinstance(encoder, Encoder) else open_encoder(encoder)
    if is_default and opened.name == DEFAULT_ENCODER:
        raise InputError(
            f"bridge-quality was fitted with vectors of {BGE_SMALL}, and these are {opened.name}'s",
            hint=f"build or evaluate with --encoder {BGE_SMALL}, or search with retriever='bridge'",
        )
    if next_hop is None and opened.name == BGE_SMALL:
        next_hop = OnnxNextHopEncoder(threads=threads)
    return QualityBridgeRetriever(
        store,
        opened,
        links if links is not None else name_links(store.documents),
        scorer.reader,
        scorer=scorer,
        next_hop=next_hop,
        vocabulary=Vocabulary.of_store(store),
        first=first,
        again=again,
        depth=depth,
        near=near,
    )
