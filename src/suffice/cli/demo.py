"""`suffice demo`: the main job on a small corpus: three questions, three verdicts."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from suffice.cli import options as opt
from suffice.cli.loaders import open_library
from suffice.cli.output import command, print_json
from suffice.errors import InputError

CORPUS = Path(__file__).parent / "demo_corpus.jsonl"
K = 6
# The documents that each question needs; none: no document answers it. The gate never sees this.
QUESTIONS = {
    "Where was the designer of the LakeBuoy born?": ("lakebuoy", "aino-rautio"),
    "Where did the founder of Halden Instruments study?": ("halden-instruments", "ingrid-solberg"),
    "Which university did the director of Nordlinje attend?": (),
}
NEXT = """
next, with your own documents:
  suffice build FOLDER --out library            build a library
  suffice serve --labels labels.jsonl           label checked questions on the page
  suffice adapt labels.jsonl --out gate         adapt the gate to 20 labels or more; with
                                                hundreds, see suffice fit --help
  suffice serve --library library --gate gate   HTTP service with a page on port 8080
  suffice mcp --library library                 MCP server; see docs/howto/guard.md"""


@command
def demo(
    out: Annotated[Path | None, Option(help="Keep the demo library in this folder.")] = None,
    json: opt.Json = False,
) -> None:
    """Ask a small library three questions and show the verdicts."""
    from suffice.datasets import load
    from suffice.gate.gate import Gate
    from suffice.library import Library
    from suffice.storage import MANIFEST

    documents = list(load("jsonl", corpus=CORPUS).documents())
    if out and (out / "library" / MANIFEST).exists():
        with open_library(out / "library") as known:
            mine = {one.doc_id for one in documents}
            if any(one.doc_id not in mine for one in known.documents()):
                message = f"{out / 'library'} is a library with documents of your own"
                raise InputError(message, hint="choose another --out")
    gate = Gate.load()
    with (
        nullcontext(str(out)) if out else tempfile.TemporaryDirectory() as folder,
        Library.build(Path(folder) / "library", documents, encoder=None) as library,
    ):
        if not json:
            print(f"A library of {len(library)} documents of a small company: handbook, manuals,")
            print("notes, chats, people and places. The gate reads a question and its hits.")
        records = [_ask(library, gate, question, json=json) for question in QUESTIONS]
        size = len(library)
    if json:
        print_json({"documents": size, "questions": records})
        return
    if out:
        print(f'\nlibrary: {out / "library"}; ask it: suffice search {out / "library"} "..."')
    print(NEXT)


def _ask(library: Any, gate: Any, question: str, *, json: bool) -> dict[str, Any]:
    """Check the first hits of a question, and if they are not enough, expand them."""
    hits = library.search(question, k=K)
    verdict = gate.check(question, hits)
    record = {"question": question, "hits": [hit.doc_id for hit in hits], **verdict.as_json()}
    if not json:
        print(f"\nQ: {question}")
        _show("first hits", [hit.title for hit in hits], verdict)
        print(f"    in fact: {_truth(question, record['hits'])}")
    if verdict.action != "answer":
        completion = library.complete(question, gate, k=K)
        found = library.get([hit.doc_id for hit in completion.hits])
        record["expanded"] = {
            "hits": [document.doc_id for document in found],
            "rounds": len(completion.rounds()),
            **completion.verdict.as_json(),
        }
        if not json:
            _show("after expanding", [document.title for document in found], completion.verdict)
            print(f"    in fact: {_truth(question, record['expanded']['hits'])}")
    return record


def _show(when: str, titles: list[str], verdict: Any) -> None:
    first, *details = str(verdict).splitlines()
    print(f"  {when}: {', '.join(titles)}\n  {first}")
    for line in details:
        if line.startswith(("  missing:", "  look for:")):
            print("  " + line)


def _truth(question: str, hits: list[str]) -> str:
    """Whether the hits are complete, so that a wrong verdict misleads nobody."""
    needed = QUESTIONS[question]
    if not needed:
        return "no document of the library answers this"
    missing = [name for name in needed if name not in hits]
    return f"incomplete, {', '.join(missing)} is missing" if missing else "complete"
