"""OpenTelemetry: retrievals and verdicts as spans with the attributes that tracing tools know.

    gate = TracedGate(suffice.Gate.load())                      a gate that records every verdict
    with retrieval_span(question, source="wiki", k=10) as found:
        hits = found(search(question))

Names follow the GenAI semantic conventions of SCHEMA_URL. They are copied here because they are not
stable, and a package upgrade must not rename your dashboards. Attributes that the conventions lack
are `suffice.*`. Texts (the question, document ids, missing names, reasons, quotes) are recorded
only with `texts=True`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from suffice.answering.expand import check_gate, gate_for_expansion
from suffice.errors import MissingExtraError, known_arguments
from suffice.gate.hits import normalize_hits
from suffice.protocols import GateLike
from suffice.types import Hit, Verdict

try:
    from opentelemetry import trace
except ImportError as error:
    raise MissingExtraError("OpenTelemetry spans", extra="otel") from error

__all__ = ["SCHEMA_URL", "TracedGate", "evaluation_attributes", "retrieval_span"]

# The last release with the GenAI conventions, which have moved since.
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"
EVALUATION = "evidence_completeness"
EVENT = "gen_ai.evaluation.result"
T = TypeVar("T")
Attributes = dict[str, str | bool | int | float | Sequence[str]]


def evaluation_attributes(verdict: Verdict, *, texts: bool = False) -> Attributes:
    """A verdict in the conventions' terms: the probability is the score, the action its label."""
    attributes: Attributes = {
        "gen_ai.evaluation.name": EVALUATION,
        "gen_ai.evaluation.score.value": verdict.p_complete,
        "gen_ai.evaluation.score.label": str(verdict.action),
        "suffice.p_complete.low": verdict.estimate.low,
        "suffice.p_complete.high": verdict.estimate.high,
        "suffice.missing.count": len(verdict.missing),
        "suffice.familiarity": verdict.familiarity,
        "suffice.notes": list(verdict.notes),
    }
    if (judged := verdict.judged) is not None:
        attributes["suffice.judge.name"] = judged.judge
        attributes["suffice.judge.p_before"] = judged.p_before
        attributes["suffice.judge.changed"] = judged.action_before is not verdict.action
        if judged.p_judge is not None:
            attributes["suffice.judge.p"] = judged.p_judge
    if texts:
        reasons = "; ".join(reason.words for reason in verdict.reasons)
        attributes["gen_ai.evaluation.explanation"] = reasons
        attributes["suffice.missing"] = list(verdict.missing)
        attributes["suffice.next_queries"] = list(verdict.next_queries)
        attributes["suffice.unfamiliar"] = list(verdict.unfamiliar)
        attributes["suffice.quotes"] = [one.text for one in verdict.quotes]
    return attributes


@contextmanager
def retrieval_span(
    question: str,
    *,
    source: str | None = None,
    k: int | None = None,
    texts: bool = False,
    tracer: Any = None,
) -> Iterator[Callable[[list[T]], list[T]]]:
    """A span around a search. Pass the hits, in any shape, to the yielded function."""
    attributes: Attributes = {"gen_ai.operation.name": "retrieval"}
    if source is not None:
        attributes["gen_ai.data_source.id"] = source
    if k is not None:
        attributes["gen_ai.request.top_k"] = float(k)
    if texts:
        attributes["gen_ai.retrieval.query.text"] = question
    name = "retrieval" if source is None else f"retrieval {source}"
    options = {"kind": trace.SpanKind.CLIENT, "attributes": attributes}
    with (tracer or _tracer()).start_as_current_span(name, **options) as span:

        def found(hits: list[T]) -> list[T]:
            span.set_attribute("suffice.hits.count", len(hits))
            if texts and span.is_recording():
                documents = _documents_json(normalize_hits(question, hits).evidence.hits)
                span.set_attribute("gen_ai.retrieval.documents", documents)
            return hits

        yield found


def _documents_json(hits: Iterable[Hit]) -> str:
    """Ids and scores as JSON: a span cannot contain records."""
    scores = [(hit.doc_id, {} if hit.score is None else {"score": hit.score}) for hit in hits]
    return json.dumps([{"id": doc_id, **score} for doc_id, score in scores], ensure_ascii=False)


class TracedGate:
    """A gate that records each `check` and each explained `check_batch` as a span.

    Verdicts without explanation are steps of a search, often hundreds, and are not recorded.
    """

    @known_arguments
    def __init__(self, gate: GateLike, *, texts: bool = False, tracer: Any = None) -> None:
        check_gate(gate)
        self.gate, self.texts = gate, texts
        self._tracer = tracer or _tracer()

    def __getattr__(self, name: str) -> Any:
        if name == "gate":  # not set yet while the object is being copied
            raise AttributeError(name)
        return getattr(self.gate, name)

    def for_expansion(self) -> TracedGate:
        """The gate for expansion, also traced; unchanged if it has no such calibration."""
        calibrated = gate_for_expansion(self.gate)
        if calibrated is self.gate:
            return self
        return TracedGate(calibrated, texts=self.texts, tracer=self._tracer)

    def check(self, question: str, hits: Iterable[Any], **options: Any) -> Verdict:
        return self.check_batch([(question, hits)], **options)[0]

    def check_batch(
        self, pairs: Iterable[Any], *, explain: bool = True, **options: Any
    ) -> list[Verdict]:
        if not explain:
            return self.gate.check_batch(pairs, explain=False, **options)
        with self._tracer.start_as_current_span("suffice.check") as span:
            verdicts = self.gate.check_batch(pairs, explain=True, **options)
            span.set_attribute("suffice.questions.count", len(verdicts))
            if span.is_recording():
                for verdict in verdicts:
                    span.add_event(EVENT, evaluation_attributes(verdict, texts=self.texts))
            return verdicts


def _tracer() -> Any:
    return trace.get_tracer("suffice", schema_url=SCHEMA_URL)
