"""DESIGN section 4: BM25's top ten, the titles a question names, and the out-links of both hold
nearly all the evidence.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suffice.retrieval.corpus import Corpus
from suffice.retrieval.links import TitleIndex, mention_links, named_titles
from suffice.retrieval.memory import Bm25
from suffice.retrieval.ranking import top_k
from suffice.types import Document


def passages(path: Path) -> list[Document]:
    found = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(found, dict):
        return [
            Document(title, " ".join(sentences), title=title) for title, sentences in found.items()
        ]
    return [Document(str(at), one["text"], title=one["title"]) for at, one in enumerate(found)]


@pytest.mark.parametrize(
    ("name", "top_ten", "with_links"), [("2wikimultihopqa", 0.41, 0.975), ("hotpotqa", 0.73, 0.94)]
)
def test_links_bring_in_the_bridge_documents(
    data_folder: Path, name: str, top_ten: float, with_links: float
) -> None:
    corpus = Corpus(passages(data_folder / name / f"{name}_corpus.json"))
    records = json.loads((data_folder / name / f"{name}.json").read_text(encoding="utf-8"))
    questions = [one["question"] for one in records]
    titles = TitleIndex.of(corpus.documents)
    links = mention_links(corpus.documents, titles)
    best = top_k(Bm25(corpus).scores(questions), 10, above=0.0).positions
    plain, linked, sizes = 0, 0, 0
    for one, row, named in zip(records, best, named_titles(questions, titles)):
        gold = {title for title, _ in one["supporting_facts"]}
        hits = [corpus.ids[at] for at in row if at >= 0]
        starts = dict.fromkeys([*hits, *named])
        reached = [*starts, *(target for targets in links.out(list(starts)) for target in targets)]
        candidates = {corpus.documents[corpus.position[doc_id]].title for doc_id in reached}
        plain += gold <= {corpus.documents[corpus.position[doc_id]].title for doc_id in hits}
        linked += gold <= candidates
        sizes += len(set(reached))
    assert plain / len(records) == pytest.approx(top_ten, abs=0.02)
    assert linked / len(records) >= with_links - 0.01
    assert sizes / len(records) < 20
