"""Ask a judge only when unsure: which questions to send, and how much weight its opinion gets.

    calibration = JudgeCalibration.fit(...)       the weight of a judge's opinion, from labels
    cascade = Cascade(judge, calibration, JudgeBudget(share=0.1))
    cascade.consult(lists, numbers, threshold)    the opinions on the few questions worth a call

A judge (`suffice.protocols.Judge`, in practice a language model) returns log-odds. They are
weighted evidence, not an oracle: logit p = the gate's log-odds + offset + slope * the judge's
log-odds, bounded. The weight is fitted with the gate's log-odds in the model, so that what both
know counts once, and is shrunk by its standard error: a judge that guesses, or always says the
same, gets none. Without labels, the gate's confident verdicts replace them, at half the weight.

Labels of several kinds of text are fitted separately. The weight is that of the kind where it is
smallest, and zero if the kinds disagree about its direction. In a joint fit, a kind where the gate
is too low and the judge is high would look like a judge that knows something.

The questions sent are those whose decision is expected to gain most. For a judge that says yes at
the rates implied by its weight, the value of its opinion is E[max(p' - t, 0)] - max(p - t, 0) at
the threshold t. Here p is the mean over the gate's interval, at the level that the labels show. The
value is largest for uncertain questions; for unfamiliar ones the interval is wide, and its mean
uncertain.

This module uses no network and no clock: a judge enforces its own deadline. For the reasons, see
docs/decisions/0039-judge.md.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.gate.policy import Policy, PolicyRule
from suffice.numeric import log_odds_array, sigmoid
from suffice.protocols import HitTexts, Judge, component_name
from suffice.storage.fields import dataclass_from_json
from suffice.types import Action, Cost, JudgeReport, Opinion

__all__ = [
    "Cascade",
    "GateNumbers",
    "JudgeBudget",
    "JudgeCalibration",
    "JudgedQuestions",
    "expected_gain",
    "fit_judge",
]

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
MAX_LOG_ODDS = 6.0  # limit for a judge's log-odds
MAX_EFFECT = 3.0  # on the gate's log-odds: a judge is right 19 times in 20 at most
PRIOR_SPREAD = 2.0  # of the weight, in log-odds per spread of the judge's: a weak prior around 0
MIN_LABELS, MIN_OF_EACH = 20, 5  # needed to learn a weight
CONFIDENT = 0.1  # verdicts below it, or above its complement, can replace labels
AGREEMENT_SHARE = 0.5  # factor on a weight from agreement: confident questions are the easy ones
MAX_AGREEMENT = 400  # confident verdicts kept
GAIN_WINDOW = 500  # recent questions among which the share to send is chosen
GAIN_QUANTILES = 101
FAILURES_IN_A_ROW, PAUSE = 3, 50  # pause for so many questions after so many failures
MIN_GAIN = 1e-9  # smaller gains are rounding noise
NODES = np.array([1.0, 2.0, 4.0, 2.0, 1.0]) / 10  # weights over the interval of p
INVALID_COST = "the judge's cost is not a finite number of at least 0"
BY_INTERVAL = 0.01  # small: it only orders the questions without gain at the mean


@dataclass(frozen=True, slots=True)
class JudgeBudget:
    """The limits for a judge: a share of the questions, seconds per call, and money in total."""

    share: float = 0.1
    seconds: float = 2.0
    money: float | None = None  # since the gate was opened; None: no limit

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            known = isinstance(value, int | float) and not isinstance(value, bool)
            if value is None and name == "money":
                continue
            if not known or not 0 <= value < math.inf:
                raise InputError(f"judge: {name} is {value!r}, expected a number of 0 or more")
        if self.share > 1:
            hint = "for example share=0.1: at most a tenth of the questions"
            raise InputError(f"judge: share is {self.share}, expected at most 1", hint=hint)
        if self.seconds == 0:
            raise InputError("judge: seconds is 0, expected more")


@dataclass(frozen=True)
class GateNumbers:
    """The gate's log-odds on some questions, and the interval of its probability."""

    odds: Floats
    low: Floats
    high: Floats

    def __getitem__(self, rows: Any) -> GateNumbers:
        return GateNumbers(self.odds[rows], self.low[rows], self.high[rows])


