"""CompleteRecall inside the real ir_measures."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "ir_measures", reason="ir-measures is not installed: pip install --no-deps ir-measures"
)

import ir_measures as ir

from suffice.integrations.ir_measures import CompleteRecall

QRELS = {
    "both": {"film": 1, "director": 1, "soup": 0},
    "half": {"film": 1, "director": 1},
    "graded": {"film": 2, "director": 1},
    "nothing": {"soup": 0},
    "unasked": {"film": 1},
}
RUN = {
    "both": {"film": 3.0, "director": 2.0, "soup": 1.0},
    "half": {"film": 3.0, "soup": 2.0, "director": 1.0},
    "graded": {"film": 3.0, "soup": 2.0, "mice": 1.0},
    "nothing": {"soup": 3.0},
    "stranger": {"film": 1.0},
}


def complete(measure: object) -> dict[str, float]:
    """Without those that are 0."""
    found = {one.query_id: one.value for one in ir.iter_calc([measure], QRELS, RUN)}
    assert set(found) == set(QRELS)
    return {name: value for name, value in found.items() if value}


def test_all_relevant_documents_or_nothing() -> None:
    assert complete(CompleteRecall @ 2) == {"both": 1}
    assert complete(CompleteRecall @ 3) == {"both": 1, "half": 1}
    assert complete(CompleteRecall(rel=2) @ 1) == {"graded": 1}


def test_it_is_known_by_name_and_stands_beside_other_measures() -> None:
    measure = ir.parse_measure("CompleteRecall@2")
    assert str(measure) == "CompleteRecall@2"
    assert ir.calc_aggregate([measure], QRELS, RUN) == {measure: 0.2}
    both = ir.evaluator([measure, ir.Judged @ 2], QRELS).calc_aggregate(RUN)
    assert both[measure] == 0.2  # the same alone and beside others
    assert set(map(str, both)) == {"CompleteRecall@2", "Judged@2"}


def test_documents_with_the_same_score_keep_the_packages_order() -> None:
    tied = {"q": {"b": 1.0, "a": 1.0}}
    first = next(iter(ir.util.RunConverter(tied).as_sorteddict()["q"])).doc_id
    assert (CompleteRecall @ 1).calc_aggregate({"q": {first: 1}}, tied) == 1.0


@pytest.mark.parametrize("odd", [CompleteRecall, CompleteRecall @ "2"])
def test_a_cutoff_is_needed_and_a_number(odd: object) -> None:
    with pytest.raises((AssertionError, ValueError)):
        ir.calc_aggregate([odd], QRELS, RUN)


def test_no_questions_are_no_mean() -> None:
    assert str((CompleteRecall @ 2).calc_aggregate({}, {})) == "nan"
