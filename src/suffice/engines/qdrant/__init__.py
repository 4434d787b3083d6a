"""The store on Qdrant, for more than one machine: sharded, replicated, reached over the network.

    store             QdrantStore
    connection        addresses, and requests to whichever node answers
    schema            documents as points, filters, numbered collections behind aliases
    reader            searches and look-ups
    writer            how documents come in and go
    collection_stats  word frequencies, lengths and the generation of the whole collection
    sparse_bm25       BM25 as sparse vectors

docs/decisions/0026-qdrant.md explains why scores do not depend on the shards, and what a killed
node costs.
"""

from suffice.engines.qdrant.connection import QdrantAddress, is_qdrant_address
from suffice.engines.qdrant.store import QdrantStore

__all__ = ["QdrantAddress", "QdrantStore", "is_qdrant_address"]
