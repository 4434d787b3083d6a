"""`suffice demo` and `suffice reproduce`: the first command a newcomer runs, and the papers'."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import as_json, suffice

from suffice.evaluation import study


def test_the_demo_answers_expands_and_abstains() -> None:
    found = as_json(suffice("demo", "--json"))
    answerable, expandable, unanswerable = found["questions"]
    assert 25 <= found["documents"] <= 40
    assert (answerable["action"], "expanded" in answerable) == ("answer", False)
    assert expandable["action"] == "expand"
    assert "ingrid-solberg" not in expandable["hits"]
    assert expandable["missing"] == ["Ingrid Solberg"]
    assert expandable["expanded"]["action"] == "answer"
    assert set(expandable["expanded"]["hits"]) == {"halden-instruments", "ingrid-solberg"}
    assert [unanswerable["action"], unanswerable["expanded"]["action"]] == ["abstain", "abstain"]


def test_the_demo_fits_on_a_screen_and_keeps_its_library(tmp_path: Path) -> None:
    shown = suffice("demo", "--out", tmp_path / "demo")
    assert shown.exit_code == 0, shown.output
    assert len(shown.output.splitlines()) <= 40
    for words in ("ANSWER", "EXPAND", "ABSTAIN", "suffice fit", "suffice serve", "suffice mcp"):
        assert words in shown.stdout
    again = as_json(suffice("search", tmp_path / "demo" / "library", "Nordlinje", "--json"))
    assert again["hits"][0]["doc_id"] == "nordlinje"


def test_without_the_research_package_reproduce_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(study.STUDIES, "names", list)
    result = suffice("reproduce", "magaf")
    assert result.exit_code == 2
    assert "pip install ./research" in result.stderr


def test_reproduce_lists_studies_and_refuses_options_they_lack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(study.STUDIES, "names", lambda: ["mine"])
    monkeypatch.setattr(study.STUDIES, "get", lambda name: lambda *, data, progress, seed=1: None)
    assert suffice("reproduce").stdout == "mine\n"
    refused = suffice("reproduce", "mine", "--quality")
    assert refused.exit_code == 2
    assert "the study mine has no --quality" in refused.stderr