@dataclass(frozen=True)
class JudgeCalibration:
    """The weight of one judge's opinion, and which questions to send."""

    judge: str  # its name: another judge needs another calibration
    offset: float
    slope: float  # 0: its opinion has no weight
    yes: float  # how far a typical yes moves the log-odds
    no: float
    labels: int  # number it was learned from
    by: str = "labels"  # or "agreement" with confident verdicts
    threshold: float = 0.5  # gains are measured here
    gains: tuple[float, ...] = ()  # quantiles of the expected gain of such questions
    share: float | None = None  # of the questions sent when the policy was chosen
    policy: Policy | None = None  # of gate and judge together
    level: float = 0.0  # correction of the gate's log-odds, used only to choose questions
    slack: float = 0.0  # effects are shrunk by this: kinds of text disagree about them
    kinds: int = 1  # of text in the labels

    def __post_init__(self) -> None:
        numbers = (
            self.offset, self.slope, self.yes, self.no, self.level, self.slack, *self.gains
        )  # fmt: skip
        if not all(isinstance(one, int | float) and abs(one) < math.inf for one in numbers):
            raise InputError("the calibration of a judge has a number that is not finite")
        if self.slope < 0 or self.no > 0 or self.yes < 0 or self.slack < 0:
            raise InputError("the word of a judge may not count against itself")

    @classmethod
    def fit(
        cls,
        judge: str,
        scores: npt.ArrayLike,
        complete: npt.ArrayLike,
        odds: npt.ArrayLike | None = None,
        kinds: Sequence[str] | None = None,
    ) -> Self:
        """Fit from the judge's log-odds on labelled questions, NaN if it had no opinion.

        `odds` are the log-odds of a gate that has not learned from these labels. Without them,
        `complete` may be the probabilities of confident verdicts. `kinds` names the kind of text of
        each label; kinds with too few labels are left out.
        """
        scores, complete = np.asarray(scores, float), np.asarray(complete, float)
        gate = np.zeros(len(scores)) if odds is None else np.asarray(odds, float)
        usable = np.isfinite(scores) & np.isfinite(gate)
        words, labels, gate = (one[usable] for one in (scores, complete, gate))
        words = np.clip(words, -MAX_LOG_ODDS, MAX_LOG_ODDS)
        names = np.asarray(["" for _ in scores] if kinds is None else kinds)[usable]
        parts = [names == one for one in np.unique(names)]
        lines = [
            _fit_line(words[part], labels[part], gate[part])
            for part in parts
            if _enough(labels[part])
        ]
        by = "labels" if odds is not None else "agreement"
        none = cls(judge, 0.0, 0.0, 0.0, 0.0, len(words), by, kinds=max(len(lines), 1))
        if not lines:
            return none
        slope = min(one.slope for one in lines)
        level = _least([one.level for one in lines]) if odds is not None else 0.0
        if not slope:
            return replace(none, level=level)
        slope *= 1.0 if odds is not None else AGREEMENT_SHARE
        low, *_, high = sorted([one.neutral for one in lines] * 2)
        found = replace(
            none,
            offset=-slope * (low + high) / 2,
            slope=slope,
            slack=slope * (high - low) / 2,
            level=level,
        )
        effects = found.effects(words)
        return replace(
            found,
            yes=float(effects[effects > 0].mean()) if (effects > 0).any() else 0.0,
            no=float(effects[effects < 0].mean()) if (effects < 0).any() else 0.0,
        )

    @property
    def counts(self) -> bool:
        """Whether a call can change anything."""
        return self.slope > 0 and self.yes > 0 > self.no

    @property
    def words(self) -> str:
        """The weight of the judge, in one sentence."""
        learned = f"{self.labels:,} labels"
        if self.by != "labels":
            learned = f"{self.labels:,} confident verdicts"
        if self.kinds > 1:
            learned += f" of {self.kinds} kinds of text"
        if not self.counts:
            return f"the judge {self.judge} has no weight, as far as {learned} tell"
        yes, no = (math.exp(abs(one)) for one in (self.yes, self.no))
        least = ": as in the one where it is worth least" if self.kinds > 1 else ""
        return (
            f"a yes of the judge {self.judge} multiplies the odds by {yes:.1f}, a no divides them "
            f"by {no:.1f} (from {learned}{least})"
        )

    def effects(self, scores: npt.ArrayLike) -> Floats:
        """How far each opinion moves the gate's log-odds; 0 without one (NaN)."""
        words = np.asarray(scores, float)
        if not self.slope:
            return np.zeros(len(words))
        moved = self.offset + self.slope * np.clip(words, -MAX_LOG_ODDS, MAX_LOG_ODDS)
        moved = np.sign(moved) * np.maximum(np.abs(moved) - self.slack, 0.0)
        return np.where(np.isnan(words), 0.0, np.clip(moved, -MAX_EFFECT, MAX_EFFECT))

    def gain(self, numbers: GateNumbers) -> Floats:
        """The expected gain of the judge's opinion for each question; see the module docstring."""
        middle = numbers.odds
        low, high = (log_odds_array(one, least=1e-4) for one in (numbers.low, numbers.high))
        low, high = np.minimum(low, middle), np.maximum(high, middle)
        nodes = (low, (low + middle) / 2, middle, (middle + high) / 2, high)
        worth = partial(expected_gain, yes=self.yes, no=self.no, threshold=self.threshold)
        # The gain of an opinion is that at the mean of p, however wide the interval is. If it is
        # zero there, the interval may still single out questions worth asking about.
        mean = worth(log_odds_array(NODES @ sigmoid(np.array(nodes))) + self.level)
        found = mean + BY_INTERVAL * (NODES @ np.array([worth(one) for one in nodes]))
        return np.asarray(np.where(found < MIN_GAIN, 0.0, found))

    def gain_for(self, share: float) -> float:
        """The gain above which questions are sent, so that this share of them is."""
        if not self.gains:
            return 0.0
        at = np.linspace(0, 1, len(self.gains))
        return float(np.interp(1 - share, at, self.gains))

    def sends(self, numbers: GateNumbers, share: float) -> Bools:
        """Which of these questions go to the judge."""
        gains = self.gain(numbers)
        return (gains >= self.gain_for(share)) & (gains > 0)

    def probabilities(
        self, scores: npt.ArrayLike, numbers: GateNumbers, share: float
    ) -> npt.NDArray[np.float64]:
        """p of gate and judge together, if the judge gives these scores for the questions sent."""
        words = np.where(self.sends(numbers, share), np.asarray(scores, float), np.nan)
        return sigmoid(numbers.odds + self.effects(words))

    def for_questions(
        self, numbers: GateNumbers, *, threshold: float | None, share: float
    ) -> JudgeCalibration:
        """A copy with the gains of representative questions, which determine which ones to send."""
        found = replace(self, threshold=0.5 if threshold is None else threshold, share=share)
        gains = found.gain(numbers)
        quantiles = np.quantile(gains, np.linspace(0, 1, GAIN_QUANTILES)) if len(gains) else ()
        return replace(found, gains=tuple(float(one) for one in quantiles))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Any) -> JudgeCalibration:
        plain = {**record, "policy": None}
        policy = record.get("policy")
        found = dataclass_from_json(cls, plain)
        return replace(found, policy=None if policy is None else Policy.from_json(policy))


