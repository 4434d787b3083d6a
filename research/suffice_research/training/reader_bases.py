"""The two models that a reader starts from, made small enough to carry to the training machine:
`python -m suffice_research.training.reader_bases --help`.

ms-marco-MiniLM-L-12-v2 comes as int8 ONNX, all-mpnet-base-v2 as safetensors; both are Apache-2.0.
Matrices become int8 with one scale per row. `reader_training.weights_of` reads what this writes.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from suffice.errors import MissingExtraError
from suffice_research.training.reader_training import smaller

__all__ = ["shrink"]

LIMIT = 56_000_000  # bytes of one file
LEFT_OUT = ("position_ids", "pooler.")  # of mpnet: what the reader has no use for


def shrink(weights: Mapping[str, np.ndarray], out: Path, *, limit: int = LIMIT) -> list[Path]:
    """Write `out`-0.npz, `out`-1.npz and so on, none with more than `limit` bytes."""
    parts: list[dict[str, np.ndarray]] = [{}]
    size = 0
    for name, one in weights.items():
        items = smaller(name, np.asarray(one, np.float32))
        count = sum(part.nbytes for part in items.values())
        if size + count > limit:
            parts.append({})
            size = 0
        parts[-1] |= items
        size += count
    paths = [out.with_name(f"{out.name}-{number}.npz") for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        np.savez_compressed(path, **part)  # type: ignore[arg-type]
    return paths


def _main() -> None:
    try:
        from safetensors import safe_open
    except ImportError as error:
        raise MissingExtraError("training the reader", extra="train") from error
    from suffice_research.training.scorer import base_weights

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minilm", type=Path, required=True, help="model.onnx")
    parser.add_argument("--mpnet", type=Path, required=True, help="model.safetensors")
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    small = {name: one.numpy() for name, one in base_weights(args.minilm).items()}
    shrink(small, args.out / "minilm")
    with safe_open(args.mpnet, "np") as file:
        names = [name for name in file.keys() if not any(one in name for one in LEFT_OUT)]  # noqa: SIM118
        shrink({name: file.get_tensor(name) for name in names}, args.out / "mpnet")


if __name__ == "__main__":
    _main()
