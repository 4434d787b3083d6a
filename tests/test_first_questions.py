"""Thirty plain questions with a few plain strings, as someone types who tries the gate for the first
time. Each comes twice: with all it needs, and with the last needed text missing.

Written before any of them was checked; nothing was trained on them, and nothing may be.
"""

from __future__ import annotations

import pytest

from suffice.evaluation.metrics import Predictions, score
from suffice.gate.gate import SHIPPED_MODELS, Gate
from suffice.gate.reader import SHIPPED_READER
from suffice.types import Action

pytestmark = pytest.mark.skipif(
    not (SHIPPED_READER.is_dir() and (SHIPPED_MODELS / "gate-standard").is_dir()),
    reason="the standard gate and its reader are not in this checkout: CONTRIBUTING makes them",
)

# question, needed texts, other texts
QUESTIONS: list[tuple[str, list[str], list[str]]] = [
    (
        "How many vacation days do new employees get?",
        ["New employees receive 25 days of paid vacation per calendar year."],
        [
            "Vacation requests must be submitted at least two weeks in advance.",
            "Sick leave is not counted as vacation.",
        ],
    ),
    (
        "What is the default port of our Redis instance?",
        ["redis.conf: port 6380, bind 10.0.0.5. We changed it from the default last spring."],
        ["Redis is used as the session store of the web shop.", "Postgres listens on 5432."],
    ),
    (
        "Who approves expense reports above 500 euros?",
        ["Expense reports over 500 EUR need the approval of the department head."],
        ["Expense reports are filed in the finance portal by the 5th of each month."],
    ),
    (
        "When does the warranty of the washing machine end?",
        [
            "The warranty covers two years from the date of purchase.",
            "Invoice: washing machine WM-200, purchased on 14 March 2025.",
        ],
        ["The washing machine has a capacity of 8 kg."],
    ),
    (
        "how to reset the router to factory settings",
        [
            "Hold the reset button on the back for ten seconds until all lights blink; the router restarts with factory settings."
        ],
        ["The router supports WPA3.", "To update the firmware open the admin page."],
    ),
    (
        "Can I bring my dog to the office?",
        ["Dogs are welcome in the office on Fridays if registered with the front desk."],
        ["The office is open from 7 am to 8 pm.", "Bicycles can be parked in the basement."],
    ),
    (
        "Which city is the birthplace of the author of The Trial?",
        ["The Trial is a novel by Franz Kafka.", "Franz Kafka was born in Prague."],
        ["The Castle was published in 1926."],
    ),
    (
        "Does the premium plan include phone support?",
        ["Premium: unlimited projects, phone and email support, 99.9% SLA."],
        ["Basic: 3 projects, email support.", "Prices are per user and month."],
    ),
    (
        "what time does anna arrive tomorrow",
        ["anna: landing 18:40 tomorrow, should be at yours by 8pm"],
        ["ben: are we still cooking?", "me: yes, pasta"],
    ),
    (
        "Is the bridge on Route 9 open to trucks?",
        ["Route 9 bridge: closed to vehicles over 7.5 tonnes until repairs finish in June."],
        ["Route 7 was resurfaced in April."],
    ),
    (
        "How long must I keep invoices?",
        ["Invoices and accounting records have to be retained for ten years."],
        ["Invoices are sent as PDF.", "Letters are kept for six years."],
    ),
    (
        "Which team owns the service that sends password reset mails?",
        [
            "Password reset mails are sent by the service notifier.",
            "notifier — owner: Team Heron, on-call: heron-oncall",
        ],
        ["auth-api — owner: Team Falcon"],
    ),
    (
        "What dose of ibuprofen may a 9 year old take?",
        ["Children 7 to 9 years: 200 mg up to three times a day."],
        ["Adults: 400 mg up to three times a day.", "Take with food."],
    ),
    (
        "Who won the chess club tournament in 2023?",
        ["Chess club tournament 2023: 1. M. Okafor, 2. L. Weiss, 3. J. Tan"],
        ["Chess club tournament 2022: 1. L. Weiss, 2. A. Roth", "The club meets on Thursdays."],
    ),
    (
        "What is the boiling point of ethanol?",
        ["Ethanol boils at 78.4 degrees Celsius at normal pressure."],
        ["Methanol boils at 64.7 °C.", "Ethanol is used as a solvent."],
    ),
    (
        "Why was the release 3.2 postponed?",
        [
            "Release 3.2 was moved to May because the payment provider's certification was not finished."
        ],
        ["Release 3.1 shipped on 2 February.", "Release notes are written by product."],
    ),
    (
        "How do I delete a branch on the remote?",
        ["git push origin --delete <branch> removes the branch from the remote."],
        [
            "git branch -d <branch> deletes a local branch.",
            "git fetch --prune removes stale references.",
        ],
    ),
    (
        "Where is the spare key?",
        ["The spare key is with Mrs. Lindner on the second floor."],
        ["The main door is locked at 10 pm.", "Trash is collected on Mondays."],
    ),
    (
        "What is the maximum upload size?",
        ["client_max_body_size 25m; # uploads larger than this are rejected"],
        ["Uploads are stored in S3.", "Thumbnails are created by a worker."],
    ),
    (
        "Which of the two laptops is lighter, the A14 or the B15?",
        ["A14: 1.2 kg, 14 inch display.", "B15: 1.6 kg, 15 inch display."],
        ["Both come with two years of warranty."],
    ),
    (
        "What is the capital of the country where the Danube begins?",
        ["The Danube rises in the Black Forest in Germany.", "Berlin is the capital of Germany."],
        ["The Danube flows into the Black Sea."],
    ),
    (
        "Is smoking allowed on the balcony of room 12?",
        ["Rooms 10 to 15: no smoking, including balconies."],
        ["Rooms 1 to 9 have a sea view."],
    ),
    (
        "How much is the deposit for apartment B?",
        ["Deposit: three months' rent.", "Apartment B: rent 840 euros, 62 square metres."],
        ["Apartment A: rent 910 euros."],
    ),
    (
        "When is the next maintenance window?",
        ["Next maintenance: Sunday 22 November, 02:00-04:00 UTC."],
        ["During maintenance the API returns 503.", "The last maintenance was on 3 October."],
    ),
    (
        "What does error code E17 mean?",
        ["E17 - door not locked. Close the door until it clicks."],
        ["E12 - no water supply.", "E18 - drain blocked."],
    ),
    (
        "who is the vet of our cat and what is her phone number",
        ["Our cat Minka goes to Dr. Salas.", "Dr. Salas, small animals, 555-0182"],
        ["Dr. Brandt, dentist, 555-0199"],
    ),
    (
        "Does the train to Graz stop in Leoben?",
        ["IC 533 Vienna – Bruck – Leoben – Graz, daily"],
        ["IC 535 Vienna – Salzburg", "Tickets are sold online."],
    ),
    (
        "Can contractors use the VPN?",
        ["VPN access is granted to employees and to contractors with a signed NDA."],
        ["VPN clients are available for Windows, macOS and Linux."],
    ),
    (
        "How many calories are in one serving of the lentil soup?",
        ["Lentil soup: 4 servings, 310 kcal per serving."],
        ["Tomato soup: 180 kcal per serving.", "Soak lentils for an hour."],
    ),
    (
        "What Python version does the data pipeline need?",
        ['pipeline/pyproject.toml: requires-python = ">=3.11"'],
        ["The web app runs on Node 20.", "The pipeline runs every night at 1 am."],
    ),
]


def test_most_first_questions_are_judged_right() -> None:
    pairs, complete = [], []
    for question, needed, others in QUESTIONS:
        pairs += [
            (question, [*others[:1], *needed, *others[1:]]),
            (question, [*needed[:-1], *others]),
        ]
        complete += [True, False]
    verdicts = Gate.load().check_batch(pairs, explain=False)
    right = sum(
        (verdict.action is Action.ANSWER) == whole for verdict, whole in zip(verdicts, complete)
    )
    assert right >= 48
    found = Predictions([float(one) for one in complete], [one.p_complete for one in verdicts])
    assert (score(found, "auroc") or 0.0) >= 0.88
