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
from suffice_grade.vocabulary import names_at, place_at, without_rank
from tests.benchmark_village import village


def triples_of(*documents: Document) -> set[tuple[str, str, str]]:
    pages = PageIndex(parse_pages(documents).values(), documents)
    claims = [claim for claims in RuleClaims(pages.by_title).claims(documents) for claim in claims]
    return {
        (one.subject, one.relation, one.object)
        for found in RuleTriples(pages).triples(claims)
        for one in found
    }


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


def test_the_village_is_read() -> None:
    found = triples_of(*village())
    assert {
        ("The Mill", "director", "Anna Holm"),
        ("The Mill", "release date", "1951"),
        ("Anna Holm", "birth date", "3 May 1910"),
        ("Anna Holm", "father", "Otto Holm"),
        ("Anna Holm", "mother", "Clara Berg"),
        ("Anna Holm", "death place", "Aarhus"),
        ("Otto Holm", "father", "Prince Magnus of Vik"),
        ("Karl Lund", "birth place", "Odense"),
        ("Karl Lund", "nationality", "Denmark"),
        ("Aarhus", "country", "Denmark"),
    } <= found


def test_what_a_spouse_is_the_child_of_is_not_the_subject_s_parent() -> None:
    text = (
        "Robert More (born 1581) was an English politician. He married Frances Lennard, "
        "daughter of Sampson Lennard."
    )
    found = triples_of(
        page("Robert More", text),
        page("Sampson Lennard", "Sampson Lennard (1545 – 1615) was an English politician. He sat."),
    )
    assert not {one for one in found if one[1] in ("father", "mother")}
    assert ("Robert More", "wife", "Frances Lennard") in found


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


def test_a_rough_date_or_a_family_is_no_date_and_no_place() -> None:
    found = triples_of(
        page(
            "Ada Lee",
            (
                "Ada Lee (c. 1810 – before 1877) was an English poet. She was born into the "
                "House of Lee."
            ),
        )
    )
    assert not {one for one in found if "date" in one[1] or "place" in one[1]}


def test_names_end_where_they_end() -> None:
    assert names_at("A. V. Bramble and Eliot Stannard and starring", 0).names == (
        "A. V. Bramble",
        "Eliot Stannard",
    )
    assert (
        names_at("William Willoughby, 3rd Baron Willoughby of Parham and Anne", 0)
        .names[0]
        .endswith("of Parham")
    )
    assert names_at(
        "Constantine of Greece and Denmark.", 0, joined={"Greece and Denmark"}
    ).names == ("Constantine of Greece and Denmark",)
    assert names_at("no name here", 0).names == ()
    assert (
        place_at("Cahir, County Tipperary, Ireland in 1893", 0)
        == "Cahir, County Tipperary, Ireland"
    )
    assert without_rank("King Eric XIV of Sweden") == "Eric XIV of Sweden"


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


def test_families_are_read_in_the_words_of_encyclopedias() -> None:
    """Ranks, appositions, a wife behind the father, and pronouns after a sentence with another."""
    found = triples_of(
        page(
            "Christian of Weida",
            "Christian of Weida (1682 – 1736) was a duke. Between 1700 and 1701, he was in Rome. "
            "He was the son of Prince Guy II, constable of Champagne, and Mathilde of Bourbon.",
        ),
        page(
            "Anna of Weida",
            "Anna of Weida (1650 – 1701) was a German noblewoman. The eldest daughter of Adolph I, "
            "Duke of Cleves and Berg and Marie of Burgundy, she died in Rome.",
        ),
        page(
            "Margaret of Sund",
            "Margaret of Sund (1882 – 1920) was a princess. She was the daughter of Prince Arthur, "
            "third son of Queen Victoria, and his wife Princess Louise. "
            "She was succeeded by her sister Ida of Sund.",
        ),
    )
    assert ("Christian of Weida", "mother", "Mathilde of Bourbon") in found
    assert ("Anna of Weida", "mother", "Marie of Burgundy") in found
    assert ("Margaret of Sund", "father", "Prince Arthur") in found
    assert ("Margaret of Sund", "mother", "Princess Louise") in found
    assert ("Margaret of Sund", "successor", "Ida of Sund") in found


def test_a_pronoun_after_a_relative_may_be_the_relative() -> None:
    found = triples_of(
        page(
            "Lord Scott",
            "Lord Scott (1811 – 1880) was a Scottish politician. His eldest son was Karl Scott. "
            "He was the husband of Mary Hill.",
        )
    )
    assert not {relation for _, relation, _ in found} & {"wife", "spouse"}


