"""The stages of grade by a language model, each behind the seam that rules fill by default.

The model proposes, the text decides: a claim must say what its sentence says, the ends of a triple must stand in its claim, a
group may only hold names that were given, a question must not name what it asks for, nor what lies in between. Whatever fails
is left out. Where the model has no answer that can be read, `rules` do the item if the asker falls back, and nobody otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from suffice.errors import InputError, nearest
from suffice.grade.asking import Asker, Prompt
from suffice.grade.claims import consistent, factual, mended
from suffice.grade.pipeline import Stages
from suffice.grade.ports import (
    Claim,
    ClaimMaker,
    Equivalence,
    EquivalenceFinder,
    Judge,
    Judgement,
    Made,
    Path,
    QuestionWriter,
    Triple,
    TripleReader,
)
from suffice.grade.questions import question_id_of
from suffice.grade.relations import RELATIONS
from suffice.grade.triples import Titles
from suffice.grade.vocabulary import bare
from suffice.reason.prompting import inline
from suffice.text import sentences, title_key, tokens
from suffice.types import Document

__all__ = [
    "ModelClaims",
    "ModelEquivalences",
    "ModelJudge",
    "ModelQuestions",
    "ModelTriples",
    "stages_by",
]

MOST_SENTENCES = 20  # of a document: what follows is seldom about its subject
AT_ONCE = 10  # claims in one request for triples, as in the paper
MOST_NAMES = 40  # of a cluster in one request
MOST_ITEMS = 24  # in one list of an answer: a small model without an end would never close the bracket


def _object(**fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _list(items: Mapping[str, Any], *, most: int = MOST_ITEMS, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": most, "minItems": least}


_TEXT = {"type": "string", "maxLength": 400}
_NAME = {"type": "string", "maxLength": 120}
_YES = {"type": "boolean"}
_NUMBER = {"type": "integer", "minimum": 1}


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{at}. {' '.join(inline(text).split())}" for at, text in enumerate(texts, 1))


# ------------------------------------------------------------------------------------------------------ claims


class ModelClaims:
    """Claims by a model: each is checked against its sentence, by words where that settles it, else by asking again."""

    CLAIM = _object(sentence=_NUMBER, claim=_TEXT)
    PROMPT = Prompt("claims", _object(claims=_list(CLAIM, most=MOST_SENTENCES)))
    CHECK = Prompt("consistency", _object(consistent=_list(_YES)))

    def __init__(self, asker: Asker, *, rules: ClaimMaker | None = None) -> None:
        self.asker, self.rules = asker, rules
        self.signature = f"{asker.signature} {self.PROMPT.signature} {self.CHECK.signature}"

    def claims(self, documents: Sequence[Document]) -> list[tuple[Claim, ...]]:
        return [tuple(self._of(document)) for document in self.asker.over("claims by the model", documents)]

    def _of(self, document: Document) -> Sequence[Claim]:
        numbered = [(at, one) for at, one in enumerate(sentences(mended(document.text))[:MOST_SENTENCES]) if factual(one)]
        if not numbered:
            return ()
        texts = [text for _, text in numbered]
        prompt = self.PROMPT.filled(title=inline(document.title or "(none)"), sentences=_numbered(texts))
        # No more claims than sentences: a small model would go on until its words are spent, and its JSON would have no end.
        asked = replace(self.PROMPT, schema=_object(claims=_list(self.CLAIM, most=len(texts))))
        found = self.asker.ask(asked, prompt, lambda answer: _claims(answer, len(texts)))
        if found is None:
            return self.rules.claims([document])[0] if self.rules is not None and self.asker.fallback else ()
        made = [
            Claim(f"{document.doc_id}#{numbered[at][0]}", document.doc_id, _subject(text, document.title), text, texts[at])
            for at, text in found.items()
        ]
        return self._checked(made, document.title)

    def _checked(self, made: Sequence[Claim], title: str) -> list[Claim]:
        """Those that say what their sentence says. No new word but the title's needs no question."""
        plain = {one.claim_id for one in made if consistent(one.text, one.sentence, title)}
        doubtful = [one for one in made if one.claim_id not in plain]
        if doubtful:
            pairs = [f"sentence: {one.sentence} claim: {one.text}" for one in doubtful]
            prompt = self.CHECK.filled(title=f"<<<{inline(title or '(unknown)')}>>>", pairs=_numbered(pairs))
            said = self.asker.ask(self.CHECK, prompt, lambda answer: [bool(one) for one in answer["consistent"]])
            plain |= {
                one.claim_id for one, fine in zip(doubtful, said or ()) if fine and _grounded(one.text, one.sentence, title)
            }
        return [one for one in made if one.claim_id in plain]


