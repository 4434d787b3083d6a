"""How good a gate is on one data set, and whether its promise holds.

    evaluate_gate    one data set, one retriever, one k: the shipped gate, a saved one, or one fitted on the other folds
    promise_check    over many random halves: how often is more incomplete than promised among the answered?

Folds never split a question: some data sets repeat one word for word, and a gate that has seen it knows the answer.
"""

from __future__ import annotations

import shutil
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import util
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import draw_key
from suffice.errors import InputError, MissingExtraError, did_you_mean
from suffice.evaluation.baselines import baseline_predictions
from suffice.evaluation.embedding_cache import CachedEncoder, CachedReranker
from suffice.evaluation.gate_runs import GateRun
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.searching import (
    RetrievedQuestion,
    questions_digest,
    retrieve_dataset,
    to_labelled_question,
)
from suffice.gate.featurize import NO_ENCODERS, Encoders
from suffice.gate.gate_ref import DEFAULT, FAST, HARDENED, GateRef, check_preset, open_gate
from suffice.gate.policy import Costs, choose_by_risk, realized_risk
from suffice.gate.training import LabelledQuestion
from suffice.jobs import Job, JobRunner, run_in_process, split_into_blocks
from suffice.protocols import Progress, Reranker
from suffice.registry import ENCODERS, RERANKERS
from suffice.storage import package_versions

if TYPE_CHECKING:
    from suffice.gate.gate import Gate

