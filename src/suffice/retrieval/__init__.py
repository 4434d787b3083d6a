"""Find hits for a question.

    builtin            the retrievers by name, each a few lines: start here
    ranking            shared helpers: input checks, the k best of a row, hits with their scores
    corpus             documents in order, their metadata as columns, chunks
    search             search by words, by vectors, by several scores; reranking
    encoders           texts as vectors
    word_vectors       similarity between the words of a text and of a question
    memory             a store in memory, BM25; `store_checks` has the rules for all stores

    phrase_matcher     which of many known names a text contains
    dates              which days a question asks about
    metadata           which sources, categories, entities and dates a question names
    filters            the filter syntax, and filters made from a question
    soft_filter        filters that never empty the result

    links              which documents mention another document's title
    name_links         which names each document is about, and which it mentions
    name_rows          what each document contributes to them, kept between writes
    bridge             documents chosen one by one along names, from a `candidate_pool`

Nothing here uses the network, a clock or gold labels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suffice.retrieval.encoders import WordLlamaEncoder
    from suffice.retrieval.filters import ModelExtractor, VocabularyExtractor
    from suffice.retrieval.memory import MemoryStore
    from suffice.retrieval.metadata import Vocabulary

__all__ = [
    "MemoryStore",
    "ModelExtractor",
    "Vocabulary",
    "VocabularyExtractor",
    "WordLlamaEncoder",
]

# Lazy imports keep `import suffice.retrieval` fast.
_MODULES = {
    "MemoryStore": "memory",
    "ModelExtractor": "filters",
    "Vocabulary": "metadata",
    "VocabularyExtractor": "filters",
    "WordLlamaEncoder": "encoders",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"suffice.retrieval.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'suffice.retrieval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
