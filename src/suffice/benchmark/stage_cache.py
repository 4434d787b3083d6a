"""The stage outputs of a benchmark on disk: complete or absent, keyed by their inputs."""

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

_KIND, _VERSION = "grade-stage", 1
_REBUILD = "run `suffice grade` again with the same --out; it makes what is missing"


class StageCache:
    """The stages of one folder, and the files that some of them write beside it for readers."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self.keys: dict[str, str] = {}
        self.done: list[str] = []  # stages that were done, not found

    def records(
        self,
        name: str,
        settings: Mapping[str, Any],
        make: Callable[[], Iterable[dict[str, Any]]],
        *,
        after: Sequence[str],
    ) -> list[dict[str, Any]]:
        """The records of a stage, made unless they are cached."""
        file = self.stage(
            name,
            settings,
            lambda folder: write_atomically(folder / "records.jsonl", map(json_line, make())),
            after=after,
        )
        with (file / "records.jsonl").open(encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]

    def stage(
        self,
        name: str,
        settings: Mapping[str, Any],
        fill: Callable[[Path], None],
        *,
        after: Sequence[str] = (),
        outputs: Sequence[str] = (),
    ) -> Path:
        """Do a stage unless its output and the files `outputs` are there under its key; its folder.

        The manifest has the hashes of these files: a killed run may have left its own there.
        """
        inputs = {**settings, **{name: self.keys[name] for name in after}}
        inputs = json.loads(json.dumps(inputs))
        content = json.dumps([name, _code(), inputs], sort_keys=True)
        key = self.keys[name] = hashlib.sha256(content.encode()).hexdigest()
        path = self._out / "stages" / name
        if not self._is_cached(path, key, outputs):
            hashes: dict[str, str] = {}  # filled before the manifest is written
            inputs = {"key": key, **inputs}
            with new_artefact(
                path, kind=_KIND, version=_VERSION, settings=inputs, inputs=hashes
            ) as folder:
                fill(folder)
                hashes |= {one: sha256_of(self._out / one) for one in outputs}
            self.done.append(name)
        return path

    def _is_cached(self, path: Path, key: str, outputs: Sequence[str]) -> bool:
        try:
            manifest = open_artefact(path, kind=_KIND, version=_VERSION, rebuild=_REBUILD)
        except SufficeError:
            return False  # absent, damaged or of another version: it is made again
        there = [one for one in outputs if (self._out / one).exists()]
        hashes = {one: sha256_of(self._out / one) for one in there}
        if manifest.settings.get("key") != key or manifest.inputs != hashes:
            return False
        for one in outputs:  # a run with other settings may have died while writing them
            remove_dead_drafts(self._out / one)
        return True


def json_line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, sort_keys=True) + "\n"


@cache
def _code() -> str:
    """A hash of the rules (code and tables): what older rules made is not what these make."""
    files = sorted(one for one in Path(__file__).parent.iterdir() if one.suffix in (".py", ".toml"))
    return hashlib.sha256(b"".join(sha256_of(file).encode() for file in files)).hexdigest()
