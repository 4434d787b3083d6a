"""What a worker holds while it serves: gates, a library, a model, the judging thread, and how much of it is in use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from suffice.errors import InputError, NotReadyError, did_you_mean
from suffice.evaluation.gate_runs import GateRun, run_overview
from suffice.gate.gate import Gate
from suffice.gate.gate_ref import open_gate
from suffice.library import Library
from suffice.protocols import LanguageModel
from suffice.service.batching import CheckBatcher
from suffice.service.keys import ApiKeys
from suffice.service.metrics import Metrics
from suffice.service.responses import ApiError
from suffice.service.settings import Settings

__all__ = ["Service", "busy_error"]

T = TypeVar("T")
NO_LIBRARY = "start it with one: suffice serve --library DIR"


class Service:
    """One worker's belongings. `open` and `close` belong inside its event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.measures = Metrics()
        self.keys = None if settings.keys is None else ApiKeys(settings.keys)
        self.in_work = 0
        self.leaving = False
        self._journeys = 0
        self._library: Library | None = None
        self.model: LanguageModel | None = None
        self.report: dict[str, Any] | None = None

    def open(self) -> None:
        settings = self.settings
        self.gates = {
            name: open_gate(place, settings.preset) for name, place in settings.gates.items()
        }
        if settings.library is not None:
            self._library = Library.open(settings.library)
        if settings.model is not None:
            from suffice.integrations.openai import OpenAIModel

            self.model = OpenAIModel(
                settings.model, base_url=settings.base_url, timeout_s=settings.model_seconds
            )
        if settings.report is not None:
            self.report = run_overview(GateRun.load(Path(settings.report)))
        # Searches, writes and journeys are waited for in threads; two more, so that searches pass by long journeys.
        self._threads = ThreadPoolExecutor(
            settings.limits.journeys + 2, thread_name_prefix="library"
        )
        self.checks = CheckBatcher(self.gates, self.measures)
        self.checks.start()

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self.checks.stop()
        if self._library is not None:
            self._library.close()

    def gate(self, name: str) -> Gate:
        if name not in self.gates:
            raise InputError(
                f"gate: no gate is named {name!r}", hint=did_you_mean(name, self.gates)
            )
        return self.gates[name]

    @property
    def has_library(self) -> bool:
        return self._library is not None

    @property
    def library(self) -> Library:
        if self._library is None:
            raise NotReadyError("the service has no library", hint=NO_LIBRARY)
        return self._library

    async def with_documents(self, runs: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        """The same hits; those that are only named by an id of the library come with its document."""
        named = (
            {hit["doc_id"]: None for hits in runs for hit in hits if _is_bare_id(hit)}
            if self._library
            else {}
        )
        if not named:
            return list(runs)
        held = dict(zip(named, await self.aside(self.library.get, list(named))))
        return [
            [
                (held[hit["doc_id"]], hit.get("score"))
                if _is_bare_id(hit) and held[hit["doc_id"]]
                else hit
                for hit in hits
            ]
            for hits in runs
        ]

    async def aside(self, work: Callable[..., T], *arguments: Any) -> T:
        """Done in a thread: whatever waits for a disk or a model."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def take_place(self) -> Callable[[], None]:
        """A place for something long, and how to give it back; 429 where all are taken."""
        if self._journeys >= self.settings.limits.journeys:
            raise busy_error("as many long requests are in work as this worker takes on")
        self._journeys += 1
        return self._give_back

    def _give_back(self) -> None:
        self._journeys -= 1


def _is_bare_id(hit: Any) -> bool:
    return (
        isinstance(hit, dict)
        and hit.keys() <= {"doc_id", "score"}
        and isinstance(hit.get("doc_id"), str)
    )


def busy_error(why: str) -> ApiError:
    return ApiError(
        429,
        "busy",
        why,
        hint="try again after the seconds in Retry-After",
        headers={"retry-after": "1"},
    )
