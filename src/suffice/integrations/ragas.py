"""ragas: evidence completeness as a metric, without a language model.

    evaluate(EvaluationDataset.from_list(rows), metrics=[EvidenceCompleteness()])

The score of a row is the probability that its `retrieved_contexts` are all that `user_input` needs.
An empty list scores about 0 and is not an error.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from suffice.errors import MissingExtraError
from suffice.integrations.common import load_gate
from suffice.integrations.ragas_rows import question_and_hits

try:
    from ragas.metrics.base import MetricType, SingleTurnMetric
except ModuleNotFoundError as error:
    if error.name != "ragas":  # installed, but one of its dependencies is not: that error says more
        raise
    raise MissingExtraError("the metric for ragas", extra="ragas") from error

__all__ = ["EvidenceCompleteness"]


@dataclass
class EvidenceCompleteness(SingleTurnMetric):
    """`gate` is a Gate, the path of a saved one, or None for the shipped one."""

    name: str = "evidence_completeness"
    _required_columns: dict[Any, set[str]] = field(
        default_factory=lambda: {MetricType.SINGLE_TURN: {"user_input", "retrieved_contexts"}}
    )
    gate: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.gate = load_gate(self.gate)

    def init(self, run_config: Any) -> None:
        """Does nothing: there is no model to set up."""

    async def _single_turn_ascore(self, sample: Any, callbacks: Any) -> float:
        pairs, check = [question_and_hits(sample)], self.gate.check_batch
        verdicts = await asyncio.to_thread(check, pairs, explain=False)
        return float(verdicts[0].p_complete)

    async def _ascore(self, row: dict[str, Any], callbacks: Any) -> float:
        return await self._single_turn_ascore(row, callbacks)
