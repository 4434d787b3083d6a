"""What a guard in shadow mode would have done: figures, examples and label files from a log.

summary = summarize_log(read_verdict_log(path))    plain values, for a terminal and for JSON
shadow_page(summary, rows, command=...)            an HTML page with plots
label_rows(rows, 50)                               questions worth a label, to fill in
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from suffice.errors import InputError
from suffice.evaluation.report import Bars, Cell, Line, Lines, Page, Plot, Section, Series, Table
from suffice.evaluation.significance import Interval
from suffice.evaluation.verdict_log import JudgedTotal, LogContents, LoggedVerdict, Outcome
from suffice.gate.drift import MIN_QUESTIONS, share_changed
from suffice.storage import write_atomically
from suffice.text import jaccard, tokens
from suffice.types import LOW_FAMILIARITY, Action

__all__ = ["ShadowSummary", "label_rows", "shadow_page", "summarize_log", "write_labels"]

BINS = 10
MAX_PERIODS = 12
EXAMPLES = 5  # per action: the most confident and the most doubtful
SPREAD_EVERY = 5  # every fifth label is chosen by p alone, to also see confident mistakes
LABEL_POOL = 1000  # most uncertain questions to compare with one another
MAX_SHOWN_HITS = 10

Row = LoggedVerdict
# The doubt of a verdict: how close it is to another action, or for EXPAND how wide its interval is.
_DOUBT: dict[Action, Callable[[Row], float]] = {
    Action.ANSWER: lambda row: 1 - row.p_complete,
    Action.EXPAND: lambda row: row.high - row.low,
    Action.ABSTAIN: lambda row: row.p_complete,
}


@dataclass(frozen=True)
class Period:
    """Consecutive verdicts and their figures."""

    since: str
    questions: int
    actions: Mapping[str, float]  # shares
    mean_p: float
    low_familiarity: float  # share


@dataclass(frozen=True)
class ShadowSummary:
    """A log in figures."""

    questions: int
    distinct: int
    since: str
    until: str
    actions: Mapping[str, int]
    outcomes: Mapping[str, int]
    acted: int  # how often the guard acted on it
    low_familiarity: int
    passed_unfamiliar: int  # passed only because the text is unfamiliar to the gate
    histogram: tuple[Mapping[str, Any], ...]  # of p_complete: from, to, questions, held back
    periods: tuple[Period, ...]  # empty for a short log
    drift: tuple[str, ...]  # changes from the first half to the second, in sentences
    gates: Mapping[str, int]
    by: Mapping[str, int]
    missing: Mapping[str, int]  # the names most often missing
    with_texts: int
    judged: JudgedTotal | None = None  # None: no judge was asked
    unreadable: int = 0
    first_unreadable: str = ""
    cut_off: bool = False
    examples: Mapping[str, Mapping[str, Sequence[Row]]] | None = None

    @property
    def held_back(self) -> int:
        return self.outcomes[Outcome.HOLD_BACK]

    def sentences(self) -> list[str]:
        """The results in plain words."""
        many = f"{self.questions:,} verdicts" if self.questions > 1 else "1 verdict"
        lines = [
            f"{many} on {self.distinct:,} different questions, {self.since} to {self.until}: "
            + ", ".join(f"{name} {_percent(n, self.questions)}" for name, n in self.actions.items())
            + "."
        ]
        verb = {0: "would have been", self.questions: "were"}.get(self.acted, "were or would be")
        lines.append(
            f"{self.held_back:,} ({_percent(self.held_back, self.questions)}) {verb} held back."
        )
        if searched := self.outcomes[Outcome.SEARCH]:
            lines.append(f"For {searched:,} the guard would first search for what is missing.")
        if self.low_familiarity:
            share = _percent(self.low_familiarity, self.questions)
            lines.append(
                f"{self.low_familiarity:,} ({share}) are of low familiarity: the gate does not "
                f"know such texts. {self.passed_unfamiliar:,} of them pass only for that reason."
            )
        if self.judged is not None and self.judged.asked:
            lines.append(f"The judge {self.judged.sentence(self.questions)}.")
        if len(self.gates) > 1:
            each = ", ".join(f"{name} {n:,}" for name, n in self.gates.items())
            lines.append(f"The log has verdicts of several gates: {each}.")
        lines += self.drift
        return lines + self.notes()

    def notes(self) -> list[str]:
        """What could not be read from the log."""
        lines = []
        if self.cut_off:
            lines.append("The last line is half-written and was left out.")
        if self.unreadable:
            many = f"{self.unreadable:,} lines" if self.unreadable > 1 else "1 line"
            lines.append(f"{many} could not be read; the first: {self.first_unreadable}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """The summary as JSON values; examples without texts."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        examples = {
            action: {kind: [_example(row) for row in rows] for kind, rows in kinds.items()}
            for action, kinds in (self.examples or {}).items()
        }
        periods = [
            {name: getattr(one, name) for name in one.__dataclass_fields__} for one in self.periods
        ]
        judged = None if self.judged is None else asdict(self.judged)
        more = {"held_back": self.held_back, "periods": periods, "examples": examples}
        more["judged"] = judged
        return {**fields, **more, "sentences": self.sentences()}


