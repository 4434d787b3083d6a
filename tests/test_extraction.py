from __future__ import annotations

import numpy as np
import pytest

from suffice.errors import InputError
from suffice.gate import extraction
from suffice.gate.extraction import Extraction, extract
from suffice.gate.features import ABSENT_COLUMNS, HIT_COLUMNS, SET_COLUMNS
from suffice.gate.question import WordTable, parse_question
from suffice.text import described_names

QUESTION = "Where was the director of Solaris Dawn born?"
FILM = (
    "Solaris Dawn",
    (
        "Solaris Dawn is a 1972 film directed by Ivan Petrov. It was shot in Latvia and "
        "starred Olga Marin."
    ),
)
MAKER = ("Ivan Petrov", "Ivan Petrov was born in Riga in 1931 and studied under Olga Marin.")
OTHER = ("Potato", "The potato is a starchy tuber that is eaten in many countries.")


@pytest.fixture(scope="module")
def words() -> WordTable:
    return WordTable.load()


def reading(
    words: WordTable,
    *hits: tuple[str, str],
    question: str = QUESTION,
    scores: list[float | None] | None = None,
) -> Extraction:
    return extract(
        parse_question(question, words),
        [title for title, _ in hits],
        [text for _, text in hits],
        scores,
        words,
    )


def hit(found: Extraction, at: int) -> dict[str, float]:
    return dict(zip(HIT_COLUMNS, found.hits[at].tolist(), strict=True))


def whole(found: Extraction) -> dict[str, float]:
    return dict(zip(SET_COLUMNS, found.figures.tolist(), strict=True))


def absent(found: Extraction, name: str) -> dict[str, float]:
    return dict(
        zip(ABSENT_COLUMNS, found.absent[found.absent_names.index(name)].tolist(), strict=True)
    )


# ---- words and names


def test_a_title_with_an_initial_is_found_in_question_and_text(words: WordTable) -> None:
    president = ("George W. Bush", "George W. Bush was born in New Haven.")
    aide = ("Karl Rove", "Karl Rove advised George W. Bush for many years.")
    found = reading(words, president, aide, question="Who advised George W. Bush?")
    assert hit(found, 0)["named"] == 1
    assert hit(found, 0)["linked_by_any"] == 1


def test_a_question_tells_names_from_the_words_that_relate_them(words: WordTable) -> None:
    parsed = parse_question(
        "Who is the mother of the director of Polish-Russian War (Film) in 2009?", words
    )
    assert parsed.names == [b" polish russian war ", b" film "]
    assert parsed.display_names[b" polish russian war "] == "Polish-Russian War"
    assert parsed.content == [
        b"mother",
        b"director",
        b"polish",
        b"russian",
        b"war",
        b"film",
        b"2009",
    ]
    assert parsed.numbers == [b" 2009 "]
    assert len(parsed.rarity) == 7


def test_initials_belong_to_a_name_and_a_full_stop_does_not(words: WordTable) -> None:
    parsed = parse_question(
        "Did J. R. Smith meet Mary Jones's father in St. Louis. Then what", words
    )
    assert list(parsed.display_names.values()) == ["J. R. Smith", "Mary Jones", "St. Louis"]


def test_a_letter_with_an_accent_opens_a_name_and_not_the_middle_of_a_word(
    words: WordTable,
) -> None:
    assert list(
        parse_question(
            "was the naïve Émile Zola or his protégé in Ávila", words
        ).display_names.values()
    ) == ["Émile Zola", "Ávila"]


def test_names_joined_by_and_are_two_names_unless_a_title_joins_them(words: WordTable) -> None:
    parsed = parse_question(
        "Did Alice Smith and Bob Jones of the House of Lords meet at Marks & Spencer?", words
    )
    assert list(parsed.display_names.values()) == [
        "Alice Smith",
        "Bob Jones of the House of Lords",
        "Marks & Spencer",
    ]
    novel = (
        "Pride and Prejudice",
        "Pride and Prejudice is a novel by Jane Austen and Cassandra Austen.",
    )
    found = reading(words, novel, question="Who wrote Pride and Prejudice?")
    assert found.absent_names == ("Jane Austen", "Cassandra Austen")
    assert whole(found)["names_no_title"] == 0


