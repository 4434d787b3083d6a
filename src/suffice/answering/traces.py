"""A journey kept: as a line of JSON, as a tree for a person, and as something that can be walked again without the model.

A replay asks the same library and the same gate, but takes the model's answers and the clock's times from the trace: the same
trace comes out, byte for byte, or a DataError that says where the ways part.
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
from suffice.protocols import GateLike, Reranker
from suffice.storage import BadRecords, read_jsonl, write_atomically
from suffice.storage.fields import dataclass_from_json
from suffice.types import Action, Call, Step, Trace, printable

__all__ = [
    "TRACE_VERSION",
    "format_trace",
    "read_traces",
    "replay",
    "save_traces",
    "trace_from_json",
    "trace_to_json",
]

TRACE_VERSION = 1
TRACE_HINT = "traces are written by `suffice ask --trace FILE`, a line each"


def trace_to_json(trace: Trace) -> str:
    """The trace as one line of JSON; equal traces give equal bytes."""
    return json.dumps(
        {"version": TRACE_VERSION, **asdict(trace)},
        sort_keys=True,
        ensure_ascii=True,
        allow_nan=False,
    )


def save_traces(path: Path | str, traces: Iterable[Trace]) -> Path:
    """Write traces as JSON Lines, all of them or none."""
    write_atomically(Path(path), "".join(trace_to_json(trace) + "\n" for trace in traces))
    return Path(path)


def read_traces(path: Path | str) -> Iterator[Trace]:
    """The traces of a file, one by one; InputError with the line where one is not a trace, or one of another version."""
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
    """A trace from its JSON values; ValueError where they are none, or of another version."""
    if value.get("version") != TRACE_VERSION:
        raise ValueError(
            f"its version is {str(value.get('version'))[:20]!r}, expected {TRACE_VERSION}"
        )
    json.dumps(value, allow_nan=False)  # Python reads infinities, and a replay could not write them
    return dataclass_from_json(
        Trace, {name: one for name, one in value.items() if name != "version"}
    )


# ---------------------------------------------------------------------------------------------------------- replay


def replay(
    trace: Trace,
    library: DocumentSource,
    gate: GateLike,
    *,
    bank: ExemplarBank | None = None,
    reranker: Reranker | None = None,
) -> Trace:
    """Walk the journey again without its model. DataError where the library, the gate or the prompts are no longer the same."""
    settings = trace.settings
    try:
        policy, budget = (
            dataclass_from_json(AskPolicy, settings.get("policy")),
            dataclass_from_json(Budget, settings.get("budget")),
        )
    except ValueError as error:
        raise InputError(
            f"the trace does not say how it was made: {error}", hint="only traces of `ask` replay"
        ) from error
    model = (
        None
        if settings.get("model") is None
        else _RecordedModel(str(settings["model"]), trace.calls)
    )
    clock = _recorded_clock(trace.ticks) if trace.ticks else None
    again = ask(
        trace.question.text,
        library,
        gate,
        model,
        policy=policy,
        budget=budget,
        bank=bank,
        reranker=reranker,
        clock=clock,
    )
    if trace_to_json(again) != trace_to_json(trace):
        raise DataError(
            "the trace does not replay: something it rests on has changed",
            hint=_first_difference(trace, again),
        )
    return again


def _first_difference(trace: Trace, again: Trace) -> str:
    if trace.plan != again.plan:
        return "the plan is another one"
    for at, (old, new) in enumerate(zip(trace.steps, again.steps), start=1):
        if old != new:
            return f"the ways part at step {at} of the trace: {old.question[:80]!r}"
    return "the ways part at the end"


class _RecordedModel:
    """A model that says what it said before, in the same order, to the same prompts."""

    def __init__(self, name: str, calls: Sequence[Call]) -> None:
        self.name, self._calls, self._at = name, list(calls), 0

    @property
    def last_tokens(self) -> tuple[int, int] | None:
        call = self._calls[self._at - 1] if self._at else None
        return None if call is None else (call.tokens_in, call.tokens_out)

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        said = []
        for prompt in prompts:
            if self._at >= len(self._calls) or self._calls[self._at].key != call_key(
                prompt, schema or {}
            ):
                raise DataError(
                    "the trace does not replay: the model was asked something else then",
                    hint="was the library changed?",
                )
            call = self._calls[self._at]
            self._at += 1
            if call.answer is None:
                raise ModelError(call.error or "no answer")
            said.append(call.answer)
        return said


def _recorded_clock(ticks: Sequence[float]) -> Callable[[], float]:
    """A clock that says 0, and then what it said then."""
    left = iter((0.0, *ticks))
    return lambda: next(left, ticks[-1])


# ---------------------------------------------------------------------------------------------------------- the tree


def format_trace(trace: Trace) -> str:
    """The journey for a terminal. What comes from strangers' texts carries no control characters."""
    lines = [printable(trace.question.text)]
    for at, step in enumerate(trace.steps):
        branch, trunk = (
            ("└─", "   ") if at == len(trace.steps) - 1 and trace.action is None else ("├─", "│  ")
        )
        lines.append(f"{branch} {_step_title(step)}")
        lines += [f"{trunk}   {line}" for line in _step_details(step)]
    if trace.action is Action.ANSWER:
        lines.append(f"└─ ANSWER  {printable(trace.answer or '')}")
    elif trace.action is not None:
        lines.append(f"└─ {trace.action.upper()}")
        lines += [f"      missing: {printable(one)}" for one in trace.missing]
    return "\n".join(lines)


def _step_title(step: Step) -> str:
    number = f"{step.number}. " if step.number else ""
    if step.verdict is not None:
        return f"gate: {step.verdict.action} at p_complete {step.verdict.p_complete:.2f} with {len(step.hits)} documents"
    return f"{number}{printable(step.question)}"


def _step_details(step: Step) -> list[str]:
    if step.verdict is not None:
        return [printable(step.note)] if step.note else []
    lines = [f"= {printable(step.answer)}" if step.answer is not None else "= no answer"]
    if step.review is not None and step.answer is not None:
        lines[0] += (
            f"   ({step.review.support}, confidence {step.review.confidence:.2f}, {step.by})"
        )
    cited = step.citations if step.by != "joined" else ()
    lines += [f"[{printable(one.doc_id)} #{one.sentence}] {printable(one.text)}" for one in cited]
    return lines + ([printable(step.note)] if step.note else [])
