"""Adapt a gate to your own labels, and measure what that gains.

    found = adapt_to_labels(gate, examples)
    found.gate, found.before, found.after, found.is_better

Every figure is cross-validated: each label is judged by a gate adapted to the other folds, with its
threshold. AUROC compares only questions of the same fold, because gates of different folds differ
in level and scale, and ranking across them would underestimate the adapted gate. Nested subsets of
the labels give a learning curve, AUROC = a + b / sqrt(n). It predicts what more labels would bring,
or shows that it is too noisy to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.evaluation.gate_evaluation import Folds, grouped_folds
from suffice.evaluation.judging import JudgeGain, ask_about_labels, fit_judge
from suffice.evaluation.metrics import Predictions, auroc
from suffice.evaluation.reading_cache import CachedReader
from suffice.evaluation.significance import (
    Difference,
    Interval,
    Statistic,
    interval,
    mean_interval,
    paired_difference,
    statistic_interval,
)
from suffice.gate.extraction import reader_input
from suffice.gate.gate import Gate
from suffice.gate.policy import MOST_LABELS, PolicyRule, labels_for_promise
from suffice.gate.training import (
    MIN_TO_ADAPT,
    FittedGate,
    LabelledQuestion,
    TrainingSet,
    adapt_gate,
    build_training_set,
    require_fit_extra,
)
from suffice.numeric import log_odds_array, sigmoid
from suffice.protocols import Judge, Progress, component_name
from suffice.types import Opinion

__all__ = ["Adaptation", "Forecast", "GateFigures", "adapt_to_labels"]

Floats = npt.NDArray[np.float64]
Parts = Sequence[npt.NDArray[np.intp]]  # the held-out questions of each fold
MIN_LABELS, FOLDS = 20, 5
MIN_OF_EACH = FOLDS  # as many complete and as many incomplete questions at least
CURVE, MIN_CURVE = 3, 40  # points of the learning curve; with fewer labels it is noise, and slow
MORE = (2, 4)  # multiples of the labels to forecast for
LEVEL = 0.8  # of the intervals that decide: nine in ten confident that it is better
PROMISE_PARTS = 2  # adapting keeps every second label for the promise


@dataclass(frozen=True, slots=True)
class GateFigures:
    """A gate's figures on the labelled questions."""

    auroc: Interval
    ece: Interval
    answered: Interval  # share of all questions
    incomplete: Interval  # share of the answered ones


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected figure with this many labels."""

    labels: int
    auroc: Interval


def describe_gain(gain: Difference, labels: int) -> str:
    """Whether a gate is better than another, by the decrease of its Brier score on labels."""
    value, low, high = gain.value or 0.0, gain.low or 0.0, gain.high or 0.0
    figures = f"the Brier score falls by {value:.3f} [{low:.3f}, {high:.3f}]"
    if value < 0:
        figures = f"the Brier score rises by {-value:.3f} [{0 - high:.3f}, {0 - low:.3f}]"
    if low > 0:
        return f"better: {figures}"
    if value > 0:
        return f"probably better, as far as {labels} labels tell: {figures}"
    if high < 0:
        return f"worse: {figures}"
    return f"not better, as far as {labels} labels tell: {figures}"


@dataclass(frozen=True)
class Adaptation:
    """The adapted gate, and its figures on labels it had not seen."""

    gate: Gate
    labels: int
    complete: int
    before: GateFigures
    after: GateFigures
    gain: Difference  # decrease of the Brier score
    forecasts: tuple[Forecast, ...]  # empty: too noisy to say
    alpha: float
    promise_labels: int | None  # needed for a promise of alpha; None: too many to predict
    judged: JudgeGain | None = None  # the gate with the scale of its judge
    with_judge: GateFigures | None = None

    @property
    def is_better(self) -> bool:
        """Whether the cross-validated probabilities are better, even within the noise.

        Requiring more would reject better gates: thirty labels hardly ever prove it.
        """
        return self.gain.value is not None and self.gain.value > 0

    @property
    def verdict(self) -> str:
        """Whether it is better, in one sentence."""
        return describe_gain(self.gain, self.labels)

    def to_write(self, *, force: bool = False) -> Gate | None:
        """The gate to keep, with its judge's scale; None if the old gate is the one to keep."""
        if self.judged is None:
            return self.gate if self.is_better or force else None
        if force and not self.is_better:
            return self.gate  # the judge's scale was fitted for the old gate
        return self.judged.gate if self.is_better or self.judged.scale.slope > 0 else None

    @property
    def outlook(self) -> str:
        """What more labels would bring, in one sentence."""
        if not self.forecasts:
            return f"more labels: {self.labels} are too few, or too noisy, to say what they bring"
        now = self.after.auroc.value or 0.0
        parts = [
            f"{(one.auroc.value or 0.0):.2f} [{one.auroc.low:.2f}, {one.auroc.high:.2f}] with "
            f"{one.labels:,}"
            for one in self.forecasts
        ]
        return f"more labels: AUROC is {now:.2f} now, expect {' and '.join(parts)}"

    @property
    def promise(self) -> str:
        """What a promise would need, in one sentence."""
        what = f"a promise of at most {self.alpha:.0%} incomplete answers"
        policy = self.gate.policy
        if policy.promise is not None and policy.answer_at is not None:
            return f"{what}: these {self.labels:,} labels support it"
        takes = f"more than {PROMISE_PARTS * MOST_LABELS:,}"
        if self.promise_labels is not None:
            takes = f"about {self.promise_labels:,}"
        return f"{what}: takes {takes} labels, as far as these {self.labels:,} tell"

    def as_json(self) -> dict[str, Any]:
        names = ("labels", "complete", "alpha", "promise_labels", "is_better", "verdict")
        record = {name: getattr(self, name) for name in names}
        record |= {name: asdict(getattr(self, name)) for name in ("before", "after", "gain")}
        record["forecasts"] = [asdict(one) for one in self.forecasts]
        if self.judged is not None and self.with_judge is not None:
            record["judge"] = {**self.judged.as_json(), "after": asdict(self.with_judge)}
        return {**record, "policy": self.gate.policy.as_json()}


