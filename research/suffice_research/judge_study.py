"""The gain and cost of a language model behind the gate: `suffice_research.judge_study`.

    python -m suffice_research.judge_study prompts --data DIR --readings FILE --out prompts.jsonl
    python -m suffice_research.judge_study ask prompts.jsonl --model qwen --base-url URL
    python -m suffice_research.judge_study time prompts.jsonl --model qwen.gguf --out times.jsonl
    python -m suffice_research.judge_study read --data DIR --readings FILE
    python -m suffice_research.judge_study measure --study research/results/runs/judge.json

Any server with log-probabilities can answer the prompts; an interrupted `ask` resumes. `read`
stores the gate's output for each list, `ask` the judge's, `time` the time it took, all in
research/judge; `measure` needs nothing else, and `again` recomputes costs and orders of a stored
study. Of an answer the study stores the word about the question (none if a control question is
answered wrongly), its log-odds, and the tokens:

    {"key": "everyday/0", "text": "no", "log_odds": -1.7, "controls": true, "prompt_tokens": 640,
     "completion_tokens": 31}

The lists are ones that the shipped gate was not trained on: our held-out everyday files, the test
parts of three Wikipedia sets, and COVID-QA. Whatever is learned about the judge is learned on other
questions than those it is evaluated on.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.gold import draw_key
from suffice.errors import InputError, ModelError
from suffice.evaluation.gate_evaluation import gate_inputs
from suffice.evaluation.metrics import Predictions, auroc, score
from suffice.evaluation.reading_cache import CachedReader
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.searching import RetrievedQuestion, to_labelled_question
from suffice.evaluation.significance import (
    Interval,
    interval,
    mean_interval,
    statistic_interval,
)
from suffice.evaluation.study import Section, Study
from suffice.evaluation.tables import Cell, Table, format_cell
from suffice.gate.calibration import Platt
from suffice.gate.extraction import reader_input
from suffice.gate.gate import Gate
from suffice.gate.hits import normalize_hits
from suffice.gate.judge import GateNumbers, JudgeCalibration, JudgedQuestions, expected_gain
from suffice.gate.reader import Reader
from suffice.integrations.judge import (
    MAX_TOKENS,
    VOTE_TOKENS,
    VOTES,
    JudgePrompt,
    judge_prompt,
    parse_judgement,
    rotated,
    token_log_odds,
)
from suffice.integrations.openai import OpenAIModel, ScoredAnswer
from suffice.numeric import log_odds_array, sigmoid
from suffice.storage import BadRecords, package_versions, read_jsonl, sha256_of, write_atomically
from suffice.storage.fields import content_id, dataclass_from_json
from suffice_research.judge_orders import (
    LATER,
    NEUTRAL,
    NEW,
    PLACES,
    WRITTEN_WITH,
    Obedient,
    insert,
)
from suffice_research.local_model import serve_gguf
from suffice_research.training.cases import TEST
from suffice_research.training.gate_data import GateData
from suffice_research.training.promise import check_promise
from suffice_research.training.sources import SEED, ProgressLog, exit_code

EVERYDAY, WIKIPEDIA, COVID = "everyday", "Wikipedia", "COVID-QA"
WIKIPEDIA_SETS = ("hotpotqa", "2wikimultihopqa", "musique")
SIZES = {EVERYDAY: 200, WIKIPEDIA: 201, COVID: 100}
MODEL = "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M"
ORDERED, ORDERS_EACH = 6, 5  # lists per domain with orders; orders of each kind per list
ORDERS = {
    "known": ("known when the rules were written", WRITTEN_WITH),
    "new": ("written after the rules", NEW),
    "later": ("written after rules and controls", LATER),
}
VOTED = 100  # lists per domain that are also voted on
KEPT = Path("research/judge")
SEEN = {EVERYDAY: "unseen", WIKIPEDIA: "seen: other questions of these sets", COVID: "unseen"}


@dataclass(frozen=True)
class JudgedList:
    """A list to judge, with a key to find its answer."""

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
                prompt = judge_prompt(*rotated(given, vote))
                row = {
                    "key": f"{one.key}#{vote}" if vote else one.key,
                    "messages": [{"role": "user", "content": prompt.text}],
                    "known": prompt.known,
                    "hits": prompt.hits,
                    "max_tokens": VOTE_TOKENS if vote else MAX_TOKENS,
                }
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    say(f"{len(lists)} prompts at {args.out}")
    if args.readings is not None:  # the gate may read while the judge does
        _gate_with(args.readings, lists, say)


def _gate_with(readings: Path, lists: Sequence[JudgedList], say: ProgressLog) -> Gate:
    """The shipped gate, with the readings of every list."""
    gate = Gate.load()
    reader = CachedReader(Reader(threads=1), readings, progress=say.progress)
    reader.read_all((to_labelled_question(one.case) for one in lists), k=gate.card["k"])
    return replace(gate, readers=replace(gate.readers, reader=reader))


# ---- the gate's output


def _read(args: argparse.Namespace, say: ProgressLog) -> None:
    """Store the gate's output for every list, and for some with orders in them, without texts."""
    lists = list(judged_lists(args.data, say))
    gate = _gate_with(args.readings, lists, say)
    rows = []
    for domain in SIZES:
        some = [one for one in lists if one.domain == domain]
        verdicts = gate.check_batch(gate_inputs([one.case for one in some]), explain=False)
        for one, verdict in zip(some, verdicts, strict=True):
            said = verdict.estimate
            odds = float(log_odds_array(np.array([said.p_complete]))[0])
            row = {"key": one.key, "question": content_id("", one.case.question.text)}
            numbers = {"odds": odds, "low": said.low, "high": said.high}
            rows.append({**row, **numbers, "complete": bool(one.case.complete),
                         "threshold": gate.policy.answer_at})  # fmt: skip
    write_atomically(args.out, (json.dumps(row) + "\n" for row in rows))
    say(f"{len(rows)} lists at {args.out}")
    tried: list[dict[str, Any]] = []
    for domain in SIZES:
        for one in [one for one in lists if one.domain == domain][:ORDERED]:
            tried += _with_orders(gate, one, turn=len(tried) // len(ORDERS))
            say(f"orders in {one.key}")
    write_atomically(args.orders, (json.dumps(row) + "\n" for row in tried))
    say(f"{len(tried)} lists with an order at {args.orders}")


def _with_orders(gate: Gate, one: JudgedList, turn: int) -> Iterator[dict[str, Any]]:
    """Some orders in one list, starting at this turn, each with a neutral sentence at the same
    place for comparison."""
    at = int(one.key.rpartition("/")[2])
    (pair,) = gate_inputs([one.case])
    question, titles, texts = reader_input(normalize_hits(*pair[:2], k=10))
    place = list(PLACES)[at % len(PLACES)]

    def odds_with(said: str) -> float:
        hits = [{"title": title, "text": text} for title, text in
                zip(*insert(place, titles, texts, said), strict=True)]  # fmt: skip
        p = gate.check(question, hits, explain=False).p_complete
        return round(float(log_odds_array(np.array([p]))[0]), 4)

    plain = NEUTRAL[at % len(NEUTRAL)]
    nothing, neutral = odds_with(""), odds_with(plain)
    for name, (_, orders) in ORDERS.items():
        for step in range(ORDERS_EACH):
            order = orders[(turn + step) % len(orders)]
            lists = [(question, *insert(place, titles, texts, one))
                     for one in ("", plain, order.text)]  # fmt: skip
            yield {
                "key": one.key, "orders": name, "place": place, "wants": order.wants, "aim": order.aim,
                "all": [_said(Obedient(order), *one) for one in lists],
                "strangers": [_said(Obedient(order, ours=False), *one) for one in lists],
                "nothing": nothing, "neutral": neutral, "order": odds_with(order.text),
            }  # fmt: skip


def _said(model: Obedient, question: str, titles: Sequence[str], texts: Sequence[str]) -> str:
    """The word that counts: none if it cannot be parsed, or a control is answered wrongly."""
    prompt = judge_prompt(question, titles, texts)
    (answer,) = model.complete([prompt.text])
    found = parse_judgement(answer, prompt)
    return "" if found is None or found.wrong else "yes" if found.complete else "no"


# ---- time


@dataclass(frozen=True)
class Timing:
    """How long some prompts took on one machine, with `at_once` in parallel."""

    machine: str
    at_once: int
    prompts: int
    tokens_in: int
    seconds: float
    cpu_seconds: float | None = None  # of all cores; None: the server is not our own process

    @property
    def counted(self) -> float:
        """Processor time if known, since it does not depend on the load of the machine."""
        return self.seconds if self.cpu_seconds is None else self.cpu_seconds

    def seconds_for(self, tokens_in: float) -> float:
        """Extrapolated from these prompts: nearly all of the time is spent reading them."""
        return tokens_in * self.counted / self.tokens_in


def read_times(path: Path) -> list[Timing]:
    rows = [record.value for record in read_jsonl(path, BadRecords())]
    return [dataclass_from_json(Timing, row) for row in rows]


def _time(args: argparse.Namespace, say: ProgressLog) -> None:
    """Ask some prompts of each domain as `ModelJudge` would, and record the time."""
    rows = [record.value for record in read_jsonl(args.prompts, BadRecords())]
    rows = [row for row in rows if "#" not in row["key"]]
    if args.max_chars is not None:
        rows = [row for row in rows if len(row["messages"][0]["content"]) <= args.max_chars]
    if not (chosen := _spread_by_length(rows, args.lists)):
        raise InputError(f"{args.prompts} has no such prompt", hint="raise --lists or --max-chars")
    if args.base_url is None:
        with serve_gguf(Path(args.model)) as model:
            found = _timed(model, chosen, args, say)
    else:
        model = OpenAIModel(
            args.model, base_url=args.base_url, timeout_s=600.0, concurrency=args.at_once
        )
        found = _timed(model, chosen, args, say)
    known = [one for one in read_times(args.out) if one.machine != found.machine
             ] if args.out.is_file() else []  # fmt: skip
    write_atomically(args.out, (json.dumps(asdict(one)) + "\n" for one in (*known, found)))
    say(f"{found.prompts} prompts in {found.seconds:.1f} s at {args.out}")


def _spread_by_length(
    rows: Sequence[Mapping[str, Any]], most: int | None
) -> list[Mapping[str, Any]]:
    """Equally many from each domain, short and long ones, in turns."""
    if most is None:
        return list(rows)
    found = []
    for domain in SIZES:
        some = [row for row in rows if row["key"].startswith(f"{domain}/")]
        some.sort(key=lambda row: len(row["messages"][0]["content"]))
        each = min(len(some), most // len(SIZES))
        found += [some[(2 * at + 1) * len(some) // (2 * each)] for at in range(each)]
    return sorted(found, key=lambda row: str(row["key"].rpartition("/")[2]))


def _timed(
    model: OpenAIModel, rows: Sequence[Mapping[str, Any]], args: argparse.Namespace,
    say: ProgressLog,
) -> Timing:  # fmt: skip
    prompts = [row["messages"][0]["content"] for row in rows]
    started, cpu = time.monotonic(), _cpu_of_children()
    tokens = 0
    # One by one unless the server handles several: waiting in a queue is not response time.
    steps = [prompts] if args.at_once > 1 else [[one] for one in prompts]
    done = 0
    for step in steps:
        for _, answer in model.iter_scored(step, max_tokens=MAX_TOKENS):
            if isinstance(answer, ModelError):
                raise answer
            if answer.tokens is None:
                raise ModelError("the server does not count tokens", hint="use another server")
            tokens += answer.tokens[0]
            done += 1
            say.progress("prompts", done, len(prompts))
    seconds, used = time.monotonic() - started, _cpu_of_children()
    spent = None if used is None or cpu is None or args.base_url else round(used - cpu, 2)
    return Timing(args.machine, args.at_once, len(prompts), tokens, round(seconds, 2), spent)


def _cpu_of_children() -> float | None:
    """Processor time, in seconds, of this process's children; None without psutil."""
    try:
        import psutil
    except ImportError:
        return None
    times = [one.cpu_times() for one in psutil.Process().children(recursive=True)]
    return float(sum(one.user + one.system for one in times))


# ---- the judge's answers


@dataclass(frozen=True)
class Answer:
    """The judge's answer to one prompt."""

    complete: bool | None  # None: neither yes nor no
    log_odds: float | None  # None: no log-probabilities
    tokens_in: int
    tokens_out: int
    controls: bool = False  # whether the prompt had control questions


NO_ANSWER = Answer(None, None, 0, 0)


def read_answers(path: Path) -> dict[str, Answer]:
    found = {}
    for record in read_jsonl(path, BadRecords()):
        row = record.value
        log_odds: Any = row.get("log_odds")
        known = isinstance(log_odds, int | float) and math.isfinite(log_odds)
        found[str(row["key"])] = Answer(
            {"yes": True, "no": False}.get(row.get("text", "")),
            float(log_odds) if known else None,
            int(row.get("prompt_tokens", 0)),
            int(row.get("completion_tokens", 0)),
            bool(row.get("controls")),
        )
    return found


def _ask(args: argparse.Namespace, say: ProgressLog) -> None:
    """Ask a server, and store what the study needs from each answer: no text but one word."""
    known = set(read_answers(args.answers)) if args.answers.is_file() else set()
    rows = [record.value for record in read_jsonl(args.prompts, BadRecords())]
    rows = [row for row in rows if row["key"] not in known]
    model = OpenAIModel(
        args.model, base_url=args.base_url, timeout_s=600.0, concurrency=args.at_once
    )
    done = 0
    with args.answers.open("a", encoding="utf-8") as file:
        for tokens in (MAX_TOKENS, VOTE_TOKENS):
            some = [row for row in rows if row["max_tokens"] == tokens]
            prompts = [row["messages"][0]["content"] for row in some]
            for at, answer in model.iter_scored(prompts, max_tokens=tokens):
                if isinstance(answer, ModelError):
                    raise answer
                file.write(json.dumps(_kept_answer(some[at], answer)) + "\n")
                file.flush()
                done += 1
                say.progress("prompts", done, len(rows))
    say(f"{done:,} answers at {args.answers}; {len(known):,} were there")


def _kept_answer(row: Mapping[str, Any], answer: ScoredAnswer) -> dict[str, Any]:
    prompt = JudgePrompt("", tuple(row["known"]), tuple(row["hits"]))
    parsed = parse_judgement(answer.text, prompt)
    counts = parsed is not None and not parsed.wrong
    log_odds = token_log_odds(answer.scores, prompt.place) if counts else None
    used_in, used_out = answer.tokens or (0, 0)
    return {
        "key": row["key"], "text": ("yes" if parsed.complete else "no") if parsed and counts else "",
        "log_odds": log_odds, "controls": True,
        "prompt_tokens": used_in, "completion_tokens": used_out,
    }  # fmt: skip


@dataclass(frozen=True)
class Domain:
    """The lists of one domain: outputs of gate and judge, and the truth."""

    name: str
    questions: JudgedQuestions
    texts: tuple[str, ...]  # a hash per question; equal questions have equal hashes
    answers: tuple[Answer, ...]
    votes: tuple[float | None, ...]  # log-odds by votes, if there are any
    threshold: float


def read_domains(path: Path, answers: Mapping[str, Answer]) -> list[Domain]:
    """The stored output of `read`, with the judge's answers."""
    rows = [record.value for record in read_jsonl(path, BadRecords())]
    found = []
    for name in SIZES:
        some = [row for row in rows if row["key"].startswith(f"{name}/")]
        some = [row for row in some if not answers or row["key"] in answers]
        if not some:
            raise InputError(f"no answer is about {name}", hint="answer the prompts of `prompts`")
        said = tuple(answers.get(row["key"], NO_ANSWER) for row in some)
        scores = np.array([math.nan if (x := one.log_odds) is None else x for one in said])
        complete = np.array([row["complete"] for row in some], bool)
        odds, low, high = (np.array([row[key] for row in some]) for key in ("odds", "low", "high"))
        threshold = some[0]["threshold"]
        found.append(
            Domain(
                name,
                JudgedQuestions(GateNumbers(odds, low, high), scores, complete),
                tuple(row["question"] for row in some),
                said,
                tuple(_voted([answers.get(k) for k in _vote_keys(row["key"])]) for row in some),
                0.5 if threshold is None else threshold,
            )
        )
    return found


def _vote_keys(key: str) -> list[str]:
    return [key, *(f"{key}#{vote}" for vote in range(1, VOTES))]


def _voted(said: Sequence[Answer | None]) -> float | None:
    """Count votes as `ModelJudge` does; None if some are missing."""
    if any(one is None for one in said):
        return None
    yes = [one.complete for one in said if one is not None and one.complete is not None]
    return math.log((sum(yes) + 0.5) / (len(yes) - sum(yes) + 0.5)) if yes else None


# ---- gate and judge

SHARES = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)
FOLDS, FORTY, DRAWS = 5, 40, 60
OWN, OTHERS, NONE = "labels of the domain", "labels of the other domains", "no labels"


def _fit(some: JudgedQuestions, threshold: float) -> JudgeCalibration:
    return some.fit("judge").for_questions(some.numbers, threshold=threshold, share=1.0)


def _agreement(some: JudgedQuestions, threshold: float) -> JudgeCalibration:
    """Calibrate on the gate's confident verdicts, without labels."""
    p = sigmoid(some.numbers.odds)
    sure = (p <= 0.1) | (p >= 0.9)
    found = JudgeCalibration.fit("judge", some.scores[sure], p[sure])
    return found.for_questions(some.numbers, threshold=threshold, share=1.0)


def _joined(parts: Sequence[Domain]) -> JudgedQuestions:
    """The lists of several domains, each a kind of text."""
    numbers = GateNumbers(
        *(np.concatenate([getattr(one.questions.numbers, name) for one in parts])
          for name in ("odds", "low", "high"))
    )  # fmt: skip
    scores, complete = (
        np.concatenate([getattr(one.questions, name) for one in parts])
        for name in ("scores", "complete")
    )
    kinds = np.concatenate([np.full(len(one.questions.complete), one.name) for one in parts])
    return JudgedQuestions(numbers, scores, complete, kinds)


def _learned(domains: Sequence[Domain], one: Domain, by: str, seed: int) -> list[Any]:
    """(rows, calibration) for each fold; the calibration is never learned on these rows."""
    count = len(one.questions.complete)
    every = np.ones(count, bool)
    if by == OTHERS:
        rest = _joined([other for other in domains if other is not one])
        known = _fit(rest, one.threshold)
        gains = known.for_questions(one.questions.numbers, threshold=one.threshold, share=1.0)
        return [(every, gains)]
    if by == NONE:
        return [(every, _agreement(one.questions, one.threshold))]
    fold = np.random.default_rng(seed).permutation(count) % FOLDS
    return [(fold == at, _fit(one.questions[fold != at], one.threshold)) for at in range(FOLDS)]


@dataclass(frozen=True)
class Curve:
    """p of gate and judge together, by the share of questions sent to the judge."""

    p: Mapping[float, npt.NDArray[np.float64]]
    sent: Mapping[float, float]
    weight: tuple[float, float]  # of a yes and of a no, mean over folds


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
        truth, alone = one.questions.complete.astype(float), curve.p[0.0]
        for share in SHARES:
            p = curve.p[share]
            found = _predictions(one, p)
            right, before = (
                ((some >= one.threshold) == one.questions.complete).astype(float)
                for some in (p, alone)
            )
            rows.append(
                (one.name, SEEN[one.name], len(found), share, curve.sent[share],
                 interval(found, "auroc"), _gained(one, alone, p), score(found, "ece"),
                 mean_interval((alone - truth) ** 2 - (p - truth) ** 2),
                 float(right.mean()), mean_interval(right - before), *curve.weight)
            )  # fmt: skip
    columns = (
        "lists", "seen", "n", "share allowed", "sent", "AUROC", "gained", "ECE", "Brier falls by",
        "right", "more right", "a yes", "a no",
    )  # fmt: skip
    return Table(f"By share, {by}", columns, tuple(rows), CURVE_SAYS[by])


def _gained(
    one: Domain, before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]
) -> Interval:
    """The gain in AUROC over the gate, on the same lists."""
    truth = one.questions.complete.astype(float)

    def gained(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(auroc(truth, after, weights) - auroc(truth, before, weights))

    return statistic_interval(gained, len(truth))


SHARE_SAYS = (
    "Allowed is at most this share; sent is less where fewer can change the decision. Gained: AUROC above that of the gate alone, "
    "with the interval of the paired difference. More right, Brier falls by: than by the gate alone, paired. Right: answered at the gate's threshold where "
    "the list is complete, not answered where it is not. A yes, a no: how far the judge's word moves the log-odds on average; 0 is no "
    "weight."
)
PROMISE_SAYS = (
    "As for the gate: the threshold is chosen on one random half and counted on the other, 200 times; delta 0.1. Exceeded: the counted "
    "share of incomplete among the answered was above alpha. Broken: by more than chance allows (exact binomial test, 5 %)."
)
CURVE_SAYS = {
    OWN: "The weight of the judge is learned on four fifths of the lists of the domain, and used on the fifth.",
    OTHERS: "The weight is learned on the lists of the other two domains: what it is worth in the one where it is worth least.",
    NONE: "The weight is learned from the gate's confident verdicts of the domain; no label is looked at.",
}


def _alone_table(domains: Sequence[Domain]) -> Table:
    """The judge alone, by log-probabilities and by votes."""
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
    """Forty labels of the domain, drawn repeatedly: the effect on the other lists."""
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


def _cost_table(domains: Sequence[Domain], times: Sequence[Timing]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for share in SHARES[1:]:
        for one in domains:
            tokens_in, tokens_out = (
                float(np.mean([getattr(answer, name) for answer in one.answers]))
                for name in ("tokens_in", "tokens_out")
            )
            calls = round(1000 * share)
            tokens = round(calls * tokens_in), round(calls * tokens_out)
            seconds = (float(timing.seconds_for(tokens[0])) for timing in times)
            rows.append((one.name, share, calls, *tokens, *seconds))
    timed = " ".join(
        f"{timing.machine}: {timing.prompts:,} prompts of {timing.tokens_in:,} tokens, {timing.at_once} at once, took "
        f"{timing.counted:,.0f} s{'' if timing.cpu_seconds is None else ' of processor time, which does not depend on what else ran'}."
        for timing in times
    )
    note = (
        "At most: fewer are sent where fewer can change the decision. Seconds are for all calls together, at the rate of the prompts that "
        f"were timed. {timed}"
    )
    columns = (
        "lists", "share allowed", "calls", "tokens in", "tokens out",
        *(f"seconds, {timing.machine}" for timing in times),
    )  # fmt: skip
    return Table("Cost per thousand questions", columns, tuple(rows), note)


# ---- orders in hits


def _orders_table(path: Path, threshold: float) -> Table:
    """Orders, neutral sentences and nothing, with models that obey, in a cascade that trusts them
    as if their accuracy were 0.9."""
    tried = [record.value for record in read_jsonl(path, BadRecords())]
    trust = math.log(QUARTER_AT / (1 - QUARTER_AT))
    rows: list[tuple[Cell, ...]] = []
    for model, obeys in (("all", "all"), ("strangers", "all but ours")):
        for name, (title, _) in ORDERS.items():
            some = [row for row in tried if row["orders"] == name]
            said = np.array([row[model] for row in some]).T
            wants = np.array([row["wants"] for row in some])
            odds = np.array([[row[key] for key in ("nothing", "neutral", "order")] for row in some])
            moved = np.select([said == "yes", said == "no"], [trust, -trust], 0.0)
            p, alone = sigmoid(odds.T + moved), sigmoid(odds.T)
            answers = p >= threshold
            rows.append(
                (obeys, title, len(some), mean_interval((said[0] == "").astype(float)),
                 *(mean_interval((said[at] == wants).astype(float)) for at in (1, 2)),
                 *(mean_interval(((said[at] == "") & (said[0] != "")).astype(float)) for at in (1, 2)),
                 *(mean_interval(np.abs(p[at] - p[0])) for at in (1, 2)),
                 mean_interval(np.abs(alone[2] - alone[0])),
                 *(mean_interval((answers[at] != answers[0]).astype(float)) for at in (1, 2)))
            )  # fmt: skip
    columns = (
        "the model obeys", "orders", "n", "never heard", "turned by neutral text", "… by the order",
        "silenced by neutral text", "… by the order", "p moved by neutral text", "… by the order",
        "… by the order, gate alone", "decisions changed by neutral text", "… by the order",
    )  # fmt: skip
    note = (
        "The judge is a model that does what an order says as soon as three words of it in a row reach its prompt, in any language, and "
        "says the opposite of what the order wants otherwise. It answers control questions rightly unless it obeys. Obeys all: also our own order to "
        "say yes to a control question. All but ours: only strangers are obeyed, the worst case. Never heard: without any order, its word does not count. "
        "Turned: its word counts, and is what the order wants. Silenced: its word does not count any more. All shares are against the same list with "
        "nothing added. Gate and judge are weighed as if the judge were right nine times in ten; the gate alone also reads the order. "
        f"{ORDERED} lists of each domain, {ORDERS_EACH} orders of each kind in turns, at {len(PLACES)} places (behind and before a text, as a title, as a "
        "hit more); where three words of an order stand in a list anyway, it is heard there with nothing added. The orders, and what each is about, "
        "are in `suffice_research.judge_orders`."
    )
    return Table("Orders in hits", columns, tuple(rows), note)


def _aims_table(path: Path) -> Table:
    """What the orders are about that no rule and no control stops."""
    tried = [record.value for record in read_jsonl(path, BadRecords())]
    rows: list[tuple[Cell, ...]] = []
    for aim, title in AIMS.items():
        some = [row for row in tried if row["orders"] == "later" and row["aim"] == aim]
        if some:
            turned = [
                mean_interval(np.array([float(row[model][2] == row["wants"]) for row in some]))
                for model in ("all", "strangers")
            ]
            rows.append((title, len(some), *turned))
    columns = ("the order is about", "n", "turned, obeys all", "turned, obeys all but ours")
    note = (
        "Of the orders written after rules and controls. Where an order can be read in two ways, it counts as the one that is worse for us. Of two "
        "orders that contradict each other, a stranger's and ours, the stranger's counts. What an order is about was written down with it, and the model does "
        "just that: this counts what follows, it does not say how real models read such orders."
    )
    return Table("What an order is about", columns, tuple(rows), note)


AIMS = {
    "every": "the verdict, for every question", "first": "the first answer",
    "form": "another form of answer", "question": "the user's question, by its content",
    "controls": "our controls, or other orders",
}  # fmt: skip


# ---- simulated judges

ACCURACIES = (0.6, 0.7, 0.8, 0.9, 0.95)
QUARTER_AT, WANTED = 0.9, 0.75  # share of the gain from a quarter of the calls


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
    """The value of decisions at this threshold: its own utility, p - t if it answers."""
    return float(np.where(p >= threshold, complete - threshold, 0.0).mean())


def _quarter_table(domains: Sequence[Domain], seed: int) -> Table:
    """The gain from a quarter of the calls, as a share of the gain from all."""
    rows: list[tuple[Cell, ...]] = []
    worlds: list[tuple[str, JudgedQuestions | None, float]] = [("simulated gate", None, 0.5)]
    worlds += [(f"the gate on {one.name}", one.questions, one.threshold) for one in domains]
    for name, known_lists, threshold in worlds:
        for accuracy in ACCURACIES:
            rng = np.random.default_rng(seed)
            found, shares = [], []
            for _ in range(DRAWS):
                world = known_lists or _simulated_world(2000, accuracy, rng)
                if known_lists is not None:
                    world = replace(world, scores=_simulated(world.complete, accuracy, rng))
                p = _by_halves(world, threshold, (0.0, 0.25, 1.0), rng)
                labels = world.complete.astype(float)
                worth = [_worth(one, world.complete, threshold) for one in p]
                ranking = [float(score(Predictions(labels, one), "auroc") or 0.0) for one in p]
                found.append([*worth, *ranking])
                if worth[2] - worth[0] > MIN_WORTH:
                    shares.append((worth[1] - worth[0]) / (worth[2] - worth[0]))
            means = np.mean(found, axis=0)
            decided, ranked = (
                float((means[at + 1] - means[at]) / gain)
                if (gain := means[at + 2] - means[at]) > MIN_WORTH else None
                for at in (0, 3)
            )  # fmt: skip
            spread = None
            if decided is not None and len(shares) > DRAWS / 2:
                low, high = np.quantile(shares, (0.025, 0.975))
                spread = Interval(decided, float(low), float(high))
            best = _best_quarters(known_lists or world, accuracy, threshold)
            rows.append((name, accuracy, *(float(one) for one in means[3:]), ranked, spread, *best))
    columns = (
        "gate", "accuracy", "AUROC, gate alone", "… a quarter sent", "… all sent",
        "a quarter gains, of AUROC", "… of decisions", "… expected of the best order",
        "… by an order that knows the labels",
    )  # fmt: skip
    note = (
        "Of decisions: at the gate's threshold t, an answer to a complete list is worth 1 - t, to an incomplete one -t. Weight and order are "
        "learned on one half of the lists and used on the other. In brackets: where 95 % of the draws of the judge's words lie. The best order is "
        "that of the gate's probabilities, made right by the labels of these very lists: if it expects less, the gate does not know "
        "well enough which of its verdicts are wrong, and no order by its probabilities does better but by chance."
    )
    return Table("Simulated judges, a quarter of the calls", columns, tuple(rows), note)


MIN_WORTH = 1e-4  # smallest gain for which shares make sense


def _by_halves(
    world: JudgedQuestions, threshold: float, shares: Sequence[float], rng: np.random.Generator
) -> list[npt.NDArray[np.float64]]:
    """p of gate and judge for each share, learned on the other half."""
    half = rng.permutation(len(world.complete)) % 2 == 0
    found = [sigmoid(world.numbers.odds) for _ in shares]
    for learned in (half, ~half):
        known, others = _fit(world[learned], threshold), world[~learned]
        for p, share in zip(found, shares, strict=True):
            if share:
                p[~learned] = known.probabilities(others.scores, others.numbers, share)
    return found


def _best_quarters(
    world: JudgedQuestions, accuracy: float, threshold: float
) -> tuple[float | None, float | None]:
    """As shares of the gain from all calls: the quarter for which the calibrated gate expects most,
    and the best quarter if the labels were known."""
    odds, truth, weight = world.numbers.odds, world.complete.astype(float), math.log(
        accuracy / (1 - accuracy)
    )  # fmt: skip
    scale = Platt.fit(odds, truth)
    expected = np.sort(expected_gain(scale.log_odds(odds), weight, -weight, threshold))[::-1]
    at = math.log(threshold / (1 - threshold))
    says_yes = np.where(world.complete, accuracy, 1 - accuracy)
    value = truth - threshold
    gained = value * (
        says_yes * (odds + weight >= at) + (1 - says_yes) * (odds - weight >= at) - (odds >= at)
    )
    quarter = len(truth) // 4
    known = np.sort(gained)[::-1][:quarter]
    return (
        float(expected[:quarter].sum() / expected.sum()) if expected.sum() > 0 else None,
        float(known.sum() / gained.sum()) if gained.mean() > MIN_WORTH else None,
    )


def _transfer_table(domains: Sequence[Domain], seed: int) -> Table:
    """Simulated judges that are better on one kind of text than on another, with a weight learned
    on the other two: the lowest weight, and one weight for all kinds."""
    rows: list[tuple[Cell, ...]] = []
    for accuracies in TRANSFERS:
        rng = np.random.default_rng(seed)
        found: dict[bool, list[list[float]]] = {True: [], False: []}
        for _ in range(DRAWS // 3):
            for left in domains:
                rest = [one for one in domains if one is not left]
                skill = dict(zip([*(one.name for one in rest), left.name], accuracies, strict=True))
                told = {one.name: _told(one, skill[one.name], rng) for one in domains}
                known = _joined([told[one.name] for one in rest])
                for apart in (True, False):
                    learned = _fit(known if apart else replace(known, kinds=None), left.threshold)
                    found[apart].append(_moved(told[left.name], learned))
        means = {apart: np.mean(some, axis=0) for apart, some in found.items()}
        shown = " and ".join(f"{one:g}" for one in accuracies[:2])
        rows.append((shown, accuracies[2], *(float(one) for one in means[True]),
                     *(float(one) for one in means[False])))  # fmt: skip
    columns = (
        "right, where the weight is from", "… where it is used", "a yes", "Brier falls by",
        "more right", "a yes, of one kind", "Brier falls by, of one kind",
        "more right, of one kind",
    )  # fmt: skip
    note = (
        "The real gate on the three domains, each left out in turn; judges with noise, and a level of their own in each domain. "
        "A judge that knows something in both and nothing in the third is not seen through: nothing in the labels tells."
    )
    return Table("Simulated judges, a weight from elsewhere", columns, tuple(rows), note)


TRANSFERS = (
    (0.9, 0.9, 0.9), (0.7, 0.7, 0.7), (0.5, 0.5, 0.5), (0.8, 0.5, 0.5), (0.9, 0.5, 0.5),
    (0.9, 0.7, 0.7), (0.8, 0.8, 0.5),
)  # fmt: skip


def _told(one: Domain, accuracy: float, rng: np.random.Generator) -> Domain:
    words = _simulated(one.questions.complete, accuracy, rng) / 2
    words = words + rng.normal(0, 0.5, len(words)) + rng.normal(0, 0.3)
    return replace(one, questions=replace(one.questions, scores=words))


def _moved(one: Domain, known: JudgeCalibration) -> list[float]:
    """The weight of a yes, and the gain from all calls."""
    some, truth = one.questions, one.questions.complete.astype(float)
    alone, p = sigmoid(some.numbers.odds), sigmoid(some.numbers.odds + known.effects(some.scores))
    right = [((x >= one.threshold) == some.complete).mean() for x in (alone, p)]
    losses = [((x - truth) ** 2).mean() for x in (alone, p)]
    return [known.yes, float(losses[0] - losses[1]), float(right[1] - right[0])]


# ---- the study


def _orders_section(path: Path, threshold: float) -> Section:
    return Section("Hits that give orders", (_orders_table(path, threshold), _aims_table(path)))


def judge_study(
    domains: Sequence[Domain],
    *,
    times: Path,
    orders: Path,
    used: Sequence[Path],
    settings: Mapping[str, Any],
    seed: int,
) -> Study:
    """The study; slow parts come first, `times` and `orders` last, if available."""
    quarter = _quarter_table(domains, seed)
    simulated = (_weight_table(seed), quarter, _transfer_table(domains, seed))
    judged: list[Section] = []
    summary: tuple[str, ...] = ()
    if any(one.answers[0] is not NO_ANSWER for one in domains):
        curves = {by: _curve_table(domains, by, seed) for by in (OWN, OTHERS, NONE)}
        summary = _summary(domains, curves, quarter)
        judged = [
            Section("The judge alone", (_alone_table(domains),)),
            Section("Gate and judge by the share sent", tuple(curves.values()), SHARE_SAYS),
            Section("With forty labels", (_forty_table(domains, seed),)),
            Section("The promise", (_promise_table(domains, seed),), PROMISE_SAYS),
        ]
        timed = read_times(times) if times.is_file() else []
        judged.append(Section("What it costs", (_cost_table(domains, timed),)))
    if orders.is_file():
        judged.append(_orders_section(orders, domains[0].threshold))
    return Study(
        name="judge",
        title="A judge behind the gate",
        seed=seed,
        settings=settings,
        data={one.name: sha256_of(one) for one in (*used, times, orders) if one.is_file()},
        sections=(*judged, Section("Simulated judges", simulated)),
        summary=summary,
        commit=source_commit(),
        packages=package_versions(),
    )


def _summary(
    domains: Sequence[Domain], curves: Mapping[str, Table], quarter: Table
) -> tuple[str, ...]:
    """The results in sentences."""
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
    shown = ", ".join(
        f"{row[6].value:.0%} ({row[0]}, where the best order expects {row[7]:.0%})"
        for row in quarter.rows
        if row[1] == QUARTER_AT and isinstance(row[6], Interval)
    )
    lines.append(
        f"A simulated judge of accuracy {QUARTER_AT}: a quarter of the calls gives this share of what all of them gain for decisions: {shown}."
    )
    few = [
        f"{row[0]} ({row[7]:.0%})"
        for row in quarter.rows
        if row[1] == QUARTER_AT and isinstance(row[7], float) and row[7] < WANTED
    ]
    if few:
        lines.append(
            "Three quarters of the gain from a quarter of the calls is what theory allows only where the gate is sure of most questions. The best order "
            f"by its probabilities expects less here: {', '.join(few)}."
        )
    return tuple(lines)


def _measure(args: argparse.Namespace, say: ProgressLog) -> None:
    answers = {} if args.simulated_only else read_answers(args.answers)
    domains = read_domains(args.gate, answers)
    say("gate and judge are compared")
    study = judge_study(
        domains,
        times=args.times,
        orders=args.orders,
        used=[args.gate, *([] if args.simulated_only else [args.answers])],
        settings={
            "model": args.model,
            "controls": any(one.controls for one in answers.values()),
            "shares": SHARES,
        },
        seed=SEED,
    )
    say(f"study at {study.save(args.study)}")


def _again(args: argparse.Namespace, say: ProgressLog) -> None:
    """Recompute costs and orders of a study from new times and readings; keep everything else."""
    study = Study.load(args.study)
    domains = read_domains(args.gate, read_answers(args.answers))
    made = {
        one.title: one
        for one in (
            Section("What it costs", (_cost_table(domains, read_times(args.times)),)),
            _orders_section(args.orders, domains[0].threshold),
        )
    }
    sections = tuple(made.get(one.title, one) for one in study.sections)
    data = {**study.data, **{one.name: sha256_of(one) for one in (args.times, args.orders)}}
    settings = dict(study.settings)
    if (commit := source_commit()) and commit != study.commit:
        settings["sections of other runs"] = dict.fromkeys(made, commit)
    made_again = replace(study, sections=sections, data=data, settings=settings)
    write_atomically(args.study, made_again.to_json(timings=False))
    say(f"study at {args.study}")


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m suffice_research.judge_study")
    commands = parser.add_subparsers(required=True)
    prompts = commands.add_parser("prompts", help="write a request for each list")
    prompts.set_defaults(run=_prompts)
    prompts.add_argument("--out", type=Path, required=True)
    read = commands.add_parser("read", help="let the gate read the lists, also with orders in them")
    read.set_defaults(run=_read)
    read.add_argument("--out", type=Path, default=KEPT / "gate.jsonl")
    read.add_argument("--orders", type=Path, default=KEPT / "orders.jsonl")
    measure = commands.add_parser("measure", help="measure gate and judge together")
    measure.set_defaults(run=_measure)
    measure.add_argument("--orders", type=Path, default=KEPT / "orders.jsonl")
    measure.add_argument("--simulated-only", action="store_true", help="no judge was asked")
    measure.add_argument("--study", type=Path, required=True, help="write the study here")
    measure.add_argument("--model", default=MODEL, help="the judge's name, for the page")
    timing = commands.add_parser("time", help="ask some prompts, and note how long they take")
    timing.set_defaults(run=_time)
    timing.add_argument("prompts", type=Path, help="what `prompts` wrote")
    timing.add_argument("--model", required=True, help="a GGUF file, or a name with --base-url")
    timing.add_argument("--base-url", help="a server that runs already")
    timing.add_argument("--max-chars", type=int, help="no longer prompts, on a slow machine")
    timing.add_argument("--lists", type=int, help="as many prompts, of each domain alike")
    timing.add_argument(
        "--at-once", type=int, default=1, help="prompts that the server gets at once"
    )
    timing.add_argument("--machine", required=True, help="what it ran on, for the page")
    timing.add_argument("--out", type=Path, required=True, help="adds to this file, or replaces")
    again = commands.add_parser("again", help="costs and orders of a stored study again")
    again.set_defaults(run=_again)
    again.add_argument("--study", type=Path, required=True)
    again.add_argument("--orders", type=Path, default=KEPT / "orders.jsonl")
    for one in (measure, again):
        one.add_argument("--gate", type=Path, default=KEPT / "gate.jsonl", help="what `read` kept")
        one.add_argument(
            "--answers", type=Path, default=KEPT / "answers.jsonl", help="what the judge said"
        )
        one.add_argument("--times", type=Path, default=KEPT / "times.jsonl", help="of `time`")
    ask = commands.add_parser("ask", help="ask a server, and keep what the study needs")
    ask.set_defaults(run=_ask)
    ask.add_argument("prompts", type=Path, help="what `prompts` wrote")
    ask.add_argument("--model", required=True, help="its name, as the server knows it")
    ask.add_argument("--base-url", required=True, help="for example http://127.0.0.1:8090/v1")
    ask.add_argument("--at-once", type=int, default=4, help="prompts that the server gets at once")
    ask.add_argument("--answers", type=Path, required=True, help="adds to this file")
    for one in (prompts, read):
        one.add_argument("--data", type=Path, required=True, help="the folder of data sets")
        one.add_argument("--readings", type=Path, help="keeps what the reader says")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _options().parse_args(arguments)
    return exit_code(lambda: args.run(args, ProgressLog()))


if __name__ == "__main__":
    sys.exit(main())
