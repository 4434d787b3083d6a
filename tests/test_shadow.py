"""Shadow mode: guards and service log verdicts without acting, and the report says what would have
been held back.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
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
    search,
    shown,
)
from tests.commands import as_json, suffice

from suffice.answering.expand import ExpansionBudget
from suffice.errors import InputError
from suffice.evaluation.shadow_report import label_rows, summarize_log, write_labels
from suffice.evaluation.verdict_log import (
    LogContents,
    LoggedVerdict,
    Outcome,
    VerdictLog,
    guard_outcome,
    logged_verdict,
    read_verdict_log,
)
from suffice.gate.gate import Gate
from suffice.gate.gate_ref import gate_identity
from suffice.integrations import common
from suffice.integrations.common import Guard, HeldBackWarning, ShadowWarning, log_json, open_log
from suffice.types import Action, Estimate, Verdict


def passed(guard: Guard, search: Any) -> list[Any]:
    """The documents that pass, without marks."""
    return guard.passed(guard.check(QUESTION, search), lambda one, about: one, lambda *said: said)


@pytest.fixture(scope="module")
def gate() -> Gate:
    return familiar_gate()


def a_row(
    at: int = 0, action: Action = Action.ABSTAIN, p: float = 0.1, **more: Any
) -> LoggedVerdict:
    verdict = Verdict(Estimate(p, max(p - 0.1, 0.0), min(p + 0.1, 1.0)), action, ("Lang",))
    about: Any = {"outcome": guard_outcome(verdict), "acted": False, "by": "test", "gate": "g-1"}
    row = logged_verdict(f"Who was number {at}?", shown(FILM), verdict, **about)
    return replace(row, time=f"2026-01-{1 + at // 60:02d}T10:{at % 60:02d}:00.000Z", **more)


def a_log(*rows: LoggedVerdict) -> LogContents:
    return LogContents(rows)


# ---- the log


def test_a_row_comes_back_and_texts_stay_out_unless_asked_for(gate: Gate, tmp_path: Path) -> None:
    verdict = gate.check(QUESTION, shown(FILM, WRONG))
    about: Any = {"acted": False, "by": "test", "gate": gate_identity(gate)}
    row = logged_verdict(QUESTION, shown(FILM, WRONG), verdict, outcome=Outcome.HOLD_BACK, **about)
    VerdictLog(tmp_path / "with", texts=True).write(row)
    VerdictLog(tmp_path / "deep" / "without").write(row)
    assert read_verdict_log(tmp_path / "with").rows == (row,)
    text = (tmp_path / "deep" / "without").read_text(encoding="utf-8")
    assert FILM[1] not in text
    assert FILM[0] not in text
    (without,) = read_verdict_log(tmp_path / "deep" / "without").rows
    assert [hit.id for hit in without.hits] == [hit.id for hit in row.hits]
    assert len({hit.id for hit in row.hits}) == 2
    assert (without.missing, without.p_complete) == (("Fritz Lang",), verdict.p_complete)
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / "with").stat().st_mode) == 0o600


def write_many(path: Path, who: int) -> None:
    log = VerdictLog(path, max_bytes=40_000)
    for at in range(40):
        log.write(replace(a_row(at), question=f"{who} {at} " + "x" * 300))


def test_processes_and_threads_share_a_log_that_stays_bounded(tmp_path: Path) -> None:
    path = tmp_path / "shared.jsonl"
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=write_many, args=(path, who)) for who in range(2)]
    for one in others:
        one.start()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write_many, [path] * 2, [2, 3]))
    for one in others:
        one.join()
    contents = read_verdict_log(path)
    assert (contents.unreadable, contents.cut_off) == (0, False)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["shared.jsonl", "shared.jsonl.1"]
    assert path.stat().st_size < 45_000
    assert 40 < len(contents.rows) < 160  # the oldest are gone


def test_a_half_written_line_is_left_out_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = VerdictLog(path)
    log.write(a_row(1))
    with path.open("a", encoding="utf-8") as stream:
        stream.write('{"version": 1, "time": "2026-')
    contents = read_verdict_log(path)
    assert (len(contents.rows), contents.unreadable, contents.cut_off) == (1, 0, True)
    log.write(a_row(2))
    contents = read_verdict_log(path)
    assert (len(contents.rows), contents.unreadable, contents.cut_off) == (2, 1, False)
    assert "log.jsonl:2" in contents.first_unreadable


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("p_complete", float("nan")),
        ("p_complete", 3),
        ("action", "perhaps"),
        ("hits", [3]),
        ("missing", [None]),
        ("time", "yesterday"),
        ("version", 9),
        ("more", 1),
    ],
)
def test_a_row_that_is_none_is_counted(tmp_path: Path, field: str, value: Any) -> None:
    path = tmp_path / "log.jsonl"
    VerdictLog(path).write(a_row(1))
    record = json.loads(path.read_text(encoding="utf-8"))
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({**record, field: value}) + "\n")
    assert read_verdict_log(path).unreadable == 1


def test_a_file_without_a_verdict_says_what_writes_one(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text('{"question": "?"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="no verdict") as refused:
        read_verdict_log(path)
    assert "--shadow" in refused.value.hint


def test_texts_that_no_file_could_hold_are_logged(tmp_path: Path) -> None:
    log = VerdictLog(tmp_path / "log", texts=True)
    log.write(replace(a_row(), question="half a pair \ud800 and é"))
    (row,) = read_verdict_log(tmp_path / "log").rows
    assert row.question.startswith("half a pair")
    write_labels([row], tmp_path / "labels")
    assert json.loads((tmp_path / "labels").read_text(encoding="utf-8"))["complete"] is None


# ---- guards


def test_without_acting_the_documents_pass_as_they_were(gate: Gate, tmp_path: Path) -> None:
    log = VerdictLog(tmp_path / "log")
    asked: list[str] = []

    def listening(queries: Any) -> list[list[Shown]]:
        asked.extend(queries)
        return search(queries)

    guard = Guard(gate, "test", ExpansionBudget(), act=False, log=log)
    assert passed(guard, listening) == shown(FILM, WRONG)
    assert asked == [QUESTION]  # nothing more is searched
    strict = Guard(gate, "test", act=False, log=log)
    strict.check(QUESTION, search)
    strict.check(QUESTION, lambda queries: [shown(FILM, DIRECTOR)])
    rows = read_verdict_log(tmp_path / "log").rows
    assert [row.outcome for row in rows] == [Outcome.SEARCH, Outcome.HOLD_BACK, Outcome.PASS]
    assert not any(row.acted for row in rows)
    assert {row.gate for row in rows} == {gate_identity(gate)}


def test_what_is_unfamiliar_would_pass(tmp_path: Path) -> None:
    guard = Guard(Gate.load(preset="fast"), "test", act=False, log=VerdictLog(tmp_path / "log"))
    german = "Wo wurde der Regisseur des Films Metropolis geboren?"
    guard.check(german, lambda queries: [shown(FILM, WRONG) for _ in queries])
    (row,) = read_verdict_log(tmp_path / "log").rows
    assert (row.action, row.outcome) == (Action.ABSTAIN, Outcome.PASS)
    assert row.familiarity < 0.1


@pytest.mark.parametrize("place", ["folder", "/dev/full", "file/below"])
def test_a_log_that_cannot_be_written_warns_once(
    gate: Gate, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place.startswith("/") and not Path(place).exists():
        pytest.skip("no /dev/full")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setattr(common, "_warned", [])
    guard = Guard(gate, "test", act=False, log=VerdictLog(tmp_path / place))
    with pytest.warns(ShadowWarning, match="could not write") as warned:
        found = [passed(guard, search) for _ in range(3)]
    assert found == [shown(FILM, WRONG)] * 3
    assert len(warned) == 1


def test_a_gate_that_fails_stops_no_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def check_batch(self, pairs: Any, **_: Any) -> list[Verdict]:
            raise MemoryError("no memory")

    monkeypatch.setattr(common, "_warned", [])
    guard = Guard(Broken(), "test", act=False, log=VerdictLog(tmp_path / "log"))
    with pytest.warns(ShadowWarning, match="no memory"):
        assert passed(guard, search) == shown(FILM, WRONG)
    assert not (tmp_path / "log").exists()
    with pytest.raises(MemoryError):
        Guard(Broken(), "test").check(QUESTION, search)


def test_the_first_time_something_is_held_back_a_warning_says_so(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "_warned", [])
    guard = Guard(gate, "test", on_incomplete="empty")
    message = r"held back 2 documents.*Fritz Lang.*act=False"
    with pytest.warns(HeldBackWarning, match=message) as warned:
        found = [passed(guard, search) for _ in range(3)]
    assert found == [[]] * 3
    assert len(warned) == 1
    monkeypatch.setattr(common, "_warned", [])
    assert passed(guard, lambda queries: [[]]) == []  # nothing to hold back


def test_a_log_is_a_path_a_record_or_nothing(tmp_path: Path) -> None:
    whole = VerdictLog(str(tmp_path / "log"), texts=True, max_bytes=10)
    for given in (whole, log_json(whole)):
        assert open_log(given, act=False) == whole
    assert open_log("log", act=True) == VerdictLog("log")
    assert log_json(None) is open_log(None, act=True) is None
    for wrong in (3, {"file": "x"}):
        with pytest.raises(InputError, match="log"):
            open_log(wrong, act=True)
    with pytest.raises(InputError, match="no log") as refused:
        open_log(None, act=False)
    assert "suffice report --shadow" in refused.value.hint


def test_langchain_in_shadow_mode(gate: Gate, tmp_path: Path) -> None:
    pytest.importorskip("langchain_core", reason="pip install 'suffice[langchain]'")
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableLambda

    from suffice.integrations.langchain import GatedRetriever

    documents = [
        Document(page_content=text, metadata={"title": title}) for title, text in (FILM, WRONG)
    ]
    one = GatedRetriever(
        retriever=RunnableLambda(lambda query: documents),
        gate=gate,
        act=False,
        log=tmp_path / "log",
    )
    passed = one.invoke(QUESTION)
    assert all(after is before for after, before in zip(passed, documents, strict=True))
    assert asyncio.run(one.ainvoke(QUESTION)) == documents
    assert one.with_verdict().invoke(QUESTION)["verdict"].action is Action.ABSTAIN
    rows = read_verdict_log(tmp_path / "log").rows
    assert [(row.by, row.outcome) for row in rows] == [("langchain", Outcome.HOLD_BACK)] * 3
    with pytest.raises(ValueError, match=r"no log: add log='shadow.jsonl'"):  # pydantic's
        GatedRetriever(retriever=RunnableLambda(lambda query: []), gate=gate, act=False)


def test_llama_index_in_shadow_mode(gate: Gate, tmp_path: Path) -> None:
    pytest.importorskip("llama_index.core", reason="pip install 'suffice[llama-index]'")
    from llama_index.core.schema import NodeWithScore, TextNode

    from suffice.integrations.llama_index import CompletenessGate

    nodes = [
        NodeWithScore(node=TextNode(text=text, metadata={"title": title}), score=0.5)
        for title, text in (FILM, WRONG)
    ]
    one = CompletenessGate(gate=gate, act=False, log=VerdictLog(tmp_path / "log", texts=True))
    passed = one.postprocess_nodes(nodes, query_str=QUESTION)
    assert all(after is before for after, before in zip(passed, nodes, strict=True))
    assert "suffice" not in nodes[0].node.metadata
    (row,) = read_verdict_log(tmp_path / "log").rows
    assert (row.by, row.hits[0].id) == ("llama-index", nodes[0].node.node_id)
    assert (row.hits[0].score, row.hits[0].text) == (0.5, FILM[1])
    gate.save(tmp_path / "gate")
    saved = CompletenessGate(gate=tmp_path / "gate", act=False, log=VerdictLog("log", texts=True))
    assert saved.model_dump()["log"]["texts"] is True


def test_haystack_in_shadow_mode(gate: Gate, tmp_path: Path) -> None:
    pytest.importorskip("haystack", reason="pip install 'suffice[haystack]'")
    from haystack import Document

    from suffice.integrations.haystack import CompletenessGate

    documents = [Document(content=text, meta={"title": title}) for title, text in (FILM, WRONG)]
    log = VerdictLog(str(tmp_path / "log"))
    one = CompletenessGate(gate, act=False, log=log)
    sent = one.run(query=QUESTION, documents=documents)
    assert (set(sent), sent["answer"]) == ({"answer", "verdict"}, documents)
    assert sent["verdict"]["action"] == "abstain"
    assert asyncio.run(one.run_async(query=QUESTION, documents=documents))["answer"] == documents
    rows = read_verdict_log(tmp_path / "log").rows
    assert [(row.by, row.outcome) for row in rows] == [("haystack", Outcome.HOLD_BACK)] * 2
    again = CompletenessGate.from_dict(CompletenessGate(act=False, log=log).to_dict())
    assert (again.act, open_log(again.log, act=False)) == (False, log)


# ---- the service


def test_the_service_logs_what_it_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")
    from tests.service import CHECK, LINES, running_app

    from suffice.service import batching
    from suffice.service.settings import Settings

    log = tmp_path / "shadow.jsonl"
    with running_app(Settings(preset="fast", shadow=str(log))) as client:
        said = client.post("/v1/check", json=CHECK).json()["data"]
        client.post("/v1/check", json={"question": "?", "hits": [{"nothing": 1}]})
        lines = "\n".join([json.dumps(CHECK), "not JSON"])
        client.post("/v1/check/batch", content=lines, headers=LINES)
    rows = read_verdict_log(log).rows
    assert [row.question for row in rows] == [CHECK["question"]] * 2
    assert [hit.id for hit in rows[0].hits] == ["navigator"]
    assert rows[0].p_complete == said["p_complete"]
    assert (rows[0].by, rows[0].hits[0].text, rows[0].acted) == ("serve", None, False)
    with running_app(Settings(preset="fast", shadow=str(tmp_path))) as client:
        warned: list[
            str
        ] = []  # not by caplog: another service of this process may have set up logs
        monkeypatch.setattr(batching.log, "warning", lambda text, **_: warned.append(text))
        for _ in range(2):
            assert client.post("/v1/check", json=CHECK).status_code == 200
    assert warned == ["verdicts are not logged"]


# ---- the report


def many_rows(count: int) -> list[LoggedVerdict]:
    rows = []
    for at in range(count):
        share = at / count
        action = Action.ANSWER if share < 0.5 else (Action.EXPAND, Action.ABSTAIN)[at % 2]
        rows.append(a_row(at, action, 1 - share))
    return rows


def test_the_summary_counts_and_sees_what_changed_over_time() -> None:
    summary = summarize_log(a_log(*many_rows(120)))
    assert (summary.questions, summary.held_back, summary.acted) == (120, 60, 0)
    assert summary.actions == {"answer": 60, "expand": 30, "abstain": 30}
    assert sum(bar["questions"] for bar in summary.histogram) == 120
    assert len(summary.periods) == 4
    assert "answer: 100% in the first half, 0% in the second" in summary.drift[0]
    assert "60 (50%) would have been held back." in summary.sentences()
    assert summary.missing == {"Lang": 120}
    doubtful = (summary.examples or {})["answer"]["most_doubtful"]
    assert doubtful[0].p_complete == pytest.approx(0.5, abs=0.02)
    steady = summarize_log(a_log(*(a_row(at) for at in range(120))))
    assert "do not differ" in steady.drift[0]
    one = summarize_log(a_log(a_row(0, familiarity=0.01, outcome=Outcome.PASS)))
    assert (one.periods, one.drift, one.passed_unfamiliar) == ((), (), 1)


def test_labels_are_uncertain_unlike_one_another_and_spread() -> None:
    rows = [a_row(at, p=0.5) for at in range(30)] + [a_row(at, p=0.99) for at in range(30, 60)]
    rows += [replace(a_row(p=0.45), question="Which bridge did the clerk's sister paint?")] * 3
    chosen = label_rows(rows, 10)
    assert len({row.question for row in chosen}) == 10
    assert "bridge" in chosen[1].question
    assert 1 <= sum(row.p_complete > 0.9 for row in chosen) <= 2
    assert len(label_rows(rows, 500)) == 61
    assert len(label_rows(rows[:1], 7)) == 1


def test_the_command_reports_and_writes_labels(tmp_path: Path) -> None:
    path, labels = tmp_path / "log.jsonl", tmp_path / "labels.jsonl"
    log = VerdictLog(path, texts=True)
    for row in many_rows(70):
        log.write(replace(row, question=f"<b>{row.question}</b> \x1b[31m"))
    said = suffice("report", "--shadow", path)
    assert said.exit_code == 0
    assert "35 (50%) would have been held back" in said.stdout
    assert "\x1b" not in said.stdout
    assert len(said.stdout.splitlines()) < 45
    assert "suffice adapt labels.jsonl" in said.stderr
    record = as_json(suffice("report", "--shadow", path, "--labels", labels, "--json"))
    assert (record["held_back"], record["labelled"], len(record["periods"])) == (35, 50, 2)
    rows = [json.loads(line) for line in labels.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 50
    assert set(rows[0]) == {"question", "hits", "complete"}
    assert set(rows[0]["hits"][0]) == {"id", "title", "text", "score"}
    again = suffice("report", "--shadow", path, "--labels", labels)
    assert (again.exit_code, "exists" in again.stderr) == (2, True)
    for wrong in ((), ("run.json", "--shadow", path), ("run.json", "--labels", labels)):
        assert suffice("report", *wrong).exit_code == 2


def test_the_page_has_plots_and_escapes_everything(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pip install 'suffice[report]'")
    path, page = tmp_path / "log.jsonl", tmp_path / "report.html"
    for row in many_rows(62):
        VerdictLog(path).write(replace(row, question="<script>alert(1)</script>" + row.question))
    assert suffice("report", "--shadow", path, "--out", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 2
    assert "<script>" not in text
    assert "suffice adapt labels.jsonl" in text
