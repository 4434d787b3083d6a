"""Who did what to whom: whether a sentence contradicts an answer extracted from it.

    Who taught Augustus De Morgan?    Ada Lovelace was taught by Augustus De Morgan.

The words match, the roles do not. The question is a clause with a gap: somebody, the agent, taught
De Morgan, the other. In the sentence the same verb is passive, so De Morgan, after "by", is the
agent. The answer "Ada Lovelace" is contradicted.

`clauses` tests each clause that has the question's verb:

- It *may hold* if no word is in a place that excludes its role. If no clause may hold, the answer
  is contradicted.
- It *holds* if every word is in a place that proves its role. If a clause holds and the answer
  fills the gap, the answer is stated.

Otherwise nothing is known, for example because the sentence has another verb. An answer is also
contradicted if the sentence denies what is asked: "has never visited Lisbon" does not give the date
of a visit. Comparisons ("older than"), possession ("the teacher of") and life dates have patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import dropwhile, pairwise

from suffice.answering.answer_type import VOCABULARY
from suffice.answering.clauses import (
    BE,
    CLAUSE_VERBS,
    CONJUNCTIONS,
    DETERMINERS,
    MODALS,
    SYMMETRIC,
    UNCHANGED,
    Clause,
    QuestionClause,
    argument_keys,
    find_clauses,
    has_all_words,
    holds,
    is_given_to,
    is_name,
    is_past,
    lacks_subject,
    lower_words,
    may_hold,
    names_action,
    other_words,
    parse_question,
    parse_yes_no_question,
    places,
    split_words,
    states,
    verb_key,
)
from suffice.answering.converses import (
    as_converse,
    as_opposite,
    converse_nouns,
    opposite_comparatives,
)

MAX_CHARS = 4000  # of question and sentence together: bounds the time that hostile input can take
_LIMITED = frozenset("only few some most half partly almost nearly".split())


class Agreement(Enum):
    """Whether a sentence says about the question's names what the extracted answer says."""

    STATED = "stated"
    UNKNOWN = "unknown"
    CONTRADICTED = "contradicted"


def agreement(question: str, sentence: str, answer: str) -> Agreement:
    """Compare the roles in question and sentence.

    Contradicted: the names have other roles, or the sentence denies what is asked. Stated: all
    names are around the question's verb in the right roles.
    """
    if _is_too_long(question, sentence):
        return Agreement.UNKNOWN
    question, sentence = _mark_titles(question, sentence)
    if _is_swapped(question, sentence) or _denies_asked(question, answer):
        return Agreement.CONTRADICTED
    judges = (_judge_possession, _judge_comparison, _judge_life_dates, _judge_clauses)
    found = (judge(question, sentence, answer) for judge in judges)
    return next((one for one in found if one is not Agreement.UNKNOWN), Agreement.UNKNOWN)


def may_state(question: str, sentence: str) -> bool:
    """Whether a sentence has the question's verb and all its names and so may state an answer.

    `agreement` then tells for a given answer.
    """
    if _is_too_long(question, sentence):
        return False
    question, sentence = _mark_titles(question, sentence)
    words = lower_words(_spell_out_negation(question, sentence))
    asked = _asked_of(question, words)
    if asked is None or not asked.arguments:
        return False
    named = all(places(one.words, words, whole=True) for one in asked.arguments)
    return named and bool(find_clauses(asked.verb, words))


def title_agrees(question: str, title: str, sentence: str) -> bool:
    """Whether a sentence that opens with the question's verb, as in manuals, says it of its title:
    "compare two sorted files", under the title "comm".
    """
    if _is_too_long(question, title + sentence):
        return False
    words = lower_words(sentence)
    asked = parse_question(question, words)
    if asked is None or not words or verb_key(words[0]) != asked.verb:
        return False
    said = f"{title} {sentence[0].lower()}{sentence[1:]}"
    return agreement(question, said, title) is Agreement.STATED


def polarity(question: str, sentence: str) -> bool | None:
    """Whether a sentence says yes or no to a question; None if the rules cannot analyse it."""
    if _is_too_long(question, sentence) or _is_question(sentence):
        return None
    question, sentence = _mark_titles(question, sentence)
    cased = split_words(_spell_out_negation(question, sentence))
    words = [one.casefold() for one in cased]
    asked = parse_yes_no_question(question, words)
    asked = asked or as_converse(parse_yes_no_question, question, words)
    if asked is not None:
        return _said(asked, cased)
    opposed = as_opposite(parse_yes_no_question, question, words)
    return False if opposed is not None and _said(opposed, cased) else None


