"""Each fault of disk and clock once, each in one work; `python -m robustness faults` has all of
them in all works.
"""

from __future__ import annotations

import random

import pytest
from robustness.faults import WRONG, run_trials
from robustness.kills import Sandbox
from robustness.serve_faults import serve_and_kill, serve_on_full_disk

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("faults")]


@pytest.mark.parametrize(
    ("work", "fault", "outcome"),
    [
        ("grade", "torn", "died"),
        ("build, over a library", "short", "succeeded"),
        ("update", "interrupted", "succeeded"),
        ("grade", "clock", "succeeded"),
        ("build, over a library", "full", "reported"),
        ("update", "broken", "reported"),
        ("grade", "unreadable", "reported"),
        ("build, a new library", "read-only", "reported"),
    ],
)
def test_a_fault_is_told_or_not_noticed_and_nothing_acknowledged_is_lost(
    work: str, fault: str, outcome: str, sandbox: Sandbox
) -> None:
    row = run_trials(sandbox, sandbox.work(work), fault, 1, random.Random(7))
    assert row.messages == []
    assert not any(row.outcomes[one] for one in WRONG)
    assert row.outcomes == {outcome: 1}


def test_what_the_service_answered_is_there_after_it_was_killed(sandbox: Sandbox) -> None:
    row = serve_and_kill(sandbox.fork_server, sandbox.room("served"), 2, random.Random(7))
    assert row.messages == []
    assert row.checked, "nothing was written: the test proves nothing"


def test_the_service_on_a_full_disk_refuses_and_goes_on_answering(sandbox: Sandbox) -> None:
    row = serve_on_full_disk(sandbox.fork_server, sandbox.room("served-full"))
    assert row.messages == []
    assert row.refused
