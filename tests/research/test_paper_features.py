"""The papers' features: right on small lists that one can check by hand, and ordinary on odd ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

import numpy as np
import pytest

from suffice.errors import InputError
from suffice.types import Document, Evidence, Hit, Question
from suffice_research.paper_features import (
    FRAMES,
    FRAMES_WITH_HOPS,
    MAGAF,
    REASONING,
    QuestionAnnotations,
    frames_features,
    guess_annotations,
    magaf_features,
)


def news(doc_id: str, source: str, entity: str, day: int, title: str = "") -> Document:
    return Document(
        doc_id, "text", title or doc_id, source, "business", date(2023, 10, day), (entity,)
    )


def evidence_of(
    question: str, documents: list[Document], scores: Sequence[float | None]
) -> Evidence:
    hits = tuple(Hit(document.doc_id, score) for document, score in zip(documents, scores))
    return Evidence(
        Question("q", question), hits, {document.doc_id: document for document in documents}
    )


VERGE = evidence_of(
    "Does The Verge article about Acme agree with the TechCrunch article?",
    [
        news("a", "The Verge", "Acme", 1),
        news("b", "TechCrunch", "Acme", 1),
        news("c", "The Verge", "Bolt", 20),
        news("d", "Wired", "Acme", 28),
        news("e", "Wired", "Core", 28),
    ],
    [4.0, 3.0, 2.0, 1.0, 0.5],
)


def column(rows: np.ndarray, table: tuple, name: str) -> np.ndarray:
    return rows[:, [one.name for one in table].index(name)]


def test_the_tables_have_the_papers_numbers_of_features() -> None:
    assert (len(MAGAF), len(FRAMES), len(FRAMES_WITH_HOPS)) == (20, 18, 19)
    for table in (MAGAF, FRAMES_WITH_HOPS):
        assert len({one.name for one in table}) == len(table)
        assert all(one.meaning.endswith(".") for one in table)
    families = [one.family for one in MAGAF]
    assert {family: families.count(family) for family in set(families)} == {
        "query": 5, "scores": 4, "metadata": 6, "hops": 1, "graph": 1, "attention": 3,
    }  # fmt: skip


def test_magaf_looks_at_the_best_four() -> None:
    rows = magaf_features([VERGE])
    assert column(rows, MAGAF, "top1") == 4.0
    assert column(rows, MAGAF, "top4_mean") == 2.5
    assert column(rows, MAGAF, "top4_min") == 1.0
    assert column(rows, MAGAF, "gap_1_2") == 1.0
    assert column(rows, MAGAF, "gap_4_5") == 0.5
    assert (
        column(rows, MAGAF, "source_diversity") == 0.75
    )  # The Verge, TechCrunch, Wired among four
    assert column(rows, MAGAF, "category_diversity") == 0.25
    assert column(rows, MAGAF, "entity_diversity") == 0.5
    weights = np.exp([4.0, 3.0, 2.0, 1.0])
    shares = weights / weights.sum()
    assert column(rows, MAGAF, "attention_max") == pytest.approx(shares[0], rel=1e-5)
    assert column(rows, MAGAF, "attention_entropy") == pytest.approx(
        -(shares * np.log(shares)).sum(), rel=1e-5
    )


def test_metadata_overlap_is_the_papers_agreement() -> None:
    rows = magaf_features([VERGE])
    # a: source .35 + its whole name .10 + entity .40; b likewise; c: source only; d: entity only
    assert column(rows, MAGAF, "metadata_overlap_max") == pytest.approx(0.85)
    assert column(rows, MAGAF, "metadata_overlap_avg") == pytest.approx(
        (0.85 + 0.85 + 0.45 + 0.40) / 4
    )


def test_graph_density_is_the_formula_of_the_paper() -> None:
    # Edges of the four: three pairs about Acme 1.00 each; all six pairs one category .20; a-c one
    # source .15;
    # a-b the same day .10; c-d 8 days, a-c and b-c 19, a-d and b-d 27: .04 each.
    total = 3 * 1.0 + 6 * 0.2 + 0.15 + 0.10 + 5 * 0.04
    assert column(magaf_features([VERGE]), MAGAF, "graph_density_top4") == pytest.approx(
        2 * total / 12, rel=1e-5
    )


def test_frames_counts_words_and_titles() -> None:
    films = [
        Document("1", "", "Alien (film)"),
        Document("2", "", "Sigourney Weaver"),
        Document("3", "", "Ripley"),
    ]
    rows = frames_features(
        [evidence_of("Who played Ripley in Alien in 1979?", films, [2.0, 1.0, 1.0])]
    )
    assert column(rows, FRAMES, "question_tokens") == 7
    assert column(rows, FRAMES, "question_digits") == 4
    assert column(rows, FRAMES, "temporal_phrase") == 1
    assert column(rows, FRAMES, "top10_nonzero") == 3
    assert column(rows, FRAMES, "top10_entropy") == pytest.approx(
        1.5 * math.log(2)
    )  # shares 1/2, 1/4, 1/4
    assert column(rows, FRAMES, "title_jaccard_max") == pytest.approx(
        1 / 6
    )  # ripley, of six different words
    assert column(rows, FRAMES, "title_jaccard_mean") == pytest.approx((1 / 7 + 0 + 1 / 6) / 3)


def test_what_the_papers_are_told_goes_in_where_it_is_given() -> None:
    labels = QuestionAnnotations(["null"], [{"Tabular reasoning", "Multiple constraints"}], [3])
    magaf = magaf_features([VERGE], question_labels=labels)
    assert column(magaf, MAGAF, "is_null_query") == 1
    assert column(magaf, MAGAF, "estimated_hops") == 3
    frames = frames_features([VERGE], question_labels=labels, hops=True)
    assert frames.shape == (1, 19)
    assert column(frames, FRAMES_WITH_HOPS, "reasoning_labels") == 2
    assert column(frames, FRAMES_WITH_HOPS, "is_tabular_reasoning") == 1
    assert column(frames, FRAMES_WITH_HOPS, "gold_hops") == 3


def test_without_being_told_cue_words_decide_and_nothing_is_ever_guessed_to_be_null() -> None:
    guess = guess_annotations(
        [
            VERGE.question.text,
            "Did it change between October 1, 2023 and October 9, 2023?",
            "Who is the founder?",
        ]
    )
    assert list(guess.kinds) == ["comparison", "temporal", "inference"]
    assert "numerical reasoning" in guess_annotations(["How many letters are in it?"]).labels[0]
    assert set(REASONING) >= set().union(*guess.labels)


def test_the_gold_hop_count_is_not_there_for_the_asking() -> None:
    with pytest.raises(InputError, match="data set only"):
        frames_features([VERGE], hops=True)
    with pytest.raises(InputError, match="each of the 1 questions"):
        magaf_features([VERGE], question_labels=QuestionAnnotations([], [], []))


@pytest.mark.parametrize(
    "evidence",
    [
        evidence_of("", [], []),
        evidence_of("Who?", [], []),
        evidence_of("Who?", [Document("1", "")], [None]),
        evidence_of("Who?", [Document("1", "")], [math.nan]),
        evidence_of("Who?", [Document("1", ""), Document("2", "")], [math.inf, -math.inf]),
        Evidence(Question("q", "Who?"), (Hit("unknown", 1.0), Hit("other", 0.5))),
        Evidence(Question("q", "Who?"), (Hit("1", 1.0), Hit("1", 1.0)), {"1": Document("1", "x")}),
    ],
    ids=["nothing asked", "no hits", "no score", "nan", "infinite", "no documents", "a hit twice"],
)
def test_odd_evidence_gives_finite_rows(evidence: Evidence) -> None:
    assert np.isfinite(magaf_features([evidence])).all()
    assert np.isfinite(frames_features([evidence])).all()
