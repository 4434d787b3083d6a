from __future__ import annotations

import json
from dataclasses import replace

from suffice.types import Document
from suffice_grade.audit import audit
from suffice_grade.stage_protocols import GeneratedQuestion, ReasoningPath, Triple

VILLAGE = [
    Document("ada", "Ada Lovelace was taught by Mary Somerville.", title="Ada Lovelace"),
    Document("mary", "Mary Somerville was taught by John Playfair.", title="Mary Somerville"),
    Document("john", "John Playfair was born in Benvie.", title="John Playfair"),
    Document(
        "diary",
        "Ada Lovelace's teacher's teacher was John Playfair, born in Benvie, as was his dog.",
        title="A diary",
    ),
    *(
        Document(f"cheese-{at}", "Cheese is made of milk by a teacher.", title="Cheese")
        for at in range(12)
    ),
]


def made(name: str, text: str, answer: str, *ids: str, kind: str = "chain") -> GeneratedQuestion:
    return GeneratedQuestion(name, text, answer, kind, len(ids), (), ids)


GOOD = made("good", "Who taught the teacher of Ada Lovelace?", "John Playfair", "ada", "mary")


def test_a_sound_question_is_only_a_shortcut_for_bm25() -> None:
    found = audit([GOOD], VILLAGE[:3])
    counts = {one.name: one.count for one in found.findings}
    assert counts == {
        "duplicates": 0,
        "same evidence": 0,
        "answer leakage": 0,
        "one document": 0,
        "lexical shortcut": 1,  # three documents, ten hits
        "answer in the first hit": 0,
    }


def test_the_same_question_twice_is_seen_whatever_its_case() -> None:
    again = made("again", "who taught the teacher of ADA Lovelace", "John Playfair", "ada", "mary")
    found = audit([GOOD, again], VILLAGE)
    assert (found.finding("duplicates").count, found.finding("same evidence").count) == (1, 1)
    assert found.finding("duplicates").examples == ("again",)


def test_an_answer_in_the_question_leaks_unless_it_is_a_choice() -> None:
    leaky = made(
        "leaky", "Did Ada know that John Playfair taught whom?", "John Playfair", "ada", "mary"
    )
    choice = made(
        "choice",
        "Who was born first, Ada Lovelace or John Playfair?",
        "John Playfair",
        "ada",
        "john",
        kind="comparison",
    )
    yes = made("yes", "Is it yes or no?", "yes", "ada", "john")
    leaks = audit([leaky, choice, yes], VILLAGE).finding("answer leakage")
    assert (leaks.examples, leaks.of) == (("leaky",), 1)


def test_a_diary_that_tells_it_all_makes_the_chain_needless() -> None:
    assert audit([GOOD], VILLAGE).finding("one document").examples == ("good",)
    assert audit([GOOD], VILLAGE[:3]).finding("one document").count == 0


def test_balance_and_lines_are_for_people_and_json_for_scripts() -> None:
    found = audit(
        [GOOD, made("b", "Who was born in Benvie?", "John Playfair", "john")], VILLAGE, k=3
    )
    assert found.balance["hops"] == {"1": 1, "2": 1}
    assert found.balance["answers, the most frequent"] == {"john playfair": 2}
    assert any("lexical shortcut" in line for line in found.lines())
    assert json.loads(json.dumps(found.as_json()))["questions"] == 2


def test_chains_that_end_at_one_fact_are_counted_as_one() -> None:
    last = Triple("Sund", "mayor", "Ada", "sund", "sund#3")
    firsts = [Triple(name, "country", "Sund", name, f"{name}#0") for name in ("Lund", "Moss")]
    chains = [
        replace(made(one.doc_id, "Who?", "Ada", "x", "y"), paths=(ReasoningPath((one, last)),))
        for one in firsts
    ]
    found = audit(chains, VILLAGE).balance
    assert found["chains, different first facts by hops"] == {"2": 2}
    assert found["chains, different last facts by hops"] == {"2": 1}
