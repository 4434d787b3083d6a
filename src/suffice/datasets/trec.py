"""TREC: qrels and, where someone has retrieved already, the run; topics and documents where there are any.

Run lines are `question Q0 document rank score tag`, the lines of a question together; qrels lines are
`question 0 document relevance`, and relevance above 0 is gold. Topics are `question<TAB>text`; without them the question texts
are empty. Documents are our own JSON Lines (or BEIR's corpus.jsonl). A folder holds *.run (or run.txt, run.trec), *.qrels (or
qrels.txt), topics.tsv and corpus.jsonl; as single files, `path` is the run and `questions` the qrels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.datasets.jsonl import load_documents
from suffice.datasets.locate import find_file
from suffice.errors import InputError
from suffice.storage import SKIP_HINT, BadRecords, Line, read_lines, readable_file
from suffice.types import DocId, Hit, Question, QuestionId

__all__ = ["load", "load_run_hits", "load_topics"]


def load(
    path: Path | None = None,
    *,
    questions: Path | None = None,
    corpus: Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    run, qrels, topics = path, questions, None
    if path is not None and path.is_dir():
        run = find_file(path, ("*.run", "run.txt", "run.trec"))
        qrels = qrels or find_file(path, ("*.qrels", "qrels.txt", "qrels"))
        topics = find_file(path, ("topics.tsv", "topics.txt", "queries.tsv"))
        corpus = corpus or find_file(path, ("corpus.jsonl", "documents.jsonl"))
    return load_run(run=run, qrels=qrels, topics=topics, corpus=corpus, skip_bad=skip_bad)


def load_run(
    *,
    qrels: Path | None,
    run: Path | None = None,
    topics: Path | None = None,
    corpus: Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    """A data set from the files of an evaluation. The run's hits stand in the examples."""
    if qrels is None:
        raise InputError(
            "no qrels: a run alone says nothing about what is needed",
            hint="pass --questions with the qrels file",
        )
    files = _Files(
        readable_file(qrels), run and readable_file(run), topics and readable_file(topics)
    )
    held = corpus and readable_file(corpus)
    return Dataset(
        "trec",
        documents=(lambda bad: load_documents(held, bad)) if held else None,
        examples=lambda bad: _examples(files, bad),
        skip_bad=skip_bad,
    )


@dataclass(frozen=True, slots=True)
class _Files:
    qrels: Path
    run: Path | None
    topics: Path | None


@dataclass(frozen=True, slots=True)
class _Judgements:
    """One question's judged documents; a document judged not relevant is known, too, so that a second line for it is seen."""

    lines: dict[DocId, str] = field(default_factory=dict)
    gold: set[DocId] = field(default_factory=set)


def _examples(files: _Files, bad: BadRecords) -> Iterator[GoldQuestion]:
    """Judged questions: those of the run first, in its order, then those it has nothing for."""
    judged = _judged(files.qrels, bad)
    texts = load_topics(files.topics, bad) if files.topics else {}

    def example(question_id: QuestionId, hits: tuple[Hit, ...] | None) -> GoldQuestion:
        gold = frozenset(judged[question_id].gold)
        return GoldQuestion(
            Question(question_id, texts.get(question_id, "")),
            Gold(question_id, gold, hops=len(gold)),
            hits,
        )

    left = dict.fromkeys(judged)
    if files.run is not None:
        for question_id, hits in load_run_hits(files.run, bad):
            if question_id in left:
                del left[question_id]
                yield example(question_id, hits)
        if judged and len(left) == len(judged):
            raise InputError(
                f"{files.run}: none of its questions is in {files.qrels}, whose first is {next(iter(judged))!r}",
                hint="check that the two files belong together",
            )
    for question_id in left:
        yield example(question_id, None if files.run is None else ())


def _cells(line: Line, count: int, layout: str) -> list[str]:
    cells = line.text.split()
    if len(cells) != count:
        raise InputError(
            f"{line.where}: {len(cells)} columns, expected {count}: {layout}", hint=SKIP_HINT
        )
    return cells


def _number(line: Line, column: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{line.where}: {column} is {cell!r}, expected a number", hint=SKIP_HINT)
    return value


def _twice(line: Line, question_id: str, doc_id: str, first: str) -> InputError:
    return InputError(
        f"{line.where}: document {doc_id!r} comes twice for question {question_id!r}, first on line {first}",
        hint=SKIP_HINT,
    )


def _judged(path: Path, bad: BadRecords) -> dict[QuestionId, _Judgements]:
    found: dict[QuestionId, _Judgements] = {}
    for line in _said(path, bad):
        try:
            question_id, _, doc_id, cell = _cells(line, 4, "question 0 document relevance")
            relevant = _number(line, "relevance", cell) > 0
            one = found.setdefault(question_id, _Judgements())
            if doc_id in one.lines:
                raise _twice(line, question_id, doc_id, one.lines[doc_id])
        except InputError as error:
            bad.report(error)
        else:
            one.lines[doc_id] = line.where.rpartition(":")[2]
            if relevant:
                one.gold.add(doc_id)
    return found


@dataclass(frozen=True, slots=True)
class _RunLine:
    line: Line
    question_id: QuestionId
    doc_id: DocId
    score: float


def load_run_hits(path: Path, bad: BadRecords) -> Iterator[tuple[QuestionId, tuple[Hit, ...]]]:
    """Each question's hits, best score first; equal scores in the order of the file. One question is held at a time."""
    done: set[QuestionId] = set()
    for question_id, lines in groupby(_run_lines(path, bad), key=lambda one: one.question_id):
        found: dict[DocId, _RunLine] = {}
        for one in lines:
            if question_id in done:
                raise InputError(
                    f"{one.line.where}: question {question_id!r} starts again; the lines of a question must stand together",
                    hint="sort the run by its first column, for example: sort -s -k1,1",
                )
            if one.doc_id in found:
                first = found[one.doc_id].line.where.rpartition(":")[2]
                bad.report(_twice(one.line, question_id, one.doc_id, first))
            else:
                found[one.doc_id] = one
        done.add(question_id)
        best_first = sorted(found.values(), key=lambda one: -one.score)
        yield question_id, tuple(Hit(one.doc_id, one.score) for one in best_first)


def _run_lines(path: Path, bad: BadRecords) -> Iterator[_RunLine]:
    for line in _said(path, bad):
        try:
            question_id, _, doc_id, _, score, _ = _cells(
                line, 6, "question Q0 document rank score tag"
            )
            found = _RunLine(line, question_id, doc_id, _number(line, "score", score))
        except InputError as error:
            bad.report(error)
        else:
            yield found


def load_topics(path: Path, bad: BadRecords) -> dict[QuestionId, str]:
    """The words of each question: lines of an id, a tab and the question."""
    found: dict[QuestionId, str] = {}
    for line in _said(path, bad):
        question_id, _, words = line.text.partition("\t")
        question_id, words = question_id.strip(), words.strip()
        if not question_id or not words:
            bad.report(
                InputError(
                    f"{line.where}: expected a question id, a tab and the question", hint=SKIP_HINT
                )
            )
        elif question_id in found:
            bad.report(
                InputError(f"{line.where}: question id {question_id!r} comes twice", hint=SKIP_HINT)
            )
        else:
            found[question_id] = words
    return found


def _said(path: Path, bad: BadRecords) -> Iterator[Line]:
    return (line for line in read_lines(path, bad) if line.text.strip())
