"""Fuzzing targets: files that suffice wrote and somebody else may have changed.

Whoever changes a file of an artefact can also update its hash in the manifest, so the manifest here
always matches the changed file, unless the manifest itself is the input. The gate is small: the
shipped records, trees with one split, a vocabulary of three. The word table has its own target.
What loads is then used.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.small_world import BRIDGE, FILMS, TinyLibrary, Wants, clock_of

from robustness.hostile_files import tree_model
from robustness.mutations import Input, Seed
from robustness.targets import OpenTarget, Target, TargetFiles, file_target
from robustness.text_targets import ScriptedModel
from suffice.answering.ask import ask
from suffice.answering.budget import Budget
from suffice.answering.planner import ExemplarBank
from suffice.answering.traces import format_trace, read_traces, replay, trace_to_json
from suffice.engines.batch.checkpoint import Checkpoint
from suffice.evaluation.compare import compare_runs, load_run
from suffice.evaluation.gate_runs import GateRun, gate_summary
from suffice.evaluation.report import Section, Table
from suffice.evaluation.retrieval_runs import RetrievalRun, SystemResult
from suffice.gate.gate import SHIPPED_MODELS, Gate
from suffice.gate.hits import normalize_hits
from suffice.gate.model import BinaryClassifier
from suffice.gate.question import WordTable, parse_question
from suffice.gate.stuffing_filter import FILTER_COLUMNS, StuffingFilter
from suffice.library import Library
from suffice.retrieval.bridge import TreeRanker
from suffice.retrieval.candidate_pool import FEATURES as RANKED
from suffice.retrieval.encoders import WordLlamaEncoder
from suffice.retrieval.links import MentionLinks, TitleIndex, mention_links
from suffice.retrieval.name_links import NameLinks, link_names, name_links, name_rows
from suffice.retrieval.name_rows import NameRows
from suffice.storage import MANIFEST, open_artefact
from suffice.storage.artefacts import OnnxTrees
from suffice_research.study import Study

__all__ = ["ARTEFACT_TARGETS", "rehash_manifest", "small_gate"]

QUESTION = "Which film came out first, The Navigator or Metropolis?"
HITS = [
    {
        "doc_id": "n",
        "title": "The Navigator",
        "text": "The Navigator is a 1924 comedy.",
        "score": 8.0,
    },
    "Metropolis is of 1927.",
]


def rehash_manifest(folder: Path, part: str) -> None:
    """Write the hash of the changed file into the manifest, as an attacker would."""
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    manifest["files"][part] = sha256((folder / part).read_bytes()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def _artefact(
    name: str,
    says: str,
    make: Callable[[Path], None],
    use: Callable[[Path], object],
    *,
    parts: Sequence[str] = (),
) -> Target:
    """A target over the files of an artefact folder; with `parts`, only those are mutated."""

    @contextmanager
    def opened(folder: Path) -> Iterator[OpenTarget]:
        make(folder / "made")
        home = folder / "made"
        found = sorted(str(one.relative_to(home)) for one in home.rglob("*") if one.is_file())
        seeds = tuple(Seed(one, (home / one).read_bytes()) for one in parts or found)
        files, manifest = TargetFiles(home, seeds), (home / MANIFEST).read_bytes()

        def read(given: Input) -> bool:
            files.put(given)
            if given.part != MANIFEST:
                (home / MANIFEST).write_bytes(manifest)
                rehash_manifest(home, given.part)
            use(home)
            return True

        yield OpenTarget(seeds, read)

    return Target(name, "artefacts", says, opened)


# ---- gates


def small_gate(folder: Path) -> None:
    """The shipped gate, cut down as far as it still loads."""
    shipped = SHIPPED_MODELS / "gate-fast"
    folder.mkdir()
    question = json.loads((shipped / "question.json").read_text(encoding="utf-8"))
    weights, grams = np.load(shipped / "question.npy", allow_pickle=False), len(question["idf"])
    np.save(
        folder / "question.npy",
        np.concatenate([weights[:4], weights[grams:]])[:, : len(question["targets"])],
    )
    records = {
        name: json.loads((shipped / f"{name}.json").read_text(encoding="utf-8")) for name in RECORDS
    }
    records["question"] |= {"grams": question["grams"][:3], "idf": question["idf"][:4]}
    records["calibration"]["interval"] |= {
        "scores": [-1.0, 1.0],
        "low": [0.0, 0.2, 0.8],
        "high": [0.3, 0.6, 1.0],
    }
    for name, record in records.items():
        (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    model = records["model"]
    columns = {
        **model["submodels"],
        **{name: model["ensemble"][name] for name in ("boosted", "extra")},
    }
    for name, record in columns.items():
        (folder / f"{name}.onnx").write_bytes(tree_model(record["columns"]))
    manifest = json.loads((shipped / MANIFEST).read_text(encoding="utf-8"))
    manifest["settings"]["seen"] = manifest["settings"].get("seen", [])[:2]
    manifest["files"] = {one.name: sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()}
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


RECORDS = ("calibration", "policy", "profile", "familiarity", "model", "question")


@cache
def _words() -> WordTable:
    return WordTable.load()


def _gate(folder: Path) -> None:
    with patch.object(WordTable, "load", return_value=_words()):
        gate = Gate.load(folder)
    gate.check(QUESTION, HITS)


def _trees(folder: Path, file: Path, given: Input) -> None:
    """A tree model as ONNX: what onnxruntime loads, and what it returns."""
    OnnxTrees(given.content, columns=3).p(np.zeros((2, 3), dtype=np.float32))


def _words_made(folder: Path) -> None:
    from suffice.gate.question import WORD_TABLE_KIND, WORD_TABLE_VERSION
    from suffice.storage import new_artefact

    with new_artefact(folder, kind=WORD_TABLE_KIND, version=WORD_TABLE_VERSION) as draft:
        np.save(draft / "words.npy", np.array([b"ada", b"taught"]))
        np.save(draft / "rarity.npy", np.array([0.9, 0.2]))
        np.save(draft / "vectors.npy", np.ones((2, 4), dtype=np.float32))


def _ranker_made(folder: Path) -> None:
    TreeRanker(tree_model(len(RANKED))).save(folder, card={"seed": 1})


_known_words = cache(WordTable.load)


def _filter_made(folder: Path) -> None:
    judge = BinaryClassifier(
        FILTER_COLUMNS, 0.5, OnnxTrees(tree_model(FILTER_COLUMNS), columns=FILTER_COLUMNS)
    )
    StuffingFilter(judge, judge, likely=0.25, suspect=0.1, sure=0.5).save(folder, card={}, seed=1)


def _filter_used(folder: Path) -> None:
    words = _known_words()
    hits, question = normalize_hits(QUESTION, HITS), parse_question(QUESTION, words)
    StuffingFilter.load(folder).filter_hits([hits], [question], words)


# ---- libraries


def _links_made(folder: Path) -> None:
    mention_links(FILMS, TitleIndex.of(FILMS)).save(folder)


def _links_used(folder: Path) -> None:
    links = MentionLinks.load(folder)
    links.out(["dog"]), links.into(["storm"])


def _names_made(folder: Path) -> None:
    name_links(lambda: iter(FILMS)).save(folder)


def _names_used(folder: Path) -> None:
    NameLinks.load(folder).position.get("dog")


def _rows_made(folder: Path) -> None:
    name_rows(lambda: iter(FILMS)).save(folder)


def _rows_used(folder: Path) -> None:
    link_names(NameRows.load(folder)).position.get("dog")


def _library_made(folder: Path) -> None:
    Library.build(folder, FILMS).close()


@cache
def _encoder_model() -> object:
    return WordLlamaEncoder()._model


def _library_used(folder: Path) -> None:
    with (
        patch.object(WordLlamaEncoder, "_model", _encoder_model()),
        Library.open(folder) as library,
    ):
        library.search("Dog Law", k=2)


def _plain_made(folder: Path) -> None:
    from suffice.storage import new_artefact

    with new_artefact(folder, kind="gate", version=1, settings={"a": [1]}, seed=3) as draft:
        (draft / "part.json").write_text("{}", encoding="utf-8")


def _plain_used(folder: Path) -> None:
    open_artefact(folder, kind="gate", version=1, rebuild="again")


# ---- runs, traces, blocks


def _runs() -> tuple[Seed, ...]:
    common: dict[str, Any] = {
        "dataset": "d",
        "question_ids": ("q1", "q2", "q3"),
        "kinds": ("a", None, "a"),
    }
    judged = GateRun(
        **common, retriever="bm25", k=2, gate="default", hops=(2, 3, 2), complete=(True, False, True), p=(0.9, 0.2, 0.6),
        actions=("answer", "abstain", "expand"), labels=(("x",), (), ("y",)), baselines={"top score": (0.5, 0.4, 0.7)},
    )  # fmt: skip
    found = SystemResult("bm25", ((1, 2), (3,), ()), (7.5, 1.0, -math.inf), {})
    searched = RetrievalRun(**common, ks=(2, 4), gold=(2, 1, 0), systems=(found,))
    table = Table("T", ("a", "b"), (("x", 0.5), ("y", None)), "note")
    study = Study("magaf", "Study", 1, {}, {}, (Section("S", (table,), "says"),))
    return tuple(Seed("run.json", one.to_json().encode()) for one in (judged, searched, study))


def _opened_run(folder: Path, file: Path, given: Input) -> None:
    run: object = load_run(file)
    if isinstance(run, GateRun) and len(given.content) % 8 == 0:
        gate_summary(run)
    if len(given.content) % 8 == 1 and not isinstance(run, Study):
        compare_runs({"one": run})


@cache
def _journey() -> bytes:
    mumbles = ScriptedModel('{"answer": "Ermengarde of Tours", "sentences": [1, 2]}', "mumbles")
    made = ask(
        BRIDGE,
        TinyLibrary(),
        GATE,
        mumbles,
        budget=Budget(seconds=60, rounds=2),
        clock=clock_of(0, 0.1, 0.25),
    )
    return trace_to_json(made).encode()


GATE = Wants("lothair", "a charter")


@contextmanager
def _traces(folder: Path) -> Iterator[OpenTarget]:
    """Traces are read, formatted and replayed."""
    seeds = (Seed("t.jsonl", _journey() + b"\n", lines=True),)
    files = TargetFiles(folder, seeds)

    def read(given: Input) -> bool:
        for trace in read_traces(files.put(given)):
            format_trace(trace)
            replay(trace, TinyLibrary(), GATE)
        return True

    yield OpenTarget(seeds, read)


def _kept(folder: Path, file: Path, given: Input) -> bool:
    try:
        Checkpoint(folder).read(file)
    except LookupError:
        return False  # said so, and made anew
    return True


def _blocks() -> tuple[Seed, ...]:
    stream = io.BytesIO()
    np.save(stream, np.arange(6).reshape(2, 3))
    contents = {b"array": stream.getvalue(), b"json": b'{"a": [1, 2]}'}
    return tuple(
        Seed("block-1", b"\n".join((sha256(content).hexdigest().encode(), kind, content)))
        for kind, content in contents.items()
    )


def _keys(folder: Path, file: Path, given: Input) -> bool:
    from suffice.service.keys import ApiKeys

    keys = ApiKeys(file)
    keys.all()
    return keys.authenticate("suf_" + "0" * 12 + "_" + "A" * 43) is not None


def _settings(folder: Path, file: Path, given: Input) -> None:
    from suffice.service.settings import Settings

    Settings.from_json(given.content.decode("utf-8", "surrogateescape")).validate()


def _told_settings() -> bytes:
    from suffice.service.settings import Settings

    return Settings(library="films", keys=None).as_json().encode()


def _key_file() -> bytes:
    token = "suf_" + "0" * 12 + "_" + "A" * 43
    key = {
        "key_id": "0" * 12,
        "name": "all",
        "scopes": ["read"],
        "sha256": sha256(token.encode()).hexdigest(),
        "made_at": "2026-01-01",
    }
    return json.dumps({"version": 1, "keys": [key]}).encode()


EXEMPLAR = {
    "question": "Who taught Ada's teacher?",
    "steps": ["Who taught Ada?", "Who taught #1?"],
    "kind": "bridge",
    "hops": 2,
}

ARTEFACT_TARGETS: Sequence[Target] = (
    _artefact("manifests", ("the manifest of any artefact, and a " "file of one"), _plain_made, _plain_used),
    _artefact("gates", "every file of a gate; what loads also checks", small_gate, _gate),
    file_target("tree models", "artefacts", ("ONNX bytes as a gate holds " "them"), (Seed("m.onnx", tree_model(3)),), _trees),
    _artefact("words", "the word table", _words_made, lambda folder: WordTable.load(folder).vectors([[b"ada"]])),
    _artefact("rankers", "a bridge ranker", _ranker_made, lambda folder: TreeRanker.load(folder).p(np.zeros((1, len(RANKED))))),
    _artefact("stuffing filters", ("the stuffing filter of a " "hardened gate"), _filter_made, _filter_used),
    _artefact("mention links", "who names whom", _links_made, _links_used),
    _artefact("name links", "names and where they stand", _names_made, _names_used),
    _artefact("name rows", "what documents contribute to them", _rows_made, _rows_used),
    _artefact("library manifests", ("what a library says of " "itself"), _library_made, _library_used, parts=(MANIFEST,)),
    file_target("runs", "artefacts", ("runs and studies, as `suffice report` " "reads them"), _runs(), _opened_run),
    Target("traces", "artefacts", "traces: read, drawn, and walked again", _traces),
    file_target(
        "exemplars", "artefacts", "a bank of plans",
        (Seed("bank.jsonl", f"{json.dumps(EXEMPLAR)}\n{json.dumps({**EXEMPLAR, 'question': 'Who?'})}".encode(), lines=True),),
        lambda folder, file, given: ExemplarBank.load(file).exemplars != (),
    ),
    file_target("blocks", "artefacts", "finished blocks of a batch", _blocks(), _kept),
    file_target("keys", "artefacts", "the file of API keys", (Seed("keys.json", _key_file()),), _keys),
    file_target("settings", "artefacts", ("what a worker of the service " "is told"), (Seed("s.json", _told_settings()),), _settings),
)  # fmt: skip
