"""The routes of the service: each returns one envelope, with the same result as the library."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")

from starlette.testclient import TestClient
from starlette.types import Message
from tests.service import (
    CHECK,
    LINES,
    build_film_library,
    events_of,
    exchange,
    lines_of,
    running_app,
    service_of,
)
from tests.small_world import BRIDGE, COMPARISON

from suffice.gate.gate import Gate
from suffice.service.keys import ApiKeys
from suffice.service.settings import Settings


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with running_app(
        Settings(library=build_film_library(tmp_path_factory.mktemp("service") / "cinema"))
    ) as one:
        yield one


# ---- checks


def test_a_check_says_what_the_gate_says(client: TestClient) -> None:
    response = client.post("/v1/check", json=CHECK)
    assert response.status_code == 200
    result = response.json()
    assert (result["ok"], result["error"]) == (True, None)
    assert result["request_id"] == response.headers["x-request-id"]
    expected = Gate.load().check(CHECK["question"], CHECK["hits"]).as_json()
    assert result["data"]["p_complete"] == pytest.approx(expected["p_complete"])
    assert result["data"]["missing"] == ["Metropolis"]
    assert result["data"]["action"] == expected["action"]
    assert [one["text"] for one in result["data"]["quotes"]] == [
        one["text"] for one in expected["quotes"]
    ]


def test_a_check_may_be_short(client: TestClient) -> None:
    result = client.post("/v1/check", json={**CHECK, "explain": False}).json()["data"]
    assert (result["reasons"], result["missing"], result["next_queries"]) == ([], [], [])
    assert result["quotes"] == []


def test_hits_of_the_library_need_only_their_ids(client: TestClient) -> None:
    named = client.post(
        "/v1/check",
        json={"question": BRIDGE, "hits": [{"doc_id": "lothair"}, {"doc_id": "ermengarde"}]},
    )
    nobody = client.post(
        "/v1/check", json={"question": BRIDGE, "hits": [{"doc_id": "who"}, {"doc_id": "what"}]}
    )
    assert named.json()["data"]["p_complete"] > 2 * nobody.json()["data"]["p_complete"]
    note = "The library has no document 'who' and 1 more: checked without text."
    assert nobody.json()["data"]["notes"][0] == note
    assert note not in named.json()["data"]["notes"]
    line = json.dumps(
        {"question": BRIDGE, "hits": [{"doc_id": "lothair"}, {"doc_id": "ermengarde"}]}
    )
    (result,) = lines_of(client.post("/v1/check/batch", content=line, headers=LINES).text)
    assert result["data"]["p_complete"] == pytest.approx(named.json()["data"]["p_complete"])
    line = json.dumps({"question": BRIDGE, "hits": [{"doc_id": "who"}, {"doc_id": "lothair"}]})
    (result,) = lines_of(client.post("/v1/check/batch", content=line, headers=LINES).text)
    assert result["data"]["notes"][0] == note.replace(" and 1 more", "")


def test_checks_that_come_together_get_their_own_verdicts(client: TestClient) -> None:
    import concurrent.futures

    questions = [
        f"Which film came out first, The Navigator or Metropolis {number}?" for number in range(24)
    ]
    with concurrent.futures.ThreadPoolExecutor(12) as clients:
        response = list(
            clients.map(
                lambda one: client.post("/v1/check", json={**CHECK, "question": one}).json(),
                questions,
            )
        )
    assert [one["data"]["missing"][0] for one in response] == [
        f"Metropolis {number}" for number in range(24)
    ]


def test_a_hit_that_cannot_be_read_fails_alone(client: TestClient) -> None:
    import concurrent.futures

    bodies = [
        {**CHECK, "hits": [{"colour": "red"}]} if number % 3 == 0 else CHECK for number in range(12)
    ]
    with concurrent.futures.ThreadPoolExecutor(12) as clients:
        response = list(clients.map(lambda body: client.post("/v1/check", json=body), bodies))
    assert [one.status_code for one in response] == [
        422 if number % 3 == 0 else 200 for number in range(12)
    ]
    assert "hit 1 is a dict without 'text'" in response[0].json()["error"]["message"]


def test_invalid_values_are_named_by_field_and_not_repeated(client: TestClient) -> None:
    response = client.post(
        "/v1/check",
        json={"question": "Who?", "hits": ["a", {"text": 5, "secret": "hunter2"}], "k": 1},
    )
    assert response.status_code == 422
    assert "hits[1].text" in response.json()["error"]["message"]
    assert "hunter2" not in response.text


def test_a_batch_returns_line_by_line_in_order(client: TestClient) -> None:
    lines = [json.dumps({**CHECK, "question_id": f"q{number}"}) for number in range(100)]
    lines[7], lines[50] = (
        "{broken",
        json.dumps({"question_id": "odd", "question": "Who?", "hits": [{}]}),
    )
    response = client.post("/v1/check/batch?explain=false", content="\n".join(lines), headers=LINES)
    result = lines_of(response.text)
    assert [one["line"] for one in result] == list(range(1, 101))
    assert [one["question_id"] for one in result if one["ok"]] == [
        f"q{number}" for number in range(100) if number not in (7, 50)
    ]
    assert result[7]["error"]["code"] == result[50]["error"]["code"] == "bad_input"
    assert result[50]["question_id"] == "odd"


def test_a_batch_may_be_checked_for_longer_than_its_body_may_take_to_arrive() -> None:
    """The limit is on the client's pauses: all lines are here at once, and their checks are slow."""
    lines = "\n".join([json.dumps(CHECK)] * 96)
    with running_app(body_seconds=0.02) as client:
        response = client.post("/v1/check/batch", content=lines, headers=LINES)
    assert [one["ok"] for one in lines_of(response.text)] == [True] * 96


