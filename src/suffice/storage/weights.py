"""What models are made of, read with distrust: arrays, and networks as ONNX. Whoever wrote the file may mean harm.

An array is exactly as long as its header says before any memory is asked for, and holds numbers or letters, never objects. A
network that is given as bytes has all its weights in them; one that is given as a file may have some in other files of its
folder, and nowhere else: onnxruntime sees to that.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from suffice.errors import DataError

__all__ = [
    "array_from_bytes",
    "check_row_offsets",
    "open_onnx",
    "read_array",
    "read_texts",
    "write_texts",
]

_HEADER = (
    1,
    0,
)  # what numpy writes for all our arrays; a header of the next one may claim two gigabytes of itself


def read_array(path: Path, *, largest: float | None = None, hint: str = "") -> npt.NDArray[Any]:
    """The array of an .npy file; DataError where it is none, or not the one that its header describes.

    `largest` is what a number in it may be, either side of zero: one beyond, or none at all, would come as far as a division.
    """
    try:
        with Path(path).open("rb") as stream:
            found = _array(stream, Path(path).stat().st_size)
    except (
        Exception
    ) as error:  # numpy reads the header with Python's tokenizer, which has errors of its own
        raise DataError(f"{path} is no array that can be read: {error}", hint=hint) from error
    if largest is not None and found.dtype.kind == "f" and not (np.abs(found) <= largest).all():
        raise DataError(
            f"{path} holds numbers beyond {largest:,g}, or what is no number", hint=hint
        )
    return found


def array_from_bytes(content: bytes, what: str) -> npt.NDArray[Any]:
    """The same from bytes; `what` they are, for the error."""
    try:
        return _array(io.BytesIO(content), len(content))
    except Exception as error:
        raise DataError(f"{what} is no array that can be read: {error}") from error


def _array(stream: IO[bytes], size: int) -> npt.NDArray[Any]:
    version = npy.read_magic(stream)
    if version != _HEADER:
        raise ValueError(f"its format version is {version}")
    shape, by_columns, kind = npy.read_array_header_1_0(stream)
    if kind.hasobject:
        raise ValueError("it holds objects, which would have to be unpickled")
    if math.prod(shape) * kind.itemsize != size - stream.tell():
        raise ValueError(
            f"its header says {shape} of {kind}, and {size - stream.tell():,} bytes follow"
        )
    if not math.prod(shape) or not kind.itemsize:
        return np.zeros(shape, kind)
    flat = np.frombuffer(bytearray(stream.read()), dtype=kind)
    return flat.reshape(shape[::-1]).T if by_columns else flat.reshape(shape)


def write_texts(folder: Path, name: str, texts: Iterable[str]) -> None:
    """Any number of texts as two arrays: NAME_bytes.npy has them one behind the other, NAME_ends.npy where each ends."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    np.save(
        Path(folder) / f"{name}_ends.npy", np.cumsum([len(one) for one in encoded], dtype=np.int64)
    )
    np.save(Path(folder) / f"{name}_bytes.npy", np.frombuffer(b"".join(encoded), dtype=np.uint8))


def read_texts(folder: Path, name: str, *, hint: str = "") -> list[str]:
    """The texts that `write_texts` wrote; DataError where the two arrays do not fit together."""
    ends, letters = (
        read_array(Path(folder) / f"{name}_{part}.npy", hint=hint) for part in ("ends", "bytes")
    )
    try:
        check_row_offsets(np.concatenate([[0], ends]), letters)
        whole, bounds = letters.tobytes(), ends.tolist()
        return [whole[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *bounds], bounds)]
    except ValueError as error:
        raise DataError(
            f"the texts of {name} in {folder} cannot be read: {error}", hint=hint
        ) from error


def check_row_offsets(
    starts: npt.NDArray[Any], values: npt.NDArray[Any], *, below: int | None = None
) -> None:
    """ValueError unless row i can be values[starts[i]:starts[i + 1]], all of them numbers from 0 to `below`."""
    if (
        starts.ndim != 1
        or values.ndim != 1
        or not len(starts)
        or {starts.dtype.kind, values.dtype.kind} - {"i", "u"}
    ):
        raise ValueError("they are not lists of whole numbers")
    if starts[0] != 0 or starts[-1] != len(values) or (starts[1:] < starts[:-1]).any():
        raise ValueError("they do not fit together")
    if below is not None and len(values) and not 0 <= values.min() <= values.max() < below:
        raise ValueError(f"they point beyond the {below} there are")


def open_onnx(model: bytes | Path, *, threads: int, hint: str = "") -> Any:
    """A session of onnxruntime over a network's bytes, or over its file; DataError where it is damaged.

    `threads` 0: as many as there are cores.
    """
    import onnxruntime  # late: slow to import

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 4  # what it would print stands in the error
    what = "a network" if isinstance(model, bytes) else str(model)
    try:
        given = model if isinstance(model, bytes) else str(model)
        session = onnxruntime.InferenceSession(
            given, options, providers=["CPUExecutionProvider"], enable_fallback=0
        )
        for one in (*session.get_inputs(), *session.get_outputs()):
            _ = (
                one.name,
                one.shape,
            )  # names are decoded when they are asked for: damaged ones are found here
        return session
    except Exception as error:  # onnxruntime raises classes of its own that it does not export
        raise DataError(f"{what} is no ONNX model that can be read: {error}", hint=hint) from error
