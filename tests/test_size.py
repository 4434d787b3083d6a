"""A ratchet: no part grows beyond its number, and the numbers only fall."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from docs.generators.paths import ROOT

SLACK = 0.02  # so much smaller than its number may a part be before the number falls


def lines(text: str) -> int:
    return len(text.splitlines())


def words(text: str) -> int:
    return len(text.split())


def is_test(path: Path) -> bool:
    return "tests" in path.relative_to(ROOT).parts


@pytest.mark.parametrize(
    ("what", "places", "suffix", "count", "tests", "most"),
    [
        ("installed lines", ("src",), ".py", lines, False, 39_507),
        ("lines of packages", ("packages",), ".py", lines, False, 12_905),
        ("lines of research", ("research",), ".py", lines, False, 30_042),
        ("lines of tests", ("tests", "packages", "research"), ".py", lines, True, 39_906),
        ("words of docs", ("docs", "README.md", "CONTRIBUTING.md"), ".md", words, False, 65_383),
    ],
)
def test_nothing_grows(
    what: str,
    places: tuple[str, ...],
    suffix: str,
    count: Callable[[str], int],
    tests: bool,
    most: int,
) -> None:
    paths = [path for one in places for path in ((ROOT / one), *(ROOT / one).rglob("*"))]
    files = [
        one for one in paths if one.suffix == suffix and one.is_file() and is_test(one) is tests
    ]
    found = sum(count(one.read_text(encoding="utf-8")) for one in files)
    assert found <= most, f"{found:,} {what}, at most {most:,}: take out what this replaces"
    assert found >= most * (1 - SLACK), (
        f"{found:,} {what}: lower the number in {Path(__file__).name}"
    )
