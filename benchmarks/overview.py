"""All ratios in one table: from a run, or from the pages in research/results, which hold the figures.

A part's page is parsed back into its tables, so that there is one copy of each figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.reporting import ResultTable

TITLES = {
    "gate": "the gate",
    "bridge": "the bridge retriever",
    "name-links": "name links",
    "batch": "jobs on Dask",
    "qdrant": "the store on Qdrant",
    "serve": "the service",
    "grade": "benchmarks from a corpus",
    "search": "search, links, library",
}
_TABLE = re.compile(r"^\*\*([^\n]+?)\.\*\* ?([^\n]*)\n\n```\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Ratio:
    """Two cells of one table: the last table whose title matches, and the rows that begin with
    these words.
    """

    part: str
    what: str
    table: str
    column: str
    ours: str
    theirs: str
    more: bool = False  # more is better: a rate; else a time, or bytes
    column_of_theirs: str = ""
    alike: bool = False  # the two rows begin with the same cell, and differ in the next

    def of(self, tables: Sequence[ResultTable]) -> tuple[str, str, str] | None:
        """Ours, theirs, and how many times better ours is; None if it was not measured."""
        for one in reversed([table for table in tables if re.match(self.table, table.title)]):
            at, other = (
                one.columns.index(name)
                for name in (self.column, self.column_of_theirs or self.column)
            )
            pairs = [
                (mine[at], theirs[other])
                for mine in one.rows
                for theirs in one.rows
                if self._is(mine, self.ours)
                and self._is(theirs, self.theirs)
                and (not self.alike or mine[0] == theirs[0])
            ]
            pair = pairs[-1 if self.alike else 0] if pairs else ("", "")
            if all(map(_number, pair)):
                mine, theirs = map(_number, pair)
                times = mine / theirs if self.more else theirs / mine
                return *pair, f"{times:,.2f}" if times >= 0.1 else f"{times:.4f}"
        return None

    def _is(self, row: tuple[str, ...], words: str) -> bool:
        return row[int(self.alike)].startswith(words)


RATIOS = (
    Ratio("gate", ("a standard check against a cross-encoder over " "the hits, ms"), "Presets, ten hits of 100", "p50 ms",
          "standard", "cross-encoder"),
    Ratio("gate", ("a fast check against a cross-encoder over " "the hits, ms"), "One question", "p50 ms", "gate.check", "cross-encoder"),
    Ratio("gate", ("a fast check against MAGAF's features and " "forest, ms"), "One question", "p50 ms", "gate.check", "MAGAF, row"),
    Ratio("gate", ("reading ten hits against a TF-IDF " "of them, ms"), "Reading", "ms", "suffice.gate", "scikit-learn"),
    Ratio("search", ("BM25 against bm25s called directly, " "questions a second"), "Top 10 of", "questions a second", "suffice bm25",
          "bm25s", more=True),
    Ratio("search", ("BM25 against rank_bm25, " "questions a second"), "Top 10 of", "questions a second", "suffice bm25",
          "rank_bm25", more=True),
    Ratio("search", ("the factored graph against all edges in scipy, " "processor ms"), "Against stored", "cpu ms",
          "factored", "scipy"),
    Ratio("search", "... in bytes a document", "Against stored", "bytes a document", "factored", "scipy"),
    Ratio("search", ("the factored graph against a twentieth of the edges in NetworkX, " "processor ms"), "Against stored", "cpu ms",
          "factored", "NetworkX"),
    Ratio("search", ("finding titles against pyahocorasick, us " "a document"), "Ways to find", "us a document",
          "ahocorasick_rs, cont", "pyahocorasick"),
    Ratio("search", ("finding titles against a dictionary in Python, us " "a document"), "Ways to find", "us a document",
          "ahocorasick_rs, cont", "dictionary"),
    Ratio("search", ("building a library against tantivy alone, documents a " "processor second"), r".* of 200 words", "docs/cpu-s",
          "library", "tantivy", more=True),
    Ratio("search", ("searching it against tantivy " "alone, ms"), r".* of 200 words", "p50 ms", "library", "tantivy"),
    Ratio("search", ("searching it against LanceDB, " "ms"), r".* of 200 words", "p50 ms", "library", "lancedb"),
    Ratio("bridge", ("the bridge retriever against hybrid, " "processor ms"), "One question over", "processor ms", "bridge",
          "hybrid"),
    Ratio("batch", ("two Dask workers against one process, " "checks a second"), "A log", "a second", "two workers", "one process",
          more=True, alike=True),
    Ratio("qdrant", ("BM25 on a cluster of three against the embedded " "store, ms"), "One operation", "cluster p50", "BM25", "BM25",
          column_of_theirs="embedded p50"),
)  # fmt: skip


def table(measured: Mapping[str, Sequence[ResultTable]]) -> ResultTable:
    """Every ratio in one table; `--` for what was not measured."""
    rows = []
    for one in RATIOS:
        ours, theirs, times = one.of(measured.get(one.part, ())) or ("--", "--", "--")
        rows.append((one.what, one.part, ours, theirs, times))
    return ResultTable(
        "All ratios",
        "How many times better than the other ours is: above 1 it is faster, or smaller.",
        ("what", "part", "ours", "theirs", "times"),
        tuple(rows),
    )


# ---- stored pages


def read(page: str) -> list[ResultTable]:
    """The tables of a part's page."""
    return [_table(title, says, drawn) for title, says, drawn in _TABLE.findall(page)]


