"""Documents as points of a collection and back, and filters in the server's words.

A point's id is made of the document's, so that writing one twice writes it once. What can be filtered by stands in fields of
its own; `extra` is kept as JSON text, since it may hold what the server's numbers cannot.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

from suffice.engines.qdrant.connection import MissingCollectionError, QdrantAddress, QdrantCluster
from suffice.errors import EngineError, InputError
from suffice.types import Condition, DocId, Document, Filter

__all__ = [
    "DENSE",
    "INTEGER_FIELDS",
    "KEYWORD_FIELDS",
    "WORDS",
    "CollectionNames",
    "alias_names",
    "create_collections",
    "current_number",
    "document_from_payload",
    "drop_collections",
    "numbered_names",
    "payload_from_document",
    "point_id",
    "qdrant_filter",
    "switch_aliases",
]


DENSE, WORDS = "dense", "words"  # the vectors of a point
KEYWORD_FIELDS = ("source", "category", "entities", "published_at")
INTEGER_FIELDS = (
    "day",
    "place",
)  # a date as a number, for ranges; the place in the order of insertion

_ID_NAMESPACE = uuid.UUID("5f0f8e0c-6a4b-4d8e-9d7e-4c1f5b1f2a10")  # ours, drawn once
_FOREIGN_HINT = "keep other things in another collection; build this one again with: suffice build FILE --store ADDRESS"
_MATCH_NOTHING: dict[str, Any] = {"must": [{"has_id": []}]}


def point_id(doc_id: DocId) -> str:
    return str(uuid.uuid5(_ID_NAMESPACE, doc_id))


def payload_from_document(document: Document, place: int, length: int) -> dict[str, Any]:
    """`length` is in words; empty fields are left out, so that "has none" can be asked for."""
    day = document.published_at
    entities = list(dict.fromkeys(document.entities))
    payload = {
        "id": document.doc_id,
        "place": place,
        "length": length,
        "title": document.title,
        "text": document.text,
        "source": document.source,
        "category": document.category,
        "published_at": day.isoformat() if day else None,
        "day": day.toordinal() if day else None,
        "entities": entities,
        "named": list(document.entities)
        if len(entities) < len(document.entities)
        else None,  # with repetitions
        "parent": document.parent,
        "extra": json.dumps(dict(document.extra)) if document.extra else None,
    }
    return {name: value for name, value in payload.items() if value not in (None, "", [])}


def document_from_payload(payload: Mapping[str, Any]) -> Document:
    """The document of a point; EngineError where somebody else has written into the collection."""
    try:
        day, named = (
            payload.get("published_at"),
            payload.get("named") or payload.get("entities") or (),
        )
        doc_id, text, title = payload["id"], payload.get("text", ""), payload.get("title", "")
        source, category, parent = about = [
            payload.get(name) for name in ("source", "category", "parent")
        ]
        extra = json.loads(payload["extra"]) if "extra" in payload else {}
        if not all(isinstance(one, str) for one in (doc_id, text, title, *named)) or not all(
            isinstance(one, str | None) for one in about
        ):
            raise TypeError("a field holds no text")
        if not isinstance(extra, dict) or isinstance(named, str):
            raise TypeError("a field holds something of another kind")
        published_at = date.fromisoformat(day) if day else None
        return Document(
            doc_id, text, title, source, category, published_at, tuple(named), parent, extra
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise EngineError(
            f"a point of the collection is no document of suffice: {error!r:.200}",
            hint=_FOREIGN_HINT,
        ) from error


def qdrant_filter(filter: Filter | None) -> dict[str, Any] | None:
    """A checked filter as the server reads it; None for one that lets everything through."""
    if not filter:
        return None
    return {"must": [_condition(one, lenient=filter.lenient) for one in filter.conditions]}


def _condition(condition: Condition, *, lenient: bool) -> dict[str, Any]:
    if condition.operator == "$nin":
        return {"must_not": [_any_of(condition)]}
    if condition.operator == "$in":
        passing = _any_of(condition)
    else:
        bound = "gte" if condition.operator == "$gte" else "lte"
        passing = {
            "key": "day",
            "range": {bound: date.fromisoformat(condition.values[0]).toordinal()},
        }
    return {"should": [passing, {"is_empty": {"key": condition.field}}]} if lenient else passing


def _any_of(condition: Condition) -> dict[str, Any]:
    # "Any of none" is refused by some versions of the server and everything to others; no point has no id.
    return (
        {"key": condition.field, "match": {"any": list(condition.values)}}
        if condition.values
        else _MATCH_NOTHING
    )


# --- collections: The collections of a store: two with numbers in their names, and two aliases that say which number is in use.

HNSW_LINKS = 16  # links of a vector in the graph of approximate search


@dataclass(frozen=True, slots=True)
class CollectionNames:
    """The documents' collection and the one of facts beside it, by name."""

    documents: str
    facts: str


