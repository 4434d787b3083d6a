"""Who did what to whom, and what is denied: sentences that speak for an answer, and against it."""

from __future__ import annotations

import time

import pytest

from suffice.answering.clauses import verb_key
from suffice.answering.roles import Agreement, agreement, may_state, polarity, title_agrees

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
        ("Who sold the mill?", "Odo bought the mill from Cora.", "Cora", STATED),  # the other side
        ("Who bought the mill from Cora?", "Cora sold the mill to Odo.", "Odo", STATED),
        ("Who bought the mill from Odo?", "Cora sold the mill to Odo.", "Cora", CONTRADICTED),
        ("Who lent Ina a tent?", "Ina borrowed a tent from Tom.", "Tom", STATED),
        ("Who lent Tom a tent?", "Ina borrowed a tent from Tom.", "Ina", CONTRADICTED),
        ("Whom did Ina teach Greek?", "Ina learned Greek from Tom.", "Tom", CONTRADICTED),
        ("For whom does Max work?", "The yard employs Max.", "The yard", STATED),
        ("Who lost to Kent?", "Kent beat Surrey.", "Surrey", STATED),
        ("What preceded the ball?", "The dinner was followed by the ball.", "The dinner", STATED),
        ("What came after the dinner?", "The dinner came before the ball.", "the ball", STATED),
        ("What came after the ball?", "The dinner came before the ball.", "The dinner", CONTRADICTED),
        ("Who arrived earlier than Ann?", "Ann arrived later than Bob.", "Bob", STATED),
        ("Who arrived earlier than Bob?", "Ann arrived later than Bob.", "Ann", CONTRADICTED),
        ("Whose son is Sven?", "Tilda is the mother of Sven.", "Tilda", STATED),
        ("Who is the mother of Emil?", "Emil is the son of Bertha.", "Bertha", UNKNOWN),  # or father
        ("Who is the mother of Bertha?", "Emil is the son of Bertha.", "Emil", CONTRADICTED),
        ("Who approved the plan?", "The mayor rejected the plan.", "The mayor", CONTRADICTED),
        ("Who rewrote the plan?", "The rules were rewritten by Ann after Max had read the plan.", "Ann", UNKNOWN),
        ("Who painted Ada?", "Ada sat for Tan, who painted her.", "Tan", UNKNOWN),
        ("Which is larger, A or B?", "A is larger than B.", "A", UNKNOWN),
        ("When did Ann visit Rome?", "Ann never visited Rome in 2015.", "2015", CONTRADICTED),
        ("When did Ann visit Rome?", "Ann has not seen Rome, but visited Bonn in 2015.", "2015", CONTRADICTED),
        ("When did Ann visit Bonn?", "Ann has never visited Rome, although she visited Bonn in 2015.", "2015", STATED),
        ("Who owns a car?", "Neither Hal nor Mia owns a car, but Sven owns one.", "Sven", STATED),
        ("When was Ada born?", "Ada (born 4 April 1957) is a poet.", "4 April 1957", STATED),
        ("Who acquired Serin?", "The acquisition of Serin by Hale closed in May.", "Hale", STATED),
        ("Who acquired Hale?", "The acquisition of Serin by Hale closed in May.", "Serin", CONTRADICTED),
        ("How much did Pramo invest in Kolder?", "The investment of Kolder in Pramo is 4 million.", "4 million", CONTRADICTED),
        ("Who gave Vera a watch?", "The gift from Vera to Paul was a watch.", "Paul", CONTRADICTED),
        ("How long is the road from Ulm to Graz?", "The road from Graz to Ulm is 40 miles long.", "40 miles", CONTRADICTED),
        ("Whose nephew was Rurik?", "The nephew of Anselm, Rurik, led them.", "Anselm", STATED),
        ("Which planet is twice as heavy as Orsa?", "Orsa is twice as heavy as Timor.", "Timor", CONTRADICTED),
        ("Who is two years younger than Sten?", "Ulla is two years younger than Sten.", "Ulla", STATED),
        ("Who opened the safe?", "Rita could not open the safe, so the locksmith opened it.", "the locksmith", STATED),
        ("Who opened the letter?", "The unopened letter lay on the desk of Quint.", "Quint", CONTRADICTED),
        ("To whom did Pym leave the house?", "Pym left the house to his gardener, Tom Bick.", "Tom Bick", STATED),
        ("To whom did Rosa lend a bicycle?", "Rosa lent Karl a bicycle.", "Karl", STATED),
        ("Whom did Kate look after on Friday?", "On Friday night Anselm was looked after by Kate.", "Anselm", STATED),
        ("Onto which disk was the backup copied?", "Last night the backup was copied onto disk 4.", "Last night", UNKNOWN),
        ("What brand does Jorge smoke?", "Jorge smoked in 2012.", "2012", UNKNOWN),
        ("Why did Ann accept a job?", "Ann accepted a job in Bonn.", "Bonn", UNKNOWN),
        ("What kind of meat is in the soup?", "The soup has lentils and no meat.", "lentils and no meat", CONTRADICTED),
        ("On which day did Seth deny a scan?", "The denial of a scan by Seth came on Monday.", "Monday", STATED),
        ("When was Ada born?", "Ada and Max (born 4 April 1957) met.", "4 April 1957", UNKNOWN),
        ("When was Ada born?", "Ada (5 May 1815 – 1852) was a poet.", "5 May 1815", STATED),
        ("When did Max hire Ada?", "Max hired Ada in May.", "May", STATED),
        ("Who did May Pell teach?", "May Pell taught Ada.", "Ada", STATED),
        ("When did Ada die?", "Ada (5 May 1815 – 1852) was a poet.", "5 May 1815", CONTRADICTED),
        ("When did Max die?", "Ada (5 May 1815 – 1852) was a poet.", "1852", UNKNOWN),
        ("What did they call the tram?", "Everyone called the tram the Kettle.", "Everyone", CONTRADICTED),
        ("Who taught Ada?", "We hope that Mary taught Ada.", "Mary", UNKNOWN),
        ("Who taught Ada?", "Did Mary teach Ada?", "Mary", UNKNOWN),
        ("Who fixed the bug?", "Kim said Lou fixed the bug.", "Kim", UNKNOWN),
        ("Who fixed the bug?", "Lea: Kim fixed the bug.", "Lea", UNKNOWN),  # a chat
        ("Who fixed the bug?", "Lea: Kim fixed the bug.", "Kim", STATED),
        ("Who fixed the bug?", "Kim reported the bug and Lou fixed it.", "Lou", UNKNOWN),
        ("Who visited Rome?", "Vera, who taught Ada, visited Rome.", "Ada", UNKNOWN),
        ("Who visited Rome?", "Vera, who taught Ada, visited Rome.", "Vera", UNKNOWN),
        ("Who visits Rome?", "Vera, who teaches Ada, visits Rome.", "Ada", UNKNOWN),
        ("Who manages Kim?", "Kim is managed by Lou and manages Ben.", "Ben", UNKNOWN),
        ("Who manages Kim?", "Kim is managed by Lou and manages Ben.", "Lou", STATED),
        ("Who approved the plan?", "The plan was approved by Lee, not by Tom.", "Lee", STATED),
        ("Which plan includes support?", "Support is included in the Pro plan.", "the Pro plan", UNKNOWN),
        ("How long may guests stay?", "Guests may not stay longer than 14 days.", "14 days", STATED),
        ("How much is reimbursed for meals?", "Meals are reimbursed up to 40 euros a day.", "40 euros", STATED),
        ("When did Ada die?", "Ada died in 1901.", "1901", STATED),
        ("Who directed No Country for Old Men?", "No Country for Old Men was directed by the Coens.", "the Coens", STATED),
        ("Who directed Don't Look Now?", "Don't Look Now was directed by Nicolas Roeg.", "Nicolas Roeg", STATED),
        ("Who directed Up?", "No Country for Old Men was not directed by Ada.", "Ada", UNKNOWN),
        ("Who visited No Man's Land?", "Ada has never visited No Man's Land.", "Ada", CONTRADICTED),
        ("Which port does Marten listen on by default?", "By default Marten does its work on port 80.", "port 80", UNKNOWN),
        ("Which version of postgres does the shop use?", "We moved the shop to postgres 16.", "16", UNKNOWN),
        ("", "Mary taught Ada.", "Mary", UNKNOWN),
        ("Who taught Ada?", "", "Mary", UNKNOWN),
        ("Who taught " + "Ada " * 5000 + "?", "Mary taught Ada. " * 2000, "Mary", UNKNOWN),
    ],
)  # fmt: skip
def test_sentences_speak_for_an_answer_or_against_it(
    question: str, sentence: str, answer: str, said: Agreement
) -> None:
    assert agreement(question, sentence, answer) is said


