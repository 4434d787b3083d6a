"""A corpus and everything needed to search it: the store, its encoder, mention links.

    with Library.build("library", documents) as lib:      # documents in any usual shape
        hits = lib.search("Who taught the teacher of Ada?")
        hits[0].title, hits[0].text                       # pass the hits to a gate as they are

A library is a folder, or an address like qdrant://host:6333/collection. The links of the latter are
built once per generation on each machine and cached there (SUFFICE_CACHE names the folder).

Documents may be written while others read, so the manifest has format and encoder but no file
hashes.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import shutil
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeVar

from suffice.answering.expand import Completion, ExpansionBudget, Follow, expand
from suffice.answering.step import FilterOption
from suffice.engines.library_location import LibraryLocation, ensure_library, open_location
from suffice.engines.qdrant import QdrantStore, is_qdrant_address
from suffice.engines.unfinished import UnfinishedWrite, mark_write, unfinished_writes
from suffice.errors import (
    InputError,
    NotReadyError,
    SufficeError,
    did_you_mean,
    known_arguments,
)
from suffice.gate.hits import normalize_documents
from suffice.integrations import onnx  # noqa: F401 - registers encoders and rerankers
from suffice.jobs import JobRunner
from suffice.protocols import Encoder, Extractor, GateLike, Progress, Retriever, documents_by_id
from suffice.registry import ENCODERS, RETRIEVERS
from suffice.retrieval import builtin  # noqa: F401 - registers our retrievers
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.encoders import BlockEncoder
from suffice.retrieval.filters import VocabularyExtractor, parse_filter
from suffice.retrieval.links import MentionLinks, TitleIndex, mention_links, mention_links_in_blocks
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.name_links import NameLinks, link_names, name_rows
from suffice.retrieval.name_rows import NameRows
from suffice.retrieval.ranking import check_search
from suffice.retrieval.soft_filter import SoftFilter
from suffice.retrieval.store_checks import check_document
from suffice.types import DocId, Document, Extraction, Filter, Hit, LibraryHit

__all__ = ["Library"]

MAX_FILTERED_LINKS = 256  # of one document, checked against a filter
RECENT_DOCUMENTS = 1_000  # added, compared for a shared id
L = TypeVar("L", MentionLinks, NameLinks)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LibraryUpdate:
    """How many documents an update added, replaced, removed and left unchanged."""

    added: int = 0
    replaced: int = 0
    removed: int = 0
    unchanged: int = 0


class Library:
    """Create it with `Library.build` or `Library.open`. Use it in a `with` block, or close it."""

    def __init__(self, location: LibraryLocation) -> None:
        if not isinstance(location, LibraryLocation):
            raise InputError(
                f"Library(...) got a {type(location).__name__}",
                hint=f"open it: Library.open({str(location)!r}), or make it with Library.build",
            )
        self.path, self.store = location.path, location.store
        self.encoder_name = location.encoder
        self._encoder: Encoder | None = None
        self._thread = threading.local()  # .marked: this thread is inside `writing`
        # What was made from one generation; replaced as a whole, because threads share it.
        self._cache: tuple[int, dict[str, Any]] = (-1, {})

    @classmethod
    @known_arguments
    def build(
        cls,
        path: Path | str,
        documents: Iterable[Any],
        *,
        encoder: str | None = "auto",
        links: bool = True,
        rebuild: bool = False,
        progress: Progress | None = None,
        run: JobRunner | None = None,
    ) -> Library:
        """Create a library in a new or empty folder, or add to an existing one.

        Documents have the shapes that `add` accepts; those with a known id are replaced. The
        encoder "auto" is that of the existing library, or wordllama if the extra `vectors` is
        installed; with None, only words are searched. `links` builds mention links now instead of
        at first use. On Qdrant, `rebuild` builds a new library next to the old one and then
        switches over in one step. `run` runs encoding and linking, for example on a
        `suffice.engines.batch.BatchRunner`; the default is this process.
        """
        hint = "Library.build(PATH, documents): the folder of the library comes first"
        if isinstance(documents, str | os.PathLike):
            is_path = isinstance(path, str | os.PathLike)
            what = "are one text, expected a list" if is_path else "and the path are swapped"
            raise InputError(f"the documents {what}", hint=hint)
        _check_type(path, str | os.PathLike, "the library", "a path", hint=hint)
        auto = encoder == "auto"
        if auto:
            encoder = "wordllama" if find_spec("wordllama") else None
        elif encoder is not None:
            hint = "register it: suffice.registry.ENCODERS.add(NAME, make_encoder)"
            _check_type(encoder, str, "the encoder", "a name", hint=hint)
            ENCODERS.get(encoder)  # fail on a wrong name before the work
        if rebuild and not is_qdrant_address(path):
            hint = "build in another folder"
            raise InputError(f"{path} is a folder, which cannot be rebuilt in place", hint=hint)
        ensure_library(path, encoder)
        library = cls(open_location(path))
        if auto and not rebuild:
            encoder = library.encoder_name
        if library.encoder_name != encoder and not rebuild:
            library.close()
            raise InputError(
                f"{path} was built with encoder {library.encoder_name!r}, not {encoder!r}",
                hint=f"pass encoder={library.encoder_name!r}, or build in another place",
            )
        try:
            library.encoder_name = encoder
            # () only creates the library: nothing is marked as written.
            if rebuild or not isinstance(documents, tuple) or documents:
                library.add(documents, replace_all=rebuild, progress=progress, run=run)
            if links:
                library.links(progress=progress, run=run)
        except BaseException:
            library.close()
            raise
        return library

    @classmethod
    @known_arguments
    def open(cls, path: Path | str) -> Library:
        """Open the library in this folder or at this address. Warns about interrupted writes."""
        _check_type(path, str | Path, "the library", "a path", hint="pass the folder of a library")
        library = cls(open_location(path))
        for one in library.unfinished:
            if not one.running:  # a service may open it while others write
                warnings.warn(f"{path}: {one}; next: {one.next_step}", stacklevel=2)
        return library

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<suffice.Library {str(self.path)!r}, encoder {self.encoder_name!r}>"

    def __len__(self) -> int:
        return len(self.store)

    def __bool__(self) -> Literal[True]:
        return True  # truthy even if empty, so that `library and library.store` works

    # ----------------------------------------------------------------------------------- documents

    @contextmanager
    def writing(self, source: str = "", *, resume: str = "") -> Iterator[None]:
        """Mark the library as unfinished until the block ends; `add` and `update` do this
        themselves.

        Name the `source` of the documents and the command to `resume` with, to show if the write is
        interrupted. A store on a server is not marked: there `rebuild` switches in one step.
        """
        if isinstance(self.store, QdrantStore) or getattr(self._thread, "marked", False):
            yield
            return
        self._thread.marked = True
        try:
            with mark_write(self.path, source, resume, generation=lambda: self.store.generation):
                yield
        finally:
            self._thread.marked = False

    @property
    def unfinished(self) -> list[UnfinishedWrite]:
        """Interrupted or running writes: until they finish, documents are missing."""
        return [] if isinstance(self.store, QdrantStore) else unfinished_writes(self.path)

    @known_arguments
    def add(
        self,
        documents: Iterable[Any],
        *,
        replace_all: bool = False,
        progress: Progress | None = None,
        run: JobRunner | None = None,
    ) -> int:
        """Add documents, replacing those with a known id, and return their number.

        A document is a `Document`, a dict with `text`, a string, or a document of LangChain,
        LlamaIndex or Haystack. Without an id, it gets one made from its title and text. Each batch
        is durable on its own. On Qdrant, `replace_all` replaces the whole collection.
        """
        documents = _warn_of_shared_ids(normalize_documents(documents))
        count = 0

        def on_stored(batch: Sequence[DocId]) -> None:
            nonlocal count
            count += len(batch)
            if progress is not None:
                progress("documents", count, None)

        encoder = self.encoder
        if encoder is not None and run is not None:
            encoder = BlockEncoder(str(self.encoder_name), encoder, run)
        encode = None if encoder is None else encoder.encode
        if replace_all and isinstance(self.store, QdrantStore):
            name = self.encoder_name
            return self.store.rebuild(
                documents, encode=encode, encoder=name, acknowledged=on_stored
            )
        with self.writing():
            return self.store.put(documents, encode=encode, acknowledged=on_stored)

    @known_arguments
    def update(
        self,
        documents: Iterable[Any],
        *,
        is_gone: Callable[[Document], bool],
        progress: Progress | None = None,
        run: JobRunner | None = None,
    ) -> LibraryUpdate:
        """Add new documents, replace changed ones, then remove those that are gone.

        A stored document is removed if `is_gone` is true for it and it is not in `documents`.
        Nothing is removed before the new documents are stored. After a crash, update again; what is
        stored is not stored again. Until then, `unfinished` lists the write.
        """
        known = {one.doc_id: _digest(one) for one in self.documents()}
        given: set[DocId] = set()
        counts = Counter[str]()

        def changed() -> Iterator[Document]:
            for one in map(check_document, normalize_documents(documents)):
                given.add(one.doc_id)
                old, new = known.get(one.doc_id), _digest(one)
                is_same = old == new
                counts["unchanged" if is_same else "added" if old is None else "replaced"] += 1
                if not is_same:
                    yield one
                    known[one.doc_id] = new  # compare a repeated id with this version

        with self.writing():
            self.add(changed(), progress=progress, run=run)
            every = self.documents()
            gone = [one.doc_id for one in every if one.doc_id not in given and is_gone(one)]
            if gone:
                counts["removed"] = self.delete(gone)
        return LibraryUpdate(**counts)

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        """Remove documents and return how many; unknown ids are ignored."""
        return self.store.delete(doc_ids)

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        """The documents of these ids, None for an unknown id."""
        if isinstance(doc_ids, str):
            raise InputError("expected a list of ids, found one text", hint=f"write [{doc_ids!r}]")
        return self.store.get(doc_ids)

    def documents(self) -> Iterator[Document]:
        """All documents, in the order of their first insertion."""
        return self.store.documents()

    # -------------------------------------------------------------------------------------- search

    def search(
        self,
        question: str,
        *,
        k: int = 10,
        retriever: str | None = None,
        filter: FilterOption = None,
        strict: bool = False,
        matched: bool = True,
        extractor: Extractor | None = None,
        today: date | None = None,
        **options: Any,
    ) -> tuple[LibraryHit, ...]:
        """The k best hits of one question: see `search_batch`."""
        _check_question(question, hint="use search_batch for several questions")
        return self.search_batch(
            [question],
            k=k,
            retriever=retriever,
            filter=filter,
            strict=strict,
            matched=matched,
            extractor=extractor,
            today=today,
            **options,
        )[0]

    def search_batch(
        self,
        questions: Iterable[str],
        *,
        k: int = 10,
        retriever: str | None = None,
        filter: FilterOption = None,
        strict: bool = False,
        matched: bool = True,
        extractor: Extractor | None = None,
        today: date | None = None,
        **options: Any,
    ) -> list[tuple[LibraryHit, ...]]:
        """The k best hits of each question with their documents, all from one generation.

        `retriever` is a name in `suffice.registry.RETRIEVERS`, by default "hybrid", or "bm25" in a
        library without vectors; `options` are passed to it. A filter is soft unless `strict`: it
        never empties the result. "auto" derives it from each question, with `today` as the clock
        for words like "yesterday", or with an `extractor`. Each hit lists the metadata of the
        question that it matches; `matched=False` skips that, and reading the corpus's vocabulary.
        """
        questions = questions if isinstance(questions, str) else list(questions)
        today = _check_day(today)
        with self.store.pinned():
            searcher = self.retriever(retriever, **options)
            if filter is None and not matched:
                return self._with_documents(searcher.search(questions, k=k))
            store = self.store
            vocabulary = self._cached("vocabulary", lambda: Vocabulary.of_store(store))
            extractor = extractor or VocabularyExtractor(vocabulary, today=today)
            soft = SoftFilter(
                searcher, store, vocabulary, strict=strict, extractor=extractor, documents=True
            )
            filters = _parse_filters(filter, vocabulary, len(questions))
            return self._with_documents(soft.search(questions, k=k, filters=filters))

    def _with_documents(self, found: Sequence[Sequence[Hit]]) -> list[tuple[LibraryHit, ...]]:
        """The same hits with their documents; a filter may have fetched these already."""
        bare = (hit.doc_id for hits in found for hit in hits if not isinstance(hit, LibraryHit))
        documents = documents_by_id(self.get, bare)
        return [
            tuple(
                hit
                if isinstance(hit, LibraryHit)
                else LibraryHit(
                    hit.doc_id,
                    hit.score,
                    hit.parts,
                    hit.matched,
                    hit.relaxed,
                    documents.get(hit.doc_id),
                )
                for hit in hits
            )
            for hits in found
        ]

    def complete(
        self,
        question: str,
        gate: GateLike,
        *,
        k: int = 10,
        budget: ExpansionBudget | None = None,
        retriever: str | None = None,
        filter: FilterOption = None,
        strict: bool | None = None,
        extractor: Extractor | None = None,
        today: date | None = None,
        **options: Any,
    ) -> Completion:
        """Search until the gate finds the evidence complete: at most k documents, within a budget.

        `retriever` is by default "bridge", or "bm25" in a library without vectors. `filter` applies
        to every query of the expansion, and if it is strict also to links. As in `filtered`, a
        filter that you pass is strict by default, and "auto" is soft. The result has each round,
        its verdict and why the search stopped. For many questions, use `suffice.expand`.
        """
        _check_question(question, hint="one question a call")
        if not isinstance(budget or ExpansionBudget(), ExpansionBudget):
            hint = "for example suffice.ExpansionBudget(seconds=2)"
            raise InputError(f"budget is {budget!r:.60}, expected an ExpansionBudget", hint=hint)
        budget = replace(budget or ExpansionBudget(), documents=check_search([], k))
        with self.store.pinned():
            name = retriever or ("bridge" if self.encoder_name else "bm25")
            source: FilteredLibrary | Library = self
            if filter is not None:
                source = self.filtered(
                    filter, question, strict=strict, extractor=extractor, today=today
                )
            searcher = source.retriever(name, **options)
            # A retriever that chooses complementary documents needs no gate to choose, nor links.
            choose = not getattr(searcher, "chooses_sets", False)
            follow: Follow | None = None
            if choose:
                links = self._cached("mentions", self.links) if source is self else source.links()
                follow = links.out
            return expand(
                [question],
                searcher,
                gate,
                source.get,
                follow=follow,
                choose=choose,
                budget=budget,
                clock=time.monotonic,
            )[0]

    def filtered(
        self,
        filter: FilterOption,
        question: str,
        *,
        strict: bool | None = None,
        extractor: Extractor | None = None,
        today: date | None = None,
    ) -> FilteredLibrary:
        """This library as `ask` and `complete` see it under a filter, the same for every query.

        With `strict`, nothing else can be found, followed or fetched; otherwise the filter is soft,
        as in `search_batch`. By default, "auto" is soft, because it is a guess from the question,
        and a filter that you pass is strict.
        """
        vocabulary = self._cached("vocabulary", lambda: Vocabulary.of_store(self.store))
        parsed = _parse_filters(filter, vocabulary, 1)
        if parsed:
            (wanted,) = parsed
        else:
            extractor = extractor or VocabularyExtractor(vocabulary, today=_check_day(today))
            wanted = extractor.extract([question])[0].filter
        is_strict = parsed is not None if strict is None else strict
        return FilteredLibrary(self, wanted, is_strict, vocabulary)

    def retriever(self, name: str | None = None, **options: Any) -> Retriever:
        """The retriever of this name over this library.

        Cached per generation, unless an option is more than a name.
        """
        hint = "for example bm25, hybrid or bridge"
        _check_type(name, str | None, "the retriever", "a name", hint=hint)
        name = name or ("hybrid" if self.encoder_name else "bm25")
        if not all(isinstance(value, str) for value in options.values()):
            return self._make_retriever(name, options)
        what = f"retriever {name} {sorted(options.items())}"
        return self._cached(what, lambda: self._make_retriever(name, options))

    def _cached(self, what: str, make: Callable[[], T]) -> T:
        """A value cached for this generation of the documents; created if needed."""
        generation = self.store.generation
        made_at, made = self._cache
        if generation != made_at:
            made = {}
            self._cache = generation, made
        if what not in made:
            made[what] = make()
        found: T = made[what]
        return found

    def _make_retriever(self, name: str, options: Mapping[str, Any]) -> Retriever:
        factory = RETRIEVERS.get(name)
        parameters = inspect.signature(factory).parameters
        if "encoder" in parameters and "encoder" not in options:
            if self.encoder is None:
                raise NotReadyError(
                    f"retriever {name!r} needs vectors, but this library has no encoder",
                    hint="search with retriever='bm25', or build again with encoder='wordllama'",
                )
            options = {**options, "encoder": self.encoder}
        for part, make in (("links", self.name_links), ("mentions", self.links)):
            if part in parameters and part not in options:
                options = {**options, part: self._cached(part, make)}
        try:
            return factory(self.store, **options)
        except TypeError as error:
            unknown = [option for option in options if option not in parameters]
            if not unknown:
                raise
            # `search` and `complete` pass on what they do not know themselves.
            own = chain.from_iterable(
                inspect.signature(one).parameters for one in (Library.search, Library.complete)
            )
            known = {*list(parameters)[1:], *own} - {"self", "question", "options"}
            hint = did_you_mean(unknown[0], known)
            raise InputError(f"{name} has no option {unknown[0]!r}", hint=hint) from error

    @property
    def encoder(self) -> Encoder | None:
        """The encoder of the vectors, loaded at first use."""
        if self._encoder is None and self.encoder_name is not None:
            self._encoder = ENCODERS.get(self.encoder_name)()
        return self._encoder

    # --------------------------------------------------------------------------------------- links

    def links(
        self, *, progress: Progress | None = None, run: JobRunner | None = None
    ) -> MentionLinks:
        """Which documents mention which, for this generation; built once and stored on disk."""

        def build() -> MentionLinks:
            documents = _with_progress(self.store.documents(), len(self.store), progress)
            if run is None:
                return mention_links(documents, TitleIndex.of(self.store.documents()))
            titles = [(one.doc_id, one.title) for one in self.store.documents()]
            return mention_links_in_blocks(documents, titles, run)

        return self._load_or_build("links", MentionLinks.load, build)

    def name_links(self) -> NameLinks:
        """The names each document bears and mentions, for the bridge retriever; stored on disk."""
        return self._load_or_build("names", NameLinks.load, self._link_names)

    def _link_names(self) -> NameLinks:
        """The name links made from the stored rows of the documents that have not changed."""
        known = None
        for folder in self.path.glob("name-rows-*"):
            with suppress(SufficeError, OSError):  # damaged, or being replaced: read all documents
                known = NameRows.load(folder)
        rows = name_rows(self.store.documents, known=known, get=self.store.get)
        self._save("name-rows", rows, self.store.generation)
        return link_names(rows)

    def _load_or_build(self, what: str, load: Callable[[Path], L], build: Callable[[], L]) -> L:
        with self.store.pinned():
            generation = self.store.generation
            folder = self.path / f"{what}-{generation}"
            if folder.exists():
                # Build again if damaged, or if another process is just removing it.
                with suppress(SufficeError, OSError):
                    return load(folder)
            built = build()
        self._save(what, built, generation)
        return built

    def _save(self, what: str, built: MentionLinks | NameLinks | NameRows, generation: int) -> None:
        """Store what was made from this generation, and remove what was made from older ones."""
        try:
            built.save(self.path / f"{what}-{generation}")
        except OSError:
            return  # a read-only library can still be used
        for old in (*self.path.glob(f"{what}-*"), *self.path.glob(f".{what}-*")):
            number = re.match(rf"\.?{what}-(\d+)", old.name)
            if number and int(number[1]) < generation:
                shutil.rmtree(old, ignore_errors=True)


def _warn_of_shared_ids(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents; at their end, warns of different ones with one id: the last is kept."""
    recent: dict[DocId, str] = {}  # passages that share an id are mostly neighbours
    replaced: list[DocId] = []
    for one in documents:
        if recent.get(one.doc_id, one.text) != one.text:
            replaced.append(one.doc_id)
        if len(recent) == RECENT_DOCUMENTS:
            recent.clear()
        recent[one.doc_id] = one.text
        yield one
    if replaced:
        count = len(replaced)
        found = f"{count:,} documents replace" if count > 1 else "1 document replaces"
        found += f" another one with the same id, the first {replaced[0]!r:.200}"
        warnings.warn(f"{found}: give each its own", stacklevel=2)


