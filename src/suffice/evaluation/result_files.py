"""Results on disk: one JSON document each; kind and version are checked before parsing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from suffice.errors import DataError, InputError, NotReadyError
from suffice.storage import readable_file

__all__ = ["load_result", "result_text", "run_settings", "source_commit"]

T = TypeVar("T")


def result_text(document: Mapping[str, Any]) -> str:
    """The document as text: the same values give the same text; NaN is an error."""
    text = json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return text + "\n"


def load_result(
    path: Path,
    parse: Callable[[dict[str, Any]], T],
    *,
    what: str,
    version: int,
    command: str,
    **marks: str,
) -> T:
    """What `parse` returns for the document; `marks`, such as kind="run", must match its fields.

    InputError on another document, NotReadyError on another version, DataError on a damaged one.
    `command` creates a new one.
    """
    path, hint = readable_file(Path(path)), f"make it again with: {command}"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a {what}: not valid JSON: {error}", hint=hint) from error
    right = isinstance(document, dict)
    if not right or any(document.get(mark) != value for mark, value in marks.items()):
        raise InputError(f"{path} is not a {what}", hint=hint)
    if document.get("version") != version:
        raise NotReadyError(
            f"{path} has format version {document.get('version')}, "
            f"this suffice reads version {version}",
            hint=hint,
        )
    try:
        return parse(document)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DataError(
            f"{path} is a damaged {what}: {type(error).__name__}: {error}", hint=hint
        ) from error


def run_settings(run: Any) -> list[tuple[str, str]]:
    """The settings, files, versions and times that a run or a study stores, in words."""
    rows = [("seed", str(run.seed))]
    for name, value in sorted(run.settings.items()):
        several = isinstance(value, list | tuple)
        rows.append((name, ", ".join(map(str, value)) if several else str(value)))
    rows += [("commit", run.commit)] if getattr(run, "commit", None) else []
    rows += [(f"sha256 of {name}", digest) for name, digest in sorted(run.data.items())]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(run.packages.items()))
    rows.append(("versions", versions))
    times = getattr(run, "timings", {}).items()
    return rows + [(f"seconds, {name}", f"{seconds:.2f}") for name, seconds in times]


def source_commit(package: Path | None = None) -> str | None:
    """The commit of this package's checkout, from git's files; None for an installed wheel."""
    root = (package or Path(__file__)).resolve().parent
    for folder in (root, *root.parents):
        if (folder / "pyproject.toml").is_file():
            return _head_commit(folder / ".git")
    return None


def _head_commit(git: Path) -> str | None:
    try:
        if git.is_file():  # a worktree: the file names the real folder
            named = git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            git = (git.parent / named).resolve()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        common = git / "commondir"
        if common.is_file():
            git = (git / common.read_text(encoding="utf-8").strip()).resolve()
        name = head.removeprefix("ref: ")
        if (git / name).is_file():
            return (git / name).read_text(encoding="utf-8").strip()
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(" " + name)), None)
    except (OSError, UnicodeDecodeError):
        return None
