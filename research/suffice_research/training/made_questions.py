"""Does the loop pay? Gates fitted on questions generated from a corpus, evaluated on the real
questions over that corpus.

    python -m suffice_research.training.made_questions --data DIR --work DIR --study FILE

For each of three data sets, by training data: the other data sets' real questions, generated
questions alone, and both. No question or label of the data set itself is seen before the
evaluation. Also: what still distinguishes generated from real questions. `--work` stores benchmarks
and fitted gates, so that an interrupted run can resume.

From each benchmark a limited number of questions is drawn that need several documents, three
quarters of them chains, bridges and intersections, one quarter comparisons: one rule for all
corpora, near the mean of the three real data sets (0.48, 0.20 and none).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import GoldQuestion, draw_key
from suffice.evaluation.gate_evaluation import gate_inputs
from suffice.evaluation.metrics import Predictions, score
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.searching import (
    RetrievedDataset,
    RetrievedQuestion,
    retrieve_dataset,
    to_labelled_question,
)
from suffice.evaluation.significance import interval
from suffice.evaluation.study import Section, Study
from suffice.evaluation.tables import Cell, Table, WithPublished
from suffice.gate.gate import FAST, Gate
from suffice.storage import package_versions, sha256_of
from suffice_grade.benchmark_files import open_benchmark
from suffice_grade.pipeline import build_benchmark
from suffice_research.training.gate import train_gate
from suffice_research.training.gate_data import KS, draw_lists
from suffice_research.training.sources import (
    SEED,
    SOURCES,
    ProgressLog,
    Source,
    chosen_sources,
    exit_code,
    open_source,
)

__all__ = ["FLOORS", "about_several", "balanced", "distinguishability", "draw_like", "main"]

Floats = npt.NDArray[np.float64]
Apart = tuple[float, list[str], list[str]]  # AUROC, words of generated and of real questions
FLOORS: Mapping[str, float] = {
    "2wikimultihopqa": 0.92,
    "hotpotqa": 0.83,
    "musique": 0.76,
}  # targets with both
COMPARING = ("comparison", "temporal", "bridge_comparison")
COMPARED = 1 / 4  # share of comparisons among the drawn questions
RETRIEVER, K = "bm25", 10
FOLDS = 5
QUESTIONS, JUDGED = 700, 850  # per data set for training and for evaluation, at most


def about_several(examples: Sequence[GoldQuestion]) -> list[GoldQuestion]:
    """The questions that need several documents, as the real ones do.

    BM25 finds the document of a question about one nearly always. Such questions teach a gate that
    a plain question has complete hits, whatever the hits are.
    """
    return [one for one in examples if one.gold.hops > 1]


def balanced(
    examples: Sequence[GoldQuestion], most: int, *, seed: int = SEED
) -> list[GoldQuestion]:
    """At most `most` generated questions about several documents, a quarter of them comparisons,
    drawn by their text; equally many comparisons of each kind and length.
    """
    drawn = sorted(about_several(examples), key=lambda one: draw_key(seed, one.question.text))
    comparing = [one for one in drawn if one.gold.kind in COMPARING]
    others = [one for one in drawn if one.gold.kind not in COMPARING]
    kept = others[: round(most * (1 - COMPARED))]
    groups: dict[tuple[str | None, int], list[GoldQuestion]] = {}
    for one in comparing:
        groups.setdefault((one.gold.kind, one.gold.hops), []).append(one)
    wanted = round(len(kept) * COMPARED / (1 - COMPARED))
    for members in groups.values():
        kept += members[: -(-wanted // len(groups))]
    return kept


def draw_like(
    made: Sequence[GoldQuestion], like: Sequence[str], most: int, *, seed: int = SEED
) -> list[GoldQuestion]:
    """The generated questions that look most like some real ones, of which only the text is known.

    A bag-of-words classifier says how real each looks, in folds, so that none is judged by a model
    that was trained on it. What a corpus yields is not what people ask: half of the chains in an
    encyclopedia are family trees.
    """
    if len(made) <= most or len(like) < FOLDS:
        return list(made)[:most]
    looks = _looks_made([one.question.text for one in made], like)[: len(made)]
    order = sorted(
        range(len(made)), key=lambda at: (looks[at], draw_key(seed, made[at].question.text))
    )
    return [made[at] for at in order[:most]]


def distinguishability(made: Sequence[str], real: Sequence[str], *, words: int = 12) -> Apart:
    """How well a classifier of words and word pairs tells generated from real questions (AUROC,
    five folds), and by which words.
    """
    from sklearn.metrics import roc_auc_score

    truth = np.array([1] * len(made) + [0] * len(real))
    auroc = roc_auc_score(truth, _looks_made(made, real))
    vectors, model = _classifier()
    order = np.argsort(model.fit(vectors.fit_transform([*made, *real]), truth).coef_[0])
    names = vectors.get_feature_names_out()
    return (
        float(auroc),
        [str(names[at]) for at in order[::-1][:words]],
        [str(names[at]) for at in order[:words]],
    )


def _classifier() -> tuple[Any, Any]:
    """The vectorizer and the classifier of generated against real questions."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    vectors = TfidfVectorizer(min_df=3, ngram_range=(1, 2))
    return vectors, LogisticRegression(C=10, max_iter=1000, class_weight="balanced")


