"""The record of forms is added to a gate without changing it, and coverage is counted rightly."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from suffice.gate.gate import SHIPPED_MODELS, Gate
from suffice.storage.artefacts import MANIFEST, read_json
from suffice_research.training.familiarity import GroupCoverage, add_forms, coverage


def test_adding_the_record_changes_no_other_file(tmp_path: Path) -> None:
    folder = tmp_path / "gate"
    shutil.copytree(SHIPPED_MODELS / "gate-fast", folder)
    before, gate = read_json(folder / MANIFEST), Gate.load()
    add_forms(folder, replace(gate.forms, distances=(0.0, 7.0)))
    after = read_json(folder / MANIFEST)
    changed = {name for name in after["files"] if after["files"][name] != before["files"][name]}
    assert changed == {"familiarity.json"}
    assert after["settings"] == before["settings"]
    assert Gate.load(folder).forms.distances == (0.0, 7.0)


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
