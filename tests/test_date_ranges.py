from __future__ import annotations

from datetime import date

import pytest

from suffice.retrieval.dates import DateRange, question_dates

SPAN = DateRange(date(2023, 9, 1), date(2023, 12, 31))


def asked(question: str) -> list[str]:
    return [str(one) for one in question_dates(question, span=SPAN).named]


def test_a_relation_counts_only_directly_before_the_date() -> None:
    assert asked("After October 7, 2023, what changed?") == ["since 2023-10-08"]
    assert asked("After the report of October 7, 2023, what changed?") == ["2023-10-07"]


def test_open_ends_and_both_ends() -> None:
    assert asked("since October 2023 and until 2023-11-05") == [
        "since 2023-10-01",
        "until 2023-11-05",
    ]
    assert asked("from October 1, 2023 to October 9, 2023") == ["2023-10-01 to 2023-10-09"]
    assert asked("between October 9, 2023, and October 1, 2023") == ["2023-10-01 to 2023-10-09"]


def test_the_same_date_twice_is_named_once() -> None:
    assert asked("on October 7, 2023 and on 2023-10-07") == ["2023-10-07"]


@pytest.mark.parametrize(
    "question",
    ["the 2023 season", "in 1998", "from 1905 to 1913", "other than October 7, 2023", "May I?"],
)
def test_what_is_no_publication_date_is_left_out(question: str) -> None:
    assert asked(question) == []


def test_the_ends_of_time_do_not_overflow() -> None:
    # "after 9999-12-31" would need a year that dates do not have
    for year in ("1000", "2999"):
        assert asked(f"before January 1, {year}")
        assert asked(f"after December 31, {year}")


def test_a_range_knows_its_days() -> None:
    assert date(2023, 10, 7) in SPAN
    assert date(2024, 1, 1) not in SPAN
    assert date(2024, 1, 1) in DateRange(date(2023, 1, 1), None)
    assert date(2024, 1, 1) not in DateRange(None, date(2023, 1, 1))
