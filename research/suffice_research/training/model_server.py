"""Answer many prompts with a language model: `python -m suffice_research.training.model_server`.

    ... qwen.gguf --port 8080                              a server with OpenAI's protocol
    ... qwen.gguf --prompts FILE --out FILE                 answers a file of prompts

A line of the file is a request of the protocol with a key: {"key": "q1", "messages": [...],
"max_tokens": 64, "first_token_logprobs": ["Yes", "No"]}. A line of the output is {"key", "text",
"prompt_tokens", "completion_tokens", "finish_reason", "logprobs"}, where `logprobs` has the log
probability that the answer starts with the first token of each word. Keys that are already in the
output are not answered again; delete the file to start over.

Sequences join the batch when a slot is free and leave it when they end (`Slots`), so a short answer
never waits for a long one. No grammar enforces a JSON schema: the schema is part of the prompt, and
the answer is made to start with a brace. Needs numpy, torch and tokenizers, and nothing from the
project but its errors.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import random
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from suffice.errors import InputError, ModelError, SufficeError
from suffice_research.training.language_model import (
    Decoder,
    GgufFile,
    Slots,
    load_decoder,
    load_tokenizer,
    open_gguf,
)

__all__ = ["Batcher", "ChatModel", "Completion", "Request", "answer_file", "load_model", "serve"]

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
START, END = "<|im_start|>", "<|im_end|>"
ENDS = (END, "<|endoftext|>")
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
MAX_TOKENS, MAX_TOP, MAX_STOPS = 256, 20, 4
TOGETHER, PLACES, WAITING = 64, 8192, 1024
READ_TOGETHER = 65_536  # tokens of new prompts, with padding
MEMORY_SHARE = 0.6  # of the free memory, for keys and values; the rest is for computation
CPU_MEMORY = 4 * 2**30
MAX_BODY = 16 * 2**20
BUSY_SECONDS = 2
LOOK_SECONDS = 0.5  # how often to check whether a waiting client is still connected


# ---- requests


@dataclass(frozen=True, slots=True)
class Request:
    ids: tuple[int, ...]
    max_tokens: int = MAX_TOKENS
    temperature: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    top: int = 0  # further tokens per position, with `logprobs`
    words: Mapping[str, int] = field(default_factory=dict)  # word -> its first token
    begin: str = ""  # start of the answer; part of `ids`


@dataclass(frozen=True, slots=True)
class Completion:
    text: str
    prompt_tokens: int
    ids: tuple[int, ...]
    finish_reason: str
    logprobs: tuple[float, ...] = ()
    top: tuple[tuple[tuple[int, float], ...], ...] = ()
    words: Mapping[str, float] = field(default_factory=dict)


def _bad(message: str, hint: str = "see OpenAI's description of chat completions") -> InputError:
    return InputError(message, hint=hint)


def _number(
    body: Mapping[str, Any], name: str, default: float, low: float, high: float, whole: bool = False
) -> float:
    value = body.get(name)
    if value is None:
        return default
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        raise _bad(f"{name} is {value!r}, expected {kind} from {low:g} to {high:g}")
    return value


def _messages(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _bad("messages is missing or empty", '"messages": [{"role": "user", "content": ""}]')
    found = []
    for at, one in enumerate(messages):
        role, content = (one.get("role"), one.get("content")) if isinstance(one, dict) else (0, 0)
        if role not in ROLES:
            raise _bad(f"messages[{at}] has the role {role!r}, expected one of {', '.join(ROLES)}")
        if isinstance(content, list):
            parts = [part.get("text") if isinstance(part, dict) else None for part in content]
            texts = [part for part in parts if isinstance(part, str)]
            content = "".join(texts) if len(texts) == len(parts) else None
        if not isinstance(content, str):
            raise _bad(f"messages[{at}] has no text: its content is not a string")
        # Half of a surrogate pair, which JSON allows, cannot be tokenized.
        found.append((ROLES[role], content.encode("utf-8", "replace").decode()))
    return found


def _wanted_json(body: Mapping[str, Any]) -> tuple[str, str]:
    """Instructions about the form of the answer, and how the answer starts."""
    wanted = body.get("response_format")
    if wanted is None or wanted == {"type": "text"}:
        return "", ""
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "json_object":
        return "\n\nAnswer with one JSON object alone.", "{"
    shown = wanted.get("json_schema") if kind == "json_schema" else None
    schema = shown.get("schema") if isinstance(shown, dict) else None
    if not isinstance(schema, dict):
        raise _bad(f"response_format is {wanted!r}, expected text, json_object or json_schema")
    text = json.dumps(schema, ensure_ascii=False)
    begin = "{" if schema.get("type") == "object" else ""
    return f"\n\nAnswer with one JSON document of this schema alone:\n{text}", begin


def _stops(body: Mapping[str, Any]) -> tuple[str, ...]:
    stop = body.get("stop")
    stops = [] if stop is None else [stop] if isinstance(stop, str) else stop
    fits = isinstance(stops, list) and all(isinstance(one, str) and one for one in stops)
    if not fits or len(stops) > MAX_STOPS:
        raise _bad(f"stop is {stop!r}, expected a text or up to {MAX_STOPS} texts")
    return tuple(stops)


class ChatModel:
    """A decoder with its tokenizer, and its chat format."""

    def __init__(self, name: str, decoder: Decoder, tokenizer: Tokenizer) -> None:
        self.name, self.decoder, self.tokenizer = name, decoder, tokenizer
        # Single precision: in half precision many of the best tokens would tie.
        self.predicting = decoder.tokens.weight.detach().float().T
        if DEVICE == "cuda":
            decoder.to(torch.bfloat16)
        start, end, *others = (tokenizer.token_to_id(one) for one in (START, *ENDS))
        if start is None or end is None:
            raise InputError(
                f"{name} has no tokens {START} and {END}: it was not taught to chat",
                hint="use an instruct model of the Qwen2 family",
            )
        self.start, self.end = start, end
        self.ends = frozenset({end, *(one for one in others if one is not None)})

    def requests(self, bodies: Sequence[Mapping[str, Any]]) -> list[Request]:
        """Requests of the protocol, tokenized together. InputError if one is invalid."""
        parts, texts = [], dict[str, int]()
        for body in bodies:
            for name in ("stream", "tools", "functions"):
                if body.get(name):
                    raise _bad(f"{name} is not supported", f"leave {name} out")
            for name in ("n", "top_p"):
                if body.get(name) not in (None, 1):
                    raise _bad(f"{name} is {body[name]!r}, expected 1", f"leave {name} out")
            told, begin = _wanted_json(body)
            messages = _messages(body)
            if messages[0][0] != "system":
                messages.insert(0, ("system", SYSTEM))
            pieces = [f"{role}\n{content}" for role, content in messages]
            pieces[-1] += told
            words = body.get("first_token_logprobs") or []
            if not isinstance(words, list) or not all(
                one and isinstance(one, str) for one in words
            ):
                raise _bad(f"first_token_logprobs is {words!r}, expected a list of words")
            parts.append((pieces, begin, words))
            texts |= dict.fromkeys([*pieces, *words, *([begin] if begin else [])], 0)
        encoded = self.tokenizer.encode_batch([*texts, "\n", "assistant\n"])
        ids = {text: one.ids for text, one in zip([*texts, "\n", "assistant\n"], encoded)}
        return [
            self._request(body, *part, ids) for body, part in zip(bodies, parts, strict=True)
        ]  # fmt: skip

    def _request(
        self, body: Mapping[str, Any], pieces: Sequence[str], begin: str, words: Sequence[str],
        ids: Mapping[str, Sequence[int]],
    ) -> Request:  # fmt: skip
        row: list[int] = []
        for one in pieces:
            row += [self.start, *ids[one], self.end, *ids["\n"]]
        row += [self.start, *ids["assistant\n"], *(ids[begin] if begin else ())]
        firsts = {word: int(ids[word][0]) for word in words}
        if len(set(firsts.values())) < len(firsts):
            raise _bad(
                f"several of {list(firsts)} begin with the same token",
                "choose words whose first tokens differ",
            )
        name = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        logprobs = body.get("logprobs") or False
        if not isinstance(logprobs, bool):
            raise _bad(f"logprobs is {logprobs!r}, expected true or false")
        seed = body.get("seed")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise _bad(f"seed is {seed!r}, expected a whole number")
        return Request(
            tuple(row),
            int(_number(body, name, MAX_TOKENS, 1, 2**20, whole=True)),
            _number(body, "temperature", 0.0, 0, 2),
            seed,
            _stops(body),
            logprobs,
            int(_number(body, "top_logprobs", 0, 0, MAX_TOP, whole=True)) if logprobs else 0,
            firsts,
            begin,
        )

    def text(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False))


def load_model(file: GgufFile, name: str | None = None) -> ChatModel:
    """The model of a GGUF file, on a GPU in half precision if there is one."""
    if DEVICE == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)  # it re-initializes for every shape
    decoder = load_decoder(file, DEVICE).eval().requires_grad_(False)
    return ChatModel(name or file.path.stem, decoder, load_tokenizer(file))


# ---- generating


@dataclass(slots=True)
class _Job:
    request: Request
    future: Future[Completion]
    draw: random.Random
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    words: dict[str, float] = field(default_factory=dict)
    abandoned: bool = False


class BusyError(ModelError):
    """Too many requests are waiting."""


class Batcher:
    """Generates for all current requests together, in its own thread.

    At most `together` sequences run at once, each of at most `places` tokens with its answer.
    """

    def __init__(
        self, model: ChatModel, *, together: int = TOGETHER, places: int = PLACES,
        waiting: float = math.inf,
    ) -> None:  # fmt: skip
        self.model, self.places, self.most_waiting = model, places, waiting
        weight = model.decoder.tokens.weight
        each = Slots.size(model.decoder.sizes, places, weight.element_size())
        free = torch.cuda.mem_get_info()[0] if DEVICE == "cuda" else CPU_MEMORY
        fits = int(MEMORY_SHARE * free) // each
        if not fits:
            raise InputError(
                f"a sequence of {places:,} tokens needs {each / 2**30:.1f} GiB, and "
                f"{free / 2**30:.1f} GiB are free",
                hint="choose fewer --places",
            )
        self.slots = Slots(model.decoder, min(together, fits), places)
        self._jobs: dict[int, _Job] = {}  # by slot
        self._waiting: deque[_Job] = deque()
        self._ready = threading.Condition()
        self._closed = False
        self.tokens_read = self.tokens_written = 0
        self._thread = threading.Thread(target=self._run, name="generating", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> _Job:
        """A job whose `future` gets the completion. BusyError if too many wait already."""
        if len(request.ids) + request.max_tokens > self.places:
            raise _bad(
                f"the prompt has {len(request.ids):,} tokens and the answer may have "
                f"{request.max_tokens:,}, together at most {self.places:,}",
                "shorten the prompt, lower max_tokens, or start with more --places",
            )
        job = _Job(request, Future(), random.Random(request.seed))
        with self._ready:
            if self._closed:
                raise ModelError("the server is shutting down", hint="start it again")
            if len(self._waiting) >= self.most_waiting:
                raise BusyError(f"{len(self._waiting):,} requests wait already", retryable=True)
            self._waiting.append(job)
            self._ready.notify()
        return job

    def close(self) -> None:
        """Stop; unanswered requests fail."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join()

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _run(self) -> None:
        while True:
            with self._ready:
                while not (self._waiting or self._jobs or self._closed):
                    self._ready.wait()
                if self._closed:
                    left = [*self._jobs.values(), *self._waiting]
                    self._waiting.clear()
                    break
                new = self._next_jobs()
            for some in _read_together(new):
                self._attempt(some, self._start)
            for slot in [slot for slot, job in self._jobs.items() if job.abandoned]:
                self._leave(slot)
            if self._jobs:
                self._attempt(dict(self._jobs), self._step)
        for job in left:
            job.future.set_exception(ModelError("the server is shutting down"))

    def _next_jobs(self) -> dict[int, _Job]:
        """Waiting jobs for the free slots."""
        free = [slot for slot in range(len(self.slots.lengths)) if slot not in self._jobs]
        found: dict[int, _Job] = {}
        while self._waiting and len(found) < len(free):
            job = self._waiting.popleft()
            if not job.abandoned:
                found[free[len(found)]] = job
        return found

    def _attempt(self, jobs: dict[int, _Job], work: Callable[[dict[int, _Job]], None]) -> None:
        """Do the work; a failure (usually memory) affects only these jobs."""
        try:
            work(jobs)
        except Exception as error:  # noqa: BLE001 - whatever it is, the clients wait for a word
            failure = ModelError(
                f"generating failed: {type(error).__name__}: {error}"[:500],
                hint="if memory is short, choose a smaller --together",
            )
            for slot, job in jobs.items():
                self._leave(slot)
                if not job.future.done():
                    job.future.set_exception(failure)
            if DEVICE == "cuda":
                torch.cuda.empty_cache()

    def _leave(self, slot: int) -> None:
        self._jobs.pop(slot, None)
        self.slots.free(slot)

    def _start(self, jobs: dict[int, _Job]) -> None:
        rows = [job.request.ids for job in jobs.values()]
        hidden = self.slots.start(list(jobs), rows, self.model.end)
        self._jobs |= jobs
        self.tokens_read += sum(map(len, rows))
        self._write(jobs, hidden)

    def _step(self, jobs: dict[int, _Job]) -> None:
        last = [self.model.end] * len(self.slots.lengths)
        for slot, job in jobs.items():
            last[slot] = job.ids[-1]
        hidden = self.slots.step(torch.tensor(last, device=self.slots.device))
        self._write(jobs, hidden[list(jobs)])

    def _write(self, jobs: dict[int, _Job], hidden: Tensor) -> None:
        """Add the next token to each; finished ones leave."""
        logits = hidden.float() @ self.model.predicting
        tokens = _choose(logits, list(jobs.values()))
        sure = torch.log_softmax(logits, -1)
        most = max(job.request.top for job in jobs.values())
        asked = {at: job for at, job in enumerate(jobs.values()) if job.request.words}
        asked = {at: job for at, job in asked.items() if not job.ids}
        chosen = sure.gather(1, tokens[:, None])[:, 0].tolist()
        best = [one.tolist() for one in sure.topk(most)] if most else None
        for at, job in asked.items():
            found = sure[at, list(job.request.words.values())].tolist()
            job.words = dict(zip(job.request.words, found, strict=True))
        for at, ((slot, job), token) in enumerate(zip(list(jobs.items()), tokens.tolist())):
            ended = token in self.model.ends
            job.ids.append(token)
            if job.request.logprobs and not ended:
                job.logprobs.append(chosen[at])
                pairs = zip(best[1][at], best[0][at]) if best is not None else ()
                job.top.append(tuple(pairs)[: job.request.top])
            self.tokens_written += 1
            stopped = None if ended or not job.request.stop else self._stopped(job)
            if ended or stopped is not None or len(job.ids) == job.request.max_tokens:
                self._leave(slot)
                self._finish(job, ended=ended, text=stopped)

    def _stopped(self, job: _Job) -> str | None:
        """The text up to the first stop sequence, if there is one."""
        text = self.model.text(job.ids)
        places = [at for one in job.request.stop if (at := text.find(one)) >= 0]
        return text[: min(places)] if places else None

    def _finish(self, job: _Job, *, ended: bool, text: str | None) -> None:
        ids = job.ids[:-1] if ended else job.ids
        found = self.model.text(ids) if text is None else text
        reason = "stop" if ended or text is not None else "length"
        job.future.set_result(
            Completion(
                job.request.begin + found,
                len(job.request.ids),
                tuple(job.ids),
                reason,
                tuple(job.logprobs),
                tuple(job.top),
                job.words,
            )
        )


