"""What systems did on the questions of a benchmark, read from anybody's results file: one error a question.

A results file is JSON Lines (or an array) with `question_id` and one of `correct` (true or false), `answer` (a text) or
`retrieved` (document ids, best first; `hits` is read too), and `system` where it holds several. A run that `suffice evaluate
retrieval` wrote is a results file of all its retrievers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError, did_you_mean
from suffice.evaluation.metrics import ANSWER_METRICS
from suffice.evaluation.retrieval import RetrievalRun
from suffice.storage import BadRecords, Record, read_json_records
from suffice.types import DocId, QuestionId

__all__ = ["Errors", "read_results"]

Errors = Mapping[QuestionId, float]  # 1: failed, 0: not
JUDGED_BY = ("correct", "answer", "retrieved")


def read_results(
    path: Path,
    examples: Iterable[GoldQuestion],
    *,
    by: str | None = None,
    k: int = 10,
    match: str = "em",
    bad: BadRecords | None = None,
) -> dict[str, Errors]:
    """System -> question -> error, for the questions that both the file and the examples have.

    `by` chooses among `correct`, `answer` and `retrieved`; else it is the first of these that the first record has. An answer
    is right from one half on of the answer metric `match`; what was retrieved is right when its first k hold all gold.
    """
    if by is not None and by not in JUDGED_BY:
        raise InputError(f"results cannot be judged by {by!r}", hint=did_you_mean(by, JUDGED_BY))
    if match not in ANSWER_METRICS:
        raise InputError(
            f"no answer metric is named {match!r}", hint=did_you_mean(match, ANSWER_METRICS)
        )
    gold = {one.question.question_id: one for one in examples}
    found: dict[str, dict[QuestionId, float]] = {}
    for record in read_json_records(Path(path), bad or BadRecords()):
        if record.value.get("kind") == "run":
            return _errors_of_run(RetrievalRun.load(Path(path)), gold, k)
        by = by or next((name for name in JUDGED_BY if _field(record, name) is not None), None)
        question_id = str(record.value.get("question_id", ""))
        if question_id in gold:
            system = str(record.value.get("system") or Path(path).stem)
            found.setdefault(system, {})[question_id] = _error(
                record, by, gold[question_id], k, match
            )
    if not found:
        raise InputError(
            f"no question of {path} is one of the benchmark's",
            hint="name questions by its question_id",
        )
    return dict(found)


def _errors_of_run(
    run: RetrievalRun, gold: Mapping[QuestionId, GoldQuestion], k: int
) -> dict[str, Errors]:
    if k > run.depth:
        raise InputError(
            f"the run was searched {run.depth} deep, not {k}",
            hint=f"pass --k {run.depth}, or search deeper",
        )
    found: dict[str, Errors] = {}
    for system in run.systems:
        rows = zip(run.question_ids, system.ranks, run.gold)
        found[system.name] = {
            one: float(sum(at <= k for at in ranks) < needed)
            for one, ranks, needed in rows
            if one in gold
        }
    if not any(found.values()):
        raise InputError(
            "no question of the run is one of the benchmark's",
            hint="evaluate retrieval on the same questions",
        )
    return found


def _field(record: Record, name: str) -> Any:
    names = ("retrieved", "hits") if name == "retrieved" else (name,)
    return next((record.value[one] for one in names if record.value.get(one) is not None), None)


def _error(record: Record, by: str | None, example: GoldQuestion, k: int, match: str) -> float:
    value = _field(record, by) if by else None
    if by == "correct" and (isinstance(value, bool) or value in (0, 1)):
        return 1.0 - float(value)
    if by == "answer" and isinstance(value, str):
        if not example.gold.answer:
            raise InputError(
                f"{record.where}: question {example.question.question_id!r} has no gold answer to judge by",
                hint="judge by what was retrieved: --by retrieved",
            )
        return float(ANSWER_METRICS[match]([value], [[example.gold.answer]])[0] < 0.5)
    if by == "retrieved" and isinstance(value, list):
        return float(not example.gold.doc_ids <= set(map(_doc_id, value[:k])))
    raise InputError(
        f"{record.where}: expected a question_id with {by or 'correct, answer or retrieved'}",
        hint='a line looks like {"question_id": "q0", "correct": true} or {"question_id": "q0", "retrieved": ["a1", "b2"]}',
    )


def _doc_id(hit: Any) -> DocId:
    return str(hit.get("doc_id", "")) if isinstance(hit, Mapping) else str(hit)
