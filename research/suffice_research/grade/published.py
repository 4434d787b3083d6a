"""The figures of GRADE (Lee, Kwon and Jin, 2025): three language models on questions that language
models generated from news.

Its error is a wrong answer, judged by a language model; ours on real questions is a document that
retrieval did not find. The figures are shown side by side to compare directions and strengths, not
values.
"""

from __future__ import annotations

from suffice_research.published import PublishedTable

__all__ = ["CORNERS", "FIGURE_2", "TABLE_1", "TABLE_2", "TABLE_3", "TABLE_4"]

_PAPER = "GRADE"
_SYSTEMS = (
    "Sports, o1-mini",
    "Sports, 4o",
    "Sports, 4o-mini",
    "Health, o1-mini",
    "Health, 4o",
    "Health, 4o-mini",
)


def _across(
    rows: dict[str, tuple[float, ...]], systems: tuple[str, ...] = _SYSTEMS
) -> dict[str, dict[str, float]]:
    return {name: dict(zip(systems, values, strict=True)) for name, values in rows.items()}


TABLE_1 = PublishedTable(
    _PAPER,
    "Table 1",
    "Pearson correlation between D_r and error over four bins, for each number of hops.",
    _across(
        {
            "2 hops": (0.504, 0.463, 0.646, 0.967, 0.671, 0.806),
            "3 hops": (0.595, 0.483, 0.433, 0.699, 0.885, 0.956),
            "4 hops": (0.976, 0.963, 0.769, 0.950, 0.874, 0.802),
            "5 hops": (0.867, 0.798, 0.664, 0.704, 0.838, 0.968),
            "average": (0.736, 0.677, 0.628, 0.830, 0.817, 0.883),
        }
    ),
)

TABLE_2 = PublishedTable(
    _PAPER,
    "Table 2",
    "Share of questions that need missing links, by hops.",
    {
        f"{hops} hops": {
            "exact, Health": exact[0],
            "exact, Sports": exact[1],
            "context, Health": context[0],
            "context, Sports": context[1],
            "either, Health": either[0],
            "either, Sports": either[1],
        }
        for hops, exact, context, either in (
            (2, (0.459, 0.107), (0.0485, 0.0926), (0.508, 0.199)),
            (3, (0.463, 0.116), (0.0519, 0.0808), (0.515, 0.197)),
            (4, (0.574, 0.237), (0.0305, 0.107), (0.604, 0.343)),
            (5, (0.744, 0.295), (0.0, 0.0791), (0.744, 0.374)),
        )
    },
)

TABLE_3 = PublishedTable(
    _PAPER,
    "Table 3",
    "Pearson correlation for three ways to put similarities together, on average over hops.",
    _across(
        {
            "mean": (0.445, 0.394, 0.461, 0.314, 0.412, 0.416),
            "power mean": (0.534, 0.398, 0.498, 0.903, 0.795, 0.808),
            "min": (0.736, 0.677, 0.628, 0.830, 0.817, 0.883),
        }
    ),
)

# About the diagonal the paper says: Pearson above 0.9 in all six matrices. Its text gives these
# corners.
CORNERS = PublishedTable(
    _PAPER,
    "Figure 3 and 4, in the text",
    "Error in the easiest and in the hardest corner of the matrix.",
    {
        "easiest": {
            "Sports, o1-mini": 0.241,
            "Health, o1-mini": 0.224,
            "Science, o1-mini": 0.226,
            "Science, 4o": 0.306,
            "Science, 4o-mini": 0.355,
        },
        "hardest": {
            "Sports, o1-mini": 0.571,
            "Health, o1-mini": 0.636,
            "Science, o1-mini": 0.504,
            "Science, 4o": 0.474,
            "Science, 4o-mini": 0.556,
        },
    },
)

FIGURE_2 = PublishedTable(
    _PAPER,
    "Figure 2, in the text",
    "The paper gives the accuracy at 2 and 5 hops, on average over three models; the rest is drawn.",
    {
        "Sports": {"2 hops": 0.68, "5 hops": 0.48},
        "Health": {"2 hops": 0.58, "5 hops": 0.49},
    },
)

# Link, triples, question, answer.
TABLE_4 = (
    (
        "context",
        "(matthew perry, had, elevated ketamine levels in his blood); "
        "(elevated ketamine levels, led to, respiratory depression)",
        "What condition did actor Matthew Perry experience due to elevated ketamine levels in his "
        "blood?",
        "Respiratory depression",
    ),
    (
        "exact",
        "(human spillover cases, will persist, bird flu (h5n1)); "
        "(h5n1 virus, indicates, potential reduction in its lethality)",
        "What does the persistence of human spillover cases of bird flu (H5N1) indicate about bird "
        "flu's lethality?",
        "Potential reduction in its lethality",
    ),
)
