"""API keys. The file contains only hashes, so reading it gives no access.

    token, key = ApiKeys("keys.json").create("laptop", ("read",))   the token is shown once
    ApiKeys("keys.json").authenticate(token)                        the key, or None

A token is 256 random bits after its key's id. It cannot be guessed, so one round of SHA-256
protects it as well as a slow hash, and a flood of wrong tokens costs little. Running workers see
changes to the file at once.
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

READ, WRITE, LABEL = SCOPES = ("read", "write", "label")
VERSION = 1
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
TOKEN = re.compile(r"suf_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key: its public id, its owner's name for it, its scopes, and the hash of its token."""

    key_id: str
    name: str
    scopes: tuple[str, ...]
    sha256: str
    made_at: str


class ApiKeys:
    """The keys in one file; a missing file holds none."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._stamp: tuple[int, int, int] | None = None
        self._keys: dict[str, ApiKey] = {}

    def all(self) -> list[ApiKey]:
        """All keys, oldest first."""
        return list(self._current().values())

    def create(self, name: str, scopes: tuple[str, ...] = (READ,)) -> tuple[str, ApiKey]:
        """A new token to hand over, and its key, which is stored in the file."""
        if not NAME.fullmatch(name):
            hint = "use letters, digits, dots and dashes; 64 at most"
            raise InputError(f"{name!r} is not a valid key name", hint=hint)
        if not scopes or not set(scopes) <= set(SCOPES):
            raise InputError(f"the scopes are {scopes!r}", hint="use some of read, write and label")
        keys = self._current()
        if any(key.name == name for key in keys.values()):
            hint = "choose another name, or revoke it"
            raise InputError(f"a key named {name!r} already exists", hint=hint)
        key_id = secrets.token_hex(6)
        token = f"suf_{key_id}_{secrets.token_urlsafe(32)}"
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        key = ApiKey(key_id, name, tuple(sorted(set(scopes))), _hash(token), made_at)
        self._write([*keys.values(), key])
        return token, key

    def revoke(self, name: str) -> ApiKey:
        """Remove the key with this name or id; its token stops working."""
        keys = self._current()
        revoked = next((key for key in keys.values() if name in (key.name, key.key_id)), None)
        if revoked is None:
            known = ", ".join(key.name for key in keys.values()) or "none"
            raise InputError(f"{self.path} has no key named {name!r}", hint=f"its keys: {known}")
        self._write([key for key in keys.values() if key is not revoked])
        return revoked

    def authenticate(self, token: str) -> ApiKey | None:
        """The key of this token; None if there is none."""
        parts = TOKEN.fullmatch(token)
        key = self._current().get(parts[1]) if parts else None
        return key if key and hmac.compare_digest(_hash(token), key.sha256) else None

    def _current(self) -> dict[str, ApiKey]:
        """The keys in the file, read again only when it has changed."""
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            self._stamp, self._keys = None, {}
            return self._keys
        except (OSError, ValueError) as error:  # an invalid name, or a folder without permission
            message = f"{str(self.path)[:200]} cannot be a key file: {error!r:.200}"
            raise DataError(message, hint="name another file") from error
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if stamp != self._stamp:
            self._keys = {key.key_id: key for key in self._read()}
            self._stamp = stamp
        return self._keys

    def _read(self) -> list[ApiKey]:
        try:
            record: Any = json.loads(self.path.read_text(encoding="utf-8"))
            if not isinstance(record, dict):
                raise ValueError("it is not a JSON object")
            if record["version"] != VERSION:
                raise ValueError(f"its version is {record['version']!r}, expected {VERSION}")
            return [_parse_key(key) for key in record["keys"]]
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            hint = "restore it, or create new keys in another file"
            raise DataError(f"{self.path} is not a key file: {error!s:.200}", hint=hint) from error

    def _write(self, keys: list[ApiKey]) -> None:
        record = {"version": VERSION, "keys": [asdict(key) for key in keys]}
        write_atomically(self.path, json.dumps(record, indent=2) + "\n")
        os.chmod(self.path, 0o600)


def _parse_key(record: dict[str, Any]) -> ApiKey:
    key = ApiKey(**{**record, "scopes": tuple(record["scopes"])})
    values = (key.key_id, key.name, key.sha256, key.made_at, *key.scopes)
    if not all(isinstance(value, str) and value.isascii() for value in values):
        raise TypeError("a field of a key is not text")
    return key


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
