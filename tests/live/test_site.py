"""The docs as a site: made without a warning, which a broken link would be, whole without a
network, and searchable.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("furo", reason="pip install sphinx furo myst-parser")
    folder = tmp_path_factory.mktemp("site")
    words = f"-m sphinx -q -W --keep-going -b html {ROOT}/docs {folder}".split()
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_of_the_docs_is_a_page_of_the_site(site: Path) -> None:
    pages = {
        page.relative_to(ROOT / "docs").with_suffix(".html")
        for page in (ROOT / "docs").rglob("*.md")
    }
    assert [page for page in sorted(pages) if not (site / page).is_file()] == []


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in ("index.html", "search.html", "results.html"):
        text = (site / page).read_text(encoding="utf-8")
        fetched = re.findall(
            r"<(?:script|img|iframe)\b[^>]*\bsrc=\"([^\"]+)|<link\b[^>]*\bhref=\"([^\"]+)", text
        )
        assert fetched
        assert [one for one in fetched if "//" in "".join(one)] == []
    for style in (site / "_static").rglob("*.css"):
        assert "url(http" not in style.read_text(encoding="utf-8")


def test_the_search_knows_the_words_of_a_how_to(site: Path) -> None:
    index = (site / "searchindex.js").read_text(
        encoding="utf-8"
    )  # a script, not a request: works from a folder, too
    assert "howto/check" in index
    assert '"abstain"' in index
