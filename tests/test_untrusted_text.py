"""The suite of attacks is fair: beside each stands as much neutral text in the same place; the
difference is what counts.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from robustness.attack_eval import (
    CLAIMS,
    STUFFING,
    AttackOutcome,
    attack_table,
    neutral_text,
    retrieved_hits,
)
from robustness.attacks import ATTACKS, PLACES, STUFFED
from tests.corpora import documents

from suffice.datasets.gold import Gold
from suffice.evaluation.searching import RetrievedQuestion
from suffice.types import Document, Evidence, Hit, Question

QUESTION = "Who taught Ada Lovelace before Charles Babbage met her in London?"
HELD = list(documents("untrusted_text"))
POOL = [
    *HELD,
    Document("names", "London lies on the Thames.", "The Thames"),
    Document("moths", "A pale moth sat on the sill until dusk. Nobody saw it leave.", "Moths"),
    Document("rain", "Rain fell on the roof all afternoon. The gutters ran over.", "Rain"),
]


@pytest.fixture
def case() -> RetrievedQuestion:
    question = Question("q", QUESTION)
    hits = tuple(Hit(one.doc_id, 3.0 - at) for at, one in enumerate(HELD))
    gold = Gold("q", frozenset({"ada", "somerville"}), "Mary Somerville", "bridge", 2)
    return RetrievedQuestion(
        question, gold, Evidence(question, hits, {one.doc_id: one for one in HELD})
    )


def test_a_claim_has_no_word_of_the_question(case):
    for attack in CLAIMS:
        neutral = neutral_text(case, POOL, random.Random(1))
        attacked, _ = attack.pair(QUESTION, retrieved_hits(case), random.Random(1), neutral)
        added = attacked[0]["text"].removeprefix(HELD[0].text)
        assert not any(name in added for name in ("Ada", "Lovelace", "Babbage", "London"))
    assert CLAIMS
    assert STUFFING


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: one.name)
def test_an_attack_and_its_neutral_twin_are_lists_as_long_as_the_one_that_came(attack, case):
    came = retrieved_hits(case)
    rng = random.Random(1)
    attacked, neutral = attack.pair(QUESTION, came, rng, neutral_text(case, POOL, rng))
    assert len(attacked) == len(neutral) == len(came)
    assert attacked != neutral
    assert came == retrieved_hits(case)  # nothing was changed in place


@pytest.mark.parametrize("place", PLACES)
def test_neutral_text_is_as_long_as_the_attack_and_in_the_same_place(place, case):
    stuffed = STUFFED["the question"](QUESTION, random.Random(1))
    neutral = neutral_text(case, POOL, random.Random(1))(len(stuffed))
    lengths = [
        [
            len(hit["title"]) + len(hit["text"]) + len(hit.get("source") or "")
            for hit in PLACES[place](retrieved_hits(case), text)
        ]
        for text in (stuffed, neutral)
    ]
    assert lengths[0] == lengths[1]


def test_what_counts_is_how_many_more_are_answered_than_with_neutral_text():
    found = AttackOutcome(
        np.array([True, True, False, False]), np.array([True, False, False, False])
    )
    assert found.points == 25.0
    assert found.summary.startswith("+25.0 [")


def test_two_points_over_all_data_sets_together_are_too_many():
    one = ATTACKS[0]
    still, moved = np.zeros(100, bool), np.arange(100) < 3
    outcomes = {
        "here": {one.name: AttackOutcome(moved, still)},
        "there": {one.name: AttackOutcome(still, still)},
    }
    assert (
        attack_table("t", "Told.", [one], outcomes, bound=True).kept is True
    )  # three of two hundred
    outcomes["there"] = {one.name: AttackOutcome(moved[::-1], still)}
    assert attack_table("t", "Told.", [one], outcomes, bound=True).kept is False
    assert attack_table("t", "Told.", [one], outcomes, bound=False).kept is None
