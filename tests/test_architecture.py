"""The architecture holds: imports go left, pure rooms stay pure, labels cannot leak, no cycles.

Each rule is a function from a parsed source tree to its violations. Each rule is also shown a
planted violation, so that a rule that stops seeing anything fails here.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from docs.generators.code_blocks import blocks
from docs.generators.paths import DOCS, ROOT
from docs.generators.source import public_modules, public_names

# Top-level package -> the folder that holds it.
PACKAGES = {
    "suffice": "src",
    "suffice_grade": "packages/suffice-grade",
    "suffice_deep": "packages/suffice-deep",
    "suffice_research": "research",
} | dict.fromkeys(("robustness", "benchmarks", "docs", "tests"), ".")
ROOMS = (
    "errors types lexicon text numeric protocols registry jobs storage "
    "retrieval gate answering "
    "datasets evaluation "
    "engines integrations library testing "
    "service cli"
).split()
PURE_ROOMS = ("retrieval", "gate", "answering")
MAX_BODY = (
    60  # lines of a function without its signature: the options of a command are long and plain
)
MAX_MODULES = 320  # loaded by `import suffice; suffice.Gate.load()`

IMPURE_MODULES = set(
    "os time random socket ssl http urllib requests httpx subprocess multiprocessing threading asyncio "
    "sqlite3 tempfile shutil secrets uuid getpass platform locale signal".split()
)
CLOCK_AND_DISK = set(
    "now today utcnow read_text write_text read_bytes write_bytes unlink mkdir rename".split()
)
GLOBAL_RANDOM = set(
    "seed rand randn randint random choice shuffle permutation normal uniform".split()
)
UNSAFE_IMPORTS = {"pickle", "cPickle", "dill", "joblib", "cloudpickle", "shelve", "marshal"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}
# Names that were dropped because nobody could guess them; no module, class or function has one.
DROPPED_MODULES = set(
    "assess retrieve reason ports trust incoming asking folding looking whole own keeping lessons shares "
    "drawing selections classic named stored soft relax bridge_reading joining picking wanted shelf beside moving "
    "letters gate_at outcomes homes made_with porter holding intake shown replies journeys wire manners sending "
    "gated nursery works doors shapes told kept".split()
)
DROPPED_NAMES = set(
    "Taken Asked Looked Lenses Taught Judged Found Porter Visit Refusal Reach Desk Shelves Shelf Told Kept "
    "Labelled Lesson Begun Ended Nursery Yard Screen believed said_once aside told_of".split()
)
Trees = dict[str, ast.Module]


@cache
def parse(folder: Path, packages: tuple[str, ...] = ("suffice",)) -> Trees:
    """Dotted module name -> syntax tree, for every file of these packages.

    Each file is parsed once.
    """
    trees = {}
    for package in packages:
        home = folder / PACKAGES[package] if len(packages) > 1 else folder
        for file in sorted((home / package).rglob("*.py")):
            parts = file.relative_to(home).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            trees[name] = ast.parse(file.read_text(encoding="utf-8"), str(file))
    return trees


def repository() -> Trees:
    return parse(ROOT, tuple(PACKAGES))


@cache
def product() -> Trees:
    return {name: tree for name, tree in repository().items() if name.split(".")[0] == "suffice"}


@cache
def installed() -> Trees:
    """What users install: the product, and GRADE and the deep judge beside it."""
    owners = ("suffice", "suffice_grade", "suffice_deep")
    return {name: tree for name, tree in repository().items() if name.split(".")[0] in owners}


@cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    return list(ast.walk(tree))


def imports(
    tree: ast.Module, name: str, known: set[str] | frozenset[str] = frozenset()
) -> Iterator[str]:
    """What a module imports, also late or for typing only; `from package import module` is the
    module.
    """
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = name.split(".")[: -node.level] if node.level else []
            target = ".".join([*package, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{target}.{alias.name}"
                yield submodule if submodule in known else target


def import_graph(trees: Trees) -> dict[str, set[str]]:
    known = set(trees)
    tops = {name.split(".")[0] for name in known} | set(PACKAGES)
    return {
        name: {one for one in imports(tree, name, known) if one.split(".")[0] in tops}
        for name, tree in trees.items()
    }


def room_of(module: str) -> str | None:
    package, _, rest = module.partition(".")
    return rest.split(".")[0] or None if package == "suffice" else None


def wrong_direction(trees: Trees) -> list[str]:
    """A module imports only from rooms to its left, or from its own."""
    wrong = []
    for name, targets in import_graph(trees).items():
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


def root_imports(trees: Trees) -> list[str]:
    """No module imports the package root: that would tie every room to every other."""
    return [
        f"{name} imports the package root"
        for name, targets in import_graph(trees).items()
        if "suffice" in targets and name not in ("suffice", "suffice.__main__")
    ]


def plugin_imports(trees: Trees) -> list[str]:
    """The installed package works without those beside it, and GRADE without the research."""
    beside = ("suffice_grade", "suffice_deep")
    may_import = {"suffice": ("suffice",)} | {one: ("suffice", one) for one in beside}
    return [
        f"{name} imports {one}"
        for name, targets in import_graph(trees).items()
        for one in targets
        if one.split(".")[0] not in may_import[name.split(".")[0]]
    ]


def cycles(trees: Trees) -> list[str]:
    """No import cycle, also not inside a room."""
    graph = import_graph(trees)
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


def impurities(trees: Trees) -> list[str]:
    """The pure rooms know no network, clock, environment, global random state or disk of their own."""
    wrong = []
    for name, tree in trees.items():
        if room_of(name) not in PURE_ROOMS:
            continue
        imported = (one.split(".")[0] for one in imports(tree, name))
        wrong += [f"{name} imports {one}" for one in imported if one in IMPURE_MODULES]
        for node in nodes(tree):
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
                own = isinstance(node.value, ast.Name) and node.value.id == "self"
                if node.attr in CLOCK_AND_DISK and not own:
                    wrong.append(f"{name}:{node.lineno} uses .{node.attr}")
    return wrong


def leaks(trees: Trees) -> list[str]:
    """Nothing in the pure rooms can reach a gold label, by any chain of imports or by name."""
    graph = import_graph(trees)
    wrong = []
    for name, tree in trees.items():
        if room_of(name) not in PURE_ROOMS:
            continue
        reached, waiting = {name}, [name]
        while waiting:
            for target in graph.get(waiting.pop(), set()) - reached:
                reached.add(target)
                waiting.append(target)
        wrong += [f"{name} reaches {one}" for one in sorted(reached) if room_of(one) == "datasets"]
        if any(isinstance(node, ast.Name) and node.id == "Gold" for node in nodes(tree)):
            wrong.append(f"{name} names Gold")
    return wrong


def long_functions(trees: Trees) -> list[str]:
    """Functions whose body, without the docstring, does not fit on a screen."""
    wrong = []
    for name, tree in trees.items():
        for node in nodes(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                has_docstring = ast.get_docstring(node) and len(node.body) > 1
                first = node.body[1] if has_docstring else node.body[0]
                if (lines := (node.end_lineno or 0) - first.lineno + 1) > MAX_BODY:
                    wrong.append(f"{name}.{node.name} has {lines} lines")
    return wrong


def unsafe(trees: Trees) -> list[str]:
    """Nothing unpickles, evaluates, asserts, or runs a shell."""
    wrong = []
    for name, tree in trees.items():
        imported = (one.split(".")[0] for one in imports(tree, name))
        wrong += [f"{name} imports {one}" for one in imported if one in UNSAFE_IMPORTS]
        for node in nodes(tree):
            if isinstance(node, ast.Assert):
                wrong.append(f"{name}:{node.lineno} asserts")
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Name) and node.func.id in UNSAFE_CALLS:
                wrong.append(f"{name}:{node.lineno} calls {node.func.id}")
            for keyword in node.keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if keyword.arg in ("shell", "allow_pickle") and value is not False:
                    wrong.append(f"{name}:{node.lineno} passes {keyword.arg}")
    return wrong


def dropped_names(trees: Trees) -> list[str]:
    """No module, class or function has one of the names that were dropped."""
    wrong = [f"module {name}" for name in trees if DROPPED_MODULES & set(name.split("."))]
    for name, tree in trees.items():
        for node in nodes(tree):
            is_definition = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if is_definition and node.name in DROPPED_NAMES:  # type: ignore[attr-defined]
                wrong.append(f"{name}.{node.name}")  # type: ignore[attr-defined]
    return wrong


Rule = Callable[[Trees], list[str]]
RULES: dict[Rule, Callable[[], Trees]] = {
    wrong_direction: product,
    root_imports: product,
    plugin_imports: installed,
    impurities: product,
    leaks: product,
    long_functions: installed,
    unsafe: installed,
    cycles: repository,
    dropped_names: repository,
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_repository_keeps(rule: Rule) -> None:
    assert rule(RULES[rule]()) == []


PLANTED: list[tuple[Rule, str, str]] = [
    (wrong_direction, "text.py", "from suffice.retrieval import corpus"),
    (
        wrong_direction,
        "retrieval/new.py",
        "def late():\n    from suffice.evaluation import metrics",
    ),
    (wrong_direction, "utils/new.py", "x = 1"),
    (root_imports, "retrieval/new.py", "import suffice"),
    (root_imports, "retrieval/new.py", "from suffice import __version__"),
    (plugin_imports, "cli/new.py", "def late():\n    from suffice_research import magaf"),
    (plugin_imports, "evaluation/new.py", "import suffice_research.controlled"),
    (plugin_imports, "evaluation/new.py", "from suffice_grade.pipeline import Stages"),
    (cycles, "retrieval/a.py", "from suffice.retrieval import b"),
    (impurities, "retrieval/new.py", "import socket"),
    (impurities, "gate/new.py", "from datetime import datetime\nx = datetime.now()"),
    (impurities, "answering/new.py", "import os\nx = os.environ"),
    (impurities, "retrieval/new.py", "import numpy as np\nx = np.random.rand(3)"),
    (impurities, "retrieval/new.py", "x = open('file')"),
    (leaks, "retrieval/new.py", "from suffice.datasets.gold import Gold"),
    (leaks, "gate/new.py", "import suffice.evaluation.smuggler"),
    (long_functions, "text.py", "def f():\n" + "    x = 1\n" * (MAX_BODY + 1)),
    (unsafe, "storage.py", "import pickle"),
    (unsafe, "storage.py", "x = eval('1')"),
    (unsafe, "storage.py", "import numpy as np\nx = np.load('f', allow_pickle=True)"),
    (unsafe, "storage.py", "assert True"),
    (dropped_names, "service/porter.py", "x = 1"),
    (dropped_names, "gate/new.py", "class Asked: ..."),
    (dropped_names, "gate/new.py", "class A:\n    def told_of(self): ..."),
]


@pytest.mark.parametrize(("rule", "file", "code"), PLANTED)
def test_a_planted_violation_is_seen(rule: Rule, file: str, code: str, tmp_path: Path) -> None:
    clean = {
        "__init__.py": "",
        "retrieval/b.py": "from suffice.retrieval import a",
        "retrieval/a.py": "",
        "datasets/gold.py": "class Gold: ...",
        "evaluation/smuggler.py": "from suffice.datasets.gold import Gold",
        "evaluation/metrics.py": "",
        "retrieval/corpus.py": "",
    }

    def write(files: dict[str, str], folder: Path) -> Trees:
        for name, text in files.items():
            (folder / "suffice" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "suffice" / name).write_text(text, encoding="utf-8")
        return parse(folder)

    assert rule(write(clean, tmp_path / "clean")) == []
    assert rule(write({**clean, file: code}, tmp_path / "planted")) != []


# ---- public names


def private_uses(code: str, public: dict[str, set[str]]) -> list[str]:
    """What a piece of documentation imports or names that is not public."""
    wrong = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "suffice":
            module = node.module or ""
            for alias in node.names:
                if (
                    alias.name not in public.get(module, ())
                    and f"{module}.{alias.name}" not in public
                ):
                    wrong.append(f"from {module} import {alias.name}")
        elif isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
            wrong += [
                f"import {one}"
                for one in names
                if one.split(".")[0] == "suffice" and one not in public
            ]
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "suffice"
        ):
            known = public["suffice"] | {one.split(".")[1] for one in public if "." in one}
            wrong += [] if node.attr in known else [f"suffice.{node.attr}"]
    return wrong


def documentation() -> Iterator[tuple[Path, str]]:
    """Every Python block of README and docs, every example, every cell of the notebook."""
    for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        yield from ((page, code) for language, code in blocks(page) if language == "python")
    for file in sorted((ROOT / "examples").rglob("*.py")):
        yield file, file.read_text(encoding="utf-8")
    for file in sorted((ROOT / "examples").rglob("*.ipynb")):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        yield from (
            (file, "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"
        )


def test_docs_and_examples_use_public_names_only() -> None:
    public = {module: set(public_names(module)) for module in public_modules()}
    assert {
        "suffice",
        "suffice.retrieval",
        "suffice.evaluation",
        "suffice.datasets",
        "suffice.testing",
    } <= set(public)
    pieces = list(documentation())
    assert len(pieces) > 30
    wrong = [
        f"{file.relative_to(ROOT)}: {one}"
        for file, code in pieces
        for one in private_uses(code, public)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "code",
    [
        "from suffice.gate.policy import _choose",
        "import suffice.gate.hits",
        "import suffice\nsuffice.secret()",
    ],
)
def test_a_private_name_in_the_docs_is_seen(code: str) -> None:
    assert private_uses(code, {"suffice": {"Gate"}}) != []


def bound_names(body: list[ast.stmt]) -> set[str]:
    """What the statements of a module define or import, also under `if` and `try`."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.If | ast.Try):
            found |= bound_names([*node.body, *node.orelse])
        else:
            stored = (one for one in ast.walk(node) if isinstance(one, ast.Name))
            found |= {one.id for one in stored if isinstance(one.ctx, ast.Store)}
    return found


