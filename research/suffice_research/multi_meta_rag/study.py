"""Multi-Meta-RAG reproduced on MultiHop-RAG: does a metadata filter made from the question help,
and does it ever hurt?

Baseline, filter, filter and rerank, by the official metrics and by completeness; with the filters
that the authors published (GPT-3.5) and with ours; the quality of both; and whether filters are
invented for questions that name nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from suffice.answering.span_reader import answer_finder
from suffice.datasets import load
from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError, MissingExtraError, NotReadyError, SufficeError
from suffice.evaluation.report import Section
from suffice.evaluation.result_files import source_commit
from suffice.gate.gate import Gate
from suffice.protocols import LanguageModel, Progress, Reranker, Retriever, component_name
from suffice.registry import ENCODERS, RERANKERS
from suffice.retrieval.builtin import DEFAULT_RERANKER
from suffice.retrieval.corpus import Corpus, chunk_documents, searchable_text
from suffice.retrieval.filters import ModelExtractor, VocabularyExtractor, parse_answer
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.metadata import Vocabulary
from suffice.storage import BadRecords, package_versions, read_json_records, sha256_of
from suffice.types import Document, Extraction, Filter
from suffice_research.answer_systems import questions_at_once
from suffice_research.embedding_cache import CachedEncoder, CachedReranker
from suffice_research.local_model import usable_model
from suffice_research.multi_meta_rag import tables
from suffice_research.multi_meta_rag.answering import (
    CHUNKS_READ,
    INSUFFICIENT,
    CachedSpanReader,
    answer_prompt,
    complete_all,
    score_answers,
)
from suffice_research.multi_meta_rag.fact_recall import FactIndex
from suffice_research.multi_meta_rag.filter_quality import (
    empty_filters,
    filter_quality,
    gold_metadata,
    published_filter,
)
from suffice_research.multi_meta_rag.published import OUTLETS_ELSEWHERE, published_words
from suffice_research.multi_meta_rag.systems import DEPTH, FilterBench, K, Results, SystemOutcome
from suffice_research.papers import with_items
from suffice_research.stage_timer import StageTimer
from suffice_research.study import Study
from suffice_research.training.cases import TEST, part_of

__all__ = [
    "ANSWERED",
    "ENCODER_NAMES",
    "EXTRACTED",
    "MAX_CHARS",
    "SEED",
    "answer_contexts",
    "draw_sample",
    "model_extractor",
    "read_data",
    "study",
]

SEED = 42
ENCODER_NAMES = ("wordllama", "bge-small-en-v1.5")
# Questions for the slow parts, each kind in its share; --limit changes all of them. The
# cross-encoder reads the hits of all questions.
READ = 100  # for our reader, from the questions that it was not trained on
EXTRACTED, ANSWERED = 360, 240  # for a language model
MAX_CHARS = 12_000  # of passages in a prompt: six whole chunks
CHUNK_TOKENS, CHUNK_OVERLAP = 256, 32
OTHERS = {
    "hotpotqa": "hotpotqa",
    "2wikimultihopqa": "2wikimultihopqa",
    "musique": "musique",
    "frames": "frames/test.tsv",
}
FILES = ("MultiHopRAG.json", "corpus.json", "query_metadata_filters.json")
NOTES = (
    "Bodies are partial in the copy of the corpus that this runs on, and 270 of 609 articles lack metadata (164 their source): "
    "compare rows with each other, not with published absolute figures. The paper's encoder is voyage-02, its reranker "
    "bge-reranker-large; here wordllama, bge-small-en-v1.5 and ms-marco-MiniLM-L-12-v2.",
    f"The paper's figures, without and with the filter, are those of the copy of its text that we have: {published_words()}.",
    "Chunks of 256 words and marks, overlap 32; the 20 nearest that pass the filter; 10 are judged. The filter goes down into "
    "the store's search.",
    "Official measures: a chunk counts when it holds a quoted fact, compared by letters and digits (the official script drops "
    "blanks only, and our copy differs in quotation marks); null questions are left out. Complete: every fact is among the "
    "chunks; complete, articles: every article has a chunk there.",
    "A lenient filter, which ours are, lets an article without the field pass. The published ones are shown as a plain data "
    "base applies them, and softened in our way.",
    "Seen and unseen: the encoders and the cross-encoder were not trained here. The fast gate that relaxes a filter and our reader "
    "learned from this data set; the gate's row is of questions that it may have seen, the reader's answers are not.",
    "Chosen after looking at these questions: the weight of the cross-encoder (one half, of 0.3, 0.5 and 0.7, on 517 of them, "
    "which its rows hold, too), that a filter only gives way to a step that reaches the gate's target, and that target (0.7); "
    "and the rules of the extractor, written with an eye on what it got wrong.",
)


@dataclass(frozen=True)
class _Data:
    """The questions with evidence, all questions, the articles, their chunks, and the published
    filters for all.
    """

    answerable: list[GoldQuestion]
    everything: list[GoldQuestion]
    articles: list[Document]
    chunks: list[Document]
    published: list[Mapping[str, Mapping[str, object]]]
    hashes: Mapping[str, str]
    folder: Path


@with_items("multi-meta-rag")
def study(
    *,
    seed: int = SEED,
    data: Path | None = None,
    quality: bool = False,
    progress: Progress | None = None,
    encoders: Sequence[str] = ENCODER_NAMES,
    limit: int | None = None,
    model: LanguageModel | Path | None = None,
    max_chars: int = MAX_CHARS,
    cache: Path | None = None,
    workers: int = 1,
) -> Study:
    """The whole study. `data`: MultiHop-RAG's folder with the published filters, or the folder of
    all data sets.

    `quality` adds the paper's last steps: the cross-encoder reads the hits of all questions, which
    takes hours on two cores, and our reader answers some. A `model` extracts filters and answers in
    place of GPT-3.5, GPT-4 and PaLM; a GGUF file is served while the study runs. `limit` is the
    number of questions for each of these, drawn by kind in proportion. With a `cache` folder,
    vectors, scores and answers are stored there, so that an interrupted run can resume. `workers`:
    questions that the cross-encoder reads at a time, each on its own core; by default one on all
    cores.
    """
    clock, left_out, who = StageTimer(), list[str](), None
    material = read_data(data)
    found = Results(
        kinds=tuple(one.gold.kind or "" for one in material.answerable),
        questions=len(material.everything),
    )
    with clock("filters"):
        _judge_filters(material, found, material.folder.parent, clock)
    facts = FactIndex(material.chunks, [example.gold.facts for example in material.answerable])
    found.sample = _sampled(found.kinds, limit or len(found.kinds), seed) if quality else ()
    gate, judge = _gate(left_out), _reranker(left_out, workers) if quality else None
    once = judge and CachedReranker(judge, cache)
    for name in encoders:
        try:
            encoder = (
                ENCODERS.get(name)()
                if cache is None
                else CachedEncoder(ENCODERS.get(name)(), cache)
            )
        except (NotReadyError, MissingExtraError) as error:
            left_out.append(f"Left out {name}: {error}.")
            continue
        with clock(f"encoding by {name}"):
            bench = FilterBench(
                encoder, material.chunks, material.answerable, facts, progress=progress
            )
        with clock(f"searching by {name}"):
            found.benches[name] = _searched(
                bench, _published_filters(material.answerable, material, bench.vocabulary), gate
            )
        if once is not None:
            with clock(f"reranking for {name}"):
                found.reranked[name] = _reranked(
                    bench, material, once, found.sample, workers, progress
                )
        if name != encoders[0]:
            continue
        if quality and (reader := _span_reader(left_out, cache, progress)) is not None:
            with clock("reading"):
                _answer_by_reader(
                    bench, material, reader, found, draw_unlearned(material, limit or READ, seed)
                )
        if model is not None:
            with usable_model(model, cache) as usable:
                who = component_name(usable)
                with clock("extracting by the model"):
                    asked = draw_sample(material, limit or EXTRACTED, seed)
                    _extract_by_model(bench, material, usable, found, asked, progress)
                with clock("answering by the model"):
                    asked = draw_sample(material, limit or ANSWERED, seed)
                    _answer_by_model(bench, material, usable, found, asked, max_chars, progress)
    return Study(
        name="multi-meta-rag",
        title="Multi-Meta-RAG: filters from questions, without and with a language model",
        seed=seed,
        settings={
            "chunks": len(material.chunks),
            "depth": DEPTH,
            "k": K,
            "reranked questions": len(found.sample),
            "model": who,
        },
        data=material.hashes,
        sections=_sections(
            found,
            seed,
            next(iter(encoders), ""),
            len({fact for one in material.answerable for fact in one.gold.facts}),
            facts.unfound,
        ),
        summary=tuple(tables.findings(found, seed)),
        notes=(*NOTES, *left_out),
        timings=clock.seconds,
        commit=source_commit(),
        packages=package_versions(),
    )


def _sections(
    found: Results, seed: int, encoder: str, facts: int, unfound: int
) -> tuple[Section, ...]:
    says = (
        f"n = {len(found.kinds):,} questions with evidence. {unfound:,} of {facts:,} facts stand in no chunk whole. In "
        "brackets: 95 % bootstrap interval over questions."
    )
    retrieval = [table for name in found.benches for table in tables.retrieval(found, name, seed)]
    sections = [
        Section(
            "The filters",
            tuple(tables.filters(found, seed)),
            "Read off the questions, before anything is searched.",
        ),
        Section("Retrieval without and with filters", tuple(retrieval), says),
    ]
    if found.reranked:
        chosen = (
            f"All {len(found.sample):,} questions with evidence."
            if len(found.sample) == len(found.kinds)
            else f"{len(found.sample)} questions, drawn by the seed, each kind in its share; intervals are wide."
        )
        sample = (
            f"{chosen} The rows without the cross-encoder are of the same questions. Its scores differ a little between processors "
            "and number formats."
        )
        shown = [table for name in found.reranked for table in tables.reranking(found, name, seed)]
        sections.append(Section("With the cross-encoder", tuple(shown), sample))
    if found.extracted:
        sections.append(
            Section(
                "Filters by a language model",
                tuple(tables.extraction(found, seed)),
                f"{found.extracted_questions} questions, drawn by the seed, each kind in its share; the other rows are of the "
                "same questions. The model's filter is checked as `ModelExtractor` checks it; where no filter is in its answer, "
                "it counts as none, as in the paper.",
            )
        )
    if found.answers:
        sections.append(
            Section(
                "Answers without and with filters",
                tuple(tables.answers(found, seed)),
                f"The first {CHUNKS_READ} chunks by {encoder}, read by each. Our reader learned from this data set: it answers "
                "questions of the part that was kept from its training (source seen, questions unseen), so that its sample is not "
                "the model's. Most comparison and temporal questions ask for yes or no. *May abstain*: it says "
                f"'{INSUFFICIENT}' where its answer is not likely enough for `ask`.",
            )
        )
    return tuple(sections)


# ---- reading


def _folder(data: Path | None) -> Path:
    hint = f"pass --data with the folder that holds {', '.join(FILES)}"
    if data is None:
        raise InputError(
            "this study is done on MultiHop-RAG and the filters published for it", hint=hint
        )
    for place in (Path(data), Path(data) / "multihop_rag"):
        if all((place / name).is_file() for name in FILES):
            return place
    fault = f"does not hold {', '.join(FILES)}" if Path(data).is_dir() else "is no folder"
    raise InputError(f"{data} {fault}", hint=hint)


def read_data(data: Path | None) -> _Data:
    folder = _folder(data)
    dataset = load("multihop_rag", folder)
    everything = list(dataset.questions())
    articles = list(dataset.documents())
    records = [one.value for one in read_json_records(folder / FILES[2], BadRecords())]
    published = {
        one.get("query"): one["filter"] for one in records if isinstance(one.get("filter"), dict)
    }
    missing = [one.question.question_id for one in everything if one.question.text not in published]
    if missing:
        raise InputError(
            f"{folder / FILES[2]} has no filter for question {missing[0]}",
            hint="take the file of the same version",
        )
    return _Data(
        [one for one in everything if one.gold.doc_ids],
        everything,
        articles,
        list(chunk_documents(articles, tokens=CHUNK_TOKENS, overlap=CHUNK_OVERLAP)),
        [published[one.question.text] for one in everything],
        {name: sha256_of(folder / name) for name in FILES},
        folder,
    )


def _published_filters(
    asked: Sequence[GoldQuestion], material: _Data, vocabulary: Vocabulary
) -> list[Filter]:
    of = dict(zip((one.question.question_id for one in material.everything), material.published))
    return [published_filter(of[one.question.question_id], vocabulary) for one in asked]


# ---- measuring


def _judge_filters(material: _Data, found: Results, others: Path, clock: StageTimer) -> None:
    store = MemoryStore(material.articles)
    vocabulary, corpus = Vocabulary.of_store(store), Corpus(material.articles)
    extractor = VocabularyExtractor(vocabulary)
    questions = [one.question.text for one in material.everything]
    started = time.process_time()
    ours = [one.filter for one in extractor.extract(questions)]
    found.extraction_ms = 1000 * (time.process_time() - started) / max(1, len(questions))
    clock.seconds["extraction, ms of processor time a question"] = found.extraction_ms
    published = [published_filter(one, vocabulary) for one in material.published]
    mended = [parse_answer(json.dumps(one), vocabulary)[0] for one in material.published]
    gold = gold_metadata(material.everything, material.articles)
    for name, filters in (
        (tables.OURS, ours),
        (tables.PUBLISHED, published),
        (tables.MENDED, mended),
    ):
        found.quality[name] = filter_quality(filters, gold)
        fails, passes = (
            int(empty_filters(filters, corpus, lenient=one).sum()) for one in (False, True)
        )
        found.emptied[name] = (fails, passes)
    found.emptied_elsewhere = _emptied_elsewhere(published, material.articles)
    for name, place in OTHERS.items():
        try:
            texts = [one.question.text for one in load(name, others / place).questions()]
        except SufficeError:
            continue  # not available here: the table says which were
        found.invented[name] = (
            sum(bool(one.filter) for one in extractor.extract(texts)),
            len(texts),
        )


def _emptied_elsewhere(filters: Sequence[Filter], articles: Sequence[Document]) -> int:
    """Filters that no source passes even if every outlet of the full corpus were here."""
    whole = Corpus(
        [
            *articles,
            *(Document(f"elsewhere: {outlet}", "", source=outlet) for outlet in OUTLETS_ELSEWHERE),
        ]
    )
    by_source = [
        Filter(tuple(one for one in filter.conditions if one.field == "source"))
        for filter in filters
    ]
    return int(empty_filters(by_source, whole, lenient=False).sum())


def _gate(left_out: list[str]) -> Gate | None:
    try:
        return Gate.load(preset="fast")
    except (NotReadyError, MissingExtraError) as error:
        left_out.append(f"Left out the gate: {error}.")
        return None


def _searched(
    bench: FilterBench, published: list[Filter], gate: Gate | None
) -> dict[str, SystemOutcome]:
    softened = [Filter(one.conditions, lenient=True) for one in published]
    found = {
        tables.BASELINE: bench.outcome(bench.dense),
        tables.PUBLISHED: bench.outcome(bench.dense, filters=published),
        tables.SOFTENED: bench.outcome(bench.soft(), filters=softened),
        tables.PLAIN: bench.outcome(bench.dense, filters=bench.missing_fails()),
        tables.OURS: bench.outcome(bench.soft()),
        tables.QUOTA: bench.outcome(bench.quota(bench.soft())),
    }
    return (
        found if gate is None else {**found, tables.RELAXED: bench.outcome(bench.relaxed_by(gate))}
    )


# ---- a reader and a language model


def draw_sample(held: _Data, size: int, seed: int) -> list[GoldQuestion]:
    """A sample of all questions, including null questions."""
    kinds = [one.gold.kind or "" for one in held.everything]
    return [held.everything[at] for at in _sampled(kinds, size, seed)]


def draw_unlearned(held: _Data, size: int, seed: int) -> list[GoldQuestion]:
    """A sample of the questions that our reader was not trained on."""
    kept = [one for one in held.everything if part_of("multihop_rag", one.question.text) == TEST]
    return [kept[at] for at in _sampled([one.gold.kind or "" for one in kept], size, seed)]


def _span_reader(
    left_out: list[str], cache: Path | None, progress: Progress | None
) -> CachedSpanReader | None:
    try:
        find = answer_finder(Gate.load())
    except (NotReadyError, MissingExtraError) as error:
        left_out.append(f"Left out our reader: {error}.")
        return None
    return None if find is None else CachedSpanReader(find, cache, progress=progress)


def _answer_by_reader(
    bench: FilterBench,
    held: _Data,
    reader: CachedSpanReader,
    found: Results,
    asked: Sequence[GoldQuestion],
) -> None:
    if not asked:
        return
    gold = [one.gold.answer or "" for one in asked]
    contexts = answer_contexts(bench, held, asked)
    for name in (tables.BASELINE, tables.OURS):
        readings = reader.read([one.question.text for one in asked], contexts[name])
        for who, answers in (
            (tables.READER, [answer for answer, _ in readings]),
            (tables.READER_ABSTAINS, reader.or_abstain(readings)),
        ):
            found.answers[who, name] = score_answers(answers, gold)
            found.answer_kinds[who] = tuple(one.gold.kind or "" for one in asked)
    _answer_yes(tables.READER, gold, found)


def answer_contexts(
    bench: FilterBench, held: _Data, asked: Sequence[GoldQuestion]
) -> dict[str, list[list[Document]]]:
    """The chunks to read, without a filter, with the published ones and with ours."""
    questions = [one.question.text for one in asked]
    published = _published_filters(asked, held, bench.vocabulary)
    return {
        tables.BASELINE: bench.found_chunks(bench.dense, questions, k=CHUNKS_READ),
        tables.PUBLISHED: bench.found_chunks(
            bench.dense, questions, k=CHUNKS_READ, filters=published
        ),
        tables.OURS: bench.found_chunks(bench.soft(), questions, k=CHUNKS_READ),
    }


def _answer_by_model(
    bench: FilterBench,
    held: _Data,
    model: LanguageModel,
    found: Results,
    asked: Sequence[GoldQuestion],
    max_chars: int,
    progress: Progress | None,
) -> None:
    who = component_name(model)
    found.answer_kinds[who] = tuple(one.gold.kind or "" for one in asked)
    gold = [one.gold.answer or "" for one in asked]
    for name, chunks in answer_contexts(bench, held, asked).items():
        prompts = [
            answer_prompt(one.question.text, shown, max_chars=max_chars)
            for one, shown in zip(asked, chunks, strict=True)
        ]
        said = complete_all(model, prompts, progress=progress, what=f"answering, {name}")
        found.answers[who, name] = score_answers(said, gold)
    _answer_yes(who, gold, found)


def _answer_yes(who: str, gold: Sequence[str], found: Results) -> None:
    """The score of always answering yes: many questions are yes/no questions."""
    nobody = f"'Yes' to the questions of {who}"
    found.answers[nobody, tables.NOTHING] = score_answers(["Yes"] * len(gold), gold)
    found.answer_kinds[nobody] = found.answer_kinds[who]


class _NoFilter:
    """No filter, for model answers that cannot be parsed."""

    name = "none"

    def extract(self, questions: Sequence[str]) -> list[Extraction]:
        return [Extraction(Filter(lenient=True), self.name)] * len(questions)


def model_extractor(model: LanguageModel, vocabulary: Vocabulary) -> ModelExtractor:
    return ModelExtractor(model, vocabulary, fallback=_NoFilter())


def _extract_by_model(
    bench: FilterBench,
    held: _Data,
    model: LanguageModel,
    found: Results,
    asked: Sequence[GoldQuestion],
    progress: Progress | None,
) -> None:
    questions = [one.question.text for one in asked]
    extractor = model_extractor(_RememberingModel(model), bench.vocabulary)
    prompts = [extractor.prompt(one) for one in questions]
    complete_all(
        extractor.model, prompts, schema=extractor.schema, progress=progress, what="extracting"
    )
    extracted = extractor.extract(questions)
    found.extracted_questions = len(asked)
    found.extracted_unread = sum(one.by != extractor.name for one in extracted)
    filters = {
        tables.OURS: [one.filter for one in bench.extractor.extract(questions)],
        tables.PUBLISHED: _published_filters(asked, held, bench.vocabulary),
        f"{tables.BY_MODEL} ({component_name(model)})": [one.filter for one in extracted],
    }
    gold = gold_metadata(asked, held.articles)
    found.extracted = {name: filter_quality(some, gold) for name, some in filters.items()}
    place = {one.question.question_id: at for at, one in enumerate(held.answerable)}
    which = [place[one.question.question_id] for one in asked if one.question.question_id in place]
    rows = np.array(which, dtype=int)
    found.extracted_found = {tables.BASELINE: bench.outcome(bench.dense, which=which).rows(rows)}
    for name, some in filters.items():
        at: list[Filter | None] = [None] * len(held.answerable)
        for one, filter in zip(asked, some, strict=True):
            if one.question.question_id in place:
                at[place[one.question.question_id]] = replace(filter, lenient=True)
        found.extracted_found[name] = bench.outcome(bench.soft(), filters=at, which=which).rows(
            rows
        )


class _RememberingModel:
    """Caches each prompt: the extractor asks one by one for what was asked in blocks before."""

    def __init__(self, model: LanguageModel) -> None:
        self.model, self.name = model, component_name(model)
        self._known: dict[str, str] = {}

    def complete(
        self, prompts: Sequence[str], *, schema: Mapping[str, Any] | None = None
    ) -> list[str]:
        new = [one for one in dict.fromkeys(prompts) if one not in self._known]
        if new:
            self._known.update(zip(new, self.model.complete(new, schema=schema), strict=True))
        return [self._known[one] for one in prompts]


def _sampled(kinds: Sequence[str], size: int, seed: int) -> tuple[int, ...]:
    """Positions of `size` questions, each kind in its share: every n-th of the shuffled questions,
    ordered by kind.
    """
    shuffled = np.random.default_rng(seed).permutation(len(kinds))
    by_kind = shuffled[np.argsort(np.array(kinds)[shuffled], kind="stable")]
    return tuple(
        sorted(
            by_kind[
                np.linspace(0, len(kinds), min(size, len(kinds)), endpoint=False).astype(int)
            ].tolist()
        )
    )


def _reranker(left_out: list[str], workers: int) -> Reranker | None:
    try:
        # With several questions at a time, one thread each, or they would compete for the cores.
        return RERANKERS.get(DEFAULT_RERANKER)(**({"threads": 1} if workers > 1 else {}))
    except (NotReadyError, MissingExtraError) as error:
        left_out.append(f"Left out reranking: {error}.")
        return None


def _reranked(
    bench: FilterBench,
    held: _Data,
    judge: Reranker,
    sample: Sequence[int],
    workers: int,
    progress: Progress | None,
) -> dict[str, SystemOutcome]:
    published = _published_filters(held.answerable, held, bench.vocabulary)
    searched: dict[str, tuple[Retriever, list[Filter] | None]] = {
        tables.BASELINE: (bench.dense, None),
        tables.PUBLISHED: (bench.dense, published),
        tables.OURS: (bench.soft(), None),
    }
    _read_pairs(bench, list(searched.values()), judge, sample, workers, progress)
    systems = searched | {
        tables.BASELINE_RERANKED: (bench.reranked(bench.dense, judge), None),
        tables.PUBLISHED_RERANKED: (bench.reranked(bench.dense, judge), published),
        tables.OURS_RERANKED: (bench.reranked(bench.soft(), judge), None),
        tables.SHARED: (bench.quota(bench.reranked(bench.soft(), judge, share=0.5)), None),
    }
    which = np.array(sample)
    return {
        name: bench.outcome(retriever, filters=filters, which=sample).rows(which)
        for name, (retriever, filters) in systems.items()
    }


def _read_pairs(
    bench: FilterBench,
    searched: Sequence[tuple[Retriever, list[Filter] | None]],
    judge: Reranker,
    sample: Sequence[int],
    workers: int,
    progress: Progress | None,
) -> None:
    """Let the cross-encoder read the hits of all these retrievers, `workers` questions at a time.
    A question's texts are read at once, so that the systems find all scores cached.
    """
    questions = [bench.questions[at] for at in sample]
    texts: list[dict[str, None]] = [{} for _ in questions]
    for retriever, filters in searched:
        passing = None if filters is None else [filters[at] for at in sample]
        for some, chunks in zip(
            texts, bench.found_chunks(retriever, questions, k=DEPTH, filters=passing), strict=True
        ):
            some.update(dict.fromkeys(searchable_text(one) for one in chunks))
    with questions_at_once(workers) as each:
        read = each(judge.score, questions, [list(one) for one in texts])
        for done, _ in enumerate(read, start=1):
            if progress is not None:
                progress(f"reranking for {bench.dense.encoder.name}", done, len(questions))
