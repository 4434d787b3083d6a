"""Explain a verdict in words: the reasons, what is missing, and what to search for next.

Reasons add up. The baseline (START) is a typical question with typical hits: every feature at its
median of fit time. The families of features are then revealed to the model one after another, and
each is credited with the change in log-odds. Baseline and families sum to the log-odds of the
verdict. All rows of all questions go through the model in one batch.

Missing items come from the texts where possible: names, numbers and dates of the question that no
hit covers. After these come absent names that the model considers missing evidence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.gate.extraction import Extraction, FeatureBatch
from suffice.gate.features import ABSENT_COLUMNS, Feature
from suffice.gate.hits import MAX_PASSAGE_CHARS
from suffice.gate.model import Description
from suffice.gate.question import COMPARISON_WORDS, ParsedQuestion, display_name, search_key
from suffice.gate.reader import Reading
from suffice.lexicon import AUXILIARIES, FUNCTION_WORDS, MONTHS, WEEKDAYS
from suffice.numeric import sigmoid
from suffice.text import DateMention, date_mentions, title_key
from suffice.types import Action, Document, Evidence, Quote, Reason

Floats = npt.NDArray[np.floating[Any]]
MAX_SHOWN = 4  # reasons and missing items; queries: one fewer
MIN_EFFECT = 0.05  # in log-odds; a family with a smaller effect is not a reason
MIN_SHARE = 0.1  # of the strongest effect; a family below it is not a reason
MIN_CHANCE = 0.2  # an absent name at least this likely is reported as missing
# The same next to ANSWER. In 582 lists of six data sets, hits with a less likely name, or with one
# that only the question has, were complete as often as others: naming it would contradict ANSWER.
MIN_CHANCE_ANSWERED = 0.5
QUERY_WORDS = 4  # words of the question added to a name in a query
START, SEARCH = "start", "search"  # reasons that are not feature families
_ASKED, _MENTIONS = ABSENT_COLUMNS.index("asked"), ABSENT_COLUMNS.index("mentions")
_BEFORE, _BEHIND = 32, 12  # how many characters of a date can precede and follow its year
_YEAR = re.compile(r"[12]\d{3}")
# A year, a version or a long code. Not an amount: nobody searches for "9 days" or "840 euro".
_NUMBER = re.compile(
    r"(?<![\w.,:/])(?:1[5-9]\d\d|20\d\d|\d+\.\d[\d.]*|\d{5,})(?![\w%,:/]|\.\d)"
    r"(?! ?(?:[a-zA-Z]?[bglmtBWV]|kWh|euros?|dollars?|percent)\b)"
)
# A month or weekday, also abbreviated, and what can follow one in a date.
_CALENDAR = "|".join(f"{one[:3]}(?:t|{one[3:]})?s?" for one in (*MONTHS, *WEEKDAYS))
_DATE = re.compile(rf"\b(?:{_CALENDAR})(?: (?:of|the|\d+(?:st|nd|rd|th)?|{_CALENDAR}))*$")
# Capitalized words that open a sentence or a request but are not names.
_OPENERS = FUNCTION_WORDS | set(
    "according compare describe explain find give help identify list please show state summarise "
    "summarize tell".split()
)
_FILLERS = FUNCTION_WORDS | {"ll", "re", "ve"}  # includes what is left of contractions
_MARKS = "«»„“”‘’‹›¿¡…–—"  # the name rules take these for letters
_SUFFIX = re.compile(r"['’](?:d|ll|m|re|s|t|ve)$")


def explain_verdicts(
    occlusion: Occlusion,
    batch: FeatureBatch,
    description: Description,
    effects: Floats,
    actions: Sequence[Action],
    searches: Sequence[str | None],
) -> list[dict[str, Any]]:
    """Reasons, missing items and next queries of each question, as fields of a verdict.

    `searches` says why an action is not the usual one at this probability.
    """
    explanations = []
    for at, (action, row) in enumerate(zip(actions, description.table.tolist(), strict=True)):
        evidence, extraction = batch.hits[at].evidence, batch.extractions[at]
        answers = action is Action.ANSWER
        missing = find_missing(evidence, extraction, description.p_absent[at], answers=answers)
        wanted = missing or not answers
        queries = suggest_queries(batch.questions[at], missing) if wanted else ()
        reasons = occlusion.rank_reasons(effects[at], occlusion.view(row), action)
        if search := searches[at]:
            reasons = (*reasons, Reason(SEARCH, 0.0, search))
        explanations.append(
            {
                "missing": missing,
                "next_queries": queries,
                "reasons": reasons,
                "quotes": _quotes(evidence, batch.readings[at]) if batch.readings else (),
            }
        )
    return explanations


def _quotes(evidence: Evidence, reading: Reading) -> tuple[Quote, ...]:
    """Quotes from the hits that the reader considers needed, most needed first."""
    pairs = zip(evidence.hits, sigmoid(reading.needed).tolist(), reading.quotes, strict=True)
    found = [Quote(hit.doc_id, round(p, 4), text) for hit, p, text in pairs if p >= 0.5 and text]
    return tuple(sorted(found, key=lambda one: -one.p_needed)[:MAX_SHOWN])


class FeatureView:
    """A question's features by name, without building a dictionary of all of them per question."""

    __slots__ = ("_column", "_row")

    def __init__(self, column: Mapping[str, int], row: Sequence[float]) -> None:
        self._column, self._row = column, row

    def __getitem__(self, name: str) -> float:
        if name == "need":  # of documents: the same number in every reason
            # Without a reader there is only a guess from the question, which is hardly ever 1.
            return self["read_count"] if "read_count" in self._column else math.nan
        return self._row[self._column[name]]

    @property
    def and_needed(self) -> str:
        """A clause about the number of needed documents, if it is known."""
        need = _count(self["need"])
        return f", and the question seems to need about {need} documents" if need else ""


