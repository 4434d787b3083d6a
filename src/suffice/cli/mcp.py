"""`suffice mcp`: the gate as tools for a language model, over stdio."""

from __future__ import annotations

from suffice.cli.options import GateName, LibraryOption, Preset
from suffice.cli.output import handle_errors, say


def mcp(
    library: LibraryOption = None,
    gate: GateName = "default",
    preset: Preset = "fast",
) -> None:
    """Serve check_context, and with --library complete_context, to an MCP client over stdin and stdout."""
    with handle_errors():
        from contextlib import nullcontext

        from suffice.gate.gate_ref import open_gate
        from suffice.integrations.mcp import create_server
        from suffice.library import Library

        judge = open_gate(gate, preset)
        with Library.open(library) if library else nullcontext() as opened:
            tools = "check_context and complete_context" if opened is not None else "check_context"
            say(
                f"serving {tools} over stdio; an MCP client starts this command itself, end it with Ctrl-C"
            )
            create_server(judge, opened).run()
