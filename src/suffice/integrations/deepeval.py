"""deepeval: evidence completeness as a metric, without a language model.

    case = LLMTestCase(input=question, actual_output="", retrieval_context=texts)
    evaluate([case], [EvidenceCompleteness()])

The score is the probability that the retrieved texts are complete. A test case passes if the score
is at least `threshold`; without one, the gate's policy decides. An empty list fails but is not an
error.
"""

from __future__ import annotations

import asyncio
from typing import Any

from suffice.errors import MissingExtraError, known_arguments
from suffice.integrations.common import load_gate
from suffice.integrations.ragas_rows import question_and_hits
from suffice.types import Action, Verdict

try:
    from deepeval.errors import MissingTestCaseParamsError
    from deepeval.metrics import BaseMetric
except ImportError as error:
    raise MissingExtraError("the metric for deepeval", extra="deepeval") from error

__all__ = ["EvidenceCompleteness"]


class EvidenceCompleteness(BaseMetric):
    """`gate` is a Gate, the path of a saved one, or None for the shipped one."""

    @known_arguments
    def __init__(
        self, threshold: float | None = None, gate: Any = None, *, include_reason: bool = True
    ) -> None:
        self._gate = load_gate(gate)
        self._by_policy = threshold is None
        if threshold is None:
            threshold = getattr(getattr(self._gate, "policy", None), "answer_at", None)
        self.threshold = 1.0 if threshold is None else threshold  # deepeval shows it
        self.include_reason = include_reason
        self.evaluation_cost = 0.0
        self.verdict: Verdict | None = None

    def measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
        self.error = None
        if test_case.retrieval_context is None:
            self.error = f"'retrieval_context' cannot be None for the '{self.__name__}' metric"
            raise MissingTestCaseParamsError(self.error)
        (self.verdict,) = self._gate.check_batch([question_and_hits(test_case)])
        self.score = self.verdict.p_complete
        self.reason = _reason(self.verdict) if self.include_reason else None
        self.success = self.is_successful()
        return self.score

    async def a_measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
        return await asyncio.to_thread(self.measure, test_case)

    def is_successful(self) -> bool:
        if self.error is not None or self.verdict is None:
            self.success = False
        elif self._by_policy:
            self.success = self.verdict.action is Action.ANSWER
        else:
            self.success = self.verdict.p_complete >= self.threshold
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Evidence Completeness"


def _reason(verdict: Verdict) -> str:
    missing = f"missing: {', '.join(verdict.missing)}. " if verdict.missing else ""
    return missing + "; ".join(reason.words for reason in verdict.reasons)