def test_every_module_says_what_it_is_for_and_public_ones_list_their_names() -> None:
    public, wrong = set(public_modules()), []
    for name, tree in product().items():
        if ast.get_docstring(tree) is None and not name.endswith("__main__"):
            wrong.append(f"{name} has no docstring")
        listed, bound = public_names(name), bound_names(tree.body)
        if name in public and not listed:
            wrong.append(f"{name} is public and has no __all__")
        wrong += [
            f"{name} lists {one} and does not define it"
            for one in listed
            if one not in bound and "__getattr__" not in bound
        ]
    assert wrong == []


def test_lazy_exports_resolve() -> None:
    lazy = [name for name, tree in product().items() if "__getattr__" in bound_names(tree.body)]
    assert {"suffice", "suffice.retrieval", "suffice.evaluation"} <= set(lazy)
    for name in lazy:
        module = importlib.import_module(name)
        for one in public_names(name):
            assert getattr(module, one) is not module
        with pytest.raises(AttributeError):
            module.no_such_name  # noqa: B018


@pytest.mark.parametrize("room", ["storage", "retrieval", "gate", "answering", "service"])
def test_a_rooms_docstring_names_every_module_in_it(room: str) -> None:
    text = ast.get_docstring(product()[f"suffice.{room}"]) or ""
    here = [name.split(".")[2] for name in product() if name.startswith(f"suffice.{room}.")]
    assert [one for one in here if not re.search(rf"\b{one}\b", text)] == []


def test_loading_the_gate_stays_light() -> None:
    code = (
        "import sys, suffice; suffice.Gate.load(); print(len(sys.modules), 'scipy' in sys.modules)"
    )
    count, has_scipy = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert int(count) <= MAX_MODULES
    assert has_scipy == "False"
