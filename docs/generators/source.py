"""The package's source, parsed once, and which of its modules and names are public."""

from __future__ import annotations

import ast
import re
from functools import cache

from docs.generators.paths import REFERENCE, ROOT

PACKAGES = (ROOT / "src" / "suffice", ROOT / "packages" / "suffice-grade" / "suffice_grade")


@cache
def texts() -> dict[str, str]:
    """Dotted module name -> its source text."""
    found = {}
    files = ((package.parent, file) for package in PACKAGES for file in package.rglob("*.py"))
    for home, file in sorted(files):
        parts = file.relative_to(home).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = file.read_text(encoding="utf-8")
    return found


@cache
def trees() -> dict[str, ast.Module]:
    """Dotted module name -> its syntax tree."""
    return {name: ast.parse(text, name) for name, text in texts().items()}


def public_modules() -> list[str]:
    """The modules that docs/reference/stability.md calls public, `suffice.integrations.*` expanded."""
    page = (REFERENCE / "stability.md").read_text(encoding="utf-8")
    section = page.partition("## What is public")[2].partition("\n## ")[0]
    found: list[str] = []
    for name in re.findall(r"^\| `(suffice[\w.]*(?:\.\*)?)`", section, re.MULTILINE):
        package = name.removesuffix(".*")
        inside = [one for one in trees() if one.startswith(f"{package}.")]
        found += [name] if name == package else inside
    return found


def public_names(module: str) -> list[str]:
    """What the module lists in `__all__`."""
    for node in trees()[module].body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def home_of(module: str, name: str) -> str:
    """The module that defines a name which another one exports."""
    for node in ast.walk(trees()[module]):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module in trees()
            and any(alias.name == name for alias in node.names)
        ):
            return home_of(node.module, name)
    return module
