"""How the commands speak: errors with a hint, progress on stderr, results on stdout, JSON where a script reads."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from suffice.errors import InputError, SufficeError, disk_hint
from suffice.ports import Progress

if TYPE_CHECKING:
    from suffice.reason.budget import Prices

__all__ = ["friendly_errors", "numbers", "print_json", "progress_bar", "read_prices", "say", "show_table", "words"]

settings = {"debug": False}


@contextmanager
def friendly_errors(*, json: bool = False) -> Iterator[None]:
    """Turn an error into `error:` and `hint:` lines (or a JSON envelope) and an exit code; with --debug let it fly."""
    try:
        yield
    except SufficeError as error:
        if settings["debug"]:
            raise
        if json:
            print_json({"error": {"code": error.code, "message": str(error), "hint": error.hint}})
        say(f"error: {error}")
        if error.hint:
            say(f"hint: {error.hint}")
        raise typer.Exit(error.exit_code) from error
    except (KeyboardInterrupt, BrokenPipeError) as error:
        raise typer.Exit(130) from error
    except (typer.Exit, typer.Abort):
        raise
    except OSError as error:
        if settings["debug"]:
            raise
        told = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        if json:
            print_json({"error": {"code": "disk", "message": told, "hint": disk_hint(error)}})
        say(f"error: {told}")
        say(f"hint: {disk_hint(error)}")
        raise typer.Exit(1) from error
    except Exception as error:
        if settings["debug"]:
            raise
        if json:
            print_json({"error": {"code": "internal", "message": f"{type(error).__name__}: {error}", "hint": ""}})
        say(f"error: {type(error).__name__}: {error}")
        say("hint: this is a fault of suffice; run again as `suffice --debug ...` and report the traceback")
        raise typer.Exit(1) from error


def say(line: str) -> None:
    """One line for the person at the terminal, not for the pipe."""
    print(line, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """The result as JSON on stdout; undefined numbers are null, never NaN."""
    print(json_module.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str), flush=True)


def show_table(table: Any) -> None:
    """A Table of suffice.evaluate.tables, as wide as it needs to be when it goes into a pipe."""
    from rich.console import Console

    console = Console()
    Console(width=None if console.is_terminal else 160).print(table.to_rich())


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[Progress]:
    """A bar a task on stderr, with rate and time left; nothing when quiet."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), disable=quiet) as bars:
        tasks: dict[str, TaskID] = {}

        def advance(what: str, done: int, total: int | None = None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield advance


def words(text: str | None) -> list[str]:
    """A comma-separated option as a list."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def numbers(text: str) -> list[int]:
    """A comma-separated option of positive whole numbers, without doubles, in order."""
    try:
        found = sorted({int(word) for word in words(text)})
    except ValueError:
        found = []
    if not found or found[0] < 1:
        raise InputError(f"--k is {text!r}, expected whole numbers of 1 or more like 2,4,8", hint="for example --k 2,4,8")
    return found


def read_prices(text: str) -> Prices:
    """The option --prices: what a million tokens cost, in and out."""
    from suffice.reason.budget import Prices

    try:
        price_in, price_out = map(float, text.split(","))
    except ValueError:
        raise InputError(f"--prices is {text!r}, expected two numbers", hint="for example --prices 0.15,0.60") from None
    return Prices(price_in, price_out)
