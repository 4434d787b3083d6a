"""From a question to hits.

    builtin            the retrievers by name, each a few lines: start here
    ranking            what they share: checked input, the k best of a row, hits with their scores
    corpus             documents in order, their metadata as columns, chunks
    lexical            BM25
    dense              encoders and vector search
    fusion             several scores fused into one ranking, reranking
    memory             a store in memory; `store_checks` is what all stores agree on

    phrase_matcher     which of many known names a text contains
    dates              which days a question asks about
    metadata           which sources, categories, entities and dates a question names
    filters            the grammar of filters; `filter_extraction` makes one from a question
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
    from suffice.retrieval.dense import WordLlamaEncoder
    from suffice.retrieval.filter_extraction import ModelExtractor, VocabularyExtractor
    from suffice.retrieval.memory import MemoryStore
    from suffice.retrieval.metadata import Vocabulary

__all__ = [
    "MemoryStore",
    "ModelExtractor",
    "Vocabulary",
    "VocabularyExtractor",
    "WordLlamaEncoder",
]

# Module -> names that are imported from it on first use: `import suffice.retrieval` stays quick.
_LAZY = {
    "suffice.retrieval.dense": "WordLlamaEncoder",
    "suffice.retrieval.filter_extraction": "ModelExtractor VocabularyExtractor",
    "suffice.retrieval.memory": "MemoryStore",
    "suffice.retrieval.metadata": "Vocabulary",
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names.split():
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'suffice.retrieval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
