"""Small collections that tests search, one document a line."""

from pathlib import Path

from suffice.datasets.jsonl import load_documents
from suffice.storage import BadRecords
from suffice.types import Document


def documents(name: str) -> tuple[Document, ...]:
    return tuple(load_documents(Path(__file__).with_name(f"{name}.jsonl"), BadRecords()))
