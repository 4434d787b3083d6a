"""The data on the server: documents as points, filters, and collections behind an alias.

A point's id is derived from the document's, so writing it twice stores it once. Every field that
can be filtered is its own payload field; `extra` is a JSON string, because it may contain what the
server cannot store.

`news` is an alias of `news-7`. A rebuild fills number 8 next to it and then switches the alias:
readers see all of the old or all of the new. What is known of the whole collection is its metadata.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import date
from typing import TYPE_CHECKING, Any

from suffice.engines.qdrant.connection import MissingCollectionError, QdrantCluster
from suffice.errors import EngineError, InputError, NotReadyError
from suffice.retrieval.store_checks import check_document
from suffice.types import Condition, DocId, Document, Filter

if TYPE_CHECKING:
    from qdrant_client.models import CollectionInfo

__all__ = ["CollectionState", "document_from_payload", "payload_from_document", "qdrant_filter"]

FORMAT = 2
DENSE, WORDS = "dense", "words"  # the vectors of a point
KEYWORD_FIELDS = ("source", "category", "entities", "published_at")
INTEGER_FIELDS = ("day", "place")  # the date as a number, for ranges; the insertion order
HNSW_LINKS = 16  # per vector in the graph of approximate search

_ID_NAMESPACE = uuid.UUID("5f0f8e0c-6a4b-4d8e-9d7e-4c1f5b1f2a10")  # ours, drawn once
_MATCH_NOTHING: dict[str, Any] = {"must": [{"has_id": []}]}


# ------------------------------------------------------------------------------------------- points


def point_id(doc_id: DocId) -> str:
    return str(uuid.uuid5(_ID_NAMESPACE, doc_id))


def payload_from_document(document: Document, place: int) -> dict[str, Any]:
    """Empty fields are left out, so that a filter can test for "has none"."""
    day = document.published_at
    entities = list(dict.fromkeys(document.entities))
    repeated = len(entities) < len(document.entities)
    payload = {
        "id": document.doc_id,
        "place": place,
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
        return check_document(
            Document(
                payload["id"],
                payload.get("text", ""),
                payload.get("title", ""),
                payload.get("source"),
                payload.get("category"),
                date.fromisoformat(day) if day else None,
                tuple(payload.get("named") or payload.get("entities") or ()),
                payload.get("parent"),
                dict(json.loads(payload.get("extra", "{}"))),
            )
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, InputError) as error:
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
class CollectionState:
    """What is known of a collection; its metadata on the server."""

    generation: int = 0  # 0: there is no collection
    build: str = ""  # new for every rebuild of the collection
    encoder: str | None = None
    dimension: int = 0  # of the vectors; 0 if there are none
    mean: float = 0.0  # words per document, as used for all weights; 0 before the first documents
    format: int = FORMAT


def parse_state(info: CollectionInfo, where: str) -> CollectionState:
    metadata: dict[str, Any] = info.config.metadata or {}
    if metadata.get("format") != FORMAT:
        raise NotReadyError(
            f"{where} is a collection that this suffice did not make: "
            f"its format is {metadata.get('format')!r}, expected {FORMAT}",
            hint="choose another name, or delete it; the server must be Qdrant 1.16 or newer",
        )
    # The server leaves out null.
    known: dict[str, Any] = {one.name: metadata.get(one.name) for one in fields(CollectionState)}
    return CollectionState(**known)


def current_number(cluster: QdrantCluster, collection: str) -> int | None:
    """The number behind the alias; None if there is none yet."""
    for one in cluster.ask(lambda client: client.get_aliases()).aliases:
        if one.alias_name == collection:
            number = one.collection_name.removeprefix(f"{collection}-")
            if number.isdecimal():
                return int(number)
            message = f"{collection!r} is an alias of {one.collection_name!r}, which is not ours"
            raise InputError(message, hint="choose another name")
    return None


def create_collection(cluster: QdrantCluster, name: str, state: CollectionState) -> None:
    """Create a collection, empty and indexed; drop it first if it exists."""
    from qdrant_client import models

    drop_collection(cluster, name)
    address = cluster.address
    dense = models.VectorParams(size=max(state.dimension, 1), distance=models.Distance.DOT)
    words = models.SparseVectorParams(modifier=models.Modifier.IDF)
    try:
        cluster.ask(
            lambda client: client.create_collection(
                name,
                vectors_config={DENSE: dense} if state.dimension else {},
                sparse_vectors_config={WORDS: words},
                shard_number=address.shards,
                replication_factor=address.replicas,
                write_consistency_factor=address.write_consistency,
                # Exact search needs no graph over the vectors.
                hnsw_config=models.HnswConfigDiff(m=0 if address.exact else HNSW_LINKS),
                timeout=max(1, round(address.timeout_s)),
                metadata=asdict(state),
            )
        )
    except EngineError:
        # If the answer was lost, the repeated request finds the collection it has already created.
        if not cluster.ask(lambda client: client.collection_exists(name)):
            raise
    number = models.IntegerIndexParams(
        type=models.IntegerIndexType.INTEGER, lookup=False, range=True
    )
    for field in (*KEYWORD_FIELDS, *INTEGER_FIELDS):
        schema = models.PayloadSchemaType.KEYWORD if field in KEYWORD_FIELDS else number
        cluster.ask(
            lambda client, field=field, schema=schema: client.create_payload_index(  # type: ignore[misc]
                name, field, schema, wait=True
            )
        )


def switch_alias(cluster: QdrantCluster, alias: str, name: str) -> None:
    """Point the alias to this collection, in one step."""
    from qdrant_client import models

    aliases = cluster.ask(lambda client: client.get_aliases()).aliases
    steps: list[Any] = []
    if any(one.alias_name == alias for one in aliases):
        old = models.DeleteAlias(alias_name=alias)
        steps.append(models.DeleteAliasOperation(delete_alias=old))
    new = models.CreateAlias(collection_name=name, alias_name=alias)
    steps.append(models.CreateAliasOperation(create_alias=new))
    cluster.ask(lambda client: client.update_collection_aliases(steps))


def drop_collection(cluster: QdrantCluster, name: str) -> None:
    if cluster.ask(lambda client: client.collection_exists(name)):
        with suppress(MissingCollectionError):  # dropped meanwhile
            cluster.ask(lambda client: client.delete_collection(name))
