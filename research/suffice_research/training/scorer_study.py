"""Train the set scorer and its reader, and judge both on questions that neither has seen: `python -m
suffice_research.training.scorer_study --help`.

A *part* is one of five folds or one of three data sets. Whoever judges a part has not seen it:
neither the scorer, nor its teacher, nor the trees of the reader. The trees learn from the scores of
scorers that saw neither the judged part nor the question: for every two folds, and for every two
data sets, a teacher and a student are trained without both. So there are ten scorers for two folds,
five for one, three each for two data sets and for one, and one for everything. Next-hop encoders
learn only from further questions, which no part has: one for each choice of data sets that a part
leaves.

The reader learns in three passes over states along searches: without reading, along a path that
mixes gold with predictions, and along the path that it would take itself. On each path, the trees
that rank a question have not seen its part either. Searches read as many candidates as ships.

The steps, each of which resumes where it stopped and keeps everything under `--work`:

    check     what the machine has and how fast it trains (only this one needs no other)
    states    states of every question as tokens (candidates come from vectors of `scorer_prepare`)
    look      next-hop encoders: needs a GPU
    train     teachers and students: needs a GPU
    read      searches and trees, as soon as their scorers are there: needs a GPU and many cores
    record    the held documents, the weights and the reader, for `scorer_figures`, `scorer_export`

`look`, `train` and `read` run side by side. Decision 13 says why it is done in this way.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets import load
from suffice.evaluation.result_files import source_commit
from suffice.gate.trees import trees_to_onnx
from suffice.retrieval.corpus import searchable_text
from suffice.storage import write_atomically
from suffice.storage.artefacts import OnnxTrees
from suffice_research.bridge_quality import (
    QUALITY_FEATURES,
    READ_AGAIN,
    READ_FIRST,
    PairTokenizer,
)
from suffice_research.next_hop import StateTokenizer
from suffice_research.training.scorer_data import (
    FURTHER,
    PackedStates,
    ScorerQuestion,
    ScorerState,
    further_questions,
    joined_states,
    load_questions,
    pack_pairs,
    pack_states,
    training_states,
    unlabelled_pairs,
)
from suffice_research.training.scorer_search import (
    FOLDS,
    SETS,
    Collection,
    States,
    fit_reader,
    folds,
    hand_rank,
    search,
)

__all__ = ["contexts", "record", "run_tasks", "scorer_names", "search_tasks", "train"]

EVERY = "all"
FOLD_NAMES = tuple(map(str, range(FOLDS)))
ROUNDS = {"musique": 4, "hotpotqa": 2, "2wikimultihopqa": 2}  # MuSiQue has no further questions
LOOKING_ROUNDS = 3  # of the further questions, for a next-hop encoder
FURTHER_QUESTIONS = 4_500  # of each of the others
DRAWS = ("teacher", "student")  # each learns from states of its own
UNLABELLED = 10_000  # sentences of each data set
JUDGED_STATES = 3_000  # of the parts left out, to log how a scorer does
CHUNK = 200  # states that one process turns into tokens at a time
HAND, MIXED, OWN = "hand", "mixed", "own"  # the passes
ORACLE = {HAND: 0.5, MIXED: 0.5, OWN: 0.0}
PATH_ROWS = 250_000  # that trees learn from which only lead along a path
SEEDS = {HAND: 0, MIXED: 1, OWN: 2}


# ---- who sees what


def scorer_name(without: Sequence[str]) -> str:
    return "-".join(sorted(without)) or EVERY


def scorer_names() -> list[tuple[str, ...]]:
    """What each scorer is trained without, in the order of training: whatever judges first."""
    kinds = (SETS, FOLD_NAMES)
    both = [[*itertools.combinations(kind, 2), *((one,) for one in kind)] for kind in kinds]
    return [*both[0], *both[1], ()]


def further_sets(without: Sequence[str]) -> list[str]:
    """The data sets with further questions that this scorer may learn from. No fold has any."""
    return [name for name in FURTHER if name not in without]


def start_name(without: Sequence[str]) -> str:
    """What a scorer starts from: trained on further questions, or only distilled."""
    if len(set(SETS) - set(without)) == 1 and not further_sets(without):
        return "musique"
    return "+".join(further_sets(without))


@dataclass(frozen=True)
class Context:
    """A part to judge, and the parts that its trees learn from."""

    name: str  # of the part; EVERY: nothing is judged, the reader ships
    inner: tuple[str, ...]

    @property
    def judged(self) -> tuple[str, ...]:
        return () if self.name == EVERY else (self.name,)

    def scorer_of(self, part: str) -> str:
        """The scorer that reads a part that the trees learn from."""
        return scorer_name((*self.judged, part))


def contexts() -> list[Context]:
    return [
        *(Context(one, tuple(x for x in SETS if x != one)) for one in SETS),
        *(Context(one, tuple(x for x in FOLD_NAMES if x != one)) for one in FOLD_NAMES),
        Context(EVERY, FOLD_NAMES),
    ]


def groups_of(part: str) -> list[tuple[str, str]]:
    """The groups (data set, fold) of a part; each is searched at once."""
    if part in SETS:
        return [(part, fold) for fold in FOLD_NAMES]
    return [(name, part) for name in SETS]


# ---- states


def make_states(work: Path, data: Path, vectors: Path, *, most: int | None, workers: int) -> None:
    """Further questions, judged questions, and the states of both as tokens."""
    with _pool(workers) as pool:
        made = [pool.submit(_make_collection, data, vectors, name, most) for name in SETS]
        further = [
            one for name in FURTHER for one in _further(data, name, most or FURTHER_QUESTIONS)
        ]
        _pack(pool, work, "further", further, dict.fromkeys(FURTHER, 1))
        for name in FURTHER:
            _pack_unlabelled(pool, work, name, [one for one in further if one.set == name], most)
        questions = [question for one in made for question in one.result().questions]
        _pack_unlabelled(
            pool, work, "musique", [one for one in questions if one.set == "musique"], most
        )
        _pack(pool, work, "judged", questions, ROUNDS)


def _further(data: Path, name: str, most: int) -> list[ScorerQuestion]:
    judged = [one.text for one in load_questions(data, name)]
    return further_questions(data, name, judged, most=most, seed=0)


def _make_collection(data: Path, vectors: Path, name: str, most: int | None) -> Collection:
    from suffice_research.embedding_cache import CachedEncoder
    from suffice_research.training.scorer_prepare import KnownVectors, build_collection

    return build_collection(data, name, CachedEncoder(KnownVectors(), vectors), most=most)


def _pack(
    pool: ProcessPoolExecutor, work: Path, kind: str, questions: Sequence[ScorerQuestion],
    rounds: Mapping[str, int],
) -> None:  # fmt: skip
    sets, texts = np.array([one.set for one in questions]), [one.text for one in questions]
    for seed, draw in enumerate(DRAWS, 1):
        if (path := work / "states" / f"{kind}-{draw}.npz").is_file():
            continue
        states = training_states(questions, rounds=max(rounds.values()), seed=seed)
        chunks = [states[at : at + CHUNK] for at in range(0, len(states), CHUNK)]
        packed = joined_states(
            list(pool.map(_pack_chunk, [work] * len(chunks), [texts] * len(chunks), chunks))
        )
        # A question's states come in pairs, one pair for each round.
        round_ = np.arange(len(states)) // (2 * len(questions))
        most = np.array([rounds[name] for name in sets.tolist()])[packed.question]
        packed = packed.of(np.flatnonzero(round_ < most))
        _save(path, packed)
        sizes = (len(packed.counts), len(packed.lengths), len(packed.ids))
        print(f"{path.name}: states, pairs, tokens {sizes}", file=sys.stderr, flush=True)
    fold = folds(questions) if kind == "judged" else np.full(len(questions), -1)
    write_atomically(
        work / "states" / f"{kind}.json",
        json.dumps({"set": sets.tolist(), "fold": fold.tolist()}) + "\n",
    )


def _pack_chunk(work: Path, texts: Sequence[str], states: Sequence[ScorerState]) -> PackedStates:
    return pack_states(texts, states, layout_of(work))


def _pack_unlabelled(
    pool: ProcessPoolExecutor, work: Path, name: str, questions: Sequence[ScorerQuestion],
    most: int | None,
) -> None:  # fmt: skip
    if (path := work / "states" / f"unlabelled-{name}.npz").is_file():
        return
    count = most or UNLABELLED
    pieces = range(0, count, CHUNK)
    chunks = [
        pool.submit(_unlabelled, work, questions, min(CHUNK, count - at), at) for at in pieces
    ]
    _save(path, joined_states([one.result() for one in chunks]))


def _unlabelled(
    work: Path, questions: Sequence[ScorerQuestion], count: int, seed: int
) -> PackedStates:
    return pack_pairs(unlabelled_pairs(questions, layout_of(work), count=count, seed=seed))


@lru_cache(maxsize=1)
def layout_of(work: Path) -> PairTokenizer:
    from tokenizers import Tokenizer

    return PairTokenizer(Tokenizer.from_file(str(work / "base" / "tokenizer.json")))


# ---- training


@dataclass(frozen=True)
class Packed:
    """States of questions, with the set and fold of each question."""

    states: PackedStates
    set: npt.NDArray[Any]
    fold: npt.NDArray[Any]
    rows: Any  # on the device

    def seen(self, without: Sequence[str]) -> npt.NDArray[np.int64]:
        """The states that a scorer trained without these parts learns from."""
        question = self.states.question
        unseen = np.isin(self.set[question], without) | np.isin(self.fold[question], without)
        return np.flatnonzero(~unseen)

    def pairs(self, states: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        table = self.states.table(states)
        return np.asarray(table[table >= 0])


def open_packed(work: Path, kind: str, draw: str) -> Packed:
    from suffice_research.training.scorer import TokenRows

    states = _load(work / "states" / f"{kind}-{draw}.npz")
    told = json.loads((work / "states" / f"{kind}.json").read_text("utf-8"))
    fold = np.array(list(map(str, told["fold"])))
    rows = TokenRows(states.ids, states.lengths, states.seconds)
    return Packed(states, np.array(told["set"]), fold, rows)


def train(work: Path, *, until: float, only: Sequence[str] = ()) -> list[str]:
    """Train the scorers that are not there yet, as long as there is time; the names of the rest."""
    from suffice_research.training import scorer

    trainer = _Trainer(work, scorer)
    started, last, left = time.monotonic(), 0.0, list[str]()
    for without in scorer_names():
        name = scorer_name(without)
        if (work / "scorers" / f"{name}.npz").is_file() or (only and name not in only):
            continue
        at = time.monotonic()
        if left or at - started + last * 1.4 > until:  # the next may have more to learn from
            left.append(name)
            continue
        trainer.scorer(without)
        last = time.monotonic() - at
    return left


class _Trainer:
    """Everything that several scorers share, opened once."""

    def __init__(self, work: Path, scorer: Any) -> None:
        from suffice_research.training.reader_weights import base_weights

        self.work, self.nets = work, scorer
        self.base = base_weights(work / "base" / "model.onnx")
        self.starts: dict[str, tuple[Any, Any]] = {}

    @cache  # noqa: B019  one trainer per process
    def packed(self, kind: str, draw: str) -> Packed:
        wait_for(self.work / "states" / f"{kind}.json")
        return open_packed(self.work, kind, draw)

    def scorer(self, without: Sequence[str]) -> None:
        """A teacher and its student, trained without these parts."""
        began, name = time.monotonic(), scorer_name(without)
        teacher, student = self.start(without)
        teacher, student = self.copy(teacher), self.copy(student)
        rates = self.nets.Schedule(rate=5e-5), self.nets.Schedule(rate=8e-5)
        told = self.taught("judged", teacher, student, without, rates)
        weights = self.nets.rounded(self.nets.parameters(student))
        path = self.work / "scorers" / f"{name}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_arrays(path, weights)
        self.log(name, told | {"seconds": round(time.monotonic() - began, 1)})

    def start(self, without: Sequence[str]) -> tuple[Any, Any]:
        """A teacher and a student that have learned from the further questions."""
        name = start_name(without)
        if name not in self.starts:
            path, began = self.work / "starts" / f"{name}.npz", time.monotonic()
            if path.is_file():
                with np.load(path) as file:
                    kept = dict(file)
                self.starts[name] = self.network(kept, "teacher"), self.network(kept, "student")
            else:
                self.starts[name], told = self.make_start(without)
                both = zip(DRAWS, self.starts[name])
                arrays = {
                    f"{who}/{key}": value.astype(np.float16)
                    for who, model in both
                    for key, value in self.nets.parameters(model).items()
                }
                path.parent.mkdir(parents=True, exist_ok=True)
                save_arrays(path, arrays)
                told["seconds"] = round(time.monotonic() - began, 1)
                self.log(f"start {name}", told)
        return self.starts[name]

    def make_start(self, without: Sequence[str]) -> tuple[tuple[Any, Any], dict[str, float]]:
        nets = self.nets
        teacher = nets.cross_encoder(self.base, nets.EVERY)
        student = nets.cross_encoder(self.base)
        some = [
            _load(wait_for(self.work / "states" / f"unlabelled-{one}.npz"))
            for one in further_sets(without) or ["musique"]
        ]
        pairs = joined_states(some)
        rows = nets.TokenRows(pairs.ids, pairs.lengths, pairs.seconds)
        schedule = nets.Schedule(rate=2e-4)
        loss = nets.distil(student, rows, nets.log_odds(teacher, rows), schedule)
        told = {"distilled": round(loss, 4)}
        if further_sets(without):
            rates = nets.Schedule(rate=6e-5), nets.Schedule(rate=1e-4)
            told |= self.taught("further", teacher, student, without, rates)
        return (teacher, student), told

    def taught(
        self, kind: str, teacher: Any, student: Any, without: Sequence[str], schedules: Any
    ) -> dict[str, float]:
        """Fit the teacher on labels, the student on other states with what the teacher says."""
        nets, (first, second) = self.nets, (self.packed(kind, draw) for draw in DRAWS)
        loss = nets.fit(teacher, first.states, first.rows, first.seen(without), schedules[0])
        seen = second.seen(without)
        said = nets.log_odds(teacher, second.rows, second.pairs(seen))
        taught = nets.fit(student, second.states, second.rows, seen, schedules[1], said=said)
        told = {"states": len(seen), "teacher loss": loss, "student loss": taught}
        unseen = np.setdiff1d(np.arange(len(second.states.counts)), seen)[:JUDGED_STATES]
        for who, model in (("teacher", teacher), ("student", student)):
            if len(unseen):
                found = nets.log_odds(model, second.rows, second.pairs(unseen))
                told[f"{who} first"] = nets.first_choice(found, second.states, unseen)
        return {key: round(value, 4) for key, value in told.items()}

    def network(self, kept: Mapping[str, npt.NDArray[Any]], who: str) -> Any:
        own = {key.partition("/")[2]: one for key, one in kept.items() if key.startswith(who)}
        embeddings = {key: one for key, one in self.base.items() if "embeddings" in key}
        layers = range(len(self.nets.EVERY if who == "teacher" else self.nets.LAYERS))
        return self.nets.cross_encoder(embeddings | own, tuple(layers))

    def copy(self, model: Any) -> Any:
        import copy

        return copy.deepcopy(model)

    def log(self, name: str, told: Mapping[str, float]) -> None:
        line = json.dumps({"name": name, **told})
        with (self.work / "scorers.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, file=sys.stderr, flush=True)


def look(work: Path, data: Path, *, most: int | None) -> None:
    """Train the next-hop encoders that are not there yet."""
    from suffice_research.training.next_hop import train_next_hop

    for name in sorted({start_name(without) for without in scorer_names()}):
        if (path := work / "looking" / f"{name}.npz").is_file():
            continue
        began = time.monotonic()
        if name == "musique":  # all that is left without both sets with further questions
            questions, rounds = load_questions(data, name)[:most], 4 * LOOKING_ROUNDS
            others = [searchable_text(one) for one in load(name, data / name).documents()][:most]
        else:
            count, rounds = most or FURTHER_QUESTIONS, LOOKING_ROUNDS
            questions = [one for part in name.split("+") for one in _further(data, part, count)]
            others = []
        adapters, loss = train_next_hop(questions, others, rounds=rounds)
        save_arrays(path, adapters)
        line = {"loss": round(loss, 4), "seconds": round(time.monotonic() - began, 1)}
        print(f"looking {name}", json.dumps(line), file=sys.stderr, flush=True)


# ---- searches and trees, as tasks between files


@dataclass(frozen=True)
class Task:
    """Makes a file from others."""

    makes: Path
    needs: tuple[Path, ...]
    run: Callable[..., None]
    arguments: tuple[Any, ...]


def search_tasks(work: Path) -> list[Task]:
    """Every search and every fit, the ones that something judges last first in each context."""
    every = [(name, fold) for name in SETS for fold in FOLD_NAMES]
    tasks = [_search_task(work, EVERY, HAND, group, None, None) for group in every]
    for context in contexts():
        tasks += _context_tasks(work, context)
    return list({task.makes: task for task in tasks}.values())


def wanted_tasks(tasks: Sequence[Task]) -> list[Task]:
    """The tasks that lead to a missing file which no other task needs."""
    makers = {task.makes: task for task in tasks}
    asked = {one for task in tasks for one in task.needs}
    missing = [one for one in makers if one not in asked and not one.is_file()]
    found: set[Path] = set()
    while missing:
        one = missing.pop()
        if one in makers and one not in found and not one.is_file():
            found.add(one)
            missing += makers[one].needs
    return [task for task in tasks if task.makes in found]


def _context_tasks(work: Path, context: Context) -> Iterator[Task]:
    learned = [(part, group) for part in context.inner for group in groups_of(part)]
    for part in context.inner:
        # Along the hand-set path, trees of a pair of parts serve both parts.
        others = [x for x in context.inner if x != part]
        name = f"{HAND}-{scorer_name((*context.judged, part))}"
        groups = [group for other in others for group in groups_of(other)]
        known = [_rows(work, EVERY, HAND, group) for group in groups]
        yield _fit_task(work, name, known, PATH_ROWS)
        scorer, tree = context.scorer_of(part), work / "trees" / f"{name}.onnx"
        for group in groups_of(part):
            yield _search_task(work, context.name, MIXED, group, scorer, tree)
    for part in context.inner:
        name = f"{MIXED}-{context.name}-{part}"
        known = [
            _rows(work, context.name, MIXED, group) for other, group in learned if other != part
        ]
        yield _fit_task(work, name, known, PATH_ROWS)
        scorer, tree = context.scorer_of(part), work / "trees" / f"{name}.onnx"
        for group in groups_of(part):
            yield _search_task(work, context.name, OWN, group, scorer, tree)
    both = [_rows(work, context.name, way, group) for way in (MIXED, OWN) for _, group in learned]
    yield _fit_task(work, f"reader-{context.name}", both)
    for part in context.judged:
        tree = work / "trees" / f"reader-{context.name}.onnx"
        for group in groups_of(part):
            yield _held_task(work, context, group, tree)


def _rows(work: Path, context: str, way: str, group: tuple[str, str]) -> Path:
    return work / "rows" / context / f"{way}-{group[0]}-{group[1]}.npz"


def _held(work: Path, context: str, group: tuple[str, str]) -> Path:
    return work / "held" / context / f"{group[0]}-{group[1]}.json"


def _search_task(
    work: Path, context: str, way: str, group: tuple[str, str], scorer: str | None,
    tree: Path | None,
) -> Task:  # fmt: skip
    needs = [_scorer(work, scorer), _looking(work, scorer)] if scorer else []
    makes, needs = _rows(work, context, way, group), needs + ([tree] if tree else [])
    return Task(makes, tuple(needs), _search, (work, way, group, scorer, tree, makes))


def _scorer(work: Path, scorer: str) -> Path:
    return work / "scorers" / f"{scorer}.npz"


def _looking(work: Path, scorer: str) -> Path:
    """The next-hop encoder beside a scorer: both have left out the same parts."""
    return work / "looking" / f"{start_name(scorer.split('-'))}.npz"


def _fit_task(work: Path, name: str, rows: Sequence[Path], most: int | None = None) -> Task:
    makes = work / "trees" / f"{name}.onnx"
    return Task(makes, tuple(rows), _fit, (makes, tuple(rows), most))


def _held_task(work: Path, context: Context, group: tuple[str, str], tree: Path) -> Task:
    makes, scorer = _held(work, context.name, group), scorer_name(context.judged)
    needs = (_scorer(work, scorer), _looking(work, scorer), tree)
    return Task(makes, needs, _judge, (work, group, scorer, tree, makes))


def run_tasks(tasks: Sequence[Task], workers: int, until: float) -> int:
    """Run the tasks whose files are there, until all are done or the time is over; how many are
    left. A file counts as soon as it exists.
    """
    started, told = time.monotonic(), 0.0
    running: dict[Future[None], Task] = {}
    left = wanted_tasks(tasks)
    with _pool(workers) as pool:
        while left or running:
            over = time.monotonic() - started > until
            ready = [task for task in left if all(one.is_file() for one in task.needs)]
            for task in [] if over else ready[: 2 * workers - len(running)]:
                task.makes.parent.mkdir(parents=True, exist_ok=True)
                running[pool.submit(task.run, *task.arguments)] = task
                left.remove(task)
            if over and not running:
                break
            done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
            _check(done)
            for one in done:
                del running[one]
            if not running:
                time.sleep(0.5)  # waiting for a scorer
            if time.monotonic() - told > 15:
                told = time.monotonic()
                print(f"{told - started:5.0f} s  {len(left)} left", file=sys.stderr, flush=True)
    return len(left)


def _check(done: set[Future[None]]) -> None:
    for one in done:
        one.result()


def _pool(workers: int) -> ProcessPoolExecutor:
    # Workers share what the parent has loaded, which must not use the GPU itself.
    return ProcessPoolExecutor(workers, mp_context=get_context("fork"))


LOADED: dict[str, Collection] = {}  # what the workers share


@lru_cache(maxsize=4)
def _group(group: tuple[str, str]) -> Collection:
    return LOADED[group[0]].some(_positions(group))


def _positions(group: tuple[str, str]) -> list[int]:
    fold = folds(LOADED[group[0]].questions)
    return np.flatnonzero(fold == int(group[1])).tolist()


@lru_cache(maxsize=1)
def _base(work: Path) -> dict[str, npt.NDArray[Any]]:
    from suffice_research.training.reader_weights import base_weights

    return base_weights(work / "base" / "model.onnx")


@lru_cache(maxsize=4)
def _score(work: Path, name: str) -> Callable[..., npt.NDArray[Any]]:
    from suffice_research.training import scorer
    from suffice_research.training.reader_weights import read_weights

    embeddings = {key: one for key, one in _base(work).items() if "embeddings" in key}
    weights = embeddings | read_weights([work / "scorers" / f"{name}.npz"])
    model = scorer.cross_encoder(weights, tuple(range(len(scorer.LAYERS))))
    return lambda pairs: scorer.log_odds(model, scorer.TokenRows.of(pairs))


class _Looking:
    """A NextHopEncoder of the study."""

    def __init__(self, adapters: Path) -> None:
        from suffice_research.training import next_hop

        with np.load(adapters) as file:
            self._tower = next_hop.next_hop_tower(dict(file))
        self._nets, self._tokenizer = next_hop, StateTokenizer.of_bge()

    def encode(
        self, questions: Sequence[str], held: Sequence[Sequence[str]]
    ) -> npt.NDArray[np.float32]:
        ids = [self._tokenizer.ids(question, texts) for question, texts in zip(questions, held)]
        rows = self._nets.rows_of(ids)
        return np.asarray(self._nets.vectors_of(self._tower, rows).cpu().numpy())


@lru_cache(maxsize=4)
def _next_hop(adapters: Path) -> _Looking:
    return _Looking(adapters)


@lru_cache(maxsize=4)
def _rank(tree: Path) -> Callable[..., npt.NDArray[Any]]:
    return OnnxTrees(tree.read_bytes(), columns=len(QUALITY_FEATURES)).p


def _search(
    work: Path, way: str, group: tuple[str, str], scorer: str | None, tree: Path | None,
    makes: Path,
) -> None:  # fmt: skip
    states = States([], [])
    search(
        _group(group),
        layout_of(work),
        _score(work, scorer) if scorer else None,
        _rank(tree) if tree else hand_rank,
        oracle=ORACLE[way],
        seed=SEEDS[way],
        untaught=way == MIXED,
        next_hop=_next_hop(_looking(work, scorer)) if scorer else None,
        states=states,
    )
    rows, needed = states.arrays()
    save_arrays(makes, {"rows": rows, "needed": needed})


def _fit(makes: Path, paths: Sequence[Path], most: int | None) -> None:
    """Fit trees on all rows of these files, or on `most` that are drawn."""
    rows, needed = [], []
    for path in paths:
        with np.load(path) as file:
            rows.append(file["rows"])
            needed.append(file["needed"])
    every, labels = np.concatenate(rows), np.concatenate(needed)
    chosen = np.sort(np.random.default_rng(0).permutation(len(every))[:most])
    reader = fit_reader(every[chosen], labels[chosen])
    write_atomically(makes, trees_to_onnx(reader, len(QUALITY_FEATURES)))


def _judge(work: Path, group: tuple[str, str], scorer: str, tree: Path, makes: Path) -> None:
    one = _group(group)
    next_hop = _next_hop(_looking(work, scorer))
    held = search(one, layout_of(work), _score(work, scorer), _rank(tree), next_hop=next_hop)
    places = [[one.places[doc_id] for doc_id in ids] for ids in held]
    found = {str(at): place for at, place in zip(_positions(group), places, strict=True)}
    write_atomically(makes, json.dumps(found) + "\n")


def read(
    work: Path, data: Path, vectors: Path, *, most: int | None, workers: int, until: float
) -> int:
    with _pool(workers) as pool:
        made = [pool.submit(_make_collection, data, vectors, name, most) for name in SETS]
        LOADED.update((one.name, one) for one in (future.result() for future in made))
    for one in LOADED.values():
        one.store.search_text(["index it"], k=1)
    gc.freeze()  # workers then share its memory
    return run_tasks(search_tasks(work), workers, until)


# ---- the record


def record(work: Path, data: Path, out: Path, *, most: int | None = None) -> None:
    """Write `held.json`, and the weights and the reader that ship."""
    sets: dict[str, dict[str, list[Any]]] = {}
    for name in SETS:
        folded = _held_of(work, [(fold, (name, fold)) for fold in FOLD_NAMES])
        left_out = _held_of(work, [(name, group) for group in groups_of(name)])
        ids = [one.question.question_id for one in load(name, data / name).questions()]
        ids = ids[:most]
        sets[name] = {
            "questions": ids,
            "folds": [folded[str(at)] for at in range(len(ids))],
            "left_out": [left_out[str(at)] for at in range(len(ids))],
        }
    document = {
        "what": "documents held after five choices, as places in the corpus",
        "commit": source_commit() or os.environ.get("SUFFICE_COMMIT"),
        "first": READ_FIRST,
        "again": READ_AGAIN,
        "sets": sets,
    }
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "held.json", json.dumps(document) + "\n")
    (out / "weights.npz").write_bytes((work / "scorers" / f"{EVERY}.npz").read_bytes())
    (out / "adapters.npz").write_bytes(_looking(work, EVERY).read_bytes())
    (out / "reader.onnx").write_bytes((work / "trees" / f"reader-{EVERY}.onnx").read_bytes())


def _held_of(work: Path, groups: Sequence[tuple[str, tuple[str, str]]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for context, group in groups:
        found |= json.loads(_held(work, context, group).read_text("utf-8"))
    return found


# ---- what the machine can do


def check(*, seconds: float = 16.0, pairs: int = 2_048) -> dict[str, object]:
    """Versions, and tokens per second in training and in reading, with weights drawn at random."""
    import sklearn
    import torch

    from suffice_research.training import scorer

    def speed(layers: int, training: bool) -> float:
        model = scorer.CrossEncoder(layers).to(scorer.DEVICE, scorer.PRECISION)
        model.bert["embeddings"].requires_grad_(False)
        draw = np.random.default_rng(0)
        lengths = draw.integers(80, 240, pairs)
        ids = draw.integers(1, 30_000, int(lengths.sum())).astype(np.int16)
        rows = scorer.TokenRows(ids, lengths, lengths // 2)
        said, schedule = np.zeros(len(lengths), np.float32), scorer.Schedule(rate=1e-6)
        spent: list[float] = []
        while sum(spent[1:]) < seconds / 4 or len(spent) < 3:
            began = time.monotonic()
            if training:
                scorer.distil(model, rows, said, schedule)
            else:
                scorer.log_odds(model, rows)
            spent.append(time.monotonic() - began)
        return float(lengths.sum() / np.median(spent[1:]))  # the first one allocates

    return {
        "torch": torch.__version__,
        "device": scorer.DEVICE,
        "sklearn": sklearn.__version__,
        "cores": os.cpu_count(),
        "commit": source_commit() or os.environ.get("SUFFICE_COMMIT"),
        "teacher trains": round(speed(12, True)),
        "student trains": round(speed(6, True)),
        "teacher reads": round(speed(12, False)),
        "student reads": round(speed(6, False)),
    }


# ---- files


def wait_for(path: Path) -> Path:
    while not path.is_file():
        time.sleep(0.3)
    return path


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """All at once, as others wait for the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    draft.replace(path)


