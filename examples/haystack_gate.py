"""Haystack: the gate between retriever and prompt. It sends documents on, or further queries, or
what was not found.

pip install 'suffice[haystack]'
"""

from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from suffice import ExpansionBudget
from suffice.integrations.haystack import CompletenessGate

PAGES = {
    "Metropolis (1927 film)": "Metropolis is a 1927 German film directed by Fritz Lang.",
    "Superman": "Superman lives in the city of Metropolis and works for a newspaper.",
    "Fritz Lang": "Fritz Lang was a film director, born in Vienna in 1890.",
    "Leek soup": "Leek soup is made of leeks and potatoes.",
}
PROMPT = (
    "{{ query }}\n{% for document in documents %}{{ loop.index }}. {{ document.content "
    "}}\n{% endfor %}"
)

store = InMemoryDocumentStore()
store.write_documents(
    [Document(content=text, meta={"title": title}) for title, text in PAGES.items()]
)
retriever = InMemoryBM25Retriever(store, top_k=2)

pipeline = Pipeline()
pipeline.add_component("retriever", retriever)
pipeline.add_component(
    "gate",
    # To add. Yours needs no `min_familiarity`: these pages are far shorter than the texts that the
    # gate was trained on, so that it would hold nothing back.
    CompletenessGate(
        retriever=InMemoryBM25Retriever(store, top_k=2),
        budget=ExpansionBudget(),
        on_incomplete="empty",
        min_familiarity=0,
    ),
)
pipeline.add_component("prompt", PromptBuilder(PROMPT, required_variables=["query", "documents"]))
pipeline.connect("retriever.documents", "gate.documents")  # to add
pipeline.connect("gate.answer", "prompt.documents")  # was: retriever.documents

for question in (
    "Where was the director of the 1927 film Metropolis born?",
    "Who taught the teacher of Ada Lovelace?",
):
    came = pipeline.run({name: {"query": question} for name in ("retriever", "gate", "prompt")})
    if "prompt" in came:
        print(came["prompt"]["prompt"])
    else:
        print(question, "-> not found:", ", ".join(came["gate"]["abstain"]))
