"""FRAMES, first half of the paper: the contents of the file and the hits of four title retrievers.

Tables 1 to 7, Figures 1 to 5.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from suffice.datasets.dataset import Dataset
from suffice.evaluation.metrics import Rankings, judge_rankings
from suffice.evaluation.report import Cell, Section, Table
from suffice.evaluation.searching import RetrievedDataset, RetrievedQuestion, retrieve_dataset
from suffice.evaluation.significance import Interval, interval
from suffice.protocols import Progress
from suffice_research.figures import Arrow, Box, Curves, Diagram, PaperBars, PaperSeries
from suffice_research.frames import published as paper
from suffice_research.paper_features import FRAMES
from suffice_research.published import PublishedTable
from suffice_research.published_cells import SignedNumber, WithPublished

__all__ = [
    "HYBRID",
    "KS",
    "NAMES",
    "K",
    "SearchResults",
    "by_size_and_reasoning",
    "coverage",
    "parsing",
    "search",
]

NAMES = ("bm25-title", "hybrid-title-paper", "tfidf-char", "tfidf-word")
HYBRID = "hybrid-title-paper"
KS = (4, 8, 10, 15, 25)
K = 10  # the depth at which the paper predicts
# The upper ends of the paper's bins of article counts. A question with one article, which the
# public file does not have, would be in the first.
BINS = {"2": 2, "3": 3, "4": 4, "5-6": 6, "7-10": 10, "11+": 10**9}
TAIL = 12  # article counts from here on share one bar

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SearchResults:
    """FRAMES' questions with the hits of each of the paper's retrievers."""

    collected: RetrievedDataset
    seed: int

    def cases(self, retriever: str = HYBRID) -> tuple[RetrievedQuestion, ...]:
        """The questions at the depth at which the paper predicts."""
        return self.collected.questions(retriever, K)

    @cached_property
    def judged(self) -> dict[str, Rankings]:
        """Each retriever's rankings down to the deepest cut-off."""
        return {name: _judge(self.collected.questions(name, max(KS))) for name in NAMES}

    @cached_property
    def articles(self) -> list[int]:
        """How many articles each question needs."""
        return [len(case.gold.doc_ids) for case in self.cases()]

    @cached_property
    def bins(self) -> dict[str, Bools]:
        """Which questions are in each bin of article counts."""
        ends = np.array(list(BINS.values()))
        of = np.searchsorted(ends, self.articles)
        return {name: of == at for at, name in enumerate(BINS)}

    @cached_property
    def reasoning(self) -> dict[str, Bools]:
        """Which questions have each label."""
        labels = list(paper.TABLE_7.figures)
        return {
            label: np.array([label in case.gold.labels for case in self.cases()])
            for label in labels
        }


def search(dataset: Dataset, *, seed: int, progress: Progress | None = None) -> SearchResults:
    """Search every question with the paper's four retrievers."""
    return SearchResults(
        retrieve_dataset(dataset, NAMES, (K, max(KS)), seed=seed, progress=progress), seed
    )


def _judge(cases: Sequence[RetrievedQuestion]) -> Rankings:
    ranked = [[hit.doc_id for hit in case.evidence.hits] for case in cases]
    return judge_rankings(ranked, [case.gold.doc_ids for case in cases], depth=max(KS))


# ---- the contents of the file


def parsing(searched: SearchResults) -> Section:
    """Figures 1 and 2, Tables 1, 2 and 3."""
    counts = searched.articles
    titles = {article for case in searched.cases() for article in case.gold.doc_ids}
    measured: dict[str, float] = {
        "questions": len(counts),
        "article mentions": sum(counts),
        "titles": len(titles),
        "mean articles": statistics.mean(counts),
        "median articles": statistics.median(counts),
        "fewest articles": min(counts),
        "most articles": max(counts),
    }
    published = paper.TABLE_1.figures["collection"]
    rows = tuple((name, *_plain_beside(value, published[name])) for name, value in measured.items())
    shown = (
        _pipeline(len(counts), len(titles)),
        Table(
            "Table 1. What the file holds", ("property", "measured", "paper", "difference"), rows
        ),
        _shares(
            "Table 2. Questions by reasoning type",
            "reasoning type",
            searched.reasoning,
            paper.TABLE_2,
        ),
        _shares("Table 3. Questions by article count", "articles", searched.bins, paper.TABLE_3),
        _distribution(counts),
    )
    says = "Read from test.tsv alone. Which links name an article is decision 3; a question may carry several reasoning types."
    return Section("The questions", shown, says)


