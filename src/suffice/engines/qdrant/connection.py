"""Where a Qdrant store is, as one line of text:

    qdrant://host:6333/collection
    qdrant://a:6333,b:6333,c:6333/news?shards=6&replicas=2&tls=true

Several hosts are doors of one cluster: whichever answers will do. What stands behind the question mark is listed in SETTINGS.
Keys do not belong into an address, which is printed and kept in shells' histories: the variable QDRANT_API_KEY holds it.
"""

from __future__ import annotations

import ipaddress
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import util
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from suffice.errors import EngineError, InputError, MissingExtraError, did_you_mean

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

__all__ = [
    "API_KEY_VARIABLE",
    "SETTINGS",
    "MissingCollectionError",
    "QdrantAddress",
    "QdrantCluster",
    "is_qdrant_address",
]


SCHEME = "qdrant"
API_KEY_VARIABLE = "QDRANT_API_KEY"
EXAMPLE = "qdrant://host:6333/collection"
PORT = 6333


def _positive_int(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 86_400:
        raise ValueError
    return number


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _consistency(text: str) -> int | str:
    if text in ("majority", "quorum", "all"):
        return text
    return _positive_int(text)


# name in the address: how it is read, what was expected where that fails
SETTINGS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "shards": (_positive_int, "a whole number of at least 1"),
    "replicas": (_positive_int, "a whole number of at least 1"),
    "write_consistency": (_positive_int, "a whole number of at least 1"),
    "read_consistency": (_consistency, "majority, quorum, all or a whole number"),
    "tls": (_bool, "true or false"),
    "exact": (_bool, "true or false"),
    "timeout_s": (_seconds, "seconds"),
    "patience_s": (_seconds, "seconds"),
}


@dataclass(frozen=True, slots=True)
class QdrantAddress:
    """A collection of a cluster, and how it is to be kept and asked. The first three settings count when it is made."""

    hosts: tuple[str, ...]  # host:port, all of one cluster
    collection: str
    shards: int | None = None  # None: as many as the cluster has nodes
    replicas: int = 1  # copies of each shard
    write_consistency: int = 1  # copies that must have a write before it is acknowledged
    read_consistency: int | str | None = (
        None  # copies that must agree on a read: a number, majority, quorum or all
    )
    tls: bool | None = None  # None: plain, and refused with a key unless the hosts are this machine
    exact: bool = True  # False: vectors are searched approximately, through a graph
    timeout_s: float = 30.0  # for one request
    patience_s: float = 60.0  # for one operation, with all its tries

    @classmethod
    def parse(cls, text: str) -> QdrantAddress:
        parts = urlsplit(text)
        if "@" in parts.netloc:
            raise InputError(
                "the address holds a user or a key", hint=f"leave it out and set {API_KEY_VARIABLE}"
            )
        hosts = tuple(_parse_host(one, text) for one in parts.netloc.split(",") if one)
        collection = parts.path.strip("/")
        if parts.scheme != SCHEME or not hosts or not re.fullmatch(r"[\w.-]{1,200}", collection):
            raise InputError(
                f"{text!r} is not the address of a collection", hint=f"write it like {EXAMPLE}"
            )
        return cls(
            hosts,
            collection,
            **dict(
                _parse_setting(*pair) for pair in parse_qsl(parts.query, keep_blank_values=True)
            ),
        )

    def __str__(self) -> str:
        told = (
            (one.name, getattr(self, one.name), one.default)
            for one in fields(self)
            if one.name in SETTINGS
        )
        query = "&".join(
            f"{name}={str(value).lower()}" for name, value, default in told if value != default
        )
        return f"{SCHEME}://{','.join(self.hosts)}/{self.collection}" + (
            f"?{query}" if query else ""
        )

    @property
    def local(self) -> bool:
        """Whether nothing leaves this machine."""
        return all(_is_loopback(host) for host in self.hosts)


