"""The state of a worker: gates, library, model, labels, and the check batcher."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from suffice.errors import InputError, NotReadyError, did_you_mean
from suffice.evaluation.gate_runs import GateRun, run_overview
from suffice.evaluation.verdict_log import VerdictLog
from suffice.gate.gate import Gate
from suffice.gate.gate_ref import open_gate
from suffice.library import Library
from suffice.protocols import LanguageModel
from suffice.service.batching import CheckBatcher, CheckJob
from suffice.service.keys import ApiKeys
from suffice.service.labelling import LabelQueue, load_items
from suffice.service.metrics import Metrics
from suffice.service.responses import ApiError
from suffice.service.settings import DEFAULT_GATE, Settings

T = TypeVar("T")


class Service:
    """The state of one worker. Call `open` and `close` inside its event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.keys = None if settings.keys is None else ApiKeys(settings.keys)
        self.requests_in_progress = 0
        self._long_requests = 0
        self._library: Library | None = None
        self.model: LanguageModel | None = None
        self.report: dict[str, Any] | None = None
        self._labels: LabelQueue | None = None

    def open(self) -> None:
        settings = self.settings
        self.gates = {
            name: open_gate(path, settings.preset) for name, path in settings.gates.items()
        }
        if settings.judge is not None:
            from suffice.integrations.judge import open_judge

            judge = open_judge(settings.judge)
            self.gates = {name: gate.with_judge(judge) for name, gate in self.gates.items()}
        if settings.library is not None:
            self._library = Library.open(settings.library)
        if settings.model is not None:
            from suffice.integrations.openai import OpenAIModel

            self.model = OpenAIModel(
                settings.model, base_url=settings.base_url, timeout_s=settings.model_seconds
            )
        if settings.report is not None:
            self.report = run_overview(GateRun.load(Path(settings.report)))
        # Two more threads than long requests, so that searches never wait for those.
        self._threads = ThreadPoolExecutor(settings.limits.long_requests + 2, "library")
        shadow = settings.shadow
        verdict_log = None if shadow is None else VerdictLog(shadow, settings.shadow_texts)
        if settings.labels_path is not None:
            gate, label = self.gates[DEFAULT_GATE], settings.label
            items = () if label is None else load_items(Path(label), k=gate.card["k"])
            self._labels = LabelQueue(settings.labels_path, items)
            self._ranking = asyncio.create_task(self._rank_labels(self._labels, gate))
        self.checks = CheckBatcher(self.gates, self.metrics, verdict_log, self._labels)
        self.checks.start()

    async def _rank_labels(self, labels: LabelQueue, gate: Gate) -> None:
        """Find out how sure the gate is of the questions in the file, a few at a time."""
        while await self.run_in_thread(labels.rank_some, gate):
            pass

    def close(self) -> None:
        if self._labels is not None:
            self._ranking.cancel()
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
            hint = "start it with one: suffice serve --library DIR"
            raise NotReadyError("the service has no library", hint=hint)
        return self._library

    @property
    def labels(self) -> LabelQueue:
        if self._labels is None:
            hint = "start it with a file for them: suffice serve --labels labels.jsonl"
            raise NotReadyError("the service stores no labels", hint=hint)
        return self._labels

    @property
    def gate_folder(self) -> Path:
        """The folder for new gates."""
        if self.settings.gate_folder is None:
            hint = "start it with one: suffice serve --gate-folder DIR"
            raise NotReadyError("the service has no folder for new gates", hint=hint)
        return Path(self.settings.gate_folder)

    async def with_documents(self, job: CheckJob) -> CheckJob:
        """Give hits with only an id of the library its document; a note names an unknown id."""
        bare = [hit["doc_id"] for hit in job.hits if _is_bare_id(hit)]
        if self._library is None or not bare:
            return job
        doc_ids = list(dict.fromkeys(bare))
        documents = dict(zip(doc_ids, await self.run_in_thread(self.library.get, doc_ids)))

        def complete(hit: Any) -> Any:
            document = documents[hit["doc_id"]] if _is_bare_id(hit) else None
            return hit if document is None else (document, hit.get("score"))

        unknown = [one for one, document in documents.items() if document is None]
        if unknown:
            more = f" and {len(unknown) - 1:,} more" if unknown[1:] else ""
            note = f"The library has no document {unknown[0]!r:.200}{more}: checked without text."
            job = replace(job, notes=(*job.notes, note))
        return replace(job, hits=list(map(complete, job.hits)))

    async def run_in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """For whatever waits for a disk or a model."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *arguments)

    def reserve_slot(self) -> Callable[[], None]:
        """Reserve a slot for a long request; return its release. Status 429 if all are taken."""
        if self._long_requests >= self.settings.limits.long_requests:
            raise busy_error("worker at capacity for long requests")
        self._long_requests += 1
        return self._release_slot

    def _release_slot(self) -> None:
        self._long_requests -= 1


def _is_bare_id(hit: Any) -> bool:
    return (
        isinstance(hit, dict)
        and hit.keys() <= {"doc_id", "score"}
        and isinstance(hit.get("doc_id"), str)
    )


def busy_error(message: str) -> ApiError:
    hint = "try again after the seconds in Retry-After"
    return ApiError(429, "busy", message, hint=hint, headers={"retry-after": "1"})
