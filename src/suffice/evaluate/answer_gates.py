"""Gates that may judge: no question is judged by a gate that was fitted on it.

"fitted" makes two, each of one half of the questions, and each judges the other half. It learns from sets as they are held on
the way (`evaluate.expansion.moments`) and from what the loop holds in the end when nobody stops it; its threshold comes from
its own half. Fitting takes a minute or two, so a `cache` folder keeps the gates, each under the hash of what it was made from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.assess.looking import NO_LENSES
from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Example
from suffice.errors import InputError
from suffice.evaluate.answer_systems import SYSTEMS, Bench, Content, drawn
from suffice.evaluate.expansion import BRIDGE, lesson, moments
from suffice.evaluate.gate import FITTED, Choice, fitting, remembering, seen_by
from suffice.evaluate.gate_at import open_gate
from suffice.ports import Progress
from suffice.types import Hit

if TYPE_CHECKING:
    from suffice.assess.gate import Gate

__all__ = ["LESSONS", "gates_for"]

LESSONS = 300  # questions of a half that a gate learns from, at most
_AT_ONCE = 64
OTHER = {"even": "odd", "odd": "even"}


def gates_for(
    dataset: Dataset,
    examples: Sequence[Example],
    bench: Bench,
    *,
    gate: str = FITTED,
    grade: str = "fast",
    seed: int = 42,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> tuple[list[Gate], int]:
    """Who judges each question, and how many of them their judge was fitted on (none, if "fitted")."""
    texts = [one.question.text for one in examples]
    if gate != FITTED:
        opened = open_gate(gate, grade)
        return [opened] * len(examples), seen_by(opened, texts)
    if any(one.parent for one in bench.shelves.store.documents()):
        raise InputError("a gate is fitted on whole documents", hint="leave chunks out, or name a gate: --gate default")
    half_of = {one.question.text: half for half in OTHER for one in drawn(dataset, seed=seed, part=half)}
    made: dict[str, Gate] = {}
    for half in dict.fromkeys(half_of[text] for text in texts):
        lessons = drawn(dataset, seed=seed, part=OTHER[half], limit=LESSONS)
        made[half] = _kept(lessons, bench, seed, cache, progress)
    return [made[half_of[text]] for text in texts], sum(seen_by(made[half_of[text]], [text]) for text in texts)


def _kept(examples: Sequence[Example], bench: Bench, seed: int, cache: Path | None, progress: Progress | None) -> Gate:
    """The gate of these questions: from the folder, or made and kept there."""
    if cache is None:
        return _made(examples, bench, seed, progress)
    told = hashlib.sha256(json.dumps([asdict(bench.budget), bench.shelves.usual, seed]).encode())
    for text in (*(one.question.text for one in examples), *(one.text for one in bench.shelves.store.documents())):
        told.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    folder = Path(cache) / f"gate-{told.hexdigest()[:16]}"
    if not folder.is_dir():
        _made(examples, bench, seed, progress).save(folder)
    return open_gate(str(folder))


def _lists(texts: Sequence[str], bench: Bench, progress: Progress | None) -> list[tuple[Hit, ...]]:
    """Lists along links, as the loop holds documents: the bridge's, with the weights set by hand, which saw no question.

    One look alone hardly ever holds all of four documents, and a gate that never saw that would not believe it.
    """
    searcher, found = bench.shelves.retriever(BRIDGE), list[tuple[Hit, ...]]()
    for start in range(0, len(texts), _AT_ONCE):
        found += searcher.search(texts[start : start + _AT_ONCE], k=bench.budget.documents)
        if progress is not None:
            progress("gathering lists", len(found), len(texts))
    return found


def _made(examples: Sequence[Example], bench: Bench, seed: int, progress: Progress | None) -> Gate:
    known = [one for one in examples if one.gold.doc_ids]
    texts = [one.question.text for one in known]
    documents = {one.doc_id: one for one in bench.shelves.store.documents()}
    lessons = moments(known, _lists(texts, bench, progress), documents, seed=seed)
    free = Bench(bench.shelves, budget=bench.budget)  # by rules, whoever reads later: what is held hardly differs
    for done, one in enumerate(known, start=1):
        held = SYSTEMS["always"](free, one.question.text, Content()).held or ()
        lessons.append(lesson(one, held, documents))
        if progress is not None:
            progress("gathering lessons", done, len(known))
    fit = fitting(Choice(), NO_LENSES, seed, k=bench.budget.documents)
    return remembering(fit(lessons), texts)
