"""Fitting and adapting: labelled questions, and what the models learn from them.

A `LabelledQuestion` says which documents a question needed. The caller provides these labels;
nothing here can look them up, and no code that checks ever sees one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, MissingExtraError
from suffice.gate.calibration import (
    Correction,
    FeatureProfile,
    Platt,
    VennAbers,
    calibration_metrics,
    feature_limits,
    fit_interval,
)
from suffice.gate.extraction import Extraction, FeatureBatch, Readers, featurize
from suffice.gate.familiarity import DISTANCE_FOLDS, FormProfile, form_table
from suffice.gate.features import LOCAL_FEATURE
from suffice.gate.hits import NormalizedHits, normalize_hits
from suffice.gate.model import CalibratedModel, GateModel, LocalModel, SubmodelLabels
from suffice.gate.policy import Policy, PolicyRule, action_shares, choose_actions
from suffice.gate.question import WordTable, parse_question, title_search_key
from suffice.numeric import sigmoid
from suffice.text import tokens
from suffice.types import DocId, Document

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
Card = Mapping[str, Any]
MIN_TO_FIT, MIN_TO_ADAPT = 60, 10  # labelled questions, at least
PROMISE_FOLDS = 5  # one of so many parts is held out for a promise
MAX_KINDS = 12  # question kinds and labels that are learned, most frequent first
MIN_KIND_COUNT = 5  # questions per kind, at least
# Features of the gate that a correction may reweight, besides those of the question and the reader.
TRANSFERABLE_FEATURES = (
    "guess_hops", "weakest", "short", "p1", "p2", "p3", "p4", "held", "pair", "triple", "absent",
    "absent1", "cov_any", "resolved", "dangling", "named", "names_no_text", "missing_words",
    "lacks", "cov_sources", "s_mean", "fast_odds",
)  # fmt: skip
TRANSFERABLE_PREFIXES = ("q_", "read", "relevant")
# How far the gate's level and scale are off on a data set that it was not fitted on: the variances
# of offset and slope over thirteen sets (`suffice_research.training.adaptation_study --prior`).
OFFSET_VARIANCE, SLOPE_VARIANCE = 0.4, 0.09
LEVELS = (0.1, 1.0, 4.0)  # multiples for a corpus that is near, typical, or far
PENALTIES = (300.0, 100.0, 30.0, 10.0, 3.0)  # on the weights of features
MANY_LABELS = 1_000  # enough to use only the weakest prior
FIXED = 1e6  # the penalty on parameters that are not fitted
CORRECTION_FOLDS = 5
MIN_OF_SET = 30  # questions needed to measure how far off a data set is
SHIFT_GROUP, SHIFT_QUANTILE = 50, 0.95  # questions of similar log-odds; quantile over groups
LABELS_FOR_EQUAL_SAY = 100.0  # number that gives a local model the same weight as the gate


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, its hits and the ids of the documents it needs; none if nothing answers it.

    If these ids are not known, set `complete` to say whether the hits as given are complete. That
    is enough to adapt a gate, but not to fit one.

    The rest is optional and improves the gate: `titles` of needed documents by id (also of those
    not found), the question's `kind` or `labels`, `hops` if it differs from the number of needed
    documents, and `hits_after` another round, from which the gate learns when expanding is worth
    it.
    """

    question: str
    hits: Sequence[Any]
    needed: Collection[DocId] | None = None
    hits_after: Sequence[Any] | None = None
    titles: Mapping[DocId, str] = field(default_factory=dict, hash=False)
    kind: str | None = None
    labels: Collection[str] = ()
    hops: float | None = None
    documents: Mapping[DocId, Document] = field(default_factory=dict, hash=False)
    complete: bool | None = None  # if `needed` is not known

    def is_complete(self, hits: NormalizedHits) -> bool:
        """Whether the hits contain every needed document; False if nothing answers the question."""
        if self.needed is None:
            return bool(self.complete)
        return bool(self.needed) and hits.ids.issuperset(self.needed)

    def all_labels(self) -> set[str]:
        kind = [self.kind] if self.kind else []
        return {*self.labels, *kind} - {"hops", "held", "complete"}


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Labelled questions with their features. Questions with the same words form a group."""

    examples: Sequence[LabelledQuestion]
    batch: FeatureBatch
    complete: Bools
    groups: Sequence[str]
    data_sets: Sequence[str] | None = None  # of each question, if there are several

    def where(self, mask: Bools) -> TrainingSet:
        at = np.flatnonzero(mask).tolist()
        return TrainingSet(
            [self.examples[i] for i in at],
            self.batch.select(at),
            self.complete[mask],
            [self.groups[i] for i in at],
            None if self.data_sets is None else [self.data_sets[i] for i in at],
        )

    def split(self, parts: int, seed: int, what: str) -> tuple[TrainingSet, TrainingSet]:
        """Split into all parts but one, and that part; without parts, into everything and nothing.

        Questions with the same words stay together. InputError if the first has one label only.
        """
        aside = np.zeros(len(self.examples), bool)
        if parts:
            aside = group_folds(self.groups, parts, seed) == 0
        rest = self.where(~aside)
        if rest.complete.all() or not rest.complete.any():
            count = len(rest.complete)
            label = "complete" if count and rest.complete.all() else "incomplete"
            raise InputError(
                f"every one of {count} questions in {what} is {label}",
                hint="give examples of both kinds",
            )
        return rest, self.where(aside)

    def submodel_labels(self) -> list[SubmodelLabels]:
        """What each example teaches about its hits, its absent names and its question."""
        counts = Counter(label for one in self.examples for label in one.all_labels())
        common = counts.most_common(MAX_KINDS)
        many = [label for label, n in common if MIN_KIND_COUNT <= n < len(self.examples)]
        batch = zip(self.examples, self.batch.hits, self.batch.extractions, strict=True)
        return [_labels_of(*one, sorted(many)) for one in batch]

    @property
    def knows_needed(self) -> bool:
        """Whether every example names its needed documents."""
        return all(one.needed is not None for one in self.examples)

    def fit_model(self, words: WordTable, seed: int) -> GateModel:
        model, options = GateModel(words, seed=seed), {"groups": self.groups}
        labels = self.submodel_labels()
        return model.fit(self.batch, labels, data_sets=self.data_sets, **options)

    def complete_after(self) -> Bools:
        """Whether all needed documents are among the hits after another round, at any depth."""
        after = (
            normalize_hits(one.question, one.hits_after or (), documents=one.documents)
            for one in self.examples
        )
        pairs = zip(self.examples, after, strict=True)
        return np.array([one.is_complete(hits) for one, hits in pairs], dtype=bool)


def build_training_set(
    examples: Iterable[LabelledQuestion],
    words: WordTable,
    readers: Readers,
    *,
    k: int | None,
    min_examples: int,
    data_sets: Sequence[str] | None = None,
) -> TrainingSet:
    """The features of each example's first `k` hits."""
    checked = check_examples(examples, min_examples)
    if data_sets is not None and len(data_sets) != len(checked):
        raise InputError(
            f"{len(data_sets)} data sets for {len(checked)} examples",
            hint="name the data set of each example",
        )
    hits = [normalize_hits(one.question, one.hits, documents=one.documents, k=k) for one in checked]
    for place, (one, its) in enumerate(zip(checked, hits, strict=True), start=1):
        if one.needed is None and one.complete and len(one.hits) > _places_read(its):
            raise InputError(
                f"example {place}: complete says yes of {len(one.hits)} hits, but the gate reads "
                f"{len(its.evidence.hits)}, which may lack a document",
                hint=f"label the first {len(its.evidence.hits)} hits, or name the needed documents",
            )
    complete = [one.is_complete(its) for one, its in zip(checked, hits, strict=True)]
    questions = [parse_question(one.question, words) for one in checked]
    batch = featurize(hits, questions, words, readers)
    groups = [" ".join(tokens(one.question)) for one in checked]
    return TrainingSet(checked, batch, np.array(complete, dtype=bool), groups, data_sets)


