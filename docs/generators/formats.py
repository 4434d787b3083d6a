"""The reference page of the file formats: what is read, what is written, and in which version."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module

from docs.generators.markdown import table
from docs.generators.python_api import SOURCE
from suffice.datasets import FORMATS, jsonl
from suffice.storage import MANIFEST

# Module of the constant -> what has this format, and what writes it. A test fails when a module with a version is not here.
WRITTEN = {
    "suffice.gate.storage": (
        "a gate: a folder of ONNX, JSON and `.npy`",
        "`suffice fit`, `Gate.save`",
    ),
    "suffice.gate.model": ("a gate's `model.json`", "`suffice fit`, `Gate.save`"),
    "suffice.gate.stuffing_filter": (
        "the screen of a hardened gate: a folder of ONNX and JSON",
        "`python -m suffice_research.training.stuffing_filter`",
    ),
    "suffice.gate.question": (
        "the table of words that a gate reads with: a folder",
        "`python -m suffice_research.training.word_table`",
    ),
    "suffice.engines.library_location": (
        "a library: a folder",
        "`suffice build --out`, `Library.build`",
    ),
    "suffice.engines.embedded.sqlite_documents": (
        "a library's documents: SQLite",
        "`suffice build --out`, `Library.add`",
    ),
    "suffice.engines.qdrant.collection_stats": (
        "a library's head in a Qdrant collection",
        "`suffice build --store`",
    ),
    "suffice.evaluation.answers": ("a run of answers: JSON", "`suffice evaluate answers --out`"),
    "suffice.evaluation.gate_runs": ("a run of a gate: JSON", "`suffice evaluate gate --out`"),
    "suffice.evaluation.study": (
        "a study: JSON of tables and figures",
        "`suffice reproduce --out`, `suffice demo`",
    ),
    "suffice.evaluation.retrieval": (
        "a run of retrievers: JSON",
        "`suffice evaluate retrieval --out`",
    ),
    "suffice.benchmark.stage_cache": ("a stage of a benchmark: a folder", "`suffice grade --out`"),
    "suffice.integrations.set_scorer": (
        "the bridge's set scorer: a folder of ONNX",
        "`python -m suffice_research.training.scorer_export`",
    ),
    "suffice.answering.traces": (
        "a journey: one JSON object a line",
        "`suffice ask --trace`, `/v1/ask`",
    ),
    "suffice.retrieval.links": ("a library's mention links: a folder of `.npy`", "`suffice build`"),
    "suffice.retrieval.name_links": (
        "a library's name links: a folder of `.npy`",
        "the retriever `bridge`, when first used",
    ),
    "suffice.retrieval.bridge": (
        "the bridge's ranker: a folder with ONNX",
        "`suffice fit --bridge`",
    ),
    "suffice.service.keys": ("the keys of a service, as hashes: JSON", "`suffice serve key new`"),
}
NAMES = ("VERSION", "_VERSION", "FORMAT")


def versions() -> dict[str, int]:
    """Module -> the version of its format, for every module of the package that holds one."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assigned = [
            ast.unparse(node.targets[0]).strip("()").split(", ")
            for node in tree.body
            if isinstance(node, ast.Assign)
        ]
        names = [name for name in NAMES if any(name in targets for targets in assigned)]
        if names:
            parts = file.relative_to(SOURCE.parent).with_suffix("").parts
            module = ".".join(part for part in parts if part != "__init__")
            found[module] = int(getattr(import_module(module), names[0]))
    return found


def page() -> str:
    read = [(f"`{name}`", _first(inspect.getmodule(one.load))) for name, one in FORMATS.items()]
    rows = [
        (what, str(versions()[module]), by, f"`{module}`") for module, (what, by) in WRITTEN.items()
    ]
    return "\n".join(
        [
            "# File formats\n",
            "## Written\n",
            f"A folder is an artefact: its `{MANIFEST}` says kind, version, settings, seed, the hashes of inputs and files, "
            "and the packages that made it. Everything is written beside its place and renamed, so that a crash leaves the old "
            "state or the new one. What is of another version is refused, and the error says which command makes it anew. "
            "Nothing is pickled.\n",
            table(("what", "version", "written by", "stated in"), rows),
            "## Read\n",
            "With `--dataset NAME --path FILE_OR_FOLDER`, or `suffice.datasets.load(NAME, PATH)`.\n",
            table(("name", "what it reads"), read),
            "## Our JSON Lines\n",
            f"{inspect.getdoc(jsonl)}\n",
            "## Hits and labelled examples\n",
            "`suffice check --hits` and `--batch`, `/v1/check` and `Gate.check` take hits of any usual shape: "
            "[check](../howto/check.md). `suffice fit --examples` takes JSON Lines of `question`, `hits` and `gold`: "
            "[fit a gate](../howto/fit-a-gate.md).\n",
        ]
    )


def _first(module: object) -> str:
    return " ".join((inspect.getdoc(module) or "").split("\n\n")[0].split())
