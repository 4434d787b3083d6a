"""`suffice search --complete`: how the evidence was completed, round by round."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from suffice.cli.loaders import open_model
from suffice.cli.options import BaseUrl, Json, ModelName, ModelTimeout, StoreAddress
from suffice.cli.output import handle_errors, print_json, say
from suffice.types import printable


def run_completion(
    lib: Any, question: str, gate: Any, *, k: int, retriever: str | None, json: bool, **options: Any
) -> None:
    """Search until the gate is content, and show the rounds: the probability, what joined or went, and why it ended."""
    found = lib.complete(question, gate, k=k, retriever=retriever, **options)
    ids = [hit.doc_id for hit in found.hits]
    documents = dict(zip(ids, lib.get(ids)))
    if json:
        print_json(_completion_record(question, found, documents))
    else:
        _show_completion(found, documents)


def _completion_record(question: str, found: Any, documents: dict[str, Any]) -> dict[str, Any]:
    titles = {doc_id: document.title if document else "" for doc_id, document in documents.items()}
    return {
        "question": question,
        "hits": [{**asdict(hit), "title": titles[hit.doc_id]} for hit in found.hits],
        "verdict": asdict(found.verdict),
        "stopped": {"name": found.stopped.name.lower(), "words": str(found.stopped)},
        "checks": found.checks,
        "rounds": found.rounds(),
    }


def _show_completion(found: Any, documents: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rounds = Table(box=None, pad_edge=False)
    for heading in ("round", "p", "", "held", "what happened"):
        rounds.add_column(heading, overflow="fold")
    for at, step in enumerate(found.trace.steps, start=1):
        p = step.verdict.p_complete
        # Notes hold ids and queries, which come from strangers' texts: as Text they cannot carry markup into the terminal.
        rounds.add_row(
            str(at),
            f"{p:.2f}",
            "█" * round(12 * p),
            str(len(step.hits)),
            Text(printable(step.note)),
        )
    console = Console()
    wide = Console(width=None if console.is_terminal else 120)
    wide.print(rounds)
    print(f"\nstopped: {found.stopped}\n\n{found.verdict}\n")
    for rank, hit in enumerate(found.hits, start=1):
        document = documents[hit.doc_id]
        print(
            f"{rank:2}  {printable((document.title or document.text[:60]) if document else hit.doc_id)}"
        )


# --- search: `suffice search`: look something up in a library, and see who found it and why.

FILTER_EXAMPLE = '{"source": {"$in": ["The Verge"]}}'


def search(
    library: Annotated[
        str,
        typer.Argument(help="A folder made by `suffice build`, or an address; none with --store."),
    ],
    question: Annotated[str | None, typer.Argument(help="What to look for.")] = None,
    store: StoreAddress = None,
    k: Annotated[int, typer.Option("--k", help="How many hits.")] = 10,
    retriever: Annotated[
        str | None,
        typer.Option("--retriever", help="Default: hybrid; bm25 in a library without vectors."),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option(
            "--filter", help=f"For example {FILTER_EXAMPLE}; auto: what the question names."
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Only what passes the filter, even if that is nothing.")
    ] = False,
    gate: Annotated[
        str | None,
        typer.Option(
            "--gate", help="Relax the filter while this gate says incomplete: default, or a folder."
        ),
    ] = None,
    ranker: Annotated[
        Path | None,
        typer.Option("--ranker", help="bridge: choose by a ranker made by `suffice fit --bridge`."),
    ] = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="Search on until the gate says complete; k at most.")
    ] = False,
    model: ModelName = None,
    base_url: BaseUrl = None,
    timeout_s: ModelTimeout = 10.0,
    today: Annotated[
        str | None, typer.Option("--today", help='The day that "yesterday" is before; else today.')
    ] = None,
    json: Json = False,
) -> None:
    """Look something up in a library."""
    with handle_errors(json=json):
        # DROPPED
        from suffice.errors import InputError
        from suffice.gate.gate_ref import open_gate
        from suffice.library import Library

        library, question = _library_and_question(library, question, store)
        if complete and (filter is not None or strict or model is not None):
            raise InputError(
                "--complete goes without a filter", hint="leave out --filter, --strict and --model"
            )
        if not complete:
            _check_filter_options(filter, gate, model)
        retriever, options = (
            (retriever or "bridge", {"ranker": _load_ranker(ranker)}) if ranker else (retriever, {})
        )
        judged_by = gate or ("default" if complete else None)
        judge, clock, wanted = (
            open_gate(judged_by) if judged_by else None,
            _parse_day(today),
            _parse_filter(filter),
        )
        with Library.open(library) as lib:
            if complete:
                run_completion(lib, question, judge, k=k, retriever=retriever, json=json, **options)
                return
            read = (
                _extractor(lib, model, base_url, timeout_s, clock).extract([question])[0]
                if wanted == "auto"
                else None
            )
            chosen = read.filter if read else wanted
            hits = lib.search(
                [question],
                k=k,
                retriever=retriever,
                filter=chosen,
                strict=strict,
                gate=judge,
                **options,
            )[0]
            documents = dict(
                zip([hit.doc_id for hit in hits], lib.get([hit.doc_id for hit in hits]))
            )
        if read is not None and not json:
            _say_filter(read)
        if json:
            print_json(
                {
                    "question": question,
                    "filter": _extraction_record(read),
                    "hits": [_hit_record(hit, documents) for hit in hits],
                }
            )
        elif not hits:
            print(
                "no document matches\n\nnext: other words, or `--retriever dense`, which also finds near meanings"
            )
        else:
            _show_hits(hits, documents)


def _library_and_question(library: str, question: str | None, store: str | None) -> tuple[str, str]:
    """Which library and what question: with --store the only argument is the question."""
    from suffice.errors import InputError

    if store and question is not None:
        raise InputError(
            "--store and a library are two places", hint="give one of them, and the question"
        )
    if not store and question is None:
        raise InputError(
            "there is a library or a question, and both are needed",
            hint='suffice search DIR "Who ...?"',
        )
    return (store, library) if store else (library, question or "")


def _load_ranker(path: Path) -> Any:
    from suffice.retrieval.bridge import TreeRanker

    return TreeRanker.load(path)


def _check_filter_options(filter: str | None, gate: str | None, model: str | None) -> None:
    """Options that would do nothing are a misunderstanding, and better said."""
    from suffice.errors import InputError

    if gate is not None and filter is None:
        raise InputError("--gate relaxes a filter, and there is none", hint="add --filter auto")
    if model is not None and filter != "auto":
        raise InputError(
            "--model makes the filter, and none is to be made", hint="add --filter auto"
        )


def _extractor(
    lib: Any, model: str | None, base_url: str | None, timeout_s: float, today: date
) -> Any:
    """Filters by a language model where one is named; otherwise by what the library's documents carry."""
    from suffice.retrieval.filter_extraction import VocabularyExtractor
    from suffice.retrieval.metadata import Vocabulary

    vocabulary = Vocabulary.of_store(lib.store)
    asked = open_model(model, base_url, timeout_s=timeout_s)
    if asked is None:
        return VocabularyExtractor(vocabulary, today=today)
    from suffice.retrieval.filter_extraction import ModelExtractor

    return ModelExtractor(asked, vocabulary, today=today)


