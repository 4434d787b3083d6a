"""What the deep judge learns from and is judged on, as text in one file.

    python -m suffice_research.training.deep_data --data DIR --out deep.json.gz

Texts keep their case, digits and line breaks. `rows` are the cases of part `learn` with look-alikes
and BM25's hits, as numbers of `passages`; `suffice_research.training.deep_lists` draws lists from
them. `judged` are strict lists of the other parts: a complete list, and the same list with one
needed document removed and one look-alike more, so that only reading tells them apart. They come
from files and data sets that nothing is trained on (`unseen/...`), from part `test` of our own
cases, and from part `stack`, on which probabilities are calibrated; `stack/bm25` has BM25's hits.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from suffice_research.training.cases import (
    EVERYDAY,
    LEARN,
    STACK,
    TEST,
    UNSEEN,
    WIDE,
    Case,
    Passage,
    load_cases,
    part_of,
    read_lines,
)
from suffice_research.training.reader_data import ASKED, asked_cases, hide_judged, search_sources
from suffice_research.training.sources import exit_code, normalize_words

__all__ = ["JudgedList", "further_cases", "strict_lists"]

# Data sets in one form: those to train on, and those for figures of an unseen domain only.
LEARNED = ("doqa_cooking", "scifact", "ropes", "chunkeval", "devdocs", "folio")
KEPT = ("coursefaq", "inscit", "climatefever", "sleepqa")
MOST = {"hotpotqa": 7000, "2wiki": 4000, "passages": 9000, "squad2": 6000}  # cases of a source
LONGEST, FEWEST = 8, 2  # hits of a strict list, look-alikes offered to it
RETRIEVED = 10  # hits of a list of BM25
JUDGED = {UNSEEN: 400, TEST: 700, STACK: 1600}  # lists of a source, or of all sources together


@dataclass(frozen=True)
class JudgedList:
    question: str
    hits: tuple[Passage, ...]
    needed: tuple[bool, ...]
    complete: bool
    gold: int  # how many documents the question needs


def further_cases(data: Path) -> Iterator[Case]:
    """The cases of ten more domains, with their parts."""
    for name in (*LEARNED, *KEPT):
        for row in read_lines(data / name / "cases.jsonl.gz"):
            needed, others = (
                tuple(Passage(one["title"], one["text"]) for one in row[key])
                for key in ("docs", "distractors")
            )
            words = normalize_words(row["question"])
            part = UNSEEN if name in KEPT else part_of(name, words)
            yield Case(name, words, row["question"], needed, others, part=part)


def strict_lists(case: Case, draw: random.Random) -> Iterator[JudgedList]:
    """The complete and the incomplete list of a case, equally long; without needed documents, one
    incomplete list of look-alikes.
    """
    needed, others = case.needed, case.distractors
    if not needed:
        if others:
            hits = draw.sample(others, min(len(others), LONGEST))
            yield JudgedList(case.question, tuple(hits), (False,) * len(hits), False, 0)
        return
    others = others[: max(FEWEST, LONGEST - len(needed) + 1)]
    gone = draw.randrange(len(needed))
    part = (*needed[:gone], *needed[gone + 1 :])
    for held, beside, complete in ((needed, others[1:], True), (part, others, False)):
        if rows := [*((one, True) for one in held), *((one, False) for one in beside)]:
            shuffled = draw.sample(rows, len(rows))
            shown, flags = (tuple(column) for column in zip(*shuffled, strict=True))
            yield JudgedList(case.question, shown, flags, complete, len(needed))


def _judged(cases: Sequence[Case], draw: random.Random) -> Iterator[tuple[str, JudgedList]]:
    """Lists of each unseen source, of our own test part, and of all sources of `stack`."""
    groups: dict[tuple[str, str], list[JudgedList]] = defaultdict(list)
    own = ("everyday", *LEARNED)
    for case in draw.sample(cases, len(cases)):
        source = case.source.split("/")[0]
        name = case.source if case.part == UNSEEN else "own" if source == "everyday" else "others"
        if case.part == LEARN or (case.part == TEST and source not in own):
            continue
        group = groups[case.part, name]
        if len(group) < JUDGED[case.part]:
            beside = draw.sample(case.distractors, min(len(case.distractors), LONGEST))
            group += strict_lists(_sampled_distractors(case, beside), draw)
    for (part, name), lists in sorted(groups.items()):
        yield from ((f"{part}/{name}", one) for one in lists)


def _sampled_distractors(case: Case, others: Sequence[Passage]) -> Case:
    """Long articles have many; our own cases keep their author's order."""
    if case.source.startswith("everyday"):
        return case
    return Case(case.source, case.group, case.question, case.needed, tuple(others), part=case.part)


def _retrieved_lists(
    cases: Sequence[Case], found: Sequence[Sequence[Passage]], draw: random.Random
) -> Iterator[JudgedList]:
    """BM25's first hits for questions of `stack`, complete or not."""
    asked = [
        at for at, case in enumerate(cases) if case.part == STACK and case.needed and found[at]
    ]
    for at in draw.sample(asked, min(len(asked), JUDGED[TEST])):
        hits, needed = tuple(found[at][:RETRIEVED]), cases[at].needed
        flags = tuple(one in needed for one in hits)
        complete = set(needed) <= set(hits)
        yield JudgedList(cases[at].question, hits, flags, complete, len(needed))


def pack(data: Path, out: Path, seed: int = 3) -> Counter[str]:
    """Write the file; returns how many cases of each source it holds."""
    cases = [*load_cases(data, [EVERYDAY, WIDE]), *further_cases(data)]
    asked = [
        one for one in asked_cases(ASKED, cases)[0] if not one.source.startswith(("quest", "word"))
    ]
    draw = random.Random(seed)
    judged = list(_judged(cases, draw))
    cases, found, shown = hide_judged([*cases, *asked], search_sources([*cases, *asked]))
    judged += [(f"{STACK}/bm25", one) for one in _retrieved_lists(cases, found, draw)]
    wide = {f"everyday/{path.stem}" for path in WIDE.glob("*.jsonl")}
    counts: Counter[str] = Counter()
    numbers: dict[Passage, int] = {}
    rows = []
    for at in draw.sample(range(len(cases)), len(cases)):
        case = cases[at]
        source = "wide" if case.source in wide else case.source.split("/")[0]
        if case.part != LEARN or counts[source] >= MOST.get(source, len(cases)):
            continue
        counts[source] += 1
        others = [one for one in case.distractors if one in shown][:12]
        near = [one for one in found[at] if one in shown and one not in case.needed][:10]
        needed, beside, retrieved = (
            [numbers.setdefault(one, len(numbers)) for one in some]
            for some in (case.needed, others, near)
        )
        rows.append(
            {"source": source, "question": case.question, "needed": needed, "others": beside,
             "retrieved": retrieved}
        )  # fmt: skip
    content = {
        "passages": [[one.title, one.text] for one in numbers],
        "rows": rows,
        "judged": [
            {"set": name, "question": one.question, "needed": one.needed, "gold": one.gold,
             "complete": one.complete, "hits": [[hit.title, hit.text] for hit in one.hits]}
            for name, one in judged
        ],
    }  # fmt: skip
    with gzip.GzipFile(out, "wb", compresslevel=9, mtime=0) as file:
        file.write(json.dumps(content, ensure_ascii=False).encode())
    return counts + Counter(f"judged {name}" for name, _ in judged)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    given = parser.parse_args()
    for name, count in pack(given.data, given.out).items():
        print(f"{count:7} {name}")


if __name__ == "__main__":
    sys.exit(exit_code(main))