def expected_gain(odds: npt.ArrayLike, yes: float, no: float, threshold: float) -> Floats:
    """How much the judge's opinion improves the decision at the threshold, on average.

    `yes` and `no` are how far its opinion moves the log-odds. They are log-likelihood ratios, so
    they imply how often it says yes: with rates t and f, yes = log(t / f), no = log((1-t) / (1-f)).
    """
    odds = np.asarray(odds, float)
    p = sigmoid(odds)
    if not yes > 0 > no:
        return np.zeros(len(p))
    up, down = math.exp(yes), math.exp(no)
    false_rate = (1 - down) / (up - down)
    says_yes = p * up * false_rate + (1 - p) * false_rate
    after = says_yes * np.maximum(sigmoid(odds + yes) - threshold, 0)
    after += (1 - says_yes) * np.maximum(sigmoid(odds + no) - threshold, 0)
    return np.maximum(after - np.maximum(p - threshold, 0), 0)


@dataclass(frozen=True, slots=True)
class _Line:
    """The fit for one kind of text: log-odds of an opinion above neutral, and the gate's level."""

    slope: float
    neutral: float
    level: float


def _enough(labels: Floats) -> bool:
    of_each = min((labels > 0.5).sum(), (labels < 0.5).sum())
    return len(labels) >= MIN_LABELS and bool(of_each >= MIN_OF_EACH)


def _fit_line(words: Floats, labels: Floats, gate: Floats) -> _Line:
    (base,), (error,) = _logistic(np.ones((len(words), 1)), labels, gate)
    middle, spread = float(words.mean()), float(words.std())
    level = float(base) * _kept(base, error)
    if spread < 1e-6:
        return _Line(0.0, middle, level)
    design = np.column_stack([np.ones(len(words)), (words - middle) / spread])
    (shift, weight), errors = _logistic(design, labels, gate + base)
    if weight <= 0:
        return _Line(0.0, middle, level)
    kept = _kept(weight, errors[1])
    return _Line(float(kept * weight / spread), middle - float(shift / weight) * spread, level)


