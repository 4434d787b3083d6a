"""`suffice ask`: plan, look, read, review, and answer only where the gate agrees.

The journey is drawn while it goes: the plan, what was read for each of its steps, and the gate's probability round by round.
Without a model the rules plan and read, and what comes out is the path of sentences that support the answer.
"""

from __future__ import annotations

import json as json_module
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli.loaders import open_model
from suffice.cli.options import (
    BaseUrl,
    GateName,
    Json,
    LibraryArgument,
    ModelName,
    ModelPrices,
    ModelTimeout,
    Preset,
)
from suffice.cli.output import handle_errors, parse_prices, print_json, say
from suffice.types import printable

if TYPE_CHECKING:
    from suffice.protocols import GateLike
    from suffice.types import Trace

NO_MODEL = "no language model is configured: rules planned and read; below is the path of sentences, see --model"


def ask(
    library: LibraryArgument,
    question: Annotated[str | None, typer.Argument(help="The question.")] = None,
    gate: GateName = "default",
    preset: Preset = "fast",
    model: ModelName = None,
    base_url: BaseUrl = None,
    timeout_s: ModelTimeout = 30.0,
    retriever: Annotated[
        str | None, typer.Option("--retriever", help="Who looks first; default: hybrid, or bm25.")
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=0, help="Looks beyond the first ones, at most.")
    ] = 12,
    calls: Annotated[
        int, typer.Option("--calls", min=0, help="Requests to the model, at most.")
    ] = 40,
    tokens: Annotated[
        int, typer.Option("--tokens", min=0, help="Tokens in and out, at most.")
    ] = 100_000,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.0, help="For the whole question, at most.")
    ] = 120.0,
    money: Annotated[
        float | None, typer.Option("--money", min=0.0, help="At most so much, by --prices.")
    ] = None,
    prices: ModelPrices = "0,0",
    exemplars: Annotated[
        Path | None, typer.Option("--exemplars", help="Your plans to learn from: JSON Lines.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="Keep the journey in this file: JSON Lines.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", help="Walk kept journeys again instead of asking.")
    ] = None,
    json: Json = False,
) -> None:
    """Answer a question from a library, or say what is missing."""
    with handle_errors(json=json):
        from suffice.answering.ask import AskPolicy
        from suffice.answering.ask import ask as travel
        from suffice.answering.budget import Budget
        from suffice.answering.planner import ExemplarBank
        from suffice.answering.traces import save_traces
        from suffice.errors import InputError
        from suffice.gate.gate_ref import open_gate
        from suffice.library import Library

        if (question is None) == (replay is None):
            example = (
                f"suffice ask {shlex.quote(library)} 'Who taught the teacher of Ada Lovelace?'"
            )
            raise InputError(
                "give a question, or with --replay a file of kept journeys",
                hint=f"for example: {example}",
            )
        if trace is not None and not trace.parent.is_dir():
            raise InputError(
                f"--trace: the folder {trace.parent} does not exist",
                hint="make it first, or choose another",
            )
        bank = (
            None
            if exemplars is None
            else ExemplarBank.load().and_more(ExemplarBank.load(exemplars).exemplars)
        )
        budget = Budget(rounds, calls, tokens, seconds, money, prices=parse_prices(prices))
        asked, judge = open_model(model, base_url, timeout_s=timeout_s), open_gate(gate, preset)
        with Library.open(library) as lib:
            if question is None:
                _replay(replay, lib, judge, bank, json=json)
                return
            policy = AskPolicy(look=retriever)
            with _live_display(quiet=json) as watch:
                told = travel(
                    question,
                    lib,
                    judge,
                    asked,
                    policy=policy,
                    budget=budget,
                    bank=bank,
                    clock=time.monotonic,
                    watch=watch,
                )
        if trace is not None:
            save_traces(trace, [told])
        _show(told, trace, library, with_model=asked is not None, json=json)


def _replay(file: Any, library: Any, gate: GateLike, bank: Any, *, json: bool) -> None:
    """Every journey of the file once more: the same bytes, or the place where the ways part."""
    from suffice.answering.traces import format_trace, read_traces, replay, trace_to_json

    count = 0
    for kept in read_traces(file):
        again = replay(kept, library, gate, bank=bank)
        print(trace_to_json(again) if json else format_trace(again))
        count += 1
    say(f"{count:,} of {count:,} replayed to the same bytes")


# ---------------------------------------------------------------------------------------------------- while it goes


@contextmanager
def _live_display(*, quiet: bool) -> Iterator[Callable[[Trace], None] | None]:
    """Draws the journey on stderr while it goes, where someone is looking."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    with Live(Text("planning"), console=console, transient=True, refresh_per_second=8) as live:
        # As Text: what comes from the corpus cannot carry markup into the terminal.
        yield lambda told: live.update(
            Text(_progress_text(told), no_wrap=True, overflow="ellipsis")
        )


def _progress_text(told: Trace) -> str:
    """The plan with what is known by now, a line a step: it must fit on a screen."""
    last = {step.number: step for step in told.steps if step.verdict is None}
    lines = [printable(told.question.text)]
    for number, sub_question in enumerate(told.plan, start=1):
        step = last.get(number)
        text = printable(sub_question if step is None else step.question)
        said = (
            "..."
            if step is None
            else "no answer"
            if step.answer is None
            else printable(step.answer)
        )
        branch = "└─" if number == len(told.plan) else "├─"
        lines.append(f"{branch} {number}. {text}  = {said}")
    return "\n".join([*lines, "", _cost_line(told)])


def _cost_line(told: Trace) -> str:
    """The gate's probability with each round, and the cost so far."""
    seen = [step.verdict.p_complete for step in told.steps if step.verdict is not None]
    bars = "".join("▁▂▃▄▅▆▇█"[min(int(p * 8), 7)] for p in seen)
    probability = f"p_complete {bars} {seen[-1]:.2f}   " if seen else ""
    cost = told.cost
    money = f", {cost.money:.4f} of money" if cost.money else ""
    return f"{probability}{cost.rounds} rounds, {cost.calls} calls, {cost.tokens:,} tokens{money}, {cost.seconds:.1f} s"


# ---------------------------------------------------------------------------------------------------- at the end


def _show(told: Trace, kept: Path | None, library: str, *, with_model: bool, json: bool) -> None:
    from suffice.answering.traces import format_trace, trace_to_json

    if json:
        record: dict[str, Any] = json_module.loads(trace_to_json(told))
        print_json({"model_configured": with_model, **record})
        return
    if not with_model:
        say(NO_MODEL + "\n")
    print(format_trace(told), flush=True)
    say("\n" + _cost_line(told))
    for note in told.notes:
        say("note: " + printable(note))
    if kept is not None:
        say(f"kept in {kept}; again without the model: suffice ask {library} --replay {kept}")
    answered = told.answer is not None
    say(
        "next: "
        + (
            "check the cited sentences"
            if answered
            else "add documents about what is missing, and ask again"
        )
    )
