"""`make robustness`: every part in turn. `--quick` keeps to small counts, `--write` stores what was measured in robustness/figures.

`python -m robustness soak` runs one part alone: all of them take hours, and need not run again because one has changed. The page
docs/reference/guarantees.md is made from what is stored.
"""

from __future__ import annotations

import os

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before numpy is imported: several processes share a few cores

import argparse
import sys
from importlib import import_module

from benchmarks.reporting import collect_tables, missed_requirements

from robustness.results import PARTS, RunStart, StoredFigures, available_parts, save_figures


def run(part: str, *, quick: bool, write: bool) -> list[str]:
    """One part from start to end; what of it failed or fell short."""
    begun = RunStart.now()
    found, broken = collect_tables(PARTS[part], import_module(f"robustness.{part}").tables(quick))
    failed = broken + missed_requirements(found)
    if write and found:
        save_figures(part, StoredFigures.now(part, found, failed, quick=quick, begun=begun))
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m robustness", description=__doc__)
    parser.add_argument(
        "part", nargs="?", choices=available_parts(), help="one part; all unless told"
    )
    parser.add_argument("--quick", action="store_true", help="small counts only")
    parser.add_argument(
        "--write", action="store_true", help="store the figures of this run in robustness/figures"
    )
    asked = parser.parse_args()
    chosen = [asked.part] if asked.part else available_parts()
    failed = [one for part in chosen for one in run(part, quick=asked.quick, write=asked.write)]
    if failed:
        print(f"error: did not finish, or fell short: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
