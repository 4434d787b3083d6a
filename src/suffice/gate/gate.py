"""The gate: are these hits enough for this question?

    gate = Gate.load()                              the one that ships, or a path
    verdict = gate.check(question, hits)            hits in any usual shape, see assess.incoming
    gate.hops([question])                           about how many documents it needs, by its words alone
    gate = Gate.fit(examples); gate.save(path)      one for your own corpus and retriever
    gate = gate.adapt(few examples)                 the same gate on another corpus, with 25 to 400 labels
    gate = gate.shifted(recent)                     … and without labels, when the share of complete sets has changed
    gate.drift(recent)                              has the world moved since the fit?

A gate is a frozen value: adapting and shifting return another one. Only the first `k` distinct hits are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.gate import storage
from suffice.gate.adapt import (
    LOCAL_FEATURE,
    NO_CORRECTION,
    SHIFTED,
    TRANSFERABLE_FEATURES,
    Correction,
    LocalModel,
    PolicyRule,
    fit_local_model,
)
from suffice.gate.calibration import (
    Platt,
    VennAbers,
    calibration_metrics,
    fit_interval,
    log_odds,
    sigmoid,
)
from suffice.gate.drift import Drift, FeatureProfile, FeatureScales
from suffice.gate.explanation import Occlusion, explain_verdicts
from suffice.gate.features import AGREEMENT
from suffice.gate.featurize import NO_ENCODERS, Encoders, FeatureBatch, featurize
from suffice.gate.hits import DocumentMap, normalize_hits
from suffice.gate.model import GateModel
from suffice.gate.policy import Costs, Policy, choose_actions
from suffice.gate.prior_shift import Shares
from suffice.gate.question import WordTable
from suffice.gate.similarity import normalize_other_runs, unpack_pair
from suffice.gate.storage import HARDENED, PRESETS
from suffice.gate.stuffing_filter import StuffingFilter
from suffice.gate.training import (
    LabelledQuestion,
    TrainingSet,
    build_training_set,
    data_fingerprint,
)
from suffice.protocols import Encoder, Reranker
from suffice.types import Estimate, Verdict

__all__ = ["Gate"]

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
Pair = tuple[str, Iterable[Any]] | tuple[str, Iterable[Any], Iterable[Iterable[Any]]]
MIN_TO_FIT, MIN_TO_ADAPT, MIN_TO_SHIFT = 60, 10, 30
NO_HITS_LOG_ODDS = -12.0  # the log-odds that no hits at all are enough
PROMISE_FOLDS = 5  # one of so many parts is kept for a promise
_CORRECTION_FIELDS = ("now", "shift", "after", "own")


@dataclass(frozen=True)
class Gate:
    """Model, calibration, policy and what is known of the questions it was fitted on."""

    words: WordTable
    model: GateModel
    calibration: Platt
    interval: VennAbers
    policy: Policy
    profile: FeatureProfile
    shares: Shares
    card: Mapping[str, Any]  # preset, k, seed, metrics, hashes of the data
    correction: Correction = NO_CORRECTION
    shift: float = 0.0  # of the log-odds, where another share of sets is complete
    after: Correction | None = None  # from the odds now to those after one more round
    encoders: Encoders = NO_ENCODERS  # of the quality preset
    own: LocalModel | None = None  # a model of the place that the gate was adapted to
    stuffing_filter: StuffingFilter | None = None  # of a hardened gate: which hits are not read

    @property
    def preset(self) -> str:
        """As it was fitted, or "hardened" where it was opened so."""
        return str(self.card.get("preset", "")) if self.stuffing_filter is None else HARDENED

    # -------------------------------------------------------------------------------------------- checking

    def check(
        self,
        question: str,
        hits: Iterable[Any],
        *,
        others: Iterable[Iterable[Any]] = (),
        documents: DocumentMap | None = None,
        explain: bool = True,
        rounds_left: int = 1,
    ) -> Verdict:
        """The verdict on one question. `documents` holds the texts where hits are suffice's own Hit records.

        `others` are what other retrievers found for it: a gate that was fitted on such examples looks at how far they agree.
        """
        pair = (question, hits, others)
        return self.check_batch(
            [pair], documents=documents, explain=explain, rounds_left=rounds_left
        )[0]

    def check_batch(
        self,
        pairs: Iterable[Pair],
        *,
        documents: DocumentMap | None = None,
        explain: bool = True,
        rounds_left: int = 1,
    ) -> list[Verdict]:
        """A verdict for each (question, hits) or (question, hits, others).

        `explain=False` leaves out reasons, missing and next queries.
        """
        seen = self._see(pairs, documents)
        if not seen.taken:
            return []
        described, p_absent = seen.judged_by(self.model)
        table = self._beside_own(described, seen)
        odds, moved = (
            self._occlusion.effects(table, self._odds) if explain else (self._odds(table), None)
        )
        p, low, high = self._estimates(odds)
        actions = choose_actions(p, self._after(odds, table), self.policy, rounds_left=rounds_left)
        told = (
            [{}] * len(actions)
            if moved is None
            else explain_verdicts(self._occlusion, seen, table, p_absent, moved, actions)
        )
        numbers = zip(p.tolist(), low.tolist(), high.tolist(), strict=True)
        return [
            Verdict(Estimate(*one), action, **more)
            for one, action, more in zip(numbers, actions, told, strict=True)
        ]

    def probabilities(
        self, pairs: Iterable[Pair], *, documents: DocumentMap | None = None
    ) -> Floats:
        """p_complete alone: (questions,)."""
        return sigmoid(self._odds(self._look(pairs, documents)[1]))

    def features(self, pairs: Iterable[Pair], *, documents: DocumentMap | None = None) -> Floats:
        """What the gate looks at in each, (questions, features): figures that a service may keep to watch for drift."""
        return self._look(pairs, documents)[1]

    def hops(self, questions: Sequence[str]) -> Floats:
        """About how many documents each question needs, by its words alone: (questions,), none below 1."""
        return np.maximum(
            self.model.hops(self._see([(question, ()) for question in questions], None).asked), 1.0
        )

    def _look(
        self, pairs: Iterable[Pair], documents: DocumentMap | None = None
    ) -> tuple[FeatureBatch, Floats]:
        seen = self._see(pairs, documents)
        return seen, self._beside_own(seen.described_by(self.model), seen)

    def _beside_own(self, table: Floats, seen: FeatureBatch) -> Floats:
        """What the model looks at, and where there is one what the place's own model says."""
        return table if self.own is None else np.column_stack([table, self.own.odds(seen)])

    def _see(self, pairs: Iterable[Pair], documents: DocumentMap | None) -> FeatureBatch:
        given = [unpack_pair(pair) for pair in pairs]
        taken = [
            normalize_hits(question, hits, documents=documents, k=self.card["k"])
            for question, hits, _ in given
        ]
        if self.stuffing_filter is not None:
            taken = self.stuffing_filter.filter_hits(taken, self.words)
        runs = None
        if self._others:
            runs = [
                normalize_other_runs(own, others, documents)
                for own, (_, _, others) in zip(taken, given, strict=True)
            ]
        return featurize(taken, self.words, self.encoders, runs)

    def _odds(self, table: Floats) -> Floats:
        """Calibrated log-odds: (questions, features) to (questions,)."""
        base: Floats = self.calibration.odds(
            self.model.odds(table if self.own is None else table[:, :-1])
        )
        if self.correction is not NO_CORRECTION:
            base = self.correction(base, self._standard(table, self.correction.names))
        # No hits hold no evidence, whatever the model makes of a set that it has never seen.
        return np.where(table[:, self._scales.column["k"]] > 0, base + self.shift, NO_HITS_LOG_ODDS)

    def _standard(self, table: Floats, names: Sequence[str]) -> Floats:
        """The named features, from their median at fit time in units of their spread then: (questions, names)."""
        at, middle, spread = self._scales.of(tuple(names))
        return np.asarray((table.take(at, axis=1) - middle) / spread)

    @cached_property
    def _scales(self) -> FeatureScales:
        return FeatureScales(self.profile)

    def _estimates(self, odds: Floats) -> tuple[Floats, Floats, Floats]:
        """p_complete and its interval, which was learned before the shift and moves along with it."""
        p = sigmoid(odds)
        bounds = self.interval.apply(odds - self.shift)
        low, high = (
            sigmoid(log_odds(bound) + self.shift) if self.shift else bound for bound in bounds
        )
        return p, np.minimum(low, p), np.maximum(high, p)

    def _after(self, odds: Floats, table: Floats) -> Floats | None:
        """p_complete after one more round, where that was learned."""
        return (
            None
            if self.after is None
            else sigmoid(self.after(odds, self._standard(table, self.after.names)))
        )

    @cached_property
    def _occlusion(self) -> Occlusion:
        features = (
            self.model.features if self.own is None else (*self.model.features, LOCAL_FEATURE)
        )
        return Occlusion(features, self.profile.medians)

    # -------------------------------------------------------------------------------------------- fitting

    @classmethod
    def fit(
        cls,
        examples: Iterable[LabelledQuestion],
        *,
        seed: int = 42,
        policy: str = "f1",
        alpha: float | None = None,
        delta: float = 0.1,
        costs: Costs = Costs(),  # noqa: B008 - frozen
        k: int | None = None,
        words: WordTable | None = None,
        encoder: Encoder | None = None,
        reranker: Reranker | None = None,
        sets: Sequence[str] | None = None,
    ) -> Gate:
        """A gate for these questions and hits.

        The model learns from all of them. Calibration, interval, policy and the value of an expansion are learned from what
        models fitted on other questions say of each question, so nothing is judged by a model that has seen it, and nothing is
        wasted. Questions with the same words count as one in this.

        `policy` is "f1", "cost" or "risk"; with `alpha` it is "risk". Such a promise needs one fixed gate and questions that no
        part of it has seen: only then is a fifth of the questions set aside, and the threshold chosen on that.
        `k` is how many distinct hits are read, as many as the examples have unless told. An `encoder` makes it of the quality
        preset, a `reranker` that better and ten times as slow. With `sets`, the data set of each, it is made for yet other sets.
        """
        rule = PolicyRule("risk" if alpha is not None else policy, alpha, delta, costs)
        words, encoders = words or WordTable.load(), Encoders(encoder, reranker)
        every = build_training_set(examples, words, encoders, k=k, fewest=MIN_TO_FIT, sets=sets)
        aside = (
            every.one_part_of(PROMISE_FOLDS, seed)
            if rule.promises
            else np.zeros(len(every.examples), bool)
        )
        taught = every.where(~aside)
        taught.expect_both("the part to fit on")
        model = taught.model(words, seed)
        card: dict[str, Any] = {
            "preset": PRESETS[encoders != NO_ENCODERS],
            **encoders.names,
            "others": AGREEMENT[0] in every.seen.named,
            "k": k or max(1, *(len(one.evidence.hits) for one in every.seen.taken)),
            "seed": seed,
            "data": data_fingerprint(every.examples, every.seen.taken),
            "questions": {"fit": int((~aside).sum()), "promise": int(aside.sum())},
        }
        table, complete = model.table_at_fit, taught.complete
        calibration = Platt.fit(model.odds_at_fit, complete)
        odds = calibration.odds(model.odds_at_fit)
        profile = FeatureProfile.of(
            [one.name for one in model.features], table, float(complete.mean()), {}
        )
        interval, shares = fit_interval(odds, complete), Shares.of(odds, complete)
        draft = cls(
            words, model, calibration, interval, rule.none, profile, shares, card, encoders=encoders
        )
        gate = replace(draft, after=draft._learn_after(taught, table, odds, seed))
        chosen = (
            rule.choose(sigmoid(odds), complete)
            if not rule.promises
            else rule.choose(*gate._judged(every.where(aside)))
        )
        card["metrics"] = calibration_metrics(sigmoid(odds), complete)
        return gate._settled(chosen, table, odds, complete.mean())

    def _judged(self, taught: TrainingSet) -> tuple[Floats, Bools]:
        """Probability and truth of each question."""
        table = self._beside_own(taught.seen.described_by(self.model), taught.seen)
        return sigmoid(self._odds(table)), taught.complete

    def _learn_after(
        self, taught: TrainingSet, table: Floats, odds: Floats, seed: int
    ) -> Correction | None:
        """From the odds now to those after one more round, where enough examples say what that round brought."""
        told = taught.expanded
        if told.sum() < MIN_TO_ADAPT:
            return None
        some, names = (
            taught.where(told),
            [name for name in self._transferable if name != LOCAL_FEATURE.name],
        )
        features = self._standard(table[told], names)
        return Correction.learn(
            odds[told], features, some.complete_after, some.groups, names, seed=seed
        )[0]

    def adapt(self, examples: Iterable[LabelledQuestion], *, seed: int = 42) -> Gate:
        """The gate for another corpus or retriever, from a few labelled examples (25 to 400; with more, fit a new one).

        Its odds are corrected, and from some labels on weighed against those of a small model fitted on the labels alone. The
        policy is chosen anew in the same way. Where it carries a promise, every second question is kept for that promise.
        """
        every = build_training_set(
            examples,
            self.words,
            self.encoders,
            k=self.card["k"],
            fewest=MIN_TO_ADAPT,
            others=self._others,
        )
        rule = PolicyRule.of(self.policy)
        aside = every.one_part_of(2, seed) if rule.promises else np.zeros(len(every.examples), bool)
        taught = every.where(~aside)
        taught.expect_both("the part to learn from")
        gate, table = self._with_own(taught, seed)
        names, complete = gate._transferable, taught.complete
        base = self.calibration.odds(self.model.odds(table[:, : len(self.model.features)]))
        correction, odds = Correction.learn(
            base, gate._standard(table, names), complete, taught.groups, names, seed=seed
        )
        interval, shares = fit_interval(odds, complete), Shares.of(odds, complete)
        gate = replace(
            gate, correction=correction, shift=0.0, after=None, interval=interval, shares=shares
        )
        gate = replace(gate, after=gate._learn_after(taught, table, odds, seed))
        judged = (
            gate._judged(every.where(aside)) if rule.promises else (sigmoid(odds), taught.complete)
        )
        note = f"adapted to {len(every.examples)} questions"
        return gate._settled(rule.choose(*judged), table, odds, taught.complete.mean(), note)

    def _with_own(self, taught: TrainingSet, seed: int) -> tuple[Gate, Floats]:
        """The gate with a model of these labels, where they are enough, and what it sees of each by models that had not."""
        table, count = taught.seen.described_by(self.model), len(self.model.features)
        profile, found = self.profile.first(count), fit_local_model(taught, self.words, seed)
        if found is None:
            return replace(self, own=None, profile=profile), table
        own, odds = found
        profile = profile.beside(LOCAL_FEATURE.name, float(np.median(odds)))
        return replace(self, own=own, profile=profile), np.column_stack([table, odds])

    @property
    def _others(self) -> bool:
        """Was it fitted on examples with other runs beside their hits?"""
        return bool(self.card.get("others"))

    @property
    def _transferable(self) -> tuple[str, ...]:
        """Features that a correction may weigh: the chosen ones, those of the question's words, and the place's own odds."""
        known = self.profile.names
        return tuple(
            name
            for name in known
            if name in TRANSFERABLE_FEATURES or name.startswith("q_") or name == LOCAL_FEATURE.name
        )

    def shifted(
        self, recent: Iterable[Pair], *, documents: DocumentMap | None = None, seed: int = 42
    ) -> Gate:
        """The gate for questions of which another share is complete, from unlabelled (question, hits) alone.

        The probabilities move only as far as the share has surely moved, and not at all where another share alone does not
        explain what is seen: then the questions differ too, and nothing but labels helps (`adapt`). The last line of the card's
        history says which it was. A promise does not survive a move: it was made for the old share.
        """
        seen, table = self._look(recent, documents)
        if len(seen.taken) < MIN_TO_SHIFT:
            raise InputError(
                f"{len(seen.taken)} recent questions, expected at least {MIN_TO_SHIFT}",
                hint="collect more",
            )
        first = replace(self, shift=0.0)
        found, then = self.shares.seen_in(first._odds(table), seed=seed), self.shares.share
        asked = f"{len(seen.taken)} questions"
        if not found.explains:
            note = f"not shifted to {asked}: misfit {found.misfit:.2f}, by chance below {found.by_chance:.2f}"
            return replace(
                self, card={**self.card, "history": [*self.card.get("history", []), note]}
            )
        now = found.nearest_to(then)
        shifted = replace(self, shift=float(log_odds(np.array(now)) - log_odds(np.array(then))))
        policy = replace(
            self.policy,
            promise=None,
            chosen_by=self.policy.chosen_by.removesuffix(SHIFTED) + SHIFTED,
        )
        note = f"shifted to {asked}: {now:.2f} of the sets complete instead of {then:.2f}"
        return shifted._settled(policy, table, shifted._odds(table), now, note)

    def _settled(
        self, policy: Policy, table: Floats, odds: Floats, complete: float, note: str | None = None
    ) -> Gate:
        """With this policy, and a profile of these questions in which features keep the scale of the first fit."""
        gate = replace(self, policy=policy)
        profile = FeatureProfile.of(self.profile.names, table, complete, gate._shares(table, odds))
        profile = replace(profile, medians=self.profile.medians, spreads=self.profile.spreads)
        history = [*self.card.get("history", []), *([note] if note else [])]
        return replace(gate, profile=profile, card={**self.card, "history": history})

    def _shares(self, table: Floats, odds: Floats) -> dict[str, float]:
        """The share of each action."""
        actions = choose_actions(
            sigmoid(odds), self._after(odds, table), self.policy, rounds_left=1
        )
        return {
            str(action): count / len(actions) for action, count in sorted(Counter(actions).items())
        }

    def drift(self, recent: Iterable[Pair], *, documents: DocumentMap | None = None) -> Drift:
        """How far recent (question, hits) are from those at fit time, and whether to recalibrate."""
        table = self._look(recent, documents)[1]
        return self.profile.drift(
            table, self._shares(table, self._odds(table)) if len(table) else {}
        )

    # -------------------------------------------------------------------------------------------- keeping

    def save(self, path: Path | str) -> None:
        """Write the gate as one artefact folder, whole or not at all."""
        own = {} if self.own is None else {"own": self.own.model}
        records = {
            "calibration": {
                "p": self.calibration.as_json(),
                "interval": self.interval.as_json(),
                "shares": self.shares.as_json(),
            },
            "policy": self.policy.as_json(),
            "profile": self.profile.as_json(),
            "correction": {
                "now": None if self.correction is NO_CORRECTION else self.correction.as_json(),
                "shift": self.shift,
                "after": self.after.as_json() if self.after else None,
                "own": self.own.scale.as_json() if self.own else None,
            },
        }
        storage.write_gate(Path(path), self.card, {"": self.model, **own}, records)

    @classmethod
    def load(
        cls,
        path: Path | str | None = None,
        preset: str = "fast",
        *,
        encoder: Encoder | None = None,
        reranker: Reranker | None = None,
    ) -> Gate:
        """The gate in a folder; without a path the one of that preset that ships with the package.

        A gate of the quality preset looks through the encoder that it was fitted with: by name, or the one that is given.
        Any gate is opened as "hardened", the one that ships or another: it does not read hits that seem stuffed (suffice.gate.stuffing_filter).
        """
        folder, card = storage.open_gate(None if path is None else Path(path), preset)
        encoders = Encoders(encoder, reranker).named(
            card.get("encoder"), card.get("reranker"), where=str(folder)
        )
        with storage.readable_gate(folder):
            calibration = storage.read_record(folder, "calibration", "p", "interval", "shares")
            now, shift, after, own = map(
                storage.read_record(folder, "correction", *_CORRECTION_FIELDS).__getitem__,
                _CORRECTION_FIELDS,
            )
            gate = cls(
                words := WordTable.load(),
                GateModel.load(folder, words),
                Platt.from_json(calibration["p"]),
                VennAbers.from_json(calibration["interval"]),
                Policy.from_json(storage.read_record(folder, "policy")),
                FeatureProfile.from_json(storage.read_record(folder, "profile")),
                Shares.from_json(calibration["shares"]),
                card,
                NO_CORRECTION if now is None else Correction.from_json(now),
                float(shift),
                None if after is None else Correction.from_json(after),
                encoders,
                None
                if own is None
                else LocalModel(GateModel.load(folder / "own", words), Platt.from_json(own)),
                stuffing_filter=StuffingFilter.load() if preset == HARDENED else None,
            )
            gate.check(
                storage.PROBE_QUESTION, [storage.PROBE_QUESTION]
            )  # records that do not fit together show now, not in production
        return gate
