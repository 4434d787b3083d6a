"""API keys: who may come in. The file holds hashes only, so that whoever reads it cannot use it.

    token, key = Keys("keys.json").new("laptop", ("read",))      the token is shown once and stands nowhere
    Keys("keys.json").admitted(token)                            the key, or None

A token is 256 random bits behind its key's name. Nothing about it can be guessed, so that one round of SHA-256 hides it as well
as a slow hash would, and a flood of wrong tokens costs nothing. Changes to the file are seen by running workers at once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from suffice.errors import DataError, InputError
from suffice.storage import write_atomically

__all__ = ["READ", "WRITE", "ApiKey", "ApiKeys"]

READ, WRITE = SCOPES = ("read", "write")
VERSION = 1
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
TOKEN = re.compile(r"suf_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key: its public id, what its owner calls it, what it may do, and the hash of its token."""

    key_id: str
    name: str
    scopes: tuple[str, ...]
    sha256: str
    made_at: str


class ApiKeys:
    """The keys of one file; a missing file holds none."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._read_at: tuple[int, int, int] | None = None
        self._keys: dict[str, ApiKey] = {}

    def known(self) -> list[ApiKey]:
        """All keys, in the order they were made."""
        return list(self._now().values())

    def new(self, name: str, scopes: tuple[str, ...] = (READ,)) -> tuple[str, ApiKey]:
        """A token to hand over, and its key, which is in the file."""
        if not NAME.fullmatch(name):
            raise InputError(
                f"the name {name!r} is no name for a key",
                hint="letters, digits, dots and dashes; 64 at most",
            )
        if not scopes or not set(scopes) <= set(SCOPES):
            raise InputError(f"the scopes are {scopes!r}", hint="read, write, or both")
        keys = self._now()
        if any(one.name == name for one in keys.values()):
            raise InputError(
                f"a key named {name!r} is there already",
                hint="choose another name, or revoke it first",
            )
        key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        token = f"suf_{key_id}_{secret}"
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        key = ApiKey(key_id, name, tuple(sorted(set(scopes))), _hash(token), made_at)
        self._write([*keys.values(), key])
        return token, key

    def revoke(self, name: str) -> ApiKey:
        """Take the key of this name or id out; whoever holds its token stays outside from now on."""
        keys = self._now()
        found = next((one for one in keys.values() if name in (one.name, one.key_id)), None)
        if found is None:
            known = ", ".join(one.name for one in keys.values()) or "none"
            raise InputError(f"{self.path} has no key named {name!r}", hint=f"its keys: {known}")
        self._write([one for one in keys.values() if one is not found])
        return found

    def admitted(self, token: str) -> ApiKey | None:
        """The key that this token opens with; None for any other text."""
        parts = TOKEN.fullmatch(token)
        key = self._now().get(parts[1]) if parts else None
        return key if key is not None and hmac.compare_digest(_hash(token), key.sha256) else None

    def _now(self) -> dict[str, ApiKey]:
        """The keys as the file has them; read again only when it has changed."""
        try:
            seen = self.path.stat()
        except FileNotFoundError:
            self._read_at, self._keys = None, {}
            return self._keys
        except (
            OSError,
            ValueError,
        ) as error:  # a name that no disk takes, a folder that may not be looked into
            raise DataError(
                f"{str(self.path)[:200]} can be no file of keys: {error!r:.200}",
                hint="name another file",
            ) from error
        at = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
        if at != self._read_at:
            self._keys = {key.key_id: key for key in self._read()}
            self._read_at = at
        return self._keys

    def _read(self) -> list[ApiKey]:
        try:
            record: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            if record["version"] != VERSION:
                raise ValueError(f"its version is {record['version']!r}, expected {VERSION}")
            return [_parse_key(one) for one in record["keys"]]
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DataError(
                f"{self.path} is no file of keys: {error!r}",
                hint="restore it, or make new keys elsewhere",
            ) from error

    def _write(self, keys: list[ApiKey]) -> None:
        record = {"version": VERSION, "keys": [asdict(one) for one in keys]}
        write_atomically(self.path, json.dumps(record, indent=2) + "\n")
        os.chmod(self.path, 0o600)


def _parse_key(told: dict[str, Any]) -> ApiKey:
    key = ApiKey(**{**told, "scopes": tuple(told["scopes"])})
    if not all(
        isinstance(one, str) and one.isascii()
        for one in (key.key_id, key.name, key.sha256, key.made_at, *key.scopes)
    ):
        raise TypeError("a field of a key holds no text")
    return key


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
