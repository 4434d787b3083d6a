"""The command line: `suffice --help`. Each command imports what it needs, so help is fast."""

from suffice.cli.app import main

__all__ = ["main"]
