"""`make robustness`: run every part. `--quick` uses small counts, `--write` stores the figures in
robustness/figures.

`python -m robustness soak` runs one part; all of them take hours. docs/reference/guarantees.md is
generated from the stored figures.
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
    """Run one part; the names of what failed or missed a requirement."""
    start = RunStart.now()
    found, broken = collect_tables(PARTS[part], import_module(f"robustness.{part}").tables(quick))
    failed = broken + missed_requirements(found)
    if write and found:
        save_figures(part, StoredFigures.now(part, found, failed, quick=quick, start=start))
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m robustness", description=__doc__)
    parser.add_argument("part", nargs="?", choices=available_parts(), help="one part; default: all")
    parser.add_argument("--quick", action="store_true", help="small counts only")
    parser.add_argument(
        "--write", action="store_true", help="store the figures of this run in robustness/figures"
    )
    args = parser.parse_args()
    chosen = [args.part] if args.part else available_parts()
    failed = [one for part in chosen for one in run(part, quick=args.quick, write=args.write)]
    if failed:
        print(f"error: failed or missed its requirement: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
