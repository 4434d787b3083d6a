"""A new user's first hour, typed as in the docs: a folder of 200 files, five questions, a shadow log,
40 labels on the page, a gate of their own, three frameworks, a report.

With the fast gate, which takes seconds here where the one that ships takes minutes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")
pytest.importorskip("playwright", reason="pip install playwright")
pytest.importorskip("langchain_core", reason="pip install langchain-core")
pytest.importorskip("llama_index.core", reason="pip install llama-index-core")
pytest.importorskip("haystack", reason="pip install haystack-ai")

from haystack import Document as HaystackDocument
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document as LangChainDocument
from langchain_core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from playwright import sync_api as playwright
from tests.commands import suffice as command
from tests.live.test_page import BROWSER
from tests.service import serving

import suffice
from suffice.evaluation import VerdictLog
from suffice.integrations import haystack, langchain, llama_index

pytestmark = (
    pytest.mark.live
    if BROWSER
    else pytest.mark.skip(reason="no chromium here: apt-get install chromium")
)

NAMES = (
    "Alder Birch Cedar Damson Elm Fig Gorse Hazel Ivy Juniper Kale Larch Maple Nettle Oak Pine Quince"
    " Rowan Sorrel Thistle Umber Vetch Willow Yarrow Zinnia Aspen Bramble Clover Dill Endive Fennel"
    " Ginger Heather Iris Jasmine Lilac Mint Nutmeg Olive Poppy"
).split()
SCREEN = 40  # lines
Question = tuple[str, tuple[str, ...]]  # and what the hits must say, to be complete


def write_folder(folder: Path) -> list[Question]:
    """200 files of five kinds about 40 projects, and the questions with what they need."""
    folder.mkdir()
    questions: list[Question] = []
    for at, name in enumerate(NAMES):
        lead, team = f"{NAMES[(at + 7) % 40]} Stone", f"Team {NAMES[(at + 19) % 40]}"
        owner, leader = f"{name} belongs to {team}.", f"{team} is led by {lead}."
        phone, budget = (
            f"{lead} answers extension {300 + at}.",
            f"The budget is {at + 10},000 euros.",
        )
        pages = {
            f"{name}.md": f"# Project {name}\n\n## Owner\n\n{owner}\n\n## Budget\n\n{budget}\n",
            f"{name}-team.txt": f"{leader} It sits on floor {at % 6}.\n",
            f"{name}-lead.html": f"<h1>{lead}</h1><p>{phone}</p><p>At work since {1990 + at}.</p>",
            f"{name}-costs.csv": f"name,price\n{name} licence,{at} euros\n{name} desk,{at + 3} euros\n",
            f"{name}-chat.txt": f"13/03/2024, 14:05 - Ana: {name} is {at % 5} weeks late.\n",
        }
        for file, text in pages.items():
            (folder / file).write_text(text, encoding="utf-8")
        questions += [
            (f"Who leads the team that project {name} belongs to?", (owner, leader)),
            (f"Which extension does {lead} answer?", (phone,)),
        ]
    assert len(list(folder.iterdir())) == 200
    return questions


def typed(*words: object) -> str:
    """What a command prints, all of it on one screen."""
    done = command(*words)
    assert done.exit_code == 0, done.output
    assert len(done.output.splitlines()) <= SCREEN, done.output
    return done.output


class LibraryRetriever(BaseRetriever):
    """What a user has: a retriever of LangChain over their documents."""

    library: Any

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[LangChainDocument]:
        return [
            LangChainDocument(id=hit.doc_id, page_content=hit.text, metadata={"title": hit.title})
            for hit in self.library.search(query, k=2)
        ]


def label_on_the_page(address: str, needs: dict[str, tuple[str, ...]], count: int) -> None:
    """Answer so many questions by key, as a person who reads question and hits."""
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800}, reduced_motion="reduce")
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{address}/#label", wait_until="networkidle")
        shown, counted = page.locator("#label-question"), page.locator("#label-count")
        for done in range(count):
            playwright.expect(shown).to_be_visible(timeout=60_000)
            question, hits = shown.inner_text(), page.locator("#label-item").inner_text()
            page.keyboard.press("y" if all(one in hits for one in needs[question]) else "n")
            playwright.expect(counted).to_contain_text(f"{done + 1} labelled", timeout=60_000)
        browser.close()
    assert complaints == []


@pytest.mark.filterwarnings("ignore::suffice.integrations.common.UnfamiliarWarning")
def test_the_first_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    questions = write_folder(tmp_path / "papers")
    needs = dict(questions)
    built = typed("build", "papers", "--out", "library")
    assert re.search(r"\d{3} added", built)
    again = typed("build", "papers", "--out", "library")
    assert re.search(r"\b0 added", again)
    for question, _ in questions[:5]:
        assert "line" in typed("search", "library", question, "--k", 3)

    with suffice.Library.open(tmp_path / "library") as library:
        retriever = LibraryRetriever(library=library)
        log = VerdictLog(tmp_path / "shadow.jsonl", texts=True)
        gate = suffice.Gate.load(preset="fast")
        watched = langchain.GatedRetriever(retriever=retriever, gate=gate, act=False, log=log)
        for question in needs:
            assert watched.invoke(question) == retriever.invoke(question)

        said = typed("report", "--shadow", "shadow.jsonl")
        assert "80" in said
        typed("report", "--shadow", "shadow.jsonl", "--labels", "ask.jsonl", "--count", 60)
        with serving("--label", "ask.jsonl", "--labels", "labels.jsonl", place=tmp_path) as (
            port,
            _,
        ):
            label_on_the_page(f"http://127.0.0.1:{port}", needs, 40)

        said = typed("adapt", "labels.jsonl", "--gate", "fast", "--out", "gate", "--force")
        assert "40 labels" in said

        own = str(tmp_path / "gate")
        question = questions[0][0]
        hits = library.search(question, k=4)
        acting = langchain.GatedRetriever(
            retriever=retriever, gate=own, log=tmp_path / "verdicts.jsonl"
        )
        acting.invoke(question)
        nodes = [NodeWithScore(node=TextNode(text=hit.text), score=hit.score) for hit in hits]
        llama_index.CompletenessGate(gate=own).postprocess_nodes(nodes, query_str=question)
        documents = [HaystackDocument(content=hit.text, score=hit.score) for hit in hits]
        sent = haystack.CompletenessGate(own).run(query=question, documents=documents)
        assert sent
    typed("report", "--shadow", "verdicts.jsonl", "--out", "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1000
