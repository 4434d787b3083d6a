"""OpenTelemetry: what was retrieved and what the gate said of it, in the attributes that tracing tools know.

    gate = TracedGate(suffice.Gate.load())                      a gate like any other, which tells of every verdict
    with retrieval_span(question, source="wiki", k=10) as found:
        hits = found(search(question))

Names are those of the GenAI semantic conventions as of SCHEMA, written down here: they are not stable yet, and a newer release
of a package must not rename anybody's dashboards. What the conventions have no word for is `suffice.*`. Texts (the question,
ids of documents, names that are missing, reasons) are told only with `texts=True`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from suffice.errors import MissingExtraError
from suffice.gate.hits import normalize_hits
from suffice.protocols import GateLike
from suffice.types import Hit, Verdict

try:
    from opentelemetry import trace
except ImportError as error:
    raise MissingExtraError("telling OpenTelemetry", extra="otel") from error

__all__ = ["SCHEMA_URL", "TracedGate", "evaluation_attributes", "retrieval_span"]

SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"  # the last release that held the GenAI conventions; they have moved out since
EVALUATION = "evidence_completeness"
EVENT = "gen_ai.evaluation.result"
T = TypeVar("T")
Attributes = dict[str, str | int | float | Sequence[str]]


def evaluation_attributes(verdict: Verdict, *, texts: bool = False) -> Attributes:
    """A verdict in the conventions' words: the probability is the score, the action its label."""
    told: Attributes = {
        "gen_ai.evaluation.name": EVALUATION,
        "gen_ai.evaluation.score.value": verdict.p_complete,
        "gen_ai.evaluation.score.label": str(verdict.action),
        "suffice.p_complete.low": verdict.estimate.low,
        "suffice.p_complete.high": verdict.estimate.high,
        "suffice.missing.count": len(verdict.missing),
    }
    if texts:
        told["gen_ai.evaluation.explanation"] = "; ".join(
            reason.words for reason in verdict.reasons
        )
        told["suffice.missing"] = list(verdict.missing)
        told["suffice.next_queries"] = list(verdict.next_queries)
    return told


@contextmanager
def retrieval_span(
    question: str,
    *,
    source: str | None = None,
    k: int | None = None,
    texts: bool = False,
    tracer: Any = None,
) -> Iterator[Callable[[list[T]], list[T]]]:
    """A span around a search. What it gives is called with the hits, in any shape that a gate takes, and hands them back."""
    told: Attributes = {"gen_ai.operation.name": "retrieval"}
    if source is not None:
        told["gen_ai.data_source.id"] = source
    if k is not None:
        told["gen_ai.request.top_k"] = float(k)
    if texts:
        told["gen_ai.retrieval.query.text"] = question
    name = "retrieval" if source is None else f"retrieval {source}"
    with (tracer or _tracer()).start_as_current_span(
        name, kind=trace.SpanKind.CLIENT, attributes=told
    ) as span:

        def found(hits: list[T]) -> list[T]:
            span.set_attribute("suffice.hits.count", len(hits))
            if texts and span.is_recording():
                span.set_attribute(
                    "gen_ai.retrieval.documents",
                    _documents_json(normalize_hits(question, hits).evidence.hits),
                )
            return hits

        yield found


def _documents_json(hits: Iterable[Hit]) -> str:
    """Ids and scores as JSON, which is what a span can hold."""
    told = [
        {"id": hit.doc_id, **({} if hit.score is None else {"score": hit.score})} for hit in hits
    ]
    return json.dumps(told, ensure_ascii=False)


class TracedGate:
    """A gate whose every `check` and explained `check_batch` is a span, with one event a verdict.

    Verdicts without explanation are steps of a search, hundreds of them; they are not told.
    """

    def __init__(self, gate: GateLike, *, texts: bool = False, tracer: Any = None) -> None:
        self.gate, self.texts = gate, texts
        self._tracer = tracer or _tracer()

    def __getattr__(self, name: str) -> Any:
        if name == "gate":  # not there yet: a copy is being made
            raise AttributeError(name)
        return getattr(self.gate, name)

    def check(
        self,
        question: str,
        hits: Iterable[Any],
        *,
        others: Iterable[Iterable[Any]] = (),
        **options: Any,
    ) -> Verdict:
        (verdict,) = self.check_batch(
            [(question, hits, others) if others else (question, hits)], **options
        )
        return verdict

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
