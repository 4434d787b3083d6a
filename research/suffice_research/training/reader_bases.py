"""The two base models of a reader, made small enough to transfer to the training machine:
`python -m suffice_research.training.reader_bases --help`.

ms-marco-MiniLM-L-12-v2 comes as int8 ONNX, all-mpnet-base-v2 as safetensors; both are Apache-2.0.
Matrices become int8 with one scale per row. `reader_training` reads the output.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from suffice.errors import MissingExtraError
from suffice_research.training.reader_weights import base_weights, write_weights

LIMIT = 56_000_000  # bytes per file
LEFT_OUT = ("position_ids", "pooler.")  # of mpnet: not used by the reader


def _main() -> None:
    try:
        from safetensors import safe_open
    except ImportError as error:
        raise MissingExtraError("training the reader", extra="train") from error

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minilm", type=Path, required=True, help="model.onnx")
    parser.add_argument("--mpnet", type=Path, required=True, help="model.safetensors")
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    write_weights(base_weights(args.minilm), args.out / "minilm", limit=LIMIT)
    with safe_open(args.mpnet, "np") as file:
        names = [name for name in file.keys() if not any(one in name for one in LEFT_OUT)]  # noqa: SIM118
        large = {name: file.get_tensor(name).astype(np.float32) for name in names}
        write_weights(large, args.out / "mpnet", limit=LIMIT)


if __name__ == "__main__":
    _main()