def _is_too_long(question: str, sentence: str) -> bool:
    return len(question) + len(sentence) > MAX_CHARS


def _is_question(sentence: str) -> bool:
    return sentence.rstrip(" \"'”’)]").endswith("?")


# --- the clauses with the question's verb


def _judge_clauses(question: str, sentence: str, answer: str) -> Agreement:
    """Check who does what to whom, around the question's verb."""
    sentence = _spell_out_negation(question, sentence)
    words = lower_words(sentence)
    asked, said = _asked_of(question, words), _answer_words(answer)
    opposed = as_opposite(parse_question, question, words)
    if opposed and any(states(opposed, one, said) for one in find_clauses(opposed.verb, words)):
        return Agreement.CONTRADICTED
    if asked is None:
        return Agreement.UNKNOWN
    clauses = find_clauses(asked.verb, words)
    possible = any(may_hold(asked, one, said) for one in clauses)
    if not clauses:
        possible = not is_given_to(asked, words, said)
    swapped = not possible and asked.verb not in SYMMETRIC
    if swapped or _is_denied(asked, question, sentence, answer):
        return Agreement.CONTRADICTED
    own = (one for one in _CLAUSE_END.split(sentence) if answer in one)
    if _is_question(sentence) or any(_denies(one, asked.verb) for one in own):
        return Agreement.UNKNOWN
    stated = any(states(asked, one, said) for one in clauses)
    return Agreement.STATED if stated else Agreement.UNKNOWN


def _asked_of(question: str, words: Sequence[str]) -> QuestionClause | None:
    """The question as a clause with a verb of the sentence, its own or a converse of it."""
    turned = as_converse(parse_question, question, words)
    return parse_question(question, words) if turned is None else turned


def _answer_words(answer: str) -> tuple[str, ...]:
    opening = DETERMINERS | {"by"}
    return tuple(dropwhile(lambda one: one.casefold() in opening, split_words(answer)))


# --- yes or no


def _said(asked: QuestionClause, cased: Sequence[str]) -> bool | None:
    """What the clauses with the question's verb say, if they agree."""
    clauses = find_clauses(asked.verb, [one.casefold() for one in cased])
    answers = {_affirms(asked, one, cased) for one in clauses} - {None}
    return answers.pop() if len(answers) == 1 else None


def _affirms(asked: QuestionClause, clause: Clause, cased: Sequence[str]) -> bool | None:
    """Whether a clause with every word of the question affirms or denies it."""
    if not (may_hold(asked, clause) and holds(asked, clause)):
        return None
    if not has_all_words(asked, clause, cased):
        return None
    keys, verb = asked.keys, clause.verb
    # A word of the question does not negate it: "Did the general refuse ...?"
    tokens = ["" if verb_key(one) in keys and _NEGATION.search(one) else one for one in cased]
    denied = _is_verb_denied(tokens[clause.start : verb])
    if denied is False:
        denied = _is_rest_denied(tokens[verb + 1 : clause.end], keys)
    if denied is not False:
        return False if denied else None
    word = clause.words[verb]
    past = not clause.passive and is_past(word) and word not in UNCHANGED
    limited = (MODALS | _LIMITED) & (other_words(asked, clause) - {asked.auxiliary})
    vague = limited or (past and asked.auxiliary in MODALS) or clause.words[verb - 1] == "to"
    return None if vague else True


def _is_verb_denied(before: Sequence[str]) -> bool | None:
    """Whether the words before a verb negate it.

    None if they negate something else: "Ann, who never smiles, visited", "Ann denied that she
    visited".
    """
    *others, near = re.split(r" , | that ", " ".join(before))
    if _NEGATION.search(near):
        return True
    return None if any(map(_NEGATION.search, others)) else False


