from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.stand_in_server import Reply, drips, fails, garbage, hangs_up, says, send, serving

from suffice.errors import DataError, InputError, ModelError
from suffice.integrations.openai import CachedModel, OpenAIModel
from suffice.ports import LanguageModel

SCHEMA = {"type": "object"}


def model(url: str, **options: Any) -> OpenAIModel:
    return OpenAIModel("stand-in", base_url=url, **{"timeout_s": 5.0, "retries": 0, **options})


def test_a_prompt_goes_out_and_the_answer_comes_back() -> None:
    with serving(says("Sam")) as (url, seen):
        asked = model(url)
        assert isinstance(asked, LanguageModel)
        assert asked.complete(["Who?", "And who else?"]) == ["Sam", "Sam"]
    assert [one["messages"][0]["content"] for one in seen] == ["Who?", "And who else?"]
    assert seen[0]["temperature"] == 0.0
    assert seen[0]["seed"] == 42


def test_a_schema_travels_with_the_request() -> None:
    with serving(says('{"a": 1}')) as (url, seen):
        assert model(url).complete(["Who?"], schema=SCHEMA) == ['{"a": 1}']
    assert seen[0]["response_format"]["json_schema"]["schema"] == SCHEMA


def test_a_server_that_knows_no_schemas_is_asked_without_one() -> None:
    def old(handler: Any, request: dict[str, Any]) -> None:
        (fails(400) if "response_format" in request else says("{}"))(handler, request)

    with serving(old) as (url, seen):
        asked = model(url)
        assert asked.complete(["Who?", "Who?"], schema=SCHEMA) == ["{}", "{}"]
    assert len(seen) == 3  # it is told once


@pytest.mark.parametrize(
    ("reply", "retryable"),
    [(fails(500), True), (fails(429), True), (fails(404), False), (garbage, False), (says(None), True), (hangs_up, True)],
    ids=["500", "429", "404", "garbage", "nothing", "hangs up"],
)
def test_whatever_the_server_does_it_is_a_model_error(reply: Reply, retryable: bool) -> None:
    with serving(reply) as (url, _), pytest.raises(ModelError) as caught:
        model(url).complete(["Who?"])
    assert caught.value.retryable == retryable


def test_an_answer_that_is_no_json_is_refused_where_json_was_asked_for() -> None:
    with serving(says("Sure! Here is the filter:")) as (url, _), pytest.raises(ModelError, match="JSON"):
        model(url).complete(["Who?"], schema=SCHEMA)


def test_a_server_that_drips_is_left_at_the_deadline() -> None:
    started = time.monotonic()
    with serving(drips) as (url, _), pytest.raises(ModelError, match=r"within 0\.3 s"):
        model(url, timeout_s=0.3).complete(["Who?"])
    assert time.monotonic() - started < 3


def test_a_dead_server_is_said_to_be_dead() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ModelError, match="APIConnectionError") as caught:
        model(f"http://127.0.0.1:{port}/v1").complete(["Who?"])
    assert caught.value.retryable


def test_a_request_that_fails_is_tried_again() -> None:
    answers = iter([fails(503), says("Sam")])
    with serving(lambda handler, request: next(answers)(handler, request)) as (url, seen):
        assert model(url, retries=1).complete(["Who?"]) == ["Sam"]
    assert len(seen) == 2


def test_the_key_is_never_shown() -> None:
    secret = "sk-very-secret"

    def tells(handler: Any, request: dict[str, Any]) -> None:
        send(handler, 401, f'{{"error": {{"message": "wrong key: {secret}"}}}}')

    with serving(tells) as (url, _):
        asked = model(url, api_key=secret)
        with pytest.raises(ModelError) as caught:
            asked.complete(["Who?"])
    assert secret not in repr(asked)
    assert secret not in f"{caught.value} {caught.value.hint}"
    assert "OPENAI_API_KEY" in caught.value.hint


@pytest.mark.parametrize("options", [{"timeout_s": 0}, {"retries": -1}, {"max_tokens": 0}])
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        OpenAIModel("m", base_url="http://127.0.0.1:1/v1", **options)
    with pytest.raises(InputError):
        OpenAIModel(" ")


def test_broken_characters_in_a_prompt_are_no_reason_to_fail() -> None:
    with serving(says("fine")) as (url, _):
        assert model(url).complete(["who\ud800?"]) == ["fine"]


# ------------------------------------------------------------------------------------------------------- remembering


class Echo:
    """Answers with the prompt, and counts."""

    name = "echo"

    def __init__(self) -> None:
        self.asked = 0

    def complete(self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None) -> list[str]:
        self.asked += len(prompts)
        return [f"echo {prompt}" for prompt in prompts]


def test_the_same_prompt_is_asked_once_and_outlives_the_process(tmp_path: Path) -> None:
    echo = Echo()
    assert CachedModel(echo, tmp_path / "a" / "answers.db").complete(["x", "x", "y"]) == ["echo x", "echo x", "echo y"]
    assert CachedModel(echo, tmp_path / "a" / "answers.db").complete(["y"]) == ["echo y"]
    assert echo.asked == 2
    CachedModel(echo, tmp_path / "a" / "answers.db").complete(["x"], schema=SCHEMA)
    CachedModel(echo, tmp_path / "a" / "answers.db", name="other").complete(["x"])
    assert echo.asked == 4  # another schema and another model are other questions


def test_prompts_are_kept_as_hashes_and_broken_characters_do_no_harm(tmp_path: Path) -> None:
    assert CachedModel(Echo(), tmp_path / "answers.db").complete(["who\ud800 stole it?"]) == ["echo who? stole it?"]
    assert (tmp_path / "answers.db").read_bytes().count(b"stole it") == 1  # in the answer


def test_a_file_that_is_no_cache_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "answers.db").write_text("something else, long enough to be read as a header of a data base " * 10)
    with pytest.raises(DataError, match="cannot hold"):
        CachedModel(Echo(), tmp_path / "answers.db")
