"""The set scorer reads a question, what is held and a candidate; the bridge that reads chooses with
it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import DataError, InputError, NotReadyError
from suffice.registry import RETRIEVERS
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.name_links import name_links
from suffice.types import Condition, Document, Filter
from suffice_research.bridge_quality import (
    CANDIDATE_TOKENS,
    HELD_TOKENS,
    QUALITY_FEATURES,
    SHIPPED_MODEL,
    UNREAD,
    OnnxSetScorer,
    PairTokenizer,
    QualityBridgeRetriever,
    SetScorer,
    read_count,
)
from suffice_research.training.scorer_data import ScorerQuestion, training_states

QUESTION = "Who is the mother of the director of the film Polish-Russian War?"
FILM = (
    "Polish-Russian War (film)\nIt is a 2009 film. It was directed by Xawery Żuławski, "
    "and is based on a novel."
)
DIRECTOR = (
    "Xawery Żuławski\nXawery Żuławski (born 1971 in Warsaw) is a Polish film director. "
    "He is the son of Małgorzata Braunek."
)
RIVER = "Oder\nThe Oder is a river in Central Europe. It is Poland's second-longest river."


@pytest.fixture(scope="module")
def scorer() -> OnnxSetScorer:
    return OnnxSetScorer()


def test_the_shipped_scorer_reads_and_keeps_within_25_megabytes(scorer: OnnxSetScorer) -> None:
    assert isinstance(scorer, SetScorer)
    assert sum(one.stat().st_size for one in SHIPPED_MODEL.iterdir()) <= 25_000_000


def test_with_the_film_held_its_director_is_needed_next(scorer: OnnxSetScorer) -> None:
    director, river = scorer.log_odds(QUESTION, [FILM], [DIRECTOR, RIVER])
    assert director > river + 3
    assert director > 0


def test_the_order_of_the_candidates_and_the_batch_do_not_matter(scorer: OnnxSetScorer) -> None:
    there = scorer.log_odds(QUESTION, [], [FILM, DIRECTOR, RIVER])
    back = scorer.log_odds(QUESTION, [], [RIVER, DIRECTOR, FILM])[::-1]
    assert there.tolist() == back.tolist()
    # Activations are quantised batch by batch, so that scores differ by rounding.
    together = OnnxSetScorer(batch=3).log_odds(QUESTION, [], [FILM, DIRECTOR, RIVER])
    assert np.abs(there - together).max() < 1
    assert there.argsort().tolist() == together.argsort().tolist()


@pytest.mark.parametrize("odd", ["", " ", "\n", "x" * 100_000, "\ud800", "|[SEP][CLS]", "?" * 5000])
def test_odd_texts_are_read_like_any_other(scorer: OnnxSetScorer, odd: str) -> None:
    scores = scorer.score(odd, [odd], [odd, FILM])
    assert scores.shape == (2,)
    assert ((scores >= 0) & (scores <= 1)).all()


def test_a_pair_stays_short_whatever_is_held(scorer: OnnxSetScorer) -> None:
    long = "Title\n" + "A sentence about the director of a film. " * 200
    (pair,) = scorer.tokenizer.pairs(QUESTION, [long] * 9, [long])
    assert len(pair.ids) <= 64 + 4 * (HELD_TOKENS + 1) + CANDIDATE_TOKENS + 3
    assert len(pair.ids) - pair.second <= CANDIDATE_TOKENS + 1


def test_of_a_long_candidate_the_sentences_about_the_question_are_shown(
    scorer: OnnxSetScorer,
) -> None:
    filler = (
        "The weather of that year was of no interest to anybody at all and nobody wrote about it. "
    )
    long = f"Somebody\n{filler * 8}His mother was Małgorzata. {filler * 8}"
    (pair,) = scorer.tokenizer.pairs("Who was his mother?", [], [long])
    mother = scorer.tokenizer._tokens("mother")[0]
    assert mother in pair.ids[pair.second :]


def test_a_damaged_model_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "scorer"
    shutil.copytree(SHIPPED_MODEL, folder)
    (folder / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(DataError):
        OnnxSetScorer(folder)
    with pytest.raises(NotReadyError):
        OnnxSetScorer(tmp_path / "nowhere")
    with pytest.raises(InputError):
        OnnxSetScorer(threads=-1)


def test_a_tokenizer_without_the_marks_of_bert_is_refused() -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    with pytest.raises(InputError):
        PairTokenizer(Tokenizer(WordLevel({"a": 0}, unk_token="a")))


# ---- the bridge that reads


class Letters:
    """An encoder that counts letters: near enough for three documents."""

    name, dimension = "letters", 26

    def encode(self, texts: Sequence[str], *, query: bool = False) -> np.ndarray:
        counts = np.array(
            [[text.lower().count(chr(97 + at)) for at in range(26)] for text in texts], np.float32
        ).reshape(-1, 26)
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-6)


def village() -> MemoryStore:
    texts = [FILM, DIRECTOR, RIVER, "Małgorzata Braunek\nMałgorzata Braunek was a Polish actress."]
    documents = [
        Document(f"d{at}", text.partition("\n")[2], title=text.partition("\n")[0])
        for at, text in enumerate(texts)
    ]
    return MemoryStore(documents, Letters().encode(texts))


class Prefers:
    """A scorer that wants one title after the other, and remembers what it was asked."""

    def __init__(self, *titles: str) -> None:
        self.titles, self.calls = titles, list[Any]()

    def score(self, question: str, held: Sequence[str], candidates: Sequence[str]) -> np.ndarray:
        self.calls.append((len(held), len(candidates)))
        wanted = self.titles[len(held) % len(self.titles)]
        return np.array([0.9 if one.startswith(wanted) else 0.1 for one in candidates])


class ByReading:
    """A reader that goes by what was read now, and before that by BM25."""

    def p(self, rows: np.ndarray) -> np.ndarray:
        now = rows[:, [one.name for one in QUALITY_FEATURES].index("now")]
        return np.where(now > UNREAD, 1 / (1 + np.exp(-now)), rows[:, 0] * 0.01)


def test_the_bridge_chooses_what_the_scorer_wants_in_turn() -> None:
    store = village()
    wants = Prefers("Xawery", "Oder", "Polish")
    reading = QualityBridgeRetriever(
        store, Letters(), name_links(store.documents), ByReading(), scorer=wants, first=4, again=3
    )
    (hits,) = reading.search([QUESTION], k=3)
    assert [hit.doc_id for hit in hits] == ["d1", "d2", "d0"]
    assert [held for held, _ in wants.calls] == [0, 1, 2]
    assert wants.calls[0][1] <= 4
    assert wants.calls[1][1] <= 3


def test_fewer_are_read_the_more_is_held_unless_every_round_is_to_read_as_many() -> None:
    assert [read_count(held) for held in range(7)] == [16, 6, 4, 3, 2, 2, 2]
    assert [read_count(held, first=16, again=6) for held in range(4)] == [16, 6, 6, 6]
    store = village()
    for wrong in (-1, (), (3, -1)):
        with pytest.raises(InputError, match="too few to read"):
            QualityBridgeRetriever(
                store,
                Letters(),
                name_links(store.documents),
                ByReading(),
                scorer=Prefers("Oder"),
                again=wrong,
            )


class Towards:
    """A next-hop encoder: the vector of the text that it wants with so many held."""

    def __init__(self, *texts: str) -> None:
        self.vectors, self.held = Letters().encode(texts), list[int]()

    def encode(self, questions: Sequence[str], held: Sequence[Sequence[str]]) -> np.ndarray:
        self.held += map(len, held)
        return np.stack([self.vectors[len(one) % len(self.vectors)] for one in held])


class ByAhead:
    """A reader that goes by what lies ahead."""

    def p(self, rows: np.ndarray) -> np.ndarray:
        return rows[:, -3] + 0.1 * rows[:, -2]


def test_what_lies_ahead_of_the_held_becomes_a_candidate_within_the_filter() -> None:
    films = [Document(f"n{at}", f"xawery zulawski film {at}", source="films") for at in range(150)]
    river = Document("river", "q" * 60, source="rivers")  # no search with the question finds it
    documents = [*films, river]
    store = MemoryStore(documents, Letters().encode([one.text for one in documents]))
    towards = Towards(films[0].text, river.text)

    def found(next_hop: Towards | None, filters: list[Filter] | None = None) -> list[str]:
        reading = QualityBridgeRetriever(
            store, Letters(), name_links(store.documents), ByAhead(),
            scorer=Prefers("q"), next_hop=next_hop, depth=5,
        )  # fmt: skip
        (hits,) = reading.search(["Zulawski film 0?"], k=2, filters=filters)
        return [hit.doc_id for hit in hits]

    assert found(towards)[1] == "river"
    assert towards.held == [0, 1]
    assert found(towards)[1] == "river"  # nothing stays from the question before
    assert "river" not in found(None)
    only_films = Filter((Condition("source", "$in", ("films",)),))
    assert "river" not in found(towards, [only_films])


def test_it_reads_with_the_shipped_scorer_and_refuses_static_vectors() -> None:
    chosen = RETRIEVERS.get("bridge-quality")(village(), encoder=Letters())
    (hits,) = chosen.search([QUESTION], k=3)
    assert {hit.doc_id for hit in hits} >= {"d0", "d1"}
    assert chosen.search([], k=3) == []
    with pytest.raises(InputError, match="fitted with vectors of bge-small"):
        RETRIEVERS.get("bridge-quality")(MemoryStore(), encoder=WordLlamaEncoder())


def test_a_lesson_asks_for_gold_that_is_not_held_and_the_next_hop_counts_most() -> None:
    one = ScorerQuestion(
        "musique",
        QUESTION,
        gold=(FILM, DIRECTOR),
        ordered=True,
        pool=(FILM, RIVER, DIRECTOR, "Oder (film)\nA film."),
    )
    made = training_states([one], rounds=20, seed=1)
    assert made == training_states([one], rounds=20, seed=1)
    for lesson in made:
        asked_for = {text for text, needed in zip(lesson.candidates, lesson.needed) if needed}
        assert asked_for == {FILM, DIRECTOR} - set(lesson.held)
        assert not set(lesson.held) & set(lesson.candidates)
    assert any(RIVER in lesson.held for lesson in made)
    first = next(lesson for lesson in made if not lesson.held)
    assert (
        dict(zip(first.candidates, first.needed))[FILM]
        > dict(zip(first.candidates, first.needed))[DIRECTOR]
        > 0
    )
