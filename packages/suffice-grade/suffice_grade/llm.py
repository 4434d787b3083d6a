"""Stages that use a language model, and a client that does not let the model break the run.

What the model proposes is checked against the text: a claim must say what its sentence says, both
ends of a triple must be in its claim, a group may only contain given names, and a question must not
name its answer or an intermediate step. Whatever fails is dropped.

An answer is JSON that matches a schema. After an unusable answer, the request is repeated once with
a reminder, then skipped: one lost item is no reason to stop. If the server fails several times in a
row, the run ends with an error. Answers are cached (`integrations.openai.CachedModel`), so the same
command resumes the run. Every request is counted, and the run ends before it exceeds its budget.
With `fallback`, rules replace the model where it fails.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from string import Template
from typing import Any, TypeVar

from suffice.answering.budget import Budget, Prices, Usage
from suffice.answering.prompting import quote_inline
from suffice.errors import InputError, ModelError, did_you_mean
from suffice.protocols import LanguageModel, Progress, component_name
from suffice.text import sentences, title_key, tokens
from suffice.types import Document
from suffice_grade.chain_questions import chain_question
from suffice_grade.claims import PageIndex, fix_spacing, is_consistent, is_factual
from suffice_grade.pipeline import Stages
from suffice_grade.relations import RELATIONS
from suffice_grade.stage_protocols import (
    Claim,
    ClaimExtractor,
    Equivalence,
    EquivalenceFinder,
    GeneratedQuestion,
    Judge,
    Judgement,
    QuestionWriter,
    ReasoningPath,
    Triple,
    TripleExtractor,
)
from suffice_grade.vocabulary import FOLDER, base_title

T = TypeVar("T")
MAX_TIMEOUTS_IN_A_ROW = 3  # each costs a full time-out
MAX_FAILURES_IN_A_ROW = 12  # of any kind: the model, or a proxy, returns nothing usable
EVERY_STAGE = "every stage"
REMINDER = "\n(Answer with that JSON alone.)"


@dataclass(frozen=True)
class Prompt:
    """A prompt from its file in `benchmark/prompts`, and the JSON schema of the answer."""

    name: str
    schema: Mapping[str, Any]

    @property
    def template(self) -> str:
        return (FOLDER / "prompts" / f"{self.name}.txt").read_text(encoding="utf-8")

    def filled(self, **parts: str) -> str:
        """The prompt with its blanks filled in; quote untrusted texts first (`quote_inline`)."""
        return Template(self.template).substitute(parts)

    @property
    def signature(self) -> str:
        """Identifies this version of the prompt."""
        content = f"{self.template}\0{json.dumps(self.schema, sort_keys=True)}"
        return sha256(content.encode()).hexdigest()[:12]


class BudgetSpentError(ModelError):
    """The budget for the model is spent."""


class BudgetedModel:
    """A language model whose requests are counted; raises BudgetSpentError beyond its budget.

    Put it inside a cache, not around one: cached answers cost nothing.
    """

    def __init__(self, model: LanguageModel, budget: Budget | None = None) -> None:
        self.model, self.usage = model, Usage(budget or Budget(calls=None, tokens=None))
        self.name = component_name(model)

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        return [self._complete(prompt, schema) for prompt in prompts]

    def _complete(self, prompt: str, schema: Mapping[str, Any] | None) -> str:
        if limit := self.usage.exceeded_by(prompt):
            raise BudgetSpentError(
                f"the budget for the model is spent: {limit} {getattr(self.usage.budget, limit):g}",
                hint="finished work is kept: raise the budget and run the same command again, "
                "or add --fallback",
            )
        return self.usage.complete(self.model, prompt, schema)

    def line(self) -> str:
        """The usage as a line for a terminal."""
        usage = self.usage
        price = f", cost {usage.money:.4f}" if usage.budget.prices != Prices() else ""
        return (
            f"asked {self.name} {usage.calls:,} times, about {usage.tokens_in:,} tokens in and "
            f"{usage.tokens_out:,} out{price}"
        )


class LLMClient:
    """Asks a model and parses its answers. With `fallback`, rules continue where it fails."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        fallback: bool = False,
        retries: int = 1,
        progress: Progress | None = None,
    ) -> None:
        self.model, self.fallback, self.retries, self.progress = model, fallback, retries, progress
        self.name = component_name(model)
        self.given_up: Counter[str] = Counter()  # prompt -> items without a usable answer
        self.disabled: dict[str, str] = {}  # prompt -> why the model is no longer called
        self._timeouts = 0  # in a row
        self._failures: list[tuple[Prompt, str]] = []  # of any kind, in a row

    @property
    def signature(self) -> str:
        """Identifies who answers; with a fallback, some answers may come from rules."""
        return f"{self.name}, or rules" if self.fallback else self.name

    def ask(self, prompt: Prompt, text: str, parse: Callable[[Any], T]) -> T | None:
        """The parsed answer; None if no answer is usable, or if rules take over.

        `parse` raises ValueError, KeyError or TypeError for an unusable answer. ModelError: the
        server does not respond, or the budget is spent.
        """
        if self._failures and self._failures[0][0].name != prompt.name:
            self._failures.clear()  # a model that fails in one stage may work in another
        for attempt in range(self.retries + 1):
            if prompt.name in self.disabled or EVERY_STAGE in self.disabled:
                return None
            request = text + REMINDER * attempt
            self._failures.append((prompt, request))
            try:
                (answer,) = self.model.complete([request], schema=prompt.schema)
                found = parse(json.loads(answer))
            except ModelError as error:
                self._handle(error)
            except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
                self._handle(ModelError(f"{self.name} gave an unusable answer: {error!r:.80}"))
            else:
                self._timeouts = 0
                self._failures.clear()
                return found
        self.given_up[prompt.name] += 1
        return None

    def over(self, what: str, items: Sequence[T]) -> Iterator[T]:
        """The items one by one, with progress."""
        for done, item in enumerate(items, 1):
            yield item
            if self.progress is not None:
                self.progress(what, done, len(items))

    def _handle(self, error: ModelError) -> None:
        """Count a failure; too many in a row end the run, unless rules take over."""
        self._timeouts = self._timeouts + 1 if error.retryable else 0
        count, spent = len(self._failures), isinstance(error, BudgetSpentError)
        is_dead = spent or self._timeouts >= MAX_TIMEOUTS_IN_A_ROW
        if not is_dead and count < MAX_FAILURES_IN_A_ROW:
            return
        prompt, _ = self._failures[-1]
        self._forget_failures()
        if self.fallback:
            self.disabled[EVERY_STAGE if is_dead else prompt.name] = str(error)
        elif spent:
            raise error
        else:
            raise ModelError(
                f"the model failed {count} times in a row, the last time with: {error}",
                hint="finished work is kept: run the same command again when the server is back, "
                "or add --fallback",
                retryable=True,
            ) from error

    def _forget_failures(self) -> None:
        """Remove the failures from the cache, or the next run would end the same way."""
        if (forget := getattr(self.model, "forget", None)) is not None:
            for prompt, request in self._failures:
                forget([request], schema=prompt.schema)
        self._failures.clear()


