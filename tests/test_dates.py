from __future__ import annotations

from datetime import date

import pytest

from suffice.text import DateRange, question_dates

SPAN = DateRange(date(2023, 9, 1), date(2023, 12, 31))


def ranges_of(question: str) -> list[str]:
    return [str(one) for one in question_dates(question, span=SPAN).named]


def test_a_relation_counts_only_directly_before_the_date() -> None:
    assert ranges_of("After October 7, 2023, what changed?") == ["since 2023-10-08"]
    assert ranges_of("After the report of October 7, 2023, what changed?") == ["2023-10-07"]


def test_open_ends_and_both_ends() -> None:
    assert ranges_of("since October 2023 and until 2023-11-05") == [
        "since 2023-10-01",
        "until 2023-11-05",
    ]
    assert ranges_of("from October 1, 2023 to October 9, 2023") == ["2023-10-01 to 2023-10-09"]
    assert ranges_of("between October 9, 2023, and October 1, 2023") == ["2023-10-01 to 2023-10-09"]


def test_the_same_date_twice_is_named_once() -> None:
    assert ranges_of("on October 7, 2023 and on 2023-10-07") == ["2023-10-07"]


@pytest.mark.parametrize(
    "question",
    ["the 2023 season", "in 1998", "from 1905 to 1913", "other than October 7, 2023", "May I?"],
)
def test_what_is_no_publication_date_is_left_out(question: str) -> None:
    assert ranges_of(question) == []


def test_the_ends_of_time_do_not_overflow() -> None:
    # "after 9999-12-31" would need a year that dates do not have
    for year in ("1000", "2999"):
        assert ranges_of(f"before January 1, {year}")
        assert ranges_of(f"after December 31, {year}")


def test_a_range_knows_its_days() -> None:
    assert date(2023, 10, 7) in SPAN
    assert date(2024, 1, 1) not in SPAN
    assert date(2024, 1, 1) in DateRange(date(2023, 1, 1), None)
    assert date(2024, 1, 1) not in DateRange(None, date(2023, 1, 1))


CORPUS_SPAN = DateRange(date(2023, 1, 1), date(2024, 12, 31))
THURSDAY = date(2023, 11, 16)


def asked_on(question: str, today: date | None = THURSDAY) -> list[str]:
    return [str(one) for one in question_dates(question, span=CORPUS_SPAN, today=today).named]


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("What was reported today?", "2023-11-16"),
        ("What did The Verge write yesterday?", "2023-11-15"),
        ("three days ago", "2023-11-13"),
        ("in the article of two weeks ago", "2023-10-30 to 2023-11-05"),
        ("a month ago", "2023-10-01 to 2023-10-31"),
        ("in the last 10 days", "2023-11-06 to 2023-11-16"),
        ("over the past two months", "2023-09-16 to 2023-11-16"),
        ("this week", "2023-11-13 to 2023-11-16"),
        ("last week", "2023-11-06 to 2023-11-12"),
        ("this month", "2023-11-01 to 2023-11-16"),
        ("last month", "2023-10-01 to 2023-10-31"),
        ("last year", "2022-01-01 to 2022-12-31"),
        ("last Monday", "2023-11-13"),
        ("last Thursday", "2023-11-09"),
        ("in October", "2023-10-01 to 2023-10-31"),
        ("in December", "2022-12-01 to 2022-12-31"),
        ("on October 7", "2023-10-07"),
    ],
)
def test_the_clock_says_which_days_are_meant(question: str, days: str) -> None:
    assert asked_on(question) == [days]


def test_relations_hold_for_relative_dates_too() -> None:
    assert asked_on("since yesterday") == ["since 2023-11-15"]
    assert asked_on("before last month") == ["until 2023-09-30"]
    assert asked_on("since October") == ["since 2023-10-01"]


def test_without_a_clock_such_words_name_nothing() -> None:
    assert (
        asked_on("What did The Verge write yesterday, in October and last week?", today=None) == []
    )


@pytest.mark.parametrize(
    "question", ["May I ask who?", "the March on Rome", "9 in 999", "Marchers in Mayfair", "in may"]
)
def test_what_only_looks_like_a_date_is_none(question: str) -> None:
    assert asked_on(question) == []


def test_a_written_date_is_not_read_twice() -> None:
    assert asked_on("on October 7, 2022 and in October 2022") == [
        "2022-10-07",
        "2022-10-01 to 2022-10-31",
    ]


def test_a_leap_day_and_the_end_of_a_month_count_back() -> None:
    assert asked_on("in the past month", today=date(2024, 3, 31)) == ["2024-02-01 to 2024-02-29"]
    assert asked_on("in the last one month", today=date(2024, 3, 31)) == [
        "2024-02-29 to 2024-03-31"
    ]
    assert asked_on("since three years ago", today=date(2024, 2, 29)) == ["since 2021-01-01"]
