"""Keys, settings and the command line of the service: what fails before anything listens."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.commands import as_json, suffice, typed

from suffice.errors import DataError, InputError
from suffice.service.keys import ApiKeys
from suffice.service.settings import Limits, Settings


def test_a_token_gives_access_and_its_file_does_not(tmp_path: Path) -> None:
    keys = ApiKeys(tmp_path / "keys.json")
    token, key = keys.create("laptop", ("read", "write"))
    assert keys.authenticate(token) == key
    assert key.scopes == ("read", "write")
    written = keys.path.read_text()
    assert token not in written
    assert token.rsplit("_", 1)[1] not in written
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "wrong", ["", "suf", "suf_", "x" * 10_000, "suf_000000000000_" + "a" * 43, "sufé"]
)
def test_any_other_text_gives_no_access(tmp_path: Path, wrong: str) -> None:
    keys = ApiKeys(tmp_path / "keys.json")
    token = keys.create("laptop")[0]
    for one in (wrong, token + " ", token[:-1] + ("a" if token[-1] != "a" else "b"), token.upper()):
        assert keys.authenticate(one) is None


def test_a_key_made_elsewhere_is_known_at_once(tmp_path: Path) -> None:
    here, elsewhere = ApiKeys(tmp_path / "keys.json"), ApiKeys(tmp_path / "keys.json")
    assert here.all() == []
    token, key = elsewhere.create("laptop")
    assert here.authenticate(token) == key
    elsewhere.revoke(key.key_id)
    assert here.authenticate(token) is None


def test_names_are_plain_and_once(tmp_path: Path) -> None:
    keys = ApiKeys(tmp_path / "keys.json")
    keys.create("laptop")
    for name, scopes in (
        ("laptop", ("read",)),
        ("", ("read",)),
        ("a b", ("read",)),
        ("x", ()),
        ("x", ("admin",)),
    ):
        with pytest.raises(InputError):
            keys.create(name, scopes)
    with pytest.raises(InputError, match="no key named 'tower'"):
        keys.revoke("tower")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"version": 2, "keys": []}', '{"version": 1, "keys": [{"name": "x"}]}'],
)
def test_a_damaged_file_gives_no_access(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys.json").write_text(text)
    with pytest.raises(DataError, match="is not a key file"):
        ApiKeys(tmp_path / "keys.json").authenticate("suf_000000000000_" + "a" * 43)


# ---- settings


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example.org", False),
    ],
)
def test_other_machines_are_served_only_with_a_key(tmp_path: Path, host: str, local: bool) -> None:
    keys = ApiKeys(tmp_path / "keys.json")
    for settings in (Settings(host=host), Settings(host=host, keys=str(keys.path))):
        if local:
            assert settings.validate() is settings
        else:
            with pytest.raises(InputError, match="can be reached from other machines"):
                settings.validate()
    keys.create("laptop")
    Settings(host=host, keys=str(keys.path)).validate()


def test_settings_reach_the_workers_unchanged() -> None:
    settings = Settings(
        library="films",
        gates={"default": "default", "news": "gates/news"},
        limits=Limits(concurrent_requests=3),
    )
    assert Settings.from_json(settings.as_json()) == settings


def test_a_limit_is_a_number_above_zero() -> None:
    with pytest.raises(InputError, match="concurrent_requests is 0"):
        Limits(concurrent_requests=0)


# ---- command line


def test_keys_are_made_listed_and_revoked(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    made = typed(f"serve key new --keys {file} --name laptop --write --label --json")
    token = as_json(made)["token"]
    assert ApiKeys(file).authenticate(token) is not None
    listed = typed(f"serve key list --keys {file}").output
    assert "label read write" in listed
    assert "laptop" in listed
    assert token not in listed
    assert typed(f"serve key revoke laptop --keys {file}").exit_code == 0
    assert "has no key" in typed(f"serve key list --keys {file}").output


def test_a_damaged_key_file_fails_before_anything_listens(tmp_path: Path) -> None:
    """And the error does not quote the whole file."""
    keys = tmp_path / "keys.json"
    keys.write_bytes(b"\xda\x30" * 5_000)
    result = suffice("serve", "--port", "0", "--keys", keys)
    assert result.exit_code == 1
    assert "is not a key file" in result.output
    assert "hint: restore it" in result.output
    assert len(result.output) < 1_000
