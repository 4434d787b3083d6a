"""The house keeps its plan: arrows go left, thinking is pure, no label can leak, no file grows without end.

Each rule is a function from a source folder to the list of its violations; each is also shown a planted violation, so that a
rule that has gone blind fails here.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from suffice.errors import MissingExtraError

SOURCE = Path(__file__).resolve().parent.parent / "src"

ROOMS = (
    "errors types text ports files "  # words and materials
    "retrieve assess reason "  # thinking
    "datasets grade evaluate "  # judging
    "engines integrations library testing "  # windows
    "service cli"  # doors
).split()
THINKING = ("retrieve", "assess", "reason")
MAX_LINES = 400
MAX_BODY = 60  # of a function, without its signature: a command's options are long and plain

WORLD = set(
    "os time random socket ssl http urllib requests httpx subprocess multiprocessing threading asyncio sqlite3 tempfile shutil "
    "secrets uuid getpass platform locale signal".split()
)
CLOCK_AND_DISK = {
    "now",
    "today",
    "utcnow",
    "read_text",
    "write_text",
    "read_bytes",
    "write_bytes",
    "unlink",
    "mkdir",
    "rename",
}
GLOBAL_RANDOM = {
    "seed",
    "rand",
    "randn",
    "randint",
    "random",
    "choice",
    "shuffle",
    "permutation",
    "normal",
    "uniform",
}
UNSAFE_IMPORTS = {"pickle", "cPickle", "dill", "joblib", "cloudpickle", "shelve", "marshal"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}


def modules(source: Path) -> dict[str, ast.Module]:
    """Dotted module name to its syntax tree, for every file of the package."""
    found = {}
    for file in sorted((source / "suffice").rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(file.read_text(encoding="utf-8"), str(file))
    return found


def imports(tree: ast.Module, name: str, known: set[str]) -> Iterator[str]:
    """What a module imports, late and typing-only imports included; `from package import module` counts as the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = name.split(".")[: -node.level] if node.level else []
            target = ".".join([*package, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{target}.{alias.name}" if f"{target}.{alias.name}" in known else target


def arrows(source: Path) -> dict[str, set[str]]:
    trees = modules(source)
    known = set(trees)
    return {
        name: {one for one in imports(tree, name, known) if one.split(".")[0] == "suffice"}
        for name, tree in trees.items()
    }


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def wrong_direction(source: Path) -> list[str]:
    """A module imports only from rooms to its left, or from its own."""
    wrong = []
    for name, targets in arrows(source).items():
        here = room_of(name)
        if here is None or here.startswith("__"):
            continue
        if here not in ROOMS:
            wrong.append(f"{name}: room {here!r} is not in the ordered list")
            continue
        for there in filter(None, map(room_of, targets)):
            if there in ROOMS and ROOMS.index(there) > ROOMS.index(here):
                wrong.append(f"{name} imports {there}, which is to its right")
    return wrong


def root_imports(source: Path) -> list[str]:
    """No module imports the package root: that would tie every room to every other."""
    return [
        f"{name} imports the package root"
        for name, targets in arrows(source).items()
        if "suffice" in targets and name != "suffice"
    ]


def cycles(source: Path) -> list[str]:
    """No import cycle, also not inside a room."""
    graph = arrows(source)
    done: set[str] = set()
    found: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            found.append(" -> ".join([*path[path.index(name) :], name]))
        elif name not in done:
            for target in sorted(graph.get(name, ())):
                visit(target, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())
    return found


def impurities(source: Path) -> list[str]:
    """Thinking knows no network, clock, environment, global random state or disk of its own."""
    wrong = []
    for name, tree in modules(source).items():
        if room_of(name) not in THINKING:
            continue
        wrong += [
            f"{name} imports {one}"
            for one in imports(tree, name, set())
            if one.split(".")[0] in WORLD
        ]
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "open"
            ):
                wrong.append(f"{name}:{node.lineno} opens a file")
            if isinstance(node, ast.Attribute):
                of_random = isinstance(node.value, ast.Attribute) and node.value.attr == "random"
                if of_random and node.attr in GLOBAL_RANDOM:
                    wrong.append(f"{name}:{node.lineno} uses the global random state")
                if node.attr in CLOCK_AND_DISK:
                    wrong.append(f"{name}:{node.lineno} uses .{node.attr}")
    return wrong


def leaks(source: Path) -> list[str]:
    """Nothing that thinks can reach a gold label, by any chain of imports or by name."""
    graph = arrows(source)
    wrong = []
    for name, tree in modules(source).items():
        if room_of(name) not in THINKING:
            continue
        reached, waiting = {name}, [name]
        while waiting:
            for target in graph.get(waiting.pop(), set()) - reached:
                reached.add(target)
                waiting.append(target)
        wrong += [f"{name} reaches {one}" for one in sorted(reached) if room_of(one) == "datasets"]
        named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        wrong += [f"{name} names Gold"] if "Gold" in named else []
    return wrong


def too_long(source: Path) -> list[str]:
    files = sorted((source / "suffice").rglob("*.py"))
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    return [
        f"{file.name} has {length} lines" for file, length in lengths.items() if length > MAX_LINES
    ]


def too_deep(source: Path) -> list[str]:
    """Functions whose body, without the docstring, does not fit on a screen."""
    wrong = []
    for name, tree in modules(source).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = (
                    node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
                )
                if (lines := (node.end_lineno or 0) - first.lineno + 1) > MAX_BODY:
                    wrong.append(f"{name}.{node.name} has {lines} lines")
    return wrong


def unsafe(source: Path) -> list[str]:
    """Nothing unpickles, evaluates, or runs a shell."""
    wrong = []
    for name, tree in modules(source).items():
        wrong += [
            f"{name} imports {one}"
            for one in imports(tree, name, set())
            if one.split(".")[0] in UNSAFE_IMPORTS
        ]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Name) and node.func.id in UNSAFE_CALLS:
                    wrong.append(f"{name}:{node.lineno} calls {node.func.id}")
                for keyword in node.keywords:
                    if keyword.arg in ("shell", "allow_pickle") and not (
                        isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                    ):
                        wrong.append(f"{name}:{node.lineno} passes {keyword.arg}")
            if isinstance(node, ast.Assert):
                wrong.append(f"{name}:{node.lineno} asserts")
    return wrong


