"""Traces: save as JSON Lines, print as a tree, and replay without the model.

A replay uses the same library and gate, with the recorded model answers and clock readings. The
result is the same trace, byte for byte, or a DataError that says where it differs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from suffice.answering.ask import AskPolicy, ask
from suffice.answering.budget import Budget, call_key
from suffice.answering.planner import ExemplarBank
from suffice.answering.step import DocumentSource
from suffice.errors import DataError, InputError, ModelError
from suffice.protocols import GateLike
from suffice.storage import BadRecords, read_jsonl, write_atomically
from suffice.storage.fields import dataclass_from_json
from suffice.types import Action, Call, Filter, Step, Trace, printable

TRACE_VERSION = 3
TRACE_HINT = "`suffice ask --trace FILE` writes traces, one per line"
MAX_SHOWN = 500  # characters of a text in a printed trace; its JSON has the whole text


def trace_to_json(trace: Trace) -> str:
    """The trace as one line of JSON; equal traces give equal bytes."""
    record = {"version": TRACE_VERSION, **asdict(trace)}
    return json.dumps(record, sort_keys=True, ensure_ascii=True, allow_nan=False)


def save_traces(path: Path | str, traces: Iterable[Trace]) -> Path:
    """Write traces as JSON Lines, all of them or none."""
    write_atomically(Path(path), "".join(trace_to_json(trace) + "\n" for trace in traces))
    return Path(path)


def read_traces(path: Path | str) -> Iterator[Trace]:
    """The traces in a file; InputError names the line that is invalid or of another version."""
    where = str(path)
    try:
        for record in read_jsonl(Path(path), BadRecords()):
            where = record.where
            yield trace_from_json(record.value)
    except InputError as error:
        raise InputError(str(error), hint=TRACE_HINT) from error
    except ValueError as error:
        raise InputError(f"{where}: not a trace: {error}", hint=TRACE_HINT) from error


def trace_from_json(value: Mapping[str, Any]) -> Trace:
    """A trace from its JSON values; ValueError if they are invalid or of another version."""
    version = value.get("version")
    if version != TRACE_VERSION:
        raise ValueError(f"its version is {str(version)[:20]!r}, expected {TRACE_VERSION}")
    json.dumps(value, allow_nan=False)  # Python parses infinities, but a replay cannot write them
    fields = {name: one for name, one in value.items() if name != "version"}
    return dataclass_from_json(Trace, fields)


def replay(
    trace: Trace,
    library: DocumentSource,
    gate: GateLike,
    *,
    bank: ExemplarBank | None = None,
) -> Trace:
    """Ask again with the recorded model; DataError if library, gate or prompts have changed."""
    settings = trace.settings
    try:
        policy = dataclass_from_json(AskPolicy, settings.get("policy"))
        budget = dataclass_from_json(Budget, settings.get("budget"))
        applied = settings.get("filter")
        wanted = None if applied is None else dataclass_from_json(Filter, applied)
    except ValueError as error:
        raise InputError(
            f"the trace does not say how it was made: {error}",
            hint="only traces of `ask` can be replayed",
        ) from error
    name = settings.get("model")
    again = ask(
        trace.question.text,
        library,
        gate,
        None if name is None else _RecordedModel(str(name), trace.calls),
        policy=policy,
        budget=budget,
        bank=bank,
        clock=_recorded_clock(trace.ticks) if trace.ticks else None,
        filter=wanted,
        strict=bool(settings.get("strict")),
    )
    if trace_to_json(again) != trace_to_json(trace):
        raise DataError(
            "the trace does not replay: something it depends on has changed",
            hint=_first_difference(trace, again),
        )
    return again


def _first_difference(trace: Trace, again: Trace) -> str:
    if trace.plan != again.plan:
        return "the plan differs"
    for at, (old, new) in enumerate(zip(trace.steps, again.steps), start=1):
        if old != new:
            return f"step {at} of the trace is the first that differs: {old.question[:80]!r}"
    return "only the end differs"


class _RecordedModel:
    """A model that repeats its recorded answers, in the same order, to the same prompts."""

    def __init__(self, name: str, calls: Sequence[Call]) -> None:
        self.name, self._calls, self._at = name, list(calls), 0

    @property
    def last_tokens(self) -> tuple[int, int] | None:
        call = self._calls[self._at - 1] if self._at else None
        return None if call is None else (call.tokens_in, call.tokens_out)

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        answers = []
        for prompt in prompts:
            call = self._calls[self._at] if self._at < len(self._calls) else None
            if call is None or call.key != call_key(prompt, schema or {}):
                raise DataError(
                    "the trace does not replay: this prompt was not asked when it was recorded",
                    hint="check whether the library or the prompts changed",
                )
            self._at += 1
            if call.answer is None:
                raise ModelError(call.error or "no answer")
            answers.append(call.answer)
        return answers


def _recorded_clock(ticks: Sequence[float]) -> Callable[[], float]:
    """A clock that returns 0, then the recorded readings."""
    left = iter((0.0, *ticks))
    return lambda: next(left, ticks[-1])


def format_trace(trace: Trace) -> str:
    """The trace as a tree for a terminal, without control characters from untrusted texts."""
    lines = [_line(trace.question.text)]
    for number, step in enumerate(trace.steps, start=1):
        last = number == len(trace.steps) and trace.action is None
        branch, trunk = ("└─", "   ") if last else ("├─", "│  ")
        title, *details = _step_lines(step)
        lines.append(f"{branch} {title}")
        lines += [f"{trunk}   {line}" for line in details]
    if trace.action is Action.ANSWER:
        lines.append(f"└─ ANSWER  {printable(trace.answer or '')}")
    elif trace.action is not None:
        lines.append(f"└─ {trace.action.upper()}")
        lines += [f"      missing: {_line(one)}" for one in trace.missing]
    return "\n".join(lines)


def _step_lines(step: Step) -> list[str]:
    """The title of a step, followed by its details."""
    note = [_line(step.note)] if step.note else []
    if step.verdict is not None:
        action, p_complete = step.verdict.action, step.verdict.p_complete
        count = f"{len(step.hits)} document" + "s" * (len(step.hits) != 1)
        return [f"gate: {action} at p_complete {p_complete:.2f} with {count}", *note]
    number = f"{step.number}. " if step.number else ""
    answer = "= no answer"
    if step.answer is not None:
        answer = f"= {_line(step.answer)}"
        if step.review is not None:
            confidence = f"confidence {step.review.confidence:.2f}"
            answer += f"   ({step.review.support}, {confidence}, {step.by})"
    cited = [
        f"[{_line(one.doc_id)} #{one.sentence}] {_line(one.text)}"
        for one in (step.citations if step.by != "joined" else ())
    ]
    return [f"{number}{_line(step.question)}", answer, *cited, *note]


def _line(text: str) -> str:
    """The text on one line of a terminal; a very long one is cut."""
    text = printable(text)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ... ({len(text):,} characters)"
