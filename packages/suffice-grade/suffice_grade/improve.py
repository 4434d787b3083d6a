"""The improvement loop of a corpus: questions ▸ labels ▸ gate ▸ evaluation ▸ difficulty ▸ report.

    found = improve(corpus, Path("improved"), LoopSettings(labels=Path("labels.jsonl")))
    found.results["gate"], found.next_steps

Each stage is an artefact in the folder, keyed by its settings and inputs, and reruns only when
these change. The shipped gate is adapted to labels, and is replaced only if the new gate is better.
Questions generated from the corpus measure the gate and the retriever; no gate learns from them,
because they are not the user's questions. With at least `MIN_TO_SPLIT` labels, a third of them, by
a hash of their text, is never used for training: the evaluation uses these.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from suffice.datasets.gold import GoldQuestion, draw_key
from suffice.datasets.labels import Label, read_labels, read_questions, to_examples
from suffice.errors import InputError, NotReadyError, did_you_mean
from suffice.evaluation.adaptation import MIN_LABELS, adapt_to_labels
from suffice.evaluation.gate_evaluation import require_fit_extra, with_seen_questions
from suffice.evaluation.gate_runs import GateRun, gate_figures
from suffice.evaluation.reading_cache import CachedReader
from suffice.evaluation.report import require_report_extra, write_page
from suffice.evaluation.result_files import result_text, source_commit
from suffice.evaluation.searching import RetrievedQuestion, search_questions
from suffice.evaluation.shadow_report import label_rows, write_labels
from suffice.evaluation.verdict_log import guard_outcome, logged_verdict
from suffice.gate.gate import GATE_KIND, STANDARD, Gate
from suffice.gate.gate_ref import DEFAULT, GateRef, gate_identity
from suffice.gate.hits import normalize_hits
from suffice.gate.training import LabelledQuestion
from suffice.jobs import split_into_blocks
from suffice.protocols import Progress, Retriever, Store, documents_by_id
from suffice.registry import ENCODERS
from suffice.storage import (
    BadRecords,
    check_replaceable,
    package_versions,
    readable_file,
    sha256_of,
    write_atomically,
)
from suffice.storage.artefacts import read_json
from suffice.text import tokens
from suffice.types import LOW_FAMILIARITY, DocId, Document, Verdict
from suffice_grade.improve_report import (
    BEFORE_AFTER,
    GATE_DIR,
    LABEL_FILE,
    LABELS,
    LIST_FILE,
    MADE,
    QUESTIONS_DIR,
    REPORT_FILE,
    LoopRecord,
    loop_page,
    loop_summary,
    next_steps,
)
from suffice_grade.maker import GradeMaker
from suffice_grade.pipeline import NoQuestionsError
from suffice_grade.stage_cache import StageCache, check_folder

__all__ = ["STAGES", "Improvement", "LoopSettings", "SearchedCorpus", "improve"]

# A third of 60 leaves 20 labels to test on and 40 to learn from. With fewer, the test figures are
# meaningless, or too few labels are left to learn from.
MIN_TO_SPLIT, TEST_EVERY = 60, 3
MIN_MADE = 60  # generated questions; with fewer, figures on them are meaningless
TO_LABEL = 50  # questions
RESULT = "result.json"  # of a stage
_BLOCK = 64
Result = dict[str, Any]


@dataclass(frozen=True)
class SearchedCorpus:
    """Documents, and the retriever over them whose hits the gate judges."""

    name: str  # as used in the loop's command
    library: str  # as used in other commands
    store: Store
    retriever: Retriever
    retriever_name: str


@dataclass(frozen=True, slots=True)
class LoopSettings:
    k: int = 10
    preset: str = STANDARD
    questions: int = 400  # generated questions to search and read, at most
    labels: Path | None = None  # in addition to those in the folder
    ask: Path | None = None  # questions from which to choose those to label
    encoder: str = "wordllama"  # for the generated questions and their difficulty
    stage: str | None = None  # run only this one; the others must be up to date
    restart: bool = False  # also rerun what is up to date
    seed: int = 42
    parse: bool = False  # generate questions from a dependency parse, too

    def __post_init__(self) -> None:
        if self.stage is not None and self.stage not in STAGES:
            known = did_you_mean(self.stage, STAGES)
            raise InputError(f"no stage is named {self.stage!r}", hint=known)
        if self.questions < MIN_MADE:
            raise InputError(
                f"{self.questions} made questions are too few to measure a gate",
                hint=f"pass --questions {MIN_MADE}, or more",
            )


@dataclass(frozen=True)
class Improvement:
    """The results of the stages that were run or up to date."""

    out: Path
    done: tuple[str, ...]  # stages that were run this time
    results: Mapping[str, Result]
    summary: tuple[str, ...] = ()
    next_steps: tuple[tuple[str, str], ...] = ()  # a description, and a command or ""

    def as_json(self) -> Result:
        stages = {name: "done" if name in self.done else "up to date" for name in self.results}
        steps = [{"what": what, "command": command} for what, command in self.next_steps]
        report = self.out / REPORT_FILE if "report" in self.results else None
        return {
            "out": str(self.out),
            "stages": stages,
            **{name: result for name, result in self.results.items() if name != "report"},
            "report": None if report is None else str(report),
            "summary": list(self.summary),
            "next": steps,
        }


def improve(
    corpus: SearchedCorpus,
    out: Path,
    settings: LoopSettings | None = None,
    *,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Improvement:
    """Run the loop, or one stage of it; resume an interrupted run. Labels are never removed.

    NotReadyError if a required stage is not up to date.
    """
    require_fit_extra()
    require_report_extra()
    loop = _Loop(corpus, Path(out), settings or LoopSettings(), progress, say)
    return loop.run()


def check_out(out: Path) -> None:
    """InputError if the folder holds anything but the files of a loop, and labels."""
    usage = "suffice improve LIBRARY --out DIR"
    check_folder(out, "improve", usage, may_hold=(LABEL_FILE, LIST_FILE))


@dataclass(frozen=True, slots=True)
class _Example:
    question_id: str
    labelled: LabelledQuestion

    @property
    def is_test(self) -> bool:
        """From a hash of the text alone, so independent of other questions and of the seed."""
        words = " ".join(tokens(self.labelled.question))
        return draw_key(0, f"test {words}")[0] % TEST_EVERY == 0


def _split(examples: Sequence[_Example]) -> tuple[list[_Example], list[_Example]]:
    """Labels to learn from, and labels to test on; none to test on if there are few."""
    if len(examples) < MIN_TO_SPLIT:
        return list(examples), []
    return [x for x in examples if not x.is_test], [x for x in examples if x.is_test]


@dataclass(frozen=True, slots=True)
class _Labels:
    examples: tuple[_Example, ...]
    left_out: tuple[str, ...]
    bad: BadRecords
    digest: str


@dataclass
class _Loop:
    """One run in one folder. Each stage writes its files into a folder and returns a result."""

    corpus: SearchedCorpus
    out: Path
    settings: LoopSettings
    progress: Progress | None
    say: Callable[[str], None]
    results: dict[str, Result] = field(default_factory=dict)
    _reader: CachedReader | None = None

    def __post_init__(self) -> None:
        check_out(self.out)
        for given in filter(None, (self.settings.ask, self.settings.labels)):
            readable_file(given)  # fail before the work
        gate = self.out / GATE_DIR
        check_replaceable(gate, kind=GATE_KIND)
        most = self.shipped.card["k"]
        if not 1 <= self.settings.k <= most:
            hint = f"pass --k {most}, or fewer"
            raise InputError(f"k is {self.settings.k}, but the gate reads {most} hits", hint=hint)
        self._cache = StageCache(self.out, "improve")

    @cached_property
    def maker(self) -> GradeMaker:
        return GradeMaker()

    def run(self) -> Improvement:
        only = self.settings.stage
        needed = STAGES if only is None else _needed_by(only)
        for name in (one for one in STAGES if one in needed):
            stage, wanted = _STAGES[name], only in (None, name)
            if wanted and (self.settings.restart or (name == LABELS and self._list_is_gone)):
                self._forget(name)
            settings = {"versions": package_versions().get("suffice"), **stage.settings(self)}
            options: Any = {"after": stage.after, "outputs": stage.outputs}
            if wanted:
                self._cache.stage(name, settings, self._filler(stage), **options)
                self.say(f"{name}: {'done' if name in self._cache.done else 'up to date'}")
            elif not self._cache.is_cached(name, settings, **options):
                raise NotReadyError(
                    f"the stage '{only}' needs the stage '{name}', which was not run with these "
                    "settings and inputs",
                    hint=f"run it first: {self.command('--stage', name)}",
                )
            self.results[name] = read_json(self._cache.folder(name) / RESULT)
        record = self.record
        summary, steps = tuple(loop_summary(record)), tuple(next_steps(record))
        return Improvement(self.out, tuple(self._cache.done), self.results, summary, steps)

    def _filler(self, stage: _Stage) -> Callable[[Path], None]:
        def fill(folder: Path) -> None:
            write_atomically(folder / RESULT, result_text(stage.make(self, folder)))

        return fill

    def _forget(self, name: str) -> None:
        shutil.rmtree(self._cache.folder(name), ignore_errors=True)
        if name == QUESTIONS_DIR and (self.out / QUESTIONS_DIR / "stages").is_dir():
            shutil.rmtree(self.out / QUESTIONS_DIR, ignore_errors=True)

    def command(self, *more: str) -> str:
        """This loop as a command, with all options that differ from their default."""
        words = ["suffice", "improve", self.corpus.name, "--out", str(self.out)]
        words += ["--retriever", self.corpus.retriever_name]
        for name in ("k", "preset", "questions", "labels", "ask", "seed"):
            value = getattr(self.settings, name)
            if value != getattr(LoopSettings(), name):
                words += [f"--{name}", str(value)]
        words += ["--parse"] if self.settings.parse else []
        return shlex.join([*words, *more])

    # -------------------------------------------------------------------------------- inputs

    @cached_property
    def shipped(self) -> Gate:
        return self._with_cached_reader(Gate.load(preset=self.settings.preset))

    def _with_cached_reader(self, gate: Gate) -> Gate:
        """The gate with a cached reader: both gates read the same lists, so each is read once."""
        reader = gate.readers.reader
        if reader is None:
            return gate
        if self._reader is None:
            self._reader = CachedReader(reader)
        return replace(gate, readers=replace(gate.readers, reader=self._reader))

    @cached_property
    def corpus_digest(self) -> str:
        digest = hashlib.sha256()
        for at, document in enumerate(self.corpus.store.documents(), start=1):
            record = json.dumps(asdict(document), sort_keys=True, default=str)
            digest.update(record.encode("utf-8", "surrogatepass"))
            if self.progress is not None and at % 1000 == 0:
                self.progress("reading documents", at, len(self.corpus.store))
        return digest.hexdigest()

    @property
    def search_settings(self) -> Result:
        """What the hits and the shipped gate's verdicts depend on."""
        preset = self.settings.preset
        return {
            "corpus": self.corpus_digest,
            "retriever": self.corpus.retriever_name,
            "k": self.settings.k,
            "gate": [preset, GateRef.named(DEFAULT, preset).digest],
        }

    @property
    def asked_digest(self) -> str | None:
        given = self.settings.ask
        return None if given is None else sha256_of(readable_file(given))

    @property
    def enough_made(self) -> bool:
        return bool(self.results[QUESTIONS_DIR]["made"] >= MIN_MADE)

    @cached_property
    def retrieved(self) -> tuple[RetrievedQuestion, ...]:
        """The generated questions, or a sample of them, with their twins and hits."""
        questions = list(self.maker.open(self.out / QUESTIONS_DIR).questions())
        order = sorted(
            {one.question.text for one in questions},
            key=lambda text: draw_key(self.settings.seed, text),
        )
        drawn = set(order[: self.settings.questions])
        return search_questions(
            [one for one in questions if one.question.text in drawn],
            self.corpus.retriever,
            self.corpus.store,
            self.settings.k,
            progress=self.progress,
        )

    @cached_property
    def made(self) -> list[_Example]:
        if not self.enough_made:
            return []
        found = self.maker.label(self.out / QUESTIONS_DIR, self.retrieved, self.settings.k)
        ids = [one.question.question_id for one in self.retrieved]
        return [_Example(*pair) for pair in zip(ids, found, strict=True)]

    @cached_property
    def labels(self) -> _Labels:
        """The labels from the list, and from the folder's file or the given one; the last wins."""
        bad, said = BadRecords(skip=True), dict[Any, Label]()
        given = self.settings.labels
        files = [self.out / LIST_FILE, self.out / LABEL_FILE if given is None else given]
        for file in files:
            if file == given or (file.is_file() and file.stat().st_size):
                said |= {(x.question, x.hit_ids): x for x in read_labels(file, bad=bad)}
        bare = (hit["id"] for x in said.values() for hit in x.hits if "text" not in hit)
        documents = documents_by_id(self.corpus.store.get, bare)
        known, gone = list[Label](), list[str]()
        for one in said.values():
            if all("text" in hit or hit["id"] in documents for hit in one.hits):
                known.append(one)
            else:
                gone.append(f"{one.where}: a hit is not in the library")
        taken = to_examples(known, k=self.shipped.card["k"], documents=documents)
        content = [[x.question, x.hits, x.is_complete, sorted(x.known_gold or ())] for x in known]
        text = json.dumps(content, sort_keys=True, default=str)
        ids = (f"label-{at}" for at in range(1, len(taken.examples) + 1))
        return _Labels(
            tuple(_Example(*pair) for pair in zip(ids, taken.examples)),
            (*taken.left_out, *gone),
            bad,
            hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        )

    @property
    def _list_is_gone(self) -> bool:
        return self.settings.ask is not None and not (self.out / LIST_FILE).exists()

    @property
    def record(self) -> LoopRecord:
        """What the report shows, from the files of the stages."""
        folder = self._cache.folder("evaluation")
        runs: dict[str, dict[str, GateRun]] = {}
        for source, result in self.results.get("evaluation", {"sets": {}})["sets"].items():
            files = {when: folder / f"{source}-{when}.json" for when in BEFORE_AFTER}
            runs[source] = {when: GateRun.load(files[when]) for when in files if when in result}
        return LoopRecord(
            library=self.corpus.library,
            retriever=self.corpus.retriever_name,
            out=self.out,
            settings={name: str(value) for name, value in asdict(self.settings).items() if value},
            command=self.command(),
            results=self.results,
            runs=runs,
        )

    # ----------------------------------------------------------------------------------- the stages

    def make_questions(self, folder: Path) -> Result:
        made, count = self.out / QUESTIONS_DIR, len(self.corpus.store)
        try:
            built = self.maker.build(
                self.corpus.store.documents(),
                made,
                seed=self.settings.seed,
                encoder=self.settings.encoder,
                parse=self.settings.parse,
                progress=self.progress,
            )
        except NoQuestionsError as error:
            for name in ("questions.jsonl", "twins.jsonl"):  # left from another corpus
                (made / name).unlink(missing_ok=True)
            return {"documents": count, "made": 0, "why": f"{error}; {error.hint}"}
        few = f"fewer than {MIN_MADE} are too few to measure a gate"
        return {
            "documents": count,
            "made": built.questions,
            "twins": built.twins,
            "lookalikes": built.lookalikes,
            "by_hops": {str(hops): n for hops, n in built.by_hops.items()},
            "by_kind": dict(built.by_kind),
            "dropped": dict(built.dropped),
            "why": few if built.questions < MIN_MADE else "",
        }

    def make_list(self, folder: Path) -> Result:
        """Choose the most informative questions to label, with the retriever's hits."""
        path = self.out / LIST_FILE
        if self.settings.ask is None:
            return {"asked": 0, "to_label": 0}
        if path.exists() and read_labels(path, bad=BadRecords(skip=True)):
            raise InputError(
                f"{path} has labels, which a new list would replace",
                hint=f"add its lines to {self.out / LABEL_FILE}, remove it, and run this again",
            )
        known = {one.labelled.question for one in self.labels.examples}
        asked = [one for one in read_questions(self.settings.ask) if one not in known]
        rows, gate = [], self.shipped
        options: Any = {"acted": False, "by": "improve", "gate": gate_identity(gate)}
        for block in split_into_blocks(asked, _BLOCK):
            found = self.corpus.retriever.search(block, k=self.settings.k)
            ids = (hit.doc_id for hits in found for hit in hits)
            documents = documents_by_id(self.corpus.store.get, ids)
            verdicts = gate.check_batch(zip(block, found), documents=documents, explain=False)
            for question, hits, verdict in zip(block, found, verdicts, strict=True):
                shown = [
                    {"id": hit.doc_id, "title": one.title, "text": one.text, "score": hit.score}
                    for hit in hits
                    if (one := documents.get(hit.doc_id)) is not None
                ]
                outcome = guard_outcome(verdict)
                rows.append(logged_verdict(question, shown, verdict, outcome=outcome, **options))
            if self.progress is not None:
                self.progress("checking what was asked", len(rows), len(asked))
        path.unlink(missing_ok=True)
        chosen = label_rows(rows, TO_LABEL) if rows else []
        if chosen:
            write_labels(chosen, path)
        return {"asked": len(asked), "to_label": len(chosen)}

    def make_gate(self, folder: Path) -> Result:
        """Adapt to labels; keep the shipped gate unless the adapted one is better."""
        labels, notes = self.labels, list[str]()
        chosen: Result = {"source": None, "learned": 0, "held_out": 0, "account": None}
        adapted: Gate | None = None
        if len(labels.examples) >= MIN_LABELS:
            learn, test = _split(labels.examples)
            lists = [one.labelled for one in learn]
            options: Any = {"seed": self.settings.seed, "progress": self.progress}
            try:
                found = adapt_to_labels(self.shipped, lists, **options)
            except InputError as error:  # for example, all labels are equal
                notes.append(f"{error}; {error.hint}")
            else:
                notes.append(found.verdict)
                account = {**found.as_json(), "outlook": found.outlook, "promise": found.promise}
                chosen = {"source": LABELS, "learned": len(learn), "held_out": len(test)}
                chosen["account"] = account
                if found.is_better:
                    adapted = with_seen_questions(found.gate, [one.question for one in lists])
        gate = self.shipped if adapted is None else adapted
        gate.save(self.out / GATE_DIR)
        return {
            "labels": len(labels.examples),
            "complete": sum(map(self._is_complete, labels.examples)),
            "left_out": list(labels.left_out),
            "unreadable": labels.bad.count,
            "first_unreadable": next(iter(labels.bad.examples), ""),
            **chosen,
            "adapted": adapted is not None,
            "notes": notes,
            "policy": gate.policy.words,
        }

    def _verdicts(
        self,
        gate: Gate,
        lists: Sequence[tuple[str, Any]],
        documents: Mapping[DocId, Document],
        what: str,
    ) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for block in split_into_blocks(lists, _BLOCK):
            verdicts += gate.check_batch(block, documents=documents, explain=False)
            if self.progress is not None:
                self.progress(what, len(verdicts), len(lists))
        return verdicts

    def make_evaluation(self, folder: Path) -> Result:
        """The shipped gate and the new one on questions that neither was trained on."""
        gates = {BEFORE_AFTER[0]: self.shipped}
        if self.results["gate"]["adapted"]:
            gates[BEFORE_AFTER[1]] = self._with_cached_reader(Gate.load(self.out / GATE_DIR))
        sets: dict[str, Result] = {}
        for source, test in ((LABELS, _split(self.labels.examples)[1]), (MADE, self.made)):
            for when, gate in gates.items() if test else ():
                run = self._evaluate(gate, source, test)
                run.save(folder / f"{source}-{when}.json")
                figures = {name: asdict(one) for name, one in gate_figures(run).items()}
                sets.setdefault(source, {"questions": len(test)})[when] = figures
        return {"sets": sets}

    def _evaluate(self, gate: Gate, source: str, examples: Sequence[_Example]) -> GateRun:
        documents = {k: v for one in examples for k, v in one.labelled.documents.items()}
        lists = [(one.labelled.question, one.labelled.hits) for one in examples]
        verdicts = self._verdicts(gate, lists, documents, f"testing on {source}")
        unfamiliar = sum(one.familiarity < LOW_FAMILIARITY for one in verdicts)
        return GateRun(
            dataset=source,
            retriever=self.corpus.retriever_name,
            k=self.settings.k,
            gate=gate_identity(gate),
            question_ids=tuple(one.question_id for one in examples),
            kinds=tuple(one.labelled.kind for one in examples),
            hops=tuple(int(one.labelled.hops or 0) for one in examples),
            complete=tuple(map(self._is_complete, examples)),
            p=tuple(one.p_complete for one in verdicts),
            actions=tuple(str(one.action) for one in verdicts),
            policy=gate.policy.words,
            seed=self.settings.seed,
            settings={"unfamiliar": unfamiliar},
            packages=package_versions(),
            commit=source_commit(),
        )

    def make_difficulty(self, folder: Path) -> Result:
        """Where the retriever misses evidence, by hops and by distance of the evidence."""
        if not self.enough_made:
            return {"questions": 0, "findings": []}
        twins = self.maker.missing_documents(self.out / QUESTIONS_DIR)
        asked = [one for one in self.retrieved if one.question.question_id not in twins]
        ids = (doc_id for one in asked for doc_id in sorted(one.gold.doc_ids))
        documents = documents_by_id(self.corpus.store.get, ids).values()
        encoder = ENCODERS.get(self.settings.encoder)()
        gold = [GoldQuestion(one.question, one.gold) for one in asked]
        errors = {one.question.question_id: float(not one.complete) for one in asked}
        name, seed = self.corpus.retriever_name, self.settings.seed
        found = self.maker.difficulty(name, gold, documents, errors, encoder=encoder, seed=seed)
        title = f"Where {name} misses evidence in its first {self.settings.k} hits"
        shown = [{type(one).__name__: asdict(one)} for one in found.shown]
        rows = found.by_hops.items()
        return {
            "questions": len(asked),
            "error": asdict(found.error),
            "by_hops": {str(hops): {"n": n, "error": asdict(error)} for hops, (n, error) in rows},
            "findings": list(found.findings),
            "title": title,
            "shown": shown,
        }

    def _is_complete(self, example: _Example) -> bool:
        one, k = example.labelled, self.shipped.card["k"]
        return one.is_complete(normalize_hits(one.question, one.hits, documents=one.documents, k=k))

    def make_report(self, folder: Path) -> Result:
        write_page(loop_page(self.record), self.out / REPORT_FILE)
        return {"path": REPORT_FILE}


