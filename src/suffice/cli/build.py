"""`suffice build`: read a folder or a data set, summarize it, and build or update a library."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.loaders import DataSource, open_executor, say_unfinished
from suffice.cli.output import command, print_json, progress_bar, say, say_written, typed_command
from suffice.errors import InputError
from suffice.types import Document, printable

if TYPE_CHECKING:
    from suffice.datasets import Dataset, Summary
    from suffice.datasets.folder import Folder
    from suffice.jobs import JobRunner
    from suffice.library import Library, LibraryUpdate
    from suffice.protocols import Progress

_CHANGES = ("added", "replaced", "removed", "unchanged")
MAX_LISTED = 20  # skipped files and records: the output stays under a screen


@command
def build(
    path: Annotated[
        Path | None,
        Argument(
            help="A folder of .md, .txt, .html, .csv, .json, .pdf; or data in --dataset format."
        ),
    ] = None,
    dataset: opt.DatasetName = None,
    collection: opt.Collection = None,
    documents: Annotated[
        int | None, Option(min=1, help="With --collection: how many documents.")
    ] = None,
    seed: Annotated[int, Option(min=0, help="With --collection: the random seed.")] = 42,
    path_option: opt.DatasetPath = None,
    questions: opt.QuestionsFile = None,
    corpus: opt.CorpusFile = None,
    out: Annotated[Path | None, Option(help="Folder of the library.")] = None,
    store: opt.StoreAddress = None,
    rebuild: Annotated[
        bool, Option("--rebuild", help="With --store: build a new collection, then switch to it.")
    ] = False,
    export: Annotated[
        Path | None, Option(file_okay=False, help="Also write the data as JSONL to this folder.")
    ] = None,
    encoder: opt.BuildEncoder = "auto",
    chunk_tokens: opt.ChunkTokens = 0,
    chunk_overlap: opt.ChunkOverlap = 32,
    scheduler: opt.Scheduler = None,
    checkpoint: opt.CheckpointDir = None,
    skip_bad: opt.SkipBad = False,
    json: opt.Json = False,
) -> None:
    """Build or update a library from files or a data set.

    Without --out or --store it only summarizes the input.
    """
    from suffice.datasets import check_gold, jsonl
    from suffice.library import Library
    from suffice.retrieval.corpus import chunk_documents

    target = _check_target(out, store, rebuild)
    if path and path_option:
        hint = "give it as the argument or as --path"
        raise InputError("the path is given twice", hint=hint)
    if not any((path, path_option, dataset, collection, questions, corpus)):
        hint = "for example: suffice build handbook --out library"
        raise InputError("give a folder or a file to build from", hint=hint)
    source = DataSource(collection, dataset, path or path_option, questions, corpus)
    folder = open_folder(source, skip_bad)
    if folder is not None:
        data = folder.dataset()
    else:
        source = replace(source, dataset=dataset or (None if collection else "jsonl"))
        data = source.open(skip_bad=skip_bad, seed=seed, documents=documents)
    # A folder is read once: pages of a PDF take long.
    summary = None if folder and target else _summarize(data, named=dataset is not None)
    if summary and not skip_bad:
        check_gold(summary)
    built: dict[str, Any] | None = None
    if target:
        checkpoint = checkpoint or (out / ".blocks" if scheduler and out else None)
        texts = data.documents()
        if chunk_tokens:
            texts = chunk_documents(texts, tokens=chunk_tokens, overlap=chunk_overlap)
        # A server's content is not read to compare; a scheduler has its own checkpoints.
        compares = out is not None and scheduler is None
        with (
            progress_bar(quiet=json) as progress,
            open_executor(scheduler, checkpoint) as run,
            Library.build(
                target,
                texts if rebuild else (),
                encoder=None if encoder == "none" else encoder,
                rebuild=rebuild,
                links=rebuild,
                progress=progress,
                run=run,
            ) as library,
        ):
            built = {"path": target, "encoder": library.encoder_name}
            if not rebuild:
                built |= _store(library, folder or source.name, texts, compares, progress, run)
            built["documents"] = len(library)
        check_filled(built["path"], built["documents"], data)
    written = jsonl.write(data, export) if export else []
    about = asdict(summary) if summary else {}
    about |= _folder_record(folder, data) if folder else {}
    if json:
        files = [str(file) for file in written]
        print_json({**about, "library": built, "written": files})
        return
    _show_folder(about) if folder else _show(summary)
    say_written(*written)
    _say_library(built, encoder, exported=bool(written))


def _check_target(out: Path | None, store: str | None, rebuild: bool) -> str | None:
    """Where the library is to be; None for nowhere."""
    from suffice.engines.qdrant import QdrantAddress

    if out and store:
        raise InputError("--out and --store are two places", hint="give one of them")
    if rebuild and not store:
        raise InputError(
            "--rebuild goes with --store", hint="to rebuild a folder, choose another --out"
        )
    return str(QdrantAddress.parse(store)) if store else str(out) if out else None


def check_filled(library: str | Path, count: int, data: Dataset) -> None:
    """InputError if a library has no document, with the first problem of what was read."""
    if not count:
        first = f"; the first problem: {data.bad.examples[0]}" if data.bad.count else ""
        hint = "add or repair documents, and run the same command again"
        raise InputError(f"the library {library} has no document{first}", hint=hint)


def _store(
    library: Library,
    source: Folder | str,
    documents: Iterable[Document],
    compares: bool,
    progress: Progress,
    run: JobRunner,
) -> dict[str, int]:
    """Update the part of a folder, or add a data set; if it `compares`, what the library lacks."""
    if not isinstance(source, str):
        return asdict(update_folder(library, source, documents, progress=progress, run=run))
    changes: dict[str, int] = {}
    with resumable(library, source):
        if compares:
            updated = library.update(documents, is_gone=lambda _: False, progress=progress, run=run)
            changes = asdict(updated)
        else:
            library.add(documents, progress=progress, run=run)
    library.links(progress=progress, run=run)
    return changes


def _say_library(built: dict[str, Any] | None, encoder: str, *, exported: bool) -> None:
    if built is None:
        if not exported:
            say("\nnothing written; next: run it with --out DIR to build a library")
        return
    counts = [f"{built[one]:,} {one}" for one in _CHANGES if one in built]
    count = built["documents"]
    say(f"\nlibrary of {count:,} document{'s' * (count != 1)} at {built['path']}")
    if counts:
        say(", ".join(counts))
    if encoder == "auto" and built["encoder"] is None:
        say("no vectors: keyword search only; to add vectors: pip install 'suffice[vectors]'")
    say(f'next: suffice check "your question" --library {shlex.quote(built["path"])}')


# Folders


def open_folder(source: DataSource, skip_bad: bool) -> Folder | None:
    """The folder of files that the options name; None for a data set in another format."""
    from suffice.datasets.folder import LOADERS, Folder, is_folder
    from suffice.storage import BadRecords

    path, others = source.path, (source.collection, source.questions, source.corpus)
    if path is None or any(others):
        return None
    if source.dataset != "folder" and (source.dataset or not is_folder(path)):
        if source.dataset is None and path.is_file() and not _may_be_json(path):
            hint = f"convert it: suffice reads {', '.join(LOADERS)}; other formats need --dataset"
            raise InputError(f"{path} is of a type that suffice does not read", hint=hint)
        return None
    folder, bad = Folder(path, skip_pdf=skip_bad), BadRecords(skip=True)
    if next(folder.files(bad), None) is None:
        types = ", ".join(f"{count} {one}" for one, count in folder.ignored.most_common(5))
        first = f": {types}" if types else ""
        first += f"; the first problem: {bad.examples[0]}" if bad.count else ""
        hint = f"it reads {', '.join(LOADERS)}"
        raise InputError(f"{path} has no file that suffice can read{first}", hint=hint)
    return folder


def _may_be_json(file: Path) -> bool:
    if file.suffix.lower() in (".json", ".jsonl"):
        return True
    with file.open("rb") as stream:
        return stream.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[", b"")


@contextmanager
def resumable(library: Library, source: str) -> Iterator[None]:
    """Store the documents of a source: if it is cut off, say so now and at the next use."""
    if any(one.source == source and not one.running for one in library.unfinished):
        say(f"resuming; already stored: {len(library):,}")
    try:
        with library.writing(source, resume=typed_command()):
            yield
    except BaseException:
        say_unfinished(library)
        raise


def update_folder(
    library: Library,
    folder: Folder,
    documents: Iterable[Document],
    *,
    progress: Progress,
    run: JobRunner | None = None,
) -> LibraryUpdate:
    """Update the library's part that came from this folder."""
    from suffice.storage import BadRecords

    files = folder.files(BadRecords(skip=True))
    before = {one.extra.get("path") for one in library.documents() if folder.owns(one)}
    if before and before.isdisjoint(map(folder.path_of, files)):
        raise InputError(
            f"{library.path} has a folder '{folder.name}' already, and none of its files is in "
            f"{folder.root}",
            hint="build another library with --out, or rename this folder",
        )
    with resumable(library, str(folder.root.resolve())):
        changes = library.update(documents, is_gone=folder.is_gone, progress=progress, run=run)
    library.links(progress=progress, run=run)
    return changes


