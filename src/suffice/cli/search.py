"""`suffice search`: search a library, and see which retriever found each hit and why."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.loaders import name_library, open_library, open_model
from suffice.cli.output import command, parse_day, parse_filter, print_json, say, wide_console
from suffice.errors import InputError
from suffice.types import printable

if TYPE_CHECKING:
    from suffice.library import Library
    from suffice.types import Document, Extraction

Documents = dict[str, "Document | None"]


@command
def search(
    library: opt.LibraryArgument = None,
    question: Annotated[str | None, Argument(help="What to search for.")] = None,
    named_library: opt.NamedLibrary = None,
    k: Annotated[int, Option(help="How many hits.")] = 10,
    retriever: opt.DefaultRetriever = None,
    filter: opt.MetadataFilter = None,
    strict: Annotated[
        bool | None,
        Option(help="Never relax the filter; default with --complete, unless it is auto."),
    ] = None,
    gate: Annotated[str | None, Option(help="With --complete: the gate that decides.")] = None,
    ranker: opt.RankerFolder = None,
    reranker: opt.RerankerName = None,
    complete: Annotated[
        bool, Option("--complete", help="Search until the gate says answer; at most k documents.")
    ] = False,
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    timeout_s: opt.ModelTimeout = 10.0,
    today: opt.Today = None,
    json: opt.Json = False,
) -> None:
    """Search a library."""
    from suffice.gate.gate_ref import open_gate
    from suffice.retrieval.bridge import TreeRanker

    given = name_library(library, question, option=named_library)
    if len(given) < 2 or not given[1].strip():
        hint = 'for example: suffice search DIR "Who ...?"'
        raise InputError("give both a library and a question", hint=hint)
    address, text = given
    _check_options(filter, None if complete else gate, model)
    opened = open_model(model, base_url, timeout_s=timeout_s)
    bridge: dict[str, Any] = {"ranker": TreeRanker.load(ranker)} if ranker else {}
    bridge |= {"reranker": reranker} if reranker else {}
    retriever = (retriever or "bridge") if bridge else retriever
    day, wanted = parse_day(today), parse_filter(filter)
    with open_library(address) as lib:
        extraction = None
        if wanted == "auto":
            extraction = _extract_filter(lib, text, opened, day)
            wanted = extraction.filter
        found: Any
        if complete:
            only = extraction is None if strict is None else strict
            chosen = open_gate(gate or "default")
            found = lib.complete(
                text, chosen, k=k, retriever=retriever, filter=wanted, strict=only, **bridge
            )
            ids = [hit.doc_id for hit in found.hits]
            documents = dict(zip(ids, lib.get(ids)))
        else:
            found = lib.search(
                text,
                k=k,
                retriever=retriever,
                filter=wanted,
                strict=bool(strict),
                **bridge,
            )
            documents = {hit.doc_id: hit.document for hit in found}
    if json:
        shown = _extraction_record(extraction)
        if complete:
            record = _completion_record(found, documents)
            print_json({"question": text, **record, "filter": shown})
        else:
            records = [_hit_record(hit, documents[hit.doc_id]) for hit in found]
            print_json({"question": text, "filter": shown, "hits": records})
        return
    if extraction is not None:
        _say_filter(extraction)
    if complete:
        _show_completion(found, documents)
    elif found:
        _show_hits(found, documents)
    else:
        print("no document matches\n\nnext: try other words, or `--retriever dense`")


def _check_options(filter: str | None, gate: str | None, model: str | None) -> None:
    if gate is not None:
        raise InputError("--gate decides when --complete stops", hint="add --complete")
    if model is not None and filter != "auto":
        raise InputError("--model makes the filter for --filter auto", hint="add --filter auto")


def _title(document: Document | None, doc_id: str) -> str:
    """The title, and for a document of a folder the file and place that it is from."""
    if document is None:
        return doc_id
    title, extra = document.title or document.text[:60], document.extra
    place = next((f"{one} {extra[one]}" for one in ("line", "page", "item") if one in extra), "")
    origin = ", ".join(filter(None, (extra.get("path"), place))) if "folder" in extra else ""
    return printable(f"{title} ({origin})" if origin else title)


# Filters


def _extract_filter(library: Library, question: str, model: Any, today: date) -> Extraction:
    """The filter in the question, by a language model or by the library's own metadata."""
    from suffice.retrieval.filters import ModelExtractor, VocabularyExtractor
    from suffice.retrieval.metadata import Vocabulary

    vocabulary = Vocabulary.of_store(library.store)
    if model is None:
        return VocabularyExtractor(vocabulary, today=today).extract([question])[0]
    return ModelExtractor(model, vocabulary, today=today).extract([question])[0]


def _extraction_record(extraction: Extraction | None) -> dict[str, Any] | None:
    if extraction is None:
        return None
    conditions = [asdict(condition) for condition in extraction.filter.conditions]
    return {"conditions": conditions, "notes": extraction.notes}


def _say_filter(extraction: Extraction) -> None:
    none = "none, the question names no known source or date"
    say(printable(f"filter: {extraction.filter or none}"))
    for note in extraction.notes:
        say(printable(f"note: {note}"))


# Results. Titles and notes come from documents: as Text they cannot carry terminal markup.


def _hit_record(hit: Any, document: Document | None) -> dict[str, Any]:
    if document is None:
        record: dict[str, Any] = hit.as_json()
        return record
    names = ("title", "text", "source", "published_at")  # `suffice check --hits -` reads them
    record = {**hit.as_json(), **{name: getattr(document, name) for name in names}}
    return {**record, "extra": dict(document.extra)} if document.extra else record


def _show_hits(hits: Any, documents: Documents) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("#", "score", "", "document", "found by", "matched"):
        table.add_column(heading, overflow="fold")
    best = max((hit.score or 0.0) for hit in hits) or 1.0
    for rank, hit in enumerate(hits, start=1):
        score = hit.score or 0.0
        bar = "█" * max(1, round(12 * max(score, 0.0) / best))
        title = Text(_title(documents[hit.doc_id], hit.doc_id))
        found_by = Text(" ".join(f"{part.name} {part.score:.3g}" for part in hit.parts))
        matched = Text(
            printable("; ".join(hit.matched) + (" (filter relaxed)" if hit.relaxed else ""))
        )
        table.add_row(str(rank), f"{score:.3f}", bar, title, found_by, matched)
    wide_console().print(table)


def _completion_record(completion: Any, documents: Documents) -> dict[str, Any]:
    return {
        "hits": [_hit_record(hit, documents[hit.doc_id]) for hit in completion.hits],
        "verdict": asdict(completion.verdict),
        "stopped": {"name": completion.stopped.name.lower(), "words": str(completion.stopped)},
        "checks": completion.checks,
        "rounds": completion.rounds(),
    }


def _show_completion(completion: Any, documents: Documents) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("round", "p", "", "documents", "what happened"):
        table.add_column(heading, overflow="fold")
    for at, step in enumerate(completion.trace.steps, start=1):
        p, note = step.verdict.p_complete, Text(printable(step.note))
        table.add_row(str(at), f"{p:.2f}", "█" * round(12 * p), str(len(step.hits)), note)
    wide_console().print(table)
    print(f"\nstopped: {completion.stopped}\n\n{completion.verdict}\n")
    for rank, hit in enumerate(completion.hits, start=1):
        print(f"{rank:2}  {_title(documents[hit.doc_id], hit.doc_id)}")
