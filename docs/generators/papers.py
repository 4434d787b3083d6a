"""research/papers.md: the five papers, and what became of each of their items.

Made from the list in `suffice_research/papers.toml` and from the stored studies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.generators.markdown import table
from docs.generators.paths import ROOT
from docs.generators.results import load_studies
from suffice_research.papers import Paper, load_papers
from suffice_research.study import Study, StudyItem

PAGE = ROOT / "research" / "papers.md"
STATES = ("done", "changed", "not done")
INTRODUCTION = """# The five papers, and the one loop

suffice grew out of five papers. We reproduce each one, with the paper's figures beside ours. Together they form a loop that
none of them has: a corpus yields questions with known evidence, these fit a gate, the gate controls search and answers, and a
report shows errors by hops and distance.

![The loop: corpus, questions, gate, search, answers, and the papers that each part comes from](../docs/images/loop.svg)

*Done* means as in the paper, as far as its text specifies it. *Changed* and *not done* come with the reason. Parentheses show
the paper's figure and, where a table has it, the difference from ours. `suffice reproduce PAPER --items` prints the same list.
"""


def pages() -> dict[Path, str]:
    return {PAGE: "\n".join(_lines(load_studies()))}


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
