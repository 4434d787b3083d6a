"""The reference page of the Python names, read off the source: signatures and first lines of docstrings, extras or not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import suffice
from docs.generators.markdown import table
from docs.generators.paths import DOCS, ROOT

SOURCE = Path(suffice.__file__).parent
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def page() -> str:
    """What `import suffice` shows in full; modules that the how-tos and examples import from; then all others by name."""
    lines = [
        "# Python\n",
        "`import suffice` shows the names of the first part, and these are kept. The others may change with a version.\n",
        "## `suffice`\n",
    ]
    for name in suffice.__all__:
        if not name.startswith("__"):
            lines += _in_full(_home(name), name)
    lines.append("## What the how-tos and examples use\n")
    shown, others = _shown(), []
    for module, tree in _modules():
        names = [] if module == "suffice" else _listed(tree)
        if names and module in shown:
            lines += [
                f"### `{module}`\n",
                _first(tree) + "\n",
                *(_in_a_line(tree, name) for name in names),
                "",
            ]
        elif names:
            others.append((f"`{module}`", _first(tree), ", ".join(f"`{name}`" for name in names)))
    return "\n".join(
        [*lines, "## The other modules\n", table(("module", "what it is for", "names"), others)]
    )


def _shown() -> set[str]:
    """Modules that a how-to or an example imports from."""
    pages = [*(DOCS / "howto").glob("*.md"), *(ROOT / "examples").glob("*.py"), ROOT / "README.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r"^\s*from (suffice\.[\w.]+) import", text, re.MULTILINE))


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if (
            ".cli" not in name and "__main__" not in name
        ):  # a command is called by its name: see the commands' page
            yield name, ast.parse(file.read_text(encoding="utf-8"))


def _home(name: str) -> ast.Module:
    """The module in which a name of the package is made."""
    file = SOURCE.parent / Path(*getattr(suffice, name).__module__.split("."))
    return ast.parse(file.with_suffix(".py").read_text(encoding="utf-8"))


def _listed(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def _defined(body: list[ast.stmt]) -> dict[str, Definition]:
    return {node.name: node for node in body if isinstance(node, Definition)}


def _in_full(tree: ast.Module, name: str) -> list[str]:
    """A heading, the docstring, and for a class its public methods."""
    found = _defined(tree.body)[name]
    lines = [
        f"### `{name}`\n",
        f"`{_signature(found)}`\n",
        *(f"{told}\n" for told in [ast.get_docstring(found)] if told),
    ]
    if isinstance(found, ast.ClassDef):
        methods = [
            one for called, one in _defined(found.body).items() if not called.startswith("_")
        ]
        lines += [_line(one, dot=".") for one in methods]
        lines += [""] if methods else []
    return lines


def _in_a_line(tree: ast.Module, name: str) -> str:
    found = _defined(tree.body).get(name)
    return f"- `{name}`" if found is None else _line(found)


def _line(found: Definition, *, dot: str = "") -> str:
    told = _first(found)
    return f"- `{dot}{_signature(found)}`" + (f": {told}" if told else "")


def _signature(found: Definition) -> str:
    if not isinstance(found, ast.ClassDef):
        returns = f" -> {ast.unparse(found.returns)}" if found.returns else ""
        as_property = any(ast.unparse(one) == "property" for one in found.decorator_list)
        return found.name + ("" if as_property else f"({_arguments(found)})") + returns
    made = _defined(found.body).get("__init__")
    if made and not isinstance(made, ast.ClassDef):
        return f"{found.name}({_arguments(made)})"
    if any("dataclass" in ast.unparse(one) for one in found.decorator_list):
        fields = [
            one
            for one in found.body
            if isinstance(one, ast.AnnAssign) and not ast.unparse(one.target).startswith("_")
        ]
        return f"{found.name}({', '.join(ast.unparse(one) for one in fields)})"
    values = [ast.unparse(one.targets[0]) for one in found.body if isinstance(one, ast.Assign)]
    return (
        f"{found.name}: {', '.join(values)}"
        if "Enum" in "".join(map(ast.unparse, found.bases))
        else found.name
    )


def _arguments(found: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    told = ast.unparse(found.args)
    for first in ("self", "cls"):
        told = told.removeprefix(f"{first}, ") if told != first else ""
    return told


def _first(node: ast.Module | Definition) -> str:
    """The first paragraph of the docstring, in one line."""
    return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
