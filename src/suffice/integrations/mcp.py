"""MCP: the gate as tools that a language model or an agent can call before it answers.

    check_context       question and passages in, verdict out: enough? what is missing? what next?
    complete_context    question in; searches a library until the gate is satisfied, if there is one

`suffice mcp` serves both over stdio. Input is bounded, and errors tell the model what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Protocol

from suffice.answering.expand import Completion, check_gate
from suffice.errors import InputError, MissingExtraError, SufficeError, known_arguments
from suffice.evaluation.verdict_log import VerdictLog
from suffice.integrations.common import GatedDocuments, Guard
from suffice.protocols import GateLike
from suffice.types import DocId, Document

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.types import ToolAnnotations
    from pydantic import BaseModel, ConfigDict, Field
except ImportError as error:
    raise MissingExtraError("the MCP server", extra="mcp") from error

__all__ = ["Passage", "create_server"]

MAX_QUESTION, MAX_PASSAGES, MAX_TEXT, MAX_K = 4_000, 200, 100_000, 50
INSTRUCTIONS = (
    "Tells whether the passages at hand hold everything that a multi-hop question needs, before "
    "an answer is written. Call check_context with the question and the passages. On 'answer', "
    "answer from them. On 'expand', search for next_queries (without any: for more passages on the "
    "question), add what is found, and check again. On 'abstain', say what is missing instead of "
    "guessing. Where 'unfamiliar' is not empty, the gate does not know such texts: judge yourself."
)


class Passage(BaseModel):
    """One retrieved passage."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(max_length=MAX_TEXT)
    title: str = Field(default="", max_length=MAX_QUESTION, description="The page's title, if any.")
    id: str | None = Field(default=None, max_length=MAX_QUESTION)
    score: float | None = Field(
        default=None, description="The retriever's, higher is better, on any scale."
    )


QuestionArg = Annotated[
    str,
    Field(min_length=1, max_length=MAX_QUESTION, description="The question as the user put it."),
]
PassagesArg = Annotated[
    list[Annotated[str, Field(max_length=MAX_TEXT)] | Passage],
    Field(max_length=MAX_PASSAGES, description="Retrieved texts, or text and title, best first."),
]
LimitArg = Annotated[int, Field(ge=1, le=MAX_K, description="Maximal number of passages.")]


class CompletingLibrary(Protocol):
    """The part of a library that the server needs."""

    def complete(self, question: str, gate: GateLike, *, k: int = ...) -> Completion: ...
    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]: ...


@known_arguments
def create_server(
    gate: GateLike, library: CompletingLibrary | None = None, *, log: VerdictLog | None = None
) -> MCPServer:
    """The server with its tools; `create_server(gate).run()` serves over stdio.

    The verdicts of check_context also go to the `log`; the agent decides what to do with them.
    """
    check_gate(gate)
    if library is not None and not callable(getattr(library, "complete", None)):
        hint = "suffice.Library.open(PATH)"
        raise InputError(f"the library is {library!r:.80}, expected a suffice.Library", hint=hint)
    guard = Guard(gate, "mcp", act=False, log=log)

    def check_context(question: QuestionArg, passages: PassagesArg) -> dict[str, Any]:
        """Are these passages enough to answer the question? Says answer, expand or abstain, the
        probability, what is missing and what to search for next; the sentences that seem to be
        evidence (quotes); familiarity, and where it is low why; what was not read (notes). An empty
        list is fine."""
        with _tool_errors():
            hits = [one if isinstance(one, str) else one.model_dump() for one in passages]
            (verdict,) = gate.check_batch([(question, hits)])
            guard.write_log(question, GatedDocuments(hits, verdict))
            return verdict.as_json()

    def complete_context(question: QuestionArg, k: LimitArg = 10) -> dict[str, Any]:
        """Search the library until the passages are enough for the question, and return them with
        the verdict."""
        if library is None:
            raise ToolError("there is no library")
        with _tool_errors():
            return _completion_json(library.complete(question, gate, k=k), library)

    tools = [_strict_tool(check_context)]
    if library is not None:
        tools.append(_strict_tool(complete_context))
    return MCPServer("suffice", instructions=INSTRUCTIONS, log_level="WARNING", tools=tools)


def _strict_tool(function: Callable[..., Any]) -> Tool:
    """A tool that refuses arguments that it does not know; the package ignores them by default."""
    hints = {"read_only_hint": True, "idempotent_hint": True, "open_world_hint": False}
    tool = Tool.from_function(function, annotations=ToolAnnotations(**hints))
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    return tool.model_copy(update={"parameters": arguments.model_json_schema(by_alias=True)})


def _completion_json(completion: Completion, library: CompletingLibrary) -> dict[str, Any]:
    documents = library.get([hit.doc_id for hit in completion.hits])
    found = [document for document in documents if document is not None]
    return {
        "passages": [{"id": one.doc_id, "title": one.title, "text": one.text} for one in found],
        "verdict": completion.verdict.as_json(),
        "stopped": str(completion.stopped),
    }


@contextmanager
def _tool_errors() -> Iterator[None]:
    """Show the model our errors with hints; otherwise it learns only that a call failed."""
    try:
        yield
    except SufficeError as error:
        raise ToolError(f"{error.message}. {error.hint}" if error.hint else str(error)) from error
