"""Is a stored study older than the code that it judges?

A study says at which commit it ran. Modules that it needs are found by following imports; one
counts as changed when its code differs from that commit's in more than layout, comments and
docstrings. Models that ship count, too: their manifests hold the hashes of their files.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from docs.generators.paths import RESULTS, ROOT
from docs.generators.results import load_studies

SOURCES = {"suffice": ROOT / "src", "suffice_research": ROOT / "research"}
MODELS = "src/suffice/models"
# These show figures and do not make them.
SHOWING = (
    "suffice.cli",
    "suffice.evaluation.figures",
    "suffice.evaluation.report",
    "suffice.evaluation.result_files",
    "suffice.evaluation.study",
    "suffice.evaluation.tables",
    "suffice_research.papers",
)
MARK = "*Run at commit "  # how the line on a page begins; `make docs` makes it anew
MAX_NAMED = 4


def freshness_line(commit: str | None, module: str, part: str) -> str:
    """The line of a page; "" where the commit is not known here, as in a shallow clone."""
    changed = changed_since(commit, module) if commit else None
    if commit is None or changed is None:
        return ""
    start = f"{MARK}{commit[:8]}*"
    if not changed:
        return f"{start}: nothing that it runs has changed since."
    named = ", ".join(f"`{one}`" for one in changed[:MAX_NAMED])
    more = f" and {len(changed) - MAX_NAMED} more" if len(changed) > MAX_NAMED else ""
    return (
        f"{start}, **older than the code**: {named}{more} changed since. To measure it again: "
        f"`make results PART={part}`."
    )


def with_freshness(pages: Mapping[Path, str]) -> dict[Path, str]:
    """The pages of studies with their line, under the first paragraph. Not part of `pages`: whether
    a study is old depends on git, and tests compare pages without the line.
    """
    made = dict(pages)
    for name, study in load_studies().items():
        path = RESULTS / f"{name}.md"
        module = f"suffice_research.{name.replace('-', '_')}.study"
        if line := freshness_line(study.commit, module, name):
            for title, commit in study.settings.get("sections of other runs", {}).items():
                line += f" **{title}** is of another run, at commit {commit[:8]}."
            made[path] = made[path].replace("\n\n- ", f"\n\n{line}\n\n- ", 1)
    return made


def without_freshness(text: str) -> str:
    """A page as `pages` makes it."""
    return "".join(part for part in text.splitlines(True) if not part.startswith(MARK)).replace(
        "\n\n\n- ", "\n\n- ", 1
    )


def changed_since(commit: str, module: str) -> list[str] | None:
    """Modules and models that a study may load and that are not as they were; None: cannot be
    told. Those of the study itself come first.
    """
    listed = _git("diff", "--name-only", "--no-renames", commit, "--", "src", "research")
    if listed is None:
        return None
    needed = {path: name for name in needed_modules(module) if (path := _relative(name))}
    paths = [path for path in listed.split("\n") if path in needed]
    changed = [
        needed[path]
        for path, old in zip(paths, _old_texts(commit, paths))
        if _code(old) != _code((ROOT / path).read_text(encoding="utf-8"))
    ]
    own = module.rpartition(".")[0]
    models = [
        path.removeprefix("src/suffice/").removesuffix("/manifest.json")
        for path in listed.split("\n")
        if path.startswith(MODELS) and path.endswith("/manifest.json") and (ROOT / path).is_file()
    ]
    return sorted(changed, key=lambda name: (not name.startswith(own), name)) + models


@cache
def needed_modules(module: str) -> frozenset[str]:
    """The modules of ours that importing this one may load, now or later, less those that show."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _path(name)
        if name in found or path is None or name.startswith(SHOWING):
            continue
        found.add(name)
        waiting += _imports(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(found)


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def _path(module: str) -> Path | None:
    root = SOURCES.get(module.partition(".")[0])
    if root is None:
        return None
    stem = root.joinpath(*module.split("."))
    found = (one for one in (stem.with_suffix(".py"), stem / "__init__.py") if one.is_file())
    return next(found, None)


def _relative(module: str) -> str | None:
    path = _path(module)
    return None if path is None else path.relative_to(ROOT).as_posix()


@cache
def _code(text: str | None) -> str:
    """What a module does: its syntax tree without docstrings; "" where there is none."""
    if text is None:
        return ""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:]
    return ast.dump(tree)


def _old_texts(commit: str, paths: list[str]) -> Iterator[str | None]:
    """The files as they were at a commit, by one process; None where there was none."""
    asked = "".join(f"{commit}:{path}\n" for path in paths)
    done = subprocess.run(
        ["git", "cat-file", "--batch"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        input=asked.encode(),
    )
    rest = done.stdout
    for _ in paths:
        head, _, rest = rest.partition(b"\n")
        if head.endswith(b"missing"):
            yield None
            continue
        size = int(head.rpartition(b" ")[2])
        yield rest[:size].decode("utf-8")
        rest = rest[size + 1 :]


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout
