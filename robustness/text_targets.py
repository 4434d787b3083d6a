"""Fuzzing targets: questions, options, filters, answers of models and of servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from tests.small_world import BRIDGE, FILMS, TinyLibrary, Wants

from robustness.loader_targets import HIT, shipped_gate
from robustness.mutations import Input, Seed
from robustness.targets import OpenTarget, Target, TargetFiles, text_target
from suffice.answering.ask import ask
from suffice.answering.budget import Budget
from suffice.cli import output
from suffice.cli.check import _read_hits
from suffice.cli.output import parse_day, parse_numbers, parse_prices
from suffice.engines.qdrant.schema import document_from_payload
from suffice.errors import InputError
from suffice.evaluation.ci_thresholds import parse_thresholds
from suffice.retrieval.filters import ModelExtractor, parse_filter
from suffice.retrieval.metadata import Vocabulary
from suffice.text import DateRange, date_mentions, names, question_dates, sentences, title_key
from suffice_grade.claims import PageIndex
from suffice_grade.llm import (
    LLMClient,
    ModelClaims,
    ModelEquivalences,
    ModelJudge,
    ModelQuestions,
    ModelTriples,
)
from suffice_grade.stage_protocols import Claim, GeneratedQuestion, Triple
from suffice_grade.stage_protocols import ReasoningPath as Chain

__all__ = ["TEXT_TARGETS"]

TODAY = date(2023, 12, 1)
KNOWN = Vocabulary(
    {
        "source": ["The Verge", "Fox News - Health", "Engadget"],
        "category": ["technology", "health"],
        "entities": ["Ada Lovelace", "Apple"],
        "published_at": ["2023-10-07", "2023-10-30", "2023-12-01"],
    },
    ["Ada Lovelace", "Dog Law"],
)


def _seeds(*texts: str) -> tuple[Seed, ...]:
    return tuple(Seed("text", one.encode()) for one in texts)


@dataclass(frozen=True)
class ScriptedModel:
    """A model that always gives the same answer."""

    answer: str
    name: str = "says"

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        return [self.answer] * len(prompts)


# ---- people


def _filters(text: str) -> None:
    parse_filter(
        output.parse_filter(text) if text != "auto" else {}, KNOWN, skip_unknown=len(text) % 2 == 0
    )


def _questions(text: str) -> None:
    """Dates, names and sentences of a question, and what it mentions of a corpus."""
    date_mentions(text), names(text), sentences(text), title_key(text)
    question_dates(
        text,
        span=DateRange(date(1, 1, 1), date(9999, 12, 31)),
        today=date.max if len(text) % 2 else date.min,
    )
    KNOWN.mentions([text], today=TODAY)


def _options(text: str) -> None:
    """Command options with their own grammar; at least one must accept it."""
    left = 4
    for read in (parse_thresholds, parse_numbers, parse_prices, parse_day):
        try:
            read([text] if read is parse_thresholds else text)  # type: ignore[arg-type]
        except InputError:
            left -= 1
    if not left:
        raise InputError("no option reads so")


@contextmanager
def _hits(folder: Path) -> Iterator[OpenTarget]:
    """The hits of one question: `suffice check --hits`, and the shapes that a retriever may return."""
    seeds = (
        Seed(
            "hits.json",
            json.dumps(
                [HIT, "Mary taught.", {"id": 3, "content": "x", "metadata": {"date": "1843"}}]
            ).encode(),
        ),
        Seed(
            "hits.json",
            json.dumps(
                {"hits": [["a1", "Ada wrote.", 2.5], ["Ada", 1], {"_id": "b", "text": ["a", "b"]}]}
            ).encode(),
        ),
    )
    files, gate = TargetFiles(folder, seeds), shipped_gate()

    def read(given: Input) -> bool:
        return gate.check("Who taught Ada Lovelace?", _read_hits(files.put(given))).p_complete >= 0

    yield OpenTarget(seeds, read)


# ---- models


def _journey(text: str) -> None:
    """A model's plans, readings and reviews: whatever it says, `ask` ends, with or without an
    answer.
    """
    ask(
        BRIDGE,
        TinyLibrary(),
        Wants("lothair", "ermengarde"),
        ScriptedModel(text),
        budget=Budget(rounds=2, calls=6),
    )


def _extracted(text: str) -> None:
    ModelExtractor(ScriptedModel(text), KNOWN, today=TODAY).extract(
        ["What did The Verge write on October 7, 2023?"]
    )


CLAIM = Claim("dog#0", "dog", "Dog Law", "Dog Law was directed by Jerome Storm.", FILMS[0].text)
CHAIN = Chain(
    (
        Triple("Dog Law", "director", "Jerome Storm", "dog", "dog#0"),
        Triple("Jerome Storm", "born", "November 11, 1890", "storm", "storm#0"),
    )
)
MADE = GeneratedQuestion(
    "q1",
    "When was the director of Dog Law born?",
    "November 11, 1890",
    "chain",
    2,
    (CHAIN,),
    ("dog", "storm"),
    None,
)


def _graded(text: str) -> None:
    """A model's claims, triples, equivalences, questions and judgements."""
    client = LLMClient(ScriptedModel(text), fallback=True, retries=0)
    ModelClaims(client).claims(FILMS[:2])
    ModelTriples(client, pages=PageIndex((), FILMS)).triples([CLAIM])
    ModelEquivalences(client).equivalences(0, CHAIN.triples, [CLAIM])
    ModelQuestions(client).write([CHAIN], [[CLAIM, CLAIM]])
    ModelJudge(client).judge([MADE])


