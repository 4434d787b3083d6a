"""The relations of `relations.toml`: what each is between, and how questions word it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from suffice.storage.records import read_toml
from suffice_grade.vocabulary import AREAS, FOLDER

MAX_RELATION_WORDS = 4  # longer open relations are not worded in questions


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from `relations.toml`, which documents the fields."""

    object: str = ""
    of: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    describe: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    bridge_first: tuple[str, ...] = ()
    bridge_last: tuple[str, ...] = ()
    bridge_same: tuple[str, ...] = ()
    back: str = ""
    trades: str = ""
    titles: tuple[str, ...] = ()
    years: tuple[str, int, int] | None = None


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


RELATIONS = {
    name: Relation(**{key: _frozen(value) for key, value in fields.items()})
    for name, fields in read_toml(FOLDER / "relations.toml").items()
}
# Relations to a place, as worded about X. "in Dayton, Ohio" also states the state, so each has a
# variant for every kind of area: "birth place state".
PLACED = {
    "located in": ("X is located", "is X located", "that contains X"),
    "birth place": ("X was born", "was X born", "of birth of X"),
    "death place": ("X died", "did X die", "of death of X"),
    "headquarters": ("X is based", "is X based", "that is home to X"),
}
RELATIONS |= {
    f"{relation} {noun}": Relation(
        object="place",
        of=(f"the {noun} where {stated}",),
        nested=(f"the {noun} {nested}",),
        ask=(f"In which {noun} {asked}?", f"In what {noun} {asked}?"),
    )
    for relation, (stated, asked, nested) in PLACED.items()
    for noun in AREAS
}
_OPEN = Relation()


def get_relation(name: str) -> Relation:
    """The relation of this name; an open relation (a model's own words) has no words here."""
    return RELATIONS.get(name, _OPEN)
