"""An hour of mixed load on a real service while its library changes: nothing fails, nothing grows.

Two workers answer checks, batches, searches, expansions and questions. Half of the questions are new, so a cache
that grows without bound would show. A writer adds and removes documents through the same service; at the end
all acknowledged writes are checked. Memory, handles, threads and files are sampled throughout. The length is an
hour, or SOAK_MINUTES; `--quick` takes one minute.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from benchmarks.bench_serve import server
from benchmarks.reporting import ResultTable, load_average, print_progress
from scipy.stats import theilslopes

from suffice.library import Library
from suffice.service.keys import ApiKeys
from suffice.types import Document
from suffice_research.controlled import controlled_collection

MINUTES, QUICK_MINUTES = 60.0, 1.0
RATE = 12.0  # requests a second: a load that a small machine can carry beside other work
PRESET = "fast"  # the reader would take a third of a second a check
CLIENTS = 6
DOCUMENTS = 240
WRITE_EVERY_S = 15.0
GROUP = 4  # documents added by one write
GROUPS = 6  # alive at any time
WARM = 0.25  # share of the length before sampling: caches fill, and the text index reaches its number of segments
POINTS = 12
FLAT = 1.1  # growth that counts as none

# Kind of request: its share of the load, where it goes, and its body's media type.
KINDS = {
    "check": (0.70, "/v1/check", "application/json"),
    "batch of 5": (0.10, "/v1/check/batch", "application/x-ndjson"),
    "search": (0.15, "/v1/search", "application/json"),
    "complete": (0.05, "/v1/complete", "application/json"),
}
Body = Callable[[str, random.Random], bytes]
Sample = Mapping[str, float]


@dataclass
class SoakLog:
    """Everything that a run records."""

    minutes: float
    statuses: dict[str, Counter[str]] = field(
        default_factory=lambda: {kind: Counter() for kind in (*KINDS, "write")}
    )
    seconds: dict[str, list[float]] = field(
        default_factory=lambda: {kind: [] for kind in (*KINDS, "write")}
    )
    samples: list[tuple[float, Sample]] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    expected: dict[str, bool] = field(
        default_factory=dict
    )  # every document written: should it still be there?
    wrong: list[str] = field(
        default_factory=list
    )  # documents that differ from what was acknowledged
    faults: list[str] = field(default_factory=list)  # lines of the service's log, and errors here

    @property
    def requests(self) -> int:
        return sum(sum(one.values()) for one in self.statuses.values())


# ---------------------------------------------------------------------------------------------------------------- visitors


def request_bodies(examples: list[str], library: Library) -> dict[str, Body]:
    """The body of each kind of request for a question."""
    hits = library.search_batch(examples, k=10)
    texts = {one.doc_id: one for one in library.documents()}
    checks = []
    for found in hits:
        pairs = [(hit, texts[hit.doc_id]) for hit in found]
        checks.append(
            [
                {"doc_id": hit.doc_id, "title": one.title, "text": one.text, "score": hit.score}
                for hit, one in pairs
            ]
        )

    def check(question: str, chance: random.Random) -> bytes:
        return json.dumps({"question": question, "hits": chance.choice(checks)}).encode()

    def batch(question: str, chance: random.Random) -> bytes:
        return b"\n".join(check(question, chance) for _ in range(5))

    def check_body(question: str, chance: random.Random) -> bytes:
        return json.dumps({"question": question}).encode()

    return {
        "check": check,
        "batch of 5": batch,
        "search": check_body,
        "complete": check_body,
    }


@dataclass
class LoadClient:
    """One connection to the service, reopened whenever it was closed."""

    port: int
    token: str
    log: SoakLog

    def __post_init__(self) -> None:
        self.line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=180)

    def visit(
        self, kind: str, method: str, path: str, body: bytes | None, media: str, *, due: float
    ) -> Any:
        """The data of the response, if there is one. Status and time are recorded, the time since the request was due."""
        headers = {
            "authorization": f"Bearer {self.token}",
            **({"content-type": media} if body is not None else {}),
        }
        try:
            self.line.request(method, path, body, headers)
            response = self.line.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.line.close()
            self.log.statuses[kind]["lost"] += 1
            self.log.faults.append(f"{kind}: {error!r}")
            return None
        self.log.statuses[kind][str(response.status)] += 1
        if response.status != 200:
            if response.status != 429:
                self.log.faults.append(
                    f"{kind}: {response.status} {content[:300].decode(errors='replace')}"
                )
            return None
        self.log.seconds[kind].append(time.monotonic() - due)
        lines = [json.loads(one) for one in content.splitlines()]
        if bad := [one["error"] for one in lines if not one["ok"]]:
            self.log.faults.append(f"{kind}: {bad[0]}")
        if not lines:
            self.log.faults.append(f"{kind}: 200 without a body")
            return None
        return lines[0]["data"]


def send_requests(
    client: LoadClient,
    made: dict[str, Body],
    examples: list[str],
    *,
    every: float,
    seed: int,
    until: float,
) -> None:
    chance, count = random.Random(seed), 0
    due = time.monotonic() + every * chance.random()
    while (now := time.monotonic()) < until:
        if due > now:
            time.sleep(due - now)
        kind = chance.choices(list(KINDS), [share for share, _, _ in KINDS.values()])[0]
        question = chance.choice(examples)
        count += 1
        if count % 2:
            question = f"{question[:-1]}, according to client {seed} for the {count}th time?"
        _, path, media = KINDS[kind]
        client.visit(kind, "POST", path, made[kind](question, chance), media, due=due)
        due = max(
            due + every, time.monotonic() - every
        )  # requests missed during a stall are not sent all at once
    client.line.close()


def send_writes(client: LoadClient, *, every: float, until: float) -> None:
    """Add and remove groups of documents; `expected` holds what was acknowledged."""
    number = 0
    while time.monotonic() < until:
        number += 1
        added = [
            Document(f"soak-{number}-{at}", f"Report {number} on the harbour of Soakby, page {at}.")
            for at in range(GROUP)
        ]
        body = json.dumps(
            {"documents": [{"doc_id": one.doc_id, "text": one.text} for one in added]}
        ).encode()
        began = time.monotonic()
        if client.visit(
            "write", "POST", "/v1/library/documents", body, "application/json", due=began
        ):
            client.log.expected |= {one.doc_id: True for one in added}
        if number > GROUPS:
            gone = [f"soak-{number - GROUPS}-{at}" for at in range(GROUP)]
            path = "/v1/library/documents?" + "&".join(f"id={one}" for one in gone)
            if client.visit("write", "DELETE", path, None, "", due=time.monotonic()):
                client.log.expected |= dict.fromkeys(gone, False)
        time.sleep(max(0.0, min(began + every, until) - time.monotonic()))
    client.line.close()


# -------------------------------------------------------------------------------------------------------------------- watch


def sample_resources(process: psutil.Process, library: Path, temporary: Path) -> Sample:
    """Resources of the service and its workers, and of the folders they write to."""
    every = [process, *process.children(recursive=True)]
    return {
        "memory MB": sum(one.memory_info().rss for one in every) / 1e6,
        "open handles": sum(one.num_fds() for one in every),
        "threads": sum(one.num_threads() for one in every),
        "processes": len(every),
        "temporary files": sum(one.is_file() for one in temporary.rglob("*")),
        "files of the library": sum(one.is_file() for one in library.rglob("*")),
    }


def watch_resources(
    soak_log: SoakLog, look: Callable[[], Sample], *, began: float, until: float
) -> None:
    every = (until - began) / 480
    while (now := time.monotonic()) < until:
        if now >= began:
            try:
                soak_log.samples.append(((now - began) / 3600, look()))
                soak_log.loads.append(float(load_average()))
            except (psutil.Error, OSError):
                continue  # a file or a process disappeared before it was counted
            if len(soak_log.samples) % 40 == 0:
                print_progress(
                    f"{60 * soak_log.samples[-1][0]:.1f} minutes: {dict(soak_log.samples[-1][1])}"
                )
        time.sleep(max(every, 0.1))


def run_soak(
    folder: Path, *, minutes: float, rate: float = RATE, write_every: float = WRITE_EVERY_S
) -> SoakLog:
    """The whole run, in an empty folder."""
    data = controlled_collection(documents=DOCUMENTS)
    examples = [one.question.text for one in data.questions()][:200]
    temporary = folder / "tmp"
    temporary.mkdir()
    soak_log, keys = SoakLog(minutes), ApiKeys(folder / "keys.json")
    token = keys.create("soak", ("read", "write"))[0]
    with Library.build(folder / "library", data.documents()) as library:
        made = request_bodies(examples, library)
    words = ("--library", str(library.path), "--keys", str(keys.path), "--preset", PRESET)
    with (
        (folder / "log").open("w") as log,
        server(*words, stderr=log, TMPDIR=str(temporary)) as (port, process),
    ):
        began = time.monotonic() + max(5.0, WARM * 60 * minutes)
        until = began + 60 * minutes
        every = CLIENTS / rate
        with ThreadPoolExecutor(CLIENTS + 1) as crew:
            working = [
                crew.submit(
                    send_writes, LoadClient(port, token, soak_log), every=write_every, until=until
                )
            ]
            for seed in range(CLIENTS):
                client = LoadClient(port, token, soak_log)
                working.append(
                    crew.submit(
                        send_requests, client, made, examples, every=every, seed=seed, until=until
                    )
                )
            watch_resources(
                soak_log,
                lambda: sample_resources(process, library.path, temporary),
                began=began,
                until=until,
            )
            for one in working:
                one.result()  # raises if a client failed
    with Library.open(library.path) as library:
        found = library.get(list(soak_log.expected))
    soak_log.wrong = [
        doc_id
        for (doc_id, there), stored in zip(soak_log.expected.items(), found)
        if (stored is not None) != there
    ]
    soak_log.faults += (
        (folder / "log").read_text(encoding="utf-8").splitlines()[1:]
    )  # the first one has the address
    return soak_log


# ------------------------------------------------------------------------------------------------------------------- tables


def growth(soak_log: SoakLog, what: str) -> tuple[float, float, float, float, float]:
    """Median of the first and the last quarter; growth per hour with its interval (Theil-Sen, 95 %).

    Neighbouring samples are correlated, which would make the interval too narrow: the line is fitted through the
    medians of twenty blocks.
    """
    hours = np.array([at for at, _ in soak_log.samples])
    values = np.array([one[what] for _, one in soak_log.samples])
    quarter = max(len(values) // 4, 1)
    blocks = [
        (np.median(hours[part]), np.median(values[part]))
        for part in np.array_split(np.arange(len(values)), 20)
        if len(part)
    ]
    slope, _, low, high = theilslopes(
        [value for _, value in blocks], [at for at, _ in blocks], alpha=0.95
    )
    return float(np.median(values[:quarter])), float(np.median(values[-quarter:])), slope, low, high


def is_flat(first: float, last: float) -> bool:
    return last <= FLAT * first + 2


def flat_table(soak_log: SoakLog) -> ResultTable:
    rows, kept = [], True
    for what in soak_log.samples[0][1]:
        first, last, slope, low, high = growth(soak_log, what)
        kept &= is_flat(first, last)
        rows.append(
            (
                what,
                f"{first:,.1f}",
                f"{last:,.1f}",
                f"{last / max(first, 1e-9):.3f}",
                f"{slope:+.2f}",
                f"{low:+.2f} .. {high:+.2f}",
            )
        )
    return ResultTable(
        f"What grows over {soak_log.minutes:g} minutes",
        f"{len(soak_log.samples)} samples of the service and its two workers; {soak_log.requests:,} requests. "
        f"Required: the last quarter's median at most {100 * (FLAT - 1):.0f} % (and two) above the first quarter's.",
        ("what", "first quarter", "last quarter", "ratio", "growth per hour", "95 % interval"),
        tuple(rows),
        (
            f"Load average of the machine: {min(soak_log.loads):.1f} to {max(soak_log.loads):.1f}; other work ran beside it.",
        ),
        kept=kept,
    )


def timeline_table(soak_log: SoakLog) -> ResultTable:
    names = tuple(soak_log.samples[0][1])
    rows = []
    for part in np.array_split(
        np.arange(len(soak_log.samples)), min(POINTS, len(soak_log.samples))
    ):
        medians = [np.median([soak_log.samples[at][1][name] for at in part]) for name in names]
        loads = np.median([soak_log.loads[at] for at in part])
        rows.append(
            (
                f"{60 * soak_log.samples[part[-1]][0]:.1f}",
                *(f"{one:,.0f}" for one in medians),
                f"{loads:.1f}",
            )
        )
    return ResultTable(
        "Timeline",
        "Median of each interval.",
        ("minute", *names, "load average"),
        tuple(rows),
    )


def answer_table(soak_log: SoakLog) -> ResultTable:
    rows, kept = [], True
    for kind, statuses in soak_log.statuses.items():
        other = sum(count for status, count in statuses.items() if status not in ("200", "429"))
        kept &= other == 0
        times = np.array(soak_log.seconds[kind] or [np.nan]) * 1e3
        rows.append(
            (
                kind,
                f"{statuses['200']:,}",
                f"{statuses['429']:,}",
                str(other),
                f"{np.median(times):,.0f}",
                f"{np.percentile(times, 99):,.0f}",
            )
        )
    kept &= not soak_log.faults
    return ResultTable(
        f"What was answered in {soak_log.minutes:g} minutes",
        f"{RATE:g} requests a second, preset {PRESET}. Required: only 200, or 429 when busy; no line in the log.",
        ("kind", "200", "429", "other", "p50 ms", "p99 ms"),
        tuple(rows),
        (
            f"Lines in the service's log and failures of the clients: {len(soak_log.faults)}.",
            *soak_log.faults[:5],
        ),
        kept=kept,
    )


def write_table(soak_log: SoakLog) -> ResultTable:
    row = (
        f"{len(soak_log.expected):,}",
        f"{sum(not there for there in soak_log.expected.values()):,}",
        str(len(soak_log.wrong)),
    )
    return ResultTable(
        "What was written meanwhile",
        "Documents added and removed through the service under load, checked at the end. Required: 0 wrong.",
        ("acknowledged as added", "of these removed again", "not as acknowledged"),
        (row,),
        tuple(soak_log.wrong[:5]),
        kept=not soak_log.wrong,
    )


def tables(quick: bool) -> Iterator[ResultTable]:
    minutes = float(os.environ.get("SOAK_MINUTES") or (QUICK_MINUTES if quick else MINUTES))
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        soak_log = run_soak(Path(folder), minutes=minutes)
    for table in (flat_table, timeline_table, answer_table, write_table):
        yield table(soak_log)
