"""The outputs of stages on disk: complete or absent, keyed by their inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from suffice.errors import InputError, SufficeError
from suffice.storage.artefacts import (
    MANIFEST,
    new_artefact,
    open_artefact,
    read_json,
    remove_dead_drafts,
    sha256_of,
    write_atomically,
)

_VERSION = 1
STAGES_DIR = "stages"


class StageCache:
    """The stages in one folder, and the files that some of them write beside it for users.

    `command` is the command that makes them, such as `grade`; `code` is part of every key.
    """

    def __init__(self, out: Path, command: str, *, code: str = "") -> None:
        self._out, self._kind, self._code = out, _stage_kind(command), code
        self._rebuild = (
            f"run `suffice {command}` again with the same --out; it makes what is missing"
        )
        self.keys: dict[str, str] = {}
        self.done: list[str] = []  # stages that were run, not loaded

    def records(
        self,
        name: str,
        settings: Mapping[str, Any],
        make: Callable[[], Iterable[dict[str, Any]]],
        *,
        after: Sequence[str],
    ) -> list[dict[str, Any]]:
        """The records of a stage, computed unless cached."""
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
        """Run a stage unless it is cached; return its folder.

        The manifest has the hashes of the files `outputs`: an interrupted run may have left other
        versions of them.
        """
        path = self.folder(name)
        if not self.is_cached(name, settings, after=after, outputs=outputs):
            hashes: dict[str, str] = {}  # filled before the manifest is written
            inputs = {"key": self.keys[name], **self._inputs(settings, after)}
            with new_artefact(
                path, kind=self._kind, version=_VERSION, settings=inputs, inputs=hashes
            ) as folder:
                fill(folder)
                hashes |= self._hashes(outputs)
            self.done.append(name)
        return path

    def folder(self, name: str) -> Path:
        return self._out / STAGES_DIR / name

    def is_cached(
        self,
        name: str,
        settings: Mapping[str, Any],
        *,
        after: Sequence[str] = (),
        outputs: Sequence[str] = (),
    ) -> bool:
        """Whether the stage and the files `outputs` are cached under its key; also sets the key."""
        content = json.dumps([name, self._code, self._inputs(settings, after)], sort_keys=True)
        key = self.keys[name] = hashlib.sha256(content.encode()).hexdigest()
        path, rebuild = self.folder(name), self._rebuild
        try:
            manifest = open_artefact(path, kind=self._kind, version=_VERSION, rebuild=rebuild)
        except SufficeError:
            return False  # missing, damaged or of another version: run the stage again
        if manifest.settings.get("key") != key or manifest.inputs != self._hashes(outputs):
            return False
        for one in outputs:  # an interrupted run with other settings may have changed them
            remove_dead_drafts(self._out / one)
        return True

    def _inputs(self, settings: Mapping[str, Any], after: Sequence[str]) -> dict[str, Any]:
        inputs = {**settings, **{name: self.keys[name] for name in after}}
        values: dict[str, Any] = json.loads(json.dumps(inputs))
        return values

    def _hashes(self, outputs: Sequence[str]) -> dict[str, str]:
        files = {one: self._out / one for one in outputs}
        return {one: sha256_of(file) for one, file in files.items() if file.exists()}


def check_folder(out: Path, command: str, usage: str, *, may_hold: Collection[str] = ()) -> None:
    """InputError if `out` has files but no stages of this command, which would mix with them.

    `may_hold` names files that may be there before the first stage.
    """
    if not out.exists():
        return
    names = {one.name for one in out.iterdir()} if out.is_dir() else {out.name}
    own = {one for one in names if not one.startswith(".")} <= set(may_hold)
    if (stages := out / STAGES_DIR).is_dir():
        kinds = {_artefact_kind(one) for one in stages.iterdir() if not one.name.startswith(".")}
        own = not kinds or _stage_kind(command) in kinds
    if not own:
        raise InputError(
            f"{out} exists and was not made by suffice {command}: its files would be mixed",
            hint=f"choose a new or empty folder: {usage}",
        )


def _stage_kind(command: str) -> str:
    return f"{command}-stage"


def _artefact_kind(path: Path) -> object:
    try:
        return read_json(path / MANIFEST).get("kind")
    except (OSError, ValueError):
        return None


def json_line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, sort_keys=True) + "\n"


@cache
def hash_code(folder: Path) -> str:
    """A hash of the rules of a package (code and tables), so that a changed rule reruns stages."""
    files = sorted(one for one in folder.iterdir() if one.suffix in (".py", ".toml"))
    return hashlib.sha256(b"".join(sha256_of(file).encode() for file in files)).hexdigest()
