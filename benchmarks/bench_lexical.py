"""BM25 and TF-IDF top 10 on the 2Wiki corpus: ours, bm25s called directly, and rank_bm25, on the
same questions.

Each system gets raw questions and returns its ten best; indexing is not timed. A round runs all of
them in turn, and the fastest round counts, so that a busy machine slows them alike. rank_bm25 only
answers the first questions: it is slow.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import bm25s
import numpy as np
from docs.generators.paths import DATA
from rank_bm25 import BM25Okapi

from benchmarks.reporting import ResultTable, print_all, print_progress
from suffice.datasets import load
from suffice.lexicon import STOP_WORDS
from suffice.protocols import Retriever
from suffice.retrieval.corpus import Corpus, searchable_text
from suffice.retrieval.memory import Bm25, MemoryStore
from suffice.retrieval.search import SignalRetriever, TextSearch
from suffice.text import tokens
from suffice_research.retrievers.signals import Tfidf

K = 10
AGAINST_BM25S, AGAINST_RANK_BM25 = 0.8, 20.0
Answer = Callable[[Sequence[str]], object]


def words(text: str) -> list[str]:
    return [word for word in tokens(text) if word not in STOP_WORDS]


def systems(corpus: Corpus) -> dict[str, Answer]:
    texts = [words(searchable_text(document)) for document in corpus.documents]
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    direct = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    direct.index(texts, show_progress=False)
    okapi = BM25Okapi(texts, k1=1.2, b=0.75)
    ours: dict[str, Retriever] = {
        "suffice bm25": SignalRetriever(corpus, [Bm25(corpus)]),
        "suffice bm25, memory store": TextSearch(MemoryStore(corpus.documents)),
        "suffice tfidf": SignalRetriever(corpus, [Tfidf(corpus)]),
    }
    return {
        **{name: partial(one.search, k=K) for name, one in ours.items()},
        "bm25s": lambda questions: direct.retrieve(
            [words(one) for one in questions], k=K, show_progress=False
        ),
        "rank_bm25": lambda questions: [
            np.argsort(-okapi.get_scores(words(one)))[:K] for one in questions
        ],
    }


def per_second(
    compared: dict[str, Answer], questions: Sequence[str], slow: int, rounds: int
) -> dict[str, float]:
    best = dict.fromkeys(compared, 0.0)
    for _ in range(rounds):
        for name, answer in compared.items():
            asked = questions[:slow] if name == "rank_bm25" else questions
            start = time.perf_counter()
            answer(asked)
            best[name] = max(best[name], len(asked) / (time.perf_counter() - start))
    return best


def tables(quick: bool) -> Iterator[ResultTable]:
    if not (DATA / "2wikimultihopqa").is_dir():
        print_progress(
            "skipped: no real data; set SUFFICE_DATA to the folder that holds 2wikimultihopqa/, frames/, ..."
        )
        return
    print_progress("BM25 and TF-IDF on the 2Wiki corpus")
    dataset = load("2wikimultihopqa", DATA / "2wikimultihopqa")
    corpus = Corpus(dataset.documents())
    questions = [example.question.text for example in dataset.questions()]
    speed = per_second(systems(corpus), questions, slow=40, rounds=3 if quick else 7)
    ratios = {
        name: (value / speed["bm25s"], value / speed["rank_bm25"]) for name, value in speed.items()
    }
    ours = [both for name, both in ratios.items() if name.startswith("suffice")]
    yield ResultTable(
        f"Top {K} of {len(corpus):,} documents, {len(questions):,} questions in one batch",
        "The 2Wiki corpus, raw questions in, ten best out, the fastest of the rounds, one thread; required of ours: at least "
        f"{AGAINST_BM25S} of bm25s called directly and {AGAINST_RANK_BM25:.0f} times rank_bm25.",
        ("system", "questions a second", "of bm25s", "of rank_bm25"),
        tuple(
            (name, f"{speed[name]:,.0f}", f"{of[0]:.2f}", f"{of[1]:.0f}")
            for name, of in ratios.items()
        ),
        kept=all(direct >= AGAINST_BM25S and okapi >= AGAINST_RANK_BM25 for direct, okapi in ours),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    return print_all(tables(parser.parse_args().quick))


if __name__ == "__main__":
    sys.exit(main())
