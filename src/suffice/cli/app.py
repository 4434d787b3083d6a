"""All commands in one place: what stands here is what `suffice --help` shows."""

from __future__ import annotations

from typing import Annotated

import typer

from suffice.cli import ask, build, check, demo, doctor, evaluate, fit, grade, manners, mcp, report, reproduce, search, serve
from suffice.cli.examples import with_examples

__all__ = ["app", "main"]

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
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    manners.settings["debug"] = debug


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
with_examples(app, "suffice")


def main() -> None:
    app()
