"""The features of the gate, in one table: level, family, name, meaning. To add one, start here.

Three small submodels describe the parts: which hits are evidence (level "hit"), which absent names
are missing evidence ("absent"), what the question asks for ("question"). Their outputs and the
figures of the whole set ("set") are the columns of the gate's model ("gate"). All features are
scale-free and come from the question and its hits alone. `suffice.gate.extraction` computes the
levels "hit", "absent" and "set", in the order of this table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Feature(NamedTuple):
    family: str
    name: str
    meaning: str
    level: str = "gate"


def _rows(level: str, table: str) -> tuple[Feature, ...]:
    """Parse one feature per line: family, name, meaning."""
    rows = (line.split(maxsplit=2) for line in table.strip().splitlines())
    return tuple(Feature(family, name, meaning, level) for family, name, meaning in rows)


_HIT = _rows("hit", """
scores    rank             Place among the hits, from 0 (first) to 1 (last).
scores    score            Score as a share of the best one; -1 where unknown or negative.
coverage  named            The question names its title.
coverage  title_share      Share of its title's words, by rarity, that stand in the question.
query     title_words      How many words its title has, up to 8.
query     title_rare       Rarity of the rarest word of its title.
coverage  covered          Share of the question's words, by rarity, that it holds.
coverage  only_here        Share of the question's words that it alone holds.
coverage  gain             Words it adds, if among the four hits that cover most together.
coverage  residual         Share held of the words that stand in no named title.
coverage  relation         Share held of the words that relate rather than name.
coverage  fills            Share held of the relating words that no source holds; -1 without any.
coverage  names            How many of the question's names it mentions.
coverage  title_names      How many of the question's names are its title, a part of it, or hold it.
coverage  numbers          Share of the question's numbers that it holds; -1 without numbers.
links     linked_by_named  A named hit mentions its title.
links     linked_by_any    How many hits mention its title, up to 5.
links     links_out        How many other hits' titles it mentions, up to 5.
links     near             A source mentions its title next to a word the question asks about.
links     near_agent       The same, next to a word like 'director' or 'mother'.
links     closeness        How near such a mention is to a word asked about, from 0 to 1.
links     shares_named     Names outside the question shared with named hits, up to 4.
links     shares_any       Names outside the question shared with other hits, up to 6.
overlap   same_title       How many other hits have the same title.
overlap   has_text         It has a text.
""")  # fmt: skip
_ABSENT_NAME = _rows("absent", """
absent    from_source      It stands in a source's text, not only in the question.
absent    closeness        How near it stands to a word the question asks about, from 0 to 1.
absent    agent_closeness  How near it stands to a word like 'director' or 'mother', from 0 to 1.
absent    after_agent      It follows such a word closely.
absent    mentions         How many hits mention it.
absent    words            How many words it has, up to 6.
absent    rare             Rarity of its rarest word.
absent    place            How far into the text it stands, in units of 400 bytes, up to 3.
absent    source_covered   Share of the question's words that its source holds.
absent    asked            It stands in the question.
absent    source_rank      Place of its source among the hits, from 0 to 1.
absent    source_resolved  Its source already leads to another hit.
absent    lacks            Share of the question's relating words that no source holds.
absent    rivals           How many absent names there are beside it.
absent    digits           It has a number in it.
absent    agents           How many words like 'director' or 'mother' the question has.
""")  # fmt: skip
_SET = _rows("set", """
query     k                How many hits there are.
query     content          How many content words the question has.
query     names            How many names the question has.
query     numbers          How many numbers the question has.
query     rarity           How rare its words are on average.
coverage  named            How many hits have a title that the question names.
coverage  names_no_title   Share of the question's names that no title carries.
coverage  names_no_text    Share of the question's names that no hit mentions.
coverage  cov_any          Share of the question's words, by rarity, that some hit holds.
coverage  cov_titles       The same for titles.
coverage  cov_sources      The same for the sources: the named hits, or the one that covers most.
links     cov_linked       The same for the sources and the hits that named hits point to.
coverage  cov_named        Share of the question's words that stand in a named title.
coverage  greedy1          What the best hit covers.
coverage  greedy2          What the next best adds.
coverage  greedy3          What the third best adds.
coverage  greedy4          What the fourth best adds.
coverage  rarest_missing   Rarity of the rarest word that no hit holds.
coverage  missing_words    Share of words that no hit holds.
coverage  single_holder    Share of words that exactly one hit holds.
links     links            How often a hit mentions another hit's title, up to 20.
links     bridged          How many hits a named hit points to.
links     bridged_near     The same, next to a word the question asks about.
links     bridged_agent    The same, next to a word like 'director' or 'mother'.
query     loose            How many words relate rather than name.
query     agents           How many of them name someone by a role.
scores    s2               Second score as a share of the first.
scores    s3               Third score, likewise.
scores    s4               Fourth score, likewise.
scores    s5               Fifth score, likewise.
scores    s10              Tenth score, likewise.
scores    s_mean           Mean score, likewise.
scores    s_std            Spread of the scores, likewise.
overlap   distinct_titles  Share of hits with a title of their own.
links     resolved         Sources whose relation leads to another hit.
links     dangling         Sources whose relation leads to a name that no hit carries.
links     terminal         Sources that lead nowhere.
coverage  lacks            Share of relating words that no source holds.
links     lacks_linked     The same, after following links.
coverage  numbers_missing  Numbers of the question that no hit holds; -1 without numbers.
""")  # fmt: skip
_COUNT = "Log of 1 + how many: {}."
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
    "roles": "roles, except those that are asked for",
    "least": "documents that its form needs at least",
    "likely": "documents that its form likely needs",
}
_PATH = _rows("gate", """
path      p1               Log-odds that the hit likeliest at place 1 is evidence.
path      p2               Log-odds that the hit likeliest at place 2 is evidence.
path      p3               Log-odds that the hit likeliest at place 3 is evidence.
path      p4               Log-odds that the hit likeliest at place 4 is evidence.
path      p5               Log-odds that the hit likeliest at place 5 is evidence.
path      held             Expected number of evidence documents among the hits.
path      weakest          Log-odds of the weakest hit among as many as the question needs.
path      short            Expected evidence held, less what the question needs.
path      weakest_least    Log-odds of the weakest hit among as many as its form needs at least.
path      weakest_likely   The same among as many as its form likely needs.
path      short_least      Expected evidence held, less what its form needs at least; 1 at most.
path      short_likely     The same for what its form likely needs.
path      pair             Chance that the two likeliest hits are both evidence.
path      triple           Chance that the three likeliest are.
path      sure             How many hits are more likely evidence than not.
absent    absent1          Chance that the likeliest absent name is missing evidence.
absent    absent2          The second, likewise.
absent    absent3          The third.
absent    absent           Expected missing evidence among absent names.
""")  # fmt: skip
LOCAL_FEATURE = Feature("own", "own", "Log-odds by a model of the labels it was adapted to, alone.")
# Used only by gates with a reader.
READING_HIT = _rows("hit", """
reading   read_needed      The reader's log-odds that it is needed.
reading   read_behind      How far that is behind the hit needed most.
reading   read_place       Its place by that, from 0 (needed most) to 1.
reading   read_relevance   How relevant it is to the question by itself, by the reader.
reading   read_close       How far that is behind the most relevant hit.
""")  # fmt: skip
READING = _rows("gate", """
reading   read_complete    The reader's log-odds that the hits are complete.
reading   read1            The reader's log-odds of the hit needed most.
reading   read2            The second, likewise.
reading   read3            The third.
reading   read4            The fourth.
reading   read_held        Expected number of needed documents among the hits, by the reader.
reading   read_count       Documents that the question needs, by the reader.
reading   read_nothing     Chance, by the reader, that nothing answers the question.
reading   read_short       Needed documents held, less those that the question needs.
reading   read_weakest     Log-odds of the weakest hit among as many as the question needs.
reading   relevant1        Relevance of the most relevant hit, by the reader.
reading   relevant2        The second, likewise.
reading   relevant3        The third.
reading   relevant4        The fourth.
reading   relevant_last    Relevance of the last hit among as many as the question needs.
""")  # fmt: skip
COUNTING = _rows("gate", """
counting  fast_odds        Log-odds of the fast gate, which counts words, names and links.
""")  # fmt: skip
HIT_COLUMNS, ABSENT_COLUMNS, SET_COLUMNS, PATH_COLUMNS = (
    tuple(one.name for one in level) for level in (_HIT, _ABSENT_NAME, _SET, _PATH)
)
QUESTION_COLUMNS = tuple(_QUESTION)
# Hit features that are also compared with the other hits of the list: the best hit of a list should
# look the same on any corpus.
RELATIVE_HIT_COLUMNS = (
    "covered", "residual", "relation", "score", "title_share", "closeness", "linked_by_any",
    "shares_any", "names", "fills",
)  # fmt: skip
# Features with the same direction on every data set: towards a complete set (1) or away (-1).
STEADY_DIRECTIONS = {
    "weakest_least": 1, "weakest_likely": 1, "short_least": 1, "short_likely": 1, "p1": 1,
    "cov_any": 1, "cov_linked": 1, "resolved": 1, "dangling": -1, "loose": -1, "lacks_linked": -1,
    "names_no_text": -1, "rarest_missing": -1, "absent": -1, "read_complete": 1, "read1": 1,
    "read_nothing": -1, "read_short": 1, "read_weakest": 1, "relevant1": 1, "relevant_last": 1,
    "fast_odds": 1,
}  # fmt: skip


def _relative(suffix: str, meaning: str) -> Iterable[Feature]:
    families = {one.name: one.family for one in _HIT}
    for name in RELATIVE_HIT_COLUMNS:
        yield Feature(families[name], f"{name}_{suffix}", meaning.format(name), "among")


# The gate's columns before and after the guesses of its question model.
BEFORE_GUESSES = (*(one._replace(level="gate") for one in _SET), *_PATH)
BEHIND_GUESSES = tuple(
    Feature("query", f"q_{name}", _COUNT.format(_QUESTION[name])) for name in _QUESTION
)
GUESS = "The question model's guess of {!r}."


FEATURES: tuple[Feature, ...] = (
    *_HIT,
    *_relative("lead", "By how much '{}' is above that of the best other hit."),
    *_relative("place", "Share of the other hits with more of '{}'."),
    *_ABSENT_NAME,
    *_SET,
    *(Feature("query", name, _COUNT.format(what), "question") for name, what in _QUESTION.items()),
    *BEFORE_GUESSES,
    *(Feature("hops", f"guess_{one}", GUESS.format(one)) for one in ("hops", "held", "complete")),
    *BEHIND_GUESSES,
)
