"""Triples and questions of five corpora, drawn with a seed and judged by hand.

    python -m suffice_research.grade.readings draw CORPUS --data DIR [--count 40] > sheet.jsonl
    python -m suffice_research.grade.readings draw CORPUS --what questions ... > sheet.jsonl
    python -m suffice_research.grade.readings show [--what questions] [--json]

`draw` writes a sheet to judge: triples with their sentence, or generated questions with their
facts. The verdicts are stored in `research/grade_readings`: a verdict and a reason for each, the
words only if the text is our own. `show` counts them, with 95 % intervals (Wilson).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from suffice.errors import InputError, SufficeError
from suffice.storage import BadRecords, read_json_records
from suffice.types import Document
from suffice_grade.claims import PageIndex, RuleClaims, parse_pages
from suffice_grade.knowledge_graph import seeded_order
from suffice_grade.pipeline import BenchmarkSettings, NoQuestionsError, build_benchmark
from suffice_grade.stage_protocols import Claim, Triple
from suffice_grade.triples import RuleTriples
from suffice_research.grade.corpora import CORPORA, ROOT

SEED, COUNT = 42, 40
FOLDER = ROOT / "research" / "grade_readings"
WHAT = ("triples", "questions")
CHAINS = "chains"  # drawn by `suffice_research.grade.chains`
PARSED = "parsed"  # questions that only the parse gives
VERDICTS = ("right", "vague", "wrong")  # vague: true, but nobody would ask for it that way


def read_triples(documents: Sequence[Document]) -> list[tuple[Triple, Claim]]:
    """All triples that the rules extract from a corpus, each with its claim."""
    pages = PageIndex(parse_pages(documents).values(), documents)
    by_document = RuleClaims(pages.by_title, pages.terms).claims(documents)
    claims = [claim for found in by_document for claim in found]
    triples = RuleTriples(pages).triples(claims)
    return [(one, claim) for found, claim in zip(triples, claims) for one in found]


def draw(documents: Sequence[Document], count: int, *, seed: int = SEED) -> list[dict[str, object]]:
    """A sheet of triples to judge. Relations take turns, so that a long table does not dominate."""
    by_relation: dict[str, list[tuple[Triple, Claim]]] = {}
    order = seeded_order(
        read_triples(documents), lambda pair: f"{pair[0].claim_id} {pair[0].object}", seed
    )
    for triple, claim in order:
        kind = triple.relation.split()[0] if triple.relation.startswith("option") else ""
        by_relation.setdefault(kind or triple.relation, []).append((triple, claim))
    turns = sorted(
        ((at, place), pair)
        for place, pairs in enumerate(by_relation.values())
        for at, pair in enumerate(pairs[: max(2, count // 8)])
    )
    drawn = seeded_order([pair for _, pair in turns], lambda pair: f"turn {pair[0].claim_id}", seed)
    return [
        asdict(triple) | {"sentence": claim.sentence, "verdict": "", "why": ""}
        for triple, claim in drawn[:count]
    ]


def make_questions(
    documents: Sequence[Document], seed: int, *, parse: bool = False
) -> list[dict[str, object]]:
    """All valid questions of a corpus, at most 200 of each form."""
    settings = BenchmarkSettings(seed=seed, per_form=200, twins=0, lookalikes=0, parse=parse)
    with TemporaryDirectory() as place:
        try:
            build_benchmark(documents, Path(place) / "made", settings=settings)
        except NoQuestionsError:
            return []
        path = Path(place) / "made/questions.jsonl"
        return [record.value for record in read_json_records(path, BadRecords())]


def draw_questions(
    documents: Sequence[Document], count: int, *, seed: int = SEED, parse: bool = False
) -> list[dict[str, object]]:
    """A sheet of generated questions to judge; with `parse`, of those that only it gives."""
    made = make_questions(documents, seed)
    print(f"{len(made)} valid questions by rules", file=sys.stderr)
    if parse:
        known, parsed = (
            {one["question_id"] for one in made},
            make_questions(documents, seed, parse=True),
        )
        print(f"{len(parsed)} valid questions with the parse", file=sys.stderr)
        made = [one for one in parsed if one["question_id"] not in known]
    print(f"drawn from {len(made)}", file=sys.stderr)
    drawn = seeded_order(made, lambda one: f"read {one['question_id']}", seed)[:count]
    names = ("question_id", "kind", "question", "answer", "gold", "path")
    return [{name: one[name] for name in names} | {"verdict": "", "why": ""} for one in drawn]


def wilson(right: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    if not count:
        return 0.0, 1.0
    z = 1.959964
    share, spread = right / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * ((share * (1 - share) + spread / 4) / count) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


def summary(folder: Path = FOLDER, what: str = "triples") -> dict[str, dict[str, object]]:
    """Per corpus: how many were judged and right, the precision and its interval."""
    found = {}
    for path in sorted(folder.glob(f"{what}-*.jsonl")):
        records = list(read_json_records(path, BadRecords()))
        counts = Counter(str(record.value.get("verdict")) for record in records)
        if unknown := set(counts) - set(VERDICTS):
            raise InputError(
                f"{path.name} has the verdict {sorted(unknown)[0]!r}",
                hint=f"use one of {', '.join(VERDICTS)}",
            )
        right, read = counts["right"], sum(counts.values())
        low, high = wilson(right, read)
        found[path.stem.removeprefix(f"{what}-")] = {
            **{verdict: counts[verdict] for verdict in VERDICTS},
            "precision": round(right / read, 3) if read else 0.0,
            "interval": [round(low, 3), round(high, 3)],
        }
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="suffice_research.grade.readings", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw", help="write a sheet to read")
    drawing.add_argument("corpus", choices=list(CORPORA))
    drawing.add_argument("--data", type=Path, default=Path("../shared/data"))
    drawing.add_argument("--count", type=int, default=COUNT)
    drawing.add_argument("--seed", type=int, default=SEED)
    showing = commands.add_parser("show", help="count the readings")
    showing.add_argument("--json", action="store_true")
    drawing.add_argument("--what", choices=WHAT, default=WHAT[0])
    drawing.add_argument("--parse", action="store_true", help="questions that only the parse gives")
    showing.add_argument("--what", choices=(*WHAT, CHAINS, PARSED), default=WHAT[0])
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "draw":
            if chosen.seed < 0 or chosen.count < 1:
                raise InputError("--seed must be 0 or more, --count 1 or more")
            documents, options = CORPORA[chosen.corpus](chosen.data), {"seed": chosen.seed}
            if chosen.what == WHAT[0]:
                drawn = draw(documents, chosen.count, **options)
            else:
                drawn = draw_questions(documents, chosen.count, **options, parse=chosen.parse)
            for record in drawn:
                print(json.dumps(record, ensure_ascii=False))
            return 0
        found = summary(what=chosen.what)
    except SufficeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if chosen.json:
        print(json.dumps(found, indent=2))
        return 0
    for corpus, row in found.items():
        print(
            f"{corpus:14} {row['right']} right, {row['vague']} vague, {row['wrong']} wrong: ",
            end="",
        )
        print(f"{row['precision']} {row['interval']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
