"""How likely the reader's answer is right: `python -m suffice_research.training.answers --data
DIR` learns it, stores it beside the shipped reader, and evaluates it.

    P(right) = P(the evidence is complete) * P(right, if it is)

The second is learned from complete lists of questions in part `stack`, which the reader has not
seen. The first is the gate's p_complete; where no gate judges, it is what the reader says,
calibrated on the same lists and on as many that lack a needed passage. On those, every answer is
wrong, a guess. An answer is right with a token F1 of 0.5, as SQuAD counts tokens. Lists are read as
`ask` reads them: forms are checked, and the gate must say ANSWER.

Figures are for the parts `test` and `unseen`. The level from which `ask` answers is chosen on
`stack` alone, where each source is judged by weights fitted without it: it must hold for unseen
kinds of questions. The gate was fitted on some of its questions; those that it has not seen come
first.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.answering.answer_type import expected_answer_type
from suffice.answering.ask import AskPolicy
from suffice.answering.span_reader import Fits, SpanReader, passage_from_document
from suffice.evaluation.gate_evaluation import is_seen
from suffice.evaluation.metrics import ANSWER_METRICS
from suffice.evaluation.result_files import source_commit
from suffice.gate.calibration import Platt
from suffice.gate.gate import Gate
from suffice.gate.reader import (
    ANSWER_FILE,
    ANSWER_SIGNS,
    ANSWER_VERSION,
    JOINT_FILE,
    PAIR_FILE,
    READER_KIND,
    READER_VERSION,
    REBUILD,
    SHIPPED_READER,
    AnswerModel,
    Reader,
    _Outputs,
    _Window,
)
from suffice.numeric import sigmoid
from suffice.storage import new_artefact, open_artefact, write_atomically
from suffice.types import Action, Document, FoundAnswer, Hit
from suffice_research.training.cases import (
    EVERYDAY,
    STACK,
    TEST,
    UNSEEN,
    Case,
    Passage,
    load_cases,
)
from suffice_research.training.sources import SEED, ProgressLog, exit_code
from suffice_research.worker_pool import worker_pool

__all__ = ["AnsweredList", "draw_lists", "figures", "fit_model", "main"]

Floats = npt.NDArray[np.floating[Any]]
LIST_SIZE = 8
RIGHT_F1 = 0.5
BINS = 5
DIRECTION = Path(__file__).resolve().parents[2] / "direction"
MIN_RIGHT = 0.75  # share of right answers among those given, at the chosen level
MIN_GIVEN = 5  # answers that a source needs to count in the choice of the level
LEVELS = np.arange(0.3, 0.96, 0.01)
# The surer the reader and the shorter an answer, the likelier it is right. Nothing is assumed of the
# constant and of yes or no.
SIGN_BOUNDS = ((None, None), (0, None), (0, None), (None, None), (None, 0))
PENALTY = 0.1  # of the squared weights


@dataclass(frozen=True, slots=True)
class AnsweredList:
    """A question with hits, its gold answers, the reader's answer and the gate's verdict."""

    source: str
    question: str
    hits: tuple[Passage, ...]
    gold: tuple[str, ...]  # empty: unanswerable
    answer: str = ""  # none if its form is wrong
    signs: tuple[float, ...] = ()
    complete: float = 0.0  # the reader's log-odds that the hits are complete
    p_complete: float = 1.0  # by the gate
    passed: bool = True  # the gate says ANSWER

    @property
    def f1(self) -> float:
        return self._score("token_f1")

    @property
    def exact(self) -> float:
        return self._score("em")

    def _score(self, metric: str) -> float:
        if not self.gold or not self.answer:
            return 0.0
        return float(ANSWER_METRICS[metric]([self.answer], [list(self.gold)])[0])

    @property
    def right(self) -> bool:
        return self.f1 >= RIGHT_F1


def draw_lists(
    cases: Sequence[Case],
    parts: Sequence[str],
    most: int,
    seed: int = SEED,
    seen: Callable[[Sequence[str]], Sequence[bool]] | None = None,
) -> Iterator[AnsweredList]:
    """At most `most` questions per source: a complete list and one that lacks a passage.

    Those that were `seen` come last.
    """
    by_source: dict[str, list[Case]] = {}
    for case in cases:
        known = case.answers or case.yes is not None or not case.needed
        if case.part in parts and known:
            name = case.source if case.part == UNSEEN else case.source.split("/")[0]
            by_source.setdefault(name, []).append(case)
    for name, members in by_source.items():
        draw = np.random.default_rng([seed, len(members)])
        pool = [one for case in members for one in case.needed]
        order = [members[at] for at in draw.permutation(len(members)).tolist()]
        if seen is not None:
            last = dict(zip(order, seen([case.question for case in order]), strict=True))
            order.sort(key=last.__getitem__)
        for case in order[:most]:
            others = list(case.distractors[:12])
            others += [pool[n] for n in draw.integers(len(pool), size=LIST_SIZE).tolist()]
            others = [one for one in dict.fromkeys(others) if one not in case.needed]
            gold = tuple(one.passage.text[one.start : one.end] for one in case.answers)
            if case.yes is not None:
                gold = ("yes" if case.yes else "no",)
            lacking = int(draw.integers(len(case.needed))) if case.needed else -1
            for complete in (True, False)[not case.needed :]:
                kept = [one for n, one in enumerate(case.needed) if complete or n != lacking]
                # For an unanswerable question, passages that only seem to answer come first.
                hits = [*kept, *others][: max(LIST_SIZE, len(kept))]
                order = draw.permutation(len(hits)).tolist()
                chosen = tuple(hits[n] for n in order)
                yield AnsweredList(name, case.question, chosen, gold if complete else ())


class KeptReader(Reader):
    """A reader that stores the network's output in a file, to try rules, weights and levels on the
    same lists without reading again.
    """

    def __init__(self, folder: Path, file: Path) -> None:
        super().__init__(folder, threads=1)
        self._kept = sqlite3.connect(file, timeout=600, isolation_level=None)
        self._kept.execute("CREATE TABLE IF NOT EXISTS said (key TEXT PRIMARY KEY, outputs BLOB)")
        self._named = self.name

    def _run(self, question: list[int], windows: list[_Window]) -> _Outputs:
        read = [self._named, question, [(one.hit, one.ids) for one in windows]]
        key = hashlib.sha256(json.dumps(read).encode()).hexdigest()
        row = self._kept.execute("SELECT outputs FROM said WHERE key = ?", (key,)).fetchone()
        if row is not None:
            kept = np.load(io.BytesIO(row[0]))
            evidence, spans = (
                np.split(kept[one], kept[f"{one}_at"]) for one in ("evidence", "spans")
            )
            first = (kept["needed"], kept["relevance"], float(kept["complete"]))
            return _Outputs(*first, kept["counts"], kept["answer"], evidence, spans)
        said = super()._run(question, windows)
        arrays: dict[str, Any] = said._asdict()
        for name in ("evidence", "spans"):
            arrays[f"{name}_at"] = np.cumsum([len(one) for one in arrays[name]])[:-1]
            arrays[name] = np.concatenate(arrays[name])
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        self._kept.execute("INSERT OR IGNORE INTO said VALUES (?, ?)", (key, file.getvalue()))
        return said


_OPENED: list[tuple[Reader, Gate]] = []


def _open(folder: Path, readings: Path | None) -> None:
    reader = KeptReader(folder, readings) if readings else Reader(folder, threads=1)
    gate = Gate.load()
    _OPENED.append((reader, replace(gate, readers=replace(gate.readers, reader=reader))))


def _read(one: AnsweredList) -> AnsweredList:
    """The list with the reader's answer and the shipped gate's verdict."""
    ((reader, gate),) = _OPENED
    said: list[tuple[list[float], float]] = []

    def find(question: str, titles: Sequence[str], texts: Sequence[str], fits: Fits) -> FoundAnswer:
        found, signs, complete = reader.best_answer(question, titles, texts, fits)
        said.append((signs.tolist(), complete))
        return found

    documents = {
        str(at): Document(str(at), hit.text, title=hit.title) for at, hit in enumerate(one.hits)
    }
    passages = [passage_from_document(document) for document in documents.values()]
    reading = SpanReader(find).read(one.question, expected_answer_type(one.question), passages)
    hits = tuple(map(Hit, documents))
    verdict = gate.check(one.question, hits, documents=documents, explain=False)
    signs, complete = said[0] if said else ([], 0.0)  # of the first call, the answer
    return replace(
        one,
        answer=reading.answer or "",
        signs=tuple(signs),
        complete=complete,
        p_complete=verdict.p_complete,
        passed=verdict.action is Action.ANSWER,
    )


def read_lists(
    lists: Sequence[AnsweredList], args: argparse.Namespace, say: ProgressLog
) -> list[AnsweredList]:
    """The reader's answer to each list, by default with one process per core."""
    found = []
    with worker_pool(
        args.workers, initializer=_open, initargs=(args.reader, args.readings)
    ) as pool:
        for one in pool.map(_read, lists, chunksize=4):
            found.append(one)
            say.progress("reading", len(found), len(lists))
    return found


