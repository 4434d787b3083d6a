"""The gate: are these hits enough to answer this question?

    gate = Gate.load()                           # the shipped one, or pass a path
    verdict = gate.check(question, hits)         # hits in any usual shape, see suffice.gate.hits
    gate = Gate.fit(examples); gate.save(path)   # one for your own corpus and retriever
    gate = gate.adapt(few_examples)              # the same gate on another corpus, 25 to 400 labels
    gate.drift(recent)                           # have the questions changed since the fit?

A check goes hits > question > features > model > policy > familiarity > explanation: see
`Gate.check_batch`. A gate is immutable; adapting returns a new one. It reads only the first `k`
distinct hits. `suffice.gate.training` fits and adapts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError, NotReadyError, did_you_mean, known_arguments
from suffice.gate.calibration import Correction, FeatureProfile, Platt, VennAbers
from suffice.gate.drift import Drift, measure_drift
from suffice.gate.explanation import Occlusion, explain_verdicts
from suffice.gate.extraction import (
    NO_READERS,
    FastModel,
    FeatureBatch,
    Readers,
    featurize,
    reader_input,
)
from suffice.gate.familiarity import FormProfile, in_other_language, widen_interval
from suffice.gate.hits import (
    DocumentMap,
    NormalizedHits,
    Pair,
    normalize_hits,
    unpack_pair,
)
from suffice.gate.judge import UNSURE, Consultation, JudgeScale, PresetJudge, check_judge, consult
from suffice.gate.model import CalibratedModel, GateModel, LocalModel
from suffice.gate.policy import (
    Costs,
    Policy,
    PolicyRule,
    action_shares,
    choose_actions,
    explain_actions,
)
from suffice.gate.question import WordTable, parse_question
from suffice.gate.reader import BlankReader, Reader
from suffice.gate.stuffing_filter import StuffingFilter, filter_notes
from suffice.numeric import log_odds, log_odds_array, sigmoid
from suffice.protocols import Judge
from suffice.registry import JUDGES, PACKAGES
from suffice.storage import (
    MANIFEST,
    check_replaceable,
    new_artefact,
    open_artefact,
    sha256_of,
    write_atomically,
)
from suffice.storage.artefacts import data_errors, read_json
from suffice.storage.fields import dataclass_from_json
from suffice.types import Estimate, FoundAnswer, JudgeReport, Verdict

if TYPE_CHECKING:
    from suffice.gate.training import LabelledQuestion


Floats = npt.NDArray[np.floating[Any]]
GATE_KIND, GATE_VERSION = "gate", 3
# Any gate can be hardened. deep and auto are the standard gate with the judge of suffice-deep.
PRESETS = STANDARD, FAST, HARDENED, DEEP, AUTO = ("standard", "fast", "hardened", "deep", "auto")
SHIPPED_MODELS = Path(__file__).parent.parent / "models"
# What gates of an earlier version could use, by its name in their cards.
GONE = {"encoder": "an encoder", "reranker": "a reranker", "others": "other runs"}
RECORDS = ("calibration", "profile", "policy", "familiarity")
JUDGE_RECORD = "judge"  # only in a gate that was adapted with a judge
STOP_KIND, STOP_VERSION, STOP_FILE = "stop-calibration", 1, "calibration.json"
SHIPPED_STOP = SHIPPED_MODELS / "stop"  # for gates with a reader
EXAMPLES = "pass a list of suffice.LabelledQuestion"
PROBE = "Who taught Ada's teacher in 1843?"  # a question, and also a hit with the same names


@dataclass(frozen=True)
class CheckedBatch:
    """Verdicts, and the gate's columns behind them: (questions, features)."""

    verdicts: list[Verdict]
    features: Floats


