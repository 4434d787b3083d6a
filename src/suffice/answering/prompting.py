"""What a language model is told, and what is made of its answer. Both sides are held short.

Prompts are files of their own. Strangers' text (documents, and what was read out of them) is fenced: here between two lines
that hold a hash of it, so that no document can write its own end; inside a line between marks that it cannot hold. What a
reader cannot see is taken out of it.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from suffice.storage import BadRecords, read_lines

__all__ = ["extract_json", "parse_json_object", "quote_inline", "render_prompt", "strip_invisible"]

PROMPT_FOLDER = Path(__file__).parent / "prompts"
MAX_INLINE_CHARS = 6_000  # characters of one text between <<< and >>>
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})


def render_prompt(name: str, *, fenced: Mapping[str, str], **values: str) -> str:
    """The prompt of this name, filled in. What is `fenced` comes from strangers."""
    shown = {key: strip_invisible(text) for key, text in fenced.items()}
    mark = hashlib.sha256("\n".join(shown.values()).encode("utf-8", "replace")).hexdigest()[:12]
    return Template(_template(name)).substitute({**values, **shown, "fence": f"=== {mark} ==="})


@cache
def _template(name: str) -> str:
    return (
        "\n".join(line.text for line in read_lines(PROMPT_FOLDER / f"{name}.txt", BadRecords()))
        + "\n"
    )


def strip_invisible(text: str) -> str:
    """A text without what cannot be seen: control marks, direction marks, tags. Blanks of any kind are one; line ends stay."""
    return "".join(
        char if char == "\n" else " " if char.isspace() else char
        for char in text
        if char.isspace() or unicodedata.category(char) not in _HIDDEN
    )


def quote_inline(text: str, *, longest: int = MAX_INLINE_CHARS) -> str:
    """A stranger's text, fit to stand between <<< and >>> inside a line: it cannot close that fence, and has an end."""
    return strip_invisible(text[:longest]).replace("<<<", "‹‹‹").replace(">>>", "›››").strip()


def extract_json(text: str) -> str | None:
    """The answer where it is JSON; else the object in it: a model likes to put words and fences around one."""
    try:
        json.loads(text)
        return text
    except (ValueError, RecursionError):
        start = text.find("{")
    try:
        _, end = json.JSONDecoder().raw_decode(text, start) if start >= 0 else (None, 0)
    except (ValueError, RecursionError):
        return None
    return text[start:end] or None


def parse_json_object(answer: str | None) -> Mapping[str, Any] | None:
    """The JSON object in an answer; None where there is none."""
    found = None if answer is None else extract_json(answer)
    said = None if found is None else json.loads(found)
    return said if isinstance(said, dict) else None
