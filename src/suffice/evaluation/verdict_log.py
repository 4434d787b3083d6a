"""The verdict log: verdicts on real questions, and what the guard did or would have done.

    log = VerdictLog("shadow.jsonl")                   texts of hits only with texts=True
    log.write(logged_verdict(question, hits, verdict, outcome=Outcome.PASS, ...))
    found = read_verdict_log(Path("shadow.jsonl"))     rows by time, and what could not be read

One JSON object per line. Several processes may write to one file; a full one is renamed to NAME.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from suffice.errors import InputError
from suffice.gate.hits import MAX_PASSAGE_CHARS, UNNAMED_ID_PREFIX, normalize_hits
from suffice.storage import BadRecords, append_line, read_lines, readable_file, rotated_path
from suffice.storage.fields import content_id, dataclass_from_json
from suffice.types import LOW_FAMILIARITY, Action, JudgeReport, Verdict

__all__ = [
    "LogContents",
    "LoggedHit",
    "LoggedVerdict",
    "Outcome",
    "VerdictLog",
    "guard_outcome",
    "logged_verdict",
    "read_verdict_log",
]

VERSION = 1
MAX_LOG_BYTES = 64 * 1024 * 1024
MAX_HITS, MAX_QUESTION, MAX_NAME = 100, 10_000, 1_000  # per line
HINT = "a log is written by a guard with log=FILE, or by `suffice serve --shadow FILE`"


class Outcome(StrEnum):
    """What a guard does with the documents, or would do."""

    PASS = "pass"
    HOLD_BACK = "hold back"
    SEARCH = "search"  # search for missing evidence before holding anything back


def guard_outcome(verdict: Verdict, min_familiarity: float = LOW_FAMILIARITY) -> Outcome:
    """What a guard without a budget does: it never holds back unfamiliar texts."""
    passes = verdict.action is Action.ANSWER or verdict.familiarity < min_familiarity
    return Outcome.PASS if passes else Outcome.HOLD_BACK


@dataclass(frozen=True, slots=True)
class LoggedHit:
    """A hit; title and text only if the log stores texts."""

    id: str
    score: float | None = None
    title: str | None = None
    text: str | None = None


@dataclass
class JudgedTotal:
    """How often a judge was asked over many verdicts, and what that changed."""

    asked: int = 0
    failed: int = 0
    changed: int = 0

    def add(self, judged: Mapping[str, Any] | None, action: str) -> None:
        """Count one verdict: its `judged` as JSON values, and the resulting action."""
        if judged is None:
            return
        self.asked += 1
        self.failed += judged["p_judge"] is None
        self.changed += str(judged["action_before"]) != action

    def sentence(self, questions: int) -> str:
        """A clause that follows "the judge"."""
        share = self.asked / max(questions, 1)
        failed = f"; it gave no usable answer {self.failed:,} times" if self.failed else ""
        return (
            f"was asked about {self.asked:,} of {questions:,} ({share:.0%}), which changed "
            f"{self.changed:,} actions{failed}"
        )


@dataclass(frozen=True, slots=True)
class LoggedVerdict:
    """One line of a log."""

    time: str  # ISO, UTC
    question: str
    hits: tuple[LoggedHit, ...]
    action: Action
    p_complete: float
    low: float
    high: float
    familiarity: float
    unfamiliar: tuple[str, ...]
    missing: tuple[str, ...]
    outcome: Outcome
    acted: bool  # whether the guard acted on it; False in shadow mode
    by: str  # the framework, or "serve"
    gate: str  # its identity
    judged: JudgeReport | None = None

    @property
    def has_texts(self) -> bool:
        return bool(self.hits) and all(hit.text is not None for hit in self.hits)


def logged_verdict(
    question: str,
    hits: Iterable[Any],
    verdict: Verdict,
    *,
    outcome: Outcome,
    acted: bool,
    by: str,
    gate: str,
) -> LoggedVerdict:
    """The row for a verdict on hits in any shape that a gate accepts, with the current time."""
    evidence = normalize_hits(question, hits, k=MAX_HITS).evidence
    logged = []
    for hit in evidence.hits:
        document = evidence.documents[hit.doc_id]
        doc_id = document.doc_id
        if doc_id.startswith(UNNAMED_ID_PREFIX):  # a position means nothing outside its list
            doc_id = content_id("", f"{document.title}\n{document.text}")
        title, text = document.title[:MAX_NAME], document.text[:MAX_PASSAGE_CHARS]
        logged.append(LoggedHit(doc_id[:MAX_NAME], hit.score, title, text))
    return LoggedVerdict(
        time=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        question=question[:MAX_QUESTION],
        hits=tuple(logged),
        action=verdict.action,
        p_complete=verdict.p_complete,
        low=verdict.estimate.low,
        high=verdict.estimate.high,
        familiarity=verdict.familiarity,
        unfamiliar=verdict.unfamiliar,
        missing=tuple(name[:MAX_NAME] for name in verdict.missing[:MAX_HITS]),
        outcome=outcome,
        acted=acted,
        by=by,
        gate=gate,
        judged=verdict.judged,
    )


@dataclass(frozen=True, slots=True)
class VerdictLog:
    """A file of verdicts. It stores questions and ids; with `texts`, also titles and texts of hits.

    At `max_bytes` it is renamed to NAME.1, replacing an earlier one.
    """

    path: Path | str
    texts: bool = False
    max_bytes: int = MAX_LOG_BYTES

    def write(self, row: LoggedVerdict) -> None:
        """Append the row; OSError if the disk is full or the path is not writable."""
        record: dict[str, Any] = {"version": VERSION, **asdict(row)}
        if row.judged is None:
            del record["judged"]
        if not self.texts:
            record["hits"] = [{"id": hit.id, "score": hit.score} for hit in row.hits]
        line = json.dumps(record, ensure_ascii=False)
        if not line.isascii():
            try:
                line.encode()
            except UnicodeEncodeError:  # half a surrogate pair, from broken texts
                line = json.dumps(record)
        append_line(Path(self.path), line, max_bytes=self.max_bytes)


@dataclass(frozen=True, slots=True)
class LogContents:
    """The rows of a log by time, and what could not be read."""

    rows: tuple[LoggedVerdict, ...]
    unreadable: int = 0
    first_unreadable: str = ""  # where, and why
    cut_off: bool = False  # the last line is incomplete: being written, or from a crash


def read_verdict_log(path: Path) -> LogContents:
    """Read a log and NAME.1, its older part. Damaged lines are counted, not fatal."""
    rows: list[LoggedVerdict] = []
    bad, cut_off = BadRecords(skip=True), False
    path = Path(path)
    parts = [rotated_path(path)] if rotated_path(path).is_file() else []
    if not path.is_file() or path.stat().st_size:  # a log is empty until the first check
        parts.append(readable_file(path))
    for part in parts:
        damaged: list[tuple[str, str]] = []  # the previous line, if it could not be read
        for line in read_lines(part, bad):
            if not line.text.strip():
                continue
            while damaged:
                bad.reject(*damaged.pop(), hint=HINT)
            try:
                rows.append(_parse_row(line.text))
            except (ValueError, RecursionError) as error:
                damaged.append((line.where, f"not a verdict: {error}"))
        if damaged and not _ends_with_newline(part):
            cut_off = True
        elif damaged:
            bad.reject(*damaged.pop(), hint=HINT)
    if not rows:
        why = f"; the first problem: {bad.examples[0]}" if bad.examples else ""
        raise InputError(f"{path} has no verdict{why}", hint=HINT)
    rows.sort(key=lambda row: row.time)  # processes that share a file do not write in order
    first = bad.examples[0] if bad.examples else ""
    return LogContents(tuple(rows), bad.count, first, cut_off)


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(size - 1, 0))
        return stream.read(1) in (b"\n", b"")


def _parse_row(text: str) -> LoggedVerdict:
    record = json.loads(text)
    if not isinstance(record, dict):
        raise ValueError("expected a JSON object")
    version = record.pop("version", None)
    if version != VERSION:
        raise ValueError(f"its version is {version!r:.40}, expected {VERSION}")
    row = dataclass_from_json(LoggedVerdict, record)
    shares = row.low, row.p_complete, row.high, row.familiarity
    if not all(0 <= share <= 1 for share in shares):
        raise ValueError("a probability is not between 0 and 1")
    time = datetime.fromisoformat(row.time)
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return replace(row, time=time.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