def _kept(estimate: float, error: float) -> float:
    """Positive-part shrinkage: an estimate that is all noise becomes 0."""
    return max(0.0, 1 - float(error / estimate) ** 2) if estimate else 0.0


def _least(values: Sequence[float]) -> float:
    """The value nearest to 0; 0 if the signs differ."""
    return max(min(values), 0.0) + min(max(values), 0.0)


def _logistic(design: Floats, labels: Floats, offset: Floats) -> tuple[Floats, Floats]:
    """Coefficients and their standard errors, by Newton's method; labels may be probabilities."""
    penalty = np.eye(design.shape[1]) / PRIOR_SPREAD**2
    found = np.zeros(design.shape[1])
    for _ in range(50):
        p = sigmoid(design @ found + offset)
        slope = design.T @ (labels - p) - penalty @ found
        curvature = (design * (p * (1 - p))[:, None]).T @ design + penalty
        step = np.linalg.solve(curvature, slope)
        found = found + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-8:
            break
    return found, np.sqrt(np.diag(np.linalg.inv(curvature)))


@dataclass(frozen=True)
class Consultation:
    """The opinions on some questions, None if the judge was not asked, and their effects."""

    opinions: tuple[Opinion | None, ...]
    effects: Floats  # on the gate's log-odds
    joint: Bools  # whether the joint policy of gate and judge decides
    policy: Policy | None = None  # of both together
    note: str = ""  # why the judge was not asked although it should have been


