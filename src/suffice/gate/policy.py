"""Turn a probability into an action: ANSWER, EXPAND or ABSTAIN.

ANSWER if p is at least `answer_at`. Otherwise EXPAND if another round is likely enough to complete
the evidence (`expand_at`) to be worth its cost. Otherwise ABSTAIN. `answer_at` is chosen on
questions that the model was not fitted on, in one of three ways:

    choose_by_f1     the threshold with the highest F1, as in the MAGAF paper
    choose_by_cost   where a wrong answer is expected to cost as much as an abstention
    choose_by_risk   the lowest threshold that keeps a promise: "among answered, the share of
                     incomplete is at most alpha, with confidence 1 - delta". If there is none, the
                     policy never answers, and `words` says so.

The promise holds for questions like those it was chosen on. docs/decisions/0010-risk-control.md
explains why, and what it does not cover.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, MissingExtraError
from suffice.gate.calibration import Platt
from suffice.numeric import log_odds_array
from suffice.storage.fields import dataclass_from_json
from suffice.types import Action

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.floating[Any]]
SECOND_START = 4  # see _levels; tuned for coverage on simulations, the promise holds for any value
STEP = 1.08
MORE, MOST = 1.1, 20_000  # step factor and upper limit in questions_needed
PROMISE_DRAWS, PROMISE_SHARE = 40, 0.8  # see labels_for_promise
LABEL_STEP, MOST_LABELS = 1.15, 1_000
ACTIONS = (Action.ABSTAIN, Action.EXPAND, Action.ANSWER)


def _check_number(value: object, name: str, *, at_most: float = math.inf) -> float:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}, expected a finite number of 0 or more")
    if value > at_most:  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}, expected a number from 0 to {at_most:g}")
    return float(value)  # type: ignore[arg-type]


def _check_open_share(value: object, name: str) -> float:
    number = _check_number(value, name)
    if not 0 < number < 1:
        expected = "expected a number strictly between 0 and 1"
        raise InputError(f"{name} is {value!r}, {expected}", hint="for example 0.1")
    return number


def _check_count(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{name} is {value!r}, expected a count")


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of a wrong answer (from incomplete evidence), an expansion and an abstention.

    Use any unit, but the same for all three.
    """

    wrong: float = 1.0
    expand: float = 0.05
    abstain: float = 0.3

    def __post_init__(self) -> None:
        for name in ("wrong", "expand", "abstain"):
            cost = _check_number(getattr(self, name), f"cost {name!r}")
            object.__setattr__(self, name, cost)
        if self.wrong == 0:
            raise InputError("cost 'wrong' is 0, expected more: otherwise nothing is to be guarded")


@dataclass(frozen=True, slots=True)
class PromiseNeed:
    """What it would take to keep a promise that cannot be kept: see `questions_needed`."""

    questions: int | None  # at least, to choose it on; None: more questions like these do not help
    coverage: float | None = None  # share of the questions answered in that case

    def __post_init__(self) -> None:
        if self.questions is not None:
            _check_count(self.questions, "questions")
        if self.coverage is not None:
            share = _check_number(self.coverage, "coverage", at_most=1)
            object.__setattr__(self, "coverage", share)


@dataclass(frozen=True, slots=True)
class Promise:
    """Among answered questions, at most `alpha` are incomplete, with confidence 1 - `delta`."""

    alpha: float
    delta: float
    questions: int  # number it was chosen on
    need: PromiseNeed | None = None  # only if no threshold keeps it

    def __post_init__(self) -> None:
        for name in ("alpha", "delta"):
            object.__setattr__(self, name, _check_open_share(getattr(self, name), name))
        _check_count(self.questions, "questions")
        if not isinstance(self.need, PromiseNeed | None):
            raise InputError(f"need is {self.need!r}, expected a record of that name")

    def __str__(self) -> str:
        share, confidence = f"{self.alpha:.3g}", f"{1 - self.delta:.3g}"
        promise = f"the share of incomplete is at most {share}, with confidence {confidence}"
        return f"among answered, {promise}"


