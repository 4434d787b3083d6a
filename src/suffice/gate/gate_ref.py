"""A gate by name and by content: whoever opens it, in whatever process, gets the one that was meant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import InputError, NotReadyError, did_you_mean
from suffice.gate import storage
from suffice.storage import MANIFEST, sha256_of

if TYPE_CHECKING:
    from suffice.gate.gate import Gate

__all__ = ["DEFAULT", "FAST", "HARDENED", "QUALITY", "GateRef", "check_preset", "open_gate"]

DEFAULT = "default"
FAST, QUALITY, HARDENED = storage.PRESETS


def check_preset(preset: str) -> None:
    if preset not in storage.PRESETS:
        raise InputError(
            f"no preset is named {preset!r}", hint=did_you_mean(preset, storage.PRESETS)
        )


def open_gate(gate: str, preset: str = FAST) -> Gate:
    """The shipped gate of that preset for "default", else the one saved at that path; either is hardened where told."""
    from suffice.gate.gate import Gate

    return Gate.load(_path(gate, preset), preset)


def _path(gate: str, preset: str) -> Path | None:
    check_preset(preset)
    if gate == DEFAULT:
        return None
    if not Path(gate).exists():
        raise InputError(
            f"{gate} is not a gate: there is no such folder",
            hint=f"{DEFAULT!r}, or make one: suffice fit … --out {gate}",
        )
    return Path(gate)


@dataclass(frozen=True, slots=True)
class GateRef:
    """Where a gate is, and the hash of its manifest, which holds the hashes of its files."""

    gate: str
    preset: str
    digest: str

    @classmethod
    def named(cls, gate: str, preset: str = FAST) -> GateRef:
        """As `open_gate` takes it; the errors are the same, and nothing is loaded."""
        path = _path(gate, preset)
        folder, _ = storage.open_gate(path, preset)
        return cls(
            gate if path is None else str(path.resolve()), preset, sha256_of(folder / MANIFEST)
        )

    def open(self) -> Gate:
        """The gate, also in another process or on another machine; NotReadyError where it is not the same there."""
        elsewhere = "put the gate's folder where every worker sees it under this path"
        try:
            here = GateRef.named(self.gate, self.preset)
        except InputError as error:
            raise NotReadyError(f"there is no gate at {self.gate}", hint=elsewhere) from error
        if here.digest != self.digest:
            raise NotReadyError(
                f"the gate {self.gate!r} here is not the one that was asked for", hint=elsewhere
            )
        return open_gate(self.gate, self.preset)