class Occlusion:
    """Which columns are revealed family by family, with medians until then; built once per gate."""

    def __init__(self, features: Sequence[Feature], medians: Sequence[float]) -> None:
        present = {one.family for one in features}
        self.families = tuple(family for family in _FAMILIES if family in present)
        place = {family: at for at, family in enumerate(self.families)}
        at = np.array([place.get(one.family, -1) for one in features])  # -1: always shown
        # Row n reveals the first n + 1 families.
        self._shows = (at <= np.arange(len(place))[:, None])[:, None]
        self._medians = np.array(medians, dtype=np.float32)
        self._column = {one.name: at for at, one in enumerate(features)}
        self.usual = self.view(medians)

    def view(self, row: Sequence[float]) -> FeatureView:
        return FeatureView(self._column, row)

    def effects(
        self, table: Floats, log_odds: Callable[[Floats], Floats], explain: bool = True
    ) -> tuple[Floats, Floats]:
        """Log-odds (questions,), and their parts (questions, 1 + families), which sum to them.

        The first part is the baseline, then comes what each family adds. Without `explain`, the
        parts are not computed.
        """
        if not explain:
            return log_odds(table), np.zeros((len(table), 0))
        shown = np.where(self._shows, table, self._medians).reshape(-1, table.shape[1])
        every = log_odds(np.concatenate([self._medians[None], shown]))
        start, steps = np.full((1, len(table)), every[0]), every[1:].reshape(-1, len(table))
        moves = np.diff(np.concatenate([start, steps]), axis=0)
        return steps[-1], np.concatenate([start, moves]).T

    def rank_reasons(
        self, effects: Floats, view: FeatureView, action: Action
    ) -> tuple[Reason, ...]:
        """The strongest effects first, the baseline last; at least one reason supports the action.

        Effects that are small next to the strongest are left out: they did not change the verdict.
        """
        start, *ranked = zip((START, *self.families), parts := effects.tolist(), strict=True)
        ranked.sort(key=lambda pair: (-abs(pair[1]), pair[0]))
        least = max(MIN_EFFECT, MIN_SHARE * max(map(abs, parts)))
        shown = [pair for pair in ranked if abs(pair[1]) >= least][: MAX_SHOWN - 1]
        sign = 1 if action is Action.ANSWER else -1
        speaks = [pair for pair in ranked if sign * pair[1] > 0]
        if speaks and all(sign * effect <= 0 for _, effect in (*shown, start)):
            shown[MAX_SHOWN - 2 :] = speaks[:1]
        return tuple(
            Reason(family, round(effect, 4), self._words(family, effect, view))
            for family, effect in (*shown, start)
        )

    def _words(self, family: str, effect: float, view: FeatureView) -> str:
        """The first fact of the family that is unusual in the direction of its effect."""
        if family == START:
            return f"a typical question with typical hits starts at {sigmoid(effect):.2f}"
        subject, facts = _FAMILIES[family]
        for one in facts:
            value, usual = view[one.column], self.usual[one.column]
            shown, usually = one.form(value), one.form(usual)
            if shown and shown != usually and one.sign * (value - usual) * effect >= 0:
                compared = f"{shown} (usually {usually})" if usually else shown
                return _singular(one.words.format(compared, view))
        return subject


