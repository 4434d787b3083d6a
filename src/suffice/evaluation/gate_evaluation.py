"""Evaluate a gate on one data set: the shipped gate, a saved one, or one fitted on other folds.

Folds never split identical questions: some data sets repeat questions word for word, and a gate
that has seen one knows its label.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import util
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import draw_key
from suffice.errors import InputError, MissingExtraError, did_you_mean
from suffice.evaluation.gate_runs import GateRun
from suffice.evaluation.reading_cache import CachedReader
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.searching import (
    RetrievedQuestion,
    questions_digest,
    retrieve_dataset,
    to_labelled_question,
)
from suffice.gate.gate import STANDARD, open_readers
from suffice.gate.gate_ref import DEFAULT, GateRef, open_gate
from suffice.gate.hits import Pair
from suffice.gate.policy import Costs
from suffice.gate.training import LabelledQuestion
from suffice.jobs import Job, JobRunner, run_in_process, split_into_blocks
from suffice.protocols import Judge, Progress, Reranker, component_name
from suffice.registry import Registry
from suffice.storage import package_versions

if TYPE_CHECKING:
    from suffice.gate.gate import Gate

__all__ = [
    "DEFAULT",
    "FITTED",
    "GateResults",
    "GateSettings",
    "PolicyChoice",
    "count_seen",
    "cross_validate_gate",
    "evaluate_gate",
    "gate_fitter",
    "gate_inputs",
    "grouped_folds",
    "is_seen",
    "parse_costs",
    "require_fit_extra",
    "run_gate",
    "with_seen_questions",
]

Floats = npt.NDArray[np.float64]
Folds = list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]
Fit = Callable[[Sequence[LabelledQuestion]], "Gate"]
FITTED = "fitted"
POLICIES = ("f1", "cost", "risk")
SEEN = "seen"  # in a gate's card: short hashes of the questions it was fitted on
_BLOCK = 256
# Plug-ins `baselines.NAME`: (questions, folds, reranker, seed) -> probabilities by name.
BASELINES: Registry[Mapping[str, Floats]] = Registry("baselines")


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """How to choose a fitted gate's threshold."""

    by: str = "f1"
    alpha: float = 0.1
    delta: float = 0.1
    costs: Costs = Costs()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        if self.by not in POLICIES:
            known = did_you_mean(self.by, POLICIES)
            raise InputError(f"no policy is named {self.by!r}", hint=known)
        for name, share in (("alpha", self.alpha), ("delta", self.delta)):
            if not 0 < share < 1:
                raise InputError(
                    f"{name} is {share}, expected a share between 0 and 1",
                    hint=f"for example --{name} 0.1",
                )

    @property
    def options(self) -> dict[str, Any]:
        """The options for `Gate.fit`."""
        promise = {"alpha": self.alpha, "delta": self.delta} if self.by == "risk" else {}
        return {"policy": self.by, "costs": self.costs, **promise}


def parse_costs(text: str) -> Costs:
    """Costs of a wrong answer, an expansion and an abstention: three numbers with commas."""
    try:
        wrong, expand, abstain = map(float, text.split(","))
    except ValueError:
        raise InputError(
            f"costs are {text!r}, expected three numbers", hint="for example --costs 1,0.05,0.3"
        ) from None
    return Costs(wrong, expand, abstain)


def require_fit_extra() -> None:
    """Raise MissingExtraError if a gate cannot be fitted here; call it before the work."""
    if not util.find_spec("onnx"):
        raise MissingExtraError("fitting a gate", extra="fit")


def gate_fitter(
    choice: PolicyChoice, preset: str, seed: int, k: int | None = None,
    *, progress: Progress | None = None, total: int = 0,
) -> Fit:  # fmt: skip
    """`Gate.fit` with everything but the questions. A list in several folds is read once."""
    from suffice.gate.gate import Gate

    reader = open_readers(preset).reader
    if reader is not None:
        reader = CachedReader(reader, progress=progress, total=total)
    options = {"preset": preset, "reader": reader, **choice.options}

    def fit(questions: Sequence[LabelledQuestion]) -> Gate:
        gate = Gate.fit(questions, seed=seed, k=k, **options)
        # The gate in use must not keep the cache.
        return replace(gate, readers=open_readers(preset))

    return fit


def with_seen_questions(gate: Gate, texts: Iterable[str]) -> Gate:
    """The gate with hashes of the questions it was fitted on, for `count_seen`."""
    return replace(gate, card={**gate.card, SEEN: sorted({_short_hash(text) for text in texts})})


def count_seen(gate: Gate, texts: Sequence[str]) -> int:
    """How many of the questions the gate was fitted on; 0 if the gate has no record."""
    return sum(is_seen(gate, texts))