def _pipeline(questions: int, titles: int) -> Diagram:
    """Figure 1."""
    families = Counter(one.family for one in FRAMES)
    asked = families["query"] + families["reasoning"]
    found = families["scores"] + families["overlap"]
    given, computed, learned, out = 6, 0, 1, 2  # colours
    boxes = (
        Box("file", f"test.tsv: {questions:,} questions with links", 0, 0, given),
        Box("titles", f"Parse links, normalise titles: {titles:,} articles", 1, 0, computed),
        Box("search", "Four title retrievers over all of them", 2, 0, computed),
        Box("ranking", f"Ranked titles, k = {KS[0]} to {KS[-1]}", 3, 0, computed),
        Box("asked", f"{asked} features: prompt, reasoning types", 0, 1, computed),
        Box("found", f"{found} features: scores, title overlap", 1, 1, computed),
        Box("strict", f"Strict label: every article in the first {K}", 2, 1, given),
        Box("coverage", "Coverage: share of the articles found", 3, 1, given),
        Box("hops", "Hop count: secondary analysis only", 0, 2, given),
        Box("models", "Three models, five stratified folds", 1, 2, learned),
        Box("p", "p: is every article found?", 2, 2, out),
        Box("action", "Answer, retrieve more, or abstain", 3, 2, out),
    )
    arrows = (
        ("file", "titles"),
        ("titles", "search"),
        ("search", "ranking"),
        ("ranking", "coverage"),
        ("coverage", "strict"),
        ("file", "asked"),
        ("search", "found"),
        ("asked", "models"),
        ("found", "models"),
        ("strict", "models"),
        ("hops", "models"),
        ("models", "p"),
        ("p", "action"),
    )
    says = (
        "Grey: known from the file's gold links alone, for measuring; blue: observable before an answer is generated; orange: "
        "learned; green: what comes out."
    )
    title = "Figure 1. From the file to a probability"
    return Diagram(title, boxes, tuple(Arrow(*ends) for ends in arrows), says)


def _plain_beside(measured: float, published: float) -> tuple[Cell, ...]:
    """Counts formatted as counts, means as means."""
    whole = float(measured).is_integer()
    if whole:
        return int(measured), int(published), int(measured - published)
    return measured, published, SignedNumber(measured - published)


def _shares(title: str, what: str, parts: dict[str, Bools], published: PublishedTable) -> Table:
    figures = published.figures["questions"]
    rows = []
    for name, rows_there in parts.items():
        n, theirs = int(rows_there.sum()), int(figures[name])
        rows.append((name, n, theirs, n - theirs, n / len(rows_there)))
    return Table(title, (what, "questions", "paper", "difference", "share"), tuple(rows))


def _distribution(counts: Sequence[int]) -> PaperBars:
    theirs = paper.TABLE_3.figures["questions"]
    binned = {name: value / sum(theirs.values()) for name, value in theirs.items()}
    found = Counter(min(count, TAIL) for count in counts)
    bars = tuple(
        PaperSeries(
            f"{count} or more" if count == TAIL else str(count),
            (Interval(n / len(counts)),),
            (binned.get(str(count)),),
        )
        for count, n in sorted(found.items())
    )
    says = f"Most questions need two to four articles; a thin tail reaches to {max(counts)}."
    return PaperBars(
        "Figure 2. Articles that a question needs", "share of questions", bars, says=says
    )


# ---- retrieval results


def coverage(searched: SearchResults) -> Section:
    """Tables 4 and 5, Figures 3 and 4, and the first-hit figures of the text."""
    shown = (
        _by_depth("Table 4. Mean coverage", "coverage", paper.TABLE_4, searched),
        _curves("Figure 3. Mean coverage by depth", "coverage", paper.TABLE_4, searched),
        _by_depth(
            "Table 5. Strict correctness: every article found", "strict", paper.TABLE_5, searched
        ),
        _curves("Figure 4. Strict correctness by depth", "strict", paper.TABLE_5, searched),
        _first_hit(searched),
    )
    says = (
        "Coverage is the share of a question's articles among the first k titles (our recall), strict correctness whether all "
        "of them are (our complete). Brackets: 95 % bootstrap interval over questions."
    )
    return Section("What four title retrievers find", shown, says)


