"""Use a benchmark from `suffice grade`: questions for a gate, and a page about the benchmark.

No labels are needed, only a corpus, questions generated from it, a retriever's hits and a gate. An
unanswerable twin is a question over a corpus that lacks one needed document: that document is
removed from the hits, and the next hits move up. In a look-alike twin, a changed copy replaces it.
A twin is never complete, but looks nearly complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import GoldQuestion
from suffice.datasets.jsonl import load_documents, load_questions, parse_document
from suffice.errors import InputError, NotReadyError
from suffice.evaluation.report import Cell, Page, Section, Table, write_page
from suffice.evaluation.searching import (
    RetrievedQuestion,
    retrieve_dataset,
    to_labelled_question,
)
from suffice.gate.training import LabelledQuestion
from suffice.protocols import Progress
from suffice.storage import BadRecords, Record, read_json_records, write_atomically
from suffice.storage.fields import required_text
from suffice.types import DocId, Document, Hit, QuestionId
from suffice_grade.audit import Audit, audit
from suffice_grade.stage_protocols import question_from_record

__all__ = [
    "audit_benchmark",
    "benchmark_questions",
    "benchmark_report",
    "label_benchmark",
    "open_benchmark",
]

DOCUMENTS, QUESTIONS, TWINS = "documents.jsonl", "questions.jsonl", "twins.jsonl"
AUDIT = "audit.json"
SAMPLES = 5  # questions on the page for each number of hops


def open_benchmark(folder: Path, *, twins: bool = True, limit: int | None = None) -> Dataset:
    """The benchmark as a data set, questions first, then twins, at most `limit` of each."""
    folder = Path(folder)
    for name in (DOCUMENTS, QUESTIONS):
        if not (folder / name).is_file():
            raise NotReadyError(
                f"{folder} is not a benchmark: it has no {name}",
                hint=f"suffice grade CORPUS --out {folder}",
            )
    names = (QUESTIONS, TWINS) if twins and _has_records(folder / TWINS) else (QUESTIONS,)

    def questions(bad: BadRecords) -> Iterator[GoldQuestion]:
        for name in names:
            yield from islice(load_questions(folder / name, bad), limit)

    return Dataset(
        "made", documents=lambda bad: load_documents(folder / DOCUMENTS, bad), questions=questions
    )


def _has_records(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def missing_documents(folder: Path) -> dict[QuestionId, DocId]:
    """For each unanswerable twin, the document that its corpus lacks."""
    path = Path(folder) / TWINS
    found: dict[QuestionId, DocId] = {}
    for record in read_json_records(path, BadRecords()) if _has_records(path) else ():
        if record.value.get("without") is not None:
            found[required_text(record, "question_id")] = required_text(record, "without")
    return found


def look_alikes(folder: Path) -> dict[QuestionId, Document]:
    """For each look-alike twin, the changed copy that replaces the missing document."""
    path = Path(folder) / TWINS
    found: dict[QuestionId, Document] = {}
    for record in read_json_records(path, BadRecords()) if _has_records(path) else ():
        if isinstance(copy := record.value.get("instead"), dict):
            found[required_text(record, "question_id")] = parse_document(Record(copy, record.where))
    return found


def benchmark_questions(
    folder: Path,
    retriever: str,
    k: int,
    *,
    twins: bool = True,
    encoder: str = "wordllama",
    limit: int | None = None,
    progress: Progress | None = None,
) -> list[LabelledQuestion]:
    """The benchmark's questions and twins with the retriever's hits, to train a gate."""
    dataset = open_benchmark(folder, twins=twins, limit=limit)
    found = retrieve_dataset(
        dataset,
        [retriever],
        [k],
        encoder=encoder,
        progress=progress,
    )
    labelled = label_benchmark(folder, found.questions(retriever, k), k)
    if not any(set(one.needed or ()) <= {hit.doc_id for hit in one.hits} for one in labelled):
        raise InputError(
            f"{retriever} finds all the evidence of none of the {len(labelled):,} questions",
            hint="raise --k, name another --retriever, or make easier questions",
        )
    return labelled


def label_benchmark(
    folder: Path, found: Sequence[RetrievedQuestion], k: int
) -> list[LabelledQuestion]:
    """Its retrieved questions as training data; the hits of a twin lack a document."""
    missing, copies, labelled = missing_documents(folder), look_alikes(folder), []
    for one in found:
        question, question_id = to_labelled_question(one), one.question.question_id
        if question_id in missing:
            copy = copies.get(question_id)
            question = _twin_question(question, missing[question_id], k, copy)
        labelled.append(question)
    return labelled


def _twin_question(
    one: LabelledQuestion, missing: DocId, k: int, copy: Document | None = None
) -> LabelledQuestion:
    def without(hits: Sequence[Hit]) -> tuple[Hit, ...]:
        if copy is not None:
            return tuple(
                replace(hit, doc_id=copy.doc_id) if hit.doc_id == missing else hit for hit in hits
            )
        return tuple(hit for hit in hits if hit.doc_id != missing)

    after = without(one.hits_after or one.hits)
    documents = {name: it for name, it in one.documents.items() if name != missing}
    documents |= {} if copy is None else {copy.doc_id: copy}
    return replace(
        one,
        hits=after[:k],
        hits_after=after,
        needed=frozenset(one.needed or ()) | {missing},
        documents=documents,
    )


# ------------------------------------------------------------------------------------ the page


def audit_benchmark(folder: Path, *, k: int = 10) -> Audit:
    """Audit the benchmark of a folder, and write the result beside it as audit.json."""
    folder = Path(folder)
    records = read_json_records(folder / QUESTIONS, BadRecords())
    questions = [question_from_record(record.value) for record in records]
    found = audit(questions, load_documents(folder / DOCUMENTS, BadRecords(), empty_ok=True), k=k)
    text = json.dumps(found.as_json(), indent=2, ensure_ascii=False)
    write_atomically(folder / AUDIT, text + "\n")
    return found


def audit_tables(found: Audit) -> list[Table]:
    """The audit as tables: weaknesses of the questions, and their distribution."""
    rows: list[tuple[Cell, ...]] = []
    for one in found.findings:
        rows.append((one.name, one.means, one.count, one.of, one.share, ", ".join(one.examples)))
    columns = ("audit", "what it means", "questions", "of", "share", "for example")
    spread = [(what, *item) for what, counts in found.balance.items() for item in counts.items()]
    return [
        Table(f"Audit of {found.questions:,} made questions", columns, tuple(rows)),
        Table("Balance", ("what", "value", "questions"), tuple(spread)),
    ]


def benchmark_report(
    folder: Path, found: Audit, path: Path, *, settings: dict[str, str], command: str = ""
) -> Path:
    """One HTML file: the audit, the balance, and sample questions for each number of hops."""
    shown: dict[int, list[tuple[Cell, ...]]] = {}
    for one in open_benchmark(folder, twins=False).questions():
        rows = shown.setdefault(one.gold.hops, [])
        if len(rows) < SAMPLES:
            documents = ", ".join(sorted(one.gold.doc_ids))
            rows.append((one.question.text, one.gold.answer or "", documents))
    columns = ("question", "answer", "documents")
    samples = [
        Table(f"The first questions of {hops} hops", columns, tuple(rows))
        for hops, rows in sorted(shown.items())
    ]
    page = Page(
        title="A graded benchmark",
        about=f"{found.questions:,} questions",
        summary=[line.strip() for line in found.lines()[1 : 1 + len(found.findings)]],
        sections=(
            Section("Audit", tuple(audit_tables(found))),
            Section("Questions", tuple(samples)),
        ),
        settings=list(settings.items()),
        command=command,
    )
    return write_page(page, path)
