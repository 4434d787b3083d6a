"""The data on the server: documents as points, filters, and collections behind aliases.

A point's id is derived from the document's, so writing it twice stores it once. Every field that
can be filtered is its own payload field; `extra` is a JSON string, because it may contain what the
server cannot store.

`news` and `news-facts` are aliases of `news-7` and `news-7-facts`. A rebuild fills number 8 next to
it and then switches both aliases in one step: readers see all of the old or all of the new.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import date
from typing import Any

from suffice.engines.qdrant.connection import MissingCollectionError, QdrantAddress, QdrantCluster
from suffice.errors import EngineError, InputError
from suffice.types import Condition, DocId, Document, Filter

__all__ = ["CollectionNames", "document_from_payload", "payload_from_document", "qdrant_filter"]

DENSE, WORDS = "dense", "words"  # the vectors of a point
KEYWORD_FIELDS = ("source", "category", "entities", "published_at")
INTEGER_FIELDS = ("day", "place")  # the date as a number, for ranges; the insertion order
HNSW_LINKS = 16  # per vector in the graph of approximate search

_ID_NAMESPACE = uuid.UUID("5f0f8e0c-6a4b-4d8e-9d7e-4c1f5b1f2a10")  # ours, drawn once
_MATCH_NOTHING: dict[str, Any] = {"must": [{"has_id": []}]}


# ------------------------------------------------------------------------------------------- points


def point_id(doc_id: DocId) -> str:
    return str(uuid.uuid5(_ID_NAMESPACE, doc_id))


def payload_from_document(document: Document, place: int, length: int) -> dict[str, Any]:
    """`length` is in words. Empty fields are left out, so that a filter can test for "has none"."""
    day = document.published_at
    entities = list(dict.fromkeys(document.entities))
    repeated = len(entities) < len(document.entities)
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
        "named": list(document.entities) if repeated else None,
        "parent": document.parent,
        "extra": json.dumps(dict(document.extra)) if document.extra else None,
    }
    return {name: value for name, value in payload.items() if value not in (None, "", [])}


def document_from_payload(payload: Mapping[str, Any]) -> Document:
    """The document of a point; EngineError if another program wrote into the collection."""
    try:
        day = payload.get("published_at")
        entities = payload.get("named") or payload.get("entities") or ()
        texts = payload["id"], payload.get("text", ""), payload.get("title", "")
        source, category, parent = (payload.get(name) for name in ("source", "category", "parent"))
        extra = json.loads(payload["extra"]) if "extra" in payload else {}
        if not all(isinstance(one, str) for one in (*texts, *entities)):
            raise TypeError("a field is not a text")
        if not all(isinstance(one, str | None) for one in (source, category, parent)):
            raise TypeError("a field is not a text")
        if not isinstance(extra, dict) or isinstance(entities, str):
            raise TypeError("a field has another type")
        published_at = date.fromisoformat(day) if day else None
        return Document(*texts, source, category, published_at, tuple(entities), parent, extra)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise EngineError(
            f"a point of the collection is not a document of suffice: {error!r:.200}",
            hint="use another collection for other data; "
            "rebuild this one with: suffice build FILE --store ADDRESS",
        ) from error


def qdrant_filter(filter: Filter | None) -> dict[str, Any] | None:
    """A checked filter in the server's format; None if everything passes."""
    if not filter:
        return None
    return {"must": [_condition(one, filter.lenient) for one in filter.conditions]}


def _condition(condition: Condition, lenient: bool) -> dict[str, Any]:
    if condition.operator in ("$in", "$nin"):
        # Server versions disagree on "any of none"; a point without an id does not exist.
        values = {"key": condition.field, "match": {"any": list(condition.values)}}
        passing = values if condition.values else _MATCH_NOTHING
        if condition.operator == "$nin":
            return {"must_not": [passing]}
    else:
        bound = condition.operator.removeprefix("$")
        day = date.fromisoformat(condition.values[0]).toordinal()
        passing = {"key": "day", "range": {bound: day}}
    return {"should": [passing, {"is_empty": {"key": condition.field}}]} if lenient else passing


# -------------------------------------------------------------------------------------- collections


