"""The effect of a few yes/no labels: the shipped standard gate, adapted on domains that it was not
trained on, or on new questions of domains that it was trained on.

    python -m suffice_research.training.adaptation_study --data DIR --readings FILE --out FILE

In each domain some lists are labelled and all others are judged, repeatedly with other draws, by
`suffice.gate.training.adapt_gate`, which `suffice adapt` uses. Reading takes most of the time, so
the reader's output is stored in the file of readings.

With `--prior` it measures instead how far level and scale are off on each data set for a gate
trained on the others: the two variances in `suffice.gate.training`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.evaluation.gate_evaluation import gate_inputs, is_seen
from suffice.evaluation.metrics import auroc, brier, ece, ece_by_chance
from suffice.evaluation.report import Cell, Section, Table
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.searching import RetrievedQuestion, to_labelled_question
from suffice.evaluation.significance import (
    Difference,
    Interval,
    statistic_difference,
    statistic_interval,
)
from suffice.gate.gate import FAST, STANDARD, Gate
from suffice.gate.model import CalibratedModel
from suffice.gate.policy import PolicyRule
from suffice.gate.reader import Reader
from suffice.gate.training import (
    LabelledQuestion,
    TrainingSet,
    adapt_gate,
    build_training_set,
    penalized_logistic,
)
from suffice.numeric import log_odds_array, sigmoid
from suffice.storage import package_versions
from suffice_research.curves import ece_debiased
from suffice_research.figures import Curves, PaperSeries
from suffice_research.stored_readings import StoredReader
from suffice_research.study import Study
from suffice_research.training.cases import TEST
from suffice_research.training.gate import QUESTIONS as QUESTIONS_OF
from suffice_research.training.gate import (
    collect_training,
    fast_of_learned,
    read_ahead,
    train_gate,
)
from suffice_research.training.gate_data import GateData
from suffice_research.training.sources import SEED, ProgressLog, exit_code

__all__ = [
    "COUNTS",
    "DOMAINS",
    "Domain",
    "DomainResult",
    "adaptation_study",
    "level_variances",
    "main",
    "measure",
]

Floats = npt.NDArray[np.float64]
COUNTS = (30, 100, 200)
DRAWS = 4
QUESTIONS = 300  # per data set, to draw lists from
MIN_JUDGED = 40  # lists per draw
BINS = 10
UNSEEN, KEPT = "unseen", "kept"
# Targets: labels -> figure. AUROC is a minimum gain, ECE a maximum; both for the mean over domains.
AUROC_GAIN, MOST_ECE = {30: 0.03}, {30: 0.08, 100: 0.06}


@dataclass(frozen=True, slots=True)
class Domain:
    """Similar lists of hits: ten from BM25, or (drawn) complete half of the time."""

    source: str
    kind: str  # of `GateData`: "", "drawn" or "single sentences"

    @property
    def name(self) -> str:
        return f"{self.source}, {self.kind}" if self.kind else self.source


DOMAINS: Mapping[str, Sequence[Domain]] = {
    # Neither the reader nor the gate was trained on them.
    UNSEEN: (
        Domain("covidqa", ""),
        Domain("covidqa", "drawn"),
        Domain("covidqa", "single sentences"),
        Domain("everyday", ""),
        Domain("everyday", "drawn"),
    ),
    # Other questions of these domains were used for training, but never these texts.
    KEPT: (
        Domain("squad2", "drawn"),
        Domain("policyqa", ""),
        Domain("policyqa", "drawn"),
        Domain("strategyqa", ""),
        Domain("strategyqa", "drawn"),
        Domain("entailmentbank", ""),
        Domain("entailmentbank", "drawn"),
        Domain("tatqa", "drawn"),
    ),
}
# Inputs that an oracle reweighs, besides the gate's log-odds: the outputs of its largest blocks.
BLOCKS = ("read_complete", "read_weakest", "fast_odds", "held", "s_mean")


@dataclass(frozen=True)
class DomainResult:
    """One domain, judged by gates that were adapted to other lists of it.

    By number of labels, an array of (draws, lists): NaN if the list was labelled.
    """

    name: str
    seen: str
    complete: Floats  # (lists,)
    before: Floats  # (lists,), by the shipped gate
    answered_before: Floats
    p: Mapping[int, Floats]
    answered: Mapping[int, Floats]
    oracle: Floats  # (lists,), with weights of BLOCKS fitted to these same lists

    def judged(self, count: int) -> npt.NDArray[np.bool_]:
        return ~np.isnan(self.p[count])

    def probabilities(self, count: int, *, adapted: bool) -> Floats:
        """(draws, lists); if not adapted, the shipped gate's for the same lists."""
        p = self.p[count]
        return p if adapted else np.where(np.isnan(p), np.nan, self.before)


