"""English word lists that several parts of suffice use."""

from __future__ import annotations

# The list that Lucene and bm25s share: short enough that no content word is lost.
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then"
    " there these they this to was will with".split()
)
# Capitalized words that open a question or a sentence but are not names.
SENTENCE_OPENERS = frozenset(
    "a after also although am an and are as at based because before besides between both but by"
    " can considering could did do does during each either for from given had has have he her his"
    " how however i if in into is it its like many more most much my name no nor not of on one or"
    " other our out regarding she should since so some such than that the their them then there"
    " these they this those though through to under until upon was we were what when where whether"
    " which while who whom whose why will with within without would yes you your".split()
)
FUNCTION_WORDS = STOP_WORDS | SENTENCE_OPENERS  # never names, wherever they occur
PREPOSITIONS = frozenset("of in at for to by from on with".split())
AUXILIARIES = frozenset("is was were are did does do has have had".split())
# Not from `calendar`, which depends on the locale.
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
# Function words of other languages that are neither English words nor names.
OTHER_FUNCTION_WORDS = frozenset(
    "und ist nicht eine einen einem einer für auf sich wird wann welche welcher welches warum wurde"
    " wurden zum zur auch oder nach über sind haben ich wir"  # German
    " avec sont été quel quelle quels quelles où quand pourquoi combien cette nous vous était"
    " qué quién quiénes cuál cuáles cuándo dónde cómo está están más pero muy también"  # Spanish
    " perché sono nella degli delle più è quale quali anche questo questa"  # Italian
    " não são quais quem onde pelo pela também você à às"  # Portuguese
    " het niet zijn wordt werd voor naar waar welke waarom heeft deze hij zij"  # Dutch
    " och är att inte ett för på från vad vem när blev og ikke hvad hvem hvor når jeg"  # Nordic
    " jest się że który która które czy przez kto gdzie kiedy był była"  # Polish
    " için nerede nasıl değil olarak çok și în sunt când"  # Turkish, Romanian
    " kdo kde kdy který která jsou není byl és hogy mikor"  # Czech, Hungarian
    " että mikä kuka missä milloin ovat myös"  # Finnish
    " yang dengan untuk tidak adalah siapa kapan"  # Indonesian
    " là của và có được không những các trong người gì ở một".split()  # Vietnamese
)
# Function words of other languages that are also names or English words.
OTHER_PARTICLES = frozenset(
    "de la le les el los las del di da der den die van von du des dem das et en y e il que qui une"
    " un una uma um ein o al con por per para es est pour su se na em ne mit dei os dos como mais"
    " che gli alla elle este zu wer wo sie er af det een uit ook bij dans fue foi ve nie".split()
)
