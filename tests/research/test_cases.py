"""The cases say nothing by their form alone, and none is in two parts."""

import json
from collections import Counter

import numpy as np
import pytest

from suffice_research.training import cases as case_module
from suffice_research.training.cases import (
    EVERYDAY,
    PARTS,
    SOURCES,
    WIDE,
    Case,
    everyday_cases,
    load_cases,
)

FILES = sorted(EVERYDAY.rglob("*.jsonl"))
# Here needed documents are two words shorter on average: a weakness that the README names.
SHORTER = {"looked_up": 0.33, "parts_of_a_question": 0.39}
LONGER = {"claims": 0.65, "contracts": 0.7, "manuals": 0.64, "rulebooks": 0.69}


def area_under_curve(pairs: list[tuple[float, bool]]) -> float:
    good, bad = (
        np.sort([value for value, yes in pairs if yes is wanted]) for wanted in (True, False)
    )
    below, above = (np.searchsorted(bad, good, side) for side in ("left", "right"))
    return float((below + above).mean() / 2 / len(bad))


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [*everyday_cases(EVERYDAY), *everyday_cases(WIDE)]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_length_and_titles_do_not_tell_needed_documents_from_others(path, cases):
    mine = [case for case in cases if case.source == f"everyday/{path.stem}"]
    documents = [
        (one, yes) for case in mine for yes, block in ((True, case.needed), (False, case.distractors))
        for one in block
    ]  # fmt: skip
    least, most = SHORTER.get(path.stem, 0.4), LONGER.get(path.stem, 0.6)
    assert least < area_under_curve([(len(one.text.split()), yes) for one, yes in documents]) < most
    assert 0.4 < area_under_curve([(float(bool(one.title)), yes) for one, yes in documents]) < 0.6


def test_every_everyday_case_is_whole_and_has_an_id_of_its_own(cases):
    assert len(cases) > 3500
    ids = [json.loads(line)["id"] for path in FILES for line in path.read_text().splitlines()]
    assert max(Counter(ids).values()) == 1
    for case in cases:
        passages = [*case.needed, *case.distractors]
        assert case.question.strip(), case.group
        assert len(case.distractors) >= 3, case.group
        assert all(one.text.strip() for one in passages), case.group
        assert len(set(passages)) == len(passages), case.group


def test_parts_keep_groups_together_and_unseen_sources_away(cases):
    parts: dict[str, set[str]] = {}
    of_group: dict[str, set[str]] = {}
    for case in cases:
        assert case.part in PARTS
        parts.setdefault(case.source, set()).add(case.part)
        of_group.setdefault(case.group, set()).add(case.part)
    assert all(len(some) == 1 for some in of_group.values())
    assert parts["everyday/legal_finance"] == parts["everyday/home_texts"] == {"unseen"}
    assert parts["everyday/people"] == {"learn", "stack", "test"}


def test_the_public_sets_are_read(data_folder, monkeypatch):
    some = {name: SOURCES[name] for name in ("hotpotqa", "squad2", "covidqa", "policyqa")}
    monkeypatch.setattr(case_module, "SOURCES", some)  # the others take as long again
    found = load_cases(data_folder, [])
    counts = Counter(case.source for case in found)
    assert counts["hotpotqa"] > 4000
    assert counts["squad2"] > 8000
    assert counts["covidqa"] > 1000
    assert {case.part for case in found if case.source == "covidqa"} == {"unseen"}
    marked = next(case for case in found if case.source == "policyqa")
    (span,) = marked.answers
    assert span.passage in marked.needed
    assert span.passage.text[span.start : span.end].strip()
