"""From a probability to an action: ANSWER, EXPAND or ABSTAIN, by a policy that can carry a promise.

A policy is two thresholds: ANSWER from `answer_at` on; below it EXPAND where the evidence is likely enough to be complete after
one more round (`expand_at`) to be worth its cost; else ABSTAIN. `answer_at` is chosen on a calibration part that the model was
not fitted on, in one of three ways:

    by_f1      the threshold of the highest F1, as the MAGAF paper does
    by_cost    where a wrong answer is expected to cost as much as an abstention
    by_risk    the lowest threshold that keeps a promise: "among answered, the share of incomplete is at most alpha, with
               confidence 1 - delta". There may be none: then the policy never answers, and `words` says so.

The promise holds for questions like those of the calibration part, judged at the same moment of their journey. Why it holds and
what it does not cover stands in docs/decisions/0010-risk-control.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, did_you_mean
from suffice.types import Action

__all__ = [
    "Costs",
    "Policy",
    "Promise",
    "RealizedRisk",
    "choose_actions",
    "choose_by_cost",
    "choose_by_f1",
    "choose_by_risk",
    "decide",
    "min_questions_for",
    "realized_risk",
]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.floating[Any]]

SECOND_START = 4  # see _levels; chosen for coverage on simulated scores, the promise holds for any
STEP = 1.08
ACTIONS = (Action.ABSTAIN, Action.EXPAND, Action.ANSWER)


def _number(value: object, name: str) -> float:
    """A finite number that is not negative, or InputError."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.number)
        or not 0 <= value < math.inf
    ):
        raise InputError(f"{name} is {value!r}, expected a finite number of 0 or more")
    return float(value)


def _share(value: object, name: str) -> float:
    number = _number(value, name)
    if number > 1:
        raise InputError(f"{name} is {value!r}, expected a number from 0 to 1")
    return number


def _open_share(value: object, name: str) -> float:
    number = _number(value, name)
    if not 0 < number < 1:
        raise InputError(
            f"{name} is {value!r}, expected a number strictly between 0 and 1",
            hint="for example 0.1",
        )
    return number


# ---------------------------------------------------------------------------------------------------------- records


@dataclass(frozen=True, slots=True)
class Costs:
    """What a wrong answer (one from incomplete evidence), an expansion and an abstention cost, in one unit of your choice."""

    wrong: float = 1.0
    expand: float = 0.05
    abstain: float = 0.3

    def __post_init__(self) -> None:
        for name in ("wrong", "expand", "abstain"):
            object.__setattr__(self, name, _number(getattr(self, name), f"cost {name!r}"))
        if self.wrong == 0:
            raise InputError(
                "cost 'wrong' is 0, expected more: if a wrong answer costs nothing there is nothing to guard"
            )


@dataclass(frozen=True, slots=True)
class Promise:
    """Among answered, the share of incomplete is at most `alpha`, with confidence 1 - `delta`; from so many questions."""

    alpha: float
    delta: float
    questions: int

    def __post_init__(self) -> None:
        for name in ("alpha", "delta"):
            object.__setattr__(self, name, _open_share(getattr(self, name), name))
        if (
            isinstance(self.questions, bool)
            or not isinstance(self.questions, int)
            or self.questions < 0
        ):
            raise InputError(f"questions is {self.questions!r}, expected a count")


