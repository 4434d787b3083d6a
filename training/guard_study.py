"""Would a small learned guard stop stuffing? `python -m training.guard_study --data DIR` fits one and plays it beside the gate.

Boosted trees say of each title and sentence whether it was put there (`training.guard_units`), and others of each hit, from its
most suspect units. They learn from attacks made at random (`training.guard_attacks`) on half of the questions; the cut is set
where so many clean lists of another part have a hit above it; judged are the attacks of `trust.attacks` on the last part. Where
a hit is above the cut, or a near copy of an earlier one, p_complete is the smaller of what the gate says with and without it.
`--leave-out SET` judges on a data set that nothing was learned from. Nothing of this ships: decision 29 says why.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
from trust.attacks import ATTACKS, Attack, Hits
from trust.texts import KS, MOST_POINTS, SEED, SETS, Outcome, hits_of, measured, neutral_for

from suffice.assess.gate import Gate
from suffice.assess.pages import Page, page
from suffice.assess.parts import boosted
from suffice.assess.words import Words
from suffice.datasets.gold import split
from suffice.evaluate.cases import Case, collect
from suffice.evaluate.sources import SOURCES, Source, Told, open_source
from suffice.types import Document
from training.guard_attacks import FAMILIES, NEUTRAL, Speaker, attacked
from training.guard_units import Ear, Seen, pieces, seen, whole

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
SHARES = (0.5, 0.15, 0.35)  # to learn from, to set the cut, to judge
TREES, LEAVES, LEAF = 160, 15, 40
ATTACKS_EACH = 4  # of a question to learn from
COPIED_NAMES, COPIED_WORDS = 0.6, 0.8  # shared by near copies, of all that either has


@dataclass(frozen=True)
class Asked:
    """A question with its list of ten, and the longest of its lists that lacks something, if one does."""

    case: Case
    lacking: Case | None
    part: int


@dataclass(frozen=True)
class Field:
    name: str
    asked: Sequence[Asked]
    pool: Sequence[Document]


def field(source: Source, data: Path, questions: int) -> Field:
    opened = open_source(source, data)
    parts = split(opened.examples(), shares=SHARES)
    of = {one.question.question_id: at for at, part in enumerate((parts.fit, parts.calibrate, parts.test)) for one in part}
    found = collect(opened, ["bm25"], list(KS), sample=questions, seed=SEED)
    lists = list(zip(*(found.cases("bm25", k) for k in KS), strict=True))
    held = [
        Asked(ks[0], next((one for one in ks if not one.complete and one.evidence.hits), None), of[ks[0].question.question_id])
        for ks in lists
        if ks[0].evidence.hits
    ]
    return Field(
        source.name, held, list({one.doc_id: one for ks in lists for one in ks[0].evidence.documents.values()}.values())
    )


# ------------------------------------------------------------------------------------------------------ learning


@dataclass(frozen=True)
class Lesson:
    """Hits of one question, and which of their units somebody put there."""

    half: int
    hits: Sequence[Seen]
    put: Sequence[Bools]


def lessons(told: Field, words: Words) -> Iterator[Lesson]:
    speaker = Speaker([one.text for one in told.pool])
    for one in (one for one in told.asked if one.part == 0):
        question, rng = one.case.question.text, random.Random(f"guard {one.case.question.question_id}")
        ear, came, half = Ear(question, words), hits_of(one.lacking or one.case), crc32(question.encode()) % 2
        clean = seen(ear, hits_of(one.case))
        yield Lesson(half, clean, [np.zeros(len(hit.at), bool) for hit in clean])
        families = [*rng.choices([name for name in FAMILIES if name != NEUTRAL], k=ATTACKS_EACH), NEUTRAL]
        for family in families:
            yield _lesson(ear, came, attacked(question, came, speaker, family, rng), half, harmless=family == NEUTRAL)


def _lesson(ear: Ear, came: Hits, now: Hits, half: int, *, harmless: bool) -> Lesson:
    """Of the hits that were changed alone."""
    known = {hit["doc_id"]: hit for hit in came}
    changed = [hit for hit in now if known.get(hit["doc_id"]) != hit]
    read = seen(ear, changed)
    put = []
    for hit, one in zip(changed, read, strict=True):
        was = pieces(known[hit["doc_id"]]) if hit["doc_id"] in known else [""]
        strange = [one.pieces[at] not in was[1:] if at else one.pieces[0] != was[0] for at in one.at]
        put.append(np.array([new and not harmless for new in strange], dtype=bool))
    return Lesson(half, read, put)


@dataclass(frozen=True)
class Guard:
    units: Any
    hits: Any

    @classmethod
    def fit(cls, taught: Sequence[Lesson], seed: int = 42) -> Guard:
        """What teaches the second model comes from first models that have not seen the question."""
        halves = [[one for one in taught if one.half == half] for half in (0, 1)]
        firsts = [_units(half, seed) for half in halves]
        rows, put = zip(*(_wholes(half, first) for half, first in zip(halves, reversed(firsts), strict=True)), strict=True)
        model = boosted(TREES, LEAF, seed, leaves=LEAVES).fit(np.concatenate(rows), np.concatenate(put))
        return cls(_units(taught, seed), model)

    def odds(self, hits: Sequence[Seen]) -> Floats:
        """That a hit was tampered with: (hits,)."""
        return np.asarray(self.hits.decision_function(_rows(hits, self.units))) if hits else np.zeros(0)


def _units(taught: Sequence[Lesson], seed: int) -> Any:
    """Units of hits that were tampered with, but not put there, teach nothing: who knows what they are now beside."""
    pairs = [(hit.rows, put) for one in taught for hit, put in zip(one.hits, one.put, strict=True)]
    rows = np.concatenate([rows[put] if put.any() else rows for rows, put in pairs])
    labels = np.concatenate([put[put] if put.any() else put for _, put in pairs])
    return boosted(TREES, LEAF, seed, leaves=LEAVES).fit(rows, labels)


def _wholes(taught: Sequence[Lesson], units: Any) -> tuple[Floats, Bools]:
    rows = np.concatenate([_rows(one.hits, units) for one in taught if one.hits])
    return rows, np.array([put.any() for one in taught for put in one.put], dtype=bool)


def _rows(hits: Sequence[Seen], units: Any) -> Floats:
    every = np.concatenate([one.rows for one in hits])
    odds = units.decision_function(every) if len(every) else np.zeros(0)
    return whole(hits, np.split(odds, np.cumsum([len(one.rows) for one in hits])[:-1]))


# ------------------------------------------------------------------------------------------------------ judging


@dataclass(frozen=True)
class Guarded:
    """A gate with a guard beside it: what is suspect can only lower p_complete."""

    gate: Gate
    guard: Guard
    cut: float

    def answered(self, pairs: Sequence[tuple[str, Hits]]) -> Bools:
        at = self.gate.policy.answer_at or 0.0
        found = np.asarray(self.gate.probabilities(pairs) >= at)
        kept = {place: self._believed(*pairs[place]) for place in np.flatnonzero(found).tolist()}
        fewer = {place: hits for place, hits in kept.items() if len(hits) < len(pairs[place][1])}
        if fewer:
            found[list(fewer)] = self.gate.probabilities([(pairs[place][0], hits) for place, hits in fewer.items()]) >= at
        return found

    def _believed(self, question: str, hits: Hits) -> Hits:
        odds = self.guard.odds(seen(Ear(question, self.gate.words), hits))
        copies = _copies(hits)
        return [hit for place, hit in enumerate(hits) if odds[place] < self.cut and place not in copies]


def _copies(hits: Hits) -> set[int]:
    """Hits that are near copies of an earlier one."""
    kept: list[Page] = []
    found = set()
    for place, hit in enumerate(hits):
        own = page(hit["title"], hit["text"])
        if any(_alike(own, other) for other in kept):
            found.add(place)
        else:
            kept.append(own)
    return found


def _alike(one: Page, other: Page) -> bool:
    most = max(len(one.names), len(other.names))
    if len(one.names & other.names) < COPIED_NAMES * most or (not most and one.flat[:40] != other.flat[:40]):
        return False
    words, others = set(one.flat.split()), set(other.flat.split())
    return len(words & others) >= COPIED_WORDS * len(words | others)


def suspected(guard: Guard, told: Field, part: int, words: Words) -> Floats:
    """The most suspect hit of each clean list of a part: (questions,)."""
    asked = [one.case for one in told.asked if one.part == part]
    return np.array([guard.odds(seen(Ear(one.question.text, words), hits_of(one))).max() for one in asked])


def outcome(guarded: Guarded, told: Field, lists: int, attack: Attack) -> Outcome:
    pairs: list[tuple[str, Hits]] = []
    for case in [one.lacking for one in told.asked if one.part == 2 and one.lacking][:lists]:
        rng = random.Random(f"{attack.name} {case.question.question_id}")
        both = attack.pair(case.question.text, hits_of(case), rng, neutral_for(case, told.pool, rng))
        pairs += [(case.question.text, hits) for hits in both]
    answered = guarded.answered(pairs)
    return Outcome(answered[::2], answered[1::2])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.guard_study", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    parser.add_argument("--questions", type=int, default=1000, help="of each data set, at most")
    parser.add_argument("--lists", type=int, default=40, help="that are attacked in each data set")
    parser.add_argument("--clean", type=float, default=0.01, help="share of clean lists that may be suspected")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--leave-out", choices=SETS, help="learn nothing from this one, and judge on it alone")
    asked, said, gate = parser.parse_args(), Told(), Gate.load()
    fields = {one.name: field(one, asked.data, asked.questions) for one in SOURCES if one.name in asked.sets}
    taught = [told for name, told in fields.items() if name != asked.leave_out]
    judged = [fields[asked.leave_out]] if asked.leave_out else taught
    said("searched")
    guard = Guard.fit([one for told in taught for one in lessons(told, gate.words)])
    said("fitted")
    odds = np.concatenate([suspected(guard, told, 1, gate.words) for told in taught])
    guarded = Guarded(gate, guard, float(np.quantile(odds, 1 - asked.clean, method="higher")))
    for told in judged:
        print(f"{told.name}: {np.mean(suspected(guard, told, 2, gate.words) >= guarded.cut):.3f} of clean lists suspected")
    tried = [one for one in ATTACKS if one.family != "scores"]
    held = {told.name: {one.name: outcome(guarded, told, asked.lists, one) for one in tried} for told in judged}
    said("judged")
    for promised in (True, False):
        some = [one for one in tried if one.promised is promised]
        found = measured("With a guard", f"Points over neutral text, below {MOST_POINTS:g} wanted.", some, held, bound=promised)
        print(f"\n{found.says}\n\n{found.table()}\n{found.verdict()}")


if __name__ == "__main__":
    main()
