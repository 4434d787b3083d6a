"""Make the calibration of `Gate.for_expansion`: `python -m
suffice_research.training.stop_calibration --data DIR`; with `--study FILE` evaluate it.

A path is a question, the ranking of `bridge`, and the standard gate's output for its first hit, its
first two, and so on. A search with a threshold stops somewhere on it. Where it stops depends on the
calibration, so stopping and fitting alternate. A search that ends without ANSWER has the gate's own
probability, which needs no correction (decision 16). Reader, gate and ranker have seen nothing on a path:
training questions are those in part `stack` that the gate was not fitted on, and the study has
questions in the parts `test` and `unseen` only. MuSiQue is used only for evaluation: the shipped
ranker was trained on its questions, so a ranker trained on the other sets is used; the fast gate
inside the standard gate was trained on them, too.

Reading takes up to a second per question: with `--paths FILE` paths are stored, and an interrupted
run can resume.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.answering.expand import MIN_GAIN, PATIENCE
from suffice.datasets.gold import draw_key
from suffice.evaluation.gate_evaluation import require_fit_extra
from suffice.evaluation.metrics import ece, ece_by_chance
from suffice.evaluation.report import Cell, Section, Table
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.searching import index_documents
from suffice.evaluation.significance import Interval, mean_interval, statistic_interval
from suffice.gate.calibration import Platt
from suffice.gate.gate import (
    SHIPPED_MODELS,
    SHIPPED_STOP,
    STANDARD,
    STOP_FILE,
    STOP_KIND,
    STOP_VERSION,
    Gate,
)
from suffice.gate.training import penalized_logistic
from suffice.numeric import log_odds_array, sigmoid
from suffice.registry import ENCODERS
from suffice.retrieval.bridge import TreeRanker
from suffice.retrieval.builtin import DEFAULT_ENCODER, bridge
from suffice.storage import MANIFEST, new_artefact, package_versions, sha256_of, write_atomically
from suffice.types import Document, Hit
from suffice_research.curves import ece_debiased
from suffice_research.expansion import Point, documents_saved
from suffice_research.study import Study
from suffice_research.training.bridge_training import bridge_questions, candidate_states, fit_ranker
from suffice_research.training.cases import (
    EVERYDAY,
    STACK,
    TEST,
    UNSEEN,
    Case,
    load_cases,
)
from suffice_research.training.gate import EVERYDAY_SHARE, QUESTIONS
from suffice_research.training.sources import SEED, ProgressLog, chosen_sources, exit_code
from suffice_research.training.sources import open_source as open_learned

__all__ = ["SearchPath", "fit_stop", "main", "stop_of"]

Floats = npt.NDArray[np.float64]
DOCUMENTS, RANKED = 10, 20  # of a path, and of its ranking
SURE = 0.97  # end a path here: every threshold is reached
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of the searches to fit the calibration on
ROUNDS = 8  # of stopping and fitting
PRIOR = (1.0, 0.0)  # slope and offset: no correction
VARIANCES = (0.25, 4.0)  # of the prior
ECE_BINS = 10
LEARNED, JUDGED = 60, 170  # questions per data set; MuSiQue has no more in part `test`
RANKER_QUESTIONS = 150  # per data set, to train a ranker without another one


class PathSource(NamedTuple):
    """Questions in one part of a data set, and a corpus of all passages of these parts."""

    name: str
    part: str
    questions: int
    corpus: tuple[str, ...] = ()  # parts; by default all
    seen: int = 0  # first questions of the draw, on which the gate was fitted
    left_out: str = ""  # the ranker's data set to leave out


OWN = (STACK, TEST, UNSEEN)  # parts that no model was trained on: a corpus of thousands
SOURCES = (
    PathSource("hotpotqa", STACK, LEARNED, OWN),
    PathSource("2wiki", STACK, LEARNED, OWN),
    PathSource("everyday", STACK, LEARNED, OWN, seen=QUESTIONS[STANDARD] * EVERYDAY_SHARE),
    PathSource("hotpotqa", TEST, JUDGED, OWN),
    PathSource("2wiki", TEST, JUDGED, OWN),
    PathSource("everyday", TEST, JUDGED, OWN),
    PathSource("everyday", UNSEEN, JUDGED, OWN),
    PathSource("musique", TEST, JUDGED, left_out="musique"),
)


@dataclass(frozen=True)
class SearchPath:
    """A question's ranking, and the gate's output for its first hits."""

    data_set: str
    part: str
    question: str
    needed: int  # documents
    found: tuple[bool, ...]  # whether each hit of the ranking is needed
    p: tuple[float, ...]  # the gate's output for the first hit, the first two, ...

    def complete(self, hits: int) -> bool:
        return sum(self.found[:hits]) >= self.needed


class Stop(NamedTuple):
    """Where a search ends: hits held, and the log-odds of the gate and of the last verdict."""

    hits: int
    raw: float
    odds: float
    answers: bool


def stop_of(path: SearchPath, calibration: Platt | None, answer_at: float) -> Stop:
    """Where `suffice.expand` stops if it holds the next of the ranking, before dropping any."""
    raw = log_odds_array(np.array(path.p))
    odds = raw if calibration is None else np.minimum(raw, calibration.log_odds(raw))
    reached, best, idle = sigmoid(odds) >= answer_at, 0, 0
    for at in range(len(raw)):
        if at and odds[at] >= odds[best] + MIN_GAIN:
            best, idle = at, 0
        elif at:
            idle += 1
        if reached[at] or path.p[at] >= SURE:
            return Stop(at + 1, float(raw[at]), float(odds[at]), True)
        if idle >= PATIENCE:
            return Stop(best + 1, float(raw[best]), float(raw[best]), False)
    return Stop(len(raw), float(raw[-1]), float(raw[-1]), False)


def fit_stop(paths: Sequence[SearchPath]) -> Platt:
    """The calibration that makes log-odds correct at the sets where searches stop."""
    found, penalties = Platt(*PRIOR), len(THRESHOLDS) / np.array(VARIANCES)
    for _ in range(ROUNDS):
        ends = [(one, stop_of(one, found, at)) for one in paths for at in THRESHOLDS]
        stops = [(one, stop) for one, stop in ends if stop.answers]
        rows = np.array([(stop.raw, 1.0) for _, stop in stops]).reshape(-1, len(PRIOR))
        target = np.array([one.complete(stop.hits) for one, stop in stops], dtype=float)
        weights, _ = penalized_logistic(rows, target, np.array(PRIOR), penalties)
        slope, offset = weights.tolist()
        # Half a step, to avoid oscillation.
        found = Platt(max((found.slope + slope) / 2, 0.0), (found.offset + offset) / 2)
    return found


# ---- paths


def collect_paths(
    data: Path, sources: Sequence[PathSource], kept: Path | None, say: ProgressLog
) -> list[SearchPath]:
    """The paths of all sources; those in `kept` are not searched again."""
    known = {(one.data_set, one.part, one.question): one for one in _load_paths(kept)}
    cases, gate = load_cases(data, [EVERYDAY]), None
    paths: list[SearchPath] = []
    for source in sources:
        chosen = _draw(cases, source)
        keys = [(source.name, source.part, case.question) for case in chosen]
        fresh = [case for case, key in zip(chosen, keys, strict=True) if key not in known]
        if fresh:
            gate = gate or Gate.load()
            for one in _follow_paths(data, source, cases, fresh, gate):
                known[one.data_set, one.part, one.question] = one
                if kept is not None:
                    with kept.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(one)) + "\n")
        paths += [known[key] for key in keys]
        say(f"{source.name}, {source.part}: {len(chosen)} paths")
    return paths


def _load_paths(kept: Path | None) -> list[SearchPath]:
    """The paths in a file; an incomplete last line is dropped."""
    if kept is None or not kept.exists():
        return []
    content = kept.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        write_atomically(kept, whole)
    records = [json.loads(line) for line in whole.splitlines()]
    return [
        SearchPath(**{**one, "found": tuple(one["found"]), "p": tuple(one["p"])}) for one in records
    ]


def _draw(cases: Sequence[Case], source: PathSource) -> list[Case]:
    """Some questions with needed passages, each once, after those that the gate has seen."""
    mine = [one for one in cases if _is_of(one, source.name) and one.part == source.part]
    unique = list({one.question: one for one in mine if one.needed}.values())
    order = sorted(unique, key=lambda one: draw_key(SEED, one.question))
    return order[source.seen : source.seen + source.questions]


def _is_of(case: Case, name: str) -> bool:
    return case.source.split("/")[0] == name


def _follow_paths(
    data: Path,
    source: PathSource,
    cases: Sequence[Case],
    chosen: Sequence[Case],
    gate: Gate,
) -> Iterator[SearchPath]:
    parts = source.corpus
    pool = [one for one in cases if _is_of(one, source.name) and (not parts or one.part in parts)]
    passages = dict.fromkeys(one for case in pool for one in (*case.needed, *case.distractors))
    ids = {passage: f"p{at}" for at, passage in enumerate(passages)}
    documents = {name: Document(name, title=one.title, text=one.text) for one, name in ids.items()}
    encoder = ENCODERS.get(DEFAULT_ENCODER)()
    store = index_documents(documents.values(), encoder, None)
    ranker = _ranker_without(source.left_out, data) if source.left_out else TreeRanker.load()
    retriever = bridge(store, encoder=encoder, ranker=ranker)
    for case in chosen:
        (hits,) = retriever.search([case.question], k=RANKED)
        needed = {ids[one] for one in case.needed}
        p = _along(gate, case.question, hits[:DOCUMENTS], documents)
        marks = tuple(hit.doc_id in needed for hit in hits)
        yield SearchPath(source.name, source.part, case.question, len(needed), marks, p)


def _along(
    gate: Gate, question: str, hits: Sequence[Hit], documents: Mapping[str, Document]
) -> tuple[float, ...]:
    """The gate's output as far as any search goes: until it is sure, or nothing has helped."""
    found: list[float] = []
    for count in range(1, len(hits) + 1):
        held = [Hit(hit.doc_id) for hit in hits[:count]]
        found += gate.probabilities([(question, held)], documents=documents).tolist()
        if found[-1] >= SURE or count - 1 - found.index(max(found)) >= PATIENCE:
            break
    return tuple(found)


