"""`suffice serve` while documents are posted to it: killed, or on a disk that fills up."""

from __future__ import annotations

import json
import random
import re
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robustness.fork_server import TIMEOUT_S, Fault, ForkServer, RunRequest
from robustness.workloads import GROUPS, InvariantError, WriteLog, check_library, group_documents
from suffice.datasets.jsonl import document_record
from suffice.library import Library


@dataclass
class ServeOutcome:
    what: str
    times: int = 0
    checked: int = 0
    refused: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)

    def wrong(self, outcome: str, what: str) -> None:
        self.outcomes[outcome] += 1
        self.messages.append(f"{self.what}: {outcome}: {what}")

    def cells(self) -> tuple[str, ...]:
        counts = (
            self.times,
            self.checked,
            self.refused,
            *(self.outcomes[one] for one in ("lost", "corrupt", "unanswered")),
        )
        return self.what, *(f"{one:,}" for one in counts)


class ServiceUnderTest:
    """One run of `suffice serve` in a child of the fork server: requests to it, and what they
    acknowledged.
    """

    def __init__(self, fork_server: ForkServer, home: Path) -> None:
        from suffice.service.keys import READ, WRITE, ApiKeys

        self._fork_server, self.library, self._keys = (
            fork_server,
            home / "library",
            home / "keys.json",
        )
        Library.build(self.library, []).close()
        self._token, _ = ApiKeys(self._keys).create("writer", (READ, WRITE))
        self.write_log, self.address, self._stamp = WriteLog(), "", 0

    @contextmanager
    def running(self, *, fault: Fault | None = None) -> Iterator[None]:
        """Serve until killed, at the latest at the end of the block."""
        words = (
            "serve",
            "--library",
            str(self.library),
            "--keys",
            str(self._keys),
            "--port",
            "0",
            "--preset",
            "fast",
            "--quiet",
        )
        self._fork_server.begin(RunRequest(words, fault=fault))
        result: list[Any] = []
        waiting = threading.Thread(target=lambda: result.append(self._fork_server.wait()))
        waiting.start()
        try:
            self.address = self._listening(waiting)
            yield
        finally:
            if waiting.is_alive():
                self._fork_server.kill()
            waiting.join(TIMEOUT_S)

    def _listening(self, waiting: threading.Thread) -> str:
        while waiting.is_alive():
            errors = self._fork_server.err.read_text() if self._fork_server.err.exists() else ""
            if found := re.search(r'"address": "(http[^"]+)"', errors):
                return found[1]
            time.sleep(0.02)
        return ""

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """Status and envelope; 0 if nobody answers."""
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            request = urllib.request.Request(self.address + path, data, headers, method=method)
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        except (OSError, ValueError):
            return 0, {}

    def write(self, rng: random.Random) -> tuple[int, dict[str, Any]]:
        """Post one group in its next version."""
        self._stamp += 1
        group = rng.randrange(GROUPS)
        self.write_log.begin([group], self._stamp)
        records = [document_record(one) for one in group_documents(group, self._stamp)]
        status, answer = self.send("POST", "/v1/library/documents", {"documents": records})
        if status == 200:
            self.write_log.done()
        return status, answer

    def check(self, row: ServeOutcome) -> None:
        row.checked = self.write_log.acknowledged
        try:
            check_library(self.library, self.write_log)
        except InvariantError as error:
            row.wrong(error.kind, str(error))


def serve_and_kill(
    fork_server: ForkServer, home: Path, kills: int, rng: random.Random
) -> ServeOutcome:
    """Post until it is killed; acknowledged writes must be there, and the next run starts without
    repair.
    """
    row, service = (
        ServeOutcome("killed while it was written to"),
        ServiceUnderTest(fork_server, home),
    )
    for _ in range(kills):
        with service.running():
            service.write(rng)  # answered when the gate is loaded, however slow the machine
            death = threading.Timer(rng.uniform(0.0, 1.5), fork_server.kill)
            death.start()
            while service.address and service.write(rng)[0]:
                pass
            death.join()
        row.times += 1
        service.check(row)
    return row


def serve_on_full_disk(fork_server: ForkServer, home: Path, *, at: int = 120) -> ServeOutcome:
    """Post until the disk is full and a little longer: it reports errors, still answers searches,
    and writes again later.
    """
    row, service, rng = (
        ServeOutcome("on a disk that fills up"),
        ServiceUnderTest(fork_server, home),
        random.Random(1),
    )
    row.times = 1
    with service.running(fault=Fault("full", str(service.library), at)):
        for _ in range(40):
            status, answer = service.write(rng)
            row.refused += status >= 500
            if status >= 500 and not (answer.get("error") or {}).get("hint"):
                row.wrong("unanswered", f"{status} without a hint: {answer}")
            if status == 0 or row.refused > 2:
                break
        found, answer = service.send(
            "POST", "/v1/search", {"question": "filler", "retriever": "bm25"}
        )
        if found != 200 or not row.refused:
            row.wrong(
                "unanswered",
                f"after {row.refused} refusals a search gives {found}: {answer.get('error')}",
            )
    service.check(row)
    with service.running():
        if service.write(rng)[0] != 200:
            row.wrong("unanswered", "with room on the disk it still writes nothing")
    service.check(row)
    return row
