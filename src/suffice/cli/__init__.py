"""The command line: `suffice --help`. Heavy parts are imported by the command that needs them, so that help is quick."""

from suffice.cli.app import main

__all__ = ["main"]
