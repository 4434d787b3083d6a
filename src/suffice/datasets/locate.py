"""Find the files of a data set: given, or in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from suffice.errors import InputError
from suffice.storage import readable_file


@dataclass(frozen=True, slots=True)
class DatasetFiles:
    """A folder or file, or the question file and the corpus file."""

    path: Path | None = None
    questions: Path | None = None
    corpus: Path | None = None

    def locate(self, questions: Sequence[str] = (), corpus: Sequence[str] = ()) -> DatasetFiles:
        """The question file and the corpus file; `path` is the question file or their folder.

        The names are glob patterns, tried in order. Files named by the caller take precedence.
        """
        question_file, corpus_file = self.questions, self.corpus
        if self.path is not None and self.path.is_dir():
            question_file = question_file or find_file(self.path, questions)
            corpus_file = corpus_file or find_file(self.path, corpus)
            if question_file is None and corpus_file is None:
                names = ", ".join(sorted(one.name for one in self.path.iterdir())[:8]) or "nothing"
                raise InputError(
                    f"{self.path} contains none of the files of this data set: expected "
                    f"{' or '.join([*questions, *corpus])}, found {names}",
                    hint="name the files with --questions and --corpus",
                )
        elif self.path is not None:
            question_file = question_file or self.path
        return DatasetFiles(
            questions=question_file and readable_file(question_file),
            corpus=corpus_file and readable_file(corpus_file),
        )


def find_file(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of these names that is a file in the folder; None if there is none."""
    for name in names:
        found = sorted(one for one in folder.glob(name) if one.is_file())
        if len(found) > 1:
            listed = ", ".join(one.name for one in found[:5])
            raise InputError(
                f"{folder} contains {len(found)} files like {name}: {listed}",
                hint="name the files with --questions and --corpus",
            )
        if found:
            return found[0]
    return None
