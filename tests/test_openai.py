from __future__ import annotations

import json
import logging
import socket
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.stand_in_server import Reply, drips, fails, garbage, hangs_up, says, send, serving

from suffice.errors import DataError, InputError, ModelError
from suffice.integrations.openai import CachedModel, OpenAIModel
from suffice.protocols import LanguageModel

SCHEMA = {"type": "object"}


def model(url: str, **options: Any) -> OpenAIModel:
    return OpenAIModel("stand-in", base_url=url, **{"timeout_s": 5.0, "retries": 0, **options})


def test_a_prompt_goes_out_and_the_answer_comes_back() -> None:
    with serving(says("Sam")) as (url, seen):
        client = model(url)
        assert isinstance(client, LanguageModel)
        assert client.complete(["Who?", "And who else?"]) == ["Sam", "Sam"]
    assert {one["messages"][0]["content"] for one in seen} == {"Who?", "And who else?"}
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
        client = model(url, concurrency=1)
        assert client.complete(["Who?", "Who?"], schema=SCHEMA) == ["{}", "{}"]
    assert len(seen) == 3  # it is told once


def test_a_request_that_is_refused_without_a_schema_too_says_nothing_about_schemas() -> None:
    """Too long, say: the next one may still have its schema."""

    def narrow(handler: Any, request: dict[str, Any]) -> None:
        (fails(400) if len(request["messages"][0]["content"]) > 10 else says("{}"))(
            handler, request
        )

    with serving(narrow) as (url, seen):
        client = model(url)
        with pytest.raises(ModelError, match="400"):
            client.complete(["Who is it, after all?"], schema=SCHEMA)
        client.complete(["Who?"], schema=SCHEMA)
    assert ["response_format" in one for one in seen] == [True, False, True]


@pytest.mark.parametrize(
    ("reply", "retryable"),
    [
        (fails(500), True),
        (fails(429), True),
        (fails(404), False),
        (fails(429, '{"error": {"code": "insufficient_quota"}}'), False),
        (garbage, False),
        (says(None), True),
        (hangs_up, True),
    ],
    ids=["500", "429", "404", "no money", "garbage", "nothing", "hangs up"],
)
def test_whatever_the_server_does_it_is_a_model_error(reply: Reply, retryable: bool) -> None:
    with serving(reply) as (url, _), pytest.raises(ModelError) as caught:
        model(url).complete(["Who?"])
    assert caught.value.retryable == retryable


def test_an_answer_that_is_not_json_is_repaired_once() -> None:
    answers = iter([says("Sure! Here is the filter:"), says('{"a": 1}')])
    with serving(lambda handler, request: next(answers)(handler, request)) as (url, seen):
        assert model(url).complete(["Who?"], schema=SCHEMA) == ['{"a": 1}']
    assert [one["role"] for one in seen[1]["messages"]] == ["user", "assistant", "user"]
    assert seen[1]["messages"][1]["content"] == "Sure! Here is the filter:"
    assert "response_format" in seen[1]


@pytest.mark.parametrize(("repairs", "requests"), [(0, 1), (1, 2)])
def test_an_answer_that_stays_no_json_is_refused(repairs: int, requests: int) -> None:
    with (
        serving(says("Sure! Here is the filter:")) as (url, seen),
        pytest.raises(ModelError, match="JSON"),
    ):
        model(url, repairs=repairs).complete(["Who?"], schema=SCHEMA)
    assert len(seen) == requests


def test_a_server_that_drips_is_left_at_the_deadline() -> None:
    started = time.monotonic()
    with serving(drips) as (url, _), pytest.raises(ModelError, match=r"within 0\.3 s"):
        model(url, timeout_s=0.3).complete(["Who?"])
    assert time.monotonic() - started < 3


def test_a_dead_server_is_reported() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ModelError, match=r"APIConnectionError.*refused") as caught:
        model(f"http://127.0.0.1:{port}/v1").complete(["Who?"])
    assert caught.value.retryable


# ---- again


def test_a_request_that_fails_is_tried_again() -> None:
    answers = iter([fails(503), hangs_up, says("Sam")])
    with serving(lambda handler, request: next(answers)(handler, request)) as (url, seen):
        assert model(url, retries=2).complete(["Who?"]) == ["Sam"]
    assert len(seen) == 3


# ---- several


def test_prompts_go_side_by_side_up_to_a_limit_and_answers_keep_their_order() -> None:
    now, most, lock = 0, 0, threading.Lock()

    def slow_echo(handler: Any, request: dict[str, Any]) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        word = request["messages"][0]["content"]
        time.sleep(0.25 if word == "0" else 0.1)  # the first is the slowest
        with lock:
            now -= 1
        says(word)(handler, request)

    with serving(slow_echo) as (url, _):
        assert model(url, concurrency=3).complete([str(n) for n in range(7)]) == [
            str(n) for n in range(7)
        ]
    assert most == 3


