"""Where a library lives: in a folder, whose manifest says what it is, or in a collection of Qdrant, whose head does."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from suffice.engines.embedded import EmbeddedStore
from suffice.engines.qdrant import QdrantStore, is_qdrant_address
from suffice.errors import DataError, InputError, NotReadyError, disk_hint
from suffice.registry import ENCODERS
from suffice.storage import MANIFEST, Manifest, open_artefact, package_versions, write_atomically

__all__ = ["LibraryLocation", "ensure_library", "open_location"]

KIND, VERSION = "library", 1
REBUILD = "make it with: suffice build FILE --out DIR"


@dataclass(frozen=True, slots=True)
class LibraryLocation:
    path: Path  # what is derived from the documents is kept here
    store: EmbeddedStore | QdrantStore
    encoder: str | None


def ensure_library(where: Path | str, encoder: str | None) -> None:
    """Make a folder or a collection a library's, if it is not one; what holds other things is refused."""
    if is_qdrant_address(where):
        with QdrantStore(str(where)) as store:
            if not store.generation:
                store.make(
                    dimension=ENCODERS.get(encoder)().dimension if encoder else 0, encoder=encoder
                )
    elif not (Path(where) / MANIFEST).exists():
        _create_folder(Path(where), encoder)


def open_location(where: Path | str) -> LibraryLocation:
    """The home of the library in this folder, or at this address; NotReadyError where there is none."""
    if is_qdrant_address(where):
        store = QdrantStore(str(where))
        if not store.generation:
            store.close()
            raise NotReadyError(
                f"there is no library at {where}",
                hint=f"make it with: suffice build FILE --store {where}",
            )
        return LibraryLocation(
            _cache_folder() / f"{store.address.collection}-{store.build}", store, store.encoder
        )
    path = Path(where)
    if path.is_file():
        raise InputError(f"{path} is a file, expected the folder of a library", hint=REBUILD)
    manifest = open_artefact(path, kind=KIND, version=VERSION, rebuild=REBUILD, check_hashes=False)
    encoder = manifest.settings.get("encoder")
    if not isinstance(encoder, str | None):
        raise DataError(f"{path / MANIFEST} names an encoder that is no name", hint=REBUILD)
    return LibraryLocation(path, EmbeddedStore(path), encoder)


def _create_folder(path: Path, encoder: str | None) -> None:
    """The manifest comes first, so that a folder with our files in it always says what it is."""
    if path.exists() and not path.is_dir():
        raise InputError(
            f"{path} is a file, expected a folder for the library", hint="choose another path"
        )
    if path.exists() and any(not one.name.startswith(".") for one in path.iterdir()):
        raise InputError(
            f"{path} holds other things than a library", hint="choose a new or empty folder"
        )
    manifest = Manifest(KIND, VERSION, settings={"encoder": encoder}, packages=package_versions())
    try:
        write_atomically(
            path / MANIFEST, json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n"
        )
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error}", hint=disk_hint(error)) from error


def _cache_folder() -> Path:
    """Where this machine keeps what it makes of libraries that live elsewhere."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SUFFICE_CACHE") or Path(home) / "suffice")