class Cascade:
    """A judge behind a gate: its budget, its cost so far, and the weight of its opinion.

    All checks of a gate share it, also across threads if the judge has a `lock`. It sends the
    questions whose expected gain is among the highest of the recent ones, and never more than the
    share.
    """

    def __init__(
        self,
        judge: Judge,
        calibration: JudgeCalibration | None = None,
        budget: JudgeBudget = JudgeBudget(),  # noqa: B008 - frozen
    ) -> None:
        if not callable(getattr(judge, "judge", None)):
            raise InputError(
                f"the judge is a {type(judge).__name__}",
                hint="wrap a language model: suffice.integrations.judge.ModelJudge(model)",
            )
        name = component_name(judge)
        if calibration is not None and calibration.judge != name:
            raise InputError(
                f"the gate knows the judge {calibration.judge!r}, not {name!r}",
                hint="learn what it is worth: suffice adapt labels.jsonl --judge ... --out gate",
            )
        promise = calibration and calibration.policy and calibration.policy.promise
        if calibration and promise and budget.share != calibration.share:
            raise InputError(
                f"the promise was made with a share of {calibration.share} sent to the judge, "
                f"not {budget.share}",
                hint=f"use share={calibration.share}, or adapt again with another share",
            )
        within = getattr(judge, "within", None)
        self.judge = judge if within is None else within(budget.seconds)
        self.calibration, self.budget = calibration, budget
        self.questions = self.asked = self.failed = self.changed = 0
        self.cost = Cost()
        # Give a judge a lock if threads share it; this module knows nothing about threads.
        self._lock: Any = getattr(judge, "lock", None) or nullcontext()
        self._gains: deque[float] = deque(maxlen=GAIN_WINDOW)
        self._agreement: deque[tuple[float, float]] = deque(maxlen=MAX_AGREEMENT)
        self._failures = self._pause = 0
        self._cost_known = True

    def consult(
        self, lists: Sequence[HitTexts], numbers: GateNumbers, policy: Policy
    ) -> Consultation:
        """Ask about the questions that are worth it, within the budget."""
        opinions: list[Opinion | None] = [None] * len(lists)
        effects, joint = np.zeros(len(lists)), np.zeros(len(lists), bool)
        with self._lock:
            self.questions += len(lists)
            if note := self._stopped(len(lists)):
                return Consultation(tuple(opinions), effects, joint, note=note)
        if self.calibration is None or self.calibration.by == "agreement":
            self._learn_agreement(lists, numbers, opinions)
        known = self.calibration
        if known is None or not known.counts:
            return Consultation(tuple(opinions), effects, joint)
        if not known.gains and policy.answer_at is not None:
            known = replace(known, threshold=policy.answer_at)
        gains = known.gain(numbers)
        with self._lock:
            rows, refused = self._choose(gains, known, opinions)
        self._ask(rows, lists, opinions)
        said = np.array(
            [math.nan if one is None or one.log_odds is None else one.log_odds for one in opinions]
        )
        answered = ~np.isnan(said)
        # If the judge should have been asked and has no opinion, the gate decides alone.
        joint[:] = known.policy is not None
        failed = [one is not None and one.log_odds is None for one in opinions]
        joint &= ~(np.array(failed) | refused)
        effects[answered] = known.effects(said[answered])
        return Consultation(tuple(opinions), effects, joint, known.policy)

    @property
    def account(self) -> dict[str, Any]:
        """Calls so far, the actions they changed and their cost, as JSON values."""
        with self._lock:
            counts = {
                name: getattr(self, name) for name in ("questions", "asked", "failed", "changed")
            }
            cost = asdict(self.cost)
        words = "no weight yet" if self.calibration is None else self.calibration.words
        del cost["rounds"]
        return {"judge": component_name(self.judge), "weight": words, **counts, **cost}

    def count_changed(self, count: int) -> None:
        """Count actions that differ from those of the gate alone."""
        with self._lock:
            self.changed += count

    def _stopped(self, count: int) -> str:
        """Why the judge cannot be asked now; empty if it can."""
        if self._pause:
            self._pause = max(0, self._pause - count)
            return "the judge failed several times in a row and is not asked for a while"
        if self.budget.money is not None and not self._cost_known:
            return "the judge's cost is unknown: with a budget of money it is not asked again"
        if self.budget.money is not None and self.cost.money >= self.budget.money:
            return "the budget of money for the judge is spent"
        return ""

    def _allowed(self) -> int:
        """How many questions may be sent now, given the share and the money left."""
        allowed = math.ceil(self.budget.share * self.questions) - self.asked
        if self.budget.money is None:
            return allowed
        if not self.asked:
            return min(allowed, 1)  # the cost of a call is unknown before the first one
        each = self.cost.money / self.asked
        left = self.budget.money - self.cost.money
        return min(allowed, math.ceil(left / each)) if each > 0 else allowed

    def _choose(
        self, gains: Floats, known: JudgeCalibration, opinions: Sequence[Opinion | None]
    ) -> tuple[list[int], Bools]:
        """Which questions to send, highest gain first, and which only the share leaves out."""
        self._gains.extend(gains.tolist())
        at_least = known.gain_for(self.budget.share)
        if not known.gains:
            at_least = float(np.quantile(np.array(self._gains), 1 - self.budget.share))
        worth = (gains >= at_least) & (gains > 0)
        order = [row for row in np.argsort(-gains, kind="stable").tolist() if worth[row]]
        order = [row for row in order if opinions[row] is None]
        taken = order[: max(0, self._allowed())]
        refused = np.zeros(len(gains), bool)
        refused[order[len(taken) :]] = True
        self.asked += len(taken)
        return taken, refused

    def _ask(
        self, rows: Sequence[int], lists: Sequence[HitTexts], opinions: list[Opinion | None]
    ) -> None:
        if not rows:
            return
        try:
            found = self.judge.judge([lists[row] for row in rows])
        except Exception as error:  # noqa: BLE001 - whatever a judge does, the gate has a verdict
            # Keep only the error type: the message may quote a hit.
            found = [Opinion(None, error=type(error).__name__)] * len(rows)
        if not isinstance(found, Sequence) or len(found) != len(rows):
            found = [Opinion(None, error="the judge did not return one opinion a list")] * len(rows)
        with self._lock:
            for row, one in zip(rows, map(_usable, found), strict=True):
                opinions[row] = one
                failed = one.log_odds is None
                self.failed += failed
                self._failures = self._failures + 1 if failed else 0
                self.cost = add_costs(self.cost, one.cost)
                self._cost_known &= one.error != INVALID_COST
            if self._failures >= FAILURES_IN_A_ROW:
                self._failures, self._pause = 0, PAUSE

    def _learn_agreement(
        self, lists: Sequence[HitTexts], numbers: GateNumbers, opinions: list[Opinion | None]
    ) -> None:
        """Ask about confident verdicts until there are enough of both kinds to learn the weight."""
        p = sigmoid(numbers.odds)
        with self._lock:
            known = [one for _, one in self._agreement]
            high = sum(one > 0.5 for one in known)
            wanted: list[int] = []
            for row in np.argsort(-np.abs(p - 0.5), kind="stable").tolist():
                sure = p[row] <= CONFIDENT or p[row] >= 1 - CONFIDENT
                kind = high if p[row] > 0.5 else len(known) - high
                if sure and kind + sum((p[row] > 0.5) == (p[one] > 0.5) for one in wanted) < (
                    MIN_LABELS
                ):
                    wanted.append(row)
            wanted = wanted[: max(0, self._allowed())]
            self.asked += len(wanted)
        if not wanted:
            return
        self._ask(wanted, lists, opinions)
        with self._lock:
            for row in wanted:
                opinion = opinions[row]
                if opinion is not None and opinion.log_odds is not None:
                    self._agreement.append((opinion.log_odds, float(p[row])))
            if len(self._agreement) >= 2 * MIN_LABELS:
                scores, sure = (np.array(one) for one in zip(*self._agreement, strict=True))
                name = component_name(self.judge)
                self.calibration = JudgeCalibration.fit(name, scores, sure)


