"""A language model from a GGUF file, served on this machine by llama.cpp while a study runs.

    with serve_gguf(Path("qwen.gguf")) as model: ...

The server is a separate process (`python -m suffice_research.local_model FILE`), which ends with
the study. On two cores a model of 1.5 billion parameters takes a minute per prompt: give the study
a cache folder, and run it in the background.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from suffice.errors import InputError, ModelError
from suffice.integrations.openai import CachedModel, OpenAIModel
from suffice.protocols import LanguageModel

__all__ = ["serve_gguf", "usable_model"]

CONTEXT = 8192  # tokens of a prompt with its answer
TIMEOUT = 1200.0  # seconds per prompt


@contextmanager
def serve_gguf(path: Path) -> Iterator[OpenAIModel]:
    """The model in this file, behind a server that stops at the end of the block."""
    if not path.is_file():
        raise InputError(
            f"{path} does not exist",
            hint="give the path of a GGUF file, or the name of a model with --base-url",
        )
    if importlib.util.find_spec("xllamacpp") is None:
        raise InputError(
            f"{path} is a file, and xllamacpp, which would serve it, is not installed",
            hint="pip install xllamacpp, or serve it yourself and pass its address as --base-url",
        )
    command = [sys.executable, "-m", "suffice_research.local_model", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        try:
            lines = running.stdout or ()
            address = next((line.strip() for line in lines if line.startswith("http")), None)
            if address is None:
                raise ModelError(
                    f"llama.cpp cannot serve {path}",
                    hint=f"see what it says: {' '.join(command[1:])}",
                )
            yield OpenAIModel(path.stem, base_url=address, timeout_s=TIMEOUT)
        finally:
            running.kill()  # it may be generating an answer that nobody waits for


@contextmanager
def usable_model(model: LanguageModel | Path, cache: Path | None = None) -> Iterator[LanguageModel]:
    """A model, or a model file, which is then served while the block runs. With a cache folder no
    prompt is asked twice, so that an interrupted study can resume.
    """
    with serve_gguf(model) if isinstance(model, Path) else nullcontext(model) as asked:
        yield asked if cache is None else CachedModel(asked, cache / "answers.db")


def main(path: str) -> None:
    """Print the server's address, and serve until this process or its parent ends."""
    import xllamacpp

    parent = os.getppid()
    settings = xllamacpp.CommonParams()
    settings.model.path = path
    settings.n_ctx, settings.n_parallel, settings.warmup, settings.verbosity = CONTEXT, 1, False, -1
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    affinity = getattr(os, "sched_getaffinity", None)  # not available on every system
    threads = len(affinity(0)) if affinity else os.cpu_count() or 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    running = xllamacpp.Server(settings)
    print(f"{running.listening_address}/v1", flush=True)
    while os.getppid() == parent:
        threading.Event().wait(2)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
