"""Where the stages of a benchmark are kept: each whole or not there, known by the key of all that it was made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from suffice.errors import SufficeError
from suffice.storage import new_artefact, open_artefact, remove_dead_drafts, sha256_of

__all__ = ["StageCache"]

_KIND, _VERSION = "grade-stage", 1
_REBUILD = "run `suffice grade` again with the same --out; it makes what is missing"


class StageCache:
    """The stages of one folder, and the files for readers that some of them put beside themselves."""

    def __init__(self, out: Path) -> None:
        self._out = out

    def folder(self, name: str) -> Path:
        return self._out / "stages" / name

    def holds(self, name: str) -> bool:
        return (self._out / name).exists()

    def stage(
        self,
        name: str,
        made_from: Mapping[str, Any],
        fill: Callable[[Path], None],
        *,
        beside: Sequence[str] = (),
    ) -> tuple[str, bool]:
        """Do the stage unless its output and the files `beside` stand there as made under its key; the key, and if it was done.

        The manifest holds the hashes of the files beside: a run that died may have left its own beside another's stage.
        """
        told = json.loads(json.dumps(made_from))
        key = hashlib.sha256(json.dumps([name, _code(), told], sort_keys=True).encode()).hexdigest()
        try:
            manifest = open_artefact(
                self.folder(name), kind=_KIND, version=_VERSION, rebuild=_REBUILD
            )
            if manifest.settings.get("key") == key and manifest.inputs == self._hashes(beside):
                for one in beside:  # a run of other settings may have died in the middle of them, and nobody writes them now
                    remove_dead_drafts(self._out / one)
                return key, False
        except SufficeError:
            pass  # not there, damaged or of another version: it is made anew
        hashes: dict[str, str] = {}  # filled before the manifest is written
        settings = {"key": key, **told}
        with new_artefact(
            self.folder(name), kind=_KIND, version=_VERSION, settings=settings, inputs=hashes
        ) as folder:
            fill(folder)
            hashes |= {one: sha256_of(self._out / one) for one in beside}
        return key, True

    def _hashes(self, names: Sequence[str]) -> dict[str, str]:
        return {name: sha256_of(self._out / name) for name in names if self.holds(name)}


@cache
def _code() -> str:
    """A hash of this room's source: what older rules made is not what these rules make."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(sha256_of(file).encode() for file in files)).hexdigest()
