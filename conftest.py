"""What several tests share: where the real data is, and the rule that a live test may not be
skipped in CI.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from docs.generators.paths import DATA
from hypothesis import settings

from suffice.engines.embedded import EmbeddedStore
from suffice.testing import VILLAGE, VILLAGE_VECTORS

# Small fits gain nothing from threads, and two test processes on two cores lose minutes waiting for
# one another's.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Some frameworks report home that they are used; no test does.
os.environ.update(
    HAYSTACK_TELEMETRY_ENABLED="False", RAGAS_DO_NOT_TRACK="true", DEEPEVAL_TELEMETRY_OPT_OUT="YES"
)

# What is imported stays to the end: the garbage collector is off until all of it is there, and then
# never looks at it again. That saves a seventh of the processor time.
gc.disable()

# Built once: typer's runner, which imports this name later, builds the command line for every call.
typer.main.get_command = cache(typer.main.get_command)

# The same examples in every run: a red build must be repeatable, and this machine is too noisy for
# deadlines.
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets; tests that need it are skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip(
            f"no real data at {DATA}: set SUFFICE_DATA to the folder that holds frames/, "
            f"hotpotqa/, ..."
        )
    return DATA


@pytest.fixture(scope="module")
def few_trees() -> Iterator[None]:
    """Every model that the module fits is a small one: `pytestmark =
    pytest.mark.usefixtures("few_trees")`.
    """
    from tests.small_gate import few_trees as grown

    with grown():
        yield


# Left out by `make check`: they run the pages, fit whole gates, or ask thousands of examples.
SLOW_FILES = set(
    "adaptation answer_systems answers ask_faulty_server ask_injection batch benchmark_files "
    "benchmark_pipeline bridge_training builtin ci_thresholds cli cli_ask cli_gate "
    "cli_wrong_input complete concurrency datasets docs embedded encoders ensemble examples "
    "explanation fuzz gate_evaluation hostile_files improve injection mcp memory_bm25 model "
    "name_rows onnx openai policy report service_errors study supply_chain training "
    "untrusted_text".split()
)


@pytest.hookimpl(tryfirst=True)  # before the distribution over processes reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and let it begin first; keep a file in one process, whose fixtures are
    then made once.
    """
    for item in items:
        folder, name = item.path.parent.name, item.path.stem
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(name))
        if (
            folder in ("research", "properties", "contract")
            or name.removeprefix("test_") in SLOW_FILES
        ):
            item.add_marker(pytest.mark.slow)
    marks = ("live", "slow")  # at the end short files fill up what the processes have left
    items.sort(key=lambda item: [item.get_closest_marker(mark) is None for mark in marks])


def pytest_collection_finish() -> None:
    """From here on garbage is looked for, a seventieth as often as by default: a test makes little."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """With CI set, a live test that is skipped is a failure: the run would otherwise prove less
    than it says.
    """
    outcome = yield
    report = outcome.get_result()
    if report.skipped and item.get_closest_marker("live") and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"live test skipped in CI: {report.longrepr}"


@pytest.fixture(scope="module")
def qdrant_hosts() -> Iterator[str]:
    """The host and port of a real Qdrant server, QDRANT_URL's or one that is started here.

    It does not outlive the module: an idle one under emulation still takes a fifth of a core.
    """
    from tests.qdrant_server import Servers, UnavailableError, command

    if given := os.environ.get("QDRANT_URL"):
        yield given.rpartition("//")[2].strip("/")
        return
    try:
        command()
    except UnavailableError as why:
        pytest.skip(f"no Qdrant server: {why}")
    with Servers() as servers:
        yield servers.hosts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed embedded store that holds the village."""
    with EmbeddedStore(tmp_path / "store") as store:
        store.put(VILLAGE, VILLAGE_VECTORS)
    return tmp_path / "store"
