"""Jobs over large inputs: in blocks, in order, resumable, in this process or on Dask workers.

    with BatchRunner("tcp://127.0.0.1:8786", checkpoint=Path("blocks")) as run:
        for result in run(job, blocks):
            ...

A `Job` (see `suffice.jobs`) does not depend on where it runs and gives the same bytes everywhere.
"""

from suffice.engines.batch.runner import BatchRunner

__all__ = ["BatchRunner"]
