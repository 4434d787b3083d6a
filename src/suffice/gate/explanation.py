"""Why the gate thinks so, what is missing, and what to search for next, in words.

Reasons are by occlusion: a family of features is set to its median at fit time, and the change of
the log-odds is the family's effect. All families of all questions go through the model in one
batch. What is missing is read from the texts where possible: names, numbers and dates of the
question that no hit covers. Then come absent names that the model takes for missing evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.gate.extraction import Extraction, FeatureBatch
from suffice.gate.features import ABSENT_COLUMNS, Feature
from suffice.gate.model import Description
from suffice.gate.question import ParsedQuestion, display_name
from suffice.text import DateMention, date_mentions, title_key
from suffice.types import Action, Document, Evidence, Reason

Floats = npt.NDArray[np.floating[Any]]
MAX_SHOWN = 4  # reasons, missing things, and one more than queries
MIN_EFFECT = 0.05  # log-odds below which a family is not a reason
MIN_CHANCE = 0.2  # from which on an absent name is reported as missing
QUERY_WORDS = 4  # words of the question that go with a name into a query
_ASKED, _MENTIONS = ABSENT_COLUMNS.index("asked"), ABSENT_COLUMNS.index("mentions")
_BEFORE, _BEHIND = 32, 12  # how much of a date can stand before its year, and behind
_YEAR = re.compile(r"[12]\d{3}")
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,.]*(?![\w])")


def explain_verdicts(
    occlusion: Occlusion,
    batch: FeatureBatch,
    description: Description,
    effects: Floats,
    actions: Sequence[Action],
) -> list[dict[str, Any]]:
    """Reasons, missing and next queries of each question, as fields of a verdict."""
    explanations = []
    for at, (action, row) in enumerate(zip(actions, description.table.tolist(), strict=True)):
        evidence, extraction = batch.hits[at].evidence, batch.extractions[at]
        missing = find_missing(evidence, extraction, description.p_absent[at])
        wanted = missing or action is not Action.ANSWER
        queries = suggest_queries(batch.questions[at], missing) if wanted else ()
        view, usual = occlusion.view(row), occlusion.usual
        reasons = rank_reasons(occlusion.families, effects[at], view, usual)
        explanations.append({"missing": missing, "next_queries": queries, "reasons": reasons})
    return explanations


class FeatureView:
    """A question's features by name; no dictionary of all hundred is made for each question."""

    __slots__ = ("_column", "_row")

    def __init__(self, column: Mapping[str, int], row: Sequence[float]) -> None:
        self._column, self._row = column, row

    def __getitem__(self, name: str) -> float:
        return self._row[self._column[name]]


class Occlusion:
    """Which columns each family hides, and the medians shown instead; made once for a gate."""

    def __init__(self, features: Sequence[Feature], medians: Sequence[float]) -> None:
        present = {one.family for one in features}
        self.families = tuple(family for family in _REASON_TEXTS if family in present)
        # First nothing is hidden.
        hides = [[one.family == family for one in features] for family in (None, *self.families)]
        self._hides = np.array(hides, dtype=bool).reshape(len(hides), 1, len(features))
        self._medians = np.array(medians, dtype=np.float32)
        self._column = {one.name: at for at, one in enumerate(features)}
        self.usual = self.view(medians)

    def view(self, row: Sequence[float]) -> FeatureView:
        return FeatureView(self._column, row)

    def effects(
        self, table: Floats, log_odds: Callable[[Floats], Floats], explain: bool = True
    ) -> tuple[Floats, Floats]:
        """Log-odds (questions,), and by how much each family moves them (questions, families).

        Without `explain` no family is occluded.
        """
        if not explain:
            return log_odds(table), np.zeros((len(table), 0))
        shown = np.where(self._hides, self._medians, table).reshape(-1, table.shape[1])
        every = log_odds(shown).reshape(-1, len(table))
        return every[0], (every[0] - every[1:]).T


