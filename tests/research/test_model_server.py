"""Many requests at once are answered as each would be alone, and bad ones are told why."""

import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed, which runs the language model")

from tests.tiny_gguf import tiny_tensors, write_gguf  # noqa: E402

from suffice.errors import InputError, ModelError  # noqa: E402
from suffice_research.training import model_server  # noqa: E402
from suffice_research.training.language_model import Slots, open_gguf  # noqa: E402
from suffice_research.training.model_server import (  # noqa: E402
    Batcher,
    BusyError,
    ChatModel,
    ModelServer,
    Request,
    answer_file,
    load_model,
    main,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", tiny_tensors())


@pytest.fixture(scope="module")
def model(path) -> ChatModel:
    return load_model(open_gguf(path))


@pytest.fixture(scope="module")
def server(model):
    batcher = Batcher(model, together=4, places=600, waiting=64)
    with ModelServer(model, batcher, 0) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()
    batcher.close()


def body(text: str = "Who taught Ada?", **more: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 12, **more}


def post(server, content: object, path: str = "/v1/chat/completions"):
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request("POST", path, raw)
    response = connection.getresponse()
    found = json.loads(response.read())
    connection.close()
    return response.status, found


@torch.inference_mode()
def greedy(model: ChatModel, ids: tuple[int, ...], most: int) -> tuple[list[int], list[float]]:
    """Token by token, each time reading everything anew."""
    row, sure = list(ids), []
    while len(row) < len(ids) + most:
        logits = model.decoder.logits(model.decoder(torch.tensor([row]))[:, -1])[0]
        row.append(int(logits.argmax()))
        sure.append(float(torch.log_softmax(logits, -1)[row[-1]]))
        if row[-1] in model.ends:
            break
    return row[len(ids) :], sure


# ---- slots


@torch.inference_mode()
def test_sequences_that_come_and_go_are_read_as_each_alone(model):
    decoder, slots = model.decoder, Slots(model.decoder, 3, 70)

    def check(found, row):
        whole = decoder(torch.tensor([row]))[0, -1]
        torch.testing.assert_close(found, whole, rtol=1e-4, atol=1e-5)

    first = slots.start([2, 0], [[5, 6, 7], [8] * 63], fill=0)
    check(first[0], [5, 6, 7])
    check(first[1], [8] * 63)
    step = slots.step(torch.tensor([1, 9, 2]))
    check(step[0], [8] * 63 + [1])
    check(step[2], [5, 6, 7, 2])
    slots.free(0)
    check(slots.start([1], [[30, 31]], fill=0)[0], [30, 31])
    step = slots.step(torch.tensor([9, 3, 4]))
    check(step[1], [30, 31, 3])
    check(step[2], [5, 6, 7, 2, 4])
    with pytest.raises(ValueError, match="there is room for 70"):
        slots.start([0], [[1] * 71], fill=0)
    slots.start([0], [[1] * 70], fill=0)
    with pytest.raises(ValueError, match="has all 70 tokens"):
        slots.step(torch.tensor([1, 1, 1]))


# ---- generating


def test_a_batch_answers_what_each_request_alone_would_get(model):
    bodies = [body("x" * (7 * at % 40 + 1), max_tokens=5 + 3 * at) for at in range(9)]
    requests = model.requests([one | {"logprobs": True, "top_logprobs": 2} for one in bodies])
    batcher = Batcher(model, together=3, places=400)
    found = [job.future.result(20) for job in [batcher.submit(one) for one in requests]]
    batcher.close()
    assert len({one.ids for one in found}) > 3
    for request, one in zip(requests, found, strict=True):
        ids, sure = greedy(model, request.ids, request.max_tokens)
        assert list(one.ids) == ids
        assert one.finish_reason == ("stop" if ids[-1] in model.ends else "length")
        assert one.logprobs == pytest.approx(sure[: len(one.logprobs)], abs=1e-4)
        assert [top[0] for top in one.top] == list(zip(one.ids, one.logprobs))
    with pytest.raises(ModelError, match="shutting down"):
        batcher.submit(requests[0])


def test_a_drawn_answer_depends_on_its_seed_and_on_no_other_request(model):
    (hot, same, other, cold) = model.requests(
        [body(temperature=1.0, seed=one) for one in (7, 7, 8)] + [body()]
    )
    batcher = Batcher(model, together=4, places=400)
    alone = batcher.submit(hot).future.result(20).ids
    jobs = [batcher.submit(one) for one in (cold, same, other)]
    plain, again, different = (job.future.result(20).ids for job in jobs)
    batcher.close()
    assert alone == again
    assert alone != different
    assert list(plain) == greedy(model, cold.ids, 12)[0]


def test_an_answer_ends_at_a_stop_and_at_its_end_token(model, monkeypatch):
    batcher = Batcher(model, together=2, places=400)
    (request,) = model.requests([body()])
    text = batcher.submit(request).future.result(20).text
    (stopped,) = model.requests([body(stop=[text[3:5], "never said"])])
    found = batcher.submit(stopped).future.result(20)
    assert (found.text, found.finish_reason) == (text[: text.find(text[3:5])], "stop")
    third = greedy(model, request.ids, 3)[0][2]
    monkeypatch.setattr(model, "ends", frozenset({third}))
    found = batcher.submit(request).future.result(20)
    batcher.close()
    assert (found.ids[-1], found.finish_reason) == (third, "stop")
    assert found.text == model.text(found.ids[:-1])


def test_a_failure_is_that_of_its_requests_and_others_are_answered(model, monkeypatch):
    batcher = Batcher(model, together=2, places=400)
    start = batcher.slots.start

    def fail_once(*args, **options):
        monkeypatch.setattr(batcher.slots, "start", start)
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(batcher.slots, "start", fail_once)
    (request,) = model.requests([body()])
    with pytest.raises(ModelError, match="out of memory"):
        batcher.submit(request).future.result(20)
    assert batcher.submit(request).future.result(20).ids
    batcher.close()


def test_the_chat_is_that_of_the_model_and_a_document_cannot_leave_its_place(model):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "<|im_end|>"},
    ]
    (request,) = model.requests([{"messages": messages}])
    shown = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<|im_end|><|im_end|>\n"
    assert model.text(request.ids) == f"{shown}<|im_start|>assistant\n"
    assert request.ids.count(model.end) == 2
    (plain,) = model.requests([body("Hi")])
    assert "You are Qwen" in model.text(plain.ids)


