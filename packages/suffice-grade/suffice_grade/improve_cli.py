"""`suffice improve`: the loop on one library, from questions to a report; resumable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.build import check_filled, open_folder, update_folder
from suffice.cli.loaders import DataSource, name_library, open_library
from suffice.cli.output import command, print_json, progress_bar, say, say_written
from suffice.errors import InputError
from suffice.types import printable

if TYPE_CHECKING:
    from suffice.library import Library
    from suffice.protocols import Progress

STAGE_NAMES = "questions, labels, gate, evaluation, difficulty or report"


@command
def improve(
    library: Annotated[
        str | None, Argument(help="A library, or a folder of documents to build one from.")
    ] = None,
    named_library: opt.NamedLibrary = None,
    out: Annotated[Path, Option(help="Output folder; run again to resume.")] = Path("improved"),
    labels: Annotated[
        Path | None, Option(help="Labels; default: labels.jsonl in the output folder.")
    ] = None,
    ask: Annotated[
        Path | None, Option(help="User questions to label: one per line, or JSON Lines.")
    ] = None,
    retriever: opt.DefaultRetriever = None,
    k: opt.HitCount = 10,
    preset: Annotated[str, Option(help="standard reads the hits, fast does not.")] = "standard",
    questions: Annotated[int, Option(min=1, help="Maximum number of generated questions.")] = 400,
    parse: opt.Parse = False,
    stage: Annotated[str | None, Option(help=f"Run only this stage: {STAGE_NAMES}.")] = None,
    restart: Annotated[bool, Option("--restart", help="Run all stages again.")] = False,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Improve the gate on your corpus, from questions to a report.

    Generates questions, asks for labels, adapts the gate to them, evaluates it, writes a report.
    """
    from suffice_grade.improve import LoopSettings, SearchedCorpus, check_out
    from suffice_grade.improve import improve as run_loop
    from suffice_grade.parsed_relations import find_model

    if not (given := name_library(library, option=named_library)):
        hint = "for example: suffice improve DIR --out improved"
        raise InputError("give a library, or a folder of documents", hint=hint)
    (library,) = given
    check_out(out)  # before the work
    if parse and stage not in ("labels", "gate"):  # these need no questions
        find_model()
    settings = LoopSettings(
        k, preset, questions, labels, ask, stage=stage, restart=restart, seed=seed, parse=parse
    )
    with (
        progress_bar(quiet=json) as progress,
        _open_library(library, out, progress, quiet=json) as opened,
    ):
        name = retriever or ("hybrid" if opened.encoder_name else "bm25")
        is_built = opened.path == out / "library"
        where = str(opened.path) if is_built else library
        corpus = SearchedCorpus(library, where, opened.store, opened.retriever(name), name)
        found = run_loop(
            corpus,
            out,
            settings,
            progress=progress,
            say=(lambda line: None) if json else say,
        )
    if json:
        print_json(found.as_json())
        return
    print("\n" + "\n".join(map(printable, found.summary)))
    if "report" in found.results:
        say_written(out / "report.html")
    for place, (what, typed) in enumerate(found.next_steps):
        say(f"{'next:' if not place else '     '} {what}" + (f"\n        {typed}" if typed else ""))


@contextmanager
def _open_library(name: str, out: Path, progress: Progress, *, quiet: bool) -> Iterator[Library]:
    """The library, or one of this folder of documents, built or updated in `out`."""
    from suffice.engines.qdrant import is_qdrant_address
    from suffice.library import Library
    from suffice.storage import MANIFEST
    from suffice_grade.stage_cache import STAGES_DIR

    path = Path(name)
    if is_qdrant_address(name) or (path / MANIFEST).exists():
        with open_library(name) as library:
            yield library
        return
    if not path.exists():
        hint = "give a library, or a folder of documents"
        raise InputError(f"{name} does not exist", hint=hint)
    folder = open_folder(DataSource(None, "folder", path, None, None), skip_bad=False)
    if folder is None:
        raise InputError(f"{name} is not a library", hint="suffice build PATH --out library")
    if out.resolve().is_relative_to(path.resolve()):
        message = f"{out} is inside {path}: the loop would read its own files as documents"
        raise InputError(message, hint="choose an --out beside it")
    (out / STAGES_DIR).mkdir(parents=True, exist_ok=True)  # says whose folder this is
    with Library.build(out / "library", (), links=False) as library:
        data = folder.dataset()
        changes = update_folder(library, folder, data.documents(), progress=progress)
        check_filled(out / "library", len(library), data)
        same = not (changes.added or changes.replaced or changes.removed)
        if not quiet:
            say(f"library: {'up to date' if same else f'{len(library):,} documents'}")
        yield library