def rank_reasons(
    families: Sequence[str], effects: Floats, view: FeatureView, usual: FeatureView
) -> tuple[Reason, ...]:
    """The strongest effects of one question first; `usual` are the medians at fit time."""
    pairs = zip(families, effects.tolist(), strict=True)
    ranked = sorted(pairs, key=lambda pair: (-abs(pair[1]), pair[0]))
    return tuple(
        Reason(family, round(effect, 4), _REASON_TEXTS[family](view, usual))
        for family, effect in ranked[:MAX_SHOWN]
        if abs(effect) >= MIN_EFFECT
    )


def _explain_path(view: FeatureView, usual: FeatureView) -> str:
    need = max(view["held"] - view["short"], 0.0)
    reason = f"about {view['held']:.1f} of the hits look like evidence"
    return f"{reason}, and the question seems to need {need:.1f}"


def _explain_coverage(view: FeatureView, usual: FeatureView) -> str:
    covered, usually = f"{view['cov_any']:.0%}", f"{usual['cov_any']:.0%}"
    reason = f"the hits hold {covered} of what the question says (usually {usually})"
    if view["names_no_text"] > 0:
        return f"{reason}; {view['names_no_text']:.0%} of its names stand in none of them"
    if view["numbers_missing"] > 0:
        return f"{reason}, but not all of its numbers"
    if view["named"] > 0:
        return f"{reason}; it names the titles of {view['named']:.0f} of them"
    return reason


def _explain_links(view: FeatureView, usual: FeatureView) -> str:
    if view["dangling"] > 0:
        return "a relevant hit mentions an entity that no hit covers"
    if view["bridged"] > 0:
        return f"the hits that the question names lead on to {view['bridged']:.0f} of the others"
    often, usually = f"{view['links']:.0f}", f"{usual['links']:.0f}"
    return f"the hits mention one another's titles {often} times (usually {usually})"


def _explain_absent(view: FeatureView, usual: FeatureView) -> str:
    if view["absent"] < MIN_CHANCE:
        return "no name that the hits mention looks like a missing document"
    count = f"about {view['absent']:.1f} of the names that no hit is about"
    return f"{count} seem to be missing documents"


def _explain_scores(view: FeatureView, usual: FeatureView) -> str:
    if view["s_mean"] < 0:
        return "the hits carry no scores that can be compared"
    usually = f"{max(usual['s_mean'], 0.0):.0%}"
    return f"the mean score is {view['s_mean']:.0%} of the first (usually {usually})"


def _explain_hops(view: FeatureView, usual: FeatureView) -> str:
    need = max(view["guess_hops"], 1.0)  # a linear model may fall below what makes sense
    usually = f"(usually {usual['guess_hops']:.1f})"
    return f"questions of this form need about {need:.1f} documents {usually}"


def _explain_query(view: FeatureView, usual: FeatureView) -> str:
    words = f"{view['content']:.0f} words to find (usually {usual['content']:.0f})"
    return f"{words} among {view['k']:.0f} hits"


def _explain_overlap(view: FeatureView, usual: FeatureView) -> str:
    return f"{view['distinct_titles']:.0%} of the hits have a title of their own"


def _explain_agreement(view: FeatureView, usual: FeatureView) -> str:
    if view["shared"] < 0:
        return "no other run was given to compare with"
    usually = f"{max(usual['shared'], 0.0):.0%}"
    return f"{view['shared']:.0%} of the hits stand in the other runs too (usually {usually})"


def _explain_similarity(view: FeatureView, usual: FeatureView) -> str:
    nearest = f"{view['cosine1']:.2f} (usually {usual['cosine1']:.2f})"
    reason = f"in meaning the nearest hit is like the question by {nearest}"
    if view["clauses"] > 1:
        least = f"{view['clause_least']:.2f} (usually {usual['clause_least']:.2f})"
        return f"{reason}, and the part of it that they fit least {least}"
    return reason