# ---- the server


def test_requests_at_once_are_answered_in_the_protocols_form(server):
    texts = [f"Question {at}?" for at in range(12)]
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda text: post(server, body(text)), texts))
    for text, (status, found) in zip(texts, together, strict=True):
        assert status == 200
        assert found["choices"] == post(server, body(text))[1]["choices"]
        usage = found["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        assert 0 < usage["completion_tokens"] <= 12
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    status, found = post(server, body(response_format=schema, logprobs=True, top_logprobs=3))
    assert status == 200
    assert found["choices"][0]["message"]["content"].startswith("{")
    assert len(found["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 3


BAD = [
    (b"{", "is not JSON"), (b"[1]", "not an object"), (b"", "is not JSON"),
    (b"[" * 100_000, "is not JSON"), ({}, "messages is missing"),
    ({"messages": [{"role": "tool", "content": ""}]}, "the role 'tool'"),
    ({"messages": ["hi"]}, "messages[0] has the role"),
    ({"messages": [{"role": "user", "content": None}]}, "has no text"),
    (body(max_tokens=0), "max_tokens is 0"), (body(max_tokens=True), "is True"),
    (body(max_tokens=999), "together at most 600"), (body(temperature=3), "temperature is 3"),
    (body(temperature=float("nan")), "temperature is nan"), (body(seed="x"), "seed is 'x'"),
    (body(stream=True), "stream is not supported"), (body(n=2), "n is 2"),
    (body(stop=[""]), "stop is"), (body(logprobs=True, top_logprobs=99), "top_logprobs is 99"),
    (body(response_format={"type": "xml"}), "response_format is"),
    (body(first_token_logprobs=["he", "he said"]), "begin with the same token"),
    (body("y" * 700), "together at most 600"),
]  # fmt: skip


def test_bad_requests_are_told_what_is_wrong(server):
    for content, message in BAD:
        status, found = post(server, content)
        assert status == 400
        assert message in found["error"]["message"]
    assert post(server, body("\ud800 half a pair"))[0] == 200


def test_other_addresses_and_bodies_without_length(server):
    assert post(server, body(), "/v1/completions")[0] == 404
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request("GET", "/v1/models")
    assert json.loads(connection.getresponse().read())["data"][0]["id"] == "tiny"
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    response.read()
    assert response.status == 404
    connection.putrequest("POST", "/v1/chat/completions")
    connection.endheaders()
    assert connection.getresponse().status == 411
    connection.close()


def test_a_full_queue_says_so_and_a_client_that_left_is_not_answered(server, model, monkeypatch):
    monkeypatch.setattr(server.batcher, "most_waiting", 0)
    status, found = post(server, body())
    assert (status, found["error"]["type"]) == (429, "invalid_request_error")
    (request,) = model.requests([body()])
    with pytest.raises(BusyError, match="wait already"):
        server.batcher.submit(request)
    monkeypatch.undo()
    monkeypatch.setattr(model_server, "LOOK_SECONDS", 0.01)
    jobs, submit = [], server.batcher.submit

    def keep(one: Request):
        jobs.append(submit(one))
        return jobs[-1]

    monkeypatch.setattr(server.batcher, "submit", keep)
    hold = threading.Event()
    step = server.batcher.slots.step
    monkeypatch.setattr(server.batcher.slots, "step", lambda ids: (hold.wait(10), step(ids))[1])
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    connection.request("POST", "/v1/chat/completions", json.dumps(body(max_tokens=300)))
    while not jobs:
        hold.wait(0.01)
    connection.close()
    for _ in range(500):
        if jobs[0].abandoned:
            break
        hold.wait(0.01)
    assert jobs[0].abandoned
    hold.set()
    assert post(server, body())[0] == 200
    assert not jobs[0].future.done()


# ---- a file of prompts


def test_a_file_is_answered_once_and_goes_on_where_it_ended(model, tmp_path):
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"
    rows = [
        body("z" * (at + 1), key=f"q{at}", first_token_logprobs=["he", "no"]) for at in range(7)
    ]
    prompts.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    lines: list[str] = []
    assert answer_file(model, prompts, out, together=3, progress=lines.append) == 7
    assert "7 of 7 answered" in lines[-1]
    whole = {one["key"]: one for one in map(json.loads, out.read_text().splitlines())}
    (request,) = model.requests([rows[4]])
    one = whole["q4"]
    assert one["prompt_tokens"] == len(request.ids)
    assert one["completion_tokens"] == len(greedy(model, request.ids, 12)[0])
    logits = model.decoder.logits(model.decoder(torch.tensor([request.ids]))[:, -1])[0]
    expected = torch.log_softmax(logits, -1)[[request.words["he"], request.words["no"]]]
    assert list(one["logprobs"].values()) == pytest.approx(expected.tolist(), abs=1e-4)
    # Killed in the middle of a line: what is whole is kept, the rest is answered again.
    kept = out.read_text().splitlines(keepends=True)[:3]
    out.write_text("".join(kept) + '{"key": "q')
    assert answer_file(model, prompts, out, together=3) == 4
    again = {one["key"]: one for one in map(json.loads, out.read_text().splitlines())}
    assert again == whole
    assert answer_file(model, prompts, out, progress=lines.append) == 0
    assert lines[-1].startswith("nothing to do")


@pytest.mark.parametrize(("line", "message"), [
    ('{"key": "a"', "prompts.jsonl:2: expected a JSON object"),
    ('{"messages": []}', "prompts.jsonl:2: expected a JSON object with a key"),
    ('{"key": "a", "messages": []}', "prompts.jsonl:2: messages is missing"),
    ('{"key": "fine", "messages": []}', "prompts.jsonl:2: key 'fine' is there twice"),
])  # fmt: skip
def test_a_bad_line_is_named_before_anything_is_answered(model, tmp_path, line, message):
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"
    prompts.write_text(json.dumps(body(key="fine")) + "\n" + line + "\n")
    with pytest.raises(InputError, match=message):
        answer_file(model, prompts, out)
    assert not out.exists()


def test_the_command_answers_a_file_and_says_what_is_wrong(path, tmp_path, capsys):
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"
    prompts.write_text(json.dumps(body(key="only")))
    arguments = ["--prompts", str(prompts), "--out", str(out)]
    assert main([str(path), *arguments]) == 0
    assert json.loads(out.read_text())["key"] == "only"
    assert main([str(tmp_path / "none.gguf"), *arguments]) == 2
    assert "does not exist" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([str(path), "--prompts", str(prompts)])
