"""Familiarity: what is like the training texts, what is not, and what a verdict says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.bridge_question import familiar_gate
from tests.commands import suffice

from suffice.errors import InputError
from suffice.gate.familiarity import (
    COLUMNS,
    FormProfile,
    is_foreign,
    widen_interval,
)
from suffice.gate.gate import Gate
from suffice.gate.question import parse_question
from suffice.gate.training import shift_between_sets
from suffice.integrations import common
from suffice.integrations.common import Guard, UnfamiliarWarning
from suffice.numeric import sigmoid
from suffice.types import LOW_FAMILIARITY, Action, Estimate, Hit, Verdict

POLICY = (
    "How many vacation days do I get in my first year?",
    ["Employees get 25 days of paid leave each year.", "Sick leave has no limit."],
)
WIKIPEDIA = (
    "Who is the mother of the director of the 1928 film Dog Law?",
    [
        {
            "title": title,
            "text": f"{title} is a 1928 American silent western film directed by {name} and "
            f"starring {star}. It was produced by Film Booking Offices of America and was released "
            f"in the United States on {day} September 1928. {name} wrote the screenplay together "
            f"with {star}, who had worked with him in California before.",
        }
        for title, name, star, day in (
            ("Dog Law", "Jerome Storm", "Ranger the Dog", 2),
            ("Fangs of the Wild", "Jerome Storm", "Dorothy Kitchen", 5),
            ("Captain Careless", "Jerome Storm", "Bob Steele", 26),
            ("Tracked", "Jerome Storm", "Sam Nelson", 4),
            ("The Law of Fear", "Jerome Storm", "Jane Reid", 8),
        )
    ],
)


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate.load(preset="fast")


@pytest.mark.parametrize(
    "text",
    [
        "Wer ist der Regisseur von Metropolis?",
        "Was ist die Hauptstadt von Frankreich?",
        "Quelle est la capitale de la France ?",
        "¿Quién dirigió la película Metropolis?",
        "Qual è la capitale della Francia?",
        "Jaka jest stolica Francji?",
        "Vad heter Frankrikes huvudstad?",
        "Mikä on Ranskan pääkaupunki?",
        "Thủ đô của Pháp là gì?",
        "法国的首都是哪里？",
        "Какой город является столицей Франции?",
        "フランスの首都はどこですか",
        "ما هي عاصمة فرنسا؟",
    ],
)
def test_other_languages_are_recognized(gate: Gate, text: str) -> None:
    assert is_foreign(parse_question(text, gate.words).flat)


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of France?",
        "capital france",
        "Who wrote 红楼梦?",
        "Who directed Der Untergang and Das Boot?",
        "Who founded Universidad de los Andes?",
        "When was Los Angeles founded?",
        "Che Guevara death year",
        "Uma Thurman first film",
        "La La Land director",
        "Zürich Genève Köln",
        "SELECT id, name FROM users WHERE id = 3",
        "def f(x): return x + 1",
        "docker compose up -d exits 137",
        "| year | revenue | cost |\n| 2020 | 1,204 | 310 |",
        "",
        "ist",
    ],
)
def test_english_names_code_and_tables_are_not_foreign(gate: Gate, text: str) -> None:
    assert not is_foreign(parse_question(text, gate.words).flat)


def test_wikipedia_is_familiar_and_a_policy_is_not(gate: Gate) -> None:
    known, unknown = gate.check_batch([WIKIPEDIA, POLICY])
    assert known.familiarity > 0.3
    assert known.unfamiliar == ()
    assert "familiarity" not in str(known)
    assert unknown.familiarity < 0.01
    assert unknown.unfamiliar[0] == "No hit has a title; most training hits have one."
    assert unknown.estimate.high - unknown.estimate.low > 0.3
    assert str(unknown).splitlines()[-1].startswith("  familiarity 0.00: No hit has a title;")


def test_each_reason_is_said_where_it_holds(gate: Gate) -> None:
    paris = "Paris ist die Hauptstadt und die größte Stadt von Frankreich."
    german = gate.check("Was ist die Hauptstadt von Frankreich?", [paris])
    assert german.unfamiliar[:2] == (
        "The question is not in English.",
        "The hits are not in English.",
    )
    question, hits = WIKIPEDIA
    some = gate.check(
        question, [*hits, *({"title": "Paris", "text": paris + " " * n} for n in (1, 2))]
    )
    assert "Some hits are not in English." in some.unfamiliar
    long = [{**one, "text": one["text"] * 12} for one in hits]
    assert any("unusually long: about" in one for one in gate.check(question, long).unfamiliar)
    apart = gate.check(
        "Kubernetes pods evicted?", [{"title": "Leek soup", "text": "Leeks, potatoes."}]
    )
    assert "The question shares no word with any hit." in apart.unfamiliar
    assert all(one.endswith(".") for one in (*some.unfamiliar, *apart.unfamiliar))


def test_no_hits_are_familiar_and_never_enough(gate: Gate) -> None:
    nothing = gate.check(POLICY[0], [])
    assert (nothing.familiarity, nothing.unfamiliar) == (1.0, ())
    assert nothing.estimate.high < 0.05


def test_hits_that_are_ids_alone_are_said_to_have_no_text(gate: Gate) -> None:
    verdict = gate.check("Who taught the teacher of Ada?", [Hit("a", 2.0), Hit("b", 1.0)])
    assert (verdict.familiarity, verdict.unfamiliar) == (0.0, ("No hit has a text or a title.",))
    assert "No text came with 2 of 2 hits" in str(verdict)


def test_probability_and_action_do_not_depend_on_familiarity(gate: Gate) -> None:
    anywhere = familiar_gate().check_batch([WIKIPEDIA, POLICY])
    here = gate.check_batch([WIKIPEDIA, POLICY])
    assert [(one.p_complete, one.action) for one in anywhere] == [
        (one.p_complete, one.action) for one in here
    ]
    assert anywhere[1].estimate.high - anywhere[1].estimate.low < 0.15


def test_the_interval_widens_as_familiarity_falls() -> None:
    low, high = widen_interval(np.full(5, 0.4), np.full(5, 0.5), np.array([1, 0.5, 0.1, 0.01, 0]))
    assert (round(float(low[0]), 6), round(float(high[0]), 6)) == (0.4, 0.5)
    assert (np.diff(low) < 0).all()
    assert (np.diff(high) > 0).all()
    assert low[-1] < 0.01
    assert high[-1] > 0.98
    read = widen_interval(np.array([0.4]), np.array([0.5]), np.array([0.0]), read=True)
    assert low[-1] < read[0][0] < 0.4
    assert high[-1] > read[1][0] > 0.5


def test_sets_that_lie_off_widen_the_interval_of_a_gate_for_other_sets() -> None:
    odds = np.tile(np.linspace(-3, 3, 60), 3)
    draw = np.random.default_rng(0)
    complete = draw.random(180) < sigmoid(odds + np.repeat([0.0, 1.5, -1.5], 60))
    sets = np.repeat(["a", "b", "c"], 60).tolist()
    assert 1.0 < shift_between_sets(odds, complete, sets) < 2.2
    fair = draw.random(180) < sigmoid(odds)
    assert shift_between_sets(odds, fair, sets) < 0.8
    assert shift_between_sets(odds, complete, [str(n) for n in range(180)]) == 0  # none is large
    low, high = widen_interval(np.array([0.4]), np.array([0.5]), np.array([1.0]), shift=1.0)
    assert (round(float(low[0]), 2), round(float(high[0]), 2)) == (0.2, 0.73)


def test_two_kinds_of_training_questions_leave_what_is_between_them_unfamiliar() -> None:
    draw = np.random.default_rng(0)
    left = draw.normal(0, 1, (400, len(COLUMNS)))
    right = left + 20
    table = np.concatenate([left, right])
    profile = FormProfile.fit(table, np.arange(800) % 5, seed=0)
    known, shares = profile._shares
    near, between = profile._space.distances(np.array([table[0], table[0] + 10]))
    assert np.interp(near, known, shares) > 0.05
    assert between > known[-1]
    assert profile == FormProfile.fit(table, np.arange(800) % 5, seed=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"means": (0.0,)}, "13 columns"),
        ({"centres": ()}, "needs centres"),
        ({"distances": (2.0, 1.0)}, "must rise"),
        ({"distances": (0.0, float("nan"))}, "beyond"),
        ({"spreads": (0.0,) * len(COLUMNS)}, "above 0"),
    ],
)
def test_a_damaged_profile_is_refused(gate: Gate, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(gate.forms, **change)


def test_a_gate_comes_back_from_disk_with_its_familiarity(gate: Gate, tmp_path: Path) -> None:
    gate.save(tmp_path / "saved")
    assert Gate.load(tmp_path / "saved").check(*POLICY) == gate.check(*POLICY)


# ---- where it is shown


VERDICT = Verdict(
    Estimate(0.1, 0.0, 0.8),
    Action.ABSTAIN,
    familiarity=0.02,
    unfamiliar=("No hit has a <title>.", "The hits\x1b are unusually short."),
)


def test_a_verdict_shows_low_familiarity_on_one_line_and_safely() -> None:
    assert str(VERDICT).splitlines()[1:] == [
        "  familiarity 0.02: No hit has a <title>. The hits  are unusually short."
        " The probability may be far off."
    ]
    html = VERDICT._repr_html_()
    assert "<td>unfamiliar</td>" in html
    assert "&lt;title&gt;" in html
    record = VERDICT.as_json()
    assert (record["familiarity"], len(record["unfamiliar"])) == (0.02, 2)
    assert "unfamiliar" not in Verdict(Estimate(0.9, 0.8, 1), Action.ANSWER)._repr_html_()


def test_the_command_prints_it(gate: Gate, tmp_path: Path) -> None:
    hits = tmp_path / "hits.json"
    hits.write_text(json.dumps(POLICY[1]))
    check = ["check", "--preset", "fast"]
    shown = suffice(*check, POLICY[0], "--hits", hits)
    verdict = gate.check(*POLICY)
    assert verdict.familiarity < LOW_FAMILIARITY
    assert f"familiarity {verdict.familiarity:.2f}: {verdict.unfamiliar[0]}" in shown.stdout
    assert "next: label at least 20 of your own questions" in shown.stderr
    record = json.loads(suffice(*check, POLICY[0], "--hits", hits, "--json").stdout)
    batch = tmp_path / "batch.jsonl"
    batch.write_text(json.dumps({"question": POLICY[0], "hits": POLICY[1]}) + "\n")
    lines = suffice(*check, "--batch", batch).stdout
    assert lines.rstrip().endswith("(unfamiliar)")
    assert record["familiarity"] < LOW_FAMILIARITY
    assert record["unfamiliar"][0].startswith("No hit has a title")


# ---- guards


def test_a_guard_marks_nothing_incomplete_that_the_gate_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(common, "_warned", [])
    guard = Guard(Gate.load(preset="fast"), "test")
    with pytest.warns(UnfamiliarWarning, match=r"marks nothing as incomplete.*suffice adapt"):
        assert guard.passes(VERDICT)
    assert guard.passes(VERDICT)  # warned once, a second warning would be an error
    assert not replace(guard, min_familiarity=0.01).passes(VERDICT)
    known = replace(VERDICT, familiarity=0.5, unfamiliar=())
    assert not guard.passes(known)
    assert replace(guard, min_familiarity=0.6).passes(known)
