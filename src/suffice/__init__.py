"""Is the evidence that was retrieved for this multi-hop question complete?

    lib = suffice.Library.build("library", documents)     # a corpus on disk, with its indexes
    hits = lib.search("Who taught the teacher of Ada?")    # one tuple of hits
    gate = suffice.Gate.load()                             # the gate that ships with the package; or a path
    print(gate.check("Who taught the teacher of Ada?", ["Ada was taught by …"]))    # a Verdict: ANSWER, EXPAND or ABSTAIN
    print(suffice.ask("Who taught the teacher of Ada?", lib, gate).answer)    # plan, look, read, review; None: it abstained

The names below are all there is to learn; the rooms behind them are described in docs/story.md.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from suffice.types import Action, Document, Hit, Question, Trace, Verdict

if TYPE_CHECKING:
    from suffice.answering.ask import ask
    from suffice.gate.gate import Gate
    from suffice.gate.training import LabelledQuestion
    from suffice.library import Library

__version__ = "0.2.0"
__all__ = [
    "Action",
    "Document",
    "Gate",
    "Hit",
    "LabelledQuestion",
    "Library",
    "Question",
    "Trace",
    "Verdict",
    "__version__",
    "ask",
]

# onnxruntime from 1.29 on tells its maker about the process that uses it, unless this stands there when it is first imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# Heavy rooms are opened when their door is first used, so that `import suffice` stays quick.
_DOORS = {
    "Gate": "suffice.gate.gate",
    "Labelled": "suffice.gate.training",
    "Library": "suffice.library",
    "ask": "suffice.answering.ask",
}


def __getattr__(name: str) -> Any:
    if name in _DOORS:
        from importlib import import_module

        return getattr(import_module(_DOORS[name]), name)
    raise AttributeError(f"module 'suffice' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
