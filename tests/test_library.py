"""A library: parts that belong together, in a folder that says what it is."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.commands import suffice

from suffice import ask
from suffice.errors import EngineError, InputError, NotReadyError
from suffice.gate.gate import Gate
from suffice.library import Library
from suffice.testing import VILLAGE
from suffice.types import Condition, Document, Filter


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("libraries") / "village"
    Library.build(path, VILLAGE).close()
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A library without vectors: quick to make, free to change."""
    Library.build(tmp_path / "plain", VILLAGE, encoder=None).close()
    return tmp_path / "plain"


def test_a_library_finds_by_words_and_by_meaning(built: Path) -> None:
    with Library.open(built) as lib:
        assert len(lib) == len(VILLAGE)
        hits = lib.search("Who designed the engine?", k=2)
        assert hits[0].doc_id == "babbage"
        assert {part.name for part in hits[0].parts} == {"bm25", "dense"}
        assert lib.search("verse writer", retriever="dense", k=6)[0].doc_id == "byron"
        assert lib.get(["byron", "nobody"]) == [VILLAGE[2], None]


def test_a_retriever_takes_its_own_options(built: Path) -> None:
    with Library.open(built) as lib:
        assert lib.search("engine", retriever="bm25", k1=0.5, k=1)[0].doc_id == "babbage"
        with pytest.raises(InputError, match="bm25 has no option 'speed'") as caught:
            lib.search("engine", retriever="bm25", speed=9)
        assert "k1" in caught.value.hint


def test_documents_come_and_go(plain: Path) -> None:
    with Library.open(plain) as lib, Library.open(plain) as other:
        assert [hit.doc_id for hit in lib.search("poet", retriever="tfidf")] == ["byron"]
        assert other.add([Document("keats", "John Keats was a poet.", title="John Keats")]) == 1
        assert sorted(hit.doc_id for hit in lib.search("poet", retriever="tfidf")) == [
            "byron",
            "keats",
        ]
        assert other.delete(["byron", "nobody"]) == 1
        assert [hit.doc_id for hit in lib.search("poet", retriever="tfidf")] == ["keats"]
        assert [one.doc_id for one in lib.documents()][-1] == "keats"


def test_documents_come_in_any_usual_shape(plain: Path) -> None:
    with Library.open(plain) as lib:
        assert lib.add([{"id": "keats", "title": "John Keats", "text": "A poet.", "page": 3}]) == 1
        assert lib.get(["keats"]) == [Document("keats", "A poet.", "John Keats", extra={"page": 3})]
        lib.add(["Shelley, another poet."])
        texts = {hit.text for hit in lib.search("poet")}
        assert {"A poet.", "Shelley, another poet."} < texts
        with pytest.raises(InputError, match="document 2 is 7"):
            lib.add(["Clare, a poet.", 7])


def test_hits_of_a_search_have_their_texts_and_the_gate_reads_them(built: Path) -> None:
    gate, question = Gate.load(preset="fast"), "Who designed the engine?"
    with Library.open(built) as lib:
        hits = lib.search(question, k=3)
        documents = {one.doc_id: one for one in VILLAGE}
        assert [(hit.title, hit.text) for hit in hits] == [
            (documents[hit.doc_id].title, documents[hit.doc_id].text) for hit in hits
        ]
        assert gate.check(question, hits) == gate.check(question, hits, documents=documents)
        (quick,) = lib.search_batch([question], k=1, matched=False)
        assert quick[0].document == documents["babbage"]


def test_vectors_are_of_the_encoder_that_the_manifest_names(built: Path) -> None:
    manifest = json.loads((built / "manifest.json").read_text())
    assert (manifest["kind"], manifest["settings"]["encoder"], manifest["files"]) == (
        "library",
        "wordllama",
        {},
    )
    with pytest.raises(InputError, match="built with encoder 'wordllama', not None"):
        Library.build(built, [], encoder=None)


def test_without_vectors_words_are_searched_and_dense_says_what_to_do(plain: Path) -> None:
    with Library.open(plain) as lib:
        assert lib.search("engine", k=1)[0].doc_id == "babbage"
        with pytest.raises(NotReadyError, match="has no encoder") as caught:
            lib.search("engine", retriever="dense")
        assert "bm25" in caught.value.hint


