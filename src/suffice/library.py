"""A corpus with everything that searches it: the store, the encoder that made its vectors, mention links.

    with Library.build("library", documents) as lib:
        hits = lib.search("Who taught the teacher of Ada?")

It is a folder on disk, or an address like qdrant://host:6333/collection. Links of the latter are kept in a folder of this
machine's cache (SUFFICE_CACHE names another), where each machine makes them once a generation.

A library is alive: documents come and go while others read, so its manifest names format and encoder but hashes no file.
No algorithm lives here: only which parts belong together.
"""

from __future__ import annotations

import inspect
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from suffice.answering.expand import Completion, ExpansionBudget, expand
from suffice.engines.library_location import LibraryLocation, ensure_library, open_location
from suffice.engines.qdrant import QdrantStore, is_qdrant_address
from suffice.errors import InputError, NotReadyError, SufficeError
from suffice.integrations import onnx, set_scorer  # noqa: F401 - importing them registers encoders, rerankers, bridge-quality
from suffice.jobs import JobRunner
from suffice.protocols import Encoder, Extractor, GateLike, Progress, Retriever, documents_by_id
from suffice.registry import ENCODERS, RETRIEVERS
from suffice.retrieval import builtin  # noqa: F401 - importing it registers our retrievers
from suffice.retrieval.dense import BlockEncoder
from suffice.retrieval.filter_extraction import VocabularyExtractor
from suffice.retrieval.filters import parse_filter
from suffice.retrieval.links import MentionLinks, TitleIndex, mention_links, mention_links_in_blocks
from suffice.retrieval.metadata import Vocabulary
from suffice.retrieval.name_links import NameLinks, name_links
from suffice.retrieval.soft_filter import PComplete, SoftFilter, StepwiseFilter
from suffice.types import DocId, Document, Filter, Hit

if TYPE_CHECKING:
    from suffice.gate.gate import Gate

__all__ = ["Library"]

L = TypeVar("L", MentionLinks, NameLinks)
T = TypeVar("T")


