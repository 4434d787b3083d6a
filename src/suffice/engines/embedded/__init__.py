"""The embedded store: SQLite as the truth, tantivy for text, a memory-mapped file for vectors. No server, one folder.

    store      EmbeddedStore: the door; one writer at a time, any number of readers
    snapshot   what a reader sees: the three parts at one generation
    writer     how a batch becomes a generation
    lock       the right to write
    truth      the SQLite file
    words      the text index
    vectors    the vector file

docs/decisions/0008-embedded-store.md says why a crash or a reader can meet the parts at any moment and still see one whole.
"""

from suffice.engines.embedded.store import EmbeddedStore

__all__ = ["EmbeddedStore"]