def _choose(logits: Tensor, jobs: Sequence[_Job]) -> Tensor:
    """The best token, or one drawn with the request's own seed, independent of the batch."""
    best = logits.argmax(-1)
    heat = [job.request.temperature for job in jobs]
    if not any(heat):
        return best
    heats, draws = (
        torch.tensor(one, dtype=torch.float64, device=logits.device)
        for one in (heat, [job.draw.random() if job.request.temperature else 0.0 for job in jobs])
    )
    shares = torch.softmax(logits.double() / heats.clamp(min=1e-3)[:, None], -1).cumsum(-1)
    drawn = torch.searchsorted(shares, (draws * shares[:, -1])[:, None], right=True)[:, 0]
    return torch.where(heats > 0, drawn.clamp(max=logits.shape[1] - 1), best)


def _read_together(jobs: dict[int, _Job]) -> Iterator[dict[int, _Job]]:
    """The jobs in groups of similar length, small enough to read at once."""
    order = sorted(jobs.items(), key=lambda pair: -len(pair[1].request.ids))
    while order:
        count = max(1, READ_TOGETHER // len(order[0][1].request.ids))
        yield dict(order[:count])
        order = order[count:]


# ---- a file of prompts


def _read_lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The location of each record in a JSONL file, and the record."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}", hint="check --prompts"
        ) from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("key"), str):
            raise InputError(
                f"{path}:{number}: expected a JSON object with a key, found {line[:60]!r}",
                hint='a line looks like {"key": "q1", "messages": [...]}',
            )
        yield f"{path}:{number}", record


