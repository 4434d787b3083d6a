"""Chain questions from templates: a path of facts as one sentence that asks for its end.

"Who is the father of the director of film La Yuma?" "Who leads the team that owns the billing
service?" The words for each relation come from `relations.toml` or from the text itself
(`relation_words`); the seed chooses among them. A name that several pages share is written like its
title, with the parenthesis.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from suffice.datasets.gold import draw_key
from suffice.text import tokens
from suffice_grade.claims import PageIndex
from suffice_grade.clarity import is_clear
from suffice_grade.open_relations import is_event, is_functional
from suffice_grade.relation_words import type_noun, with_article, words_of
from suffice_grade.relations import Relation, get_relation
from suffice_grade.stage_protocols import Claim, GeneratedQuestion, ReasoningPath, Triple
from suffice_grade.vocabulary import COUNTRIES, base_title

# Two steps that have a common name; people usually use it.
_KIN: dict[tuple[str, str], str] = {
    ("father", "father"): "paternal grandfather",
    ("father", "mother"): "paternal grandmother",
    ("mother", "father"): "maternal grandfather",
    ("mother", "mother"): "maternal grandmother",
}
_KIN |= {
    (spouse, parent): f"{parent}-in-law"
    for spouse in ("husband", "wife", "spouse")
    for parent in ("father", "mother")
}
MAX_NAME_WORDS = 5  # a longer title may be a headline
_MANUAL_PAGE = re.compile(r"(?P<name>[\w.+:-]+)\((?P<section>\d)\w*\)")
_WORKS = frozenset(("film", "song", "album", "series", "game", "play"))


class Wording:
    """How names and relations are worded in a question; deterministic for a seed."""

    def __init__(self, pages: PageIndex, *, seed: int = 42) -> None:
        self.pages, self.seed = pages, seed

    def pick(self, ways: Sequence[str], about: str) -> str:
        """One of the wordings, chosen by the seed and the subject of the question."""
        return ways[int.from_bytes(draw_key(self.seed, about)[:4], "big") % len(ways)]

    def name(self, title: str, *, kind_word: bool = True) -> str:
        """A page's name as a question writes it; works get their noun."""
        page = self.pages.by_title.get(title)
        if (manual := _MANUAL_PAGE.fullmatch(title)) is not None:
            command = kind_word and manual["section"] == "1"
            return f"the command {manual['name']}" if command else title
        if re.match(r"The [a-z]", title) and len(title.split()) <= MAX_NAME_WORDS:
            return f"the{title[3:]}"
        if page is None:
            return with_article(base_title(title), self.pages.terms)
        unique = page.kind not in _WORKS and self.pages.find(base_title(title)) is not None
        shown = base_title(title) if unique else title
        noun = page.noun if page.kind == "book" else page.kind if page.kind in _WORKS else ""
        add = kind_word and noun and noun not in tokens(shown)
        if noun:
            return f"{noun} {shown}" if add else shown
        return with_article(shown, self.pages.terms, titled=True)

    def noun(self, title: str, kind: str = "") -> str:
        """A noun for what a name stands for; "" if unknown."""
        return type_noun(title, kind, self.pages)

    def words(self, triple: Triple) -> Relation:
        return words_of(triple, self.pages)

    def can_phrase(self, triples: Sequence[Triple]) -> bool:
        """Whether there are words for these facts inside a longer question."""
        return not triples or bool(self.phrase(triples, triples[0].subject))

    def phrase(self, triples: Sequence[Triple], start: str) -> str:
        """The facts as a phrase: "the father of the director of film X"; "" without words."""
        phrase = self.name(start)
        rest = list(triples)
        while rest:
            if kin := self.kin(rest[:2], start):
                phrase, rest = f"the {kin} of {phrase}", rest[2:]
                continue
            triple = rest.pop(0)
            if triple.relation == "located in" and triple.subject in COUNTRIES:
                return ""  # "the area where Hungary is located"
            words = self.words(triple)
            ways = words.of
            # "the husband of X's mother" can be misread as the mother of a husband.
            plain = len(triples) == 1 and phrase in (start, base_title(start))
            fitting = [way for way in ways if plain or not way.startswith("X's")]
            if is_nested(phrase):
                # "the office that the team that owns it is in": nest only wordings ending in X.
                fitting = [way for way in fitting if way.endswith("X")]
                ways = words.nested
            elif has_clause(phrase):  # not "where the birthplace of the artist who ... is located"
                fitting = (
                    [way for way in fitting if way.endswith("X")] or [*words.nested] or fitting
                )
            if not fitting and not ways:
                return ""
            way = self.pick(fitting or ways, f"of {triple.relation} {start}")
            phrase = way.replace("X", phrase, 1)
        return phrase

    def kin(self, triples: Sequence[Triple], start: str) -> str:
        """The common name of two steps ("paternal grandfather"), for two of three questions."""
        known = _KIN.get(tuple(one.relation for one in triples), "")  # type: ignore[arg-type]
        return self.pick((known, known, ""), f"kin {start}") if known else ""

    def ask(self, triple: Triple, phrase: str) -> str:
        """The question for the object of a fact; "" without words."""
        ways = self.words(triple).ask
        if phrase.startswith("the "):
            ways = tuple(way for way in ways if "X's" not in way) or ways
        if is_nested(phrase):
            ways = tuple(way for way in ways if way.endswith("X?")) or ways
        last = phrase.split()[-1:]
        # Avoids "Where is the state where X is located located?"
        ways = tuple(way for way in ways if way.rpartition("X")[2].strip(" ?").split()[:1] != last)
        if not ways or not phrase:
            return ""
        way = self.pick(ways, f"ask {triple.relation} {phrase}")
        if '"X"' in way and not is_nested(phrase):  # a title in quotation marks has no article
            phrase = base_title(triple.subject)
        way = way.replace("X's", "X'") if phrase.endswith("s") else way
        return way.replace("X", phrase, 1)


