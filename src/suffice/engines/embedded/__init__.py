"""The embedded store: SQLite for documents, tantivy for text, a memory-mapped file for vectors.

    store             EmbeddedStore, and what a reader sees: all three parts at one generation
    writer            the write lock, and how a batch becomes a generation
    sqlite_documents  the SQLite file
    text_index        the text index
    vector_file       the vector file

docs/decisions/0006-embedded-store.md explains why readers always see a consistent store, even after
a crash.
"""

from suffice.engines.embedded.store import EmbeddedStore

__all__ = ["EmbeddedStore"]
