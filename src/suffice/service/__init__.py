"""The HTTP service: checks, searches and questions for clients in any language.

    app            the ASGI application and its OpenAPI document
    routes         the HTTP routes; add a route here
    schemas        request and response models, as OpenAPI shows them
    requests       keys, media types and body limits of requests
    responses      the envelope of results and errors
    streaming      batches as JSON Lines, asks as server-sent events
    middleware     request ids, concurrency limit, deadline, request log
    state          what a worker holds: gates, library, language model, labels
    batching       run checks that arrive together as one batch
    labelling      what to label next, and the label file
    metrics        Prometheus metrics
    static         the page at `/`
    keys           API keys, stored as hashes
    settings       the settings of a service
    server         workers, sockets and signals

It needs the extra `serve`, except `settings` and `keys`. `create_app` and `Settings` are public.
"""

from typing import Any

from suffice.service.settings import Limits, Settings

__all__ = ["Limits", "Settings", "create_app"]


def __getattr__(name: str) -> Any:
    if name == "create_app":
        from suffice.service.app import create_app

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
