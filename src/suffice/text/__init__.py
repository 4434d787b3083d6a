"""Words, names and dates of a text, by rules: no model, no corpus.

words    tokens, stems, words without accents, sentences
names    capitalised names, the keys of titles
dates    dates that a text mentions, and the days that a question asks about
"""

from suffice.text.dates import (
    DateMention,
    DateRange,
    QuestionDates,
    date_mentions,
    parse_day,
    question_dates,
    relative_dates,
    written_day,
)
from suffice.text.names import bare_title, described_names, names, title_key
from suffice.text.words import (
    CJK,
    jaccard,
    sentences,
    stem,
    title_word_spans,
    title_words,
    tokens,
    without_accents,
)

__all__ = [
    "CJK",
    "DateMention",
    "DateRange",
    "QuestionDates",
    "bare_title",
    "date_mentions",
    "described_names",
    "jaccard",
    "names",
    "parse_day",
    "question_dates",
    "relative_dates",
    "sentences",
    "stem",
    "title_key",
    "title_word_spans",
    "title_words",
    "tokens",
    "without_accents",
    "written_day",
]
