"""Twenty documents that lead from one to the next: a film, its director, the director's father, his
town. Five times.
"""

from __future__ import annotations

from suffice.types import Document

FILMS = ("The Alder Tree", "Birch Road", "Cedar Night", "Dogwood", "Elm Street North")
DIRECTORS = ("Anna Berg", "Clara Dahl", "Eva Falk", "Greta Holm", "Ida Juel")
FATHERS = ("Otto Berg", "Paul Dahl", "Rolf Falk", "Sven Holm", "Tor Juel")
TOWNS = ("Altavik", "Bergby", "Dalvik", "Fjordheim", "Granvik")


def films(*, short: bool = False) -> list[Document]:
    """`short`: one sentence a document, for a model that reads slowly."""
    found = []
    for at, (film, director, father, town) in enumerate(zip(FILMS, DIRECTORS, FATHERS, TOWNS)):
        texts = {
            film: f"{film} is a {1950 + at} Norwegian drama film directed by {director}.",
            director: (
                f"{director} (born 3 May {1910 + at}) was a Norwegian film director. She "
                f"was the daughter of {father}."
            ),
            father: (
                f"{father} (born 1 June {1880 + at}) was a Norwegian painter. He was born "
                f"in {town}."
            ),
            town: f"{town} is a town in Norway. It was founded in {1700 + at}.",
        }
        if short:
            texts[film] = f"{film} is a {1950 + at} drama film directed by {director}."
            texts[director] = f"{director} (born 3 May {1910 + at} in {town}) was a film director."
            texts[father] = f"{father} (born 1 June {1880 + at} in {town}) was a painter."
            texts[town] = f"{town} is a town in Norway."
        found += [
            Document(title.casefold().replace(" ", "-"), text, title=title)
            for title, text in texts.items()
        ]
    return found
