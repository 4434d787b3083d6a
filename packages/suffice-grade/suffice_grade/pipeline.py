"""Build a benchmark from a corpus, stage by stage; stages are cached.

    corpus ▸ claims ▸ triples ▸ clusters ▸ knowledge ▸ paths ▸ questions ▸ valid ▸ benchmark

A stage's key is a hash of its settings, its implementation, the code and its inputs' keys. A stage
whose key is on disk is loaded instead of run: an interrupted run resumes where it stopped, and a
changed setting reruns only the stages that depend on it. With rules only, the same corpus, settings
and seed give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from suffice.datasets.jsonl import document_record, load_documents
from suffice.errors import InputError
from suffice.jobs import Job, JobRunner, run_in_process, split_into_blocks
from suffice.protocols import Encoder, Progress
from suffice.registry import ENCODERS
from suffice.retrieval.encoders import BlockEncoder
from suffice.storage import BadRecords, write_atomically
from suffice.storage.artefacts import read_json
from suffice.types import Document
from suffice_grade.bridge_questions import write_bridge_questions, write_intersection_questions
from suffice_grade.chain_questions import RuleQuestions, Wording
from suffice_grade.claims import PageIndex, RuleClaims, parse_pages
from suffice_grade.comparison_questions import write_comparison_questions
from suffice_grade.difficulty import similarities, split_by_quantiles
from suffice_grade.fact_questions import (
    Facts,
    write_condition_questions,
    write_fact_comparisons,
    write_fact_intersections,
    write_single_questions,
    write_yes_no_questions,
)
from suffice_grade.knowledge_graph import (
    MAX_HOPS,
    KnowledgeGraph,
    RuleEquivalences,
    build_graph,
    merge_equivalent_names,
    sample_paths,
    seeded_order,
    shortest_paths,
    soft_clusters,
)
from suffice_grade.lookalikes import look_alike, other_subjects
from suffice_grade.news_questions import write_news_questions
from suffice_grade.parsed_relations import ParsedTriples, find_model
from suffice_grade.stage_cache import StageCache, check_folder, hash_code, json_line
from suffice_grade.stage_protocols import (
    Claim,
    ClaimExtractor,
    Equivalence,
    EquivalenceFinder,
    GeneratedQuestion,
    Judge,
    QuestionWriter,
    ReasoningPath,
    Triple,
    TripleExtractor,
    question_from_record,
    question_to_record,
)
from suffice_grade.triples import RuleTriples
from suffice_grade.validation import RuleJudge

_BLOCK, _RULES = 256, "rules"
FORMS = (
    "single", "chain", "comparison", "bridge", "intersection", "condition", "yes_no", "news"
)  # fmt: skip
MIN_DOCUMENTS = 2
Records = list[dict[str, Any]]


class NoQuestionsError(InputError):
    """The corpus yields no questions."""


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """At most `per_hop` chains of each length, and `per_form` questions of each other form."""

    seed: int = 42
    per_hop: int = 400
    per_form: int = 400
    longest: int = MAX_HOPS
    forms: tuple[str, ...] = FORMS
    twins: float = 0.25  # share of the valid questions that get an unanswerable twin
    encoder: str = "wordllama"
    lookalikes: float = 0.1  # share that get a twin with a changed copy of a needed document
    parse: bool = False  # add what a dependency parse finds (`parsed_relations`, needs spaCy)

    def __post_init__(self) -> None:
        if unknown := set(self.forms) - set(FORMS):
            raise InputError(
                f"no form is named {sorted(unknown)[0]!r}", hint=f"known: {', '.join(FORMS)}"
            )
        counts_ok = 2 <= self.longest <= MAX_HOPS and self.per_hop >= 1 and self.per_form >= 0
        shares_ok = all(0 <= share <= 1 for share in (self.twins, self.lookalikes))
        if not counts_ok or not shares_ok:
            raise InputError(
                f"settings out of range: {self}",
                hint=f"2 to {MAX_HOPS} hops, at least one path a hop, shares from 0 to 1",
            )


@dataclass(frozen=True)
class Stages:
    """Implementations of the stages that a language model could do, made from the corpus's pages.

    A stage's `signature`, if it has one, is part of its key: another model or prompt reruns it.
    """

    claims: Callable[[PageIndex], ClaimExtractor] = lambda pages: RuleClaims(
        pages.by_title, pages.terms
    )
    triples: Callable[[PageIndex], TripleExtractor] = RuleTriples
    equivalences: Callable[[PageIndex], EquivalenceFinder] = RuleEquivalences
    questions: Callable[[PageIndex, Wording], QuestionWriter] = lambda _, wording: RuleQuestions(
        wording
    )
    judge: Callable[[Sequence[Document], PageIndex], Judge] = RuleJudge


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The numbers of a built benchmark, and why questions were dropped."""

    folder: Path
    counts: Mapping[str, int]  # stage -> items
    by_hops: Mapping[int, int]
    by_kind: Mapping[str, int]
    dropped: Mapping[str, int]
    done: tuple[str, ...]  # stages run this time; the others were cached

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "folder": str(self.folder)}