def _answered_keys(path: Path) -> set[str]:
    """The keys that were answered. An incomplete last line is removed."""
    if not path.exists():
        return set()
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
    return {record["key"] for _, record in _read_lines(path)}


def answer_file(
    model: ChatModel, prompts: Path, out: Path, *, together: int = TOGETHER,
    progress: Callable[[str], None] = lambda line: None,
) -> int:  # fmt: skip
    """Answer what is missing in the output; return how many there were."""
    done, keys, records = _answered_keys(out), set[str](), []
    for where, record in _read_lines(prompts):
        if record["key"] in keys:
            raise InputError(f"{where}: key {record['key']!r} is there twice", hint="rename one")
        keys.add(record["key"])
        if record["key"] not in done:
            records.append((where, record))
    if not records:
        progress(f"nothing to do: {out} has all {len(keys):,} answers")
        return 0
    try:
        requests = model.requests([record for _, record in records])
    except InputError:
        for where, record in records:  # find the invalid one
            try:
                model.requests([record])
            except InputError as error:
                raise InputError(f"{where}: {error}", hint=error.hint) from None
        raise
    # Longest first: a lack of memory shows at once, and the last ones finish together.
    order = sorted(range(len(requests)), key=lambda at: -len(requests[at].ids))
    places = max(len(one.ids) + one.max_tokens for one in requests)
    batcher = Batcher(model, together=together, places=places)
    finished: queue.SimpleQueue[tuple[int, Future[Completion]]] = queue.SimpleQueue()
    try:
        for at in order:
            future = batcher.submit(requests[at]).future
            future.add_done_callback(lambda one, at=at: finished.put((at, one)))  # type: ignore[misc]
        _write_answers(out, [record["key"] for _, record in records], finished, batcher, progress)
    finally:
        batcher.close()
    return len(records)


