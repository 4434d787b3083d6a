"""Runs of suffice that may be killed and whose disk may fail: in a forked process, which costs little, or as a command.

The nursery is a process that has imported everything and has no threads. For each request it forks a child, which works on a
real folder like the command does, arms the shim in it where a fault is wanted, and kills it with SIGKILL after its time. It is
the parent who kills and buries, so that no number of a process is ever meant that is somebody else's.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import platform
import select
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
CACHE = HERE.parent / ".cache" / "trust"
KILL_NOW = '"now"'
NEVER = 2**60  # a fault at this call only counts
TIMEOUT_S = 240.0
SINGLE_THREADED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "NO_COLOR": "1",
}


class UnavailableError(Exception):
    """Faults cannot be made here; the message says why."""


@dataclass(frozen=True)
class Fault:
    """What fails from call `at` on, in whose folder; shim.c says which faults there are."""

    name: str
    under: str
    at: int = 1


@dataclass(frozen=True)
class RunRequest:
    """Words of the command line, or the writer of robustness.workloads with its arguments; and when it is to die, if it is."""

    words: tuple[str, ...] = ()
    writer: tuple[str, int, int] | None = None
    fault: Fault | None = None
    dies_after_s: float | None = None


@dataclass(frozen=True)
class RunResult:
    status: int  # the exit code, or the number of the signal as a negative one
    seconds: float
    out: str
    err: str
    seen: int = 0  # calls that the fault's groups saw

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL

    @property
    def acknowledged(self) -> bool:
        """With --json a command says nothing on the standard output before all is done, unless it fails."""
        return bool(self.out.strip()) and (self.status == 0 or self.killed)


def build_shim() -> Path:
    """The shim, compiled where it is not yet; UnavailableError without a compiler."""
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
    """The handle of the process that forks; use it in a `with` block. `begin` and `wait` are the halves of `run`."""

    def __init__(self, folder: Path, *, faults: bool = True) -> None:
        self.folder = Path(folder)
        preload = {"LD_PRELOAD": str(build_shim())} if faults else {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "robustness.fork_server", str(self.folder)],
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

    def run(self, asked: RunRequest) -> RunResult:
        self.begin(asked)
        return self.wait()

    def begin(self, asked: RunRequest) -> None:
        assert self._process.stdin is not None
        for file in (self.out, self.err):
            file.unlink(missing_ok=True)
        self._process.stdin.write(json.dumps(asdict(asked)) + "\n")

    def kill(self) -> None:
        """Kill what was begun now, if it still lives."""
        assert self._process.stdin is not None
        self._process.stdin.write(KILL_NOW + "\n")

    def wait(self) -> RunResult:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the nursery has died")
        told = json.loads(line)
        texts = [
            file.read_text(errors="replace") if file.exists() else ""
            for file in (self.out, self.err)
        ]
        return RunResult(told["status"], told["seconds"], texts[0], texts[1], told["seen"])


class CommandRunner:
    """The same requests, each as `suffice` on the command line."""

    def run(self, asked: RunRequest) -> RunResult:
        environment = {
            **os.environ,
            **SINGLE_THREADED,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        if asked.fault:
            told = {
                "SHIM_FAULT": asked.fault.name,
                "SHIM_UNDER": asked.fault.under,
                "SHIM_AT": str(asked.fault.at),
            }
            environment |= {"LD_PRELOAD": str(build_shim()), **told}
        began = time.monotonic()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            running = subprocess.Popen(
                [sys.executable, "-m", "suffice", *asked.words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
            try:
                running.wait(TIMEOUT_S if asked.dies_after_s is None else asked.dies_after_s)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
            for stream in (out, err):
                stream.seek(0)
            return RunResult(running.returncode, time.monotonic() - began, out.read(), err.read())


# ------------------------------------------------------------------------------------------------------ in the nursery


def main() -> None:
    folder = Path(sys.argv[1])
    _preload()
    shared = ctypes.CDLL(None)
    seen = folder / "seen"
    for line in sys.stdin:
        if line.strip() == KILL_NOW:
            continue  # it was dead already
        told = json.loads(line)
        fault = Fault(**told["fault"]) if told["fault"] else None
        began = time.monotonic()
        seen.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            _run_child(told, fault, folder, shared)
        status = _wait_for_child(child, told["dies_after_s"])
        counted = int(seen.read_text()) if seen.exists() else 0
        print(
            json.dumps({"status": status, "seconds": time.monotonic() - began, "seen": counted}),
            flush=True,
        )


def _preload() -> None:
    """Import what the commands import late, so that a fork has it; small models, for nobody asks how good they are."""
    import bm25s  # noqa: F401
    import onnx  # noqa: F401
    import sklearn.ensemble
    import sklearn.linear_model
    import sklearn.mixture
    import sklearn.model_selection  # noqa: F401
    import wordllama

    import suffice.benchmark.pipeline
    import suffice.datasets
    import suffice.evaluation.benchmark_files
    import suffice.evaluation.gate_evaluation
    import suffice.evaluation.retrieved_questions
    import suffice.integrations.openai
    import suffice.library
    from robustness import workloads  # noqa: F401
    from suffice.gate import model
    from suffice.registry import ENCODERS

    model.HIT_TREES, model.ABSENT_TREES = 8, 5
    model.BOOSTED_TREES, model.EXTRA_TREES = 8, 8
    wordllama.WordLlama.load = functools.cache(
        wordllama.WordLlama.load
    )  # every child would read the same file again
    ENCODERS.get("wordllama")().encode(["warm"])
    with contextlib.suppress(ImportError):
        import suffice.service.app
        import suffice.service.server  # noqa: F401
    if (count := len(os.listdir("/proc/self/task"))) > 1:  # noqa: PTH208
        raise RuntimeError(f"the nursery has {count} threads: a fork of it could hang")


def _run_child(told: dict, fault: Fault | None, folder: Path, shared: ctypes.CDLL) -> None:  # type: ignore[type-arg]
    """The child: its own outputs, its fault, its work, its end."""
    code = 70
    try:
        for name, number in (("out", 1), ("err", 2)):
            handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(handle, number)
        if fault:
            shared.shim_arm(fault.name.encode(), fault.under.encode(), ctypes.c_long(fault.at))
        code = _run_request(told)
        sys.stdout.flush()
        if fault:
            shared.shim_disarm()
            (folder / "seen").write_text(str(shared.shim_seen()))
    finally:
        os._exit(code)


def _run_request(told: dict) -> int:  # type: ignore[type-arg]
    import typer

    from robustness.workloads import write_groups
    from suffice.cli.app import app
    from suffice.cli.output import handle_errors

    sys.argv = ["suffice", *told["words"]]
    try:
        if told["writer"]:
            with handle_errors():
                write_groups(*told["writer"])
        else:
            app()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(bool(left.code))
    except typer.Exit as left:
        return left.exit_code
    except BaseException:  # noqa: BLE001 - what the interpreter would do with it
        import traceback

        traceback.print_exc()
        return 1
    return 0


def _wait_for_child(child: int, dies_after_s: float | None) -> int:
    """Wait for the child's end, or bring it about; its exit status."""
    handle = os.pidfd_open(child)
    try:
        ended, _, _ = select.select(
            [handle, sys.stdin], [], [], TIMEOUT_S if dies_after_s is None else dies_after_s
        )
        if handle not in ended:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()
