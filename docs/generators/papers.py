"""docs/papers.md: the five papers, what became of each of their items, and the loop that joins them.

Made from the list in `suffice_research/papers.toml` and from the stored studies. The how-to page
about reproducing takes its list of what is there and what is not from here, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from docs.generators.markdown import replace_between, table
from docs.generators.paths import DOCS
from docs.generators.results import load_studies
from suffice.evaluation.study import Study, StudyItem
from suffice_research.papers import Paper, load_papers

PAGE = DOCS / "papers.md"
HOWTO = DOCS / "howto" / "reproduce.md"
PICTURE = DOCS / "images" / "loop.svg"
BEGIN, END = "<!-- items: made by `make docs` -->\n", "<!-- end of items -->"
STATES = ("done", "changed", "not done")
INTRODUCTION = """# The five papers, and the one loop

suffice grew out of five papers. We reproduce each one, with the paper's figures beside ours. Together they form a loop that
none of them has: a corpus yields questions with known evidence, these fit a gate, the gate controls search and answers, and a
report shows errors by hops and distance.

![The loop: corpus, questions, gate, search, answers, and the papers that each part comes from](images/loop.svg)

*Done* means as in the paper, as far as its text specifies it. *Changed* and *not done* come with the reason. Parentheses show
the paper's figure and, where a table has it, the difference from ours. `suffice reproduce PAPER --items` prints the same list.
"""


def pages() -> dict[Path, str]:
    return {PAGE: "\n".join(_lines(load_studies()))}


def howto() -> str:
    """The how-to page with its list as the papers' list has it."""
    return replace_between(HOWTO.read_text(encoding="utf-8"), BEGIN, END, _howto_list())


def pictures() -> dict[Path, bytes]:
    return {PICTURE: _picture().encode()}


def _counts(items: Sequence[StudyItem]) -> tuple[str, ...]:
    states = Counter(one.state for one in items)
    return tuple(str(states[state]) for state in STATES)


def _lines(studies: dict[str, Study]) -> Iterator[str]:
    papers = load_papers()
    yield INTRODUCTION
    every = [one for paper in papers.values() for one in paper.items]
    rows = [(f"[{one.title}](#{_anchor(one)})", *_counts(one.items)) for one in papers.values()]
    yield table(("paper", *STATES), [*rows, ("all", *_counts(every))])
    for paper in papers.values():
        yield from _paper_lines(paper, studies.get(paper.name))


def _anchor(paper: Paper) -> str:
    kept = "".join(char for char in paper.title.casefold() if char.isalnum() or char in " -")
    return kept.replace(" ", "-")


def _paper_lines(paper: Paper, study: Study | None) -> Iterator[str]:
    yield f"## {paper.title}\n"
    yield f"{paper.source}.\n"
    yield f"**What it proposes.** {paper.proposes}\n"
    yield f"**Where it lives.** {paper.lives}\n"
    yield f"**What we changed, and why.** {paper.changed}\n"
    yield f"**The command.** All results: [{paper.page.rpartition('/')[2]}]({paper.page}).\n"
    yield f"    {paper.command}\n"
    rows = []
    for one in paper.items:
        figure = paper.figures.get(one.item)
        elsewhere = [] if one.command == paper.command else [f"`{one.command}`"]
        if one.page != paper.page:
            elsewhere.append(f"[{one.page.rpartition('/')[2]}]({one.page})")
        rows.append(
            (
                one.item,
                one.what,
                f"{one.state}. {one.why}." if one.why else one.state,
                figure.words(study) if figure and study else "",
                f"`{one.code}`",
                ", ".join(elsewhere),
            )
        )
    yield table(("item", "what", "state", "ours (paper's)", "code", "elsewhere"), rows)