def _write_answers(
    out: Path, keys: Sequence[str], finished: queue.SimpleQueue[tuple[int, Future[Completion]]],
    batcher: Batcher, progress: Callable[[str], None],
) -> None:  # fmt: skip
    started = told = time.monotonic()
    with out.open("a", encoding="utf-8") as file:
        for count in range(1, len(keys) + 1):
            at, future = finished.get()
            one = future.result()
            record = {
                "key": keys[at], "text": one.text, "prompt_tokens": one.prompt_tokens,
                "completion_tokens": len(one.ids), "finish_reason": one.finish_reason,
                "logprobs": {word: round(value, 5) for word, value in one.words.items()} or None,
            }  # fmt: skip
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            file.flush()  # keep the answers even if this is interrupted
            now = time.monotonic()
            if now - told > 5 or count == len(keys):
                told, seconds = now, now - started
                progress(
                    f"{count:,} of {len(keys):,} answered in {seconds:.0f} s; "
                    f"{batcher.tokens_read / seconds:,.0f} tokens read and "
                    f"{batcher.tokens_written / seconds:,.0f} written a second"
                )


# ---- the server


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds without data from a client

    def log_message(self, *_: object) -> None:
        """Do not log requests."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        if path == "/health":
            return self._reply(HTTPStatus.OK, {"status": "ok"})
        if path == "/v1/models":
            entry = {"id": self.server.model.name, "object": "model", "owned_by": "suffice"}
            return self._reply(HTTPStatus.OK, {"object": "list", "data": [entry]})
        return self._fail(HTTPStatus.NOT_FOUND, f"nothing is at {path}")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.close_connection = True
            return self._fail(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing")
        if int(length) > MAX_BODY:
            self.close_connection = True
            return self._fail(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY:,} bytes were sent"
            )
        content = self.rfile.read(int(length))
        path = self.path.partition("?")[0].rstrip("/")
        if path != "/v1/chat/completions":
            return self._fail(HTTPStatus.NOT_FOUND, f"nothing is at {path}")
        try:
            body = json.loads(content)
            if not isinstance(body, dict):
                raise ValueError("it is not an object")
        except (ValueError, RecursionError) as error:
            return self._fail(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}"[:200])
        try:
            (request,) = self.server.model.requests([body])
            job = self.server.batcher.submit(request)
            completion = self._wait(job)
        except InputError as error:
            return self._fail(HTTPStatus.BAD_REQUEST, f"{error}; {error.hint}")
        except BusyError as error:
            return self._fail(HTTPStatus.TOO_MANY_REQUESTS, str(error))
        except ModelError as error:
            return self._fail(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        if completion is not None:
            self._reply(HTTPStatus.OK, _as_answer(self.server.model, request, completion))
        return None

    def _wait(self, job: _Job) -> Completion | None:
        """The completion; None if the client disconnected."""
        while True:
            try:
                return job.future.result(LOOK_SECONDS)
            except TimeoutError:
                if _gone(self.connection):
                    job.abandoned = self.close_connection = True
                    return None

    def _fail(self, status: HTTPStatus, message: str) -> None:
        kind = "invalid_request_error" if status < 500 else "server_error"
        self._reply(status, {"error": {"message": message, "type": kind, "code": int(status)}})

    def _reply(self, status: HTTPStatus, value: Mapping[str, Any]) -> None:
        content = json.dumps(value).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                self.send_header("Retry-After", str(BUSY_SECONDS))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True


def _gone(connection: socket.socket) -> bool:
    """Whether the client has closed the connection. Data it already sent is not read."""
    try:
        readable, _, _ = select.select([connection], [], [], 0)
        return bool(readable) and not connection.recv(1, socket.MSG_PEEK)
    except (OSError, ValueError):
        return True


def _as_answer(model: ChatModel, request: Request, one: Completion) -> Mapping[str, Any]:
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": one.text},
        "finish_reason": one.finish_reason,
        "logprobs": None,
    }
    if request.logprobs:
        rows = zip(one.ids, one.logprobs, one.top)
        choice["logprobs"] = {
            "content": [
                {**_token(model, at, sure), "top_logprobs": [_token(model, *pair) for pair in top]}
                for at, sure, top in rows
            ]
        }
    answer = {
        "id": f"chatcmpl-{random.getrandbits(64):016x}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model.name,
        "choices": [choice],
        "usage": {
            "prompt_tokens": one.prompt_tokens,
            "completion_tokens": len(one.ids),
            "total_tokens": one.prompt_tokens + len(one.ids),
        },
    }
    return answer | ({"first_token_logprobs": one.words} if one.words else {})


def _token(model: ChatModel, at: int, sure: float) -> dict[str, Any]:
    return {"token": model.text([at]), "logprob": round(sure, 5), "bytes": None}


class ModelServer(ThreadingHTTPServer):
    """Serves a model on this machine. `server_port` is its port."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, model: ChatModel, batcher: Batcher, port: int) -> None:
        self.model, self.batcher = model, batcher
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect; log anything else to stderr."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def serve(model: ChatModel, port: int, *, together: int, places: int, waiting: int) -> None:
    """Serve until a signal arrives."""
    batcher = Batcher(model, together=together, places=places, waiting=waiting)
    try:
        server = ModelServer(model, batcher, port)
    except (OSError, OverflowError) as error:
        batcher.close()
        raise InputError(
            f"port {port} cannot be used: {error}", hint="choose another --port, or 0 for any"
        ) from None
    with server:
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, lambda *_: threading.Thread(target=server.shutdown).start())
        print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
        server.serve_forever(poll_interval=0.1)
    batcher.close()


