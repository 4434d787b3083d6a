"""A dozen small pages that tell of one another: enough for chains of five facts, comparisons and
bridges.
"""

from __future__ import annotations

from suffice.types import Document

PAGES = {
    "The Mill": "The Mill is a 1951 Danish drama film directed by Anna Holm and starring Karl Lund.",
    "The Ferry": "The Ferry is a 1938 Swedish comedy film directed by Erik Strand.",
    "Night Train (1960 film)": "Night Train is a 1960 French crime film directed by Louis Marchand and Paul Petit.",
    "Anna Holm": (
        "Anna Holm (born 3 May 1910) was a Danish film director. She was the daughter of Otto Holm and his wife Clara Berg. "
        "She died in Aarhus in 1984."
    ),
    "Erik Strand": "Erik Strand (2 June 1890 – 10 July 1960) was a Swedish film director and screenwriter.",
    "Otto Holm": (
        "Otto Holm (12 January 1880 – 4 March 1951) was a Danish painter. He was the son of Prince Magnus of Vik. "
        "He opened the first school of painting in Aarhus in 1921."
    ),
    "Prince Magnus of Vik": (
        "Prince Magnus of Vik (1850 – 1921) was a Danish nobleman. "
        "He was the eldest son of King Harald II of Vik and Queen Ingrid of Sund."
    ),
    "Harald II of Vik": "Harald II of Vik (1820 – 1889) was King of Vik. He was born in Sund.",
    "Karl Lund": "Karl Lund (born 9 August 1919 in Odense) was a Danish actor.",
    "Aarhus": "Aarhus is a city in Jutland, Denmark. In 1928, the city opened its university.",
    "Mercury": "Mercury may refer to:",
}


def village() -> list[Document]:
    return [Document(f"d{at}", text, title=title) for at, (title, text) in enumerate(PAGES.items())]
