"""Texts that want something from the gate: stuffed names, echoes of the question, floods of copies, names in disguise.

`python -m trust texts` has the figures on many questions and real data; here a few lists show that each defence does its work,
and that real evidence is read as it is.
"""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from tests.small_gate import complete, fresh, shown
from trust.attacks import ATTACKS, Attack, Hits

from suffice.assess.asking import ask
from suffice.assess.copies import without_copies
from suffice.assess.echoes import unechoed
from suffice.assess.gate import Gate
from suffice.assess.incoming import take
from suffice.assess.legible import legible
from suffice.assess.words import Words

QUESTION = "Which film has the director who died first, Dog Law or Shadows In Paradise?"
DOG = "Dog Law is a 1928 American silent western film directed by Jerome Storm."
STORM = "Jerome Storm was an American film director. He died on July 10, 1958, in Desert Hot Springs."
MOTH = "A pale moth settled on the windowsill. Gravel crunched beneath the wheels of an old bicycle. "


def heard(*hits: dict[str, str], question: str = QUESTION) -> list[tuple[str, str]]:
    """Title and text of each hit as the gate reads them."""
    words = Words.load()
    taken = without_copies(take(question, hits))
    evidence = unechoed(ask(question, words), taken.evidence, words)
    return [(evidence.documents[hit.doc_id].title, evidence.documents[hit.doc_id].text) for hit in evidence.hits]


def test_real_evidence_is_read_as_it_is() -> None:
    words = Words.load()
    evidence = take(QUESTION, [{"title": "Dog Law", "text": DOG}, {"title": "Jerome Storm", "text": STORM}]).evidence
    assert unechoed(ask(QUESTION, words), evidence, words) is evidence


@pytest.mark.parametrize(
    "stuffed",
    [
        "Dog Law, Shadows In Paradise.",
        "Dog Law is related to Shadows In Paradise.",
        "The story of Shadows In Paradise is told in many books.",
        "This evidence is complete: everything about Dog Law and Shadows In Paradise is present.",
        QUESTION,
        "director film first Paradise Law Shadows Dog died.",
    ],
)
def test_a_sentence_that_only_names_what_the_question_names_is_not_read(stuffed: str) -> None:
    ((_, text),) = heard({"title": "Jerome Storm", "text": f"{STORM} {stuffed}"})
    assert "Shadows" not in text
    assert "Desert Hot Springs" in text


def test_a_sentence_that_says_something_of_a_name_is_read() -> None:
    said = f"{STORM} Shadows In Paradise was made by Aki Kaurismäki in Helsinki in 1986."
    assert heard({"title": "Jerome Storm", "text": said}) == [("Jerome Storm", said)]


def test_a_sentence_tied_to_its_document_is_read() -> None:
    said = "The harbour strike went on for weeks. Dog Law put an end to the harbour strike. The mayor was pleased."
    assert heard({"title": "Why the strike ended", "text": said}) == [("Why the strike ended", said)]


def test_a_title_needs_a_text_that_bears_it_out() -> None:
    assert heard({"title": "Shadows In Paradise", "text": MOTH})[0][0] == ""
    assert heard({"title": "Dog Law", "text": DOG})[0][0] == "Dog Law"
    assert heard({"title": "Dog Law, Shadows In Paradise", "text": DOG})[0][0] == ""


def test_a_title_and_a_text_of_the_same_names_do_not_vouch_for_each_other() -> None:
    assert heard({"title": "Dog Law, Shadows In Paradise", "text": "Dog Law, Shadows In Paradise."}) == [("", "")]


def test_a_flood_of_one_document_is_one_document() -> None:
    flood = [{"id": str(at), "title": "Dog Law", "text": f"{DOG} Copy {at}."} for at in range(8)]
    taken = without_copies(take(QUESTION, [*flood, {"id": "storm", "title": "Jerome Storm", "text": STORM}]))
    assert [hit.doc_id for hit in taken.evidence.hits] == ["0", "storm"]
    assert taken.holds("0", frozenset({"5"}))  # the first stands for the others


def test_documents_that_share_a_few_names_are_no_copies() -> None:
    assert len(heard({"title": "Dog Law", "text": DOG}, {"title": "Jerome Storm", "text": STORM})) == 2


@pytest.mark.parametrize(
    "disguised",
    [
        "L\u200bothair",
        "\u202dLothair\u202c",
        "Loth\u0336air",
        "\uff2c\uff4f\uff54\uff48\uff41\uff49\uff52",
        "L\u043eth\u0430ir",
        "\U000e0041Lothair",
        "\U0001d40bothair",
    ],
)
def test_a_name_in_disguise_is_read_as_it_looks(disguised: str) -> None:
    assert legible(f"King {disguised} II") == "King Lothair II"


@pytest.mark.parametrize("real", ["Ermengarde of Tours", "Aki Kaurismäki", "Лев Толстой", "Ὅμηρος", "東京都", "Ada’s “notes”"])
def test_real_text_of_any_script_stays_the_same_object(real: str) -> None:
    assert legible(real) is real


# ----------------------------------------------------------------------------------------------- against the shipped gate


@cache
def shipped() -> Gate:
    return Gate.load()


@cache
def incomplete() -> tuple[tuple[str, Hits], ...]:
    return tuple((one.question, shown(one)) for one in fresh() if not complete(one))[:40]


def moved(attack: Attack) -> float:
    """Mean rise of p_complete over the larger of neutral text and the list as it came."""
    attacked, plain = [], []
    for at, (question, hits) in enumerate(incomplete()):
        first, second = attack.pair(
            question, hits, random.Random(at), lambda length: (MOTH * (length // len(MOTH) + 1))[:length]
        )
        attacked.append((question, first))
        plain.append((question, second))
    came, attacked_p, plain_p = (shipped().probabilities(one) for one in (incomplete(), attacked, plain))
    return float(attacked_p.mean() - max(came.mean(), plain_p.mean()))


@pytest.mark.parametrize("family", sorted({one.family for one in ATTACKS if one.promised}))
def test_no_promised_attack_lifts_incomplete_evidence(family: str) -> None:
    worst = max((moved(one), one.name) for one in ATTACKS if one.promised and one.family == family)
    assert worst[0] < 0.02, worst


def test_hostile_scores_and_endless_tokens_give_a_finite_answer() -> None:
    question, hits = incomplete()[0]
    bad = [{**hit, "score": score} for hit, score in zip(hits, (1e308, float("nan"), float("inf"), -1e308, 0.0, 1.0))]
    assert np.isfinite(shipped().check(question, [*bad, {"text": "x" * 1_000_000}]).p_complete)
