"""The store on Qdrant, for several machines: sharded, replicated, accessed over the network.

    store        QdrantStore
    connection   addresses, and requests to any node that answers
    schema       documents as points, filters, numbered collections behind an alias
    sparse_bm25  BM25 as sparse vectors

docs/decisions/0007-several-machines.md explains how scores depend on the shards, and what happens
when a node is killed.
"""

from suffice.engines.qdrant.connection import QdrantAddress, is_qdrant_address
from suffice.engines.qdrant.store import QdrantStore

__all__ = ["QdrantAddress", "QdrantStore", "is_qdrant_address"]
