"""`suffice judge`: labels by a language model, for `suffice adapt`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.loaders import open_judge
from suffice.cli.output import command, print_json, progress_bar, say, say_skipped
from suffice.errors import InputError


@command
def judge(
    questions: Annotated[
        Path, Argument(help="JSON Lines with question and hits; existing labels are ignored.")
    ],
    out: Annotated[Path, Option(help="Write the labels here, as JSON Lines.", **opt.OUT_FILE)],
    judge: Annotated[
        str | None, Option(help="The model that labels: http://host:8080/v1#MODEL.")
    ] = None,
    k: Annotated[int, Option(min=1, help="How many hits the judge sees.")] = 10,
    skip_bad: opt.SkipBad = False,
    json: opt.Json = False,
) -> None:
    """Let a language model label hits as complete or not.

    Each label is marked as given by a model.
    """
    import json as json_module

    from suffice.datasets.labels import read_lists
    from suffice.evaluation.judging import label_by_judge
    from suffice.storage import BadRecords, write_atomically

    if judge is None:
        hint = "for example --judge http://127.0.0.1:8080/v1#qwen"
        raise InputError("--judge is missing: which model is to label?", hint=hint)
    if out.exists():
        hint = "choose another --out: this file may hold corrected labels"
        raise InputError(f"{out} exists", hint=hint)
    opened = open_judge(judge, labels=True)
    bad = BadRecords(skip=skip_bad)
    lists = read_lists(questions, bad=bad)
    if not lists:
        hint = 'one per line, like {"question": "...", "hits": [{"id": "a", "text": "..."}]}'
        raise InputError(f"{questions} has no question", hint=hint)
    bare = next((one for one in lists if any("text" not in hit for hit in one.hits)), None)
    if bare is not None:
        raise InputError(f"{bare.where}: a hit has no text", hint="add the texts of all hits")
    with progress_bar(quiet=json) as progress:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        rows = list(label_by_judge(lists, opened, k=k, now=lambda: now, progress=progress))
    if not rows:
        raise InputError(
            f"the judge is unsure about all {len(lists):,} lists",
            hint="use a stronger model, or label some by hand: suffice serve --label",
        )
    write_atomically(out, (json_module.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    complete = sum(row["complete"] for row in rows)
    if json:
        print_json({"path": str(out), "labels": len(rows), "complete": complete,
                    "lists": len(lists)})  # fmt: skip
    else:
        print(
            f"{len(rows):,} labels of {len(lists):,} lists at {out}: {complete:,} complete, "
            f"{len(rows) - complete:,} incomplete; the judge is unsure about the others"
        )
        say("\nnext: label some of the same lists by hand, for comparison, then run")
        say(f"suffice adapt {out} --out gate")
    say_skipped(bad)
