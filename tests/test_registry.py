from __future__ import annotations

from importlib import metadata

import pytest

from suffice import registry as registry_module
from suffice.errors import InputError
from suffice.registry import Registry


class FakeDistribution:
    name = "their-package"


class FakePoint(metadata.EntryPoint):
    dist = FakeDistribution()  # type: ignore[assignment]


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        FakePoint("retriever.good", "builtins:list", registry_module.PLUGIN_GROUP),
        FakePoint("retriever.broken", "no_such_module:thing", registry_module.PLUGIN_GROUP),
        FakePoint("encoder.other", "builtins:dict", registry_module.PLUGIN_GROUP),
    ]
    monkeypatch.setattr(
        metadata,
        "entry_points",
        lambda group: points if group == registry_module.PLUGIN_GROUP else [],
    )


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    registry: Registry[object] = Registry("retriever")
    registry.add("bm25", dict)
    with pytest.raises(InputError, match="no retriever is named 'bm52'") as caught:
        registry.get("bm52")
    assert "bm25" in caught.value.hint


def test_a_name_can_be_registered_once() -> None:
    registry: Registry[object] = Registry("retriever")
    registry.add("bm25", dict)
    with pytest.raises(InputError, match="already"):
        registry.add("bm25", list)


@pytest.mark.usefixtures("plugins")
def test_a_plug_in_is_found_by_kind_and_name() -> None:
    registry: Registry[object] = Registry("retriever")
    assert registry.names() == ["good", "broken"]
    assert registry.get("good") is list
    registry.add("own", dict)
    assert registry.names() == ["own", "good", "broken"]  # whatever was loaded before


def test_entry_points_are_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[str] = []

    def entry_points(group: str) -> list[metadata.EntryPoint]:
        looks.append(group)
        return []

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    registry: Registry[object] = Registry("retriever")
    for _ in range(3):
        assert registry.names() == []
        with pytest.raises(InputError):
            registry.get("nobody")
    assert looks == [registry_module.PLUGIN_GROUP]


@pytest.mark.usefixtures("plugins")
def test_a_broken_plug_in_is_an_error_with_its_package_and_entry_point() -> None:
    registry: Registry[object] = Registry("retriever")
    with pytest.raises(
        InputError,
        match=r"cannot load the retriever 'broken' of package 'their-package': .*no_such_module",
    ) as caught:
        registry.get("broken")
    assert "'no_such_module:thing'" in caught.value.hint
    assert registry.get("good") is list
