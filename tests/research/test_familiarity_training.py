"""Coverage is counted rightly."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from suffice_research.study import Study
from suffice_research.training.familiarity import Depth, familiarity_study
from suffice_research.training.interval_coverage import GroupCoverage, coverage


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


def test_the_study_says_whether_left_out_and_unseen_groups_are_covered(tmp_path: Path) -> None:
    narrow = GroupCoverage(3, 0, 0.1)
    found = [
        Depth("mills", "left out", 300, 0.7, 0.1, narrow, GroupCoverage(3, 3, 0.4)),
        Depth("barns", "left out", 100, 0.9, 0.5, GroupCoverage(1, 0, 0.1), GroupCoverage(1, 1, 0.8)),
        Depth("notes", "unseen", 300, 0.8, 0.2, narrow, GroupCoverage(3, 2, 0.3)),
        Depth("mills", "seen", 300, 0.5, 0.1, narrow, narrow),
    ]  # fmt: skip
    study = familiarity_study(found, settings={"questions": 40, "preset": "standard"}, seconds=0.0)
    assert study.summary == (
        "Interval, left out domains: 4 of 4 groups are covered, by intervals of mean width 0.50; to reach 90%: reached.",
        "Interval, unseen domains: 2 of 3 groups are covered, by intervals of mean width 0.30; to reach 90%: not reached.",
        "These gates have learned from at most 40 questions of a data set (everyday: 5 times as many), the one that ships from 160.",
    )
    rows = {row[0]: row[5:] for row in study.tables[0].rows}
    assert rows["all left out"] == (4, 0, 0.1, 4, 0.5)  # widths count by groups
    assert Study.load(study.save(tmp_path / "familiarity.json")).summary == study.summary
