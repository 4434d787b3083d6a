"""Fetching public data sets by name from the model hub, where it can be reached.

The hub says what each file hashes to before it sends it; what arrives must match. Nothing is retried: whoever is offline learns
at once how to pass a path.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.errors import DataError, NotReadyError
from suffice.files import sha256_of

__all__ = ["HUB", "HubFiles", "public_files"]


@dataclass(frozen=True, slots=True)
class HubFiles:
    """A data set on the hub: its repository and the files that the reader needs."""

    repository: str
    files: tuple[str, ...]


HUB = {
    "frames": HubFiles("google/frames-benchmark", ("test.tsv",)),
    "multihop_rag": HubFiles("yixuantt/MultiHopRAG", ("MultiHopRAG.json", "corpus.json")),
    "hotpotqa": HubFiles("osunlp/HippoRAG_2", ("hotpotqa.json", "hotpotqa_corpus.json")),
    "2wikimultihopqa": HubFiles("osunlp/HippoRAG_2", ("2wikimultihopqa.json", "2wikimultihopqa_corpus.json")),
    "musique": HubFiles("osunlp/HippoRAG_2", ("musique.json", "musique_corpus.json")),
}


def public_files(name: str) -> Path:
    """The folder that holds the data set's public files, downloaded if they are not in the hub's cache."""
    hint = f"download it yourself and pass --path, or --questions and --corpus: suffice build --dataset {name} --path FILE"
    if name not in HUB:
        raise NotReadyError(f"the data set '{name}' has no public files to fetch", hint=hint)
    wanted = HUB[name]
    try:
        import huggingface_hub as hub
    except ImportError:
        raise NotReadyError(
            f"fetching '{name}' needs the package huggingface_hub", hint=f"pip install 'suffice[hub]', or {hint}"
        ) from None
    try:
        known = hub.HfApi().get_paths_info(wanted.repository, list(wanted.files), repo_type="dataset")
    except Exception as error:  # noqa: BLE001 - the hub's client raises its transport's errors, which differ between versions
        return _cached(hub, wanted, why=f"cannot fetch '{name}' from {wanted.repository}: {error}", hint=hint)
    expected = {one.path: one for one in known}
    for file in wanted.files:
        if file not in expected:
            raise NotReadyError(f"{wanted.repository} no longer has {file}", hint=hint)
        try:
            path = Path(hub.hf_hub_download(wanted.repository, file, repo_type="dataset", etag_timeout=5))
        except Exception as error:
            raise NotReadyError(f"cannot fetch {file} from {wanted.repository}: {error}", hint=hint) from error
        _check_hash(path, expected[file])
    return path.parent


def _cached(hub: Any, wanted: HubFiles, *, why: str, hint: str) -> Path:
    """The folder of an earlier download; what it holds was checked when it came."""
    found = [hub.try_to_load_from_cache(wanted.repository, file, repo_type="dataset") for file in wanted.files]
    if not all(isinstance(one, str) for one in found):
        raise NotReadyError(why, hint=hint)
    return Path(found[0]).parent


def _check_hash(path: Path, published: Any) -> None:
    """Compare a file with what the hub publishes: the sha256 of a large file, git's own hash of a small one."""
    if published.lfs is not None:
        found, expected = sha256_of(path), published.lfs.sha256
    else:
        content = path.read_bytes()
        found, expected = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(), published.blob_id
    if found != expected:
        raise DataError(f"{path} hashes to {found}, the hub says {expected}", hint="delete the file and fetch it again")
