"""Chunks: long documents cut into overlapping pieces that are retrieved on their own and know their parent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from suffice.errors import InputError
from suffice.text import CJK
from suffice.types import Document

__all__ = ["chunked"]

# What counts towards the size of a chunk: a word, a character of a script without spaces, a mark. The limit keeps text without
# any space from being one endless word.
_PIECE = re.compile(rf"[{CJK}]|[^\W{CJK}]{{1,64}}|[^\w\s]")


def chunked(documents: Iterable[Document], *, tokens: int = 256, overlap: int = 32) -> Iterator[Document]:
    """Documents of at most `tokens` words and marks; neighbours share `overlap` of them.

    A chunk has the id "parent#0", "parent#1", ..., its parent's title and metadata, and a slice of its text as it stands there.
    A document that is short enough stays as it is; so does one that is a chunk already.
    """
    if tokens < 1 or not 0 <= overlap < tokens:
        raise InputError(
            f"chunks of {tokens} tokens with an overlap of {overlap}", hint="the overlap must be smaller than the chunk"
        )
    for document in documents:
        spans = [match.span() for match in _PIECE.finditer(document.text)]
        if document.parent is not None or len(spans) <= tokens:
            yield document
            continue
        for number, start in enumerate(range(0, len(spans) - overlap, tokens - overlap)):
            end = min(start + tokens, len(spans))
            text = document.text[spans[start][0] : spans[end - 1][1]]
            yield replace(document, doc_id=f"{document.doc_id}#{number}", text=text, parent=document.doc_id)
