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


def check_preset(grade: str) -> None:
    if grade not in storage.PRESETS:
        raise InputError(f"no grade is named {grade!r}", hint=did_you_mean(grade, storage.PRESETS))


def open_gate(gate: str, grade: str = FAST) -> Gate:
    """The shipped gate of that grade for "default", else the one saved at that path; either is wary where told."""
    from suffice.gate.gate import Gate

    return Gate.load(_path(gate, grade), grade)


def _path(gate: str, grade: str) -> Path | None:
    check_preset(grade)
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
    grade: str
    digest: str

    @classmethod
    def named(cls, gate: str, grade: str = FAST) -> GateRef:
        """As `open_gate` takes it; the errors are the same, and nothing is loaded."""
        path = _path(gate, grade)
        folder, _ = storage.open_gate(path, grade)
        return cls(
            gate if path is None else str(path.resolve()), grade, sha256_of(folder / MANIFEST)
        )

    def open(self) -> Gate:
        """The gate, also in another process or on another machine; NotReadyError where it is not the same there."""
        elsewhere = "put the gate's folder where every worker sees it under this path"
        try:
            here = GateRef.named(self.gate, self.grade)
        except InputError as error:
            raise NotReadyError(f"there is no gate at {self.gate}", hint=elsewhere) from error
        if here.digest != self.digest:
            raise NotReadyError(
                f"the gate {self.gate!r} here is not the one that was asked for", hint=elsewhere
            )
        return open_gate(self.gate, self.grade)