def build_benchmark(
    documents: Iterable[Document],
    out: Path,
    *,
    settings: BenchmarkSettings | None = None,
    stages: Stages | None = None,
    progress: Progress | None = None,
    run: JobRunner = run_in_process,
) -> Benchmark:
    """Build the benchmark of a corpus in the folder `out`, reusing cached stages.

    `run` executes the jobs of the rules, in this process by default.
    """
    builder = _Builder(
        Path(out),
        settings or BenchmarkSettings(),
        stages or Stages(),
        progress or (lambda what, done, total: None),
        run,
    )
    return builder.build(documents)


def check_out(out: Path) -> None:
    """InputError if the folder holds anything but a benchmark."""
    check_folder(out, "grade", "suffice grade CORPUS --out DIR", may_hold=("answers.db",))


# Stages that process one block at a time, wherever the block runs.


def claim_records(documents: Sequence[Document], extractor: ClaimExtractor) -> Records:
    return [asdict(claim) for claims in extractor.claims(documents) for claim in claims]


def triple_records(claims: Sequence[Claim], extractor: TripleExtractor) -> Records:
    return [asdict(triple) for triples in extractor.triples(claims) for triple in triples]


def question_records(
    paths: Sequence[tuple[ReasoningPath, Sequence[Claim]]], writer: QuestionWriter
) -> Records:
    written = writer.write([path for path, _ in paths], [claims for _, claims in paths])
    return [question_to_record(question) for question in written if question is not None]


