"""Find the files of a data set: given, in a folder, or downloaded from the hub.

The hub publishes a hash of each file, which the download must match. Nothing is retried: offline,
the error tells you at once how to pass a path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.errors import DataError, InputError, NotReadyError
from suffice.storage import readable_file, sha256_of


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


@dataclass(frozen=True, slots=True)
class HubFiles:
    """A data set on the hub: its repository and the files that the loader needs."""

    repository: str
    files: tuple[str, ...]


def fetch_public_files(name: str, wanted: HubFiles | None) -> Path:
    """The folder with the data set's public files, downloaded if not in the hub's cache."""
    files = "--path, or --questions and --corpus"
    if wanted is None:
        raise NotReadyError(
            f"no file is given, and the format '{name}' has no public files to fetch",
            hint=f"give the files: {files}",
        )
    hint = f"download it yourself and give the files: {files}"
    try:
        import huggingface_hub as hub
    except ImportError:
        raise NotReadyError(
            f"fetching '{name}' needs the package huggingface_hub",
            hint=f"pip install 'suffice[hub]', or {hint}",
        ) from None
    try:
        known = hub.HfApi().get_paths_info(
            wanted.repository, list(wanted.files), repo_type="dataset"
        )
    except Exception as error:
        # An earlier download was checked on arrival. The hub's client raises the errors of its
        # transport, which differ between versions.
        found = [
            hub.try_to_load_from_cache(wanted.repository, file, repo_type="dataset")
            for file in wanted.files
        ]
        if not all(isinstance(one, str) for one in found):
            raise NotReadyError(
                f"cannot fetch '{name}' from {wanted.repository}: {error}", hint=hint
            ) from error
        return Path(str(found[0])).parent
    published = {one.path: one for one in known}
    for file in wanted.files:
        if file not in published:
            raise NotReadyError(f"{wanted.repository} no longer has {file}", hint=hint)
        try:
            path = Path(
                hub.hf_hub_download(wanted.repository, file, repo_type="dataset", etag_timeout=5)
            )
        except Exception as error:
            raise NotReadyError(
                f"cannot fetch {file} from {wanted.repository}: {error}", hint=hint
            ) from error
        _check_hash(path, published[file])
    return path.parent


def _check_hash(path: Path, published: Any) -> None:
    """Compare with the hub's hash: sha256 for a large file, git's hash for a small one."""
    if published.lfs is not None:
        found, expected = sha256_of(path), published.lfs.sha256
    else:
        content = path.read_bytes()
        found = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        expected = published.blob_id
    if found != expected:
        raise DataError(
            f"{path} hashes to {found}, the hub says {expected}",
            hint="delete the file and fetch it again",
        )
