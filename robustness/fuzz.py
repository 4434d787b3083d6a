"""Fuzzing: whatever reads files, texts and requests accepts or refuses any input, quickly and with
a proper error.

Each target (robustness.loader_targets, text_targets, artefact_targets, http_targets) gets valid
inputs with something wrong in them (robustness.mutations), numbered: `python -m robustness.fuzz
musique 0 1000` runs the first thousand. An input is *accepted*, or *refused* with a SufficeError
(over HTTP, a status below 500). Everything else is a finding: another exception, a warning, more
than five seconds, a crash. Seconds are processor seconds, so a busy machine adds none; a target
that only waits is stopped after a minute. A finding becomes a file in tests/cases, which the tests
run forever.

Each target runs in its own process with a memory limit, on files in memory where the system allows.
Results are cached in `.cache/fuzz` with the hashes of all code that ran, so a stopped run resumes
and only targets whose code changed run again. A full run takes hours; FUZZ_INPUTS=20000 uses fewer
inputs, and the table says so. With atheris installed, `python -m robustness.fuzz --atheris musique
-runs=100000` is coverage-guided.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.reporting import ResultTable, peak_bytes, print_progress, run_in_subprocess

import suffice
from robustness.mutations import Input, mutate
from robustness.targets import OpenTarget, Target, TargetError
from suffice.errors import SufficeError
from suffice.storage import package_versions, sha256_of, write_atomically

__all__ = [
    "CASES",
    "FuzzResult",
    "HangError",
    "read_once",
    "regression_cases",
    "run_inputs",
    "tables",
    "targets",
]

INPUTS, QUICK, PIECE = 200_000, 500, 20_000
PATIENCE_S, WAITING_S = 5.0, 60.0  # of the processor, on the clock
MEMORY = (
    6 * 1024**3
)  # of address space, for one target's process: arenas and mapped files count, too
SHOWN = 5  # findings of a target that are kept
ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"
CACHE = ROOT / ".cache" / "fuzz"
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


class HangError(BaseException):
    """An input took too long. Not an Exception, so that no `except Exception` catches it."""


@dataclass(slots=True)
class FuzzResult:
    """What happened with the inputs of one target."""

    name: str
    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    other: int = 0
    slowest_s: float = 0.0
    slowest_at: int = -1
    seconds: float = 0.0
    peak_bytes: int = 0
    findings: list[str] = field(default_factory=list)

    def joined(self, more: FuzzResult) -> FuzzResult:
        slower = more if more.slowest_s > self.slowest_s else self
        return FuzzResult(
            self.name,
            self.inputs + more.inputs,
            self.accepted + more.accepted,
            self.refused + more.refused,
            self.other + more.other,
            slower.slowest_s,
            slower.slowest_at,
            self.seconds + more.seconds,
            max(self.peak_bytes, more.peak_bytes),
            [*self.findings, *more.findings][:SHOWN],
        )


def targets() -> dict[str, Target]:
    """All targets by name."""
    return {one.name: one for one in iter_targets()}


def iter_targets() -> Iterator[Target]:
    """Module by module: looking up a file loader does not import the service."""
    for module in ("loader_targets", "text_targets", "artefact_targets", "http_targets"):
        yield from getattr(import_module(f"robustness.{module}"), module.upper())


# ---- reading


@contextmanager
def watchdog() -> Iterator[None]:
    """Turn warnings into findings, and interrupt inputs that take too long."""

    def late(signum: int, _: Any) -> None:
        raise HangError(
            f"more than {PATIENCE_S:g} seconds"
            if signum == signal.SIGPROF
            else f"waits {WAITING_S:g} seconds"
        )

    before = {one: signal.signal(one, late) for one in (signal.SIGPROF, signal.SIGALRM)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        _set_timers(0, 0)
        for one, handler in before.items():
            signal.signal(one, handler)


def _set_timers(processor_s: float, clock_s: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, processor_s)
    signal.setitimer(signal.ITIMER_REAL, clock_s)


def read_once(opened: OpenTarget, given: Input) -> str:
    """'accepted', 'refused', or the finding."""
    _set_timers(PATIENCE_S, WAITING_S)
    try:
        return "accepted" if opened.read(given) else "refused"
    except SufficeError:
        return "refused"
    except (Exception, HangError) as error:  # noqa: BLE001 - any other is what is looked for
        return f"{type(error).__name__}: {error}"[:300]
    finally:
        _set_timers(0, 0)


def run_inputs(target: Target, opened: OpenTarget, start: int, stop: int) -> FuzzResult:
    """Run the inputs with these numbers."""
    found = FuzzResult(target.name)
    began = time.perf_counter()
    for at in range(start, stop):
        given = mutate(opened.seeds, f"{target.name}/{at}")
        sent = time.process_time()
        came = read_once(opened, given)
        took = time.process_time() - sent
        found.inputs += 1
        if took > found.slowest_s:
            found.slowest_s, found.slowest_at = took, at
        if came == "accepted":
            found.accepted += 1
        elif came == "refused":
            found.refused += 1
        else:
            found.other += 1
            if len(found.findings) < SHOWN:
                found.findings.append(f"{target.name} {at} ({given.part}): {came}")
    found.seconds = time.perf_counter() - began
    return found


def regression_cases(folder: Path = CASES) -> Iterator[tuple[str, Input, Path]]:
    """Former findings: TARGET/PART=what-was-wrong, with dashes for spaces in targets and commas for
    slashes in parts.
    """
    known = {_slug(name): name for name in targets()}
    for path in sorted(folder.glob("*/*")):
        yield (
            known[path.parent.name],
            Input(path.name.partition("=")[0].replace(",", "/"), path.read_bytes()),
            path,
        )


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name)


# ---- measuring


def fuzz_target(name: str, count: int) -> FuzzResult:
    """Run the first inputs of a target, piece by piece."""
    whole = FuzzResult(name)
    for start in range(0, count, PIECE):
        whole = whole.joined(_fuzz_piece(name, start, min(start + PIECE, count)))
        print_progress(f"{name}: {whole.inputs:,} of {count:,} inputs, {whole.other} findings")
    return whole


def _fuzz_piece(name: str, start: int, stop: int) -> FuzzResult:
    """Run one piece in its own process, unless the same code has run it without findings."""
    kept = CACHE / f"{_slug(name)}-{start}-{stop}.json"
    if kept.exists():
        before = json.loads(kept.read_text(encoding="utf-8"))
        if _is_unchanged(before["ran"]):
            return FuzzResult(**before["found"])
    try:
        output = run_in_subprocess("robustness.fuzz", name, str(start), str(stop))
    except RuntimeError as error:
        lost = str(error).splitlines()[-1]
        return FuzzResult(
            name,
            inputs=stop - start,
            other=1,
            findings=[f"{name} {start}-{stop}: the process ended: {lost}"],
        )
    piece = FuzzResult(**output["found"])
    if not piece.other:
        write_atomically(kept, json.dumps(output))
    return piece


@contextmanager
def record_sources() -> Iterator[dict[str, Any]]:
    """Collect the package versions and the hash of each file of ours that this process imports or
    opens.
    """
    ours, opened = (
        (Path(suffice.__file__).parent, ROOT / "robustness", ROOT / "tests", ROOT / "benchmarks"),
        set[Path](),
    )

    def on(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(str(ROOT)):
            opened.add(Path(arguments[0]))

    sys.addaudithook(on)
    ran: dict[str, Any] = {}
    yield ran
    imported = {
        Path(path) for one in list(sys.modules.values()) if (path := getattr(one, "__file__", None))
    }
    read = [
        one
        for one in imported | opened
        if one.suffix != ".pyc" and any(map(one.is_relative_to, ours)) and one.is_file()
    ]
    ran |= {
        "packages": package_versions(),
        "files": {os.path.relpath(one, ROOT): _hash(one) for one in sorted(read)},
    }


def _is_unchanged(ran: dict[str, Any]) -> bool:
    return ran["packages"] == package_versions() and all(
        _hash(ROOT / one) == its for one, its in ran["files"].items()
    )


@cache
def _hash(path: Path) -> str:
    return sha256_of(path) if path.is_file() else "not there"


GROUPS = {
    "loaders": ("Data sets, logs and other files", "Every file format that users provide."),
    "texts": (
        "Texts and grammars",
        "Questions, options, filters and model answers.",
    ),
    "artefacts": (
        "Models, libraries and other artefacts",
        "Folders and files that somebody else may have changed.",
    ),
    "http": (
        "Every endpoint of the service",
        "Bodies, headers and URLs, and bytes that are not HTTP.",
    ),
}
COLUMNS = ("target", "inputs", "accepted", "refused", "other", "slowest ms", "peak MB")


def tables(quick: bool) -> Iterator[ResultTable]:
    """One table per group, for guarantees.md."""
    known, count = targets(), int(os.environ.get("FUZZ_INPUTS") or (QUICK if quick else INPUTS))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for group, (title, says) in GROUPS.items():
            names = [one.name for one in known.values() if one.group == group]
            if rows := list(pool.map(fuzz_target, names, [count] * len(names))):
                yield table(title, says, rows)


def table(title: str, says: str, rows: Sequence[FuzzResult]) -> ResultTable:
    """Kept if there is no finding in all required inputs; with fewer inputs, nothing is claimed."""
    sound = not any(one.other for one in rows) and all(one.slowest_s < PATIENCE_S for one in rows)
    enough = all(one.inputs >= INPUTS for one in rows)
    fewer = (
        ()
        if enough
        else (
            (
                f"Fewer than the {INPUTS:,} inputs that are required of each: this run does not "
                f"show that it holds."
            ),
        )
    )
    return ResultTable(
        title,
        (
            f"{says} Required: each of {INPUTS:,} inputs is accepted or refused, in under "
            f"{PATIENCE_S:g} s."
        ),
        COLUMNS,
        tuple(_row(one) for one in rows),
        (*(finding for one in rows for finding in one.findings), *fewer),
        False if not sound else True if enough else None,
    )


def _row(one: FuzzResult) -> tuple[str, ...]:
    counts = (f"{number:,}" for number in (one.inputs, one.accepted, one.refused, one.other))
    return (one.name, *counts, f"{one.slowest_s * 1e3:,.0f}", f"{one.peak_bytes / 1e6:,.0f}")


# ---- one process


@contextmanager
def open_target(name: str) -> Iterator[tuple[Target, OpenTarget]]:
    """A target in its own folder, under the watchdog."""
    target = next((one for one in iter_targets() if one.name == name), None)
    if target is None:
        raise SystemExit(f"no target is named {name!r}; known: {', '.join(targets())}")
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-", dir=IN_MEMORY) as folder,
        target.opened(Path(folder)) as opened,
        watchdog(),
    ):
        yield target, opened


def main(arguments: Sequence[str]) -> None:
    """TARGET START STOP prints the result as JSON; TARGET AT prints the input itself, for a file in
    tests/cases.
    """
    if arguments[:1] == ["--atheris"]:
        run_atheris(arguments[1], arguments[2:])
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with record_sources() as ran, open_target(arguments[0]) as (target, opened):
        if len(arguments) == 2:
            given = mutate(opened.seeds, f"{target.name}/{arguments[1]}")
            print(f"{given.part}: {read_once(opened, given)}", file=sys.stderr)
            sys.stdout.buffer.write(given.content)
            return
        found = run_inputs(target, opened, int(arguments[1]), int(arguments[2]))
    found.peak_bytes = peak_bytes()
    print(json.dumps({"found": asdict(found), "ran": ran}))


def run_atheris(name: str, options: Sequence[str]) -> None:
    """The same target with inputs chosen by atheris; the first byte selects the part."""
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

    with atheris.instrument_imports(include=["suffice"]), open_target(name) as (_, opened):
        parts = [seed.part for seed in opened.seeds]

        def one(content: bytes) -> None:
            came = (
                read_once(opened, Input(parts[content[0] % len(parts)], content[1:]))
                if content
                else "refused"
            )
            if came not in ("accepted", "refused"):
                raise TargetError(came)

        with tempfile.TemporaryDirectory(prefix="seeds-") as folder:
            for at, seed in enumerate(opened.seeds):
                (Path(folder) / str(at)).write_bytes(bytes([at]) + seed.content)
            atheris.Setup([sys.argv[0], folder, *options], one)
            atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