def _is_rest_denied(after: Sequence[str], asked: set[str]) -> bool | None:
    """Whether the words after a verb negate what is asked: "lentils and no meat".

    None if they negate something else: "in the yard, not in the kitchen", "dogs are allowed, cats
    are not".
    """
    for part in " ".join(after).split(","):
        if found := _NEGATION.search(part):
            behind = split_words(part[found.end() :])
            there = behind if any(map(str.isalnum, behind)) else split_words(part[: found.start()])
            return True if asked.intersection(map(verb_key, there)) else None
    return False


# --- negation

_ANSWER = "ANSWER"  # placeholder, so that a negation inside the answer does not count
_LIMIT = r"(?!(?: \w+){0,3}? (?:more|less|fewer|\w+er) than\b| exceed\b)"  # "not longer than"
_NEGATION = re.compile(  # lower case, or at the start of a clause: "Never" may be part of a name
    rf"\b(?:(?:not|no(?! matter| doubt)){_LIMIT}|never|nobody|none|neither|nor|without|cannot)\b"
    r"|n['’]t\b"
    rf"|^\W*(?:(?:Not|No){_LIMIT}|Never|Nobody|None|Neither)\b"
    rf"|\b(?:{VOCABULARY['roles_of_verbs']['denials']})\b"
)
_CLAUSE_END = re.compile(
    rf"[;.!?]\s+|,?\s+(?:{'|'.join(CONJUNCTIONS)})\b"
    rf"|,\s+(?:and|so)\s+(?={_ANSWER})|,\s+(?=not\b)"
    r"|,\s+(?:and\s+|so\s+)?(?=(?:he|she|it|they|we|you|I|the|a|an|her|his|their|in|all)\b)"
    rf"|\s+and\s+(?=(?:will|can|does|did|has|is|was|may|must|\w+ed|{'|'.join(sorted(CLAUSE_VERBS))})\b)",
)
_FRONTED = re.compile(r"^(?:In|On|At|For|During|Before|After|Since|With|By)\b[^,;.]*,\s+")
_SHARES_SUBJECT = re.compile(r"\s*(?:he|she|it|they|we|you|I|both|all of them)\b", re.IGNORECASE)
_SUBSTITUTES = frozenset("one ones it them that so".split())
_CONTRACTED = re.compile(r"\b([a-z]+)(?:n['’]t|(?<=can)not)\b", re.IGNORECASE)
_FULL = {"ca": "can", "wo": "will", "sha": "shall"}
_NEGATIVE_PREFIX = re.compile(r"\b(?:un|non-?)(?P<rest>[a-z]{4,})\b", re.IGNORECASE)
_NEGATED = re.compile(
    r"\b(?:no|not|without)\s+(?:an?\s+|the\s+|any\s+)?(?P<what>\w+)", re.IGNORECASE
)


# In titles, every other word may have a capital: "No Country for Old Men".
_TITLE_NEGATION = re.compile(
    r"\b(?:No|Not|Never|Nobody|None|Neither|Without|Cannot|\w+n['’]t) [A-Z]\w*"
)


def _mark_titles(question: str, sentence: str) -> tuple[str, str]:
    """Both texts, where a negating word in a title that both name is no such word any more."""
    for title in {*_TITLE_NEGATION.findall(question)} & {*_TITLE_NEGATION.findall(sentence)}:
        marked = title.replace(" ", "_ ")
        question, sentence = question.replace(title, marked), sentence.replace(title, marked)
    return question, sentence


def _spell_out_negation(question: str, sentence: str) -> str:
    """Write "can't" as "can not"; "undelivered" as "not delivered" if the question has the verb."""
    asked = {verb_key(one) for one in split_words(question)}

    def spell_out(found: re.Match[str]) -> str:
        word = found["rest"]
        said = verb_key(word) in asked or any(names_action(word, one) for one in asked)
        return f"not {word}" if said and found.group().casefold() not in question else found.group()

    sentence = _CONTRACTED.sub(lambda one: f"{_FULL.get(one[1].lower(), one[1])} not", sentence)
    return _NEGATIVE_PREFIX.sub(spell_out, sentence)


def _denies_asked(question: str, answer: str) -> bool:
    """Whether an answer negates a word of the question: "lentils and no meat"."""
    denied = {one["what"].casefold() for one in _NEGATED.finditer(answer)}
    return not denied.isdisjoint(lower_words(question))


def _denies(clause: str, verb: str) -> bool:
    """Whether a clause negates something; not if the question itself asks for a denial."""
    found = (one.group() for one in _NEGATION.finditer(clause))
    return any(verb_key(one) != verb and not names_action(one, verb) for one in found)


