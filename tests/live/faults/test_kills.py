"""A few of the five hundred kills of `python -m robustness kills`: what was acknowledged is there,
nothing is half there.
"""

from __future__ import annotations

import pytest
from robustness.kills import TROUBLES, Sandbox

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("faults")]


@pytest.mark.parametrize(
    ("work", "kills"),
    [
        ("update", 8),
        ("build, a new library", 4),
        ("build, over a library", 3),
        ("grade, with blocks", 3),
        ("fit", 2),
    ],
)
def test_whoever_is_killed_has_lost_nothing_and_the_next_needs_no_repair(
    work: str, kills: int, sandbox: Sandbox
) -> None:
    tally = sandbox.kill(work, kills)
    assert tally.messages == []
    assert not any(tally.troubles[one] for one in TROUBLES)
    assert tally.kills, "nobody was killed at work: the test proves nothing"
    assert tally.checked, "nothing was acknowledged: the test proves nothing"