def _ranker_without(name: str, data: Path) -> TreeRanker:
    """A ranker trained on the other data sets."""
    encoder = ENCODERS.get(DEFAULT_ENCODER)()
    names = {"hotpotqa", "2wikimultihopqa", "musique", "multihop_rag"} - {name}
    drawn = [
        bridge_questions(open_learned(one, data), encoder, limit=RANKER_QUESTIONS)
        for one in chosen_sources(None, names)
    ]
    return fit_ranker([candidate_states(one) for one in drawn])


# ---- evaluation


def stop_study(paths: Sequence[SearchPath], answer_at: float, data: Mapping[str, str]) -> Study:
    """Each set with a calibration learned on the other sets, compared with no calibration."""
    learned = [one for one in paths if one.part == STACK]
    judged = [one for one in paths if one.part != STACK]
    rows: list[tuple[Cell, ...]] = []
    every: list[tuple[SearchPath, Stop, Stop]] = []
    for name, part in dict.fromkeys((one.data_set, one.part) for one in judged):
        others = fit_stop([one for one in learned if one.data_set != name])
        found = [
            (one, stop_of(one, None, answer_at), stop_of(one, others, answer_at))
            for one in judged
            if (one.data_set, one.part) == (name, part)
        ]
        every += found
        rows.append((f"{name}, {part}" if part == UNSEEN else name, *_row(found)))
    rows.append(("all", *_row(every)))
    raw = [(path, stop) for path, stop, _ in every]
    left_out = [(path, stop) for path, _, stop in every]
    shipped = fit_stop(learned)
    return Study(
        name="stop",
        title="Where a search stops",
        seed=SEED,
        settings={
            "answer_at": answer_at,
            "learned from": {
                name: sum(one.data_set == name for one in learned)
                for name in dict.fromkeys(one.data_set for one in learned)
            },
        },
        data=dict(data),
        sections=(Section("At the stop", (Table(TITLE, COLUMNS, tuple(rows), NOTE),)),),
        summary=(
            f"All sets, as it is: {_said(raw)}.",
            f"Calibrated on the other data sets: {_said(left_out)}.",
            "By the calibration that ships, which learned from other questions of three of these "
            f"sets: {_said([(one, stop_of(one, shipped, answer_at)) for one in judged])}.",
        ),
        commit=source_commit(),
        packages=package_versions(),
    )