@dataclass(frozen=True, slots=True)
class CollectionNames:
    """The collection of the documents and the one of their statistics."""

    documents: str
    stats: str

    @classmethod
    def aliases(cls, collection: str) -> CollectionNames:
        return cls(collection, f"{collection}-facts")

    @classmethod
    def numbered(cls, collection: str, number: int) -> CollectionNames:
        return cls.aliases(f"{collection}-{number}")


def current_number(cluster: QdrantCluster, collection: str) -> int | None:
    """The number behind the alias; None if there is none yet."""
    for one in cluster.ask(lambda client: client.get_aliases()).aliases:
        if one.alias_name == collection:
            number = one.collection_name.removeprefix(f"{collection}-")
            if number.isdecimal():
                return int(number)
            message = f"{collection!r} is an alias of {one.collection_name!r}, which is not ours"
            raise InputError(message, hint="choose another name")
    if cluster.ask(lambda client: client.collection_exists(collection)):
        message = f"{collection!r} is a collection that suffice did not make"
        raise InputError(message, hint="choose another name")
    return None


def create_collections(
    cluster: QdrantCluster, address: QdrantAddress, names: CollectionNames, dimension: int
) -> None:
    """Create both collections, empty and indexed; drop them first if they exist."""
    from qdrant_client import models

    drop_collections(cluster, names)
    copies: dict[str, Any] = {
        "replication_factor": address.replicas,
        "write_consistency_factor": address.write_consistency,
        "timeout": max(1, round(address.timeout_s)),
    }
    dense = models.VectorParams(size=max(dimension, 1), distance=models.Distance.DOT)
    _create_collection(
        cluster,
        names.documents,
        vectors_config={DENSE: dense} if dimension else {},
        sparse_vectors_config={WORDS: models.SparseVectorParams()},
        shard_number=address.shards,
        # Exact search needs no graph over the vectors.
        hnsw_config=models.HnswConfigDiff(m=0 if address.exact else HNSW_LINKS),
        **copies,
    )
    _create_collection(cluster, names.stats, vectors_config={}, shard_number=1, **copies)
    keyword = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD)
    kind = models.IntegerIndexType.INTEGER
    number = models.IntegerIndexParams(type=kind, lookup=False, range=True)
    schemas = {**dict.fromkeys(KEYWORD_FIELDS, keyword), **dict.fromkeys(INTEGER_FIELDS, number)}

    def create_index(field: str) -> None:
        options: dict[str, Any] = {"field_schema": schemas[field], "wait": True}
        cluster.ask(lambda client: client.create_payload_index(names.documents, field, **options))

    with ThreadPoolExecutor(len(schemas)) as pool:  # each waits for the nodes to agree
        list(pool.map(create_index, schemas))


def _create_collection(cluster: QdrantCluster, name: str, **settings: Any) -> None:
    try:
        cluster.ask(lambda client: client.create_collection(name, **settings))
    except EngineError:
        # If the answer was lost, the repeated request finds the collection it has already created.
        if not cluster.ask(lambda client: client.collection_exists(name)):
            raise


def switch_aliases(cluster: QdrantCluster, collection: str, number: int) -> None:
    """Point both aliases to this number, in one step."""
    from qdrant_client import models

    aliases = astuple(CollectionNames.aliases(collection))
    targets = astuple(CollectionNames.numbered(collection, number))
    known = {one.alias_name for one in cluster.ask(lambda client: client.get_aliases()).aliases}
    steps: list[Any] = [
        models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=name))
        for name in aliases
        if name in known
    ]
    for name, target in zip(aliases, targets):
        create = models.CreateAlias(collection_name=target, alias_name=name)
        steps.append(models.CreateAliasOperation(create_alias=create))
    cluster.ask(lambda client: client.update_collection_aliases(steps))


def drop_collections(cluster: QdrantCluster, names: CollectionNames) -> None:
    for name in astuple(names):
        if cluster.ask(lambda client, name=name: client.collection_exists(name)):  # type: ignore[misc]
            with suppress(MissingCollectionError):  # dropped meanwhile
                cluster.ask(lambda client, name=name: client.delete_collection(name))  # type: ignore[misc]