@dataclass(frozen=True, slots=True)
class Policy:
    """Two thresholds and how they were chosen. None means never."""

    answer_at: float | None
    expand_at: float | None = None
    costs: Costs = Costs()
    promise: Promise | None = None
    chosen_by: str = "hand"

    def __post_init__(self) -> None:
        for name in ("answer_at", "expand_at"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _check_number(value, name, at_most=1))
        kinds = (("costs", Costs), ("promise", (Promise, type(None))), ("chosen_by", str))
        for name, kind in kinds:
            if not isinstance(getattr(self, name), kind):
                value = getattr(self, name)
                raise InputError(f"{name} is {value!r}, expected a record of that name")

    @property
    def words(self) -> str:
        """What the policy does and promises, in one sentence."""
        does = "Never answers"
        if self.answer_at is not None:
            does = f"Answers from p_complete {self.answer_at:.3f} on"
        if self.promise is None:
            return f"{does} (chosen by {self.chosen_by})."
        questions = f"{self.promise.questions} calibration questions"
        if self.answer_at is not None:
            return f"{does}: {self.promise} ({questions})."
        fewest = min_questions_for(self.promise.alpha, self.promise.delta)
        need, few = self.promise.need, self.promise.questions < fewest
        why = f", and at least {fewest} are needed" if few else " do not support it"
        if need is not None and need.questions is not None and need.coverage is not None:
            share = f"{100 * need.coverage:.0f} %"
            why = f", and at least {need.questions:,} are needed, to answer about {share}"
        elif need is not None and not few:
            why += ", nor would more like these"
        return f"{does}: no threshold keeps the promise that {self.promise} ({questions}{why})."

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Policy:
        """Load a policy written by `as_json`; InputError names the invalid field."""
        try:
            return dataclass_from_json(cls, record)
        except ValueError as error:
            raise InputError(str(error), hint="write it with Policy.as_json()") from error


@dataclass(frozen=True, slots=True)
class RealizedRisk:
    """How many questions were answered, and how many of those had incomplete evidence."""

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
        """The exact (Clopper-Pearson) upper bound of the risk; 1 if nothing was answered."""
        doubt = 1 - _check_open_share(confidence, "confidence")
        if self.incomplete == self.answered:
            return 1.0
        return float(_binomial().bdtri(self.incomplete, self.answered, doubt))


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """How a policy is chosen: by "f1", "cost" or "risk"; with `alpha` always by risk."""

    name: str
    alpha: float | None = None
    delta: float = 0.1
    costs: Costs = Costs()

    def __post_init__(self) -> None:
        if self.name not in ("f1", "cost", "risk"):
            raise InputError(f"policy is {self.name!r}, expected 'f1', 'cost' or 'risk'")
        if self.name == "risk" and self.alpha is None:
            raise InputError(
                "policy 'risk' needs alpha, the share of incomplete among answered",
                hint="for example alpha=0.1",
            )

    @classmethod
    def of(cls, policy: Policy) -> PolicyRule:
        """The rule that chose a policy; for a policy set by hand, F1."""
        if policy.promise:
            return cls("risk", policy.promise.alpha, policy.promise.delta, policy.costs)
        name = policy.chosen_by if policy.chosen_by in ("f1", "cost") else "f1"
        return cls(name, costs=policy.costs)

    @property
    def promises(self) -> bool:
        return self.alpha is not None

    def choose(
        self, p: npt.ArrayLike, complete: npt.ArrayLike, *, expected: bool = False
    ) -> Policy:
        """The policy for these probabilities. For `expected` with few labels, see choose_by_f1."""
        if self.alpha is not None:
            risk = {"alpha": self.alpha, "delta": self.delta}
            return choose_by_risk(p, complete, costs=self.costs, **risk)
        if self.name == "cost":
            return choose_by_cost(p, complete, costs=self.costs)
        return choose_by_f1(p, complete, costs=self.costs, expected=expected)


