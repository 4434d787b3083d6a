"""`suffice mcp`: the gate as tools for a language model, over stdio."""

from __future__ import annotations

from contextlib import nullcontext

from suffice.cli import options as opt
from suffice.cli.loaders import open_gate, open_library, verdict_log
from suffice.cli.output import command, say


@command
def mcp(
    library: opt.LibraryOption = None,
    gate: opt.GateName = "default",
    preset: opt.Preset = "standard",
    judge: opt.JudgeAddress = None,
    shadow: opt.VerdictLogFile = None,
    shadow_texts: opt.VerdictLogTexts = False,
) -> None:
    """Serve the gate to an MCP client over stdio."""
    from suffice.integrations.mcp import create_server

    log = verdict_log(shadow, shadow_texts)
    loaded = open_gate(gate, preset, judge)
    with open_library(library) if library else nullcontext() as opened:
        tools = "check_context and complete_context" if opened is not None else "check_context"
        say(f"serving {tools} over stdio; MCP clients start this command; stop it with Ctrl-C")
        create_server(loaded, opened, log=log).run()
