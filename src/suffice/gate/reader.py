"""The reader: a small transformer that reads the question with each hit, then all hits together.

It predicts whether each hit is needed, whether the set is complete, how many documents the question
needs, and where the answer is. Long hits are read in overlapping windows. If there are too many,
every hit is read in part, and the result says how much was left out. The order of the hits does not
matter. `suffice_research.training` trains the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, NotReadyError
from suffice.gate.calibration import Platt
from suffice.gate.features import READING
from suffice.numeric import log_odds, sigmoid
from suffice.storage import open_artefact
from suffice.storage.artefacts import allowed_threads, data_errors, open_onnx, read_json
from suffice.types import FoundAnswer

Floats = npt.NDArray[np.floating[Any]]
Fits = Callable[[str], bool]  # whether an answer has the form that the question asks for
READER_KIND, READER_VERSION = "reader", 2
READING_VERSION = 2  # raise it if the same model reads the same hits differently
SHIPPED_READER = Path(__file__).parent.parent / "models" / "reader"
PAIR_FILE, JOINT_FILE = "pair.onnx", "joint.onnx"  # one window; all windows
REBUILD = "python -m suffice_research.training.reader_export"
CLS, SEP, COLON = 101, 102, 1024  # token ids
WINDOW_TOKENS, OVERLAP_TOKENS, QUESTION_TOKENS = 192, 24, 64
BLOCK_TOKENS = 4  # that the model's upper layers see as one
MAX_HITS, MAX_WINDOWS = 32, 32  # read at once; at least one window per hit
MAX_CHARS = 40_000  # of a hit: limits the time that hostile input can take
WINDOW_CHARS = 700  # approximate: to count the windows of a text that is not tokenized
UNREAD = -8.0  # the log-odds of a missing or unread hit
IRRELEVANT = -3.0  # the relevance of such a hit; most are between -3 and 3
TOP_NEEDED = 4
# Cache size, about 70 KB each: a further search, or finding the answer, reads most windows again.
KEPT_WINDOWS = 128
ANSWER_FILE, ANSWER_VERSION = "answers.json", 2  # in the reader's folder
# Inputs for the probability that an answer from complete hits is right: 1, the log-odds that there
# is an answer, those of this span among all, whether the answer is yes or no, and its number of
# words (long answers are cut wrongly more often).
ANSWER_SIGNS = ("constant", "some answer", "this span", "yes or no", "log words")
ANSWER_TOKENS = 30  # of an answer, at most
ANSWER_STARTS, ANSWER_ENDS = 24, 3  # candidate positions
MAX_QUOTE = 300  # characters on either side of the most relevant place
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Reading:
    """The reader's result for one question and its hits."""

    needed: Floats  # the log-odds that each hit is needed: (hits,)
    relevance: Floats  # of each hit to the question, independent of the other hits: (hits,)
    complete: float  # the log-odds that the set is complete
    counts: Floats  # probability that it needs 1, 2, ... 5 documents; first: nothing answers it
    quotes: tuple[str, ...]  # the most relevant sentence of each hit
    windows: int  # number read
    unread: int  # number left out; approximate if hits are very long or many
    question_cut: bool = False  # only the beginning of the question was read

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what was left out."""
        parts = self.windows + self.unread
        of_hits = (
            f"{self.unread:,} of {parts:,} parts of the hits were not read. "
            "Fewer or shorter hits are read whole."
        )
        of_question = "The question is long: only its beginning was read."
        found = ((of_hits, self.unread), (of_question, self.question_cut))
        return tuple(sentence for sentence, is_so in found if is_so)


class AnswerModel(NamedTuple):
    """How likely an answer is right."""

    weights: Floats  # of ANSWER_SIGNS, if the hits are complete
    complete: Platt  # from the log-odds of the reader to the probability that they are


class _Window(NamedTuple):
    hit: int  # its slot
    ids: list[int]  # of the text
    offsets: list[tuple[int, int]]  # of each token in the hit's text; negative in its title


class _Outputs(NamedTuple):
    """Network outputs: `counts`, `answer`, `spans` logits, `relevance` a score, others log-odds."""

    needed: Floats  # (windows,)
    relevance: Floats  # (windows,)
    complete: float
    counts: Floats  # (6,)
    answer: Floats  # nothing, a span, yes, no
    evidence: list[Floats]  # per window, (blocks,) after the first token
    spans: list[Floats]  # per window, (tokens, 2): the answer starts or ends there


class Reader:
    """The model in a folder; by default the shipped one."""

    def __init__(self, folder: Path | None = None, *, threads: int = 0) -> None:
        self.folder = folder or SHIPPED_READER
        self._hashes = open_artefact(
            self.folder, kind=READER_KIND, version=READER_VERSION, rebuild=REBUILD
        ).files
        # Windows share the cores better than the operations of one window do.
        self._threads, self._workers = threads, allowed_threads(threads)

    # Opened by the first list that is read: their hashes are checked, and opening takes longer than
    # everything else that loading a gate does.

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer  # slow to import

        path = self.folder / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises bare Exception
            raise DataError(f"{path} is not a tokenizer: {error}", hint=REBUILD) from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    @cached_property
    def _joint(self) -> Any:
        return open_onnx(self.folder / JOINT_FILE, threads=self._threads, hint=REBUILD)

    @cached_property
    def _read_window(self) -> Any:
        pair = open_onnx(self.folder / PAIR_FILE, threads=1, hint=REBUILD)
        return lru_cache(KEPT_WINDOWS)(partial(_read_window, pair))

    @property
    def name(self) -> str:
        """Changes with the model: a gate works only with the reader it was fitted with."""
        hashes = (self._hashes.get(file, "")[:8] for file in (PAIR_FILE, JOINT_FILE))
        return f"{''.join(hashes)}.{READING_VERSION}"

    @classmethod
    def shipped(cls, name: str, *, where: str) -> Reader:
        """The shipped reader; NotReadyError if a gate was fitted with another one."""
        reader = cls()
        if reader.name != name:
            found = f"{where} was fitted with another reader than this suffice has"
            raise NotReadyError(found, hint="make it again: suffice adapt, or suffice fit")
        return reader

    def read(self, question: str, titles: Sequence[str], texts: Sequence[str]) -> Reading:
        """Read the titles and texts of the hits. Their order does not change the result at all:
        hits are sorted first, and equal ones are read once.
        """
        hits = list(zip(titles, texts, strict=True))
        if not hits:
            return Reading(np.zeros(0), np.zeros(0), UNREAD, np.eye(6)[0], (), 0, 0)
        unique = sorted(set(hits))
        chosen = _choose_hits(question, unique)
        left = sum(_windows_of(len(title) + len(text)) for title, text in {*unique} - {*chosen})
        found = self._read_sorted(question, chosen)
        slot = {hit: at for at, hit in enumerate(chosen)}
        at = [slot.get(hit, -1) for hit in hits]
        needed, quotes = [*found.needed, UNREAD], (*found.quotes, "")  # last entry: for unread hits
        relevance = [*found.relevance, IRRELEVANT]
        return replace(
            found, needed=np.array([needed[i] for i in at]),
            relevance=np.array([relevance[i] for i in at]), quotes=tuple(quotes[i] for i in at),
            unread=found.unread + left,
        )  # fmt: skip

    def score(self, question: str, texts: Sequence[str]) -> Floats:
        """As a `Reranker`: the log-odds that each text is needed, given the others."""
        return self.read(question, [""] * len(texts), texts).needed

    def answer(
        self, question: str, titles: Sequence[str], texts: Sequence[str], fits: Fits = bool
    ) -> FoundAnswer:
        """The best answer to the question in these hits, preferably one that `fits`, and the
        probability that it is right: that of complete hits, times that the hits are complete.
        """
        found, signs, complete = self.best_answer(question, titles, texts, fits)
        if not found.text:
            return found
        model = self.answer_model
        right = float(sigmoid(np.array(model.weights @ signs)))
        return replace(
            found, p=right * float(model.complete.apply([complete])[0]), p_if_complete=right
        )

    def best_answer(
        self, question: str, titles: Sequence[str], texts: Sequence[str], fits: Fits = bool
    ) -> tuple[FoundAnswer, Floats, float]:
        """The answer without its probability, and what that is computed from: ANSWER_SIGNS, and the
        log-odds that the hits are complete.
        """
        hits = list(zip(titles, texts, strict=True))
        chosen = _choose_hits(question, sorted(set(hits)))
        if not chosen:
            return FoundAnswer("", -1, 0, 0, 0.0), np.zeros(len(ANSWER_SIGNS)), UNREAD
        asked, windows, parts, _, _ = self._windows(question, chosen)
        outputs = self._run(asked, windows)
        head = len(asked) + 2
        read = [(_clean(title), text) for (title, _), text in zip(chosen, parts, strict=True)]
        slot, start, end, text, p = _best_span(windows, outputs.spans, head, read, fits)
        kinds = outputs.answer
        nothing, span, yes, no = np.exp(kinds - np.logaddexp.reduce(kinds)).tolist()
        if said := max(yes, no) > span and fits("yes"):
            text = "yes" if yes > no else "no"
            slot, (start, end) = _best_evidence(windows, outputs.evidence, head, len(parts))
        this = 0.0 if said else log_odds(p)  # how sure it is of yes or no tells little
        words = float(np.log(max(len(text.split()), 1)))
        signs = np.array([1.0, log_odds(1 - nothing), this, float(said), words])
        at = hits.index(chosen[slot])
        return FoundAnswer(text, at, max(start, 0), max(end, 0), 0.0), signs, outputs.complete

    @cached_property
    def answer_model(self) -> AnswerModel:
        """How likely answers are right; DataError if that was not fitted for this reader."""
        path = self.folder / ANSWER_FILE
        hint = "python -m suffice_research.training.answers"
        with data_errors(f"the weights of answers in {path}", hint=hint):
            kept = read_json(path)
            if (kept.get("version"), kept.get("signs")) != (ANSWER_VERSION, [*ANSWER_SIGNS]):
                raise DataError(f"{path} is of another version of suffice", hint=hint)
            found = AnswerModel(np.array(kept["weights"], float), Platt(**kept["complete"]))
        if found.weights.shape != (len(ANSWER_SIGNS),) or not np.isfinite(found.weights).all():
            raise DataError(f"{path} has no {len(ANSWER_SIGNS)} finite weights", hint=hint)
        return found

    def _windows(
        self, question: str, hits: Sequence[tuple[str, str]]
    ) -> tuple[list[int], list[_Window], list[str], int, bool]:
        """The question's tokens, the windows to read, their texts, how many windows are left out,
        and whether the question is truncated. A hit's position is its slot: slots were random in
        training, so they carry no meaning.
        """
        encode = self._tokenizer.encode_batch_fast
        asked = encode([_clean(question)], add_special_tokens=False)[0].ids
        cut = len(asked) > QUESTION_TOKENS or len(question) > MAX_CHARS
        asked = asked[:QUESTION_TOKENS]
        # Offsets are needed for quotes and answers.
        heads, parts = ([_clean(one) for one in some] for some in zip(*hits, strict=True))
        named, read = (
            self._tokenizer.encode_batch(some, add_special_tokens=False) for some in (heads, parts)
        )
        room = WINDOW_TOKENS - len(asked) - 3
        windows: list[_Window] = []
        for hit, (title, text) in enumerate(zip(named, read, strict=True)):
            head = [*title.ids, COLON] if title.ids else []
            size = len(heads[hit]) + 1
            above = [(start - size, end - size) for start, end in title.offsets]
            ids, offsets = [*head, *text.ids], [*above, (-1, -1)][: len(head)] + text.offsets
            for part in _split(len(ids), room):
                windows.append(_Window(hit, ids[part], offsets[part]))
        chosen = _choose_windows(windows, set(asked))
        beyond = [max(len(one) - MAX_CHARS, 0) for hit in hits for one in hit]
        unread = len(windows) - len(chosen) + sum(_windows_of(n) for n in beyond if n)
        return asked, chosen, parts, unread, cut

    def _read_sorted(self, question: str, hits: Sequence[tuple[str, str]]) -> Reading:
        asked, windows, texts, unread, cut = self._windows(question, hits)
        outputs = self._run(asked, windows)
        slots = np.array([one.hit for one in windows], np.int64)
        needed, relevance = np.full((2, len(texts)), -np.inf)
        np.maximum.at(needed, slots, outputs.needed)
        np.maximum.at(relevance, slots, outputs.relevance)
        odds = np.exp(outputs.counts - outputs.counts.max())
        quotes = _quotes(windows, outputs.evidence, len(asked) + 2, texts)
        odds /= odds.sum()
        said = needed, relevance, outputs.complete, odds, quotes
        return Reading(*said, len(windows), unread, cut)

    def _run(self, question: list[int], windows: list[_Window]) -> _Outputs:
        """Read each window on its own: padding to the longest would cost time, and the result of a
        window would depend on the others, so it could not be cached.
        """
        head = len(question) + 2
        try:
            rows = [(CLS, *question, SEP, *one.ids, SEP) for one in windows]
            blocks, relevance, of_tokens = zip(*self._read_windows(rows, head), strict=True)
            sizes = [len(one) for one in blocks]
            ends = np.cumsum(sizes)
            given = {
                "blocks": np.concatenate(blocks),
                "slots": np.repeat(np.array([one.hit for one in windows], np.int64), sizes),
                "firsts": np.array([0, *ends[:-1]], np.int64),
            }
            names = ["needed", "complete", "counts", "answer", "evidence", "places"]
            needed, complete, counts, answer, marks, of_blocks = self._joint.run(names, given)
        except Exception as error:  # onnxruntime does not export its error classes
            raise DataError(f"the reader in {self.folder} fails: {error}", hint=REBUILD) from error
        spans = [
            tokens
            + np.repeat(above, [1, *[BLOCK_TOKENS] * (len(above) - 1)], axis=0)[: len(tokens)]
            for tokens, above in zip(of_tokens, np.split(of_blocks, ends[:-1]), strict=True)
        ]
        evidence = [one[1:, 0] for one in np.split(marks, ends[:-1])]
        return _Outputs(
            needed[:, 0], np.concatenate(relevance)[:, 0], float(complete[0, 0]), counts[0],
            answer[0], evidence, spans,
        )  # fmt: skip

    def _read_windows(self, rows: Sequence[tuple[int, ...]], head: int) -> list[list[Floats]]:
        workers = min(self._workers, len(rows))
        if workers == 1:
            return [self._read_window(row, head) for row in rows]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(partial(self._read_window, head=head), rows))


def _read_window(pair: Any, ids: tuple[int, ...], head: int) -> list[Floats]:
    """Blocks, relevance, and where the answer may start and end, judged by this window alone."""
    types = (np.arange(len(ids)) >= head).astype(np.int64)
    given = {"ids": np.array(ids, np.int64), "types": types}
    return list(pair.run(["blocks", "relevance", "places"], given))


def _clean(text: str) -> str:
    """The part of a text that is read; lone surrogates would stop the tokenizer."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode()