def is_seen(gate: Gate, texts: Sequence[str]) -> list[bool]:
    """For each question, whether the gate was fitted on it."""
    known = set(gate.card.get(SEEN, ()))
    return [_short_hash(text) in known for text in texts]


def _short_hash(text: str) -> str:
    return draw_key(0, text).hex()[:10]  # 40 bits: about one chance match in a hundred million


def grouped_folds(
    texts: Sequence[str], complete: Sequence[bool] | npt.NDArray[np.bool_], folds: int, seed: int
) -> Folds:
    """(rows to fit on, rows held out) for each fold, with complete questions spread evenly.

    Questions with the same text share a fold, which depends only on the text and the seed.
    """
    if folds < 2 or len(set(texts)) < folds:
        raise InputError(
            f"{len(set(texts))} different questions cannot make {folds} folds",
            hint="give more questions, or fewer folds",
        )
    label: dict[str, bool] = {}
    for text, one in zip(texts, complete):
        label.setdefault(text, bool(one))
    fold_of: dict[str, int] = {}
    for wanted in (True, False):
        group = [text for text, one in label.items() if one == wanted]
        group.sort(key=lambda text: draw_key(seed, text))
        fold_of |= {text: (at + len(fold_of)) % folds for at, text in enumerate(group)}
    of = np.array([fold_of[text] for text in texts])
    return [(np.flatnonzero(of != fold), np.flatnonzero(of == fold)) for fold in range(folds)]


# ------------------------------------------------------------------------------------ the gate


@dataclass(frozen=True)
class GateSettings:
    """The settings of an evaluation."""

    retriever: str = "bm25"
    k: int = 10
    gate: str = DEFAULT  # "default", a saved gate's path, or "fitted" on the other folds
    preset: str = STANDARD
    folds: int = 5
    choice: PolicyChoice = PolicyChoice()
    baselines: bool = True  # those of the research package, if installed
    encoder: str = "wordllama"
    limit: int | None = None
    seed: int = 42


def evaluate_gate(
    dataset: Dataset,
    settings: GateSettings,
    *,
    cross_encoder: Reranker | None = None,
    judge: Judge | None = None,
    data: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    job_runner: JobRunner | None = None,
) -> GateRun:
    """Evaluate the shipped gate, a saved one, or one fitted on other folds.

    A `cross_encoder` adds the baselines that need one (slow). A `judge` is asked about
    the lists that the gate is unsure of. `job_runner` runs the work.
    """
    fitted, seed = settings.gate == FITTED, settings.seed
    if fitted:  # report a missing extra before the search
        require_fit_extra()
    opened = None if fitted else open_gate(settings.gate, settings.preset)
    if judge is not None:
        if opened is None:
            hint = "fit one first: suffice fit; then --gate FOLDER --judge ..."
            raise InputError("a judge goes with a gate that exists, not one of folds", hint=hint)
        opened = opened.with_judge(judge)
    started = time.perf_counter()
    retrieved = retrieve_dataset(
        dataset,
        [settings.retriever],
        [settings.k],
        encoder=settings.encoder,
        limit=settings.limit,
        progress=progress,
        job_runner=job_runner,
    )
    questions = retrieved.questions(settings.retriever, settings.k)
    searched = time.perf_counter()
    texts = [one.question.text for one in questions]
    parts: Folds = []
    if fitted or len(set(texts)) >= 2 * settings.folds:
        parts = grouped_folds(texts, [one.complete for one in questions], settings.folds, seed)
    runner: Any = {"progress": progress, "job_runner": job_runner or run_in_process}
    if opened is None:
        fit = FitRef(settings.choice, settings.preset, seed)
        results = cross_validate_gate(questions, parts, fit, **runner)
    else:
        ref = None  # a gate with a judge stays in this process
        if job_runner is not None and judge is None:
            ref = GateRef.named(settings.gate, settings.preset)
        results = run_gate(opened, questions, ref=ref, **runner)
    checked = time.perf_counter()
    others: dict[str, Floats] = {}
    for name in BASELINES.names() if settings.baselines and parts else []:
        others |= BASELINES.get(name)(questions, parts, reranker=cross_encoder, seed=seed)
    finished = time.perf_counter()
    chosen = {
        "preset": opened.preset if opened else settings.preset,
        "folds": settings.folds,
        "encoder": settings.encoder,
        "limit": settings.limit,
        "seen": count_seen(opened, texts) if opened else 0,
    }
    if judge is not None:
        chosen["judge"] = component_name(judge)
    times = {"search": searched - started, "gate": checked - searched}
    return replace(
        _make_run(dataset.name, settings, questions, results, others),
        settings=chosen,
        data=dict(data or {}),
        timings={**times, "baselines": finished - checked},
    )


