"""The paper's third stage: systems answer generated questions of three domains, and a judge scores.

A benchmark is generated from each corpus. Questions of each number of hops are drawn from it,
answered over several retrievers, and judged: by token F1, or by a language model if one is given.
The errors go into the matrix (Figures 3 and 4), accuracy by hops into Figure 2, and examples of
questions over missing links into Table 4.

    python -m suffice_research.grade.answers --data DIR --limit 12 --into STUDY.json

runs only this stage, and adds its section to an existing study.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.answering.budget import Budget
from suffice.datasets import load
from suffice.datasets.gold import GoldQuestion, draw_key
from suffice.errors import InputError, ModelError
from suffice.evaluation.metrics import ANSWER_METRICS
from suffice.evaluation.report import Cell, Section, Table
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.significance import Interval
from suffice.gate.gate import FAST, Gate
from suffice.protocols import LanguageModel, Progress
from suffice.registry import ENCODERS
from suffice.storage import BadRecords, read_json_records, sha256_of, write_atomically
from suffice.types import Document
from suffice_grade.benchmark_files import open_benchmark
from suffice_grade.difficulty_matrix import MAX_HOPS, heatmap, matrix_table, question_difficulty
from suffice_grade.pipeline import BenchmarkSettings, NoQuestionsError, build_benchmark
from suffice_research.answer_systems import AnswerSetup, open_corpus, run_systems
from suffice_research.controlled import controlled_collection
from suffice_research.figures import Curves, PaperSeries
from suffice_research.grade import corpora
from suffice_research.grade.correlations import CorrelatedDifficulty, measure_with_correlations
from suffice_research.grade.published import CORNERS, FIGURE_2, TABLE_4
from suffice_research.study import Study
from suffice_research.training.sources import ProgressLog, exit_code

__all__ = ["DOMAINS", "DomainResults", "answer_domain", "answer_section", "domain_documents"]

DOMAINS = ("Wikipedia", "news", "everyday")
RETRIEVERS = ("bm25", "dense", "hybrid")
ASK = "ask"  # our answering loop, without a gate that could hold an answer back
READ, HITS = "fixed k", 10  # the paper's system: read ten hits once
PER_HOPS = 40  # questions per number of hops
ENCODER = "wordllama"
MIN_F1 = 0.5
CONTROLLED_ARTICLES = 600
EXAMPLES = 2  # questions over missing links of each kind, in Table 4

JUDGE_PROMPT = """Someone answered a question. Say whether the answer means the same as the correct one.
A shorter or longer form of the correct answer is right; another name, date or number is wrong.

Question: {question}
Correct answer: {gold}
Given answer: {answer}

