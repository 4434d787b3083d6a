"""A model file with its weights as plain floats.

The weights of SmolLM2 come four bits each, and llama.cpp's wheel for ARM unpacks them again for
every token that it reads. Unpacked once, they are the same numbers, and a prompt takes half the
processor time.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

F32, Q4_1, Q8_0 = 0, 3, 8
BLOCK, ALIGNED = 32, 32
BLOCK_BYTES = {F32: 4 * BLOCK, Q4_1: 20, Q8_0: 34}
TEXT, LIST = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of GGUF's numbers


class GgufReader:
    """Reads a GGUF file from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(form)
        return int(value)

    def text(self) -> bytes:
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length : self.at]

    def skip_value(self, kind: int) -> None:
        if kind == LIST:
            kind, count = self.number("I"), self.number("Q")
        else:
            count = 1
        for _ in range(count if kind == TEXT else 0):
            self.text()
        self.at += 0 if kind == TEXT else SIZES[kind] * count


def unpacked(kind: int, blocks: Any) -> Any:
    """The numbers of blocks of 32, each with its own scale."""
    if kind == F32:
        return blocks.view(np.float32)
    if kind == Q8_0:
        return blocks[:, 2:].view(np.int8) * blocks[:, :2].view(np.float16).astype(np.float32)
    scale = blocks[:, :4].copy().view(np.float16).astype(np.float32)
    fours = np.hstack([blocks[:, 4:] & 15, blocks[:, 4:] >> 4])
    return fours * scale[:, :1] + scale[:, 1:]


def write_unpacked(source: Path, target: Path) -> Path:
    """Write the model again with every weight as a float of 32 bits."""
    reader = GgufReader(source.read_bytes())
    reader.at = 8  # after the magic number and the version
    tensors, settings = reader.number("Q"), reader.number("Q")
    for _ in range(settings):
        reader.text()
        reader.skip_value(reader.number("I"))
    head = bytearray(reader.data[: reader.at])
    kept, offset = [], 0
    for _ in range(tensors):
        start = reader.at
        reader.text()
        shape = [reader.number("Q") for _ in range(reader.number("I"))]
        head += reader.data[start : reader.at] + struct.pack("<IQ", F32, offset)
        size = int(np.prod(shape))
        kept.append((reader.number("I"), reader.number("Q"), size))
        offset += size * 4
    first = -(-reader.at // ALIGNED) * ALIGNED
    data = np.frombuffer(reader.data, np.uint8)
    with target.open("wb") as stream:
        stream.write(head + bytes(-len(head) % ALIGNED))
        for kind, offset, size in kept:
            width = BLOCK_BYTES[kind]
            start = first + offset
            blocks = data[start : start + size // BLOCK * width].reshape(-1, width)
            stream.write(np.ascontiguousarray(unpacked(kind, blocks), np.float32).data)
    return target