def test_a_batch_that_is_too_long_says_where_it_ended() -> None:
    with running_app(batch_lines=5, body_bytes=2000) as client:
        lines = (
            [json.dumps(CHECK)] * 3
            + [json.dumps({**CHECK, "question": "x" * 3000})]
            + [json.dumps(CHECK)] * 9
        )
        result = lines_of(
            client.post("/v1/check/batch", content="\n".join(lines), headers=LINES).text
        )
    assert [one["ok"] for one in result] == [True, True, True, False, True, False]
    assert "longer than 2,000 bytes" in result[3]["error"]["message"]
    assert "more than 5 lines" in result[5]["error"]["message"]


def test_the_gates_are_listed_with_what_they_promise(client: TestClient) -> None:
    (gate,) = client.get("/v1/gates").json()["data"]
    assert (gate["name"], gate["preset"], gate["k"]) == ("default", "standard", 10)
    assert 0 < gate["policy"]["answer_at"] < 1
    assert (gate["drift"] is None) == (gate["drift_checks"] < 30)


# ---- labels


def test_a_check_that_was_served_is_labelled_and_undone(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    with running_app(Settings(labels=str(path), preset="fast")) as client:
        empty = client.get("/v1/label/next", params={"by": "ada"}).json()["data"]
        assert (empty["item"], empty["progress"]["left"]) == (None, 0)
        client.post("/v1/check", json=CHECK)
        line = json.dumps({"question": "Who taught Ada?", "hits": ["Mary taught her."]})
        client.post("/v1/check/batch", content=line, headers=LINES)
        asked = client.get("/v1/label/next", params={"by": "ada"}).json()["data"]
        assert asked["progress"]["left"] == 2
        answer = {**asked["item"], "complete": False, "by": "ada"}
        after = client.post("/v1/label", json=answer).json()["data"]
        assert (after["stored"], after["progress"]["labelled"]) == (True, 1)
        assert after["item"]["question"] != asked["item"]["question"]
        back = client.post("/v1/label/undo", json={"by": "ada"}).json()["data"]
        assert (back["stored"], back["item"], back["progress"]["labelled"]) == (
            True,
            asked["item"],
            0,
        )
        nothing = client.post("/v1/label/undo", json={"by": "ada"}).json()["data"]
        assert (nothing["stored"], nothing["item"]) == (False, asked["item"])
        wrong = client.post("/v1/label", json={**answer, "needed": {"x": True}})
        assert (wrong.status_code, "needed" in wrong.json()["error"]["message"]) == (422, True)
    assert [row.get("complete") for row in lines_of(path.read_text())] == [False, None]


def test_a_file_is_labelled_beside_it_under_the_name_of_the_key(tmp_path: Path) -> None:
    keys = ApiKeys(tmp_path / "keys.json")
    reader, labeller = keys.create("app")[0], keys.create("ada", ("label",))[0]
    (tmp_path / "questions.jsonl").write_text(json.dumps(CHECK))
    settings = Settings(label=str(tmp_path / "questions.jsonl"), keys=str(keys.path), preset="fast")
    with running_app(settings) as client:
        for token, status in ((reader, 403), (labeller, 200)):
            response = client.get("/v1/label/next?by=laptop", headers=_with(token))
            assert response.status_code == status
        answer = {**response.json()["data"]["item"], "complete": None, "by": "laptop"}
        assert client.post("/v1/label", json=answer, headers=_with(labeller)).status_code == 200
        assert client.post("/v1/check", json=CHECK, headers=_with(labeller)).status_code == 403
    (row,) = lines_of((tmp_path / "labels.jsonl").read_text())
    assert (row["complete"], row["by"], row["hits"][0]["id"]) == (None, "ada/laptop", "navigator")


# ---- library


def test_a_search_finds_documents_with_their_texts(client: TestClient) -> None:
    hits = client.post("/v1/search", json={"question": "Dog Law", "k": 3}).json()["data"]["hits"]
    assert hits[0]["doc_id"] == "dog"
    assert "Jerome Storm" in hits[0]["text"]
    assert {part["name"] for part in hits[0]["parts"]} >= {"bm25"}
    assert (
        client.post("/v1/search", json={"question": "Dog Law", "texts": False}).json()["data"][
            "hits"
        ][0]["text"]
        is None
    )


def test_complete_stops_when_the_gate_answers(client: TestClient) -> None:
    result = client.post("/v1/complete", json={"question": BRIDGE, "k": 4}).json()["data"]
    assert {"lothair", "ermengarde"} <= {hit["doc_id"] for hit in result["hits"]}
    assert result["rounds"][-1]["held"]
    assert result["verdict"]["action"] in ("answer", "expand", "abstain")


def test_the_reader_reads_the_hits_again(client: TestClient) -> None:
    form = {"question": BRIDGE, "k": 3, "reranker": "reader"}
    for path in ("/v1/search", "/v1/complete"):
        hits = client.post(path, json=form).json()["data"]["hits"]
        assert hits
        assert all("rerank" in {part["name"] for part in hit["parts"]} for hit in hits)
        # Nothing else can be named here: not a folder, and no retriever that reads nothing.
        for wrong in ({"reranker": "/etc"}, {"retriever": "bm25"}):
            assert client.post(path, json={**form, **wrong}).status_code == 422


def test_complete_and_ask_take_a_filter(client: TestClient) -> None:
    recent = {"published_at": {"$gte": "2020-01-01"}}  # none of the documents has a date
    form = {"question": BRIDGE, "k": 4, "filter": recent}
    assert client.post("/v1/complete", json=form).json()["data"]["hits"] == []
    asked = client.post("/v1/ask", json={"question": BRIDGE, "filter": recent}).json()["data"]
    assert (asked["action"], asked["citations"]) == ("abstain", [])
    assert asked["missing"][0] == "documents that pass the filter: published_at from 2020-01-01"
    wrong = {"question": BRIDGE, "filter": {"colour": "red"}}
    for path in ("/v1/complete", "/v1/ask"):
        assert client.post(path, json=wrong).status_code == 422


def test_a_question_is_answered_with_its_citations(client: TestClient) -> None:
    result = client.post("/v1/ask", json={"question": COMPARISON}).json()["data"]
    assert (result["action"], result["answer"]) == ("answer", "Dog Law")
    assert {one["doc_id"] for one in result["citations"]} == {"dog", "storm", "paradise", "aki"}


def test_a_question_can_be_watched_as_events(client: TestClient) -> None:
    response = client.post(
        "/v1/ask", json={"question": COMPARISON}, headers={"accept": "text/event-stream"}
    )
    assert response.headers["content-type"].startswith("text/event-stream")
    events = events_of(response.text)
    names = [name for name, _ in events]
    assert (names[0], names[-1]) == ("plan", "end")
    end = events[-1][1]
    told, steps = [data["step"] for name, data in events if name == "step"], end["data"]["steps"]
    for before, after in zip(told, steps, strict=True):
        if after["review"] is not None:  # the verdict is counted at the end
            before["review"]["confidence"] = after["review"]["confidence"]
    assert told == steps
    assert end["data"]["answer"] == "Dog Law"
    assert end["request_id"] == response.headers["x-request-id"]


def test_a_client_that_disconnects_ends_the_question(client: TestClient) -> None:
    body = json.dumps({"question": COMPARISON}).encode()
    comes = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        return next(comes, {"type": "http.disconnect"})

    _, told = exchange(client, "/v1/ask", receive, accept="text/event-stream")
    assert b"event: end" not in told
    for release in [service_of(client).reserve_slot() for _ in range(4)]:  # its place is free again
        release()


def test_the_library_describes_itself(client: TestClient) -> None:
    result = client.get("/v1/library").json()["data"]
    assert (result["documents"], result["encoder"]) == (8, "wordllama")
    assert "bridge" in result["retrievers"]
    known, nobody = client.get("/v1/library/documents", params={"id": ["dog", "cat"]}).json()[
        "data"
    ]
    assert (known["title"], nobody) == ("Dog Law", None)


def test_documents_come_and_go_with_a_key_that_may_write(tmp_path: Path) -> None:
    keys = ApiKeys(tmp_path / "keys.json")
    writer, reader = keys.create("writer", ("read", "write"))[0], keys.create("reader")[0]
    settings = Settings(
        library=build_film_library(tmp_path / "cinema"), keys=str(keys.path), preset="fast"
    )
    new = {
        "documents": [
            {
                "doc_id": "ada",
                "title": "Ada",
                "text": "Ada was taught by Mary.",
                "published_at": "1843-09-05",
            }
        ]
    }
    with running_app(settings) as client:
        assert client.post("/v1/library/documents", json=new).status_code == 401
        assert (
            client.post("/v1/library/documents", json=new, headers=_with(reader)).status_code == 403
        )
        result = client.post("/v1/library/documents", json=new, headers=_with(writer)).json()[
            "data"
        ]
        assert (result["written"], result["documents"]) == (1, 9)
        found = client.post(
            "/v1/search", json={"question": "Who taught Ada?", "k": 1}, headers=_with(reader)
        ).json()
        assert (found["data"]["hits"][0]["doc_id"], found["data"]["hits"][0]["published_at"]) == (
            "ada",
            "1843-09-05",
        )
        gone = client.delete(
            "/v1/library/documents", params={"id": ["ada", "nobody"]}, headers=_with(writer)
        ).json()["data"]
        assert (gone["written"], gone["documents"]) == (1, 8)


def _with(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


# ---- health, logs, figures


def test_metrics_count_verdicts_and_requests() -> None:
    with running_app() as client:
        for _ in range(3):
            client.post("/v1/check", json=CHECK)
        client.get("/v1/nowhere/else")
        figures = client.get("/metrics").text
    assert 'suffice_checks_total{action="abstain",gate="default"} 3.0' in figures
    assert 'suffice_p_complete_bucket{gate="default",le="0.05"} 3.0' in figures
    assert 'suffice_requests_total{route="/v1/check",status="200"} 3.0' in figures
    assert 'suffice_requests_total{route="none",status="404"} 1.0' in figures
    assert "nowhere" not in figures


def test_drift_is_reported_from_the_first_window_on() -> None:
    with running_app() as client:
        for number in range(12):
            client.post("/v1/check", json={"question": f"hm {number}", "hits": ["x y z"]})
        early = client.get("/v1/report").json()["data"]
        assert (early["drift"], early["drift_checks"], early["drift_from"]) == ([], 12, 30)
        assert 'suffice_drift_questions{gate="default"} 12.0' in client.get("/metrics").text
        lines = [
            json.dumps({"question": f"hm {number}", "hits": ["x y z"]}) for number in range(51)
        ]
        client.post("/v1/check/batch", content="\n".join(lines), headers=LINES)
        (drift,) = client.get("/v1/report").json()["data"]["drift"]
        assert drift["questions"] >= 60
        assert all(feature["meaning"] for feature in drift["features"])
        assert 'suffice_drift_recalibrate{gate="default"} 1.0' in client.get("/metrics").text
        assert "Recalibrate" in client.get("/v1/gates").json()["data"][0]["drift"]


def test_the_log_has_one_line_per_request_and_no_text(caplog: pytest.LogCaptureFixture) -> None:
    result = {"question": "Is this a secret?", "hits": ["hush"]}
    with running_app() as client, caplog.at_level(logging.INFO, "suffice.service"):
        client.post("/v1/check", json=result, headers={"x-request-id": "mine-1"})
        client.get("/v1/library/documents?id=secret")
    first, second = (vars(record)["fields"] for record in caplog.records)
    assert (first["request_id"], first["route"], first["status"], first["hits"]) == (
        "mine-1",
        "/v1/check",
        200,
        1,
    )
    assert second["status"] == 409
    assert "secret" not in json.dumps([first, second])
    caplog.clear()
    with (
        running_app(Settings(log_texts=True)) as client,
        caplog.at_level(logging.INFO, "suffice.service"),
    ):
        client.post("/v1/check", json=result)
    assert vars(caplog.records[0])["fields"]["question"] == "Is this a secret?"