def _explain_relevance(view: FeatureView, usual: FeatureView) -> str:
    comparison = f"the best hit {view['relevance1']:.1f} and the second {view['relevance2']:.1f}"
    usually = f"{usual['relevance1']:.1f} and {usual['relevance2']:.1f}"
    return f"the cross-encoder gives {comparison} (usually {usually})"


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
    "own": lambda view, usual: "what the labels it was adapted to teach by themselves",
    "similarity": _explain_similarity,
    "relevance": _explain_relevance,
}


def find_missing(evidence: Evidence, extraction: Extraction, p_absent: Floats) -> tuple[str, ...]:
    """Names of the question that no hit covers, its dates and numbers, likely absent names."""
    question_names, mentions = (extraction.absent[:, at].tolist() for at in (_ASKED, _MENTIONS))
    question, chances = evidence.question.text, p_absent.tolist()
    dates = _question_dates(question)
    dated = " ".join(question[one.start : one.end] for one in dates)  # a "September 19" is no name
    names = list(map(display_name, extraction.absent_runs))
    unmentioned = [
        name
        for at, name in enumerate(names)
        if question_names[at] and not mentions[at] and name not in dated
    ]
    labels = _metadata_labels(evidence.documents.values()) if unmentioned else ""
    found = dict.fromkeys(name for name in unmentioned if f" {title_key(name)} " not in labels)
    found.update(dict.fromkeys(_missing_figures(evidence, dates)))
    likely = [at for at, chance in enumerate(chances) if chance >= MIN_CHANCE]
    for at in sorted(likely, key=chances.__getitem__, reverse=True)[:MAX_SHOWN]:
        if names[at] not in dated:
            found.setdefault(names[at])
    return tuple(one for one in found if one)[:MAX_SHOWN]


def _question_dates(question: str) -> list[DateMention]:
    """The dates of a question; only its part around years is searched, since that is slow."""
    years = [year.start() for year in _YEAR.finditer(question)]
    if not years:
        return []
    start = max(years[0] - _BEFORE, 0)
    found = date_mentions(question[start : years[-1] + _BEHIND])
    return [replace(one, start=one.start + start, end=one.end + start) for one in found]


def _metadata_labels(documents: Iterable[Document]) -> str:
    """Sources, categories and entities: a question may name a newspaper that no text mentions."""
    labels = (one for doc in documents for one in (doc.source, doc.category, *doc.entities))
    return " " + " | ".join(title_key(label) for label in labels if label) + " "


def _missing_figures(evidence: Evidence, dates: Sequence[DateMention]) -> list[str]:
    """Dates and numbers of the question that stand in no document."""
    question, documents = evidence.question.text, evidence.documents.values()

    def is_found(words: str) -> bool:
        return any(words in one.text or words in one.title for one in documents)

    def published(date: DateMention) -> bool:
        days = (one.published_at for one in documents)
        return any(day is not None and date.first <= day <= date.last for day in days)

    written = [(question[one.start : one.end], one) for one in dates]
    lost = [words for words, date in written if not is_found(words) and not published(date)]
    for match in _NUMBER.finditer(question):
        number = match.group().rstrip(".,")
        in_date = any(one.start <= match.start() < one.end for one in dates)
        if not in_date and not is_found(number):
            lost.append(number)
    return lost


def suggest_queries(question: ParsedQuestion, missing: Sequence[str]) -> tuple[str, ...]:
    """Short searches: each missing thing with the words that relate it to the rest.

    When nothing in particular is missing, each name of the question with those words.
    """
    names = b" ".join(question.names)
    content = [word for word in question.content if b" " + word + b" " not in names]
    relating = [word.decode("utf-8", "ignore") for word in content]
    subjects = list(missing) or list(question.display_names.values())
    if not subjects:
        return (" ".join(relating[: 2 * QUERY_WORDS]),) if relating else ()
    queries: dict[str, None] = {}
    for subject in subjects:
        own = subject.casefold()
        words = [word for word in relating if word not in own][:QUERY_WORDS]
        queries[" ".join([subject, *words])] = None
    return tuple(query for query in queries if query)[: MAX_SHOWN - 1]
