"""Counting the chains of a small corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from suffice_research.grade.chains import SHOWN, count_chains, sheet, table
from tests.benchmark_village import village


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Claims and triples of the village."""
    return tmp_path_factory.mktemp("village") / "made"


def test_every_chain_of_a_corpus_is_counted(made: Path) -> None:
    counts, valid = count_chains(village(), made)
    assert counts["paths"]["5"] >= counts["questions"]["5"] >= counts["valid"]["5"] >= 1
    assert sum(counts["valid"].values()) == len(valid)
    lines = table(counts).splitlines()
    assert [line.split()[-1] for line in lines] == [
        "5",
        *(str(counts[name]["5"]) for name in SHOWN),
    ]
    read = list(sheet(valid, per_length=1))
    assert [one["hops"] for one in read] == [2, 3, 4, 5]
    assert all(one["verdict"] == "" for one in read)
