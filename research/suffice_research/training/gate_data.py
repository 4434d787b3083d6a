"""Training and evaluation data of the shipped gates: lists of hits by data set.

Questions and passages come from `cases`, and from data sets that the reader has not seen at all:
FRAMES, our controlled collection, and samples of HotpotQA and 2WikiMultihopQA with their own
corpora. A gate with a reader is trained only on questions that the reader has not seen. For each
question, some lists are retrieved from all passages of its data set; others are drawn, so that easy
and hard questions are equally often complete, in lists of one to ten hits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Gold, GoldQuestion, draw_key
from suffice.errors import InputError
from suffice.evaluation.searching import RetrievedDataset, RetrievedQuestion, retrieve_dataset
from suffice.lexicon import FUNCTION_WORDS
from suffice.retrieval.corpus import searchable_text
from suffice.text import sentences, tokens
from suffice.types import Document, Evidence, Hit, Question
from suffice_research.training.cases import (
    EVERYDAY,
    LEARN,
    STACK,
    TEST,
    UNSEEN,
    Case,
    Passage,
    load_cases,
)
from suffice_research.training.sources import SEED, SOURCES, ProgressLog, open_source

__all__ = [
    "KS",
    "LICENCES",
    "GateData",
    "draw_lists",
    "drawn_list",
    "join_hits",
    "one_sentence_each",
    "vary_hits",
    "with_file_names",
    "without_titles",
]

KS = (3, 5, 10)
RETRIEVERS = ("bm25", "dense", "hybrid")
MOST = 1000  # questions searched per data set
DRAWN_HITS = 10  # per drawn list, at most
LOOK_ALIKES = 12  # to fill up a drawn list
WITHOUT_SCORES, WITHOUT_TITLES = 4, 4  # one in so many lists, as some retrievers return them
JOINED_HITS, JOINED_LENGTH = 3, 1500  # passages and characters of a larger chunk, at most
FILE_NAME = "doc_{:04}.txt"
CHAINS_WITHOUT_TITLES = 10  # the same for the fast gate
OTHERS = {one.name: one for one in SOURCES if one.name not in ("musique", "multihop_rag")}
REPLACED = ("hotpotqa", "2wiki")  # by these samples
LICENCES = {
    "hotpotqa": "CC BY-SA 4.0", "2wikimultihopqa": "Apache-2.0", "musique": "CC BY 4.0",
    "multihop_rag": "ODC-BY", "squad2": "CC BY-SA 4.0", "policyqa": "MIT", "covidqa": "Apache-2.0",
    "entailmentbank": "Apache-2.0", "strategyqa": "MIT", "hover": "MIT", "tatqa": "CC BY 4.0",
    "everyday": "ours, Apache-2.0", "frames": "Apache-2.0", "controlled": "made here from a seed",
}  # fmt: skip


class GateData:
    """The data sets in a folder, searched on demand."""

    def __init__(self, data: Path, *, only: Collection[str] = (), say: ProgressLog) -> None:
        self._data, self._say = data, say
        self._cases: dict[str, list[Case]] = {}
        for case in _load(data):
            if case.source not in REPLACED:
                self._cases.setdefault(case.source.split("/")[0], []).append(case)
        known = [*self._cases, *OTHERS]
        if unknown := [name for name in only if name not in known]:
            raise InputError(
                f"no data set is named {', '.join(map(repr, unknown))}",
                hint=f"known: {', '.join(known)}",
            )
        self.names = [name for name in known if not only or name in only]

    def training(
        self, name: str, parts: Collection[str], *, questions: int, lists: int, seed: int = SEED
    ) -> list[RetrievedQuestion]:
        """Some questions, each with some retrieved lists, as many drawn ones, and one of single
        sentences.

        The choice depends on the seed and the text of the question.
        """
        if name in OTHERS:
            source = OTHERS[name]
            found = retrieve_dataset(
                open_source(source, self._data), source.retrievers, KS, sample=MOST, seed=seed
            )
            self._say(f"searched {name}")
            most = max(1, round(questions * source.share))
            kept = _keep(found, parts, seed)
            return draw_lists(kept, questions=most, lists=2 * lists, seed=seed)
        chosen = _draw(self._of(name, parts), questions, seed)
        if not chosen:
            return []
        found = self._search(name, chosen, RETRIEVERS, KS)
        made = draw_lists(found, lists=lists, seed=seed)
        near = found.questions("bm25", max(KS))
        for case, one in zip(chosen, near, strict=True):
            for number in range(lists):
                key = draw_key(seed, f"drawn\0{number}\0{case.question}")
                drawn = drawn_list(case, one, np.random.default_rng(list(key)))
                made.append(vary_hits(drawn, key[8:]))
            if short := one_sentence_each(case, one):
                key = draw_key(seed, f"short\0{case.question}")
                made.append(drawn_list(*short, np.random.default_rng(list(key))))
        return made

    def chains(
        self, *, parts: Collection[str] = (), questions: int, seed: int = SEED
    ) -> dict[str, list[RetrievedQuestion]]:
        """The fast gate's training data, by data set: lists retrieved for multi-hop questions, from
        all parts by default. It counts words and links, and other kinds of lists make it worse on
        these (decision 9).
        """
        part_of = {one.question: one.part for cases in self._cases.values() for one in cases}
        found = {}
        for source in SOURCES:
            some = retrieve_dataset(
                open_source(source, self._data), source.retrievers, KS, sample=questions, seed=seed
            )
            self._say(f"searched {source.name}")
            most = max(1, round(questions * source.share))
            lists = draw_lists(some, questions=most, seed=seed, titles=CHAINS_WITHOUT_TITLES)
            found[source.name] = [
                one
                for one in lists
                if not parts or part_of.get(one.question.text, _part(one, seed)) in parts
            ]
        return found

    def judged(
        self, name: str, parts: Collection[str], *, questions: int, kind: str = "", seed: int = SEED
    ) -> list[RetrievedQuestion]:
        """BM25's hits, ten per question; FRAMES by its titles. `kind` "drawn": drawn lists of the
        same questions. If questions do not say whom they are about, BM25's hits are right for
        someone else.

        For a data set that the reader has not seen, only TEST is also unseen by the gate.
        """
        if name in OTHERS:
            source = OTHERS[name]
            found = retrieve_dataset(
                open_source(source, self._data), (source.judged_by,), KS[-1:], sample=MOST,
                seed=seed,
            )  # fmt: skip
            every = found.questions(source.judged_by, KS[-1])
            return [one for one in every if _part(one, seed) in parts][:questions]
        return self._kinds(name, self._of(name, parts), questions, seed)[kind]

    def unseen(
        self, *, questions: int, seed: int = SEED
    ) -> Iterator[tuple[str, dict[str, list[RetrievedQuestion]]]]:
        """Each domain that nothing was trained on, with its lists by kind: from BM25 (no name),
        drawn, and drawn from single sentences.

        Our own everyday domains are searched among all everyday passages.
        """
        for name, cases in self._cases.items():
            if name not in self.names:
                continue
            for source in dict.fromkeys(one.source for one in cases if one.part == UNSEEN):
                some = [one for one in cases if one.source == source]
                yield source, self._kinds(name, some, questions, seed)

    def _of(self, name: str, parts: Collection[str]) -> list[Case]:
        return [one for one in self._cases[name] if one.part in parts]

    def _kinds(
        self, name: str, cases: Sequence[Case], questions: int, seed: int
    ) -> dict[str, list[RetrievedQuestion]]:
        """Some of these cases, with their lists by kind."""
        chosen = _draw(cases, questions, seed)
        found = self._search(name, chosen, ("bm25",), KS[-1:]).questions("bm25", KS[-1])
        drawn, short = [], []
        for case, one in zip(chosen, found, strict=True):
            key = draw_key(seed, f"unseen\0{case.question}")
            drawn.append(drawn_list(case, one, np.random.default_rng(list(key))))
            if cut := one_sentence_each(case, one):
                short.append(drawn_list(*cut, np.random.default_rng(list(key))))
        return {"": list(found), "drawn": drawn, "single sentences": short}

    def _search(
        self, name: str, chosen: Sequence[Case], retrievers: Sequence[str], ks: Sequence[int]
    ) -> RetrievedDataset:
        found = retrieve_dataset(_dataset(name, self._cases[name], chosen), retrievers, ks)
        self._say(f"searched {name}")
        return found


def _load(data: Path) -> list[Case]:
    try:
        return load_cases(data, [EVERYDAY])
    except FileNotFoundError as error:
        raise InputError(
            f"{error.filename} does not exist",
            hint="--data is the folder that holds hotpotqa/, musique/, frames/, ...",
        ) from error


def _part(one: RetrievedQuestion, seed: int) -> str:
    """The part of a question whose data set has no parts: a third each."""
    return (TEST, LEARN, STACK)[draw_key(seed, f"judged\0{one.question.text}")[0] % 3]


def _keep(found: RetrievedDataset, parts: Collection[str], seed: int) -> RetrievedDataset:
    """The questions of these parts."""
    first = next(iter(found.by.values()))
    rows = [at for at, one in enumerate(first) if _part(one, seed) in parts]
    return replace(found, by={key: tuple(of[at] for at in rows) for key, of in found.by.items()})


def _draw(cases: Sequence[Case], most: int, seed: int) -> list[Case]:
    """Some cases, each question once."""
    unique = list({case.question: case for case in cases}.values())
    return sorted(unique, key=lambda case: draw_key(seed, case.question))[:most]


def _dataset(name: str, cases: Sequence[Case], chosen: Sequence[Case]) -> Dataset:
    """All passages of the data set, and some of its questions."""
    numbers = _numbers(cases)
    documents = [_document(passage, number) for passage, number in numbers.items()]
    questions = []
    for at, case in enumerate(chosen):
        needed = frozenset(f"p{numbers[one]}" for one in case.needed)
        gold = Gold(f"q{at}", needed, hops=len(needed))
        questions.append(GoldQuestion(Question(f"q{at}", case.question), gold))
    return Dataset(name, documents=lambda _: documents, questions=lambda _: questions)


def _numbers(cases: Sequence[Case]) -> dict[Passage, int]:
    passages = dict.fromkeys(one for case in cases for one in (*case.needed, *case.distractors))
    return {one: number for number, one in enumerate(passages)}


def _document(passage: Passage, number: int) -> Document:
    return Document(f"p{number}", title=passage.title, text=passage.text)


def draw_lists(
    found: RetrievedDataset,
    *,
    questions: int | None = None,
    lists: int = 2,
    seed: int = SEED,
    titles: int = WITHOUT_TITLES,
) -> list[RetrievedQuestion]:
    """Some questions, each with some of its lists.

    The choice depends on the seed and the text of the question.
    """
    keys = sorted(found.by)
    texts = [one.question.text for one in found.by[keys[0]]]
    chosen = sorted(range(len(texts)), key=lambda at: draw_key(seed, texts[at]))[:questions]
    drawn = []
    for at in sorted(chosen):
        order = sorted(keys, key=lambda key: draw_key(seed, f"{key}\0{texts[at]}"))
        drawn += [
            vary_hits(found.by[key][at], draw_key(seed, f"handed\0{key}\0{texts[at]}"), titles)
            for key in order[:lists]
        ]
    return drawn


def drawn_list(
    case: Case, found: RetrievedQuestion, draw: np.random.Generator
) -> RetrievedQuestion:
    """A list that is complete half of the time, whatever retrieval finds; without scores."""
    documents = dict(found.evidence.documents)
    ids = {(one.title, one.text): name for name, one in documents.items()}

    def name_of(passage: Passage) -> str:
        name = ids.setdefault((passage.title, passage.text), f"x{len(ids)}")
        documents.setdefault(name, Document(name, title=passage.title, text=passage.text))
        return name

    gold = [name_of(one) for one in case.needed]
    hits = [hit.doc_id for hit in found.evidence.hits]
    others = dict.fromkeys([*map(name_of, case.distractors[:LOOK_ALIKES]), *hits])
    rest = [name for name in others if name not in gold]
    size = int(draw.integers(max(1, len(gold)), max(DRAWN_HITS, len(gold)) + 1))  # before the label
    complete = bool(gold) and bool(draw.random() < 0.5)
    kept = len(gold) if complete else int(draw.integers(0, max(1, len(gold))))
    chosen = [gold[at] for at in draw.permutation(len(gold))[:kept].tolist()]
    some = draw.permutation(min(len(rest), LOOK_ALIKES)).tolist()
    chosen += [rest[at] for at in some[: max(0, size - kept)]]
    order = [chosen[at] for at in draw.permutation(len(chosen)).tolist()]
    evidence = Evidence(found.question, tuple(Hit(name, None) for name in order), documents)
    return replace(
        found, evidence=evidence, deeper=evidence.hits,
        gold=replace(found.gold, doc_ids=frozenset(gold)),
        gold_titles={name: documents[name].title for name in gold if documents[name].title},
    )  # fmt: skip


def one_sentence_each(
    case: Case, found: RetrievedQuestion
) -> tuple[Case, RetrievedQuestion] | None:
    """The same list with one sentence from each passage and no titles, like short notes.

    From a needed passage it is the sentence with the answer, from any other the one that shares the
    most words with the question. None if a needed passage has no such sentence, or the question no
    words.
    """
    asked = set(tokens(case.question)) - FUNCTION_WORDS

    def shared(sentence: str) -> int:
        return len(asked.intersection(tokens(sentence)))

    def short(text: str) -> str:
        return max(sentences(text), key=shared, default=text)

    marks = {one.passage: one for one in (*case.evidence, *case.answers)}
    needed = []
    for passage in case.needed:
        mark = marks.get(passage)
        quoted = mark and passage.text[mark.start : mark.end]
        held = [one for one in sentences(passage.text) if quoted and quoted in one and shared(one)]
        if not held:
            return None
        needed.append(Passage("", max(held, key=shared)))
    given = set(case.needed)
    documents = {
        name: replace(one, title="", text=short(one.text))
        for name, one in found.evidence.documents.items()
        if Passage(one.title, one.text) not in given
    }
    hits = tuple(hit for hit in found.evidence.hits if hit.doc_id in documents)
    others = tuple(Passage("", short(one.text)) for one in case.distractors)
    evidence = Evidence(found.question, hits, documents)
    return (
        replace(case, needed=tuple(needed), distractors=others),
        replace(found, evidence=evidence),
    )


def vary_hits(
    case: RetrievedQuestion, key: bytes, titles: int = WITHOUT_TITLES
) -> RetrievedQuestion:
    """The case unchanged, or as from a retriever without scores, or (one in `titles`) from a store
    that drops titles or puts them into the text.
    """
    evidence, deeper = case.evidence, case.deeper
    if key[0] % WITHOUT_SCORES == 0:
        evidence = replace(evidence, hits=tuple(replace(hit, score=None) for hit in evidence.hits))
        deeper = tuple(replace(hit, score=None) for hit in deeper)
    if key[1] % titles == 0:
        inside = key[2] % 2 == 0 or titles == CHAINS_WITHOUT_TITLES
        documents = {
            name: replace(one, title="", text=searchable_text(one) if inside else one.text)
            for name, one in evidence.documents.items()
        }
        evidence = replace(evidence, documents=documents)
    return replace(case, evidence=evidence, deeper=deeper)


def join_hits(case: RetrievedQuestion) -> RetrievedQuestion:
    """The same passages in larger chunks: neighbouring hits joined, without a title.

    The needed documents are then chunks: a question about two documents may need only one hit.
    """
    documents = dict(case.evidence.documents)
    chunks: list[list[Hit]] = []
    room = 0
    for hit in case.evidence.hits:
        length = len(searchable_text(documents[hit.doc_id]))
        if not chunks or len(chunks[-1]) == JOINED_HITS or length > room:
            chunks.append([])
            room = JOINED_LENGTH
        chunks[-1].append(hit)
        room -= length
    name_of: dict[str, str] = {}
    hits: list[Hit] = []
    for members in chunks:
        first = members[0]  # hits are ranked: the first has the best score
        if len(members) > 1:
            name = "+".join(hit.doc_id for hit in members)
            texts = [searchable_text(documents[hit.doc_id]) for hit in members]
            documents[name] = Document(name, text=" ".join(texts))
            name_of |= {hit.doc_id: name for hit in members}
            first = replace(first, doc_id=name)
        hits.append(first)
    return replace(
        case,
        evidence=replace(case.evidence, hits=tuple(hits), documents=documents),
        deeper=tuple(hits),
        gold=replace(
            case.gold, doc_ids=frozenset(name_of.get(one, one) for one in case.gold.doc_ids)
        ),
    )


def with_file_names(case: RetrievedQuestion) -> RetrievedQuestion:
    """The same list with file names as titles; the titles move into the texts."""
    documents = {
        name: replace(one, title=FILE_NAME.format(at), text=searchable_text(one))
        for at, (name, one) in enumerate(case.evidence.documents.items(), start=400)
    }
    return replace(case, evidence=replace(case.evidence, documents=documents))


def without_titles(cases: Sequence[RetrievedQuestion]) -> list[RetrievedQuestion]:
    """The same lists from a store without titles."""
    return [
        replace(
            case,
            evidence=replace(
                case.evidence,
                documents={
                    name: replace(one, title="") for name, one in case.evidence.documents.items()
                },
            ),
        )
        for case in cases
    ]