def _places_read(hits: NormalizedHits) -> int:
    """How many of the given hits were read, including duplicates."""
    return len(hits.evidence.hits) + sum(map(len, hits.duplicates.values()))


def check_examples(
    examples: Iterable[LabelledQuestion], min_examples: int
) -> list[LabelledQuestion]:
    listed = list(examples)
    for place, one in enumerate(listed, start=1):
        if not isinstance(one, LabelledQuestion):
            raise InputError(
                f"example {place} is of type {type(one).__name__}, expected "
                "LabelledQuestion(question, hits, needed)"
            )
        if one.needed is None:
            if not isinstance(one.complete, bool):
                raise InputError(
                    f"example {place}: complete is {one.complete!r:.80}, expected True or False",
                    hint="say so, or name the needed documents: needed={...}",
                )
        elif isinstance(one.needed, str) or not all(isinstance(name, str) for name in one.needed):
            raise InputError(
                f"example {place}: needed is {one.needed!r:.80}, expected a set of document ids"
            )
        elif one.complete is not None:
            raise InputError(
                f"example {place} has needed and complete, expected one of them",
                hint="the needed documents say whether the hits are complete",
            )
    if len(listed) < min_examples:
        raise InputError(
            f"{len(listed)} labelled examples, expected at least {min_examples}",
            hint=f"label {min_examples - len(listed)} more",
        )
    return listed