@dataclass(frozen=True)
class Gate:
    """A calibrated model, a policy, and a card that describes how it was made."""

    words: WordTable
    model: CalibratedModel
    interval: VennAbers
    policy: Policy
    card: Mapping[str, Any]  # preset, k, seed, metrics, hashes of the data
    forms: FormProfile  # how the training questions and hits were written
    readers: Readers = NO_READERS
    stuffing_filter: StuffingFilter | None = None  # hardened preset only
    judge_scale: JudgeScale | None = None  # fitted from labels
    judge: Judge | None = None  # asked about lists that this gate is unsure of
    depth: str = ""  # deep or auto, if it was opened as such

    def __repr__(self) -> str:
        return f"<suffice.Gate, preset {self.preset!r}, k {self.card.get('k')}>"

    @property
    def preset(self) -> str:
        """The preset it was fitted with, or as which it was opened: hardened, deep or auto."""
        opened = HARDENED if self.stuffing_filter is not None else self.depth
        return opened or str(self.card.get("preset", ""))

    @property
    def profile(self) -> FeatureProfile:
        """The questions it was fitted on or adapted to, as distributions."""
        return self.model.profile

    @known_arguments
    def check(
        self,
        question: str,
        hits: Iterable[Any],
        *,
        documents: DocumentMap | None = None,
        explain: bool = True,
        rounds_left: int = 1,
    ) -> Verdict:
        """The verdict on one question.

        If the hits are Hit records, pass their texts as `documents`; hits from a library's search
        include their texts.
        """
        pair = question, hits
        return self.check_batch(
            [pair], documents=documents, explain=explain, rounds_left=rounds_left
        )[0]

    @known_arguments
    def check_batch(
        self,
        pairs: Iterable[Pair],
        *,
        documents: DocumentMap | None = None,
        explain: bool = True,
        rounds_left: int = 1,
    ) -> list[Verdict]:
        """A verdict for each (question, hits).

        `explain=False` leaves out reasons, quotes, missing items and next queries.
        """
        return self.check_with_features(
            pairs, documents=documents, explain=explain, rounds_left=rounds_left
        ).verdicts

    def check_with_features(
        self,
        pairs: Iterable[Pair],
        *,
        documents: DocumentMap | None = None,
        explain: bool = True,
        rounds_left: int = 1,
    ) -> CheckedBatch:
        """`check_batch` plus the feature columns, which a service stores to detect drift."""
        hits = self._normalize_hits(pairs, documents)
        if not hits:
            return CheckedBatch([], np.zeros((0, len(self.profile.names))))
        batch = self._featurize(hits)
        description = self.model.describe(batch)
        odds, effects = self._occlusion.effects(description.table, self.model.log_odds, explain)
        p, p_after = sigmoid(odds), self.model.p_after(odds, description.table)
        actions = choose_actions(p, p_after, self.policy, rounds_left=rounds_left)
        reports: Sequence[JudgeReport | None] = [None] * len(actions)
        of_judge: Sequence[tuple[str, ...]] = [()] * len(actions)
        said = None if self.judge is None else self._consult(self.judge, batch, odds)
        known = self.judge_scale is not None and self.judge_scale.any_language
        familiarity = self.forms.measure(batch, said.read if said and known else None)
        low, high = self.widened(odds, familiarity.values)
        if said is not None:
            batch = _judged_readings(batch, said)
            reports, of_judge = said.reports(odds, actions), said.notes
            odds = odds + said.effects
            low, high = _moved(low, said.effects), _moved(high, said.effects)
            p, p_after = sigmoid(odds), self.model.p_after(odds, description.table)
            actions = choose_actions(p, p_after, self.policy, rounds_left=rounds_left)
        explanations: Sequence[dict[str, Any]] = [{}] * len(actions)
        if explain:
            typical = np.broadcast_to(self.profile.medians, description.table.shape)
            usual_after = self.model.p_after(odds, typical)
            usual = choose_actions(p, usual_after, self.policy, rounds_left=rounds_left)
            searches = explain_actions(p, p_after, actions, usual)
            explanations = explain_verdicts(
                self._occlusion, batch, description, effects, actions, searches
            )
        numbers = (one.tolist() for one in (p, np.minimum(low, p), np.maximum(high, p)))
        estimates = map(Estimate, *numbers)
        familiar = zip(familiarity.values.tolist(), familiarity.reasons, strict=True)
        unread = [one.notes for one in batch.readings] if batch.readings else [()] * len(actions)
        dropped: Sequence[tuple[str, ...]] = [()] * len(actions)
        if self.stuffing_filter is not None:
            dropped = list(map(filter_notes, hits, batch.hits))
        notes = [
            (*one.notes, *stuffed, *more, *about)
            for one, stuffed, more, about in zip(hits, dropped, unread, of_judge, strict=True)
        ]
        verdicts = zip(estimates, actions, explanations, familiar, notes, reports, strict=True)
        checked = [
            Verdict(
                estimate, action, **more, familiarity=value, unfamiliar=why, notes=told, judged=word
            )
            for estimate, action, more, (value, why), told, word in verdicts
        ]
        return CheckedBatch(checked, description.table)

    def _consult(self, judge: Judge, batch: FeatureBatch, odds: Floats) -> Consultation:
        answer_at = self.policy.answer_at
        threshold = log_odds(0.5 if answer_at is None else answer_at)
        lists, scale = [reader_input(one) for one in batch.hits], self.judge_scale
        known = scale is not None and scale.any_language
        foreign = in_other_language(batch) if known else None
        return consult(judge, scale, lists, odds, threshold, always=foreign)

    def widened(self, odds: Floats, familiarity: Floats) -> tuple[Floats, Floats]:
        """The interval of each log-odds. It is wider for less familiar questions, and the more the
        gate's training data sets differ. A gate fitted on or adapted to a single corpus has no such
        shift.
        """
        shift = float(self.card.get("shift", 0.0))
        read = self.readers.reader is not None
        return widen_interval(*self.interval.apply(odds), familiarity, shift=shift, read=read)

    def probabilities(
        self, pairs: Iterable[Pair], *, documents: DocumentMap | None = None
    ) -> Floats:
        """Only p_complete: (questions,)."""
        return sigmoid(self.model.log_odds(self.features(pairs, documents=documents)))

    def features(self, pairs: Iterable[Pair], *, documents: DocumentMap | None = None) -> Floats:
        """The gate's columns, (questions, features)."""
        return self.model.describe(self._batch(pairs, documents)).table

    def hops(self, questions: Sequence[str]) -> Floats:
        """About how many documents each question needs, judged by its words alone; at least 1."""
        batch = self._batch([(question, ()) for question in questions], None)
        return np.maximum(self.model.base.hops(batch.questions), 1.0)

    def find_answer(
        self,
        question: str,
        titles: Sequence[str],
        texts: Sequence[str],
        fits: Callable[[str], bool] = bool,
    ) -> FoundAnswer | None:
        """The answer to the question in these texts, preferably one that `fits`; None if the gate
        has no reader.
        """
        reader = self.readers.reader
        return None if reader is None else reader.answer(question, titles, texts, fits)

    def drift(self, recent: Iterable[Pair], *, documents: DocumentMap | None = None) -> Drift:
        """How far recent (question, hits) are from those at fit time; whether to recalibrate."""
        table = self.features(recent, documents=documents)
        log_odds = self.model.log_odds(table)
        p_after = self.model.p_after(log_odds, table)
        actions = choose_actions(sigmoid(log_odds), p_after, self.policy, rounds_left=1)
        return measure_drift(self.profile, table, action_shares(actions))

    def _batch(self, pairs: Iterable[Pair], documents: DocumentMap | None) -> FeatureBatch:
        return self._featurize(self._normalize_hits(pairs, documents))

    def _normalize_hits(
        self, pairs: Iterable[Pair], documents: DocumentMap | None
    ) -> list[NormalizedHits]:
        k = self.card["k"]
        return [
            normalize_hits(question, hits, documents=documents, k=k)
            for question, hits in map(unpack_pair, pairs)
        ]

    def _featurize(self, hits: list[NormalizedHits]) -> FeatureBatch:
        questions = [parse_question(one.question, self.words) for one in hits]
        if self.stuffing_filter is not None:
            hits = self.stuffing_filter.filter_hits(hits, questions, self.words)
        return featurize(hits, questions, self.words, self.readers)

    @cached_property
    def _occlusion(self) -> Occlusion:
        return Occlusion(self.model.features, self.profile.medians)

    @classmethod
    @known_arguments
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
        preset: str = STANDARD,
        words: WordTable | None = None,
        reader: Reader | None = None,
        fast: FastModel | None = None,
        sets: Sequence[str] | None = None,
    ) -> Gate:
        """Fit a gate for these questions and hits.

        `policy` is "f1", "cost" or "risk"; passing `alpha` selects "risk". A promise needs unseen
        questions, so a fifth of them is held out in that case only. `k` is how many distinct hits
        are read, by default as many as the examples have. The standard preset uses a `reader` and a
        `fast` gate, both shipped and not refitted; "fast" uses neither. With `sets`, the data set
        of each example, the gate is fitted to transfer to other data sets.
        """
        from suffice.gate import training

        _check_type(examples, Iterable, "examples", "a list", hint=EXAMPLES)
        training.require_fit_extra()
        rule = PolicyRule("risk" if alpha is not None else policy, alpha, delta, costs)
        words, readers = words or WordTable.load(), open_readers(preset, reader, fast)
        built = training.build_training_set(
            examples, words, readers, k=k, min_examples=training.MIN_TO_FIT, data_sets=sets
        )
        card = {"preset": preset, **readers.names}
        fitted = training.fit_gate(built, words, rule, k=k, seed=seed, card=card)
        return cls(words, *fitted, readers)

    def adapt(self, examples: Iterable[LabelledQuestion], *, seed: int = 42) -> Gate:
        """Adapt the gate to another corpus or retriever with a few labelled examples.

        25 to 400 are enough; with more, fit a new gate. The policy is chosen again by the same
        rule.
        """
        from suffice.gate import training

        _check_type(examples, Iterable, "examples", "a list", hint=EXAMPLES)
        training.require_fit_extra()
        if self.depth:
            hint = "adapt the standard gate, and open that with the judge: Gate.load(path, judge=)"
            raise InputError(f"the preset {self.depth!r} cannot be adapted", hint=hint)
        built = training.build_training_set(
            examples,
            self.words,
            self.readers,
            k=self.card["k"],
            min_examples=training.MIN_TO_ADAPT,
        )
        rule = PolicyRule.of(self.policy)
        fitted = training.adapt_gate(self.model, built, rule, seed=seed, card=self.card)
        return Gate(self.words, *fitted, self.readers, self.stuffing_filter)

    def save(self, path: Path | str) -> None:
        """Save the gate as one artefact folder, atomically.

        It replaces an existing gate; InputError if the folder contains anything else.
        """
        check_replaceable(Path(path), kind=GATE_KIND)
        model, local = self.model, self.model.local
        parts: dict[str, Any] = {
            "platt": model.calibration,
            "interval": self.interval,
            "correction": model.correction,
            "after": model.after,
            "local": None if local is None else local.calibration,
        }
        card = {name: value for name, value in self.card.items() if name != "judge"}
        stored = {name: None if part is None else asdict(part) for name, part in parts.items()}
        records = (stored, asdict(model.profile), asdict(self.policy), asdict(self.forms))
        if (scale := None if self.depth else self.judge_scale) is not None:
            card["judge"] = scale.judge
        with new_artefact(
            Path(path),
            kind=GATE_KIND,
            version=GATE_VERSION,
            settings={**card, "model": model.base.settings},
            inputs={"examples": self.card["data"]},
            seed=self.card["seed"],
        ) as folder:
            model.base.save(folder)
            if local is not None:
                local.model.save(folder / "local")
            named = dict(zip(RECORDS, records, strict=True))
            if scale is not None:
                named[JUDGE_RECORD] = asdict(scale)
            for name, record in named.items():
                write_atomically(folder / f"{name}.json", json.dumps(record, sort_keys=True) + "\n")

    @classmethod
    @known_arguments
    def load(
        cls,
        path: Path | str | None = None,
        preset: str = STANDARD,
        *,
        judge: Judge | None = None,
    ) -> Gate:
        """Load the gate in a folder; without a path, the shipped one of that preset.

        Any gate can be opened as "hardened": it then ignores hits that seem stuffed with the
        question's words (suffice.gate.stuffing_filter). A `judge` is asked about lists that the
        gate is unsure of (suffice.gate.judge). With "deep" that is a small language model which
        reads every list, with "auto" those that the standard gate is unsure of; both need
        suffice-deep.
        """
        depth = preset if preset in (DEEP, AUTO) else ""
        if depth and (path is not None or judge is not None):
            hint = "open your gate with a judge: judge=suffice_deep.judge.open_judge()"
            raise InputError(f"the preset {depth!r} is the shipped gate with its judge", hint=hint)
        deep = _open_deep(depth) if depth else None  # fails before the gate is read
        hint = "pass the folder of a gate, or nothing for the shipped one"
        _check_type(path, str | Path | None, "the gate", "a path", hint=hint)
        folder, card = open_gate_folder(None if path is None else Path(path), preset)
        words, readers = _shipped_words(), _readers_of(card, str(folder))
        stuffing_filter = StuffingFilter.load() if preset == HARDENED else None
        # Numbers so large that their difference is NaN also mean a damaged file.
        refit = _refit(folder)
        with data_errors(f"the gate in {folder}", hint=refit), np.errstate(invalid="raise"):
            stored, profile, policy, forms = (
                read_json(folder / f"{name}.json") for name in RECORDS
            )
            correction, after = (
                None if stored[name] is None else dataclass_from_json(Correction, stored[name])
                for name in ("correction", "after")
            )
            local = None
            if stored["local"] is not None:
                scale = dataclass_from_json(Platt, stored["local"])
                local = LocalModel(GateModel.load(folder / "local", words), scale)
            model = CalibratedModel(
                GateModel.load(folder, words),
                dataclass_from_json(Platt, stored["platt"]),
                dataclass_from_json(FeatureProfile, profile),
                correction,
                local,
                after,
            )
            interval = dataclass_from_json(VennAbers, stored["interval"])
            chosen = Policy.from_json(policy)
            written = dataclass_from_json(FormProfile, forms)
            known = None
            if card.get("judge") is not None:
                known = dataclass_from_json(JudgeScale, read_json(folder / f"{JUDGE_RECORD}.json"))
            gate = cls(
                words, model, interval, chosen, card, written, readers, stuffing_filter, known
            )
            gate._probe()  # fail now if the records do not fit together
        if deep is not None:
            return gate._with_preset_judge(deep, depth)
        return gate if judge is None else gate.with_judge(judge)

    def _with_preset_judge(self, judge: PresetJudge, depth: str) -> Gate:
        scale = judge.scale if depth == DEEP else replace(judge.scale, unsure=UNSURE)
        policy = replace(self.policy, answer_at=scale.answer_at or self.policy.answer_at)
        return replace(self, judge=judge, judge_scale=scale, depth=depth, policy=policy)

    def _probe(self) -> None:
        """Check a list without reading it: opening the reader takes longer than all the rest."""
        readers = replace(self.readers, reader=self.readers.reader and BlankReader())
        replace(self, readers=readers).check(PROBE, [PROBE])

    def for_expansion(self) -> Gate:
        """The same gate, calibrated to decide when a search stops (used by `suffice.expand`).

        Evidence at which a search stops was selected for looking complete, so its probability is
        lower than that of the same hits passed directly; never higher.
        """
        if self.readers.reader is None:  # the fast gate was not found to be overconfident
            return self
        return replace(self, model=replace(self.model, stop=_shipped_stop()))

    def with_judge(self, judge: Judge) -> Gate:
        """The same gate with a judge behind it, for the lists that it is unsure of.

        `suffice adapt --judge` fits how much its opinion counts from labels; without them, its
        log-odds are added as they are. A promise does not cover a judge.
        """
        check_judge(judge, self.judge_scale)
        if self.policy.promise is not None:
            hint = "open it without a judge, or adapt it without --alpha"
            raise InputError("the gate's promise was made without a judge", hint=hint)
        return replace(self, judge=judge)


