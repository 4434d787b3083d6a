"""Name links and aliases: which names documents bear and mention."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from tests.corpora import documents

from suffice.errors import DataError, InputError
from suffice.retrieval.name_links import (
    MAX_MENTIONS,
    NameLinks,
    aliases,
    codes,
    name_links,
    subject,
    subject_names,
)
from suffice.types import Document

ALBUMS = documents("name_links")


def made(*documents: Document) -> NameLinks:
    return name_links(lambda: documents)


def mentioned(links: NameLinks, doc_id: str) -> set[int]:
    return set(links.mentioned.row(links.position[doc_id]).tolist())


def test_a_text_that_names_a_title_leads_to_its_document() -> None:
    links = made(*ALBUMS)
    (name,) = links.numbers(["new orleans"])
    assert name in mentioned(links, "koop")
    assert links.bearers.row(name).tolist() == [links.position["city"]]


def test_a_name_that_nobody_bears_links_those_who_mention_it() -> None:
    links = made(*ALBUMS)
    (name,) = links.numbers(["stanton moore"])
    assert links.bearing[name] == 0
    assert {links.ids[row] for row in links.mentioners.row(name)} == {"koop", "iii"}


def test_a_name_in_one_document_alone_links_nothing() -> None:
    assert made(*ALBUMS).numbers(["mississippi river", "nobody at all"]).tolist() == [-1, -1]


def test_a_corpus_without_titles_has_nodes() -> None:
    links = made(
        Document("a", "He met Ralph Rapson in 1950."),
        Document("b", "The tower is by Ralph Rapson."),
    )
    (name,) = links.numbers(["ralph rapson"])
    assert links.mentioners.row(name).tolist() == [0, 1]


def test_a_surname_behind_the_full_name_is_the_same_person() -> None:
    links = made(
        Document("a", "Ralph Rapson was born in Alma. Rapson taught design."),
        Document("b", "Peter Rapson sings. Rapson lives in Leeds."),
    )
    assert links.numbers(["rapson"]).tolist() == [-1]


def test_entities_of_the_metadata_are_names() -> None:
    links = made(
        Document("a", "The lender missed its target.", entities=("Josavan Group",)),
        Document("b", "Talks with the union broke down.", entities=("Josavan Group",)),
    )
    (name,) = links.numbers(["josavan group"])
    assert links.mentioners.row(name).tolist() == [0, 1]


def test_a_question_names_titles_and_others_in_any_case() -> None:
    links = made(*ALBUMS)
    question_names = links.question_names(
        [
            "When was the Battle of New Orleans that Stanton Moore sang of?",
            "battle of new orleans",
            "",
            "?",
        ]
    )
    battle, moore = links.numbers(["battle of new orleans", "stanton moore"]).tolist()
    assert [one.tolist() for one in question_names] == [[battle, moore], [battle], [], []]


def test_two_documents_of_one_title_both_bear_it() -> None:
    links = made(
        Document("a", "One.", "Saw (film)"),
        Document("b", "Two.", "Saw"),
        Document("c", "They watched Saw twice."),
    )
    (name,) = links.numbers(["saw"])
    assert links.bearers.row(name).tolist() == [0, 1]
    assert name in mentioned(links, "c")


def test_a_page_that_lists_a_hundred_thousand_others_keeps_a_few() -> None:
    names = [f"Alpha{chr(97 + at % 26)}{chr(97 + at // 26 % 26)} Beta{at}" for at in range(100_000)]
    links = made(
        Document("list", "; ".join(names) + "."),
        Document("one", f"{names[0]} lives here.", names[0]),
    )
    assert len(links.mentioned.row(0)) <= MAX_MENTIONS


def test_rare_names_say_more() -> None:
    documents = [
        Document(str(at), "In Paris." + (" By Ralph Rapson." if at < 2 else "")) for at in range(20)
    ]
    links = made(*documents)
    paris, rapson = links.numbers(["paris", "ralph rapson"]).tolist()
    assert links.rarity[rapson] > links.rarity[paris] >= 0


def test_one_id_twice_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        made(ALBUMS[0], ALBUMS[0])


def test_documents_that_run_out_the_second_time_are_refused() -> None:
    once = iter(ALBUMS)
    with pytest.raises(InputError, match="second time"):
        name_links(lambda: once)


def test_stems_stand_in_the_order_of_the_text_so_that_every_process_saves_the_same_bytes() -> None:
    assert list(made(Document("a", "Zebra, apple, zebra, mango.", "Fruit")).stems) == [
        "fruit",
        "zebra",
        "apple",
        "mango",
    ]


def test_of_too_many_stems_those_of_one_document_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("suffice.retrieval.name_links.MAX_STEMS", 2)
    both = made(Document("a", "Zebra, apple."), Document("b", "Apple, mango."))
    assert both.stems == {"apple": 2}


def test_common_words_are_no_names_in_texts_and_questions() -> None:
    texts = [Document(f"{n}", "The file is less than a file. File it.", "") for n in range(6)]
    tac = Document("tac(1)", "tac prints a file. See less(1).", "tac")
    links = made(*texts, tac, Document("less(1)", "less shows a File. See tac.", "less"),
                 Document("file(1)", "file tells the type.", "file"))  # fmt: skip
    tac_name, less, file = (int(links.borne.row(at)[0]) for at in (6, 7, 8))
    assert less in mentioned(links, "tac(1)")
    assert tac_name in mentioned(links, "less(1)")
    assert not {less, file} & mentioned(links, "0")
    assert file not in mentioned(links, "tac(1)") | mentioned(links, "less(1)")
    assert links.question_names(["Which File is less than tac?"])[0].tolist() == [tac_name]
    assert links.question_names(["what does less(1) show?"])[0].tolist() == [less]


def test_saved_links_come_back(tmp_path: Path) -> None:
    links = made(*ALBUMS, Document("tokyo", "東京は日本の首都です。", "東京"))
    links.save(tmp_path / "links")
    back = NameLinks.load(tmp_path / "links")
    assert (back.ids, back.keys, back.stems, back.letters) == (
        links.ids,
        links.keys,
        links.stems,
        links.letters,
    )
    for one, other in ((back.borne, links.borne), (back.mentioned, links.mentioned)):
        np.testing.assert_array_equal(one.starts, other.starts)
        np.testing.assert_array_equal(one.values, other.values)
    assert (back.small.tolist(), back.common.tolist()) == (
        links.small.tolist(),
        links.common.tolist(),
    )
    question = ["Who fought the Battle of New Orleans?"]
    assert back.question_names(question)[0].tolist() == links.question_names(question)[0].tolist()


def test_damaged_links_are_refused(tmp_path: Path) -> None:
    made(*ALBUMS).save(tmp_path / "links")
    (tmp_path / "links" / "mentioned.npy").write_bytes(b"no array")
    with pytest.raises(DataError):
        NameLinks.load(tmp_path / "links")


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("IBM (company)", "International Business Machines (IBM) is an American company.", []),
        (("International Business " "Machines"), ("International Business Machines (IBM) is an " "American company."), ["ibm"]),
        ("Springfield, Illinois", "Springfield is the capital of Illinois.", ["springfield"]),
        ("Paul Epworth", ("Paul Richard Epworth (born 25 July 1974) is a British " "producer."), ["paul richard epworth"]),
        ("Bob Dylan", "Robert Zimmerman, known professionally as Bob Dylan, is a singer.", []),
        ("Cathedral Basilica of Lima", ("The Basilica Cathedral of Lima, otherwise Lima " "Cathedral, is a church."),
         ["basilica cathedral of lima", "lima cathedral"]),
        ("Adele", ("Adele Laurie Blue Adkins (born 5 May 1988), also known as Lady Adele, is " "a singer."),
         ["adele laurie blue adkins", "lady adele"]),
    ],
)  # fmt: skip
def test_names_of_one_subject(title: str, text: str, expected: list[str]) -> None:
    assert aliases(title, text) == expected


def test_initials_count_only_where_the_text_uses_them() -> None:
    assert "usa" in aliases(
        "United States of America", "The United States of America (USA) is a country."
    )
    assert aliases("United States of America", "The country has fifty states.") == []


@pytest.mark.parametrize("title", ["", "It", "(only this)", "   ", "東京", "\ud800", "a" * 10_000])
def test_any_title_and_any_text_will_do(title: str) -> None:
    assert all(isinstance(one, str) and one for one in aliases(title, title * 3))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada Lovelace (born 1815) was an English countess.", "Ada Lovelace"),
        ("The Silent Tide is a film.", "Silent Tide"),
        ("In 1815 Ada Lovelace was born.", ""),
        ("Ada Lovelace, a countess, was English.", "Ada Lovelace"),
        ("Wriothesley Russell, 2nd Duke of Bedford (1680) was a peer.",
         "Wriothesley Russell, 2nd Duke of Bedford"),
        ("English novelist Charles Dickens was born in 1812.", "Charles Dickens"),
        ("The Waterloo Bay massacre refers to a clash.", "Waterloo Bay massacre"),
        ("Harry L. Franklin (1880) was a director.", "Harry L. Franklin"),
        ('"Frozen" is the eleventh episode.', "Frozen"),
        ("The refund window is 30 days.", "refund window"),
        ("Grace of My Heart is a film.", "Grace of My Heart"),
        ("How to Get Away with Murder is an American series.", "How to Get Away with Murder"),
        ("In 1986 Compaq was the first.", ""),
        ("Marit Osk and her two analysts are upstairs.", "Marit Osk"),
        ("Used only in league play for several years, it was adopted.", ""),
        ("On Body and Soul is a 2017 Hungarian drama film.", "On Body and Soul"),
        ("Ven mi corazón te llama is a 1942 film.", "Ven mi corazón te llama"),
        ("Batman: Under the Red Hood is a film.", "Batman: Under the Red Hood"),
        ("His second work is a film.", ""),
        ("she was tired", ""),
        ("a" * 9000, ""),
        ("", ""),
    ],
)  # fmt: skip
def test_what_a_text_without_a_title_is_about(text: str, expected: str) -> None:
    assert subject(text) == expected


def test_a_person_without_a_title_bears_the_ways_to_write_the_name() -> None:
    text = 'Sir John Kingsley "Joe" Orton Jr. (born 1933) was a playwright.'
    assert subject_names(text)[1:] == [
        "John Kingsley Orton", "Joe Orton", "John Orton", "Jack Orton", "Johnny Orton",
        "Kingsley Orton", "John K. Orton", "J. K. Orton", "J. Kingsley Orton",
    ]  # fmt: skip
    assert subject_names("San Diego Bay is in California.") == ["San Diego Bay"]
    assert subject_names("she was tired") == []
    links = made(Document("orton", text), Document("film", "A film about Joe Orton."))
    (name,) = links.question_names(["Who was Joe Orton?"])[0].tolist()
    assert [links.ids[one] for one in links.bearers.row(name).tolist()] == ["orton"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Evangelos Odysseas Papas (born 1943), known professionally as Vangelis, is a composer.",
         "Vangelis"),
        ("Un giorno da leoni (released as A Day for Lionhearts) is a film.", "Day for Lionhearts"),
        ("Gordon Chan Kar-Seung, born in 1960, is a director.", "Gordon Chan"),
        ("Douglas Eric Liman (born 1965) is a director.", "Doug Liman"),
        ("James Douglas, 14th Earl of Morton, KT, PRS (1702) was an astronomer.",
         "James Douglas, 14th Earl of Morton"),
        ("William II (1196 – 1231) was the lord of Dampierre.", "William II of Dampierre"),
        ("The Leeds United Football Club is a club.", "Leeds United"),
    ],
)  # fmt: skip
def test_other_names_of_what_a_text_is_about(text: str, name: str) -> None:
    assert name in subject_names(text)
    assert "Zorro" not in subject_names("Ada Vale (born 1990), known for a role as Zorro, acts.")


def test_a_text_without_a_title_mentions_what_it_is_about() -> None:
    links = made(
        Document("director", "Douglas Eric Liman (born 1965) is a director."),
        Document("film", "Swingers is a film directed by Doug Liman."),
    )
    (name,) = links.question_names(["Who is Doug Liman?"])[0].tolist()
    assert links.mentioners.row(name).tolist() == [0, 1]


def test_ids_and_codes_link_those_who_mention_them() -> None:
    text = "Port 8443 of 10.0.0.4 runs x-200 since 1998, a 7-day test at 3pm for 12,000 users."
    assert codes(text) == ["8443", "10.0.0.4", "x-200"]
    links = made(Document("a", "The gateway listens on 8443."), Document("b", "8443 was closed."))
    (name,) = links.question_names(["what listens on 8443"])[0].tolist()
    assert links.mentioners.row(name).tolist() == [0, 1]


@pytest.mark.parametrize("text", ["a:" * 20_000, "1:" * 20_000, "http://a/b:" * 4_000])
def test_colons_do_not_slow_down_the_search_for_codes(text: str) -> None:
    start = time.process_time()
    assert codes(text) == []
    assert time.process_time() - start < 5  # it was 40 seconds: quadratic