def _singular(words: str) -> str:
    return re.sub(r"\b1( \(usually \d+\))? (document|time)s\b", r"1\1 \2", words)


class Fact(NamedTuple):
    """A sentence about a column: "{0}" is its value and the usual one, "{1}" is the view."""

    sign: int  # 1: more of it speaks for complete evidence, -1: against, 0: neither
    column: str
    form: Callable[[float], str]  # formats the value; "" if there is nothing to say
    words: str


def _share(value: float) -> str:
    return f"{min(value, 1.0):.0%}" if value >= 0 else ""


def _count(value: float) -> str:
    return f"{value:.0f}" if value >= 0 else ""


def _chance(odds: float) -> str:
    return f"{sigmoid(odds):.2f}"


def _none(at_most: float) -> Callable[[float], str]:
    return lambda value: "no" if value <= at_most else ""


_ONE, _TWO = "{:.1f}".format, "{:.2f}".format
# The subject of each family, and its facts, best first. The subject is used if no fact fits. The
# query comes first: without hits nothing else counts.
_FAMILIES: dict[str, tuple[str, tuple[Fact, ...]]] = {
    "query": ("the form of the question", (
        Fact(0, "k", _none(0), "there are {0} hits"),
        Fact(0, "k", _count, "the number of hits is {0}"),
        Fact(0, "content", _count, "the number of words to find is {0}"),
    )),
    "path": ("how likely each of the hits is evidence", (
        Fact(1, "held", _ONE, "about {0} of the hits look like evidence{1.and_needed}"),
        Fact(-1, "need", _count, "the question seems to need about {0} documents, "
             "and about {1[held]:.1f} of the hits look like evidence"),
        Fact(1, "pair", _TWO, "the two likeliest hits are both evidence with a chance of {0}"),
    )),
    "coverage": ("how the words of the question are spread over the hits", (
        Fact(-1, "names_no_text", _share, "{0} of its capitalized terms stand in no hit"),
        Fact(-1, "numbers_missing", _count, "numbers of the question that stand in no hit: {0}"),
        Fact(1, "cov_any", _share, "the hits hold {0} of what the question says"),
        Fact(1, "named", _count, "the question names the titles of {0} of the hits"),
        Fact(1, "greedy1", _share, "one hit alone holds {0} of what the question says"),
    )),
    "links": ("how the hits mention one another", (
        Fact(-1, "dangling", _count, "relevant hits that lead to a name that no hit is about: {0}"),
        Fact(1, "bridged", _count, "the hits that the question names lead on to {0} of the others"),
        Fact(1, "links", _count, "the hits mention one another's titles {0} times"),
        Fact(1, "cov_linked", _share, "the most relevant hits hold {0} of what the question says"),
    )),
    "absent": ("which names the hits mention and are not about", (
        Fact(-1, "absent", _none(MIN_CHANCE), "{0} name in the hits looks like a missing document"),
        Fact(-1, "absent", _ONE, "about {0} of the names that no hit is about "
             "seem to be missing documents"),
        Fact(-1, "absent1", _TWO, "a name that no hit is about is missing with a chance of {0}"),
    )),
    "scores": ("how the scores of the hits fall", (
        Fact(0, "s_mean", _none(-1), "the hits carry {0} scores that can be compared"),
        Fact(0, "s_mean", _share, "the mean score is {0} of the first"),
    )),
    "hops": ("what kind of question it is", (
        Fact(-1, "need", _count, "questions of this form need about {0} documents"),
        Fact(1, "guess_complete", _share, "such questions have complete hits in {0} of cases"),
    )),
    "overlap": ("how many hits share a title", (
        Fact(0, "distinct_titles", _share, "{0} of the hits have a title of their own"),
    )),
    "own": ("what the labels it was adapted to teach by themselves", ()),
    "counting": ("how words, names and links of the question and its hits fit together", (
        Fact(1, "fast_odds", _chance, "counting words, names and links alone, the chance is {0}"),
    )),
    "reading": ("what the hits say when they are read together", (
        Fact(1, "read_complete", _chance, "read together, the hits answer the question with a "
             "chance of {0}"),
        Fact(1, "read_held", _ONE, "when read, {0} of the hits seem to be needed, "
             "and the question seems to need about {1[need]:.0f}"),
        Fact(-1, "read_nothing", _share, "the chance that nothing answers the question is {0}"),
    )),
}  # fmt: skip


