"""The bridge retriever and its rankers: along names, for what the held documents do not say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from suffice.errors import DataError, NotReadyError
from suffice.retrieval.bridge import (
    EXPANDED,
    INTO,
    OUT,
    SHARED,
    SHIPPED,
    SHIPPED_UNTITLED,
    BridgeRetriever,
    RankerByTitles,
    TreeRanker,
    WeightedRanker,
)
from suffice.retrieval.builtin import bridge
from suffice.retrieval.candidate_pool import COLUMN, FEATURES
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.retrieval.links import NAMESAKES
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.name_links import name_links
from suffice.types import Condition, Document, Filter, Hit

ENCODER = WordLlamaEncoder()
CHAIN = (
    Document(
        "film", "The Silent Tide is a film directed by Jon Vale.", "The Silent Tide", source="BBC"
    ),
    Document(
        "vale", "Jon Vale grew up in Leeds. He was raised by Ann Corda.", "Jon Vale", source="NHK"
    ),
    Document("corda", "Ann Corda was a painter who died in 1931.", "Ann Corda", source="BBC"),
    *(
        Document(
            f"noise{at}",
            f"Film number {at} was directed in {1900 + at} by somebody.",
            f"Picture {at}",
        )
        for at in range(40)
    ),
)


def made(*documents: Document, **options: object) -> BridgeRetriever:
    store = MemoryStore(documents, ENCODER.encode([searchable_text(one) for one in documents]))
    found = bridge(store, encoder=ENCODER, spread=False, **options)  # type: ignore[arg-type]
    assert isinstance(found, BridgeRetriever)
    return found


def ids(hits: tuple[Hit, ...]) -> list[str]:
    return [hit.doc_id for hit in hits]


@pytest.mark.parametrize("ranker", [None, WeightedRanker()])
def test_a_chain_of_three_is_followed(ranker: WeightedRanker | None) -> None:
    (hits,) = made(*CHAIN, ranker=ranker, depth=2).search(
        ["When did the woman who raised the director of The Silent Tide die?"], k=3
    )
    assert set(ids(hits)) == {"film", "vale", "corda"}


def test_links_do_not_lead_past_a_filter() -> None:
    only = Filter((Condition("source", "$in", ("BBC",)),))
    (hits,) = made(*CHAIN).search(
        ["Who raised the director of The Silent Tide?"], k=5, filters=[only]
    )
    assert set(ids(hits)) == {"film", "corda"}


def test_looks_at_the_store_are_few() -> None:
    found = made(*CHAIN)
    looks = 0
    get = found.store.get

    def counted(doc_ids: list[str]) -> list[Document | None]:
        nonlocal looks
        looks += 1
        return get(doc_ids)

    found.store.get = counted  # type: ignore[method-assign,assignment]
    found.search(["Who raised the director of The Silent Tide?"] * 3, k=5)
    assert looks <= found.hops + 2


def test_links_in_a_circle_end() -> None:
    ring = [
        Document(str(at), f"Stone {at} points at Stone{(at + 1) % 5} Ring.", f"Stone{at} Ring")
        for at in range(5)
    ]
    (hits,) = made(*ring).search(["Where does Stone0 Ring point?"], k=50)
    assert len(set(ids(hits))) == len(hits) <= 5


def test_a_page_that_links_to_all_others_brings_a_few() -> None:
    others = [Document(f"d{at}", "A village.", f"Upper Village{at}") for at in range(600)]
    everything = Document(
        "list", "Villages: " + ", ".join(one.title for one in others), "List of villages"
    )
    found = made(everything, *others, depth=3)
    (pool,) = found.build_pools(["What is on the List of villages?"])
    assert len(pool) <= 6 + NAMESAKES + EXPANDED * (OUT + NAMESAKES + SHARED + INTO)
    assert len(pool) < 200


def test_a_title_of_many_documents_brings_at_most_its_namesakes() -> None:
    many = [Document(f"d{at}", f"Paragraph {at} on rivers.", "Kingston Town") for at in range(100)]
    (pool,) = made(*many, depth=2).build_pools(["Where is Kingston Town?"])
    assert len(pool) <= NAMESAKES + 4 + SHARED


def test_documents_without_titles_are_bridged_by_shared_names() -> None:
    texts = {
        "a": "The tower in Harbour Lane was designed by Ralph Rapson.",
        "b": "Ralph Rapson spent his last years in Minneapolis.",
        **{f"x{at}": f"Tower {at} was designed long ago by someone in a lane." for at in range(30)},
    }
    documents = [Document(name, text) for name, text in texts.items()]
    (hits,) = made(*documents, depth=3).search(
        ["Where did the designer of the tower in Harbour Lane die?"], k=5
    )
    assert "b" in ids(hits)


def test_documents_that_came_after_the_links_are_found() -> None:
    store = MemoryStore(CHAIN, ENCODER.encode([searchable_text(one) for one in CHAIN]))
    links = name_links(lambda: CHAIN[2:])
    (hits,) = bridge(store, encoder=ENCODER, links=links).search(
        ["Who directed The Silent Tide?"], k=2
    )
    assert "film" in ids(hits)


def test_documents_that_are_gone_are_not_found() -> None:
    store = MemoryStore(CHAIN, ENCODER.encode([searchable_text(one) for one in CHAIN]))
    links = name_links(lambda: CHAIN)
    store.delete(["vale"])
    (hits,) = bridge(store, encoder=ENCODER, links=links).search(
        ["Who directed The Silent Tide?"], k=5
    )
    assert "vale" not in ids(hits)


def rows(**values: float) -> np.ndarray:
    made = np.zeros((1, len(FEATURES)), np.float32)
    for name, value in values.items():
        made[0, COLUMN[name]] = value
    return made


@pytest.fixture(scope="module", params=[SHIPPED, SHIPPED_UNTITLED], ids=["titled", "untitled"])
def shipped(request: pytest.FixtureRequest) -> TreeRanker:
    return TreeRanker.load(request.param)


def test_each_question_has_the_ranker_of_its_candidates() -> None:
    ranker = RankerByTitles(WeightedRanker({"bm25": 1.0}), WeightedRanker({"dense": 1.0}))
    both = np.concatenate([rows(bm25=1), rows(bm25=1, untitled=1)])
    titled, untitled = ranker.p(both).tolist()
    assert titled > untitled
    assert ranker.p(both[:0]).shape == (0,)


def test_a_document_that_is_named_and_covers_the_question_comes_before_one_that_does_neither(
    shipped: TreeRanker,
) -> None:
    good, bad = (
        rows(bm25=1, dense=1, named=1, named_best=1, covered=0.8, adds=0.8, adds_best=1),
        rows(bm25=0.1, dense=0.4),
    )
    for ranker in (shipped, WeightedRanker()):
        assert ranker.p(good)[0] > ranker.p(bad)[0]


def test_more_of_what_can_only_help_never_hurts(shipped: TreeRanker) -> None:
    low = np.random.default_rng(1).random((200, len(FEATURES)), dtype=np.float32)
    helpful = [COLUMN[one.name] for one in FEATURES if one.direction > 0]
    high = np.stack([low + 0.3 * (np.arange(len(FEATURES)) == one) for one in helpful])
    p = shipped.p(high.reshape(-1, len(FEATURES)).astype(np.float32)).reshape(len(helpful), -1)
    assert (p >= shipped.p(low) - 1e-6).all()


def test_probabilities_are_the_same_in_any_batch(shipped: TreeRanker) -> None:
    many = np.random.default_rng(2).random((700, len(FEATURES)), dtype=np.float32)
    whole = shipped.p(many)
    assert whole.min() >= 0
    assert whole.max() <= 1
    np.testing.assert_allclose(whole[300:310], shipped.p(many[300:310]), atol=1e-7)
    assert shipped.p(many[:0]).shape == (0,)


def test_a_saved_ranker_comes_back(shipped: TreeRanker, tmp_path: Path) -> None:
    shipped.save(tmp_path / "ranker", card={"data": "mine"}, seed=1)
    assert TreeRanker.load(tmp_path / "ranker").content == shipped.content


def test_a_ranker_of_other_features_is_not_used(shipped: TreeRanker, tmp_path: Path) -> None:
    shipped.save(tmp_path / "ranker")
    manifest = json.loads((tmp_path / "ranker" / "manifest.json").read_text())
    manifest["settings"]["schema"] = "another"
    (tmp_path / "ranker" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(NotReadyError, match="other features"):
        TreeRanker.load(tmp_path / "ranker")


def test_damage_is_told(shipped: TreeRanker, tmp_path: Path) -> None:
    shipped.save(tmp_path / "ranker")
    (tmp_path / "ranker" / "ranker.onnx").write_bytes(b"no model")
    with pytest.raises(DataError):
        TreeRanker.load(tmp_path / "ranker")
    with pytest.raises(DataError):
        TreeRanker(b"no model")
    with pytest.raises(NotReadyError) as caught:
        TreeRanker.load(tmp_path / "nowhere")
    assert "suffice fit-ranker" in str(caught.value.hint)


QUARRY = (
    Document("band", "Third Rail was made by a drummer from the quarry village.", "Third Rail"),
    Document("hall", "Children of the quarry village learned in an old hall.", source="Fan"),
    *(
        Document(f"noise{at}", f"A drummer of band {at} made a record in town {at}.", f"Band {at}")
        for at in range(60)
    ),
)
ASKED_OF_QUARRY = "Where did the drummer who made Third Rail learn as a child?"


def test_a_document_that_is_only_described_is_asked_for() -> None:
    found = made(*QUARRY, ranker=WeightedRanker(), depth=3)
    (pool,) = found.build_pools([ASKED_OF_QUARRY])
    assert "hall" not in pool.at
    pool.hold(pool.at["band"])
    found.follow([pool])
    assert set(pool.reasons[pool.at["hall"]]) == {"asked"}
    assert pool.features()[pool.at["hall"], COLUMN["asked_rank"]] > 0
    before = len(pool)
    found.follow([pool])  # nothing new is held, so nothing is asked
    assert len(pool) == before


def test_queries_of_held_documents_do_not_lead_past_a_filter() -> None:
    not_fan = Filter((Condition("source", "$nin", ("Fan",)),))
    found = made(*QUARRY, ranker=WeightedRanker(), depth=3)
    (pool,) = found.build_pools([ASKED_OF_QUARRY], filters=[not_fan])
    pool.hold(pool.at["band"])
    found.follow([pool], [not_fan])
    assert "hall" not in pool.at