def fit_model(lists: Sequence[AnsweredList]) -> AnswerModel:
    """Weights by logistic regression, from complete lists of sources that all weigh the same, and
    the calibration of the reader's log-odds that a list is complete.
    """
    from scipy.optimize import minimize

    learned = [one for one in lists if one.gold and one.answer and one.signs]
    signs, share = np.array([one.signs for one in learned]), _shares(learned)
    sides = np.where([one.right for one in learned], 1.0, -1.0)

    def loss(weights: Floats) -> tuple[float, Floats]:
        margins = sides * (signs @ weights)
        slopes = -sides * sigmoid(-margins) * share
        value = share @ np.logaddexp(0, -margins) + PENALTY / 2 * weights @ weights
        return float(value), signs.T @ slopes + PENALTY * weights

    start = np.zeros(len(ANSWER_SIGNS))
    found = minimize(loss, start, jac=True, bounds=SIGN_BOUNDS, method="L-BFGS-B")
    judged = [one for one in lists if one.signs]
    complete = Platt.fit([one.complete for one in judged], [bool(one.gold) for one in judged])
    return AnswerModel(found.x.round(4), Platt(round(complete.slope, 4), round(complete.offset, 4)))


def _shares(lists: Sequence[AnsweredList]) -> Floats:
    """The weight of each list: all sources weigh the same, and 1 is the mean."""
    names, at = np.unique([one.source for one in lists], return_inverse=True)
    return np.asarray(len(lists) / len(names) / np.bincount(at)[at])


