"""BEIR: a folder of corpus.jsonl, queries.jsonl and qrels/<split>.tsv.

Documents and queries have `_id` and `text`, documents also `title`. Qrels have the columns
query-id, corpus-id and score; a score above 0 is gold. The split is test if there is one, else the
only one. To choose another, pass its file, such as scifact/qrels/dev.tsv, as `path` or as
`questions`. Queries without a line in the qrels belong to other splits and are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from suffice.datasets.dataset import Dataset, from_file
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.jsonl import load_documents
from suffice.datasets.locate import DatasetFiles, find_file
from suffice.errors import InputError
from suffice.storage import BadRecords, Record, read_json_records, readable_file
from suffice.storage.fields import UniqueIds, field_error, required_text
from suffice.storage.records import parse_records, read_tsv
from suffice.types import DocId, Question, QuestionId


def load(files: DatasetFiles, *, skip_bad: bool = False) -> Dataset:
    """Load the data set; files that are not named are searched beside those that are."""
    path, corpus = files.path, files.corpus
    named = [one for one in (files.questions, path) if one is not None]
    qrels = next((readable_file(one) for one in named if one.suffix == ".tsv"), None)
    queries = next(
        (readable_file(one) for one in named if not one.is_dir() and one.suffix != ".tsv"), None
    )
    root = path if path is not None and path.is_dir() else queries.parent if queries else None
    if root is None and qrels is not None:
        root = qrels.parent.parent
    if root is not None:
        corpus = corpus or find_file(root, ("corpus.jsonl",))
        queries = queries or find_file(root, ("queries.jsonl",))
        qrels = qrels or find_file(root, ("qrels/test.tsv", "qrels/*.tsv"))
        expected = (("queries.jsonl", queries), ("qrels/test.tsv", qrels))
        missing = [name for name, file in expected if file is None]
        if missing and (corpus is None or len(missing) == 1):
            raise InputError(
                f"{root} has no {' and no '.join(missing)}",
                hint="give the folder of the data set as --path",
            )
    return Dataset(
        "beir",
        documents=from_file(
            partial(load_documents, empty_ok=True), corpus and readable_file(corpus)
        ),
        questions=partial(_questions, queries, qrels) if queries and qrels else None,
        skip_bad=skip_bad,
    )


def _questions(queries: Path, qrels: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
    gold = _gold(qrels, bad)
    ids = UniqueIds("question")

    def parse(record: Record) -> GoldQuestion | None:
        question_id = required_text(record, "_id")
        ids.check(question_id, record.where)
        if question_id not in gold:
            return None
        needed = frozenset(gold.pop(question_id))
        question = Question(question_id, required_text(record, "text"))
        return GoldQuestion(question, Gold(question_id, needed, hops=len(needed)))

    found = parse_records(read_json_records(queries, bad), bad, parse)
    yield from (one for one in found if one is not None)
    if gold:
        bad.report(
            InputError(
                f"{qrels}: {len(gold):,} questions are not in {queries.name}, "
                f"the first is {next(iter(gold))!r}",
                hint="check that the two files belong together",
            )
        )


def _gold(qrels: Path, bad: BadRecords) -> dict[QuestionId, list[DocId]]:
    """The gold of each judged question; empty if all its scores are 0."""
    rows = read_tsv(qrels, bad, columns=("query-id", "corpus-id", "score"))
    gold: dict[QuestionId, list[DocId]] = {}
    for question_id, doc_id, score in parse_records(rows, bad, _judgement):
        needed = gold.setdefault(question_id, [])
        if score > 0:
            needed.append(doc_id)
    return gold


def _judgement(record: Record) -> tuple[QuestionId, DocId, float]:
    ids = required_text(record, "query-id"), required_text(record, "corpus-id")
    try:
        return *ids, float(record.value["score"])
    except ValueError:
        raise field_error(record, "score", "a number") from None