def choose_by_f1(
    p: npt.ArrayLike,
    complete: npt.ArrayLike,
    *,
    costs: Costs = Costs(),  # noqa: B008 - frozen
    expected: bool = False,
) -> Policy:
    """The threshold with the highest F1; of equals the highest. Never, if nothing was complete.

    With thirty labels, F1 jumps from one threshold to the next. `expected=True` uses the expected
    F1 of calibrated probabilities on these questions instead, whatever their labels.
    """
    p, complete = _check_calibration(p, complete)
    answer_at = None
    if complete.any():
        ranked, counted = _ranked(p, complete)
        right = np.cumsum(ranked) if expected else counted.astype(np.float64)
        ends = np.unique(_tie_ends(ranked, np.arange(1, len(ranked) + 1)))
        f1 = 2 * right[ends - 1] / (ends + right[-1])
        answer_at = float(ranked[ends[np.argmax(f1)] - 1])
    return Policy(answer_at, _expand_at(p, complete, answer_at, costs), costs, chosen_by="f1")


def choose_by_cost(p: npt.ArrayLike, complete: npt.ArrayLike, *, costs: Costs) -> Policy:
    """Answer if it is expected to cost no more than to abstain: wrong * (1 - p) <= abstain.

    This closed form is optimal with calibrated probabilities, and it cannot overfit a small
    calibration set, which is used only to price expansions.
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

    Learn-Then-Test with exact binomial tests. The hypothesis "above this threshold more than alpha
    is incomplete" is tested for more and more of the highest-ranked questions, and the error budget
    `delta` passes from one rejected test to the next. Only the order of `p` matters: a
    miscalibrated score costs coverage, never the promise.
    """
    p, complete = _check_calibration(p, complete)
    promise = Promise(alpha, delta, len(p))
    answer_at = _keep_promise(p, complete, alpha, delta)
    if answer_at is None:
        need = questions_needed(p, complete, alpha=alpha, delta=delta)
        promise = Promise(alpha, delta, len(p), need)
    expand_at = _expand_at(p, complete, answer_at, costs)
    return Policy(answer_at, expand_at, costs, promise, chosen_by="risk")


def _keep_promise(p: Floats, complete: Bools, alpha: float, delta: float) -> float | None:
    """The lowest threshold that keeps the promise."""
    ranked, right = _ranked(p, complete)
    counts, levels = _levels(ranked, alpha, delta)
    incomplete = (counts - right[counts - 1]).astype(np.float64)
    p_values = _binomial().bdtr(incomplete, counts, alpha)
    kept, budget = 0, 0.0
    for count, level, p_value in zip(counts.tolist(), levels.tolist(), p_values.tolist()):
        budget += level
        if p_value <= budget:
            kept = count
        else:
            budget = 0.0
    if not kept:
        return None
    # Just above the first question left out: given its position, those above it are a fair sample
    # of all questions above it. This makes the binomial test exact.
    return float(np.nextafter(ranked[kept], 1.0)) if kept < len(ranked) else 0.0


def questions_needed(
    p: npt.ArrayLike, complete: npt.ArrayLike, *, alpha: float, delta: float = 0.1
) -> PromiseNeed:
    """How many calibration questions the promise would need, if more were like these.

    It runs the same test on these questions, each counted several times. The estimate is a lower
    bound: a short ranking looks best where it is best by chance. Only a part of the labels that a
    gate is fitted or adapted to are calibration questions.
    """
    p, complete = _check_calibration(p, complete)
    fewest = min_questions_for(alpha, delta)
    ranked, right = _ranked(p, complete)
    right_at = np.diff(right, prepend=0) > 0
    size = max(len(p), fewest)
    while len(p) and size <= max(MOST, len(p)):
        copied = np.arange(size) * len(p) // size
        at = _keep_promise(ranked[copied], right_at[copied], alpha, delta)
        if at is not None:
            return PromiseNeed(size, float((ranked >= at).mean()))
        size = math.ceil(size * MORE)
    # Without questions, only the minimum for any promise is known.
    return PromiseNeed(None if len(p) else fewest)


def realized_risk(
    p: npt.ArrayLike, complete: npt.ArrayLike, threshold: float | None
) -> RealizedRisk:
    """The result of answering if p >= threshold (None: never)."""
    p, complete = _check_calibration(p, complete)
    if threshold is not None:
        threshold = _check_number(threshold, "threshold", at_most=1)
    answered = _reaches(p, threshold)
    return RealizedRisk(len(p), int(answered.sum()), int((answered & ~complete).sum()))


