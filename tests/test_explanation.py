"""Reasons, missing and next queries are true, short and the same every time."""

from __future__ import annotations

import re
from datetime import date

import numpy as np
import pytest
from tests.small_gate import small_gate

from suffice.gate.explanation import START, Occlusion, find_missing, suggest_queries
from suffice.gate.extraction import Extraction, extract
from suffice.gate.features import ABSENT_COLUMNS, Feature
from suffice.gate.gate import Gate
from suffice.gate.hits import normalize_hits
from suffice.gate.question import ParsedQuestion, WordTable, parse_question
from suffice.types import Action, Document, Estimate, Evidence, Reason, Verdict

QUESTION = "Which university did the director of Village Dreams attend in 1950?"
FILM = Document("film", "Village Dreams is a film directed by Maria Lopez.", "Village Dreams")


def extracted(question: str, hits: list[Document]) -> tuple[Evidence, ParsedQuestion, Extraction]:
    words, evidence = WordTable.load(), normalize_hits(question, hits).evidence
    parsed = parse_question(question, words)
    return (
        evidence,
        parsed,
        extract(parsed, [one.title for one in hits], [one.text for one in hits], None, words),
    )


def chances(reading: Extraction, name: str) -> np.ndarray:
    return np.array([0.9 if one == name else 0.01 for one in reading.absent_names])


def test_what_no_hit_covers_is_missing() -> None:
    evidence, _, reading = extracted(QUESTION, [FILM])
    found = find_missing(evidence, reading, chances(reading, "Maria Lopez"))
    assert found == ("1950", "Maria Lopez")


def test_beside_an_answer_only_what_is_likely_missing_is_named() -> None:
    evidence, _, reading = extracted(
        "Did Village Dreams win more prizes than Harbor Nights?", [FILM]
    )
    likely = chances(reading, "Maria Lopez")
    assert find_missing(evidence, reading, likely, answers=True) == ("Maria Lopez",)
    assert find_missing(evidence, reading, likely / 2, answers=True) == ()
    assert find_missing(evidence, reading, likely / 2) == ("Harbor Nights", "Maria Lopez")


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("What Is The Capital Of Kenya And Who Is Its President?", ()),
        ("Capital of Kenya", ("Capital of Kenya",)),
        ("Maria Lopez Harbor Nights", ("Maria Lopez Harbor Nights",)),
        ("How do I configure a server for TLS 1.3?", ("TLS 1.3",)),
        ("¿Quién es el director de «Harbor Nights»?", ("Harbor Nights",)),
    ],
)
def test_title_case_versions_and_foreign_marks(question: str, missing: tuple[str, ...]) -> None:
    bare = Document("a", "A server is set up with care.", "Setup")
    evidence, _, reading = extracted(question, [bare])
    assert find_missing(evidence, reading, np.zeros(len(reading.absent_names))) == missing


def test_a_source_counts_as_covered_and_so_does_a_date_of_publication() -> None:
    question = "What did The Daily Meridian write about Maria Lopez on October 7, 2023?"
    bare = Document("a", "Maria Lopez spoke.", "A talk")
    dated = Document("a", "Maria Lopez spoke.", "A talk", "Daily Meridian", None, date(2023, 10, 7))
    missing = [find_missing(evidence, reading, np.zeros(len(reading.absent_names))) for evidence, _, reading in (
        extracted(question, [bare]), extracted(question, [dated])
    )]  # fmt: skip
    assert any("Daily Meridian" in one for one in missing[0])
    assert "October 7, 2023" in missing[0]
    assert missing[1] == ()


def test_without_hits_everything_named_is_missing() -> None:
    evidence, parsed, reading = extracted(QUESTION, [])
    found = find_missing(evidence, reading, np.zeros(len(reading.absent_names)))
    assert "1950" in found
    assert suggest_queries(parsed, found) == ()


@pytest.mark.parametrize(
    ("question", "hit"),
    [
        ("Is the library open on Sunday in December?", "The library is closed today."),
        ("Can we come on the second Sunday of May or on Tuesday the 9th?", "We are open."),
        ("Please tell me whether the invoice was paid.", "The invoice was sent."),
        ("Summarize what was said about the budget", "The budget was discussed."),
        ("What's left of it, and who's the one I'll ask?", "Nothing is left."),
        ("We're the tool shop. Alarm level orange: do we leave?", "People must leave."),
        ("WHO WON THE CUP", "It was a close game."),
        ("How much are 9 days at 840 euro and 2.5 kg more?", "It depends on the season."),
        ("Compare the Q3 revenue of both.", "The revenue of Q3 rose."),
    ],
)
def test_dates_question_words_and_amounts_are_not_missing(question: str, hit: str) -> None:
    evidence, _, reading = extracted(question, [Document("a", hit)])
    asked = reading.absent[:, ABSENT_COLUMNS.index("asked")]
    assert find_missing(evidence, reading, asked) == ()


