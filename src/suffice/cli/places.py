"""Where a command does its work: in this process, or on the workers of a scheduler."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.cli.manners import say

if TYPE_CHECKING:
    from suffice.engines.batch import Batch


def open_batch(scheduler: str | None, blocks: Path | None) -> Batch:
    """The place that the options name; the blocks that are finished there stand in the folder until the command is through."""
    from suffice.engines.batch import Batch

    return Batch(scheduler, keep=blocks, tell=say, again=shlex.join(["suffice", *sys.argv[1:]]))
