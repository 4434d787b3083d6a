"""How likely the reader's answer is right: `python -m suffice_research.training.answers --data
DIR` learns it, stores it beside the shipped reader, and evaluates it.

It is learned from questions in part `stack`, which the reader has not seen, each with a list that
answers it and one that lacks a needed passage. On the second kind every answer is wrong, a guess.
An answer is right with a token F1 of 0.5, as SQuAD counts tokens. Lists are read as `ask` reads
them: forms and roles are checked. Figures are for the parts `test` and `unseen`. The level from
which `ask` answers is chosen on `stack` alone, where each source is judged by weights fitted
without it: it must hold for unseen kinds of questions.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.answering.answer_type import expected_answer_type
from suffice.answering.ask import AskPolicy
from suffice.answering.extractive_reader import passage_from_document
from suffice.answering.span_reader import Fits, SpanReader
from suffice.evaluation.metrics import ANSWER_METRICS
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.worker_pool import worker_pool
from suffice.gate.reader import (
    ANSWER_FILE,
    ANSWER_SIGNS,
    JOINT_FILE,
    PAIR_FILE,
    READER_KIND,
    READER_VERSION,
    REBUILD,
    SHIPPED_READER,
    Reader,
    _Outputs,
    _Window,
)
from suffice.numeric import sigmoid
from suffice.storage import new_artefact, open_artefact, write_atomically
from suffice.types import Document, FoundAnswer
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

__all__ = ["AnsweredList", "draw_lists", "figures", "fit_weights", "main"]

Floats = npt.NDArray[np.floating[Any]]
LIST_SIZE = 8
RIGHT_F1 = 0.5
BINS = 5
DIRECTION = Path(__file__).resolve().parents[2] / "direction" / "pairs.jsonl"
MIN_RIGHT = 0.75  # share of right answers among those given, at the chosen level
MIN_GIVEN = 5  # answers that a source needs to count in the choice of the level
LEVELS = np.arange(0.3, 0.96, 0.05)


@dataclass(frozen=True, slots=True)
class AnsweredList:
    """A question with hits, its gold answers, and the reader's answer."""

    source: str
    question: str
    hits: tuple[Passage, ...]
    gold: tuple[str, ...]  # empty: unanswerable
    answer: str = ""  # none if its form or roles are wrong
    signs: tuple[float, ...] = ()
    floor: float = 0.0  # minimum probability if the sentence states the answer

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
    cases: Sequence[Case], parts: Sequence[str], most: int, seed: int = SEED
) -> Iterator[AnsweredList]:
    """At most `most` questions per source: a complete list and one that lacks a passage."""
    by_source: dict[str, list[Case]] = {}
    for case in cases:
        known = case.answers or case.yes is not None or not case.needed
        if case.part in parts and known:
            name = case.source if case.part == UNSEEN else case.source.split("/")[0]
            by_source.setdefault(name, []).append(case)
    for name, members in by_source.items():
        draw = np.random.default_rng([seed, len(members)])
        pool = [one for case in members for one in case.needed]
        for at in draw.permutation(len(members))[:most].tolist():
            case = members[at]
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


_READER: list[Reader] = []


def _open(folder: Path, readings: Path | None) -> None:
    _READER.append(KeptReader(folder, readings) if readings else Reader(folder, threads=1))


def _read(one: AnsweredList) -> AnsweredList:
    signs: list[float] = []

    def find(question: str, titles: Sequence[str], texts: Sequence[str], fits: Fits) -> FoundAnswer:
        found, numbers = _READER[0].best_answer(question, titles, texts, fits)
        if not signs:  # keep those of the first call, the answer
            signs[:] = numbers.tolist()
        return found  # with probability 0: the reading adds the floor

    passages = [
        passage_from_document(Document(str(at), hit.text, title=hit.title))
        for at, hit in enumerate(one.hits)
    ]
    reading = SpanReader(find).read(one.question, expected_answer_type(one.question), passages)
    said = tuple(signs) or (0.0,) * len(ANSWER_SIGNS)  # none if a rule says yes or no
    return replace(one, answer=reading.answer or "", signs=said, floor=float(reading.score))


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


def fit_weights(lists: Sequence[AnsweredList]) -> Floats:
    """Weights of ANSWER_SIGNS, by logistic regression; all sources weigh the same."""
    from sklearn.linear_model import LogisticRegression

    lists = [one for one in lists if one.answer]
    signs = np.array([one.signs for one in lists])
    right = np.array([one.right for one in lists])
    names, at = np.unique([one.source for one in lists], return_inverse=True)
    share = 1 / np.bincount(at)[at]
    model = LogisticRegression(C=10.0, fit_intercept=False, max_iter=1000)
    model.fit(signs, right, sample_weight=share * len(lists) / len(names))
    return np.asarray(model.coef_[0])


def probabilities(lists: Sequence[AnsweredList], weights: Floats) -> Floats:
    p = sigmoid(np.array([one.signs for one in lists]) @ weights)
    floor = np.array([one.floor for one in lists])
    return np.where([bool(one.answer) for one in lists], np.maximum(p, floor), 0.0)


