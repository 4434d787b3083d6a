"""FRAMES: questions with their Wikipedia links, in the layout of the public test.tsv.

The file names articles but has no text. As in the paper, the corpus consists of every gold article
by its title: the document's id is the title as in a link, with underscores; its title has spaces;
its text is empty. `docs/decisions/0003-data-of-papers.md` explains which links name an article, and
why.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, unquote

from suffice.datasets.dataset import Dataset, from_file, unique_documents
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.locate import DatasetFiles
from suffice.errors import InputError
from suffice.storage import BadRecords, Record
from suffice.storage.fields import UniqueIds, field_error, optional_text, required_text
from suffice.storage.records import parse_records, read_tsv
from suffice.types import Document, Question


def load(files: DatasetFiles, *, skip_bad: bool = False) -> Dataset:
    if files.corpus is not None:
        raise InputError(
            "FRAMES has no corpus file: its documents are the titles in the question file",
            hint="leave --corpus out",
        )
    tsv = files.locate(("test.tsv", "*.tsv")).questions
    if tsv is None:
        raise InputError(
            "FRAMES needs its question file", hint="pass --path with the path of test.tsv"
        )
    return Dataset(
        "frames",
        documents=from_file(_documents, tsv),
        questions=from_file(_questions, tsv),
        skip_bad=skip_bad,
        one_file=True,
    )


def _documents(path: Path, bad: BadRecords) -> Iterator[Document]:
    return unique_documents(
        [Document(article, "", title=article.replace("_", " ")) for article in sorted(doc_ids)]
        for doc_ids in (one.gold.doc_ids for one in _questions(path, bad))
    )


def _questions(path: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
    ids = UniqueIds("question")
    row = count()

    def parse(record: Record) -> GoldQuestion:
        at = next(row)
        question_id = optional_text(record, "Unnamed: 0") or optional_text(record, "") or str(at)
        ids.check(question_id, record.where)
        articles = linked_articles(record)
        if not articles:
            raise InputError(
                f"{record.where}: no column links to a Wikipedia article",
                hint="give the question its links",
            )
        labels = [label.strip() for label in record.value["reasoning_types"].split("|")]
        return GoldQuestion(
            Question(question_id, required_text(record, "Prompt")),
            Gold(
                question_id,
                frozenset(articles),
                answer=optional_text(record, "Answer"),
                hops=len(articles),
                labels=tuple(dict.fromkeys(label for label in labels if label)),
            ),
        )

    return parse_records(_rows(path, bad), bad, parse)


def _rows(path: Path, bad: BadRecords) -> Iterator[Record]:
    for record in read_tsv(path, bad, columns=("Prompt", "Answer", "reasoning_types")):
        if not any(_is_link_column(column) for column in record.value):
            raise InputError(
                f"{path}:1: no column 'wikipedia_link_1' or 'wiki_links'; "
                f"the header has: {', '.join(record.value)}",
                hint="check that the file is FRAMES' test.tsv",
            )
        yield record


# -------------------------------------------------------------------------------------------- links

# A link starts at its scheme or at a bare host. Do not split at commas: titles contain them.
_START = re.compile(r"https?://|(?<![\w./-])(?=(?:[\w-]+\.)+wikipedia\.org/)", re.IGNORECASE)
_HOST = re.compile(
    r"(?:https?://)?(?:[\w-]+\.)+wikipedia\.org/(?P<page>.*)", re.IGNORECASE | re.DOTALL
)
_OPTIONAL = re.compile(r"\bnot required\b", re.IGNORECASE)
_NO_ARTICLES = frozenset(
    "category file help image mediawiki module portal special talk template user wikipedia".split()
)  # pages of these namespaces are not articles


def linked_articles(record: Record) -> tuple[str, ...]:
    """The articles that a row links to, in order and without duplicates: "Utica,_New_York"."""
    found: dict[str, str] = {}
    for column, cell in record.value.items():
        if _is_link_column(column):
            for item in _cell_items(record, column, cell):
                starts = [match.start() for match in _START.finditer(item)]
                for start, end in zip(starts, [*starts[1:], len(item)]):
                    if article := _article(item[start:end].strip(" \t\r\n,;|")):
                        found.setdefault(article.casefold(), article)
    return tuple(found.values())


def _is_link_column(column: str) -> bool:
    return column.startswith("wikipedia_link") or column == "wiki_links"


def _cell_items(record: Record, column: str, cell: str) -> list[str]:
    """The items of a cell: links, or a list in Python or JSON notation."""
    if not cell.lstrip().startswith("["):
        return [cell]
    try:
        found = ast.literal_eval(cell.strip())
        return [str(item) for item in found]
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        expected = "links, or a list of links in brackets and quotes"
        raise field_error(record, column, expected) from None


def _article(link: str) -> str | None:
    """The title of the linked article, with underscores; None if optional or not an article."""
    match = _HOST.fullmatch(link)
    if match is None or _OPTIONAL.search(link):
        return None
    page, _, query = match["page"].partition("#")[0].partition("?")
    if page.startswith("wiki/"):
        title = page.removeprefix("wiki/")
    else:
        title = parse_qs(query).get("title", [""])[0]
    title = unquote(unquote(title))  # one link in the file is escaped twice
    title = re.sub(r"[\s_]+", "_", unicodedata.normalize("NFC", title))
    kept = (char for char in title if unicodedata.category(char) not in ("Cc", "Cf"))
    title = "".join(kept).strip("_")
    namespace = title.partition(":")[0].casefold().removesuffix("_talk")
    return None if not title or (":" in title and namespace in _NO_ARTICLES) else title
