"""Data sets in their original formats, read one record at a time, and the gold that goes with them.

`read("frames", "test.tsv")` gives a Dataset, whose `documents()` and `examples()` stream. One module holds one format.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from suffice.datasets import beir, fetch, frames, hotpotqa, jsonl, multihop_rag, musique, ragas, trec, twowiki
from suffice.datasets.dataset import Dataset, Summary, check_gold, describe
from suffice.datasets.gold import Example, Gold, Split, split
from suffice.errors import InputError, nearest

__all__ = ["READERS", "Dataset", "Example", "Gold", "Split", "Summary", "check_gold", "describe", "read", "split"]

READERS: dict[str, Callable[..., Dataset]] = {
    "frames": frames.read,
    "multihop_rag": multihop_rag.read,
    "hotpotqa": hotpotqa.read,
    "2wikimultihopqa": twowiki.read,
    "musique": musique.read,
    "beir": beir.read,
    "trec": trec.read,
    "ragas": ragas.read,
    "jsonl": jsonl.read,
}


def read(
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
    known = {_plain(one): one for one in READERS} | {"2wiki": "2wikimultihopqa"}
    if _plain(name) not in known:
        raise InputError(f"there is no data set '{name}'", hint=nearest(name, READERS))
    name = known[_plain(name)]
    if path is None and questions is None and corpus is None:
        path = fetch.public_files(name)
    places = {"questions": questions and Path(questions), "corpus": corpus and Path(corpus)}
    return READERS[name](path and Path(path), **places, skip_bad=skip_bad)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())
