"""The command line: every command with its example. A command lives in the module of its name.

Other packages add commands as entry points: `command.reproduce`, or `command.evaluate.answers` for
`suffice evaluate answers`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated

import typer

from suffice.cli import evaluate, output
from suffice.errors import SufficeError
from suffice.registry import COMMANDS, missing_package

OWN = ("demo build search check ask fit adapt judge evaluate report serve mcp doctor").split()
# Commands of packages beside this one. Without its package, a command says how to install it.
ELSEWHERE = {
    "fetch": "suffice-deep",
    "grade": "suffice-grade",
    "improve": "suffice-grade",
    "evaluate.difficulty": "suffice-grade",
    "evaluate.answers": "suffice-research",
    "evaluate.costs": "suffice-research",
    "evaluate.expansion": "suffice-research",
    "fit-ranker": "suffice-research",
    "reproduce": "suffice-research",
}
ANY_WORDS = {"allow_extra_args": True, "ignore_unknown_options": True}
EXAMPLES = {
    "suffice": "suffice demo",
    "suffice demo": "suffice demo --out demo",
    "suffice build": "suffice build documents.jsonl --out library",
    "suffice search": 'suffice search library "Who taught the teacher of Ada Lovelace?" --complete',
    "suffice check": 'suffice check "Where was the director of Metropolis born?" --hits hits.json',
    "suffice ask": 'suffice ask library "Who taught the teacher of Ada Lovelace?" --trace t.jsonl',
    "suffice improve": "suffice improve library --out improved",
    "suffice fetch": "suffice fetch deep",
    "suffice fit": "suffice fit --examples labelled.jsonl --policy risk --alpha 0.1 --out gate",
    "suffice fit-ranker": "suffice fit-ranker --dataset jsonl --path data --out ranker",
    "suffice adapt": "suffice adapt labels.jsonl --out gate",
    "suffice judge": "suffice judge ask.jsonl --judge http://127.0.0.1:8080/v1 --out labels.jsonl",
    "suffice grade": "suffice grade documents.jsonl --out made --report made.html",
    "suffice evaluate": "suffice evaluate retrieval --dataset jsonl --path data",
    "suffice evaluate retrieval": "suffice evaluate retrieval --dataset beir --path nq --k 4,8",
    "suffice evaluate gate": 'suffice evaluate gate --dataset frames --fail-if "risk@0.1>0.12"',
    "suffice evaluate answers": "suffice evaluate answers --dataset jsonl --path data --limit 100",
    "suffice evaluate costs": "suffice evaluate costs --dataset beir --path nq --plot costs.svg",
    "suffice evaluate difficulty": "suffice evaluate difficulty results.jsonl --benchmark made",
    "suffice evaluate expansion": "suffice evaluate expansion --dataset jsonl --plot curve.svg",
    "suffice reproduce": "suffice reproduce magaf --out magaf",
    "suffice report": "suffice report monday.json tuesday.json --out both.html",
    "suffice serve": "suffice serve --library library --port 8080",
    "suffice serve key": "suffice serve key new --keys keys.json --name shop",
    "suffice serve key new": "suffice serve key new --keys keys.json --name shop --write",
    "suffice serve key list": "suffice serve key list --keys keys.json",
    "suffice serve key revoke": "suffice serve key revoke shop --keys keys.json",
    "suffice mcp": "suffice mcp --library library",
    "suffice doctor": "suffice doctor",
}

app = typer.Typer(
    name="suffice",
    help="Is the evidence retrieved for a multi-hop question complete?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("suffice"))
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    output.settings["debug"] = debug


for name in OWN:
    module = import_module(f"suffice.cli.{name}")
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name)
    else:
        app.command(name)(getattr(module, name))


def _plugin(name: str) -> Callable[..., None]:
    """The function of another package's command; InputError or NotReadyError if there is none."""
    if name not in COMMANDS.names():
        raise missing_package(f"`suffice {name.replace('.', ' ')}`", ELSEWHERE[name])
    return COMMANDS.get(name)


def _failing(error: SufficeError) -> Callable[..., None]:
    def fail(context: typer.Context) -> None:
        with output.handle_errors(json="--json" in context.args):
            raise error

    fail.__doc__ = f"Not available: {error}."
    return fail


def _add_plugins() -> None:
    for name in dict.fromkeys([*ELSEWHERE, *COMMANDS.names()]):
        group, _, last = name.rpartition(".")
        to = evaluate.app if group == "evaluate" else app
        try:
            to.command(last)(_plugin(name))
        except SufficeError as error:
            to.command(last, context_settings=ANY_WORDS)(_failing(error))


_add_plugins()


def _add_examples(group: typer.Typer, path: str) -> None:
    """Put its example at the end of every help text."""

    def epilog(name: str) -> str | None:
        # \b keeps click from joining the lines.
        return f"\b\nExample:\n  {EXAMPLES[name]}" if name in EXAMPLES else None

    if group.registered_callback:
        group.registered_callback.epilog = epilog(path)
    for command in group.registered_commands:
        command.epilog = epilog(f"{path} {command.name}")
    for child in group.registered_groups:
        child.epilog = epilog(f"{path} {child.name}")
        if child.typer_instance:
            _add_examples(child.typer_instance, f"{path} {child.name}")


_add_examples(app, "suffice")


def main() -> None:
    # UTF-8 in every locale, as in files; what cannot be written is escaped.
    for stream, errors in (
        (sys.stdin, "strict"),
        (sys.stdout, "backslashreplace"),
        (sys.stderr, "backslashreplace"),
    ):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    app()