def find_missing(
    evidence: Evidence, extraction: Extraction, p_absent: Floats, *, answers: bool = False
) -> tuple[str, ...]:
    """Names of the question that no hit covers, its dates and numbers, and likely absent names.

    Next to ANSWER, only its dates and numbers, and names that are more likely missing than not.
    """
    question_names, mentions = (extraction.absent[:, at].tolist() for at in (_ASKED, _MENTIONS))
    question, chances = evidence.question.text, p_absent.tolist()
    dates = _question_dates(question)
    dated = " ".join(question[one.start : one.end] for one in dates)  # "September 19" is not a name
    names = list(map(display_name, extraction.absent_runs))
    all_capitals = _capitals_say_nothing(question)

    def searchable(at: int) -> str:
        if names[at] in dated or (question_names[at] and all_capitals):
            return ""
        texts = "\n".join(one.text[:MAX_PASSAGE_CHARS] for one in evidence.documents.values())
        name = _searchable(names[at], question if question_names[at] else texts)
        held = name != names[at] and name in texts  # the "Q3" in "Compare the Q3"
        masked, where = (re.sub(r"\d+", "0", one) for one in (name, question))
        sibling = not question_names[at] and masked != name and masked in where  # L70 next to L90
        return "" if held or sibling else name

    unmentioned = [
        searchable(at)
        for at in range(len(names))
        if question_names[at] and not mentions[at] and not answers
    ]
    labels = _metadata_labels(evidence.documents.values()) if unmentioned else ""
    found = [name for name in unmentioned if f" {title_key(name)} " not in labels]
    found += _missing_figures(evidence, dates)
    least = MIN_CHANCE_ANSWERED if answers else MIN_CHANCE
    likely = [at for at, chance in enumerate(chances) if chance >= least]
    ranked = sorted(likely, key=chances.__getitem__, reverse=True)
    found = list(dict.fromkeys([*found, *map(searchable, ranked[:MAX_SHOWN])]))
    parts = {one for one in found for name in found if one != name and _contains(name, one)}
    whole = [one for one in found if one and one not in parts]
    return tuple(whole[:MAX_SHOWN])


