"""Jobs on real Dask workers: the same bytes as without them, whoever dies on the way."""

from __future__ import annotations

import filecmp
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.commands import suffice, write_lines
from tests.dask_cluster import DaskCluster, careless_shout, slow_shout, weigh
from typer.testing import Result

from suffice.engines.batch import BatchRunner
from suffice.engines.batch.checkpoint import environment_versions
from suffice.errors import EngineError, NotReadyError
from suffice.evaluation.batch_check import check_job
from suffice.gate.gate import SHIPPED_MODELS
from suffice.gate.gate_ref import GateRef
from suffice.jobs import Job, split_into_blocks
from suffice.storage import Line
from suffice_research.controlled import controlled_collection
from tests.benchmark_village import village

pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
pytestmark = pytest.mark.live

WORDS = [f"word{at}" for at in range(60)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """Two workers. A test that kills one adds another."""
    running = DaskCluster(tmp_path_factory.mktemp("dask"))
    try:
        running.add_worker()
        running.add_worker()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    """1,200 questions with three hits each."""
    texts = [document.text for document in controlled_collection(documents=200).documents()]
    records = (
        {
            "question_id": f"q{at}",
            "question": f"What of {texts[at % 190][:40]}?",
            "hits": [texts[(at + n) % 190] for n in (0, 1, 2)],
        }
        for at in range(1200)
    )
    return [Line(json.dumps(record), f"log.jsonl:{at}") for at, record in enumerate(records, 1)]


def done(*words: object) -> Result:
    result = suffice(*words)
    assert result.exit_code == 0, result.output
    return result


def kill_at(count: int, results: Iterator[Any], victim: subprocess.Popen[bytes]) -> list[Any]:
    """All results; after so many of them the victim is killed."""
    found = []
    for result in results:
        found.append(result)
        if len(found) == count:
            victim.kill()
            victim.wait(timeout=20)
    return found


# ---- the same bytes


def test_a_worker_killed_in_the_middle_changes_nothing(
    cluster: DaskCluster, lines: list[Line]
) -> None:
    job = check_job(GateRef.named("default", "fast"))
    with BatchRunner() as here:
        expected = list(here(job, split_into_blocks(lines, 60)))
    with BatchRunner(cluster.address) as there:
        found = kill_at(3, there(job, split_into_blocks(lines, 60)), cluster.workers[0])
    cluster.add_worker()
    assert json.dumps(found) == json.dumps(expected)
    assert len(found) == 20


def test_the_reader_says_the_same_on_workers(cluster: DaskCluster, lines: list[Line]) -> None:
    job = check_job(GateRef.named("default"))
    with BatchRunner() as here, BatchRunner(cluster.address) as there:
        expected, found = (list(one(job, split_into_blocks(lines[:4], 2))) for one in (here, there))
    assert json.dumps(found) == json.dumps(expected)


def test_the_commands_write_the_same_bytes_on_workers(cluster: DaskCluster, tmp_path: Path) -> None:
    source = tmp_path / "source"
    done("build", "--collection", "controlled", "--documents", 260, "--export", source)
    for where, more in (("here", ()), ("there", ("--scheduler", cluster.address))):
        home = tmp_path / where
        done("build", source, "--out", home / "library", *more)
        options = f"--dataset jsonl --path {source} --limit 40 --seed 1".split()
        searched = ("--retriever", "bm25,hybrid", "--out", home / "retrieval.json")
        done("evaluate", "retrieval", *options, *searched, *more)
        fast = ("--preset", "fast", "--no-baselines")
        done("evaluate", "gate", *options, *fast, "--out", home / "gate.json", *more)
    here, there = tmp_path / "here", tmp_path / "there"
    for name in (
        "vectors-1.f16",
        "links-1/starts.npy",
        "links-1/targets.npy",
        "links-1/id_bytes.npy",
    ):
        assert filecmp.cmp(here / "library" / name, there / "library" / name, shallow=False), name
    assert not (there / "library" / ".blocks").exists()
    for name in ("retrieval.json", "gate.json"):
        assert untimed(here / name) == untimed(there / name)


def untimed(file: Path) -> Any:
    return {**json.loads(file.read_text(encoding="utf-8")), "timings": {}}


def test_a_benchmark_is_made_the_same_on_workers(cluster: DaskCluster, tmp_path: Path) -> None:
    pages = [{"doc_id": one.doc_id, "title": one.title, "text": one.text} for one in village()]
    write_lines(tmp_path / "corpus.jsonl", pages)
    for where, more in (("here", ()), ("there", ("--scheduler", cluster.address))):
        done("grade", tmp_path / "corpus.jsonl", "--out", tmp_path / where, *more)
    compared = filecmp.dircmp(tmp_path / "here", tmp_path / "there")
    assert compared.left_list == compared.right_list
    assert not compared.diff_files


def test_the_reader_forgets_the_blocks_that_are_done(cluster: DaskCluster) -> None:
    reader, memory = psutil.Process(), []
    with BatchRunner(cluster.address) as batch:
        for _ in batch(Job("weighing", weigh), ([f"{at} " * 100_000] for at in range(100))):
            memory.append(reader.memory_info().rss / 2**20)
    assert memory[-1] - memory[20] < 15, "eighty blocks of some 400 KB went by since"


# ---- what goes wrong


def test_a_block_that_fails_on_every_worker_is_named_and_the_rest_is_kept(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    words = [*WORDS[:20], "seven", *WORDS[20:]]
    messages: list[str] = []
    keep = tmp_path / "blocks"
    with (
        pytest.raises(EngineError) as caught,
        BatchRunner(cluster.address, checkpoint=keep, report=messages.append) as batch,
    ):
        list(batch(Job("shouting", careless_shout, key="loud"), split_into_blocks(words, 4)))
    assert "shouting, 21 to 24: failed 3 times: OSError: no room left" in str(caught.value)
    assert sum("trying again" in line for line in messages) == 2
    assert len(list(keep.iterdir())) >= 5


def test_a_worker_that_would_say_something_else_refuses(
    cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from suffice.engines.batch import dask_executor as dask_side

    monkeypatch.setattr(
        dask_side, "environment_versions", lambda: {**environment_versions(), "suffice": "99.0"}
    )
    with (
        pytest.raises(
            NotReadyError, match=r"the worker at tcp://.*suffice is .* instead of 99\.0"
        ) as caught,
        BatchRunner(cluster.address) as b,
    ):
        list(b(Job("shouting", slow_shout), split_into_blocks(WORDS, 4)))
    assert "install the same versions" in caught.value.hint


def test_a_worker_that_lacks_the_gate_says_so(
    cluster: DaskCluster, lines: list[Line], tmp_path: Path
) -> None:
    shutil.copytree(SHIPPED_MODELS / "gate-standard", tmp_path / "gate")
    job = check_job(GateRef.named(str(tmp_path / "gate")))
    shutil.rmtree(tmp_path / "gate")
    with (
        pytest.raises(NotReadyError, match=r"the worker at tcp://.*there is no gate at") as caught,
        BatchRunner(cluster.address) as b,
    ):
        list(b(job, split_into_blocks(lines[:10], 5)))
    assert "where every worker sees it" in caught.value.hint


def test_a_lost_scheduler_is_reported_and_another_one_resumes(tmp_path: Path) -> None:
    keep = tmp_path / "blocks"
    (tmp_path / "first").mkdir()
    first = DaskCluster(tmp_path / "first")
    try:
        first.add_worker()
        with (
            pytest.raises(EngineError, match=r"to [23][0-9]: the scheduler at .* went away"),
            BatchRunner(first.address, checkpoint=keep) as batch,
        ):
            kill_at(
                4,
                batch(Job("shouting", slow_shout, key="loud"), split_into_blocks(WORDS, 4)),
                first.scheduler,
            )
    finally:
        first.stop()
    assert 4 <= len(list(keep.iterdir())) < 15
    with BatchRunner(checkpoint=keep) as batch:
        found = [
            word
            for block in batch(Job("shouting", slow_shout, key="loud"), split_into_blocks(WORDS, 4))
            for word in block
        ]
    assert found == [word.upper() for word in WORDS]


def test_a_scheduler_without_workers_is_reported_after_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from suffice.engines.batch import dask_executor as dask_side

    monkeypatch.setattr(dask_side, "CONNECT_S", 2.0)
    monkeypatch.setattr(dask_side, "WORKER_WAIT_S", 1.0)
    deserted = DaskCluster(tmp_path)
    try:
        with pytest.raises(EngineError, match="has no worker") as caught:
            BatchRunner(deserted.address)
        assert f"dask worker {deserted.address}" in caught.value.hint
    finally:
        deserted.stop()
    with pytest.raises(EngineError, match="no Dask scheduler answers") as caught:
        BatchRunner(deserted.address)
    assert "dask scheduler" in caught.value.hint