def test_a_filter_is_a_filter_or_a_mapping(built: Path) -> None:
    verge = Filter((Condition("source", "$in", ("The Verge",)),))
    with Library.open(built) as lib:
        for given in (verge, {"source": {"$in": ["The Verge"]}}):
            strict = lib.search("engine", filter=given, strict=True, k=9, retriever="bm25")
            assert [hit.doc_id for hit in strict] == ["ada"]
        soft = lib.search("London river", filter=verge, k=9, retriever="bm25")
        assert soft, "a soft filter never empties the result"
        assert all(hit.relaxed for hit in soft)
        with pytest.raises(InputError) as caught:
            lib.search("engine", filter={"source": {"$in": ["The Vergge"]}})
        assert "The Verge" in str(caught.value) + caught.value.hint
        with pytest.raises(InputError, match="must be a mapping"):
            lib.search("engine", filter=[])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("k", 0, "k is 0"),
        ("depth", 0, "depth is 0, expected a whole number of at least 1"),
        ("depth", "ten", "depth is 'ten'"),
        ("budget", 5, "budget is 5, expected an ExpansionBudget"),
        ("ranker", "my-ranker", "ranker is 'my-ranker', expected a Ranker"),
        ("reranker", 3, "reranker is 3, expected a Reranker"),
        ("reranker", "raeder", "no reranker is named 'raeder'"),
        ("links", [], r"links is \[\], expected a NameLinks"),
    ],
)
def test_a_wrong_option_of_complete_is_named(
    built: Path, option: str, value: object, message: str
) -> None:
    with Library.open(built) as lib, pytest.raises(InputError, match=message):
        lib.complete("Who built the engine?", Gate.load(), **{option: value})  # type: ignore[arg-type]


NOTES = (
    Document("refund", "The refund window is 30 days. Billing handles refunds."),
    Document("billing", "Billing is the team led by Jo Ray."),
    Document("ray", "Jo Ray (born 1970) works from Oslo."),
    Document("kitchen", "The kitchen is cleaned by the night team on Fridays."),
    Document("garden", "The window of the garden house was replaced after 30 years."),
)


def test_the_reader_reads_the_hits_of_bridge_again(tmp_path: Path) -> None:
    question = "Where does the head of the team that handles refunds work?"
    with Library.build(tmp_path / "notes", NOTES) as lib:
        read = lib.search(question, k=3, retriever="bridge", reranker="reader")
        assert {hit.doc_id for hit in read} == {"refund", "billing", "ray"}
        assert all("rerank" in {part.name for part in hit.parts} for hit in read)
        bridge = lib.retriever("bridge", reranker="reader")
        assert bridge is lib.retriever("bridge", reranker="reader") is not lib.retriever("bridge")
        gate = Gate.load()
        completion = lib.complete(question, gate, reranker=gate.readers.reader)
        found = [hit.doc_id for hit in completion.hits]
        assert found == [hit.doc_id for hit in read][: len(found)], (
            "the gate only says when to stop"
        )


def test_links_say_who_mentions_whom_and_follow_the_documents(plain: Path) -> None:
    with Library.open(plain) as lib:
        assert any(plain.glob("links-*"))
        assert lib.links().out(["river"]) == [()]
        lib.add([Document("river", "The Thames, loved by Lord Byron.", title="Thames")])
        assert lib.links().out(["river"]) == [("byron",)]
        assert lib.links().into(["byron"]) == [("river",)]
        assert len(list(plain.glob("links-*"))) == 1


def test_damaged_links_are_found_again(plain: Path) -> None:
    (folder,) = plain.glob("links-*")
    (folder / "targets.npy").write_bytes(b"rubbish")
    with Library.open(plain) as lib:
        assert lib.links().ids == tuple(one.doc_id for one in VILLAGE)


def test_paths_that_are_no_library_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "photo.png").write_bytes(b"x")
    with pytest.raises(InputError, match="is a file"):
        Library.open(tmp_path / "file")
    with pytest.raises(InputError, match="is a file"):
        Library.build(tmp_path / "file", VILLAGE)
    with pytest.raises(InputError, match="other files"):
        Library.build(tmp_path / "full", VILLAGE)
    with pytest.raises(NotReadyError, match="not a library") as caught:
        Library.open(tmp_path / "nowhere")
    assert "suffice build" in caught.value.hint
    with pytest.raises(InputError, match="got a str") as refused:
        Library("library")  # type: ignore[arg-type]
    assert "Library.open('library')" in refused.value.hint