def _howto_list() -> str:
    lines = []
    for paper in load_papers().values():
        numbered = [one for one in paper.items if one.kind != "component"]
        parts = [one for one in paper.items if one.kind == "component"]
        lines.append(
            f"- **{paper.name}**: {_said(numbered, 'tables and figures')}; {_said(parts, 'parts')}."
        )
    return "\n".join(lines) + "\n"


def _said(items: Sequence[StudyItem], what: str) -> str:
    by_state = {state: [one.item for one in items if one.state == state] for state in STATES}
    words = f"{len(by_state['done'])} of {len(items)} {what} as in the paper"
    for state in STATES[1:]:
        if by_state[state]:
            words += f"; {state}: {', '.join(by_state[state])}"
    return words


# ------------------------------------------------------------------------------------ the picture

WIDTH, HEIGHT = 860, 440
# (x, y, width, title, what it does, papers)
BOXES = {
    "corpus": (20, 30, 160, "corpus", "documents, metadata", ""),
    "grade": (240, 30, 250, "grade", "knowledge graph, paths, questions", "GRADE"),
    "fit": (590, 30, 250, "fit", "labels to gate, threshold, promise", "MAGAF, FRAMES"),
    "search": (20, 190, 250, "search", "metadata filter, hybrid, rerank", "Multi-Meta-RAG, MAGAF"),
    "gate": (330, 190, 230, "gate", "features and reader: complete?", "MAGAF, FRAMES"),
    "abstain": (640, 190, 200, "abstain", "and say what is missing", ""),
    "ask": (240, 350, 250, "ask", "plan, act, review", "PAR-RAG"),
    "report": (590, 350, 250, "report", "errors by hops and distance", "GRADE"),
}
BOX_HEIGHT = 74
# (points, label, label's place, side of the point that the label stands on)
ARROWS = (
    (((180, 67), (240, 67)), "", (0, 0), "middle"),
    (((490, 67), (590, 67)), "questions", (540, 59), "middle"),
    (((95, 104), (95, 190)), "", (0, 0), "middle"),
    (((715, 104), (715, 147), (460, 147), (460, 190)), "gate", (590, 139), "middle"),
    (((270, 227), (330, 227)), "hits", (300, 219), "middle"),
    (((560, 227), (640, 227)), "no", (600, 219), "middle"),
    (
        ((380, 264), (380, 307), (145, 307), (145, 264)),
        "expand: what is missing",
        (262, 299),
        "middle",
    ),
    (((460, 264), (460, 350)), "yes", (470, 312), "start"),
    (((490, 387), (590, 387)), "answers", (540, 379), "middle"),
    (
        ((840, 387), (852, 387), (852, 14), (365, 14), (365, 30)),
        "where it is weak: more questions, more labels",
        (610, 10),
        "middle",
    ),
)


def _picture() -> str:
    """The loop as boxes and arrows: readable on light and on dark."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -6 {WIDTH} {HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        "<title>The loop that joins the five papers</title>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#5b6b7b"/></marker></defs>',
        f'<rect y="-6" width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for points, label, (x, y), anchor in ARROWS:
        path = " ".join(f"{one[0]},{one[1]}" for one in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="#5b6b7b" stroke-width="1.5" marker-end="url(#end)"/>'
        )
        if label:
            parts.append(
                f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="#5b6b7b" font-size="12">{escape(label)}</text>'
            )
    for x, y, width, title, does, papers in BOXES.values():
        middle = x + width / 2
        parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{BOX_HEIGHT}" rx="8" fill="#f4f7fa" stroke="#8fa3b5"/>'
        )
        rows = [(title, "#16324f", 'font-weight="600" font-size="15"'), (does, "#333f4a", "")]
        rows += [(papers, "#8a5a00", 'font-size="12"')] if papers else []
        for at, (words, colour, style) in enumerate(rows):
            parts.append(
                f'<text x="{middle:g}" y="{y + 24 + 20 * at}" text-anchor="middle" fill="{colour}" {style}>'
                f"{escape(words)}</text>"
            )
    return "\n".join([*parts, "</svg>\n"])
