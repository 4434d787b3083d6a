"""The workloads that are killed and whose disk fails: what each writes, acknowledges, and must find
afterwards.

A workload hands out requests for the fork server and checks the folder after each run by opening it
again. Every version of everything carries a stamp, so that the check can tell the old state, the
new state, and a violation.
"""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from robustness.fork_server import RunRequest, RunResult
from suffice.datasets.jsonl import document_record
from suffice.engines.embedded import EmbeddedStore
from suffice.errors import NotReadyError
from suffice.library import Library
from suffice.retrieval.corpus import searchable_text
from suffice.retrieval.links import TitleIndex, mention_links
from suffice.types import Document

GROUPS, MEMBERS = 6, 8
WORDS = (
    "amber birch copper delta ember fjord glass harbour iron jade kiln lantern marble "
    "nickel oak pearl quartz river"
).split()
# What a killed run may leave behind. A successful run leaves none of it.
LEFTOVER_PATTERNS = ("*.draft", ".*.old", ".blocks", "unfinished-*.json")


class InvariantError(Exception):
    """A guarantee does not hold; `kind` is the column that counts it."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind


class Workload(Protocol):
    """`next_request` and `check` in turn; `checked` counts acknowledged writes that were found
    again.
    """

    name: str
    folder: Path

    @property
    def checked(self) -> int: ...

    def next_request(self) -> RunRequest: ...

    def check(self, result: RunResult) -> None: ...


def leftover_files(folder: Path) -> list[str]:
    """What killed runs have left below the folder."""
    return sorted(
        str(one.relative_to(folder))
        for pattern in LEFTOVER_PATTERNS
        for one in Path(folder).rglob(pattern)
    )


@contextmanager
def _as_corruption(what: str) -> Iterator[None]:
    """Any other error during a check means corruption: opening a folder needs no repair."""
    try:
        yield
    except InvariantError:
        raise
    except Exception as error:
        raise InvariantError("corrupt", f"{what}: {type(error).__name__}: {error}") from error


# ---- documents with stamps


def group_documents(group: int, stamp: int) -> list[Document]:
    """One group of documents in one version: each names the next and has its own words."""
    made = []
    for n in range(MEMBERS):
        own = " ".join(random.Random(f"{group} {n} {stamp}").choices(WORDS, k=12))
        following = f"Member {(n + 1) % MEMBERS} of Group {group}"
        text = f"After {following}: group{group} stamp{stamp} filler. {own}."
        made.append(
            Document(
                f"g{group}-{n}",
                text,
                title=f"Member {n} of Group {group}",
                entities=(f"stamp{stamp}",),
            )
        )
    return made


def versions_in(library: Library) -> dict[int, int]:
    """The version of every group in the library, after documents, text search, vectors, values and
    links agree.
    """
    documents = list(library.documents())
    if len(documents) != len(library):
        raise InvariantError(
            "corrupt", f"{len(documents)} documents where {len(library)} are counted"
        )
    by_group: dict[int, list[Document]] = {}
    for document in documents:
        by_group.setdefault(int(document.doc_id.split("-")[0][1:]), []).append(document)
    found = {group: _version_of(library, group, members) for group, members in by_group.items()}
    total = len(library.store.search_text(["filler"], k=10_000)[0])
    if total != len(documents):
        raise InvariantError(
            "corrupt", f"the text index finds {total} of {len(documents)} documents"
        )
    _check_vectors(library, documents)
    links = library.links()
    if (
        links.targets.tolist()
        != mention_links(documents, TitleIndex.of(documents)).targets.tolist()
    ):
        raise InvariantError("corrupt", "the links are not those of the documents")
    return found


def _version_of(library: Library, group: int, documents: list[Document]) -> int:
    words = {value for one in documents for value in one.entities}
    if len(words) != 1:
        raise InvariantError("corrupt", f"group {group} mixes {sorted(words)}")
    (word,) = words
    stamp = int(word.removeprefix("stamp"))
    if sorted(documents, key=lambda one: one.doc_id) != group_documents(group, stamp):
        raise InvariantError("corrupt", f"group {group} is not what was written as stamp {stamp}")
    names = {one.doc_id for one in documents}
    if {hit.doc_id for hit in library.store.search_text([word], k=1000)[0]} & names != names:
        raise InvariantError("corrupt", f"group {group} is not found by its words")
    if not names <= set(library.store.lookup("entities", [word])[0]):
        raise InvariantError("corrupt", f"group {group} is not found by its values")
    return stamp


def _check_vectors(library: Library, documents: list[Document]) -> None:
    """Each document is nearest to its own text."""
    if library.encoder is None or not documents:
        return
    vectors = library.encoder.encode([searchable_text(one) for one in documents])
    for document, hits in zip(documents, library.store.search_vectors(vectors, k=1)):
        if (
            not hits
            or hits[0].doc_id != document.doc_id
            or not np.isclose(hits[0].score or 0.0, 1.0, atol=0.01)
        ):
            raise InvariantError("corrupt", f"the vector of {document.doc_id} is not its own")


@dataclass
class WriteLog:
    """What a library must hold: the last acknowledged version of each group (0: deleted), and what
    was in progress.
    """

    held: dict[int, int] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)
    acknowledged: int = 0

    def begin(self, groups: Iterable[int], stamp: int) -> None:
        self.begun = dict.fromkeys(groups, stamp)

    def done(self) -> None:
        self.held |= self.begun
        self.acknowledged += 1
        self.begun = {}

    def compare(self, found: dict[int, int]) -> None:
        for group in {*self.held, *self.begun, *found}:
            allowed = {self.held.get(group, 0), self.begun.get(group, self.held.get(group, 0))}
            if found.get(group, 0) not in allowed:
                kind = "lost" if found.get(group, 0) < max(allowed) else "corrupt"
                raise InvariantError(
                    kind,
                    (
                        f"group {group} has stamp {found.get(group, 0)}, expected one of "
                        f"{sorted(allowed)}"
                    ),
                )
        taken = [group for group, stamp in self.begun.items() if found.get(group, 0) == stamp]
        if taken and len(taken) < len(self.begun):
            raise InvariantError("corrupt", f"of one batch only groups {sorted(taken)} are there")
        self.held = {group: found.get(group, 0) for group in {*self.held, *found}}
        self.begun = {}


def check_library(folder: Path, write_log: WriteLog) -> None:
    with _as_corruption("the library"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # whoever was killed has left the library marked
                library = Library.open(folder)
        except NotReadyError:
            write_log.compare({})
            return
        with library:
            write_log.compare(versions_in(library))


# ---- works


class BuildWorkload:
    """`suffice build` over all groups: into a new folder each time, or over the existing library."""

    def __init__(self, home: Path, *, fresh: bool) -> None:
        self.name = "build, a new library" if fresh else "build, over a library"
        self.folder, self._source, self._fresh = home / "library", home / "documents.jsonl", fresh
        self._write_log, self._stamp = WriteLog(), 0

    @property
    def checked(self) -> int:
        return self._write_log.acknowledged

    def next_request(self) -> RunRequest:
        if self._fresh:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._write_log.held = {}
        self._stamp += 1
        documents = [one for group in range(GROUPS) for one in group_documents(group, self._stamp)]
        self._source.write_text(
            "".join(json.dumps(document_record(one)) + "\n" for one in documents)
        )
        self._write_log.begin(range(GROUPS), self._stamp)
        return RunRequest(("build", str(self._source), "--out", str(self.folder), "--json"))

    def check(self, result: RunResult) -> None:
        if result.acknowledged:
            self._write_log.done()
        check_library(self.folder, self._write_log)


class UpdateWorkload:
    """A writer that adds and deletes groups through a Library until it is killed, and prints what
    it begins and finishes.
    """

    name = "update"

    def __init__(self, home: Path, *, seed: int) -> None:
        self.folder, self._rng = home / "library", random.Random(seed)
        self._write_log, self._stamp = WriteLog(), 0
        Library.build(self.folder, []).close()

    @property
    def checked(self) -> int:
        return self._write_log.acknowledged

    def next_request(self) -> RunRequest:
        return RunRequest(writer=(str(self.folder), self._stamp + 1, self._rng.randrange(2**31)))

    def check(self, result: RunResult) -> None:
        for line in result.out.splitlines():
            word, group, stamp = line.split()
            if word == "begin":
                self._write_log.begin([int(group)], int(stamp))
            else:
                self._write_log.done()
            self._stamp = max(self._stamp, int(stamp))
        check_library(self.folder, self._write_log)
        if any(self._write_log.held.values()) and not (self.folder / "text-1").is_dir():
            raise InvariantError("repair", "the text index had to be made anew")


def write_groups(folder: str, stamp: int, seed: int, turns: int = 8) -> None:
    """Runs in the child: add and delete groups, sometimes compact or follow links; print what was
    acknowledged.
    """
    rng = random.Random(seed)
    with Library.build(folder, (), links=False) as library:  # no warning of an earlier kill
        store = library.store
        assert isinstance(store, EmbeddedStore)
        for at in range(stamp, stamp + turns):
            group, gone = rng.randrange(GROUPS), rng.random() < 0.2
            _report("begin", group, 0 if gone else at)
            if gone:
                library.delete([one.doc_id for one in group_documents(group, at)])
            else:
                library.add(group_documents(group, at))
            _report("done", group, 0 if gone else at)
            if rng.random() < 0.2:
                tidy: list[Callable[[], object]] = [store.compact, library.links]
                rng.choice(tidy)()


def _report(*words: object) -> None:
    print(*words, flush=True)


class FitWorkload:
    """`suffice fit` over the existing gate, each time with another seed, which identifies it."""

    name = "fit"

    def __init__(self, home: Path) -> None:
        self.folder, self._examples = home / "gates" / "gate", home / "examples.jsonl"
        self.folder.parent.mkdir(parents=True)
        _write_labelled_questions(self._examples)
        self._held = self._seed = self.checked = 0

    def next_request(self) -> RunRequest:
        self._seed += 1
        words = (
            "fit",
            "--examples",
            self._examples,
            "--out",
            self.folder,
            "--seed",
            self._seed,
            "--k",
            4,
            "--preset",
            "fast",
            "--json",
        )
        return RunRequest(tuple(map(str, words)))

    def check(self, result: RunResult) -> None:
        from suffice.gate.gate import Gate

        allowed = {self._seed} if result.acknowledged else {self._held, self._seed}
        with _as_corruption("the gate"):
            try:
                gate = Gate.load(self.folder)
                gate.check(
                    "Who taught the teacher of Ada?",
                    ["Ada was taught by Byron.", "Byron was taught by nobody."],
                )
                found = int(gate.card["seed"])
            except NotReadyError:
                found = 0
        if found not in allowed:
            raise InvariantError(
                "lost", f"the gate has seed {found}, expected one of {sorted(allowed)}"
            )
        self.checked += result.acknowledged
        self._held = found


def _write_labelled_questions(path: Path) -> None:
    """Questions whose hits contain all, some or none of what they need."""
    rng = random.Random(7)
    with path.open("w") as stream:
        for n in range(60):
            hits = [
                {
                    "doc_id": f"d{n}-{at}",
                    "title": f"Town {n} {at}",
                    "text": " ".join(rng.choices(WORDS, k=9)),
                    "score": 9.0 - at,
                }
                for at in range(4)
            ]
            needed = [f"d{n}-0", f"d{n}-{1 if n % 2 else 7}"]
            question = f"Which {rng.choice(WORDS)} is near Town {n} 0 and Town {n} 1?"
            stream.write(json.dumps({"question": question, "hits": hits, "gold": needed}) + "\n")


class GradeWorkload:
    """`suffice grade` over one folder with alternating seeds: every file belongs to one of them,
    byte by byte.
    """

    def __init__(
        self, home: Path, references: dict[int, dict[str, bytes]], *, blocks: bool = False
    ) -> None:
        self.name = "grade, with blocks" if blocks else "grade"
        self.folder, self._home, self._blocks = home / "benchmark", home, blocks
        self._references, self.checked, self._runs = references, 0, 0

    def next_request(self) -> RunRequest:
        # A seed stays for two runs, so that the second resumes what the first left.
        self._seed = sorted(self._references)[(self._runs + 1) // 2 % len(self._references)]
        self._runs += 1
        return grade_request(self._home, self.folder, self._seed, blocks=self._blocks)

    def check(self, result: RunResult) -> None:
        found = folder_contents(self.folder)
        for name, content in found.items():
            if not any(content == known.get(name) for known in self._references.values()):
                raise InvariantError("corrupt", f"{name} is neither the old nor the new file")
        if result.status == 0:
            wanted = self._references[self._seed]
            if wrong := sorted(
                name for name in {*found, *wanted} if found.get(name) != wanted.get(name)
            ):
                raise InvariantError(
                    "lost", f"{', '.join(wrong[:4])}: not what seed {self._seed} makes"
                )
            self.checked += 1


def grade_request(home: Path, out: Path, seed: int, *, blocks: bool = False) -> RunRequest:
    corpus = home / "corpus.jsonl"
    if not corpus.exists():
        corpus.write_text(
            "".join(json.dumps(document_record(one)) + "\n" for one in film_documents())
        )
    words: tuple[Any, ...] = (
        "grade",
        corpus,
        "--out",
        out,
        "--seed",
        seed,
        "--per-hop",
        8,
        "--per-form",
        4,
        "--json",
    )
    return RunRequest(
        tuple(map(str, (*words, "--checkpoint", home / "blocks") if blocks else words))
    )


def folder_contents(folder: Path) -> dict[str, bytes]:
    """Every file below the folder that is not hidden, by its path."""
    files = (one for one in sorted(folder.rglob("*")) if one.is_file())
    names = {one: one.relative_to(folder) for one in files}
    return {
        str(name): one.read_bytes()
        for one, name in names.items()
        if not any(part.startswith(".") for part in name.parts)
    }


def film_documents() -> list[Document]:
    """A family of film makers: enough facts for chains, and nothing else."""
    made = []
    for n in range(10):
        made.append(
            (
                f"The Mill {n}",
                f"The Mill {n} is a {1950 + n} Danish drama film directed by Anna Holm{n}.",
            )
        )
        life = (
            f"(born {n + 1} May {1910 + n}) was a Danish film director. She was the "
            f"daughter of Otto Holm{n}."
        )
        made.append((f"Anna Holm{n}", f"Anna Holm{n} {life} She died in Aarhus in {1980 + n}."))
        made.append(
            (
                f"Otto Holm{n}",
                (
                    f"Otto Holm{n} (born 12 January {1870 + n}) was a Danish painter. He was born "
                    f"in Odense."
                ),
            )
        )
    return [Document(f"d{at}", text, title=title) for at, (title, text) in enumerate(made)]


def has_failed(result: RunResult) -> bool:
    """Neither succeeded nor was killed: somebody would have to repair something."""
    return result.status not in (0, -9)


def last_line(result: RunResult) -> str:
    return (result.err.strip().splitlines() or ["nothing on stderr"])[-1][:300]