def summarize_log(log: LogContents) -> ShadowSummary:
    """The figures of a log that has at least one row."""
    rows = log.rows
    actions, outcomes = Counter(row.action for row in rows), Counter(row.outcome for row in rows)
    unknown = [row for row in rows if row.familiarity < LOW_FAMILIARITY]
    passed = [row for row in unknown if row.action is not Action.ANSWER and _passes(row)]
    counted = Counter(name for row in rows for name in set(row.missing))
    periods = _periods(rows)
    return ShadowSummary(
        questions=len(rows),
        distinct=len({row.question for row in rows}),
        since=_short_time(rows[0].time),
        until=_short_time(rows[-1].time),
        actions={str(name): actions[name] for name in Action},
        outcomes={str(name): outcomes[name] for name in Outcome},
        acted=sum(row.acted for row in rows),
        low_familiarity=len(unknown),
        passed_unfamiliar=len(passed),
        histogram=_histogram(rows),
        periods=periods,
        drift=_drift(rows) if periods else (),
        gates=dict(Counter(row.gate for row in rows).most_common()),
        by=dict(Counter(row.by for row in rows).most_common()),
        missing=dict(counted.most_common(10)),
        with_texts=sum(row.has_texts for row in rows),
        judged=_judged(rows),
        unreadable=log.unreadable,
        first_unreadable=log.first_unreadable,
        cut_off=log.cut_off,
        examples=_examples(rows),
    )


def _judged(rows: Sequence[Row]) -> JudgedTotal | None:
    total = JudgedTotal()
    for row in rows:
        total.add(None if row.judged is None else asdict(row.judged), str(row.action))
    return total if total.asked else None


def _passes(row: Row) -> bool:
    return row.outcome is Outcome.PASS


def _percent(part: int, whole: int) -> str:
    return f"{part / max(whole, 1):.0%}"


def _short_time(time: str) -> str:
    return time[:16].replace("T", " ")


def _histogram(rows: Sequence[Row]) -> tuple[Mapping[str, Any], ...]:
    places = Counter(min(int(row.p_complete * BINS), BINS - 1) for row in rows)
    stopped = (row for row in rows if not _passes(row))
    held = Counter(min(int(row.p_complete * BINS), BINS - 1) for row in stopped)
    return tuple(
        {"from": at / BINS, "to": (at + 1) / BINS, "questions": places[at], "not_passed": held[at]}
        for at in range(BINS)
    )


