"""`make bench`: every benchmark in turn. `--quick` keeps to the small sizes, `--write` makes docs/results/performance.md."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported: one core is what the figures are about

import argparse
import platform
import subprocess
import sys
import traceback
from datetime import date
from pathlib import Path

import psutil

from benchmarks import bench_gate, bench_graph, bench_lexical, bench_library, bench_links, bench_reading
from benchmarks.measured import Measured, show

PAGE = Path(__file__).parent.parent / "docs" / "results" / "performance.md"
BENCHES = {
    "The gate": bench_gate.tables,
    "Reading": bench_reading.tables,
    "Graph propagation": bench_graph.tables,
    "BM25 and TF-IDF": bench_lexical.tables,
    "Mention links": bench_links.tables,
    "The library on disk": bench_library.tables,
}


def machine() -> str:
    """Cores, processor and memory; nothing that names the machine."""
    try:
        listed = subprocess.run(["lscpu"], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout
    except (OSError, subprocess.CalledProcessError):
        listed = ""
    models = [line.partition(":")[2].strip() for line in listed.splitlines() if line.startswith("Model name:")]
    memory = psutil.virtual_memory().total / 2**30
    model = " ".join([*models, f"({platform.machine()})"])
    return f"{os.cpu_count()} cores, {model}, {memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def page(sections: dict[str, list[Measured]], quick: bool, loads: tuple[str, str]) -> str:
    command = "python -m benchmarks --write" + (" --quick" if quick else "")
    lines = [
        "# Speed and memory: what was measured\n",
        f"<!-- Written by `{command}`; do not edit. -->\n",
        f"{'A short run: the small sizes only.' if quick else 'A full run.'} {date.today().isoformat()}, {machine()}.",
        f"Load average {loads[0]} at the start, {loads[1]} at the end: other work ran beside it, so that times on the wall are "
        "upper bounds; processor seconds and ratios within the run say more.\n",
        f"    {command}\n",
    ]
    for name, tables in sections.items():
        lines.append(f"## {name}\n")
        for one in tables:
            says = " ".join(part for part in (one.says, one.verdict()) if part)
            lines += [f"**{one.title}.** {says}\n", f"```\n{one.table()}\n```\n", *(f"{note}\n" for note in one.notes)]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the small sizes only")
    parser.add_argument("--write", action="store_true", help="write docs/results/performance.md from this run")
    asked = parser.parse_args()
    before, failed = load(), []
    sections: dict[str, list[Measured]] = {name: [] for name in BENCHES}
    for name, tables in BENCHES.items():
        print(f"\n=== {name} ===", flush=True)
        try:
            sections[name] += show(tables(asked.quick))
        except Exception:  # noqa: BLE001 - one that fails must not cost the figures of the others
            traceback.print_exc()
            failed.append(name)
        failed += [one.title for one in sections[name] if one.kept is False]
        if asked.write:  # after each, so that a run that is cut short leaves what it measured
            done = {name: tables for name, tables in sections.items() if tables}
            PAGE.write_text(page(done, asked.quick, (before, load())), encoding="utf-8")
    if failed:
        print(f"error: did not finish, or fell short: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
