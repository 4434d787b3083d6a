"""Where a library is: a folder with a manifest, or a Qdrant collection with a header."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from suffice.engines.embedded import EmbeddedStore
from suffice.engines.qdrant import QdrantStore, is_qdrant_address
from suffice.errors import DataError, InputError, NotReadyError, disk_hint
from suffice.registry import ENCODERS
from suffice.storage import MANIFEST, Manifest, open_artefact, package_versions, write_atomically
from suffice.storage.artefacts import cache_folder
from suffice.storage.fields import is_text

__all__ = ["LibraryLocation", "ensure_library", "open_location"]

KIND, VERSION = "library", 1
REBUILD = "build one: suffice build FOLDER --out DIR"


@dataclass(frozen=True, slots=True)
class LibraryLocation:
    path: Path  # for files derived from the documents
    store: EmbeddedStore | QdrantStore
    encoder: str | None


def ensure_library(where: Path | str, encoder: str | None) -> None:
    """Make a new or empty folder, or a collection, a library if it is not one yet."""
    if is_qdrant_address(where):
        with QdrantStore(str(where)) as store:
            if not store.generation:
                dimension = ENCODERS.get(encoder)().dimension if encoder else 0
                store.make(dimension=dimension, encoder=encoder)
    elif not (Path(where) / MANIFEST).exists():
        _create_folder(_check_name(Path(where)), encoder)


def open_location(where: Path | str) -> LibraryLocation:
    """The library in this folder or at this address; NotReadyError if there is none."""
    if is_qdrant_address(where):
        store = QdrantStore(str(where))
        if not store.generation:
            store.close()
            hint = f"make it with: suffice build FILE --store {where}"
            raise NotReadyError(f"there is no library at {where}", hint=hint)
        folder = cache_folder() / f"{store.address.collection}-{store.build}"
        return LibraryLocation(folder, store, store.encoder)
    path = _check_name(Path(where))
    if path.is_file():
        raise InputError(f"{path} is a file, expected the folder of a library", hint=REBUILD)
    rebuild = f"build it: suffice build FOLDER --out {path}"
    if (path / MANIFEST).exists():  # a build into this folder would fail in the same way
        rebuild = "build one in a new folder: suffice build FOLDER --out NEW_FOLDER"
    elif path.is_dir():
        rebuild = f"to build a library from its files: suffice build {path} --out library"
    manifest = open_artefact(path, kind=KIND, version=VERSION, rebuild=rebuild, check_hashes=False)
    encoder = manifest.settings.get("encoder")
    if not isinstance(encoder, str | None):
        raise DataError(f"{path / MANIFEST} has an encoder that is not a name", hint=rebuild)
    return LibraryLocation(path, EmbeddedStore(path), encoder)


def _check_name(path: Path) -> Path:
    """The path, if the text index can open it: tantivy takes names in UTF-8 only."""
    if not is_text(str(path)):
        hint = "rename the folder, or choose another one for the library"
        raise InputError(f"{str(path)!a} is not a path in UTF-8", hint=hint)
    return path


def _create_folder(path: Path, encoder: str | None) -> None:
    """Write the manifest first, so that a folder with our files can always be identified."""
    if path.exists() and not path.is_dir():
        hint = "choose another path"
        raise InputError(f"{path} is a file, expected a folder for the library", hint=hint)
    if path.exists() and any(not one.name.startswith(".") for one in path.iterdir()):
        hint = "choose a new or empty folder"
        raise InputError(f"{path} contains other files than a library", hint=hint)
    manifest = Manifest(KIND, VERSION, settings={"encoder": encoder}, packages=package_versions())
    text = json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n"
    try:
        write_atomically(path / MANIFEST, text)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error}", hint=disk_hint(error)) from error