# ---- lists


def draw_domains(
    data: GateData, gates: Sequence[Gate], *, most: int | None = None, seed: int = SEED
) -> dict[str, tuple[str, list[RetrievedQuestion]]]:
    """The lists of each domain, and whether it was seen; without questions that a gate was trained
    on.

    Our everyday files that nothing was trained on are one domain.
    """
    unseen: dict[str, dict[str, list[RetrievedQuestion]]] = {}
    for source, kinds in data.unseen(questions=QUESTIONS, seed=seed):
        of = unseen.setdefault(source.split("/")[0], {})
        for kind, lists in kinds.items():
            of.setdefault(kind, []).extend(lists)
    found = {}
    for seen, domains in DOMAINS.items():
        for one in domains:
            if one.source not in data.names:
                continue
            if seen == UNSEEN:
                lists = unseen[one.source][one.kind]
            else:
                options: Any = {"questions": QUESTIONS, "kind": one.kind, "seed": seed}
                lists = data.judged(one.source, (TEST,), **options)
            texts = [case.question.text for case in lists]
            known = [any(flags) for flags in zip(*(is_seen(gate, texts) for gate in gates))]
            fresh = [case for case, flag in zip(lists, known, strict=True) if not flag]
            found[one.name] = seen, fresh[:most]
    return found


def yes_or_no(case: RetrievedQuestion) -> LabelledQuestion:
    """The list with a yes or a no, which is all that `adapt` gets."""
    one = to_labelled_question(case)
    return LabelledQuestion(
        one.question, one.hits, complete=bool(case.complete), documents=one.documents
    )


# ---- the effect of labels


def measure(
    gate: Gate,
    name: str,
    seen: str,
    lists: TrainingSet,
    *,
    counts: Sequence[int] = COUNTS,
    draws: int = DRAWS,
    seed: int = SEED,
) -> DomainResult:
    """Adapt to this many random lists and judge the others; questions with the same text stay on
    one side.
    """
    complete = lists.complete.astype(float)
    table = gate.model.base.describe(lists.batch).table  # the same for every adapted gate
    before = _probabilities(gate.model, lists, table)
    _, group = np.unique(np.asarray(lists.groups, dtype=object).astype(str), return_inverse=True)
    p: dict[int, Floats] = {}
    answered: dict[int, Floats] = {}
    for count in counts:
        if len(complete) - count < MIN_JUDGED:
            continue
        p[count], answered[count] = (np.full((draws, len(complete)), np.nan) for _ in range(2))
        for draw in range(draws):
            rng = np.random.default_rng([seed, draw])
            labelled = np.zeros(len(complete), dtype=bool)
            labelled[rng.permutation(len(complete))[:count]] = True
            away = ~np.isin(group, group[labelled])
            model, policy = gate.model, gate.policy
            try:
                fitted = adapt_gate(
                    gate.model, lists.where(labelled), PolicyRule.of(gate.policy), seed=seed,
                    card=gate.card,
                )  # fmt: skip
                model, policy = fitted.model, fitted.policy
            except InputError:  # so few labels may all be equal: nothing to learn
                pass
            judged = _probabilities(model, lists.where(away), table[away])
            p[count][draw, away] = judged
            answered[count][draw, away] = judged >= (policy.answer_at or np.inf)
    answers = (before >= (gate.policy.answer_at or np.inf)).astype(float)
    best = best_weights(gate.model, lists, table)
    return DomainResult(name, seen, complete, before, answers, p, answered, best)


def best_weights(model: CalibratedModel, lists: TrainingSet, table: npt.NDArray[Any]) -> Floats:
    """The log-odds of lists with the weights of BLOCKS that fit these same lists best."""
    from sklearn.linear_model import LogisticRegression  # late: in the `fit` extra

    names = tuple(name for name in BLOCKS if name in model.profile.column)
    features = model.profile.standardize(table, names)
    rows = np.column_stack([model.log_odds(table), np.clip(features, -4, 4)])
    fitted = LogisticRegression(C=1.0, max_iter=1_000).fit(rows, lists.complete)
    return np.asarray(fitted.decision_function(rows))