def test_a_page_may_say_what_it_is_behind_commas_in_its_title_or_later() -> None:
    film = page("A Man", "A Man is a 2008 Dutch, German and Finnish documentary film by Ed Holm.")
    other = page("A Day", "Un giorno (internationally released as A Day) is a 1961 Italian film.")
    school = page("Rosehill College", "Rosehill College is located in Niddrie.")
    person = page("Loe Hakim", "Loe Hakim was born in Cianjur. He was an officer.")
    kinds = [parse_page(one).kind for one in (film, other, school, person)]
    assert kinds == ["film", "film", "school", "person"]


def test_a_name_that_others_have_means_no_page() -> None:
    """A title with a parenthesis, a page of unknown kind, the rest of "the U.S. state of"."""
    found = triples_of(
        page("Smile (Jim Cott song)", "Smile is a song by Jim Cott."),
        page("Fred Merk", "Fred Merk (1946 – 1991) was a British singer. He was a fan of Smile."),
        page("Berg", "Berg grew up in Saint Paul and was born there."),
        page("Oskar Graf", "Oskar Graf (1894 – 1967) was a German author. He was born in Berg."),
        page("Saint Paul", "Saint Paul is a city in the U.S. state of Minnesota."),
        page("Ann Doe", "Ann Doe is a community organizer and former senator."),
    )
    assert ("Saint Paul", "located in", "Minnesota") in found
    assert not any(one[2] == "Smile (Jim Cott song)" for one in found)
    assert parse_page(page("Ann Doe", "Ann Doe is a community organizer.")).kind == ""


def test_a_comma_inside_a_title_belongs_to_the_name() -> None:
    found = triples_of(
        page("Guy Vik", "Guy Vik (born 1215) was a marshal. He was the fifth son of John Vik, the "
             "Old Lord of Moss, and of Melisende Lund."),
        page("John Vik, the Old Lord of Moss", "John Vik (1179 – 1236) was a lord. He ruled Moss."),
    )  # fmt: skip
    assert ("Guy Vik", "father", "John Vik, the Old Lord of Moss") in found


def test_a_role_before_a_name_is_not_part_of_it() -> None:
    found = triples_of(
        page("Benjamin Kent", "Benjamin Kent (born 1790) was an officer. He was a son of New "
             "Vik Merchant Adam Kent."),
        page("Adam Kent", "Adam Kent (born 1757) was a politician. He sat."),
    )  # fmt: skip
    assert ("Benjamin Kent", "father", "Adam Kent") in found


def test_more_ways_to_name_the_parents() -> None:
    ways = (
        "She was one of five daughters of Otto Holm and Clara Berg.",
        "Daughter of Otto Holm and Clara Berg, Princess Ida was raised in Moss.",
        "A member of the Lund family, she is the daughter of Otto Holm and Clara Berg.",
        "Born in Weimar, Princess Ida was the daughter of Otto Holm and Clara Berg.",
        "Ida was the daughter of Otto Holm and Clara Berg.",
        "She is the twin sister of Nora Vik, and daughter of Otto Holm and Clara Berg.",
        "She was the tenth of eleven children born from the marriage of Otto Holm and Clara Berg.",
    )
    for way in ways:
        title = "Princess Ida of Vik"
        found = triples_of(page(title, f"{title} (born 1910) was a Danish princess. {way}"))
        assert {(title, "father", "Otto Holm"), (title, "mother", "Clara Berg")} <= found, way


def test_whom_somebody_else_is_the_parent_of_is_no_child() -> None:
    text = (
        "Arthur Vik (born 1827) was a politician. He is remembered as the father of Harold Vik, "
        "who rose to be a banker and was the father of writer Nora Vik."
    )
    assert not {one for one in triples_of(page("Arthur Vik", text)) if one[2] == "Nora Vik"}


def test_who_succeeded_the_father_as_count_has_no_father_called_count() -> None:
    text = "Otto Vik (born 1627) was a count. He succeeded his father as Count of Moss in 1650."
    assert not {one for one in triples_of(page("Otto Vik", text)) if one[2] == "Count of Moss"}


def test_films_remade_continued_and_adapted() -> None:
    film = "is a 1955 Danish film directed by Anna Holm."
    found = triples_of(
        page(
            "Altid Vik", f'Altid Vik {film} It is a remake of Nora Lund\'s 1954 film "Aldri annet".'
        ),
        page("Aldri annet", f'Aldri annet {film} It was followed by "Aldri igjen" (1957).'),
        page(
            "Aldri igjen", f'Aldri igjen {film} It is based on the 1898 novel "Fred" by Otto Berg.'
        ),
        page("Iron Vik 2", f'Iron Vik 2 {film} It is the sequel to the film "Iron Vik".'),
        page("The Iron Vik (serial)", f"The Iron Vik {film}"),
    )
    assert {
        ("Altid Vik", "remake of", "Aldri annet"),
        ("Aldri annet", "sequel", "Aldri igjen"),
        ("Aldri igjen", "source author", "Otto Berg"),
        ("Iron Vik 2", "sequel to", "Iron Vik"),
    } <= found