def test_strange_questions_have_answers(built: Path) -> None:
    with Library.open(built) as lib:
        assert lib.search("") == ()
        assert lib.search("engine " * 15_000, k=3) == lib.search("engine", k=3)
        assert lib.search("القاهرة", k=1)[0].doc_id == "arabic"
        assert len(lib.search("engine", k=10**9)) == len(VILLAGE)


def test_a_question_can_make_its_own_filter(built: Path) -> None:
    with Library.open(built) as lib:
        hits = lib.search("What did NHK say of the capital?", filter="auto", retriever="dense", k=6)
        assert {hit.doc_id for hit in hits if not hit.relaxed} == {
            "tokyo",
            "river",
        }  # nobody knows the river's source
        hits = lib.search(
            "What was written yesterday?",
            filter="auto",
            today=date(2023, 11, 2),
            retriever="dense",
            k=2,
        )
        assert "babbage" in [one.doc_id for one in hits]
        with pytest.raises(InputError, match="filter is 'autos'"):
            lib.search("engine", filter="autos")  # type: ignore[arg-type]


def test_today_is_a_date_and_nothing_else(built: Path) -> None:
    asked = "What was written yesterday?"
    with Library.open(built) as lib:
        by_day, by_time = (
            lib.search(asked, filter="auto", today=day, k=2)
            for day in (date(2023, 11, 2), datetime(2023, 11, 2, 12))
        )
        assert by_day == by_time
        wrong: Any = "2023-11-02"
        with pytest.raises(InputError, match="today is '2023-11-02', expected a date"):
            lib.search(asked, today=wrong)
        with pytest.raises(InputError, match="today is '2023-11-02', expected a date"):
            lib.filtered("auto", asked, today=wrong)


def test_without_wordllama_a_library_searches_by_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.library.find_spec", lambda name: None)
    with Library.build(tmp_path / "lib", VILLAGE) as library:
        assert library.encoder_name is None
        assert library.search("Ada", k=1)
    monkeypatch.undo()
    with Library.build(tmp_path / "lib", VILLAGE) as library:  # adds to it as it is
        assert library.encoder_name is None


# ---- a write that is cut off