def min_questions_for(alpha: float, delta: float) -> int:
    """How many answered questions, all complete, a promise needs: (1 - alpha)^n <= delta."""
    alpha, delta = _check_open_share(alpha, "alpha"), _check_open_share(delta, "delta")
    return math.ceil(math.log(delta) / math.log1p(-alpha))


def labels_for_promise(
    p: npt.ArrayLike,
    complete: npt.ArrayLike,
    *,
    alpha: float,
    delta: float = 0.1,
    seed: int = 0,
) -> int | None:
    """How many calibration questions like these support a promise, in eight draws of ten.

    Slower and stricter than `questions_needed`, which gives a lower bound. Each draw resamples the
    questions and fits a logistic curve from p to complete, which provides the labels of further
    questions: the few surest questions seen so far say too little about how sure such questions
    are. None if not even `MOST_LABELS` are enough.
    """
    p, complete = _check_calibration(p, complete)
    if not len(p):
        return None
    rng, scores = np.random.default_rng(seed), log_odds_array(p, least=1e-4)
    shares = []
    for _ in range(PROMISE_DRAWS):
        drawn = rng.integers(0, len(p), len(p))
        shares.append(Platt.fit(scores[drawn], complete[drawn]).apply(scores))

    def enough(count: int) -> bool:
        rng, kept = np.random.default_rng([seed, count]), 0
        for share in shares:
            drawn = rng.integers(0, len(p), count)
            # A repeated question stands for a different one, so break ties.
            apart = np.clip(p[drawn] + rng.normal(scale=1e-6, size=count), 0, 1)
            labels = rng.random(count) < share[drawn]
            kept += _keep_promise(apart, labels, alpha, delta) is not None
        return kept >= PROMISE_SHARE * PROMISE_DRAWS

    least = min_questions_for(alpha, delta)
    steps = max(0, math.ceil(math.log(MOST_LABELS / least, LABEL_STEP)))
    counts = [math.ceil(least * LABEL_STEP**step) for step in range(steps)]
    at = bisect_left(counts, True, key=enough)
    return counts[at] if at < len(counts) else None


def _binomial() -> Any:
    """scipy.special, for the binomial distribution. Lazy: choosing an action does not need it."""
    try:
        from scipy import special
    except ImportError as error:
        raise MissingExtraError("a promise", extra="fit") from error
    return special


def _levels(ranked: Floats, alpha: float, delta: float) -> tuple[Ints, Floats]:
    """How many of the highest-ranked to test, in growing steps, and the error budget at each.

    Depends only on n, alpha and delta. If all tests started with the fewest questions that could
    pass, one early incomplete question would end everything. So half the budget starts at four
    times as many, if these are at most a quarter of all questions.
    """
    starts = [min_questions_for(alpha, delta)]
    half = min_questions_for(alpha, delta / 2)
    if half * SECOND_START <= len(ranked) / 4:
        starts = [half, half * SECOND_START]
    if starts[0] > len(ranked):
        return np.empty(0, np.int64), np.empty(0)
    steps = 1 + math.floor(math.log(len(ranked) / starts[0]) / math.log(STEP))
    grown = np.ceil(starts[0] * STEP ** np.arange(steps)).astype(np.int64)
    every = np.union1d(np.minimum(grown, len(ranked)), [*starts, len(ranked)])
    wanted = every.astype(np.int64)
    counts, place = np.unique(_tie_ends(ranked, wanted), return_inverse=True)
    levels = np.zeros(len(counts))
    np.add.at(levels, place, np.isin(wanted, starts) * delta / len(starts))
    return counts, levels


def _expand_at(p: Floats, complete: Bools, answer_at: float | None, costs: Costs) -> float | None:
    """The p_complete after one expansion from which expanding is cheaper than abstaining, or None.

    After the expansion the gate checks again, with the error rates of the calibration set. It
    answers a share `found` of the complete, which saves the abstention, and a share `fooled` of the
    incomplete, which costs a wrong answer instead.
    """
    answered = _reaches(p, answer_at)
    found = float(answered[complete].mean()) if complete.any() else 0.0
    fooled = float(answered[~complete].mean()) if not complete.all() else 0.0
    harm = fooled * (costs.wrong - costs.abstain)
    gain = found * costs.abstain + harm
    if gain <= 0 or costs.expand + harm >= gain:
        return None
    return max(0.0, (costs.expand + harm) / gain)


