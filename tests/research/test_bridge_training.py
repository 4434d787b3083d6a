"""The ranker learns from states, the same bytes from the same seed, and its failures are told
apart.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.errors import InputError
from suffice.retrieval.bridge import BridgeRetriever, WeightedRanker
from suffice.retrieval.builtin import bridge
from suffice.retrieval.candidate_pool import FEATURES
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.retrieval.memory import MemoryStore
from suffice.types import Document, Question
from suffice_research.training import bridge_training
from suffice_research.training.bridge_training import (
    FOLDS,
    BridgeQuestions,
    bridge_questions,
    candidate_states,
    fit_own_ranker,
    fit_ranker,
    fitted_path_states,
    path_folds,
)

SMALL = {
    "max_iter": 8,
    "max_bins": 16,
    "max_leaf_nodes": 4,
    "min_samples_leaf": 5,
    "learning_rate": 0.3,
}


def village(films: int = 24, *, titled: bool = True) -> BridgeQuestions:
    """Films whose directors have pages: the film is named, the director's page shares no word with
    the question.
    """
    documents, examples = [], []
    for at in range(films):
        film, person = f"Tide of Harbour{at}", f"Jon Vale{at}"
        documents += [
            Document(f"film{at}", f"{film} is a film directed by {person}.", film),
            Document(f"person{at}", f"{person} was born in {1900 + at}.", person),
        ]
        question = Question(f"q{at}", f"When was the director of {film} born?")
        examples.append(
            GoldQuestion(question, Gold(f"q{at}", frozenset({f"film{at}", f"person{at}"}), hops=2))
        )
    if not titled:
        documents = [replace(one, title="") for one in documents]
    encoder = WordLlamaEncoder()
    store = MemoryStore(documents, encoder.encode([searchable_text(one) for one in documents]))
    retriever = bridge(store, encoder=encoder, ranker=WeightedRanker(), depth=4)
    assert isinstance(retriever, BridgeRetriever)
    return BridgeQuestions.of("village", retriever, examples)


@pytest.fixture(scope="module")
def training() -> BridgeQuestions:
    return village()


def test_states_hold_what_is_needed_and_what_is_not(training: BridgeQuestions) -> None:
    states = candidate_states(training)
    assert states.rows.shape == (len(states.needed), len(FEATURES))
    assert states.needed.any()
    assert not states.needed.all()
    assert set(states.question.tolist()) == set(range(len(training.questions)))
    assert all(not pool.held for pool in training.pools)


def test_the_same_seed_gives_the_same_bytes(training: BridgeQuestions) -> None:
    first, again = (fit_ranker([candidate_states(training)], trees=SMALL) for _ in range(2))
    assert first.content == again.content


def test_what_was_learned_is_used(training: BridgeQuestions) -> None:
    ranker = fit_ranker([candidate_states(training)], trees=SMALL)
    found = training.choose(ranker, np.arange(6), 2)
    assert [set(ids) for ids in found] == [{f"film{at}", f"person{at}"} for at in range(6)]


def test_fitted_paths_depend_on_one_other_fold(
    training: BridgeQuestions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_training, "TREES", SMALL)
    states, folds = candidate_states(training), training.folds(42)
    on_paths = fitted_path_states(training, states)
    assert set(on_paths.question.tolist()) == set(range(len(training.questions)))
    fold = folds[0]
    assert path_folds(folds)[0] != fold
    inverted = replace(states, needed=states.needed ^ (folds == fold)[states.question])
    changed = fitted_path_states(training, inverted)
    for one in range(FOLDS):  # only the paths that this fold's ranker chose
        followed = path_folds(folds) == one
        same = np.array_equal(on_paths.of(followed).rows, changed.of(followed).rows)
        assert same == (one != fold)


def test_a_fold_without_questions_has_no_ranker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_training, "TREES", SMALL)
    few = village(3)  # in five folds
    on_paths = fitted_path_states(few, candidate_states(few))
    known = np.isin(path_folds(few.folds(42)), few.folds(42))
    assert set(on_paths.question.tolist()) == set(np.flatnonzero(known).tolist())


def test_an_own_ranker_learns_along_fitted_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_training, "TREES", SMALL)
    training = village()
    documents = list(training.bridge.store.documents())
    dataset = Dataset(
        "village",
        documents=lambda bad: iter(documents),
        questions=lambda bad: iter(training.questions),
    )
    fitted = fit_own_ranker(dataset, training.bridge.encoder, k=2)
    drawn = bridge_questions(dataset, training.bridge.encoder)
    states = candidate_states(drawn)
    on_paths = fitted_path_states(drawn, states)
    assert fitted.ranker.content == fit_ranker([states, on_paths]).content
    assert fitted.ranker.content != fit_ranker([states]).content


def test_the_judged_choice_is_what_the_shipped_retriever_returns() -> None:
    texts = {"The Verge": "The founder of the exchange on trial, day", "Fortune": "A verdict, day"}
    documents = [
        Document(f"{source}-{at}", f"{text} {at}", f"{source} {at}", source=source)
        for source, text in texts.items()
        for at in range(8)
    ]
    question = "What did The Verge and Fortune say of the founder of the exchange on trial?"
    encoder = WordLlamaEncoder()
    store = MemoryStore(documents, encoder.encode([searchable_text(one) for one in documents]))
    ranker = WeightedRanker({"bm25": 5.0})
    bare = bridge(store, encoder=encoder, ranker=ranker, spread=False)
    assert isinstance(bare, BridgeRetriever)
    gold = GoldQuestion(Question("q", question), Gold("q", frozenset({"Fortune-1"})))
    (chosen,) = BridgeQuestions.of("news", bare, [gold]).choose(ranker, np.arange(1), 4)
    (shipped,) = bridge(store, encoder=encoder, ranker=ranker).search([question], k=4)
    assert chosen == [hit.doc_id for hit in shipped]
    assert chosen != [hit.doc_id for hit in bare.search([question], k=4)[0]]


def test_without_gold_among_the_candidates_nothing_is_learned(training: BridgeQuestions) -> None:
    lost = [
        GoldQuestion(one.question, Gold(one.question.question_id, frozenset({"nowhere"})))
        for one in training.questions[:2]
    ]
    with pytest.raises(InputError, match="nothing can be learned"):
        candidate_states(BridgeQuestions.of("lost", training.bridge, lost))


def test_a_question_stays_in_its_fold(training: BridgeQuestions) -> None:
    folds = training.folds(42)
    assert (
        replace(training, questions=training.questions[::-1]).folds(42).tolist()
        == folds[::-1].tolist()
    )
    assert set(folds.tolist()) <= set(range(5))
