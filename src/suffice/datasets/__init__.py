"""Data sets in their original formats, streamed record by record, with their gold labels.

`load("beir", "scifact")` returns a Dataset; its `documents()` and `questions()` stream. To add a
format, write `load(files, *, skip_bad)` and register it as an entry point `format.<name>` in the
group `suffice.plugins`; a generated collection is an entry point `dataset.<name>`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from suffice.datasets import beir, folder, jsonl, ragas, trec
from suffice.datasets.dataset import Dataset, Summary, check_gold, describe
from suffice.datasets.gold import Gold, GoldQuestion, Split, split
from suffice.datasets.labels import Label, LabelledExamples, read_labels, to_examples
from suffice.datasets.locate import DatasetFiles
from suffice.errors import InputError
from suffice.registry import Registry, missing_package

__all__ = [
    "COLLECTIONS",
    "FORMATS",
    "Dataset",
    "Gold",
    "GoldQuestion",
    "Label",
    "LabelledExamples",
    "Split",
    "Summary",
    "check_gold",
    "describe",
    "load",
    "make_collection",
    "read_labels",
    "split",
    "to_examples",
]


FORMATS: Registry[Dataset] = Registry("format")
for _name, _module in (
    ("beir", beir),
    ("trec", trec),
    ("ragas", ragas),
    ("jsonl", jsonl),
    ("folder", folder),
):
    FORMATS.add(_name, _module.load)
IN_RESEARCH = ("frames", "multihop_rag", "hotpotqa", "2wikimultihopqa", "musique")
COLLECTIONS: Registry[Dataset] = Registry("dataset")  # generated, not loaded from files


def load(
    name: str,
    path: str | Path | None = None,
    *,
    questions: str | Path | None = None,
    corpus: str | Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    """Load a data set from a folder or file, or from a question file and a corpus file.

    With `skip_bad`, bad records are skipped, counted and listed in `.bad`; otherwise the first one
    raises an InputError. Case, hyphens and underscores in the name do not matter.
    """
    known = {_plain(one): one for one in (*IN_RESEARCH, *FORMATS.names())}
    name = known.get(_plain(name), name)
    if name in IN_RESEARCH and name not in FORMATS.names():
        raise missing_package(f"the data set '{name}'", "suffice-research")
    read = FORMATS.get(name)
    if path is None and questions is None and corpus is None:
        hint = "give the files: --path, or --questions and --corpus"
        raise InputError(f"no file of '{name}' is given", hint=hint)
    paths = [None if one is None else Path(one) for one in (path, questions, corpus)]
    return read(DatasetFiles(*paths), skip_bad=skip_bad)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def make_collection(name: str, **options: Any) -> Dataset:
    """Generate a collection, for example `make_collection("controlled", seed=42)`."""
    if name == "controlled" and name not in COLLECTIONS.names():
        raise missing_package("the collection 'controlled'", "suffice-research")
    return COLLECTIONS.get(name)(**options)