# ----------------------------------------------------------------------------------------- schemas

MAX_SENTENCES = 20  # per document: later ones are rarely about its subject
CLAIMS_PER_REQUEST = 10  # for triples, as in the paper
TRIPLES_PER_REQUEST = 20  # for equivalences: each has two names
MAX_ITEMS = 24  # in one list: a small model might never close the bracket

Schema = Mapping[str, Any]


def _object(**fields: Schema) -> Schema:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _list(items: Schema, *, most: int = MAX_ITEMS, least: int = 0) -> Schema:
    return {"type": "array", "items": items, "maxItems": most, "minItems": least}


_TEXT = {"type": "string", "maxLength": 400}
_NAME = {"type": "string", "maxLength": 120}
_YES = {"type": "boolean"}
_NUMBER = {"type": "integer", "minimum": 1}


def _inline(text: str) -> str:
    return " ".join(quote_inline(text).split())


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{at}. {_inline(text)}" for at, text in enumerate(texts, 1))


def _blocks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _contains(text: str, name: str) -> bool:
    words = " ".join(tokens(name))
    return bool(words) and f" {words} " in f" {' '.join(tokens(text))} "


# ------------------------------------------------------------------------------------------ stages


class ModelClaims:
    """Claims by a model, checked against their sentence by words, or else by the model."""

    CLAIM = _object(sentence=_NUMBER, claim=_TEXT)
    PROMPT = Prompt("claims", _object(claims=_list(CLAIM, most=MAX_SENTENCES)))
    CHECK = Prompt("consistency", _object(consistent=_list(_YES)))

    def __init__(self, client: LLMClient, *, rules: ClaimExtractor | None = None) -> None:
        self.client, self.rules = client, rules if client.fallback else None
        self.signature = f"{client.signature} {self.PROMPT.signature} {self.CHECK.signature}"

    def claims(self, documents: Sequence[Document]) -> list[tuple[Claim, ...]]:
        each = self.client.over("claims by the model", documents)
        return [tuple(self._claims(document)) for document in each]

    def _claims(self, document: Document) -> Sequence[Claim]:
        doc_id, title = document.doc_id, document.title
        numbered = list(enumerate(sentences(fix_spacing(document.text))[:MAX_SENTENCES]))
        numbered = [(number, text) for number, text in numbered if is_factual(text)]
        if not numbered:
            return ()
        listed = _numbered([text for _, text in numbered])
        request = self.PROMPT.filled(title=quote_inline(title or "(none)"), sentences=listed)
        # No more claims than sentences, or a small model may continue forever.
        schema = _object(claims=_list(self.CLAIM, most=len(numbered)))
        prompt = replace(self.PROMPT, schema=schema)
        found = self.client.ask(prompt, request, partial(_parse_claims, count=len(numbered)))
        if found is None:
            return self.rules.claims([document])[0] if self.rules is not None else ()
        claims = []
        for at, text in found.items():
            number, sentence = numbered[at]
            key = title_key(title)
            subject = title if key and f"{title_key(text)} ".startswith(f"{key} ") else ""
            claims.append(Claim(f"{doc_id}#{number}", doc_id, subject, text, sentence))
        return self._consistent(claims, title)

    def _consistent(self, claims: Sequence[Claim], title: str) -> list[Claim]:
        """The claims that agree with their sentence. The model is asked only about new words."""
        kept = {one.claim_id for one in claims if is_consistent(one.text, one.sentence, title)}
        doubtful = [one for one in claims if one.claim_id not in kept]
        if doubtful:
            pairs = _numbered([f"sentence: {one.sentence} claim: {one.text}" for one in doubtful])
            quoted = f"<<<{quote_inline(title or '(unknown)')}>>>"
            request = self.CHECK.filled(title=quoted, pairs=pairs)
            answers = self.client.ask(
                self.CHECK, request, lambda answer: [bool(one) for one in answer["consistent"]]
            )
            for claim, fine in zip(doubtful, answers or ()):
                if fine and _is_grounded(claim, title):
                    kept.add(claim.claim_id)
        return [one for one in claims if one.claim_id in kept]


