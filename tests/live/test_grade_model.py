"""`suffice grade --model`, end to end: a real small model behind a real server, and servers on
their bad days.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from tests.commands import as_json, suffice, write_lines
from tests.films import films
from tests.stand_in_server import drips, garbage, hangs_up, says, serving
from typer.testing import Result

from suffice.datasets.jsonl import document_record

# One worker, one server: loading the model twice would cost more than it proves.
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("llm")]


def written(path: Path, *, short: bool = False) -> Path:
    return write_lines(path, (document_record(one) for one in films(short=short)))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return written(tmp_path / "corpus.jsonl")


def grade(corpus: Path, out: Path, url: str, *words: str, timeout_s: float = 30) -> Result:
    model_options = ["--model", "stand-in", "--base-url", url, "--timeout-s", str(timeout_s)]
    chains = ["--forms", "chain", "--per-hop", "4", "--json"]
    return suffice("grade", corpus, "--out", out, *model_options, *chains, *words)


def answers(out: Path) -> int:
    with closing(sqlite3.connect(out / "answers.db")) as db:
        count: int = db.execute("SELECT count(*) FROM answers").fetchone()[0]
    return count


def prompts(seen: list[dict[str, Any]]) -> set[str]:
    """What a server was asked, whether once or again."""
    return {request["messages"][0]["content"] for request in seen}


# ---- a real server


# On a slow core the model reads and writes some thirty tokens a second: what it is asked is
# counted.
@pytest.mark.parametrize(
    ("by_model", "requests"),
    [("claims", 3), ("questions,validation", 5)],
    ids=["reads documents", "writes and judges questions"],
)
def test_a_real_model_does_its_part_and_sound_questions_come_out(
    by_model: str, requests: int, server: str, tmp_path: Path
) -> None:
    """A model of 135 million parameters: what it cannot put into JSON, and what is beyond the
    budget, rules do instead.
    """
    corpus, out = written(tmp_path / "short.jsonl", short=True), tmp_path / "made"
    limits = f"--max-requests {requests} --fallback --max-tokens 64 --longest 2 --per-hop 1"
    words = f"--model-stages {by_model} {limits}".split()
    result = grade(corpus, out, server, *words, timeout_s=240)
    found = as_json(result)
    assert found["counts"]["documents"] == 20
    assert found["counts"]["valid"] > 0
    assert answers(out) <= requests
    assert (
        answers(out) > 0 or by_model == "claims"
    )  # "is this question clear?" has a short answer, a claim may have none
    assert re.search(r"asked stand-in \d+ times", result.stderr)
    ids = {one.doc_id for one in films()}
    for line in (out / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        assert len(one["gold"]) == one["hops"] >= 2
        assert set(one["gold"]) <= ids
        assert one["answer"] not in one["question"]
    kept = answers(out)
    assert as_json(grade(corpus, out, server, *words, timeout_s=240))["done"] == []
    assert answers(out) == kept


# ---- bad days


def reader(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    """A model that puts the title in place of a pronoun, and finds every question clear."""
    prompt = request["messages"][0]["content"]
    title = "".join(re.findall(r"^Title: <<<(.*)>>>$", prompt, re.MULTILINE))
    numbered = re.findall(r"^(\d+)\. (.*)$", prompt, re.MULTILINE)
    claims = [
        {"sentence": int(at), "claim": re.sub("^(She|He|It) ", f"{title} ", text)}
        for at, text in numbered
    ]
    says(json.dumps({"clear": True} if '"clear"' in prompt else {"claims": claims}))(
        handler, request
    )


MIXED = ("--model-stages", "claims,validation")


def test_a_server_that_dies_half_way_loses_nothing_that_was_done(
    corpus: Path, tmp_path: Path
) -> None:
    answered = 0

    def dying(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        nonlocal answered
        answered += 1
        (reader if answered <= 12 else hangs_up)(handler, request)

    with serving(dying) as (url, _):
        broken = grade(corpus, tmp_path / "broken", url, *MIXED)
    assert broken.exit_code == 1
    assert "times in a row" in broken.stderr
    assert "run the same command again" in broken.stderr
    assert answers(tmp_path / "broken") == 12
    with serving(reader) as (url, seen):
        again = as_json(grade(corpus, tmp_path / "broken", url, *MIXED))
        asked_again = prompts(seen)
    with serving(reader) as (url, seen):
        whole = as_json(grade(corpus, tmp_path / "whole", url, *MIXED))
    assert asked_again < prompts(seen)
    assert len(asked_again) == len(prompts(seen)) - 12
    assert again["counts"] == whole["counts"]
    questions = [(tmp_path / name / "questions.jsonl").read_bytes() for name in ("broken", "whole")]
    assert questions[0] == questions[1]


def test_a_spent_budget_is_taken_up_again_with_a_larger_one(corpus: Path, tmp_path: Path) -> None:
    with serving(reader) as (url, seen):
        spent = grade(corpus, tmp_path / "made", url, *MIXED, "--max-requests", "7")
        assert (spent.exit_code, len(seen)) == (1, 7)
        assert "budget" in spent.stderr
        assert (
            as_json(grade(corpus, tmp_path / "made", url, *MIXED, "--max-requests", "100"))[
                "counts"
            ]["valid"]
            > 0
        )


@pytest.mark.parametrize(
    "reply",
    [garbage, drips, hangs_up, says("no JSON here"), says('{"claims": [{"sentence": "x"}]}')],
)
def test_whatever_the_server_does_rules_can_go_on(reply: Any, corpus: Path, tmp_path: Path) -> None:
    with serving(reply) as (url, _):
        result = grade(corpus, tmp_path / "made", url, "--fallback", timeout_s=0.5)
    assert set(as_json(result)["by_hops"]) >= {"2", "3"}
    assert "rules took over from the model" in result.stderr
