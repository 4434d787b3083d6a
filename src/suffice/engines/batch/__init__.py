"""Jobs over more than one machine can hold: in blocks, in order, resumable, in this process or on Dask's workers.

    with Batch("tcp://127.0.0.1:8786", keep=Path("blocks")) as batch:
        for result in batch(job, blocks):
            ...

A `Job` (see `suffice.jobs`) does not know where it runs, and its results are the same bytes wherever it does.
"""

from suffice.engines.batch.runner import BatchRunner

__all__ = ["BatchRunner"]
