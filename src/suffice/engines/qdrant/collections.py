"""The collections of a store: two with numbers in their names, and two aliases that say which number is in use.

`news` and `news-facts` are aliases of `news-7` and `news-7-facts`. A rebuild fills number 8 beside it and then switches both
aliases in one step, so that readers see all of the old or all of the new.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from suffice.engines.qdrant.address import Address
from suffice.engines.qdrant.cluster import Cluster, MissingCollectionError
from suffice.engines.qdrant.points import DENSE, KEYWORDS, NUMBERS, WORDS
from suffice.errors import EngineError, InputError

__all__ = ["Pair", "aliases", "create", "drop", "in_use", "numbered", "switch"]

GRAPH = 16  # links of a vector in the graph of approximate search


@dataclass(frozen=True, slots=True)
class Pair:
    """The documents' collection and the one of facts beside it, by name."""

    documents: str
    facts: str


def aliases(collection: str) -> Pair:
    return Pair(collection, f"{collection}-facts")


def numbered(collection: str, number: int) -> Pair:
    return Pair(f"{collection}-{number}", f"{collection}-{number}-facts")


def in_use(cluster: Cluster, collection: str) -> int | None:
    """The number behind the alias; None where there is none yet."""
    for one in cluster.ask(lambda client: client.get_aliases()).aliases:
        if one.alias_name == collection:
            number = one.collection_name.removeprefix(f"{collection}-")
            if number.isdecimal():
                return int(number)
            raise InputError(
                f"{collection!r} is an alias of {one.collection_name!r}, which is not ours", hint="choose another name"
            )
    if cluster.ask(lambda client: client.collection_exists(collection)):
        raise InputError(f"{collection!r} is a collection that suffice did not make", hint="choose another name")
    return None


def create(cluster: Cluster, address: Address, pair: Pair, dimension: int) -> None:
    """Both collections, empty, with what is filtered and ordered by indexed. One that is there already is dropped."""
    from qdrant_client import models

    copies: dict[str, Any] = {
        "replication_factor": address.replicas,
        "write_consistency_factor": address.write_consistency,
        "timeout": max(1, round(address.timeout_s)),
    }
    drop(cluster, pair)
    dense = models.VectorParams(size=max(dimension, 1), distance=models.Distance.DOT)
    _make(
        cluster,
        pair.documents,
        vectors_config={DENSE: dense} if dimension else {},
        sparse_vectors_config={WORDS: models.SparseVectorParams()},
        shard_number=address.shards,
        # A graph over the vectors is only in the way where every search is exact.
        hnsw_config=models.HnswConfigDiff(m=0 if address.exact else GRAPH),
        **copies,
    )
    _make(cluster, pair.facts, vectors_config={}, shard_number=1, **copies)
    keyword = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD)
    number = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=False, range=True)
    schemas = {**dict.fromkeys(KEYWORDS, keyword), **dict.fromkeys(NUMBERS, number)}
    with ThreadPoolExecutor(len(schemas)) as together:  # each waits for the nodes to agree: better all at once
        list(together.map(lambda one: _index(cluster, pair.documents, *one), schemas.items()))


def _make(cluster: Cluster, name: str, **settings: Any) -> None:
    try:
        cluster.ask(lambda client: client.create_collection(name, **settings))
    except EngineError:
        # A request whose answer was lost is sent again, and then finds its own collection.
        if not cluster.ask(lambda client: client.collection_exists(name)):
            raise


def _index(cluster: Cluster, name: str, field: str, schema: Any) -> None:
    cluster.ask(lambda client: client.create_payload_index(name, field, field_schema=schema, wait=True))


def switch(cluster: Cluster, collection: str, number: int) -> None:
    """Both aliases at once, from whatever they named before."""
    from qdrant_client import models

    old, new = aliases(collection), numbered(collection, number)
    known = {one.alias_name for one in cluster.ask(lambda client: client.get_aliases()).aliases}
    steps: list[Any] = [
        models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=name))
        for name in (old.documents, old.facts)
        if name in known
    ]
    steps += [
        models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name=target, alias_name=name))
        for name, target in ((old.documents, new.documents), (old.facts, new.facts))
    ]
    cluster.ask(lambda client: client.update_collection_aliases(steps))


def drop(cluster: Cluster, pair: Pair) -> None:
    for name in (pair.documents, pair.facts):
        if cluster.ask(lambda client, name=name: client.collection_exists(name)):  # type: ignore[misc]
            with suppress(MissingCollectionError):  # it may have gone between
                cluster.ask(lambda client, name=name: client.delete_collection(name))  # type: ignore[misc]
