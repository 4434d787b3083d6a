"""Jobs in blocks, in order and resumable, in this process; tests/live/test_dask.py has workers."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import suffice

from suffice.engines.batch import BatchRunner
from suffice.engines.batch.checkpoint import environment_versions
from suffice.engines.embedded import EmbeddedStore
from suffice.errors import EngineError, InputError, MissingExtraError, NotReadyError, SufficeError
from suffice.evaluation.searching import RetrieverSet, search_in_blocks
from suffice.gate.gate_ref import GateRef
from suffice.jobs import Job, run_in_process, split_into_blocks
from suffice.library import Library
from suffice.retrieval.encoders import PortableEncoder, WordLlamaEncoder
from suffice.retrieval.memory import MemoryStore
from suffice.storage import Line
from suffice.testing import VILLAGE
from suffice_research.controlled import controlled_collection

WORDS = "one two three four five six seven eight nine ten".split()


class Counting:
    """Upper case, and how often it was asked."""

    def __init__(self, failing: dict[str, list[Exception]] | None = None) -> None:
        self.requests: list[str] = []
        self.failing = failing or {}

    def __call__(self, block: Sequence[Any], ready: object) -> list[str]:
        self.requests += [str(one) for one in block]
        for word in block:
            if self.failing.get(str(word)):
                raise self.failing[str(word)].pop()
        return [str(word).upper() for word in block]


def shouted(
    batch: BatchRunner, work: Counting, words: Sequence[str] = WORDS, *, key: str = "loud"
) -> list[str]:
    return [
        word
        for block in batch(Job("shouting", work, key=key), split_into_blocks(words, 3))
        for word in block
    ]


def gather(results: Iterator[Any], into: list[Any]) -> None:
    """One by one, so that what came before an error is there after it."""
    for one in results:
        into.extend(one)


# ---- blocks


def test_a_block_ends_at_its_count_or_where_its_letters_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("suffice.jobs.MAX_BLOCK_CHARS", 7)
    assert list(split_into_blocks(WORDS[:5], 3, chars=len)) == [
        ["one", "two", "three"],
        ["four", "five"],
    ]
    assert list(split_into_blocks(["a book of its own", "b"], 3, chars=len)) == [
        ["a book of its own"],
        ["b"],
    ]
    assert list(split_into_blocks([], 3)) == []


def test_an_input_error_is_raised_after_everything_before_it() -> None:
    def read() -> Iterator[str]:
        yield from WORDS[:4]
        raise InputError("words.txt:5: not a word")

    heard: list[str] = []
    with BatchRunner() as batch, pytest.raises(InputError, match=r"words\.txt:5"):
        gather(batch(Job("shouting", Counting()), split_into_blocks(read(), 3)), heard)
    assert heard == ["ONE", "TWO", "THREE", "FOUR"]


# ---- failing


def test_a_block_that_fails_is_tried_again() -> None:
    reports: list[str] = []
    work = Counting({"five": [OSError("no route to host"), EngineError("busy", retryable=True)]})
    with BatchRunner(report=reports.append) as batch:
        assert shouted(batch, work) == [word.upper() for word in WORDS]
    assert work.requests.count("five") == 3
    assert reports == [
        "shouting, 4 to 6: failed (EngineError: busy); trying again",
        "shouting, 4 to 6: failed (OSError: no route to host); trying again",
    ]


def test_a_block_that_keeps_failing_is_named_with_its_place_and_its_cause() -> None:
    lines = [Line(word, f"log.jsonl:{at}") for at, word in enumerate(WORDS, 1)]
    work = Counting({str(lines[4]): [OSError("no room left")] * 3})
    with (
        BatchRunner(command="suffice check --batch log.jsonl") as batch,
        pytest.raises(EngineError) as caught,
    ):
        list(batch(Job("shouting", work), split_into_blocks(lines, 3)))
    assert str(caught.value) == "log.jsonl:4 to log.jsonl:6: failed 3 times: OSError: no room left"
    assert "run again: suffice check --batch log.jsonl (with --checkpoint DIR" in caught.value.hint
    assert caught.value.retryable


def test_an_error_that_a_retry_cannot_fix_is_raised_at_once() -> None:
    work = Counting({"five": [InputError("five is no word", hint="say 5")] * 3})
    with BatchRunner() as batch, pytest.raises(InputError, match="five is no word"):
        shouted(batch, work)
    assert work.requests.count("five") == 1


# ---- going on


def test_a_run_that_was_cut_short_goes_on_with_its_finished_blocks(tmp_path: Path) -> None:
    keep = tmp_path / "blocks"
    work = Counting({"eight": [OSError("gone")] * 3})
    with pytest.raises(EngineError, match="7 to 9"), BatchRunner(checkpoint=keep) as batch:
        shouted(batch, work)
    assert len(list(keep.iterdir())) == 2
    again = Counting()
    with BatchRunner(checkpoint=keep) as batch:
        assert shouted(batch, again) == [word.upper() for word in WORDS]
    assert again.requests == WORDS[6:], "the first two blocks are taken up, the others done"
    assert not keep.exists(), "a run that is through leaves nothing behind"


def test_a_changed_input_setting_or_job_never_meets_an_old_result(tmp_path: Path) -> None:
    def cut_short(words: Sequence[str], key: str, name: str = "shouting") -> list[str]:
        """What had to be done of the first two blocks before the run was cut short."""
        work = Counting({"nine": [OSError("gone")] * 3})
        with pytest.raises(EngineError), BatchRunner(checkpoint=tmp_path) as batch:
            list(batch(Job(name, work, key=key), split_into_blocks(words, 3)))
        return work.requests[: -3 * 3]

    assert cut_short(WORDS[:9], "loud") == WORDS[:6]
    assert cut_short(WORDS[:9], "loud") == []
    assert cut_short(["ONE", *WORDS[1:9]], "loud") == ["ONE", "two", "three"]
    assert cut_short(WORDS[:9], "louder") == WORDS[:6]
    assert cut_short(WORDS[:9], "loud", "whispering") == WORDS[:6]


def test_other_code_or_packages_never_meet_an_old_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from suffice.engines.batch import checkpoint

    work = Counting({"ten": [OSError("gone")] * 3})
    with pytest.raises(EngineError), BatchRunner(checkpoint=tmp_path) as batch:
        shouted(batch, work)
    monkeypatch.setattr(
        checkpoint, "environment_versions", lambda: {**environment_versions(), "numpy": "0.0.1"}
    )
    again = Counting()
    with BatchRunner(checkpoint=tmp_path) as batch:
        shouted(batch, again)
    assert again.requests == WORDS


def test_a_damaged_block_is_computed_again(tmp_path: Path) -> None:
    with pytest.raises(EngineError), BatchRunner(checkpoint=tmp_path) as batch:
        shouted(batch, Counting({"ten": [OSError("gone")] * 3}))
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes().replace(b"ONE", b"UNO"))
    again = Counting()
    with BatchRunner(checkpoint=tmp_path) as batch:
        assert shouted(batch, again)[0] == "ONE"
    assert again.requests == ["one", "two", "three", "ten"]


def test_arrays_are_kept_to_the_last_bit(tmp_path: Path) -> None:
    def thirds(block: Sequence[int], ready: object) -> Any:
        if 9 in block:
            raise KeyError("nine")
        return np.array(block, np.float32) / 3

    found: list[Any] = []
    for _ in range(2):
        with (
            pytest.raises(EngineError, match="KeyError"),
            BatchRunner(checkpoint=tmp_path) as batch,
        ):
            gather(
                (
                    one[None]
                    for one in batch(
                        Job("dividing", thirds, key="3"), split_into_blocks(range(10), 4)
                    )
                ),
                found,
            )
    assert [one.dtype for one in found] == [np.float32] * 4
    assert [one.tolist() for one in found[2:]] == [one.tolist() for one in found[:2]]


def test_a_job_without_a_key_is_not_kept(tmp_path: Path) -> None:
    with BatchRunner(checkpoint=tmp_path / "blocks") as batch:
        shouted(batch, Counting(), key="")
        assert not (tmp_path / "blocks").exists()


def test_what_is_prepared_is_prepared_once() -> None:
    prepared: list[str] = []

    def prepare(shared: str) -> str:
        prepared.append(shared)
        return shared * 2

    job = Job("adding", lambda block, ready: [f"{one} {ready}" for one in block], "la", prepare)
    with BatchRunner() as batch:
        assert (
            list(batch(job, [["a"], ["b"]]))
            == [["a lala"], ["b lala"]]
            == list(run_in_process(job, [["a"], ["b"]]))
        )
    assert prepared == ["la", "la"]


# ---- travelling


def test_errors_keep_their_hint_and_kind_on_their_way_through_processes() -> None:
    for error in (
        InputError("wrong", hint="right"),
        EngineError("down", hint="wait", retryable=True),
        MissingExtraError("dask", extra="dask"),
    ):
        other: SufficeError = copy.copy(error)
        assert (type(other), str(other), vars(other)) == (type(error), str(error), vars(error))


def test_an_encoder_travels_by_name_and_is_known_by_what_it_says() -> None:
    class Liar(WordLlamaEncoder):
        def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
            return -super().encode(texts, query=query)

    known = PortableEncoder.of("wordllama", WordLlamaEncoder())
    there = copy.copy(known)
    assert there.loaded is None
    assert isinstance(there.open(), WordLlamaEncoder)
    with pytest.raises(NotReadyError, match="gives other vectors here"):
        copy.copy(PortableEncoder.of("wordllama", Liar())).open()


def test_searchers_travel_with_their_store(tmp_path: Path) -> None:
    questions = ["Who taught Ada?", "Which city is the capital?"]
    store = MemoryStore(VILLAGE)
    home = RetrieverSet.over(["bm25"], store, None, "")
    expected = store.search_text(questions, k=3)
    there = copy.copy(home)
    assert [
        [hit.doc_id for hit in hits] for hits in next(search_in_blocks(there, "bm25", questions, 3))
    ] == [[hit.doc_id for hit in hits] for hits in expected]
    with EmbeddedStore(tmp_path / "store") as disk:
        disk.put(VILLAGE)
        opener = disk.elsewhere()
        assert isinstance(opener, partial)
        with opener() as other:
            assert other.generation == disk.generation
        disk.delete(["ada"])
        with pytest.raises(NotReadyError, match="at generation 2, expected 1"):
            opener()
    with pytest.raises(NotReadyError, match="there is no library at"):
        partial(opener.func, tmp_path / "nowhere", 1)()
    assert not (tmp_path / "nowhere").exists(), "looking for a store must not make one"


def test_a_gate_elsewhere_is_the_same_or_none(tmp_path: Path) -> None:
    import shutil

    from suffice.gate.gate import SHIPPED_MODELS

    shutil.copytree(SHIPPED_MODELS / "gate-fast", tmp_path / "gate")
    at = GateRef.named(str(tmp_path / "gate"))
    assert at.open().card["preset"] == "fast"
    (tmp_path / "gate" / "manifest.json").write_text(
        (tmp_path / "gate" / "manifest.json")
        .read_text(encoding="utf-8")
        .replace('"seed"', '"seed" '),
        encoding="utf-8",
    )
    with pytest.raises(NotReadyError, match="is not the one that was asked for"):
        at.open()
    shutil.rmtree(tmp_path / "gate")
    with pytest.raises(NotReadyError, match="there is no gate at"):
        at.open()


# ---- the commands

FAST = ("--preset", "fast", "--json")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 questions with two hits each: three blocks."""
    file = tmp_path_factory.mktemp("logs") / "log.jsonl"
    texts = [document.text for document in controlled_collection(documents=100).documents()]
    with file.open("w", encoding="utf-8") as stream:
        for at in range(600):
            record = {
                "question_id": f"q{at}",
                "question": f"What did number {at} say?",
                "hits": [texts[at % 90], texts[at % 7]],
            }
            stream.write(json.dumps(record) + "\n")
    return file


