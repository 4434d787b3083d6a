"""A language model against the rules, on 100 generated questions judged by a person.

    python -m suffice_research.grade.agreement prompts WORK --data DIR
    python -m suffice_research.grade.agreement compare WORK > sheet.jsonl
    python -m suffice_research.grade.agreement show [--json]

`prompts` draws generated questions from three corpora into WORK/items.jsonl, and writes the prompts
of the stages into WORK/prompts.jsonl: claims of a document, a question over a path, an answer from
the documents, whether the question is clear, whether the rules' answer is right. Any server may
answer them (`suffice_research.training.model_server --prompts`); put its answers into
WORK/answers.jsonl. `compare` parses them with the code of the stages and writes a sheet with both
outputs, for a person to judge. The verdicts are stored in `research/grade_readings`, without the
words of public texts, and `show` counts them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from suffice.answering.answer_type import expected_answer_type
from suffice.answering.budget import Budget, MeteredModel
from suffice.answering.span_reader import SpanReader, passage_from_document
from suffice.answering.step import StepReader
from suffice.datasets import load
from suffice.datasets.jsonl import document_record, load_documents
from suffice.errors import InputError, ModelError
from suffice.evaluation.metrics import ANSWER_METRICS
from suffice.gate.reader import SHIPPED_READER, Reader
from suffice.storage import BadRecords, read_json_records, write_atomically
from suffice.storage.stage_cache import json_line
from suffice.text import title_key, tokens
from suffice.types import Document
from suffice_grade.claims import PageIndex, RuleClaims, parse_pages
from suffice_grade.knowledge_graph import seeded_order
from suffice_grade.llm import LLMClient, ModelClaims, ModelJudge, ModelQuestions
from suffice_grade.pipeline import BenchmarkSettings, build_benchmark
from suffice_grade.stage_protocols import Claim, GeneratedQuestion, question_from_record
from suffice_research.grade.answers import JUDGE_PROMPT, JUDGE_SCHEMA, MIN_F1
from suffice_research.grade.corpora import CORPORA
from suffice_research.grade.readings import FOLDER, wilson
from suffice_research.training.sources import exit_code

SEED = 42
SHARES = {"2wikimultihopqa": 50, "multihop_rag": 25, "everyday": 25}
KINDS = ("chain", "single")  # one path each, so that a model can write a question for it
MAX_TOKENS = {"claims": 1024, "question": 160, "answer": 120, "clear": 24, "judge": 24}
READING = "agreement.jsonl"
# What a person judges, with a verdict for each: right, vague, wrong, none (no output).
READ = tuple(
    f"{who} {what}" for what in ("claims", "question", "answer") for who in ("rules", "model")
)
VERDICTS = ("right", "vague", "wrong", "none")
MIN_SHARED = 0.6  # share of a claim's words that another claim of the same sentence must have


@dataclass
class PromptRecorder:
    """Stands in for a model: records the prompts, and answers nothing, or what is known."""

    answers: Mapping[str, str] = field(default_factory=dict)
    asked: list[tuple[str, Mapping[str, Any] | None]] = field(default_factory=list)
    name = "recorded"

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        self.asked += [(prompt, schema) for prompt in prompts]
        if any(prompt not in self.answers for prompt in prompts):
            raise ModelError("nobody has answered this yet", hint="answer the prompts first")
        return [self.answers[prompt] for prompt in prompts]


@dataclass(frozen=True)
class Item:
    """A generated question, its documents, the claims of its facts, and the rules' output."""

    corpus: str
    question: GeneratedQuestion
    record: Mapping[str, Any]
    documents: tuple[Document, ...]
    claims: tuple[Claim, ...]  # of the facts, in their order
    rule_claims: tuple[Claim, ...]  # of the first document
    rule_answer: str | None


# ----------------------------------------------------------------------------------- prompts


def _claims(item: Item, model: PromptRecorder) -> list[Claim]:
    client = LLMClient(model, retries=0)
    return list(ModelClaims(client).claims(item.documents[:1])[0])


def _question(item: Item, model: PromptRecorder) -> str | None:
    client = LLMClient(model, retries=0)
    (found,) = ModelQuestions(client).write(item.question.paths, [item.claims])
    return found.text if found else None