def _parse_claims(answer: Any, count: int) -> dict[int, str]:
    """Sentence position -> claim, the first for each; invalid positions are dropped."""
    found: dict[int, str] = {}
    for one in answer["claims"]:
        at, text = int(one["sentence"]) - 1, " ".join(str(one["claim"]).split())
        if 0 <= at < count and len(text.split()) > 2:
            found.setdefault(at, text)
    return found


def _is_grounded(claim: Claim, title: str) -> bool:
    """Whether half of the claim's words are in its sentence: a model may agree to anything."""
    words = set(tokens(claim.text)) - set(tokens(title))
    return not words or len(words & set(tokens(claim.sentence))) >= len(words) / 2


class ModelTriples:
    """Triples by a model; `pages` maps names to titles, `relations` limits the relations."""

    def __init__(
        self,
        client: LLMClient,
        *,
        pages: PageIndex | None = None,
        relations: Collection[str] | None = None,
        rules: TripleExtractor | None = None,
    ) -> None:
        self.client, self.pages, self.rules = client, pages, rules if client.fallback else None
        self.relations = tuple(relations or ())
        relation = {"enum": list(self.relations)} if self.relations else _NAME
        triple = _object(claim=_NUMBER, subject=_NAME, relation=relation, object=_NAME)
        self.prompt = Prompt("triples", _object(triples=_list(triple)))
        self.signature = f"{client.signature} {self.prompt.signature}"

    def triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        blocks = self.client.over("triples by the model", _blocks(claims, CLAIMS_PER_REQUEST))
        return [triples for block in blocks for triples in self._triples(block)]

    def _triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        allowed = f", one of: {', '.join(self.relations)}" if self.relations else ""
        listed = _numbered([one.text for one in claims])
        request = self.prompt.filled(relations=allowed, claims=listed)
        found = self.client.ask(self.prompt, request, lambda answer: self._parse(answer, claims))
        if found is None:
            return [()] * len(claims) if self.rules is None else self.rules.triples(claims)
        # Mark triples of a claim that share subject and relation: none has a unique object.
        ends = [Counter((one.subject, one.relation) for one in triples) for triples in found]
        return [
            tuple(replace(one, several=same[one.subject, one.relation] > 1) for one in triples)
            for triples, same in zip(found, ends)
        ]

    def _parse(self, answer: Any, claims: Sequence[Claim]) -> list[dict[Triple, None]]:
        found: list[dict[Triple, None]] = [{} for _ in claims]
        for one in answer["triples"]:
            at = int(one["claim"]) - 1
            parts = (" ".join(str(one[part]).split()) for part in ("subject", "relation", "object"))
            subject, relation, object_ = parts
            allowed = relation in self.relations if self.relations else bool(relation)
            if not 0 <= at < len(claims) or not allowed:
                continue
            claim = claims[at]
            grounded = all(_contains(claim.text, name) for name in (subject, object_))
            if grounded and title_key(subject) != title_key(object_):
                ends = self._title(subject, claim), self._title(object_, claim)
                relation = relation if self.relations else relation.casefold()
                triple = Triple(ends[0], relation, ends[1], claim.doc_id, claim.claim_id)
                found[at].setdefault(triple)
        return found

    def _title(self, name: str, claim: Claim) -> str:
        if claim.subject and title_key(name) == title_key(claim.subject):
            return claim.subject
        return (self.pages.find(name) if self.pages is not None else None) or name


