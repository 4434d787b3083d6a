"""The base of a reader, made small enough to transfer to the training machine:
`python -m suffice_research.training.reader_bases --help`.

ms-marco-MiniLM-L-12-v2 (Apache-2.0) comes as int8 ONNX. Matrices become int8 with one scale per
row. `reader_training` reads the output.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from suffice_research.training.reader_weights import base_weights, write_weights

LIMIT = 56_000_000  # bytes per file


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minilm", type=Path, required=True, help="model.onnx")
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    write_weights(base_weights(args.minilm), args.out / "minilm", limit=LIMIT)


if __name__ == "__main__":
    _main()
