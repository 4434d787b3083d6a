from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from suffice.retrieval.phrase_matcher import PhraseMatch, PhraseMatcher
from suffice.text import title_key, title_words


def found(text: str, *names: str) -> list[str]:
    phrases = PhraseMatcher(map(title_key, names))
    (reading,) = phrases.find([text])
    return [names[match.phrase] for match in reading.matches]


def test_the_longest_name_wins_and_neighbours_do_not_steal_each_others_blank() -> None:
    names = ("New York", "New York Times", "York Minster", "Sam Altman")
    assert found("New York Times New York York Minster Sam Altman", *names) == [
        names[1],
        names[0],
        names[2],
        names[3],
    ]


def test_names_begin_and_end_with_whole_words() -> None:
    assert found("The Vergers of Newark Yorkshire", "The Verge", "New York", "Ark York") == []


def test_a_match_knows_its_words() -> None:
    (reading,) = PhraseMatcher(["new york"]).find(["Is it in New York, or not?"])
    assert reading.matches == (PhraseMatch(0, 3, 5),)
    assert reading.words[3:5] == ("New", "York")


def test_common_words_need_a_capital_and_stop_words_more() -> None:
    names = ("Saw", "The Lake", "It", "The Who", "7", "1984")
    assert found("it saw the lake, the who, 7 in 1984", *names) == []
    assert found("It: Saw at The Lake, The Who, 7 in 1984", *names) == [
        "Saw",
        "The Lake",
        "The Who",
    ]


def test_letters_that_grow_when_folded_do_not_shift_the_words() -> None:
    assert found("Straße Straße an der Saw", "Saw", "Strasse") == ["Strasse", "Strasse", "Saw"]
    assert found("straße saw", "Saw", "Strasse") == []


def test_scripts_without_capitals_count_as_written_with_one() -> None:
    assert found("ذهب إلى القاهرة", "القاهرة") == ["القاهرة"]


def test_no_names_and_no_text_give_no_matches() -> None:
    assert found("Some text") == []
    assert found("", "Saw") == []
    assert found("\n \n", "", "(!)") == []


@given(st.text(max_size=40))
def test_a_title_without_parentheses_is_keyed_like_the_words_of_a_text(title: str) -> None:
    if ")" not in title:
        assert title_key(title) == " ".join(title_words(title)).casefold()


@given(st.lists(st.sampled_from(["New", "York", "Times", "of", "and", "Paris"]), max_size=12))
def test_matches_never_overlap_and_say_what_stands_there(words: list[str]) -> None:
    keys = ["new york", "new york times", "york times", "paris and new york"]
    (reading,) = PhraseMatcher(keys).find([" ".join(words)])
    end = 0
    for match in reading.matches:
        assert match.start >= end
        end = match.end
        assert " ".join(words[match.start : match.end]).casefold() == keys[match.phrase]
