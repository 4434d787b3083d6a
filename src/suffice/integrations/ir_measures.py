"""ir_measures: CompleteRecall, all or nothing. Importing this module registers it.

    import ir_measures, suffice.integrations.ir_measures
    measure = ir_measures.parse_measure("CompleteRecall@10")
    ir_measures.calc_aggregate([measure, ir_measures.nDCG @ 10], qrels, run)

1 if every document of at least this relevance is among the first k, else 0. Judged questions
without a relevant document count as 0, as in that package's Recall; `suffice evaluate` leaves them
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from suffice.errors import MissingExtraError
from suffice.evaluation.metrics import judge_rankings, per_question

try:
    import ir_measures
    from ir_measures import measures, providers, util
    from ir_measures.providers.base import Any as Anything
except ImportError as error:
    raise MissingExtraError("CompleteRecall for ir_measures", extra="ir-measures") from error

__all__ = ["CompleteRecall", "SufficeProvider"]

RELEVANT = "minimum relevance score to be considered relevant (inclusive)"


class _CompleteRecall(measures.Measure):
    """1 if every relevant document is among the first cutoff, else 0."""

    __name__ = "CompleteRecall"
    NAME = __name__
    PRETTY_NAME = "Complete recall at k"
    SHORT_DESC = "An indicator if all relevant documents are retrieved in the top k results."
    SUPPORTED_PARAMS = {  # noqa: RUF012 - as the package declares them
        "cutoff": measures.ParamInfo(dtype=int, required=True, desc="ranking cutoff threshold"),
        "rel": measures.ParamInfo(dtype=int, default=1, desc=RELEVANT),
    }


class _Evaluator(providers.Evaluator):
    def __init__(self, wanted: Iterable[Any], qrels: Any) -> None:
        self.qrels: dict[str, dict[str, int]] = util.QrelsConverter(qrels).as_dict_of_dict()
        super().__init__(list(wanted), set(self.qrels))

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        """A value per measure and question with a relevant document; others get the default."""
        ranked = util.RunConverter(run).as_sorteddict()
        for measure in self.measures:
            cutoff = measure["cutoff"]
            relevant = {
                question: {one for one, score in judged.items() if score >= measure["rel"]}
                for question, judged in self.qrels.items()
            }
            questions = [question for question in self.qrels if relevant[question]]
            found = [[one.doc_id for one in ranked.get(question, ())] for question in questions]
            judged = judge_rankings(
                found, [relevant[question] for question in questions], depth=cutoff
            )
            values = per_question(judged, f"complete@{cutoff}").tolist()
            for question, value in zip(questions, values, strict=True):
                yield ir_measures.Metric(query_id=question, measure=measure, value=value)


class SufficeProvider(providers.Provider):
    """Computes CompleteRecall with the function behind `suffice evaluate retrieval`."""

    NAME = "suffice"
    SUPPORTED_MEASURES = [  # noqa: RUF012 - as the package declares them
        _CompleteRecall(cutoff=Anything(required=True), rel=Anything())
    ]

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> Any:
        return _Evaluator(measures, qrels)


CompleteRecall = _CompleteRecall()
if CompleteRecall.NAME not in measures.registry:  # a module may be imported twice
    measures.register(CompleteRecall)
    ir_measures.DefaultPipeline.providers.append(providers.register(SufficeProvider()))