def is_nested(phrase: str) -> bool:
    """Whether a phrase contains a relative clause: "the team that owns X"."""
    return re.match(r"the (?:[\w-]+ ){1,3}(?:that|who|whose|where) ", phrase) is not None


def has_clause(phrase: str) -> bool:
    """Whether a phrase ends in a relative clause: "the birthplace of the artist who recorded X"."""
    return re.match(r"the (?:[a-z-]+ )+?(?:that|who|whose|where) ", phrase) is not None


class RuleQuestions:
    """Chain questions by templates."""

    def __init__(self, wording: Wording) -> None:
        self.wording = wording

    def write(
        self, paths: Sequence[ReasoningPath], claims: Sequence[Sequence[Claim]] = ()
    ) -> list[GeneratedQuestion | None]:
        return [self._write(path) for path in paths]

    def can_write(self, path: ReasoningPath) -> bool:
        return self._write(path) is not None

    def _write(self, path: ReasoningPath) -> GeneratedQuestion | None:
        *inner, last = path.triples
        # "What did the country that X lies in win?" has more answers than the corpus states.
        if last.phrase and not is_functional(last.relation, last.object_kind):
            return None
        # "What happened to the occupation of the place where X died?"
        if is_event(last.relation, last.phrase, last.object):
            return None
        if last.relation == "profession" and inner and _tells_profession(inner[-1].relation):
            return None
        if not all(is_clear(one, self.wording.pages) for one in path.triples if one.phrase):
            return None
        start = path.triples[0].subject
        text = self.wording.ask(last, self.wording.phrase(inner, start))
        if inner and (kin := self.wording.kin((inner[-1], last), start)):
            before = self.wording.phrase(inner[:-1], start)
            text = f"Who is the {kin} of {before}?" if before else ""
        # No text: a relation that the rules cannot put into a question, or not inside one.
        return chain_question(text, path) if text else None


def _tells_profession(relation: str) -> bool:
    """Whether the relation implies a profession: the director of a film is a director."""
    return bool(get_relation(relation).trades) or relation.endswith(" by")


def chain_question(text: str, path: ReasoningPath) -> GeneratedQuestion:
    """A question that asks for the end of a path."""
    return make_question(text, base_title(path.ends[1]), "chain", (path,))


def make_question(
    text: str, answer: str, kind: str, paths: tuple[ReasoningPath, ...]
) -> GeneratedQuestion:
    """A question over these paths. Its id is derived from its text, so it is stable across runs."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    facts = [triple for path in paths for triple in path.triples]
    doc_ids = tuple(dict.fromkeys(triple.doc_id for triple in facts))
    return GeneratedQuestion(f"made-{digest}", text, answer, kind, len(facts), paths, doc_ids)
