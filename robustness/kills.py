"""Killed at any moment: SIGKILL during build, update, fit and grade, and the state afterwards.

Half of the kills come after a random time, half before a random call that changes the disk or in the middle of
a write. After each one the folder is opened as any user would: acknowledged writes are there, nothing is half
written, and the next run of the same command needs no repair. A final run without a kill must leave nothing
behind.

    python -m robustness.kills --seed 7 --kills 40 --only grade        repeat some kills, or try others
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.reporting import ResultTable, print_all, print_progress

from robustness.fork_server import NEVER, CommandRunner, Fault, ForkServer, RunRequest, RunResult
from robustness.workloads import (
    BuildWorkload,
    FitWorkload,
    GradeWorkload,
    InvariantError,
    UpdateWorkload,
    Workload,
    folder_contents,
    grade_request,
    has_failed,
    last_line,
    leftover_files,
)

SEED = 20261115
TROUBLES = ("lost", "corrupt", "repair", "leftovers")
COLUMNS = ("workload", "runs", "killed", "acknowledged and checked", *TROUBLES)
# How the five hundred kills are shared out. Starting a command line costs seconds, so it gets a twentieth.
SHARES = {
    "build, a new library": 105,
    "build, over a library": 95,
    "update": 165,
    "grade": 45,
    "grade, with blocks": 20,
    "fit": 45,
    "build, on the command line": 10,
    "grade, on the command line": 10,
    "fit, on the command line": 5,
}
AT_MOST = 4  # runs per kill: some end before they are killed
Run = Callable[[RunRequest], RunResult]


@dataclass
class KillTally:
    """What happened with the kills of one workload."""

    name: str
    runs: int = 0
    kills: int = 0  # that hit a running process
    checked: int = 0
    troubles: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)

    def trouble(self, kind: str, what: str) -> None:
        self.troubles[kind] += 1
        self.messages.append(f"{self.name}, after {self.kills} kills: {kind}: {what}")

    def row(self) -> tuple[str, ...]:
        counts = (self.runs, self.kills, self.checked, *(self.troubles[one] for one in TROUBLES))
        return self.name, *(f"{one:,}" for one in counts)


def kill_repeatedly(
    work: Workload, run: Run, kills: int, rng: random.Random, *, aimed: bool = True
) -> KillTally:
    """Run the workload again and again, kill it each time, and check the folder after each run."""
    tally = KillTally(work.name)
    whole = _run_to_end(work, run, tally, count=aimed)
    for at in range(AT_MOST * kills):
        if tally.kills == kills:
            break
        request = work.next_request()
        if aimed and at % 2:
            fault = rng.choice(["killed", "killed", "torn"])
            request = replace(
                request,
                fault=Fault(fault, str(work.folder.parent), rng.randint(1, max(whole.seen, 1))),
            )
        else:
            request = replace(request, kill_after_s=rng.uniform(0, whole.seconds))
        result = run(request)
        tally.runs += 1
        tally.kills += result.killed
        _check(work, result, tally)
        if at % 20 == 19:
            print_progress(
                f"{work.name}: {tally.kills} of {kills} killed, {sum(tally.troubles.values())} troubles"
            )
    _run_to_end(work, run, tally)
    if left := leftover_files(work.folder.parent):
        tally.trouble("leftovers", ", ".join(left[:5]))
    tally.checked = work.checked
    return tally


def _run_to_end(work: Workload, run: Run, tally: KillTally, *, count: bool = False) -> RunResult:
    """A run without a kill, which must succeed over whatever the killed ones left."""
    request = work.next_request()
    result = run(
        replace(request, fault=Fault("killed", str(work.folder.parent), NEVER))
        if count
        else request
    )
    if result.killed:
        tally.trouble("repair", "a run that nobody killed did not end")
    _check(work, result, tally)
    return result


def _check(work: Workload, result: RunResult, tally: KillTally) -> None:
    if has_failed(result):
        tally.trouble("repair", f"exit code {result.status}: {last_line(result)}")
    try:
        work.check(result)
    except InvariantError as error:
        tally.trouble(error.kind, str(error))


# ------------------------------------------------------------------------------------------------------------ the works


class Sandbox:
    """A temporary folder, the fork server, and what several workloads share; use it in a `with` block."""

    def __init__(self, seed: int = SEED) -> None:
        self.seed, self.home = seed, Path(tempfile.mkdtemp(prefix="suffice-kills-"))
        (self.home / "fork_server").mkdir()
        self.fork_server = ForkServer(self.home / "fork_server")
        self._references: dict[int, dict[str, bytes]] = {}

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.fork_server.__exit__()
        shutil.rmtree(self.home, ignore_errors=True)

    def room(self, name: str) -> Path:
        room = self.home / name.replace(" ", "-").replace(",", "")
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir()
        return room

    def work(self, name: str) -> Workload:
        kind, room = name.split(",")[0], self.room(name)
        work: Workload
        if kind == "build":
            work = BuildWorkload(room, fresh=name.endswith("new library"))
        elif kind == "update":
            work = UpdateWorkload(room, seed=self.seed)
        elif kind == "fit":
            work = FitWorkload(room)
        else:
            work = GradeWorkload(room, self.references(), blocks=name.endswith("blocks"))
        work.name = name
        return work

    def references(self) -> dict[int, dict[str, bytes]]:
        """What `suffice grade` makes of the documents with either seed when it is not disturbed."""
        if not self._references:
            for seed in (1, 2):
                room = self.room(f"reference-{seed}")
                result = self.fork_server.run(grade_request(room, room / "benchmark", seed))
                if result.status:
                    raise RuntimeError(f"the reference cannot be made: {last_line(result)}")
                self._references[seed] = folder_contents(room / "benchmark")
        return self._references

    def kill(self, name: str, kills: int) -> KillTally:
        on_shell = name.endswith("command line")
        rng = random.Random(f"{self.seed} {name}")
        run = CommandRunner().run if on_shell else self.fork_server.run
        return kill_repeatedly(self.work(name), run, kills, rng, aimed=not on_shell)


def tables(
    quick: bool, *, seed: int = SEED, kills: int | None = None, only: str = ""
) -> Iterator[ResultTable]:
    """Five hundred kills in all, or a twentieth of them when quick."""
    wanted = {
        name: kills or (max(share // 20, 1) if quick else share)
        for name, share in SHARES.items()
        if only in name
    }
    found = []
    with Sandbox(seed) as sandbox:
        for name, count in wanted.items():
            print_progress(f"killing: {name}")
            found.append(sandbox.kill(name, count))
    yield kill_table(found, seed, sum(wanted.values()))


def kill_table(found: list[KillTally], seed: int, wanted: int) -> ResultTable:
    """Kept if nothing went wrong in as many kills as wanted; with fewer, nothing is claimed."""
    total = KillTally("all")
    for one in found:
        total.runs += one.runs
        total.kills += one.kills
        total.checked += one.checked
        total.troubles.update(one.troubles)
    messages = [line for one in found for line in one.messages]
    if total.kills < wanted:
        messages.append(
            f"Fewer than the {wanted} wanted: the others finished before they could be killed."
        )
    return ResultTable(
        "SIGKILL at any moment",
        f"{total.kills} processes killed while running, half after a random time, half at a random call that changes the disk. "
        "Required: no acknowledged write is lost; nothing is corrupt, needs repair or is left behind.",
        COLUMNS,
        tuple(one.row() for one in (*found, total)),
        (f"Seed {seed}: `python -m robustness.kills --seed {seed}`.", *messages[:20]),
        kept=False if any(total.troubles.values()) else True if total.kills >= wanted else None,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--kills", type=int, help="so many of each work")
    parser.add_argument("--only", default="", help="works whose name has this in it")
    args = parser.parse_args()
    return print_all(tables(False, seed=args.seed, kills=args.kills, only=args.only))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
