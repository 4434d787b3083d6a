"""Make the screen of wary gates: `python -m training.screen --data DIR`; with `--judge` see what it is worth instead.

A screen learns from retrieved lists as they came and as somebody tampered with them (`training.tampering`). `--judge` fits
screen and gate on some of the questions and judges on others: what the screen costs on lists that nobody touched, and how far
the attacks of `trust.attacks`, none of which it has learned from, still come. `--leave-out SET` judges on a data set that
neither has seen anything of. Decision 29 says what came of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from trust import texts
from trust.attacks import ATTACKS

from suffice.assess.gate import Gate
from suffice.assess.incoming import take
from suffice.assess.lessons import Labelled, teach
from suffice.assess.looking import NO_LENSES
from suffice.assess.parts import HIT_LEAVES, HIT_TREES, Judge, boosted
from suffice.assess.screen import SHIPPED, Screen, screened_rows
from suffice.assess.words import Words
from suffice.datasets.gold import split
from suffice.evaluate.cases import Case, collect, labelled
from suffice.evaluate.sources import SEED, SOURCES, Source, Told, ended, open_source
from suffice.evaluate.train_default import KS, draw
from training.tampering import tampered

QUESTIONS = 700  # of a data set, at most; those it is fitted on and those it is judged by
LIKELY, SUSPECT, SURE = 0.25, 0.1, 0.25  # see decision 29
LEAF = 40  # hits in a leaf, at least
SHARES = (0.6, 0.0001, 0.3999)  # to learn from, nothing, to judge by


def fitted(examples: Sequence[Labelled], words: Words, *, seed: int = SEED) -> Screen:
    """A screen of these examples and of others made from them."""
    taken = [take(one.question, one.hits, documents=one.documents, k=max(KS)) for one in examples]
    made = tampered(examples, taken, seed=seed)
    taught = teach([*examples, *(one.example for one in made)], words, NO_LENSES, k=max(KS), fewest=1, others=False)
    rows = screened_rows(taught.seen, words)
    held = [flag for lesson in taught.lessons for flag in lesson.held]
    ids = [[hit.doc_id for hit in one.evidence.hits] for one in taught.seen.taken]
    put = [frozenset[str]()] * len(examples) + [one.put for one in made]
    stuffed = [name in mine for names, mine in zip(ids, put, strict=True) for name in names]
    judges = [
        Judge.fit(rows, np.array(labels, dtype=bool), boosted(HIT_TREES, LEAF, seed, leaves=HIT_LEAVES))
        for labels in (held, stuffed)
    ]
    return Screen(*judges, LIKELY, SUSPECT, SURE)


# ------------------------------------------------------------------------------------------------------ lists


@dataclass(frozen=True)
class Lists:
    """Of one data set: lists to learn from, whole lists to judge by, and those to attack."""

    name: str
    lessons: Sequence[Case]
    judged: Sequence[Case]
    attacked: texts.Field


def lists(source: Source, data: Path, questions: int, attacked: int) -> Lists:
    """By halves: no question that is learned from is judged by."""
    opened = open_source(source, data)
    parts = split(opened.examples(), shares=SHARES)
    known = {one.question.question_id for one in parts.fit}
    found = collect(opened, source.retrievers, KS, sample=questions, seed=texts.SEED)  # another draw than that of the halves
    every = {key: tuple(one for one in cases if one.question.question_id in known) for key, cases in found.by.items()}
    rest = {
        key: [one for one in cases if one.question.question_id not in known and one.evidence.hits]
        for key, cases in found.by.items()
    }
    deepest = [rest[source.judged_by, k] for k in sorted(KS, reverse=True)]
    field = texts.Field.of(source.name, list(zip(*deepest, strict=True)), attacked)
    return Lists(source.name, draw(replace(found, by=every), questions=questions), deepest[0], field)


# ------------------------------------------------------------------------------------------------------ judging


def judge(found: Mapping[str, Lists], left_out: str | None, say: Told) -> None:
    """Print what the screen costs, and what it stops."""
    taught = [one for name, one in found.items() if name != left_out]
    judged = [found[left_out]] if left_out else taught
    lessons = [labelled(case) for one in taught for case in one.lessons]
    words = Words.load()
    plain = Gate.fit(lessons, k=max(KS), words=words, sets=[one.name for one in taught for _ in one.lessons])
    say("fitted a gate")
    wary = replace(plain, screen=fitted(lessons, words))
    say("fitted a screen")
    for one in judged:
        print(f"{one.name}: {_costs(plain, wary, one)}", flush=True)
    held = {one.name: {each.name: texts.outcome(wary, one.attacked, each) for each in ATTACKS} for one in judged}
    say("attacked")
    for promised in (True, False):
        some = [one for one in ATTACKS if one.promised is promised]
        table = texts.measured("A wary gate", "Points over neutral text.", some, held, bound=promised)
        print(f"\n{table.says}\n\n{table.table()}\n{table.verdict()}")


def _costs(plain: Gate, wary: Gate, one: Lists) -> str:
    pairs = [(case.question.text, texts.hits_of(case)) for case in one.judged]
    complete = np.array([case.complete for case in one.judged])
    told = [f"{len(pairs)} lists as they came, {complete.mean():.2f} complete"]
    for name, gate in (("plain", plain), ("wary", wary)):
        p = gate.probabilities(pairs)
        answered = p >= (gate.policy.answer_at or 0.0)
        shares = f"answers {answered[complete].mean():.3f} of the complete, {answered[~complete].mean():.3f} of the others"
        told.append(f"{name} AUROC {roc_auc_score(complete, p):.3f}, {shares}")
    return "; ".join(told)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m training.screen", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="the screen's folder; the package's own unless told")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of a data set, at most")
    parser.add_argument("--judge", action="store_true", help="judge the recipe; the screen that ships is left as it is")
    parser.add_argument("--leave-out", choices=texts.SETS, help="judge: learn nothing from this one, and judge on it alone")
    parser.add_argument("--lists", type=int, default=texts.LISTS, help="judge: lists that are attacked in each data set")
    asked = parser.parse_args()
    return ended(lambda: _make(asked, Told()))


def _make(asked: argparse.Namespace, say: Told) -> None:
    sources = [one for one in SOURCES if one.name in texts.SETS]
    if asked.judge or asked.leave_out:
        found = {one.name: lists(one, asked.data, asked.questions, asked.lists) for one in sources}
        say("searched")
        judge(found, asked.leave_out, say)
        return
    cases = [
        case
        for one in sources
        for case in draw(collect(open_source(one, asked.data), one.retrievers, KS, sample=asked.questions, seed=SEED),
                         questions=asked.questions)
    ]  # fmt: skip
    say(f"drew {len(cases):,} lists")
    card = {"lists": len(cases), "sets": [one.name for one in sources], "questions": asked.questions}
    fitted([labelled(case) for case in cases], Words.load()).save(asked.out, card=card, seed=SEED)
    say(f"screen at {asked.out}")


if __name__ == "__main__":
    sys.exit(main())