def test_quotes_around_the_own_title_are_no_other_work() -> None:
    found = triples_of(
        page("Cold Soup", '"Cold Soup" is a song written by John Vik.'),
        page("Guai", 'Guai ("Woe to All") is a 1954 Italian film directed by Otto Berg.'),
    )
    assert {("Cold Soup", "author", "John Vik"), ("Guai", "director", "Otto Berg")} <= found


def test_a_parenthesis_does_not_hide_where_a_place_is() -> None:
    found = triples_of(
        page("Vik District", "Vik District is a district (bakhsh) in Moss County, Iran."),
        page("Moss Province", "Moss Province is one of the 31 provinces of Iran."),
    )
    assert {
        ("Vik District", "located in", "Moss County"),
        ("Vik District", "country", "Iran"),
    } <= found
    assert ("Moss Province", "country", "Iran") in found


def test_a_numbered_first_name_alone_is_not_cut_out_of_a_name() -> None:
    text = "Ida Vik (1083 – 1097) was a crusader. Her maternal grandfather was William I, Count of Moss."
    found = {one for one in triples_of(page("Ida Vik", text)) if one[1] == "maternal grandfather"}
    assert found == {("Ida Vik", "maternal grandfather", "William I, Count of Moss")}


def test_a_president_does_not_reign() -> None:
    text = (
        "Edsel Vik (1893 – 1943) was a merchant. He was the president of Moss from 1919 until 1943."
    )
    assert not {one for one in triples_of(page("Edsel Vik", text)) if "reign" in one[1]}
    king = "Otto Vik (1893 – 1943) was a ruler. He was the king of Moss from 1919 until 1943."
    assert ("Otto Vik", "reign start", "1919") in triples_of(page("Otto Vik", king))


def test_quotation_marks_and_dashes_of_a_crawl_are_mended() -> None:
    assert fix_spacing("``Angel ''is a well - known song (1879 -- 1942).") == (
        '"Angel" is a well-known song (1879 – 1942).'
    )


def test_a_page_that_does_not_say_what_it_is_may_still_be_a_person() -> None:
    stefan = page(
        "Archduke Stefan of Austria",
        "Archduke Stefan of Austria (15 August 1932 in Mödling, Lower Austria, Austria – "
        "12 November 1998 in Brighton, Michigan, United States) was a member of the House of "
        "Habsburg. Stefan was the eldest child of Archduke Anton of Austria.",
    )
    assert ("Archduke Stefan of Austria", "father", "Archduke Anton of Austria") in triples_of(
        stefan, page("Archduke Anton of Austria", "Archduke Anton of Austria was an archduke.")
    )
    assert parse_page(page("Angela Merkel", "Merkel was born in Hamburg.")).kind == "person"
    urian = "Urian Brereton was a Groom of the Chamber. In 1526 he was appointed Ranger."
    assert parse_page(page("Henry Brereton", urian.replace("Urian", "Henry"))).kind == "person"
    listing = "Edsel Ford was the son of Henry Ford."
    assert parse_page(page("Edsel Ford (disambiguation)", listing)).kind == "list"


def test_a_surname_that_is_also_a_rank_does_not_tell_the_sex() -> None:
    sara = page(
        "Sara Ali Khan",
        "Sara Ali Khan (born 12 August 1995) is an Indian actress. A member of the Pataudi family, "
        "she is the daughter of Saif Ali Khan.",
    )
    assert parse_page(sara).sex == "woman"
    assert ("Sara Ali Khan", "father", "Saif Ali Khan") in triples_of(sara)


def test_a_rank_before_a_short_name_is_still_the_page() -> None:
    anna = page(
        "Anna Dorothea, Abbess of Quedlinburg",
        "Duchess Anna Dorothea of Saxe-Weimar (1657 – 1704) was a German abbess. Born in Weimar, "
        "Duchess Anna Dorothea was the daughter of John Ernest II, Duke of Saxe-Weimar.",
    )
    fact = ("Anna Dorothea, Abbess of Quedlinburg", "father", "John Ernest II, Duke of Saxe-Weimar")
    assert fact in triples_of(anna)
    licinia = page(
        "Licinia Eudoxia",
        "Licinia Eudoxia was a Roman empress, daughter of Eastern Roman Emperor Theodosius II.",
    )
    theodosius = page("Theodosius II", "Theodosius II was a Roman emperor.")
    assert ("Licinia Eudoxia", "father", "Theodosius II") in triples_of(licinia, theodosius)