__all__ = [
    "DEFAULT",
    "FITTED",
    "FitRef",
    "GateResults",
    "PolicyChoice",
    "PromiseResult",
    "check_promise",
    "count_seen",
    "cross_validate_gate",
    "evaluate_gate",
    "gate_fitter",
    "gate_inputs",
    "grouped_folds",
    "open_encoders",
    "parse_costs",
    "require_fit_extra",
    "run_gate",
    "with_seen_questions",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Folds = list[tuple[Ints, Ints]]
Fit = Callable[[Sequence[LabelledQuestion]], "Gate"]

FITTED = "fitted"
QUALITY_ENCODER = "bge-small-en-v1.5"  # the encoder that a gate of the quality preset looks through
POLICIES = ("f1", "cost", "risk")
SEEN = "seen"  # in a gate's card: short hashes of the questions it was fitted on
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """How a fitted gate's threshold is chosen."""

    by: str = "f1"
    alpha: float = 0.1
    delta: float = 0.1
    costs: Costs = Costs()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        if self.by not in POLICIES:
            raise InputError(
                f"no policy is named {self.by!r}", hint=did_you_mean(self.by, POLICIES)
            )
        for name, share in (("alpha", self.alpha), ("delta", self.delta)):
            if not 0 < share < 1:
                raise InputError(
                    f"{name} is {share}, expected a share between 0 and 1",
                    hint=f"for example --{name} 0.1",
                )

    @property
    def options(self) -> dict[str, Any]:
        """As `Gate.fit` takes them."""
        promise = {"alpha": self.alpha, "delta": self.delta} if self.by == "risk" else {}
        return {"policy": self.by, "costs": self.costs, **promise}


def parse_costs(text: str) -> Costs:
    """The costs of a wrong answer, an expansion and an abstention from three numbers with commas."""
    try:
        wrong, expand, abstain = map(float, text.split(","))
    except ValueError:
        raise InputError(
            f"costs are {text!r}, expected three numbers", hint="for example --costs 1,0.05,0.3"
        ) from None
    return Costs(wrong, expand, abstain)


def require_fit_extra() -> None:
    """MissingExtraError if no gate can be fitted here: to be said before the work, not after it."""
    if not util.find_spec("onnx"):
        raise MissingExtraError("fitting a gate", extra="fit")


def open_encoders(
    preset: str, reranker: str | None = None, *, folder: Path | None = None
) -> Encoders:
    """What a gate of this preset looks through besides words: nothing, or an encoder and, if one is named, a cross-encoder.

    With a folder they remember what they have read, the vectors in the folder.
    """
    check_preset(preset)
    if preset == HARDENED:
        raise InputError(
            "a gate is fitted as fast or as quality",
            hint="any gate is hardened where it is opened with --preset hardened",
        )
    if preset == FAST:
        if reranker is not None:
            raise InputError(
                "a gate of the fast preset does not read hits with a cross-encoder",
                hint="add --preset quality",
            )
        return NO_ENCODERS
    encoder, reader = (
        ENCODERS.get(QUALITY_ENCODER)(),
        RERANKERS.get(reranker)() if reranker else None,
    )
    if folder is None:
        return Encoders(encoder, reader)
    return Encoders(CachedEncoder(encoder, folder), CachedReranker(reader) if reader else None)


# ------------------------------------------------------------------------------------------------------ folds


def grouped_folds(
    texts: Sequence[str], complete: Sequence[bool] | npt.NDArray[np.bool_], folds: int, seed: int
) -> Folds:
    """(rows to fit on, rows held out) for each fold. Questions of the same words share a fold; complete ones are spread evenly.

    A question's fold follows from its words and the seed: the order of the input does not matter.
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
        group = sorted(
            (text for text, one in label.items() if one == wanted),
            key=lambda text: draw_key(seed, text),
        )
        fold_of |= {text: (at + len(fold_of)) % folds for at, text in enumerate(group)}
    of = np.array([fold_of[text] for text in texts])
    return [(np.flatnonzero(of != fold), np.flatnonzero(of == fold)) for fold in range(folds)]


# ------------------------------------------------------------------------------------------------------ one gate


def evaluate_gate(
    dataset: Dataset,
    retriever: str = "bm25",
    k: int = 10,
    gate: str = DEFAULT,
    *,
    preset: str = FAST,
    reranker: str | None = None,
    beside: Sequence[str] = (),
    folds: int = 5,
    seed: int = 42,
    choice: PolicyChoice | None = None,
    baselines: bool = True,
    cross_encoder: Reranker | None = None,
    encoder: str = "wordllama",
    limit: int | None = None,
    data: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    mapped: JobRunner | None = None,
) -> GateRun:
    """Judge a gate on a data set: "default" is the shipped one, a path a saved one, "fitted" one fitted on the other folds.

    A fitted gate of the quality preset may read hits with a `reranker`. With a `cross_encoder` the baselines that need one are
    measured, too. Both are slow. `mapped` is where questions are searched and judged and folds fitted, here unless told.
    """
    if gate == FITTED:  # what is missing is said before the search
        require_fit_extra()
    opened = None if gate == FITTED else open_gate(gate, preset)
    started = time.perf_counter()
    options: dict[str, Any] = {
        "beside": beside,
        "encoder": encoder,
        "limit": limit,
        "progress": progress,
        "mapped": mapped,
    }
    cases = retrieve_dataset(dataset, [retriever], [k], **options).questions(retriever, k)
    searched = time.perf_counter()
    complete = np.array([case.complete for case in cases], dtype=bool)
    texts = [case.question.text for case in cases]
    enough = len(set(texts)) >= 2 * folds
    parts = grouped_folds(texts, complete, folds, seed) if enough or gate == FITTED else []
    place = mapped or run_in_process
    if opened is None:
        fit = FitRef(choice or PolicyChoice(), preset, reranker, seed)
        said = cross_validate_gate(cases, parts, fit, progress=progress, mapped=place)
    else:
        at = None if mapped is None else GateRef.named(gate, preset)
        said = run_gate(opened, cases, progress=progress, mapped=place, at=at)
    judged = time.perf_counter()
    others = (
        baseline_predictions(cases, parts, reranker=cross_encoder, seed=seed)
        if baselines and parts
        else {}
    )
    return GateRun(
        dataset=dataset.name,
        retriever=retriever,
        k=k,
        gate=gate,
        question_ids=tuple(case.question.question_id for case in cases),
        kinds=tuple(case.gold.kind for case in cases),
        hops=tuple(case.gold.hops for case in cases),
        complete=tuple(complete.tolist()),
        p=tuple(said.p.tolist()),
        actions=said.actions,
        policy=said.policy,
        labels=tuple(tuple(case.gold.labels) for case in cases),
        baselines={name: tuple(map(float, values)) for name, values in others.items()},
        seed=seed,
        settings={
            "preset": opened.preset if opened else preset,
            "reranker": opened.card.get("reranker") if opened else reranker,
            "beside": list(beside),
            "folds": folds,
            "encoder": encoder,
            "limit": limit,
            "seen": count_seen(opened, texts) if opened else 0,
        },
        data=dict(data or {}),
        packages=package_versions(),
        commit=source_commit(),
        timings={
            "search": searched - started,
            "gate": judged - searched,
            "baselines": time.perf_counter() - judged,
        },
    )


def with_seen_questions(gate: Gate, texts: Iterable[str]) -> Gate:
    """The gate with a note of which questions it was fitted on, so that nobody judges it by them unawares."""
    return replace(gate, card={**gate.card, SEEN: sorted({_short_hash(text) for text in texts})})


def count_seen(gate: Gate, texts: Sequence[str]) -> int:
    """How many of the questions the gate was fitted on; 0 for a gate that does not remember."""
    known = set(gate.card.get(SEEN, ()))
    return sum(_short_hash(text) in known for text in texts)


def _short_hash(text: str) -> str:
    return draw_key(0, text).hex()[
        :10
    ]  # 40 bits: among ten thousand questions a chance meeting is one in a hundred million


@dataclass(frozen=True, slots=True)
class GateResults:
    """What a gate says of each case."""

    p: Floats
    actions: tuple[str, ...]
    policy: str


def run_gate(
    gate: Gate,
    cases: Sequence[RetrievedQuestion],
    *,
    progress: Progress | None = None,
    mapped: JobRunner = run_in_process,
    at: GateRef | None = None,
) -> GateResults:
    """Check every case; nobody reads the explanations, so none are made. `at` is where other processes find the gate."""
    job = (
        Job("checking", _run_block, gate)
        if at is None
        else Job("checking", _run_block, at, GateRef.open, key=at.digest)
    )
    rows: list[tuple[float, str]] = []
    for found in mapped(job, split_into_blocks(cases, _AT_ONCE)):
        rows += found
        if progress is not None:
            progress("checking", len(rows), len(cases))
    return GateResults(
        np.array([p for p, _ in rows], np.float64),
        tuple(action for _, action in rows),
        gate.policy.words,
    )


def _run_block(cases: Sequence[RetrievedQuestion], gate: Gate) -> list[tuple[float, str]]:
    return [
        (one.p_complete, str(one.action))
        for one in gate.check_batch(gate_inputs(cases), explain=False)
    ]


def gate_inputs(cases: Sequence[RetrievedQuestion]) -> list[tuple[str, Any, Any]]:
    """Question, hits and what other retrievers found, as a gate takes them."""
    return [(case.question.text, case.evidence, case.others) for case in cases]


def gate_fitter(choice: PolicyChoice, looking: Encoders, seed: int, k: int | None = None) -> Fit:
    """`Gate.fit` with everything but the examples."""
    from suffice.gate.gate import Gate

    options = {"encoder": looking.encoder, "reranker": looking.reranker, **choice.options}
    return lambda examples: Gate.fit(examples, seed=seed, k=k, **options)


@dataclass(frozen=True, slots=True)
class FitRef:
    """How to fit, in words that every process understands."""

    choice: PolicyChoice
    preset: str
    reranker: str | None
    seed: int

    def open(self) -> Fit:
        """A text stands in several folds, and an encoder is slow: what it has read is remembered."""
        folder = Path(mkdtemp())
        fit = gate_fitter(
            self.choice, open_encoders(self.preset, self.reranker, folder=folder), self.seed
        )
        weakref.finalize(fit, shutil.rmtree, folder, ignore_errors=True)
        return fit


def cross_validate_gate(
    cases: Sequence[RetrievedQuestion],
    parts: Folds,
    fit: Fit | FitRef,
    *,
    progress: Progress | None = None,
    mapped: JobRunner = run_in_process,
) -> GateResults:
    """Each fold judged by a gate fitted, calibrated and given its policy on the others: what a user of `Gate.fit` gets."""
    key = (
        f"{questions_digest(cases)} {fit}"
        if isinstance(fit, FitRef) and mapped is not run_in_process
        else ""
    )
    job = Job("fitting on the other folds", _run_fold, (cases, fit), _open_fit, key=key)
    p, actions = np.zeros(len(cases)), np.empty(len(cases), dtype=object)
    words = ""
    blocks = ([{"rest": rest.tolist(), "held": held.tolist()}] for rest, held in parts)
    for at, (judged, (_, held)) in enumerate(zip(mapped(job, blocks), parts, strict=True), start=1):
        p[held], actions[held], words = judged["p"], judged["actions"], judged["policy"]
        if progress is not None:
            progress("fitting on the other folds", at, len(parts))
    return GateResults(p, tuple(actions), f"Chosen anew for each fold; for the last one: {words}")


def _open_fit(
    shared: tuple[Sequence[RetrievedQuestion], Fit | FitRef],
) -> tuple[Sequence[RetrievedQuestion], Fit]:
    cases, fit = shared
    return cases, fit.open() if isinstance(fit, FitRef) else fit


def _run_fold(
    block: Sequence[Mapping[str, list[int]]], ready: tuple[Sequence[RetrievedQuestion], Fit]
) -> dict[str, Any]:
    (fold,), (cases, fit) = block, ready
    judged = run_gate(
        fit([to_labelled_question(cases[i]) for i in fold["rest"]]),
        [cases[i] for i in fold["held"]],
    )
    return {"p": judged.p.tolist(), "actions": list(judged.actions), "policy": judged.policy}


# ------------------------------------------------------------------------------------------------------ the promise


@dataclass(frozen=True, slots=True)
class PromiseResult:
    """How a promise fared over many random halves of the questions."""

    alpha: float
    delta: float
    exceeded: float  # share of splits whose counted share of incomplete among the answered was above alpha
    broken: float  # the same, above alpha by more than chance allows in a part of that size (exact binomial test at 5 %)
    never: float  # share of splits in which no threshold kept the promise, and nothing was answered
    coverage: float  # mean share answered


def check_promise(
    p: npt.ArrayLike,
    complete: npt.ArrayLike,
    texts: Sequence[str],
    *,
    alphas: Sequence[float] = (0.05, 0.1, 0.2),
    delta: float = 0.1,
    splits: int = 200,
    seed: int = 42,
) -> list[PromiseResult]:
    """Choose the threshold on one random half of the questions, count on the other; `splits` times, for each alpha.

    The promise is about the risk. The share counted in a finite half scatters around it, so `exceeded` may be above delta where
    the promise holds; `broken` allows for that.
    """
    from scipy.special import bdtrc

    p, complete = np.asarray(p, dtype=np.float64), np.asarray(complete, dtype=bool)
    names = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    group = np.array([names[text] for text in texts])
    rng = np.random.default_rng(seed)
    halves = [rng.permutation(len(names))[group] < len(names) / 2 for _ in range(splits)]
    found = []
    for alpha in alphas:
        exceeded, broken, never, coverage = 0, 0, 0, 0.0
        for half in halves:
            policy = choose_by_risk(p[half], complete[half], alpha=alpha, delta=delta)
            came = realized_risk(p[~half], complete[~half], policy.answer_at)
            never += policy.answer_at is None
            coverage += came.answered / max(came.questions, 1)
            if came.answered and came.incomplete / came.answered > alpha:
                exceeded += 1
                broken += bool(bdtrc(came.incomplete - 1, came.answered, alpha) < 0.05)
        share = 1 / max(splits, 1)
        found.append(
            PromiseResult(
                alpha, delta, exceeded * share, broken * share, never * share, coverage * share
            )
        )
    return found
