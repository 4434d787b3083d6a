"""A language model behind any OpenAI-compatible server: llama.cpp, vLLM, Ollama, LM Studio.

    model = OpenAIModel("gpt-4o-mini")                                      key: OPENAI_API_KEY
    model = OpenAIModel("smollm2", base_url="http://127.0.0.1:8080/v1")     your server needs none
    model = OpenAIModel("gpt-4o-mini", rate_limit=RateLimit(requests=500), prices=Prices(0.15, 0.6))

Each prompt is one request with one deadline for everything, however slowly the server answers;
several prompts run concurrently. A failure is a ModelError that says whether a retry may help and
never shows the key. `CachedModel` stores answers on disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from suffice.answering.budget import Prices, estimate_tokens
from suffice.answering.prompting import extract_json
from suffice.errors import DataError, InputError, MissingExtraError, ModelError
from suffice.integrations.retry import (
    RateLimit,
    ServerBusyError,
    call_with_retries,
    retry_after,
    run_concurrently,
    timeout_error,
)
from suffice.protocols import LanguageModel, component_name
from suffice.types import Cost

__all__ = ["CachedModel", "OpenAIModel", "RateLimit", "ScoredAnswer"]

NO_KEY = "none"  # the client requires one; your own server ignores it
MAX_ANSWER_BYTES = 16 * 2**20
MAX_SHOWN = 2000  # characters of an invalid answer shown to the model for repair
REPAIR_PROMPT = (
    "That was not one JSON document that fits. Answer again, shorter, with the JSON alone."
)
MAX_SCORED = 32  # tokens of an answer whose log-probabilities are kept
URL_HINT = "for example http://127.0.0.1:8080/v1"

_LOGPROBS: Mapping[str, Any] = {"logprobs": True, "top_logprobs": 10}
Schema = Mapping[str, Any] | None
TokenCounts = tuple[int, int]  # in and out


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """A completion, and the log-probabilities of its first tokens and their alternatives."""

    text: str
    scores: tuple[Mapping[str, float], ...]  # token -> log-probability; empty if there are none
    tokens: TokenCounts | None  # in and out, if the server counted
    finish_reason: str = ""


class OpenAIModel:
    """A LanguageModel. `timeout_s` bounds one prompt with its retries and repairs together.

    `retries`: retries after a temporary failure. `repairs`: requests to turn an answer into the
    required JSON. `concurrency`: prompts of a batch sent at once. `extra` is added to every
    request, for servers with more options.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 2,
        repairs: int = 1,
        concurrency: int = 4,
        rate_limit: RateLimit | None = None,
        prices: Prices | None = None,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int | None = 42,
        extra: Mapping[str, Any] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not name.strip():
            raise InputError("the model has no name", hint="name the model as its server does")
        if timeout_s <= 0 or min(retries, repairs) < 0 or min(concurrency, max_tokens) < 1:
            counts = f"retries {retries}, repairs {repairs}, concurrency {concurrency}"
            message = f"timeout_s is {timeout_s}, {counts}, max_tokens {max_tokens}: too small"
            raise InputError(message, hint="retries and repairs may be 0, the others not")
        url = _safe_url(base_url)
        if url is not None and not url.startswith(("http://", "https://")):
            raise InputError(f"base_url is {url!r}, which is not an address", hint=URL_HINT)
        self.name, self.base_url, self.timeout_s = name, base_url, timeout_s
        self.retries, self.repairs, self.concurrency = retries, repairs, concurrency
        self.rate_limit, self.prices = rate_limit or RateLimit(), prices or Prices()
        self._key = api_key or os.environ.get("OPENAI_API_KEY") or NO_KEY
        settings = {"model": name, "max_tokens": max_tokens, "temperature": temperature}
        chosen = {} if seed is None else {"seed": seed}
        self._settings: dict[str, Any] = {**settings, **(extra or {}), **chosen}
        self._sleep = sleep
        self._client = _client(self._key, base_url, timeout_s)
        self._server = _ServerState()  # shared by the copies made by `within`
        self.last_tokens: TokenCounts | None = None  # of the last completion, if counted

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={_safe_url(self.base_url)!r})"

    @property
    def spent(self) -> Cost:
        """Answered requests, counted tokens and money since the model was created."""
        return self._server.cost(self.prices)

    def within(self, seconds: float) -> OpenAIModel:
        """The same model with at most this many seconds per prompt."""
        hurried = copy(self)
        hurried.timeout_s = max(min(self.timeout_s, seconds), 0.01)
        return hurried

    def complete(self, prompts: Sequence[str], *, schema: Schema = None) -> list[str]:
        """A completion for each prompt, as JSON with a schema. ModelError at the first failure."""
        answers: dict[int, str] = {}
        for index, answer in self.iter_completions(prompts, schema=schema):
            if isinstance(answer, ModelError):
                raise answer
            answers[index] = answer
        return [answers[index] for index in range(len(prompts))]

    def iter_completions(
        self, prompts: Sequence[str], *, schema: Schema = None
    ) -> Iterator[tuple[int, str | ModelError]]:
        """The index of each prompt with its completion or error, as soon as it is available."""
        self.last_tokens = (0, 0) if prompts else None
        used: list[TokenCounts | None] = []
        calls = [partial(self._complete, prompt, schema, used) for prompt in prompts]
        for result in run_concurrently(calls, limit=self.concurrency, seconds=self.timeout_s):
            counted = [one for one in used if one is not None]
            complete = len(counted) == len(used) and used
            totals = sum(one[0] for one in counted), sum(one[1] for one in counted)
            self.last_tokens = totals if complete else None
            yield result

    def iter_scored(
        self, prompts: Sequence[str], *, max_tokens: int | None = None
    ) -> Iterator[tuple[int, ScoredAnswer | ModelError]]:
        """The index of each prompt with its completion (scored if the server can) or error."""
        settings = {} if max_tokens is None else {"max_tokens": max_tokens}

        def ask(prompt: str) -> ScoredAnswer:
            messages = [{"role": "user", "content": _encodable(prompt)}]
            return call_with_retries(
                partial(self._request, messages, None, more={**settings, **_LOGPROBS}),
                retries=self.retries,
                seconds=self.timeout_s,
                sleep=self._sleep,
            )

        calls = [partial(ask, prompt) for prompt in prompts]
        return run_concurrently(calls, limit=self.concurrency, seconds=self.timeout_s)

    def _complete(self, prompt: str, schema: Schema, used: list[TokenCounts | None]) -> str:
        """Complete one prompt; if the answer is not the required JSON, ask again and show it."""
        deadline = time.monotonic() + self.timeout_s
        question = {"role": "user", "content": _encodable(prompt)}
        messages = [question]
        for _ in range(self.repairs + 1):
            answer = call_with_retries(
                partial(self._request, messages, schema),
                retries=self.retries,
                seconds=deadline - time.monotonic(),
                sleep=self._sleep,
            )
            used.append(answer.tokens)
            text = answer.text if schema is None else extract_json(answer.text)
            if text is not None:
                return text
            shown = {"role": "assistant", "content": _encodable(answer.text[:MAX_SHOWN])}
            messages = [question, shown, {"role": "user", "content": REPAIR_PROMPT}]
        limit = self._settings["max_tokens"]
        cut = f"; it was cut off at {limit} tokens" if answer.finish_reason == "length" else ""
        raise ModelError(
            f"{self.name} did not answer in JSON: {self._without_key(answer.text)[:80]!r}{cut}",
            hint="raise max_tokens, or use a better model",
        )

    # --------------------------------------------------------------------------------- one request

    def _request(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Schema,
        seconds: float,
        *,
        more: Mapping[str, Any] | None = None,
    ) -> ScoredAnswer:
        import openai

        if seconds <= 0:
            raise timeout_error(self.timeout_s)
        asked = {k: v for k, v in (more or {}).items() if self._server.takes(k)}
        request: dict[str, Any] = {**self._settings, **asked, "messages": messages}
        if schema is not None and self._server.takes_schema:
            wanted = {"name": "answer", "schema": dict(schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": wanted}
        deadline = time.monotonic() + seconds
        expected = sum(estimate_tokens(one["content"]) for one in messages)
        expected += int(self._settings["max_tokens"])
        settle = self.rate_limit.wait(expected, seconds=seconds)
        try:
            sent = self._send(request, deadline)
            choice = sent["choices"][0]
            text, tokens = choice["message"]["content"], _usage(sent)
            finish_reason, scores = str(choice.get("finish_reason")), _token_scores(choice)
        except openai.BadRequestError as error:
            if "response_format" not in request and "logprobs" not in request:
                raise self._error(error) from None
            # An old server: send only the prompt; the answer is checked anyway.
            plain = {k: v for k, v in (more or {}).items() if k not in _LOGPROBS}
            answer = self._request(messages, None, deadline - time.monotonic(), more=plain)
            self._server.takes_schema &= "response_format" not in request
            self._server.takes_logprobs &= "logprobs" not in request
            return answer
        except openai.OpenAIError as error:
            raise self._error(error) from None
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            raise self._error(error) from None  # does not follow the protocol
        settle(sum(tokens) if tokens else expected)
        self._server.count(tokens)
        if not isinstance(text, str) or not text.strip():
            raise ModelError(f"{self.name} returned an empty answer", retryable=True)
        return ScoredAnswer(text, scores, tokens, finish_reason)

    def _send(self, request: Mapping[str, Any], deadline: float) -> Any:
        """The answer as JSON values, read in pieces up to the deadline and a maximum size."""
        left = max(deadline - time.monotonic(), 0.001)
        body = bytearray()
        create = self._client.chat.completions.with_streaming_response.create
        with create(**request, timeout=left) as response:
            pieces = iter(response.iter_bytes())
            while piece := self._next(pieces):
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise ValueError(f"its answer has more than {MAX_ANSWER_BYTES:,} bytes")
                if time.monotonic() > deadline:
                    raise timeout_error(self.timeout_s)
        return json.loads(body)

    def _next(self, pieces: Iterator[bytes]) -> bytes:
        try:
            return next(pieces, b"")
        except Exception as error:  # noqa: BLE001 - the transport may raise anything
            raise self._error(error, retryable=True) from None

    def _error(self, error: Exception, *, retryable: bool = False) -> ModelError:
        """The failure as a ModelError. The client's timeout reads like ours: either may win."""
        if "Timeout" in type(error).__name__:
            return timeout_error(self.timeout_s)
        where = f" at {_safe_url(self.base_url)}" if self.base_url else ""
        cause = f" {error.__cause__}" if error.__cause__ is not None else ""
        text = self._without_key(" ".join(f"{error}{cause}".split()))[:200]
        message = f"{self.name}{where}: {type(error).__name__}: {text}"
        hint, pause = "check that the server runs, and its address and model name", 0.0
        if (response := getattr(error, "response", None)) is not None:
            retryable, pause = _is_retryable(error), retry_after(response.headers, time.time())
            if response.status_code in (401, 403):
                hint = "set OPENAI_API_KEY to a key of this server"
            elif response.is_redirect:
                hint = "redirects are not followed: give the address that it redirects to"
        elif "Connection" in type(error).__name__:
            retryable = True
        if retryable:
            return ServerBusyError(message, hint=hint, pause=pause)
        return ModelError(message, hint=hint)

    def _without_key(self, text: str) -> str:
        return text if self._key == NO_KEY else text.replace(self._key, "[key]")


class _ServerState:
    """What is known about a server and was spent on it, shared between threads."""

    def __init__(self) -> None:
        self.takes_schema = self.takes_logprobs = True
        self._lock = threading.Lock()
        self._requests = self._in = self._out = 0

    def takes(self, option: str) -> bool:
        return self.takes_logprobs or option not in _LOGPROBS

    def count(self, tokens: TokenCounts | None) -> None:
        used_in, used_out = tokens or (0, 0)
        with self._lock:
            self._requests += 1
            self._in, self._out = self._in + used_in, self._out + used_out

    def cost(self, prices: Prices) -> Cost:
        with self._lock:
            money = (self._in * prices.tokens_in + self._out * prices.tokens_out) / 1e6
            tokens = self._in + self._out
            return Cost(calls=self._requests, tokens=tokens, money=round(money, 9))


def _client(key: str, base_url: str | None, timeout_s: float) -> Any:
    try:
        import openai
    except ImportError as error:
        raise MissingExtraError("asking a language model", extra="llm") from error
    try:
        # A redirect would send the texts, and more, to an address that nobody chose.
        transport = openai.DefaultHttpxClient(follow_redirects=False)
        client = openai.OpenAI(
            api_key=key,
            base_url=base_url,
            timeout=timeout_s,
            max_retries=0,
            http_client=transport,
        )
        weakref.finalize(client, transport.close)  # a client closes only its own transport
        client.chat.completions  # noqa: B018 - loaded now, and not within the first deadline
        return client
    except Exception as error:  # noqa: BLE001 - the client and its transport raise many kinds
        url, kind = _safe_url(base_url), type(error).__name__
        raise InputError(f"base_url {url!r} cannot be used: {kind}", hint=URL_HINT) from None


def _safe_url(base_url: str | None) -> str | None:
    """The address without user, password or key."""
    if base_url is None:
        return None
    try:
        parts = urlsplit(base_url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "(an address that cannot be read)"
    return f"{parts.scheme}://{host}{parts.path}" if host else base_url.partition("?")[0]


def _is_retryable(error: Any) -> bool:
    """May the same request succeed later? The server may say so; an empty account stays empty."""
    advice = error.response.headers.get("x-should-retry")
    if advice in ("true", "false"):
        return bool(advice == "true")
    if getattr(error, "code", None) == "insufficient_quota":
        return False
    return error.status_code in (408, 409, 429) or error.status_code >= 500


def _usage(answer: Any) -> TokenCounts | None:
    """Tokens in and out, if the server counted them and the counts make sense."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    used_in, used_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(used_in, int) or not isinstance(used_out, int) or min(used_in, used_out) < 0:
        return None
    return used_in, used_out


def _token_scores(choice: Any) -> tuple[dict[str, float], ...]:
    """The log-probabilities of the first tokens and their alternatives, if they make sense."""
    scored = choice.get("logprobs")
    content = scored.get("content") if isinstance(scored, dict) else None
    return tuple(map(_token_score, content[:MAX_SCORED])) if isinstance(content, list) else ()


def _token_score(one: Any) -> dict[str, float]:
    """The token first, then its alternatives; empty if it makes no sense."""
    found: dict[str, float] = {}
    others = one.get("top_logprobs") if isinstance(one, dict) else None
    for each in (one, *(others if isinstance(others, list) else ())):
        if not isinstance(each, dict):
            continue
        token, value = each.get("token"), each.get("logprob")
        if not isinstance(token, str) or not isinstance(value, int | float):
            continue
        if not isinstance(value, bool) and value <= 1e-6:
            found.setdefault(token, float(value))
    return found


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


class CachedModel:
    """A language model whose answers are cached in an SQLite file, by a hash of name and prompt.

    `name` distinguishes models in one file; by default it is the model's own name.
    """

    def __init__(self, model: LanguageModel, path: Path | str, *, name: str | None = None) -> None:
        self.model, self.path = model, Path(path)
        self.name = name or component_name(model)
        self.prices = getattr(model, "prices", None)
        self.last_tokens: TokenCounts | None = None
        table = "answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as db, db:
                db.execute(f"CREATE TABLE IF NOT EXISTS {table}")
        except (OSError, sqlite3.Error) as error:
            message = f"{self.path} cannot hold answers: {error}"
            raise DataError(message, hint="remove the file, or choose another") from error

    def within(self, seconds: float) -> CachedModel:
        """The same cache, with at most this many seconds for a new prompt if the model can."""
        hurried = copy(self)
        within = getattr(self.model, "within", None)
        hurried.model = self.model if within is None else within(seconds)
        return hurried

    def complete(self, prompts: Sequence[str], *, schema: Schema = None) -> list[str]:
        """A completion for each prompt, cached if known. Each new answer is stored immediately."""
        keys = [_cache_key(self.name, prompt, schema) for prompt in prompts]
        found: dict[str, str] = {}
        self.last_tokens = (0, 0)  # cached answers cost nothing
        with closing(self._open()) as db:
            for key in dict.fromkeys(keys):
                query = "SELECT answer FROM answers WHERE key = ?"
                if (row := db.execute(query, (key,)).fetchone()) is not None:
                    found[key] = row[0]
            new = {key: prompt for key, prompt in zip(keys, prompts) if key not in found}
            failure: ModelError | None = None
            for index, answer in _iter_answers(self.model, list(new.values()), schema):
                self.last_tokens = getattr(self.model, "last_tokens", None)
                if isinstance(answer, ModelError):
                    failure = failure or answer
                    continue
                key = list(new)[index]
                found[key] = _encodable(answer)
                with db:
                    db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, found[key]))
        if failure is not None:
            raise failure
        return [found[key] for key in keys]

    def forget(self, prompts: Sequence[str], *, schema: Schema = None) -> None:
        """Remove these answers, so that the model is asked again."""
        keys = [(_cache_key(self.name, prompt, schema),) for prompt in prompts]
        with closing(self._open()) as db, db:
            db.executemany("DELETE FROM answers WHERE key = ?", keys)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=30)


def _iter_answers(
    model: LanguageModel, prompts: Sequence[str], schema: Schema
) -> Iterator[tuple[int, str | ModelError]]:
    """Concurrently if the model supports it, else one by one until one fails."""
    if isinstance(model, OpenAIModel):
        yield from model.iter_completions(prompts, schema=schema)
        return
    for index, prompt in enumerate(prompts):
        yield index, model.complete([prompt], schema=schema)[0]


def _cache_key(name: str, prompt: str, schema: Schema) -> str:
    text = json.dumps([name, prompt, schema], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