# ---- the command


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="a GGUF file of the Qwen2 family (Q4_K_M)")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--port", type=int, help="serve on this port of this machine; 0: any")
    what.add_argument("--prompts", type=Path, help="answer this JSONL file")
    parser.add_argument("--out", type=Path, help="with --prompts: the JSONL file of the answers")
    parser.add_argument("--together", type=int, default=TOGETHER, help="sequences in work at once")
    parser.add_argument(
        "--places", type=int, default=PLACES, help="with --port: tokens of a prompt and its answer"
    )
    parser.add_argument(
        "--waiting", type=int, default=WAITING, help="with --port: requests that may wait"
    )
    parser.add_argument("--name", help="the model's name; otherwise that of the file")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    args = parser.parse_args(arguments)
    if (args.prompts is None) != (args.out is None):
        parser.error("--prompts and --out go together")
    if min(args.together, args.places, args.waiting) < 1:
        parser.error("--together, --places and --waiting are at least 1")

    def progress(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    try:
        started = time.monotonic()
        file = open_gguf(args.model)
        places = min(args.places, int(file.metadata.get("qwen2.context_length", args.places)))
        model = load_model(file, args.name)
        progress(f"{model.name} on {DEVICE}: loaded in {time.monotonic() - started:.0f} s")
        if args.prompts is not None:
            answer_file(model, args.prompts, args.out, together=args.together, progress=progress)
        else:
            options = {"together": args.together, "places": places, "waiting": args.waiting}
            serve(model, args.port, **options)
    except SufficeError as error:
        progress(f"error: {error}" + (f"\n  {error.hint}" if error.hint else ""))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads of waiting clients must not keep the process alive
