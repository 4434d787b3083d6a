"""What a language model behind the gate gains, and what it costs: `suffice_research.judge_study`.

    python -m suffice_research.judge_study prompts --data DIR --readings FILE --out prompts.jsonl
    python -m suffice_research.judge_study measure --data DIR --readings FILE --answers FILE --study FILE

In between, any server or machine answers the prompts. Of an answer the study keeps the first word,
the log-probabilities of yes and no as the first token, and the tokens:

    {"key": "everyday/0", "text": "no", "logprobs": {"yes": -1.9, "no": -0.2}, "prompt_tokens": 640,
     "completion_tokens": 31}

Lists that the shipped gate has not learned from: our everyday files that are kept for judging, the
test parts of three Wikipedia sets, and COVID-QA. Whatever is learned about the judge is learned on
other questions than those that are counted.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.gold import draw_key
from suffice.errors import InputError
from suffice.evaluation.gate_evaluation import gate_inputs
from suffice.evaluation.metrics import Predictions, auroc, score
from suffice.evaluation.reading_cache import CachedReader
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.searching import RetrievedQuestion, to_labelled_question
from suffice.evaluation.significance import Interval, interval, statistic_interval
from suffice.evaluation.study import Section, Study
from suffice.evaluation.tables import Cell, Table, format_cell
from suffice.gate.extraction import reader_input
from suffice.gate.gate import Gate
from suffice.gate.hits import normalize_hits
from suffice.gate.judge import GateNumbers, JudgeCalibration, JudgedQuestions
from suffice.gate.reader import Reader
from suffice.integrations.judge import (
    MAX_TOKENS,
    VOTE_TOKENS,
    VOTES,
    judge_prompt,
    parse_judgement,
    rotated,
)
from suffice.numeric import log_odds_array, sigmoid
from suffice.storage import BadRecords, package_versions, read_jsonl, sha256_of, write_atomically
from suffice_research.training.gate_data import GateData
from suffice_research.training.promise import check_promise
from suffice_research.training.reader_data import TEST
from suffice_research.training.sources import SEED, ProgressLog, exit_code

EVERYDAY, WIKIPEDIA, COVID = "everyday", "Wikipedia", "COVID-QA"
WIKIPEDIA_SETS = ("hotpotqa", "2wikimultihopqa", "musique")
SIZES = {EVERYDAY: 200, WIKIPEDIA: 201, COVID: 100}
MODEL = "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M"
VOTED = 100  # lists of each domain that are voted on as well
SEEN = {EVERYDAY: "unseen", WIKIPEDIA: "seen: other questions of these sets", COVID: "unseen"}


@dataclass(frozen=True)
class JudgedList:
    """A list to be judged, under a key that finds its answer."""

    key: str
    domain: str
    case: RetrievedQuestion


def judged_lists(data: Path, say: ProgressLog, seed: int = SEED) -> Iterator[JudgedList]:
    found = GateData(data, only=("everyday", "covidqa", *WIKIPEDIA_SETS), say=say)
    by_domain: dict[str, list[RetrievedQuestion]] = {one: [] for one in SIZES}
    for name, kinds in found.unseen(questions=max(SIZES.values())):
        if name.startswith("everyday/"):
            by_domain[EVERYDAY] += kinds["drawn"]
        elif name == "covidqa":
            by_domain[COVID] += kinds[""]
    for name in WIKIPEDIA_SETS:
        most = SIZES[WIKIPEDIA] // len(WIKIPEDIA_SETS)
        by_domain[WIKIPEDIA] += found.judged(name, (TEST,), questions=most)
    for domain, cases in by_domain.items():
        drawn = sorted(cases, key=lambda one: draw_key(seed, f"judge\0{one.question.text}"))
        for at, case in enumerate(drawn[: SIZES[domain]]):
            yield JudgedList(f"{domain}/{at}", domain, case)


def _prompts(args: argparse.Namespace, say: ProgressLog) -> None:
    lists = list(judged_lists(args.data, say))
    with args.out.open("w", encoding="utf-8") as file:
        for one in lists:
            (pair,) = gate_inputs([one.case])
            given = reader_input(normalize_hits(*pair[:2], k=10))
            for vote in range(VOTES if int(one.key.rpartition("/")[2]) < VOTED else 1):
                row = {
                    "key": f"{one.key}#{vote}" if vote else one.key,
                    "messages": [{"role": "user", "content": judge_prompt(*rotated(given, vote))}],
                    "max_tokens": VOTE_TOKENS if vote else MAX_TOKENS,
                    "first_token_logprobs": ["yes", "no"],
                }
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    say(f"{len(lists)} prompts at {args.out}")
    if args.readings is not None:  # the gate may read while the judge does
        _gate_with(args.readings, lists, say)


def _gate_with(readings: Path, lists: Sequence[JudgedList], say: ProgressLog) -> Gate:
    """The shipped gate, which has read every list."""
    gate = Gate.load()
    reader = CachedReader(Reader(threads=1), readings, progress=say.progress, total=len(lists))
    for one in lists:
        example = to_labelled_question(one.case)
        hits = normalize_hits(example.question, example.hits, documents=example.documents, k=10)
        reader.read(*reader_input(hits))
    return replace(gate, encoders=replace(gate.encoders, reader=reader))


# ---- what the judge said


@dataclass(frozen=True)
class Answer:
    """What the judge said to one prompt."""

    complete: bool | None  # None: neither yes nor no
    log_odds: float | None  # None: no log-probabilities
    tokens_in: int
    tokens_out: int
    seconds: float | None = None  # where the server was timed


NO_ANSWER = Answer(None, None, 0, 0)


def read_answers(path: Path) -> dict[str, Answer]:
    found = {}
    for record in read_jsonl(path, BadRecords()):
        row = record.value
        parsed = parse_judgement(str(row.get("text", "")), 0)
        given = row.get("logprobs") or {}
        scores: list[Any] = [given.get(word) for word in ("yes", "no")]
        known = all(isinstance(one, int | float) and math.isfinite(one) for one in scores)
        found[str(row["key"])] = Answer(
            None if parsed is None else parsed.complete,
            float(scores[0]) - float(scores[1]) if known else None,
            int(row.get("prompt_tokens", 0)),
            int(row.get("completion_tokens", 0)),
            float(row["seconds"]) if isinstance(row.get("seconds"), int | float) else None,
        )
    return found


@dataclass(frozen=True)
class Domain:
    """The lists of one domain: what gate and judge say, and the truth."""

    name: str
    questions: JudgedQuestions
    texts: tuple[str, ...]
    answers: tuple[Answer, ...]
    votes: tuple[float | None, ...]  # log-odds by votes, where there were some
    threshold: float


def _domains(
    gate: Gate, lists: Sequence[JudgedList], answers: Mapping[str, Answer]
) -> list[Domain]:
    found = []
    for name in SIZES:
        some = [one for one in lists if one.domain == name and (not answers or one.key in answers)]
        if not some:
            raise InputError(f"no answer is about {name}", hint="answer the prompts of `prompts`")
        verdicts = gate.check_batch(gate_inputs([one.case for one in some]), explain=False)
        p, low, high = (
            np.array([getattr(one.estimate, part) for one in verdicts])
            for part in ("p_complete", "low", "high")
        )
        said = tuple(answers.get(one.key, NO_ANSWER) for one in some)
        scores = np.array([math.nan if (x := one.log_odds) is None else x for one in said])
        complete = np.array([one.case.complete for one in some])
        numbers = GateNumbers(log_odds_array(p), low, high)
        found.append(
            Domain(
                name,
                JudgedQuestions(numbers, scores, complete),
                tuple(one.case.question.text for one in some),
                said,
                tuple(_voted([answers.get(key) for key in _vote_keys(one.key)]) for one in some),
                0.5 if gate.policy.answer_at is None else gate.policy.answer_at,
            )
        )
    return found


def _vote_keys(key: str) -> list[str]:
    return [key, *(f"{key}#{vote}" for vote in range(1, VOTES))]


def _voted(said: Sequence[Answer | None]) -> float | None:
    """As `ModelJudge` counts votes; None where not all are there."""
    if any(one is None for one in said):
        return None
    yes = [one.complete for one in said if one is not None and one.complete is not None]
    return math.log((sum(yes) + 0.5) / (len(yes) - sum(yes) + 0.5)) if yes else None


# ---- gate and judge

SHARES = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)
FOLDS, FORTY, DRAWS = 5, 40, 60
OWN, OTHERS, NONE = "labels of the domain", "labels of the other domains", "no labels"


def _fit(some: JudgedQuestions, threshold: float) -> JudgeCalibration:
    found = JudgeCalibration.fit("judge", some.scores, some.complete, some.numbers.odds)
    return found.for_questions(some.numbers, threshold=threshold, share=1.0)


def _agreement(some: JudgedQuestions, threshold: float) -> JudgeCalibration:
    """What confident verdicts support: no label is looked at."""
    p = sigmoid(some.numbers.odds)
    sure = (p <= 0.1) | (p >= 0.9)
    found = JudgeCalibration.fit("judge", some.scores[sure], p[sure])
    return found.for_questions(some.numbers, threshold=threshold, share=1.0)


def _joined(parts: Sequence[JudgedQuestions]) -> JudgedQuestions:
    numbers = GateNumbers(
        *(np.concatenate([getattr(one.numbers, name) for one in parts])
          for name in ("odds", "low", "high"))
    )  # fmt: skip
    scores, complete = (
        np.concatenate([getattr(one, name) for one in parts]) for name in ("scores", "complete")
    )
    return JudgedQuestions(numbers, scores, complete)


def _learned(domains: Sequence[Domain], one: Domain, by: str, seed: int) -> list[Any]:
    """(rows, calibration) for each fold: what is learned never is of these rows."""
    count = len(one.questions.complete)
    every = np.ones(count, bool)
    if by == OTHERS:
        rest = _joined([other.questions for other in domains if other is not one])
        known = _fit(rest, one.threshold)
        gains = known.for_questions(one.questions.numbers, threshold=one.threshold, share=1.0)
        return [(every, gains)]
    if by == NONE:
        return [(every, _agreement(one.questions, one.threshold))]
    fold = np.random.default_rng(seed).permutation(count) % FOLDS
    return [(fold == at, _fit(one.questions[fold != at], one.threshold)) for at in range(FOLDS)]


@dataclass(frozen=True)
class Curve:
    """p of gate and judge together by the share that is sent."""

    p: Mapping[float, npt.NDArray[np.float64]]
    sent: Mapping[float, float]
    weight: tuple[float, float]  # of a yes and of a no, the mean over folds


def _curve(domains: Sequence[Domain], one: Domain, by: str, seed: int) -> Curve:
    learned = _learned(domains, one, by, seed)
    p, sent = {}, {}
    for share in SHARES:
        p[share] = sigmoid(one.questions.numbers.odds)
        count = 0
        for rows, known in learned:
            if share:
                some = one.questions[rows]
                p[share][rows] = known.probabilities(some.scores, some.numbers, share)
                count += int(known.sends(some.numbers, share).sum())
        sent[share] = count / len(p[share])
    weight = tuple(float(np.mean([getattr(known, name) for _, known in learned]))
                   for name in ("yes", "no"))  # fmt: skip
    return Curve(p, sent, (weight[0], weight[1]))


def _predictions(one: Domain, p: npt.NDArray[np.float64]) -> Predictions:
    return Predictions(one.questions.complete.astype(float), p)


def _curve_table(domains: Sequence[Domain], by: str, seed: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in domains:
        curve = _curve(domains, one, by, seed)
        for share in SHARES:
            found = _predictions(one, curve.p[share])
            right = float(((curve.p[share] >= one.threshold) == one.questions.complete).mean())
            rows.append(
                (one.name, SEEN[one.name], len(found), share, curve.sent[share],
                 interval(found, "auroc"), _gained(one, curve.p[0.0], curve.p[share]),
                 score(found, "ece"), right, *curve.weight)
            )  # fmt: skip
    columns = (
        "lists", "seen", "n", "share allowed", "sent", "AUROC", "gained", "ECE", "right",
        "a yes", "a no",
    )  # fmt: skip
    return Table(f"By share, {by}", columns, tuple(rows), CURVE_SAYS[by])


def _gained(
    one: Domain, before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]
) -> Interval:
    """By how much AUROC is above the gate's, on the same lists."""
    truth = one.questions.complete.astype(float)

    def gained(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(auroc(truth, after, weights) - auroc(truth, before, weights))

    return statistic_interval(gained, len(truth))


SHARE_SAYS = (
    "Allowed is at most this share; sent is less where fewer can change the decision. Gained: AUROC above that of the gate alone, "
    "with the interval of the paired difference. Right: answered at the gate's threshold where "
    "the list is complete, not answered where it is not. A yes, a no: how far the judge's word moves the log-odds on average; 0 is no "
    "weight."
)
PROMISE_SAYS = (
    "As for the gate: the threshold is chosen on one random half and counted on the other, 200 times; delta 0.1. Exceeded: the counted "
    "share of incomplete among the answered was above alpha. Broken: by more than chance allows (exact binomial test, 5 %)."
)
CURVE_SAYS = {
    OWN: "The weight of the judge is learned on four fifths of the lists of the domain, and used on the fifth.",
    OTHERS: "The weight is learned on the lists of the other two domains.",
    NONE: "The weight is learned from the gate's confident verdicts of the domain; no label is looked at.",
}


def _alone_table(domains: Sequence[Domain]) -> Table:
    """The judge by itself, by log-probabilities and by votes."""
    rows: list[tuple[Cell, ...]] = []
    for one in domains:
        complete = one.questions.complete
        usable = np.isfinite(one.questions.scores)
        said = np.array([bool(answer.complete) for answer in one.answers])
        parsed = np.array([answer.complete is not None for answer in one.answers])
        judged = Predictions(complete[usable].astype(float), sigmoid(one.questions.scores[usable]))
        voted = np.array([vote is not None for vote in one.votes])
        pair: list[Cell] = [None, None]
        if voted.any():
            both = voted & usable
            votes = np.array([math.nan if vote is None else vote for vote in one.votes])
            for at, scores in enumerate((one.questions.scores, votes)):
                found = Predictions(complete[both].astype(float), sigmoid(scores[both]))
                pair[at] = interval(found, "auroc")
        gate = _predictions(one, sigmoid(one.questions.numbers.odds))
        rows.append(
            (one.name, len(complete), float(complete.mean()), interval(gate, "auroc"),
             interval(judged, "auroc"), score(judged, "ece"), float(parsed.mean()),
             float(said[parsed].mean()) if parsed.any() else None,
             float((said == complete)[parsed].mean()) if parsed.any() else None,
             int(voted.sum()), *pair)
        )  # fmt: skip
    columns = (
        "lists", "n", "complete", "gate, AUROC", "judge, AUROC", "judge, ECE", "parsed",
        "says yes", "right", "voted on", "… by log-probabilities", "… by three votes",
    )  # fmt: skip
    return Table("Alone", columns, tuple(rows))


def _forty_table(domains: Sequence[Domain], seed: int) -> Table:
    """Forty labels of the domain, drawn often: what comes of it on the other lists."""
    rows: list[tuple[Cell, ...]] = []
    for one in domains:
        rng = np.random.default_rng(seed)
        for share in (0.1, 0.25, 1.0):
            gains, counted = [], []
            for _ in range(DRAWS):
                order = rng.permutation(len(one.questions.complete))
                known = _fit(one.questions[order[:FORTY]], one.threshold)
                rest = one.questions[order[FORTY:]]
                labels = rest.complete.astype(float)
                after, before = (
                    float(score(Predictions(labels, p), "auroc") or 0.0)
                    for p in (
                        known.probabilities(rest.scores, rest.numbers, share),
                        sigmoid(rest.numbers.odds),
                    )
                )
                gains.append(after - before)
                counted.append(known.counts)
            low, high = np.quantile(gains, (0.025, 0.975))
            spread = Interval(float(np.mean(gains)), float(low), float(high))
            rows.append((one.name, share, float(np.mean(counted)), spread))
    note = (
        f"{DRAWS} draws of {FORTY} labels. In brackets: where 95 % of the draws lie. Weighed: the share of draws that give "
        "the judge any weight."
    )
    columns = ("lists", "share allowed", "weighed", "AUROC gained")
    return Table("Forty labels", columns, tuple(rows), note)


def _promise_table(domains: Sequence[Domain], seed: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in domains:
        curve = _curve(domains, one, OWN, seed)
        for share in (0.0, 0.25, 1.0):
            found = check_promise(
                curve.p[share], one.questions.complete, one.texts, alphas=(0.1, 0.2), seed=seed
            )
            rows += [
                (one.name, share, kept.alpha, kept.exceeded, kept.broken, kept.never, kept.coverage)
                for kept in found
            ]
    columns = ("lists", "share allowed", "alpha", "exceeded", "broken", "never", "coverage")
    return Table("The promise", columns, tuple(rows))


def _cost_table(domains: Sequence[Domain]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for share in SHARES[1:]:
        for one in domains:
            tokens_in, tokens_out = (
                float(np.mean([getattr(answer, name) for answer in one.answers]))
                for name in ("tokens_in", "tokens_out")
            )
            calls = round(1000 * share)
            timed = [answer.seconds for answer in one.answers if answer.seconds is not None]
            seconds = calls * float(np.mean(timed)) if timed else None
            tokens = round(calls * tokens_in), round(calls * tokens_out)
            rows.append((one.name, share, calls, *tokens, seconds))
    note = "At most: fewer are sent where fewer can change the decision. Seconds: where the server was timed."
    columns = ("lists", "share allowed", "calls", "tokens in", "tokens out", "seconds")
    return Table("Cost per thousand questions", columns, tuple(rows), note)


# ---- simulated judges

ACCURACIES = (0.6, 0.7, 0.8, 0.9, 0.95)
QUARTER_AT = 0.9


def _simulated_world(count: int, accuracy: float, rng: np.random.Generator) -> JudgedQuestions:
    """A calibrated gate that is sure of most questions, and a judge of known accuracy."""
    p = np.clip(rng.beta(0.3, 0.3, count), 1e-3, 1 - 1e-3)
    complete = rng.random(count) < p
    return JudgedQuestions(
        GateNumbers(log_odds_array(p), p, p), _simulated(complete, accuracy, rng), complete
    )


def _simulated(
    complete: npt.NDArray[np.bool_], accuracy: float, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    says = np.where(rng.random(len(complete)) < accuracy, complete, ~complete)
    return np.where(says, 2.0, -2.0)


def _weight_table(seed: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for accuracy in ACCURACIES:
        rng = np.random.default_rng(seed)
        row: list[Cell] = [accuracy, math.log(accuracy / (1 - accuracy))]
        for labels in (FORTY, 400):
            worth = []
            for _ in range(DRAWS):
                known = _fit(_simulated_world(labels, accuracy, rng), 0.5)
                worth.append((known.yes - known.no) / 2)
            low, high = np.quantile(worth, (0.025, 0.975))
            row.append(Interval(float(np.mean(worth)), float(low), float(high)))
        rows.append(tuple(row))
    columns = ("accuracy", "theory", "from 40 labels", "from 400 labels")
    note = "In brackets: where 95 % of the draws lie. No word counts more than a judge of accuracy 0.95 deserves."
    return Table("The weight of simulated judges", columns, tuple(rows), note)


def _worth(p: npt.NDArray[np.float64], complete: npt.NDArray[np.bool_], threshold: float) -> float:
    """What decisions at this threshold are worth: its own utility, p - t where it answers."""
    return float(np.where(p >= threshold, complete - threshold, 0.0).mean())


def _quarter_table(domains: Sequence[Domain], seed: int) -> Table:
    """What a quarter of the calls gains, of what all of them gain."""
    rows: list[tuple[Cell, ...]] = []
    worlds: list[tuple[str, JudgedQuestions | None, float]] = [("simulated gate", None, 0.5)]
    worlds += [(f"the gate on {one.name}", one.questions, one.threshold) for one in domains]
    for name, known_lists, threshold in worlds:
        for accuracy in ACCURACIES:
            rng = np.random.default_rng(seed)
            found = []
            for _ in range(DRAWS):
                world = known_lists or _simulated_world(2000, accuracy, rng)
                if known_lists is not None:
                    world = replace(world, scores=_simulated(world.complete, accuracy, rng))
                known = _fit(world, threshold)
                labels = world.complete.astype(float)
                p = [
                    known.probabilities(world.scores, world.numbers, share) if share
                    else sigmoid(world.numbers.odds)
                    for share in (0.0, 0.25, 1.0)
                ]  # fmt: skip
                found.append(
                    [_worth(one, world.complete, threshold) for one in p]
                    + [float(score(Predictions(labels, one), "auroc") or 0.0) for one in p]
                )
            means = np.mean(found, axis=0)
            decided, ranked = (
                (means[at + 1] - means[at]) / gain if (gain := means[at + 2] - means[at]) > 1e-4
                else None
                for at in (0, 3)
            )  # fmt: skip
            rows.append(
                (name, accuracy, *(float(one) for one in means[3:]),
                 None if ranked is None else float(ranked),
                 None if decided is None else float(decided))
            )  # fmt: skip
    columns = (
        "gate", "accuracy", "AUROC, gate alone", "… a quarter sent", "… all sent",
        "a quarter gains, of AUROC", "… of decisions",
    )  # fmt: skip
    note = (
        "Of decisions: at the gate's threshold t, an answer to a complete list is worth 1 - t, to an incomplete one -t. The "
        "weight is learned on the same draws, so that the curve shows whom to send, not how well a weight is learned."
    )
    return Table("Simulated judges, a quarter of the calls", columns, tuple(rows), note)


# ---- the study


def judge_study(
    domains: Sequence[Domain], *, data: Mapping[str, str], settings: Mapping[str, Any], seed: int
) -> Study:
    quarter = _quarter_table(domains, seed)
    judged: tuple[Section, ...] = ()
    summary: tuple[str, ...] = ()
    if any(one.answers[0] is not NO_ANSWER for one in domains):
        curves = {by: _curve_table(domains, by, seed) for by in (OWN, OTHERS, NONE)}
        summary = _summary(domains, curves, quarter)
        judged = (
            Section("The judge alone", (_alone_table(domains),)),
            Section("Gate and judge by the share sent", tuple(curves.values()), SHARE_SAYS),
            Section("With forty labels", (_forty_table(domains, seed),)),
            Section("The promise", (_promise_table(domains, seed),), PROMISE_SAYS),
            Section("What it costs", (_cost_table(domains),)),
        )
    return Study(
        name="judge",
        title="A judge behind the gate",
        seed=seed,
        settings=settings,
        data=data,
        sections=(
            *judged,
            Section("Simulated judges", (_weight_table(seed), quarter)),
        ),
        summary=summary,
        commit=source_commit(),
        packages=package_versions(),
    )


def _keep(args: argparse.Namespace, say: ProgressLog) -> None:
    """What the study needs of each answer: no text but the first word."""
    rows = []
    for key, one in sorted(read_answers(args.answers).items()):
        word = "" if one.complete is None else "yes" if one.complete else "no"
        given = None if one.log_odds is None else {"yes": round(one.log_odds, 4), "no": 0.0}
        row: dict[str, Any] = {"key": key, "text": word, "logprobs": given}
        row |= {"prompt_tokens": one.tokens_in, "completion_tokens": one.tokens_out}
        rows.append(row if one.seconds is None else {**row, "seconds": round(one.seconds, 4)})
    write_atomically(args.out, (json.dumps(row) + "\n" for row in rows))
    say(f"{len(rows):,} answers at {args.out}")


def _summary(
    domains: Sequence[Domain], curves: Mapping[str, Table], quarter: Table
) -> tuple[str, ...]:
    """What came out, in sentences."""
    lines = []
    for one in domains:
        gate = _predictions(one, sigmoid(one.questions.numbers.odds))
        usable = np.isfinite(one.questions.scores)
        judged = Predictions(
            one.questions.complete[usable].astype(float), sigmoid(one.questions.scores[usable])
        )
        said = [answer.complete for answer in one.answers if answer.complete is not None]
        last = {by: [row for row in table.rows if row[0] == one.name][-1]
                for by, table in curves.items()}  # fmt: skip
        shown = ", ".join(f"{format_cell(row[6])} with {by}" for by, row in last.items())
        lines.append(
            f"{one.name}: AUROC {format_cell(interval(gate, 'auroc'))} by the gate alone, "
            f"{format_cell(interval(judged, 'auroc'))} by the judge alone, which says yes to {np.mean(said):.0%}. With all "
            f"questions allowed, both together gain {shown}."
        )
    quarters = [row for row in quarter.rows if row[1] == QUARTER_AT and row[6] is not None]
    shown = ", ".join(f"{row[6]:.0%} ({row[0]})" for row in quarters)
    lines.append(
        f"A simulated judge of accuracy {QUARTER_AT}: a quarter of the calls gives this share of what all of them gain for decisions: {shown}."
    )
    return tuple(lines)


def _measure(args: argparse.Namespace, say: ProgressLog) -> None:
    answers = {} if args.answers is None else read_answers(args.answers)
    lists = list(judged_lists(args.data, say))
    domains = _domains(_gate_with(args.readings, lists, say), lists, answers)
    say("gate and judge are compared")
    study = judge_study(
        domains,
        data={} if args.answers is None else {args.answers.name: sha256_of(args.answers)},
        settings={"model": args.model, "prompt": "answering/prompts/judge.txt", "shares": SHARES},
        seed=SEED,
    )
    say(f"study at {study.save(args.study)}")


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m suffice_research.judge_study")
    commands = parser.add_subparsers(required=True)
    prompts = commands.add_parser("prompts", help="write a request for each list")
    prompts.set_defaults(run=_prompts)
    prompts.add_argument("--out", type=Path, required=True)
    measure = commands.add_parser("measure", help="measure gate and judge together")
    measure.set_defaults(run=_measure)
    measure.add_argument("--answers", type=Path, help="what the judge said; only simulated without")
    measure.add_argument("--study", type=Path, required=True, help="write the study here")
    measure.add_argument("--model", default=MODEL, help="the judge's name, for the page")
    keep = commands.add_parser("keep", help="keep of the answers what the study needs")
    keep.set_defaults(run=_keep)
    keep.add_argument("--answers", type=Path, required=True)
    keep.add_argument("--out", type=Path, required=True)
    for one in (prompts, measure):
        one.add_argument("--data", type=Path, required=True, help="the folder of data sets")
        one.add_argument("--readings", type=Path, help="keeps what the reader says")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _options().parse_args(arguments)
    return exit_code(lambda: args.run(args, ProgressLog()))


if __name__ == "__main__":
    sys.exit(main())