class ModelEquivalences:
    """Equivalent names in a cluster, by a model."""

    GROUP = _object(names=_list(_NAME, most=8, least=2), always=_YES)
    PROMPT = Prompt("equivalences", _object(groups=_list(GROUP)))

    def __init__(self, client: LLMClient, *, rules: EquivalenceFinder | None = None) -> None:
        self.client, self.rules = client, rules if client.fallback else None
        self.signature = f"{client.signature} {self.PROMPT.signature}"

    def equivalences(
        self, cluster: int, triples: Sequence[Triple], claims: Sequence[Claim]
    ) -> list[Equivalence]:
        text_of = {claim.claim_id: claim.text for claim in claims}
        found: dict[Equivalence, None] = {}
        for block in _blocks(triples, TRIPLES_PER_REQUEST):
            names = list(dict.fromkeys(name for one in block for name in (one.subject, one.object)))
            if len(names) < 2:
                continue
            texts = dict.fromkeys(text_of[one.claim_id] for one in block if one.claim_id in text_of)
            listed = "\n".join(map(_inline, names))
            request = self.PROMPT.filled(names=listed, claims=_numbered(list(texts)))
            parse = partial(_parse_groups, names=names, cluster=cluster)
            groups = self.client.ask(self.PROMPT, request, parse)
            if groups is None and self.rules is not None:
                groups = self.rules.equivalences(cluster, block, claims)
            found |= dict.fromkeys(groups or ())
        return list(found)


def _parse_groups(answer: Any, names: Sequence[str], cluster: int) -> list[Equivalence]:
    """Groups of at least two given names, each name in one group; the longest is the main name."""
    free = {_inline(name): name for name in names}
    found = []
    for group in answer["groups"]:
        members = [one for one in dict.fromkeys(map(str, group["names"])) if one in free]
        if len(members) > 1:
            chosen = sorted((free[one] for one in members), key=lambda name: (-len(name), name))
            found.append(Equivalence(tuple(chosen), always=bool(group["always"]), cluster=cluster))
            taken = set(chosen)
            free = {key: name for key, name in free.items() if name not in taken}
    return found