def _probabilities(model: CalibratedModel, lists: TrainingSet, table: npt.NDArray[Any]) -> Floats:
    """(lists,), with the base model's feature table for them."""
    return np.asarray(sigmoid(model.log_odds(model.with_local(lists.batch, table))))


# ---- how far a gate is off on an unseen data set


def level_variances(
    odds: Sequence[Floats], complete: Sequence[npt.NDArray[np.bool_]]
) -> tuple[float, float]:
    """The variances of offset and slope that make the labels of these data sets likeliest, given
    the log-odds of gates that had not seen the set: empirical Bayes.
    """
    from scipy.optimize import minimize  # late: in the `fit` extra

    sets = [
        (np.column_stack([np.ones(len(one)), one]), labels.astype(float))
        for one, labels in zip(odds, complete, strict=True)
    ]
    as_it_is = np.array([0.0, 1.0])

    def surprise(logs: Floats) -> float:
        penalties = np.exp(-np.clip(logs, -9, 9))
        return -sum(penalized_logistic(*one, as_it_is, penalties)[1] for one in sets)

    found = minimize(surprise, np.log([0.4, 0.1]), method="Nelder-Mead")
    return float(np.exp(found.x[0])), float(np.exp(found.x[1]))


# ---- figures: means over the draws, computed from resample counts of the lists

Statistic = Any  # (resamples, lists) to (resamples,)


def _metric(one: DomainResult, count: int, metric: Any, *, adapted: bool) -> Statistic:
    found = one.probabilities(count, adapted=adapted)

    def figure(weights: Floats) -> Floats:
        values = []
        for p in found:
            at = ~np.isnan(p)
            values.append(metric(one.complete[at], p[at], weights[:, at]))
        return _over_draws(values)

    return figure


def _over_draws(values: Sequence[Floats]) -> Floats:
    """(draws, resamples) to the mean over draws. The draws are resampled too, in the same way
    before and after: which lists were labelled is part of the noise.
    """
    found = np.asarray(values)
    draws, resamples = found.shape
    if resamples == 1:
        return np.asarray(np.nanmean(found, axis=0))
    counts = np.random.default_rng(SEED).multinomial(draws, np.full(draws, 1 / draws), resamples).T
    known = np.where(np.isnan(found), 0, counts)
    return np.asarray((known * np.nan_to_num(found)).sum(0) / np.maximum(known.sum(0), 1))


def _right(one: DomainResult, count: int, *, adapted: bool) -> Statistic:
    """The share of right decisions: complete lists answered, incomplete ones not."""
    answers = one.answered[count] if adapted else np.broadcast_to(
        one.answered_before, one.answered[count].shape
    )  # fmt: skip
    right = np.where(one.judged(count), answers == one.complete, np.nan)

    def share(weights: Floats) -> Floats:
        judged = [~np.isnan(row) for row in right]
        shares = [
            weights[:, at] @ row[at] / np.maximum(weights[:, at].sum(axis=1), 1)
            for row, at in zip(right, judged, strict=True)
        ]
        return _over_draws(shares)

    return share


def _statistic(one: DomainResult, count: int, name: str, *, adapted: bool = True) -> Statistic:
    if name == "right":
        return _right(one, count, adapted=adapted)
    metric = {"AUROC": auroc, "Brier": brier, "ECE": partial(ece, bins=BINS)}[name]
    return _metric(one, count, metric, adapted=adapted)


def _debiased(one: DomainResult, count: int, *, adapted: bool = True) -> float:
    values = []
    for p in one.probabilities(count, adapted=adapted):
        at = ~np.isnan(p)
        values.append(ece_debiased(one.complete[at], p[at], bins=BINS) or 0.0)
    return float(np.mean(values))


def _chance(one: DomainResult, count: int, *, adapted: bool = True) -> float:
    """The expected ECE of a draw's probabilities if all of them were true."""
    values = [
        ece_by_chance(p[~np.isnan(p)], bins=BINS, draws=100) or 0.0
        for p in one.probabilities(count, adapted=adapted)
    ]
    return float(np.mean(values))


def _figure(one: DomainResult, count: int, name: str, *, adapted: bool = True) -> Interval:
    statistic = _statistic(one, count, name, adapted=adapted)
    if name == "ECE":  # resamples of few lists are less calibrated than the lists
        return Interval(float(statistic(np.ones((1, len(one.complete))))[0]))
    return statistic_interval(statistic, len(one.complete))


