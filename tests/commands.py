"""A command as a person types it, without a shell: what the tests of the command line share."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from suffice.cli.app import app


def suffice(*words: object, given: str | None = None, wide: bool = False) -> Result:
    """`suffice` with these words; `given` comes on stdin, `wide` is a terminal that cuts no table."""
    return CliRunner().invoke(
        app, [str(word) for word in words], input=given, env={"COLUMNS": "160"} if wide else None
    )


def as_json(result: Result) -> Any:
    """What a command that went well printed with --json."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
