"""What must hold of a reading whatever the question and the hits are."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.gate import question as question_module
from suffice.gate.extraction import Extraction, extract
from suffice.gate.features import ABSENT_COLUMNS, HIT_COLUMNS, SET_COLUMNS
from suffice.gate.question import WordTable, parse_question

WORDS = WordTable.load()
PIECES = st.sampled_from(
    [
        *(
            "Ivan Petrov|Solaris Dawn|the|of|director|directed by|born in|Riga|1972|mother|“|”| "
            "(film)|é|Ł|東京|.|,"
        ).split("|"),
        *("\ud800", "İ", "'s", "-", "|", "U.S.", "\n"),
    ]
)
TEXT = st.one_of(
    st.lists(PIECES, max_size=25).map(" ".join),
    st.lists(PIECES, max_size=25).map("".join),
    st.text(max_size=60),
)
SCORE = st.one_of(st.none(), st.just(float("nan")), st.floats(0.001, 1000.0))
HITS = st.lists(st.tuples(TEXT, TEXT, SCORE), max_size=6)


def reading(question: str, hits: list[tuple[str, str, float | None]]) -> Extraction:
    titles, texts, scores = zip(*hits) if hits else ((), (), ())
    return extract(parse_question(question, WORDS), titles, texts, scores, WORDS)


def same(one: Extraction, other: Extraction) -> None:
    assert one.absent_names == other.absent_names
    for a, b in ((one.hits, other.hits), (one.absent, other.absent), (one.figures, other.figures)):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@settings(max_examples=50, deadline=None)
@given(TEXT, HITS)
def test_every_reading_has_its_shape_and_only_finite_figures(
    question: str, hits: list[tuple[str, str, float | None]]
) -> None:
    found = reading(question, hits)
    assert found.hits.shape == (len(hits), len(HIT_COLUMNS))
    assert found.absent.shape == (len(found.absent_names), len(ABSENT_COLUMNS))
    assert found.figures.shape == (len(SET_COLUMNS),)
    assert all(np.isfinite(part).all() for part in (found.hits, found.absent, found.figures))
    assert all(found.absent_names)
    same(found, reading(question, hits))


@settings(max_examples=50, deadline=None)
@given(TEXT, HITS, st.floats(0.01, 100.0))
def test_rescaling_the_scores_changes_nothing(
    question: str, hits: list[tuple[str, str, float | None]], factor: float
) -> None:
    scaled = [
        (title, text, None if score is None else score * factor) for title, text, score in hits
    ]
    same(reading(question, hits), reading(question, scaled))


@settings(max_examples=50, deadline=None)
@given(TEXT, HITS.filter(bool), st.data())
def test_exact_duplicates_have_the_same_row_but_for_rank_and_what_comes_first(
    question: str, hits: list[tuple[str, str, float | None]], data: st.DataObject
) -> None:
    """They cannot be told apart, so exchanging them changes nothing; only the place, and who is
    counted first, differ.
    """
    at = data.draw(st.integers(0, len(hits) - 1))
    found = reading(question, [*hits, hits[at]])
    alike = [HIT_COLUMNS.index(name) for name in HIT_COLUMNS if name not in ("rank", "gain")]
    np.testing.assert_allclose(found.hits[at, alike], found.hits[-1, alike], atol=1e-5)


@settings(max_examples=50, deadline=None)
@given(TEXT, HITS)
def test_shares_and_closeness_stay_between_nothing_and_all(
    question: str, hits: list[tuple[str, str, float | None]]
) -> None:
    found = reading(question, hits)
    shares = (
        "rank",
        "title_share",
        "title_rare",
        "covered",
        "only_here",
        "gain",
        "residual",
        "relation",
        "closeness",
    )
    columns = found.hits[:, [HIT_COLUMNS.index(name) for name in shares]]
    assert (columns >= 0).all()
    assert (columns <= 1 + 1e-5).all()
    whole = found.figures[
        [
            SET_COLUMNS.index(name)
            for name in SET_COLUMNS
            if name.startswith(("cov_", "greedy", "lacks"))
        ]
    ]
    assert (whole >= -1e-5).all()
    assert (whole <= 1 + 1e-5).all()


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=80) | TEXT)
def test_what_is_looked_for_is_what_folding_leaves_and_a_name_is_written_as_it_stands(
    text: str,
) -> None:
    raw = question_module.encode_text(text)
    assert question_module.normalize(raw).split() == question_module.search_key(text).split()
    assert question_module.search_key(
        question_module.search_key(text).decode()
    ) == question_module.search_key(text)
    for name, run in question_module.unique_names(question_module.capitalized_runs(raw)).items():
        assert run in raw
        assert question_module.display_name(run)
        assert name == question_module.search_key(question_module.display_name(run))
