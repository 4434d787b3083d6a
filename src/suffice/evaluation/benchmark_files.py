"""A made benchmark put to use: lessons for a gate, and a page that shows what is in it.

The loop that needs no labels: a corpus, questions made from it with `suffice grade`, what a retriever finds for them, a gate.
An unanswerable twin is its question asked of a corpus that lacks one needed document: that document is taken out of what the
retriever found, and the next hit moves up. It is never complete, and looks as nearly so as can be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from suffice.benchmark.audit import Audit, audit
from suffice.benchmark.stage_protocols import question_from_record
from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import GoldQuestion
from suffice.datasets.jsonl import load_documents, load_questions
from suffice.errors import InputError, NotReadyError
from suffice.evaluation.report import Page, page_html
from suffice.evaluation.searching import retrieve_dataset, to_labelled_question
from suffice.evaluation.study import Section
from suffice.evaluation.tables import Cell, Table
from suffice.gate.training import LabelledQuestion
from suffice.protocols import Progress
from suffice.storage import BadRecords, read_json_records, write_atomically
from suffice.storage.fields import required_text
from suffice.types import DocId, Evidence, Hit, QuestionId

__all__ = [
    "audit_benchmark",
    "audit_tables",
    "benchmark_questions",
    "benchmark_report",
    "missing_documents",
    "open_benchmark",
]

DOCUMENTS, QUESTIONS, TWINS, AUDIT = (
    "documents.jsonl",
    "questions.jsonl",
    "twins.jsonl",
    "audit.json",
)


def open_benchmark(folder: Path, *, twins: bool = True, limit: int | None = None) -> Dataset:
    """The benchmark as a data set, its twins behind its questions; `limit`: only the first so many of each."""
    folder = Path(folder)
    for name in (DOCUMENTS, QUESTIONS):
        if not (folder / name).is_file():
            raise NotReadyError(
                f"{folder} is not a benchmark: it has no {name}",
                hint=f"suffice grade CORPUS --out {folder}",
            )
    files = [
        folder / QUESTIONS,
        *([folder / TWINS] if twins and _has_records(folder / TWINS) else []),
    ]

    def questions(bad: BadRecords) -> Iterator[GoldQuestion]:
        for file in files:
            yield from islice(load_questions(file, bad), limit)

    return Dataset(
        "made", documents=lambda bad: load_documents(folder / DOCUMENTS, bad), questions=questions
    )


def _has_records(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def missing_documents(folder: Path) -> dict[QuestionId, DocId]:
    """Of each unanswerable twin the document that its corpus lacks."""
    path = Path(folder) / TWINS
    if not _has_records(path):
        return {}
    found: dict[QuestionId, DocId] = {}
    for record in read_json_records(path, BadRecords()):
        if record.value.get("without") is not None:
            found[required_text(record, "question_id")] = required_text(record, "without")
    return found


def benchmark_questions(
    folder: Path,
    retriever: str,
    k: int,
    *,
    twins: bool = True,
    beside: Sequence[str] = (),
    encoder: str = "wordllama",
    limit: int | None = None,
    progress: Progress | None = None,
) -> list[LabelledQuestion]:
    """Search the benchmark's corpus for its questions and twins; each becomes what a gate learns from."""
    dataset, without = open_benchmark(folder, twins=twins, limit=limit), missing_documents(folder)
    found = retrieve_dataset(
        dataset, [retriever], [k], beside=beside, encoder=encoder, progress=progress
    )
    lessons = [
        _twin_question(to_labelled_question(case), without[case.question.question_id], k)
        if case.question.question_id in without
        else to_labelled_question(case)
        for case in found.questions(retriever, k)
    ]
    if not any(set(one.needed) <= {hit.doc_id for hit in one.hits} for one in lessons):
        raise InputError(
            f"{retriever} finds all the evidence of none of the {len(lessons):,} questions",
            hint="raise --k, name another --retriever, or make easier questions",
        )
    return lessons


def _twin_question(one: LabelledQuestion, without: DocId, k: int) -> LabelledQuestion:
    after: tuple[Hit, ...] = tuple(
        hit for hit in one.hits_after or one.hits if hit.doc_id != without
    )
    others: tuple[Any, ...] = tuple(
        replace(found, hits=tuple(hit for hit in found.hits if hit.doc_id != without))
        for found in one.others
        if isinstance(found, Evidence)
    )
    documents = {
        doc_id: document for doc_id, document in one.documents.items() if doc_id != without
    }
    needed = frozenset(one.needed) | {without}
    return replace(
        one, hits=after[:k], hits_after=after, needed=needed, documents=documents, others=others
    )


# ------------------------------------------------------------------------------------------------------ what is in it


def audit_benchmark(folder: Path, *, k: int = 10) -> Audit:
    """Audit the benchmark of a folder, and keep what was found beside it as audit.json."""
    folder = Path(folder)
    made = [
        question_from_record(record.value)
        for record in read_json_records(folder / QUESTIONS, BadRecords())
    ]
    found = audit(made, load_documents(folder / DOCUMENTS, BadRecords(), empty_ok=True), k=k)
    write_atomically(
        folder / AUDIT, json.dumps(found.as_json(), indent=2, ensure_ascii=False) + "\n"
    )
    return found


def audit_tables(found: Audit) -> list[Table]:
    """The audit for people: what may be held against the questions, and how they are spread."""
    rows: list[tuple[Cell, ...]] = [
        (one.name, one.means, one.count, one.of, one.share, ", ".join(one.examples))
        for one in found.findings
    ]
    columns = ("audit", "what it means", "questions", "of", "share", "for example")
    spread = [
        (what, value, count)
        for what, counts in found.balance.items()
        for value, count in counts.items()
    ]
    return [
        Table(f"Audit of {found.questions:,} made questions", columns, tuple(rows)),
        Table("Balance", ("what", "value", "questions"), tuple(spread)),
    ]


def benchmark_report(
    folder: Path, found: Audit, path: Path, *, settings: dict[str, str], command: str = ""
) -> Path:
    """One HTML file: the audit, the balance, and a few questions of each number of hops with their answers and documents."""
    dataset = open_benchmark(folder, twins=False)
    shown: dict[int, list[tuple[Cell, ...]]] = {}
    for example in dataset.questions():
        rows = shown.setdefault(example.gold.hops, [])
        if len(rows) < 5:
            rows.append(
                (
                    example.question.text,
                    example.gold.answer or "",
                    ", ".join(sorted(example.gold.doc_ids)),
                )
            )
    samples = [
        Table(
            f"The first questions of {hops} hops", ("question", "answer", "documents"), tuple(rows)
        )
        for hops, rows in sorted(shown.items())
    ]
    sections = (Section("Audit", tuple(audit_tables(found))), Section("Questions", tuple(samples)))
    lines = [line.strip() for line in found.lines()[1 : 1 + len(found.findings)]]
    page = Page(
        "A graded benchmark",
        f"{found.questions:,} questions",
        lines,
        sections,
        list(settings.items()),
        command=command,
    )
    write_atomically(Path(path), page_html(page))
    return Path(path)
