"""The judge of the preset `deep`: reads each list once, on all cores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError
from suffice.gate.judge import JudgeScale
from suffice.protocols import HitTexts
from suffice.storage.artefacts import data_errors, open_onnx, read_json
from suffice.storage.fields import dataclass_from_json
from suffice.types import Opinion
from suffice_deep.adapter import CALIBRATION, Adapter
from suffice_deep.cache import EMBEDDINGS, FETCH, GRAPH, TOKENIZER, GraphFolder
from suffice_deep.prompt import EncodedList, Prompt

NO_HITS = -8.0  # the log-odds of a list without hits


class DeepJudge:
    """The shipped adapter on its base, opened by the first list."""

    def __init__(self, adapter: Adapter | None = None, *, threads: int = 0) -> None:
        self.adapter, self._threads, self._lock = adapter or Adapter(), threads, Lock()
        self.name = self.adapter.name
        self._folder = GraphFolder.open(self.adapter).path

    def __repr__(self) -> str:
        return f"DeepJudge({self.name!r})"

    @cached_property
    def scale(self) -> JudgeScale:
        """How its log-odds and those of the shipped gate make one, fitted on part *stack*."""
        path, hint = self.adapter.folder / CALIBRATION, "install suffice-deep again"
        with data_errors(f"the calibration in {path}", hint=hint):
            scale = dataclass_from_json(JudgeScale, read_json(path))
            if scale.judge != self.name:
                raise DataError(f"{path} was fitted for {scale.judge}, not {self.name}", hint=hint)
        return scale

    def judge(self, lists: Sequence[HitTexts]) -> list[Opinion]:
        return [self._opinion(one) if one[2] else Opinion(NO_HITS) for one in lists]

    def _opinion(self, hits: HitTexts) -> Opinion:
        with self._lock:  # every list uses all cores, and memory for its tokens
            encoded = self._prompt.encode(hits)
            said = self._read(encoded).tolist()
        needed = np.full(len(hits[2]), NO_HITS)
        needed[encoded.hits] = said[:-1]
        return Opinion(said[-1], tuple(needed.tolist()), notes=encoded.notes)

    def _read(self, encoded: EncodedList) -> npt.NDArray[np.floating[Any]]:
        """Log-odds at the places of a list."""
        count = len(encoded.ids)
        given = {
            "embedded": self._embeddings[encoded.ids].astype(np.float32)[None],
            "places": np.array(encoded.places, np.int64),
            "before": np.array([count - 1], np.int32),
            "total": np.array(count, np.int32),
        }
        return np.asarray(self._session.run(["log_odds"], given)[0][0, :, 0], float)

    @cached_property
    def _session(self) -> Any:
        return open_onnx(self._folder / GRAPH, threads=self._threads, hint=FETCH)

    @cached_property
    def _embeddings(self) -> npt.NDArray[Any]:
        """Mapped: only the rows that occur are read."""
        with data_errors(f"{self._folder / EMBEDDINGS}", hint=FETCH):
            found = np.load(self._folder / EMBEDDINGS, mmap_mode="r", allow_pickle=False)
        return np.asarray(found)

    @cached_property
    def _prompt(self) -> Prompt:
        from tokenizers import Tokenizer  # slow to import

        path = self._folder / TOKENIZER
        try:
            return Prompt(Tokenizer.from_file(str(path)))
        except Exception as error:  # tokenizers raises bare Exception
            raise DataError(f"{path} is not a tokenizer: {error}", hint=FETCH) from error


def open_judge() -> DeepJudge:
    """The judge that the preset `deep` asks; NotReadyError if its model was not fetched."""
    return DeepJudge()
