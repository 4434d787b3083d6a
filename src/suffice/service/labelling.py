"""Labelling: what a person should label next, and the labels in a JSON Lines file.

    queue = LabelQueue(Path("labels.jsonl"), load_items(Path("questions.jsonl")))
    item, progress = queue.next("ada")              an item reserved for her for some minutes
    queue.answer(item, True, {}, "ada")             one line in the file; None: skipped
    queue.undo("ada")                               another line, which takes back her last one

Questions come from a file, and from the checks that the service serves. Those with a probability
near the gate's threshold, and with words unlike the questions already seen, come first. Every
second question is drawn at random: a gate may be unsure about one kind of question only, and labels
of that kind alone teach it nothing about the others.

A line in the file is an answer, or takes one back; lines are never changed or removed:

    {"question": "…", "hits": [{"id": "…", "title": "…", "text": "…", "score": 1.0}],
     "complete": true, "needed": {"…": true}, "by": "ada", "at": "2026-05-01T10:00:00+00:00"}
    {"undo": true, "question": "…", "hits": ["…"], "by": "ada", "at": "…"}

`complete` is null if the question was skipped; `needed` is optional. `suffice.datasets.labels`
reads these lines, here and for `suffice adapt`. The file is the only state: a restarted service, or
another one with the same file, continues from it. Invalid lines, such as an incomplete one after a
crash, are skipped.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from suffice.datasets.labels import Label, LabelHistory, parse_label
from suffice.errors import EngineError, InputError, SufficeError, disk_hint
from suffice.gate.gate import Gate
from suffice.gate.hits import UNNAMED_ID_PREFIX, normalize_hits
from suffice.lexicon import STOP_WORDS
from suffice.storage import MAX_RECORD_BYTES, BadRecords, Record, append_record, read_json_records
from suffice.storage.fields import content_id, is_text, required_list, required_text
from suffice.text import jaccard, tokens
from suffice.types import Verdict

ENOUGH = 20  # labels from which adapting is worthwhile
LEASE_S = 600.0  # during which nobody else gets the same question
MAX_FILE_ITEMS = 1000  # a longer file is sampled: the gate has to check all items
MAX_QUESTION_CHARS = 10_000
MAX_ITEM_CHARS = 400_000  # of a question and its hits; fits into a request body
MAX_SERVED_ITEMS = 500  # checks kept in memory, the latest ones
MAX_SERVED_CHARS = 20_000_000
RANKED_AT_ONCE = 4  # so that clients' checks wait only a moment
FLOOR = 0.1  # added to each factor, so that no question has priority 0


@dataclass(frozen=True, slots=True)
class LabelItem:
    """A question, and its hits as {"id", "title", "text", "score"}."""

    question: str
    hits: tuple[Mapping[str, Any], ...]

    @property
    def ids(self) -> list[str]:
        return [hit["id"] for hit in self.hits]

    @property
    def key(self) -> str:
        """Equal for the same question, hit ids and texts."""
        parts = [self.question, *([hit["id"], hit["text"]] for hit in self.hits)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def words(self) -> frozenset[str]:
        return frozenset(tokens(self.question)) - STOP_WORDS

    @property
    def chars(self) -> int:
        return len(self.question) + sum(len(hit["title"]) + len(hit["text"]) for hit in self.hits)


@dataclass(frozen=True, slots=True)
class LabelProgress:
    """The progress of labelling; `skipped` and `left` are for one person."""

    labelled: int
    complete: int
    skipped: int
    left: int
    enough: int
    adapt: str | None  # the command that uses the labels, once there are enough of both kinds


@dataclass(slots=True)
class _Candidate:
    item: LabelItem
    words: frozenset[str]
    novelty: float  # distance to the closest question already seen, 0 to 1
    uncertainty: float | None  # 0 to 1; None: the gate has not checked it yet

    @property
    def value(self) -> float:
        """The priority: higher for uncertain questions that are unlike others."""
        return (FLOOR + (self.uncertainty or 0.0)) * (FLOOR + self.novelty)


def make_item(question: str, hits: Iterable[Any], *, k: int | None = None) -> LabelItem:
    """The question with its first k distinct hits, which may have any common shape."""
    evidence = normalize_hits(question, hits, k=k).evidence
    records = []
    for hit in evidence.hits:
        document = evidence.documents[hit.doc_id]
        unnamed = hit.doc_id.startswith(UNNAMED_ID_PREFIX)
        doc_id = content_id(document.title, document.text) if unnamed else hit.doc_id
        texts = {"title": document.title, "text": document.text}
        records.append({"id": doc_id, **texts, "score": hit.score})
    return LabelItem(question.strip(), tuple(records))


def load_items(path: Path, *, k: int | None = None) -> list[LabelItem]:
    """The questions in a file that have no label yet; a long file is sampled reproducibly."""
    found = heapq.nsmallest(MAX_FILE_ITEMS, _read_items(path, k), key=lambda item: item.key)
    if not found:
        hint = 'give each question like {"question": "…", "hits": [{"id": "…", "text": "…"}]}'
        raise InputError(f"{path} has no question that is to be labelled", hint=hint)
    return found


def _read_items(path: Path, k: int | None) -> Iterator[LabelItem]:
    for record in read_json_records(path, BadRecords()):
        if isinstance(record.value.get("complete"), bool):
            continue
        question, hits = required_text(record, "question"), required_list(record, "hits")
        try:
            item = make_item(question, hits, k=k)
        except InputError as error:
            raise InputError(f"{record.where}: {error}", hint=error.hint) from error
        for what, chars, most in (
            ("the question has", len(question), MAX_QUESTION_CHARS),
            ("question and hits have", item.chars, MAX_ITEM_CHARS),
        ):
            if chars > most:
                message = f"{record.where}: {what} {chars:,} characters, which nobody reads"
                raise InputError(message, hint=f"shorten it to {most:,}, or leave it out")
        if _can_be_shown(item):
            yield item


def _can_be_shown(item: LabelItem) -> bool:
    texts = [hit[name] for hit in item.hits for name in ("id", "title", "text")]
    return all(map(is_text, texts)) and any(hit["text"].strip() for hit in item.hits)


def uncertainty(p: float, threshold: float | None) -> float:
    """1 if p equals the threshold, 0 at the largest distance. The default threshold is 0.5."""
    at = 0.5 if threshold is None else threshold
    return 1 - abs(p - at) / max(at, 1 - at)


class LabelQueue:
    """The questions to label, who is labelling which, and the label file. Thread-safe."""

    def __init__(
        self,
        path: Path,
        items: Iterable[LabelItem] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path, self._clock = Path(path), clock
        self._lock = threading.Lock()
        self._candidates: dict[str, _Candidate] = {}
        self._served: dict[str, int] = {}  # key -> characters, oldest first
        self._leases: dict[str, tuple[str, float]] = {}  # key -> who, until when; latest last
        self._seen: set[frozenset[str]] = set()
        self._file: tuple[int, int] | None = None  # device and inode of the file that was read
        self._read_to = 0
        self._history, self._keys = LabelHistory(), dict[int, str]()  # by line number
        self._check_writable()
        self._read_new_lines()
        for item in items:
            self._add(item)

    def _check_writable(self) -> None:
        place = self.path if self.path.exists() else self.path.parent
        if self.path.is_dir() or not os.access(place, os.W_OK):
            raise InputError(f"{self.path} cannot store labels", hint="name a file: --labels FILE")

    # ---- questions to label

    def offer(self, gate: Gate, question: str, hits: Sequence[Any], verdict: Verdict) -> None:
        """Remember a served check, if people can read it."""
        item = make_item(question, hits, k=gate.card["k"])
        if _can_be_shown(item) and item.chars <= MAX_ITEM_CHARS:
            with self._lock:
                self._add_served(item, uncertainty(verdict.p_complete, gate.policy.answer_at))

    def rank_some(self, gate: Gate) -> bool:
        """Check a few questions that the gate has not checked yet; False if there are none."""
        with self._lock:
            waiting = [one for one in self._candidates.values() if one.uncertainty is None]
        some = waiting[:RANKED_AT_ONCE]
        try:
            pairs = [(one.item.question, one.item.hits) for one in some]
            verdicts = gate.check_batch(pairs, explain=False)
            at = gate.policy.answer_at
            found = [uncertainty(verdict.p_complete, at) for verdict in verdicts]
        except SufficeError:
            found = [0.0] * len(some)  # they come last
        for one, value in zip(some, found, strict=True):
            one.uncertainty = value
        return bool(some)

    def _add(self, item: LabelItem, unsure: float | None = None) -> None:
        words = item.words
        novelty = 1 - max((jaccard(words, one) for one in self._seen), default=0.0)
        self._candidates[item.key] = _Candidate(item, words, novelty, unsure)

    def _add_served(self, item: LabelItem, unsure: float | None = None) -> None:
        """Add an item, replacing the oldest ones that did not come from the file."""
        if (key := item.key) in self._candidates:
            return
        self._add(item, unsure)
        self._served[key] = item.chars
        while len(self._served) > MAX_SERVED_ITEMS or sum(self._served.values()) > MAX_SERVED_CHARS:
            oldest = next(iter(self._served))
            del self._served[oldest], self._candidates[oldest]

    def _see(self, words: frozenset[str]) -> None:
        """Somebody has seen this question: lower the priority of similar ones."""
        if words in self._seen:
            return
        self._seen.add(words)
        for one in self._candidates.values():
            one.novelty = min(one.novelty, 1 - jaccard(one.words, words))

    # ---- actions

    def next(self, by: str) -> tuple[LabelItem | None, LabelProgress]:
        """The next question for this person; the same again until it is answered."""
        with self._lock:
            self._read_new_lines()
            now = self._clock()
            self._leases = {key: one for key, one in self._leases.items() if one[1] > now}
            done, skipped = self._done(), self._skipped(by)
            left = {
                key: one
                for key, one in self._candidates.items()
                if key not in done and key not in skipped
            }
            progress = self._progress(done, len(skipped), len(left))
            if not left:
                return None, progress
            mine = [key for key, (who, _) in self._leases.items() if who == by and key in left]
            free = [key for key in left if key not in self._leases]
            if mine:
                chosen = mine[-1]
            elif (len(done) + len(skipped)) % 2:
                chosen = min(free or left)  # keys are hashes, so their order is random
            else:
                chosen = max(free or left, key=lambda key: left[key].value)
            self._lease(chosen, by, now)
            return left[chosen].item, progress

    def answer(
        self, item: LabelItem, complete: bool | None, needed: Mapping[str, bool], by: str
    ) -> None:
        """Store an answer: whether the hits are enough, and which of them are needed."""
        if unknown := sorted(set(needed) - set(item.ids)):
            message = f"needed: no hit has the id {unknown[0]!r:.80}"
            raise InputError(message, hint="use the ids of the hits")
        record: dict[str, Any] = {"question": item.question, "hits": list(item.hits)}
        record["complete"] = complete
        if needed:
            record["needed"] = dict(needed)
        parse_label(Record(record, "the label"))  # write no line that adapting would reject
        self._append(record, by)
        with self._lock:
            self._leases.pop(item.key, None)

    def undo(self, by: str) -> bool:
        """Take back this person's last answer and offer it again; False if there is none."""
        with self._lock:
            self._read_new_lines()
            places = [at for at, one in self._history.labels.items() if one.by == by]
            item = self._item_at(places[-1]) if places else None
        if item is None:
            return False
        self._append({"undo": True, "question": item.question, "hits": item.ids}, by)
        with self._lock:
            self._add_served(item)
            self._lease(item.key, by, self._clock())
        return True

    def _lease(self, key: str, by: str, now: float) -> None:
        self._leases.pop(key, None)
        self._leases[key] = by, now + LEASE_S
        self._see(self._candidates[key].words)

    def _append(self, record: Mapping[str, Any], by: str) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            append_record(self.path, {**record, "by": by, "at": at})
        except OSError as error:
            message = f"the label was not stored: {error.strerror}"
            raise EngineError(message, hint=disk_hint(error)) from error

    def _done(self) -> dict[str, bool]:
        """Each labelled question, and its last answer."""
        answers = ((at, one.is_complete) for at, one in self._history.labels.items())
        return {self._keys[at]: complete for at, complete in answers if complete is not None}

    def _skipped(self, by: str) -> set[str]:
        answers = self._history.labels.items()
        return {self._keys[at] for at, one in answers if one.is_complete is None and one.by == by}

    def _progress(self, done: Mapping[str, bool], skipped: int, left: int) -> LabelProgress:
        labelled, complete = len(done), sum(done.values())
        ready = labelled >= ENOUGH and 0 < complete < labelled
        command = f"suffice adapt {shlex.quote(self.path.name)} --out my-gate"
        return LabelProgress(labelled, complete, skipped, left, ENOUGH, command if ready else None)

    # ---- the file

    def _read_new_lines(self) -> None:
        """Read lines appended to the file, also by other processes."""
        try:
            stream = self.path.open("rb")
        except FileNotFoundError:
            self._begin(None)
            return
        with stream:
            found = os.fstat(stream.fileno())
            if (found.st_dev, found.st_ino) != self._file or found.st_size < self._read_to:
                self._begin((found.st_dev, found.st_ino))
            stream.seek(self._read_to)
            while line := stream.readline(MAX_RECORD_BYTES):
                if not line.endswith(b"\n") and len(line) < MAX_RECORD_BYTES:
                    return  # its writer has not finished, or crashed
                self._apply(self._read_to, line)
                self._read_to += len(line)

    def _begin(self, file: tuple[int, int] | None) -> None:
        self._file, self._read_to = file, 0
        self._history, self._keys = LabelHistory(), {}

    def _apply(self, place: int, line: bytes) -> None:
        try:
            said = parse_label(_record(line))
        except (SufficeError, ValueError, RecursionError):
            return
        if isinstance(said, Label):
            item = _item_of(said)
            self._keys[place] = item.key
            self._see(item.words)
            said = replace(said, hits=tuple({"id": name} for name in item.ids))  # drop the texts
        self._history.add(place, said)

    def _item_at(self, place: int) -> LabelItem | None:
        with self.path.open("rb") as stream:
            stream.seek(place)
            said = parse_label(_record(stream.readline(MAX_RECORD_BYTES)))
        return _item_of(said) if isinstance(said, Label) else None


def _record(line: bytes) -> Record:
    value = json.loads(line)
    if not isinstance(value, dict):
        raise InputError("a label is a JSON object")
    return Record(value, "the label")


def _item_of(label: Label) -> LabelItem:
    return LabelItem(label.question, tuple({"text": "", **hit} for hit in label.hits))