def _make_run(
    dataset: str,
    settings: GateSettings,
    questions: Sequence[RetrievedQuestion],
    results: GateResults,
    baselines: Mapping[str, Floats],
) -> GateRun:
    return GateRun(
        dataset=dataset,
        retriever=settings.retriever,
        k=settings.k,
        gate=settings.gate,
        question_ids=tuple(one.question.question_id for one in questions),
        kinds=tuple(one.gold.kind for one in questions),
        hops=tuple(one.gold.hops for one in questions),
        complete=tuple(one.complete for one in questions),
        p=tuple(results.p.tolist()),
        actions=results.actions,
        policy=results.policy,
        labels=tuple(tuple(one.gold.labels) for one in questions),
        baselines={name: tuple(map(float, values)) for name, values in baselines.items()},
        seed=settings.seed,
        packages=package_versions(),
        commit=source_commit(),
    )


@dataclass(frozen=True, slots=True)
class GateResults:
    """The gate's results for each question."""

    p: Floats
    actions: tuple[str, ...]
    policy: str


def gate_inputs(questions: Sequence[RetrievedQuestion]) -> list[Pair]:
    """Question and hits, as input for a gate."""
    return [(one.question.text, one.evidence) for one in questions]


def run_gate(
    gate: Gate,
    questions: Sequence[RetrievedQuestion],
    *,
    progress: Progress | None = None,
    job_runner: JobRunner = run_in_process,
    ref: GateRef | None = None,
) -> GateResults:
    """Check every question, without explanations. `ref` tells other processes where the gate is."""
    job = Job("checking", _check_block, gate)
    if ref is not None:
        job = Job("checking", _check_block, ref, GateRef.open, key=ref.digest)
    rows: list[tuple[float, str]] = []
    for found in job_runner(job, split_into_blocks(questions, _BLOCK)):
        rows += found
        if progress is not None:
            progress("checking", len(rows), len(questions))
    p = np.array([p for p, _ in rows], np.float64)
    return GateResults(p, tuple(action for _, action in rows), gate.policy.words)


def _check_block(block: Sequence[RetrievedQuestion], gate: Gate) -> list[tuple[float, str]]:
    verdicts = gate.check_batch(gate_inputs(block), explain=False)
    return [(one.p_complete, str(one.action)) for one in verdicts]


@dataclass(frozen=True, slots=True)
class FitRef:
    """How to fit a gate, as values that any process can load."""

    choice: PolicyChoice
    preset: str
    seed: int

    def open(self) -> Fit:
        return gate_fitter(self.choice, self.preset, self.seed)


def cross_validate_gate(
    questions: Sequence[RetrievedQuestion],
    parts: Folds,
    fit: Fit | FitRef,
    *,
    progress: Progress | None = None,
    job_runner: JobRunner = run_in_process,
) -> GateResults:
    """Judge each fold with a gate that was fitted and calibrated on the others."""
    portable = isinstance(fit, FitRef) and job_runner is not run_in_process
    key = f"{questions_digest(questions)} {fit}" if portable else ""
    job = Job("fitting on the other folds", _run_fold, (questions, fit), _open_fit, key=key)
    p, actions, words = np.zeros(len(questions)), np.empty(len(questions), dtype=object), ""
    blocks = ([{"rest": rest.tolist(), "held": held_out.tolist()}] for rest, held_out in parts)
    for at, (fold, (_, held_out)) in enumerate(
        zip(job_runner(job, blocks), parts, strict=True), start=1
    ):
        p[held_out], actions[held_out], words = fold["p"], fold["actions"], fold["policy"]
        if progress is not None:
            progress("fitting on the other folds", at, len(parts))
    return GateResults(p, tuple(actions), f"Chosen anew for each fold; for the last one: {words}")


_Questions = Sequence[RetrievedQuestion]


def _open_fit(shared: tuple[_Questions, Fit | FitRef]) -> tuple[_Questions, Fit]:
    questions, fit = shared
    return questions, fit.open() if isinstance(fit, FitRef) else fit


def _run_fold(
    block: Sequence[Mapping[str, list[int]]], ready: tuple[_Questions, Fit]
) -> dict[str, Any]:
    (fold,), (questions, fit) = block, ready
    gate = fit([to_labelled_question(questions[at]) for at in fold["rest"]])
    results = run_gate(gate, [questions[at] for at in fold["held"]])
    return {"p": results.p.tolist(), "actions": list(results.actions), "policy": results.policy}