def adapt_to_labels(
    gate: Gate,
    examples: Sequence[LabelledQuestion],
    *,
    alpha: float | None = None,
    delta: float = 0.1,
    seed: int = 42,
    judge: Judge | None = None,
    progress: Progress | None = None,
) -> Adaptation:
    """Adapt the gate to 20 or more labels, and measure what that gains.

    With `alpha` the new gate promises at most this share of incomplete answers; without, its
    threshold is chosen like the old one. With a `judge`, how much it counts is fitted too: for the
    new gate if that is better, else for the old one. A promise does not cover a judge.
    """
    require_fit_extra()
    rule = PolicyRule.of(gate.policy)
    if alpha is not None:
        rule = PolicyRule("risk", alpha, delta, gate.policy.costs)
    if judge is not None and rule.promises:
        hint = "leave out the judge, or alpha (on the command line: --judge, --alpha)"
        raise InputError("a promise does not cover a judge", hint=hint)
    labels = _read(gate, examples, progress)
    _check_labels(labels)
    opinions: Sequence[Opinion] = ()
    if judge is not None:  # before the long part: its server may be down
        lists = [reader_input(one) for one in labels.batch.hits]
        opinions = ask_about_labels(judge, lists, progress)
    fit = _Adapting(gate, rule, seed)
    before = sigmoid(gate.model.log_odds(gate.model.describe(labels.batch).table))
    folds = grouped_folds(labels.groups, labels.complete, FOLDS, seed)
    curve, answered = _cross_validate(fit, labels, folds, before, progress)
    after, complete = curve[max(curve)], labels.complete
    parts = [held_out for _, held_out in folds]
    losses = [(p - complete) ** 2 for p in (before, after)]
    alpha = rule.alpha or 0.1
    needed = labels_for_promise(after, complete, alpha=alpha, delta=rule.delta, seed=seed)
    found = Adaptation(
        fit.gate(labels),
        len(complete),
        int(complete.sum()),
        _figures(complete, before, _reaches(before, gate.policy.answer_at), parts),
        _figures(complete, after, answered, parts),
        paired_difference(*losses, level=LEVEL),
        _look_ahead(curve, complete, parts),
        alpha,
        None if needed is None else max(PROMISE_PARTS * needed, MIN_LABELS),
    )
    if judge is None:
        return found
    base, p = (found.gate, after) if found.is_better else (gate, before)
    gain = fit_judge(base, complete, log_odds_array(p), opinions, component_name(judge), folds)
    answered = _reaches(gain.p, base.policy.answer_at)
    return replace(found, judged=gain, with_judge=_figures(complete, gain.p, answered, parts))


