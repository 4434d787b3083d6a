"""What stands in several hits supports the question once: a sentence that one hit has said is cut from those behind it.

Whoever can write a document can write the same into many. Hits that share a text seem to speak of the same things, which the
gate takes for evidence that hangs together; so a wary gate reads such a text where it stands first, and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import replace

from suffice.assess.incoming import Taken
from suffice.assess.pages import MAX_CHARS

__all__ = ["said_once"]

SHORTEST = 20  # characters of a sentence that nobody says twice by chance
_END = re.compile(r"[.!?\n](?:\s+|$)")


def said_once(taken: Taken) -> Taken:
    """The list, each hit without what a hit before it has said."""
    documents = dict(taken.evidence.documents)
    known: set[str] = set()
    for hit in taken.evidence.hits:
        document = documents[hit.doc_id]
        said = _END.split(document.text[:MAX_CHARS])  # what is cut brings nothing into view that would not have been read
        if not known.isdisjoint(said):
            documents[hit.doc_id] = replace(document, text=". ".join([one for one in said if one not in known]).strip())
        known.update([one for one in said if len(one) >= SHORTEST])
    return replace(taken, evidence=replace(taken.evidence, documents=documents))
