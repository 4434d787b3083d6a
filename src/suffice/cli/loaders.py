"""Open what the shared options name: a data set, a language model, an executor."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.cli.output import say, typed_command
from suffice.errors import InputError
from suffice.types import printable

if TYPE_CHECKING:
    from suffice.datasets import Dataset
    from suffice.engines.batch import BatchRunner
    from suffice.evaluation.verdict_log import VerdictLog
    from suffice.gate.gate import Gate
    from suffice.integrations.judge import ModelJudge
    from suffice.library import Library
    from suffice.protocols import LanguageModel

LABEL_SECONDS = 60.0  # for a judge's answer if it is a label


@dataclass(frozen=True, slots=True)
class DataSource:
    """The options --collection or --dataset with its files."""

    collection: str | None
    dataset: str | None
    path: Path | None
    questions: Path | None
    corpus: Path | None

    def open(self, *, skip_bad: bool, seed: int, documents: int | None = None) -> Dataset:
        from suffice.datasets import load, make_collection

        if (self.collection is None) == (self.dataset is None):
            hint = "for example --dataset jsonl --path FOLDER, or --collection controlled"
            raise InputError("give either --collection or --dataset", hint=hint)
        if self.dataset is not None:
            files = {"questions": self.questions, "corpus": self.corpus}
            return load(self.dataset, self.path, **files, skip_bad=skip_bad)
        size = {} if documents is None else {"documents": documents}
        return make_collection(str(self.collection), seed=seed, **size)

    @property
    def name(self) -> str:
        """What the options name, told apart from other sources."""
        paths = [one for one in (self.path, self.questions, self.corpus) if one is not None]
        said = [self.collection, self.dataset, *(one.resolve() for one in paths)]
        return " ".join(str(one) for one in said if one is not None)

    def hashes(self) -> dict[str, str]:
        """The sha256 of each given file, and of each file in a given folder, by name."""
        from suffice.storage import sha256_of

        files: list[Path] = []
        for path in filter(None, (self.path, self.questions, self.corpus)):
            files += sorted(path.iterdir()) if path.is_dir() else [path]
        return {file.name: sha256_of(file) for file in files if file.is_file()}


def name_library(*arguments: str | None, option: str | None) -> list[str]:
    """The library, from --library or the first argument, and the question after it, if any."""
    given = [one for one in (option, *arguments) if one is not None]
    if len(given) > len(arguments):
        hint = "give the library once: as the first argument, or with --library"
        raise InputError(f"there are two libraries: {option} and {arguments[0]}", hint=hint)
    # Path.exists fails on a question that is too long for a file name.
    if option is None and [*map(os.path.exists, given)] == [False, True]:
        hint = f"the library comes first; or use --library {given[1]}"
        raise InputError(f"{given[0]!r} is not a library", hint=hint)
    return given


def open_library(address: str | Path) -> Library:
    """The library; what it lacks because a write was cut off is said with the next command."""
    from suffice.engines.library_location import open_location
    from suffice.engines.qdrant import is_qdrant_address
    from suffice.library import Library

    library = Library(open_location(address))
    say_unfinished(library)
    if not len(library) and not library.unfinished:
        option = "--store" if is_qdrant_address(address) else "--out"
        add = f"suffice build FOLDER {option} {address}"
        say(f"note: {printable(f'{address} has no documents')}\nnext: {printable(add)}")
    return library


def say_unfinished(library: Library) -> None:
    for one in library.unfinished:
        say(f"note: {printable(f'{library.path}: {one}')}\nnext: {printable(one.next_step)}")


def open_model(
    name: str | None,
    base_url: str | None,
    *,
    timeout_s: float,
    cache: Path | None = None,
    **options: Any,
) -> LanguageModel | None:
    """The model of --model, or None; with a cache folder it never gets the same prompt twice."""
    if name is None:
        if base_url is not None:
            hint = "name the model as its server does"
            raise InputError("--base-url needs --model", hint=hint)
        return None
    from suffice.integrations.openai import CachedModel, OpenAIModel

    model = OpenAIModel(name, base_url=base_url, timeout_s=timeout_s, **options)
    return model if cache is None else CachedModel(model, cache / "answers.db")


def open_gate(gate: str, preset: str, judge: str | None) -> Gate:
    """The gate of --gate and --preset, with the judge of --judge behind it if there is one."""
    from suffice.gate import gate_ref

    opened = gate_ref.open_gate(gate, preset)
    return opened if judge is None else opened.with_judge(open_judge(judge))


def open_judge(judge: str, *, labels: bool = False) -> ModelJudge:
    """The judge at that address; for labels, nobody waits for it."""
    from suffice.integrations import judge as integration

    timeout_s = LABEL_SECONDS if labels else integration.TIMEOUT_S
    return integration.open_judge(judge, timeout_s=timeout_s)


def verdict_log(path: Path | None, texts: bool) -> VerdictLog | None:
    """The log of --shadow, if it can be written."""
    from suffice.evaluation.verdict_log import VerdictLog
    from suffice.storage import check_appendable

    if path is None:
        if texts:
            hint = "for example --shadow shadow.jsonl --shadow-texts"
            raise InputError("--shadow-texts needs --shadow", hint=hint)
        return None
    check_appendable(path)
    return VerdictLog(path, texts)


def open_executor(scheduler: str | None, checkpoint: Path | None) -> BatchRunner:
    """Runs jobs in this process, or on the workers of --scheduler."""
    from suffice.engines.batch import BatchRunner

    return BatchRunner(scheduler, checkpoint=checkpoint, report=say, command=typed_command())
