"""PAR-RAG with your own language model: the value of the loop, the gate and the model.

On questions that neither the gate nor its reader was trained on: the model alone, the model with
one search (naive RAG), our loop with the model, and the same loop with the gate's reader instead.
The gate is the shipped one. Outcomes and their costs are stored in the cache folder, so that an
interrupted run can resume.

`python -m suffice_research.par_rag.model_study --data DIR --study FILE` measures the rows of the
reader alone, which need no language model.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.datasets import load
from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError
from suffice.evaluation.gate_evaluation import count_seen
from suffice.evaluation.report import Cell, Section, Table, format_cell
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.significance import Difference
from suffice.gate.gate_ref import open_gate
from suffice.protocols import LanguageModel, Progress, component_name
from suffice.storage import package_versions, sha256_of
from suffice_research import answers as shown
from suffice_research.answer_systems import AnswerSettings, compare_answers
from suffice_research.answers import AnswerRun
from suffice_research.local_model import usable_model
from suffice_research.par_rag import tables
from suffice_research.stage_timer import StageTimer
from suffice_research.study import Study, table_cell
from suffice_research.training.cases import TEST, part_of
from suffice_research.training.sources import ProgressLog, exit_code

__all__ = [
    "DATASETS_WITH_MODEL",
    "READER_SYSTEMS",
    "WITH_READER",
    "Unseen",
    "data_folder",
    "exemplar_words",
    "model_study",
    "reader_study",
]

DATASETS_WITH_MODEL = ("2wikimultihopqa", "hotpotqa", "musique", "multihop_rag")
QUESTIONS = 60  # per data set
GATE = "default"
ALONE, NAIVE, ONCE, ALWAYS, ASK = "model alone", "naive", "along links", "always", "ask"
GATED, ALWAYS_READER, ASK_READER = "gate, then loop", "always, reader", "ask, reader"
WITH_READER = "with the reader instead of a model"
SAME_EXEMPLARS = "ask, any exemplars"
READER_SYSTEMS = (ALWAYS_READER, ASK_READER)
SYSTEMS = (ALONE, NAIVE, ONCE, ALWAYS, GATED, ASK, SAME_EXEMPLARS, *READER_SYSTEMS)
NOTES = (
    "model alone answers without a document. naive reads the first five hits once, along links what the bridge retriever "
    "finds, ten documents, once. always is the loop without a gate, as the paper's is; ask is the loop that says nothing "
    "where the gate or the review does not agree. gate, then loop searches once, along links: where the gate finds the hits "
    "complete, the model reads them once, else the loop runs. The rows with reader are the loop without a language model.",
    "No question of this section taught the gate or its reader: those of the gate's card are left out; of MuSiQue and "
    "MultiHop-RAG, of which the reader learned from others, only questions of its part test are asked. The reader has learned "
    "from further questions of all four, and from passages of their corpora: they are seen sources with unseen questions. "
    "Whether the language model has seen them in its training is unknown. Questions of MultiHop-RAG without evidence are left out.",
    "Prompts, k, rounds and thresholds are those of the library, and none was changed for this model.",
    "Calls and tokens are of one question, the server's own count. Seconds are of one question on the machine of the run, "
    "with several questions at a time, and include waiting for the others: an order of magnitude, no more.",
    "Where a call of the model failed (no JSON, even when asked again), the rules went on, as they do in ask.",
)


@dataclass(frozen=True)
class Unseen:
    """Whether none of our models was trained on a question."""

    dataset: str
    taught: Callable[[str], bool]

    def __call__(self, one: GoldQuestion) -> bool:
        text = one.question.text
        if not one.gold.doc_ids or self.taught(text):
            return False
        groups = {"musique": one.question.question_id, "multihop_rag": text}
        group = groups.get(self.dataset)  # for the other two, the reader was trained on other files
        return group is None or part_of(self.dataset, group) == TEST


def data_folder(data: Path | None, name: str, datasets: Sequence[str]) -> Path:
    if data is None or not (Path(data) / name).is_dir():
        raise InputError(
            f"this study is done on real questions, and {data or 'no folder'} does not hold {name}/",
            hint=f"pass --data with the folder that holds {', '.join(f'{one}/' for one in datasets)}",
        )
    return Path(data) / name


def model_study(
    model: LanguageModel | Path,
    *,
    seed: int = 42,
    data: Path | None = None,
    limit: int | None = None,
    max_chars: int = 6000,
    cache: Path | None = None,
    gate: str = GATE,
    workers: int = 1,
    progress: Progress | None = None,
    datasets: Sequence[str] = DATASETS_WITH_MODEL,
) -> Study:
    """The study with a model, or with a GGUF file, which is then served.

    `workers`: questions at a time. `cache` stores the outcomes.
    """
    folders = {name: data_folder(data, name, datasets) for name in datasets}
    settings = AnswerSettings(
        systems=SYSTEMS, limit=limit or QUESTIONS, gate=gate, max_chars=max_chars, seed=seed
    )
    with usable_model(model) as asked:
        options: Any = {"cache": cache, "workers": workers, "progress": progress}
        runs, hashes, clock = _compare(settings, folders, asked, **options)
        named = component_name(asked)
    return Study(
        name="par-rag",
        title="PAR-RAG with a language model",
        seed=seed,
        settings={
            **_asked(runs),
            "model": named,
            "workers": workers,
            "systems": list(SYSTEMS),
        },
        data=hashes,
        sections=tuple(_sections(runs)),
        summary=(*_findings(runs, named), *_reader_findings(runs)),
        notes=NOTES,
        timings=clock.seconds,
        commit=source_commit(),
        packages=package_versions(),
    )


def reader_study(
    *,
    seed: int = 42,
    data: Path | None = None,
    limit: int | None = None,
    gate: str = GATE,
    cache: Path | None = None,
    progress: Progress | None = None,
    datasets: Sequence[str] = DATASETS_WITH_MODEL,
) -> Study:
    """The rows with the reader alone, on the same questions: they need no language model, so they
    can be measured again when the reader or its rules change.
    """
    folders = {name: data_folder(data, name, datasets) for name in datasets}
    settings = AnswerSettings(
        systems=READER_SYSTEMS, limit=limit or QUESTIONS, gate=gate, seed=seed
    )
    options: Any = {"cache": cache, "progress": progress}
    runs, hashes, clock = _compare(settings, folders, None, **options)
    return Study(
        name="par-rag",
        title="PAR-RAG with the reader",
        seed=seed,
        settings={**_asked(runs), "systems": list(READER_SYSTEMS)},
        data=hashes,
        sections=tuple(_section(name, run) for name, run in runs.items()),
        summary=tuple(_reader_findings(runs)),
        timings=clock.seconds,
        commit=source_commit(),
        packages=package_versions(),
    )


def _compare(
    settings: AnswerSettings,
    folders: Mapping[str, Path],
    model: LanguageModel | None,
    *,
    cache: Path | None,
    workers: int = 1,
    progress: Progress | None,
) -> tuple[dict[str, AnswerRun], dict[str, str], StageTimer]:
    """A run per data set, on questions that taught none of our models; hashes and times."""
    clock, hashes, runs = StageTimer(), dict[str, str](), dict[str, AnswerRun]()
    opened = open_gate(settings.gate)
    for name, folder in folders.items():
        files = [one for one in sorted(folder.iterdir()) if one.suffix == ".json"]
        hashes |= {one.name: sha256_of(one) for one in files}
        with clock(f"answering {name}"):
            runs[name] = compare_answers(
                load(name, folder),
                settings,
                model=model,
                clock=None if model is None else time.monotonic,
                outcomes=cache,
                keep=Unseen(name, lambda text: bool(count_seen(opened, [text]))),
                workers=workers,
                confidence=False,  # no table ranks answers by it
                progress=progress,
            )
    return runs, hashes, clock


def _asked(runs: Mapping[str, AnswerRun]) -> dict[str, dict[str, Any]]:
    """How many questions were asked, and a hash of which."""
    ids = {name: "\n".join(run.question_ids).encode() for name, run in runs.items()}
    return {
        "questions": {name: len(run) for name, run in runs.items()},
        "asked": {name: hashlib.sha256(one).hexdigest()[:16] for name, one in ids.items()},
    }


def _sections(runs: Mapping[str, AnswerRun]) -> Iterator[Section]:
    yield Section(
        "With a language model, beside the paper",
        (
            tables.table_2(runs, SYSTEMS),
            tables.table_4(runs, SYSTEMS),
            saved_calls(runs),
            tables.exemplars(runs),
        ),
        "In parentheses: the paper's figure, by its own language model.",
    )
    yield from (_section(name, run) for name, run in runs.items())


def _section(name: str, run: AnswerRun) -> Section:
    with_model = NAIVE in run.systems  # without one, times would be those of another machine
    tables_of = [shown.correctness_table(run), shown.evidence_table(run, timed=with_model)]
    if with_model:
        tables_of.append(shown.differences_table(run, NAIVE))
    return Section(f"{name}, with a language model", tuple(tables_of))


def saved_calls(runs: Mapping[str, AnswerRun]) -> Table:
    """What the gate saves: running the loop only if one search is not enough, against always."""
    rows: list[tuple[Cell, ...]] = []
    for name, run in runs.items():
        calls = [run.figure(one, "calls").value for one in (ALWAYS, GATED)]
        gaps = [run.above(GATED, ALWAYS, measure) for measure in ("calls", "tokens", "token_f1")]
        once = run.above(GATED, ONCE, "token_f1")
        rows.append((name, len(run), *calls, *gaps, once))
    columns = (
        *("data set", "n", "calls of always", f"calls of {GATED}", "difference in calls"),
        *("difference in tokens", "difference in F1", f"F1 above {ONCE}"),
    )
    note = (
        "A question, on average. Differences with 95 % interval, paired bootstrap over questions; calls and tokens below 0: "
        f"saved. Last: {GATED} against reading once what the same search found, one call."
    )
    return Table("What the gate saves", columns, tuple(rows), note)


def _findings(runs: Mapping[str, AnswerRun], model: str) -> Iterator[str]:
    for name, run in runs.items():
        f1 = {one: format_cell(run.figure(one, "token_f1")) for one in SYSTEMS}
        yield (
            f"{name}, n = {len(run)}, {model}: F1 of the loop {f1[ALWAYS]}, of naive RAG {f1[NAIVE]}, of the model alone "
            f"{f1[ALONE]}."
        )
    for name, run in runs.items():
        wrong = {one: format_cell(run.figure(one, "wrong_of_answered")) for one in (NAIVE, ASK)}
        given = format_cell(run.figure(ASK, "answered").value)
        yield (
            f"{name}: of the answers given, wrong by naive RAG {wrong[NAIVE]}; by ask with the model {wrong[ASK]}, which "
            f"answers {given}."
        )
    for name, run in runs.items():
        calls, f1_gap = run.above(GATED, ALWAYS, "calls"), run.above(GATED, ALWAYS, "token_f1")
        once = format_cell(run.above(GATED, ONCE, "token_f1"))
        word = "not beyond chance for so few questions" if _by_chance(f1_gap) else "beyond chance"
        yield (
            f"{name}: asking the gate before the loop changes calls a question by {format_cell(calls)} and F1 by "
            f"{format_cell(f1_gap)}, {word}; against one reading of the same search, F1 by {once}."
        )
    yield from exemplar_words(tables.exemplars(runs))


def _reader_findings(runs: Mapping[str, AnswerRun]) -> Iterator[str]:
    for name, run in runs.items():
        f1 = format_cell(run.figure(ALWAYS_READER, "token_f1"))
        given = format_cell(run.figure(ASK_READER, "answered").value)
        wrong = format_cell(run.figure(ASK_READER, "wrong_of_answered"))
        yield (
            f"{name}, n = {len(run)}, {WITH_READER}: F1 of the loop {f1}; ask answers {given}, of these "
            f"wrong {wrong}."
        )


def exemplar_words(table: Table) -> Iterator[str]:
    """The value of exemplars of the question's own complexity, from their table."""
    for name, n, *_ in table.rows:
        gained = {
            measure: table_cell(table, str(name), f"{measure}, gained")
            for measure in ("EM", "answered", "tokens")
        }
        words = ", ".join(f"{measure} by {format_cell(one)}" for measure, one in gained.items())
        yield (
            f"{name}, n = {n}: exemplars of the question's complexity, in place of the same for all, change {words}."
        )


def _by_chance(one: Difference) -> bool:
    return one.low is None or one.high is None or one.low <= 0 <= one.high


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.par_rag.model_study",
        description="Measure the loop with the reader on the questions asked with a model.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--study", type=Path, required=True, help="write the study here")
    parser.add_argument("--limit", type=int, help="questions per data set")
    args = parser.parse_args(arguments)

    def measure() -> None:
        progress = ProgressLog().progress
        reader_study(data=args.data, limit=args.limit, progress=progress).save(args.study)

    return exit_code(measure)


if __name__ == "__main__":
    sys.exit(main())
