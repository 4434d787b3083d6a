"""Asking a language model, one thing after another, without trusting it with the run.

An answer is JSON that fits a schema, read by whoever asked. One that cannot be read is asked for once more with a reminder, and
then given up: one lost item is no reason to stop. A server that fails several times in a row is: the run ends with an error
that says so, and since answers are kept as they come (`integrations.openai.CachedModel`), the same command goes on where it
was. Every request is counted, and a budget ends the run before it is overdrawn.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from importlib import resources
from string import Template
from typing import Any, TypeVar

from suffice.answering.budget import Budget, Prices, Usage
from suffice.answering.prompting import quote_inline
from suffice.benchmark.chain_questions import make_question_id
from suffice.benchmark.claims import fix_spacing, is_consistent, is_factual
from suffice.benchmark.pipeline import Stages
from suffice.benchmark.relation_patterns import RELATIONS
from suffice.benchmark.stage_protocols import (
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
from suffice.benchmark.triples import PageIndex
from suffice.benchmark.vocabulary import base_title
from suffice.errors import InputError, ModelError, did_you_mean
from suffice.protocols import LanguageModel, Progress, component_name
from suffice.text import sentences, title_key, tokens
from suffice.types import Document

__all__ = [
    "BudgetSpentError",
    "BudgetedModel",
    "LLMClient",
    "ModelClaims",
    "ModelEquivalences",
    "ModelJudge",
    "ModelQuestions",
    "ModelTriples",
    "Prompt",
    "make_llm_stages",
]


T = TypeVar("T")
MAX_TIMEOUTS_IN_A_ROW = 3  # time-outs and dead connections: each costs a whole wait
MAX_FAILURES_IN_A_ROW = (
    12  # failures of any kind: the model, or something in front of its server, only rambles
)
EVERY_STAGE = "every stage"
REMINDER = "\n(Answer with that JSON alone.)"


# ------------------------------------------------------------------------------------------------------ prompts


@dataclass(frozen=True)
class Prompt:
    """A prompt from its file in `grade/prompts`, and the schema of the answer."""

    name: str
    schema: Mapping[str, Any]

    @property
    def template(self) -> str:
        return (
            resources.files("suffice.benchmark")
            .joinpath(f"prompts/{self.name}.txt")
            .read_text(encoding="utf-8")
        )

    def filled(self, **parts: str) -> str:
        """The prompt with its blanks filled; texts of others must be fenced before (`reason.prompting.inline`)."""
        return Template(self.template).substitute(parts)

    @property
    def signature(self) -> str:
        """What tells this prompt from an earlier version of it."""
        return sha256(
            f"{self.template}\0{json.dumps(self.schema, sort_keys=True)}".encode()
        ).hexdigest()[:12]


# ------------------------------------------------------------------------------------------------------ costs


class BudgetedModel:
    """A language model whose requests are counted, and that is not asked beyond its budget: SpentError then.

    It belongs inside a cache, not around one: what is remembered costs nothing.
    """

    def __init__(self, model: LanguageModel, budget: Budget | None = None) -> None:
        self.model, self.bill = model, Usage(budget or Budget(calls=None, tokens=None))
        self.name = component_name(model)

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        return [self._complete(prompt, schema) for prompt in prompts]

    def _complete(self, prompt: str, schema: Mapping[str, Any] | None) -> str:
        if lack := self.bill.lacks(prompt):
            raise BudgetSpentError(
                f"the budget for the model is spent: {lack} {getattr(self.bill.budget, lack):g}",
                hint="what is done is kept: raise the budget and run the same command again, or add --fallback",
            )
        return self.bill.ask(self.model, prompt, schema)

    def line(self) -> str:
        """For a terminal."""
        bill = self.bill
        price = f", cost {bill.money:.4f}" if bill.budget.prices != Prices() else ""
        return f"asked {self.name} {bill.calls:,} times, about {bill.tokens_in:,} tokens in and {bill.tokens_out:,} out{price}"


class BudgetSpentError(ModelError):
    """The budget for the model is spent."""


# ------------------------------------------------------------------------------------------------------ asking


class LLMClient:
    """Asks a model and reads what it says. `fallback`: where the model fails or the budget is spent, rules go on."""

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
        self.given_up: Counter[str] = (
            Counter()
        )  # prompt -> items without an answer that could be read
        self.down: dict[str, str] = {}  # prompt -> why the model is no longer asked that
        self._silent = 0  # waits for nothing, in a row
        self._unread: list[tuple[Prompt, str]] = []  # failures of any kind, in a row

    @property
    def signature(self) -> str:
        """Who answers: what rules may have filled in is not the same as what the model said."""
        return f"{self.name}, or rules" if self.fallback else self.name

    def ask(self, prompt: Prompt, text: str, read: Callable[[Any], T]) -> T | None:
        """What `read` makes of the answer; None where none could be read, or where rules go on.

        `read` raises ValueError, KeyError or TypeError at an answer that it cannot use. ModelError: the server does not
        answer, or the budget is spent.
        """
        if self._unread and self._unread[0][0].name != prompt.name:
            self._unread.clear()  # who rambles in one stage may do well in another
        for attempt in range(self.retries + 1):
            if prompt.name in self.down or EVERY_STAGE in self.down:
                return None
            asked = text + REMINDER * attempt
            self._unread.append((prompt, asked))
            try:
                (answer,) = self.model.complete([asked], schema=prompt.schema)
                found = read(json.loads(answer))
            except ModelError as error:
                self._failed(error)
            except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
                self._failed(ModelError(f"{self.name} answered what cannot be used: {error!r:.80}"))
            else:
                self._silent = 0
                self._unread.clear()
                return found
        self.given_up[prompt.name] += 1
        return None

    def over(self, what: str, items: Sequence[T]) -> Iterator[T]:
        """The items one by one, with progress."""
        for done, item in enumerate(items, 1):
            yield item
            if self.progress is not None:
                self.progress(what, done, len(items))

    def _failed(self, error: ModelError) -> None:
        """Count it; too many in a row end the run, unless rules may go on."""
        self._silent = self._silent + 1 if error.retryable else 0
        count = len(self._unread)
        if not (
            isinstance(error, BudgetSpentError)
            or self._silent >= MAX_TIMEOUTS_IN_A_ROW
            or count >= MAX_FAILURES_IN_A_ROW
        ):
            return
        prompt, _ = self._unread[-1]
        self._forget()
        if self.fallback:
            rambles = (
                not isinstance(error, BudgetSpentError) and self._silent < MAX_TIMEOUTS_IN_A_ROW
            )
            self.down[prompt.name if rambles else EVERY_STAGE] = str(error)
        elif isinstance(error, BudgetSpentError):
            raise error
        else:
            raise ModelError(
                f"the model failed {count} times in a row, the last time so: {error}",
                hint="what is done is kept: run the same command again when the server is well, or add --fallback",
                retryable=True,
            ) from error

    def _forget(self) -> None:
        """A cache must not hold what made the run end, or it would end so again."""
        forget = getattr(self.model, "forget", None)
        if forget is not None:
            for prompt, asked in self._unread:
                forget([asked], schema=prompt.schema)
        self._unread.clear()


# --- model_stages: The stages of grade by a language model, each behind the seam that rules fill by default.

MAX_SENTENCES = 20  # of a document: what follows is seldom about its subject
CLAIMS_PER_REQUEST = 10  # claims in one request for triples, as in the paper
MAX_NAMES = 40  # of a cluster in one request
MAX_ITEMS = (
    24  # in one list of an answer: a small model without an end would never close the bracket
)


def _object(**fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _list(items: Mapping[str, Any], *, most: int = MAX_ITEMS, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": most, "minItems": least}


_TEXT = {"type": "string", "maxLength": 400}
_NAME = {"type": "string", "maxLength": 120}
_YES = {"type": "boolean"}
_NUMBER = {"type": "integer", "minimum": 1}


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(
        f"{at}. {' '.join(quote_inline(text).split())}" for at, text in enumerate(texts, 1)
    )


# ------------------------------------------------------------------------------------------------------ claims


class ModelClaims:
    """Claims by a model: each is checked against its sentence, by words where that settles it, else by asking again."""

    CLAIM = _object(sentence=_NUMBER, claim=_TEXT)
    PROMPT = Prompt("claims", _object(claims=_list(CLAIM, most=MAX_SENTENCES)))
    CHECK = Prompt("consistency", _object(consistent=_list(_YES)))

    def __init__(self, asker: LLMClient, *, rules: ClaimExtractor | None = None) -> None:
        self.asker, self.rules = asker, rules
        self.signature = f"{asker.signature} {self.PROMPT.signature} {self.CHECK.signature}"

    def claims(self, documents: Sequence[Document]) -> list[tuple[Claim, ...]]:
        return [
            tuple(self._of(document))
            for document in self.asker.over("claims by the model", documents)
        ]

    def _of(self, document: Document) -> Sequence[Claim]:
        numbered = [
            (at, one)
            for at, one in enumerate(sentences(fix_spacing(document.text))[:MAX_SENTENCES])
            if is_factual(one)
        ]
        if not numbered:
            return ()
        texts = [text for _, text in numbered]
        prompt = self.PROMPT.filled(
            title=quote_inline(document.title or "(none)"), sentences=_numbered(texts)
        )
        # No more claims than sentences: a small model would go on until its words are spent, and its JSON would have no end.
        asked = replace(self.PROMPT, schema=_object(claims=_list(self.CLAIM, most=len(texts))))
        found = self.asker.ask(asked, prompt, lambda answer: _claims(answer, len(texts)))
        if found is None:
            return (
                self.rules.claims([document])[0]
                if self.rules is not None and self.asker.fallback
                else ()
            )
        made = [
            Claim(
                f"{document.doc_id}#{numbered[at][0]}",
                document.doc_id,
                _subject(text, document.title),
                text,
                texts[at],
            )
            for at, text in found.items()
        ]
        return self._checked(made, document.title)

    def _checked(self, made: Sequence[Claim], title: str) -> list[Claim]:
        """Those that say what their sentence says. No new word but the title's needs no question."""
        plain = {one.claim_id for one in made if is_consistent(one.text, one.sentence, title)}
        doubtful = [one for one in made if one.claim_id not in plain]
        if doubtful:
            pairs = [f"sentence: {one.sentence} claim: {one.text}" for one in doubtful]
            prompt = self.CHECK.filled(
                title=f"<<<{quote_inline(title or '(unknown)')}>>>", pairs=_numbered(pairs)
            )
            said = self.asker.ask(
                self.CHECK, prompt, lambda answer: [bool(one) for one in answer["consistent"]]
            )
            plain |= {
                one.claim_id
                for one, fine in zip(doubtful, said or ())
                if fine and _grounded(one.text, one.sentence, title)
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
        asker: LLMClient,
        *,
        titles: PageIndex | None = None,
        relations: Collection[str] | None = None,
        rules: TripleExtractor | None = None,
    ) -> None:
        self.asker, self.titles, self.rules = asker, titles, rules
        self.relations = tuple(relations) if relations is not None else ()
        relation = {"enum": list(self.relations)} if self.relations else _NAME
        triple = _object(claim=_NUMBER, subject=_NAME, relation=relation, object=_NAME)
        self.prompt = Prompt("triples", _object(triples=_list(triple)))
        self.signature = f"{asker.signature} {self.prompt.signature}"

    def triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        blocks = [
            claims[start : start + CLAIMS_PER_REQUEST]
            for start in range(0, len(claims), CLAIMS_PER_REQUEST)
        ]
        return [
            one
            for block in self.asker.over("triples by the model", blocks)
            for one in self._of(block)
        ]

    def _of(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
        allowed = f", one of: {', '.join(self.relations)}" if self.relations else ""
        prompt = self.prompt.filled(
            relations=allowed, claims=_numbered([one.text for one in claims])
        )
        found = self.asker.ask(self.prompt, prompt, lambda answer: list(self._read(answer, claims)))
        if found is None:
            return (
                self.rules.triples(claims)
                if self.rules is not None and self.asker.fallback
                else [()] * len(claims)
            )
        held: list[dict[Triple, None]] = [{} for _ in claims]
        for at, triple in found:
            held[at].setdefault(triple)
        return [tuple(_several(one)) for one in held]

    def _read(self, answer: Any, claims: Sequence[Claim]) -> Iterator[tuple[int, Triple]]:
        for one in answer["triples"]:
            at = int(one["claim"]) - 1
            subject, relation, object_ = (
                " ".join(str(one[part]).split()) for part in ("subject", "relation", "object")
            )
            if (
                not 0 <= at < len(claims)
                or not relation
                or (self.relations and relation not in self.relations)
            ):
                continue
            claim = claims[at]
            if title_key(subject) == title_key(object_) or not all(
                _occurs_in(name, claim.text) for name in (subject, object_)
            ):
                continue
            relation = relation.casefold() if not self.relations else relation
            yield (
                at,
                Triple(
                    self._named(subject, claim),
                    relation,
                    self._named(object_, claim),
                    claim.doc_id,
                    claim.claim_id,
                ),
            )

    def _named(self, name: str, claim: Claim) -> str:
        if claim.subject and title_key(name) == title_key(claim.subject):
            return claim.subject
        return (self.titles.named(name, "") if self.titles is not None else None) or name


def _occurs_in(name: str, text: str) -> bool:
    words = " ".join(tokens(name))
    return bool(words) and f" {words} " in f" {' '.join(tokens(text))} "


def _several(triples: Collection[Triple]) -> Iterator[Triple]:
    """The triples of one claim; those that share subject and relation are marked, since none has *the* object."""
    for one in triples:
        alike = [
            other
            for other in triples
            if (other.subject, other.relation) == (one.subject, one.relation)
        ]
        yield replace(one, several=len(alike) > 1)


# ------------------------------------------------------------------------------------------------------ equivalences


class ModelEquivalences:
    """Which names of a cluster are the same, by a model."""

    PROMPT = Prompt(
        "equivalences",
        _object(groups=_list(_object(names=_list(_NAME, most=8, least=2), always=_YES))),
    )

    def __init__(self, asker: LLMClient, *, rules: EquivalenceFinder | None = None) -> None:
        self.asker, self.rules = asker, rules
        self.signature = f"{asker.signature} {self.PROMPT.signature}"

    def equivalences(
        self, cluster: int, triples: Sequence[Triple], claims: Sequence[Claim]
    ) -> list[Equivalence]:
        text_of = {claim.claim_id: claim.text for claim in claims}
        found: dict[Equivalence, None] = {}
        for part in _parts(triples):
            names = list(dict.fromkeys(name for one in part for name in (one.subject, one.object)))
            told = list(
                dict.fromkeys(text_of[one.claim_id] for one in part if one.claim_id in text_of)
            )
            if len(names) < 2:
                continue
            prompt = self.PROMPT.filled(
                names="\n".join(map(_inline, names)), claims=_numbered(told)
            )
            groups = self.asker.ask(
                self.PROMPT, prompt, partial(_groups, names=names, cluster=cluster)
            )
            if groups is None and self.rules is not None and self.asker.fallback:
                groups = self.rules.equivalences(cluster, part, claims)
            found |= dict.fromkeys(groups or ())
        return list(found)


def _inline(name: str) -> str:
    return " ".join(quote_inline(name).split())


def _parts(triples: Sequence[Triple]) -> Iterator[Sequence[Triple]]:
    step = MAX_NAMES // 2
    for start in range(0, len(triples), step):
        yield triples[start : start + step]


def _groups(answer: Any, names: Sequence[str], cluster: int) -> list[Equivalence]:
    """Groups of at least two given names; a name is in one group only. The longest name is the chosen one."""
    known, taken, found = {_inline(name): name for name in names}, set[str](), list[Equivalence]()
    for group in answer["groups"]:
        members = [
            known[one]
            for one in dict.fromkeys(map(str, group["names"]))
            if one in known and known[one] not in taken
        ]
        if len(members) > 1:
            taken.update(members)
            chosen = sorted(members, key=lambda name: (-len(name), name))
            found.append(Equivalence(tuple(chosen), always=bool(group["always"]), cluster=cluster))
    return found


# ------------------------------------------------------------------------------------------------------ questions


class ModelQuestions:
    """A logical-chaining question for each path, by a model."""

    PROMPT = Prompt("questions", _object(question=_TEXT, answer=_NAME))

    def __init__(self, asker: LLMClient, *, rules: QuestionWriter | None = None) -> None:
        self.asker, self.rules = asker, rules
        self.signature = f"{asker.signature} {self.PROMPT.signature}"

    def write(
        self, paths: Sequence[ReasoningPath], claims: Sequence[Sequence[Claim]]
    ) -> list[GeneratedQuestion | None]:
        return [
            self._write(path, told)
            for path, told in self.asker.over("questions by the model", list(zip(paths, claims)))
        ]

    def _write(self, path: ReasoningPath, claims: Sequence[Claim]) -> GeneratedQuestion | None:
        start, end = path.ends
        facts = "\n".join(
            f"({_inline(one.subject)}, {_inline(one.relation)}, {_inline(one.object)})"
            for one in path.triples
        )
        prompt = self.PROMPT.filled(
            start=f"<<<{_inline(base_title(start))}>>>",
            end=f"<<<{_inline(base_title(end))}>>>",
            facts=facts,
            claims=_numbered([one.text for one in claims]),
        )
        found = self.asker.ask(self.PROMPT, prompt, lambda answer: _question(answer, path))
        if found is None:
            return (
                self.rules.write([path], [claims])[0]
                if self.rules is not None and self.asker.fallback
                else None
            )
        text = found
        ids = tuple(dict.fromkeys(path.doc_ids))
        return GeneratedQuestion(
            make_question_id(text), text, base_title(end), "chain", len(path.triples), (path,), ids
        )


def _question(answer: Any, path: ReasoningPath) -> str:
    """The question, if it names the start, asks for the end, and gives nothing away; ValueError says which it does not."""
    text, said = " ".join(str(answer["question"]).split()), str(answer["answer"])
    start, end = (base_title(name) for name in path.ends)
    between = [base_title(one.object) for one in path.triples[:-1]]
    if not text.endswith("?") or len(text.split()) < 4:
        raise ValueError("no question")
    if not _occurs_in(start, text):
        raise ValueError("it does not name its start")
    if not (set(tokens(said)) & set(tokens(end))):
        raise ValueError("it asks for something else")
    for name in (end, *between):
        if _occurs_in(name, text) and not _occurs_in(name, start):
            raise ValueError("it gives a name away")
    return text


# ------------------------------------------------------------------------------------------------------ validation


class ModelJudge:
    """Whether a question is clear by itself, by a model. `before` judges first; only what passes there is asked about."""

    PROMPT = Prompt("validation", _object(clear=_YES))

    def __init__(self, asker: LLMClient, *, before: Judge | None = None) -> None:
        self.asker, self.before = asker, before
        self.signature = f"{asker.signature} {self.PROMPT.signature}"

    def judge(self, questions: Sequence[GeneratedQuestion]) -> list[Judgement]:
        found = (
            self.before.judge(questions)
            if self.before is not None
            else [Judgement(True)] * len(questions)
        )
        pairs = list(zip(questions, found))
        return [
            self._judge(made) if one.valid else one
            for made, one in self.asker.over("validation by the model", pairs)
        ]

    def _judge(self, made: GeneratedQuestion) -> Judgement:
        prompt = self.PROMPT.filled(
            question=quote_inline(made.text), answer=quote_inline(made.answer)
        )
        clear = self.asker.ask(
            self.PROMPT,
            prompt,
            lambda answer: bool(re.search("true|yes|1", str(answer["clear"]).lower())),
        )
        if clear is None:
            passes = self.before is not None and self.asker.fallback
            return Judgement(passes, "" if passes else "the model did not judge it")
        return Judgement(clear, "" if clear else "the model finds it unclear")


# ------------------------------------------------------------------------------------------------------ by name

LLM_STAGES = ("claims", "triples", "equivalences", "questions", "validation")


def make_llm_stages(asker: LLMClient, chosen: Collection[str] = LLM_STAGES) -> Stages:
    """The stages of a run, the chosen ones by the model and the others by rules.

    Rules can only ask about relations that they know: where they write the questions, the model is held to those.
    """
    for name in chosen:
        if name not in LLM_STAGES:
            raise InputError(f"no stage is named {name!r}", hint=did_you_mean(name, LLM_STAGES))
    rules, found = Stages(), dict[str, Any]()
    relations = None if "questions" in chosen else tuple(RELATIONS)
    if "claims" in chosen:
        found["claims"] = lambda titles: ModelClaims(asker, rules=rules.claims(titles))
    if "triples" in chosen:
        found["triples"] = lambda titles: ModelTriples(
            asker, titles=titles, relations=relations, rules=rules.triples(titles)
        )  # fmt: skip
    if "equivalences" in chosen:
        found["equivalences"] = lambda titles: ModelEquivalences(
            asker, rules=rules.equivalences(titles)
        )
    if "questions" in chosen:
        found["questions"] = lambda titles, wording: ModelQuestions(
            asker, rules=rules.questions(titles, wording)
        )
    if "validation" in chosen:
        found["judge"] = lambda documents, titles: ModelJudge(
            asker, before=rules.judge(documents, titles)
        )
    return Stages(**found)
