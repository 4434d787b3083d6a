"""The parts and the figures of their last run: one JSON file per part in robustness/figures."""

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

# Part -> title; a part is the module of that name with `tables(quick)`.
PARTS = {
    "kills": "Killed at any moment",
    "faults": "Failing disks and jumping clocks",
    "fuzz": "Fuzzing",
    "claim_eval": "Claims and orders in documents",
    "attack_eval": "Adversarial texts",
    "soak": "An hour of mixed load",
    "supply": "Supply chain",
}


@dataclass(frozen=True)
class RunStart:
    """When a run started, and at which commit: an hour later there may be another."""

    at: float
    commit: str

    @classmethod
    def now(cls) -> RunStart:
        return cls(time.time(), _commit())


@dataclass(frozen=True)
class StoredFigures:
    """The tables of a part, and enough to measure them again."""

    command: str
    commit: str
    date: str
    machine: str
    load: str
    seconds: float
    quick: bool
    failed: tuple[str, ...]  # what failed or missed its requirement
    tables: tuple[ResultTable, ...]

    @classmethod
    def now(
        cls,
        part: str,
        tables: Sequence[ResultTable],
        failed: Sequence[str],
        *,
        quick: bool,
        start: RunStart,
    ) -> StoredFigures:
        return cls(
            command=f"python -m robustness {part} --write" + (" --quick" if quick else ""),
            commit=start.commit,
            date=datetime.fromtimestamp(start.at, UTC).date().isoformat(),
            machine=machine_info(),
            load=load_average(),
            seconds=round(time.time() - start.at, 1),
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
    """What the part measured last; None if it has not run."""
    path = folder / f"{part}.json"
    if not path.exists():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    tables = [
        {**one, **{name: tuple(one[name]) for name in ("columns", "notes")}}
        for one in record["tables"]
    ]
    record["tables"] = tuple(
        ResultTable(**{**one, "rows": tuple(map(tuple, one["rows"]))}) for one in tables
    )
    return StoredFigures(**{**record, "failed": tuple(record["failed"])})


def _commit() -> str:
    """The measured commit, with a plus if files have changed since; figures of other parts do not
    count.
    """
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
        commands = (["git", "rev-parse", "--short=12", "HEAD"], changes)
        head, changed = (
            subprocess.run(
                one, capture_output=True, text=True, check=True, cwd=FOLDER.parent
            ).stdout
            for one in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.strip() + ("+" if changed.strip() else "")
