"""How long studies took, as `make reproduce` prints it at its end:

    python -m suffice_research.study_times runs/magaf/study.json runs/frames/study.json

Processor time is that of all cores together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from suffice_research.study import IN_ALL, PROCESSOR, Study

__all__ = ["time_lines"]


def time_lines(paths: Sequence[Path]) -> Iterator[str]:
    """How long each study took, and all together; missing ones are reported."""
    sums, missing = {IN_ALL: 0.0, PROCESSOR: 0.0}, False
    for path in paths:
        name = path.parent.name
        if not path.is_file():
            missing = True
            yield f"{name}: not done"
            continue
        spent = Study.load(path).timings
        sums = {key: value + spent.get(key, 0.0) for key, value in sums.items()}
        yield f"{name}: {_minutes(spent)}"
    if len(paths) > 1:
        yield f"{'without those not done' if missing else 'in all'}: {_minutes(sums)}"


def _minutes(spent: Mapping[str, float]) -> str:
    wall, processor = (spent.get(key, 0.0) / 60 for key in (IN_ALL, PROCESSOR))
    return f"{wall:.1f} minutes, {processor:.1f} minutes of processor time"


if __name__ == "__main__":
    print(*time_lines([Path(one) for one in sys.argv[1:]]), sep="\n")
