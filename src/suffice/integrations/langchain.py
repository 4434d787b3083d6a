"""LangChain: a retriever whose documents pass only if they are enough.

    retriever = GatedRetriever(retriever=retriever)        in place of your retriever
    found = retriever.with_verdict().invoke(question)      question, documents and verdict

Documents have the verdict in `metadata["suffice"]`. If they are not enough, a short one comes first
that says so: see `on_incomplete`. The inner retriever may be any Runnable from a question to a list
of documents. With a budget, it also searches for what is missing. To start, use
`act=False, log="shadow.jsonl"`: it changes nothing and logs every verdict.
"""

from __future__ import annotations

from typing import Any

from suffice.answering.expand import ExpansionBudget
from suffice.errors import MissingExtraError, check_names
from suffice.integrations import common
from suffice.types import LOW_FAMILIARITY

try:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
    from pydantic import Field, PrivateAttr, SkipValidation, model_validator
except ImportError as error:
    raise MissingExtraError("the gate for LangChain", extra="langchain") from error

__all__ = ["GatedRetriever"]


class GatedRetriever(BaseRetriever):
    """The documents of the retriever, marked if the gate does not find them enough.

    `gate` is a Gate, the path of a saved one, or None for the shipped one. If they are not enough,
    `on_incomplete="mark"` puts a document before them that says so, "empty" returns none, and
    "raise" raises IncompleteEvidenceError. If the familiarity is below `min_familiarity`, they pass
    as they are, and the gate warns once. Verdicts go to `log`, a path or a VerdictLog. With
    `act=False` (shadow mode), the documents pass as the retriever returned them.
    """

    retriever: Any = Field(description="A retriever, or a Runnable from a question to documents.")
    gate: Any = Field(default=None, repr=False)  # would fill a screen
    budget: SkipValidation[ExpansionBudget | None] = None  # the guard checks them
    on_incomplete: SkipValidation[common.OnIncomplete] = "mark"
    min_familiarity: float = LOW_FAMILIARITY
    act: bool = True
    log: Any = Field(default=None, repr=False)
    _guard: Any = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, given: Any) -> Any:
        check_names(given, cls.model_fields, cls.__name__)
        return given

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        hint = "from a question to documents; wrap a function: RunnableLambda(function)"
        is_runnable = isinstance(self.retriever, Runnable)
        common.check_retriever(self.retriever, is_runnable, f"that is a Runnable {hint}")
        self._guard = common.Guard(
            common.load_gate(self.gate),  # now, so that a wrong path fails early
            "langchain",
            self.budget,
            self.on_incomplete,
            self.min_familiarity,
            self.act,
            common.open_log(self.log, act=self.act),
        )

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._passed(self._check(query, {"callbacks": run_manager.get_child()}))

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._passed(await self._acheck(query, {"callbacks": run_manager.get_child()}))

    def with_verdict(self) -> Runnable[str, dict[str, Any]]:
        """A Runnable that returns question, all documents and verdict, for chains that branch.

        It holds nothing back: your chain decides what to do with the verdict, also with
        `act=False`.
        """

        def check(question: str, config: RunnableConfig) -> dict[str, Any]:
            return _as_dict(question, self._check(question, config))

        async def acheck(question: str, config: RunnableConfig) -> dict[str, Any]:
            return _as_dict(question, await self._acheck(question, config))

        return RunnableLambda(check, acheck, name="GatedRetriever")

    def _check(self, question: str, config: RunnableConfig) -> common.GatedDocuments[Document]:
        def search(queries: Any) -> Any:
            return self.retriever.batch(list(queries), config)

        return self._guard.check(question, search)  # type: ignore[no-any-return]

    async def _acheck(
        self, question: str, config: RunnableConfig
    ) -> common.GatedDocuments[Document]:
        def search(queries: Any) -> Any:
            return self.retriever.abatch(list(queries), config)

        return await self._guard.check_async(question, search)  # type: ignore[no-any-return]

    def _passed(self, found: common.GatedDocuments[Document]) -> list[Document]:
        return self._guard.passed(found, _marked, _as_document)  # type: ignore[no-any-return]


def _marked(document: Document, about: dict[str, Any]) -> Document:
    """A copy, because a store in memory returns its own documents."""
    return document.model_copy(update={"metadata": {**document.metadata, **about}})


def _as_document(text: str, about: dict[str, Any]) -> Document:
    return Document(page_content=text, metadata=about)


def _as_dict(question: str, found: common.GatedDocuments[Document]) -> dict[str, Any]:
    return {"question": question, "documents": found.documents, "verdict": found.verdict}