def test_a_name_is_missing_without_what_stands_around_it() -> None:
    question = "Compare Acme Corp with Harvest Fair Saturday 14:30, Theresa May and release 2.4"
    evidence, _, reading = extracted(question, [Document("a", "Nothing of this.")])
    found = find_missing(evidence, reading, np.zeros(len(reading.absent_names)))
    assert found == ("Acme Corp", "Harvest Fair", "Theresa May", "2.4")


def test_a_word_that_only_starts_sentences_of_the_hits_is_not_missing() -> None:
    text = (
        "The L70 lock of Fritz Lang. Touch the lock. However, Touch it twice. Rolled out by Lang."
    )
    evidence, _, reading = extracted("How is the lock of the L90 opened?", [Document("a", text)])
    found = find_missing(evidence, reading, np.full(len(reading.absent_names), 0.9))
    assert found == ("L90", "Fritz Lang", "Touch")  # not L70; "Touch" also stands in a sentence
    evidence, _, reading = extracted(
        "How is the lock opened?", [Document("a", text.replace(", Touch", ", touch"))]
    )
    assert "Touch" not in find_missing(evidence, reading, np.full(len(reading.absent_names), 0.9))


def test_queries_are_the_missing_thing_and_what_is_asked_about_it() -> None:
    parsed = parse_question(QUESTION, WordTable.load())
    assert suggest_queries(parsed, ["Maria Lopez"]) == ("Maria Lopez university director attend",)


@pytest.mark.parametrize("missing", [[], ["1950"], ["Village Dreams"], ["Dreams"]])
def test_queries_never_repeat_the_question(missing: list[str]) -> None:
    assert suggest_queries(parse_question(QUESTION, WordTable.load()), missing) == ()


def test_one_of_two_joined_names_is_a_question_of_its_own() -> None:
    words = WordTable.load()
    both = parse_question("Are Alexander Kluge and Sidney Salkow of the same nationality?", words)
    assert suggest_queries(both, ["Alexander Kluge"]) == ("Alexander Kluge nationality",)
    dated = parse_question("Who met Ada Byron on May 2, 1843 and Mary Somerville later?", words)
    assert suggest_queries(dated, ["May 2, 1843"]) == ()
    chain = parse_question("Where was the wife of Sidney Salkow born, and when?", words)
    assert suggest_queries(chain, ["Sidney Salkow"]) == ()


TWO = (
    Feature("coverage", "cov_any", "Share of words."),
    Feature("scores", "s_mean", "Mean score."),
)


def test_the_start_and_what_each_family_adds_sum_to_the_log_odds() -> None:
    occlusion = Occlusion(TWO, [0.5, 0.7])
    table = np.array([[1.0, 0.7], [0.0, 0.2]], dtype=np.float32)
    odds, parts = occlusion.effects(table, lambda shown: 4 * shown[:, 0] * shown[:, 1])
    np.testing.assert_allclose(odds, [2.8, 0.0], atol=1e-6)
    np.testing.assert_allclose(parts.sum(axis=1), odds, atol=1e-6)
    by_family = dict(zip((START, *occlusion.families), parts.T, strict=True))
    np.testing.assert_allclose(by_family[START], [1.4, 1.4], atol=1e-6)
    np.testing.assert_allclose(by_family["coverage"], [1.4, -1.4], atol=1e-6)
    np.testing.assert_allclose(by_family["scores"], [0.0, 0.0], atol=1e-6)


COVERAGE = ("names_no_text", "numbers_missing", "cov_any", "named", "greedy1")
FEATURES = (*(Feature("coverage", name, "") for name in COVERAGE), TWO[1])


def reason_words(
    start: float, coverage: float, scores: float, *, cov_any: float = 0.5, s_mean: float = 0.7
) -> list[tuple[str, str]]:
    """The reasons of these effects; half of the words held and a mean score of 70% are usual."""
    occlusion = Occlusion(FEATURES, [0.0, -1.0, 0.5, 1.0, 0.3, 0.7])
    view = occlusion.view([0.0, -1.0, cov_any, 1.0, 0.3, s_mean])
    action = Action.ANSWER if start + coverage + scores >= 0 else Action.ABSTAIN
    reasons = occlusion.rank_reasons(np.array([start, coverage, scores]), view, action)
    return [(one.sign, one.words) for one in reasons]


def test_only_what_moved_the_verdict_is_a_reason_strongest_first_and_the_start_last() -> None:
    start = ("-", "a typical question with typical hits starts at 0.12")
    scores = ("-", "the mean score is 50% (usually 70%) of the first")
    covered = ("+", "the hits hold 100% (usually 50%) of what the question says")
    assert reason_words(-2.0, 1.0, -3.0, cov_any=1.0, s_mean=0.5) == [scores, covered, start]
    assert reason_words(-2.0, 0.1, -3.0, cov_any=1.0, s_mean=0.5) == [scores, start]


