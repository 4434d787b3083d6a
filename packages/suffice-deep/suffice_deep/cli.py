"""`suffice fetch deep`: download the language model and build its network, once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli import output
from suffice.errors import InputError, did_you_mean

EXPORT = "suffice fetch adapter --out FOLDER"
MEMORY_GB, MINUTES = 2.0, 4  # what reading needs, and what building takes on two cores


@output.command
def fetch(
    what: Annotated[str, Argument(help="deep: the model of the presets deep and auto; adapter.")],
    file: Annotated[
        Path | None, Option("--from", help="A GGUF file that you have, instead of a download.")
    ] = None,
    out: Annotated[
        Path | None, Option(help="adapter: the folder for its files, for llama.cpp and vLLM.")
    ] = None,
    json: opt.Json = False,
) -> None:
    """Fetch a language model and build its network in a cache folder, once.

    An interrupted download resumes. SUFFICE_CACHE names another cache folder. `fetch adapter --out
    FOLDER` writes the adapter for other servers: as GGUF and in PEFT's layout.
    """
    if what not in ("deep", "adapter"):
        hint = did_you_mean(what, ("deep", "adapter"))
        raise InputError(f"there is nothing named {what!r} to fetch", hint=hint)
    if (what == "adapter") != (out is not None) or (out is not None and file is not None):
        raise InputError("--out belongs to `adapter`, --from to `deep`", hint=EXPORT)
    from suffice_deep.adapter import Adapter
    from suffice_deep.cache import GraphFolder
    from suffice_deep.fetch import BASES, BUILT_SHARE, fetch_deep

    adapter = Adapter()
    base = BASES[adapter.folder.name]
    if out is not None:
        from suffice_deep.export import export_adapter

        paths = [os.fspath(one) for one in export_adapter(adapter, base.name, out)]
        if json:
            output.print_json({"adapter": adapter.name, "files": paths})
        else:
            print("\n".join(paths))
        return
    disk = base.size * BUILT_SHARE / 1e9
    output.say(
        f"{base.name}: {base.size / 1e9:.1f} GB to download, {disk:.1f} GB more on disk for the "
        f"network, about {MINUTES} minutes to build it on two cores, {MEMORY_GB:.1f} GB of memory "
        f"to read with it.\nIt goes to {GraphFolder.of(adapter)}"
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
