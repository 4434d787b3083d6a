"""What the options that commands share stand for, opened: documents and questions, a language model, a place to work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from suffice.cli.output import say, typed_command
from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.datasets import Dataset
    from suffice.engines.batch import BatchRunner
    from suffice.protocols import LanguageModel


def open_dataset(
    *,
    collection: str | None,
    dataset: str | None,
    path: Path | None,
    questions: Path | None,
    corpus: Path | None,
    skip_bad: bool,
    seed: int,
    documents: int | None = None,
) -> Dataset:
    """The data set or collection that the options name."""
    if (collection is None) == (dataset is None):
        raise InputError(
            "give either --collection or --dataset", hint="for example --collection controlled"
        )
    if dataset is not None:
        from suffice.datasets import load

        return load(dataset, path, questions=questions, corpus=corpus, skip_bad=skip_bad)
    from suffice.datasets import make_collection

    size = {} if documents is None else {"documents": documents}
    return make_collection(str(collection), seed=seed, **size)


def hash_files(*paths: Path | None) -> dict[str, str]:
    """The name and sha256 of every file that was given, or that a given folder holds."""
    from suffice.storage import sha256_of

    files = [
        one
        for path in paths
        if path
        for one in (sorted(path.iterdir()) if path.is_dir() else [path])
        if one.is_file()
    ]
    return {file.name: sha256_of(file) for file in files}


def open_model(
    name: str | None,
    base_url: str | None,
    *,
    timeout_s: float,
    max_tokens: int = 256,
    seed: int = 42,
    cache: Path | None = None,
) -> LanguageModel | None:
    """The language model that --model names, if it does; with a cache folder it is asked nothing twice."""
    if name is None:
        if base_url is not None:
            raise InputError(
                "--base-url names a server, but no --model",
                hint="name the model as its server does",
            )
        return None
    from suffice.integrations.openai import CachedModel, OpenAIModel

    asked = OpenAIModel(
        name, base_url=base_url, timeout_s=timeout_s, max_tokens=max_tokens, seed=seed
    )
    return asked if cache is None else CachedModel(asked, cache / "answers.db")


def open_executor(scheduler: str | None, blocks: Path | None) -> BatchRunner:
    """Where the work is done: in this process, or on the workers of --scheduler. Blocks that are finished stand in the folder
    until the command is through."""
    from suffice.engines.batch import BatchRunner

    return BatchRunner(scheduler, keep=blocks, tell=say, again=typed_command())
