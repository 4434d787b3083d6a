"""Make the gate that ships: `python -m suffice.evaluate.train_default --data DIR`.

The same data and seed give the same bytes. Lessons come from six data sets, several retrievers and two cut-offs, so that the
gate has seen short and long lists and scores of unlike scale. No data set may drown the others: each gives at most as many
questions as the middle-sized ones have, and each question comes with a few of the lists that were retrieved for it.

With `--card` it also measures and writes the model card: fitted on other folds of one data set, and with one data set left out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from suffice.assess.gate import SHIPPED, Gate
from suffice.datasets import read
from suffice.datasets.controlled import controlled
from suffice.datasets.dataset import Dataset
from suffice.errors import InputError, SufficeError
from suffice.evaluate.cases import Case, Collected, collect, draw_key, labelled
from suffice.evaluate.compare import interval
from suffice.evaluate.gate import Choice, LeftOut, grouped_folds, judge_on_folds, leave_one_out, promise_check, remembering
from suffice.evaluate.metrics import Predictions, score
from suffice.evaluate.tables import Cell, Table
from suffice.files import sha256_of, write_atomically
from suffice.retrieve.corpus import searchable

__all__ = ["SOURCES", "Source", "draw", "main", "train"]

SEED = 42
QUESTIONS, LISTS = 700, 2  # at most so many questions of a data set, and lists of a question
KS = (3, 5, 10)
WITHOUT_SCORES, WITHOUT_TITLES = 4, 10  # one in so many lists, as some retrievers hand them over


@dataclass(frozen=True, slots=True)
class Source:
    """A data set that the shipped gate learns from, where its files lie, its licence, and who searches in it."""

    name: str
    files: Mapping[str, str]  # argument of `datasets.read` -> path below the data folder; empty: made here
    licence: str
    retrievers: tuple[str, ...] = ("bm25", "dense", "hybrid")
    judged_by: str = "bm25"  # the retriever of the figures, at k = 10


SOURCES = (
    Source(
        "hotpotqa",
        {"questions": "hotpotqa/hotpotqa.json", "corpus": "hotpotqa/hotpotqa_corpus.json"},
        "CC BY-SA 4.0",
    ),
    Source(
        "2wikimultihopqa",
        {
            "questions": "2wikimultihopqa/2wikimultihopqa.json",
            "corpus": "2wikimultihopqa/2wikimultihopqa_corpus.json",
        },
        "Apache-2.0",
    ),
    Source("musique", {"questions": "musique/musique.json", "corpus": "musique/musique_corpus.json"}, "CC BY 4.0"),
    Source("multihop_rag", {"questions": "multihop_rag/MultiHopRAG.json", "corpus": "multihop_rag/corpus.json"}, "ODC-BY"),
    Source("frames", {"path": "frames/test.tsv"}, "Apache-2.0", ("bm25", "hybrid-title", "tfidf-char"), "hybrid-title"),
    Source("controlled", {}, "made here from a seed"),
)


def open_source(source: Source, data: Path) -> Dataset:
    if not source.files:
        return controlled(seed=SEED)
    paths = {argument: data / file for argument, file in source.files.items()}
    if lost := next((path for path in paths.values() if not path.is_file()), None):
        raise InputError(f"{lost} does not exist", hint="--data is the folder that holds hotpotqa/, musique/, frames/, ...")
    return read(source.name, paths.get("path"), questions=paths.get("questions"), corpus=paths.get("corpus"))


def draw(collected: Collected, *, seed: int = SEED, lists: int = LISTS) -> list[Case]:
    """Every question with some of its lists. Which ones follows from the seed and the words of the question."""
    keys = sorted(collected.by)
    drawn = []
    for at, case in enumerate(collected.by[keys[0]]):
        text = case.question.text
        order = sorted(keys, key=lambda key: draw_key(seed, f"{key}\0{text}"))
        drawn += [_handed_over(collected.by[key][at], draw_key(seed, f"handed\0{key}\0{text}")) for key in order[:lists]]
    return drawn


def _handed_over(case: Case, key: bytes) -> Case:
    """The case as it is, or as it would come from a retriever that gives no scores, or from a store that keeps no titles."""
    evidence, deeper = case.evidence, case.deeper
    if key[0] % WITHOUT_SCORES == 0:
        evidence = replace(evidence, hits=tuple(replace(hit, score=None) for hit in evidence.hits))
        deeper = tuple(replace(hit, score=None) for hit in deeper)
    if key[1] % WITHOUT_TITLES == 0:
        texts = {name: searchable(one) for name, one in evidence.documents.items()}
        evidence = replace(
            evidence, documents={name: replace(one, title="", text=texts[name]) for name, one in evidence.documents.items()}
        )
    return replace(case, evidence=evidence, deeper=deeper)


def train(lessons: Mapping[str, Sequence[Case]], *, seed: int = SEED) -> Gate:
    """The shipped gate from the drawn cases of every data set."""
    cases = [case for held in lessons.values() for case in held]
    gate = Gate.fit([labelled(case) for case in cases], seed=seed, k=max(KS))
    return remembering(gate, [case.question.text for case in cases])


# ------------------------------------------------------------------------------------------------------ the card


def card(
    collected: Mapping[str, Collected],
    lessons: Mapping[str, Sequence[Case]],
    gate: Gate,
    hashes: Mapping[str, str],
    *,
    seed: int,
) -> str:
    """The model card, every figure from this run."""
    judged = {one.name: collected[one.name].cases(one.judged_by, max(KS)) for one in SOURCES if one.name in collected}
    left_out = []
    for name, cases in judged.items():
        left_out += leave_one_out(lessons, {name: cases}, seed=seed)
        _tell("left out", _left_out_table(left_out[-1:]))
    fitted, promises = _fitted(judged, seed)
    data = Table(
        "Data",
        ("data set", "licence", "questions", "drawn lists", "complete among them", "retrievers"),
        tuple(
            (
                one.name,
                one.licence,
                len(judged[one.name]),
                len(lessons[one.name]),
                float(np.mean([case.complete for case in lessons[one.name]])),
                ", ".join(one.retrievers),
            )
            for one in SOURCES
            if one.name in judged
        ),
    )
    files = "\n".join(f"- `{name}` {digest}" for name, digest in sorted(hashes.items()))
    return f"""# Model card: the gate that ships, grade `fast`

