"""What a language model is told, and what is made of its answer. Both sides are held short.

Prompts are the files of `prompts/`. Strangers' text (documents, and what was read out of them) stands between two fence lines
that hold a hash of it, so that no document can write its own end; marks that a reader cannot see are taken out.
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

from suffice.files import BadRecords, read_lines

__all__ = ["json_object", "prompt", "visible"]

FOLDER = Path(__file__).parent / "prompts"
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})


def prompt(name: str, *, fenced: Mapping[str, str], **values: str) -> str:
    """The prompt of this name, filled in. What is `fenced` comes from strangers."""
    shown = {key: visible(text) for key, text in fenced.items()}
    mark = hashlib.sha256("\n".join(shown.values()).encode("utf-8", "replace")).hexdigest()[:12]
    return Template(_text(name)).substitute({**values, **shown, "fence": f"=== {mark} ==="})


@cache
def _text(name: str) -> str:
    return "\n".join(line.text for line in read_lines(FOLDER / f"{name}.txt", BadRecords())) + "\n"


def visible(text: str) -> str:
    """A text without what cannot be seen: control marks, direction marks, tags; line ends stay."""
    return "".join(char for char in text if char == "\n" or unicodedata.category(char) not in _HIDDEN)


def json_object(answer: str | None) -> Mapping[str, Any] | None:
    """The first JSON object in an answer; a model likes to put words and fences around it. None where there is none."""
    if answer is None or (start := answer.find("{")) < 0:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(answer, start)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
