"""The weights of an exported reader, to continue training if the training weights are lost:
`python -m suffice_research.training.reader_start --help`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from suffice.gate.reader import READER_KIND, READER_VERSION, REBUILD, SHIPPED_READER
from suffice.storage import open_artefact
from suffice_research.training.reader_export import WORDS, exported_weights
from suffice_research.training.reader_weights import write_weights
from suffice_research.training.sources import exit_code


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=SHIPPED_READER)
    parser.add_argument(
        "--out", type=Path, default=Path("start"), help="it writes OUT-0.npz and on"
    )
    args = parser.parse_args()
    return exit_code(lambda: _run(args))


def _run(args: argparse.Namespace) -> None:
    open_artefact(args.folder, kind=READER_KIND, version=READER_VERSION, rebuild=REBUILD)
    weights = exported_weights(args.folder)
    del weights[WORDS]  # they stay the base's
    print("reader_training --start", *write_weights(weights, args.out, small=False))


if __name__ == "__main__":
    sys.exit(_main())
