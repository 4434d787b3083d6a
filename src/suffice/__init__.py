"""Is the evidence that you retrieved for this multi-hop question complete?

    lib = suffice.Library.build("library", documents)     # a corpus on disk, with its indexes
    hits = lib.search("Who taught the teacher of Ada?")    # one tuple of hits
    gate = suffice.Gate.load()                             # the shipped gate; or pass a path
    # ANSWER, EXPAND or ABSTAIN:
    print(gate.check("Who taught the teacher of Ada?", ["Ada was taught by …"]))
    print(suffice.ask("Who taught the teacher of Ada?", lib, gate).answer)  # None: it abstained

docs/reference/stability.md lists the public names and modules.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from suffice.types import Action, Document, Hit, Question, Trace, Verdict

if TYPE_CHECKING:
    from suffice.answering.ask import ask
    from suffice.answering.budget import Budget, Prices
    from suffice.answering.expand import ExpansionBudget, expand
    from suffice.answering.traces import (
        format_trace,
        read_traces,
        replay,
        save_traces,
        trace_to_json,
    )
    from suffice.gate.gate import Gate
    from suffice.gate.policy import Costs, Policy, choose_by_risk, min_questions_for
    from suffice.gate.training import LabelledQuestion
    from suffice.library import Library

__version__ = "0.4.0"
__all__ = [
    "Action",
    "Budget",
    "Costs",
    "Document",
    "ExpansionBudget",
    "Gate",
    "Hit",
    "LabelledQuestion",
    "Library",
    "Policy",
    "Prices",
    "Question",
    "Trace",
    "Verdict",
    "__version__",
    "ask",
    "choose_by_risk",
    "expand",
    "format_trace",
    "min_questions_for",
    "read_traces",
    "replay",
    "save_traces",
    "trace_to_json",
]

# Without this, onnxruntime (1.29 and later) sends usage data to its vendor on first import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# Module -> names that are imported from it on first use, so that `import suffice` stays fast.
_LAZY = {
    "suffice.answering.ask": "ask",
    "suffice.answering.budget": "Budget Prices",
    "suffice.answering.expand": "ExpansionBudget expand",
    "suffice.answering.traces": "format_trace read_traces replay save_traces trace_to_json",
    "suffice.gate.gate": "Gate",
    "suffice.gate.policy": "Costs Policy choose_by_risk min_questions_for",
    "suffice.gate.training": "LabelledQuestion",
    "suffice.library": "Library",
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names.split():
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'suffice' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
