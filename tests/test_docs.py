"""The code blocks of README and docs run and print what the page shows, and generated pages match
the code.

`...` in an output matches anything, as in doctest. A block whose first line says `# not run` is
skipped, with a reason.
"""

from __future__ import annotations

import doctest
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from docs.generators.code_blocks import (
    FENCE,
    PAGES,
    blocks,
    is_runnable,
    run_block,
)
from docs.generators.measure import PARTS
from docs.generators.models import gate_studies, stored_study
from docs.generators.pages import pages
from docs.generators.paths import REFERENCE, RESULTS, ROOT
from docs.generators.reference import VARIABLES, WRITTEN_FORMATS, format_versions, variables_read
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.errors import MissingExtraError
from suffice_research.published_cells import WithPublished
from suffice_research.study import table_cell

DECIMAL = re.compile(r"\b\d+\.\d\d\b")
ROUNDING = 0.02  # int8 kernels of other processors move a probability by about so much


def same(expected: str, got: str) -> bool:
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    shown, printed = DECIMAL.findall(expected), DECIMAL.findall(got)
    if len(shown) == len(printed):
        near = iter(
            old if abs(float(old) - float(new)) <= ROUNDING + 1e-9 else new
            for old, new in zip(shown, printed)
        )
        got = DECIMAL.sub(lambda _: next(near), got)
    return doctest.OutputChecker().check_output(
        expected.strip() + "\n", got.strip() + "\n", options
    )


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_blocks_of_the_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    for language, code in blocks(page):
        if not is_runnable(code):
            continue
        if language == "python":
            try:
                printed = run_block(code, names, str(page))
            except MissingExtraError as error:
                pytest.skip(f"{error}: {error.hint}")
        elif language == "text":
            assert same(code, printed), f"{page.name} says\n{code}\nbut it prints\n{printed}"
        elif language == "console":
            for command, expected in re.findall(
                r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", code, re.MULTILINE
            ):
                check_command(command, expected)


def check_command(command: str, expected: str) -> None:
    words = shlex.split(command)
    if words[0] != "suffice":
        return  # make and pip lines are proved by the build itself
    result = CliRunner().invoke(app, words[1:], env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    if expected.strip():
        assert same(expected, result.stdout), (
            f"`{command}` should print\n{expected}\nbut prints\n{result.stdout}"
        )


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), (
                    f"{page.name} links to {target}, which is not there"
                )


PROSE = [*PAGES, ROOT / "CONTRIBUTING.md"]
# An entry point group, an attribute of a span, and a reader's own file.
NOT_OURS = {"suffice.plugins", "suffice.familiarity", "my_package.py"}
FOLDERS = "src research packages docs tests benchmarks robustness examples".split()


@cache
def paths() -> list[str]:
    """Every file and folder of ours, like `/src/suffice/gate/hits.py` and `/src/suffice/gate/`."""
    found = (path for folder in FOLDERS for path in [ROOT / folder, *(ROOT / folder).rglob("*")])
    return [f"/{path.relative_to(ROOT).as_posix()}{'/' * path.is_dir()}" for path in found]


def is_ours(name: str) -> bool:
    """Whether a name from the prose, `docs/conf.py` or `gate.hits.normalize_hits`, is there."""
    if "/" in name or name.endswith((".py", ".md")):
        return any(path.endswith((f"/{name}", f"/{name}/")) for path in paths())
    module, _, attribute = (name if "." in name else f"{name}.").rpartition(".")
    for stem in (name, module):
        ends = (f"/{stem.replace('.', '/')}{end}" for end in (".py", "/__init__.py"))
        if files := [path for end in ends for path in paths() if path.endswith(end)]:
            text = (ROOT / files[0][1:]).read_text(encoding="utf-8")
            return stem == name or re.search(rf"\b{attribute}\b", text) is not None
    return False


def test_modules_and_files_in_the_prose_exist() -> None:
    rooms = "|".join({path.parent.name for path in ROOT.glob("src/suffice/*/__init__.py")})
    dotted = rf"(?:suffice|suffice_research|suffice_grade|{rooms})(?:\.\w+)+"
    named = re.compile(rf"`({dotted}|(?:{'|'.join(FOLDERS)})/[\w./-]*|[\w/]+\.py)`")
    missing = []
    for page in set(PROSE) - {REFERENCE / "removed.md"}:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        found = set(named.findall(text)) - NOT_OURS
        missing += [f"{page.name}: {name}" for name in found if not is_ours(name)]
    assert missing == []


def test_generated_pages_match_the_code_and_can_be_measured_again() -> None:
    rendered = pages()  # seconds: rendered once for all checks
    drifted = [
        path.name for path, text in rendered.items() if path.read_text(encoding="utf-8") != text
    ]
    assert drifted == [], "run `make docs`"
    results = {path.stem for path in rendered if path.parent == RESULTS}
    assert set(PARTS) == results - {"performance", "robustness"}


def test_the_gates_page_shows_every_target_beside_the_measured_figure() -> None:
    from suffice_research.training.gate_study import FLOORS

    page = (RESULTS / "gate.md").read_text(encoding="utf-8")
    rows = {
        "shipped": ("Shipped", "{}"),
        "unseen": ("Shipped", "{}"),
        "drawn": ("Shipped", "{}, drawn"),
        "fitted": ("Fitted", "{}"),
        "left out": ("Left out", "{}"),
    }
    folds = stored_study("gate-baselines")  # of the standard gate
    for preset, study in gate_studies().items():
        beside = folds.tables if folds and preset == "standard" else ()
        measured = {one.title: one for one in (*beside, *study.tables)}  # not every table is there
        assert measured.keys() & {"Shipped", "Fitted"}, preset
        for wanted, (title, row) in rows.items():
            for name, floor in FLOORS[preset][wanted].items() if title in measured else ():
                cell = table_cell(measured[title], row.format(name), "AUROC")
                assert isinstance(cell, WithPublished)
                assert cell.paper == floor
                assert f"({floor:.3f}, {cell.difference.value:+.3f})" in page


def test_every_versioned_format_is_documented() -> None:
    assert set(format_versions()) == set(WRITTEN_FORMATS)


def test_every_environment_variable_is_documented() -> None:
    assert variables_read() <= set(VARIABLES)
    assert "SUFFICE_CACHE" in variables_read()
