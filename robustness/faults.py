"""Failing disks and jumping clocks, during build, update, fit, grade and serve.

Each fault of shim.c starts at a random call. What POSIX allows (short writes, interruptions) and clock jumps
must have no effect. A full, broken or read-only disk must give one clear error with a hint and the documented
exit code; acknowledged writes stay, and the same command succeeds once the disk works again. A torn write
kills the process.

    python -m robustness.faults --seed 7 --only "grade full"        repeat one row
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
OUTCOMES = ("succeeded", "reported", "died", "unreported", "lost", "corrupt", "not recovered")
WRONG = ("unreported", "lost", "corrupt", "not recovered")
TRIALS, QUICK = 2, 1  # faults without effect start at the first call: one trial is enough
KINDS: list[type[SufficeError]] = [SufficeError, *SufficeError.__subclasses__()]
EXIT_CODES = {kind.exit_code for kind in KINDS}


@dataclass
class FaultOutcome:
    """What happened with one fault in one workload."""

    work: str
    fault: str
    trials: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)

    def wrong(self, outcome: str, what: str) -> None:
        self.outcomes[outcome] += 1
        self.messages.append(f"{self.work}, {self.fault}: {outcome}: {what}")

    def cells(self) -> tuple[str, ...]:
        return (
            self.work,
            self.fault,
            str(self.trials),
            *(str(self.outcomes[one]) for one in OUTCOMES),
        )


def is_reported(result: RunResult) -> bool:
    """One error and one hint, the documented exit code, no traceback, no request to report a bug."""
    lines = [
        line.split(":")[0] for line in result.err.splitlines() if re.match("(error|hint):", line)
    ]
    blamed = "Traceback" in result.err or "fault of suffice" in result.err
    return result.status in EXIT_CODES and lines == ["error", "hint"] and not blamed


def run_trials(
    sandbox: Sandbox, work: Workload, fault: str, trials: int, rng: random.Random
) -> FaultOutcome:
    """Run the workload with the fault starting at random calls, or at the first if there is one trial; then without it."""
    row = FaultOutcome(work.name, fault)
    under = str(work.folder.parent)
    counted = sandbox.fork_server.run(
        replace(work.next_request(), fault=Fault(fault, under, NEVER))
    )  # this also leaves something to write over
    _check(work, counted, row)
    for _ in range(trials):
        first = 1 if trials == 1 or fault == "read-only" else rng.randint(1, max(counted.seen, 1))
        result = sandbox.fork_server.run(
            replace(work.next_request(), fault=Fault(fault, under, first))
        )
        row.trials += 1
        _classify(result, fault, row)
        _check(work, result, row)
        again = sandbox.fork_server.run(work.next_request())
        if again.status:
            row.wrong("not recovered", last_line(again))
        _check(work, again, row)
    return row


def _classify(result: RunResult, fault: str, row: FaultOutcome) -> None:
    if result.status == 0:
        row.outcomes["succeeded"] += 1
    elif result.killed and fault in DIES:
        row.outcomes["died"] += 1
    elif fault in REPORTED and is_reported(result):
        row.outcomes["reported"] += 1
    else:
        row.wrong("unreported", f"exit code {result.status}: {result.err.strip()[-600:]}")


def _check(work: Workload, result: RunResult, row: FaultOutcome) -> None:
    try:
        work.check(result)
    except InvariantError as error:
        row.wrong(error.kind, str(error))


def tables(quick: bool, *, seed: int = SEED, only: str = "") -> Iterator[ResultTable]:
    trials, found = QUICK if quick else TRIALS, []
    with Sandbox(seed) as sandbox:
        for name in WORKLOADS:
            for fault in (*DIES, *UNNOTICED, *REPORTED):
                if only in f"{name} {fault}":
                    print_progress(f"{name}: {fault}")
                    rng = random.Random(f"{seed} {name} {fault}")
                    found.append(
                        run_trials(
                            sandbox,
                            sandbox.work(name),
                            fault,
                            QUICK if fault in UNNOTICED else trials,
                            rng,
                        )
                    )
        yield _fault_table(found, seed)
        if not only:
            yield _service_table(sandbox, seed, kills=3 if quick else 15)


def _fault_table(found: list[FaultOutcome], seed: int) -> ResultTable:
    messages = [line for row in found for line in row.messages]
    return ResultTable(
        "Faults of disk and clock",
        "Each fault starts at a random call. Required: short writes, interruptions and clock jumps have no effect; a full, broken or read-only disk gives one error with a hint and exit code 1 or 2; no acknowledged write is lost, nothing is corrupt, and the same command succeeds once the disk works again.",
        ("workload", "fault", "trials", *OUTCOMES),
        tuple(row.cells() for row in found),
        (f"Seed {seed}: `python -m robustness.faults --seed {seed}`.", *messages[:20]),
        kept=bool(found) and not any(row.outcomes[one] for row in found for one in WRONG),
    )


def _service_table(sandbox: Sandbox, seed: int, *, kills: int) -> ResultTable:
    print_progress("serve")
    rows = [
        serve_and_kill(
            sandbox.fork_server, sandbox.room("served"), kills, random.Random(f"{seed} serve")
        ),
        serve_on_full_disk(sandbox.fork_server, sandbox.room("served-full")),
    ]
    messages = [line for row in rows for line in row.messages]
    return ResultTable(
        "The service while it is written to",
        "Documents are posted until it is killed, or its disk is full. Required: every write answered with 200 is there and nothing is corrupt; on a full disk the error is in the envelope, without traceback, and searches still work.",
        ("what", "times", "answered and checked", "refused", "lost", "corrupt", "unanswered"),
        tuple(row.cells() for row in rows),
        tuple(messages[:20]),
        kept=not messages,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--only", default="", help='rows whose work and fault have this in them, like "fit full"'
    )
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    return print_all(tables(args.quick, seed=args.seed, only=args.only))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