def _outcomes(stops: Sequence[tuple[SearchPath, Stop]]) -> tuple[Floats, Floats]:
    """The probability at each stop, and whether the evidence is complete."""
    p = sigmoid(np.array([stop.odds for _, stop in stops]))
    return p, np.array([path.complete(stop.hits) for path, stop in stops], float)


def _ece(p: Floats, complete: Floats) -> Interval:
    return statistic_interval(lambda w: ece(complete, p, w, ECE_BINS), len(p), seed=SEED)


def _said(stops: Sequence[tuple[SearchPath, Stop]]) -> str:
    p, complete = _outcomes(stops)
    means = f"p is {p.mean():.2f} at the stop, and {complete.mean():.2f} are complete"
    found, rest = _ece(p, complete), ece_debiased(complete, p, bins=ECE_BINS)
    chance = ece_by_chance(p, bins=ECE_BINS, seed=SEED)
    error = f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
    return f"{means} (ECE {error}, by chance alone {chance:.3f}, {rest:.3f} without chance)"


TITLE = "Stopping at the gate's threshold"
COLUMNS = (
    "data set", "n", "p, as it is", "complete", "ECE", "by chance", "documents",
    "p, calibrated", "complete ", "ECE ", "by chance ", "documents ", "fewer",
)  # fmt: skip
NOTE = (
    "Searches along the ranking of bridge, at most ten documents, that stop when the gate says ANSWER, or when four documents "
    "have not helped; before documents that add nothing are dropped. A search that ends without ANSWER has the gate's own "
    "probability. p: mean probability at the stop. By chance: the ECE that true probabilities would show. Calibrated: by a "
    "calibration that learned from the other data sets. Fewer: how many documents more the best fixed k of the same ranking "
    "holds to be as complete as the calibrated search. In brackets: 95 % bootstrap interval over questions; that of the ECE lies "
    "too high, because resampling adds chance a second time."
)


