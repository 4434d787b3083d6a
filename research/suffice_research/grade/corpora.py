"""Corpora of different kinds, to judge by hand what is extracted from them.

multihop_rag   news, public                     everyday        our own short texts, pooled
manuals        manual pages of this machine     controlled      our own news, made from a seed
handbook       the markdown of this repository  covidqa         passages of medical articles, public
home_texts, legal_finance, ...                  a single file of our own short texts: loose prose
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

from suffice.datasets import load
from suffice.errors import InputError
from suffice.types import Document
from suffice_research.controlled import controlled_collection

ROOT = Path(__file__).parents[3]
PASSAGE_WORDS = 110
MANUAL_PAGES = 1_000
MANUAL_SECTIONS = "1578"  # programs, files, conventions, administration: not the C library


def multihop_rag(data: Path) -> list[Document]:
    return list(load("multihop_rag", data / "multihop_rag").documents())


def everyday(data: Path, files: str = "*") -> list[Document]:
    """The documents and look-alikes of all cases, without duplicates."""
    found: dict[str, Document] = {}
    for path in sorted((ROOT / "research" / "everyday").glob(f"{files}.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for case in map(json.loads, lines):
                for one in (*case["docs"], *case["distractors"]):
                    doc_id = f"{case['id']}/{one['id']}"
                    document = Document(doc_id, one["text"], title=one.get("title") or "")
                    found.setdefault(one["text"], document)
    return list(found.values())


def covidqa(data: Path) -> list[Document]:
    """The articles in passages, as a retriever would hold them."""
    with gzip.open(data / "covidqa/covidqa.json.gz", "rt", encoding="utf-8") as file:
        articles = [
            paragraph["context"]
            for article in json.load(file)["data"]
            for paragraph in article["paragraphs"]
        ]
    found: dict[str, Document] = {}
    for number, article in enumerate(articles):
        words = article.split()
        for at in range(0, len(words), PASSAGE_WORDS):
            text = " ".join(words[at : at + PASSAGE_WORDS])
            found.setdefault(text, Document(f"{number}/{at}", text))
    return list(found.values())


def handbook(data: Path) -> list[Document]:
    paths = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("research/**/*.md")))
    found = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^# (.+)$", text, re.MULTILINE)
        name = path.relative_to(ROOT).as_posix()
        found.append(Document(name, text, title=title[1] if title else path.stem))
    return found


def controlled(data: Path) -> list[Document]:
    return list(controlled_collection().documents())


def manuals(data: Path) -> list[Document]:
    """A seeded draw of the manual pages on this machine, without duplicates."""
    if shutil.which("man") is None:
        raise InputError("this machine has no `man`", hint="read another corpus")
    listed = subprocess.run(["man", "-k", "."], capture_output=True, text=True, check=False).stdout
    names = re.findall(rf"^(\S+) \(([{MANUAL_SECTIONS}]\w*)\)", listed, re.MULTILINE)
    Random(7).shuffle(names)
    return list(islice(_manual_pages(names), MANUAL_PAGES))


def _manual_pages(names: list[tuple[str, str]]) -> Iterator[Document]:
    wide = os.environ | {"MANWIDTH": "10000", "LC_ALL": "C.UTF-8"}
    seen = set()
    for name, section in names:
        command = ["man", "--nh", "--nj", "-P", "cat", section, name]
        shown = subprocess.run(command, capture_output=True, text=True, env=wide, check=False)
        text = re.sub(r".\x08", "", shown.stdout)
        text = "\n".join(line.rstrip() for line in text.splitlines())
        if len(text) > 200 and text not in seen:
            seen.add(text)
            title = f"{name}({section})"
            yield Document(title, text, title=title)


CORPORA: dict[str, Callable[[Path], list[Document]]] = {
    one.__name__: one for one in (multihop_rag, manuals, everyday, handbook, controlled, covidqa)
}
CORPORA |= {
    path.stem: partial(everyday, files=path.stem)
    for path in sorted((ROOT / "research" / "everyday").glob("*.jsonl"))
}
