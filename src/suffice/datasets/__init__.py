"""Data sets in their original formats, streamed record by record, with their gold labels.

`load("frames", "test.tsv")` returns a Dataset; its `documents()` and `questions()` stream. To add a
format, write a module with a `load` function and add a line to FORMATS. To add a generated
collection, register an entry point `dataset.<name>` in the group `suffice.plugins`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.datasets import (
    beir,
    folder,
    frames,
    hotpotqa,
    jsonl,
    multihop_rag,
    musique,
    ragas,
    trec,
)
from suffice.datasets.dataset import Dataset, Summary, check_gold, describe
from suffice.datasets.gold import Gold, GoldQuestion, Split, split
from suffice.datasets.labels import Label, LabelledExamples, read_labels, to_examples
from suffice.datasets.locate import DatasetFiles, HubFiles, fetch_public_files
from suffice.errors import InputError, did_you_mean
from suffice.registry import Registry, missing_package

__all__ = [
    "COLLECTIONS",
    "FORMATS",
    "Dataset",
    "Format",
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


@dataclass(frozen=True, slots=True)
class Format:
    """The loader of a format (`load(files, skip_bad=...)`), and its public files, if any."""

    load: Callable[..., Dataset]
    hub: HubFiles | None = None


_HIPPORAG = "osunlp/HippoRAG_2"
FORMATS: dict[str, Format] = {
    "frames": Format(frames.load, HubFiles("google/frames-benchmark", ("test.tsv",))),
    "multihop_rag": Format(
        multihop_rag.load, HubFiles("yixuantt/MultiHopRAG", ("MultiHopRAG.json", "corpus.json"))
    ),
    "hotpotqa": Format(
        hotpotqa.load, HubFiles(_HIPPORAG, ("hotpotqa.json", "hotpotqa_corpus.json"))
    ),
    "2wikimultihopqa": Format(
        hotpotqa.load_2wiki,
        HubFiles(_HIPPORAG, ("2wikimultihopqa.json", "2wikimultihopqa_corpus.json")),
    ),
    "musique": Format(musique.load, HubFiles(_HIPPORAG, ("musique.json", "musique_corpus.json"))),
    "beir": Format(beir.load),
    "trec": Format(trec.load),
    "ragas": Format(ragas.load),
    "jsonl": Format(jsonl.load),
    "folder": Format(folder.load),
}
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

    Without a path, the public files are downloaded. With `skip_bad`, bad records are skipped,
    counted and listed in `.bad`; otherwise the first one raises an InputError. Case, hyphens and
    underscores in the name do not matter.
    """
    known = {_plain(one): one for one in FORMATS} | {"2wiki": "2wikimultihopqa"}
    if _plain(name) not in known:
        raise InputError(f"there is no data set '{name}'", hint=did_you_mean(name, FORMATS))
    name = known[_plain(name)]
    if path is None and questions is None and corpus is None:
        path = fetch_public_files(name, FORMATS[name].hub)
    paths = [None if one is None else Path(one) for one in (path, questions, corpus)]
    return FORMATS[name].load(DatasetFiles(*paths), skip_bad=skip_bad)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def make_collection(name: str, **options: Any) -> Dataset:
    """Generate a collection, for example `make_collection("controlled", seed=42)`."""
    if name == "controlled" and name not in COLLECTIONS.names():
        raise missing_package("the collection 'controlled'", "suffice-research")
    return COLLECTIONS.get(name)(**options)
