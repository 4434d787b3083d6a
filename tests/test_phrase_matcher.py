from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from suffice.retrieval.phrase_matcher import NameKeys, PhraseMatcher, WordUse, is_small
from suffice.text import title_key, title_word_spans, title_words, without_accents


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


# ---- names that are common words

MANUAL = ("less", "file", "tac", "who", "Saw")
TEXTS = (
    *("The file is read. A saw is less than a file." for _ in range(5)),
    "File names are short. FILE is a file. See --file, file.txt, /bin/file and file().",
    "Like less(1), who(1) and `file`, tac prints a \u201cfile\u201d. The file 'file' is one.",
    'Saw the wood. James Wan made Saw. "Saw" was a success.',
)


def matcher(*names: str, common: frozenset[int] = frozenset()) -> PhraseMatcher:
    keys = NameKeys()
    for name in names:
        keys.add(title_key(name), small=is_small(name))
    return PhraseMatcher(keys.numbers, small=keys.small, common=common)


def common_names() -> frozenset[int]:
    use = WordUse()
    for text in matcher(*MANUAL).find(TEXTS):
        use.add(text.common, text.capital)
    return use.common_phrases()


def names_in(text: str) -> list[str]:
    (found,) = matcher(*MANUAL, common=common_names()).find_in_questions([text])
    return [MANUAL[match.phrase] for match in found.matches]


def test_the_corpus_says_which_names_are_common_words() -> None:
    assert {MANUAL[at] for at in common_names()} == {"less", "file", "Saw"}


def test_a_common_word_is_a_name_only_where_it_is_marked_as_one() -> None:
    assert names_in(TEXTS[0]) == names_in(TEXTS[5]) == []
    assert names_in("In which year was the less pager released?") == []
    assert names_in(TEXTS[6]) == ["less", "who", "file", "tac", "file", "file"]
    assert names_in("What does `less` show, who(1) not?") == ["less", "who"]


def test_a_capital_says_nothing_at_the_beginning_of_a_sentence() -> None:
    assert names_in(TEXTS[7]) == ["Saw", "Saw"]  # the second and the third
    assert names_in("Saw he it?") == []


def test_a_rare_name_without_capitals_is_found_as_it_is_written() -> None:
    assert names_in("What does tac do?") == names_in("Tac?") == names_in("is it tac") == ["tac"]
    assert names_in("What does --tac or tac.c do?") == []


def test_a_question_in_small_letters_names_what_is_no_common_word() -> None:
    assert names_in("which file is less than a saw or tac?") == ["tac"]
    (found,) = matcher("Paris").find_in_questions(["who went to paris?"])
    assert [match.phrase for match in found.matches] == [0]


@given(st.text(max_size=40))
def test_words_and_their_places_agree(text: str) -> None:
    plain = without_accents(text)
    assert [plain[start:end] for start, end in title_word_spans(plain)] == title_words(text)
