"""LlamaIndex: the gate as the last postprocessor. Where the nodes are not enough, the query engine
makes nothing up.

pip install 'suffice[llama-index]'
"""

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

from suffice.integrations.llama_index import CompletenessGate
from suffice.retrieval import WordLlamaEncoder

PAGES = {
    "Metropolis (1927 film)": "Metropolis is a 1927 German film directed by Fritz Lang.",
    "Superman": "Superman lives in the city of Metropolis and works for a newspaper.",
    "Fritz Lang": "Fritz Lang was a film director, born in Vienna in 1890.",
    "Leek soup": "Leek soup is made of leeks and potatoes.",
}
WORDS = WordLlamaEncoder()


class Words(BaseEmbedding):
    """The small encoder that comes with suffice, as LlamaIndex calls it."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return WORDS.encode([text])[0].tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        return WORDS.encode([query], query=True)[0].tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


nodes = [TextNode(text=text, metadata={"title": title}) for title, text in PAGES.items()]
index = VectorStoreIndex(nodes, embed_model=Words())

for k in (1, 3):
    engine = index.as_query_engine(
        llm=MockLLM(),  # yours
        similarity_top_k=k,
        # The line to add. Yours needs no `min_familiarity`: these pages are far shorter than the
        # texts that the gate was trained on, so that it would hold nothing back.
        node_postprocessors=[CompletenessGate(on_incomplete="empty", min_familiarity=0)],
    )
    response = engine.query("Where was the director of the film Metropolis born?")
    told = [node.metadata["title"] for node in response.source_nodes]
    print(f"{k} nodes: {'answered from ' + ' | '.join(told) if told else response}")
