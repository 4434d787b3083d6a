"""The relations that rules can read and ask about, one line each: who has it, what it leads to, and its words in a question.

`of` are the ways to say "the object of X" inside a longer question, `ask` the ways to ask for it, `X` standing for whoever is
asked about. Which one a question takes follows from its seed. A relation that does not stand here is *open*: the words of the
sentence between two names ("played for"), which a question repeats as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RELATIONS", "Relation", "leads_to"]

WORKS = ("film", "series", "song", "album", "book", "play", "game", "paper")


@dataclass(frozen=True, slots=True)
class Relation:
    name: str
    subjects: tuple[str, ...]  # kinds of page that have it; () for any
    object: str  # kind of the object: a page's kind, or date, country, name
    of: tuple[str, ...]  # inside a question; empty: it only ends one
    ask: tuple[str, ...]


_PERSON = ("person",)
_ALL = (
    Relation(
        "director",
        ("film", "series"),
        "person",
        ("the director of X", "the director of X", "the person who directed X"),
        ("Who directed X?", "Who is the director of X?"),
    ),
    Relation(
        "composer",
        (*WORKS,),
        "person",
        ("the composer of X", "the person who composed the music for X"),
        ("Who composed the music for X?", "Who is the composer of X?"),
    ),
    Relation(
        "performer",
        ("song", "album"),
        "",
        ("the performer of X", "the artist who recorded X", "the performer of X"),
        ("Who is the performer of X?", "Who recorded X?"),
    ),
    Relation(
        "author",
        ("book", "play", "song"),
        "person",
        ("the author of X", "the writer of X"),
        ("Who wrote X?", "Who is the author of X?"),
    ),
    Relation(
        "screenwriter",
        ("film", "series"),
        "person",
        ("the writer of X", "the person who wrote X"),
        ("Who wrote X?",),
    ),
    Relation("producer", ("film", "series", "album", "song"), "person", ("the producer of X",), ("Who produced X?",)),
    Relation("creator", ("series", "game", "paper", "company"), "person", ("the creator of X",), ("Who created X?",)),
    Relation(
        "developer",
        ("game",),
        "company",
        ("the developer of X", "the company that developed X"),
        ("Which company developed X?",),
    ),
    Relation("publisher", ("book", "game", "paper"), "company", ("the publisher of X",), ("Who published X?",)),
    Relation(
        "label",
        ("song", "album", "band"),
        "company",
        ("the record label of X", "the record label that released X"),
        ("What is the record label of X?", "Which label released X?"),
    ),
    Relation(
        "network", ("series",), "", ("the network that aired X", "the original network of X"), ("Which network aired X?",)
    ),
    Relation("father", _PERSON, "person", ("the father of X", "X's father"), ("Who is X's father?", "Who is the father of X?")),
    Relation("mother", _PERSON, "person", ("the mother of X", "X's mother"), ("Who is X's mother?", "Who is the mother of X?")),
    Relation(
        "husband",
        _PERSON,
        "person",
        ("the husband of X", "X's husband"),
        ("Who is the husband of X?", "Who is the spouse of X?"),
    ),
    Relation("wife", _PERSON, "person", ("the wife of X", "X's wife"), ("Who is the wife of X?", "Who is the spouse of X?")),
    Relation("spouse", _PERSON, "person", ("the spouse of X", "X's spouse"), ("Who is the spouse of X?",)),
    Relation(
        "sibling", _PERSON, "person", ("the sibling of X", "X's sibling"), ("Who is X's sibling?", "Who is the sibling of X?")
    ),
    Relation(
        "birth place",
        _PERSON,
        "place",
        ("the birthplace of X", "the place where X was born"),
        ("Where was X born?", "What is the place of birth of X?"),
    ),
    Relation(
        "death place",
        _PERSON,
        "place",
        ("the place where X died",),
        ("Where did X die?", "Where was the place of death of X?"),
    ),
    Relation(
        "burial place",
        _PERSON,
        "building",
        ("the burial place of X",),
        ("Where was X buried?", "What is the place of burial of X?"),
    ),
    Relation(
        "birth date", _PERSON, "date", (), ("When was X born?", "When is X's birthday?", "What is the date of birth of X?")
    ),
    Relation("death date", _PERSON, "date", (), ("When did X die?", "What is the date of death of X?")),
    Relation(
        "nationality",
        _PERSON,
        "country",
        ("the country of citizenship of X", "the country that X is from"),
        ("What nationality is X?", "Which country X is from?", "What is the nationality of X?"),
    ),
    Relation(
        "school",
        _PERSON,
        "school",
        ("the school that X attended", "X's alma mater"),
        ("Where did X study?", "Which school did X attend?", "Where was X educated?"),
    ),
    Relation("employer", _PERSON, "", ("the employer of X",), ("Where does X work?", "Who is the employer of X?")),
    Relation(
        "team",
        _PERSON,
        "team",
        ("the team that X plays for", "the club of X"),
        ("Which team does X play for?", "What team is X a member of?"),
    ),
    Relation("member of", _PERSON, "band", ("the band that X is a member of", "X's band"), ("Which band is X a member of?",)),
    Relation("death cause", _PERSON, "name", (), ("Why did X die?", "What is the cause of death of X?")),
    Relation("release date", (*WORKS,), "date", (), ("When was X released?", "What is the release date of X?")),
    Relation(
        "based on", ("film", "series", "play", "game"), "book", ("the book that X is based on",), ("Which book is X based on?",)
    ),
    Relation(
        "work country",
        ("film", "series", "band", "company"),
        "country",
        ("the country of origin of X",),
        ("Which country is X from?",),
    ),
    Relation(
        "located in",
        ("place", "building", "school"),
        "place",
        ("the place where X is located", "the area where X is located"),
        ("Where is X located?", "In which administrative area is X located?"),
    ),
    Relation(
        "country",
        ("place", "building", "school"),
        "place",
        ("the country where X is located",),
        ("In which country is X located?",),
    ),
    Relation("capital", ("place",), "place", ("the capital of X",), ("What is the capital of X?",)),
    Relation(
        "headquarters",
        ("company", "school", "team", "band"),
        "place",
        ("the city where X is based", "the headquarters location of X"),
        ("Where is X based?", "Where are the headquarters of X?"),
    ),
    Relation(
        "founder", ("company", "school", "band", "team", "paper", "place"), "person", ("the founder of X",), ("Who founded X?",)
    ),
    Relation(
        "founded",
        ("company", "school", "band", "team", "paper", "building"),
        "date",
        (),
        ("When was X founded?", "When was X established?"),
    ),
    Relation(
        "owner",
        ("company", "building", "team", "paper", "series"),
        "",
        ("the owner of X",),
        ("Who owns X?", "Who is the owner of X?"),
    ),
    Relation("cast", ("film", "series", "play"), "person", ("the star of X",), ("Who starred in X?",)),
    Relation("child", _PERSON, "person", ("the child of X", "X's child"), ("Who is the child of X?", "Who is X's child?")),
    Relation(
        "named after",
        (),
        "",
        ("the namesake of X", "what X is named after"),
        ("What is X named after?", "Who is X named after?"),
    ),
)
RELATIONS: dict[str, Relation] = {one.name: one for one in _ALL}


def leads_to(relation: str) -> str:
    """The kind of a relation's object; "" where it may be anything."""
    return RELATIONS[relation].object if relation in RELATIONS else ""
