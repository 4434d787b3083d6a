"""`make results`: measure the figures of docs/results again, a part a page. `make docs` then makes the pages.

`python -m docs.generators.measure loop gate` measures these two; all of them take most of a day. The pages of speed are measured by
`make bench`; questions that people read (grade-sample) are not measured at all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.generators import bridge, expansion, gate, loop, retrieval, studies
from docs.generators.paths import DATA
from suffice_research import STUDY_NAMES

# Page -> what measures it from the data; the second folder keeps what another run can use.
PARTS: dict[str, Callable[[Path, Path], None]] = {
    "retrieval": retrieval.measure,
    **{paper: partial(studies.measure, paper) for paper in STUDY_NAMES},
    "gate": gate.measure,
    "bridge": bridge.measure,
    "expansion": expansion.measure,
    "loop": loop.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.generators.measure", description=__doc__)
    parser.add_argument(
        "part", nargs="*", metavar="PART", help=f"only these: {', '.join(PARTS)}; all unless told"
    )
    parser.add_argument(
        "--data", type=Path, default=DATA, help="the folder of real data; SUFFICE_DATA unless told"
    )
    parser.add_argument(
        "--work",
        type=Path,
        help="keep vectors and fitted gates here, so that a run that was stopped goes on",
    )
    asked = parser.parse_args()
    if unknown := [part for part in asked.part if part not in PARTS]:
        parser.error(
            f"no page is measured by the name of {', '.join(unknown)}; there are {', '.join(PARTS)}"
        )
    if not asked.data.is_dir():
        print(
            f"error: no real data at {asked.data}\nhint: pass --data, or set SUFFICE_DATA; see CONTRIBUTING",
            file=sys.stderr,
        )
        return 2
    with TemporaryDirectory() as passing:
        work = (asked.work or Path(passing)).resolve()
        for part in asked.part or PARTS:
            print(f"measuring {part}", file=sys.stderr, flush=True)
            (work / part).mkdir(parents=True, exist_ok=True)
            PARTS[part](asked.data.resolve(), work / part)
    return 0


if __name__ == "__main__":
    sys.exit(main())