def _judged_readings(batch: FeatureBatch, said: Consultation) -> FeatureBatch:
    """With the judge's word on which hits are needed, where it has one: these are quoted."""
    if batch.readings is None:
        return batch
    found = [said.needed(at, len(one.needed)) for at, one in enumerate(batch.readings)]
    pairs = zip(batch.readings, found, strict=True)
    readings = [one if new is None else replace(one, needed=new) for one, new in pairs]
    return replace(batch, readings=readings)


def _moved(p: Floats, effects: Floats) -> Floats:
    """Probabilities moved by these log-odds; the same where they are 0, to the last digit."""
    return np.where(effects == 0, p, sigmoid(log_odds_array(p) + effects))


@cache
def _shipped_stop() -> Platt:
    again = "python -m suffice_research.training.stop_calibration --data DIR"
    open_artefact(SHIPPED_STOP, kind=STOP_KIND, version=STOP_VERSION, rebuild=again)
    with data_errors(f"the calibration in {SHIPPED_STOP}", hint=again):
        return dataclass_from_json(Platt, read_json(SHIPPED_STOP / STOP_FILE))


def _open_deep(preset: str) -> PresetJudge:
    if DEEP not in JUDGES.names():
        hint = f"in a clone of the repository, run: pip install ./{PACKAGES['suffice-deep']}"
        raise InputError(
            f"the preset {preset!r} needs suffice-deep, which is not installed", hint=hint
        )
    return cast("PresetJudge", JUDGES.get(DEEP)())