def test_a_log_with_a_bad_line_is_checked_up_to_it_and_resumes_when_fixed(
    log: Path, tmp_path: Path
) -> None:
    whole = suffice("check", "--batch", log, *FAST)
    assert whole.exit_code == 0, whole.output
    lines = log.read_text(encoding="utf-8").splitlines()
    broken = tmp_path / "log.jsonl"
    broken.write_text(
        "\n".join([*lines[:550], '{"question": 7}', *lines[551:]]) + "\n", encoding="utf-8"
    )
    stopped = suffice("check", "--batch", broken, *FAST, "--checkpoint", tmp_path / "blocks")
    assert stopped.exit_code == 2
    assert "log.jsonl:551: expected a 'question' text" in stopped.stderr
    assert stopped.stdout.splitlines()[:550] == whole.stdout.splitlines()[:550]
    assert len(list((tmp_path / "blocks").iterdir())) == 3
    broken.write_text("\n".join(lines) + "\n", encoding="utf-8")
    fixed = suffice("check", "--batch", broken, *FAST, "--checkpoint", tmp_path / "blocks")
    assert fixed.stdout == whole.stdout
    assert not (tmp_path / "blocks").exists()


def test_a_library_is_built_the_same_in_blocks_and_whole(tmp_path: Path) -> None:
    documents = list(controlled_collection(documents=300).documents())
    with Library.build(tmp_path / "whole", documents):
        pass
    with (
        BatchRunner(checkpoint=tmp_path / "blocks") as batch,
        Library.build(tmp_path / "blockwise", documents, run=batch),
    ):
        assert len(list((tmp_path / "blocks").iterdir())) == 4, (
            "two blocks of vectors, two of links"
        )
    for name in (
        "vectors-1.f16",
        "links-1/starts.npy",
        "links-1/targets.npy",
        "links-1/id_bytes.npy",
    ):
        assert (tmp_path / "whole" / name).read_bytes() == (
            tmp_path / "blockwise" / name
        ).read_bytes()


def test_without_dask_the_extra_is_named(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = suffice("check", "--batch", log, "--scheduler", "tcp://127.0.0.1:8786")
    assert result.exit_code == 2
    assert "hint: pip install 'suffice[dask]'" in result.stderr
