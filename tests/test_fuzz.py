"""Fuzzing: cases that were findings once, and a few hundred fresh inputs for every loader, grammar,
artefact and endpoint.

`python -m robustness fuzz` does the same with 200,000 inputs each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="pip install 'suffice[fit]'")
pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")
pytest.importorskip("mcp", reason="pip install 'suffice[mcp]'")

from hypothesis import HealthCheck, given, settings
from robustness import http_targets
from robustness.fuzz import (
    PATIENCE_S,
    read_once,
    regression_cases,
    run_inputs,
    targets,
    watchdog,
)
from robustness.mutations import Input
from robustness.strategies import similar_inputs
from robustness.targets import OpenTarget, Target

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
        max_examples=20,
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
