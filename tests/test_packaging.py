"""What is said about the package in several places is the same in all of them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import suffice
from suffice.cli.doctor import EXTRAS, REQUIRED

ROOT = Path(__file__).parents[1]
TOML = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GRADE, DEEP = (
    tomllib.loads((ROOT / f"packages/{name}/pyproject.toml").read_text(encoding="utf-8"))
    for name in ("suffice-grade", "suffice-deep")
)
PROJECT, GROUPS = TOML["project"], TOML["dependency-groups"]


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w.-]+", one)[0] for one in requirements}  # type: ignore[index]


def test_the_version_the_package_and_the_changelog_agree() -> None:
    newest = re.search(
        r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert newest is not None
    versions = {one["project"]["version"] for one in (TOML, GRADE, DEEP)} | {suffice.__version__}
    assert versions == {newest[1]}


def test_the_doctor_looks_for_all_that_the_project_names() -> None:
    assert set(REQUIRED) == names(PROJECT["dependencies"])
    extras = {
        name: names(needed)
        for name, needed in PROJECT["optional-dependencies"].items()
        if name != "all"
    }
    extras["serve"] -= {"uvloop"}  # not for every system, and not needed
    assert {name: set(packages) for name, (packages, _) in EXTRAS.items()} == extras


def test_all_is_every_extra_that_gets_along_with_the_others() -> None:
    (everything,) = PROJECT["optional-dependencies"]["all"]
    alone = {"dspy", "ragas", "deepeval", "ir-measures"}
    assert set(re.findall(r"[\w-]+", everything)[1:]) == set(EXTRAS) - alone


def test_every_requirement_is_pinned() -> None:
    pinned = {
        re.sub(r"[-_.]+", "-", name).lower()
        for name in re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.M)
    }
    groups = [one for few in GROUPS.values() for one in few if isinstance(one, str)]
    extras = [one for few in PROJECT["optional-dependencies"].values() for one in few]
    required = names([*PROJECT["dependencies"], *DEEP["project"]["dependencies"], *extras, *groups])
    unpinned = {
        "suffice",
        "dspy",
        "ragas",
        "langchain-community",
        "deepeval",
        "atheris",
    }  # ourselves; and what neither `make run` nor `make test` installs
    assert {re.sub(r"[-_.]+", "-", name).lower() for name in required} - pinned == unpinned
