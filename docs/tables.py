"""Tables of the generated pages, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(["| " + " | ".join(row) + " |" for row in [list(head), ["---"] * len(head), *cells]]) + "\n"
