"""Whether answers are right: exact match, F1 and the MultiHop-RAG papers' word overlap, by kind of question.

Answers come from a file, or from a language model that reads the hits of a retriever.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Example
from suffice.errors import InputError, ModelError
from suffice.evaluate.compare import Interval, interval_of_mean
from suffice.evaluate.metrics import ANSWERS
from suffice.evaluate.retrieval import Settings, cut
from suffice.evaluate.searching import encoder_for, factories, indexed, opened
from suffice.evaluate.tables import Cell, Table
from suffice.files import BadRecords, package_versions, read_json_records, write_atomically
from suffice.ports import LanguageModel, Progress, Retriever, Store
from suffice.retrieve.corpus import searchable
from suffice.types import Question

__all__ = [
    "AnswerRun",
    "answer_tables",
    "answers_by_model",
    "judge_answers",
    "read_answers",
]

VERSION = 1
MOST_CHARACTERS = 1500  # of one hit in the prompt

PROMPT = """\
Answer the question from the context alone, with a word, a name, yes or no. If the context does not hold the answer, say \
"Insufficient information". Do not explain.

Context:
{context}

Question: {question}
Answer:"""


# -------------------------------------------------------------------------------------------------------- the record


@dataclass(frozen=True)
class AnswerRun:
    """Answers beside gold answers, as a document. Columns have one entry a question; None: there was no answer."""

    dataset: str
    system: str
    question_ids: tuple[str, ...]
    kinds: tuple[str | None, ...]
    gold: tuple[str, ...]
    answers: tuple[str | None, ...]
    errors: Mapping[str, str] = field(default_factory=dict)  # question id -> what went wrong
    seed: int = 42
    settings: Mapping[str, Any] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=package_versions)

    def values(self, metric: str) -> npt.NDArray[np.float64]:
        """One value a question; no answer is a wrong one."""
        if metric not in ANSWERS:
            raise InputError(f"no answer metric is named {metric!r}", hint=f"known: {', '.join(ANSWERS)}")
        values = ANSWERS[metric]([one or "" for one in self.answers], [[one] for one in self.gold])
        return np.where([one is None for one in self.answers], 0.0, values)

    def figure(self, metric: str, kind: str | None = None) -> Interval:
        """The mean with its bootstrap interval, over all questions or one kind."""
        values = self.values(metric)
        chosen = values if kind is None else values[[one == kind for one in self.kinds]]
        return interval_of_mean(chosen, seed=self.seed)

    def save(self, path: Path) -> Path:
        document = {"kind": "run", "task": "answers", "version": VERSION, **asdict(self)}
        write_atomically(Path(path), json.dumps(document, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n")
        return Path(path)

    def summary(self) -> dict[str, Any]:
        """The run for a script."""
        kinds = sorted({kind for kind in self.kinds if kind})
        return {
            "dataset": self.dataset,
            "system": self.system,
            "n": len(self.gold),
            "unanswered": sum(one is None for one in self.answers),
            "settings": dict(self.settings),
            "figures": {name: asdict(self.figure(name)) for name in ANSWERS},
            "by_kind": {kind: {name: asdict(self.figure(name, kind)) for name in ANSWERS} for kind in kinds},
            "errors": dict(self.errors),
        }


def judge_answers(
    dataset: str, examples: Iterable[Example], answers: Mapping[str, str], *, system: str, seed: int = 42, **more: Any
) -> AnswerRun:
    """Put answers, by question id or by the question's own words, beside the gold ones. Questions without gold are left out."""
    held = [example for example in examples if example.gold.answer]
    if not held:
        raise InputError(f"no question of {dataset!r} has a gold answer", hint="choose a data set with answers")
    said = [answers.get(one.question.question_id, answers.get(one.question.text)) for one in held]
    if not any(one is not None for one in said):
        raise InputError(
            "none of the answers belongs to a question of the data set", hint="name the questions by id, or by their words"
        )
    return AnswerRun(
        dataset,
        system,
        tuple(one.question.question_id for one in held),
        tuple(one.gold.kind for one in held),
        tuple(one.gold.answer or "" for one in held),
        tuple(said),
        seed=seed,
        **more,
    )


