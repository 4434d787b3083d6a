"""A command as a person types it, without a shell: what the tests of the command line share."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from suffice.cli.app import app


def suffice(*words: object, given: str | None = None, wide: bool = False) -> Result:
    """`suffice` with these words; `given` comes on stdin, `wide` is a terminal that cuts no table."""
    return CliRunner().invoke(
        app, [str(word) for word in words], input=given, env={"COLUMNS": "160"} if wide else None
    )


def typed(line: str) -> Result:
    """The same, from the line that is typed."""
    return suffice(*shlex.split(line))


def as_json(result: Result) -> Any:
    """What a command that went well printed with --json."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def write_lines(path: Path, records: Iterable[Any]) -> Path:
    """A file with a JSON value a line."""
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path