def _is_denied(asked: QuestionClause, question: str, sentence: str, answer: str) -> bool:
    """Whether what the question presupposes occurs only in clauses that negate it."""
    if _NEGATION.search(question):
        return False
    # What is fronted applies to all clauses: "For sale items, ..."
    sentence = _FRONTED.sub("", sentence.replace(answer, _ANSWER))
    denied: list[str] = []
    stated: list[str] = []
    for clause in filter(str.strip, _CLAUSE_END.split(sentence)):
        (denied if _denies(clause, asked.verb) else stated).append(clause)
    denied_keys = _keys(denied)
    only_denied = denied_keys - _keys(stated)
    subject, rest = (only_denied & argument_keys(one) for one in (asked.subject, asked.rest))
    own = next((one for one in stated if _ANSWER in one), None)
    if own is None:
        return bool(subject | rest) and asked.verb in denied_keys
    words = lower_words(own)
    if not {"one", "ones"}.isdisjoint(words):  # "the meeting on Monday ..., the one on Friday ..."
        subject &= {verb_key(one) for one in split_words(question) if is_name(one)}
    kind = only_denied.intersection(map(verb_key, asked.kind))
    verb = next((at for at, one in enumerate(words) if verb_key(one) == asked.verb), len(words))
    substituted = not _SUBSTITUTES.isdisjoint(words[verb + 1 : verb + 3])
    if (kind or (rest and asked.gap.role is None)) and not substituted:
        return True
    return bool(subject) and not (_SHARES_SUBJECT.match(own) or lacks_subject(words))


def _keys(texts: Iterable[str]) -> set[str]:
    return {verb_key(word) for one in texts for word in split_words(one)}


# --- phrases without a verb of their own

_LED_NAME = re.compile(
    r"\b(?P<led>of|from|to|against|over|by|into|for|with|behind|before|after|above|below|under)\s+"
    r"(?:(?:the|a|an|his|her|their)\s+)?(?P<name>[^\W\d_a-z][\w'’&-]*(?:\s+[^\W\d_a-z][\w'’&-]*)*)"
)
_COMPARED = re.compile(
    r"(?:who|what|which)\b(?P<before>.*?)"
    r"\b(?:as (?P<as>\w+) as|(?P<than>\w+) than) (?P<other>[^?,]+)\W*$",
    re.IGNORECASE | re.DOTALL,
)
# "Who was the teacher of X?", "Who was X's teacher?", "Whose teacher was X?"
_OF_WHOM = re.compile(
    r"(?:who|what) (?:is|was|are|were) (?:the (?:[a-z]+ )*?(?P<noun>[a-z]+) of (?P<of>[^?]+)"
    r"|(?P<owner>[^?]+?)['’]s? (?:[a-z]+ )*?(?P<owned>[a-z]+))\W*$"
    r"|whose (?:[a-z]+ )*?(?P<held>[a-z]+) (?:is|was|are|were) (?P<holder>[^?]+?)\W*$",
    re.IGNORECASE,
)
_OF_ONE_SEX = frozenset(VOCABULARY["roles_of_verbs"]["of_one_sex"].split())
_LIFE = re.compile(r"when (?:was|did) (?P<who>[^?]+?) (?P<what>born|die)\W*$", re.IGNORECASE)


def _is_swapped(question: str, sentence: str) -> bool:
    """Whether two names have swapped their prepositions: "from A to B" and "from B to A"."""
    asked, said = map(_names_with_preposition, (question, sentence))
    return any(
        (one, led) not in said and {(one, other_led), (other, led)} <= {*said}
        for (one, led), (other, other_led) in pairwise(asked)
    )


def _names_with_preposition(text: str) -> list[tuple[str, str]]:
    found = _LED_NAME.finditer(text)
    return [(one["name"].casefold(), one["led"].casefold()) for one in found]


