"""Coverage is counted rightly."""

from __future__ import annotations

import numpy as np

from suffice_research.training.familiarity import GroupCoverage, coverage


def test_a_group_is_covered_where_its_share_lies_in_its_mean_interval() -> None:
    p = np.repeat([0.1, 0.9], 100)
    complete = np.arange(200) % 2 == 0  # half of either group
    narrow, wide = (p - 0.05, p + 0.05), (p * 0, np.repeat([0.6, 0.95], 100))
    assert coverage(p, narrow, complete) == GroupCoverage(
        2, 0, known := float(np.mean(narrow[1] - narrow[0]))
    )
    assert round(known, 6) == 0.1
    assert coverage(p, wide, complete).covered == 2
    assert str(coverage(p, narrow, complete)) == "  0 of   2 (width 0.10)"
