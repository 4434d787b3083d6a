"""Whether to trust an answer: is it right, and do the sentences it cites say so?

    confidence = w(hops) * accuracy + (1 - w(hops)) * credibility

Credibility has three values: the sentences state the answer (attributable), leave it open
(extrapolatory) or contradict it. w falls logistically with the question's hops: the longer the
chain, the more the citations count. A model may judge both; by rules, accuracy is how well the
sentence fits. The rules always decide about support: neither a model nor a document that
manipulates it can make an answer attributable that the cited sentences do not state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from suffice.answering.answer_type import (
    COUNTRIES,
    AnswerType,
    country_key,
    expected_answer_type,
)
from suffice.answering.budget import MeteredModel
from suffice.answering.extractive_reader import Passage, Reading, mentions_cue
from suffice.answering.prompting import object_schema, parse_json_object, render_prompt
from suffice.answering.span_reader import SpanReader
from suffice.lexicon import STOP_WORDS
from suffice.protocols import Reranker
from suffice.text import names, title_key, title_words
from suffice.types import Review, Support

CREDIBILITY: Mapping[Support, float] = {
    Support.ATTRIBUTABLE: 1.0,
    Support.EXTRAPOLATORY: 0.5,
    Support.CONTRADICTORY: 0.0,
}
MIN_RERANKER_LOGIT = 0.0  # even odds that a sentence answers the question
MIN_NAME_OVERLAP = 2 / 3  # share of a name's words that identify it
MIDPOINT_HOPS, SLOPE = 2.5, 1.0  # hops at which both weigh the same, and the slope there
NO_REVIEW = Review(0.0, 0.0, Support.EXTRAPOLATORY, "rules")  # if there is no answer
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
    every: bool = False,
    reranker: Reranker | None = None,
) -> Review:
    """The confidence in a reading. `weight` overrides the accuracy weight for the hops."""
    if reading.answer is None:
        return NO_REVIEW
    if reading.by == SpanReader.name:  # its score is a probability, and the sentence has the answer
        support = Support.CONTRADICTORY if reading.rivals else Support.ATTRIBUTABLE
        return Review(reading.score, reading.if_complete, support, reading.by)
    support = classify_support(question, reading, passages, every=every, reranker=reranker)
    accuracy = min(max(reading.score, 0.0), 1.0)
    by = "rules" if reranker is None else "cross-encoder"
    if meter is not None and reading.by == "model":
        judged = _model_review(question, reading, meter)
        if judged is not None:
            accuracy, by = judged[0], "model"
            support = max(support, judged[1], key=_STATES.index)
    share = accuracy_weight(hops) if weight is None else weight
    confidence = share * accuracy + (1 - share) * CREDIBILITY[support]
    return Review(confidence, accuracy, support, by)


def classify_support(
    question: str,
    reading: Reading,
    passages: Sequence[Passage],
    *,
    every: bool = False,
    reranker: Reranker | None = None,
) -> Support:
    """Attributable: a cited sentence has every word of the answer and a cue word for the question.

    Together the sentences must also name one entity of the question, or all of them with `every`
    and for "yes". A `reranker` must also accept one sentence for the question and answer.
    Contradictory: a sentence that fits as well gives another answer.
    """
    if reading.answer is None or not reading.citations:
        return Support.EXTRAPOLATORY
    if reading.rivals:
        return Support.CONTRADICTORY
    if expected_answer_type(question) is AnswerType.CHOICE and reading.by == "extractive":
        return Support.EXTRAPOLATORY  # one sentence cannot compare two things
    known = {one.doc_id: one.title for one in passages}
    titles = [known.get(one.doc_id, "") for one in reading.citations]
    cited = [f"{title} {one.text}" for title, one in zip(titles, reading.citations)]
    answer = title_key(reading.answer)
    stating = cited
    if answer not in ("yes", "no"):
        stating = [one for one in cited if _contains_answer(one, reading.answer)]
    if reranker is not None and stating:
        scores = reranker.score(f"{question} {reading.answer}", stating)
        if not max(map(float, scores)) >= MIN_RERANKER_LOGIT:
            return Support.EXTRAPOLATORY
    cited_words = _words(" ".join(cited))
    entities = [
        part for name in names(question) for part in (name.split(" and ") if every else [name])
    ]
    named = [_names_entity(entity, cited_words, titles) for entity in entities]
    if answer == "no":  # texts rarely state what something is not
        return Support.ATTRIBUTABLE if named[:1] != [False] else Support.EXTRAPOLATORY
    covered = all(named) if every or answer == "yes" else not named or any(named)
    if covered and any(mentions_cue(question, one) for one in stating):
        return Support.ATTRIBUTABLE
    return Support.EXTRAPOLATORY


def _contains_answer(text: str, answer: str) -> bool:
    """Whether a text has every word of the answer, or its country by another name."""
    return _words(answer) <= _words(text) or country_key(answer) == country_key(text)


def mentions_answer(text: str, answer: str) -> bool:
    """Whether a sentence has a word of the answer; any sentence may support yes or no."""
    return bool(_words(answer) & _words(text)) or title_key(answer) in ("yes", "no")


def _words(text: str) -> set[str]:
    words = set(" ".join(title_words(text)).casefold().split()) - STOP_WORDS
    return words | {COUNTRIES[word] for word in words & COUNTRIES.keys()}


def _names_entity(name: str, cited_words: set[str], titles: Sequence[str]) -> bool:
    """Whether most words of a name are cited, or a title inside it: "Sultan Abdülaziz of …"."""
    words = _words(name)
    if any(title <= words for one in titles if (title := _words(title_key(one)))):
        return True
    return len(words & cited_words) >= MIN_NAME_OVERLAP * len(words)


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
