"""From a question to hits.

    named            the retrievers by name, each a few lines: start here
    ranking          what they share: checked input, the k best of a row, hits that say who found them

    corpus           documents in order, and their metadata as columns
    lexical          scores by words; `dense` by meaning, `metadata` by agreement, `graph` by what hangs together
    hybrid           several opinions fused; `rerank` lets a slower judge put the first hits in order
    candidates       the same scores where a store is too large or too far to be read whole
    iterative        search, read, search again

    phrases          which of many known names a text contains; `aliases` has more names, `date_ranges`, `relative_dates` days
    links            who names whose title; `ppr` walks along that
    name_links       which names each document bears and mentions, for the bridge
    bridge           a set of documents chosen along names: `pool` has its candidates, `ranker` chooses, `bridge_reading` reads

    filters          the grammar of filters; `extract` makes one of a question, `model_extract` asks a language model for it
    soft             a filter orders and never empties; `relax` lets it give way, `quota` shares places among named sources

    stored           what every store agrees on; `memory` is the one without a disk
    encoding         vectors of many texts, block by block; `chunks` cuts long documents

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
