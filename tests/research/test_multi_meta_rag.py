"""What must hold of filters on the real MultiHop-RAG, and on questions of other data sets, which
name no sources.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from suffice.datasets import load
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.filters import VocabularyExtractor
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.metadata import Vocabulary
from suffice.storage import BadRecords, read_json_records
from suffice_research.multi_meta_rag.filter_quality import (
    empty_filters,
    filter_quality,
    gold_metadata,
    published_filter,
)
from suffice_research.multi_meta_rag.study import study
from suffice_research.study import Study


@pytest.fixture(scope="module")
def news(data_folder: Path) -> Path:
    folder = data_folder / "multihop_rag"
    if not (folder / "query_metadata_filters.json").is_file():
        pytest.skip("no published filters: query_metadata_filters.json is not there")
    return folder


@pytest.fixture(scope="module")
def extractor(news: Path) -> VocabularyExtractor:
    return VocabularyExtractor(
        Vocabulary.of_store(MemoryStore(load("multihop_rag", news).documents()))
    )


def test_our_filters_beat_the_published_ones_and_empty_nothing(
    news: Path, extractor: VocabularyExtractor
) -> None:
    dataset = load("multihop_rag", news)
    examples, articles = list(dataset.questions()), list(dataset.documents())
    gold = gold_metadata(examples, articles)
    ours = [one.filter for one in extractor.extract([one.question.text for one in examples])]
    records = read_json_records(news / "query_metadata_filters.json", BadRecords())
    theirs = [published_filter(one.value["filter"], extractor.vocabulary) for one in records]
    mine, published = filter_quality(ours, gold), filter_quality(theirs, gold)
    assert np.nanmean(mine.exact) > np.nanmean(published.exact)
    assert (mine.date_precision or 0) > (published.date_precision or 1)
    assert (mine.date_recall or 0) > (published.date_recall or 1)
    assert not empty_filters(ours, Corpus(articles), lenient=True).any()


@pytest.mark.parametrize("place", ["hotpotqa", "2wikimultihopqa", "musique", "frames/test.tsv"])
def test_no_filter_is_invented(
    place: str, data_folder: Path, extractor: VocabularyExtractor
) -> None:
    questions = [
        one.question.text for one in load(place.partition("/")[0], data_folder / place).questions()
    ]
    invented = sum(bool(one.filter) for one in extractor.extract(questions))
    assert invented / len(questions) <= 0.01


@pytest.fixture(scope="module")
def measured(news: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The study of every fourth question over all articles: with wider intervals, it is no easier."""
    folder = tmp_path_factory.mktemp("news")
    shutil.copy(news / "corpus.json", folder)
    for name in ("MultiHopRAG.json", "query_metadata_filters.json"):
        records = json.loads((news / name).read_text(encoding="utf-8"))
        (folder / name).write_text(json.dumps(records[::4]), encoding="utf-8")
    return study(data=folder, encoders=("wordllama",))


def test_filtering_helps_and_never_hurts(measured: Study) -> None:
    wordllama = [line for line in measured.summary if "wordllama" in line]
    assert len(wordllama) == 2
    assert all(line.startswith("Holds") for line in measured.summary if "invented" not in line), (
        measured.summary
    )
