"""Other names of a document's subject: found in its own words, never invented."""

from __future__ import annotations

import pytest

from suffice.retrieval.name_links import MAX_ALIASES, aliases, initials


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("IBM (company)", "International Business Machines (IBM) is an American company.", []),
        ("International Business Machines", "International Business Machines (IBM) is an American company.", ["ibm"]),
        ("Springfield, Illinois", "Springfield is the capital of Illinois.", ["springfield"]),
        ("Paul Epworth", "Paul Richard Epworth (born 25 July 1974) is a British producer.", ["paul richard epworth"]),
        ("Bob Dylan", "Robert Zimmerman, known professionally as Bob Dylan, is a singer.", []),
        ("Cathedral Basilica of Lima", "The Basilica Cathedral of Lima, otherwise Lima Cathedral, is a church.",
         ["basilica cathedral of lima", "lima cathedral"]),
        ("Adele", "Adele Laurie Blue Adkins (born 5 May 1988), also known as Lady Adele, is a singer.",
         ["adele laurie blue adkins", "lady adele"]),
    ],
)  # fmt: skip
def test_names_of_one_subject(title: str, text: str, expected: list[str]) -> None:
    assert aliases(title, text) == expected


def test_a_part_of_a_title_is_not_another_name_of_it() -> None:
    assert (
        aliases(
            "Second inauguration of Richard Nixon",
            "The second inauguration of Richard Nixon was held in 1973.",
        )
        == []
    )


def test_a_birthday_is_no_name() -> None:
    assert (
        aliases(
            "Elliot Silverstein",
            "Elliot Silverstein (born August 3, 1927, in Boston) is a director.",
        )
        == []
    )


def test_initials_count_only_where_the_text_uses_them() -> None:
    assert "usa" in aliases(
        "United States of America", "The United States of America (USA) is a country."
    )
    assert aliases("United States of America", "The country has fifty states.") == []


def test_a_list_of_names_is_not_claimed_whole() -> None:
    text = (
        "Smith, "
        + ", ".join(
            f"{first} Smith" for first in "Ann Bob Carl Dora Emil Fred Gina Hans Ida Jon".split()
        )
        + " is a list."
    )
    assert len(aliases("Smith", text)) <= MAX_ALIASES


@pytest.mark.parametrize("title", ["", "It", "(only this)", "   ", "東京", "\ud800", "a" * 10_000])
def test_any_title_and_any_text_will_do(title: str) -> None:
    assert all(isinstance(one, str) and one for one in aliases(title, title * 3))


def test_initials_skip_small_words() -> None:
    assert initials("United States of America") == "usa"
    assert initials("Paris") == ""