<!-- Written by `python -m suffice.evaluate.train_default --data DIR --card`; do not edit. -->

Says how probable it is that the hits hold every document a question needs. No network and no language model runs at check time;
it reads words, names, links between hits, and scores as shares of the best one. Seed {seed}; the same data give the same bytes.

{gate.policy.words}

## Data

{data.to_markdown()}
Each with the first {", ".join(map(str, KS))} hits; one list in {WITHOUT_SCORES} without its scores, one in {WITHOUT_TITLES}
without titles (they then begin the text), as some retrievers hand them over. Files, with their sha256:

{files}

## Fitted on one data set: 5 folds over questions

A gate fitted, calibrated and given its policy on four folds, judged on the fifth: what `suffice fit` gives on such data.

{fitted.to_markdown()}
## The promise

The threshold chosen on one random half of the out-of-fold probabilities, counted on the other, 200 times; delta 0.1.
`exceeded`: the counted share was above alpha. `broken`: by more than chance allows in a part of that size.

{promises.to_markdown()}
## On a data set it has not seen

The shipped recipe fitted on all data sets but one, judged on that one. `shifted` is after `gate.shifted(recent)`, which sees
the questions and hits of the new set and no label.

{_left_out_table(left_out).to_markdown()}
The shipped gate itself has seen all of these data sets: judge it on questions of your own.

## Limits

