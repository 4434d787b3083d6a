"""Run suffice so that it can be killed and its disk can fail: in a cheap forked process, or as a
command.

The fork server (`robustness.fork_child`) is a process without threads that has imported everything.
For each request it forks a child, which works on a real folder as the command does. The server arms
the shim where a fault is wanted and kills the child with SIGKILL in time. Only the parent kills and
waits, so a process id can never belong to somebody else.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "shim.c"
CACHE = HERE.parent / ".cache" / "robustness"
KILL_NOW = '"now"'
NEVER = 2**60  # a fault at this call only counts calls
TIMEOUT_S = 240.0
SINGLE_THREADED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "NO_COLOR": "1",
}


class UnavailableError(Exception):
    """Faults cannot be injected here; the message says why."""


@dataclass(frozen=True)
class Fault:
    """What fails from call `at` on, below which folder; shim.c lists the faults."""

    name: str
    under: str
    at: int = 1


@dataclass(frozen=True)
class RunRequest:
    """Arguments of the command line, or the writer of robustness.workloads with its arguments; and
    when to kill it.
    """

    words: tuple[str, ...] = ()
    writer: tuple[str, int, int] | None = None
    fault: Fault | None = None
    kill_after_s: float | None = None


@dataclass(frozen=True)
class RunResult:
    status: int  # the exit code, or minus the signal number
    seconds: float
    out: str
    err: str
    seen: int = 0  # calls of the fault's kind

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL

    @property
    def acknowledged(self) -> bool:
        """With --json a command prints nothing before everything is done, unless it fails."""
        return bool(self.out.strip()) and (self.status == 0 or self.killed)


def build_shim() -> Path:
    """The compiled shim; UnavailableError without a compiler."""
    if platform.system() != "Linux":
        raise UnavailableError(
            f"faults are made with LD_PRELOAD on Linux, this is {platform.system()}"
        )
    compiler = shutil.which("cc")
    if compiler is None:
        raise UnavailableError("no C compiler: install the Debian packages gcc and libc6-dev")
    made = CACHE / f"shim-{platform.machine()}-{_shim_hash()}.so"
    if not made.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = made.with_suffix(f".{os.getpid()}")
        line = [
            compiler,
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Wextra",
            "-o",
            str(draft),
            str(SOURCE),
            "-ldl",
        ]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"the shim cannot be compiled: {done.stderr[-500:]}")
        draft.rename(made)
    return made


def _shim_hash() -> str:
    from suffice.storage import sha256_of

    return sha256_of(SOURCE)[:12]


class ForkServer:
    """Handle of the forking process; use it in a `with` block. `begin` and `wait` are the halves of
    `run`.
    """

    def __init__(self, folder: Path, *, faults: bool = True) -> None:
        self.folder = Path(folder)
        preload = {"LD_PRELOAD": str(build_shim())} if faults else {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "robustness.fork_child", str(self.folder)],
            cwd=HERE.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={
                **os.environ,
                **SINGLE_THREADED,
                **preload,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
        )

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=TIMEOUT_S)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def err(self) -> Path:
        return self.folder / "err"

    def run(self, request: RunRequest) -> RunResult:
        self.begin(request)
        return self.wait()

    def begin(self, request: RunRequest) -> None:
        assert self._process.stdin is not None
        for file in (self.out, self.err):
            file.unlink(missing_ok=True)
        self._process.stdin.write(json.dumps(asdict(request)) + "\n")

    def kill(self) -> None:
        """Kill the current run, if it is still alive."""
        assert self._process.stdin is not None
        self._process.stdin.write(KILL_NOW + "\n")

    def wait(self) -> RunResult:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the fork server has died")
        request = json.loads(line)
        texts = [
            file.read_text(errors="replace") if file.exists() else ""
            for file in (self.out, self.err)
        ]
        return RunResult(request["status"], request["seconds"], texts[0], texts[1], request["seen"])


class CommandRunner:
    """Runs the same requests as `suffice` commands."""

    def run(self, request: RunRequest) -> RunResult:
        environment = {
            **os.environ,
            **SINGLE_THREADED,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        if request.fault:
            reply = {
                "SHIM_FAULT": request.fault.name,
                "SHIM_UNDER": request.fault.under,
                "SHIM_AT": str(request.fault.at),
            }
            environment |= {"LD_PRELOAD": str(build_shim()), **reply}
        began = time.monotonic()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            running = subprocess.Popen(
                [sys.executable, "-m", "suffice", *request.words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
            try:
                running.wait(TIMEOUT_S if request.kill_after_s is None else request.kill_after_s)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
            for stream in (out, err):
                stream.seek(0)
            return RunResult(running.returncode, time.monotonic() - began, out.read(), err.read())