def _gain(one: DomainResult, count: int, name: str) -> Difference:
    after, before = (_statistic(one, count, name, adapted=adapted) for adapted in (True, False))
    return statistic_difference(lambda w: after(w) - before(w), len(one.complete))


def _mean_of(
    found: Sequence[DomainResult], count: int, name: str, *, adapted: bool = True
) -> Statistic:
    """The mean over domains; weights cover the lists of all domains, concatenated."""
    ends = np.cumsum([len(one.complete) for one in found])
    parts = [
        (slice(end - len(one.complete), end), _statistic(one, count, name, adapted=adapted))
        for one, end in zip(found, ends, strict=True)
    ]
    return lambda weights: np.nanmean([figure(weights[:, at]) for at, figure in parts], axis=0)


# ---- the study

SAYS = (
    "The standard gate as it ships, adapted with so many yes and no by what `suffice adapt` uses. {draws} times some random lists of "
    "a domain are labelled and all others are judged; a figure is the mean over these draws. In brackets: 95 % bootstrap interval over "
    "the judged lists and the draws. "
    "Without labels: the same judged lists, by the gate as it ships. Unseen: neither the reader nor the gate has learned from the "
    "domain. Kept: other questions of it were learned from. How `adapt` averages was chosen with labels of these domains (decision 11): "
    "expect slightly less elsewhere. A domain takes "
    f"part where {MIN_JUDGED} lists or more are left to judge, so more labels mean fewer domains. ECE by chance: that of these "
    "probabilities if every one were true, which few judged lists cannot go below. ECE debiased: less what chance adds "
    "(Kumar, Liang and Ma 2019)."
)
ORACLE_SAYS = (
    "How much a better weighing could bring. Oracle: the gate's log-odds and its largest blocks ("
    + ", ".join(BLOCKS)
    + "), weighed by a "
    "logistic regression that was fitted to the judged lists themselves, with all their labels: labels of other lists give no better weights "
    "of these. `adapt` also weighs more features and a model of the labels alone, so with many labels it may pass the oracle."
)


def adaptation_study(
    found: Sequence[DomainResult], *, settings: Mapping[str, Any], seed: int, seconds: float
) -> Study:
    """Tables and a figure of the measured domains."""
    if not found:
        raise InputError("no domain was measured", hint="give a folder with covidqa or squad2")
    counts = sorted({count for one in found for count in one.p})
    tables = (_summary_table(found, counts), *_domain_tables(found, counts))
    shown: tuple[Table | Curves, ...] = (*tables, _curves(found, counts))
    return Study(
        name="adaptation",
        title="The standard gate with a few labels",
        seed=seed,
        settings=settings,
        data={},
        sections=(
            Section("With a few labels", shown, SAYS.format(draws=settings["draws"])),
            Section("What weights could bring", (_oracle_table(found),), ORACLE_SAYS),
        ),
        summary=tuple(_summary(found)),
        timings={"measuring": seconds},
        commit=source_commit(),
        packages=package_versions(),
    )


def _groups(found: Sequence[DomainResult], count: int) -> Iterator[tuple[str, list[DomainResult]]]:
    """The domains on which this number of labels can be measured: unseen, kept, all."""
    able = [one for one in found if count in one.p]
    for seen in (UNSEEN, KEPT):
        if some := [one for one in able if one.seen == seen]:
            yield seen, some
    if able:
        yield "all", able


