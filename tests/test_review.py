"""The review of an answer: support, confidence, and what a model may change."""

from __future__ import annotations

import pytest
from tests.small_world import FILMS, Says

from suffice.answering.budget import Budget, MeteredModel
from suffice.answering.review import accuracy_weight, review
from suffice.answering.span_reader import Passage, Reading, passage_from_document
from suffice.types import Citation, Support

PASSAGES = [passage_from_document(document) for document in FILMS]
DOG = PASSAGES[0]


def reading_of(answer: str, passage: Passage) -> Reading:
    return Reading(answer, (Citation(passage.doc_id, 0, passage.sentences[0]),), 0.8, "model")


def test_the_weight_of_accuracy_falls_with_hops() -> None:
    weights = [accuracy_weight(hops) for hops in range(6)]
    assert weights == sorted(weights, reverse=True)
    assert [round(weight, 2) for weight in weights[1:5]] == [0.82, 0.62, 0.38, 0.18]
    assert 0 < accuracy_weight(1e9) < accuracy_weight(-5) < 1


def supports(answer: str, passage: Passage) -> Support:
    return review(
        "Who is the director of Dog Law?", reading_of(answer, passage), PASSAGES, hops=2
    ).support


def test_a_cited_sentence_or_its_title_has_every_word_of_the_answer() -> None:
    assert supports("Jerome Storm", DOG) is Support.ATTRIBUTABLE
    assert supports("Jerome Storm", PASSAGES[1]) is Support.ATTRIBUTABLE
    assert supports("Jerome Farrow", DOG) is Support.EXTRAPOLATORY
    assert supports("Jerome Storm", PASSAGES[-1]) is Support.EXTRAPOLATORY
    assert supports("the United States", DOG) is Support.ATTRIBUTABLE  # "American"
    assert supports("no", DOG) is Support.ATTRIBUTABLE
    uncited = review("Who?", Reading("Jerome Storm", by="model"), PASSAGES, hops=2)
    assert uncited.support is Support.EXTRAPOLATORY


def test_confidence_weighs_accuracy_against_support() -> None:
    judged = review(
        "Who is the director of Dog Law?", reading_of("Jerome Storm", DOG), PASSAGES, hops=2
    )
    assert judged.confidence == pytest.approx(
        accuracy_weight(2) * 0.8 + (1 - accuracy_weight(2)) * 1.0
    )
    fixed = review(
        "Who is the director of Dog Law?",
        reading_of("John Farrow", DOG),
        PASSAGES,
        hops=4,
        weight=0.5,
    )
    assert fixed.confidence == pytest.approx(0.5 * 0.8 + 0.5 * 0.5)
    assert review("Who?", Reading(None), PASSAGES, hops=2).confidence == 0


def judged_by(answer: object, reading: Reading) -> tuple[float, Support, str]:
    found = review(
        "Who is the director of Dog Law?",
        reading,
        PASSAGES,
        hops=2,
        meter=MeteredModel(Says({"": answer}), Budget()),
    )
    return found.accuracy, found.support, found.by


def test_a_model_can_lower_support_but_never_raise_it() -> None:
    right, wrong = (
        reading_of("Jerome Storm", DOG),
        reading_of("John Farrow", DOG),
    )
    assert judged_by({"accuracy": 0.4, "support": "contradictory"}, right) == (
        0.4,
        Support.CONTRADICTORY,
        "model",
    )
    assert judged_by({"accuracy": 1.0, "support": "attributable"}, wrong) == (
        1.0,
        Support.EXTRAPOLATORY,
        "model",
    )


@pytest.mark.parametrize(
    "answer",
    ["fine!", {"accuracy": 7, "support": "attributable"}, {"accuracy": 1, "support": "great"}, {}],
)
def test_an_unreadable_review_leaves_what_the_citations_say(answer: object) -> None:
    assert judged_by(answer, reading_of("Jerome Storm", DOG)) == (
        0.8,
        Support.ATTRIBUTABLE,
        "citations",
    )
