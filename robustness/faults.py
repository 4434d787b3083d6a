"""Disks that fail and clocks that jump, over build, update, fit, grade and serve.

Each fault of shim.c is there from a random call on. What POSIX allows (short writes, interruptions) and a jumping clock must
not be noticed. A disk that is full, broken or read-only must be told in one clear error with a hint and the documented exit
code, with what was acknowledged still there; once the disk is well again, the same command succeeds. A torn write is a death.

    python -m robustness.faults --seed 7 --only "grade full"        one row again
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from benchmarks.reporting import ResultTable, print_all, print_progress

from robustness.fork_server import NEVER, Fault, RunResult
from robustness.kills import SEED, Sandbox
from robustness.serve_faults import serve_and_kill, serve_on_full_disk
from robustness.workloads import InvariantError, Workload, last_line
from suffice.errors import SufficeError

DIES = ("torn",)
UNNOTICED = ("short", "interrupted", "clock")
REPORTED = ("full", "broken", "unreadable", "read-only")
WORKLOADS = ("build, a new library", "build, over a library", "update", "fit", "grade")
OUTCOMES = ("ended well", "told", "died", "untold", "lost", "corrupt", "not well again")
WRONG = ("untold", "lost", "corrupt", "not well again")
TRIALS, QUICK = 2, 1  # what must not be noticed is there from the first call on: once is enough
EXIT_CODES = {kind.exit_code for kind in (SufficeError, *SufficeError.__subclasses__())}


@dataclass
class FaultOutcome:
    """What came of one fault in one work."""

    work: str
    fault: str
    trials: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)

    def wrong(self, outcome: str, what: str) -> None:
        self.outcomes[outcome] += 1
        self.said.append(f"{self.work}, {self.fault}: {outcome}: {what}")

    def cells(self) -> tuple[str, ...]:
        return (
            self.work,
            self.fault,
            str(self.trials),
            *(str(self.outcomes[one]) for one in OUTCOMES),
        )


def is_reported(ended: RunResult) -> bool:
    """One error and one hint, the documented exit code, no traceback, and nobody is asked to report a fault of ours."""
    lines = [
        line.split(":")[0] for line in ended.err.splitlines() if re.match("(error|hint):", line)
    ]
    blamed = "Traceback" in ended.err or "fault of suffice" in ended.err
    return ended.status in EXIT_CODES and lines == ["error", "hint"] and not blamed


def run_trials(
    yard: Sandbox, work: Workload, fault: str, trials: int, chance: random.Random
) -> FaultOutcome:
    """The work with this fault from a random call on, so often, or once from the first; each time the disk is well again."""
    row = FaultOutcome(work.name, fault)
    under = str(work.folder.parent)
    counted = yard.nursery.run(
        replace(work.ask(), fault=Fault(fault, under, NEVER))
    )  # something stands there then, too
    _check(work, counted, row)
    for _ in range(trials):
        first = (
            1 if trials == 1 or fault == "read-only" else chance.randint(1, max(counted.seen, 1))
        )
        ended = yard.nursery.run(replace(work.ask(), fault=Fault(fault, under, first)))
        row.trials += 1
        _classify(ended, fault, row)
        _check(work, ended, row)
        again = yard.nursery.run(work.ask())
        if again.status:
            row.wrong("not well again", last_line(again))
        _check(work, again, row)
    return row


def _classify(ended: RunResult, fault: str, row: FaultOutcome) -> None:
    if ended.status == 0:
        row.outcomes["ended well"] += 1
    elif ended.killed and fault in DIES:
        row.outcomes["died"] += 1
    elif fault in REPORTED and is_reported(ended):
        row.outcomes["told"] += 1
    else:
        row.wrong("untold", f"exit code {ended.status}: {ended.err.strip()[-600:]}")


def _check(work: Workload, ended: RunResult, row: FaultOutcome) -> None:
    try:
        work.look(ended)
    except InvariantError as error:
        row.wrong(error.kind, str(error))


def tables(quick: bool, *, seed: int = SEED, only: str = "") -> Iterator[ResultTable]:
    trials, found = QUICK if quick else TRIALS, []
    with Sandbox(seed) as yard:
        for name in WORKLOADS:
            for fault in (*DIES, *UNNOTICED, *REPORTED):
                if only in f"{name} {fault}":
                    print_progress(f"{name}: {fault}")
                    chance = random.Random(f"{seed} {name} {fault}")
                    found.append(
                        run_trials(
                            yard,
                            yard.work(name),
                            fault,
                            QUICK if fault in UNNOTICED else trials,
                            chance,
                        )
                    )
        yield _fault_table(found, seed)
        if not only:
            yield _service_table(yard, seed, kills=3 if quick else 15)


def _fault_table(found: list[FaultOutcome], seed: int) -> ResultTable:
    said = [line for row in found for line in row.said]
    return ResultTable(
        "Faults of disk and clock",
        "Each fault from a random call on. Required: short writes, interruptions and clock jumps are not noticed; a disk that "
        "is full, broken or read-only is told in one error with a hint and exit code 1 or 2; nothing acknowledged is lost, "
        "nothing is corrupt, and the same command succeeds when the disk is well again.",
        ("work", "fault", "trials", *OUTCOMES),
        tuple(row.cells() for row in found),
        (f"Seed {seed}: `python -m robustness.faults --seed {seed}`.", *said[:20]),
        kept=bool(found) and not any(row.outcomes[one] for row in found for one in WRONG),
    )


def _service_table(yard: Sandbox, seed: int, *, kills: int) -> ResultTable:
    print_progress("serve")
    rows = [
        serve_and_kill(yard.nursery, yard.room("served"), kills, random.Random(f"{seed} serve")),
        serve_on_full_disk(yard.nursery, yard.room("served-full")),
    ]
    said = [line for row in rows for line in row.said]
    return ResultTable(
        "The service while it is written to",
        "Documents are posted until it is killed, or its disk is full. Required: what was answered with 200 is there, nothing "
        "is corrupt; on a full disk a refusal in the envelope, no traceback, and searches are still answered.",
        ("what", "times", "answered and checked", "refused", "lost", "corrupt", "unanswered"),
        tuple(row.cells() for row in rows),
        tuple(said[:20]),
        kept=not said,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--only", default="", help='rows whose work and fault have this in them, like "fit full"'
    )
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    return print_all(tables(asked.quick, seed=asked.seed, only=asked.only))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
