"""Data sets in their original formats, read one record at a time, and the gold that goes with them.

`read("frames", "test.tsv")` gives a Dataset, whose `documents()` and `examples()` stream. One module holds one format.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from suffice.datasets import (
    beir,
    frames,
    hotpotqa,
    jsonl,
    locate,
    multihop_rag,
    musique,
    ragas,
    trec,
)
from suffice.datasets.dataset import Dataset, Summary, check_gold, describe
from suffice.datasets.gold import Gold, GoldQuestion, Split, split
from suffice.errors import InputError, did_you_mean

__all__ = [
    "LOADERS",
    "Dataset",
    "Gold",
    "GoldQuestion",
    "Split",
    "Summary",
    "check_gold",
    "describe",
    "load",
    "split",
]

LOADERS: dict[str, Callable[..., Dataset]] = {
    "frames": frames.load,
    "multihop_rag": multihop_rag.load,
    "hotpotqa": hotpotqa.load,
    "2wikimultihopqa": hotpotqa.load_2wiki,
    "musique": musique.load,
    "beir": beir.load,
    "trec": trec.load,
    "ragas": ragas.load,
    "jsonl": jsonl.load,
}


def load(
    name: str,
    path: str | Path | None = None,
    *,
    questions: str | Path | None = None,
    corpus: str | Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    """The data set of this name, from a folder or file, or from a question file and a corpus file.

    Without any path the public files are fetched. With `skip_bad`, bad records are left out, counted and listed in `.bad`;
    otherwise the first one is an InputError. Case, hyphens and underscores in the name do not matter.
    """
    known = {_plain(one): one for one in LOADERS} | {"2wiki": "2wikimultihopqa"}
    if _plain(name) not in known:
        raise InputError(f"there is no data set '{name}'", hint=did_you_mean(name, LOADERS))
    name = known[_plain(name)]
    if path is None and questions is None and corpus is None:
        path = locate.fetch_public_files(name)
    places = {"questions": questions and Path(questions), "corpus": corpus and Path(corpus)}
    return LOADERS[name](path and Path(path), **places, skip_bad=skip_bad)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())