def _periods(rows: Sequence[Row]) -> tuple[Period, ...]:
    """Up to a dozen periods of equal length; none if they would be too short to compare."""
    count = min(len(rows) // MIN_QUESTIONS, MAX_PERIODS)
    if count < 2:
        return ()
    bounds = [len(rows) * at // count for at in range(count + 1)]
    return tuple(_period(rows[start:end]) for start, end in pairwise(bounds))


def _period(rows: Sequence[Row]) -> Period:
    size, actions = len(rows), Counter(row.action for row in rows)
    return Period(
        _short_time(rows[0].time),
        size,
        {str(action): actions[action] / size for action in Action},
        sum(row.p_complete for row in rows) / size,
        sum(row.familiarity < LOW_FAMILIARITY for row in rows) / size,
    )


def _drift(rows: Sequence[Row]) -> tuple[str, ...]:
    """Changes from the first half to the second that are larger than chance."""
    first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    then, now = _period(first), _period(second)
    shares = {name: (then.actions[name], now.actions[name]) for name in then.actions}
    shares["low familiarity"] = (then.low_familiarity, now.low_familiarity)
    found = [
        f"{name}: {before:.0%} in the first half, {after:.0%} in the second"
        for name, (before, after) in shares.items()
        if share_changed(before, after, len(first), len(second))
    ]
    if not found:
        return ("The two halves of the log do not differ by more than chance.",)
    return (f"The questions or hits have changed over time: {'; '.join(found)}.",)


# ------------------------------------------------------------------------------------ examples


def _examples(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """The most confident and the most doubtful rows of each action, each question once."""
    latest = {row.question: row for row in rows}.values()
    found: dict[str, dict[str, list[Row]]] = {}
    for action in Action:
        ranked = sorted((row for row in latest if row.action is action), key=_DOUBT[action])
        doubtful = ranked[::-1][: min(EXAMPLES, len(ranked) // 2)]
        found[str(action)] = {
            "most_confident": ranked[: min(EXAMPLES, len(ranked) - len(doubtful))],
            "most_doubtful": doubtful,
        }
    return found


def _example(row: Row) -> dict[str, Any]:
    return {
        "time": row.time,
        "question": row.question,
        "p_complete": row.p_complete,
        "low": row.low,
        "high": row.high,
        "familiarity": row.familiarity,
        "missing": list(row.missing),
        "outcome": str(row.outcome),
        "hits": [hit.id for hit in row.hits],
    }


# ------------------------------------------------------------------------------------ labels


def label_rows(rows: Sequence[Row], count: int) -> list[Row]:
    """The questions whose labels are most informative: uncertain, and unlike one another.

    Rows with texts come first: without texts, nobody can tell whether the hits are enough. Every
    fifth question is chosen evenly over p instead.
    """
    latest = list({row.question: row for row in rows}.values())
    with_texts = [row for row in latest if row.has_texts]
    pool = with_texts or latest
    uncertain = sorted(pool, key=_uncertainty, reverse=True)[:LABEL_POOL]
    words = [set(tokens(row.question)) for row in uncertain]
    likeness = [0.0] * len(uncertain)
    by_p = sorted(pool, key=lambda row: row.p_complete)
    spread = count // SPREAD_EVERY
    even = [by_p[(2 * at + 1) * len(by_p) // (2 * spread)] for at in range(spread)]
    chosen: dict[str, Row] = {}
    while len(chosen) < min(count, len(pool)):
        if even and len(chosen) % SPREAD_EVERY == SPREAD_EVERY - 1:
            row = even.pop(len(even) // 2)
            chosen.setdefault(row.question, row)
            continue
        left = [at for at, row in enumerate(uncertain) if row.question not in chosen]
        if not left:
            rest = [row for row in by_p if row.question not in chosen]
            chosen |= {row.question: row for row in rest[: count - len(chosen)]}
            break
        best = max(left, key=lambda at: _uncertainty(uncertain[at]) * (1 - likeness[at]))
        chosen[uncertain[best].question] = uncertain[best]
        for at in left:
            likeness[at] = max(likeness[at], jaccard(words[at], words[best]))
    return list(chosen.values())


def _uncertainty(row: Row) -> float:
    """From 0 to 1: how close p is to one half, and how wide its interval is."""
    return 0.5 * (1 - abs(2 * row.p_complete - 1)) + 0.5 * (row.high - row.low)


def write_labels(rows: Sequence[Row], path: Path) -> Path:
    """Write questions with `"complete": null` to fill in; never overwrites a file."""
    path = Path(path)
    if path.exists():
        hint = "choose another name: somebody may have filled in labels"
        raise InputError(f"{path} exists", hint=hint)

    def line(row: Row) -> str:
        hits = []
        for hit in row.hits:
            texts = {} if hit.text is None else {"title": hit.title or "", "text": hit.text}
            hits.append({"id": hit.id, **texts, "score": hit.score})
        record = {"question": row.question, "hits": hits, "complete": None}
        text = json.dumps(record, ensure_ascii=False)
        return text.encode("utf-8", "replace").decode("utf-8") + "\n"

    write_atomically(path, map(line, rows))
    return path


# ------------------------------------------------------------------------------------ the page


def shadow_page(summary: ShadowSummary, name: str, steps: Sequence[str], *, command: str) -> Page:
    """The report as a page; `steps` are the next commands."""
    counts = [
        ("answer", Action.ANSWER, "documents pass"),
        ("expand", Action.EXPAND, "search for what is missing"),
        ("abstain", Action.ABSTAIN, "say what is missing"),
    ]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (action, says, summary.actions[kind], summary.actions[kind] / summary.questions)
        for action, kind, says in counts
    )
    overview = Table("Actions", ("action", "meaning", "verdicts", "share"), rows)
    missing = Table("Most often missing", ("name", "verdicts"), tuple(summary.missing.items()))
    shown: list[Table | Plot] = [overview, _p_figure(summary)]
    sections = [Section("What it says", tuple(shown))]
    if summary.periods:
        sections.append(Section("Over time", (_time_figure(summary),), " ".join(summary.drift)))
    sections.append(Section("Examples", tuple(_example_tables(summary))))
    if summary.missing:
        sections.append(Section("What is missing", (missing,)))
    about = [
        ("log", name),
        ("written by", ", ".join(summary.by)),
        ("gates", ", ".join(summary.gates)),
    ]
    return Page(
        title="Shadow mode: what the gate would have done",
        about=f"{summary.questions:,} verdicts, {summary.since} to {summary.until}",
        summary=summary.sentences(),
        sections=tuple(sections),
        settings=about,
        next_steps=[(step, "") for step in steps],
        command=command,
    )


def _p_figure(summary: ShadowSummary) -> Plot:
    whole = summary.questions

    def shares(bar: Mapping[str, Any]) -> tuple[Interval, ...]:
        stopped = bar["not_passed"]
        parts = (bar["questions"] - stopped, stopped)
        return tuple(Interval(part / whole, None, None) for part in parts)

    bars = tuple(
        Series(f"{bar['from']:.1f} to {bar['to']:.1f}", shares(bar)) for bar in summary.histogram
    )
    says = "Where the probabilities lie, and how many of them do not pass."
    groups = ("pass", "do not pass")
    return Bars("p_complete of all verdicts", "share of verdicts", bars, groups, says=says)


def _time_figure(summary: ShadowSummary) -> Plot:
    periods = summary.periods
    across = tuple(float(at) for at in range(1, len(periods) + 1))

    def line(name: str, value: Callable[[Period], float]) -> Line:
        return Line(name, across, tuple(map(value, periods)))

    lines = [line(str(action), _share_of(str(action))) for action in Action]
    lines.append(line("low familiarity", lambda one: one.low_familiarity))
    says = f"Parts of {periods[0].questions:,} verdicts, in order of time."
    axes = ("part of the log", "share")
    return Lines("Actions over time", *axes, tuple(lines), says=says, reach=len(periods))


def _share_of(action: str) -> Callable[[Period], float]:
    return lambda period: period.actions[action]


def _example_tables(summary: ShadowSummary) -> list[Table]:
    tables = []
    columns = ("question", "p_complete", "familiarity", "missing", "outcome", "hits")
    for action, kinds in (summary.examples or {}).items():
        for kind, rows in kinds.items():
            cells = tuple(_example_cells(row) for row in rows)
            if cells:
                tables.append(Table(f"{action}: {kind.replace('_', ' ')}", columns, cells))
    return tables


def _example_cells(row: Row) -> tuple[Cell, ...]:
    names = [hit.title or hit.id for hit in row.hits[:MAX_SHOWN_HITS]]
    p = Interval(row.p_complete, row.low, row.high)
    missing = ", ".join(row.missing)
    return row.question, p, row.familiarity, missing, str(row.outcome), "; ".join(names)