def test_each_answer_is_kept_though_another_fails(tmp_path: Path) -> None:
    def picky(handler: Any, request: dict[str, Any]) -> None:
        word = request["messages"][0]["content"]
        (fails(404) if word == "bad" else says(word))(handler, request)

    with serving(picky) as (url, seen):
        cached = CachedModel(model(url), tmp_path / "answers.db")
        with pytest.raises(ModelError, match="404"):
            cached.complete(["bad", "a", "b", "c"])
        assert cached.complete(["a", "b", "c"]) == ["a", "b", "c"]
    assert len(seen) == 4


# ---- what it costs


def counted(handler: Any, request: dict[str, Any]) -> None:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": "Sam"},
    }
    send(
        handler,
        200,
        json.dumps({"choices": [choice], "usage": {"prompt_tokens": 70, "completion_tokens": 5}}),
    )


def test_tokens_are_counted() -> None:
    with serving(counted) as (url, _):
        client = model(url)
        client.complete(["Who?", "Who else?"])
        assert client.last_tokens == (140, 10)
        with pytest.raises(ModelError, match="JSON"):
            client.complete(["Who?"], schema=SCHEMA)
        assert client.last_tokens == (140, 10)  # the repair is paid for, too


# ---- the key


def test_the_key_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    secret = "sk-very-secret"

    def tells(handler: Any, request: dict[str, Any]) -> None:
        send(handler, 401, f'{{"error": {{"message": "wrong key: {secret}"}}}}')

    with serving(tells) as (url, _), caplog.at_level(logging.DEBUG):
        client = model(url, api_key=secret)
        with pytest.raises(ModelError) as caught:
            client.complete(["Who?"])
    assert secret not in repr(client)
    assert secret not in caplog.text
    assert secret not in "".join(traceback.format_exception(caught.value)) + caught.value.hint
    assert "OPENAI_API_KEY" in caught.value.hint


def test_a_password_in_the_address_is_not_shown_either() -> None:
    client = model("http://me:very-secret@127.0.0.1:9/v1?key=very-secret")
    with pytest.raises(ModelError) as caught:
        client.complete(["Who?"])
    assert "very-secret" not in f"{client!r} {caught.value}"
    assert "127.0.0.1:9" in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"timeout_s": 0}, {"retries": -1}, {"repairs": -1}, {"concurrency": 0}, {"max_tokens": 0}],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        OpenAIModel("m", base_url="http://127.0.0.1:1/v1", **options)
    with pytest.raises(InputError):
        OpenAIModel(" ")
    with pytest.raises(InputError, match="not an address"):
        OpenAIModel("m", base_url="localhost:8080")


def test_broken_characters_in_a_prompt_are_no_reason_to_fail() -> None:
    with serving(says("fine")) as (url, _):
        assert model(url).complete(["who\ud800?"]) == ["fine"]


# ---- remembering


class Echo:
    """Answers with the prompt, and counts."""

    name = "echo"

    def __init__(self) -> None:
        self.calls = 0

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        self.calls += len(prompts)
        return [f"echo {prompt}" for prompt in prompts]


def test_the_same_prompt_is_asked_once_and_outlives_the_process(tmp_path: Path) -> None:
    echo = Echo()
    assert CachedModel(echo, tmp_path / "a" / "answers.db").complete(["x", "x", "y"]) == [
        "echo x",
        "echo x",
        "echo y",
    ]
    assert CachedModel(echo, tmp_path / "a" / "answers.db").complete(["y"]) == ["echo y"]
    assert echo.calls == 2
    CachedModel(echo, tmp_path / "a" / "answers.db").complete(["x"], schema=SCHEMA)
    CachedModel(echo, tmp_path / "a" / "answers.db", name="other").complete(["x"])
    assert echo.calls == 4  # another schema and another model are other questions


def test_prompts_are_kept_as_hashes_and_broken_characters_do_no_harm(tmp_path: Path) -> None:
    assert CachedModel(Echo(), tmp_path / "answers.db").complete(["who\ud800 stole it?"]) == [
        "echo who? stole it?"
    ]
    assert (tmp_path / "answers.db").read_bytes().count(b"stole it") == 1  # in the answer


def test_a_file_that_is_not_a_cache_is_refused(tmp_path: Path) -> None:
    (tmp_path / "answers.db").write_text(
        "something else, long enough to be read as a header of a data base " * 10
    )
    with pytest.raises(DataError, match="cannot hold"):
        CachedModel(Echo(), tmp_path / "answers.db")
