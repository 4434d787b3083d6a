"""What the real OpenTelemetry SDK is told, and what it is not."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.bridge_question import DIRECTOR, FILM, QUESTION, WRONG

pytest.importorskip(
    "opentelemetry.sdk",
    reason="the SDK is not installed: pip install 'suffice[otel]' opentelemetry-sdk",
)

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as known

from suffice.answering.expand import ExpansionBudget
from suffice.errors import InputError
from suffice.gate.gate import Gate
from suffice.integrations.common import search_and_check
from suffice.integrations.otel import SCHEMA_URL, TracedGate, evaluation_attributes, retrieval_span
from suffice.types import Quote

SHORT = [{"title": title, "text": text} for title, text in (FILM, WRONG)]


class Heard:
    """A tracer, and the spans that it has ended."""

    def __init__(self) -> None:
        provider, self.kept = TracerProvider(), InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self.kept))
        self.tracer = provider.get_tracer("suffice", schema_url=SCHEMA_URL)

    def spans(self) -> list[Any]:
        return list(self.kept.get_finished_spans())


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate.load(preset="fast")


def test_a_verdict_is_an_evaluation_event_without_any_text(gate: Gate, heard: Heard) -> None:
    verdict = TracedGate(gate, tracer=heard.tracer).check(QUESTION, SHORT)
    assert verdict == gate.check(QUESTION, SHORT)
    (span,) = heard.spans()
    (event,) = span.events
    assert (span.name, event.name) == ("suffice.check", "gen_ai.evaluation.result")
    assert event.attributes["gen_ai.evaluation.score.value"] == verdict.p_complete
    assert event.attributes["gen_ai.evaluation.score.label"] == str(verdict.action) != "answer"
    assert event.attributes["suffice.missing.count"] == len(verdict.missing) == 1
    assert event.attributes["suffice.familiarity"] == verdict.familiarity
    assert "suffice.unfamiliar" not in event.attributes
    assert "suffice.quotes" not in event.attributes
    assert "Lang" not in span.to_json()
    assert "Metropolis" not in span.to_json()


def test_texts_are_recorded_only_on_request(gate: Gate, heard: Heard) -> None:
    verdict = TracedGate(gate, texts=True, tracer=heard.tracer).check(QUESTION, SHORT)
    (event,) = heard.spans()[0].events
    assert event.attributes["suffice.missing"] == ("Fritz Lang",)
    assert event.attributes["suffice.unfamiliar"] == verdict.unfamiliar
    quoted = replace(verdict, quotes=(Quote("lang", 0.9, DIRECTOR[1]),))
    assert evaluation_attributes(quoted, texts=True)["suffice.quotes"] == [DIRECTOR[1]]
    assert DIRECTOR[1] not in str(evaluation_attributes(quoted))
    assert event.attributes["gen_ai.evaluation.explanation"].startswith(verdict.reasons[0].words)


def test_a_search_is_a_retrieval_span_and_the_check_its_child(gate: Gate, heard: Heard) -> None:
    hits = [("film", FILM[1], 2.0), ("director", DIRECTOR[1], None)]
    with retrieval_span(QUESTION, source="wiki", k=2, texts=True, tracer=heard.tracer) as found:
        TracedGate(gate, tracer=heard.tracer).check(QUESTION, found(hits))
    inner, outer = heard.spans()
    assert inner.parent.span_id == outer.context.span_id
    assert (outer.name, outer.attributes["gen_ai.operation.name"]) == (
        "retrieval wiki",
        "retrieval",
    )
    assert (
        outer.attributes["gen_ai.data_source.id"],
        outer.attributes["gen_ai.request.top_k"],
    ) == ("wiki", 2.0)
    assert outer.attributes["gen_ai.retrieval.query.text"] == QUESTION
    documents = json.loads(outer.attributes["gen_ai.retrieval.documents"])
    assert documents == [{"id": "film", "score": 2.0}, {"id": "director"}]
    assert outer.instrumentation_scope.schema_url == SCHEMA_URL


def test_without_texts_a_search_tells_only_how_many(heard: Heard) -> None:
    for hits in ([], SHORT):
        with retrieval_span(QUESTION, tracer=heard.tracer) as found:
            assert found(hits) is hits
    assert [span.attributes["suffice.hits.count"] for span in heard.spans()] == [0, 2]
    assert "gen_ai.retrieval.query.text" not in heard.spans()[0].attributes


def test_the_names_are_those_of_the_conventions(gate: Gate) -> None:
    written = {name for name in vars(known).values() if isinstance(name, str)}
    attributes = evaluation_attributes(gate.check(QUESTION, SHORT), texts=True)
    assert {name for name in attributes if name.startswith("gen_ai.")} <= written
    for name in (
        "operation.name",
        "data_source.id",
        "request.top_k",
        "retrieval.query.text",
        "retrieval.documents",
    ):
        assert f"gen_ai.{name}" in written


def test_the_steps_of_a_search_are_not_told(gate: Gate, heard: Heard) -> None:
    traced = TracedGate(gate, tracer=heard.tracer)
    search_and_check(
        QUESTION, lambda queries: [SHORT] * len(queries), traced, budget=ExpansionBudget()
    )
    assert 0 < len(heard.spans()) < 20
    assert all(len(span.events) == 1 for span in heard.spans())
    assert isinstance(traced.for_expansion(), TracedGate)  # or nothing of it would be told


def test_an_error_is_on_the_span_and_reaches_the_caller(gate: Gate, heard: Heard) -> None:
    with pytest.raises(InputError):
        TracedGate(gate, tracer=heard.tracer).check(QUESTION, [object()])
    assert heard.spans()[0].status.is_ok is False


def test_it_stands_in_for_a_gate_and_is_silent_without_an_sdk(gate: Gate) -> None:
    traced = TracedGate(gate)
    assert traced.card == gate.card
    assert traced.probabilities([(QUESTION, SHORT)]).shape == (1,)
    assert traced.check_batch([]) == []
    assert traced.check(QUESTION, SHORT, rounds_left=0).action == "abstain"
    assert copy.copy(traced).texts is False