def read_answers(path: Path, bad: BadRecords | None = None) -> dict[str, str]:
    """Answers from a JSON array or JSON Lines: `question_id` or `query`, and `answer` or `model_answer`."""
    found: dict[str, str] = {}
    bad = bad or BadRecords()
    for record in read_json_records(Path(path), bad):
        value = record.value
        name = value.get("question_id") or value.get("query") or value.get("question")
        said = value.get("model_answer", value.get("answer"))
        if not isinstance(name, str) or not isinstance(said, str):
            bad.report(
                InputError(
                    f"{record.where}: expected question_id or query, and answer, as texts",
                    hint='a line looks like {"question_id": "q0", "answer": "Sam"}',
                )
            )
            continue
        found[name] = said
    return found


def answer_tables(run: AnswerRun) -> list[Table]:
    """The figures, for all questions and by kind."""
    kinds = sorted({kind for kind in run.kinds if kind})
    rows: list[tuple[Cell, ...]] = [("all", len(run.gold), *(run.figure(name) for name in ANSWERS))]
    for kind in kinds if len(kinds) > 1 else ():
        count = sum(one == kind for one in run.kinds)
        rows.append((kind, count, *(run.figure(name, kind) for name in ANSWERS)))
    silent = sum(one is None for one in run.answers)
    note = (
        "In brackets: 95 % bootstrap interval. Word overlap is the rule of the MultiHop-RAG papers: one shared word is right."
    )
    note += f" {silent:,} questions have no answer and count as wrong." if silent else ""
    columns = ("questions", "n", "exact match", "F1", "word overlap")
    return [Table(f"Answers of {run.system} on {run.dataset}", columns, tuple(rows), note)]


# ----------------------------------------------------------------------------------------------------- from a model


def answers_by_model(
    dataset: Dataset, settings: Settings, model: LanguageModel, *, k: int = 6, progress: Progress | None = None
) -> AnswerRun:
    """Retrieve with the settings' one retriever, let the model read the k best hits, and judge what it says.

    A question that the model fails on is recorded and counts as wrong.
    """
    (name,) = settings.retrievers
    chosen = factories([name])
    encoder = encoder_for(chosen, settings.encoder)
    examples = [example for example in islice(dataset.examples(), settings.limit) if example.gold.answer]
    store = indexed(cut(dataset, settings), encoder, progress)
    reader = _Reader(opened(chosen, store, encoder)[name], store, model, k)
    for done, example in enumerate(examples, 1):
        reader.answer(example.question)
        if progress is not None:
            progress("answering", done, len(examples))
    if not reader.answers:
        first = next(iter(reader.errors.values()), "no questions")
        raise ModelError(f"the model answered nothing: {first}", hint="check the server, its address and the model's name")
    told = {**asdict(settings), "k": k, "model": str(getattr(model, "name", type(model).__name__))}
    system = f"{told['model']} reading {name}"
    return judge_answers(
        dataset.name, examples, reader.answers, system=system, seed=settings.seed, errors=reader.errors, settings=told
    )


class _Reader:
    """Asks a model one question after another and keeps what it said, or why it did not."""

    def __init__(self, retriever: Retriever, store: Store, model: LanguageModel, k: int) -> None:
        self.retriever, self.store, self.model, self.k = retriever, store, model, k
        self.answers: dict[str, str] = {}
        self.errors: dict[str, str] = {}

    def answer(self, question: Question) -> None:
        (hits,) = self.retriever.search([question.text], k=self.k)
        documents = [one for one in self.store.get([hit.doc_id for hit in hits]) if one is not None]
        context = "\n\n".join(searchable(one)[:MOST_CHARACTERS] for one in documents) or "(nothing was found)"
        try:
            (said,) = self.model.complete([PROMPT.format(context=context, question=question.text)])
            self.answers[question.question_id] = said.strip()
        except ModelError as error:
            self.errors[question.question_id] = str(error)