def _answer(item: Item, model: PromptRecorder) -> str | None:
    """The model's answer alone; `ask` would also hold it against the gate's reader."""
    reader = StepReader(MeteredModel(model, Budget(calls=None, tokens=None)), None)
    passages = [passage_from_document(one) for one in item.documents]
    reader.read(item.question.text, expected_answer_type(item.question.text), passages)
    prompt, _ = model.asked[-1]
    return str(_parsed(model.answers.get(prompt)).get("answer") or "") or None


def _clear(item: Item, model: PromptRecorder) -> bool | None:
    client = LLMClient(model, retries=0)
    (found,) = ModelJudge(client).judge([item.question])
    return None if client.given_up else found.valid


def _judge(item: Item, model: PromptRecorder) -> bool | None:
    prompt = JUDGE_PROMPT.format(
        question=item.question.text, gold=item.question.answer, answer=item.rule_answer or "(none)"
    )
    try:
        (answer,) = model.complete([prompt], schema=JUDGE_SCHEMA)
    except ModelError:
        return None
    said = _parsed(answer).get("correct")
    return said if isinstance(said, bool) else None


ASK: Mapping[str, Callable[[Item, PromptRecorder], Any]] = {
    "claims": _claims,
    "question": _question,
    "answer": _answer,
    "clear": _clear,
    "judge": _judge,
}