def check_preset(preset: str) -> None:
    if preset not in PRESETS:
        hint = did_you_mean(preset if isinstance(preset, str) else "", PRESETS)
        raise InputError(f"no preset is named {preset!r}", hint=hint)


def open_gate_folder(path: Path | None, preset: str) -> tuple[Path, dict[str, Any]]:
    """The folder of a gate, given or shipped, and its card. Checks the hashes."""
    check_preset(preset)
    shipped = SHIPPED_MODELS / f"gate-{FAST if preset == FAST else STANDARD}"
    folder = shipped if path is None else path
    if str(path) in PRESETS and not folder.exists():
        hint = f"the preset: Gate.load(preset={str(path)!r})"
        raise InputError(f"{path} is not a gate: there is no such folder", hint=hint)
    refit = "python -m suffice_research.training.gate" if path is None else _refit(folder)
    manifest = open_artefact(folder, kind=GATE_KIND, version=GATE_VERSION, rebuild=refit)
    card = dict(manifest.settings)
    for name in ("schema", "model"):
        card.pop(name, None)
    if gone := [what for name, what in GONE.items() if card.get(name)]:
        raise NotReadyError(f"{folder} was fitted with {gone[0]}, which is gone", hint=refit)
    k, names = card.get("k"), [card.get(name) for name in ("reader", "fast")]
    if type(k) is not int or k < 1 or not all(isinstance(one, str | None) for one in names):
        raise DataError(f"the card of {folder} has an invalid `k` or reader name", hint=refit)
    return folder, card