def left_out_probabilities(lists: Sequence[AnsweredList]) -> Floats:
    """For each list, with weights fitted without its source."""
    sources = np.array([one.source for one in lists])
    p = np.zeros(len(lists))
    for name in np.unique(sources):
        others = [one for one in lists if one.source != name]
        own = np.flatnonzero(sources == name)
        p[own] = probabilities([lists[at] for at in own.tolist()], fit_weights(others))
    return p


def choose_level(lists: Sequence[AnsweredList], p: Floats) -> float:
    """The lowest level from which enough of the given answers are right: in every source with
    enough answers, and over all lists, of which half lack something, with a margin of one standard
    error.
    """
    right, sources = np.array([one.right for one in lists]), np.array([one.source for one in lists])
    for level in LEVELS:
        given = p >= level
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


def figures(lists: Sequence[AnsweredList], p: Floats, level: float) -> dict[str, Any]:
    """Figures by source, and the calibration of the probability."""
    rows = {}
    for name in dict.fromkeys(one.source for one in lists):
        at = [n for n, one in enumerate(lists) if one.source == name]
        whole = [n for n in at if lists[n].gold]
        rest = [n for n in at if not lists[n].gold]
        given = [n for n in at if p[n] >= level]
        rows[name] = {
            "questions": len(whole),
            "incomplete": len(rest),
            "em": _mean(lists[n].exact for n in whole),
            "f1": _mean(lists[n].f1 for n in whole),
            "right": _mean(lists[n].right for n in whole),
            "answered": _mean(p[n] >= level for n in whole),
            "abstained": _mean(p[n] < level for n in rest),
            "right of given": _mean(lists[n].right for n in given),
            "given": len(given),
            "handled": _mean(
                lists[n].right and p[n] >= level if lists[n].gold else p[n] < level for n in at
            ),
        }
    edges = np.linspace(0, 1, BINS + 1)
    bins = np.clip(np.digitize(p, edges) - 1, 0, BINS - 1)
    right = np.array([one.right for one in lists])
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


def direction_lists(path: Path = DIRECTION) -> list[AnsweredList]:
    """Each pair as two questions about one text; the second has no answer."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text = (Passage("", row["text"]),)
        # The rules of `suffice.answering.roles` were written with the other pairs in view.
        kept = int(row["id"].split("-")[1]) % 4 == 2
        name = f"direction/{'kept' if kept else 'read'}"
        found.append(AnsweredList(name, row["asked"], text, (row["answer"],)))
        found.append(AnsweredList(name, row["swapped"], text, ()))
    return found


def save_weights(weights: Floats, folder: Path) -> None:
    """Store these weights in the reader's folder; keep the rest."""
    manifest = open_artefact(folder, kind=READER_KIND, version=READER_VERSION, rebuild=REBUILD)
    about: Any = {"settings": manifest.settings, "inputs": manifest.inputs, "seed": manifest.seed}
    with new_artefact(folder, kind=READER_KIND, version=READER_VERSION, **about) as draft:
        for name in (PAIR_FILE, JOINT_FILE, "tokenizer.json"):
            shutil.copyfile(folder / name, draft / name)
        named = {
            "signs": list(ANSWER_SIGNS),
            "weights": [round(one, 4) for one in weights.tolist()],
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
    parser.add_argument("--level", type=float, help="to answer from; chosen unless told")
    parser.add_argument("--questions", type=int, default=80, help="of a source, at most")
    parser.add_argument(
        "--readings", type=Path, help="keep here what the reader says, and reuse it"
    )
    parser.add_argument("--workers", type=int, help="processes; one for each core unless told")
    args = parser.parse_args(arguments)
    return exit_code(lambda: _run(args, ProgressLog()))


def _run(args: argparse.Namespace, say: ProgressLog) -> None:
    cases = load_cases(args.data, [EVERYDAY])
    level, left_out = args.level, {}
    if not args.study_only:
        learned = read_lists([*draw_lists(cases, (STACK,), args.questions)], args, say)
        fitted = fit_weights(learned)
        save_weights(fitted, args.reader)
        p = left_out_probabilities(learned)
        best = choose_level(learned, p)
        left_out = figures(learned, p, best)["sources"]
        say(
            f"weights {fitted.round(3).tolist()}, level {best} (ask has {AskPolicy().min_probability})"
        )
        level = level or best
    weights = Reader(args.reader).answer_weights
    drawn = draw_lists(cases, (TEST, UNSEEN), args.questions)
    judged = read_lists([*drawn, *direction_lists()], args, say)
    found = figures(judged, probabilities(judged, weights), level or AskPolicy().min_probability)
    found |= {"questions": args.questions, "commit": source_commit()}
    if left_out:
        found["left_out"] = left_out
    for name, row in found["sources"].items():
        say(f"{name:24} " + "  ".join(f"{key} {value}" for key, value in row.items()))
    for row in found["reliability"]:
        say(f"{row['lists']:5} lists  p {row['p']:.2f}  right {row['right']:.2f}")
    if args.study:
        write_atomically(args.study, json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