- English, Wikipedia passages, news and article titles. Other languages, code or tables were not tried.
- How many documents a question needs is hard to guess on an unseen kind of question: label 100 and `adapt`, or `fit`.
- The promise of a policy holds for questions like those it was calibrated on; it does not survive a move to another corpus.
- It judges whether evidence is there, not whether it is true, and not whether a generator will use it well.
- `multihop_rag` here has articles of which only parts are known, which makes its retrieval easier than on the full corpus.
"""


def _fitted(judged: Mapping[str, Sequence[Case]], seed: int) -> tuple[Table, Table]:
    rows: list[tuple[Cell, ...]] = []
    kept: list[tuple[Cell, ...]] = []
    for name, cases in judged.items():
        texts = [case.question.text for case in cases]
        complete = np.array([case.complete for case in cases], dtype=bool)
        said = judge_on_folds(cases, grouped_folds(texts, complete, 5, seed), Choice(), seed=seed)
        rows.append((name, len(cases), float(complete.mean()), *_figures(complete, said.p)))
        kept += [
            (name, one.alpha, one.exceeded, one.broken, one.coverage)
            for one in promise_check(said.p, complete, texts, seed=seed)
        ]
        _tell("fitted on folds", Table("", ("data set", "n", "complete", "AUROC", "AP", "Brier", "ECE"), (rows[-1],)))
    return (
        Table("Fitted", ("data set", "n", "complete", "AUROC", "AP", "Brier", "ECE"), tuple(rows)),
        Table("Promise", ("data set", "alpha", "exceeded", "broken", "coverage"), tuple(kept)),
    )


def _figures(complete: np.ndarray, p: np.ndarray) -> list[Cell]:
    predictions = Predictions(complete.astype(float), p)
    return [interval(predictions, "auroc"), *(score(predictions, name) for name in ("auprc", "brier", "ece"))]


def _left_out_table(found: Sequence[LeftOut]) -> Table:
    rows = []
    for one in found:
        before, after = Predictions(one.complete.astype(float), one.p), Predictions(one.complete.astype(float), one.p_shifted)
        share = float(one.complete.mean())
        rows.append((one.name, share, interval(before, "auroc"), score(before, "ece"), score(after, "ece")))
    return Table("Left out", ("left out", "complete", "AUROC", "ECE", "ECE, shifted"), tuple(rows))


# ------------------------------------------------------------------------------------------------------ the command


def _tell(what: str, table: Table) -> None:
    """Figures as they come: the whole takes minutes."""
    for row in table.texts:
        shown = ", ".join(f"{name} {cell}" for name, cell in zip(table.columns, row))
        print(f"{what}: {shown}", file=sys.stderr, flush=True)


def _searched(source: Source, asked: argparse.Namespace) -> Collected:
    data = open_source(source, asked.data)
    return collect(data, source.retrievers, KS, sample=asked.questions, seed=asked.seed)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m suffice.evaluate.train_default", description="Make the gate that ships.")
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--out", type=Path, default=SHIPPED / "gate-fast", help="the gate's folder")
    parser.add_argument("--card", type=Path, help="measure, and write the model card here (minutes more)")
    parser.add_argument("--only", help="some of the data sets, with commas: for trying out")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of a data set at most")
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args(arguments)
    started = time.perf_counter()
    try:
        wanted = [one for one in SOURCES if not asked.only or one.name in asked.only.split(",")]
        collected = {one.name: _searched(one, asked) for one in wanted}
        print(f"searched after {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        lessons = {name: draw(one, seed=asked.seed) for name, one in collected.items()}
        gate = train(lessons, seed=asked.seed)
        gate.save(asked.out)
        total = sum(map(len, lessons.values()))
        print(
            f"gate of {total:,} lists at {asked.out} after {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True
        )
        if asked.card:
            hashes = {file: sha256_of(asked.data / file) for one in wanted for file in one.files.values()}
            write_atomically(asked.card, card(collected, lessons, gate, hashes, seed=asked.seed))
            print(f"card at {asked.card} after {time.perf_counter() - started:.0f} s", file=sys.stderr)
    except SufficeError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
