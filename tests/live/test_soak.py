"""A quarter of a minute of what `make robustness` does for an hour: mixed load on a real service
while its library changes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")

from robustness.soak import (
    GROUP,
    SoakLog,
    answer_table,
    flat_table,
    growth,
    is_flat,
    run_soak,
    write_table,
)

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("serve")]


def test_mixed_load_with_updates_beside_it_loses_and_leaks_nothing(tmp_path: Path) -> None:
    soak_log = run_soak(tmp_path, minutes=0.15, rate=8, write_every=1.0)
    assert soak_log.faults == []
    assert soak_log.wrong == []
    for kind, statuses in soak_log.statuses.items():
        assert set(statuses) <= {"200", "429"}, kind
    assert soak_log.statuses["check"]["200"] > 20
    assert len(soak_log.expected) > GROUP
    # So short a time says nothing about slow growth, but a handle or a thread for every request
    # would show.
    for what in ("memory MB", "open handles", "threads", "processes", "temporary files"):
        first, last, *_ = growth(soak_log, what)
        assert last <= 1.25 * first + 10, what


def steady(samples: int, grow: float) -> SoakLog:
    soak_log = SoakLog(60.0)
    soak_log.samples = [
        (at / samples, {"memory MB": 500 + grow * at / samples}) for at in range(samples)
    ]
    soak_log.loads = [1.0] * samples
    return soak_log


def test_what_grows_is_seen() -> None:
    first, last, slope, low, high = growth(steady(480, grow=100), "memory MB")
    assert last - first == pytest.approx(75, abs=2)
    assert low <= slope <= high
    assert slope == pytest.approx(100, rel=0.01)
    assert flat_table(steady(480, grow=100)).kept is False
    assert flat_table(steady(480, grow=10)).kept is True
    assert is_flat(6, 8)
    assert not is_flat(6, 9)


def test_a_lost_document_and_a_fault_are_told() -> None:
    soak_log = steady(10, grow=0)
    assert answer_table(soak_log).kept is True
    assert write_table(soak_log).kept is True
    soak_log.faults.append("a traceback")
    soak_log.expected["soak-1-1"] = True
    soak_log.wrong.append("soak-1-1")
    assert answer_table(soak_log).kept is False
    assert write_table(soak_log).kept is False
