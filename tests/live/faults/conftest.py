"""One nursery for all tests of this folder: starting it costs what a command costs, a run in it a tenth of that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from trust.kills import Yard
from trust.nursery import UnavailableError


@pytest.fixture(scope="session")
def yard() -> Iterator[Yard]:
    try:
        made = Yard(seed=20231007)
    except UnavailableError as error:
        pytest.skip(str(error))
    with made:
        yield made
