"""Streamed batches: lines do not depend on chunks, and unread output waits in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")

from hypothesis import given
from hypothesis import strategies as st

from suffice.service.streaming import SPOOL_MEMORY_BYTES, Spool, split_lines


async def one_by_one(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def lines_of(pieces: list[bytes], most: int) -> list[bytes | None]:
    async def read() -> list[bytes | None]:
        return [line async for lines in split_lines(one_by_one(pieces), most) for line in lines]

    return asyncio.run(read())


@given(st.lists(st.text("ab\n", max_size=12).map(str.encode), max_size=8))
def test_lines_do_not_depend_on_the_chunks(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    expected = whole.split(b"\n")
    assert lines_of(pieces, most=1000) == (expected if expected[-1] else expected[:-1])


@given(st.lists(st.text("ab\n", max_size=12).map(str.encode), max_size=8))
def test_a_line_that_is_too_long_is_dropped_alone(pieces: list[bytes]) -> None:
    expected = b"".join(pieces).split(b"\n")
    result: list[bytes | None] = [None if len(line) > 4 else line for line in expected]
    assert lines_of(pieces, most=4) == (result if expected[-1] else result[:-1])


def test_a_line_without_end_is_not_kept() -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 1000
        yield b"\nshort\n"

    async def read() -> list[bytes | None]:
        return [line async for lines in split_lines(endless(), 5000) for line in lines]

    assert asyncio.run(read()) == [None, b"short"]


def test_unread_output_waits_in_order() -> None:
    async def story() -> tuple[bytes, int]:
        spool = Spool()
        written = b"".join(
            b"%07d\n" % number for number in range(SPOOL_MEMORY_BYTES // 4)
        )  # twice what is held in memory
        for start in range(0, len(written), 10_000):
            spool.write(written[start : start + 10_000])
        got = b""
        async for piece in spool:
            got += piece
            if len(got) == len(written):
                spool.write(b"the end")
                spool.end()
        return got.removeprefix(written), len(got) - len(written)

    assert asyncio.run(story()) == (b"the end", 7)


def test_a_reader_waits_for_the_writer() -> None:
    async def story() -> list[bytes]:
        spool, got = Spool(), []

        async def write() -> None:
            for piece in (b"a", b"b", b"c"):
                spool.write(piece)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            spool.end()

        task = asyncio.create_task(write())
        async for piece in spool:
            got.append(piece)
        await task
        return got

    assert b"".join(asyncio.run(story())) == b"abc"