Reply as JSON: {{"correct": true}} or {{"correct": false}}."""
JUDGE_SCHEMA = {
    "type": "object",
    "properties": {"correct": {"type": "boolean"}},
    "required": ["correct"],
}


@dataclass(frozen=True)
class DomainResults:
    """One domain: the number of questions, and every system in the matrix."""

    domain: str
    documents: int
    made: int
    systems: Mapping[str, CorrelatedDifficulty]
    judged_by: str
    examples: tuple[tuple[str, str, str, str], ...] = ()  # link, triples, question, answer


def domain_documents(domain: str, data: Path | None) -> tuple[list[Document], dict[str, str]]:
    """The corpus of a domain, and the hashes of its files.

    News are MultiHop-RAG's articles, or without its folder those of the controlled collection.
    """
    if domain == "everyday":
        return corpora.everyday(Path()), {}
    name = {"Wikipedia": "2wikimultihopqa", "news": "multihop_rag"}[domain]
    folder = Path(data) / name if data else None
    if folder is None or not folder.is_dir():
        if domain == "news":
            made = controlled_collection(documents=CONTROLLED_ARTICLES)
            return list(made.documents()), {}
        raise InputError(
            f"no corpus of {domain}: {data or 'no folder'} does not hold {name}/",
            hint=f"pass --data with the folder that holds {name}/",
        )
    hashes = {one.name: sha256_of(one) for one in sorted(folder.iterdir()) if one.is_file()}
    return list(load(name, folder).documents()), hashes


def answer_domain(
    domain: str,
    documents: Sequence[Document],
    *,
    per_hops: int = PER_HOPS,
    model: LanguageModel | None = None,
    max_chars: int = 6000,
    retrievers: Sequence[str] = RETRIEVERS,
    seed: int = 42,
    progress: Progress | None = None,
) -> DomainResults:
    """Generate questions from the documents, answer them, judge the answers."""
    settings = BenchmarkSettings(
        seed=seed, per_hop=4 * per_hops, per_form=2 * per_hops, twins=0, lookalikes=0
    )
    with TemporaryDirectory() as place:
        folder = Path(place) / "made"
        build_benchmark(documents, folder, settings=settings, progress=progress)
        dataset = open_benchmark(folder, twins=False)
        made = list(dataset.questions())
        questions = _drawn(made, per_hops, seed)
        examples = tuple(_link_examples(folder / "questions.jsonl"))
        graded = question_difficulty(questions, dataset.documents(), ENCODERS.get(ENCODER)())
        gates = [Gate.load(preset=FAST)] * len(questions)
        found: dict[str, list[str | None]] = {}
        for retriever in retrievers:
            corpus = open_corpus(
                dataset, retriever=retriever, encoder=ENCODER, cached=True, progress=progress
            )
            budget = Budget(documents=HITS)
            setup = AnswerSetup(corpus, model, budget, HITS, max_chars)
            names = (READ, "always") if retriever == retrievers[-1] else (READ,)
            outcomes = run_systems(questions, setup, gates, systems=names, progress=progress)
            for name, some in outcomes.items():
                shown = f"{ASK}, {retriever}" if name == "always" else f"read ten, {retriever}"
                found[shown] = [one.answer for one in some]
    systems = {}
    for name, answers in found.items():
        wrong = ~_judged(questions, answers, model)
        ids = [one.question.question_id for one in questions]
        errors = dict(zip(ids, wrong.astype(float).tolist(), strict=True))
        systems[name] = measure_with_correlations(name, graded, errors, seed=seed)
    judged_by = "token F1" if model is None else "a language model"
    return DomainResults(domain, len(documents), len(made), systems, judged_by, examples)


def _drawn(made: Sequence[GoldQuestion], per_hops: int, seed: int) -> list[GoldQuestion]:
    """`per_hops` questions for each number of hops, by the hash of their text; kinds take turns."""
    groups: dict[int, dict[str, list[GoldQuestion]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(made, key=lambda one: draw_key(seed, one.question.text)):
        hops = min(one.gold.hops or len(one.gold.doc_ids), MAX_HOPS)
        groups[hops][one.gold.kind or ""].append(one)
    found: list[GoldQuestion] = []
    for _, kinds in sorted(groups.items()):
        orders = [kinds[name] for name in sorted(kinds)]
        longest = max(map(len, orders))
        in_turn = [some[at] for at in range(longest) for some in orders if at < len(some)]
        found += in_turn[:per_hops]
    return found


def _judged(
    questions: Sequence[GoldQuestion], answers: Sequence[str | None], model: LanguageModel | None
) -> npt.NDArray[np.bool_]:
    """Whether each answer is right; a missing answer is wrong."""
    gold = [one.gold.answer or "" for one in questions]
    given = [one or "" for one in answers]
    scores = ANSWER_METRICS["token_f1"](given, [[one] for one in gold])
    f1 = np.array([bool(one) for one in answers]) & (np.asarray(scores) >= MIN_F1)
    if model is None:
        return f1
    asked = [at for at, one in enumerate(answers) if one]
    prompts = [
        JUDGE_PROMPT.format(question=questions[at].question.text, gold=gold[at], answer=given[at])
        for at in asked
    ]
    right = np.zeros(len(answers), dtype=bool)
    for at, reply in zip(asked, model.complete(prompts, schema=JUDGE_SCHEMA), strict=True):
        right[at] = _verdict(reply, fallback=bool(f1[at]))
    return right


def _verdict(reply: str, *, fallback: bool) -> bool:
    """The judge's verdict; the rules decide if it cannot be parsed."""
    try:
        found = json.loads(reply)
    except (ValueError, ModelError):
        return fallback
    said = found.get("correct") if isinstance(found, dict) else None
    return said if isinstance(said, bool) else fallback