@dataclass
class _Builder:
    """One run in one folder. A stage returns its output and its key."""

    out: Path
    settings: BenchmarkSettings
    stages: Stages
    progress: Progress
    run: JobRunner

    def __post_init__(self) -> None:
        self._cache = StageCache(self.out, "grade", code=hash_code(Path(__file__).parent))

    def build(self, documents: Iterable[Document]) -> Benchmark:
        check_out(self.out)
        if self.settings.parse:
            find_model()  # before the work
        self._corpus(documents)
        corpus = list(load_documents(self.out / "documents.jsonl", BadRecords(), empty_ok=True))
        pages = PageIndex(parse_pages(corpus).values(), corpus)
        claims = self._claims(corpus, pages)
        triples = self._triples(claims, pages, corpus)
        clusters = self._clusters(claims)
        graph = build_graph(self._knowledge(claims, triples, clusters, pages), pages)
        paths = self._paths(graph)
        questions = self._questions(graph, paths, claims, pages, corpus)
        valid, dropped = self._valid(corpus, pages, questions)
        counts = {
            "documents": len(corpus),
            "claims": len(claims),
            "triples": len(triples),
            "edges": len(graph),
            "paths": len(paths),
            "questions": len(questions),
            "valid": len(valid),
            **self._publish(corpus, valid),
        }
        found = Benchmark(
            self.out,
            counts,
            dict(sorted(Counter(one.hops for one in valid).items())),
            dict(sorted(Counter(one.kind for one in valid).items())),
            dropped,
            tuple(self._cache.done),
        )
        about = found.as_json() | {"settings": asdict(self.settings)}
        about["key"] = self._cache.keys["valid"]
        del about["folder"], about["done"]
        text = json.dumps(about, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        write_atomically(self.out / "benchmark.json", text)
        return found

    def _corpus(self, documents: Iterable[Document]) -> None:
        """Store the documents beside the results."""
        digest, lines = hashlib.sha256(), list[str]()
        for document in documents:
            record = document_record(document)
            line = json.dumps(record, ensure_ascii=False, sort_keys=True, default=str) + "\n"
            digest.update(line.encode("utf-8", "surrogatepass"))
            lines.append(line)
            self.progress("reading documents", len(lines), None)
        if (count := len(lines)) < MIN_DOCUMENTS:
            what = "is empty" if not count else "has one document"
            raise NoQuestionsError(
                f"the corpus {what}: a multi-hop question needs facts of several documents",
                hint="give more documents",
            )
        key = digest.hexdigest()

        def fill(folder: Path) -> None:
            write_atomically(self.out / "documents.jsonl", lines)
            about = json.dumps({"documents": count, "sha256": key}) + "\n"
            (folder / "corpus.json").write_text(about, encoding="utf-8")

        self._cache.stage("corpus", {"sha256": key}, fill, outputs=("documents.jsonl",))

    def _claims(self, documents: Sequence[Document], pages: PageIndex) -> list[Claim]:
        extractor = self.stages.claims(pages)
        records = self._cache.records(
            "claims",
            {"by": _by(extractor)},
            lambda: self._in_blocks("claims", claim_records, extractor, documents),
            after=("corpus",),
        )
        if not records:
            raise NoQuestionsError(
                f"no sentence of these {len(documents):,} documents states a fact on its own",
                hint="documents need whole sentences; the rules read English, "
                "a language model (--model) others",
            )
        return [Claim(**record) for record in records]

    def _triples(
        self, claims: Sequence[Claim], pages: PageIndex, documents: Sequence[Document]
    ) -> list[Triple]:
        extractor = self.stages.triples(pages)
        if self.settings.parse:
            extractor = ParsedTriples(pages, extractor, documents)
        records = self._cache.records(
            "triples",
            {"by": _by(extractor)},
            lambda: self._in_blocks("triples", triple_records, extractor, claims),
            after=("claims",),
        )
        if not records:
            rules = (
                "the rules read English sentences like 'Team Tern is led by Mira Holt', keys like "
                "'Owner: Mira Holt', tables and manual pages; use a language model (--model) for "
                "other text"
            )
            model = (
                "no relation that the language model found is in its sentence; "
                "use a larger model, or the rules (no --model)"
            )
            raise NoQuestionsError(
                f"no relation was found in {len(claims):,} sentences",
                hint=rules if _by(extractor).startswith(_RULES) else model,
            )
        return [Triple(**record) for record in records]

    def _clusters(self, claims: Sequence[Claim]) -> dict[str, tuple[int, ...]]:
        settings = {"encoder": self.settings.encoder, "seed": self.settings.seed}

        def make() -> Iterator[dict[str, Any]]:
            texts = [claim.text for claim in claims]
            seed, progress = self.settings.seed, self.progress
            found = soft_clusters(texts, self._encoder, seed=seed, progress=progress)
            for claim, clusters in zip(claims, found):
                yield {"claim_id": claim.claim_id, "clusters": clusters}

        records = self._cache.records("clusters", settings, make, after=("claims",))
        return {record["claim_id"]: tuple(record["clusters"]) for record in records}

    def _knowledge(
        self,
        claims: Sequence[Claim],
        triples: Sequence[Triple],
        clusters: Mapping[str, Sequence[int]],
        pages: PageIndex,
    ) -> list[Triple]:
        finder = self.stages.equivalences(pages)

        def make() -> Iterator[dict[str, Any]]:
            members: dict[int, tuple[list[Triple], list[Claim]]] = defaultdict(lambda: ([], []))
            for triple in triples:
                for cluster in clusters.get(triple.claim_id, ()):
                    members[cluster][0].append(triple)
            for claim in claims:
                for cluster in clusters.get(claim.claim_id, ()):
                    members[cluster][1].append(claim)
            found: list[Equivalence] = []
            for at, cluster in enumerate(sorted(members)):
                found += finder.equivalences(cluster, *members[cluster])
                self.progress("finding equal names", at + 1, len(members))
            yield from map(asdict, merge_equivalent_names(triples, found, clusters))

        settings, after = {"by": _by(finder)}, ("triples", "clusters")
        records = self._cache.records("knowledge", settings, make, after=after)
        return [Triple(**record) for record in records]

    def _paths(self, graph: KnowledgeGraph) -> list[ReasoningPath]:
        longest = self.settings.longest
        records = self._cache.records(
            "paths",
            {"longest": longest},
            lambda: map(asdict, shortest_paths(graph, longest=longest, progress=self.progress)),
            after=("knowledge",),
        )
        chains = (tuple(Triple(**one) for one in record["triples"]) for record in records)
        return [ReasoningPath(triples) for triples in chains]

    def _questions(
        self,
        graph: KnowledgeGraph,
        paths: Sequence[ReasoningPath],
        claims: Sequence[Claim],
        pages: PageIndex,
        documents: Sequence[Document],
    ) -> list[GeneratedQuestion]:
        settings, seed, most = self.settings, self.settings.seed, self.settings.per_form
        wording = Wording(pages, seed=seed)
        writer = self.stages.questions(pages, wording)
        claim_of = {claim.claim_id: claim for claim in claims}
        chosen_by = {name: getattr(settings, name) for name in ("per_hop", "per_form", "forms")}
        chosen_by |= {"by": _by(writer), "seed": seed}
        facts = Facts(graph, wording, seed)
        same: Any = {"seed": seed, "most": most}
        forms: dict[str, Callable[[], Iterable[GeneratedQuestion]]] = {
            "single": lambda: write_single_questions(facts, most=most),
            "comparison": lambda: [
                *write_comparison_questions(graph, paths, wording, per_form=most, seed=seed),
                *write_fact_comparisons(facts, most=most),
            ],
            "bridge": lambda: write_bridge_questions(claims, graph, paths, wording, **same),
            "intersection": lambda: [
                *write_intersection_questions(graph, wording, **same),
                *write_fact_intersections(facts, most=most),
            ],
            "condition": lambda: write_condition_questions(facts, most=most),
            "yes_no": lambda: write_yes_no_questions(facts, paths, most=most),
            "news": lambda: write_news_questions(facts, claims, documents, most=most),
        }

        def make() -> Iterator[dict[str, Any]]:
            chain = "chain" in settings.forms
            can_write = getattr(writer, "can_write", None)  # a model can write any path
            chosen = (
                sample_paths(paths, settings.per_hop, seed=seed, can_write=can_write)
                if chain
                else []
            )
            with_claims = [
                (path, [claim_of[one.claim_id] for one in path.triples if one.claim_id in claim_of])
                for path in chosen
            ]
            yield from self._in_blocks("questions", question_records, writer, with_claims)
            for at, (form, write) in enumerate(forms.items(), 1):
                yield from map(question_to_record, write() if form in settings.forms else ())
                self.progress("writing other forms", at, len(forms))

        records = self._cache.records("questions", chosen_by, make, after=("paths",))
        return [question_from_record(record) for record in records]

    def _valid(
        self,
        documents: Sequence[Document],
        pages: PageIndex,
        questions: Sequence[GeneratedQuestion],
    ) -> tuple[list[GeneratedQuestion], dict[str, int]]:
        judge = self.stages.judge(documents, pages)

        def make() -> Iterator[dict[str, Any]]:
            self.progress("checking questions", 0, len(questions))
            judgements = judge.judge(questions)
            self.progress("checking questions", len(questions), len(questions))
            for question, judgement in zip(questions, judgements, strict=True):
                yield {"question_id": question.question_id, **asdict(judgement)}

        records = self._cache.records("valid", {"by": _by(judge)}, make, after=("questions",))
        pairs = list(zip(questions, records, strict=True))
        valid = [question for question, record in pairs if record["valid"]]
        dropped = dict(Counter(one["why"] for one in records if not one["valid"]).most_common())
        if not valid:
            why = ", ".join(f"{count:,} {name}" for name, count in dropped.items())
            raise NoQuestionsError(
                f"no valid question: {len(questions):,} were written and all were dropped"
                + (f" ({why})" if why else ""),
                hint="the documents rarely name each other; add documents on one subject, "
                "or use a language model",
            )
        return valid, dropped

    def _publish(
        self, documents: Sequence[Document], valid: Sequence[GeneratedQuestion]
    ) -> dict[str, int]:
        """Write questions.jsonl and twins.jsonl unless they exist for this key; count the twins."""
        settings: Any = {
            name: getattr(self.settings, name)
            for name in ("twins", "lookalikes", "seed", "encoder")
        }

        def fill(folder: Path) -> None:
            by_id = {one.doc_id: one for one in documents}
            needed = [[by_id[doc_id] for doc_id in one.doc_ids] for one in valid]
            texts = [one.text for one in valid]
            distances = similarities(texts, needed, self._encoder).difficulty()
            records = []
            for one, d_r, at in zip(valid, distances, split_by_quantiles(distances).bins):
                graded = {"d_r": round(float(d_r), 6), "quartile": int(at) + 1}
                records.append(question_to_record(one) | {"difficulty": graded})
            write_atomically(self.out / "questions.jsonl", map(json_line, records))
            twins = [_twin(one, self.settings.seed) for one in self._draw(valid, "twin")]
            alike = list(self._look_alikes(valid, by_id))
            write_atomically(self.out / "twins.jsonl", map(json_line, [*twins, *alike]))
            counts = json.dumps({"twins": len(twins), "lookalikes": len(alike)}) + "\n"
            (folder / "counts.json").write_text(counts, encoding="utf-8")

        files = ("questions.jsonl", "twins.jsonl")
        self._cache.stage("benchmark", settings, fill, after=("valid",), outputs=files)
        counts: dict[str, int] = read_json(self._cache.folder("benchmark") / "counts.json")
        return counts

    def _draw(self, valid: Sequence[GeneratedQuestion], what: str) -> list[GeneratedQuestion]:
        share = self.settings.twins if what == "twin" else self.settings.lookalikes
        order = seeded_order(valid, lambda one: f"{what} {one.question_id}", self.settings.seed)
        return order[: round(len(valid) * share)]

    def _look_alikes(
        self, valid: Sequence[GeneratedQuestion], documents: Mapping[str, Document]
    ) -> Iterator[dict[str, Any]]:
        """The same questions over a corpus where a changed copy replaces a needed document."""
        others, seed = other_subjects(valid), self.settings.seed
        for one in self._draw(valid, "lookalike"):
            if (found := look_alike(one, documents, others, seed=seed)) is not None:
                doc_id, copy = found
                yield question_to_record(one) | {
                    "question_id": f"{one.question_id}-lookalike",
                    "twin_of": one.question_id,
                    "without": doc_id,
                    "instead": document_record(copy),
                }

    @cached_property
    def _encoder(self) -> Encoder:
        name = self.settings.encoder
        encoder = ENCODERS.get(name)()
        local = self.run is run_in_process
        return encoder if local else BlockEncoder(name, encoder, self.run)

    def _in_blocks(
        self, name: str, do: Callable[[Any, Any], Records], stage: object, items: Sequence[Any]
    ) -> Iterator[dict[str, Any]]:
        """The records of all blocks. A model is called here, where its cost is counted."""
        run = self.run if _by(stage) == _RULES else run_in_process
        job = Job(f"making {name}", do, stage, key=self._cache.keys[name])
        for done, records in enumerate(run(job, split_into_blocks(items, _BLOCK)), 1):
            yield from records
            self.progress(job.name, min(done * _BLOCK, len(items)), len(items))


def _by(stage: object) -> str:
    return str(getattr(stage, "signature", _RULES))


def _twin(question: GeneratedQuestion, seed: int) -> dict[str, Any]:
    """The same question over a corpus without one of its documents, so it is unanswerable there."""
    question_id = question.question_id
    order = seeded_order(question.doc_ids, lambda one: f"without {question_id} {one}", seed)
    changed = {"question_id": f"{question_id}-twin", "without": order[0], "twin_of": question_id}
    return question_to_record(question) | changed
