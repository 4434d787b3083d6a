"""Which candidate next: a small learned model over the features of (question, documents held, candidate).

`TreeRanker` is boosted trees as ONNX, fitted by `suffice.evaluate.train_bridge`; one ships, fitted on five data sets.
`HandRanker` is a weighted sum that was never fitted: it leads the paths along which training states are gathered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, NotReadyError
from suffice.files import new_artefact, open_artefact, readable_file, write_atomically
from suffice.files.weights import open_network
from suffice.retrieve.pool import COLUMN, FEATURES

__all__ = ["SHIPPED", "WEIGHTS", "HandRanker", "Ranker", "TreeRanker"]

Floats = npt.NDArray[np.floating[Any]]

KIND, VERSION, MODEL = "bridge-ranker", 1, "ranker.onnx"
SHIPPED = Path(__file__).parent.parent / "models" / "bridge-fast"
REFIT = "fit it again: suffice fit --bridge … --out {path}"
AT_ONCE = 256  # rows of one run: beyond some 1,000, onnxruntime takes far longer for each

WEIGHTS: Mapping[str, float] = {
    "bm25": 1.0,
    "dense": 1.0,
    "named_best": 1.0,
    "adds": 1.0,
    "bridge": 0.7,
    "support_out": 0.4,
    "into_held": 0.2,
}


@runtime_checkable
class Ranker(Protocol):
    def p(self, rows: Floats) -> Floats:
        """How likely each candidate is needed next: (rows, features) -> (rows,), from 0 to 1."""
        ...


class HandRanker:
    """A weighted sum of a few features, put between 0 and 1."""

    def __init__(self, weights: Mapping[str, float] = WEIGHTS) -> None:
        self._weights = np.zeros(len(FEATURES))
        for name, weight in weights.items():
            self._weights[COLUMN[name]] = weight

    def p(self, rows: Floats) -> Floats:
        return np.asarray(1 / (1 + np.exp(3 - rows @ self._weights)))


class TreeRanker:
    """Boosted trees, run by onnxruntime on one thread: a question is too short to share."""

    def __init__(self, content: bytes) -> None:
        """`content` are the bytes of an ONNX file; DataError where they are damaged or want other columns."""
        self.content = content
        self._session = open_network(content, threads=1, hint=REFIT.format(path="PATH"))
        shapes = [(one.name, one.shape[1:]) for one in self._session.get_inputs()]
        if shapes != [("rows", [len(FEATURES)])] or [one.name for one in self._session.get_outputs()] != ["p"]:
            raise DataError(f"a ranker takes {shapes}, expected 'rows' of {len(FEATURES)} columns", hint="fit it again")

    def p(self, rows: Floats) -> Floats:
        given = np.ascontiguousarray(rows, dtype=np.float32)
        try:
            parts = [self._session.run(["p"], {"rows": given[at : at + AT_ONCE]})[0] for at in range(0, len(given), AT_ONCE)]
            return np.concatenate(parts).reshape(len(given)).astype(float) if parts else np.zeros(0)
        except Exception as error:  # onnxruntime raises classes of its own that it does not export
            raise DataError(f"a ranker fails: {error}", hint=REFIT.format(path="PATH")) from error

    def save(self, path: Path, *, card: Mapping[str, Any] | None = None, seed: int | None = None) -> None:
        """Write the ranker as an artefact folder; `card` says what it was fitted on."""
        settings = {**(card or {}), "schema": schema()}
        with new_artefact(Path(path), kind=KIND, version=VERSION, settings=settings, seed=seed) as folder:
            write_atomically(folder / MODEL, self.content)
            columns = [{"name": one.name, "says": one.says, "direction": one.direction} for one in FEATURES]
            write_atomically(folder / "features.json", json.dumps(columns, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path | None = None) -> TreeRanker:
        """The ranker in this folder; the one that ships unless told. NotReadyError where it looks at other features."""
        folder = SHIPPED if path is None else Path(path)
        refit = "python -m suffice.evaluate.train_bridge" if path is None else REFIT.format(path=folder)
        if open_artefact(folder, kind=KIND, version=VERSION, rebuild=refit).settings.get("schema") != schema():
            raise NotReadyError(f"{folder} was fitted with other features than this suffice has", hint=refit)
        return cls(np.fromfile(readable_file(folder / MODEL), dtype=np.uint8).tobytes())


def schema() -> str:
    """A hash of the features: a ranker fitted on others cannot be used."""
    return hashlib.sha256(json.dumps([one.name for one in FEATURES]).encode()).hexdigest()