@dataclass(frozen=True, slots=True)
class _Stage:
    settings: Callable[[_Loop], Result]
    make: Callable[[_Loop, Path], Result]
    after: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


_STAGES = {
    QUESTIONS_DIR: _Stage(
        lambda loop: {
            "corpus": loop.corpus_digest,
            "seed": loop.settings.seed,
            "encoder": loop.settings.encoder,
            "parse": loop.settings.parse,
            "code": loop.maker.digest,
        },
        _Loop.make_questions,
        outputs=(f"{QUESTIONS_DIR}/questions.jsonl", f"{QUESTIONS_DIR}/twins.jsonl"),
    ),
    LABELS: _Stage(
        lambda loop: {
            **loop.search_settings,
            "ask": loop.asked_digest,
        },
        _Loop.make_list,
    ),
    GATE_DIR: _Stage(
        lambda loop: {
            **loop.search_settings,
            "labels": loop.labels.digest,
            "seed": loop.settings.seed,
        },
        _Loop.make_gate,
        outputs=(f"{GATE_DIR}/manifest.json",),
    ),
    "evaluation": _Stage(
        lambda loop: {"questions": loop.settings.questions},
        _Loop.make_evaluation,
        after=(QUESTIONS_DIR, GATE_DIR),
    ),
    "difficulty": _Stage(
        lambda loop: {**loop.search_settings, "questions": loop.settings.questions},
        _Loop.make_difficulty,
        after=(QUESTIONS_DIR,),
    ),
    "report": _Stage(
        lambda loop: {"command": loop.command()},
        _Loop.make_report,
        after=(LABELS, GATE_DIR, "evaluation", "difficulty"),
        outputs=(REPORT_FILE,),
    ),
}
STAGES = tuple(_STAGES)


def _needed_by(name: str) -> set[str]:
    """The stage, and the stages whose results it uses."""
    return {name}.union(*map(_needed_by, _STAGES[name].after))
