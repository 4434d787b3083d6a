"""The reader: what is read of long lists and odd texts, what it quotes, and what is remembered."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.small_gate import few_trees

from suffice.errors import DataError, NotReadyError
from suffice.evaluation.reading_cache import CachedReader
from suffice.gate import reader as reader_module
from suffice.gate.features import READING, READING_HIT
from suffice.gate.gate import SHIPPED_MODELS, Gate
from suffice.gate.reader import (
    JOINT_FILE,
    MAX_CHARS,
    MAX_HITS,
    MAX_WINDOWS,
    PAIR_FILE,
    READER_KIND,
    READER_VERSION,
    REBUILD,
    SHIPPED_READER,
    UNREAD,
    WINDOW_CHARS,
    Reader,
    Reading,
    reading_features,
)
from suffice.gate.training import LabelledQuestion
from suffice.storage import MANIFEST, new_artefact, sha256_of
from suffice.storage.artefacts import open_onnx

QUESTION = "Who is the mother of the director of the film Polish-Russian War?"
TITLES = ["Polish-Russian War (film)", "Xawery Żuławski", "Snow in Cyprus"]
TEXTS = [
    "Polish-Russian War is a 2009 Polish film. It was directed by Xawery Żuławski. It is based on a"
    " novel by Dorota Masłowska.",
    "Xawery Żuławski is a Polish film director. In 1995 he graduated from the film school in Łódź."
    " He is the son of the actress Małgorzata Braunek and the director Andrzej Żuławski.",
    "Snow falls on the mountains of Cyprus from December to March. There are four ski slopes.",
]
FILES = (PAIR_FILE, JOINT_FILE, "tokenizer.json")
FILLER = "The harbour was quiet, and the boats lay at the pier until the wind had turned. "


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


def close(one: Reading, other: Reading, by: float = 1e-4) -> bool:
    numbers, others = (
        np.concatenate([part.needed, part.relevance, [part.complete], part.counts])
        for part in (one, other)
    )
    rest, same = (
        (part.quotes, part.windows, part.unread, part.question_cut) for part in (one, other)
    )
    return np.allclose(numbers, others, atol=by) and rest == same


# ---- what it says


def test_needed_hits_are_told_from_a_look_elsewhere(reader: Reader) -> None:
    reading = reader.read(QUESTION, TITLES, TEXTS)
    assert reading.needed.shape == (3,)
    assert reading.needed[2] < min(reading.needed[:2])
    assert reading.counts.shape == (6,)
    assert reading.counts.sum() == pytest.approx(1)
    assert (reading.windows, reading.unread) == (3, 0)


def test_a_missing_document_lowers_the_odds(reader: Reader) -> None:
    whole = reader.read(QUESTION, TITLES, TEXTS)
    gap = reader.read(QUESTION, TITLES[::2], TEXTS[::2])
    assert gap.complete < whole.complete


LONG = [(f"Pier {at}", FILLER * (6 * at + 1)) for at in range(6)]  # too much to be read whole
LISTS = {
    "short": list(zip(TITLES, TEXTS, strict=True)),
    "without titles": [("", text) for text in TEXTS],
    "duplicates": [*zip(TITLES, TEXTS, strict=True)] * 2,
    "long": [*zip(TITLES, TEXTS, strict=True), *LONG],
    "many": [(f"Mill {at}", f"The mill of village {at} grinds.") for at in range(MAX_HITS + 8)],
}


@pytest.mark.parametrize("hits", LISTS.values(), ids=LISTS)
def test_the_order_of_hits_does_not_change_a_bit(
    reader: Reader, hits: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if len(hits) <= 12:
        monkeypatch.setattr(reader_module, "MAX_WINDOWS", 12)  # for speed
    there = reader.read(QUESTION, *zip(*hits))
    features, of_hits = reading_features([there])
    draw = np.random.default_rng(7)
    for order in (range(len(hits))[::-1], draw.permutation(len(hits)).tolist()):
        again = reader.read(QUESTION, *zip(*[hits[at] for at in order]))
        wanted = replace(
            there,
            needed=there.needed[order],
            relevance=there.relevance[order],
            quotes=tuple(there.quotes[at] for at in order),
        )
        assert close(again, wanted, by=0)
        shuffled, of_shuffled = reading_features([again])
        assert (shuffled == features).all()
        assert (of_shuffled[0] == of_hits[0][order]).all()


def test_equal_hits_are_read_once(reader: Reader) -> None:
    once = reader.read(QUESTION, TITLES, TEXTS)
    twice = reader.read(QUESTION, TITLES * 2, TEXTS * 2)
    assert twice.needed.tolist() == [*once.needed, *once.needed]
    assert (twice.complete, twice.windows) == (once.complete, once.windows)


def test_what_was_read_of_a_hit_is_not_read_again_beside_others() -> None:
    fresh = Reader()
    first, every = (fresh.read(QUESTION, TITLES[:n], TEXTS[:n]) for n in (2, 3))
    assert fresh._read_window.cache_info().misses == 3
    assert fresh.read("Who directed it?", TITLES[:1], TEXTS[:1]).windows == 1
    assert fresh._read_window.cache_info().misses == 4  # of another question, nothing is kept
    fresh._read_window.cache_clear()
    again = fresh.read(QUESTION, TITLES, TEXTS)
    assert (again.needed == every.needed).all()
    assert first.relevance.tolist() == every.relevance[:2].tolist()


def test_a_hit_that_is_surely_not_needed_counts_as_one_that_is_not_there() -> None:
    one = Reading(np.array([2.0]), np.array([1.0]), 0.0, np.eye(6)[1], ("",), 1, 0)
    needed, relevance = np.array([2.0, -12.0]), np.array([1.0, -4.0])
    more = replace(one, needed=needed, relevance=relevance, quotes=("", ""), windows=2)
    features, _ = reading_features([one, more])
    assert features[0] == pytest.approx(features[1], abs=1e-3)


# ---- long texts and long lists


def test_a_long_text_is_read_in_windows_that_cover_all_of_it(reader: Reader) -> None:
    long = FILLER * 60
    reading = reader.read(QUESTION, ["Harbour"], [long])
    assert 1 < reading.windows <= MAX_WINDOWS
    assert (reading.unread, reading.notes) == (0, ())


def test_evidence_at_the_end_of_a_long_text_is_found(reader: Reader) -> None:
    behind = FILLER * 20 + TEXTS[1]
    reading = reader.read(QUESTION, TITLES, [TEXTS[0], behind, TEXTS[2]])
    assert reading.windows > 3
    assert reading.needed[1] > reading.needed[2]
    assert "harbour" not in reading.quotes[1]


def test_windows_that_are_left_out_are_counted(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = [FILLER * 30, f"{FILLER * 15}{TEXTS[1]} {FILLER * 15}"]
    every = reader.read(QUESTION, ["Harbour", "Pier"], long)
    monkeypatch.setattr(reader_module, "MAX_WINDOWS", 4)
    some = reader.read(QUESTION, ["Harbour", "Pier"], long)
    assert (some.windows, some.windows + some.unread) == (4, every.windows)
    assert some.quotes[1] in TEXTS[1]  # the window that shares words with the question is read


@pytest.mark.parametrize("count", [MAX_HITS + 8, 200])
def test_hits_beyond_the_most_that_are_read_are_counted(reader: Reader, count: int) -> None:
    titles, texts = [f"Harbour {at}" for at in range(count)], [FILLER] * count
    titles[-1], texts[-1] = TITLES[0], TEXTS[0]  # the last shares most words with the question
    reading = reader.read(QUESTION, titles, texts)
    assert (reading.windows, reading.unread) == (MAX_HITS, count - MAX_HITS)
    assert len(reading.needed) == len(reading.quotes) == count
    unread = [at for at, quote in enumerate(reading.quotes) if not quote]
    assert len(unread) == count - MAX_HITS
    assert count - 1 not in unread
    assert (reading.needed[unread] == UNREAD).all()
    assert reading.notes[0].startswith(f"{count - MAX_HITS} of {count} parts of the hits")


@pytest.mark.parametrize("place", ["title", "text"])
def test_what_is_beyond_the_longest_text_counts_as_unread(reader: Reader, place: str) -> None:
    whole = reader.read(QUESTION, ["x" * MAX_CHARS, "Snow"], ["x" * MAX_CHARS, TEXTS[2]])
    assert (whole.windows, whole.unread) == (2, 0)  # a word without end is one token
    for beyond, parts in ((1, 1), (WINDOW_CHARS, 1), (960_000, -(-960_000 // WINDOW_CHARS))):
        long = "x" * (MAX_CHARS + beyond)
        given = (
            [[long, "Snow"], TEXTS[1:]] if place == "title" else [["", "Snow"], [long, TEXTS[2]]]
        )
        assert reader.read(QUESTION, *given).unread == parts


def test_a_long_title_is_read_whole(reader: Reader) -> None:
    reading = reader.read(QUESTION, [FILLER * 40], [TEXTS[0]])
    assert (reading.windows > 1, reading.unread) == (True, 0)
    assert reading.quotes[0]


def test_a_question_that_is_cut_is_said(reader: Reader) -> None:
    reading = reader.read(QUESTION * 20, TITLES, TEXTS)
    assert reading.notes == ("The question is long: only its beginning was read.",)
    assert reader.read(QUESTION, TITLES, TEXTS).notes == ()


# ---- empty and odd


def test_no_hits_are_not_complete(reader: Reader) -> None:
    reading = reader.read(QUESTION, [], [])
    assert (reading.complete, len(reading.needed), reading.quotes) == (UNREAD, 0, ())
    of_sets, of_hits = reading_features([reading])
    assert of_sets.shape == (1, len(READING))
    assert of_hits[0].shape == (0, len(READING_HIT))
    assert np.isfinite(of_sets).all()


@pytest.mark.parametrize(
    ("question", "titles", "texts"),
    [
        (QUESTION, ["", ""], ["", ""]),
        (QUESTION, ["", "Snow"], TEXTS[1:]),
        (QUESTION, TITLES, ["", "", ""]),
        ("", TITLES, TEXTS),
        (" \n\t", [" "], ["\n\n"]),
    ],
)
def test_empty_titles_texts_and_questions_are_read(
    reader: Reader, question: str, titles: Sequence[str], texts: Sequence[str]
) -> None:
    reading = reader.read(question, titles, texts)
    assert len(reading.needed) == len(reading.quotes) == len(texts)
    assert np.isfinite([*reading.needed, reading.complete, *reading.counts]).all()
    assert [quote for quote, text in zip(reading.quotes, texts) if not text.strip() and quote] == []


ODD = {
    "half a surrogate pair": "Ada \ud800 was taught by \udfff Mary.",
    "nulls and controls": "\x00\x01\x1b[31m Ada\x7f \u202e was taught.",
    "joined signs": "👩\u200d👩\u200d👧 " * 20 + "n\u0303\u0303\u0303 \ufeff\u2028 Ada",
    "emoji": "🏛️🎻🌊" * 3000,
    "other scripts": "法国的首都是哪里？ Какой город ما هي عاصمة ประเทศไทย हिन्दी 한국어 " * 20,
    "one endless word": "x" * 300_000,
    "one sign": "." * 300_000,
    "whitespace": " \n\t\u3000" * 250_000,
    "nulls": "\x00" * 1_000_000,
    "no letters": "…—“”!?. " * 200,
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_text_is_read_wherever_it_stands(reader: Reader, text: str) -> None:
    for given in (
        (text, TITLES[:1], TEXTS[:1]),
        (QUESTION, [text], TEXTS[:1]),
        (QUESTION, TITLES[:1], [text]),
    ):
        reading = reader.read(*given)
        assert np.isfinite([*reading.needed, reading.complete, *reading.counts]).all()
        reading.quotes[0].encode()  # can be written anywhere


@pytest.mark.parametrize(("allowed", "threads"), [("1", 1), ("3", 3), ("", 0), ("2,1", 0)])
def test_threads_are_those_that_the_environment_allows(
    monkeypatch: pytest.MonkeyPatch, allowed: str, threads: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", allowed)
    for given, expected in ((0, threads), (2, 2)):
        session = open_onnx(SHIPPED_MODELS / "gate-fast" / "hit.onnx", threads=given)
        assert session.get_session_options().intra_op_num_threads == expected


def test_threads_do_not_change_what_is_read() -> None:
    alone, together = (Reader(threads=n).read(QUESTION, TITLES, TEXTS) for n in (1, 3))
    assert together.needed.tolist() == alone.needed.tolist()
    assert (together.complete, together.quotes) == (alone.complete, alone.quotes)


def test_features_have_a_row_for_each_list_and_each_hit(reader: Reader) -> None:
    readings = [reader.read(QUESTION, TITLES[:n], TEXTS[:n]) for n in (3, 0, 1)]
    of_sets, of_hits = reading_features(readings)
    assert of_sets.shape == (3, len(READING))
    assert [one.shape for one in of_hits] == [(n, len(READING_HIT)) for n in (3, 0, 1)]
    names = [one.name for one in READING]
    first = dict(zip(names, of_sets[0].tolist(), strict=True))
    assert first["read_complete"] == pytest.approx(readings[0].complete, rel=1e-5)
    assert first["read1"] == pytest.approx(max(readings[0].needed), rel=1e-5)
    assert first["read4"] == UNREAD  # there is no fourth hit
    assert 1 <= first["read_count"] <= 5


# ---- quotes


def test_quotes_are_sentences_of_their_hit(reader: Reader) -> None:
    reading = reader.read(QUESTION, TITLES, TEXTS)
    for quote, text in zip(reading.quotes, TEXTS, strict=True):
        sentences = [one if one.endswith(".") else f"{one}." for one in text.split(". ")]
        assert quote in sentences


class MarkedSession:
    """A network that marks the block of one token as evidence, whatever it reads."""

    def __init__(self, *best: int) -> None:
        self.best = best  # tokens, the best first

    def run(self, _: object, given: dict[str, np.ndarray]) -> list[np.ndarray]:
        blocks, windows = len(given["blocks"]), len(given["firsts"])
        marks = np.zeros((blocks, 1))
        for value, at in enumerate(reversed(self.best), start=1):
            marks[1 + (at - 1) // reader_module.BLOCK_TOKENS] = value
        said = np.zeros((windows, 1)), np.zeros((1, 1)), np.zeros((1, 6)), np.zeros((1, 4))
        return [*said, marks, np.zeros((blocks, 2))]


def test_where_the_title_is_the_best_evidence_the_best_sentence_is_quoted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = Reader()
    # [CLS] who ? [SEP] ada of the old mill : it rained . mary taught ada . all was well . [SEP]
    monkeypatch.setattr(reader, "_joint", MarkedSession(5, 15))
    given = ("Who?", ["Ada of the old mill"], ["It rained. Mary taught Ada. All was well."])
    assert reader.read(*given).quotes == ("Mary taught Ada.",)
    monkeypatch.setattr(reader, "_joint", MarkedSession(5))
    assert reader.read(*given).quotes == ("It rained.",)


def test_a_verdict_quotes_needed_hits_those_needed_most_first() -> None:
    gate = Gate.load()
    hits = [
        {"id": f"d{at}", "title": title, "text": text}
        for at, (title, text) in enumerate(zip(TITLES, TEXTS, strict=True))
    ]
    verdict = gate.check(QUESTION, hits)
    texts = {f"d{at}": text for at, text in enumerate(TEXTS)}
    assert all(quote.text in texts[quote.doc_id] for quote in verdict.quotes)
    chances = [quote.p_needed for quote in verdict.quotes]
    assert chances == sorted(chances, reverse=True)
    assert all(0.5 <= p <= 1 for p in chances)
    assert gate.check(QUESTION, hits, explain=False).quotes == ()
    assert Gate.load(preset="fast").check(QUESTION, hits).quotes == ()


def test_a_verdict_notes_what_was_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "MAX_WINDOWS", 12)  # for speed
    gate = Gate.load()
    own = [FILLER.replace(".", f", says page {at}.") for at in range(10)]  # no shared sentence
    long = [{"id": f"d{at}", "text": one * 40} for at, one in enumerate(own)]
    for explain in (True, False):
        verdict = gate.check(QUESTION, long, explain=explain)
        (note,) = verdict.notes
        assert "parts of the hits were not read" in note
    assert str(verdict).endswith(f"note: {note}")
    assert f"<td>note</td><td style='text-align:left'>{note}" in verdict._repr_html_()
    assert verdict.as_json()["notes"] == [note]
    short = gate.check(QUESTION, TEXTS)
    assert (short.notes, "note:" in str(short)) == ((), False)
    assert Gate.load(preset="fast").check(QUESTION, long).notes == ()


# ---- another reader, or a damaged one


def test_a_folder_without_a_reader_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match="is not a reader") as caught:
        Reader(tmp_path / "nothing")
    assert caught.value.hint == REBUILD


@pytest.mark.parametrize("name", FILES)
def test_an_altered_file_is_noticed(tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(SHIPPED_READER, tmp_path / "reader")
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(bytes(content))
    with pytest.raises(DataError, match=f"{name} is missing or altered") as caught:
        Reader(folder)
    assert caught.value.hint == REBUILD
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"{name} is missing or altered"):
        Reader(folder)


@pytest.mark.parametrize(
    ("name", "message"),
    [("joint.onnx", "is not a readable ONNX model"), ("tokenizer.json", "is not a tokenizer")],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with new_artefact(tmp_path / "reader", kind=READER_KIND, version=READER_VERSION) as draft:
        for file in FILES:
            shutil.copy(SHIPPED_READER / file, draft / file)
        (draft / name).write_bytes(b'{"neither": "nor"}')
    with pytest.raises(DataError, match=message) as caught:
        Reader(tmp_path / "reader").read(QUESTION, TITLES, TEXTS)
    assert caught.value.hint == REBUILD


def test_another_network_than_a_reader_is_told_when_it_reads(tmp_path: Path) -> None:
    with new_artefact(tmp_path / "reader", kind=READER_KIND, version=READER_VERSION) as draft:
        for file in FILES:
            shutil.copy(SHIPPED_READER / file, draft / file)
        (draft / PAIR_FILE).write_bytes((SHIPPED_MODELS / "gate-fast" / "hit.onnx").read_bytes())
    other = Reader(tmp_path / "reader")
    with pytest.raises(DataError, match=r"the reader in .* fails") as caught:
        other.read(QUESTION, TITLES, TEXTS)
    assert caught.value.hint == REBUILD


def test_a_gate_refuses_another_reader_than_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "gate"
    shutil.copytree(SHIPPED_MODELS / "gate-standard", folder)
    record = json.loads((folder / MANIFEST).read_text())
    assert record["settings"]["reader"] == Reader().name
    for file in (PAIR_FILE, JOINT_FILE):
        assert sha256_of(SHIPPED_READER / file)[:8] in Reader().name
    record["settings"]["reader"] = "0123456789abcdef"
    (folder / MANIFEST).write_text(json.dumps(record))
    with pytest.raises(NotReadyError, match="was fitted with another reader") as caught:
        Gate.load(folder)
    assert caught.value.hint == "make it again: suffice adapt, or suffice fit"


# ---- the cache


class CountingReader(Reader):
    """Counts the lists that it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def read(self, question: str, titles: Sequence[str], texts: Sequence[str]) -> Reading:
        self.reads += 1
        return super().read(question, titles, texts)