def test_an_answer_below_one_half_shows_what_speaks_for_it() -> None:
    occlusion = small_gate()._occlusion
    strong, weak = [-0.5, -2.0, -2.0, -2.0], len(occlusion.families) - 3
    effects = np.array([*strong, *[6.3 / weak] * weak])  # 0.45 in all, where it may answer
    reasons = occlusion.rank_reasons(effects, occlusion.usual, Action.ANSWER)
    assert [one.sign for one in reasons] == ["-", "-", "+", "-"]
    nothing = occlusion.rank_reasons(-np.abs(effects), occlusion.usual, Action.ANSWER)
    assert [one.sign for one in nothing] == ["-"] * 4


def test_a_reason_never_tells_a_usual_value_or_one_that_points_the_other_way() -> None:
    subject = "how the words of the question are spread over the hits"
    assert reason_words(0.5, 2.0, 0.0)[0] == ("+", subject)  # as usual
    assert reason_words(0.5, 2.0, 0.0, cov_any=0.4)[0] == ("+", subject)  # less, and yet "+"
    less = "the hits hold 40% (usually 50%) of what the question says"
    assert reason_words(0.5, -2.0, 0.0, cov_any=0.4)[0] == ("-", less)


@pytest.mark.parametrize("need", [1.6, 2.2, 2.6, 4.1])
def test_every_reason_tells_the_same_whole_number_of_needed_documents(need: float) -> None:
    features = [
        Feature(family, name, "")
        for family, name in (("path", "held"), ("path", "pair"), ("path", "read_count"),
                             ("hops", "guess_complete"))
    ]  # fmt: skip
    occlusion = Occlusion(features, [1.2, 0.1, 9.0, 0.2])
    view = occlusion.view([1.0, 0.1, need, 0.2])
    reasons = occlusion.rank_reasons(np.array([-1.0, -1.0, 1.0]), view, Action.ABSTAIN)
    words = [one.words for one in reasons]
    needed = [re.findall(r"need about (\d+)\b", one) for one in words[:2]]
    assert needed == [[f"{need:.0f}"], [f"{need:.0f}"]]


def test_without_a_reader_no_number_of_needed_documents_is_told() -> None:
    """The fast gate learned from questions that need two or more, and says so of every one."""
    question = "What is the longest river in Italy?"
    po = {"title": "Po", "text": "No Italian river is longer than the Po."}
    tiber = {"title": "Tiber", "text": "The Tiber flows through Rome."}
    garda = {"title": "Lake Garda", "text": "Lake Garda is the largest lake in Italy."}
    lists = [[po, tiber], [tiber, garda], [po, tiber, garda], [po]]
    verdicts = Gate.load(preset="fast").check_batch([(question, hits) for hits in lists])
    words = [one.words for verdict in verdicts for one in verdict.reasons]
    assert any("of the hits look like evidence" in one for one in words)
    assert not [one for one in words if "need" in one]


# ---- printing

VERDICT = Verdict(
    Estimate(0.314, 0.2, 0.45),
    Action.ABSTAIN,
    ("<script>alert(1)</script>", "Ada\x1b[2J\u202eevil"),
    ("Ada & Byron teacher",),
    (
        Reason("coverage", -1.2, "the hits hold 30%"),
        Reason("scores", 0.4, "a < b"),
        Reason("search", 0.0, "another search is not likely to help"),
    ),
)


def test_a_verdict_in_a_terminal() -> None:
    assert str(VERDICT).splitlines()[:4] == [
        "ABSTAIN  p_complete 0.31 (0.20 to 0.45)",
        "  - the hits hold 30%",
        "  + a < b",
        "  * another search is not likely to help",
    ]
    assert "look for: Ada & Byron teacher" in str(VERDICT)
    assert "\x1b" not in str(VERDICT)
    assert "\u202e" not in str(VERDICT)


def test_a_verdict_in_a_notebook_escapes_what_came_from_texts() -> None:
    page = VERDICT._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "a &lt; b" in page
    assert "Ada &amp; Byron" in page
    assert "<b>ABSTAIN</b>" in page


def test_dates_far_apart_in_a_question_are_told_where_no_hit_has_them() -> None:
    question = (
        "Who spoke on 2021-10-07 and, after the long strike of the harbour pilots had "
        "ended, on September 3rd, 2022?"
    )
    evidence, _, found = extracted(question, [Document("a", "The pilots spoke on 2021-10-07.")])
    assert find_missing(evidence, found, chances(found, "")) == ("September 3rd, 2022",)