def _extraction_record(extraction: Any) -> dict[str, Any] | None:
    """What was read off the question, as JSON; None where the filter was given."""
    if extraction is None:
        return None
    return {
        "conditions": [asdict(one) for one in extraction.filter.conditions],
        "notes": extraction.notes,
    }


def _say_filter(extraction: Any) -> None:
    """What was read off the question, before the hits that it explains."""
    words = {"$in": "is", "$nin": "is not", "$gte": "from", "$lte": "until"}
    conditions = [
        f"{one.field} {words[one.operator]} {' or '.join(map(str, one.values))}"
        for one in extraction.filter.conditions
    ]
    say(
        printable(
            f"filter: {', and '.join(conditions) or 'none, the question names no known source or date'}"
        )
    )
    for note in extraction.notes:
        say(printable(f"note: {note}"))


def _parse_day(text: str | None) -> date:
    from suffice.errors import InputError

    try:
        return date.fromisoformat(text) if text else date.today()
    except ValueError as error:
        raise InputError(
            f"--today is {text!r}, expected a day", hint="for example --today 2023-12-01"
        ) from error


def _parse_filter(text: str | None) -> Any:
    import json

    from suffice.errors import InputError

    if text is None or text == "auto":
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"--filter is not valid JSON: {error}", hint=f"for example {FILTER_EXAMPLE}"
        ) from error
    if not isinstance(value, dict):
        raise InputError("--filter is not a JSON object", hint=f"for example {FILTER_EXAMPLE}")
    return value


def _hit_record(hit: Any, documents: dict[str, Any]) -> dict[str, Any]:
    document = documents[hit.doc_id]
    about = (
        {"title": document.title, "source": document.source, "published_at": document.published_at}
        if document
        else {}
    )
    return {**asdict(hit), **about}


def _show_hits(hits: Any, documents: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("#", "score", "", "document", "found by", "matched"):
        table.add_column(heading, overflow="fold")
    best = max((hit.score or 0.0) for hit in hits) or 1.0
    for rank, hit in enumerate(hits, start=1):
        score = hit.score or 0.0
        bar = "█" * max(1, round(12 * max(score, 0.0) / best))
        document = documents[hit.doc_id]
        # Titles come from the corpus: as Text they cannot carry markup into the terminal.
        title = Text(printable(document.title or document.text[:60]) if document else hit.doc_id)
        found = " ".join(f"{part.name} {part.score:.3g}" for part in hit.parts)
        matched = "; ".join(hit.matched) + (" (filter relaxed)" if hit.relaxed else "")
        table.add_row(str(rank), f"{score:.3f}", bar, title, Text(found), Text(printable(matched)))
    console = Console()
    Console(width=None if console.is_terminal else 120).print(table)
