"""The process behind `ForkServer`: it preloads suffice, then forks one child per request."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from robustness import workloads
from robustness.fork_server import KILL_NOW, TIMEOUT_S, Fault


def main() -> None:
    folder = Path(sys.argv[1])
    _preload()
    shared = ctypes.CDLL(None)
    seen = folder / "seen"
    for line in sys.stdin:
        if line.strip() == KILL_NOW:
            continue  # it has ended already
        request = json.loads(line)
        fault = Fault(**request["fault"]) if request["fault"] else None
        began = time.monotonic()
        seen.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            _run_child(request, fault, folder, shared)
        status = _wait_for_child(child, request["kill_after_s"])
        counted = int(seen.read_text()) if seen.exists() else 0
        print(
            json.dumps({"status": status, "seconds": time.monotonic() - began, "seen": counted}),
            flush=True,
        )


def _preload() -> None:
    """Import what the commands import late, so that forks share it.

    Models are small: nobody looks at their quality.
    """
    import bm25s  # noqa: F401
    import onnx  # noqa: F401
    import sklearn.ensemble
    import sklearn.linear_model
    import sklearn.mixture
    import sklearn.model_selection  # noqa: F401
    import wordllama

    import suffice.datasets
    import suffice.evaluation.gate_evaluation
    import suffice.evaluation.searching
    import suffice.integrations.openai
    import suffice.library
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
        raise RuntimeError(f"the fork server has {count} threads: a fork could hang")


def _run_child(
    request: dict[str, Any], fault: Fault | None, folder: Path, shared: ctypes.CDLL
) -> None:
    """In the child: redirect the outputs, arm the fault, run the request, exit."""
    code = 70
    try:
        for name, number in (("out", 1), ("err", 2)):
            handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(handle, number)
        if fault:
            shared.shim_arm(fault.name.encode(), fault.under.encode(), ctypes.c_long(fault.at))
        code = _run_request(request)
        sys.stdout.flush()
        if fault:
            shared.shim_disarm()
            (folder / "seen").write_text(str(shared.shim_seen()))
    finally:
        os._exit(code)


def _run_request(request: dict[str, Any]) -> int:
    import typer

    from suffice.cli.app import app
    from suffice.cli.output import handle_errors

    sys.argv = ["suffice", *request["words"]]
    try:
        if request["writer"]:
            with handle_errors():
                workloads.write_groups(*request["writer"])
        else:
            app()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(bool(left.code))
    except typer.Exit as left:
        return left.exit_code
    except BaseException:  # noqa: BLE001 - what the interpreter would do with it
        traceback.print_exc()
        return 1
    return 0


def _wait_for_child(child: int, kill_after_s: float | None) -> int:
    """Wait for the child or kill it in time; its exit status."""
    handle = os.pidfd_open(child)
    try:
        result, _, _ = select.select(
            [handle, sys.stdin], [], [], TIMEOUT_S if kill_after_s is None else kill_after_s
        )
        if handle not in result:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()
