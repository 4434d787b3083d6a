"""Talking to a cluster: whichever node answers will do, and what failed for a moment is tried again.

Every operation of the store may be repeated without harm (points have ids of their own making, look-ups change nothing), so a
request whose answer was lost is simply sent again, to the next node.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from importlib import util
from typing import TYPE_CHECKING, Any, TypeVar

from suffice.engines.qdrant.address import KEY, Address
from suffice.errors import EngineError, InputError, MissingExtraError

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

__all__ = ["Cluster", "MissingCollectionError"]

T = TypeVar("T")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
REFUSED = frozenset({401, 403})


class MissingCollectionError(Exception):
    """There is no such collection."""


class Cluster:
    """The nodes of one cluster behind one door. `calls` counts the requests that were answered: round trips."""

    def __init__(self, address: Address, *, api_key: str | None = None) -> None:
        self.address, self.calls = address, 0
        if util.find_spec("qdrant_client") is None:
            raise MissingExtraError("a store on Qdrant", extra="qdrant")
        self._key = api_key or os.environ.get(KEY) or None
        if self._key and address.tls is None and not address.local:
            raise InputError(
                f"the key would travel to {', '.join(address.hosts)} unencrypted",
                hint="add ?tls=true to the address, or ?tls=false inside a network that you trust",
            )
        self._clients: dict[str, QdrantClient] = {}
        self._at = 0

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients = {}

    def ask(self, what: Callable[[QdrantClient], T]) -> T:
        """The answer of the first node that gives one; EngineError when none does for `patience_s`."""
        deadline = time.monotonic() + self.address.patience_s
        hosts, pause, tried = self.address.hosts, FIRST_PAUSE_S, 0
        while True:
            host = hosts[self._at % len(hosts)]
            try:
                answer = what(self._client(host))
                self.calls += 1
                return answer
            except Exception as error:  # noqa: BLE001 - sorted out by `_passing`
                trouble = self._passing(error, host)  # raises where trying again is no use
            tried += 1
            self._at += 1
            if time.monotonic() >= deadline:
                raise EngineError(
                    f"no node of {', '.join(hosts)} answered in {self.address.patience_s:g} s: {trouble}",
                    hint="see that Qdrant runs there; nothing has to be restarted here when it is back",
                    retryable=True,
                )
            if tried % len(hosts) == 0:  # every node had its turn
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)

    def _client(self, host: str) -> QdrantClient:
        if host not in self._clients:
            from qdrant_client import QdrantClient  # late: slow to import, and an extra

            scheme = "https" if self.address.tls else "http"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about a key without TLS, which was settled above
                self._clients[host] = QdrantClient(
                    url=f"{scheme}://{host}",
                    api_key=self._key,
                    timeout=max(1, round(self.address.timeout_s)),
                    check_compatibility=False,
                )
        return self._clients[host]

    def _passing(self, error: Exception, host: str) -> str:
        """Trouble that may pass, in words; whatever else it is, is raised."""
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        if isinstance(error, (ResponseHandlingException, ResourceExhaustedResponse)):
            return f"{host}: {error}"
        if not isinstance(error, UnexpectedResponse):
            raise error
        status, said = error.status_code or 0, _said(error)
        if status in TRY_AGAIN:
            return f"{host}: {status} {said}"
        if status in REFUSED:
            raise EngineError(f"{host} refuses the key", hint=f"set {KEY} to a key of this cluster") from None
        if status == 404 and "ollection" in said:
            raise MissingCollectionError(said) from None
        hint = "cut long documents: --chunk-tokens 256" if status == 413 else "see the server's log"
        raise EngineError(f"{host} answered {status}: {said}", hint=hint) from None


def _said(error: Any) -> str:
    return str(error.content.decode(errors="replace") if error.content else error.reason_phrase)[:500]
