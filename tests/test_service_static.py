"""The files of the page: a strict policy, nothing from other hosts, enough contrast."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")

from tests.service import running_app

PAGE = Path(__file__).parents[1] / "src" / "suffice" / "service" / "page"
FILES = sorted(PAGE.iterdir())


def test_every_file_is_served_with_its_type_and_nothing_else() -> None:
    with running_app() as client:
        front = client.get("/")
        assert front.headers["content-type"] == "text/html; charset=utf-8"
        assert "script-src 'self'" in front.headers["content-security-policy"]
        assert "unsafe" not in front.headers["content-security-policy"]
        for file in FILES:
            assert client.get(f"/page/{file.name}").content == file.read_bytes()
        for wrong in ("nothing.js", "..%2fapp.py", "%2e%2e/app.py", "index.html/"):
            assert client.get(f"/page/{wrong}", follow_redirects=False).status_code in (307, 404)
        assert client.post("/").status_code == 405


def test_every_file_the_page_needs_exists() -> None:
    wanted = set(re.findall(r'(?:href|src)="page/([\w.]+)"', (PAGE / "index.html").read_text()))
    wanted |= {
        name
        for file in FILES
        if file.suffix == ".js"
        for name in re.findall(r'from "\./([\w.]+)"', file.read_text())
    }
    assert wanted == {file.name for file in FILES} - {"index.html"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_loads_nothing_from_other_hosts_and_injects_no_markup(
    file: Path,
) -> None:
    text = file.read_text()
    assert len(text.splitlines()) <= 400
    assert set(re.findall(r"https?://[\w.]+", text)) <= {
        "http://www.w3.org"
    }  # the name of SVG, not an address
    assert not re.search(
        (
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new "
            r"Function|style=|\son\w+="
        ),
        text,
    )


def test_labels_name_what_they_label() -> None:
    text = (PAGE / "index.html").read_text()
    ids = re.findall(r'\sid="([\w-]+)"', text)
    assert len(ids) == len(set(ids))
    fields = re.findall(r"<(?:textarea|input|select)[^>]*\sid=\"([\w-]+)\"", text)
    assert set(fields) <= set(re.findall(r'<label for="([\w-]+)"', text))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_has_enough_contrast(scheme: int) -> None:
    """At least 4.5 to 1, as WCAG's AA asks of text; for the edges of fields 3 to 1."""
    blocks = re.findall(r":root \{(.*?)\}", (PAGE / "base.css").read_text(), re.DOTALL)
    colour = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[scheme]))
    for ink in ("ink", "soft", "mark", "answer", "expand", "abstain", "problem"):
        for paper in ("paper", "band"):
            assert contrast(colour[ink], colour[paper]) >= 4.5, (ink, paper)
    for wash in ("answer-wash", "expand-wash", "abstain-wash"):
        assert contrast(colour["ink"], colour[wash]) >= 4.5, wash
    assert contrast(colour["edge"], colour["paper"]) >= 3


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
