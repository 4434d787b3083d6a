"""The reference page of the settings: environment variables, the service's, and what may be spent on a question."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any

import typer

from docs.generators.markdown import table
from docs.generators.python_api import SOURCE
from suffice.answering.budget import Budget, Prices
from suffice.answering.expand import ExpansionBudget
from suffice.cli.app import app
from suffice.gate.policy import Costs
from suffice.service.settings import METRICS_DIR_VARIABLE, SETTINGS_VARIABLE, Limits, Settings

# A test fails when the package reads a variable that is not here.
VARIABLES = {
    "OPENAI_API_KEY": ("the key for `--model`'s server; never written anywhere", "none"),
    "OPENAI_BASE_URL": (
        "its address, where `--base-url` is not given; read by the client",
        "OpenAI's own",
    ),
    "QDRANT_API_KEY": ("the key for `qdrant://` addresses", "none"),
    "SUFFICE_KEYS": (
        "the file of keys, for `suffice serve` and `suffice serve key`",
        "none: only this machine is served",
    ),
    "SUFFICE_CACHE": (
        "where what is derived from a library on Qdrant is kept",
        "`suffice` in XDG_CACHE_HOME",
    ),
    "XDG_CACHE_HOME": ("the user's cache, where SUFFICE_CACHE is not set", "`~/.cache`"),
    "OMP_NUM_THREADS": (
        "threads of the numerical libraries; `suffice serve` sets 1 a worker where it is not set",
        "all cores",
    ),
    "MALLOC_ARENA_MAX": (
        "pools of freed memory; `suffice serve` sets 2 a worker where it is not set",
        "the C library's own",
    ),
    "ORT_DISABLE_TELEMETRY": (
        "`import suffice` sets 1 where it is not set: onnxruntime tells its maker nothing",
        "1",
    ),
    SETTINGS_VARIABLE: ("set by `suffice serve` for its workers; not for people", ""),
    METRICS_DIR_VARIABLE: (
        "set by `suffice serve` with several workers, for prometheus-client",
        "",
    ),
}
DEVELOPMENT_VARIABLES = {
    "SUFFICE_DATA": (
        "the folder of real data sets: tests, benchmarks, `make results`",
        "`../shared/data`",
    ),
    "QDRANT_URL": (
        "servers for tests and benchmarks, `host:port` with commas",
        "started where they can be had",
    ),
    "CI": ("set: a live test that is skipped fails", ""),
}


def variables_read() -> set[str]:
    """Every variable that the source asks for, constants looked up."""
    found = set()
    for file in SOURCE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        asked = re.findall(r"environ(?:\.get\(|\.setdefault\(|\[)([\w\"]+)|envvar=([\w\"]+)", text)
        asked += [(name, "") for name in re.findall(r"(\w+) (?:not )?in os\.environ", text)]
        for name in filter(None, (one for pair in asked for one in pair)):
            module = ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts)
            found.add(
                name.strip('"') if name.startswith('"') else getattr(import_module(module), name)
            )
    return found


def page() -> str:
    variables = [(f"`{name}`", *told) for name, told in VARIABLES.items()]
    working = [(f"`{name}`", *told) for name, told in DEVELOPMENT_VARIABLES.items()]
    return "\n".join(
        [
            "# Settings\n",
            "There is no settings file: what a command does stands in its line, and what a function does in its arguments.\n",
            "## Environment variables\n",
            table(("variable", "meaning", "without it"), variables),
            "For work on suffice itself:\n",
            table(("variable", "meaning", "without it"), working),
            "## The service\n",
            "By the options of [`suffice serve`](commands.md), or as `suffice.service.settings.Settings`.\n",
            _record(Settings, _options("serve")),
            "## Its limits\n",
            "What one worker takes in, by `--limit NAME=NUMBER`.\n",
            _record(Limits),
            "## What may be spent on a question\n",
            f"`suffice ask`, `suffice.ask(budget=...)`. {_said(Budget)}\n",
            _record(Budget, _options("ask")),
            f"Prices: {_said(Prices)}\n",
            _record(Prices),
            "## How far a search may go on\n",
            f"`Library.complete(budget=...)`. {_said(ExpansionBudget)}\n",
            _record(ExpansionBudget),
            "## What mistakes cost\n",
            f"`--costs`, `Gate.fit(policy='cost', costs=...)`. {_said(Costs)}\n",
            _record(Costs),
        ]
    )


def _said(record: type) -> str:
    return " ".join((inspect.getdoc(record) or "").split())


def _options(name: str) -> dict[str, str]:
    """Option -> what its help says."""
    command: Any = typer.main.get_command(app)
    return {one.name: getattr(one, "help", None) or "" for one in command.commands[name].params}


def _record(record: Any, helps: dict[str, str] | None = None) -> str:
    """A record's fields with defaults; the meaning is the comment behind the field, or the help of the option so named."""
    comments = dict(
        re.findall(r"^    (\w+): .*?  # (.*)$", inspect.getsource(record), re.MULTILINE)
    )
    renamed = {"gates": "gate", "model_seconds": "timeout_s"}
    rows = []
    for one in fields(record):
        made = one.default_factory() if one.default_factory is not MISSING else one.default
        default = "see below" if one.name in ("limits", "prices") else f"`{made!r}`"
        helped = (helps or {}).get(renamed.get(one.name, one.name), "")
        rows.append((f"`{one.name}`", default, comments.get(one.name) or helped))
    return table(("setting", "default", "meaning"), rows)
