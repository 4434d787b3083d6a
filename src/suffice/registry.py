"""Find retrievers, encoders, rerankers, judges and stores by name, built-in or from plug-ins.

A plug-in is an entry point of the group `suffice.plugins` named `<kind>.<name>`:

    [project.entry-points."suffice.plugins"]
    "retriever.mine" = "my_package:build_retriever"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from suffice.errors import InputError, NotReadyError, did_you_mean
from suffice.protocols import Encoder, Judge, Reranker, Retriever, Store

__all__ = [
    "COMMANDS",
    "ENCODERS",
    "JUDGES",
    "RERANKERS",
    "RETRIEVERS",
    "STORES",
    "Registry",
    "missing_package",
]

PLUGIN_GROUP = "suffice.plugins"
# Packages beside this one in the repository, and their folders.
PACKAGES = {
    "suffice-grade": "packages/suffice-grade",
    "suffice-deep": "packages/suffice-deep",
    "suffice-research": "research",
}
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to factories: built-in ones via `add`, those of other packages via entry points.

    Entry points are read once, on first use. A plug-in that fails to load raises an error only when
    it is requested.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._factories: dict[str, Callable[..., T]] = {}
        self._hints: dict[str, str] = {}
        self._open_folder: Callable[[Path], T] | None = None

    def expect(self, names: Iterable[str], *, hint: str) -> None:
        """Names that another package provides; `hint` says how to install it."""
        self._hints.update(dict.fromkeys(names, hint))

    def add(self, name: str, factory: Callable[..., T]) -> None:
        if name in self._factories:
            raise InputError(
                f"a {self.kind} named {name!r} is already registered", hint="choose another name"
            )
        self._factories[name] = factory

    def add_folders(self, open_folder: Callable[[Path], T]) -> None:
        """Accept the path of a folder as a name; `open_folder` opens it."""
        self._open_folder = open_folder

    def names(self) -> list[str]:
        """All names: built-in ones in order of registration, then those of plug-ins."""
        own = [name for name in self._factories if name not in self._plugins]
        return [*own, *self._plugins]  # a plug-in that was loaded stays in its place

    def get(self, name: str) -> Callable[..., T]:
        """The factory of this name; InputError suggests the nearest names if there is none."""
        if name not in self._factories and (plugin := self._plugins.get(name)) is not None:
            try:
                self._factories[name] = plugin.load()
            except Exception as error:  # third-party code may raise anything
                package = plugin.dist.name if plugin.dist else plugin.module
                reason = f"{type(error).__name__}: {error}"
                raise InputError(
                    f"cannot load the {self.kind} {name!r} of package {package!r}: {reason}",
                    hint=f"fix its entry point {plugin.value!r} and install the package again",
                ) from error
        if name not in self._factories:
            if self._open_folder is not None and _is_folder(name):
                return partial(self._open_folder, Path(name))
            hint = self._hints.get(name) or did_you_mean(name, self.names())
            raise InputError(f"no {self.kind} is named {name!r}", hint=hint)
        return self._factories[name]

    @cached_property  # reading the metadata of every installed package takes milliseconds
    def _plugins(self) -> dict[str, EntryPoint]:
        from importlib import metadata  # lazy: slow to import

        prefix = self.kind + "."
        points = metadata.entry_points(group=PLUGIN_GROUP)
        return {
            point.name.removeprefix(prefix): point
            for point in points
            if point.name.startswith(prefix)
        }


def missing_package(what: str, package: str) -> NotReadyError:
    """The error for something that a package beside this one provides."""
    return NotReadyError(
        f"{what} is part of {package}, which is not installed",
        hint=f"in a clone of the repository, run: pip install ./{PACKAGES[package]}",
    )


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # not a valid file name
        return False


RETRIEVERS: Registry[Retriever] = Registry("retriever")
ENCODERS: Registry[Encoder] = Registry("encoder")
RERANKERS: Registry[Reranker] = Registry("reranker")
JUDGES: Registry[Judge] = Registry("judge")  # behind the presets deep and auto
STORES: Registry[Store] = Registry("store")
COMMANDS: Registry[None] = Registry("command")  # of `suffice`; "evaluate.x" is in that group
