"""Contract tests for stores, retrievers and encoders, built-in or from plug-ins.

    from suffice.testing import check_store
    def test_my_store(tmp_path):
        check_store(lambda: MyStore(tmp_path / "fresh"))     # a new, empty store at every call

Each check raises AssertionError with what it expected and found. No test framework is needed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError
from suffice.gate.training import LabelledQuestion
from suffice.protocols import Encoder, Retriever, Store, StoreQuery
from suffice.retrieval.memory import MemoryStore
from suffice.retrieval.name_links import link_names, name_links, name_rows
from suffice.types import Condition, DocId, Document, Field, Filter, Hit

__all__ = [
    "STORE_CHECKS",
    "VILLAGE",
    "VILLAGE_VECTORS",
    "StoreCheck",
    "check_encoder",
    "check_retriever",
    "check_store",
    "sample_questions",
]

MakeStore = Callable[[], Store]

VILLAGE = (
    Document("ada", "Ada Lovelace wrote the first program for the engine.", "Ada Lovelace", "The Verge", "technology",
             date(2023, 10, 7), ("Ada Lovelace", "Analytical Engine")),
    Document("babbage", "Charles Babbage designed the engine in London.", "Charles Babbage", "BBC", "technology",
             date(2023, 11, 1), ("Charles Babbage", "Analytical Engine"), extra={"pages": 3}),
    Document("byron", "Lord Byron, the poet, was the father of Ada.", "Lord Byron", "The Verge", "books",
             date(2023, 12, 24), ("Lord Byron", "Ada Lovelace")),
    Document("river", "The river Thames flows through London.", "Thames", None, None, None, (), parent="rivers"),
    Document("tokyo", "東京は日本の首都です。", "東京", "NHK", "world", date(2024, 1, 15), ("東京",)),
    Document("arabic", "القاهرة عاصمة مصر", "القاهرة", "BBC", "world", date(2024, 1, 15), ("القاهرة",)),
)  # fmt: skip


# Every document is nearest to itself.
VILLAGE_VECTORS: npt.NDArray[np.float32] = np.eye(len(VILLAGE), 8, dtype=np.float32)


class StoreCheck(Protocol):
    """One requirement for stores; AssertionError if it fails."""

    __name__: str

    def __call__(self, make: MakeStore) -> None: ...


def check_store(make: MakeStore) -> None:
    """Run all STORE_CHECKS. `make` returns a new, empty store at every call."""
    for check in STORE_CHECKS:
        check(make)


def _expect(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def _expect_input_error(what: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except InputError:
        return
    raise AssertionError(f"{what}: expected an InputError")


def _ids(hits: Sequence[Hit]) -> list[DocId]:
    return [hit.doc_id for hit in hits]


def _text_ids(store: Store, question: str, k: int) -> list[DocId]:
    return _ids(store.search_text([question], k=k)[0])


def _vector_ids(store: Store, vectors: Any, k: int) -> list[DocId]:
    return _ids(store.search_vectors(vectors, k=k)[0])


def _filter(field: Field, operator: Any, *values: str) -> Filter:
    return Filter((Condition(field, operator, values),))


def _village(make: MakeStore) -> Store:
    store = make()
    store.put(VILLAGE, VILLAGE_VECTORS)
    return store


def _an_empty_store_answers(make: MakeStore) -> None:
    store = make()
    _expect("length", len(store), 0)
    _expect("get", store.get(["ada"]), [None])
    _expect("documents", list(store.documents()), [])
    _expect("text search", store.search_text(["engine", ""], k=5), [(), ()])
    _expect("vector search", store.search_vectors(np.ones((2, 8), np.float32), k=5), [(), ()])
    _expect("lookup", store.lookup("source", ["BBC"]), [()])
    _expect("values", store.values("entities"), {})
    _expect("delete", store.delete(["ada"]), 0)
    _expect("putting nothing", store.put([]), 0)
    _expect("generation", store.generation, make().generation)


def _documents_come_back_as_they_went_in(make: MakeStore) -> None:
    store = make()
    _expect("count", store.put(VILLAGE), len(VILLAGE))
    _expect("length", len(store), len(VILLAGE))
    _expect("documents", list(store.documents()), list(VILLAGE))
    wanted = ["tokyo", "nobody", "ada", "tokyo"]
    _expect("get", store.get(wanted), [VILLAGE[4], None, VILLAGE[0], VILLAGE[4]])
    _expect("extra", dict((store.get(["babbage"])[0] or VILLAGE[0]).extra), {"pages": 3})


def _replacing_keeps_the_place_and_forgets_the_old_text(make: MakeStore) -> None:
    store = _village(make)
    before = store.generation
    new = Document("ada", "A zeppelin over Berlin.", source="Spiegel", entities=("Zeppelin",))
    _expect("count", store.put([new]), 1)
    _expect("generation grew", store.generation > before, True)
    _expect("length", len(store), len(VILLAGE))
    _expect("order", [one.doc_id for one in store.documents()], [one.doc_id for one in VILLAGE])
    _expect("get", store.get(["ada"]), [new])
    _expect("old text", _text_ids(store, "Lovelace program", 9), [])
    _expect("new text", _text_ids(store, "zeppelin", 9), ["ada"])
    found = store.lookup("entities", ["Ada Lovelace", "Zeppelin"])
    _expect("old value", found, [("byron",), ("ada",)])
    sources = store.values("source")
    _expect("values", "Spiegel" in sources and sources["The Verge"], 1)
    _expect("its vector is gone", "ada" in _vector_ids(store, VILLAGE_VECTORS[:1], 9), False)
    store.put([new], VILLAGE_VECTORS[5:6])
    tied = _vector_ids(store, VILLAGE_VECTORS[5:6], 2)
    _expect("its new vector ties, earlier place first", tied, ["ada", "arabic"])


def _the_last_of_two_with_one_id_is_kept(make: MakeStore) -> None:
    store = make()
    twins = [Document("a", "first"), Document("b", "between"), Document("a", "second")]
    _expect("count", store.put(twins, np.eye(3, dtype=np.float32)), 3)
    _expect("documents", list(store.documents()), [twins[2], twins[1]])
    _expect("vector", _vector_ids(store, np.eye(3, dtype=np.float32)[2:], 1), ["a"])
    _expect("old text", store.search_text(["first"], k=3), [()])


def _deleted_documents_are_gone_everywhere(make: MakeStore) -> None:
    store = _village(make)
    before = store.generation
    _expect("count", store.delete(["byron", "nobody", "byron", "river"]), 2)
    _expect("generation grew", store.generation > before, True)
    _expect("length", len(store), len(VILLAGE) - 2)
    _expect("get", store.get(["byron"]), [None])
    _expect("text", _text_ids(store, "poet Thames", 9), [])
    nearest = sorted(_vector_ids(store, VILLAGE_VECTORS[2:3], 9))
    _expect("vectors", nearest, ["ada", "arabic", "babbage", "tokyo"])
    _expect("lookup", store.lookup("entities", ["Lord Byron", "Ada Lovelace"]), [(), ("ada",)])
    _expect("values", store.values("category"), {"technology": 2, "world": 2})
    store.put([VILLAGE[2]])
    _expect("back at the end", [one.doc_id for one in store.documents()][-1], "byron")
    _expect("found again", _text_ids(store, "poet", 9), ["byron"])


def _text_search_ranks_by_shared_words(make: MakeStore) -> None:
    store = _village(make)
    engine, nothing, stop, cjk, rtl = store.search_text(
        ["The first ENGINE program?", "zzz", "the of and", "日本", "مصر"], k=9
    )
    _expect("best first", _ids(engine), ["ada", "babbage"])
    scores = [hit.score for hit in engine]
    _expect("scores fall", scores == sorted(scores, key=lambda score: -(score or 0)), True)
    _expect("no shared word", _ids(nothing), [])
    _expect("stop words only", _ids(stop), [])
    _expect("Japanese", _ids(cjk), ["tokyo"])
    _expect("Arabic", _ids(rtl), ["arabic"])
    _expect("titles count", _text_ids(store, "Thames", 1), ["river"])
    _expect("no questions", store.search_text([], k=3), [])
    _expect("k above the size", len(store.search_text(["London engine Ada"], k=10**9)[0]), 4)


def _ties_keep_the_order_of_insertion(make: MakeStore) -> None:
    store = make()
    names = [f"d{n:02d}" for n in range(40)]
    for start in (0, 20):
        batch = names[start : start + 20]
        same = [Document(name, "the same words here") for name in batch]
        store.put(same, np.ones((20, 4), np.float32))
    store.put([Document("d03", "the same words here")], np.ones((1, 4), np.float32))
    _expect("text", _text_ids(store, "same words", 25), names[:25])
    _expect("vectors", _vector_ids(store, np.ones((1, 4)), 25), names[:25])


def _vector_search_is_exact(make: MakeStore) -> None:
    store = make()
    random = np.random.default_rng(7)
    vectors = random.standard_normal((300, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    store.put([Document(f"d{n}", "") for n in range(200)], vectors[:200])
    store.put([Document("without a vector", "text")])
    questions = vectors[200:]
    exact = questions @ vectors[:200].astype(np.float16).astype(np.float32).T
    for row, hits in zip(exact, store.search_vectors(questions, k=5)):
        best = np.argsort(-row, kind="stable")[:5]
        _expect("nearest", _ids(hits), [f"d{at}" for at in best])
        scores = [hit.score or 0.0 for hit in hits]
        _expect("scores", bool(np.allclose(scores, row[best], atol=1e-4)), True)
    _expect("k above the size", len(store.search_vectors(questions[:1], k=10**6)[0]), 200)
    _expect("no questions", store.search_vectors(np.empty((0, 16), np.float32), k=5), [])


FILTERED: tuple[tuple[Filter, set[DocId]], ...] = (
    (Filter(), {"ada", "babbage", "byron", "river", "tokyo", "arabic"}),
    (_filter("source", "$in", "The Verge", "NHK"), {"ada", "byron", "tokyo"}),
    (_filter("source", "$in", "the verge"), set()),
    (_filter("source", "$nin", "The Verge"), {"babbage", "river", "tokyo", "arabic"}),
    (_filter("category", "$in", "technology"), {"ada", "babbage"}),
    (_filter("category", "$nin", "technology", "world"), {"byron", "river"}),
    (_filter("entities", "$in", "Ada Lovelace"), {"ada", "byron"}),
    (_filter("entities", "$in", "東京", "القاهرة"), {"tokyo", "arabic"}),
    (_filter("entities", "$nin", "Analytical Engine"), {"byron", "river", "tokyo", "arabic"}),
    (_filter("published_at", "$in", "2023-10-07", "2024-01-15"), {"ada", "tokyo", "arabic"}),
    (_filter("published_at", "$nin", "2024-01-15"), {"ada", "babbage", "byron", "river"}),
    (_filter("published_at", "$gte", "2023-11-01"), {"babbage", "byron", "tokyo", "arabic"}),
    (_filter("published_at", "$lte", "2023-11-01"), {"ada", "babbage"}),
    (_filter("published_at", "$gte", "9999-12-31"), set()),
    (_filter("source", "$in"), set()),
    (_filter("source", "$nin"), {"ada", "babbage", "byron", "river", "tokyo", "arabic"}),
    (Filter((Condition("source", "$in", ("NHK",)),), lenient=True), {"tokyo", "river"}),
    (Filter((Condition("entities", "$in", ("Ada Lovelace",)),), lenient=True), {"ada", "byron", "river"}),
    (Filter((Condition("published_at", "$gte", ("9999-12-31",)),), lenient=True), {"river"}),
    (Filter((Condition("published_at", "$in", ("2024-01-15",)),), lenient=True), {"tokyo", "arabic", "river"}),
    (Filter((Condition("category", "$nin", ("technology", "world")),), lenient=True), {"byron", "river"}),
    (
        Filter((Condition("source", "$in", ("BBC", "The Verge")), Condition("published_at", "$gte", ("2023-11-01",)),
                Condition("category", "$nin", ("world",)))),
        {"babbage", "byron"},
    ),
)  # fmt: skip


def _filters_hold_in_both_searches(make: MakeStore) -> None:
    store = _village(make)
    everything = " ".join(f"{one.title} {one.text}" for one in VILLAGE)
    filters = [filter for filter, _ in FILTERED]
    texts = store.search_text([everything] * len(filters), k=9, filters=filters)
    vectors = store.search_vectors(np.ones((len(filters), 8), np.float32), k=9, filters=filters)
    for (filter, passing), by_text, by_vector in zip(FILTERED, texts, vectors):
        _expect(f"text under {filter}", set(_ids(by_text)), passing)
        _expect(f"vectors under {filter}", set(_ids(by_vector)), passing)
    some = [None, _filter("source", "$in", "BBC")]
    free, bound = store.search_text(["engine"] * 2, k=9, filters=some)
    _expect("no filter for one question", _ids(free), ["babbage", "ada"])
    _expect("a filter for the other", _ids(bound), ["babbage"])
    _expect("a filter does not change a score", bound[0].score, free[0].score)


def _values_and_lookup_agree_with_the_documents(make: MakeStore) -> None:
    store = _village(make)
    _expect("sources", store.values("source"), {"The Verge": 2, "BBC": 2, "NHK": 1})
    days = {"2023-10-07": 1, "2023-11-01": 1, "2023-12-24": 1, "2024-01-15": 2}
    _expect("days", store.values("published_at"), days)
    _expect("entities", store.values("entities")["Analytical Engine"], 2)
    found = store.lookup("source", ["BBC", "nobody", "The Verge"])
    _expect("by source", found, [("babbage", "arabic"), (), ("ada", "byron")])
    _expect("by day", store.lookup("published_at", ["2024-01-15"]), [("tokyo", "arabic")])
    _expect("by entity", store.lookup("entities", ["Ada Lovelace"]), [("ada", "byron")])
    store.put([Document("twice", "", entities=("Thames", "Thames"))])
    _expect("an entity named twice", store.values("entities")["Thames"], 1)
    _expect("and its document", store.lookup("entities", ["Thames"]), [("twice",)])


def _several_queries_at_once_find_what_each_finds_alone(make: MakeStore) -> None:
    store, some = _village(make), _filter("source", "$in", "BBC")
    queries = [
        StoreQuery(3, text="engine"),
        StoreQuery(2, vector=VILLAGE_VECTORS[2]),
        StoreQuery(3, text="engine", filter=some),
        StoreQuery(1),
    ]
    result = store.query(queries, ["river", "nobody"])
    words, filtered = store.search_text(["engine"] * 2, k=3, filters=[None, some])
    nearest = store.search_vectors(VILLAGE_VECTORS[2:3], k=2)[0]
    _expect("hits", result.hits, [words, nearest, filtered, ()])
    found = sorted({hit.doc_id for hits in result.hits for hit in hits} | {"river"})
    _expect("documents", [result.documents.get(one) for one in found], store.get(found))
    _expect("nobody", "nobody" in result.documents, False)
    _expect_input_error("k of zero", lambda: store.query([StoreQuery(0, text="engine")]))


def _strange_texts_are_stored(make: MakeStore) -> None:
    store = make()
    strange = [
        Document("empty", ""),
        Document("control", "bell\x07 null\x00 tab\t end", title="\x1b[31mred"),
        Document("long", "needle " + "hay " * 250_000),
        Document("one word", "a" * 100_000 + " tail"),
        Document("emoji 👩‍👩‍👧", "family 👩‍👩‍👧 here", source="🙂"),
    ]
    store.put(strange)
    _expect("get", store.get([one.doc_id for one in strange]), strange)
    _expect("found", _text_ids(store, "needle", 3), ["long"])
    _expect("found behind control characters", _text_ids(store, "null", 3), ["control"])
    _expect("found behind a long word", _text_ids(store, "tail", 3), ["one word"])
    store.put([Document("broken", "half a \ud83d smile", source="\udc00")])
    text = (store.get(["broken"])[0] or strange[0]).text
    _expect("a lone surrogate is replaced", text, "half a \ufffd smile")
    found = store.lookup("source", ["\ufffd", "🙂"])
    _expect("in metadata too", found, [("broken",), ("emoji 👩‍👩‍👧",)])
    _expect("an unknown id that no file can hold", store.get(["\ud83d"]), [None])
    _expect("a very long question", _text_ids(store, "needle in " * 10_000, 3), ["long"])


def _bad_input_is_refused_and_changes_nothing(make: MakeStore) -> None:
    store = _village(make)
    before = store.generation
    good, floats = Document("new", "text"), np.float32
    wrong: Any = "not a document"
    field: Any = "sauce"
    ranged, undated = _filter("source", "$gte", "BBC"), _filter("published_at", "$lte", "soon")
    put, by_vector = store.put, store.search_vectors

    def filtered(*filters: Filter | None) -> None:
        store.search_text(["engine"], k=1, filters=filters)

    bad: dict[str, Callable[[], Any]] = {
        "not a document": lambda: put([good, wrong]),
        "an empty id": lambda: put([Document("", "text")]),
        "a surrogate in an id": lambda: put([Document("\ud83d", "text")]),
        "too few vectors": lambda: put([good, VILLAGE[0]], VILLAGE_VECTORS[:1]),
        "another dimension": lambda: put([good], np.ones((1, 3), floats)),
        "nan": lambda: put([good], np.full((1, 8), np.nan, floats)),
        "k of zero": lambda: store.search_text(["engine"], k=0),
        "negative k": lambda: by_vector(VILLAGE_VECTORS, k=-1),
        "a vector of another dimension": lambda: by_vector(np.ones((1, 3), floats), k=1),
        "one vector that is not a batch": lambda: by_vector(np.ones(8, floats), k=1),
        "filters of another number": lambda: filtered(None, None),
        "a range over names": lambda: filtered(ranged),
        "not a date": lambda: filtered(undated),
        "values of an unknown field": lambda: store.values(field),
        "lookup in an unknown field": lambda: store.lookup(field, ["x"]),
    }
    for what, call in bad.items():
        _expect_input_error(what, call)
    _expect("generation", store.generation, before)
    _expect("documents", list(store.documents()), list(VILLAGE))


def _generations_grow_with_every_write(make: MakeStore) -> None:
    store = make()
    seen = [store.generation]
    writes: list[Callable[[], int]] = [
        lambda: store.put(VILLAGE[:2]),
        lambda: store.put(VILLAGE[1:3]),
        lambda: store.delete(["ada"]),
    ]
    for write in writes:
        write()
        seen.append(store.generation)
    _expect("growing", seen == sorted(set(seen)), True)
    store.search_text(["engine"], k=1)
    store.delete(["nobody"])
    _expect("reading and deleting nothing leave it", store.generation, seen[-1])


def _links_are_those_of_the_documents(make: MakeStore) -> None:
    """With and without titles, and after replacing one document and deleting another."""
    for documents in (VILLAGE, tuple(replace(one, title="") for one in VILLAGE)):
        store, memory = make(), MemoryStore()
        for one in (store, memory):
            one.put(documents, VILLAGE_VECTORS)
        known = name_rows(store.documents, get=store.get)
        for one in (store, memory):
            one.put([replace(documents[0], text="Ada Lovelace met Lord Byron, code x-200.")])
            one.put([Document("note", "Whoever has x-200 may ask Lord Byron.")])
            one.delete(["river"])
        found = link_names(name_rows(store.documents, known=known, get=store.get))
        expected = name_links(memory.documents)
        _expect("ids of links", found.ids, expected.ids)
        for part in ("borne", "mentioned"):
            rows = [getattr(one, part) for one in (found, expected)]
            lists = [[one.row(at).tolist() for at in range(len(found.ids))] for one in rows]
            _expect(f"names of documents, {part}", *lists)


STORE_CHECKS: tuple[StoreCheck, ...] = (
    _an_empty_store_answers,
    _documents_come_back_as_they_went_in,
    _replacing_keeps_the_place_and_forgets_the_old_text,
    _the_last_of_two_with_one_id_is_kept,
    _deleted_documents_are_gone_everywhere,
    _text_search_ranks_by_shared_words,
    _ties_keep_the_order_of_insertion,
    _vector_search_is_exact,
    _filters_hold_in_both_searches,
    _values_and_lookup_agree_with_the_documents,
    _several_queries_at_once_find_what_each_finds_alone,
    _strange_texts_are_stored,
    _bad_input_is_refused_and_changes_nothing,
    _generations_grow_with_every_write,
    _links_are_those_of_the_documents,
)


def check_retriever(make: Callable[[Store], Retriever], store: Store) -> None:
    """Check a retriever over a store that contains the village (VILLAGE, VILLAGE_VECTORS)."""
    retriever = make(store)
    questions = ["Who designed the engine?", "", "東京"]
    endless = "x" * 100_000  # only once: slow in some retrievers, but all must accept it
    known = {one.doc_id for one in store.documents()}
    for batch, k in ((questions, 1), ([*questions, endless], 3), (questions, 10**6)):
        found = retriever.search(batch, k=k)
        _expect("one result a question", len(found), len(batch))
        for question, hits in zip(batch, found):
            ids, shown = _ids(hits), repr(question[:40])
            scores = [hit.score for hit in hits if hit.score is not None]
            _expect(f"{shown}: no document twice", len(set(ids)), len(ids))
            _expect(f"{shown}: at most k", len(ids) <= k, True)
            _expect(f"{shown}: known documents", set(ids) <= known, True)
            _expect(f"{shown}: finite scores", bool(np.isfinite(scores).all()), True)
            _expect(f"{shown}: best first", scores, sorted(scores, reverse=True))
    found = retriever.search(questions, k=3)
    _expect("same question, same hits", retriever.search(questions, k=3), found)
    _expect("a batch is its questions", retriever.search(questions[:1], k=3)[0], found[0])
    _expect("no questions", retriever.search([], k=3), [])
    _expect_input_error("k of zero", lambda: retriever.search(questions, k=0))


def check_encoder(encoder: Encoder) -> None:
    """Unit vectors of the stated dimension, zero for an empty text, the same for the same text."""
    ada = "Ada Lovelace wrote the first program."
    texts = [ada, "", "東京は日本の首都です。", "word " * 20_000, "\x00\x07", ada]
    for query in (False, True):
        vectors = encoder.encode(texts, query=query)
        _expect("shape", vectors.shape, (len(texts), encoder.dimension))
        _expect("type", vectors.dtype, np.dtype(np.float32))
        _expect("finite", bool(np.isfinite(vectors).all()), True)
        lengths = np.linalg.norm(vectors, axis=1)
        _expect("unit length", bool(np.allclose(lengths[[0, 3, 5]], 1, atol=1e-3)), True)
        _expect("an empty text is zero", float(lengths[1]), 0.0)
        same = bool(np.allclose(vectors[0], vectors[5], atol=1e-5))
        _expect("same text, same vector", same, True)
        _expect("no texts", encoder.encode([], query=query).shape, (0, encoder.dimension))


def sample_questions(count: int, *, seed: int = 0) -> list[LabelledQuestion]:
    """Made-up labelled questions to try fitting and adapting with; half of them lack a document."""
    rng, questions = random.Random(seed), []
    for number in range(count):
        film, director, other = f"The Mill {number}", f"Anna Berg {number}", f"Otto Dahl {number}"
        texts = {
            film: f"{film} is a {1900 + number % 100} drama film directed by {director}.",
            director: f"{director} was a film director, born in Berg{rng.randrange(99)}.",
            other: f"{other} was a painter, born in Dahl{rng.randrange(99)}.",
        }
        found = [film, director if rng.random() < 0.5 else other]
        hits = []
        for at, title in enumerate(found):
            hit = {"doc_id": title, "title": title, "text": texts[title]}
            hits.append({**hit, "score": 9 - 4 * at - rng.random()})
        question = f"Where was the director of {film} born?"
        questions.append(LabelledQuestion(question, hits, (film, director)))
    return questions
