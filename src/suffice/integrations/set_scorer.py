"""The set scorer: a small cross-encoder that reads the question, what is held already, and one candidate.

It says how likely the candidate is needed next. What is held is told in one sentence each: the title, and the sentence that
names the candidate or else has most of the question's words; so a pair stays short, and a core reads some twenty a second.

The model that ships (`models/bridge-scorer`) is an int8 ONNX made by `suffice_research.training.scorer`; any folder of that form will do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError, MissingExtraError, ModelError, NotReadyError
from suffice.gate.model import OnnxTrees
from suffice.integrations.onnx import open_encoder
from suffice.lexicon import STOP_WORDS
from suffice.protocols import Encoder, Retriever, Store
from suffice.registry import RETRIEVERS
from suffice.retrieval.bridge import (
    QUALITY_FEATURES,
    READ_AGAIN,
    READ_FIRST,
    QualityBridgeRetriever,
)
from suffice.retrieval.builtin import DEFAULT_ENCODER
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.name_links import NameLinks, name_links
from suffice.storage import open_artefact
from suffice.storage.artefacts import open_onnx
from suffice.text import title_key, tokens

__all__ = [
    "KIND",
    "READER_FILE",
    "SHIPPED_MODEL",
    "VERSION",
    "OnnxSetScorer",
    "PairTokenizer",
    "TokenPair",
    "bridge_quality",
    "pad_pairs",
]

Floats = npt.NDArray[np.float32]

KIND, VERSION, READER_FILE = "set-scorer", 1, "reader.onnx"
SHIPPED_MODEL = Path(__file__).resolve().parent.parent / "models" / "bridge-scorer"
REBUILD = "make it again: python -m suffice_research.training.scorer"

# Tokens of each part. Longer questions and candidates say little more, and cost as much again.
QUESTION_TOKENS, HELD_TOKENS, CANDIDATE_TOKENS, MAX_HELD = 64, 36, 100, 4
CACHE_SIZE = (
    4096  # texts whose tokens are remembered: a round reads much that the one before it read
)
MAX_CHARACTERS = 2_000  # of a text that are looked at: surely more than its tokens
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'(]?[A-Z0-9])")


@dataclass(frozen=True, slots=True)
class TokenPair:
    """One pair as the model reads it: tokens, and where the candidate begins."""

    ids: tuple[int, ...]
    second: int


class PairTokenizer:
    """How question, held texts and candidate become one row of tokens. Training and use share it."""

    def __init__(self, tokenizer: Any) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        special = [tokenizer.token_to_id(one) for one in ("[CLS]", "[SEP]", "|", ":")]
        if None in special:
            raise InputError(
                "the tokenizer has no [CLS], [SEP], '|' or ':'",
                hint="take the tokenizer of a BERT-like model",
            )
        self._start, self._end, self._bar, self._colon = special
        self._cut = lru_cache(maxsize=CACHE_SIZE)(self._tokens)
        self._shown = lru_cache(maxsize=CACHE_SIZE)(self._candidate)

    def pairs(
        self, question: str, held: Sequence[str], candidates: Sequence[str]
    ) -> list[TokenPair]:
        """A row for each candidate. Texts begin with their title, if they have one, and a line break."""
        asked = self._cut(question)[:QUESTION_TOKENS]
        words = frozenset(tokens(question[:MAX_CHARACTERS])) - STOP_WORDS
        shown = [_split_title(text) for text in held[-MAX_HELD:]]
        return [self._pair(asked, words, shown, text) for text in candidates]

    def _pair(
        self,
        asked: tuple[int, ...],
        words: frozenset[str],
        held: Sequence[tuple[str, str]],
        candidate: str,
    ) -> TokenPair:
        named = _normalized_title(candidate)
        ids = [self._start, *asked]
        for title, text in held:
            told = self._cut(most_relevant_sentence(text, named, words))
            head = [*self._cut(title)[:12], self._colon] if title else []
            ids += [self._bar, *head, *told[: HELD_TOKENS - len(head)]]
        ids.append(self._end)
        return TokenPair((*ids, *self._shown(candidate, words), self._end), len(ids))

    def _candidate(self, text: str, words: frozenset[str]) -> tuple[int, ...]:
        """The candidate's tokens; of a long one the title and the sentences with most of the words, in their order."""
        whole = self._cut(text)
        if len(whole) <= CANDIDATE_TOKENS:
            return whole
        title, body = _split_title(text)
        room = CANDIDATE_TOKENS - len(head := self._cut(title)[:16])
        known = _sentences(body)
        kept: dict[int, tuple[int, ...]] = {}
        for at in sorted(range(len(known)), key=lambda at: -len(known[at][2] & words)):
            if room > 0:
                kept[at] = self._cut(known[at][0])[:room]
                room -= len(kept[at])
        return (*head, *(one for at in sorted(kept) for one in kept[at]))

    def _tokens(self, text: str) -> tuple[int, ...]:
        # A lone surrogate, as broken JSON escapes leave it, cannot be written as UTF-8 and would stop the tokenizer.
        clean = text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
        return tuple(self._tokenizer.encode(clean, add_special_tokens=False).ids)


