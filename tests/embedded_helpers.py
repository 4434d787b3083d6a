"""How the tests of the embedded store look into it."""

from __future__ import annotations

from pathlib import Path

from suffice.engines.embedded import EmbeddedStore


def ids(store: EmbeddedStore, question: str, k: int = 99) -> list[str]:
    return [hit.doc_id for hit in store.search_text([question], k=k)[0]]


def text_folder(folder: Path) -> Path:
    (found,) = folder.glob("text-*")
    return found
