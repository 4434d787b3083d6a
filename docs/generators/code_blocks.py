"""What the pages' Python blocks print: run here, shown in the `text` block that follows, and held
by a test.

A block whose first line holds `# not run` is left alone, and so is an output with `...` in it,
which stands for anything.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.generators.paths import DOCS, ROOT

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and content of every fenced block."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def run_block(code: str, names: dict[str, object], where: str) -> str:
    """What the block prints; the names it makes stay for the next one of the page."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, where, "exec"), names)
    return out.getvalue()


def is_runnable(code: str) -> bool:
    return "# not run" not in code.splitlines()[0]


def refresh_outputs(page: Path) -> str:
    """The page with its outputs as they are now."""
    text = page.read_text(encoding="utf-8")
    if not any(language == "text" for language, _ in blocks(page)):
        return text
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, working_directory(Path(folder)):
        printed = ""

        def anew(found: re.Match[str]) -> str:
            nonlocal printed
            language, code = found.groups()
            if language == "python" and is_runnable(code):
                printed = run_block(code, names, str(page))
            if language == "text" and "..." not in code:
                return f"```text\n{printed.strip()}\n```"
            return found.group()

        return FENCE.sub(anew, text)


@contextlib.contextmanager
def working_directory(folder: Path) -> Iterator[None]:
    """In another folder, as a reader would try it."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


# ------------------------------------------------------------------------ the notebook of examples/
# `python -m docs.generators.code_blocks` runs it and stores its outputs. Cells only print: no
# Jupyter is needed.

NOTEBOOK = ROOT / "examples" / "notebook" / "story.ipynb"


def execute(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The same notebook with the outputs of this run, made in this folder."""
    names: dict[str, object] = {}
    cells, count = [], 0
    with working_directory(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                printed = run_block("".join(cell["source"]), names, f"cell {count}")
                output = {
                    "output_type": "stream",
                    "name": "stdout",
                    "text": printed.splitlines(keepends=True),
                }
                cell = {**cell, "execution_count": count, "outputs": [output] if printed else []}
            cells.append(cell)
    return {**notebook, "cells": cells}


def cell_outputs(notebook: dict[str, Any]) -> list[str]:
    """What each code cell prints."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join("".join(output["text"]) for output in cell["outputs"]) for cell in code]


def store_notebook_outputs() -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = execute(json.loads(NOTEBOOK.read_text(encoding="utf-8")), Path(folder))
    NOTEBOOK.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print("\n".join(cell_outputs(told)))


if __name__ == "__main__":
    store_notebook_outputs()
