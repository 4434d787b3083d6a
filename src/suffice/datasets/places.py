"""Where the files of a data set are: named one by one, or found by their usual names in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from suffice.errors import InputError
from suffice.files import readable_file

__all__ = ["Places", "find_file", "locate"]


@dataclass(frozen=True, slots=True)
class Places:
    questions: Path | None
    corpus: Path | None


def locate(
    path: Path | None,
    questions: Path | None,
    corpus: Path | None,
    *,
    question_names: Sequence[str] = (),
    corpus_names: Sequence[str] = (),
) -> Places:
    """The question file and the corpus file. A file as `path` is the question file; in a folder the usual names are looked for.

    Names are glob patterns, tried in order. What is named on its own goes before what the folder holds.
    """
    if path is not None and path.is_dir():
        questions = questions or find_file(path, question_names)
        corpus = corpus or find_file(path, corpus_names)
        if questions is None and corpus is None:
            raise _nothing_found(path, [*question_names, *corpus_names])
    elif path is not None:
        questions = questions or path
    return Places(questions and readable_file(questions), corpus and readable_file(corpus))


def find_file(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of these names that is a file in the folder; None where there is none."""
    for name in names:
        found = sorted(one for one in folder.glob(name) if one.is_file())
        if len(found) > 1:
            raise InputError(
                f"{folder} holds {len(found)} files like {name}: " + ", ".join(one.name for one in found[:5]),
                hint="name the files with --questions and --corpus",
            )
        if found:
            return found[0]
    return None


def _nothing_found(folder: Path, names: Sequence[str]) -> InputError:
    held = ", ".join(sorted(one.name for one in folder.iterdir())[:8]) or "nothing"
    return InputError(
        f"{folder} holds none of the files of this data set: expected {' or '.join(names)}, found {held}",
        hint="name the files with --questions and --corpus",
    )
