"""A language model behind any server that speaks OpenAI's protocol: OpenAI's own, llama.cpp, vLLM, Ollama, LM Studio.

    model = OpenAIModel("gpt-4o-mini")                                            the key comes from OPENAI_API_KEY
    model = OpenAIModel("smollm2", base_url="http://127.0.0.1:8080/v1")           a server of your own needs none
    model = OpenAIModel("gpt-4o-mini", pace=Pace(requests=500, tokens=200_000), prices=Prices(0.15, 0.60))

One prompt is one request with a deadline for the whole of it, however slowly the server drips; several prompts go side by side.
A failure is a ModelError that says whether trying again may help, and never shows the key. `CachedModel` remembers answers on
disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
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

__all__ = ["CachedModel", "OpenAIModel", "RateLimit"]

NO_KEY = "none"  # the client insists on one; servers of one's own ignore it
MAX_ANSWER_BYTES = 16 * 2**20  # bytes that are read of one answer
MAX_SHOWN = 2000  # characters of an answer that it is shown again, to mend it
REPAIR_PROMPT = (
    "That was not one JSON document that fits. Answer again, shorter, with the JSON alone."
)


class OpenAIModel:
    """Implements the LanguageModel port. `timeout_s` bounds one request with its retries and its repair together.

    `retries`: tries after a failure that may pass. `repairs`: requests to put an answer into JSON that is none. `concurrency`:
    prompts of one batch that are asked at once. `extra` goes into every request as it is, for servers that know more than the
    protocol.
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
        pace: RateLimit | None = None,
        prices: Prices | None = None,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int | None = 42,
        extra: Mapping[str, Any] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not name.strip():
            raise InputError("the model has no name", hint="name the model as its server does")
        if timeout_s <= 0 or retries < 0 or repairs < 0 or concurrency < 1 or max_tokens < 1:
            numbers = f"timeout_s is {timeout_s}, retries {retries}, repairs {repairs}, concurrency {concurrency}"
            raise InputError(
                f"{numbers}, max_tokens {max_tokens}: too small",
                hint="retries and repairs may be 0, the others not",
            )
        if base_url is not None and not (_safe_url(base_url) or "").startswith(
            ("http://", "https://")
        ):
            raise InputError(
                f"base_url is {_safe_url(base_url)!r}, no address",
                hint="for example http://127.0.0.1:8080/v1",
            )
        self.name, self.base_url, self.timeout_s = name, base_url, timeout_s
        self.retries, self.repairs, self.concurrency = retries, repairs, concurrency
        self.pace, self.prices = pace or RateLimit(), prices or Prices()
        self._key = api_key or os.environ.get("OPENAI_API_KEY") or NO_KEY
        self._settings = {
            "model": name,
            "max_tokens": max_tokens,
            "temperature": temperature,
            **(extra or {}),
        }
        if seed is not None:
            self._settings["seed"] = seed
        self._sleep = sleep
        self._client = _client(self._key, base_url, timeout_s)
        self._known = _ServerState()  # shared by the copies that `within` makes
        self.last_tokens: tuple[int, int] | None = (
            None  # of the last completion, in and out, where the server said
        )

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={_safe_url(self.base_url)!r})"

    @property
    def spent(self) -> Cost:
        """What this model has taken since it was made: requests that were answered, the tokens its server counted, money."""
        return self._known.cost(self.prices)

    def within(self, seconds: float) -> OpenAIModel:
        """The same model, with at most so many seconds for one request and its retries."""
        hurried = copy(self)
        hurried.timeout_s = max(min(self.timeout_s, seconds), 0.01)
        return hurried

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        """One completion a prompt, in order; with a schema each is a JSON document. ModelError at the first that fails."""
        said: dict[int, str] = {}
        for place, answer in self.as_they_come(prompts, schema=schema):
            if isinstance(answer, ModelError):
                raise answer
            said[place] = answer
        return [said[place] for place in range(len(prompts))]

    def as_they_come(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[int, str | ModelError]]:
        """The place of each prompt and its completion, or what went wrong with it, as soon as it is there."""
        self.last_tokens = (0, 0) if prompts else None
        used: list[tuple[int, int] | None] = []
        calls = [partial(self._complete, prompt, schema, used) for prompt in prompts]
        for answered in run_concurrently(calls, most=self.concurrency, seconds=self.timeout_s):
            whole = [one for one in used if one is not None]
            counted = len(whole) == len(used) and used
            self.last_tokens = (
                (sum(one[0] for one in whole), sum(one[1] for one in whole)) if counted else None
            )
            yield answered

    def _complete(
        self, prompt: str, schema: Mapping[str, Any] | None, used: list[tuple[int, int] | None]
    ) -> str:
        """One prompt, and where its answer is no JSON but should be, once more with that answer shown."""
        until = time.monotonic() + self.timeout_s
        messages = [{"role": "user", "content": _encodable(prompt)}]
        for _ in range(self.repairs + 1):
            text, ending, tokens = call_with_retries(
                partial(self._request, messages, schema),
                retries=self.retries,
                seconds=until - time.monotonic(),
                sleep=self._sleep,
            )
            used.append(tokens)
            found = text if schema is None else extract_json(text)
            if found is not None:
                return found
            messages = [
                messages[0],
                {"role": "assistant", "content": _encodable(text[:MAX_SHOWN])},
                {"role": "user", "content": REPAIR_PROMPT},
            ]
        cut = (
            f"; it was cut off at {self._settings['max_tokens']} tokens"
            if ending == "length"
            else ""
        )
        raise ModelError(
            f"{self.name} did not answer in JSON: {self._safe(text)[:80]!r}{cut}",
            hint="raise max_tokens, or take a better model",
        )

    # ---------------------------------------------------------------------------------------------------- one request

    def _request(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any] | None,
        seconds: float,
    ) -> tuple[str, str, tuple[int, int] | None]:
        """The words of the answer, how it ended, and the tokens in and out where the server counted."""
        import openai

        if seconds <= 0:
            raise timeout_error(self.timeout_s)
        request: dict[str, Any] = {**self._settings, "messages": messages}
        if schema is not None and self._known.takes_schema:
            wanted = {"name": "answer", "schema": dict(schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": wanted}
        until = time.monotonic() + seconds
        coming = sum(estimate_tokens(one["content"]) for one in messages) + int(
            self._settings["max_tokens"]
        )
        settle = self.pace.wait(coming, seconds=seconds)
        try:
            answer = self._sent(request, until)
            choice = answer["choices"][0]
            text, ending, tokens = (
                choice["message"]["content"],
                str(choice.get("finish_reason")),
                _usage(answer),
            )
        except openai.BadRequestError as error:
            if "response_format" not in request:
                raise self._failed(error) from None
            said = self._request(messages, None, until - time.monotonic())
            self._known.takes_schema = (
                False  # an old server: the prompt alone must do, and the answer is checked anyway
            )
            return said
        except openai.OpenAIError as error:
            raise self._failed(error) from None
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            raise self._failed(error) from None  # it answered, but not in the protocol
        settle(sum(tokens) if tokens else coming)
        self._known.count(tokens)
        if not isinstance(text, str) or not text.strip():
            raise ModelError(f"{self.name} answered with nothing", retryable=True)
        return text, ending, tokens

    def _sent(self, request: Mapping[str, Any], until: float) -> Any:
        """The server's answer as JSON values: read piece by piece, until the deadline and up to a size."""
        left = max(until - time.monotonic(), 0.001)
        body = bytearray()
        with self._client.chat.completions.with_streaming_response.create(
            **request, timeout=left
        ) as response:
            pieces = iter(response.iter_bytes())
            while piece := self._next(pieces):
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise ValueError(f"its answer has more than {MAX_ANSWER_BYTES:,} bytes")
                if time.monotonic() > until:
                    raise timeout_error(self.timeout_s)
        return json.loads(body)

    def _next(self, pieces: Iterator[bytes]) -> bytes:
        try:
            return next(pieces, b"")
        except Exception as error:  # noqa: BLE001 - whatever the client's transport raises when a connection breaks
            raise self._failed(error, retryable=True) from None

    def _failed(self, error: Exception, *, retryable: bool = False) -> ModelError:
        """The failure in our words. The client's clock and ours race: who wins must not change what is said."""
        if "Timeout" in type(error).__name__:
            return timeout_error(self.timeout_s)
        where = f" at {_safe_url(self.base_url)}" if self.base_url else ""
        cause = (
            f" {error.__cause__}" if error.__cause__ is not None else ""
        )  # "connection refused", not just "error"
        message = f"{self.name}{where}: {type(error).__name__}: {self._safe(' '.join(f'{error}{cause}'.split()))[:200]}"
        hint, pause = "check that the server runs, and its address and model name", 0.0
        if (response := getattr(error, "response", None)) is not None:
            retryable, pause = _is_retryable(error), retry_after(response.headers, time.time())
            if response.status_code in (401, 403):
                hint = "set OPENAI_API_KEY to a key of this server"
        elif "Connection" in type(error).__name__:
            retryable = True
        return (
            ServerBusyError(message, hint=hint, pause=pause)
            if retryable
            else ModelError(message, hint=hint)
        )

    def _safe(self, text: str) -> str:
        return text if self._key == NO_KEY else text.replace(self._key, "[key]")


class _ServerState:
    """What was learned of a server, and what it was paid for, by all who talk to it at once."""

    def __init__(self) -> None:
        self.takes_schema = True
        self._lock = threading.Lock()
        self._requests = self._in = self._out = 0

    def count(self, tokens: tuple[int, int] | None) -> None:
        with self._lock:
            self._requests += 1
            self._in, self._out = (
                (self._in + tokens[0], self._out + tokens[1]) if tokens else (self._in, self._out)
            )

    def cost(self, prices: Prices) -> Cost:
        with self._lock:
            money = (self._in * prices.tokens_in + self._out * prices.tokens_out) / 1e6
            return Cost(calls=self._requests, tokens=self._in + self._out, money=round(money, 9))


def _client(key: str, base_url: str | None, timeout_s: float) -> Any:
    try:
        import openai
    except ImportError as error:
        raise MissingExtraError("asking a language model", extra="llm") from error
    try:
        return openai.OpenAI(api_key=key, base_url=base_url, timeout=timeout_s, max_retries=0)
    except Exception as error:  # noqa: BLE001 - the client and what it is built on raise many kinds
        raise InputError(
            f"no model server can be reached by base_url {_safe_url(base_url)!r}: {type(error).__name__}",
            hint="an address is like http://127.0.0.1:8080/v1",
        ) from None


def _safe_url(base_url: str | None) -> str | None:
    """An address fit to be shown: without the name and password, or the key, that one may hold."""
    if base_url is None:
        return None
    try:
        parts = urlsplit(base_url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "(an address that cannot be read)"
    return f"{parts.scheme}://{host}{parts.path}" if host else base_url.partition("?")[0]


def _is_retryable(error: Any) -> bool:
    """May the same request succeed later? The server may say so itself; an account that is empty stays empty."""
    said = error.response.headers.get("x-should-retry")
    if said in ("true", "false"):
        return bool(said == "true")
    if getattr(error, "code", None) == "insufficient_quota":
        return False
    return error.status_code in (408, 409, 429) or error.status_code >= 500


def _usage(answer: Any) -> tuple[int, int] | None:
    """Tokens in and out, where the server counted them and the counts make sense."""
    used = answer.get("usage")
    counts = [
        used.get(name) if isinstance(used, dict) else None
        for name in ("prompt_tokens", "completion_tokens")
    ]
    spent, made = (one if isinstance(one, int) and one >= 0 else None for one in counts)
    return None if spent is None or made is None else (spent, made)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


class CachedModel:
    """A language model that is asked the same thing only once: answers are kept in an SQLite file, under hashes of the prompts.

    `name` tells models apart in one file; it is the model's own unless given.
    """

    def __init__(self, model: LanguageModel, path: Path | str, *, name: str | None = None) -> None:
        self.model, self.path = model, Path(path)
        self.name = name or component_name(model)
        self.prices = getattr(model, "prices", None)
        self.last_tokens: tuple[int, int] | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as db, db:
                db.execute(
                    "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID"
                )
        except (OSError, sqlite3.Error) as error:
            raise DataError(
                f"{self.path} cannot hold answers: {error}",
                hint="remove the file, or choose another",
            ) from error

    def within(self, seconds: float) -> CachedModel:
        """The same answers, and for new ones the model within so many seconds, where it can be held to them."""
        hurried = copy(self)
        hurry = getattr(self.model, "within", None)
        hurried.model = self.model if hurry is None else hurry(seconds)
        return hurried

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        """One completion a prompt, from the file where it is known. Each new answer is kept as it comes."""
        keys = [_cache_key(self.name, prompt, schema) for prompt in prompts]
        found: dict[str, str] = {}
        self.last_tokens = (0, 0)  # what is remembered costs nothing
        with closing(self._open()) as db:
            for key in dict.fromkeys(keys):
                if (
                    row := db.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
                ) is not None:
                    found[key] = row[0]
            new = {key: prompt for key, prompt in zip(keys, prompts) if key not in found}
            failed: ModelError | None = None
            for place, answer in _stream_answers(self.model, list(new.values()), schema):
                self.last_tokens = getattr(self.model, "last_tokens", None)
                if isinstance(answer, ModelError):
                    failed = failed or answer
                    continue
                key = list(new)[place]
                found[key] = _encodable(answer)
                with db:
                    db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, found[key]))
        if failed is not None:
            raise failed
        return [found[key] for key in keys]

    def forget(self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None) -> None:
        """Ask these anew next time: their answers were no good."""
        with closing(self._open()) as db, db:
            db.executemany(
                "DELETE FROM answers WHERE key = ?",
                [(_cache_key(self.name, prompt, schema),) for prompt in prompts],
            )

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=30)


def _stream_answers(
    model: LanguageModel, prompts: Sequence[str], schema: Mapping[str, Any] | None
) -> Iterator[tuple[int, str | ModelError]]:
    """Several at once where the model can do that, else one after the other until one fails."""
    if isinstance(model, OpenAIModel):
        yield from model.as_they_come(prompts, schema=schema)
        return
    for place, prompt in enumerate(prompts):
        yield place, model.complete([prompt], schema=schema)[0]


def _cache_key(name: str, prompt: str, schema: Mapping[str, Any] | None) -> str:
    text = json.dumps([name, prompt, schema], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
