"""`suffice fetch deep`: download the language model and build its network, once."""

from __future__ import annotations

import errno
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli import output
from suffice.errors import InputError
from suffice.protocols import Progress
from suffice.storage import new_artefact
from suffice.storage.artefacts import cache_folder
from suffice_deep.adapter import Adapter
from suffice_deep.base import CODER_1_5B, Base, check_base, fetch_base
from suffice_deep.cache import FETCH, KIND, VERSION, GraphFolder

BASES = {"deep-1.5b": CODER_1_5B}  # for each adapter
BUILT_SHARE = 1.65  # size of the graph, as a share of the download
MEMORY_GB, MINUTES = 2.0, 4  # what reading needs, and what building takes on two cores


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
    from suffice_deep.graph import BaseModel, build_graph, can_sign

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


@output.command
def fetch(
    what: Annotated[str, Argument(help="deep: the model of the presets deep and auto.")],
    file: Annotated[
        Path | None, Option("--from", help="A GGUF file that you have, instead of a download.")
    ] = None,
    json: opt.Json = False,
) -> None:
    """Fetch a language model and build its network in a cache folder, once.

    An interrupted download resumes. SUFFICE_CACHE names another cache folder.
    """
    if what != "deep":
        raise InputError(f"there is nothing named {what!r} to fetch", hint=FETCH)
    adapter = Adapter()
    base = BASES[adapter.folder.name]
    disk = base.size * BUILT_SHARE / 1e9
    output.say(
        f"{base.name}: {base.size / 1e9:.1f} GB to download, {disk:.1f} GB more on disk for the "
        f"network, about {MINUTES} minutes to build it on two cores, {MEMORY_GB:.1f} GB of memory "
        f"to read with it.\nIt goes to {cache_folder() / 'deep'}"
    )
    with output.progress_bar(quiet=json) as progress:
        done = fetch_deep(adapter, base, given=file, progress=progress)
    if json:
        output.print_json(
            {"path": os.fspath(done.path), "adapter": adapter.name, "built": done.built,
             "downloaded": done.downloaded, "bytes": done.bytes, "seconds": round(done.seconds, 1)}
        )  # fmt: skip
    elif not done.built:
        print(f"nothing to do: {done.path} is whole")
    else:
        print(f"built {done.path} ({done.bytes / 1e9:.2f} GB) in {done.seconds:.0f} s")
        output.say("\nnext: suffice check QUESTION --hits hits.json --preset deep")