def _save(path: Path, packed: PackedStates) -> None:
    save_arrays(path, {name: getattr(packed, name) for name in PackedStates.__dataclass_fields__})


def _load(path: Path) -> PackedStates:
    with np.load(path) as file:
        return PackedStates(**dict(file))


def main() -> None:
    lines = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(description="\n".join(lines), formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("step", choices=("check", "states", "look", "train", "read", "record"))
    for name in ("work", "data", "vectors", "out"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--until", type=float, default=1e9, help="seconds: begin nothing after")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--most", type=int, help="questions of each set, for a trial")
    parser.add_argument("--only", nargs="*", default=(), help="train only these scorers")
    given = parser.parse_args()
    # bm25s imports jax where it is, and that would take most of the GPU's memory.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if given.step == "check":
        print(json.dumps(check(), indent=1))
    elif given.step == "states":
        make_states(given.work, given.data, given.vectors, most=given.most, workers=given.workers)
    elif given.step == "look":
        look(given.work, given.data, most=given.most)
    elif given.step == "train":
        left = train(given.work, until=given.until, only=given.only)
        print(f"not trained yet: {' '.join(left) or 'none'}")
    elif given.step == "read":
        options = {"most": given.most, "workers": given.workers, "until": given.until}
        print(f"tasks left: {read(given.work, given.data, given.vectors, **options)}")
    else:
        record(given.work, given.data, given.out, most=given.most)


if __name__ == "__main__":
    main()
