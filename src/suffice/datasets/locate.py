"""Where the files of a data set are: named one by one, or found by their usual names in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.errors import DataError, InputError, NotReadyError
from suffice.storage import readable_file, sha256_of

__all__ = ["HUB", "DatasetFiles", "HubFiles", "fetch_public_files", "find_file", "locate_files"]


@dataclass(frozen=True, slots=True)
class DatasetFiles:
    questions: Path | None
    corpus: Path | None


def locate_files(
    path: Path | None,
    questions: Path | None,
    corpus: Path | None,
    *,
    question_names: Sequence[str] = (),
    corpus_names: Sequence[str] = (),
) -> DatasetFiles:
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
    return DatasetFiles(questions and readable_file(questions), corpus and readable_file(corpus))


def find_file(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of these names that is a file in the folder; None where there is none."""
    for name in names:
        found = sorted(one for one in folder.glob(name) if one.is_file())
        if len(found) > 1:
            raise InputError(
                f"{folder} holds {len(found)} files like {name}: "
                + ", ".join(one.name for one in found[:5]),
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


# --- fetch: Fetching public data sets by name from the model hub, where it can be reached.


@dataclass(frozen=True, slots=True)
class HubFiles:
    """A data set on the hub: its repository and the files that the reader needs."""

    repository: str
    files: tuple[str, ...]


HUB = {
    "frames": HubFiles("google/frames-benchmark", ("test.tsv",)),
    "multihop_rag": HubFiles("yixuantt/MultiHopRAG", ("MultiHopRAG.json", "corpus.json")),
    "hotpotqa": HubFiles("osunlp/HippoRAG_2", ("hotpotqa.json", "hotpotqa_corpus.json")),
    "2wikimultihopqa": HubFiles(
        "osunlp/HippoRAG_2", ("2wikimultihopqa.json", "2wikimultihopqa_corpus.json")
    ),
    "musique": HubFiles("osunlp/HippoRAG_2", ("musique.json", "musique_corpus.json")),
}


def fetch_public_files(name: str) -> Path:
    """The folder that holds the data set's public files, downloaded if they are not in the hub's cache."""
    hint = f"download it yourself and pass --path, or --questions and --corpus: suffice build --dataset {name} --path FILE"
    if name not in HUB:
        raise NotReadyError(f"the data set '{name}' has no public files to fetch", hint=hint)
    wanted = HUB[name]
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
    except Exception as error:  # noqa: BLE001 - the hub's client raises its transport's errors, which differ between versions
        return _cached(
            hub, wanted, why=f"cannot fetch '{name}' from {wanted.repository}: {error}", hint=hint
        )
    expected = {one.path: one for one in known}
    for file in wanted.files:
        if file not in expected:
            raise NotReadyError(f"{wanted.repository} no longer has {file}", hint=hint)
        try:
            path = Path(
                hub.hf_hub_download(wanted.repository, file, repo_type="dataset", etag_timeout=5)
            )
        except Exception as error:
            raise NotReadyError(
                f"cannot fetch {file} from {wanted.repository}: {error}", hint=hint
            ) from error
        _check_hash(path, expected[file])
    return path.parent


def _cached(hub: Any, wanted: HubFiles, *, why: str, hint: str) -> Path:
    """The folder of an earlier download; what it holds was checked when it came."""
    found = [
        hub.try_to_load_from_cache(wanted.repository, file, repo_type="dataset")
        for file in wanted.files
    ]
    if not all(isinstance(one, str) for one in found):
        raise NotReadyError(why, hint=hint)
    return Path(found[0]).parent


def _check_hash(path: Path, published: Any) -> None:
    """Compare a file with what the hub publishes: the sha256 of a large file, git's own hash of a small one."""
    if published.lfs is not None:
        found, expected = sha256_of(path), published.lfs.sha256
    else:
        content = path.read_bytes()
        found, expected = (
            hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(),
            published.blob_id,
        )
    if found != expected:
        raise DataError(
            f"{path} hashes to {found}, the hub says {expected}",
            hint="delete the file and fetch it again",
        )