@pytest.fixture
def counting() -> CountingReader:
    return CountingReader()


def test_a_list_is_read_once(counting: CountingReader) -> None:
    cached = CachedReader(counting)
    assert cached.name == counting.name
    first = cached.read(QUESTION, TITLES, TEXTS)
    assert cached.read(QUESTION, list(TITLES), tuple(TEXTS)) is first
    assert counting.reads == 1
    cached.read(QUESTION, TITLES[::-1], TEXTS[::-1])
    cached.read("Who?", TITLES, TEXTS)
    assert counting.reads == 3


def mills(count: int) -> list[LabelledQuestion]:
    """Questions about villages; every other list lacks the village that is asked for."""
    village = [{"id": f"v{n}", "text": f"Village {n} has {n % 7} mills."} for n in range(count + 2)]
    return [
        LabelledQuestion(
            f"How many mills has village {n}?", [village[n + n % 2], village[n + 2]], {f"v{n}"}
        )
        for n in range(count)
    ]


def test_a_gate_is_fitted_with_the_reader_which_reads_no_list_twice(
    counting: CountingReader, tmp_path: Path
) -> None:
    examples, cached = mills(60), CachedReader(counting)
    with few_trees():
        gate = Gate.fit(examples, seed=7, reader=cached)
        reads = counting.reads
        Gate.fit(examples, seed=8, reader=cached)
    assert counting.reads == reads == len(examples)
    assert gate.card["reader"] == counting.name
    gate.save(tmp_path / "gate")
    given = (examples[0].question, examples[0].hits)
    p = Gate.load(tmp_path / "gate").check(*given).p_complete
    assert p == pytest.approx(gate.check(*given).p_complete, abs=1e-5)


