"""Refer to a gate by name and content hash, so that every process opens the same gate."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from suffice.errors import InputError, NotReadyError
from suffice.gate.gate import PRESETS, STANDARD, Gate, check_preset, open_gate_folder
from suffice.protocols import GateLike, component_name
from suffice.storage import MANIFEST, sha256_of

DEFAULT = "default"


def open_gate(gate: str, preset: str = STANDARD) -> Gate:
    """The shipped gate for "default" or the name of a preset, otherwise the one at that path."""
    return Gate.load(*_resolve(gate, preset))


def _resolve(gate: str, preset: str) -> tuple[Path | None, str]:
    """The folder of the gate, None for a shipped one, and its preset."""
    check_preset(preset)
    if gate == DEFAULT:
        return None, preset
    if Path(gate).exists():
        return Path(gate), preset
    if gate in PRESETS and preset in (STANDARD, gate):
        return None, gate
    raise InputError(
        f"{gate} is not a gate: there is no such folder",
        hint=f"{DEFAULT!r}, or make one: suffice adapt labels.jsonl --out {gate}",
    )


def gate_identity(gate: GateLike) -> str:
    """A short name for logs that changes with the gate: its preset and a hash of its card."""
    card, policy = getattr(gate, "card", None), getattr(gate, "policy", None)
    if card is None:
        return component_name(gate)
    known = [dict(card), str(policy)]
    if getattr(gate, "depth", ""):
        known.append(repr(getattr(gate, "judge_scale", None)))
    text = json.dumps(known, sort_keys=True, default=str)
    preset = getattr(gate, "preset", "") or "gate"
    return f"{preset}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class GateRef:
    """The location of a gate, and the hash of its manifest, which has the hashes of its files."""

    gate: str
    preset: str
    digest: str

    @classmethod
    def named(cls, gate: str, preset: str = STANDARD) -> GateRef:
        """Resolve a name as `open_gate` does, with the same errors, but load nothing."""
        path, preset = _resolve(gate, preset)
        folder, _ = open_gate_folder(path, preset)
        name = DEFAULT if path is None else str(path.resolve())
        return cls(name, preset, sha256_of(folder / MANIFEST))

    def open(self) -> Gate:
        """Open the gate, also in another process; NotReadyError if it has changed."""
        hint = "put the gate's folder where every worker sees it under this path"
        try:
            here = GateRef.named(self.gate, self.preset)
        except InputError as error:
            raise NotReadyError(f"there is no gate at {self.gate}", hint=hint) from error
        if here.digest != self.digest:
            message = f"the gate {self.gate!r} here is not the one that was asked for"
            raise NotReadyError(message, hint=hint)
        return open_gate(self.gate, self.preset)
