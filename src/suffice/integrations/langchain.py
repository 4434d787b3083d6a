"""LangChain: a retriever whose documents pass only if they are enough.

    retriever = GatedRetriever(retriever=retriever)        in place of your retriever
    found = retriever.with_verdict().invoke(question)      question, documents and verdict

Documents that pass have the verdict in `metadata["suffice"]`. The inner retriever may be any
Runnable from a question to a list of documents. With a budget, it also searches for what is
missing. To start, use `act=False, log="shadow.jsonl"`: it changes nothing and logs every verdict.
"""

from __future__ import annotations

from typing import Any

from suffice.answering.expand import ExpansionBudget
from suffice.errors import MissingExtraError
from suffice.integrations import common
from suffice.types import LOW_FAMILIARITY

try:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
    from pydantic import Field, PrivateAttr
except ImportError as error:
    raise MissingExtraError("the gate for LangChain", extra="langchain") from error

__all__ = ["GatedRetriever"]


class GatedRetriever(BaseRetriever):
    """The documents of the retriever if the gate finds them enough, else an empty list.

    `gate` is a Gate, the path of a saved one, or None for the shipped one. With `hold_back=False`,
    all documents pass, and only their metadata shows the verdict. They also pass if the familiarity
    is below `min_familiarity`; the gate then warns once. Verdicts go to `log`, a path or a
    VerdictLog. With `act=False` (shadow mode), the documents pass as the retriever returned them.
    """

    retriever: Any = Field(description="A retriever, or a Runnable from a question to documents.")
    gate: Any = Field(default=None, repr=False)  # would fill a screen
    budget: ExpansionBudget | None = None
    hold_back: bool = True
    min_familiarity: float = LOW_FAMILIARITY
    act: bool = True
    log: Any = Field(default=None, repr=False)
    _guard: Any = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        self._guard = common.Guard(
            common.load_gate(self.gate),  # now, so that a wrong path fails early
            "langchain",
            self.budget,
            self.hold_back,
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
        passed: list[Document] = self._guard.passed(found)
        if not self.act:
            return passed
        mark = {common.METADATA_KEY: common.verdict_metadata(found.verdict)}
        # Copies, because a store in memory returns its own documents.
        return [one.model_copy(update={"metadata": {**one.metadata, **mark}}) for one in passed]


def _as_dict(question: str, found: common.GatedDocuments[Document]) -> dict[str, Any]:
    return {"question": question, "documents": found.documents, "verdict": found.verdict}