class Library:
    """Made by `Library.build` or `Library.open`; use it in a `with` block, or close it."""

    def __init__(self, home: LibraryLocation) -> None:
        self.path, self.store, self.encoder_name = home.path, home.store, home.encoder
        self._encoder: Encoder | None = None
        self._made: tuple[int, dict[str, Any]] = (
            -1,
            {},
        )  # of which generation; replaced as one, for threads share it

    @classmethod
    def build(
        cls,
        path: Path | str,
        documents: Iterable[Document],
        *,
        encoder: str | None = "wordllama",
        links: bool = True,
        rebuild: bool = False,
        progress: Progress | None = None,
        mapped: JobRunner | None = None,
    ) -> Library:
        """Make a library in a new or empty folder, or add to the one that is there, replacing documents of the same id.

        Without an encoder only words are searched. `links` finds who mentions whom at the end; otherwise the first use does.
        On Qdrant, `rebuild` makes it anew beside the old one, which serves until the new one takes its place in one step.
        `mapped` is where texts are encoded and links found, like a `suffice.engines.batch.BatchRunner`; here unless told.
        """
        if encoder is not None:
            ENCODERS.get(encoder)  # a wrong name is said before the work, not after it
        if rebuild and not is_qdrant_address(path):
            raise InputError(
                f"{path} is a folder, which is not rebuilt in place", hint="build in another folder"
            )
        ensure_library(path, encoder)
        library = cls.open(path)
        if library.encoder_name != encoder and not rebuild:
            library.close()
            raise InputError(
                f"{path} was built with encoder {library.encoder_name!r}, not {encoder!r}",
                hint=f"pass encoder={library.encoder_name!r}, or build in another place",
            )
        try:
            library.encoder_name = encoder
            library.add(documents, anew=rebuild, progress=progress, mapped=mapped)
            if links:
                library.links(progress=progress, mapped=mapped)
        except BaseException:
            library.close()
            raise
        return library

    @classmethod
    def open(cls, path: Path | str) -> Library:
        """The library in this folder, or at this address."""
        return cls(open_location(path))

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.store)

    def __bool__(self) -> Literal[True]:
        return True  # an empty library is a library: `library and library.store` must not depend on its size

    # ------------------------------------------------------------------------------------------------- documents

    def add(
        self,
        documents: Iterable[Document],
        *,
        anew: bool = False,
        progress: Progress | None = None,
        mapped: JobRunner | None = None,
    ) -> int:
        """Add documents, replacing those with the same id, in batches that are durable one by one; returns how many.

        `anew` puts them in the place of all that are there, as `rebuild` in `Library.build` says.
        """
        done = 0

        def count(batch: Sequence[DocId]) -> None:
            nonlocal done
            done += len(batch)
            if progress is not None:
                progress("documents", done, None)

        encoder = self.encoder
        if encoder is not None and mapped is not None:
            encoder = BlockEncoder(str(self.encoder_name), encoder, mapped)
        encode = None if encoder is None else encoder.encode
        if anew and isinstance(self.store, QdrantStore):
            return self.store.rebuild(
                documents, encode=encode, encoder=self.encoder_name, acknowledged=count
            )
        return self.store.put(documents, encode=encode, acknowledged=count)

    def delete(self, doc_ids: Iterable[DocId]) -> int:
        """Remove documents; unknown ids are passed over; returns how many went."""
        return self.store.delete(doc_ids)

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        """The documents of these ids, None where there is none."""
        return self.store.get(doc_ids)

    def documents(self) -> Iterator[Document]:
        """All documents, in the order of their first insertion."""
        return self.store.documents()

    # ---------------------------------------------------------------------------------------------------- search

    @overload
    def search(
        self,
        questions: str,
        *,
        k: int = ...,
        retriever: str | None = ...,
        filter: Filter | Mapping[str, Any] | Literal["auto"] | None = ...,
        strict: bool = ...,
        matched: bool = ...,
        extractor: Extractor | None = ...,
        gate: Gate | None = ...,
        target: float = ...,
        today: date | None = ...,
        **options: Any,
    ) -> tuple[Hit, ...]: ...
    @overload
    def search(
        self,
        questions: Sequence[str],
        *,
        k: int = ...,
        retriever: str | None = ...,
        filter: Filter | Mapping[str, Any] | Literal["auto"] | None = ...,
        strict: bool = ...,
        matched: bool = ...,
        extractor: Extractor | None = ...,
        gate: Gate | None = ...,
        target: float = ...,
        today: date | None = ...,
        **options: Any,
    ) -> list[tuple[Hit, ...]]: ...
    def search(
        self,
        questions: str | Sequence[str],
        *,
        k: int = 10,
        retriever: str | None = None,
        filter: Filter | Mapping[str, Any] | Literal["auto"] | None = None,
        strict: bool = False,
        matched: bool = True,
        extractor: Extractor | None = None,
        gate: Gate | None = None,
        target: float = 0.7,
        today: date | None = None,
        **options: Any,
    ) -> tuple[Hit, ...] | list[tuple[Hit, ...]]:
        """The k best hits of one question, or of each of several; all from one generation of the library.

        `retriever` is a name of `suffice.registry.RETRIEVERS`: by default "hybrid", or "bm25" in a library without vectors;
        `options` are that retriever's own. A filter is soft unless `strict`: it never empties the result. "auto" makes it from
        what each question names, with `today` as the clock for "yesterday", or by an `extractor`. With a `gate` it is relaxed
        step by step while p_complete stays below `target`. Each hit says which metadata of the question it carries;
        `matched=False` spares that, and with it reading the vocabulary of the corpus.
        """
        asked = [questions] if isinstance(questions, str) else questions
        with self.store.pinned():
            searcher = self.retriever(retriever, **options)
            if filter is None and not matched:
                found = searcher.search(asked, k=k)
            else:
                vocabulary = self._of_this_generation(
                    "vocabulary", lambda: Vocabulary.of_store(self.store)
                )
                extractor = extractor or VocabularyExtractor(vocabulary, today=today)
                soft: Retriever = SoftFilter(
                    searcher, self.store, vocabulary, strict=strict, extractor=extractor
                )
                if gate is not None:
                    soft = StepwiseFilter(
                        soft, self.store, extractor, self._judge(gate), target=target
                    )
                found = soft.search(
                    asked, k=k, filters=_parse_filters(filter, vocabulary, len(asked))
                )
        return found[0] if isinstance(questions, str) else found

    def _judge(self, gate: Gate) -> PComplete:
        def p_complete(
            questions: Sequence[str], found: Sequence[tuple[Hit, ...]]
        ) -> Sequence[float]:
            documents = documents_by_id(self.get, (hit.doc_id for hits in found for hit in hits))
            p: list[float] = gate.probabilities(zip(questions, found), documents=documents).tolist()
            return p

        return p_complete

    def complete(
        self,
        question: str,
        gate: GateLike,
        *,
        k: int = 10,
        budget: ExpansionBudget | None = None,
        retriever: str | None = None,
        **options: Any,
    ) -> Completion:
        """Search until the gate says that the evidence is complete: at most k documents, and no further than the budget allows.

        `retriever` is by default "bridge", or "bm25" in a library without vectors. What was held in each round, what the gate
        said of it and why it ended stand in the result. For many questions at once: `suffice.answering.expand.expand`.
        """
        if not isinstance(question, str):
            raise InputError(
                f"the question is a {type(question).__name__}, expected a text",
                hint="one question a call",
            )
        allowed = replace(budget or ExpansionBudget(), documents=k)
        with self.store.pinned():
            searcher = self.retriever(
                retriever or ("bridge" if self.encoder_name else "bm25"), **options
            )
            links = self._of_this_generation("mentions", self.links)
            return expand(
                [question],
                searcher,
                gate,
                self.get,
                follow=links.out,
                budget=allowed,
                clock=time.monotonic,
            )[0]

    def retriever(self, name: str | None = None, **options: Any) -> Retriever:
        """The retriever of this name over this library. Without options it is made once a generation."""
        name = name or ("hybrid" if self.encoder_name else "bm25")
        if options:
            return self._make(name, options)
        return self._of_this_generation(f"retriever {name}", lambda: self._make(name, {}))

    def _of_this_generation(self, what: str, make: Callable[[], T]) -> T:
        """What was made from this generation of the documents, made now if it was not."""
        key = self.store.generation
        made_at, made = self._made
        if key != made_at:
            made = {}
            self._made = key, made
        if what not in made:
            made[what] = make()
        found: T = made[what]
        return found

    def _make(self, name: str, options: Mapping[str, Any]) -> Retriever:
        factory = RETRIEVERS.get(name)
        taken = inspect.signature(factory).parameters
        if "encoder" in taken and "encoder" not in options:
            if self.encoder is None:
                raise NotReadyError(
                    f"retriever {name!r} needs vectors, and this library was built without an encoder",
                    hint="search with retriever='bm25', or build again with encoder='wordllama'",
                )
            options = {**options, "encoder": self.encoder}
        for part, known in (("links", self.name_links), ("mentions", self.links)):
            if part in taken and part not in options:
                options = {**options, part: self._of_this_generation(part, known)}
        try:
            return factory(self.store, **options)
        except TypeError as error:
            if all(option in taken for option in options):
                raise
            raise InputError(
                f"retriever {name!r}: {error}", hint=f"its options: {', '.join(list(taken)[1:])}"
            ) from error

    @property
    def encoder(self) -> Encoder | None:
        """What made the vectors, loaded when first needed."""
        if self._encoder is None and self.encoder_name is not None:
            self._encoder = ENCODERS.get(self.encoder_name)()
        return self._encoder

    # ----------------------------------------------------------------------------------------------------- links

    def links(
        self, *, progress: Progress | None = None, mapped: JobRunner | None = None
    ) -> MentionLinks:
        """Who mentions whom, at the present generation: read where it is known, otherwise found and kept for the next time."""

        def find() -> MentionLinks:
            documents = _with_progress(self.store.documents(), len(self.store), progress)
            if mapped is None:
                return mention_links(documents, TitleIndex.of(self.store.documents()))
            titles = [(one.doc_id, one.title) for one in self.store.documents()]
            return mention_links_in_blocks(documents, titles, mapped)

        return self._kept("links", MentionLinks.load, find)

    def name_links(self) -> NameLinks:
        """Which names each document bears and mentions, for the bridge retriever; kept like the links."""
        return self._kept("names", NameLinks.load, lambda: name_links(self.store.documents))

    def _kept(self, what: str, load: Callable[[Path], L], find: Callable[[], L]) -> L:
        with self.store.pinned():
            generation = self.store.generation
            folder = self.path / f"{what}-{generation}"
            if folder.exists():
                # Derived, so found again where it is damaged, or where another process has gone on and is removing it.
                with suppress(SufficeError, OSError):
                    return load(folder)
            found = find()
        try:
            found.save(folder)
        except OSError:
            return found  # a library that cannot be written is still one that can be read
        for old in (*self.path.glob(f"{what}-*"), *self.path.glob(f".{what}-*")):
            number = re.match(rf"\.?{what}-(\d+)", old.name)
            if number and int(number[1]) < generation:
                shutil.rmtree(old, ignore_errors=True)
        return found


def _parse_filters(
    filter: Filter | Mapping[str, Any] | str | None, vocabulary: Vocabulary, questions: int
) -> list[Filter] | None:
    """The same filter for every question; None where each makes its own."""
    if isinstance(filter, str):
        if filter != "auto":
            raise InputError(
                f"filter is {filter!r}",
                hint='give a mapping, or "auto" for what the question names',
            )
        return None
    return [
        filter if isinstance(filter, Filter) else parse_filter(filter or {}, vocabulary)
    ] * questions


def _with_progress(
    documents: Iterable[Document], total: int, progress: Progress | None
) -> Iterator[Document]:
    for done, document in enumerate(documents, 1):
        if progress is not None and (done % 1000 == 0 or done == total):
            progress("links", done, total)
        yield document