def _claims(answer: Any, count: int) -> dict[int, str]:
    """Position of the sentence -> claim, the first of each; positions outside are dropped."""
    found: dict[int, str] = {}
    for one in answer["claims"]:
        at, text = int(one["sentence"]) - 1, " ".join(str(one["claim"]).split())
        if 0 <= at < count and len(text.split()) > 2:
            found.setdefault(at, text)
    return found


def _subject(text: str, title: str) -> str:
    """The title, where the claim begins with it."""
    key = title_key(title)
    return title if key and f"{title_key(text)} ".startswith(f"{key} ") else ""


def _grounded(text: str, sentence: str, title: str) -> bool:
    """Whether at least half of what a claim says stands in its sentence: a model that nods at everything must not decide."""
    said = set(tokens(text)) - set(tokens(title))
    return not said or len(said & set(tokens(sentence))) >= len(said) / 2


# ------------------------------------------------------------------------------------------------------ triples


class ModelTriples:
    """Triples by a model. `titles` gives names the form of their page's title; `relations` are the only ones allowed."""

    def __init__(
        self,
        asker: Asker,
        *,
        titles: Titles | None = None,
        relations: Collection[str] | None = None,
        rules: TripleReader | None = None,
    ) -> None:
        self.asker, self.titles, self.rules = asker, titles, rules
        self.relations = tuple(relations) if relations is not None else ()
        relation = {"enum": list(self.relations)} if self.relations else _NAME
        triple = _object(claim=_NUMBER, subject=_NAME, relation=relation, object=_NAME)
        self.prompt = Prompt("triples", _object(triples=_list(triple)))
        self.signature = f"{asker.signature} {self.prompt.signature}"

    def triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        blocks = [claims[start : start + AT_ONCE] for start in range(0, len(claims), AT_ONCE)]
        return [one for block in self.asker.over("triples by the model", blocks) for one in self._of(block)]

    def _of(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        allowed = f", one of: {', '.join(self.relations)}" if self.relations else ""
        prompt = self.prompt.filled(relations=allowed, claims=_numbered([one.text for one in claims]))
        found = self.asker.ask(self.prompt, prompt, lambda answer: list(self._read(answer, claims)))
        if found is None:
            return self.rules.triples(claims) if self.rules is not None and self.asker.fallback else [()] * len(claims)
        held: list[dict[Triple, None]] = [{} for _ in claims]
        for at, triple in found:
            held[at].setdefault(triple)
        return [tuple(_several(one)) for one in held]

    def _read(self, answer: Any, claims: Sequence[Claim]) -> Iterator[tuple[int, Triple]]:
        for one in answer["triples"]:
            at = int(one["claim"]) - 1
            subject, relation, object_ = (" ".join(str(one[part]).split()) for part in ("subject", "relation", "object"))
            if not 0 <= at < len(claims) or not relation or (self.relations and relation not in self.relations):
                continue
            claim = claims[at]
            if title_key(subject) == title_key(object_) or not all(_stands_in(name, claim.text) for name in (subject, object_)):
                continue
            relation = relation.casefold() if not self.relations else relation
            yield at, Triple(self._named(subject, claim), relation, self._named(object_, claim), claim.doc_id, claim.claim_id)

    def _named(self, name: str, claim: Claim) -> str:
        if claim.subject and title_key(name) == title_key(claim.subject):
            return claim.subject
        return (self.titles.named(name, "") if self.titles is not None else None) or name


def _stands_in(name: str, text: str) -> bool:
    words = " ".join(tokens(name))
    return bool(words) and f" {words} " in f" {' '.join(tokens(text))} "


def _several(triples: Collection[Triple]) -> Iterator[Triple]:
    """The triples of one claim; those that share subject and relation are marked, since none has *the* object."""
    for one in triples:
        alike = [other for other in triples if (other.subject, other.relation) == (one.subject, one.relation)]
        yield replace(one, several=len(alike) > 1)


# ------------------------------------------------------------------------------------------------------ equivalences


class ModelEquivalences:
    """Which names of a cluster are the same, by a model."""

    PROMPT = Prompt("equivalences", _object(groups=_list(_object(names=_list(_NAME, most=8, least=2), always=_YES))))

    def __init__(self, asker: Asker, *, rules: EquivalenceFinder | None = None) -> None:
        self.asker, self.rules = asker, rules
        self.signature = f"{asker.signature} {self.PROMPT.signature}"

    def equivalences(self, cluster: int, triples: Sequence[Triple], claims: Sequence[Claim]) -> list[Equivalence]:
        text_of = {claim.claim_id: claim.text for claim in claims}
        found: dict[Equivalence, None] = {}
        for part in _parts(triples):
            names = list(dict.fromkeys(name for one in part for name in (one.subject, one.object)))
            told = list(dict.fromkeys(text_of[one.claim_id] for one in part if one.claim_id in text_of))
            if len(names) < 2:
                continue
            prompt = self.PROMPT.filled(names="\n".join(map(_line, names)), claims=_numbered(told))
            groups = self.asker.ask(self.PROMPT, prompt, partial(_groups, names=names, cluster=cluster))
            if groups is None and self.rules is not None and self.asker.fallback:
                groups = self.rules.equivalences(cluster, part, claims)
            found |= dict.fromkeys(groups or ())
        return list(found)


def _line(name: str) -> str:
    return " ".join(inline(name).split())


def _parts(triples: Sequence[Triple]) -> Iterator[Sequence[Triple]]:
    step = MOST_NAMES // 2
    for start in range(0, len(triples), step):
        yield triples[start : start + step]


def _groups(answer: Any, names: Sequence[str], cluster: int) -> list[Equivalence]:
    """Groups of at least two given names; a name is in one group only. The longest name is the chosen one."""
    known, taken, found = {_line(name): name for name in names}, set[str](), list[Equivalence]()
    for group in answer["groups"]:
        members = [known[one] for one in dict.fromkeys(map(str, group["names"])) if one in known and known[one] not in taken]
        if len(members) > 1:
            taken.update(members)
            chosen = sorted(members, key=lambda name: (-len(name), name))
            found.append(Equivalence(tuple(chosen), always=bool(group["always"]), cluster=cluster))
    return found


# ------------------------------------------------------------------------------------------------------ questions


class ModelQuestions:
    """A logical-chaining question for each path, by a model."""

    PROMPT = Prompt("questions", _object(question=_TEXT, answer=_NAME))

    def __init__(self, asker: Asker, *, rules: QuestionWriter | None = None) -> None:
        self.asker, self.rules = asker, rules
        self.signature = f"{asker.signature} {self.PROMPT.signature}"

    def write(self, paths: Sequence[Path], claims: Sequence[Sequence[Claim]]) -> list[Made | None]:
        return [self._write(path, told) for path, told in self.asker.over("questions by the model", list(zip(paths, claims)))]

    def _write(self, path: Path, claims: Sequence[Claim]) -> Made | None:
        start, end = path.ends
        facts = "\n".join(f"({_line(one.subject)}, {_line(one.relation)}, {_line(one.object)})" for one in path.triples)
        prompt = self.PROMPT.filled(
            start=f"<<<{_line(bare(start))}>>>",
            end=f"<<<{_line(bare(end))}>>>",
            facts=facts,
            claims=_numbered([one.text for one in claims]),
        )
        found = self.asker.ask(self.PROMPT, prompt, lambda answer: _question(answer, path))
        if found is None:
            return self.rules.write([path], [claims])[0] if self.rules is not None and self.asker.fallback else None
        text = found
        ids = tuple(dict.fromkeys(path.doc_ids))
        return Made(question_id_of(text), text, bare(end), "chain", len(path.triples), (path,), ids)


def _question(answer: Any, path: Path) -> str:
    """The question, if it names the start, asks for the end, and gives nothing away; ValueError says which it does not."""
    text, said = " ".join(str(answer["question"]).split()), str(answer["answer"])
    start, end = (bare(name) for name in path.ends)
    between = [bare(one.object) for one in path.triples[:-1]]
    if not text.endswith("?") or len(text.split()) < 4:
        raise ValueError("no question")
    if not _stands_in(start, text):
        raise ValueError("it does not name its start")
    if not (set(tokens(said)) & set(tokens(end))):
        raise ValueError("it asks for something else")
    for name in (end, *between):
        if _stands_in(name, text) and not _stands_in(name, start):
            raise ValueError("it gives a name away")
    return text


# ------------------------------------------------------------------------------------------------------ validation


class ModelJudge:
    """Whether a question is clear by itself, by a model. `before` judges first; only what passes there is asked about."""

    PROMPT = Prompt("validation", _object(clear=_YES))

    def __init__(self, asker: Asker, *, before: Judge | None = None) -> None:
        self.asker, self.before = asker, before
        self.signature = f"{asker.signature} {self.PROMPT.signature}"

    def judge(self, questions: Sequence[Made]) -> list[Judgement]:
        found = self.before.judge(questions) if self.before is not None else [Judgement(True)] * len(questions)
        pairs = list(zip(questions, found))
        return [self._judge(made) if one.valid else one for made, one in self.asker.over("validation by the model", pairs)]

    def _judge(self, made: Made) -> Judgement:
        prompt = self.PROMPT.filled(question=inline(made.text), answer=inline(made.answer))
        clear = self.asker.ask(self.PROMPT, prompt, lambda answer: bool(re.search("true|yes|1", str(answer["clear"]).lower())))
        if clear is None:
            passes = self.before is not None and self.asker.fallback
            return Judgement(passes, "" if passes else "the model did not judge it")
        return Judgement(clear, "" if clear else "the model finds it unclear")


# ------------------------------------------------------------------------------------------------------ by name

STAGES = ("claims", "triples", "equivalences", "questions", "validation")


def stages_by(asker: Asker, chosen: Collection[str] = STAGES) -> Stages:
    """The stages of a run, the chosen ones by the model and the others by rules.

    Rules can only ask about relations that they know: where they write the questions, the model is held to those.
    """
    for name in chosen:
        if name not in STAGES:
            raise InputError(f"no stage is named {name!r}", hint=nearest(name, STAGES))
    rules, found = Stages(), dict[str, Any]()
    relations = None if "questions" in chosen else tuple(RELATIONS)
    if "claims" in chosen:
        found["claims"] = lambda titles: ModelClaims(asker, rules=rules.claims(titles))
    if "triples" in chosen:
        found["triples"] = lambda titles: ModelTriples(
            asker, titles=titles, relations=relations, rules=rules.triples(titles)
        )  # fmt: skip
    if "equivalences" in chosen:
        found["equivalences"] = lambda titles: ModelEquivalences(asker, rules=rules.equivalences(titles))
    if "questions" in chosen:
        found["questions"] = lambda titles, wording: ModelQuestions(asker, rules=rules.questions(titles, wording))
    if "validation" in chosen:
        found["judge"] = lambda documents, titles: ModelJudge(asker, before=rules.judge(documents, titles))
    return Stages(**found)
