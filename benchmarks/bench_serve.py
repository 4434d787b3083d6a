"""The service: checks over HTTP with ten hits of 100 words, from a second process on the same
machine.

Three loads of fast checks on a real server with two workers: a steady 300 requests a second (timed
from when each was due, so that a stall counts for everyone), as fast as eight connections can go,
and far too many at once; then standard checks as fast as two connections can go. The processor time
of server and load generator shows what the machine could do alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any

import numpy as np
import psutil

from benchmarks.reporting import ResultTable, print_all, print_progress, run_in_subprocess

RATE, P99_MS, CORES = 300, 50.0, 2
WORKERS = 2
EVERY = 200  # different questions
CROWD = 400  # connections of the overload


# ---- the generator


@dataclass
class Tally:
    """Statuses, and the seconds of successful responses."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def told(self, wall: float, processor: float) -> dict[str, object]:
        times = np.array(self.seconds or [np.nan]) * 1e3
        return {
            "statuses": dict(self.statuses),
            "rate": len(self.seconds) / wall,
            **{
                name: float(np.percentile(times, share))
                for name, share in (("p50", 50), ("p99", 99), ("worst", 100))
            },
            "processor": processor,
        }


class Client(asyncio.Protocol):
    """One connection that sends the next request when answered, or when it is due."""

    def __init__(
        self, tally: Tally, requests: list[bytes], first: int, until: float, every: float | None
    ) -> None:
        self.tally, self.requests, self.at, self.until, self.every = (
            tally,
            requests,
            first,
            until,
            every,
        )
        self.buffer, self.done = b"", asyncio.get_running_loop().create_future()
        self.due = time.perf_counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.ask()

    def ask(self) -> None:
        if self.due > self.until:
            self.transport.close()
            return
        self.at += 1
        self.transport.write(self.requests[self.at % len(self.requests)])

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self.buffer, now = b"", time.perf_counter()
        status = head[9:12].decode()
        self.tally.statuses[status] += 1
        if status == "200":
            self.tally.seconds.append(now - self.due)
        if self.every is None:
            self.due = now
            self.ask()
        else:
            self.due += self.every
            asyncio.get_running_loop().call_later(max(self.due - now, 0.0), self.ask)

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None or self.due <= self.until:
            self.tally.statuses["lost"] += 1
        self.done.set_result(None)


async def generate_load(
    port: int, seconds: float, connections: int, rate: float | None
) -> dict[str, object]:
    requests, tally, loop = bodies(), Tally(), asyncio.get_running_loop()
    every = None if rate is None else connections / rate
    began, before = time.perf_counter(), time.process_time()
    clients = []
    for number in range(connections):
        _, client = await loop.create_connection(
            partial(Client, tally, requests, 7 * number, began + seconds, every),
            "127.0.0.1",
            port,
        )
        clients.append(client)
        if every is not None:
            await asyncio.sleep(every / connections)
    await asyncio.gather(*(client.done for client in clients))
    return tally.told(time.perf_counter() - began, time.process_time() - before)


def bodies() -> list[bytes]:
    """Raw HTTP requests."""
    from benchmarks.bench_gate import cases

    made = []
    for case in cases(EVERY):
        hits = [
            {
                "doc_id": hit.doc_id,
                "title": document.title,
                "text": document.text,
                "score": hit.score,
            }
            for hit, document in (
                (hit, case.evidence.documents[hit.doc_id]) for hit in case.evidence.hits
            )
        ]
        body = json.dumps({"question": case.question.text, "hits": hits}).encode()
        told = (
            "POST /v1/check HTTP/1.1",
            "host: 127.0.0.1",
            "content-type: application/json",
            f"content-length: {len(body)}",
        )
        made.append("\r\n".join([*told, "", ""]).encode() + body)
    return made


# ---- the server


