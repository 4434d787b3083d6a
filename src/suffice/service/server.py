"""Workers, sockets and signals: run a service until it is stopped.

SIGTERM or Ctrl-C: accept no new connections, finish running requests, then stop the workers. SIGHUP
(with several workers): replace them one by one, to load new gates or another library without
downtime. A worker that dies is replaced.
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
from uvicorn.supervisors import Multiprocess

from suffice.errors import InputError
from suffice.service.settings import METRICS_DIR_VARIABLE, SETTINGS_VARIABLE, Settings

BACKLOG = 1024
WORKER_TIMEOUT_S = 20  # without a heartbeat; workers start slowly on a busy machine


class JsonLogFormatter(logging.Formatter):
    """One line of JSON per event."""

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, Any] = {
            "time": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["fault"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


_STDERR = {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}
LOG_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "suffice.service.server.JsonLogFormatter"}},
    "handlers": {"stderr": _STDERR},
    "loggers": {
        name: {"handlers": ["stderr"], "level": level, "propagate": False}
        for name, level in (("uvicorn", "WARNING"), ("suffice.service", "INFO"))
    },
}


def run_server(settings: Settings) -> None:
    """Serve until stopped."""
    settings.validate()
    listener = _bind(settings)
    host, port = listener.getsockname()[:2]
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core per worker
    # glibc keeps a pool of freed memory per thread, and each library write starts some.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    os.environ[SETTINGS_VARIABLE] = settings.as_json()
    config = uvicorn.Config(
        "suffice.service.app:create_app_from_environment",
        factory=True,
        host=host,
        port=port,
        workers=settings.workers,
        http="httptools",
        ws="none",
        lifespan="on",
        backlog=BACKLOG,
        log_config=LOG_CONFIG,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=round(settings.limits.shutdown_seconds),
        timeout_worker_healthcheck=WORKER_TIMEOUT_S,
    )
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    fields = {"address": address, "workers": settings.workers}
    logging.getLogger("suffice.service").info("listening", extra={"fields": fields})
    print(f"suffice is listening on {address} (Ctrl-C to stop)", flush=True)
    if settings.workers == 1:
        uvicorn.Server(config).run([listener])
        return
    with tempfile.TemporaryDirectory(prefix="suffice-metrics-") as metrics_dir:
        os.environ[METRICS_DIR_VARIABLE] = metrics_dir
        Multiprocess(config, [listener]).run()


def _bind(settings: Settings) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)  # clients wait while workers load their gates
    except (OSError, OverflowError) as error:
        listener.close()
        message = f"cannot listen on {settings.host}:{settings.port}: {error}"
        raise InputError(message, hint="choose another --port") from error
    listener.set_inheritable(True)
    return listener
