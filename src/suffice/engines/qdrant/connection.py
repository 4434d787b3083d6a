"""The address of a Qdrant store, and requests to its nodes.

    qdrant://host:6333/collection
    qdrant://a:6333,b:6333,c:6333/news?shards=6&replicas=2&tls=true

Several hosts are nodes of one cluster: any of them may answer. SETTINGS lists the options after the
question mark. Set the key in QDRANT_API_KEY: addresses are printed and end up in shell histories.

Every operation is idempotent (the store makes the ids of points, look-ups change nothing). So a
request whose answer was lost is sent again, to the next node.
"""

from __future__ import annotations

import ipaddress
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from importlib import util
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from suffice.errors import EngineError, InputError, MissingExtraError, did_you_mean

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

__all__ = ["MissingCollectionError", "QdrantAddress", "QdrantCluster", "is_qdrant_address"]

SCHEME, PORT = "qdrant", 6333
API_KEY_VARIABLE = "QDRANT_API_KEY"
ADDRESS_HINT = "write it like qdrant://host:6333/collection"
T = TypeVar("T")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
AUTH_STATUS = frozenset({401, 403})


def _positive(text: str, kind: Callable[[str], float] = int, below: float = float("inf")) -> float:
    number = kind(text)
    if not 0 < number < below:
        raise ValueError
    return number


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _consistency(text: str) -> float | str:
    return text if text in ("majority", "quorum", "all") else _positive(text)


_COUNT = (_positive, "a whole number of at least 1")
_SECONDS = (partial(_positive, kind=float, below=86_400), "seconds")
# Name in the address: its parser, and what is expected if that fails.
SETTINGS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "shards": _COUNT,
    "replicas": _COUNT,
    "write_consistency": _COUNT,
    "read_consistency": (_consistency, "majority, quorum, all or a whole number"),
    "tls": (_bool, "true or false"),
    "exact": (_bool, "true or false"),
    "timeout_s": _SECONDS,
    "patience_s": _SECONDS,
}


@dataclass(frozen=True, slots=True)
class QdrantAddress:
    """A collection of a cluster and its settings. The first three apply when it is created."""

    hosts: tuple[str, ...]  # host:port, all of one cluster
    collection: str
    shards: int | None = None  # None: as many as the cluster has nodes
    replicas: int = 1  # copies of each shard
    write_consistency: int = 1  # copies that must have a write before it is acknowledged
    read_consistency: int | str | None = None  # copies that must agree on a read
    tls: bool | None = None  # None: no TLS; with a key this is allowed only on this machine
    exact: bool = True  # False: approximate vector search through a graph
    timeout_s: float = 30.0  # for one request
    patience_s: float = 60.0  # for one operation with all its retries

    @classmethod
    def parse(cls, text: str) -> QdrantAddress:
        parts = urlsplit(text)
        if "@" in parts.netloc:
            hint = f"leave it out and set {API_KEY_VARIABLE}"
            raise InputError("the address contains a user or a key", hint=hint)
        hosts = tuple(_parse_host(one, text) for one in parts.netloc.split(",") if one)
        name = parts.path.strip("/")
        if parts.scheme != SCHEME or not hosts or not re.fullmatch(r"[\w.-]{1,200}", name):
            raise InputError(f"{text!r} is not the address of a collection", hint=ADDRESS_HINT)
        options = parse_qsl(parts.query, keep_blank_values=True)
        return cls(hosts, name, **dict(_parse_setting(*option) for option in options))

    def __str__(self) -> str:
        values = [(one, getattr(self, one.name)) for one in fields(self) if one.name in SETTINGS]
        chosen = [f"{one.name}={value}".lower() for one, value in values if value != one.default]
        query = f"?{'&'.join(chosen)}" if chosen else ""
        return f"{SCHEME}://{','.join(self.hosts)}/{self.collection}{query}"

    @property
    def local(self) -> bool:
        """Whether nothing leaves this machine."""
        return all(_is_loopback(host) for host in self.hosts)


def is_qdrant_address(where: object) -> bool:
    """Whether this is a Qdrant address and not a folder."""
    return isinstance(where, str) and where.startswith(f"{SCHEME}:")