@cache
def _shipped_words() -> WordTable:
    return WordTable.load()


def _readers_of(card: Mapping[str, Any], where: str) -> Readers:
    """The shipped readers of these names; NotReadyError if a gate was fitted with others."""
    reader, fast = (card.get(name) for name in ("reader", "fast"))
    return Readers(
        None if reader is None else Reader.shipped(reader, where=where),
        None if fast is None else _shipped_fast(fast, where),
    )


def open_readers(
    preset: str, reader: Reader | None = None, fast: FastModel | None = None
) -> Readers:
    """The readers of a gate fitted with this preset: those given, otherwise the shipped ones."""
    check_preset(preset)
    if preset not in (STANDARD, FAST):
        hint = f"a gate is opened as {preset}: Gate.load(preset={preset!r})"
        raise InputError(f"a gate is fitted as {STANDARD} or as {FAST}", hint=hint)
    if preset == FAST:
        return NO_READERS
    return Readers(reader or Reader(), fast or FastGate.open())


@dataclass(frozen=True)
class FastGate:
    """The model of the fast gate in a folder, for gates that use its output."""

    name: str  # changes with the gate
    model: CalibratedModel

    @classmethod
    def open(cls, folder: Path | None = None) -> FastGate:
        """Without a folder, open the shipped one."""
        folder = folder or SHIPPED_MODELS / f"gate-{FAST}"
        model = Gate.load(folder, FAST).model
        return cls(sha256_of(folder / MANIFEST)[:16], model)

    def log_odds_of(self, batch: FeatureBatch) -> Floats:
        return self.model.log_odds(self.model.describe(batch).table)


def _shipped_fast(name: str, where: str) -> FastGate:
    """The shipped fast gate; NotReadyError if a gate was fitted with another one."""
    gate = FastGate.open()
    if gate.name != name:
        found = f"{where} was fitted with another fast gate than this suffice has"
        raise NotReadyError(found, hint=_refit(where))
    return gate


def _check_type(value: object, kind: Any, what: str, expected: str, *, hint: str) -> None:
    if not isinstance(value, kind):
        raise InputError(f"{what} is {value!r:.80}, expected {expected}", hint=hint)


def _refit(folder: Path | str) -> str:
    again = f"make it again: suffice adapt labels.jsonl --out {folder}"
    return f"{again}; one that was not adapted: suffice fit … --out {folder}"
