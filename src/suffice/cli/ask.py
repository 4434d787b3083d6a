"""`suffice ask`: plan, search, read, review, and answer only if the gate agrees.

The trace is drawn as it grows. Without a model, rules plan and the gate's reader reads; the result
is the path of sentences that support the answer.
"""

from __future__ import annotations

import json as json_module
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.loaders import name_library, open_library, open_model
from suffice.cli.output import command, parse_day, parse_filter, print_json, say
from suffice.errors import InputError
from suffice.types import printable

if TYPE_CHECKING:
    from suffice.types import Trace

UNSURE = "a sentence that confirms "  # the gate says ANSWER, but the answer may be wrong
NO_MODEL = (
    "no language model (see --model): rules plan, and the answer is quoted from the documents"
)


@command
def ask(
    library: opt.LibraryArgument = None,
    question: Annotated[str | None, Argument(help="The question.")] = None,
    named_library: opt.NamedLibrary = None,
    gate: opt.GateName = "default",
    preset: opt.Preset = "standard",
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    timeout_s: opt.ModelTimeout = 30.0,
    retriever: opt.DefaultRetriever = None,
    filter: opt.MetadataFilter = None,
    strict: Annotated[
        bool | None,
        Option(help="Read only documents that pass the filter; default unless it is auto."),
    ] = None,
    today: opt.Today = None,
    min_probability: Annotated[
        float | None,
        Option(min=0.0, max=1.0, help="Needed to answer, without a model. Lower: more, less sure."),
    ] = None,
    rounds: Annotated[int, Option(min=0, help="Maximum further searches.")] = 12,
    calls: Annotated[int, Option(min=0, help="Maximum requests to the model.")] = 40,
    tokens: Annotated[int, Option(min=0, help="Maximum tokens, in and out.")] = 100_000,
    seconds: Annotated[float, Option(min=0.0, help="Maximum time for the question.")] = 120.0,
    trace: Annotated[
        Path | None, Option(dir_okay=False, help="Write the trace to this file: JSON Lines.")
    ] = None,
    replay: Annotated[Path | None, Option(help="Replay traces from a file instead.")] = None,
    json: opt.Json = False,
) -> None:
    """Answer a question from a library, or say what is missing."""
    from suffice.answering.ask import AskPolicy
    from suffice.answering.ask import ask as run_ask
    from suffice.answering.budget import Budget
    from suffice.answering.traces import save_traces
    from suffice.gate.gate_ref import open_gate

    example = 'for example: suffice ask DIR "Who taught the teacher of Ada Lovelace?"'
    given = name_library(library, question, option=named_library)
    if not given:
        raise InputError("give a library and a question", hint=example)
    address, question = given[0], given[1] if len(given) > 1 else None
    if (question is None) == (replay is None):
        wanted = "a library and a question, or a library and --replay FILE"
        raise InputError(f"give {wanted}{'' if question is None else ', not both'}", hint=example)
    if trace is not None and not trace.parent.is_dir():
        message = f"--trace: the folder {trace.parent} does not exist"
        raise InputError(message, hint="create it, or choose another")
    if question is None and filter is not None:
        hint = "leave out --filter"
        raise InputError("--filter does not go with --replay: the trace has its own", hint=hint)
    wanted, day = parse_filter(filter), parse_day(today)
    policy = AskPolicy(retriever=retriever)
    if min_probability is not None:
        policy = replace(policy, min_probability=min_probability)
    budget = Budget(rounds, calls, tokens, seconds)
    opened, loaded = open_model(model, base_url, timeout_s=timeout_s), open_gate(gate, preset)
    with open_library(address) as lib:
        if question is None:
            _replay(replay, lib, loaded, json=json)
            return
        with _live_display(quiet=json) as watch:
            result = run_ask(
                question,
                lib,
                loaded,
                opened,
                policy=policy,
                budget=budget,
                clock=time.monotonic,
                on_update=watch,
                filter=wanted,
                strict=strict,
                today=day,
            )
    try:
        if trace is not None:
            save_traces(trace, [result])
    finally:  # a full disk does not cost the answer
        _show(result, with_model=opened is not None, json=json)
    if not json and trace is not None:
        again = shlex.join(["suffice", "ask", address, "--replay", str(trace)])
        say(f"wrote {trace}; replay it: {again}")
    if not json:
        say("next: " + _next_step(result))


def _next_step(result: Trace) -> str:
    if result.answer is not None:
        return "check the cited sentences"
    if all(one.startswith(UNSURE) for one in result.missing):
        return "check the cited sentences; --min-probability gives answers that are less sure"
    return "add documents about what is missing, and ask again"


def _replay(file: Any, library: Any, gate: Any, *, json: bool) -> None:
    """Replay every trace of the file: the same bytes, or an error that says where they differ."""
    from suffice.answering.traces import format_trace, read_traces, replay, trace_to_json

    count = 0
    for trace in read_traces(file):
        replayed = replay(trace, library, gate)
        print(trace_to_json(replayed) if json else format_trace(replayed))
        count += 1
    say(f"{count:,} of {count:,} traces replayed identically")


@contextmanager
def _live_display(*, quiet: bool) -> Iterator[Callable[[Trace], None] | None]:
    """Draw the trace on stderr while it grows, in a terminal."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    with Live(Text("planning"), console=console, transient=True, refresh_per_second=8) as live:
        # As Text: documents cannot carry markup into the terminal.
        yield lambda trace: live.update(
            Text(_progress_text(trace), no_wrap=True, overflow="ellipsis")
        )


def _progress_text(trace: Trace) -> str:
    """The plan with the answers so far, one line per step."""
    last = {step.number: step for step in trace.steps if step.verdict is None}
    lines = [printable(trace.question.text)]
    for number, sub_question in enumerate(trace.plan, start=1):
        step = last.get(number)
        text = printable(step.question if step else sub_question)
        answer = "..." if step is None else printable(step.answer or "no answer")
        branch = "└─" if number == len(trace.plan) else "├─"
        lines.append(f"{branch} {number}. {text}  = {answer}")
    return "\n".join([*lines, "", _cost_line(trace)])


def _cost_line(trace: Trace) -> str:
    """The gate's probability per round, and the cost so far."""
    p = [step.verdict.p_complete for step in trace.steps if step.verdict is not None]
    bars = "".join("▁▂▃▄▅▆▇█"[min(int(value * 8), 7)] for value in p)
    probability = f"p_complete {bars} {p[-1]:.2f}   " if p else ""
    cost = trace.cost
    rounds = f"{cost.rounds} round" + "s" * (cost.rounds != 1)
    spent = f"{rounds}, {cost.calls} calls, {cost.tokens:,} tokens"
    return f"{probability}{spent}, {cost.seconds:.1f} s"


def _show(trace: Trace, *, with_model: bool, json: bool) -> None:
    from suffice.answering.traces import format_trace, trace_to_json

    if json:
        record: dict[str, Any] = json_module.loads(trace_to_json(trace))
        print_json({"model_configured": with_model, **record})
        return
    if not with_model:
        say(NO_MODEL + "\n")
    print(format_trace(trace), flush=True)
    say("\n" + _cost_line(trace))
    for note in trace.notes:
        say("note: " + printable(note))