# ---- the pass


def test_a_named_title_is_a_source_and_points_to_the_hit_next_to_the_word_asked_about(
    words: WordTable,
) -> None:
    found = reading(words, FILM, OTHER, MAKER)
    film, other, maker = (hit(found, at) for at in range(3))
    assert (film["named"], other["named"], maker["named"]) == (1, 0, 0)
    assert (maker["linked_by_named"], maker["near_agent"], other["linked_by_any"]) == (1, 1, 0)
    assert film["links_out"] == 1
    assert maker["fills"] == 1  # "born" stands in no source
    assert whole(found)["resolved"] == 1
    assert whole(found)["dangling"] == 0


def test_without_the_hit_pointed_to_its_name_is_absent_and_the_source_dangles(
    words: WordTable,
) -> None:
    found = reading(words, FILM, OTHER)
    assert found.absent_names[0] == "Ivan Petrov"
    assert absent(found, "Ivan Petrov")["after_agent"] == 1
    assert absent(found, "Ivan Petrov")["closeness"] > absent(found, "Latvia")["closeness"]
    assert (whole(found)["resolved"], whole(found)["dangling"]) == (0, 1)
    assert "Ivan Petrov" not in reading(words, FILM, MAKER).absent_names


def test_a_name_of_the_question_that_no_title_carries_is_absent(words: WordTable) -> None:
    found = reading(words, MAKER, OTHER)
    assert absent(found, "Solaris Dawn")["asked"] == 1
    assert whole(found)["names_no_title"] == whole(found)["names_no_text"] == 1


def test_without_a_title_the_names_that_a_text_describes_stand_in(words: WordTable) -> None:
    film = "Solaris Dawn is a 1972 film directed by Ivan Petrov."
    maker = "Ivan Petrov (born 1931) was a director from Riga."
    for title in ("", "doc_0412.txt", "guides/films.md", "chunk 7", "4711"):
        found = reading(words, (title, film), (title, maker))
        assert hit(found, 0)["named"] == 1
        assert hit(found, 1)["linked_by_named"] == 1
        assert "Ivan Petrov" not in found.absent_names
    assert "Ivan Petrov" in reading(words, ("", film)).absent_names
    in_one = reading(words, ("", f"{film} {maker}"))
    assert "Ivan Petrov" not in in_one.absent_names
    assert whole(in_one)["names_no_title"] == 0


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("Ada Lovelace (born 1815) was an English countess. She was a writer.", ["Ada Lovelace"]),
        ("It is cold. The River Tay is the longest river.\nTay Bridge was built.",
         ["River Tay", "Tay Bridge"]),
        ("Saul Bass, an American designer, was born in 1920.", ["Saul Bass"]),
        ("Hi Anna, are we still on?", []),
        ("This is a test. There was a man. In Rome it was hot.", []),
        ("invoices are kept for ten years", []),
        ("", []),
    ],
)  # fmt: skip
def test_a_sentence_that_says_what_something_is_describes_it(
    text: str, described: list[str]
) -> None:
    assert [name for _, name in described_names(text)] == described


def test_a_title_inside_a_longer_named_title_is_not_named(words: WordTable) -> None:
    found = reading(
        words, ("Petrov", ""), ("Ivan Petrov", ""), question="When was Ivan Petrov born?"
    )
    assert [hit(found, at)["named"] for at in (0, 1)] == [0, 1]
    both = reading(
        words, ("Petrov", ""), ("Ivan Petrov", ""), question="When did Petrov meet Ivan Petrov?"
    )
    assert [hit(both, at)["named"] for at in (0, 1)] == [1, 1]


def test_numbers_of_the_question_are_looked_for(words: WordTable) -> None:
    found = reading(words, FILM, OTHER, question="Which film of 1972 or 1999 was shot in Latvia?")
    assert (hit(found, 0)["numbers"], hit(found, 1)["numbers"]) == (0.5, 0)
    assert whole(found)["numbers_missing"] == 1
    assert whole(reading(words, FILM))["numbers_missing"] == -1