def _row(found: Sequence[tuple[SearchPath, Stop, Stop]]) -> tuple[Cell, ...]:
    paths = [one for one, _, _ in found]
    cells: list[Cell] = [len(paths)]
    for stops in ([(one[0], one[1]) for one in found], [(one[0], one[2]) for one in found]):
        p, complete = _outcomes(stops)
        held = np.array([stop.hits for _, stop in stops], float)
        by_chance = ece_by_chance(p, bins=ECE_BINS, seed=SEED)
        whole = mean_interval(complete, seed=SEED)
        cells += [float(p.mean()), whole, _ece(p, complete), by_chance, float(held.mean())]
    fixed = [
        Point(
            "bridge",
            k,
            np.full(len(paths), float(k)),
            np.array([one.complete(k) for one in paths], float),
        )
        for k in range(1, RANKED + 1)
    ]
    fewer, _ = documents_saved(
        {"bridge": fixed}, Point("stop", DOCUMENTS, held, complete), seed=SEED
    )
    return (*cells, fewer)


# ---- the command


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.stop_calibration",
        description="Make the calibration of gates that say when a search stops.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument(
        "--out", type=Path, default=SHIPPED_STOP, help="its folder; the package's own unless told"
    )
    parser.add_argument("--study", type=Path, help="judge it, and write the study here")
    parser.add_argument(
        "--study-only", action="store_true", help="judge, and leave the calibration as it is"
    )
    parser.add_argument("--paths", type=Path, help="where paths are kept for the next run")
    parser.add_argument("--questions", type=int, help="of a data set at most: for trying out")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _options().parse_args(arguments)
    return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    require_fit_extra()
    most = args.questions or max(one.questions for one in SOURCES)
    sources = [one._replace(questions=min(one.questions, most)) for one in SOURCES]
    paths = collect_paths(args.data, sources, args.paths, say)
    if not args.study_only:
        learned = [one for one in paths if one.part == STACK]
        found = json.dumps(asdict(fit_stop(learned)), indent=1, sort_keys=True) + "\n"
        gate = sha256_of(SHIPPED_MODELS / f"gate-{STANDARD}" / MANIFEST)
        about: dict[str, Any] = {
            "settings": {"questions": len(learned)},
            "inputs": {"gate": gate},
            "seed": SEED,
        }
        with new_artefact(args.out, kind=STOP_KIND, version=STOP_VERSION, **about) as folder:
            write_atomically(folder / STOP_FILE, found)
        say(f"calibration of {len(learned)} paths at {args.out}")
    if args.study:
        answer_at = float(Gate.load().policy.answer_at or 0.0)
        files = {
            str(file.relative_to(args.data)): sha256_of(file)
            for name in ("hotpotqa", "2wikimultihopqa", "musique")
            for file in sorted((args.data / name).glob("*.*"))
        }
        say(f"study at {stop_study(paths, answer_at, files).save(args.study)}")


if __name__ == "__main__":
    sys.exit(main())