def compare_gates(old: Gate, new: Gate, examples: Sequence[LabelledQuestion]) -> Difference:
    """How much lower the Brier score of the new gate is, on labels that it has not learned from.

    Both judge the hits that both read.
    """
    k = min(old.card["k"], new.card["k"])
    lists = [replace(one, hits=one.hits[:k]) for one in examples]
    losses = []
    for gate in (old, new):
        labels = _read(gate, lists, None)
        odds = gate.model.log_odds(gate.model.describe(labels.batch).table)
        losses.append((sigmoid(odds) - labels.complete) ** 2)
    return paired_difference(*losses, level=LEVEL)


@dataclass(frozen=True)
class _Adapting:
    """How to adapt the gate, independent of the labels."""

    old: Gate
    rule: PolicyRule
    seed: int

    def fit(self, labels: TrainingSet) -> FittedGate:
        card = dict(self.old.card)
        return adapt_gate(self.old.model, labels, self.rule, seed=self.seed, card=card)

    def gate(self, labels: TrainingSet) -> Gate:
        old = self.old
        return Gate(old.words, *self.fit(labels), old.readers, old.stuffing_filter)


def _read(
    gate: Gate, examples: Sequence[LabelledQuestion], progress: Progress | None
) -> TrainingSet:
    """The examples with their features; the reader reads each list once."""
    if len(examples) < MIN_LABELS:
        raise InputError(
            f"{len(examples)} label{'s' * (len(examples) != 1)}, expected at least {MIN_LABELS}",
            hint=f"label {MIN_LABELS - len(examples)} more; the same question with the same hits "
            "counts once",
        )
    readers, k = gate.readers, gate.card["k"]
    if readers.reader is not None:
        reader = CachedReader(readers.reader, progress=progress, total=len(examples))
        readers = replace(readers, reader=reader)
    return build_training_set(examples, gate.words, readers, k=k, min_examples=MIN_LABELS)


def _check_labels(labels: TrainingSet) -> None:
    complete = int(labels.complete.sum())
    rest = len(labels.complete) - complete
    few, what = (complete, "complete") if complete < rest else (rest, "incomplete")
    if few < MIN_OF_EACH:
        message = f"{few or 'none'} of {complete + rest} labels are {what}"
        if not few:
            message = f"all {complete + rest} labels say the same: none is {what}"
        raise InputError(
            f"{message}, expected at least {MIN_OF_EACH}",
            hint=f"label {MIN_OF_EACH - few} more lists of hits that are {what}",
        )


def _cross_validate(
    fit: _Adapting,
    labels: TrainingSet,
    folds: Folds,
    before: Floats,
    progress: Progress | None,
) -> tuple[dict[int, Floats], npt.NDArray[np.bool_]]:
    """Cross-validate every size of the learning curve.

    Returns, for each size, p of each question by a gate that had not seen it, and whether the gate
    of the largest size answers it.
    """
    most = min(len(rest) for rest, _ in folds)
    sizes = _curve_sizes(most)
    curve = {size: before.copy() for size in sizes}
    answered = np.zeros(len(before), dtype=bool)
    for done, (rest, held_out) in enumerate(folds):
        order = _balanced_order(labels.complete[rest], fit.seed)
        away = labels.where(_mask(held_out, len(before)))
        for at, size in enumerate(sizes, start=1):
            taken = rest if size == most else rest[order[:size]]
            try:
                fitted = fit.fit(labels.where(_mask(taken, len(before))))
            except InputError:  # all of these few labels are equal: nothing to learn
                policy = fit.old.policy
            else:
                policy, model = fitted.policy, fitted.model
                curve[size][held_out] = sigmoid(model.log_odds(model.describe(away.batch).table))
            if size == most:
                answered[held_out] = _reaches(curve[size][held_out], policy.answer_at)
            if progress is not None:
                progress("adapting on other labels", done * len(sizes) + at, FOLDS * len(sizes))
    return curve, answered


