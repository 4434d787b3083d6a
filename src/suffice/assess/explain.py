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

from suffice.assess.asking import Asked
from suffice.assess.features import Feature
from suffice.assess.folding import written
from suffice.assess.looking import Looked
from suffice.assess.reading import ABSENT_COLUMNS, Reading
from suffice.text import DateMention, date_mentions, title_key
from suffice.types import Action, Document, Evidence, Reason

__all__ = ["Figures", "Occlusion", "missing", "next_queries", "reasons", "told_of"]

Floats = npt.NDArray[np.floating[Any]]
SHOWN = 4  # reasons, missing things, and queries at most
AUDIBLE = 0.05  # log-odds below which a family has not moved anything
LIKELY = 0.2  # from which chance on an absent name is told as missing
WORDS = 4  # words of the question that go with a name into a query
_ASKED, _MENTIONS = ABSENT_COLUMNS.index("asked"), ABSENT_COLUMNS.index("mentions")
_BEFORE, _BEHIND = 32, 12  # how much of a date can stand before its year, and behind
_YEAR = re.compile(r"[12]\d{3}")
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,.]*(?![\w])")


def told_of(
    occlusion: Occlusion,
    seen: Looked,
    table: Floats,
    p_absent: Sequence[Floats],
    moved: Floats,
    actions: Sequence[Action],
) -> list[dict[str, Any]]:
    """Reasons, missing and next queries of each question: what a verdict says in words."""
    told = []
    for at, (action, row) in enumerate(zip(actions, table.tolist(), strict=True)):
        lost = missing(seen.taken[at].evidence, seen.readings[at], p_absent[at])
        queries = next_queries(seen.asked[at], lost) if lost or action is not Action.ANSWER else ()
        why = reasons(occlusion.families, moved[at], occlusion.named(row), occlusion.usual)
        told.append({"missing": lost, "next_queries": queries, "reasons": why})
    return told


# ------------------------------------------------------------------------------------------------ reasons


class Figures:
    """Numbers by name. A few of a hundred are asked for, so that no dictionary of all is made for each question."""

    __slots__ = ("_column", "_row")

    def __init__(self, column: Mapping[str, int], row: Sequence[float]) -> None:
        self._column, self._row = column, row

    def __getitem__(self, name: str) -> float:
        return self._row[self._column[name]]


