"""Why the gate thinks so, what is missing, and what to look for next: in words.

Reasons are by occlusion: a family of features is put back to its median at fit time, and what that does to the log-odds is the
family's effect. All families of all questions go through the model in one batch.

What is missing is read, not guessed, where possible: names, numbers and dates of the question that no hit covers. Behind them
come the absent names that the model takes for missing evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.gate.extraction import ABSENT_COLUMNS, Extraction
from suffice.gate.features import Feature
from suffice.gate.featurize import FeatureBatch
from suffice.gate.question import ParsedQuestion, display_name
from suffice.text import DateMention, date_mentions, title_key
from suffice.types import Action, Document, Evidence, Reason

__all__ = [
    "FeatureView",
    "Occlusion",
    "explain_verdicts",
    "find_missing",
    "rank_reasons",
    "suggest_queries",
]

Floats = npt.NDArray[np.floating[Any]]
MAX_SHOWN = 4  # reasons, missing things, and queries at most
MIN_EFFECT = 0.05  # log-odds below which a family has not moved anything
MIN_CHANCE = 0.2  # from which chance on an absent name is told as missing
QUERY_WORDS = 4  # words of the question that go with a name into a query
_ASKED, _MENTIONS = ABSENT_COLUMNS.index("asked"), ABSENT_COLUMNS.index("mentions")
_BEFORE, _BEHIND = 32, 12  # how much of a date can stand before its year, and behind
_YEAR = re.compile(r"[12]\d{3}")
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,.]*(?![\w])")


def explain_verdicts(
    occlusion: Occlusion,
    seen: FeatureBatch,
    table: Floats,
    p_absent: Sequence[Floats],
    moved: Floats,
    actions: Sequence[Action],
) -> list[dict[str, Any]]:
    """Reasons, missing and next queries of each question: what a verdict says in words."""
    told = []
    for at, (action, row) in enumerate(zip(actions, table.tolist(), strict=True)):
        lost = find_missing(seen.taken[at].evidence, seen.readings[at], p_absent[at])
        queries = (
            suggest_queries(seen.asked[at], lost) if lost or action is not Action.ANSWER else ()
        )
        why = rank_reasons(occlusion.families, moved[at], occlusion.named(row), occlusion.usual)
        told.append({"missing": lost, "next_queries": queries, "reasons": why})
    return told


# ------------------------------------------------------------------------------------------------ reasons


class FeatureView:
    """Numbers by name. A few of a hundred are asked for, so that no dictionary of all is made for each question."""

    __slots__ = ("_column", "_row")

    def __init__(self, column: Mapping[str, int], row: Sequence[float]) -> None:
        self._column, self._row = column, row

    def __getitem__(self, name: str) -> float:
        return self._row[self._column[name]]


class Occlusion:
    """Which columns each family hides, and what is shown in their place; made once for a gate."""

    def __init__(self, features: Sequence[Feature], medians: Sequence[float]) -> None:
        self.families = tuple(
            family for family in _REASON_TEXTS if any(one.family == family for one in features)
        )
        hides = [
            [one.family == family for one in features] for family in (None, *self.families)
        ]  # first nothing is hidden
        self._hides = np.array(hides, dtype=bool).reshape(len(hides), 1, len(features))
        self._medians = np.array(medians, dtype=np.float32)
        self._column = {one.name: at for at, one in enumerate(features)}
        self.usual = self.named(medians)

    def named(self, row: Sequence[float]) -> FeatureView:
        """A question's features by name."""
        return FeatureView(self._column, row)

    def effects(self, table: Floats, odds: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        """Each question's log-odds, and how far each family moves them: (questions,) and (questions, families)."""
        shown = np.where(self._hides, self._medians, table).reshape(-1, table.shape[1])
        every = odds(shown).reshape(-1, len(table))
        return every[0], (every[0] - every[1:]).T


def rank_reasons(
    families: Sequence[str], moved: Floats, seen: FeatureView, usual: FeatureView
) -> tuple[Reason, ...]:
    """The strongest effects of one question, strongest first; features by name, its own and the medians at fit time."""
    strongest = sorted(
        zip(families, moved.tolist(), strict=True), key=lambda pair: (-abs(pair[1]), pair[0])
    )[:MAX_SHOWN]
    return tuple(
        Reason(family, round(effect, 4), _REASON_TEXTS[family](seen, usual))
        for family, effect in strongest
        if abs(effect) >= MIN_EFFECT
    )


def _explain_path(seen: FeatureView, usual: FeatureView) -> str:
    need = max(seen["held"] - seen["short"], 0.0)
    return f"about {seen['held']:.1f} of the hits look like evidence, and the question seems to need {need:.1f}"


def _explain_coverage(seen: FeatureView, usual: FeatureView) -> str:
    said = f"the hits hold {seen['cov_any']:.0%} of what the question says (usually {usual['cov_any']:.0%})"
    if seen["names_no_text"] > 0:
        return f"{said}; {seen['names_no_text']:.0%} of its names stand in none of them"
    if seen["numbers_missing"] > 0:
        return f"{said}, but not all of its numbers"
    return (
        f"{said}; it names the titles of {seen['named']:.0f} of them" if seen["named"] > 0 else said
    )


def _explain_links(seen: FeatureView, usual: FeatureView) -> str:
    if seen["dangling"] > 0:
        return "a hit that the question is about leads on to something that no hit is about"
    if seen["bridged"] > 0:
        return f"the hits that the question names lead on to {seen['bridged']:.0f} of the others"
    return f"the hits mention one another's titles {seen['links']:.0f} times (usually {usual['links']:.0f})"


def _explain_absent(seen: FeatureView, usual: FeatureView) -> str:
    if seen["absent"] < MIN_CHANCE:
        return "no name that the hits mention looks like a missing document"
    return (
        f"about {seen['absent']:.1f} of the names that no hit is about seem to be missing documents"
    )


def _explain_scores(seen: FeatureView, usual: FeatureView) -> str:
    if seen["s_mean"] < 0:
        return "the hits carry no scores that can be compared"
    return f"the mean score is {seen['s_mean']:.0%} of the first (usually {max(usual['s_mean'], 0.0):.0%})"


def _explain_hops(seen: FeatureView, usual: FeatureView) -> str:
    need = max(seen["guess_hops"], 1.0)  # a straight line may fall below what makes sense
    return f"questions of this form need about {need:.1f} documents (usually {usual['guess_hops']:.1f})"


def _explain_query(seen: FeatureView, usual: FeatureView) -> str:
    return f"{seen['content']:.0f} words to find (usually {usual['content']:.0f}) among {seen['k']:.0f} hits"


def _explain_overlap(seen: FeatureView, usual: FeatureView) -> str:
    return f"{seen['distinct_titles']:.0%} of the hits have a title of their own"


def _explain_agreement(seen: FeatureView, usual: FeatureView) -> str:
    if seen["shared"] < 0:
        return "no other run was given to compare with"
    return f"{seen['shared']:.0%} of the hits stand in the other runs too (usually {max(usual['shared'], 0.0):.0%})"


def _explain_similarity(seen: FeatureView, usual: FeatureView) -> str:
    said = f"in meaning the nearest hit is like the question by {seen['cosine1']:.2f} (usually {usual['cosine1']:.2f})"
    if seen["clauses"] > 1:
        return f"{said}, and the part of it that they fit least {seen['clause_least']:.2f} (usually {usual['clause_least']:.2f})"
    return said


def _explain_relevance(seen: FeatureView, usual: FeatureView) -> str:
    return (
        f"the cross-encoder gives the best hit {seen['relevance1']:.1f} and the second {seen['relevance2']:.1f} "
        f"(usually {usual['relevance1']:.1f} and {usual['relevance2']:.1f})"
    )


_REASON_TEXTS: dict[str, Callable[[FeatureView, FeatureView], str]] = {
    "path": _explain_path,
    "coverage": _explain_coverage,
    "links": _explain_links,
    "absent": _explain_absent,
    "scores": _explain_scores,
    "hops": _explain_hops,
    "query": _explain_query,
    "overlap": _explain_overlap,
    "agreement": _explain_agreement,
    "own": lambda seen, usual: "what the labels it was adapted to teach by themselves",
    "similarity": _explain_similarity,
    "relevance": _explain_relevance,
    "more": lambda seen, usual: "how near the hits are to the question in meaning",
}


# ------------------------------------------------------------------------------------------------ missing, next queries


def find_missing(evidence: Evidence, reading: Extraction, p_absent: Floats) -> tuple[str, ...]:
    """What no hit covers: names of the question, then its dates and numbers, then the likeliest absent names."""
    asked, mentions, chances = (
        reading.absent[:, _ASKED].tolist(),
        reading.absent[:, _MENTIONS].tolist(),
        p_absent.tolist(),
    )
    dates = _question_dates(evidence.question.text)
    dated = " ".join(
        evidence.question.text[one.start : one.end] for one in dates
    )  # "September 19" is no name but half a date
    unmentioned = [
        name
        for at, run in enumerate(reading.absent_runs)
        if asked[at] and not mentions[at] and (name := display_name(run)) not in dated
    ]
    labels = _metadata_labels(evidence.documents.values()) if unmentioned else ""
    found = dict.fromkeys(name for name in unmentioned if f" {title_key(name)} " not in labels)
    found.update(dict.fromkeys(_missing_figures(evidence, dates)))
    likely = [at for at, chance in enumerate(chances) if chance >= MIN_CHANCE]
    for at in sorted(likely, key=chances.__getitem__, reverse=True)[:MAX_SHOWN]:
        if (name := display_name(reading.absent_runs[at])) not in dated:
            found.setdefault(name)
    return tuple(one for one in found if one)[:MAX_SHOWN]


def _question_dates(question: str) -> list[DateMention]:
    """The dates of a question. They are looked for around its years: the search is slow."""
    years = [year.start() for year in _YEAR.finditer(question)]
    if not years:
        return []
    start = max(years[0] - _BEFORE, 0)
    found = date_mentions(question[start : years[-1] + _BEHIND])
    return [replace(one, start=one.start + start, end=one.end + start) for one in found]


def _metadata_labels(documents: Iterable[Document]) -> str:
    """Sources, categories and entities of the hits, as title keys: a question may name a newspaper that no text mentions."""
    named = [
        label for one in documents for label in (one.source, one.category, *one.entities) if label
    ]
    return " " + " | ".join(title_key(label) for label in named) + " "


def _missing_figures(evidence: Evidence, dates: Sequence[DateMention]) -> list[str]:
    question, documents = evidence.question.text, evidence.documents.values()
    lost = [
        words
        for one in dates
        if not _covers_date(words := question[one.start : one.end], one, documents)
    ]
    for match in _NUMBER.finditer(question):
        number = match.group().rstrip(".,")
        inside = any(one.start <= match.start() < one.end for one in dates)
        if not inside and not any(number in one.text or number in one.title for one in documents):
            lost.append(number)
    return lost


def _covers_date(words: str, asked: DateMention, documents: Iterable[Document]) -> bool:
    """Whether a date stands in a document in these words, or is the day of one."""
    return any(
        words in one.text
        or words in one.title
        or (one.published_at is not None and asked.first <= one.published_at <= asked.last)
        for one in documents
    )


def suggest_queries(asked: ParsedQuestion, lost: Sequence[str]) -> tuple[str, ...]:
    """Short searches for what is missing: each thing with the words of the question that relate it to the rest.

    When nothing in particular is missing, each name of the question is looked for with those words.
    """
    told = b" ".join(asked.names)
    relating = [
        word.decode("utf-8", "ignore") for word in asked.content if b" " + word + b" " not in told
    ]
    subjects = list(lost) or list(asked.written.values())
    if not subjects:
        return (" ".join(relating[: 2 * QUERY_WORDS]),) if relating else ()
    queries = dict.fromkeys(_query(subject, relating) for subject in subjects)
    return tuple(query for query in queries if query)[: MAX_SHOWN - 1]


def _query(subject: str, relating: Sequence[str]) -> str:
    own = subject.casefold()
    return " ".join([subject, *[word for word in relating if word not in own][:QUERY_WORDS]])
