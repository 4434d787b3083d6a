"""Adversarial texts: how often they push incomplete evidence over the gate's threshold, compared
with neutral text.

Questions whose hits lack a needed document are attacked in every way of `robustness.attacks`. Each
attack has a control: the same list with as much neutral text in the same place. The figure is the
share that the gate would answer, attacked minus neutral, in percentage points. Mere claims are also
tried on gates that are not hardened: `robustness.claim_eval`. Set SUFFICE_DATA for the real data.
Decision 19 says what was tried.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarks.reporting import ResultTable, print_progress

from robustness.attacks import ATTACKS, Attack, Hits, Neutral
from suffice.evaluation.searching import RetrievedQuestion, retrieve_dataset
from suffice.evaluation.significance import paired_difference
from suffice.gate.gate import Gate
from suffice.text import names
from suffice.types import Document
from suffice_research.training.sources import SOURCES, Source, open_source

Bools = npt.NDArray[np.bool_]
DATA = Path(
    os.environ.get("SUFFICE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)
SETS = ("hotpotqa", "2wikimultihopqa", "musique", "multihop_rag", "controlled")
KS = (10, 5, 3)
QUESTIONS, LISTS, FEW = 250, 60, 20  # drawn of each data set; attacked; attacked in a short run
SEED = 7  # of the draw
MOST_POINTS = 2.0
CLAIMS = [one for one in ATTACKS if one.family == "claims"]
STUFFING = [one for one in ATTACKS if one not in CLAIMS]  # these use words of the question


# ---- questions


@dataclass(frozen=True)
class AttackSetting:
    """A data set: incomplete lists to attack, and documents to take neutral text from."""

    name: str
    incomplete: Sequence[RetrievedQuestion]
    pool: Sequence[Document]

    @classmethod
    def of(
        cls, name: str, by_question: Sequence[Sequence[RetrievedQuestion]], lists: int
    ) -> AttackSetting:
        """The first incomplete list of each question, longest first, if there is one."""
        pool = {one.doc_id: one for ks in by_question for one in ks[0].evidence.documents.values()}
        lacking = [
            next((case for case in ks if not case.complete and case.evidence.hits), None)
            for ks in by_question
        ]
        return cls(
            name, [case for case in lacking if case is not None][:lists], list(pool.values())
        )


def load_setting(source: Source, lists: int) -> AttackSetting:
    """Questions with their longest incomplete list, if there is one."""
    collected = retrieve_dataset(
        open_source(source, DATA), ["bm25"], list(KS), sample=QUESTIONS, seed=SEED
    )
    return AttackSetting.of(
        source.name, list(zip(*(collected.questions("bm25", k) for k in KS), strict=True)), lists
    )


def load_settings(quick: bool, sets: Sequence[str] = SETS) -> Iterator[AttackSetting]:
    """Only the controlled collection in a short run or without the real data."""
    for source in sorted(
        (one for one in SOURCES if one.name in sets), key=lambda one: sets.index(one.name)
    ):
        if not all((DATA / path).is_file() for path in source.files.values()):
            print_progress(f"left out {source.name}: no real data; set SUFFICE_DATA")
        elif not (quick and source.files):
            print_progress(f"searching {source.name}")
            yield load_setting(source, FEW if quick else LISTS)


def retrieved_hits(case: RetrievedQuestion) -> Hits:
    """The hits as a retriever returns them, with the documents' metadata."""
    found = [(case.evidence.documents[hit.doc_id], hit.score) for hit in case.evidence.hits]
    return [
        {"doc_id": one.doc_id, "title": one.title, "text": one.text, "score": score, "source": one.source,
         "published_at": one.published_at}
        for one, score in found
    ]  # fmt: skip


def neutral_text(case: RetrievedQuestion, pool: Sequence[Document], rng: random.Random) -> Neutral:
    """Text of documents that mention no name of the question and are not among its hits."""
    question_names, hit_ids = names(case.question.text), {hit.doc_id for hit in case.evidence.hits}

    def neutral(length: int) -> str:
        text = ""
        for _ in range(10_000):
            if len(text) >= length:
                break
            one = rng.choice(pool)
            if one.doc_id not in hit_ids and not any(
                name in one.text or name in one.title for name in question_names
            ):
                text += one.text + " "
        return text[:length]

    return neutral


