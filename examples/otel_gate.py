"""OpenTelemetry: searches and verdicts in your traces. Here they are printed; in use, an exporter
sends them.

pip install 'suffice[otel]' opentelemetry-sdk
"""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

import suffice
from suffice.integrations.otel import TracedGate, retrieval_span


class Printed(SpanExporter):
    """Your exporter."""

    def export(self, spans) -> SpanExportResult:
        for span in spans:
            print(span.name, dict(span.attributes))
            for event in span.events:
                score = event.attributes["gen_ai.evaluation.score.value"]
                print(
                    f"  {event.name}: {event.attributes['gen_ai.evaluation.score.label']} "
                    f"{score:.2f}"
                )
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Printed()))
trace.set_tracer_provider(provider)


def search(question: str) -> list[dict]:
    """Your retriever."""
    return [
        {
            "title": "Metropolis (1927 film)",
            "text": "Metropolis is a 1927 German film directed by Fritz Lang.",
        }
    ]


gate = TracedGate(
    suffice.Gate.load()
)  # the line to add; texts=True also tells the question, ids and what is missing
question = "Where was the director of the film Metropolis born?"
with retrieval_span(question, source="films", k=2) as found:
    hits = found(search(question))
print(gate.check(question, hits).missing)
