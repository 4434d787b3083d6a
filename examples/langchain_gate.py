"""LangChain: the gate in front of a chain searches for the missing document, or answers nothing.

pip install 'suffice[langchain]'
"""

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from suffice import ExpansionBudget
from suffice.integrations.langchain import GatedRetriever
from suffice.retrieval import WordLlamaEncoder

PAGES = {
    "Metropolis (1927 film)": "Metropolis is a 1927 German film directed by Fritz Lang.",
    "Superman": "Superman lives in the city of Metropolis and works for a newspaper.",
    "Metropolis (city)": "A metropolis is a large city where many people were born.",
    "Fritz Lang": "Fritz Lang was a film director, born in Vienna in 1890.",
    "Leek soup": "Leek soup is made of leeks and potatoes.",
}


class Words(Embeddings):
    """The small encoder that comes with suffice, as LangChain calls it."""

    encoder = WordLlamaEncoder()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.encoder.encode(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.encoder.encode([text], query=True)[0].tolist()


store = InMemoryVectorStore(Words())
store.add_documents(
    [Document(page_content=text, metadata={"title": title}) for title, text in PAGES.items()]
)
retriever = store.as_retriever(search_kwargs={"k": 2})

gated = GatedRetriever(retriever=retriever, budget=ExpansionBudget(rounds=6))  # the line to add


def answer(state: dict) -> str:
    """Your prompt and model."""
    if state["verdict"].action != "answer":
        missing = ", ".join(state["verdict"].missing) or "anything about it"
        return f"I do not know; not found: {missing}"
    return " | ".join(document.metadata["title"] for document in state["documents"])


chain = gated.with_verdict() | RunnableLambda(answer)
for question in (
    "Where was the director of the film Metropolis born?",
    "Who taught the teacher of Ada Lovelace?",
):
    print(question, "->", chain.invoke(question))
