"""The folder of the graph: what `suffice fetch deep` built, checked when it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from suffice.errors import DataError, NotReadyError
from suffice.storage import Manifest, open_artefact, sha256_of
from suffice.storage.artefacts import cache_folder, open_onnx
from suffice_deep.adapter import Adapter

KIND, VERSION, FETCH = "deep-graph", 1, "suffice fetch deep"
GRAPH, WEIGHTS, EMBEDDINGS, TOKENIZER = "graph.onnx", "weights.bin", "tokens.npy", "tokenizer.json"
PROBE = "probe.onnx"  # a product of the largest numbers
PROBE_SIZE, PROBE_RESULT = 64, 64 * 127 * 127


@dataclass(frozen=True)
class GraphFolder:
    path: Path
    manifest: Manifest

    @classmethod
    def of(cls, adapter: Adapter) -> Path:
        return cache_folder() / "deep" / adapter.name

    @classmethod
    def open(cls, adapter: Adapter, path: Path | None = None) -> GraphFolder:
        """NotReadyError if it was not built, or for another adapter; DataError if it is damaged.

        Of the large files only the size is checked: their hashes would take seconds.
        """
        path = path or cls.of(adapter)
        if not path.exists():
            raise NotReadyError("the language model of the preset deep is not here", hint=FETCH)
        manifest = open_artefact(
            path, kind=KIND, version=VERSION, rebuild=FETCH, check_hashes=False
        )
        if manifest.inputs.get("adapter") != adapter.sha256:
            raise NotReadyError(f"{path} was built with another adapter", hint=FETCH)
        for name in (GRAPH, PROBE, TOKENIZER, WEIGHTS, EMBEDDINGS):
            size, file = manifest.settings.get("sizes", {}).get(name), path / name
            small = name not in (WEIGHTS, EMBEDDINGS)
            if (
                not file.is_file()
                or file.stat().st_size != size
                or (small and sha256_of(file) != manifest.files.get(name))
            ):
                raise DataError(f"{file} is missing, cut off or altered", hint=FETCH)
        if not is_exact(path / PROBE):
            raise NotReadyError(f"{path} was built on another kind of processor", hint=FETCH)
        return cls(path, manifest)


def is_exact(probe: bytes | Path) -> bool:
    """Whether this processor computes the probe: without VNNI, signed products may overflow."""
    session = open_onnx(probe, threads=1, hint=FETCH)
    (found,) = session.run(None, {"x": np.full((1, PROBE_SIZE), 255, np.uint8)})
    return int(found[0, 0]) == PROBE_RESULT
