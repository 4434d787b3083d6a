"""Fuzzing targets: the data sets, logs and texts that users provide.

A data set is loaded from its folder or from its first file alone, with and without `skip_bad`. The
length of the input decides which, so each input is always loaded in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from robustness.mutations import Input, Seed
from robustness.targets import OpenTarget, Target, TargetFiles, file_target
from suffice.datasets import FORMATS, describe, load
from suffice.evaluation import batch_check
from suffice.gate.gate import Gate
from suffice.gate.gate_ref import GateRef
from suffice.storage import BadRecords
from suffice_grade.benchmark_files import audit_benchmark, missing_documents, open_benchmark

__all__ = ["LOADER_TARGETS", "shipped_gate"]


def _json(part: str, *values: object) -> Seed:
    return Seed(part, json.dumps(values[0]).encode())


def _lines(part: str, *values: object) -> Seed:
    return Seed(part, "\n".join(map(json.dumps, values)).encode() + b"\n", lines=True)


def _text(part: str, content: str) -> Seed:
    return Seed(part, content.encode())


FACTS = {
    "_id": "5a7a", "question": "Who taught Ada's tutor?", "answer": "Mary", "type": "bridge",
    "supporting_facts": [["Ada", 0], ["Mary Somerville", 1]],
    "context": [["Ada", ["Ada was taught by Mary.", " She wrote."]], ["Mary Somerville", ["Mary taught.", " She read."]]],
}  # fmt: skip
PARAGRAPHS = {
    "id": "2hop__1_2", "question": "Who taught Ada?", "answer": "Mary", "answerable": True,
    "paragraphs": [
        {"title": "Ada", "paragraph_text": "Ada was taught by Mary.", "is_supporting": True},
        {"title": "Bakery", "paragraph_text": "It opens at six.", "is_supporting": False},
    ],
}  # fmt: skip
NEWS = {
    "title": "A match", "body": "The match ended.", "source": "The Verge", "category": "sports", "author": None,
    "published_at": "2023-10-07T20:15:26+00:00", "url": "http://example.org/a",
}  # fmt: skip
QUESTION_RECORD = {
    "query": "Which match?", "answer": "A", "question_type": "inference_query",
    "evidence_list": [{"title": "A match", "url": "http://example.org/a", "fact": "It ended.", "source": "The Verge"}],
}  # fmt: skip
DOCUMENT = {
    "doc_id": "a1", "title": "Ada", "text": "Ada wrote to Babbage.", "source": "The Times", "category": "letters",
    "published_at": "1843-07-10", "entities": ["Ada", "Babbage"], "parent": "a", "more": {"pages": [1, 2]},
}  # fmt: skip
EXAMPLE = {
    "question_id": "q1", "question": "Who taught Ada's tutor?", "gold": ["a1", "b2"], "answer": "Mary", "kind": "bridge",
    "hops": 2, "labels": ["x"], "hits": [{"doc_id": "a1", "score": 7.5}, "b2"],
}  # fmt: skip
ROW = {
    "user_input": "Who taught Ada?", "retrieved_contexts": ["Ada was taught by Mary."], "retrieved_context_ids": ["a1"],
    "reference_contexts": ["Mary taught."], "reference_context_ids": ["b2"], "reference": "Mary",
}  # fmt: skip
TSV = (
    "\tPrompt\tAnswer\twikipedia_link_1\twiki_links\treasoning_types\n"
    "0\tWho wrote it?\tAda\thttps://en.wikipedia.org/wiki/Ada_Lovelace\t"
    "\"['https://en.wikipedia.org/wiki/Utica,_New_York', 'https://en.m.wikipedia.org/w/index.php?title=Ada']\"\t"
    "Tabular | Temporal\n"
    "1\tWhen?\t1843\ten.wikipedia.org/wiki/Mary%20Somerville#Life\t[]\tMultiple constraints\n"
)
RUN = "q1 Q0 a1 1 7.5 bm25\nq1 Q0 b2 2 3 bm25\nq2 Q0 b2 1 1e-3 bm25\n"
SEEDS: dict[str, tuple[Seed, ...]] = {
    "frames": (_text("test.tsv", TSV),),
    "multihop_rag": (
        _json("MultiHopRAG.json", [QUESTION_RECORD]),
        _json("corpus.json", [NEWS]),
        _lines("corpus.json", NEWS, {**NEWS, "title": "B"}),
    ),
    "hotpotqa": (
        _json("hotpotqa.json", [FACTS]),
        _lines("hotpotqa.json", FACTS, {**FACTS, "_id": "5a7b"}),
        _json("hotpotqa_corpus.json", {"Ada": ["Ada was taught by Mary."], "Mary Somerville": ["Mary taught."]}),
        _json("hotpotqa_corpus.json", [{"title": "Ada", "text": "Ada was taught."}, {"title": "M", "sentences": ["a", "b"]}]),
    ),
    "2wikimultihopqa": (_json("2wikimultihopqa.json", [FACTS]), _json("2wikimultihopqa_corpus.json", {"Ada": ["a", "b"]})),
    "musique": (
        _json("musique.json", [PARAGRAPHS]),
        _lines("musique.json", PARAGRAPHS, {**PARAGRAPHS, "answerable": False}),
        _json("musique_corpus.json", [{"title": "Ada", "text": "Ada was taught by Mary.", "idx": 0}]),
    ),
    "beir": (
        _lines("corpus.jsonl", {"_id": "d1", "title": "Ada", "text": "Ada wrote."}, {"_id": "d2", "text": ""}),
        _lines("queries.jsonl", {"_id": "q1", "text": "Who wrote?"}, {"_id": "q2", "text": "When?"}),
        _text("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t0\n"),
    ),
    "trec": (
        _text("a.run", RUN),
        _text("a.qrels", "q1 0 a1 1\nq1 0 b2 0\nq2 0 b2 2\n"),
        _text("topics.tsv", "q1\tWho taught Ada?\nq2\tWhen?\n"),
        _lines("corpus.jsonl", DOCUMENT, {"id": "b2", "text": "Mary taught."}),
    ),
    "ragas": (_lines("rows.jsonl", ROW, ROW), _json("rows.jsonl", [ROW])),
    "jsonl": (
        _lines("documents.jsonl", DOCUMENT, {"_id": 7, "title": "Mary"}),
        _json("documents.jsonl", [DOCUMENT]),
        _lines("examples.jsonl", EXAMPLE, {"question": "When?", "gold": []}),
    ),
    "folder": (
        _text("a.md", "---\ntitle: Leave\n---\nValid.\n\n# Handbook\n\n## *Sick* leave\n\nBy 10:00.\n\n```\n# no\n```\n"),
        _text("b.html", "<title>A</title><nav>x</nav><h1>Office</h1><p>Open &amp; late<!-- no --></p><table><tr><td>1</td></tr></table>"),
        _text("c.csv", 'name;role\nAna;"lead\nof Atlas"\nBen;\n'),
        _text("d.txt", "12/03/2024, 14:05 - Ana: The office moves\nto Porto.\n13/03/2024, 09:00 - Ben: Which floor?\n"),
        _json("e.json", [{"user": "U1", "ts": "1710252300.0002", "text": "Frozen."}, {"role": "user", "content": ["a"]}]),
        _lines("f.jsonl", DOCUMENT, {"messages": [{"role": "user", "content": "Who?"}]}, {"text": "Green lamp."}),
    ),
}  # fmt: skip


def _dataset(name: str) -> Target:
    def read(folder: Path, file: Path, given: Input) -> bool:
        size = len(given.content)
        alone = size % 4 >= 2 and given.part == SEEDS[name][0].part and name not in ("beir", "trec")
        opened = load(name, file if alone else folder, skip_bad=size % 2 == 0)
        describe(opened)
        return not opened.bad.count

    return file_target(name, "loaders", f"a data set in the layout of {name}", SEEDS[name], read)


# ---- logs


@cache
def shipped_gate() -> Gate:
    return Gate.load(preset="fast")


HIT = {
    "doc_id": "a1",
    "title": "Ada",
    "text": "Ada was taught by Mary.",
    "score": 7.5,
    "published_at": "1843-07-10",
    "entities": ["Ada"],
}
LOG_RECORD = {
    "question_id": "q1",
    "question": "Who taught Ada?",
    "hits": [HIT, "Mary Somerville taught."],
}
LOG_SEEDS = (
    _lines("log.jsonl", LOG_RECORD, {"question": "Who?", "hits": []}),
    _json("log.jsonl", [LOG_RECORD]),
    _text("a.run", RUN),
    _text("topics.tsv", "q1\tWho taught Ada?\nq2\tWhen?\n"),
    _lines("corpus.jsonl", DOCUMENT, {"id": "b2", "text": "Mary taught."}),
)


@contextmanager
def _logs(folder: Path) -> Iterator[OpenTarget]:
    """The files of `suffice check --batch` and `--run`."""
    files, gate = TargetFiles(folder, LOG_SEEDS), GateRef.named("default")

    def read(given: Input) -> bool:
        file, bad = files.put(given), BadRecords(skip=len(given.content) % 2 == 0)
        if given.part == "log.jsonl":
            lines = batch_check.read_log_lines(file, bad)
        else:
            lines = batch_check.trec_log_lines(
                folder / "a.run", folder / "topics.tsv", folder / "corpus.jsonl", bad
            )
        job = batch_check.check_job(gate, skip_bad=bad.skip)
        checked = batch_check.BlockResult.of(job.do(list(lines), shipped_gate()))
        checked.report(bad)
        return not bad.count

    shipped_gate()
    yield OpenTarget(LOG_SEEDS, read)


LABELLED_RECORD = {
    "subject": "Ada",
    "relation": "taught by",
    "object": "Mary",
    "doc_id": "a1",
    "claim_id": "a1#0",
    "several": False,
}
MADE = {
    "question_id": "q1", "question": "Who taught the author of the notes?", "answer": "Mary", "kind": "chain", "hops": 2,
    "gold": ["a1", "b2"], "path": [[LABELLED_RECORD]],
}  # fmt: skip
BENCHMARK = (
    _lines(
        "documents.jsonl", DOCUMENT, {"doc_id": "b2", "title": "Mary", "text": "Mary taught Ada."}
    ),
    _lines("questions.jsonl", MADE),
    _lines("twins.jsonl", {**MADE, "question_id": "q1-twin", "without": "b2", "twin_of": "q1"}),
)


def _benchmark(folder: Path, file: Path, given: Input) -> bool:
    """A benchmark: as a data set, its twins, and its audit."""
    if len(given.content) % 2:
        audit_benchmark(folder)
        return True
    missing_documents(folder)
    found = open_benchmark(folder)
    return sum(1 for _ in found.documents()) + sum(1 for _ in found.questions()) > 0


LOADER_TARGETS: Sequence[Target] = (
    # "2wiki" is another name of 2wikimultihopqa.
    *(_dataset(name) for name in FORMATS.names() if name != "2wiki"),
    Target(
        "logs",
        "loaders",
        "questions with their hits, and TREC runs, as `suffice check` reads them",
        _logs,
    ),
    file_target("benchmark", "loaders", "the files of a graded benchmark", BENCHMARK, _benchmark),
)
