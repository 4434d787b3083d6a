"""Five seconds of what `make robustness` does for an hour: mixed load on a real service
while its library changes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")

from robustness.soak import (
    GROUP,
    growth,
    run_soak,
)

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("serve")]


def test_mixed_load_with_updates_beside_it_loses_and_leaks_nothing(tmp_path: Path) -> None:
    soak_log = run_soak(tmp_path, minutes=0.08, rate=8, write_every=1.0)
    assert soak_log.faults == []
    assert soak_log.wrong == []
    for kind, statuses in soak_log.statuses.items():
        assert set(statuses) <= {"200", "429"}, kind
    assert soak_log.statuses["check"]["200"] > 10
    assert len(soak_log.expected) > GROUP
    # So short a time says nothing about slow growth, but a handle or a thread for every request
    # would show.
    for what in ("memory MB", "open handles", "threads", "processes", "temporary files"):
        first, last, *_ = growth(soak_log, what)
        assert last <= 1.25 * first + 10, what
