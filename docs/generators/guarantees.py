"""The pages on guarantees, their measurements and licences, from robustness/guarantees.py and the
stored figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.reporting import ResultTable
from robustness.guarantees import GUARANTEES, Guarantee, path_of
from robustness.results import PARTS, StoredFigures, load_figures

from docs.generators.paths import REFERENCE, RESULTS

LICENCES = "Licences"  # a long table: it has its own page


def pages() -> dict[Path, str]:
    return {
        REFERENCE / "guarantees.md": guarantees(),
        REFERENCE / "licences.md": licences(),
        RESULTS / "robustness.md": measurements(),
    }


def guarantees() -> str:
    figures = {part: load_figures(part) for part in PARTS}
    lines = [
        "# Guarantees\n",
        "This page lists each guarantee with its tests, its last measurement, and what it does not cover. The figures are in "
        "`research/results/robustness.md`, the threat model in `SECURITY.md`.\n",
    ]
    for title, group in GUARANTEES.items():
        lines.append(f"## {title}\n")
        lines += [_guarantee(one, figures) for one in group]
    return "\n".join(lines)


def measurements() -> str:
    """research/results/robustness.md"""
    lines = [
        "# Robustness: last measurements\n",
        "`make robustness WRITE=1` measures everything again, `python -m robustness PART --write` one part.\n",
    ]
    for part, title in PARTS.items():
        lines += _part(part, title, load_figures(part))
    return "\n".join(lines)


def licences() -> str:
    figures = load_figures("supply")
    found = [one for one in figures.tables if one.title == LICENCES] if figures else []
    lines = ["# Licences\n"]
    if not figures or not found:
        return "\n".join([*lines, "Not listed yet: `python -m robustness supply --write`.\n"])
    lines.append(
        f"{found[0].says} {found[0].verdict()} Listed on {figures.date} by `{figures.command}`.\n"
    )
    return "\n".join([*lines, f"```\n{found[0].table()}\n```\n"])


def _guarantee(one: Guarantee, figures: dict[str, StoredFigures | None]) -> str:
    lines = [f"**{one.says}**\n"]
    lines += [f"- proved by `{path_of(test)}`" for test in one.proved_by]
    lines += [f"- measured by {_measured(name, figures)}" for name in one.measured_by]
    if one.without:
        lines.append(f"- not covered: {one.without}")
    return "\n".join(lines) + "\n"


def _measured(name: str, figures: dict[str, StoredFigures | None]) -> str:
    """A part or one of its tables, and whether the requirement was kept."""
    part, _, title = name.partition(": ")
    named = PARTS[part].lower()
    found = figures[part]
    if found is None:
        return f"{named}: not run yet"
    chosen = [one for one in found.tables if one.title.startswith(title)]
    run = "a short run" if found.quick else "a full run"
    where = f"{named}, *{title.lower()}*" if title else named
    return f"{where}, {run} of {found.date}: {_outcome(chosen, () if title else found.failed)}"


def _outcome(tables: Sequence[ResultTable], failed: Sequence[str]) -> str:
    """Tables without a requirement do not count; if none has one, too little was tried."""
    said = [one.kept for one in tables if one.kept is not None]
    if failed or not tables or not all(said):
        return "NOT kept"
    return "kept" if said else "not shown: fewer were tried than required"


def _part(part: str, title: str, found: StoredFigures | None) -> list[str]:
    lines = [f"### {title}\n"]
    if found is None:
        return [*lines, f"Not run yet: `python -m robustness {part} --write`.\n"]
    run = "A short run, with small counts" if found.quick else "A full run"
    lines.append(
        f"{run}: `{found.command}`, {found.date}, commit {found.commit}, {_lasting(found.seconds)}, load average {found.load} "
        f"at the end, {found.machine}.\n"
    )
    if found.failed:
        lines.append(f"Failed or missed its requirement: {', '.join(found.failed)}.\n")
    for one in found.tables:
        lines += _table(one)
    return lines


def _table(one: ResultTable) -> list[str]:
    says = " ".join(part for part in (one.says, one.verdict()) if part)
    if one.title == LICENCES:
        return [
            f"**{one.title}.** {len(one.rows)} packages, listed in docs/reference/licences.md. {one.verdict()}\n"
        ]
    return [
        f"**{one.title}.** {says}\n",
        f"```\n{one.table()}\n```\n",
        *(f"{note}\n" for note in one.notes),
    ]


def _lasting(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
