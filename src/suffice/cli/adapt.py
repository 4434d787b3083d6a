"""`suffice adapt`: a gate for your own labels, if it is better than the one before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.output import command, print_json, progress_bar, say, say_skipped
from suffice.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.datasets import Label
    from suffice.evaluation import Adaptation
    from suffice.gate.gate import Gate
    from suffice.types import DocId, Document

NOT_BETTER = 3  # exit code


@command
def adapt(
    labels: Annotated[Path, Argument(help="Labels: JSON Lines, JSON, CSV, ragas rows, traces.")],
    out: Annotated[Path, Option(help="The folder of the new gate.")],
    gate: Annotated[str, Option(help="standard, fast, or the folder of a gate.")] = "standard",
    library: opt.LibraryOption = None,
    score: Annotated[str | None, Option(help="The feedback of a trace that counts.")] = None,
    alpha: Annotated[
        float | None, Option(help="Promise: at most this share of answers is incomplete ...")
    ] = None,
    delta: opt.Delta = 0.1,
    force: Annotated[bool, Option("--force", help="Write it even if it is not better.")] = False,
    skip_bad: opt.SkipBad = False,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Adapt a gate to your labels (yes or no, per hit, or gold ids), and measure the gain."""
    from suffice.datasets import read_labels, to_examples
    from suffice.evaluation import BadRecords, adapt_to_labels
    from suffice.evaluation.gate_evaluation import require_fit_extra, with_seen_questions

    require_fit_extra()
    _check_out(out)
    bad = BadRecords(skip=skip_bad)
    found = read_labels(labels, bad=bad, score=score)
    old = _open_gate(gate)
    taken = to_examples(found, k=old.card["k"], documents=_documents(found, library))
    if found and not taken.examples:
        raise InputError(
            f"no label of {labels} can be learned from; the first: {taken.left_out[0]}",
            hint="say for each list of hits whether it is complete: yes or no",
        )
    with progress_bar(quiet=json) as progress:
        options: dict[str, Any] = {"alpha": alpha, "delta": delta, "seed": seed}
        result = adapt_to_labels(old, taken.examples, progress=progress, **options)
    written = result.is_better or force
    if written:
        texts = [one.question for one in taken.examples]
        with_seen_questions(result.gate, texts).save(out)
    if json:
        record = {"path": str(out) if written else None, "left_out": list(taken.left_out)}
        print_json({**record, **result.as_json()})
    else:
        _show(result, taken.left_out)
        _say_next(result, out, gate, written=written)
    say_skipped(bad)
    if not written:
        raise typer.Exit(NOT_BETTER)


def _check_out(out: Path) -> None:
    """Before the work: what is there must be a gate, which is replaced, or nothing."""
    if out.exists() and not (out / "manifest.json").is_file():
        raise InputError(f"{out} exists and is not a gate", hint="choose another --out")


def _open_gate(gate: str) -> Gate:
    from suffice.gate.gate import FAST, STANDARD, Gate
    from suffice.gate.gate_ref import open_gate

    return Gate.load(preset=gate) if gate in (STANDARD, FAST) else open_gate(gate)


def _documents(labels: Sequence[Label], library: str | None) -> dict[DocId, Document]:
    """The library's documents for hits that are ids only."""
    if library is None:
        return {}
    from suffice.library import Library

    bare = (hit["id"] for label in labels for hit in label.hits if "text" not in hit)
    ids = list(dict.fromkeys(bare))
    with Library.open(library) as opened:
        documents = opened.get(ids)
    return {one.doc_id: one for one in documents if one is not None}


def _show(result: Adaptation, left_out: Sequence[str]) -> None:
    from suffice.evaluation.tables import format_cell

    rest = result.labels - result.complete
    print(f"{result.labels:,} labels: {result.complete:,} complete, {rest:,} incomplete")
    if left_out:
        print(f"{len(left_out):,} more left out, the first: {left_out[0]}")
    rows = (
        ("AUROC", "auroc"),
        ("calibration error (ECE)", "ece"),
        ("share answered", "answered"),
        ("incomplete among answered", "incomplete"),
    )
    print(f"\n{'each label judged by a gate without it':<40}{'before':<22}after")
    for title, name in rows:
        before, after = (format_cell(getattr(one, name)) for one in (result.before, result.after))
        print(f"  {title:<38}{before:<22}{after}")
    print(f"\n{result.verdict}\n{result.outlook}\n{result.promise}")


def _say_next(result: Adaptation, out: Path, gate: str, *, written: bool) -> None:
    if written:
        print(f"gate for {result.labels:,} labels at {out}\n{result.gate.policy.words}")
        say(f'\nnext: suffice check "your question" --hits hits.json --gate {out}')
    else:
        say(f"\nnothing written: keep {gate}, or label more")
        say("next: the same command with more labels, or with --force to write it anyway")
