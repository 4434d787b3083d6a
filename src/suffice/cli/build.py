"""`suffice build`: read a data set or a corpus, say what is in it, and make a library from it."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli.loaders import open_dataset, open_executor
from suffice.cli.options import (
    CheckpointDir,
    ChunkOverlap,
    ChunkTokens,
    Collection,
    CorpusFile,
    DatasetName,
    DatasetPath,
    EncoderName,
    Json,
    QuestionsFile,
    Scheduler,
    SkipBad,
    StoreAddress,
)
from suffice.cli.output import handle_errors, print_json, progress_bar, say
from suffice.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suffice.datasets import Dataset, Summary
    from suffice.jobs import JobRunner
    from suffice.protocols import Progress
    from suffice.types import Document


def build(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A file or folder in the format of --dataset; our JSON Lines unless told."
        ),
    ] = None,
    dataset: DatasetName = None,
    collection: Collection = None,
    documents: Annotated[
        int | None, typer.Option("--documents", min=1, help="How many, with --collection.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="For --collection.")] = 42,
    same_path: DatasetPath = None,
    questions: QuestionsFile = None,
    corpus: CorpusFile = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The library folder; without it nothing is written."),
    ] = None,
    store: StoreAddress = None,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="--store: make it anew beside the old one, then switch."),
    ] = False,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write it as our JSONL into this folder.")
    ] = None,
    encoder: EncoderName = "wordllama",
    chunk_tokens: ChunkTokens = 0,
    chunk_overlap: ChunkOverlap = 32,
    scheduler: Scheduler = None,
    blocks: CheckpointDir = None,
    skip_bad: SkipBad = False,
    json: Json = False,
) -> None:
    """Read a data set, say what is in it, and with --out or --store make a library from its documents."""
    with handle_errors(json=json):
        from suffice.datasets import check_gold, describe, jsonl

        if path and same_path:
            raise InputError("the path is given twice", hint="give it as the argument or as --path")
        where = _destination(out, store, rebuild)
        data = open_dataset(
            collection=collection,
            dataset=dataset or (None if collection else "jsonl"),
            path=path or same_path,
            questions=questions,
            corpus=corpus,
            skip_bad=skip_bad,
            seed=seed,
            documents=documents,
        )
        summary = describe(data)
        if not skip_bad:
            check_gold(summary)
        built = None
        if where:
            kept = blocks or (out / ".blocks" if scheduler and out else None)
            with progress_bar(quiet=json) as progress, open_executor(scheduler, kept) as place:
                cut = _chunked(data, chunk_tokens, chunk_overlap)
                built = _build_library(cut, where, encoder, rebuild, progress, place)
        written = jsonl.write(data, export) if export else []
        if json:
            print_json(
                {**asdict(summary), "library": built, "written": [str(one) for one in written]}
            )
        else:
            _show(summary)
            for one in written:
                say(f"wrote {one}")
            if built:
                say(f"\nlibrary of {built['documents']:,} documents at {where}")
                say(f'next: suffice search {shlex.quote(str(where))} "your question"')
            elif not written:
                say("\nnothing written; next: the same command with --out DIR makes a library")


def _show(summary: Summary) -> None:
    rows: list[tuple[str, object]] = [
        ("documents", summary.documents),
        ("questions", summary.questions),
    ]
    if summary.questions:
        rows += [
            ("null questions", summary.null_questions),
            ("gold documents", summary.mentions),
            ("different", summary.titles),
        ]
    if summary.hops_mean is not None:
        rows.append(
            ("hops", f"{summary.hops_min} to {summary.hops_max}, mean {summary.hops_mean:.3f}")
        )
    rows += [(f"kind {name}", count) for name, count in summary.by_kind.items()]
    rows += [(f"label {name}", count) for name, count in summary.labels.items()]
    if summary.unresolved_count:
        rows.append(("gold not in the corpus", summary.unresolved_count))
    if summary.skipped:
        rows.append(("bad records left out", summary.skipped))
    print(summary.name)
    for name, value in rows:
        print(f"  {name:<28} {value:,}" if isinstance(value, int) else f"  {name:<28} {value}")
    for line in summary.skipped_examples:
        say(f"left out: {line}")


def _destination(out: Path | None, store: str | None, rebuild: bool) -> str | None:
    """The folder or the address of the library that is to be made; None for none."""
    from suffice.engines.qdrant import QdrantAddress

    if out and store:
        raise InputError("--out and --store are two places", hint="give one of them")
    if rebuild and not store:
        raise InputError(
            "--rebuild goes with --store", hint="a folder is built anew by naming another one"
        )
    return str(QdrantAddress.parse(store)) if store else str(out) if out else None


def _chunked(data: Dataset, tokens: int, overlap: int) -> Iterable[Document]:
    from suffice.retrieval.corpus import chunk_documents

    return (
        chunk_documents(data.documents(), tokens=tokens, overlap=overlap)
        if tokens
        else data.documents()
    )


def _build_library(
    documents: Iterable[Document],
    where: str,
    encoder: str,
    rebuild: bool,
    progress: Progress,
    place: JobRunner,
) -> dict[str, Any]:
    from suffice.library import Library

    chosen = None if encoder == "none" else encoder
    with Library.build(
        where, documents, encoder=chosen, rebuild=rebuild, progress=progress, mapped=place
    ) as library:
        return {"path": where, "documents": len(library), "encoder": encoder}
