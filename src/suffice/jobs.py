"""Batch jobs: process an input in blocks, with the same result wherever it runs.

`suffice.engines.batch` runs jobs on other processes and machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

MAX_BLOCK_CHARS = 4_000_000  # a block of long records ends early, to bound memory
T = TypeVar("T")


def identity(shared: Any) -> Any:
    """The default `prepare` of a job."""
    return shared


@dataclass(frozen=True)
class Job:
    """Run `do(block, prepare(shared))` on each block; `prepare` runs once per process.

    A job may run on another machine, so functions are identified by module and name, or are
    partials of such functions. A result consists of JSON values or is one array, so that it can be
    cached on disk. `key` names what a result depends on besides the block and the code; if empty,
    nothing is cached.
    """

    name: str  # for display, like "checking"
    do: Callable[[Any, Any], Any]
    shared: Any = None
    prepare: Callable[[Any], Any] = identity
    key: str = ""


JobRunner = Callable[[Job, Iterable[Any]], Iterator[Any]]  # yields results in the order of blocks


def run_in_process(job: Job, blocks: Iterable[Any]) -> Iterator[Any]:
    """Run a job in this process, one block after the other."""
    ready = job.prepare(job.shared)
    return (job.do(block, ready) for block in blocks)


def split_into_blocks(
    items: Iterable[T], size: int, *, chars: Callable[[T], int] | None = None
) -> Iterator[list[T]]:
    """Blocks of at most `size` items and, with `chars`, about MAX_BLOCK_CHARS characters."""
    block: list[T] = []
    total = 0
    items = iter(items)
    while True:
        try:
            item = next(items)
        except StopIteration:
            break
        except Exception:
            if block:  # yield what was read before the error first
                yield block
            raise
        block.append(item)
        total += chars(item) if chars else 0
        if len(block) >= size or total >= MAX_BLOCK_CHARS:
            yield block
            block, total = [], 0
    if block:
        yield block
