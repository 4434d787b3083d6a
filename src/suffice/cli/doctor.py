"""`suffice doctor`: what is installed, what is missing or does not load, and how to fix it."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from typing import Annotated, Any

import typer
from typer import Argument

from suffice.cli import options as opt
from suffice.cli.loaders import name_library
from suffice.cli.output import command, print_json
from suffice.errors import MissingExtraError, NotReadyError, SufficeError
from suffice.registry import ENCODERS, JUDGES, PACKAGES, RERANKERS, Registry

REQUIRED = (
    "numpy bm25s tantivy onnxruntime tokenizers ahocorasick_rs sentencex typer rich markdown-it-py"
).split()
# What each extra installs and enables; tests/test_packaging.py compares this with pyproject.toml.
EXTRAS = {
    "vectors": (("wordllama",), "search by meaning"),
    "fit": (("onnx", "scikit-learn", "scipy"), "suffice fit"),
    "report": (("jinja2", "matplotlib"), "HTML reports, plots"),
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
# Packages beside suffice, with their extras.
BESIDE = {
    "suffice-deep": (("suffice-deep",), "the presets deep and auto"),
    "suffice-grade": (("suffice-grade",), "suffice grade, improve"),
    "suffice-grade[parse]": (("suffice-grade", "spacy"), "--parse; needs an English model"),
}


# Models that ship with the package are whole again when the package is.
REINSTALL = "pip install --force-reinstall --no-deps suffice"
QUESTION, TEXTS = "Who taught Ada Lovelace?", ["Augustus De Morgan taught Ada Lovelace.", "A lake."]


@dataclass(frozen=True)
class Finding:
    """One part that suffice can use: its version if it works, or why not, and how to get it."""

    name: str
    found: str | None
    needed_for: str
    get_it: str
    problem: str | None = None  # of what is there and does not work


def find_parts() -> list[Finding]:
    """Everything suffice can use, installed or not. Every model is loaded and used once."""
    parts = [
        Finding(name, _version(name), "everything", f"pip install {name}") for name in REQUIRED
    ]
    parts += [
        Finding(f"extra {extra}", _versions(packages), use, f"pip install 'suffice[{extra}]'")
        for extra, (packages, use) in EXTRAS.items()
    ]
    for name, (packages, use) in BESIDE.items():
        package = packages[0]
        place = name.replace(package, f"./{PACKAGES[package]}")
        get_it = "pip install " + shlex.quote(place)
        parts.append(Finding(f"package {name}", _versions(packages), use, get_it))
    parts += _find_models(ENCODERS, "search by meaning", lambda one: one.encode(TEXTS))
    parts += _find_models(RERANKERS, "reranking", lambda one: one.score(QUESTION, TEXTS))
    parts += _find_models(
        JUDGES, "--preset deep", lambda one: one.judge([(QUESTION, TEXTS, TEXTS)])
    )
    parts += [
        _try_shipped(f"gate, preset {preset}", "suffice check", partial(_use_gate, preset))
        for preset in ("standard", "fast", "hardened")
    ]
    return [*parts, _try_shipped("ranker of the bridge", "the retriever bridge", _use_ranker)]


def _use_gate(preset: str) -> None:
    from suffice.gate.gate import Gate

    Gate.load(preset=preset).check(QUESTION, TEXTS)


def _use_ranker() -> None:
    import numpy as np

    from suffice.retrieval.bridge import RankerByTitles
    from suffice.retrieval.candidate_pool import COLUMN, FEATURES

    rows = np.zeros((2, len(FEATURES)))
    rows[1, COLUMN["untitled"]] = 1
    RankerByTitles.load().p(rows)


def _try_shipped(name: str, needed_for: str, use: Callable[[], object]) -> Finding:
    """A model inside the package."""
    try:
        use()
    except Exception as error:  # noqa: BLE001 - doctor must not fail on what it is looking for
        hint = error.hint if isinstance(error, NotReadyError) else ""
        fix = f"{REINSTALL}; in a clone, {hint}" if hint else REINSTALL
        return Finding(name, None, needed_for, fix, f"does not load: {_words(error)}")
    return Finding(name, "ships with suffice", needed_for, REINSTALL)


def _find_models(
    registry: Registry[Any], needed_for: str, use: Callable[[Any], object]
) -> Iterator[Finding]:
    """The models of a registry, ours and those of plug-ins."""
    import suffice.retrieval.encoders  # noqa: F401 - registers ours

    for name in registry.names():
        title = f"{registry.kind} {name}"
        try:
            use(registry.get(name)())
        except (NotReadyError, MissingExtraError) as error:  # its package is not installed
            yield Finding(title, None, needed_for, error.hint or str(error))
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            hint = getattr(error, "hint", "") or "install its package again"
            yield Finding(title, None, needed_for, hint, f"does not load: {_words(error)}")
        else:
            yield Finding(title, "loads", needed_for, "")


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


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


def _find_library(address: str) -> Finding:
    from suffice.engines.library_location import open_location
    from suffice.library import Library

    name, needed_for = f"library {address}", "search, ask"
    try:
        with Library(open_location(address)) as library:
            library.search("a")
            found, unfinished = f"{len(library):,} documents", library.unfinished
    except SufficeError as error:
        return Finding(name, None, needed_for, error.hint, _words(error))
    if not unfinished:
        return Finding(name, found, needed_for, "")
    return Finding(name, None, needed_for, unfinished[0].next_step, f"{found}; {unfinished[0]}")


@command
def doctor(
    library: Annotated[str | None, Argument(help="Also check this library.")] = None,
    named_library: opt.NamedLibrary = None,
    json: opt.Json = False,
) -> None:
    """Show what is installed, missing or broken, and how to fix it.

    Every model is loaded and used once.
    """
    parts = find_parts()
    parts += map(_find_library, name_library(library, option=named_library))
    ready = not any(_is_fault(part) for part in parts)
    python = platform.python_version()
    if json:
        print_json({"python": python, "ready": ready, "parts": [asdict(part) for part in parts]})
    else:
        print(f"suffice {_version('suffice')}  Python {python}  {sys.platform}\n")
        for part in parts:
            mark, state = "✓", part.found
            if part.problem:
                mark, state = "✗", f"{part.problem} ({part.get_it})"
            elif not part.found:
                mark, state = "–", f"not installed ({part.get_it})"
            print(f"  {mark} {part.name:<44} {part.needed_for:<30} {state}")
        faults = ", ".join(part.name for part in parts if _is_fault(part))
        print("\nready" if ready else f"\nnot ready: fix {faults} as shown above")
    if not ready:
        raise typer.Exit(1)


def _is_fault(part: Finding) -> bool:
    """What everybody needs is missing, or something that is there does not work."""
    return part.problem is not None or (part.needed_for == "everything" and not part.found)
