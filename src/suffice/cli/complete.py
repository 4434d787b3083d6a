"""`suffice search --complete`: how the evidence was completed, round by round."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from suffice.cli.manners import print_json
from suffice.types import printable


def complete(lib: Any, question: str, gate: Any, *, k: int, retriever: str | None, json: bool, **options: Any) -> None:
    """Search until the gate is content, and show the rounds: the probability, what joined or went, and why it ended."""
    found = lib.complete(question, gate, k=k, retriever=retriever, **options)
    ids = [hit.doc_id for hit in found.hits]
    documents = dict(zip(ids, lib.get(ids)))
    if json:
        print_json(_as_json(question, found, documents))
    else:
        _show(found, documents)


def _as_json(question: str, found: Any, documents: dict[str, Any]) -> dict[str, Any]:
    titles = {doc_id: document.title if document else "" for doc_id, document in documents.items()}
    return {
        "question": question,
        "hits": [{**asdict(hit), "title": titles[hit.doc_id]} for hit in found.hits],
        "verdict": asdict(found.verdict),
        "stopped": {"name": found.stopped.name.lower(), "words": str(found.stopped)},
        "checks": found.checks,
        "rounds": found.rounds(),
    }


def _show(found: Any, documents: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rounds = Table(box=None, pad_edge=False)
    for heading in ("round", "p", "", "held", "what happened"):
        rounds.add_column(heading, overflow="fold")
    for at, step in enumerate(found.trace.steps, start=1):
        p = step.verdict.p_complete
        # Notes hold ids and queries, which come from strangers' texts: as Text they cannot carry markup into the terminal.
        rounds.add_row(str(at), f"{p:.2f}", "█" * round(12 * p), str(len(step.hits)), Text(printable(step.note)))
    console = Console()
    wide = Console(width=None if console.is_terminal else 120)
    wide.print(rounds)
    print(f"\nstopped: {found.stopped}\n\n{found.verdict}\n")
    for rank, hit in enumerate(found.hits, start=1):
        document = documents[hit.doc_id]
        print(f"{rank:2}  {printable((document.title or document.text[:60]) if document else hit.doc_id)}")
