"""The record of forms is added to a gate without changing it, and coverage is counted rightly."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from suffice.gate.gate import SHIPPED_MODELS, Gate
from suffice.storage.artefacts import MANIFEST, read_json
from suffice_research.training.familiarity import (
    GroupCoverage,
    add_forms,
    coverage,
    judged_lists,
)
from suffice_research.training.reader_data import Case, Passage


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


def test_a_judged_list_is_complete_where_it_holds_all_that_is_needed() -> None:
    villages = ("Elm", "Oak", "Ash", "Fir", "Yew", "Box", "Bay", "Fig", "Lime", "Pine")
    pages = [
        Passage(name, f"{name} is a village with {at} mills.") for at, name in enumerate(villages)
    ]
    cases = [
        Case(
            "made",
            name,
            f"How many mills has {name}?",
            (page,),
            tuple(pages[:at] + pages[at + 1 :]),
        )
        for at, (name, page) in enumerate(zip(villages, pages, strict=True))
    ]
    natural, drawn = judged_lists(cases, np.random.default_rng(0))
    by_question = {one.question: one.needed for one in cases}
    for one in (*natural, *drawn):
        assert one.complete == set(one.hits).issuperset(by_question[one.question])
        assert len(set(one.hits)) == len(one.hits) <= 10
    assert all(one.complete for one in natural)  # only one page has the name
    assert 2 <= sum(one.complete for one in drawn) <= 8
