"""Reasons, missing and next queries are true, short and the same every time."""

from __future__ import annotations

from datetime import date

import numpy as np
from tests.small_gate import fresh, shown, small_gate

from suffice.gate.explanation import (
    FeatureView,
    Occlusion,
    find_missing,
    rank_reasons,
    suggest_queries,
)
from suffice.gate.extraction import Extraction, extract
from suffice.gate.features import Feature
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


def test_a_name_of_the_question_that_no_hit_mentions_is_missing() -> None:
    evidence, _, reading = extracted(
        "Did Village Dreams win more prizes than Harbor Nights?", [FILM]
    )
    assert "Harbor Nights" in find_missing(evidence, reading, np.zeros(len(reading.absent_names)))


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
    assert suggest_queries(parsed, found)


def test_queries_are_the_missing_thing_and_what_is_asked_about_it() -> None:
    parsed = parse_question(QUESTION, WordTable.load())
    (query,) = suggest_queries(parsed, ["Maria Lopez"])
    assert query.startswith("Maria Lopez ")
    assert "university" in query
    assert len(query) < 80


def test_queries_fall_back_on_names_and_then_on_words() -> None:
    named = suggest_queries(parse_question(QUESTION, WordTable.load()), [])
    assert any(query.startswith("Village Dreams") for query in named)
    assert suggest_queries(
        parse_question("which side played to emptier stands", WordTable.load()), []
    )
    assert suggest_queries(parse_question("", WordTable.load()), []) == ()


TWO = (
    Feature("coverage", "cov_any", "Share of words."),
    Feature("scores", "s_mean", "Mean score."),
)


def test_the_effect_of_a_family_is_what_hiding_it_changes() -> None:
    occlusion = Occlusion(TWO, [0.5, 0.7])
    table = np.array([[1.0, 0.7], [0.0, 0.2]], dtype=np.float32)
    odds, moved = occlusion.effects(table, lambda shown: 4 * shown[:, 0] + shown[:, 1])
    np.testing.assert_allclose(odds, [4.7, 0.2], atol=1e-6)
    by_family = dict(zip(occlusion.families, moved.T, strict=True))
    np.testing.assert_allclose(by_family["coverage"], [2.0, -2.0], atol=1e-6)
    np.testing.assert_allclose(by_family["scores"], [0.0, -0.5], atol=1e-6)


def test_only_what_moved_something_is_a_reason_strongest_first() -> None:
    columns = {"s_mean": 0, "distinct_titles": 1}
    seen, usual = FeatureView(columns, [0.5, 1.0]), FeatureView(columns, [0.7, 1.0])
    reasons = rank_reasons(["overlap", "scores"], np.array([0.3, -2.0]), seen, usual)
    assert [one.feature for one in reasons] == ["scores", "overlap"]
    assert reasons[0].words == "the mean score is 50% of the first (usually 70%)"
    assert rank_reasons(["overlap"], np.array([0.001]), seen, usual) == ()


def test_every_family_of_a_gate_can_speak() -> None:
    occlusion = small_gate()._occlusion
    for family in occlusion.families:
        (reason,) = rank_reasons([family], np.array([1.0]), occlusion.usual, occlusion.usual)
        assert len(reason.words) < 160
    assert {one.family for one in small_gate().model.features} <= set(occlusion.families)


def test_the_same_question_gets_the_same_words() -> None:
    example = fresh()[3]
    assert len({str(small_gate().check(example.question, shown(example))) for _ in range(3)}) == 1


# ---- printing

VERDICT = Verdict(
    Estimate(0.314, 0.2, 0.45),
    Action.ABSTAIN,
    ("<script>alert(1)</script>", "Ada\x1b[2J\u202eevil"),
    ("Ada & Byron teacher",),
    (Reason("coverage", -1.2, "the hits hold 30%"), Reason("scores", 0.4, "a < b")),
)


def test_a_verdict_in_a_terminal() -> None:
    assert str(VERDICT).splitlines()[:3] == [
        "ABSTAIN  p_complete 0.31 (0.20 to 0.45)",
        "  - the hits hold 30%",
        "  + a < b",
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


def test_a_bare_verdict_prints_in_one_line() -> None:
    bare = Verdict(Estimate(1.0, 1.0, 1.0), Action.ANSWER)
    assert str(bare) == "ANSWER  p_complete 1.00 (1.00 to 1.00)"
    assert "table" not in bare._repr_html_()


def test_dates_far_apart_in_a_question_are_told_where_no_hit_has_them() -> None:
    question = (
        "Who spoke on 2021-10-07 and, after the long strike of the harbour pilots had "
        "ended, on September 3rd, 2022?"
    )
    evidence, _, found = extracted(question, [Document("a", "The pilots spoke on 2021-10-07.")])
    assert find_missing(evidence, found, chances(found, "")) == ("September 3rd, 2022",)
