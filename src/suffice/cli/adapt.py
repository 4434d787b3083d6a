"""`suffice adapt`: a gate for your own labels, if it is better than the one before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.loaders import open_judge, open_library
from suffice.cli.output import (
    NOT_BETTER,
    command,
    print_json,
    progress_bar,
    say,
    say_skipped,
)
from suffice.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.datasets import Label, LabelledExamples
    from suffice.evaluation import Adaptation
    from suffice.types import DocId, Document


@command
def adapt(
    labels: Annotated[
        list[Path],
        Argument(
            help="Labels as JSON Lines, JSON, CSV, ragas rows or traces; one file per kind of text."
        ),
    ],
    out: Annotated[Path, Option(help="Folder of the new gate.")],
    gate: Annotated[
        str, Option(help="Gate to start from: standard, fast, or a folder.")
    ] = "standard",
    library: opt.LibraryOption = None,
    score: Annotated[
        str | None, Option(help="Traces: the feedback score that is the label.")
    ] = None,
    alpha: Annotated[
        float | None, Option(help="Promise at most this share of incomplete answers.")
    ] = None,
    delta: opt.Delta = 0.1,
    judge: opt.JudgeAddress = None,
    force: Annotated[bool, Option("--force", help="Write it even if it is not better.")] = False,
    skip_bad: opt.SkipBad = False,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Adapt a gate to your labels and measure the gain.

    A label says yes or no, yes or no per hit, or which documents are gold.
    """
    from suffice.datasets import read_labels
    from suffice.datasets.labels import check_judged
    from suffice.evaluation import BadRecords, adapt_to_labels
    from suffice.evaluation import gate_evaluation as experiment
    from suffice.evaluation.judging import mark_judged
    from suffice.gate.gate import GATE_KIND
    from suffice.gate.gate_ref import open_gate
    from suffice.storage import check_replaceable

    experiment.require_fit_extra()
    experiment.PolicyChoice("risk", 0.1 if alpha is None else alpha, delta)  # before the work
    check_replaceable(out, kind=GATE_KIND)  # before the work
    opened_judge = None if judge is None else open_judge(judge, labels=True)
    bad = BadRecords(skip=skip_bad)
    files = [read_labels(path, bad=bad, score=score) for path in labels]
    found, judged_labels = check_judged(
        [label for some in files for label in some], promise=alpha is not None
    )
    old, usable = open_gate(gate), {id(label) for label in found}
    parts = _to_examples(
        [[one for one in some if id(one) in usable] for some in files], old.card["k"], library
    )
    examples = [one for part in parts for one in part.examples]
    left_out = [one for part in parts for one in part.left_out]
    if found and not examples:
        raise InputError(
            f"no label of {labels[0]} can be used; the first: {left_out[0]}",
            hint="say for each list of hits whether it is complete: yes or no",
        )
    with progress_bar(quiet=json) as progress:
        result = adapt_to_labels(
            old,
            examples,
            alpha=alpha,
            delta=delta,
            seed=seed,
            judge=opened_judge,
            progress=progress,
        )
    new = result.to_write(force=force)
    written = new is not None
    if new is not None:
        texts = [one.question for one in examples]
        experiment.with_seen_questions(mark_judged(new, judged_labels), texts).save(out)
    if json:
        record: dict[str, Any] = {
            "path": str(out) if written else None,
            "left_out": left_out,
            "judged_labels": None if judged_labels is None else judged_labels.as_json(),
        }
        print_json({**record, **result.as_json()})
    else:
        if judged_labels is not None:
            print(judged_labels.sentence)
        _show(result, left_out)
        _say_next(result, out, gate, written=written, judge=judge)
    say_skipped(bad)
    if not written:
        raise typer.Exit(NOT_BETTER)


def _to_examples(
    files: Sequence[Sequence[Label]], k: int, library: str | None
) -> list[LabelledExamples]:
    """Examples of each file; the library has the texts of hits that are ids only."""
    from suffice.datasets import to_examples

    documents: dict[DocId, Document] = {}
    if library is not None:
        labels = (label for some in files for label in some)
        bare = (hit["id"] for label in labels for hit in label.hits if "text" not in hit)
        with open_library(library) as opened:
            found = opened.get(list(dict.fromkeys(bare)))
        documents = {one.doc_id: one for one in found if one is not None}
    return [to_examples(some, k=k, documents=documents) for some in files]


def _show(result: Adaptation, left_out: Sequence[str]) -> None:
    from suffice.evaluation.report import format_cell

    rest = result.labels - result.complete
    print(f"{result.labels:,} labels: {result.complete:,} complete, {rest:,} incomplete")
    if left_out:
        print(f"{len(left_out):,} more skipped, the first: {left_out[0]}")
    rows = (
        ("AUROC", "auroc"),
        ("calibration error (ECE)", "ece"),
        ("share answered", "answered"),
        ("incomplete among answered", "incomplete"),
    )
    gates = [result.before, result.after]
    titles = ["before", "after"]
    if result.with_judge is not None:
        gates.append(result.with_judge)
        titles.append("with the judge")
    print(f"\n{'cross-validated on your labels':<40}{_columns(titles)}")
    for title, name in rows:
        print(f"  {title:<38}{_columns([format_cell(getattr(one, name)) for one in gates])}")
    print(f"\n{result.verdict}\n{result.outlook}\n{result.promise}")
    if (gain := result.judged) is not None:
        failed = f"; no usable answer to {gain.failed:,} labels" if gain.failed else ""
        print(f"{gain.scale}; it would be asked about {gain.sent:.0%} of them{failed}")


def _columns(cells: Sequence[str]) -> str:
    return "".join(f"{cell:<22}" for cell in cells).rstrip()


def _say_next(
    result: Adaptation, out: Path, gate: str, *, written: bool, judge: str | None
) -> None:
    if written:
        counts = result.judged is not None and result.judged.scale.slope > 0
        if counts and not result.is_better:
            print(f"{gate} unchanged, with the scale of the judge, at {out}")
        else:
            print(f"gate for {result.labels:,} labels at {out}\n{result.gate.policy.words}")
        more = f" --judge {judge}" if counts else ""
        if result.gate.policy.answer_at is None:
            say("\nnext: adapt again with more labels, a larger --alpha or none: it never answers")
        else:
            say(f'\nnext: suffice check "your question" --hits hits.json --gate {out}{more}')
    else:
        say(f"\nnothing written: keep {gate}, or label more")
        say("next: run it again with more labels, or with --force to write the gate anyway")