def _summary_table(found: Sequence[DomainResult], counts: Sequence[int]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for count in counts:
        for seen, some in _groups(found, count):
            lists = sum(len(one.complete) for one in some)
            row: list[Cell] = [count, seen, len(some)]
            for name in ("AUROC", "Brier", "right"):
                before, after = (_mean_of(some, count, name, adapted=a) for a in (False, True))
                gain = statistic_difference(lambda w, a=after, b=before: a(w) - b(w), lists)  # type: ignore[misc]
                row += [float(before(np.ones((1, lists)))[0]), statistic_interval(after, lists)]
                row += [Difference(gain.value, gain.low, gain.high)] if name == "AUROC" else []
            eces = (
                float(_mean_of(some, count, "ECE", adapted=adapted)(np.ones((1, lists)))[0])
                for adapted in (False, True)
            )
            chance = float(np.mean([_chance(one, count) for one in some]))
            debiased = (
                float(np.mean([_debiased(one, count, adapted=adapted) for one in some]))
                for adapted in (False, True)
            )
            rows.append((*row, *eces, chance, *debiased))
    columns = (
        "labels", "domains", "n", "AUROC before", "AUROC", "gain", "Brier before", "Brier",
        "right before", "right", "ECE before", "ECE", "ECE by chance",
        "debiased before", "ECE debiased",
    )  # fmt: skip
    note = "Means over domains. Right: answered where the list is complete, not answered where it is not."
    return Table("Labels", columns, tuple(rows), note)


def _domain_tables(found: Sequence[DomainResult], counts: Sequence[int]) -> Iterator[Table]:
    for name in ("AUROC", "ECE"):
        rows: list[tuple[Cell, ...]] = []
        for one in found:
            first = _figure(one, min(one.p), name, adapted=False)
            found_at = [_figure(one, n, name) if n in one.p else Interval(None) for n in counts]
            cells: list[Cell] = [cell if cell.low is not None else cell.value for cell in found_at]
            row = (one.name, one.seen, len(one.complete), float(one.complete.mean()))
            rows.append((*row, first.value, *cells))
        columns = ("domain", "seen", "n", "complete", "0", *map(str, counts))
        yield Table(f"{name} by labels", columns, tuple(rows))
    rows = []
    wanted = [count for count in (30, 100) if count in counts]
    for one in found:
        cells = []
        for count in wanted:
            for name in ("AUROC", "Brier"):
                cells.append(_gain(one, count, name) if count in one.p else None)
        rows.append((one.name, one.seen, *cells))
    columns = ("domain", "seen", *(f"{name}, {n}" for n in wanted for name in ("AUROC", "Brier")))
    note = "A Brier score that falls is better."
    yield Table("Gain over the gate as it ships", columns, tuple(rows), note)


def _oracle_table(found: Sequence[DomainResult]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        every = np.ones((1, len(one.complete)))
        before, best = (float(auroc(one.complete, x, every)[0]) for x in (one.before, one.oracle))
        rows.append((one.name, one.seen, before, best, best - before))
    for seen in (UNSEEN, KEPT):
        some = np.array([row[2:] for row in rows if row[1] == seen], dtype=float)
        if len(some):
            rows.append(("mean", seen, *some.mean(0).tolist()))
    return Table("Oracle", ("domain", "seen", "AUROC", "AUROC of the oracle", "gain"), tuple(rows))


def _curves(found: Sequence[DomainResult], counts: Sequence[int]) -> Curves:
    lines = []
    for one in found:
        if one.seen != UNSEEN:
            continue
        before = _figure(one, min(one.p), "AUROC", adapted=False)
        after = [_figure(one, n, "AUROC") if n in one.p else Interval(None) for n in counts]
        lines.append(PaperSeries(one.name, (before, *after)))
    title = "The standard gate on domains that nothing was trained on, by labels"
    return Curves(title, "labelled lists", "AUROC", (0, *counts), tuple(lines))


def _summary(found: Sequence[DomainResult]) -> Iterator[str]:
    """Each target, and whether it was reached."""
    for count, wanted in AUROC_GAIN.items():
        for seen, some in _groups(found, count):
            lists = sum(len(one.complete) for one in some)
            after, before = (_mean_of(some, count, "AUROC", adapted=a) for a in (True, False))
            gain = statistic_difference(lambda w, a=after, b=before: a(w) - b(w), lists)  # type: ignore[misc]
            value = gain.value or 0.0
            yield (
                f"{count} labels, {seen} domains: AUROC {value:+.3f} "
                f"[{gain.low or 0:+.3f}, {gain.high or 0:+.3f}]; to reach {wanted:+.2f}: "
                f"{'reached' if value >= wanted else 'not reached'}."
            )
    for row in _oracle_table(found).rows:
        if row[0] == "mean":
            yield (
                f"The best weights of the gate's blocks for the judged lists themselves, {row[1]} "
                f"domains: AUROC {float(row[4]):+.3f}."  # type: ignore[arg-type]
            )
    yield from _ece_summary(found)
    for count in (30, 100):
        worse, looked = [], 0
        for one in found:
            if count in one.p:
                ranking, loss = _gain(one, count, "AUROC"), _gain(one, count, "Brier")
                looked += 2
                if (ranking.high or 0) < 0 or (loss.low or 0) > 0:
                    worse.append(one.name)
        said = ", ".join(worse) or "none"
        yield (
            f"{count} labels: domains that are worse than unadapted beyond noise, in AUROC or Brier score: {said}. "
            f"Of these {looked} intervals, chance alone puts {looked * 0.025:.1f} on the worse side."
        )


def _ece_summary(found: Sequence[DomainResult]) -> Iterator[str]:
    for count, most in MOST_ECE.items():
        for seen, some in _groups(found, count):
            lists = sum(len(one.complete) for one in some)
            value = float(_mean_of(some, count, "ECE")(np.ones((1, lists)))[0])
            chance = float(np.mean([_chance(one, count) for one in some]))
            debiased = float(np.mean([_debiased(one, count) for one in some]))
            reached = [
                "reached" if figure <= most else "not reached" for figure in (value, debiased)
            ]
            yield (
                f"{count} labels, {seen} domains: ECE {value:.3f}, by chance {chance:.3f}; to reach "
                f"{most:.2f}: {reached[0]}. Debiased {debiased:.3f}: {reached[1]}."
            )


# ---- the command


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.adaptation_study",
        description="Measure what a few labels bring to the standard gate.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--readings", type=Path, help="where readings are kept for the next run")
    parser.add_argument("--out", type=Path, help="the study, as JSON")
    parser.add_argument("--prior", action="store_true", help="measure the variances of the prior")
    parser.add_argument("--only", help="some of the data sets, with commas: for trying out")
    parser.add_argument("--lists", type=int, help="of a domain, at most")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of the labelled lists")
    parser.add_argument("--seed", type=int, default=SEED)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _options().parse_args(arguments)
    return exit_code(lambda: _run(args, ProgressLog()))


def _run_prior(args: argparse.Namespace, say: ProgressLog) -> None:
    """Fit a gate without each data set, and measure how far it is off on it."""
    reader = StoredReader(Reader(), args.readings, progress=say.progress)
    data = GateData(args.data, only=args.only.split(",") if args.only else (), say=say)
    training = collect_training(data, STANDARD, seed=args.seed)
    read_ahead(reader, *training.values())
    fast = fast_of_learned(data, questions=QUESTIONS_OF[FAST], seed=args.seed)
    odds, complete = {}, {}
    for name, lists in training.items():
        others = {other: some for other, some in training.items() if other != name}
        gate = train_gate(others, reader=reader, fast=fast, seed=args.seed)
        odds[name] = log_odds_array(gate.probabilities(gate_inputs(lists)))
        complete[name] = np.array([one.complete for one in lists], dtype=bool)
        say(f"without {name}")
    for left_out in (None, *odds):
        kept = [name for name in odds if name != left_out]
        offset, slope = level_variances([odds[n] for n in kept], [complete[n] for n in kept])
        say(f"{left_out or 'no set'} left out: offset {offset:.3f}, slope {slope:.3f}")


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    if args.prior:
        _run_prior(args, say)
        return
    if args.out is None:
        raise InputError("--out is missing: the study, as JSON", hint="add --out FILE")
    gate, fast = Gate.load(), Gate.load(preset=FAST)
    names = {one.source for part in DOMAINS.values() for one in part}
    only = args.only.split(",") if args.only else sorted(names)
    data = GateData(args.data, only=only, say=say)
    domains = draw_domains(data, (gate, fast), most=args.lists, seed=args.seed)
    reader = StoredReader(Reader(), args.readings, progress=say.progress)
    examples = {name: [yes_or_no(one) for one in lists] for name, (_, lists) in domains.items()}
    reader.read_all([one for some in examples.values() for one in some], k=gate.card["k"])
    readers, started, found = replace(gate.readers, reader=reader), time.perf_counter(), []
    for name, (seen, _) in domains.items():
        lists = build_training_set(
            examples[name], gate.words, readers, k=gate.card["k"], min_examples=1
        )
        one = measure(gate, name, seen, lists, draws=args.draws, seed=args.seed)
        if one.p:
            found.append(one)
        said = (f"{n}: {_figure(one, n, 'AUROC').value or 0:.3f}" for n in one.p)
        say(f"{name} ({seen}, {len(lists.complete)} lists): AUROC by labels {', '.join(said)}")
    settings = {"draws": args.draws, "lists": args.lists, "gate": dict(gate.card["questions"])}
    seconds = time.perf_counter() - started
    study = adaptation_study(found, settings=settings, seed=args.seed, seconds=seconds)
    for line in study.summary:
        say(line)
    say(f"study at {study.save(args.out)}")


if __name__ == "__main__":
    sys.exit(main())
