"""A real model server in a process of its own: llama.cpp with SmolLM2 on a free port of this
machine.

`python -m tests.llm_server MODEL` prints its address and serves until it is killed. In the tests'
own process it could not be stopped while a question that nobody waits for any more is still being
answered.
"""

from __future__ import annotations

import sys
import threading


def main(model: str) -> None:
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = model
    settings.n_ctx, settings.n_parallel, settings.warmup, settings.verbosity = 2048, 1, False, -1
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    running = xllamacpp.Server(settings)
    print(f"{running.listening_address}/v1", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
