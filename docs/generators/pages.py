"""All generated pages and pictures, and the README's table of results.

A test compares them with the files.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import overview

from docs.generators import answers, guarantees, models, papers, reference, results, summary
from docs.generators.markdown import NOTE, replace_between
from docs.generators.paths import REFERENCE, RESULTS, ROOT

README = ROOT / "README.md"
BEGIN, END = "<!-- results: made by `make docs` -->\n", "<!-- end of results -->"


def readme() -> str:
    """The README with its tables as the runs have them."""
    return replace_between(README.read_text(encoding="utf-8"), BEGIN, END, summary.readme_tables())


def pages() -> dict[Path, str]:
    """Path -> text of every generated page, the README with its table included."""
    made = {REFERENCE / name: page() for name, page in reference.PAGES.items()}
    made |= {RESULTS / "performance.md": overview.page(RESULTS)}
    made |= results.pages() | models.pages() | guarantees.pages() | answers.pages()
    made |= papers.pages() | summary.pages()
    return {path: NOTE + text for path, text in made.items()} | {README: readme()}


def pictures() -> dict[Path, bytes]:
    return models.gate_pictures() | results.pictures()
