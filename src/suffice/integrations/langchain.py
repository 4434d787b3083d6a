"""LangChain: a retriever whose documents pass only when they are enough.

    retriever = GatedRetriever(retriever=retriever)          in place of the retriever that is there
    found = retriever.with_verdict().invoke(question)        {"question", "documents", "verdict"}, for a chain that branches

Documents that pass carry the verdict in `metadata["suffice"]`. The retriever inside may be any Runnable from a question to a
list of documents. With a budget it is asked again, for what is missing.
"""

from __future__ import annotations

from typing import Any

from suffice.answering.expand import ExpansionBudget
from suffice.errors import MissingExtraError
from suffice.integrations.common import (
    METADATA_KEY,
    GatedDocuments,
    load_gate,
    search_and_check,
    search_and_check_async,
    verdict_metadata,
)

try:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
    from pydantic import Field, PrivateAttr
except ImportError as error:
    raise MissingExtraError("the gate for LangChain", extra="langchain") from error

__all__ = ["GatedRetriever"]


class GatedRetriever(BaseRetriever):
    """What the retriever finds, where the gate says that it is enough; otherwise an empty list.

    `gate` is a Gate, the path of a saved one, or None for the one that ships. With `hold_back=False` all documents go on, and
    only their mark says what the gate thinks. A `budget` lets it ask the retriever for what is missing.
    """

    retriever: Any = Field(
        description="Any retriever, or another Runnable from a question to documents."
    )
    gate: Any = Field(default=None, repr=False)  # its whole inside would fill a screen
    budget: ExpansionBudget | None = None
    hold_back: bool = True
    _opened: Any = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        self._opened = load_gate(self.gate)  # a wrong path is told now, not at the first question

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._passed(self._check(query, {"callbacks": run_manager.get_child()}))

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._passed(await self._acheck(query, {"callbacks": run_manager.get_child()}))

    def with_verdict(self) -> Runnable[str, dict[str, Any]]:
        """The same as a Runnable that holds nothing back: question, documents and verdict, the latter also for no documents."""

        def check(question: str, config: RunnableConfig) -> dict[str, Any]:
            return _as_dict(question, self._check(question, config))

        async def acheck(question: str, config: RunnableConfig) -> dict[str, Any]:
            return _as_dict(question, await self._acheck(question, config))

        return RunnableLambda(check, acheck, name="GatedRetriever")

    def _check(self, question: str, config: RunnableConfig) -> GatedDocuments[Document]:
        return search_and_check(
            question,
            lambda queries: self.retriever.batch(list(queries), config),
            self._opened,
            budget=self.budget,
        )

    async def _acheck(self, question: str, config: RunnableConfig) -> GatedDocuments[Document]:
        search = self.retriever.abatch
        return await search_and_check_async(
            question,
            lambda queries: search(list(queries), config),
            self._opened,
            budget=self.budget,
        )

    def _passed(self, found: GatedDocuments[Document]) -> list[Document]:
        told = verdict_metadata(found.verdict)
        documents = found.passed if self.hold_back else found.documents
        # Copies: a store in memory hands out the documents that it keeps.
        return [
            one.model_copy(update={"metadata": {**one.metadata, METADATA_KEY: told}})
            for one in documents
        ]


def _as_dict(question: str, found: GatedDocuments[Document]) -> dict[str, Any]:
    return {"question": question, "documents": found.documents, "verdict": found.verdict}
