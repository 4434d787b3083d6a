"""What the pages' Python blocks print: run here, shown in the `text` block that follows, and held by a test.

A block whose first line holds `# not run` is left alone, and so is an output with `...` in it, which stands for anything.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

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