def _sentence(text: str, start: int, end: int) -> str:
    """The sentence around a place, or the part of it that is near."""
    if not end:
        return ""
    earliest, latest = max(start - MAX_QUOTE, 0), min(end + MAX_QUOTE, len(text))
    ends = [one.end() for one in _SENTENCE_END.finditer(text, earliest, start)]
    first = ends[-1] if ends else earliest
    stop = _SENTENCE_END.search(text, max(end - 1, 0), latest)
    return " ".join(text[first : stop.end() if stop else latest].split())


def _quotes(
    windows: Sequence[_Window], evidence: Sequence[Floats], head: int, texts: Sequence[str]
) -> tuple[str, ...]:
    """For each text, the sentence with the best mark."""
    best = _best_marks(windows, evidence, head, len(texts))
    return tuple(_sentence(text, *place) for text, (_, place) in zip(texts, best, strict=True))


def _best_marks(
    windows: Sequence[_Window], evidence: Sequence[Floats], head: int, count: int
) -> list[tuple[float, tuple[int, int]]]:
    """The best mark of each text, and its place; marks in its title do not count."""
    best = [(-np.inf, (0, 0))] * count
    for window, values in zip(windows, evidence, strict=True):
        marks = values.tolist()
        for at, place in enumerate(window.offsets):
            mark = marks[(head - 1 + at) // BLOCK_TOKENS]  # blocks begin after the first token
            if place[0] >= 0 and mark > best[window.hit][0]:
                best[window.hit] = (mark, place)
    return best


def _best_evidence(
    windows: Sequence[_Window], evidence: Sequence[Floats], head: int, count: int
) -> tuple[int, tuple[int, int]]:
    """The hit with the best mark, and its place."""
    marks = _best_marks(windows, evidence, head, count)
    at = max(range(count), key=lambda hit: marks[hit][0])
    return at, marks[at][1]


def _best_span(
    windows: Sequence[_Window], logits: Sequence[Floats], head: int,
    hits: Sequence[tuple[str, str]], fits: Fits,
) -> tuple[int, int, int, str, float]:  # fmt: skip
    """Hit, start, end, words and probability of the likeliest answer, in a text or a title; only
    those that fit, if there are any. No answer has probability 0.
    """
    logs = np.full((len(windows), max(map(len, logits)), 2), -np.inf)
    for row, one in zip(logs, logits, strict=True):
        row[: len(one)] = one
    top = logs.max((0, 1))
    logs = logs - top - np.log(np.exp(logs - top).sum((0, 1)))
    found: dict[str, list[tuple[float, int, int, int, str]]] = {}
    starts = np.argsort(-logs[..., 0], axis=None, kind="stable")[:ANSWER_STARTS]
    for at, first in zip(*np.unravel_index(starts, logs.shape[:2]), strict=True):
        window, place = windows[at], int(first) - head
        if not 0 <= place < len(window.ids):
            continue
        title, text = hits[window.hit]
        rest = logs[at, first : first + min(ANSWER_TOKENS, len(window.ids) - place), 1]
        for more in np.argsort(-rest, kind="stable")[:ANSWER_ENDS].tolist():
            start, end = window.offsets[place][0], window.offsets[place + more][1]
            if start >= 0:
                start, end = _whole_words(text, start, end)
            p = float(np.exp(logs[at, first, 0] + rest[more]))
            size = len(title) + 1  # titles end in front of the text's first character
            said = text[start:end] if start >= 0 else title[start + size : end + size]
            words = " ".join(_WORD.findall(said.casefold()))
            if words and (start < 0) == (end < 0):
                found.setdefault(words, []).append((p, window.hit, start, end, said))
    if not found:
        return 0, 0, 0, "", 0.0
    # Windows overlap, and several hits may give the same answer.
    fitting = {words for words, same in found.items() if fits(same[0][-1])} or set(found)
    chance = {
        words: min(sum(one[0] for one in found[words]), 1.0) for words in found if words in fitting
    }
    best = max(chance, key=lambda words: chance[words])
    _, hit, start, end, said = max(found[best])
    return hit, start, end, said, chance[best]


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend a span to whole words: in "nightly.sh", "sh" alone is a token."""

    def joins(at: int) -> bool:  # whether this place is inside a word
        if not 0 < at < len(text):
            return False
        before, after = text[at - 1], text[at]
        if after in "._/" and at + 1 < len(text):
            return before.isalnum() and text[at + 1].isalnum()
        return after.isalnum() and (before.isalnum() or (before in "._/" and joins(at - 1)))

    while joins(start):
        start -= 1
    while joins(end):
        end += 1
    return start, end


def _split(length: int, room: int) -> list[slice]:
    """The windows of a text: as few as possible, of equal size, so that each has some context."""
    count = max(1, -(-(length - OVERLAP_TOKENS) // (room - OVERLAP_TOKENS)))
    size = -(-(length + (count - 1) * OVERLAP_TOKENS) // count)
    return [
        slice(start, start + size)
        for start in (at * (size - OVERLAP_TOKENS) for at in range(count))
    ]


def _windows_of(characters: int) -> int:
    return max(1, -(-characters // WINDOW_CHARS))


def _choose_hits(question: str, hits: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """All of them, or those that share most words with the question, in the given order."""
    if len(hits) <= MAX_HITS:
        return hits
    words = set(_WORD.findall(question[:MAX_CHARS].casefold()))

    def shared(at: int) -> int:
        title, text = hits[at]
        found = _WORD.findall(f"{title[:MAX_CHARS]} {text[:MAX_CHARS]}".casefold())
        return len(words.intersection(found))

    order = sorted(range(len(hits)), key=lambda at: (-shared(at), at))
    return [hits[at] for at in sorted(order[:MAX_HITS])]


def _choose_windows(windows: list[_Window], question: set[int]) -> list[_Window]:
    """All of them, or as many per hit as there is room for.

    The first window of every hit comes first. Then, for every hit in turn, the remaining window
    that shares most words with the question.
    """
    if len(windows) <= MAX_WINDOWS:
        return windows
    shared = [len(question.intersection(one.ids)) for one in windows]
    of_hits: dict[int, list[int]] = {}
    for at, one in enumerate(windows):
        of_hits.setdefault(one.hit, []).append(at)
    turns = []
    for first, *others in of_hits.values():
        order = [first, *sorted(others, key=lambda at: (-shared[at], at))]
        turns += [(turn, -shared[at], at) for turn, at in enumerate(order)]
    return [windows[at] for at in sorted(at for *_, at in sorted(turns)[:MAX_WINDOWS])]


def reading_features(readings: Sequence[Reading]) -> tuple[Floats, list[Floats]]:
    """(questions, READING), and (hits, READING_HIT) per question."""
    of_sets = np.zeros((len(readings), len(READING)), np.float32)
    of_hits = []
    for row, one in enumerate(readings):
        # A hit that is surely not needed counts like a missing one, and never less: otherwise
        # adding a hit could lower the value of the set.
        needed = np.maximum(one.needed, UNREAD)
        top = sorted(needed.tolist(), reverse=True)
        first = (top + [UNREAD] * TOP_NEEDED)[:TOP_NEEDED]
        held = float(sigmoid(np.array(top)).sum()) if top else 0.0
        known = one.counts[1:] / max(float(one.counts[1:].sum()), 1e-6)
        need = float(known @ np.arange(1, 6))
        # The weakest hit among as many as the question needs, averaged over that number.
        weakest = float(known @ np.array([*first, UNREAD]))
        relevance = np.maximum(one.relevance, IRRELEVANT)
        best = sorted(relevance.tolist(), reverse=True)
        best = (best + [IRRELEVANT] * TOP_NEEDED)[:TOP_NEEDED]
        of_sets[row] = [
            one.complete,
            *first,
            held,
            need,
            float(one.counts[0]),
            held - need,
            weakest,
            *best,
            float(known @ np.array([*best, IRRELEVANT])),
        ]
        behind = needed - max(top, default=0.0)
        place = (needed[:, None] < needed).sum(1) / max(len(top) - 1, 1)
        close = relevance - max(best, default=0.0)
        columns = [needed, behind, place, relevance, close]
        of_hits.append(np.column_stack(columns).astype(np.float32))
    return of_sets, of_hits


class BlankReader(Reader):
    """Reads nothing: for a list that only tries a gate's records."""

    def __init__(self) -> None:
        """Open no folder."""

    def read(self, question: str, titles: Sequence[str], texts: Sequence[str]) -> Reading:
        nothing = np.zeros(len(texts))
        return Reading(nothing, nothing, UNREAD, np.eye(6)[0], ("",) * len(texts), len(texts), 0)
