"""Every error that suffice raises on purpose, as one tree.

    SufficeError                    the root: catch this to catch all of them
    ├── InputError                  (also ValueError) a file, argument or value of yours is wrong
    ├── NotReadyError               build or fit something first, or it has another format version
    ├── MissingExtraError           (also ImportError) an optional package is not installed
    ├── EngineError                 a store or search engine failed; see `retryable`
    ├── ModelError                  a model failed or returned nonsense; see `retryable`
    ├── DataError                   a file written by suffice is damaged: it fails its manifest
    └── IncompleteEvidenceError     a guard with on_incomplete="raise" found too little

Otherwise, abstaining, a spent budget and an empty result are values, not errors.
"""

from __future__ import annotations

import difflib
import errno
import functools
import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any, ParamSpec, TypeVar

__all__ = [
    "DataError",
    "EngineError",
    "IncompleteEvidenceError",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "NotReadyError",
    "SufficeError",
    "check_names",
    "did_you_mean",
    "disk_hint",
    "known_arguments",
]


_SUGGESTIONS = _NEAREST, _ALL = ("did you mean ", "known: ")
P = ParamSpec("P")
T = TypeVar("T")


class SufficeError(Exception):
    """The message says what went wrong; `hint` says what to do about it."""

    code = "error"
    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def message(self) -> str:
        return str(self.args[0])

    def __str__(self) -> str:
        """The message, with the names that may be meant: not everyone prints the hint."""
        suggests = self.hint.startswith(_SUGGESTIONS) and self.hint not in self.message
        return f"{self.message} ({self.hint})" if suggests else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.__dict__)  # sent between processes


def _rebuild(kind: type[SufficeError], message: str, attributes: dict[str, Any]) -> SufficeError:
    error = kind.__new__(kind, message)
    error.__dict__.update(attributes)
    return error


class InputError(SufficeError, ValueError):
    """Your input is wrong: the message says where, what it is and what was expected."""

    code = "bad_input"
    exit_code = 2


class NotReadyError(SufficeError):
    """Something must be built first, or rebuilt by this version; the hint is the command."""

    code = "not_ready"
    exit_code = 2


class MissingExtraError(SufficeError, ImportError):
    """An optional package is not installed; the hint is the pip command that installs it."""

    code = "missing_extra"
    exit_code = 2

    def __init__(self, what: str, *, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra '{extra}', which is not installed",
            hint=f"pip install 'suffice[{extra}]'",
        )


class _FailureError(SufficeError):
    def __init__(self, message: str, *, hint: str = "", retryable: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable


class EngineError(_FailureError):
    """A store or search engine failed."""

    code = "engine"


class ModelError(_FailureError):
    """A model failed, timed out or returned something unusable."""

    code = "model"


class DataError(SufficeError):
    """A file that suffice wrote no longer matches its manifest."""

    code = "damaged"


class IncompleteEvidenceError(SufficeError):
    """A guard with `on_incomplete="raise"` found the documents incomplete; see `verdict`."""

    code = "incomplete"

    def __init__(self, message: str, *, verdict: Any) -> None:
        super().__init__(message, hint="catch it and say so, or search for verdict.next_queries")
        self.verdict = verdict


_PERMISSIONS = "check the permissions, or choose another place, then try again"
_DISK = {
    errno.ENOSPC: "free some disk space, then try again",
    errno.EDQUOT: "free some of your disk quota, then try again",
    errno.EROFS: "the place is read-only: choose another, or make it writable and try again",
    errno.EACCES: _PERMISSIONS,
    errno.EPERM: _PERMISSIONS,
    errno.EIO: "the disk cannot be read or written: check it, then try again",
    errno.EMFILE: "too many files are open: raise the limit (ulimit -n), then try again",
}


def disk_hint(error: OSError) -> str:
    """A hint for an operating system error. Earlier writes are safe."""
    return _DISK.get(error.errno or 0, "check that file or folder, then try again")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint with the known names closest to `name`, or with all of them if there are few."""
    names = sorted({str(one) for one in known})
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if not close:
        folded = {one.casefold(): one for one in names}
        matches = difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.5)
        close = [folded[one] for one in matches]
    if close:
        return _NEAREST + " or ".join(repr(one) for one in close) + "?"
    if not names:
        return "none is known"
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"{_ALL}{', '.join(names[:12])}{more}"


def check_names(given: Iterable[str], known: Collection[str], where: str) -> None:
    """InputError for the first name that `where` has no argument for, with the nearest one."""
    for name in given:
        if name not in known:
            raise InputError(f"{where} has no argument {name!r}", hint=did_you_mean(name, known))


def known_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Refuse unknown named arguments with an InputError that names the nearest known one."""
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    where = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        check_names(named, names, where)
        return function(*args, **named)

    return call