def _digest(document: Document) -> bytes:
    record = json.dumps(asdict(document), sort_keys=True, default=str)
    return hashlib.sha256(record.encode("utf-8", "surrogatepass")).digest()


def _check_day(today: object) -> date | None:
    """`today`; InputError unless it is a date. Of a datetime, the day counts."""
    if isinstance(today, datetime):
        return today.date()
    if today is None or isinstance(today, date):
        return today
    hint = "for example today=datetime.date(2023, 12, 1)"
    raise InputError(f"today is {today!r:.60}, expected a date", hint=hint)


def _check_type(value: object, kind: Any, what: str, expected: str, *, hint: str) -> None:
    if not isinstance(value, kind):
        raise InputError(f"{what} is {value!r:.80}, expected {expected}", hint=hint)


def _check_question(question: object, *, hint: str) -> None:
    if not isinstance(question, str):
        kind = type(question).__name__
        raise InputError(f"the question is a {kind}, expected a text", hint=hint)


def _parse_filters(
    filter: FilterOption | str, vocabulary: Vocabulary, questions: int
) -> list[Filter] | None:
    """The same filter for every question; None for "auto"."""
    if isinstance(filter, str):
        if filter != "auto":
            hint = 'give a mapping, or "auto" to derive it from the question'
            raise InputError(f"filter is {filter!r}", hint=hint)
        return None
    parsed = (
        filter
        if isinstance(filter, Filter)
        else parse_filter({} if filter is None else filter, vocabulary)
    )
    return [parsed] * questions


