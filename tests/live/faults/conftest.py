"""One fork_server for all tests of this folder: starting it costs what a command costs, a run in it
a tenth of that.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from robustness.fork_server import UnavailableError
from robustness.kills import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    try:
        made = Sandbox(seed=20231007)
    except UnavailableError as error:
        pytest.skip(str(error))
    with made:
        yield made
