"""The stages of grade that take a block at a time: each is a function of the block and of whoever does the stage."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any

from suffice.benchmark.bridge_questions import write_bridge_questions, write_intersection_questions
from suffice.benchmark.chain_questions import RuleQuestions, Wording
from suffice.benchmark.claims import RuleClaims, parse_pages
from suffice.benchmark.comparison_questions import write_comparison_questions
from suffice.benchmark.difficulty import retrieval_difficulty, split_by_quantiles
from suffice.benchmark.knowledge_graph import (
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
from suffice.benchmark.stage_cache import StageCache
from suffice.benchmark.stage_protocols import (
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
from suffice.benchmark.triples import PageIndex, RuleTriples
from suffice.benchmark.validation import RuleJudge
from suffice.datasets.jsonl import document_record, load_documents
from suffice.errors import InputError
from suffice.jobs import Job, JobRunner, run_in_process, split_into_blocks
from suffice.protocols import Encoder, Progress
from suffice.registry import ENCODERS
from suffice.retrieval.dense import BlockEncoder
from suffice.storage import BadRecords, write_atomically
from suffice.types import Document

__all__ = [
    "FORMS",
    "Benchmark",
    "BenchmarkBuilder",
    "BenchmarkSettings",
    "Stages",
    "build_benchmark",
    "claim_records",
    "question_records",
    "triple_records",
]


Records = list[dict[str, Any]]


def claim_records(documents: Sequence[Document], maker: ClaimExtractor) -> Records:
    return [asdict(claim) for claims in maker.claims(documents) for claim in claims]


def triple_records(claims: Sequence[Claim], reader: TripleExtractor) -> Records:
    return [asdict(triple) for triples in reader.triples(claims) for triple in triples]


def question_records(
    paths: Sequence[tuple[ReasoningPath, Sequence[Claim]]], writer: QuestionWriter
) -> Records:
    """Each path comes with the claims of its hops."""
    written = writer.write([path for path, _ in paths], [claims for _, claims in paths])
    return [question_to_record(made) for made in written if made is not None]


# --- pipeline: From a corpus to a graded benchmark, stage by stage; each stage's output is kept, and made anew only when it has to be.

_AT_ONCE, _RULES = 256, "rules"
FORMS = ("chain", "comparison", "bridge", "intersection")
MIN_DOCUMENTS = 2
_WRITTEN = ("documents.jsonl", "questions.jsonl", "twins.jsonl")


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """What a benchmark is made with. `per_hop` chains of each length are tried, and `per_form` of each other form."""

    seed: int = 42
    per_hop: int = 400
    per_form: int = 400
    longest: int = MAX_HOPS
    forms: tuple[str, ...] = FORMS
    twins: float = 0.25  # share of the valid questions that get an unanswerable twin
    encoder: str = "wordllama"

    def __post_init__(self) -> None:
        if unknown := set(self.forms) - set(FORMS):
            raise InputError(
                f"no form is named {sorted(unknown)[0]!r}", hint=f"known: {', '.join(FORMS)}"
            )
        if (
            not 2 <= self.longest <= MAX_HOPS
            or self.per_hop < 1
            or self.per_form < 0
            or not 0 <= self.twins <= 1
        ):
            raise InputError(
                f"settings out of range: {self}",
                hint=f"2 to {MAX_HOPS} hops, at least one path a hop, twins from 0 to 1",
            )


@dataclass(frozen=True)
class Stages:
    """Who does the stages that a language model could do; each is made from the corpus's titles. Rules unless told.

    A stage's `signature`, where it has one, is part of its key: another model or prompt makes the stage anew.
    """

    claims: Callable[[PageIndex], ClaimExtractor] = lambda titles: RuleClaims(titles.page)
    triples: Callable[[PageIndex], TripleExtractor] = RuleTriples
    equivalences: Callable[[PageIndex], EquivalenceFinder] = RuleEquivalences
    questions: Callable[[PageIndex, Wording], QuestionWriter] = lambda titles, wording: (
        RuleQuestions(wording)
    )
    judge: Callable[[Sequence[Document], PageIndex], Judge] = RuleJudge


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What was made, in numbers: what each stage held, the valid questions by hops and kind, and why others were dropped."""

    folder: FilePath
    counts: Mapping[str, int]
    by_hops: Mapping[int, int]
    by_kind: Mapping[str, int]
    dropped: Mapping[str, int]
    done: tuple[str, ...]  # stages that this run did; the others stood already

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "folder": str(self.folder)}


