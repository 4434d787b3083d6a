"""The page at `/` and its files.

They are few and small, so they are read once at startup: no client path ever reaches the disk.
"""

from __future__ import annotations

from importlib import resources

from fastapi.responses import Response
from fastapi.routing import APIRoute

from suffice.service.responses import ApiError

MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# Nothing from other hosts, nothing inline, no frames: the text of a document stays text.
SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}


def page_routes() -> list[APIRoute]:
    """The page and its files. They contain no data, so they need no key; what they fetch does."""
    files = {
        file.name: (file.read_bytes(), MEDIA_TYPES[file.name.rpartition(".")[2]])
        for file in resources.files("suffice.service").joinpath("page").iterdir()
        if file.name.rpartition(".")[2] in MEDIA_TYPES
    }

    async def page_file(name: str = "index.html") -> Response:
        if name not in files:
            raise ApiError(404, "not_found", "the page has no such file")
        content, media_type = files[name]
        return Response(content, media_type=media_type, headers=SECURITY_HEADERS)

    async def index() -> Response:
        return await page_file()

    return [
        APIRoute("/", index, include_in_schema=False, response_model=None),
        APIRoute("/page/{name}", page_file, include_in_schema=False, response_model=None),
    ]
