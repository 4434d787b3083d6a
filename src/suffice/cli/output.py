"""How commands talk: errors with a hint, progress on stderr, results on stdout or as JSON."""

from __future__ import annotations

import errno
import functools
import json as json_module
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from suffice.errors import InputError, SufficeError, disk_hint
from suffice.protocols import Progress
from suffice.storage.fields import is_text

if TYPE_CHECKING:
    from rich.console import Console

    from suffice.answering.budget import Prices
    from suffice.evaluation.report import Plot
    from suffice.storage import BadRecords

FILTER_EXAMPLE = '{"source": {"$in": ["The Verge"]}}'
HELP_HINT = "add --help to the command to see what it takes"
BUG_HINT = "this is a bug in suffice; run `suffice --debug ...` and report the traceback"
NOT_BETTER = 3  # exit code: nothing was written, as the new gate is not better
BAD_PATHS = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP)  # no disk has such a file
settings = {"debug": False}


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The same command with readable errors, as JSON if it was called with --json."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> None:
        with handle_errors(json=options.get("json", False)):
            function(*arguments, **options)

    return run


@contextmanager
def handle_errors(*, json: bool = False) -> Iterator[None]:
    """Turn an error into `error:` and `hint:` lines and an exit code; with --debug let it fly."""
    try:
        yield
    except (KeyboardInterrupt, BrokenPipeError) as error:
        raise typer.Exit(130) from error
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if settings["debug"]:
            raise
        code, message, hint, status = _describe_error(error)
        if json:
            with suppress(OSError):  # stdout may be what failed
                print_json({"error": {"code": code, "message": message, "hint": hint}})
        say(f"error: {message}\nhint: {hint}")
        raise typer.Exit(status) from error


def _describe_error(error: Exception) -> tuple[str, str, str, int]:
    """Code, message, hint and exit code."""
    if isinstance(error, SufficeError):
        return error.code, error.message, error.hint or HELP_HINT, error.exit_code
    if isinstance(error, OSError) and error.errno in BAD_PATHS:
        message = f"{str(error.filename)[:80]}: {error.strerror}"
        return InputError.code, message, "give the path of a file or folder", 2
    if isinstance(error, OSError):
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return "disk", message, disk_hint(error), 1
    if isinstance(error, UnicodeDecodeError):  # of stdin: files are read with care
        return InputError.code, f"the input is not UTF-8 text: {error}", "convert it to UTF-8", 2
    return "internal", f"{type(error).__name__}: {error}", BUG_HINT, 1


def say(line: str) -> None:
    """One line on stderr."""
    print(line, file=sys.stderr, flush=True)


def say_skipped(bad: BadRecords) -> None:
    """With --skip-bad: how many records were skipped, and why the first one was."""
    if bad.count:
        say(f"skipped {bad.count:,} bad records, the first: {bad.examples[0]}")


def say_written(*paths: Path | None) -> None:
    for path in filter(None, paths):
        say(f"wrote {path}")


def typed_command() -> str:
    """The command line as it was typed."""
    return shlex.join(["suffice", *sys.argv[1:]])


def print_json(value: Any) -> None:
    """The result as JSON on stdout; undefined numbers are null, never NaN."""
    options: Any = {"indent": 2, "allow_nan": False, "default": str}
    text = json_module.dumps(value, **options, ensure_ascii=False)
    if not is_text(text):  # a file's name in another encoding
        text = json_module.dumps(value, **options)
    print(text, flush=True)


def show_tables(tables: Iterable[Any]) -> None:
    """Tables of suffice.evaluation.report; in a pipe as wide as they need, 160 to 240 columns."""
    from rich.console import Console
    from rich.measure import Measurement

    for table in tables:
        console, rendered = Console(), table.to_rich()
        if not console.is_terminal:
            # Columns of numbers do not wrap: a narrow table would cut its row names.
            options = console.options.update(width=240)
            console = Console(width=max(160, Measurement.get(console, options, rendered).maximum))
        console.print(rendered)


def wide_console() -> Console:
    """A console that is 120 columns wide in a pipe."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=120)


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[Progress]:
    """One bar per task on stderr, with the time left; nothing when quiet."""
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), disable=quiet) as bars:
        tasks: dict[str, progress.TaskID] = {}

        def advance(task: str, done: int, total: int | None = None) -> None:
            if task not in tasks:
                tasks[task] = bars.add_task(task, total=total)
            bars.update(tasks[task], completed=done, total=total)

        yield advance


def parse_list(text: str | None) -> list[str]:
    """A comma-separated option as a list."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def parse_numbers(text: str) -> list[int]:
    """A comma-separated option of positive integers, sorted, without duplicates."""
    try:
        numbers = sorted({int(word) for word in parse_list(text)})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        message = f"--k is {text!r}, expected whole numbers of 1 or more like 2,4,8"
        raise InputError(message, hint="for example --k 2,4,8")
    return numbers


def parse_day(text: str | None) -> date:
    """The date of --today; without one, the day it is."""
    try:
        return date.fromisoformat(text) if text else date.today()
    except ValueError as error:
        hint = "for example --today 2023-12-01"
        raise InputError(f"--today is {text!r}, expected a date", hint=hint) from error


def parse_filter(text: str | None) -> Any:
    """The JSON object of --filter, or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        value = json_module.loads(text)
    except (ValueError, RecursionError) as error:
        hint = f"for example {FILTER_EXAMPLE}"
        raise InputError(f"--filter is not valid JSON: {error}", hint=hint) from error
    if not isinstance(value, dict):
        raise InputError("--filter is not a JSON object", hint=f"for example {FILTER_EXAMPLE}")
    return value


def parse_plot_format(plot: Path | None) -> Literal["png", "svg"]:
    """The format of --plot by its suffix; called before the work that it shows."""
    suffix = plot.suffix.lower() if plot else ".png"
    if suffix not in (".png", ".svg"):
        message = f"--plot is {plot}, expected a name that ends in .png or .svg"
        raise InputError(message, hint="for example --plot picture.png")
    return "svg" if suffix == ".svg" else "png"


def write_plot(path: Path, plot: Plot, plot_format: Literal["png", "svg"]) -> None:
    """Draw a plot into a file."""
    from suffice.evaluation.report import draw_plot
    from suffice.storage import write_atomically

    write_atomically(path, draw_plot(plot, plot_format))
    say_written(path)


def parse_prices(text: str) -> Prices:
    """The option --prices: the price of a million tokens, in and out."""
    from suffice.answering.budget import Prices

    try:
        price_in, price_out = map(float, text.split(","))
        return Prices(price_in, price_out)
    except ValueError:  # InputError is one
        message = f"--prices is {text!r}, expected two numbers of at least 0"
        raise InputError(message, hint="for example --prices 0.15,0.60") from None
