"""`suffice build`: read a data set, summarize it, and build a library."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.loaders import DataSource, open_executor
from suffice.cli.output import command, print_json, progress_bar, say, say_written
from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.datasets import Summary


@command
def build(
    path: Annotated[Path | None, Argument(help="A file or folder in the --dataset format.")] = None,
    dataset: opt.DatasetName = None,
    collection: opt.Collection = None,
    documents: Annotated[int | None, Option(min=1, help="With --collection: how many.")] = None,
    seed: Annotated[int, Option(help="With --collection.")] = 42,
    path_option: opt.DatasetPath = None,
    questions: opt.QuestionsFile = None,
    corpus: opt.CorpusFile = None,
    out: Annotated[Path | None, Option(help="The library folder.")] = None,
    store: opt.StoreAddress = None,
    rebuild: Annotated[
        bool, Option("--rebuild", help="--store: build a new one beside the old, then switch.")
    ] = False,
    export: Annotated[Path | None, Option(help="Write it as JSONL to this folder.")] = None,
    encoder: opt.BuildEncoder = "auto",
    chunk_tokens: opt.ChunkTokens = 0,
    chunk_overlap: opt.ChunkOverlap = 32,
    scheduler: opt.Scheduler = None,
    checkpoint: opt.CheckpointDir = None,
    skip_bad: opt.SkipBad = False,
    json: opt.Json = False,
) -> None:
    """Build a library from a data set, or summarize it."""
    from suffice.datasets import check_gold, describe, jsonl
    from suffice.engines.qdrant import QdrantAddress
    from suffice.library import Library
    from suffice.retrieval.corpus import chunk_documents

    if path and path_option:
        hint = "give it as the argument or as --path"
        raise InputError("the path is given twice", hint=hint)
    if out and store:
        raise InputError("--out and --store are two places", hint="give one of them")
    if rebuild and not store:
        raise InputError("--rebuild goes with --store", hint="build a folder anew in another one")
    target = str(QdrantAddress.parse(store)) if store else str(out) if out else None
    dataset = dataset or (None if collection else "jsonl")
    source = DataSource(collection, dataset, path or path_option, questions, corpus)
    data = source.open(skip_bad=skip_bad, seed=seed, documents=documents)
    summary = describe(data)
    if not skip_bad:
        check_gold(summary)
    built = None
    if target:
        checkpoint = checkpoint or (out / ".blocks" if scheduler and out else None)
        texts = data.documents()
        if chunk_tokens:
            texts = chunk_documents(texts, tokens=chunk_tokens, overlap=chunk_overlap)
        chosen = None if encoder == "none" else encoder
        with (
            progress_bar(quiet=json) as progress,
            open_executor(scheduler, checkpoint) as executor,
            Library.build(
                target, texts, encoder=chosen, rebuild=rebuild, progress=progress, run=executor
            ) as library,
        ):
            built = {"path": target, "documents": len(library), "encoder": library.encoder_name}
    written = jsonl.write(data, export) if export else []
    if json:
        files = [str(file) for file in written]
        print_json({**asdict(summary), "library": built, "written": files})
        return
    _show(summary)
    say_written(*written)
    if built:
        say(f"\nlibrary of {built['documents']:,} documents at {target}")
        if encoder == "auto" and built["encoder"] is None:
            say("without vectors: search is by words; for more: pip install 'suffice[vectors]'")
        say(f'next: suffice search {shlex.quote(str(target))} "your question"')
    elif not written:
        say("\nnothing written; next: run it with --out DIR to build a library")


def _show(summary: Summary) -> None:
    rows: list[tuple[str, object]] = [
        ("documents", summary.documents),
        ("questions", summary.questions),
    ]
    if summary.questions:
        rows += [
            ("null questions", summary.null_questions),
            ("gold documents", summary.mentions),
            ("distinct", summary.titles),
        ]
    if summary.hops_mean is not None:
        hops = f"{summary.hops_min} to {summary.hops_max}, mean {summary.hops_mean:.3f}"
        rows.append(("hops", hops))
    rows += [(f"kind {name}", count) for name, count in summary.by_kind.items()]
    rows += [(f"label {name}", count) for name, count in summary.labels.items()]
    if summary.unresolved_count:
        rows.append(("gold not in the corpus", summary.unresolved_count))
    if summary.skipped:
        rows.append(("bad records skipped", summary.skipped))
    print(summary.name)
    for name, value in rows:
        print(f"  {name:<28} {value:,}" if isinstance(value, int) else f"  {name:<28} {value}")
    for line in summary.skipped_examples:
        say(f"skipped: {line}")
