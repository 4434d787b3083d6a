"""From a question to hits.

    builtin            the retrievers by name, each a few lines: start here
    ranking            what they share: checked input, the k best of a row, hits with their scores
    corpus             documents in order, their metadata as columns, chunks
    search             search by words, by vectors, by several scores; reranking
    encoders           texts as vectors
    word_vectors       how like the words of a text are to those of a question
    memory             a store in memory, BM25; `store_checks` is what all stores agree on

    phrase_matcher     which of many known names a text contains
    dates              which days a question asks about
    metadata           which sources, categories, entities and dates a question names
    filters            the grammar of filters, and filters made from a question
    soft_filter        filters that never empty the result

    links              which document names whose title
    name_links         which names each document bears and mentions
    bridge             documents chosen one by one along names, from a `candidate_pool`

Nothing here knows a network, a clock or a gold label.
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

# Imported on first use: `import suffice.retrieval` stays quick.
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
