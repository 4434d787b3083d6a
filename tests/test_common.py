"""The shared guard of the framework adapters, on plain dicts: no framework is needed here."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.bridge_question import (
    DIRECTOR,
    FILM,
    QUESTION,
    WRONG,
    Shown,
    familiar_gate,
    found,
    search,
    shown,
)

from suffice.answering.expand import ExpansionBudget
from suffice.errors import InputError, SufficeError
from suffice.gate.gate import Gate
from suffice.integrations.common import (
    GatedDocuments,
    Guard,
    gate_path,
    load_gate,
    search_and_check,
    search_and_check_async,
)
from suffice.types import Action


@pytest.fixture(scope="module")
def gate() -> Gate:
    return familiar_gate()


def always(*hits: Shown) -> Callable[[Sequence[str]], list[list[Shown]]]:
    """A search that finds these whatever is asked."""
    return lambda queries: [list(hits)] * len(queries)


def titles(checked: GatedDocuments[Shown]) -> list[str]:
    return [one["title"] for one in checked.documents]


def test_documents_that_are_not_enough_do_not_pass(gate: Gate) -> None:
    check_result = search_and_check(QUESTION, search, gate)
    assert check_result.verdict.action is not Action.ANSWER
    assert check_result.verdict.missing == ("Fritz Lang",)
    assert titles(check_result) == [FILM[0], WRONG[0]]
    whole = search_and_check(QUESTION, always(*shown(FILM, DIRECTOR)), gate)
    assert whole.documents == shown(FILM, DIRECTOR)


def test_with_a_budget_the_missing_document_replaces_the_wrong_one(
    gate: Gate,
) -> None:
    searched: list[str] = []

    def listening(queries: Sequence[str]) -> list[list[Shown]]:
        searched.extend(queries)
        return search(queries)

    whole = search_and_check(QUESTION, listening, gate, budget=ExpansionBudget())
    assert whole.verdict.action is Action.ANSWER
    assert titles(whole) == [FILM[0], DIRECTOR[0]]
    assert searched[0] == QUESTION
    assert len(searched) == len(set(searched))  # nothing is asked twice


def test_what_cannot_be_completed_ends_in_an_abstention(gate: Gate) -> None:
    ended = search_and_check(QUESTION, always(*shown(FILM, WRONG)), gate, budget=ExpansionBudget())
    assert ended.verdict.action is Action.ABSTAIN


def test_where_looking_further_brings_nothing_the_retrievers_own_list_comes_back(
    gate: Gate,
) -> None:
    many = shown(WRONG, FILM, ("Lang", "Lang is a surname."))
    for some in (many, many[::-1]):
        ended = search_and_check(QUESTION, always(*some), gate, budget=ExpansionBudget(rounds=1))
        alone = search_and_check(QUESTION, always(*some), gate)
        assert ended.verdict.action is Action.ABSTAIN
        assert ended.verdict.p_complete >= alone.verdict.p_complete


def test_texts_that_no_file_could_hold_are_texts(gate: Gate) -> None:
    odd = [
        {"title": "\ud800", "text": "half a pair \udfff"},
        {"text": "\x00"},
        {"text": ""},
        {"text": "🎬" * 10_000},
    ]
    assert (
        search_and_check(QUESTION, always(*odd), gate, budget=ExpansionBudget()).verdict.action
        is Action.ABSTAIN
    )


@pytest.mark.parametrize("nothing", [[], None, ()])
def test_no_documents_are_a_verdict_like_any_other(gate: Gate, nothing: Any) -> None:
    for budget in (None, ExpansionBudget()):
        empty = search_and_check(
            QUESTION, lambda queries: [nothing] * len(queries), gate, budget=budget
        )
        assert empty.documents == []
        assert empty.verdict.action is not Action.ANSWER
        assert empty.verdict.p_complete < 0.01


def test_chunks_that_share_an_id_stay_apart_and_copies_are_one(gate: Gate) -> None:
    def chunks(queries: Sequence[str]) -> list[list[Shown]]:
        return [
            [{"id": "file.pdf", **one} for one in shown(*found(query) * 2)] for query in queries
        ]

    whole = search_and_check(QUESTION, chunks, gate, budget=ExpansionBudget())
    assert titles(whole) == [FILM[0], DIRECTOR[0]]


def test_an_event_loop_gets_the_same_and_stays_free(gate: Gate) -> None:
    async def story() -> tuple[GatedDocuments[Shown], int]:
        turns = 0

        async def tick() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.001)

        async def slow(queries: Sequence[str]) -> list[list[Shown]]:
            await asyncio.sleep(0.01)
            return search(queries)

        clock = asyncio.create_task(tick())
        whole = await search_and_check_async(QUESTION, slow, gate, budget=ExpansionBudget())
        clock.cancel()
        return whole, turns

    whole, turns = asyncio.run(story())
    assert whole == search_and_check(QUESTION, search, gate, budget=ExpansionBudget())
    assert turns > 3


def test_an_error_of_the_search_reaches_the_caller(gate: Gate) -> None:
    async def broken(queries: Sequence[str]) -> list[list[Shown]]:
        raise ConnectionError("the index is away")

    with pytest.raises(ConnectionError, match="away"):
        asyncio.run(search_and_check_async(QUESTION, broken, gate))


def test_who_stops_waiting_is_free_at_once(gate: Gate) -> None:
    async def endless(queries: Sequence[str]) -> list[list[Shown]]:
        await asyncio.sleep(3600)
        return search(queries)

    async def impatient() -> None:
        await asyncio.wait_for(
            search_and_check_async(QUESTION, endless, gate, budget=ExpansionBudget()), timeout=0.05
        )

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())


def test_a_gate_comes_as_itself_by_its_path_or_is_the_one_that_ships(
    gate: Gate, tmp_path: Path
) -> None:
    assert load_gate(gate) is gate
    gate.save(tmp_path / "saved")
    for given in (tmp_path / "saved", str(tmp_path / "saved")):
        again = search_and_check(QUESTION, search, load_gate(given))
        assert (
            again.verdict.p_complete == search_and_check(QUESTION, search, gate).verdict.p_complete
        )
    shipped = load_gate(None)
    assert isinstance(shipped, Gate)
    assert shipped.card == Gate.load().card
    with pytest.raises(InputError, match="the gate is of type int"):
        load_gate(3)  # type: ignore[arg-type]
    with pytest.raises(SufficeError, match="nowhere"):
        load_gate(tmp_path / "nowhere")


def test_only_a_gate_with_an_address_can_be_written_down(gate: Gate, tmp_path: Path) -> None:
    assert gate_path(None) is None
    assert gate_path(tmp_path) == str(tmp_path)
    with pytest.raises(InputError, match="in memory") as refused:
        gate_path(gate)
    assert "gate.save" in refused.value.hint


def test_suffice_and_its_gate_import_no_framework() -> None:
    frameworks = (
        "langchain_core",
        "llama_index",
        "haystack",
        "mcp",
        "opentelemetry",
        "dspy",
        "ragas",
        "deepeval",
        "ir_measures",
    )
    code = (
        "import sys, suffice; suffice.Gate; suffice.Library; import suffice.integrations.common\n"
        f"print([one for one in {frameworks} if one in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("act", "no"),
        ("on_incomplete", "no"),
        ("budget", 3),
        ("min_familiarity", 2),
        ("min_familiarity", -0.1),
        ("min_familiarity", float("nan")),
        ("min_familiarity", "0.1"),
        ("min_familiarity", True),
    ],
)
def test_a_guard_refuses_options_that_would_never_or_always_hold(
    gate: Gate, option: str, value: Any
) -> None:
    with pytest.raises(InputError, match=option) as caught:
        Guard(gate, "test", **{option: value})
    assert caught.value.hint
