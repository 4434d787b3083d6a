from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.lexicon import STOP_WORDS
from suffice.text import date_mentions, names, sentences, title_key, tokens


def test_tokens_are_casefolded_words_and_numbers() -> None:
    assert tokens("The U.S. won 3-1 in_Köln!") == ["the", "u", "s", "won", "3", "1", "in", "köln"]


def test_scripts_without_spaces_give_one_token_a_character() -> None:
    assert tokens("東京 2020年 test") == ["東", "京", "2020", "年", "test"]


def test_no_letters_give_no_tokens() -> None:
    assert tokens("") == tokens("?! …\x00") == []


def test_stop_words_are_tokens() -> None:
    assert all(tokens(word) == [word] for word in STOP_WORDS)


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("Lothair II (emperor)", "lothair ii"),
        ("Charlotte_Brontë", "charlotte bronte"),
        ("(What's the Story) Morning Glory?", "what s the story morning glory"),
        ("(500)", "500"),
        ("???", ""),
        ("", ""),
    ],
)
def test_a_title_key_drops_what_people_leave_out(title: str, key: str) -> None:
    assert title_key(title) == key


def test_names_leave_out_the_words_that_open_a_question() -> None:
    question = (
        "Who taught Ludwig van Beethoven before he left for Vienna, according to The "
        "Verge's report on OpenAI?"
    )
    assert names(question) == ["Ludwig van Beethoven", "Vienna", "Verge", "OpenAI"]


def test_names_appear_once_and_in_order() -> None:
    assert names("Ada met Bob. Ada left.") == ["Ada", "Bob"]


def test_no_names_in_lower_case() -> None:
    assert names("who is it?") == []


def day(text: str) -> list[tuple[date, date]]:
    return [(one.first, one.last) for one in date_mentions(text)]


@pytest.mark.parametrize(
    "written",
    [
        "October 7, 2023",
        "7 October 2023",
        "Oct. 7 2023",
        "7th of October, 2023",
        "2023-10-07",
        "october 7th, 2023",
    ],
)
def test_a_day_is_read_however_it_is_written(written: str) -> None:
    assert day(f"the report of {written}, later") == [(date(2023, 10, 7), date(2023, 10, 7))]


def test_a_month_and_a_year_cover_their_days() -> None:
    assert day("in February 2024") == [(date(2024, 2, 1), date(2024, 2, 29))]
    assert day("since 1999") == [(date(1999, 1, 1), date(1999, 12, 31))]


def test_impossible_days_and_plain_numbers_are_no_dates() -> None:
    assert day("2023-02-30 and $2000 and 1,999 and 12345 and v2.2001") == []


def test_dates_come_in_the_order_of_the_text() -> None:
    assert [one.first.year for one in date_mentions("between 2001 and May 3, 1999 or 2020")] == [
        2001,
        1999,
        2020,
    ]


def test_sentences_keep_abbreviations_whole() -> None:
    assert sentences("Dr. Smith went home.  He slept.") == ["Dr. Smith went home.", "He slept."]
    assert sentences("  ") == []


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert all(tokens(token) == [token] or token for token in tokens(text))
    assert title_key(title_key(text)) == title_key(text)
    names(text)
    date_mentions(text)


def test_plain_ascii_gives_the_same_words_by_its_shorter_way() -> None:
    every = "".join(map(chr, range(128)))
    assert tokens(every * 2 + "Ada_Lovelace's 2nd") == tokens(
        every * 2 + "Ada_Lovelace's 2nd" + "\u2014"
    )
