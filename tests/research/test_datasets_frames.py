"""FRAMES: which links name an article, and the counts of the paper on the real file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.values import known

from suffice import datasets
from suffice.errors import InputError

COLUMNS = (
    "Unnamed: 0",
    "Prompt",
    "Answer",
    "wikipedia_link_1",
    "wikipedia_link_2",
    "wikipedia_link_11+",
    "reasoning_types",
)
WIKI = "https://en.wikipedia.org/wiki/"


def frames_file(
    folder: Path, *rows: dict[str, str], columns: tuple[str, ...] = (*COLUMNS, "wiki_links")
) -> Path:
    path = folder / "test.tsv"
    lines = ["\t".join(columns)]
    for number, row in enumerate(rows):
        cells = {
            "Unnamed: 0": str(number),
            "Prompt": "Who?",
            "Answer": "She",
            "reasoning_types": "Temporal reasoning",
            **row,
        }
        lines.append("\t".join(cells.get(column, "") for column in columns))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def gold_of(path: Path) -> set[str]:
    return set(next(iter(datasets.load("frames", path).questions())).gold.doc_ids)


@pytest.mark.parametrize(
    ("cell", "titles"),
    [
        (WIKI + "Lincoln,_Nebraska", {"Lincoln,_Nebraska"}),
        (
            f"{WIKI}Lincoln,_Nebraska, {WIKI}Utica,_New_York, ",
            {"Lincoln,_Nebraska", "Utica,_New_York"},
        ),
        (f"{WIKI}A,{WIKI}B;{WIKI}C {WIKI}D", {"A", "B", "C", "D"}),
        (WIKI + "Charlotte_Bront%C3%AB#Life", {"Charlotte_Brontë"}),
        (WIKI + "Men%2527s_singles", {"Men's_singles"}),
        ("https://en.m.wikipedia.org/wiki/Krampus", {"Krampus"}),
        ("http://simple.wikipedia.org/wiki/Goal", {"Goal"}),
        ("en.wikipedia.org/wiki/Grazia_Deledda", {"Grazia_Deledda"}),
        ("https://en.wikipedia.org/w/index.php?title=Bronco&redirect=no", {"Bronco"}),
        (WIKI + "AC/DC_discography?action=raw", {"AC/DC_discography"}),
        (WIKI + "James%20A.%20Garfield  ", {"James_A._Garfield"}),
        (WIKI + "Andr\u00e9", {"Andr\u00e9"}),
        (WIKI + "Andre\u0301", {"Andr\u00e9"}),
        (
            WIKI + "List_of_Xena:_Warrior_Princess_episodes",
            {"List_of_Xena:_Warrior_Princess_episodes"},
        ),
    ],
)
def test_a_link_is_read_as_the_title_it_names(tmp_path, cell, titles):
    assert gold_of(frames_file(tmp_path, {"wikipedia_link_1": cell})) == titles


@pytest.mark.parametrize(
    "cell",
    [
        "https://w.wiki/ASFv",
        WIKI + "Category:Summer_Olympics_in_London",
        WIKI + "Module:Location_map/data/USA",
        "https://en.wikipedia.org/w/index.php?search=Moss&title=Special:Search",
        WIKI + "Pok%C3%A9mon (NOT REQUIRED, BUT HELPFUL) ",
        "https://example.org/wiki/Something",
        "no link at all",
    ],
)
def test_a_link_that_names_no_needed_article_is_left_out(tmp_path, cell):
    assert gold_of(
        frames_file(tmp_path, {"wikipedia_link_1": WIKI + "Moss", "wikipedia_link_2": cell})
    ) == {"Moss"}


def test_links_of_all_columns_count_once_whatever_their_case(tmp_path):
    row = {
        "wikipedia_link_1": WIKI + "Jane_Eyre",
        "wikipedia_link_11+": f"{WIKI}jane_eyre, {WIKI}Moss#Uses",
        "wiki_links": f"['{WIKI}Jane_Eyre', \"{WIKI}Galileo's_finger\"]",
    }
    assert gold_of(frames_file(tmp_path, row)) == {"Jane_Eyre", "Moss", "Galileo's_finger"}


def test_documents_are_the_titles_without_text(tmp_path):
    path = frames_file(
        tmp_path,
        {"wikipedia_link_1": WIKI + "Utica,_New_York"},
        {"wikipedia_link_1": WIKI + "Utica,_New_York"},
    )
    (document,) = datasets.load("frames", path).documents()
    assert (document.doc_id, document.title, document.text) == (
        "Utica,_New_York",
        "Utica, New York",
        "",
    )


def test_labels_answer_and_hops_are_kept(tmp_path):
    row = {
        "wikipedia_link_1": WIKI + "A",
        "wikipedia_link_2": WIKI + "B",
        "reasoning_types": "Temporal reasoning | Post processing ",
    }
    (question,) = datasets.load("frames", frames_file(tmp_path, row)).questions()
    assert question.gold.labels == ("Temporal reasoning", "Post processing")
    assert (question.gold.answer, question.gold.hops, question.question.text) == ("She", 2, "Who?")


def test_a_quoted_cell_may_hold_tabs_quotes_and_line_breaks(tmp_path):
    path = frames_file(
        tmp_path, {"Prompt": '"Who said ""no\tor\nyes""?"', "wikipedia_link_1": WIKI + "A"}
    )
    (question,) = datasets.load("frames", path).questions()
    assert question.question.text == 'Who said "no\tor\nyes"?'


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"Prompt": "   ", "wikipedia_link_1": WIKI + "A"},
            "test.tsv:3: field 'Prompt' is '   ', expected a text that is not empty",
        ),
        ({}, "test.tsv:3: no column links to a Wikipedia article"),
        (
            {"Unnamed: 0": "0", "wikipedia_link_1": WIKI + "A"},
            "test.tsv:3: question id '0' is already used on line 2",
        ),
        (
            {"wiki_links": "['https://", "wikipedia_link_1": WIKI + "A"},
            "field 'wiki_links' is \"['https://\", expected links",
        ),
        (
            {"Answer": "a\tb", "wikipedia_link_1": WIKI + "A"},
            "test.tsv:3: the row has 9 cells, expected 8",
        ),
    ],
)
def test_a_bad_row_is_named_by_line_and_field_and_can_be_skipped(tmp_path, row, message):
    path = frames_file(tmp_path, {"wikipedia_link_1": WIKI + "A"}, row)
    with pytest.raises(InputError) as caught:
        list(datasets.load("frames", path).questions())
    assert message in str(caught.value)
    dataset = datasets.load("frames", path, skip_bad=True)
    assert len(list(dataset.questions())) == 1
    assert len(list(dataset.documents())) == 1
    assert dataset.bad.count == 1
    assert message in dataset.bad.examples[0]


def test_wrong_columns_are_an_error_that_shows_the_header(tmp_path):
    with pytest.raises(InputError, match=r"no column 'Prompt'.*the header has: 'query', 'answer'"):
        list(
            datasets.load("frames", frames_file(tmp_path, columns=("query", "answer"))).questions()
        )
    with pytest.raises(InputError, match="no column 'wikipedia_link_1' or 'wiki_links'"):
        list(
            datasets.load(
                "frames", frames_file(tmp_path, {}, columns=("Prompt", "Answer", "reasoning_types"))
            ).questions()
        )


def test_a_corpus_file_for_frames_is_a_mistake(tmp_path):
    with pytest.raises(InputError, match="has no corpus file"):
        datasets.load("frames", questions=frames_file(tmp_path), corpus=tmp_path / "corpus.json")


# ------------------------------------------------------------------------------------ the real file


@pytest.fixture(scope="module")
def real(data_folder: Path) -> datasets.Dataset:
    return datasets.load("frames", data_folder / "frames" / "test.tsv")


def test_the_real_file_has_the_counts_of_the_paper(real):
    found = datasets.describe(real)
    assert (found.questions, found.mentions, found.titles, found.documents) == (
        824,
        2674,
        2518,
        2518,
    )
    assert (found.hops_min, found.hops_max, round(known(found.hops_mean), 2)) == (2, 23, 3.25)
    assert found.labels == {
        "Multiple constraints": 549,
        "Numerical reasoning": 293,
        "Post processing": 107,
        "Tabular reasoning": 236,
        "Temporal reasoning": 278,
    }
    bins: Counter[str] = Counter()
    for hops, questions in found.by_hops.items():
        bins["11+" if hops > 10 else "7-10" if hops > 6 else "5-6" if hops > 4 else str(hops)] += (
            questions
        )
    assert bins == {
        "2": 314,
        "3": 286,
        "4": 132,
        "5-6": 55,
        "7-10": 26,
        "11+": 11,
    }  # the paper's Table 3
    assert not found.unresolved
    datasets.check_gold(found)
