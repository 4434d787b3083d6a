"""Which parts there are, and what each measured when it last ran: one JSON file a part, beside the code that made it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from benchmarks.reporting import ResultTable, load_average, machine_info

from suffice.storage import write_atomically

FOLDER = Path(__file__).parent / "figures"

# A part is the module of that name with `tables(quick)`.
PARTS = {
    "kills": "Killed at any moment",
    "faults": "Disks that fail, clocks that jump",
    "fuzz": "Any input at all",
    "attack_eval": "Texts that want something",
    "soak": "An hour of mixed load",
    "supply": "What is installed",
}


@dataclass(frozen=True)
class RunStart:
    """When a run began and of which commit: an hour later there may be another."""

    at: float
    commit: str

    @classmethod
    def now(cls) -> RunStart:
        return cls(time.time(), _commit())


@dataclass(frozen=True)
class StoredFigures:
    """A part's tables, and enough to measure them again."""

    command: str
    commit: str
    date: str
    machine: str
    load: str
    seconds: float
    quick: bool
    failed: tuple[str, ...]  # what broke or fell short
    tables: tuple[ResultTable, ...]

    @classmethod
    def now(
        cls,
        part: str,
        tables: Sequence[ResultTable],
        failed: Sequence[str],
        *,
        quick: bool,
        begun: RunStart,
    ) -> StoredFigures:
        return cls(
            command=f"python -m robustness {part} --write" + (" --quick" if quick else ""),
            commit=begun.commit,
            date=datetime.fromtimestamp(begun.at, UTC).date().isoformat(),
            machine=machine_info(),
            load=load_average(),
            seconds=round(time.time() - begun.at, 1),
            quick=quick,
            failed=tuple(failed),
            tables=tuple(tables),
        )


def available_parts() -> list[str]:
    return [part for part in PARTS if find_spec(f"robustness.{part}")]


def save_figures(part: str, figures: StoredFigures) -> Path:
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{part}.json"
    write_atomically(path, json.dumps(asdict(figures), indent=1, ensure_ascii=False) + "\n")
    return path


def load_figures(part: str, folder: Path = FOLDER) -> StoredFigures | None:
    """What the part measured last; None where it has not been run."""
    path = folder / f"{part}.json"
    if not path.exists():
        return None
    told = json.loads(path.read_text(encoding="utf-8"))
    tables = [
        {**one, **{name: tuple(one[name]) for name in ("columns", "notes")}}
        for one in told["tables"]
    ]
    told["tables"] = tuple(
        ResultTable(**{**one, "rows": tuple(map(tuple, one["rows"]))}) for one in tables
    )
    return StoredFigures(**{**told, "failed": tuple(told["failed"])})


def _commit() -> str:
    """The commit that was measured, with a plus where files had been changed since; figures of other parts are none of them."""
    changes = [
        "git",
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        ":/",
        f":(exclude){FOLDER.name}",
    ]
    try:
        asked = (["git", "rev-parse", "--short=12", "HEAD"], changes)
        head, changed = (
            subprocess.run(
                one, capture_output=True, text=True, check=True, cwd=FOLDER.parent
            ).stdout
            for one in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.strip() + ("+" if changed.strip() else "")
