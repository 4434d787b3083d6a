"""Prompts for a language model, and the JSON in its answers.

Prompts are files. Untrusted text (documents and text extracted from them) is fenced between two
lines that contain its hash, so no document can forge the end of the fence. Inline text stands
between marks that it cannot contain. Invisible characters are removed.
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

PROMPT_FOLDER = Path(__file__).parent / "prompts"
MAX_INLINE_CHARS = 6_000  # of one text between <<< and >>>
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})


def object_schema(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The JSON schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def render_prompt(name: str, *, fenced: Mapping[str, str], **values: str) -> str:
    """Fill in the prompt of this name; texts in `fenced` are untrusted."""
    shown = {key: strip_invisible(text) for key, text in fenced.items()}
    joined = "\n".join(shown.values()).encode("utf-8", "replace")
    mark = hashlib.sha256(joined).hexdigest()[:12]
    return Template(_template(name)).substitute({**values, **shown, "fence": f"=== {mark} ==="})


@cache
def _template(name: str) -> str:
    lines = read_lines(PROMPT_FOLDER / f"{name}.txt", BadRecords())
    return "\n".join(line.text for line in lines) + "\n"


def strip_invisible(text: str) -> str:
    """Remove control characters, direction marks and tags; blanks become spaces, line ends stay."""
    return "".join(
        char if char == "\n" else " " if char.isspace() else char
        for char in text
        if char.isspace() or unicodedata.category(char) not in _HIDDEN
    )


def quote_inline(text: str, *, longest: int = MAX_INLINE_CHARS) -> str:
    """Prepare untrusted text to go between <<< and >>>: it cannot close them, and is truncated."""
    return strip_invisible(text[:longest]).replace("<<<", "‹‹‹").replace(">>>", "›››").strip()


def extract_json(text: str) -> str | None:
    """The answer if it is JSON, else the first object in it: models add words and code fences."""
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
    """The JSON object in an answer; None if there is none."""
    found = None if answer is None else extract_json(answer)
    value = None if found is None else json.loads(found)
    return value if isinstance(value, dict) else None