def is_qdrant_address(where: object) -> bool:
    """Whether this names a Qdrant collection and not a folder."""
    return isinstance(where, str) and where.startswith(f"{SCHEME}:")


def _parse_host(text: str, whole: str) -> str:
    try:
        parts = urlsplit(f"//{text}")
        name, port = parts.hostname, parts.port
    except ValueError as error:
        raise InputError(
            f"{whole!r}: {text!r} is not a host and port", hint=f"write it like {EXAMPLE}"
        ) from error
    if not name:
        raise InputError(
            f"{whole!r}: {text!r} is not a host and port", hint=f"write it like {EXAMPLE}"
        )
    return f"{f'[{name}]' if ':' in name else name}:{port or PORT}"


def _parse_setting(name: str, value: str) -> tuple[str, Any]:
    if name not in SETTINGS:
        raise InputError(f"the address has a setting {name!r}", hint=did_you_mean(name, SETTINGS))
    read, expected = SETTINGS[name]
    try:
        return name, read(value)
    except (ValueError, KeyError) as error:
        raise InputError(f"{name} is {value!r} in the address, expected {expected}") from error


def _is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


# --- cluster: Talking to a cluster: whichever node answers will do, and what failed for a moment is tried again.

T = TypeVar("T")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
AUTH_STATUS = frozenset({401, 403})


class MissingCollectionError(Exception):
    """There is no such collection."""


class QdrantCluster:
    """The nodes of one cluster behind one door. `calls` counts the requests that were answered: round trips."""

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
        self._at = 0

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients = {}

    def ask(self, what: Callable[[QdrantClient], T]) -> T:
        """The answer of the first node that gives one; EngineError when none does for `patience_s`."""
        deadline = time.monotonic() + self.address.patience_s
        hosts, pause, tried = self.address.hosts, FIRST_PAUSE_S, 0
        while True:
            host = hosts[self._at % len(hosts)]
            try:
                answer = what(self._client(host))
                self.calls += 1
                return answer
            except Exception as error:  # noqa: BLE001 - sorted out by `_passing`
                trouble = self._passing(error, host)  # raises where trying again is no use
            tried += 1
            self._at += 1
            if time.monotonic() >= deadline:
                raise EngineError(
                    f"no node of {', '.join(hosts)} answered in {self.address.patience_s:g} s: {trouble}",
                    hint="see that Qdrant runs there; nothing has to be restarted here when it is back",
                    retryable=True,
                )
            if tried % len(hosts) == 0:  # every node had its turn
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)

    def _client(self, host: str) -> QdrantClient:
        if host not in self._clients:
            from qdrant_client import QdrantClient  # late: slow to import, and an extra

            scheme = "https" if self.address.tls else "http"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about a key without TLS, which was settled above
                self._clients[host] = QdrantClient(
                    url=f"{scheme}://{host}",
                    api_key=self._key,
                    timeout=max(1, round(self.address.timeout_s)),
                    check_compatibility=False,
                )
        return self._clients[host]

    def _passing(self, error: Exception, host: str) -> str:
        """Trouble that may pass, in words; whatever else it is, is raised."""
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        if isinstance(error, (ResponseHandlingException, ResourceExhaustedResponse)):
            return f"{host}: {error}"
        if not isinstance(error, UnexpectedResponse):
            raise error
        status, said = error.status_code or 0, _response_text(error)
        if status in RETRY_STATUS:
            return f"{host}: {status} {said}"
        if status in AUTH_STATUS:
            raise EngineError(
                f"{host} refuses the key", hint=f"set {API_KEY_VARIABLE} to a key of this cluster"
            ) from None
        if status == 404 and "ollection" in said:
            raise MissingCollectionError(said) from None
        hint = "cut long documents: --chunk-tokens 256" if status == 413 else "see the server's log"
        raise EngineError(f"{host} answered {status}: {said}", hint=hint) from None


def _response_text(error: Any) -> str:
    return str(error.content.decode(errors="replace") if error.content else error.reason_phrase)[
        :500
    ]
