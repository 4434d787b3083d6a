"""How the commands speak: errors with a hint, progress on stderr, results on stdout, JSON where a script reads."""

from __future__ import annotations

import json as json_module
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from suffice.errors import InputError, SufficeError, disk_hint
from suffice.protocols import Progress

if TYPE_CHECKING:
    from suffice.answering.budget import Prices
    from suffice.storage import BadRecords

__all__ = [
    "handle_errors",
    "parse_list",
    "parse_numbers",
    "parse_plot_format",
    "parse_prices",
    "print_json",
    "progress_bar",
    "say",
    "say_skipped",
    "show_table",
    "typed_command",
]

BUG_HINT = "this is a fault of suffice; run again as `suffice --debug ...` and report the traceback"
settings = {"debug": False}


@contextmanager
def handle_errors(*, json: bool = False) -> Iterator[None]:
    """Turn an error into `error:` and `hint:` lines (or a JSON envelope) and an exit code; with --debug let it fly."""
    try:
        yield
    except (KeyboardInterrupt, BrokenPipeError) as error:
        raise typer.Exit(130) from error
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if settings["debug"]:
            raise
        code, told, hint, status = _describe_error(error)
        if json:
            print_json({"error": {"code": code, "message": told, "hint": hint}})
        say(f"error: {told}")
        if hint:
            say(f"hint: {hint}")
        raise typer.Exit(status) from error


def _describe_error(error: Exception) -> tuple[str, str, str, int]:
    """Code, message, hint and exit code of an error: the caller's, the disk's, or a fault of ours."""
    if isinstance(error, SufficeError):
        return error.code, str(error), error.hint, error.exit_code
    if isinstance(error, OSError):
        return (
            "disk",
            f"{error.filename}: {error.strerror}" if error.filename else str(error),
            disk_hint(error),
            1,
        )
    return "internal", f"{type(error).__name__}: {error}", BUG_HINT, 1


def say(line: str) -> None:
    """One line for the person at the terminal, not for the pipe."""
    print(line, file=sys.stderr, flush=True)


def say_skipped(bad: BadRecords) -> None:
    """With --skip-bad: how many records were left out, and why the first of them was."""
    if bad.count:
        say(f"left out {bad.count:,} bad records, the first: {bad.examples[0]}")


def typed_command() -> str:
    """What was typed, for whoever wants to type it again."""
    return shlex.join(["suffice", *sys.argv[1:]])


def print_json(value: Any) -> None:
    """The result as JSON on stdout; undefined numbers are null, never NaN."""
    print(
        json_module.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str),
        flush=True,
    )


def show_table(table: Any) -> None:
    """A Table of suffice.evaluation.tables; in a pipe as wide as its columns ask for, from 160 to 240 characters."""
    from rich.console import Console
    from rich.measure import Measurement

    console, shown = Console(), table.to_rich()
    if not console.is_terminal:
        # Columns of figures do not wrap: where all is too wide, the names of the rows would be cut to a few letters.
        wanted = Measurement.get(console, console.options.update(width=240), shown).maximum
        console = Console(width=max(160, wanted))
    console.print(shown)


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[Progress]:
    """A bar a task on stderr, with rate and time left; nothing when quiet."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), disable=quiet) as bars:
        tasks: dict[str, TaskID] = {}

        def advance(what: str, done: int, total: int | None = None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield advance


def parse_list(text: str | None) -> list[str]:
    """A comma-separated option as a list."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def parse_numbers(text: str) -> list[int]:
    """A comma-separated option of positive whole numbers, without doubles, in order."""
    try:
        found = sorted({int(word) for word in parse_list(text)})
    except ValueError:
        found = []
    if not found or found[0] < 1:
        raise InputError(
            f"--k is {text!r}, expected whole numbers of 1 or more like 2,4,8",
            hint="for example --k 2,4,8",
        )
    return found


def parse_plot_format(plot: Path | None) -> Literal["png", "svg"]:
    """The option --plot: what its name says the picture is to be; asked before the work that it shows."""
    kind = plot.suffix.lower() if plot else ".png"
    if kind not in (".png", ".svg"):
        raise InputError(
            f"--plot is {plot}, expected a name that ends in .png or .svg",
            hint="for example --plot picture.png",
        )
    return "svg" if kind == ".svg" else "png"


def parse_prices(text: str) -> Prices:
    """The option --prices: what a million tokens cost, in and out."""
    from suffice.answering.budget import Prices

    try:
        price_in, price_out = map(float, text.split(","))
    except ValueError:
        raise InputError(
            f"--prices is {text!r}, expected two numbers", hint="for example --prices 0.15,0.60"
        ) from None
    return Prices(price_in, price_out)