# ---- figures


@dataclass(frozen=True)
class AttackOutcome:
    """Which lists of a data set the gate would answer: attacked, and with neutral text."""

    attacked: Bools
    neutral: Bools

    @classmethod
    def together(cls, each: Sequence[AttackOutcome]) -> AttackOutcome:
        return cls(
            np.concatenate([one.attacked for one in each]),
            np.concatenate([one.neutral for one in each]),
        )

    @property
    def points(self) -> float:
        return 100 * float(self.attacked.mean() - self.neutral.mean())

    @property
    def summary(self) -> str:
        """The points and their interval over the lists."""
        found = paired_difference(self.attacked, self.neutral)
        return f"{self.points:+.1f} [{100 * (found.low or 0):+.1f}, {100 * (found.high or 0):+.1f}]"


def run_attack(gate: Gate, setting: AttackSetting, attack: Attack) -> AttackOutcome:
    pairs: list[tuple[str, Any]] = []
    for case in setting.incomplete:
        rng = random.Random(f"{attack.name} {case.question.question_id}")
        question = case.question.text
        pairs += [
            (question, hits)
            for hits in attack.pair(
                question, retrieved_hits(case), rng, neutral_text(case, setting.pool, rng)
            )
        ]
    answered = gate.probabilities(pairs) >= (gate.policy.answer_at or 0.0)
    return AttackOutcome(answered[::2], answered[1::2])


def attack_table(
    title: str,
    says: str,
    attacks: Sequence[Attack],
    outcomes: dict[str, dict[str, AttackOutcome]],
    bound: bool,
) -> ResultTable:
    """One row per attack: points in each data set, and over all of them."""
    rows, most = [], -100.0
    for attack in attacks:
        each = [found[attack.name] for found in outcomes.values()]
        whole = AttackOutcome.together(each)
        shares = [f"{100 * float(one.mean()):.1f}" for one in (whole.neutral, whole.attacked)]
        rows.append((attack.name, *(f"{one.points:+.1f}" for one in each), *shares, whole.summary))
        most = max(most, whole.points)
    required = f" Largest over all sets {most:+.1f}" + (
        f", required below {MOST_POINTS:g}." if bound else "."
    )
    columns = ("attack", *outcomes, "neutral %", "attacked %", "points, all sets")
    return ResultTable(
        title,
        says + required,
        columns,
        tuple(rows),
        kept=round(most, 6) < MOST_POINTS if bound else None,
    )


def tables(quick: bool) -> Iterator[ResultTable]:
    gates = {preset: Gate.load(preset=preset) for preset in ("standard", "hardened")}
    outcomes: dict[str, dict[str, dict[str, AttackOutcome]]] = {name: {} for name in gates}
    lists = []
    for one in load_settings(quick):
        print_progress(f"{one.name}: {len(ATTACKS)} attacks on {len(one.incomplete)} lists")
        for name, gate in gates.items():
            tried = ATTACKS if name == "hardened" else STUFFING
            outcomes[name][one.name] = {
                attack.name: run_attack(gate, one, attack) for attack in tried
            }
        lists.append(f"{one.name} {len(one.incomplete)}")
    says = {
        name: (
            f"Incomplete lists that the shipped {name} gate answers, in percentage points "
            f"above neutral text; lists: {', '.join(lists)}."
        )
        for name in gates
    }
    stuffed, others = ([one for one in STUFFING if one.promised is kept] for kept in (True, False))
    title = "Claims and orders, a hardened gate"
    yield attack_table(title, says["hardened"], CLAIMS, outcomes["hardened"], bound=True)
    yield attack_table(
        "Stuffing, disguises, floods and false metadata, a hardened gate",
        says["hardened"],
        stuffed,
        outcomes["hardened"],
        bound=True,
    )
    yield attack_table(
        "The same for a gate that is not hardened (nothing required)",
        says["standard"],
        stuffed,
        outcomes["standard"],
        bound=False,
    )
    yield attack_table(
        "False statements, titles and scores (nothing required)",
        says["hardened"], others, outcomes["hardened"], bound=False,
    )  # fmt: skip
