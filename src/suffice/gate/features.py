"""The features of the gate, as one table: level, family, name, what it means. All scale-free, all from question and hits alone.

Three small models look at the parts before the gate looks at the whole: which hits are evidence (level "hit"), which absent
names are missing evidence ("absent"), and what the question asks for ("question"). Their outputs and the figures of the whole
set ("whole") are what the gate looks at ("gate"); `describe` puts these together. A hit's place "among" the others is worked
out from its columns, and hits may have columns "beside" these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "AGREEMENT",
    "FEATURES",
    "RELATIVE_HIT_COLUMNS",
    "STEADY_DIRECTIONS",
    "Feature",
    "clipped_logit",
    "feature_table",
    "gate_features",
]

Floats = npt.NDArray[np.floating[Any]]
TOP_HITS = 5  # hits, likeliest first, whose odds the gate sees one by one
TOP_ABSENT = 8  # absent names that count, likeliest first
MIN_PROBABILITY = 2e-3  # a probability nearer to 0 or 1 than this is taken for this: odds stay finite and one part cannot shout


class Feature(NamedTuple):
    family: str
    name: str
    meaning: str
    level: str = "gate"


_HIT = {
    "rank": ("scores", "Place among the hits, from 0 (first) to 1 (last)."),
    "score": ("scores", "Score as a share of the best one; -1 where unknown or negative."),
    "named": ("coverage", "The question names its title."),
    "title_share": (
        "coverage",
        "Share of its title's words, by rarity, that stand in the question.",
    ),
    "title_words": ("query", "How many words its title has, up to 8."),
    "title_rare": ("query", "Rarity of the rarest word of its title."),
    "covered": ("coverage", "Share of the question's words, by rarity, that it holds."),
    "only_here": ("coverage", "Share of the question's words that it alone holds."),
    "gain": (
        "coverage",
        "What it adds to the words covered, if it is among the four hits that cover most together.",
    ),
    "residual": ("coverage", "Share held of the words that stand in no named title."),
    "relation": ("coverage", "Share held of the words that relate rather than name."),
    "fills": (
        "coverage",
        "Share held of the relating words that no source holds; -1 where there are none.",
    ),
    "names": ("coverage", "How many of the question's names it mentions."),
    "title_names": (
        "coverage",
        "How many of the question's names are its title, or part of it, or hold it.",
    ),
    "numbers": ("coverage", "Share of the question's numbers that it holds; -1 without numbers."),
    "linked_by_named": ("links", "A named hit mentions its title."),
    "linked_by_any": ("links", "How many hits mention its title, up to 5."),
    "links_out": ("links", "How many other hits' titles it mentions, up to 5."),
    "near": ("links", "A source mentions its title next to a word the question asks about."),
    "near_agent": ("links", "The same, next to a word like 'director' or 'mother'."),
    "closeness": (
        "links",
        "How near such a mention is to the nearest word asked about, from 0 to 1.",
    ),
    "shares_named": (
        "links",
        "How many names outside the question it shares with named hits, up to 4.",
    ),
    "shares_any": (
        "links",
        "How many names outside the question it shares with other hits, up to 6.",
    ),
    "same_title": ("overlap", "How many other hits have the same title."),
    "has_text": ("overlap", "It has a text."),
}
_ABSENT_NAME = {
    "from_source": ("absent", "It stands in a source's text, not only in the question."),
    "closeness": ("absent", "How near it stands to a word the question asks about, from 0 to 1."),
    "agent_closeness": (
        "absent",
        "How near it stands to a word like 'director' or 'mother', from 0 to 1.",
    ),
    "after_agent": ("absent", "It follows such a word closely."),
    "mentions": ("absent", "How many hits mention it."),
    "words": ("absent", "How many words it has, up to 6."),
    "rare": ("absent", "Rarity of its rarest word."),
    "place": ("absent", "How far into the text it stands, in units of 400 bytes, up to 3."),
    "source_covered": ("absent", "Share of the question's words that its source holds."),
    "asked": ("absent", "It stands in the question."),
    "source_rank": ("absent", "Place of its source among the hits, from 0 to 1."),
    "source_resolved": ("absent", "Its source already leads to another hit."),
    "lacks": ("absent", "Share of the question's relating words that no source holds."),
    "rivals": ("absent", "How many absent names there are beside it."),
    "digits": ("absent", "It has a number in it."),
    "agents": ("absent", "How many words like 'director' or 'mother' the question has."),
}
_SET = {
    "k": ("query", "How many hits there are."),
    "content": ("query", "How many content words the question has."),
    "names": ("query", "How many names the question has."),
    "numbers": ("query", "How many numbers the question has."),
    "rarity": ("query", "How rare its words are on average."),
    "named": ("coverage", "How many hits have a title that the question names."),
    "names_no_title": ("coverage", "Share of the question's names that no title carries."),
    "names_no_text": ("coverage", "Share of the question's names that no hit mentions."),
    "cov_any": ("coverage", "Share of the question's words, by rarity, that some hit holds."),
    "cov_titles": ("coverage", "The same for titles."),
    "cov_sources": (
        "coverage",
        "The same for the sources: the named hits, or the one that covers most.",
    ),
    "cov_linked": ("links", "The same for the sources and the hits that named hits point to."),
    "cov_named": ("coverage", "Share of the question's words that stand in a named title."),
    "greedy1": ("coverage", "What the best hit covers."),
    "greedy2": ("coverage", "What the next best adds."),
    "greedy3": ("coverage", "What the third best adds."),
    "greedy4": ("coverage", "What the fourth best adds."),
    "rarest_missing": ("coverage", "Rarity of the rarest word that no hit holds."),
    "missing_words": ("coverage", "Share of words that no hit holds."),
    "single_holder": ("coverage", "Share of words that exactly one hit holds."),
    "links": ("links", "How often a hit mentions another hit's title, up to 20."),
    "bridged": ("links", "How many hits a named hit points to."),
    "bridged_near": ("links", "The same, next to a word the question asks about."),
    "bridged_agent": ("links", "The same, next to a word like 'director' or 'mother'."),
    "loose": ("query", "How many words relate rather than name."),
    "agents": ("query", "How many of them name someone by a role."),
    "s2": ("scores", "Second score as a share of the first."),
    "s3": ("scores", "Third score, likewise."),
    "s4": ("scores", "Fourth score, likewise."),
    "s5": ("scores", "Fifth score, likewise."),
    "s10": ("scores", "Tenth score, likewise."),
    "s_mean": ("scores", "Mean score, likewise."),
    "s_std": ("scores", "Spread of the scores, likewise."),
    "distinct_titles": ("overlap", "Share of hits with a title of their own."),
    "resolved": ("links", "Sources whose relation leads to another hit."),
    "dangling": ("links", "Sources whose relation leads to a name that no hit carries."),
    "terminal": ("links", "Sources that lead nowhere."),
    "lacks": ("coverage", "Share of relating words that no source holds."),
    "lacks_linked": ("links", "The same, after following links."),
    "numbers_missing": (
        "coverage",
        "Numbers of the question that no hit holds; -1 without numbers.",
    ),
}
_QUESTION = {
    "tokens": "words",
    "plain": "words outside names",
    "relative": "relative words, like 'which' or 'whose', after the first",
    "chain": "links of the chain: roles, possessives, relative words and 'of'",
    "branches": "branches to walk, each as deep as the relations go",
    "agents": "roles, like 'director' or 'mother'",
    "of": "'of'",
    "the": "'the'",
    "loose": "different content words outside names",
    "places": "kinds of place, like 'city' or 'country'",
    "possessive": "possessives",
    "names": "names",
    "auxiliaries": "auxiliary verbs",
    "prepositions": "prepositions",
    "comparing": "comparing words, like 'older' or 'both'",
    "kin": "words of kinship",
    "or": "'or'",
    "and": "'and'",
    "numbers": "numbers",
    "phrases": "phrases that point on, like 'the city where'",
    "roles": "roles, save those that are asked for",
    "least": "documents that its form needs at least",
    "likely": "documents that its form likely needs",
}
_PATH = {
    **{
        f"p{at}": f"Log-odds that the hit likeliest at place {at} is evidence."
        for at in range(1, TOP_HITS + 1)
    },
    "held": "Expected number of evidence documents among the hits.",
    "weakest": "Log-odds of the weakest hit among as many as the question needs.",
    "short": "Expected evidence held, less what the question needs.",
    "weakest_least": "Log-odds of the weakest hit among as many as the question's form needs at least.",
    "weakest_likely": "The same among as many as its form likely needs.",
    "short_least": "Expected evidence held, less what its form needs at least; 1 at most.",
    "short_likely": "The same for what its form likely needs.",
    "pair": "Chance that the two likeliest hits are both evidence.",
    "triple": "Chance that the three likeliest are.",
    "sure": "How many hits are more likely evidence than not.",
}
_ABSENT = {
    "absent1": "Chance that the likeliest absent name is missing evidence.",
    "absent2": "The second, likewise.",
    "absent3": "The third.",
    "absent": "Expected missing evidence among absent names.",
}
# Columns of a hit that say more beside those of the other hits: whatever a corpus is like, the best of a list is the best.
RELATIVE_HIT_COLUMNS = (
    "covered", "residual", "relation", "score", "title_share", "closeness", "linked_by_any", "shares_any", "names", "fills",
)  # fmt: skip
# What points the same way whatever the data set: more of it speaks for a complete set (1) or against (-1).
STEADY_DIRECTIONS = {
    "weakest_least": 1, "weakest_likely": 1, "short_least": 1, "short_likely": 1, "p1": 1, "cov_any": 1, "cov_linked": 1,
    "resolved": 1, "dangling": -1, "loose": -1, "lacks_linked": -1, "names_no_text": -1, "rarest_missing": -1, "absent": -1,
}  # fmt: skip
# Only where a gate was fitted on examples with other runs beside their hits: see assess.agreement.
_AGREEMENT_HIT = {
    "runs": ("agreement", "Share of the other runs that hold it; -1 without another run."),
    "run_place": (
        "agreement",
        "Best reciprocal place in another run, 0 where none holds it; -1 without another run.",
    ),
}
_AGREEMENT = {
    "shared": (
        "agreement",
        "Share of the hits that another run holds, on average over runs; -1 without another run.",
    ),
    "shared_by_all": (
        "agreement",
        "Share of the hits that every other run holds; -1 without another run.",
    ),
    "same_first": (
        "agreement",
        "Share of the other runs that begin with the same hit; -1 without another run.",
    ),
    "same_order": (
        "agreement",
        "Share of pairs of shared hits in the same order; -1 without another run.",
    ),
    "only_there": (
        "agreement",
        "How many documents another run alone holds, per hit, on average; -1 without another run.",
    ),
}


def _features_of(level: str, described: Mapping[str, tuple[str, str]]) -> tuple[Feature, ...]:
    return tuple(
        Feature(family, name, meaning, level) for name, (family, meaning) in described.items()
    )


@lru_cache(maxsize=64)
def feature_table(targets: tuple[str, ...]) -> tuple[Feature, ...]:
    """What the gate looks at, in column order, when its question model has these targets ("hops" first)."""
    return (
        *(Feature(family, name, meaning) for name, (family, meaning) in _SET.items()),
        *(Feature("path", name, meaning) for name, meaning in _PATH.items()),
        *(Feature("absent", name, meaning) for name, meaning in _ABSENT.items()),
        *(
            Feature("hops", f"guess_{name}", f"The question model's guess of {name!r}.")
            for name in targets
        ),
        *(
            Feature("query", f"q_{name}", f"Log of 1 + how many: {what}.")
            for name, what in _QUESTION.items()
        ),
    )


AGREEMENT = _features_of("gate", _AGREEMENT)
FEATURES: tuple[Feature, ...] = (
    *_features_of("hit", _HIT),
    *(
        Feature(
            _HIT[name][0],
            f"{name}_lead",
            f"By how much '{name}' is above that of the best other hit.",
            "among",
        )
        for name in RELATIVE_HIT_COLUMNS
    ),
    *(
        Feature(
            _HIT[name][0],
            f"{name}_place",
            f"Share of the other hits with more of '{name}'.",
            "among",
        )
        for name in RELATIVE_HIT_COLUMNS
    ),
    *_features_of("beside", _AGREEMENT_HIT),
    *_features_of("absent", _ABSENT_NAME),
    *_features_of("whole", _SET),
    *(
        Feature("query", name, f"Log of 1 + how many: {what}.", "question")
        for name, what in _QUESTION.items()
    ),
    *feature_table(("hops", "held", "complete")),
    *AGREEMENT,
)


def clipped_logit(p: Floats) -> Floats:
    """Log-odds, held within those of SUREST."""
    clipped = np.minimum(
        np.maximum(p, MIN_PROBABILITY), 1 - MIN_PROBABILITY
    )  # a third of the time that np.clip takes for one row
    return np.asarray(np.log(clipped / (1 - clipped)))


def gate_features(
    whole: Floats,
    p_held: Iterable[Iterable[float]],
    p_absent: Iterable[Iterable[float]],
    guesses: Floats,
    question: Floats,
) -> Floats:
    """What the gate looks at, from the parts: (questions, features), float32, columns as in `table`.

    `p_held` has a chance for each hit of each question, `p_absent` one for each absent name; `guesses` has the expected number
    of documents needed in its first column, `question` what its form needs in the last two, as log(1 + number).
    """
    needs = zip(guesses[:, 0].tolist(), *np.expm1(question[:, -2:]).T.tolist(), strict=True)
    path = [
        _path_features(sorted(held, reverse=True), need)
        for held, need in zip(p_held, needs, strict=True)
    ]
    absent = [_absent_features(sorted(chances, reverse=True)) for chances in p_absent]
    parts = np.array([one + other for one, other in zip(path, absent, strict=True)]).reshape(
        -1, len(_PATH) + len(_ABSENT)
    )
    columns = np.concatenate([whole, parts, guesses, question], axis=1, dtype=np.float32)
    return columns if np.isfinite(columns).all() else np.nan_to_num(columns)


def _path_features(chances: list[float], need: tuple[float, float, float]) -> list[float]:
    """The columns of _PATH, from the chances of the hits, likeliest first, and the needs: as guessed, at least, likely.

    Number by number: for one question that takes a fifth of what arrays do.
    """
    first = (*chances[:TOP_HITS], *[0.0] * (TOP_HITS - len(chances)))
    odds = [_clipped_log_odds(one) for one in first]
    held, pair = sum(chances), first[0] * first[1]
    needs = [min(max(one, 1.6), TOP_HITS - 0.01) for one in need]
    weakest = []
    for one in needs:
        below = int(one)  # between two whole numbers of documents needed, the odds go over smoothly
        weakest.append(odds[below - 1] + (one - below) * (odds[below] - odds[below - 1]))
    short = [held - one for one in needs]
    sure = sum([one > 0.5 for one in chances])
    return [
        *odds, held, weakest[0], short[0], *weakest[1:], min(short[1], 1.0), min(short[2], 1.0), pair, pair * first[2], sure,
    ]  # fmt: skip


def _absent_features(chances: list[float]) -> list[float]:
    """The columns of _ABSENT, from the chances of the absent names, likeliest first."""
    first = chances[:3] + [0.0] * (3 - len(chances))
    return [*first, sum(chances[:TOP_ABSENT])]


def _clipped_log_odds(p: float) -> float:
    held = min(max(p, MIN_PROBABILITY), 1 - MIN_PROBABILITY)
    return math.log(held / (1 - held))