def _labels_of(
    example: LabelledQuestion, hits: NormalizedHits, extraction: Extraction, kinds: Sequence[str]
) -> SubmodelLabels:
    needed = frozenset(example.needed or ())
    evidence = [not needed.isdisjoint(hits.stands_for(hit.doc_id)) for hit in hits.evidence.hits]
    missing = [example.titles[one] for one in sorted(needed - hits.ids) if one in example.titles]
    titles = [title_search_key(title) for title in missing]
    names = map(title_search_key, extraction.absent_names)
    absent = [any(_same_title(name, title) for title in titles) for name in names]
    hops = float(len(needed) if example.hops is None else example.hops)
    labels = example.all_labels()
    targets = {"hops": hops, **{kind: float(kind in labels) for kind in kinds}}
    return SubmodelLabels(example.is_complete(hits), evidence, absent, targets)


def _same_title(name: bytes, title: bytes) -> bool:
    """Whether one is the other, or a part of it that is too long to match by chance."""
    return name == title or (len(name) > 5 and name in title) or (len(title) > 5 and title in name)


def group_folds(groups: Sequence[str], folds: int, seed: int) -> npt.NDArray[np.integer[Any]]:
    """A fold for each item; items of one group share it. Deterministic for a seed."""
    _, group = np.unique(np.asarray(groups, dtype=object).astype(str), return_inverse=True)
    count = int(group.max()) + 1 if len(group) else 0
    order = np.random.default_rng(seed).permutation(count)
    return np.asarray(order[group] % folds)


class FittedGate(NamedTuple):
    """The result of a fit, in the order of Gate's fields."""

    model: CalibratedModel
    interval: VennAbers
    policy: Policy
    card: Card
    forms: FormProfile


def require_fit_extra() -> None:
    if find_spec("sklearn") is None or find_spec("scipy") is None:
        raise MissingExtraError("fitting a gate", extra="fit")


def fit_gate(
    examples: TrainingSet,
    words: WordTable,
    rule: PolicyRule,
    *,
    k: int | None,
    seed: int,
    card: Card,
) -> FittedGate:
    """Fit on all examples, or on all that are not held out for a promise.

    Calibration, interval and policy are learned from out-of-fold predictions: no question is judged
    by a model that has seen it, and no label is wasted.
    """
    lacking = next((at for at, one in enumerate(examples.examples) if one.needed is None), None)
    if lacking is not None:
        raise InputError(
            f"example {lacking + 1} names no needed documents, which a fit learns from",
            hint="with yes or no only, adapt a gate: Gate.load().adapt(examples), suffice adapt",
        )
    parts = PROMISE_FOLDS if rule.promises else 0
    rest, aside = examples.split(parts, seed, "the part to fit on")
    base = rest.fit_model(words, seed)
    table, calibration = base.table_at_fit, Platt.fit(base.log_odds_at_fit, rest.complete)
    odds = calibration.log_odds(base.log_odds_at_fit)
    names, share = [one.name for one in base.features], float(rest.complete.mean())
    model = CalibratedModel(base, calibration, FeatureProfile.fit(names, table, share, {}))
    model = replace(model, after=_fit_after(model, rest, table, odds, seed))
    card = {
        **card,
        "k": k or max(1, *(len(one.evidence.hits) for one in examples.batch.hits)),
        "seed": seed,
        "data": _fingerprint(examples),
        "questions": {"fit": len(rest.examples), "promise": len(aside.examples)},
        "metrics": calibration_metrics(sigmoid(odds), rest.complete),
        "history": [],
    }
    if rest.data_sets is not None:
        left_out = calibration.log_odds(base.log_odds_left_out)
        card["shift"] = round(shift_between_sets(left_out, rest.complete, rest.data_sets), 3)
    return _settle(model, rule, (rest, aside), table, odds, card)


