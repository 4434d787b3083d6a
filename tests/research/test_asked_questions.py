"""What a language model asked: only about what training may show, and only where it is sure."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from suffice.errors import InputError
from suffice_research.training.asked_data import (
    AskedQuestion,
    Document,
    Group,
    KeptQuestion,
    draw_groups,
    keep_questions,
    load_questions,
    save_kept,
)
from suffice_research.training.asked_questions import main
from suffice_research.training.cases import EVERYDAY, Case, Passage, everyday_cases
from suffice_research.training.reader_data import (
    asked_cases,
    hide_judged,
    number_passages,
    search_sources,
)
from suffice_research.training.reader_lists import UNLABELLED, WEIGHTS

RENT, DEPOSIT, PETS, HEATING = (
    Passage("Lease", "The rent is 900 euros, due on the third."),
    Passage("Deposit", "The deposit is two months' rent."),
    Passage("", "Pets need the landlord's consent."),
    Passage("", "The heating is serviced in May."),
)
LEASE = Group(7, "everyday/people", "learn", "When is the rent due?", (0,), (
    Document("Lease", RENT.text), Document("Deposit", DEPOSIT.text), Document("", PETS.text),
), (RENT.key, DEPOSIT.key, PETS.key))  # fmt: skip


def judged(question: str, *p: float, needed: tuple[int, ...] = (0,)) -> AskedQuestion:
    return AskedQuestion(7, needed, question, p)


@cache
def everyday() -> list[Case]:
    return list(everyday_cases(EVERYDAY))


def test_groups_to_learn_from_hold_nothing_that_only_judged_questions_need():
    cases = everyday()[::4]
    learned = {one for case in cases if case.part == "learn" for one in case.needed}
    secret = {one for case in cases if case.part != "learn" for one in case.needed} - learned
    # A look-alike of a question to learn from that a judged question needs.
    at = next(at for at, case in enumerate(cases) if case.part == "learn")
    cases[at] = replace(cases[at], distractors=(*cases[at].distractors[:2], min(secret, key=str)))
    cases, retrieved, shown = hide_judged(cases, search_sources(cases))
    groups = draw_groups(cases, retrieved, shown, number_passages(cases, retrieved))
    assert {group.part for group in groups} == {"learn", "test", "unseen"}
    hidden = {one.key for one in secret}
    for group in groups:
        assert group.part != "learn" or hidden.isdisjoint(group.keys)
        assert len(group.docs) == len(group.keys) <= 10
        needed = [Passage(group.docs[n].title, group.docs[n].text).key for n in group.needed]
        assert needed == [group.keys[n] for n in group.needed]
    assert any(hidden.intersection(group.keys) for group in groups)


def test_a_question_is_kept_where_the_judgement_is_what_it_was_to_need():
    kept, counts = keep_questions(
        [
            judged("How high is the rent?", 0.97, 0.04, 0.01, 0.9),
            judged("how high is the rent?", 0.97, 0.04, 0.01, 0.9),
            judged("How much is the deposit in euros?", 0.8, 0.9, 0.0, 0.7, needed=(0, 1)),
            judged("What has to be paid at first?", 0.8, 0.9, 0.0, 0.7, needed=(1,)),
            judged("Are pets allowed?", 0.0, 0.0, 0.9, 0.9),
            judged("When is it due again?", 0.7, 0.0, 0.0, 0.04),
            judged("Rent?", 0.97, 0.04, 0.01, 0.9),
            judged("What does [1] say about rent?", 0.97, 0.04, 0.01, 0.9),
            judged("Is there a lift in the house?", 0.0, 0.13, 0.0, 0.0, needed=()),
            judged("Is there a bath in the house?", 0.0, 0.03, 0.0, 0.0, needed=()),
            judged("When is the rent DUE", 0.97, 0.04, 0.01, 0.9),
        ],
        {7: LEASE},
        {"when is the rent due"},
    )
    assert kept == [
        KeptQuestion("How high is the rent?", (RENT.key,), (DEPOSIT.key, PETS.key)),
        KeptQuestion("How much is the deposit in euros?", (RENT.key, DEPOSIT.key), (PETS.key,)),
        KeptQuestion("Is there a bath in the house?", (), LEASE.keys),
    ]
    assert counts == {
        "kept, 0 needed": 1, "kept, 1 needed": 1, "kept, 2 needed": 1, "asked twice": 1,
        "form": 2, "judged otherwise": 2, "not complete": 1, "something may answer it": 1,
        "known question": 1,
    }  # fmt: skip


def test_a_step_without_the_one_before_it_is_an_error_with_a_hint(tmp_path, capsys, monkeypatch):
    from suffice_research.training import cases

    monkeypatch.setattr(cases, "SOURCES", {})
    missing = str(tmp_path / "groups.jsonl")
    assert main(["keep", missing, missing, "--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "groups.jsonl does not exist" in (printed := capsys.readouterr().err)
    assert "hint: the steps are groups, ask, judge, keep" in printed


# ---- in the data that the reader learns from


def write(folder: Path, *rows: tuple[str, tuple[Passage, ...], tuple[Passage, ...]]) -> Path:
    questions = [
        KeptQuestion(question, tuple(one.key for one in needed), tuple(one.key for one in others))
        for question, needed, others in rows
    ]
    save_kept(questions, folder)
    return folder


def test_questions_about_unknown_or_hidden_passages_are_left_out(tmp_path):
    cases = [
        Case("everyday/people", "a", "When is the rent due?", (RENT,), (DEPOSIT, PETS), part="learn"),
        Case("everyday/people", "b", "Who may have a dog?", (PETS,), (HEATING,), part="test"),
        Case("tatqa", "c", "How high is the rent?", (RENT,), (DEPOSIT,), part="learn"),
    ]  # fmt: skip
    folder = write(
        tmp_path,
        ("How much is the deposit?", (DEPOSIT,), (RENT,)),
        ("Is there a lift?", (), (RENT, DEPOSIT)),
        ("May I have a cat?", (PETS,), (RENT,)),  # a judged question needs it
        ("When is the heating serviced?", (HEATING,), ()),  # not of a question to learn from
        ("Where is the lift?", (Passage("", "The lift is in the yard."),), (RENT,)),
        ("who may have a dog", (RENT,), (DEPOSIT,)),  # a judged question
    )
    found, left_out = asked_cases(folder, cases)
    assert left_out == 4
    assert [(one.source, one.part, one.needed, one.distractors) for one in found] == [
        ("questions/everyday", "learn", (DEPOSIT,), (RENT,)),
        ("questions/everyday", "learn", (), (RENT, DEPOSIT)),
    ]
    assert found[0].source.split("/")[0] in {**WEIGHTS, **UNLABELLED}
    hits = search_sources([*cases, *found])
    assert set(hits[3]) == {RENT, DEPOSIT, PETS, HEATING}  # searched among everyday passages
    _, hits, shown = hide_judged([*cases, *found], hits)
    assert PETS not in shown
    assert set(hits[3]) == {RENT, DEPOSIT}


def test_rows_of_another_file_and_nothing_to_keep_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for wrong in ('{"case": 1}\n', "[]\n", "no json\n", "\xff\n"):
        path.write_text(wrong, encoding="latin-1")
        with pytest.raises(InputError, match="line 1 of"):
            load_questions(path)
    kept = tmp_path / "questions.jsonl.gz"
    kept.write_bytes(b"as it was")
    with pytest.raises(InputError, match="no question was kept"):
        save_kept([], tmp_path)
    assert kept.read_bytes() == b"as it was"