@dataclass(frozen=True, slots=True)
class _SameFilter:
    """An extractor that returns the filter of the original question for every query."""

    filter: Filter

    def extract(self, questions: Sequence[str]) -> list[Extraction]:
        return [Extraction(self.filter, by="the question")] * len(questions)


@dataclass(frozen=True, slots=True)
class FilteredLibrary:
    """A library under one filter."""

    library: Library
    filter: Filter
    strict: bool
    vocabulary: Vocabulary

    def retriever(self, name: str | None = None, **options: Any) -> Retriever:
        return SoftFilter(
            self.library.retriever(name, **options),
            self.library.store,
            self.vocabulary,
            strict=self.strict,
            extractor=_SameFilter(self.filter),
        )

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        """The documents of these ids, None if unknown or filtered out."""
        found = self.library.get(doc_ids)
        may_read = self._passing(found)
        return [one if one is not None and one.doc_id in may_read else None for one in found]

    def links(self) -> FilteredLinks:
        links = self.library._cached("mentions", self.library.links)
        return FilteredLinks(self, links.out)

    def _passing(self, documents: Iterable[Document | None]) -> set[DocId]:
        known = {one.doc_id: one for one in documents if one is not None}
        if not (self.strict and self.filter and known):
            return set(known)
        passes = Corpus(known.values()).mask(self.filter).tolist()
        return {doc_id for doc_id, passing in zip(known, passes) if passing}


@dataclass(frozen=True, slots=True)
class FilteredLinks:
    """Mention links to the documents that pass the filter."""

    library: FilteredLibrary
    follow: Follow

    def out(self, doc_ids: Sequence[DocId]) -> list[list[DocId]]:
        """The documents that each document links to, if they pass the filter."""
        found = [list(islice(out, MAX_FILTERED_LINKS)) for out in self.follow(doc_ids)]
        known = documents_by_id(self.library.get, chain.from_iterable(found))
        return [[doc_id for doc_id in out if doc_id in known] for out in found]


def _with_progress(
    documents: Iterable[Document], total: int, progress: Progress | None
) -> Iterator[Document]:
    for done, document in enumerate(documents, 1):
        if progress is not None and (done % 1000 == 0 or done == total):
            progress("links", done, total)
        yield document
