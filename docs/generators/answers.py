"""The page of answers: how right the reader's are, and whether its probability can be trusted."""

from __future__ import annotations

import json
from pathlib import Path

from docs.generators.markdown import at_commit, table
from docs.generators.paths import RESULTS, RUNS

STORED = RUNS / "answers.json"
COMMAND = (
    "python -m suffice_research.training.answers --data $DATA --questions {questions} --study-only "
    "--study research/results/runs/answers.json"
)
UNSEEN = ("covidqa", "everyday/", "direction")  # nothing is trained on these


def pages() -> dict[Path, str]:
    study = json.loads(STORED.read_text(encoding="utf-8"))
    head = (
        "source", "seen", "questions", "EM", "F1", "right", "gate passes", "answered",
        "right of those given", "abstained, incomplete", "handled right", "handled, no gate",
    )  # fmt: skip
    rows = [
        (
            name,
            "unseen" if name.startswith(UNSEEN) else "seen",
            f"{row['questions']}, {row['incomplete']}",
            *(_figure(row[key]) for key in ("em", "f1", "right", "passed", "answered")),
            f"{_figure(row['right of given'])} of {row['given']}",
            _figure(row["abstained"]),
            *(_figure(row[key]) for key in ("handled", "handled without a gate")),
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
        for name, row in study["left_out"].items()
    ]
    text = f"""# Answers of the reader

    {COMMAND.format(questions=study["questions"])}

Measured {at_commit(study["commit"])}.

Each list has eight passages: the needed ones and others that look relevant. Each question is asked again with a needed passage
removed; any answer is then wrong. The third column has the number of complete and of incomplete lists. EM, F1 and *right* (F1 of
at least 0.5) are for the best answer to complete lists, whatever its probability. As in `ask`, an answer is given if the shipped
gate says ANSWER (*gate passes*: how many of the complete lists) and if it is likely enough to be right: the threshold is
{study["level"]}. *Answered*, *right of those given* and *abstained* count these. *Handled right* is the share of all lists with a
right answer, or with no answer if something is missing; the last column is the same if no gate judges (`use_gate=False`) and the
reader alone says how likely a list is complete. Half of the lists here are incomplete; if fewer are, more of the answers given are
right. The lists are read and judged as in `ask`, but without search and plan. [PAR-RAG reproduced](par-rag.md) has the whole loop,
by rules, and with the reader beside a language model.

{table(head, rows)}
**Can the probability be trusted?** The lists above that the gate passes, by the probability of the answer:

{table(("lists", "mean probability", "right"), bins)}
**How the threshold was chosen.** On other questions (part *stack*), with each source judged by weights fitted without it. The
threshold is the lowest at which three quarters of the answers given are right in every source with at least five of them, and over
all lists with one standard error to spare. The gate was fitted on most of these questions of MuSiQue, on some of StrategyQA and
MultiHop-RAG, and on none of the other sources.

{table(("source", "questions", "answered", "right of those given"), left_out)}
[Decision 15](../../docs/decisions/0015-ask.md) explains how it is learned. With 20 answers, a share of 0.75 has a standard error of
about 0.1; with five, about 0.2. The reader was trained on other questions of the sources marked *seen*. *direction* has pairs about
who did what to whom (`research/direction`). The pairs of
*read* were looked at while rules were written that are gone since; *kept* were not, and *more* are harder ones. The run is of 0.4.0,
with these rules: `research/notes/answer-rules.md` says what changed without them.{" " + study["note"] if "note" in study else ""}
"""
    return {RESULTS / "answers.md": text}


def _figure(value: float) -> str:
    return "–" if value != value else f"{value:.2f}"
