"""Where a Qdrant store is, as one line of text:

    qdrant://host:6333/collection
    qdrant://a:6333,b:6333,c:6333/news?shards=6&replicas=2&tls=true

Several hosts are doors of one cluster: whichever answers will do. What stands behind the question mark is listed in SETTINGS.
Keys do not belong into an address, which is printed and kept in shells' histories: the variable QDRANT_API_KEY holds it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from suffice.errors import InputError, nearest

__all__ = ["KEY", "SETTINGS", "Address", "is_address"]

SCHEME = "qdrant"
KEY = "QDRANT_API_KEY"
EXAMPLE = "qdrant://host:6333/collection"
PORT = 6333


def _whole(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 86_400:
        raise ValueError
    return number


def _yes(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _consistency(text: str) -> int | str:
    if text in ("majority", "quorum", "all"):
        return text
    return _whole(text)


# name in the address: how it is read, what was expected where that fails
SETTINGS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "shards": (_whole, "a whole number of at least 1"),
    "replicas": (_whole, "a whole number of at least 1"),
    "write_consistency": (_whole, "a whole number of at least 1"),
    "read_consistency": (_consistency, "majority, quorum, all or a whole number"),
    "tls": (_yes, "true or false"),
    "exact": (_yes, "true or false"),
    "timeout_s": (_seconds, "seconds"),
    "patience_s": (_seconds, "seconds"),
}


@dataclass(frozen=True, slots=True)
class Address:
    """A collection of a cluster, and how it is to be kept and asked. The first three settings count when it is made."""

    hosts: tuple[str, ...]  # host:port, all of one cluster
    collection: str
    shards: int | None = None  # None: as many as the cluster has nodes
    replicas: int = 1  # copies of each shard
    write_consistency: int = 1  # copies that must have a write before it is acknowledged
    read_consistency: int | str | None = None  # copies that must agree on a read: a number, majority, quorum or all
    tls: bool | None = None  # None: plain, and refused with a key unless the hosts are this machine
    exact: bool = True  # False: vectors are searched approximately, through a graph
    timeout_s: float = 30.0  # for one request
    patience_s: float = 60.0  # for one operation, with all its tries

    @classmethod
    def parse(cls, text: str) -> Address:
        parts = urlsplit(text)
        if "@" in parts.netloc:
            raise InputError("the address holds a user or a key", hint=f"leave it out and set {KEY}")
        hosts = tuple(_host(one, text) for one in parts.netloc.split(",") if one)
        collection = parts.path.strip("/")
        if parts.scheme != SCHEME or not hosts or not re.fullmatch(r"[\w.-]{1,200}", collection):
            raise InputError(f"{text!r} is not the address of a collection", hint=f"write it like {EXAMPLE}")
        return cls(hosts, collection, **dict(_setting(*pair) for pair in parse_qsl(parts.query, keep_blank_values=True)))

    def __str__(self) -> str:
        told = ((one.name, getattr(self, one.name), one.default) for one in fields(self) if one.name in SETTINGS)
        query = "&".join(f"{name}={str(value).lower()}" for name, value, default in told if value != default)
        return f"{SCHEME}://{','.join(self.hosts)}/{self.collection}" + (f"?{query}" if query else "")

    @property
    def local(self) -> bool:
        """Whether nothing leaves this machine."""
        return all(_is_loopback(host) for host in self.hosts)


def is_address(where: object) -> bool:
    """Whether this names a Qdrant collection and not a folder."""
    return isinstance(where, str) and where.startswith(f"{SCHEME}:")


def _host(text: str, whole: str) -> str:
    try:
        parts = urlsplit(f"//{text}")
        name, port = parts.hostname, parts.port
    except ValueError as error:
        raise InputError(f"{whole!r}: {text!r} is not a host and port", hint=f"write it like {EXAMPLE}") from error
    if not name:
        raise InputError(f"{whole!r}: {text!r} is not a host and port", hint=f"write it like {EXAMPLE}")
    return f"{f'[{name}]' if ':' in name else name}:{port or PORT}"


def _setting(name: str, value: str) -> tuple[str, Any]:
    if name not in SETTINGS:
        raise InputError(f"the address has a setting {name!r}", hint=nearest(name, SETTINGS))
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