def probabilities(
    lists: Sequence[AnsweredList], model: AnswerModel, *, gated: bool = True
) -> Floats:
    """As `ask` counts, with the gate's verdict or without a gate."""
    none = (0.0,) * len(ANSWER_SIGNS)
    right = sigmoid(np.array([one.signs or none for one in lists]) @ model.weights)
    held = np.array([one.p_complete for one in lists])
    if not gated:
        held = model.complete.apply([one.complete for one in lists])
    return np.where([bool(one.answer) for one in lists], held * right, 0.0)


def left_out_probabilities(lists: Sequence[AnsweredList]) -> Floats:
    """For each list, with weights fitted without its source."""
    sources = np.array([one.source for one in lists])
    p = np.zeros(len(lists))
    for name in np.unique(sources):
        others = [one for one in lists if one.source != name]
        own = np.flatnonzero(sources == name)
        p[own] = probabilities([lists[at] for at in own.tolist()], fit_model(others))
    return p


def choose_level(lists: Sequence[AnsweredList], p: Floats) -> float:
    """The lowest level from which enough of the given answers are right: in every source with
    enough answers, and over all lists, of which half lack something, with a margin of one standard
    error. None is given if the gate does not say ANSWER.
    """
    right, sources = np.array([one.right for one in lists]), np.array([one.source for one in lists])
    passed = np.array([one.passed for one in lists])
    for level in LEVELS:
        given = passed & (p >= level)
        share = right[given].mean() if given.any() else 1.0
        worst = min(
            (
                right[given & (sources == name)].mean()
                for name in np.unique(sources)
                if (given & (sources == name)).sum() >= MIN_GIVEN
            ),
            default=1.0,
        )
        error = np.sqrt(share * (1 - share) / max(given.sum(), 1))
        if min(share - error, worst) >= MIN_RIGHT:
            return round(float(level), 2)
    return round(float(LEVELS[-1]), 2)


def figures(
    lists: Sequence[AnsweredList], p: Floats, level: float, *, alone: Floats | None = None
) -> dict[str, Any]:
    """Figures by source, and the calibration of the probability where the gate says ANSWER; `alone`
    are the probabilities without a gate.
    """
    rows = {}
    answered = [one.passed and p[n] >= level for n, one in enumerate(lists)]

    def handled(at: Sequence[int], given: Any) -> float:
        return _mean(lists[n].right and given[n] if lists[n].gold else not given[n] for n in at)

    for name in dict.fromkeys(one.source for one in lists):
        at = [n for n, one in enumerate(lists) if one.source == name]
        whole = [n for n in at if lists[n].gold]
        rest = [n for n in at if not lists[n].gold]
        given = [n for n in at if answered[n]]
        rows[name] = {
            "questions": len(whole),
            "incomplete": len(rest),
            "passed": _mean(lists[n].passed for n in whole),
            "em": _mean(lists[n].exact for n in whole),
            "f1": _mean(lists[n].f1 for n in whole),
            "right": _mean(lists[n].right for n in whole),
            "answered": _mean(answered[n] for n in whole),
            "abstained": _mean(not answered[n] for n in rest),
            "right of given": _mean(lists[n].right for n in given),
            "given": len(given),
            "handled": handled(at, answered),
        }
        if alone is not None:
            rows[name]["handled without a gate"] = handled(at, alone >= level)
    counted = np.array([one.passed and bool(one.answer) for one in lists])
    right, p = np.array([one.right for one in lists])[counted], p[counted]
    bins = np.clip(np.digitize(p, np.linspace(0, 1, BINS + 1)) - 1, 0, BINS - 1)
    reliability = [
        {
            "lists": int((bins == n).sum()),
            "p": _mean(p[bins == n]),
            "right": _mean(right[bins == n]),
        }
        for n in range(BINS)
    ]
    return {"level": level, "sources": rows, "reliability": reliability}


