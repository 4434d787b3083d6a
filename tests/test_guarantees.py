"""Every guarantee names tests that exist and measurements that can run, and the page shows what was
measured.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks.reporting import ResultTable
from docs.generators.guarantees import guarantees, licences, measurements
from robustness import results
from robustness.guarantees import GUARANTEES, path_of
from robustness.results import PARTS, RunStart, StoredFigures, available_parts, save_figures

ROOT = Path(__file__).parents[1]
EVERY = [one for group in GUARANTEES.values() for one in group]


@cache
def names_of_tests(file: str) -> frozenset[str]:
    path = ROOT / path_of(file)
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def test_every_guarantee_is_proved_by_tests_that_exist() -> None:
    assert all(one.proved_by for one in EVERY)
    named = {test for one in EVERY for test in one.proved_by}
    found = {
        test for test in named if test.partition("::")[2] in names_of_tests(test.partition("::")[0])
    }
    assert sorted(named - found) == []


def test_every_guarantee_is_measured_by_parts_and_tables_that_exist() -> None:
    titles = {
        part: [one.title for one in found.tables] if (found := results.load_figures(part)) else None
        for part in PARTS
    }
    for name in {name for one in EVERY for name in one.measured_by}:
        part, _, title = name.partition(": ")
        known = titles[part]
        assert known is None or any(one.startswith(title) for one in known), name


def test_no_guarantee_is_listed_twice() -> None:
    assert len({one.says for one in EVERY}) == len(EVERY)


def test_every_part_has_tables_to_measure() -> None:
    assert available_parts() == list(PARTS)
    for part in PARTS:
        assert callable(import_module(f"robustness.{part}").tables)


def test_figures_come_back_as_they_were_stored_and_the_page_says_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(
        "docs.generators.guarantees.load_figures", lambda part: results.load_figures(part, tmp_path)
    )
    assert guarantees().count("not run yet") == sum(len(one.measured_by) for one in EVERY)
    assert "Not listed yet" in licences()
    grown = ResultTable(
        "What grows over 60 minutes",
        "Required: nothing.",
        ("what", "MB"),
        (("memory", "12"),),
        ("a note",),
        kept=False,
    )
    fine = ResultTable(
        "What was answered", "Required: all.", ("kind", "200"), (("check", "9"),), kept=True
    )
    figures = StoredFigures.now(
        "soak", [grown, fine], [grown.title], quick=False, start=RunStart(0.0, "abc")
    )
    save_figures("soak", figures)
    assert results.load_figures("soak", tmp_path) == figures
    page = guarantees()
    assert "an hour of mixed load, *what grows*, a full run of 1970-01-01: NOT kept" in page
    assert "an hour of mixed load, *what was answered*, a full run of 1970-01-01: kept" in page
    measured = measurements()
    assert "Failed or missed its requirement: What grows over 60 minutes." in measured
    assert "commit abc" in measured
