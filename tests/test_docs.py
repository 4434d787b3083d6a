"""README and docs run: python blocks are executed, console blocks typed, and what they print must be what stands there.

`...` in an output stands for anything, as in doctest. A block whose first line holds `# not run` is left alone, with a reason.
"""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from docs.generators.code_blocks import PAGES, ROOT, blocks, is_runnable, refresh_outputs, run_block
from docs.generators.gate import studies
from docs.generators.measure import PARTS
from docs.generators.measuring import run_command
from docs.generators.reference import pages
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.errors import MissingExtraError


def same(expected: str, got: str) -> bool:
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
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


def test_an_output_is_printed_anew_unless_it_stands_for_anything(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\n```text\n...\n```\n", encoding="utf-8"
    )
    assert (
        refresh_outputs(page)
        == "```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n\n```text\n...\n```\n"
    )


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), (
                    f"{page.name} links to {target}, which is not there"
                )


def test_the_generated_pages_are_what_the_code_says() -> None:
    for path, text in pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} has drifted; run `make docs`"


def test_make_results_measures_every_page_of_results_but_those_of_speed() -> None:
    made = {path.stem for path in pages() if path.parent.name == "results"}
    assert set(PARTS) == made - {"performance"}


def test_the_command_of_a_page_is_typed_with_the_folder_of_data_in_its_place(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "my data"
    assert (
        run_command("python -c 'import sys; print(sys.argv[1:])' $DATA/frames", folder, "--json")
        == f"['{folder}/frames', '--json']\n"
    )


def test_every_figure_of_the_gate_that_is_to_be_reached_stands_beside_the_one_measured() -> None:
    from suffice_research.training.gate_study import FLOORS

    page = (ROOT / "docs" / "results" / "gate.md").read_text(encoding="utf-8")
    for preset, study in studies().items():
        for wanted, title in (("fitted", "Fitted"), ("left out", "Left out")):
            for name, floor in FLOORS[preset][wanted].items():
                cell = study.table(title).cell(name, "AUROC")
                assert cell.paper == floor
                assert f"({floor:.3f}, {cell.difference.value:+.3f})" in page


def test_every_format_with_a_version_stands_on_its_page() -> None:
    from docs.generators.formats import WRITTEN, versions

    assert set(versions()) == set(WRITTEN)


def test_every_variable_that_is_read_stands_on_the_page_of_settings() -> None:
    from docs.generators.settings import VARIABLES, variables_read

    assert variables_read() <= set(VARIABLES)
    assert "SUFFICE_CACHE" in variables_read()