def _parse_host(text: str, address: str) -> str:
    try:
        parts = urlsplit(f"//{text}")
        name, port = parts.hostname, parts.port or PORT
    except ValueError:
        name = None
    if not name:
        raise InputError(f"{address!r}: {text!r} is not a host and port", hint=ADDRESS_HINT)
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def _parse_setting(name: str, value: str) -> tuple[str, Any]:
    if name not in SETTINGS:
        hint = did_you_mean(name, SETTINGS)
        raise InputError(f"the address has an unknown setting {name!r}", hint=hint)
    parse, expected = SETTINGS[name]
    try:
        return name, parse(value)
    except (ValueError, KeyError) as error:
        raise InputError(f"{name} is {value!r} in the address, expected {expected}") from error


def _is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


class MissingCollectionError(Exception):
    """There is no such collection."""


class QdrantCluster:
    """The nodes of one cluster. `calls` counts answered requests."""

    def __init__(self, address: QdrantAddress, *, api_key: str | None = None) -> None:
        self.address, self.calls = address, 0
        if util.find_spec("qdrant_client") is None:
            raise MissingExtraError("a store on Qdrant", extra="qdrant")
        self._key = api_key or os.environ.get(API_KEY_VARIABLE) or None
        if self._key and address.tls is None and not address.local:
            raise InputError(
                f"the key would travel to {', '.join(address.hosts)} unencrypted",
                hint="add ?tls=true to the address, or ?tls=false inside a network that you trust",
            )
        self._clients: dict[str, QdrantClient] = {}
        self._next = 0

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients = {}

    def ask(self, request: Callable[[QdrantClient], T]) -> T:
        """The answer of the first node that gives one; EngineError if none does in `patience_s`."""
        deadline = time.monotonic() + self.address.patience_s
        hosts, pause, tries = self.address.hosts, FIRST_PAUSE_S, 0
        while True:
            host = hosts[self._next % len(hosts)]
            try:
                answer = request(self._client(host))
                self.calls += 1
                return answer
            except Exception as error:  # noqa: BLE001 - sorted out by `_retryable_cause`
                cause = self._retryable_cause(error, host)
            tries += 1
            self._next += 1
            if time.monotonic() >= deadline:
                names, waited = ", ".join(hosts), f"{self.address.patience_s:g} s"
                raise EngineError(
                    f"no node of {names} answered in {waited}: {cause}",
                    hint="check that Qdrant runs there; nothing here needs a restart",
                    retryable=True,
                )
            if tries % len(hosts) == 0:  # every node was tried
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)

    def _client(self, host: str) -> QdrantClient:
        if host not in self._clients:
            from qdrant_client import QdrantClient  # lazy: slow to import, and an extra

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about a key without TLS, which is checked above
                self._clients[host] = QdrantClient(
                    url=f"{'https' if self.address.tls else 'http'}://{host}",
                    api_key=self._key,
                    timeout=max(1, round(self.address.timeout_s)),
                    check_compatibility=False,
                )
        return self._clients[host]

    def _retryable_cause(self, error: Exception, host: str) -> str:
        """Describe a failure worth a retry; raise any other."""
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        if isinstance(error, (ResponseHandlingException, ResourceExhaustedResponse)):
            return f"{host}: {error}"
        if not isinstance(error, UnexpectedResponse):
            raise error
        status, body = error.status_code or 0, (error.content or b"").decode(errors="replace")
        text = str(body or error.reason_phrase)[:500]
        if status in RETRY_STATUS:
            return f"{host}: {status} {text}"
        if status in AUTH_STATUS:
            hint = f"set {API_KEY_VARIABLE} to a key of this cluster"
            raise EngineError(f"{host} refuses the key", hint=hint) from None
        if status == 404 and "ollection" in text:
            raise MissingCollectionError(text) from None
        too_large = status == 413
        hint = "cut long documents: --chunk-tokens 256" if too_large else "see the server's log"
        raise EngineError(f"{host} answered {status}: {text}", hint=hint) from None
