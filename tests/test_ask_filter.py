"""`ask` under a metadata filter: nothing else is searched, followed, read, quoted or cited."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.commands import suffice
from tests.small_world import BRIDGE, FILMS, Says, TinyLibrary, Wants

from suffice.answering.ask import ask
from suffice.answering.traces import replay, trace_to_json
from suffice.errors import InputError
from suffice.library import Library
from suffice.types import Action, Document, Trace

# The Tabloid is what every search would find first, and what the Chronicle's pages link to.
RUMOURS = [
    Document(
        "rumour",
        "When did Lothair II's mother die? Ermengarde of Tours did die at Waldrada's hand.",
        "Ermengarde of Tours",
        source="Tabloid",
        published_at=date(2023, 10, 7),
    ),
    Document(
        "gossip",
        "When did Lothair II's mother die? The mother of Lothair II was Waldrada.",
        "Lothair II",
        source="Tabloid",
        published_at=date(2023, 10, 8),
    ),
]
CHRONICLE = {"source": "Chronicle"}
FORBIDDEN = {"rumour", "gossip"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    chronicle = [replace(one, source="Chronicle") for one in FILMS]
    path = tmp_path_factory.mktemp("ask") / "archive"
    with Library.build(path, [*RUMOURS, *chronicle]) as lib:
        yield lib


def held_ids(trace: Trace) -> set[str]:
    cited = {one.doc_id for one in trace.citations}
    return cited | {hit.doc_id for step in trace.steps for hit in step.hits}


@pytest.mark.parametrize("content", [True, False])  # a gate that is not content searches on
@pytest.mark.parametrize("with_model", [True, False])
def test_nothing_outside_the_filter_is_read_or_cited(
    library: Library, with_model: bool, content: bool
) -> None:
    gate = Wants("lothair", "ermengarde") if content else Wants("rumour", "gossip")
    model = Says({"Split the question": {"steps": [BRIDGE]}}) if with_model else None
    assert held_ids(ask(BRIDGE, library, gate, model)) & FORBIDDEN  # without a filter it is found
    if model:
        assert "Waldrada" in "".join(model.shown)
        model.shown.clear()
    trace = ask(BRIDGE, library, gate, model, filter=CHRONICLE)
    assert held_ids(trace) >= {"lothair"}
    assert not held_ids(trace) & FORBIDDEN
    assert "Waldrada" not in trace_to_json(trace) + "".join(model.shown if model else [])


def test_the_answer_is_that_of_the_filtered_documents(library: Library) -> None:
    trace = ask(BRIDGE, library, Wants("lothair", "ermengarde"), filter=CHRONICLE)
    assert trace.answer == "20 March 851"
    assert "filter: source is Chronicle" in trace.notes
    again = replay(trace, library, Wants("lothair", "ermengarde"))
    assert trace_to_json(again) == trace_to_json(trace)


def test_a_filter_that_nothing_passes_says_so(library: Library) -> None:
    nothing = {"source": "Chronicle", "published_at": {"$gte": "2023-10-01"}}
    trace = ask(BRIDGE, library, Wants("lothair"), filter=nothing)
    assert (trace.action, trace.answer, trace.citations) == (Action.ABSTAIN, None, ())
    assert trace.missing[0] == (
        "documents that pass the filter: source is Chronicle, and published_at from 2023-10-01"
    )
    with pytest.raises(InputError, match="no source is named 'Chronical'"):
        ask(BRIDGE, library, Wants("lothair"), filter={"source": "Chronical"})


def test_what_the_question_names_is_a_guess_unless_strict(library: Library) -> None:
    question = "What does the Tabloid say of when Lothair II's mother died?"
    soft = ask(question, library, Wants("ermengarde"), filter="auto")
    hard = ask(question, library, Wants("ermengarde"), filter="auto", strict=True)
    assert "ermengarde" in held_ids(soft)
    assert held_ids(hard) == FORBIDDEN
    for trace in (soft, hard):
        assert "filter: source is Tabloid" in trace.notes
        assert trace_to_json(replay(trace, library, Wants("ermengarde"))) == trace_to_json(trace)
    unnamed = ask(BRIDGE, library, Wants("ermengarde"), filter="auto")
    assert "filter: none, the question names no known source or date" in unnamed.notes
    assert replay(unnamed, library, Wants("ermengarde")) == unnamed


def test_a_library_of_another_kind_is_not_silently_unfiltered() -> None:
    with pytest.raises(InputError, match="TinyLibrary cannot be filtered"):
        ask(BRIDGE, TinyLibrary(), Wants("lothair"), filter=CHRONICLE)


def test_the_command_filters_and_refuses_what_it_cannot(library: Library, tmp_path: Path) -> None:
    words = ("ask", library.path, BRIDGE, "--json")
    trace = json.loads(suffice(*words, "--filter", json.dumps(CHRONICLE)).stdout)
    assert trace["settings"]["strict"] is True
    assert {hit["doc_id"] for step in trace["steps"] for hit in step["hits"]} >= {"ermengarde"}
    assert "rumour" not in {hit["doc_id"] for step in trace["steps"] for hit in step["hits"]}
    assert "not valid JSON" in suffice(*words, "--filter", "{").stderr
    file = tmp_path / "trace.jsonl"
    refused = suffice("ask", library.path, "--replay", file, "--filter", "auto")
    assert "--filter does not go with --replay" in refused.stderr
