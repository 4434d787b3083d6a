"""Whoever judges has not seen what it judges, and the study searches as the retriever does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.research.test_bridge_quality import (
    FILM,
    QUESTION,
    RIVER,
    ByAhead,
    ByReading,
    Letters,
    Prefers,
    Towards,
    village,
)

from suffice.retrieval.name_links import name_links
from suffice_research.bridge_quality import (
    PairTokenizer,
    QualityBridgeRetriever,
    TokenPair,
)
from suffice_research.training.scorer_data import (
    ScorerQuestion,
)
from suffice_research.training.scorer_search import (
    FOLDS,
    SETS,
    Collection,
    States,
    Unasked,
    folds,
    hand_rank,
    search,
)
from suffice_research.training.scorer_study import (
    Task,
    run_tasks,
    search_tasks,
    wanted_tasks,
)


def seen_by_looking(name: str) -> set[tuple[str, str]]:
    """The groups that a next-hop encoder was trained on: none, where there are further questions."""
    return {("musique", str(fold)) for fold in range(FOLDS)} if name == "musique" else set()


def seen_by_scorer(name: str) -> set[tuple[str, str]]:
    """The groups (data set, fold) that a scorer was trained on, by the name of its file."""
    without = name.split("-")
    groups = ((one, str(fold)) for one in SETS for fold in range(FOLDS))
    return {group for group in groups if not set(group) & set(without)}


def group_of(path: Path) -> tuple[str, str]:
    _, name, fold = f"held-{path.stem}".rsplit("-", 2)
    return name, fold


def test_nothing_that_judges_a_group_has_seen_it(tmp_path: Path) -> None:
    makers = {task.makes: task for task in search_tasks(tmp_path)}

    def seen(path: Path) -> set[tuple[str, str]]:
        """All groups whose labels had any part in making a file."""
        if path.parent.name == "scorers":
            return seen_by_scorer(path.stem)
        if path.parent.name == "looking":
            return seen_by_looking(path.stem)
        before = set().union(*(seen(one) for one in makers[path].needs), set())
        return before | ({group_of(path)} if path.suffix == ".npz" else set())

    held = [path for path in makers if "held" in path.parts]
    assert len(held) == 2 * len(SETS) * FOLDS  # by folds, and left out
    for path in held:
        unseen = path.parent.name
        groups = set().union(*(seen(one) for one in makers[path].needs))
        assert groups
        assert not any(unseen in group for group in groups)
        assert unseen in group_of(path)
        looking = [one.stem for one in makers[path].needs if one.parent.name == "looking"]
        assert looking
        assert not any(unseen in one.split("+") for one in looking)


def test_what_a_reader_learns_from_was_read_and_ranked_by_who_had_not_seen_it(
    tmp_path: Path,
) -> None:
    makers = {task.makes: task for task in search_tasks(tmp_path)}
    searched = [task for path, task in makers.items() if "rows" in path.parts]
    assert len(searched) == 15 + 2 * (3 * 10 + 5 * 12 + 15)
    for task in searched:
        own = group_of(task.makes)
        scorers = [one.stem for one in task.needs if one.parent.name == "scorers"]
        assert all(own not in seen_by_scorer(one) for one in scorers)
        looking = [one.stem for one in task.needs if one.parent.name == "looking"]
        assert len(looking) == len(scorers)
        assert all(own not in seen_by_looking(one) for one in looking)
        if task.makes.parent.name in SETS:
            left_out = {task.makes.parent.name, own[0]}
            assert not any(left_out.intersection(one.split("+")) for one in looking)
        trees = [one for one in task.needs if one.parent.name == "trees"]
        assert own not in {group_of(row) for tree in trees for row in makers[tree].needs}


def test_questions_with_the_same_text_are_in_one_fold() -> None:
    texts = [f"Who wrote book {at}?" for at in range(10)] * 2
    fold = folds([ScorerQuestion("hotpotqa", text, (), False) for text in texts])
    assert fold[:10].tolist() == fold[10:].tolist()
    assert np.bincount(fold).tolist() == [4, 4, 4, 4, 4]


# ---- searching


class ByTitle(PairTokenizer):
    """Tells a scorer the titles instead of tokens, with how many are held."""

    def __init__(self) -> None:
        self.held: list[int] = []
        self.titles: list[str] = []

    def pairs(
        self, question: str, held: Sequence[str], candidates: Sequence[str]
    ) -> list[TokenPair]:
        self.held += [len(held)] * len(candidates)
        self.titles += candidates
        return [TokenPair((at,), 0) for at in range(len(candidates))]

    def log_odds(self, scorer: Prefers, pairs: Sequence[TokenPair]) -> np.ndarray:
        texts, held = self.titles[-len(pairs) :], self.held[-len(pairs) :]
        p = [scorer.score("", [""] * count, [text])[0] for count, text in zip(held, texts)]
        return np.log(p / (1 - np.array(p)))


def one_village() -> Collection:
    store = village()
    documents = list(store.documents())
    bridge = QualityBridgeRetriever(
        store, Letters(), name_links(store.documents), ByReading(), scorer=Unasked()
    )
    return Collection(
        "musique",
        [ScorerQuestion("musique", QUESTION, (), False)],
        ["q"],
        [frozenset({"d0", "d1"})],
        bridge.build_pools([QUESTION]),
        store,
        {one.doc_id: at for at, one in enumerate(documents)},
        name_links(store.documents),
    )


@pytest.mark.parametrize("looks", [False, True])
def test_the_study_holds_what_the_retriever_would(looks: bool) -> None:
    store, wants = village(), ("Xawery", "Oder", "Polish", "Małgorzata")
    next_hop = Towards(FILM, RIVER, FILM, RIVER) if looks else None
    ranker = ByAhead() if looks else ByReading()
    reading = QualityBridgeRetriever(
        store, Letters(), name_links(store.documents), ranker,
        scorer=Prefers(*wants), next_hop=next_hop,
    )  # fmt: skip
    (hits,) = reading.search([QUESTION], k=4)
    told = ByTitle()
    score = partial(told.log_odds, Prefers(*wants))
    (held,) = search(one_village(), told, score, ranker.p, next_hop=next_hop)
    assert held == [hit.doc_id for hit in hits]


def test_states_along_a_path_have_needed_candidates_and_the_same_again() -> None:
    made = []
    for _ in range(2):
        states = States([], [])
        search(one_village(), ByTitle(), None, hand_rank, oracle=1.0, states=states)
        made.append(states.arrays())
    rows, needed = made[0]
    assert needed.any()
    assert not needed.all()
    assert (rows == made[1][0]).all()


def test_a_search_along_gold_leaves_nothing_in_the_pools() -> None:
    one = one_village()
    (pool,) = one.pools
    pool.features()  # fills what it computes once
    before = {
        name: value.copy() for name, value in vars(pool).items() if isinstance(value, np.ndarray)
    }
    search(one, ByTitle(), None, hand_rank, oracle=1.0, states=States([], []))
    assert pool.held == []
    assert all(np.array_equal(getattr(pool, name), value) for name, value in before.items())


# ---- tasks


def write_sum(makes: Path, needs: Sequence[Path]) -> None:
    makes.write_text(str(1 + sum(int(one.read_text()) for one in needs)))


def chain(folder: Path) -> list[Task]:
    a, b, c = (folder / name for name in "abc")
    return [
        Task(c, (a, b), write_sum, (c, (a, b))),
        Task(b, (a,), write_sum, (b, (a,))),
        Task(a, (), write_sum, (a, ())),
    ]


def test_tasks_resume_with_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("5")
    assert [task.makes.name for task in wanted_tasks(chain(tmp_path))] == ["c", "a"]
    assert run_tasks(chain(tmp_path), 1, -1.0) == 2  # no time