@pytest.fixture
def single_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every document is stored by itself."""
    monkeypatch.setattr("suffice.engines.embedded.store.BATCH_CHARACTERS", 1)


def breaking(stored: int) -> Iterator[Document]:
    yield from (Document(f"new {at}", f"Text {at}.") for at in range(stored))
    raise KeyboardInterrupt


@pytest.mark.usefixtures("single_batches")
def test_documents_that_were_cut_off_are_missed_until_they_are_added(plain: Path) -> None:
    with Library.open(plain) as library:
        with pytest.raises(KeyboardInterrupt):
            library.add(breaking(2))
        (cut,) = library.unfinished
        assert (cut.source, cut.running) == ("", False)
        library.add([])  # adds nothing, and mends nothing
        library.update([], is_gone=lambda _: False)
    with pytest.warns(UserWarning, match="was cut off.* next: add the same documents again"):
        library = Library.open(plain)
    with library:
        assert len(library) == len(VILLAGE) + 2
        library.add([Document("new 2", "Text 2.")])
        assert library.unfinished == []


@pytest.mark.usefixtures("single_batches")
def test_a_killed_build_is_told_by_every_command_and_goes_on(tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "library"
    home.mkdir()
    for name in "abc":
        (home / f"{name}.txt").write_text(f"Text {name}.", encoding="utf-8")
    child = os.fork()
    if not child:
        with (
            Library.build(path, (), encoder=None) as library,
            library.writing(str(home), resume="suffice build home"),
        ):
            library.add([Document("home/a.txt#1", "Text a.")])
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    found = suffice("search", path, "Text", "--json")
    assert [hit["doc_id"] for hit in json.loads(found.stdout)["hits"]] == ["home/a.txt#1"]
    assert "was cut off: some are missing\nnext: suffice build home\n" in found.stderr
    again = suffice("build", home, "--out", path, "--json")
    assert "resuming; already stored: 1" in again.stderr
    assert json.loads(again.stdout)["library"]["documents"] == 3
    assert "cut off" not in suffice("search", path, "Text").stderr


def test_the_doctor_looks_at_a_library(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.cli.doctor.find_parts", list)
    assert f"{len(VILLAGE)} documents" in suffice("doctor", plain).stdout
    with Library.open(plain) as library, library.writing("notes", resume="suffice build notes"):
        found = suffice("doctor", plain, "--json")
        (part,) = json.loads(found.stdout)["parts"]
        assert (found.exit_code, part["get_it"]) == (1, "wait for its end")
        assert "documents of notes are being added since" in part["problem"]
    assert suffice("doctor", plain).exit_code == 0
    assert "suffice build FOLDER --out" in suffice("doctor", plain / "nowhere").stdout


def test_what_stored_nothing_or_is_of_another_source_changes_no_mark(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(library: Library, source: str, documents: list[Document], *, fail: bool) -> None:
        with library.writing(source):
            library.add(documents)
            if fail:
                raise KeyboardInterrupt

    one, two = [Document("one", "One.")], [Document("two", "Two.")]
    with Library.open(plain) as library:
        with pytest.raises(KeyboardInterrupt):
            write(library, "a", [], fail=True)
        assert library.unfinished == []
        with pytest.raises(KeyboardInterrupt):
            write(library, "a", one, fail=True)
        write(library, "b", two, fail=False)
        (plain / "unfinished-x.json").write_text('{"so', encoding="utf-8")  # killed too early
        assert [cut.source for cut in library.unfinished] == ["a"]
        write(library, "a", [], fail=False)
        assert library.unfinished == []
        assert list(plain.glob("unfinished-*")) == []

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("suffice.engines.unfinished.fsync_path", full)
        with pytest.raises(EngineError, match="No space left") as caught:
            library.add([Document("three", "Three.")])
        assert "space" in caught.value.hint
        assert list(plain.glob("unfinished-*")) == []


@pytest.mark.parametrize("text", ["Ada wrote.", "Ada Lovelace wrote notes on the engine."])
def test_a_library_that_names_nothing_can_be_searched_to_the_end(text: str, tmp_path: Path) -> None:
    gate = Gate.load()
    with Library.build(tmp_path / "library", [text]) as library:
        assert len(library.search("Who wrote?", retriever="bridge")) == 1
        assert library.complete("Who wrote?", gate).hits
        assert ask("Who wrote?", library, gate).steps


def test_documents_that_share_an_id_are_warned_of(tmp_path: Path) -> None:
    chunks = [{"id": "page", "text": text} for text in ("One.", "Two.", "Two.", "Three.")]
    with pytest.warns(UserWarning, match="2 documents replace another one .* 'page'"):
        library = Library.build(tmp_path / "library", chunks, encoder=None)
    assert len(library) == 1
    library.add([{"id": "page", "text": "Four."}])  # an update is none


@pytest.mark.parametrize("documents", [["Ada"], VILLAGE, iter(["Ada"]), {"text": "Ada"}])
def test_documents_in_place_of_the_path_are_answered_with_the_call(
    documents: Any, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"the documents and the path are swapped") as caught:
        Library.build(documents, tmp_path / "library")  # type: ignore[arg-type]
    assert "Library.build(PATH, documents)" in caught.value.hint


@pytest.mark.parametrize(
    ("call", "says", "hint"),
    [
        (lambda path: Library.open(3), "expected a path", "the folder of a library"),  # type: ignore[arg-type]
        (lambda path: Library.open(path).search("Who?", retriever=3), "expected a name", "bm25"),  # type: ignore[arg-type]
        (
            lambda path: Library.build(path / "new", ["Ada"], encoder=object()),  # type: ignore[arg-type]
            "the encoder is .* expected a name",
            "ENCODERS.add",
        ),
        (lambda path: Library.open(path).get("ada"), "list of ids", "write ['ada']"),
    ],
)
def test_what_is_of_another_type_is_answered_with_what_is_expected(
    plain: Path, call: Callable[[Path], object], says: str, hint: str
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        call(plain)
    assert hint in caught.value.hint
    assert not (plain / "new").exists()