class ModelQuestions:
    """A chain question for each path, by a model."""

    PROMPT = Prompt("questions", _object(question=_TEXT, answer=_NAME))

    def __init__(self, client: LLMClient, *, rules: QuestionWriter | None = None) -> None:
        self.client, self.rules = client, rules if client.fallback else None
        self.signature = f"{client.signature} {self.PROMPT.signature}"

    def write(
        self, paths: Sequence[ReasoningPath], claims: Sequence[Sequence[Claim]]
    ) -> list[GeneratedQuestion | None]:
        each = self.client.over("questions by the model", list(zip(paths, claims)))
        return [self._write(path, hops) for path, hops in each]

    def _write(self, path: ReasoningPath, claims: Sequence[Claim]) -> GeneratedQuestion | None:
        start, end = (_inline(base_title(name)) for name in path.ends)
        parts = [(one.subject, one.relation, one.object) for one in path.triples]
        request = self.PROMPT.filled(
            start=f"<<<{start}>>>",
            end=f"<<<{end}>>>",
            facts="\n".join(f"({', '.join(map(_inline, part))})" for part in parts),
            claims=_numbered([one.text for one in claims]),
        )
        text = self.client.ask(self.PROMPT, request, partial(_parse_question, path=path))
        if text is not None:
            return chain_question(text, path)
        return self.rules.write([path], [claims])[0] if self.rules is not None else None


def _parse_question(answer: Any, path: ReasoningPath) -> str:
    """The question if it names the start, asks for the end and names nothing in between."""
    text, reply = " ".join(str(answer["question"]).split()), str(answer["answer"])
    start, end = (base_title(name) for name in path.ends)
    if not text.endswith("?") or len(text.split()) < 4:
        raise ValueError("no question")
    if not _contains(text, start):
        raise ValueError("it does not name its start")
    if not set(tokens(reply)) & set(tokens(end)):
        raise ValueError("it asks for something else")
    for name in (end, *(base_title(one.object) for one in path.triples[:-1])):
        if _contains(text, name) and not _contains(start, name):
            raise ValueError("it gives a name away")
    return text


class ModelJudge:
    """A model judges whether a question is clear; it is only asked about what `before` accepts."""

    PROMPT = Prompt("validation", _object(clear=_YES))

    def __init__(self, client: LLMClient, *, before: Judge | None = None) -> None:
        self.client, self.before = client, before
        self.signature = f"{client.signature} {self.PROMPT.signature}"

    def judge(self, questions: Sequence[GeneratedQuestion]) -> list[Judgement]:
        first = [Judgement(True)] * len(questions)
        first = first if self.before is None else self.before.judge(questions)
        each = self.client.over("validation by the model", list(zip(questions, first)))
        return [self._judge(question) if one.valid else one for question, one in each]

    def _judge(self, question: GeneratedQuestion) -> Judgement:
        text, answer = quote_inline(question.text), quote_inline(question.answer)
        request = self.PROMPT.filled(question=text, answer=answer)
        clear = self.client.ask(
            self.PROMPT,
            request,
            lambda reply: re.search("true|yes|1", str(reply["clear"]).lower()) is not None,
        )
        if clear is None:
            passes = self.before is not None and self.client.fallback
            return Judgement(passes, "" if passes else "the model did not judge it")
        return Judgement(clear, "" if clear else "the model finds it unclear")


LLM_STAGES = ("claims", "triples", "equivalences", "questions", "validation")


def make_llm_stages(client: LLMClient, chosen: Collection[str] = LLM_STAGES) -> Stages:
    """The stages of a run: the chosen ones by the model, the others by rules.

    Rules can only word relations they know. If rules write the questions, the model may only use
    those relations.
    """
    for name in chosen:
        if name not in LLM_STAGES:
            raise InputError(f"no stage is named {name!r}", hint=did_you_mean(name, LLM_STAGES))
    rules = Stages()
    relations = None if "questions" in chosen else tuple(RELATIONS)
    by_model: dict[str, Callable[..., Any]] = {
        "claims": lambda pages: ModelClaims(client, rules=rules.claims(pages)),
        "triples": lambda pages: ModelTriples(
            client, pages=pages, relations=relations, rules=rules.triples(pages)
        ),
        "equivalences": lambda pages: ModelEquivalences(client, rules=rules.equivalences(pages)),
        "questions": lambda pages, wording: ModelQuestions(
            client, rules=rules.questions(pages, wording)
        ),
        "validation": lambda documents, pages: ModelJudge(
            client, before=rules.judge(documents, pages)
        ),
    }
    found = {name: by_model[name] for name in chosen}
    if "validation" in found:
        found["judge"] = found.pop("validation")
    return Stages(**found)
