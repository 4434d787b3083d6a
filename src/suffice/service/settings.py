"""Service settings: one record that every worker process receives."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from suffice.errors import InputError
from suffice.service.keys import ApiKeys
from suffice.storage.fields import dataclass_from_json

LOOPBACK = "127.0.0.1"
DEFAULT_GATE = "default"
LABELS_NAME = "labels.jsonl"  # default file for labels
SETTINGS_VARIABLE = "SUFFICE_SERVE"  # environment variable that carries these settings to workers
METRICS_DIR_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # where prometheus-client shares metrics


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one worker.

    Connections, headers and clients that do not read are limited by a proxy before it.
    """

    body_bytes: int = 2 * 1024 * 1024  # per request; in a batch, per line
    batch_lines: int = 100_000
    concurrent_requests: int = 64  # more requests get status 429
    long_requests: int = 4  # of these, /v1/ask, /v1/adapt, /v1/complete and /v1/check/batch
    seconds: float = 30.0  # until a response starts
    ask_seconds: float = 120.0  # for one question to /v1/ask
    adapt_seconds: float = 600.0  # for one request to /v1/adapt
    body_seconds: float = 20.0  # for a whole body; in a batch, between two chunks
    shutdown_seconds: float = 30.0  # for running requests when the service stops

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                message = f"limits: {name} is {value!r}, expected a number above 0"
                raise InputError(message, hint=f"for example --limit {name}=10")


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to listen, what to load, who has access, and how much to accept."""

    host: str = LOOPBACK
    port: int = 8080
    workers: int = 1
    library: str | None = None
    gates: Mapping[str, str] = field(  # name -> "default" or a folder
        default_factory=lambda: {DEFAULT_GATE: DEFAULT_GATE}
    )
    preset: str = "standard"
    gate_folder: str | None = None  # where /v1/adapt writes new gates; None: nowhere
    report: str | None = None  # a gate evaluation run, shown on the page
    label: str | None = None  # questions and hits to label, as JSON lines
    labels: str | None = None  # where labels are stored; None: beside `label`, if there is one
    keys: str | None = None  # the key file; None: no keys, this machine only
    model: str | None = None  # for /v1/ask, as its server names it
    base_url: str | None = None
    model_seconds: float = 30.0
    judge: str | None = None  # asked if a gate is unsure: http://host:8080/v1#model
    log_texts: bool = False
    log_requests: bool = True
    shadow: str | None = None  # a verdict log, for `suffice report --shadow`
    shadow_texts: bool = False  # with titles and texts of hits
    limits: Limits = Limits()

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def labels_path(self) -> Path | None:
        """Where labels are stored; None if the service does not label."""
        if self.labels is not None:
            return Path(self.labels)
        return None if self.label is None else Path(self.label).with_name(LABELS_NAME)

    def validate(self) -> Settings:
        """The same settings, or InputError: other machines need keys, labels need one worker."""
        self._validate_labels()
        if self.is_local:
            return self
        hint = (
            "create a key: suffice serve key new --keys keys.json --name mine; "
            "then: suffice serve --keys keys.json"
        )
        reachable = f"--host {self.host} can be reached from other machines"
        if self.keys is None:
            raise InputError(f"{reachable}, but no keys are required", hint=hint)
        if not ApiKeys(self.keys).all():
            raise InputError(f"{reachable}, but {self.keys} has no key", hint=hint)
        return self

    def _validate_labels(self) -> None:
        if self.labels_path is None:
            return
        if self.workers > 1:
            # Each worker knows only the checks that it served and the items that it handed out.
            message = f"--workers {self.workers} cannot label: only one worker can"
            raise InputError(message, hint="use --workers 1, or leave out --label and --labels")
        if self.label is not None and self.labels_path.resolve() == Path(self.label).resolve():
            message = f"{self.label} cannot have both the questions and their labels"
            raise InputError(message, hint="store the labels elsewhere: --labels FILE")

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        try:
            return dataclass_from_json(cls, json.loads(text))
        except (ValueError, RecursionError) as error:
            hint = "`suffice serve` writes them"
            raise InputError(f"invalid service settings: {error}", hint=hint) from error