def _by_depth(title: str, metric: str, published: PublishedTable, searched: SearchResults) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in NAMES:
        for k in KS:
            found, theirs = (
                _figure(searched, name, f"{metric}@{k}"),
                published.get(name, f"{metric}@{k}"),
            )
            rows.append(
                (published.printed[name], k, found, theirs, WithPublished(found, theirs).difference)
            )
    return Table(title, ("retriever", "k", metric, "paper", "difference"), tuple(rows))


def _figure(searched: SearchResults, name: str, metric: str, rows: Bools | None = None) -> Interval:
    judged = searched.judged[name]
    return interval(judged if rows is None else judged.rows(rows), metric, seed=searched.seed)


def _curves(title: str, metric: str, published: PublishedTable, searched: SearchResults) -> Curves:
    lines = []
    for name in NAMES:
        values = tuple(_figure(searched, name, f"{metric}@{k}") for k in KS)
        lines.append(
            PaperSeries(
                published.printed[name],
                values,
                tuple(published.get(name, f"{metric}@{k}") for k in KS),
            )
        )
    says = "Hollow diamonds: the paper. All rise with depth and flatten far below 1."
    return Curves(title, "k (titles read)", f"{metric}@k", KS, tuple(lines), says)


def _first_hit(searched: SearchResults) -> Table:
    metrics = (f"mrr@{max(KS)}", f"precision@{K}", f"coverage@{K}", f"strict@{K}")
    rows: list[tuple[Cell, ...]] = [
        (
            paper.FIRST_HIT.printed[name],
            *(_beside(searched, name, metric, paper.FIRST_HIT) for metric in metrics),
        )
        for name in NAMES
    ]
    note = "The paper says of the first hit only that its mean reciprocal rank is above 0.82 for BM25 and the hybrid."
    return Table("First hit and whole set", ("retriever", *metrics), tuple(rows), note)


def _beside(
    searched: SearchResults, name: str, metric: str, published: PublishedTable
) -> WithPublished:
    return WithPublished(_figure(searched, name, metric), published.get(name, metric))


# ---- difficult questions


def by_size_and_reasoning(searched: SearchResults) -> Section:
    """Tables 6 and 7, Figure 5."""
    six = _parts(
        "Table 6. By article count, hybrid",
        "articles",
        searched.bins,
        paper.TABLE_6,
        (10, 25),
        searched,
    )
    seven = _parts(
        "Table 7. By reasoning type, hybrid",
        "reasoning type",
        searched.reasoning,
        paper.TABLE_7,
        (10,),
        searched,
    )
    bars = []
    for name, rows_there in searched.bins.items():
        metrics = ("coverage@10", "coverage@25")
        values = tuple(_figure(searched, HYBRID, metric, rows_there) for metric in metrics)
        bars.append(
            PaperSeries(
                f"{name} articles",
                values,
                tuple(paper.TABLE_6.get(name, metric) for metric in metrics),
            )
        )
    five = PaperBars(
        "Figure 5. Coverage by article count, hybrid",
        "mean coverage",
        tuple(bars),
        ("k = 10", "k = 25"),
        says="The more articles a question needs, the smaller the share that is found.",
    )
    return Section(
        "Where it is hard",
        (six, five, seven),
        "In parentheses: the paper, and how far we are from it.",
    )


def _parts(
    title: str,
    what: str,
    parts: dict[str, Bools],
    published: PublishedTable,
    ks: Sequence[int],
    searched: SearchResults,
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, rows_there in parts.items():
        for k in ks:
            metrics = (f"coverage@{k}", f"strict@{k}")
            cells = (
                WithPublished(
                    _figure(searched, HYBRID, metric, rows_there), published.get(name, metric)
                )
                for metric in metrics
            )
            rows.append((name, int(rows_there.sum()), k, *cells))
    return Table(title, (what, "questions", "k", "coverage", "strict"), tuple(rows))