def build_benchmark(
    documents: Iterable[Document],
    out: FilePath,
    *,
    settings: BenchmarkSettings | None = None,
    stages: Stages | None = None,
    progress: Progress | None = None,
    mapped: JobRunner = run_in_process,
) -> Benchmark:
    """Make the benchmark of a corpus in the folder `out`, or what of it is missing there; `mapped` is where rules work."""
    return BenchmarkBuilder(
        FilePath(out), settings or BenchmarkSettings(), stages or Stages(), progress, mapped
    ).run(documents)


@dataclass
class BenchmarkBuilder:
    """One run over one folder."""

    out: FilePath
    settings: BenchmarkSettings
    stages: Stages
    progress: Progress | None = None
    mapped: JobRunner = run_in_process
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._shelf = StageCache(self.out)

    def run(self, documents: Iterable[Document]) -> Benchmark:
        if self.out.is_file() or (
            any(map(self._shelf.holds, _WRITTEN)) and not self._shelf.holds("stages")
        ):
            raise InputError(
                f"what stands at {self.out} was not made here", hint="give --out another folder"
            )
        corpus = self._corpus(documents)
        held = list(load_documents(self.out / "documents.jsonl", BadRecords(), empty_ok=True))
        titles = PageIndex(parse_pages(held).values(), held)
        claims, claimed = self._claims(held, titles, corpus)
        triples, read = self._triples(claims, titles, claimed)
        clusters, clustered = self._clusters(claims, claimed)
        linked_, known = self._knowledge(claims, triples, clusters, titles, read, clustered)
        graph = build_graph(linked_, titles)
        paths, walked = self._paths(graph, known)
        made, asked = self._questions(graph, paths, claims, titles, walked)
        valid, dropped, judged = self._valid(held, titles, made, asked)
        twins = self._publish(held, valid, judged)
        counts = {
            "documents": len(held), "claims": len(claims), "triples": len(triples), "edges": len(graph), "paths": len(paths),
            "questions": len(made), "valid": len(valid), "twins": twins,
        }  # fmt: skip
        by_hops, by_kind = Counter(one.hops for one in valid), Counter(one.kind for one in valid)
        found = Benchmark(
            self.out,
            counts,
            dict(sorted(by_hops.items())),
            dict(sorted(by_kind.items())),
            dropped,
            tuple(self.done),
        )
        about = {
            name: value for name, value in found.as_json().items() if name not in ("folder", "done")
        }
        about |= {"settings": asdict(self.settings), "key": judged}
        write_atomically(
            self.out / "benchmark.json",
            json.dumps(about, indent=2, sort_keys=True, ensure_ascii=False) + "\n",
        )
        return found

    def _corpus(self, documents: Iterable[Document]) -> str:
        """Keep the documents beside what is made of them; the key is the hash of their records."""
        digest, lines = hashlib.sha256(), list[str]()
        for document in documents:
            line = (
                json.dumps(
                    document_record(document), ensure_ascii=False, sort_keys=True, default=str
                )
                + "\n"
            )
            digest.update(line.encode("utf-8", "surrogatepass"))
            lines.append(line)
            self._tell("reading documents", len(lines), None)
        if (count := len(lines)) < MIN_DOCUMENTS:
            what = "is empty" if not count else "has one document"
            raise InputError(
                f"the corpus {what}: a multi-hop question needs facts of several documents",
                hint="give more documents",
            )
        key = digest.hexdigest()

        def fill(folder: FilePath) -> None:
            write_atomically(self.out / "documents.jsonl", lines)
            (folder / "corpus.json").write_text(
                json.dumps({"documents": count, "sha256": key}) + "\n", encoding="utf-8"
            )

        self._stage("corpus", {"sha256": key}, fill, beside=("documents.jsonl",))
        return key

    def _claims(
        self, documents: Sequence[Document], titles: PageIndex, corpus: str
    ) -> tuple[list[Claim], str]:
        maker = self.stages.claims(titles)
        own = {"by": _by(maker), "corpus": corpus}
        key = self._records(
            "claims",
            own,
            lambda: self._in_blocks("making claims", claim_records, maker, documents, own),
        )
        claims = [Claim(**record) for record in self._read("claims")]
        if not claims:
            raise InputError(
                f"no sentence of these {len(documents):,} documents states a fact that stands alone",
                hint="documents need whole sentences; the rules read English, a language model (--model) others",
            )
        return claims, key

    def _triples(
        self, claims: Sequence[Claim], titles: PageIndex, claimed: str
    ) -> tuple[list[Triple], str]:
        reader = self.stages.triples(titles)
        own = {"by": _by(reader), "claims": claimed}
        key = self._records(
            "triples",
            own,
            lambda: self._in_blocks("reading triples", triple_records, reader, claims, own),
        )
        triples = [Triple(**record) for record in self._read("triples")]
        if not triples:
            rules = (
                "the rules know sentences like 'X was directed by Y' about the documents' titles, in English; "
                "give documents titles, or let a language model read (--model)"
            )
            model = "nothing the language model read stands in its sentence; take a larger one, or the rules (no --model)"
            raise InputError(
                f"no relation could be read out of {len(claims):,} sentences",
                hint=rules if own["by"] == _RULES else model,
            )
        return triples, key

    def _clusters(
        self, claims: Sequence[Claim], claimed: str
    ) -> tuple[dict[str, tuple[int, ...]], str]:
        def make() -> Iterator[dict[str, Any]]:
            found = soft_clusters(
                [one.text for one in claims],
                self._encoder,
                seed=self.settings.seed,
                progress=self.progress,
            )
            yield from (
                {"claim_id": claim.claim_id, "clusters": clusters}
                for claim, clusters in zip(claims, found)
            )

        key = self._records(
            "clusters",
            {"encoder": self.settings.encoder, "seed": self.settings.seed, "claims": claimed},
            make,
        )
        return {
            record["claim_id"]: tuple(record["clusters"]) for record in self._read("clusters")
        }, key

    def _knowledge(
        self,
        claims: Sequence[Claim],
        triples: Sequence[Triple],
        clusters: Mapping[str, Sequence[int]],
        titles: PageIndex,
        read: str,
        clustered: str,
    ) -> tuple[list[Triple], str]:
        finder = self.stages.equivalences(titles)

        def make() -> Iterator[dict[str, Any]]:
            members: dict[int, tuple[list[Triple], list[Claim]]] = {}
            for triple in triples:
                for cluster in clusters.get(triple.claim_id, ()):
                    members.setdefault(cluster, ([], []))[0].append(triple)
            for claim in claims:
                for cluster in clusters.get(claim.claim_id, ()):
                    members.setdefault(cluster, ([], []))[1].append(claim)
            found: list[Equivalence] = []
            for at, cluster in enumerate(sorted(members)):
                found += finder.equivalences(cluster, *members[cluster])
                self._tell("looking for equal names", at + 1, len(members))
            yield from map(asdict, merge_equivalent_names(triples, found, clusters))

        key = self._records(
            "knowledge", {"by": _by(finder), "triples": read, "clusters": clustered}, make
        )
        return [Triple(**record) for record in self._read("knowledge")], key

    def _paths(self, graph: KnowledgeGraph, known: str) -> tuple[list[ReasoningPath], str]:
        def make() -> Iterator[dict[str, Any]]:
            for path in shortest_paths(
                graph, longest=self.settings.longest, progress=self.progress
            ):
                yield {"triples": [asdict(one) for one in path.triples]}

        key = self._records("paths", {"longest": self.settings.longest, "knowledge": known}, make)
        return [
            ReasoningPath(tuple(Triple(**one) for one in record["triples"]))
            for record in self._read("paths")
        ], key

    def _questions(
        self,
        graph: KnowledgeGraph,
        paths: Sequence[ReasoningPath],
        claims: Sequence[Claim],
        titles: PageIndex,
        walked: str,
    ) -> tuple[list[GeneratedQuestion], str]:
        settings = self.settings
        wording = Wording(titles, seed=settings.seed)
        writer = self.stages.questions(titles, wording)
        claim_of = {claim.claim_id: claim for claim in claims}
        chosen_by = {
            name: getattr(settings, name) for name in ("per_hop", "per_form", "forms", "seed")
        }
        own = {"by": _by(writer), "paths": walked, **chosen_by}

        def make() -> Iterator[dict[str, Any]]:
            chosen = (
                sample_paths(paths, settings.per_hop, seed=settings.seed)
                if "chain" in settings.forms
                else []
            )
            told = [
                [claim_of[one.claim_id] for one in path.triples if one.claim_id in claim_of]
                for path in chosen
            ]
            yield from self._in_blocks(
                "writing questions", question_records, writer, list(zip(chosen, told)), own
            )
            most, seed = settings.per_form, settings.seed
            forms: dict[str, Callable[[], Iterable[GeneratedQuestion]]] = {
                "comparison": lambda: write_comparison_questions(
                    graph, paths, titles, wording, per_form=most, seed=seed
                ),
                "bridge": lambda: write_bridge_questions(
                    claims, graph, paths, titles, wording, most=most, seed=seed
                ),
                "intersection": lambda: write_intersection_questions(
                    graph, titles, wording, most=most, seed=seed
                ),
            }
            for at, (form, made) in enumerate(forms.items(), 1):
                yield from map(question_to_record, made() if form in settings.forms else ())
                self._tell("writing other forms", at, len(forms))

        key = self._records("questions", own, make)
        return [question_from_record(record) for record in self._read("questions")], key

    def _valid(
        self,
        documents: Sequence[Document],
        titles: PageIndex,
        made: Sequence[GeneratedQuestion],
        asked: str,
    ) -> tuple[list[GeneratedQuestion], dict[str, int], str]:
        judge = self.stages.judge(documents, titles)

        def make() -> Iterator[dict[str, Any]]:
            self._tell("checking questions", 0, len(made))
            judgements = judge.judge(made)
            self._tell("checking questions", len(made), len(made))
            yield from (
                {"question_id": one.question_id, **asdict(said)}
                for one, said in zip(made, judgements, strict=True)
            )

        key = self._records("valid", {"by": _by(judge), "questions": asked}, make)
        judgements = list(self._read("valid"))
        valid = [one for one, said in zip(made, judgements, strict=True) if said["valid"]]
        dropped = dict(
            Counter(said["why"] for said in judgements if not said["valid"]).most_common()
        )
        if not valid:
            why = (
                f" ({', '.join(f'{count:,} {name}' for name, count in dropped.items())})"
                if dropped
                else ""
            )
            raise InputError(
                f"no valid question could be made: {len(made):,} were written and none may stay{why}",
                hint="the documents name each other too seldom; more documents of one field may help, or a language model",
            )
        return valid, dropped, key

    def _publish(
        self, documents: Sequence[Document], valid: Sequence[GeneratedQuestion], judged: str
    ) -> int:
        """Write questions.jsonl and twins.jsonl, unless they stand there for this key."""
        settings = self.settings

        def fill(folder: FilePath) -> None:
            held = {one.doc_id: one for one in documents}
            needed = [[held[doc_id] for doc_id in one.doc_ids] for one in valid]
            distance = retrieval_difficulty([one.text for one in valid], needed, self._encoder)
            bins = split_by_quantiles(distance).bins
            records = [
                question_to_record(one)
                | {"difficulty": {"d_r": round(float(d_r), 6), "quartile": int(quartile) + 1}}
                for one, d_r, quartile in zip(valid, distance, bins, strict=True)
            ]
            write_atomically(self.out / "questions.jsonl", map(_line, records))
            some = seeded_order(valid, lambda one: f"twin {one.question_id}", settings.seed)[
                : round(len(valid) * settings.twins)
            ]
            write_atomically(
                self.out / "twins.jsonl",
                (_line(_twin(one, settings.seed)) for one in some) if some else "",
            )
            (folder / "counts.json").write_text(
                json.dumps({"valid": len(valid), "twins": len(some)}) + "\n", encoding="utf-8"
            )

        own = {
            "valid": judged,
            "twins": settings.twins,
            "seed": settings.seed,
            "encoder": settings.encoder,
        }
        self._stage("benchmark", own, fill, beside=("questions.jsonl", "twins.jsonl"))
        counts = json.loads(
            (self._shelf.folder("benchmark") / "counts.json").read_text(encoding="utf-8")
        )
        return int(counts["twins"])

    @cached_property
    def _encoder(self) -> Encoder:
        encoder = ENCODERS.get(self.settings.encoder)()
        return (
            encoder
            if self.mapped is run_in_process
            else BlockEncoder(self.settings.encoder, encoder, self.mapped)
        )

    # -------------------------------------------------------------------------------------------- keeping

    def _stage(
        self,
        name: str,
        made_from_: Mapping[str, Any],
        fill: Callable[[FilePath], None],
        *,
        beside: Sequence[str] = (),
    ) -> str:
        key, done = self._shelf.stage(name, made_from_, fill, beside=beside)
        self.done += [name] if done else []
        return key

    def _records(
        self, name: str, made_from_: Mapping[str, Any], make: Callable[[], Iterator[dict[str, Any]]]
    ) -> str:
        return self._stage(
            name,
            made_from_,
            lambda folder: write_atomically(folder / "records.jsonl", map(_line, make())),
        )

    def _read(self, name: str) -> Iterator[dict[str, Any]]:
        with (self._shelf.folder(name) / "records.jsonl").open(encoding="utf-8") as stream:
            yield from map(json.loads, stream)

    def _in_blocks(
        self,
        what: str,
        do: Callable[[Any, Any], Any],
        who: object,
        items: Sequence[Any],
        own: Mapping[str, Any],
    ) -> Iterator[dict[str, Any]]:
        """The records of all blocks. A model is asked from here, where it is counted what that costs."""
        mapped = self.mapped if _by(who) == _RULES else run_in_process
        blocks = mapped(
            Job(what, do, who, key=json.dumps(own, sort_keys=True)),
            split_into_blocks(items, _AT_ONCE),
        )
        for done, records in enumerate(blocks, 1):
            yield from records
            self._tell(what, min(done * _AT_ONCE, len(items)), len(items))

    def _tell(self, what: str, done: int, total: int | None) -> None:
        if self.progress is not None:
            self.progress(what, done, total)


def _by(stage: object) -> str:
    return str(getattr(stage, "signature", _RULES))


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, sort_keys=True) + "\n"


def _twin(made: GeneratedQuestion, seed: int) -> dict[str, Any]:
    """The same question over a corpus that lacks one of its documents: nothing answers it there."""
    without = seeded_order(
        made.doc_ids, lambda doc_id: f"without {made.question_id} {doc_id}", seed
    )[0]
    return question_to_record(made) | {
        "question_id": f"{made.question_id}-twin",
        "without": without,
        "twin_of": made.question_id,
    }