def alias_names(collection: str) -> CollectionNames:
    return CollectionNames(collection, f"{collection}-facts")


def numbered_names(collection: str, number: int) -> CollectionNames:
    return CollectionNames(f"{collection}-{number}", f"{collection}-{number}-facts")


def current_number(cluster: QdrantCluster, collection: str) -> int | None:
    """The number behind the alias; None where there is none yet."""
    for one in cluster.ask(lambda client: client.get_aliases()).aliases:
        if one.alias_name == collection:
            number = one.collection_name.removeprefix(f"{collection}-")
            if number.isdecimal():
                return int(number)
            raise InputError(
                f"{collection!r} is an alias of {one.collection_name!r}, which is not ours",
                hint="choose another name",
            )
    if cluster.ask(lambda client: client.collection_exists(collection)):
        raise InputError(
            f"{collection!r} is a collection that suffice did not make", hint="choose another name"
        )
    return None


def create_collections(
    cluster: QdrantCluster, address: QdrantAddress, pair: CollectionNames, dimension: int
) -> None:
    """Both collections, empty, with what is filtered and ordered by indexed. One that is there already is dropped."""
    from qdrant_client import models

    copies: dict[str, Any] = {
        "replication_factor": address.replicas,
        "write_consistency_factor": address.write_consistency,
        "timeout": max(1, round(address.timeout_s)),
    }
    drop_collections(cluster, pair)
    dense = models.VectorParams(size=max(dimension, 1), distance=models.Distance.DOT)
    _create_collection(
        cluster,
        pair.documents,
        vectors_config={DENSE: dense} if dimension else {},
        sparse_vectors_config={WORDS: models.SparseVectorParams()},
        shard_number=address.shards,
        # A graph over the vectors is only in the way where every search is exact.
        hnsw_config=models.HnswConfigDiff(m=0 if address.exact else HNSW_LINKS),
        **copies,
    )
    _create_collection(cluster, pair.facts, vectors_config={}, shard_number=1, **copies)
    keyword = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD)
    number = models.IntegerIndexParams(
        type=models.IntegerIndexType.INTEGER, lookup=False, range=True
    )
    schemas = {**dict.fromkeys(KEYWORD_FIELDS, keyword), **dict.fromkeys(INTEGER_FIELDS, number)}
    with ThreadPoolExecutor(
        len(schemas)
    ) as together:  # each waits for the nodes to agree: better all at once
        list(
            together.map(lambda one: _create_index(cluster, pair.documents, *one), schemas.items())
        )


def _create_collection(cluster: QdrantCluster, name: str, **settings: Any) -> None:
    try:
        cluster.ask(lambda client: client.create_collection(name, **settings))
    except EngineError:
        # A request whose answer was lost is sent again, and then finds its own collection.
        if not cluster.ask(lambda client: client.collection_exists(name)):
            raise


def _create_index(cluster: QdrantCluster, name: str, field: str, schema: Any) -> None:
    cluster.ask(
        lambda client: client.create_payload_index(name, field, field_schema=schema, wait=True)
    )


def switch_aliases(cluster: QdrantCluster, collection: str, number: int) -> None:
    """Both aliases at once, from whatever they named before."""
    from qdrant_client import models

    old, new = alias_names(collection), numbered_names(collection, number)
    known = {one.alias_name for one in cluster.ask(lambda client: client.get_aliases()).aliases}
    steps: list[Any] = [
        models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=name))
        for name in (old.documents, old.facts)
        if name in known
    ]
    steps += [
        models.CreateAliasOperation(
            create_alias=models.CreateAlias(collection_name=target, alias_name=name)
        )
        for name, target in ((old.documents, new.documents), (old.facts, new.facts))
    ]
    cluster.ask(lambda client: client.update_collection_aliases(steps))


def drop_collections(cluster: QdrantCluster, pair: CollectionNames) -> None:
    for name in (pair.documents, pair.facts):
        if cluster.ask(lambda client, name=name: client.collection_exists(name)):  # type: ignore[misc]
            with suppress(MissingCollectionError):  # it may have gone between
                cluster.ask(lambda client, name=name: client.delete_collection(name))  # type: ignore[misc]