def adapt_gate(
    model: CalibratedModel, examples: TrainingSet, rule: PolicyRule, *, seed: int, card: Card
) -> FittedGate:
    """Correct the log-odds. With enough labels, also weigh them against a model of the labels
    alone.

    If the policy makes a promise, every second question is held out for it.
    """
    rest, aside = examples.split(2 if rule.promises else 0, seed, "the part to learn from")
    base = model.base
    table = base.describe(rest.batch).table
    odds = model.calibration.log_odds(base.log_odds(table))
    profile, local = model.profile.first(len(base.features)), None
    if (found := _fit_local_model(rest, base, table, seed)) is not None:
        local, local_odds = found
        profile = profile.with_feature(LOCAL_FEATURE.name, float(np.median(local_odds)))
        table = np.column_stack([table, local_odds])
    adapted = CalibratedModel(base, model.calibration, profile, local=local)
    names = _transferable(profile.names)
    features = profile.standardize(table, names)
    correction, held_out = fit_correction(
        odds, features, rest.complete, rest.groups, names, seed=seed
    )
    adapted = replace(adapted, correction=correction)
    adapted = replace(adapted, after=_fit_after(adapted, rest, table, held_out, seed))
    note = f"adapted to {len(examples.examples)} questions"
    card = {**card, "history": [*card.get("history", []), note]}
    card.pop("shift", None)  # the gate is now for this corpus alone
    return _settle(adapted, rule, (rest, aside), table, held_out, card)


def _settle(
    model: CalibratedModel,
    rule: PolicyRule,
    parts: tuple[TrainingSet, TrainingSet],  # learned from, and held out for a promise
    table: Floats,
    odds: Floats,
    card: Card,
) -> FittedGate:
    """Choose the policy and profile these questions; features keep the scale of the first fit."""
    rest, aside = parts
    policy = (
        rule.choose(sigmoid(odds), rest.complete, expected=model.correction is not None)
        if not rule.promises
        else rule.choose(sigmoid(model.log_odds(model.describe(aside.batch).table)), aside.complete)
    )
    actions = choose_actions(sigmoid(odds), model.p_after(odds, table), policy, rounds_left=1)
    share, old = float(rest.complete.mean()), model.profile
    profile = FeatureProfile.fit(old.names, table, share, action_shares(actions))
    profile = replace(profile, medians=old.medians, spreads=old.spreads)
    interval = fit_interval(odds, rest.complete)
    forms = fit_forms(rest, card["seed"])
    return FittedGate(replace(model, profile=profile), interval, policy, card, forms)


