"""Worker processes that end with their parent, even if it is killed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from typing import Any

__all__ = ["exit_with_parent", "worker_pool"]


def worker_pool(
    workers: int | None = None, *, initializer: Callable[..., None], initargs: tuple[Any, ...] = ()
) -> ProcessPoolExecutor:
    """A pool of new processes, by default one per core, each with `initializer(*initargs)` done."""
    spawn = get_context("spawn")  # forking while threads tokenize or read can deadlock
    started = (initializer, *initargs)
    return ProcessPoolExecutor(workers, mp_context=spawn, initializer=_start, initargs=started)


def _start(initializer: Callable[..., None], *initargs: Any) -> None:
    exit_with_parent()
    initializer(*initargs)


def exit_with_parent() -> None:
    """From now on, end this process when the one that started it has ended.

    A worker would otherwise wait for work for ever: it holds both ends of its queue itself.
    """
    threading.Thread(target=_wait_and_exit, daemon=True).start()


def _wait_and_exit() -> None:
    parent = parent_process()
    if parent is not None:  # this is a worker
        parent.join()
        os._exit(1)
