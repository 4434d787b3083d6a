"""The candidates of every question, for `suffice_research.training.scorer_study`:
`python -m suffice_research.training.scorer_prepare --help`.

Vectors take most of an hour on one core and seconds on a GPU (`--gpu`), so they are made beforehand
and kept in a folder. After that they are only looked up.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets import load
from suffice.datasets.gold import GoldQuestion
from suffice.errors import NotReadyError
from suffice.integrations.onnx import BGE_SMALL, bge_small
from suffice.protocols import Encoder
from suffice.retrieval.bridge import WeightedRanker
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.name_links import name_links
from suffice.types import Document
from suffice_research.bridge_quality import QualityBridgeRetriever
from suffice_research.embedding_cache import CachedEncoder
from suffice_research.training.scorer_data import load_questions
from suffice_research.training.scorer_search import HOPS, SETS, Collection, Unasked

__all__ = ["KnownVectors", "build_collection", "encode"]

POOL = 90  # candidates of a question that its training states are drawn from
DIMENSION = 384


class KnownVectors:
    """An encoder that knows only what was encoded before: see `CachedEncoder`."""

    name, dimension = BGE_SMALL, DIMENSION

    def encode(self, texts: Sequence[str], *, query: bool = False) -> npt.NDArray[Any]:
        message = f"{len(texts)} texts have no vectors, for example {texts[0][:60]!r}"
        raise NotReadyError(message, hint="python -m suffice_research.training.scorer_prepare")


def encode(data: Path, vectors: Path, *, most: int | None = None, gpu: bool = False) -> None:
    """Make the vectors of all documents and questions; on a GPU from the same weights in floats."""
    encoder: Encoder
    if gpu:
        from suffice_research.training.next_hop import TowerEncoder

        encoder = TowerEncoder()
    else:
        encoder = bge_small(threads=1)
    for name in SETS:
        found = load(name, data / name)
        documents, examples = _some(list(found.documents()), list(found.questions()), most)
        known = CachedEncoder(encoder, vectors)
        known.encode([searchable_text(one) for one in documents])
        known.encode([one.question.text for one in examples], query=True)


def _some(
    documents: list[Document], examples: list[GoldQuestion], most: int | None
) -> tuple[list[Document], list[GoldQuestion]]:
    """All, or the first questions with their needed documents and some others."""
    if most is None:
        return documents, examples
    examples = examples[:most]
    gold = {doc_id for one in examples for doc_id in one.gold.doc_ids}
    kept = [one for at, one in enumerate(documents) if at < 8 * most or one.doc_id in gold]
    return kept, examples


def build_collection(
    data: Path, name: str, encoder: Encoder, *, most: int | None = None
) -> Collection:
    """The pools of a data set's questions, as `bridge_quality` builds them. With `most`, of the
    first questions, among fewer documents.
    """
    found = load(name, data / name)
    everything = list(found.documents())
    ids = [one.doc_id for one in everything]
    documents, examples = _some(everything, list(found.questions()), most)
    store = MemoryStore(documents, encoder.encode([searchable_text(one) for one in documents]))
    bridge = QualityBridgeRetriever(
        store,
        encoder,
        name_links(lambda: documents),
        WeightedRanker(),
        scorer=Unasked(),
        depth=40,
        near=100,
        hops=HOPS,
    )
    pools = bridge.build_pools([one.question.text for one in examples])
    links, questions = replace(bridge.links), []  # without what it computed on the way
    for one, pool in zip(load_questions(data, name), pools):
        order = np.argsort(-WeightedRanker().p(pool.features()), kind="stable")[:POOL]
        texts = tuple(searchable_text(pool.documents[at]) for at in order)
        questions.append(replace(one, pool=texts))
        pool.links = links
    return Collection(
        name=name,
        questions=questions,
        question_ids=[one.question.question_id for one in examples],
        gold=[one.gold.doc_ids for one in examples],
        pools=pools,
        store=store,
        places={doc_id: at for at, doc_id in enumerate(ids)},
        links=links,
    )


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    for name in ("data", "vectors"):
        arguments.add_argument(f"--{name}", type=Path, required=True)
    arguments.add_argument("--most", type=int, help="questions of each set, for a trial")
    arguments.add_argument("--gpu", action="store_true")
    given = arguments.parse_args()
    encode(given.data, given.vectors, most=given.most, gpu=given.gpu)
