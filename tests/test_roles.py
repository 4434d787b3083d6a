"""Who did what to whom, and what is denied: sentences that speak for an answer, and against it."""

from __future__ import annotations

import pytest

from suffice.answering.roles import Agreement, agreement, verb_key

STATED, UNKNOWN, CONTRADICTED = Agreement


@pytest.mark.parametrize(
    ("question", "sentence", "answer", "said"),
    [
        ("Who taught Ada?", "Mary taught Ada.", "Mary", STATED),
        ("Who taught Mary?", "Mary taught Ada.", "Ada", CONTRADICTED),
        ("Who taught Ada?", "Ada was taught by Mary.", "Mary", STATED),
        ("Who taught Mary?", "Ada was taught by Mary.", "Ada", CONTRADICTED),
        ("By whom was Ada taught?", "Mary taught Ada.", "Mary", STATED),
        ("Whom did Ada teach?", "Mary taught Ada in Bath.", "Mary", CONTRADICTED),
        ("When did Ada teach Mary?", "Mary taught Ada in 1828.", "1828", CONTRADICTED),
        ("When did Mary teach Ada?", "Mary taught Ada in 1828.", "1828", STATED),
        ("To whom did Tom lend a tent?", "Tom lent his tent to Ina.", "Ina", STATED),
        ("To whom did Ina lend a tent?", "Tom lent his tent to Ina.", "Tom", CONTRADICTED),
        ("Where did they move to from Cork?", "They moved from Leeds to Cork.", "Leeds", CONTRADICTED),
        ("Who is older than Bea?", "Bea is older than Carl.", "Carl", CONTRADICTED),
        ("Which fleet defeated Carth?", "The defeat of Dorl by Carth ended it.", "Dorl", CONTRADICTED),
        ("Who was the teacher of Mary?", "Mary was the teacher of Ada.", "Ada", CONTRADICTED),
        ("Who is the teacher of Ada?", "Ada was taught by Mary.", "Mary", STATED),
        ("Who is the teacher of Mary?", "Ada was taught by Mary.", "Ada", CONTRADICTED),
        ("Who was the writer of Emma?", "Jane wrote Emma.", "Jane", STATED),
        ("Who is the mother of Ada?", "Ada was raised by Mary.", "Mary", UNKNOWN),
        ("Who married Ada?", "Ada married William.", "William", UNKNOWN),  # and he her
        ("Who sold the mill?", "Odo bought the mill from Cora.", "Cora", UNKNOWN),  # another verb
        ("Who painted Ada?", "Ada sat for Tan, who painted her.", "Tan", UNKNOWN),
        ("Which is larger, A or B?", "A is larger than B.", "A", UNKNOWN),
        ("When did Ann visit Rome?", "Ann never visited Rome in 2015.", "2015", CONTRADICTED),
        ("When did Ann visit Rome?", "Ann has not seen Rome, but visited Bonn in 2015.", "2015", CONTRADICTED),
        ("When did Ann visit Bonn?", "Ann has never visited Rome, although she visited Bonn in 2015.", "2015", STATED),
        ("Who owns a car?", "Neither Hal nor Mia owns a car, but Sven owns one.", "Sven", UNKNOWN),
        ("When was Ada born?", "Ada (born 4 April 1957) is a poet.", "4 April 1957", UNKNOWN),
        ("", "Mary taught Ada.", "Mary", UNKNOWN),
        ("Who taught Ada?", "", "Mary", UNKNOWN),
        ("Who taught " + "Ada " * 5000 + "?", "Mary taught Ada. " * 2000, "Mary", UNKNOWN),
    ],
)  # fmt: skip
def test_sentences_speak_for_an_answer_or_against_it(
    question: str, sentence: str, answer: str, said: Agreement
) -> None:
    assert agreement(question, sentence, answer) is said


def test_forms_of_a_verb_have_one_key() -> None:
    for forms in ("teach taught teaches teaching", "plan planned plans", "move moved moves moving"):
        assert len({verb_key(form) for form in forms.split()}) == 1
