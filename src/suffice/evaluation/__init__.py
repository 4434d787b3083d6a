"""Tools for evaluation: metrics, runs, comparisons, reports and thresholds for CI.

The names below are public; the modules behind them may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suffice.evaluation.adaptation import Adaptation, adapt_to_labels
    from suffice.evaluation.batch_check import BlockResult, check_job, read_log_lines
    from suffice.evaluation.searching import (
        RetrievedDataset,
        RetrievedQuestion,
        retrieve_dataset,
        to_labelled_question,
    )
    from suffice.evaluation.verdict_log import VerdictLog
    from suffice.gate.gate_ref import GateRef
    from suffice.jobs import split_into_blocks
    from suffice.storage import BadRecords

__all__ = [
    "Adaptation",
    "BadRecords",
    "BlockResult",
    "GateRef",
    "RetrievedDataset",
    "RetrievedQuestion",
    "VerdictLog",
    "adapt_to_labels",
    "check_job",
    "read_log_lines",
    "retrieve_dataset",
    "split_into_blocks",
    "to_labelled_question",
]

# Module -> names imported from it on first use, to keep `import suffice.evaluation` fast.
_LAZY = {
    "suffice.evaluation.adaptation": "Adaptation adapt_to_labels",
    "suffice.evaluation.batch_check": "BlockResult check_job read_log_lines",
    "suffice.evaluation.searching": (
        "RetrievedDataset RetrievedQuestion retrieve_dataset to_labelled_question"
    ),
    "suffice.evaluation.verdict_log": "VerdictLog",
    "suffice.gate.gate_ref": "GateRef",
    "suffice.jobs": "split_into_blocks",
    "suffice.storage": "BadRecords",
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names.split():
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'suffice.evaluation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