def _curve_sizes(most: int) -> list[int]:
    """From a quarter of the labels to all, if these are enough to adapt to; otherwise only all."""
    if most < MIN_CURVE:
        return [most]
    least = max(MIN_TO_ADAPT, most // 4)
    return sorted({round(least * (most / least) ** (at / (CURVE - 1))) for at in range(CURVE)})


def _balanced_order(complete: npt.NDArray[np.bool_], seed: int) -> npt.NDArray[np.intp]:
    """A random order in which every prefix has both labels in about the same shares."""
    rng, place = np.random.default_rng(seed), np.empty(len(complete))
    for label in (True, False):
        at = np.flatnonzero(complete == label)
        place[rng.permutation(at)] = (np.arange(len(at)) + 0.5) / max(len(at), 1)
    return np.argsort(place, kind="stable")


def _mask(rows: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.bool_]:
    mask = np.zeros(count, dtype=bool)
    mask[rows] = True
    return mask


def _reaches(p: Floats, threshold: float | None) -> npt.NDArray[np.bool_]:
    return np.zeros(len(p), dtype=bool) if threshold is None else p >= threshold


def _figures(
    complete: npt.NDArray[np.bool_],
    p: Floats,
    answered: npt.NDArray[np.bool_],
    parts: Parts,
) -> GateFigures:
    ranking = _auroc_within(parts, complete, p)
    return GateFigures(
        statistic_interval(ranking, len(p)),
        interval(Predictions(complete.astype(float), p), "ece"),
        mean_interval(answered.astype(float)),
        mean_interval(np.where(answered, ~complete, np.nan)),
    )


def _auroc_within(parts: Parts, complete: npt.NDArray[np.bool_], p: Floats) -> Statistic:
    """AUROC over all pairs of a complete and an incomplete question of the same fold."""
    truth = complete.astype(float)

    def ranking(weights: Floats) -> Floats:
        right, pairs = np.zeros(len(weights)), np.zeros(len(weights))
        for rows in parts:
            some = weights[:, rows]
            count = (some @ truth[rows]) * (some @ (1 - truth[rows]))
            right += count * np.nan_to_num(auroc(truth[rows], p[rows], some))
            pairs += count
        undefined = np.full(len(weights), np.nan)
        return np.asarray(np.divide(right, pairs, out=undefined, where=pairs > 0))

    return ranking


def _look_ahead(
    curve: dict[int, Floats], complete: npt.NDArray[np.bool_], parts: Parts
) -> tuple[Forecast, ...]:
    """Forecast the AUROC with more labels from the curve; empty if the curve may also fall."""
    if len(curve) < CURVE:
        return ()
    labels = len(complete)
    solve = np.linalg.pinv(np.array([[1.0, 1 / np.sqrt(size)] for size in curve]))
    rankings = [_auroc_within(parts, complete, p) for p in curve.values()]

    def at(count: int, weights: Floats) -> Floats:
        offset, slope = solve @ np.array([ranking(weights) for ranking in rankings])
        return np.asarray(np.clip(offset + slope / np.sqrt(count), 0.0, 1.0))

    options: Any = {"level": LEVEL}
    gain = statistic_interval(lambda w: at(MORE[0] * labels, w) - at(labels, w), labels, **options)
    if gain.low is None or gain.low <= 0:
        return ()
    return tuple(
        Forecast(
            more * labels,
            statistic_interval(lambda w, n=more * labels: at(n, w), labels, **options),  # type: ignore[misc]
        )
        for more in MORE
    )
