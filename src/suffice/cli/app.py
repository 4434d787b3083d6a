"""One line to copy for every command: the end of its help, and of its part of docs/reference/commands.md."""

from __future__ import annotations

from typing import Annotated

import typer

from suffice.cli import (
    ask,
    build,
    check,
    demo,
    doctor,
    evaluate,
    fit,
    grade,
    mcp,
    output,
    report,
    reproduce,
    search,
    serve,
)

__all__ = ["app", "main"]


EXAMPLES = {
    "suffice": "suffice demo",
    "suffice ask": 'suffice ask library "Who taught the teacher of Ada Lovelace?" --trace journey.jsonl',
    "suffice build": "suffice build documents.jsonl --out library",
    "suffice check": 'suffice check "Where was the director of Metropolis born?" --hits hits.json',
    "suffice demo": "suffice demo --out demo",
    "suffice doctor": "suffice doctor",
    "suffice evaluate": "suffice evaluate retrieval --collection controlled --retriever bm25,hybrid",
    "suffice evaluate answers": "suffice evaluate answers --dataset musique --path musique --limit 100",
    "suffice evaluate difficulty": "suffice evaluate difficulty results.jsonl --benchmark made --plot matrix.svg",
    "suffice evaluate expansion": "suffice evaluate expansion --dataset hotpotqa --path hotpotqa --plot curve.svg",
    "suffice evaluate gate": 'suffice evaluate gate --dataset musique --path musique --fail-if "risk@0.1>0.12"',
    "suffice evaluate retrieval": "suffice evaluate retrieval --collection controlled --retriever bm25,hybrid --k 4",
    "suffice fit": "suffice fit --examples labelled.jsonl --policy risk --alpha 0.1 --out gate",
    "suffice grade": "suffice grade documents.jsonl --out made --report made.html",
    "suffice mcp": "suffice mcp --library library",
    "suffice report": "suffice report monday.json tuesday.json --out both.html",
    "suffice reproduce": "suffice reproduce magaf --out magaf",
    "suffice search": 'suffice search library "Who taught the teacher of Ada Lovelace?" --complete',
    "suffice serve": "suffice serve --library library --port 8080",
    "suffice serve key": "suffice serve key new --keys keys.json --name shop",
    "suffice serve key list": "suffice serve key list --keys keys.json",
    "suffice serve key new": "suffice serve key new --keys keys.json --name shop --write",
    "suffice serve key revoke": "suffice serve key revoke shop --keys keys.json",
}


def add_examples(app: typer.Typer, path: str) -> typer.Typer:
    """The app with its example at the end of every help text; a test holds that none is forgotten."""
    if app.registered_callback:
        app.registered_callback.epilog = _epilog(path)
    for command in app.registered_commands:
        command.epilog = _epilog(f"{path} {command.name}")
    for group in app.registered_groups:
        group.epilog = _epilog(f"{path} {group.name}")
        if group.typer_instance:
            add_examples(group.typer_instance, f"{path} {group.name}")
    return app


def _epilog(path: str) -> str | None:
    line = EXAMPLES.get(path)
    return line and f"\b\nExample:\n  {line}"  # the sign keeps click from filling the lines up


# --- app: All commands in one place: what stands here is what `suffice --help` shows.

app = typer.Typer(
    name="suffice",
    help="Is the evidence that was retrieved for this multi-hop question complete?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("suffice"))
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    output.settings["debug"] = debug


app.command("demo")(demo.demo)
app.command("build")(build.build)
app.command("search")(search.search)
app.command("check")(check.check)
app.command("ask")(ask.ask)
app.command("fit")(fit.fit)
app.command("grade")(grade.grade)
app.add_typer(evaluate.app, name="evaluate")
app.command("reproduce")(reproduce.reproduce)
app.command("report")(report.report)
app.add_typer(serve.app, name="serve")
app.command("mcp")(mcp.mcp)
app.command("doctor")(doctor.doctor)
add_examples(app, "suffice")


def main() -> None:
    app()