def _mean(values: Any) -> float:
    found = np.array(list(values), dtype=float)
    return round(float(found.mean()), 4) if len(found) else float("nan")


def direction_lists(folder: Path = DIRECTION) -> list[AnsweredList]:
    """Each pair as two questions about one text; the second has no answer."""
    found = []
    lines = [
        line
        for name in ("pairs", "more")
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for row in map(json.loads, lines):
        text = (Passage("", row["text"]),)
        group, number = row["id"].split("-")
        # Rules that checked roles, now gone, were written with the pairs of "read" in view.
        if group == "direction":
            group = "kept" if int(number) % 4 == 2 else "read"
        name = f"direction/{group}"
        found.append(AnsweredList(name, row["asked"], text, (row["answer"],)))
        found.append(AnsweredList(name, row["swapped"], text, ()))
    return found


def save_model(model: AnswerModel, folder: Path) -> None:
    """Store it in the reader's folder; keep the rest."""
    manifest = open_artefact(folder, kind=READER_KIND, version=READER_VERSION, rebuild=REBUILD)
    about: Any = {"settings": manifest.settings, "inputs": manifest.inputs, "seed": manifest.seed}
    with new_artefact(folder, kind=READER_KIND, version=READER_VERSION, **about) as draft:
        for name in (PAIR_FILE, JOINT_FILE, "tokenizer.json"):
            shutil.copyfile(folder / name, draft / name)
        named = {
            "version": ANSWER_VERSION,
            "signs": list(ANSWER_SIGNS),
            "weights": model.weights.tolist(),
            "complete": asdict(model.complete),
        }
        (draft / ANSWER_FILE).write_text(json.dumps(named, indent=2) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.training.answers",
        description="Learn how likely the reader's answers are right, and measure it.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--reader", type=Path, default=SHIPPED_READER, help="its folder")
    parser.add_argument("--study", type=Path, help="write the figures here")
    parser.add_argument(
        "--study-only", action="store_true", help="measure, and leave the reader's folder as it is"
    )
    parser.add_argument("--level", type=float, help="to answer from; that of ask unless told")
    parser.add_argument("--questions", type=int, default=300, help="of a source, at most")
    parser.add_argument(
        "--readings", type=Path, help="keep here what the reader says, and reuse it"
    )
    parser.add_argument("--workers", type=int, help="processes; one for each core unless told")
    args = parser.parse_args(arguments)
    return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    cases = load_cases(args.data, [EVERYDAY])
    drawn = draw_lists(cases, (STACK,), args.questions, seen=partial(is_seen, Gate.load()))
    learned = read_lists([*drawn], args, say)
    model = fit_model(learned)
    if args.study_only:
        model = Reader(args.reader).answer_model
    else:
        save_model(model, args.reader)
    p = left_out_probabilities(learned)
    level = args.level or AskPolicy().min_probability
    left_out = figures(learned, p, level)["sources"]
    say(f"{model}, level {choose_level(learned, p)} (ask has {AskPolicy().min_probability})")
    drawn = draw_lists(cases, (TEST, UNSEEN), args.questions)
    judged = read_lists([*drawn, *direction_lists()], args, say)
    p, alone = probabilities(judged, model), probabilities(judged, model, gated=False)
    found = figures(judged, p, level, alone=alone)
    found |= {"questions": args.questions, "commit": source_commit(), "left_out": left_out}
    for name, row in found["sources"].items():
        say(f"{name:24} " + "  ".join(f"{key} {value}" for key, value in row.items()))
    for row in found["reliability"]:
        say(f"{row['lists']:5} lists  p {row['p']:.2f}  right {row['right']:.2f}")
    if args.study:
        write_atomically(args.study, json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