def _link_examples(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Chains over a missing link, of either kind."""
    shown: dict[str, int] = defaultdict(int)
    for record in read_json_records(path, BadRecords()):
        triples = [one for some in record.value["path"] for one in some]
        for link in ("exact", "context"):
            linked = any(one["link"] == link for one in triples)
            if linked and record.value["kind"] == "chain" and shown[link] < EXAMPLES:
                shown[link] += 1
                facts = "; ".join(
                    f"({x['subject']}, {x['relation']}, {x['object']})" for x in triples
                )
                yield link, facts, record.value["question"], record.value["answer"]


# ------------------------------------------------------------------------------------ tables


def answer_section(results: Sequence[DomainResults]) -> Section:
    """Figure 2, the matrices of Figures 3 and 4, and Table 4, with the paper's figures."""
    shown: list[Any] = [_figure_2(one) for one in results]
    shown += [_accuracy_table(results), _corners(results)]
    for one in results:
        *_, first = one.systems.values()  # ours
        shown.append(heatmap(first, title=f"Figure 4's matrix: {first.system} on {one.domain}"))
        shown += [matrix_table(found, of=f" on {one.domain}") for found in one.systems.values()]
    shown += [_correlations(results), _table_4(results)]
    counts = ", ".join(
        f"{one.domain} {one.made:,} questions from {one.documents:,} documents" for one in results
    )
    by = " and ".join(dict.fromkeys(one.judged_by for one in results))
    return Section(
        "Stage three: answers to made questions in three domains",
        tuple(shown),
        f"Made: {counts}. An error is a wrong answer, or none, judged by {by}. The paper's "
        "questions have 2 to 5 hops and are made from news by a language model; ours also have 1.",
    )


def _accuracy(found: CorrelatedDifficulty) -> dict[int, Interval]:
    rows = zip(found.matrix.levels, found.matrix.by_hops)
    return {hops: _complement(cell.error) for hops, cell in rows}


def _complement(error: Interval) -> Interval:
    if error.value is None or error.low is None or error.high is None:
        return Interval(None)
    return Interval(1 - error.value, 1 - error.high, 1 - error.low)


def _figure_2(one: DomainResults) -> Curves:
    levels = sorted({hops for found in one.systems.values() for hops in found.matrix.levels})
    lines = []
    for name, found in one.systems.items():
        by_hops = _accuracy(found)
        values = tuple(by_hops.get(hops, Interval(None)) for hops in levels)
        lines.append(PaperSeries(name, values))
    return Curves(
        f"Figure 2: accuracy by hops, {one.domain}",
        "hops",
        "accuracy",
        tuple(levels),
        tuple(lines),
        "The paper's accuracy falls with hops.",
    )


def _accuracy_table(results: Sequence[DomainResults]) -> Table:
    levels = range(1, MAX_HOPS + 1)
    rows: list[tuple[Cell, ...]] = []
    for one in results:
        for name, found in one.systems.items():
            by_hops = _accuracy(found)
            cells = [by_hops.get(hops) for hops in levels]
            rows.append((f"{one.domain}, {name}", found.matrix.whole.n, *cells))
    for domain, values in FIGURE_2.figures.items():
        paper = [values.get(f"{hops} hops") for hops in levels]
        rows.append((f"paper, {domain}", None, *paper))
    columns = ("questions", "n", *(f"{hops} hops" for hops in levels))
    return Table("Figure 2: accuracy by hops", columns, tuple(rows), FIGURE_2.caption)


def _corners(results: Sequence[DomainResults]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in results:
        for name, found in one.systems.items():
            corners = (str(found.matrix.cells[0][0]), str(found.matrix.cells[-1][-1]))
            rows.append((f"{one.domain}, {name}", *corners))
    for system in CORNERS.figures["easiest"]:
        values = (CORNERS.figures[at].get(system) for at in ("easiest", "hardest"))
        rows.append((f"paper, {system}", *values))
    note = "Ours: fewest hops and nearest quarter, most hops and farthest quarter. Thin cells say little."
    columns = ("system", "easiest corner", "hardest corner")
    return Table("Figures 3 and 4: the corners of the matrix", columns, tuple(rows), note)


def _correlations(results: Sequence[DomainResults]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in results:
        for name, found in one.systems.items():
            for row in found.by_question:
                if row.where in ("average", "diagonal"):
                    rows.append((f"{one.domain}, {name}, {row.where}", row.n, *row.by.values()))
    columns = ("questions", "n", "min", "power mean", "mean")
    note = (
        "Pearson's r of D_r with a wrong answer, question by question; --: nearly all fare alike."
    )
    return Table("Correlation of D_r with wrong answers", columns, tuple(rows), note)


def _table_4(results: Sequence[DomainResults]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (f"ours, {one.domain}", *example) for one in results for example in one.examples
    ]
    rows += [("paper", *row) for row in TABLE_4]
    columns = ("whose", "link", "triples", "question", "answer")
    return Table("Table 4: questions over missing links", columns, tuple(rows))


def _case(document: Document) -> str:
    """The group of a document: documents of one everyday case are drawn together."""
    return document.doc_id.rpartition("/")[0] or document.doc_id


def answer_domains(
    data: Path | None,
    *,
    domains: Sequence[str] = DOMAINS,
    limit: int | None = None,
    most: int | None = None,
    model: LanguageModel | None = None,
    max_chars: int = 6000,
    seed: int = 42,
    progress: Progress | None = None,
) -> tuple[list[DomainResults], dict[str, str], list[str]]:
    """All domains, the hashes of their files, and what was skipped, with the reason.

    `limit` questions for each number of hops; `most` documents per domain, drawn by their ids.
    """
    found, hashes, left_out = list[DomainResults](), dict[str, str](), list[str]()
    for domain in domains:
        try:
            documents, files = domain_documents(domain, data)
            documents = sorted(documents, key=lambda one: draw_key(seed, _case(one)))[:most]
            found.append(
                answer_domain(
                    domain,
                    documents,
                    per_hops=limit or PER_HOPS,
                    model=model,
                    max_chars=max_chars,
                    seed=seed,
                    progress=progress,
                )
            )
            hashes |= files
        except (NoQuestionsError, InputError) as error:
            left_out.append(f"Left out {domain}: {error}.")
    return found, hashes, left_out


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="suffice_research.grade.answers", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--limit", type=int, default=PER_HOPS, help="questions of each hop count")
    parser.add_argument("--documents", type=int, help="of each domain, at most")
    parser.add_argument("--into", type=Path, required=True, help="the stored study")
    chosen = parser.parse_args(arguments)
    say, told = ProgressLog(), set[str]()

    def progress(what: str, done: int, total: int | None) -> None:
        if what not in told or done == total:
            told.add(what)
            say(f"{what} {done}")

    def work() -> None:
        study = Study.load(chosen.into)
        domains, hashes, left_out = answer_domains(
            chosen.data, limit=chosen.limit, most=chosen.documents, progress=progress
        )
        if not domains:
            raise InputError("no domain gave questions: " + " ".join(left_out))
        section = answer_section(domains)
        rest = [one for one in study.sections if one.title != section.title]
        settings = {
            **study.settings,
            "answered of each number of hops": chosen.limit,
            "documents of a domain": chosen.documents,
            "sections of other runs": {section.title: source_commit()},
        }
        notes = tuple(dict.fromkeys((*study.notes, *left_out)))
        merged = replace(
            study,
            sections=(*rest[:-1], section, *rest[-1:]),  # the paper's own figures stay last
            settings=settings,
            data={**study.data, **hashes},
            notes=notes,
        )
        write_atomically(chosen.into, merged.to_json(timings=False))

    return exit_code(work)


if __name__ == "__main__":
    sys.exit(main())