def _ranked(p: Floats, complete: Bools) -> tuple[Floats, Ints]:
    """Probabilities from high to low, and how many of the first 1, 2, … are complete."""
    order = np.argsort(-p, kind="stable")
    return p[order], np.cumsum(complete[order], dtype=np.int64)


def _tie_ends(ranked: Floats, counts: Ints) -> Ints:
    """Each count extended to the end of its ties: no threshold can split a tie."""
    ends: Ints = np.searchsorted(-ranked, -ranked[counts - 1], side="right")
    return ends


def choose_actions(
    p: Numbers, p_after: Numbers | None, policy: Policy, *, rounds_left: int | npt.ArrayLike
) -> list[Action]:
    """An action for each question, from (n,) probabilities now and after one expansion.

    Without `p_after`, nothing shows that an expansion would help, so none is chosen. The same holds
    if it promises no more than now. `rounds_left` is one count, or one for each question.
    """
    rounds, worth = _check_rounds(rounds_left, len(p)), np.zeros(len(p), bool)
    if p_after is not None and policy.expand_at is not None:
        worth = (p_after > policy.expand_at) & (p_after > p) & (rounds > 0)
    codes = np.where(_reaches(p, policy.answer_at), 2, worth)
    return [ACTIONS[code] for code in codes.tolist()]


def explain_actions(
    p: Numbers, p_after: Numbers | None, actions: Sequence[Action], usual: Sequence[Action]
) -> list[str | None]:
    """Why each action is not the usual one at this probability; None if it is."""
    if p_after is None or actions == usual:
        return [None] * len(actions)
    found: list[str | None] = []
    for now, after, action, usually in zip(p, p_after, actions, usual, strict=True):
        likely = "not likely to help" if after <= now else "not likely to help enough"
        if action is Action.EXPAND:
            likely = "likely to find what is missing"
        why = f"another search is {likely}: {now:.2f} now, about {after:.2f} after it"
        found.append(None if action is usually else why)
    return found


def action_shares(actions: Sequence[Action]) -> dict[str, float]:
    """The share of each action."""
    counts = sorted(Counter(actions).items())
    return {str(action): count / len(actions) for action, count in counts}


def _reaches(p: Numbers, threshold: float | None) -> Bools:
    return np.zeros(len(p), bool) if threshold is None else p >= threshold


def _check_calibration(p: npt.ArrayLike, complete: npt.ArrayLike) -> tuple[Floats, Bools]:
    probabilities, labels = _check_array(p, "p"), _check_array(complete, "complete")
    within = (probabilities >= 0) & (probabilities <= 1)  # NaN fails both
    if not within.all():
        raise InputError(
            f"p must lie between 0 and 1, found {probabilities[~within][0]}",
            hint="pass calibrated probabilities, not scores",
        )
    if len(labels) != len(probabilities):
        counts = f"{len(labels)} values of complete for {len(probabilities)} of p"
        raise InputError(f"{counts}: expected one each")
    if not np.isin(labels, (0.0, 1.0)).all():
        raise InputError("complete must hold true and false (or 1 and 0) only")
    return probabilities, labels > 0


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


def _check_rounds(rounds_left: int | npt.ArrayLike, questions: int) -> int | Ints:
    if type(rounds_left) is int and rounds_left >= 0:  # fast path for the usual case
        return rounds_left
    try:
        rounds = np.asarray(rounds_left)
    except ValueError as error:
        raise InputError(f"rounds_left must be counts: {error}") from error
    known = rounds.dtype.kind in "iu" and rounds.shape in ((), (questions,))
    if not known or (rounds < 0).any():
        expected = "expected a count of 0 or more, or one for each question"
        raise InputError(f"rounds_left is {rounds_left!r}, {expected}")
    return rounds