@contextmanager
def server(
    *words: str, workers: int = WORKERS, stderr: IO[str] | None = None, **environment: str
) -> Iterator[tuple[int, psutil.Process]]:
    """A real service on a free port, ready, with more arguments for its command line."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "suffice",
        "serve",
        "--port",
        str(port),
        "--workers",
        str(workers),
        "--quiet",
        *words,
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    with subprocess.Popen(command, env=environment, stderr=stderr) as running:
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                raise RuntimeError(
                    f"the service did not begin; its exit status is {running.poll()}"
                )
            yield port, psutil.Process(running.pid)
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(60)


def process_figures(process: psutil.Process) -> tuple[float, float]:
    """Processor seconds and resident megabytes of the server and its workers."""
    every = [process, *process.children(recursive=True)]
    times = [one.cpu_times() for one in every]
    return sum(one.user + one.system for one in times), sum(
        one.memory_info().rss for one in every
    ) / 1e6


def tables(quick: bool) -> Iterator[ResultTable]:
    seconds = 5 if quick else 30
    loads: dict[str, dict[str, tuple[int, float | None]]] = {
        "fast": {
            "300 a second": (24, float(RATE)),
            "eight connections": (8, None),
            f"{CROWD} connections": (CROWD, None),
        },
        "standard": {"two connections": (2, None)},
    }
    rows, kept = [], True
    for preset, each_load in loads.items():
        with server("--preset", preset) as (port, process):
            print_progress(f"{preset}: warming up")
            run_load(port, 3, 8, None)
            for name, (connections, rate) in each_load.items():
                print_progress(f"{preset}: {name}")
                before, _ = process_figures(process)
                told = run_load(port, seconds, connections, rate)
                after, resident = process_figures(process)
                answers: dict[str, int] = told["statuses"]
                served = answers.get("200", 0)
                refused = answers.get("429", 0)
                broken = sum(answers.values()) - served - refused
                each = (after - before + told["processor"]) / max(served, 1) * 1e3
                kept &= broken == 0
                if rate is not None:
                    kept &= told["p99"] <= P99_MS and told["rate"] >= 0.99 * RATE
                rows.append(
                    (preset, name, f"{told['rate']:,.0f}", f"{told['p50']:.1f}", f"{told['p99']:.1f}",
                     f"{told['worst']:.1f}", f"{refused:,}", str(broken), f"{each:.2f}",
                     f"{CORES * 1e3 / each:,.0f}", f"{resident:,.0f}")
                )  # fmt: skip
    yield ResultTable(
        "Checks over HTTP",
        (
            f"{seconds} s each. Required of the fast preset: {RATE} a second with p99 at most "
            f"{P99_MS:g} ms; of both, nothing but 200 and 429."
        ),
        (
            "preset",
            "load",
            "served/s",
            "p50 ms",
            "p99 ms",
            "worst ms",
            "429",
            "other",
            "processor ms each",
            f"possible on {CORES} cores",
            "MB",
        ),
        tuple(rows),
        (
            (
                f"Processor time is that of the server and the load generator. Load average "
                f"{os.getloadavg()[0]:.1f}."
            ),
        ),
        kept=kept,
    )


def run_load(port: int, seconds: float, connections: int, rate: float | None) -> dict[str, Any]:
    told = [
        "--load",
        str(port),
        str(seconds),
        str(connections),
        *([] if rate is None else ["--rate", str(rate)]),
    ]
    return run_in_subprocess("benchmarks.bench_serve", *told)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds each")
    parser.add_argument(
        "--load", nargs=3, metavar=("PORT", "SECONDS", "CONNECTIONS"), help="be the load generator"
    )
    parser.add_argument("--rate", type=float)
    chosen = parser.parse_args()
    if chosen.load:
        import uvloop

        port, seconds, connections = chosen.load
        print(
            json.dumps(
                uvloop.run(generate_load(int(port), float(seconds), int(connections), chosen.rate))
            )
        )
        return 0
    return print_all(tables(chosen.quick))


if __name__ == "__main__":
    sys.exit(main())