def _looks_made(made: Sequence[str], real: Sequence[str]) -> Floats:
    """The probability of being generated, for all questions, out of fold."""
    from sklearn.model_selection import cross_val_predict

    vectors, model = _classifier()
    truth = np.array([1] * len(made) + [0] * len(real))
    table = vectors.fit_transform([*made, *real])
    found = cross_val_predict(model, table, truth, cv=FOLDS, method="predict_proba")
    return np.asarray(found[:, 1], dtype=np.float64)


@dataclass(frozen=True)
class _LoopResult:
    """One data set: the three gates' outputs for its real questions, and the questions generated
    from its corpus.
    """

    name: str
    complete: npt.NDArray[np.bool_]
    said: Mapping[str, Floats]  # "others", "made", "both"
    drawn: Sequence[GoldQuestion]
    by_kind: Mapping[str, int]
    made_complete: float
    apart: Apart


class _Loop:
    def __init__(self, args: argparse.Namespace) -> None:
        self.data, self.work, self.questions = args.data, args.work, args.questions
        self.say = ProgressLog()
        self._collected: dict[str, RetrievedDataset] = {}

    def real(self, source: Source) -> RetrievedDataset:
        if source.name not in self._collected:
            options: dict[str, Any] = {"sample": max(QUESTIONS, JUDGED), "seed": SEED}
            self._collected[source.name] = retrieve_dataset(
                open_source(source, self.data), source.retrievers, KS, **options
            )
            self.say(f"searched {source.name}")
        return self._collected[source.name]

    def training(self, without: str) -> dict[str, list[RetrievedQuestion]]:
        """The drawn lists of every data set but one."""
        return {
            one.name: draw_lists(self.real(one), questions=max(1, round(QUESTIONS * one.share)))
            for one in SOURCES
            if one.name != without
        }

    def gate(self, name: str, make: Any) -> Gate:
        """A gate from the work folder, or made and stored there."""
        folder = self.work / f"gate-{name}"
        if not folder.is_dir():
            make().save(folder)
            self.say(f"fitted {name}")
        return Gate.load(folder)

    def measure(self, source: Source) -> _LoopResult:
        folder = self.work / source.name
        made = build_benchmark(open_source(source, self.data).documents(), folder)
        benchmark = open_benchmark(folder, twins=False)
        drawn = balanced(list(benchmark.questions()), self.questions)
        dataset = Dataset(
            "made", documents=lambda _: benchmark.documents(), questions=lambda _: iter(drawn)
        )
        searched = retrieve_dataset(dataset, source.retrievers, KS, seed=SEED)
        self.say(f"searched for {len(drawn)} questions made from {source.name}")
        plain = searched.questions(RETRIEVER, K)
        gates = {
            "others": self.gate(
                f"{source.name}-others", lambda: train_gate(self.training(source.name), preset=FAST)
            ),
            "made": self.gate(
                f"{source.name}-made",
                lambda: Gate.fit(
                    [to_labelled_question(case) for case in plain], seed=SEED, k=K, preset=FAST
                ),
            ),
            "both": self.gate(
                f"{source.name}-both",
                lambda: train_gate(
                    {
                        **self.training(source.name),
                        "made": draw_lists(searched, questions=len(drawn)),
                    },
                    preset=FAST,
                ),
            ),
        }
        judged = self.real(source).questions(RETRIEVER, K)
        said = {
            name: np.asarray(gate.probabilities(gate_inputs(judged)), dtype=np.float64)
            for name, gate in gates.items()
        }
        apart = distinguishability(
            [one.question.text for one in drawn], [case.question.text for case in judged]
        )
        complete = np.array([case.complete for case in judged], dtype=bool)
        figures = {
            name: score(Predictions(complete.astype(float), p), "auroc") for name, p in said.items()
        }
        self.say(f"{source.name}: {figures}")
        by_kind = {
            **{f"{hops} hops": count for hops, count in made.by_hops.items()},
            **made.by_kind,
        }
        share = float(np.mean([case.complete for case in plain]))
        return _LoopResult(source.name, complete, said, drawn, by_kind, share, apart)