def _parsed(answer: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(answer or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def prompts_of(at: int, item: Item) -> Iterator[dict[str, Any]]:
    """The first request of every stage, in the format of the server."""
    for stage, ask in ASK.items():
        model = PromptRecorder()
        ask(item, model)
        for prompt, schema in model.asked[:1]:
            record: dict[str, Any] = {"key": f"{at}/{stage}", "max_tokens": MAX_TOKENS[stage]}
            record["temperature"] = 0
            record["messages"] = [{"role": "user", "content": prompt}]
            if schema is not None:
                wanted = {"name": "answer", "schema": schema}
                record["response_format"] = {"type": "json_schema", "json_schema": wanted}
            yield record


# ---------------------------------------------------------------------------------------- the items


def draw_items(
    corpus: str, documents: Sequence[Document], count: int, folder: Path, *, seed: int = SEED
) -> list[Item]:
    """Generated questions with one path; the numbers of hops take turns."""
    settings = BenchmarkSettings(seed=seed, per_form=200, twins=0, lookalikes=0, forms=KINDS)
    build_benchmark(documents, folder, settings=settings)
    kept = list(load_documents(folder / "documents.jsonl", BadRecords()))
    by_id = {one.doc_id: one for one in kept}
    pages = PageIndex(parse_pages(kept).values(), kept)
    extractor = RuleClaims(pages.by_title, pages.terms)
    records = [
        record.value for record in read_json_records(folder / "questions.jsonl", BadRecords())
    ]
    order = seeded_order(records, lambda one: f"agree {one['question_id']}", seed)
    turns: Counter[int] = Counter()
    ranked = []
    for record in order:
        ranked.append(((turns[record["hops"]], record["hops"]), record))
        turns[record["hops"]] += 1
    ranked.sort(key=lambda pair: pair[0])
    # The stored verdicts on "rules answer" are of a reader by rules, which is gone.
    reader = SpanReader(Reader(SHIPPED_READER).answer)
    items = []
    for _, record in ranked[:count]:
        question = question_from_record(record)
        needed = tuple(by_id[doc_id] for doc_id in question.doc_ids)
        claims = extractor.claims(needed)
        of = {claim.claim_id: claim for some in claims for claim in some}
        facts = [of[one.claim_id] for one in question.paths[0].triples if one.claim_id in of]
        passages = [passage_from_document(one) for one in needed]
        read = reader.read(question.text, expected_answer_type(question.text), passages)
        items.append(Item(corpus, question, record, needed, tuple(facts), claims[0], read.answer))
    return items


def _item_record(item: Item) -> dict[str, Any]:
    return {
        "corpus": item.corpus,
        "question": item.record,
        "documents": [document_record(one) for one in item.documents],
        "claims": [asdict(one) for one in item.claims],
        "rule_claims": [asdict(one) for one in item.rule_claims],
        "rule_answer": item.rule_answer,
    }


def _read_items(path: Path) -> list[Item]:
    if not path.is_file():
        raise InputError(f"{path} is not there", hint="run `prompts` first")
    found = []
    for line in read_json_records(path, BadRecords()):
        one = line.value
        documents = tuple(
            Document(x["doc_id"], x["text"], title=x.get("title") or "") for x in one["documents"]
        )
        claims, rule_claims = (
            tuple(Claim(**x) for x in one[name]) for name in ("claims", "rule_claims")
        )
        question = question_from_record(one["question"])
        answer = one["rule_answer"]
        found.append(
            Item(one["corpus"], question, one["question"], documents, claims, rule_claims, answer)
        )
    return found


def _write_prompts(work: Path, data: Path) -> str:
    items: list[Item] = []
    for corpus, count in SHARES.items():
        documents = (
            CORPORA[corpus](data)
            if corpus in CORPORA
            else list(load(corpus, data / corpus).documents())
        )
        items += draw_items(corpus, documents, count, work / corpus)
    prompts = [prompt for at, item in enumerate(items) for prompt in prompts_of(at, item)]
    write_atomically(work / "items.jsonl", [json_line(_item_record(one)) for one in items])
    write_atomically(work / "prompts.jsonl", map(json_line, prompts))
    return f"{len(items)} items, {len(prompts)} prompts at {work / 'prompts.jsonl'}"


# ------------------------------------------------------------------------------------- the comparison


def compare(work: Path) -> Iterator[dict[str, Any]]:
    """The output of model and rules for each item, with fields for a person's verdicts."""
    items = _read_items(work / "items.jsonl")
    said = {
        str(one.value["key"]): unwrapped(str(one.value.get("text") or ""))
        for one in read_json_records(work / "answers.jsonl", BadRecords())
    }
    for at, item in enumerate(items):
        answers = {
            str(prompt["messages"][0]["content"]): said[prompt["key"]]
            for prompt in prompts_of(at, item)
            if prompt["key"] in said
        }
        found = {stage: ask(item, PromptRecorder(answers)) for stage, ask in ASK.items()}
        yield _compared(at, item, found)


def unwrapped(answer: str) -> str:
    """Unwrap an answer that a small model has put into the schema it was shown."""
    inside = _parsed(answer).get("properties")
    if not isinstance(inside, dict):
        return answer
    given = {name: one for name, one in inside.items() if not isinstance(one, dict)}
    return json.dumps(given) if given else answer


def _compared(at: int, item: Item, found: Mapping[str, Any]) -> dict[str, Any]:
    gold = item.question.answer
    by_sentence = {one.claim_id: one.text for one in item.rule_claims}
    model_claims = {one.claim_id: one.text for one in found["claims"]}
    both = by_sentence.keys() & model_claims.keys()
    alike = sum(_alike(by_sentence[one], model_claims[one]) for one in both)
    return {
        "item": at,
        "corpus": item.corpus,
        "question_id": item.question.question_id,
        "hops": item.question.hops,
        "rules_claims": len(by_sentence),
        "model_claims": len(model_claims),
        "claims_alike": alike,
        "model_question": found["question"] is not None,
        "rules_answer_right": is_right(item.rule_answer, gold),
        "model_answer_right": is_right(found["answer"], gold),
        "answers_alike": title_key(item.rule_answer or "") == title_key(found["answer"] or ""),
        "model_clear": found["clear"],
        "model_judges_right": found["judge"],
        "words": {
            "rules": item.question.text,
            "model": found["question"],
            "gold": gold,
            "rules_answer": item.rule_answer,
            "model_answer": found["answer"],
            "facts": [one.text for one in item.claims],
            "model_claims": list(model_claims.values()),
            "first document": item.documents[0].text[:600],
        },
        "read": dict.fromkeys(READ, ""),
    }


def is_right(answer: str | None, gold: str) -> bool:
    """By the rule of stage three: half of the words."""
    return bool(answer) and bool(ANSWER_METRICS["token_f1"]([answer or ""], [[gold]])[0] >= MIN_F1)


def _alike(one: str, other: str) -> bool:
    first, second = set(tokens(one)), set(tokens(other))
    return len(first & second) >= MIN_SHARED * max(len(first), len(second), 1)


# --------------------------------------------------------------------------------------- verdicts


def summary(path: Path) -> dict[str, Any]:
    """Counts of the verdicts, and how often model, rules and person agree."""
    rows = [record.value for record in read_json_records(path, BadRecords())]
    for row in rows:
        if unknown := {row["read"].get(name) for name in READ} - set(VERDICTS):
            raise InputError(
                f"item {row.get('item')} has the verdict {next(iter(unknown))!r}",
                hint=f"use one of {', '.join(VERDICTS)}",
            )
    verdicts = {name: Counter(row["read"][name] for row in rows) for name in READ}
    read = [row["read"] for row in rows]
    answered = [row for row in rows if row["read"]["rules answer"] != "none"]
    pairs = {
        "both wrote claims that are right, or neither": [
            (one["rules claims"] == "right", one["model claims"] == "right") for one in read
        ],
        "both wrote a question that is right, or neither": [
            (one["rules question"] == "right", one["model question"] == "right") for one in read
        ],
        "both answer right, or neither": [
            (one["rules answer"] == "right", one["model answer"] == "right") for one in read
        ],
        "model finds the rules' question clear, reader finds it right": [
            (row["model_clear"] is True, row["read"]["rules question"] == "right") for row in rows
        ],
        "model judges the rules' answer as the reader does": [
            (row["model_judges_right"] is True, row["read"]["rules answer"] == "right")
            for row in answered
        ],
        "token F1 judges the rules' answer as the reader does": [
            (row["rules_answer_right"], row["read"]["rules answer"] == "right") for row in answered
        ],
        "token F1 judges the model's answer as the reader does": [
            (row["model_answer_right"], row["read"]["model answer"] == "right")
            for row in rows
            if row["read"]["model answer"] != "none"
        ],
    }
    return {
        "items": len(rows),
        "verdicts": {
            name: {one: found[one] for one in VERDICTS} for name, found in verdicts.items()
        },
        "agreement": {
            name: {"same": sum(a == b for a, b in some), "of": len(some), "kappa": _kappa(some)}
            for name, some in pairs.items()
        },
        "claims of the same sentence alike": {
            "alike": sum(row["claims_alike"] for row in rows),
            "rules": sum(row["rules_claims"] for row in rows),
            "model": sum(row["model_claims"] for row in rows),
        },
    }


def _kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa: agreement beyond chance; None if one of the two never varies."""
    if not pairs:
        return None
    n = len(pairs)
    same = sum(a == b for a, b in pairs) / n
    first, second = (sum(pair[at] for pair in pairs) / n for at in (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else round((same - chance) / (1 - chance), 3)


def _show(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{found['items']} items"
    for name, counts in found["verdicts"].items():
        low, high = wilson(counts["right"], found["items"])
        parts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        yield f"  {name:15} {parts}: right {low:.2f} to {high:.2f}"
    for name, one in found["agreement"].items():
        yield f"  {name}: {one['same']} of {one['of']}, kappa {one['kappa']}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="suffice_research.grade.agreement", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    asking = commands.add_parser("prompts", help="draw items, and write what a model is asked")
    asking.add_argument("work", type=Path)
    asking.add_argument("--data", type=Path, default=Path("../shared/data"))
    comparing = commands.add_parser("compare", help="write a sheet to read")
    comparing.add_argument("work", type=Path)
    showing = commands.add_parser("show", help="count the reading")
    showing.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    return exit_code(lambda: _run(chosen))


def _run(chosen: argparse.Namespace) -> None:
    if chosen.command == "prompts":
        print(_write_prompts(chosen.work, chosen.data))
    elif chosen.command == "compare":
        for record in compare(chosen.work):
            print(json.dumps(record, ensure_ascii=False))
    else:
        found = summary(FOLDER / READING)
        print(json.dumps(found, indent=2) if chosen.json else "\n".join(_show(found)))


if __name__ == "__main__":
    sys.exit(main())