def _usable(said: Any) -> Opinion:
    """The opinion; one without log-odds if its numbers are invalid: judges are third-party code."""
    if not isinstance(said, Opinion) or not isinstance(said.cost, Cost):
        return Opinion(None, error="the judge returned something that is no opinion")
    for value in astuple(said.cost):
        if not isinstance(value, int | float | np.number) or not 0 <= value < math.inf:
            return Opinion(None, error=INVALID_COST)
    odds = said.log_odds
    if odds is None:
        return said
    if not isinstance(odds, int | float | np.number) or not math.isfinite(odds):
        return replace(said, log_odds=None, error="the judge's log-odds are not a finite number")
    return said


def judged_record(judge: str, said: Opinion, p_before: float, action_before: Action) -> JudgeReport:
    """An opinion in the form used in a verdict."""
    p = None if said.log_odds is None else float(sigmoid(said.log_odds))
    cost = said.cost
    return JudgeReport(
        judge, p_before, action_before, p, said.missing, said.hits, said.error,
        cost.calls, cost.tokens, cost.seconds, cost.money,
    )  # fmt: skip


def add_costs(one: Cost, other: Cost) -> Cost:
    return Cost(
        one.rounds + other.rounds, one.calls + other.calls, one.tokens + other.tokens,
        one.seconds + other.seconds, round(one.money + other.money, 9),
    )  # fmt: skip


@dataclass(frozen=True)
class JudgedQuestions:
    """Labelled questions with the results of gate and judge; NaN if the judge has no opinion."""

    numbers: GateNumbers
    scores: Floats
    complete: Bools
    kinds: npt.NDArray[np.str_] | None = None  # of text; None: all are of one kind

    def __getitem__(self, rows: Any) -> JudgedQuestions:
        kinds = None if self.kinds is None else self.kinds[rows]
        return JudgedQuestions(self.numbers[rows], self.scores[rows], self.complete[rows], kinds)

    def fit(self, judge: str) -> JudgeCalibration:
        """The weight of this judge's opinion, learned from these questions."""
        kinds = None if self.kinds is None else self.kinds.tolist()
        return JudgeCalibration.fit(judge, self.scores, self.complete, self.numbers.odds, kinds)


def fit_judge(
    judge: str,
    questions: JudgedQuestions,
    rule: PolicyRule,
    *,
    budget: JudgeBudget,
    policy: Policy,
    aside: JudgedQuestions | None = None,
    seed: int = 42,
) -> tuple[JudgeCalibration, npt.NDArray[np.float64]]:
    """The calibration with its policy, and p of gate and judge for each question, by a weight
    learned from the other questions.

    With `aside`, questions that nothing was learned from, the policy is chosen on those, as a
    promise requires. `policy` is the gate's own.
    """
    # The threshold of a promise is not known yet. The gate's own may have been chosen on the labels
    # held out for the promise, and which questions are sent must not depend on those.
    share, threshold = budget.share, policy.answer_at if rule.alpha is None else 1 - rule.alpha

    def learn(some: JudgedQuestions) -> JudgeCalibration:
        return some.fit(judge).for_questions(some.numbers, threshold=threshold, share=share)

    whole, p = learn(questions), np.empty(len(questions.complete))
    half = np.random.default_rng(seed).permutation(len(p)) % 2 == 0
    for learned in (half, ~half):
        others = questions[~learned]
        p[~learned] = learn(questions[learned]).probabilities(others.scores, others.numbers, share)
    if aside is None:
        return replace(whole, policy=rule.choose(p, questions.complete)), p
    judged = whole.probabilities(aside.scores, aside.numbers, share)
    return replace(whole, policy=rule.choose(judged, aside.complete)), p