def test_a_sentence_that_repeats_itself_takes_no_long_time() -> None:
    started = time.process_time()
    polarity("Did Ann visit Rome?", "Ann visited Rome, " * 150)
    agreement("Who visited Rome?", "Ann visited Rome, " * 150, "Ann")
    assert time.process_time() - started < 5


def test_forms_of_a_verb_have_one_key() -> None:
    for forms in (
        "teach taught teaches teaching",
        "plan planned plans",
        "move moved moves moving",
        "die died dies",
        "use used uses using",
    ):
        assert len({verb_key(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    ("question", "sentence", "said"),
    [
        ("Was the letter opened?", "The letter was opened by Quint.", True),
        ("Was the letter opened?", "The unopened letter lay on the desk.", False),
        ("Did Ada teach Mary?", "Mary taught Ada.", None),
        ("Has the hall been painted since 1988?", "The hall has not been painted since 1988.", False),
        ("Did Otis pay the rent?", "The nonpayment of the rent by Otis led to a warning.", False),
        ("Did the guild admit Barbara?", "The refusal of the guild to admit Barbara was a scandal.", False),
        ("Did the general refuse to surrender?", "The general's refusal to surrender was news.", True),
        ("Does the app support export?", "The app has never supported printing, but it supports export.", True),
        ("Was the bill from June paid?", "The bill from July has not been paid; the bill from June was paid.", True),
        ("Does the soup contain meat?", "The soup contains lentils and no meat.", False),
        ("Did Ann buy the mill?", "Ann plans to buy the mill.", None),
        ("Can two share a save?", "We hope that two can share a save one day.", None),
        ("Did Ann buy the mill?", "If Ann bought the mill, she would be rich.", None),
        ("May guests use the pool?", "Guests may use the pool, but not the sauna.", True),
        ("May Ada use the pool?", "Ada may use the pool in May.", True),
        ("Did Max hire Ada?", "Max hired Ada in May.", True),
        ("Did Max hire Ada?", "In May 2019, Max hired Ada.", True),
        ("Did Max hire Ada?", "Max may hire Ada in May.", None),
        ("Is Ada or Mary older?", "Ada is older than Mary.", None),
        ("Did Odo buy the mill from Cora?", "Cora sold the mill to Odo.", True),
        ("Did Cora buy the mill from Odo?", "Cora sold the mill to Odo.", None),
        ("Did the council approve the plan?", "The council rejected the plan.", False),
        ("Did the council approve the plan?", "The council did not reject the plan.", None),
        ("Is smoking allowed in the yard?", "Smoking is forbidden in the yard.", False),
        ("Is smoking allowed in the hall?", "Smoking is forbidden in the yard.", None),
        ("Who paid?", "Ada paid.", None),
        ("Did Ann visit Rome?", "Did Ann visit Rome?", None),
        ("Did Ann not visit Rome?", "Ann visited Rome.", None),
        ("Did Ann visit Rome?", "Ann didn't visit Rome.", False),
        ("Can guests smoke?", "Guests cannot smoke.", False),
        ("Did Ann visit Rome?", "Ann's brother visited Rome.", None),
        ("Did Ann visit Rome?", "Vera, who taught Ann, visited Rome.", None),
        ("Did Ann visit Rome?", "Ann said Bob visited Rome.", None),
        ("Did Ann visit Rome?", "Ann denied that she visited Rome.", None),
        ("Did Ann visit Rome?", "Ann, who never smiles, visited Rome.", None),
        ("Will the shop open on Sunday?", "The shop opened on Sunday.", None),
        ("Is the pool heated?", "The pool will be heated.", None),
        ("Are dogs allowed?", "Only guide dogs are allowed.", None),
        ("Are dogs allowed?", "Dogs are allowed, cats are not.", None),
        ("Are cats allowed?", "Dogs are allowed, cats are not.", False),
        ("Are dogs allowed in the yard?", "Dogs are allowed in the yard, not in the kitchen.", None),
        ("Are dogs allowed in the kitchen?", "Dogs are allowed in the yard, not in the kitchen.", False),
        ("Is breakfast included at Hotel Mira?", "Breakfast is included at Hotel Mira Beach.", None),
        ("Is breakfast included at Hotel Mira?", "Breakfast is included at Hotel Mira.", True),
        ("", "", None),
        ("Did " + "Ada " * 5000 + "pay?", "Ada paid. " * 2000, None),
    ],
)  # fmt: skip
def test_sentences_say_yes_or_no(question: str, sentence: str, said: bool | None) -> None:
    assert polarity(question, sentence) is said


@pytest.mark.parametrize(
    ("question", "title", "sentence", "said"),
    [
        ("Which program compares two files?", "comm", "compare two files line by line.", True),
        ("Which program compares two files?", "comm", "Compares two files.", True),
        ("Which program compares two files?", "comm", "Do not compare two files.", False),
        ("Which program compares two files?", "tac", "concatenate and print files.", False),
        ("Who taught Byron?", "Ada", "Her mother taught Byron.", False),
        ("Who taught Byron?", "Ada", "taught by Byron.", False),
        ("Who taught Byron?", "Ada", "", False),
        ("", "Ada", "taught Byron.", False),
    ],
)
def test_a_sentence_without_a_subject_is_about_its_title(
    question: str, title: str, sentence: str, said: bool
) -> None:
    assert title_agrees(question, title, sentence) is said


def test_a_sentence_may_state_an_answer_if_it_has_verb_and_names() -> None:
    assert may_state("Who taught Ada?", "Mary taught Ada.")
    assert not may_state("Who taught Ada?", "Mary taught Bea.")
    assert not may_state("Who taught Ada?", "Ada was raised by Mary.")
    assert not may_state("", "")
