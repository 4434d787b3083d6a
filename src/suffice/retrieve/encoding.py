"""Vectors of many texts, block by block, wherever the blocks are encoded: the encoder is known by name and by what it says."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import NotReadyError
from suffice.ports import ENCODERS, Encoder, Job, Mapped, Progress, in_blocks
from suffice.retrieve import dense  # noqa: F401 - importing it registers wordllama

__all__ = ["BlockEncoder", "EncoderAt"]

AT_ONCE = 256
PROBE = ("Ada Lovelace was taught by Augustus De Morgan.", "Who taught the teacher of Ada?")

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class EncoderAt:
    """An encoder that other processes can open, too; the one at hand does not travel with it."""

    name: str
    said: str  # a hash of its vectors of the PROBE
    at_hand: Encoder | None = None

    @classmethod
    def of(cls, name: str, encoder: Encoder) -> EncoderAt:
        return cls(name, _said(encoder), encoder)

    def open(self) -> Encoder:
        """NotReadyError where the encoder of this name is another one here."""
        if self.at_hand is not None:
            return self.at_hand
        encoder = ENCODERS.get(self.name)()
        if _said(encoder) != self.said:
            raise NotReadyError(
                f"the encoder {self.name!r} gives other vectors here",
                hint="install the same models and packages there and here",
            )
        return encoder

    def __reduce__(self) -> tuple[Any, ...]:
        return EncoderAt, (self.name, self.said)


def _said(encoder: Encoder) -> str:
    return hashlib.sha256(np.asarray(encoder.encode(PROBE), dtype=np.float32).tobytes()).hexdigest()


class BlockEncoder:
    """An Encoder that does its work in blocks, wherever `mapped` does; `name` is the one under which it is registered."""

    def __init__(self, name: str, encoder: Encoder, mapped: Mapped, progress: Progress | None = None) -> None:
        self.name, self.dimension = name, encoder.dimension
        self._encoder, self._mapped, self._progress = EncoderAt.of(name, encoder), mapped, progress

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        """(texts, dimension), float32."""
        key = f"{self.name} {self._encoder.said} {query}"
        job = Job("encoding", partial(_encoded, query=query), self._encoder, EncoderAt.open, key=key)
        found = [np.zeros((0, self.dimension), np.float32)]
        done = 0
        for vectors in self._mapped(job, in_blocks(texts, AT_ONCE, letters=len)):
            found.append(vectors)
            done += len(vectors)
            if self._progress is not None:
                self._progress("encoding", done, len(texts))
        return np.concatenate(found)


def _encoded(texts: Sequence[str], encoder: Encoder, *, query: bool) -> Floats:
    return np.asarray(encoder.encode(texts, query=query), dtype=np.float32)
