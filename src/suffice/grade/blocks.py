"""The stages of grade that take a block at a time: each is a function of the block and of whoever does the stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from suffice.grade.ports import Claim, ClaimMaker, Path, QuestionWriter, TripleReader, made_record
from suffice.types import Document

__all__ = ["claim_records", "question_records", "triple_records"]

Records = list[dict[str, Any]]


def claim_records(documents: Sequence[Document], maker: ClaimMaker) -> Records:
    return [asdict(claim) for claims in maker.claims(documents) for claim in claims]


def triple_records(claims: Sequence[Claim], reader: TripleReader) -> Records:
    return [asdict(triple) for triples in reader.triples(claims) for triple in triples]


def question_records(paths: Sequence[tuple[Path, Sequence[Claim]]], writer: QuestionWriter) -> Records:
    """Each path comes with the claims of its hops."""
    written = writer.write([path for path, _ in paths], [claims for _, claims in paths])
    return [made_record(made) for made in written if made is not None]
