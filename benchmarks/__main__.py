"""`make bench`: run every benchmark, then print all ratios in one table. `--write` writes the pages
in research/results.

`--quick` uses small sizes and skips the parts that take minutes even so (qdrant, batch,
name-links). `python -m benchmarks gate` runs one part; all of them take half an hour.
"""

from __future__ import annotations

import os

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before numpy is imported: the figures are for one core

import argparse
import sys
from collections.abc import Callable, Iterable
from datetime import date

from docs.generators.markdown import NOTE
from docs.generators.paths import RESULTS

from benchmarks import (
    bench_batch,
    bench_bridge,
    bench_extraction,
    bench_gate,
    bench_grade,
    bench_graph,
    bench_lexical,
    bench_library,
    bench_links,
    bench_name_writes,
    bench_presets,
    bench_qdrant,
    bench_serve,
    overview,
)
from benchmarks.reporting import (
    ResultTable,
    collect_tables,
    load_average,
    machine_info,
    missed_requirements,
)

PARTS: dict[str, dict[str, Callable[[bool], Iterable[ResultTable]]]] = {
    "gate": {
        "The presets": bench_presets.tables,
        "The gate": bench_gate.tables,
        "Reading": bench_extraction.tables,
    },
    "bridge": {"The bridge retriever": bench_bridge.tables},
    "name-links": {
        "Name links": bench_bridge.growth,
        "Name links after a write": bench_name_writes.tables,
    },
    "batch": {"Jobs on Dask": bench_batch.tables},
    "qdrant": {
        "The store on Qdrant": bench_qdrant.tables,
        "Quality on Qdrant": bench_qdrant.quality_tables,
    },
    "serve": {"The service": bench_serve.tables},
    "grade": {"A benchmark from a corpus": bench_grade.tables},
    "search": {
        "Graph propagation": bench_graph.tables,
        "BM25 and TF-IDF": bench_lexical.tables,
        "Mention links": bench_links.tables,
        "The library on disk": bench_library.tables,
    },
}
PAGES = {part: RESULTS / f"performance-{part}.md" for part in PARTS}
LONG = ("qdrant", "batch", "name-links")


def page(
    part: str,
    sections: dict[str, list[ResultTable]],
    command: str,
    quick: bool,
    loads: tuple[str, str],
) -> str:
    lines = [
        f"# Speed and memory: {overview.TITLES[part]}\n",
        f"<!-- Written by `{command}`; do not edit. -->\n",
        f"{'A short run: the small sizes only.' if quick else 'A full run.'} {date.today().isoformat()}, {machine_info()}.",
        f"Load average {loads[0]} at the start, {loads[1]} at the end: other work ran beside it, so that times on the wall are "
        "upper bounds; processor seconds and ratios within the run say more.\n",
        f"    {command}\n",
    ]
    for name, tables in sections.items():
        lines.append(f"## {name}\n")
        for one in tables:
            says = " ".join(part for part in (one.says, one.verdict()) if part)
            lines += [
                f"**{one.title}.** {says}\n",
                f"```\n{one.table()}\n```\n",
                *(f"{note}\n" for note in one.notes),
            ]
    return "\n".join(lines)


def run(part: str, asked: argparse.Namespace, found: dict[str, list[ResultTable]]) -> list[str]:
    """Run the benchmarks of one part and write its page; returns what failed. Its tables are added
    to `found`.
    """
    command = f"python -m benchmarks {part} --write" + (" --quick" if asked.quick else "")
    before = load_average()
    broken: list[str] = []
    sections: dict[str, list[ResultTable]] = {}
    for name, tables in PARTS[part].items():
        sections[name], lost = collect_tables(name, tables(asked.quick))
        broken += lost
        if asked.write:  # after each section, so that a stopped run keeps what it measured
            written = page(part, sections, command, asked.quick, (before, load_average()))
            PAGES[part].write_text(written, encoding="utf-8")
    found[part] = [one for tables in sections.values() for one in tables]
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=tuple(PARTS), help="one part; default: all")
    parser.add_argument("--quick", action="store_true", help="the small sizes only")
    parser.add_argument(
        "--write", action="store_true", help="write the page in research/results from this run"
    )
    asked = parser.parse_args()
    chosen = (
        [asked.part]
        if asked.part
        else [part for part in PARTS if not (asked.quick and part in LONG)]
    )
    found: dict[str, list[ResultTable]] = {}
    broken = [one for part in chosen for one in run(part, asked, found)]
    print(f"\n{overview.table(found).table()}")
    if asked.write:
        (RESULTS / "performance.md").write_text(NOTE + overview.page(RESULTS), encoding="utf-8")
    if below := [title for tables in found.values() for title in missed_requirements(tables)]:
        print(f"requirement missed in this run: {', '.join(below)}", file=sys.stderr)
    if broken:
        print(f"error: failed: {', '.join(broken)}", file=sys.stderr)
    return int(bool(broken))  # a missed requirement is a measurement, too


if __name__ == "__main__":
    sys.exit(main())
