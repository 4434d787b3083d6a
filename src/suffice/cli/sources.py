"""Where a command's documents and questions come from: a data set's files, or a collection that is made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.datasets import Dataset


def open_data(
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
        raise InputError("give either --collection or --dataset", hint="for example --collection controlled")
    if dataset is not None:
        from suffice.datasets import read

        return read(dataset, path, questions=questions, corpus=corpus, skip_bad=skip_bad)
    if collection != "controlled":
        raise InputError(f"no collection is named {collection!r}", hint="the one that is made here is 'controlled'")
    from suffice.datasets.controlled import PAPER_DOCUMENTS, controlled

    return controlled(seed=seed, documents=documents or PAPER_DOCUMENTS)


def hashes(*paths: Path | None) -> dict[str, str]:
    """The name and sha256 of every file that was given, or that a given folder holds."""
    from suffice.files import sha256_of

    files = [one for path in paths if path for one in (sorted(path.iterdir()) if path.is_dir() else [path]) if one.is_file()]
    return {file.name: sha256_of(file) for file in files}
