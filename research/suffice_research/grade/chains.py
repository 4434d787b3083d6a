"""How many chains a corpus yields, by hops, and a sheet of them to judge.

    python -m suffice_research.grade.chains CORPUS WORK --data DIR [--parse] --out counts.json > sheet.jsonl

Every path of the knowledge graph is tried. `counts.json` has the triples, those that lead on (the
corpus also says something about their object), and, by hops: the pairs of pages so far apart that
each page names the next (a chain cannot be longer, whatever the rules read), the paths in the
graph, the questions that the rules can word, those that pass every check, how many different facts
these begin and end with, and how many use a missing link. The command also prints these three to
stderr. Counts of several corpora are stored in `research/grade_readings/chains.json`, verdicts
beside them (`readings show --what chains`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from suffice.datasets import load
from suffice.retrieval.phrase_matcher import PhraseMatcher
from suffice.storage import BadRecords, read_json_records, write_atomically
from suffice.text import title_key
from suffice.types import Document
from suffice_grade.audit import variety
from suffice_grade.knowledge_graph import MAX_HOPS, MIN_HOPS, seeded_order
from suffice_grade.pipeline import BenchmarkSettings, build_benchmark
from suffice_grade.stage_protocols import question_from_record
from suffice_grade.vocabulary import base_title
from suffice_research.training.sources import ProgressLog, exit_code

SEED, PER_LENGTH = 42, 20
EVERY = 1_000_000  # paths of a length: no limit
SHOWN = ("valid", "different first facts", "different last facts")
CORPORA = ("2wikimultihopqa", "musique", "hotpotqa")


def count_chains(
    documents: Sequence[Document], folder: Path, *, seed: int = SEED, parse: bool = False
) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    """The counts, and the valid chains."""
    settings = BenchmarkSettings(
        seed, EVERY, per_form=0, forms=("chain",), twins=0, lookalikes=0, parse=parse
    )
    say = ProgressLog()
    told: set[str] = set()

    def progress(what: str, done: int, total: int | None) -> None:
        if what not in told:
            told.add(what)
            say(what)

    built = build_benchmark(documents, folder, settings=settings, progress=progress)
    valid: list[Mapping[str, Any]] = [
        record.value for record in read_json_records(folder / "questions.jsonl", BadRecords())
    ]
    triples, paths, written = (
        list(read_json_records(next((folder / "stages" / name).glob("*.jsonl")), BadRecords()))
        for name in ("knowledge", "paths", "questions")
    )
    subjects = {one.value["subject"] for one in triples}
    linked = [one for one in valid if any(fact["link"] for some in one["path"] for fact in some)]
    counts = {
        "documents": len(documents),
        "triples": len(triples),
        "leading on": sum(one.value["object"] in subjects for one in triples),
        "pages in a row": _by_hops(_pages_in_a_row(documents)),
        "paths": _by_hops(len(one.value["triples"]) for one in paths),
        "questions": _by_hops(one.value["hops"] for one in written),
        "valid": _by_hops(one["hops"] for one in valid),
        **variety(question_from_record(dict(one)) for one in valid),
        "over a missing link": _by_hops(one["hops"] for one in linked),
        "dropped": dict(built.dropped),
    }
    return counts, valid


def _pages_in_a_row(documents: Sequence[Document]) -> Iterator[int]:
    """For each pair of pages, how many pages the shortest row has in which each names the next.

    Only names of two words or more that one title has; the last page states the last fact.
    """
    titles: dict[str, set[str]] = defaultdict(set)
    for document in documents:
        titles[title_key(base_title(document.title))].add(document.title)
    names = sorted(key for key, same in titles.items() if " " in key and len(same) == 1)
    named: dict[str, set[str]] = defaultdict(set)
    for document, found in zip(documents, PhraseMatcher(names).find(one.text for one in documents)):
        for match in found.matches:
            named[document.title] |= titles[names[match.phrase]]
    for start in list(named):
        reached, frontier = {start}, {start}
        for pages in range(MIN_HOPS, MAX_HOPS + 1):
            frontier = {one for page in frontier for one in named.get(page, ())} - reached
            reached |= frontier
            yield from [pages] * len(frontier)


def table(counts: Mapping[str, Any]) -> str:
    """The valid chains by hops, and how varied they are: many may end at one fact."""
    hops = [str(length) for length in range(MIN_HOPS, MAX_HOPS + 1)]
    rows = [("hops", hops), *((name, [counts[name].get(one, 0) for one in hops]) for name in SHOWN)]
    return "\n".join(f"{name:<22}" + "".join(f"{one:>7}" for one in row) for name, row in rows)


def _by_hops(hops: Iterator[int]) -> dict[str, int]:
    found = Counter(hops)
    return {str(length): found[length] for length in range(MIN_HOPS, MAX_HOPS + 1)}


def sheet(
    valid: Sequence[Mapping[str, Any]], *, per_length: int = PER_LENGTH, seed: int = SEED
) -> Iterator[dict[str, Any]]:
    """`per_length` chains of each length, by the hash of their ids, with a field for a verdict."""
    order = seeded_order(valid, lambda one: f"read {one['question_id']}", seed)
    for hops in range(MIN_HOPS, MAX_HOPS + 1):
        for one in [one for one in order if one["hops"] == hops][:per_length]:
            names = ("question_id", "hops", "question", "answer", "gold", "path")
            yield {name: one[name] for name in names} | {"verdict": "", "why": ""}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="suffice_research.grade.chains", description=__doc__)
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("work", type=Path, help="the benchmark is built, or kept, here")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, help="add the counts to this file")
    parser.add_argument("--parse", action="store_true", help="with a dependency parse, too")
    chosen = parser.parse_args(arguments)
    return exit_code(lambda: _run(chosen))


def _run(chosen: argparse.Namespace) -> None:
    documents = list(load(chosen.corpus, chosen.data / chosen.corpus).documents())
    counts, valid = count_chains(documents, chosen.work, parse=chosen.parse)
    if chosen.out:
        known = json.loads(chosen.out.read_text()) if chosen.out.is_file() else {}
        known = {**known, f"{chosen.corpus}, parsed" if chosen.parse else chosen.corpus: counts}
        write_atomically(chosen.out, json.dumps(known, indent=2, sort_keys=True) + "\n")
    print(table(counts), file=sys.stderr)
    for record in sheet(valid):
        print(json.dumps(record, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
