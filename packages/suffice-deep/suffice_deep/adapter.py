"""The LoRA adapter: eight bits a weight, with a scale for each row.

`adapter-N.npy` are the values in the order of `names.json`, `scales.npy` the scales of all rows. A
linear layer gains `2 b @ a`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.storage.artefacts import data_errors

Floats = npt.NDArray[np.floating[Any]]
SHIPPED = Path(__file__).parent / "models" / "deep-1.5b"
SCALE = 2.0
CALIBRATION = "calibration.json"  # fitted after training: no part of the adapter


@dataclass(frozen=True)
class Adapter:
    folder: Path = SHIPPED

    @cached_property
    def sha256(self) -> str:
        """Of all its files, with their names."""
        found = hashlib.sha256()
        for path in sorted(self.folder.iterdir()):
            if path.suffix in (".npy", ".json") and path.name != CALIBRATION:
                found.update(path.name.encode() + path.read_bytes())
        return found.hexdigest()

    @property
    def name(self) -> str:
        """Changes with the adapter: a graph and a calibration belong to one."""
        return f"{self.folder.name}-{self.sha256[:8]}"

    @cached_property
    def factors(self) -> Mapping[str, Floats]:
        """`layers.0.query.a` and so on, as floats."""
        hint = "install suffice-deep again"
        with data_errors(f"the adapter in {self.folder}", hint=hint):
            shapes = json.loads((self.folder / "names.json").read_text(encoding="utf-8"))
            pieces = [
                np.load(one, allow_pickle=False)
                for one in sorted(self.folder.glob("adapter-*.npy"))
            ]
            values, scales = np.concatenate(pieces), np.load(self.folder / "scales.npy")
            if (len(values), len(scales)) != (
                sum(rows * width for _, (rows, width) in shapes),
                sum(rows for _, (rows, _) in shapes),
            ):
                raise ValueError("its files do not fit together")
            found, at, row = dict[str, Floats](), 0, 0
            for name, (rows, width) in shapes:
                whole = values[at : at + rows * width].reshape(rows, width).astype(np.float32)
                found[name] = whole * scales[row : row + rows, None].astype(np.float32)
                at, row = at + rows * width, row + rows
        return found

    def change(self, layer: int, part: str) -> Floats:
        """What the weight of this linear layer gains: (outputs, inputs)."""
        a, b = (self.factors[f"layers.{layer}.{part}.{side}"] for side in "ab")
        return np.asarray(SCALE * (b @ a))