RULES: dict[str, Callable[[Path], list[str]]] = {
    "arrows go left": wrong_direction,
    "the root is not imported": root_imports,
    "no cycles": cycles,
    "thinking is pure": impurities,
    "no label leaks": leaks,
    "no file over the limit": too_long,
    "no function over the limit": too_deep,
    "nothing unsafe": unsafe,
}


@pytest.mark.parametrize("rule", RULES)
def test_the_house_keeps(rule: str) -> None:
    assert RULES[rule](SOURCE) == []


PLANTED = [
    ("arrows go left", "text.py", "from suffice.retrieval import corpus"),
    (
        "arrows go left",
        "retrieve/new.py",
        "def late():\n    from suffice.evaluation import metrics",
    ),
    ("arrows go left", "utils/new.py", "x = 1"),
    ("the root is not imported", "retrieve/new.py", "import suffice"),
    ("the root is not imported", "retrieve/new.py", "from suffice import __version__"),
    ("no cycles", "retrieve/a.py", "from suffice.retrieval import b"),
    ("thinking is pure", "retrieve/new.py", "import socket"),
    ("thinking is pure", "assess/new.py", "from datetime import datetime\nx = datetime.now()"),
    ("thinking is pure", "reason/new.py", "import os\nx = os.environ"),
    ("thinking is pure", "retrieve/new.py", "import numpy as np\nx = np.random.rand(3)"),
    ("thinking is pure", "retrieve/new.py", "x = open('file')"),
    ("no label leaks", "retrieve/new.py", "from suffice.datasets.gold import Gold"),
    ("no label leaks", "assess/new.py", "import suffice.evaluation.smuggler"),
    ("no file over the limit", "text.py", "x = 1\n" * (MAX_LINES + 1)),
    ("no function over the limit", "text.py", "def f():\n" + "    x = 1\n" * (MAX_BODY + 1)),
    ("nothing unsafe", "files.py", "import pickle"),
    ("nothing unsafe", "files.py", "x = eval('1')"),
    ("nothing unsafe", "files.py", "import numpy as np\nx = np.load('f', allow_pickle=True)"),
]


@pytest.mark.parametrize(("rule", "file", "code"), PLANTED)
def test_a_planted_violation_is_seen(rule: str, file: str, code: str, tmp_path: Path) -> None:
    village = {
        "__init__.py": "",
        "retrieve/b.py": "from suffice.retrieval import a",
        "retrieve/a.py": "",
        "datasets/gold.py": "class Gold: ...",
        "evaluate/smuggler.py": "from suffice.datasets.gold import Gold",
        "evaluate/metrics.py": "",
        "retrieve/corpus.py": "",
    }
    for name, text in {**village, file: code}.items():
        target = tmp_path / "suffice" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    assert RULES[rule](tmp_path) != []


def public_modules() -> list[str]:
    return [
        name
        for name in modules(SOURCE)
        if not any(part.startswith("_") for part in name.split("."))
    ]


@pytest.mark.parametrize("name", public_modules())
def test_every_module_lists_its_public_names(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except MissingExtraError as error:
        pytest.skip(f"{error}: {error.hint}")
    listed = getattr(module, "__all__", None)
    if name.split(".")[1:2] == ["cli"] or (listed is None and not module.__doc__):
        return  # commands are named by the command line; an empty package marker names nothing
    assert module.__doc__, f"{name} does not say what it is for"
    assert listed is not None, f"{name} has no __all__"
    assert [one for one in listed if not hasattr(module, one)] == []
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize("room", ["files", "retrieve", "assess", "reason", "service"])
def test_a_rooms_map_names_every_module_in_it(room: str) -> None:
    told = importlib.import_module(f"suffice.{room}").__doc__ or ""
    here = [name.split(".")[2] for name in modules(SOURCE) if name.startswith(f"suffice.{room}.")]
    assert [one for one in here if not re.search(rf"\b{one}\b", told)] == []


def test_the_package_shows_what_it_lists() -> None:
    package = importlib.import_module("suffice")
    assert set(package.__all__) <= set(dir(package))
