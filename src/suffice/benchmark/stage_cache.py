"""The stage outputs of a benchmark on disk: complete or absent, keyed by all they were made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from suffice.errors import SufficeError
from suffice.storage import (
    new_artefact,
    open_artefact,
    remove_dead_drafts,
    sha256_of,
    write_atomically,
)

__all__ = ["StageCache", "json_line"]

_KIND, _VERSION = "grade-stage", 1
_REBUILD = "run `suffice grade` again with the same --out; it makes what is missing"


class StageCache:
    """The stages of one folder, and the files that some of them write beside it for readers."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self.done: list[str] = []  # stages that were done, not found

    def folder(self, name: str) -> Path:
        return self._out / "stages" / name

    def records(
        self, name: str, made_from: Mapping[str, Any], make: Callable[[], Iterable[dict[str, Any]]]
    ) -> tuple[list[dict[str, Any]], str]:
        """The records of a stage, made unless they are cached, and its key."""

        def fill(folder: Path) -> None:
            write_atomically(folder / "records.jsonl", map(json_line, make()))

        key = self.stage(name, made_from, fill)
        with (self.folder(name) / "records.jsonl").open(encoding="utf-8") as stream:
            return [json.loads(line) for line in stream], key

    def stage(
        self,
        name: str,
        made_from: Mapping[str, Any],
        fill: Callable[[Path], None],
        *,
        beside: Sequence[str] = (),
    ) -> str:
        """Do a stage unless its output and the files `beside` are there under its key; its key.

        The manifest has the hashes of the files beside: a killed run may have left its own there.
        """
        settings = json.loads(json.dumps(made_from))
        key = hashlib.sha256(json.dumps([name, _code(), settings], sort_keys=True).encode())
        settings = {"key": key.hexdigest(), **settings}
        if self._is_cached(name, settings["key"], beside):
            return str(settings["key"])
        hashes: dict[str, str] = {}  # filled before the manifest is written
        with new_artefact(
            self.folder(name), kind=_KIND, version=_VERSION, settings=settings, inputs=hashes
        ) as folder:
            fill(folder)
            hashes |= {one: sha256_of(self._out / one) for one in beside}
        self.done.append(name)
        return str(settings["key"])

    def _is_cached(self, name: str, key: str, beside: Sequence[str]) -> bool:
        try:
            manifest = open_artefact(
                self.folder(name), kind=_KIND, version=_VERSION, rebuild=_REBUILD
            )
        except SufficeError:
            return False  # absent, damaged or of another version: it is made again
        there = [one for one in beside if (self._out / one).exists()]
        hashes = {one: sha256_of(self._out / one) for one in there}
        if manifest.settings.get("key") != key or manifest.inputs != hashes:
            return False
        for one in beside:  # a run with other settings may have died while writing them
            remove_dead_drafts(self._out / one)
        return True


def json_line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, sort_keys=True) + "\n"


@cache
def _code() -> str:
    """A hash of the rules (code and tables): what older rules made is not what these make."""
    files = sorted(one for one in Path(__file__).parent.iterdir() if one.suffix in (".py", ".toml"))
    return hashlib.sha256(b"".join(sha256_of(file).encode() for file in files)).hexdigest()
