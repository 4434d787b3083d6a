"""What a fuzzing target is: something that reads outside input, valid inputs for it, and how to
read one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from robustness.mutations import Input, Seed

__all__ = ["OpenTarget", "Target", "TargetError", "TargetFiles", "file_target", "text_target"]


@dataclass(frozen=True, slots=True)
class OpenTarget:
    """A target that is ready: valid inputs, and `read`, which says whether an input was accepted."""

    seeds: Sequence[Seed]
    read: Callable[[Input], bool]


@dataclass(frozen=True, slots=True)
class Target:
    """Something that reads outside input. `opened` gets an empty folder to work in."""

    name: str
    group: str
    says: str
    opened: Callable[[Path], AbstractContextManager[OpenTarget]]


class TargetError(Exception):
    """A finding that a target detects itself, such as a 500 response."""


class TargetFiles:
    """The files of one target: all valid but the one under test."""

    def __init__(self, folder: Path, sound: Iterable[Seed]) -> None:
        self.folder = folder
        self._sound: dict[str, bytes] = {}
        for one in sound:
            self._sound.setdefault(one.part, one.content)
        for part in self._sound:
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            self._write(part, self._sound[part])
        self._altered = ""

    def put(self, given: Input) -> Path:
        """Write this input as one of the files; returns that file."""
        if self._altered not in ("", given.part):
            self._write(self._altered, self._sound[self._altered])
        self._altered = given.part
        return self._write(given.part, given.content)

    def _write(self, part: str, content: bytes) -> Path:
        path = self.folder / part
        with path.open("wb") as stream:
            stream.write(content)
        return path


def file_target(
    name: str,
    group: str,
    says: str,
    seeds: Sequence[Seed],
    read: Callable[[Path, Path, Input], bool | None],
) -> Target:
    """A target that reads files: `read` gets the folder, the mutated file and its content."""

    @contextmanager
    def opened(folder: Path) -> Iterator[OpenTarget]:
        files = TargetFiles(folder, seeds)

        def one(given: Input) -> bool:
            return read(folder, files.put(given), given) is not False

        yield OpenTarget(seeds, one)

    return Target(name, group, says, opened)


def text_target(
    name: str, says: str, seeds: Sequence[Seed], read: Callable[[str], bool | None]
) -> Target:
    """A target that reads texts; invalid UTF-8 reaches it as a shell would pass it on."""

    @contextmanager
    def opened(folder: Path) -> Iterator[OpenTarget]:
        yield OpenTarget(
            seeds, lambda given: read(given.content.decode("utf-8", "surrogateescape")) is not False
        )

    return Target(name, "texts", says, opened)