def _split_title(text: str) -> tuple[str, str]:
    title, line, rest = text.partition("\n")
    return (title, rest) if line else ("", text)


@lru_cache(maxsize=CACHE_SIZE)
def _sentences(text: str) -> tuple[tuple[str, str, frozenset[str]], ...]:
    """Each sentence as it is, as a key between spaces, and its words."""
    found = []
    for one in _SENTENCE.split(text[:MAX_CHARACTERS]):
        key = title_key(one)
        found.append((one, f" {key} ", frozenset(key.split())))
    return tuple(found)


@lru_cache(maxsize=CACHE_SIZE)
def _normalized_title(text: str) -> str:
    return title_key(_split_title(text)[0])


@lru_cache(maxsize=CACHE_SIZE)
def most_relevant_sentence(text: str, named: str, words: frozenset[str]) -> str:
    """The sentence of `text` that has the name, else the one with most of the words, else the first."""
    known = _sentences(text)
    if named:
        for sentence, key, _ in known:
            if f" {named} " in key:
                return sentence
    return max(known, key=lambda one: len(one[2] & words))[0] if known else ""


def pad_pairs(pairs: Sequence[TokenPair]) -> dict[str, npt.NDArray[np.int64]]:
    """Rows of one length, as a BERT-like model takes them."""
    shape = (len(pairs), max((len(one.ids) for one in pairs), default=1))
    feed = {
        name: np.zeros(shape, np.int64)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    for row, one in enumerate(pairs):
        feed["input_ids"][row, : len(one.ids)] = one.ids
        feed["attention_mask"][row, : len(one.ids)] = 1
        feed["token_type_ids"][row, one.second : len(one.ids)] = 1
    return feed


class OnnxSetScorer:
    """SetScorer port, from a folder with manifest, tokenizer.json, model.onnx and reader.onnx. DataError if damaged."""

    def __init__(
        self, folder: str | Path = SHIPPED_MODEL, *, threads: int = 1, batch: int = 1
    ) -> None:
        folder = Path(folder)
        if threads < 0 or batch < 1:
            raise InputError(
                f"threads is {threads}, batch is {batch}: too small",
                hint="threads from 0 (all cores), batch from 1 on",
            )
        manifest = open_artefact(folder, kind=KIND, version=VERSION, rebuild=REBUILD)
        self.name = folder.name
        if manifest.settings.get("columns") != [one.name for one in QUALITY_FEATURES]:
            raise NotReadyError(
                f"{folder} was fitted with other features than this suffice has", hint=REBUILD
            )
        self.batch = batch
        self.layout = PairTokenizer(_tokenizer(folder / "tokenizer.json"))
        self._session = _session(folder / "model.onnx", threads)
        self.reader = OnnxTrees(
            (folder / READER_FILE).read_bytes(), columns=len(QUALITY_FEATURES)
        )  # weighs what was read

    def score(self, question: str, held: Sequence[str], candidates: Sequence[str]) -> Floats:
        """The probability that each candidate is needed next, given the texts already held: (candidates,)."""
        return np.asarray(
            1 / (1 + np.exp(-self.log_odds(question, held, candidates))), dtype=np.float32
        )

    def log_odds(self, question: str, held: Sequence[str], candidates: Sequence[str]) -> Floats:
        """The same before the logistic function, between -15 and 15."""
        pairs = self.layout.pairs(question, held, candidates)
        found = np.zeros(len(pairs), np.float32)
        # Pairs of like length go together: padding is read, too.
        order = sorted(range(len(pairs)), key=lambda at: len(pairs[at].ids))
        for chosen in _blocks(order, self.batch):
            found[chosen] = self._run([pairs[at] for at in chosen])
        return np.clip(found, -15, 15)

    def _run(self, pairs: Sequence[TokenPair]) -> Floats:
        try:
            output = np.asarray(
                self._session.run(["logits"], pad_pairs(pairs))[0], dtype=np.float32
            )
        except Exception as error:  # onnxruntime raises classes of its own that it does not export
            raise ModelError(f"the set scorer failed: {error}", hint=REBUILD) from error
        if output.shape != (len(pairs), 1) or not np.isfinite(output).all():
            raise ModelError(
                f"the set scorer gave {output.shape} numbers for {len(pairs)} pairs, or not numbers",
                hint=REBUILD,
            )
        return output[:, 0]


def _blocks(order: Sequence[int], size: int) -> Iterable[list[int]]:
    return (list(order[start : start + size]) for start in range(0, len(order), size))


def _tokenizer(path: Path) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError("reading tokenizer.json", extra="onnx") from error
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise DataError(f"{path} is no tokenizer: {error}", hint=REBUILD) from error


def _session(path: Path, threads: int) -> Any:
    session = open_onnx(
        path.read_bytes(), threads=threads, hint=REBUILD
    )  # as bytes: nothing comes from other files
    wanted = {"input_ids", "attention_mask", "token_type_ids"}
    if {one.name for one in session.get_inputs()} != wanted or [
        one.name for one in session.get_outputs()
    ] != ["logits"]:
        raise DataError(
            f"{path} has other inputs or outputs than {sorted(wanted)} and logits", hint=REBUILD
        )
    return session


def bridge_quality(
    store: Store,
    *,
    encoder: str | Path | Encoder = "bge-small-en-v1.5",
    links: NameLinks | None = None,
    scorer: OnnxSetScorer | None = None,
    depth: int = 40,
    near: int = 100,
    first: int = READ_FIRST,
    again: int | Sequence[int] = READ_AGAIN,
    threads: int = 0,
) -> Retriever:
    """The bridge whose best candidates are read before each choice: `first` at the start, `again` in every later round.

    A sequence says how many for one, two, three ... held. `first=16, again=6` is what the published figures were judged with.
    `near` of the encoder's nearest documents join the pool. The store's vectors must be the encoder's, and static ones will not
    do: the reader was fitted with bge-small's.
    """
    reads = scorer or OnnxSetScorer(threads=threads)
    opened = encoder if isinstance(encoder, Encoder) else open_encoder(encoder)
    if scorer is None and opened.name == DEFAULT_ENCODER:
        raise InputError(
            f"bridge-quality was fitted with vectors of bge-small-en-v1.5, and these are {opened.name}'s",
            hint="build or evaluate with --encoder bge-small-en-v1.5, or search with retriever='bridge'",
        )
    made = links if links is not None else name_links(store.documents)
    choice: dict[str, Any] = {"first": first, "again": again, "depth": depth, "near": near}
    return QualityBridgeRetriever(
        store,
        opened,
        made,
        reads.reader,
        scorer=reads,
        vocabulary=Vocabulary.of_store(store),
        **choice,
    )


RETRIEVERS.add("bridge-quality", bridge_quality)
