"""BEIR: a folder of corpus.jsonl, queries.jsonl and qrels/<split>.tsv.

Documents and queries have `_id` and `text`, documents also `title`. Qrels have the columns query-id, corpus-id and score; a
score above 0 is gold. The split is test where there is one, else the only one; another is chosen by giving its file, such as
scifact/qrels/dev.tsv, as `path` or as `questions`. Queries without a line in the qrels belong to other splits: they are passed
over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from suffice.datasets.dataset import Dataset
from suffice.datasets.fields import UniqueIds, field_error, parse_records, read_tsv, required_text
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.jsonl import load_documents
from suffice.datasets.locate import find_file
from suffice.errors import InputError
from suffice.storage import BadRecords, Record, read_json_records, readable_file
from suffice.types import DocId, Question, QuestionId

__all__ = ["load"]


@dataclass(frozen=True, slots=True)
class _Folder:
    corpus: Path | None
    queries: Path | None
    qrels: Path | None


def load(
    path: Path | None = None,
    *,
    questions: Path | None = None,
    corpus: Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    folder = _folder(path, questions, corpus)
    held, queries, qrels = folder.corpus, folder.queries, folder.qrels
    return Dataset(
        "beir",
        documents=(lambda bad: load_documents(held, bad, empty_ok=True)) if held else None,
        examples=(lambda bad: _examples(queries, qrels, bad)) if queries and qrels else None,
        skip_bad=skip_bad,
    )


def _folder(path: Path | None, questions: Path | None, corpus: Path | None) -> _Folder:
    """The three files. Those that are not named are looked for beside the ones that are."""
    named = [one for one in (questions, path) if one is not None]
    qrels = next((readable_file(one) for one in named if one.suffix == ".tsv"), None)
    queries = next(
        (readable_file(one) for one in named if not one.is_dir() and one.suffix != ".tsv"), None
    )
    root = (
        path
        if path is not None and path.is_dir()
        else queries.parent
        if queries
        else qrels.parent.parent
        if qrels
        else None
    )
    if root is not None:
        corpus = corpus or find_file(root, ("corpus.jsonl",))
        queries = queries or find_file(root, ("queries.jsonl",))
        qrels = qrels or find_file(root, ("qrels/test.tsv", "qrels/*.tsv"))
        missing = [
            name
            for name, file in (("queries.jsonl", queries), ("qrels/test.tsv", qrels))
            if file is None
        ]
        if missing and (corpus is None or len(missing) == 1):
            raise InputError(
                f"{root} has no {' and no '.join(missing)}",
                hint="give the folder of the data set as --path",
            )
    return _Folder(corpus and readable_file(corpus), queries, qrels)


def _examples(queries: Path, qrels: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
    judged = _judged(qrels, bad)
    once = UniqueIds("question")

    def example(record: Record) -> GoldQuestion | None:
        question_id = required_text(record, "_id")
        once.check(question_id, record.where)
        if question_id not in judged:
            return None
        gold = frozenset(judged.pop(question_id))
        return GoldQuestion(
            Question(question_id, required_text(record, "text")),
            Gold(question_id, gold, hops=len(gold)),
        )

    for found in parse_records(read_json_records(queries, bad), bad, example):
        if found is not None:
            yield found
    if judged:
        first = next(iter(judged))
        error = (
            f"{qrels}: {len(judged):,} questions are not in {queries.name}, the first is {first!r}"
        )
        bad.report(InputError(error, hint="check that the two files belong together"))


def _judged(path: Path, bad: BadRecords) -> dict[QuestionId, list[DocId]]:
    """The gold of each judged question; none where all its scores are 0."""
    rows = read_tsv(path, bad, columns=("query-id", "corpus-id", "score"))
    gold: dict[QuestionId, list[DocId]] = {}
    for question_id, doc_id, score in parse_records(rows, bad, _judgement):
        found = gold.setdefault(question_id, [])
        if score > 0:
            found.append(doc_id)
    return gold


def _judgement(record: Record) -> tuple[QuestionId, DocId, float]:
    return required_text(record, "query-id"), required_text(record, "corpus-id"), _score(record)


def _score(record: Record) -> float:
    try:
        return float(record.value["score"])
    except ValueError:
        raise field_error(record, "score", "a number") from None
