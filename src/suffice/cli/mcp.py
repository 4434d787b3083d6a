"""`suffice mcp`: the gate as tools for a language model, over stdio."""

from __future__ import annotations

from suffice.cli.manners import friendly_errors, say
from suffice.cli.options import GateName, Grade, LibraryOption


def mcp(
    library: LibraryOption = None,
    gate: GateName = "default",
    grade: Grade = "fast",
) -> None:
    """Serve check_context, and with --library complete_context, to an MCP client over stdin and stdout."""
    with friendly_errors():
        from contextlib import nullcontext

        from suffice.evaluate.gate_at import open_gate
        from suffice.integrations.mcp import server
        from suffice.library import Library

        judge = open_gate(gate, grade)
        with Library.open(library) if library else nullcontext() as opened:
            tools = "check_context and complete_context" if opened is not None else "check_context"
            say(f"serving {tools} over stdio; an MCP client starts this command itself, end it with Ctrl-C")
            server(judge, opened).run()