class Occlusion:
    """Which columns each family hides, and what is shown in their place; made once for a gate."""

    def __init__(self, features: Sequence[Feature], medians: Sequence[float]) -> None:
        self.families = tuple(family for family in _WORDS if any(one.family == family for one in features))
        hides = [[one.family == family for one in features] for family in (None, *self.families)]  # first nothing is hidden
        self._hides = np.array(hides, dtype=bool).reshape(len(hides), 1, len(features))
        self._medians = np.array(medians, dtype=np.float32)
        self._column = {one.name: at for at, one in enumerate(features)}
        self.usual = self.named(medians)

    def named(self, row: Sequence[float]) -> Figures:
        """A question's features by name."""
        return Figures(self._column, row)

    def effects(self, table: Floats, odds: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        """Each question's log-odds, and how far each family moves them: (questions,) and (questions, families)."""
        shown = np.where(self._hides, self._medians, table).reshape(-1, table.shape[1])
        every = odds(shown).reshape(-1, len(table))
        return every[0], (every[0] - every[1:]).T


def reasons(families: Sequence[str], moved: Floats, seen: Figures, usual: Figures) -> tuple[Reason, ...]:
    """The strongest effects of one question, strongest first; features by name, its own and the medians at fit time."""
    strongest = sorted(zip(families, moved.tolist(), strict=True), key=lambda pair: (-abs(pair[1]), pair[0]))[:SHOWN]
    return tuple(
        Reason(family, round(effect, 4), _WORDS[family](seen, usual)) for family, effect in strongest if abs(effect) >= AUDIBLE
    )


def _about_path(seen: Figures, usual: Figures) -> str:
    need = max(seen["held"] - seen["short"], 0.0)
    return f"about {seen['held']:.1f} of the hits look like evidence, and the question seems to need {need:.1f}"


def _about_coverage(seen: Figures, usual: Figures) -> str:
    said = f"the hits hold {seen['cov_any']:.0%} of what the question says (usually {usual['cov_any']:.0%})"
    if seen["names_no_text"] > 0:
        return f"{said}; {seen['names_no_text']:.0%} of its names stand in none of them"
    if seen["numbers_missing"] > 0:
        return f"{said}, but not all of its numbers"
    return f"{said}; it names the titles of {seen['named']:.0f} of them" if seen["named"] > 0 else said


def _about_links(seen: Figures, usual: Figures) -> str:
    if seen["dangling"] > 0:
        return "a hit that the question is about leads on to something that no hit is about"
    if seen["bridged"] > 0:
        return f"the hits that the question names lead on to {seen['bridged']:.0f} of the others"
    return f"the hits mention one another's titles {seen['links']:.0f} times (usually {usual['links']:.0f})"


def _about_absent(seen: Figures, usual: Figures) -> str:
    if seen["absent"] < LIKELY:
        return "no name that the hits mention looks like a missing document"
    return f"about {seen['absent']:.1f} of the names that no hit is about seem to be missing documents"


def _about_scores(seen: Figures, usual: Figures) -> str:
    if seen["s_mean"] < 0:
        return "the hits carry no scores that can be compared"
    return f"the mean score is {seen['s_mean']:.0%} of the first (usually {max(usual['s_mean'], 0.0):.0%})"


def _about_hops(seen: Figures, usual: Figures) -> str:
    need = max(seen["guess_hops"], 1.0)  # a straight line may fall below what makes sense
    return f"questions of this form need about {need:.1f} documents (usually {usual['guess_hops']:.1f})"


def _about_query(seen: Figures, usual: Figures) -> str:
    return f"{seen['content']:.0f} words to find (usually {usual['content']:.0f}) among {seen['k']:.0f} hits"


def _about_overlap(seen: Figures, usual: Figures) -> str:
    return f"{seen['distinct_titles']:.0%} of the hits have a title of their own"


def _about_agreement(seen: Figures, usual: Figures) -> str:
    if seen["shared"] < 0:
        return "no other run was given to compare with"
    return f"{seen['shared']:.0%} of the hits stand in the other runs too (usually {max(usual['shared'], 0.0):.0%})"


def _about_similarity(seen: Figures, usual: Figures) -> str:
    said = f"in meaning the nearest hit is like the question by {seen['cosine1']:.2f} (usually {usual['cosine1']:.2f})"
    if seen["clauses"] > 1:
        return (
            f"{said}, and the part of it that they fit least {seen['clause_least']:.2f} (usually {usual['clause_least']:.2f})"
        )
    return said


def _about_relevance(seen: Figures, usual: Figures) -> str:
    return (
        f"the cross-encoder gives the best hit {seen['relevance1']:.1f} and the second {seen['relevance2']:.1f} "
        f"(usually {usual['relevance1']:.1f} and {usual['relevance2']:.1f})"
    )


_WORDS: dict[str, Callable[[Figures, Figures], str]] = {
    "path": _about_path,
    "coverage": _about_coverage,
    "links": _about_links,
    "absent": _about_absent,
    "scores": _about_scores,
    "hops": _about_hops,
    "query": _about_query,
    "overlap": _about_overlap,
    "agreement": _about_agreement,
    "own": lambda seen, usual: "what the labels it was adapted to teach by themselves",
    "similarity": _about_similarity,
    "relevance": _about_relevance,
    "more": lambda seen, usual: "how near the hits are to the question in meaning",
}


# ------------------------------------------------------------------------------------------------ missing, next queries


def missing(evidence: Evidence, reading: Reading, p_absent: Floats) -> tuple[str, ...]:
    """What no hit covers: names of the question, then its dates and numbers, then the likeliest absent names."""
    asked, mentions, chances = reading.absent[:, _ASKED].tolist(), reading.absent[:, _MENTIONS].tolist(), p_absent.tolist()
    dates = _dates(evidence.question.text)
    dated = " ".join(evidence.question.text[one.start : one.end] for one in dates)  # "September 19" is no name but half a date
    unmentioned = [
        name
        for at, run in enumerate(reading.absent_runs)
        if asked[at] and not mentions[at] and (name := written(run)) not in dated
    ]
    labels = _labels(evidence.documents.values()) if unmentioned else ""
    found = dict.fromkeys(name for name in unmentioned if f" {title_key(name)} " not in labels)
    found.update(dict.fromkeys(_missing_figures(evidence, dates)))
    likely = [at for at, chance in enumerate(chances) if chance >= LIKELY]
    for at in sorted(likely, key=chances.__getitem__, reverse=True)[:SHOWN]:
        if (name := written(reading.absent_runs[at])) not in dated:
            found.setdefault(name)
    return tuple(one for one in found if one)[:SHOWN]


def _dates(question: str) -> list[DateMention]:
    """The dates of a question. They are looked for around its years: the search is slow."""
    years = [year.start() for year in _YEAR.finditer(question)]
    if not years:
        return []
    start = max(years[0] - _BEFORE, 0)
    found = date_mentions(question[start : years[-1] + _BEHIND])
    return [replace(one, start=one.start + start, end=one.end + start) for one in found]


def _labels(documents: Iterable[Document]) -> str:
    """Sources, categories and entities of the hits, as title keys: a question may name a newspaper that no text mentions."""
    named = [label for one in documents for label in (one.source, one.category, *one.entities) if label]
    return " " + " | ".join(title_key(label) for label in named) + " "


def _missing_figures(evidence: Evidence, dates: Sequence[DateMention]) -> list[str]:
    question, documents = evidence.question.text, evidence.documents.values()
    lost = [words for one in dates if not _dated(words := question[one.start : one.end], one, documents)]
    for match in _NUMBER.finditer(question):
        number = match.group().rstrip(".,")
        inside = any(one.start <= match.start() < one.end for one in dates)
        if not inside and not any(number in one.text or number in one.title for one in documents):
            lost.append(number)
    return lost


def _dated(words: str, asked: DateMention, documents: Iterable[Document]) -> bool:
    """Whether a date stands in a document in these words, or is the day of one."""
    return any(
        words in one.text
        or words in one.title
        or (one.published_at is not None and asked.first <= one.published_at <= asked.last)
        for one in documents
    )


def next_queries(asked: Asked, lost: Sequence[str]) -> tuple[str, ...]:
    """Short searches for what is missing: each thing with the words of the question that relate it to the rest.

    When nothing in particular is missing, each name of the question is looked for with those words.
    """
    told = b" ".join(asked.names)
    relating = [word.decode("utf-8", "ignore") for word in asked.content if b" " + word + b" " not in told]
    subjects = list(lost) or list(asked.written.values())
    if not subjects:
        return (" ".join(relating[: 2 * WORDS]),) if relating else ()
    queries = dict.fromkeys(_query(subject, relating) for subject in subjects)
    return tuple(query for query in queries if query)[: SHOWN - 1]


def _query(subject: str, relating: Sequence[str]) -> str:
    own = subject.casefold()
    return " ".join([subject, *[word for word in relating if word not in own][:WORDS]])
