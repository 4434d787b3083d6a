"""Whether to trust an answer: is it right, and do the sentences it cites say so?

The gate's reader says itself how likely its answer is right. For a language model's answer:

    confidence = w(hops) * accuracy + (1 - w(hops)) * credibility

The model judges the accuracy, and whether the sentences state the answer (attributable), leave it
open (extrapolatory) or contradict it. w falls logistically with the question's hops: the longer the
chain, the more the citations count. An answer whose words no cited sentence has is never
attributable, whatever the model says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from suffice.answering.answer_type import COUNTRIES, country_key
from suffice.answering.budget import MeteredModel
from suffice.answering.prompting import object_schema, parse_json_object, render_prompt
from suffice.answering.span_reader import Passage, Reading, SpanReader
from suffice.lexicon import STOP_WORDS
from suffice.text import title_key, title_words
from suffice.types import Review, Support

CREDIBILITY: Mapping[Support, float] = {
    Support.ATTRIBUTABLE: 1.0,
    Support.EXTRAPOLATORY: 0.5,
    Support.CONTRADICTORY: 0.0,
}
MIDPOINT_HOPS, SLOPE = 2.5, 1.0  # hops at which both weigh the same, and the slope there
NO_REVIEW = Review(0.0, 0.0, Support.EXTRAPOLATORY, "none")  # if there is no answer
_STATES = list(Support)

REVIEW_SCHEMA = object_schema(
    accuracy={"type": "number", "minimum": 0, "maximum": 1},
    support={"type": "string", "enum": [str(one) for one in Support]},
)


def accuracy_weight(hops: float) -> float:
    """0.82 for one hop, 0.62 for two, 0.38 for three, 0.18 for four."""
    return 1 / (1 + math.exp(SLOPE * (min(max(hops, 0.0), 50.0) - MIDPOINT_HOPS)))


def review(
    question: str,
    reading: Reading,
    passages: Sequence[Passage],
    *,
    hops: float,
    meter: MeteredModel | None = None,
    weight: float | None = None,
) -> Review:
    """The confidence in a reading. `weight` overrides the accuracy weight for the hops."""
    if reading.answer is None:
        return NO_REVIEW
    if reading.by == SpanReader.name:  # its score is a probability, and the sentence has the answer
        support = Support.CONTRADICTORY if reading.rivals else Support.ATTRIBUTABLE
        return Review(reading.score, reading.if_complete, support, reading.by)
    titles = {one.doc_id: one.title for one in passages}
    cited = (f"{titles.get(one.doc_id, '')} {one.text}" for one in reading.citations)
    stated = any(states_answer(text, reading.answer) for text in cited)
    support = Support.ATTRIBUTABLE if stated else Support.EXTRAPOLATORY
    accuracy, by = reading.score, "citations"
    if meter is not None and (judged := _model_review(question, reading, meter)) is not None:
        accuracy, by = judged[0], "model"
        support = max(support, judged[1], key=_STATES.index)
    share = accuracy_weight(hops) if weight is None else weight
    confidence = share * accuracy + (1 - share) * CREDIBILITY[support]
    return Review(confidence, accuracy, support, by)


def states_answer(text: str, answer: str) -> bool:
    """Whether a text has every word of an answer, or its country by another name; any text may
    support yes or no.
    """
    same = _words(answer) <= _words(text) or country_key(answer) == country_key(text)
    return same or title_key(answer) in ("yes", "no")


def mentions_answer(text: str, answer: str) -> bool:
    """Whether a text has a word of the answer; any text may support yes or no."""
    return bool(_words(answer) & _words(text)) or title_key(answer) in ("yes", "no")


def _words(text: str) -> set[str]:
    words = set(" ".join(title_words(text)).casefold().split()) - STOP_WORDS
    return words | {COUNTRIES[word] for word in words & COUNTRIES.keys()}


def _model_review(
    question: str, reading: Reading, meter: MeteredModel
) -> tuple[float, Support] | None:
    """The model's judgement of accuracy and support; None if it gives none."""
    cited = "\n".join(
        f"[{number}] {one.text}" for number, one in enumerate(reading.citations, start=1)
    )
    fenced = {
        "passages": cited or "(nothing cited)",
        "question": question,
        "answer": reading.answer or "",
    }
    prompt = render_prompt("review", fenced=fenced)
    judgement = parse_json_object(meter.complete(prompt, purpose="review", schema=REVIEW_SCHEMA))
    if judgement is None:
        return None
    accuracy, support = judgement.get("accuracy"), judgement.get("support")
    if isinstance(accuracy, bool) or not isinstance(accuracy, int | float):
        return None
    if not 0 <= accuracy <= 1 or support not in list(Support):
        return None
    return float(accuracy), Support(support)