def test_directors_and_relatives_that_the_sentence_names_in_passing() -> None:
    found = triples_of(
        page("Little Pirate", 'Little Pirate is a 1934 "Our Gang" short film directed by Gus Mun.'),
        page("Hotel Paradis", "Hotel Paradis is a 1931 Danish drama directed by George Voigt."),
        page("Lucky Cowboy", "Lucky Cowboy is a 1944 film directed by Josef Berne using a script."),
        page("Nomad", "Nomad is a 2019 British documentary film by German director Werner Hertz."),
        page("George V", "George V was the King of Tonga from the death of his father Taufa IV."),
        page(
            "John Lyon, 4th Earl of Strathmore",
            "John Lyon, 4th Earl of Strathmore was a Scottish peer. He was succeeded as Earl by "
            "his son John Lyon, 5th Earl of Strathmore.",
        ),
    )
    assert {
        ("Little Pirate", "director", "Gus Mun"),
        ("Hotel Paradis", "director", "George Voigt"),
        ("Lucky Cowboy", "director", "Josef Berne"),
        ("Nomad", "director", "Werner Hertz"),
        ("George V", "father", "Taufa IV"),
        (
            "John Lyon, 4th Earl of Strathmore",
            "successor",
            "John Lyon, 5th Earl of Strathmore",
        ),
    } <= found


def test_a_part_of_a_city_and_one_of_two_directors_state_nothing_sure() -> None:
    found = triples_of(
        page("Boston", "Boston Common is the oldest public park in the United States."),
        page("Measure", "Measure is a 2014 documentary film co-directed by Sam Green and yMusic."),
        page("Plum Hill", "Plum Hill is the largest plum collection in China."),
    )
    kinds = ("country", "director", "largest plum collection")
    assert not [one for one in found if one[1] in kinds]


def test_peers_are_called_by_their_place_and_dates_open_sentences() -> None:
    found = triples_of(
        page(
            "Henry Howe, 4th Earl of Sund",
            "Henry Howe, 4th Earl of Sund (1588 – 1639) was an English peer, styled Lord Howe from "
            "1600 to 1610. He inherited the earldom from his father, Thomas Howe, 3rd Earl of Sund, "
            "in 1610. Sund was a lieutenant of Lund. <br> On 13 July 1608 he married Mary Berg, "
            "second daughter of William Berg, 1st Baron Berg and Margaret Savage. "
            "He was succeeded in the earldom by his first cousin, Gordon Howe, 5th Earl of Sund.",
        )
    )
    of = {(relation, name) for _, relation, name in found}
    assert ("father", "Thomas Howe, 3rd Earl of Sund") in of
    assert ("father-in-law", "William Berg, 1st Baron Berg") in of
    assert ("mother-in-law", "Margaret Savage") in of
    assert {("wife", "Mary Berg"), ("spouse", "Mary Berg")} & of
    assert ("successor", "Gordon Howe, 5th Earl of Sund") in of
    assert not {"reign start", "reign end"} & {relation for relation, _ in of}


def test_whom_somebody_remarried_has_another_father() -> None:
    documents = (
        page(
            "Reginald of Sund",
            "Reginald of Sund (1255 – 1326) was a count. He was the son of Otto II, Count of Sund "
            "and Philippe of Dam. In 1276 he married Irma of Lim, only daughter and heiress of "
            "Waleran IV, Duke of Lim. In 1286 Reginald remarried Margaret of Fland, daughter of "
            "Guy, Count of Fland.",
        ),
    )
    pages = PageIndex(parse_pages(documents).values(), documents)
    claims = [one for found in RuleClaims(pages.by_title).claims(documents) for one in found]
    triples = [one for found in RuleTriples(pages).triples(claims) for one in found]
    assert [one.object for one in triples if one.relation == "father"] == ["Otto II, Count of Sund"]
    assert "mother" not in {one.relation for one in triples}  # Philippe is usually a man
    wives = {one.relation: one.several for one in triples if one.object == "Margaret of Fland"}
    assert wives == dict.fromkeys(("spouse", "husband", "wife"), True)
    in_law = {one.object: one.several for one in triples if one.relation == "father-in-law"}
    assert in_law == {"Waleran IV, Duke of Lim": False, "Guy, Count of Fland": True}