# ---- servers


def _points(text: str) -> None:
    """What a Qdrant server returns."""
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("no JSON: the client refuses it") from error
    document_from_payload(payload)


@contextmanager
def _mcp(folder: Path) -> Iterator[OpenTarget]:
    """Calls of the MCP tool, as the protocol passes them."""
    from mcp.server.mcpserver.exceptions import ToolError

    from suffice.integrations.mcp import create_server

    made, loop = create_server(shipped_gate()), asyncio.new_event_loop()
    seeds = _seeds(
        json.dumps(
            {
                "question": "Who taught Ada?",
                "passages": ["Mary taught.", {"text": "x", "title": "Ada", "score": 1.5}],
            }
        )
    )

    def read(given: Input) -> bool:
        try:
            arguments = json.loads(given.content)
        except (ValueError, RecursionError):
            return False
        if not isinstance(arguments, dict):
            return False
        try:
            loop.run_until_complete(made.call_tool("check_context", arguments))
        except ToolError as error:
            if error.__cause__ is not None and type(error.__cause__).__module__ == "builtins":
                raise error.__cause__ from None
            return False
        return True

    yield OpenTarget(seeds, read)
    loop.close()


PLAN = {
    "steps": ["Who was the mother of Lothair II?", "When did #1 die?"],
    "answer": "851",
    "sentences": [1, 2],
}
REVIEW = {
    "support": "attributable",
    "accuracy": 0.9,
    "question": "When did #1 die?",
    "answer": None,
    "supported": True,
}
FILTER = (
    '{"source": {"$in": ["The Verge", null]}, "published_at": {"$gte": "2023-10-01", '
    '"$lt": "May 2024"}, "category": "health"}'
)
GRADED = {
    "claims": [{"sentence": 1, "claim": "Dog Law was directed by Jerome Storm."}],
    "consistent": [True],
    "triples": [
        {"claim": 1, "subject": "Dog Law", "relation": "director", "object": "Jerome Storm"}
    ],
    "groups": [{"names": ["Jerome Storm", "Storm"], "always": True}],
    "question": "When was the director of Dog Law born?",
    "answer": "November 11, 1890",
    "clear": "yes",
}
POINT = {
    "id": "a1", "text": "Ada wrote.", "title": "Ada", "published_at": "1843-07-10", "entities": ["Ada"],
    "named": ["Ada", "Ada"], "extra": '{"pages": [1, 2]}', "parent": "a", "source": "The Times",
}  # fmt: skip

TEXT_TARGETS: Sequence[Target] = (
    text_target(
        "filters",
        "metadata filters, as JSON on the command line",
        _seeds(
            FILTER,
            (
                '{"$and": [{"source": "Fox News"}, {"published_at": {"$nin": ["2023"]}}], '
                '"entities": {"$ne": "Apple"}}'
            ),
        ),
        _filters,
    ),
    text_target(
        "questions",
        "dates, ranges, names and sources in a question",
        _seeds(
            "What did The Verge write between October 7, 2023 and 30 October 2023, not Fox News?",
            (
                "Was it before last month, since 1999, in the 2010s, three weeks ago, or on "
                "2023-10-07T12:00:00?"
            ),
            "Who directed Dog Law, not by Engadget, yesterday or in the first half of December?",
        ),
        _questions,
    ),
    text_target(
        "options",
        "--fail-if, --k, --prices, --today",
        _seeds(
            "risk@0.1>0.2, auroc<0.8", "auroc<=.75,brier>=1e-3", "2,4,8", "0.15,0.60", "2023-12-01"
        ),
        _options,
    ),
    Target("hits", "texts", "the hits of one question, in any usual shape", _hits),
    text_target(
        "replies: journeys",
        "a language model's plans, readings and reviews",
        _seeds(json.dumps(PLAN), json.dumps(REVIEW), f"Sure!\n```json\n{json.dumps(PLAN)}\n```"),
        _journey,
    ),
    text_target(
        "replies: filters",
        "a language model's filters",
        _seeds(FILTER, "{'source': {'$in': ['The Verge']}}"),
        _extracted,
    ),
    text_target(
        "replies: grading",
        "a language model's claims, triples and questions",
        _seeds(json.dumps(GRADED)),
        _graded,
    ),
    text_target("qdrant points", "payloads of a Qdrant server", _seeds(json.dumps(POINT)), _points),
    Target("mcp", "texts", "calls of the MCP tool", _mcp),
)