def apart_table(title: str, apart: Mapping[str, Apart], note: str) -> Table:
    """By corpus, how well generated and real questions can be told apart, and by which words."""
    rows = [
        (name, auroc, ", ".join(made), ", ".join(real))
        for name, (auroc, made, real) in apart.items()
    ]
    return Table(
        title, ("corpus", "AUROC", "made questions say", "real questions say"), tuple(rows), note
    )


def _study(measured: Sequence[_LoopResult], args: argparse.Namespace) -> Study:
    rows: list[tuple[Cell, ...]] = []
    for one in measured:
        truth = one.complete.astype(float)
        figures = {name: interval(Predictions(truth, p), "auroc") for name, p in one.said.items()}
        both = WithPublished(figures["both"], FLOORS.get(one.name))
        shares = (len(truth), float(truth.mean()), len(one.drawn), one.made_complete)
        rows.append((one.name, *shares, figures["others"], figures["made"], both))
    columns = (
        "corpus",
        "real",
        "complete",
        "made",
        "made complete",
        "other data sets",
        "made alone",
        "both",
    )
    note = (
        f"AUROC on the real questions, {RETRIEVER}, k = {K}; [95 % over questions] (figure "
        f"to reach)."
    )
    pays = Table("The loop", columns, tuple(rows), note)
    note = (
        "A classifier of words and pairs of words, five folds: 0.5 would mean that nobody can tell."
    )
    apart = apart_table("Made or real", {one.name: one.apart for one in measured}, note)
    kinds = list(dict.fromkeys(kind for one in measured for kind in one.by_kind))
    made = Table(
        "Valid questions",
        ("corpus", *kinds),
        tuple((one.name, *(one.by_kind.get(kind, 0) for kind in kinds)) for one in measured),
    )
    files = {file for source in SOURCES for file in source.files.values()}
    return Study(
        name="loop",
        title="Made questions teach a gate",
        seed=SEED,
        settings={
            "questions": args.questions,
            "comparing": COMPARED,
            "retriever": RETRIEVER,
            "k": K,
        },
        data={file: sha256_of(args.data / file) for file in sorted(files)},
        sections=(
            Section("The loop pays", (pays, made), ""),
            Section("What still tells them apart", (apart,), ""),
        ),
        commit=source_commit(),
        packages=package_versions(),
    )


def loop_parser(command: str, description: str) -> argparse.ArgumentParser:
    """The arguments of both commands about generated questions."""
    parser = argparse.ArgumentParser(
        prog=f"python -m suffice_research.training.{command}", description=description
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--work", type=Path, required=True, help="what is kept between runs")
    parser.add_argument("--study", type=Path, help="write the study here")
    parser.add_argument("--only", help="some of the data sets, with commas")
    parser.add_argument(
        "--questions", type=int, default=QUESTIONS, help="made questions to learn from, at most"
    )
    return parser


def show(study: Study, path: Path | None) -> None:
    """Print the tables, and save the study if a path is given."""
    for table in study.tables:
        print(table.to_markdown(), "\n")
    if path:
        study.save(path)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = loop_parser("made_questions", "Does the loop pay?")
    args = parser.parse_args(arguments)
    return exit_code(lambda: _run(args))


def _run(args: argparse.Namespace) -> None:
    loop = _Loop(args)
    measured = [loop.measure(one) for one in chosen_sources(args.only, FLOORS)]
    show(_study(measured, args), args.study)


if __name__ == "__main__":
    sys.exit(main())