# ---- answers


def test_an_answer_is_a_part_of_a_hit_whatever_the_order(reader: Reader) -> None:
    texts = ["The bank opens at nine.", "Ada was taught by Augustus De Morgan in 1840."]
    found = reader.answer("Who taught Ada?", ["", ""], texts)
    assert (found.text, found.place) == ("Augustus De Morgan", 1)
    assert texts[1][found.start : found.end] == found.text
    assert found.p > 0.5
    turned = reader.answer("Who taught Ada?", ["", ""], texts[::-1])
    assert turned == replace(found, place=0)
    other = reader.answer("Who taught the dog of the mayor?", ["", ""], texts)
    assert other.p < 0.5


@pytest.mark.parametrize("texts", [[], [""], ["?"], ["\ud800"], [FILLER * 60]])
def test_odd_hits_have_an_unlikely_answer_or_none(reader: Reader, texts: list[str]) -> None:
    found = reader.answer("Who taught Ada?", [""] * len(texts), texts)
    assert found.p < 0.5
    assert reader.answer("", [""] * len(texts), texts).p <= 1


def test_a_reader_without_weights_of_answers_says_how_to_make_them(tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    with new_artefact(folder, kind=READER_KIND, version=READER_VERSION) as draft:
        for name in FILES:
            shutil.copy(SHIPPED_READER / name, draft / name)
    with pytest.raises(DataError, match=r"weights of answers in .*answers\.json") as error:
        Reader(folder).answer("Who?", [""], ["Nora did it."])
    assert "suffice_research.training.answers" in str(error.value.hint)
