"""A language model behind any OpenAI-compatible server: llama.cpp, vLLM, Ollama, LM Studio.

    model = OpenAIModel("gpt-4o-mini")                                      key: OPENAI_API_KEY
    model = OpenAIModel("smollm2", base_url="http://127.0.0.1:8080/v1")     your server needs none

A thin wrapper of the official `openai` client, which retries and times out. Each prompt is one
conversation with one deadline, however slowly the server answers; several run concurrently. A
failure is a ModelError that says whether a retry may help and never shows the key. `CachedModel`
stores answers on disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from suffice.answering.prompting import extract_json
from suffice.errors import DataError, InputError, MissingExtraError, ModelError
from suffice.protocols import LanguageModel, component_name

__all__ = ["CachedModel", "Completion", "OpenAIModel"]

NO_KEY = "none"  # the client requires one; your own server ignores it
MAX_SHOWN = 2000  # characters of an invalid answer shown to the model for repair
REPAIR_PROMPT = (
    "That was not one JSON document that fits. Answer again, shorter, with the JSON alone."
)
TOP_LOGPROBS = 10
# What reading an answer that does not follow the protocol raises.
OFF_PROTOCOL = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
URL_HINT = "for example http://127.0.0.1:8080/v1"

Schema = Mapping[str, Any] | None
TokenCounts = tuple[int, int]  # in and out


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer; `logprobs` as the server gives them, if it was asked and can."""

    text: str
    finish_reason: str = ""
    logprobs: Any = None


class OpenAIModel:
    """A LanguageModel. `timeout_s` bounds one prompt with its retries and repairs together.

    `retries`: the client's, after temporary failures. `repairs`: requests to turn an answer into
    the required JSON. `concurrency`: prompts of a batch sent at once. `extra` is added to every
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
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int | None = 42,
        extra: Mapping[str, Any] | None = None,
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
        self.repairs, self.concurrency, self.max_tokens = repairs, concurrency, max_tokens
        self.temperature, self.seed, self.extra = temperature, seed, dict(extra or {})
        self._key = api_key or os.environ.get("OPENAI_API_KEY") or NO_KEY
        self._client = _client(self._key, base_url, retries)
        self._refused: set[str] = set()  # options that the server does not know
        self.last_tokens: TokenCounts | None = None  # of the last completion, if counted

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={_safe_url(self.base_url)!r})"

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
            answers[index] = answer.text
        return [answers[index] for index in range(len(prompts))]

    def iter_completions(
        self, prompts: Sequence[str], *, schema: Schema = None, logprobs: bool = False
    ) -> Iterator[tuple[int, Completion | ModelError]]:
        """The index of each prompt with its completion or error, as soon as it is available."""
        self.last_tokens = (0, 0)
        used: list[TokenCounts | None] = []  # also of answers that could not be used
        calls = [partial(self._complete, prompt, schema, logprobs, used) for prompt in prompts]
        for result in run_concurrently(calls, self.concurrency, self.timeout_s):
            counted = [one for one in used if one is not None]
            totals = sum(one[0] for one in counted), sum(one[1] for one in counted)
            self.last_tokens = totals if counted and len(counted) == len(used) else None
            yield result

    def _complete(
        self, prompt: str, schema: Schema, logprobs: bool, used: list[TokenCounts | None]
    ) -> Completion:
        """Complete one prompt; if the answer is not the required JSON, ask again and show it."""
        question = {"role": "user", "content": _encodable(prompt)}
        messages = [question]
        for _ in range(self.repairs + 1):
            answer = self._request(messages, schema, logprobs, used)
            text = answer.text if schema is None else extract_json(answer.text)
            if text is not None:
                return replace(answer, text=text)
            shown = {"role": "assistant", "content": _encodable(answer.text[:MAX_SHOWN])}
            messages = [question, shown, {"role": "user", "content": REPAIR_PROMPT}]
        limit = self.max_tokens
        cut = f"; it was cut off at {limit} tokens" if answer.finish_reason == "length" else ""
        raise ModelError(
            f"{self.name} did not answer in JSON: {self._without_key(answer.text)[:80]!r}{cut}",
            hint="raise max_tokens, or use a better model",
        )

    def _request(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Schema,
        logprobs: bool,
        used: list[TokenCounts | None],
    ) -> Completion:
        import openai

        optional: dict[str, Any] = {}
        if schema is not None:
            wanted = {"name": "answer", "schema": dict(schema)}
            optional["response_format"] = {"type": "json_schema", "json_schema": wanted}
        if logprobs:
            optional |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        body = {name: value for name, value in optional.items() if name not in self._refused}
        send = partial(
            self._client.chat.completions.create,
            model=self.name,
            messages=messages,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            seed=openai.omit if self.seed is None else self.seed,
            timeout=self.timeout_s,
        )
        try:
            try:
                answer = send(extra_body={**self.extra, **body})
            except openai.BadRequestError:
                if not body:
                    raise
                # An old server: send only the prompt; the answer is checked anyway.
                answer = send(extra_body=self.extra)
                self._refused |= body.keys()
            choice = answer.choices[0]
            text, finish_reason = choice.message.content, str(choice.finish_reason)
            scores = getattr(choice, "logprobs", None)
        except (openai.OpenAIError, *OFF_PROTOCOL) as error:
            raise self._error(error) from None
        used.append(_token_counts(answer))
        if not isinstance(text, str) or not text.strip():
            raise ModelError(f"{self.name} returned an empty answer", retryable=True)
        return Completion(text, finish_reason, scores)

    def _error(self, error: Exception) -> ModelError:
        """The failure as a ModelError. The client's timeout reads like ours: either may win."""
        import openai

        if isinstance(error, openai.APITimeoutError):
            return _timeout_error(self.timeout_s)
        retryable = isinstance(error, openai.APIConnectionError)
        hint = "check that the server runs, and its address and model name"
        if isinstance(error, openai.APIStatusError):
            empty_account = error.code == "insufficient_quota"
            retryable = error.status_code in (408, 409, 429) or error.status_code >= 500
            retryable = retryable and not empty_account
            if error.status_code in (401, 403):
                hint = "set OPENAI_API_KEY to a key of this server"
            elif error.response.is_redirect:
                hint = "redirects are not followed: give the address that it redirects to"
        where = f" at {_safe_url(self.base_url)}" if self.base_url else ""
        cause = f" {error.__cause__}" if error.__cause__ is not None else ""
        text = self._without_key(" ".join(f"{error}{cause}".split()))[:200]
        message = f"{self.name}{where}: {type(error).__name__}: {text}"
        return ModelError(message, hint=hint, retryable=retryable)

    def _without_key(self, text: str) -> str:
        return text if self._key == NO_KEY else text.replace(self._key, "[key]")


