"""Fuzzing: cases that were findings once, and a few hundred fresh inputs for every loader, grammar,
artefact and endpoint.

`python -m robustness fuzz` does the same with 200,000 inputs each.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx", reason="pip install 'suffice[fit]'")
pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")
pytest.importorskip("mcp", reason="pip install 'suffice[mcp]'")

from hypothesis import HealthCheck, given, settings
from robustness import fuzz, http_targets
from robustness.fuzz import (
    PATIENCE_S,
    FuzzResult,
    read_once,
    regression_cases,
    run_inputs,
    targets,
    watchdog,
)
from robustness.mutations import Input, Seed, mutate
from robustness.strategies import similar_inputs
from robustness.targets import OpenTarget, Target

from suffice.storage import package_versions, sha256_of

TARGETS = targets()
CASES = {f"{path.parent.name}/{path.name}": (name, case) for name, case, path in regression_cases()}
FRESH = {
    "gates": 20,
    "library manifests": 8,
    "replies: journeys": 20,
    "replies: grading": 30,
    "traces": 20,
}
SLOW_ENDPOINTS = {"POST /v1/complete": 15, "POST /v1/ask": 15, "POST /v1/library/documents": 20}
SHAPED = ("jsonl", "musique", "hotpotqa", "filters", "qdrant points", "keys", "runs", "manifests")


class Lazily(dict[str, OpenTarget]):
    """Targets, opened on first use; all endpoints belong to one service."""

    def __init__(self, stack: ExitStack, folder: Callable[[], Path]) -> None:
        super().__init__()
        self._stack, self._folder = stack, folder

    def __missing__(self, name: str) -> OpenTarget:
        if TARGETS[name].group == "http":
            client = self._stack.enter_context(http_targets.running_service(self._folder()))
            self.update((endpoint, each(client)) for endpoint, each in http_targets.OPENERS.items())
        else:
            self[name] = self._stack.enter_context(TARGETS[name].opened(self._folder()))
        return self[name]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, OpenTarget]]:
    with ExitStack() as stack:
        yield Lazily(stack, lambda: tmp_path_factory.mktemp("target"))


def fresh(target: Target) -> int:
    return FRESH.get(
        target.name, SLOW_ENDPOINTS.get(target.name, 60 if target.group == "http" else 120)
    )


@pytest.mark.parametrize("case", CASES)
def test_what_was_found_once_is_refused(case: str, opened: dict[str, OpenTarget]) -> None:
    name, given = CASES[case]
    with watchdog():
        assert read_once(opened[name], given) in ("accepted", "refused")


@pytest.mark.parametrize("name", TARGETS)
def test_sound_inputs_are_accepted(name: str, opened: dict[str, OpenTarget]) -> None:
    found = [read_once(opened[name], Input(seed.part, seed.content)) for seed in opened[name].seeds]
    assert found.count("accepted") == len(found)


@pytest.mark.parametrize("name", TARGETS)
def test_fresh_inputs_are_accepted_or_refused(name: str, opened: dict[str, OpenTarget]) -> None:
    with watchdog():
        found = run_inputs(TARGETS[name], opened[name], 0, fresh(TARGETS[name]))
    assert (found.other, found.findings) == (0, [])
    assert found.accepted + found.refused == found.inputs
    assert found.slowest_s < PATIENCE_S


@pytest.mark.parametrize("name", SHAPED)
def test_inputs_of_the_right_shape_are_accepted_or_refused(
    name: str, opened: dict[str, OpenTarget]
) -> None:
    seed = next(one for one in opened[name].seeds if one.values)

    @settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(similar_inputs(seed))
    def holds(given: Input) -> None:
        assert read_once(opened[name], given) in ("accepted", "refused")

    with watchdog():
        holds()


# ---- the engine itself


def test_the_same_number_gives_the_same_input() -> None:
    seeds = (Seed("a", b'{"a": [1, {"b": "c"}]}'), Seed("b", b"q1 Q0 d1 1 2.0 x\n"))
    first = [mutate(seeds, f"x/{at}") for at in range(500)]
    assert first == [mutate(seeds, f"x/{at}") for at in range(500)]
    assert len({one.content for one in first}) > 250
    assert {one.part for one in first} == {"a", "b"}


@pytest.mark.parametrize(
    ("read", "finding"),
    [
        (lambda given: dict[str, int]()["lost"], "KeyError: 'lost'"),
        (lambda given: warnings.warn("careful", stacklevel=1), "UserWarning: careful"),
        (lambda given: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_whatever_else_comes_out_is_a_finding(read: object, finding: str, tmp_path: Path) -> None:
    with watchdog():
        found = run_inputs(TARGETS["frames"], OpenTarget((Seed("a", b"{}"),), read), 0, 3)  # type: ignore[arg-type]
    assert found.other == 3
    assert finding in found.findings[0]


def test_whoever_takes_too_long_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robustness.fuzz.PATIENCE_S", 0.05)

    def endless(given: Input) -> bool:
        while True:
            pass

    with watchdog():
        assert "HangError: more than" in read_once(OpenTarget((), endless), Input("a", b""))


def test_a_piece_counts_until_something_that_read_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, calls = tmp_path / "reader.py", list[str]()
    read.write_text("1", encoding="utf-8")

    def fake_run(*arguments: str) -> dict[str, Any]:
        calls.append(" ".join(arguments))
        ran = {"packages": package_versions(), "files": {"reader.py": sha256_of(read)}}
        return {"found": asdict(FuzzResult("frames", inputs=10, refused=10)), "ran": ran}

    monkeypatch.setattr(fuzz, "run_in_subprocess", fake_run)
    monkeypatch.setattr(fuzz, "ROOT", tmp_path)
    monkeypatch.setattr(fuzz, "CACHE", tmp_path / "kept")
    assert [fuzz.fuzz_target("frames", 10).refused for _ in range(3)] == [10, 10, 10]
    assert calls == ["robustness.fuzz frames 0 10"]
    read.write_text("2", encoding="utf-8")
    fuzz._hash.cache_clear()
    fuzz.fuzz_target("frames", 10)
    assert len(calls) == 2
