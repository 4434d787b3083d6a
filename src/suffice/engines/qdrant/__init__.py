"""The store on Qdrant, for who has outgrown one machine: sharded and replicated, asked over the network.

    store        QdrantStore: the door
    address      where it is, as one line of text
    cluster      talking to whichever node answers
    collections  numbered collections behind aliases
    reader       searches and look-ups
    writer       how documents come in and go
    facts        what is known of the collection as a whole: word frequencies, lengths, the generation
    words        BM25 as sparse vectors
    points       documents and filters in the server's words

docs/decisions/0026-qdrant.md says why scores are the same on any number of shards, and what a killed node costs.
"""

from suffice.engines.qdrant.connection import QdrantAddress, is_qdrant_address
from suffice.engines.qdrant.store import QdrantStore

__all__ = ["QdrantAddress", "QdrantStore", "is_qdrant_address"]
