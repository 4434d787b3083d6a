"""Where things are: the project, its pages and what they are made from, and the real data, which is
not part of it.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
RESULTS = ROOT / "research" / "results"
RUNS = (
    RESULTS / "runs"
)  # what was measured, as the commands wrote it: the pages of RESULTS are made from these
DATA = Path(os.environ.get("SUFFICE_DATA") or ROOT.parent / "shared" / "data")
