"""English word lists that more than one part of suffice reads by."""

from __future__ import annotations

# The list that Lucene and bm25s share: short enough that no content word is lost.
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then"
    " there these they this to was will with".split()
)
# Words that open a question or a sentence with a capital letter and name nothing.
SENTENCE_OPENERS = frozenset(
    "a after also although am an and are as at based because before besides between both but by"
    " can considering could did do does during each either for from given had has have he her his"
    " how however i if in into is it its like many more most much my name no nor not of on one or"
    " other our out regarding she should since so some such than that the their them then there"
    " these they this those though through to under until upon was we were what when where whether"
    " which while who whom whose why will with within without would yes you your".split()
)
FUNCTION_WORDS = STOP_WORDS | SENTENCE_OPENERS  # they name nothing, wherever they stand
PREPOSITIONS = frozenset("of in at for to by from on with".split())
AUXILIARIES = frozenset("is was were are did does do has have had".split())
# Not from `calendar`, which follows the locale.
MONTHS = (
    "January February March April May June July August September October November December".split()
)
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
} | {"twenty": 20}
