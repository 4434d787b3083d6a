"""The notebook of examples/: run cell by cell in one namespace, like a kernel does. `python -m docs.generators.notebook` stores outputs.

Its cells only print, so that nothing of Jupyter is needed to prove it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from docs.generators.code_blocks import run_block, working_directory
from docs.generators.paths import ROOT

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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = execute(json.loads(NOTEBOOK.read_text(encoding="utf-8")), Path(folder))
    NOTEBOOK.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print("\n".join(cell_outputs(told)))


if __name__ == "__main__":
    main()