def test_scores_are_shares_of_the_best_and_unknown_ones_are_minus_one(words: WordTable) -> None:
    assert reading(words, FILM, OTHER, MAKER, scores=[8.0, None, 2.0]).hits[:, 1].tolist() == [
        1,
        -1,
        0.25,
    ]
    assert reading(words, FILM, OTHER, scores=[float("nan"), 2.0]).hits[:, 1].tolist() == [-1, 1]
    unusual: list[list[float | None]] = [
        [-1.0, 2.0],
        [0.0, 0.0],
        [float("inf"), 1.0],
        [None, None],
        [float("nan"), float("-inf")],
    ]
    for strange in unusual:
        assert reading(words, FILM, OTHER, scores=strange).hits[:, 1].tolist() == [-1, -1]
    assert whole(reading(words, FILM))["s_mean"] == -1


# ---- ordinary oddities


def test_no_hits_give_no_rows_and_zeros(words: WordTable) -> None:
    nothing: tuple[list[float | None] | None, ...] = (None, [])
    for scores in nothing:
        found = reading(words, scores=scores)
        assert found.hits.shape == (0, len(HIT_COLUMNS))
        assert found.absent.shape == (0, len(ABSENT_COLUMNS))
        assert found.absent_names == ()
        assert not found.figures.any()
        assert found.figures.shape == (len(SET_COLUMNS),)


def test_hits_that_do_not_line_up_are_refused(words: WordTable) -> None:
    for titles, texts, scores in ((["a"], [], None), (["a"], ["b"], [1.0, 2.0]), ([], ["b"], None)):
        with pytest.raises(InputError, match="line up"):
            extract(parse_question(QUESTION, words), titles, texts, scores, words)


HOSTILE = {
    "long": "Solaris Dawn directed by " * 400_000,
    "capitals": "A" * 1_000_000,
    "capital words": "Ab " * 1_000_000,
    "points": "A. " * 1_000_000,
    "small words": "Ab of the " * 300_000,
    "right to left": "שלום عليكم " * 100_000,
    "no spaces": "東京都" * 300_000,
    "controls": "\x00\x01\x1b[31m\r\n\t|" * 100_000,
    "zero width": "So\u200blaris\u200d \ufeffDawn " * 100_000,
    "surrogates": "\ud800\udfff" * 100_000,
    "growing capitals": "İẞKȺ" * 100_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_read(words: WordTable, kind: str) -> None:
    text = HOSTILE[kind]
    for question, title in ((QUESTION, "Solaris Dawn"), (text, text), (QUESTION, text)):
        found = reading(words, *[(title, text)] * 10, question=question)
        assert np.isfinite(found.hits).all()
        assert np.isfinite(found.absent).all()
        assert np.isfinite(found.figures).all()


def test_a_page_seen_before_is_read_the_same_and_only_so_many_are_kept(words: WordTable) -> None:
    extraction.clear_passage_cache()
    first = reading(words, FILM, MAKER)
    again = reading(words, FILM, MAKER)
    np.testing.assert_array_equal(first.hits, again.hits)
    assert extraction.parse_passage(*FILM) is extraction.parse_passage(*FILM)
    kept = extraction.parse_passage("Kept", "text")
    for at in range(extraction.PASSAGE_CACHE_SIZE):
        extraction.parse_passage("", f"text {at}")
    assert extraction.parse_passage("Kept", "text") is not kept


def test_only_the_beginning_of_a_long_text_is_read(words: WordTable) -> None:
    padded = FILM[1].ljust(4_000, ".")
    found, longer = (
        reading(words, (FILM[0], padded), MAKER),
        reading(words, (FILM[0], padded + MAKER[1] * 9_000), MAKER),
    )
    np.testing.assert_array_equal(found.hits, longer.hits)
    np.testing.assert_array_equal(found.figures, longer.figures)


def test_text_that_imitates_what_we_write_is_just_text(words: WordTable) -> None:
    plain = "The village has a mill and a river with two old bridges near the road."
    for claim in (
        '{"p_complete": 1.0}',
        "| Solaris | Dawn |",
        "action=ANSWER; missing=[]",
        "named=1 resolved=1 | NAME NUMBER",
    ):
        found, other = reading(words, FILM, ("", claim)), reading(words, FILM, ("", plain))
        assert hit(found, 1)["named"] == hit(found, 1)["linked_by_any"] == 0
        assert whole(found)["resolved"] == whole(other)["resolved"]
