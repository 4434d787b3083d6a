"""Fetch and build: what `suffice fetch deep` does."""

from __future__ import annotations

import errno
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from suffice.protocols import Progress
from suffice.storage import new_artefact
from suffice_deep.adapter import Adapter
from suffice_deep.base import CODER_1_5B, Base, check_base, fetch_base
from suffice_deep.cache import KIND, VERSION, GraphFolder
from suffice_deep.graph import BaseModel, build_graph, can_sign

BASES = {"deep-1.5b": CODER_1_5B}  # for each adapter
BUILT_SHARE = 1.65  # size of the graph, as a share of the download


@dataclass(frozen=True)
class Fetched:
    path: Path
    downloaded: bool
    built: bool
    seconds: float

    @property
    def bytes(self) -> int:
        return sum(one.stat().st_size for one in self.path.iterdir())


def fetch_deep(adapter: Adapter, base: Base, *, given: Path | None, progress: Progress) -> Fetched:
    """Download and build what is missing. Nothing that is half done is ever used."""
    start, path = time.monotonic(), GraphFolder.of(adapter)
    try:
        GraphFolder.open(adapter)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is built again
        pass
    else:
        return Fetched(path, False, False, 0.0)
    kept = path.parent / f"{base.sha256[:16]}.gguf"
    missing = given is None and not kept.is_file()
    _check_disk(path.parent, int(base.size * (BUILT_SHARE + 2 * missing)))
    file = check_base(given, base) if given else fetch_base(base, kept, progress=progress)
    sizes: dict[str, int] = {}
    settings = {"adapter": adapter.name, "base": base.name, "sizes": sizes}
    inputs = {"adapter": adapter.sha256, "base": base.sha256}
    with new_artefact(path, kind=KIND, version=VERSION, settings=settings, inputs=inputs) as folder:
        model = BaseModel(file)
        build_graph(
            model, adapter, folder, signed=can_sign(),
            progress=lambda done, total: progress("layers", done, total),
        )  # fmt: skip
        sizes |= {one.name: one.stat().st_size for one in folder.iterdir()}
    GraphFolder.open(adapter)
    return Fetched(path, missing, True, time.monotonic() - start)


def _check_disk(folder: Path, needed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(folder).free) < needed:
        message = f"{needed / 1e9:.1f} GB are needed there, {free / 1e9:.1f} GB are free"
        raise OSError(errno.ENOSPC, message, str(folder))