def _table(title: str, says: str, drawn: str) -> ResultTable:
    head, dashes, *lines = drawn.splitlines()
    spans = [found.span() for found in re.finditer("-+", dashes)]
    cells = [tuple(line[start : end if at + 1 < len(spans) else None].strip() for at, (start, end) in enumerate(spans))
             for line in (head, *lines)]  # fmt: skip
    kept = {"NOT kept.": False, "Kept.": True}
    found = next((word for word in kept if says.endswith(word)), "")
    return ResultTable(
        title, says.removesuffix(found).rstrip(), cells[0], tuple(cells[1:]), (), kept.get(found)
    )


def page(results: Path) -> str:
    """research/results/performance.md: the table, and the source of each part's figures."""
    pages = {part: results / f"performance-{part}.md" for part in TITLES}
    texts = {
        part: path.read_text(encoding="utf-8") if path.exists() else ""
        for part, path in pages.items()
    }
    measured = {part: read(text) for part, text in texts.items()}
    whole = table(measured)
    lines = [
        "# Speed and memory: all ratios\n",
        (
            "Ours beside the usual tool for the same work, same machine, same run. Above 1 ours "
            "is faster, or smaller.\n"
        ),
        *_markdown(whole.columns, whole.rows),
        "\n## Where they come from\n",
        (
            "Required: what a benchmark asks of itself. Milliseconds are those of this machine, "
            "and other work ran beside it.\n"
        ),
        *_markdown(
            ("part", "measured", "required, kept", "fell short"), list(_sources(texts, measured))
        ),
        (
            "\n`make bench` runs them all and prints the table; `SHORT=1` small sizes, in "
            "minutes; `WRITE=1` writes the pages.\n"
        ),
    ]
    return "\n".join(lines)


def _sources(
    texts: Mapping[str, str], measured: Mapping[str, Sequence[ResultTable]]
) -> Iterator[tuple[str, ...]]:
    for part, title in TITLES.items():
        tables = measured[part]
        if not tables:
            yield (
                f"{title} (`{part}`)",
                f"not measured: `python -m benchmarks {part} --write`",
                "",
                "",
            )
            continue
        run = re.search(r"^(A (?:full|short) run.*)$", texts[part], re.MULTILINE)
        asked = [one for one in tables if one.kept is not None]
        short = "; ".join(one.title for one in asked if not one.kept) or "none"
        where = f"[{title}](performance-{part}.md)"
        yield (
            where,
            run[1] if run else "",
            f"{sum(bool(one.kept) for one in asked)} of {len(asked)}",
            short,
        )


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def _number(cell: str) -> float:
    """The number in a cell; 0 if there is none."""
    found = re.fullmatch(r"[\d,]+(?:\.\d+)?", cell)
    return float(cell.replace(",", "")) if found else 0.0
