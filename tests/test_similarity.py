"""Optional features: similarity through stand-in encoders and once through the real one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.small_gate import fresh, labelled, shown

from suffice.errors import DataError, NotReadyError
from suffice.gate.extraction import NO_ENCODERS, Encoders, featurize
from suffice.gate.features import RELEVANCE, RELEVANCE_HIT, SIMILARITY, SIMILARITY_HIT
from suffice.gate.gate import Gate
from suffice.gate.hits import normalize_hits
from suffice.gate.question import WordTable, parse_question
from suffice.gate.similarity import relevance_features, similarity_features, split_clauses
from suffice_research.embedding_cache import CachedEncoder

pytestmark = pytest.mark.usefixtures("few_trees")

HIT = {one.name: at for at, one in enumerate(SIMILARITY_HIT)}
WHOLE = {one.name: at for at, one in enumerate(SIMILARITY)}


class Letters:
    """An encoder that counts letters."""

    name, dimension = "letters", 26

    def __init__(self) -> None:
        self.read: list[str] = []

    def encode(self, texts: Sequence[str], *, query: bool = False) -> np.ndarray:
        self.read += texts
        counts = np.array(
            [[text.lower().count(chr(97 + at)) for at in range(26)] for text in texts],
            dtype=np.float32,
        )
        return counts.reshape(-1, 26) / np.maximum(
            np.linalg.norm(counts, axis=1, keepdims=True), 1e-9
        )


class Common:
    """A reranker that counts the words in common."""

    name = "common"

    def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        return np.array(
            [len(set(question.split()) & set(text.split())) for text in texts], dtype=np.float32
        )


def seen(question: str, hits: Sequence[object]) -> tuple[np.ndarray, np.ndarray]:
    whole, (block,), _ = similarity_features([normalize_hits(question, hits).evidence], Letters())
    return whole[0], block


# ---- an encoder


def test_cosines_are_those_of_the_encoder() -> None:
    whole, hits = seen("abc", [("a", "abc", 1), ("b", "zzz", 1), ("c", "ab", 1)])
    np.testing.assert_allclose(hits[:, HIT["cosine"]], [1, 0, np.sqrt(2 / 3)], atol=1e-6)
    np.testing.assert_allclose(hits[:, HIT["cosine_place"]], [0, 1, 0.5])
    np.testing.assert_allclose(hits[:, HIT["twin"]], [np.sqrt(2 / 3), 0, np.sqrt(2 / 3)], atol=1e-6)
    np.testing.assert_allclose(
        [whole[WHOLE[f"cosine{at}"]] for at in (1, 2, 3, 4)], [1, np.sqrt(2 / 3), 0, 0], atol=1e-6
    )


def test_no_hits_are_like_nothing() -> None:
    whole, hits = seen("abc", [])
    assert not whole.any()
    assert hits.shape == (0, len(SIMILARITY_HIT))
    assert similarity_features([], Letters())[0].shape == (0, len(SIMILARITY))


def test_a_clause_that_no_hit_is_like_shows() -> None:
    question = "Who is aaa bbb aaa, and who is zzz yyy zzz?"
    both = seen(question, ["aaa bbb", "zzz yyy"])
    half = seen(question, ["aaa bbb", "aaa abab"])
    assert both[0][WHOLE["clauses"]] == half[0][WHOLE["clauses"]] == 2
    assert both[0][WHOLE["clause_least"]] > half[0][WHOLE["clause_least"]] + 0.3
    assert both[0][WHOLE["clause_hits"]] == 2
    assert both[1][:, HIT["clauses_won"]].tolist() == [1, 1]


def test_what_the_hits_do_not_explain_is_left() -> None:
    whole, hits = seen("abc", ["a", "b", "c", "zzz"])
    np.testing.assert_allclose(
        [whole[WHOLE[f"left{at}"]] for at in (1, 2, 3, 4)], np.sqrt([2 / 3, 1 / 3, 0, 0]), atol=1e-3
    )
    np.testing.assert_allclose(hits[:, HIT["explains"]], [1 / 3, 1 / 3, 1 / 3, 0], atol=1e-6)
    again, block = seen(
        "abc", ["ab", "ba", "ab ab"]
    )  # the same vector thrice: only the first explains anything
    np.testing.assert_allclose(
        [again[WHOLE[f"left{at}"]] for at in (1, 2)], np.sqrt([1 / 3, 1 / 3]), atol=1e-3
    )
    assert (block[:, HIT["explains"]] > 1e-6).sum() == 1


def test_a_title_is_told_by_another_hit() -> None:
    _, hits = seen("abc", [{"text": "zzz", "title": "qqq"}, {"text": "qqqq", "title": ""}])
    assert hits[0, HIT["title_told"]] > 0.9
    assert hits[1, HIT["title"]] == 0  # without a title it is like nothing


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who taught Ada?", []),
        (
            "Who taught the man that wrote about whales, and who printed it first?",
            ["Who taught the man", "wrote about whales"],
        ),
        ("Which of the two was older, Ada or Bob?", []),
        ("", []),
    ],
)
def test_a_question_falls_into_clauses(question: str, parts: list[str]) -> None:
    assert split_clauses(question)[:2] == parts
    assert len(split_clauses(question * 50)) <= 8


# ---- a cross-encoder


def test_relevance_is_the_rerankers() -> None:
    evidence = normalize_hits(
        "who taught ada", ["ada taught bob", "nothing at all", "ada"]
    ).evidence
    whole, (hits,) = relevance_features([evidence], Common())
    assert hits.shape == (3, len(RELEVANCE_HIT))
    assert hits[:, 0].tolist() == [2, 0, 1]
    assert hits[:, 2].tolist() == [0, 1, 0.5]
    assert whole[0].tolist() == [2, 1, 0, -12, -12, 1]
    assert relevance_features([normalize_hits("who", []).evidence], Common())[0].tolist() == [
        [-12.0] * len(RELEVANCE)
    ]


# ---- in a gate


def test_encoders_bring_columns_and_the_question_its_vector() -> None:
    words, hits = (
        WordTable.load(),
        [normalize_hits("who taught ada", ["ada taught bob", "nothing"])],
    )
    questions = [parse_question("who taught ada", words)]
    plain, through = (
        featurize(hits, questions, words),
        featurize(hits, questions, words, Encoders(Letters(), Common())),
    )
    assert plain.extra is None
    assert plain.questions[0].vector is None
    assert through.extra_features == (*SIMILARITY, *RELEVANCE)
    assert through.extra is not None
    assert through.extra.shape == (1, len(SIMILARITY) + len(RELEVANCE))
    assert through.hit_extra is not None
    assert through.hit_extra[0].shape == (2, len(SIMILARITY_HIT) + len(RELEVANCE_HIT))
    np.testing.assert_array_equal(
        through.questions[0].vector, Letters().encode(["who taught ada"])[0]
    )


@cache
def through_both() -> Gate:
    return Gate.fit(labelled()[:100], preset="fast", encoder=Letters(), reranker=Common())


def test_one_by_one_and_all_at_once_agree() -> None:
    pairs = [(one.question, shown(one)) for one in fresh()[:8]]
    together = through_both().check_batch(pairs)
    alone = [through_both().check(*pair) for pair in pairs]
    np.testing.assert_allclose(
        [one.p_complete for one in together], [one.p_complete for one in alone], atol=1e-6
    )
    assert [one.reasons for one in together] == [one.reasons for one in alone]


def test_a_gate_names_its_encoders_and_wants_them_again(tmp_path: Path) -> None:
    gate = through_both()
    assert (gate.card["preset"], gate.card["encoder"], gate.card["reranker"]) == (
        "fast",
        "letters",
        "common",
    )
    gate.save(tmp_path / "gate")
    with pytest.raises(NotReadyError, match="requires reranker 'common', which is not registered"):
        Gate.load(tmp_path / "gate", encoder=Letters())
    again = Gate.load(tmp_path / "gate", encoder=Letters(), reranker=Common())
    pairs = [(one.question, shown(one)) for one in fresh()[:8]]
    np.testing.assert_allclose(again.probabilities(pairs), gate.probabilities(pairs), atol=1e-5)


def test_a_gate_of_words_alone_leaves_encoders_unused() -> None:
    assert Encoders(Letters(), Common()).resolve(None, None, where="here") == NO_ENCODERS


# ---- kept vectors


def test_a_text_is_encoded_once(tmp_path: Path) -> None:
    letters = Letters()
    first = CachedEncoder(letters, tmp_path)
    vectors = first.encode(["ada", "bob", "ada"])
    np.testing.assert_array_equal(vectors, Letters().encode(["ada", "bob", "ada"]))
    assert letters.read == ["ada", "bob"]
    first.encode(["ada"], query=True)  # a question is another thing
    assert letters.read == ["ada", "bob", "ada"]
    again = CachedEncoder(letters, tmp_path)
    np.testing.assert_array_equal(
        again.encode(["bob", "carol"]), Letters().encode(["bob", "carol"])
    )
    assert letters.read[3:] == ["carol"]


def test_a_text_that_two_processes_kept_stays_itself(tmp_path: Path) -> None:
    first, second = CachedEncoder(Letters(), tmp_path), CachedEncoder(Letters(), tmp_path)
    first.encode(["ada", "bob"])
    second._files = 1  # as if it had begun a block later
    second.encode(["bob", "carol"])
    again = CachedEncoder(Letters(), tmp_path)
    np.testing.assert_array_equal(
        again.encode(["carol", "bob", "ada"]), Letters().encode(["carol", "bob", "ada"])
    )


def test_vectors_that_were_not_all_written_do_not_count(tmp_path: Path) -> None:
    CachedEncoder(Letters(), tmp_path).encode(["ada"])
    np.save(tmp_path / "letters" / "00001.npy", np.zeros((3, 26), np.float32))
    letters = Letters()
    CachedEncoder(letters, tmp_path).encode(["ada", "bob"])
    assert letters.read == ["bob"]
    np.save(tmp_path / "letters" / "00000.npy", np.zeros((3, 26), np.float32))
    with pytest.raises(DataError, match="does not fit its vectors"):
        CachedEncoder(letters, tmp_path)


# ---- the real one


def test_the_real_encoder_sees_which_hits_are_about_the_question() -> None:
    pytest.importorskip("tokenizers")
    from suffice.integrations.onnx import open_encoder

    try:
        encoder = open_encoder("bge-small-en-v1.5")
    except NotReadyError as error:
        pytest.skip(str(error))
    texts = [
        "Ada Lovelace was taught mathematics by Augustus De Morgan.",
        "Augustus De Morgan was born in Madurai, in the Madras Presidency of British India.",
        "The mantis shrimp has sixteen kinds of photoreceptors.",
        "A sourdough starter is fed with flour and water every day.",
        "The offside rule was changed again in the season of 1990.",
    ]
    question = "Where was the teacher of Ada Lovelace born?"
    whole, (hits,), vectors = similarity_features(
        [normalize_hits(question, texts).evidence], encoder
    )
    assert hits[:, HIT["cosine"]].argmax() == 0
    assert set(np.argsort(-hits[:, HIT["with_nearest"]])[:2].tolist()) == {0, 1}
    assert vectors.shape == (1, encoder.dimension)
    half, _, _ = similarity_features([normalize_hits(question, texts[2:]).evidence], encoder)
    assert half[0, WHOLE["left4"]] > whole[0, WHOLE["left4"]]