def _judge_comparison(question: str, sentence: str, answer: str) -> Agreement:
    """Check comparisons: who is older than whom, who is as heavy as whom."""
    asked = _COMPARED.match(question)
    if asked is None or _NEGATION.search(sentence):
        return Agreement.UNKNOWN
    word = asked["as"] or asked["than"]
    turned = opposite_comparatives(word) if asked["than"] else frozenset()
    words = "|".join(map(re.escape, (word, *turned)))
    said = re.search(rf"\b(?P<word>{words}) (?:as|than)\b", sentence, re.IGNORECASE)
    if said is None or not _has_verb(sentence, asked["before"]):
        return Agreement.UNKNOWN
    parts = [sentence[: said.start()], sentence[said.end() :]]
    if said["word"].casefold() in turned:
        parts.reverse()
    before, after = (set(lower_words(one)) for one in parts)
    other = set(lower_words(asked["other"])) - DETERMINERS
    found = {one.casefold() for one in _answer_words(answer)}
    if other <= after and found <= before:
        return Agreement.STATED
    crossed = found - other <= after and other - found <= before and not found <= before
    return Agreement.CONTRADICTED if crossed else Agreement.UNKNOWN


def _has_verb(sentence: str, before: str) -> bool:
    """Whether a sentence has the verb of a comparison, which any form of "be" is."""
    words, own = lower_words(before), set(map(verb_key, lower_words(sentence)))
    return any(one in BE or (is_past(one) and verb_key(one) in own) for one in words)


def _judge_possession(question: str, sentence: str, answer: str) -> Agreement:
    """Check whether "the teacher of X" is said about the right person."""
    asked = _OF_WHOM.match(question.strip())
    if asked is None:
        return Agreement.UNKNOWN
    noun = asked["noun"] or asked["owned"] or asked["held"]
    owner = asked["of"] or asked["owner"] or answer
    holder = asked["holder"] or answer
    found = _possession(noun, holder, owner, sentence)
    if found is not None:
        return found
    # "Bertha's pupil is Emma" says that the teacher of Emma is Bertha.
    for other in sorted(converse_nouns(noun)):
        found = _possession(other, owner, holder, sentence)
        if found is Agreement.STATED and noun.casefold() in _OF_ONE_SEX and holder is answer:
            return Agreement.UNKNOWN  # "the son of Bertha" does not say that she is the mother
        if found is not None:
            return found
    return Agreement.UNKNOWN


def _possession(noun: str, holder: str, owner: str, sentence: str) -> Agreement | None:
    """Whether a sentence says that the holder is the owner's "teacher"; None without this noun."""
    said = re.search(
        rf"\b{noun} of (?:the )?(?P<of>[^,;.]+)|(?P<own>[^,;.]+?)['’]s? (?:[a-z]+ )?{noun}\b",
        sentence,
        re.IGNORECASE,
    )
    if said is None:
        return None
    of_whom, asked_of, other = map(
        set, map(lower_words, (said["of"] or said["own"], owner, holder))
    )
    if other <= of_whom and not asked_of & of_whom and holder[:1].isupper():
        return Agreement.CONTRADICTED
    one, two = re.escape(holder), rf"(?:the |a |an )?(?:[a-z]+ ){{0,2}}{re.escape(owner)}"
    be = r"(?:,|,? (?:is|was|are|were))?"
    stated = (  # "Rurik, the nephew of Anselm", "Anselm's nephew was Rurik"
        rf"{one}{be} (?:the |a |an )?(?:\w+ )?{noun} of {two}"
        rf"|\b{noun} of {two}{be} {one}|{two}['’]s? (?:\w+ )?{noun}{be} {one}"
        rf"|{one}{be} {two}['’]s? (?:\w+ )?{noun}"
    )
    plain = not _NEGATION.search(sentence) and re.search(stated, sentence)
    return Agreement.STATED if plain else Agreement.UNKNOWN


def _judge_life_dates(question: str, sentence: str, answer: str) -> Agreement:
    """Check life dates: in "Ada (1815 – 1852)" the first is the birth, the second the death."""
    asked = _LIFE.match(question.strip())
    if asked is None:
        return Agreement.UNKNOWN
    who = re.escape(asked["who"])
    dates = re.search(rf"{who} \(([^()–—]*\d{{3}}[^()–—]*)[–—]([^()]*)\)", sentence)
    if dates is None:
        return Agreement.UNKNOWN
    own, other = dates.groups() if asked["what"] == "born" else dates.groups()[::-1]
    if answer in own:
        return Agreement.STATED
    return Agreement.CONTRADICTED if answer in other else Agreement.UNKNOWN
