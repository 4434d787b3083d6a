"""The list of what became of the papers, held to the papers, to the code, and to the stored runs."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from docs.generators import measure
from docs.generators.papers import STATES
from docs.generators.paths import DATA, DOCS, ROOT, RUNS
from docs.generators.results import load_studies
from tests.commands import suffice

from suffice.errors import InputError
from suffice_research import STUDY_NAMES
from suffice_research.papers import load_papers
from suffice_research.study import IN_ALL, PROCESSOR, Study, study_items
from suffice_research.study_times import time_lines

TEXTS = DATA.parent / "papers"
# The papers' own numbers: (tables, figures). Of par-rag, those of its first version that we have.
NUMBERED = {
    "magaf": (range(1, 12), range(1, 8)),
    "frames": (range(1, 11), range(1, 9)),
    "multi-meta-rag": (range(2, 5), ()),
    "par-rag": ((2, 4), (2,)),
    "grade": (range(1, 5), range(1, 5)),
}
ROOTS = {
    "suffice": ROOT / "src",
    "suffice_research": ROOT / "research",
    "suffice_grade": ROOT / "packages" / "suffice-grade",
    "docs": ROOT,
}
ITEMS = [(paper, one) for paper in load_papers().values() for one in paper.items]


def test_every_numbered_table_and_figure_is_listed_once() -> None:
    assert set(load_papers()) == set(STUDY_NAMES)
    for name, (tables, figures) in NUMBERED.items():
        items = load_papers()[name].items
        listed = [one.item for one in items if one.kind != "component"]
        wanted = {f"Table {number}" for number in tables} | {f"Figure {one}" for one in figures}
        assert set(listed) == wanted, name
        assert len({one.item for one in items}) == len(items), name


@pytest.mark.parametrize("name", NUMBERED)
def test_the_papers_text_has_no_other_table_or_figure(name: str) -> None:
    text = TEXTS / load_papers()[name].text
    if not text.is_file():
        pytest.skip(f"the text of the paper is not here: {text.name}")
    named = set(re.findall(r"\b(?:Table|Figure) \d+\b", text.read_text(encoding="utf-8")))
    listed = {one.item for one in load_papers()[name].items if one.kind != "component"}
    assert named <= listed
    if name != "par-rag":  # the text at hand is a summary without numbers
        assert named == listed


def test_at_most_a_twentieth_is_not_done_and_all_that_differs_has_its_reason() -> None:
    assert {one.state for _, one in ITEMS} <= set(STATES)
    assert {one.kind for _, one in ITEMS} == {"table", "figure", "component"}
    assert len(ITEMS) >= 130
    assert sum(one.state == "not done" for _, one in ITEMS) <= 0.05 * len(ITEMS)
    for paper, one in ITEMS:
        assert bool(one.why) == (one.state != "done"), f"{paper.name}: {one.item}"
        assert not one.why.endswith("."), f"{paper.name}: {one.item}"


def test_code_pages_and_commands_of_the_list_exist() -> None:
    reference = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    sections = {part.partition("`")[0]: part for part in reference.split("\n## `suffice ")[1:]}
    for paper, one in ITEMS:
        where = f"{paper.name}: {one.item}"
        assert (ROOT / "research" / one.page).is_file(), where
        module, _, name = one.code.partition(":")
        stem = ROOTS[module.partition(".")[0]].joinpath(*module.split("."))
        files = [path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()]
        assert files, f"{where}: no module {module}"
        if name:
            defined = rf"^(?:def|class) {name}\b|^{name}\b.*="
            assert re.search(defined, files[0].read_text(encoding="utf-8"), re.MULTILINE), where
        program, *words = one.command.split()
        assert program == "suffice", where
        options = [word for word in words if word.startswith("--")]
        named = next((at for at, word in enumerate(words) if word.startswith("--")), len(words))
        section = next(
            sections[key] for key in (" ".join(words[:named]), words[0]) if key in sections
        )
        assert all(option in section for option in options), where


def test_what_is_said_to_be_shown_is_in_the_stored_study() -> None:
    studies = load_studies()
    for paper, one in ITEMS:
        on_its_page = one.page == paper.page and one.command == paper.command
        if not on_its_page or one.state == "not done" or not (one.shown or one.kind != "component"):
            continue
        study = studies[paper.name]
        titles = [shown.title for section in study.sections for shown in section.shown]
        wanted = one.shown or one.item
        found = any(re.match(rf"{re.escape(wanted)}(?!\d)", title) for title in titles)
        assert found, f"{paper.name}: no table or figure {wanted!r} for {one.item}"
    for paper in load_papers().values():
        for item, figure in paper.figures.items():
            assert figure.words(studies[paper.name]), f"{paper.name}: no cell for {item}"


def test_the_command_lists_the_items_and_runs_nothing() -> None:
    rows = json.loads(suffice("reproduce", "par-rag", "--items", "--json").stdout)
    assert {row["state"] for row in rows} == set(STATES)
    assert next(row for row in rows if row["item"] == "RAPTOR")["why"]
    with pytest.raises(InputError, match="does not list"):
        study_items(lambda: None, "plain")  # type: ignore[arg-type,return-value]


def test_every_stored_run_is_measured_again_by_make_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands stand still here; that they run is held by the tests of their modules."""
    stored: set[str] = set()

    def run_nothing(command: str, data: Path, *more: str, cwd: Path = ROOT) -> str:
        for option, value in pairwise(more):
            if option == "--study":
                Path(value).write_text("{}", encoding="utf-8")
        return '{"seconds": 1}'

    monkeypatch.setattr(measure, "run_command", run_nothing)
    monkeypatch.setattr(measure, "store_study", lambda study, path: stored.add(path.stem))
    monkeypatch.setattr(measure, "write_atomically", lambda path, text: stored.add(path.stem))
    monkeypatch.setattr(measure, "count_bridge_gold", lambda data: stored.add("bridge-quality"))
    for part, measured in measure.PARTS.items():
        (tmp_path / part).mkdir()
        measured(tmp_path, tmp_path / part)
    days = {"study-par-rag-model"}  # of a GPU; the how-to says so
    beside = {"bridge-quality-held"}  # counted anew: bridge-quality
    assert stored == {path.stem for path in RUNS.glob("*.json")} - days - beside


def test_the_times_of_studies_are_added_up_and_a_missing_one_is_said(tmp_path: Path) -> None:
    done = tmp_path / "magaf" / "study.json"
    spent = {"search": 5.0, IN_ALL: 90.0, PROCESSOR: 60.0}
    Study("magaf", "MAGAF", 1, {}, {}, (), timings=spent).save(done)
    assert list(time_lines([done, tmp_path / "frames" / "study.json"])) == [
        "magaf: 1.5 minutes, 1.0 minutes of processor time",
        "frames: not done",
        "without those not done: 1.5 minutes, 1.0 minutes of processor time",
    ]