def run_concurrently(
    calls: Sequence[Callable[[], Completion]], limit: int, seconds: float
) -> Iterator[tuple[int, Completion | ModelError]]:
    """The index and result of each call as it ends, at most `limit` at once.

    A ModelError is a result; other errors are raised. A call that exceeds `seconds` is abandoned.
    """
    done: queue.SimpleQueue[tuple[int, Completion | BaseException]] = queue.SimpleQueue()
    started: dict[int, float] = {}
    following = 0

    def run(index: int) -> None:
        try:
            done.put((index, calls[index]()))
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            done.put((index, error))

    while following < len(calls) or started:
        while following < len(calls) and len(started) < limit:
            started[following] = time.monotonic()
            # A daemon thread, because a hanging read must not delay the end of the program.
            threading.Thread(target=run, args=(following,), daemon=True).start()
            following += 1
        oldest = min(started, key=started.__getitem__)
        try:
            left = started[oldest] + seconds - time.monotonic()
            index, result = done.get(timeout=max(left, 0.0))
        except queue.Empty:
            index, result = oldest, _timeout_error(seconds)
        if started.pop(index, None) is None:
            continue  # abandoned earlier
        if isinstance(result, BaseException) and not isinstance(result, ModelError):
            raise result
        yield index, result


def _timeout_error(seconds: float) -> ModelError:
    hint = "raise timeout_s, or use a faster model"
    return ModelError(f"no answer within {seconds:g} s", hint=hint, retryable=True)


def _client(key: str, base_url: str | None, retries: int) -> Any:
    try:
        import openai
    except ImportError as error:
        raise MissingExtraError("asking a language model", extra="llm") from error
    try:
        # A redirect would send the texts, and more, to an address that nobody chose.
        transport = openai.DefaultHttpxClient(follow_redirects=False)
        client = openai.OpenAI(
            api_key=key, base_url=base_url, max_retries=retries, http_client=transport
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


def _token_counts(answer: Any) -> TokenCounts | None:
    """Tokens in and out, if the server counted them and the counts make sense."""
    usage = getattr(answer, "usage", None)
    used_in, used_out = (
        getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")
    )
    if not isinstance(used_in, int) or not isinstance(used_out, int) or min(used_in, used_out) < 0:
        return None
    return used_in, used_out


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


class CachedModel:
    """A language model whose answers are cached in an SQLite file, by a hash of name and prompt.

    `name` distinguishes models in one file; by default it is the model's own name.
    """

    def __init__(self, model: LanguageModel, path: Path | str, *, name: str | None = None) -> None:
        self.model, self.path = model, Path(path)
        self.name = name or component_name(model)
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
        for index, answer in model.iter_completions(prompts, schema=schema):
            yield index, answer if isinstance(answer, ModelError) else answer.text
        return
    for index, prompt in enumerate(prompts):
        yield index, model.complete([prompt], schema=schema)[0]


def _cache_key(name: str, prompt: str, schema: Schema) -> str:
    text = json.dumps([name, prompt, schema], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