@dataclass(frozen=True, slots=True)
class Policy:
    """Two thresholds and how they came about. None: never (no threshold keeps the promise; no expansion is worth its cost)."""

    answer_at: float | None
    expand_at: float | None = None
    costs: Costs = Costs()
    promise: Promise | None = None
    chosen_by: str = "hand"

    def __post_init__(self) -> None:
        for name in ("answer_at", "expand_at"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _share(value, name))
        for name, kinds in (
            ("costs", Costs),
            ("promise", (Promise, type(None))),
            ("chosen_by", str),
        ):
            if not isinstance(getattr(self, name), kinds):
                raise InputError(
                    f"{name} is {getattr(self, name)!r}, expected a record of that name"
                )

    @property
    def words(self) -> str:
        """What the policy does and what it promises, as a sentence for a terminal."""
        if self.promise is None:
            return f"{self._does} (chosen by {self.chosen_by})."
        share, confidence = f"{self.promise.alpha:.3g}", f"{1 - self.promise.delta:.3g}"
        promised = f"among answered, the share of incomplete is at most {share}, with confidence {confidence}"
        if self.answer_at is not None:
            return f"{self._does}: {promised} ({self.promise.questions} calibration questions)."
        needed = min_questions_for(self.promise.alpha, self.promise.delta)
        why = f"{self.promise.questions} calibration questions"
        why += (
            f", and at least {needed} are needed"
            if self.promise.questions < needed
            else " do not bear it out"
        )
        return f"{self._does}: no threshold keeps the promise that {promised} ({why})."

    @property
    def _does(self) -> str:
        return (
            "Never answers"
            if self.answer_at is None
            else f"Answers from p_complete {self.answer_at:.3f} on"
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Policy:
        """The policy that `as_json` wrote; InputError names the field that is missing, unknown or not what it should be."""
        _check_fields(record, cls, "policy")
        _check_fields(record["costs"], Costs, "policy.costs")
        if record["promise"] is not None:
            _check_fields(record["promise"], Promise, "policy.promise")
        promise = None if record["promise"] is None else Promise(**record["promise"])
        return cls(**{**record, "costs": Costs(**record["costs"]), "promise": promise})


@dataclass(frozen=True, slots=True)
class RealizedRisk:
    """What came of answering from a threshold on: of `questions`, so many were answered, so many of those were incomplete."""

    questions: int
    answered: int
    incomplete: int

    @property
    def coverage(self) -> float | None:
        """Share of the questions that were answered; None without questions."""
        return self.answered / self.questions if self.questions else None

    @property
    def risk(self) -> float | None:
        """Share of incomplete among answered; None when nothing was answered."""
        return self.incomplete / self.answered if self.answered else None

    def risk_below(self, confidence: float) -> float:
        """The exact (Clopper-Pearson) upper bound of the risk behind these counts; 1 when nothing was answered."""
        from scipy.special import bdtri  # late: a gate that only decides should not wait for scipy

        doubt = 1 - _open_share(confidence, "confidence")
        return (
            1.0
            if self.incomplete == self.answered
            else float(bdtri(self.incomplete, self.answered, doubt))
        )


# ---------------------------------------------------------------------------------------------------------- choosing


def choose_by_f1(p: npt.ArrayLike, complete: npt.ArrayLike, *, costs: Costs = Costs()) -> Policy:  # noqa: B008 - frozen
    """The threshold whose decisions have the highest F1; of equals the highest. Never answers if nothing was complete."""
    p, complete = _check_calibration(p, complete)
    answer_at = None
    if complete.any():
        ranked, right = _ranked(p, complete)
        ends = np.unique(_tie_ends(ranked, np.arange(1, len(ranked) + 1)))
        f1 = 2 * right[ends - 1] / (ends + right[-1])
        answer_at = float(ranked[ends[np.argmax(f1)] - 1])
    return Policy(answer_at, _expand_at(p, complete, answer_at, costs), costs, chosen_by="f1")


def choose_by_cost(p: npt.ArrayLike, complete: npt.ArrayLike, *, costs: Costs) -> Policy:
    """Answer where it is expected to cost no more than to abstain: wrong · (1 - p) <= abstain.

    A closed form rather than a search over thresholds: given calibrated probabilities it is the best there is, and it cannot
    overfit a small calibration part, which serves only to price expansions.
    """
    p, complete = _check_calibration(p, complete)
    answer_at = max(0.0, 1 - costs.abstain / costs.wrong)
    return Policy(answer_at, _expand_at(p, complete, answer_at, costs), costs, chosen_by="cost")


def choose_by_risk(
    p: npt.ArrayLike,
    complete: npt.ArrayLike,
    *,
    alpha: float,
    delta: float = 0.1,
    costs: Costs = Costs(),  # noqa: B008 - frozen
) -> Policy:
    """The lowest threshold that keeps the promise of `alpha` and `delta`, or none.

    Learn-Then-Test by exact binomial tests: the hypothesis "above this threshold more than alpha is incomplete" is tested for
    ever more of the highest-ranked questions, and the budget of error `delta` is handed on from one rejected test to the next.
    Only the order of `p` matters, so a miscalibrated score costs coverage and never the promise.
    """
    from scipy.special import bdtr  # late: a gate that only decides should not wait for scipy

    p, complete = _check_calibration(p, complete)
    promise = Promise(alpha, delta, len(p))
    ranked, right = _ranked(p, complete)
    counts, levels = _levels(ranked, alpha, delta)
    p_values = bdtr((counts - right[counts - 1]).astype(np.float64), counts, alpha)
    kept, budget = 0, 0.0
    for count, level, p_value in zip(counts.tolist(), levels.tolist(), p_values.tolist()):
        budget += level
        if p_value <= budget:
            kept = count
        else:
            budget = 0.0
    answer_at = _just_above_next(ranked, kept) if kept else None
    return Policy(
        answer_at, _expand_at(p, complete, answer_at, costs), costs, promise, chosen_by="risk"
    )


def realized_risk(
    p: npt.ArrayLike, complete: npt.ArrayLike, threshold: float | None
) -> RealizedRisk:
    """What comes of answering where p >= threshold (None: never)."""
    p, complete = _check_calibration(p, complete)
    answered = _reaches(p, None if threshold is None else _share(threshold, "threshold"))
    return RealizedRisk(len(p), int(answered.sum()), int((answered & ~complete).sum()))


def min_questions_for(alpha: float, delta: float) -> int:
    """How many answered questions, all complete, it takes to believe that at most alpha is incomplete: (1-alpha)^n <= delta."""
    return math.ceil(
        math.log(_open_share(delta, "delta")) / math.log1p(-_open_share(alpha, "alpha"))
    )


def _levels(ranked: Floats, alpha: float, delta: float) -> tuple[Ints, Floats]:
    """How many of the highest-ranked to test, in growing steps up to all of them, and the budget of error that starts at each.

    Which counts are tested is fixed by n, alpha and delta alone. One start with the fewest that could pass would let a single
    early incomplete question end everything; so half the budget starts at four times as many, where these are at most a quarter
    of all questions (fewer calibration questions than that do better with one start).
    """
    starts = [min_questions_for(alpha, delta)]
    half = min_questions_for(alpha, delta / 2)
    if half * SECOND_START <= len(ranked) / 4:
        starts = [half, half * SECOND_START]
    if starts[0] > len(ranked):
        return np.empty(0, np.int64), np.empty(0)
    steps = 1 + math.floor(math.log(len(ranked) / starts[0]) / math.log(STEP))
    grown = np.ceil(starts[0] * STEP ** np.arange(steps)).astype(np.int64)
    wanted = np.union1d(np.minimum(grown, len(ranked)), [*starts, len(ranked)]).astype(np.int64)
    counts, place = np.unique(_tie_ends(ranked, wanted), return_inverse=True)
    levels = np.zeros(len(counts))
    np.add.at(levels, place, np.isin(wanted, starts) * delta / len(starts))
    return counts, levels


def _expand_at(p: Floats, complete: Bools, answer_at: float | None, costs: Costs) -> float | None:
    """From which completeness after one expansion the expansion is cheaper than abstaining; None: from none.

    After the expansion the gate looks again, and errs as it did on the calibration part: it answers a share `found` of the
    complete (which saves the abstention) and a share `fooled` of the incomplete (which costs a wrong answer instead of it).
    """
    answered = _reaches(p, answer_at)
    found = float(answered[complete].mean()) if complete.any() else 0.0
    fooled = float(answered[~complete].mean()) if not complete.all() else 0.0
    harm = fooled * (costs.wrong - costs.abstain)
    gain = found * costs.abstain + harm
    if gain <= 0 or costs.expand + harm >= gain:
        return None
    return max(0.0, (costs.expand + harm) / gain)


# ---------------------------------------------------------------------------------------------------------- deciding


def decide(
    p_now: npt.ArrayLike,
    p_after: npt.ArrayLike | None,
    policy: Policy,
    *,
    rounds_left: int | npt.ArrayLike,
) -> list[Action]:
    """An action for each question: (n,) probabilities now and after one expansion, rounds left for all or for each.

    Without `p_after` nothing says that an expansion would help, so none is chosen; nor where it promises no more than now.
    """
    now = _check_probabilities(p_now, "p_now")
    after = None if p_after is None else _check_probabilities(p_after, "p_after")
    _check_lengths(now if after is None else after, now, "p_after", "p_now")
    return choose_actions(now, after, policy, rounds_left=rounds_left)


def choose_actions(
    now: Numbers, after: Numbers | None, policy: Policy, *, rounds_left: int | npt.ArrayLike
) -> list[Action]:
    """What `decide` does, where the probabilities are known to be some."""
    rounds, worth = _check_rounds(rounds_left, len(now)), np.zeros(len(now), bool)
    if after is not None and policy.expand_at is not None:
        worth = (after > policy.expand_at) & (after > now) & (rounds > 0)
    codes = np.where(_reaches(now, policy.answer_at), 2, worth)
    return [ACTIONS[code] for code in codes.tolist()]


def _reaches(p: Numbers, threshold: float | None) -> Bools:
    return np.zeros(len(p), bool) if threshold is None else p >= threshold


# ---------------------------------------------------------------------------------------------------------- ranks


def _ranked(p: Floats, complete: Bools) -> tuple[Floats, Ints]:
    """Probabilities from high to low, and how many of the first 1, 2, … are complete."""
    order = np.argsort(-p, kind="stable")
    return p[order], np.cumsum(complete[order], dtype=np.int64)


def _tie_ends(ranked: Floats, counts: Ints) -> Ints:
    """Each count stretched to the end of its run of equal probabilities: no threshold can cut through a tie."""
    ends: Ints = np.searchsorted(-ranked, -ranked[counts - 1], side="right")
    return ends


def _just_above_next(ranked: Floats, count: int) -> float:
    """The threshold that answers what ranks strictly above the first one left out.

    Not the last one let in: given where the first one left out lies, those above it are a fair sample of all questions above
    it. That is what makes the binomial test exact.
    """
    return float(np.nextafter(ranked[count], 1.0)) if count < len(ranked) else 0.0


# ---------------------------------------------------------------------------------------------------------- input


def _check_calibration(p: npt.ArrayLike, complete: npt.ArrayLike) -> tuple[Floats, Bools]:
    probabilities, labels = _check_probabilities(p, "p"), _check_array(complete, "complete")
    _check_lengths(labels, probabilities, "complete", "p")
    if not np.isin(labels, (0.0, 1.0)).all():
        raise InputError("complete must hold true and false (or 1 and 0) only")
    return probabilities, labels > 0


def _check_probabilities(values: npt.ArrayLike, name: str) -> Floats:
    array = _check_array(values, name)
    within = (array >= 0) & (array <= 1)  # NaN fails both
    if not within.all():
        bad = array[~within][0]
        raise InputError(
            f"{name} must lie between 0 and 1, found {bad}",
            hint="pass calibrated probabilities, not scores",
        )
    return array


def _check_array(values: npt.ArrayLike, name: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}") from error
    if array.ndim != 1:
        raise InputError(
            f"{name} must have one dimension, it has shape {array.shape}",
            hint="wrap a single value in a list",
        )
    return array


def _check_lengths(some: Floats, others: Floats, name: str, other: str) -> None:
    if len(some) != len(others):
        raise InputError(
            f"{len(some)} values of {name} for {len(others)} of {other}: expected one each"
        )


def _check_rounds(rounds_left: int | npt.ArrayLike, questions: int) -> int | Ints:
    if (
        type(rounds_left) is int and rounds_left >= 0
    ):  # the usual case, and most of the time that arrays would take
        return rounds_left
    try:
        rounds = np.asarray(rounds_left)
    except ValueError as error:
        raise InputError(f"rounds_left must be counts: {error}") from error
    if (
        rounds.dtype.kind not in "iu"
        or (rounds < 0).any()
        or rounds.shape not in ((), (questions,))
    ):
        raise InputError(
            f"rounds_left is {rounds_left!r}, expected a count of 0 or more, or one for each question"
        )
    return rounds


def _check_fields(record: object, of: type, where: str) -> None:
    if not isinstance(record, Mapping):
        raise InputError(f"{where} is {type(record).__name__}, expected a JSON object")
    names = {field.name for field in fields(of)}
    if missing := names - set(record):
        raise InputError(
            f"{where} lacks the field {min(missing)!r}", hint="write it with Policy.as_json()"
        )
    if unknown := set(record) - names:
        raise InputError(
            f"{where} has an unknown field {min(unknown, key=str)!r}",
            hint=did_you_mean(str(min(unknown, key=str)), names),
        )
