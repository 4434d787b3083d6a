"""Near copies among the hits count once: a flood of one document, a few words apart, is one document.

What tells is the names, which are few and read anyway; only hits that share most of them are compared word by word. The first
of them stays, and stands for the others as it does for exact repetitions.
"""

from __future__ import annotations

from dataclasses import replace

from suffice.assess.incoming import Taken
from suffice.assess.pages import Page, bylined, page

__all__ = ["without_copies"]

NAMES, WORDS = 0.6, 0.8  # shared by near copies, of all that either has


def without_copies(taken: Taken) -> Taken:
    """The same where no hit is a near copy of an earlier one."""
    documents, kept, folded = taken.evidence.documents, [], dict(taken.folded)
    pages: dict[str, Page] = {}
    for hit in taken.evidence.hits:
        document = documents[hit.doc_id]
        own = page(document.title, bylined(document))
        twin = next((name for name, other in pages.items() if _are_copies(own, other)), None) if own.has_text else None
        if twin is None:
            kept.append(hit)
            pages[hit.doc_id] = own
        else:
            folded[twin] = (*folded.get(twin, ()), hit.doc_id, *folded.pop(hit.doc_id, ()))
    if len(kept) == len(taken.evidence.hits):
        return taken
    return Taken(replace(taken.evidence, hits=tuple(kept)), folded)


def _are_copies(one: Page, other: Page) -> bool:
    most = max(len(one.names), len(other.names))
    if len(one.names & other.names) < NAMES * most or (not most and one.flat[:40] != other.flat[:40]):
        return False
    words, others = set(one.flat.split()), set(other.flat.split())
    return len(words & others) >= WORDS * len(words | others)
