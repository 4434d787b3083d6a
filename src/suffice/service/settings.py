"""What an operator decides about a service, in one record that every worker is given."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from suffice.errors import InputError
from suffice.service.keys import ApiKeys
from suffice.storage.fields import dataclass_from_json

__all__ = ["DEFAULT_GATE", "METRICS_DIR_VARIABLE", "SETTINGS_VARIABLE", "Limits", "Settings"]

LOOPBACK = "127.0.0.1"
DEFAULT_GATE = "default"
SETTINGS_VARIABLE = "SUFFICE_SERVE"  # the variable in which a worker process finds these settings
METRICS_DIR_VARIABLE = (
    "PROMETHEUS_MULTIPROC_DIR"  # ... and prometheus-client the folder of all workers' figures
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one worker takes in. Everything that a stranger could make large or long has a bound here."""

    body_bytes: int = 2 * 1024 * 1024  # of one request; in a batch, of one line
    batch_lines: int = 100_000
    hits: int = 1000  # of one question; the gate reads the first few
    documents: int = 1000  # of one write
    at_once: int = 64  # requests in work, beyond which they are turned away with 429
    journeys: int = 4  # of these, /v1/ask and /v1/complete
    connections: int = 1024
    seconds: float = 30.0  # until an answer begins
    ask_seconds: float = 120.0  # for one question of /v1/ask
    head_seconds: float = 10.0  # for a request line and its headers
    body_seconds: float = 20.0  # for a whole body; in a batch, between two pieces of it
    leave_seconds: float = 30.0  # for what is in work when the service is told to stop

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InputError(f"limits: {name} is {value!r}, expected a number above 0")


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to listen, what to hold, whom to let in, how much to take on."""

    host: str = LOOPBACK
    port: int = 8080
    workers: int = 1
    library: str | None = None
    gates: Mapping[str, str] = field(
        default_factory=lambda: {DEFAULT_GATE: DEFAULT_GATE}
    )  # name -> "default" or a folder
    preset: str = "fast"
    report: str | None = None  # a gate's run, for the page
    keys: str | None = None  # the file; None: nobody is asked, which only this machine may use
    model: str | None = None  # for /v1/ask, as its server names it
    base_url: str | None = None
    model_seconds: float = 30.0
    log_texts: bool = False
    log_requests: bool = True
    limits: Limits = Limits()

    @property
    def local(self) -> bool:
        """Can only this machine reach it?"""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def checked(self) -> Settings:
        """The same, or an InputError: beyond this machine nobody is served who shows no key."""
        if self.local:
            return self
        make = "make a key: suffice serve key new --keys keys.json --name mine; then: suffice serve --keys keys.json"
        if self.keys is None:
            raise InputError(
                f"--host {self.host} can be reached from other machines, and no keys are asked for",
                hint=make,
            )
        if not ApiKeys(self.keys).known():
            raise InputError(
                f"--host {self.host} can be reached from other machines, and {self.keys} has no key",
                hint=make,
            )
        return self

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        try:
            return dataclass_from_json(cls, json.loads(text))
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"these are no settings of a service: {error}", hint="`suffice serve` writes them"
            ) from error
