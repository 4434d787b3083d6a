"""A language model behind any server that speaks OpenAI's protocol: OpenAI's own, llama.cpp, vLLM, Ollama, LM Studio.

    model = OpenAIModel("gpt-4o-mini")                                            the key comes from OPENAI_API_KEY
    model = OpenAIModel("smollm2", base_url="http://127.0.0.1:8080/v1")           a server of your own needs none

One prompt is one request with a deadline for the whole of it, however slowly the server drips. A failure is a ModelError that
says whether trying again may help, and never shows the key. `CachedModel` remembers answers on disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

from suffice.errors import DataError, InputError, MissingExtraError, ModelError
from suffice.ports import LanguageModel

__all__ = ["CachedModel", "OpenAIModel"]

T = TypeVar("T")
NO_KEY = "none"  # the client insists on one; servers of one's own ignore it


class OpenAIModel:
    """Implements the LanguageModel port. `timeout_s` bounds one request and its retries together.

    `extra` goes into every request as it is, for servers that know more than the protocol.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 2,
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int | None = 42,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        if not name.strip():
            raise InputError("the model has no name", hint="name the model as its server does")
        if timeout_s <= 0 or retries < 0 or max_tokens < 1:
            raise InputError(f"timeout_s is {timeout_s}, retries {retries}, max_tokens {max_tokens}: too small")
        self.name, self.base_url, self.timeout_s = name, base_url, timeout_s
        self._key = api_key or os.environ.get("OPENAI_API_KEY") or NO_KEY
        self._settings = {"model": name, "max_tokens": max_tokens, "temperature": temperature, **(extra or {})}
        if seed is not None:
            self._settings["seed"] = seed
        self._client = _client(self._key, base_url, timeout_s, retries)
        self._server = {"takes_schema": True}  # shared by the copies that `within` makes
        self.last_tokens: tuple[int, int] | None = None  # of the last completion, in and out, where the server said

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={self.base_url!r})"

    def within(self, seconds: float) -> OpenAIModel:
        """The same model, with at most so many seconds for one request and its retries."""
        hurried = copy(self)
        hurried.timeout_s = max(min(self.timeout_s, seconds), 0.01)
        return hurried

    def complete(self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None) -> list[str]:
        """One completion a prompt; with a schema each is a JSON document. ModelError at the first that fails."""
        return [self._complete(prompt, schema) for prompt in prompts]

    def _complete(self, prompt: str, schema: Mapping[str, Any] | None) -> str:
        self.last_tokens = None
        text, self.last_tokens = _within(self.timeout_s, lambda: self._request(prompt, schema))
        if schema is None:
            return text
        if (found := _json_in(text)) is None:
            raise ModelError(
                f"{self.name} did not answer in JSON: {self._safe(text)[:80]!r}",
                hint="raise max_tokens, or take a better model",
            )
        return found

    def _request(self, prompt: str, schema: Mapping[str, Any] | None) -> tuple[str, tuple[int, int] | None]:
        import openai

        request: dict[str, Any] = {**self._settings, "messages": [{"role": "user", "content": _encodable(prompt)}]}
        if schema is not None and self._server["takes_schema"]:
            wanted = {"name": "answer", "schema": dict(schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": wanted}
        try:
            answer = self._client.chat.completions.create(**request)
            text = answer.choices[0].message.content
        except openai.BadRequestError as error:
            if "response_format" not in request:
                raise self._failed(error, retryable=False) from None
            self._server["takes_schema"] = False  # an old server: the prompt alone must do, and the answer is checked anyway
            return self._request(prompt, schema)
        except openai.APITimeoutError:  # the client's clock and ours race; who wins must not change what is said
            raise _late(self.timeout_s) from None
        except (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError) as error:
            raise self._failed(error, retryable=True) from None
        except openai.AuthenticationError as error:
            raise self._failed(error, retryable=False, hint="set OPENAI_API_KEY to a key of this server") from None
        except (openai.OpenAIError, ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
            raise self._failed(error, retryable=False) from None
        if not isinstance(text, str) or not text.strip():
            raise ModelError(f"{self.name} answered with nothing", retryable=True)
        return text, _usage(answer)

    def _failed(self, error: Exception, *, retryable: bool, hint: str = "") -> ModelError:
        where = f" at {self.base_url}" if self.base_url else ""
        words = self._safe(" ".join(str(error).split()))[:200]
        return ModelError(
            f"{self.name}{where}: {type(error).__name__}: {words}",
            hint=hint or "check that the server runs, and its address and model name",
            retryable=retryable,
        )

    def _safe(self, text: str) -> str:
        return text if self._key == NO_KEY else text.replace(self._key, "[key]")


def _client(key: str, base_url: str | None, timeout_s: float, retries: int) -> Any:
    try:
        import openai
    except ImportError as error:
        raise MissingExtraError("asking a language model", extra="llm") from error
    try:
        return openai.OpenAI(api_key=key, base_url=base_url, timeout=timeout_s, max_retries=retries)
    except Exception as error:  # noqa: BLE001 - the client and what it is built on raise many kinds
        raise InputError(f"no model server can be reached by base_url {base_url!r}: {type(error).__name__}") from None


def _within(seconds: float, call: Callable[[], T]) -> T:
    """What the call returns or raises, or a ModelError after so many seconds. A call that hangs is left behind."""
    done: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((True, call()))
        except BaseException as error:  # noqa: BLE001 - handed to the one who waits
            done.put((False, error))

    threading.Thread(target=run, daemon=True, name="suffice-model").start()
    try:
        fine, result = done.get(timeout=seconds)
    except queue.Empty:
        raise _late(seconds) from None
    if fine:
        return result  # type: ignore[no-any-return]
    raise result


def _json_in(text: str) -> str | None:
    """The answer where it is JSON; else the object in it: a model likes to put words and fences around one."""
    try:
        json.loads(text)
        return text
    except (ValueError, RecursionError):
        start = text.find("{")
    try:
        _, end = json.JSONDecoder().raw_decode(text, start) if start >= 0 else (None, 0)
    except (ValueError, RecursionError):
        return None
    return text[start:end] or None


def _usage(answer: Any) -> tuple[int, int] | None:
    """Tokens in and out, where the server counted them and the counts make sense."""
    used = getattr(answer, "usage", None)
    counts = [getattr(used, name, None) for name in ("prompt_tokens", "completion_tokens")]
    spent, made = (one if isinstance(one, int) and one >= 0 else None for one in counts)
    return None if spent is None or made is None else (spent, made)


def _late(seconds: float) -> ModelError:
    return ModelError(f"no answer within {seconds:g} s", hint="raise timeout_s, or take a faster model", retryable=True)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


class CachedModel:
    """A language model that is asked the same thing only once: answers are kept in an SQLite file, under hashes of the prompts.

    `name` tells models apart in one file; it is the model's own unless given.
    """

    def __init__(self, model: LanguageModel, path: Path | str, *, name: str | None = None) -> None:
        self.model, self.path = model, Path(path)
        self.name = name or str(getattr(model, "name", type(model).__name__))
        self.last_tokens: tuple[int, int] | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as db, db:
                db.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID")
        except (OSError, sqlite3.Error) as error:
            raise DataError(f"{self.path} cannot hold answers: {error}", hint="remove the file, or choose another") from error

    def within(self, seconds: float) -> CachedModel:
        """The same answers, and for new ones the model within so many seconds, where it can be held to them."""
        hurried = copy(self)
        hurry = getattr(self.model, "within", None)
        hurried.model = self.model if hurry is None else hurry(seconds)
        return hurried

    def complete(self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None) -> list[str]:
        """One completion a prompt, from the file where it is known. Each new answer is kept before the next is asked for."""
        keys = [_key(self.name, prompt, schema) for prompt in prompts]
        found: dict[str, str] = {}
        self.last_tokens = (0, 0)  # what is remembered costs nothing
        with closing(self._open()) as db:
            for key, prompt in dict(zip(keys, prompts)).items():
                row = db.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
                if row is None:
                    row = [_encodable(one) for one in self.model.complete([prompt], schema=schema)]
                    self.last_tokens = getattr(self.model, "last_tokens", None)
                    with db:
                        db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, row[0]))
                found[key] = row[0]
        return [found[key] for key in keys]

    def forget(self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None) -> None:
        """Ask these anew next time: their answers were no good."""
        with closing(self._open()) as db, db:
            db.executemany("DELETE FROM answers WHERE key = ?", [(_key(self.name, prompt, schema),) for prompt in prompts])

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=30)


def _key(name: str, prompt: str, schema: Mapping[str, Any] | None) -> str:
    text = json.dumps([name, prompt, schema], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
