"""The experiment of answers: systems with the same reader over a data set's own corpus, judged by gates that did not see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from suffice.datasets.dataset import Dataset
from suffice.errors import InputError
from suffice.evaluate.answer_gates import gates_for
from suffice.evaluate.answer_systems import MODEL_ONLY, SYSTEMS, USUAL, Bench, answered_by, drawn, shelved
from suffice.evaluate.answers import AnswerRun, run_of
from suffice.evaluate.gate import FITTED, check_extra
from suffice.evaluate.gate_at import FAST
from suffice.ports import LanguageModel, Progress, name_of
from suffice.reason.budget import Budget

__all__ = ["Settings", "compare_answers", "named_systems"]


@dataclass(frozen=True)
class Settings:
    """What can be chosen. `part` and `limit` choose the questions, see `answer_systems.drawn`."""

    systems: tuple[str, ...] = USUAL
    part: str = "all"
    limit: int | None = None
    gate: str = FITTED
    grade: str = FAST
    retriever: str = "hybrid"
    encoder: str = "wordllama"
    k: int = 5  # hits that naive RAG reads
    documents: int = 10  # most that the others may hold
    letters: int = 6000  # characters of passages that a model is shown at once
    chunk_tokens: int = 0  # 0: documents stay whole
    chunk_overlap: int = 32
    seed: int = 42


def named_systems(text: str | None, *, with_model: bool) -> tuple[str, ...]:
    """Names with semicolons, since some have a comma; "all" are those that make sense without or with a model."""
    named = tuple(one.strip() for one in (text or "").split(";") if one.strip()) or USUAL
    return tuple(one for one in SYSTEMS if with_model or one not in MODEL_ONLY) if named == ("all",) else named


def compare_answers(
    dataset: Dataset,
    settings: Settings,
    *,
    model: LanguageModel | None = None,
    clock: Callable[[], float] | None = None,
    cache: Path | None = None,
    data: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> AnswerRun:
    """What each system says to each question. Without a `clock` nobody's seconds are counted, and nothing is searched twice.

    `cache` keeps fitted gates.
    """
    examples = drawn(dataset, limit=settings.limit, seed=settings.seed, part=settings.part)
    if not examples:
        raise InputError(f"no question of {dataset.name!r} has a gold answer", hint="choose a data set with answers")
    if settings.gate == FITTED:  # what is missing is said before the corpus is encoded
        check_extra()
    shelves = shelved(
        dataset,
        retriever=settings.retriever,
        encoder=settings.encoder,
        chunk_tokens=settings.chunk_tokens,
        chunk_overlap=settings.chunk_overlap,
        remember=clock is None,
        progress=progress,
    )
    bench = Bench(shelves, model, Budget(documents=settings.documents), settings.k, settings.letters, clock)
    gates, seen = gates_for(
        dataset,
        examples,
        bench,
        gate=settings.gate,
        grade=settings.grade,
        seed=settings.seed,
        cache=cache,
        progress=progress,
    )
    found = answered_by(examples, bench, gates, systems=settings.systems, progress=progress)
    name = None if model is None else name_of(model)
    told = {**asdict(settings), "model": name, "seen": seen, "corpus": len(shelves.store)}
    return run_of(dataset.name, examples, found, seed=settings.seed, settings=told, data=dict(data or {}))