def shift_between_sets(odds: Floats, complete: Bools, data_sets: Sequence[str]) -> float:
    """How far off another data set may be, in log-odds: as far as questions of similar log-odds are
    in most of these sets.
    """
    from scipy.optimize import brentq  # lazy: needs the `fit` extra

    names = np.asarray(data_sets)
    offsets = []
    for name in np.unique(names):
        mine = np.flatnonzero(names == name)
        if len(mine) < MIN_OF_SET:
            continue
        order = mine[np.argsort(odds[mine], kind="stable")]
        for group in np.array_split(order, max(1, len(order) // SHIFT_GROUP)):
            some, yes = odds[group], complete[group].sum()
            share = (yes + 1) / (len(group) + 2)
            offsets.append(brentq(lambda b: sigmoid(some + b).mean() - share, -30, 30))  # noqa: B023
    return float(np.quantile(np.abs(offsets), SHIFT_QUANTILE)) if offsets else 0.0


def fit_forms(examples: TrainingSet, seed: int) -> FormProfile:
    """The form of questions and hits; questions without hits are left out, as always familiar."""
    held = np.array([bool(one.evidence.hits) for one in examples.batch.hits], dtype=bool)
    some = examples.where(held) if held.any() else examples
    folds = group_folds(some.groups, DISTANCE_FOLDS, seed)
    return FormProfile.fit(form_table(some.batch), folds, seed=seed)


def _fit_local_model(
    examples: TrainingSet, base: GateModel, table: Floats, seed: int
) -> tuple[LocalModel, Floats] | None:
    """The model of these labels alone, and its out-of-fold log-odds.

    Labels that name no document teach nothing about single hits. In that case the gate's submodels
    stay, and only the ensemble is fitted on these labels. None if there are too few labels.
    """
    try:
        if examples.knows_needed:
            model = examples.fit_model(base.words, seed)
        else:
            model = base.refit_ensemble(table, examples.complete, examples.groups, seed=seed)
    except InputError:  # fewer labels of one kind than folds
        return None
    calibration = Platt.fit(model.log_odds_at_fit, examples.complete)
    return LocalModel(model, calibration), calibration.log_odds(model.log_odds_at_fit)


def _fit_after(
    model: CalibratedModel, examples: TrainingSet, table: Floats, odds: Floats, seed: int
) -> Correction | None:
    """From the log-odds now to those after another round, if enough examples have these."""
    known = np.array([one.hits_after is not None for one in examples.examples], dtype=bool)
    if known.sum() < MIN_TO_ADAPT:
        return None
    some = examples.where(known)
    names = tuple(one for one in _transferable(model.profile.names) if one != LOCAL_FEATURE.name)
    features, complete = model.profile.standardize(table[known], names), some.complete_after()
    return fit_correction(odds[known], features, complete, some.groups, names, seed=seed)[0]


def _transferable(names: Sequence[str]) -> tuple[str, ...]:
    """Features that a correction may weigh."""
    chosen = {*TRANSFERABLE_FEATURES, LOCAL_FEATURE.name}
    return tuple(name for name in names if name in chosen or name.startswith(TRANSFERABLE_PREFIXES))


def _fingerprint(examples: TrainingSet) -> str:
    """A hash of questions, hits and labels, to identify the data behind a gate."""
    digest = hashlib.sha256()
    for example, one in zip(examples.examples, examples.batch.hits, strict=True):
        hits = [(hit.doc_id, hit.score) for hit in one.evidence.hits]
        needed = example.complete if example.needed is None else sorted(example.needed)
        record = repr((example.question, hits, needed))
        digest.update(record.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def fit_correction(
    odds: Floats,
    features: Floats,
    complete: Bools,
    groups: Sequence[str],
    names: tuple[str, ...],
    *,
    seed: int,
) -> tuple[Correction, Floats]:
    """A correction of the log-odds, and the out-of-fold corrected log-odds.

    It averages over priors: that the gate is right, that its level and scale are off, or that
    features need other weights as well; each at several distances. A prior is weighted by how well
    it predicted the labels (its marginal likelihood). So a few labels, or labels that the gate
    explains, change little, and labels that it does not explain change a lot.
    """
    limits = feature_limits(names)
    ones, within = np.ones(len(odds)), np.clip(features, -limits, limits)
    rows = np.column_stack([ones, odds, within]).astype(np.float64)
    local = np.array([name == LOCAL_FEATURE.name for name in names], dtype=bool)
    target = complete.astype(np.float64)
    weights, penalty = _average_over_priors(rows, target, local)
    folds = group_folds(groups, CORRECTION_FOLDS, seed)
    held_out = np.empty(len(odds))
    for fold in range(CORRECTION_FOLDS):
        away = folds == fold
        if away.any():
            part, _ = _average_over_priors(rows[~away], target[~away], local)
            held_out[away] = rows[away] @ part
    offset, slope, *rest = weights.tolist()
    return Correction(offset, slope, tuple(rest), names, penalty), held_out


class _Prior(NamedTuple):
    """Weights before any label is seen, the strength of each, and how likely such a corpus is."""

    weights: Floats
    penalties: Floats
    chance: float


def _priors(labels: int, local: Bools) -> list[_Prior]:
    """The gate unchanged; another level and scale; other weights of features. All equally likely.

    `local` marks the log-odds of a local model. If there are some, every second prior splits the
    weight between them and the gate's: more labels, more weight.
    """
    kinds = [(0.0, FIXED, 1 / 3)]
    kinds += [(level, FIXED, 1 / 3 / len(LEVELS)) for level in LEVELS]
    pairs = [(level, penalty) for level in LEVELS for penalty in PENALTIES]
    kinds += [(level, penalty, 1 / 3 / len(pairs)) for level, penalty in pairs]
    if labels >= MANY_LABELS:
        kinds = kinds[-1:]
    share = labels / (labels + LABELS_FOR_EQUAL_SAY)
    found = []
    for shared in (0.0, share) if local.any() else (0.0,):
        weights = np.concatenate([[0.0, 1 - shared], local * shared])
        for level, penalty, chance in kinds:
            scale = 1 / (level * SLOPE_VARIANCE) if level else FIXED
            rest = np.where(local, scale if shared else FIXED, penalty)
            offset = 1 / (level * OFFSET_VARIANCE) if level else FIXED
            found.append(_Prior(weights, np.concatenate([[offset, scale], rest]), chance))
    return found


def _average_over_priors(rows: Floats, target: Floats, local: Bools) -> tuple[Floats, float]:
    """The weights averaged over priors by their marginal likelihood, and the feature penalty of the
    best prior. Weights that reverse the gate do not count.
    """
    fits, evidence, penalties = [], [], []
    for prior in _priors(len(rows), local):
        weights, likelihood = penalized_logistic(rows, target, prior.weights, prior.penalties)
        if weights[1] >= 0:
            fits.append(weights)
            evidence.append(np.log(prior.chance) + likelihood)
            penalties.append(float(prior.penalties[2:][~local].min(initial=FIXED)))
    if not fits:  # the labels reverse the gate under every prior: leave it unchanged
        return np.concatenate([[0.0, 1.0], np.zeros(len(local))]), FIXED
    share = np.exp(np.array(evidence) - max(evidence))
    return np.asarray(share @ np.array(fits) / share.sum()), penalties[int(share.argmax())]


def penalized_logistic(
    rows: Floats, target: Floats, prior: Floats, penalties: Floats
) -> tuple[Floats, float]:
    """Logistic regression with a prior, and its log marginal likelihood (Laplace).

    Newton's method with steps that never increase the loss. Weights with the penalty FIXED do not
    move.
    """
    free = penalties < FIXED
    some, pull, middle = rows[:, free], penalties[free], prior[free]
    kept = rows[:, ~free] @ prior[~free]

    def loss(weights: Floats) -> float:
        odds = kept + some @ weights
        pulled = pull @ (weights - middle) ** 2 / 2
        return float(np.logaddexp(0, odds).sum() - target @ odds + pulled)

    def curve(weights: Floats) -> tuple[Floats, Floats]:
        p = sigmoid(kept + some @ weights)
        spread = (some * np.maximum(p * (1 - p), 1e-6)[:, None]).T @ some
        return p, spread + np.diag(pull)

    found, now = middle.copy(), loss(middle)
    for _ in range(50):
        p, bend = curve(found)
        step = np.linalg.solve(bend, some.T @ (p - target) + pull * (found - middle))
        while np.abs(step).max(initial=0) > 1e-6 and (then := loss(found - step)) > now:
            step = step / 2
        if np.abs(step).max(initial=0) <= 1e-6:
            break
        found, now = found - step, then
    weights = prior.copy()
    weights[free] = found
    volume = np.log(pull).sum() - np.linalg.slogdet(curve(found)[1])[1]
    return weights, float(volume / 2 - now)