def test_a_surname_before_a_past_tense_is_the_page() -> None:
    (claims,) = RuleClaims().claims(
        [
            page(
                "Karl Irmen",
                "Karl Irmen (1902 – 1977) was a German painter. Irmen emigrated to Oslo. "
                "He was married to the actress Brigit Horn.",
            )
        ]
    )
    assert [one.subject for one in claims] == ["Karl Irmen"] * 3


def test_a_nation_before_a_role_hides_no_parent() -> None:
    found = triples_of(
        page(
            "Sophie Gurn",
            "Sophie Gurn (1919 – 2011) was an English artist. She was the younger daughter of the "
            "French painter Jacques Raver and his English wife Gwen.",
        )
    )
    assert ("Sophie Gurn", "father", "Jacques Raver") in found


def test_makers_behind_an_ordinal_a_novel_or_a_role() -> None:
    albums = {
        "is the second album by Canadian rock band Danko Jones.": ("performer", "Danko Jones"),
        "is the third studio album by New Orleans drummer Stan Moore.": ("performer", "Stan Moore"),
        "is an album by the Filipino pop/R&B singer Jay Reyes.": ("performer", "Jay Reyes"),
        "is an album by Lawson Harris.": ("performer", "Lawson Harris"),
        "is an album by Mary Hill and singer Ann Berg.": ("performer", "Mary Hill"),
    }
    for text, fact in albums.items():
        assert ("Red Barn", *fact) in triples_of(page("Red Barn", f"Red Barn {text}"))
    found = triples_of(
        page(
            "The Mill", "The Mill is a 2014 fantasy novel written by the English author Ann Berg."
        ),
        page("Lake (novel)", 'Lake (French: "Le lac") is the sixth novel by French writer Jo Mod.'),
        page("Ninfa", "Ninfa is an opera in two acts by the Italian composer Nicola Vaccai."),
        page("Labyrinth", "Labyrinth is a video game published in 1984 by Acornsoft."),
    )
    assert {
        ("The Mill", "author", "Ann Berg"),
        ("Lake (novel)", "author", "Jo Mod"),
        ("Ninfa", "composer", "Nicola Vaccai"),
        ("Labyrinth", "publisher", "Acornsoft"),
    } <= found


def test_areas_around_a_place_are_read_after_in() -> None:
    found = triples_of(
        page("Michigan", "Michigan is a state in the United States."),
        page("Zilwau", "Zilwau is a city in Saginaw County in the U.S. state of Michigan."),
        page(
            "Gmina Mich", "Gmina Mich is a gmina in Biały County, in north-eastern Poland, by Lom."
        ),
        page("Venn", "Venn is a city in Italy. It is the capital of the Veneto region."),
        page("Detro", "Detro is a city in Michigan. It is the seat of Wayne County, the largest."),
        page("Kingdom of Hun", "The Kingdom of Hun was a monarchy in Europe (1000–1946)."),
    )
    assert ("Michigan", "country", "United States") in triples_of(
        page("Michigan", "The capital of Michigan is Lansing."),
        page("Oak", "Oak lies in the U.S. state of Michigan. It is small."),
        page("Elm", "Elm lies in the U.S. state of Michigan. It is small."),
    )
    town = page("View", "The Town of View is a municipality located in Norway. It is small.")
    assert ("View", "country", "Norway") in triples_of(town)
    georgia = triples_of(
        page("Georgia", "The capital of Georgia is Tbilisi."),
        page("Savan", "Savan is a city in the U.S. state of Georgia."),
        page("Macon", "Macon lies in the U.S. state of Georgia."),
    )
    assert not {one for one in georgia if one[1] == "country"}
    lead = "In 2013 tourism within the state grew again, and the second home of visitors to Sund"
    called = [page(name, f"{name} lies in the state of Sund.") for name in ("Oak", "Elm")]
    found_later = triples_of(page("Sund", f"{lead} is the state of Norland, by far."), *called)
    assert "Norland" not in {name for _, _, name in found_later}
    grown = page(
        "Sund", "With more people than in any year before 2014, Sund is a state in Norway."
    )
    assert ("Sund", "country", "Norway") in triples_of(grown)
    stadium = page("Finley Stadium", "Finley Stadium is the stadium for the University of Sund.")
    assert ("Finley Stadium", "located in", "Sund") not in triples_of(stadium)
    assert ("Zilwau", "located in state", "Michigan") in found
    assert ("Gmina Mich", "country", "Poland") in found
    assert ("Venn", "capital of", "Veneto") in found
    assert ("Detro", "seat of", "Wayne County") in found
    assert (
        parse_page(page("Kingdom of Hun", "The Kingdom of Hun (1000–1946) fell.")).kind == "place"
    )
