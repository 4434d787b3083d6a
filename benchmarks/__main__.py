"""`make bench`: every benchmark in turn; each prints its own table of ratios. `--quick` keeps to the small sizes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

failed = []
for file in sorted(Path(__file__).parent.glob("bench_*.py")):
    print(f"\n=== {file.stem.removeprefix('bench_')} ===", flush=True)
    if subprocess.run([sys.executable, "-m", f"benchmarks.{file.stem}", *sys.argv[1:]], check=False).returncode:
        failed.append(file.stem)
if failed:
    sys.exit(f"error: {', '.join(failed)} did not finish")
