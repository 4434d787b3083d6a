"""`suffice ask`: plan, look, read, review, and answer only where the gate agrees.

The journey is drawn while it goes: the plan as a tree, and the gate's probability with each round. Without a model the rules
plan and read, and what comes out is the path of sentences that support the answer.
"""

from __future__ import annotations

import json as json_module
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli.manners import friendly_errors, print_json, say
from suffice.cli.options import BaseUrl, GateName, Grade, Json, ModelName, ModelTimeout

if TYPE_CHECKING:
    from suffice.ports import LanguageModel
    from suffice.types import Trace

NO_MODEL = "no language model is configured: rules planned and read; below is the path of sentences, see --model"


def ask(
    library: Annotated[Path, typer.Argument(help="A folder made by `suffice build`.")],
    question: Annotated[str, typer.Argument(help="The question.")],
    gate: GateName = "default",
    grade: Grade = "fast",
    model: ModelName = None,
    base_url: BaseUrl = None,
    timeout_s: ModelTimeout = 30.0,
    retriever: Annotated[str | None, typer.Option("--retriever", help="Who looks first; default: hybrid, or bm25.")] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=0, help="Looks beyond the first ones, at most.")] = 12,
    calls: Annotated[int, typer.Option("--calls", min=0, help="Requests to the model, at most.")] = 40,
    tokens: Annotated[int, typer.Option("--tokens", min=0, help="Tokens in and out, at most.")] = 100_000,
    seconds: Annotated[float, typer.Option("--seconds", min=0.0, help="For the whole question, at most.")] = 120.0,
    exemplars: Annotated[Path | None, typer.Option("--exemplars", help="Your plans to learn from: JSON Lines.")] = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="Keep the journey in this file: JSON Lines.")] = None,
    json: Json = False,
) -> None:
    """Answer a question from a library, or say what is missing."""
    with friendly_errors(json=json):
        from suffice.evaluate.gate import open_gate
        from suffice.library import Library
        from suffice.reason.budget import Budget
        from suffice.reason.exemplars import Bank
        from suffice.reason.loop import AskPolicy
        from suffice.reason.loop import ask as travel
        from suffice.reason.tracing import save_traces

        bank = None if exemplars is None else Bank.load().and_more(Bank.load(exemplars).exemplars)
        asked, judge = _model(model, base_url, timeout_s), open_gate(gate, grade)
        budget = Budget(rounds=rounds, calls=calls, tokens=tokens, seconds=seconds)
        with Library.open(library) as lib, _live(quiet=json) as watch:
            told = travel(
                question,
                lib,
                judge,
                asked,
                policy=AskPolicy(look=retriever),
                budget=budget,
                bank=bank,
                clock=time.monotonic,
                watch=watch,
            )
        if trace is not None:
            save_traces(trace, [told])
        _show(told, trace, with_model=asked is not None, json=json)


def _model(name: str | None, base_url: str | None, timeout_s: float) -> LanguageModel | None:
    if name is None:
        return None
    from suffice.integrations.openai import OpenAIModel

    return OpenAIModel(name, base_url=base_url, timeout_s=timeout_s)


@contextmanager
def _live(*, quiet: bool) -> Iterator[Callable[[Trace], None] | None]:
    """Draws the journey on stderr while it goes, where someone is looking."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from suffice.reason.tracing import tree

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        # As Text: what comes from the corpus cannot carry markup into the terminal.
        yield lambda told: live.update(Text("\n".join([tree(told), "", _figures(told)])))


def _figures(told: Trace) -> str:
    """The gate's probability with each round, and the cost so far."""
    seen = [step.verdict.p_complete for step in told.steps if step.verdict is not None]
    bars = "".join("▁▂▃▄▅▆▇█"[min(int(p * 8), 7)] for p in seen)
    probability = f"p_complete {bars} {seen[-1]:.2f}   " if seen else ""
    cost = told.cost
    return f"{probability}{cost.rounds} rounds, {cost.calls} calls, {cost.tokens:,} tokens, {cost.seconds:.1f} s"


def _show(told: Trace, kept: Path | None, *, with_model: bool, json: bool) -> None:
    from suffice.reason.tracing import dumped, tree

    if json:
        record: dict[str, Any] = json_module.loads(dumped(told))
        print_json({"model_configured": with_model, **record})
        return
    if not with_model:
        say(NO_MODEL + "\n")
    print(tree(told))
    say("\n" + _figures(told))
    for note in told.notes:
        say("note: " + "".join(char if char.isprintable() else " " for char in note))
    if kept is not None:
        say(f"kept in {kept}")
    say(
        "next: "
        + ("check the cited sentences" if told.answer is not None else "add documents about what is missing, and ask again")
    )
