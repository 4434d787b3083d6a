"""2WikiMultiHopQA: HotpotQA's layout, four kinds of questions, two or four gold passages each."""

from __future__ import annotations

from pathlib import Path

from suffice.datasets.dataset import Dataset
from suffice.datasets.hotpotqa import read_supporting_facts

__all__ = ["read"]


def read(
    path: Path | None = None, *, questions: Path | None = None, corpus: Path | None = None, skip_bad: bool = False
) -> Dataset:
    return read_supporting_facts(
        "2wikimultihopqa",
        path,
        questions,
        corpus,
        question_names=("2wikimultihopqa.json", "dev.json"),
        corpus_names=("2wikimultihopqa_corpus.json",),
        skip_bad=skip_bad,
    )
