"""The page of answers: how right the reader's are, and whether its probability can be trusted."""

from __future__ import annotations

import json
from pathlib import Path

from docs.generators.markdown import table
from docs.generators.paths import RESULTS, RUNS

STORED = RUNS / "answers.json"
COMMAND = (
    "python -m suffice_research.training.answers --data $DATA --questions {questions} --study-only "
    "--study docs/results/runs/answers.json"
)
UNSEEN = ("covidqa", "everyday/", "direction")  # nothing is trained on these


def pages() -> dict[Path, str]:
    study = json.loads(STORED.read_text(encoding="utf-8"))
    head = (
        "source", "seen", "questions", "EM", "F1", "right", "answered", "right of those given",
        "abstained, incomplete", "handled right",
    )  # fmt: skip
    rows = [
        (
            name,
            "unseen" if name.startswith(UNSEEN) else "seen",
            f"{row['questions']}, {row['incomplete']}",
            *(_figure(row[key]) for key in ("em", "f1", "right", "answered")),
            f"{_figure(row['right of given'])} of {row['given']}",
            _figure(row["abstained"]),
            _figure(row["handled"]),
        )
        for name, row in study["sources"].items()
    ]
    bins = [
        (str(row["lists"]), _figure(row["p"]), _figure(row["right"]))
        for row in study["reliability"]
    ]
    left_out = [
        (
            name,
            f"{row['questions']}, {row['incomplete']}",
            _figure(row["answered"]),
            f"{_figure(row['right of given'])} of {row['given']}",
        )
        for name, row in study.get("left_out", {}).items()
    ]
    chosen = f"""**How the level was chosen.** On other questions (part *stack*), each source judged by weights that were fitted
without it. The level is the lowest from which three quarters of the answers given are right in every source with
at least five of them.

{table(("source", "questions", "answered", "right of those given"), left_out)}
"""
    text = f"""# Answers of the reader

    {COMMAND.format(questions=study["questions"])}

Eight passages each: those that are needed and others that look right; then again without one that
is needed, where any answer is wrong. Questions with and without: the third column. EM, F1 and
*right* (F1 of at least 0.5) are of the best answer to complete lists, whatever its probability.
*Answered*, *right of those given* and *abstained* are at the level of `ask`, {study["level"]}; *handled right* is the share
of all lists with a right answer given, or none given where something is missing. Half of all lists are incomplete
here; where fewer are, more of the answers given are right. Lists are read as `ask` reads them, but there is no
search, no plan and no gate: the whole loop is on [PAR-RAG reproduced](par-rag.md), by rules, and with the reader
beside a language model.

{table(head, rows)}
**Can the probability be trusted?** All lists above, by what the reader says of its answer:

{table(("lists", "mean probability", "right"), bins)}
{chosen if left_out else ""}
[Decision 36](../decisions/0036-answers.md) says how it is learned. Of 20 answers a share of 0.75 is good for 0.1 either way, of
five for 0.2. The reader learned from other questions of the sources that are *seen*. *direction* are pairs about who did
what to whom (`research/direction`): the rules that check roles were written with those of *read* at hand; nobody
looked at those of *kept* before.{" " + study["note"] if "note" in study else ""}
"""
    return {RESULTS / "answers.md": text}


def _figure(value: float) -> str:
    return "–" if value != value else f"{value:.2f}"
