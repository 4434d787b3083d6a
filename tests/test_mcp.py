"""The MCP server, asked by the real client: in memory, and as a process over stdio."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bridge_question import DIRECTOR, FILM, QUESTION, WRONG

pytest.importorskip("mcp", reason="MCP is not installed: pip install 'suffice[mcp]'")

from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client

from suffice.gate.gate import Gate
from suffice.integrations.mcp import MAX_PASSAGES, create_server
from suffice.library import Library
from suffice.types import Document

SHORT = [{"title": title, "text": text} for title, text in (FILM, WRONG)]


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate.load(preset="fast")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    documents = [Document(title, text, title) for title, text in (FILM, WRONG, DIRECTOR)]
    with Library.build(tmp_path_factory.mktemp("mcp") / "library", documents) as lib:
        yield lib


def run_client(made: Any, story: Callable[[Client], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with Client(made) as client:
            return await story(client)

    return asyncio.run(run())


def call(made: Any, tool: str, **arguments: Any) -> Any:
    return run_client(made, lambda client: client.call_tool(tool, arguments))


def test_insufficient_passages_name_what_is_missing(gate: Gate) -> None:
    reply = call(create_server(gate), "check_context", question=QUESTION, passages=SHORT)
    assert not reply.is_error
    assert reply.structured_content["action"] == "abstain"
    assert reply.structured_content["missing"] == ["Fritz Lang"]
    texts = [FILM[1], DIRECTOR[1]]
    mixed = call(
        create_server(gate),
        "check_context",
        question=QUESTION,
        passages=[texts[0], {"text": texts[1], "score": 2}],
    )
    assert mixed.structured_content["p_complete"] > reply.structured_content["p_complete"]
    nothing = call(create_server(gate), "check_context", question=QUESTION, passages=[])
    assert nothing.structured_content["p_complete"] < 0.01


def test_a_library_completes_the_context(gate: Gate, library: Library) -> None:
    reply = call(
        create_server(gate, library), "complete_context", question=QUESTION, k=5
    ).structured_content
    assert [one["title"] for one in reply["passages"]] == [FILM[0], DIRECTOR[0]]
    assert (reply["verdict"]["action"], reply["stopped"]) == ("answer", "the gate says answer")


def test_a_client_learns_which_tools_there_are_and_that_they_only_read(
    gate: Gate, library: Library
) -> None:
    async def names(client: Client) -> dict[str, Any]:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    assert list(run_client(create_server(gate), names)) == ["check_context"]
    tools = run_client(create_server(gate, library), names)
    assert list(tools) == ["check_context", "complete_context"]
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert set(tools["check_context"].input_schema["required"]) == {"question", "passages"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"question": QUESTION},
        {"question": "", "passages": []},
        {"question": "x" * 5_000, "passages": []},
        {"question": QUESTION, "passages": "one text"},
        {"question": QUESTION, "passages": [3]},
        {"question": QUESTION, "passages": [{"title": "no text"}]},
        {"question": QUESTION, "passages": [{"text": "x", "titel": "y"}]},
        {"question": QUESTION, "passages": [], "questions": QUESTION},
        {"question": QUESTION, "passages": [{"text": "x", "score": "high"}]},
        {"question": QUESTION, "passages": ["x"] * (MAX_PASSAGES + 1)},
        {"question": QUESTION, "passages": ["x" * 200_000]},
    ],
)
def test_what_is_wrong_or_too_much_is_refused_in_words(
    gate: Gate, arguments: dict[str, Any]
) -> None:
    refused = call(create_server(gate), "check_context", **arguments)
    assert refused.is_error
    assert "question" in refused.content[0].text or "passages" in refused.content[0].text


def test_an_error_of_ours_reaches_the_model_with_its_hint(gate: Gate) -> None:
    from suffice.errors import NotReadyError

    class Away:
        def complete(self, *_: Any, **__: Any) -> Any:
            raise NotReadyError("the library is gone", hint="build it again")

        def get(self, doc_ids: Any) -> Any:
            return []

    refused = call(create_server(gate, Away()), "complete_context", question=QUESTION)
    assert refused.is_error
    assert "the library is gone. build it again" in refused.content[0].text


def test_the_command_serves_over_stdio_and_says_nothing_else_there(library: Library) -> None:
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "suffice", "mcp", "--library", str(library.path), "--preset", "fast"],
        env=dict(os.environ),
    )

    async def story(client: Client) -> tuple[Any, Any]:
        checked = await client.call_tool("check_context", {"question": QUESTION, "passages": SHORT})
        return checked, await client.call_tool("complete_context", {"question": QUESTION})

    with Path(os.devnull).open("w") as quiet:
        checked, completed = run_client(stdio_client(started, errlog=quiet), story)
    assert checked.structured_content["missing"] == ["Fritz Lang"]
    assert completed.structured_content["verdict"]["action"] == "answer"
