"""`make results`: measure the figures of research/results again, one part per page; `make docs` then
renders the pages.

`python -m docs.generators.measure answers gate` measures two parts; all of them take most of a day.
`make bench` measures the pages about speed. `grade-sample` holds questions that people read; it is
not measured.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.generators import answers, models, results
from docs.generators.paths import DATA, ROOT, RUNS
from suffice.datasets import load
from suffice.evaluation.metrics import judge_rankings
from suffice.evaluation.report import Cell, Section, Table
from suffice.evaluation.significance import interval
from suffice.storage import sha256_of, write_atomically
from suffice_research import CACHING_STUDIES, STUDY_NAMES
from suffice_research.published_cells import WithPublished
from suffice_research.study import Study
from suffice_research.training.scorer_data import FURTHER
from suffice_research.training.sources import SOURCES


def run_command(command: str, data: Path, *more: str, cwd: Path = ROOT) -> str:
    """Run a `suffice` or `python` command as the page shows it, with `$DATA` replaced; what it
    prints.

    `more` is appended and overrides the page's options: where to write, what to keep.
    """
    program, *words = [word.replace("$DATA", str(data)) for word in shlex.split(command)]
    start = [sys.executable] if program == "python" else [sys.executable, "-m", program]
    return subprocess.run(
        [*start, *words, *more], check=True, stdout=subprocess.PIPE, text=True, cwd=cwd
    ).stdout


def store_study(study: Path, stored: Path) -> None:
    """Store a study without its timings: measured twice, it has the same bytes."""
    write_atomically(stored, Study.load(study).to_json(timings=False))


def measure_retrieval(data: Path, work: Path) -> None:
    """Run every experiment, and store its summary without its timings."""
    for experiment in results.EXPERIMENTS:
        summary = json.loads(run_command(experiment.command, data, "--json"))
        del summary["seconds"]
        write_atomically(experiment.stored, json.dumps(summary, indent=1) + "\n")


def measure_study(name: str, data: Path, work: Path) -> None:
    """Do a paper again, and store the study."""
    kept = ["--cache", str(work)] if name in CACHING_STUDIES else []
    if first := results.answers_command(name):
        run_command(first, data, *kept)
    run_command(results.study_command(name), data, "--out", str(work), *kept)
    store_study(work / "study.json", results.study_path(name))
    if name in results.WITHOUT_MODEL:
        command, _, _ = results.READER_COMMAND.partition(" --study ")
        run_command(command, data, "--study", str(work / "reader.json"))
        store_study(work / "reader.json", results.WITHOUT_MODEL[name])


def measure_gate(data: Path, work: Path) -> None:
    """Measure both presets and the studies beside them, and store all. The gates that ship are left
    as they are.
    """
    left_as_it_is = {
        "standard": ("--study-only", "--readings", str(work / "readings.jsonl")),
        "fast": (),
    }
    for preset, more in left_as_it_is.items():
        made = work / f"{preset}.json"
        stored = models.stored_study(f"gate-{preset}")
        run_command(models.gate_command(preset, stored), data, *more, "--study", str(made))
        store_study(made, models.gate_path(preset))
    for name in models.STUDY_MODULES:
        if (stored := models.stored_study(name)) is not None:
            made, readings = work / f"{name}.json", work / f"{name}-readings.jsonl"
            kept = ("--readings", str(readings), "--out", str(made))
            run_command(models.study_command(name, stored), data, *kept)
            store_study(made, RUNS / f"{name}.json")


def measure_bridge(data: Path, work: Path) -> None:
    """Measure `fast`, with and without titles, and count `quality`, and store the studies.

    The models that ship are left as they are.
    """
    run_command(
        models.BRIDGE_COMMANDS["fast"], data, "--study-only", "--study", str(work / "fast.json")
    )
    store_study(work / "fast.json", models.FAST)
    kept = ("--out", str(work / "untitled"), "--study", str(work / "untitled.json"))
    run_command(models.BRIDGE_COMMANDS["untitled"], data, *kept)
    store_study(work / "untitled.json", models.UNTITLED)
    count_bridge_gold(data)


def count_bridge_gold(data: Path) -> None:
    """Count the gold among the documents that `quality` held, and store the study."""
    held, rows = json.loads(models.HELD.read_text(encoding="utf-8")), []
    files = {
        file: sha256_of(data / file)
        for one in SOURCES
        if one.name in models.BRIDGE_SETS
        for file in one.files.values()
    }
    files |= {file: sha256_of(data / file) for file, _ in FURTHER.values()}
    for name in models.BRIDGE_SETS:
        kept = held["sets"][name]
        found = load(name, data / name)
        ids = [document.doc_id for document in found.documents()]
        known = {one.question.question_id: one.gold.doc_ids for one in found.questions()}
        gold = [known[question] for question in kept["questions"]]
        judged = [
            judge_rankings([[ids[at] for at in one] for one in kept[key]], gold, depth=5)
            for key in ("folds", "left_out")
        ]
        row: list[Cell] = [name, len(gold)]
        for metric, floors in zip(models.METRICS, models.BRIDGE_FLOORS[name]):
            row += [
                WithPublished(interval(one, f"{metric}@5", seed=models.SEED), floor)
                for one, floor in zip(judged, floors)
            ]
        rows.append(tuple(row))
    columns = (
        "data set",
        "n",
        *(f"{metric}@5{kind}" for metric in models.METRICS for kind in models.PROTOCOLS),
    )
    table = Table("Bridge, quality", columns, tuple(rows))
    settings = {"first": held["first"], "again": held["again"]}
    title = "The bridge retriever, preset quality"
    sections = (Section("Sets of five", (table,)),)
    study = Study(
        "bridge-quality",
        title,
        models.SEED,
        settings,
        files,
        sections,
        commit=held.get("commit"),  # of the run that held them, not of this count
    )
    write_atomically(models.QUALITY, study.to_json())


def measure_expansion(data: Path, work: Path) -> None:
    """Run every study, and store it. The calibration that ships is left as it is."""
    kept = ("--paths", str(work / "paths.jsonl"), "--study", str(work / "stop.json"))
    run_command(results.STOP_COMMAND, data, *kept)
    store_study(work / "stop.json", results.STOP_PATH)
    if not all((work / f"gate-without-{name}").is_dir() for name in results.EXPANSION_SETS):
        run_command(results.WITHOUT_COMMAND, data, "--gates", str(work))
    for name in results.EXPANSION_SETS:
        for gate in results.EXPANSION_GATES:
            run_command(
                results.expansion_command(gate, name),
                data,
                "--json",
                "--out",
                "study.json",
                cwd=work,
            )
            store_study(work / "study.json", results.expansion_path(gate, name))


def measure_answers(data: Path, work: Path) -> None:
    """Measure the answers of the shipped reader, and store them; its folder stays as it is."""
    command, _, _ = answers.COMMAND.partition(" --study ")
    run_command(command, data, "--study-only", "--study", str(work / "study.json"))
    write_atomically(answers.STORED, (work / "study.json").read_text(encoding="utf-8"))


# Part -> what measures it, from the data folder; the second folder is for results that another run
# can reuse.
PARTS: dict[str, Callable[[Path, Path], None]] = {
    "retrieval": measure_retrieval,
    **{paper: partial(measure_study, paper) for paper in STUDY_NAMES},
    "gate": measure_gate,
    "bridge": measure_bridge,
    "expansion": measure_expansion,
    "answers": measure_answers,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.generators.measure", description=__doc__)
    parser.add_argument(
        "part", nargs="*", metavar="PART", help=f"only these: {', '.join(PARTS)}; default: all"
    )
    parser.add_argument(
        "--data", type=Path, default=DATA, help="the folder of real data; default: SUFFICE_DATA"
    )
    parser.add_argument(
        "--work",
        type=Path,
        help="keep vectors and fitted gates here; a stopped run resumes",
    )
    args = parser.parse_args()
    if unknown := [part for part in args.part if part not in PARTS]:
        parser.error(f"no part {', '.join(unknown)}; known: {', '.join(PARTS)}")
    if not args.data.is_dir():
        print(
            (
                f"error: no real data at {args.data}\nhint: pass --data, or set SUFFICE_DATA; see "
                f"CONTRIBUTING"
            ),
            file=sys.stderr,
        )
        return 2
    with TemporaryDirectory() as temporary:
        work = (args.work or Path(temporary)).resolve()
        for part in args.part or PARTS:
            print(f"measuring {part}", file=sys.stderr, flush=True)
            (work / part).mkdir(parents=True, exist_ok=True)
            PARTS[part](args.data.resolve(), work / part)
    return 0


if __name__ == "__main__":
    sys.exit(main())
