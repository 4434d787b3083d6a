"""Batches of checks: JSON lines in, JSON lines out, in the same order, however many there are.

Verdicts go out while questions still come in. A client that sends everything before it reads anything must not block for ever
(each side would wait for the other to take something), so what nobody reads yet lies in a `Spool`: a little in memory, the
rest in a file without a name.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from suffice.errors import InputError
from suffice.service.checking import TOGETHER, Asked
from suffice.service.intake import LINES, expect_lines, pieces, service_of
from suffice.service.replies import Refusal, problem, refusal_of, visit_of, wrong_values
from suffice.service.shapes import BatchLine
from suffice.types import Verdict

__all__ = ["Batch", "Spool", "Streamed", "in_groups"]

IN_MEMORY = 1024 * 1024
READ_AT_ONCE = 64 * 1024
_LINE = TypeAdapter(BatchLine)


class Streamed(Response):
    """An answer sent piece by piece. Starlette's own would read the request's body to see whether the visitor has gone."""

    def __init__(self, body: AsyncIterator[bytes], media_type: str, *, stall_seconds: float, ended: Callable[[], None]) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._pieces, self._stall_seconds, self._ended = body, stall_seconds, ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self._pieces:
                async with asyncio.timeout(self._stall_seconds):  # a visitor who does not read holds nothing for ever
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._ended()


class Spool:
    """Bytes on their way from one who writes to one who reads, in order; the writer never waits."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by the reader
        self._written = self._read = 0
        self._ended = False
        self._news = asyncio.Event()

    def write(self, piece: bytes) -> None:
        self._file.seek(self._written)
        self._file.write(piece)
        self._written += len(piece)
        self._news.set()

    def end(self) -> None:
        self._ended = True
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while True:
                while self._read < self._written:
                    self._file.seek(self._read)
                    piece = self._file.read(READ_AT_ONCE)
                    self._read += len(piece)
                    if self._read == self._written:  # nothing is left in it: it starts again, and stays small
                        self._file.seek(0)
                        self._file.truncate()
                        self._read = self._written = 0
                    yield piece
                if self._ended:
                    return
                self._news.clear()
                await self._news.wait()
        finally:
            self._file.close()


class Batch:
    """One batch on its way through the gate."""

    def __init__(self, request: Request, *, gate: str, explain: bool, rounds_left: int) -> None:
        self._request, self._service = request, service_of(request)
        self._how: dict[str, Any] = {"gate": gate, "explain": explain, "rounds_left": rounds_left}
        self._limits = self._service.settings.limits
        self._line = 0

    def answer(self) -> Streamed:
        expect_lines(self._request)
        give_back = self._service.take_place()
        return Streamed(self._judged(), LINES, stall_seconds=self._limits.body_seconds, ended=give_back)

    async def _judged(self) -> AsyncIterator[bytes]:
        self._spool = Spool()
        work = asyncio.create_task(self._work())
        try:
            async for piece in self._spool:
                yield piece
        finally:
            work.cancel()
            visit_of(self._request).notes["lines"] = self._line

    async def _work(self) -> None:
        """Read, judge and write, a few lines at a time; what ends a batch early is its last line."""
        try:
            async for lines in in_groups(pieces(self._request), self._limits.body_bytes):
                room = max(self._limits.batch_lines - self._line, 0)
                for start in range(0, min(len(lines), room), TOGETHER):
                    await self._judge(lines[start : min(start + TOGETHER, room)])
                if len(lines) > room:
                    raise Refusal(413, "too_large", f"the batch has more than {self._limits.batch_lines:,} lines")
        except Refusal as refused:
            self._write(self._line + 1, None, refused)
        except Exception as error:
            self._write(self._line + 1, None, refusal_of(error))
            raise
        finally:
            self._spool.end()

    async def _judge(self, lines: list[bytes | None]) -> None:
        asked: list[tuple[int, Any, Asked | Refusal]] = []
        for line in lines:
            self._line += 1
            if line is None or line.strip():
                asked.append((self._line, *self._read(line)))
        sound = [await self._whole(one) for _, _, one in asked if isinstance(one, Asked)]
        verdicts: Iterator[Verdict | InputError] = iter(await self._service.checks.verdicts(sound))
        for number, question_id, one in asked:
            self._write(number, question_id, next(verdicts) if isinstance(one, Asked) else one)

    def _read(self, line: bytes | None) -> tuple[Any, Asked | Refusal]:
        if line is None:
            return None, Refusal(413, "too_large", f"the line is longer than {self._limits.body_bytes:,} bytes")
        try:
            form = _LINE.validate_json(line)
        except ValidationError as error:
            return None, wrong_values(error.errors(include_url=False, include_input=False, include_context=False))
        return form.question_id, Asked(question=form.question, hits=form.hits, others=form.others, **self._how)

    async def _whole(self, asked: Asked) -> Asked:
        hits, *others = await self._service.with_documents([asked.hits, *asked.others])
        return replace(asked, hits=hits, others=others)

    def _write(self, line: int, question_id: Any, told: Verdict | InputError | Refusal) -> None:
        wrong = problem(refusal_of(told)) if isinstance(told, Exception) else None
        data = None if isinstance(told, Exception) else told.as_json()
        record = {"line": line, "question_id": question_id, "ok": wrong is None, "data": data, "error": wrong}
        self._spool.write(to_json(record, inf_nan_mode="null") + b"\n")


async def in_groups(body: AsyncIterator[bytes], most: int) -> AsyncIterator[list[bytes | None]]:
    """The lines that each piece of the body completes. None stands for a line that is too long, of which nothing is kept."""
    rest, lost = b"", False
    async for piece in body:
        *lines, rest = (rest + piece).split(b"\n")
        whole: list[bytes | None] = [None if len(line) > most else line for line in lines]
        if lost and whole:
            whole[0], lost = None, False
        if whole:
            yield whole
        if len(rest) > most:
            rest, lost = b"", True
    if rest or lost:
        yield [None if lost else rest]