def _searchable(name: str, text: str) -> str:
    """The name as a search term; "" if it is a date or occurs only at the start of sentences."""
    words, text = name.strip(_MARKS).split(), text.replace("’", "'")
    while words and (words[0].islower() or _names_nothing(words[0])):
        words.pop(0)
    date = _DATE.search(kept := " ".join(words))
    if date and (date.start() == 0 or " " in date.group()):  # not the end of "Theresa May"
        kept = kept[: date.start()].rstrip()
    # Keep the rest of a version: the ".3" in "TLS 1.3". Do not match the "Wh" in "kWh".
    found = re.search(rf"\b{re.escape(kept)}(?:(?<=\d)(?:\.\d+)+)?", text) if kept else None
    if found is None:
        return ""
    kept = found.group()
    return "" if " " not in kept and _only_starts(kept, text) else kept


def _capitals_say_nothing(question: str) -> bool:
    """Whether every word is capitalized, even the small ones: "WHO IS ADA", "Who Is Ada"."""
    words = [word for word in re.findall(r"\w+", question) if word[0].isalpha()]
    small = any(word.lower() in FUNCTION_WORDS for word in words[1:])
    return question.isupper() or (small and not any(word[0].islower() for word in words))


def _contains(text: str, words: str) -> bool:
    return words in text and re.search(rf"\b{re.escape(words)}\b", text) is not None


def _names_nothing(word: str) -> bool:
    bare = _SUFFIX.sub("", word)
    acronym = len(bare) > 1 and bare.isupper()
    return not acronym and bare.casefold() in _OPENERS


def _only_starts(word: str, text: str) -> bool:
    """Whether the word occurs only at the start of sentences, and not as the subject of a verb."""
    for place in re.finditer(rf"\b{re.escape(word)}\b(?:\W+(\w+))?", text):
        before = text[max(place.start() - 8, 0) : place.start()].rstrip(" \"'“‘«„¿¡(*#>•|-")
        if (before and before[-1] not in ".!?:;\n") or place.group(1) in AUXILIARIES:
            return False
    return True


def _question_dates(question: str) -> list[DateMention]:
    """The dates of a question. Searches only around years, because the search is slow."""
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
    """Dates and numbers of the question that are in no document."""
    question, documents = evidence.question.text, evidence.documents.values()

    def is_found(words: str) -> bool:
        return any(words in one.text or words in one.title for one in documents)

    def published(date: DateMention) -> bool:
        days = (one.published_at for one in documents)
        return any(day is not None and date.first <= day <= date.last for day in days)

    written = [(question[one.start : one.end], one) for one in dates]
    lost = [words for words, date in written if not is_found(words) and not published(date)]
    for match in _NUMBER.finditer(question):
        number = match.group().rstrip(".")
        in_date = any(one.start <= match.start() < one.end for one in dates)
        if not in_date and not is_found(number):
            lost.append(number)
    return lost


def suggest_queries(question: ParsedQuestion, missing: Sequence[str]) -> tuple[str, ...]:
    """Short queries: each missing item with the words that relate it to the rest.

    Each adds a word that is not in the question, or asks about one of two names that the question
    joins ("A or B"). The question's words alone would find the same hits again.
    """
    names = b" ".join(question.names)
    content = [word for word in question.content if b" " + word + b" " not in names]
    relating = [word.decode("utf-8", "ignore") for word in content if word not in COMPARISON_WORDS]
    relating = [word for word in relating if word.isalpha() and word not in _FILLERS]
    queries: dict[str, None] = {}
    for subject in missing:
        key, own = search_key(subject), subject.casefold()
        words = [word for word in relating if word not in own][:QUERY_WORDS]
        adds = any(word not in question.flat for word in key.split())
        if adds or (words and _is_joined(key, question)):
            queries[" ".join([subject, *words])] = None
    return tuple(queries)[: MAX_SHOWN - 1]


def _is_joined(key: bytes, question: ParsedQuestion) -> bool:
    """Whether "and" or "or" connects this name to another one in the question."""
    pairs = [pair for one in question.names for pair in ((one, key), (key, one))]
    joins = (b"and", b"or", b"and the", b"or the")
    joined = any(word.join(pair) in question.flat for pair in pairs for word in joins)
    return joined and any(key in one for one in question.names)
