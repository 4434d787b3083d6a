"""TREC: qrels, and optionally a run, topics and documents.

Run lines are `question Q0 document rank score tag`, grouped by question. Qrels lines are `question
0 document relevance`; relevance above 0 is gold. Topics are `question<TAB>text`; without them the
question texts are empty. Documents are our own JSON Lines (or BEIR's corpus.jsonl). A folder
contains *.run (or run.txt, run.trec), *.qrels (or qrels.txt), topics.tsv and corpus.jsonl; as
single files, `path` is the run and `questions` the qrels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

from suffice.datasets.dataset import Dataset, from_file
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.jsonl import load_documents
from suffice.datasets.locate import DatasetFiles, find_file
from suffice.errors import InputError
from suffice.storage import SKIP_HINT, BadRecords, Line, read_lines, readable_file
from suffice.types import DocId, Hit, Question, QuestionId

T = TypeVar("T")


def load(files: DatasetFiles, *, skip_bad: bool = False) -> Dataset:
    run, qrels, corpus, topics = files.path, files.questions, files.corpus, None
    if files.path is not None and files.path.is_dir():
        run = find_file(files.path, ("*.run", "run.txt", "run.trec"))
        qrels = qrels or find_file(files.path, ("*.qrels", "qrels.txt", "qrels"))
        topics = find_file(files.path, ("topics.tsv", "topics.txt", "queries.tsv"))
        corpus = corpus or find_file(files.path, ("corpus.jsonl", "documents.jsonl"))
    if qrels is None:
        raise InputError(
            "no qrels: a run alone does not say which documents are needed",
            hint="pass --questions with the qrels file",
        )
    found = _Files(
        readable_file(qrels), run and readable_file(run), topics and readable_file(topics)
    )
    return Dataset(
        "trec",
        documents=from_file(load_documents, corpus and readable_file(corpus)),
        questions=lambda bad: _questions(found, bad),
        skip_bad=skip_bad,
    )


class _Files(NamedTuple):
    qrels: Path
    run: Path | None
    topics: Path | None


def _questions(files: _Files, bad: BadRecords) -> Iterator[GoldQuestion]:
    """Judged questions: those in the run first, in its order, then those without hits."""
    needed = _load_qrels(files.qrels, bad)
    texts = load_topics(files.topics, bad) if files.topics else {}

    def question(question_id: QuestionId, hits: tuple[Hit, ...] | None) -> GoldQuestion:
        gold = frozenset(needed[question_id])
        text = texts.get(question_id, "")
        return GoldQuestion(
            Question(question_id, text), Gold(question_id, gold, hops=len(gold)), hits
        )

    left = dict.fromkeys(needed)
    if files.run is not None:
        for question_id, hits in load_run_hits(files.run, bad):
            if question_id in left:
                del left[question_id]
                yield question(question_id, hits)
        if needed and len(left) == len(needed):
            raise InputError(
                f"{files.run}: none of its questions is in {files.qrels}, "
                f"whose first is {next(iter(needed))!r}",
                hint="check that the two files belong together",
            )
    for question_id in left:
        yield question(question_id, None if files.run is None else ())


def _load_qrels(path: Path, bad: BadRecords) -> dict[QuestionId, set[DocId]]:
    """The gold of each judged question."""
    gold: dict[QuestionId, set[DocId]] = {}
    first: dict[tuple[QuestionId, DocId], str] = {}  # also those judged not relevant

    def parse(line: Line) -> None:
        question_id, _, doc_id, cell = _cells(line, 4, "question 0 document relevance")
        relevant = _number(line, "relevance", cell) > 0
        needed = gold.setdefault(question_id, set())
        if (question_id, doc_id) in first:
            raise _duplicate(line, question_id, doc_id, first[question_id, doc_id])
        first[question_id, doc_id] = line.where.rpartition(":")[2]
        if relevant:
            needed.add(doc_id)

    for _ in _parse_lines(path, bad, parse):
        pass
    return gold


class _RunLine(NamedTuple):
    line: Line
    question_id: QuestionId
    doc_id: DocId
    score: float


def load_run_hits(path: Path, bad: BadRecords) -> Iterator[tuple[QuestionId, tuple[Hit, ...]]]:
    """Each question's hits, best score first, ties in file order. Streams the questions."""

    def parse(line: Line) -> _RunLine:
        cells = _cells(line, 6, "question Q0 document rank score tag")
        return _RunLine(line, cells[0], cells[2], _number(line, "score", cells[4]))

    done: set[QuestionId] = set()
    lines = _parse_lines(path, bad, parse)
    for question_id, group in groupby(lines, key=lambda one: one.question_id):
        found: dict[DocId, _RunLine] = {}
        for one in group:
            if question_id in done:
                raise InputError(
                    f"{one.line.where}: question {question_id!r} starts again; "
                    "the lines of a question must stand together",
                    hint="sort the run by its first column, for example: sort -s -k1,1",
                )
            if one.doc_id in found:
                first = found[one.doc_id].line.where.rpartition(":")[2]
                bad.report(_duplicate(one.line, question_id, one.doc_id, first))
            else:
                found[one.doc_id] = one
        done.add(question_id)
        best_first = sorted(found.values(), key=lambda one: -one.score)
        yield question_id, tuple(Hit(one.doc_id, one.score) for one in best_first)


def load_topics(path: Path, bad: BadRecords) -> dict[QuestionId, str]:
    """The text of each question, from lines of an id, a tab and the question."""
    found: dict[QuestionId, str] = {}

    def parse(line: Line) -> None:
        question_id, text = (part.strip() for part in line.text.partition("\t")[::2])
        if not question_id or not text:
            expected = "expected a question id, a tab and the question"
            raise InputError(f"{line.where}: {expected}", hint=SKIP_HINT)
        if question_id in found:
            raise InputError(
                f"{line.where}: question id {question_id!r} comes twice", hint=SKIP_HINT
            )
        found[question_id] = text

    for _ in _parse_lines(path, bad, parse):
        pass
    return found


def _parse_lines(path: Path, bad: BadRecords, parse: Callable[[Line], T]) -> Iterator[T]:
    """The parsed lines; blank lines are skipped."""
    for line in read_lines(path, bad):
        if line.text.strip():
            try:
                value = parse(line)
            except InputError as error:
                bad.report(error)
            else:
                yield value


def _cells(line: Line, count: int, layout: str) -> list[str]:
    cells = line.text.split()
    if len(cells) != count:
        found = f"{len(cells)} columns, expected {count}: {layout}"
        raise InputError(f"{line.where}: {found}", hint=SKIP_HINT)
    return cells


def _number(line: Line, column: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{line.where}: {column} is {cell!r}, expected a number", hint=SKIP_HINT)
    return value


def _duplicate(line: Line, question_id: str, doc_id: str, first: str) -> InputError:
    return InputError(
        f"{line.where}: document {doc_id!r} comes twice for question {question_id!r}, "
        f"first on line {first}",
        hint=SKIP_HINT,
    )
