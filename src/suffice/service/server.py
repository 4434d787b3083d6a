"""Workers, sockets, signals: from settings to a service that runs until it is told to stop.

SIGTERM or Ctrl-C: no new connections, what was taken in is answered, then the workers end. SIGHUP (with several workers): one
after the other is replaced, so that new gates or another library come in without a gap. A worker that dies is replaced.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import tempfile
import time
from typing import Any

import uvicorn
from uvicorn.supervisors.multiprocess import Multiprocess

from suffice.errors import InputError
from suffice.service.settings import METRICS_DIR_VARIABLE, SETTINGS_VARIABLE, Settings

__all__ = ["run_server"]

BACKLOG = 1024
WORKER_TIMEOUT_S = (
    20  # without a sign of life; on a busy machine a worker takes some seconds to begin
)


class JsonLogFormatter(logging.Formatter):
    """A line of JSON for each event."""

    def format(self, record: logging.LogRecord) -> str:
        at = (
            time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z"
        )
        told: dict[str, Any] = {
            "time": at,
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        told |= getattr(record, "told", {})
        if record.exc_info:
            told["fault"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)


LOG_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"lines": {"()": "suffice.service.server.JsonLogFormatter"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "lines",
            "stream": "ext://sys.stderr",
        }
    },
    "loggers": {
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "suffice.service": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
    },
}


def run_server(settings: Settings) -> None:
    """Serve until told to stop."""
    settings.checked()
    listening = _bind(settings)
    host, port = listening.getsockname()[:2]
    os.environ.setdefault(
        "OMP_NUM_THREADS", "1"
    )  # one core a worker: more threads would only wait for one another
    # glibc keeps a pool of freed memory for each of many threads, and every write to the library starts some. Workers see this.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    os.environ[SETTINGS_VARIABLE] = settings.as_json()
    config = uvicorn.Config(
        "suffice.service.app:from_environment",
        factory=True,
        host=host,
        port=port,
        workers=settings.workers,
        http="suffice.service.http_protocol:Clocked",
        ws="none",
        lifespan="on",
        backlog=BACKLOG,
        log_config=LOG_CONFIG,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=round(settings.limits.leave_seconds),
        timeout_worker_healthcheck=WORKER_TIMEOUT_S,
    )
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    logging.getLogger("suffice.service").info(
        "listening", extra={"told": {"address": address, "workers": settings.workers}}
    )
    if settings.workers == 1:
        uvicorn.Server(config).run([listening])
        return
    with tempfile.TemporaryDirectory(prefix="suffice-metrics-") as shared:
        os.environ[METRICS_DIR_VARIABLE] = shared
        _Supervisor(config, [listening]).run()


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        listening.listen(
            BACKLOG
        )  # whoever comes while the workers still load their gates waits, and is served
    except (OSError, OverflowError) as error:
        listening.close()
        raise InputError(
            f"cannot listen on {settings.host}:{settings.port}: {error}",
            hint="choose another --port",
        ) from error
    listening.set_inheritable(True)
    return listening


class _Supervisor(Multiprocess):
    """uvicorn's supervisor. Our door closes before the workers leave, and the figures of a dead worker are no longer live."""

    def terminate_all(self) -> None:
        for listening in self.sockets:
            listening.close()
        super().terminate_all()

    def keep_subprocess_alive(self) -> None:
        before = {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        for pid in before - {process.pid for process in self.processes}:
            if pid is not None:
                from prometheus_client import (
                    multiprocess,  # late: it looks for its folder when it is imported
                )

                multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]
