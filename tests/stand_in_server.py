"""A stand-in for a model server that misbehaves on purpose: what a real one does only on a bad day."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


def says(text: str | None) -> Reply:
    """A server that answers every request with these words."""

    def reply(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        message = {"role": "assistant", "content": text}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "stand-in"}
        send(
            handler,
            200,
            json.dumps(
                {**body, "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
            ),
        )

    return reply


def send(handler: BaseHTTPRequestHandler, status: int, body: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    handler.wfile.write(body.encode())


def fails(status: int, body: str = '{"error": {"message": "no"}}') -> Reply:
    return lambda handler, request: send(handler, status, body)


def garbage(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    send(handler, 200, "<html>502 Bad Gateway</html>")


def drips(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    """A byte now and then: each read is in time, the whole never is."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(40):
        time.sleep(0.1)
        try:
            handler.wfile.write(b" ")
            handler.wfile.flush()
        except OSError:
            return


def hangs_up(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    handler.connection.close()


@contextmanager
def serving(reply: Reply) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The base URL of a server that replies so, and the requests it has seen."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(request)
            reply(self, request)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen
    finally:
        server.shutdown()
        server.server_close()