def _folder_record(folder: Folder, data: Dataset) -> dict[str, Any]:
    return {
        "name": folder.name,
        "files": len(folder.read),
        "skipped": data.bad.count,
        "skipped_examples": data.bad.examples,
        "ignored": dict(folder.ignored.most_common()),
    }


def _show_folder(about: dict[str, Any]) -> None:
    print(about["name"])
    for name in ("files", "documents", "skipped"):
        if name in about:
            print(f"  {name:<28} {about[name]:,}")
    _say_skipped(about["skipped_examples"], about["skipped"])
    if ignored := about["ignored"]:
        types = ", ".join(f"{suffix} ({count:,})" for suffix, count in list(ignored.items())[:8])
        count = sum(ignored.values())
        say(f"ignored {count:,} file{'s' * (count != 1)} of other types: {types}")


def _say_skipped(examples: Sequence[str], count: int) -> None:
    for line in examples[:MAX_LISTED]:
        say(f"skipped: {printable(line)}")
    if count > MAX_LISTED:
        say(f"and {count - MAX_LISTED:,} more; --json lists the first hundred")


# Data sets


def _summarize(data: Dataset, *, named: bool) -> Summary:
    """The summary; unless the format was named, an error says how to read other objects."""
    from suffice.datasets import describe

    try:
        return describe(data)
    except InputError as error:
        if not named and " is missing, expected" in str(error):
            error.hint += "; to read objects with other fields or without ids: --dataset folder"
        raise


def _show(summary: Summary | None) -> None:
    if summary is None:
        return
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
    _say_skipped(summary.skipped_examples, summary.skipped)
