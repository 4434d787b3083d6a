"""Claims and triples by rules: what stands alone, and what is read out of it."""

from __future__ import annotations

from suffice.types import Document
from suffice_grade.claims import (
    PageIndex,
    RuleClaims,
    fix_spacing,
    is_consistent,
    is_factual,
    parse_page,
    parse_pages,
)
from suffice_grade.triples import RuleTriples
from tests.benchmark_village import village


def page(title: str, text: str) -> Document:
    return Document(title, text, title=title)


def test_blanks_go_where_they_belong() -> None:
    assert fix_spacing("Juan Oro( 2 June 1904) of Saxe- Meiningen directed" + '" Joe"( 2013).') == (
        'Juan Oro (2 June 1904) of Saxe-Meiningen directed "Joe" (2013).'
    )


def test_rumours_questions_and_lists_are_no_facts() -> None:
    assert not is_factual("He died sometime after the Siege of Acre in 1191.")
    assert is_factual("She died in Paris in 1920.")
    assert not is_factual("She probably died in Paris.")
    assert not is_factual("Mercury may refer to:")
    assert not is_factual("Did she die in Paris?")
    assert not is_factual("Paris, 1920.")


def test_the_numeral_of_a_ruler_is_nobodys_self() -> None:
    assert is_factual("He was the son of Reginald I of Guelders and Marguerite of Flanders.")
    assert is_factual("Godfrey I (died 1002) was the count of Verdun.")
    assert not is_factual("Today I think that the king was ill.")
    assert not is_factual("The king said that I was late.")


def test_the_first_sentence_says_what_a_page_is_about() -> None:
    film = parse_page(
        page("The Mill", "The Mill is a 1951 Danish drama film directed by Anna Holm.")
    )
    assert (film.kind, film.noun) == ("film", "film")
    person = parse_page(
        page(
            "Princess Helena",
            "Princess Helena (born 1861), later a duchess, was the fifth daughter of George.",
        )
    )
    assert (person.kind, person.sex) == ("person", "woman")
    assert parse_page(page("Mercury", "Mercury may refer to:")).kind == "list"
    assert parse_page(page("", "Nothing is known.")).kind == ""


def test_a_pronoun_becomes_the_title_and_nothing_else_is_added() -> None:
    (claims,) = RuleClaims().claims(
        [
            page(
                "Anna Holm",
                "Anna Holm (born 1910) was a Danish director. She died in Aarhus in 1984.",
            )
        ]
    )
    assert [claim.text for claim in claims][1] == "Anna Holm died in Aarhus in 1984."
    assert is_consistent("Anna Holm died in Aarhus.", "She died in Aarhus.", "Anna Holm")
    assert not is_consistent("Anna Holm died in Rome.", "She died in Aarhus.", "Anna Holm")


def test_a_pronoun_behind_another_subject_stays_one() -> None:
    text = "Anna Holm (born 1910) was a Danish director. Karl Lund married Eva. He died in 1950."
    (claims,) = RuleClaims().claims([page("Anna Holm", text)])
    assert claims[-1].subject == ""


def test_two_directors_are_told_apart_from_one() -> None:
    documents = village()
    pages = PageIndex(parse_pages(documents).values())
    claims = [claim for claims in RuleClaims().claims(documents) for claim in claims]
    directors = [
        one
        for found in RuleTriples(pages).triples(claims)
        for one in found
        if one.relation == "director"
    ]
    assert {one.object for one in directors if one.several} == {"Louis Marchand", "Paul Petit"}


def test_a_name_with_two_bearers_means_neither() -> None:
    pages = PageIndex(
        [
            parse_page(page(f"Steno ({what})", f"Steno is an Italian {what}."))
            for what in ("director", "painter")
        ]
    )
    assert pages.find("Steno", "person") is None
    one = PageIndex([parse_page(page("Steno (painter)", "Steno is an Italian painter."))])
    assert one.find("Steno", "person", ("director", "film")) is None


def test_a_page_may_say_what_it_is_behind_commas_in_its_title_or_later() -> None:
    told = {
        "A Man": ("A Man is a 2008 Dutch, German and Finnish documentary film by Ed Holm.", "film"),
        "A Day": ("Un giorno (internationally released as A Day) is a 1961 Italian film.", "film"),
        "Rosehill College": ("Rosehill College is located in Niddrie.", "school"),
        "Loe Hakim": ("Loe Hakim was born in Cianjur. He was an officer.", "person"),
        "Ann Doe": ("Ann Doe is a community organizer.", ""),
        "Angela Merkel": ("Merkel was born in Hamburg.", "person"),
        "Henry Brereton": ("Henry was a Groom. In 1526 he was appointed Ranger.", "person"),
        "Edsel Ford (disambiguation)": ("Edsel Ford was the son of Henry Ford.", "list"),
        "Kingdom of Hun": ("The Kingdom of Hun (1000–1946) fell.", "place"),
    }
    kinds = {title: parse_page(page(title, text)).kind for title, (text, _) in told.items()}
    assert kinds == {title: kind for title, (_, kind) in told.items()}


def test_quotation_marks_and_dashes_of_a_crawl_are_mended() -> None:
    assert fix_spacing("``Angel ''is a well - known song (1879 -- 1942).") == (
        '"Angel" is a well-known song (1879 – 1942).'
    )
