"""Texts that want something: how far they bring incomplete evidence over the gate's threshold, against neutral text.

Questions whose hits lack a needed document are attacked in every way of `trust.attacks`, and beside each attack stands the same
list with as much neutral text in the same place. What counts is the share that the gate would answer: attacked, less the larger
of what neutral text brings and of the list as it came, in points. The gate's defences were built on the questions whose id has
an even hash; the figures are of the others. `python -m trust texts`, with SUFFICE_DATA for the real data.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from benchmarks.measured import Measured, progress

from suffice.assess import looking
from suffice.assess.gate import Gate
from suffice.assess.policy import by_risk
from suffice.evaluate.cases import Case, collect
from suffice.evaluate.compare import compare, paired_difference
from suffice.evaluate.metrics import Predictions, score
from suffice.evaluate.train_default import SOURCES, Source, open_source
from suffice.text import names
from suffice.types import Document
from trust.attacks import ATTACKS, Attack, Hits, Neutral

Floats = npt.NDArray[np.floating[Any]]
DATA = Path(os.environ.get("SUFFICE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
SETS = ("controlled", "hotpotqa", "2wikimultihopqa", "musique", "multihop_rag")
KS = (10, 5, 3)
MOST_POINTS = 2.0
ALPHAS = (0.1, 0.2)
QUALITY_QUESTIONS = 20
QUALITY_ATTACKS = ("names, a list, behind every hit", "names, related, as a document", "the question, behind every hit")


# ------------------------------------------------------------------------------------------------------ questions


@dataclass(frozen=True)
class Field:
    """A data set: its incomplete lists to attack, all its lists of ten, and documents to take neutral text from."""

    name: str
    incomplete: Sequence[Case]
    every: Sequence[Case]
    pool: Sequence[Document]


def field(source: Source, questions: int) -> Field:
    """Of the questions that no defence was built on; each with the longest of its lists that is incomplete, if one is."""
    collected = collect(open_source(source, DATA), ["bm25"], list(KS), sample=900)
    lists = [case for case in zip(*(collected.cases("bm25", k) for k in KS), strict=True) if is_reported(case[0])]
    lacking = [next((case for case in ks if not case.complete), None) for ks in lists]
    pool = {one.doc_id: one for ks in lists for one in ks[0].evidence.documents.values()}
    incomplete = [case for case in lacking if case is not None and case.evidence.hits]
    return Field(source.name, incomplete[:questions], [ks[0] for ks in lists], list(pool.values()))


def is_reported(case: Case) -> bool:
    return sha256(case.question.question_id.encode()).digest()[0] % 2 == 1


def fields(quick: bool) -> Iterator[Field]:
    for source in sorted((one for one in SOURCES if one.name in SETS), key=lambda one: SETS.index(one.name)):
        if source.files and not all((DATA / path).is_file() for path in source.files.values()):
            progress(f"left out {source.name}: no real data; set SUFFICE_DATA")
        elif not (quick and source.files):
            progress(f"searching {source.name}")
            yield field(source, 30 if quick else 200)


def hits_of(case: Case) -> Hits:
    """As a retriever hands them over, with what is known of each document."""
    found = [(case.evidence.documents[hit.doc_id], hit.score) for hit in case.evidence.hits]
    return [
        {"doc_id": one.doc_id, "title": one.title, "text": one.text, "score": score, "source": one.source,
         "published_at": one.published_at}
        for one, score in found
    ]  # fmt: skip


def neutral_for(case: Case, pool: Sequence[Document], rng: random.Random) -> Neutral:
    told, held = names(case.question.text), {hit.doc_id for hit in case.evidence.hits}

    def neutral(length: int) -> str:
        said = ""
        for _ in range(10_000):
            if len(said) >= length:
                break
            one = rng.choice(pool)
            if one.doc_id not in held and not any(name in one.text or name in one.title for name in told):
                said += one.text + " "
        return said[:length]

    return neutral


# ------------------------------------------------------------------------------------------------------ figures


def probabilities(gate: Gate, cases: Sequence[Case], attack: Attack, pool: Sequence[Document]) -> tuple[Floats, Floats]:
    """p_complete of each question attacked, and with neutral text."""
    pairs = []
    for case in cases:
        rng = random.Random(f"{attack.name} {case.question.question_id}")
        question = case.question.text
        pairs += [(question, hits) for hits in attack.pair(question, hits_of(case), rng, neutral_for(case, pool, rng))]
    p = gate.probabilities(pairs)
    return p[::2], p[1::2]


def thresholds(gate: Gate, told: Field) -> dict[str, float | None]:
    """The shipped one, and those that would promise at most so many incomplete among the answered of this data set."""
    p = gate.probabilities([(case.question.text, case.evidence) for case in told.every])
    complete = np.array([case.complete for case in told.every])
    kept = {f"alpha {alpha:g}": by_risk(p, complete, alpha=alpha, delta=0.1).answer_at for alpha in ALPHAS}
    return {"shipped": gate.policy.answer_at, **kept}


def row(attack: Attack, came: Floats, attacked: Floats, plain: Floats, at: Mapping[str, float | None]) -> tuple[str, ...]:
    """Points over neutral text with their interval, over the list as it came, the larger rise, and at other thresholds."""
    first = at["shipped"] or 0.0
    over = paired_difference(attacked >= first, plain >= first)
    points = [f"{rise(came, attacked, plain, one):+.1f}" if one is not None else "--" for one in at.values()]
    return (
        attack.name,
        f"{100 * np.mean(plain >= first):.1f}",
        f"{100 * np.mean(attacked >= first):.1f}",
        f"{100 * (over.value or 0):+.1f} [{100 * (over.low or 0):+.1f}, {100 * (over.high or 0):+.1f}]",
        f"{100 * (np.mean(attacked >= first) - np.mean(came >= first)):+.1f}",
        *points,
        f"{np.mean(attacked - plain):+.3f}",
    )


def rise(came: Floats, attacked: Floats, plain: Floats, threshold: float) -> float:
    """In points, over the larger of neutral text and nothing: what an attacker gains who may also leave it be."""
    answered = [float(np.mean(one >= threshold)) for one in (came, attacked, plain)]
    return 100 * (answered[1] - max(answered[0], answered[2]))


def measured(gate: Gate, told: Field, attacks: Sequence[Attack], grade: str) -> Iterator[Measured]:
    at = thresholds(gate, told)
    came = gate.probabilities([(case.question.text, hits_of(case)) for case in told.incomplete])
    rows, worst = {True: [], False: []}, {True: -100.0, False: -100.0}
    for attack in attacks:
        attacked, plain = probabilities(gate, told.incomplete, attack, told.pool)
        rows[attack.promised].append(row(attack, came, attacked, plain, at))
        worst[attack.promised] = max(worst[attack.promised], rise(came, attacked, plain, at["shipped"] or 0.0))
    base = 100 * float(np.mean(came >= (at["shipped"] or 0.0)))
    columns = (
        "attack",
        "neutral %",
        "attacked %",
        "points over neutral",
        "over the list",
        *(f"rise, {one}" for one in at),
        "mean Δp",
    )
    for promised, found in rows.items():
        if found:
            what = (
                "Stuffing, claims, disguises and lies of metadata" if promised else "False statements, which are not promised"
            )
            yield Measured(
                f"{what}: {told.name}, grade {grade}",
                f"{len(told.incomplete)} incomplete sets, of which the gate answers {base:.1f} % as they came; rise: points "
                f"over the larger of neutral text and the list as it came; largest {worst[promised]:+.1f}"
                + (f", required below {MOST_POINTS:g}." if promised else "."),
                columns,
                tuple(found),
                kept=worst[promised] < MOST_POINTS if promised else None,
            )


def clean(gate: Gate, told: Sequence[Field]) -> Measured:
    """What the defences do to lists that nobody has touched: the same gate without them, and with them."""
    rows = []
    for one in told:
        pairs = [(case.question.text, case.evidence) for case in one.every]
        complete = np.array([case.complete for case in one.every], dtype=float)
        touched, with_them = touching(gate, pairs)
        without = undefended(gate, pairs)
        now, before = Predictions(complete, with_them), Predictions(complete, without)
        moved = compare(now, before, "auroc")
        rows.append((
            one.name, f"{len(pairs):,}", f"{touched:.3f}", f"{np.mean(abs(with_them - without) > 0.01):.3f}",
            f"{score(before, 'auroc'):.3f}", f"{score(now, 'auroc'):.3f}",
            f"{moved.value or 0:+.4f} [{moved.low or 0:+.4f}, {moved.high or 0:+.4f}]",
            f"{score(before, 'ece'):.3f}", f"{score(now, 'ece'):.3f}",
        ))  # fmt: skip
    columns = (
        "data set",
        "questions",
        "hits touched",
        "p moved > 0.01",
        "AUROC before",
        "now",
        "difference",
        "ECE before",
        "now",
    )
    return Measured("What the defences cost on clean evidence", "BM25, k = 10, the shipped fast gate.", columns, tuple(rows))


def touching(gate: Gate, pairs: Sequence[tuple[str, Any]]) -> tuple[float, Floats]:
    """The share of hits that are changed, and the probabilities."""
    seen = gate._see(pairs, None)
    given = [evidence for _, evidence in pairs]
    changed = [
        one.evidence.documents[hit.doc_id] is not was.documents[hit.doc_id]
        for one, was in zip(seen.taken, given, strict=True)
        for hit in one.evidence.hits
    ]
    return float(np.mean(changed)), gate.probabilities(pairs)


def undefended(gate: Gate, pairs: Sequence[tuple[str, Any]]) -> Floats:
    """The same gate as it was before: hits are read as they are."""
    with patch.object(looking, "_heard", lambda asked, taken, words: taken):
        return gate.probabilities(pairs)


def tables(quick: bool) -> Iterator[Measured]:
    gate, held = Gate.load(), []
    for one in fields(quick):
        progress(f"{one.name}: {len(ATTACKS)} attacks on {len(one.incomplete)} lists")
        held.append(one)
        yield from measured(gate, one, ATTACKS, "fast")
    yield clean(gate, held)
    if not quick:
        gate = Gate.load(grade="quality")
        some = [one for one in ATTACKS if one.name in QUALITY_ATTACKS]
        for one in held:
            progress(f"{one.name}, quality")
            small = Field(one.name, one.incomplete[:QUALITY_QUESTIONS], one.every[:QUALITY_QUESTIONS], one.pool)
            yield from measured(gate, small, some, "quality")
